// Runs vector arithmetic: brings the sources to 32 lanes each, calls the operation, and writes under EXEC.
//
// emu__valu_prepare picks the shortest way that the instruction allows. Plain 32-bit operands go straight from the
// registers to the operation; modifiers, DPP, SDWA, halves, packed and 64-bit values take the general way.
#include "machine/valu.h"

#include <immintrin.h>

static void splat(uint32_t *to, uint32_t value) { EMU_EACH to[l] = value; }

// ---- the ways that operations without functions of their own share

static void run_plain(struct emu_wave *wave, const struct emu_step *step) {
  emu__run_plain(wave, step, step->lanes, step->nsrc);
}

static void run_whole(struct emu_wave *wave, const struct emu_step *step) {
  emu__run_whole(wave, step, step->lanes, step->nsrc);
}

static void run_dual(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_step *pair = step->pair;
  if (emu__is_rows(wave, step)) {
    struct emu_half_wave x, y;
    emu__rows(wave, step, step->nsrc, &x);
    emu__second_rows(wave, step, pair->nsrc, &y);
    step->lanes(&x);
    pair->lanes(&y);
    return;
  }
  emu__run_dual(wave, step, step->lanes, step->nsrc, pair->lanes, pair->nsrc);
}

// ---- the general way

struct general {
  struct emu_wave *wave;
  const struct emu_step *step;
  const struct emu_inst *inst;
  unsigned half;
  uint32_t exec;
  uint32_t *whole;  // the first source of all lanes, before any is written, where DPP crosses halves; else NULL
};

static bool is_packed(unsigned type) {
  return type == EMU_PKB16 || type == EMU_PKI16 || type == EMU_PKU16 || type == EMU_PKF16 || type == EMU_PKBF16;
}

static bool is_half_type(unsigned type) {
  return type == EMU_B16 || type == EMU_I16 || type == EMU_U16 || type == EMU_F16 || type == EMU_BF16;
}

static void flush_halves(uint32_t *value) {
  EMU_EACH {
    uint32_t v = value[l];
    if (!(v & 0x7c00)) v &= ~0x3ffu;
    if (!(v & 0x7c000000)) v &= ~0x3ff0000u;
    value[l] = v;
  }
}

static void select_sdwa(uint32_t *value, unsigned select, bool sext) {
  if (select == EMU_DWORD) return;
  unsigned bits = select < EMU_WORD_0 ? 8 : 16, low = select < EMU_WORD_0 ? select * 8 : (select - EMU_WORD_0) * 16;
  EMU_EACH {
    uint32_t v = value[l] << (32 - bits - low);
    value[l] = sext ? (uint32_t)((int32_t)v >> (32 - bits)) : v >> (32 - bits);
  }
}

static void select_packed(uint32_t *value, const struct emu_operand *operand) {
  unsigned low = operand->high ? 16 : 0, high = operand->high_high ? 16 : 0;
  uint32_t flip = (operand->neg ? 0x8000u : 0) | (operand->neg_high ? 0x80000000u : 0);
  EMU_EACH value[l] = ((value[l] >> low & 0xffff) | value[l] >> high << 16) ^ flip;
}

// Of two registers: each half of the result takes either, with a sign of its own.
static void select_wide(uint32_t *value, const struct emu_operand *o) {
  uint32_t low_flip = o->neg ? 0x80000000u : 0, high_flip = o->neg_high ? 0x80000000u : 0;
  EMU_EACH {
    uint32_t low = value[l], high = value[l + EMU_HALF];
    value[l] = (o->high ? high : low) ^ low_flip;
    value[l + EMU_HALF] = (o->high_high ? high : low) ^ high_flip;
  }
}

static void apply_signs(uint32_t *value, const struct emu_operand *operand) {
  unsigned type = operand->type;
  uint32_t sign = is_half_type(type) ? 0x8000 : 0x80000000u;
  uint32_t *at = operand->dwords == 2 ? value + EMU_HALF : value;
  uint32_t keep = operand->abs ? ~sign : UINT32_MAX, flip = operand->neg ? sign : 0;
  EMU_EACH at[l] = (at[l] & keep) ^ flip;
}

