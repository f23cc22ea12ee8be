#ifndef RDNA_COMMAND_TEXT_H
#define RDNA_COMMAND_TEXT_H

#include "rdna/model.h"

/* The tokens of the text at |path|, "-" for standard input, without special ones. |*out_bos|: the token that a text
 * begins with, or -1. */
rdna_status tokens_of_text(const rdna_gguf *file, const char *path, rdna_tokens *tokens, int32_t *out_bos);

#endif
