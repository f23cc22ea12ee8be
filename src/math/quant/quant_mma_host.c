/* Host twins of the products of f16 with weights in blocks on matrix units. */
#include "math/common/host/values.h"
#include "math/gemm/gemm_blocked.h"
#include "math/quant/quant_mma_kernels.h"
#include "math/quant/quant_unpack.h"

static void fetch(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out,
                  void (*dequantize)(const void *args, rdna_grid grid)) {
  _Alignas(64) uint16_t half[GEMM_BLOCK_K];
  int64_t first = row * job->args->ldb + p;
  struct dequantize_args args = {b + first / quant_values(job->type_b) * quant_bytes(job->type_b), half, count};
  dequantize(&args, (rdna_grid){1, 1, 1});
  for (int i = 0; i < count; i++) out[i] = f16_to_f32(half[i]);
}

static void run(const void *args, rdna_dtype format, rdna_dtype c,
                void (*fetch_b)(const gemm_job *, const char *, int64_t, int64_t, int, float *)) {
  gemm_job job = {.args = args, .type_a = RDNA_F16, .type_b = format, .type_c = c, .fetch_b = fetch_b};
  gemm_run(&job);
}

#define TWIN(F, NAME, c, C, rows)                                                        \
  void RDNA_HOST_KERNEL(gemm_f16_##F##_##c##_##rows)(const void *args, rdna_grid grid) { \
    run(args, RDNA_##NAME, RDNA_##C, fetch_##F);                                         \
  }
#define TWINS(F, NAME)                                                                                       \
  void RDNA_HOST_KERNEL(dequantize_##F##_f16)(const void *args, rdna_grid grid);                             \
  static void fetch_##F(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out) { \
    fetch(job, b, row, p, count, out, RDNA_HOST_KERNEL(dequantize_##F##_f16));                               \
  }                                                                                                          \
  TWIN(F, NAME, f32, F32, rows16)                                                                            \
  TWIN(F, NAME, f32, F32, rows32)                                                                            \
  TWIN(F, NAME, f32, F32, rows64)                                                                            \
  TWIN(F, NAME, f16, F16, rows16)                                                                            \
  TWIN(F, NAME, f16, F16, rows32)                                                                            \
  TWIN(F, NAME, f16, F16, rows64)
RDNA_QUANT_FORMATS(TWINS)
