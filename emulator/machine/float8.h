// Floats of 8 bits, as the Open Compute Project's OFP8 specification has them: FP8 is its E4M3 (no infinities, NaN
// where all lower bits are set), BF8 its E5M2. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_FLOAT8_H
#define EMULATOR_MACHINE_FLOAT8_H

#include <stdbool.h>
#include <stdint.h>

// The half that has the same value: every one of either format has it.
uint32_t emu__float8_to_half(uint32_t byte, bool bf8);

// The byte for a float's bits. What is too large becomes the largest number if `saturates`, else infinity or, in FP8,
// NaN. Rounded to the nearest even, or stochastically: `more` units in the float's last place are added, the rest is
// cut.
#define EMU_FLOAT8_NEAREST UINT32_MAX
uint32_t emu__float8_of(uint32_t bits, bool bf8, bool saturates, uint32_t more);

#endif
