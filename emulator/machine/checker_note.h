// Noting the lanes of an access that lie in one piece of memory at once. Private to the files checker*.c.
#ifndef EMULATOR_MACHINE_CHECKER_NOTE_H
#define EMULATOR_MACHINE_CHECKER_NOTE_H

#include "machine/checker_race.h"

// LDS, or one allocation: the records and the state of its dwords.
struct emu_piece {
  uint64_t first;  // number of the first dword
  uint64_t *writers, *readers;
  uint8_t *written;    // of global memory, as emu_shadow.written
  uint8_t *undefined;  // of LDS
};

static inline void emu__mark_written(uint8_t *state, unsigned mask) {
  if (!(mask & ~__atomic_load_n(state, __ATOMIC_RELAXED))) return;
  if (mask == 15) {
    __atomic_store_n(state, 15, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_or(state, mask, __ATOMIC_RELAXED);
  }
}

// Notes that `lanes` load or store so many dwords each, all of them defined. Returns the lanes that are left to the
// functions below: they stand at no dword, may race, or read what nobody wrote. Of those something may be noted
// already; noting it again changes nothing.
uint64_t emu__note_runs(const struct emu_racer *racer, enum emu_touch how, const struct emu_piece *piece,
                        const struct emu_places *p, uint64_t lanes, unsigned dwords);

// Notes that `lanes` read `bytes` (at most 4) of dword `k` from their places. Returns those lanes of which there is
// more to say: they reach into two dwords, may race, or read what nobody wrote.
uint64_t emu__note_loads(const struct emu_racer *racer, enum emu_touch how, const struct emu_piece *piece,
                         const struct emu_places *p, uint64_t lanes, unsigned k, unsigned bytes);
// The same for stores. Of `undefined`, the shadow of the register, the bits from `low` on are stored; NULL: none are
// set.
uint64_t emu__note_stores(const struct emu_racer *racer, const struct emu_piece *piece, const struct emu_places *p,
                          uint64_t lanes, unsigned k, unsigned bytes, const uint32_t *undefined, unsigned low);

#endif
