/* Softmax and log-softmax along any dimension, and their gradients. */
#include "math/common/plan/check.h"
#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "math/softmax/softmax.h"
#include "math/softmax/softmax_backward_kernels.h"
#include "rdna/op/softmax.h"

enum { TYPES = RDNA_BF16 + 1, ROWS_OF_A_UNIT = 4 /* no more for each compute unit, and long rows are cut */ };
static const char *const backward_kernels[TYPES] = {"softmax_backward_f32", "softmax_backward_f16",
                                                    "softmax_backward_bf16"};
static const char *const long_kernels[TYPES] = {"softmax_backward_long_f32", "softmax_backward_long_f16",
                                                "softmax_backward_long_bf16"};
static const char *const part_kernels[TYPES] = {"softmax_backward_part_f32", "softmax_backward_part_f16",
                                                "softmax_backward_part_bf16"};
static const char *const finish_kernels[TYPES] = {"softmax_backward_finish_f32", "softmax_backward_finish_f16",
                                                  "softmax_backward_finish_bf16"};
static const char *const dim_kernels[TYPES] = {"softmax_dim_f32", "softmax_dim_f16", "softmax_dim_bf16"};
static const char *const dim_backward_kernels[TYPES] = {"softmax_dim_backward_f32", "softmax_dim_backward_f16",
                                                        "softmax_dim_backward_bf16"};

/* |argument| is like |first|, and |out|, which is written, is one of them or apart. */
static rdna_status check_like(const char *op_name, const char *argument, const rdna_tensor *tensor,
                              const char *first_argument, const rdna_tensor *first) {
  RDNA_TRY(rdna__check_real(op_name, argument, tensor));
  RDNA_TRY(rdna__check_same_dtype(op_name, argument, tensor, first_argument, first));
  RDNA_TRY(rdna__check_same_shape(op_name, argument, tensor, first_argument, first));
  return rdna__check_overlap(op_name, argument, tensor, first_argument, first);
}

/* Turns |dim| into one counted from 0, and sees the tensor as (outer, cols, inner). */
static rdna_status split_at(const char *op_name, const char *argument, const rdna_tensor *x, int *dim,
                            int64_t sizes[3]) {
  RDNA_TRY(rdna__check_dim(op_name, argument, x, dim));
  sizes[0] = sizes[2] = 1;
  sizes[1] = x->rank > 0 ? x->shape[*dim] : 1;
  for (int i = 0; i < *dim; i++) sizes[0] *= x->shape[i];
  for (int i = *dim + 1; i < x->rank; i++) sizes[2] *= x->shape[i];
  return RDNA_OK;
}

/* A thread has at least one value across inner. */
static rdna_status launch_dim(rdna_stream *stream, const char *kernel, int64_t across, const void *args) {
  int64_t groups = across / SOFTMAX_BACKWARD_THREADS + (across % SOFTMAX_BACKWARD_THREADS != 0);
  return rdna__launch_named(stream, kernel, (rdna_grid){rdna__groups_in_turn(groups), 1, 1}, args);
}

static rdna_status along(const char *op_name, rdna_stream *stream, const rdna_tensor *x, int dim, float scale, bool log,
                         const rdna_tensor *out) {
  int64_t sizes[3];
  RDNA_TRY(rdna__check_stream(op_name, stream));
  RDNA_TRY(rdna__check_real(op_name, "x", x));
  RDNA_TRY(check_like(op_name, "out", out, "x", x));
  RDNA_TRY(split_at(op_name, "x", x, &dim, sizes));
  if (x->dtype == RDNA_F64) {
    RDNA_TRY(rdna__check_distinct(op_name, out));
    return rdna__softmax_f64(op_name, stream, x, dim, (double)scale, log, out);
  }
  if (dim >= x->rank - 1) return rdna__softmax_rows(op_name, stream, x, scale, log, out);
  RDNA_TRY(rdna__check_contiguous(op_name, "x", x));
  RDNA_TRY(rdna__check_contiguous(op_name, "out", out));
  struct softmax_dim_args args = {.x = x->data,
                                  .out = out->data,
                                  .outer = sizes[0],
                                  .cols = sizes[1],
                                  .inner = sizes[2],
                                  .scale = scale,
                                  .log = log};
  return launch_dim(stream, dim_kernels[x->dtype], sizes[0] * sizes[2], &args);
}

