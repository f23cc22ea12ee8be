/* Host twins of the block-quantized kernels. Weights are decoded to f32 in registers, 32 neighbouring values at a
 * time; the layouts are in quant_kernels.h. */
#include "math/quant/quant_kernels.h"

#include "math/gemm/gemm_blocked.h"

/* Values that are decoded together: neighbours of one row whose quants share bytes. */
SIMD_INLINE int group_values(rdna_dtype format) { return format == RDNA_Q4_K ? 64 : format == RDNA_Q6_K ? 128 : 32; }
enum { MOST_VECTORS = 128 / SIMD_WIDTH };

SIMD_INLINE int block_values(rdna_dtype format) { return format == RDNA_Q8_0 || format == RDNA_Q4_0 ? 32 : 256; }
SIMD_INLINE int block_bytes(rdna_dtype format) {
  return format == RDNA_Q8_0 ? 34 : format == RDNA_Q4_0 ? 18 : format == RDNA_Q4_K ? 144 : 210;
}

SIMD_INLINE float half_at(const char *p) {
  uint16_t v;
  memcpy(&v, p, sizeof v);
  return f16_to_f32(v);
}
SIMD_INLINE uint32_t word_at(const char *p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* What a block's values are multiplied by and what is taken off them, for each sub-block. */
typedef struct scales {
  float scale[16], least[8];
} scales;

/* The 8 bytes of a word times |d|. Through memory the bytes would have to wait for stores of another size. */
SIMD_INLINE void scale_bytes(uint64_t bytes, float d, float *out) {
#if SIMD_WIDTH >= 8
  __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(lanes)));
#else
  for (int i = 0; i < 8; i++) out[i] = d * (float)(bytes >> (8 * i) & 255);
#endif
}

SIMD_INLINE void read_scales(rdna_dtype format, const char *block, scales *out) {
  if (format == RDNA_Q4_K) {
    uint32_t s = word_at(block + 4), m = word_at(block + 8), high = word_at(block + 12);
    uint32_t top_s = (high & 0x0f0f0f0f) | (s >> 2 & 0x30303030),
             top_m = (high >> 4 & 0x0f0f0f0f) | (m >> 2 & 0x30303030);
    scale_bytes((uint64_t)top_s << 32 | (s & 0x3f3f3f3f), half_at(block), out->scale);
    scale_bytes((uint64_t)top_m << 32 | (m & 0x3f3f3f3f), half_at(block + 2), out->least);
  } else if (format == RDNA_Q6_K) {
    float d = half_at(block + 208);
    for (int i = 0; i < 16; i++) out->scale[i] = d * (float)((const int8_t *)block)[192 + i];
  } else {
    out->scale[0] = half_at(block);
  }
}

/* scale * q - least for the nibbles q in the low bits of each lane; what stands above them does not matter. */
typedef struct nibbles {
  simd_float scale, least; /* or, where a register holds all 16 results, those */
} nibbles;
SIMD_INLINE nibbles make_nibbles(float scale, float least) {
#if SIMD_WIDTH == 16
  simd_float q = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return (nibbles){.scale = simd_set(scale) * q - simd_set(least)};
#else
  return (nibbles){simd_set(scale), simd_set(least)};
#endif
}
SIMD_INLINE simd_float decode_nibbles(nibbles n, simd_int q) {
#if SIMD_WIDTH == 16
  return (simd_float)_mm512_permutexvar_ps((__m512i)q, (__m512)n.scale);
#else
  return n.scale * simd_from_int(q & 15) - n.least;
#endif
}

SIMD_INLINE void decode_q4_0(const char *block, const scales *s, simd_float *out) {
  enum { HALF = 16 / SIMD_WIDTH };
  /* d * (q - 8): d * q - d * 8 would round the same, but for an infinite d */
#if SIMD_WIDTH == 16
  simd_float q = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  nibbles n = {.scale = simd_set(s->scale[0]) * q};
#endif
#pragma GCC unroll 4
  for (int i = 0; i < HALF; i++) {
    simd_int pair = simd_load_u8((const uint8_t *)block + 2 + i * SIMD_WIDTH);
#if SIMD_WIDTH == 16
    out[i] = decode_nibbles(n, pair);
    out[i + HALF] = decode_nibbles(n, pair >> 4);
#else
    out[i] = simd_set(s->scale[0]) * simd_from_int((pair & 15) - 8);
    out[i + HALF] = simd_set(s->scale[0]) * simd_from_int((pair >> 4) - 8);
#endif
  }
}

