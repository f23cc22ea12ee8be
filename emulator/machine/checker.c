// The checker's hooks: around each instruction, at barriers, at a group's begin and end.
#include "machine/checker_state.h"

#include <stdlib.h>

// ---- instructions

bool emu__check_before(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_wave_check *c = wave->checker;
  if (!c) return true;
  const struct emu_plan *plan = __atomic_load_n(&step->plan, __ATOMIC_ACQUIRE);
  if (!plan) plan = emu__check_plan(wave, step);
  if (!plan) {
    emu__wave_trap(wave, step, EMU_NO_MEMORY, "no memory", -1, 0, "There is no memory to check it.");
    return false;
  }
  if (c->states.counts && step->inst) emu__check_states(wave, step);
  bool met = emu__plan_meets(plan, &c->watch);
  bool lints = plan->lints && wave->group->run->dispatch->lint;
  if (!met && !plan->always && !lints) return true;
  if (met && emu__plan_meets(plan, &c->pending)) emu__check_hazards(wave, step, plan);
  if (plan->waits) emu__check_wait(wave, step);
  if (lints) emu__check_lanes(wave, step);
  if (plan->roots || (met && emu__plan_meets(plan, &c->rooted))) {
    emu__check_provenance(wave, step, (struct emu_plan *)plan);
  }
  bool dirty = met && emu__plan_meets(plan, &c->dirty);
  switch (plan->kind) {
    case EMU_PLAN_VECTOR:
      if (dirty) emu__check_vector(wave, step, plan);
      break;
    case EMU_PLAN_CROSS:
      if (dirty || plan->always) emu__check_cross(wave, step);
      break;
    case EMU_PLAN_SHUFFLE:
      if (dirty) emu__check_shuffle(wave, step);
      break;
    case EMU_PLAN_WMMA:
      if (dirty) emu__check_wmma(wave, step);
      break;
    case EMU_PLAN_SCALAR:
      if (dirty || plan->always) emu__check_scalar(wave, step, plan);
      break;
    case EMU_PLAN_SAVEEXEC:
      if (dirty) emu__check_saveexec(wave, step, plan);
      break;
    case EMU_PLAN_SMEM:
      emu__check_smem(wave, step);
      break;
    case EMU_PLAN_MEMORY:
      if (emu__sets_meet(&plan->reads, &c->dirty)) emu__check_addresses(wave, step);
      break;
    case EMU_PLAN_BRANCH:
      if (dirty) emu__check_branch(wave, step);
      break;
    case EMU_PLAN_JUMP:
      if (!dirty) break;
      if (emu__scalar_undefined(wave, &step->inst->src[0])) {
        emu__check_undefined(wave, step, -1, 0, "It jumps to an address that is not defined.");
      }
      if (step->inst->dst.kind) emu__scalar_set_undefined(wave, step, step->inst->dst.reg, 2, 0);
      break;
    default:
      break;
  }
  if (plan->acquires) c->acquires = true;
  if (plan->cache) emu__model_cache(wave, plan->cache);
  if (plan->raises) emu__check_issue(wave, step, plan);
  return true;
}

bool emu__check_indexed(struct emu_wave *wave, struct emu_step *step) {
  struct emu_plan plan = {0};
  emu__check_fill_plan(&plan, step, wave->group->run->target);
  step->plan = &plan;
  bool runs = emu__check_before(wave, step);
  emu__check_after(wave);
  step->plan = NULL;
  return runs;
}

// The time of an acquire is that after the access: what others do until then, on their threads, it may have seen.
void emu__check_after(struct emu_wave *wave) {
  struct emu_wave_check *c = wave->checker;
  if (!c) return;
  c->pointed = false;
  if (c->model.asked) emu__model_ask(wave);
  if (!c->acquires) return;
  c->acquires = false;
  c->sync = emu__time_next();
  emu__model_turn(wave, c->sync);
}

// ---- barriers

void emu__check_barrier_arrival(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_group *group = wave->group;
  uint64_t exec = emu__wave_exec(wave), off = c->started & ~exec;
  c->at_barrier = step;
  if (off) {
    emu__check_report(wave, step, "divergent barrier", __builtin_ctzll(off), 0,
                      "It is reached by %d of the wave's %d work-items: lane %d is not among them.",
                      __builtin_popcountll(exec), __builtin_popcountll(c->started), __builtin_ctzll(off));
  } else if (group->ended) {
    emu__check_report(wave, step, "divergent barrier", -1, 0,
                      "%u of the group's %u waves have ended without reaching it.", group->ended, group->waves);
  }
}

