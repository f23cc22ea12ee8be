/* Weights of integers in quantization groups, on the host: decoded to f32 a piece of a row at a time. */
#include "math/gemm/gemm_blocked.h"
#include "math/quant/group.h"

enum { PIECE = 256 }; /* values of a row that are decoded together: a whole number of runs of 32 */

/* Decodes values [p, p + count) of a row; both are multiples of 32. */
SIMD_INLINE void decode_row(bool is_u4, const struct group_weights_args *w, int64_t row, int64_t p, int64_t count,
                            float *out) {
  const uint8_t *codes = (const uint8_t *)w->codes + row * (is_u4 ? w->k / 2 : w->k);
  for (int64_t at = p; at < p + count; at += 32, out += 32) {
    int64_t group = row * (w->k >> w->shift) + (at >> w->shift);
    int zero = is_u4 ? 8 : 0;
    if (w->zeros) zero = is_u4 ? ((const uint8_t *)w->zeros)[group] : ((const int8_t *)w->zeros)[group];
    int64_t of_row = at >> w->shift;
    simd_float scale = simd_set(group_number(w->scales, row * w->scale_row + of_row * w->scale_group, w->type));
    simd_float offset =
        simd_set(w->offsets ? group_number(w->offsets, row * w->offset_row + of_row * w->offset_group, w->type) : 0);
    for (int i = 0; i < 32; i += SIMD_WIDTH) {
      simd_int code;
      if (is_u4) {
        code = (simd_load_u8(codes + at / 2 + i % 16) >> (i / 16 * 4)) & 15;
      } else {
        code = simd_load_i8((const int8_t *)codes + at + i);
      }
      simd_float number = simd_from_int(code - zero);
#if SIMD_WIDTH >= 8
      simd_store(out + i, simd_fma(scale, number, offset));
#else /* simd_fma would round twice, where kernels round once */
      float scale_of[SIMD_WIDTH], numbers[SIMD_WIDTH], offset_of[SIMD_WIDTH];
      simd_store(scale_of, scale);
      simd_store(numbers, number);
      simd_store(offset_of, offset);
      for (int j = 0; j < SIMD_WIDTH; j++) out[i + j] = scalar_fma(scale_of[j], numbers[j], offset_of[j]);
#endif
    }
  }
}

typedef struct group_job {
  const struct group_weights_args *weights;
  const void *args;
  rdna_dtype type;
  bool is_u4;
} group_job;

/* Dequantizes pieces [begin, end) of 32 values each. */
static void dequantize_some(void *context, int64_t begin, int64_t end) {
  const group_job *job = context;
  const struct group_weights_args *w = job->weights;
  void *out = ((const struct dequantize_group_args *)job->args)->out;
  for (int64_t run = begin; run < end; run++) {
    float v[32];
    int64_t at = run * 32;
    if (job->is_u4)
      decode_row(true, w, at / w->k, at % w->k, 32, v);
    else
      decode_row(false, w, at / w->k, at % w->k, 32, v);
    for (int i = 0; i < 32; i++) {
      if (job->type == RDNA_F32)
        ((float *)out)[at + i] = v[i];
      else
        ((uint16_t *)out)[at + i] = job->type == RDNA_F16 ? f32_to_f16(v[i]) : f32_to_bf16(v[i]);
    }
  }
}
static void dequantize(const void *args, bool is_u4, rdna_dtype type) {
  const struct group_weights_args *w = args;
  group_job job = {w, args, type, is_u4};
  rdna__parallel_for(w->n * w->k / 32, 512, dequantize_some, &job);
}

