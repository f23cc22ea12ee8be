// Undefined bits in vector arithmetic: the shadow's counterpart of valu.c, cross.c and wmma.c.
#include "machine/checker_state.h"
#include "machine/valu.h"

void emu__check_settle(struct emu_wave *wave, unsigned reg) {
  struct emu_wave_check *c = wave->checker;
  const uint32_t *u = emu__undefined(wave, reg, 0);
  uint32_t any = 0;
  for (unsigned l = 0; l < wave->lanes; l++) any |= u[l];
  emu__set_put(&c->dirty, reg, any);
  emu__check_watch(c, reg);
}

// ---- sources

struct shadow {
  struct emu_wave *wave;
  const struct emu_step *step;  // the half of a VOPD that is meant
  const struct emu_operand *src, *dst;
  unsigned op, half;
  uint32_t exec;
  uint32_t u[3][2][EMU_HALF], out[2][EMU_HALF];  // (source, dword, lane)
  const uint32_t *whole;  // of the first source, before any lane is written, where DPP crosses halves; else NULL
} __attribute__((aligned(64)));

static bool is_half(unsigned type) {
  return type == EMU_B16 || type == EMU_I16 || type == EMU_U16 || type == EMU_F16 || type == EMU_BF16;
}
static bool is_packed(unsigned type) {
  return type == EMU_PKB16 || type == EMU_PKI16 || type == EMU_PKU16 || type == EMU_PKF16 || type == EMU_PKBF16;
}
static const struct emu_operand *operand_at(const struct shadow *s, unsigned i) {
  return i < 3 && s->src[i].kind && s->src[i].type != EMU_MASK ? &s->src[i] : s->dst;
}

static void fill(uint32_t *to, uint32_t value) { EMU_EACH to[l] = value; }

// What an operand's bits hold, or (`shadow`) which of them are undefined.
static void fetch(const struct shadow *s, const struct emu_operand *o, unsigned k, bool shadow, uint32_t *to) {
  const struct emu_wave *w = s->wave;
  if (o->kind == EMU_OPERAND_VECTOR) {
    const uint32_t *from =
        shadow ? emu__undefined(w, o->reg + k, s->half * EMU_HALF) : emu__vector(w, o->reg + k, s->half * EMU_HALF);
    memcpy(to, from, EMU_HALF * 4);
  } else if (shadow) {
    fill(to, (uint32_t)(emu__scalar_undefined(w, o) >> (32 * k)));
  } else if (o->kind == EMU_OPERAND_SCALAR) {
    fill(to, o->reg == EMU_NULL ? 0 : w->s[o->reg + k]);
  } else {
    fill(to, o->kind == EMU_OPERAND_CONSTANT ? (uint32_t)(o->value >> (32 * k)) : emu__special_value(w, o->reg, k));
  }
}

// Moves a source's shadow between lanes as DPP does. Returns the lanes that may be written.
static uint32_t through_dpp(const struct shadow *s, const struct emu_inst *inst, uint32_t *u) {
  uint32_t from[64], valid = 0;
  unsigned first = s->half * EMU_HALF;
  uint64_t exec = emu__wave_exec(s->wave);
  memcpy(from, s->whole ? s->whole : emu__undefined(s->wave, inst->src[0].reg, 0), s->wave->lanes * 4);
  EMU_EACH {
    bool inside;
    unsigned lane = emu__dpp_lane(inst, first + (unsigned)l, &inside);
    bool readable = inside && (inst->fetch_inactive || exec >> lane & 1);
    u[l] = readable ? from[lane] : 0;
    if (readable || inst->lanes == EMU_LANES_DPP8 || inst->bound_ctrl) valid |= 1u << l;
    if (inst->lanes == EMU_LANES_DPP16 && !(inst->row_mask >> (l / 16 + 2 * s->half) & 1)) valid &= ~(1u << l);
    if (inst->lanes == EMU_LANES_DPP16 && !(inst->bank_mask >> (l % 16 / 4) & 1)) valid &= ~(1u << l);
  }
  return valid;
}

static void take_sdwa(uint32_t *u, unsigned select) {
  if (select == EMU_DWORD) return;
  unsigned bits = select < EMU_WORD_0 ? 8 : 16, low = select < EMU_WORD_0 ? select * 8 : (select - EMU_WORD_0) * 16;
  EMU_EACH u[l] = u[l] >> low & ((1u << bits) - 1);
}

