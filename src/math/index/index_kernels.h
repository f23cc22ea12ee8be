/* Embedding lookup: gathers rows of a table, which is f16, bf16 or quantized, by their numbers, and converts them to
 * f32. */
#ifndef RDNA_MATH_INDEX_KERNELS_H
#define RDNA_MATH_INDEX_KERNELS_H

#include <stdint.h>

#include "math/quant/quant_kernels.h"

/* out(t, :) = table(ids(t), :). An id outside [0, rows) reads nothing and fills its row of out with NaN. */
struct gather_args {
  const void *table;  /* (rows, cols); quantized rows are whole blocks */
  const int32_t *ids; /* (tokens) */
  float *out;         /* (tokens, cols) */
  int64_t rows, cols, tokens;
  int64_t table_stride, out_stride; /* values from row to row; of a quantized table a multiple of the block */
};
/* A work item is up to GATHER_VALUES_PER_GROUP neighbouring values of one row of out, 8 for each thread:
 *
 *     row t   | item (t, 0): 2048 values | item (t, 1): 2048 values | ... |
 *
 * Grid x: one group for each item, or fewer groups, which stride over the items. */
enum { GATHER_THREADS = 256, GATHER_VALUES_PER_GROUP = 8 * GATHER_THREADS };

#define RDNA_GATHER_BLOCKS_(X, F, ...) X(gather_rows_##F, struct gather_args, GATHER_THREADS, rdna__gather_case)
#define RDNA_INDEX_KERNELS(X)                                                \
  X(gather_rows_f16, struct gather_args, GATHER_THREADS, rdna__gather_case)  \
  X(gather_rows_bf16, struct gather_args, GATHER_THREADS, rdna__gather_case) \
  RDNA_BLOCK_FORMATS(RDNA_GATHER_BLOCKS_, X)

#endif
