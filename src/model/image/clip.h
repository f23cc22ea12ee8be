/* CLIP's tokenizer as folders of diffusers and transformers have it. */
#ifndef RDNA_MODEL_IMAGE_CLIP_H
#define RDNA_MODEL_IMAGE_CLIP_H

#include "rdna/model.h"

typedef struct rdna__clip_tokenizer {
  rdna_gguf *file; /* its vocabulary, which |tokenizer| borrows from */
  rdna_tokenizer *tokenizer;
  int32_t begin, end, pad;
} rdna__clip_tokenizer;

/* The tokenizer of vocab.json, merges.txt and, if there is one, tokenizer_config.json in |folder|.
 * RDNA_NOT_FOUND: one of the first two is missing. RDNA_BAD_DATA: what they hold is no such vocabulary. */
rdna_status rdna__clip_tokenizer_open(const char *folder, rdna__clip_tokenizer *out_tokenizer);
/* The same of what the files hold; |settings| of no bytes: none. */
rdna_status rdna__clip_tokenizer_make(rdna_text vocab, rdna_text merges, rdna_text settings,
                                      rdna__clip_tokenizer *out_tokenizer);
void rdna__clip_tokenizer_close(rdna__clip_tokenizer *tokenizer); /* of all zeros, too */

#endif
