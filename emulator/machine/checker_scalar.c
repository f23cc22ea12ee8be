// Undefined bits in scalar registers, SCC and EXEC, and in what scalar loads fetch.
#include "machine/checker_state.h"

static uint64_t all_of(unsigned dwords) { return dwords == 2 ? UINT64_MAX : UINT32_MAX; }
// From the lowest set bit upwards.
static uint64_t leftwards(uint64_t bits) { return bits | (0 - bits); }

uint64_t emu__scalar_undefined(const struct emu_wave *wave, const struct emu_operand *o) {
  const struct emu_wave_check *c = wave->checker;
  if (o->kind == EMU_OPERAND_SPECIAL) return o->reg == EMU_SCC && c->scc;
  if (o->kind != EMU_OPERAND_SCALAR || o->reg == EMU_NULL) return 0;
  return c->scalar[o->reg] | (o->dwords > 1 ? (uint64_t)c->scalar[o->reg + 1] << 32 : 0);
}

static void put(struct emu_wave_check *c, unsigned reg, uint32_t bits) {
  c->scalar[reg] = bits;
  emu__set_put(&c->dirty, EMU_SET_SCALAR + reg, bits);
  emu__check_watch(c, EMU_SET_SCALAR + reg);
}

void emu__scalar_set_undefined(struct emu_wave *wave, const struct emu_step *step, unsigned reg, unsigned dwords,
                               uint64_t bits) {
  struct emu_wave_check *c = wave->checker;
  if (reg == EMU_NULL) return;
  if (reg == EMU_EXEC_LO && wave->lanes == 32) dwords = 1, bits &= UINT32_MAX;
  if ((reg == EMU_EXEC_LO || reg == EMU_EXEC_HI) && (dwords == 2 ? bits : bits & UINT32_MAX)) {
    int lane = __builtin_ctzll(bits);
    emu__check_undefined(wave, step, lane, 0, "It sets EXEC, which lanes are on, from a value that is not defined.");
    bits = 0;
  }
  put(c, reg, (uint32_t)bits);
  if (dwords == 2) put(c, reg + 1, (uint32_t)(bits >> 32));
}

static void set_scc(struct emu_wave_check *c, bool undefined) {
  c->scc = undefined;
  emu__set_put(&c->dirty, EMU_SET_SCC, undefined);
  emu__check_watch(c, EMU_SET_SCC);
}

#define BOTH_OF(name)    \
  case EMU_##name##_B32: \
  case EMU_##name##_B64:

// Bits of a and b, undefined where ua and ub say so.
static uint64_t bitwise(unsigned rule, uint64_t a, uint64_t b, uint64_t ua, uint64_t ub) {
  switch (rule) {
    case EMU_RULE_AND:
      return (ua & ub) | (ua & b) | (ub & a);
    case EMU_RULE_OR:
      return (ua & ub) | (ua & ~b) | (ub & ~a);
    case EMU_RULE_AND_NOT1:
      return (ua & ub) | (ua & ~b) | (ub & a);
    case EMU_RULE_OR_NOT1:
      return (ua & ub) | (ua & b) | (ub & ~a);
    case EMU_RULE_AND_NOT0:
      return (ua & ub) | (ua & b) | (ub & ~a);
    case EMU_RULE_OR_NOT0:
      return (ua & ub) | (ua & ~b) | (ub & a);
    default:
      return ua | ub;
  }
}

struct scalars {
  uint64_t a, b, ua, ub, all;
  unsigned dwords;
};

static uint64_t extended(uint64_t bits, unsigned width) {
  return (uint64_t)((int64_t)(bits << (64 - width)) >> (64 - width));
}

static uint64_t field(const struct scalars *s, uint64_t a, bool is_signed) {
  unsigned bits = s->dwords * 32, offset = (unsigned)s->b & (bits - 1), width = (unsigned)(s->b >> 16) & 127;
  if (!width) return 0;
  if (width > bits - offset) width = bits - offset;
  uint64_t v = a >> offset;
  return (is_signed ? extended(v, width) : v & UINT64_MAX >> (64 - width)) & s->all;
}

// The bits of the distance, or of the field's offset and width, that the instruction looks at.
static uint64_t distance_bits(const struct emu_inst *inst, const struct scalars *s) {
  switch (inst->op) {
    case EMU_S_BFE_U32:
    case EMU_S_BFE_I32:
    case EMU_S_BFE_U64:
    case EMU_S_BFE_I64:
      return 127 << 16 | (s->dwords * 32 - 1);
      BOTH_OF(S_LSHL)
      BOTH_OF(S_LSHR)
    case EMU_S_ASHR_I32:
    case EMU_S_ASHR_I64:
      return s->dwords * 32 - 1;
    default:
      return 0;
  }
}

