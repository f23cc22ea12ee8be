/* Attention over whole sequences with its gradient, and of query tokens over a cache of keys and values. */
#ifndef RDNA_OP_ATTENTION_H
#define RDNA_OP_ATTENTION_H

#include <stdbool.h>

#include "rdna/device.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_attention {
  size_t size;         /* of the struct: RDNA_ATTENTION_INIT sets it */
  float scale;         /* of q.k, usually 1 / sqrt(d) */
  float softcap;       /* scores become softcap * tanh(score / softcap); 0 is none */
  int32_t window;      /* how many positions a token sees, its own included; 0 is all */
  int32_t max_queries; /* the most tokens of one sequence among these, at least 1: chooses the kernel */
  int64_t max_length;  /* the most positions that a token sees: chooses the kernel */
  /* NULL, or (heads) f32, contiguous: of each head a score without a key and a value, see below */
  const rdna_tensor *sinks;
  /* 0: the cache is cut into splits that fill the device, so that a token's sums depend on which others are in the
   * call. n: every n positions of what a token sees are a split, and a token's bits are its own. From 257 splits on
   * they are longer. With max_queries up to 8. */
  int32_t split;
  int32_t reserved; /* 0; here so that the struct has no padding, see rdna/op.h */
} rdna_attention;
/* max_queries and max_length are hints that the host knows and the device does not: a wrong one is slow, never wrong.
 */
#define RDNA_ATTENTION_INIT .size = sizeof(rdna_attention)

/* Bytes of workspace that rdna_op_attention needs for these sizes, |dv| being that of values; may be 0. Depends only on
 * the arguments. */
RDNA_API size_t rdna_op_attention_workspace(const rdna_device *device, const rdna_attention *options, int64_t tokens,
                                            int64_t heads, int64_t kv_heads, int64_t dv);

/* Token t stands at |position|(t) of a sequence whose position 0 is row |cache_base|(t) of the caches, and sees the
 * positions up to its own (the last |window| of them). Query head h reads key and value head h / (heads / kv_heads).
 * Tokens of several sequences may come in any order; those of one sequence share their reads when they are neighbours.
 * Between the first and the last position that its tokens see in this call, a sequence's rows must hold numbers, also
 * those that no token sees: a NaN or an infinity there may reach its other tokens.
 *
 *     slot of the caches   … | base, position 0 | base + 1, position 1 | … | base + position(t): token t's own row | …
 *                                  |<-------- what token t sees: its last |window| positions, its own too ------->|
 *
 * |q| is (tokens, heads, d) f32, |out| (tokens, heads, dv) f32; |k_cache| (slots, kv_heads, d) and |v_cache| (slots,
 * kv_heads, dv) are both f32 or both f16, or with max_queries up to 8 both bf16, or both q8_0 where d is dv and at most
 * 256, of whose blocks slots and heads have whole numbers; |cache_base| and |position| (tokens) i32. d and dv are
 * multiples of 4, d at most 576 and dv 512; heads is a multiple of kv_heads. The strides of tokens and slots may be any
 * multiple of 4 values, the rest is dense. Data is aligned to 16 bytes. |v_cache| may lie in |k_cache|: where each row
 * has one key, whose last dv values are the row's value (latent attention), a row is read once. |out| may be |q| where
 * dv is d, or overlaps nothing. |workspace| is device memory of |workspace_size| bytes, aligned to 16, that is in use
 * until the work in the stream is done.
 *
 * With |sinks|, as gpt-oss has them, each head has one score more, which takes its share and has no value:
 *
 *     p = exp(s) / (exp(sink) + sum over what the token sees of exp(s))
 *
 * A token at a negative position is padding and gives zeros, and so does one whose scores are all -inf. One whose
 * rows are not all in the cache reads nothing and gives NaN.
 *
 * RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, a workspace that is too small.
 * RDNA_UNSUPPORTED: another type, d or dv, gaps, more than 32,767 heads or 2^31-1 rows of queries. */
RDNA_CHECKED rdna_status rdna_op_attention(rdna_stream *stream, const rdna_attention *options, const rdna_tensor *q,
                                           const rdna_tensor *k_cache, const rdna_tensor *v_cache,
                                           const rdna_tensor *cache_base, const rdna_tensor *position, void *workspace,
                                           size_t workspace_size, const rdna_tensor *out);

/* The same with a cache in blocks ("paged"), (blocks, rows of a block, kv_heads, d), one stride between all rows.
 * Position p of token t's sequence is row p % rows of block |block_table|(|sequence|(t), p / rows):
 *
 *     block_table of a sequence   | 7 | 2 | 5 | …        positions 0 … rows - 1 are in block 7, the next in block 2
 *
 * |block_table| is i32 (sequences, most blocks of one), contiguous, |sequence| i32 (tokens). A token whose sequence, or
 * a block that it sees, does not exist gives NaN. RDNA_UNSUPPORTED too: max_queries above 8, and d above 512 where
 * values lie elsewhere than in the keys. */
RDNA_CHECKED rdna_status rdna_op_attention_paged(rdna_stream *stream, const rdna_attention *options,
                                                 const rdna_tensor *q, const rdna_tensor *k_cache,
                                                 const rdna_tensor *v_cache, const rdna_tensor *block_table,
                                                 const rdna_tensor *sequence, const rdna_tensor *position,
                                                 void *workspace, size_t workspace_size, const rdna_tensor *out);

/* Where the diagonal of scores lies when there are not as many keys as queries. */
/*     x: where query i stands, with causal masking the last key that it sees
 *
 *                 keys 0 1 2 3        keys 0 1 2 3
 *     query 0          x . . .             . . x .
 *     query 1          . x . .             . . . x
 *                    top left         bottom right */
