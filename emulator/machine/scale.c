// Conversions of gfx950 between floats and those of 8, 6 and 4 bits, with a scale: what is made small is divided by it,
// what is opened is multiplied. It is a power of two, the exponent of a float; 255 is NaN.
//
// op_sel says which part of a register is read or written, whose rest stays. Where a random number rounds several
// elements, V_PRNG_B32 makes the next one of it for each. Source: AMD "CDNA4 Instruction Set Architecture". It does not
// say how many bits of the random number are added; here as many as are cut from a normal number, as without a scale.
#include <math.h>

#include "machine/float8.h"
#include "machine/valu.h"

enum wide { F32, F16, BF16 };

struct conversion {
  uint8_t small, wide;  // enum emu_float8, enum wide
  uint8_t count;        // elements
  bool opens, random;
  bool interleaves;  // two sources of 16 elements, in turn
};

enum { FIRST = EMU_V_CVT_SCALEF32_PK_FP8_F32, LAST = EMU_V_CVT_SCALEF32_PK_BF16_BF8 };

#define CLOSE(to, from, count) {EMU_##to, from, count, false, false, false}
#define RANDOM(to, from, count) {EMU_##to, from, count, false, true, false}
#define OPEN(to, from, count) {EMU_##from, to, count, true, false, false}
#define AT(name) [EMU_V_CVT_SCALEF32_##name - FIRST]
static const struct conversion conversions[LAST - FIRST + 1] = {
    AT(PK_FP8_F32) = CLOSE(FP8, F32, 2),
    AT(PK_BF8_F32) = CLOSE(BF8, F32, 2),
    AT(SR_FP8_F32) = RANDOM(FP8, F32, 1),
    AT(SR_BF8_F32) = RANDOM(BF8, F32, 1),
    AT(PK_F32_FP8) = OPEN(F32, FP8, 2),
    AT(PK_F32_BF8) = OPEN(F32, BF8, 2),
    AT(F32_FP8) = OPEN(F32, FP8, 1),
    AT(F32_BF8) = OPEN(F32, BF8, 1),
    AT(PK_FP4_F32) = CLOSE(FP4, F32, 2),
    AT(SR_PK_FP4_F32) = RANDOM(FP4, F32, 2),
    AT(PK_F32_FP4) = OPEN(F32, FP4, 2),
    AT(PK_FP8_F16) = CLOSE(FP8, F16, 2),
    AT(PK_BF8_F16) = CLOSE(BF8, F16, 2),
    AT(SR_FP8_F16) = RANDOM(FP8, F16, 1),
    AT(SR_BF8_F16) = RANDOM(BF8, F16, 1),
    AT(PK_FP8_BF16) = CLOSE(FP8, BF16, 2),
    AT(PK_BF8_BF16) = CLOSE(BF8, BF16, 2),
    AT(SR_FP8_BF16) = RANDOM(FP8, BF16, 1),
    AT(SR_BF8_BF16) = RANDOM(BF8, BF16, 1),
    AT(PK_F16_FP8) = OPEN(F16, FP8, 2),
    AT(PK_F16_BF8) = OPEN(F16, BF8, 2),
    AT(F16_FP8) = OPEN(F16, FP8, 1),
    AT(F16_BF8) = OPEN(F16, BF8, 1),
    AT(PK_FP4_F16) = CLOSE(FP4, F16, 2),
    AT(PK_FP4_BF16) = CLOSE(FP4, BF16, 2),
    AT(SR_PK_FP4_F16) = RANDOM(FP4, F16, 2),
    AT(SR_PK_FP4_BF16) = RANDOM(FP4, BF16, 2),
    AT(PK_F16_FP4) = OPEN(F16, FP4, 2),
    AT(PK_BF16_FP4) = OPEN(BF16, FP4, 2),
    AT(2XPK16_FP6_F32) = {EMU_FP6, F32, 32, false, false, true},
    AT(2XPK16_BF6_F32) = {EMU_BF6, F32, 32, false, false, true},
    AT(SR_PK32_FP6_F32) = RANDOM(FP6, F32, 32),
    AT(SR_PK32_BF6_F32) = RANDOM(BF6, F32, 32),
    AT(PK32_F32_FP6) = OPEN(F32, FP6, 32),
    AT(PK32_F32_BF6) = OPEN(F32, BF6, 32),
    AT(PK32_FP6_F16) = CLOSE(FP6, F16, 32),
    AT(PK32_FP6_BF16) = CLOSE(FP6, BF16, 32),
    AT(PK32_BF6_F16) = CLOSE(BF6, F16, 32),
    AT(PK32_BF6_BF16) = CLOSE(BF6, BF16, 32),
    AT(SR_PK32_FP6_F16) = RANDOM(FP6, F16, 32),
    AT(SR_PK32_FP6_BF16) = RANDOM(FP6, BF16, 32),
    AT(SR_PK32_BF6_F16) = RANDOM(BF6, F16, 32),
    AT(SR_PK32_BF6_BF16) = RANDOM(BF6, BF16, 32),
    AT(PK32_F16_FP6) = OPEN(F16, FP6, 32),
    AT(PK32_BF16_FP6) = OPEN(BF16, FP6, 32),
    AT(PK32_F16_BF6) = OPEN(F16, BF6, 32),
    AT(PK32_BF16_BF6) = OPEN(BF16, BF6, 32),
    AT(PK_BF16_FP8) = OPEN(BF16, FP8, 2),
    AT(PK_BF16_BF8) = OPEN(BF16, BF8, 2),
};

