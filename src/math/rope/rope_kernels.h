/* Rotary embedding: rotates pairs of values of each head by angles that grow with the token's position. (a, b) becomes
 * (a cos - b sin, a sin + b cos). Pair i is a_i and b_i, here of n_rot 8:
 *
 *     interleaved    a0 b0 a1 b1 a2 b2 a3 b3 | values that are copied
 *     halves         a0 a1 a2 a3 b0 b1 b2 b3 | values that are copied
 *     value          0                       n_rot ... head_dim - 1
 *
 * Grid: (tokens, parts). The heads of a token are divided among the groups of its parts, in order. */
#ifndef RDNA_MATH_ROPE_KERNELS_H
#define RDNA_MATH_ROPE_KERNELS_H

#include <stdint.h>

/* Heads that a group may have where they are normed, and values of a head. */
#define ROPE_NORM_HEADS 64
#define ROPE_NORM_DIM 1024

/* Strides count elements. Pair i of a head is x[2i], x[2i + 1] when |interleaved|, else x[i], x[i + n_rot/2]; its
 * angle in radians is (float)positions[token] * inv_freq[i]. Values from n_rot on are copied. */
struct rope_args {
  const void *x;            /* (tokens, heads, head_dim) */
  void *out;                /* (tokens, heads, head_dim); may be x */
  const int32_t *positions; /* (tokens) */
  const float *inv_freq;    /* (n_rot / 2) */
  int64_t x_token_stride, x_head_stride;
  int64_t out_token_stride, out_head_stride;
  int32_t tokens, heads, head_dim, n_rot;
  int32_t interleaved;
  float scale; /* multiplies sine and cosine */
};

/* Writes k, rotated, and v to slot cache_row[token] of the caches, and converts them to the caches' type. A
 * slot outside [0, slots) is skipped. Where q is not NULL, the first |q_parts| groups of a token rotate its q_heads, in
 * place or into q_out; the others divide k and v among them. With a weight, each head of q, k or v is first divided by
 * the root of its mean square + epsilon and multiplied by the weight; no group then has more than ROPE_NORM_HEADS
 * heads. The sum of squares is made by 32 lanes, each of every 32nd value, which are joined in halves. */
struct rope_kv_write_args {
  const float *k;           /* (tokens, heads, k_dim) */
  const float *v;           /* (tokens, heads, v_dim) */
  void *k_cache;            /* (slots, heads, k_dim) */
  void *v_cache;            /* (slots, heads, v_dim) */
  const int32_t *positions; /* (tokens) */
  const int32_t *cache_row; /* (tokens) */
  const float *inv_freq;    /* (n_rot / 2) */
  int64_t k_token_stride, k_head_stride;
  int64_t v_token_stride, v_head_stride;
  int64_t k_slot_stride, k_cache_head_stride;
  int64_t v_slot_stride, v_cache_head_stride;
  int64_t slots;
  int32_t tokens, heads, k_dim, v_dim, n_rot;
  int32_t interleaved;
  float scale;
  int32_t q_heads, q_parts;
  float *q; /* (tokens, q_heads, k_dim) or NULL */
  int64_t q_token_stride, q_head_stride;
  void *q_out; /* (tokens, q_heads, k_dim) of the caches' type, or NULL: q itself */
  int64_t q_out_token_stride, q_out_head_stride;
  const float *q_norm, *k_norm; /* (k_dim) or NULL */
  const float *v_norm;          /* (v_dim) or NULL */
  float epsilon;
  int32_t reserved;
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_ROPE_KERNELS(X)                                                     \
  X(rope_f32, struct rope_args, 256, rdna__rope_case)                            \
  X(rope_f16, struct rope_args, 256, rdna__rope_case)                            \
  X(rope_kv_write_f32, struct rope_kv_write_args, 256, rdna__rope_kv_write_case) \
  X(rope_kv_write_f16, struct rope_kv_write_args, 256, rdna__rope_kv_write_case) \
  X(rope_kv_write_bf16, struct rope_kv_write_args, 256, rdna__rope_kv_write_case)

#endif
