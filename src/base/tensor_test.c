

#include "rdna/tensor.h"
#include "base/testing.h"

static void sizes_of_types(void **state) {
  assert_string_equal(rdna_dtype_name(RDNA_Q4_K), "q4_K");
  assert_string_equal(rdna_dtype_name(RDNA_DTYPE_COUNT), "?");
  for (int i = 0; i < RDNA_DTYPE_COUNT; i++) assert_true(rdna_dtype_block_bytes((rdna_dtype)i) > 0);
  assert_int_equal(rdna_dtype_bytes(RDNA_BF16, 7), 14);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q8_0, 64), 68);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q4_0, 32), 2 + 16);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q4_K, 512), 2 * (2 + 2 + 12 + 128));
  assert_int_equal(rdna_dtype_bytes(RDNA_Q6_K, 256), 128 + 64 + 16 + 2);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q4_1, 64), 2 * (2 + 2 + 16));
  assert_int_equal(rdna_dtype_bytes(RDNA_Q5_0, 32), 2 + 4 + 16);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q5_1, 32), 2 + 2 + 4 + 16);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q2_K, 256), 16 + 64 + 2 + 2);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q3_K, 256), 32 + 64 + 12 + 2);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q5_K, 256), 2 + 2 + 12 + 32 + 128);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ4_NL, 32), 2 + 16);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ4_XS, 256), 2 + 2 + 4 + 128);
  assert_int_equal(rdna_dtype_bytes(RDNA_MXFP4, 32), 1 + 16);
  assert_int_equal(rdna_dtype_bytes(RDNA_TQ2_0, 256), 64 + 2);
  assert_int_equal(rdna_dtype_bytes(RDNA_TQ1_0, 256), (240 + 4) / 5 + 4 + 2);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ2_XXS, 256), 2 + 32 + 32 * 7 / 8 + 8 / 2);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ2_XS, 256), 2 + 32 * 2 + 8);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ2_S, 256), 2 + 32 + 32 + 8 + 8);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ3_XXS, 256), 2 + 64 + 32);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ3_S, 256), 2 + 64 + 8 + 32 + 4);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ1_S, 256), 2 + 32 + 16);
  assert_int_equal(rdna_dtype_bytes(RDNA_IQ1_M, 256), 32 + 16 + 8);
  assert_int_equal(rdna_dtype_bytes(RDNA_Q8_0, 33), 0);
  assert_int_equal(rdna_dtype_bytes(RDNA_F32, -1), 0);
  assert_int_equal(rdna_dtype_bytes(RDNA_F64, INT64_MAX), 0);
}

static void contiguous_strides(void **state) {
  rdna_tensor t = rdna_tensor_contiguous(NULL, RDNA_F32, 3, (int64_t[]){2, 3, 5});
  assert_int_equal(rdna_tensor_count(&t), 30);
  assert_int_equal(t.stride[0], 15);
  assert_int_equal(t.stride[1], 5);
  assert_int_equal(t.stride[2], 1);
  t = rdna_tensor_contiguous(NULL, RDNA_F32, 0, NULL);
  assert_int_equal(rdna_tensor_count(&t), 1);
  t = rdna_tensor_contiguous(NULL, RDNA_F32, 3, (int64_t[]){INT64_MAX, INT64_MAX, 0});
  assert_int_equal(rdna_tensor_count(&t), 0);
}

