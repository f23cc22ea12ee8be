#include "rdna/op/norm.h"

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/norm/long_norm_kernels.h"
#include "math/norm/norm.h"
#include "math/norm/norm_kernels.h"

/* From an H200; nobody has measured them on AMD's cards. */
enum {
  MANY_ROWS = 16384,  /* from where rows that fit a wave's registers are a wave's */
  ROWS_OF_A_UNIT = 4, /* no more for each compute unit, and long rows are cut */
  PARTS_OF_A_UNIT = 3 /* groups of long_norm that run at once */
};

struct problem {
  int64_t rows, cols, row_bytes, units;
  bool aligned; /* all rows and weights begin and end at multiples of 16 bytes */
};

static bool are_cut(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  if (!p->aligned) return p->row_bytes > NORM_SHIFTED_BYTES && p->rows > 0;
  return p->cols > NORM_KEPT_COLS && p->rows > 0 && p->rows <= ROWS_OF_A_UNIT * p->units;
}
static bool fit_waves(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->aligned && p->row_bytes > NORM_SHORT_BYTES && p->row_bytes <= NORM_WAVE_BYTES && p->rows >= MANY_ROWS;
}
static bool are_shifted(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return !p->aligned && p->cols > NORM_WAVE_COLS && p->row_bytes <= NORM_SHIFTED_BYTES;
}
static bool are_short(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->row_bytes <= NORM_SHORT_BYTES || p->cols <= NORM_WAVE_COLS;
}

enum { PARTS, WAVES, SHIFTED, SHORT, GROUPS };
#define NORM_OF "{rms_norm|add_rms_norm|layer_norm}"
static const rdna__route routes[] = {
    [PARTS] = {.name = "parts",
               .kernels = {"long_norm_part_{float}", "long_norm_finish_{norm}"},
               .when = "rows longer than a group's registers: where they are aligned, at most 4 for each compute unit",
               .applies = are_cut,
               .measured_on = "H200"},
    [WAVES] = {.name = "waves",
               .kernels = {NORM_OF "_waves_{norm}"},
               .when = "at least 16384 aligned rows that fit a wave's registers",
               .applies = fit_waves,
               .measured_on = "H200"},
    [SHIFTED] = {.name = "shifted",
                 .kernels = {NORM_OF "_shifted_{norm}"},
                 .when = "rows that are not aligned to 16 bytes and fit a group's registers",
                 .applies = are_shifted,
                 .measured_on = "H200"},
    [SHORT] = {.name = "short",
               .kernels = {NORM_OF "_{norm}"},
               .when = "rows so short that a wave has one or several",
               .applies = are_short,
               .measured_on = "H200"},
    [GROUPS] = {.name = "groups", .kernels = {NORM_OF "_{norm}"}, .when = "all other rows, each a group's"},
};
#undef NORM_OF
RDNA_ROUTES(rdna__norm_routes, "rms_norm, add_rms_norm, layer_norm", routes)

struct rows {
  int64_t rows, cols;
  int64_t x_stride, residual_stride, out_stride;
};

static rdna_status check_input(const char *op_name, const char *argument, const rdna_tensor *in, int64_t *out_stride,
                               const rdna_tensor *out, struct rows *rows) {
  RDNA_TRY(rdna__check_float(op_name, argument, in));
  RDNA_TRY(rdna__check_same_dtype(op_name, argument, in, "out", out));
  RDNA_TRY(rdna__check_same_shape(op_name, argument, in, "out", out));
  RDNA_TRY(rdna__check_rows(op_name, argument, in, &rows->rows, &rows->cols, out_stride));
  return rdna__check_overlap(op_name, "out", out, argument, in);
}

static rdna_status check_weight(const char *op_name, const char *argument, const rdna_tensor *weight,
                                const rdna_tensor *out, int64_t cols) {
  if (!weight) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(op_name, argument, weight));
  RDNA_TRY(rdna__check_rank(op_name, argument, weight, 1));
  RDNA_TRY(rdna__check_size(op_name, argument, weight, 0, cols, "the length of a row"));
  RDNA_TRY(rdna__check_contiguous(op_name, argument, weight));
  if (weight->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(op_name, argument, weight, "out", out));
  return rdna__check_apart(op_name, "out", out, argument, weight);
}

static rdna_status check_out(const char *op_name, const rdna_tensor *out, double epsilon, struct rows *rows) {
  RDNA_TRY(rdna__check_float(op_name, "out", out));
  RDNA_TRY(rdna__check_rows(op_name, "out", out, &rows->rows, &rows->cols, &rows->out_stride));
  RDNA_TRY(rdna__check_written_rows(op_name, "out", out, rows->rows, rows->cols, rows->out_stride));
  return rdna__check_epsilon(op_name, epsilon);
}

