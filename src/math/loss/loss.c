#include "rdna/op/loss.h"

#include <math.h>

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/loss/loss_kernels.h"

enum { MOST_SLICES = 1024, MOST_GROUPS = 1 << 16 };

enum { FORWARD, BACKWARD };
static const rdna__route value_routes[] = {
    [FORWARD] = {.name = "forward",
                 .kernels = {"loss_values_{float}", "loss_sum"},
                 .when = "losses of values; summed in two steps where they are reduced"},
    [BACKWARD] = {.name = "backward", .kernels = {"loss_values_backward_{float}"}, .when = "their gradient"},
};
RDNA_FIXED_ROUTES(rdna__loss_routes, "loss, loss_backward", value_routes)

struct entropy_problem {
  int64_t cols, bytes; /* of a value */
  float smoothing;
  bool nll, in_place;
  uint32_t parts;
};

static bool are_short(const rdna__route *route, const void *problem) {
  const struct entropy_problem *p = problem;
  return !p->in_place && !p->nll && p->smoothing == 0 && p->cols <= LOSS_SHORT_MOST(p->bytes);
}
static bool are_cut(const rdna__route *route, const void *problem) {
  return ((const struct entropy_problem *)problem)->parts > 1;
}

enum { SHORT, PARTS, ROWS };
static const rdna__route entropy_routes[] = {
    [SHORT] = {.name = "short",
               .kernels = {"cross_entropy_short_{float}", "loss_sum", "loss_store"},
               .when = "rows so short that a group has a block of them, without smoothing",
               .applies = are_short,
               .measured_on = "H200"},
    [PARTS] = {.name = "parts",
               .kernels = {"cross_entropy_{float}", "cross_entropy_finish_{float}", "loss_store"},
               .when = "fewer than 256 long rows, cut so that there are about 512 groups",
               .applies = are_cut,
               .measured_on = "H200"},
    [ROWS] = {.name = "rows",
              .kernels = {"cross_entropy_{float}", "loss_sum", "loss_store"},
              .when = "all others: a row is a wave's or a group's"},
};
RDNA_ROUTES(rdna__cross_entropy_routes, "cross_entropy", entropy_routes)

static const rdna__route entropy_backward_routes[] = {
    {.name = "short",
     .kernels = {"cross_entropy_backward_short_{float}"},
     .when = "short rows without smoothing, dx apart from x",
     .applies = are_short,
     .measured_on = "H200"},
    {.name = "rows",
     .kernels = {"cross_entropy_backward_{float}"},
     .when = "all others: a row is a wave's or a group's, or cut into parts as in the forward"},
};
RDNA_ROUTES(rdna__cross_entropy_backward_routes, "cross_entropy_backward", entropy_backward_routes)

static uint32_t at_most(int64_t count, int64_t most) { return (uint32_t)(count < most ? count : most); }

static rdna_status check_reduction(const char *op_name, rdna_loss_reduction reduction) {
  if ((unsigned)reduction >= RDNA_LOSS_REDUCTION_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: reduction is %d; reductions are 0 to %d", op_name, (int)reduction,
                      RDNA_LOSS_REDUCTION_COUNT - 1);
  }
  return RDNA_OK;
}

static rdna_status check_like_x(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                const rdna_tensor *x) {
  RDNA_TRY(rdna__check_float(op_name, argument, tensor));
  RDNA_TRY(rdna__check_same_dtype(op_name, argument, tensor, "x", x));
  RDNA_TRY(rdna__check_same_shape(op_name, argument, tensor, "x", x));
  return rdna__check_contiguous(op_name, argument, tensor);
}

/* One value, of |x|'s type or f32. */
static rdna_status check_one(const char *op_name, const char *argument, const rdna_tensor *tensor,
                             const rdna_tensor *x) {
  RDNA_TRY(rdna__check_float(op_name, argument, tensor));
  if (tensor->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(op_name, argument, tensor, "x", x));
  return rdna__check_one_value(op_name, argument, tensor);
}

