/* rdna bench: how fast operators and models are on a device. */
#include "command/bench.h"

#include <stdio.h>

#include "base/status.h"
#include "command/command.h"

/* The model, or where |model| is NULL the operators. */
static int measure(rdna_device *device, const char *model, const char *filter, const model_bench *what, bool as_json) {
  const rdna_device_info *info = rdna_device_get_info(device);
  json_t *rows = as_json ? json_array() : NULL;
  if (!as_json) printf("%s (%s:%d, %s)\n", info->name, info->driver, info->index, info->arch);
  if (!as_json && info->emulated) printf("The device is emulated: these times are the interpreter's.\n");
  rdna_status status = model ? bench_model(device, model, what, rows) : bench_operators(device, filter, rows);
  if (as_json && status == RDNA_OK)
    return print_json(json_pack("{s:s, s:s, s:s, s:b, s:o}", "device", info->name, "driver", info->driver, "arch",
                                info->arch, "emulated", info->emulated, "results", rows));
  json_decref(rows);
  return status == RDNA_OK ? EXIT_OK : fail_with_status();
}

int command_bench(int argc, char **argv) {
  device_choice choice = DEVICE_CHOICE_DEFAULT;
  bool as_json = false, kernels = false;
  const char *filter = "";
  const char *depths = "0", *batches = NULL, *kv = "f16";
  int64_t prompt = 512, decode = 64;
  model_bench what = {.place = PLACEMENT_DEFAULT};
  const option_row options[] = {
      {"--op", OPTION_TEXT, &filter, "NAME", "only operators with this in their names", 0, 0},
      {"--prompt", OPTION_INTEGER, &prompt, "N", "tokens of the model's prompt (512)", 1, 1000000},
      {"--decode", OPTION_INTEGER, &decode, "N", "tokens to decode one by one (64)", 1, 1000000},
      {"--depth", OPTION_TEXT, &depths, "N,N,…", "tokens before the prompt, of each row of the table (0)", 0, 0},
      {"--batch", OPTION_TEXT, &batches, "N,N,…", "sequences that decode together, and no prompt", 0, 0},
      {"--kv", OPTION_CHOICE, &kv, KV_CHOICES, "type of the model's KV cache (f16)", 0, 0},
      {"--kernels", OPTION_FLAG, &kernels, NULL, "then where the time goes, kernel by kernel", 0, 0},
      {"--json", OPTION_FLAG, &as_json, NULL, "print JSON", 0, 0},
      PLACEMENT_OPTIONS(what.place),
      DEVICE_OPTIONS(choice),
  };
  const command_line line = {
      "rdna bench",
      "Measures the operators of a device, or with MODEL.gguf a model's prompt and decode rates.",
      "[MODEL.gguf|FOLDER]",
      0,
      1,
      options,
      sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  what.prompt = (int)prompt, what.decode = (int)decode, what.kv = kv_type(kv), what.kernels = kernels;
  rdna_device *device;
  rdna_status parsed = parse_numbers("--depth", depths, &what.depths);
  if (parsed == RDNA_OK && batches) parsed = parse_numbers("--batch", batches, &what.batches);
  for (size_t i = 0; parsed == RDNA_OK && i < what.batches.count; i++)
    if (what.batches.ids[i] < 1 || what.batches.ids[i] > 4096)
      parsed = rdna__fail(RDNA_INVALID_ARGUMENT, "--batch '%s': 1 to 4096 sequences can be timed", batches);
  if (parsed != RDNA_OK || open_chosen_device(&choice, &device) != RDNA_OK) {
    rdna_tokens_deinit(&what.depths), rdna_tokens_deinit(&what.batches);
    return fail_with_status();
  }
  exit_status = what.place.plan && count ? bench_plan(device, positionals[0], &what, as_json)
                                         : measure(device, count ? positionals[0] : NULL, filter, &what, as_json);
  rdna_tokens_deinit(&what.depths), rdna_tokens_deinit(&what.batches);
  rdna_device_release(device);
  return exit_status;
}
