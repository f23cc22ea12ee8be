// Races that the usual case of checker_race.h leaves open: what they are, and with whom.
#include "machine/checker_race.h"

static atomic_uint_fast64_t clock_now = 1;

uint64_t emu__time_now(void) { return atomic_load_explicit(&clock_now, memory_order_relaxed); }
uint64_t emu__time_next(void) { return atomic_fetch_add_explicit(&clock_now, 1, memory_order_relaxed) + 1; }

// When a launch last began beside another one, and how many are under way.
static atomic_uint_fast64_t met_at;
static atomic_uint under_way;

uint64_t emu__check_start(void) {
  uint64_t start = emu__time_next();
  if (atomic_fetch_add(&under_way, 1)) atomic_store(&met_at, emu__time_next());
  return start;
}
void emu__check_stop(struct emu_run *run) {
  atomic_fetch_sub(&under_way, 1);
  emu__model_release_run(run);
}
bool emu__run_is_alone(const struct emu_run *run) { return atomic_load(&met_at) < run->check_start; }

struct emu_other emu__race_with(uint64_t me, uint64_t record, bool wrote) {
  return (struct emu_other){.group = (uint32_t)(record >> EMU_RECORD_GROUP & EMU_RECORD_GROUPS),
                            .wave = (uint32_t)(record >> EMU_RECORD_WAVE & 31),
                            .known = emu__record_who(record) != emu__record_who(me),
                            .same_group = emu__record_same_group(record, me),
                            .wrote = wrote,
                            .atomic = wrote && record & EMU_RECORD_ATOMIC,
                            .record = record};
}

static bool found(uint64_t me, uint64_t record, bool wrote, enum emu_lack lack, struct emu_other *other) {
  *other = emu__race_with(me, record, wrote);
  other->lack = lack;
  return true;
}

// Whether a wave other than `me` took part in the record.
static bool by_others(uint64_t me, uint64_t record) {
  return emu__record_who(record) != me || (record & EMU_RECORD_OTHERS);
}

// Whether the access of the record, which no barrier has ordered before the wave's, is so by what others have told it.
// Of several readers or writers only one is known: whatever has been told orders the rest.
static bool is_ordered(const struct emu_racer *x, uint64_t record, bool reads, bool shared, enum emu_lack *lack) {
  const struct emu_wave_model *m = &x->wave->checker->model;
  *lack = EMU_LACK_ALL;
  if (emu__record_who(record) == x->me) return record >> EMU_RECORD_TIME < m->heard_at;
  return emu__model_orders(x->wave, record, reads, shared, lack);
}

bool emu__race(const struct emu_racer *x, uint64_t *writer, uint64_t *reader, unsigned mask, unsigned same,
               enum emu_touch how, bool shared, struct emu_other *other) {
  uint64_t me = x->me, w = emu__record_load(writer), r = emu__record_load(reader);
  bool race = false;
  enum emu_lack lack, reader_lack;
  // atomic loads and stores are plain ones to the instruction set: what is found of an access that meets an atomic
  // operation, the caller has to weigh
  bool may_meet_writer = how == EMU_TOUCH_READ_SYNC || how == EMU_TOUCH_ATOMIC_RETURNS ||
                         (how == EMU_TOUCH_ATOMIC && w & EMU_RECORD_ATOMIC);
  bool writes = how >= EMU_TOUCH_WRITE;
  bool apart = writes ? by_others(me, w) : emu__record_who(w) != me;
  bool beside = apart && !may_meet_writer && emu__record_concurrent(x, w) && !is_ordered(x, w, !writes, shared, &lack);
  if (beside && (w & mask & ~same)) race = found(me, w, true, lack, other);
  if (how == EMU_TOUCH_READ) emu__note_read(x, reader, mask);
  if (!writes) return race;
  bool may_be_atomic = how >= EMU_TOUCH_ATOMIC;
  bool met = race && !other->atomic;
  if (!met && !may_be_atomic && (r & mask) && by_others(me, r) && emu__record_concurrent(x, r) &&
      !is_ordered(x, r, false, shared, &reader_lack))
    race = found(me, r, false, reader_lack, other);
  uint64_t bytes = emu__record_own_bytes(x, w) | mask;
  // the mark stands for a writer of all the bytes that the record names
  uint64_t others = beside && !race && !(bytes & ~w) ? EMU_RECORD_OTHERS : 0;
  emu__record_store(writer, x->stamp | (how >= EMU_TOUCH_ATOMIC ? EMU_RECORD_ATOMIC : 0) | others | bytes);
  return race;
}
