// Races: which wave touched a dword last, and whether anything has come between.
//
// One clock serves the process. An access carries the time of its wave's epoch (checker_model.h), which begins at
// barriers, releases and acquires. It is before another one of the same group when the group has passed a barrier
// since, and before one of any wave that has been told of it. checker_model.c knows who has, and is asked for records
// alone that no barrier has ordered.
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
//
// Here is the usual case, an access that meets no other one: it is looked at for each lane of each load and store.
// checker_race.c has the rest.
#ifndef EMULATOR_MACHINE_CHECKER_RACE_H
#define EMULATOR_MACHINE_CHECKER_RACE_H

#include "machine/checker_state.h"

enum { EMU_RECORD_ATOMIC = 1 << 4, EMU_RECORD_OTHERS = 1 << 5 };
enum { EMU_RECORD_WAVE = 6, EMU_RECORD_GROUP = 11, EMU_RECORD_TIME = 30 };  // where they begin
#define EMU_RECORD_GROUPS ((UINT64_C(1) << (EMU_RECORD_TIME - EMU_RECORD_GROUP)) - 1)

// The group and wave of a record, where they stand in it.
static inline uint64_t emu__record_who(uint64_t record) {
  return record & ((UINT64_C(1) << EMU_RECORD_TIME) - (1 << EMU_RECORD_WAVE));
}
static inline bool emu__record_same_group(uint64_t a, uint64_t b) {
  return !((a ^ b) >> EMU_RECORD_GROUP & EMU_RECORD_GROUPS);
}
static inline uint64_t emu__record_load(uint64_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static inline void emu__record_store(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }

// The record of an access of the wave, but for its bytes.
static inline uint64_t emu__record_of(const struct emu_wave *wave) {
  uint64_t group = wave->group->linear & EMU_RECORD_GROUPS;
  return wave->checker->model.epoch << EMU_RECORD_TIME | group << EMU_RECORD_GROUP |
         (uint64_t)(wave->index & 31) << EMU_RECORD_WAVE;
}

// A wave's side of the comparison, the same for all the lanes of an access.
struct emu_racer {
  const struct emu_wave *wave;
  uint64_t me, stamp;           // who it is; the same with the time of the access: a record but for its bytes
  uint64_t since, since_group;  // accesses before are ordered: of any wave, of waves of its own group
};
static inline struct emu_racer emu__racer(const struct emu_wave *wave) {
  const struct emu_wave_check *c = wave->checker;
  uint64_t start = wave->group->run->check_start;
  struct emu_racer r = {.wave = wave, .stamp = emu__record_of(wave)};
  r.me = emu__record_who(r.stamp);
  r.since = start > c->sync ? start : c->sync;
  r.since_group = r.since > c->barrier ? r.since : c->barrier;
  return r;
}

// Whether the access of `record` is not ordered before what the wave does now.
static inline bool emu__record_concurrent(const struct emu_racer *x, uint64_t record) {
  return record >> EMU_RECORD_TIME >= (emu__record_same_group(record, x->me) ? x->since_group : x->since);
}

// The bytes that the same access has noted in the record already, for lanes before this one.
static inline uint64_t emu__record_own_bytes(const struct emu_racer *x, uint64_t record) {
  return (record ^ x->stamp) >> EMU_RECORD_WAVE ? 0 : record & 15;
}

// What a record `r` of reads becomes by one of the bytes in `mask`.
static inline uint64_t emu__read_record(const struct emu_racer *x, uint64_t r, unsigned mask) {
  if (emu__record_who(r) != x->me && emu__record_concurrent(x, r)) {
    // the mark stands for a reader of all the bytes that the record names
    return r & 15 & ~mask ? r : r | EMU_RECORD_OTHERS;
  }
  return x->stamp | emu__record_own_bytes(x, r) | mask;
}

static inline void emu__note_read(const struct emu_racer *x, uint64_t *reader, unsigned mask) {
  uint64_t r = emu__record_load(reader), new = emu__read_record(x, r, mask);
  if (new != r) emu__record_store(reader, new);
}

#define EMU_MET_NONE UINT64_MAX

// What the lanes of an access have met last: most of the dwords of a load or store have the same two records, and what
// follows from them is the same.
struct emu_met {
  uint64_t writer, reader;  // as they were; writer EMU_MET_NONE, which is no record: nothing yet
  uint64_t new;             // what the one that is noted becomes: the reader of a load, the writer of a store
};

// Notes a load or store (`how`, no atomic operation) of the bytes in `mask` of one dword, if no other access in the
// records can race with it. false: emu__race has to look, and nothing is noted. `met` is for one `mask`.
static inline bool emu__meets_none(const struct emu_racer *x, uint64_t *writer, uint64_t *reader, unsigned mask,
                                   enum emu_touch how, struct emu_met *met) {
  uint64_t w = emu__record_load(writer), r = emu__record_load(reader);
  bool writes = how == EMU_TOUCH_WRITE;
  if (w != met->writer || r != met->reader) {
    bool by_others = emu__record_who(w) != x->me || (writes && w & EMU_RECORD_OTHERS);
    if (by_others && emu__record_concurrent(x, w)) return false;
    bool read_by_others = r & mask && (emu__record_who(r) != x->me || r & EMU_RECORD_OTHERS);
    if (writes && read_by_others && emu__record_concurrent(x, r)) return false;
    uint64_t new = r;
    if (writes) new = x->stamp | emu__record_own_bytes(x, w) | mask;
    if (how == EMU_TOUCH_READ) new = emu__read_record(x, r, mask);
    *met = (struct emu_met){w, r, new};
  }
  if (writes) {
    emu__record_store(writer, met->new);
  } else if (met->new != r) {
    emu__record_store(reader, met->new);
  }
  return true;
}

#endif
