#include "rdna/tensor.h"

#include <stdbool.h>

static const struct {
  const char *name;
  int block_values;
  size_t block_bytes;
} types[RDNA_DTYPE_COUNT] = {
    [RDNA_F32] = {"f32", 1, 4},
    [RDNA_F16] = {"f16", 1, 2},
    [RDNA_BF16] = {"bf16", 1, 2},
    [RDNA_F64] = {"f64", 1, 8},
    [RDNA_I8] = {"i8", 1, 1},
    [RDNA_U8] = {"u8", 1, 1},
    [RDNA_I16] = {"i16", 1, 2},
    [RDNA_I32] = {"i32", 1, 4},
    [RDNA_I64] = {"i64", 1, 8},
    [RDNA_BOOL] = {"bool", 1, 1},
    [RDNA_Q8_0] = {"q8_0", 32, 34},
    [RDNA_Q4_0] = {"q4_0", 32, 18},
    [RDNA_Q4_K] = {"q4_K", 256, 144},
    [RDNA_Q6_K] = {"q6_K", 256, 210},
    [RDNA_Q4_1] = {"q4_1", 32, 20},
    [RDNA_Q5_0] = {"q5_0", 32, 22},
    [RDNA_Q5_1] = {"q5_1", 32, 24},
    [RDNA_Q2_K] = {"q2_K", 256, 84},
    [RDNA_Q3_K] = {"q3_K", 256, 110},
    [RDNA_Q5_K] = {"q5_K", 256, 176},
    [RDNA_IQ4_NL] = {"iq4_nl", 32, 18},
    [RDNA_IQ4_XS] = {"iq4_xs", 256, 136},
    [RDNA_MXFP4] = {"mxfp4", 32, 17},
    [RDNA_F8_E4M3FN] = {"f8_e4m3fn", 1, 1},
    [RDNA_F8_E5M2] = {"f8_e5m2", 1, 1},
    [RDNA_F8_E4M3FNUZ] = {"f8_e4m3fnuz", 1, 1},
    [RDNA_F8_E5M2FNUZ] = {"f8_e5m2fnuz", 1, 1},
};

static bool known(rdna_dtype dtype) { return (unsigned)dtype < RDNA_DTYPE_COUNT; }

const char *rdna_dtype_name(rdna_dtype dtype) { return known(dtype) ? types[dtype].name : "?"; }
int rdna_dtype_block_values(rdna_dtype dtype) { return known(dtype) ? types[dtype].block_values : 1; }
size_t rdna_dtype_block_bytes(rdna_dtype dtype) { return known(dtype) ? types[dtype].block_bytes : 0; }

size_t rdna_dtype_bytes(rdna_dtype dtype, int64_t count) {
  int64_t values = rdna_dtype_block_values(dtype);
  size_t bytes;
  if (count < 0 || count % values != 0) return 0;
  return __builtin_mul_overflow((size_t)(count / values), rdna_dtype_block_bytes(dtype), &bytes) ? 0 : bytes;
}

rdna_tensor rdna_tensor_contiguous(void *data, rdna_dtype dtype, int rank, const int64_t *shape) {
  rdna_tensor tensor = {.data = data, .dtype = dtype, .rank = rank};
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; i--) {
    tensor.shape[i] = shape[i];
    tensor.stride[i] = stride;
    /* a size that overflows is refused by the operators; here it must only not be undefined */
    if (__builtin_mul_overflow(stride, shape[i], &stride)) stride = INT64_MAX;
  }
  return tensor;
}

int64_t rdna_tensor_count(const rdna_tensor *tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->rank; i++) {
    if (tensor->shape[i] == 0) return 0;
    if (__builtin_mul_overflow(count, tensor->shape[i], &count)) count = INT64_MAX;
  }
  return count;
}
