/* Host code: products of block-quantized weights with many rows of f32 in whole numbers, where GEMM_MAY_ROUND allows
 * it. Processors multiply 16-bit numbers at least twice as fast as floats, and codes need not become floats.
 *
 * Each 32 neighbours of a row of A become the same whole numbers of 16 bits times a unit as for few rows
 * (quant_pairs.h, quant_planes.h), so that a token's results do not depend much on how many others there are. Codes are
 * numbers already, with a scale for each run of 16 or 32. Two neighbours lie in one lane, as what multiplies them adds
 * both products; 32 of them are less than 2^31:
 *
 *     lane            k 0 and 1   k 2 and 3   …         sum(i, j) += a(i, 2 p) b(2 p, j) + a(i, 2 p + 1) b(2 p + 1, j)
 *     row of A (i)    16 | 16     16 | 16     …         c(i, j) += unit(i) scale(j) sum(i, j) - least(j) x(i), once for
 *     panel of B      for each pair of k                each run, x(i) the sum of A's values in it
 *                     GEMM_MICRO_N lanes
 *
 * A value of A is off by at most 2^-15.98 of the largest of its 32, or of 1e-30 if that is more, and products of random
 * values by a relative squared error of less than 1e-9. A row with an infinity or a NaN gives NaN. A is rounded once,
 * in memory of its own, then tiles of C are computed as in gemm_blocked.h. For quant_host.c only. */
#ifndef RDNA_MATH_QUANT_ROUNDED_H
#define RDNA_MATH_QUANT_ROUNDED_H

#include <stdlib.h>

#include "math/gemm/gemm_blocked.h"
#include "math/quant/quant_pairs.h"
#include "math/quant/quant_planes.h"

#if SIMD_WIDTH == 8 || defined(QUANT_PLANES)

enum { ROUNDED_PAIRS = GEMM_BLOCK_K / 2, ROUNDED_RUNS = GEMM_BLOCK_K / 16, ROUNDED_UNITS = GEMM_BLOCK_K / PAIR_VALUES };

/* 256 values of a row of A, or fewer and zeros. */
typedef struct rounded_row {
  int32_t pairs[ROUNDED_PAIRS];
  float unit[ROUNDED_UNITS];
  float sum[ROUNDED_RUNS];
  float apart[8]; /* rows lie off a power of two, or they would compete for the same lines of the first-level cache */
} rounded_row;

typedef struct rounded_blocks {
  int32_t b[GEMM_BLOCK_N / GEMM_MICRO_N][ROUNDED_PAIRS][GEMM_MICRO_N];
  float scale[GEMM_BLOCK_N / GEMM_MICRO_N][ROUNDED_RUNS][GEMM_MICRO_N];
  float least[GEMM_BLOCK_N / GEMM_MICRO_N][ROUNDED_RUNS][GEMM_MICRO_N];
  float c[GEMM_BLOCK_M][GEMM_BLOCK_N];
} rounded_blocks;

typedef struct rounded_job {
  gemm_job product;
  rounded_row *a; /* (blocks of k, rows to a multiple of GEMM_MICRO_M) */
  int64_t rows, blocks;
} rounded_job;

/* Whole numbers of 16 values, which are times |inverse|, in the order that rounded_codes has. */
SIMD_INLINE __m256i rounded_join(__m256 low, __m256 high, __m256 inverse) {
  __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(low, inverse)), b = _mm256_cvtps_epi32(_mm256_mul_ps(high, inverse));
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
}

/* 32 values; returns their unit, NaN where one is infinite or none. */
static inline float round_values(const float *x, int32_t *out, float sums[2]) {
  __m256 v[4];
  for (int i = 0; i < 4; i++) v[i] = _mm256_loadu_ps(x + 8 * i);
  const uint32_t most = pair_largest(v);
  const bool finite = most < 0x7f800000;
  const float largest = scalar_from_bits(most);
  const __m256 inverse = _mm256_set1_ps(finite ? PAIR_MOST / largest : 0);
  for (int i = 0; i < 2; i++) {
    _mm256_storeu_si256((__m256i *)(void *)(out + 8 * i), rounded_join(v[2 * i], v[2 * i + 1], inverse));
    sums[i] = pair_sum(_mm256_add_ps(v[2 * i], v[2 * i + 1]));
  }
  return finite ? largest * (1.0f / PAIR_MOST) : __builtin_nanf("");
}

