// Single precision. Rounding and denormals are the host's, set from MODE by the caller; what NaN comes out, and the
// order of -0 and +0, are decided here as RDNA does.
#include "machine/valu.h"

// The arithmetic is written on vectors of eight lanes that stay in registers: these operations are most of what
// kernels execute.
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

// An invalid product gives the default NaN even when the addend is a NaN itself.
static uint32_t nan_of(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t am = a & 0x7fffffff, bm = b & 0x7fffffff;
  // as floats: MODE may make a denormal a zero
  if ((am == 0x7f800000 && emu__f32(b) == 0) || (bm == 0x7f800000 && emu__f32(a) == 0)) return 0xffc00000;
  return emu__nan32(a, b, c);
}

__attribute__((noinline, cold)) static void fix_nan(const struct emu_half_wave *x, unsigned sources, eight *v) {
  emu_f32 *r = (emu_f32 *)v;
  EMU_EACH {
    if (r[l] == r[l]) continue;
    uint32_t b = sources > 1 ? x->s[1][l] : 0;
    r[l] = emu__f32(sources > 2 ? nan_of(x->s[0][l], b, x->s[2][l]) : emu__nan32(x->s[0][l], b, 0));
  }
}

static inline eight eight_of(const struct emu_half_wave *x, unsigned source, int i) {
  return ((const eight *)x->s[source])[i];
}
static inline void put_result(const struct emu_half_wave *x, eight r0, eight r1, eight r2, eight r3) {
  eight *d = (eight *)x->d;
  d[0] = r0, d[1] = r1, d[2] = r2, d[3] = r3;
}
static inline bool has_nan(eight r0, eight r1, eight r2, eight r3) {
  __m256 odd = _mm256_or_ps(_mm256_cmp_ps((__m256)r0, (__m256)r1, _CMP_UNORD_Q),
                            _mm256_cmp_ps((__m256)r2, (__m256)r3, _CMP_UNORD_Q));
  return __builtin_expect(!_mm256_testz_ps(odd, odd), 0);
}

static inline eight zero_product(eight a, eight b, eight product, eight otherwise) {
  eight zero = {0};
  return (eight)_mm256_blendv_ps((__m256)product, (__m256)otherwise,
                                 _mm256_or_ps(_mm256_cmp_ps((__m256)a, (__m256)zero, _CMP_EQ_OQ),
                                              _mm256_cmp_ps((__m256)b, (__m256)zero, _CMP_EQ_OQ)));
}
static inline eight fma8(eight a, eight b, eight c) { return (eight)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
// The result goes out last: `d` may be a source's register. name_numbers: unless a NaN comes out: then nothing is done,
// and it is false.
#define EIGHT(name, i, sources) \
  name##_eight(eight_of(x, 0, i), eight_of(x, 1, i), sources > 2 ? eight_of(x, 2, i) : eight_of(x, 0, i))
#define COMPUTED(name, sources)                                     \
  eight r0 = EIGHT(name, 0, sources), r1 = EIGHT(name, 1, sources); \
  eight r2 = EIGHT(name, 2, sources), r3 = EIGHT(name, 3, sources);
#define OPERATION(name, sources, expression)                                                        \
  static inline eight name##_eight(eight a, eight b, eight c) {                                     \
    (void)c;                                                                                        \
    return expression;                                                                              \
  }                                                                                                 \
  __attribute__((always_inline)) static inline bool name##_numbers(const struct emu_half_wave *x) { \
    COMPUTED(name, sources)                                                                         \
    if (has_nan(r0, r1, r2, r3)) return false;                                                      \
    put_result(x, r0, r1, r2, r3);                                                                  \
    return true;                                                                                    \
  }                                                                                                 \
  EMU_LANES name(struct emu_half_wave *x) {                                                         \
    COMPUTED(name, sources)                                                                         \
    if (has_nan(r0, r1, r2, r3)) {                                                                  \
      eight r[EMU_HALF / 8] = {r0, r1, r2, r3};                                                     \
      fix_nan(x, sources, r);                                                                       \
      put_result(x, r[0], r[1], r[2], r[3]);                                                        \
    } else {                                                                                        \
      put_result(x, r0, r1, r2, r3);                                                                \
    }                                                                                               \
  }
