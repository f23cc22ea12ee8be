/* Singular values, and eigenvalues of symmetric matrices, by rotations that make columns orthogonal or a matrix
 * diagonal. Values are first brought to a size near 1. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compose.h"
#include "matrix.h"
#include "ops.h"
#include "rdna/op/gemm.h"
#include "rdna/op/index.h"
#include "rdna/op/linalg.h"
#include "rdna/op/sort.h"

/* (batch, 1, 1): the largest magnitude of each matrix, 1 where that is 0; a NaN stays. */
static rdna_status size_of(call *c, const rdna_tensor *a, rdna_tensor *out) {
  rdna_tensor magnitude, none;
  TRY(like(c, a, &magnitude));
  TRY(map(c, RDNA_MAP_ABS, a, &magnitude));
  TRY(call_scratch(c, a->dtype, 3, (int64_t[]){a->shape[0], 1, 1}, out));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_MAX, &magnitude, 6, 0, out));
  TRY(answers(c, RDNA_COMPARE_EQ, out, 0, &none));
  return rdna_op_masked_fill(c->stream, &none, rdna_scalar_real(1), out, out);
}

/* Whether the last of the sweeps still turned something; |turned| is (batch, sweeps). The host waits. */
static rdna_status check_sweeps(call *c, const rdna_tensor *turned, const rdna_tensor *size) {
  rdna_tensor last = narrowed(turned, 1, turned->shape[1] - 1, 1), bad, finite;
  unsigned char answer[2];
  TRY(call_scratch(c, RDNA_BOOL, 1, (int64_t[]){2}, &bad));
  rdna_tensor first = narrowed(&bad, 0, 0, 1), second = narrowed(&bad, 0, 1, 1);
  first.rank = second.rank = 0;
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_ANY, &last, 3, 0, &first));
  TRY(call_scratch(c, RDNA_BOOL, 3, size->shape, &finite));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_ISFINITE, size, NULL, &finite));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_ALL, &finite, 7, 0, &second));
  TRY(call_read(c, &bad, answer));
  return answer[0] && answer[1] ? call_fail(c, RDNA_INTERNAL, "the rotations of a matrix did not come to an end")
                                : RDNA_OK;
}

/* Columns of a (batch, m, n) in |order| (batch, n), into |out|. */
static rdna_status gather_columns(call *c, const rdna_tensor *a, const rdna_tensor *order, const rdna_tensor *out) {
  rdna_tensor list = reshaped(order, 3, (int64_t[]){order->shape[0], 1, order->shape[1]});
  list = repeated(&list, 3, a->shape);
  return rdna_op_gather(c->stream, a, 2, &list, out, NULL);
}

struct svd {
  rdna_tensor u, s, v; /* (batch, m, m or k), (batch, k), (batch, n, n or k), k the less of both */
};

/* Of a tall matrix: a = q r, and rotations turn r^T into v s; a v = u s. Of both QR makes what is orthogonal also where
 * s is 0. |out| without u and v, whose data is NULL then, where only s is wanted. */
static rdna_status tall_svd(call *c, const rdna_tensor *a, const struct svd *out) {
  rdna_tensor size, x, r, w, turned, lengths, order, sorted, columns, product, diagonal, negative;
  int64_t batch = a->shape[0], m = a->shape[1], k = a->shape[2], square[] = {batch, k, k};
  TRY(size_of(c, a, &size));
  TRY(call_scratch(c, a->dtype, 3, a->shape, &x));
  TRY(zip(c, RDNA_ZIP_DIV, a, &size, &x));
  TRY(call_scratch(c, a->dtype, 3, square, &r));
  TRY(factor_qr(c, &x, NULL, &r));
  rdna_tensor flipped = transposed(r);
  TRY(copy_of(c, &flipped, &w));
  TRY(call_scratch(c, RDNA_I32, 2, (int64_t[]){batch, 20}, &turned));
  TRY(rdna_op_orthogonalize(c->stream, a->dtype == RDNA_F64 ? DBL_EPSILON : (double)FLT_EPSILON, &w, &turned));
  TRY(check_sweeps(c, &turned, &size));
  TRY(call_scratch(c, a->dtype, 2, square, &lengths));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_NORM, &w, 2, 2, &lengths));
  TRY(call_scratch(c, RDNA_I64, 2, square, &order));
  TRY(like(c, &lengths, &sorted));
  TRY(rdna_op_sort(c->stream, &lengths, -1, true, &sorted, &order));
  rdna_tensor scale = reshaped(&size, 2, (int64_t[]){batch, 1});
  TRY(zip(c, RDNA_ZIP_MUL, &sorted, &scale, &out->s));
  if (!out->u.data) return RDNA_OK;
  TRY(like(c, &w, &columns));
  TRY(gather_columns(c, &w, &order, &columns));
  TRY(factor_qr(c, &columns, &out->v, NULL));
  TRY(call_scratch(c, a->dtype, 3, (int64_t[]){batch, m, k}, &product));
  TRY(rdna_op_gemm(c->stream, 1, &x, &out->v, 0, NULL, &product));
  TRY(call_scratch(c, a->dtype, 3, (int64_t[]){batch, out->u.shape[2], k}, &r));
  TRY(factor_qr(c, &product, &out->u, &r));
  diagonal = diagonal_of(&r, 0); /* lengths, some of them below 0: those columns of u turn round */
  TRY(answers(c, RDNA_COMPARE_LT, &diagonal, 0, &negative));
  rdna_tensor first = narrowed(&out->u, 2, 0, k), row = reshaped(&negative, 3, (int64_t[]){batch, 1, k}), other;
  TRY(call_scratch(c, a->dtype, 3, first.shape, &other));
  TRY(map(c, RDNA_MAP_NEG, &first, &other));
  return rdna_op_where(c->stream, &row, &other, &first, &first);
}

