// A wave: how it begins, runs for a while, fails and ends.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "machine/checker_state.h"
#include "machine/observe.h"
#include "machine/schedule.h"
#include "machine/valu.h"

uint64_t emu__clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 100000000 + (uint64_t)now.tv_nsec / 10;
}

// ---- reports

void emu__report_fill(const struct emu_wave *wave, const struct emu_step *step, enum emu_status status,
                      const char *kind, int lane, uint64_t address, const char *message, struct emu_report *report) {
  const struct emu_group *group = wave->group;
  const struct emu_dispatch *d = group->run->dispatch;
  char text[EMU_ISA_TEXT] = "", line[200] = "", who[32] = "";
  emu__step_text(wave, step, text);
  *report =
      (struct emu_report){.status = status, .pc = step->offset, .address = address, .wave = wave->index, .lane = lane};
  memcpy(report->group, group->id, sizeof(report->group));
  snprintf(report->kind, sizeof(report->kind), "%s", kind);
  char source[180];
  if (d->source_line && d->source_line(d->source_context, step->offset, source, sizeof(source))) {
    snprintf(line, sizeof(line), " (%s)", source);
  }
  if (lane >= 0) snprintf(who, sizeof(who), ", lane %d", lane);
  snprintf(report->text, sizeof(report->text),
           "Kernel %s, instruction at 0x%" PRIx32 " \"%s\"%s, work-group (%u, %u, %u), wave %u%s: %s",
           d->name ? d->name : "?", step->offset, text, line, group->id[0], group->id[1], group->id[2], wave->index,
           who, message);
}

void emu__wave_trap(struct emu_wave *wave, const struct emu_step *step, enum emu_status status, const char *kind,
                    int lane, uint64_t address, const char *format, ...) {
  struct emu_run *run = wave->group->run;
  char message[500];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  wave->state = EMU_WAVE_ENDED;
  wave->group->failed = true;
  emu__wave_stop(wave);
  atomic_store(&run->stop, true);
  bool first = false;
  if (atomic_compare_exchange_strong(&run->failed, &first, true)) {
    emu__report_fill(wave, step, status, kind, lane, address, message, &run->failure);
  }
}

// ---- MODE

// The host's MXCSR for two bits each of MODE: rounding control is bits 13 and 14, bit 6 reads denormals as zeros, bit
// 15 flushes them. Source: Intel's manual, volume 1, section "MXCSR Control and Status Register".
static uint32_t control_word(uint32_t round, uint32_t denormals) {
  static const uint32_t rounding[4] = {0, 2, 1, 3};  // MXCSR has down before up
  uint32_t word = EMU_MXCSR_DEFAULT | rounding[round & 3] << 13;
  if (!(denormals & 1)) word |= 1 << 6;
  if (!(denormals & 2)) word |= 1 << 15;
  return word;
}

uint32_t emu__wave_mode(const struct emu_wave *wave) {
  bool chosen = wave->group->run->target->mode_in_descriptor;
  return wave->mode & ~(EMU_MODE_2019 | (chosen ? 0 : EMU_MODE_DX10_CLAMP | EMU_MODE_IEEE));
}

void emu__wave_set_mode(struct emu_wave *wave, uint32_t mode) {
  mode &= ~EMU_MODE_2019;
  if (!wave->group->run->target->mode_in_descriptor)
    mode = (mode & ~(uint32_t)EMU_MODE_IEEE) | EMU_MODE_DX10_CLAMP | EMU_MODE_2019;
  wave->mode = mode;
  wave->mxcsr[0] = control_word(mode, mode >> 4);
  wave->mxcsr[1] = control_word(mode >> 2, mode >> 6);
  bool halves = wave->mxcsr[1] != EMU_MXCSR_DEFAULT || mode & EMU_MODE_FP16_OVFL;
  wave->unusual = (uint8_t)((wave->mxcsr[0] != EMU_MXCSR_DEFAULT ? EMU_FLOAT_32 : 0) | (halves ? EMU_FLOAT_64 : 0));
}

// ---- the loop

static void check_registers(struct emu_wave *wave, const struct emu_step *step) {
  emu__wave_trap(wave, step, EMU_TRAP, "trap", -1, 0,
                 "It names vector register v%u; the kernel's descriptor allocates %u.", step->vgprs - 1u, wave->vgprs);
}

