#include "base/options.h"
#include "math/gemm/gemm_i8_kernels.h"

#include <string.h>

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/gemm/gemm.h"
#include "rdna/op/gemm.h"
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
  to = rdna_tensor_contiguous(copy, RDNA_I8, rank, from.shape);
  to.stride[rank - 2] = ld;
  if (rank == 3) to.stride[0] = rows * ld;
  out->data = copy, out->ld = ld, out->stride = one || rank == 2 ? 0 : rows * ld;
  if (ld > k) RDNA_TRY(rdna_fill_bytes(scratch->stream, copy, 0, bytes));
  return rdna_op_copy(scratch->stream, &from, &to);
}

static rdna_status check_scale(const char *argument, const rdna_tensor *scale, int64_t size, const rdna_tensor *c,
                               int32_t *out_each) {
  char text[RDNA__TENSOR_TEXT];
  if (!scale)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "gemm_i8: %s is NULL and c is %s; only i32 has no scales", argument,
                      rdna__tensor_text(c, text));
  RDNA_TRY(rdna__check_tensor("gemm_i8", argument, scale));
  RDNA_TRY(rdna__check_dtype("gemm_i8", argument, scale, RDNA_F32));
  RDNA_TRY(rdna__check_rank("gemm_i8", argument, scale, 1));
  RDNA_TRY(rdna__check_contiguous("gemm_i8", argument, scale));
  RDNA_TRY(rdna__check_apart("gemm_i8", "c", c, argument, scale));
  *out_each = scale->shape[0] != 1;
  if (scale->shape[0] == 1 || scale->shape[0] == size) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "gemm_i8: %s is %s; it must have 1 or %lld values", argument,
                    rdna__tensor_text(scale, text), (long long)size);
}

static rdna_status check_types(const rdna_gemm_epilogue *e, const rdna_tensor *scale_a, const rdna_tensor *scale_b,
                               const rdna_tensor *c) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_tensor("gemm_i8", "c", c));
  if (c->dtype != RDNA_I32) return rdna__check_float("gemm_i8", "c", c);
  if (!scale_a && !scale_b && (!e || (e->alpha == 1 && e->beta == 0 && !e->bias && !e->activation && !e->residual)))
    return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT,
                    "gemm_i8: c is %s with scales or an epilogue; into i32 there is nothing but the sum",
                    rdna__tensor_text(c, text));
}

static rdna_status check_shapes(const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *c) {
  const rdna_tensor *const all[] = {a, b, c};
  static const char *const names[] = {"a", "b", "c"};
  RDNA_TRY(rdna__gemm_check_shapes("gemm_i8", a, b, c));
  for (int i = 0; i < 3; i++) {
    char text[RDNA__TENSOR_TEXT];
    for (int d = 0; d < c->rank; d++)
      if (all[i]->shape[d] > (d == 0 && c->rank == 3 ? RDNA__GRID_YZ_MAX : RDNA__GEMM_SIZE_MAX))
        return rdna__fail(RDNA_UNSUPPORTED, "gemm_i8: %s is %s; split it", names[i], rdna__tensor_text(all[i], text));
  }
  return RDNA_OK;
}

enum { LARGE_SIDE = 128, SMALL_SIDE = 64 };

static int64_t tiles_of(const struct gemm_args *args, int64_t side) {
  return rdna__divide_up(args->m, side) * rdna__divide_up(args->n, side);
}

typedef struct tile_problem {
  const struct gemm_args *of;
  int64_t units;
} tile_problem;

static bool fills_units(const rdna__route *route, const void *which) {
  const tile_problem *p = which;
  return tiles_of(p->of, LARGE_SIDE) * p->of->batch >= p->units;
}

enum { LARGE, SMALL };
static const rdna__route routes[] = {
    [LARGE] = {.name = "tile 128 x 128",
               .kernels = {"gemm_i8_{i32|f32|f16|bf16}_large"},
               .when = "at least a tile for each compute unit",
               .applies = fills_units},
    [SMALL] = {.name = "tile 64 x 64", .kernels = {"gemm_i8_{i32|f32|f16|bf16}_small"}, .when = "smaller results"},
};
RDNA_ROUTES(rdna__gemm_i8_routes, "gemm_i8", routes)

