// Half precision, single and packed: widened to float (to double for FMA), computed there, rounded once.
#include "machine/valu.h"

typedef float floats[EMU_HALF] __attribute__((aligned(64)));

// The low half of each lane, shifted down first.
static void widen(const uint32_t *from, int shift, float *to) {
  for (int l = 0; l < EMU_HALF; l += 8) {
    __m256i v = _mm256_loadu_si256((const void *)(from + l));
    v = _mm256_and_si256(_mm256_srl_epi32(v, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(0xffff));
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm256_store_ps(to + l, _mm256_cvtph_ps(packed));
  }
}

static void narrow(const float *from, uint32_t *to) {
  for (int l = 0; l < EMU_HALF; l += 8) {
    __m128i packed = _mm256_cvtps_ph(_mm256_load_ps(from + l), _MM_FROUND_CUR_DIRECTION);
    _mm256_storeu_si256((void *)(to + l), _mm256_cvtepu16_epi32(packed));
  }
}

static uint32_t nan_of(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t am = a & 0x7fff, bm = b & 0x7fff;
  if ((am == 0x7c00 && !bm) || (bm == 0x7c00 && !am)) return 0xfe00;
  return emu__nan16(a, b, c);
}

static void fix_nan(const struct emu_half_wave *x, unsigned sources, int shift, const float *r, uint32_t *bits) {
  uint32_t bad = 0;
  EMU_EACH bad |= r[l] != r[l];
  if (!bad) return;
  EMU_EACH {
    if (r[l] == r[l]) continue;
    uint32_t a = x->s[0][l] >> shift, b = sources > 1 ? x->s[1][l] >> shift : 0;
    bits[l] = sources > 2 ? nan_of(a, b, x->s[2][l] >> shift) : emu__nan16(a, b, 0);
  }
}

// `name` does the low half; `pk_name` both. Some operations have only one of them.
#define BOTH(name)                                                                               \
  __attribute__((unused)) static void name(struct emu_half_wave *x) { half_##name(x, 0, x->d); } \
  __attribute__((unused)) static void pk_##name(struct emu_half_wave *x) {                       \
    uint32_t low[EMU_HALF], high[EMU_HALF];                                                      \
    half_##name(x, 0, low);                                                                      \
    half_##name(x, 16, high);                                                                    \
    EMU_EACH x->d[l] = (low[l] & 0xffff) | high[l] << 16;                                        \
  }
#define OP2(name, expression)                                                       \
  static void half_##name(const struct emu_half_wave *x, int shift, uint32_t *to) { \
    floats a, b, r;                                                                 \
    uint32_t bits[EMU_HALF];                                                        \
    widen(x->s[0], shift, a), widen(x->s[1], shift, b);                             \
    EMU_EACH r[l] = expression;                                                     \
    narrow(r, bits);                                                                \
    fix_nan(x, 2, shift, r, bits);                                                  \
    emu__copy(to, bits);                                                            \
  }                                                                                 \
  BOTH(name)
OP2(add, a[l] + b[l])
OP2(sub, a[l] - b[l])
OP2(subrev, b[l] - a[l])
OP2(mul, a[l] * b[l])

// The product is exact in double, and what the sum loses there cannot reach a tie of the halves.
static void half_fma_(const struct emu_half_wave *x, int shift, uint32_t *to) {
  floats a, b, c, r;
  uint32_t bits[EMU_HALF];
  widen(x->s[0], shift, a), widen(x->s[1], shift, b), widen(x->s[2], shift, c);
  EMU_EACH {
    double v = (double)a[l] * (double)b[l] + (double)c[l];
    float f = (float)v;
    uint32_t u = emu__bits32(f);
    // to odd, for the rounding that follows
    bool beyond = __builtin_fabs((double)f) > __builtin_fabs(v), inexact = (double)f != v && v == v;
    u = inexact ? (u - beyond) | 1 : u;
    r[l] = emu__f32(u);
  }
  narrow(r, bits);
  fix_nan(x, 3, shift, r, bits);
  emu__copy(to, bits);
}
BOTH(fma_)

// The product is rounded before the sum, whose rounding to a float on the way to the half can reach no tie.
static void mad(struct emu_half_wave *x) {
  floats a, b, c, r;
  uint32_t product[EMU_HALF];
  widen(x->s[0], 0, a), widen(x->s[1], 0, b), widen(x->s[2], 0, c);
  EMU_EACH r[l] = a[l] * b[l];
  narrow(r, product);
  widen(product, 0, a);
  EMU_EACH r[l] = a[l] + c[l];
  narrow(r, product);
  fix_nan(x, 3, 0, r, product);
  emu__copy(x->d, product);
}