// Fills s->u[i] with the shadow of the bits of source i that the operation sees, behind DPP, SDWA and op_sel.
static void take(struct shadow *s, unsigned i, uint32_t *writable) {
  const struct emu_inst *inst = s->step->inst;
  const struct emu_operand *o = operand_at(s, i);
  unsigned dwords = o->dwords < 2 ? o->dwords : 2;
  for (unsigned k = 0; k < dwords; k++) fetch(s, o, k, true, s->u[i][k]);
  if (dwords < 2) fill(s->u[i][1], 0);
  uint32_t *u = s->u[i][0];
  if (i == 0 && (inst->lanes == EMU_LANES_DPP16 || inst->lanes == EMU_LANES_DPP8)) *writable &= through_dpp(s, inst, u);
  if (i < 2 && inst->lanes == EMU_LANES_SDWA) {
    take_sdwa(u, inst->src_sel[i]);
  } else if (o->type == EMU_PKF32 || o->type == EMU_PKB32) {
    EMU_EACH {
      uint32_t low = u[l], high = s->u[i][1][l];
      u[l] = o->high ? high : low;
      s->u[i][1][l] = o->high_high ? high : low;
    }
  } else if (emu__is_mix(s->op)) {
    if (o->high_high) EMU_EACH u[l] = o->high ? u[l] >> 16 : u[l] & 0xffff;
  } else if (is_packed(o->type) && inst->format == EMU_VOP3P) {
    unsigned low = o->high ? 16 : 0, high = o->high_high ? 16 : 0;
    EMU_EACH u[l] = (u[l] >> low & 0xffff) | u[l] >> high << 16;
  } else if (is_half(o->type)) {
    EMU_EACH u[l] = o->high ? u[l] >> 16 : u[l] & 0xffff;
  }
}

// ---- results

static inline uint32_t leftwards(uint32_t bits) { return bits | (0 - bits); }

static uint32_t any_lanes(const struct shadow *s, unsigned sources) {
  uint32_t any = 0;
  for (unsigned i = 0; i < sources; i++) {
    EMU_EACH any |= (uint32_t)((s->u[i][0][l] | s->u[i][1][l]) != 0) << l;
  }
  return any;
}

// The bits of a distance, or of a field's place and width, that the operation looks at.
static uint32_t distance_bits(unsigned op) {
  switch (op) {
    case EMU_V_LSHLREV_B16:
    case EMU_V_LSHRREV_B16:
    case EMU_V_ASHRREV_I16:
      return 15;
    case EMU_V_LSHLREV_B64:
    case EMU_V_LSHRREV_B64:
    case EMU_V_ASHRREV_I64:
      return 63;
    case EMU_V_ALIGNBYTE_B32:
      return 3;
    default:
      return 31;
  }
}

// Shadow of a result whose bits are moved by defined distances: runs the operation itself with the shadow in place of
// source `data` (and of `more`) and with the other sources' values. Lanes whose distance is undefined get all ones.
static void run_on_shadow(struct shadow *s, unsigned data, unsigned more) {
  uint32_t in[3][2 * EMU_HALF] __attribute__((aligned(64))), out[8 * EMU_HALF] __attribute__((aligned(64)));
  struct emu_half_wave x = {.d = out, .exec = s->exec, .mode = s->wave->mode, .half = s->half, .inst = s->step->inst};
  uint32_t lost = 0, matters = distance_bits(s->op);
  for (unsigned i = 0; i < s->step->nsrc; i++) {
    bool shadow = i == data || i == more;
    for (unsigned k = 0; k < 2; k++) {
      if (shadow) {
        memcpy(in[i] + k * EMU_HALF, s->u[i][k], EMU_HALF * 4);
      } else if (k < operand_at(s, i)->dwords) {
        fetch(s, operand_at(s, i), k, false, in[i] + k * EMU_HALF);
      }
    }
    if (!shadow) EMU_EACH lost |= (uint32_t)((s->u[i][0][l] & matters) != 0) << l;
    x.s[i] = in[i];
  }
  s->step->lanes(&x);
  unsigned dwords = s->dst->dwords;
  for (unsigned k = 0; k < dwords && k < 2; k++) {
    EMU_EACH s->out[k][l] = lost >> l & 1 ? UINT32_MAX : out[k * EMU_HALF + l];
  }
}

static void select_lanes(struct shadow *s, uint32_t *u) {
  uint32_t a[EMU_HALF], b[EMU_HALF];
  const struct emu_operand *mask = &s->src[2];
  uint32_t m = 0, um = 0;
  if (mask->kind == EMU_OPERAND_SCALAR && mask->reg != EMU_NULL) {
    m = s->wave->s[mask->reg + s->half];
    um = s->wave->checker->scalar[mask->reg + s->half];
  } else if (s->step->inst->format == EMU_VOPD) {
    m = s->wave->s[EMU_VCC_LO + s->half];
    um = s->wave->checker->scalar[EMU_VCC_LO + s->half];
  }
  fetch(s, &s->src[0], 0, false, a);
  fetch(s, &s->src[1], 0, false, b);
  bool halves = is_half(s->dst->type);
  EMU_EACH {
    uint32_t ua = s->u[0][0][l], ub = s->u[1][0][l];
    uint32_t differ = halves ? 0xffff : a[l] ^ b[l];
    u[l] = um >> l & 1 ? ua | ub | differ : m >> l & 1 ? ub : ua;
  }
}

