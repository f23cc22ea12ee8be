/* How blocks of the formats IQ1, IQ2 and IQ3 are made, on the host and on the GPU alike, which give the same bytes.
 * Their codes number entries of a grid (quant_grids.h), which are found by search. The steps for a block of 256 values:
 *
 * - quant_wanted_scale: what each part, the 16 or 32 values that share a scale, asks for. Of scales from about the
 *   largest value down the best for levels that are chosen freely, then of some near that the best for entries of the
 *   grid, fitted to them by least squares.
 * - quant_choose_d: the block's d in f16, of some the one whose odd multiples come nearest to these scales.
 * - quant_choose_s: each part's multiple, of three the one of the least error; d is fitted to the codes of all.
 * - quant_fit_part, with |store|: each part's codes for the scale as it is stored.
 * - quant_encoded_byte: the block's bytes.
 *
 * Errors are squares times weights. For a scale the entry of the least error is found, of two equal ones the first;
 * where 7 bits have the signs of 8 values and the number of minus signs is odd, entry and value are found with which
 * one value of the wrong sign costs the least.
 *
 * A value is scale * byte, the bytes being those of quant_coded.h; scale = d * (2 s + 1) * quant_scale_unit. */
#ifndef RDNA_MATH_QUANT_ENCODE_H
#define RDNA_MATH_QUANT_ENCODE_H

#include "math/quant/quant_coded.h"

/* ---- what formats differ in ---- */

QUANT_CONSTANT bool quant_is_iq1(rdna_dtype format) { return format == RDNA_IQ1_S || format == RDNA_IQ1_M; }
QUANT_CONSTANT bool quant_is_iq3(rdna_dtype format) { return format == RDNA_IQ3_XXS || format == RDNA_IQ3_S; }
/* Whether the last of 8 signs follows from the others. */
QUANT_CONSTANT bool quant_has_even_signs(rdna_dtype format) {
  return format == RDNA_IQ2_XXS || format == RDNA_IQ2_XS || format == RDNA_IQ3_XXS;
}
/* Values that share a scale s. */
QUANT_CONSTANT int quant_part(rdna_dtype format) {
  return format == RDNA_IQ2_XS || format == RDNA_IQ2_S || format == RDNA_IQ1_M ? 16 : 32;
}
QUANT_CONSTANT int quant_top_s(rdna_dtype format) { return quant_is_iq1(format) ? 7 : 15; }
QUANT_CONSTANT float quant_scale_unit(rdna_dtype format) {
  return format == RDNA_IQ3_S ? 1.0f : format == RDNA_IQ3_XXS ? 0.25f : 0.125f;
}
/* Values of an entry, and how many levels each has; 2 or 3 bits hold one. */
QUANT_CONSTANT int quant_entry_values(rdna_dtype format) { return quant_is_iq3(format) ? 4 : 8; }
QUANT_CONSTANT int quant_levels(rdna_dtype format) { return quant_is_iq3(format) ? 8 : 3; }
QUANT_CONSTANT int quant_entries(rdna_dtype format) {
  return format == RDNA_IQ2_S                            ? 1024
         : quant_is_iq1(format)                          ? 2048
         : format == RDNA_IQ2_XS || format == RDNA_IQ3_S ? 512
                                                         : 256;
}
RDNA_SCALAR uint32_t quant_entry(rdna_dtype format, uint32_t index) {
  return format == RDNA_IQ2_XXS   ? quant_grid_iq2_xxs[index]
         : format == RDNA_IQ2_XS  ? quant_grid_iq2_xs[index]
         : format == RDNA_IQ2_S   ? quant_grid_iq2_s[index]
         : format == RDNA_IQ3_XXS ? quant_grid_iq3_xxs[index]
         : format == RDNA_IQ3_S   ? quant_grid_iq3_s[index]
                                  : quant_grid_iq1[index];
}
/* The byte of a level: a magnitude, or in IQ1, with |shift| 1 or -1, a number with its sign. */
RDNA_SCALAR float quant_level_byte(rdna_dtype format, int level, int shift) {
  return (float)(quant_is_iq1(format)     ? 8 * level - 8 + shift
                 : format == RDNA_IQ3_XXS ? 4 + 8 * level + (level == 7 ? 2 : 0)
                 : format == RDNA_IQ3_S   ? 1 + 2 * level
                                          : 8 + 17 * level + (level == 2 ? 1 : 0));
}
QUANT_CONSTANT float quant_top_byte(rdna_dtype format) {
  return quant_is_iq1(format) ? 9 : format == RDNA_IQ3_XXS ? 62 : format == RDNA_IQ3_S ? 15 : 43;
}

