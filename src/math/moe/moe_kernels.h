/* Mixtures of experts: argument structs and the list of kernels; rdna/op/moe.h says what is computed. */
#ifndef RDNA_MATH_MOE_KERNELS_H
#define RDNA_MATH_MOE_KERNELS_H

#include <stdint.h>

#include "math/quant/quant_kernels.h"

#define MOE_EXPERTS 1024 /* at most, of a token */
#define MOE_CHOSEN 32    /* at most: one a lane */
#define MOE_GROUPS 32    /* at most */

/* 32 lanes have a token; lane i has experts i, i + 32, …. Sums go by lane, then in halves: 16 lanes with the other 16,
 * and so on. Grid x: ceil(tokens / MOE_ROUTE_TOKENS). */
#define MOE_ROUTE_THREADS 128
#define MOE_ROUTE_TOKENS (MOE_ROUTE_THREADS / 32)
struct moe_route_args {
  const float *logits; /* (tokens, experts) */
  const float *bias;   /* (experts) or NULL */
  int32_t *indices;    /* (tokens, chosen) */
  float *weights;      /* (tokens, chosen) */
  int64_t stride;      /* values from one row of logits to the next */
  int32_t tokens, experts, chosen;
  uint32_t score, normalised; /* an rdna_moe_score; 0 or 1 */
  int32_t groups, groups_kept, group_best;
  float scale;
  int32_t reserved;
};

/* Sorts slots by their experts, those of one expert in order, and cuts each expert's into tiles of rows. Slots of no
 * expert come last, as those of expert number |experts|:
 *
 *     chosen   2 0 2 . 0 2      experts 3, tile_rows 2; the . is not in 0 .. 2
 *     order    1 4 | 0 2 | 5 | 3
 *     tiles    (0, 0, 2) (2, 2, 2) (2, 4, 1) (3, 5, 1) (0, 0, 0) …     expert, first of order, rows
 *
 * A group has the slots of one expert, and counts all others' before it. Grid x: experts + 1. */
#define MOE_SORT_THREADS 256
struct moe_sort_args {
  const int32_t *chosen; /* (slots) */
  int32_t *order;        /* (slots) */
  int32_t *tiles;        /* (most_tiles, 3) */
  int32_t slots, experts, tile_rows, most_tiles;
};

/* Products of rows with the weights of their experts. |product| is that of a row with expert 0: a is x, b (experts, n,
 * k) with stride_b from one expert to the next, bias (experts, n), c the rows of out; alpha 1, beta 0. */
struct moe_product_args {
  struct gemm_args product;
  const int32_t *chosen; /* (tokens, top) */
  const int32_t *order;  /* moe_gemm only, as |tiles|: see above */
  const int32_t *tiles;
  struct gemv_steps steps; /* moe_gemv of blocks: a norm of x, or none; |up| says whether there is a gate */
  const void *up;       /* moe_gemv of blocks: weights like b, and a slot's row is f(x b^T + bias) * (x up^T + up_bias);
                           or NULL */
  const float *up_bias; /* where there is |up|, one like bias or NULL as that */
  float limit, slope;   /* f(g) u is SWIGLU_CLAMPED of these where the limit is above 0, else activation(g) u */
  int32_t tokens, top, experts, most_tiles;
  int32_t x_of_slots, reserved; /* whether x has a row for each slot, not for each token */
};
/* moe_gemv_<weights>: grid (work-groups over n as of gemv_f32_<weights>_f32_m1, slots). Row
 * of x, and with plain weights their rows too, at multiples of 16 bytes.
 * moe_gemm_<weights>: grid x: most_tiles * ceil(n / MOE_TILE). */
/* How many work-groups of moe_gemv_<type> an NVIDIA multiprocessor has at a time, and for how many on each compute unit
 * a grid is made. Most take the registers of two; of MXFP4 four wait less for memory: on an H200 gpt-oss-20b's shape
 * decodes 350 tokens a second so, and 337 with two. On AMD nobody has timed either. */
#define MOE_GEMV_RESIDENT(type) ((type) == RDNA_MXFP4 ? 4 : 2)
#define MOE_TILE GEMM_SMALL_TILE
#define MOE_TILE_THREADS GEMM_SMALL_THREADS

/* out(t) = sum over i of shares(t, i) y(t, i), and with |add| what it was. Grid x: ceil(tokens n / 256). */
struct moe_sum_args {
  const float *y;        /* (tokens, top, n) */
  const float *shares;   /* (tokens, top) */
  const int32_t *chosen; /* (tokens, top) */
  float *out;            /* (tokens, n) */
  int64_t out_stride;
  int64_t tokens, n;
  int32_t top, experts, add, reserved;
};

#define RDNA_MOE_KERNELS(X)                                                        \
  X(moe_route_f32, struct moe_route_args, MOE_ROUTE_THREADS, rdna__moe_route_case) \
  X(moe_sort, struct moe_sort_args, MOE_SORT_THREADS, rdna__moe_sort_case)         \
  X(moe_sum_f32, struct moe_sum_args, 256, rdna__moe_sum_case)

#define RDNA_MOE_GEMV_OF_(X, F, ...) \
  X(moe_gemv_##F, struct moe_product_args, QUANT_GEMV_THREADS, rdna__moe_product_case)
#define RDNA_MOE_GEMV_KERNELS(X)                                                  \
  X(moe_gemv_f32, struct moe_product_args, GEMV_THREADS, rdna__moe_product_case)  \
  X(moe_gemv_f16, struct moe_product_args, GEMV_THREADS, rdna__moe_product_case)  \
  X(moe_gemv_bf16, struct moe_product_args, GEMV_THREADS, rdna__moe_product_case) \
  RDNA_BLOCK_FORMATS(RDNA_MOE_GEMV_OF_, X)

#define RDNA_MOE_GEMM_OF_(X, F, ...) X(moe_gemm_##F, struct moe_product_args, MOE_TILE_THREADS, rdna__moe_product_case)
#define RDNA_MOE_GEMM_KERNELS(X)                                                      \
  X(moe_gemm_f32, struct moe_product_args, MOE_TILE_THREADS, rdna__moe_product_case)  \
  X(moe_gemm_f16, struct moe_product_args, MOE_TILE_THREADS, rdna__moe_product_case)  \
  X(moe_gemm_bf16, struct moe_product_args, MOE_TILE_THREADS, rdna__moe_product_case) \
  RDNA_BLOCK_FORMATS(RDNA_MOE_GEMM_OF_, X)

#endif
