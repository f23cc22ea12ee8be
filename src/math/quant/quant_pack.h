/* How blocks are made, on the host and on the GPU alike, which give the same bytes. See quant_unpack.h. The steps:
 *
 *   quant_wanted            what each sub-block of 16 or 32 values asks for, in f32: a scale for which code 0 is
 *                           the value of the largest magnitude; or, where the format has minimums, a scale and a
 *                           minimum for which the codes range from the smallest value to the largest
 *   quant_scales_of_block   the block's d, and m or dmin, in f16
 *   quant_part_of           each sub-block's scale and minimum as stored: in formats of 32 values d and m, in
 *                           formats of 256 whole multiples of d and dmin
 *   quant_code_of           each value's code, the nearest for the scale and minimum as stored
 *   quant_packed_byte       the block's bytes */
#ifndef RDNA_MATH_QUANT_PACK_H
#define RDNA_MATH_QUANT_PACK_H

#include "math/quant/quant_unpack.h"

/* F(name, dtype) for each format that is made here; q8_0 is made by quantize_f32_q8_0. */
#define RDNA_QUANT_PACKED_(F, name, NAME, ggml, values, bytes, quantize, ...) RDNA_BLOCK_IF_##quantize##_(F(name, NAME))
#define RDNA_QUANT_PACKED(F) RDNA_BLOCK_FORMATS(RDNA_QUANT_PACKED_, F)

#define QUANT_TOP_CODE(f) ((1 << QUANT_BITS(f)) - 1)
QUANT_CONSTANT int quant_top_code(rdna_dtype format) { QUANT_RETURN(format, QUANT_TOP_CODE); }

/* Returns the one of larger magnitude; of two that differ in sign alone the positive one; of a NaN and another the
 * other. */
RDNA_SCALAR float quant_farther(float a, float b) {
  float ma = scalar_abs(a), mb = scalar_abs(b);
  return ma > mb || (ma == mb && a > b) || b != b ? a : b;
}

