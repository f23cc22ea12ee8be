/* How to find the values of the formats whose codes are not bits of their own, on the host and on the GPU alike; the
 * layouts are written out in base/block_formats.h.
 *
 * They are read a run of 32 values at a time, whose stored words quant_coded_read gathers:
 *
 *     format    w[0]         w[1]      w[2]      w[3]      w[4]     w[5]
 *     iq2_xxs   d            index     signs, s
 *     iq2_xs    d            s         indices and signs
 *     iq2_s     d            s         index     signs     high
 *     iq3_xxs   d            indices             signs, s
 *     iq3_s     d            all s     indices             signs    high
 *     iq1_s     d            index     high, s
 *     iq1_m     all s and d            index     high
 *     tq1_0     d            words of five digits each, 8, 4 or 1 of them
 *
 * The first quant_coded_heads() words are the block's, the others the run's. Of them come a scale for each 16 values,
 * and signed bytes for 8 values at once: value = scale * byte, which no format here rounds before the end. */
#ifndef RDNA_MATH_QUANT_CODED_H
#define RDNA_MATH_QUANT_CODED_H

#include "math/quant/quant_grids.h"
#include "math/quant/quant_unpack.h"

struct quant_coded {
  uint32_t w[9];
};
/* Eight signed bytes. */
struct quant_eight {
  uint32_t w[2];
};

QUANT_CONSTANT int quant_coded_heads(rdna_dtype format) { return format == RDNA_IQ1_M || format == RDNA_IQ3_S ? 2 : 1; }

RDNA_SCALAR uint32_t quant_load_8(const char *p) { return *(const uint8_t *)p; }

/* Loads the block's words. */
RDNA_SCALAR void quant_coded_read_head(rdna_dtype format, const char *block, struct quant_coded *out) {
  if (format == RDNA_IQ1_M) {
    out->w[0] = quant_load_32(format, block + 48);
    out->w[1] = quant_load_32(format, block + 52);
  } else {
    out->w[0] = quant_load_16(block + quant_d_at(format));
  }
  if (format == RDNA_IQ3_S) out->w[1] = quant_load_32(format, block + 106);
}

/* Loads the words of run |run|, of any format but tq1_0. */
RDNA_SCALAR void quant_coded_read_run(rdna_dtype format, const char *block, int run, struct quant_coded *out) {
  switch (format) {
    case RDNA_IQ2_XXS:
      out->w[1] = quant_load_32(format, block + 2 + 8 * run);
      out->w[2] = quant_load_32(format, block + 6 + 8 * run);
      break;
    case RDNA_IQ2_XS:
      out->w[1] = quant_load_8(block + 66 + run);
      out->w[2] = quant_load_32(format, block + 2 + 8 * run);
      out->w[3] = quant_load_32(format, block + 6 + 8 * run);
      break;
    case RDNA_IQ2_S:
      out->w[1] = quant_load_8(block + 74 + run);
      out->w[2] = quant_load_32(format, block + 2 + 4 * run);
      out->w[3] = quant_load_32(format, block + 34 + 4 * run);
      out->w[4] = quant_load_8(block + 66 + run);
      break;
    case RDNA_IQ3_XXS:
      out->w[1] = quant_load_32(format, block + 2 + 8 * run);
      out->w[2] = quant_load_32(format, block + 6 + 8 * run);
      out->w[3] = quant_load_32(format, block + 66 + 4 * run);
      break;
    case RDNA_IQ3_S:
      out->w[2] = quant_load_32(format, block + 2 + 8 * run);
      out->w[3] = quant_load_32(format, block + 6 + 8 * run);
      out->w[4] = quant_load_32(format, block + 74 + 4 * run);
      out->w[5] = quant_load_8(block + 66 + run);
      break;
    case RDNA_IQ1_S:
      out->w[1] = quant_load_32(format, block + 2 + 4 * run);
      out->w[2] = quant_load_16(block + 34 + 2 * run);
      break;
    case RDNA_IQ1_M:
      out->w[2] = quant_load_32(format, block + 4 * run);
      out->w[3] = quant_load_16(block + 32 + 2 * run);
      break;
    default:
      break;
  }
}

