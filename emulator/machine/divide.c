// The three instructions around a division: scale, the last FMA, repair.
//
// AMD's pseudocode is not what the silicon does. Thresholds, scales and the rule for the scale of V_DIV_FMAS follow
// what the rocjitsu project measured on gfx1100 and gfx1201 (ROCm/rocm-systems, issue 11613).
#include <math.h>

#include "machine/valu.h"

// ---- V_DIV_SCALE: src0 is the numerator or the denominator, src1 the denominator, src2 the numerator

struct scaling {
  int exponent;  // of the power of two that src0 takes
  bool after;    // V_DIV_FMAS has to scale too
};

static struct scaling scaling_of(int d, int n, bool of_denominator, bool wide) {
  int threshold = wide ? 768 : 96, scale = wide ? 128 : 64, last = wide ? 2045 : 253, small = wide ? 53 : 24;
  int apart = n - d;
  if (apart >= threshold) return (struct scaling){of_denominator ? scale : 0, true};
  if (d == 0) return (struct scaling){scale, false};
  if (d >= last) {
    bool after = apart <= -threshold;
    return (struct scaling){after && !of_denominator ? 0 : -scale, after};
  }
  if (apart <= -threshold) return (struct scaling){of_denominator ? 0 : scale, true};
  return (struct scaling){n <= small ? scale : 0, false};
}

static void scale32(struct emu_half_wave *x) {
  x->mask_out = 0;
  bool keeps = x->mode & 0x10;
  EMU_EACH {
    uint32_t v[3];
    for (int i = 0; i < 3; i++) {
      v[i] = x->s[i][l];
      if (!keeps && !(v[i] & 0x7f800000)) v[i] &= 0x80000000;
    }
    struct scaling s = scaling_of((int)(v[1] >> 23 & 255), (int)(v[2] >> 23 & 255), v[0] == v[1], false);
    x->mask_out |= (uint32_t)s.after << l;
    if (!(v[1] & 0x7fffffff) || !(v[2] & 0x7fffffff)) {
      x->d[l] = 0xffc00000;
    } else if ((v[0] & 0x7f800000) == 0x7f800000) {
      x->d[l] = emu__is_nan32(v[0]) ? v[0] | 0x400000 : v[0];
    } else {
      x->d[l] = emu__bits32((float)((double)emu__f32(v[0]) * emu__f64((uint64_t)(s.exponent + 1023) << 52)));
    }
  }
}

static void scale64(struct emu_half_wave *x) {
  x->mask_out = 0;
  EMU_EACH {
    uint64_t v[3];
    for (int i = 0; i < 3; i++) v[i] = emu__pair(x->s[i], l);
    struct scaling s = scaling_of((int)(v[1] >> 52 & 2047), (int)(v[2] >> 52 & 2047), v[0] == v[1], true);
    x->mask_out |= (uint32_t)s.after << l;
    uint64_t r = emu__bits64(scalbn(emu__f64(v[0]), s.exponent));
    if (!(v[1] & INT64_MAX) || !(v[2] & INT64_MAX)) r = 0xfff8000000000000;
    if (emu__is_nan64(v[0])) r = v[0] | UINT64_C(1) << 51;
    emu__set_pair(x->d, l, r);
  }
}

// ---- V_DIV_FMAS: a b + c, times a power of two where VCC asks, rounded once

// The exact sum of two doubles, cut to one whose last bit is odd if anything was lost.
static double add_to_odd(double a, double b) {
  double s = a + b, t = s - a, lost = (a - (s - t)) + (b - t);
  uint64_t bits = emu__bits64(s);
  if (lost == 0 || bits & 1 || s - s != 0) return s;
  return emu__f64((lost > 0) == (s > 0) ? bits + 1 : bits - 1);
}

static uint32_t fmas_one32(uint32_t a, uint32_t b, uint32_t c, bool after) {
  float plain = fmaf(emu__f32(a), emu__f32(b), emu__f32(c));
  uint32_t bits = emu__bits32(plain);
  bool finite = (a & 0x7f800000) != 0x7f800000 && (b & 0x7f800000) != 0x7f800000 && (c & 0x7f800000) != 0x7f800000;
  if (plain != plain) {
    uint32_t am = a & 0x7fffffff, bm = b & 0x7fffffff;
    bool invalid = (am == 0x7f800000 && !bm) || (bm == 0x7f800000 && !am);
    return emu__is_nan32(a) || emu__is_nan32(b) || !invalid ? emu__nan32(a, b, c) : 0xffc00000;
  }
  if (!after || !finite) return bits;
  double exact = add_to_odd((double)emu__f32(a) * (double)emu__f32(b), (double)emu__f32(c));
  int exponent = (c >> 23 & 255) > 127 ? 64 : -64;
  if (exact == 0) return bits;
  return emu__bits32((float)(exact * emu__f64((uint64_t)(exponent + 1023) << 52)));
}
static void fmas32(struct emu_half_wave *x) {
  EMU_EACH x->d[l] = fmas_one32(x->s[0][l], x->s[1][l], x->s[2][l], x->mask_in >> l & 1);
}