static rdna_status check_values(const char *op_name, rdna_loss loss, float beta, const rdna_tensor *x,
                                const rdna_tensor *target, const rdna_tensor *weight) {
  if ((unsigned)loss >= RDNA_LOSS_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: loss is %d; losses are 0 to %d", op_name, (int)loss,
                      RDNA_LOSS_COUNT - 1);
  }
  if ((loss == RDNA_LOSS_SMOOTH_L1 || loss == RDNA_LOSS_HUBER) && !(beta >= 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: beta is %g; it must not be negative", op_name, (double)beta);
  }
  RDNA_TRY(rdna__check_float(op_name, "x", x));
  RDNA_TRY(rdna__check_contiguous(op_name, "x", x));
  RDNA_TRY(check_like_x(op_name, "target", target, x));
  return weight ? check_like_x(op_name, "weight", weight, x) : RDNA_OK;
}

static rdna_status reduce_values(rdna_stream *stream, struct loss_values_args *args, rdna_dtype dtype, float scale,
                                 const rdna_tensor *out) {
  rdna__scratch scratch = {.stream = stream, .holder = "loss: partial sums"};
  void *partial;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)args->slices * sizeof(float), &partial));
  args->partial = partial;
  struct loss_sum_args sum = {
      .values = partial, .out = out->data, .count = args->slices, .scale = scale, .dtype = (uint32_t)out->dtype};
  rdna_grid grid = {(uint32_t)args->slices, 1, 1}, one = {1, 1, 1};
  rdna_status status = RDNA__ROUTE_LAUNCH(stream, &value_routes[FORWARD], 0, grid, args, rdna_dtype_name(dtype));
  if (status == RDNA_OK) status = RDNA__ROUTE_LAUNCH(stream, &value_routes[FORWARD], 1, one, &sum, NULL);
  return rdna__scratch_release(&scratch, status);
}

rdna_status rdna_op_loss(rdna_stream *stream, rdna_loss loss, float beta, rdna_loss_reduction reduction,
                         const rdna_tensor *x, const rdna_tensor *target, const rdna_tensor *weight,
                         const rdna_tensor *out) {
  RDNA_TRY(rdna__check_stream("loss", stream));
  RDNA_TRY(check_reduction("loss", reduction));
  RDNA_TRY(check_values("loss", loss, beta, x, target, weight));
  bool none = reduction == RDNA_LOSS_REDUCTION_NONE;
  RDNA_TRY(none ? check_like_x("loss", "out", out, x) : check_one("loss", "out", out, x));
  const rdna_tensor *in[] = {x, target, weight};
  static const char *const names[] = {"x", "target", "weight"};
  for (int i = 0; i < (weight ? 3 : 2); i++) {
    RDNA_TRY(none ? rdna__check_overlap("loss", "out", out, names[i], in[i])
                  : rdna__check_apart("loss", "out", out, names[i], in[i]));
  }
  int64_t count = rdna_tensor_count(x), blocks = rdna__divide_up(count, LOSS_BLOCK);
  struct loss_values_args args = {.x = x->data,
                                  .target = target->data,
                                  .weight = weight ? weight->data : NULL,
                                  .out = none ? out->data : NULL,
                                  .count = count,
                                  .slices = at_most(blocks, none ? MOST_GROUPS : MOST_SLICES),
                                  .kind = (uint32_t)loss,
                                  .beta = beta};
  if (none) {
    rdna_grid grid = {(uint32_t)args.slices, 1, 1};
    return RDNA__ROUTE_LAUNCH(stream, &value_routes[FORWARD], 0, grid, &args, rdna_dtype_name(x->dtype));
  }
  float scale = reduction == RDNA_LOSS_REDUCTION_MEAN ? 1 / (float)count : 1;
  if (count == 0 && reduction == RDNA_LOSS_REDUCTION_MEAN) scale = NAN;
  return reduce_values(stream, &args, x->dtype, scale, out);
}

