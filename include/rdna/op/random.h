/* Random numbers from Philox4x32-10, and dropout.
 *
 * A value depends on |seed|, |offset| and its place alone: not on the device, the grid or what was drawn before. A call
 * for n values uses the counters from |offset| to |offset| + ceil(n / 4) - 1, or ceil(n / 2) - 1 for integers; begin
 * the next call after them. Tensors are contiguous. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data,
 * overlap, a parameter out of its range. RDNA_UNSUPPORTED: another type or layout. */
#ifndef RDNA_OP_RANDOM_H
#define RDNA_OP_RANDOM_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In f32, f16 or bf16, from 24 bits each. Uniform in [low, high), both as |out|'s type has them. */
RDNA_CHECKED rdna_status rdna_op_random_uniform(rdna_stream *stream, uint64_t seed, uint64_t offset, float low,
                                                float high, const rdna_tensor *out);
RDNA_CHECKED rdna_status rdna_op_random_normal(rdna_stream *stream, uint64_t seed, uint64_t offset, float mean,
                                               float deviation, const rdna_tensor *out);
/* 1 with |probability|, else 0. */
RDNA_CHECKED rdna_status rdna_op_random_bernoulli(rdna_stream *stream, uint64_t seed, uint64_t offset,
                                                  float probability, const rdna_tensor *out);
/* Density rate * exp(-rate * x), above 0. */
RDNA_CHECKED rdna_status rdna_op_random_exponential(rdna_stream *stream, uint64_t seed, uint64_t offset, float rate,
                                                    const rdna_tensor *out);
/* In i32 or i64, uniform in [low, high), with all of it in the type. */
RDNA_CHECKED rdna_status rdna_op_random_integers(rdna_stream *stream, uint64_t seed, uint64_t offset, int64_t low,
                                                 int64_t high, const rdna_tensor *out);
/* out = 0 with |probability|, else x / (1 - probability); mask (u8 or bool) is 1 where x was kept. |out| may be |x|. */
RDNA_CHECKED rdna_status rdna_op_dropout(rdna_stream *stream, uint64_t seed, uint64_t offset, float probability,
                                         const rdna_tensor *x, const rdna_tensor *out, const rdna_tensor *mask);
/* dx = dout / (1 - probability) where |mask| is not 0, else 0. |dx| may be |dout|. */
RDNA_CHECKED rdna_status rdna_op_dropout_backward(rdna_stream *stream, float probability, const rdna_tensor *dout,
                                                  const rdna_tensor *mask, const rdna_tensor *dx);

#ifdef __cplusplus
}
#endif
#endif
