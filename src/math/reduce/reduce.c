#include "rdna/op/reduce.h"

#include <math.h>

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/reduce/reduce_dims_kernels.h"
#include "math/reduce/reduce_f64.h"

/* From an H200; nobody has measured them on AMD's cards. */
enum {
  WAVE_VALUES = 4096,   /* an output with at most so many values is a wave's */
  GROUPS_OF_A_UNIT = 4, /* that keep a compute unit busy */
  LEAST_GROUPS = 128,
  SLICE_VALUES = 8192,   /* not worth a group's time below */
  COLUMN_SLICE = 128,    /* the same, in values of one of the outputs that lie side by side */
  COLUMN_OUTPUTS = 16,   /* side by side, from which on a wave reads them together */
  MOST_GROUPS = 1 << 16, /* groups take turns */
  COLUMN_TILE = 32,      /* outputs of a group, at least */
  SUM_LANES = 32         /* of reduce_sum_columns: threads side by side */
};

static const char *const names[RDNA_REDUCTION_COUNT] = {
    "reduce_sum",  "reduce_mean", "reduce_prod", "reduce_min", "reduce_max", "reduce_argmin",   "reduce_argmax",
    "reduce_norm", "reduce_any",  "reduce_all",  "reduce_var", "reduce_std", "reduce_logsumexp"};

const char *rdna_reduction_name(rdna_reduction reduction) {
  return (unsigned)reduction < RDNA_REDUCTION_COUNT ? names[reduction] + sizeof "reduce_" - 1 : "?";
}

struct plan {
  const char *name;
  rdna_reduction reduction;
  double parameter;
  enum reduce_kind kind;
  const rdna__route *route;
  int64_t folded; /* rows of x that the kernel sees as one, whose parts the join brings together */
  struct reduce_dims_args args;
};

static bool is_float(rdna_dtype dtype) {
  return dtype == RDNA_F32 || dtype == RDNA_F16 || dtype == RDNA_BF16 || dtype == RDNA_F64;
}

/* Of f64 there is no kernel. */
static bool is_composed(const struct plan *plan, rdna_dtype dtype) {
  double p = plan->parameter;
  bool power = plan->reduction == RDNA_REDUCTION_NORM && p != 0 && p != 1 && p != 2 && !isinf(p);
  return dtype == RDNA_F64 && (plan->kind == REDUCE_LSE || power);
}

/* The kernel's types: a bool is a u8. */
static const char *type_name(rdna_dtype dtype) { return dtype == RDNA_BOOL ? "u8" : rdna_dtype_name(dtype); }

static rdna_status check_x(const struct plan *plan, const rdna_tensor *x) {
  RDNA_TRY(rdna__check_tensor(plan->name, "x", x));
  bool integer = x->dtype == RDNA_I32 || x->dtype == RDNA_I64 || x->dtype == RDNA_U8 || x->dtype == RDNA_BOOL;
  bool floats_only = plan->reduction == RDNA_REDUCTION_MEAN || plan->reduction == RDNA_REDUCTION_NORM ||
                     plan->kind == REDUCE_VAR || plan->kind == REDUCE_LSE;
  if (!is_float(x->dtype) && !(integer && !floats_only)) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: x is %s, for which there is no kernel; cast it to f32", plan->name,
                      rdna_dtype_name(x->dtype));
  }
  return RDNA_OK;
}

static rdna_status check_out_type(const struct plan *plan, const rdna_tensor *x, const rdna_tensor *out) {
  rdna_dtype in = x->dtype, to = out->dtype;
  bool right;
  switch (plan->reduction) {
    case RDNA_REDUCTION_ARGMIN:
    case RDNA_REDUCTION_ARGMAX:
      right = to == RDNA_I64 || to == RDNA_I32;
      break;
    case RDNA_REDUCTION_ANY:
    case RDNA_REDUCTION_ALL:
      right = to == RDNA_BOOL || to == RDNA_U8;
      break;
    case RDNA_REDUCTION_SUM:
    case RDNA_REDUCTION_PROD:
      right = is_float(in) ? to == in || (to == RDNA_F32 && in != RDNA_F64) : to == RDNA_I64;
      break;
    default:
      right = to == in || (to == RDNA_F32 && is_float(in) && in != RDNA_F64);
  }
  if (!right) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: x is %s and out is %s; see rdna_op_reduce for what belongs together",
                      plan->name, rdna_dtype_name(in), rdna_dtype_name(to));
  }
  return RDNA_OK;
}

