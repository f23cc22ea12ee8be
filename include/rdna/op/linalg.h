/* Factorizations of matrices and systems that they solve. */
#ifndef RDNA_OP_LINALG_H
#define RDNA_OP_LINALG_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Cholesky's factor of symmetric positive definite matrices a (batch, n, n), f32 or f64, in place: a = L L^T, or with
 * |upper| U^T U. Only that triangle counts, and holds the factor afterwards; what is above the diagonal (with |upper|
 * below it) is 0 then. One of the last two strides of |a| is 1. |info| is a contiguous i32 (batch): 0, or the order of
 * the first leading minor that is not positive definite (a NaN is not), as LAPACK counts; the triangle of such a matrix
 * is then unspecified. n or batch 0 is RDNA_OK. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data,
 * overlap. RDNA_UNSUPPORTED: another type or layout, or more than 2^31 - 1 rows. */
RDNA_CHECKED rdna_status rdna_op_cholesky(rdna_stream *stream, bool upper, const rdna_tensor *a,
                                          const rdna_tensor *info);

/* x (batch, n, columns) becomes the solution of a x' = x, by the lower triangle of a (batch, n, n), or with |upper| the
 * upper one; what is on the other side is not read, and with |unit| nor is the diagonal, which is 1. f32 or f64. In
 * both one of the last two strides is 1: a transposed system, or one from the right, is one of views with swapped
 * strides. A zero on the diagonal gives infinities and NaN. Any size may be 0. RDNA_INVALID_ARGUMENT: shapes or types
 * that disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or layout. */
RDNA_CHECKED rdna_status rdna_op_solve_triangular(rdna_stream *stream, bool upper, bool unit, const rdna_tensor *a,
                                                  const rdna_tensor *x);

/* LU with partial pivoting of matrices a (batch, m, n), f32 or f64, in place: below the diagonal L, whose diagonal is 1
 * and is not stored, on and above it U. In order j, rows j and pivots[j] - 1 changed places: pivots is a contiguous i32
 * (batch, min(m, n)), counted from 1 as LAPACK counts. With |pivoted| false rows stay. One of the last two strides of
 * |a| is 1. |info| is a contiguous i32 (batch): 0, or the first column, from 1, whose diagonal in U is exactly 0; the
 * factorization goes on past it. A NaN counts as larger than any number. Any size may be 0. RDNA_INVALID_ARGUMENT:
 * shapes or types that disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or layout. */
RDNA_CHECKED rdna_status rdna_op_lu(rdna_stream *stream, bool pivoted, const rdna_tensor *a, const rdna_tensor *pivots,
                                    const rdna_tensor *info);

/* The same of complex matrices of m rows and n columns, in place: a is a contiguous (batch, n, m, 2) of f32 or f64,
 * each matrix by its columns, pairs of a real and an imaginary part. A pivot is the value whose parts' magnitudes have
 * the largest sum, so that those of L's values are at most the root of 2. One launch, a group for each matrix. |pivots|
 * (batch, min(m, n)) and |info| (batch) as above. Any size may be 0. RDNA_INVALID_ARGUMENT: shapes or types that
 * disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or layout, more than 1024 rows or columns. */
RDNA_CHECKED rdna_status rdna_op_complex_lu(rdna_stream *stream, bool pivoted, const rdna_tensor *a,
                                            const rdna_tensor *pivots, const rdna_tensor *info);

/* L D L^T of symmetric matrices, which need not be definite, in place, with the pivots of Bunch and Kaufman, as
 * LAPACK's sytrf has them of a lower triangle. |a| is a contiguous (batch, n, n) of f32 or f64, each matrix by its
 * columns; what is above the diagonal is neither read nor written. On the diagonal are D's blocks, of one row or, where
 * rows k and k + 1 of |pivots| are negative, of two, with their value below the diagonal; below the blocks is L, whose
 * diagonal is 1 and is not stored. In order k, a block's last row changed places with row |pivots[k]| - 1, and the
 * columns before the block did not. |pivots| is a contiguous i32 (batch, n), |info| (batch): 0, or the first row, from
 * 1, whose block of D is exactly 0 (or NaN); the factorization goes on past it. One launch, a group for each matrix. n
 * or batch 0 is RDNA_OK. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, overlap. RDNA_UNSUPPORTED:
 * another type or layout, more than 1024 rows. */
RDNA_CHECKED rdna_status rdna_op_ldl(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *pivots,
                                     const rdna_tensor *info);

/* Rows j and pivots[j] - 1 of x (batch, rows, columns), f32 or f64, change places, for j from 0 on, or with |backwards|
 * from the last to 0, which undoes it. |pivots| is a contiguous i32 (batch, up to rows); where it names
 * no row, from 1, none moves. One of the last two strides of |x| is 1; any size may be 0. RDNA_INVALID_ARGUMENT:
 * shapes or types that disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or layout. */
RDNA_CHECKED rdna_status rdna_op_swap_rows(rdna_stream *stream, bool backwards, const rdna_tensor *pivots,
                                           const rdna_tensor *x);