// v_fma_mix: a source is a float, or either half of a register
static void select_mixed(uint32_t *value, const struct emu_operand *operand) {
  if (operand->high_high) {
    unsigned low = operand->high ? 16 : 0;
    EMU_EACH value[l] = emu__bits32(emu__f16_to_f32((uint16_t)(value[l] >> low)));
  }
  uint32_t keep = operand->abs ? 0x7fffffff : UINT32_MAX, flip = operand->neg ? 0x80000000u : 0;
  EMU_EACH value[l] = (value[l] & keep) ^ flip;
}

// A source's register, of one dword, through DPP. Returns the lanes that may be written.
static uint32_t read_dpp(const struct general *g, const uint32_t *from, uint32_t *to) {
  uint32_t valid = 0;
  unsigned first = g->half * EMU_HALF;
  uint64_t exec = emu__wave_exec(g->wave);
  from = g->whole ? g->whole : from - first;
  EMU_EACH {
    bool inside;
    unsigned lane = emu__dpp_lane(g->inst, first + (unsigned)l, &inside);
    bool readable = inside && (g->inst->fetch_inactive || exec >> lane & 1);
    to[l] = readable ? from[lane] : 0;
    if (readable || (g->inst->bound_ctrl && g->inst->lanes == EMU_LANES_DPP16)) valid |= 1u << l;
    // DPP8 has no bound_ctrl: a lane that is off gives zero
    if (g->inst->lanes == EMU_LANES_DPP8) valid |= 1u << l;
  }
  if (g->inst->lanes == EMU_LANES_DPP16) {
    EMU_EACH {
      bool row = g->inst->row_mask >> (g->half * 2 + (unsigned)l / 16) & 1,
           bank = g->inst->bank_mask >> (l / 4 % 4) & 1;
      if (!row || !bank) valid &= ~(1u << l);
    }
  }
  return valid;
}

static const struct emu_operand *operand_of(const struct emu_step *step, unsigned i) {
  return i < 3 && step->inst->src[i].kind ? &step->inst->src[i] : &step->inst->dst;  // the accumulator
}

static void read_source(const struct general *g, unsigned i, uint32_t *to, uint32_t *writable) {
  const struct emu_operand *o = operand_of(g->step, i);
  const struct emu_inst *inst = g->inst;
  for (unsigned k = 0; k < o->dwords; k++) {
    uint32_t *at = to + k * EMU_HALF;
    if (o->kind == EMU_OPERAND_VECTOR) {
      const uint32_t *from = emu__vector(g->wave, o->reg + k, g->half * EMU_HALF);
      if (i == 0 && k == 0 && (inst->lanes == EMU_LANES_DPP16 || inst->lanes == EMU_LANES_DPP8)) {
        *writable &= read_dpp(g, from, at);
      } else {
        emu__copy(at, from);
      }
    } else if (o->kind == EMU_OPERAND_CONSTANT) {
      splat(at, (uint32_t)(o->value >> (32 * k)));
    } else if (o->kind == EMU_OPERAND_SCALAR) {
      splat(at, o->reg == EMU_NULL ? 0 : g->wave->s[o->reg + k]);
    } else {
      splat(at, emu__special_value(g->wave, o->reg, k));
    }
  }
  if (inst->lanes == EMU_LANES_SDWA && i < 2) select_sdwa(to, inst->src_sel[i], o->sext);
  if (emu__is_mix(inst->op)) {
    select_mixed(to, o);
  } else if (o->type == EMU_PKF32 || o->type == EMU_PKB32) {
    select_wide(to, o);
  } else if (is_packed(o->type) && inst->format == EMU_VOP3P) {
    select_packed(to, o);
  } else {
    if (is_half_type(o->type) && o->high && inst->lanes != EMU_LANES_SDWA) EMU_EACH to[l] >>= 16;
    // the integer dot products and matrices use the sign bits for something else
    if ((o->neg || o->abs) && o->type != EMU_PKI8 && o->type != EMU_PKI4) apply_signs(to, o);
  }
  bool flushes = g->wave->unusual & EMU_FLOAT_64 && !(g->wave->mode >> 6 & 1);
  if (flushes && (o->type == EMU_F16 || o->type == EMU_PKF16)) flush_halves(to);
}

static uint32_t scale16(uint32_t bits, float factor) {
  return emu__f32_to_f16(emu__f16_to_f32((uint16_t)bits) * factor + 0.0f);
}

