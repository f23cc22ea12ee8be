// Kernels that never end.
//
// A wave only waits when it comes back to the same instruction with the same registers, and has changed no memory on
// the way: then it does so for ever, unless others change what it reads. Where all waves of a launch only wait, no
// group can begin that has not begun, and no other kernel runs, nothing on the card will ever change it. The host may,
// so some time passes before one of the waves fails. Loops that count or read a clock are never taken for waits; for
// them, and for kernels that compute for ever, there is the limit of instructions.
#include "machine/watch.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "machine/access.h"
#include "machine/schedule.h"

enum {
  FIRST_LOOK = 4,         // rounds in which no group began or ended, before the first look for waits …
  LAST_LOOK = 1024,       // … doubled after each look in vain, up to this
  LONGEST_LOOP = 4096,    // instructions of a loop that may count as a wait
  A_MILLISECOND = 100000  // in ticks of emu__clock, 10 ns each
};

static atomic_int running;  // launches

void emu__watch_dispatch(int change) { atomic_fetch_add(&running, change); }

void emu__watch_moved(struct emu_watch *watch) {
  watch->quiet = 0;
  watch->look = FIRST_LOOK;
}

void emu__watch_slice(struct emu_wave *wave, int64_t budget) {
  uint64_t limit = wave->group->run->dispatch->instruction_limit;
  if (limit && limit - wave->executed < (uint64_t)budget) budget = (int64_t)(limit - wave->executed);
  wave->unused = 0;
  emu__wave_slice(wave, budget);
  wave->executed += (uint64_t)(budget - wave->unused);
  if (!limit || wave->executed < limit || wave->state == EMU_WAVE_ENDED) return;
  emu__wave_trap(wave, wave->next, EMU_TRAP, "no progress", -1, 0,
                 "The wave has executed %" PRIu64 " instructions, as many as RDNA_EMULATE_LIMIT allows.", limit);
}

// ---- waits

static bool stores(const struct emu_step *step) {
  bool may = step->klass == EMU_CLASS_STORE || step->klass == EMU_CLASS_LDS || step->klass == EMU_CLASS_SCRATCH;
  return may && step->inst && !step->inst->dst.kind;
}

// Runs the wave on, and says whether it comes back to the same instruction with the same registers, having changed no
// memory. false too where it ends, reaches a barrier, stores, or takes longer than LONGEST_LOOP.
static bool only_waits(struct emu_watch *watch, struct emu_wave *wave) {
  size_t bytes = (size_t)wave->vgprs * wave->lanes * 4;
  if (watch->room < bytes) {
    free(watch->registers);
    watch->registers = malloc(bytes);
    watch->room = watch->registers ? bytes : 0;
    if (!watch->registers) return false;
  }
  uint32_t scalars[sizeof(wave->s) / 4], mode = wave->mode;
  const struct emu_step *start = wave->next;
  bool scc = wave->scc;
  memcpy(watch->registers, wave->v, bytes);
  memcpy(scalars, wave->s, sizeof(scalars));
  emu__atomic_changed = false;
  for (int i = 0; i < LONGEST_LOOP; i++) {
    const struct emu_step *step = wave->next;
    emu__watch_slice(wave, 1);
    if (wave->state != EMU_WAVE_READY || emu__atomic_changed || stores(step)) return false;
    if (wave->next == start && wave->scc == scc && wave->mode == mode && !memcmp(scalars, wave->s, sizeof(scalars)) &&
        !memcmp(watch->registers, wave->v, bytes))
      return true;
  }
  return false;
}

// Whether all waves of the group wait: those at its barrier do, so only those that are ready are tried.
static bool group_waits(struct emu_watch *watch, struct emu_group *group) {
  for (unsigned i = 0; i < group->waves; i++) {
    if (group->wave[i].state == EMU_WAVE_READY && !only_waits(watch, &group->wave[i])) return false;
  }
  return true;
}

static void set_waits(struct emu_watch *watch, struct emu_run *run, bool waits) {
  if (watch->waits == waits) return;
  watch->waits = waits;
  // before the count of those that wait: who sees that all wait sees these, and what this thread wrote before
  atomic_store(&run->turned_at, emu__clock());
  atomic_fetch_add(&run->turns, 1);
  if (waits) {
    atomic_fetch_add(&run->waiting, 1);
  } else {
    atomic_fetch_sub(&run->waiting, 1);
  }
}

static struct emu_wave *first_ready(struct emu_group *const *groups, unsigned count) {
  for (unsigned g = 0; g < count; g++) {
    for (unsigned i = 0; i < groups[g]->waves; i++) {
      if (groups[g]->wave[i].state == EMU_WAVE_READY) return &groups[g]->wave[i];
    }
  }
  return NULL;
}

static void fail(struct emu_run *run, struct emu_wave *wave) {
  uint64_t begun = atomic_load(&run->next_group), left = begun < run->group_count ? run->group_count - begun : 0;
  if (left) {
    emu__wave_trap(wave, wave->next, EMU_TRAP, "no progress", -1, 0,
                   "It waits for ever: the card holds %" PRIu32 " of the %" PRIu64
                   " work-groups at once, all of them wait, and %" PRIu64 " cannot begin before one ends.",
                   run->dispatch->resident_groups, run->group_count, left);
  } else {
    emu__wave_trap(wave, wave->next, EMU_TRAP, "no progress", -1, 0,
                   "It waits for ever: every wave that has not ended waits, and nothing runs that could change what "
                   "they wait for.");
  }
}

void emu__watch_round(struct emu_watch *watch, struct emu_run *run, struct emu_group *const *groups, unsigned count) {
  uint32_t patience = run->dispatch->patience_ms;
  if (!patience) {
    if (!count) sched_yield();  // the others hold all places
    return;
  }
  if (count && !watch->waits && ++watch->quiet < watch->look) return;
  bool waits = true;
  uint32_t turns = (uint32_t)atomic_load(&run->turns) + !watch->waits;  // with its own, below
  for (unsigned i = 0; i < count && waits; i++) waits = group_waits(watch, groups[i]);
  set_waits(watch, run, waits);
  if (!waits) {
    watch->quiet = 0;
    if (watch->look < LAST_LOOK) watch->look *= 2;
    return;
  }
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  // All wait, have for long enough, and none has changed anything since before this thread looked at its waves.
  bool all = atomic_load(&run->waiting) == run->threads && atomic_load(&running) == 1;
  bool over = all && emu__clock() - atomic_load(&run->turned_at) > (uint64_t)patience * A_MILLISECOND;
  struct emu_wave *wave = over && turns == atomic_load(&run->turns) ? first_ready(groups, count) : NULL;
  if (wave) fail(run, wave);
}

void emu__watch_end(struct emu_watch *watch, struct emu_run *run) {
  set_waits(watch, run, true);
  free(watch->registers);
}