void emu__check_signal(struct emu_wave *wave, const struct emu_step *step) {
  if (wave->signaled) {
    emu__check_report(
        wave, step, "split barrier", -1, 0,
        "It signals for the second time without a wait between: the barrier may open before all have come.");
  }
  emu__check_barrier_arrival(wave, step);
}

// What is behind the barrier for a wave is so from its wait on, however long it has been open.
void emu__check_await(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_wave_check *c = wave->checker;
  if (!wave->signaled) {
    emu__check_report(wave, step, "split barrier", -1, 0,
                      "It waits without a signal of its own before it: without one the barrier may never open.");
  }
  c->at_barrier = step;
  if (!wave->opened) return;
  c->barrier = c->opened;
  if (c->opened_sync > c->sync) c->sync = c->opened_sync;
  c->at_barrier = NULL;
}

void emu__check_barrier(struct emu_group *group) {
  uint64_t now = emu__time_next(), sync = 0;
  for (unsigned i = 0; i < group->waves; i++) {
    if (group->checker->wave[i].sync > sync) sync = group->checker->wave[i].sync;
  }
  for (unsigned i = 0; i < group->waves; i++) {
    struct emu_wave_check *c = &group->checker->wave[i];
    if (group->wave[i].opened) {  // it has yet to wait
      c->opened = now;
      c->opened_sync = sync;
      continue;
    }
    c->barrier = now;
    c->sync = sync;
    c->at_barrier = NULL;
  }
  emu__model_barrier(group, now);
}

void emu__check_end(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_group *group = wave->group;
  if (wave->signaled) {
    emu__check_report(wave, step, "split barrier", -1, 0, "It ends after a signal for which it did not wait.");
  }
  emu__model_ended(wave);
  for (unsigned i = 0; i < group->waves && group->waiting; i++) {
    struct emu_wave *other = &group->wave[i];
    if (other->state != EMU_WAVE_BARRIER || !other->checker->at_barrier) continue;
    emu__check_report(other, other->checker->at_barrier, "divergent barrier", -1, 0,
                      "It waits there for wave %u of its group, which has ended.", wave->index);
  }
}

// ---- groups

// How many vector registers hold the numbers of work-items when a wave begins.
static unsigned id_registers(const struct emu_run *run) {
  unsigned axes = 1 + emu__bits(run->dispatch->kernel.rsrc2, EMU_RSRC2_ENABLE_VGPR_WORKITEM_ID);
  return run->target->packed_ids ? 1 : axes;
}

static void make_begun(struct emu_wave_check *c, const struct emu_run *run, unsigned vgprs) {
  const struct emu_dispatch *d = run->dispatch;
  unsigned given = 0, rsrc2 = d->kernel.rsrc2;
  for (unsigned i = 0; i < EMU_USER_SGPRS_COUNT; i++) {
    given += emu__bits(d->kernel.properties, i, 1) ? emu_user_sgprs_size[i] : 0;
  }
  unsigned users = emu__bits(rsrc2, EMU_RSRC2_USER_SGPR_COUNT), at = users;
  bool ttmp = run->target->groups_in_ttmp;
  for (unsigned i = 0; i < 3 && !ttmp; i++) at += emu__bits(rsrc2, EMU_RSRC2_ENABLE_SGPR_WORKGROUP_ID(i));
  at += emu__bits(rsrc2, EMU_RSRC2_ENABLE_SGPR_WORKGROUP_INFO);
  if (run->target->scratch_offset) at += emu__bits(rsrc2, EMU_RSRC2_ENABLE_PRIVATE_SEGMENT);
  memset(c, 0, sizeof(*c));
  for (unsigned i = 0; i < EMU_SCALAR_COUNT; i++) {
    bool given_scratch = run->target->scratch_given && (i == EMU_FLAT_SCRATCH_LO || i == EMU_FLAT_SCRATCH_LO + 1);
    bool defined = given_scratch || i < given || (ttmp && i >= EMU_TTMP0 + 7 && i <= EMU_TTMP0 + 9) ||
                   (i >= users && i < at) || i == EMU_NULL || i == EMU_EXEC_LO || i == EMU_EXEC_HI;
    c->scalar[i] = defined ? 0 : UINT32_MAX;
    emu__set_put(&c->dirty, EMU_SET_SCALAR + i, !defined);
  }
  c->states.counts = d->lint && run->target->matrix_waits;
  c->scc = true;
  emu__set_put(&c->dirty, EMU_SET_SCC, true);
  for (unsigned r = id_registers(run); r < vgprs; r++) emu__set_put(&c->dirty, r, true);
  c->watch = c->dirty;
}

