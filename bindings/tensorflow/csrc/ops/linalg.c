/* Factorizations, and what is made of them: systems, inverses, determinants. Matrices of f32 and f64, in batches. */
#include "rdna/op/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compose.h"
#include "matrix.h"
#include "ops.h"

rdna_status call_matrices(call *c, int i, bool square, rdna_tensor *out) {
  TRY(call_input(c, i, out));
  if (out->rank < 2 || (square && out->shape[out->rank - 1] != out->shape[out->rank - 2]))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "input %d must be %s, and has rank %d", i,
                     square ? "square matrices" : "matrices", out->rank);
  return RDNA_OK;
}

/* The dimensions before the last two as one. */
rdna_tensor batch_of(const rdna_tensor *x) {
  int64_t flat[] = {1, x->shape[x->rank - 2], x->shape[x->rank - 1]};
  for (int i = 0; i < x->rank - 2; i++) flat[0] *= x->shape[i];
  return reshaped(x, 3, flat);
}

rdna_status copy_of(call *c, const rdna_tensor *x, rdna_tensor *out) {
  TRY(like(c, x, out));
  return rdna_op_copy(c->stream, x, out);
}

rdna_tensor diagonal_of(const rdna_tensor *x, int64_t first) {
  rdna_tensor view = *x;
  int last = --view.rank;
  int64_t rows = x->shape[last - 1], columns = x->shape[last], from_row = first < 0 ? -first : 0,
          from_column = first > 0 ? first : 0;
  int64_t down = rows - from_row, across = columns - from_column;
  view.shape[last - 1] = down < across ? down : across;
  if (view.shape[last - 1] < 0) view.shape[last - 1] = 0;
  view.stride[last - 1] = x->stride[last - 1] + x->stride[last];
  if (view.data)
    view.data = (char *)view.data + (from_row * x->stride[last - 1] + from_column * x->stride[last]) *
                                        (int64_t)rdna_dtype_bytes(x->dtype, 1);
  return view;
}

static rdna_status identity(call *c, const rdna_tensor *out) {
  rdna_tensor diagonal = diagonal_of(out, 0);
  TRY(fill(c, 0, out));
  return fill(c, 1, &diagonal);
}

/* What a factorization says about its matrices, one i32 for each; |sentence| where one is not 0. The host waits. */
static rdna_status check(call *c, const rdna_tensor *info, const char *sentence) {
  rdna_tensor bad;
  unsigned char any = 0;
  TRY(call_scratch(c, RDNA_BOOL, 0, NULL, &bad));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_ANY, info, 1, 0, &bad));
  TRY(call_read(c, &bad, &any));
  return any ? call_fail(c, RDNA_INVALID_ARGUMENT, "%s", sentence) : RDNA_OK;
}

