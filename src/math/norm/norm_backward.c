/* Gradients of layer_norm and rms_norm. */

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/norm/norm.h"
#include "math/norm/norm_backward_kernels.h"
#include "rdna/op/norm.h"

/* From an H200; nobody has measured them on AMD's cards. */
enum { LEAST_SLICES = 64, MOST_SLICES = 512, ROWS_OF_A_WAVE_SLICE = 8, ROWS_OF_A_COLUMN_SLICE = 8 };
/* Groups of norm_parts that run at once. */
static const int64_t parts_of_a_unit[RDNA_DTYPE_COUNT] = {[RDNA_F32] = 2, [RDNA_F16] = 3, [RDNA_BF16] = 3};

/* Two groups for each compute unit, as many as its registers hold, while partial sums stay small beside what they
 * sum. */
static int64_t most_slices(rdna_device *device) {
  int64_t slices = 2 * (int64_t)rdna_device_get_info(device)->compute_units;
  slices = slices / 8 * 8; /* so that rows of a slice are a multiple of 16 bytes apart */
  return slices < LEAST_SLICES ? LEAST_SLICES : slices > MOST_SLICES ? MOST_SLICES : slices;
}

struct problem {
  rdna_dtype type;
  int64_t rows, cols;
  bool aligned; /* all rows and weights begin and end at multiples of 16 bytes */
  bool edged;   /* they do not, but equally far from them in x, dout and dx */
};

static bool are_cut(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  /* of rows that are neither aligned nor edged, those of 16 bits are shifted */
  int64_t held = p->aligned || p->edged ? NORM_BACKWARD_HELD_COLS : NORM_BACKWARD_WAVE_COLS;
  if (p->type != RDNA_F32) held = p->aligned ? NORM_BACKWARD_LONG_COLS : NORM_BACKWARD_HELD_COLS;
  return p->cols > held && p->rows > 0;
}
static bool are_short(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->cols <= NORM_BACKWARD_WAVE_COLS && p->aligned;
}
static bool are_edged(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->cols > NORM_BACKWARD_WAVE_COLS && p->edged;
}
static bool are_shifted(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->cols > NORM_BACKWARD_WAVE_COLS && !p->aligned;
}
static bool are_long(const rdna__route *route, const void *problem) {
  return ((const struct problem *)problem)->cols > NORM_BACKWARD_HELD_COLS;
}

enum { PARTS, SHORT, EDGED, SHIFTED, LONG, ROWS };
#define HALVES "{f16|f16_wf32|bf16|bf16_wf32}"
static const rdna__route routes[] = {
    [PARTS] = {.name = "parts",
               .kernels = {"norm_parts_{norm}", "norm_join", "norm_columns_{norm}", "column_sum"},
               .when = "rows longer than a group's registers",
               .applies = are_cut,
               .measured_on = "H200"},
    [SHORT] = {.name = "short",
               .kernels = {"norm_backward_short_{norm}", "column_sum"},
               .when = "aligned rows that are a wave's, or several a wave's",
               .applies = are_short,
               .measured_on = "H200"},
    [EDGED] = {.name = "edged",
               .kernels = {"norm_backward_edged_{norm}", "column_sum"},
               .when = "longer rows, not aligned to 16 bytes, but alike in x, dout and dx",
               .applies = are_edged},
    [SHIFTED] = {.name = "shifted",
                 .kernels = {"norm_backward_shifted_" HALVES, "column_sum"},
                 .when = "other rows of 16-bit types that are not aligned to 16 bytes",
                 .applies = are_shifted},
    [LONG] = {.name = "long",
              .kernels = {"norm_backward_long_" HALVES, "column_sum"},
              .when = "aligned rows of 16-bit types that take all of a group's registers",
              .applies = are_long,
              .measured_on = "H200"},
    [ROWS] = {.name = "rows",
              .kernels = {"norm_backward_{norm}", "column_sum"},
              .when = "all others: aligned rows of a group, and short ones that are not aligned"},
};
#undef HALVES
RDNA_ROUTES(rdna__norm_backward_routes, "rms_norm_backward, layer_norm_backward", routes)

struct gradients {
  const char *op_name;
  const rdna_tensor *dout, *x, *weight, *mean, *inverse, *dx, *dweight, *dbias;
};

