/* Mixtures of experts: which experts a token takes, and products with the weights of those alone. */
#ifndef RDNA_OP_MOE_H
#define RDNA_OP_MOE_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a router's logits become: the score of an expert. */
typedef enum rdna_moe_score {
  RDNA_MOE_SCORE_SOFTMAX = 0, /* over all experts: Mixtral, Qwen 3 */
  RDNA_MOE_SCORE_CHOSEN,      /* the logit; softmax over those that are chosen: gpt-oss */
  RDNA_MOE_SCORE_SIGMOID,     /* DeepSeek V3 */
  RDNA_MOE_SCORE_COUNT
} rdna_moe_score;

typedef struct rdna_moe_routing {
  size_t size; /* of the struct: RDNA_MOE_ROUTING_INIT sets it */
  rdna_moe_score score;
  bool normalised;         /* weights are divided by their sum + 1e-20 */
  int32_t groups;          /* of neighbouring experts, all of one size, up to 32; 0 or 1 is none */
  int32_t groups_kept;     /* how many groups a token may choose from */
  int32_t group_best;      /* a group ranks by the sum of its 1 or 2 best experts: DeepSeek V2, V3 */
  float scale;             /* of the weights; 1 changes nothing */
  const rdna_tensor *bias; /* NULL, or (experts) f32, contiguous: added to scores where experts are ranked */
} rdna_moe_routing;
#define RDNA_MOE_ROUTING_INIT .size = sizeof(rdna_moe_routing)

/* Of each token the k experts that rank first, by score + bias, and their weights, from the scores alone:
 *
 *     logits (tokens, experts)  ->  score, + bias  ->  the best groups  ->  the k best in these
 *                                     |                                          |
 *                                     +------- weights (tokens, k) <--------  indices (tokens, k)
 *
 * |logits| are f32 with rows of any stride, up to 1,024 experts; |indices| i32 and |weights| f32, contiguous, k up to
 * 32. The best come first, of equal ones the lower index; a NaN ranks before all numbers. The bits are the same on
 * every device. Empty is RDNA_OK.
 *
 * RDNA_INVALID_ARGUMENT: shapes, types or options that disagree, a k that is more than the experts that may be chosen,
 * missing data, overlap. RDNA_UNSUPPORTED: more experts, groups or k, gaps. */
RDNA_CHECKED rdna_status rdna_op_moe_route(rdna_stream *stream, const rdna_moe_routing *options,
                                           const rdna_tensor *logits, const rdna_tensor *indices,
                                           const rdna_tensor *weights);

typedef struct rdna_moe_product {
  size_t size;               /* of the struct: RDNA_MOE_PRODUCT_INIT sets it */
  bool add;                  /* with |shares|: to what |out| holds, as a residual connection does */
  bool may_round;            /* values may be rounded: see the table below */
  const rdna_tensor *bias;   /* NULL, or (experts, n) f32, contiguous */
  const rdna_tensor *shares; /* NULL, or (tokens, top) f32, contiguous: the slots of a token become one row */
} rdna_moe_product;
#define RDNA_MOE_PRODUCT_INIT .size = sizeof(rdna_moe_product)

/* Slot (t, i) is the i-th expert of token t, e = indices(t, i). Its product is
 *
 *     y(t, i) = x weights(e)^T + bias(e)       x is row t of |x| (tokens, k), or row (t, i) of |x| (tokens, top, k)
 *
 * |out| (tokens, top, n) are these; with |shares|, |out| (tokens, n) = sum over i of shares(t, i) y(t, i), added in the
 * order of i. |x| is f32, f16 or bf16, |out| f32, their rows contiguous with one stride between them. |weights| is
 * (experts, n, k), contiguous, f32, f16, bf16 or a type of blocks, aligned as rdna/op/quant.h says; |indices| (tokens,
 * top) i32, contiguous. A slot whose index is not that of an expert gives zeros, and nothing to a sum.
 *
 * For few tokens only the weights of experts that are chosen are read, once for each slot, in one launch (after a copy
 * of an x of 16 bits). For many, and for any number where x is f16 and weights are in blocks on a GPU, slots are sorted
 * by their experts and share tiles of weights, in two launches, or three with |shares|; these take memory from the
 * device's pool for the time of the call, tokens * top * n values of f32.
 *
 *     x     | weights       | slots                | products
 *     f16   | blocks        | at most 12 an expert | on a GPU, rows of x at multiples of 16 bytes: on matrix units, of
 *           |               |                      | weights whose scales and minimums, and then they, become f16
 *     f16   | f16 or blocks | more than experts    | on matrix units, of weights in blocks rounded to f16
 *     bf16  | bf16          | more than experts    | on matrix units
 *     others                                       | in f32; a copy of an x of 16 bits lies in the device's memory pool
 *
 * With |may_round| the host makes x of f32 that meets weights in blocks whole numbers of 16 bits, with one unit for 32
 * neighbours: a relative squared error of about 1e-9.
 *
 * |out| overlaps nothing else. Empty is RDNA_OK. RDNA_INVALID_ARGUMENT: shapes or types that disagree, |add| without
 * |shares|, no experts for slots that there are, missing data, overlap. RDNA_UNSUPPORTED: another type, layout or
 * alignment, more than 1,024 experts. */
RDNA_CHECKED rdna_status rdna_op_moe_linear(rdna_stream *stream, const rdna_moe_product *options, const rdna_tensor *x,
                                            const rdna_tensor *weights, const rdna_tensor *indices,
                                            const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
