/* Softmax and log-softmax of rows. */
#include "math/softmax/softmax.h"

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/softmax/softmax_kernels.h"

/* From an H200; nobody has measured them on AMD's cards. */
enum {
  MANY_ROWS = 1024,   /* from where rows that fit a wave's registers are a wave's */
  ROWS_OF_A_UNIT = 4, /* no more for each compute unit, and long rows are cut */
};

struct problem {
  int64_t rows, row_bytes, units;
};

static bool are_few_long_rows(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->row_bytes > SOFTMAX_HELD_BYTES && p->rows <= ROWS_OF_A_UNIT * p->units;
}
static bool are_short(const rdna__route *route, const void *problem) {
  return ((const struct problem *)problem)->row_bytes <= SOFTMAX_SHORT_BYTES;
}
static bool fit_waves(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->row_bytes <= SOFTMAX_WAVE_BYTES && p->rows >= MANY_ROWS;
}
static bool fit_groups(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->row_bytes > SOFTMAX_GROUP_BYTES && p->row_bytes <= SOFTMAX_HELD_BYTES;
}

enum { PARTS, SHORT, WAVES, HELD, GROUPS };
static const rdna__route routes[] = {
    [PARTS] = {.name = "parts",
               .kernels = {"softmax_part_{float}", "softmax_finish_{float}"},
               .when = "rows longer than a group's registers, at most 4 for each compute unit",
               .applies = are_few_long_rows,
               .measured_on = "H200"},
    [SHORT] = {.name = "short",
               .kernels = {"softmax_{float}"},
               .when = "rows so short that a wave has several",
               .applies = are_short,
               .measured_on = "H200"},
    [WAVES] = {.name = "waves",
               .kernels = {"softmax_held_{float}"},
               .when = "at least 1024 rows that fit a wave's registers",
               .applies = fit_waves,
               .measured_on = "H200"},
    [HELD] = {.name = "held",
              .kernels = {"softmax_held_{float}"},
              .when = "longer rows that fit a group's registers",
              .applies = fit_groups,
              .measured_on = "H200"},
    [GROUPS] = {.name = "groups", .kernels = {"softmax_{float}"}, .when = "all other rows, each a group's"},
};
RDNA_ROUTES(rdna__softmax_routes, "softmax, log_softmax", routes)

/* Long rows in parts. */
static rdna_status launch_parts(const char *op_name, rdna_stream *stream, const struct softmax_args *args,
                                rdna_dtype dtype) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  struct softmax_part_args part = {
      .x = args->x, .rows = args->rows, .cols = args->cols, .x_stride = args->x_stride, .scale = args->scale};
  int64_t vectors = args->cols / (16 / (int64_t)rdna_dtype_block_bytes(dtype));
  int64_t steps = vectors / SOFTMAX_PART_VECTORS + 1, steps_of_a_part = (steps - 1) / SOFTMAX_MOST_PARTS + 1;
  part.parts = (steps - 1) / steps_of_a_part + 1;
  part.part_vectors = steps_of_a_part * SOFTMAX_PART_VECTORS;
  rdna_grid grid = {rdna__groups_in_turn(part.rows * part.parts), 1, 1};
  void *states;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)(part.rows * part.parts) * 2 * sizeof(float), &states));
  part.states = states;
  struct softmax_finish_args finish = {.x = args->x,
                                       .states = states,
                                       .out = args->out,
                                       .rows = args->rows,
                                       .cols = args->cols,
                                       .x_stride = args->x_stride,
                                       .out_stride = args->out_stride,
                                       .parts = part.parts,
                                       .part_vectors = part.part_vectors,
                                       .scale = args->scale,
                                       .log = args->log};
  const char *type = rdna_dtype_name(dtype);
  rdna_status status = RDNA__ROUTE_LAUNCH(stream, &routes[PARTS], 0, grid, &part, type);
  if (status == RDNA_OK) status = RDNA__ROUTE_LAUNCH(stream, &routes[PARTS], 1, grid, &finish, type);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status launch(const char *op_name, rdna_stream *stream, struct softmax_args *args, rdna_dtype dtype) {
  struct problem problem = {.rows = args->rows,
                            .row_bytes = args->cols * (int64_t)rdna_dtype_block_bytes(dtype),
                            .units = rdna_device_get_info(rdna_stream_device(stream))->compute_units};
  const rdna__route *route = rdna__route_choose(&rdna__softmax_routes, &problem);
  if (route == &routes[PARTS]) return launch_parts(op_name, stream, args, dtype);
  args->waves = route == &routes[SHORT] || route == &routes[WAVES];
  rdna_grid grid = {args->waves ? rdna__groups_of_waves(stream, args->rows, problem.row_bytes, SOFTMAX_THREADS)
                                : rdna__groups_in_turn(args->rows),
                    1, 1};
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, rdna_dtype_name(dtype));
}

rdna_status rdna__softmax_rows(const char *op_name, rdna_stream *stream, const rdna_tensor *x, float scale, bool log,
                               const rdna_tensor *out) {
  struct softmax_args args = {.x = x->data, .out = out->data, .scale = scale, .log = log};
  int64_t out_rows, out_cols;
  RDNA_TRY(rdna__check_rows(op_name, "x", x, &args.rows, &args.cols, &args.x_stride));
  RDNA_TRY(rdna__check_rows(op_name, "out", out, &out_rows, &out_cols, &args.out_stride));
  RDNA_TRY(rdna__check_written_rows(op_name, "out", out, out_rows, out_cols, args.out_stride));
  return args.rows == 0 ? RDNA_OK : launch(op_name, stream, &args, x->dtype);
}
