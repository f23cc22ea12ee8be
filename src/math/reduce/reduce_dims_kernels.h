/* Reductions over any dimensions of a strided tensor. A value lies at the sum of two offsets: its output's, from the
 * kept dimensions, and its own among the values of the output, from the reduced ones. The order of additions depends on
 * the shape, the strides, the number of slices and the wave's width alone. */
#ifndef RDNA_MATH_REDUCE_DIMS_KERNELS_H
#define RDNA_MATH_REDUCE_DIMS_KERNELS_H

#include <stdint.h>

enum { REDUCE_DIMS_THREADS = 256, REDUCE_DIMS_RANK = 8, REDUCE_DIMS_AHEAD = 4 /* loads of a thread in flight */ };

/* What is done to a value before it is joined. REDUCE_REVERSE turns the order around: -x, or ~x of an integer. */
enum reduce_map {
  REDUCE_PLAIN,
  REDUCE_ABS,
  REDUCE_SQUARE,
  REDUCE_POWER, /* |x|^parameter */
  REDUCE_NONZERO,
  REDUCE_ZERO,
  REDUCE_REVERSE
};
/* What is done to the joined value. */
enum reduce_end {
  REDUCE_AS_IS,
  REDUCE_SCALED,   /* times parameter */
  REDUCE_ROOT,     /* square root */
  REDUCE_UNPOWER,  /* ^(1 / parameter) */
  REDUCE_REVERSED, /* undoes REDUCE_REVERSE */
  REDUCE_IF,       /* 1 if greater than 0 */
  REDUCE_UNLESS,   /* 0 if greater than 0 */
  REDUCE_VARIANCE, /* sum of squares over count - parameter, which is not below 0 */
  REDUCE_DEVIATION /* its square root */
};
/* Who works on an output: a wave, or lanes of it; a group; a group on several outputs side by side; a thread on a
 * vector of them. */
enum reduce_layout { REDUCE_WAVE, REDUCE_GROUP, REDUCE_COLUMNS, REDUCE_ALONE };

struct reduce_dims_args {
  const void *x;
  void *out; /* (outs); not used with partial */
  /* (parts, slices, outs) of what sums are kept in: f32, f64 for f64, i64 for integers. NULL when slices is 1. */
  void *partial;
  int64_t *partial_index; /* (slices, outs), of arguments */
  int64_t outs, count;    /* values of each output */
  int64_t slices,
      slice; /* pieces of |slice| values, with |vector| a multiple of 16 bytes, are dealt to slices in turn */
  int64_t kept_size[REDUCE_DIMS_RANK], kept_stride[REDUCE_DIMS_RANK];       /* fastest first, in values */
  int64_t reduced_size[REDUCE_DIMS_RANK], reduced_stride[REDUCE_DIMS_RANK]; /* as above */
  double parameter;
  int32_t kept_rank, reduced_rank; /* at least 1 */
  int32_t map, end, layout, out_dtype;
  int32_t vector; /* 16 bytes along the fastest dimension are one aligned access, for f32, f16 and bf16; not arguments
                     in columns */
  int32_t team;   /* of REDUCE_WAVE in line and wave: lanes of an output, a power of two, at most a wave */
};

/* Joins the slices: a wave an output, a group one where they are more than REDUCE_JOIN_WAVE_SLICES. |kind| as in enum
 * reduce_kind, |keeper| the type of partial. */
enum { REDUCE_JOIN_WAVE_SLICES = 64 };
enum reduce_kind { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_VAR, REDUCE_LSE, REDUCE_ARG };
struct reduce_join_args {
  const void *partial; /* (parts, slices, outs) */
  const int64_t *partial_index;
  void *out; /* (outs) */
  int64_t outs, slices;
  double parameter;
  int32_t kind, keeper, end, out_dtype;
};

#define RDNA_REDUCE_DIMS_FLOAT_(X, type)                                                      \
  X(reduce_sum_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)  \
  X(reduce_prod_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case) \
  X(reduce_max_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)  \
  X(reduce_arg_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)  \
  X(reduce_var_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)
/* For often asked kinds of f32, f16 and bf16, at any alignment, on which the order of additions depends too.
 * line: what reduce_<kind>_<type> does, where one dense dimension is reduced, but of powers and counts. The others
 * where REDUCE_PLAIN too: wave and long: as line, for lanes of a wave, with one slice, and a group. columns: one
 * reduced dimension, of a stride of at least 16, across a dense kept one; slices of a multiple of 8. alone: |vector|,
 * one reduced dimension, one slice.
 */
#define RDNA_REDUCE_DIMS_SPECIAL_(X, type)                                                           \
  X(reduce_sum_line_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)    \
  X(reduce_max_line_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)    \
  X(reduce_var_line_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)    \
  X(reduce_lse_line_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)    \
  X(reduce_arg_line_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)    \
  X(reduce_sum_wave_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)    \
  X(reduce_sum_long_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)    \
  X(reduce_sum_columns_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case) \
  X(reduce_sum_alone_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)
#define RDNA_REDUCE_DIMS_INTEGER_(X, type)                                                    \
  X(reduce_sum_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)  \
  X(reduce_prod_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case) \
  X(reduce_max_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)  \
  X(reduce_arg_##type, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)
#define RDNA_REDUCE_DIMS_KERNELS(X)                                                        \
  RDNA_REDUCE_DIMS_FLOAT_(X, f32)                                                          \
  RDNA_REDUCE_DIMS_FLOAT_(X, f16)                                                          \
  RDNA_REDUCE_DIMS_FLOAT_(X, bf16)                                                         \
  RDNA_REDUCE_DIMS_FLOAT_(X, f64)                                                          \
  RDNA_REDUCE_DIMS_SPECIAL_(X, f32)                                                        \
  RDNA_REDUCE_DIMS_SPECIAL_(X, f16)                                                        \
  RDNA_REDUCE_DIMS_SPECIAL_(X, bf16)                                                       \
  RDNA_REDUCE_DIMS_INTEGER_(X, i32)                                                        \
  RDNA_REDUCE_DIMS_INTEGER_(X, i64)                                                        \
  RDNA_REDUCE_DIMS_INTEGER_(X, u8)                                                         \
  X(reduce_lse_f32, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)  \
  X(reduce_lse_f16, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case)  \
  X(reduce_lse_bf16, struct reduce_dims_args, REDUCE_DIMS_THREADS, rdna__reduce_dims_case) \
  X(reduce_join, struct reduce_join_args, REDUCE_DIMS_THREADS, rdna__reduce_join_case)

#endif