static uint64_t fmas_one64(uint64_t a, uint64_t b, uint64_t c, bool after) {
  double plain = fma(emu__f64(a), emu__f64(b), emu__f64(c));
  if (plain != plain) return emu__nan64(a, b, c);
  if (!after || plain - plain != 0 || plain == 0) {
    if (!after || plain == 0) return emu__bits64(plain);
  }
  // 113 bits hold the product; what the sum loses below them is never the tie of a double
  __float128 wide = (__float128)emu__f64(a) * emu__f64(b) + emu__f64(c);
  double power = (c >> 52 & 2047) > 1023 ? 0x1p128 : 0x1p-128;
  return emu__bits64((double)(wide * power));
}
static void fmas64(struct emu_half_wave *x) {
  EMU_EACH {
    uint64_t r = fmas_one64(emu__pair(x->s[0], l), emu__pair(x->s[1], l), emu__pair(x->s[2], l), x->mask_in >> l & 1);
    emu__set_pair(x->d, l, r);
  }
}

// ---- V_DIV_FIXUP: src0 is the quotient so far, src1 the denominator, src2 the numerator

struct format {
  unsigned fraction, bits;
  int bias;
};

static uint64_t fixup(uint64_t q, uint64_t d, uint64_t n, struct format f, unsigned round, bool keeps) {
  uint64_t sign_bit = UINT64_C(1) << (f.bits - 1), quiet = UINT64_C(1) << (f.fraction - 1);
  uint64_t inf = (((UINT64_C(1) << (f.bits - 1 - f.fraction)) - 1) << f.fraction), magnitude = sign_bit - 1;
  if (!keeps && !(d & inf)) d &= sign_bit;
  if (!keeps && !(n & inf)) n &= sign_bit;
  uint64_t dm = d & magnitude, nm = n & magnitude, sign = (d ^ n) & sign_bit;
  bool away = (round == 1 && !sign) || (round == 2 && sign);
  if (nm > inf) return n | quiet;
  if (dm > inf) return d | quiet;
  if ((!dm && !nm) || (dm == inf && nm == inf)) return sign_bit | inf | quiet;
  if (!dm || nm == inf) return sign | inf;
  if (!nm || dm == inf) return sign;
  int apart = (int)(nm >> f.fraction) - (int)(dm >> f.fraction);
  if (f.bits > 16 && apart < -(f.bias + (int)f.fraction)) return sign | (away ? 1 : 0);
  if ((q & magnitude) >= inf) return sign | (round == 0 || away ? inf : inf - 1);
  return sign | (q & magnitude);
}
static void fixup16(struct emu_half_wave *x) {
  EMU_EACH {
    x->d[l] = (uint32_t)fixup(x->s[0][l] & 0xffff, x->s[1][l] & 0xffff, x->s[2][l] & 0xffff,
                              (struct format){10, 16, 15}, x->mode >> 2 & 3, x->mode & 0x40);
  }
}
static void fixup32(struct emu_half_wave *x) {
  EMU_EACH {
    x->d[l] =
        (uint32_t)fixup(x->s[0][l], x->s[1][l], x->s[2][l], (struct format){23, 32, 127}, x->mode & 3, x->mode & 0x10);
  }
}
static void fixup64(struct emu_half_wave *x) {
  EMU_EACH {
    emu__set_pair(x->d, l,
                  fixup(emu__pair(x->s[0], l), emu__pair(x->s[1], l), emu__pair(x->s[2], l),
                        (struct format){52, 64, 1023}, x->mode >> 2 & 3, x->mode & 0x40));
  }
}

const struct emu_action emu__divide_actions[] = {
    EMU_ALU_F(V_DIV_SCALE_F32, scale32, 32), EMU_ALU_C(V_DIV_SCALE_F64, scale64, 64, VALU_64),
    EMU_ALU_F(V_DIV_FMAS_F32, fmas32, 32),   EMU_ALU_C(V_DIV_FMAS_F64, fmas64, 64, VALU_64),
    EMU_ALU_F(V_DIV_FIXUP_F32, fixup32, 32), EMU_ALU_C(V_DIV_FIXUP_F64, fixup64, 64, VALU_64),
    EMU_ALU_F(V_DIV_FIXUP_F16, fixup16, 64), {0}};
