// Conversions from and to floats of 8 bits.
#include "machine/float8.h"

#include <math.h>

#include "machine/dot.h"
#include "machine/valu.h"

static const struct format {
  int bits, fraction, bias;
  uint32_t most, infinite, nan;
} formats[] = {[EMU_FP8] = {8, 3, 7, 0x7e, 0x7f, 0x7f},
               [EMU_BF8] = {8, 2, 15, 0x7b, 0x7c, 0x7f},
               [EMU_FP8_FNUZ] = {8, 3, 8, 0x7f, 0x80, 0x80},
               [EMU_BF8_FNUZ] = {8, 2, 16, 0x7f, 0x80, 0x80},
               [EMU_FP6] = {6, 3, 1, 0x1f, 0x1f, 0x1f},
               [EMU_BF6] = {6, 2, 3, 0x1f, 0x1f, 0x1f},
               [EMU_FP4] = {4, 1, 1, 7, 7, 7},
               [EMU_SHORT_F16] = {16, 10, 15, 0x7bff, 0x7c00, 0x7e00},
               [EMU_SHORT_BF16] = {16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0}};

static bool is_fnuz(enum emu_float8 format) { return format == EMU_FP8_FNUZ || format == EMU_BF8_FNUZ; }

unsigned emu__float8_bits(enum emu_float8 format) { return (unsigned)formats[format].bits; }
unsigned emu__float8_fraction(enum emu_float8 format) { return (unsigned)formats[format].fraction; }

uint32_t emu__float8_to_half(uint32_t byte, enum emu_float8 format) {
  if (format == EMU_BF8) return byte << 8;  // a half's upper byte
  const struct format *f = &formats[format];
  uint32_t top = 1u << (f->bits - 1), sign = byte & top ? 0x8000 : 0, magnitude = byte & (top - 1);
  uint32_t field = magnitude >> f->fraction;
  bool nan = is_fnuz(format) ? byte == f->nan : f->bits == 8 && magnitude == f->nan;
  if (nan) return sign | 0x7e00;
  uint32_t units = field ? (magnitude & ((1u << f->fraction) - 1)) | 1u << f->fraction : magnitude;
  return sign | emu__f32_to_f16(ldexpf((float)units, (field ? (int)field : 1) - f->bias - f->fraction));
}

uint32_t emu__float8_of(uint32_t bits, enum emu_float8 format, bool saturates, uint32_t more) {
  return emu__float8_of_scaled(bits, 0, format, saturates, more);
}

uint32_t emu__float8_of_scaled(uint32_t bits, int scale, enum emu_float8 format, bool saturates, uint32_t more) {
  const struct format *f = &formats[format];
  uint32_t sign = bits >> 31 << (f->bits - 1), magnitude = bits & 0x7fffffff, zero = is_fnuz(format) ? 0 : sign;
  if (magnitude > 0x7f800000) return sign | f->nan;
  if (magnitude == 0x7f800000) return sign | f->infinite;
  if (!magnitude) return zero;
  int exponent = (int)(magnitude >> 23) - 127 - scale;
  uint32_t significand = magnitude & 0x7fffff;
  if (magnitude < 0x800000) {
    int up = __builtin_clz(significand) - 8;
    significand <<= up;
    exponent += 1 - up;
  }
  significand |= 0x800000;
  if (more != EMU_FLOAT8_NEAREST) significand += more;
  if (significand >> 24) significand >>= 1, exponent++;
  int below = 1 - f->bias - exponent;  // how far below the normal numbers
  int cut = 23 - f->fraction + (below > 0 ? below : 0);
  uint32_t kept = 0;
  if (cut < 32) {
    kept = significand >> cut;
    uint32_t rest = significand & ((1u << cut) - 1), half = 1u << (cut - 1);
    if (more == EMU_FLOAT8_NEAREST && (rest > half || (rest == half && kept & 1))) kept++;
  }
  // a carry goes on into the exponent, and from the denormal numbers to the normal ones
  uint32_t field = below > 0 ? 0 : (uint32_t)(exponent + f->bias - 1) << f->fraction, byte = field + kept;
  if (byte > f->most) byte = saturates ? f->most : f->infinite;
  return byte ? sign | byte : zero;
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

// To halves and BF16 with a random number, of which as many bits are added as are cut from a normal number.
static void random_f16(struct emu_half_wave *x) {
  bool saturates = x->mode & EMU_MODE_FP16_OVFL;
  EMU_EACH x->d[l] = emu__float8_of(x->s[0][l], EMU_SHORT_F16, saturates, x->s[1][l] >> 19);
}
static void random_bf16(struct emu_half_wave *x) {
  EMU_EACH x->d[l] = emu__float8_of(x->s[0][l], EMU_SHORT_BF16, false, x->s[1][l] >> 16);
}

static void next_random(struct emu_half_wave *x) { EMU_EACH x->d[l] = emu__next_random(x->s[0][l]); }

#define PART(name, function, bits) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .part = bits}
#define ACTIONS(fp8, bf8)                                                                                     \
  EMU_ALU(V_CVT_F32_FP8, one_##fp8), EMU_ALU(V_CVT_F32_BF8, one_##bf8), EMU_ALU(V_CVT_PK_F32_FP8, two_##fp8), \
      EMU_ALU(V_CVT_PK_F32_BF8, two_##bf8), PART(V_CVT_PK_FP8_F32, pack_##fp8, 16),                           \
      PART(V_CVT_PK_BF8_F32, pack_##bf8, 16), PART(V_CVT_SR_FP8_F32, round_##fp8, 8),                         \
      PART(V_CVT_SR_BF8_F32, round_##bf8, 8)
const struct emu_action emu__float8_actions[] = {ACTIONS(fp8, bf8),
                                                 PART(V_CVT_SR_F16_F32, random_f16, 16),
                                                 PART(V_CVT_SR_BF16_F32, random_bf16, 16),
                                                 EMU_ALU(V_PRNG_B32, next_random),
                                                 {0}};
const struct emu_action emu__fnuz_actions[] = {ACTIONS(fp8_fnuz, bf8_fnuz), {0}};