#define OP(name, sources, expression)  \
  OPERATION(name, sources, expression) \
  EMU_PLAIN_ROWS(name, sources, name##_numbers(&x))
#define OP2(name, expression) OP(name, 2, expression)
#define OP3(name, expression) OP(name, 3, expression)
OP2(add, a + b)
OP2(sub, a - b)
OP2(subrev, b - a)
OP2(mul, a *b)
OP2(mul_dx9, zero_product(a, b, a *b, (eight){0}))
OP3(fma_, fma8(a, b, c))
OPERATION(fma_or_last, 3, zero_product(a, b, fma8(a, b, c), c))

// A zero wins over a NaN beside it: only the third source is left then.
static void fma_dx9(struct emu_half_wave *x) {
  uint32_t a[EMU_HALF] __attribute__((aligned(64))), b[EMU_HALF] __attribute__((aligned(64)));
  EMU_EACH {
    bool zero = emu__f32(x->s[0][l]) == 0 || emu__f32(x->s[1][l]) == 0;
    a[l] = zero ? 0 : x->s[0][l];
    b[l] = zero ? 0 : x->s[1][l];
  }
  struct emu_half_wave y = *x;
  y.s[0] = a;
  y.s[1] = b;
  fma_or_last(&y);
}

// For lighting, with the guards of the instruction set guide; 0 times anything is 0.
static void mullit(struct emu_half_wave *x) {
  uint32_t guarded[EMU_HALF];  // before the destination is written, which may be a source
  EMU_EACH guarded[l] = !(emu__f32(x->s[1][l]) > -__FLT_MAX__) || !(emu__f32(x->s[2][l]) > 0);
  mul_dx9(x);
  EMU_EACH x->d[l] = guarded[l] ? 0xff7fffff : x->d[l];
}

// ---- minimum and maximum: on integers that order like the floats, -0 below +0

static inline int32_t order(uint32_t bits) { return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) >> 1)); }

static inline uint32_t flush(uint32_t bits) { return bits & 0x7f800000 ? bits : bits & 0x80000000; }

// V_MAD_MIXLO and _MIXHI lose the half's denormals too, whatever MODE says. Source: Mesa, which met it on cards of
// GFX9.
static uint32_t flush_half(uint32_t half) { return half & 0x7c00 ? half : half & 0x8000; }

// V_MAD and V_MAC: the product is rounded, then the sum, and denormals are zeros whatever MODE says. legacy: 0 times
// anything is 0.
static uint32_t mad_one(uint32_t a, uint32_t b, uint32_t c, bool legacy) {
  a = flush(a), b = flush(b), c = flush(c);
  bool zero = legacy && (emu__f32(a) == 0 || emu__f32(b) == 0);
  float product = zero ? 0 : emu__f32(flush(emu__bits32(emu__f32(a) * emu__f32(b)))), r = product + emu__f32(c);
  if (r == r) return flush(emu__bits32(r));
  return product == product ? emu__nan32(c, 0, 0) : emu__nan32(a, b, 0xffc00000);
}
static void mad(struct emu_half_wave *x) { EMU_EACH x->d[l] = mad_one(x->s[0][l], x->s[1][l], x->s[2][l], false); }
static void mad_mix(struct emu_half_wave *x) {
  EMU_EACH x->d[l] = flush_half(emu__f32_to_f16(emu__f32(mad_one(x->s[0][l], x->s[1][l], x->s[2][l], false))));
}
static void mad_dx9(struct emu_half_wave *x) { EMU_EACH x->d[l] = mad_one(x->s[0][l], x->s[1][l], x->s[2][l], true); }

static bool is_signaling(uint32_t bits) { return emu__is_nan32(bits) && !(bits & 0x400000); }

// Under IEEE rules a signaling NaN comes out, quiet; otherwise the number is preferred.
static uint32_t pick(uint32_t a, uint32_t b, bool maximum, uint32_t mode) {
  if (mode & EMU_MODE_IEEE && (is_signaling(a) || is_signaling(b))) return (is_signaling(a) ? a : b) | 0x400000;
  if (emu__is_nan32(a) && emu__is_nan32(b)) return a | (mode & EMU_MODE_2019 ? 0x400000 : 0);
  if (emu__is_nan32(a) || emu__is_nan32(b)) return emu__is_nan32(a) ? b : a;
  return (maximum ? order(a) >= order(b) : order(a) <= order(b)) ? a : b;
}

// A NaN passes on, a signaling one before others.
static uint32_t pass(uint32_t a, uint32_t b, bool maximum) {
  if (is_signaling(a) || is_signaling(b)) return (is_signaling(a) ? a : b) | 0x400000;
  if (emu__is_nan32(a) || emu__is_nan32(b)) return emu__is_nan32(a) ? a : b;
  return (maximum ? order(a) >= order(b) : order(a) <= order(b)) ? a : b;
}

