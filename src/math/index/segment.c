/* Combines values that go to one place: sorts the places, then runs segment_* until one chunk is left. */
#include "kernel/dtype.h"
#include "kernel/float8.h"
#include "math/common/plan/route.h"
#include "math/index/indexed_plan.h"
#include "math/index/segment_kernels.h"
#include "math/sort/sort_plan.h"

enum { MOST_GROUPS = 1 << 16 }; /* of a launch; groups stride over the rest */

/* Their sums and products are, bit by bit, those of signed integers. */
static bool is_wide_unsigned(rdna_dtype dtype) { return dtype == RDNA_U16 || dtype == RDNA_U32 || dtype == RDNA_U64; }

rdna_status rdna__check_segments(const char *name, rdna_dtype dtype, rdna_scatter mode, int64_t n, int64_t rows) {
  if (dtype == RDNA_BOOL && mode == RDNA_SCATTER_MEAN) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: a mean of bool is not offered; convert to a type of numbers first", name);
  }
  if (float8_is(dtype) && mode != RDNA_SCATTER_LAST) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: values of %s are not joined; convert to another type first", name,
                      rdna_dtype_name(dtype));
  }
  if (is_wide_unsigned(dtype) && (mode == RDNA_SCATTER_MIN || mode == RDNA_SCATTER_MAX || mode == RDNA_SCATTER_MEAN)) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: values of %s are added and multiplied; convert to i32 or i64 for others",
                      name, rdna_dtype_name(dtype));
  }
  if (n > INT32_MAX || rows >= UINT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: %lld indices into %lld places; at most %d into fewer than %u are offered when values are "
                      "joined",
                      name, (long long)n, (long long)rows, INT32_MAX, UINT32_MAX);
  }
  return RDNA_OK;
}

static uint32_t op_of(rdna_scatter mode, rdna_dtype dtype) {
  static const uint32_t ops[RDNA_SCATTER_COUNT] = {
      [RDNA_SCATTER_LAST] = SEGMENT_LAST, [RDNA_SCATTER_ADD] = SEGMENT_ADD, [RDNA_SCATTER_PROD] = SEGMENT_PROD,
      [RDNA_SCATTER_MIN] = SEGMENT_MIN,   [RDNA_SCATTER_MAX] = SEGMENT_MAX, [RDNA_SCATTER_MEAN] = SEGMENT_MEAN};
  if (dtype == RDNA_BOOL && mode == RDNA_SCATTER_ADD) return SEGMENT_MAX;
  if (dtype == RDNA_BOOL && mode == RDNA_SCATTER_PROD) return SEGMENT_MIN;
  return ops[mode];
}

static const rdna__route route[] = {
    {.name = "segments",
     .kernels = {"segment_{f32|f16|bf16|f64|i8|u8|i16|i32|i64}"},
     .when = "values in the order of their sorted places, runs of one place joined chunk by chunk, until one is left"}};
RDNA_FIXED_ROUTES(rdna__segment_routes, "scatter, index_copy, index_put, embedding_backward of values that are joined",
                  route)

static rdna_status sort_keys(rdna__scratch *scratch, const rdna__segments *s, void **out_keys, void **out_places) {
  size_t bytes = (size_t)s->n * sizeof(uint32_t);
  RDNA_TRY(rdna__scratch_take(scratch, bytes, out_keys));
  RDNA_TRY(rdna__scratch_take(scratch, bytes, out_places));
  rdna__sort_rows sort = {.x = s->keys,
                          .values = *out_keys,
                          .indices = *out_places,
                          .rows = 1,
                          .n = s->n,
                          .kept = (uint32_t)s->n,
                          .value_bytes = 4,
                          .narrow = true,
                          .order = {.ones = UINT32_MAX}};
  while (sort.bits < 32 && s->rows >> sort.bits) sort.bits++;
  return rdna__sort_rows_queue(scratch, &sort);
}

/* The parts of a launch. Two of these alternate: what one launch writes the next one reads. */
typedef struct parts {
  void *keys, *values, *counts;
} parts;

static rdna_status take_parts(rdna__scratch *scratch, int64_t entries, int64_t columns, size_t kept_bytes, parts *out) {
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)entries * sizeof(uint32_t), &out->keys));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)entries * sizeof(uint32_t), &out->counts));
  return rdna__scratch_take(scratch, (size_t)(entries * columns) * kept_bytes, &out->values);
}

rdna_status rdna__segments_queue(rdna__scratch *scratch, const rdna__segments *s) {
  void *keys, *places;
  parts memory[2] = {{0}};
  int64_t columns = s->outer * s->inner;
  size_t kept_bytes = dtype_is_float(s->dtype) ? 4 : 8;
  if (s->n == 0 || s->rows == 0 || columns == 0) return RDNA_OK;
  RDNA_TRY(sort_keys(scratch, s, &keys, &places));
  struct segment_args a = {.keys = keys,
                           .places = places,
                           .src = s->src,
                           .dst = s->dst,
                           .outer = s->outer,
                           .inner = s->inner,
                           .src_rows = s->n,
                           .n = (uint32_t)s->n,
                           .rows = (uint32_t)s->rows,
                           .op = op_of(s->mode, s->dtype),
                           .include_self = s->include_self && s->mode != RDNA_SCATTER_LAST};
  bool bytes = s->dtype == RDNA_BOOL || float8_is(s->dtype); /* 8-bit floats are only moved, as bytes */
  rdna_dtype joined = bytes                  ? RDNA_U8
                      : s->dtype == RDNA_U16 ? RDNA_I16
                      : s->dtype == RDNA_U32 ? RDNA_I32
                      : s->dtype == RDNA_U64 ? RDNA_I64
                                             : s->dtype;
  const char *type = rdna_dtype_name(joined);
  for (int level = 0;; level++) {
    a.chunks = (a.n - 1) / SEGMENT_CHUNK + 1;
    parts *next = &memory[level % 2];
    if (a.chunks > 1) {
      if (level < 2) RDNA_TRY(take_parts(scratch, 2 * (int64_t)a.chunks, columns, kept_bytes, next));
      a.part_keys = next->keys, a.part_values = next->values, a.part_counts = next->counts;
    } else {
      a.part_keys = a.part_counts = NULL, a.part_values = NULL;
    }
    int64_t groups = (a.chunks * columns - 1) / SEGMENT_THREADS + 1;
    rdna_grid grid = {(uint32_t)(groups < MOST_GROUPS ? groups : MOST_GROUPS), 1, 1};
    RDNA_TRY(RDNA__ROUTE_LAUNCH(scratch->stream, route, 0, grid, &a, type));
    if (a.chunks == 1) return RDNA_OK;
    a.n = 2 * a.chunks;
    a.keys = next->keys, a.src = next->values, a.counts = next->counts, a.places = NULL;
  }
}