bool emu__check_group_create(struct emu_group *group) {
  const struct emu_run *run = group->run;
  struct emu_group_check *g = calloc(1, sizeof(*g));
  group->checker = g;
  if (!g) return false;
  size_t a_wave = (size_t)group->wave[0].vgprs * run->lanes, dwords = group->lds_bytes / 4 + 2;
  size_t scratch = (size_t)run->scratch_bytes * run->lanes;
  g->wave = aligned_alloc(64, (group->waves * sizeof(*g->wave) + 63) / 64 * 64);
  g->undefined = aligned_alloc(64, (group->waves * a_wave * 4 + 63) / 64 * 64);
  g->root = malloc(group->waves * a_wave * sizeof(*g->root) + 1);
  g->scratch = malloc(group->waves * scratch + 1);
  g->lds = malloc(dwords * 4);
  g->lds_writers = calloc(dwords * 2, sizeof(uint64_t));
  if (!g->wave || !g->undefined || !g->root || !g->scratch || !g->lds || !g->lds_writers) return false;
  g->lds_readers = g->lds_writers + dwords;
  memset(g->wave, 0, group->waves * sizeof(*g->wave));
  make_begun(&g->begun, run, group->wave[0].vgprs);
  for (unsigned i = 0; i < group->waves; i++) {
    g->wave[i].undefined = g->undefined + i * a_wave;
    g->wave[i].root = g->root + i * a_wave;
    g->wave[i].scratch = g->scratch + i * scratch;
    group->wave[i].checker = &g->wave[i];
  }
  return true;
}

static void begin_wave(struct emu_wave *wave, const struct emu_wave_check *begun) {
  struct emu_wave_check *c = wave->checker;
  uint32_t *undefined = c->undefined;
  uint16_t *root = c->root;
  uint8_t *scratch = c->scratch;
  emu__model_end(&c->model);
  *c = *begun;
  c->undefined = undefined;
  c->root = root;
  c->scratch = scratch;
  c->started = emu__wave_exec(wave);
  // lanes that never run need no watching
  unsigned ids = id_registers(wave->group->run);
  uint32_t row[64];
  memset(undefined, 0, (size_t)ids * wave->lanes * 4);
  for (unsigned l = 0; l < wave->lanes; l++) row[l] = 0 - (uint32_t)(c->started >> l & 1);
  for (unsigned r = ids; r < wave->vgprs; r++) memcpy(emu__undefined(wave, r, 0), row, wave->lanes * 4);
  memset(scratch, 0xff, wave->scratch_bytes * wave->lanes);
}

void emu__check_group_begin(struct emu_group *group) {
  struct emu_group_check *g = group->checker;
  memset(g->lds, 0xff, group->lds_bytes);
  uint64_t now = emu__time_next();
  // what the group before this one did in LDS is ordered before it
  for (unsigned i = 0; i < group->waves; i++) {
    begin_wave(&group->wave[i], &g->begun);
    g->wave[i].barrier = now;
    emu__model_begin(&group->wave[i], now);
  }
  memset(g->lds_writers, 0, (group->lds_bytes / 4 + 2) * 2 * sizeof(uint64_t));
}

void emu__check_group_release(struct emu_group *group) {
  struct emu_group_check *g = group->checker;
  if (!g) return;
  for (unsigned i = 0; g->wave && i < group->waves; i++) emu__model_end(&g->wave[i].model);
  free(g->wave);
  free(g->undefined);
  free(g->root);
  free(g->scratch);
  free(g->lds);
  free(g->lds_writers);
  free(g);
  group->checker = NULL;
}
