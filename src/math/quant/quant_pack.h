/* How blocks are made, on the host and on the GPU alike, which give the same bytes. See quant_unpack.h. The steps:
 *
 *   quant_wanted            what each sub-block of 16 or 32 values asks for, in f32: a scale for which code 0 is
 *                           the value of the largest magnitude; or, where the format has minimums, a scale and a
 *                           minimum for which the codes range from the smallest value to the largest
 *   quant_searched          the same where values have weights: of some scales near that the one of the least weighted
 *                           error, by least squares
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

/* Codes are whole numbers from 0 to quant_top_code, of which quant_pack_zero stands for 0; in formats with a table what
 * is counted are its entries, not their numbers. */
QUANT_CONSTANT bool quant_is_ternary(rdna_dtype format) { return format == RDNA_TQ1_0 || format == RDNA_TQ2_0; }
#define QUANT_TOP_CODE(f) ((1 << QUANT_BITS(f)) - 1)
QUANT_CONSTANT int quant_top_code_of_bits(rdna_dtype format) { QUANT_RETURN(format, QUANT_TOP_CODE); }
QUANT_CONSTANT int quant_top_code(rdna_dtype format) {
  return quant_is_ternary(format) ? 2 : quant_top_code_of_bits(format);
}
QUANT_CONSTANT int quant_pack_zero(rdna_dtype format) {
  return quant_is_ternary(format) ? 1 : quant_has_table(format) ? 127 : quant_zero(format);
}
QUANT_CONSTANT bool quant_has_power(rdna_dtype format) { return quant_scales(format) == RDNA__SCALES_POWER; }
/* Whether sub-blocks have scales of their own, whole multiples of the block's. */
QUANT_CONSTANT bool quant_has_parts(rdna_dtype format) { return quant_scale_top(format) > 0; }

/* Returns the one of larger magnitude; of two that differ in sign alone the positive one; of a NaN and another the
 * other. */
RDNA_SCALAR float quant_farther(float a, float b) {
  float ma = scalar_abs(a), mb = scalar_abs(b);
  return ma > mb || (ma == mb && a > b) || b != b ? a : b;
}

/* Scales that are powers of two by their exponent as f32 holds it, one less than the byte that blocks have: from
 * QUANT_LEAST_POWER on, so that neither they nor their inverses are subnormal. With QUANT_ENDLESS_POWER, of infinite
 * values, the largest code is infinite. */
#define QUANT_LEAST_POWER 1
#define QUANT_MOST_POWER 251
#define QUANT_ENDLESS_POWER 253
RDNA_SCALAR float quant_power_scale(uint32_t exponent) { return scalar_from_bits(exponent << 23); }
RDNA_SCALAR uint32_t quant_exponent_of(float v) { return scalar_bits(v) >> 23 & 255; }

