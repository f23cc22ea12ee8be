/* How the values of every block format lie in their blocks, for the host and for the GPU alike; the layouts are
 * written out in quant_kernels.h.
 *
 * All formats are seen the same way: a run of up to 16 neighbouring values that begins at a multiple of 8 has a code
 * in each value, put together from bytes that neighbour each other in the block, and one scale and minimum:
 *
 *     code  = the bytes at quant_low_at shifted down by quant_low_shift, with the bits at quant_high_at on top
 *     value = scale * (code - quant_zero) - least, or scale * table[code]
 *
 * |format| is a constant in every call, so that what a format lacks leaves nothing behind. */
#ifndef RDNA_MATH_QUANT_UNPACK_H
#define RDNA_MATH_QUANT_UNPACK_H

#include <stdbool.h>

#include "kernel/scalar.h"
#include "rdna/tensor.h"

/* What is known when a kernel is compiled. */
#ifdef __cplusplus
#define QUANT_CONSTANT static inline constexpr
#else
#define QUANT_CONSTANT RDNA_SCALAR
#endif

/* name, dtype */
#define RDNA_QUANT_FORMATS(F) \
  F(q8_0, Q8_0)               \
  F(q4_0, Q4_0)               \
  F(q4_K, Q4_K)               \
  F(q6_K, Q6_K)               \
  F(q4_1, Q4_1)               \
  F(q5_0, Q5_0)               \
  F(q5_1, Q5_1)               \
  F(q2_K, Q2_K)               \
  F(q3_K, Q3_K)               \
  F(q5_K, Q5_K)               \
  F(iq4_nl, IQ4_NL)           \
  F(iq4_xs, IQ4_XS)           \
  F(mxfp4, MXFP4)

QUANT_CONSTANT int quant_values(rdna_dtype format) {
  return format == RDNA_Q2_K || format == RDNA_Q3_K || format == RDNA_Q4_K || format == RDNA_Q5_K ||
                 format == RDNA_Q6_K || format == RDNA_IQ4_XS
             ? 256
             : 32;
}
QUANT_CONSTANT int quant_bytes(rdna_dtype format) {
  return format == RDNA_Q8_0     ? 34
         : format == RDNA_Q4_0   ? 18
         : format == RDNA_Q4_1   ? 20
         : format == RDNA_Q5_0   ? 22
         : format == RDNA_Q5_1   ? 24
         : format == RDNA_Q2_K   ? 84
         : format == RDNA_Q3_K   ? 110
         : format == RDNA_Q4_K   ? 144
         : format == RDNA_Q5_K   ? 176
         : format == RDNA_Q6_K   ? 210
         : format == RDNA_IQ4_NL ? 18
         : format == RDNA_IQ4_XS ? 136
                                 : 17;
}
/* What the address of blocks is a multiple of: the largest power of two in the block's size, up to 16. */
QUANT_CONSTANT int quant_alignment(rdna_dtype format) {
  return (quant_bytes(format) & -quant_bytes(format)) < 16 ? quant_bytes(format) & -quant_bytes(format) : 16;
}
QUANT_CONSTANT int quant_zero(rdna_dtype format) {
  return format == RDNA_Q4_0 ? 8 : format == RDNA_Q5_0 ? 16 : format == RDNA_Q3_K ? 4 : format == RDNA_Q6_K ? 32 : 0;
}
QUANT_CONSTANT bool quant_has_least(rdna_dtype format) {
  return format == RDNA_Q4_1 || format == RDNA_Q5_1 || format == RDNA_Q2_K || format == RDNA_Q4_K ||
         format == RDNA_Q5_K;
}
QUANT_CONSTANT bool quant_has_table(rdna_dtype format) {
  return format == RDNA_IQ4_NL || format == RDNA_IQ4_XS || format == RDNA_MXFP4;
}
/* Entry |i| of the 16 signed bytes that codes number; those of MXFP4 are e2m1 numbers times two. */
QUANT_CONSTANT uint32_t quant_table_word(rdna_dtype format, int word) {
  if (format == RDNA_MXFP4)
    return word == 0 ? 0x03020100u : word == 1 ? 0x0c080604u : word == 2 ? 0xfdfeff00u : 0xf4f8fafcu;
  return word == 0 ? 0xbfad9881u : word == 1 ? 0xf6eaddcfu : word == 2 ? 0x26190d01u : 0x71594535u;
}
/* Codes with a fifth bit that all lie in one word of the block. */
QUANT_CONSTANT bool quant_has_fifth_bits(rdna_dtype format) { return format == RDNA_Q5_0 || format == RDNA_Q5_1; }
QUANT_CONSTANT int quant_fifth_bits_at(rdna_dtype format) { return format == RDNA_Q5_0 ? 2 : 4; }
QUANT_CONSTANT bool quant_has_high(rdna_dtype format) {
  return format == RDNA_Q3_K || format == RDNA_Q5_K || format == RDNA_Q6_K;
}