static void round_some_rows(void *context, int64_t begin, int64_t end) {
  const rounded_job *job = context;
  const struct gemm_args *args = job->product.args;
  for (int64_t i = begin; i < end; i++) {
    rounded_row *to = job->a + i;
    const int64_t row = i % job->rows, first = i / job->rows * GEMM_BLOCK_K;
    const int64_t count = args->k - first < GEMM_BLOCK_K ? args->k - first : GEMM_BLOCK_K;
    memset(to, 0, sizeof *to);
    if (row >= args->m) continue;
    const float *x = (const float *)args->a + row * args->lda + first;
    for (int64_t p = 0; p < count; p += PAIR_VALUES)
      to->unit[p / PAIR_VALUES] = round_values(x + p, to->pairs + p / 2, to->sum + p / 16);
  }
}

/* Codes of |count| values of a row of B, and of each run the scale and what is subtracted. */
SIMD_INLINE void unpack_row(rdna_dtype format, const char *block, int count, int16_t *out, float *scale, float *least) {
  const int runs = quant_values(format) / PAIR_VALUES, parts = pair_has_halves(format) ? 2 : 1;
  const __m256i zero = _mm256_set1_epi8((char)(pair_is_signed(format) ? 0 : quant_zero(format)));
  for (int at = 0; at < count; at += quant_values(format), block += quant_bytes(format)) {
    scales s;
    read_scales(format, block, &s);
#pragma GCC unroll 8
    for (int r = 0; r < runs; r++, out += PAIR_VALUES) {
      const __m256i codes = _mm256_sub_epi8(pair_codes(format, block, r * PAIR_VALUES), zero);
      __m256i words[2] = {_mm256_cvtepi8_epi16(_mm256_castsi256_si128(codes)),
                          _mm256_cvtepi8_epi16(_mm256_extracti128_si256(codes, 1))};
      memcpy(out, words, sizeof words);
      for (int h = 0; h < parts; h++) {
        *scale++ = s.scale[parts * r + h];
        *least++ = quant_has_least(format) ? s.least[parts * r + h] : 0;
      }
    }
  }
}
static __attribute__((noinline)) void unpack_any(rdna_dtype format, const char *block, int count, int16_t *out,
                                                 float *scale, float *least) {
  switch (format) {
#define UNPACK(name, NAME)                                    \
  case RDNA_##NAME:                                           \
    unpack_row(RDNA_##NAME, block, count, out, scale, least); \
    break;
    RDNA_QUANT_FORMATS(UNPACK)
#undef UNPACK
    default:
      break;
  }
}

/* Columns [column, column + columns) of B in panels; the last is filled with zeros. */
static inline void rounded_pack_b(const rounded_job *job, const char *b, int64_t column, int columns, int64_t p,
                                  int count, rounded_blocks *blocks) {
  const rdna_dtype format = job->product.type_b;
  const int runs = count / (pair_has_halves(format) ? 16 : 32), whole = (columns + GEMM_MICRO_N - 1) / GEMM_MICRO_N;
  for (int first = 0; first < whole * GEMM_MICRO_N; first += SIMD_WIDTH) {
    const int panel = first / GEMM_MICRO_N, offset = first % GEMM_MICRO_N;
    int32_t rows[SIMD_WIDTH][ROUNDED_PAIRS + 16];
    float scale[ROUNDED_RUNS] = {0}, least[ROUNDED_RUNS] = {0};
    for (int s = 0; s < SIMD_WIDTH; s++) {
      if (first + s < columns) {
        const int64_t block =
            (column + first + s) * (job->product.args->ldb / quant_values(format)) + p / quant_values(format);
        unpack_any(format, b + block * quant_bytes(format), count, (int16_t *)rows[s], scale, least);
      } else {
        memset(rows[s], 0, sizeof rows[s]);
        memset(scale, 0, sizeof scale), memset(least, 0, sizeof least);
      }
      for (int r = 0; r < runs; r++) {
        blocks->scale[panel][r][offset + s] = scale[r];
        blocks->least[panel][r][offset + s] = least[r];
      }
    }
    for (int q = 0; q < count / 2; q += SIMD_WIDTH) {
      simd_float square[SIMD_WIDTH]; /* moved, not computed with */
      for (int s = 0; s < SIMD_WIDTH; s++) memcpy(&square[s], &rows[s][q], sizeof square[s]);
      simd_transpose(square);
      for (int s = 0; s < SIMD_WIDTH; s++) memcpy(&blocks->b[panel][q + s][offset], &square[s], sizeof square[s]);
    }
  }
}

/* |sum| + both products of each lane. */
SIMD_INLINE simd_int rounded_add(simd_int sum, simd_int a, simd_int b) {
#if SIMD_WIDTH == 16 && defined(__AVX512VNNI__)
  return (simd_int)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif SIMD_WIDTH == 16
  return sum + (simd_int)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#else
  return sum + (simd_int)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#endif
}
SIMD_INLINE simd_int rounded_load(const int32_t *p) {
  simd_int v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* c(GEMM_MICRO_M, GEMM_MICRO_N) += a(GEMM_MICRO_M, runs) b(runs, GEMM_MICRO_N), runs of |run| values. */
SIMD_INLINE void rounded_runs(int run, bool has_least, int runs, const rounded_row *a, const int32_t *b,
                              const float *scale, const float *least, float *c) {
  for (int r = 0; r < runs; r++, scale += GEMM_MICRO_N, least += GEMM_MICRO_N) {
    simd_int sum[GEMM_MICRO_M][2];
#pragma GCC unroll 12
    for (int i = 0; i < GEMM_MICRO_M; i++) sum[i][0] = sum[i][1] = (simd_int){0};
#pragma GCC unroll 1
    for (int p = r * run / 2; p < (r + 1) * run / 2; p++, b += GEMM_MICRO_N) {
      simd_int b0 = rounded_load(b), b1 = rounded_load(b + SIMD_WIDTH);
#pragma GCC unroll 12
      for (int i = 0; i < GEMM_MICRO_M; i++) {
        simd_int v = (simd_int){0} + a[i].pairs[p];
        sum[i][0] = rounded_add(sum[i][0], v, b0);
        sum[i][1] = rounded_add(sum[i][1], v, b1);
      }
    }
    simd_float scale0 = simd_load(scale), scale1 = simd_load(scale + SIMD_WIDTH);
#pragma GCC unroll 12
    for (int i = 0; i < GEMM_MICRO_M; i++) {
      simd_float unit = simd_set(a[i].unit[r * run / PAIR_VALUES]);
      float *to = c + i * GEMM_BLOCK_N;
      simd_float c0 = simd_load(to), c1 = simd_load(to + SIMD_WIDTH);
      if (has_least) {
        float x = run == 16 ? a[i].sum[r] : a[i].sum[2 * r] + a[i].sum[2 * r + 1];
        c0 = simd_fma(simd_set(-x), simd_load(least), c0);
        c1 = simd_fma(simd_set(-x), simd_load(least + SIMD_WIDTH), c1);
      }
      simd_store(to, simd_fma(simd_from_int(sum[i][0]), unit * scale0, c0));
      simd_store(to + SIMD_WIDTH, simd_fma(simd_from_int(sum[i][1]), unit * scale1, c1));
    }
  }
}
#define ROUNDED_MICRO(name, run, has_least)                                                                        \
  static __attribute__((noinline)) void name(int runs, const rounded_row *a, const int32_t *b, const float *scale, \
                                             const float *least, float *c) {                                       \
    rounded_runs(run, has_least, runs, a, b, scale, least, c);                                                     \
  }
ROUNDED_MICRO(rounded_of_16, 16, false)
ROUNDED_MICRO(rounded_of_16_least, 16, true)
ROUNDED_MICRO(rounded_of_32, 32, false)
ROUNDED_MICRO(rounded_of_32_least, 32, true)

static void rounded_one_tile(const rounded_job *all, int64_t tile, rounded_blocks *blocks) {
  const gemm_job *job = &all->product;
  const struct gemm_args *args = job->args;
  const bool halves = pair_has_halves(job->type_b), has_least = quant_has_least(job->type_b);
  void (*micro)(int, const rounded_row *, const int32_t *, const float *, const float *, float *) =
      halves      ? has_least ? rounded_of_16_least : rounded_of_16
      : has_least ? rounded_of_32_least
                  : rounded_of_32;
  const int64_t row = tile % job->tiles_m * job->tile_m, column = tile / job->tiles_m * job->tile_n;
  const int rows = (int)(args->m - row < job->tile_m ? args->m - row : job->tile_m);
  const int columns = (int)(args->n - column < job->tile_n ? args->n - column : job->tile_n);
  memset(blocks->c, 0, sizeof blocks->c[0] * (size_t)gemm_even_tile(rows, rows, GEMM_MICRO_M));
  for (int64_t p = 0; p < args->k; p += GEMM_BLOCK_K) {
    const int count = (int)(args->k - p < GEMM_BLOCK_K ? args->k - p : GEMM_BLOCK_K);
    const rounded_row *a = all->a + p / GEMM_BLOCK_K * all->rows + row;
    rounded_pack_b(all, job->args->b, column, columns, p, count, blocks);
    for (int j = 0; j < columns; j += GEMM_MICRO_N) {
      const int panel = j / GEMM_MICRO_N;
      for (int i = 0; i < rows; i += GEMM_MICRO_M)
        micro(count / (halves ? 16 : 32), a + i, blocks->b[panel][0], blocks->scale[panel][0], blocks->least[panel][0],
              &blocks->c[i][j]);
    }
  }
  for (int i = 0; i < rows; i++)
    gemm_finish_row(job, blocks->c[i], 0, row + i, column, columns,
                    (char *)args->c + (row + i) * args->ldc * gemm_value_size(job->type_c));
}

static void rounded_tiles(void *context, int64_t begin, int64_t end) {
  rounded_blocks blocks __attribute__((aligned(64)));
  for (int64_t tile = begin; tile < end; tile++) rounded_one_tile(context, tile, &blocks);
}

/* Whether few rows are rounded too. */
static bool rounds_format(rdna_dtype format) {
#ifdef QUANT_PLANES
  return has_planes(format);
#else
  return true;
#endif
}

/* False where the product must not be rounded, is none of these, or there is no memory for A. */
static bool run_rounded(const gemm_job *product) {
  const struct gemm_args *args = product->args;
  const uint32_t asked = GEMM_MAY_ROUND | GEMM_A_TRANSPOSED | GEMM_B_TRANSPOSED;
  rounded_job job = {.product = *product, .blocks = (args->k + GEMM_BLOCK_K - 1) / GEMM_BLOCK_K};
  if ((args->flags & asked) != (GEMM_MAY_ROUND | GEMM_B_TRANSPOSED) || args->m <= GEMV_MAX_M || args->n <= 0 ||
      args->k <= 0 || args->batch != 1 || args->parts > 1 || !rounds_format(product->type_b))
    return false;
  job.rows = gemm_even_tile(args->m, args->m, GEMM_MICRO_M);
  job.a = malloc((size_t)(job.rows * job.blocks) * sizeof *job.a);
  if (!job.a) return false;
  rdna__parallel_for(job.rows * job.blocks, 64, round_some_rows, &job);
  gemm_cut(&job.product, 1);
  rdna__parallel_for(job.product.tiles_m * job.product.tiles_n, 1, rounded_tiles, &job);
  free(job.a);
  return true;
}
#else
static bool run_rounded(const gemm_job *product) { return false; }
#endif
#endif
