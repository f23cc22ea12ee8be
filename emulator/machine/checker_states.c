// Wait states: what the matrix units of gfx908 and later leave to the compiler. A result, and what a product still
// reads, may be touched only so many instructions later; the hardware does not wait for it. An instruction in between
// counts as one, S_NOP n as n + 1:
//
//     v_mfma_f32_4x4x1_16b_f32 v[0:3], v4, v5, v[0:3]     two passes
//     s_nop 3                                             four wait states, which the next one needs
//     v_mov_b32 v9, v1
//
// Sources of the numbers: AMD "CDNA3 Instruction Set Architecture", table of required independent instructions, those
// for MI100 and MI200, and LLVM's GCNHazardRecognizer, which tests/matrix_waits_test.py asks anew for each pair. Where
// they tell apart more cases than here, such as loads behind doubles on gfx90a, nothing is said.
#include <inttypes.h>

#include "machine/checker_state.h"
#include "machine/valu.h"

enum { LONGEST = 19, RECENT = sizeof(((struct emu_states *)0)->recent) / sizeof(struct emu_issue) };
_Static_assert(RECENT > LONGEST, "each instruction is a wait state at least");

enum use { USE_FACTOR, USE_ADDEND, USE_READ, USE_WRITE };

// The instruction that is about to be issued, as one that others will have to wait for.
static struct emu_issue issue_of(const struct emu_step *step, const struct emu_isa *target) {
  const struct emu_inst *inst = step->inst;
  struct emu_issue x = {.pc = step->offset, .op = inst->op};
  const struct emu_operand *addend = &inst->src[2];
  switch (inst->format) {
    case EMU_DS:
    case EMU_FLAT:
    case EMU_GLOBAL:
    case EMU_SCRATCH:
    case EMU_MUBUF:
    case EMU_MTBUF:
      x.kind = EMU_ISSUE_MEMORY;
      return x;
    case EMU_VOP1:
    case EMU_VOP2:
    case EMU_VOPC:
    case EMU_VOP3:
    case EMU_VOP3P:
      break;
    default:
      x.kind = EMU_ISSUE_OTHER;
      return x;
  }
  x.kind = EMU_ISSUE_VECTOR;
  if (step->klass == EMU_CLASS_DOT) x.kind = EMU_ISSUE_DOT;
  if (inst->op == EMU_V_ACCVGPR_READ_B32) x.kind = EMU_ISSUE_ACC_READ;
  if (inst->op == EMU_V_ACCVGPR_WRITE_B32) x.kind = EMU_ISSUE_ACC_WRITE;
  x.exec = step->to_exec || emu_isa_compares_exec((enum emu_op)inst->op);
  if (inst->dst.kind == EMU_OPERAND_VECTOR) x.result = (struct emu_registers){inst->dst.reg, inst->dst.dwords};
  x.passes = (uint8_t)emu__matrix_passes(target, inst->op);
  if (!x.passes) return x;
  x.kind = EMU_ISSUE_MATRIX;
  x.doubles = emu_isa_multiplies_doubles((enum emu_op)inst->op);
  x.xdl = emu__matrix_is_xdl(target, inst->op);
  x.sparse = emu__matrix_is_sparse(inst->op);
  if (x.sparse) addend = &inst->dst;
  if (addend->kind == EMU_OPERAND_VECTOR) x.addend = (struct emu_registers){addend->reg, addend->dwords};
  return x;
}

