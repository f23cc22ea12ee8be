/* Host code: the products of quant_planes.h where GEMM_MAY_ROUND allows that activations are rounded.
 *
 * X has 16 bits, two digits, and one unit for 32 neighbours: x is off by at most 2^-15.98 of the largest of them, or of
 * 1e-30 if that is more. A row of B is read 256 values at a time, so that the scales of all their runs are one vector:
 *
 *     scale of a run, a lane each    8 or 16       times the units of x: what the sums of that run are multiplied by
 *     least of a run                               times the sums of x over the runs: what is subtracted
 *     64 codes, 64 high digits       16 lanes      sum = dot(codes, high)          four times
 *     64 codes, 64 low digits        16 lanes      sum = sum 2^8 + dot(codes, low)
 *
 * Two rows of B meet a row of A at once, as its digits are twice as many bytes as codes of 8 bits. A row with an
 * infinity or a NaN gives NaN, and changes no other. For quant_host.c only. */
#ifndef RDNA_MATH_QUANT_DIGITS_H
#define RDNA_MATH_QUANT_DIGITS_H

#include "math/quant/quant_planes.h"

#ifdef QUANT_PLANES

enum { DIGIT_VALUES = 256, DIGIT_PARTS = DIGIT_VALUES / PLANE_VALUES, MOST_DIGITS = 512 }; /* 448 KiB of a stack */

/* 256 values of a row of A, or fewer and zeros. */
typedef struct digits {
  _Alignas(64) int8_t high[DIGIT_PARTS][PLANE_VALUES];
  int8_t low[DIGIT_PARTS][PLANE_VALUES];
  int32_t from[DIGIT_PARTS][PLANE_LANES]; /* what a lane's sum begins with: -zero times its X */
  float sum[16];                          /* X times the unit, over runs */
  float unit[8];
} digits;

/* What rows of A became before the product, each |row| digits from the next. */
typedef struct digit_job {
  gemm_job product;
  digits *digits;
  int64_t row;
} digit_job;

/* The digits of 32 values; returns their unit, NaN where a value is infinite or none. */
SIMD_INLINE float digits_of_32(const float *x, int8_t *high, int8_t *low) {
  const __m512i magnitude = _mm512_set1_epi32(INT32_MAX), half = _mm512_set1_epi32(128);
  const __m512 v[2] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16)};
  const __m512i first = _mm512_and_si512(_mm512_castps_si512(v[0]), magnitude);
  const __m512i second = _mm512_and_si512(_mm512_castps_si512(v[1]), magnitude);
  uint32_t most = (uint32_t)_mm512_reduce_max_epi32(_mm512_max_epi32(first, second)); /* in floats' own order */
  if (most >= 0x7f800000) return __builtin_nanf("");
  if (most < PAIR_LEAST_BITS) most = PAIR_LEAST_BITS;
  const float largest = scalar_from_bits(most);
  const __m512 inverse = _mm512_set1_ps(PAIR_MOST / largest);
  for (int i = 0; i < 2; i++) {
    const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(v[i], inverse));
    const __m512i upper = _mm512_srai_epi32(_mm512_add_epi32(whole, half), 8);
    _mm_store_si128((__m128i *)(void *)(low + 16 * i), _mm512_cvtepi32_epi8(whole));
    _mm_store_si128((__m128i *)(void *)(high + 16 * i), _mm512_cvtepi32_epi8(upper));
  }
  return largest * (1.0f / PAIR_MOST);
}

static void make_digits(const float *x, int count, int zero, int run, digits *out) {
  const __m512i ones = _mm512_set1_epi8(1);
  int32_t four[DIGIT_VALUES / 4]; /* X, four neighbours added up */
  memset(out, 0, sizeof *out);
  for (int v = 0; v < count; v += 32) {
    const int part = v / PLANE_VALUES, at = v % PLANE_VALUES;
    out->unit[v / 32] = digits_of_32(x + v, out->high[part] + at, out->low[part] + at);
  }
  for (int i = 0; i < DIGIT_PARTS; i++) {
    __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, _mm512_load_si512(out->high[i]));
    sum = _mm512_dpbusd_epi32(_mm512_slli_epi32(sum, 8), ones, _mm512_load_si512(out->low[i]));
    _mm512_store_si512(out->from[i], _mm512_mullo_epi32(sum, _mm512_set1_epi32(-zero)));
    _mm512_storeu_si512(four + i * PLANE_LANES, sum);
  }
  for (int r = 0; r < DIGIT_VALUES / run; r++) {
    int32_t sum = 0;
    for (int i = r * run / 4; i < (r + 1) * run / 4; i++) sum += four[i];
    out->sum[r] = (float)sum * out->unit[r * run / 32];
  }
}

