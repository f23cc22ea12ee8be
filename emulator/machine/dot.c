// Dot products.
//
// V_DOT2_F32_F16 and its kin do not round as a chain of FMAs. What is here follows measurements of a W7900 (gfx1100)
// that the rocjitsu project published (ROCm/rocm-systems, issue 12056 and its float_dot fixtures): the addend and both
// products are cut to a common grid, 24 bits below the larger product's exponent or 26 below the largest leading bit,
// whichever is coarser; an addend of the other sign than C adds the complement of its magnitude; the sum is rounded
// once, to nearest even. Denormal C and results below the smallest normal number are zero. GFX10 has not been measured
// and is given the same.
#include "machine/hardware_dot.h"
#include "machine/valu.h"

enum { FACTOR_NAN = (int)0xffc00a3d, INVALID = (int)0xffc00000, NOTHING = -1024 };

struct factor {
  uint32_t significand;
  int exponent;  // of the significand's leading place in a normal number
  bool negative, nan, inf;
};

static struct factor factor_of(uint32_t bits, bool bfloat) {
  unsigned fraction = bfloat ? 7 : 10, top = bfloat ? 255 : 31;
  uint32_t field = bits >> fraction & top, low = bits & ((1u << fraction) - 1);
  struct factor f = {.negative = bits >> 15 & 1, .nan = field == top && low, .inf = field == top && !low};
  f.significand = field ? low | 1u << fraction : bfloat ? 0 : low;
  f.exponent = (int)(field ? field : 1) - (bfloat ? 127 : 15);
  return f;
}

struct term {
  uint64_t significand;
  int exponent;  // of its lowest bit
  bool negative;
};

static int leading(struct term t) { return t.significand ? t.exponent + 63 - __builtin_clzll(t.significand) : NOTHING; }
static int larger(int a, int b) { return a > b ? a : b; }

uint64_t emu__round_even(uint64_t value, int shift) {
  if (shift <= 0) return value << -shift;
  if (shift >= 64) return 0;
  uint64_t whole = value >> shift, rest = value & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
  return whole + (rest > half || (rest == half && (whole & 1)));
}

// `units` on a grid of 2^grid, to a float.
static uint32_t pack_float(uint64_t magnitude, int grid, uint32_t sign) {
  int top = 63 - __builtin_clzll(magnitude), exponent = top + grid;
  uint64_t significand = emu__round_even(magnitude, top - 23);
  if (significand >> 24) {
    significand >>= 1;
    exponent++;
  }
  if (exponent < -126) return 0;
  if (exponent > 127) return sign << 31 | 0x7f800000;
  return sign << 31 | (uint32_t)(exponent + 127) << 23 | ((uint32_t)significand & 0x7fffff);
}

// … to a half, with denormals.
static uint32_t pack_half(uint64_t magnitude, int grid, uint32_t sign) {
  int top = 63 - __builtin_clzll(magnitude), exponent = larger(top + grid, -14);
  uint64_t significand = emu__round_even(magnitude, exponent - 10 - grid);
  if (!significand) return 0;
  if (significand >> 11) {
    significand >>= 1;
    exponent++;
  }
  if (exponent > 15) return sign << 15 | 0x7c00;
  if (significand < 0x400) return sign << 15 | (uint32_t)significand;
  return sign << 15 | (uint32_t)(exponent + 15) << 10 | ((uint32_t)significand & 0x3ff);
}

uint32_t emu__dot_special(uint32_t bits, enum emu_dot_result result) {
  if (result == EMU_DOT_F32) return bits;
  if (bits == (uint32_t)FACTOR_NAN) return result == EMU_DOT_BF16 ? 0xfffd : 0xfe3d;
  return result == EMU_DOT_BF16 ? bits >> 16 : (bits >> 16 & 0x8000) | 0x7c00 | (bits >> 13 & 0x3ff);
}

