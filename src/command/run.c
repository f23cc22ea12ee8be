/* rdna run: a language model continues a text. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "command/command.h"
#include "rdna/llm.h"

typedef struct run_options {
  device_choice device;
  int64_t max_tokens, context, batch;
  double temperature, top_p, min_p, repetition_penalty;
  int64_t top_k, repeat_last_n, seed;
  const char *kv;
  bool greedy, json, no_echo, ignore_end, special, exact;
} run_options;

typedef struct generation {
  const run_options *options;
  const char *prompt;
  rdna_gguf *file;
  rdna_tokenizer *tokenizer;
  rdna_device *device;
  rdna_llm *llm;
  rdna_llm_session *session;
  rdna_sampler *sampler;
  rdna_detokenizer *detokenizer;
  float *logits; /* (vocabulary) */
  rdna_tokens prompt_tokens, tokens;
  char *text; /* what was generated, for --json */
  size_t text_size, text_room;
  double load_seconds, prompt_seconds, decode_seconds;
  const char *stop_reason;
} generation;

static volatile sig_atomic_t interrupted;
static void interrupt(int signal_number) { interrupted = 1; }

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show_loading(void *data, double share) { show_progress("loading", share); }

static rdna_status emit(generation *g, rdna_text text) {
  if (!g->options->json) {
    fwrite(text.data, 1, text.size, stdout);
    fflush(stdout);
    return RDNA_OK;
  }
  if (g->text_room - g->text_size < text.size + 1) {
    size_t room = 2 * (g->text_room + text.size + 1);
    char *grown = realloc(g->text, room);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the text");
    g->text = grown;
    g->text_room = room;
  }
  memcpy(g->text + g->text_size, text.data, text.size);
  g->text_size += text.size;
  return RDNA_OK;
}

static rdna_status open_sampler(generation *g) {
  const run_options *o = g->options;
  rdna_sampling sampling = {RDNA_SAMPLING_INIT};
  sampling.temperature = o->greedy ? 0 : (float)o->temperature;
  sampling.top_k = (int32_t)o->top_k;
  sampling.top_p = (float)o->top_p;
  sampling.min_p = (float)o->min_p;
  sampling.repetition_penalty = (float)o->repetition_penalty;
  sampling.repeat_last_n = (int32_t)o->repeat_last_n;
  sampling.seed = o->seed >= 0 ? (uint64_t)o->seed : (uint64_t)time(NULL);
  return rdna_sampler_create(&sampling, &g->sampler);
}

static rdna_status open_all(generation *g, const char *path) {
  const run_options *o = g->options;
  double start = seconds();
  RDNA_TRY(open_sampler(g));
  RDNA_TRY(rdna_gguf_open(path, &g->file));
  RDNA_TRY(rdna_tokenizer_open(g->file, &g->tokenizer));
  unsigned flags = RDNA_ENCODE_ADD_SPECIAL | (o->special ? RDNA_ENCODE_PARSE_SPECIAL : 0);
  RDNA_TRY(rdna_tokenizer_encode(g->tokenizer, g->prompt, strlen(g->prompt), flags, &g->prompt_tokens));
  if (g->prompt_tokens.count == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the prompt is empty, and this model has no token to begin with");
  RDNA_TRY(open_chosen_device(&o->device, &g->device));
  RDNA_TRY(rdna_llm_open(g->device, g->file, show_loading, NULL, &g->llm));
  end_progress();
  rdna_llm_session_options session = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = (int)o->context,
                                      .kv_dtype = strcmp(o->kv, "f32") == 0 ? RDNA_F32 : RDNA_F16,
                                      .batch = (int)o->batch, .exact = o->exact};
  RDNA_TRY(rdna_llm_session_create(g->llm, &session, &g->session));
  RDNA_TRY(rdna_detokenizer_create(g->tokenizer, false, &g->detokenizer));
  g->logits = malloc((size_t)rdna_llm_get_info(g->llm)->vocabulary * sizeof *g->logits);
  if (!g->logits) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for logits");
  if (g->prompt_tokens.count > (size_t)rdna_llm_session_context(g->session))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "the prompt has %zu tokens and the context room for %d; shorten it or "
                      "give a larger --context",
                      g->prompt_tokens.count, rdna_llm_session_context(g->session));
  g->load_seconds = seconds() - start;
  return RDNA_OK;
}