rdna_status compute_cholesky(call *c) {
  rdna_tensor x, out, info;
  TRY(call_matrices(c, 0, true, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  TRY(rdna_op_copy(c->stream, &x, &out));
  rdna_tensor a = batch_of(&out);
  TRY(call_scratch(c, RDNA_I32, 1, a.shape, &info));
  TRY(rdna_op_cholesky(c->stream, false, &a, &info));
  return check(c, &info, "Cholesky decomposition was not successful. The input might not be valid.");
}

/* Input |i| repeated to the batch, of |rank| dimensions in front, as one batch. */
static rdna_status in_batch(call *c, const rdna_tensor *x, int rank, const int64_t *batch, rdna_tensor *out) {
  int64_t shape[RDNA_MAX_RANK];
  rdna_tensor whole = *x;
  memcpy(shape, batch, (size_t)rank * sizeof *shape);
  shape[rank] = x->shape[x->rank - 2];
  shape[rank + 1] = x->shape[x->rank - 1];
  if (!same_shape(x, rank + 2, shape)) {
    TRY(call_scratch(c, x->dtype, rank + 2, shape, &whole));
    TRY(rdna_op_copy(c->stream, x, &whole));
  }
  *out = batch_of(&whole);
  return RDNA_OK;
}

/* (matrix, right side): by the |lower| triangle, or the transpose of it if |adjoint|. */
rdna_status compute_triangular_solve(call *c) {
  bool adjoint = c->attributes->adjoint, lower = c->attributes->lower;
  rdna_tensor a, b, out, batch, right;
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_matrices(c, 0, true, &a));
  TRY(call_matrices(c, 1, false, &b));
  rdna_tensor front_a = a, front_b = b;
  front_a.rank -= 2;
  front_b.rank -= 2;
  TRY(call_broadcast(c, &front_a, &front_b, &rank, shape));
  if (rank + 2 > RDNA_MAX_RANK || a.shape[a.rank - 1] != b.shape[b.rank - 2])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "In[0] mismatch In[1]: %lld and %lld rows",
                     (long long)a.shape[a.rank - 1], (long long)b.shape[b.rank - 2]);
  TRY(in_batch(c, &a, rank, shape, &batch));
  shape[rank] = b.shape[b.rank - 2];
  shape[rank + 1] = b.shape[b.rank - 1];
  TRY(call_output(c, 0, rank + 2, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(rdna_op_copy(c->stream, &b, &out));
  right = batch_of(&out);
  if (adjoint) batch = transposed(batch);
  return rdna_op_solve_triangular(c->stream, lower == adjoint, false, &batch, &right);
}

struct factors {
  rdna_tensor lu, pivots, info; /* (batch, n, n), (batch, n), (batch) */
};

/* Of the matrices of |x|, or of their transposes. */
static rdna_status factorize(call *c, const rdna_tensor *x, bool turned, struct factors *out) {
  rdna_tensor a = batch_of(x);
  if (turned) a = transposed(a);
  TRY(copy_of(c, &a, &out->lu));
  TRY(call_scratch(c, RDNA_I32, 2, a.shape, &out->pivots));
  TRY(call_scratch(c, RDNA_I32, 1, a.shape, &out->info));
  return rdna_op_lu(c->stream, true, &out->lu, &out->pivots, &out->info);
}

static rdna_status solve(call *c, const struct factors *by, const rdna_tensor *right) {
  TRY(rdna_op_swap_rows(c->stream, false, &by->pivots, right));
  TRY(rdna_op_solve_triangular(c->stream, false, true, &by->lu, right));
  return rdna_op_solve_triangular(c->stream, true, false, &by->lu, right);
}

/* (matrix, right side) */
rdna_status compute_solve(call *c) {
  rdna_tensor a, b, out;
  struct factors factors;
  TRY(call_matrices(c, 0, true, &a));
  TRY(call_matrices(c, 1, false, &b));
  if (a.rank != b.rank || memcmp(a.shape, b.shape, (size_t)(a.rank - 1) * sizeof *a.shape) != 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Input matrix and rhs must have the same batch dimensions and rows");
  TRY(call_output(c, 0, b.rank, b.shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(factorize(c, &a, c->attributes->adjoint, &factors));
  TRY(check(c, &factors.info, "Input matrix is not invertible."));
  TRY(rdna_op_copy(c->stream, &b, &out));
  rdna_tensor right = batch_of(&out);
  return solve(c, &factors, &right);
}

rdna_status compute_inverse(call *c) {
  rdna_tensor a, out;
  struct factors factors;
  TRY(call_matrices(c, 0, true, &a));
  TRY(call_output(c, 0, a.rank, a.shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(factorize(c, &a, c->attributes->adjoint, &factors));
  TRY(check(c, &factors.info, "Input is not invertible."));
  rdna_tensor right = batch_of(&out);
  TRY(identity(c, &right));
  return solve(c, &factors, &right);
}

/* 1, or -1 for matrices whose rows changed places an odd number of times, in |out| (batch). */
static rdna_status parity(call *c, const struct factors *factors, const rdna_tensor *out) {
  int64_t n = factors->pivots.shape[1];
  rdna_tensor own, moved, count;
  TRY(call_scratch(c, RDNA_I32, 1, &n, &own));
  TRY(call_scratch(c, RDNA_BOOL, 2, factors->pivots.shape, &moved));
  TRY(call_scratch(c, RDNA_I64, 1, factors->pivots.shape, &count));
  TRY(rdna_op_arange(c->stream, rdna_scalar_integer(1), rdna_scalar_integer(1), &own));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_NE, &factors->pivots, &own, &moved));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &moved, 2, 0, &count));
  TRY(zip_number(c, RDNA_ZIP_BITWISE_AND, &count, 1, &count));
  TRY(rdna_op_copy(c->stream, &count, out));
  return affine(c, out, -2, 1, out);
}

/* Number 0: the determinant; 1: its sign, and the logarithm of its magnitude. */
rdna_status compute_determinant(call *c) {
  rdna_tensor a, out[2], sign, magnitude;
  struct factors factors;
  TRY(call_matrices(c, 0, true, &a));
  for (int i = 0; i <= c->number; i++) TRY(call_output(c, i, a.rank - 2, a.shape, &out[i]));
  if (rdna_tensor_count(&out[0]) == 0) return RDNA_OK;
  if (a.shape[a.rank - 1] == 0) {
    if (c->number) TRY(fill(c, 0, &out[1]));
    return fill(c, 1, &out[0]);
  }
  TRY(factorize(c, &a, false, &factors));
  int64_t batch = factors.lu.shape[0];
  rdna_tensor diagonal = diagonal_of(&factors.lu, 0), first = reshaped(&out[0], 1, &batch);
  TRY(call_scratch(c, a.dtype, 1, &batch, &sign));
  TRY(parity(c, &factors, &sign));
  TRY(like(c, &diagonal, &magnitude));
  if (c->number == 0) {
    TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_PROD, &diagonal, 2, 0, &first));
    return zip(c, RDNA_ZIP_MUL, &first, &sign, &first);
  }
  rdna_tensor second = reshaped(&out[1], 1, &batch);
  TRY(map(c, RDNA_MAP_SIGN, &diagonal, &magnitude));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_PROD, &magnitude, 2, 0, &first));
  TRY(zip(c, RDNA_ZIP_MUL, &first, &sign, &first));
  TRY(map(c, RDNA_MAP_ABS, &diagonal, &magnitude));
  TRY(map(c, RDNA_MAP_LOG, &magnitude, &magnitude));
  return rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &magnitude, 2, 0, &second);
}

