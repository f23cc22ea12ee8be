/* A model's rates with random tokens, and what they mean in memory traffic. */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/status.h"
#include "command/bench.h"
#include "command/command.h"
#include "rdna/llm.h"

enum { BATCH = 512 }; /* a session's own */

typedef struct rates {
  double prompt_seconds, decode_seconds;
} rates;

rdna_status bench_tokens(rdna_llm *llm, int count, int32_t **out_tokens, float **out_logits) {
  uint64_t vocabulary = (uint64_t)rdna_llm_get_info(llm)->vocabulary;
  *out_tokens = malloc((size_t)count * sizeof **out_tokens);
  *out_logits = malloc((size_t)vocabulary * sizeof **out_logits);
  if (!*out_tokens || !*out_logits) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d tokens", count);
  rdna__random random;
  rdna__random_seed(&random, 1);
  for (int i = 0; i < count; i++) (*out_tokens)[i] = (int32_t)rdna__random_below(&random, vocabulary);
  return RDNA_OK;
}

/* |depth| tokens are read before the clock runs. */
static rdna_status measure(rdna_llm *llm, const model_bench *what, int depth, rates *out) {
  int prompt = what->prompt, decode = what->decode;
  rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = depth + prompt + decode,
                                      .kv_dtype = what->kv};
  rdna_llm_session *session;
  RDNA_TRY(rdna_llm_session_create(llm, &options, &session));
  int32_t *tokens;
  float *logits;
  rdna_status status = bench_tokens(llm, depth + prompt + decode, &tokens, &logits);
  const int32_t *first = tokens + depth;

  /* once to load code, touch the weights and, with a second token, record a token's kernels; then for the clock */
  if (status == RDNA_OK && depth > 0) status = rdna_llm_session_eval(session, tokens, depth, logits);
  if (status == RDNA_OK) status = rdna_llm_session_eval(session, first, prompt, logits);
  for (int i = 0; status == RDNA_OK && i < 2 && i < decode; i++)
    status = rdna_llm_session_eval(session, first + prompt + i, 1, logits);
  if (status == RDNA_OK) status = rdna_llm_session_rewind(session, depth);
  double start = seconds();
  if (status == RDNA_OK) status = rdna_llm_session_eval(session, first, prompt, logits);
  out->prompt_seconds = seconds() - start;
  start = seconds();
  for (int i = 0; status == RDNA_OK && i < decode; i++) {
    status = rdna_llm_session_eval(session, first + prompt + i, 1, logits);
    show_progress("decoding", (double)(i + 1) / decode);
  }
  out->decode_seconds = seconds() - start;
  end_progress();
  free(tokens);
  free(logits);
  rdna_llm_session_release(session);
  return status;
}

/* Bytes of the cache that decoding one token reads: all before it, on average half the decoded stretch. Layers with a
 * window read less. */
static double cache_bytes(const rdna_llm_info *info, const model_bench *what, int depth) {
  double positions = depth + what->prompt + 0.5 * what->decode;
  return (double)rdna_dtype_bytes(what->kv, (int64_t)info->cache_values) * positions;
}

static void report(const rdna_llm_info *info, const model_bench *what, int depth, const rates *r, json_t *json) {
  int prompt = what->prompt, decode = what->decode;
  double weights = (double)info->bytes_per_token, cache = cache_bytes(info, what, depth);
  double rate = decode / r->decode_seconds, prompt_rate = prompt / r->prompt_seconds;
  if (json) {
    json_array_append_new(
        json,
        json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:f, s:f, s:f}", "architecture", info->architecture, "depth", depth,
                  "prompt_tokens", prompt, "decode_tokens", decode, "parameters", (json_int_t)info->parameters,
                  "weight_bytes_per_token", (json_int_t)info->bytes_per_token, "prompt_tokens_per_second", prompt_rate,
                  "decode_tokens_per_second", rate, "decode_gb_per_second", rate * (weights + cache) / 1e9));
    return;
  }
  printf("  %7d  %7d  %12.2f  %7d  %12.2f  %12.1f\n", depth, prompt, prompt_rate, decode, rate,
         rate * (weights + cache) / 1e9);
}

static void print_model(const rdna_llm_info *info) {
  char text[32];
  printf("%s, %.2f billion parameters, %s of weights a token\n\n", info->architecture, (double)info->parameters / 1e9,
         format_bytes((double)info->bytes_per_token, text));
}

static rdna_status bench_depths(rdna_device *device, rdna_llm *llm, const model_bench *what, json_t *json) {
  rates r;
  rdna_status status = RDNA_OK;
  if (!json)
    printf("  %7s  %7s  %12s  %7s  %12s  %12s\n", "depth", "prompt", "tokens/s", "decode", "tokens/s", "decode GB/s");
  for (size_t i = 0; status == RDNA_OK && i < what->depths.count; i++) {
    int depth = what->depths.ids[i];
    status = measure(llm, what, depth, &r);
    if (status == RDNA_OK) report(rdna_llm_get_info(llm), what, depth, &r, json);
  }
  for (size_t i = 0; status == RDNA_OK && what->kernels && i < what->depths.count; i++)
    status = bench_kernels(device, llm, what, what->depths.ids[i], json);
  return status;
}

/* For the largest of what is timed. */
static rdna_status plan(rdna_device *device, const rdna_gguf *file, const model_bench *what, rdna_llm_plan *out_plan) {
  int depth = 0, sequences = 1;
  for (size_t i = 0; i < what->depths.count; i++) depth = what->depths.ids[i] > depth ? what->depths.ids[i] : depth;
  for (size_t i = 0; i < what->batches.count; i++)
    sequences = what->batches.ids[i] > sequences ? what->batches.ids[i] : sequences;
  int prompt = what->batches.count ? 0 : what->prompt;
  const rdna_llm_session_options session = {RDNA_LLM_SESSION_OPTIONS_INIT,
                                            .context = sequences * (depth + prompt + what->decode),
                                            .kv_dtype = what->kv, .batch = BATCH};
  return plan_model(device, file, &what->place, &session, 0, out_plan);
}

int bench_plan(rdna_device *device, const char *path, const model_bench *what, bool json) {
  rdna_gguf *file;
  rdna_llm_plan planned;
  if (rdna_model_open(path, &file) != RDNA_OK) return fail_with_status();
  rdna_status status = plan(device, file, what, &planned);
  int exit_status = status == RDNA_OK ? report_plan(device, &planned, json) : fail_with_status();
  rdna_gguf_close(file);
  return exit_status;
}

rdna_status bench_model(rdna_device *device, const char *path, const model_bench *what, json_t *json) {
  rdna_gguf *file;
  rdna_llm *llm;
  RDNA_TRY(rdna_model_open(path, &file));
  rdna_llm_plan planned;
  rdna_status status = plan(device, file, what, &planned);
  if (status == RDNA_OK && !json) say_plan(device, &planned);
  if (status == RDNA_OK) status = open_planned_model(device, file, &planned, &llm);
  if (status == RDNA_OK) {
    if (!json) print_model(rdna_llm_get_info(llm));
    status = what->batches.count ? bench_batch(device, llm, what, json) : bench_depths(device, llm, what, json);
    rdna_llm_release(llm);
  }
  rdna_gguf_close(file);
  return status;
}
