/* Losses and their gradients. */
#ifndef RDNA_MATH_LOSS_KERNELS_H
#define RDNA_MATH_LOSS_KERNELS_H

#include <stdint.h>

enum {
  LOSS_THREADS = 256,
  LOSS_BLOCK = 2048,
  LOSS_SUM_THREADS = 1024,
  LOSS_AHEAD = 4 /* loads of a thread in flight */
};

/* The loss of each value and its prediction. Blocks of LOSS_BLOCK values belong to slices in turn, and groups do slices
 * in turn, so any grid is right and the order of additions depends on |slices| and the wave's width alone. */
struct loss_values_args {
  const void *x;      /* (count) */
  const void *target; /* (count) */
  const void *weight; /* (count), or NULL for ones */
  void *out;          /* (count): the losses; or NULL, for their sums */
  float *partial;     /* (slices): sums, when out is NULL */
  int64_t count, slices;
  uint32_t kind; /* an rdna_loss */
  float beta;
};

/* dx = dout * scale * weight * derivative of the loss by x. Groups take blocks in turn. */
struct loss_values_backward_args {
  const void *dout;   /* (count), or (1) when |one| */
  const void *x;      /* (count) */
  const void *target; /* (count) */
  const void *weight; /* (count), or NULL for ones */
  void *dx;           /* (count); may be dout, x or target */
  int64_t count;
  uint32_t kind; /* an rdna_loss */
  float beta, scale;
  uint32_t one, dout_f32; /* 0 or 1; |dout| is f32 whatever x is */
};

/* out = scale * sum of values, or that over the sum of weights. One group. */
struct loss_sum_args {
  const float *values;  /* (count) */
  const float *weights; /* (count), or NULL */
  void *out;            /* (1) */
  float *total;         /* (1): the sum of weights; NULL with them */
  int64_t count;
  float scale;
  uint32_t dtype; /* of out: an rdna_dtype, f32, f16 or bf16 */
};

/* Of each row, with y its target, w the weights of the classes and s the smoothing:
 *     loss = (1 - s) w[y] (lse - x[y]) + s / cols * sum of w[c] (lse - x[c]),  lse = log(sum of exp(x[c]))
 * or, for |nll|, -w[y] x[y]. A row whose target is |ignore| has loss and weight 0; one whose target is no class, NaN.
 * Rows of up to LOSS_WAVE_COLS values belong to a wave, longer ones to a group; any grid is right.
 *
 * Where there are too few rows for all of a GPU, a group takes a part of one: |part_vectors| of its vectors of 16
 * bytes, as row_edges_of sees x, or fewer; part 0 has the single values before and after them too. With |states| only
 * what parts come to is written; cross_entropy_finish_* makes the rows' losses of those. */
enum { LOSS_WAVE_COLS = 1024, LOSS_PART_VECTORS = LOSS_THREADS * LOSS_AHEAD };
/* cross_entropy_short_* and cross_entropy_backward_short_*, without |nll|, smoothing and parts, for rows of at most
 * LOSS_SHORT_MOST(bytes of a value) values, which several lanes share: as many as lie anywhere in |vectors| vectors of
 * 16 bytes for each of |lanes|. A group takes blocks of LOSS_SHORT_ROWS rows in turn. dx is not x. */
enum { LOSS_SHORT_ROWS = 64 };
#define LOSS_SHORT_COLS(lanes, vectors, bytes) (((lanes) * (vectors) - 1) * 16 / (int)(bytes) + 1)
#define LOSS_SHORT_MOST(bytes) LOSS_SHORT_COLS(16, 4, bytes)
struct cross_entropy_args {
  const void *x;       /* (rows, cols) */
  const void *target;  /* (rows) of i32 or i64 */
  const float *weight; /* (cols), or NULL for ones */
  float *loss;         /* (rows) */
  float *lse;          /* (rows); 0 for |nll| */
  float *row_weight;   /* (rows): w[y] */
  float *partial; /* (2, blocks): sums of the losses and of the weights of a block's rows, for cross_entropy_short_*
                   * instead of the rows' own; or NULL */
  float *states;  /* (rows, parts, 4): maximum of x, the sum of exp(x - maximum), 0 where all are -inf, and with
                   * smoothing the sums of w and of w x; or NULL */
  int64_t rows, cols, x_stride, ignore;
  uint32_t *outside; /* becomes 1 when a row's loss is made of a target that is no class, or NULL */
  float smoothing;
  uint32_t nll, target_i64; /* 0 or 1 */
  uint32_t parts, part_vectors;
};

/* One group. */
struct cross_entropy_finish_args {
  struct cross_entropy_args rows; /* with |states|, which are read; without |row_weight| */
  void *out;      /* (1): the sum of the losses, or with |mean| that over the sum of the weights; or NULL */
  float *total;   /* (1): the sum of the rows' weights */
  uint32_t dtype; /* of out */
  uint32_t mean;  /* 0 or 1 */
};

/* dx = dout / total * ((w[y] (1 - s) + s / cols * sum of w) exp(x - lse) - (1 - s) w[y] [c = y] - s / cols * w[c]) */
struct cross_entropy_backward_args {
  const void *dout;    /* (rows), or (1) when |one|; of x's type, or f32 when |dout_f32| */
  const void *x;       /* (rows, cols) */
  const void *target;  /* (rows) */
  const float *weight; /* (cols), or NULL */
  const float *lse;    /* (rows) */
  const float *total;  /* (1): the sum of the rows' weights, or NULL for 1 */
  void *dx;            /* (rows, cols); may be x */
  int64_t rows, cols, x_stride, dx_stride, ignore;
  uint32_t *outside; /* becomes 1 when a target is no class, or NULL */
  float smoothing;
  uint32_t nll, target_i64, one, dout_f32;
  uint32_t parts, part_vectors; /* 1 part of rows of up to LOSS_WAVE_COLS */
};

/* out[i] = values[i] in another type. */
struct loss_store_args {
  const float *values; /* (count) */
  void *out;           /* (count) */
  int64_t count;
  uint32_t dtype;
};

#define RDNA__LOSS_TYPE(X, type)                                                                                      \
  X(loss_values_##type, struct loss_values_args, LOSS_THREADS, rdna__loss_values_case)                                \
  X(loss_values_backward_##type, struct loss_values_backward_args, LOSS_THREADS, rdna__loss_values_backward_case)     \
  X(cross_entropy_##type, struct cross_entropy_args, LOSS_THREADS, rdna__cross_entropy_case)                          \
  X(cross_entropy_backward_##type, struct cross_entropy_backward_args, LOSS_THREADS,                                  \
    rdna__cross_entropy_backward_case)                                                                                \
  X(cross_entropy_finish_##type, struct cross_entropy_finish_args, LOSS_SUM_THREADS, rdna__cross_entropy_finish_case) \
  X(cross_entropy_short_##type, struct cross_entropy_args, LOSS_THREADS, rdna__cross_entropy_case)                    \
  X(cross_entropy_backward_short_##type, struct cross_entropy_backward_args, LOSS_THREADS,                            \
    rdna__cross_entropy_backward_case)

#define RDNA_LOSS_KERNELS(X)                                               \
  RDNA__LOSS_TYPE(X, f32)                                                  \
  RDNA__LOSS_TYPE(X, f16)                                                  \
  RDNA__LOSS_TYPE(X, bf16)                                                 \
  X(loss_sum, struct loss_sum_args, LOSS_SUM_THREADS, rdna__loss_sum_case) \
  X(loss_store, struct loss_store_args, LOSS_THREADS, rdna__loss_store_case)

#endif