// ---- minimum and maximum, as in single precision

static inline int32_t order(uint32_t bits) {
  int32_t v = (int16_t)bits;
  return v ^ ((v >> 15) & 0x7fff);
}
static bool is_signaling(uint32_t bits) { return emu__is_nan16(bits) && !(bits & 0x200); }
static uint32_t pick(uint32_t a, uint32_t b, bool maximum, uint32_t mode) {
  a &= 0xffff, b &= 0xffff;
  if (mode & EMU_MODE_IEEE && (is_signaling(a) || is_signaling(b))) return (is_signaling(a) ? a : b) | 0x200;
  if (emu__is_nan16(a) && emu__is_nan16(b)) return a | (mode & EMU_MODE_2019 ? 0x200 : 0);
  if (emu__is_nan16(a) || emu__is_nan16(b)) return emu__is_nan16(a) ? b : a;
  return (maximum ? order(a) >= order(b) : order(a) <= order(b)) ? a : b;
}
static uint32_t pass(uint32_t a, uint32_t b, bool maximum, uint32_t mode) {
  (void)mode;
  a &= 0xffff, b &= 0xffff;
  if (is_signaling(a) || is_signaling(b)) return (is_signaling(a) ? a : b) | 0x200;
  if (emu__is_nan16(a) || emu__is_nan16(b)) return emu__is_nan16(a) ? a : b;
  return (maximum ? order(a) >= order(b) : order(a) <= order(b)) ? a : b;
}
#define SELECT2(name, pick, maximum)                                                   \
  static void half_##name(const struct emu_half_wave *x, int shift, uint32_t *to) {    \
    EMU_EACH to[l] = pick(x->s[0][l] >> shift, x->s[1][l] >> shift, maximum, x->mode); \
  }                                                                                    \
  BOTH(name)
SELECT2(min2, pick, false)
SELECT2(max2, pick, true)
SELECT2(minimum2, pass, false)
SELECT2(maximum2, pass, true)
#define SELECT3(name, pick, first, second)                                                              \
  static void name(struct emu_half_wave *x) {                                                           \
    EMU_EACH x->d[l] = pick(pick(x->s[0][l], x->s[1][l], first, x->mode), x->s[2][l], second, x->mode); \
  }
#define SELECT3_PAIR(name, maximum)                                                      \
  static void half_##name(const struct emu_half_wave *x, int shift, uint32_t *to) {      \
    EMU_EACH {                                                                           \
      uint32_t first = pass(x->s[0][l] >> shift, x->s[1][l] >> shift, maximum, x->mode); \
      to[l] = pass(first, x->s[2][l] >> shift, maximum, x->mode);                        \
    }                                                                                    \
  }                                                                                      \
  BOTH(name)
SELECT3_PAIR(pair_minimum3, false)
SELECT3_PAIR(pair_maximum3, true)
SELECT3(min3, pick, false, false)
SELECT3(max3, pick, true, true)
SELECT3(minmax, pick, false, true)
SELECT3(maxmin, pick, true, false)
SELECT3(minimum3, pass, false, false)
SELECT3(maximum3, pass, true, true)
SELECT3(minimummaximum, pass, false, true)
SELECT3(maximumminimum, pass, true, false)
static void med3(struct emu_half_wave *x) {
  uint32_t m = x->mode;
  EMU_EACH {
    uint32_t a = x->s[0][l], b = x->s[1][l], c = x->s[2][l], low = pick(a, b, false, m);
    bool nan = emu__is_nan16(a) || emu__is_nan16(b) || emu__is_nan16(c);
    x->d[l] = nan ? pick(low, c, false, m) : pick(low, pick(pick(a, b, true, m), c, false, m), true, m);
  }
}

// ---- to whole numbers, exponents

#define ROUND(name, how)                                                   \
  static void name(struct emu_half_wave *x) {                              \
    floats a;                                                              \
    widen(x->s[0], 0, a);                                                  \
    for (int l = 0; l < EMU_HALF; l += 8) {                                \
      _mm256_store_ps(a + l, _mm256_round_ps(_mm256_load_ps(a + l), how)); \
    }                                                                      \
    narrow(a, x->d);                                                       \
  }
