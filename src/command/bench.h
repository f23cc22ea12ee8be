/* The two halves of rdna bench. */
#ifndef RDNA_COMMAND_BENCH_H
#define RDNA_COMMAND_BENCH_H

#include <jansson.h>
#include <stdbool.h>

#include "rdna/device.h"
#include "rdna/llm.h"

/* Times operators whose name has |filter| in it ("" is all) and prints a table, or appends to |json| when it is not
 * NULL. */
rdna_status bench_operators(rdna_device *device, const char *filter, json_t *json);

/* What of a model is timed: at each depth, tokens that were read before, a prompt and then single tokens. */
typedef struct model_bench {
  rdna_tokens depths; /* numbers, not ids */
  int prompt, decode;
  bool kernels; /* after the rates, the time of each kernel */
} model_bench;
rdna_status bench_model(rdna_device *device, const char *path, const model_bench *what, json_t *json);

/* Profiles a prompt and a single token after |depth| others; prints a table or appends to |json| when it is not NULL.
 */
rdna_status bench_kernels(rdna_device *device, rdna_llm *llm, int depth, int prompt, json_t *json);

#endif
