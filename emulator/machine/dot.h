// The two-product sum behind V_DOT2 and WMMA. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_DOT_H
#define EMULATOR_MACHINE_DOT_H

#include <stdbool.h>
#include <stdint.h>

// What a step's result is rounded to: a float; a half in each step (packed WMMA); the float's upper half.
enum emu_dot_result { EMU_DOT_F32, EMU_DOT_F16, EMU_DOT_BF16 };

// a and b hold two factors each, halves or bfloats; c is a float. The result's bits.
uint32_t emu__dot2(uint32_t a, uint32_t b, uint32_t c, bool bfloat, enum emu_dot_result result);
uint32_t emu__half_to_float_bits(uint32_t half);  // exactly, signaling NaN too

#endif
