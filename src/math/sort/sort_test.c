/* Sorting against a stable insertion sort of doubles and integers with NaN last, whatever the layout. */
#include "rdna/op/sort.h"

#include "math/common/test/strided.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64, RDNA_I8,  RDNA_U8, RDNA_I16,
                                   RDNA_I32, RDNA_I64, RDNA_BOOL, RDNA_U16, RDNA_U32, RDNA_U64};
enum { TYPES = sizeof types / sizeof *types };

typedef struct entry {
  double real;
  int64_t whole, index;
  bool nan;
} entry;

static entry entry_get(const operand *o, int64_t at, int64_t index) {
  entry e = {.index = index};
  if (o->tensor.dtype <= RDNA_F64) {
    e.real = real_get(o, at);
    e.nan = isnan(e.real);
  } else {
    e.whole = integer_get(o, at);
    if (o->tensor.dtype == RDNA_U64) e.whole ^= INT64_MIN; /* in the order of i64 */
  }
  return e;
}

/* By the definition: NaN above all and equal to each other. */
static int entry_compare(const entry *a, const entry *b) {
  if (a->nan || b->nan) return a->nan - b->nan;
  if (a->real != b->real) return a->real < b->real ? -1 : 1;
  return a->whole < b->whole ? -1 : a->whole > b->whole;
}

static bool descending_now;
static int entry_order(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int c = entry_compare(x, y);
  if (c != 0) return descending_now ? -c : c;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* Values with ties, both zeros, infinities and NaN; gaps are poison. */
static void fill(operand *o, int kind) {
  static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -7, 120};
  int64_t count = rdna_tensor_count(&o->tensor);
  for (int64_t i = 0; i < count; i++) {
    uint64_t pick = rdna__random_below(&random_state, 8);
    double v = pick == 0 && kind != 1  ? special[rdna__random_below(&random_state, 7)]
               : pick < 3 || kind == 1 ? (double)rdna__random_range(&random_state, -5, 5)
                                       : 40 * rdna__random_normal(&random_state);
    int64_t at = place_of(&o->tensor, &o->tensor, i);
    if (o->tensor.dtype > RDNA_F64 && !(v > -120 && v < 120)) v = 0;
    any_set(o, at, v);
    if (kind == 2 && o->tensor.dtype > RDNA_F64 && o->tensor.dtype != RDNA_BOOL) {
      int64_t bits = (int64_t)rdna__random_bits(&random_state);
      size_t bytes = rdna_dtype_block_bytes(o->tensor.dtype);
      memcpy(o->host + (size_t)at * bytes, &bits, bytes);
    }
  }
  operand_upload(o);
}

/* Where value |i| along |dim| of line |line| is, as a count in order. */
static int64_t line_at(const rdna_tensor *t, int dim, int64_t line, int64_t i) {
  int64_t inner = 1;
  for (int d = dim + 1; d < t->rank; d++) inner *= t->shape[d];
  return t->rank == 0 ? 0 : (line / inner * t->shape[dim] + i) * inner + line % inner;
}

static void assert_same_bits(const operand *x, int64_t x_at, const operand *out, int64_t out_at) {
  size_t bytes = rdna_dtype_block_bytes(x->tensor.dtype);
  assert_memory_equal(x->host + (size_t)x_at * bytes, out->host + (size_t)out_at * bytes, bytes);
}

