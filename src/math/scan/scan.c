#include "rdna/op/scan.h"

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/scan/scan_kernels.h"

/* From an H200; nobody has measured them on AMD's cards. */
enum {
  MOST_COLUMN_GROUPS = 1 << 16, /* groups take turns */
  RUN_VALUES = 2048,            /* of short rows that a wave takes together */
  ENOUGH_ROWS = 2048,           /* for a wave each; of fewer, but enough, long rows a group has one each */
  ENOUGH_GROUPS = 256,
  GROUP_VALUES = 4096,
  LONG_VALUES = 1 << 15, /* of fewer rows yet, so long ones are better read twice */
  ENOUGH_SEGMENTS = 1 << 14,
  SEGMENT_VALUES = 2048,
  MOST_SEGMENTS = 4096 /* of a row: every wave reads the totals of those before its own */
};

struct problem {
  int64_t outer, n, inner;
};

static bool are_columns(const rdna__route *route, const void *problem) {
  return ((const struct problem *)problem)->inner != 1;
}
static bool are_waves(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->outer >= ENOUGH_ROWS || p->n < GROUP_VALUES;
}
static bool are_groups(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->outer >= ENOUGH_GROUPS || p->n < LONG_VALUES;
}

enum { COLUMNS, WAVES, GROUPS, SEGMENTS };
#define SCAN "scan_{sum|prod|max|min|logsumexp}_{f32|f16|bf16|f64|i32|i64}"
static const rdna__route routes[] = {
    [COLUMNS] = {.name = "columns",
                 .kernels = {SCAN},
                 .when = "along another dimension than the last: a lane for each column",
                 .applies = are_columns},
    [WAVES] = {.name = "waves",
               .kernels = {SCAN},
               .when = "at least 2048 rows, or of fewer than 4096 values: a wave for each, or for several short ones",
               .applies = are_waves,
               .measured_on = "H200"},
    [GROUPS] = {.name = "groups",
                .kernels = {SCAN},
                .when = "at least 256 long rows, or of fewer than 32768 values: a group for each",
                .applies = are_groups,
                .measured_on = "H200"},
    [SEGMENTS] = {.name = "segments",
                  .kernels = {SCAN, SCAN},
                  .when = "fewer and longer rows: cut into segments, what each comes to first",
                  .measured_on = "H200"},
};
#undef SCAN
RDNA_ROUTES(rdna__scan_routes, "cumsum, cumprod, cummax, cummin, logcumsumexp", routes)

static rdna_status check(const char *name, rdna_stream *stream, int *dim, const rdna_tensor *x,
                         const rdna_tensor *out) {
  RDNA_TRY(rdna__check_stream(name, stream));
  RDNA_TRY(rdna__check_tensor(name, "x", x));
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  rdna_dtype t = x->dtype;
  if (t != RDNA_F32 && t != RDNA_F16 && t != RDNA_BF16 && t != RDNA_F64 && t != RDNA_I32 && t != RDNA_I64) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: x is %s; the types offered are f32, f16, bf16, f64, i32 and i64", name,
                      rdna_dtype_name(t));
  }
  RDNA_TRY(rdna__check_same_dtype(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_same_shape(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_dim(name, "x", x, dim));
  RDNA_TRY(rdna__check_contiguous(name, "x", x));
  RDNA_TRY(rdna__check_contiguous(name, "out", out));
  return rdna__check_overlap(name, "out", out, "x", x);
}

static rdna_status launch(rdna_stream *stream, const char *op, rdna_dtype dtype, const struct scan_args *a) {
  rdna_grid grid = {1, 1, 1};
  if (a->inner == 1) {
    grid.x = a->groups ? a->units : rdna__groups_of_waves(stream, a->units, INT64_MAX, SCAN_THREADS);
  } else {
    int64_t groups = (a->outer * a->inner - 1) / SCAN_THREADS + 1;
    grid.x = (uint32_t)(groups < MOST_COLUMN_GROUPS ? groups : MOST_COLUMN_GROUPS);
  }
  return RDNA__ROUTE_LAUNCH(stream, &routes[WAVES], 0, grid, a, op, rdna_dtype_name(dtype)); /* as all rows */
}

/* What each segment comes to, and the rows from there on. */
static rdna_status launch_segments(rdna_stream *stream, const char *name, const char *op, rdna_dtype dtype,
                                   const struct scan_args *whole) {
  rdna__scratch scratch = {.stream = stream, .holder = name};
  rdna_dtype kept = dtype == RDNA_F64 ? RDNA_F64 : dtype == RDNA_I32 || dtype == RDNA_I64 ? RDNA_I64 : RDNA_F32;
  void *memory;
  RDNA_TRY(rdna__scratch_take(&scratch, rdna_dtype_bytes(kept, whole->outer * whole->segments), &memory));
  struct scan_args totals = *whole, rest = *whole;
  totals.totals = memory, rest.carry = memory;
  rdna_status status = launch(stream, op, dtype, &totals);
  if (status == RDNA_OK) status = launch(stream, op, dtype, &rest);
  return rdna__scratch_release(&scratch, status);
}

static rdna_status scan(rdna_stream *stream, const char *name, const char *op, int dim, const rdna_tensor *x,
                        const rdna_tensor *out) {
  RDNA_TRY(check(name, stream, &dim, x, out));
  if (rdna_tensor_count(x) == 0) return RDNA_OK;
  struct scan_args a = {
      .x = x->data, .out = out->data, .outer = 1, .n = x->rank > 0 ? x->shape[dim] : 1, .inner = 1, .segments = 1};
  for (int i = 0; i < dim; i++) a.outer *= x->shape[i];
  for (int i = dim + 1; i < x->rank; i++) a.inner *= x->shape[i];
  a.segment = a.n, a.rows = a.n <= RUN_VALUES / 2 ? (uint32_t)(RUN_VALUES / a.n) : 1;
  struct problem problem = {a.outer, a.n, a.inner};
  const rdna__route *route = rdna__route_choose(&rdna__scan_routes, &problem);
  if (route != &routes[SEGMENTS]) {
    a.groups = route == &routes[GROUPS];
    if (a.inner == 1) RDNA_TRY(rdna__check_groups(name, rdna__divide_up(a.outer, a.rows), 1, &a.units));
    return launch(stream, op, x->dtype, &a);
  }
  int64_t segments = ENOUGH_SEGMENTS / a.outer;
  if (segments > a.n / SEGMENT_VALUES) segments = a.n / SEGMENT_VALUES;
  if (segments > MOST_SEGMENTS) segments = MOST_SEGMENTS;
  a.segment = (rdna__divide_up(a.n, segments) + 7) / 8 * 8;
  a.segments = (uint32_t)(rdna__divide_up(a.n, a.segment));
  a.units = (uint32_t)a.outer * a.segments;
  return launch_segments(stream, name, op, x->dtype, &a);
}

rdna_status rdna_op_cumsum(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out) {
  return scan(stream, "cumsum", "sum", dim, x, out);
}
rdna_status rdna_op_cumprod(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out) {
  return scan(stream, "cumprod", "prod", dim, x, out);
}
rdna_status rdna_op_cummax(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out) {
  return scan(stream, "cummax", "max", dim, x, out);
}
rdna_status rdna_op_cummin(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out) {
  return scan(stream, "cummin", "min", dim, x, out);
}
rdna_status rdna_op_logcumsumexp(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *out) {
  RDNA_TRY(rdna__check_float("logcumsumexp", "x", x));
  return scan(stream, "logcumsumexp", "logsumexp", dim, x, out);
}
