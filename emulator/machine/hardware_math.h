// What RDNA's transcendental unit computes, bit for bit. Private to emulator/machine.
//
// Pure functions of bits to bits: no host floating point, so neither MXCSR nor the compiler has a say. F32 functions
// flush denormals both ways and round to nearest even whatever MODE says. HARDWARE_MATH.md lists what each one was
// checked against and where it is only close.
//
// The unit evaluates a quadratic whose leading coefficient is itself linear in the coordinate, in 24-bit factors:
//
//   c0  +-  c1 x  -+  (c2 - c3 x) x^2
//
// c1 x is rounded to 24 significant bits and cut to 1/32 of the result's unit in the last place (ulp), downward for
// the signed value. A falling inner factor c2 - c3 x is formed with the one's complement of x in 20 bits, which is why
// the lowest place of x counts once more, and is rounded to 24 bits. x^2 is taken from the top 17 bits of x and cut to
// 24. Their product is rounded to 24 significant bits, the sum to the 24 of the result. Every rounding is to nearest,
// ties to even.
//
// Coefficients and cuts are facts about the hardware. Those of V_EXP, V_LOG, V_SQRT, V_SIN and V_COS, and the
// coefficients of V_RCP and V_RSQ, were recovered from a W7900 and an R9700 by the rocjitsu project (ROCm/rocm-systems,
// emulation/rocjitsu, and its fork by yashjha123). The roundings above, which make V_RCP and V_RSQ exact without a list
// of exceptions, were found here, against the digests of complete recordings that project published.
#ifndef EMULATOR_MACHINE_HARDWARE_MATH_H
#define EMULATOR_MACHINE_HARDWARE_MATH_H

#include <stdbool.h>
#include <stdint.h>

struct emu_cubic {
  uint32_t c0, c1, c2, c3;
};
struct emu_cubic_log {
  int32_t c0;
  uint32_t c1, c2, c3, c4;  // c4: what the cut product c3 x carries below its last place
};
extern const struct emu_cubic emu__hw_rcp_rows[32], emu__hw_rsq_rows[64], emu__hw_sqrt_rows[32], emu__hw_exp_rows[32];
extern const struct emu_cubic_log emu__hw_log_rows[33], emu__hw_log_above_rows[3], emu__hw_log_below_rows[2];

enum { EMU_HW_NAN = (int)0xffc00000 };

// ---- rounding

// v / 2^places to nearest, ties to even.
static inline uint64_t emu__hw_even(uint64_t v, unsigned places) {
  return (v + ((UINT64_C(1) << (places - 1)) - 1) + (v >> places & 1)) >> places;
}

// A product below 2^(places + 25), rounded to 24 significant bits or to 2^places, whichever is coarser; in 2^places.
static inline uint64_t emu__hw_24(uint64_t product, unsigned places) {
  unsigned up = (unsigned)(product >> (places + 24)) & 1;
  return emu__hw_even(product, places + up) << up;
}

// (c2 - c3 x) x^2 with x of 20 bits, in 2^-11 of the unit that c2 has after `places` are gone.
static inline uint64_t emu__hw_curve(const struct emu_cubic *c, uint32_t x, unsigned c3_shift, unsigned places) {
  uint64_t inner = emu__hw_even(((uint64_t)c->c2 << 20) - (((uint64_t)c->c3 * (x + 1)) << c3_shift), places);
  uint64_t square = (uint64_t)(x >> 3) * (x >> 3) >> 10;
  return emu__hw_24((uint64_t)(uint32_t)inner * (uint32_t)square, 23);
}

// ---- on mantissas

// 2^24 / 1.m for the 23 bits of m: in (2^23, 2^24].
static inline uint32_t emu__hw_rcp_mantissa(uint32_t m) {
  const struct emu_cubic *c = &emu__hw_rcp_rows[m >> 18];
  uint32_t x = m & 0x3ffff;
  uint64_t slope = (emu__hw_24((uint64_t)c->c1 * x, 14) + 1) >> 1;
  return (uint32_t)emu__hw_even(((uint64_t)c->c0 << 9) - (slope << 6) + emu__hw_curve(c, x << 2, 0, 12), 11);
}

