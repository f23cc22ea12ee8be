/* A model that writes: what rdna run and rdna chat share. */
#ifndef RDNA_COMMAND_GENERATION_H
#define RDNA_COMMAND_GENERATION_H

#include <signal.h>

#include "command/adapters.h"
#include "command/placement.h"
#include "model/grammar/grammar.h"
#include "model/vision/prompt.h"
#include "rdna/llm.h"

typedef struct generation_options {
  device_choice device;
  placement place;
  int64_t max_tokens, context, batch;
  double temperature, top_p, min_p, repetition_penalty;
  int64_t top_k, repeat_last_n, seed;
  const char *kv;
  bool greedy, ignore_end, exact;
  bool silent;                       /* the text is kept and not printed */
  option_texts lora;                 /* see adapters.h */
  const char *grammar, *json_schema; /* files that say what may be written; one of them, or none */
  const char *mmproj;                /* the file of the tower that sees pictures; NULL: none */
  option_texts images;               /* files of pictures */
} generation_options;
#define GENERATION_OPTIONS_DEFAULT  \
  {.device = DEVICE_CHOICE_DEFAULT, \
   .place = PLACEMENT_DEFAULT,      \
   .max_tokens = 256,               \
   .temperature = 0.7,              \
   .top_p = 1,                      \
   .repetition_penalty = 1,         \
   .repeat_last_n = 128,            \
   .seed = -1,                      \
   .kv = "f16"}

/* Their rows in a table of options. */
#define GENERATION_OPTIONS(o)                                                                                           \
  {"--max-tokens", OPTION_INTEGER, &(o).max_tokens, "N", "how much to write at most (256; in a chat 4096)", 1, 1e9},    \
      {"--temperature", OPTION_NUMBER, &(o).temperature, "T", "0 is the likeliest token always (0.7)", 0, 100},         \
      {"--greedy", OPTION_FLAG, &(o).greedy, NULL, "the same as --temperature 0", 0, 0},                                \
      {"--top-k", OPTION_INTEGER, &(o).top_k, "K", "only the K likeliest tokens; 0 is all (0)", 0, 1e9},                \
      {"--top-p", OPTION_NUMBER, &(o).top_p, "P", "only the likeliest tokens that make up P together (1)", 0, 1},       \
      {"--min-p", OPTION_NUMBER, &(o).min_p, "P", "only tokens at least P times as likely as the likeliest (0)", 0, 1}, \
      {"--repeat-penalty",                                                                                              \
       OPTION_NUMBER,                                                                                                   \
       &(o).repetition_penalty,                                                                                         \
       "R",                                                                                                             \
       "against repeating recent tokens (1: none)",                                                                     \
       0.01,                                                                                                            \
       100},                                                                                                            \
      {"--repeat-last", OPTION_INTEGER, &(o).repeat_last_n, "N", "how many tokens are recent (128)", 0, 1e9},           \
      {"--seed", OPTION_INTEGER, &(o).seed, "N", "the same seed draws the same tokens (the clock)", 0, 9e18},           \
      {"--context", OPTION_INTEGER, &(o).context, "N", "positions of the cache (what is needed and fits)", 1, 1e8},     \
      {"--batch", OPTION_INTEGER, &(o).batch, "N", "most prompt tokens in one pass (512, or what fits)", 1, 65536},     \
      {"--kv", OPTION_CHOICE, &(o).kv, KV_CHOICES, "type of the cache (f16)", 0, 0},                                    \
      {"--exact", OPTION_FLAG, &(o).exact, NULL, "round nothing in products", 0, 0},                                    \
      {"--ignore-end", OPTION_FLAG, &(o).ignore_end, NULL, "write on after the model's token for the end", 0, 0},       \
      {"--lora", OPTION_TEXTS, &(o).lora, "FILE[:SCALE]", "an adapter, also several times (as it was trained: 1)", 0,   \
       0},                                                                                                              \
      PLACEMENT_OPTIONS((o).place), DEVICE_OPTIONS((o).device)

typedef struct generation {
  const generation_options *options;
  rdna_gguf *file;
  rdna_tokenizer *tokenizer;
  rdna_device *device;
  rdna_llm *llm;
  rdna_llm_session *session;
  rdna_sampler *sampler;
  rdna_detokenizer *detokenizer;
  rdna__vocabulary *vocabulary; /* with the next two, where a grammar says what may be written */
  rdna__grammar *grammar;
  rdna__matcher *matcher;
  uint64_t *allowed;     /* tokens, a bit each */
  float *logits;         /* (vocabulary) */
  rdna_tokens prompt;    /* what the model is to continue: the caller's to fill */
  rdna__shown *pictures; /* (picture_count) of the options, which stand in it */
  size_t picture_count;
  rdna_tokens tokens; /* what it wrote then, */
  char *text;         /* and as text */
  size_t text_size, text_room;
  rdna_tokens held; /* whose keys and values are in the session */
  double load_seconds, prompt_seconds, decode_seconds;
  const char *stop_reason; /* "end", "length", "context", "interrupted" */
} generation;

/* Set by generation_interrupt, a signal's handler; the text ends with the next token. */
extern volatile sig_atomic_t generation_interrupted;
void generation_interrupt(int signal_number);

/* All zeros but |options| is a generation that close takes, too. First what needs no device, then the model. */
rdna_status generation_open_file(generation *g, const char *path);
rdna_status generation_open_model(generation *g);
/* Before that: |prompt| becomes the tokens of |text|, in which the options' pictures have their places, and the
 * pictures what the tower sees in them; it is there for no longer. */
rdna_status generation_see(generation *g, const char *text, size_t size, unsigned flags);
/* Only what generation_open_model would take, printed. */
rdna_status generation_plan(generation *g, bool json);
void generation_close(generation *g);
/* Writes on from |prompt|, of which the session does not compute again what it holds. */
rdna_status generation_write(generation *g);

#endif