static void permute_bytes(struct shadow *s, uint32_t *u) {
  uint32_t select[EMU_HALF];
  fetch(s, &s->src[2], 0, false, select);
  EMU_EACH {
    uint64_t both = (uint64_t)s->u[0][0][l] << 32 | s->u[1][0][l];
    uint32_t r = 0;
    for (unsigned k = 0; k < 4; k++) {
      unsigned byte = select[l] >> (8 * k) & 255;
      uint32_t v = byte < 8 ? (uint32_t)(both >> (8 * byte)) & 255 : 0;
      if (byte >= 8 && byte < 12) v = both >> (16 * (byte - 8) + 15) & 1 ? 255 : 0;
      if (s->u[2][0][l] >> (8 * k) & 255) v = 255;
      r |= v << (8 * k);
    }
    u[l] = r;
  }
}

static void bit_rules(struct shadow *s, unsigned rule, uint32_t *u) {
  uint32_t v[3][EMU_HALF];
  const uint32_t *ua = s->u[0][0], *ub = s->u[1][0], *uc = s->u[2][0];
  for (unsigned i = 0; i < s->step->nsrc; i++) fetch(s, operand_at(s, i), 0, false, v[i]);
  const uint32_t *a = v[0], *b = v[1];
  switch (rule) {
    case EMU_RULE_AND:
      EMU_EACH u[l] = (ua[l] & ub[l]) | (ua[l] & b[l]) | (ub[l] & a[l]);
      break;
    case EMU_RULE_OR:
      EMU_EACH u[l] = (ua[l] & ub[l]) | (ua[l] & ~b[l]) | (ub[l] & ~a[l]);
      break;
    case EMU_RULE_AND_OR:
      EMU_EACH u[l] = (ua[l] & ub[l]) | (ua[l] & b[l]) | (ub[l] & a[l]) | uc[l];
      break;
    default:
      EMU_EACH u[l] = ua[l] | (a[l] & ub[l]) | (~a[l] & uc[l]);
      break;  // BFI
  }
}

static void spread(struct shadow *s, uint32_t any, uint32_t value) {
  for (unsigned k = 0; k < 2; k++) EMU_EACH s->out[k][l] = any >> l & 1 ? value : 0;
}

static uint32_t mask_undefined(const struct shadow *s, const struct emu_operand *o) {
  if (o->kind != EMU_OPERAND_SCALAR || o->type != EMU_MASK || o->reg == EMU_NULL) return 0;
  return s->wave->checker->scalar[o->reg + s->half];
}

static void shift_and_add(struct shadow *s, uint32_t *u) {
  uint32_t distance[EMU_HALF];
  bool adds_first = s->op == EMU_V_ADD_LSHL_U32;
  const uint32_t *by = adds_first ? s->u[2][0] : s->u[1][0], *other = adds_first ? s->u[1][0] : s->u[2][0];
  fetch(s, operand_at(s, adds_first ? 2 : 1), 0, false, distance);
  EMU_EACH {
    unsigned d = distance[l] & 31;
    uint32_t sum = adds_first ? leftwards(s->u[0][0][l] | other[l]) << d : leftwards(s->u[0][0][l] << d | other[l]);
    u[l] = by[l] & 31 ? UINT32_MAX : sum;
  }
}

// Of results of two dwords: each is one dword of the first and of the second source (`pair`), or depends on one of
// each.
static void apply_words(struct shadow *s, unsigned sources, bool pair) {
  for (unsigned k = 0; k < 2; k++) {
    for (int l = 0; l < EMU_HALF; l++) {
      uint32_t third = sources > 2 ? s->u[2][k][l] : 0;
      s->out[k][l] = pair ? s->u[k][0][l] : s->u[0][k][l] | s->u[1][k][l] | third ? UINT32_MAX : 0;
    }
  }
}