static void count_lanes(struct emu_wave *wave, const struct emu_step *step) {
  if (step->klass < EMU_CLASS_VALU || step->klass >= EMU_CLASS_BARRIER) return;
  wave->counters->lanes_active += (uint64_t)__builtin_popcountll(emu__wave_exec(wave));
  wave->counters->lanes_possible += wave->lanes;
}

// Asks the observer whether the wave may go on, with the step at `next`, which the observer may have moved.
static bool is_let_go(struct emu_wave *wave) {
  const struct emu_observer *observer = wave->group->run->dispatch->observer;
  enum emu_turn turn = observer->before(observer->context, wave);
  if (turn == EMU_TURN_GO) return true;
  wave->budget++;  // it has not had its turn
  emu__wave_stop(wave);
  if (turn == EMU_TURN_KILL)
    emu__wave_trap(wave, wave->next, EMU_TRAP, "trap", -1, 0, "The debugger ended the kernel here.");
  return false;
}

static void tell_after(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_observer *observer = wave->group->run->dispatch->observer;
  if (wave->group->failed) wave->next = step;  // where it failed
  observer->after(observer->context, wave);
}

static void slice_watched(struct emu_wave *wave) {
  while (wave->budget-- > 0) {
    const struct emu_step *step = wave->next;
    emu_step_fn *run = __atomic_load_n(&step->run, __ATOMIC_ACQUIRE);
    if (run == emu__step_decode) {
      run(wave, step);
      continue;
    }
    if (wave->tag) {
      if (!is_let_go(wave)) return;
      step = wave->next;
      run = __atomic_load_n(&step->run, __ATOMIC_ACQUIRE);
    }
    wave->next = step + step->words;
    if (step->vgprs > wave->vgprs) {
      check_registers(wave, step);
      if (wave->tag) tell_after(wave, step);
      return;
    }
    wave->instructions[step->klass]++;
    if (wave->counters) count_lanes(wave, step);
    __builtin_prefetch(__atomic_load_n(&wave->next->plan, __ATOMIC_RELAXED));
    bool concerned = wave->check && emu__check_concerns(wave, step);
    if (!concerned || emu__check_before(wave, step)) {
      run(wave, step);
      if (concerned) emu__check_after(wave);
    }
    if (wave->tag) tell_after(wave, step);
  }
}

void emu__wave_slice(struct emu_wave *wave, int64_t budget) {
  wave->budget = budget;
  if (wave->counters || wave->check || wave->tag) {
    slice_watched(wave);
    return;
  }
  while (wave->budget > 0) {
    const struct emu_step *step = wave->next;
    // instructions that go straight on, without a look at the wave between
    int64_t left = wave->budget;
    uint32_t vgprs = wave->vgprs;
    for (; left && __atomic_load_n(&step->needs, __ATOMIC_ACQUIRE) <= vgprs; left--) {
      __atomic_load_n(&step->run, __ATOMIC_RELAXED)(wave, step);
      step += step->words;
    }
    emu_step_fn *run = __atomic_load_n(&step->run, __ATOMIC_ACQUIRE);
    wave->budget = left - 1;
    wave->next = step;
    if (!left) return;
    if (__builtin_expect(run == emu__step_decode, 0)) {
      run(wave, step);
      continue;
    }
    wave->next = step + step->words;
    if (__builtin_expect(step->vgprs > vgprs, 0)) {
      check_registers(wave, step);
      return;
    }
    run(wave, step);
  }
}

// ---- beginning