rdna_status rdna_op_loss_backward(rdna_stream *stream, rdna_loss loss, float beta, rdna_loss_reduction reduction,
                                  const rdna_tensor *dout, const rdna_tensor *x, const rdna_tensor *target,
                                  const rdna_tensor *weight, const rdna_tensor *dx) {
  static const char op_name[] = "loss_backward";
  RDNA_TRY(rdna__check_stream(op_name, stream));
  RDNA_TRY(check_reduction(op_name, reduction));
  RDNA_TRY(check_values(op_name, loss, beta, x, target, weight));
  bool none = reduction == RDNA_LOSS_REDUCTION_NONE;
  RDNA_TRY(none ? check_like_x(op_name, "dout", dout, x) : check_one(op_name, "dout", dout, x));
  RDNA_TRY(check_like_x(op_name, "dx", dx, x));
  RDNA_TRY(none ? rdna__check_overlap(op_name, "dx", dx, "dout", dout)
                : rdna__check_apart(op_name, "dx", dx, "dout", dout));
  RDNA_TRY(rdna__check_overlap(op_name, "dx", dx, "x", x));
  RDNA_TRY(rdna__check_overlap(op_name, "dx", dx, "target", target));
  /* the weights are read after dx would have been written */
  if (weight) RDNA_TRY(rdna__check_overlap(op_name, "dx", dx, "weight", weight));
  int64_t count = rdna_tensor_count(x);
  struct loss_values_backward_args args = {.dout = dout->data,
                                           .x = x->data,
                                           .target = target->data,
                                           .weight = weight ? weight->data : NULL,
                                           .dx = dx->data,
                                           .count = count,
                                           .kind = (uint32_t)loss,
                                           .beta = beta,
                                           .scale = reduction == RDNA_LOSS_REDUCTION_MEAN ? 1 / (float)count : 1,
                                           .one = !none,
                                           .dout_f32 = dout->dtype == RDNA_F32};
  rdna_grid grid = {at_most(rdna__divide_up(count, LOSS_BLOCK), MOST_GROUPS), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, &value_routes[BACKWARD], 0, grid, &args, rdna_dtype_name(x->dtype));
}

struct rows {
  int64_t rows, cols, x_stride;
};

static rdna_status check_rows_f32(const char *op_name, const char *argument, const rdna_tensor *tensor, int64_t rows,
                                  const char *meaning) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  RDNA_TRY(rdna__check_dtype(op_name, argument, tensor, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, argument, tensor, 1));
  RDNA_TRY(rdna__check_size(op_name, argument, tensor, 0, rows, meaning));
  return rdna__check_contiguous(op_name, argument, tensor);
}

static rdna_status check_entropy(const char *op_name, const rdna_cross_entropy *options, const rdna_tensor *x,
                                 const rdna_tensor *target, const rdna_tensor *weight, struct rows *rows) {
  RDNA_TRY(check_reduction(op_name, options->reduction));
  if (!(options->label_smoothing >= 0 && options->label_smoothing <= 1) ||
      (options->log_probabilities && options->label_smoothing != 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: label_smoothing is %g; it must be from 0 to %d%s", op_name,
                      (double)options->label_smoothing, !options->log_probabilities,
                      options->log_probabilities ? " with log_probabilities" : "");
  }
  RDNA_TRY(rdna__check_float(op_name, "x", x));
  RDNA_TRY(rdna__check_rank(op_name, "x", x, 2));
  int64_t folded;
  RDNA_TRY(rdna__check_rows(op_name, "x", x, &folded, &rows->cols, &rows->x_stride));
  rows->rows = x->shape[0];
  RDNA_TRY(rdna__check_tensor(op_name, "target", target));
  RDNA_TRY(rdna__check_rank(op_name, "target", target, 1));
  RDNA_TRY(rdna__check_size(op_name, "target", target, 0, rows->rows, "the rows of x"));
  RDNA_TRY(rdna__check_contiguous(op_name, "target", target));
  if (target->dtype != RDNA_I64) RDNA_TRY(rdna__check_dtype(op_name, "target", target, RDNA_I32));
  return weight ? check_rows_f32(op_name, "weight", weight, rows->cols, "the columns of x") : RDNA_OK;
}

