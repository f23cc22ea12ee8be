/* Host twins of the block-quantized kernels. Weights are decoded to f32 in registers, 32 neighbouring values at a
 * time; the layouts are in quant_kernels.h. */
#include "math/quant/quant_kernels.h"

#include "math/gemm/gemm_blocked.h"

enum { RUN = 32, VECTORS = RUN / SIMD_WIDTH };

SIMD_INLINE float half_at(const char *p) {
  uint16_t v;
  memcpy(&v, p, sizeof v);
  return f16_to_f32(v);
}

SIMD_INLINE int64_t block_values(rdna_dtype format) { return format == RDNA_Q8_0 || format == RDNA_Q4_0 ? 32 : 256; }
SIMD_INLINE int64_t block_bytes(rdna_dtype format) {
  return format == RDNA_Q8_0 ? 34 : format == RDNA_Q4_0 ? 18 : format == RDNA_Q4_K ? 144 : 210;
}

SIMD_INLINE void decode_q8_0(const char *block, simd_float out[VECTORS]) {
  simd_float d = simd_set(half_at(block));
#pragma GCC unroll 8
  for (int i = 0; i < VECTORS; i++)
    out[i] = d * simd_from_int(simd_load_i8((const int8_t *)block + 2 + i * SIMD_WIDTH));
}

SIMD_INLINE void decode_q4_0(const char *block, simd_float out[VECTORS]) {
  simd_float d = simd_set(half_at(block));
#pragma GCC unroll 8
  for (int i = 0; i < VECTORS / 2; i++) {
    simd_int pair = simd_load_u8((const uint8_t *)block + 2 + i * SIMD_WIDTH);
    out[i] = d * simd_from_int((pair & 15) - 8);
    out[i + VECTORS / 2] = d * simd_from_int((pair >> 4) - 8);
  }
}

SIMD_INLINE void decode_q4_K(const char *block, int j, simd_float out[VECTORS]) {
  const uint8_t *s = (const uint8_t *)block + 4;
  int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  int minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
  simd_float d = simd_set(half_at(block) * (float)scale), m = simd_set(half_at(block + 2) * (float)minimum);
  const uint8_t *q = (const uint8_t *)block + 16 + (j >> 1) * 32;
#pragma GCC unroll 8
  for (int i = 0; i < VECTORS; i++)
    out[i] = d * simd_from_int(simd_load_u8(q + i * SIMD_WIDTH) >> (j % 2 * 4) & 15) - m;
}

SIMD_INLINE void decode_q6_K(const char *block, int j, simd_float out[VECTORS]) {
  int half = j >> 2, r = j & 3;
  const uint8_t *low = (const uint8_t *)block + half * 64 + r % 2 * 32;
  const uint8_t *high = (const uint8_t *)block + 128 + half * 32;
  const int8_t *scales = (const int8_t *)block + 192 + half * 8 + 2 * r;
  float d = half_at(block + 208);
#pragma GCC unroll 8
  for (int i = 0; i < VECTORS; i++) {
    simd_int q = (simd_load_u8(low + i * SIMD_WIDTH) >> (r / 2 * 4) & 15) |
                 (simd_load_u8(high + i * SIMD_WIDTH) >> (2 * r) & 3) << 4;
    out[i] = simd_set(d * (float)scales[i * SIMD_WIDTH / 16]) * simd_from_int(q - 32);
  }
}

/* Run |run| of a row of blocks. */
SIMD_INLINE void decode_run(rdna_dtype format, const char *row, int64_t run, simd_float out[VECTORS]) {
  switch (format) {
    case RDNA_Q8_0:
      decode_q8_0(row + run * 34, out);
      break;
    case RDNA_Q4_0:
      decode_q4_0(row + run * 18, out);
      break;
    case RDNA_Q4_K:
      decode_q4_K(row + run / 8 * 144, (int)(run % 8), out);
      break;
    default:
      decode_q6_K(row + run / 8 * 210, (int)(run % 8), out);
      break;
  }
}

typedef struct dequantize_job {
  const struct dequantize_args *args;
  rdna_dtype format, type;
} dequantize_job;

static void dequantize_runs(void *context, int64_t begin, int64_t end) {
  const dequantize_job *job = context;
  for (int64_t run = begin; run < end; run++) {
    simd_float v[VECTORS];
    decode_run(job->format, job->args->blocks, run, v);
    for (int i = 0; i < VECTORS; i++) {
      int64_t at = run * RUN + i * SIMD_WIDTH;
      if (job->type == RDNA_F32)
        simd_store((float *)job->args->out + at, v[i]);
      else
        simd_store_f16((uint16_t *)job->args->out + at, v[i]);
    }
  }
}

static void dequantize(const void *args, rdna_dtype format, rdna_dtype type) {
  dequantize_job job = {args, format, type};
  rdna__parallel_for(job.args->count / RUN, 512, dequantize_runs, &job);
}

static void fetch_quant_b(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out) {
  rdna_dtype format = job->type_b;
  const char *at = b + row * (job->args->ldb / block_values(format)) * block_bytes(format);
  for (int i = 0; i < count; i += RUN) {
    simd_float v[VECTORS];
    decode_run(format, at, (p + i) / RUN, v);
    for (int s = 0; s < VECTORS; s++) simd_store(out + i + s * SIMD_WIDTH, v[s]);
  }
}

