/* Attention over a KV cache: argument structs and the list of kernels.
 *
 * A cache row holds kv_heads vectors, of d values in k and of dv in v. Token t belongs to the sequence whose row 0 is
 * cache row cache_base[t], or with a block table, to sequence cache_base[t], whose position p is row p % block_rows of
 * block block_table[cache_base[t] * table_stride + p / block_rows]; it stands at position[t] of that sequence and sees
 * the positions lo..position[t], where lo is 0 or, with a window w > 0, max(0, position[t] - w + 1). Query head h reads
 * key and value head h / (heads / kv_heads). A token at a negative position is padding: zeros. A token whose rows lie
 * outside the cache reads nothing: NaN. The score is s = scale * q.k, and softcap * tanh(s / softcap) when softcap is
 * not 0. The sink of a head is one more score, whose value is zero: split 0 has it. */
#ifndef RDNA_MATH_ATTENTION_KERNELS_H
#define RDNA_MATH_ATTENTION_KERNELS_H

#include <stdint.h>

/* rows of one prefill tile (tokens x heads of one key head), and the waves' common group size */
#define ATTENTION_TILE_ROWS 64
#define ATTENTION_THREADS 256
#define ATTENTION_MAX_D 256
/* of the wide kernels: values of a key and of a value, and those of a latent key before its values */
#define ATTENTION_WIDE_D 576
#define ATTENTION_WIDE_DV 512
#define ATTENTION_LATENT_FIRST 64
/* work-groups of a prefill that make ATTENTION_MAX_D numbers each of a result of |dv| */
#define ATTENTION_PARTS(dv) ((dv) > ATTENTION_MAX_D ? ((dv) + ATTENTION_MAX_D - 1) / ATTENTION_MAX_D : 1)
/* what a running maximum starts from: finite, so that no difference of two maxima is a NaN */
#define ATTENTION_LOWEST (-3.402823466e+38f)

struct attention_args {
  const float *q;            /* (tokens, heads, d) */
  const void *k;             /* (slots, kv_heads, d) */
  const void *v;             /* (slots, kv_heads, dv) */
  const int32_t *cache_base; /* (tokens) */
  const int32_t *position;   /* (tokens) */
  float *out;                /* (tokens, heads, dv); decode with splits > 1 leaves it to attention_combine */
  float *partial;            /* decode with splits > 1: (tokens, heads, splits, dv) sums, not yet divided */
  float *stats;              /* decode with splits > 1: (tokens, heads, splits, 2) maximum, sum of exponentials */
  /* values from one token or slot to the next, multiples of 4, and of q8_0, as d is then, of 32 */
  int64_t q_stride, k_stride, v_stride, out_stride;
  int64_t slots;
  const int32_t *block_table; /* (sequences, table_stride) or NULL; decode only */
  int64_t table_stride;
  const float *sinks; /* (heads) or NULL */
  int32_t block_rows, sequences;
  int32_t tokens, heads, kv_heads, d; /* d and dv: multiples of 4 */
  int32_t splits, window;
  float scale, softcap;
  int32_t split_positions; /* of a split at least; 0: what a token sees is cut evenly */
  int32_t dv;              /* prefills take wide ones too, the decoding kernels of h1 to h8 have dv = d <= 256 */
};

struct attention_combine_args {
  const float *partial; /* (tokens, heads, splits, d) */
  const float *stats;   /* (tokens, heads, splits, 2) */
  float *out;           /* (tokens, heads, d) */
  int64_t out_stride;
  int32_t tokens, heads, splits, d;
};

/* prefill: grid (tiles of tokens * heads / kv_heads rows, kv_heads * parts of dv). decode: grid (splits, kv_heads *
 * blocks of 1, 4 or 8 query heads, tokens); the wide ones take 4, and the latent ones want one key head, whose values
 * are the last dv of its keys. combine: grid (heads, tokens). */
#define RDNA_ATTENTION_KERNELS(X)                                                                        \
  X(attention_prefill_f16_d128, struct attention_args, ATTENTION_THREADS, rdna__attention_prefill_case)  \
  X(attention_prefill_f16_d256, struct attention_args, ATTENTION_THREADS, rdna__attention_prefill_case)  \
  X(attention_prefill_f32_d128, struct attention_args, ATTENTION_THREADS, rdna__attention_prefill_case)  \
  X(attention_prefill_f32_d256, struct attention_args, ATTENTION_THREADS, rdna__attention_prefill_case)  \
  X(attention_decode_f16_h1, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)      \
  X(attention_decode_f16_h4, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)      \
  X(attention_decode_f16_h8, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)      \
  X(attention_decode_bf16_h1, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)     \
  X(attention_decode_bf16_h4, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)     \
  X(attention_decode_bf16_h8, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)     \
  X(attention_decode_q8_0_h1, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)     \
  X(attention_decode_q8_0_h4, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)     \
  X(attention_decode_q8_0_h8, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)     \
  X(attention_decode_f32_h1, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)      \
  X(attention_decode_f32_h4, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)      \
  X(attention_decode_f32_h8, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)      \
  X(attention_decode_f16_wide, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)    \
  X(attention_decode_bf16_wide, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)   \
  X(attention_decode_f32_wide, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)    \
  X(attention_decode_f16_latent, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)  \
  X(attention_decode_bf16_latent, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case) \
  X(attention_decode_f32_latent, struct attention_args, ATTENTION_THREADS, rdna__attention_decode_case)  \
  X(attention_combine, struct attention_combine_args, ATTENTION_THREADS, rdna__attention_combine_case)

#endif
