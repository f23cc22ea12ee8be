/* Device code: joins what is known of some values (a state: a sum, a mean and a variance, a largest value) over a wave
 * or a group, in the fixed order that src/math/README.md explains. A state is a plain struct of 32-bit words with a
 * static join(state &, const state &). */
#ifndef RDNA_MATH_COMMON_DEVICE_JOIN_H
#define RDNA_MATH_COMMON_DEVICE_JOIN_H

#include "kernel/prelude.h"

/* Joins the states of each |lanes| neighbouring lanes, a power of two, or of the whole wave when that is fewer. All of
 * them get the result. */
template <typename state>
RDNA_DEVICE state wave_join(state s, uint32_t lanes = WAVE_SIZE) {
  constexpr int words = sizeof(state) / 4;
#pragma unroll
  for (uint32_t mask = 1; mask < WAVE_SIZE; mask *= 2) {
    if (mask >= lanes) break;
    uint32_t bits[words];
    state other;
    __builtin_memcpy(bits, &s, sizeof s);
#pragma unroll
    for (int i = 0; i < words; i++) bits[i] = wave_shuffle_xor_u32(bits[i], mask);
    __builtin_memcpy((void *)&other, bits, sizeof s);
    state::join(s, other);
  }
  return s;
}

/* Joins the states of a group's waves, in order. On entry all lanes of a wave have the wave's state, as wave_join
 * leaves it. |scratch|: group memory, a state for each wave. Use the result of thread 0 alone: the others may not have
 * it. */
template <int threads, typename state>
RDNA_DEVICE state group_join(state s, state *scratch) {
  group_barrier();
  if (lane_id() == 0) scratch[wave_id()] = s;
  group_barrier();
  s = scratch[0];
#pragma nounroll
  for (int i = 1; i < threads / WAVE_SIZE; i++) state::join(s, scratch[i]);
  return s;
}

/* Mean, sum of squared distances from it, and count, joined as in Chan, Golub and LeVeque, "Updating formulae and a
 * pairwise algorithm for computing sample variances", 1979. */
template <typename acc>
struct moments {
  acc mean = 0, squares = 0, n = 0;
  RDNA_DEVICE void join(moments &s, const moments &o) {
    acc n = s.n + o.n;
    if (o.n == 0) return;
    if (s.n == 0) {
      s = o;
      return;
    }
    acc apart = o.mean - s.mean, share = o.n / n;
    s.mean += apart * share;
    s.squares += o.squares + apart * apart * s.n * share;
    s.n = n;
  }
  template <int width>
  RDNA_DEVICE void add(moments &s, const acc *x) {
    moments here;
    here.n = width;
#pragma unroll
    for (int j = 0; j < width; j++) here.mean += x[j];
    here.mean *= (acc)1 / width;
#pragma unroll
    for (int j = 0; j < width; j++) here.squares += (x[j] - here.mean) * (x[j] - here.mean);
    join(s, here);
  }
};

#endif