static void make_some_digits(void *context, int64_t begin, int64_t end) {
  const digit_job *job = context;
  const struct gemm_args *args = job->product.args;
  const rdna_dtype format = job->product.type_b;
  for (int64_t i = begin; i < end; i++) {
    int64_t at = i % job->row * DIGIT_VALUES, left = args->k - at;
    const float *x = (const float *)args->a + i / job->row * args->lda + at;
    make_digits(x, left < DIGIT_VALUES ? (int)left : DIGIT_VALUES, plane_zero(format), quant_run(format),
                &job->digits[i]);
  }
}

/* The 16 bits at |p| and at the same place of the seven blocks of 32 values behind, by few loads that stay in them. */
SIMD_INLINE __m256 digit_f16_of_blocks(rdna_dtype format, const char *p) {
  const int bytes = quant_bytes(format), next = bytes / 2;
  __m512i at = _mm512_castsi128_si512(_mm_setr_epi16(0, (short)next, 32, (short)(32 + next), 0, 0, 0, 0));
  if (4 * bytes <= 80) {
    at = _mm512_castsi128_si512(_mm_setr_epi16(0, (short)next, (short)(2 * next), (short)(3 * next), 32,
                                               (short)(32 + next), (short)(32 + 2 * next), (short)(32 + 3 * next)));
    const __m512i both = _mm512_permutex2var_epi16(_mm512_loadu_si512(p), at, _mm512_loadu_si512(p + 4 * bytes));
    return _mm256_cvtph_ps(_mm512_castsi512_si128(both));
  }
  __m512i pair[4];
  for (int i = 0; i < 4; i++) {
    const char *from = p + 2 * i * bytes;
    pair[i] = bytes < 32 ? _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)from))
                         : _mm512_loadu_si512(from);
  }
  const __m512i first = _mm512_permutex2var_epi16(pair[0], at, pair[1]);
  const __m512i second = _mm512_permutex2var_epi16(pair[2], at, pair[3]);
  return _mm256_cvtph_ps(_mm_unpacklo_epi64(_mm512_castsi512_si128(first), _mm512_castsi512_si128(second)));
}

/* The scales of 256 values from |p| on, one for each run, and the minimums. */
SIMD_INLINE __m512 digit_scales(rdna_dtype format, const char *p, __m512 *out_least) {
  if (quant_values(format) == DIGIT_VALUES) return plane_scales_of_block(format, p, out_least);
  *out_least = _mm512_setzero_ps();
  if (quant_scales(format) == RDNA__SCALES_POWER) {
    float scale[8];
    for (int i = 0; i < 8; i++)
      scale[i] = quant_scale_of(format, quant_head_of(format, p + i * quant_bytes(format), 0), 0).scale;
    return _mm512_zextps256_ps512(_mm256_loadu_ps(scale));
  }
  p += quant_d_at(format);
  if (quant_has_least(format)) *out_least = _mm512_zextps256_ps512(-digit_f16_of_blocks(format, p + 2));
  return _mm512_zextps256_ps512(digit_f16_of_blocks(format, p));
}

/* The units of 256 values, one for each run. */
SIMD_INLINE __m512 digit_units(rdna_dtype format, const digits *x) {
  const __m512 units = _mm512_zextps256_ps512(_mm256_load_ps(x->unit));
  if (quant_run(format) == 32) return units;
  return _mm512_permutexvar_ps(_mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0), units);
}

/* |sum| += the products of 64 codes and a row's digits, times |scale|. */
SIMD_INLINE __m512 add_digits(rdna_dtype format, __m512 sum, __m512i codes, __m512i high, __m512i low, __m512i from,
                              __m512 scale) {
  __m512i products = _mm512_slli_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), codes, high), 8);
  if (plane_zero(format))
    products = _mm512_add_epi32(products, _mm512_dpbusd_epi32(from, codes, low));
  else
    products = _mm512_dpbusd_epi32(products, codes, low);
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), scale, sum);
}