static unsigned user_registers(struct emu_wave *w, const struct emu_run *run) {
  const struct emu_dispatch *d = run->dispatch;
  unsigned at = 0;
  uint64_t scratch = (uint64_t)(uintptr_t)w->group->scratch;
  if (emu__bits(d->kernel.properties, EMU_PRIVATE_SEGMENT_BUFFER, 1)) {  // a V# swizzled by lane, dword by dword
    w->s[at++] = (uint32_t)scratch;
    w->s[at++] = (uint32_t)(scratch >> 32) | 1u << run->target->v1_swizzle.low;
    w->s[at++] = UINT32_MAX;
    w->s[at++] = emu__in_bits(EMU_OOB_NO_RECORDS, EMU_V3_OOB_SELECT) |
                 emu__in_bits(w->lanes == 64 ? 3 : 2, EMU_V3_INDEX_STRIDE) | emu__in_bits(1, EMU_V3_ADD_TID_ENABLE);
  }
  const uint64_t pairs[EMU_PRIVATE_SEGMENT_SIZE] = {
      [EMU_DISPATCH_PTR] = run->packet, [EMU_KERNARG_SEGMENT_PTR] = d->kernarg, [EMU_FLAT_SCRATCH_INIT] = scratch};
  for (unsigned i = EMU_DISPATCH_PTR; i < EMU_PRIVATE_SEGMENT_SIZE; i++) {
    if (!emu__bits(d->kernel.properties, i, 1)) continue;
    emu__scalar_write64(w, at, pairs[i]);
    at += 2;
  }
  if (emu__bits(d->kernel.properties, EMU_PRIVATE_SEGMENT_SIZE, 1)) w->s[at++] = run->scratch_bytes;
  return emu__bits(d->kernel.rsrc2, EMU_RSRC2_USER_SGPR_COUNT);
}

static void work_item_ids(struct emu_wave *w, const struct emu_run *run) {
  const uint32_t *t = run->dispatch->threads;
  unsigned wanted = emu__bits(run->dispatch->kernel.rsrc2, EMU_RSRC2_ENABLE_VGPR_WORKITEM_ID);
  for (unsigned l = 0; l < w->lanes; l++) {
    uint32_t id = w->index * w->lanes + l, x = id % t[0], y = id / t[0] % t[1], z = id / t[0] / t[1];
    if (run->target->packed_ids) {
      *emu__vector(w, 0, l) =
          emu__in_bits(x, EMU_PACKED_ID_X) | emu__in_bits(y, EMU_PACKED_ID_Y) | emu__in_bits(z, EMU_PACKED_ID_Z);
    } else {
      *emu__vector(w, 0, l) = x;
      if (wanted > 0) *emu__vector(w, 1, l) = y;
      if (wanted > 1) *emu__vector(w, 2, l) = z;
    }
  }
}

void emu__wave_begin(struct emu_wave *w, struct emu_group *group, unsigned index) {
  const struct emu_run *run = group->run;
  const struct emu_dispatch *d = run->dispatch;
  uint64_t threads = (uint64_t)d->threads[0] * d->threads[1] * d->threads[2];
  w->group = group;
  w->index = index;
  w->lanes = run->lanes;
  w->state = EMU_WAVE_READY;
  w->scc = false;
  w->sleeping = 0;
  w->waits_for = 0;
  w->barrier_at = 0;
  w->signaled = w->opened = false;
  w->executed = 0;
  // whoever reads what nobody wrote gets the same nonsense each time
  memset(w->s, 0xcd, sizeof(w->s));
  memset(w->v, 0xcd, (size_t)w->vgprs * w->lanes * 4);
  w->s[EMU_NULL] = 0;
  w->scratch = group->scratch + (size_t)index * run->scratch_bytes * run->lanes;
  w->scratch_bytes = run->scratch_bytes;
  w->flat_scratch = (uint64_t)(uintptr_t)w->scratch;
  uint64_t left = threads - (uint64_t)index * w->lanes;
  emu__scalar_write64(w, EMU_EXEC_LO, left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1);
  if (w->lanes == 32) w->s[EMU_EXEC_HI] = 0;
  if (run->target->scratch_given) emu__scalar_write64(w, EMU_FLAT_SCRATCH_LO, w->flat_scratch);
  unsigned at = user_registers(w, run), rsrc2 = d->kernel.rsrc2;
  for (unsigned i = 0; i < 3 && !run->target->groups_in_ttmp; i++) {
    if (emu__bits(rsrc2, EMU_RSRC2_ENABLE_SGPR_WORKGROUP_ID(i))) w->s[at++] = group->id[i];
  }
  if (run->target->groups_in_ttmp) {
    w->s[EMU_TTMP0 + 7] = emu__in_bits(group->id[1], EMU_TTMP7_GROUP_Y) | emu__in_bits(group->id[2], EMU_TTMP7_GROUP_Z);
    w->s[EMU_TTMP0 + 8] = emu__in_bits(index, EMU_TTMP8_WAVE);
    w->s[EMU_TTMP0 + 9] = group->id[0];
  }
  if (emu__bits(rsrc2, EMU_RSRC2_ENABLE_SGPR_WORKGROUP_INFO)) w->s[at++] = 0;
  if (run->target->scratch_offset && emu__bits(rsrc2, EMU_RSRC2_ENABLE_PRIVATE_SEGMENT))
    w->s[at++] = index * run->scratch_bytes * run->lanes;
  work_item_ids(w, run);
  w->next = emu__program_step(run->program, run->step_set, d->entry);
  uint32_t rsrc1 = d->kernel.rsrc1;
  emu__wave_set_mode(w, emu__bits(rsrc1, EMU_RSRC1_FLOAT_MODE) |
                            (emu__bits(rsrc1, EMU_RSRC1_ENABLE_DX10_CLAMP) ? EMU_MODE_DX10_CLAMP : 0) |
                            (emu__bits(rsrc1, EMU_RSRC1_ENABLE_IEEE_MODE) ? EMU_MODE_IEEE : 0) |
                            (emu__bits(rsrc1, EMU_RSRC1_FP16_OVFL) ? EMU_MODE_FP16_OVFL : 0));
}

