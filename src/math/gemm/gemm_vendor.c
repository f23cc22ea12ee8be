#include "math/gemm/gemm_vendor.h"

#include <math.h>
#include <stdint.h>

#include "base/status.h"

enum { LT_WAYS = 3 };

static bool is_lt(rdna__vendor vendor) { return vendor == RDNA__CUBLASLT || vendor == RDNA__HIPBLASLT; }

int rdna__gemm_vendor_ways(rdna_device *device, rdna__vendor vendor) {
  if (!is_lt(vendor) && vendor != RDNA__ROCBLAS) return 0;
  if (!rdna__vendor_handle(device, vendor)) return 0;
  return is_lt(vendor) ? LT_WAYS : 1;
}

const char *rdna__gemm_vendor_name(rdna__vendor vendor, int way) {
  static const char *const names[][LT_WAYS] = {[RDNA__CUBLASLT] = {"cublaslt", "cublaslt_1", "cublaslt_2"},
                                               [RDNA__ROCBLAS] = {"rocblas"},
                                               [RDNA__HIPBLASLT] = {"hipblaslt", "hipblaslt_1", "hipblaslt_2"}};
  return names[vendor][way];
}

bool rdna__gemm_vendor_applies(rdna_device *device, rdna__vendor vendor, int way, const rdna__gemm_problem *problem) {
  void *handle = rdna__vendor_handle(device, vendor);
  if (!handle) return false;
  return is_lt(vendor) ? rdna__gemm_lt_applies(handle, device, way, problem) : rdna__gemm_rocblas_applies(problem);
}

rdna_status rdna__gemm_vendor_run(rdna_stream *stream, rdna__vendor vendor, int way,
                                  const rdna__gemm_problem *problem) {
  void *handle = rdna__vendor_handle(rdna_stream_device(stream), vendor);
  const char *name = rdna__gemm_vendor_name(vendor, way);
  if (!handle) return rdna__fail(RDNA_UNSUPPORTED, "%s is not used on this device", name);
  return is_lt(vendor) ? rdna__gemm_lt_run(handle, stream, name, way, problem)
                       : rdna__gemm_rocblas_run(handle, stream, name, problem);
}

bool rdna__gemm_types_known(const rdna_dtype types[3]) {
  rdna_dtype a = types[0], b = types[1], c = types[2];
  if (a != b) return false;
  if (a == RDNA_F16 || a == RDNA_BF16) return c == a || c == RDNA_F32;
  return (a == RDNA_F32 && c == RDNA_F32) || (a == RDNA_I8 && c == RDNA_I32);
}

/* One operand as stored: |rows| values in a run, |columns| runs |*ld| apart. */
static bool fit(int64_t rows, int64_t columns, int64_t *ld, int64_t batch, int64_t *stride, bool written) {
  if (columns <= 1) *ld = rows;
  if (batch <= 1) *stride = 0;
  if (*ld < rows || *ld > INT32_MAX || *stride < 0) return false;
  /* matrices of the result lie one after the other */
  return !written || batch <= 1 || *stride >= (columns - 1) * *ld + rows;
}

static bool is_whole(float value) { return value == rintf(value) && fabsf(value) < 0x1p31f; }

/* Everything at multiples of 16 bytes, for types of 2. */
static bool in_16s(const struct gemm_args *args) {
  uint64_t places = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->c | (uintptr_t)args->bias;
  int64_t steps = args->lda | args->ldb | args->ldc | args->n;
  if (args->batch > 1) steps |= args->stride_a | args->stride_b | args->stride_c;
  return places % 16 == 0 && steps % 8 == 0;
}

bool rdna__gemm_columns_make(const rdna__gemm_problem *problem, rdna__gemm_columns *out_columns) {
  const struct gemm_args *args = &problem->args;
  if (!rdna__gemm_types_known(problem->types) || args->m < 1 || args->n < 1 || args->k < 1 || args->batch < 1)
    return false;
  /* ours are exact modulo 2^32; of sums that may pass 31 bits the libraries do not say what becomes */
  enum { MOST_BYTES = 131071 };
  if (problem->types[2] == RDNA_I32 && args->k > MOST_BYTES) return false;
  /* integers are scaled by integers */
  if (problem->types[2] == RDNA_I32 && !(is_whole(args->alpha) && is_whole(args->beta))) return false;
  if (args->flags & GEMM_BIAS_OF_ROWS) return false;
  if (args->activation != RDNA_ACTIVATION_NONE) return false;
  bool residual = args->residual != NULL; /* added in place of the old C */
  if (residual && args->beta != 0) return false;
  /* cuBLASLt rounds sums to 16 bits before it adds the bias, where there is an old C, or where it adds the bias in a
   * kernel of its own: so it was found with data that is not aligned */
  if (rdna__gemm_is_half(problem->types[2]) && args->bias && (residual || args->beta != 0 || !in_16s(args)))
    return false;
  bool a_transposed = args->flags & GEMM_A_TRANSPOSED, b_transposed = args->flags & GEMM_B_TRANSPOSED;
  rdna__gemm_columns c = {
      .rows = args->n,
      .columns = args->m,
      .k = args->k,
      .batch = args->batch,
      .a = args->b,
      .b = args->a,
      .c = residual ? args->residual : args->c,
      .d = args->c,
      .lda = args->ldb,
      .ldb = args->lda,
      .ldc = residual ? args->ld_residual : args->ldc,
      .ldd = args->ldc,
      .stride_a = args->stride_b,
      .stride_b = args->stride_a,
      .stride_c = residual ? args->stride_residual : args->stride_c,
      .stride_d = args->stride_c,
      .beta = residual ? 1 : args->beta,
      .a_transposed = b_transposed,
      .b_transposed = a_transposed,
      .a_rows = b_transposed ? args->k : args->n,
      .a_columns = b_transposed ? args->n : args->k,
      .b_rows = a_transposed ? args->m : args->k,
      .b_columns = a_transposed ? args->k : args->m,
      .a_type = problem->types[1],
      .b_type = problem->types[0],
      .d_type = problem->types[2],
  };
  *out_columns = c;
  return fit(c.a_rows, c.a_columns, &out_columns->lda, c.batch, &out_columns->stride_a, false) &&
         fit(c.b_rows, c.b_columns, &out_columns->ldb, c.batch, &out_columns->stride_b, false) &&
         fit(c.rows, c.columns, &out_columns->ldc, c.batch, &out_columns->stride_c, !residual) &&
         fit(c.rows, c.columns, &out_columns->ldd, c.batch, &out_columns->stride_d, true);
}