/* |out| is |x| without the reduced dimensions, or with 1 in their place. */
static rdna_status check_shape(const struct plan *plan, uint32_t dims, const rdna_tensor *x, const rdna_tensor *out) {
  char x_text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
  if (dims >> x->rank) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: dims is 0x%x and x is of rank %d; bit i means dimension i",
                      plan->name, dims, x->rank);
  }
  bool keeps = out->rank == x->rank, same = true;
  int at = 0;
  for (int i = 0; i < x->rank && same; i++) {
    bool reduced = dims >> i & 1;
    if (reduced && !keeps) continue;
    same = at < out->rank && out->shape[at] == (reduced ? 1 : x->shape[i]);
    at++;
  }
  if (!same || at != out->rank) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: x is %s, dims is 0x%x and out is %s; out must be x without these dimensions", plan->name,
                      rdna__tensor_text(x, x_text), dims, rdna__tensor_text(out, out_text));
  }
  RDNA_TRY(rdna__check_contiguous(plan->name, "out", out));
  return rdna__check_apart(plan->name, "out", out, "x", x);
}

/* Neighbours of one kind whose strides continue each other become one dimension; the order stays. */
static void fold(const rdna_tensor *x, uint32_t dims, bool reduced, int32_t *out_rank, int64_t *size, int64_t *stride) {
  int rank = 0;
  for (int i = x->rank - 1; i >= 0; i--) {
    if ((dims >> i & 1) != reduced || x->shape[i] == 1) continue;
    if (rank > 0 && x->stride[i] == size[rank - 1] * stride[rank - 1]) {
      size[rank - 1] *= x->shape[i];
    } else {
      size[rank] = x->shape[i], stride[rank] = x->stride[i], rank++;
    }
  }
  if (rank == 0) size[0] = 1, stride[0] = 1, rank = 1;
  *out_rank = rank;
}

static int64_t product(int rank, const int64_t *size) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= size[i];
  return count;
}

static void choose_arithmetic(struct plan *plan) {
  struct reduce_dims_args *a = &plan->args;
  double p = plan->parameter;
  a->map = REDUCE_PLAIN, a->end = REDUCE_AS_IS, a->parameter = p;
  switch (plan->reduction) {
    case RDNA_REDUCTION_MEAN:
      a->end = REDUCE_SCALED, a->parameter = a->count > 0 ? 1 / (double)a->count : NAN;
      break;
    case RDNA_REDUCTION_MIN:
      a->map = REDUCE_REVERSE, a->end = REDUCE_REVERSED;
      break;
    case RDNA_REDUCTION_ARGMIN:
      a->map = REDUCE_REVERSE;
      break;
    case RDNA_REDUCTION_NORM:
      a->map = p == 0 ? REDUCE_NONZERO : p == 1 || isinf(p) ? REDUCE_ABS : p == 2 ? REDUCE_SQUARE : REDUCE_POWER;
      a->end = a->map == REDUCE_SQUARE ? REDUCE_ROOT : a->map == REDUCE_POWER ? REDUCE_UNPOWER : REDUCE_AS_IS;
      break;
    case RDNA_REDUCTION_ANY:
      a->map = REDUCE_NONZERO, a->end = REDUCE_IF;
      break;
    case RDNA_REDUCTION_ALL:
      a->map = REDUCE_ZERO, a->end = REDUCE_UNLESS;
      break;
    case RDNA_REDUCTION_VAR:
      a->end = REDUCE_VARIANCE;
      break;
    case RDNA_REDUCTION_STD:
      a->end = REDUCE_DEVIATION;
      break;
    default:
      break;
  }
}

