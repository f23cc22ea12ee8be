/* Running extremes and their places against a loop. */
#include "math/common/test/strided.h"
#include "rdna/op/scan.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64, RDNA_I8,  RDNA_U8, RDNA_I16,
                                   RDNA_I32, RDNA_I64, RDNA_BOOL, RDNA_U16, RDNA_U32, RDNA_U64};
enum { TYPES = sizeof types / sizeof *types };

static void fill(operand *x, int nans) {
  static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, 127, -128};
  for (int64_t i = 0; i < operand_span(x); i++) {
    uint64_t pick = rdna__random_below(&random_state, 40);
    double v = pick == 0 && x->tensor.dtype < RDNA_I8 ? special[rdna__random_below(&random_state, 6)]
               : pick < 20                            ? (double)rdna__random_range(&random_state, -9, 9)
                                                      : 30 * rdna__random_normal(&random_state);
    if (nans && x->tensor.dtype < RDNA_I8 && rdna__random_below(&random_state, 500) == 0) v = NAN;
    if (x->tensor.dtype > RDNA_F64) v = fmax(-128, fmin(v, 127));
    if (x->tensor.dtype == RDNA_I64 && pick == 0) v = pick % 2 ? -0x1p63 : 0x1p62;
    any_set(x, i, v);
  }
  operand_upload(x);
}

static void check(rdna_dtype dtype, int64_t outer, int64_t n, int64_t inner, bool smallest, bool in_place, int nans) {
  int64_t shape[] = {outer, n, inner};
  operand x = operand_make(dtype, 3, shape, NULL, 0), values = operand_make(dtype, 3, shape, NULL, 0);
  operand indices = operand_make(RDNA_I64, 3, shape, NULL, 0);
  fill(&x, nans);
  operand_upload(&values), operand_upload(&indices);
  const rdna_tensor *out = in_place ? &x.tensor : &values.tensor;
  uint8_t *before = malloc(x.bytes + 1);
  memcpy(before, x.host, x.bytes);
  if (smallest) assert_ok(rdna_op_cummin_indices(stream, &x.tensor, in_place ? 1 : -2, out, &indices.tensor));
  if (!smallest) assert_ok(rdna_op_cummax_indices(stream, &x.tensor, in_place ? 1 : -2, out, &indices.tensor));
  operand *result = in_place ? &x : &values;
  operand_download(result), operand_download(&indices);
  size_t bytes = rdna_dtype_block_bytes(dtype);
  uint8_t *got = malloc(x.bytes + 1);
  memcpy(got, result->host, x.bytes);
  memcpy(x.host, before, x.bytes);
  for (int64_t column = 0; column < outer * inner; column++) {
    double kept = 0;
    int64_t where = -1, kept_whole = 0;
    for (int64_t i = 0; i < n; i++) {
      int64_t at = (column / inner * n + i) * inner + column % inner;
      double v = real_get(&x, at);
      int64_t whole = dtype > RDNA_F64 ? integer_get(&x, at) : 0;
      if (dtype == RDNA_U64) whole ^= INT64_MIN; /* in the order of i64 */
      bool takes = where < 0 || isnan(v) ||
                   (!isnan(kept) && (dtype > RDNA_F64 ? (smallest ? whole <= kept_whole : whole >= kept_whole)
                                                      : (smallest ? v <= kept : v >= kept)));
      if (takes) kept = v, where = i, kept_whole = whole;
      if (integer_get(&indices, at) != where) {
        fail_msg("%s (%lld, %lld, %lld) %d, column %lld, %lld: index %lld, want %lld", rdna_dtype_name(dtype),
                 (long long)outer, (long long)n, (long long)inner, smallest, (long long)column, (long long)i,
                 (long long)integer_get(&indices, at), (long long)where);
      }
      int64_t from = (column / inner * n + where) * inner + column % inner;
      assert_memory_equal(got + (size_t)at * bytes, before + (size_t)from * bytes, bytes);
    }
  }
  free(before), free(got);
  operand_free(&x), operand_free(&values), operand_free(&indices);
}

static void shapes(void **state) {
  static const int64_t sizes[][3] = {{1, 1, 1},     {3, 7, 1},  {2, 1024, 1}, {5, 1025, 1}, {2, 9000, 1},
                                     {2, 40000, 1}, {3, 9, 40}, {2, 300, 65}, {700, 3, 1},  {0, 5, 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int t = 0; t < TYPES; t++) {
      for (int smallest = 0; smallest < 2; smallest++)
        check(types[t], sizes[i][0], sizes[i][1], sizes[i][2], smallest, (i + (size_t)t) % 2,
              (int)(i + (size_t)t) % 3 == 0);
    }
  }
}

static void refusals(void **state) {
  int64_t shape[2] = {3, 4}, gaps[2] = {5, 1};
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand indices = operand_make(RDNA_I64, 2, shape, NULL, 0), spaced = operand_make(RDNA_F32, 2, shape, gaps, 0);
  operand_upload(&out);
  assert_refused(rdna_op_cummax_indices(stream, &x.tensor, 2, &out.tensor, &indices.tensor), RDNA_INVALID_ARGUMENT,
                 "dim is 2", "f32 (3, 4)");
  assert_refused(rdna_op_cummax_indices(stream, &x.tensor, 0, &out.tensor, &out.tensor), RDNA_INVALID_ARGUMENT,
                 "indices is f32", "i64");
  assert_refused(rdna_op_cummin_indices(stream, &spaced.tensor, 0, &out.tensor, &indices.tensor), RDNA_UNSUPPORTED,
                 "cummin_indices: x", "contiguous");
  assert_refused(rdna_op_cummin_indices(NULL, &x.tensor, 0, &out.tensor, &indices.tensor), RDNA_INVALID_ARGUMENT,
                 "stream", "NULL");
  operand_download(&out);
  for (size_t i = 0; i < out.bytes; i++) assert_int_equal(out.host[i], OPERAND_POISON);
  operand_free(&x), operand_free(&out), operand_free(&indices), operand_free(&spaced);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
