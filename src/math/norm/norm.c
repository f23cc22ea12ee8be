#include "rdna/op/norm.h"

#include <math.h>

#include "math/check.h"
#include "math/norm/norm_kernels.h"

enum { TYPES = RDNA_BF16 + 1 }; /* f32, f16, bf16: the first of the enumeration */

/* [type of the values][weights are f32] */
#define NORM_NAMES(name) \
  {{#name "_f32", #name "_f32"}, {#name "_f16", #name "_f16_wf32"}, {#name "_bf16", #name "_bf16_wf32"}}
static const char *const rms_norm_kernels[TYPES][2] = NORM_NAMES(rms_norm);
static const char *const add_rms_norm_kernels[TYPES][2] = NORM_NAMES(add_rms_norm);
static const char *const layer_norm_kernels[TYPES][2] = NORM_NAMES(layer_norm);

struct rows {
  int64_t rows, cols;
  int64_t x_stride, residual_stride, out_stride;
};

/* Rows that are written may not run into each other. */
static rdna_status check_written_rows(const char *operator, const char * argument, const rdna_tensor *tensor,
                                      int64_t rows, int64_t cols, int64_t stride) {
  char text[RDNA__TENSOR_TEXT];
  if (rows > 1 && stride > -cols && stride < cols) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s with rows %lld apart; rows of %lld would overlap", operator,
                      argument, rdna__tensor_text(tensor, text), (long long)stride, (long long)cols);
  }
  return RDNA_OK;
}

static rdna_status check_input(const char *operator, const char * argument, const rdna_tensor *in, int64_t *out_stride,
                               const rdna_tensor *out, struct rows *rows) {
  RDNA_TRY(rdna__check_float(operator, argument, in));
  RDNA_TRY(rdna__check_same_dtype(operator, argument, in, "out", out));
  RDNA_TRY(rdna__check_same_shape(operator, argument, in, "out", out));
  RDNA_TRY(rdna__check_rows(operator, argument, in, &rows->rows, &rows->cols, out_stride));
  return rdna__check_overlap(operator, "out", out, argument, in);
}

static rdna_status check_weight(const char *operator, const char * argument, const rdna_tensor *weight,
                                const rdna_tensor *out, int64_t cols) {
  if (!weight) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(operator, argument, weight));
  RDNA_TRY(rdna__check_rank(operator, argument, weight, 1));
  RDNA_TRY(rdna__check_size(operator, argument, weight, 0, cols, "the length of a row"));
  RDNA_TRY(rdna__check_contiguous(operator, argument, weight));
  if (weight->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(operator, argument, weight, "out", out));
  return rdna__check_apart(operator, "out", out, argument, weight);
}

static rdna_status check_out(const char *operator, const rdna_tensor * out, float epsilon, struct rows *rows) {
  RDNA_TRY(rdna__check_float(operator, "out", out));
  RDNA_TRY(rdna__check_rows(operator, "out", out, &rows->rows, &rows->cols, &rows->out_stride));
  RDNA_TRY(check_written_rows(operator, "out", out, rows->rows, rows->cols, rows->out_stride));
  if (!(epsilon >= 0) || isinf(epsilon)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: epsilon is %g; it must be finite and not negative", operator,(double) epsilon);
  }
  return RDNA_OK;
}

static rdna_status launch_rows(rdna_stream *stream, const char *operator, const char * const kernels[TYPES][2],
                               const rdna_tensor *out, const rdna_tensor *weight, const struct rows *rows,
                               const void *args) {
  rdna_grid grid = {0, 1, 1};
  /* rows of a wave, or of a group where they may be long: which of the two the kernel sees from the alignment */
  int64_t row_bytes = rows->cols * (int64_t)rdna_dtype_block_bytes(out->dtype);
  RDNA_TRY(rdna__check_groups(operator, rows->rows, 1, &grid.x));
  if (rows->cols <= NORM_WAVE_COLS || row_bytes <= NORM_SHORT_BYTES ||
      (row_bytes <= NORM_WAVE_BYTES && rows->rows >= NORM_MANY_ROWS))
    grid.x = rdna__groups_of_waves(stream, rows->rows, row_bytes, NORM_THREADS);
  return rdna__launch_named(stream, kernels[out->dtype][weight && weight->dtype == RDNA_F32], grid, args);
}

