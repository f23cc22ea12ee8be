/* The gated delta rule, token after token with the state in registers: it is read once and written once, however many
 * tokens there are. rdna/op/recurrent.h has the formulas.
 *
 * The rows of a state do not know of each other: row c turns keys into value c. GATED_DELTA_LANES lanes share a row, as
 * vectors of four, so that a load of theirs is contiguous; a lane has |parts| vectors of each of its |rows| rows:
 *
 *     row c of S    | lane 0 | lane 1 | .. | lane 7 | lane 0 | lane 1 | ..          k and q are shared out alike
 *                   0        4              28       32                   d_k
 *
 * Sums over a row are made in a lane first, then in a butterfly over its 8 lanes. Grid: (heads * slices, sequences), a
 * head being a value head, a slice GATED_DELTA_SLICE(rows) rows of its state. */
#ifndef RDNA_MATH_RECURRENT_GATED_DELTA_KERNELS_H
#define RDNA_MATH_RECURRENT_GATED_DELTA_KERNELS_H

#include "math/recurrent/sequences.h"

enum { GATED_DELTA_THREADS = 64, GATED_DELTA_LANES = 8, GATED_DELTA_MOST_KEYS = 256 };
#define GATED_DELTA_SLICE(rows) ((rows) * GATED_DELTA_THREADS / GATED_DELTA_LANES)
/* Rows of a lane, of the kernel for a d_k of 128 and of the one for any. */
enum { GATED_DELTA_ROWS_128 = 2, GATED_DELTA_ROWS_ANY = 1 };

/* Elements from a token, a key head and a repeat to the next. */
struct gated_delta_strides {
  int64_t token, head, repeat;
};

struct gated_delta_args {
  const float *q;    /* (tokens, k_heads, d_k), aligned to 16 bytes as its strides are; so is k */
  const float *k;    /* (tokens, k_heads, d_k) */
  const float *v;    /* (tokens, k_heads, repeats, d_v) */
  const float *a;    /* (tokens, k_heads, repeats) */
  const float *b;    /* (tokens, k_heads, repeats) */
  const float *rate; /* (k_heads, repeats) */
  const float *dt;   /* (k_heads, repeats) */
  float *state;      /* (slots, k_heads, repeats, d_v, d_k) */
  float *out;        /* (tokens, k_heads, repeats, d_v) */
  struct sequences sequences;
  struct gated_delta_strides q_at, k_at, v_at, a_at, b_at, rate_at, dt_at, out_at;
  int32_t k_heads, repeats, d_k, d_v;
  float scale, epsilon;
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_GATED_DELTA_KERNELS(X)                                                         \
  X(gated_delta_d128, struct gated_delta_args, GATED_DELTA_THREADS, rdna__gated_delta_case) \
  X(gated_delta_any, struct gated_delta_args, GATED_DELTA_THREADS, rdna__gated_delta_case)

#endif
