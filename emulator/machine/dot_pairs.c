// Dot products of GFX12, as measured on a Radeon AI PRO R9700 (gfx1201): facts that the rocjitsu project published
// (ROCm/rocm-systems, emulation/rocjitsu, gfx12_dot.h and the float_dot fixtures).
//
// Each product has a grid of its own, 24 bits below the sum of its factors' exponents (a denormal's is that of the
// smallest normal number). Two neighbours are added on the coarser of their grids, and these sums and the addend on the
// coarsest grid of all, or one 26 bits below the addend's leading bit if that is coarser still. Whatever is moved to a
// coarser grid is rounded down, towards minus infinity. The whole is rounded once, to the nearest even; denormals are
// kept, a zero is positive. V_DOT2 adds one pair, WMMA two in each step, K ascending.
//
// The addend's exponent counts as -126 at least, and as -14 in sums to halves. On a grid above that, a negative addend
// of which nothing is left is zero, and not one unit.
#include "machine/dot.h"
#include "machine/float8.h"
#include "machine/valu.h"

enum { FACTOR_NAN = (int)0xffc00a3d, INVALID = (int)0xffc00000, NOTHING = -1024 };

struct number {
  int64_t units;  // times 2^grid
  int grid;
};

// Rounded down onto a grid that is as coarse or coarser.
static int64_t onto(struct number v, int grid) {
  int shift = grid - v.grid;
  return v.units >> (shift > 62 ? 62 : shift);
}

// What infinities and NaN have met so far.
struct specials {
  bool nan, invalid, plus, minus;
};

static struct number product(uint32_t a, uint32_t b, bool bfloat, struct specials *met) {
  const unsigned fraction = bfloat ? 7 : 10, top = bfloat ? 255 : 31, bias = bfloat ? 127 : 15;
  uint32_t bits[2] = {a & 0xffff, b & 0xffff}, significand[2];
  bool infinite[2];
  int exponents = 0;
  for (int i = 0; i < 2; i++) {
    uint32_t field = bits[i] >> fraction & top, low = bits[i] & ((1u << fraction) - 1);
    met->nan |= field == top && low;
    infinite[i] = field == top && !low;
    significand[i] = field ? low | 1u << fraction : low;
    exponents += (int)(field ? field : 1) - (int)bias;
  }
  bool negative = (a ^ b) & 0x8000;
  met->invalid |= (infinite[0] && !significand[1]) || (infinite[1] && !significand[0]);
  if (infinite[0] || infinite[1]) *(negative ? &met->minus : &met->plus) = true;
  int64_t units = (int64_t)(significand[0] * significand[1]) << (24 - 2 * fraction);
  return (struct number){negative ? -units : units, units ? exponents - 24 : NOTHING};
}

static bool is_special(const struct specials *met, uint32_t c, uint32_t *bits) {
  bool nan = emu__is_nan32(c), plus = met->plus || c == 0x7f800000, minus = met->minus || c == 0xff800000;
  if (!(met->nan || met->invalid || nan || plus || minus)) return false;
  *bits = (uint32_t)INVALID;
  if (met->nan) {
    *bits = (uint32_t)FACTOR_NAN;
  } else if (!met->invalid && !(met->plus && met->minus)) {
    if (nan) *bits = c | 0x400000;
    if (!nan && plus != minus) *bits = minus ? 0xff800000 : 0x7f800000;
  }
  return true;
}

static uint32_t pack_float(uint64_t magnitude, int grid, uint32_t sign) {
  int top = 63 - __builtin_clzll(magnitude), exponent = top + grid;
  if (exponent < -126) {
    uint64_t units = emu__round_even(magnitude, -149 - grid);
    return units ? sign << 31 | (uint32_t)units : 0;
  }
  uint64_t significand = emu__round_even(magnitude, top - 23);
  // a carry goes on into the exponent
  uint64_t bits = ((uint64_t)(exponent + 126) << 23) + significand;
  return sign << 31 | (bits >= 0x7f800000 ? 0x7f800000 : (uint32_t)bits);
}

static uint32_t pack_half(uint64_t magnitude, int grid, uint32_t sign, bool saturates) {
  int top = 63 - __builtin_clzll(magnitude) + grid, exponent = top < -14 ? -14 : top;
  uint64_t significand = emu__round_even(magnitude, exponent - 10 - grid);
  if (!significand) return 0;
  uint64_t bits = ((uint64_t)(exponent + 14) << 10) + significand;
  return sign << 15 | (bits >= 0x7c00 ? (saturates ? 0x7bff : 0x7c00) : (uint32_t)bits);
}

