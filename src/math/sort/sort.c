#include "rdna/op/sort.h"

#include "math/common/plan/route.h"
#include "math/common/plan/rows_along.h"
#include "math/sort/sort_kernels.h"
#include "math/sort/sort_plan.h"
#include "rdna/op/random.h"

enum { MOST_GROUPS = 1 << 16, ENOUGH_PARTS = 4096 }; /* groups take turns */

struct sort_order rdna__sort_order(rdna_dtype dtype, bool descending) {
  int bits = 8 * (int)rdna_dtype_block_bytes(dtype);
  struct sort_order order = {.ones = ~UINT64_C(0) >> (64 - bits)};
  bool no_sign = dtype == RDNA_U8 || dtype == RDNA_BOOL || dtype == RDNA_U16 || dtype == RDNA_U32 || dtype == RDNA_U64;
  if (!no_sign) order.sign = UINT64_C(1) << (bits - 1);
  if (dtype == RDNA_F32) order.infinity = 0x7f800000;
  if (dtype == RDNA_F16) order.infinity = 0x7c00;
  if (dtype == RDNA_BF16) order.infinity = 0x7f80;
  if (dtype == RDNA_F64) order.infinity = UINT64_C(0x7ff0000000000000);
  if (descending) order.invert = order.ones;
  return order;
}

static rdna_grid grid_of(int64_t units) {
  return (rdna_grid){(uint32_t)(units < MOST_GROUPS ? units : MOST_GROUPS), 1, 1};
}

static bool fit_lanes(const rdna__route *route, const void *sort) {
  return ((const rdna__sort_rows *)sort)->n <= SORT_RANK_MOST;
}
static bool fit_waves(const rdna__route *route, const void *sort) {
  const rdna__sort_rows *s = sort;
  return s->n <= SORT_WAVE_MOST && !s->places;
}
static bool fit_waves_of_small_values(const rdna__route *route, const void *sort) {
  const rdna__sort_rows *s = sort;
  return s->n <= SORT_LONG_WAVE_MOST && s->value_bytes <= 4 && !s->places;
}
static bool fit_small_groups(const rdna__route *route, const void *sort) {
  return ((const rdna__sort_rows *)sort)->n <= SORT_SMALL_MOST;
}
static bool fit_groups(const rdna__route *route, const void *sort) {
  return ((const rdna__sort_rows *)sort)->n <= SORT_TILE;
}

enum { RANK, WAVE, LONG_WAVE, SMALL, TILE, RADIX };
static const rdna__route routes[] = {
    [RANK] = {.name = "rank",
              .kernels = {"sort_rank_{bits}"},
              .when = "rows so short that a lane compares its value with all others",
              .applies = fit_lanes,
              .measured_on = "H200"},
    [WAVE] = {.name = "wave",
              .kernels = {"sort_wave_{bits}"},
              .when = "rows that a wave's registers hold",
              .applies = fit_waves,
              .measured_on = "H200"},
    [LONG_WAVE] = {.name = "long wave",
                   .kernels = {"sort_long_wave_{8|16|32}"},
                   .when = "the same of values of at most 4 bytes",
                   .applies = fit_waves_of_small_values,
                   .measured_on = "H200"},
    [SMALL] = {.name = "small",
               .kernels = {"sort_small_{bits}"},
               .when = "rows that half a group's memory holds",
               .applies = fit_small_groups,
               .measured_on = "H200"},
    [TILE] = {.name = "tile",
              .kernels = {"sort_tile_{bits}"},
              .when = "rows that a group's memory holds",
              .applies = fit_groups},
    [RADIX] = {.name = "radix",
               .kernels = {"radix_count_{bits}", "radix_sweep_{bits}"},
               .when = "longer rows: a sweep for each 8 bits"},
};
RDNA_ROUTES(rdna__sort_routes, "sort, random_permutation; topk and kth_value of short rows, and of what they selected",
            routes)

static const rdna__route search_route[] = {
    {.name = "search", .kernels = {"search_{bits}"}, .when = "by halves, a lane for each value"}};
RDNA_FIXED_ROUTES(rdna__search_routes, "search_sorted", search_route)

static rdna_status launch(rdna_stream *stream, const rdna__route *route, int step, int value_bytes, int64_t units,
                          const void *args) {
  return RDNA__ROUTE_LAUNCH(stream, route, step, grid_of(units), args, rdna__route_bits((size_t)value_bytes));
}

