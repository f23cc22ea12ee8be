#include "math/gemm/gemm_scaled.h"

#include <string.h>

#include "math/common/plan/check.h"
#include "math/common/plan/scratch.h"
#include "rdna/op/movement.h"

enum { ROW_MULTIPLE = 16 };

/* An operand as the kernels take it: rows of k values at multiples of 16 bytes. */
typedef struct operand {
  const void *data;
  int64_t ld, stride;
} operand;

static bool fits(const rdna_tensor *t) {
  int rank = t->rank;
  int64_t ld = t->shape[rank - 2] > 1 ? t->stride[rank - 2] : 0;
  int64_t stride = rank == 3 && t->shape[0] > 1 ? t->stride[0] : 0;
  return (t->shape[rank - 1] <= 1 || t->stride[rank - 1] == 1) && t->shape[rank - 1] % 2 == 0 &&
         ((uintptr_t)t->data | (uint64_t)ld | (uint64_t)stride) % ROW_MULTIPLE == 0;
}

/* |t| is (batch, rows, k); a copy has zeros at the ends of rows. */
static rdna_status gather(rdna__scratch *scratch, const rdna_tensor *t, operand *out) {
  int rank = t->rank;
  int64_t rows = t->shape[rank - 2], k = t->shape[rank - 1];
  if (fits(t)) {
    *out = (operand){t->data, t->stride[rank - 2], rank == 3 ? t->stride[0] : 0};
    if (rows == 1) out->ld = rdna__divide_up(k, ROW_MULTIPLE) * ROW_MULTIPLE;
    return RDNA_OK;
  }
  rdna_tensor from = *t, to = *t;
  bool one = rank == 3 && from.stride[0] == 0;
  if (one) from.shape[0] = 1;
  int64_t ld = rdna__divide_up(k, ROW_MULTIPLE) * ROW_MULTIPLE, matrices = rank == 3 ? from.shape[0] : 1;
  size_t bytes = (size_t)(matrices * rows * ld);
  void *copy;
  RDNA_TRY(rdna__scratch_take(scratch, bytes, &copy));
  to = rdna_tensor_contiguous(copy, t->dtype, rank, from.shape);
  to.stride[rank - 2] = ld;
  if (rank == 3) to.stride[0] = rows * ld;
  out->data = copy, out->ld = ld, out->stride = one || rank == 2 ? 0 : rows * ld;
  if (ld > k) RDNA_TRY(rdna_fill_bytes(scratch->stream, copy, 0, bytes));
  return rdna_op_copy(scratch->stream, &from, &to);
}

static rdna_status check_scale(const char *op_name, const char *argument, const rdna_tensor *scale, int64_t size,
                               const rdna_tensor *c, int32_t *out_each) {
  char text[RDNA__TENSOR_TEXT];
  if (!scale)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is NULL and c is %s; only i32 has no scales", op_name, argument,
                      rdna__tensor_text(c, text));
  RDNA_TRY(rdna__check_tensor(op_name, argument, scale));
  RDNA_TRY(rdna__check_dtype(op_name, argument, scale, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, argument, scale, 1));
  RDNA_TRY(rdna__check_contiguous(op_name, argument, scale));
  RDNA_TRY(rdna__check_apart(op_name, "c", c, argument, scale));
  *out_each = scale->shape[0] != 1;
  if (scale->shape[0] == 1 || scale->shape[0] == size) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; it must have 1 or %lld values", op_name, argument,
                    rdna__tensor_text(scale, text), (long long)size);
}

static rdna_status check_shapes(const char *op_name, const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *c) {
  const rdna_tensor *const all[] = {a, b, c};
  static const char *const names[] = {"a", "b", "c"};
  RDNA_TRY(rdna__gemm_check_shapes(op_name, a, b, c));
  for (int i = 0; i < 3; i++) {
    char text[RDNA__TENSOR_TEXT];
    for (int d = 0; d < c->rank; d++)
      if (all[i]->shape[d] > (d == 0 && c->rank == 3 ? RDNA__GRID_YZ_MAX : RDNA__GEMM_SIZE_MAX))
        return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; split it", op_name, names[i],
                          rdna__tensor_text(all[i], text));
  }
  return RDNA_OK;
}