// Fills s->out. Returns the lanes in which any bit that was read is undefined.
static uint32_t apply(struct shadow *s, unsigned rule) {
  unsigned n = s->step->nsrc;
  uint32_t any = any_lanes(s, n), *u = s->out[0];
  if (s->step->inst->format != EMU_VOPD) any |= mask_undefined(s, &s->src[3]) | mask_undefined(s, &s->src[2]);
  if (s->dst->kind != EMU_OPERAND_VECTOR) return any;
  bool pair = rule == EMU_RULE_PAIR;
  if (pair || rule == EMU_RULE_WORDS) return apply_words(s, n, pair), any;
  switch (rule) {
    case EMU_RULE_MOVE:
      memcpy(s->out, s->u[0], sizeof(s->out));
      break;
    case EMU_RULE_PACK:
      EMU_EACH u[l] = (s->u[0][0][l] & 0xffff) | s->u[1][0][l] << 16;
      break;
    case EMU_RULE_XOR:
    case EMU_RULE_OR3:
      EMU_EACH u[l] = s->u[0][0][l] | s->u[1][0][l] | (n > 2 ? s->u[2][0][l] : 0);
      break;
    case EMU_RULE_LEFT:
      EMU_EACH u[l] = leftwards(s->u[0][0][l] | s->u[1][0][l] | (n > 2 ? s->u[2][0][l] : 0));
      break;
    case EMU_RULE_LEFT_24:
      EMU_EACH {
        uint32_t factors = (s->u[0][0][l] | s->u[1][0][l]) & 0xffffff;
        u[l] = leftwards(factors | (n > 2 ? s->u[2][0][l] : 0));
      }
      break;
    case EMU_RULE_AND:
    case EMU_RULE_OR:
    case EMU_RULE_AND_OR:
    case EMU_RULE_BFI:
      bit_rules(s, rule, u);
      break;
    case EMU_RULE_PERM:
      permute_bytes(s, u);
      break;
    case EMU_RULE_SELECT:
      select_lanes(s, u);
      break;
    case EMU_RULE_SHIFT: {
      bool reversed = n == 2;  // …rev: the distance comes first
      bool aligns = s->op == EMU_V_ALIGNBIT_B32 || s->op == EMU_V_ALIGNBYTE_B32;
      run_on_shadow(s, reversed ? 1 : 0, aligns ? 1 : 9);
      break;
    }
    case EMU_RULE_SHIFT_OR:
      run_on_shadow(s, 0, 2);
      break;
    case EMU_RULE_SHIFT_LEFT:
      shift_and_add(s, u);
      break;
    case EMU_RULE_MAD64:
      EMU_EACH {
        bool product = s->u[0][0][l] || s->u[1][0][l];
        u[l] = product ? UINT32_MAX : leftwards(s->u[2][0][l]);
        s->out[1][l] = product || s->u[2][0][l] ? UINT32_MAX : leftwards(s->u[2][1][l]);
      }
      break;
    case EMU_RULE_HALVES:
      EMU_EACH {
        uint32_t all = s->u[0][0][l] | s->u[1][0][l] | (n > 2 ? s->u[2][0][l] : 0);
        u[l] = (all & 0xffff ? 0xffff : 0) | (all >> 16 ? 0xffff0000 : 0);
      }
      break;
    case EMU_RULE_BYTE: {
      unsigned byte = s->op == EMU_V_CVT_F32_UBYTE0   ? 0
                      : s->op == EMU_V_CVT_F32_UBYTE1 ? 8
                      : s->op == EMU_V_CVT_F32_UBYTE2 ? 16
                      : s->op == EMU_V_CVT_F32_UBYTE3 ? 24
                                                      : 8 * (unsigned)s->step->inst->imm;
      EMU_EACH u[l] = s->u[0][0][l] >> byte & 255 ? UINT32_MAX : 0;
      break;
    }
    default:
      spread(s, any, UINT32_MAX);
      break;
  }
  return any;
}

// ---- putting it back

static void put_register(struct shadow *s, unsigned reg, const uint32_t *u, uint32_t exec) {
  uint32_t *to = emu__undefined(s->wave, reg, s->half * EMU_HALF);
  EMU_EACH to[l] = exec >> l & 1 ? u[l] : to[l];
}

static void put_result(struct shadow *s, uint32_t exec) {
  const struct emu_inst *inst = s->step->inst;
  const struct emu_operand *dst = s->dst;
  if (dst->kind != EMU_OPERAND_VECTOR) return;
  const uint32_t *old = emu__undefined(s->wave, dst->reg, s->half * EMU_HALF);
  uint32_t *u = s->out[0];
  if (inst->lanes == EMU_LANES_SDWA && inst->dst_sel != EMU_DWORD) {
    unsigned select = inst->dst_sel;
    unsigned bits = select < EMU_WORD_0 ? 8 : 16, low = select < EMU_WORD_0 ? select * 8 : (select - EMU_WORD_0) * 16;
    uint32_t mask = ((1u << bits) - 1) << low;
    EMU_EACH {
      uint32_t rest = inst->dst_unused == EMU_UNUSED_PRESERVE ? old[l] & ~mask : 0;
      u[l] = (u[l] << low & mask) | rest;
    }
  } else if (inst->lanes == EMU_LANES_SDWA) {
    // the whole register
  } else if (s->step->action->part) {
    unsigned bits = s->step->action->part, at = bits == 8 ? 8 * (unsigned)inst->imm : dst->high ? 16 : 0;
    uint32_t mask = ((1u << bits) - 1) << at;
    EMU_EACH u[l] = (old[l] & ~mask) | (u[l] ? mask : 0);
  } else if (emu__is_mix_high(s->op) || (is_half(dst->type) && dst->high)) {
    EMU_EACH u[l] = (old[l] & 0xffff) | u[l] << 16;
  } else if (s->step->zeroes) {
    EMU_EACH u[l] &= 0xffff;
  } else if (is_half(dst->type)) {
    EMU_EACH u[l] = (old[l] & 0xffff0000u) | (u[l] & 0xffff);
  }
  put_register(s, dst->reg, u, exec);
  for (unsigned k = 1; k < dst->dwords; k++) put_register(s, dst->reg + k, s->out[k < 2 ? k : 1], exec);
}