/* As dot_block in gemm_host.c, in steps of a run. */
SIMD_INLINE void dot_block(const gemm_job *job, rdna_dtype format, int columns, int rows, const char *a, const char *b,
                           char *c, int64_t first, int64_t last) {
  const struct gemm_args *args = job->args;
  const char *w[4];
  const float *x[GEMV_MAX_M];
  simd_float sum[4][GEMV_MAX_M];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
    w[r] = b + gemm_clamp(first + r, last) * (args->ldb / block_values(format)) * block_bytes(format);
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) sum[r][j] = simd_set(0);
  }
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++) x[j] = (const float *)(const void *)a + gemm_clamp(j, args->m) * args->lda;

  for (int64_t run = 0; run < args->k / RUN; run++) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      simd_float v[VECTORS];
      decode_run(format, w[r], run, v);
#pragma GCC unroll 8
      for (int j = 0; j < columns; j++) {
#pragma GCC unroll 8
        for (int i = 0; i < VECTORS; i++)
          sum[r][j] = simd_fma(v[i], simd_load(x[j] + run * RUN + i * SIMD_WIDTH), sum[r][j]);
      }
    }
  }
  for (int r = 0; r < rows && first + r < last; r++)
    for (int j = 0; j < columns && j < args->m; j++) gemm_finish_dot(job, c, j, first + r, simd_sum(sum[r][j]));
}

#define DOT_DEFINE(F)                                                                                            \
  static void dot_##F(const gemm_job *job, const char *a, const char *b, char *c, int64_t first, int64_t last) { \
    int m = job->args->m;                                                                                        \
    for (int64_t j = first; j < last; j += 2) {                                                                  \
      if (m == 1)                                                                                                \
        dot_block(job, RDNA_##F, 1, 2, a, b, c, j, last);                                                        \
      else if (m <= 4)                                                                                           \
        dot_block(job, RDNA_##F, 4, 2, a, b, c, j, last);                                                        \
      else                                                                                                       \
        dot_block(job, RDNA_##F, 8, 2, a, b, c, j, last);                                                        \
    }                                                                                                            \
  }
DOT_DEFINE(Q8_0)
DOT_DEFINE(Q4_0)
DOT_DEFINE(Q4_K)
DOT_DEFINE(Q6_K)

static void run_gemm(const void *args, rdna_dtype format,
                     void (*dot_rows)(const gemm_job *, const char *, const char *, char *, int64_t, int64_t)) {
  const struct gemm_args *a = args;
  gemm_job job = {.args = a, .type_a = RDNA_F32, .type_b = format, .type_c = RDNA_F32};
  job.fetch_b = fetch_quant_b;
  job.dot_rows = dot_rows;
  job.batch_bytes_b = a->stride_b / block_values(format) * block_bytes(format);
  gemm_run(&job);
}

#define TWIN(name, F) \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { run_gemm(args, RDNA_##F, dot_##F); }
#define TWINS(f, F)                                                               \
  void RDNA_HOST_KERNEL(dequantize_##f##_f32)(const void *args, rdna_grid grid) { \
    dequantize(args, RDNA_##F, RDNA_F32);                                         \
  }                                                                               \
  void RDNA_HOST_KERNEL(dequantize_##f##_f16)(const void *args, rdna_grid grid) { \
    dequantize(args, RDNA_##F, RDNA_F16);                                         \
  }                                                                               \
  TWIN(gemm_f32_##f##_f32_large, F)                                               \
  TWIN(gemm_f32_##f##_f32_small, F)                                               \
  TWIN(gemv_f32_##f##_f32_m1, F)                                                  \
  TWIN(gemv_f32_##f##_f32_m4, F)                                                  \
  TWIN(gemv_f32_##f##_f32_m8, F)
TWINS(q8_0, Q8_0)
TWINS(q4_0, Q4_0)
TWINS(q4_K, Q4_K)
TWINS(q6_K, Q6_K)

/* To nearest, halves away from zero; a NaN becomes 0. */
SIMD_INLINE int8_t round_away(float v) {
  float whole = __builtin_truncf(v);
  if (scalar_abs(v - whole) >= 0.5f) whole += v < 0 ? -1.0f : 1.0f;
  return v == v ? (int8_t)whole : 0;
}

static void quantize_blocks(void *context, int64_t begin, int64_t end) {
  const struct quantize_args *args = context;
  for (int64_t block = begin; block < end; block++) {
    const float *x = args->x + block * 32;
    char *out = (char *)args->blocks + block * 34;
    float largest = 0;
    for (int i = 0; i < 32; i++) largest = max_f32(largest, scalar_abs(x[i]));
    float d = largest / 127.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
    uint16_t stored = f32_to_f16(d);
    memcpy(out, &stored, sizeof stored);
    for (int i = 0; i < 32; i++) out[2 + i] = round_away(x[i] * inverse);
  }
}

void RDNA_HOST_KERNEL(quantize_f32_q8_0)(const void *args, rdna_grid grid) {
  struct quantize_args a = *(const struct quantize_args *)args;
  rdna__parallel_for(a.count / 32, 512, quantize_blocks, &a);
}
