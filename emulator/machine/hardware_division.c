#include "machine/hardware_division.h"

__extension__ typedef unsigned __int128 wide;

const struct emu_hw_format emu__hw_half_format = {10, 15, 0, 0}, emu__hw_single_format = {23, 127, 96, 64},
                           emu__hw_double_format = {52, 1023, 768, 128};

static uint64_t hidden_of(const struct emu_hw_format *f) { return UINT64_C(1) << f->fraction; }
static uint64_t inf_of(const struct emu_hw_format *f) { return (uint64_t)(2 * f->bias + 1) << f->fraction; }
static uint64_t sign_of(const struct emu_hw_format *f) { return inf_of(f) + hidden_of(f); }
static uint64_t quiet_of(const struct emu_hw_format *f) { return hidden_of(f) >> 1; }
static uint64_t nan_of(const struct emu_hw_format *f) { return sign_of(f) | inf_of(f) | quiet_of(f); }
static int field_of(const struct emu_hw_format *f, uint64_t bits) { return (int)((bits & inf_of(f)) >> f->fraction); }

static bool away(bool negative, unsigned mode) { return (mode & 3) == (negative ? 2 : 1); }
static uint64_t overflow(const struct emu_hw_format *f, bool negative, unsigned mode) {
  return (negative ? sign_of(f) : 0) | (!(mode & 3) || away(negative, mode) ? inf_of(f) : inf_of(f) - 1);
}

// A finite number as significand 2^exponent.
struct number {
  wide significand;
  int exponent;
};
static struct number number_of(const struct emu_hw_format *f, uint64_t bits) {
  int field = field_of(f, bits);
  uint64_t low = bits & (hidden_of(f) - 1);
  return (struct number){field ? low | hidden_of(f) : low, (field ? field : 1) - f->bias - f->fraction};
}

static int top_of(wide v) {
  uint64_t high = (uint64_t)(v >> 64), low = (uint64_t)v;
  return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(low);
}

// Rounded once.
static uint64_t pack(const struct emu_hw_format *f, struct number n, bool negative, unsigned mode) {
  uint64_t sign = negative ? sign_of(f) : 0;
  if (!n.significand) return sign;
  int top = top_of(n.significand), field = top + n.exponent + f->bias, cut = top - f->fraction;
  if (field > 2 * f->bias) return overflow(f, negative, mode);
  if (field < 1) cut += 1 - field;
  wide kept = cut > 127 ? 0 : cut > 0 ? n.significand >> cut : n.significand << -cut;
  bool half = cut > 0 && cut < 129 && (n.significand >> (cut - 1) & 1);
  bool rest = cut > 128 || (cut > 1 && (n.significand & (((wide)1 << (cut - 1)) - 1)));
  bool up = mode & 3 ? away(negative, mode) && (half || rest) : half && (rest || (kept & 1));
  // a carry goes into the exponent
  uint64_t bits = ((uint64_t)(field < 1 ? 0 : field - 1) << f->fraction) + (uint64_t)kept + up;
  if (bits >= inf_of(f)) return overflow(f, negative, mode);
  return sign | (bits < hidden_of(f) && !(mode & EMU_HW_KEEP_OUT) ? 0 : bits);
}

static uint64_t flushed(const struct emu_hw_format *f, uint64_t bits, unsigned mode) {
  return mode & EMU_HW_KEEP_IN || bits & inf_of(f) ? bits : bits & sign_of(f);
}

uint64_t emu__hw_div_scale(const struct emu_hw_format *f, uint64_t v, uint64_t denominator, uint64_t numerator,
                           unsigned mode, bool *after) {
  v = flushed(f, v, mode);
  uint64_t d = flushed(f, denominator, mode), n = flushed(f, numerator, mode), magnitude = sign_of(f) - 1;
  int d_field = field_of(f, d), n_field = field_of(f, n), apart = n_field - d_field, by = 0;
  bool of_d = v == d, far_below = apart <= -f->threshold;
  *after = apart >= f->threshold || (d_field && far_below);
  if (apart >= f->threshold) {
    by = of_d ? f->scale : 0;
  } else if (!d_field) {
    by = f->scale;
  } else if (d_field >= 2 * f->bias - 1) {  // its reciprocal would be denormal
    by = far_below && !of_d ? 0 : -f->scale;
  } else if (far_below) {
    by = of_d ? 0 : f->scale;
  } else if (n_field <= f->fraction + 1) {
    by = f->scale;
  }
  if (!(d & magnitude) || !(n & magnitude)) return nan_of(f);
  if ((v & magnitude) > inf_of(f)) return v | quiet_of(f);
  if ((v & magnitude) == inf_of(f)) return v;
  struct number x = number_of(f, v);
  x.exponent += by;
  return pack(f, x, v & sign_of(f), mode);
}

