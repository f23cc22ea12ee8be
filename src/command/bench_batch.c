/* Rates of many sequences that are decoded together. */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/status.h"
#include "command/bench.h"
#include "command/command.h"
#include "rdna/llm_cache.h"
#include "rdna/profile.h"

/* Sequences of random tokens in a cache. */
typedef struct crowd {
  rdna_llm *llm;
  rdna_llm_cache *cache;
  rdna_llm_sequence **sequences;
  rdna_llm_part *parts; /* of a step: one token of each */
  int32_t *tokens;      /* (count) */
  int count;
  rdna__random random;
} crowd;

static int32_t draw(crowd *c) {
  return (int32_t)rdna__random_below(&c->random, (uint64_t)rdna_llm_get_info(c->llm)->vocabulary);
}

static void close_crowd(crowd *c) {
  for (int i = 0; c->sequences && i < c->count; i++) rdna_llm_sequence_release(c->sequences[i]);
  rdna_llm_cache_release(c->cache);
  free(c->sequences), free(c->parts), free(c->tokens);
}

/* Each sequence reads |depth| tokens of its own, in pieces. */
static rdna_status read_depth(crowd *c, int depth) {
  enum { PIECE = 512 };
  int32_t tokens[PIECE];
  const float *logits;
  for (int i = 0; i < c->count; i++) {
    RDNA_TRY(rdna_llm_sequence_create(c->cache, &c->sequences[i]));
    for (int done = 0; done < depth;) {
      int piece = depth - done < PIECE ? depth - done : PIECE;
      for (int k = 0; k < piece; k++) tokens[k] = draw(c);
      rdna_llm_part part = {.sequence = c->sequences[i], .tokens = tokens, .count = piece};
      RDNA_TRY(rdna_llm_step(c->cache, &part, 1, &logits));
      done += piece;
    }
    show_progress("reading", (double)(i + 1) / c->count);
  }
  end_progress();
  return RDNA_OK;
}

static rdna_status step(crowd *c) {
  const float *logits;
  for (int i = 0; i < c->count; i++) {
    c->tokens[i] = draw(c);
    c->parts[i] = (rdna_llm_part){.sequence = c->sequences[i], .tokens = &c->tokens[i], .count = 1, .logits = 1};
  }
  return rdna_llm_step(c->cache, c->parts, c->count, &logits);
}

static rdna_status open_crowd(crowd *c, const model_bench *what, int depth) {
  int decode = what->decode;
  enum { BEFORE = 4 }; /* steps that are not timed */
  int context = depth + decode + BEFORE, page = 32;
  rdna_llm_cache_options options = {RDNA_LLM_CACHE_OPTIONS_INIT,
                                    .positions = (int64_t)c->count * ((context + page - 1) / page * page),
                                    .context = context,
                                    .sequences = c->count,
                                    .page = page,
                                    .kv_dtype = what->kv};
  size_t count = (size_t)c->count;
  c->sequences = calloc(count, sizeof *c->sequences);
  c->parts = calloc(count, sizeof *c->parts);
  c->tokens = calloc(count, sizeof *c->tokens);
  if (!c->sequences || !c->parts || !c->tokens)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d sequences", c->count);
  rdna__random_seed(&c->random, 1);
  RDNA_TRY(rdna_llm_cache_create(c->llm, &options, &c->cache));
  return read_depth(c, depth);
}

/* A step as it is before it is recorded, kernel by kernel; others before it have loaded their code. */
static rdna_status profile_step(rdna_device *device, crowd *c, int depth, json_t *json) {
  rdna_profile_record *records = NULL;
  size_t found = 0;
  char what[64];
  snprintf(what, sizeof what, "token of %d sequences", c->count);
  RDNA_TRY(rdna_profile_start(device));
  rdna_status status = step(c), stopped = rdna_profile_stop(device, &records, &found);
  if (status == RDNA_OK) status = stopped;
  if (status == RDNA_OK) status = bench_report_kernels(what, depth, records, found, json);
  free(records);
  return status;
}

static void report(const crowd *c, int depth, int decode, double duration, json_t *json) {
  double all = c->count * (double)decode / duration;
  if (json)
    json_array_append_new(
        json, json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:f}", "architecture", rdna_llm_get_info(c->llm)->architecture,
                        "depth", depth, "sequences", c->count, "decode_tokens", decode, "step_milliseconds",
                        1000 * duration / decode, "tokens_per_second", all, "tokens_per_second_each", all / c->count));
  else
    printf("  %7d  %9d  %7d  %12.3f  %12.2f  %14.2f\n", depth, c->count, decode, 1000 * duration / decode, all,
           all / c->count);
}

static rdna_status measure(crowd *c, const model_bench *what, int depth, json_t *json) {
  int decode = what->decode;
  RDNA_TRY(open_crowd(c, what, depth));
  /* to load code, touch the weights and record a step's kernels */
  for (int i = 0; i < 3; i++) RDNA_TRY(step(c));
  double start = seconds();
  for (int i = 0; i < decode; i++) {
    RDNA_TRY(step(c));
    show_progress("decoding", (double)(i + 1) / decode);
  }
  double duration = seconds() - start;
  end_progress();
  report(c, depth, decode, duration, json);
  return RDNA_OK;
}

rdna_status bench_batch(rdna_device *device, rdna_llm *llm, const model_bench *what, json_t *json) {
  if (!json)
    printf("  %7s  %9s  %7s  %12s  %12s  %14s\n", "depth", "sequences", "decode", "ms a step", "tokens/s",
           "tokens/s each");
  for (int pass = 0; pass < 1 + what->kernels; pass++) {
    for (size_t i = 0; i < what->depths.count; i++) {
      for (size_t k = 0; k < what->batches.count; k++) {
        crowd c = {.llm = llm, .count = what->batches.ids[k]};
        int depth = what->depths.ids[i];
        rdna_status status = pass ? open_crowd(&c, what, depth) : measure(&c, what, depth, json);
        if (pass && status == RDNA_OK) status = profile_step(device, &c, depth, json);
        close_crowd(&c);
        RDNA_TRY(status);
      }
    }
  }
  return RDNA_OK;
}
