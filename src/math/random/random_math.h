/* Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) and what is made
 * of its words, the same on the device and on the host. */
#ifndef RDNA_MATH_RANDOM_MATH_H
#define RDNA_MATH_RANDOM_MATH_H

#include "kernel/scalar.h"
#include "math/random/random_kernels.h"

struct random_words {
  uint32_t word[4];
};

RDNA_SCALAR struct random_words random_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint64_t key) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  struct random_words w = {{c0, c1, c2, c3}};
  return w;
}

RDNA_SCALAR struct random_words random_block(uint64_t seed, uint64_t offset, uint64_t block) {
  uint64_t counter = offset + block;
  return random_philox((uint32_t)counter, (uint32_t)(counter >> 32), 0, 0, seed);
}

RDNA_SCALAR float random_unit(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }             /* [0, 1) */
RDNA_SCALAR float random_unit_above(uint32_t word) { return (float)((word >> 8) + 1) * 0x1p-24f; } /* (0, 1] */

/* -log(u) of u = (word + 1/2) / 2^32, from 2^-33 to 22.9. Near 1, where floats lie too far apart, 1 - u is taken from
 * the word's complement: were small values rounded to 0 or to steps, the least of 100,000 of them, which is what
 * choices by exponential clocks take, would often be a tie. */
RDNA_SCALAR float random_exponential(uint32_t word) {
  if (word < 0x80000000u) return -scalar_log(((float)word + 0.5f) * 0x1p-32f);
  return -scalar_log1p(((float)~word + 0.5f) * -0x1p-32f);
}

/* Two normal numbers from two words (Box and Muller, 1958). */
RDNA_SCALAR void random_normals(uint32_t a, uint32_t b, float *out) {
  float radius = scalar_sqrt(-2.0f * scalar_log(random_unit_above(a)));
  float sine, cosine;
  scalar_sincos(0x1.921fb6p+2f * random_unit(b), &sine, &cosine);
  out[0] = radius * cosine;
  out[1] = radius * sine;
}

/* Computes the four values of a block. |bound| keeps uniform values below high and exponential ones above 0. That holds
 * after rounding to 16 bits too: |dtype| has |bound|, and rounding never moves a value past one that |dtype| has. */
RDNA_SCALAR void random_values(const struct random_fill_args *args, uint64_t block, float *out) {
  struct random_words w = random_block(args->seed, args->offset, block);
  if (args->kind == RANDOM_NORMAL) {
    random_normals(w.word[0], w.word[1], out);
    random_normals(w.word[2], w.word[3], out + 2);
    for (int k = 0; k < 4; k++) out[k] = scalar_fma(args->b, out[k], args->a);
    return;
  }
  for (int k = 0; k < 4; k++) {
    float u = random_unit(w.word[k]);
    if (args->kind == RANDOM_UNIFORM) out[k] = scalar_min(scalar_fma(args->b, u, args->a), args->bound);
    if (args->kind == RANDOM_BERNOULLI) out[k] = u < args->a ? 1.0f : 0.0f;
    if (args->kind == RANDOM_EXPONENTIAL) out[k] = scalar_max(args->a * random_exponential(w.word[k]), args->bound);
  }
}

/* low + a uniform integer below |range|: the high 64 bits of range * (64 random bits). An integer's probability differs
 * from 1 / range by less than 2^-64. */
RDNA_SCALAR int64_t random_integer(int64_t low, uint64_t range, uint32_t high_word, uint32_t low_word) {
  uint64_t bits = (uint64_t)high_word << 32 | low_word;
  if (range == 0) return (int64_t)bits;
  uint64_t a = bits >> 32, b = bits & 0xffffffffu, c = range >> 32, d = range & 0xffffffffu;
  uint64_t middle = a * d + ((b * d) >> 32), cross = b * c + (middle & 0xffffffffu);
  return (int64_t)((uint64_t)low + (a * c + (middle >> 32) + (cross >> 32)));
}

#endif