static void check_sort(rdna_dtype dtype, int rank, const int64_t *shape, int dim, bool descending, bool strided,
                       int kind, int wanted) {
  operand x = strided ? strided_make(dtype, rank, shape, false) : operand_make(dtype, rank, shape, NULL, 0);
  operand values = strided ? strided_make(dtype, rank, shape, false) : operand_make(dtype, rank, shape, NULL, 0);
  operand indices = strided ? strided_make(RDNA_I64, rank, shape, false) : operand_make(RDNA_I64, rank, shape, NULL, 0);
  fill(&x, kind);
  operand_upload(&values), operand_upload(&indices);
  assert_ok(rdna_op_sort(stream, &x.tensor, either_way(dim, rank), descending, wanted & 1 ? &values.tensor : NULL,
                         wanted & 2 ? &indices.tensor : NULL));
  operand_download(&x), operand_download(&values), operand_download(&indices);
  assert_gaps_whole(&values), assert_gaps_whole(&indices);
  int64_t count = rdna_tensor_count(&x.tensor), n = rank > 0 ? shape[dim] : 1;
  entry *entries = calloc((size_t)n + 1, sizeof *entries);
  for (int64_t line = 0; n > 0 && line < count / n; line++) {
    for (int64_t i = 0; i < n; i++) {
      entries[i] = entry_get(&x, place_of(&x.tensor, &x.tensor, line_at(&x.tensor, dim, line, i)), i);
    }
    descending_now = descending;
    qsort(entries, (size_t)n, sizeof *entries, entry_order);
    for (int64_t i = 0; i < n; i++) {
      int64_t from = place_of(&x.tensor, &x.tensor, line_at(&x.tensor, dim, line, entries[i].index));
      int64_t to = line_at(&x.tensor, dim, line, i);
      if (wanted & 1) assert_same_bits(&x, from, &values, place_of(&values.tensor, &values.tensor, to));
      if (wanted & 2) {
        int64_t got = integer_get(&indices, place_of(&indices.tensor, &indices.tensor, to));
        if (got != entries[i].index) {
          fail_msg("%s, n %lld, line %lld, %lld: index %lld, want %lld", rdna_dtype_name(dtype), (long long)n,
                   (long long)line, (long long)i, (long long)got, (long long)entries[i].index);
        }
      }
    }
  }
  free(entries);
  operand_free(&x), operand_free(&values), operand_free(&indices);
}

/* Each kernel and its edges. */
static void rows(void **state) {
  static const int64_t sizes[][2] = {{1, 1},    {300, 1},  {5, 2},    {70, 7},   {9, 32},   {9, 33},
                                     {5, 64},   {3, 65},   {70, 127}, {2, 128},  {9, 129},  {30, 200},
                                     {3, 512},  {3, 513},  {2, 1000}, {2, 1024}, {2, 1025}, {1, 4095},
                                     {2, 4096}, {2, 4097}, {1, 8192}, {3, 9001}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int t = 0; t < TYPES; t++) {
      check_sort(types[t], 2, sizes[i], 1, (i + (size_t)t) % 2, false, (int)(i + (size_t)t) % 3, 3);
    }
  }
}

static void long_rows(void **state) {
  int64_t n = 200003;
  check_sort(RDNA_F32, 1, &n, 0, false, false, 0, 3);
  check_sort(RDNA_F32, 1, &n, 0, true, false, 1, 3);
  check_sort(RDNA_I64, 1, &n, 0, true, false, 2, 3);
  check_sort(RDNA_BF16, 1, &n, 0, false, false, 0, 3);
  check_sort(RDNA_I8, 1, &n, 0, true, false, 0, 2);
  check_sort(RDNA_F64, 1, &n, 0, false, false, 0, 1);
  check_sort(RDNA_I32, 1, &n, 0, false, false, 0, 2);
}

static void dimensions_and_strides(void **state) {
  for (int round = 0; round < 60; round++) {
    int64_t shape[RDNA_MAX_RANK];
    int rank = random_shape(shape), dim = (int)rdna__random_below(&random_state, (uint64_t)rank);
    check_sort(types[round % TYPES], rank, shape, dim, round % 3 == 0, true, round % 3, 1 + round % 3);
  }
  int64_t tall[] = {5000, 3};
  check_sort(RDNA_F16, 2, tall, 0, false, true, 0, 3);
  check_sort(RDNA_F32, 0, NULL, 0, false, false, 0, 3);
}

