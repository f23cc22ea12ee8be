/* rdna logits: what a model makes of given tokens, as raw float32. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "command/command.h"
#include "rdna/llm.h"

static rdna_status write_floats(const char *path, const float *values, size_t count) {
  FILE *file = fopen(path, "wb");
  bool written = file && fwrite(values, sizeof *values, count, file) == count;
  if (file && fclose(file) != 0) written = false;
  return written ? RDNA_OK : rdna__fail(RDNA_IO_ERROR, "cannot write %s: %s", path, strerror(errno));
}

static rdna_status evaluate(rdna_device *device, const rdna_gguf *file, const rdna_tokens *tokens, int batch,
                            rdna_dtype kv_dtype, bool exact, const char *out_path) {
  rdna_llm *llm;
  rdna_llm_session *session = NULL;
  float *logits = NULL;
  RDNA_TRY(rdna_llm_open(device, file, NULL, NULL, &llm));
  size_t values = tokens->count * (size_t)rdna_llm_get_info(llm)->vocabulary;
  rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = (int)tokens->count,
                                      .kv_dtype = kv_dtype, .batch = batch, .exact = exact};
  rdna_status status = rdna_llm_session_create(llm, &options, &session);
  if (status == RDNA_OK && (logits = malloc(values * sizeof *logits)) == NULL)
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu logits", values);
  if (status == RDNA_OK) status = rdna_llm_session_eval_all(session, tokens->ids, (int)tokens->count, logits);
  if (status == RDNA_OK) status = write_floats(out_path, logits, values);
  free(logits);
  rdna_llm_session_release(session);
  rdna_llm_release(llm);
  return status;
}

int command_logits(int argc, char **argv) {
  device_choice choice = DEVICE_CHOICE_DEFAULT;
  const char *list = NULL, *out_path = NULL, *kv = "f16";
  int64_t batch = 512;
  bool exact = false;
  const option_row options[] = {
      {"--tokens", OPTION_TEXT, &list, "1,2,3", "the ids", 0, 0},
      {"--out", OPTION_TEXT, &out_path, "FILE", "where the float32 go, tokens x vocabulary", 0, 0},
      {"--kv", OPTION_CHOICE, &kv, KV_CHOICES, "type of the KV cache (f16)", 0, 0},
      {"--batch", OPTION_INTEGER, &batch, "N", "most tokens in one pass (512)", 1, 65536},
      {"--exact", OPTION_FLAG, &exact, NULL, "round nothing in products", 0, 0},
      DEVICE_OPTIONS(choice),
  };
  const command_line line = {
      "rdna logits", "Writes a model's logits after each of the given tokens.", "MODEL.gguf|FOLDER", 1, 1, options, 7};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  if (!list || !out_path) {
    fprintf(stderr, "rdna logits: --tokens and --out are needed; see rdna logits --help\n");
    return EXIT_USAGE;
  }
  rdna_tokens tokens = {0};
  rdna_gguf *file = NULL;
  rdna_device *device = NULL;
  rdna_status status = parse_numbers("--tokens", list, &tokens);
  if (status == RDNA_OK) status = check_not_input(positionals[0], out_path);
  if (status == RDNA_OK) status = rdna_model_open(positionals[0], &file);
  if (status == RDNA_OK) status = open_chosen_device(&choice, &device);
  if (status == RDNA_OK) status = evaluate(device, file, &tokens, (int)batch, kv_type(kv), exact, out_path);
  rdna_device_release(device);
  rdna_gguf_close(file);
  rdna_tokens_deinit(&tokens);
  return status == RDNA_OK ? EXIT_OK : fail_with_status();
}
