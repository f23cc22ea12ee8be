/* Matrices of three diagonals. Systems are solved as whole matrices with pivots (librdna has no solver for a band), so
 * that memory goes with the square of the rows. Of complex numbers each is a matrix of two by two reals. */
#include <math.h>
#include <string.h>

#include "compose.h"
#include "matrix.h"
#include "ops.h"
#include "rdna/op/complex.h"
#include "rdna/op/index.h"
#include "rdna/op/linalg.h"

static bool is_complex(const call *c) {
  TF_DataType type = tf.ExpectedOutputDataType(c->ctx, 0);
  return type == TF_COMPLEX64 || type == TF_COMPLEX128;
}

/* Input |i|, real or as pairs, as (batch, a, b, parts): |*rank| and |shape| are without the parts. */
static rdna_status read_matrices(call *c, int i, int *rank, int64_t *shape, rdna_tensor *out) {
  bool pairs = is_complex(c);
  TRY(pairs ? call_pairs(c, i, out) : call_input(c, i, out));
  *rank = out->rank - pairs;
  memcpy(shape, out->shape, sizeof(int64_t) * RDNA_MAX_RANK);
  if (*rank < 2) return call_fail(c, RDNA_INVALID_ARGUMENT, "input %d must have rank at least 2, not %d", i, *rank);
  int64_t flat[] = {1, shape[*rank - 2], shape[*rank - 1], pairs ? 2 : 1};
  for (int k = 0; k < *rank - 2; k++) flat[0] *= shape[k];
  *out = reshaped(out, 4, flat);
  return RDNA_OK;
}

static rdna_status matrices_out(call *c, int rank, const int64_t *shape, rdna_tensor *out) {
  return is_complex(c) ? call_output_pairs(c, 0, rank, shape, out) : call_output(c, 0, rank, shape, out);
}

/* (batch, …, parts): |a| times |b|, broadcast, into |out| */
static rdna_status multiply(call *c, const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *out) {
  if (is_complex(c)) return rdna_op_complex_zip(c->stream, RDNA_COMPLEX_MUL, a, b, (rdna_complex){0, 0}, out);
  return zip(c, RDNA_ZIP_MUL, a, b, out);
}

/* (superdiagonal, diagonal, subdiagonal: (…, 1, rows); matrices (…, rows, columns)). The first of the subdiagonal and
 * the last of the superdiagonal are not read. */
rdna_status compute_tridiagonal_product(call *c) {
  rdna_tensor diagonal[3], x, out, whole;
  int64_t shape[RDNA_MAX_RANK], other[RDNA_MAX_RANK];
  int rank, other_rank;
  TRY(read_matrices(c, 3, &rank, shape, &x));
  int64_t rows = x.shape[1];
  for (int i = 0; i < 3; i++) {
    TRY(read_matrices(c, i, &other_rank, other, &diagonal[i]));
    if (other_rank != rank || memcmp(shape, other, (size_t)(rank - 2) * sizeof *shape) != 0)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "All input tensors must have the same rank and batch dimensions.");
    if (diagonal[i].shape[1] != 1 || diagonal[i].shape[2] != rows)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "diagonals must be (…, 1, %lld)", (long long)rows);
    diagonal[i] = reshaped(&diagonal[i], 4, (int64_t[]){x.shape[0], rows, 1, x.shape[3]});
  }
  TRY(matrices_out(c, rank, shape, &out));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  whole = reshaped(&out, 4, x.shape);
  TRY(multiply(c, &diagonal[1], &x, &whole));
  for (int i = 0; i < 3 && rows > 1; i += 2) { /* the rows behind, and those before */
    int64_t from = i ? 0 : 1, to = i ? 1 : 0;
    rdna_tensor of = narrowed(&diagonal[i], 1, to, rows - 1), with = narrowed(&x, 1, from, rows - 1),
                into = narrowed(&whole, 1, to, rows - 1), product;
    TRY(like(c, &with, &product));
    TRY(multiply(c, &of, &with, &product));
    TRY(zip(c, RDNA_ZIP_ADD, &into, &product, &into));
  }
  return RDNA_OK;
}

/* The diagonals (batch, 3, rows, parts) as matrices (batch, parts rows, parts rows): those of complex numbers have the
 * real parts in two corners, the imaginary ones in the others. */
