#include "rdna/op/index.h"

#include <math.h>

#include "math/common/case/fill.h"
#include "math/common/test/device.h"
#include "math/quant/quant_case.h"
#include "math/quant/testing_blocks.h"

static void fill_table(rdna__random *random, rdna_dtype dtype, uint8_t *table, int64_t count) {
  if (rdna_dtype_block_values(dtype) == 1) {
    case_fill(random, dtype, table, count, 1);
  } else {
    rdna__fill_blocks(random, dtype, table, count);
  }
}

static void check(rdna_dtype dtype, int64_t rows, int64_t cols, int64_t tokens) {
  rdna__random random;
  rdna__random_seed(&random, (uint64_t)(cols * 31 + tokens));
  size_t table_bytes = rdna_dtype_bytes(dtype, rows * cols), row_bytes = table_bytes / (size_t)rows;
  size_t out_bytes = (size_t)(tokens * cols) * sizeof(float);
  uint8_t *table = malloc(table_bytes);
  int32_t *ids = malloc((size_t)tokens * sizeof(int32_t));
  float *out = malloc(out_bytes);
  fill_table(&random, dtype, table, rows * cols);
  for (int64_t t = 0; t < tokens; t++) ids[t] = (int32_t)rdna__random_range(&random, -1, rows);
  void *device_table = test_upload(table, table_bytes), *device_ids = test_upload(ids, (size_t)tokens * 4);
  void *device_out = test_poisoned(out_bytes);
  rdna_tensor t_table = rdna_tensor_contiguous(device_table, dtype, 2, (int64_t[]){rows, cols});
  rdna_tensor t_ids = rdna_tensor_contiguous(device_ids, RDNA_I32, 1, &tokens);
  rdna_tensor t_out = rdna_tensor_contiguous(device_out, RDNA_F32, 2, (int64_t[]){tokens, cols});
  assert_ok(rdna_op_embedding(stream, &t_table, &t_ids, &t_out, NULL));
  test_download(out, device_out, out_bytes);
  for (int64_t t = 0; t < tokens; t++) {
    for (int64_t i = 0; i < cols; i++) {
      double got = (double)out[t * cols + i];
      if (ids[t] < 0 || ids[t] >= rows) {
        assert_true(dtype == RDNA_F32 ? got == 0 : isnan(got));
        continue;
      }
      double product = 0, want = rdna_dtype_block_values(dtype) == 1
                                     ? (double)case_get(dtype, table, ids[t] * cols + i)
                                     : test_quant_value(dtype, table + (size_t)ids[t] * row_bytes, i, &product);
      /* the product is rounded, and what is left of it after the minimum */
      double bound = 0x1p-23 * (product + fabs(want));
      if (!(fabs(got - want) <= (rdna_dtype_block_values(dtype) == 1 ? 0 : bound))) {
        fail_msg("%s, token %d, column %d: got %g, want %g", rdna_dtype_name(dtype), (int)t, (int)i, got, want);
      }
    }
  }
  test_release(device_table);
  test_release(device_ids);
  test_release(device_out);
  free(table);
  free(ids);
  free(out);
}

static void rows_of_floats(void **state) {
  for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
    check((rdna_dtype)dtype, 1, 1, 5);
    check((rdna_dtype)dtype, 20, 37, 9);
    check((rdna_dtype)dtype, 7, 4096, 30);
    check((rdna_dtype)dtype, 3, 2051, 4);
  }
}

static void rows_of_blocks(void **state) {
  for (int f = 0; f < TEST_FORMATS; f++) {
    check(test_formats[f], 2, 256, 6);
    check(test_formats[f], 9, 2304, 20);
  }
  check(RDNA_Q8_0, 5, 32, 7);
  check(RDNA_Q4_0, 5, 96, 7);
  check(RDNA_MXFP4, 5, 96, 7);
}

static void empty_and_refused(void **state) {
  void *memory = test_poisoned(4096), *other = test_poisoned(4096);
  rdna_tensor table = rdna_tensor_contiguous(memory, RDNA_F32, 2, (int64_t[]){4, 8});
  rdna_tensor ids = rdna_tensor_contiguous(NULL, RDNA_I32, 1, (int64_t[]){0});
  rdna_tensor out = rdna_tensor_contiguous(NULL, RDNA_F32, 2, (int64_t[]){0, 8});
  assert_ok(rdna_op_embedding(stream, &table, &ids, &out, NULL));

  ids = rdna_tensor_contiguous(other, RDNA_I32, 1, (int64_t[]){3});
  out = rdna_tensor_contiguous(other, RDNA_F32, 2, (int64_t[]){2, 8});
  assert_refused(rdna_op_embedding(stream, &table, &ids, &out, NULL), RDNA_INVALID_ARGUMENT,
                 "out is f32 (2, 8); size 0 must be 3", "");
  out = rdna_tensor_contiguous(other, RDNA_F32, 2, (int64_t[]){3, 9});
  assert_refused(rdna_op_embedding(stream, &table, &ids, &out, NULL), RDNA_INVALID_ARGUMENT, "size 1 must be 8");
  table.dtype = RDNA_I8;
  assert_refused(rdna_op_embedding(stream, &table, &ids, &out, NULL), RDNA_INVALID_ARGUMENT, "table is i8");
  table = rdna_tensor_contiguous(memory, RDNA_Q8_0, 2, (int64_t[]){2, 33});
  assert_refused(rdna_op_embedding(stream, &table, &ids, &out, NULL), RDNA_INVALID_ARGUMENT, "multiples of 32");
  table = rdna_tensor_contiguous((char *)memory + 8, RDNA_Q4_K, 2, (int64_t[]){2, 256});
  assert_refused(rdna_op_embedding(stream, &table, &ids, &out, NULL), RDNA_INVALID_ARGUMENT, "aligned to 16");
  test_release(memory);
  test_release(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_floats), cmocka_unit_test(rows_of_blocks),
                                     cmocka_unit_test(empty_and_refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
