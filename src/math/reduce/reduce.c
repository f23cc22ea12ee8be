#include "rdna/op/reduce.h"

#include <math.h>

#include "math/common/plan/check.h"
#include "math/reduce/reduce_kernels.h"

/* Groups take rows in turn, so the grid is bounded by what fills a GPU many times over, not by the rows. */
enum { MOST_GROUPS = 1 << 16 };

static rdna_status check(const char *op_name, rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out,
                         rdna_dtype out_dtype, int64_t *out_rows, int64_t *out_cols, int64_t *out_stride) {
  char x_text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_float(op_name, "x", x));
  RDNA_TRY(rdna__check_tensor(op_name, "out", out));
  RDNA_TRY(rdna__check_dtype(op_name, "out", out, out_dtype));
  if (x->rank == 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: x is a scalar; it needs a dimension", op_name);
  bool same = out->rank == x->rank - 1;
  for (int i = 0; same && i < out->rank; i++) same = out->shape[i] == x->shape[i];
  if (!same) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: x is %s and out is %s; out must be x without its last dimension",
                      op_name, rdna__tensor_text(x, x_text), rdna__tensor_text(out, out_text));
  }
  RDNA_TRY(rdna__check_contiguous(op_name, "out", out));
  RDNA_TRY(rdna__check_rows(op_name, "x", x, out_rows, out_cols, out_stride));
  *out_rows = rdna_tensor_count(out); /* also when cols is 0 */
  if (x->data == out->data && rdna_tensor_count(x) > 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: out and x are both at %p; they must be apart", op_name, x->data);
  }
  return rdna__check_overlap(op_name, "out", out, "x", x);
}

static rdna_grid row_grid(int64_t rows, int64_t cols) {
  /* a group has at least REDUCE_THREADS / 64 waves */
  int64_t groups = REDUCE_BY_WAVE(rows, cols) ? (rows - 1) / (REDUCE_THREADS / 64) + 1 : rows;
  return (rdna_grid){(uint32_t)(groups < MOST_GROUPS ? groups : MOST_GROUPS), 1, 1};
}

rdna_status rdna_op_argmax_rows(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  struct argmax_args args = {0};
  RDNA_TRY(check("argmax_rows", stream, x, out, RDNA_I32, &args.rows, &args.cols, &args.x_stride));
  RDNA_TRY(rdna__check_dtype("argmax_rows", "x", x, RDNA_F32));
  if (args.rows == 0) return RDNA_OK;
  if (args.cols == 0 || args.cols > INT32_MAX) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "argmax_rows: x has %lld columns; there must be 1 to 2147483647",
                      (long long)args.cols);
  }
  args.x = x->data;
  args.out = out->data;
  return rdna__launch_named(stream, "argmax_rows_f32", row_grid(args.rows, args.cols), &args);
}

static rdna_status launch(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out,
                          const char *const kernels[3], struct reduce_args *args) {
  if (args->rows == 0) return RDNA_OK;
  args->x = x->data;
  args->out = out->data;
  return rdna__launch_named(stream,
                            kernels[x->dtype == RDNA_F32   ? 0
                                    : x->dtype == RDNA_F16 ? 1
                                                           : 2],
                            row_grid(args->rows, args->cols), args);
}

static const char *const sum_kernels[] = {"sum_rows_f32", "sum_rows_f16", "sum_rows_bf16"};
static const char *const max_kernels[] = {"max_rows_f32", "max_rows_f16", "max_rows_bf16"};

rdna_status rdna_op_sum_rows(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  struct reduce_args args = {.scale = 1};
  RDNA_TRY(check("sum_rows", stream, x, out, RDNA_F32, &args.rows, &args.cols, &args.x_stride));
  return launch(stream, x, out, sum_kernels, &args);
}

rdna_status rdna_op_mean_rows(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  struct reduce_args args = {0};
  RDNA_TRY(check("mean_rows", stream, x, out, RDNA_F32, &args.rows, &args.cols, &args.x_stride));
  args.scale = args.cols > 0 ? 1 / (float)args.cols : NAN;
  return launch(stream, x, out, sum_kernels, &args);
}

rdna_status rdna_op_max_rows(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  struct reduce_args args = {.scale = 1};
  RDNA_TRY(check("max_rows", stream, x, out, RDNA_F32, &args.rows, &args.cols, &args.x_stride));
  if (args.rows > 0 && args.cols == 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "max_rows: x has 0 columns; there must be at least 1");
  }
  return launch(stream, x, out, max_kernels, &args);
}