static int64_t tiles_of(const struct gemm_args *args, int64_t side) {
  return rdna__divide_up(args->m, side) * rdna__divide_up(args->n, side);
}

bool rdna__gemm_scaled_fills_units(const rdna__route *route, const void *which) {
  const rdna__gemm_scaled_problem *p = which;
  return tiles_of(p->of, RDNA__SCALED_LARGE) * p->of->batch >= p->units;
}

rdna_status rdna__gemm_scaled_launch(rdna_stream *stream, const char *op_name, const rdna__route_table *routes,
                                     const struct gemm_scaled_args *args, const char *const *words) {
  rdna__gemm_scaled_problem p = {&args->of, rdna_device_get_info(rdna_stream_device(stream))->compute_units};
  const rdna__route *route = rdna__route_choose(routes, &p);
  rdna_grid grid = {0, 1, (uint32_t)args->of.batch};
  bool large = route == rdna__route_at(routes, 0);
  RDNA_TRY(
      rdna__check_groups(op_name, tiles_of(&args->of, large ? RDNA__SCALED_LARGE : RDNA__SCALED_SMALL), 1, &grid.x));
  return rdna__route_launch(stream, route->kernels[0], grid, args, words);
}

rdna_status rdna__gemm_scaled_run(rdna_stream *stream, const rdna__gemm_scaled *how, const rdna_gemm_epilogue *epilogue,
                                  const rdna_tensor *a, const rdna_tensor *scale_a, const rdna_tensor *b,
                                  const rdna_tensor *scale_b, const rdna_tensor *c) {
  const char *op_name = how->op_name;
  struct gemm_scaled_args args = {.of = {.alpha = 1, .flags = GEMM_B_TRANSPOSED}};
  struct gemm_args *of = &args.of;
  rdna__matrix written, added = {0};
  RDNA_TRY(check_shapes(op_name, a, b, c));
  int rank = c->rank;
  int64_t m = c->shape[rank - 2], n = c->shape[rank - 1], k = a->shape[rank - 1];
  RDNA_TRY(rdna__matrix_view(op_name, "c", c, &written));
  if (rdna_tensor_count(c) > 0) RDNA_TRY(rdna__matrix_check_written(op_name, "c", c, &written));
  RDNA_TRY(rdna__check_apart(op_name, "c", c, "a", a));
  RDNA_TRY(rdna__check_apart(op_name, "c", c, "b", b));
  if (c->dtype != RDNA_I32) {
    RDNA_TRY(check_scale(op_name, "scale_a", scale_a, m, c, &args.each_a));
    RDNA_TRY(check_scale(op_name, "scale_b", scale_b, n, c, &args.each_b));
    args.scale_a = scale_a->data, args.scale_b = scale_b->data;
  }
  if (epilogue) {
    RDNA_TRY(rdna__gemm_check_epilogue(op_name, epilogue, c, &added));
    rdna__gemm_set_epilogue(epilogue, &added, of);
  }
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (rdna_tensor_count(c) == 0) return RDNA_OK;

  /* B's columns are rows of k values to the kernels */
  rdna_tensor transposed = *b;
  transposed.shape[rank - 2] = n, transposed.shape[rank - 1] = k;
  transposed.stride[rank - 2] = b->stride[rank - 1], transposed.stride[rank - 1] = b->stride[rank - 2];
  operand in_a = {0}, in_b = {0};
  rdna__scratch scratch = {.stream = stream, .holder = how->holder};
  rdna_status status = RDNA_OK;
  if (k > 0) status = gather(&scratch, a, &in_a);
  if (k > 0 && status == RDNA_OK) status = gather(&scratch, &transposed, &in_b);
  of->a = in_a.data, of->lda = in_a.ld, of->stride_a = in_a.stride;
  of->b = in_b.data, of->ldb = in_b.ld, of->stride_b = in_b.stride;
  of->c = c->data, of->ldc = written.ld, of->stride_c = written.stride;
  of->m = (int32_t)m, of->n = (int32_t)n, of->k = (int32_t)(k + k % 2);
  of->batch = (int32_t)written.batch;
  const rdna_dtype types[] = {a->dtype, b->dtype, c->dtype};
  if (status == RDNA_OK) status = how->launch(stream, &args, types);
  return rdna__scratch_release(&scratch, status);
}
