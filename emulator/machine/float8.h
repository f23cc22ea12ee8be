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

//
// FP6 has 2 bits of exponent and 3 of fraction, BF6 3 and 2, FP4 2 and 1, all without infinities and NaN. Source: OCP
// "Microscaling Formats (MX)".
enum emu_float8 {
  EMU_FP8,
  EMU_BF8,
  EMU_FP8_FNUZ,
  EMU_BF8_FNUZ,
  EMU_FP6,
  EMU_BF6,
  EMU_FP4,
  EMU_FLOAT8_COUNT,
  EMU_SHORT_F16 = EMU_FLOAT8_COUNT,
  EMU_SHORT_BF16
};  // the last two are results alone

unsigned emu__float8_bits(enum emu_float8 format);      // 8, 6 or 4
unsigned emu__float8_fraction(enum emu_float8 format);  // how many of them are fraction

// The half that has the same value: every one of each format has it.
uint32_t emu__float8_to_half(uint32_t byte, enum emu_float8 format);

// The byte for a float's bits. What is too large becomes the largest number if `saturates`, else infinity or, where
// there is none, NaN. Rounded to the nearest even, or stochastically: `more` units in the float's last place are added,
// the rest is cut.
#define EMU_FLOAT8_NEAREST UINT32_MAX
uint32_t emu__float8_of(uint32_t bits, enum emu_float8 format, bool saturates, uint32_t more);
// The same of the float divided by 2^scale. What has neither infinities nor NaN becomes the largest number in their
// place, which no guide says of NaN.
uint32_t emu__float8_of_scaled(uint32_t bits, int scale, enum emu_float8 format, bool saturates, uint32_t more);

// V_PRNG_B32: the random number behind another.
static inline uint32_t emu__next_random(uint32_t x) { return x << 1 ^ (x >> 31 ? 197u : 0); }

#endif
