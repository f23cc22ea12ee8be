/* Host code: products of block-quantized weights with few rows of f32 on processors that multiply bytes (AVX-512 VNNI).
 *
 * Codes are bytes. Activations become integers X of 22 bits, four neighbours with a power of two f in common, x = X /
 * f, and each X three signed digits of 8 bits. So each instruction multiplies 64 codes by a digit, sums are exact, and
 * x is rounded to within 2^-22 of the largest of the four that a lane adds up:
 *
 *     64 values of x    digit 2 (high)    64 bytes    sum = dot(codes, digit 2)
 *                       digit 1           64 bytes    sum = sum 2^8 + dot(codes, digit 1)
 *                       digit 0           64 bytes    sum = sum 2^8 + dot(codes, digit 0)
 *
 * A lane sums four neighbours: 4 * 255 * 2^21 is less than 2^31. What is infinite or no number has no digits: then the
 * product is multiplied as f32. Where GEMM_MAY_ROUND allows it two digits do, see quant_digits.h. For quant_host.c
 * only.
 */
#ifndef RDNA_MATH_QUANT_PLANES_H
#define RDNA_MATH_QUANT_PLANES_H

#include "math/gemm/gemm_blocked.h"
#include "math/quant/quant_pairs.h"
#include "math/quant/quant_unpack.h"

#if defined(__AVX512VNNI__)
#define QUANT_PLANES 1

enum { PLANE_VALUES = 64, PLANE_LANES = 16, MOST_PLANES = 2048 }; /* 768 KiB of a thread's stack; more are allocated */

typedef struct planes {
  _Alignas(64) int8_t digit[3][PLANE_VALUES];
  int32_t from[PLANE_LANES]; /* what a lane's sum begins with: -zero times its X */
  float sum[PLANE_LANES];    /* its x */
  float unit[PLANE_LANES];   /* its 1 / f */
} planes;

/* Formats whose codes plane_codes reads. */
QUANT_CONSTANT bool has_planes(rdna_dtype format) { return quant_scales(format) <= RDNA__SCALES_IQ4_XS; }
/* The code of 0 as these sums see it: signed codes and tables are moved by 128. */
QUANT_CONSTANT int plane_zero(rdna_dtype format) {
  return quant_low_bits(format) == 8 || quant_has_table(format) ? 128 : quant_zero(format);
}

/* The units of 64 values, and what the values are multiplied by: powers of two for each four neighbours. */
static void find_units(const __m512 v[4], planes *out, __m512 inverse[4]) {
  enum { LEAST_EXPONENT = 21, X_BITS = 21 };
  for (int i = 0; i < 4; i++) {
    __m512 top = _mm512_abs_ps(v[i]); /* then of each four the largest */
    top = _mm512_max_ps(top, _mm512_permute_ps(top, 0xb1));
    top = _mm512_max_ps(top, _mm512_permute_ps(top, 0x4e));
    __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(top), 23);
    exponent = _mm512_max_epi32(exponent, _mm512_set1_epi32(LEAST_EXPONENT));
    __m512i f = _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(253 + X_BITS), exponent), 23);
    __m512i unit = _mm512_slli_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(X_BITS - 1)), 23);
    _mm512_mask_compressstoreu_ps(out->unit + 4 * i, 0x1111, _mm512_castsi512_ps(unit));
    inverse[i] = _mm512_castsi512_ps(f);
  }
}
/* The digits of |count| values, 32 or 64; the others' are 0. False where a value is infinite or no number. */
static bool make_planes(const float *x, int count, int zero, planes *out) {
  const __m512i half = _mm512_set1_epi32(128), ones = _mm512_set1_epi8(1);
  __m512 v[4], inverse[4];
  for (int i = 0; i < 4; i++) {
    v[i] = 16 * i < count ? _mm512_loadu_ps(x + 16 * i) : _mm512_setzero_ps();
    if (_mm512_fpclass_ps_mask(v[i], 0x99)) return false; /* infinities and NaNs */
  }
  find_units(v, out, inverse);
  for (int i = 0; i < 4; i++) {
    __m512i low = _mm512_cvtps_epi32(_mm512_mul_ps(v[i], inverse[i]));
    __m512i middle = _mm512_srai_epi32(_mm512_add_epi32(low, half), 8);
    __m512i high = _mm512_srai_epi32(_mm512_add_epi32(middle, half), 8);
    _mm_store_si128((__m128i *)(void *)(out->digit[0] + 16 * i), _mm512_cvtepi32_epi8(low));
    _mm_store_si128((__m128i *)(void *)(out->digit[1] + 16 * i), _mm512_cvtepi32_epi8(middle));
    _mm_store_si128((__m128i *)(void *)(out->digit[2] + 16 * i), _mm512_cvtepi32_epi8(high));
  }
  __m512i sum = _mm512_setzero_si512();
  for (int d = 2; d >= 0; d--)
    sum = _mm512_dpbusd_epi32(_mm512_slli_epi32(sum, 8), ones, _mm512_load_si512(out->digit[d]));
  _mm512_store_si512(out->from, _mm512_mullo_epi32(sum, _mm512_set1_epi32(-zero)));
  _mm512_store_ps(out->sum, _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_load_ps(out->unit)));
  return true;
}