static void apply_omod(const struct emu_wave *wave, unsigned omod, unsigned type, uint32_t *value) {
  static const float factor[4] = {1, 2, 4, 0.5f};
  // as the ISA guides have it: without effect under IEEE rules, or where denormal results are kept
  unsigned denormals = type == EMU_F32 ? wave->mode >> 5 & 1 : wave->mode >> 7 & 1;
  if (wave->mode & EMU_MODE_IEEE || denormals) return;
  EMU_EACH {
    if (type == EMU_F32) {
      value[l] = emu__bits32(emu__f32(value[l]) * factor[omod] + 0.0f);
    } else if (type == EMU_F16) {
      value[l] = scale16(value[l], factor[omod]);
    } else if (type == EMU_F64) {
      uint64_t r = emu__bits64(emu__f64(value[l] | (uint64_t)value[l + EMU_HALF] << 32) * (double)factor[omod] + 0.0);
      value[l] = (uint32_t)r;
      value[l + EMU_HALF] = (uint32_t)(r >> 32);
    }
  }
}

// Whether an infinite half is what the lane was given, or its division by zero.
static bool has_infinity(const struct general *g, const struct emu_half_wave *x, int lane, unsigned shift) {
  bool packed = g->inst->dst.type == EMU_PKF16;
  for (unsigned i = 0; i < g->step->nsrc; i++) {
    uint32_t v = x->s[i][lane], low = v & 0x7fff, high = v >> 16 & 0x7fff;
    unsigned type = operand_of(g->step, i)->type;
    if (type == EMU_F32 && (v & 0x7fffffff) == 0x7f800000) return true;
    if (type == EMU_F16 && low == 0x7c00) return true;
    if (type == EMU_PKF16 && ((low == 0x7c00 && !(packed && shift)) || (high == 0x7c00 && !(packed && !shift))))
      return true;
  }
  return (g->inst->op == EMU_V_DIV_FIXUP_F16 || g->inst->op == EMU_V_DIV_FIXUP_LEGACY_F16) && !(x->s[1][lane] & 0x7fff);
}

// FP16_OVFL: what overflows becomes the largest number, whatever the rounding.
static void apply_overflow(const struct general *g, const struct emu_half_wave *x, uint32_t *value) {
  EMU_EACH {
    for (unsigned shift = 0; shift <= (g->inst->dst.type == EMU_PKF16 ? 16u : 0u); shift += 16) {
      bool infinite = (value[l] >> shift & 0x7fff) == 0x7c00;
      if (infinite && !has_infinity(g, x, l, shift)) value[l] -= 1u << shift;
    }
  }
}

static uint32_t clamp16(uint32_t bits, bool dx10) {
  if (emu__is_nan16(bits)) return dx10 ? 0 : bits;
  return bits & 0x8000 ? 0 : bits > 0x3c00 ? 0x3c00 : bits;
}

// To [0, 1]; NaN becomes 0 where MODE says so.
static void apply_clamp(const struct emu_wave *wave, unsigned type, uint32_t *value) {
  bool dx10 = wave->mode & EMU_MODE_DX10_CLAMP;
  EMU_EACH {
    uint32_t v = value[l];
    if (type == EMU_F32) {
      value[l] = emu__is_nan32(v) ? (dx10 ? 0 : v) : v >> 31 ? 0 : v > 0x3f800000 ? 0x3f800000 : v;
    } else if (type == EMU_F16) {
      value[l] = clamp16(v & 0xffff, dx10);
    } else if (type == EMU_PKF32) {
      uint32_t both[2] = {v, value[l + EMU_HALF]};
      for (int k = 0; k < 2; k++)
        both[k] = emu__is_nan32(both[k]) ? (dx10 ? 0 : both[k])
                  : both[k] >> 31        ? 0
                  : both[k] > 0x3f800000 ? 0x3f800000
                                         : both[k];
      value[l] = both[0], value[l + EMU_HALF] = both[1];
    } else if (type == EMU_PKF16) {
      value[l] = clamp16(v & 0xffff, dx10) | clamp16(v >> 16, dx10) << 16;
    } else if (type == EMU_F64) {
      uint64_t w = v | (uint64_t)value[l + EMU_HALF] << 32, one = 0x3ff0000000000000;
      w = emu__is_nan64(w) ? (dx10 ? 0 : w) : w >> 63 ? 0 : w > one ? one : w;
      value[l] = (uint32_t)w;
      value[l + EMU_HALF] = (uint32_t)(w >> 32);
    }
  }
}

