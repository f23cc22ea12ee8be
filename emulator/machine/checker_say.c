// What is said of two accesses that nothing orders: which ones, and what is missing between them.
#include "machine/checker_race.h"

#include <inttypes.h>
#include <stdio.h>

// "at 0x3c (k.hip:12)"
static void say_line(const struct emu_dispatch *d, uint32_t pc, char text[200]) {
  char line[150];
  bool known = d->source_line && d->source_line(d->source_context, pc, line, sizeof(line));
  snprintf(text, 200, "at 0x%" PRIx32 "%s%s%s", pc, known ? " (" : "", known ? line : "", known ? ")" : "");
}

static void say_place(const struct emu_dispatch *d, uint64_t address, bool shared, char text[120]) {
  struct emu_allocation found;
  if (shared) {
    snprintf(text, 120, "LDS at byte %" PRIu64, address);
  } else if (emu_memory_find(d->memory, address, &found)) {
    snprintf(text, 120, "byte %" PRIu64 " of %s", address - found.base, found.name);
  } else {
    snprintf(text, 120, "0x%" PRIx64, address);
  }
}

static const char *acquires(const struct emu_isa *target, bool same_group) {
  if (target->split_counters) return same_group ? "global_inv scope:SCOPE_SE" : "global_inv scope:SCOPE_DEV";
  if (target->dlc_is_scope) return same_group ? "buffer_inv sc0" : "buffer_inv sc1";
  if (target->counts_stores) return "buffer_wbinvl1_vol";
  return same_group ? "buffer_gl0_inv" : "buffer_gl1_inv and buffer_gl0_inv";
}
static const char *releases(const struct emu_isa *target, bool same_group) {
  if (target->split_counters)
    return same_group ? "s_wait_storecnt 0x0" : "global_wb scope:SCOPE_DEV and s_wait_storecnt 0x0";
  if (target->dlc_is_scope) return same_group ? "s_waitcnt vmcnt(0)" : "buffer_wbl2 sc1 and s_waitcnt vmcnt(0)";
  return target->counts_stores ? "s_waitcnt vmcnt(0)" : "s_waitcnt vmcnt(0) and s_waitcnt_vscnt null, 0x0";
}

// The read by which the wave was told, of those that it remembers: one of what the other wave has written, or the last.
static const struct emu_heard *told_by(const struct emu_wave *wave, uint64_t record) {
  const struct emu_wave_model *m = &wave->checker->model;
  const struct emu_heard *at = &m->heard[0];
  for (int i = 3; i >= 0; i--) {
    const struct emu_heard *h = &m->heard[i];
    if (h->record && emu__record_who(h->record) == emu__record_who(record)) at = h;
  }
  return at->record ? at : NULL;
}

static const char *const kinds[] = {[EMU_LACK_ALL] = "race",
                                    [EMU_LACK_RELEASE] = "missing release",
                                    [EMU_LACK_ACQUIRE] = "missing acquire",
                                    [EMU_LACK_SCOPE] = "narrow scope"};

// How the wave was told, and what is missing there.
static void say_lack(const struct emu_wave *wave, const struct emu_other *other, char *text, size_t size) {
  const struct emu_dispatch *d = wave->group->run->dispatch;
  const struct emu_isa *target = wave->group->run->target;
  const struct emu_heard *heard = told_by(wave, other->record);
  char read[200], wrote[220] = "", flag[120];
  uint32_t pc;
  if (!heard) return;
  say_line(d, heard->pc, read);
  say_place(d, heard->address, false, flag);
  bool direct = emu__record_who(heard->record) == emu__record_who(other->record);
  if (emu__trail_find(heard->record, heard->address, true, &pc)) {
    char line[200];
    say_line(d, pc, line);
    snprintf(wrote, sizeof(wrote), " what %s wrote %s", direct ? "that one" : "another wave", line);
  }
  const char *scope = other->same_group ? "work-group" : "agent";
  if (other->lack == EMU_LACK_RELEASE) {
    snprintf(text, size, " It has read%s in %s %s, but no release at %s scope stands before that write (%s).", wrote,
             flag, read, scope, releases(target, other->same_group));
  } else {
    snprintf(text, size, " It has read%s in %s %s, but %s acquire at %s scope stands behind that read (%s%s).", wrote,
             flag, read, other->lack == EMU_LACK_SCOPE ? "only one at work-group scope and no" : "no", scope,
             acquires(target, other->same_group), other->lack == EMU_LACK_SCOPE ? " in whole" : "");
  }
}

void emu__check_say_race(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address, bool write,
                         bool shared, const struct emu_other *other) {
  const struct emu_dispatch *d = wave->group->run->dispatch;
  const uint32_t *size = d->groups;
  char who[80], where[120], made[200] = "", line[200], lack[700] = "";
  uint32_t pc;
  if (!other->known) {
    snprintf(who, sizeof(who), "another wave");
  } else if (other->same_group) {
    snprintf(who, sizeof(who), "wave %u of the same group", other->wave);
  } else {
    snprintf(who, sizeof(who), "wave %u of work-group (%u, %u, %u)", other->wave, other->group % size[0],
             other->group / size[0] % size[1], other->group / size[0] / size[1]);
  }
  say_place(d, address, shared, where);
  uint64_t at = shared ? address + (uint64_t)(uintptr_t)wave->group->lds : address;
  if (other->known && emu__trail_find(other->record, at, other->wrote, &pc)) {
    say_line(d, pc, line);
    snprintf(made, sizeof(made), " %s", line);
  }
  if (other->lack == EMU_LACK_ALL) {
    emu__check_report(wave, step, "race", lane, address, "It %s %s, which %s %s%s with no %s in between.",
                      write ? "writes" : "reads", where, who, other->wrote ? "wrote" : "read", made,
                      other->known && other->same_group ? "barrier" : "synchronization");
    return;
  }
  say_lack(wave, other, lack, sizeof(lack));
  emu__check_report(wave, step, kinds[other->lack], lane, address, "It %s %s, which %s %s%s.%s",
                    write ? "writes" : "reads", where, who, other->wrote ? "wrote" : "read", made, lack);
}