ROUND(floor_, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
ROUND(ceil_, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
ROUND(trunc_, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
ROUND(rndne, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

static void fract(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t bits = x->s[0][l] & 0xffff;
    float a = emu__f16_to_f32((uint16_t)bits);
    uint32_t r = emu__f32_to_f16(a - __builtin_floorf(a));
    x->d[l] = emu__is_nan16(r) ? emu__nan16(bits, 0, 0) : r > 0x3bff && !(r & 0x8000) ? 0x3bff : r;
  }
}
static void ldexp_(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t bits = x->s[0][l] & 0xffff;
    int n = (int16_t)x->s[1][l];
    n = n < -60 ? -60 : n > 60 ? 60 : n;
    float a = emu__f16_to_f32((uint16_t)bits) * emu__f32((uint32_t)(n + 127) << 23);
    x->d[l] = emu__is_nan16(bits) ? bits | 0x200 : emu__f32_to_f16(a);
  }
}
static void frexp_exp(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t m = x->s[0][l] & 0x7fff;
    int e = m >> 10 ? (int)(m >> 10) - 14 : m ? 8 - __builtin_clz(m) : 0;
    x->d[l] = !m || m >= 0x7c00 ? 0 : (uint32_t)e & 0xffff;
  }
}
static void frexp_mant(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t bits = x->s[0][l] & 0xffff, m = bits & 0x7fff;
    if (m && m < 0x400) m <<= __builtin_clz(m) - 21;
    x->d[l] = !m || m == 0x7c00 ? bits : m > 0x7c00 ? bits | 0x200 : (bits & 0x8000) | 0x3800 | (m & 0x3ff);
  }
}

// v_fma_mixlo and v_fma_mixhi: the product and sum are a float's, rounded again to the half.
static void fma_mix(struct emu_half_wave *x) {
  floats r;
  EMU_EACH r[l] = __builtin_fmaf(emu__f32(x->s[0][l]), emu__f32(x->s[1][l]), emu__f32(x->s[2][l]));
  EMU_EACH {
    if (r[l] == r[l]) continue;
    float product = emu__f32(x->s[0][l]) * emu__f32(x->s[1][l]);
    r[l] = emu__f32(emu__nan32(x->s[0][l], x->s[1][l], product == product ? x->s[2][l] : 0xffc00000));
  }
  narrow(r, x->d);
}

#define F(name, function) EMU_ALU_F(name, function, 64)
const struct emu_action emu__half_actions[] = {F(V_ADD_F16, add),
                                               F(V_SUB_F16, sub),
                                               F(V_SUBREV_F16, subrev),
                                               F(V_MUL_F16, mul),
                                               F(V_FMA_F16, fma_),
                                               F(V_FMAC_F16, fma_),
                                               F(V_FMAMK_F16, fma_),
                                               F(V_FMAAK_F16, fma_),
                                               F(V_FMA_LEGACY_F16, fma_),
                                               F(V_MAD_F16, mad),
                                               F(V_MAD_LEGACY_F16, mad),
                                               F(V_MAC_F16, mad),
                                               F(V_MADMK_F16, mad),
                                               F(V_MADAK_F16, mad),
                                               F(V_MIN_F16, min2),
                                               F(V_MAX_F16, max2),
                                               F(V_MIN3_F16, min3),
                                               F(V_MAX3_F16, max3),
                                               F(V_MED3_F16, med3),
                                               F(V_MAXMIN_F16, maxmin),
                                               F(V_MINMAX_F16, minmax),
                                               F(V_MINIMUM_F16, minimum2),
                                               F(V_MAXIMUM_F16, maximum2),
                                               F(V_MINIMUM3_F16, minimum3),
                                               F(V_MAXIMUM3_F16, maximum3),
                                               F(V_MINIMUMMAXIMUM_F16, minimummaximum),
                                               F(V_MAXIMUMMINIMUM_F16, maximumminimum),
                                               F(V_FLOOR_F16, floor_),
                                               F(V_CEIL_F16, ceil_),
                                               F(V_TRUNC_F16, trunc_),
                                               F(V_RNDNE_F16, rndne),
                                               F(V_FRACT_F16, fract),
                                               F(V_LDEXP_F16, ldexp_),
                                               F(V_FREXP_EXP_I16_F16, frexp_exp),
                                               F(V_FREXP_MANT_F16, frexp_mant),
                                               F(V_PK_ADD_F16, pk_add),
                                               F(V_PK_MUL_F16, pk_mul),
                                               F(V_PK_FMA_F16, pk_fma_),
                                               F(V_PK_FMAC_F16, pk_fma_),
                                               F(V_PK_MIN_F16, pk_min2),
                                               F(V_PK_MAX_F16, pk_max2),
                                               F(V_PK_MINIMUM_F16, pk_minimum2),
                                               F(V_PK_MINIMUM3_F16, pk_pair_minimum3),
                                               F(V_PK_MAXIMUM3_F16, pk_pair_maximum3),
                                               F(V_PK_MAXIMUM_F16, pk_maximum2),
                                               F(V_FMA_MIXLO_F16, fma_mix),
                                               F(V_FMA_MIXHI_F16, fma_mix),
                                               {0}};