/* 16 bytes along dimension 0 of |size| never straddle a row, and every row begins at a multiple of them. */
static bool is_vector(const struct reduce_dims_args *a, const rdna_tensor *x, bool columns) {
  const int64_t *size = columns ? a->kept_size : a->reduced_size;
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(x->dtype), width = 16 / bytes;
  if (!is_float(x->dtype) || x->dtype == RDNA_F64 || a->map == REDUCE_POWER) return false;
  if ((columns ? a->kept_stride : a->reduced_stride)[0] != 1 || size[0] % width != 0) return false;
  if ((uintptr_t)x->data % 16 != 0) return false;
  for (int d = columns ? 1 : 0; d < a->kept_rank; d++)
    if (a->kept_size[d] > 1 && a->kept_stride[d] % width != 0) return false;
  for (int d = columns ? 0 : 1; d < a->reduced_rank; d++)
    if (a->reduced_size[d] > 1 && a->reduced_stride[d] % width != 0) return false;
  return true;
}

static bool is_small_float(rdna_dtype dtype) { return dtype == RDNA_F32 || dtype == RDNA_F16 || dtype == RDNA_BF16; }

/* Dense rows have kernels of their own, at any alignment, with maps of signs and squares. */
static bool has_lines(const struct plan *plan, const rdna_tensor *x) {
  const struct reduce_dims_args *a = &plan->args;
  bool mapped = a->map == REDUCE_POWER || a->map == REDUCE_NONZERO || a->map == REDUCE_ZERO;
  return is_small_float(x->dtype) && a->reduced_rank == 1 && a->reduced_stride[0] == 1 && plan->kind != REDUCE_PROD &&
         !mapped && (uintptr_t)x->data % rdna_dtype_block_bytes(x->dtype) == 0;
}

/* So have plain sums of columns. */
static bool has_columns(const struct plan *plan, const rdna_tensor *x) {
  const struct reduce_dims_args *a = &plan->args;
  return is_small_float(x->dtype) && a->reduced_rank == 1 && a->reduced_stride[0] >= COLUMN_OUTPUTS &&
         plan->kind == REDUCE_SUM && a->map == REDUCE_PLAIN &&
         (uintptr_t)x->data % rdna_dtype_block_bytes(x->dtype) == 0;
}

/* Lanes for a row of |vectors|: few enough that each has several loads to wait for at once. */
static int32_t choose_team(int64_t vectors, int64_t wave) {
  enum { LEAST = 4 };
  int32_t team = 1;
  while (team < wave && (team < LEAST ? team < vectors : team * REDUCE_DIMS_AHEAD < vectors)) team *= 2;
  return team;
}

/* Few columns of many rows as more columns of fewer rows, where these fill the lanes of a wave better. */
static void fold_rows(struct plan *plan, int64_t in_16, int64_t most_groups) {
  struct reduce_dims_args *a = &plan->args;
  const int64_t cols = a->kept_size[0], tile = COLUMN_TILE * in_16;
  int64_t best = rdna__divide_up(cols, tile) * tile;
  if (a->kept_rank != 1 || a->reduced_rank != 1 || a->reduced_stride[0] != cols || plan->kind == REDUCE_ARG) return;
  for (int64_t by = 2; by <= 8; by *= 2) {
    int64_t lanes = rdna__divide_up(by * cols, tile) * tile / by; /* that a row takes, in values */
    /* slices there must be, since they are what is joined */
    bool several = a->count / by >= 2 * COLUMN_SLICE && rdna__divide_up(by * cols, COLUMN_TILE) <= most_groups / 2;
    if (a->count % by == 0 && several && lanes * 5 / 4 < best) best = lanes, plan->folded = by;
  }
  a->kept_size[0] *= plan->folded, a->outs *= plan->folded;
  a->reduced_stride[0] *= plan->folded, a->reduced_size[0] /= plan->folded, a->count /= plan->folded;
}

/* What the choice of a kernel asks. */
struct problem {
  bool columns; /* outputs lie side by side, else the values of one do */
  bool lines;   /* dense rows, see has_lines */
  bool sums;    /* plain sums of columns, see has_columns */
  bool plain;   /* plain sums */
  bool vector;  /* by 16 bytes */
  bool fill;    /* an output for each lane keeps the device busy */
  bool short_rows, wave_rows;
};

static bool are_sums_alone(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->sums && p->vector && p->fill;
}
static bool are_sums_of_columns(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->sums && !p->vector;
}
static bool are_columns(const rdna__route *route, const void *problem) {
  return ((const struct problem *)problem)->columns;
}
static bool are_plain_waves(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->lines && p->plain && p->wave_rows;
}
static bool are_plain_groups(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->lines && p->plain;
}
static bool are_lines(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->lines && (!p->vector || p->short_rows);
}
static bool are_waves(const rdna__route *route, const void *problem) {
  return ((const struct problem *)problem)->wave_rows;
}