static rdna_status sort_short_rows(rdna_stream *stream, const rdna__route *route, const rdna__sort_rows *sort) {
  struct sort_tile_args a = {.x = sort->x,
                             .places = sort->places,
                             .values = sort->values,
                             .indices = sort->indices,
                             .rows = sort->rows,
                             .n = (uint32_t)sort->n,
                             .first = sort->first,
                             .kept = sort->kept,
                             .bits = sort->bits,
                             .place_bits = sort->place_bits,
                             .narrow = sort->narrow,
                             .order = sort->order};
  int64_t groups = a.rows;
  uint32_t width = 1;
  while (width < a.n) width *= 2;
  if (route == &routes[RANK]) groups = (a.rows - 1) / (SORT_THREADS / width) + 1;
  if (route == &routes[WAVE] || route == &routes[LONG_WAVE]) groups = (a.rows - 1) / SORT_LEAST_WAVES + 1;
  return launch(stream, route, 0, sort->value_bytes, groups, &a);
}

static rdna_status count_digits(rdna_stream *stream, const rdna__sort_rows *sort, uint32_t digits, uint32_t *counts) {
  struct radix_count_args a = {.x = sort->x,
                               .counts = counts,
                               .rows = sort->rows,
                               .n = (uint32_t)sort->n,
                               .digits = digits,
                               .part = SORT_TILE,
                               .order = sort->order};
  while ((a.n - 1) / a.part >= ENOUGH_PARTS / sort->rows + 1) a.part *= 2;
  a.parts = (a.n - 1) / a.part + 1;
  return launch(stream, &routes[RADIX], 0, sort->value_bytes, a.rows * a.parts, &a);
}

/* Passes take turns between two places; the last writes the output, which serves as the second. */
static rdna_status sort_long_rows(rdna__scratch *scratch, const rdna__sort_rows *sort) {
  int64_t count = sort->rows * sort->n;
  uint32_t passes = (sort->bits + 7) / 8;
  size_t value_bytes = (size_t)count * (size_t)sort->value_bytes;
  struct radix_sweep_args a = {.x = sort->x, .rows = sort->rows, .n = (uint32_t)sort->n, .order = sort->order};
  a.tiles = (a.n - 1) / SORT_SWEEP_TILE + 1;
  /* of each pass: counts, states and a ticket */
  int64_t of_digit = a.rows * SORT_DIGITS, of_states = of_digit * a.tiles;
  size_t words = (size_t)passes * (size_t)(of_digit + of_states + 1);
  void *zeros, *values[2] = {NULL, sort->values}, *places[2] = {NULL, sort->indices};
  RDNA_TRY(rdna__scratch_take(scratch, words * sizeof(uint32_t), &zeros));
  if (passes > 1) RDNA_TRY(rdna__scratch_take(scratch, value_bytes, &values[0]));
  if (passes > 2 && !values[1]) RDNA_TRY(rdna__scratch_take(scratch, value_bytes, &values[1]));
  if (passes > 1 && sort->indices) {
    RDNA_TRY(rdna__scratch_take(scratch, (size_t)count * sizeof(uint32_t), &places[0]));
  }
  rdna_stream *stream = scratch->stream;
  uint32_t *counts = zeros, *states = counts + passes * of_digit, *tickets = states + passes * of_states;
  RDNA_TRY(rdna_fill_bytes(stream, zeros, 0, words * sizeof(uint32_t)));
  RDNA_TRY(count_digits(stream, sort, passes, counts));
  for (uint32_t pass = 0; pass < passes; pass++) {
    bool last = pass + 1 == passes;
    uint32_t to = (passes - pass) % 2;
    a.shift = 8 * pass;
    a.counts = counts + pass * of_digit, a.states = states + pass * of_states, a.ticket = tickets + pass;
    a.values = last ? sort->values : values[to];
    a.indices = last ? sort->indices : places[to];
    a.narrow = last ? sort->narrow : true;
    RDNA_TRY(launch(stream, &routes[RADIX], 1, sort->value_bytes, a.rows * a.tiles, &a));
    a.x = a.values, a.places = a.indices;
  }
  return RDNA_OK;
}

rdna_status rdna__sort_rows_queue(rdna__scratch *scratch, const rdna__sort_rows *sort) {
  if (sort->rows == 0 || sort->n == 0) return RDNA_OK;
  const rdna__route *route = rdna__route_choose(&rdna__sort_routes, sort);
  return route == &routes[RADIX] ? sort_long_rows(scratch, sort) : sort_short_rows(scratch->stream, route, sort);
}

