/* Repeatable random numbers for tests, cases and samplers: xoshiro256** seeded by SplitMix64 (Blackman and
 * Vigna, 2018). */
#ifndef RDNA_BASE_RANDOM_H
#define RDNA_BASE_RANDOM_H

#include <stdint.h>

typedef struct rdna__random {
  uint64_t state[4];
} rdna__random;

void rdna__random_seed(rdna__random *random, uint64_t seed);
uint64_t rdna__random_bits(rdna__random *random);
/* Uniform in [0, bound), without bias; 0 when |bound| is 0. */
uint64_t rdna__random_below(rdna__random *random, uint64_t bound);
int64_t rdna__random_range(rdna__random *random, int64_t low, int64_t high); /* [low, high] */
double rdna__random_unit(rdna__random *random);                              /* [0, 1), 53 bits */
double rdna__random_normal(rdna__random *random);                            /* mean 0, deviation 1 */

#endif
