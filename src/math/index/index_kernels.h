/* Rows of a table by their numbers: an embedding lookup, out of another type into f32. */
#ifndef RDNA_MATH_INDEX_KERNELS_H
#define RDNA_MATH_INDEX_KERNELS_H

#include <stdint.h>

#include "math/quant/quant_kernels.h"

/* out(t, :) = table(ids(t), :); an id outside [0, rows) reads nothing and makes the row NaN */
struct gather_args {
  const void *table;  /* (rows, cols); quantized rows are whole blocks */
  const int32_t *ids; /* (tokens) */
  float *out;         /* (tokens, cols) */
  int64_t rows, cols, tokens;
  int64_t table_stride, out_stride; /* values from row to row; of a quantized table a multiple of the block */
};
/* A thread handles 8 values; grid x: one group for GATHER_VALUES_PER_GROUP values of a row, or fewer, as groups take
 * turns. */
enum { GATHER_THREADS = 256, GATHER_VALUES_PER_GROUP = 8 * GATHER_THREADS };

#define RDNA_GATHER_BLOCKS_(X, F, ...) X(gather_rows_##F, struct gather_args, GATHER_THREADS, rdna__gather_case)
#define RDNA_INDEX_KERNELS(X)                                                \
  X(gather_rows_f16, struct gather_args, GATHER_THREADS, rdna__gather_case)  \
  X(gather_rows_bf16, struct gather_args, GATHER_THREADS, rdna__gather_case) \
  RDNA_BLOCK_FORMATS(RDNA_GATHER_BLOCKS_, X)

#endif