static void *data_of(const rdna_tensor *tensor) { return tensor ? tensor->data : NULL; }
static uintptr_t address_of(const rdna_tensor *tensor) { return (uintptr_t)data_of(tensor); }

/* Of layer_norm: where the rows' mean or inverse deviation goes. */
static rdna_status check_statistic(const char *argument, const rdna_tensor *statistic,
                                   const rdna_tensor *const apart[]) {
  static const char op_name[] = "layer_norm", *const names[] = {"out", "x", "weight", "bias", "mean"};
  int64_t rows = 1; /* of out, also where it is empty */
  if (!statistic) return RDNA_OK;
  for (int d = 0; d < apart[0]->rank - 1; d++) rows *= apart[0]->shape[d];
  RDNA_TRY(rdna__check_tensor(op_name, argument, statistic));
  RDNA_TRY(rdna__check_dtype(op_name, argument, statistic, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, argument, statistic, 1));
  RDNA_TRY(rdna__check_size(op_name, argument, statistic, 0, rows, "the number of rows"));
  RDNA_TRY(rdna__check_contiguous(op_name, argument, statistic));
  for (int i = 0; i < 5; i++)
    if (apart[i]) RDNA_TRY(rdna__check_apart(op_name, argument, statistic, names[i], apart[i]));
  return RDNA_OK;
}

struct operands {
  const rdna_tensor *x, *residual, *weight, *bias, *out, *mean, *inverse;
};

/* Parts of long rows. */
static rdna_status launch_parts(rdna_stream *stream, const char *op_name, const struct operands *of,
                                const struct rows *rows, double epsilon, bool centred) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  int64_t step = LONG_NORM_STEP_BYTES / (int64_t)rdna_dtype_block_bytes(of->out->dtype);
  int64_t steps = (rows->cols - 1) / step + 1, steps_of_a_part = (steps - 1) / LONG_NORM_MOST_PARTS + 1;
  int64_t parts = (steps - 1) / steps_of_a_part + 1;
  int64_t units = rdna_device_get_info(rdna_stream_device(stream))->compute_units;
  int64_t most = PARTS_OF_A_UNIT * (units > 0 ? units : 1), items = rows->rows * parts;
  rdna_grid grid = {(uint32_t)(items < most ? items : most), 1, 1};
  const rdna_tensor *factors = of->weight ? of->weight : of->bias;
  void *sums;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)items * 2 * sizeof(float), &sums));
  struct long_norm_part_args part = {.x = of->x->data,
                                     .residual = data_of(of->residual),
                                     .mean = sums,
                                     .squares = (float *)sums + items,
                                     .rows = rows->rows,
                                     .cols = rows->cols,
                                     .parts = parts,
                                     .part_cols = steps_of_a_part * step,
                                     .x_stride = rows->x_stride,
                                     .residual_stride = rows->residual_stride,
                                     .centred = centred};
  struct long_norm_finish_args finish = {.x = of->residual ? of->residual->data : of->x->data,
                                         .weight = data_of(of->weight),
                                         .bias = data_of(of->bias),
                                         .mean = part.mean,
                                         .squares = part.squares,
                                         .out = of->out->data,
                                         .row_mean = data_of(of->mean),
                                         .inverse = data_of(of->inverse),
                                         .rows = rows->rows,
                                         .cols = rows->cols,
                                         .parts = parts,
                                         .part_cols = part.part_cols,
                                         .x_stride = of->residual ? rows->residual_stride : rows->x_stride,
                                         .out_stride = rows->out_stride,
                                         .epsilon = (float)epsilon};
  const rdna__route *route = &routes[PARTS];
  rdna_status status = RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &part, rdna_dtype_name(of->out->dtype));
  if (status == RDNA_OK)
    status = RDNA__ROUTE_LAUNCH(stream, route, 1, grid, &finish, rdna__norm_types(of->out, factors));
  return rdna__scratch_release(&scratch, status);
}

/* Whether a group has the next of its rows on its way while it is at one. */
static bool reads_ahead(const rdna__route *route, const struct problem *p) {
  if (route == &routes[WAVES] || !p->aligned) return route == &routes[SHIFTED];
  return p->row_bytes <= NORM_LANES_BYTES || (p->row_bytes > NORM_SHORT_BYTES && p->row_bytes <= NORM_AHEAD_BYTES);
}

