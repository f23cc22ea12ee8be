/* For tests: quantized values by the definition of their formats, one at a time and in double. */
#ifndef RDNA_MATH_QUANT_TESTING_BLOCKS_H
#define RDNA_MATH_QUANT_TESTING_BLOCKS_H

#include <math.h>
#include <stdint.h>

#include "base/block_formats.h"
#include "math/quant/quant_grids.h"
#include "rdna/tensor.h"

static inline double test_half(const uint8_t *p) {
  int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
             : exponent     ? ldexp(1024 + fraction, exponent - 25)
                            : ldexp(fraction, -24);
  return bits & 0x8000 ? -v : v;
}

/* |count| bits of |bytes| from bit |i| on, bit 0 of byte 0 being the first. */
static inline int test_bits(const uint8_t *bytes, int i, int count) {
  int v = 0;
  for (int b = count - 1; b >= 0; b--) v = 2 * v + (bytes[(i + b) / 8] >> (i + b) % 8 & 1);
  return v;
}
/* Value |at| of 32 whose low nibbles come first. */
static inline int test_nibble(const uint8_t *bytes, int at) { return test_bits(bytes, at % 16 * 8 + at / 16 * 4, 4); }
/* The 6-bit scale, or minimum, of sub-block |j| of 8: gathered from 12 bytes as 4-bit and 2-bit pieces. */
static inline int test_sixth(const uint8_t *s, int j, int minimum) {
  if (j < 4) return s[j + 4 * minimum] % 64;
  return (minimum ? s[j + 4] / 16 : s[j + 4] % 16) + s[j - 4 + 4 * minimum] / 64 * 16;
}

/* Eight magnitudes of an entry of 2-bit levels, or four of 3-bit levels: number |i|. */
static inline int test_level(uint16_t entry, int i) { return entry >> (i / 2 * 2 + i % 2 * 8) & 3; }
static inline int test_level_of_four(uint16_t entry, int i) { return entry >> (i / 2 * 4 + i % 2 * 8) & 7; }
/* Sign number |i| of eight, of which the last makes the number of minus signs even. */
static inline int test_even_sign(int seven, int i) {
  int sum = 0;
  for (int b = 0; b < 7; b++) sum += seven >> b & 1;
  return (i < 7 ? seven >> i : sum) & 1 ? -1 : 1;
}
/* Value |at| of a block that holds indices of a grid. */
static inline double test_grid_value(rdna_dtype format, const uint8_t *b, int at) {
  static const int two[] = {8, 25, 43}, three[] = {4, 12, 20, 28, 36, 44, 52, 62};
  int run = at / 32, eight = at / 8, i = at % 8, l = at % 32 / 8, sign, index, s;
  double half = test_half(b);
  uint8_t d[2];
  switch ((int)format) {
    case RDNA_IQ2_XXS:
      sign = test_even_sign(test_bits(b + 6 + 8 * run, 7 * l, 7), i);
      s = test_bits(b + 6 + 8 * run, 28, 4);
      return half * (0.5 + s) / 4 * sign * two[test_level(quant_grid_iq2_xxs[b[2 + 8 * run + l]], i)];
    case RDNA_IQ2_XS:
      sign = test_even_sign(test_bits(b + 2 + 2 * eight, 9, 7), i);
      s = test_bits(b + 66, at / 16 * 4, 4);
      return half * (0.5 + s) / 4 * sign * two[test_level(quant_grid_iq2_xs[test_bits(b + 2 + 2 * eight, 0, 9)], i)];
    case RDNA_IQ2_S:
      index = b[2 + eight] + 256 * test_bits(b + 66 + run, 2 * l, 2);
      s = test_bits(b + 74, at / 16 * 4, 4);
      return half * (0.5 + s) / 4 * (test_bits(b + 34, at, 1) ? -1 : 1) * two[test_level(quant_grid_iq2_s[index], i)];
    case RDNA_IQ3_XXS:
      sign = test_even_sign(test_bits(b + 66 + 4 * run, 7 * l, 7), i);
      s = test_bits(b + 66 + 4 * run, 28, 4);
      return half * (0.5 + s) / 2 * sign * three[test_level_of_four(quant_grid_iq3_xxs[b[2 + at / 4]], i % 4)];
    case RDNA_IQ3_S:
      index = b[2 + at / 4] + 256 * test_bits(b + 66, at / 4, 1);
      s = test_bits(b + 106, run * 4, 4);
      sign = test_bits(b + 74, at, 1) ? -1 : 1;
      return half * (1 + 2 * s) * sign * (2 * test_level_of_four(quant_grid_iq3_s[index], i % 4) + 1);
    case RDNA_IQ1_S:
      index = b[2 + eight] + 256 * test_bits(b + 34 + 2 * run, 3 * l, 3);
      s = test_bits(b + 34 + 2 * run, 12, 3);
      return half * (1 + 2 * s) * (test_level(quant_grid_iq1[index], i) - 1 + (b[35 + 2 * run] < 128 ? 0.125 : -0.125));
    case RDNA_IQ1_M:
      for (int k = 0; k < 2; k++) d[k] = (uint8_t)(b[49 + 4 * k] / 16 + b[51 + 4 * k] / 16 * 16);
      index = b[eight] + 256 * test_bits(b + 32, 4 * eight, 3);
      s = test_bits(b + 48 + at / 64 * 2, at % 64 / 16 * 3, 3);
      return test_half(d) * (1 + 2 * s) *
             (test_level(quant_grid_iq1[index], i) - 1 + (test_bits(b + 32, 4 * eight + 3, 1) ? -0.125 : 0.125));
  }
  fail_msg("%s has no definition in quant/testing_blocks.h", rdna_dtype_name(format));
  return 0;
}
/* Digit |n|, from the highest, of the number of base 3 that a byte, ceil(256 / 243 of it), stands for. */
static inline int test_trit(int byte, int n) {
  static const int places[] = {81, 27, 9, 3, 1};
  int number = byte * 243 / 256, digit = 0;
  for (int i = 0; i <= n; i++) digit = number / places[i] % 3;
  return digit;
}

