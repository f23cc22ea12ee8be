/* Rotary position embedding (Su et al., 2021): rotates pairs of a head's values by angles that grow with the token's
 * position.
 *
 * The angle of pair i is position * inv_freq[i], rounded to f32 as other engines do; so at position p the angle is off
 * by up to p * inv_freq[i] * 2^-24. The table is the caller's, so that any scaling of frequencies (linear, YaRN,
 * Llama 3) is a matter of how it was filled. */
#ifndef RDNA_OP_ROPE_H
#define RDNA_OP_ROPE_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rdna_rope_layout {
  RDNA_ROPE_LAYOUT_INTERLEAVED = 0, /* pair i is x[2i], x[2i + 1]: Llama in GGUF files */
  RDNA_ROPE_LAYOUT_HALVES,          /* pair i is x[i], x[i + n_rot/2]: NeoX, Hugging Face */
  RDNA_ROPE_LAYOUT_COUNT
} rdna_rope_layout;

typedef struct rdna_rope {
  size_t size; /* of the struct: RDNA_ROPE_INIT sets it */
  rdna_rope_layout layout;
  const rdna_tensor *positions; /* (tokens), i32, contiguous */
  const rdna_tensor *inv_freq;  /* (n_rot / 2), f32, contiguous; values past n_rot in a head are copied */
  float scale;                  /* on sine and cosine: 1, or YaRN's attention factor */
  int32_t reserved;             /* 0; here so that the struct has no padding, see rdna/op.h */
  /* For rope_kv_write and rope_qkv_write; NULL: none. f32, as long as a head, contiguous: each head of q, k or v is
   * first divided by the root of its mean square + epsilon and multiplied by this (Qwen 3, Gemma 3). */
  const rdna_tensor *q_norm, *k_norm, *v_norm;
  double epsilon;
} rdna_rope;
#define RDNA_ROPE_INIT .size = sizeof(rdna_rope)

/* Rotates |x| (tokens, heads, head_dim), f32 or f16, into |out| of the same shape and type; |out| may be |x|. Tokens
 * and heads may have any stride, a head is contiguous. RDNA_INVALID_ARGUMENT: shapes or types that disagree, a table
 * longer than half a head, a norm, missing data, partial overlap. RDNA_UNSUPPORTED: another type or layout. */
RDNA_CHECKED rdna_status rdna_op_rope(rdna_stream *stream, const rdna_rope *rope, const rdna_tensor *x,
                                      const rdna_tensor *out);

/* Rotates |k| (tokens, heads, k_dim) and stores it with |v| (tokens, heads, v_dim), unrotated, both f32, in
 * |k_cache| (slots, heads, k_dim) and |v_cache| (slots, heads, v_dim), both f32, f16 or bf16, at row cache_row[token].
 * |cache_row| is (tokens), i32, contiguous. A token whose row is outside [0, slots) is not stored, so -1 skips it; two
 * tokens with one row leave either of them. Strides as above, in the caches too, whose rows may alternate in one
 * buffer; otherwise they overlap neither each other nor the rest. Heads that are normed have up to 1,024 values; a norm
 * of q is refused, as there is no q. */
RDNA_CHECKED rdna_status rdna_op_rope_kv_write(rdna_stream *stream, const rdna_rope *rope, const rdna_tensor *k,
                                               const rdna_tensor *v, const rdna_tensor *cache_row,
                                               const rdna_tensor *k_cache, const rdna_tensor *v_cache);
/* The same, and rotates |q| (tokens, heads of its own number, k_dim), f32, in place: all that a step of decoding
 * rotates. */
RDNA_CHECKED rdna_status rdna_op_rope_qkv_write(rdna_stream *stream, const rdna_rope *rope, const rdna_tensor *q,
                                                const rdna_tensor *k, const rdna_tensor *v,
                                                const rdna_tensor *cache_row, const rdna_tensor *k_cache,
                                                const rdna_tensor *v_cache);
/* The same, but the rotated |q| goes to |q_out|, of |q|'s shape and the caches' type, as rdna_op_sdpa wants it beside
 * them; |q_out| overlaps nothing else. */
RDNA_CHECKED rdna_status rdna_op_rope_qkv_write_to(rdna_stream *stream, const rdna_rope *rope, const rdna_tensor *q,
                                                   const rdna_tensor *k, const rdna_tensor *v,
                                                   const rdna_tensor *cache_row, const rdna_tensor *q_out,
                                                   const rdna_tensor *k_cache, const rdna_tensor *v_cache);

#ifdef __cplusplus
}
#endif
#endif