// Whether infinities or NaN decide the sum, and if so what it is.
static bool is_special(const struct factor a[2], const struct factor b[2], uint32_t c, uint32_t *bits) {
  bool plus = false, minus = false, invalid = false;
  for (int i = 0; i < 2; i++) {
    if (a[i].nan || b[i].nan) {
      *bits = (uint32_t)FACTOR_NAN;
      return true;
    }
  }
  for (int i = 0; i < 2; i++) {
    if (!a[i].inf && !b[i].inf) continue;
    invalid = invalid || (a[i].inf && !b[i].inf && !b[i].significand) || (b[i].inf && !a[i].inf && !a[i].significand);
    *(a[i].negative != b[i].negative ? &minus : &plus) = true;
  }
  *bits = (uint32_t)INVALID;
  if (invalid || (plus && minus)) return true;
  if (emu__is_nan32(c)) {
    *bits = c | 0x400000;
    return true;
  }
  plus = plus || c == 0x7f800000;
  minus = minus || c == 0xff800000;
  if (plus != minus) *bits = minus ? 0xff800000 : 0x7f800000;
  return plus || minus;
}

uint32_t emu__dot2(uint32_t pair_a, uint32_t pair_b, uint32_t c, bool bfloat, enum emu_dot_result result) {
  const struct factor a[2] = {factor_of(pair_a & 0xffff, bfloat), factor_of(pair_a >> 16, bfloat)};
  const struct factor b[2] = {factor_of(pair_b & 0xffff, bfloat), factor_of(pair_b >> 16, bfloat)};
  bool odd = a[0].nan | a[0].inf | a[1].nan | a[1].inf | b[0].nan | b[0].inf | b[1].nan | b[1].inf;
  uint32_t special;
  if ((odd || (c & 0x7f800000) == 0x7f800000) && is_special(a, b, c, &special))
    return emu__dot_special(special, result);

  int fraction = bfloat ? 7 : 10, field = (int)(c >> 23 & 255), product_top = NOTHING;
  struct term t[3] = {
      {.significand = field ? (c & 0x7fffff) | 0x800000 : 0, .exponent = field - 150, .negative = c >> 31}};
  for (int i = 0; i < 2; i++) {
    int exponent = a[i].exponent + b[i].exponent;
    t[i + 1] = (struct term){.significand = (uint64_t)a[i].significand * b[i].significand,
                             .exponent = exponent - 2 * fraction,
                             .negative = a[i].negative != b[i].negative};
    if (t[i + 1].significand) product_top = larger(product_top, exponent);
  }
  if (!(t[0].significand | t[1].significand | t[2].significand)) return 0;
  int c_top = leading(t[0]);
  if (result == EMU_DOT_F16) c_top = larger(c_top, -14);
  int grid = larger(product_top - 24, larger(c_top, larger(leading(t[1]), leading(t[2]))) - 26);
  int64_t sum = 0;
  for (int i = 0; i < 3; i++) {
    int shift = t[i].exponent - grid;
    uint64_t m = !t[i].significand || shift <= -64 ? 0
                 : shift < 0                       ? t[i].significand >> -shift
                                                   : t[i].significand << shift;
    sum += t[i].negative != t[0].negative ? -(int64_t)m - 1 : (int64_t)m;
  }
  if (!sum) return 0;
  uint64_t magnitude = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
  uint32_t sign = (sum < 0) != t[0].negative;
  if (result == EMU_DOT_F16) return pack_half(magnitude, grid, sign);
  uint32_t bits = pack_float(magnitude, grid, sign);
  return result == EMU_DOT_BF16 ? bits >> 16 : bits;
}

uint32_t emu__half_to_float_bits(uint32_t half) {
  uint32_t sign = (half & 0x8000) << 16, field = half >> 10 & 31, low = half & 0x3ff;
  if (field == 31) return sign | 0x7f800000 | low << 13;
  if (field) return sign | (field + 112) << 23 | low << 13;
  if (!low) return sign;
  unsigned up = (unsigned)__builtin_clz(low) - 21;
  return sign | (113 - up) << 23 | (low << up & 0x3ff) << 13;
}

static void dot2_f16(struct emu_half_wave *x) { emu__hw_dot2(x->s[0], x->s[1], x->s[2], x->d, false); }
static void dot2_bf16(struct emu_half_wave *x) { emu__hw_dot2(x->s[0], x->s[1], x->s[2], x->d, true); }