/* Both factors in one matrix, and which row of the input each of theirs is. */
rdna_status compute_lu(call *c) {
  rdna_tensor a, out, order, rows, numbers;
  struct factors factors;
  TRY(call_matrices(c, 0, true, &a));
  TRY(call_output(c, 0, a.rank, a.shape, &out));
  TRY(call_output(c, 1, a.rank - 1, a.shape, &order));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(factorize(c, &a, false, &factors));
  TRY(check(c, &factors.info, "Input is not invertible."));
  rdna_tensor whole = batch_of(&out);
  TRY(rdna_op_copy(c->stream, &factors.lu, &whole));
  int64_t batch = whole.shape[0], n = whole.shape[1];
  TRY(call_scratch(c, RDNA_F64, 3, (int64_t[]){batch, n, 1}, &rows)); /* numbers that change places with the rows */
  TRY(call_scratch(c, RDNA_F64, 1, &n, &numbers));
  TRY(rdna_op_arange(c->stream, rdna_scalar_integer(0), rdna_scalar_integer(1), &numbers));
  rdna_tensor column = reshaped(&numbers, 3, (int64_t[]){1, n, 1});
  TRY(rdna_op_copy(c->stream, &column, &rows));
  TRY(rdna_op_swap_rows(c->stream, false, &factors.pivots, &rows));
  rdna_tensor flat = reshaped(&rows, 2, (int64_t[]){batch, n}), to = reshaped(&order, 2, (int64_t[]){batch, n});
  return rdna_op_copy(c->stream, &flat, &to);
}

/* a (batch, m, n) = q r; |q| is (batch, m, m or min(m, n)), |r| as many rows. Either may be NULL. */
rdna_status factor_qr(call *c, const rdna_tensor *a, const rdna_tensor *q, const rdna_tensor *r) {
  rdna_tensor work, tau;
  int64_t m = a->shape[1], n = a->shape[2], least = m < n ? m : n;
  TRY(copy_of(c, a, &work));
  TRY(call_scratch(c, a->dtype, 2, (int64_t[]){a->shape[0], least}, &tau));
  TRY(rdna_op_qr(c->stream, &work, &tau));
  if (r) {
    rdna_tensor rows = narrowed(&work, 1, 0, r->shape[1]);
    TRY(rdna_op_triangle(c->stream, &rows, true, 0, r));
  }
  if (!q) return RDNA_OK;
  TRY(identity(c, q));
  rdna_tensor reflections = narrowed(&work, 2, 0, least);
  return rdna_op_reflect(c->stream, false, true, &reflections, &tau, q);
}

rdna_status compute_qr(call *c) {
  rdna_tensor a, q, r;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_matrices(c, 0, false, &a));
  int64_t m = a.shape[a.rank - 2], n = a.shape[a.rank - 1], least = m < n ? m : n;
  int64_t inner = c->attributes->full_matrices ? m : least;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 1] = inner;
  TRY(call_output(c, 0, a.rank, shape, &q));
  shape[a.rank - 2] = inner;
  shape[a.rank - 1] = n;
  TRY(call_output(c, 1, a.rank, shape, &r));
  if (rdna_tensor_count(&a) == 0) {
    rdna_tensor none = batch_of(&q);
    return rdna_tensor_count(&q) ? identity(c, &none) : RDNA_OK;
  }
  rdna_tensor batch = batch_of(&a), batch_q = batch_of(&q), batch_r = batch_of(&r);
  return factor_qr(c, &batch, &batch_q, &batch_r);
}
