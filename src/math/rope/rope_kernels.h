/* Rotary embedding: the grid is (tokens, parts); part p of a token takes the p-th share of its heads. */
#ifndef RDNA_MATH_ROPE_KERNELS_H
#define RDNA_MATH_ROPE_KERNELS_H

#include <stdint.h>

/* Strides count elements. Pair i of a head is x[2i], x[2i + 1] when |interleaved|, else x[i], x[i + n_rot/2]; its
 * angle is (float)positions[token] * inv_freq[i]. Values from n_rot on are copied. */
struct rope_args {
  const void *x;            /* (tokens, heads, head_dim) */
  void *out;                /* (tokens, heads, head_dim); may be x */
  const int32_t *positions; /* (tokens) */
  const float *inv_freq;    /* (n_rot / 2) */
  int64_t x_token_stride, x_head_stride;
  int64_t out_token_stride, out_head_stride;
  int32_t tokens, heads, head_dim, n_rot;
  int32_t interleaved;
  float scale; /* on sine and cosine */
};

/* Rotated k and plain v, f32, into row cache_row[token] of the caches; rows outside [0, slots) are skipped. Where q is
 * not NULL, the first |q_parts| parts of a token turn its q_heads in place. */
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
};

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_ROPE_KERNELS(X)                                                     \
  X(rope_f32, struct rope_args, 256, rdna__rope_case)                            \
  X(rope_f16, struct rope_args, 256, rdna__rope_case)                            \
  X(rope_kv_write_f32, struct rope_kv_write_args, 256, rdna__rope_kv_write_case) \
  X(rope_kv_write_f16, struct rope_kv_write_args, 256, rdna__rope_kv_write_case)

#endif