SIMD_INLINE void decode_q4_K(const char *block, const scales *s, int group, simd_float *out) {
  enum { HALF = 32 / SIMD_WIDTH };
  nibbles low = make_nibbles(s->scale[2 * group], s->least[2 * group]);
  nibbles high = make_nibbles(s->scale[2 * group + 1], s->least[2 * group + 1]);
#pragma GCC unroll 8
  for (int i = 0; i < HALF; i++) {
    simd_int pair = simd_load_u8((const uint8_t *)block + 16 + group * 32 + i * SIMD_WIDTH);
    out[i] = decode_nibbles(low, pair);
    out[i + HALF] = decode_nibbles(high, pair >> 4);
  }
}

SIMD_INLINE void decode_q6_K(const char *block, const scales *s, int group, simd_float *out) {
  enum { QUARTER = 32 / SIMD_WIDTH };
  const uint8_t *low = (const uint8_t *)block + group * 64, *high = (const uint8_t *)block + 128 + group * 32;
#pragma GCC unroll 8
  for (int i = 0; i < QUARTER; i++) {
    simd_int first = simd_load_u8(low + i * SIMD_WIDTH), second = simd_load_u8(low + 32 + i * SIMD_WIDTH);
    simd_int pairs = simd_load_u8(high + i * SIMD_WIDTH);
    const float *scale = s->scale + group * 8 + i * SIMD_WIDTH / 16;
    out[i] = simd_set(scale[0]) * simd_from_int(((first & 15) | (pairs & 3) << 4) - 32);
    out[i + QUARTER] = simd_set(scale[2]) * simd_from_int(((second & 15) | (pairs & 12) << 2) - 32);
    out[i + 2 * QUARTER] = simd_set(scale[4]) * simd_from_int((first >> 4 | (pairs & 48)) - 32);
    out[i + 3 * QUARTER] = simd_set(scale[6]) * simd_from_int((second >> 4 | (pairs & 192) >> 2) - 32);
  }
}

SIMD_INLINE void decode_group(rdna_dtype format, const char *block, const scales *s, int group, simd_float *out) {
  switch (format) {
    case RDNA_Q4_0:
      decode_q4_0(block, s, out);
      break;
    case RDNA_Q4_K:
      decode_q4_K(block, s, group, out);
      break;
    case RDNA_Q6_K:
      decode_q6_K(block, s, group, out);
      break;
    default:
#pragma GCC unroll 8
      for (int i = 0; i < 32 / SIMD_WIDTH; i++)
        out[i] = simd_set(s->scale[0]) * simd_from_int(simd_load_i8((const int8_t *)block + 2 + i * SIMD_WIDTH));
  }
}

/* Blocks [begin, end) to f32. */
SIMD_INLINE void decode_blocks(rdna_dtype format, const char *blocks, int64_t begin, int64_t end, float *out) {
  for (int64_t b = begin; b < end; b++) {
    const char *block = blocks + b * block_bytes(format);
    scales s;
    read_scales(format, block, &s);
    for (int g = 0; g < block_values(format) / group_values(format); g++) {
      simd_float v[MOST_VECTORS];
      decode_group(format, block, &s, g, v);
      for (int i = 0; i < group_values(format) / SIMD_WIDTH; i++, out += SIMD_WIDTH) simd_store(out, v[i]);
    }
  }
}
static void decode_any(rdna_dtype format, const char *blocks, int64_t begin, int64_t end, float *out) {
  switch (format) {
    case RDNA_Q8_0:
      decode_blocks(RDNA_Q8_0, blocks, begin, end, out);
      break;
    case RDNA_Q4_0:
      decode_blocks(RDNA_Q4_0, blocks, begin, end, out);
      break;
    case RDNA_Q4_K:
      decode_blocks(RDNA_Q4_K, blocks, begin, end, out);
      break;
    default:
      decode_blocks(RDNA_Q6_K, blocks, begin, end, out);
      break;
  }
}

typedef struct dequantize_job {
  const struct dequantize_args *args;
  rdna_dtype format, type;
} dequantize_job;