static uint32_t word_of(const struct emu_wave *w, const struct emu_operand *o, unsigned dword, unsigned lane) {
  if (o->kind == EMU_OPERAND_VECTOR) return *emu__vector(w, o->reg + dword, lane);
  if (o->kind == EMU_OPERAND_CONSTANT) return (uint32_t)(o->value >> 32 * (dword & 1));
  return o->kind == EMU_OPERAND_SCALAR ? w->s[o->reg + dword] : emu__special_value(w, o->reg, dword);
}

// Element e of the numbers to be made small, as a float's bits.
static uint32_t wide_element(const struct emu_wave *w, const struct emu_inst *inst, const struct conversion *c,
                             unsigned e, unsigned lane) {
  bool apart = c->wide == F32 && !c->random && c->count == 2;  // a source each
  const struct emu_operand *o = &inst->src[apart ? e : c->interleaves ? e & 1 : 0];
  if (c->interleaves) e /= 2;
  uint32_t bits;
  if (c->wide == F32) {
    bits = word_of(w, o, apart ? 0 : e, lane);
  } else {
    uint32_t half = word_of(w, o, e / 2, lane) >> 16 * (e & 1) & 0xffff;
    bits = c->wide == BF16 ? half << 16 : emu__bits32(emu__f16_to_f32((uint16_t)half));
  }
  if (o->abs) bits &= INT32_MAX;
  return o->neg ? bits ^ 0x80000000u : bits;
}

static uint32_t wide_of(uint32_t small, const struct conversion *c, int scale) {
  uint32_t half = emu__float8_to_half(small, (enum emu_float8)c->small), sign = (half & 0x8000) << 16;
  bool nan = emu__is_nan16(half) || scale == 128;
  double value = ldexp((double)emu__f16_to_f32((uint16_t)half), scale);
  if (c->wide == F16) return nan ? sign >> 16 | 0x7e00 : emu__f64_to_f16(value);
  uint32_t bits = nan ? sign | 0x7fc00000 : emu__bits32((float)value);
  return c->wide == F32 ? bits : emu__bfloat_of(bits);
}

