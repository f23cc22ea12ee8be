// Checked access to global memory. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_MEMORY_H
#define EMULATOR_MACHINE_MEMORY_H

#include "machine/wave.h"

uint64_t emu__memory_epoch(const struct emu_memory *memory);  // changes when an allocation goes

// The checker's shadow of the allocation that holds the address, made ready for records; NULL: none holds it.
struct emu_shadow;
const struct emu_shadow *emu__memory_shadow(struct emu_memory *memory, uint64_t address);

// Whether all the addresses of the lanes in `mask`, `bytes` each, lie in allocations; if not, the wave has trapped.
bool emu__memory_check(struct emu_wave *wave, const struct emu_step *step, const uint64_t *address, uint64_t mask,
                       unsigned bytes, bool write);
// The same for one address; lane -1 is the scalar unit.
bool emu__memory_check_one(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address,
                           unsigned bytes, bool write);
// The first allocation above the address; the last one that was freed there. false: none.
bool emu__memory_next(struct emu_memory *memory, uint64_t address, struct emu_allocation *out);
bool emu__memory_freed(struct emu_memory *memory, uint64_t address, struct emu_allocation *out);
// Where the allocations end that hold the address and follow each other without a gap; the address itself: none does,
// or it may not be written.
uint64_t emu__memory_end(struct emu_memory *memory, uint64_t address, bool write);
// Traps: says where the address is in relation to what the wave might have meant.
void emu__memory_outside(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address, unsigned bytes,
                         bool write);

// How many of the bytes that a scalar load names are there; 0: it may not be done. Compilers read more than they were
// asked to where that cannot fault, 12 aligned bytes with a load of 16 for example: a load that starts in an allocation
// may go past its end within the aligned 4, 8, 16, 32 or 64 bytes of its own size.
unsigned emu__memory_scalar(struct emu_wave *wave, uint64_t address, unsigned bytes);
// Tells the observer of a wave with a tag: the scalar unit reads there.
void emu__tell_scalar(struct emu_wave *wave, uint64_t address, unsigned bytes);

#endif