/* The scale and minimum that a sub-block asks for. */
RDNA_SCALAR struct quant_scale quant_wanted(rdna_dtype format, const float *x) {
  struct quant_scale wanted = {0, 0};
  if (quant_pack_zero(format) > 0) {
    float far = 0;
    for (int i = 0; i < quant_run(format); i++) far = quant_farther(far, x[i]);
    uint32_t exponent = quant_exponent_of(far);
    if (quant_has_power(format)) /* the largest value has the exponent of the largest entry, 8 */
      wanted.scale = quant_power_scale(exponent == 255                    ? QUANT_ENDLESS_POWER
                                       : exponent > 3 + QUANT_LEAST_POWER ? exponent - 3
                                                                          : QUANT_LEAST_POWER);
    else
      wanted.scale = quant_is_ternary(format) ? scalar_abs(far) : far / (float)-quant_pack_zero(format);
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

/* The entry of the format's table that is the nearest to |v|, and its number; of two the lower. */
RDNA_SCALAR int quant_table_entry(rdna_dtype format, int code) {
  return (int8_t)(quant_table_word(format, code / 4) >> (code % 4 * 8));
}
RDNA_SCALAR int quant_nearest_entry(rdna_dtype format, float v) {
  int code = 0;
  for (int i = 1; i < 16; i++) {
    float middle = 0.5f * (float)(quant_table_entry(format, i - 1) + quant_table_entry(format, i));
    code = v > middle ? i : code;
  }
  return code;
}

/* The code of the number of e2m1, times two, that is the nearest to |v|; of two the one whose fraction is 0. */
RDNA_SCALAR int quant_nearest_e2m1(float v) {
  float m = scalar_abs(v);
  int code = (m > 0.5f) + (m >= 1.5f) + (m > 2.5f) + (m >= 3.5f) + (m > 5) + (m >= 7) + (m > 10);
  return v < 0 ? code + 8 : code;
}

/* What |v|, over the scale, becomes: a whole number, or an entry of the table. Formats without minimums. */
RDNA_SCALAR float quant_level(rdna_dtype format, float v) {
  if (quant_has_table(format)) return (float)quant_table_entry(format, quant_nearest_entry(format, v));
  int zero = quant_pack_zero(format);
  return (float)quant_nearest(v, -zero, quant_top_code(format) - zero);
}

/* Where values x of a sub-block have weights w, the scale that makes sum w (x - scale level)^2 the least. For the
 * levels that a scale nearby gives that is  sum w x level / sum w level^2 , and takes  (sum w x level)^2 / sum w
 * level^2 off the error. */
RDNA_SCALAR struct quant_scale quant_searched_level(rdna_dtype format, const float *x, const float *w,
                                                    struct quant_scale plain) {
  struct quant_scale best = plain;
  float most = 0;
  for (int step = -5; step <= 5; step++) { /* the largest value at 0.7 to 1.3 of the lowest code */
    float inverse = (1.0f + 0.06f * (float)step) / plain.scale, products = 0, squares = 0;
    for (int i = 0; i < quant_run(format); i++) {
      float level = quant_level(format, x[i] * inverse);
      products += w[i] * x[i] * level;
      squares += w[i] * level * level;
    }
    if (squares > 0 && products * products > most * squares) {
      most = products * products / squares;
      best.scale = products / squares;
    }
  }
  return best;
}

/* The same of a scale and a minimum: sum w (x - scale code + least)^2. */
RDNA_SCALAR struct quant_scale quant_searched_range(rdna_dtype format, const float *x, const float *w,
                                                    struct quant_scale plain) {
  struct quant_scale best = plain;
  float top = (float)quant_top_code(format), error = __builtin_inff();
  bool has_sign = !quant_has_parts(format);
  for (int step = -1; step <= 10; step++) { /* -1: as it is; then the range is a little narrower, or wider */
    float inverse = (top + (step < 0 ? 0 : 0.15f * (float)step - 0.75f)) / (plain.scale * top);
    float all = 0, codes = 0, squares = 0, values = 0, products = 0;
    for (int i = 0; i < quant_run(format); i++) {
      float code = (float)quant_nearest((x[i] + plain.least) * inverse, 0, quant_top_code(format));
      all += w[i];
      codes += w[i] * code;
      squares += w[i] * code * code;
      values += w[i] * x[i];
      products += w[i] * x[i] * code;
    }
    struct quant_scale s = plain;
    float determinant = all * squares - codes * codes;
    if (step >= 0 && determinant > 0) {
      s.scale = (all * products - values * codes) / determinant;
      s.least = (codes * products - squares * values) / determinant;
    }
    if (step >= 0 && !has_sign && !(s.least > 0)) s.least = 0, s.scale = squares > 0 ? products / squares : s.scale;
    float sum = 0;
    for (int i = 0; i < quant_run(format); i++) {
      float code = (float)quant_nearest((x[i] + plain.least) * inverse, 0, quant_top_code(format));
      float off = s.scale * code - s.least - x[i];
      sum += w[i] * off * off;
    }
    if (sum < error && (has_sign || s.scale >= 0)) error = sum, best = s;
  }
  return best;
}

/* The power of two, or one of its neighbours, with the least error. */
RDNA_SCALAR struct quant_scale quant_searched_power(rdna_dtype format, const float *x, const float *w,
                                                    struct quant_scale plain) {
  struct quant_scale best = plain;
  uint32_t exponent = quant_exponent_of(plain.scale);
  float least = __builtin_inff();
  for (uint32_t power = exponent - 1; power <= exponent + 1; power++) {
    if (power < QUANT_LEAST_POWER || power > QUANT_MOST_POWER) continue;
    float scale = quant_power_scale(power), inverse = 1.0f / scale, error = 0;
    for (int i = 0; i < quant_run(format); i++) {
      float off = scale * (float)quant_table_entry(format, quant_nearest_e2m1(x[i] * inverse)) - x[i];
      error += w[i] * off * off;
    }
    if (error < least) least = error, best.scale = scale;
  }
  return best;
}

/* |plain|: what quant_wanted gives. Where that is no scale, or no weight counts, it stays. Ternary formats have one
 * scale for several sub-blocks, which the largest value makes. */
RDNA_SCALAR struct quant_scale quant_searched(rdna_dtype format, const float *x, const float *w,
                                              struct quant_scale plain) {
  if (quant_is_ternary(format) || plain.scale == 0 || !(scalar_abs(plain.scale) < __builtin_inff())) return plain;
  if (quant_has_power(format)) return quant_searched_power(format, x, w, plain);
  return quant_pack_zero(format) > 0 ? quant_searched_level(format, x, w, plain)
                                     : quant_searched_range(format, x, w, plain);
}

/* The block's own scales: f16 bits of d, and of m or dmin; or a power's byte. */
struct quant_block_scales {
  uint16_t d, m;
};
/* |most|: of the scales that sub-blocks ask for the one of the largest magnitude, and the largest of their minimums. */
RDNA_SCALAR struct quant_block_scales quant_scales_of_block(rdna_dtype format, struct quant_scale most) {
  struct quant_block_scales s = {0, 0};
  if (quant_has_power(format)) {
    s.d = (uint16_t)(quant_exponent_of(most.scale) + 1);
  } else if (!quant_has_parts(format)) {
    /* adding 0 makes -0 into 0, whose sign would depend on the order of sub-blocks */
    s.d = f32_to_f16(most.scale + 0.0f);
    s.m = f32_to_f16(-most.least + 0.0f);
  } else {
    float top = (float)(quant_pack_zero(format) > 0 ? -quant_scale_top(format) : quant_scale_top(format));
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
  if (quant_has_power(format)) {
    part.scale.scale = quant_power_scale(block.d - 1u);
    return part;
  }
  float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  if (!quant_has_parts(format)) {
    part.scale.scale = d;
    part.scale.least = -m;
    return part;
  }
  int top = quant_scale_top(format);
  if (quant_pack_zero(format) > 0) {
    int s = quant_nearest(d != 0 ? wanted.scale / d : 0, -top, top - 1);
    bool offset = quant_scales(format) == RDNA__SCALES_Q3_K || quant_scales(format) == RDNA__SCALES_IQ4_XS;
    part.s = (uint8_t)(offset ? s + 32 : s);
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
  int zero = quant_pack_zero(format);
  if (quant_has_power(format)) return (uint8_t)quant_nearest_e2m1(x * inverse);
  if (quant_has_table(format)) return (uint8_t)quant_nearest_entry(format, x * inverse);
  float v = zero > 0 ? x * inverse : (x + scale.least) * inverse;
  return (uint8_t)(quant_nearest(v, -zero, quant_top_code(format) - zero) + zero);
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
/* |count| codes, |apart| apart, as digits of base 3 in a byte, the first the highest; see quant_trits. */
RDNA_SCALAR uint32_t quant_pack_trits(const uint8_t *codes, int count, int apart) {
  uint32_t number = 0;
  for (int n = 0; n < 5; n++) number = number * 3 + (n < count ? codes[n * apart] : 0);
  return (number * 256 + 242) / 243;
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
    case RDNA_IQ4_XS:
      if (i < 2) {
        byte = quant_byte_of(block.d, i);
      } else if (i < 4) {
        for (int q = 0; q < 4; q++) byte |= (uint32_t)s[4 * (i - 2) + q] >> 4 << (2 * q);
      } else if (i < 8) {
        byte = quant_two_nibbles(s + 2 * (i - 4), 1);
      } else {
        byte = quant_two_nibbles(codes + (i - 8) / 16 * 32 + (i - 8) % 16, 16);
      }
      break;
    case RDNA_MXFP4:
      byte = i == 0 ? block.d : quant_two_nibbles(codes + i - 1, 16);
      break;
    case RDNA_TQ2_0:
      byte = i < 64 ? quant_gather_bits(codes + i / 32 * 128 + i % 32, 4, 2, 0) : quant_byte_of(block.d, i - 64);
      break;
    case RDNA_TQ1_0:
      byte = i < 32   ? quant_pack_trits(codes + i, 5, 32)
             : i < 48 ? quant_pack_trits(codes + 160 + i - 32, 5, 16)
             : i < 52 ? quant_pack_trits(codes + 240 + i - 48, 4, 4)
                      : quant_byte_of(block.d, i - 52);
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
