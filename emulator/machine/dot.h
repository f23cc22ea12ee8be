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
// An infinity or NaN, given as a float's bits, as the result has it.
uint32_t emu__dot_special(uint32_t bits, enum emu_dot_result result);
uint64_t emu__round_even(uint64_t value, int shift);  // value / 2^shift to the nearest even; negative: times 2^-shift

// The same on GFX12: sums of 2 or 4 products; a and b hold half as many words, c is a float. What overflows a half
// becomes the largest number if `saturates`. dot_pairs.c explains the arithmetic.
uint32_t emu__dot_pairs(const uint32_t *a, const uint32_t *b, unsigned products, uint32_t c, bool bfloat,
                        enum emu_dot_result result, bool saturates);

#endif
