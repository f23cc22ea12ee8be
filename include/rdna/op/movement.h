/* Operators that move values and compute nothing, on tensors of any strides, up to rank 8. Values may be of any type
 * but the quantized ones. No two values of |out| may share a place, and the range of bytes that |out| spans
 * must not overlap that of an input. Empty tensors are RDNA_OK. RDNA_INVALID_ARGUMENT: types or shapes that disagree,
 * missing data, overlap. RDNA_UNSUPPORTED: quantized types. */
#ifndef RDNA_OP_MOVEMENT_H
#define RDNA_OP_MOVEMENT_H

#include "rdna/scalar.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = x, broadcast to out's shape. Types may differ: floats become integers towards zero, limited to the type's
 * range, a NaN becoming 0; integers wrap; bool is whether it is not 0; what becomes a narrower float than f32 passes
 * through it. */
RDNA_CHECKED rdna_status rdna_op_copy(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out);

/* All of |out| is |value|. A diagonal is a tensor of rank 1 with the sum of two strides. */
RDNA_CHECKED rdna_status rdna_op_fill(rdna_stream *stream, rdna_scalar value, const rdna_tensor *out);

/* out[i] = start + i * step, out of rank 1. Floats are computed in f64 and rounded. */
RDNA_CHECKED rdna_status rdna_op_arange(rdna_stream *stream, rdna_scalar start, rdna_scalar step,
                                        const rdna_tensor *out);

/* |count| tensors one after another along |dim|; a negative one counts from the last. */
RDNA_CHECKED rdna_status rdna_op_cat(rdna_stream *stream, const rdna_tensor *const *inputs, int count, int dim,
                                     const rdna_tensor *out);

/* out[i] = x[n - 1 - i] in the dimensions whose bit of |dims| is set (bit 0: the slowest). */
RDNA_CHECKED rdna_status rdna_op_flip(rdna_stream *stream, const rdna_tensor *x, uint32_t dims, const rdna_tensor *out);

typedef enum rdna_pad_mode {
  RDNA_PAD_MODE_CONSTANT = 0,
  RDNA_PAD_MODE_REFLECT,   /* c b | a b c | b a */
  RDNA_PAD_MODE_REPLICATE, /* a a | a b c | c c */
  RDNA_PAD_MODE_CIRCULAR,  /* b c | a b c | a b : with before = shift and equal shapes, a roll */
  RDNA_PAD_MODE_COUNT
} rdna_pad_mode;

/* out[i] = x[i - before], and by |mode| outside of x. |before| has one number for each dimension; a negative one, or
 * an |out| that ends earlier, cuts. Reflection reaches less
 * than x's size, and circular at most it. */
RDNA_CHECKED rdna_status rdna_op_pad(rdna_stream *stream, rdna_pad_mode mode, const rdna_tensor *x,
                                     const int64_t *before, rdna_scalar value, const rdna_tensor *out);

/* x where column - row <= diagonal (lower) or >= diagonal (upper) in the last two dimensions, else 0. */
RDNA_CHECKED rdna_status rdna_op_triangle(rdna_stream *stream, const rdna_tensor *x, bool upper, int64_t diagonal,
                                          const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
