// The sums of products behind V_DOT2 and WMMA, eight at a time. Private to emulator/machine.
//
// The arithmetic is dot.h's emu__dot2 on GFX11 and emu__dot_pairs on GFX12, which also do what these leave: sums that
// infinities or NaN decide.
#ifndef EMULATOR_MACHINE_HARDWARE_DOT_H
#define EMULATOR_MACHINE_HARDWARE_DOT_H

#include "machine/dot.h"

// d = c + a0 b0 + a1 b1 in each of 32 lanes. d may be any of the sources.
void emu__hw_dot2(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d, bool bfloat);

// A product of matrices as GFX12 sums it: 16 elements of each row of A, by fours in ascending order, each with the
// element of B that it meets. Elements are halves or bfloats; with a result of 16 bits, c and d hold that many.
struct emu_pair_tiles {
  uint16_t a[16][16];             // (row, element)
  uint16_t b[16][32];             // (column, K)
  uint8_t meets[16][16];          // (row, element): K
  uint32_t c[16][16], d[16][16];  // (row, column)
};
void emu__hw_pair_tiles(struct emu_pair_tiles *t, bool bfloat, enum emu_dot_result result, bool saturates);

// d = a b + c on tiles of 16 x 16, K in pairs in ascending order. With a result of 16 bits, c and d hold that many.
void emu__hw_wmma(const uint32_t a[16][8], const uint32_t b[16][8], const uint32_t c[16][16], uint32_t d[16][16],
                  bool bfloat, enum emu_dot_result result);

#endif