static void close_all(generation *g) {
  end_progress();
  free(g->logits);
  free(g->text);
  rdna_tokens_deinit(&g->prompt_tokens);
  rdna_tokens_deinit(&g->tokens);
  rdna_detokenizer_release(g->detokenizer);
  rdna_sampler_release(g->sampler);
  rdna_llm_session_release(g->session);
  rdna_llm_release(g->llm);
  rdna_device_release(g->device);
  rdna_tokenizer_close(g->tokenizer);
  rdna_gguf_close(g->file);
}

/* Samples and evaluates until an end. The prompt's logits are in g->logits. */
static rdna_status decode(generation *g) {
  size_t vocabulary = (size_t)rdna_llm_get_info(g->llm)->vocabulary;
  g->stop_reason = "length";
  while (g->tokens.count < (size_t)g->options->max_tokens) {
    int32_t id;
    rdna_text text;
    RDNA_TRY(rdna_sampler_sample(g->sampler, g->logits, vocabulary, &id));
    if (!g->options->ignore_end && rdna_tokenizer_is_end(g->tokenizer, id)) {
      g->stop_reason = "end";
      break;
    }
    RDNA_TRY(rdna_tokens_append(&g->tokens, id));
    RDNA_TRY(rdna_detokenizer_push(g->detokenizer, id, &text));
    RDNA_TRY(emit(g, text));
    if (interrupted) {
      g->stop_reason = "interrupted";
      break;
    }
    if (g->tokens.count == (size_t)g->options->max_tokens) break;
    if (rdna_llm_session_position(g->session) == rdna_llm_session_context(g->session)) {
      g->stop_reason = "context";
      break;
    }
    RDNA_TRY(rdna_llm_session_eval(g->session, &id, 1, g->logits));
  }
  rdna_text rest;
  rdna_detokenizer_finish(g->detokenizer, &rest);
  return emit(g, rest);
}

static rdna_status generate(generation *g) {
  const rdna_tokens *prompt = &g->prompt_tokens;
  for (size_t i = 0; i < prompt->count; i++) RDNA_TRY(rdna_sampler_accept(g->sampler, prompt->ids[i]));
  if (!g->options->json && !g->options->no_echo) fputs(g->prompt, stdout);
  /* the detokenizer must know what stands before: a leading space is the prompt's to drop, not ours */
  for (size_t i = 0; i < prompt->count; i++) {
    rdna_text ignored;
    RDNA_TRY(rdna_detokenizer_push(g->detokenizer, prompt->ids[i], &ignored));
  }
  double start = seconds();
  RDNA_TRY(rdna_llm_session_eval(g->session, prompt->ids, (int)prompt->count, g->logits));
  double middle = seconds();
  g->prompt_seconds = middle - start;
  RDNA_TRY(decode(g));
  g->decode_seconds = seconds() - middle;
  return RDNA_OK;
}

/* The first token comes from the prompt's pass, so decoding n tokens takes n - 1 passes. */
static double decode_rate(const generation *g) {
  size_t passes = g->tokens.count > 0 ? g->tokens.count - 1 : 0;
  return g->decode_seconds > 0 ? (double)passes / g->decode_seconds : 0;
}

