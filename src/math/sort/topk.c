/* The first values of each row: by sorting short rows, by selection in long ones. */
#include "math/common/plan/route.h"
#include "math/common/plan/rows_along.h"
#include "math/sort/select_kernels.h"
#include "math/sort/sort_kernels.h"
#include "math/sort/sort_plan.h"
#include "rdna/op/sort.h"

enum { ENOUGH_GROUPS = 2048, MOST_GROUPS = 1 << 16 }; /* groups take turns */

/* What is asked of rows of n values: those from |first| on in the order, |k| of them. */
typedef struct request {
  const char *name;
  const rdna_tensor *x, *values, *indices;
  int dim;
  int64_t rows, n, first, k;
  struct sort_order order;
} request;

static rdna_status check_output(const request *r, const char *argument, const rdna_tensor *out, rdna_dtype dtype) {
  RDNA_TRY(rdna__check_tensor(r->name, argument, out));
  RDNA_TRY(rdna__check_dtype(r->name, argument, out, dtype));
  RDNA_TRY(rdna__check_rank(r->name, argument, out, r->x->rank));
  for (int d = 0; d < r->x->rank; d++) {
    if (d != r->dim) RDNA_TRY(rdna__check_size(r->name, argument, out, d, r->x->shape[d], "as that of x"));
  }
  RDNA_TRY(rdna__check_distinct(r->name, out));
  return rdna__check_apart(r->name, argument, out, "x", r->x);
}

static rdna_status check(rdna_stream *stream, request *r) {
  RDNA_TRY(rdna__check_stream(r->name, stream));
  RDNA_TRY(rdna__check_unquantized(r->name, "x", r->x));
  RDNA_TRY(rdna__check_dim(r->name, "x", r->x, &r->dim));
  if (!r->values && !r->indices) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: values and indices are NULL; pass a tensor for one of them", r->name);
  }
  if (r->values) RDNA_TRY(check_output(r, "values", r->values, r->x->dtype));
  if (r->indices) RDNA_TRY(check_output(r, "indices", r->indices, RDNA_I64));
  const rdna_tensor *out = r->values ? r->values : r->indices;
  if (r->values && r->indices) {
    RDNA_TRY(rdna__check_apart(r->name, "values", r->values, "indices", r->indices));
    RDNA_TRY(rdna__check_same_shape(r->name, "indices", r->indices, "values", r->values));
  }
  r->n = r->x->rank > 0 ? r->x->shape[r->dim] : 1;
  r->k = out->rank > 0 ? out->shape[r->dim] : 1;
  if (r->k > r->n) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %lld values are asked for and x has %lld along dimension %d", r->name,
                      (long long)r->k, (long long)r->n, r->dim);
  }
  if (r->n > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: rows have %lld values; at most %d are offered", r->name, (long long)r->n,
                      INT32_MAX);
  }
  r->rows = r->n > 0 ? rdna_tensor_count(r->x) / r->n : 0;
  return RDNA_OK;
}

static bool are_short(const rdna__route *route, const void *of) { return ((const request *)of)->n <= SORT_TILE; }
static bool are_few(const rdna__route *route, const void *of) { return ((const request *)of)->k <= SORT_TILE; }

enum { SORT, SELECT, SORT_AND_CUT };
static const rdna__route routes[] = {
    [SORT] = {.name = "sort", .when = "rows that a group sorts at once, by the table of sort", .applies = are_short},
    [SELECT] = {.name = "select",
                .kernels = {"select_begin_{bits}", "select_{bits}"},
                .when = "few of longer rows: those are found digit by digit, then sorted",
                .applies = are_few},
    [SORT_AND_CUT] = {.name = "sort and cut", .when = "many of long rows: all are sorted"},
};
RDNA_ROUTES(rdna__topk_routes, "topk, kth_value", routes)