/* The same by marking bytes. |base| is the byte at which address 0 of the test's tensors lies. */
enum { BASE = 8192, BYTES = 2 * BASE };
static void mark(const rdna_tensor *t, uint8_t bit, uint8_t *marks) {
  int64_t values = rdna_dtype_block_values(t->dtype), bytes = (int64_t)rdna_dtype_block_bytes(t->dtype);
  int64_t at[RDNA_MAX_RANK] = {0};
  if (rdna_tensor_count(t) == 0) return;
  for (;;) {
    int64_t place = BASE + (int64_t)(uintptr_t)t->data;
    for (int i = 0; i < t->rank; i++) place += at[i] * t->stride[i] / values * bytes;
    assert_true(place >= 0 && place + bytes <= BYTES);
    for (int64_t k = 0; k < bytes; k++) marks[place + k] |= bit;
    int i = t->rank - 1;
    for (; i >= 0; i--) {
      at[i] += i == t->rank - 1 ? values : 1;
      if (at[i] < t->shape[i]) break;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

static uint32_t random_below(uint32_t *state, uint32_t limit) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % limit;
}

static rdna_tensor random_tensor(uint32_t *state) {
  static const rdna_dtype dtypes[] = {RDNA_U8, RDNA_F16, RDNA_F32, RDNA_F64, RDNA_F32, RDNA_Q8_0};
  rdna_tensor t = {.dtype = dtypes[random_below(state, 6)], .rank = (int)random_below(state, 5)};
  int64_t values = rdna_dtype_block_values(t.dtype);
  if (values > 1 && t.rank == 0) t.rank = 1;
  for (int i = 0; i < t.rank; i++) {
    bool blocks = values > 1 && i == t.rank - 1;
    t.shape[i] = (1 + random_below(state, 4)) * (blocks ? values : 1);
    t.stride[i] = blocks ? 1 : ((int64_t)random_below(state, 25) - 12) * values;
  }
  t.data = (void *)(uintptr_t)(random_below(state, 100) * (values > 1 ? 2 : rdna_dtype_block_bytes(t.dtype)));
  return t;
}

static void overlap_is_of_bytes(void **state) {
  int overlapping = 0, interleaved = 0;
  uint32_t random = 1;
  for (int n = 0; n < 20000; n++) {
    uint8_t marks[BYTES] = {0};
    rdna_tensor a = random_tensor(&random), b = random_tensor(&random);
    mark(&a, 1, marks);
    mark(&b, 2, marks);
    int first[4] = {0}, last[4] = {0}, both = 0;
    for (int i = 0; i < BYTES; i++) {
      if (marks[i] == 3) both = 1;
      for (int k = 1; k <= 2; k++)
        if (marks[i] & k) last[k] = i, first[k] = first[k] ? first[k] : i;
    }
    assert_int_equal(rdna_tensor_overlap(&a, &b), both);
    assert_int_equal(rdna_tensor_overlap(&b, &a), both);
    overlapping += both;
    interleaved += !both && first[1] < last[2] && first[2] < last[1];
  }
  assert_true(overlapping > 4000 && interleaved > 1000);
}

static rdna_tensor slice(int64_t first, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  rdna_tensor t = rdna_tensor_contiguous((void *)(uintptr_t)(4 * first), RDNA_F32, 2, (int64_t[]){rows, cols});
  t.stride[0] = row_stride, t.stride[1] = col_stride;
  return t;
}

static void slices_of_one_matrix(void **state) {
  const int64_t n = 1 << 20; /* rows of 64 */
  rdna_tensor left = slice(0, n, 32, 64, 1), right = slice(32, n, 32, 64, 1), middle = slice(31, n, 32, 64, 1);
  rdna_tensor even = slice(0, n, 32, 64, 2), odd = slice(1, n, 32, 64, 2), turned = slice(0, 64, n, 1, 64);
  rdna_tensor upper = slice(0, n / 2, 64, 64, 1), lower = slice(n / 2 * 64, n / 2, 64, 64, 1);
  assert_false(rdna_tensor_overlap(&left, &right));
  assert_true(rdna_tensor_overlap(&left, &middle) && rdna_tensor_overlap(&middle, &right));
  assert_false(rdna_tensor_overlap(&even, &odd));
  assert_true(rdna_tensor_overlap(&even, &left) && rdna_tensor_overlap(&odd, &right));
  assert_true(rdna_tensor_overlap(&turned, &odd));
  assert_false(rdna_tensor_overlap(&upper, &lower));
  /* diagonals that cross no value, and one that crosses one */
  rdna_tensor down = slice(0, 1, 50, 0, 65), up = slice(49 * 64, 1, 50, 0, -63),
              next = slice(50 * 64 - 1, 1, 50, 0, -65);
  assert_false(rdna_tensor_overlap(&down, &up));
  assert_false(rdna_tensor_overlap(&down, &next));
  up = slice(50 * 64, 1, 50, 0, -63);
  assert_true(rdna_tensor_overlap(&down, &up));
  rdna_tensor none = slice(0, 0, 64, 64, 1);
  assert_false(rdna_tensor_overlap(&none, &left));
}

/* Where every step is a number of its own, an answer must come soon, and none may be a wrong "no". */
static void intricate_layouts(void **state) {
  static const int64_t primes[] = {1000003, 999983, 999979, 999961, 999959, 999953, 999931, 999917};
  rdna_tensor a = {.dtype = RDNA_U8, .rank = RDNA_MAX_RANK}, b = a;
  for (int i = 0; i < RDNA_MAX_RANK; i++) {
    a.shape[i] = b.shape[i] = 60;
    a.stride[i] = primes[i], b.stride[i] = primes[i] + 2;
  }
  b.data = (void *)(uintptr_t)(30 * 999983 - 5 * 999981);
  assert_true(rdna_tensor_overlap(&a, &b));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_of_types), cmocka_unit_test(contiguous_strides),
                                     cmocka_unit_test(overlap_is_of_bytes), cmocka_unit_test(slices_of_one_matrix),
                                     cmocka_unit_test(intricate_layouts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