/* ---- a block while it is made ---- */

struct quant_encoding {
  float x[256], w[256];          /* no NaN; weights above 0 */
  float wanted[16], squares[16]; /* of parts: the scale, and sum of w byte^2 with it */
  uint16_t index[64];            /* of entries */
  uint8_t signs[32];             /* of 8 values: bit i is 1 where value i is minus; in IQ1 1 where 1/8 is taken off */
  uint8_t s[16];
  uint16_t d;
};

/* What the includer defines: its tables; the entry of the least error for the values x of an entry; and, where several
 * threads make a block, all of them doing the same, which of them writes and how they see what it wrote. */
struct quant_search;
struct quant_best {
  float cost;
  uint32_t index;
};
/* |odd|: with the least that one sign turned costs; |shift|: in IQ1. The errors that it sums are those of
 * quant_level_cost, those of values 0, 2, 4, 6 first, one after the other, then those of 1, 3, 5, 7, then these two
 * sums, and at last the smallest quant_turn_cost. No number of an error is less than infinity: entry 0. */
RDNA_SCALAR struct quant_best quant_find(rdna_dtype format, struct quant_search *search, const float *x, const float *w,
                                         float scale, int shift, bool odd);
RDNA_SCALAR bool quant_is_writer(void);
RDNA_SCALAR void quant_meet(void);

RDNA_SCALAR float quant_level_cost(rdna_dtype format, float x, float w, float scale, int level, int shift) {
  float off = (quant_is_iq1(format) ? x : scalar_abs(x)) - scale * quant_level_byte(format, level, shift);
  return w * off * off;
}
/* What the wrong sign adds: w (|x| + v)^2 - w (|x| - v)^2. */
RDNA_SCALAR float quant_turn_cost(rdna_dtype format, float x, float w, float scale, int level) {
  return 4 * w * scalar_abs(x) * scale * quant_level_byte(format, level, 0);
}

/* ---- eight values, and parts of them, for a scale ---- */

struct quant_eight_code {
  uint32_t index[2], signs;
  float cost;
};

/* Bytes of eight values, |code| as the block stores it. */
RDNA_SCALAR struct quant_eight quant_bytes_of(rdna_dtype format, const struct quant_eight_code *code) {
  uint32_t entry = quant_entry(format, code->index[0]);
  if (quant_is_iq1(format)) return quant_iq1_eight(entry, code->signs);
  if (!quant_is_iq3(format)) return quant_iq2_eight(entry, code->signs);
  uint32_t second = quant_entry(format, code->index[1]);
  bool even = quant_has_even_signs(format);
  struct quant_eight e = {
      {quant_negate(even ? quant_iq3_xxs_four(entry) : quant_iq3_s_four(entry), code->signs),
       quant_negate(even ? quant_iq3_xxs_four(second) : quant_iq3_s_four(second), code->signs >> 4)}};
  return e;
}
RDNA_SCALAR float quant_byte_at(const struct quant_eight *e, int i) {
  return (float)(int8_t)(e->w[i / 4] >> (i % 4 * 8));
}

/* The value whose sign costs the least where it is wrong. */
RDNA_SCALAR uint32_t quant_turned(rdna_dtype format, const struct quant_eight_code *code, const float *x,
                                  const float *w) {
  struct quant_eight e = quant_bytes_of(format, code);
  uint32_t at = 0;
  float least = __builtin_inff();
  for (int i = 0; i < 8; i++) {
    float cost = w[i] * scalar_abs(x[i]) * scalar_abs(quant_byte_at(&e, i));
    if (cost < least) least = cost, at = (uint32_t)i;
  }
  return at;
}