static void prepare(struct shadow *s, struct emu_wave *wave, const struct emu_step *step, bool second, unsigned half) {
  const struct emu_inst *inst = step->inst;
  s->wave = wave;
  s->step = second ? step->pair : step;
  s->src = second ? inst->y.src : inst->src;
  s->dst = second ? &inst->y.dst : &inst->dst;
  s->op = second ? inst->y.op : inst->op;
  s->half = half;
  s->exec = wave->s[EMU_EXEC_LO + half];
}

static bool settles(struct emu_wave *wave, const struct emu_operand *dst) {
  if (dst->kind != EMU_OPERAND_VECTOR) return false;
  for (unsigned k = 0; k < dst->dwords; k++) emu__check_settle(wave, dst->reg + k);
  return true;
}

static void define(struct emu_wave *wave, const struct emu_operand *dst) {
  if (dst->kind != EMU_OPERAND_VECTOR) return;
  uint64_t exec = emu__wave_exec(wave);
  for (unsigned k = 0; k < dst->dwords; k++) {
    for (unsigned half = 0; half < wave->lanes / EMU_HALF; half++) {
      uint32_t *u = emu__undefined(wave, dst->reg + k, half * EMU_HALF), on = (uint32_t)(exec >> half * EMU_HALF);
      EMU_EACH u[l] = on >> l & 1 ? 0 : u[l];
    }
    emu__check_settle(wave, dst->reg + k);
  }
}

// The usual case: all that is read is defined, so that the registers are too which are written. false: it is another
// one, and nothing is done.
static bool define_results(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  const struct emu_inst *inst = step->inst;
  bool parts = inst->lanes != EMU_LANES_PLAIN || step->action->part || emu__is_mix_high(inst->op) ||
               is_half(inst->dst.type) || is_half(inst->y.dst.type);
  if (parts || step->to_exec || emu__sets_meet(&plan->reads, &wave->checker->dirty)) return false;
  define(wave, &inst->dst);
  if (inst->format == EMU_VOPD) define(wave, &inst->y.dst);
  if (inst->sdst.kind == EMU_OPERAND_SCALAR && inst->sdst.reg != EMU_NULL)
    emu__scalar_set_undefined(wave, step, inst->sdst.reg, wave->lanes / EMU_HALF, 0);
  return true;
}

void emu__check_vector(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  struct shadow first, second;
  const struct emu_inst *inst = step->inst;
  if (define_results(wave, step, plan)) return;
  uint32_t masks[2] = {0, 0};
  bool dual = inst->format == EMU_VOPD;
  uint32_t whole[64];
  first.whole = second.whole = NULL;
  if (emu__dpp_crosses(inst)) {
    memcpy(whole, emu__undefined(wave, inst->src[0].reg, 0), wave->lanes * 4);
    first.whole = whole;
  }
  for (unsigned half = 0; half < wave->lanes / EMU_HALF; half++) {
    prepare(&first, wave, step, false, half);
    uint32_t writable = first.exec;
    for (unsigned i = 0; i < step->nsrc; i++) take(&first, i, &writable);
    masks[half] = apply(&first, plan->rule) & writable;
    if (dual) {
      uint32_t all = first.exec;
      prepare(&second, wave, step, true, half);
      for (unsigned i = 0; i < step->pair->nsrc; i++) take(&second, i, &all);
      (void)apply(&second, plan->pair_rule);
      put_result(&second, first.exec);
    }
    put_result(&first, writable);
  }
  (void)settles(wave, &inst->dst);
  if (dual) (void)settles(wave, &inst->y.dst);
  uint64_t mask = masks[0] | (uint64_t)masks[1] << 32;
  if (inst->sdst.kind == EMU_OPERAND_SCALAR && inst->sdst.reg != EMU_NULL)
    emu__scalar_set_undefined(wave, step, inst->sdst.reg, wave->lanes / EMU_HALF, mask);
  if (step->to_exec) emu__scalar_set_undefined(wave, step, EMU_EXEC_LO, wave->lanes / EMU_HALF, mask);
}

// ---- between lanes

static void copy_lanes(struct emu_wave *wave, unsigned dst, const uint32_t u[64], uint64_t mask) {
  uint32_t *to = emu__undefined(wave, dst, 0);
  for (unsigned l = 0; l < wave->lanes; l++) to[l] = mask >> l & 1 ? u[l] : to[l];
  emu__check_settle(wave, dst);
}

