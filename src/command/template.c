/* rdna template: a chat template's text for some variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "command/command.h"
#include "model/template/conversation.h"

/* Whether |path| is a folder, or a file that begins as GGUF files do; what cannot be read does not. */
static bool is_model(const char *path) {
  char magic[4] = "";
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return true;
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  bool yes = fread(magic, 1, sizeof magic, file) == sizeof magic && memcmp(magic, "GGUF", 4) == 0;
  fclose(file);
  return yes;
}

/* The template of a model, whose special tokens join the variables |*json|, unless these are no object: then rendering
 * says so. */
static rdna_status compile_of_model(const char *path, char **json, size_t *size, rdna_template **out_template) {
  rdna_gguf *file;
  rdna_tokenizer *tokenizer;
  RDNA_TRY(rdna_model_open(path, &file));
  rdna_status status = rdna__compile_model_template(file, out_template);
  json_t *variables = json_loadb(*json, *size, JSON_ALLOW_NUL, NULL);
  if (status == RDNA_OK && json_is_object(variables) && rdna_tokenizer_open(file, &tokenizer) == RDNA_OK) {
    status = rdna__set_special_tokens(variables, tokenizer);
    rdna_tokenizer_close(tokenizer);
    char *with_tokens = json_dumps(variables, 0);
    if (with_tokens) {
      free(*json);
      *json = with_tokens;
      *size = strlen(with_tokens);
    }
  }
  json_decref(variables);
  rdna_gguf_close(file);
  return status;
}

static rdna_status compile(const char *path, char **json, size_t *json_size, rdna_template **out_template) {
  char *text;
  size_t size;
  if (is_model(path)) return compile_of_model(path, json, json_size, out_template);
  RDNA_TRY(read_whole(path, &text, &size));
  rdna_status status = rdna_template_compile(text, size, out_template);
  free(text);
  return status;
}

int command_template(int argc, char **argv) {
  const char *variables = "-";
  const option_row options[] = {
      {"--json", OPTION_TEXT, &variables, "FILE", "the variables, a JSON object (standard input)", 0, 0},
  };
  const command_line line = {"rdna template",
                             "Writes the text that a chat template makes of messages and other variables. A model "
                             "adds\nbos_token, eos_token and unk_token, where they are not given.",
                             "FILE.jinja|MODEL.gguf|FOLDER",
                             1,
                             1,
                             options,
                             1};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  rdna_template *compiled = NULL;
  char *json = NULL, *text = NULL;
  size_t json_size, size;
  rdna_status status = read_whole(variables, &json, &json_size);
  if (status == RDNA_OK) status = compile(positionals[0], &json, &json_size, &compiled);
  if (status == RDNA_OK) status = rdna_template_render(compiled, json, json_size, &text, &size);
  if (status == RDNA_OK) fwrite(text, 1, size, stdout);
  free(text);
  free(json);
  rdna_template_release(compiled);
  return status == RDNA_OK ? EXIT_OK : fail_with_status();
}