RDNA_SCALAR struct quant_eight_code quant_code_eight(rdna_dtype format, struct quant_search *search, const float *x,
                                                     const float *w, float scale, int shift) {
  struct quant_eight_code code = {{0, 0}, 0, 0};
  if (quant_is_iq1(format)) {
    struct quant_best best = quant_find(format, search, x, w, scale, shift, false);
    code.index[0] = best.index, code.cost = best.cost, code.signs = shift < 0;
    return code;
  }
  for (int i = 0; i < 8; i++) code.signs |= (uint32_t)(x[i] < 0) << i;
  bool odd = quant_has_even_signs(format) && __builtin_popcount(code.signs) % 2 == 1;
  if (!quant_is_iq3(format)) {
    struct quant_best best = quant_find(format, search, x, w, scale, 0, odd);
    code.index[0] = best.index, code.cost = best.cost;
  } else {
    struct quant_best first = quant_find(format, search, x, w, scale, 0, false);
    struct quant_best second = quant_find(format, search, x + 4, w + 4, scale, 0, false);
    if (odd) { /* one of the two has the wrong sign */
      struct quant_best first_turned = quant_find(format, search, x, w, scale, 0, true);
      struct quant_best second_turned = quant_find(format, search, x + 4, w + 4, scale, 0, true);
      if (first_turned.cost + second.cost <= first.cost + second_turned.cost) {
        first = first_turned;
      } else {
        second = second_turned;
      }
    }
    code.index[0] = first.index, code.index[1] = second.index, code.cost = first.cost + second.cost;
  }
  if (odd) code.signs ^= 1u << quant_turned(format, &code, x, w);
  return code;
}

/* The codes of a part for a scale: their error, and sums for fitting the scale to them. */
struct quant_fit {
  float cost, products, squares; /* sum of w x byte, of w byte^2 */
};

/* In IQ1_S |shift| is the part's; in IQ1_M each eight have the better of two. |store|: keeps the codes in |e|. */
RDNA_SCALAR struct quant_fit quant_fit_shifted(rdna_dtype format, struct quant_search *search, struct quant_encoding *e,
                                               int part, float scale, int shift, bool store) {
  struct quant_fit fit = {0, 0, 0};
  for (int l = 0; l < quant_part(format) / 8; l++) {
    int eight = part * (quant_part(format) / 8) + l;
    const float *x = e->x + 8 * eight, *w = e->w + 8 * eight;
    struct quant_eight_code code = {{0, 0}, 0, __builtin_inff()};
    for (int turn = 0; turn < (format == RDNA_IQ1_M ? 2 : 1); turn++) {
      struct quant_eight_code c = quant_code_eight(format, search, x, w, scale, turn ? -shift : shift);
      if (c.cost < code.cost || turn == 0) code = c;
    }
    struct quant_eight bytes = quant_bytes_of(format, &code);
    fit.cost += code.cost;
    for (int i = 0; i < 8; i++) {
      float byte = quant_byte_at(&bytes, i);
      fit.products += w[i] * x[i] * byte;
      fit.squares += w[i] * byte * byte;
    }
    if (store && quant_is_writer()) {
      e->signs[eight] = (uint8_t)code.signs;
      if (quant_is_iq3(format)) {
        e->index[2 * eight] = (uint16_t)code.index[0];
        e->index[2 * eight + 1] = (uint16_t)code.index[1];
      } else {
        e->index[eight] = (uint16_t)code.index[0];
      }
    }
  }
  return fit;
}
RDNA_SCALAR struct quant_fit quant_fit_part(rdna_dtype format, struct quant_search *search, struct quant_encoding *e,
                                            int part, float scale, bool store) {
  if (format != RDNA_IQ1_S) return quant_fit_shifted(format, search, e, part, scale, 1, store);
  struct quant_fit best = {0, 0, 0};
  int shift = 1;
  for (int turn = 0; turn < (store ? 3 : 2); turn++) { /* the third is the better one again */
    struct quant_fit fit =
        quant_fit_shifted(format, search, e, part, scale, turn == 2 ? shift : 1 - 2 * turn, turn == 2);
    if (turn == 0 || (turn == 1 && fit.cost < best.cost)) best = fit, shift = 1 - 2 * turn;
  }
  return best;
}

