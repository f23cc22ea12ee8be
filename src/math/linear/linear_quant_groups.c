/* linear_quant_groups: products with weights of integers in quantization groups (quant/group_kernels.h). */
#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/gemm/gemm.h"
#include "math/quant/group_weights.h"
#include "math/quant/quant.h"
#include "rdna/op/linear.h"

/* What the conditions of routes ask: the product, and the device's compute units. */
typedef struct problem {
  const struct gemm_args *of;
  int64_t units;
} problem;

static bool are_rows(const struct gemm_args *of, int most) {
  return of->m <= most && ((uintptr_t)of->a | (uint64_t)of->lda * 4) % 16 == 0;
}
static bool is_row(const rdna__route *route, const void *which) { return are_rows(((const problem *)which)->of, 1); }
static bool are_4_rows(const rdna__route *route, const void *which) {
  return are_rows(((const problem *)which)->of, 4);
}
static bool are_few_rows(const rdna__route *route, const void *which) {
  return are_rows(((const problem *)which)->of, GEMV_MAX_M);
}
static bool fills_units(const rdna__route *route, const void *which) {
  const problem *p = which;
  int64_t tiles = rdna__divide_up(p->of->m, GEMM_LARGE_TILE) * rdna__divide_up(p->of->n, GEMM_LARGE_TILE);
  return tiles >= p->units && p->of->m > GEMM_SMALL_TILE && p->of->n > GEMM_SMALL_TILE;
}

enum { M1, M4, M8, LARGE, SMALL };
static const rdna__route routes[] = {
    [M1] = {.name = "rows 1", .kernels = {"gemv_group_{i8|u4}_m1"}, .when = "an aligned vector", .applies = is_row},
    [M4] = {.name = "rows 4", .kernels = {"gemv_group_{i8|u4}_m4"}, .when = "up to 4", .applies = are_4_rows},
    [M8] = {.name = "rows 8", .kernels = {"gemv_group_{i8|u4}_m8"}, .when = "up to 8", .applies = are_few_rows},
    [LARGE] = {.name = "large tiles",
               .kernels = {"gemm_group_{i8|u4}_large"},
               .when = "at least a large tile for each compute unit",
               .applies = fills_units},
    [SMALL] = {.name = "small tiles", .kernels = {"gemm_group_{i8|u4}_small"}, .when = "smaller results"},
};
RDNA_ROUTES(rdna__linear_quant_groups_routes, "linear_quant_groups", routes)

rdna_status rdna_op_linear_quant_groups(rdna_stream *stream, const rdna_tensor *x, const rdna_quant_groups *weights,
                                        const rdna_tensor *bias, const rdna_tensor *out) {
  rdna__group_request r = {.op_name = "linear_quant_groups"};
  rdna_quant_groups known;
  int64_t rows, k, x_stride, out_rows, n, out_stride;
  RDNA_TRY(RDNA__OPTIONS(r.op_name, "weights", weights, &known));
  weights = &known;
  RDNA_TRY(rdna__check_tensor(r.op_name, "x", x));
  RDNA_TRY(rdna__check_dtype(r.op_name, "x", x, RDNA_F32));
  RDNA_TRY(rdna__check_tensor(r.op_name, "out", out));
  RDNA_TRY(rdna__check_dtype(r.op_name, "out", out, RDNA_F32));
  RDNA_TRY(rdna__check_rows(r.op_name, "x", x, &rows, &k, &x_stride));
  RDNA_TRY(rdna__check_rows(r.op_name, "out", out, &out_rows, &n, &out_stride));
  RDNA_TRY(rdna__check_group_weights(&r, weights, k, "x"));
  RDNA_TRY(rdna__check_size(r.op_name, "codes", weights->codes, 0, n, "the last size of out"));
  RDNA_TRY(rdna__check_bias(r.op_name, bias, out, n, "the columns of the result"));
  if (n == 0) return RDNA_OK;
  if (k > 0 && rows != out_rows) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "linear_quant_groups: x has %lld rows and out %lld; they must have as many", (long long)rows,
                      (long long)out_rows);
  }
  rdna__matrix written = {.rows = out_rows, .columns = n, .batch = 1, .ld = out_stride};
  RDNA_TRY(rdna__matrix_check_written(r.op_name, "out", out, &written));
  RDNA_TRY(rdna__check_apart(r.op_name, "out", out, "x", x));
  RDNA_TRY(rdna__check_group_apart(r.op_name, "out", out, weights));
  RDNA_TRY(rdna__check_stream("linear_quant_groups", stream));
  if (out_rows > INT32_MAX || n > INT32_MAX || k > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "linear_quant_groups: m %lld, n %lld, k %lld; each must fit in 31 bits: split it",
                      (long long)out_rows, (long long)n, (long long)k);
  }
  if (out_rows == 0) return RDNA_OK;
  struct group_gemm_args args = {.weights = r.args};
  args.product = (struct gemm_args){.a = x->data,
                                    .bias = bias ? bias->data : NULL,
                                    .c = out->data,
                                    .lda = x_stride,
                                    .ldb = k,
                                    .ldc = out_stride,
                                    .m = (int32_t)out_rows,
                                    .n = (int32_t)n,
                                    .k = (int32_t)k,
                                    .batch = 1,
                                    .flags = GEMM_B_TRANSPOSED,
                                    .alpha = 1};
  problem p = {&args.product, rdna_device_get_info(rdna_stream_device(stream))->compute_units};
  const rdna__route *route = rdna__route_choose(&rdna__linear_quant_groups_routes, &p);
  int64_t side = route == &routes[LARGE] ? GEMM_LARGE_TILE : GEMM_SMALL_TILE;
  bool vectors = route != &routes[LARGE] && route != &routes[SMALL];
  int64_t tiles = rdna__divide_up(out_rows, side) * rdna__divide_up(n, side);
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r.op_name, vectors ? n : tiles, vectors ? QUANT_GEMV_GROUP_ROWS : 1, &grid.x));
  if (vectors) grid.x = rdna__quant_gemv_groups(stream, grid.x);
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &args, rdna__group_codes(&r));
}