static int report(const generation *g) {
  const rdna_device_info *device = rdna_device_get_info(g->device);
  double prompt_rate = (double)g->prompt_tokens.count / g->prompt_seconds;
  if (!g->options->json) {
    printf("\n");
    fprintf(stderr, "\n%s: load %.2f s, prompt %zu tokens %.1f tokens/s, decode %zu tokens %.1f tokens/s, stop: %s\n",
            device->name, g->load_seconds, g->prompt_tokens.count, prompt_rate, g->tokens.count, decode_rate(g),
            g->stop_reason);
    return EXIT_OK;
  }
  json_t *ids = json_array();
  for (size_t i = 0; i < g->tokens.count; i++) json_array_append_new(ids, json_integer(g->tokens.ids[i]));
  json_t *text = json_stringn(g->text ? g->text : "", g->text_size);
  if (!text) text = json_null(); /* not UTF-8: the ids say what it was */
  return print_json(json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:o, s:s, s:I, s:I, s:f, s:f, s:f}", "device",
                              device->name, "driver", device->driver, "arch", device->arch, "emulated",
                              device->emulated, "prompt", g->prompt, "text", text, "tokens", ids, "stop",
                              g->stop_reason, "prompt_tokens", (json_int_t)g->prompt_tokens.count, "decode_tokens",
                              (json_int_t)g->tokens.count, "load_seconds", g->load_seconds, "prompt_tokens_per_second",
                              prompt_rate, "decode_tokens_per_second", decode_rate(g)));
}

int command_run(int argc, char **argv) {
  run_options o = {.device = DEVICE_CHOICE_DEFAULT,
                   .max_tokens = 256,
                   .temperature = 0.7,
                   .top_p = 1,
                   .repetition_penalty = 1,
                   .repeat_last_n = 128,
                   .seed = -1,
                   .kv = "f16"};
  const option_row options[] = {
      {"--max-tokens", OPTION_INTEGER, &o.max_tokens, "N", "how much to write (256)", 1, 1e9},
      {"--temperature", OPTION_NUMBER, &o.temperature, "T", "0 is the likeliest token always (0.7)", 0, 100},
      {"--greedy", OPTION_FLAG, &o.greedy, NULL, "the same as --temperature 0", 0, 0},
      {"--top-k", OPTION_INTEGER, &o.top_k, "K", "only the K likeliest tokens; 0 is all (0)", 0, 1e9},
      {"--top-p", OPTION_NUMBER, &o.top_p, "P", "only the likeliest tokens that make up P together (1)", 0, 1},
      {"--min-p", OPTION_NUMBER, &o.min_p, "P", "only tokens at least P times as likely as the likeliest (0)", 0, 1},
      {"--repeat-penalty", OPTION_NUMBER, &o.repetition_penalty, "R", "against repeating recent tokens (1: none)", 0.01,
       100},
      {"--repeat-last", OPTION_INTEGER, &o.repeat_last_n, "N", "how many tokens are recent (128)", 0, 1e9},
      {"--seed", OPTION_INTEGER, &o.seed, "N", "the same seed draws the same tokens (the clock)", 0, 9e18},
      {"--context", OPTION_INTEGER, &o.context, "N", "positions of the cache (the model's, at most 4096)", 1, 1e8},
      {"--batch", OPTION_INTEGER, &o.batch, "N", "most prompt tokens in one pass (512)", 1, 65536},
      {"--kv", OPTION_CHOICE, &o.kv, "f16|f32", "type of the cache (f16)", 0, 0},
      {"--exact", OPTION_FLAG, &o.exact, NULL, "round nothing to 16 bits in a prompt's products on a GPU", 0, 0},
      {"--special", OPTION_FLAG, &o.special, NULL, "read control tokens that stand in the prompt", 0, 0},
      {"--ignore-end", OPTION_FLAG, &o.ignore_end, NULL, "write on after the model's token for the end", 0, 0},
      {"--no-echo", OPTION_FLAG, &o.no_echo, NULL, "do not print the prompt before the text", 0, 0},
      {"--json", OPTION_FLAG, &o.json, NULL, "print the text, its tokens and the rates as JSON, at the end", 0, 0},
      DEVICE_OPTIONS(o.device),
  };
  const command_line line = {"rdna run", "A language model continues the prompt.", "MODEL.gguf [PROMPT]", 1, 2,
                             options,    sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  generation g = {.options = &o, .prompt = count > 1 ? positionals[1] : ""};
  signal(SIGINT, interrupt);
  rdna_status status = open_all(&g, positionals[0]);
  if (status == RDNA_OK) status = generate(&g);
  exit_status = status == RDNA_OK ? report(&g) : fail_with_status();
  close_all(&g);
  return exit_status;
}