static void dequantize_some(void *context, int64_t begin, int64_t end) {
  const dequantize_job *job = context;
  int values = block_values(job->format);
  if (job->type == RDNA_F32) {
    decode_any(job->format, job->args->blocks, begin, end, (float *)job->args->out + begin * values);
    return;
  }
  for (int64_t b = begin; b < end; b++) {
    float v[256];
    decode_any(job->format, job->args->blocks, b, b + 1, v);
    uint16_t *out = (uint16_t *)job->args->out + b * values;
    for (int i = 0; i < values; i += SIMD_WIDTH) simd_store_f16(out + i, simd_load(v + i));
  }
}

static void dequantize(const void *args, rdna_dtype format, rdna_dtype type) {
  dequantize_job job = {args, format, type};
  rdna__parallel_for(job.args->count / block_values(format), 64, dequantize_some, &job);
}

SIMD_INLINE const char *row_of(const gemm_job *job, rdna_dtype format, const char *b, int64_t row) {
  return b + row * (job->args->ldb / block_values(format)) * block_bytes(format);
}

static void fetch_quant_b(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out) {
  int values = block_values(job->type_b);
  decode_any(job->type_b, row_of(job, job->type_b, b, row), p / values, (p + count) / values, out);
}

/* As dot_block in gemm_host.c, a block of weights at a time. One row of B is one stream that the processor fetches
 * ahead by itself only when nothing else is slow, so lines are asked for about a microsecond early. */
SIMD_INLINE void dot_block(const gemm_job *job, rdna_dtype format, int columns, int rows, const char *a, const char *b,
                           char *c, int64_t first, int64_t last) {
  enum { AHEAD = 2048, CHAINS = 4 };
  const struct gemm_args *args = job->args;
  const int chains = columns == 1 ? CHAINS : 1; /* sums that do not wait for each other */
  const int vectors = group_values(format) / SIMD_WIDTH;
  const char *w[2];
  const float *x[GEMV_MAX_M];
  simd_float sum[2][GEMV_MAX_M][CHAINS];
#pragma GCC unroll 2
  for (int r = 0; r < rows; r++) {
    w[r] = row_of(job, format, b, gemm_clamp(first + r, last));
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 4
      for (int n = 0; n < chains; n++) sum[r][j][n] = simd_set(0);
  }
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++) x[j] = (const float *)(const void *)a + gemm_clamp(j, args->m) * args->lda;

  int64_t at = 0;
  for (int64_t left = args->k / block_values(format); left > 0; left--) {
    scales s[2];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) {
      for (int i = 0; i < block_bytes(format); i += 64) __builtin_prefetch(w[r] + AHEAD + i);
      read_scales(format, w[r], &s[r]);
    }
    for (int g = 0; g < block_values(format) / group_values(format); g++) {
      simd_float v[2][MOST_VECTORS];
#pragma GCC unroll 2
      for (int r = 0; r < rows; r++) decode_group(format, w[r], &s[r], g, v[r]);
#pragma GCC unroll 32
      for (int i = 0; i < vectors; i++, at += SIMD_WIDTH) {
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) {
          simd_float u = simd_load(x[j] + at);
#pragma GCC unroll 2
          for (int r = 0; r < rows; r++) sum[r][j][i % chains] = simd_fma(v[r][i], u, sum[r][j][i % chains]);
        }
      }
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) w[r] += block_bytes(format);
  }
  for (int r = 0; r < rows && first + r < last; r++) {
    for (int j = 0; j < columns && j < args->m; j++) {
      simd_float total = sum[r][j][0];
      for (int n = 1; n < chains; n++) total += sum[r][j][n];
      gemm_finish_dot(job, c, j, first + r, simd_sum(total));
    }
  }
}

#define DOT_DEFINE(F)                                                                                            \
  static void dot_##F(const gemm_job *job, const char *a, const char *b, char *c, int64_t first, int64_t last) { \
    int m = job->args->m;                                                                                        \
    if (m == 1) {                                                                                                \
      for (int64_t j = first; j < last; j++) dot_block(job, RDNA_##F, 1, 1, a, b, c, j, last);                   \
    } else if (m <= 4) {                                                                                         \
      for (int64_t j = first; j < last; j += 2) dot_block(job, RDNA_##F, 4, 2, a, b, c, j, last);                \
    } else {                                                                                                     \
      for (int64_t j = first; j < last; j += 2) dot_block(job, RDNA_##F, 8, 2, a, b, c, j, last);                \
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
