/* For tests: quantized values by the definition of their formats, one at a time and in double. */
#ifndef RDNA_MATH_QUANT_BLOCKS_TEST_H
#define RDNA_MATH_QUANT_BLOCKS_TEST_H

#include <math.h>
#include <stdint.h>

#include "rdna/tensor.h"

static inline double test_half(const uint8_t *p) {
  int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
             : exponent     ? ldexp(1024 + fraction, exponent - 25)
                            : ldexp(fraction, -24);
  return bits & 0x8000 ? -v : v;
}

/* Value |i| of a run of blocks. |*out_product| is the magnitude of what is rounded before a minimum is taken off. */
static inline double test_quant_value(rdna_dtype format, const uint8_t *blocks, int64_t i, double *out_product) {
  int64_t per_block = format == RDNA_Q8_0 || format == RDNA_Q4_0 ? 32 : 256;
  int at = (int)(i % per_block);
  const uint8_t *block;
  double value, minimum = 0;
  if (format == RDNA_Q8_0) {
    block = blocks + i / 32 * 34;
    value = test_half(block) * (int8_t)block[2 + at];
  } else if (format == RDNA_Q4_0) {
    block = blocks + i / 32 * 18;
    int byte = block[2 + at % 16];
    value = test_half(block) * ((at < 16 ? byte % 16 : byte / 16) - 8);
  } else if (format == RDNA_Q4_K) {
    block = blocks + i / 256 * 144;
    /* 8 scales and 8 minima: six bits each, gathered from 12 bytes as 4-bit and 2-bit pieces */
    int j = at / 32, scale, least;
    const uint8_t *s = block + 4;
    if (j < 4) {
      scale = s[j] % 64;
      least = s[4 + j] % 64;
    } else {
      scale = s[4 + j] % 16 + s[j - 4] / 64 * 16;
      least = s[4 + j] / 16 + s[j] / 64 * 16;
    }
    int byte = block[16 + at / 64 * 32 + at % 32];
    value = test_half(block) * scale * (at % 64 < 32 ? byte % 16 : byte / 16);
    minimum = test_half(block + 2) * least;
  } else {
    block = blocks + i / 256 * 210;
    int half = at / 128, r = at % 128 / 32, l = at % 32;
    int low_byte = block[half * 64 + r % 2 * 32 + l], high_byte = block[128 + half * 32 + l];
    int low = r < 2 ? low_byte % 16 : low_byte / 16, high = high_byte >> (2 * r) & 3;
    value = test_half(block + 208) * (int8_t)block[192 + at / 16] * (low + 16 * high - 32);
  }
  if (out_product) *out_product = fabs(value);
  return value - minimum;
}

static const rdna_dtype test_formats[] = {RDNA_Q8_0, RDNA_Q4_0, RDNA_Q4_K, RDNA_Q6_K};

#endif