static rdna_status launch(rdna_stream *stream, const struct gemm_i8_args *args, rdna_dtype type) {
  tile_problem p = {&args->of, rdna_device_get_info(rdna_stream_device(stream))->compute_units};
  const rdna__route *route = rdna__route_choose(&rdna__gemm_i8_routes, &p);
  rdna_grid grid = {0, 1, (uint32_t)args->of.batch};
  int64_t tiles = tiles_of(&args->of, route == &routes[LARGE] ? LARGE_SIDE : SMALL_SIDE);
  RDNA_TRY(rdna__check_groups("gemm_i8", tiles, 1, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, rdna_dtype_name(type));
}

static rdna_status launch_i32(rdna_stream *stream, const struct gemm_args *of) {
  return launch(stream, &(struct gemm_i8_args){.of = *of}, RDNA_I32);
}

/* Plain sums are what vendors' libraries have as well. */
static rdna_status run_i32(rdna_stream *stream, const struct gemm_args *of) {
  rdna__gemm_problem problem = {.types = {RDNA_I8, RDNA_I8, RDNA_I32},
                                .args = *of,
                                .device = rdna_device_get_info(rdna_stream_device(stream)),
                                .own = launch_i32,
                                .own_families = "gemm_i8"};
  return rdna__gemm_run(stream, "gemm_i8", &problem);
}

rdna_status rdna_op_gemm_i8(rdna_stream *stream, const rdna_gemm_epilogue *epilogue, const rdna_tensor *a,
                            const rdna_tensor *scale_a, const rdna_tensor *b, const rdna_tensor *scale_b,
                            const rdna_tensor *c) {
  struct gemm_i8_args args = {.of = {.alpha = 1, .flags = GEMM_B_TRANSPOSED}};
  struct gemm_args *of = &args.of;
  rdna__matrix written, added = {0};
  rdna_gemm_epilogue known;
  if (epilogue) {
    RDNA_TRY(RDNA__OPTIONS("gemm_i8", "epilogue", epilogue, &known));
    epilogue = &known;
  }
  RDNA_TRY(rdna__check_tensor("gemm_i8", "a", a));
  RDNA_TRY(rdna__check_dtype("gemm_i8", "a", a, RDNA_I8));
  RDNA_TRY(rdna__check_tensor("gemm_i8", "b", b));
  RDNA_TRY(rdna__check_dtype("gemm_i8", "b", b, RDNA_I8));
  RDNA_TRY(check_types(epilogue, scale_a, scale_b, c));
  RDNA_TRY(check_shapes(a, b, c));
  int rank = c->rank;
  int64_t m = c->shape[rank - 2], n = c->shape[rank - 1], k = a->shape[rank - 1];
  RDNA_TRY(rdna__matrix_view("gemm_i8", "c", c, &written));
  if (rdna_tensor_count(c) > 0) RDNA_TRY(rdna__matrix_check_written("gemm_i8", "c", c, &written));
  RDNA_TRY(rdna__check_apart("gemm_i8", "c", c, "a", a));
  RDNA_TRY(rdna__check_apart("gemm_i8", "c", c, "b", b));
  if (c->dtype != RDNA_I32) {
    RDNA_TRY(check_scale("scale_a", scale_a, m, c, &args.each_a));
    RDNA_TRY(check_scale("scale_b", scale_b, n, c, &args.each_b));
    args.scale_a = scale_a->data, args.scale_b = scale_b->data;
  }
  if (epilogue) {
    RDNA_TRY(rdna__gemm_check_epilogue("gemm_i8", epilogue, c, &added));
    rdna__gemm_set_epilogue(epilogue, &added, of);
  }
  RDNA_TRY(rdna__check_stream("gemm_i8", stream));
  if (rdna_tensor_count(c) == 0) return RDNA_OK;

  /* B's columns are rows of k values to the kernels */
  rdna_tensor transposed = *b;
  transposed.shape[rank - 2] = n, transposed.shape[rank - 1] = k;
  transposed.stride[rank - 2] = b->stride[rank - 1], transposed.stride[rank - 1] = b->stride[rank - 2];
  operand in_a = {0}, in_b = {0};
  rdna__scratch scratch = {.stream = stream, .holder = "gemm_i8: an operand"};
  rdna_status status = RDNA_OK;
  if (k > 0) status = gather(&scratch, a, &in_a);
  if (k > 0 && status == RDNA_OK) status = gather(&scratch, &transposed, &in_b);
  of->a = in_a.data, of->lda = in_a.ld, of->stride_a = in_a.stride;
  of->b = in_b.data, of->ldb = in_b.ld, of->stride_b = in_b.stride;
  of->c = c->data, of->ldc = written.ld, of->stride_c = written.stride;
  of->m = (int32_t)m, of->n = (int32_t)n, of->k = (int32_t)(k + k % 2);
  of->batch = (int32_t)written.batch;
  if (status == RDNA_OK) status = c->dtype == RDNA_I32 ? run_i32(stream, of) : launch(stream, &args, c->dtype);
  return rdna__scratch_release(&scratch, status);
}