/* The first |k| of a sorted row, or the one at |kth| alone. */
static void check_first(rdna_dtype dtype, int rank, const int64_t *shape, int dim, int64_t k, int64_t kth, bool largest,
                        bool strided, int kind) {
  int64_t out_shape[RDNA_MAX_RANK], n = shape[dim];
  for (int d = 0; d < rank; d++) out_shape[d] = d == dim ? k : shape[d];
  operand x = strided ? strided_make(dtype, rank, shape, false) : operand_make(dtype, rank, shape, NULL, 0);
  operand values =
      strided ? strided_make(dtype, rank, out_shape, false) : operand_make(dtype, rank, out_shape, NULL, 0);
  operand indices = strided_make(RDNA_I64, rank, out_shape, false);
  fill(&x, kind);
  operand_upload(&values), operand_upload(&indices);
  if (kth < 0)
    assert_ok(rdna_op_topk(stream, &x.tensor, either_way(dim, rank), largest, &values.tensor, &indices.tensor));
  if (kth >= 0)
    assert_ok(rdna_op_kth_value(stream, &x.tensor, kth + 1, either_way(dim, rank), &values.tensor, &indices.tensor));
  operand_download(&x), operand_download(&values), operand_download(&indices);
  assert_gaps_whole(&values), assert_gaps_whole(&indices);
  entry *entries = calloc((size_t)n + 1, sizeof *entries);
  for (int64_t line = 0; n > 0 && line < rdna_tensor_count(&x.tensor) / n; line++) {
    for (int64_t i = 0; i < n; i++)
      entries[i] = entry_get(&x, place_of(&x.tensor, &x.tensor, line_at(&x.tensor, dim, line, i)), i);
    descending_now = largest;
    qsort(entries, (size_t)n, sizeof *entries, entry_order);
    for (int64_t i = 0; i < k; i++) {
      int64_t index = entries[kth < 0 ? i : kth].index, to = line_at(&values.tensor, dim, line, i);
      int64_t from = place_of(&x.tensor, &x.tensor, line_at(&x.tensor, dim, line, index));
      assert_same_bits(&x, from, &values, place_of(&values.tensor, &values.tensor, to));
      int64_t got = integer_get(&indices, place_of(&indices.tensor, &indices.tensor, to));
      if (got != index) {
        fail_msg("%s, %lld of %lld, line %lld, %lld: index %lld, want %lld", rdna_dtype_name(dtype), (long long)k,
                 (long long)n, (long long)line, (long long)i, (long long)got, (long long)index);
      }
    }
  }
  free(entries);
  operand_free(&x), operand_free(&values), operand_free(&indices);
}

static void first_values(void **state) {
  static const int64_t sizes[][3] = {{3, 1, 1},     {20, 60, 5},    {4, 200, 200},   {2, 4096, 17},   {2, 4097, 1},
                                     {3, 5000, 64}, {1, 70000, 50}, {2, 9000, 2000}, {1, 9000, 4097}, {1, 66000, 4096}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (int t = 0; t < TYPES; t++) {
      bool largest = (s + (size_t)t) % 2;
      int kind = (int)(s + (size_t)t) % 3;
      check_first(types[t], 2, sizes[s], 1, sizes[s][2], -1, largest, false, kind);
      check_first(types[t], 2, sizes[s], 1, 1, rdna__random_range(&random_state, 0, sizes[s][1] - 1), false, false,
                  kind);
    }
  }
  for (int round = 0; round < 40; round++) {
    int64_t shape[RDNA_MAX_RANK];
    int rank = random_shape(shape), dim = (int)rdna__random_below(&random_state, (uint64_t)rank);
    int64_t k = rdna__random_range(&random_state, 0, shape[dim]);
    check_first(types[round % TYPES], rank, shape, dim, k, -1, round % 2, true, round % 3);
  }
  int64_t tall[] = {6000, 3};
  check_first(RDNA_F32, 2, tall, 0, 9, -1, true, true, 0);
  check_first(RDNA_BF16, 2, tall, 0, 1, 3000, false, true, 0);
}

/* All values are equal, so that the places alone decide, and nothing is copied for long. */
static void equal_values(void **state) {
  int64_t n = 300000, k = 3000;
  operand x = operand_make(RDNA_F32, 1, &n, NULL, 0), indices = operand_make(RDNA_I64, 1, &k, NULL, 0);
  for (int64_t i = 0; i < n; i++) any_set(&x, i, i % 2 ? 0.0 : -0.0);
  operand_upload(&x), operand_upload(&indices);
  assert_ok(rdna_op_topk(stream, &x.tensor, 0, true, NULL, &indices.tensor));
  operand_download(&indices);
  for (int64_t i = 0; i < k; i++) assert_int_equal(integer_get(&indices, i), i);
  operand_free(&x), operand_free(&indices);
}

