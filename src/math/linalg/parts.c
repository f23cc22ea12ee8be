#include "math/linalg/parts.h"

#include "math/gemm/gemm.h"

rdna__part rdna__part_cut(const rdna__parts *w, rdna__part p, int64_t row, int64_t rows, int64_t column,
                          int64_t columns) {
  int64_t value = (int64_t)rdna_dtype_block_bytes(w->dtype);
  return (rdna__part){p.data + (row * p.row + column * p.column) * value, rows, columns, p.row, p.column, p.stride};
}

rdna_status rdna__part_product(const rdna__parts *w, float alpha, rdna__part a, rdna__part b, float beta,
                               rdna__part c) {
  if (c.column != 1) {
    rdna__part left = rdna__part_transposed(b);
    b = rdna__part_transposed(a), a = left, c = rdna__part_transposed(c);
  }
  const rdna_dtype types[3] = {w->dtype, w->dtype, w->dtype};
  bool a_transposed = a.column != 1, b_transposed = b.column != 1;
  struct gemm_args args = {.a = a.data, .b = b.data, .c = c.data, .alpha = alpha, .beta = beta};
  args.lda = a_transposed ? a.column : a.row, args.ldb = b_transposed ? b.column : b.row, args.ldc = c.row;
  args.stride_a = a.stride, args.stride_b = b.stride, args.stride_c = c.stride;
  args.flags = (a_transposed ? GEMM_A_TRANSPOSED : 0) | (b_transposed ? GEMM_B_TRANSPOSED : 0);
  return rdna__gemm_launch(w->stream, w->name, types, args, c.rows, c.columns, a.columns, w->batch);
}

rdna_status rdna__part_check(rdna__parts *w, const char *argument, const rdna_tensor *t, rdna__part *out_part) {
  RDNA_TRY(rdna__check_tensor(w->name, argument, t));
  if (t->dtype != RDNA_F32 && t->dtype != RDNA_F64) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; the types offered are f32 and f64", w->name, argument,
                      rdna_dtype_name(t->dtype));
  }
  RDNA_TRY(rdna__check_rank(w->name, argument, t, 3));
  rdna__matrix m;
  RDNA_TRY(rdna__matrix_view(w->name, argument, t, &m));
  w->dtype = t->dtype, w->batch = m.batch;
  *out_part = (rdna__part){t->data, m.rows, m.columns, m.transposed ? 1 : m.ld, m.transposed ? m.ld : 1, m.stride};
  return RDNA_OK;
}

rdna_status rdna__part_check_written(const rdna__parts *w, const char *argument, const rdna_tensor *t, rdna__part p) {
  if (rdna_tensor_count(t) == 0) return RDNA_OK;
  if (p.column != 1) p = rdna__part_transposed(p);
  rdna__matrix m = {.rows = p.rows, .columns = p.columns, .batch = w->batch, .ld = p.row, .stride = p.stride};
  rdna_tensor view = *t;
  view.shape[1] = p.rows, view.shape[2] = p.columns, view.stride[1] = p.row, view.stride[2] = p.column;
  return rdna__matrix_check_written(w->name, argument, &view, &m);
}

rdna_status rdna__part_check_beside(const rdna__parts *w, const char *argument, const rdna_tensor *t, rdna_dtype dtype,
                                    int rank) {
  RDNA_TRY(rdna__check_tensor(w->name, argument, t));
  RDNA_TRY(rdna__check_dtype(w->name, argument, t, dtype));
  RDNA_TRY(rdna__check_rank(w->name, argument, t, rank));
  RDNA_TRY(rdna__check_size(w->name, argument, t, 0, w->batch, "the batch"));
  return rdna__check_contiguous(w->name, argument, t);
}

rdna_status rdna__part_check_rows(const rdna__parts *w, const char *argument, int64_t rows) {
  if (rows <= INT32_MAX) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s has %lld rows; i32 counts up to 2147483647", w->name, argument,
                    (long long)rows);
}

rdna_status rdna__part_check_numbers(const rdna__parts *w, const char *argument, const rdna_tensor *t, int64_t count) {
  RDNA_TRY(rdna__part_check_beside(w, argument, t, RDNA_I32, count < 0 ? 1 : 2));
  return count < 0 ? RDNA_OK : rdna__check_size(w->name, argument, t, 1, count, "the fewer of rows and columns");
}

/* AMD counts the threads of a grid in 32 bits. */
rdna_status rdna__part_launch(const rdna__parts *w, const rdna__route *route, uint32_t units, const void *args) {
  enum { MOST_GROUPS = 1 << 20 };
  const rdna_grid grid = {units < MOST_GROUPS ? units : MOST_GROUPS, 1, 1};
  return RDNA__ROUTE_LAUNCH(w->stream, route, 0, grid, args, rdna_dtype_name(w->dtype));
}