static void select_two(const uint32_t *a, const uint32_t *b, bool maximum, uint32_t mode, uint32_t *r) {
  uint32_t bad = 0;
  bool flushes = !(mode & 0x10);
  EMU_EACH {
    uint32_t va = flushes ? flush(a[l]) : a[l], vb = flushes ? flush(b[l]) : b[l];
    bad |= (uint32_t)emu__is_nan32(va) | (uint32_t)emu__is_nan32(vb);
    r[l] = (maximum ? order(va) >= order(vb) : order(va) <= order(vb)) ? va : vb;
  }
  if (bad) EMU_EACH r[l] = pick(flushes ? flush(a[l]) : a[l], flushes ? flush(b[l]) : b[l], maximum, mode);
  if (!(mode & 0x20)) EMU_EACH r[l] = flush(r[l]);
}

#define SELECT2(name, maximum)                         \
  EMU_LANES name(struct emu_half_wave *x) {            \
    uint32_t r[EMU_HALF];                              \
    select_two(x->s[0], x->s[1], maximum, x->mode, r); \
    emu__copy(x->d, r);                                \
  }                                                    \
  EMU_PLAIN(name, 2)
SELECT2(min2, false)
SELECT2(max2, true)
#define SELECT3(name, first, second)                 \
  static void name(struct emu_half_wave *x) {        \
    uint32_t t[EMU_HALF], r[EMU_HALF];               \
    select_two(x->s[0], x->s[1], first, x->mode, t); \
    select_two(t, x->s[2], second, x->mode, r);      \
    emu__copy(x->d, r);                              \
  }
SELECT3(min3, false, false)
SELECT3(max3, true, true)
SELECT3(minmax, false, true)
SELECT3(maxmin, true, false)

static void pass_two(const uint32_t *a, const uint32_t *b, bool maximum, uint32_t mode, uint32_t *r) {
  bool flushes = !(mode & 0x10);
  EMU_EACH {
    uint32_t v = pass(flushes ? flush(a[l]) : a[l], flushes ? flush(b[l]) : b[l], maximum);
    r[l] = mode & 0x20 ? v : flush(v);
  }
}
#define PASS2(name, maximum) \
  static void name(struct emu_half_wave *x) { pass_two(x->s[0], x->s[1], maximum, x->mode, x->d); }
PASS2(minimum2, false)
PASS2(maximum2, true)
#define PASS3(name, first, second)                 \
  static void name(struct emu_half_wave *x) {      \
    uint32_t t[EMU_HALF];                          \
    pass_two(x->s[0], x->s[1], first, x->mode, t); \
    pass_two(t, x->s[2], second, x->mode, x->d);   \
  }
PASS3(minimum3, false, false)
PASS3(maximum3, true, true)
PASS3(minimummaximum, false, true)
PASS3(maximumminimum, true, false)

// The middle of three; with a NaN among them, the minimum.
static void med3(struct emu_half_wave *x) {
  uint32_t low[EMU_HALF], high[EMU_HALF], least[EMU_HALF], r[EMU_HALF];
  select_two(x->s[0], x->s[1], false, x->mode, low);
  select_two(x->s[0], x->s[1], true, x->mode, high);
  select_two(low, x->s[2], false, x->mode, least);
  select_two(high, x->s[2], false, x->mode, r);
  select_two(low, r, true, x->mode, r);
  EMU_EACH {
    if (emu__is_nan32(x->s[0][l]) || emu__is_nan32(x->s[1][l]) || emu__is_nan32(x->s[2][l])) r[l] = least[l];
  }
  emu__copy(x->d, r);
}

// ---- to whole numbers

#define ROUND(name, how)                                                               \
  static void name(struct emu_half_wave *x) {                                          \
    for (int l = 0; l < EMU_HALF; l += 8) {                                            \
      __m256 v = _mm256_castsi256_ps(_mm256_loadu_si256((const void *)(x->s[0] + l))); \
      v = _mm256_round_ps(v, how | _MM_FROUND_NO_EXC);                                 \
      _mm256_storeu_si256((void *)(x->d + l), _mm256_castps_si256(v));                 \
    }                                                                                  \
  }
ROUND(floor_, _MM_FROUND_TO_NEG_INF)
ROUND(ceil_, _MM_FROUND_TO_POS_INF)
ROUND(trunc_, _MM_FROUND_TO_ZERO)
ROUND(rndne, _MM_FROUND_TO_NEAREST_INT)

static void fract(struct emu_half_wave *x) {
  EMU_EACH {
    float a = emu__f32(x->s[0][l]), r = a - __builtin_floorf(a);
    const float below_one = 0x1.fffffep-1f;
    if (r > below_one) r = below_one;
    x->d[l] = r == r ? emu__bits32(r) : emu__nan32(x->s[0][l], 0, 0);
  }
}