static void put(uint32_t *words, unsigned low, unsigned bits, uint32_t value) {
  uint64_t mask = ((UINT64_C(1) << bits) - 1) << low % 32, all = (uint64_t)value << low % 32;
  uint32_t *at = words + low / 32;
  at[0] = (at[0] & ~(uint32_t)mask) | (uint32_t)all;
  if (mask >> 32) at[1] = (at[1] & ~(uint32_t)(mask >> 32)) | (uint32_t)(all >> 32);
}

static uint32_t get(const uint32_t *words, unsigned low, unsigned bits) {
  uint64_t pair = words[low / 32];
  if (low % 32 + bits > 32) pair |= (uint64_t)words[low / 32 + 1] << 32;
  return (uint32_t)(pair >> low % 32 & ((1u << bits) - 1));
}

static void close_lane(const struct emu_wave *w, const struct emu_inst *inst, const struct conversion *c, int scale,
                       unsigned lane, uint32_t *out) {
  enum emu_float8 small = (enum emu_float8)c->small;
  unsigned bits = emu__float8_bits(small), all = bits * c->count, sel = (unsigned)inst->imm;
  unsigned at = all == 8 ? 8 * (sel >> 2) : all == 16 ? 16 * (sel >> 3) : 0;
  uint32_t seed = c->random ? word_of(w, &inst->src[1], 0, lane) : 0;
  bool saturates = w->mode & EMU_MODE_FP16_OVFL;
  for (unsigned e = 0; e < c->count; e++) {
    uint32_t more = c->random ? seed >> (9 + emu__float8_fraction(small)) : EMU_FLOAT8_NEAREST;
    uint32_t value = wide_element(w, inst, c, e, lane);
    if (scale == 128) value |= 0x7fffffff;
    put(out, at + bits * e, bits, emu__float8_of_scaled(value, scale, small, saturates, more));
    seed = emu__next_random(seed);
  }
}

static void open_lane(const struct emu_wave *w, const struct emu_inst *inst, const struct conversion *c, int scale,
                      unsigned lane, uint32_t *out) {
  uint32_t in[6];
  unsigned bits = emu__float8_bits((enum emu_float8)c->small), all = bits * c->count, sel = (unsigned)inst->imm;
  unsigned at = all == 8 ? 8 * (sel & 3) : all == 16 ? 16 * (sel & 1) : 0;
  for (unsigned k = 0; k < (all > 32 ? all / 32 : 1); k++) in[k] = word_of(w, &inst->src[0], k, lane);
  for (unsigned e = 0; e < c->count; e++) {
    unsigned width = c->wide == F32 ? 32 : 16;
    put(out, (c->count == 1 && width == 16 ? 16 * (sel >> 3) : 0) + width * e, width,
        wide_of(get(in, at + bits * e, bits), c, scale));
  }
}

// What of op_sel has a meaning.
static unsigned selected(const struct conversion *c) {
  unsigned all = emu__float8_bits((enum emu_float8)c->small) * c->count;
  if (c->count == 32) return 0;
  if (!c->opens) return all == 8 ? 12 : 8;
  return (all == 8 ? 3 : 1) | (c->count == 1 && c->wide == F16 ? 8 : 0);
}

static void convert(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  const struct conversion *c = &conversions[inst->op - FIRST];
  unsigned last = inst->src[2].kind ? 2 : 1;
  bool signs = inst->src[0].neg || inst->src[0].abs, pair = c->count > 1 && !(c->wide == F32 && !c->random);
  if ((unsigned)inst->imm & ~selected(c) || (signs && pair)) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0,
                   "What this op_sel, or a sign of several numbers, means is not known.");
    return;
  }
  uint64_t exec = emu__wave_exec(w);
  for (unsigned l = 0; l < w->lanes; l++) {
    if (!(exec >> l & 1)) continue;
    uint32_t out[32];
    for (unsigned k = 0; k < inst->dst.dwords; k++) out[k] = *emu__vector(w, inst->dst.reg + k, l);
    int scale = (int)(word_of(w, &inst->src[last], 0, l) >> 23 & 255) - 127;
    (c->opens ? open_lane : close_lane)(w, inst, c, scale, l, out);
    for (unsigned k = 0; k < inst->dst.dwords; k++) *emu__vector(w, inst->dst.reg + k, l) = out[k];
  }
}

