// Where accesses were made, for reports: the last ones of the process.
#include "machine/checker_race.h"

enum { TRAIL = 1 << 14 };
// Threads write it beside each other: an entry may be another's in part, which a report then does not name.
static struct {
  uint64_t who, at, last;  // who: a record but for its marks
  uint32_t pc, bytes;
  bool wrote;
} trail[TRAIL];
static uint32_t next;

#define PUT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

void emu__trail_note(const struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p,
                     unsigned bytes, bool wrote) {
  uint64_t lanes = p->mask & ~p->outside;
  if (!lanes || p->space == EMU_SPACE_SCRATCH) return;
  uint64_t a = p->at[__builtin_ctzll(lanes)], b = p->at[63 - __builtin_clzll(lanes)];
  uint32_t i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % TRAIL;
  PUT(trail[i].who, emu__record_of(wave) >> EMU_RECORD_WAVE);
  PUT(trail[i].at, a < b ? a : b);
  PUT(trail[i].last, a < b ? b : a);
  PUT(trail[i].pc, step->offset);
  PUT(trail[i].bytes, bytes);
  PUT(trail[i].wrote, wrote);
}

bool emu__trail_find(uint64_t record, uint64_t address, bool wrote, uint32_t *pc) {
  uint32_t from = GET(next);
  bool found = false;
  for (uint32_t k = 1; k <= TRAIL; k++) {
    uint32_t i = (from - k) % TRAIL;
    if (GET(trail[i].who) != record >> EMU_RECORD_WAVE || GET(trail[i].wrote) != wrote) continue;
    bool holds = address >= GET(trail[i].at) && address < GET(trail[i].last) + GET(trail[i].bytes);
    if (found && !holds) continue;
    *pc = GET(trail[i].pc);
    found = true;
    if (holds) break;
  }
  return found;
}