static bool meet(struct emu_registers a, struct emu_registers b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

static bool same(struct emu_registers a, struct emu_registers b) { return a.first == b.first && a.count == b.count; }

// ---- how many wait states, 0: none. p has been issued before, c is about to be and names the registers r.

// gfx908, where products and the two moves touch accumulation registers, and nothing else does.
static unsigned needed_908(const struct emu_issue *p, const struct emu_issue *c, struct emu_registers r, enum use use) {
  bool writes = c->kind == EMU_ISSUE_ACC_WRITE, reads = c->kind == EMU_ISSUE_ACC_READ;
  if (c->kind == EMU_ISSUE_MEMORY) return p->kind == EMU_ISSUE_ACC_READ && meet(p->result, r) ? 2 : 0;
  if (!writes && !reads && c->kind != EMU_ISSUE_MATRIX) return 0;
  if (use == USE_WRITE) {
    if (!writes || p->kind != EMU_ISSUE_MATRIX) return 0;
    unsigned result = meet(p->result, r) ? p->passes - 1u : 0;
    unsigned addend = meet(p->addend, r) && p->passes > 2 ? p->passes - 3u : 0;
    return result > addend ? result : addend;
  }
  if (!meet(p->result, r)) return 0;
  if (p->kind == EMU_ISSUE_MATRIX) {
    if (reads) return p->passes + 2u;
    return same(p->result, r) ? 0 : use == USE_ADDEND ? 2 : 4;
  }
  if (p->kind == EMU_ISSUE_ACC_WRITE) return use == USE_ADDEND ? 1 : 3;
  return reads ? 0 : 2;
}

// The sum of a product that is the next one's addend goes from one to the other without a wait, if it is the whole sum.
static unsigned needed_by_addend(const struct emu_issue *p, const struct emu_issue *c, struct emu_registers r,
                                 bool is_942) {
  bool small = p->doubles && p->passes == 4;
  if (p->doubles && !c->doubles && !is_942) return 0;
  if (same(p->result, r)) {
    if (small && c->doubles && c->passes == 4) return 4;
    return is_942 && p->passes == 2 ? 2 : 0;
  }
  if (p->doubles) return c->xdl ? 0 : small ? 4 : 9;
  if (!is_942) return p->passes + c->doubles;
  return c->xdl && !p->xdl ? 0 : p->passes + p->xdl;
}

static unsigned needed_90a(const struct emu_issue *p, const struct emu_issue *c, struct emu_registers r, enum use use,
                           bool is_942) {
  bool memory = c->kind == EMU_ISSUE_MEMORY, matrix = c->kind == EMU_ISSUE_MATRIX;
  if (p->kind == EMU_ISSUE_MATRIX) {
    unsigned need = 0;
    if (matrix && use == USE_WRITE) return 0;
    if (meet(p->result, r)) {
      if (matrix && use == USE_ADDEND) return needed_by_addend(p, c, r, is_942);
      bool small = p->passes == 4;
      if (!p->doubles)
        need = p->passes + (is_942 && !p->xdl ? 2 : 3);
      else if (memory && use != USE_WRITE)
        need = small ? 9 : 18;
      else
        need = small ? 6 : 11;
    }
    bool reads_addend = !p->doubles && (p->xdl || !is_942) && meet(p->addend, r);
    if (use == USE_WRITE && reads_addend && need < p->passes - 1u) need = p->passes - 1u;
    return need;
  }
  if (!meet(p->result, r)) return 0;
  if (p->kind == EMU_ISSUE_DOT) {
    bool alike = p->op == c->op && (use == USE_ADDEND || use == USE_WRITE);
    return matrix || alike ? 0 : 3;
  }
  return matrix && use != USE_WRITE ? 2 : 0;
}

static unsigned needed(const struct emu_isa *target, const struct emu_issue *p, const struct emu_issue *c,
                       struct emu_registers r, enum use use) {
  if (target->matrix_waits == EMU_MATRIX_WAITS_908) return needed_908(p, c, r, use);
  return needed_90a(p, c, r, use, target->matrix_waits == EMU_MATRIX_WAITS_942);
}

// What needs none of its registers to meet another's.
static unsigned needed_by_kind(const struct emu_isa *target, const struct emu_issue *p, const struct emu_issue *c) {
  bool is_908 = target->matrix_waits == EMU_MATRIX_WAITS_908;
  if (p->exec && (c->kind == EMU_ISSUE_MATRIX || (is_908 && c->kind == EMU_ISSUE_ACC_WRITE))) return 4;
  bool fma = c->op == EMU_V_FMA_F64 || c->op == EMU_V_FMAC_F64;
  return p->doubles && fma ? 2 : 0;
}

// ---- an instruction

static const struct emu_issue *issued(const struct emu_states *s, unsigned back) {
  return &s->recent[(s->count - back) % RECENT];
}

static const char *file_of(const struct emu_wave *wave, unsigned reg) {
  return wave->group->run->accumulators && reg >= wave->group->run->accumulators ? "a" : "v";
}

static void look(struct emu_wave *wave, const struct emu_step *step, const struct emu_issue *c,
                 const struct emu_operand *o, enum use use) {
  const struct emu_states *s = &wave->checker->states;
  struct emu_registers r = {o->reg, o->dwords};
  unsigned accumulators = wave->group->run->accumulators;
  if (o->kind != EMU_OPERAND_VECTOR) return;
  // each register waits for the newest of those that wrote it, of which there may be several
  for (unsigned back = 1; back <= s->count && back < RECENT; back++) {
    const struct emu_issue *p = issued(s, back);
    uint32_t since = s->now - p->at;
    if (since >= LONGEST) return;
    unsigned need = needed(wave->group->run->target, p, c, r, use);
    if (need > since) {
      unsigned number = file_of(wave, o->reg)[0] == 'a' ? o->reg - accumulators : o->reg;
      emu__check_lint(wave, step, "hazard", -1, 0,
                      "It %s %s%u %" PRIu32 " wait states behind the instruction at 0x%" PRIx32
                      " that %s it, and needs %u: the hardware does not wait. s_nop %u between them would do.",
                      use == USE_WRITE ? "writes" : "reads", file_of(wave, o->reg), number, since, p->pc,
                      meet(p->result, r) ? "writes" : "reads", need, need - since - 1);
      return;
    }
    if (p->kind == EMU_ISSUE_MATRIX && meet(p->result, r)) return;
  }
}

static void look_by_kind(struct emu_wave *wave, const struct emu_step *step, const struct emu_issue *c) {
  const struct emu_states *s = &wave->checker->states;
  for (unsigned back = 1; back <= s->count && back < RECENT && s->now - issued(s, back)->at < 4; back++) {
    const struct emu_issue *p = issued(s, back);
    uint32_t since = s->now - p->at;
    unsigned need = needed_by_kind(wave->group->run->target, p, c);
    if (need <= since) continue;
    emu__check_lint(wave, step, "hazard", -1, 0,
                    "It comes %" PRIu32 " wait states behind the instruction at 0x%" PRIx32
                    ", which %s, and needs %u: the hardware does not wait. s_nop %u between them would do.",
                    since, p->pc, p->exec ? "writes EXEC" : "multiplies doubles", need, need - since - 1);
    return;
  }
}

void emu__check_states(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_states *s = &wave->checker->states;
  const struct emu_inst *inst = step->inst;
  if (inst->op == EMU_S_NOP) {
    s->now += ((uint32_t)inst->imm & 15) + 1;
    return;
  }
  struct emu_issue c = issue_of(step, wave->group->run->target);
  if (c.kind != EMU_ISSUE_OTHER) {
    bool matrix = c.kind == EMU_ISSUE_MATRIX;
    look_by_kind(wave, step, &c);
    for (int i = 0; i < 4; i++) {
      bool addend = i == 2 && !c.sparse && inst->src[0].kind;
      look(wave, step, &c, &inst->src[i], addend ? USE_ADDEND : matrix ? USE_FACTOR : USE_READ);
    }
    // sums over their own register
    if (c.sparse || (c.kind == EMU_ISSUE_DOT && !inst->src[2].kind)) look(wave, step, &c, &inst->dst, USE_ADDEND);
    look(wave, step, &c, &inst->dst, USE_WRITE);
  }
  s->now++;
  if (c.kind == EMU_ISSUE_OTHER || c.kind == EMU_ISSUE_MEMORY) return;
  c.at = s->now;
  s->recent[s->count++ % RECENT] = c;
}
