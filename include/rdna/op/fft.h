/* Discrete Fourier transforms along one dimension. */
#ifndef RDNA_OP_FFT_H
#define RDNA_OP_FFT_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A complex number is two reals, f32 or f64, in a last dimension of size 2 and stride 1. |dim| does not count it: of a
 * complex (3, 4, 2) the dimensions are 0 and 1, or -2 and -1. Other strides are any. What is computed is
 *
 *     out[k] = scale * sum over j of x[j] exp(-2 pi i j k / n),    with |inverse| exp(+2 pi i j k / n)
 *
 * of any length n from 1: a product of 2, 3, 5 and 7 directly, others as convolutions (Bluestein, 1970). n is at most
 * 2^24 in f32, 2^22 in f64, half of it for others than such products, which need scratch memory of two to four times
 * their size; up to 4096 values in f32, 2048 in f64, are one pass through memory, longer ones two. |out| does not
 * overlap |x|, but where it is |x| itself and x is complex. Empty tensors of n at least 1 are RDNA_OK.
 * RDNA_INVALID_ARGUMENT: shapes or types that disagree, a length of 0, missing data, overlap. RDNA_UNSUPPORTED: another
 * type, a longer transform, more than 2^31 of them, pairs that are not contiguous. */
RDNA_CHECKED rdna_status rdna_op_fft_c2c(rdna_stream *stream, bool inverse, double scale, const rdna_tensor *x, int dim,
                                         const rdna_tensor *out);
/* The same of real values, as far as it is not the conjugate of what is there: |out| has n / 2 + 1 along |dim|. */
RDNA_CHECKED rdna_status rdna_op_fft_r2c(rdna_stream *stream, double scale, const rdna_tensor *x, int dim,
                                         const rdna_tensor *out);
/* The inverse transform of such a half: |out| is real and has n along |dim|, x has n / 2 + 1. The imaginary parts of
 * the first value, and of the last where n is even, are taken for 0. */
RDNA_CHECKED rdna_status rdna_op_fft_c2r(rdna_stream *stream, double scale, const rdna_tensor *x, int dim,
                                         const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
