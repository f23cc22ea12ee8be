// Where a memory instruction's lanes point, and what it does there. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_ACCESS_H
#define EMULATOR_MACHINE_ACCESS_H

#include "machine/memory.h"

enum emu_space { EMU_SPACE_GLOBAL, EMU_SPACE_SHARED, EMU_SPACE_SCRATCH };

// Host addresses of the lanes in `mask`. Consecutive dwords of a lane are `stride` bytes apart: 4, or one row of all
// lanes where scratch or a swizzled buffer interleaves them. Lanes in `outside` are past the end of their V# (buffer
// descriptor) or of LDS: they read zero and write nothing.
//
//     stride 4        | lane 0: dword 0, 1, 2, 3 | … | lane 1: dword 0, 1, 2, 3 | …
//     stride 4 * n    | dword 0 of lanes 0 … n - 1 | dword 1 of lanes 0 … n - 1 | …
struct emu_places {
  uint64_t at[64];
  uint64_t mask, outside;
  uint32_t stride;
  uint8_t space;
};

// A load or store of one element.
struct emu_shape {
  uint8_t bytes;               // 1, 2, 4, 8, 12, 16
  bool is_signed, half, high;  // half: only 16 bits of the register, the upper ones if `high`
};

void emu__places_load(struct emu_wave *wave, const struct emu_places *p, const struct emu_shape *shape, unsigned reg);
void emu__places_store(struct emu_wave *wave, const struct emu_places *p, const struct emu_shape *shape, unsigned reg);
// The same of whole dwords in a wave of 32 lanes that are all on, from offsets to one base; `alike`: all the same one.
void emu__rows_load(struct emu_wave *wave, const uint8_t *base, const uint32_t offset[EMU_HALF], bool alike,
                    unsigned dwords, unsigned reg);
void emu__count_access(struct emu_wave *wave, const struct emu_places *p, unsigned bytes, bool write);

// Tells the observer of a wave with a tag.
void emu__tell_places(struct emu_wave *wave, const struct emu_places *p, unsigned bytes, bool reads, bool writes);

enum emu_atomic {
  EMU_ATOMIC_SWAP,
  EMU_ATOMIC_CMPSWAP,
  EMU_ATOMIC_ADD,
  EMU_ATOMIC_SUB,
  EMU_ATOMIC_RSUB,
  EMU_ATOMIC_CSUB,
  EMU_ATOMIC_MIN_I,
  EMU_ATOMIC_MIN_U,
  EMU_ATOMIC_MAX_I,
  EMU_ATOMIC_MAX_U,
  EMU_ATOMIC_AND,
  EMU_ATOMIC_OR,
  EMU_ATOMIC_XOR,
  EMU_ATOMIC_INC,
  EMU_ATOMIC_DEC,
  EMU_ATOMIC_CMPSWAP_F,
  EMU_ATOMIC_MIN_F,
  EMU_ATOMIC_MAX_F,
  EMU_ATOMIC_ADD_F,
  EMU_ATOMIC_COND_SUB,
  EMU_ATOMIC_PK_ADD_F16,
  EMU_ATOMIC_PK_ADD_BF16,
  EMU_ATOMIC_MSKOR,
  EMU_ATOMIC_WRAP
};
// Set by atomic operations that change memory; whoever looks for that clears it first.
extern _Thread_local bool emu__atomic_changed;
// On 4 or 8 bytes at a host address; returns the old value. `compare` is CMPSWAP's, or MSKOR's and WRAP's second datum.
uint64_t emu__atomic(enum emu_atomic kind, unsigned bytes, uint64_t at, uint64_t data, uint64_t compare);
// Performs the atomic operation lane after lane. `data`, `compare` and `dst` are numbers of vector registers; compare
// -1: none, dst -1: the old value is not returned.
void emu__places_atomic(struct emu_wave *wave, const struct emu_places *p, enum emu_atomic kind, unsigned bytes,
                        unsigned data, int compare, int dst);

// Where the lanes in p->mask point in the buffer that a V# describes. false: the wave has trapped.
bool emu__buffer_places(struct emu_wave *w, const struct emu_step *step, unsigned bytes, bool write,
                        struct emu_places *p);

#endif