static void search(void **state) {
  for (int round = 0; round < 60; round++) {
    rdna_dtype dtype = types[round % TYPES];
    bool shared = round % 3 == 0, right = round % 2;
    int64_t rows = rdna__random_range(&random_state, 1, 4),
            n = rdna__random_range(&random_state, round % 5 == 4 ? 0 : 1, 90);
    int64_t sorted_shape[2] = {rows, n}, shape[2] = {rows, rdna__random_range(&random_state, 1, 60)};
    operand x = operand_make(dtype, 2, sorted_shape, NULL, 0), values = strided_make(dtype, 2, shape, false);
    operand sorted = operand_make(dtype, 2, sorted_shape, NULL, 0);
    operand out = strided_make(round % 4 ? RDNA_I64 : RDNA_I32, 2, shape, false);
    fill(&x, 0), fill(&values, 0);
    operand_upload(&sorted), operand_upload(&out);
    if (n > 0) assert_ok(rdna_op_sort(stream, &x.tensor, 1, false, &sorted.tensor, NULL));
    rdna_tensor first_row = sorted.tensor;
    if (shared) first_row.rank = 1, first_row.shape[0] = n, first_row.stride[0] = 1;
    assert_ok(rdna_op_search_sorted(stream, shared ? &first_row : &sorted.tensor, &values.tensor, right, &out.tensor));
    operand_download(&sorted), operand_download(&values), operand_download(&out);
    assert_gaps_whole(&out);
    for (int64_t i = 0; i < shape[0] * shape[1]; i++) {
      entry wanted = entry_get(&values, place_of(&values.tensor, &values.tensor, i), 0);
      int64_t before = 0;
      for (int64_t j = 0; j < n; j++) {
        entry e = entry_get(&sorted, (shared ? 0 : i / shape[1] * n) + j, 0);
        int c = entry_compare(&e, &wanted);
        before += c < 0 || (right && c == 0);
      }
      assert_int_equal(integer_get(&out, place_of(&out.tensor, &out.tensor, i)), before);
    }
    operand_free(&x), operand_free(&values), operand_free(&sorted), operand_free(&out);
  }
}

/* Each number once, and of all orders of 4 numbers each about as often as the others. */
static void permutations(void **state) {
  static const int64_t sizes[] = {1, 2, 64, 65, 1000, 4096, 4097, 100000};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    operand out = operand_make(s % 2 ? RDNA_I32 : RDNA_I64, 1, &sizes[s], NULL, 0);
    operand_upload(&out);
    assert_ok(rdna_op_random_permutation(stream, 7, s, &out.tensor));
    operand_download(&out);
    uint8_t *seen = calloc((size_t)sizes[s], 1);
    int64_t fixed = 0;
    for (int64_t i = 0; i < sizes[s]; i++) {
      int64_t v = integer_get(&out, i);
      assert_in_range(v, 0, sizes[s] - 1);
      assert_false(seen[v]);
      seen[v] = 1;
      fixed += v == i;
    }
    if (sizes[s] > 60) assert_in_range(fixed, 0, 9); /* 1 is expected, and 10 once in a million */
    free(seen);
    operand_free(&out);
  }
  const int draws = rdna_device_get_info(device)->emulated ? 1200 : 4800; /* each is a launch */
  int times[256] = {0};
  int64_t four = 4;
  operand out = operand_make(RDNA_I32, 1, &four, NULL, 0);
  for (int draw = 0; draw < draws; draw++) {
    assert_ok(rdna_op_random_permutation(stream, 99, (uint64_t)(2 * draw), &out.tensor));
    assert_ok(rdna_copy_to_host(stream, out.host, out.tensor.data, 16));
    assert_ok(rdna_stream_synchronize(stream));
    int code = 0;
    for (int i = 0; i < 4; i++) code = 4 * code + (int)integer_get(&out, i);
    times[code]++;
  }
  int orders = 0;
  double chi = 0;
  for (int code = 0; code < 256; code++) {
    if (times[code] == 0) continue;
    orders++;
    chi += (times[code] - draws / 24.0) * (times[code] - draws / 24.0) / (draws / 24.0);
  }
  assert_int_equal(orders, 24);
  assert_true(chi < 60); /* 23 degrees of freedom: above once in 40,000 */
  operand_free(&out);
}