// Moves the bits of `a`, and of `b` where the instruction packs two sources, to where the instruction puts them. Called
// with values and with shadows; the distances are always the values in `s`.
static uint64_t placed(const struct emu_inst *inst, const struct scalars *s, uint64_t a, uint64_t b) {
  unsigned by = (unsigned)s->b & (s->dwords * 32 - 1);
  uint64_t r = 0;
  switch (inst->op) {
    BOTH_OF(S_LSHL) return a << by & s->all;
    BOTH_OF(S_LSHR) return a >> by;
    case EMU_S_ASHR_I32:
      return (uint32_t)((int32_t)a >> by);
    case EMU_S_ASHR_I64:
      return (uint64_t)((int64_t)a >> by);
    case EMU_S_BFE_U32:
    case EMU_S_BFE_U64:
      return field(s, a, false);
    case EMU_S_BFE_I32:
    case EMU_S_BFE_I64:
      return field(s, a, true);
    case EMU_S_SEXT_I32_I8:
      return (uint32_t)extended(a, 8);
    case EMU_S_SEXT_I32_I16:
      return (uint32_t)extended(a, 16);
    case EMU_S_PACK_LL_B32_B16:
      return (a & 0xffff) | (b & 0xffff) << 16;
    case EMU_S_PACK_LH_B32_B16:
      return (a & 0xffff) | (b & 0xffff0000);
    case EMU_S_PACK_HL_B32_B16:
      return (a >> 16 & 0xffff) | (b & 0xffff) << 16;
    case EMU_S_PACK_HH_B32_B16:
      return (a >> 16 & 0xffff) | (b & 0xffff0000);
    case EMU_S_BITREPLICATE_B64_B32:
      for (unsigned i = 0; i < 32; i++) r |= (a >> i & 1) * 3 << 2 * i;
      return r;
    default:  // S_BREV
      for (unsigned i = 0; i < s->dwords * 32; i++) r |= (a >> i & 1) << (s->dwords * 32 - 1 - i);
      return r;
  }
}

// The result's value, for an instruction that sets SCC to "not zero"; only its defined bits mean anything.
static uint64_t value(const struct emu_inst *inst, const struct scalars *s) {
  switch (inst->op) {
    BOTH_OF(S_AND) return s->a & s->b;
    BOTH_OF(S_OR) return s->a | s->b;
    BOTH_OF(S_XOR) return s->a ^ s->b;
    BOTH_OF(S_NAND) return ~(s->a & s->b);
    BOTH_OF(S_NOR) return ~(s->a | s->b);
    BOTH_OF(S_XNOR) return ~(s->a ^ s->b);
    BOTH_OF(S_NOT) return ~s->a;
    BOTH_OF(S_AND_NOT1) return s->a & ~s->b;
    BOTH_OF(S_OR_NOT1) return s->a | ~s->b;
    default:
      return placed(inst, s, s->a, s->b);
  }
}

static uint64_t result(struct emu_wave *wave, const struct emu_inst *inst, unsigned rule, const struct scalars *s) {
  const struct emu_wave_check *c = wave->checker;
  uint64_t any = s->ua | s->ub;
  switch (rule) {
    case EMU_RULE_DEFINED:
      return 0;
    case EMU_RULE_MOVE:
      return s->ua;
    case EMU_RULE_AND:
    case EMU_RULE_OR:
    case EMU_RULE_XOR:
    case EMU_RULE_AND_NOT1:
    case EMU_RULE_OR_NOT1:
      return bitwise(rule, s->a, s->b, s->ua, s->ub);
    case EMU_RULE_LEFT:
      return leftwards(any | (c->scc && (inst->op == EMU_S_ADDC_U32 || inst->op == EMU_S_SUBB_U32))) & s->all;
    case EMU_RULE_SHIFT_LEFT:
      return leftwards(s->ua << (inst->op - EMU_S_LSHL1_ADD_U32 + 1) | s->ub) & s->all;
    case EMU_RULE_PLACED:
      return s->ub & distance_bits(inst, s) ? s->all : placed(inst, s, s->ua, s->ub);
    case EMU_RULE_SELECT:
      return c->scc ? any | (s->a ^ s->b) : wave->scc ? s->ua : s->ub;
    case EMU_RULE_CMOVE:
      return c->scc ? s->all : wave->scc ? s->ua : emu__scalar_undefined(wave, &inst->dst);
    case EMU_RULE_BITSET:
      return s->ua & (s->dwords * 32 - 1)
                 ? s->all
                 : emu__scalar_undefined(wave, &inst->dst) & ~(UINT64_C(1) << (s->a & (s->dwords * 32 - 1)));
    default:
      return any ? s->all : 0;
  }
}

static unsigned relative(const struct emu_wave *wave, unsigned reg) {
  uint64_t at = (uint64_t)reg + wave->s[EMU_M0];
  return at < EMU_VCC_HI ? (unsigned)at : EMU_NULL;
}

