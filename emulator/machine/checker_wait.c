// Missing waits: a load's destination is in flight until a wait retires it.
//
// VMCNT counts down in the order of issue, LGKMCNT does so for LDS, and flat accesses raise both; scalar loads and
// messages come back in any order, so only a wait for none retires them. Loads of one kind into one register keep their
// order.
#include "isa/isa_tables.h"
#include "machine/checker_state.h"

static const char *counter_name(const struct emu_isa *target, unsigned on) {
  if (target->split_counters) {
    if (on & EMU_WAIT_LOOSE) return "kmcnt";
    if (on & EMU_WAIT_SAMPLE) return "samplecnt";
    return !(on & EMU_WAIT_VM) ? "dscnt" : on & EMU_WAIT_LDS ? "loadcnt and dscnt" : "loadcnt";
  }
  return !(on & EMU_WAIT_VM) ? "lgkmcnt" : on & EMU_WAIT_LDS ? "vmcnt and lgkmcnt" : "vmcnt";
}

static void forget(struct emu_wave_check *c, unsigned i) {
  c->pending_on[i] = 0;
  emu__set_put(&c->pending, i, false);
  emu__check_watch(c, i);
}

static unsigned operand_halves(const struct emu_operand *o, unsigned reg) {
  if (o->kind != EMU_OPERAND_VECTOR || reg < o->reg || reg >= o->reg + o->dwords) return 0;
  return !emu__type_is_half((enum emu_type)o->type) ? 3 : o->high ? 2 : 1;
}

// The halves of a vector register that an instruction names, as pending_half. Compilers wait for halves.
static unsigned halves_touched(const struct emu_inst *inst, const struct emu_plan *plan, unsigned reg) {
  unsigned halves = operand_halves(&inst->dst, reg);
  if (halves && plan->raises) halves = plan->half;
  for (int i = 0; i < 4; i++) halves |= operand_halves(&inst->src[i], reg);
  if (inst->format != EMU_VOPD) return halves;
  halves |= operand_halves(&inst->y.dst, reg);
  for (int i = 0; i < 3; i++) halves |= operand_halves(&inst->y.src[i], reg);
  return halves;
}

void emu__check_hazards(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  struct emu_wave_check *c = wave->checker;
  for (unsigned k = 0; k < EMU_SET_SIZE / 64; k++) {
    uint64_t hit = c->pending.word[k] & plan->touch.word[k];
    for (; hit; hit &= hit - 1) {
      unsigned i = k * 64 + (unsigned)__builtin_ctzll(hit), on = c->pending_on[i];
      bool reads = emu__set_has(&plan->reads, i);
      if (!reads && on == plan->raises && !(on & EMU_WAIT_LOOSE)) continue;
      bool vector = i < EMU_SET_SCALAR;
      if (vector && wave->group->run->target->halves) {
        unsigned halves = halves_touched(step->inst, plan, i);
        if (halves && !(halves & c->pending_half[i])) continue;
      }
      unsigned accumulators = wave->group->run->accumulators;
      bool accumulator = vector && accumulators && i >= accumulators;
      unsigned number = !vector ? i - EMU_SET_SCALAR : accumulator ? i - accumulators : i;
      emu__check_report(wave, step, "missing wait", -1, 0,
                        "It %s %s%u while a load into that register is in flight: no wait for %s has retired it.",
                        reads ? "reads" : "overwrites",
                        !vector       ? "s"
                        : accumulator ? "a"
                                      : "v",
                        number, counter_name(wave->group->run->target, on));
      forget(c, i);
    }
  }
}

// Marks as arrived the loads up to number `vm` and number `lds` of those issued, and up to number `sample` of samples
// where these have a counter of their own; with `loose`, which a wait for lgkmcnt(0) gives, also those that come back
// in any order.
static void retire(struct emu_wave_check *c, uint32_t vm, uint32_t lds, uint32_t sample, bool loose) {
  for (unsigned k = 0; k < EMU_SET_SIZE / 64; k++) {
    for (uint64_t rest = c->pending.word[k]; rest; rest &= rest - 1) {
      unsigned i = k * 64 + (unsigned)__builtin_ctzll(rest);
      if (i < EMU_SET_SCALAR && (int32_t)(vm - c->vm_at[i]) >= 0) c->pending_on[i] &= (uint8_t)~EMU_WAIT_VM;
      if (i < EMU_SET_SCALAR && (int32_t)(lds - c->lds_at[i]) >= 0) c->pending_on[i] &= (uint8_t)~EMU_WAIT_LDS;
      if (i < EMU_SET_SCALAR && (int32_t)(sample - c->sample_at[i]) >= 0) c->pending_on[i] &= (uint8_t)~EMU_WAIT_SAMPLE;
      if (loose) c->pending_on[i] &= (uint8_t)~EMU_WAIT_LOOSE;
      if (!c->pending_on[i]) forget(c, i);
    }
  }
}

