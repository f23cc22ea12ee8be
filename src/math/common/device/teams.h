/* Device code: the threads that share a row, which is a template's parameter |team| where a wave and a whole group do
 * the same. |threads|: of the group. */
#ifndef RDNA_MATH_COMMON_DEVICE_TEAMS_H
#define RDNA_MATH_COMMON_DEVICE_TEAMS_H

#include "kernel/prelude.h"

/* SIZE threads, of which this one is number rank(); COUNT teams in a group, of which this one is number index(). All of
 * a team get the sums, which are always added in the same order. |scratch| is group memory of GROUP_SCRATCH(threads)
 * floats, for sums() of three times as many; a wave needs none. */
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
  /* Three sums for the price of one's barriers. */
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