static rdna_status check_rows_like_x(const struct gradients *g, const char *argument, const rdna_tensor *tensor,
                                     int64_t *out_stride) {
  int64_t rows, cols;
  RDNA_TRY(rdna__check_float(g->op_name, argument, tensor));
  RDNA_TRY(rdna__check_same_dtype(g->op_name, argument, tensor, "x", g->x));
  RDNA_TRY(rdna__check_same_shape(g->op_name, argument, tensor, "x", g->x));
  return rdna__check_rows(g->op_name, argument, tensor, &rows, &cols, out_stride);
}

static rdna_status check_row(const struct gradients *g, const char *argument, const rdna_tensor *row, int64_t cols) {
  if (!row) return RDNA_OK;
  RDNA_TRY(rdna__check_float(g->op_name, argument, row));
  RDNA_TRY(rdna__check_rank(g->op_name, argument, row, 1));
  RDNA_TRY(rdna__check_size(g->op_name, argument, row, 0, cols, "the length of a row"));
  RDNA_TRY(rdna__check_contiguous(g->op_name, argument, row));
  if (row->dtype != RDNA_F32) RDNA_TRY(rdna__check_same_dtype(g->op_name, argument, row, "x", g->x));
  return RDNA_OK;
}

/* The forward's statistics, if they are given. */
static rdna_status check_statistics(const struct gradients *g) {
  int64_t rows = 1; /* of x, also when they are empty */
  for (int i = 0; i < g->x->rank - 1; i++) rows = (int64_t)((uint64_t)rows * (uint64_t)g->x->shape[i]);
  static const char *const names[] = {"mean", "inverse"};
  const rdna_tensor *given[] = {g->mean, g->inverse};
  if (!g->mean != !g->inverse) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: mean is %s and inverse %s; give both or neither", g->op_name,
                      g->mean ? "given" : "NULL", g->inverse ? "given" : "NULL");
  }
  for (int i = 0; g->mean && i < 2; i++) {
    RDNA_TRY(rdna__check_tensor(g->op_name, names[i], given[i]));
    RDNA_TRY(rdna__check_dtype(g->op_name, names[i], given[i], RDNA_F32));
    RDNA_TRY(rdna__check_rank(g->op_name, names[i], given[i], 1));
    RDNA_TRY(rdna__check_size(g->op_name, names[i], given[i], 0, rows, "the number of rows"));
    RDNA_TRY(rdna__check_contiguous(g->op_name, names[i], given[i]));
  }
  return RDNA_OK;
}

static rdna_status check(const struct gradients *g, double epsilon, struct norm_backward_args *args) {
  RDNA_TRY(rdna__check_float(g->op_name, "x", g->x));
  RDNA_TRY(rdna__check_rows(g->op_name, "x", g->x, &args->rows, &args->cols, &args->x_stride));
  RDNA_TRY(check_rows_like_x(g, "dout", g->dout, &args->dout_stride));
  RDNA_TRY(check_rows_like_x(g, "dx", g->dx, &args->dx_stride));
  RDNA_TRY(check_row(g, "weight", g->weight, args->cols));
  RDNA_TRY(check_row(g, "dweight", g->dweight, args->cols));
  RDNA_TRY(check_row(g, "dbias", g->dbias, args->cols));
  RDNA_TRY(check_statistics(g));
  RDNA_TRY(rdna__check_written_rows(g->op_name, "dx", g->dx, args->rows, args->cols, args->dx_stride));
  RDNA_TRY(rdna__check_epsilon(g->op_name, epsilon));
  const rdna__named written[] = {{"dx", g->dx}, {"dweight", g->dweight}, {"dbias", g->dbias}};
  const rdna__named read[] = {
      {"dout", g->dout}, {"x", g->x}, {"weight", g->weight}, {"mean", g->mean}, {"inverse", g->inverse}};
  return rdna__check_written_apart(g->op_name, written, 3, read, 5, 2);
}

