// V_EXP_F32, V_LOG_F32 and V_SQRT_F32 bit by bit. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_TRANSCENDENTAL_FIXED_H
#define EMULATOR_MACHINE_TRANSCENDENTAL_FIXED_H

#include <stdint.h>

// Bits of a float in, bits of a float out; MODE has no part in it.
uint32_t emu__exp2_bits(uint32_t input);
uint32_t emu__log2_bits(uint32_t input);
uint32_t emu__sqrt_bits(uint32_t input);

#endif
