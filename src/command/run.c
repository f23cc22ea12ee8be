/* rdna run: a language model continues a text, or answers a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/status.h"
#include "command/generation.h"
#include "model/template/conversation.h"

typedef struct prompt_options {
  const char *text, *system;
  bool chat, special;
} prompt_options;

/* Makes tokens of a message, as the model's template has it. */
static rdna_status encode_message(generation *g, const prompt_options *prompt) {
  rdna__conversation c = {0};
  rdna_status status = rdna__conversation_open(&c, g->file, g->tokenizer);
  if (status == RDNA_OK && prompt->system)
    status = rdna__conversation_add(&c, "system", prompt->system, strlen(prompt->system));
  size_t pictures = (size_t)g->options->images.count, size = strlen(prompt->text);
  if (status == RDNA_OK)
    status = pictures ? rdna__conversation_show(&c, "user", pictures, prompt->text, size)
                      : rdna__conversation_add(&c, "user", prompt->text, size);
  char *text = NULL;
  if (status == RDNA_OK && pictures) status = rdna__conversation_render(&c, &text, &size);
  if (status == RDNA_OK)
    status =
        pictures ? generation_see(g, text, size, RDNA_ENCODE_PARSE_SPECIAL) : rdna__conversation_encode(&c, &g->prompt);
  free(text);
  rdna__conversation_close(&c);
  return status;
}

static rdna_status encode_prompt(generation *g, const prompt_options *prompt) {
  if (prompt->chat) return encode_message(g, prompt);
  unsigned flags = RDNA_ENCODE_ADD_SPECIAL | (prompt->special ? RDNA_ENCODE_PARSE_SPECIAL : 0);
  if (g->options->images.count > 0) return generation_see(g, prompt->text, strlen(prompt->text), flags);
  RDNA_TRY(rdna_tokenizer_encode(g->tokenizer, prompt->text, strlen(prompt->text), flags, &g->prompt));
  if (g->prompt.count == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the prompt is empty, and this model has no token to begin with");
  return RDNA_OK;
}

/* The first token comes from the prompt's pass, so decoding n tokens takes n - 1 passes. */
static double decode_rate(const generation *g) {
  size_t passes = g->tokens.count > 0 ? g->tokens.count - 1 : 0;
  return g->decode_seconds > 0 ? (double)passes / g->decode_seconds : 0;
}

static int report(const generation *g, const char *prompt, bool json) {
  const rdna_device_info *device = rdna_device_get_info(g->device);
  double prompt_rate = (double)g->prompt.count / g->prompt_seconds;
  if (!json) {
    printf("\n");
    fprintf(stderr, "\n%s: load %.2f s, prompt %zu tokens %.1f tokens/s, decode %zu tokens %.1f tokens/s, stop: %s\n",
            device->name, g->load_seconds, g->prompt.count, prompt_rate, g->tokens.count, decode_rate(g),
            g->stop_reason);
    return EXIT_OK;
  }
  json_t *ids = json_array();
  for (size_t i = 0; i < g->tokens.count; i++) json_array_append_new(ids, json_integer(g->tokens.ids[i]));
  json_t *text = rdna__json_of_text(g->text ? g->text : "", g->text_size);
  return print_json(json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:o, s:s, s:I, s:I, s:f, s:f, s:f}", "device",
                              device->name, "driver", device->driver, "arch", device->arch, "emulated",
                              device->emulated, "prompt", prompt, "text", text, "tokens", ids, "stop", g->stop_reason,
                              "prompt_tokens", (json_int_t)g->prompt.count, "decode_tokens",
                              (json_int_t)g->tokens.count, "load_seconds", g->load_seconds, "prompt_tokens_per_second",
                              prompt_rate, "decode_tokens_per_second", decode_rate(g)));
}

int command_run(int argc, char **argv) {
  generation_options o = GENERATION_OPTIONS_DEFAULT;
  prompt_options prompt = {.text = ""};
  bool json = false, no_echo = false;
  const option_row options[] = {
      {"--chat", OPTION_FLAG, &prompt.chat, NULL, "the prompt is a message, put in the model's chat template", 0, 0},
      {"--system", OPTION_TEXT, &prompt.system, "TEXT", "the system message before it; goes with --chat", 0, 0},
      {"--special", OPTION_FLAG, &prompt.special, NULL, "read control tokens that stand in the prompt", 0, 0},
      {"--grammar", OPTION_TEXT, &o.grammar, "FILE", "write what this GBNF grammar allows", 0, 0},
      {"--json-schema", OPTION_TEXT, &o.json_schema, "FILE", "write JSON that this schema allows", 0, 0},
      {"--mmproj", OPTION_TEXT, &o.mmproj, "FILE.gguf", "the model's tower, which sees pictures", 0, 0},
      {"--image", OPTION_TEXTS, &o.images, "FILE", "a PNG or JPEG that the prompt shows; several times", 0, 0},
      {"--no-echo", OPTION_FLAG, &no_echo, NULL, "do not print the prompt before the text", 0, 0},
      {"--json", OPTION_FLAG, &json, NULL, "print the text, its tokens and the rates as JSON, at the end", 0, 0},
      GENERATION_OPTIONS(o),
  };
  const command_line line = {"rdna run", "A language model continues the prompt.", "MODEL.gguf|FOLDER [PROMPT]", 1, 2,
                             options,    sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  if (prompt.system && !prompt.chat) {
    fprintf(stderr, "rdna run: --system goes with --chat; see rdna run --help\n");
    return EXIT_USAGE;
  }
  if (o.grammar && o.json_schema) {
    fprintf(stderr, "rdna run: --grammar and --json-schema exclude each other; see rdna run --help\n");
    return EXIT_USAGE;
  }
  if (!o.mmproj != (o.images.count == 0)) {
    fprintf(stderr, "rdna run: --mmproj and --image go together; see rdna run --help\n");
    return EXIT_USAGE;
  }
  if (count > 1) prompt.text = positionals[1];
  o.silent = json;
  generation g = {.options = &o};
  rdna_status status = generation_open_file(&g, positionals[0]);
  if (status == RDNA_OK && (!o.place.plan || count > 1)) status = encode_prompt(&g, &prompt);
  if (status == RDNA_OK && o.place.plan) {
    status = generation_plan(&g, json);
    exit_status = status == RDNA_OK ? EXIT_OK : fail_with_status();
    generation_close(&g);
    return exit_status;
  }
  if (status == RDNA_OK) status = generation_open_model(&g);
  if (status == RDNA_OK && !json && !no_echo && !prompt.chat &&
      g.prompt.count <= (size_t)rdna_llm_session_context(g.session))
    fputs(prompt.text, stdout);
  signal(SIGINT, generation_interrupt); /* before, while the model is loaded, it ends at once */
  if (status == RDNA_OK) status = generation_write(&g);
  exit_status = status == RDNA_OK ? report(&g, prompt.text, json) : fail_with_status();
  generation_close(&g);
  return exit_status;
}