static rdna_status sum_columns(rdna_stream *stream, const struct gradients *g, const struct norm_backward_args *of) {
  const rdna_tensor *out[] = {g->dweight, g->dbias};
  struct column_sum_args args = {.partial = of->partial, .rows = of->slices, .cols = of->cols};
  rdna_grid grid = {0, 0, 1};
  for (uint32_t m = 0; m < 2; m++) {
    if (!out[m]) continue;
    args.out[m] = out[m]->data, args.dtype[m] = (uint32_t)out[m]->dtype;
    grid.y = m + 1;
  }
  if (grid.y == 0) return RDNA_OK;
  RDNA_TRY(rdna__check_groups("column_sum", args.cols, COLUMN_SUM_COLS, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, &routes[ROWS], 1, grid, &args, NULL);
}

/* Whether all accesses to rows and to weights may be of 16 bytes. */
static bool is_aligned(const struct norm_backward_args *a, int64_t value) {
  uintptr_t addresses = (uintptr_t)a->dout | (uintptr_t)a->x | (uintptr_t)a->weight | (uintptr_t)a->dx;
  uint64_t sizes = (uint64_t)(a->cols | a->dout_stride | a->x_stride | a->dx_stride) * (uint64_t)value;
  return ((addresses | sizes) & 15) == 0;
}

static rdna_status take_partial(rdna__scratch *scratch, struct norm_backward_args *args) {
  void *partial;
  size_t bytes = (size_t)(2 * args->slices * args->cols) * sizeof(float);
  RDNA_TRY(rdna__scratch_take(scratch, bytes, &partial));
  args->partial = partial;
  return RDNA_OK;
}

/* Whether in x, dout and dx the rows of a slice are equally far from 16 bytes. */
static bool edges_agree(const struct norm_backward_args *a, int64_t value) {
  uintptr_t apart = ((uintptr_t)a->x ^ (uintptr_t)a->dout) | ((uintptr_t)a->x ^ (uintptr_t)a->dx);
  uint64_t strides = (uint64_t)((a->x_stride - a->dout_stride) | (a->x_stride - a->dx_stride));
  uint64_t step = a->rows > a->slices ? (uint64_t)(a->slices * a->x_stride) : 0;
  return (((strides | step) * (uint64_t)value | apart) & 15) == 0;
}

static void choose_slices(rdna_stream *stream, struct norm_backward_args *args) {
  int64_t per_slice = args->cols <= NORM_BACKWARD_WAVE_COLS ? ROWS_OF_A_WAVE_SLICE : 1;
  int64_t slices = rdna__divide_up(args->rows, per_slice), most = most_slices(rdna_stream_device(stream));
  args->slices = slices < most ? slices : most;
}

/* Rows that registers hold. */
static rdna_status launch_rows(rdna__scratch *scratch, const struct gradients *g, struct norm_backward_args *args,
                               const rdna__route *route) {
  RDNA_TRY(take_partial(scratch, args));
  if (args->slices > 0) {
    rdna_grid grid = {(uint32_t)args->slices, 1, 1};
    RDNA_TRY(RDNA__ROUTE_LAUNCH(scratch->stream, route, 0, grid, args, rdna__norm_types(g->x, g->weight)));
  }
  return sum_columns(scratch->stream, g, args);
}

static rdna_status launch_parts(rdna__scratch *scratch, const struct gradients *g, struct norm_backward_args *of,
                                bool aligned) {
  const char *types = rdna__norm_types(g->x, g->weight);
  int64_t value = (int64_t)rdna_dtype_block_bytes(g->x->dtype);
  int64_t slab_cols = NORM_BACKWARD_THREADS * (aligned ? 16 / value : NORM_BACKWARD_SINGLES);
  int64_t slabs = rdna__divide_up(of->cols, slab_cols), most = 2 * most_slices(rdna_stream_device(scratch->stream));
  int64_t slices = rdna__divide_up(of->rows, ROWS_OF_A_COLUMN_SLICE);
  if (slices > most / slabs) slices = most > slabs ? most / slabs : 1;
  of->slices = slices;
  if (slices > 1) RDNA_TRY(take_partial(scratch, of));
  struct norm_parts_args parts = {.dout = of->dout,
                                  .x = of->x,
                                  .weight = of->weight,
                                  .rows = of->rows,
                                  .cols = of->cols,
                                  .parts = rdna__divide_up(of->cols, NORM_BACKWARD_PART_COLS),
                                  .dout_stride = of->dout_stride,
                                  .x_stride = of->x_stride,
                                  .centred = of->centred};
  int64_t count = of->rows * parts.parts;
  void *sums, *statistics;
  rdna_grid grid = {0, 1, 1};
  int64_t units = rdna_device_get_info(rdna_stream_device(scratch->stream))->compute_units;
  int64_t at_once = parts_of_a_unit[g->x->dtype] * (units > 0 ? units : 1);
  grid.x = (uint32_t)(count < at_once ? count : at_once);
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)count * 4 * sizeof(float), &sums));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)of->rows * 4 * sizeof(float), &statistics));
  parts.mean = sums, parts.squares = parts.mean + count, parts.gy = parts.squares + count, parts.g = parts.gy + count;
  struct norm_join_args join = {.mean = parts.mean,
                                .squares = parts.squares,
                                .gy = parts.gy,
                                .g = parts.g,
                                .given_mean = of->mean,
                                .given_inverse = of->inverse,
                                .statistics = statistics,
                                .rows = of->rows,
                                .cols = of->cols,
                                .parts = parts.parts,
                                .epsilon = of->epsilon,
                                .centred = of->centred};
  struct norm_columns_args columns = {.dout = of->dout,
                                      .x = of->x,
                                      .weight = of->weight,
                                      .statistics = statistics,
                                      .dx = of->dx,
                                      .partial = of->partial,
                                      .rows = of->rows,
                                      .cols = of->cols,
                                      .slices = of->slices,
                                      .dout_stride = of->dout_stride,
                                      .x_stride = of->x_stride,
                                      .dx_stride = of->dx_stride};
  RDNA_TRY(RDNA__ROUTE_LAUNCH(scratch->stream, &routes[PARTS], 0, grid, &parts, types));
  grid.x = rdna__groups_in_turn(of->rows);
  if (parts.parts <= NORM_JOIN_WAVE_PARTS) {
    grid.x = rdna__groups_of_waves(scratch->stream, of->rows, 0, NORM_BACKWARD_THREADS);
  }
  RDNA_TRY(RDNA__ROUTE_LAUNCH(scratch->stream, &routes[PARTS], 1, grid, &join, NULL));
  const rdna_tensor *of_columns[] = {g->dweight, g->dbias};
  for (int m = 0; slices == 1 && m < 2; m++) {
    if (!of_columns[m]) continue;
    columns.sums[m] = of_columns[m]->data;
    columns.sums_f32[m] = of_columns[m]->dtype == RDNA_F32;
  }
  grid.x = rdna__groups_in_turn(slabs * of->slices);
  RDNA_TRY(RDNA__ROUTE_LAUNCH(scratch->stream, &routes[PARTS], 2, grid, &columns, types));
  return slices > 1 ? sum_columns(scratch->stream, g, of) : RDNA_OK;
}

