/* rms_norm and add_rms_norm from rows of f32 to rows of 16 bits. */
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/norm/norm.h"
#include "math/norm/norm_kernels.h"

enum { ALONE, ADDED };
static const rdna__route routes[] = {
    [ALONE] = {.name = "rms_norm", .kernels = {"rms_norm_narrow_f32_{f16|bf16}"}, .when = "rms_norm"},
    [ADDED] = {.name = "add_rms_norm",
               .kernels = {"add_rms_norm_narrow_{f32|f16|bf16}_{f16|bf16}"},
               .when = "add_rms_norm: x of f32 or of out's type, the residual f32"},
};
RDNA_FIXED_ROUTES(rdna__narrow_norm_routes, "rms_norm, add_rms_norm of f32 into f16 or bf16", routes)

bool rdna__is_narrow_norm(const rdna_tensor *values, const rdna_tensor *out) {
  return values && out && values->dtype == RDNA_F32 && (out->dtype == RDNA_F16 || out->dtype == RDNA_BF16);
}

/* Rows that are read, of out's shape. */
static rdna_status check_rows_like(const char *op_name, const char *argument, const rdna_tensor *in,
                                   const rdna_tensor *out, int64_t *out_stride) {
  int64_t rows, cols;
  RDNA_TRY(rdna__check_tensor(op_name, argument, in));
  RDNA_TRY(rdna__check_same_shape(op_name, argument, in, "out", out));
  return rdna__check_rows(op_name, argument, in, &rows, &cols, out_stride);
}

static rdna_status check_weight(const char *op_name, const rdna_tensor *weight, const rdna_tensor *out, int64_t cols) {
  if (!weight) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(op_name, "weight", weight));
  RDNA_TRY(rdna__check_rank(op_name, "weight", weight, 1));
  RDNA_TRY(rdna__check_size(op_name, "weight", weight, 0, cols, "the length of a row"));
  RDNA_TRY(rdna__check_contiguous(op_name, "weight", weight));
  if (weight->dtype != RDNA_F32) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: weight is %s where f32 becomes %s; it must be f32", op_name,
                      rdna_dtype_name(weight->dtype), rdna_dtype_name(out->dtype));
  }
  return rdna__check_apart(op_name, "out", out, "weight", weight);
}

static rdna_status check_residual(const char *op_name, const rdna_tensor *x, const rdna_tensor *residual,
                                  const rdna_tensor *weight, const rdna_tensor *out, struct add_rms_norm_args *args) {
  RDNA_TRY(check_rows_like(op_name, "residual", residual, out, &args->residual_stride));
  RDNA_TRY(rdna__check_written_rows(op_name, "residual", residual, args->rows, args->cols, args->residual_stride));
  if (x->dtype != RDNA_F32 && x->dtype != out->dtype) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: x is %s, residual f32 and out %s; x must be f32 or %s", op_name,
                      rdna_dtype_name(x->dtype), rdna_dtype_name(out->dtype), rdna_dtype_name(out->dtype));
  }
  RDNA_TRY(rdna__check_apart(op_name, "residual", residual, "x", x));
  RDNA_TRY(rdna__check_apart(op_name, "residual", residual, "out", out));
  if (weight) RDNA_TRY(rdna__check_apart(op_name, "residual", residual, "weight", weight));
  args->residual = residual->data;
  return RDNA_OK;
}

rdna_status rdna__narrow_norm(rdna_stream *stream, const char *op_name, const rdna_tensor *x,
                              const rdna_tensor *residual, const rdna_tensor *weight, double epsilon,
                              const rdna_tensor *out) {
  struct add_rms_norm_args a = {.epsilon = (float)epsilon};
  RDNA_TRY(rdna__check_float(op_name, "out", out));
  RDNA_TRY(rdna__check_rows(op_name, "out", out, &a.rows, &a.cols, &a.out_stride));
  RDNA_TRY(rdna__check_written_rows(op_name, "out", out, a.rows, a.cols, a.out_stride));
  RDNA_TRY(rdna__check_epsilon(op_name, epsilon));
  RDNA_TRY(check_rows_like(op_name, "x", x, out, &a.x_stride));
  RDNA_TRY(check_weight(op_name, weight, out, a.cols));
  if (residual) RDNA_TRY(check_residual(op_name, x, residual, weight, out, &a));
  if (x->dtype == out->dtype) {
    RDNA_TRY(rdna__check_overlap(op_name, "out", out, "x", x));
  } else {
    RDNA_TRY(rdna__check_apart(op_name, "out", out, "x", x));
  }
  RDNA_TRY(rdna__check_stream(op_name, stream));
  a.x = x->data, a.out = out->data, a.weight = weight ? weight->data : NULL;
  rdna_grid grid = {rdna__groups_in_turn(a.rows), 1, 1};
  if (residual) {
    return RDNA__ROUTE_LAUNCH(stream, &routes[ADDED], 0, grid, &a, rdna_dtype_name(x->dtype),
                              rdna_dtype_name(out->dtype));
  }
  struct rms_norm_args alone = {.x = a.x,
                                .weight = a.weight,
                                .out = a.out,
                                .rows = a.rows,
                                .cols = a.cols,
                                .x_stride = a.x_stride,
                                .out_stride = a.out_stride,
                                .epsilon = a.epsilon};
  return RDNA__ROUTE_LAUNCH(stream, &routes[ALONE], 0, grid, &alone, rdna_dtype_name(out->dtype));
}