static rdna_status as_matrices(call *c, const rdna_tensor *diagonals, rdna_tensor *out) {
  int64_t rows = diagonals->shape[2], parts = diagonals->shape[3];
  TRY(call_scratch(c, diagonals->dtype, 3, (int64_t[]){diagonals->shape[0], parts * rows, parts * rows}, out));
  TRY(fill(c, 0, out));
  for (int down = 0; down < parts; down++)
    for (int across = 0; across < parts; across++) {
      rdna_tensor corner = narrowed(out, 1, down * rows, rows);
      corner = narrowed(&corner, 2, across * rows, rows);
      for (int i = 0; i < 3; i++) { /* super-, main, subdiagonal: the first leaves out its last, the last its first */
        int64_t count = rows - (i != 1);
        rdna_tensor to = diagonal_of(&corner, 1 - i), from = narrowed(diagonals, 1, i, 1);
        from = narrowed(&from, 3, down != across, 1);
        from = narrowed(&from, 2, i == 2, count);
        from.rank = 2;
        from.shape[1] = from.shape[2];
        from.stride[1] = from.stride[2];
        if (count < 1) continue;
        if (down < across) /* minus the imaginary part */
          TRY(map(c, RDNA_MAP_NEG, &from, &to));
        else
          TRY(rdna_op_copy(c->stream, &from, &to));
      }
    }
  return RDNA_OK;
}

/* |x| (batch, rows, columns, parts) as (batch, parts rows, columns) in |flat|, or back. */
static rdna_status move_parts(call *c, const rdna_tensor *x, const rdna_tensor *flat, bool back) {
  int64_t rows = x->shape[1];
  for (int i = 0; i < x->shape[3]; i++) {
    rdna_tensor part = narrowed(x, 3, i, 1), block = narrowed(flat, 1, i * rows, rows);
    part.rank = 3;
    TRY(rdna_op_copy(c->stream, back ? &block : &part, back ? &part : &block));
  }
  return RDNA_OK;
}

/* (diagonals (…, 3, rows), right sides (…, rows, columns)). What has no answer is NaN. */
rdna_status compute_tridiagonal_solve(call *c) {
  rdna_tensor diagonals, b, out, whole, lu, pivots, info, right, singular, none;
  int64_t shape[RDNA_MAX_RANK], other[RDNA_MAX_RANK];
  int rank, other_rank;
  if (c->attributes->perturb_singular) return call_fail(c, RDNA_UNSUPPORTED, "TridiagonalSolve with perturb_singular");
  TRY(read_matrices(c, 0, &other_rank, other, &diagonals));
  TRY(read_matrices(c, 1, &rank, shape, &b));
  if (diagonals.shape[1] != 3)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Expected diagonals to be provided as a matrix with 3 rows, got %lld.",
                     (long long)diagonals.shape[1]);
  if (rank != other_rank || memcmp(shape, other, (size_t)(rank - 2) * sizeof *shape) != 0 ||
      diagonals.shape[2] != b.shape[1])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "diagonals and rhs must have the same batch dimensions and rows");
  TRY(matrices_out(c, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  whole = reshaped(&out, 4, b.shape);
  TRY(as_matrices(c, &diagonals, &lu));
  TRY(call_scratch(c, RDNA_I32, 2, lu.shape, &pivots));
  TRY(call_scratch(c, RDNA_I32, 1, lu.shape, &info));
  TRY(call_scratch(c, b.dtype, 3, (int64_t[]){b.shape[0], lu.shape[1], b.shape[2]}, &right));
  TRY(move_parts(c, &b, &right, false));
  TRY(rdna_op_lu(c->stream, true, &lu, &pivots, &info));
  TRY(rdna_op_swap_rows(c->stream, false, &pivots, &right));
  TRY(rdna_op_solve_triangular(c->stream, false, true, &lu, &right));
  TRY(rdna_op_solve_triangular(c->stream, true, false, &lu, &right));
  TRY(answers(c, RDNA_COMPARE_NE, &info, 0, &singular));
  TRY(call_scratch(c, b.dtype, 0, NULL, &none));
  TRY(fill(c, (double)NAN, &none));
  rdna_tensor mask = reshaped(&singular, 3, (int64_t[]){right.shape[0], 1, 1}),
              nothing = repeated(&none, 3, right.shape);
  mask = repeated(&mask, 3, right.shape);
  TRY(rdna_op_where(c->stream, &mask, &nothing, &right, &right));
  return move_parts(c, &whole, &right, true);
}