SIMD_INLINE __m512i load_twice(const char *p) {
  return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
/* 16 bytes of |p| twice, and 16 of |q| twice. */
SIMD_INLINE __m512i load_two_twice(const char *p, const char *q) {
  __m512i first = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)p));
  return _mm512_mask_broadcast_i32x4(first, 0xff00, _mm_loadu_si128((const __m128i *)(const void *)q));
}
/* Each half of 32 bytes shifted to the right by bits of its own; bits of the neighbours come in from above. */
SIMD_INLINE __m512i shift_halves(__m512i bytes, int low, int high) {
  return _mm512_srlv_epi64(bytes, _mm512_set_epi64(high, high, high, high, low, low, low, low));
}

/* The codes of 64 values from value |v| of the block at |p| on, or of the blocks of 32 at |p| and |q|, as unsigned
 * bytes in order. */
SIMD_INLINE __m512i plane_codes(rdna_dtype format, const char *p, const char *q, int v) {
  const bool pair = quant_values(format) == 32;
  const int other = pair ? 0 : v + 32; /* the second 32 values lie there, from |q| */
  const char *second = pair ? q : p, *low = p + quant_low_at(format, v);
  __m512i codes;
  if (quant_low_bits(format) == 8) {
    codes = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)low)),
        _mm256_loadu_si256((const __m256i *)(const void *)(second + quant_low_at(format, other))), 1);
    return _mm512_xor_si512(codes, _mm512_set1_epi8(-128));
  }
  if (quant_span(format) == 32) {
    codes = load_two_twice(low, second + quant_low_at(format, other));
    codes = _mm512_srlv_epi64(codes, _mm512_set_epi64(4, 4, 0, 0, 4, 4, 0, 0));
  } else if (quant_low_bits(format) == 4 && quant_span(format) == 128) {
    codes =
        _mm512_srli_epi16(_mm512_loadu_si512(p + quant_low_at(format, v / 128 * 128)), (unsigned)(v % 128 / 64 * 4));
  } else {
    codes = shift_halves(load_twice(low), quant_low_shift(format, v), quant_low_shift(format, v + 32));
  }
  codes = _mm512_and_si512(codes, _mm512_set1_epi8((char)quant_low_mask(format)));
  if (quant_has_table(format)) {
    const int first = (int)quant_table_word(format, 0), next = (int)quant_table_word(format, 1),
              third = (int)quant_table_word(format, 2), last = (int)quant_table_word(format, 3);
    __m512i table = _mm512_broadcast_i32x4(_mm_setr_epi32(first, next, third, last));
    table = _mm512_xor_si512(table, _mm512_set1_epi8(-128));
    return _mm512_shuffle_epi8(table, codes);
  }
  if (quant_has_high(format)) {
    __m512i high = shift_halves(load_twice(p + quant_high_at(format, v)), quant_high_shift(format, v),
                                quant_high_shift(format, v + 32));
    high = _mm512_and_si512(high, _mm512_set1_epi8((char)quant_high_mask(format)));
    codes = _mm512_or_si512(codes, _mm512_slli_epi16(high, (unsigned)quant_high_up(format)));
  }
  if (quant_has_fifth_bits(format)) {
    const int at = quant_fifth_bits_at(format);
    uint64_t bits = quant_load_32(format, p + at) | (uint64_t)quant_load_32(format, second + at) << 32;
    codes = _mm512_mask_add_epi8(codes, bits, codes, _mm512_set1_epi8(16));
  }
  return codes;
}

/* For each lane the d of its block of 32, at |p| or |q|, and the m behind it. */
SIMD_INLINE __m512 plane_scale_of_pair(rdna_dtype format, const char *p, const char *q, __m512 *out_least) {
  const int at = quant_d_at(format);
  *out_least = _mm512_setzero_ps();
  if (quant_scales(format) == RDNA__SCALES_D) {
    __m256i d = _mm256_set1_epi16((short)quant_load_16(p + at));
    return _mm512_cvtph_ps(_mm256_mask_set1_epi16(d, 0xff00, (short)quant_load_16(q + at)));
  }
  if (quant_scales(format) == RDNA__SCALES_D_M) {
    __m512i both = _mm512_set1_epi32((int)quant_load_32(format, p + at));
    both = _mm512_mask_set1_epi32(both, 0xff00, (int)quant_load_32(format, q + at));
    *out_least = -_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(both, 16)));
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(both));
  }
  float first = quant_scale_of(format, quant_head_of(format, p, 0), 0).scale;
  float second = quant_scale_of(format, quant_head_of(format, q, 0), 0).scale;
  return _mm512_mask_broadcastss_ps(_mm512_set1_ps(first), 0xff00, _mm_set_ss(second));
}

/* The scales of a block of 256 values, one for each run, and the minimums. They stay in registers: what is stored in
 * parts and loaded as a whole waits for the stores. */