static rdna_status check_values(const char *name, rdna_stream *stream, const char *argument, const rdna_tensor *x) {
  RDNA_TRY(rdna__check_stream(name, stream));
  return rdna__check_unquantized(name, argument, x);
}

static rdna_status check_row_length(const char *name, int64_t n) {
  if (n <= INT32_MAX) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: rows have %lld values; at most %d are offered", name, (long long)n,
                    INT32_MAX);
}

static rdna_status check_sort(rdna_stream *stream, const rdna_tensor *x, int *dim, const rdna_tensor *values,
                              const rdna_tensor *indices) {
  static const char *const name = "sort";
  RDNA_TRY(check_values(name, stream, "x", x));
  RDNA_TRY(rdna__check_dim(name, "x", x, dim));
  if (!values && !indices) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "sort: values and indices are NULL; pass a tensor for one of them");
  }
  if (values) {
    RDNA_TRY(rdna__check_tensor(name, "values", values));
    RDNA_TRY(rdna__check_same_dtype(name, "values", values, "x", x));
    RDNA_TRY(rdna__check_same_shape(name, "values", values, "x", x));
    RDNA_TRY(rdna__check_distinct(name, values));
    RDNA_TRY(rdna__check_apart(name, "values", values, "x", x));
  }
  if (indices) {
    RDNA_TRY(rdna__check_tensor(name, "indices", indices));
    RDNA_TRY(rdna__check_dtype(name, "indices", indices, RDNA_I64));
    RDNA_TRY(rdna__check_same_shape(name, "indices", indices, "x", x));
    RDNA_TRY(rdna__check_distinct(name, indices));
    RDNA_TRY(rdna__check_apart(name, "indices", indices, "x", x));
  }
  if (values && indices) RDNA_TRY(rdna__check_apart(name, "values", values, "indices", indices));
  return check_row_length(name, x->rank > 0 ? x->shape[*dim] : 1);
}

static rdna_status sort_dense(rdna__scratch *scratch, const rdna_tensor *x, int dim, bool descending,
                              const rdna_tensor *values, const rdna_tensor *indices) {
  rdna_tensor in, out = {0}, out_indices = {0}, view = rdna__dim_last(x, dim);
  int64_t n = x->rank > 0 ? x->shape[dim] : 1;
  RDNA_TRY(rdna__dense_in(scratch, &view, &in));
  rdna_tensor values_view = values ? rdna__dim_last(values, dim) : out;
  rdna_tensor indices_view = indices ? rdna__dim_last(indices, dim) : out;
  if (values) RDNA_TRY(rdna__dense_place(scratch, &values_view, &out));
  if (indices) RDNA_TRY(rdna__dense_place(scratch, &indices_view, &out_indices));
  rdna__sort_rows sort = {.x = in.data,
                          .values = out.data,
                          .indices = out_indices.data,
                          .rows = rdna_tensor_count(x) / n,
                          .n = n,
                          .kept = (uint32_t)n,
                          .value_bytes = (int)rdna_dtype_block_bytes(x->dtype),
                          .order = rdna__sort_order(x->dtype, descending)};
  sort.bits = 8 * (uint32_t)sort.value_bytes;
  RDNA_TRY(rdna__sort_rows_queue(scratch, &sort));
  if (values) RDNA_TRY(rdna__dense_out(scratch, &out, &values_view));
  return indices ? rdna__dense_out(scratch, &out_indices, &indices_view) : RDNA_OK;
}

rdna_status rdna_op_sort(rdna_stream *stream, const rdna_tensor *x, int dim, bool descending, const rdna_tensor *values,
                         const rdna_tensor *indices) {
  RDNA_TRY(check_sort(stream, x, &dim, values, indices));
  if (rdna_tensor_count(x) == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = "sort"};
  return rdna__scratch_release(&scratch, sort_dense(&scratch, x, dim, descending, values, indices));
}