// ---- exponents

static void ldexp_(struct emu_half_wave *x) {
  EMU_EACH {
    float a = emu__f32(x->s[0][l]);
    int32_t n = (int32_t)x->s[1][l];
    n = n < -400 ? -400 : n > 400 ? 400 : n;
    // exact in double, so rounded once
    float r = (float)((double)a * emu__f64((uint64_t)(n + 1023) << 52));
    x->d[l] = a == a ? emu__bits32(r) : x->s[0][l] | 0x400000;
  }
}

static inline int exponent_of(uint32_t magnitude) {
  return magnitude >> 23 ? (int)(magnitude >> 23) - 126 : -117 - __builtin_clz(magnitude);
}
static void frexp_exp(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t m = x->s[0][l] & 0x7fffffff;
    if (m < 0x800000 && !(x->mode & 0x10)) m = 0;
    x->d[l] = !m || m >= 0x7f800000 ? 0 : (uint32_t)exponent_of(m);
  }
}
static void frexp_mant(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t bits = x->s[0][l], m = bits & 0x7fffffff;
    if (m < 0x800000 && !(x->mode & 0x10)) m = 0, bits &= 0x80000000;
    if (!m || m == 0x7f800000) {
      x->d[l] = bits;
    } else if (m > 0x7f800000) {
      x->d[l] = bits | 0x400000;
    } else {
      if (m < 0x800000) m <<= __builtin_clz(m) - 8;
      x->d[l] = (bits & 0x80000000) | 0x3f000000 | (m & 0x7fffff);
    }
  }
}

// ---- cube maps: which face, and the coordinates on it

static unsigned cube_face(float a, float b, float c) {
  float aa = __builtin_fabsf(a), ab = __builtin_fabsf(b), ac = __builtin_fabsf(c);
  if (ac >= aa && ac >= ab) return c < 0 ? 5 : 4;
  if (ab >= aa) return b < 0 ? 3 : 2;
  return a < 0 ? 1 : 0;
}
#define CUBE(name, expression)                                                            \
  static void name(struct emu_half_wave *x) {                                             \
    EMU_EACH {                                                                            \
      float a = emu__f32(x->s[0][l]), b = emu__f32(x->s[1][l]), c = emu__f32(x->s[2][l]); \
      unsigned face = cube_face(a, b, c);                                                 \
      const float table[6] = expression;                                                  \
      x->d[l] = emu__bits32(table[face]);                                                 \
    }                                                                                     \
  }
#define LIST(...) {__VA_ARGS__}
CUBE(cube_id, LIST(0, 1, 2, 3, 4, 5))
CUBE(cube_sc, LIST(-c, c, a, a, a, -a))
CUBE(cube_tc, LIST(-b, -b, c, -c, -b, -b))
CUBE(cube_ma, LIST(2 * a, 2 * a, 2 * b, 2 * b, 2 * c, 2 * c))

// VOPD of the operations that products of matrices are made of. Where the second meets a NaN, the first has already
// written, which changes nothing for it.
#define DUAL(one, one_sources, two, two_sources)                                                              \
  __attribute__((noinline)) static void one##_and_##two##_any(struct emu_wave *w, const struct emu_step *s) { \
    emu__run_dual(w, s, one, one_sources, two, two_sources);                                                  \
  }                                                                                                           \
  static void one##_and_##two(struct emu_wave *w, const struct emu_step *s) {                                 \
    if (emu__is_rows(w, s)) {                                                                                 \
      struct emu_half_wave x, y;                                                                              \
      emu__rows(w, s, one_sources, &x);                                                                       \
      emu__second_rows(w, s, two_sources, &y);                                                                \
      if (one##_numbers(&x)) {                                                                                \
        if (!two##_numbers(&y)) two##_second(w, s);                                                           \
        return;                                                                                               \
      }                                                                                                       \
    }                                                                                                         \
    one##_and_##two##_any(w, s);                                                                              \
  }
// With the rules for NaN.
#define SECOND(name, sources)                                                                               \
  __attribute__((noinline, cold)) static void name##_second(struct emu_wave *w, const struct emu_step *s) { \
    struct emu_half_wave x;                                                                                 \
    emu__second_rows(w, s, sources, &x);                                                                    \
    name(&x);                                                                                               \
  }
SECOND(add, 2)
SECOND(mul, 2)
SECOND(fma_, 3)
DUAL(fma_, 3, fma_, 3)
DUAL(fma_, 3, mul, 2)
DUAL(mul, 2, fma_, 3)
DUAL(mul, 2, mul, 2)
DUAL(add, 2, add, 2)
DUAL(mul, 2, add, 2)
DUAL(add, 2, mul, 2)

