/* rdna tokenize: text to ids, on one line. */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "command/command.h"
#include "rdna/model.h"

static rdna_status tokenize(const rdna_gguf *file, const char *path, bool bos, bool special, rdna_tokens *tokens) {
  rdna_tokenizer *tokenizer;
  char *text = NULL;
  size_t size = 0;
  RDNA_TRY(rdna_tokenizer_open(file, &tokenizer));
  rdna_status status = read_whole(path, &text, &size);
  if (status == RDNA_OK) {
    int32_t id = rdna_tokenizer_get_info(tokenizer)->bos;
    if (bos && id < 0) status = rdna__fail(RDNA_UNSUPPORTED, "--bos: this vocabulary has no token for the beginning");
    if (bos && status == RDNA_OK) status = rdna_tokens_append(tokens, id);
    if (status == RDNA_OK)
      status = rdna_tokenizer_encode(tokenizer, text, size, special ? RDNA_ENCODE_PARSE_SPECIAL : 0, tokens);
    free(text);
  }
  rdna_tokenizer_close(tokenizer);
  return status;
}

int command_tokenize(int argc, char **argv) {
  bool bos = false, special = false;
  const option_row options[] = {
      {"--bos", OPTION_FLAG, &bos, NULL, "put the token for the beginning first", 0, 0},
      {"--special", OPTION_FLAG, &special, NULL, "read control tokens that stand in the text", 0, 0},
  };
  const command_line line = {
      "rdna tokenize", "Writes the token ids of a text on one line.", "MODEL.gguf|FOLDER [FILE|-]", 1, 2, options, 2};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  rdna_gguf *file;
  if (rdna_model_open(positionals[0], &file) != RDNA_OK) return fail_with_status();
  rdna_tokens tokens = {0};
  rdna_status status = tokenize(file, count > 1 ? positionals[1] : "-", bos, special, &tokens);
  rdna_gguf_close(file);
  for (size_t i = 0; status == RDNA_OK && i < tokens.count; i++) printf("%s%d", i ? " " : "", (int)tokens.ids[i]);
  if (status == RDNA_OK) printf("\n");
  rdna_tokens_deinit(&tokens);
  return status == RDNA_OK ? EXIT_OK : fail_with_status();
}
