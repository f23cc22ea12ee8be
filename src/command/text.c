#include "command/text.h"

#include <stdlib.h>

#include "base/status.h"
#include "command/command.h"

rdna_status tokens_of_text(const rdna_gguf *file, const char *path, rdna_tokens *tokens, int32_t *out_bos) {
  rdna_tokenizer *tokenizer;
  char *text;
  size_t size;
  RDNA_TRY(rdna_tokenizer_open(file, &tokenizer));
  const rdna_tokenizer_info *info = rdna_tokenizer_get_info(tokenizer);
  *out_bos = info->add_bos ? info->bos : -1;
  rdna_status status = read_whole(path, &text, &size);
  if (status == RDNA_OK) {
    status = rdna_tokenizer_encode(tokenizer, text, size, 0, tokens);
    free(text);
  }
  rdna_tokenizer_close(tokenizer);
  return status;
}
