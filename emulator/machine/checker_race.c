// Races: which wave touched a dword last, and whether anything has come between.
//
// One clock serves the process. It moves at every barrier and at every acquire, that is an atomic operation that
// returns a value or a load that bypasses the caches (glc). An access carries its time. It is before another one of the
// same group when the group has passed a barrier since, and before one of any wave that has acquired since, or that has
// met such a wave at a barrier. That an acquire orders all accesses before it, whoever released them, errs on the side
// of silence: what is reported has no synchronization at all on the side of the second access.
//
// Each dword has two records of 64 bits, one of its last write and one of reads:
//
//     bit   63            30 29         11 10      6     5        4      3       0
//          |      time      |    group    |  wave  | OTHERS | ATOMIC |   bytes   |
//
// Of the group's number the low 19 bits are kept; `bytes` has a bit for each byte of the dword. Records of earlier
// launches have a time before the launch began. Of many readers the record keeps the first, and OTHERS says that there
// were more.
//
// Waves that store the same bytes to one place of LDS do not race: whichever comes last, the bytes are the same. The
// record keeps the last of them, and OTHERS, so that a store of a different value races with those too.
#include "machine/checker_state.h"

static atomic_uint_fast64_t clock_now = 1;

uint64_t emu__time_now(void) { return atomic_load_explicit(&clock_now, memory_order_relaxed); }
uint64_t emu__time_next(void) { return atomic_fetch_add_explicit(&clock_now, 1, memory_order_relaxed) + 1; }

uint64_t emu__check_start(void) { return emu__time_next(); }

enum { MASK_BITS = 4, WAVE_BITS = 5, GROUP_BITS = 19, ATOMIC = 1 << MASK_BITS, OTHERS = 2 << MASK_BITS };
enum { WAVE_AT = MASK_BITS + 2, GROUP_AT = WAVE_AT + WAVE_BITS, TIME_AT = GROUP_AT + GROUP_BITS };

static uint64_t identity(const struct emu_wave *wave) {
  uint64_t group = wave->group->linear & ((1u << GROUP_BITS) - 1);
  return group << GROUP_AT | (uint64_t)(wave->index & 31) << WAVE_AT;
}
static uint64_t who(uint64_t record) { return record & ((UINT64_C(1) << TIME_AT) - (1 << WAVE_AT)); }
static bool same_group(uint64_t a, uint64_t b) { return !((a ^ b) >> GROUP_AT & ((1u << GROUP_BITS) - 1)); }

// Whether the access of `record` is not ordered before what the wave does now.
static bool concurrent(const struct emu_wave *wave, uint64_t me, uint64_t record) {
  const struct emu_wave_check *c = wave->checker;
  uint64_t time = record >> TIME_AT;
  if (time < wave->group->run->check_start || time < c->sync) return false;
  return !(same_group(record, me) && time < c->barrier);
}

static bool found(uint64_t me, uint64_t record, bool wrote, struct emu_other *other) {
  other->group = (uint32_t)(record >> GROUP_AT & ((1u << GROUP_BITS) - 1));
  other->wave = (uint32_t)(record >> WAVE_AT & 31);
  other->known = who(record) != me;
  other->same_group = same_group(record, me);
  other->wrote = wrote;
  return true;
}

// Whether a wave other than `me` took part in the record.
static bool by_others(uint64_t me, uint64_t record) { return who(record) != me || (record & OTHERS); }

static uint64_t load(uint64_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static void store(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }

bool emu__race(const struct emu_wave *wave, uint64_t now, uint64_t *writer, uint64_t *reader, unsigned mask,
               unsigned same, enum emu_touch how, struct emu_other *other) {
  uint64_t me = identity(wave), w = load(writer), r = load(reader);
  bool race = false;
  // atomic loads and stores are plain ones to the instruction set: an access before or after an atomic operation may be
  // one, such as the first load of a compare-and-swap loop or a look at a flag
  bool may_meet_writer = how == EMU_TOUCH_READ_SYNC || w & ATOMIC;
  bool writes = how >= EMU_TOUCH_WRITE;
  bool beside = w && (writes ? by_others(me, w) : who(w) != me) && !may_meet_writer && concurrent(wave, me, w);
  if (beside && (w & mask & ~same)) race = found(me, w, true, other);
  if (how == EMU_TOUCH_READ) {
    if (r && who(r) != me && concurrent(wave, me, r)) {
      // the mark stands for a reader of all the bytes that the record names
      if (!(r & 15 & ~mask)) store(reader, r | OTHERS);
    } else {
      uint64_t bytes = r && who(r) == me && r >> TIME_AT == now ? r & 15 : 0;
      store(reader, now << TIME_AT | me | bytes | mask);
    }
    return race;
  }
  if (how == EMU_TOUCH_READ_SYNC) return race;
  bool may_be_atomic = how == EMU_TOUCH_ATOMIC;
  if (!race && !may_be_atomic && r && (r & mask) && by_others(me, r) && concurrent(wave, me, r))
    race = found(me, r, false, other);
  uint64_t bytes = (w && who(w) == me && w >> TIME_AT == now ? w & 15 : 0) | mask;
  // the mark stands for a writer of all the bytes that the record names
  uint64_t others = beside && !race && !(bytes & ~w) ? OTHERS : 0;
  store(writer, now << TIME_AT | me | (how == EMU_TOUCH_ATOMIC ? ATOMIC : 0) | others | bytes);
  return race;
}