SIMD_INLINE __m512 plane_scales_of_block(rdna_dtype format, const char *block, __m512 *out_least) {
  const struct quant_head h = quant_head_of(format, block, 0);
  const __m512 d = _mm512_set1_ps(f16_to_f32((uint16_t)h.w[0]));
  const __m512 dmin = _mm512_set1_ps(f16_to_f32((uint16_t)(h.w[0] >> 16)));
  const __m512i counted = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  __m128i bytes;
  *out_least = _mm512_setzero_ps();
  switch ((enum rdna__block_scales)quant_scales(format)) {
    case RDNA__SCALES_Q4_K: { /* scales in the lower 8 bytes, minimums in the upper */
      const struct quant_head low = quant_unfold(format, h, 0), high = quant_unfold(format, h, 128);
      bytes = _mm_setr_epi32((int)low.w[1], (int)high.w[1], (int)low.w[2], (int)high.w[2]);
      __m512 both = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_and_si128(bytes, _mm_set1_epi8(63))));
      *out_least = _mm512_mul_ps(_mm512_shuffle_f32x4(both, both, 0xee), dmin);
      return _mm512_mul_ps(both, d);
    }
    case RDNA__SCALES_Q2_K:
      bytes = _mm_loadu_si128((const __m128i *)(const void *)block);
      __m128i upper = _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
      *out_least = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(upper)), dmin);
      return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_and_si128(bytes, _mm_set1_epi8(15)))), d);
    case RDNA__SCALES_Q3_K: { /* low nibbles and pairs above them, four scales in a word */
      const int low = (int)h.w[1], next = (int)h.w[2], pairs = (int)h.w[3];
      bytes = _mm_and_si128(_mm_setr_epi32(low, next, low >> 4, next >> 4), _mm_set1_epi8(15));
      __m128i high = _mm_srlv_epi32(_mm_set1_epi32(pairs), _mm_setr_epi32(0, 2, 4, 6));
      bytes = _mm_or_si128(bytes, _mm_slli_epi16(_mm_and_si128(high, _mm_set1_epi8(3)), 4));
      bytes = _mm_sub_epi8(bytes, _mm_set1_epi8(32));
      return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)), d);
    }
    case RDNA__SCALES_Q6_K:
      bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + 192));
      return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)), d);
    case RDNA__SCALES_IQ4_XS: {
      __m512i low = _mm512_srlv_epi32(_mm512_set1_epi32((int)h.w[1]), _mm512_slli_epi32(counted, 2));
      __m512i high = _mm512_srlv_epi32(_mm512_set1_epi32((int)(h.w[0] >> 16)), _mm512_slli_epi32(counted, 1));
      low = _mm512_and_si512(low, _mm512_set1_epi32(15));
      high = _mm512_slli_epi32(_mm512_and_si512(high, _mm512_set1_epi32(3)), 4);
      return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_or_si512(low, high), _mm512_set1_epi32(32))), d);
    }
    default:
      return d;
  }
}

/* For each lane the scale of its run, where |all| has those of a block of 256 and |v| is the first value. */
SIMD_INLINE __m512 plane_scale_of_runs(rdna_dtype format, __m512 all, int v) {
  const int first = v / quant_run(format);
  __m512i runs = quant_run(format) == 32 ? _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
                                         : _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
  return _mm512_permutexvar_ps(_mm512_add_epi32(runs, _mm512_set1_epi32(first)), all);
}

/* |sum| += the products of 64 codes and a row's digits, times |scale|. */
SIMD_INLINE __m512 add_planes(rdna_dtype format, __m512 sum, __m512i codes, const planes *x, __m512 scale) {
  const __m512i none = _mm512_setzero_si512();
  __m512i low = plane_zero(format) ? _mm512_load_si512(x->from) : none, high;
  high = _mm512_dpbusd_epi32(none, codes, _mm512_load_si512(x->digit[2]));
  low = _mm512_dpbusd_epi32(low, codes, _mm512_load_si512(x->digit[0]));
  high = _mm512_dpbusd_epi32(_mm512_slli_epi32(high, 8), codes, _mm512_load_si512(x->digit[1]));
  __m512 products = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
  return _mm512_fmadd_ps(products, _mm512_mul_ps(scale, _mm512_load_ps(x->unit)), sum);
}

/* What rows of A became before the product, each |row| planes from the next. */
typedef struct plane_job {
  gemm_job product;
  rdna_dtype format;
  planes *planes;
  int64_t row;
  _Atomic bool odd; /* some value is infinite or no number */
} plane_job;

static void make_some_planes(void *context, int64_t begin, int64_t end) {
  plane_job *job = context;
  const struct gemm_args *args = job->product.args;
  for (int64_t i = begin; i < end; i++) {
    int64_t at = i % job->row * PLANE_VALUES, left = args->k - at;
    const float *x = (const float *)args->a + i / job->row * args->lda + at;
    if (!make_planes(x, left < PLANE_VALUES ? (int)left : PLANE_VALUES, plane_zero(job->format), &job->planes[i]))
      job->odd = true;
  }
}
#endif
#endif
