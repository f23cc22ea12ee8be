/* rdna perplexity: how well a model foretells a text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "command/command.h"
#include "command/text.h"
#include "rdna/llm.h"

enum { ROWS = 64 /* of logits at a time */ };

typedef struct perplexity_options {
  device_choice device;
  int64_t window;
  const char *kv;
  bool exact, json;
} perplexity_options;

/* The sum over foretold tokens of -log p, and of its square. */
typedef struct surprise {
  int64_t tokens;
  double sum, squares;
  double seconds;
} surprise;

/* -log of the probability that |logits| give to |token|. */
static double negative_log(const float *logits, int vocabulary, int32_t token) {
  float largest = logits[0];
  for (int i = 1; i < vocabulary; i++)
    if (logits[i] > largest) largest = logits[i];
  double sum = 0;
  for (int i = 0; i < vocabulary; i++) sum += exp((double)(logits[i] - largest));
  return log(sum) - (double)(logits[token] - largest);
}

/* The first half of a window is read, the second foretold:
 *
 *     tokens    0  1  …  half - 1 | half  …  count - 1
 *     logits after        half - 1   foretell half, and so on
 */
static rdna_status foretell(rdna_llm_session *session, const int32_t *tokens, int count, int vocabulary, float *logits,
                            surprise *out) {
  int at = count / 2 - 1;
  RDNA_TRY(rdna_llm_session_rewind(session, 0));
  if (at > 0) RDNA_TRY(rdna_llm_session_eval(session, tokens, at, logits));
  while (at < count - 1) {
    int rows = count - 1 - at < ROWS ? count - 1 - at : ROWS;
    RDNA_TRY(rdna_llm_session_eval_all(session, tokens + at, rows, logits));
    for (int i = 0; i < rows; i++) {
      double value = negative_log(logits + (int64_t)i * vocabulary, vocabulary, tokens[at + i + 1]);
      out->tokens++;
      out->sum += value;
      out->squares += value * value;
    }
    at += rows;
  }
  return RDNA_OK;
}

/* Each window begins with |bos|, in place of its own first token, where the model has one. */
static rdna_status measure(rdna_llm *llm, const perplexity_options *o, int32_t *tokens, size_t count, int32_t bos,
                           surprise *out) {
  int vocabulary = rdna_llm_get_info(llm)->vocabulary, window = (int)o->window;
  size_t windows = count / (size_t)window;
  if (windows == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the text has %zu tokens, which is less than a window of %d; --window N",
                      count, window);
  rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = window, .kv_dtype = kv_type(o->kv),
                                      .exact = o->exact};
  rdna_llm_session *session;
  RDNA_TRY(rdna_llm_session_create(llm, &options, &session));
  float *logits = malloc((size_t)ROWS * (size_t)vocabulary * sizeof *logits);
  rdna_status status = logits ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for logits");
  double start = seconds();
  for (size_t i = 0; status == RDNA_OK && i < windows; i++) {
    int32_t *first = tokens + i * (size_t)window;
    if (bos >= 0) *first = bos;
    status = foretell(session, first, window, vocabulary, logits, out);
    show_progress("reading", (double)(i + 1) / (double)windows);
  }
  end_progress();
  out->seconds = seconds() - start;
  free(logits);
  rdna_llm_session_release(session);
  return status;
}

static int report(const surprise *s, const perplexity_options *o) {
  if (!isfinite(s->sum)) {
    rdna__fail(RDNA_BAD_DATA, "the model's logits are not finite; --exact rounds nothing to 16 bits");
    return fail_with_status();
  }
  double mean = s->sum / (double)s->tokens, variance = s->squares / (double)s->tokens - mean * mean;
  double error = sqrt(fmax(variance, 0) / (double)s->tokens), value = exp(mean);
  if (o->json)
    return print_json(json_pack("{s:f, s:f, s:I, s:I, s:f}", "perplexity", value, "standard_error", value * error,
                                "tokens", (json_int_t)s->tokens, "window", (json_int_t)o->window, "seconds",
                                s->seconds));
  printf("perplexity %.4f +- %.4f over %lld tokens, each foretold from %lld to %lld before it (%.1f s)\n", value,
         value * error, (long long)s->tokens, (long long)o->window / 2, (long long)o->window - 1, s->seconds);
  return EXIT_OK;
}

int command_perplexity(int argc, char **argv) {
  perplexity_options o = {.device = DEVICE_CHOICE_DEFAULT, .window = 512, .kv = "f16"};
  const option_row options[] = {
      {"--window", OPTION_INTEGER, &o.window, "N", "tokens of a part, of which the second half is foretold (512)", 4,
       1e8},
      {"--kv", OPTION_CHOICE, &o.kv, KV_CHOICES, "type of the cache (f16)", 0, 0},
      {"--exact", OPTION_FLAG, &o.exact, NULL, "round nothing in products", 0, 0},
      {"--json", OPTION_FLAG, &o.json, NULL, "print JSON", 0, 0},
      DEVICE_OPTIONS(o.device),
  };
  const command_line line = {
      "rdna perplexity",
      "Says how well a model foretells a text: exp of the mean of -log p over its tokens.\n\nThe text is cut into "
      "windows; the first half of each is read, the tokens of the second are\nforetold. What is left at the end is "
      "not looked at.",
      "MODEL.gguf|FOLDER [FILE|-]",
      1,
      2,
      options,
      sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  rdna_gguf *file = NULL;
  rdna_device *device = NULL;
  rdna_llm *llm = NULL;
  rdna_tokens tokens = {0};
  int32_t bos = -1;
  surprise found = {0};
  rdna_status status = rdna_model_open(positionals[0], &file);
  if (status == RDNA_OK) status = tokens_of_text(file, count > 1 ? positionals[1] : "-", &tokens, &bos);
  if (status == RDNA_OK) status = open_chosen_device(&o.device, &device);
  if (status == RDNA_OK) status = rdna_llm_open(device, file, show_loading, NULL, &llm);
  end_progress();
  if (status == RDNA_OK) status = measure(llm, &o, tokens.ids, tokens.count, bos, &found);
  exit_status = status == RDNA_OK ? report(&found, &o) : fail_with_status();
  rdna_tokens_deinit(&tokens);
  rdna_llm_release(llm);
  rdna_device_release(device);
  rdna_gguf_close(file);
  return exit_status;
}