#define REDUCE_ANY "reduce_{sum|prod|max|var|lse|arg}_{f32|f16|bf16|f64|i32|i64|u8}"
#define LINES "{sum|max|var|lse|arg}_line_{float}"
enum { ALONE, SUM_COLUMNS, COLUMNS, SUM_WAVES, SUM_GROUPS, ROW_LINES, WAVES, GROUPS };
static const rdna__route routes[] = {
    [ALONE] = {.name = "sum alone",
               .kernels = {"reduce_{sum}_alone_{float}"},
               .when =
                   "plain sums of aligned columns, so many that a lane for each 16 bytes of outputs fills the device",
               .applies = are_sums_alone,
               .measured_on = "H200"},
    [SUM_COLUMNS] = {.name = "sum columns",
                     .kernels = {"reduce_{sum}_columns_{float}", "reduce_join"},
                     .when = "plain sums of columns that are not aligned to 16 bytes",
                     .applies = are_sums_of_columns,
                     .measured_on = "H200"},
    [COLUMNS] = {.name = "columns",
                 .kernels = {REDUCE_ANY, "reduce_join"},
                 .when = "other reductions of at least 16 outputs that lie side by side",
                 .applies = are_columns,
                 .measured_on = "H200"},
    [SUM_WAVES] = {.name = "sum waves",
                   .kernels = {"reduce_{sum}_wave_{float}"},
                   .when = "plain sums of dense rows of at most 4096 values",
                   .applies = are_plain_waves,
                   .measured_on = "H200"},
    [SUM_GROUPS] = {.name = "sum groups",
                    .kernels = {"reduce_{sum}_long_{float}", "reduce_join"},
                    .when = "plain sums of longer dense rows",
                    .applies = are_plain_groups,
                    .measured_on = "H200"},
    [ROW_LINES] = {.name = "lines",
                   .kernels = {"reduce_" LINES, "reduce_join"},
                   .when = "other reductions of dense rows that are short, or not aligned to 16 bytes",
                   .applies = are_lines,
                   .measured_on = "H200"},
    [WAVES] = {.name = "waves",
               .kernels = {REDUCE_ANY},
               .when = "at most 4096 values an output, each output a wave's",
               .applies = are_waves,
               .measured_on = "H200"},
    [GROUPS] = {.name = "groups", .kernels = {REDUCE_ANY, "reduce_join"}, .when = "all others, an output a group's"},
};
#undef REDUCE_ANY
#undef LINES
RDNA_ROUTES(rdna__reduce_routes, "reduce", routes)

/* Into how many slices the values of an output are cut, so that there are |enough| groups. Returns the groups. */
static int64_t choose_slices(struct plan *plan, bool columns, int64_t groups, int64_t enough, int64_t width) {
  struct reduce_dims_args *a = &plan->args;
  int64_t least = columns ? COLUMN_SLICE : SLICE_VALUES, slices = groups > 0 ? enough / groups : 1;
  if (slices > a->count / least) slices = a->count / least;
  if (slices < 2 || a->layout == REDUCE_WAVE || a->layout == REDUCE_ALONE) slices = 1;
  /* Rows are dealt out in small pieces, so that groups do not all read at one distance from each other, which some
   * memory channels would have to serve alone; columns in one piece each. */
  int64_t piece = columns ? rdna__divide_up(rdna__divide_up(a->count, slices), 16) * 16
                          : REDUCE_DIMS_THREADS * REDUCE_DIMS_AHEAD * width;
  int64_t pieces = rdna__divide_up(a->count, piece);
  a->slice = slices == 1 ? a->count : piece;
  a->slices = slices < pieces ? slices : pieces;
  if (slices == 1) a->slices = 1;
  groups *= a->slices;
  return groups < MOST_GROUPS ? groups : MOST_GROUPS;
}

