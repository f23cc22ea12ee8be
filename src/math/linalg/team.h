/* Device code: sums over 32 threads in one order, whatever the wave's width, so that the host can add in it too. */
#ifndef RDNA_MATH_LINALG_TEAM_H
#define RDNA_MATH_LINALG_TEAM_H

#include "kernel/prelude.h"

enum { TEAM = 32 };

/* All lanes of the wave must be active; all of the team get the result. */
RDNA_DEVICE float team_sum(float v) {
#pragma unroll
  for (uint32_t mask = 1; mask < TEAM; mask *= 2) v += wave_shuffle_xor_f32(v, mask);
  return v;
}
RDNA_DEVICE double team_sum(double v) {
#pragma unroll
  for (uint32_t mask = 1; mask < TEAM; mask *= 2) {
    uint64_t bits = bits_as<uint64_t>(v);
    uint64_t low = wave_shuffle_xor_u32((uint32_t)bits, mask),
             high = wave_shuffle_xor_u32((uint32_t)(bits >> 32), mask);
    v += bits_as<double>(high << 32 | low);
  }
  return v;
}

#endif