/* Leaves (rows, k) values and places in |values| and |places|, in any order. */
static rdna_status select_rows(rdna__scratch *scratch, const request *r, const void *x, bool only_kth, void *values,
                               uint32_t *places, uint32_t *out_place_bits) {
  size_t bytes = rdna_dtype_block_bytes(r->x->dtype);
  struct select_args a = {.x = x,
                          .values = values,
                          .places = places,
                          .rows = r->rows,
                          .n = (uint32_t)r->n,
                          .k = (uint32_t)(r->first + r->k),
                          .room = (uint32_t)(r->n / 8 > 4096 ? r->n / 8 : 4096),
                          .key_digits = (uint32_t)bytes,
                          .digits = (uint32_t)bytes,
                          .only_kth = only_kth,
                          .order = r->order};
  for (uint32_t most = a.n - 1; most > 0; most >>= 8) a.digits++;
  *out_place_bits = 8 * (a.digits - a.key_digits);
  int64_t parts = (a.n - 1) / SELECT_TILE + 1, enough = ENOUGH_GROUPS / a.rows + 1;
  a.parts = (uint32_t)(parts < enough ? parts : enough);
  void *counts, *states, *taken, *left_values, *left_places;
  size_t count_bytes = (size_t)(a.digits * a.rows) * SELECT_DIGITS * sizeof(uint32_t);
  size_t taken_bytes = (size_t)a.rows * 2 * sizeof(uint32_t), room = (size_t)(a.rows * a.room);
  RDNA_TRY(rdna__scratch_take(scratch, count_bytes, &counts));
  RDNA_TRY(rdna__scratch_take(scratch, taken_bytes, &taken));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)(a.digits * a.rows) * sizeof(struct select_state), &states));
  RDNA_TRY(rdna__scratch_take(scratch, room * bytes, &left_values));
  RDNA_TRY(rdna__scratch_take(scratch, room * sizeof(uint32_t), &left_places));
  a.counts = counts, a.taken = taken, a.states = states, a.left_values = left_values, a.left_places = left_places;
  RDNA_TRY(rdna_fill_bytes(scratch->stream, counts, 0, count_bytes));
  RDNA_TRY(rdna_fill_bytes(scratch->stream, taken, 0, taken_bytes));
  int64_t groups = a.rows * a.parts;
  rdna_grid grid = {(uint32_t)(groups < MOST_GROUPS ? groups : MOST_GROUPS), 1, 1};
  for (a.digit = 0; a.digit <= a.digits; a.digit++) {
    RDNA_TRY(RDNA__ROUTE_LAUNCH(scratch->stream, &routes[SELECT], a.digit > 0, grid, &a, rdna__route_bits(bytes)));
  }
  return RDNA_OK;
}

/* Selects k of each row, and sorts those. */
static rdna_status select_and_sort(rdna__scratch *scratch, const request *r, const void *x, rdna__sort_rows sort) {
  void *values, *places;
  size_t count = (size_t)(r->rows * r->k);
  RDNA_TRY(rdna__scratch_take(scratch, count * (size_t)sort.value_bytes, &values));
  RDNA_TRY(rdna__scratch_take(scratch, count * sizeof(uint32_t), &places));
  RDNA_TRY(select_rows(scratch, r, x, r->first > 0 || r->k == 1, values, places, &sort.place_bits));
  sort.x = values, sort.places = places;
  sort.n = r->k, sort.first = 0, sort.kept = (uint32_t)r->k;
  return rdna__sort_rows_queue(scratch, &sort);
}