// ---- barrier and end

static void release_barrier(struct emu_group *group) {
  if (!group->waiting || group->waiting + group->ended < group->waves) return;
  for (unsigned i = 0; i < group->waves; i++) {
    struct emu_wave *wave = &group->wave[i];
    wave->opened = wave->state == EMU_WAVE_READY;
    if (wave->state == EMU_WAVE_BARRIER) wave->state = EMU_WAVE_READY;
  }
  group->waiting = 0;
  group->epoch++;
  if (group->checker) emu__check_barrier(group);
}

void emu__wave_barrier(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_group *group = wave->group;
  if (wave->check) emu__check_barrier_arrival(wave, step);
  if (group->waves == 1) {
    if (group->checker) emu__check_barrier(group);
    return;
  }
  wave->state = EMU_WAVE_BARRIER;
  group->waiting++;
  emu__wave_stop(wave);
  release_barrier(group);
}

// A split barrier: a wave says that it has come, and waits for the others later, or finds them there. A second signal
// counts as another wave's.
void emu__wave_signal(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_group *group = wave->group;
  if (wave->check) emu__check_signal(wave, step);
  wave->signaled = true;
  wave->barrier_at = group->epoch + 1;
  group->waiting++;
  release_barrier(group);
}

// Whether no wave of the group can go on any more: only they could open its barrier.
static bool group_is_stuck(const struct emu_group *group) {
  for (unsigned i = 0; i < group->waves; i++)
    if (group->wave[i].state == EMU_WAVE_READY) return false;
  return group->ended < group->waves;
}

static void fail_stuck(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_group *group = wave->group;
  emu__wave_trap(wave, step, EMU_TRAP, "no progress", -1, 0,
                 "The group waits for ever: %u of its waves wait at a barrier that %u of them have signaled.",
                 group->waves - group->ended, group->waiting);
}

void emu__wave_await(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_group *group = wave->group;
  if (wave->check) emu__check_await(wave, step);
  wave->signaled = false;
  emu__wave_stop(wave);  // the others' turn, as at a barrier of one instruction
  if (!wave->opened) wave->state = EMU_WAVE_BARRIER;
  wave->opened = false;
  if (group_is_stuck(group)) fail_stuck(wave, step);
}

void emu__wave_end(struct emu_wave *wave, const struct emu_step *step) {
  struct emu_group *group = wave->group;
  if (wave->check) emu__check_end(wave, step);
  wave->state = EMU_WAVE_ENDED;
  // it came, and counts as ended now
  if ((int32_t)(wave->barrier_at - group->epoch) > 0 && group->waiting) group->waiting--;
  group->ended++;
  emu__wave_stop(wave);
  release_barrier(group);
  if (group_is_stuck(group)) fail_stuck(wave, step);
}
