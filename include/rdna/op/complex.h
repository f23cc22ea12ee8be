/* Arithmetic of complex numbers. */
#ifndef RDNA_OP_COMPLEX_H
#define RDNA_OP_COMPLEX_H

#include <stdbool.h>

#include "rdna/op/complex.def"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A complex tensor holds pairs of reals, f32 or f64: its last dimension has size 2 and stride 1, as in rdna/op/fft.h.
 * Its data is at a multiple of a pair's bytes, its other strides are even. Sums, differences, negation, copies and
 * choices need nothing of their own: they are those of the reals (rdna/op/pointwise.h, rdna/op/reduce.h), over the
 * pairs as one more dimension.
 *
 * In all of these |out| does not overlap an input, but where it is that input; an input is broadcast to |out|, whose
 * pairs do not count. Empty tensors are RDNA_OK. RDNA_INVALID_ARGUMENT: no such operation, shapes or types that
 * disagree, missing data, overlap. RDNA_UNSUPPORTED: another type, pairs that are not contiguous or not aligned, more
 * than 7 dimensions beside them. */
typedef struct rdna_complex {
  double real, imag;
} rdna_complex;

#define RDNA_COMPLEX_MAP_NAME_(NAME, name) RDNA_COMPLEX_##NAME,
#define RDNA_COMPLEX_ZIP_NAME_(NAME, name) RDNA_COMPLEX_##NAME,
#define RDNA_COMPLEX_MEASURE_NAME_(NAME, name) RDNA_COMPLEX_##NAME,
typedef enum rdna_complex_map { RDNA_COMPLEX_MAPS(RDNA_COMPLEX_MAP_NAME_) RDNA_COMPLEX_MAP_COUNT } rdna_complex_map;
typedef enum rdna_complex_zip { RDNA_COMPLEX_ZIPS(RDNA_COMPLEX_ZIP_NAME_) RDNA_COMPLEX_ZIP_COUNT } rdna_complex_zip;
typedef enum rdna_complex_measure {
  RDNA_COMPLEX_MEASURES(RDNA_COMPLEX_MEASURE_NAME_) RDNA_COMPLEX_MEASURE_COUNT
} rdna_complex_measure;

/* out = f(x), computed in f64 whatever the type. Of f64, the error is below 16 units in the last place of |out|'s
 * magnitude. */
RDNA_CHECKED rdna_status rdna_op_complex_map(rdna_stream *stream, rdna_complex_map op, const rdna_tensor *x,
                                             const rdna_tensor *out);
/* out = f(a, b), in the type; RDNA_COMPLEX_POW in f64, whose error grows with the magnitude of b log(a). */
RDNA_CHECKED rdna_status rdna_op_complex_zip(rdna_stream *stream, rdna_complex_zip op, const rdna_tensor *a,
                                             const rdna_tensor *b, rdna_complex p, const rdna_tensor *out);
/* The same with a number in b's place, or in a's if |scalar_first|. */
RDNA_CHECKED rdna_status rdna_op_complex_zip_scalar(rdna_stream *stream, rdna_complex_zip op, const rdna_tensor *x,
                                                    rdna_complex scalar, bool scalar_first, rdna_complex p,
                                                    const rdna_tensor *out);
/* |out| is real: it has the shape of x without the pairs. */
RDNA_CHECKED rdna_status rdna_op_complex_measure(rdna_stream *stream, rdna_complex_measure op, const rdna_tensor *x,
                                                 const rdna_tensor *out);
/* out = |abs| (cos angle + i sin angle), of two real tensors. */
RDNA_CHECKED rdna_status rdna_op_complex_polar(rdna_stream *stream, const rdna_tensor *abs, const rdna_tensor *angle,
                                               const rdna_tensor *out);

/* c (m, n, 2) = alpha a (m, k, 2) b (k, n, 2), added to c if |add|; of a and b the conjugates, where that is asked for.
 * All with a batch in front, or none; a stride of 0 there uses one matrix for all. c has rows of contiguous pairs; a
 * and b have any strides, and are read best where pairs along one of their two dimensions are contiguous. Needs scratch
 * memory of twice the size of b, and of a where its rows are not contiguous. k 0 gives 0, or c. An m, n or k above 2^30
 * - 2^15, or more than 2^31 - 1 values in b, is RDNA_UNSUPPORTED. */
RDNA_CHECKED rdna_status rdna_op_complex_gemm(rdna_stream *stream, rdna_complex alpha, const rdna_tensor *a,
                                              bool conjugate_a, const rdna_tensor *b, bool conjugate_b, bool add,
                                              const rdna_tensor *c);

#ifdef __cplusplus
}
#endif
#endif