/* Sorts all of each row, and copies k of it. */
static rdna_status sort_and_cut(rdna__scratch *scratch, const request *r, const void *x, rdna__sort_rows sort,
                                const rdna_tensor *values, const rdna_tensor *indices) {
  const rdna_tensor *out[2] = {values, indices};
  void *whole[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    if (out[i]->data) RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(out[i]->dtype, r->rows * r->n), &whole[i]));
  }
  sort.x = x, sort.values = whole[0], sort.indices = whole[1];
  RDNA_TRY(rdna__sort_rows_queue(scratch, &sort));
  for (int i = 0; i < 2; i++) {
    if (!out[i]->data) continue;
    int64_t shape[2] = {r->rows, r->k};
    rdna_tensor to = rdna_tensor_contiguous(out[i]->data, out[i]->dtype, 2, shape), from = to;
    from.data = (char *)whole[i] + (size_t)r->first * rdna_dtype_block_bytes(from.dtype);
    from.stride[0] = r->n;
    RDNA_TRY(rdna_op_copy(scratch->stream, &from, &to));
  }
  return RDNA_OK;
}

static rdna_status run(rdna__scratch *scratch, const request *r) {
  rdna_tensor in, values = {0}, indices = {0}, values_view = {0}, indices_view = {0};
  rdna_tensor view = rdna__dim_last(r->x, r->dim);
  RDNA_TRY(rdna__dense_in(scratch, &view, &in));
  if (r->values) {
    values_view = rdna__dim_last(r->values, r->dim);
    RDNA_TRY(rdna__dense_place(scratch, &values_view, &values));
  }
  if (r->indices) {
    indices_view = rdna__dim_last(r->indices, r->dim);
    RDNA_TRY(rdna__dense_place(scratch, &indices_view, &indices));
  }
  rdna__sort_rows sort = {.x = in.data,
                          .values = values.data,
                          .indices = indices.data,
                          .rows = r->rows,
                          .n = r->n,
                          .first = (uint32_t)r->first,
                          .kept = (uint32_t)r->k,
                          .value_bytes = (int)rdna_dtype_block_bytes(r->x->dtype),
                          .bits = 8 * (uint32_t)rdna_dtype_block_bytes(r->x->dtype),
                          .order = r->order};
  const rdna__route *route = rdna__route_choose(&rdna__topk_routes, r);
  if (route == &routes[SORT]) {
    RDNA_TRY(rdna__sort_rows_queue(scratch, &sort));
  } else if (route == &routes[SELECT]) {
    RDNA_TRY(select_and_sort(scratch, r, in.data, sort));
  } else {
    RDNA_TRY(sort_and_cut(scratch, r, in.data, sort, &values, &indices));
  }
  if (r->values) RDNA_TRY(rdna__dense_out(scratch, &values, &values_view));
  return r->indices ? rdna__dense_out(scratch, &indices, &indices_view) : RDNA_OK;
}

static rdna_status queue(rdna_stream *stream, const request *r) {
  if (r->rows == 0 || r->k == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = r->name};
  return rdna__scratch_release(&scratch, run(&scratch, r));
}

rdna_status rdna_op_topk(rdna_stream *stream, const rdna_tensor *x, int dim, bool largest, const rdna_tensor *values,
                         const rdna_tensor *indices) {
  request r = {.name = "topk", .x = x, .values = values, .indices = indices, .dim = dim};
  RDNA_TRY(check(stream, &r));
  r.order = rdna__sort_order(x->dtype, largest);
  return queue(stream, &r);
}

rdna_status rdna_op_kth_value(rdna_stream *stream, const rdna_tensor *x, int64_t k, int dim, const rdna_tensor *values,
                              const rdna_tensor *indices) {
  request r = {.name = "kth_value", .x = x, .values = values, .indices = indices, .dim = dim};
  RDNA_TRY(check(stream, &r));
  if (r.k != 1) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "kth_value: values and indices have size %lld along dimension %d; it must be 1", (long long)r.k,
                      dim);
  }
  if (k < 1 || k > r.n) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "kth_value: k is %lld and x has %lld values along dimension %d; k must be "
                      "from 1 to that",
                      (long long)k, (long long)r.n, dim);
  }
  r.first = k - 1;
  r.order = rdna__sort_order(x->dtype, false);
  return queue(stream, &r);
}
