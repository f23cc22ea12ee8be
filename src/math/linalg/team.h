/* Device code: teams of 32 threads, whatever the wave's width. All lanes of the wave must be active. */
#ifndef RDNA_MATH_LINALG_TEAM_H
#define RDNA_MATH_LINALG_TEAM_H

#include "kernel/prelude.h"

enum { TEAM = 32 };

/* In one order, so that the host can add in it too; all of the team get the result. */
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

/* The value of lane |from| of the team. */
RDNA_DEVICE float team_broadcast(float v, uint32_t from) { return wave_shuffle_f32(v, lane_id() / TEAM * TEAM + from); }
RDNA_DEVICE double team_broadcast(double v, uint32_t from) {
  uint64_t bits = bits_as<uint64_t>(v);
  uint32_t lane = lane_id() / TEAM * TEAM + from;
  uint32_t low = wave_shuffle_u32((uint32_t)bits, lane), high = wave_shuffle_u32((uint32_t)(bits >> 32), lane);
  return bits_as<double>((uint64_t)high << 32 | low);
}

#endif