static void cross_permlane(struct emu_wave *wave, const struct emu_step *step, unsigned flip) {
  const struct emu_inst *inst = step->inst;
  uint64_t select = emu__scalar_read(wave, &inst->src[1]) | (uint64_t)emu__scalar_read(wave, &inst->src[2]) << 32;
  uint64_t exec = emu__wave_exec(wave), writes = 0;
  uint32_t u[64] = {0};
  const uint32_t *from = emu__undefined(wave, inst->src[0].reg, 0);
  bool lost = emu__scalar_undefined(wave, &inst->src[1]) || emu__scalar_undefined(wave, &inst->src[2]);
  for (unsigned l = 0; l < wave->lanes; l++) {
    unsigned lane = ((l & ~15u) ^ flip) | (select >> (4 * (l & 15)) & 15);
    bool readable = inst->fetch_inactive || exec >> lane & 1;
    u[l] = lost ? UINT32_MAX : readable ? from[lane] : 0;
    if (exec >> l & 1 && (readable || inst->bound_ctrl)) writes |= UINT64_C(1) << l;
  }
  copy_lanes(wave, inst->dst.reg, u, writes);
}

static void cross_relative(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  if (wave->checker->scalar[EMU_M0]) {
    emu__check_undefined(wave, step, -1, 0, "It finds a register through M0, which is not defined.");
    return;
  }
  uint32_t m0 = wave->s[EMU_M0], low = m0 & 0x3ff, high = m0 >> 16 & 0x3ff;
  bool two = inst->op == EMU_V_MOVRELSD_2_B32 || inst->op == EMU_V_SWAPREL_B32;
  uint64_t from = (uint64_t)inst->src[0].reg + (two ? low : inst->op == EMU_V_MOVRELD_B32 ? 0 : m0);
  uint64_t to = (uint64_t)inst->dst.reg + (two ? high : inst->op == EMU_V_MOVRELS_B32 ? 0 : m0);
  uint64_t exec = emu__wave_exec(wave);
  uint32_t a[64], b[64];
  bool vector = inst->src[0].kind == EMU_OPERAND_VECTOR;
  if (to >= wave->vgprs || (vector && from >= wave->vgprs)) return;  // it will trap
  for (unsigned l = 0; l < wave->lanes; l++) {
    a[l] = vector ? *emu__undefined(wave, (unsigned)from, l) : (uint32_t)emu__scalar_undefined(wave, &inst->src[0]);
    b[l] = *emu__undefined(wave, (unsigned)to, l);
  }
  copy_lanes(wave, (unsigned)to, a, exec);
  if (inst->op == EMU_V_SWAPREL_B32) copy_lanes(wave, (unsigned)from, b, exec);
}

// Whatever is undefined in a lane's sources makes all that it writes undefined.
static void cross_scaled(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  uint64_t exec = emu__wave_exec(wave);
  uint32_t u[64] = {0};
  for (int i = 0; i < 3; i++) {
    const struct emu_operand *o = &inst->src[i];
    bool vector = o->kind == EMU_OPERAND_VECTOR;
    for (unsigned l = 0; o->kind && l < wave->lanes; l++)
      for (unsigned k = 0; k < (vector ? o->dwords : 1); k++)
        if (vector ? *emu__undefined(wave, o->reg + k, l) : (uint32_t)emu__scalar_undefined(wave, o)) u[l] = UINT32_MAX;
  }
  for (unsigned k = 0; k < inst->dst.dwords; k++) {
    uint32_t all[64];
    bool parts = inst->dst.dwords == 1;  // whose rest stays as it was
    for (unsigned l = 0; l < wave->lanes; l++)
      all[l] = u[l] | (parts && inst->dst.type == EMU_B32 ? *emu__undefined(wave, inst->dst.reg, l) : 0);
    copy_lanes(wave, inst->dst.reg + k, all, exec);
  }
}

void emu__check_cross(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  uint64_t exec = emu__wave_exec(wave);
  uint32_t a[64], b[64];
  switch (inst->op) {
    case EMU_V_READFIRSTLANE_B32:
    case EMU_V_READLANE_B32: {
      bool first = inst->op == EMU_V_READFIRSTLANE_B32;
      unsigned lane = exec ? (unsigned)__builtin_ctzll(exec) : 0;
      if (!first) lane = emu__scalar_read(wave, &inst->src[1]) & (wave->lanes - 1);
      uint32_t u = *emu__undefined(wave, inst->src[0].reg, lane);
      if (!first && emu__scalar_undefined(wave, &inst->src[1])) u = UINT32_MAX;
      emu__scalar_set_undefined(wave, step, inst->dst.reg, 1, u);
      break;
    }
    case EMU_V_WRITELANE_B32: {
      unsigned lane = emu__scalar_read(wave, &inst->src[1]) & (wave->lanes - 1);
      *emu__undefined(wave, inst->dst.reg, lane) = (uint32_t)emu__scalar_undefined(wave, &inst->src[0]);
      emu__check_settle(wave, inst->dst.reg);
      break;
    }
    case EMU_V_PERMLANE16_B32:
      cross_permlane(wave, step, 0);
      break;
    case EMU_V_PERMLANEX16_B32:
      cross_permlane(wave, step, 16);
      break;
    case EMU_V_PERMLANE64_B32:
      if (wave->lanes == 32) break;
      for (unsigned l = 0; l < 64; l++) a[l] = *emu__undefined(wave, inst->src[0].reg, l ^ 32);
      copy_lanes(wave, inst->dst.reg, a, exec);
      break;
    case EMU_V_SWAP_B32:
      memcpy(a, emu__undefined(wave, inst->src[0].reg, 0), wave->lanes * 4);
      memcpy(b, emu__undefined(wave, inst->dst.reg, 0), wave->lanes * 4);
      copy_lanes(wave, inst->dst.reg, a, exec);
      copy_lanes(wave, inst->src[0].reg, b, exec);
      break;
    case EMU_V_PERMLANE16_SWAP_B32:
    case EMU_V_PERMLANE32_SWAP_B32: {
      unsigned run = inst->op == EMU_V_PERMLANE16_SWAP_B32 ? 16 : 32;
      memcpy(a, emu__undefined(wave, inst->dst.reg, 0), sizeof(a));
      memcpy(b, emu__undefined(wave, inst->src[0].reg, 0), sizeof(b));
      for (unsigned l = 0; l < 64; l++) {
        if (!(l & run)) continue;
        uint32_t t = a[l];
        a[l] = b[l - run];
        b[l - run] = t;
      }
      copy_lanes(wave, inst->dst.reg, a, exec);
      copy_lanes(wave, inst->src[0].reg, b, exec);
      break;
    }
    default:
      if (inst->op >= EMU_V_CVT_SCALEF32_PK_FP8_F32 && inst->op <= EMU_V_CVT_SCALEF32_PK_BF16_BF8) {
        cross_scaled(wave, step);
      } else {
        cross_relative(wave, step);
      }
      break;
  }
}