// 2^24 / sqrt(1.m), or of 2 x 1.m with bit 23 of the index.
static inline uint32_t emu__hw_rsq_mantissa(uint32_t index) {
  const struct emu_cubic *c = &emu__hw_rsq_rows[index >> 18];
  uint32_t x = index & 0x3ffff;
  uint64_t slope = (emu__hw_24((uint64_t)c->c1 * x, 13) + 3) >> 2;
  return (uint32_t)emu__hw_even(((uint64_t)c->c0 << 10) - (slope << 7) + emu__hw_curve(c, x << 2, 0, 11), 12);
}

// 2^23 sqrt(1.m), or of 2 x 1.m with bit 23 of the index.
static inline uint32_t emu__hw_sqrt_mantissa(uint32_t index) {
  const struct emu_cubic *c = &emu__hw_sqrt_rows[index >> 19];
  uint32_t x = index & 0x7ffff;
  uint64_t slope = emu__hw_24((uint64_t)c->c1 * x, 16) >> 1;
  return (uint32_t)emu__hw_even(((uint64_t)c->c0 << 10) + (slope << 7) - emu__hw_curve(c, x << 1, 1, 12), 12);
}

// 2^23 2^f for a fraction f of 29 bits: up to 2^24.
static inline uint32_t emu__hw_exp_fraction(uint32_t f) {
  const struct emu_cubic *c = &emu__hw_exp_rows[f >> 24];
  uint32_t x = f & 0xffffff, high = x >> 6;
  uint64_t slope = emu__hw_24((uint64_t)c->c1 * x, 23) >> 1;
  uint64_t inner = emu__hw_even(((uint64_t)c->c2 << 7) + (uint64_t)c->c3 * high, 7);
  uint64_t square = (uint64_t)high * high >> 12;
  uint64_t curve = emu__hw_24((uint64_t)(uint32_t)inner * (uint32_t)square, 23);
  return (uint32_t)emu__hw_even(((c->c0 + slope) << 8) + curve, 13);
}

// ---- on floats

static inline uint32_t emu__hw_quiet(uint32_t bits, bool quiet) { return bits | (quiet ? 0x400000 : 0); }

// Of each function: where in its table a float's mantissa is, and the result with its exponent, sign and edges.
// quiet: MODE.IEEE; a signaling NaN passes unchanged without it.
static inline uint32_t emu__hw_rcp_index(uint32_t bits) { return bits & 0x7fffff; }
static inline uint32_t emu__hw_rcp_place(uint32_t bits, uint32_t mantissa, bool quiet) {
  uint32_t sign = bits & 0x80000000, magnitude = bits & 0x7fffffff;
  int32_t r = (int32_t)(0x3e800000 + mantissa) - ((int32_t)(magnitude & 0x7f800000) - 0x3f800000);
  uint32_t result = r < 0x800000 ? sign : sign | (uint32_t)r;
  result = magnitude < 0x800000 ? sign | 0x7f800000 : result;
  result = magnitude == 0x7f800000 ? sign : result;
  return magnitude > 0x7f800000 ? emu__hw_quiet(bits, quiet) : result;
}
static inline uint32_t emu__hw_rcp_f32(uint32_t bits, bool quiet) {
  return emu__hw_rcp_place(bits, emu__hw_rcp_mantissa(emu__hw_rcp_index(bits)), quiet);
}

// The exponent's parity picks the table's half; an even field is an odd exponent.
static inline uint32_t emu__hw_root_index(uint32_t bits) { return (~(bits >> 23) & 1) << 23 | (bits & 0x7fffff); }
static inline uint32_t emu__hw_rsq_place(uint32_t bits, uint32_t mantissa, bool quiet) {
  uint32_t magnitude = bits & 0x7fffffff, field = magnitude >> 23, r = 0x3e800000 + mantissa;
  r -= (uint32_t)(((int32_t)field - 127) >> 1) << 23;
  r = magnitude == 0x7f800000 ? 0 : r;
  r = bits >> 31 ? (uint32_t)EMU_HW_NAN : r;
  r = magnitude < 0x800000 ? (bits & 0x80000000) | 0x7f800000 : r;
  return magnitude > 0x7f800000 ? emu__hw_quiet(bits, quiet) : r;
}
static inline uint32_t emu__hw_rsq_f32(uint32_t bits, bool quiet) {
  return emu__hw_rsq_place(bits, emu__hw_rsq_mantissa(emu__hw_root_index(bits)), quiet);
}

