#include "math/quant/group_weights.h"

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "rdna/op/quant.h"

enum { DEQUANTIZE, QUANTIZE };
static const rdna__route weight_routes[] = {
    [DEQUANTIZE] = {.name = "dequantize", .kernels = {"dequantize_group_{i8|u4}_{float}"}, .when = "dequantize_groups"},
    [QUANTIZE] = {.name = "quantize", .kernels = {"quantize_group_f32_{i8|u4}"}, .when = "quantize_groups"},
};
RDNA_FIXED_ROUTES(rdna__quant_group_routes, "dequantize_groups, quantize_groups", weight_routes)

static rdna_status check_multiple(const char *op_name, const char *argument, const void *data, size_t multiple) {
  if ((uintptr_t)data % multiple == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s lies at %p; the address must be a multiple of %zu", op_name, argument,
                    data, multiple);
}

rdna_status rdna__check_group_weights(rdna__group_request *r, const rdna_quant_groups *w, int64_t k,
                                      const char *meaning) {
  const char *op_name = r->op_name;
  char text[RDNA__TENSOR_TEXT], scales_text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_tensor(op_name, "codes", w->codes));
  RDNA_TRY(rdna__check_tensor(op_name, "scales", w->scales));
  RDNA_TRY(rdna__check_rank(op_name, "codes", w->codes, 2));
  RDNA_TRY(rdna__check_rank(op_name, "scales", w->scales, 2));
  RDNA_TRY(rdna__check_float(op_name, "scales", w->scales));
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
  RDNA_TRY(check_multiple(op_name, "codes", w->codes->data, 16));
  if (w->zeros) {
    RDNA_TRY(rdna__check_tensor(op_name, "zeros", w->zeros));
    RDNA_TRY(rdna__check_dtype(op_name, "zeros", w->zeros, w->codes->dtype));
    RDNA_TRY(rdna__check_same_shape(op_name, "zeros", w->zeros, "scales", w->scales));
    RDNA_TRY(rdna__check_contiguous(op_name, "zeros", w->zeros));
  }
  if (w->offsets) {
    RDNA_TRY(rdna__check_tensor(op_name, "offsets", w->offsets));
    RDNA_TRY(rdna__check_dtype(op_name, "offsets", w->offsets, w->scales->dtype));
    RDNA_TRY(rdna__check_same_shape(op_name, "offsets", w->offsets, "scales", w->scales));
  }
  r->args = (struct group_weights_args){.codes = w->codes->data,
                                        .scales = w->scales->data,
                                        .zeros = w->zeros ? w->zeros->data : NULL,
                                        .offsets = w->offsets ? w->offsets->data : NULL,
                                        .n = n,
                                        .k = k,
                                        .scale_row = w->scales->stride[0],
                                        .scale_group = w->scales->stride[1],
                                        .offset_row = w->offsets ? w->offsets->stride[0] : 0,
                                        .offset_group = w->offsets ? w->offsets->stride[1] : 0,
                                        .shift = shift,
                                        .type = (int32_t)w->scales->dtype};
  return RDNA_OK;
}

rdna_status rdna__check_group_apart(const char *op_name, const char *name, const rdna_tensor *dense,
                                    const rdna_quant_groups *w) {
  RDNA_TRY(rdna__check_apart(op_name, name, dense, "codes", w->codes));
  RDNA_TRY(rdna__check_apart(op_name, name, dense, "scales", w->scales));
  if (w->zeros) RDNA_TRY(rdna__check_apart(op_name, name, dense, "zeros", w->zeros));
  return w->offsets ? rdna__check_apart(op_name, name, dense, "offsets", w->offsets) : RDNA_OK;
}

/* Checks |dense|, the matrix that weights are dequantized to or quantized from. */
static rdna_status check_dense(rdna__group_request *r, const char *name, const rdna_tensor *dense,
                               const rdna_quant_groups *w) {
  RDNA_TRY(rdna__check_float(r->op_name, name, dense));
  RDNA_TRY(rdna__check_rank(r->op_name, name, dense, 2));
  RDNA_TRY(rdna__check_contiguous(r->op_name, name, dense));
  RDNA_TRY(rdna__check_group_weights(r, w, dense->shape[1], name));
  RDNA_TRY(rdna__check_size(r->op_name, name, dense, 0, r->args.n, "the rows of codes"));
  RDNA_TRY(check_multiple(r->op_name, name, dense->data, 32));
  return rdna__check_group_apart(r->op_name, name, dense, w);
}

rdna_status rdna_op_dequantize_groups(rdna_stream *stream, const rdna_quant_groups *weights, const rdna_tensor *out) {
  rdna__group_request r = {.op_name = "dequantize_groups"};
  rdna_quant_groups known;
  RDNA_TRY(RDNA__OPTIONS(r.op_name, "weights", weights, &known));
  weights = &known;
  RDNA_TRY(check_dense(&r, "out", out, weights));
  RDNA_TRY(rdna__check_stream("dequantize_groups", stream));
  struct dequantize_group_args args = {r.args, out->data};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r.op_name, r.args.n * r.args.k, QUANT_VALUES_PER_GROUP, &grid.x));
  if (grid.x == 0) return RDNA_OK;
  return RDNA__ROUTE_LAUNCH(stream, &weight_routes[DEQUANTIZE], 0, grid, &args, rdna__group_codes(&r),
                            rdna_dtype_name(out->dtype));
}

rdna_status rdna_op_quantize_groups(rdna_stream *stream, const rdna_tensor *x, const rdna_quant_groups *weights) {
  rdna__group_request r = {.op_name = "quantize_groups"};
  rdna_quant_groups known;
  RDNA_TRY(RDNA__OPTIONS(r.op_name, "weights", weights, &known));
  weights = &known;
  RDNA_TRY(check_dense(&r, "x", x, weights));
  RDNA_TRY(rdna__check_dtype(r.op_name, "x", x, RDNA_F32));
  RDNA_TRY(rdna__check_dtype(r.op_name, "scales", weights->scales, RDNA_F16));
  RDNA_TRY(rdna__check_contiguous(r.op_name, "scales", weights->scales));
  if (weights->offsets) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "quantize_groups: weights have offsets; leave them NULL: zeros do what they do");
  }
  RDNA_TRY(rdna__check_apart(r.op_name, "codes", weights->codes, "scales", weights->scales));
  if (weights->zeros) {
    RDNA_TRY(rdna__check_apart(r.op_name, "codes", weights->codes, "zeros", weights->zeros));
    RDNA_TRY(rdna__check_apart(r.op_name, "scales", weights->scales, "zeros", weights->zeros));
  }
  RDNA_TRY(rdna__check_stream("quantize_groups", stream));
  struct quantize_group_args args = {r.args, x->data};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r.op_name, (r.args.n * r.args.k) >> r.args.shift, QUANT_THREADS, &grid.x));
  return grid.x > 0 ? RDNA__ROUTE_LAUNCH(stream, &weight_routes[QUANTIZE], 0, grid, &args, rdna__group_codes(&r))
                    : RDNA_OK;
}