static rdna_status check_losses(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                const rdna_cross_entropy *options, const rdna_tensor *x, int64_t rows) {
  if (options->reduction != RDNA_LOSS_REDUCTION_NONE) return check_one(op_name, argument, tensor, x);
  RDNA_TRY(rdna__check_float(op_name, argument, tensor));
  if (tensor->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(op_name, argument, tensor, "x", x));
  RDNA_TRY(rdna__check_rank(op_name, argument, tensor, 1));
  RDNA_TRY(rdna__check_size(op_name, argument, tensor, 0, rows, "the rows of x"));
  return rdna__check_contiguous(op_name, argument, tensor);
}

/* How many parts of at least LOSS_PART_VECTORS rows are cut into, to keep a large GPU busy. */
static uint32_t parts_of(int64_t rows, int64_t cols, int64_t bytes) {
  enum { ENOUGH_GROUPS = 512, FEW_ROWS = 256 };
  int64_t most = cols * bytes / 16 / LOSS_PART_VECTORS, parts = rows > 0 && rows < FEW_ROWS ? ENOUGH_GROUPS / rows : 1;
  parts = parts < most ? parts : most;
  return parts > 1 && cols > LOSS_WAVE_COLS ? (uint32_t)parts : 1;
}
static uint32_t part_vectors_of(uint32_t parts, int64_t cols, int64_t bytes) {
  return (uint32_t)((cols * bytes / 16 / parts / LOSS_PART_VECTORS + 1) * LOSS_PART_VECTORS);
}

static rdna_grid entropy_grid(rdna_stream *stream, int64_t rows, int64_t cols, uint32_t parts) {
  if (parts == 1 && cols <= LOSS_WAVE_COLS) {
    return (rdna_grid){rdna__groups_of_waves(stream, rows, INT64_MAX, LOSS_THREADS), 1, 1};
  }
  return (rdna_grid){at_most(rows * parts, MOST_GROUPS), 1, 1};
}

/* Writes |out|, unless the reduction is none, and |total| too. */
static rdna_status launch_parts(rdna_stream *stream, rdna_loss_reduction reduction, struct cross_entropy_args *args,
                                rdna_dtype dtype, const rdna_tensor *out, const rdna_tensor *total) {
  rdna__scratch scratch = {.stream = stream, .holder = "cross_entropy: parts of rows"};
  void *states;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)args->rows * args->parts * 4 * sizeof(float), &states));
  args->states = states;
  struct cross_entropy_finish_args finish = {.rows = *args,
                                             .out = reduction == RDNA_LOSS_REDUCTION_NONE ? NULL : out->data,
                                             .total = total->data,
                                             .dtype = (uint32_t)out->dtype,
                                             .mean = reduction == RDNA_LOSS_REDUCTION_MEAN};
  rdna_grid grid = entropy_grid(stream, args->rows, args->cols, args->parts), one = {1, 1, 1};
  const rdna__route *route = &entropy_routes[PARTS];
  rdna_status status = RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, rdna_dtype_name(dtype));
  if (status == RDNA_OK) status = RDNA__ROUTE_LAUNCH(stream, route, 1, one, &finish, rdna_dtype_name(dtype));
  return rdna__scratch_release(&scratch, status);
}

static rdna_status launch_sums(rdna_stream *stream, rdna_loss_reduction reduction, const float *losses,
                               const float *row_weights, int64_t count, const rdna_tensor *out,
                               const rdna_tensor *total) {
  bool mean = reduction == RDNA_LOSS_REDUCTION_MEAN, none = reduction == RDNA_LOSS_REDUCTION_NONE;
  rdna_grid one = {1, 1, 1};
  struct loss_sum_args sum = {.values = losses, .count = count, .scale = 1, .dtype = (uint32_t)out->dtype};
  struct loss_sum_args weights = {
      .values = row_weights, .out = total->data, .count = count, .scale = 1, .dtype = RDNA_F32};
  if (mean) sum.weights = row_weights, sum.total = total->data;
  sum.out = out->data;
  const char *kernel = entropy_routes[ROWS].kernels[1];
  if (!none) RDNA_TRY(rdna__launch_named(stream, kernel, one, &sum));
  return mean ? RDNA_OK : rdna__launch_named(stream, kernel, one, &weights);
}

