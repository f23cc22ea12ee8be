/* rdna quantize: a GGUF file with its weights in another type. */
#include <stdio.h>

#include "command/command.h"
#include "command/weights.h"
#include "model/weights/quantize.h"

static void show_quantizing(void *data, double share) { show_progress("quantizing", share); }

static rdna_status quantize(const char *const *positionals, const char *imatrix_path, const device_choice *choice,
                            rdna__weight_counts *counts) {
  rdna_gguf *file = NULL;
  rdna__imatrix *imatrix = NULL;
  rdna_device *device = NULL;
  rdna_dtype type;
  const rdna__mix *mix;
  rdna_status status = rdna__weight_recipe_parse(positionals[2], &type, &mix);
  if (status == RDNA_OK) status = rdna_model_open(positionals[0], &file);
  if (status == RDNA_OK && imatrix_path) status = rdna__imatrix_open(imatrix_path, &imatrix);
  if (status == RDNA_OK) status = open_chosen_device(choice, &device);
  if (status == RDNA_OK)
    status = rdna__quantize(file, positionals[1], type, mix, imatrix, device, show_quantizing, NULL, counts);
  end_progress();
  rdna_device_release(device);
  rdna__imatrix_close(imatrix);
  rdna_gguf_close(file);
  return status;
}

int command_quantize(int argc, char **argv) {
  device_choice choice = {"host", ""};
  bool json = false;
  const char *imatrix = NULL;
  const option_row options[] = {
      {"--imatrix", OPTION_TEXT, &imatrix, "FILE", "search for scales by an importance matrix, llama.cpp's or ours", 0,
       0},
      {"--json", OPTION_FLAG, &json, NULL, "print the table as JSON", 0, 0},
      DEVICE_OPTIONS(choice),
  };
  const command_line line = {
      "rdna quantize",
      "Writes a model with its weights in another type: f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, "
      "q5_1,\nq2_K, q3_K, q4_K, q5_K, q6_K, iq4_nl, iq4_xs, mxfp4, tq1_0, tq2_0, iq1_s, iq1_m, iq2_xxs, "
      "iq2_xs,\niq2_s, "
      "iq3_xxs or iq3_s. The file may be in several parts and of any of these types. With fewer\nbits than q2_K an "
      "importance matrix matters much.\n\nOr a mix by llama.cpp's rules, in which what matters more has more "
      "bits: q2_K_S, q3_K_S,\nq3_K_M, q3_K_L, q4_K_S, q4_K_M, q5_K_S, q5_K_M, iq2_M, iq3_XS, iq3_M or "
      "mxfp4_moe (experts in\nmxfp4, all else in q8_0).\n\nVectors, norms and the routers of experts are f32. "
      "output.weight, or token_embd.weight\nwhere the model has no output.weight, is q6_K where the "
      "type has fewer bits. Matrices\nwhose rows are no whole blocks of 256 values take the next type "
      "with blocks of 32, and\nwhere they are no whole blocks of 32, f16 or bf16.",
      "IN.gguf|FOLDER OUT.gguf TYPE",
      3,
      3,
      options,
      sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  rdna__weight_counts counts;
  if (quantize(positionals, imatrix, &choice, &counts) != RDNA_OK) return fail_with_status();
  return print_weight_counts(&counts, true, json);
}
