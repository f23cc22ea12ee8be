#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/gemm/gemm.h"
#include "math/quant/group_kernels.h"
#include "math/quant/quant.h"
#include "rdna/op/linear.h"
#include "rdna/op/quant.h"

enum { DEQUANTIZE, QUANTIZE };
static const rdna__route weight_routes[] = {
    [DEQUANTIZE] = {.name = "dequantize", .kernels = {"dequantize_group_{i8|u4}_{float}"}, .when = "dequantize_groups"},
    [QUANTIZE] = {.name = "quantize", .kernels = {"quantize_group_f32_{i8|u4}"}, .when = "quantize_groups"},
};
RDNA_FIXED_ROUTES(rdna__quant_group_routes, "dequantize_groups, quantize_groups", weight_routes)

typedef struct request {
  const char *op_name;
  struct group_weights_args args;
  bool is_u4;
} request;

static const char *codes_of(const request *r) { return r->is_u4 ? "u4" : "i8"; }

static rdna_status check_multiple(const char *op_name, const char *argument, const void *data, size_t multiple) {
  if ((uintptr_t)data % multiple == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s lies at %p; the address must be a multiple of %zu", op_name, argument,
                    data, multiple);
}

/* |w| as weights of rows of |k| values, whose tensor is called |meaning|. */
static rdna_status check_weights(request *r, const rdna_quant_groups *w, int64_t k, const char *meaning) {
  const char *op_name = r->op_name;
  char text[RDNA__TENSOR_TEXT], scales_text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_tensor(op_name, "codes", w->codes));
  RDNA_TRY(rdna__check_tensor(op_name, "scales", w->scales));
  RDNA_TRY(rdna__check_rank(op_name, "codes", w->codes, 2));
  RDNA_TRY(rdna__check_rank(op_name, "scales", w->scales, 2));
  RDNA_TRY(rdna__check_dtype(op_name, "scales", w->scales, RDNA_F16));
  r->is_u4 = w->codes->dtype == RDNA_U8;
  if (w->codes->dtype != RDNA_I8 && !r->is_u4) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: codes is %s; it must be i8, or u8 with two values in each", op_name,
                      rdna_dtype_name(w->codes->dtype));
  }
  int64_t n = w->codes->shape[0], groups = w->scales->shape[1];
  if (w->codes->shape[1] != (r->is_u4 ? k / 2 : k) || k % 2 != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: codes is %s and %s has rows of %lld values; they do not fit together",
                      op_name, rdna__tensor_text(w->codes, text), meaning, (long long)k);
  }
  RDNA_TRY(rdna__check_size(op_name, "scales", w->scales, 0, n, "the rows of codes"));
  int shift = 5;
  while (shift < 9 && groups << shift != k) shift++;
  if (shift == 9 && k > 0) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: scales is %s for rows of %lld values; each must stand for 32, 64, 128 or 256 of them",
                      op_name, rdna__tensor_text(w->scales, scales_text), (long long)k);
  }
  RDNA_TRY(rdna__check_contiguous(op_name, "codes", w->codes));
  RDNA_TRY(rdna__check_contiguous(op_name, "scales", w->scales));
  RDNA_TRY(check_multiple(op_name, "codes", w->codes->data, 16));
  if (w->zeros) {
    RDNA_TRY(rdna__check_tensor(op_name, "zeros", w->zeros));
    RDNA_TRY(rdna__check_dtype(op_name, "zeros", w->zeros, w->codes->dtype));
    RDNA_TRY(rdna__check_same_shape(op_name, "zeros", w->zeros, "scales", w->scales));
    RDNA_TRY(rdna__check_contiguous(op_name, "zeros", w->zeros));
  }
  r->args = (struct group_weights_args){w->codes->data, w->scales->data, w->zeros ? w->zeros->data : NULL, n, k, shift};
  return RDNA_OK;
}

static rdna_status check_apart(const char *op_name, const char *name, const rdna_tensor *dense,
                               const rdna_quant_groups *w) {
  RDNA_TRY(rdna__check_apart(op_name, name, dense, "codes", w->codes));
  RDNA_TRY(rdna__check_apart(op_name, name, dense, "scales", w->scales));
  return w->zeros ? rdna__check_apart(op_name, name, dense, "zeros", w->zeros) : RDNA_OK;
}

/* The matrix that weights are made of or become. */
static rdna_status check_dense(request *r, const char *name, const rdna_tensor *dense, const rdna_quant_groups *w) {
  RDNA_TRY(rdna__check_float(r->op_name, name, dense));
  RDNA_TRY(rdna__check_rank(r->op_name, name, dense, 2));
  RDNA_TRY(rdna__check_contiguous(r->op_name, name, dense));
  RDNA_TRY(check_weights(r, w, dense->shape[1], name));
  RDNA_TRY(rdna__check_size(r->op_name, name, dense, 0, r->args.n, "the rows of codes"));
  RDNA_TRY(check_multiple(r->op_name, name, dense->data, 32));
  return check_apart(r->op_name, name, dense, w);
}

rdna_status rdna_op_dequantize_groups(rdna_stream *stream, const rdna_quant_groups *weights, const rdna_tensor *out) {
  request r = {.op_name = "dequantize_groups"};
  rdna_quant_groups known;
  RDNA_TRY(RDNA__OPTIONS(r.op_name, "weights", weights, &known));
  weights = &known;
  RDNA_TRY(check_dense(&r, "out", out, weights));
  RDNA_TRY(rdna__check_stream("dequantize_groups", stream));
  struct dequantize_group_args args = {r.args, out->data};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r.op_name, r.args.n * r.args.k, QUANT_VALUES_PER_GROUP, &grid.x));
  if (grid.x == 0) return RDNA_OK;
  return RDNA__ROUTE_LAUNCH(stream, &weight_routes[DEQUANTIZE], 0, grid, &args, codes_of(&r),
                            rdna_dtype_name(out->dtype));
}

rdna_status rdna_op_quantize_groups(rdna_stream *stream, const rdna_tensor *x, const rdna_quant_groups *weights) {
  request r = {.op_name = "quantize_groups"};
  rdna_quant_groups known;
  RDNA_TRY(RDNA__OPTIONS(r.op_name, "weights", weights, &known));
  weights = &known;
  RDNA_TRY(check_dense(&r, "x", x, weights));
  RDNA_TRY(rdna__check_dtype(r.op_name, "x", x, RDNA_F32));
  RDNA_TRY(rdna__check_apart(r.op_name, "codes", weights->codes, "scales", weights->scales));
  if (weights->zeros) {
    RDNA_TRY(rdna__check_apart(r.op_name, "codes", weights->codes, "zeros", weights->zeros));
    RDNA_TRY(rdna__check_apart(r.op_name, "scales", weights->scales, "zeros", weights->zeros));
  }
  RDNA_TRY(rdna__check_stream("quantize_groups", stream));
  struct quantize_group_args args = {r.args, x->data};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r.op_name, (r.args.n * r.args.k) >> r.args.shift, QUANT_THREADS, &grid.x));
  return grid.x > 0 ? RDNA__ROUTE_LAUNCH(stream, &weight_routes[QUANTIZE], 0, grid, &args, codes_of(&r)) : RDNA_OK;
}

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
  request r = {.op_name = "linear_quant_groups"};
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
  RDNA_TRY(check_weights(&r, weights, k, "x"));
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
  RDNA_TRY(check_apart(r.op_name, "out", out, weights));
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
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &args, codes_of(&r));
}
