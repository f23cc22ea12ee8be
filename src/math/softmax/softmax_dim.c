/* Softmax and log-softmax along any dimension, and their gradients. */
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "math/softmax/softmax.h"
#include "math/softmax/softmax_backward_kernels.h"
#include "rdna/op/softmax.h"

enum { ROWS_OF_A_UNIT = 4 }; /* no more for each compute unit, and long rows are cut; an H200's */

struct problem {
  int64_t rows, cols, units;
};

static bool are_cut(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->cols > 2 * SOFTMAX_BACKWARD_PART_COLS && p->rows <= ROWS_OF_A_UNIT * p->units;
}
static bool are_short(const rdna__route *route, const void *problem) {
  return ((const struct problem *)problem)->cols <= SOFTMAX_BACKWARD_WAVE_COLS;
}
static bool are_long(const rdna__route *route, const void *problem) {
  return ((const struct problem *)problem)->cols > SOFTMAX_BACKWARD_HELD_COLS;
}

enum { PARTS, WAVES, LONG, GROUPS };
static const rdna__route routes[] = {
    [PARTS] = {.name = "parts",
               .kernels = {"softmax_backward_part_{float}", "softmax_backward_finish_{float}"},
               .when = "long rows, at most 4 for each compute unit",
               .applies = are_cut,
               .measured_on = "H200"},
    [WAVES] = {.name = "waves",
               .kernels = {"softmax_backward_{float}"},
               .when = "rows that are a wave's",
               .applies = are_short,
               .measured_on = "H200"},
    [LONG] = {.name = "long",
              .kernels = {"softmax_backward_long_{float}"},
              .when = "rows longer than a group's registers",
              .applies = are_long},
    [GROUPS] = {.name = "groups", .kernels = {"softmax_backward_{float}"}, .when = "all other rows, each a group's"},
};
RDNA_ROUTES(rdna__softmax_backward_routes, "softmax_backward, log_softmax_backward", routes)

enum { FORWARD, BACKWARD };
static const rdna__route dim_routes[] = {
    [FORWARD] = {.name = "forward",
                 .kernels = {"softmax_dim_{float}"},
                 .when = "softmax along another dimension than the last"},
    [BACKWARD] = {.name = "backward", .kernels = {"softmax_dim_backward_{float}"}, .when = "its gradient"},
};
RDNA_FIXED_ROUTES(rdna__softmax_dim_routes, "softmax along another dimension than the last", dim_routes)

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
static rdna_status launch_dim(rdna_stream *stream, int step, rdna_dtype dtype, int64_t across, const void *args) {
  int64_t groups = across / SOFTMAX_BACKWARD_THREADS + (across % SOFTMAX_BACKWARD_THREADS != 0);
  rdna_grid grid = {rdna__groups_in_turn(groups), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, &dim_routes[step], 0, grid, args, rdna_dtype_name(dtype));
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
  return launch_dim(stream, FORWARD, x->dtype, sizes[0] * sizes[2], &args);
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
  const char *type = rdna_dtype_name(dtype);
  rdna_status status = RDNA__ROUTE_LAUNCH(stream, &routes[PARTS], 0, grid, &args, type);
  if (status == RDNA_OK) status = RDNA__ROUTE_LAUNCH(stream, &routes[PARTS], 1, grid, &args, type);
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
  struct problem problem = {
      .rows = args.rows, .cols = args.cols, .units = rdna_device_get_info(rdna_stream_device(stream))->compute_units};
  const rdna__route *route = rdna__route_choose(&rdna__softmax_backward_routes, &problem);
  if (route == &routes[PARTS]) return backward_parts(op_name, stream, &args, dx->dtype);
  int64_t row_bytes = args.cols * (int64_t)rdna_dtype_block_bytes(dx->dtype);
  rdna_grid grid = {rdna__groups_in_turn(args.rows), 1, 1};
  if (route == &routes[WAVES]) grid.x = rdna__groups_of_waves(stream, args.rows, row_bytes, SOFTMAX_BACKWARD_THREADS);
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &args, rdna_dtype_name(dx->dtype));
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
  return launch_dim(stream, BACKWARD, dx->dtype, sizes[0] * sizes[2], &args);
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