uint32_t emu__dot_pairs(const uint32_t *a, const uint32_t *b, unsigned products, uint32_t c, bool bfloat,
                        enum emu_dot_result result, bool saturates) {
  struct specials met = {0};
  struct number pair[2];
  int coarsest = NOTHING;
  for (unsigned i = 0; i < products / 2; i++) {
    struct number low = product(a[i], b[i], bfloat, &met), high = product(a[i] >> 16, b[i] >> 16, bfloat, &met);
    int grid = low.grid > high.grid ? low.grid : high.grid;
    pair[i] = (struct number){onto(low, grid) + onto(high, grid), grid};
    coarsest = grid > coarsest ? grid : coarsest;
  }
  uint32_t bits;
  if (is_special(&met, c, &bits)) return emu__dot_special(bits, result);

  uint32_t field = c >> 23 & 255, significand = (c & 0x7fffff) | (field ? 0x800000 : 0);
  int lowest = (int)(field ? field : 1) - 150, floor = result == EMU_DOT_F16 ? -14 : -126;
  int top = significand ? lowest + 31 - __builtin_clz(significand) : NOTHING;
  int grid = (top > floor ? top : floor) - 26;
  if (coarsest > grid) grid = coarsest;
  // the addend has room for three bits below its last place
  struct number addend = {(c >> 31 ? -(int64_t)significand : (int64_t)significand) * 8, lowest - 3};
  int64_t sum = onto(addend, grid);
  if (sum == -1 && grid > floor && (grid - lowest > 23 || !(significand >> (grid - lowest)))) sum = 0;
  for (unsigned i = 0; i < products / 2; i++) sum += onto(pair[i], grid);
  if (!sum) return 0;
  uint64_t magnitude = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
  if (result == EMU_DOT_F16) return pack_half(magnitude, grid, sum < 0, saturates);
  bits = pack_float(magnitude, grid, sum < 0);
  return result == EMU_DOT_BF16 ? bits >> 16 : bits;
}

// ---- V_DOT2 and V_DOT4: their table is for targets whose sums are these

#define DOT2(name, bfloat)                                                                                  \
  static void name(struct emu_half_wave *x) {                                                               \
    EMU_EACH x->d[l] = emu__dot_pairs(&x->s[0][l], &x->s[1][l], 2, x->s[2][l], bfloat, EMU_DOT_F32, false); \
  }
DOT2(f32_f16, false)
DOT2(f32_bf16, true)

static void f16_f16(struct emu_half_wave *x) {
  bool saturates = x->mode & EMU_MODE_FP16_OVFL;
  EMU_EACH {
    uint32_t c = emu__half_to_float_bits(x->s[2][l] & 0xffff);
    x->d[l] = emu__dot_pairs(&x->s[0][l], &x->s[1][l], 2, c, false, EMU_DOT_F16, saturates);
  }
}
static void bf16_bf16(struct emu_half_wave *x) {
  EMU_EACH x->d[l] = emu__dot_pairs(&x->s[0][l], &x->s[1][l], 2, x->s[2][l] << 16, true, EMU_DOT_BF16, false);
}

// Of 8-bit floats, as halves. No recording says that these are summed like other products.
static void dot4(struct emu_half_wave *x, enum emu_float8 a_format, enum emu_float8 b_format) {
  const struct emu_operand *addend = &x->inst->src[2];
  EMU_EACH {
    uint32_t a[2], b[2], c = x->s[2][l];
    if (addend->neg_high) c = (c & INT32_MAX) | (uint32_t)addend->neg << 31;  // the absolute value, then the sign
    for (int i = 0; i < 2; i++) {
      uint32_t va = x->s[0][l] >> 16 * i, vb = x->s[1][l] >> 16 * i;
      a[i] = emu__float8_to_half(va & 0xff, a_format) | emu__float8_to_half(va >> 8 & 0xff, a_format) << 16;
      b[i] = emu__float8_to_half(vb & 0xff, b_format) | emu__float8_to_half(vb >> 8 & 0xff, b_format) << 16;
    }
    x->d[l] = emu__dot_pairs(a, b, 4, c, false, EMU_DOT_F32, false);
  }
}
static void fp8_fp8(struct emu_half_wave *x) { dot4(x, false, false); }
static void fp8_bf8(struct emu_half_wave *x) { dot4(x, false, true); }
static void bf8_fp8(struct emu_half_wave *x) { dot4(x, true, false); }
static void bf8_bf8(struct emu_half_wave *x) { dot4(x, true, true); }

#define ROW(name, f) {.op = EMU_##name, .klass = EMU_CLASS_DOT, .lanes = f}
const struct emu_action emu__pairs_actions[] = {
    ROW(V_DOT2_F32_F16, f32_f16),     ROW(V_DOT2_F32_BF16, f32_bf16),   ROW(V_DOT2_F16_F16, f16_f16),
    ROW(V_DOT2_BF16_BF16, bf16_bf16), ROW(V_DOT4_F32_FP8_FP8, fp8_fp8), ROW(V_DOT4_F32_FP8_BF8, fp8_bf8),
    ROW(V_DOT4_F32_BF8_FP8, bf8_fp8), ROW(V_DOT4_F32_BF8_BF8, bf8_bf8), {0}};