static rdna_status check_search(rdna_stream *stream, const rdna_tensor *sorted, const rdna_tensor *x,
                                const rdna_tensor *out) {
  static const char *const name = "search_sorted";
  RDNA_TRY(check_values(name, stream, "sorted", sorted));
  RDNA_TRY(rdna__check_tensor(name, "x", x));
  RDNA_TRY(rdna__check_same_dtype(name, "x", x, "sorted", sorted));
  RDNA_TRY(rdna__check_tensor(name, "out", out));
  if (out->dtype != RDNA_I32) RDNA_TRY(rdna__check_dtype(name, "out", out, RDNA_I64));
  RDNA_TRY(rdna__check_same_shape(name, "out", out, "x", x));
  if (sorted->rank != 1) {
    if (sorted->rank == 0) RDNA_TRY(rdna__check_rank(name, "sorted", sorted, 1));
    RDNA_TRY(rdna__check_rank(name, "x", x, sorted->rank));
    for (int d = 0; d + 1 < x->rank; d++) RDNA_TRY(rdna__check_size(name, "x", x, d, sorted->shape[d], "sorted's"));
  }
  RDNA_TRY(rdna__check_distinct(name, out));
  RDNA_TRY(rdna__check_apart(name, "out", out, "sorted", sorted));
  RDNA_TRY(rdna__check_apart(name, "out", out, "x", x));
  return check_row_length(name, sorted->shape[sorted->rank - 1]);
}

static rdna_status search_dense(rdna__scratch *scratch, const rdna_tensor *sorted, const rdna_tensor *x, bool right,
                                const rdna_tensor *out) {
  rdna_tensor rows = *sorted, values, found;
  if (rdna_tensor_count(sorted) > 0) RDNA_TRY(rdna__dense_in(scratch, sorted, &rows));
  RDNA_TRY(rdna__dense_in(scratch, x, &values));
  RDNA_TRY(rdna__dense_place(scratch, out, &found));
  struct search_args a = {.sorted = rows.data,
                          .x = values.data,
                          .out = found.data,
                          .rows = 1,
                          .n = sorted->shape[sorted->rank - 1],
                          .count = x->rank > 0 ? x->shape[x->rank - 1] : 1,
                          .shared = sorted->rank == 1,
                          .right = right,
                          .narrow = out->dtype == RDNA_I32,
                          .order = rdna__sort_order(x->dtype, false)};
  a.rows = rdna_tensor_count(x) / a.count;
  RDNA_TRY(launch(scratch->stream, search_route, 0, (int)rdna_dtype_block_bytes(x->dtype),
                  (rdna_tensor_count(x) - 1) / SORT_THREADS + 1, &a));
  return rdna__dense_out(scratch, &found, out);
}

rdna_status rdna_op_search_sorted(rdna_stream *stream, const rdna_tensor *sorted, const rdna_tensor *x, bool right,
                                  const rdna_tensor *out) {
  RDNA_TRY(check_search(stream, sorted, x, out));
  if (rdna_tensor_count(x) == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = "search_sorted"};
  return rdna__scratch_release(&scratch, search_dense(&scratch, sorted, x, right, out));
}

/* Twice the logarithm of n, and 8 more, as n numbers make n^2 / 2 pairs. */
static uint32_t permutation_bits(int64_t n) {
  uint32_t bits = 8;
  for (; n > 1; n = (n + 1) / 2) bits += 2;
  bits = (bits + 7) / 8 * 8;
  return bits < 64 ? bits : 64;
}

rdna_status rdna_op_random_permutation(rdna_stream *stream, uint64_t seed, uint64_t offset, const rdna_tensor *out) {
  static const char *const name = "random_permutation";
  RDNA_TRY(check_values(name, stream, "out", out));
  if (out->dtype != RDNA_I32) RDNA_TRY(rdna__check_dtype(name, "out", out, RDNA_I64));
  RDNA_TRY(rdna__check_rank(name, "out", out, 1));
  RDNA_TRY(rdna__check_contiguous(name, "out", out));
  int64_t n = out->shape[0];
  RDNA_TRY(check_row_length(name, n));
  if (n == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  rdna__sort_rows sort = {.indices = out->data,
                          .rows = 1,
                          .n = n,
                          .kept = (uint32_t)n,
                          .value_bytes = 8,
                          .bits = permutation_bits(n),
                          .narrow = out->dtype == RDNA_I32,
                          .order = {.ones = ~UINT64_C(0)}};
  void *keys;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)n * sizeof(uint64_t), &keys));
  sort.x = keys;
  rdna_tensor keys_tensor = rdna_tensor_contiguous(keys, RDNA_I64, 1, &n);
  rdna_status status = rdna_op_random_integers(stream, seed, offset, INT64_MIN, INT64_MAX, &keys_tensor);
  if (status == RDNA_OK) status = rdna__sort_rows_queue(&scratch, &sort);
  return rdna__scratch_release(&scratch, status);
}