static rdna_status launch_entropy(rdna_stream *stream, rdna_loss_reduction reduction, struct cross_entropy_args *args,
                                  rdna_dtype dtype, const rdna_tensor *out, const rdna_tensor *total) {
  bool none = reduction == RDNA_LOSS_REDUCTION_NONE;
  int64_t blocks = rdna__divide_up(args->rows, LOSS_SHORT_ROWS);
  struct entropy_problem problem = {.cols = args->cols,
                                    .bytes = (int64_t)rdna_dtype_block_bytes(dtype),
                                    .smoothing = args->smoothing,
                                    .nll = args->nll,
                                    .parts = args->parts};
  const rdna__route *route = rdna__route_choose(&rdna__cross_entropy_routes, &problem);
  if (route == &entropy_routes[SHORT]) {
    args->partial = none ? NULL : args->loss; /* the rows' own places have more than enough room */
    rdna_grid grid = {at_most(blocks, MOST_GROUPS), 1, 1};
    RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, rdna_dtype_name(dtype)));
    if (!none) return launch_sums(stream, reduction, args->loss, args->loss + blocks, blocks, out, total);
  } else if (route == &entropy_routes[PARTS]) {
    RDNA_TRY(launch_parts(stream, reduction, args, dtype, out, total));
    if (!none) return RDNA_OK;
  } else {
    rdna_grid grid = entropy_grid(stream, args->rows, args->cols, 1);
    RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, rdna_dtype_name(dtype)));
  }
  if (none && out->dtype != RDNA_F32) {
    struct loss_store_args store = {
        .values = args->loss, .out = out->data, .count = args->rows, .dtype = (uint32_t)out->dtype};
    rdna_grid grid = {at_most(rdna__divide_up(args->rows, LOSS_THREADS), MOST_GROUPS), 1, 1};
    RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, route, 2, grid, &store, NULL));
  }
  if (args->parts > 1) return RDNA_OK;
  return launch_sums(stream, reduction, args->loss, args->row_weight, args->rows, out, total);
}

rdna_status rdna_op_cross_entropy(rdna_stream *stream, const rdna_cross_entropy *options, const rdna_tensor *x,
                                  const rdna_tensor *target, const rdna_tensor *weight, const rdna_tensor *out,
                                  const rdna_tensor *lse, const rdna_tensor *total) {
  static const char op_name[] = "cross_entropy";
  struct rows rows;
  rdna_cross_entropy known;
  RDNA_TRY(rdna__check_stream(op_name, stream));
  RDNA_TRY(RDNA__OPTIONS(op_name, "options", options, &known));
  options = &known;
  RDNA_TRY(check_entropy(op_name, options, x, target, weight, &rows));
  RDNA_TRY(check_losses(op_name, "out", out, options, x, rows.rows));
  RDNA_TRY(check_rows_f32(op_name, "lse", lse, rows.rows, "the rows of x"));
  RDNA_TRY(rdna__check_tensor(op_name, "total", total));
  RDNA_TRY(rdna__check_dtype(op_name, "total", total, RDNA_F32));
  RDNA_TRY(check_one(op_name, "total", total, x));
  const rdna__named written[] = {{"out", out}, {"lse", lse}, {"total", total}};
  const rdna__named read[] = {{"x", x}, {"target", target}, {"weight", weight}};
  RDNA_TRY(rdna__check_written_apart(op_name, written, 3, read, 3, 0));
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  void *memory; /* a loss and a weight for each row */
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)rows.rows * 2 * sizeof(float), &memory));
  bool direct = options->reduction == RDNA_LOSS_REDUCTION_NONE && out->dtype == RDNA_F32;
  struct cross_entropy_args args = {.x = x->data,
                                    .target = target->data,
                                    .weight = weight ? weight->data : NULL,
                                    .loss = direct ? out->data : memory,
                                    .lse = lse->data,
                                    .row_weight = memory ? (float *)memory + rows.rows : NULL,
                                    .rows = rows.rows,
                                    .cols = rows.cols,
                                    .x_stride = rows.x_stride,
                                    .ignore = options->ignore_index,
                                    .outside = options->outside,
                                    .smoothing = options->label_smoothing,
                                    .nll = options->log_probabilities,
                                    .target_i64 = target->dtype == RDNA_I64};
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(x->dtype);
  args.parts = args.nll ? 1 : parts_of(rows.rows, rows.cols, bytes);
  args.part_vectors = part_vectors_of(args.parts, rows.cols, bytes);
  return rdna__scratch_release(&scratch, launch_entropy(stream, options->reduction, &args, x->dtype, out, total));
}