/* Of matrices without values: the identity, where |out| has any. */
static rdna_status any_orthogonal(call *c, const rdna_tensor *out) {
  if (out->rank < 2 || rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna_tensor diagonal = diagonal_of(out, 0);
  TRY(fill(c, 0, out));
  return fill(c, 1, &diagonal);
}

/* To (s, u, v). A wide matrix is the transpose of a tall one. */
rdna_status compute_svd(call *c) {
  const struct attributes *at = c->attributes;
  rdna_tensor a, s, u = {0}, v = {0};
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_matrices(c, 0, false, &a));
  int64_t m = a.shape[a.rank - 2], n = a.shape[a.rank - 1], k = m < n ? m : n;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 2] = k;
  TRY(call_output(c, 0, a.rank - 1, shape, &s));
  if (!at->compute_uv) {
    TRY(call_output(c, 1, 1, (int64_t[]){0}, &u));
    TRY(call_output(c, 2, 1, (int64_t[]){0}, &v));
  } else {
    shape[a.rank - 2] = m;
    shape[a.rank - 1] = at->full_matrices ? m : k;
    TRY(call_output(c, 1, a.rank, shape, &u));
    shape[a.rank - 2] = n;
    shape[a.rank - 1] = at->full_matrices ? n : k;
    TRY(call_output(c, 2, a.rank, shape, &v));
  }
  if (rdna_tensor_count(&a) == 0) {
    TRY(any_orthogonal(c, &u));
    return any_orthogonal(c, &v);
  }
  rdna_tensor batch = batch_of(&a);
  bool wide = m < n;
  if (wide) batch = transposed(batch);
  struct svd parts = {.s = reshaped(&s, 2, (int64_t[]){batch.shape[0], k})};
  if (at->compute_uv) {
    parts.u = batch_of(wide ? &v : &u);
    parts.v = batch_of(wide ? &u : &v);
  }
  return tall_svd(c, &batch, &parts);
}

/* x (batch, n, n) into |out|: its lower triangle and the mirror of that. */
static rdna_status symmetric(call *c, const rdna_tensor *x, const rdna_tensor *out) {
  rdna_tensor strict;
  TRY(like(c, x, &strict));
  TRY(rdna_op_triangle(c->stream, x, false, 0, out));
  TRY(rdna_op_triangle(c->stream, x, false, -1, &strict));
  rdna_tensor mirrored = transposed(strict);
  return zip(c, RDNA_ZIP_ADD, out, &mirrored, out);
}

/* To (values in rising order, vectors). The lower triangle counts. */
rdna_status compute_eigh(call *c) {
  enum { SWEEPS = 30 };
  rdna_tensor x, values, vectors, a, v = {0}, size, turned, order, sorted;
  TRY(call_matrices(c, 0, true, &x));
  TRY(call_output(c, 0, x.rank - 1, x.shape, &values));
  bool wanted = c->attributes->compute_v;
  TRY(wanted ? call_output(c, 1, x.rank, x.shape, &vectors) : call_output(c, 1, 1, (int64_t[]){0}, &vectors));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  rdna_tensor batch = batch_of(&x);
  TRY(like(c, &batch, &a));
  TRY(symmetric(c, &batch, &a));
  TRY(size_of(c, &a, &size));
  TRY(zip(c, RDNA_ZIP_DIV, &a, &size, &a));
  if (wanted) {
    TRY(like(c, &a, &v));
    TRY(fill(c, 0, &v));
    rdna_tensor diagonal = diagonal_of(&v, 0);
    TRY(fill(c, 1, &diagonal));
  }
  int64_t vector[] = {a.shape[0], a.shape[1]};
  TRY(call_scratch(c, RDNA_I32, 2, (int64_t[]){a.shape[0], SWEEPS}, &turned));
  TRY(rdna_op_diagonalize(c->stream, &a, wanted ? &v : NULL, &turned));
  TRY(check_sweeps(c, &turned, &size));
  rdna_tensor diagonal = diagonal_of(&a, 0), scale = reshaped(&size, 2, (int64_t[]){a.shape[0], 1});
  TRY(call_scratch(c, RDNA_I64, 2, vector, &order));
  TRY(call_scratch(c, a.dtype, 2, vector, &sorted));
  TRY(rdna_op_sort(c->stream, &diagonal, -1, false, &sorted, &order));
  rdna_tensor to = reshaped(&values, 2, vector);
  TRY(zip(c, RDNA_ZIP_MUL, &sorted, &scale, &to));
  if (!wanted) return RDNA_OK;
  rdna_tensor into = batch_of(&vectors);
  return gather_columns(c, &v, &order, &into);
}
