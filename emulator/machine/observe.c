// What observers see of a wave, and may change.
#include "machine/observe.h"

#include <stdio.h>

#include "machine/access.h"
#include "machine/memory.h"

void emu_wave_look(const struct emu_wave *wave, struct emu_wave_view *out) {
  const struct emu_group *group = wave->group;
  const struct emu_run *run = group->run;
  uint64_t base = emu__program_address(run->program);
  *out = (struct emu_wave_view){
      .dispatch = run->dispatch,
      .target = run->target,
      .tag = wave->tag,
      .group = {group->id[0], group->id[1], group->id[2]},
      .index = wave->index,
      .lanes = wave->lanes,
      .vgprs = wave->vgprs,
      .accumulators = run->accumulators,
      .doing = wave->state == EMU_WAVE_READY     ? EMU_WAVE_RUNS
               : wave->state == EMU_WAVE_BARRIER ? EMU_WAVE_AT_BARRIER
                                                 : EMU_WAVE_IS_OVER,
      .base = base,
      .pc = base + emu__step_offset(wave, wave->next),
      .s = (uint32_t *)wave->s,
      .v = wave->v,
      .lds = group->lds,
      .lds_bytes = group->lds_bytes,
      .mode = emu__wave_mode(wave),
      .scratch_bytes = wave->scratch_bytes,
      .scratch = wave->scratch,
      .scc = wave->scc,
  };
}

static void tell(struct emu_wave *wave, const struct emu_touched *touch) {
  const struct emu_observer *observer = wave->group->run->dispatch->observer;
  if (observer->touched) observer->touched(observer->context, wave, touch);
}

void emu__tell_places(struct emu_wave *wave, const struct emu_places *p, unsigned bytes, bool reads, bool writes) {
  static const enum emu_touched_space spaces[] = {[EMU_SPACE_GLOBAL] = EMU_TOUCHED_GLOBAL,
                                                  [EMU_SPACE_SHARED] = EMU_TOUCHED_LDS,
                                                  [EMU_SPACE_SCRATCH] = EMU_TOUCHED_SCRATCH};
  tell(wave, &(struct emu_touched){.at = p->at,
                                   .mask = p->mask,
                                   .outside = p->outside,
                                   .bytes = bytes,
                                   .stride = p->stride,
                                   .space = spaces[p->space],
                                   .reads = reads,
                                   .writes = writes});
}

void emu__tell_scalar(struct emu_wave *wave, uint64_t address, unsigned bytes) {
  tell(wave,
       &(struct emu_touched){.at = &address, .mask = 1, .bytes = bytes, .stride = 4, .reads = true, .scalar = true});
}

void emu_wave_set_scc(struct emu_wave *wave, bool scc) { wave->scc = scc; }
void emu_wave_set_mode(struct emu_wave *wave, uint32_t mode) { emu__wave_set_mode(wave, mode); }

bool emu_wave_set_pc(struct emu_wave *wave, uint64_t address) {
  const struct emu_run *run = wave->group->run;
  uint64_t offset = address - emu__program_address(run->program);
  if (offset % 4 || offset >= emu__program_bytes(run->program)) return false;
  const struct emu_step *step = emu__program_step(run->program, run->step_set, offset);
  // the wave goes on with what is decoded already
  if (__atomic_load_n(&step->run, __ATOMIC_ACQUIRE) == emu__step_decode) emu__step_decode(wave, step);
  wave->next = step;
  return true;
}

uint64_t emu_lds_window(void) { return (uint64_t)EMU_SHARED_APERTURE << 32; }
uint64_t emu_scratch_window(void) { return (uint64_t)EMU_PRIVATE_APERTURE << 32; }

// The bytes from the address on that lie together on the host, at most *bytes of them; NULL: there are none.
static uint8_t *together(const struct emu_wave *wave, unsigned lane, uint64_t address, size_t *bytes) {
  uint64_t from = address & UINT32_MAX, end = 0;
  if (address >> 32 == EMU_SHARED_APERTURE) {
    end = wave->group->lds_bytes;
    if (from >= end) return NULL;
    if (end - from < *bytes) *bytes = end - from;
    return wave->group->lds + from;
  }
  if (address >> 32 == EMU_PRIVATE_APERTURE) {
    if (from >= wave->scratch_bytes || lane >= wave->lanes) return NULL;
    if (4 - from % 4 < *bytes) *bytes = 4 - from % 4;
    return wave->scratch + (from / 4 * wave->lanes + lane) * 4 + from % 4;
  }
  const struct emu_dispatch *d = wave->group->run->dispatch;
  struct emu_allocation found;
  uint64_t kernarg = address - d->kernarg;
  if (kernarg < d->kernarg_bytes) {
    end = d->kernarg + d->kernarg_bytes;
  } else if (d->memory && emu_memory_find(d->memory, address, &found)) {
    end = found.base + found.bytes;
  } else {
    return NULL;
  }
  if (end - address < *bytes) *bytes = end - address;
  return (uint8_t *)(uintptr_t)address;
}

size_t emu_wave_read(const struct emu_wave *wave, unsigned lane, uint64_t address, void *data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    size_t some = bytes - done;
    const uint8_t *at = together(wave, lane, address + done, &some);
    if (!at) break;
    memcpy((uint8_t *)data + done, at, some);
    done += some;
  }
  return done;
}

size_t emu_wave_write(struct emu_wave *wave, unsigned lane, uint64_t address, const void *data, size_t bytes) {
  const struct emu_run *run = wave->group->run;
  uint64_t code = emu__program_address(run->program), code_end = code + emu__program_bytes(run->program);
  size_t done = 0;
  while (done < bytes) {
    size_t some = bytes - done;
    uint8_t *at = together(wave, lane, address + done, &some);
    // what is decoded would stay as it was
    if (!at || (address + done < code_end && address + done + some > code)) break;
    memcpy(at, (const uint8_t *)data + done, some);
    done += some;
  }
  return done;
}

size_t emu_wave_instruction(const struct emu_wave *wave, uint64_t address, struct emu_inst *out,
                            char text[EMU_ISA_TEXT]) {
  const struct emu_program *program = wave->group->run->program;
  uint64_t offset = address - emu__program_address(program), bytes = emu__program_bytes(program);
  uint32_t words[5] = {0};
  size_t n = 0;
  if (offset % 4) return 0;
  for (; n < 5 && offset < bytes && bytes - offset >= 4 * (n + 1); n++)
    memcpy(&words[n], (const uint8_t *)emu__program_code(program) + offset + 4 * n, 4);
  if (!n) return 0;
  enum emu_decode_status status = emu_isa_decode(emu__program_target(program), wave->lanes, words, n, out);
  size_t size = out->size / 4u < n ? out->size : 4 * n;
  if (status == EMU_DECODE_OK) {
    if (text) emu_isa_print(out, emu__program_target(program), text, EMU_ISA_TEXT);
    return size;
  }
  out->op = EMU_OP_NONE;
  int at = 0;
  for (size_t i = 0; text && i < size / 4; i++)
    at += snprintf(text + at, EMU_ISA_TEXT - (size_t)at, "%s%08x", i ? " " : "", words[i]);
  return size;
}

const struct emu_report *emu_wave_failure(const struct emu_wave *wave) {
  const struct emu_run *run = wave->group->run;
  return wave->group->failed && atomic_load(&run->failed) ? &run->failure : NULL;
}

uint32_t emu_wave_findings(const struct emu_wave *wave) {
  return (uint32_t)atomic_load(&wave->group->run->report_count);
}