void emu__check_scalar(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_inst *inst = step->inst;
  struct scalars s = {.dwords = inst->dst.kind ? inst->dst.dwords : 1};
  s.a = inst->src[0].dwords > 1 ? emu__scalar_read64(wave, &inst->src[0]) : emu__scalar_read(wave, &inst->src[0]);
  s.b = inst->src[1].dwords > 1 ? emu__scalar_read64(wave, &inst->src[1]) : emu__scalar_read(wave, &inst->src[1]);
  s.ua = emu__scalar_undefined(wave, &inst->src[0]);
  s.ub = emu__scalar_undefined(wave, &inst->src[1]);
  s.all = all_of(s.dwords);
  if (plan->rule == EMU_RULE_RELATIVE_FROM || plan->rule == EMU_RULE_RELATIVE_TO) {
    if (c->scalar[EMU_M0])
      emu__check_undefined(wave, step, -1, 0, "It finds a register through M0, which is not defined.");
    bool from = plan->rule == EMU_RULE_RELATIVE_FROM;
    unsigned source = relative(wave, inst->src[0].reg), target = from ? inst->dst.reg : relative(wave, inst->dst.reg);
    uint64_t bits = from ? c->scalar[source] | (uint64_t)c->scalar[source + 1] << 32 : s.ua;
    emu__scalar_set_undefined(wave, step, target, s.dwords, bits);
    return;
  }
  uint64_t bits = 0;
  if (plan->rule == EMU_RULE_BITCMP) {
    unsigned wide = inst->src[0].dwords > 1 ? 63 : 31;
    bits = s.ub & wide ? 1 : s.ua >> (s.b & wide) & 1;
  } else {
    bits = result(wave, inst, plan->rule, &s);
  }
  // SCC is "not zero", which one defined bit that is set settles; which bits are set is known where none is undefined
  if (plan->scc != EMU_SCC_KEPT) {
    bool settled = plan->scc == EMU_SCC_NONZERO && bits && value(inst, &s) & ~bits & s.all;
    set_scc(c, bits && !settled);
  }
  if (inst->dst.kind == EMU_OPERAND_SCALAR) emu__scalar_set_undefined(wave, step, inst->dst.reg, s.dwords, bits);
}

// EXEC itself is always defined.
void emu__check_saveexec(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  (void)plan;
  const struct emu_inst *inst = step->inst;
  bool wide = inst->src[0].dwords > 1;
  uint64_t u = emu__scalar_undefined(wave, &inst->src[0]);
  uint64_t e = wide ? wave->s[EMU_EXEC_LO] | (uint64_t)wave->s[EMU_EXEC_HI] << 32 : wave->s[EMU_EXEC_LO];
  switch (inst->op) {
    BOTH_OF(S_AND_SAVEEXEC)
    BOTH_OF(S_NAND_SAVEEXEC)
    BOTH_OF(S_AND_NOT0_SAVEEXEC)
    BOTH_OF(S_AND_NOT0_WREXEC) u &= e;
    break;
    BOTH_OF(S_OR_SAVEEXEC)
    BOTH_OF(S_NOR_SAVEEXEC)
    BOTH_OF(S_OR_NOT0_SAVEEXEC)
    BOTH_OF(S_AND_NOT1_SAVEEXEC)
    BOTH_OF(S_AND_NOT1_WREXEC) u &= ~e;
    break;
    BOTH_OF(S_OR_NOT1_SAVEEXEC) u &= e;
    break;
    default:
      break;
  }
  emu__scalar_set_undefined(wave, step, EMU_EXEC_LO, wide ? 2 : 1, u);
  set_scc(wave->checker, false);
  if (inst->dst.kind == EMU_OPERAND_SCALAR && inst->dst.reg != EMU_EXEC_LO) {
    emu__scalar_set_undefined(wave, step, inst->dst.reg, inst->dst.dwords, 0);
  }
}

void emu__check_branch(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_wave_check *c = wave->checker;
  if (step->inst->op == EMU_S_CBRANCH_SCC0 || step->inst->op == EMU_S_CBRANCH_SCC1) {
    if (!c->scc) return;
    emu__check_undefined(wave, step, -1, 0, "It branches on a comparison of values that are not defined.");
    set_scc(c, false);
    return;
  }
  for (unsigned half = 0; half < wave->lanes / EMU_HALF; half++) {
    if (wave->s[EMU_VCC_LO + half] & ~c->scalar[EMU_VCC_LO + half]) return;  // not zero, whatever the others are
  }
  for (unsigned half = 0; half < wave->lanes / EMU_HALF; half++) {
    uint32_t u = c->scalar[EMU_VCC_LO + half];
    if (!u) continue;
    emu__check_undefined(wave, step, (int)half * 32 + __builtin_ctz(u), 0,
                         "It branches on a comparison of values that are not defined.");
    put(c, EMU_VCC_LO + half, 0);
  }
}