/* ---- scales ---- */

/* How much of the error a scale takes off that is fitted to codes. */
RDNA_SCALAR float quant_gain(float products, float squares) {
  return products > 0 && squares > 0 ? products * products / squares : 0;
}

/* The byte nearest to |v|, 0 or more, of levels that are chosen freely; in IQ1 without its eighth. */
RDNA_SCALAR float quant_free_byte(rdna_dtype format, float v) {
  if (quant_is_iq1(format)) return v > 4 ? 8 : 0;
  if (!quant_is_iq3(format)) return v > 34 ? 43 : v > 16.5f ? 25 : 8;
  float step = format == RDNA_IQ3_S ? 2 : 8, level = __builtin_rintf((v - step / 2) / step);
  level = level > 0 ? (level < 7 ? level : 7) : 0;
  return quant_level_byte(format, (int)level, 0);
}
/* The best of scales from 1.2 times the one that makes the largest value the largest byte down to a third of that. */
RDNA_SCALAR float quant_free_scale(rdna_dtype format, const float *x, const float *w, float largest) {
  float scale = 1.2f * largest / quant_top_byte(format), best = 0, most = 0;
  for (int step = 0; step < 16; step++, scale *= 0.92f) {
    float products = 0, squares = 0, inverse = 1 / scale;
    for (int i = 0; i < quant_part(format); i++) {
      float byte = quant_free_byte(format, scalar_abs(x[i]) * inverse);
      products += w[i] * scalar_abs(x[i]) * byte;
      squares += w[i] * byte * byte;
    }
    float gain = quant_gain(products, squares);
    if (gain > most) most = gain, best = products / squares;
  }
  return best;
}

RDNA_SCALAR void quant_wanted_scale(rdna_dtype format, struct quant_search *search, struct quant_encoding *e,
                                    int part) {
  const float *x = e->x + part * quant_part(format), *w = e->w + part * quant_part(format);
  float largest = 0, best = 0, squares = 0, most = 0;
  for (int i = 0; i < quant_part(format); i++) largest = scalar_abs(x[i]) > largest ? scalar_abs(x[i]) : largest;
  float middle = largest > 0 ? quant_free_scale(format, x, w, largest) : 0;
  for (int step = 0; step < 4 && middle > 0; step++) { /* the last: what was fitted to the best codes */
    float scale = step == 3 ? best : middle * (1 + 0.1f * (float)(step - 1));
    if (!(scale > 0)) continue;
    struct quant_fit fit = quant_fit_part(format, search, e, part, scale, false);
    float gain = quant_gain(fit.products, fit.squares);
    if (gain > most) most = gain, best = fit.products / fit.squares, squares = fit.squares;
  }
  if (quant_is_writer()) e->wanted[part] = best, e->squares[part] = squares;
}

/* The whole number s for which d * (2 s + 1) is nearest to |scale|, both over the unit. */
RDNA_SCALAR int quant_nearest_s(rdna_dtype format, float scale, float d) {
  float s = (scale / d - 1) * 0.5f;
  int top = quant_top_s(format);
  return s > 0 ? (s < (float)top ? (int)__builtin_rintf(s) : top) : 0;
}
/* d * unit from d in f16, and back. */
RDNA_SCALAR float quant_unit_of(rdna_dtype format, uint16_t d) { return f16_to_f32(d) * quant_scale_unit(format); }
RDNA_SCALAR uint16_t quant_d_of(rdna_dtype format, float unit) { return f32_to_f16(unit / quant_scale_unit(format)); }