rdna_status rdna_op_cross_entropy_backward(rdna_stream *stream, const rdna_cross_entropy *options,
                                           const rdna_tensor *dout, const rdna_tensor *x, const rdna_tensor *target,
                                           const rdna_tensor *weight, const rdna_tensor *lse, const rdna_tensor *total,
                                           const rdna_tensor *dx) {
  static const char op_name[] = "cross_entropy_backward";
  struct rows rows;
  rdna_cross_entropy known;
  int64_t unused_rows, cols, dx_stride;
  RDNA_TRY(rdna__check_stream(op_name, stream));
  RDNA_TRY(RDNA__OPTIONS(op_name, "options", options, &known));
  options = &known;
  RDNA_TRY(check_entropy(op_name, options, x, target, weight, &rows));
  RDNA_TRY(check_losses(op_name, "dout", dout, options, x, rows.rows));
  RDNA_TRY(check_rows_f32(op_name, "lse", lse, rows.rows, "the rows of x"));
  RDNA_TRY(rdna__check_tensor(op_name, "total", total));
  RDNA_TRY(rdna__check_dtype(op_name, "total", total, RDNA_F32));
  RDNA_TRY(check_one(op_name, "total", total, x));
  RDNA_TRY(rdna__check_float(op_name, "dx", dx));
  RDNA_TRY(rdna__check_same_dtype(op_name, "dx", dx, "x", x));
  RDNA_TRY(rdna__check_same_shape(op_name, "dx", dx, "x", x));
  RDNA_TRY(rdna__check_rows(op_name, "dx", dx, &unused_rows, &cols, &dx_stride));
  RDNA_TRY(rdna__check_written_rows(op_name, "dx", dx, rows.rows, cols, dx_stride));
  const rdna__named read[] = {{"x", x},     {"dout", dout},   {"target", target},
                              {"lse", lse}, {"total", total}, {"weight", weight}};
  RDNA_TRY(rdna__check_written_apart(op_name, &(rdna__named){"dx", dx}, 1, read, 6, 1));
  struct cross_entropy_backward_args args = {
      .dout = dout->data,
      .x = x->data,
      .target = target->data,
      .weight = weight ? weight->data : NULL,
      .lse = lse->data,
      .total = options->reduction == RDNA_LOSS_REDUCTION_MEAN ? total->data : NULL,
      .dx = dx->data,
      .rows = rows.rows,
      .cols = rows.cols,
      .x_stride = rows.x_stride,
      .dx_stride = dx_stride,
      .ignore = options->ignore_index,
      .outside = options->outside,
      .smoothing = options->label_smoothing,
      .nll = options->log_probabilities,
      .target_i64 = target->dtype == RDNA_I64,
      .one = options->reduction != RDNA_LOSS_REDUCTION_NONE,
      .dout_f32 = dout->dtype == RDNA_F32};
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(x->dtype);
  const char *type = rdna_dtype_name(x->dtype);
  struct entropy_problem problem = {
      .cols = rows.cols, .bytes = bytes, .smoothing = args.smoothing, .nll = args.nll, .in_place = dx->data == x->data};
  const rdna__route *route = rdna__route_choose(&rdna__cross_entropy_backward_routes, &problem);
  if (route == &entropy_backward_routes[SHORT]) {
    rdna_grid grid = {at_most(rdna__divide_up(rows.rows, LOSS_SHORT_ROWS), MOST_GROUPS), 1, 1};
    return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &args, type);
  }
  /* every part sums all the weights of the classes */
  args.parts = weight && args.smoothing != 0 ? 1 : parts_of(rows.rows, rows.cols, bytes);
  args.part_vectors = part_vectors_of(args.parts, rows.cols, bytes);
  rdna_grid grid = entropy_grid(stream, rows.rows, rows.cols, args.parts);
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &args, type);
}