static unsigned swizzled_lane(unsigned lane, uint32_t imm) {
  if (imm >= 0xc000) {
    unsigned distance = imm >> 5 & 31, keep = imm & 31, turned = imm & 0x400 ? lane - distance : lane + distance;
    return (lane & keep) | (turned & ~keep & 31);
  }
  if (imm & 0x8000) return (lane & 28) | (imm >> (2 * (lane & 3)) & 3);
  return ((lane & imm & 31) | (imm >> 5 & 31)) ^ (imm >> 10 & 31);
}

// Through LDS, without touching it. Nothing faults: a lane that is chosen by an undefined index gives an undefined
// value, and one that is sent to such a lane may be anywhere.
void emu__check_shuffle(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  uint64_t exec = emu__wave_exec(wave);
  uint32_t u[64] = {0}, imm = (uint32_t)inst->imm;
  bool swizzles = inst->op == EMU_DS_SWIZZLE_B32;
  const uint32_t *data = emu__undefined(wave, inst->src[swizzles ? 0 : 1].reg, 0);
  const uint32_t *index = emu__vector(wave, inst->src[0].reg, 0), *lost = emu__undefined(wave, inst->src[0].reg, 0);
  bool astray = false;
  for (unsigned l = 0; l < wave->lanes; l++) {
    if (!(exec >> l & 1)) continue;
    bool unknown = !swizzles && lost[l] & (wave->lanes - 1) << 2;
    unsigned from = swizzles ? (l & 32) | swizzled_lane(l & 31, imm) : emu__permuted_lane(wave, l, index[l] + imm);
    if (inst->op == EMU_DS_PERMUTE_B32) {
      u[from] = data[l];
      astray = astray || unknown;
    } else {
      u[l] = unknown ? UINT32_MAX : exec >> from & 1 ? data[from] : 0;
    }
  }
  if (astray) memset(u, 0xff, sizeof(u));
  copy_lanes(wave, inst->dst.reg, u, exec);
}

// ---- lanes that are off

// The lane that lane `l` takes its value from, or itself.
static unsigned source_lane(const struct emu_wave *wave, const struct emu_inst *inst, unsigned l) {
  unsigned lane = l & 31, half = l & 32;
  switch (inst->op) {
    case EMU_DS_BPERMUTE_B32:
      return emu__permuted_lane(wave, l, *emu__vector(wave, inst->src[0].reg, l) + (uint32_t)inst->imm);
    case EMU_DS_SWIZZLE_B32:
      return half | swizzled_lane(lane, (uint32_t)inst->imm);
    case EMU_V_PERMLANE16_B32:
    case EMU_V_PERMLANEX16_B32: {
      uint64_t select = emu__scalar_read(wave, &inst->src[1]) | (uint64_t)emu__scalar_read(wave, &inst->src[2]) << 32;
      unsigned row = (l & ~15u) ^ (inst->op == EMU_V_PERMLANE16_B32 ? 0 : 16);
      return row | (select >> (4 * (l & 15)) & 15);
    }
    default: {
      bool dpp16 = inst->lanes == EMU_LANES_DPP16, inside;
      bool written = !dpp16 || (inst->row_mask >> (l / 16) & 1 && inst->bank_mask >> (l % 16 / 4) & 1);
      unsigned from = emu__dpp_lane(inst, l, &inside);
      return inside && written ? from : l;
    }
  }
}

