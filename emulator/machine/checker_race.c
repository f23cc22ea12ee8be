// Races that the usual case of checker_race.h leaves open: what they are, and with whom.
#include "machine/checker_race.h"

static atomic_uint_fast64_t clock_now = 1;

uint64_t emu__time_now(void) { return atomic_load_explicit(&clock_now, memory_order_relaxed); }
uint64_t emu__time_next(void) { return atomic_fetch_add_explicit(&clock_now, 1, memory_order_relaxed) + 1; }

uint64_t emu__check_start(void) { return emu__time_next(); }

static bool found(uint64_t me, uint64_t record, bool wrote, struct emu_other *other) {
  other->group = (uint32_t)(record >> EMU_RECORD_GROUP & EMU_RECORD_GROUPS);
  other->wave = (uint32_t)(record >> EMU_RECORD_WAVE & 31);
  other->known = emu__record_who(record) != me;
  other->same_group = emu__record_same_group(record, me);
  other->wrote = wrote;
  return true;
}

// Whether a wave other than `me` took part in the record.
static bool by_others(uint64_t me, uint64_t record) {
  return emu__record_who(record) != me || (record & EMU_RECORD_OTHERS);
}

bool emu__race(const struct emu_racer *x, uint64_t *writer, uint64_t *reader, unsigned mask, unsigned same,
               enum emu_touch how, struct emu_other *other) {
  uint64_t me = x->me, w = emu__record_load(writer), r = emu__record_load(reader);
  bool race = false;
  // atomic loads and stores are plain ones to the instruction set: an access before or after an atomic operation may be
  // one, such as the first load of a compare-and-swap loop or a look at a flag
  bool may_meet_writer = how == EMU_TOUCH_READ_SYNC || w & EMU_RECORD_ATOMIC;
  bool writes = how >= EMU_TOUCH_WRITE;
  bool apart = writes ? by_others(me, w) : emu__record_who(w) != me;
  bool beside = apart && !may_meet_writer && emu__record_concurrent(x, w);
  if (beside && (w & mask & ~same)) race = found(me, w, true, other);
  if (how == EMU_TOUCH_READ) emu__note_read(x, reader, mask);
  if (!writes) return race;
  bool may_be_atomic = how == EMU_TOUCH_ATOMIC;
  if (!race && !may_be_atomic && (r & mask) && by_others(me, r) && emu__record_concurrent(x, r))
    race = found(me, r, false, other);
  uint64_t bytes = emu__record_own_bytes(x, w) | mask;
  // the mark stands for a writer of all the bytes that the record names
  uint64_t others = beside && !race && !(bytes & ~w) ? EMU_RECORD_OTHERS : 0;
  emu__record_store(writer, x->stamp | (how == EMU_TOUCH_ATOMIC ? EMU_RECORD_ATOMIC : 0) | others | bytes);
  return race;
}
