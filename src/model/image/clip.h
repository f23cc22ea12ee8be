/* CLIP's tokenizer as folders of diffusers and transformers have it. */
#ifndef RDNA_MODEL_IMAGE_CLIP_H
#define RDNA_MODEL_IMAGE_CLIP_H

#include "rdna/model.h"

typedef struct rdna__clip_tokenizer {
  rdna_gguf *file; /* its vocabulary, which |tokenizer| borrows from */
  rdna_tokenizer *tokenizer;
  int32_t begin, end, pad;
} rdna__clip_tokenizer;

/* The tokenizer of vocab.json and merges.txt or, without the first, of tokenizer.json, and of tokenizer_config.json and
 * added_tokens.json, if they are there, in |folder|. RDNA_NOT_FOUND: files are missing. RDNA_BAD_DATA: what they hold
 * is no such vocabulary. RDNA_UNSUPPORTED: it is another kind of tokenizer, or tokens were added to it. */
rdna_status rdna__clip_tokenizer_open(const char *folder, rdna__clip_tokenizer *out_tokenizer);
/* The same of what the files hold; |settings| and |added| of no bytes: none. */
rdna_status rdna__clip_tokenizer_make(rdna_text vocab, rdna_text merges, rdna_text settings, rdna_text added,
                                      rdna__clip_tokenizer *out_tokenizer);
/* of tokenizer.json */
rdna_status rdna__clip_tokenizer_make_whole(rdna_text tokenizer, rdna_text settings, rdna_text added,
                                            rdna__clip_tokenizer *out_tokenizer);
void rdna__clip_tokenizer_close(rdna__clip_tokenizer *tokenizer); /* of all zeros, too */

#endif
