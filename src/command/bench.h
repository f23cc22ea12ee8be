/* The two halves of rdna bench. */
#ifndef RDNA_COMMAND_BENCH_H
#define RDNA_COMMAND_BENCH_H

#include <jansson.h>
#include <stdbool.h>

#include "command/placement.h"
#include "rdna/device.h"
#include "rdna/llm.h"
#include "rdna/profile.h"

/* Times operators whose name has |filter| in it ("" is all) and prints a table, or appends to |json| when it is not
 * NULL. */
rdna_status bench_operators(rdna_device *device, const char *filter, json_t *json);

/* What of a model is timed: at each depth, tokens that were read before, a prompt and then single tokens. */
typedef struct model_bench {
  rdna_tokens depths;  /* numbers, not ids */
  rdna_tokens batches; /* the same; not empty: so many sequences decode together, and no prompt is timed */
  int prompt, decode;
  rdna_dtype kv; /* of the cache */
  bool kernels;  /* after the rates, the time of each kernel */
  placement place;
} model_bench;
rdna_status bench_model(rdna_device *device, const char *path, const model_bench *what, json_t *json);
/* Prints what that would take; returns the process's exit status. */
int bench_plan(rdna_device *device, const char *path, const model_bench *what, bool json);

/* |count| random tokens, and room for one position's logits. The caller frees both, after a failure too. */
rdna_status bench_tokens(rdna_llm *llm, int count, int32_t **out_tokens, float **out_logits);
/* Sequences that decode together, as |what| says, each behind as many tokens as its depth. */
rdna_status bench_batch(rdna_device *device, rdna_llm *llm, const model_bench *what, json_t *json);
/* What |count| records say of each kernel, longest first. Reorders them. */
rdna_status bench_report_kernels(const char *what, int depth, rdna_profile_record *records, size_t count, json_t *json);
/* Profiles a prompt and a single token after |depth| others; prints a table or appends to |json| when it is not NULL.
 */
rdna_status bench_kernels(rdna_device *device, rdna_llm *llm, const model_bench *what, int depth, json_t *json);

#endif
