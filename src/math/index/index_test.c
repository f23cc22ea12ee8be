#include "rdna/op/index.h"

#include <math.h>

#include "math/case_fill.h"
#include "math/test_device.h"

/* Value |i| of a row of blocks, from the formats' definitions one value at a time; see rdna/tensor.h. */
static double block_value(rdna_dtype dtype, const uint8_t *row, int64_t i) {
  uint16_t bits;
  if (dtype == RDNA_Q8_0) {
    const uint8_t *b = row + i / 32 * 34;
    memcpy(&bits, b, 2);
    return (double)f16_to_f32(bits) * (int8_t)b[2 + i % 32];
  }
  if (dtype == RDNA_Q4_0) {
    const uint8_t *b = row + i / 32 * 18;
    int nibble = i % 32 < 16 ? b[2 + i % 16] & 15 : b[2 + i % 16] >> 4;
    memcpy(&bits, b, 2);
    return (double)f16_to_f32(bits) * (nibble - 8);
  }
  if (dtype == RDNA_Q4_K) {
    const uint8_t *b = row + i / 256 * 144, *s = b + 4;
    int64_t in = i % 256, j = in / 32;
    int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) + 16 * (s[j - 4] >> 6);
    int minimum = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) + 16 * (s[j] >> 6);
    uint8_t q = b[16 + in / 64 * 32 + in % 32];
    int nibble = j % 2 ? q >> 4 : q & 15;
    memcpy(&bits, b, 2);
    double d = (double)f16_to_f32(bits);
    memcpy(&bits, b + 2, 2);
    return d * scale * nibble - (double)f16_to_f32(bits) * minimum;
  }
  const uint8_t *b = row + i / 256 * 210;
  int64_t in = i % 256, half = in / 128, r = in % 128 / 32, l = in % 32;
  uint8_t low = b[half * 64 + r % 2 * 32 + l], high = b[128 + half * 32 + l];
  int q = (r < 2 ? low & 15 : low >> 4) + 16 * (high >> (2 * r) & 3) - 32;
  memcpy(&bits, b + 208, 2);
  return (double)f16_to_f32(bits) * (int8_t)b[192 + in / 16] * q;
}

static void fill_table(rdna__random *random, rdna_dtype dtype, uint8_t *table, int64_t count) {
  if (rdna_dtype_block_values(dtype) == 1) {
    case_fill(random, dtype, table, count, 1);
    return;
  }
  size_t bytes = rdna_dtype_block_bytes(dtype);
  for (size_t i = 0; i < rdna_dtype_bytes(dtype, count); i++) table[i] = (uint8_t)rdna__random_bits(random);
  for (size_t at = 0; at < rdna_dtype_bytes(dtype, count); at += bytes) {
    size_t d_at = dtype == RDNA_Q6_K ? 208 : 0;
    case_fill(random, RDNA_F16, table + at + d_at, dtype == RDNA_Q4_K ? 2 : 1, 0.1);
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
  assert_ok(rdna_op_gather_rows(test_stream, &t_table, &t_ids, &t_out));
  test_download(out, device_out, out_bytes);
  for (int64_t t = 0; t < tokens; t++) {
    for (int64_t i = 0; i < cols; i++) {
      double got = (double)out[t * cols + i];
      if (ids[t] < 0 || ids[t] >= rows) {
        assert_true(isnan(got));
        continue;
      }
      double want = rdna_dtype_block_values(dtype) == 1 ? (double)case_get(dtype, table, ids[t] * cols + i)
                                                        : block_value(dtype, table + (size_t)ids[t] * row_bytes, i);
      /* three roundings of terms of up to 63 * 15 * 0.5 in q4_K; the others have two factors of a whole number */
      double bound = dtype == RDNA_Q4_K ? 0x1p-22 * 500 : 0x1p-22 * fabs(want);
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
  for (int dtype = RDNA_Q8_0; dtype <= RDNA_Q6_K; dtype++) {
    check((rdna_dtype)dtype, 2, 256, 6);
    check((rdna_dtype)dtype, 9, 2304, 20);
  }
  check(RDNA_Q8_0, 5, 32, 7);
  check(RDNA_Q4_0, 5, 96, 7);
}

static void empty_and_refused(void **state) {
  void *memory = test_poisoned(4096), *other = test_poisoned(4096);
  rdna_tensor table = rdna_tensor_contiguous(memory, RDNA_F32, 2, (int64_t[]){4, 8});
  rdna_tensor ids = rdna_tensor_contiguous(NULL, RDNA_I32, 1, (int64_t[]){0});
  rdna_tensor out = rdna_tensor_contiguous(NULL, RDNA_F32, 2, (int64_t[]){0, 8});
  assert_ok(rdna_op_gather_rows(test_stream, &table, &ids, &out));

  ids = rdna_tensor_contiguous(other, RDNA_I32, 1, (int64_t[]){3});
  out = rdna_tensor_contiguous(other, RDNA_F32, 2, (int64_t[]){2, 8});
  assert_fails(RDNA_INVALID_ARGUMENT, "out is f32 (2, 8); size 0 must be 3",
               rdna_op_gather_rows(test_stream, &table, &ids, &out));
  out = rdna_tensor_contiguous(other, RDNA_F32, 2, (int64_t[]){3, 9});
  assert_fails(RDNA_INVALID_ARGUMENT, "size 1 must be 8", rdna_op_gather_rows(test_stream, &table, &ids, &out));
  table.dtype = RDNA_I8;
  assert_fails(RDNA_UNSUPPORTED, "table is i8", rdna_op_gather_rows(test_stream, &table, &ids, &out));
  table = rdna_tensor_contiguous(memory, RDNA_Q8_0, 2, (int64_t[]){2, 33});
  assert_fails(RDNA_INVALID_ARGUMENT, "multiples of 32", rdna_op_gather_rows(test_stream, &table, &ids, &out));
  table = rdna_tensor_contiguous((char *)memory + 8, RDNA_Q4_K, 2, (int64_t[]){2, 256});
  assert_fails(RDNA_INVALID_ARGUMENT, "aligned to 16", rdna_op_gather_rows(test_stream, &table, &ids, &out));
  test_release(memory);
  test_release(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_floats), cmocka_unit_test(rows_of_blocks),
                                     cmocka_unit_test(empty_and_refused)};
  return cmocka_run_group_tests(tests, test_device_open, test_device_close);
}