/* Value |v| of a block: byte, shift and mask of its low bits. */
QUANT_CONSTANT int quant_low_at(rdna_dtype format, int v) {
  return format == RDNA_Q8_0                            ? 2 + v
         : format == RDNA_Q4_0 || format == RDNA_IQ4_NL ? 2 + v % 16
         : format == RDNA_Q4_1                          ? 4 + v % 16
         : format == RDNA_Q5_0                          ? 6 + v % 16
         : format == RDNA_Q5_1                          ? 8 + v % 16
         : format == RDNA_Q2_K                          ? 16 + v / 128 * 32 + v % 32
         : format == RDNA_Q3_K                          ? 32 + v / 128 * 32 + v % 32
         : format == RDNA_Q4_K                          ? 16 + v / 64 * 32 + v % 32
         : format == RDNA_Q5_K                          ? 48 + v / 64 * 32 + v % 32
         : format == RDNA_Q6_K                          ? v / 128 * 64 + v % 64
         : format == RDNA_IQ4_XS                        ? 8 + v / 32 * 16 + v % 16
                                                        : 1 + v % 16;
}
QUANT_CONSTANT int quant_low_shift(rdna_dtype format, int v) {
  return format == RDNA_Q8_0                          ? 0
         : format == RDNA_Q2_K || format == RDNA_Q3_K ? v % 128 / 32 * 2
         : format == RDNA_Q4_K || format == RDNA_Q5_K ? v % 64 / 32 * 4
         : format == RDNA_Q6_K                        ? v % 128 / 64 * 4
                                                      : v % 32 / 16 * 4;
}
QUANT_CONSTANT uint32_t quant_low_mask(rdna_dtype format) {
  return format == RDNA_Q8_0 ? 0xff : format == RDNA_Q2_K || format == RDNA_Q3_K ? 3 : 15;
}
/* Bits of a code. */
QUANT_CONSTANT int quant_bits(rdna_dtype format) {
  return format == RDNA_Q8_0                                                 ? 8
         : format == RDNA_Q6_K                                               ? 6
         : format == RDNA_Q5_0 || format == RDNA_Q5_1 || format == RDNA_Q5_K ? 5
         : format == RDNA_Q3_K                                               ? 3
         : format == RDNA_Q2_K                                               ? 2
                                                                             : 4;
}
/* The same of the bits above them, for formats that have_high, and where they go in the code. */
QUANT_CONSTANT int quant_high_at(rdna_dtype format, int v) {
  return format == RDNA_Q3_K ? v % 32 : format == RDNA_Q5_K ? 16 + v % 32 : 128 + v / 128 * 32 + v % 32;
}
QUANT_CONSTANT int quant_high_shift(rdna_dtype format, int v) {
  return format == RDNA_Q6_K ? v % 128 / 32 * 2 : v / 32;
}
QUANT_CONSTANT uint32_t quant_high_mask(rdna_dtype format) { return format == RDNA_Q6_K ? 3 : 1; }
QUANT_CONSTANT int quant_high_up(rdna_dtype format) { return format == RDNA_Q3_K ? 2 : 4; }

/* Codes from bytes, for words of four or vectors of words (|every| 0x01010101), and for lanes with a byte each
 * (|every| 1). */
#define QUANT_LOW_CODES(format, low, v, every) \
  (((low) >> quant_low_shift(format, v)) & (int32_t)(quant_low_mask(format) * (every)))
#define QUANT_HIGH_CODES(format, high, v, every) \
  ((((high) >> quant_high_shift(format, v)) & (int32_t)(quant_high_mask(format) * (every))) << quant_high_up(format))
/* Four bits to bit 4 of four bytes. */
RDNA_SCALAR uint32_t quant_spread_bits(uint32_t four) { return ((four & 15) * 0x00204081u & 0x01010101u) << 4; }

/* The words of a block that the scales of its values are in: as quant_head_of reads them, then as quant_unfold makes
 * them ready for one half of 128 values, or for one run of 32 in IQ4_XS. */
struct quant_head {
  uint32_t w[4];
};
struct quant_scale {
  float scale, least;
};

