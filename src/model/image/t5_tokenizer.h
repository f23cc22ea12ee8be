/* T5's tokenizer as folders of diffusers and transformers have it. */
#ifndef RDNA_MODEL_IMAGE_T5_TOKENIZER_H
#define RDNA_MODEL_IMAGE_T5_TOKENIZER_H

#include "rdna/model.h"

typedef struct rdna__t5_tokenizer {
  rdna_gguf *file; /* its vocabulary, which |tokenizer| borrows from */
  rdna_tokenizer *tokenizer;
  int32_t end, pad;
} rdna__t5_tokenizer;

/* Of spiece.model in |folder| or, without it, of tokenizer.json, and of tokenizer_config.json, if it is there, with as
 * many tokens as a model has, |vocabulary|. RDNA_NOT_FOUND: files are missing. RDNA_BAD_DATA: what they hold is no such
 * vocabulary, or a larger one. RDNA_UNSUPPORTED: it is another kind of tokenizer. */
rdna_status rdna__t5_tokenizer_open(const char *folder, int vocabulary, rdna__t5_tokenizer *out_tokenizer);
void rdna__t5_tokenizer_close(rdna__t5_tokenizer *tokenizer); /* of all zeros, too */

#endif