typedef enum rdna_diagonal {
  RDNA_DIAGONAL_TOP_LEFT = 0, /* query i stands at key i */
  RDNA_DIAGONAL_BOTTOM_RIGHT, /* the last query stands at the last key */
  RDNA_DIAGONAL_COUNT
} rdna_diagonal;

/* Scaled dot-product attention. Query i stands at position i + shift, shift being 0 or keys - queries by |diagonal|. It
 * sees all keys, or if |windowed| those from |left| positions before it to |right| after it; if |causal| none after it:
 *
 *     x = scale * q.k
 *     s = (softcap > 0 ? softcap * tanh(x / softcap) : x) - slope * |i + shift - j| + mask
 *     p = exp(s - lse),  lse = log(sum over the keys of exp(s), + exp(sink) with |sinks|)
 *     out = sum over the keys of kept * p * v / (1 - dropout)
 *
 * (Vaswani et al. 2017; Press, Smith and Lewis 2022 for |slopes|; Gemma 2 for |softcap|). kept is drawn from Philox as
 * documented in op/random.h: word j % 4 of block offset + (((b * heads + h) * queries + i) * ceil(keys / 4) + j / 4),
 * as a number in [0, 1), is at least |dropout|. One call uses
 * batch * heads * queries * ceil(keys / 4) blocks, and the backward call is given the same. */
typedef struct rdna_sdpa {
  size_t size; /* of the struct: RDNA_SDPA_INIT sets it */
  float scale;
  float softcap; /* 0 is none */
  float dropout; /* in [0, 1) */
  bool causal;   /* the same as a |right| of 0 */
  bool windowed; /* |left| and |right| are used */
  rdna_diagonal diagonal;
  int32_t left, right; /* at least 0 */
  uint64_t seed, offset;
  const rdna_tensor *mask;   /* NULL, or (batch or 1, heads or 1, queries or 1, keys): bool, false hides the key; or
                                f32 or the type of q, added to the scores */
  const rdna_tensor *slopes; /* NULL, or (heads) or (batch, heads) of f32 */
  /* NULL, or (batch + 1) i32 in ascending order: sequence b is the rows from starts[b] to starts[b + 1] of tensors
   * of rank 3. Both or neither. */
  const rdna_tensor *q_starts, *k_starts;
  int64_t max_queries, max_keys; /* of one sequence, with starts. Fewer than there are is slow, not wrong, but for
                                    |dropout|, which numbers its draws by them */
  const rdna_tensor *sinks;      /* NULL, or (heads) f32, contiguous: of each head a score without a key and a value */
} rdna_sdpa;
#define RDNA_SDPA_INIT .size = sizeof(rdna_sdpa)

/* |q| is (batch, heads, queries, d), |k| (batch, kv_heads, keys, d), |v| (batch, kv_heads, keys, dv) and |out|
 * (batch, heads, queries, dv); with starts, (rows, heads, d) and so on. All are f32, f16 or bf16 alike, of any strides,
 * so that (batch, queries, heads, d) in memory is a view; the last dimension dense, every address, stride, d and dv
 * a multiple of 16 bytes is fast, anything else is copied first. d is 1 to 576 and dv 1 to 512; where gradients are
 * made, both up to 256. Query head h reads key head h / (heads / kv_heads). |lse|, NULL or f32 (batch, heads, queries),
 * contiguous; (heads, rows) with starts. A query that sees nothing, or only scores of -inf, gives zeros and an lse of
 * -inf, or with |sinks| of the sink. A NaN or infinity in a value that is hidden by a mask may reach the result, as 0
 * times it is NaN. |out| and |lse| overlap nothing else.
 *
 * Products are exact and summed in f32; probabilities are rounded to the type before they meet v.
 *
 * The tokens of one sequence over a cache (slots, kv_heads, d) of f16 may come here instead of to rdna_op_attention,
 * which sums in f32 and uses no matrix units: |q| and |out| are f16 (tokens, heads, d), seen with a batch of 1 and two
 * dimensions swapped; |k| and |v| are so seen the cache's rows from the sequence's first to its last token's; causal,
 * diagonal bottom right, and for a window |left| is one less than it. Rows behind these are not read.
 *
 * RDNA_INVALID_ARGUMENT: shapes, types or options that disagree, overlap. RDNA_UNSUPPORTED: another type or a larger d,
 * more than 65,535 heads or sequences, more than 2^31 - 1 - 512 rows. */
RDNA_CHECKED rdna_status rdna_op_sdpa(rdna_stream *stream, const rdna_sdpa *options, const rdna_tensor *q,
                                      const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *out,
                                      const rdna_tensor *lse);

/* Gradients of the same call: of |q|, |k|, |v| and a mask that is added, like them in shape and type and of any
 * strides; a NULL one is not made. |out|, |lse| and |options| are what rdna_op_sdpa was given and wrote, |dout| is like
 * |out|. Where a size of the mask is 1, its gradient is the sum over what the mask is the same for, in f32. No gradient
 * is made of the slopes and the sinks. The bits are the same from run to run. The gradients overlap nothing else.
 *
 * RDNA_INVALID_ARGUMENT: as above, and |dmask| without a mask or with one of bool. */
RDNA_CHECKED rdna_status rdna_op_sdpa_backward(rdna_stream *stream, const rdna_sdpa *options, const rdna_tensor *q,
                                               const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *out,
                                               const rdna_tensor *lse, const rdna_tensor *dout, const rdna_tensor *dq,
                                               const rdna_tensor *dk, const rdna_tensor *dv, const rdna_tensor *dmask);

#ifdef __cplusplus
}
#endif
#endif