static inline uint32_t emu__hw_sqrt_place(uint32_t bits, uint32_t mantissa, bool quiet) {
  uint32_t magnitude = bits & 0x7fffffff, field = magnitude >> 23, r = 0x3f000000 + mantissa;
  r += (uint32_t)(((int32_t)field - 127) >> 1) << 23;
  r = magnitude == 0x7f800000 ? magnitude : r;
  r = bits >> 31 ? (uint32_t)EMU_HW_NAN : r;
  r = magnitude < 0x800000 ? bits & 0x80000000 : r;
  return magnitude > 0x7f800000 ? emu__hw_quiet(bits, quiet) : r;
}
static inline uint32_t emu__hw_sqrt_f32(uint32_t bits, bool quiet) {
  return emu__hw_sqrt_place(bits, emu__hw_sqrt_mantissa(emu__hw_root_index(bits)), quiet);
}

// x with 29 places after the point, cut; beyond 128 the exponent decides. A negative number's fraction is the one's
// complement.
static inline int64_t emu__hw_exp_fixed(uint32_t bits) {
  uint32_t field = bits >> 23 & 255;
  uint64_t mantissa = (bits & 0x7fffff) | 0x800000;
  uint64_t left = field < 121 ? 0 : field > 134 ? 13 : field - 121;
  uint64_t right = field > 121 ? 0 : field < 90 ? 31 : 121 - field, fixed = mantissa << left >> right;
  return (int64_t)(fixed ^ (0 - (uint64_t)(bits >> 31)));
}
// From 2^23 2^f and the whole part of x.
static inline uint32_t emu__hw_exp_place(uint32_t bits, int32_t whole, uint32_t power, bool quiet) {
  uint32_t magnitude = bits & 0x7fffffff, negative = bits >> 31;
  int32_t e = whole + 126, result = (int32_t)(((uint32_t)e << 23) + power);
  result = e >= 254 ? 0x7f800000 : e < -1 || result < 0x800000 ? 0 : result;
  result = magnitude < 0x33800000 ? 0x3f800000 : result;
  result = magnitude >= 0x43000000 ? (negative ? 0 : 0x7f800000) : result;
  return magnitude > 0x7f800000 ? emu__hw_quiet(bits, quiet) : (uint32_t)result;
}
// 2^x.
static inline uint32_t emu__hw_exp_f32(uint32_t bits, bool quiet) {
  int64_t fixed = emu__hw_exp_fixed(bits);
  return emu__hw_exp_place(bits, (int32_t)(fixed >> 29), emu__hw_exp_fraction((uint32_t)fixed & 0x1fffffff), quiet);
}

// The same of 32 lanes; `to` may be `from`.
void emu__hw_rcp_lanes(const uint32_t from[32], uint32_t to[32], bool quiet);
void emu__hw_rsq_lanes(const uint32_t from[32], uint32_t to[32], bool quiet);
void emu__hw_sqrt_lanes(const uint32_t from[32], uint32_t to[32], bool quiet);
void emu__hw_exp_lanes(const uint32_t from[32], uint32_t to[32], bool quiet);

// log2 x.
uint32_t emu__hw_log_f32(uint32_t bits, bool quiet);

// Of x turns. denormals: MODE's two bits, kept in (1) and kept out (2).
uint32_t emu__hw_trig_f32(uint32_t bits, bool cosine, unsigned denormals, bool quiet);

// ---- halves: V_RCP, V_RSQ, V_SQRT, V_SIN and V_COS are the F32 function rounded; V_LOG and V_EXP are rounded
// correctly. All round to nearest even. MODE's denormal bits are honoured, both ways; FP16_OVFL makes overflow the
// largest number.
enum emu_hw_half { EMU_HW_RCP, EMU_HW_RSQ, EMU_HW_SQRT, EMU_HW_SIN, EMU_HW_COS, EMU_HW_LOG, EMU_HW_EXP };
uint32_t emu__hw_half(enum emu_hw_half function, uint32_t half, unsigned denormals, bool overflow_to_max, bool quiet);

#endif