/* The scale of 16 values, those of half |half| of run |run|. */
RDNA_SCALAR float quant_coded_scale(rdna_dtype format, const struct quant_coded *c, int run, int half) {
  float d = f16_to_f32((uint16_t)c->w[0]);
  switch (format) {
    case RDNA_IQ2_XXS:
      return d * (0.5f + (float)(c->w[2] >> 28)) * 0.25f;
    case RDNA_IQ2_XS:
    case RDNA_IQ2_S:
      return d * (0.5f + (float)(c->w[1] >> (4 * half) & 15)) * 0.25f;
    case RDNA_IQ3_XXS:
      return d * (0.5f + (float)(c->w[3] >> 28)) * 0.5f;
    case RDNA_IQ3_S:
      return d * (float)(1 + 2 * (c->w[1] >> (4 * run) & 15));
    case RDNA_IQ1_S: /* bytes count eighths */
      return d * (float)(1 + 2 * (c->w[2] >> 12 & 7)) * 0.125f;
    case RDNA_IQ1_M: {
      uint32_t low = c->w[0], high = c->w[1], s = (run < 4 ? low : high) >> (run % 4 * 8 - run % 2 * 2 + half * 3) & 7;
      d = f16_to_f32((uint16_t)((low >> 12 & 0xf) | (low >> 24 & 0xf0) | (high >> 4 & 0xf00) | (high >> 16 & 0xf000)));
      return d * (float)(1 + 2 * s) * 0.125f;
    }
    default:
      return d;
  }
}

/* Where bit i of |four| is 1, byte i of |bytes| becomes its negative; none is 0. */
RDNA_SCALAR uint32_t quant_negate(uint32_t bytes, uint32_t four) {
  uint32_t ones = (four & 15) * 0x00204081u & 0x01010101u;
  return (bytes ^ ones * 255) + ones;
}
/* Eight signs of seven: their number is even. */
RDNA_SCALAR uint32_t quant_even_signs(uint32_t seven) { return seven | ((uint32_t)__builtin_popcount(seven) & 1) << 7; }
/* The magnitudes of entries of a grid, see quant_grids.h: bytes of |levels| become 8, 25, 43. */
RDNA_SCALAR uint32_t quant_iq2_bytes(uint32_t levels) {
  return 0x08080808u + levels * 17 + (levels >> 1 & 0x01010101u);
}
RDNA_SCALAR struct quant_eight quant_iq2_eight(uint32_t entry, uint32_t signs) {
  uint32_t spread = entry | entry << 14;
  struct quant_eight e = {{quant_negate(quant_iq2_bytes(spread & 0x03030303u), signs),
                           quant_negate(quant_iq2_bytes(spread >> 4 & 0x03030303u), signs >> 4)}};
  return e;
}
/* Four of 4, 12, 20 to 44, 52, 62. */
RDNA_SCALAR uint32_t quant_iq3_xxs_four(uint32_t entry) {
  uint32_t levels = (entry | entry << 12) & 0x07070707u;
  return 0x04040404u + levels * 8 + ((levels + 0x01010101u) >> 2 & 0x02020202u);
}
/* Four of 1, 3, 5 to 15. */
RDNA_SCALAR uint32_t quant_iq3_s_four(uint32_t entry) {
  return 0x01010101u + ((entry | entry << 12) & 0x07070707u) * 2;
}
/* Eight of -8, 0, 8, and 1 more or with |less| 1 less. */
RDNA_SCALAR struct quant_eight quant_iq1_eight(uint32_t entry, uint32_t less) {
  uint32_t spread = entry | entry << 14, shift = less ? 0x77777777u : 0x79797979u;
  struct quant_eight e = {
      {((spread & 0x03030303u) * 8 + shift) ^ 0x80808080u, ((spread >> 4 & 0x03030303u) * 8 + shift) ^ 0x80808080u}};
  return e;
}