/* Who works on what. Returns the groups. */
static int64_t choose_layout(struct plan *plan, const rdna_tensor *x, rdna_stream *stream) {
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  struct reduce_dims_args *a = &plan->args;
  const int64_t bytes = (int64_t)rdna_dtype_block_bytes(x->dtype), units = (int64_t)info->compute_units;
  bool columns = a->kept_stride[0] == 1 && a->kept_size[0] >= COLUMN_OUTPUTS && a->reduced_stride[0] != 1;
  const int64_t in_16 = 16 / bytes, wave = info->wave_size == 64 ? 64 : 32;
  const int64_t enough = GROUPS_OF_A_UNIT * units > LEAST_GROUPS ? GROUPS_OF_A_UNIT * units : LEAST_GROUPS;
  if (columns) fold_rows(plan, is_small_float(x->dtype) ? in_16 : 1, enough);
  int64_t groups = a->outs, alone = rdna__divide_up(a->outs, REDUCE_DIMS_THREADS * in_16);
  struct problem problem = {.columns = columns,
                            .lines = !columns && has_lines(plan, x),
                            .sums = columns && has_columns(plan, x),
                            .plain = plan->kind == REDUCE_SUM && a->map == REDUCE_PLAIN,
                            .vector = is_vector(a, x, columns) && !(columns && plan->kind == REDUCE_ARG),
                            .fill = alone >= enough / 2,
                            .wave_rows = !columns && a->count <= WAVE_VALUES};
  if (problem.wave_rows) a->team = problem.lines ? choose_team(rdna__divide_up(a->count, in_16), wave) : (int32_t)wave;
  problem.short_rows = problem.wave_rows && a->team < wave;
  plan->route = rdna__route_choose(&rdna__reduce_routes, &problem);
  a->vector = problem.vector;
  a->layout = plan->route == &routes[ALONE] ? REDUCE_ALONE
              : columns                     ? REDUCE_COLUMNS
              : problem.wave_rows           ? REDUCE_WAVE
                                            : REDUCE_GROUP;
  const int64_t width = problem.lines || problem.vector ? in_16 : 1;
  if (plan->route == &routes[ALONE])
    groups = alone;
  else if (plan->route == &routes[SUM_COLUMNS])
    groups = rdna__divide_up(a->kept_size[0], (SUM_LANES - 1) * in_16) * (a->outs / a->kept_size[0]);
  else if (columns)
    groups = rdna__divide_up(a->outs, COLUMN_TILE * width);
  else if (problem.wave_rows)
    groups = rdna__groups_of_waves(stream, rdna__divide_up(a->outs, wave / a->team),
                                   a->count * bytes * (wave / a->team), REDUCE_DIMS_THREADS);
  return choose_slices(plan, columns, groups, enough, width);
}

static rdna_status launch(rdna_stream *stream, const struct plan *plan, rdna_dtype dtype, int64_t groups) {
  static const char *const kinds[] = {"sum", "prod", "max", "var", "lse", "arg"};
  rdna_grid grid = {(uint32_t)groups, 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, plan->route, 0, grid, &plan->args, kinds[plan->kind], type_name(dtype));
}

/* Into memory of its own, one result for each slice, which a second kernel joins in a fixed order. */
static rdna_status launch_sliced(rdna_stream *stream, struct plan *plan, rdna_dtype dtype, int64_t groups) {
  struct reduce_dims_args *a = &plan->args;
  rdna__scratch scratch = {.stream = stream, .holder = plan->name};
  rdna_dtype keeper = dtype == RDNA_F64 ? RDNA_F64 : is_float(dtype) ? RDNA_F32 : RDNA_I64;
  size_t values = (size_t)(a->slices * a->outs), parts = plan->kind == REDUCE_VAR   ? 3
                                                         : plan->kind == REDUCE_LSE ? 2
                                                                                    : 1;
  size_t bytes = values * sizeof(int64_t) + values * parts * rdna_dtype_block_bytes(keeper);
  void *memory;
  RDNA_TRY(rdna__scratch_take(&scratch, bytes, &memory));
  a->partial_index = memory;
  a->partial = (char *)memory + values * sizeof(int64_t);
  struct reduce_join_args join = {.partial = a->partial,
                                  .partial_index = a->partial_index,
                                  .out = a->out,
                                  .outs = a->outs / plan->folded,
                                  .slices = a->slices * plan->folded,
                                  .parameter = a->parameter,
                                  .kind = (int32_t)plan->kind,
                                  .keeper = (int32_t)keeper,
                                  .end = a->end,
                                  .out_dtype = a->out_dtype};
  int64_t join_groups =
      join.slices > REDUCE_JOIN_WAVE_SLICES ? join.outs : rdna__divide_up(join.outs, REDUCE_DIMS_THREADS / 64);
  rdna_grid grid = {(uint32_t)(join_groups < MOST_GROUPS ? join_groups : MOST_GROUPS), 1, 1};
  rdna_status status = launch(stream, plan, dtype, groups);
  if (status == RDNA_OK) status = rdna__launch_named(stream, plan->route->kernels[1], grid, &join);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status check(rdna_stream *stream, const struct plan *plan, uint32_t dims, const rdna_tensor *x,
                         const rdna_tensor *out) {
  RDNA_TRY(rdna__check_stream(plan->name, stream));
  if (plan->reduction == RDNA_REDUCTION_NORM && !(plan->parameter >= 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: parameter is %g; p must be 0 or greater", plan->name,
                      plan->parameter);
  }
  if (plan->kind == REDUCE_VAR && !isfinite(plan->parameter)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: parameter is %g; the correction must be finite", plan->name,
                      plan->parameter);
  }
  RDNA_TRY(check_x(plan, x));
  RDNA_TRY(rdna__check_tensor(plan->name, "out", out));
  RDNA_TRY(check_out_type(plan, x, out));
  return check_shape(plan, dims, x, out);
}