static rdna_status launch_rows(rdna_stream *stream, const char *op_name, const struct operands *of,
                               const struct rows *rows, double epsilon, bool centred, const void *args) {
  RDNA_TRY(rdna__check_stream(op_name, stream));
  const rdna_tensor *out = of->out, *factors = of->weight ? of->weight : of->bias;
  int64_t value = (int64_t)rdna_dtype_block_bytes(out->dtype);
  uint64_t sizes = (uint64_t)(rows->cols | rows->x_stride | rows->residual_stride | rows->out_stride);
  uintptr_t addresses =
      address_of(of->x) | address_of(of->residual) | address_of(of->weight) | address_of(of->bias) | address_of(out);
  struct problem problem = {.rows = rows->rows,
                            .cols = rows->cols,
                            .row_bytes = rows->cols * value,
                            .units = rdna_device_get_info(rdna_stream_device(stream))->compute_units,
                            .aligned = ((addresses | sizes * (uint64_t)value) & 15) == 0};
  const rdna__route *route = rdna__route_choose(&rdna__norm_routes, &problem);
  if (route == &routes[PARTS]) return launch_parts(stream, op_name, of, rows, epsilon, centred);
  rdna_grid grid = {rdna__groups_in_turn(rows->rows), 1, 1};
  if (route == &routes[WAVES] || route == &routes[SHORT])
    grid.x = rdna__groups_of_waves(stream, rows->rows, problem.row_bytes, NORM_THREADS);
  if (reads_ahead(route, &problem)) {
    /* no more than run at once, which the kernels' registers allow */
    int64_t of_a_unit = out->dtype == RDNA_F32 || centred || of->residual ? 3 : 4;
    int64_t most = of_a_unit * (problem.units > 0 ? problem.units : 1);
    /* so that all rows of a group begin equally far from 16 bytes */
    if (route == &routes[SHIFTED] && most >= 8) most = most / 8 * 8;
    if (grid.x > most) grid.x = (uint32_t)most;
  }
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, op_name, rdna__norm_types(out, factors));
}

rdna_status rdna_op_rms_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight, double epsilon,
                             const rdna_tensor *out) {
  struct rows rows = {0};
  if (rdna__is_narrow_norm(x, out)) return rdna__narrow_norm(stream, "rms_norm", x, NULL, weight, epsilon, out);
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
                               .epsilon = (float)epsilon};
  struct operands operands = {.x = x, .weight = weight, .out = out};
  return launch_rows(stream, "rms_norm", &operands, &rows, epsilon, false, &args);
}

rdna_status rdna_op_add_rms_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *residual,
                                 const rdna_tensor *weight, double epsilon, const rdna_tensor *out) {
  static const char name[] = "add_rms_norm";
  struct rows rows = {0};
  RDNA_TRY(rdna__check_tensor(name, "residual", residual)); /* before x, with which it need not agree */
  if (rdna__is_narrow_norm(residual, out)) return rdna__narrow_norm(stream, name, x, residual, weight, epsilon, out);
  RDNA_TRY(check_out(name, out, epsilon, &rows));
  RDNA_TRY(check_input(name, "x", x, &rows.x_stride, out, &rows));
  RDNA_TRY(check_input(name, "residual", residual, &rows.residual_stride, out, &rows));
  RDNA_TRY(rdna__check_written_rows(name, "residual", residual, rows.rows, rows.cols, rows.residual_stride));
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
                                   .epsilon = (float)epsilon};
  struct operands operands = {.x = x, .residual = residual, .weight = weight, .out = out};
  return launch_rows(stream, name, &operands, &rows, epsilon, false, &args);
}

rdna_status rdna_op_layer_norm(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *weight,
                               const rdna_tensor *bias, double epsilon, const rdna_tensor *out, const rdna_tensor *mean,
                               const rdna_tensor *inverse) {
  struct rows rows = {0};
  RDNA_TRY(check_out("layer_norm", out, epsilon, &rows));
  RDNA_TRY(check_input("layer_norm", "x", x, &rows.x_stride, out, &rows));
  RDNA_TRY(check_weight("layer_norm", "weight", weight, out, rows.cols));
  RDNA_TRY(check_weight("layer_norm", "bias", bias, out, rows.cols));
  if (weight && bias) RDNA_TRY(rdna__check_same_dtype("layer_norm", "bias", bias, "weight", weight));
  RDNA_TRY(check_statistic("mean", mean, (const rdna_tensor *[]){out, x, weight, bias, NULL}));
  RDNA_TRY(check_statistic("inverse", inverse, (const rdna_tensor *[]){out, x, weight, bias, mean}));
  struct layer_norm_args args = {.x = x->data,
                                 .weight = data_of(weight),
                                 .bias = data_of(bias),
                                 .out = out->data,
                                 .mean = data_of(mean),
                                 .inverse = data_of(inverse),
                                 .rows = rows.rows,
                                 .cols = rows.cols,
                                 .x_stride = rows.x_stride,
                                 .out_stride = rows.out_stride,
                                 .epsilon = (float)epsilon};
  struct operands operands = {.x = x, .weight = weight, .bias = bias, .out = out, .mean = mean, .inverse = inverse};
  return launch_rows(stream, "layer_norm", &operands, &rows, epsilon, true, &args);
}