void emu__check_lanes(struct emu_wave *wave, const struct emu_step *step) {
  uint64_t exec = emu__wave_exec(wave), all = wave->lanes == 64 ? UINT64_MAX : UINT32_MAX;
  if (step->klass == EMU_CLASS_WMMA) {
    if (exec == all) return;
    emu__check_lint(wave, step, "inactive lane", __builtin_ctzll(~exec), 0,
                    "%d of the wave's %u lanes are off; the instruction works on the whole wave.",
                    __builtin_popcountll(all & ~exec), wave->lanes);
    return;
  }
  for (uint64_t rest = exec; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest), from = source_lane(wave, step->inst, l);
    if (exec >> from & 1) continue;
    emu__check_lint(wave, step, "inactive lane", (int)l, 0, "It takes the value of lane %u, which is off.", from);
    return;
  }
}

// ---- WMMA: an element of D depends on a row of A, a column of B, and its own element of C

static bool is_fragment(const struct emu_operand *o) { return o->type >= EMU_FRAG1 && o->type <= EMU_FRAG8; }

// Of copies only the first 16 lanes are read, and where one register would do for half as many lanes, only they hold
// it.
static uint32_t lines_undefined(const struct emu_wave *wave, const struct emu_operand *o) {
  uint32_t lines = 0;
  unsigned lanes = !is_fragment(o) ? 16 : o->type == EMU_FRAG1 ? 32 : wave->lanes;
  for (unsigned k = 0; k < o->dwords; k++) {
    const uint32_t *u = emu__undefined(wave, o->reg + k, 0);
    for (unsigned l = 0; l < lanes; l++) lines |= (uint32_t)(u[l] != 0) << l % 16;
  }
  return lines;
}

// The rows of A whose indices, those of the key, are undefined.
static uint32_t indices_undefined(const struct emu_wave *wave, const struct emu_inst *inst) {
  unsigned bits = (inst->op == EMU_V_SWMMAC_I32_16X16X64_IU4 ? 1024 : 512) / wave->lanes;
  unsigned lanes = inst->src[0].type == EMU_FRAG1 ? 32 : wave->lanes;
  if (lanes < wave->lanes) bits *= 2;
  const uint32_t *u = emu__undefined(wave, inst->src[2].reg, 0);
  uint32_t rows = 0;
  for (unsigned l = 0; l < lanes; l++)
    rows |= (uint32_t)(emu__bits(u[l], bits * (unsigned)inst->imm % 32, bits) != 0) << l % 16;
  return rows;
}

// Of C and D that are shared out as wmma_fragment.c says. With two elements in a register either makes both undefined.
static void check_fragment(struct emu_wave *wave, const struct emu_inst *inst, uint32_t rows, uint32_t columns) {
  bool sparse = inst->src[2].type == EMU_B32;  // the accumulator is D
  const struct emu_operand *c = sparse ? &inst->dst : &inst->src[2];
  unsigned in_lane = 256 / wave->lanes, in_register = in_lane / inst->dst.dwords;
  if (sparse) rows |= indices_undefined(wave, inst);
  for (unsigned i = 0; i < inst->dst.dwords; i++) {
    uint32_t *to = emu__undefined(wave, inst->dst.reg + i, 0);
    for (unsigned l = 0; l < wave->lanes; l++) {
      unsigned row = l / 16 % 2 * 8 + l / 32 * 4 + i * in_register;
      bool undefined = columns >> (l % 16) & 1 || emu__bits(rows, row, in_register);
      if (c->kind == EMU_OPERAND_VECTOR) undefined |= *emu__undefined(wave, c->reg + i, l) != 0;
      to[l] = undefined ? UINT32_MAX : 0;
    }
    emu__check_settle(wave, inst->dst.reg + i);
  }
}

void emu__check_wmma(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  if (emu__check_matrix(wave, step)) return;
  uint32_t rows = lines_undefined(wave, &inst->src[0]), columns = lines_undefined(wave, &inst->src[1]);
  if (is_fragment(&inst->dst)) {
    check_fragment(wave, inst, rows, columns);
    return;
  }
  const struct emu_operand *c = &inst->src[2];
  bool halves = inst->op == EMU_V_WMMA_F16_16X16X16_F16 || inst->op == EMU_V_WMMA_BF16_16X16X16_BF16;
  uint32_t part = !halves ? UINT32_MAX : c->high ? 0xffff0000u : 0xffff;
  for (unsigned i = 0; i < inst->dst.dwords; i++) {
    uint32_t *to = emu__undefined(wave, inst->dst.reg + i, 0);
    for (unsigned l = 0; l < wave->lanes; l++) {
      unsigned row = i * (wave->lanes / 16) + l / 16;
      bool undefined = rows >> row & 1 || columns >> (l % 16) & 1;
      if (c->kind == EMU_OPERAND_VECTOR) undefined |= (*emu__undefined(wave, c->reg + i, l) & part) != 0;
      to[l] = (to[l] & ~part) | (undefined ? part : 0);
    }
    emu__check_settle(wave, inst->dst.reg + i);
  }
}