// To a half, as each step of a packed WMMA.
static void dot2_f16_f16(struct emu_half_wave *x) {
  EMU_EACH {
    uint32_t c = emu__half_to_float_bits(x->s[2][l] & 0xffff);
    x->d[l] = emu__dot2(x->s[0][l], x->s[1][l], c, false, EMU_DOT_F16);
  }
}

// ---- integers: `bits` wide elements, signed or not each

static int64_t integer_dot(uint32_t a, uint32_t b, int bits, bool a_signed, bool b_signed) {
  int64_t sum = 0;
  for (int i = 0; i < 32; i += bits) {
    int up = 32 - bits - i;
    int64_t x = a_signed ? (int32_t)(a << up) >> (32 - bits) : (int64_t)(a << up >> (32 - bits));
    int64_t y = b_signed ? (int32_t)(b << up) >> (32 - bits) : (int64_t)(b << up >> (32 - bits));
    sum += x * y;
  }
  return sum;
}
static uint32_t finish_signed(int64_t v, bool clamp) {
  if (clamp) v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
  return (uint32_t)v;
}
#define INTEGER(name, bits, a_signed, b_signed)                                                        \
  static void name(struct emu_half_wave *x) {                                                          \
    EMU_EACH {                                                                                         \
      int64_t v = integer_dot(x->s[0][l], x->s[1][l], bits, a_signed, b_signed) + (int32_t)x->s[2][l]; \
      x->d[l] = finish_signed(v, x->inst->clamp);                                                      \
    }                                                                                                  \
  }
#define UNSIGNED(name, bits)                                                                       \
  static void name(struct emu_half_wave *x) {                                                      \
    EMU_EACH {                                                                                     \
      uint64_t v = (uint64_t)integer_dot(x->s[0][l], x->s[1][l], bits, false, false) + x->s[2][l]; \
      x->d[l] = x->inst->clamp && v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;                       \
    }                                                                                              \
  }
INTEGER(dot4_i8, 8, true, true)
INTEGER(dot8_i4, 4, true, true)
INTEGER(dot2_i16, 16, true, true)
INTEGER(dot4_iu8, 8, x->inst->src[0].neg, x->inst->src[1].neg)
INTEGER(dot8_iu4, 4, x->inst->src[0].neg, x->inst->src[1].neg)
UNSIGNED(dot4_u8, 8)
UNSIGNED(dot8_u4, 4)
UNSIGNED(dot2_u16, 16)

#define ROW(name, f) {.op = EMU_##name, .klass = EMU_CLASS_DOT, .lanes = f, .saturates = true}
#define ROW_F(name, f) {.op = EMU_##name, .klass = EMU_CLASS_DOT, .lanes = f}
const struct emu_action emu__dot_actions[] = {ROW_F(V_DOT2_F32_F16, dot2_f16),
                                              ROW_F(V_DOT2ACC_F32_F16, dot2_f16),
                                              ROW_F(V_DOT2_F32_BF16, dot2_bf16),
                                              ROW_F(V_DOT2C_F32_BF16, dot2_bf16),
                                              ROW_F(V_DOT2_F16_F16, dot2_f16_f16),
                                              ROW(V_DOT4_I32_I8, dot4_i8),
                                              ROW(V_DOT4C_I32_I8, dot4_i8),
                                              ROW(V_DOT4_I32_IU8, dot4_iu8),
                                              ROW(V_DOT4_U32_U8, dot4_u8),
                                              ROW(V_DOT8_I32_I4, dot8_i4),
                                              ROW(V_DOT8_I32_IU4, dot8_iu4),
                                              ROW(V_DOT8_U32_U4, dot8_u4),
                                              ROW(V_DOT2_I32_I16, dot2_i16),
                                              ROW(V_DOT2_U32_U16, dot2_u16),
                                              ROW(V_DOT2C_I32_I16, dot2_i16),
                                              ROW(V_DOT8C_I32_I4, dot8_i4),
                                              {0}};
