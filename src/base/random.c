#include "base/random.h"

#include <math.h>

static uint64_t rotate_left(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

void rdna__random_seed(rdna__random *random, uint64_t seed) {
  for (int i = 0; i < 4; i++) {
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    random->state[i] = z ^ (z >> 31);
  }
}

uint64_t rdna__random_bits(rdna__random *random) {
  uint64_t *s = random->state;
  uint64_t result = rotate_left(s[1] * 5, 7) * 9;
  uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate_left(s[3], 45);
  return result;
}

uint64_t rdna__random_below(rdna__random *random, uint64_t bound) {
  if (bound == 0) return 0;
  uint64_t threshold = -bound % bound;
  for (;;) {
    uint64_t bits = rdna__random_bits(random);
    if (bits >= threshold) return bits % bound;
  }
}

int64_t rdna__random_range(rdna__random *random, int64_t low, int64_t high) {
  return low + (int64_t)rdna__random_below(random, (uint64_t)high - (uint64_t)low + 1);
}

double rdna__random_unit(rdna__random *random) { return (double)(rdna__random_bits(random) >> 11) * 0x1p-53; }

double rdna__random_normal(rdna__random *random) {
  double radius = sqrt(-2.0 * log(1.0 - rdna__random_unit(random)));
  return radius * cos(6.283185307179586 * rdna__random_unit(random));
}
