// Double precision.
#include "machine/valu.h"

#include <math.h>

#define NAN_OF(sources) emu__nan64(emu__pair(x->s[0], l), sources > 1 ? emu__pair(x->s[1], l) : 0, 0)

#define OP2(name, expression)                                                          \
  static void name(struct emu_half_wave *x) {                                          \
    uint32_t r[2 * EMU_HALF];                                                          \
    EMU_EACH {                                                                         \
      double a = emu__f64(emu__pair(x->s[0], l)), b = emu__f64(emu__pair(x->s[1], l)); \
      double v = expression;                                                           \
      emu__set_pair(r, l, v == v ? emu__bits64(v) : NAN_OF(2));                        \
    }                                                                                  \
    memcpy(x->d, r, sizeof(r));                                                        \
  }
OP2(add, a + b)
OP2(mul, a *b)

static void fma_(struct emu_half_wave *x) {
  EMU_EACH {
    uint64_t ba = emu__pair(x->s[0], l), bb = emu__pair(x->s[1], l), bc = emu__pair(x->s[2], l);
    double v = __builtin_fma(emu__f64(ba), emu__f64(bb), emu__f64(bc));
    uint64_t r = emu__bits64(v), inf = 0x7ff0000000000000, am = ba & INT64_MAX, bm = bb & INT64_MAX;
    if (v != v) {
      bool invalid = (am == inf && emu__f64(bb) == 0) || (bm == inf && emu__f64(ba) == 0);
      r = invalid ? 0xfff8000000000000 : emu__nan64(ba, bb, bc);
    }
    emu__set_pair(x->d, l, r);
  }
}

static inline int64_t order(uint64_t bits) { return (int64_t)(bits ^ ((uint64_t)((int64_t)bits >> 63) >> 1)); }
static const uint64_t quiet64 = UINT64_C(1) << 51;
static bool is_signaling(uint64_t bits) { return emu__is_nan64(bits) && !(bits & quiet64); }
static uint64_t pick(uint64_t a, uint64_t b, bool maximum, uint32_t mode) {
  if (mode & EMU_MODE_IEEE && (is_signaling(a) || is_signaling(b))) return (is_signaling(a) ? a : b) | quiet64;
  if (emu__is_nan64(a) && emu__is_nan64(b)) return a | (mode & EMU_MODE_2019 ? quiet64 : 0);
  if (emu__is_nan64(a) || emu__is_nan64(b)) return emu__is_nan64(a) ? b : a;
  return (maximum ? order(a) >= order(b) : order(a) <= order(b)) ? a : b;
}
static uint64_t pass(uint64_t a, uint64_t b, bool maximum, uint32_t mode) {
  (void)mode;
  if (is_signaling(a) || is_signaling(b)) return (is_signaling(a) ? a : b) | quiet64;
  if (emu__is_nan64(a) || emu__is_nan64(b)) return emu__is_nan64(a) ? a : b;
  return (maximum ? order(a) >= order(b) : order(a) <= order(b)) ? a : b;
}
static uint64_t flush(uint64_t bits) { return bits & 0x7ff0000000000000 ? bits : bits & ~(uint64_t)INT64_MAX; }
static void select_two(struct emu_half_wave *x, bool maximum,
                       uint64_t (*pick_of)(uint64_t a, uint64_t b, bool maximum, uint32_t mode)) {
  bool flushes = !(x->mode & 0x40);
  EMU_EACH {
    uint64_t a = emu__pair(x->s[0], l), b = emu__pair(x->s[1], l);
    if (flushes) a = flush(a), b = flush(b);
    emu__set_pair(x->d, l, pick_of(a, b, maximum, x->mode));
  }
}
static void min2(struct emu_half_wave *x) { select_two(x, false, pick); }
static void max2(struct emu_half_wave *x) { select_two(x, true, pick); }
static void minimum2(struct emu_half_wave *x) { select_two(x, false, pass); }
static void maximum2(struct emu_half_wave *x) { select_two(x, true, pass); }

