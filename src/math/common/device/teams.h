/* Device code: the threads that share a row: a wave, or a whole group. Kernels that exist for both take wave_team or
 * group_team as a template parameter. |threads|: of the group. */
#ifndef RDNA_MATH_COMMON_DEVICE_TEAMS_H
#define RDNA_MATH_COMMON_DEVICE_TEAMS_H

#include "kernel/prelude.h"

/* A team has SIZE threads, this one is number rank(); a group has COUNT teams, this one is number index(). sum, max and
 * sums (of three values) reduce over the team, in a fixed order, and give all of its threads the result. |scratch| is
 * group memory of GROUP_SCRATCH(threads) floats, of three times as many for sums; a wave needs none. */
template <int threads>
struct wave_team {
  enum { SIZE = WAVE_SIZE, COUNT = threads / WAVE_SIZE };
  RDNA_DEVICE uint32_t rank() { return lane_id(); }
  RDNA_DEVICE uint32_t index() { return wave_id(); }
  RDNA_DEVICE float sum(float v, float *) { return wave_sum_f32(v); }
  RDNA_DEVICE float max(float v, float *) { return wave_max_f32(v); }
  RDNA_DEVICE void sums(float *v, float *) {
#pragma unroll
    for (int i = 0; i < 3; i++) v[i] = wave_sum_f32(v[i]);
  }
};
template <int threads>
struct group_team {
  enum { SIZE = threads, COUNT = 1 };
  RDNA_DEVICE uint32_t rank() { return thread_id(); }
  RDNA_DEVICE uint32_t index() { return 0; }
  RDNA_DEVICE float sum(float v, float *scratch) { return group_sum_f32<threads>(v, scratch); }
  RDNA_DEVICE float max(float v, float *scratch) { return group_max_f32<threads>(v, scratch); }
  /* Three sums with the barriers of one. */
  RDNA_DEVICE void sums(float *v, float *scratch) {
    constexpr uint32_t waves = threads / WAVE_SIZE;
#pragma unroll
    for (int i = 0; i < 3; i++) v[i] = wave_sum_f32(v[i]);
    group_barrier();
    if (lane_id() == 0) {
#pragma unroll
      for (int i = 0; i < 3; i++) scratch[i * waves + wave_id()] = v[i];
    }
    group_barrier();
#pragma unroll
    for (int i = 0; i < 3; i++) {
      v[i] = scratch[i * waves];
#pragma unroll
      for (uint32_t w = 1; w < waves; w++) v[i] += scratch[i * waves + w];
    }
  }
};

#endif