void emu__valu_finish(const struct emu_wave *wave, const struct emu_inst *inst, uint32_t *value) {
  if (inst->omod) apply_omod(wave, inst->omod, inst->dst.type, value);
  if (inst->clamp) apply_clamp(wave, inst->dst.type, value);
}

static void insert_sdwa(const struct emu_inst *inst, uint32_t *value, const uint32_t *old) {
  unsigned select = inst->dst_sel;
  if (select == EMU_DWORD) return;
  unsigned bits = select < EMU_WORD_0 ? 8 : 16, low = select < EMU_WORD_0 ? select * 8 : (select - EMU_WORD_0) * 16;
  uint32_t mask = ((1u << bits) - 1) << low;
  EMU_EACH {
    uint32_t v = value[l] << low & mask, rest = 0;
    if (inst->dst_unused == EMU_UNUSED_PRESERVE) rest = old[l] & ~mask;
    if (inst->dst_unused == EMU_UNUSED_SEXT && v >> (low + bits - 1) & 1)
      rest = (uint32_t)(~UINT64_C(0) << (low + bits));
    value[l] = v | rest;
  }
}

// The bits of a register that a conversion to 8-bit floats leaves alone.
static void keep_rest(const struct general *g, uint32_t *value, const uint32_t *old) {
  unsigned bits = g->step->action->part;
  unsigned at = bits == 8 ? 8 * (unsigned)g->inst->imm : g->inst->dst.high ? 16 : 0;
  uint32_t mask = ((1u << bits) - 1) << at;
  EMU_EACH value[l] = (old[l] & ~mask) | (value[l] << at & mask);
}

static void write_result(const struct general *g, const struct emu_half_wave *x, uint32_t *value, uint32_t exec) {
  const struct emu_inst *inst = g->inst;
  unsigned type = inst->dst.type;
  bool overflows = g->wave->mode & EMU_MODE_FP16_OVFL && (type == EMU_F16 || type == EMU_PKF16) &&
                   g->step->klass != EMU_CLASS_TRANSCENDENTAL;
  if (overflows) apply_overflow(g, x, value);
  if (inst->omod) apply_omod(g->wave, inst->omod, type, value);
  if (inst->clamp && !g->step->action->saturates) apply_clamp(g->wave, type, value);
  bool flushes = g->wave->unusual & EMU_FLOAT_64 && !(g->wave->mode >> 7 & 1);
  if (flushes && (type == EMU_F16 || type == EMU_PKF16) && g->step->floats) flush_halves(value);
  uint32_t *to = emu__vector(g->wave, inst->dst.reg, g->half * EMU_HALF);
  if (g->step->action->part) keep_rest(g, value, to);
  if (inst->lanes == EMU_LANES_SDWA) {
    insert_sdwa(inst, value, to);
  } else if (emu__is_mix_high(inst->op) || (is_half_type(type) && inst->dst.high)) {
    EMU_EACH value[l] = (to[l] & 0xffff) | value[l] << 16;
  } else if (g->step->zeroes) {
    EMU_EACH value[l] &= 0xffff;
  } else if (is_half_type(type)) {
    EMU_EACH value[l] = (to[l] & 0xffff0000u) | (value[l] & 0xffff);
  }
  for (unsigned k = 0; k < inst->dst.dwords; k++) {
    emu__store_masked(emu__vector(g->wave, inst->dst.reg + k, g->half * EMU_HALF), value + k * EMU_HALF, exec);
  }
}