#if defined(__AMDGCN__) || defined(__NVPTX__)
RDNA_SCALAR uint32_t quant_load_16(const char *p) { return *(const uint16_t *)p; }
/* AMD loads words whole from any address; for other GPUs the compiler puts them together. */
typedef uint32_t quant_word_at_2 __attribute__((aligned(2)));
RDNA_SCALAR uint32_t quant_load_32(rdna_dtype format, const char *p) {
  return quant_alignment(format) >= 4 ? *(const uint32_t *)p : *(const quant_word_at_2 *)p;
}
#else
RDNA_SCALAR uint32_t quant_load_16(const char *p) {
  uint16_t v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
RDNA_SCALAR uint32_t quant_load_32(rdna_dtype format, const char *p) {
  uint32_t v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
#endif

/* How many of them quant_head_of reads. */
QUANT_CONSTANT int quant_head_words(rdna_dtype format) {
  return format == RDNA_Q3_K || format == RDNA_Q4_K || format == RDNA_Q5_K ? 4
         : format == RDNA_Q2_K || format == RDNA_Q6_K                      ? 3
         : format == RDNA_IQ4_XS                                           ? 2
                                                                           : 1;
}
RDNA_SCALAR struct quant_head quant_head_of(rdna_dtype format, const char *block, int v) {
  struct quant_head h = {{0, 0, 0, 0}};
  switch (format) {
    case RDNA_Q4_1:
    case RDNA_Q5_1:
      h.w[0] = quant_load_32(format, block);
      break;
    case RDNA_Q2_K:
      h.w[0] = quant_load_32(format, block + 80);
      h.w[1] = quant_load_32(format, block + v / 128 * 8);
      h.w[2] = quant_load_32(format, block + v / 128 * 8 + 4);
      break;
    case RDNA_Q3_K:
      h.w[0] = quant_load_16(block + 108);
      for (int i = 0; i < 3; i++) h.w[i + 1] = quant_load_32(format, block + 96 + 4 * i);
      break;
    case RDNA_Q4_K:
    case RDNA_Q5_K:
      block = (const char *)__builtin_assume_aligned(block, 16);
      for (int i = 0; i < 4; i++) h.w[i] = quant_load_32(format, block + 4 * i);
      break;
    case RDNA_Q6_K:
      h.w[0] = quant_load_16(block + 208);
      h.w[1] = quant_load_32(format, block + 192 + v / 128 * 8);
      h.w[2] = quant_load_32(format, block + 192 + v / 128 * 8 + 4);
      break;
    case RDNA_IQ4_XS:
      h.w[0] = quant_load_32(format, block);
      h.w[1] = quant_load_32(format, block + 4);
      break;
    case RDNA_MXFP4:
      h.w[0] = *(const uint8_t *)block;
      break;
    default:
      h.w[0] = quant_load_16(block);
  }
  return h;
}

RDNA_SCALAR struct quant_head quant_unfold(rdna_dtype format, struct quant_head h, int v) {
  if (format == RDNA_Q4_K || format == RDNA_Q5_K) { /* 6 bits in each byte */
    uint32_t s = h.w[1], m = h.w[2], high = h.w[3];
    h.w[1] = v < 128 ? s : (high & 0x0f0f0f0f) | (s >> 2 & 0x30303030);
    h.w[2] = v < 128 ? m : (high >> 4 & 0x0f0f0f0f) | (m >> 2 & 0x30303030);
  } else if (format == RDNA_Q3_K) {
    for (int i = 1; i < 4; i++) h.w[i] >>= v / 128 * 4;
  } else if (format == RDNA_IQ4_XS) {
    h.w[1] = (h.w[1] >> (v / 32 * 4) & 15) | (h.w[0] >> (16 + v / 32 * 2) & 3) << 4;
  }
  return h;
}

/* Of the run at value |v| of the half that |h| was unfolded for. Products round in the order of the formats: d times
 * the whole number first. */
RDNA_SCALAR struct quant_scale quant_scale_of(rdna_dtype format, struct quant_head h, int v) {
  struct quant_scale s = {0, 0};
  float d = f16_to_f32((uint16_t)h.w[0]), dmin = f16_to_f32((uint16_t)(h.w[0] >> 16));
  switch (format) {
    case RDNA_Q4_1:
    case RDNA_Q5_1:
      s.scale = d, s.least = -dmin;
      break;
    case RDNA_Q2_K: {
      uint32_t both = (v < 64 ? h.w[1] : h.w[2]) >> (v / 16 % 4 * 8);
      s.scale = d * (float)(both & 15), s.least = dmin * (float)(both >> 4 & 15);
      break;
    }
    case RDNA_Q3_K: {
      int shift = v / 16 % 4 * 8;
      uint32_t low = (v < 64 ? h.w[1] : h.w[2]) >> shift & 15, high = h.w[3] >> (shift + v / 64 * 2) & 3;
      s.scale = d * (float)((int32_t)(low | high << 4) - 32);
      break;
    }
    case RDNA_Q4_K:
    case RDNA_Q5_K:
      s.scale = d * (float)(h.w[1] >> (v / 32 * 8) & 63), s.least = dmin * (float)(h.w[2] >> (v / 32 * 8) & 63);
      break;
    case RDNA_Q6_K:
      s.scale = d * (float)(int8_t)((v < 64 ? h.w[1] : h.w[2]) >> (v / 16 % 4 * 8));
      break;
    case RDNA_IQ4_XS:
      s.scale = d * (float)((int32_t)h.w[1] - 32);
      break;
    case RDNA_MXFP4: /* 2^(e - 127) for e2m1 numbers, which the table has twice as large */
      s.scale = scalar_from_bits(h.w[0] < 2 ? 0x200000u << h.w[0] : (h.w[0] - 1) << 23);
      break;
    default:
      s.scale = d;
  }
  return s;
}

#endif
