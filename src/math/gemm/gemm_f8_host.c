/* Host twins of products of 8-bit floats: those of the blocked product, whose operands are read as f32. */
#include "kernel/float8.h"
#include "kernel/host.h"
#include "math/gemm/gemm_blocked.h"
#include "math/gemm/gemm_f8_kernels.h"

#define FETCH(name, NAME)                                                                    \
  static void fetch_##name(const char *row, int count, float *out) {                         \
    for (int i = 0; i < count; i++) out[i] = float8_to_f32(RDNA_F8_##NAME, (uint8_t)row[i]); \
  }
FETCH(e4m3fn, E4M3FN)
FETCH(e5m2, E5M2)
FETCH(e4m3fnuz, E4M3FNUZ)
FETCH(e5m2fnuz, E5M2FNUZ)

/* Values as f32, then zeros to a multiple of SIMD_WIDTH. */
static void fetch(rdna_dtype type, const char *row, int count, float *out) {
  if (type == RDNA_F8_E4M3FN) fetch_e4m3fn(row, count, out);
  if (type == RDNA_F8_E5M2) fetch_e5m2(row, count, out);
  if (type == RDNA_F8_E4M3FNUZ) fetch_e4m3fnuz(row, count, out);
  if (type == RDNA_F8_E5M2FNUZ) fetch_e5m2fnuz(row, count, out);
  for (int i = count; i % SIMD_WIDTH != 0; i++) out[i] = 0;
}
static void fetch_a(const gemm_job *job, const char *a, int64_t row, int64_t p, int count, float *out) {
  fetch(job->type_a, a + row * job->args->lda + p, count, out);
}
static void fetch_b(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out) {
  fetch(job->type_b, b + row * job->args->ldb + p, count, out);
}

static void run(const struct gemm_scaled_args *args, rdna_dtype type_a, rdna_dtype type_b, rdna_dtype type_c) {
  gemm_job job = {.args = &args->of,
                  .type_a = type_a,
                  .type_b = type_b,
                  .type_c = type_c,
                  .fetch_a = fetch_a,
                  .fetch_b = fetch_b,
                  .scales_a = args->scale_a,
                  .scales_b = args->scale_b,
                  .each_a = args->each_a,
                  .each_b = args->each_b,
                  .batch_bytes_b = args->of.stride_b};
  gemm_run(&job);
}

#define TWIN(a, b, c, tile, A, B, C)                                                             \
  void RDNA_HOST_KERNEL(gemm_f8_##a##_f8_##b##_##c##_##tile)(const void *args, rdna_grid grid) { \
    run(args, RDNA_F8_##A, RDNA_F8_##B, RDNA_##C);                                               \
  }
#define TWINS_OF(a, b, c, A, B, C) TWIN(a, b, c, large, A, B, C) TWIN(a, b, c, small, A, B, C)
#define TWINS(a, b, A, B)        \
  TWINS_OF(a, b, f32, A, B, F32) \
  TWINS_OF(a, b, f16, A, B, F16) \
  TWINS_OF(a, b, bf16, A, B, BF16)
TWINS(e4m3fn, e4m3fn, E4M3FN, E4M3FN)
TWINS(e4m3fn, e5m2, E4M3FN, E5M2)
TWINS(e5m2, e4m3fn, E5M2, E4M3FN)
TWINS(e4m3fnuz, e4m3fnuz, E4M3FNUZ, E4M3FNUZ)
TWINS(e4m3fnuz, e5m2fnuz, E4M3FNUZ, E5M2FNUZ)
TWINS(e5m2fnuz, e4m3fnuz, E5M2FNUZ, E4M3FNUZ)