emu_step_fn *emu__float_pair(emu_lanes_fn *first, emu_lanes_fn *second) {
  static const struct {
    emu_lanes_fn *first, *second;
    emu_step_fn *run;
  } pairs[] = {{fma_, fma_, fma__and_fma_}, {fma_, mul, fma__and_mul}, {mul, fma_, mul_and_fma_},
               {mul, mul, mul_and_mul},     {add, add, add_and_add},   {mul, add, mul_and_add},
               {add, mul, add_and_mul}};
  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
    if (pairs[i].first == first && pairs[i].second == second) return pairs[i].run;
  return NULL;
}

#define F(name, function) EMU_ALU_F(name, function, 32)
#define DIRECT(name, function) EMU_ALU_F_PLAIN(name, function, 32)
// Two floats in two registers.
#define PACKED(name, one)                                                  \
  static void name(struct emu_half_wave *x) {                              \
    struct emu_half_wave low = *x, high = *x;                              \
    high.d = x->d + EMU_HALF;                                              \
    for (int i = 0; i < 3 && x->s[i]; i++) high.s[i] = x->s[i] + EMU_HALF; \
    one(&low);                                                             \
    one(&high);                                                            \
  }
PACKED(pk_fma, fma_)
PACKED(pk_mul, mul)
PACKED(pk_add, add)

const struct emu_action emu__float_actions[] = {DIRECT(V_ADD_F32, add),
                                                DIRECT(V_SUB_F32, sub),
                                                DIRECT(V_SUBREV_F32, subrev),
                                                DIRECT(V_MUL_F32, mul),
                                                DIRECT(V_MUL_DX9_ZERO_F32, mul_dx9),
                                                DIRECT(V_FMA_F32, fma_),
                                                DIRECT(V_FMAC_F32, fma_),
                                                DIRECT(V_FMAMK_F32, fma_),
                                                DIRECT(V_FMAAK_F32, fma_),
                                                F(V_FMA_DX9_ZERO_F32, fma_dx9),
                                                F(V_MAC_F32, mad),
                                                F(V_MAD_F32, mad),
                                                F(V_MADMK_F32, mad),
                                                F(V_MADAK_F32, mad),
                                                F(V_MAC_DX9_ZERO_F32, mad_dx9),
                                                F(V_MAD_DX9_ZERO_F32, mad_dx9),
                                                F(V_MULLIT_F32, mullit),
                                                F(V_FMAC_DX9_ZERO_F32, fma_dx9),
                                                F(V_FMA_MIX_F32, fma_),
                                                F(V_MAD_MIX_F32, mad),
                                                F(V_PK_FMA_F32, pk_fma),
                                                F(V_PK_MUL_F32, pk_mul),
                                                F(V_PK_ADD_F32, pk_add),
                                                EMU_ALU_F(V_MAD_MIXLO_F16, mad_mix, 64),
                                                EMU_ALU_F(V_MAD_MIXHI_F16, mad_mix, 64),
                                                DIRECT(V_MIN_F32, min2),
                                                DIRECT(V_MAX_F32, max2),
                                                F(V_MIN3_F32, min3),
                                                F(V_MAX3_F32, max3),
                                                F(V_MED3_F32, med3),
                                                F(V_MAXMIN_F32, maxmin),
                                                F(V_MINMAX_F32, minmax),
                                                F(V_MINIMUM_F32, minimum2),
                                                F(V_MAXIMUM_F32, maximum2),
                                                F(V_MINIMUM3_F32, minimum3),
                                                F(V_MAXIMUM3_F32, maximum3),
                                                F(V_MINIMUMMAXIMUM_F32, minimummaximum),
                                                F(V_MAXIMUMMINIMUM_F32, maximumminimum),
                                                F(V_FLOOR_F32, floor_),
                                                F(V_CEIL_F32, ceil_),
                                                F(V_TRUNC_F32, trunc_),
                                                F(V_RNDNE_F32, rndne),
                                                F(V_FRACT_F32, fract),
                                                F(V_LDEXP_F32, ldexp_),
                                                F(V_FREXP_EXP_I32_F32, frexp_exp),
                                                F(V_FREXP_MANT_F32, frexp_mant),
                                                F(V_CUBEID_F32, cube_id),
                                                F(V_CUBESC_F32, cube_sc),
                                                F(V_CUBETC_F32, cube_tc),
                                                F(V_CUBEMA_F32, cube_ma),
                                                {0}};