static void *data_of(const rdna_tensor *tensor) { return tensor ? tensor->data : NULL; }

rdna_status rdna_op_rms_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight, float epsilon,
                             const rdna_tensor *out) {
  struct rows rows;
  RDNA_TRY(check_out("rms_norm", out, epsilon, &rows));
  RDNA_TRY(check_input("rms_norm", "x", x, &rows.x_stride, out, &rows));
  RDNA_TRY(check_weight("rms_norm", "weight", weight, out, rows.cols));
  struct rms_norm_args args = {.x = x->data,
                               .weight = data_of(weight),
                               .out = out->data,
                               .rows = rows.rows,
                               .cols = rows.cols,
                               .x_stride = rows.x_stride,
                               .out_stride = rows.out_stride,
                               .epsilon = epsilon};
  return launch_rows(stream, "rms_norm", rms_norm_kernels, out, weight, &rows, &args);
}

rdna_status rdna_op_add_rms_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *residual,
                                 const rdna_tensor *weight, float epsilon, const rdna_tensor *out) {
  static const char name[] = "add_rms_norm";
  struct rows rows;
  RDNA_TRY(check_out(name, out, epsilon, &rows));
  RDNA_TRY(check_input(name, "x", x, &rows.x_stride, out, &rows));
  RDNA_TRY(check_input(name, "residual", residual, &rows.residual_stride, out, &rows));
  RDNA_TRY(check_written_rows(name, "residual", residual, rows.rows, rows.cols, rows.residual_stride));
  RDNA_TRY(check_weight(name, "weight", weight, out, rows.cols));
  RDNA_TRY(rdna__check_apart(name, "residual", residual, "x", x));
  RDNA_TRY(rdna__check_apart(name, "residual", residual, "out", out));
  if (weight) RDNA_TRY(rdna__check_apart(name, "residual", residual, "weight", weight));
  struct add_rms_norm_args args = {.x = x->data,
                                   .residual = residual->data,
                                   .weight = data_of(weight),
                                   .out = out->data,
                                   .rows = rows.rows,
                                   .cols = rows.cols,
                                   .x_stride = rows.x_stride,
                                   .residual_stride = rows.residual_stride,
                                   .out_stride = rows.out_stride,
                                   .epsilon = epsilon};
  return launch_rows(stream, name, add_rms_norm_kernels, out, weight, &rows, &args);
}

rdna_status rdna_op_layer_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                               const rdna_tensor *bias, float epsilon, const rdna_tensor *out) {
  struct rows rows;
  RDNA_TRY(check_out("layer_norm", out, epsilon, &rows));
  RDNA_TRY(check_input("layer_norm", "x", x, &rows.x_stride, out, &rows));
  RDNA_TRY(check_weight("layer_norm", "weight", weight, out, rows.cols));
  RDNA_TRY(check_weight("layer_norm", "bias", bias, out, rows.cols));
  if (weight && bias) RDNA_TRY(rdna__check_same_dtype("layer_norm", "bias", bias, "weight", weight));
  struct layer_norm_args args = {.x = x->data,
                                 .weight = data_of(weight),
                                 .bias = data_of(bias),
                                 .out = out->data,
                                 .rows = rows.rows,
                                 .cols = rows.cols,
                                 .x_stride = rows.x_stride,
                                 .out_stride = rows.out_stride,
                                 .epsilon = epsilon};
  return launch_rows(stream, "layer_norm", layer_norm_kernels, out, weight ? weight : bias, &rows, &args);
}
