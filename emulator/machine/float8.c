// Conversions from and to floats of 8 bits.
#include "machine/float8.h"

#include <math.h>

#include "machine/dot.h"
#include "machine/valu.h"

static const struct format {
  int fraction, bias;
  uint32_t most, infinite, nan;
} formats[] = {[EMU_FP8] = {3, 7, 0x7e, 0x7f, 0x7f},
               [EMU_BF8] = {2, 15, 0x7b, 0x7c, 0x7f},
               [EMU_FP8_FNUZ] = {3, 8, 0x7f, 0x80, 0x80},
               [EMU_BF8_FNUZ] = {2, 16, 0x7f, 0x80, 0x80}};

static bool is_fnuz(enum emu_float8 format) { return format == EMU_FP8_FNUZ || format == EMU_BF8_FNUZ; }

uint32_t emu__float8_to_half(uint32_t byte, enum emu_float8 format) {
  if (format == EMU_BF8) return byte << 8;  // a half's upper byte
  const struct format *f = &formats[format];
  uint32_t sign = (byte & 0x80) << 8, magnitude = byte & 0x7f, field = magnitude >> f->fraction;
  if (is_fnuz(format) ? byte == f->nan : magnitude == f->nan) return sign | 0x7e00;
  uint32_t units = field ? (magnitude & ((1u << f->fraction) - 1)) | 1u << f->fraction : magnitude;
  return sign | emu__f32_to_f16(ldexpf((float)units, (field ? (int)field : 1) - f->bias - f->fraction));
}

uint32_t emu__float8_of(uint32_t bits, enum emu_float8 format, bool saturates, uint32_t more) {
  const struct format *f = &formats[format];
  uint32_t sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | f->nan;
  if (magnitude == 0x7f800000) return sign | f->infinite;
  if (magnitude < 0x800000) return is_fnuz(format) ? 0 : sign;  // far below half of the smallest byte
  if (more != EMU_FLOAT8_NEAREST) magnitude += more;
  int exponent = (int)(magnitude >> 23) - 127, below = 1 - f->bias - exponent;  // how far below the normal numbers
  uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  int cut = 23 - f->fraction + (below > 0 ? below : 0);
  uint32_t kept = 0;
  if (cut < 32) {
    kept = significand >> cut;
    uint32_t rest = significand & ((1u << cut) - 1), half = 1u << (cut - 1);
    if (more == EMU_FLOAT8_NEAREST && (rest > half || (rest == half && kept & 1))) kept++;
  }
  // a carry goes on into the exponent, and from the denormal numbers to the normal ones
  uint32_t field = below > 0 ? 0 : (uint32_t)(exponent + f->bias - 1) << f->fraction, byte = field + kept;
  if (exponent + f->bias > 31 || byte > f->most) byte = saturates ? f->most : f->infinite;
  return is_fnuz(format) && !byte ? 0 : sign | byte;
}

// ---- to floats: a byte, or the two of a half register

static uint32_t to_float(uint32_t byte, enum emu_float8 format) {
  uint32_t bits = emu__half_to_float_bits(emu__float8_to_half(byte, format));
  return emu__is_nan32(bits) ? bits | 0x400000 : bits;
}
#define OPEN(name, format)                                                                                  \
  static void one_##name(struct emu_half_wave *x) {                                                         \
    EMU_EACH x->d[l] = to_float(x->s[0][l] >> 8 * (unsigned)x->inst->imm & 0xff, format);                   \
  }                                                                                                         \
  static void two_##name(struct emu_half_wave *x) {                                                         \
    EMU_EACH {                                                                                              \
      uint32_t v = x->inst->src[0].high ? x->s[0][l] >> 16 : x->s[0][l];                                    \
      emu__set_pair(x->d, l, to_float(v & 0xff, format) | (uint64_t)to_float(v >> 8 & 0xff, format) << 32); \
    }                                                                                                       \
  }
OPEN(fp8, EMU_FP8)
OPEN(bf8, EMU_BF8)
OPEN(fp8_fnuz, EMU_FP8_FNUZ)
OPEN(bf8_fnuz, EMU_BF8_FNUZ)

// ---- from floats, into a part of the register whose rest stays

#define CLOSE(name, format, random)                                                           \
  static void pack_##name(struct emu_half_wave *x) {                                          \
    bool saturates = x->mode & EMU_MODE_FP16_OVFL;                                            \
    EMU_EACH {                                                                                \
      uint32_t low = emu__float8_of(x->s[0][l], format, saturates, EMU_FLOAT8_NEAREST);       \
      x->d[l] = low | emu__float8_of(x->s[1][l], format, saturates, EMU_FLOAT8_NEAREST) << 8; \
    }                                                                                         \
  }                                                                                           \
  static void round_##name(struct emu_half_wave *x) {                                         \
    bool saturates = x->mode & EMU_MODE_FP16_OVFL;                                            \
    EMU_EACH x->d[l] = emu__float8_of(x->s[0][l], format, saturates, x->s[1][l] >> (random)); \
  }
CLOSE(fp8, EMU_FP8, 12)
CLOSE(bf8, EMU_BF8, 11)
CLOSE(fp8_fnuz, EMU_FP8_FNUZ, 12)
CLOSE(bf8_fnuz, EMU_BF8_FNUZ, 11)

#define PART(name, function, bits) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .part = bits}
#define ACTIONS(fp8, bf8)                                                                                     \
  EMU_ALU(V_CVT_F32_FP8, one_##fp8), EMU_ALU(V_CVT_F32_BF8, one_##bf8), EMU_ALU(V_CVT_PK_F32_FP8, two_##fp8), \
      EMU_ALU(V_CVT_PK_F32_BF8, two_##bf8), PART(V_CVT_PK_FP8_F32, pack_##fp8, 16),                           \
      PART(V_CVT_PK_BF8_F32, pack_##bf8, 16), PART(V_CVT_SR_FP8_F32, round_##fp8, 8),                         \
      PART(V_CVT_SR_BF8_F32, round_##bf8, 8)
const struct emu_action emu__float8_actions[] = {ACTIONS(fp8, bf8), {0}};
const struct emu_action emu__fnuz_actions[] = {ACTIONS(fp8_fnuz, bf8_fnuz), {0}};
