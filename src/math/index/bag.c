/* Sums, means and largest values of bags of rows. */
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/index/bag_kernels.h"
#include "rdna/op/index.h"

static const char *const NAME = "embedding_bag";

static const rdna__route routes[] = {
    {.name = "bags", .kernels = {"bag_{real}"}, .when = "a bag is some lanes' of a group"}};
RDNA_FIXED_ROUTES(rdna__bag_routes, "embedding_bag", routes)

static rdna_status check_line(const char *argument, const rdna_tensor *t, rdna_dtype dtype, int64_t count,
                              const char *meaning) {
  RDNA_TRY(rdna__check_tensor(NAME, argument, t));
  RDNA_TRY(rdna__check_dtype(NAME, argument, t, dtype));
  RDNA_TRY(rdna__check_rank(NAME, argument, t, 1));
  if (count >= 0) RDNA_TRY(rdna__check_size(NAME, argument, t, 0, count, meaning));
  return rdna__check_contiguous(NAME, argument, t);
}

static rdna_status check_bag(rdna_bag mode, const rdna_tensor *table, const rdna_tensor *indices,
                             const rdna_tensor *begins, bool has_end, const rdna_tensor *weights, int64_t padding,
                             const rdna_tensor *out, struct bag_args *a) {
  if ((unsigned)mode >= RDNA_BAG_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: mode is %d; modes are 0 to %d", NAME, (int)mode, RDNA_BAG_COUNT - 1);
  }
  int64_t rows;
  RDNA_TRY(rdna__check_real(NAME, "table", table));
  RDNA_TRY(rdna__check_rank(NAME, "table", table, 2));
  RDNA_TRY(rdna__check_rows(NAME, "table", table, &rows, &a->cols, &a->table_stride));
  RDNA_TRY(rdna__check_tensor(NAME, "indices", indices));
  if (indices->dtype != RDNA_I64) RDNA_TRY(rdna__check_dtype(NAME, "indices", indices, RDNA_I32));
  RDNA_TRY(check_line("indices", indices, indices->dtype, -1, ""));
  RDNA_TRY(check_line("begins", begins, indices->dtype, -1, ""));
  RDNA_TRY(rdna__check_tensor(NAME, "out", out));
  RDNA_TRY(rdna__check_same_dtype(NAME, "out", out, "table", table));
  RDNA_TRY(rdna__check_rank(NAME, "out", out, 2));
  RDNA_TRY(rdna__check_size(NAME, "out", out, 1, a->cols, "the columns of table"));
  RDNA_TRY(rdna__check_contiguous(NAME, "out", out));
  a->rows = table->shape[0], a->count = indices->shape[0], a->bags = begins->shape[0] - has_end;
  if (a->bags < 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: begins is empty; with has_end it must have the end of the last bag",
                      NAME);
  }
  RDNA_TRY(rdna__check_size(NAME, "out", out, 0, a->bags, "the bags of begins"));
  if (weights && mode != RDNA_BAG_SUM) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: weights are given and mode is %d; only sums have weights", NAME,
                      (int)mode);
  }
  if (weights) RDNA_TRY(check_line("weights", weights, table->dtype, a->count, "the indices"));
  if (padding < -1 || padding >= a->rows) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: padding is %lld and table has %lld rows; it must be one of them or -1", NAME,
                      (long long)padding, (long long)a->rows);
  }
  return RDNA_OK;
}

rdna_status rdna_op_embedding_bag(rdna_stream *stream, rdna_bag mode, const rdna_tensor *table,
                                  const rdna_tensor *indices, const rdna_tensor *begins, bool has_end,
                                  const rdna_tensor *weights, int64_t padding, const rdna_tensor *out,
                                  const rdna_tensor *largest, const rdna_tensor *bag_of, const rdna_tensor *sizes,
                                  uint32_t *outside) {
  struct bag_args a = {.padding = padding, .outside = outside, .mode = (uint32_t)mode, .has_end = has_end};
  RDNA_TRY(rdna__check_stream(NAME, stream));
  RDNA_TRY(check_bag(mode, table, indices, begins, has_end, weights, padding, out, &a));
  if (largest) {
    RDNA_TRY(rdna__check_tensor(NAME, "largest", largest));
    RDNA_TRY(rdna__check_dtype(NAME, "largest", largest, RDNA_I64));
    RDNA_TRY(rdna__check_same_shape(NAME, "largest", largest, "out", out));
    RDNA_TRY(rdna__check_contiguous(NAME, "largest", largest));
  }
  if (bag_of) RDNA_TRY(check_line("bag_of", bag_of, RDNA_I64, a.count, "the indices"));
  if (sizes) RDNA_TRY(check_line("sizes", sizes, RDNA_I64, a.bags, "the bags of begins"));
  const rdna_tensor *written[] = {out, largest, bag_of, sizes}, *read[] = {table, indices, begins, weights};
  static const char *const names[] = {"out", "largest", "bag_of", "sizes"};
  static const char *const read_names[] = {"table", "indices", "begins", "weights"};
  for (int i = 0; i < 4; i++) {
    for (int j = 0; written[i] && j < 4; j++) {
      if (read[j]) RDNA_TRY(rdna__check_apart(NAME, names[i], written[i], read_names[j], read[j]));
      if (j < i && written[j]) RDNA_TRY(rdna__check_apart(NAME, names[i], written[i], names[j], written[j]));
    }
  }
  if (a.bags == 0) return RDNA_OK;
  a.table = table->data, a.indices = indices->data, a.begins = begins->data, a.out = out->data;
  a.weights = weights ? weights->data : NULL;
  a.largest = largest ? largest->data : NULL;
  a.bag_of = bag_of ? bag_of->data : NULL;
  a.sizes = sizes ? sizes->data : NULL;
  a.indices_i64 = indices->dtype == RDNA_I64;
  for (a.lanes = 1; a.lanes < a.cols && a.lanes < BAG_THREADS;) a.lanes *= 2;
  rdna_grid grid = {rdna__groups_in_turn(rdna__divide_up(a.bags, BAG_THREADS / a.lanes)), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, routes, 0, grid, &a, rdna_dtype_name(table->dtype));
}