/* QR of matrices a (batch, m, n), f32 or f64, in place: on and above the diagonal R, below it the vectors of min(m, n)
 * reflections H(j) = 1 - tau[j] v v^T, v being 0 in rows before j and 1, which is not stored, in row j; Q is H(0) H(1)
 * … as LAPACK's geqrf has it. |tau| is a contiguous (batch, min(m, n)) of a's type. One of the last two strides of |a|
 * is 1; any size may be 0. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, overlap.
 * RDNA_UNSUPPORTED: another type or layout. */
RDNA_CHECKED rdna_status rdna_op_qr(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *tau);

/* x (batch, m, columns) becomes Q x, or with |transposed| Q^T x, Q being the product of the reflections in a
 * (batch, m, n) and tau (batch, up to min(m, n)), as rdna_op_qr leaves them. |upper| promises that x is 0 below its
 * diagonal, which saves work, and is for Q x only. Of both matrices one of the last two strides is 1: a product from
 * the right is one of a view with swapped strides. Any size may be 0. RDNA_INVALID_ARGUMENT: shapes or types that
 * disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or layout. */
RDNA_CHECKED rdna_status rdna_op_reflect(rdna_stream *stream, bool transposed, bool upper, const rdna_tensor *a,
                                         const rdna_tensor *tau, const rdna_tensor *x);

/* The columns of a (batch, m, n), f32 or f64, are turned until they are orthogonal: a becomes a V with an orthogonal V
 * (Jacobi's method from one side), so that their lengths are the singular values, in no order. |turned| is a contiguous
 * i32 (batch, sweeps), at most that many sweeps over all pairs of columns: 1 where the sweep met a pair with an angle
 * that is not small; if its last column is 0 they are orthogonal. Ten are enough for most, twenty for nearly all.
 * Columns not longer than |negligible|, in f32 than 2^-50, in f64 than 2^-450, are left alone: what is nothing beside
 * the largest should be, since its directions are those of errors. Squares are computed, so values should be of a size
 * near 1. One of the last two strides of |a| is 1; any size may be 0. RDNA_INVALID_ARGUMENT: shapes or types that
 * disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or layout. */
RDNA_CHECKED rdna_status rdna_op_orthogonalize(rdna_stream *stream, double negligible, const rdna_tensor *a,
                                               const rdna_tensor *turned);

/* Symmetric matrices a (batch, n, n), f32 or f64, are turned from both sides until they are diagonal: a becomes V^T a V
 * with an orthogonal V (Jacobi's method), so that the diagonal holds the eigenvalues, in no order, and v (batch, m, n)
 * becomes v V: the eigenvectors where it was the identity. |v| may be NULL. Of a graded matrix, whose values are D M D
 * with a diagonal D and M neither large nor nearly singular, also the smallest are right to their last digits (Demmel
 * and Veselic, 1992), and their vectors. |turned| is a contiguous i32 (batch, sweeps), at most that many sweeps over
 * all pairs of columns: 1 where the sweep met a value that is not small beside the root of the product of the two on
 * the diagonal; if its last column is 0 they are diagonal, else a second call goes on. Ten are enough for most, 25 for
 * nearly all; two launches are a sweep's 16 columns, and one is all of up to 32 columns. Values should be of a size
 * near 1: those up to 2^-100, in f64 2^-900, count as 0, and there may be more than 0 off the diagonal in the end. Both
 * triangles of |a| are read, and must be alike. One of the last two strides of each is 1; any size may be 0.
 * RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or
 * layout, more than 2^19 rows. */
RDNA_CHECKED rdna_status rdna_op_diagonalize(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *v,
                                             const rdna_tensor *turned);

/* Eigenvalues of matrices a (batch, n, n), f32 or f64, that need not be symmetric, and with |vectors|, which may be
 * NULL, their right eigenvectors. |values| is (batch, n, 2), pairs of a real and an imaginary part, of a's type;
 * vectors (batch, n, n, 2) has that of value j in row j, of length 1, whose largest value is real where the
 * eigenvalue is not. Both are contiguous. Values that are not real stand in pairs that are exactly conjugate, first the
 * one with a positive imaginary part, as do their vectors; otherwise they are in no order. |info| is a contiguous i32
 * (batch): 0, or that many values of that matrix were not found, n where a value of it is not finite; what else is said
 * of such a matrix is unspecified. Values are those of a matrix whose difference from |a|, balanced by powers of two,
 * is some n eps |a|; of a matrix that lacks n independent vectors some are nearly alike. One of a's last two strides is
 * 1. One launch, a group for each matrix: many matrices take hardly longer than one. n or batch 0 is RDNA_OK.
 * RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data, overlap. RDNA_UNSUPPORTED: another type or
 * layout, more than 256 rows. */
RDNA_CHECKED rdna_status rdna_op_eigen(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *values,
                                       const rdna_tensor *vectors, const rdna_tensor *info);

#ifdef __cplusplus
}
#endif
#endif
