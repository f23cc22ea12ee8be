/* rdna convert: a Hugging Face folder as a GGUF file. */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "command/weights.h"
#include "model/weights/convert.h"

static void show_converting(void *data, double share) { show_progress("converting", share); }

static rdna_status convert(const char *const *positionals, const char *type_name, const device_choice *choice,
                           rdna__conversion *out) {
  rdna_device *device = NULL;
  rdna_dtype type = RDNA_DTYPE_COUNT;
  rdna_status status = type_name[0] ? rdna__weight_type_parse(type_name, &type) : RDNA_OK;
  if (status == RDNA_OK) status = open_chosen_device(choice, &device);
  if (status == RDNA_OK)
    status = rdna__convert(positionals[0], positionals[1], type, device, show_converting, NULL, out);
  end_progress();
  rdna_device_release(device);
  return status;
}

static int convert_tower(const char *folder, const char *path) {
  rdna_status status = check_not_input(folder, path);
  if (status == RDNA_OK) status = rdna__convert_vision(folder, path, show_converting, NULL);
  end_progress();
  return status == RDNA_OK ? EXIT_OK : fail_with_status();
}

int command_convert(int argc, char **argv) {
  device_choice choice = {"host", ""};
  const char *type = "";
  bool json = false, tower = false;
  const option_row options[] = {
      {"--type", OPTION_TEXT, &type, "TYPE", "of the weights, as rdna quantize makes it (as they are)", 0, 0},
      {"--mmproj", OPTION_FLAG, &tower, NULL, "the tower that sees pictures, in place of the language model", 0, 0},
      {"--json", OPTION_FLAG, &json, NULL, "print the table as JSON", 0, 0},
      DEVICE_OPTIONS(choice),
  };
  const command_line line = {
      "rdna convert",
      "Makes a GGUF file of a Hugging Face folder: config.json, model.safetensors or its parts, tokenizer.json\n"
      "or tokenizer.model, tokenizer_config.json, generation_config.json, chat_template.jinja. Known are the\n"
      "architectures Llama, Mistral, Mixtral, Ministral 3, Qwen 2 to 3.5 with their mixtures and those that see\n"
      "pictures, Gemma 2 to 4, gpt-oss, DeepSeek 2 and 3, GLM 4 to 4.7, dots.llm1, MiniMax M2, Phi-3, OLMo 2 and 3,\n"
      "SmolLM3, Granite and its mixtures, ERNIE 4.5, EXAONE 4, Seed-OSS, Command R and A, StableLM, StarCoder 2,\n"
      "Nemotron, LFM2; of encoders, also those that judge texts, BERT, RoBERTa and XLM-RoBERTa, and Nomic's. Names of\n"
      "tensors and keys are llama.cpp's. A folder without a tokenizer makes a model for token ids only.",
      "FOLDER OUT.gguf",
      2,
      2,
      options,
      sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  if (tower && (json || type[0])) {
    fprintf(stderr, "rdna convert: --mmproj goes without --type and --json; see rdna convert --help\n");
    return EXIT_USAGE;
  }
  if (tower) return convert_tower(positionals[0], positionals[1]);
  rdna__conversion made;
  if (convert(positionals, type, &choice, &made) != RDNA_OK) return fail_with_status();
  if (!json) {
    bool ids_only = strcmp(made.tokenizer, "no_vocab") == 0;
    printf("architecture %s, tokenizer %s%s%s, %s chat template\n\n", made.architecture,
           ids_only ? "none: token ids only" : made.tokenizer, made.pre_tokenizer[0] ? " " : "", made.pre_tokenizer,
           made.has_chat_template ? "with a" : "no");
  }
  return print_weight_counts(&made.counts, false, json);
}
