/* Making an importance matrix (model/weights/imatrix.h) from a text. */
#ifndef RDNA_MODEL_LLM_IMPORTANCE_H
#define RDNA_MODEL_LLM_IMPORTANCE_H

#include "rdna/llm.h"

/* Reads |count| tokens with |llm|, which is |file| on the host, in windows of |window|, each beginning with |bos| in
 * place of its own first token unless that is below 0, and writes what the matrices were multiplied by to |path|, in
 * GGUF's form. |text|: what the file says that the tokens are. RDNA_INVALID_ARGUMENT: fewer tokens than a window.
 * RDNA_UNSUPPORTED: the weights do not lie in the file's map. */
rdna_status rdna__importance_make(rdna_llm *llm, const rdna_gguf *file, const int32_t *tokens, size_t count, int window,
                                  int32_t bos, const char *text, const char *path,
                                  void (*progress)(void *data, double share), void *progress_data);

#endif
