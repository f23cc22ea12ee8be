/* The rdna program: finds the subcommand. */
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "command/command.h"

typedef struct subcommand {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *summary;
} subcommand;

static const subcommand subcommands[] = {
    {"info", command_info, "the devices, the drivers, and why one is missing"},
    {"doctor", command_doctor, "check this machine, and say what to do"},
    {"run", command_run, "let a language model write"},
    {"chat", command_chat, "talk with a language model"},
    {"serve", command_serve, "a language model for clients over HTTP"},
    {"embed", command_embed, "vectors of texts"},
    {"image", command_image, "a picture of a text"},
    {"upscale", command_upscale, "a picture made larger by a network"},
    {"bench", command_bench, "measure operators and models"},
    {"tune", command_tune, "measure which implementation is the fastest, once for all"},
    {"selftest", command_selftest, "compare every kernel with its twin on the host"},
    {"imatrix", command_imatrix, "how much each column of a model's matrices counts, for quantize"},
    {"perplexity", command_perplexity, "how well a model foretells a text"},
    {"convert", command_convert, "a Hugging Face folder as a GGUF file"},
    {"quantize", command_quantize, "a model with its weights in another type"},
    {"tokenize", command_tokenize, "text to token ids"},
    {"template", command_template, "messages to a prompt, as a model's chat template has it"},
    {"logits", command_logits, "token ids to logits"},
    {"emulate", command_emulate, "run one kernel of a code object on an emulated GPU"},
    {"compile", command_compile, "a HIP source to a code object, with what its kernels take"},
    {"profile", command_profile, "run a program of PyTorch, and write what ran on the device for Chrome"},
    {"kernels", command_kernels, "list the kernel packs, or take them apart"},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static void print_help(FILE *out) {
  fprintf(out, "rdna %s: deep learning on AMD GPUs\n\nusage: rdna COMMAND [options]\n\n", RDNA_VERSION);
  for (int i = 0; i < SUBCOMMANDS; i++) fprintf(out, "  %-10s %s\n", subcommands[i].name, subcommands[i].summary);
  fprintf(out, "\nrdna COMMAND --help says more. Settings from the environment:\n\n");
  for (int i = 0; i < RDNA__CONFIG_COUNT; i++) {
    const rdna__config_entry *entry = &rdna__config_entries[i];
    fprintf(out, "  %-18s %s%s%s%s\n", entry->environment, entry->help, entry->choices[0] ? " (" : "", entry->choices,
            entry->choices[0] ? ")" : "");
  }
}

/* docs/configuration.md is this output. */
static void print_settings(void) {
  static const char *const kinds[] = {"text", "choice", "number", "flag"};
  printf(
      "# Settings\n\nFrom the environment, read once when the library is first used. A value that does not parse is "
      "an error, not\nignored. This page is the output of `rdna help --settings`.\n\n"
      "| name | kind | default | values | what it does |\n|---|---|---|---|---|\n");
  for (int i = 0; i < RDNA__CONFIG_COUNT; i++) {
    const rdna__config_entry *entry = &rdna__config_entries[i];
    printf("| `%s` | %s | %s | ", entry->environment, kinds[entry->kind], entry->initial[0] ? entry->initial : "none");
    for (const char *c = entry->choices; *c; c++) *c == '|' ? printf(", ") : printf("%c", *c);
    printf(" | %s |\n", entry->help);
  }
  printf(
      "\nThe PyTorch plugin reads five more:\n\n"
      "| name | kind | default | values | what it does |\n|---|---|---|---|---|\n"
      "| `RDNA_FALLBACK` | choice | allow | allow, warn, error | an operator without a kernel runs on the CPU "
      "silently, "
      "with a warning the first time, or raises |\n"
      "| `RDNA_COMPILE_LOG` | flag | 0 |  | 1: torch.compile says what it fused |\n"
      "| `RDNA_INDUCTOR` | flag | 0 |  | 1: torch.compile with no backend named takes Inductor, whose kernels are "
      "Triton's, "
      "for rdna's tensors too; needs triton and a GPU |\n"
      "| `RDNA_LIBRARIES` | flag | 1 |  | 0: accelerate, transformers and lightning are left as they are, and take the "
      "CPU unless told otherwise |\n"
      "| `RDNA_PROFILE` | text | none |  | file for Chrome of all that the program runs, from the import of torch to "
      "its "
      "end |\n");
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return EXIT_USAGE;
  }
  const char *name = argv[1];
  if (strcmp(name, "help") == 0 && argc == 3 && strcmp(argv[2], "--settings") == 0) {
    print_settings();
    return EXIT_OK;
  }
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
    print_help(stdout);
    return EXIT_OK;
  }
  if (strcmp(name, "--version") == 0) {
    printf("rdna %s\n", RDNA_VERSION);
    return EXIT_OK;
  }
  if (rdna__config_check() != RDNA_OK) {
    fail_with_status();
    return EXIT_USAGE;
  }
  for (int i = 0; i < SUBCOMMANDS; i++)
    if (strcmp(name, subcommands[i].name) == 0) return subcommands[i].run(argc - 1, argv + 1);
  fprintf(stderr, "rdna: no command '%s'; see rdna --help\n", name);
  return EXIT_USAGE;
}