void emu__valu_run(struct emu_wave *wave, const struct emu_step *step) {
  uint32_t room[3][8 * EMU_HALF] __attribute__((aligned(64))), out[8 * EMU_HALF] __attribute__((aligned(64)));
  const struct emu_inst *inst = step->inst;
  uint32_t masks[2] = {0, 0};
  unsigned halves = wave->lanes / EMU_HALF;
  bool odd_mode = emu__governed(wave, step);
  uint32_t whole[64];
  bool crosses = emu__dpp_crosses(inst);
  if (crosses) memcpy(whole, emu__vector(wave, inst->src[0].reg, 0), wave->lanes * 4);
  if (odd_mode) _mm_setcsr(wave->mxcsr[step->floats == EMU_FLOAT_32 ? 0 : 1]);
  for (unsigned half = 0; half < halves; half++) {
    struct general g = {wave, step, inst, half, wave->s[EMU_EXEC_LO + half], crosses ? whole : NULL};
    if (!g.exec) continue;
    struct emu_half_wave x = {.d = out, .mode = wave->mode, .half = half, .inst = inst};
    uint32_t writable = g.exec;
    for (unsigned i = 0; i < step->nsrc; i++) {
      read_source(&g, i, room[i], &writable);
      x.s[i] = room[i];
    }
    x.exec = writable;
    x.mask_in = emu__read_mask(wave, inst, half);
    x.mask_out = 0;
    step->lanes(&x);
    masks[half] = x.mask_out & writable;
    if (inst->dst.kind == EMU_OPERAND_VECTOR) write_result(&g, &x, out, writable);
  }
  if (odd_mode) _mm_setcsr(EMU_MXCSR_DEFAULT);
  if (inst->sdst.kind == EMU_OPERAND_SCALAR && inst->sdst.reg != EMU_NULL) {
    for (unsigned half = 0; half < halves; half++) wave->s[inst->sdst.reg + half] = masks[half];
  }
  if (step->to_exec) {
    for (unsigned half = 0; half < halves; half++) wave->s[EMU_EXEC_LO + half] = masks[half];
  }
}

// ---- preparation

static bool accumulates(unsigned op) {
  switch (op) {
    case EMU_V_FMAC_F32:
    case EMU_V_FMAC_F16:
    case EMU_V_FMAC_DX9_ZERO_F32:
    case EMU_V_MAC_F32:
    case EMU_V_MAC_F16:
    case EMU_V_CVT_PKACCUM_U8_F32:
    case EMU_V_MAC_DX9_ZERO_F32:
    case EMU_V_PK_FMAC_F16:
    case EMU_V_DOT2ACC_F32_F16:
    case EMU_V_DOT2C_F32_BF16:
    case EMU_V_DOT4C_I32_I8:
    case EMU_V_DOT2C_I32_I16:
    case EMU_V_DOT8C_I32_I4:
    case EMU_V_FMAC_F64:
      return true;
    default:
      return false;
  }
}

static bool is_integer(unsigned type) {
  return type != EMU_F16 && type != EMU_F32 && type != EMU_F64 && type != EMU_PKF16 && type != EMU_PKF32;
}

// What decodes but is not executed. An operation that ignored a modifier would be a guess.
static bool has_unknown_modifier(const struct emu_inst *inst, const struct emu_action *action) {
  bool compares = inst->sdst.kind && !inst->dst.kind;
  if (inst->clamp && !compares && !action->saturates && is_integer(inst->dst.type)) return true;
  if (inst->omod && is_integer(inst->dst.type)) return true;
  for (int i = 0; i < 3; i++) {
    const struct emu_operand *o = &inst->src[i];
    if (o->kind == EMU_OPERAND_SPECIAL && (o->reg == EMU_LDS_DIRECT || o->reg == EMU_POPS_EXITING_WAVE_ID)) return true;
    bool pairs = is_packed(o->type) && inst->format == EMU_VOP3;
    if (pairs && (o->neg || o->abs || o->high)) return true;  // which of the two halves they mean is not known
    // a packed operation has a third source of one number: the bits for its second half have no meaning
    bool float8 = inst->op >= EMU_V_DOT4_F32_FP8_BF8 && inst->op <= EMU_V_DOT4_F32_BF8_BF8;  // it is abs there
    bool wide = o->type == EMU_PKF32 || o->type == EMU_PKB32;
    // what lies in its upper half is said nowhere, and is zero for zero; compilers take the lower one of others
    if (wide && o->kind == EMU_OPERAND_CONSTANT && o->value && (o->high || o->high_high)) return true;
    bool odd_high = o->kind && o->neg_high && !is_packed(o->type) && !wide && !float8;
    if (inst->format == EMU_VOP3P && odd_high && action->lanes) return true;
    if (inst->lanes != EMU_LANES_PLAIN && i == 0 && o->dwords > 1) return true;
  }
  return false;
}