#define OP1(name, expression)                                      \
  static void name(struct emu_half_wave *x) {                      \
    EMU_EACH {                                                     \
      double a = emu__f64(emu__pair(x->s[0], l)), v = expression;  \
      emu__set_pair(x->d, l, v == v ? emu__bits64(v) : NAN_OF(1)); \
    }                                                              \
  }
#define ROUND(how) _mm_cvtsd_f64(_mm_round_sd(_mm_set_sd(a), _mm_set_sd(a), how | _MM_FROUND_NO_EXC))
OP1(floor_, ROUND(_MM_FROUND_TO_NEG_INF))
OP1(ceil_, ROUND(_MM_FROUND_TO_POS_INF))
OP1(trunc_, ROUND(_MM_FROUND_TO_ZERO))
OP1(rndne, ROUND(_MM_FROUND_TO_NEAREST_INT))
static inline double fraction(double a) {
  double r = a - floor(a);
  return r > 0x1.fffffffffffffp-1 ? 0x1.fffffffffffffp-1 : r;
}
OP1(fract, fraction(a))

// 2^n in two exact steps; the last product rounds, once.
static inline double scale(double a, int32_t n) {
  n = n < -2200 ? -2200 : n > 2200 ? 2200 : n;
  return scalbn(a, n);
}
OP1(ldexp_, scale(a, (int32_t)x->s[1][l]))

static void frexp_exp(struct emu_half_wave *x) {
  EMU_EACH {
    int e = 0;
    double a = emu__f64(emu__pair(x->s[0], l));
    if (a - a == 0) (void)frexp(a, &e);
    x->d[l] = (uint32_t)e;
  }
}
static inline double mantissa(double a) {
  int e;
  return a - a == 0 ? frexp(a, &e) : a;
}
OP1(frexp_mant, mantissa(a))

// ---- the first 1,201 bits of 2/pi after the binary point, all that the hardware has, to reduce large angles

static const uint32_t two_over_pi[] = {
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B0000};

// 53 bits of 2/pi, from a place that the exponent of the angle and the segment (in src1) decide.
static void trig_preop(struct emu_half_wave *x) {
  EMU_EACH {
    unsigned e = (unsigned)(emu__pair(x->s[0], l) >> 52) & 0x7ff;
    int shift = (int)(x->s[1][l] & 31) * 53;
    if (e > 1077) shift += (int)e - 1077;
    uint64_t bits = 0;
    for (int i = 0; i < 53; i++) {
      int at = shift + i;
      uint32_t word = at < (int)sizeof(two_over_pi) * 8 ? two_over_pi[at / 32] : 0;
      bits = bits << 1 | (word >> (31 - at % 32) & 1);
    }
    int scale_ = -53 - shift;
    if (e >= 1968) scale_ += 128;
    emu__set_pair(x->d, l, emu__bits64(scalbn((double)bits, scale_)));
  }
}

#define F(name, function) EMU_ALU_C(name, function, 64, VALU_64)
const struct emu_action emu__double_actions[] = {F(V_ADD_F64, add),
                                                 F(V_MUL_F64, mul),
                                                 F(V_FMA_F64, fma_),
                                                 F(V_FMAC_F64, fma_),
                                                 F(V_MIN_F64, min2),
                                                 F(V_MAX_F64, max2),
                                                 F(V_MINIMUM_F64, minimum2),
                                                 F(V_MAXIMUM_F64, maximum2),
                                                 F(V_FLOOR_F64, floor_),
                                                 F(V_CEIL_F64, ceil_),
                                                 F(V_TRUNC_F64, trunc_),
                                                 F(V_RNDNE_F64, rndne),
                                                 F(V_FRACT_F64, fract),
                                                 F(V_LDEXP_F64, ldexp_),
                                                 F(V_FREXP_EXP_I32_F64, frexp_exp),
                                                 F(V_FREXP_MANT_F64, frexp_mant),
                                                 F(V_TRIG_PREOP_F64, trig_preop),
                                                 {0}};