/* Eight bytes: those of values 8 l to 8 l + 7 of the run. Not of tq1_0. */
RDNA_SCALAR struct quant_eight quant_coded_eight(rdna_dtype format, const struct quant_coded *c, int l) {
  struct quant_eight e = {{0, 0}};
  switch (format) {
    case RDNA_IQ2_XXS:
      return quant_iq2_eight(quant_grid_iq2_xxs[c->w[1] >> (8 * l) & 255], quant_even_signs(c->w[2] >> (7 * l) & 127));
    case RDNA_IQ2_XS: {
      uint32_t both = (l < 2 ? c->w[2] : c->w[3]) >> (l % 2 * 16) & 0xffff;
      return quant_iq2_eight(quant_grid_iq2_xs[both & 511], quant_even_signs(both >> 9));
    }
    case RDNA_IQ2_S:
      return quant_iq2_eight(quant_grid_iq2_s[(c->w[2] >> (8 * l) & 255) | (c->w[4] >> (2 * l) & 3) << 8],
                             c->w[3] >> (8 * l) & 255);
    case RDNA_IQ3_XXS: {
      uint32_t pair = (l < 2 ? c->w[1] : c->w[2]) >> (l % 2 * 16), signs = quant_even_signs(c->w[3] >> (7 * l) & 127);
      e.w[0] = quant_negate(quant_iq3_xxs_four(quant_grid_iq3_xxs[pair & 255]), signs);
      e.w[1] = quant_negate(quant_iq3_xxs_four(quant_grid_iq3_xxs[pair >> 8 & 255]), signs >> 4);
      return e;
    }
    case RDNA_IQ3_S: {
      uint32_t pair = (l < 2 ? c->w[2] : c->w[3]) >> (l % 2 * 16), high = c->w[5] >> (2 * l);
      uint32_t signs = c->w[4] >> (8 * l);
      e.w[0] = quant_negate(quant_iq3_s_four(quant_grid_iq3_s[(pair & 255) | (high & 1) << 8]), signs);
      e.w[1] = quant_negate(quant_iq3_s_four(quant_grid_iq3_s[(pair >> 8 & 255) | (high & 2) << 7]), signs >> 4);
      return e;
    }
    case RDNA_IQ1_S:
      return quant_iq1_eight(quant_grid_iq1[(c->w[1] >> (8 * l) & 255) | (c->w[2] >> (3 * l) & 7) << 8],
                             c->w[2] & 0x8000);
    case RDNA_IQ1_M: {
      uint32_t high = c->w[3] >> (4 * l);
      return quant_iq1_eight(quant_grid_iq1[(c->w[2] >> (8 * l) & 255) | (high & 7) << 8], high & 8);
    }
    default:
      return e;
  }
}

/* ---- tq1_0: a byte is 256 / 243 times five digits of base 3, so that times 3^n its low 8 bits begin with digit n ----
 */

/* Digit |n| of four bytes, less 1. */
RDNA_SCALAR uint32_t quant_trits(uint32_t bytes, int n) {
  uint32_t power = n == 0 ? 1 : n == 1 ? 3 : n == 2 ? 9 : n == 3 ? 27 : 81;
  uint32_t even = (bytes & 0x00ff00ffu) * power & 0x00ff00ffu, odd = (bytes >> 8 & 0x00ff00ffu) * power & 0x00ff00ffu;
  uint32_t digits = (even * 3 >> 8 & 0x00030003u) | (odd * 3 & 0x03000300u);
  return ((digits | 0x80808080u) - 0x01010101u) ^ 0x80808080u;
}
/* The word, and the digit, that values 4 i to 4 i + 3 of the block are: 32 bytes have digits of 160 values, 16 of 80,
 * and 4 of 16. */
QUANT_CONSTANT int quant_trit_word(int i) { return i < 40 ? i % 8 : i < 60 ? 8 + i % 4 : 12; }
QUANT_CONSTANT int quant_trit_digit(int i) { return i < 40 ? i / 8 : i < 60 ? (i - 40) / 4 : i - 60; }
RDNA_SCALAR struct quant_eight quant_trit_eight(const char *block, int v) {
  int i = v / 4;
  struct quant_eight e = {
      {quant_trits(quant_load_32(RDNA_TQ1_0, block + 4 * quant_trit_word(i)), quant_trit_digit(i)),
       quant_trits(quant_load_32(RDNA_TQ1_0, block + 4 * quant_trit_word(i + 1)), quant_trit_digit(i + 1))}};
  return e;
}

/* Scale and bytes of the eight values from |v| on, by themselves. */
RDNA_SCALAR struct quant_eight quant_coded_load_eight(rdna_dtype format, const char *block, int v, float *out_scale) {
  struct quant_coded c;
  quant_coded_read_head(format, block, &c);
  if (format == RDNA_TQ1_0) {
    *out_scale = quant_coded_scale(format, &c, 0, 0);
    return quant_trit_eight(block, v);
  }
  quant_coded_read_run(format, block, v / 32, &c);
  *out_scale = quant_coded_scale(format, &c, v / 32, v / 16 % 2);
  return quant_coded_eight(format, &c, v / 8 % 4);
}

#endif