static void quantize_some(void *context, int64_t begin, int64_t end) {
  const group_job *job = context;
  const struct group_weights_args *w = job->weights;
  for (int64_t group = begin; group < end; group++) {
    const float *x = ((const struct quantize_group_args *)job->args)->x + (group << w->shift);
    int64_t count = 1 << w->shift;
    struct group_range range = {0, 0};
    for (int64_t i = 0; i < count; i++) group_see(&range, x[i]);
    struct group_coding coding = group_coding_of(job->is_u4, w->zeros != NULL, range);
    ((uint16_t *)(uintptr_t)w->scales)[group] = coding.scale;
    if (w->zeros) ((uint8_t *)(uintptr_t)w->zeros)[group] = (uint8_t)coding.zero;
    uint8_t *codes = (uint8_t *)(uintptr_t)w->codes + (group << w->shift) / (job->is_u4 ? 2 : 1);
    for (int64_t i = 0; i < count; i++) {
      if (!job->is_u4)
        codes[i] = (uint8_t)group_code_of(&coding, x[i]);
      else if (i % 32 < 16)
        codes[i / 32 * 16 + i % 16] = group_byte_of(&coding, x + i / 32 * 32, (int)(i % 16));
    }
  }
}
static void quantize(const void *args, bool is_u4) {
  const struct group_weights_args *w = args;
  group_job job = {w, args, RDNA_F32, is_u4};
  rdna__parallel_for((w->n * w->k) >> w->shift, 64, quantize_some, &job);
}

static const struct group_weights_args *weights_of(const gemm_job *job) {
  return &((const struct group_gemm_args *)(const void *)job->args)->weights;
}
static void fetch_i8(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out) {
  decode_row(false, weights_of(job), row, p, count, out);
}
static void fetch_u4(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out) {
  decode_row(true, weights_of(job), row, p, count, out);
}

/* Multiplies rows [first, last) of B by up to GEMV_MAX_M rows of A. */
SIMD_INLINE void dot_any(bool is_u4, const gemm_job *job, const char *a, char *c, int64_t first, int64_t last) {
  const struct gemm_args *args = job->args;
  for (int64_t j = first; j < last; j++) {
    simd_float sum[GEMV_MAX_M];
    for (int i = 0; i < args->m; i++) sum[i] = simd_set(0);
    for (int64_t p = 0; p < args->k; p += PIECE) {
      float w[PIECE];
      int64_t count = args->k - p < PIECE ? args->k - p : PIECE;
      decode_row(is_u4, weights_of(job), j, p, count, w);
      for (int i = 0; i < args->m; i++) {
        const float *x = (const float *)(const void *)a + i * args->lda + p;
        for (int64_t q = 0; q < count; q += SIMD_WIDTH) sum[i] = simd_fma(simd_load(w + q), simd_load(x + q), sum[i]);
      }
    }
    for (int i = 0; i < args->m; i++) gemm_finish_dot(job, c, i, j, simd_sum(sum[i]));
  }
}
static void dot_i8(const gemm_job *job, const char *a, const char *b, char *c, int64_t first, int64_t last) {
  dot_any(false, job, a, c, first, last);
}
static void dot_u4(const gemm_job *job, const char *a, const char *b, char *c, int64_t first, int64_t last) {
  dot_any(true, job, a, c, first, last);
}

static void run_gemm(const void *args, bool is_u4) {
  const struct group_gemm_args *a = args;
  gemm_job job = {.args = &a->product, .type_a = RDNA_F32, .type_b = is_u4 ? RDNA_U8 : RDNA_I8, .type_c = RDNA_F32};
  job.fetch_b = is_u4 ? fetch_u4 : fetch_i8;
  job.dot_rows = is_u4 ? dot_u4 : dot_i8;
  gemm_run(&job);
}

#define TWIN(name, call) \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { call; }
#define TWINS(F, is_u4)                                                 \
  TWIN(dequantize_group_##F##_f32, dequantize(args, is_u4, RDNA_F32))   \
  TWIN(dequantize_group_##F##_f16, dequantize(args, is_u4, RDNA_F16))   \
  TWIN(dequantize_group_##F##_bf16, dequantize(args, is_u4, RDNA_BF16)) \
  TWIN(quantize_group_f32_##F, quantize(args, is_u4))                   \
  TWIN(gemm_group_##F##_large, run_gemm(args, is_u4))                   \
  TWIN(gemm_group_##F##_small, run_gemm(args, is_u4))                   \
  TWIN(gemv_group_##F##_m1, run_gemm(args, is_u4))                      \
  TWIN(gemv_group_##F##_m4, run_gemm(args, is_u4))                      \
  TWIN(gemv_group_##F##_m8, run_gemm(args, is_u4))
TWINS(i8, false)
TWINS(u4, true)
