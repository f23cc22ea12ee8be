// The two-product sum behind V_DOT2 and WMMA on GFX11, eight at a time. Private to emulator/machine.
//
// The arithmetic is dot.h's emu__dot2, which also does what these leave: sums that infinities or NaN decide.
#ifndef EMULATOR_MACHINE_HARDWARE_DOT_H
#define EMULATOR_MACHINE_HARDWARE_DOT_H

#include "machine/dot.h"

// d = c + a0 b0 + a1 b1 in each of 32 lanes. d may be any of the sources.
void emu__hw_dot2(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d, bool bfloat);

// d = a b + c on tiles of 16 x 16, K in pairs in ascending order. With a result of 16 bits, c and d hold that many.
void emu__hw_wmma(const uint32_t a[16][8], const uint32_t b[16][8], const uint32_t c[16][16], uint32_t d[16][16],
                  bool bfloat, enum emu_dot_result result);

#endif
