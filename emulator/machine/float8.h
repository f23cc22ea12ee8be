// Floats of 8 bits. Private to emulator/machine.
//
// FP8 has 4 bits of exponent and 3 of fraction, BF8 5 and 2. As the Open Compute Project's OFP8 specification has them,
// FP8 has no infinities, and is NaN where all lower bits are set; BF8 is made as halves are. FNUZ are those of gfx942:
// half as large at the same bits, without infinities and without a negative zero, whose byte, 0x80, is the one NaN.
// Source: LLVM, APFloat's Float8E4M3FNUZ and Float8E5M2FNUZ.
#ifndef EMULATOR_MACHINE_FLOAT8_H
#define EMULATOR_MACHINE_FLOAT8_H

#include <stdbool.h>
#include <stdint.h>

enum emu_float8 { EMU_FP8, EMU_BF8, EMU_FP8_FNUZ, EMU_BF8_FNUZ };

// The half that has the same value: every one of each format has it.
uint32_t emu__float8_to_half(uint32_t byte, enum emu_float8 format);

// The byte for a float's bits. What is too large becomes the largest number if `saturates`, else infinity or, where
// there is none, NaN. Rounded to the nearest even, or stochastically: `more` units in the float's last place are added,
// the rest is cut.
#define EMU_FLOAT8_NEAREST UINT32_MAX
uint32_t emu__float8_of(uint32_t bits, enum emu_float8 format, bool saturates, uint32_t more);

#endif
