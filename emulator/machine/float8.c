// Conversions from and to floats of 8 bits.
#include "machine/float8.h"

#include "machine/dot.h"
#include "machine/valu.h"

uint32_t emu__float8_to_half(uint32_t byte, bool bf8) {
  if (bf8) return byte << 8;  // a half's upper byte
  uint32_t sign = (byte & 0x80) << 8, magnitude = byte & 0x7f;
  if (magnitude == 0x7f) return sign | 0x7e00;
  if (magnitude >= 8) return sign | ((magnitude << 7) + ((15 - 7) << 10));
  return sign | emu__f32_to_f16((float)magnitude * 0x1p-9f);
}

uint32_t emu__float8_of(uint32_t bits, bool bf8, bool saturates, uint32_t more) {
  const int fraction = bf8 ? 2 : 3, bias = bf8 ? 15 : 7;
  uint32_t sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff, most = bf8 ? 0x7b : 0x7e;
  if (magnitude > 0x7f800000) return sign | 0x7f;
  if (magnitude == 0x7f800000) return sign | (bf8 ? 0x7c : 0x7f);
  if (magnitude < 0x800000) return sign;  // far below half of the smallest byte
  if (more != EMU_FLOAT8_NEAREST) magnitude += more;
  int exponent = (int)(magnitude >> 23) - 127, below = 1 - bias - exponent;  // how far below the normal numbers
  uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  int cut = 23 - fraction + (below > 0 ? below : 0);
  uint32_t kept = 0;
  if (cut < 32) {
    kept = significand >> cut;
    uint32_t rest = significand & ((1u << cut) - 1), half = 1u << (cut - 1);
    if (more == EMU_FLOAT8_NEAREST && (rest > half || (rest == half && kept & 1))) kept++;
  }
  // a carry goes on into the exponent, and from the denormal numbers to the normal ones
  uint32_t field = below > 0 ? 0 : (uint32_t)(exponent + bias - 1) << fraction, byte = field + kept;
  if (exponent + bias > 31 || byte > most) byte = saturates ? most : bf8 ? 0x7c : 0x7f;
  return sign | byte;
}

// ---- to floats: a byte, or the two of a half register

static uint32_t to_float(uint32_t byte, bool bf8) {
  uint32_t bits = emu__half_to_float_bits(emu__float8_to_half(byte, bf8));
  return emu__is_nan32(bits) ? bits | 0x400000 : bits;
}
#define OPEN(name, bf8)                                                                               \
  static void one_##name(struct emu_half_wave *x) {                                                   \
    EMU_EACH x->d[l] = to_float(x->s[0][l] >> 8 * (unsigned)x->inst->imm & 0xff, bf8);                \
  }                                                                                                   \
  static void two_##name(struct emu_half_wave *x) {                                                   \
    EMU_EACH {                                                                                        \
      uint32_t v = x->inst->src[0].high ? x->s[0][l] >> 16 : x->s[0][l];                              \
      emu__set_pair(x->d, l, to_float(v & 0xff, bf8) | (uint64_t)to_float(v >> 8 & 0xff, bf8) << 32); \
    }                                                                                                 \
  }
OPEN(fp8, false)
OPEN(bf8, true)

// ---- from floats, into a part of the register whose rest stays

#define CLOSE(name, bf8, random)                                                           \
  static void pack_##name(struct emu_half_wave *x) {                                       \
    bool saturates = x->mode & EMU_MODE_FP16_OVFL;                                         \
    EMU_EACH {                                                                             \
      uint32_t low = emu__float8_of(x->s[0][l], bf8, saturates, EMU_FLOAT8_NEAREST);       \
      x->d[l] = low | emu__float8_of(x->s[1][l], bf8, saturates, EMU_FLOAT8_NEAREST) << 8; \
    }                                                                                      \
  }                                                                                        \
  static void round_##name(struct emu_half_wave *x) {                                      \
    bool saturates = x->mode & EMU_MODE_FP16_OVFL;                                         \
    EMU_EACH x->d[l] = emu__float8_of(x->s[0][l], bf8, saturates, x->s[1][l] >> (random)); \
  }
CLOSE(fp8, false, 12)
CLOSE(bf8, true, 11)

#define PART(name, function, bits) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .part = bits}
const struct emu_action emu__float8_actions[] = {
    EMU_ALU(V_CVT_F32_FP8, one_fp8),      EMU_ALU(V_CVT_F32_BF8, one_bf8),      EMU_ALU(V_CVT_PK_F32_FP8, two_fp8),
    EMU_ALU(V_CVT_PK_F32_BF8, two_bf8),   PART(V_CVT_PK_FP8_F32, pack_fp8, 16), PART(V_CVT_PK_BF8_F32, pack_bf8, 16),
    PART(V_CVT_SR_FP8_F32, round_fp8, 8), PART(V_CVT_SR_BF8_F32, round_bf8, 8), {0}};
