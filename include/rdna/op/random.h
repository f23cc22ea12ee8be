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

/* Samples whose parameters are tensors: f32, f16, bf16 or f64, |out| of the same type and shape; |out| may be one of
 * them. Computed in f64. A call for n values uses the counters from |offset| to |offset| + n - 1. What is no parameter
 * of the distribution gives NaN. */
/* Density x^(shape - 1) exp(-x) / Gamma(shape). By Marsaglia and Tsang (2000). At least 2^-24 in f16, 2^-126 in f32 and
 * bf16, 2^-1022 in f64, which is also what a shape of 0 gives. */
RDNA_CHECKED rdna_status rdna_op_random_gamma(rdna_stream *stream, uint64_t seed, uint64_t offset,
                                              const rdna_tensor *shape, const rdna_tensor *out);
/* k with probability rate^k exp(-rate) / k!. By inversion below rate 10, then by Hörmann's PTRS (1993). */
RDNA_CHECKED rdna_status rdna_op_random_poisson(rdna_stream *stream, uint64_t seed, uint64_t offset,
                                                const rdna_tensor *rate, const rdna_tensor *out);
/* How many of |count| trials succeed, each with |probability|; of a |count| that is not whole, its whole part. By
 * inversion below an expected number of 10, then by Hörmann's BTRS (1993). 0 of a count or a probability below 0, the
 * count of a probability above 1. */
RDNA_CHECKED rdna_status rdna_op_random_binomial(rdna_stream *stream, uint64_t seed, uint64_t offset,
                                                 const rdna_tensor *count, const rdna_tensor *probability,
                                                 const rdna_tensor *out);
/* Along the last dimension gamma samples over their sum, at least what those are. */
RDNA_CHECKED rdna_status rdna_op_random_dirichlet(rdna_stream *stream, uint64_t seed, uint64_t offset,
                                                  const rdna_tensor *concentration, const rdna_tensor *out);
/* How a sample moves with a parameter while its probability stays (Figurnov, Mohamed and Mnih, "Implicit
 * reparameterization gradients", 2018). Of rdna_op_random_gamma, d sample / d shape, to 1e-12; 0 of a sample 0. */
RDNA_CHECKED rdna_status rdna_op_random_gamma_gradient(rdna_stream *stream, const rdna_tensor *shape,
                                                       const rdna_tensor *sample, const rdna_tensor *out);
/* Of each value of rdna_op_random_dirichlet, d sample / d concentration / (1 - sample), the other concentrations
 * staying as they are; |total| is their sum with this one, for each value. To 1e-11, or 1e-8 where it and the sum of
 * the others are above 1e5. With g for the gradient by the samples of a row, that by its concentrations is out (g - sum
 * of sample g). */
RDNA_CHECKED rdna_status rdna_op_random_dirichlet_gradient(rdna_stream *stream, const rdna_tensor *sample,
                                                           const rdna_tensor *concentration, const rdna_tensor *total,
                                                           const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
