/* Host code: products of block-quantized weights with few rows of f32 on processors that multiply bytes in pairs
 * (AVX2), where GEMM_MAY_ROUND allows it.
 *
 * Each 32 neighbours of a row of activations become whole numbers X of 16 bits, with one unit for all, the largest
 * magnitude over PAIR_MOST, and each X two digits, X = 254 high + low, both from -127 to 127:
 *
 *     32 codes, bytes    times high and times low: neighbours in pairs, in 16 bits: at most 2 * 128 * 127
 *     8 lanes            254 (pair + pair) of high, and pair + pair of low: less than 2^24, exact as a float
 *     sum of a row       += lanes * scale of the run * unit
 *
 * Codes are unsigned as they are stored, or signed: |code| then meets the digit with the code's sign. What a format
 * subtracts meets sums over runs: its minimum those of x, its zero those of X times the unit, or what rounding took
 * would count as often as the stored codes are large. A value is off by at most 2^-15.98 of the largest of its 32, or
 * of 1e-30 if that is more. A row with an infinity or a NaN gives NaN, and changes no other. For quant_host.c only. */
#ifndef RDNA_MATH_QUANT_PAIRS_H
#define RDNA_MATH_QUANT_PAIRS_H

#include "math/gemm/gemm_blocked.h"
#include "math/quant/quant_coded.h"
#include "math/quant/quant_unpack.h"

#if SIMD_WIDTH >= 8
#if SIMD_WIDTH == 8
#define QUANT_PAIRS 1
#endif

enum { PAIR_VALUES = 32, PAIR_MOST = 127 * 254 + 126, MOST_PAIRS = 4096 }; /* 320 KiB of a stack; more are allocated */

enum { PAIR_LEAST_BITS = 0x0da24260 }; /* of 1e-30 */

typedef struct pair_run {
  _Alignas(16) int8_t high[PAIR_VALUES], low[PAIR_VALUES];
  float sum[2]; /* of x, or of X times the unit, over the first 16 values and the others */
  float unit;
  float all; /* both sums */
} pair_run;

/* The bits of the largest magnitude of 32 values, of an infinity or a NaN too; at least those of 1e-30, since a unit
 * that is a thousandth of less would be no normal number. Floats of one sign are in their bits' order. */
SIMD_INLINE uint32_t pair_largest(const __m256 v[4]) {
  const __m256i magnitude = _mm256_set1_epi32(INT32_MAX);
  __m256i top = _mm256_set1_epi32(PAIR_LEAST_BITS);
  for (int i = 0; i < 4; i++) top = _mm256_max_epi32(top, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude));
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return (uint32_t)_mm_cvtsi128_si32(half);
}
SIMD_INLINE float pair_sum(__m256 v) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

/* Whether codes are signed bytes. */
QUANT_CONSTANT bool pair_is_signed(rdna_dtype format) {
  return quant_low_bits(format) == 8 || quant_has_table(format) || quant_is_coded(format);
}
/* Whether each 16 values have a scale, and not each 32. */
QUANT_CONSTANT bool pair_has_halves(rdna_dtype format) {
  return quant_is_coded(format) || (quant_values(format) > 32 && quant_run(format) == 16);
}
/* Whether something is subtracted. */
QUANT_CONSTANT bool pair_has_sums(rdna_dtype format) {
  return !pair_is_signed(format) && (quant_has_least(format) || quant_zero(format) != 0);
}

SIMD_INLINE __m256i pair_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

/* Each bit of |bits| as 16 in its byte. */
SIMD_INLINE __m256i pair_fifth_bits(uint32_t bits) {
  const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
  __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte), bit);
  return _mm256_and_si256(_mm256_cmpeq_epi8(spread, bit), _mm256_set1_epi8(16));
}