RDNA_SCALAR uint16_t quant_choose_d(rdna_dtype format, const struct quant_encoding *e) {
  const int parts = 256 / quant_part(format);
  float most = 0, least = __builtin_inff(), top = (float)(2 * quant_top_s(format) + 1);
  for (int j = 0; j < parts; j++) most = e->wanted[j] > most ? e->wanted[j] : most;
  uint16_t best = quant_d_of(format, most / top);
  for (int step = 0; step < 24; step++) {
    uint16_t d = quant_d_of(format, most / (top * (0.75f + 0.0125f * (float)step)));
    float unit = quant_unit_of(format, d), error = 0;
    if (!(unit > 0)) continue;
    for (int j = 0; j < parts; j++) {
      float off = e->wanted[j] - unit * (float)(2 * quant_nearest_s(format, e->wanted[j], unit) + 1);
      error += e->squares[j] * off * off;
    }
    if (error < least) least = error, best = d;
  }
  return best;
}

/* Each part's s for e->d, and the d in f16 that fits the codes best. */
RDNA_SCALAR uint16_t quant_choose_s(rdna_dtype format, struct quant_search *search, struct quant_encoding *e,
                                    uint16_t d) {
  float unit = quant_unit_of(format, d), products = 0, squares = 0;
  for (int j = 0; j < 256 / quant_part(format); j++) {
    int near = quant_nearest_s(format, e->wanted[j], unit), s = near;
    struct quant_fit best = {__builtin_inff(), 0, 0};
    for (int t = near > 0 ? near - 1 : 0; t <= near + 1 && t <= quant_top_s(format); t++) {
      struct quant_fit fit = quant_fit_part(format, search, e, j, unit * (float)(2 * t + 1), false);
      if (fit.cost < best.cost) best = fit, s = t;
    }
    products += (float)(2 * s + 1) * best.products;
    squares += (float)(2 * s + 1) * (float)(2 * s + 1) * best.squares;
    if (quant_is_writer()) e->s[j] = (uint8_t)s;
  }
  uint16_t fitted = quant_d_of(format, squares > 0 ? products / squares : 0);
  return f16_to_f32(fitted) > 0 && f16_to_f32(fitted) < __builtin_inff() ? fitted : d;
}

/* ---- a block ---- */

/* |x|, |w|: 256 values, and their weights or NULL; thread |first| of |step| that make the block. A NaN becomes 0. What
 * counts for less than 2^-20 of the most counts for 2^-20, so that its code is of use too. */
RDNA_SCALAR void quant_encode_load(struct quant_encoding *e, const float *x, const float *w, int first, int step) {
  float most = 0;
  for (int i = 0; w && i < 256; i++) most = w[i] > most ? w[i] : most;
  for (int i = first; i < 256; i += step) {
    e->x[i] = x[i] == x[i] ? x[i] : 0;
    e->w[i] = !(most > 0) ? 1 : w[i] > most * 0x1p-20f ? w[i] : most * 0x1p-20f;
  }
}
/* |e|: loaded. Makes all but the bytes. */
RDNA_SCALAR void quant_encode(rdna_dtype format, struct quant_search *search, struct quant_encoding *e) {
  const int parts = 256 / quant_part(format);
  float largest = 0;
  for (int i = 0; i < 256; i++) largest = scalar_abs(e->x[i]) > largest ? scalar_abs(e->x[i]) : largest;
  uint16_t d = quant_d_of(format, largest / (quant_top_byte(format) * (float)(2 * quant_top_s(format) + 1)));
  bool is_number = f16_to_f32(d) < __builtin_inff();
  if (is_number) {
    for (int j = 0; j < parts; j++) quant_wanted_scale(format, search, e, j);
    quant_meet();
    d = quant_choose_d(format, e);
  }
  if (is_number && f16_to_f32(d) > 0) {
    uint16_t fitted = quant_choose_s(format, search, e, d);
    quant_meet();
    d = fitted;
    for (int j = 0; j < parts; j++) {
      float scale = quant_unit_of(format, d) * (float)(2 * e->s[j] + 1);
      (void)quant_fit_part(format, search, e, j, scale, true);
    }
  } else if (quant_is_writer()) { /* nothing but zeros, or too large for f16 */
    for (int i = 0; i < 64; i++) e->index[i] = 0, e->signs[i / 2] = 0, e->s[i / 4] = 0;
  }
  if (quant_is_writer()) e->d = d;
  quant_meet();
}