/* 256 values of |rows| rows of B times |columns| rows of A; |taken| is what minimums take from the sums. */
SIMD_INLINE void add_256(rdna_dtype format, int columns, int rows, const char **w, const digits **x,
                         __m512 sum[][GEMV_MAX_M], __m512 taken[][GEMV_MAX_M]) {
  __m512 scale[2][GEMV_MAX_M];
#pragma GCC unroll 2
  for (int r = 0; r < rows; r++) {
    __m512 least, of_runs = digit_scales(format, w[r], &least);
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) {
      scale[r][j] = _mm512_mul_ps(of_runs, digit_units(format, x[j]));
      if (quant_has_least(format)) taken[r][j] = _mm512_fmadd_ps(least, _mm512_load_ps(x[j]->sum), taken[r][j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < DIGIT_PARTS; i++) {
    const int v = i * PLANE_VALUES;
    __m512i codes[2];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
      codes[r] = quant_values(format) == 32 ? plane_codes(format, w[r] + v / 32 * quant_bytes(format),
                                                          w[r] + (v / 32 + 1) * quant_bytes(format), 0)
                                            : plane_codes(format, w[r], w[r], v);
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) {
      __m512i high = _mm512_load_si512(x[j]->high[i]), low = _mm512_load_si512(x[j]->low[i]);
      __m512i from = plane_zero(format) ? _mm512_load_si512(x[j]->from[i]) : _mm512_setzero_si512();
      if (rows > 1) __asm__("" : "+v"(high), "+v"(low), "+v"(from)); /* or each row would load them again */
#pragma GCC unroll 2
      for (int r = 0; r < rows; r++)
        sum[r][j] =
            add_digits(format, sum[r][j], codes[r], high, low, from, plane_scale_of_runs(format, scale[r][j], v));
    }
  }
}

/* Prefetches |bytes| at |next|, which are read a row or more later. What would not fit the first-level cache until then
 * goes to the second. */
SIMD_INLINE void digit_prefetch(const char *next, const char **w, int rows, int bytes, bool far) {
  if (!far) {
    for (int i = 0; i < rows * bytes; i += 64) __builtin_prefetch(next + i);
    return;
  }
  for (int i = 0; i < rows * bytes; i += 64) __builtin_prefetch(next + i, 0, 2);
#pragma GCC unroll 2
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch(w[r] + 512 + i);
}

/* |rows| rows of B from row |first| on against |columns| rows of A, each summed in the same order however many of
 * either there are. The rows that come next are prefetched from their beginning to their end, as memory is read fastest
 * in order. */
SIMD_INLINE void dot_digits(const digit_job *job, rdna_dtype format, int columns, int rows, const char *b, char *c,
                            int64_t first, int64_t last) {
  enum { NEAR = 12288, LEAST_AHEAD = 4096, BYTES = 256 / 32 * 34 };
  const struct gemm_args *args = job->product.args;
  const int bytes = DIGIT_VALUES / quant_values(format) * quant_bytes(format);
  const int64_t row_bytes = args->ldb / quant_values(format) * quant_bytes(format);
  const int64_t ahead = rows * row_bytes > LEAST_AHEAD ? rows * row_bytes : LEAST_AHEAD;
  const char *w[2], *next;
  const digits *x[GEMV_MAX_M];
  __m512 sum[2][GEMV_MAX_M], taken[2][GEMV_MAX_M];
  char end[2][BYTES]; /* the last blocks where there are fewer, and zeros */
#pragma GCC unroll 2
  for (int r = 0; r < rows; r++) {
    w[r] = b + gemm_clamp(first + r, last) * row_bytes;
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) sum[r][j] = taken[r][j] = _mm512_setzero_ps();
  }
  const bool far = 2 * ahead + columns * job->row * 768 > 24576;
  next = w[0] + ahead;
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++) x[j] = job->digits + gemm_clamp(j, args->m) * job->row;
  for (int64_t left = args->k; left > 0; left -= DIGIT_VALUES, next += rows * bytes) {
    digit_prefetch(next, w, rows, bytes, far);
    if (quant_values(format) < DIGIT_VALUES && left < DIGIT_VALUES) {
      for (int r = 0; r < rows; r++) {
        memset(end[r], 0, sizeof end[r]);
        memcpy(end[r], w[r], (size_t)(left / quant_values(format) * quant_bytes(format)));
        w[r] = end[r];
      }
    }
    add_256(format, columns, rows, w, x, sum, taken);
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) w[r] += bytes;
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) x[j]++;
  }
#pragma GCC unroll 2
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) {
      if (first + r >= last || j >= args->m) continue;
      __m512 total = quant_has_least(format) ? _mm512_sub_ps(sum[r][j], taken[r][j]) : sum[r][j];
      gemm_finish_dot(&job->product, c, j, first + r, _mm512_reduce_add_ps(total));
    }
  }
}

SIMD_INLINE void dot_rows_of_digits(const digit_job *job, rdna_dtype format, const char *b, char *c, int64_t first,
                                    int64_t last) {
  const int m = job->product.args->m;
  if (m == 1) {
    for (int64_t j = first; j < last; j += 2) dot_digits(job, format, 1, 2, b, c, j, last);
  } else if (m == 2) {
    for (int64_t j = first; j < last; j += 2) dot_digits(job, format, 2, 2, b, c, j, last);
  } else if (m <= 4) {
    for (int64_t j = first; j < last; j++) dot_digits(job, format, 4, 1, b, c, j, last);
  } else {
    for (int64_t j = first; j < last; j++) dot_digits(job, format, 8, 1, b, c, j, last);
  }
}

/* False where there is no memory for the rows of A. */
static bool run_digits(const gemm_job *product) {
  digits room[MOST_DIGITS];
  const struct gemm_args *args = product->args;
  digit_job job = {.product = *product, .digits = room, .row = (args->k + DIGIT_VALUES - 1) / DIGIT_VALUES};
  if (args->m * job.row > MOST_DIGITS) job.digits = aligned_alloc(64, (size_t)(args->m * job.row) * sizeof *job.digits);
  if (!job.digits) return false;
  rdna__parallel_for(args->m * job.row, 64, make_some_digits, &job);
  job.product.prepared = &job;
  gemm_run(&job.product);
  if (job.digits != room) free(job.digits);
  return true;
}
#endif
#endif
