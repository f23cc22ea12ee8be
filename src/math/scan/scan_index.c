#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/scan/scan_index_kernels.h"
#include "math/sort/sort_plan.h"
#include "rdna/op/scan.h"

/* From an H200; nobody has measured them on AMD's cards. */
enum {
  MOST_GROUPS = 1 << 16,    /* groups take turns */
  ENOUGH_GROUPS = 512,      /* what keeps a large GPU busy */
  SEGMENT_VALUES = 1 << 13, /* shorter ones are not worth reading a row twice */
};

struct problem {
  int64_t inner, segments; /* that keep the device busy and are worth it */
};

static bool are_whole(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->inner > 1 || p->segments < 2;
}

enum { WHOLE, SEGMENTS };
static const rdna__route routes[] = {
    [WHOLE] = {.name = "whole",
               .kernels = {"scan_index_{bits}"},
               .when = "a group for each row, or a lane for each column",
               .applies = are_whole},
    [SEGMENTS] = {.name = "segments",
                  .kernels = {"scan_index_{bits}", "scan_index_{bits}", "scan_index_{bits}"},
                  .when = "fewer than 256 long rows, cut into segments: what each comes to, then those, then the rest",
                  .measured_on = "H200"},
};
RDNA_ROUTES(rdna__scan_index_routes, "cummax_indices, cummin_indices", routes)

static rdna_status check(const char *name, rdna_stream *stream, int *dim, const rdna_tensor *x,
                         const rdna_tensor *values, const rdna_tensor *indices) {
  RDNA_TRY(rdna__check_stream(name, stream));
  RDNA_TRY(rdna__check_unquantized(name, "x", x));
  RDNA_TRY(rdna__check_tensor(name, "values", values));
  RDNA_TRY(rdna__check_same_dtype(name, "values", values, "x", x));
  RDNA_TRY(rdna__check_same_shape(name, "values", values, "x", x));
  RDNA_TRY(rdna__check_tensor(name, "indices", indices));
  RDNA_TRY(rdna__check_dtype(name, "indices", indices, RDNA_I64));
  RDNA_TRY(rdna__check_same_shape(name, "indices", indices, "x", x));
  RDNA_TRY(rdna__check_dim(name, "x", x, dim));
  RDNA_TRY(rdna__check_contiguous(name, "x", x));
  RDNA_TRY(rdna__check_contiguous(name, "values", values));
  RDNA_TRY(rdna__check_contiguous(name, "indices", indices));
  RDNA_TRY(rdna__check_overlap(name, "values", values, "x", x));
  RDNA_TRY(rdna__check_apart(name, "indices", indices, "x", x));
  RDNA_TRY(rdna__check_apart(name, "indices", indices, "values", values));
  if (x->rank > 0 && x->shape[*dim] > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: rows have %lld values; at most %d are offered", name,
                      (long long)x->shape[*dim], INT32_MAX);
  }
  return RDNA_OK;
}

static rdna_status launch(rdna_stream *stream, size_t bytes, const struct scan_index_args *a) {
  int64_t groups = a->inner == 1 ? a->outer * a->segments : (a->outer * a->inner - 1) / SCAN_INDEX_THREADS + 1;
  rdna_grid grid = {(uint32_t)(groups < MOST_GROUPS ? groups : MOST_GROUPS), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, &routes[WHOLE], 0, grid, a, rdna__route_bits(bytes));
}

/* What each segment comes to, the running extremes of that, and the rows from there on. */
static rdna_status launch_segments(rdna__scratch *scratch, size_t bytes, const struct scan_index_args *whole) {
  void *values, *places;
  size_t count = (size_t)(whole->outer * whole->segments);
  RDNA_TRY(rdna__scratch_take(scratch, 2 * count * bytes, &values));
  RDNA_TRY(rdna__scratch_take(scratch, 2 * count * sizeof(uint32_t), &places));
  void *running = (char *)values + count * bytes;
  uint32_t *running_places = (uint32_t *)places + count;
  struct scan_index_args totals = *whole, between = *whole, rest = *whole;
  totals.total_values = values, totals.total_places = places;
  between.x = values, between.places = places, between.values = running, between.indices = running_places;
  between.n = between.segment = whole->segments, between.segments = 1, between.narrow = 1;
  rest.carry_values = running, rest.carry_places = running_places;
  RDNA_TRY(launch(scratch->stream, bytes, &totals));
  RDNA_TRY(launch(scratch->stream, bytes, &between));
  return launch(scratch->stream, bytes, &rest);
}

static rdna_status scan(rdna_stream *stream, const char *name, bool smallest, int dim, const rdna_tensor *x,
                        const rdna_tensor *values, const rdna_tensor *indices) {
  RDNA_TRY(check(name, stream, &dim, x, values, indices));
  if (rdna_tensor_count(x) == 0) return RDNA_OK;
  size_t bytes = rdna_dtype_block_bytes(x->dtype);
  struct scan_index_args a = {.x = x->data,
                              .values = values->data,
                              .indices = indices->data,
                              .outer = 1,
                              .inner = 1,
                              .n = (uint32_t)(x->rank > 0 ? x->shape[dim] : 1),
                              .segments = 1,
                              .order = rdna__sort_order(x->dtype, smallest)};
  for (int i = 0; i < dim; i++) a.outer *= x->shape[i];
  for (int i = dim + 1; i < x->rank; i++) a.inner *= x->shape[i];
  a.nan_last = smallest && a.order.infinity != 0;
  a.segment = a.n;
  int64_t segments = ENOUGH_GROUPS / a.outer;
  if (segments > a.n / SEGMENT_VALUES) segments = a.n / SEGMENT_VALUES;
  struct problem problem = {a.inner, segments};
  if (rdna__route_choose(&rdna__scan_index_routes, &problem) == &routes[WHOLE]) return launch(stream, bytes, &a);
  a.segment = (a.n - 1) / (uint32_t)segments + 1;
  a.segments = (a.n - 1) / a.segment + 1;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch, launch_segments(&scratch, bytes, &a));
}

rdna_status rdna_op_cummax_indices(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *values,
                                   const rdna_tensor *indices) {
  return scan(stream, "cummax_indices", false, dim, x, values, indices);
}
rdna_status rdna_op_cummin_indices(rdna_stream *stream, const rdna_tensor *x, int dim, const rdna_tensor *values,
                                   const rdna_tensor *indices) {
  return scan(stream, "cummin_indices", true, dim, x, values, indices);
}