#define ROW(name) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .run = convert}
const struct emu_action emu__scale_actions[] = {
    ROW(V_CVT_SCALEF32_PK_FP8_F32),       ROW(V_CVT_SCALEF32_PK_BF8_F32),
    ROW(V_CVT_SCALEF32_SR_FP8_F32),       ROW(V_CVT_SCALEF32_SR_BF8_F32),
    ROW(V_CVT_SCALEF32_PK_F32_FP8),       ROW(V_CVT_SCALEF32_PK_F32_BF8),
    ROW(V_CVT_SCALEF32_F32_FP8),          ROW(V_CVT_SCALEF32_F32_BF8),
    ROW(V_CVT_SCALEF32_PK_FP4_F32),       ROW(V_CVT_SCALEF32_SR_PK_FP4_F32),
    ROW(V_CVT_SCALEF32_PK_F32_FP4),       ROW(V_CVT_SCALEF32_PK_FP8_F16),
    ROW(V_CVT_SCALEF32_PK_BF8_F16),       ROW(V_CVT_SCALEF32_SR_FP8_F16),
    ROW(V_CVT_SCALEF32_SR_BF8_F16),       ROW(V_CVT_SCALEF32_PK_FP8_BF16),
    ROW(V_CVT_SCALEF32_PK_BF8_BF16),      ROW(V_CVT_SCALEF32_SR_FP8_BF16),
    ROW(V_CVT_SCALEF32_SR_BF8_BF16),      ROW(V_CVT_SCALEF32_PK_F16_FP8),
    ROW(V_CVT_SCALEF32_PK_F16_BF8),       ROW(V_CVT_SCALEF32_F16_FP8),
    ROW(V_CVT_SCALEF32_F16_BF8),          ROW(V_CVT_SCALEF32_PK_FP4_F16),
    ROW(V_CVT_SCALEF32_PK_FP4_BF16),      ROW(V_CVT_SCALEF32_SR_PK_FP4_F16),
    ROW(V_CVT_SCALEF32_SR_PK_FP4_BF16),   ROW(V_CVT_SCALEF32_PK_F16_FP4),
    ROW(V_CVT_SCALEF32_PK_BF16_FP4),      ROW(V_CVT_SCALEF32_2XPK16_FP6_F32),
    ROW(V_CVT_SCALEF32_2XPK16_BF6_F32),   ROW(V_CVT_SCALEF32_SR_PK32_FP6_F32),
    ROW(V_CVT_SCALEF32_SR_PK32_BF6_F32),  ROW(V_CVT_SCALEF32_PK32_F32_FP6),
    ROW(V_CVT_SCALEF32_PK32_F32_BF6),     ROW(V_CVT_SCALEF32_PK32_FP6_F16),
    ROW(V_CVT_SCALEF32_PK32_FP6_BF16),    ROW(V_CVT_SCALEF32_PK32_BF6_F16),
    ROW(V_CVT_SCALEF32_PK32_BF6_BF16),    ROW(V_CVT_SCALEF32_SR_PK32_FP6_F16),
    ROW(V_CVT_SCALEF32_SR_PK32_FP6_BF16), ROW(V_CVT_SCALEF32_SR_PK32_BF6_F16),
    ROW(V_CVT_SCALEF32_SR_PK32_BF6_BF16), ROW(V_CVT_SCALEF32_PK32_F16_FP6),
    ROW(V_CVT_SCALEF32_PK32_BF16_FP6),    ROW(V_CVT_SCALEF32_PK32_F16_BF6),
    ROW(V_CVT_SCALEF32_PK32_BF16_BF6),    ROW(V_CVT_SCALEF32_PK_BF16_FP8),
    ROW(V_CVT_SCALEF32_PK_BF16_BF8),      {0}};