/* The codes of 32 values of a block from value |v| on, in order. */
SIMD_INLINE __m256i pair_codes(rdna_dtype format, const char *block, int v) {
  if (quant_is_coded(format)) {
    struct quant_coded c;
    uint64_t eight[4]; /* in registers: what is stored in parts and loaded as a whole waits for the stores */
    if (format != RDNA_TQ1_0) quant_coded_read_run(format, block, v / 32, &c);
#pragma GCC unroll 4
    for (int l = 0; l < 4; l++) {
      struct quant_eight e =
          format == RDNA_TQ1_0 ? quant_trit_eight(block, v + l * 8) : quant_coded_eight(format, &c, l);
      eight[l] = e.w[0] | (uint64_t)e.w[1] << 32;
    }
    return _mm256_setr_epi64x((long long)eight[0], (long long)eight[1], (long long)eight[2], (long long)eight[3]);
  }
  const char *low = block + quant_low_at(format, v);
  if (quant_low_bits(format) == 8) return pair_load(low);
  __m256i codes;
  if (quant_span(format) == 32) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)low);
    codes = _mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes);
  } else {
    codes = _mm256_srli_epi16(pair_load(low), quant_low_shift(format, v));
  }
  codes = _mm256_and_si256(codes, _mm256_set1_epi8((char)quant_low_mask(format)));
  if (quant_has_table(format)) {
    const int first = (int)quant_table_word(format, 0), next = (int)quant_table_word(format, 1),
              third = (int)quant_table_word(format, 2), last = (int)quant_table_word(format, 3);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_setr_epi32(first, next, third, last)), codes);
  }
  if (quant_has_high(format)) {
    __m256i high = _mm256_srli_epi16(pair_load(block + quant_high_at(format, v)), quant_high_shift(format, v));
    high = _mm256_and_si256(high, _mm256_set1_epi8((char)quant_high_mask(format)));
    codes = _mm256_or_si256(codes, _mm256_slli_epi16(high, quant_high_up(format)));
  }
  if (quant_has_fifth_bits(format)) {
    uint32_t bits = quant_load_32(format, block + quant_fifth_bits_at(format));
    codes = _mm256_or_si256(codes, pair_fifth_bits(bits));
  }
  return codes;
}

#ifdef QUANT_PAIRS
/* Sums are those of X where |whole|. The unit is NaN where a value is infinite or none. */
static void make_pairs(const float *x, bool whole, pair_run *out) {
  const __m256 base = _mm256_set1_ps(254), back = _mm256_set1_ps(1.0f / 254);
  __m256 v[4], summed[4];
  __m256i digit[2][4];
  for (int i = 0; i < 4; i++) v[i] = _mm256_loadu_ps(x + 8 * i);
  const uint32_t most = pair_largest(v);
  if (most >= 0x7f800000) {
    memset(out, 0, sizeof *out);
    out->unit = __builtin_nanf("");
    return;
  }
  const float largest = scalar_from_bits(most);
  const __m256 inverse = _mm256_set1_ps(PAIR_MOST / largest);
  out->unit = largest * (1.0f / PAIR_MOST);
  for (int i = 0; i < 4; i++) {
    __m256 rounded = _mm256_round_ps(_mm256_mul_ps(v[i], inverse), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 high = _mm256_round_ps(_mm256_mul_ps(rounded, back), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    summed[i] = whole ? rounded : v[i];
    digit[0][i] = _mm256_cvtps_epi32(high);
    digit[1][i] = _mm256_cvtps_epi32(_mm256_fnmadd_ps(high, base, rounded));
  }
  for (int d = 0; d < 2; d++) { /* packing leaves four values of each vector in turn */
    __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(digit[d][0], digit[d][1]), _mm256_packs_epi32(digit[d][2], digit[d][3]));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)(d == 0 ? out->high : out->low), bytes);
  }
  const float times = whole ? out->unit : 1;
  out->sum[0] = pair_sum(_mm256_add_ps(summed[0], summed[1])) * times;
  out->sum[1] = pair_sum(_mm256_add_ps(summed[2], summed[3])) * times;
  out->all = out->sum[0] + out->sum[1];
}

/* Eight sums of four products each, of 32 codes and a row's numbers. */
SIMD_INLINE __m256 pair_products(rdna_dtype format, __m256i codes, __m256i sizes, const pair_run *x) {
  __m256i high = pair_load(x->high), low = pair_load(x->low);
  if (pair_is_signed(format)) high = _mm256_sign_epi8(high, codes), low = _mm256_sign_epi8(low, codes);
  high = _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, high), _mm256_set1_epi16(254));
  low = _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, low), _mm256_set1_epi16(1));
  return _mm256_cvtepi32_ps(_mm256_add_epi32(high, low));
}

/* What rows of A became before the product, each |row| pairs from the next. */
typedef struct pair_job {
  gemm_job product;
  pair_run *pairs;
  int64_t row;
} pair_job;

static void make_some_pairs(void *context, int64_t begin, int64_t end) {
  pair_job *job = context;
  const struct gemm_args *args = job->product.args;
  for (int64_t i = begin; i < end; i++) {
    const float *x = (const float *)args->a + i / job->row * args->lda + i % job->row * PAIR_VALUES;
    make_pairs(x, !quant_has_least(job->product.type_b), &job->pairs[i]);
  }
}
#endif
#endif
#endif
