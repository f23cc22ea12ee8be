/* Attention of query tokens over a cache of keys and values. */
#ifndef RDNA_OP_ATTENTION_H
#define RDNA_OP_ATTENTION_H

#include "rdna/device.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_attention {
  float scale;         /* of q.k, usually 1 / sqrt(d) */
  float softcap;       /* scores become softcap * tanh(score / softcap); 0 is none */
  int32_t window;      /* how many positions a token sees, its own included; 0 is all */
  int32_t max_queries; /* the most tokens of one sequence among these, at least 1: chooses the kernel */
  int64_t max_length;  /* the most positions that a token sees: chooses the kernel */
} rdna_attention;
/* The last two are hints that the host knows and the device does not: a wrong one is slow, never wrong. */

/* Bytes of workspace that rdna_op_attention needs for these sizes; may be 0. Depends on nothing else. */
RDNA_API size_t rdna_op_attention_workspace(const rdna_device *device, const rdna_attention *options, int64_t tokens,
                                            int64_t heads, int64_t kv_heads, int64_t d);

/* Token t stands at |position|(t) of a sequence whose position 0 is row |cache_base|(t) of the caches, and sees the
 * positions up to its own (the last |window| of them). Query head h reads key and value head h / (heads / kv_heads).
 * Tokens of several sequences may come in any order; those of one sequence share their reads when they are neighbours.
 * Between the first and the last position that its tokens see in this call, a sequence's rows must hold numbers, also
 * those that no token sees: a NaN or an infinity there may reach its other tokens.
 *
 * |q| and |out| are (tokens, heads, d) f32; |k_cache| and |v_cache| (slots, kv_heads, d), both f32 or both f16;
 * |cache_base| and |position| (tokens) i32. d is a multiple of 4, at most 256; heads is a multiple of kv_heads. Tokens
 * and slots may lie apart (a stride that is a multiple of 4), the rest is dense. Data is aligned to 16 bytes. |out| may
 * be |q|, or is apart from everything else. |workspace| is device memory of |workspace_size| bytes, aligned to 16, that
 * is in use until the stream has passed.
 *
 * A token at a negative position is padding and gives zeros, and so does one whose scores are all -inf. One whose
 * rows are not all in the cache reads nothing and gives NaN.
 *
 * RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, a workspace that is too small.
 * RDNA_UNSUPPORTED: another type or d, gaps, more than 65,535 key heads or 2^31-1 rows of queries. */
RDNA_CHECKED rdna_status rdna_op_attention(rdna_stream *stream, const rdna_attention *options, const rdna_tensor *q,
                                           const rdna_tensor *k_cache, const rdna_tensor *v_cache,
                                           const rdna_tensor *cache_base, const rdna_tensor *position, void *workspace,
                                           size_t workspace_size, const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