static bool prepare_half(struct emu_step *step, const struct emu_operand *src, const struct emu_operand *dst) {
  bool plain = dst->kind == EMU_OPERAND_VECTOR && dst->dwords == 1 && !is_half_type(dst->type);
  step->nsrc = 0;
  const struct emu_operand *operands[4] = {0};
  for (; step->nsrc < 3 && src[step->nsrc].kind && src[step->nsrc].type != EMU_MASK; step->nsrc++)
    operands[step->nsrc] = &src[step->nsrc];
  if (accumulates(step->action->op)) operands[step->nsrc++] = dst;
  for (unsigned i = 0; i < step->nsrc; i++) {
    const struct emu_operand *o = operands[i];
    uint32_t value = o->kind == EMU_OPERAND_CONSTANT ? (uint32_t)o->value : o->reg;
    step->src[i] = (struct emu_source){.value = value, .kind = o->kind, .dwords = o->dwords};
    plain = plain && o->dwords == 1 && !o->neg && !o->abs && !o->high;
  }
  step->dst = dst->reg;
  return plain;
}

static bool is_row(const struct emu_source *source) {
  return source->kind == EMU_OPERAND_VECTOR || source->kind == EMU_OPERAND_SCALAR ||
         source->kind == EMU_OPERAND_CONSTANT;
}

static bool are_vectors(const struct emu_step *step) {
  bool vectors = true;
  for (unsigned i = 0; i < step->nsrc; i++) vectors = vectors && step->src[i].kind == EMU_OPERAND_VECTOR;
  return vectors;
}

// What keeps the other half of its register where most 16-bit results make it zero: what op_sel may put into either,
// as the guide to Vega has it, and sums over the register's own half. Source of the others: LLVM, which drops masks
// behind them.
static bool keeps_high(unsigned op) {
  switch (op) {
    case EMU_V_MAD_F16:
    case EMU_V_FMA_F16:
    case EMU_V_MAD_U16:
    case EMU_V_MAD_I16:
    case EMU_V_DIV_FIXUP_F16:
    case EMU_V_MAC_F16:
    case EMU_V_MADMK_F16:
    case EMU_V_MADAK_F16:
    case EMU_V_FMAC_F16:
      return true;
    default:
      return emu__is_mix(op);
  }
}

bool emu__valu_prepare(const struct emu_isa *target, unsigned lanes, struct emu_step *step, struct emu_step *pair) {
  const struct emu_inst *inst = step->inst;
  step->zeroes = target->zeroes_high && is_half_type(inst->dst.type) && !inst->dst.high && !keeps_high(inst->op);
  step->to_exec = target->compare_both && emu_isa_compares_exec((enum emu_op)inst->op);
  if (has_unknown_modifier(inst, step->action)) return false;
  bool plain = prepare_half(step, inst->src, &inst->dst);
  if (inst->format == EMU_VOPD) {
    plain = prepare_half(pair, inst->y.src, &inst->y.dst) && plain;
    emu_step_fn *own = emu__float_pair(step->lanes, pair->lanes);
    step->run = own ? own : run_dual;
    step->straight = true;
    step->floats |= pair->floats;
    memcpy(step->also_src, pair->src, sizeof(pair->src));
    step->also_dst = pair->dst;
    step->vectors = lanes == EMU_HALF && plain && are_vectors(step) && are_vectors(pair);
    for (unsigned i = 0; i < pair->nsrc; i++) step->vectors = step->vectors && pair->src[i].value != step->dst;
    return plain;
  }
  bool masks = inst->sdst.kind || (inst->src[2].kind && inst->src[2].type == EMU_MASK) || inst->src[3].kind;
  bool modified =
      inst->lanes != EMU_LANES_PLAIN || inst->clamp || inst->omod || inst->format == EMU_VOP3P || step->action->part;
  bool whole = !modified && inst->dst.dwords <= 2 && !is_half_type(inst->dst.type) &&
               (inst->dst.kind == EMU_OPERAND_VECTOR || !inst->dst.kind);
  for (unsigned i = 0; i < step->nsrc; i++) {
    const struct emu_source *source = &step->src[i];
    const struct emu_operand *o = operand_of(step, i);
    whole = whole && source->dwords <= 2 && !o->neg && !o->abs && !o->high;
  }
  step->straight = true;
  const struct emu_action *action = step->action;
  if (plain && !masks && !modified) {
    step->vectors = lanes == EMU_HALF && are_vectors(step);
    step->run = action->plain ? action->plain : run_plain;
  } else if (whole) {
    step->rows = lanes == EMU_HALF && !step->to_exec;
    for (unsigned i = 0; i < step->nsrc; i++) step->rows = step->rows && is_row(&step->src[i]);
    step->run = action->whole ? action->whole : run_whole;
  } else {
    step->run = emu__valu_run;
  }
  return true;
}