static void empty_and_refused(void **state) {
  int64_t shape[2] = {3, 4}, none[2] = {0, 4}, other[2] = {3, 5};
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand indices = operand_make(RDNA_I64, 2, shape, NULL, 0), wrong = operand_make(RDNA_I64, 2, other, NULL, 0);
  operand half = operand_make(RDNA_F16, 2, shape, NULL, 0), empty = operand_make(RDNA_F32, 2, none, NULL, 0);
  operand empty_indices = operand_make(RDNA_I64, 2, none, NULL, 0);
  operand_upload(&out), operand_upload(&indices);
  assert_ok(rdna_op_sort(stream, &empty.tensor, 0, false, &empty.tensor, &empty_indices.tensor));
  assert_refused(rdna_op_sort(stream, &x.tensor, 2, false, &out.tensor, NULL), RDNA_INVALID_ARGUMENT, "dim is 2",
                 "f32 (3, 4)");
  assert_refused(rdna_op_sort(stream, &x.tensor, 0, false, NULL, NULL), RDNA_INVALID_ARGUMENT, "values", "indices");
  assert_refused(rdna_op_sort(stream, &x.tensor, 0, false, &half.tensor, NULL), RDNA_INVALID_ARGUMENT, "f16", "f32");
  assert_refused(rdna_op_sort(stream, &x.tensor, 0, false, &x.tensor, NULL), RDNA_INVALID_ARGUMENT, "values", "apart");
  assert_refused(rdna_op_sort(stream, &x.tensor, 0, false, &out.tensor, &wrong.tensor), RDNA_INVALID_ARGUMENT, "(3, 5)",
                 "(3, 4)");
  assert_refused(rdna_op_sort(stream, &x.tensor, 0, false, &out.tensor, &out.tensor), RDNA_INVALID_ARGUMENT, "f32",
                 "i64");
  assert_refused(rdna_op_sort(NULL, &x.tensor, 0, false, &out.tensor, NULL), RDNA_INVALID_ARGUMENT, "stream", "NULL");
  rdna_tensor quantized = x.tensor;
  quantized.dtype = RDNA_Q8_0;
  assert_refused(rdna_op_sort(stream, &quantized, 0, false, &out.tensor, NULL), RDNA_UNSUPPORTED, "q8_0", "quantized");
  rdna_tensor huge = rdna_tensor_contiguous(x.tensor.data, RDNA_U8, 1, (int64_t[]){INT64_C(1) << 31});
  rdna_tensor far = huge;
  far.data = (void *)((uintptr_t)x.tensor.data + (UINT64_C(1) << 40));
  assert_refused(rdna_op_sort(stream, &huge, 0, false, &far, NULL), RDNA_UNSUPPORTED, "2147483648", "2147483647");
  assert_refused(rdna_op_topk(stream, &x.tensor, 0, true, NULL, &wrong.tensor), RDNA_INVALID_ARGUMENT,
                 "size 1 must be 4", "indices");
  assert_refused(rdna_op_topk(stream, &x.tensor, 1, true, NULL, &wrong.tensor), RDNA_INVALID_ARGUMENT, "5 values",
                 "has 4");
  assert_refused(rdna_op_kth_value(stream, &x.tensor, 2, 1, &out.tensor, NULL), RDNA_INVALID_ARGUMENT, "size 4",
                 "must be 1");
  assert_refused(rdna_op_search_sorted(stream, &x.tensor, &half.tensor, false, &indices.tensor), RDNA_INVALID_ARGUMENT,
                 "f16", "f32");
  assert_refused(rdna_op_search_sorted(stream, &x.tensor, &x.tensor, false, &out.tensor), RDNA_INVALID_ARGUMENT, "out",
                 "i64");
  assert_refused(rdna_op_random_permutation(stream, 1, 0, &out.tensor), RDNA_INVALID_ARGUMENT, "out", "i64");
  operand_download(&out), operand_download(&indices);
  for (size_t i = 0; i < out.bytes; i++) assert_int_equal(out.host[i], OPERAND_POISON);
  operand_free(&x), operand_free(&out), operand_free(&indices), operand_free(&wrong), operand_free(&half);
  operand_free(&empty), operand_free(&empty_indices);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows),         cmocka_unit_test(long_rows),        cmocka_unit_test(dimensions_and_strides),
      cmocka_unit_test(first_values), cmocka_unit_test(equal_values),     cmocka_unit_test(search),
      cmocka_unit_test(permutations), cmocka_unit_test(empty_and_refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