/* The scale and minimum that a sub-block asks for. */
RDNA_SCALAR struct quant_scale quant_wanted(rdna_dtype format, const float *x) {
  struct quant_scale wanted = {0, 0};
  if (quant_zero(format) > 0) {
    float far = 0;
    for (int i = 0; i < quant_run(format); i++) far = quant_farther(far, x[i]);
    wanted.scale = far / (float)-quant_zero(format);
  } else {
    /* of the minimum m; in formats of 256 values it is dmin times a whole number, so 0 counts as a value */
    bool has_sign = quant_values(format) == 32;
    float low = has_sign ? __builtin_inff() : 0, high = -__builtin_inff();
    for (int i = 0; i < quant_run(format); i++) {
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    if (!(low <= high)) low = has_sign ? 0 : low, high = low; /* nothing but NaN */
    wanted.scale = (high - low) / (float)quant_top_code(format);
    wanted.least = -low;
  }
  return wanted;
}

/* Rounds to nearest, halves to even, within [low, high]; a NaN becomes |low|. */
RDNA_SCALAR int quant_nearest(float v, int low, int high) {
  return v > (float)low ? (v < (float)high ? (int)__builtin_rintf(v) : high) : low;
}

/* The block's own scales: f16 bits of d, and of m or dmin. */
struct quant_block_scales {
  uint16_t d, m;
};
/* |most|: of the scales that sub-blocks ask for the one of the largest magnitude, and the largest of their minimums. */
RDNA_SCALAR struct quant_block_scales quant_scales_of_block(rdna_dtype format, struct quant_scale most) {
  struct quant_block_scales s;
  if (quant_values(format) == 32) {
    /* adding 0 makes -0 into 0, whose sign would depend on the order of sub-blocks */
    s.d = f32_to_f16(most.scale + 0.0f);
    s.m = f32_to_f16(-most.least + 0.0f);
  } else {
    float top = (float)(quant_zero(format) > 0 ? -quant_scale_top(format) : quant_scale_top(format));
    s.d = f32_to_f16(most.scale / top + 0.0f);
    s.m = f32_to_f16(most.least / top + 0.0f);
  }
  return s;
}
/* A sub-block's scale and minimum: whole numbers as the block stores them, and what they stand for. */
struct quant_part {
  uint8_t s, m;
  struct quant_scale scale;
};
RDNA_SCALAR struct quant_part quant_part_of(rdna_dtype format, struct quant_block_scales block,
                                            struct quant_scale wanted) {
  struct quant_part part = {0, 0, {0, 0}};
  float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  if (quant_values(format) == 32) {
    part.scale.scale = d;
    part.scale.least = -m;
    return part;
  }
  int top = quant_scale_top(format);
  if (quant_zero(format) > 0) {
    int s = quant_nearest(d != 0 ? wanted.scale / d : 0, -top, top - 1);
    part.s = (uint8_t)(quant_scales(format) == RDNA__SCALES_Q3_K ? s + 32 : s);
    part.scale.scale = d * (float)s;
  } else {
    part.s = (uint8_t)quant_nearest(d != 0 ? wanted.scale / d : 0, 0, top);
    part.m = (uint8_t)quant_nearest(m != 0 ? wanted.least / m : 0, 0, top);
    part.scale.scale = d * (float)part.s;
    part.scale.least = m * (float)part.m;
  }
  return part;
}
RDNA_SCALAR uint8_t quant_code_of(rdna_dtype format, struct quant_scale scale, float x) {
  float inverse = scale.scale != 0 ? 1.0f / scale.scale : 0;
  float v = quant_zero(format) > 0 ? x * inverse : (x + scale.least) * inverse;
  return (uint8_t)(quant_nearest(v, -quant_zero(format), quant_top_code(format) - quant_zero(format)) +
                   quant_zero(format));
}

/* Packs |bits| bits, from bit |down| on, of each of |count| codes that lie 32 apart into a byte, the first lowest. */
RDNA_SCALAR uint32_t quant_gather_bits(const uint8_t *codes, int count, int bits, int down) {
  uint32_t byte = 0;
  for (int r = 0; r < count; r++) byte |= ((uint32_t)codes[32 * r] >> down & ((1u << bits) - 1)) << (bits * r);
  return byte;
}
/* The low nibbles of codes[0] and codes[apart] in a byte, the first in its low half. */
RDNA_SCALAR uint32_t quant_two_nibbles(const uint8_t *codes, int apart) {
  return (codes[0] & 15u) | (codes[apart] & 15u) << 4;
}
RDNA_SCALAR uint32_t quant_byte_of(uint16_t v, int i) { return (uint32_t)v >> (8 * i) & 255; }

/* Byte |i| of a block. |codes|: of all its values; |s|, |m|: of its sub-blocks. */
RDNA_SCALAR uint8_t quant_packed_byte(rdna_dtype format, int i, struct quant_block_scales block, const uint8_t *codes,
                                      const uint8_t *s, const uint8_t *m) {
  uint32_t byte = 0;
  switch (format) {
    case RDNA_Q2_K:
      byte = i < 16   ? s[i] | (uint32_t)m[i] << 4
             : i < 80 ? quant_gather_bits(codes + (i - 16) / 32 * 128 + i % 16 + (i - 16) % 32 / 16 * 16, 4, 2, 0)
             : i < 82 ? quant_byte_of(block.d, i - 80)
                      : quant_byte_of(block.m, i - 82);
      break;
    case RDNA_Q3_K:
      if (i < 32) {
        byte = quant_gather_bits(codes + i, 8, 1, 2);
      } else if (i < 96) {
        byte = quant_gather_bits(codes + (i - 32) / 32 * 128 + i % 32, 4, 2, 0);
      } else if (i < 104) {
        byte = quant_two_nibbles(s + i - 96, 8);
      } else if (i < 108) {
        for (int q = 0; q < 4; q++) byte |= (uint32_t)s[i - 104 + 4 * q] >> 4 << (2 * q);
      } else {
        byte = quant_byte_of(block.d, i - 108);
      }
      break;
    case RDNA_Q4_K:
    case RDNA_Q5_K: {
      int first = format == RDNA_Q4_K ? 16 : 48;
      byte = i < 2       ? quant_byte_of(block.d, i)
             : i < 4     ? quant_byte_of(block.m, i - 2)
             : i < 8     ? s[i - 4] | (uint32_t)s[i] >> 4 << 6
             : i < 12    ? m[i - 8] | (uint32_t)m[i - 4] >> 4 << 6
             : i < 16    ? (s[i - 8] & 15u) | (m[i - 8] & 15u) << 4
             : i < first ? quant_gather_bits(codes + i - 16, 8, 1, 4)
                         : quant_two_nibbles(codes + (i - first) / 32 * 64 + (i - first) % 32, 32);
      break;
    }
    case RDNA_Q6_K:
      byte = i < 128   ? quant_two_nibbles(codes + i / 64 * 128 + i % 64, 64)
             : i < 192 ? quant_gather_bits(codes + (i - 128) / 32 * 128 + i % 32, 4, 2, 4)
             : i < 208 ? s[i - 192]
                       : quant_byte_of(block.d, i - 208);
      break;
    default: {
      int fifth = quant_fifth_bits_at(format), nibbles = quant_bytes(format) - 16;
      if (i < 2) {
        byte = quant_byte_of(block.d, i);
      } else if (i >= nibbles) {
        byte = quant_two_nibbles(codes + i - nibbles, 16);
      } else if (quant_has_fifth_bits(format) && i >= fifth) {
        for (int b = 0; b < 8; b++) byte |= (uint32_t)codes[(i - fifth) * 8 + b] >> 4 << b;
      } else {
        byte = quant_byte_of(block.m, i - 2);
      }
    }
  }
  return (uint8_t)byte;
}

#endif