rdna_status rdna_op_reduce(rdna_stream *stream, rdna_reduction reduction, const rdna_tensor *x, uint32_t dims,
                           double parameter, const rdna_tensor *out) {
  static const enum reduce_kind kinds[RDNA_REDUCTION_COUNT] = {
      REDUCE_SUM, REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MAX, REDUCE_ARG, REDUCE_ARG,
      REDUCE_SUM, REDUCE_MAX, REDUCE_MAX,  REDUCE_VAR, REDUCE_VAR, REDUCE_LSE};
  if ((unsigned)reduction >= RDNA_REDUCTION_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "reduce: reduction is number %d; there are 0 to %d", (int)reduction,
                      RDNA_REDUCTION_COUNT - 1);
  }
  struct plan plan = {names[reduction], reduction, parameter, kinds[reduction], NULL, 1, {0}};
  struct reduce_dims_args *a = &plan.args;
  if (reduction == RDNA_REDUCTION_NORM && isinf(parameter)) plan.kind = REDUCE_MAX;
  RDNA_TRY(check(stream, &plan, dims, x, out));
  fold(x, dims, false, &a->kept_rank, a->kept_size, a->kept_stride);
  fold(x, dims, true, &a->reduced_rank, a->reduced_size, a->reduced_stride);
  a->outs = product(a->kept_rank, a->kept_size), a->count = product(a->reduced_rank, a->reduced_size);
  if (a->outs == 0) return RDNA_OK;
  if (is_composed(&plan, x->dtype)) return rdna__reduce_f64(plan.name, stream, reduction, dims, parameter, x, out);
  bool has_answer = reduction == RDNA_REDUCTION_ANY || reduction == RDNA_REDUCTION_ALL; /* of nothing, too */
  if (a->count == 0 && (plan.kind == REDUCE_ARG || (plan.kind == REDUCE_MAX && !has_answer))) {
    char text[RDNA__TENSOR_TEXT];
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: x is %s; each result needs at least 1 value and has 0", plan.name,
                      rdna__tensor_text(x, text));
  }
  if (plan.kind == REDUCE_ARG && out->dtype == RDNA_I32 && a->count - 1 > INT32_MAX) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: out is i32, which counts to %d, and a result is one of %lld places; make out i64", plan.name,
                      INT32_MAX, (long long)a->count);
  }
  if ((a->kept_rank > 1 && a->outs > INT32_MAX) || (a->reduced_rank > 1 && a->count > INT32_MAX)) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: %lld results of %lld values that do not lie evenly; at most %d are offered", plan.name,
                      (long long)a->outs, (long long)a->count, INT32_MAX);
  }
  choose_arithmetic(&plan);
  a->x = x->data, a->out = out->data, a->out_dtype = (int32_t)out->dtype;
  int64_t groups = choose_layout(&plan, x, stream);
  return a->slices == 1 ? launch(stream, &plan, x->dtype, groups) : launch_sliced(stream, &plan, x->dtype, groups);
}
