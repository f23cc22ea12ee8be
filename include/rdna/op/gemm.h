/* Products of matrices. */
#ifndef RDNA_OP_GEMM_H
#define RDNA_OP_GEMM_H

#include <stdbool.h>

#include "rdna/op/activation.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* c (m, n) = alpha * a (m, k) b (k, n) + beta * c + bias (n), summed in f32. All of rank 2, or of rank 3 with the same
 * first size, the batch; a stride of 0 there uses one matrix for all. A transposed operand is a view with swapped
 * shape and strides; where none of the last two strides is 1, a copy of the operand is multiplied. The last stride of
 * |c| is 1. Types of (a, b, c): f32
 * throughout; f64 throughout, and summed in it; f32 with a |b| of f16 or bf16 and a |c| of f32; f16 or bf16 with a |c|
 * of the same or of f32. |bias| has the type of |c| and is contiguous, or is NULL. With beta 0 the old |c| is not read,
 * so that a NaN there is gone. |c| does not overlap the others. m, n or batch 0 is RDNA_OK; k 0 gives beta * c + bias.
 * RDNA_INVALID_ARGUMENT: shapes that disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or layout, an m, n
 * or k above 2^31 - 2^16. */
RDNA_CHECKED rdna_status rdna_op_gemm(rdna_stream *stream, float alpha, const rdna_tensor *a, const rdna_tensor *b,
                                      float beta, const rdna_tensor *bias, const rdna_tensor *c);

/* What may follow a product. All zero but alpha 1 is none of it. */
typedef struct rdna_gemm_epilogue {
  size_t size; /* of the struct: RDNA_GEMM_EPILOGUE_INIT sets it */
  float alpha, beta;
  const rdna_tensor *bias; /* (n), or with |bias_per_row| (m), of the type of |c|, contiguous; or NULL */
  bool bias_per_row;
  rdna_activation activation;
  const rdna_tensor *residual; /* of |c|'s shape and type, without overlap with it, last stride 1; or NULL */
} rdna_gemm_epilogue;
#define RDNA_GEMM_EPILOGUE_INIT .size = sizeof(rdna_gemm_epilogue)

/* c = activation(alpha * a b + beta * c + bias) + residual, rounded to the type of |c| once. Otherwise as rdna_op_gemm.
 * RDNA_INVALID_ARGUMENT: no such activation, a bias or residual of another shape or type. RDNA_UNSUPPORTED: an
 * activation in f64. */
RDNA_CHECKED rdna_status rdna_op_gemm_epilogue(rdna_stream *stream, const rdna_gemm_epilogue *epilogue,
                                               const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *c);

/* Products of signed bytes: c (m, n) = a (m, k) b (k, n), both i8, of any strides, of rank 2 or 3 as above. Into i32
 * the sum, exact modulo 2^32: |scale_a|, |scale_b| and |epilogue| are NULL then. Into f32, f16 or bf16 the |epilogue|,
 * or NULL for none, of scale_a scale_b sum: f32 scales of 1 value or one for each row (column) of |c|. Operands whose
 * rows along k begin at multiples of 16 bytes, with an even k, are read in place, others are copied first.
 * RDNA_INVALID_ARGUMENT: shapes that disagree, missing data or scales, overlap. RDNA_UNSUPPORTED: another type, a size
 * above 2^31 - 2^16 or a batch above 65,535. */
RDNA_CHECKED rdna_status rdna_op_gemm_i8(rdna_stream *stream, const rdna_gemm_epilogue *epilogue, const rdna_tensor *a,
                                         const rdna_tensor *scale_a, const rdna_tensor *b, const rdna_tensor *scale_b,
                                         const rdna_tensor *c);

/* Products of 8-bit floats, summed in f32: the |epilogue|, or NULL for none, of scale_a scale_b times the sum, into f32,
 * f16 or bf16. |a| is E4M3 or E5M2 and so is |b|, both of OCP's formats or both FNUZ, not both E5M2; strides, ranks and
 * scales as above. Units that take these types multiply them (OCP's on RDNA 4, the FNUZ ones and OCP's E4M3 on gfx942);
 * elsewhere they are made f16 or bf16, in which they are exact, on their way to the units. RDNA_INVALID_ARGUMENT and
 * RDNA_UNSUPPORTED: as above, and RDNA_UNSUPPORTED for another pair. */
RDNA_CHECKED rdna_status rdna_op_gemm_f8(rdna_stream *stream, const rdna_gemm_epilogue *epilogue, const rdna_tensor *a,
                                         const rdna_tensor *scale_a, const rdna_tensor *b, const rdna_tensor *scale_b,
                                         const rdna_tensor *c);

/* Products of groups whose sizes the host does not know: |ends| (groups) i32, contiguous, says where each group ends,
 * the first beginning at 0. Ranks say what is cut:
 *
 *     a (m, k), b (groups, k, n), c (m, n)    rows: row i of c is row i of a times the matrix of its group
 *     a (groups, m, k), b (k, n), c (m, n)    columns: column j of c is the matrix of its group times column j of b
 *     a (m, k), b (k, n), c (groups, m, n)    sums: matrix g of c is what its group's part of k gives
 *
 * All f32, f16 or bf16, summed in f32; one of the last two strides of |a| and of |b| is 1, and the last of |c|, which
 * overlaps nothing. A group of nothing gives zeros, and so do rows and columns behind the last end; an end that is less
 * than the one before or past the size is taken for these. Without groups c of the first two is zeros. Empty is RDNA_OK.
 * RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or layout,
 * a size above 2^31 - 2^16, more than 65,535 groups. */
RDNA_CHECKED rdna_status rdna_op_gemm_grouped(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *b,
                                              const rdna_tensor *ends, const rdna_tensor *c);

#ifdef __cplusplus
}
#endif
#endif