/* Long rows in parts. */
static rdna_status backward_parts(const char *op_name, rdna_stream *stream, const struct softmax_backward_args *of,
                                  rdna_dtype dtype) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  int64_t steps = (of->cols - 1) / SOFTMAX_BACKWARD_PART_COLS + 1;
  int64_t steps_of_a_part = (steps - 1) / SOFTMAX_BACKWARD_MOST_PARTS + 1;
  struct softmax_backward_part_args args = {.dout = of->dout,
                                            .out = of->out,
                                            .dx = of->dx,
                                            .rows = of->rows,
                                            .cols = of->cols,
                                            .dout_stride = of->dout_stride,
                                            .out_stride = of->out_stride,
                                            .dx_stride = of->dx_stride,
                                            .parts = (steps - 1) / steps_of_a_part + 1,
                                            .part_cols = steps_of_a_part * SOFTMAX_BACKWARD_PART_COLS,
                                            .scale = of->scale,
                                            .log = of->log};
  rdna_grid grid = {rdna__groups_in_turn(args.rows * args.parts), 1, 1};
  void *sums;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)(args.rows * args.parts) * sizeof(float), &sums));
  args.sums = sums;
  rdna_status status = rdna__launch_named(stream, part_kernels[dtype], grid, &args);
  if (status == RDNA_OK) status = rdna__launch_named(stream, finish_kernels[dtype], grid, &args);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status backward_rows(const char *op_name, rdna_stream *stream, const rdna_tensor *dout,
                                 const rdna_tensor *out, float scale, bool log, const rdna_tensor *dx) {
  struct softmax_backward_args args = {
      .dout = dout->data, .out = out->data, .dx = dx->data, .scale = scale, .log = log};
  RDNA_TRY(rdna__check_rows(op_name, "dout", dout, &args.rows, &args.cols, &args.dout_stride));
  RDNA_TRY(rdna__check_rows(op_name, "out", out, &args.rows, &args.cols, &args.out_stride));
  RDNA_TRY(rdna__check_rows(op_name, "dx", dx, &args.rows, &args.cols, &args.dx_stride));
  RDNA_TRY(rdna__check_written_rows(op_name, "dx", dx, args.rows, args.cols, args.dx_stride));
  if (args.cols > 2 * SOFTMAX_BACKWARD_PART_COLS &&
      args.rows <= ROWS_OF_A_UNIT * (int64_t)rdna_device_get_info(rdna_stream_device(stream))->compute_units)
    return backward_parts(op_name, stream, &args, dx->dtype);
  int64_t row_bytes = args.cols * (int64_t)rdna_dtype_block_bytes(dx->dtype);
  rdna_grid grid = {rdna__groups_in_turn(args.rows), 1, 1};
  if (args.cols <= SOFTMAX_BACKWARD_WAVE_COLS)
    grid.x = rdna__groups_of_waves(stream, args.rows, row_bytes, SOFTMAX_BACKWARD_THREADS);
  const char *const *of = args.cols > SOFTMAX_BACKWARD_HELD_COLS ? long_kernels : backward_kernels;
  return rdna__launch_named(stream, of[dx->dtype], grid, &args);
}

static rdna_status backward(const char *op_name, rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *out,
                            int dim, float scale, bool log, const rdna_tensor *dx) {
  int64_t sizes[3];
  RDNA_TRY(rdna__check_stream(op_name, stream));
  RDNA_TRY(rdna__check_real(op_name, "dout", dout));
  RDNA_TRY(check_like(op_name, "dx", dx, "dout", dout));
  RDNA_TRY(rdna__check_real(op_name, "out", out));
  RDNA_TRY(check_like(op_name, "dx", dx, "out", out));
  RDNA_TRY(split_at(op_name, "dout", dout, &dim, sizes));
  if (dx->dtype == RDNA_F64) {
    RDNA_TRY(rdna__check_distinct(op_name, dx));
    return rdna__softmax_f64_backward(op_name, stream, dout, out, dim, (double)scale, log, dx);
  }
  if (dim >= dout->rank - 1) return backward_rows(op_name, stream, dout, out, scale, log, dx);
  RDNA_TRY(rdna__check_contiguous(op_name, "dout", dout));
  RDNA_TRY(rdna__check_contiguous(op_name, "out", out));
  RDNA_TRY(rdna__check_contiguous(op_name, "dx", dx));
  struct softmax_dim_backward_args args = {.dout = dout->data,
                                           .out = out->data,
                                           .dx = dx->data,
                                           .outer = sizes[0],
                                           .cols = sizes[1],
                                           .inner = sizes[2],
                                           .scale = scale,
                                           .log = log};
  return launch_dim(stream, dim_backward_kernels[dx->dtype], sizes[0] * sizes[2], &args);
}

rdna_status rdna_op_softmax(rdna_stream *stream, const rdna_tensor *x, int dim, float scale, const rdna_tensor *out) {
  return along("softmax", stream, x, dim, scale, false, out);
}

rdna_status rdna_op_log_softmax(rdna_stream *stream, const rdna_tensor *x, int dim, float scale,
                                const rdna_tensor *out) {
  return along("log_softmax", stream, x, dim, scale, true, out);
}

rdna_status rdna_op_softmax_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *out, int dim,
                                     float scale, const rdna_tensor *dx) {
  return backward("softmax_backward", stream, dout, out, dim, scale, false, dx);
}

rdna_status rdna_op_log_softmax_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *out, int dim,
                                         float scale, const rdna_tensor *dx) {
  return backward("log_softmax_backward", stream, dout, out, dim, scale, true, dx);
}
