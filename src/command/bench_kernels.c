/* Where the time of a model's prompt and of a decoded token goes, kernel by kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "command/bench.h"
#include "command/command.h"
#include "rdna/profile.h"

typedef struct kernel_time {
  const char *name;
  int launches;
  double milliseconds;
} kernel_time;

static int by_name(const void *a, const void *b) {
  return strcmp(((const rdna_profile_record *)a)->name, ((const rdna_profile_record *)b)->name);
}

static int longest_first(const void *a, const void *b) {
  double x = ((const kernel_time *)a)->milliseconds, y = ((const kernel_time *)b)->milliseconds;
  return (x < y) - (x > y);
}

/* One entry a name, longest first. Reorders |records|. Returns how many; |times| has room for |count|. */
static size_t add_up(rdna_profile_record *records, size_t count, kernel_time *times) {
  size_t names = 0;
  qsort(records, count, sizeof *records, by_name);
  for (size_t i = 0; i < count; i++) {
    if (!i || strcmp(records[i].name, records[i - 1].name)) times[names++] = (kernel_time){.name = records[i].name};
    times[names - 1].launches++;
    times[names - 1].milliseconds += records[i].length;
  }
  qsort(times, names, sizeof *times, longest_first);
  return names;
}

static void report(const char *what, int depth, const kernel_time *times, size_t names, json_t *json) {
  double all = 0;
  int launches = 0;
  for (size_t i = 0; i < names; i++) all += times[i].milliseconds, launches += times[i].launches;
  if (!json) printf("\n  %s at depth %d: %d launches, %.3f ms\n", what, depth, launches, all);
  for (size_t i = 0; i < names; i++) {
    const kernel_time *t = times + i;
    if (json)
      json_array_append_new(json, json_pack("{s:s, s:i, s:s, s:i, s:f}", "of", what, "depth", depth, "kernel", t->name,
                                            "launches", t->launches, "milliseconds", t->milliseconds));
    else
      printf("  %6.1f %%  %10.3f ms  %6d  %s\n", all > 0 ? 100 * t->milliseconds / all : 0, t->milliseconds,
             t->launches, t->name);
  }
}

rdna_status bench_report_kernels(const char *what, int depth, rdna_profile_record *records, size_t count,
                                 json_t *json) {
  kernel_time *times = malloc((count ? count : 1) * sizeof *times);
  if (!times) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu records", count);
  report(what, depth, times, add_up(records, count, times), json);
  free(times);
  return RDNA_OK;
}

static rdna_status profile(rdna_device *device, rdna_llm_session *session, const int32_t *tokens, int count,
                           const char *what, float *logits, json_t *json) {
  int depth = rdna_llm_session_position(session);
  rdna_profile_record *records = NULL;
  size_t found = 0;
  RDNA_TRY(rdna_profile_start(device));
  rdna_status status = rdna_llm_session_eval(session, tokens, count, logits);
  rdna_status stopped = rdna_profile_stop(device, &records, &found);
  if (status == RDNA_OK) status = stopped;
  if (status == RDNA_OK) status = bench_report_kernels(what, depth, records, found, json);
  free(records);
  return status;
}

/* In a session of its own: a session's second single token is recorded, and a replay is one piece to the profiler.
 * |warm|: loads code and touches weights, says nothing. */
static rdna_status in_session(rdna_device *device, rdna_llm *llm, const model_bench *what, int depth,
                              const int32_t *tokens, float *logits, bool warm, json_t *json) {
  int prompt = what->prompt;
  rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = depth + prompt + 1,
                                      .kv_dtype = what->kv};
  rdna_llm_session *session;
  RDNA_TRY(rdna_llm_session_create(llm, &options, &session));
  const int32_t *first = tokens + depth, *last = first + prompt;
  rdna_status status = RDNA_OK;
  if (depth > 0) status = rdna_llm_session_eval(session, tokens, depth, logits);
  if (status == RDNA_OK)
    status = warm ? rdna_llm_session_eval(session, first, prompt, logits)
                  : profile(device, session, first, prompt, "prompt", logits, json);
  if (status == RDNA_OK)
    status = warm ? rdna_llm_session_eval(session, last, 1, logits)
                  : profile(device, session, last, 1, "token", logits, json);
  rdna_llm_session_release(session);
  return status;
}

rdna_status bench_kernels(rdna_device *device, rdna_llm *llm, const model_bench *what, int depth, json_t *json) {
  int32_t *tokens;
  float *logits;
  rdna_status status = bench_tokens(llm, depth + what->prompt + 1, &tokens, &logits);
  if (status == RDNA_OK) status = in_session(device, llm, what, depth, tokens, logits, true, json);
  if (status == RDNA_OK) status = in_session(device, llm, what, depth, tokens, logits, false, json);
  free(tokens);
  free(logits);
  return status;
}