static rdna_status backward(rdna_stream *stream, const struct gradients *g, double epsilon, bool centred) {
  struct norm_backward_args args = {.epsilon = (float)epsilon, .centred = centred};
  rdna__scratch scratch = {.stream = stream, .holder = g->op_name};
  RDNA_TRY(rdna__check_stream(g->op_name, stream));
  RDNA_TRY(check(g, epsilon, &args));
  args.dout = g->dout->data, args.x = g->x->data, args.dx = g->dx->data;
  args.weight = g->weight ? g->weight->data : NULL;
  args.mean = g->mean ? g->mean->data : NULL;
  args.inverse = g->inverse ? g->inverse->data : NULL;
  choose_slices(stream, &args);
  int64_t value = (int64_t)rdna_dtype_block_bytes(g->x->dtype);
  struct problem problem = {
      .type = g->x->dtype, .rows = args.rows, .cols = args.cols, .aligned = is_aligned(&args, value)};
  problem.edged = !problem.aligned && edges_agree(&args, value);
  const rdna__route *route = rdna__route_choose(&rdna__norm_backward_routes, &problem);
  return rdna__scratch_release(&scratch, route == &routes[PARTS] ? launch_parts(&scratch, g, &args, problem.aligned)
                                                                 : launch_rows(&scratch, g, &args, route));
}

rdna_status rdna_op_rms_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                      const rdna_tensor *weight, double epsilon, const rdna_tensor *dx,
                                      const rdna_tensor *dweight) {
  struct gradients g = {"rms_norm_backward", dout, x, weight, NULL, NULL, dx, dweight, NULL};
  return backward(stream, &g, epsilon, false);
}

rdna_status rdna_op_layer_norm_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *x,
                                        const rdna_tensor *weight, double epsilon, const rdna_tensor *mean,
                                        const rdna_tensor *inverse, const rdna_tensor *dx, const rdna_tensor *dweight,
                                        const rdna_tensor *dbias) {
  struct gradients g = {"layer_norm_backward", dout, x, weight, mean, inverse, dx, dweight, dbias};
  return backward(stream, &g, epsilon, true);
}