/* Byte |k| of the word of four times 7 signs and s, of run |run|. */
RDNA_SCALAR uint32_t quant_signs_byte(const struct quant_encoding *e, int run, int k) {
  uint32_t word = (uint32_t)e->s[run] << 28;
  for (int l = 0; l < 4; l++) word |= (e->signs[4 * run + l] & 127u) << (7 * l);
  return word >> (8 * k) & 255;
}
/* The bits above the lowest 8 of |count| indices from |first| on, |bits| each, the first lowest. */
RDNA_SCALAR uint32_t quant_high_of(const struct quant_encoding *e, int first, int count, int bits) {
  uint32_t all = 0;
  for (int l = 0; l < count; l++) all |= (uint32_t)e->index[first + l] >> 8 << (bits * l);
  return all;
}
/* s of two parts. */
RDNA_SCALAR uint32_t quant_two_s(const struct quant_encoding *e, int first) {
  return e->s[first] | (uint32_t)e->s[first + 1] << 4;
}
/* Byte |i| of a block. */
RDNA_SCALAR uint8_t quant_encoded_byte(rdna_dtype format, int i, const struct quant_encoding *e) {
  if (format != RDNA_IQ1_M && i < 2) return (uint8_t)(e->d >> (8 * i));
  uint32_t byte = 0;
  int at = i - 2, run = at / 8, k = at % 8;
  switch (format) {
    case RDNA_IQ2_XXS:
      byte = k < 4 ? e->index[4 * run + k] : quant_signs_byte(e, run, k - 4);
      break;
    case RDNA_IQ2_XS:
      byte =
          i < 66 ? (e->index[at / 2] | (e->signs[at / 2] & 127u) << 9) >> (at % 2 * 8) : quant_two_s(e, 2 * (i - 66));
      break;
    case RDNA_IQ2_S:
      byte = i < 34   ? e->index[at]
             : i < 66 ? e->signs[i - 34]
             : i < 74 ? quant_high_of(e, 4 * (i - 66), 4, 2)
                      : quant_two_s(e, 2 * (i - 74));
      break;
    case RDNA_IQ3_XXS:
      byte = i < 66 ? e->index[at] : quant_signs_byte(e, (i - 66) / 4, (i - 66) % 4);
      break;
    case RDNA_IQ3_S:
      byte = i < 66    ? e->index[at]
             : i < 74  ? quant_high_of(e, 8 * (i - 66), 8, 1)
             : i < 106 ? e->signs[i - 74]
                       : quant_two_s(e, 2 * (i - 106));
      break;
    case RDNA_IQ1_S:
      if (i < 34) {
        byte = e->index[at];
      } else {
        run = (i - 34) / 2;
        byte = (quant_high_of(e, 4 * run, 4, 3) | (uint32_t)e->s[run] << 12 | (uint32_t)e->signs[4 * run] << 15) >>
               (i % 2 * 8);
      }
      break;
    default: /* IQ1_M */
      if (i < 32) {
        byte = e->index[i];
      } else if (i < 48) {
        at = 2 * (i - 32);
        byte = quant_high_of(e, at, 2, 4) | (uint32_t)e->signs[at] << 3 | (uint32_t)e->signs[at + 1] << 7;
      } else {
        int word = (i - 48) / 2;
        for (int q = 0; q < 4; q++) byte |= (uint32_t)e->s[4 * word + q] << (3 * q);
        byte = (byte | (e->d >> (4 * word) & 15u) << 12) >> (i % 2 * 8);
      }
  }
  return (uint8_t)byte;
}

#endif