void emu__check_wait(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_inst *inst = step->inst;
  enum { NONE = 1 << 16 };
  uint32_t vm = NONE, lgkm = NONE, samples = NONE, stores = NONE, count = (uint32_t)inst->imm & 0xffff;
  if (inst->src[0].kind) count += emu__scalar_read(wave, &inst->src[0]);
  if (inst->op == EMU_S_WAITCNT) {
    struct emu_waitcnt w = emu_isa_waitcnt(wave->group->run->target, inst->imm);
    if (w.vm != UINT8_MAX) vm = w.vm;
    if (w.lgkm != UINT8_MAX) lgkm = w.lgkm;
  } else if (inst->op == EMU_S_WAITCNT_VMCNT) {
    vm = count;
  } else if (inst->op == EMU_S_WAITCNT_LGKMCNT) {
    lgkm = count;
  } else if (inst->op == EMU_S_WAIT_IDLE) {
    vm = lgkm = samples = stores = 0;
  }
  bool loose = lgkm == 0;
  switch (inst->op) {
    case EMU_S_WAIT_LOADCNT:
      vm = count;
      break;
    case EMU_S_WAIT_DSCNT:
      lgkm = count;
      break;
    case EMU_S_WAIT_SAMPLECNT:
      samples = count;
      break;
    case EMU_S_WAIT_KMCNT:
      loose = count == 0;
      break;
    case EMU_S_WAIT_LOADCNT_DSCNT:
      vm = emu__field(count, (struct emu_field){8, 6}), lgkm = emu__field(count, (struct emu_field){0, 6});
      break;
    case EMU_S_WAIT_STORECNT:
    case EMU_S_WAITCNT_VSCNT:
      stores = count;
      break;
    case EMU_S_WAIT_STORECNT_DSCNT:
      stores = emu__field(count, (struct emu_field){8, 6});
      lgkm = emu__field(count, (struct emu_field){0, 6});
      break;
    default:
      break;
  }
  retire(c, c->vm_issued - vm, c->lds_issued - lgkm, c->sample_issued - samples, loose);
  struct emu_wave_model *m = &c->model;
  if ((int32_t)(c->vm_issued - vm - m->loads_done) > 0) m->loads_done = c->vm_issued - vm;
  if ((int32_t)(m->stores_issued - stores - m->stores_done) > 0) m->stores_done = m->stores_issued - stores;
  emu__model_waited(wave);
}

void emu__check_issue(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_operand *dst = &step->inst->dst;
  bool fills = dst->kind == EMU_OPERAND_VECTOR || (dst->kind == EMU_OPERAND_SCALAR && dst->reg != EMU_NULL);
  bool counted = fills || wave->group->run->target->counts_stores;
  if (plan->raises & EMU_WAIT_VM && counted) c->vm_issued++;
  if (plan->raises & EMU_WAIT_LDS) c->lds_issued++;
  if (plan->raises & EMU_WAIT_SAMPLE) c->sample_issued++;
  if (!fills) return;
  for (unsigned k = 0; k < dst->dwords; k++) {
    bool vector = dst->kind == EMU_OPERAND_VECTOR;
    unsigned i = vector ? dst->reg + k : EMU_SET_SCALAR + dst->reg + k;
    c->pending_on[i] |= plan->raises;
    if (vector) c->pending_half[i] = plan->half;
    if (vector) c->vm_at[i] = c->vm_issued;
    if (vector) c->lds_at[i] = c->lds_issued;
    if (vector) c->sample_at[i] = c->sample_issued;
    emu__set_put(&c->pending, i, true);
    emu__set_put(&c->watch, i, true);
  }
}