/* Value |i| of a row of blocks. |*out_product|: the magnitude of scale * code, before a minimum is subtracted. */
static inline double test_quant_value(rdna_dtype format, const uint8_t *blocks, int64_t i, double *out_product) {
  static const int table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  int per_block = rdna_dtype_block_values(format), at = (int)(i % per_block), l = at % 32, half = at / 128;
  const uint8_t *b = blocks + i / per_block * (int64_t)rdna_dtype_block_bytes(format);
  double value = 0, minimum = 0;
  switch (format) {
    case RDNA_Q8_0:
      value = test_half(b) * (int8_t)b[2 + at];
      break;
    case RDNA_Q4_0:
      value = test_half(b) * (test_nibble(b + 2, at) - 8);
      break;
    case RDNA_Q4_1:
      value = test_half(b) * test_nibble(b + 4, at);
      minimum = -test_half(b + 2);
      break;
    case RDNA_Q5_0:
      value = test_half(b) * (test_nibble(b + 6, at) + 16 * test_bits(b + 2, at, 1) - 16);
      break;
    case RDNA_Q5_1:
      value = test_half(b) * (test_nibble(b + 8, at) + 16 * test_bits(b + 4, at, 1));
      minimum = -test_half(b + 2);
      break;
    case RDNA_Q2_K:
      value = test_half(b + 80) * (b[at / 16] % 16) * test_bits(b + 16 + half * 32 + l, at % 128 / 32 * 2, 2);
      minimum = test_half(b + 82) * (b[at / 16] / 16);
      break;
    case RDNA_Q3_K: {
      const uint8_t *s = b + 96;
      int j = at / 16, scale = test_bits(s + j % 8, j / 8 * 4, 4) + 16 * test_bits(s + 8 + j % 4, j / 4 * 2, 2);
      int q = test_bits(b + 32 + half * 32 + l, at % 128 / 32 * 2, 2) + 4 * test_bits(b + l, at / 32, 1);
      value = test_half(b + 108) * (scale - 32) * (q - 4);
      break;
    }
    case RDNA_Q4_K:
    case RDNA_Q5_K: {
      const uint8_t *nibbles = b + (format == RDNA_Q4_K ? 16 : 48) + at / 64 * 32 + l;
      int q = at % 64 < 32 ? *nibbles % 16 : *nibbles / 16;
      if (format == RDNA_Q5_K) q += 16 * test_bits(b + 16 + l, at / 32, 1);
      value = test_half(b) * test_sixth(b + 4, at / 32, 0) * q;
      minimum = test_half(b + 2) * test_sixth(b + 4, at / 32, 1);
      break;
    }
    case RDNA_Q6_K: {
      int r = at % 128 / 32, low = test_bits(b + half * 64 + r % 2 * 32 + l, r / 2 * 4, 4);
      int high = test_bits(b + 128 + half * 32 + l, 2 * r, 2);
      value = test_half(b + 208) * (int8_t)b[192 + at / 16] * (low + 16 * high - 32);
      break;
    }
    case RDNA_IQ4_NL:
      value = test_half(b) * table[test_nibble(b + 2, at)];
      break;
    case RDNA_IQ4_XS: {
      int j = at / 32, scale = test_bits(b + 4, j * 4, 4) + 16 * test_bits(b + 2, j * 2, 2);
      value = test_half(b) * (scale - 32) * table[test_nibble(b + 8 + j * 16, l)];
      break;
    }
    case RDNA_MXFP4: {
      int q = test_nibble(b + 1, at);
      value = ldexp(q < 8 ? e2m1[q] : -e2m1[q - 8], b[0] - 127);
      break;
    }
    case RDNA_TQ2_0:
      value = test_half(b + 64) * (test_bits(b + half * 32 + l, at % 128 / 32 * 2, 2) - 1);
      break;
    case RDNA_TQ1_0: {
      int digit = at < 160   ? test_trit(b[at % 32], at / 32)
                  : at < 240 ? test_trit(b[32 + at % 16], (at - 160) / 16)
                             : test_trit(b[48 + at % 4], (at - 240) / 4);
      value = test_half(b + 52) * (digit - 1);
      break;
    }
    default:
      value = test_grid_value(format, b, at);
  }
  if (out_product) *out_product = fabs(value);
  return value - minimum;
}

#define TEST_FORMAT(X, name, NAME, ...) RDNA_##NAME,
static const rdna_dtype test_formats[] = {RDNA_BLOCK_FORMATS(TEST_FORMAT, )};
enum { TEST_FORMATS = sizeof test_formats / sizeof test_formats[0] };

#endif