// Shifted right; what falls off leaves a mark in the lowest bit.
static wide cut_to(wide v, int places) {
  if (places <= 0) return v;
  if (places > 127) return v != 0;
  return v >> places | ((v & (((wide)1 << places) - 1)) != 0);
}

static uint64_t add(const struct emu_hw_format *f, struct number p, bool p_negative, struct number c, bool c_negative,
                    int scale, unsigned mode) {
  bool down = (mode & 3) == 2;
  if (!p.significand && !c.significand) return pack(f, p, p_negative == c_negative ? p_negative : down, mode);
  struct number *both[2] = {&p, &c};
  for (int i = 0; i < 2; i++) {  // leading bits to place 125
    if (!both[i]->significand) continue;
    int up = 125 - top_of(both[i]->significand);
    both[i]->significand <<= up;
    both[i]->exponent -= up;
  }
  int exponent = !c.significand || (p.significand && p.exponent > c.exponent) ? p.exponent : c.exponent;
  wide x = cut_to(p.significand, exponent - p.exponent), y = cut_to(c.significand, exponent - c.exponent);
  bool same = p_negative == c_negative, negative = x > y ? p_negative : x < y ? c_negative : same ? p_negative : down;
  struct number sum = {same ? x + y : x > y ? x - y : y - x, exponent + scale};
  return pack(f, sum, negative, mode);
}

uint64_t emu__hw_div_fmas(const struct emu_hw_format *f, uint64_t a, uint64_t b, uint64_t c, bool after,
                          unsigned mode) {
  const uint64_t inf = inf_of(f), sign = sign_of(f), magnitude = sign - 1;
  uint64_t am = a & magnitude, bm = b & magnitude, cm = c & magnitude, p_sign = (a ^ b) & sign;
  if (am > inf) return a | quiet_of(f);
  if (bm > inf) return b | quiet_of(f);
  bool p_inf = am == inf || bm == inf;
  if ((p_inf && (!am || !bm)) || (p_inf && cm == inf && p_sign != (c & sign))) return nan_of(f);
  if (cm > inf) return c | quiet_of(f);
  if (p_inf) return p_sign | inf;
  if (cm == inf) return c;
  struct number x = number_of(f, a), y = number_of(f, b);
  struct number product = {x.significand * y.significand, x.exponent + y.exponent};
  int scale = !after ? 0 : field_of(f, c) > f->bias ? f->scale : -f->scale;
  return add(f, product, p_sign, number_of(f, c), c & sign, scale, mode);
}

uint64_t emu__hw_div_fixup(const struct emu_hw_format *f, uint64_t quotient, uint64_t denominator, uint64_t numerator,
                           unsigned mode) {
  const uint64_t inf = inf_of(f), magnitude = sign_of(f) - 1;
  uint64_t d = flushed(f, denominator, mode), n = flushed(f, numerator, mode);
  uint64_t dm = d & magnitude, nm = n & magnitude, sign = (d ^ n) & sign_of(f);
  if (nm > inf) return n | quiet_of(f);
  if (dm > inf) return d | quiet_of(f);
  if ((!dm && !nm) || (dm == inf && nm == inf)) return nan_of(f);
  if (!dm || nm == inf) return sign | inf;
  if (!nm || dm == inf) return sign;
  // too small for any quotient: as something tiny rounds. Halves come here rounded already.
  if (f->scale && field_of(f, n) - field_of(f, d) < -(f->bias + f->fraction)) {
    return pack(f, (struct number){1, -2 * (f->bias + f->fraction)}, sign, mode);
  }
  if ((quotient & magnitude) >= inf) return overflow(f, sign, mode);
  return sign | (quotient & magnitude);
}
