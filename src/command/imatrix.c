/* rdna imatrix: how much each column of a model's matrices counts. */
#include <stdio.h>

#include "base/status.h"
#include "command/command.h"
#include "command/text.h"
#include "model/llm/importance.h"

static void show_reading(void *data, double share) { show_progress("reading", share); }

static rdna_status make(const char *model, const char *text, const char *out, int window) {
  rdna_gguf *file = NULL;
  rdna_device *device = NULL;
  rdna_llm *llm = NULL;
  rdna_tokens tokens = {0};
  int32_t bos = -1;
  rdna_status status = rdna_gguf_open(model, &file);
  if (status == RDNA_OK) status = tokens_of_text(file, text, &tokens, &bos);
  if (status == RDNA_OK) status = rdna_device_open("host", &device);
  if (status == RDNA_OK) status = rdna_llm_open(device, file, NULL, NULL, &llm);
  if (status == RDNA_OK)
    status = rdna__importance_make(llm, file, tokens.ids, tokens.count, window, bos, text, out, show_reading, NULL);
  end_progress();
  rdna_tokens_deinit(&tokens);
  rdna_llm_release(llm);
  rdna_device_release(device);
  rdna_gguf_close(file);
  return status;
}

int command_imatrix(int argc, char **argv) {
  int64_t window = 512;
  const char *out = NULL;
  const option_row options[] = {
      {"--out", OPTION_TEXT, &out, "FILE", "where the importance matrix goes, as GGUF", 0, 0},
      {"--window", OPTION_INTEGER, &window, "N", "tokens that are read at a time (512)", 2, 1e8},
  };
  const command_line line = {
      "rdna imatrix",
      "Reads a text and writes how much each column of the model's matrices counts: the squares of\nwhat it is "
      "multiplied by, for rdna quantize --imatrix, and for llama.cpp. On the host; the\nmodel should have f32, f16 or "
      "bf16 weights.",
      "MODEL.gguf TEXT",
      2,
      2,
      options,
      sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  if (!out) {
    fprintf(stderr, "rdna imatrix: --out FILE is missing; see rdna imatrix --help\n");
    return EXIT_USAGE;
  }
  if (make(positionals[0], positionals[1], out, (int)window) != RDNA_OK) return fail_with_status();
  return EXIT_OK;
}
