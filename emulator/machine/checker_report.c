// Findings: each instruction is named once a launch for each kind.
#include "machine/checker_state.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Whether this group has said it before; remembers it.
static bool said_before(struct emu_group_check *g, uint64_t pc, const char *kind) {
  uint8_t what = 0;
  for (const char *at = kind; *at; at++) what = (uint8_t)(what * 31 + *at);
  uint64_t key = (pc << 8 | what) + 1;
  uint64_t *at = &g->said[(pc / 4 * 7 + what) % 64];
  bool same = *at == key;
  *at = key;
  return same;
}

// Where to put a finding that is new; NULL: it is known, or there is no room. Counts it. The caller holds the lock.
static struct emu_report *place_for(struct emu_run *run, uint64_t pc, const char *kind, bool lint) {
  struct emu_dispatch *d = run->dispatch;
  uint32_t count = atomic_load(&run->report_count), kept = count < d->report_room ? count : d->report_room;
  for (uint32_t i = 0; i < kept; i++) {
    if (d->reports[i].pc == pc && !strcmp(d->reports[i].kind, kind)) return NULL;
  }
  atomic_store(&run->report_count, count + 1);
  if (lint) atomic_fetch_add(&run->lint_count, 1);
  return count < d->report_room ? &d->reports[count] : NULL;
}

static void add(struct emu_wave *wave, const struct emu_step *step, const char *kind, int lane, uint64_t address,
                bool lint, const char *format, va_list arguments) {
  struct emu_run *run = wave->group->run;
  struct emu_dispatch *d = run->dispatch;
  if (said_before(wave->group->checker, step->offset, kind)) return;
  if (d->is_suppressed && d->is_suppressed(d->name ? d->name : "?", kind)) return;
  char message[600];
  vsnprintf(message, sizeof(message), format, arguments);
  pthread_mutex_lock(&lock);
  struct emu_report *report = place_for(run, step->offset, kind, lint);
  if (report) {
    emu__report_fill(wave, step, EMU_CHECK, kind, lane, address, message, report);
    report->lint = lint;
  }
  pthread_mutex_unlock(&lock);
}

void emu__check_report(struct emu_wave *wave, const struct emu_step *step, const char *kind, int lane, uint64_t address,
                       const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add(wave, step, kind, lane, address, false, format, arguments);
  va_end(arguments);
}

void emu__check_lint(struct emu_wave *wave, const struct emu_step *step, const char *kind, int lane, uint64_t address,
                     const char *format, ...) {
  if (!wave->group->run->dispatch->lint) return;
  va_list arguments;
  va_start(arguments, format);
  add(wave, step, kind, lane, address, true, format, arguments);
  va_end(arguments);
}

void emu__check_report_later(struct emu_wave *wave, const struct emu_report *found) {
  struct emu_run *run = wave->group->run;
  const struct emu_dispatch *d = run->dispatch;
  if (d->is_suppressed && d->is_suppressed(d->name ? d->name : "?", found->kind)) return;
  pthread_mutex_lock(&lock);
  struct emu_report *report = place_for(run, found->pc, found->kind, false);
  if (report) *report = *found;
  pthread_mutex_unlock(&lock);
}

void emu__check_undefined(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address,
                          const char *what) {
  const struct emu_wave_check *c = wave->checker;
  char origin[200] = "";
  const struct emu_dispatch *d = wave->group->run->dispatch;
  uint64_t argument = c->origin - d->kernarg;
  if (c->has_origin && argument < d->kernarg_bytes) {
    snprintf(origin, sizeof(origin),
             " The wave read byte %" PRIu64 " of its arguments at 0x%" PRIx32 "; the launch has passed %" PRIu32
             " of %" PRIu32 ".",
             argument, c->origin_pc, d->kernarg_missing[0], d->kernarg_missing[1]);
  } else if (c->has_origin) {
    struct emu_allocation found = {0};
    struct emu_memory *memory = d->memory;
    bool global = memory && emu_memory_find(memory, c->origin, &found);
    snprintf(origin, sizeof(origin),
             " The wave last read memory that nobody wrote at 0x%" PRIx32 ": 0x%" PRIx64 " in %s.", c->origin_pc,
             global ? c->origin - found.base : c->origin, global ? found.name : "LDS");
  }
  emu__check_report(wave, step, "uninitialized", lane, address, "%s%s", what, origin);
}
