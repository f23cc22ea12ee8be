#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rdna/tensor.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_of_types), cmocka_unit_test(contiguous_strides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
