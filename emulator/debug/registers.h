// The registers of a wave as GDB sees them.
//
// GDB takes a description of a machine only with the registers of an architecture that it knows. Debian's knows no AMD
// GPU, so the description begins as x86-64's, of which `rip` is the wave's program counter and all others are zero;
// a feature of its own has the wave's:
//
//     0 … 39      rax … rip … fop           272 … 527   v0 … v255, 32 or 64 lanes
//     64 … 68     exec vcc m0 scc mode      528 … 783   a0 … a255, where there are accumulation registers
//     72 … 87     ttmp0 … ttmp15
//     96 … 201    s0 … s105
#ifndef EMULATOR_DEBUG_REGISTERS_H
#define EMULATOR_DEBUG_REGISTERS_H

#include "debug/text.h"
#include "machine/observe.h"

enum { EMU_REGISTER_BYTES = 256, EMU_REGISTERS_CORE = 40, EMU_DESCRIPTION_ROOM = 1 << 17 };

// The XML for waves of so many lanes.
void emu_registers_describe(const struct emu_isa *target, unsigned lanes, struct emu_text *out);
// Returns the register's size in a description for `lanes`, 0: there is none. *known: false where the wave lacks it.
size_t emu_register_read(const struct emu_wave *wave, unsigned lanes, uint64_t number, uint8_t out[EMU_REGISTER_BYTES],
                         bool *known);
// false: it cannot be written, or has another size.
bool emu_register_write(struct emu_wave *wave, unsigned lanes, uint64_t number, const uint8_t *data, size_t bytes);

#endif
