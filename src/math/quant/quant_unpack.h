/* How to find the values of every block format in their blocks, on the host and on the GPU alike; the layouts are
 * written out in base/block_formats.h.
 *
 * All formats but those of quant_coded.h are read the same way. Up to 16 neighbouring values that begin at a multiple
 * of 8 have their low bits in as many neighbouring bytes of the block, and their high bits, if any, in others; they
 * share a scale and a minimum:
 *
 *     code  = low bits of the byte at quant_low_at, from bit quant_low_shift on, and above them the high bits
 *     value = scale * (code - quant_zero) - least          |least| is what is subtracted: the format's dmin m, or -m
 *           = scale * table[code], if the format has a table
 *
 * A span is the number of values whose low bits share bytes. A span of 32 with 4 low bits (q4_0), in 16 bytes:
 *
 *     byte           0          1         ...   15
 *     bits 0 to 3    value 0    value 1   ...   value 15
 *     bits 4 to 7    value 16   value 17  ...   value 31
 *
 * A span of 128 with 2 low bits (q2_K), in 32 bytes: byte l has values l, l + 32, l + 64 and l + 96, lowest bits first.
 *
 * |format| is a constant in every call, so that the compiler drops the code for what a format lacks. */
#ifndef RDNA_MATH_QUANT_UNPACK_H
#define RDNA_MATH_QUANT_UNPACK_H

#include <stdbool.h>

#include "base/block_formats.h"
#include "kernel/scalar.h"
#include "rdna/tensor.h"

/* Of a function and of a variable: constexpr in device code, so that a kernel finds constants. */
#ifdef __cplusplus
#define QUANT_CONSTANT static inline constexpr
#define QUANT_KNOWN constexpr
#pragma clang diagnostic ignored "-Wmissing-designated-field-initializers" /* 0, as in C */
#else
#define QUANT_CONSTANT RDNA_SCALAR
#define QUANT_KNOWN const
#endif

/* name, dtype */
#define RDNA_QUANT_FORMAT_(F, name, NAME, ...) F(name, NAME)
#define RDNA_QUANT_FORMATS(F) RDNA_BLOCK_FORMATS(RDNA_QUANT_FORMAT_, F)

/* The body of a function of |format|, and perhaps |v|: returns ASK(f), where |f| is the format's struct
 * rdna__block_layout. Each format has its own case, in which |f| is a constant. */
#define QUANT_CASE_(ASK, name, NAME, ggml, block_values, block_bytes, quantize, vector, ...)               \
  case RDNA_##NAME: {                                                                                      \
    QUANT_KNOWN struct rdna__block_layout f = {.values = block_values, .bytes = block_bytes, __VA_ARGS__}; \
    return ASK(f);                                                                                         \
  }
#define QUANT_RETURN(format, ASK)        \
  switch (format) {                      \
    RDNA_BLOCK_FORMATS(QUANT_CASE_, ASK) \
    default:                             \
      return 0;                          \
  }

#define QUANT_VALUES(f) f.values
QUANT_CONSTANT int quant_values(rdna_dtype format) { QUANT_RETURN(format, QUANT_VALUES); }
#define QUANT_BYTES(f) f.bytes
QUANT_CONSTANT int quant_bytes(rdna_dtype format) { QUANT_RETURN(format, QUANT_BYTES); }
/* The alignment in bytes that a buffer of blocks must have: the largest power of two in the block's size, up to 16. */
#define QUANT_ALIGNMENT(f) ((f.bytes & -f.bytes) < 16 ? f.bytes & -f.bytes : 16)
QUANT_CONSTANT int quant_alignment(rdna_dtype format) { QUANT_RETURN(format, QUANT_ALIGNMENT); }
#define QUANT_SPAN(f) f.span
QUANT_CONSTANT int quant_span(rdna_dtype format) { QUANT_RETURN(format, QUANT_SPAN); }
#define QUANT_RUN(f) f.run
QUANT_CONSTANT int quant_run(rdna_dtype format) { QUANT_RETURN(format, QUANT_RUN); }
#define QUANT_ZERO(f) f.zero
QUANT_CONSTANT int quant_zero(rdna_dtype format) { QUANT_RETURN(format, QUANT_ZERO); }
#define QUANT_LEAST(f) f.least
QUANT_CONSTANT bool quant_has_least(rdna_dtype format) { QUANT_RETURN(format, QUANT_LEAST); }

/* How the scales are stored (an rdna__block_scales), the byte at which d is, the largest stored magnitude. */
#define QUANT_SCALES(f) f.scales
__attribute__((always_inline)) QUANT_CONSTANT int quant_scales(rdna_dtype format) {
  QUANT_RETURN(format, QUANT_SCALES);
}
#define QUANT_D_AT(f) f.d_at
__attribute__((always_inline)) QUANT_CONSTANT int quant_d_at(rdna_dtype format) { QUANT_RETURN(format, QUANT_D_AT); }
#define QUANT_SCALE_TOP(f) f.scale_top
QUANT_CONSTANT int quant_scale_top(rdna_dtype format) { QUANT_RETURN(format, QUANT_SCALE_TOP); }
/* Whether codes and scales are read by quant_coded.h, which turns codes into signed bytes. */
QUANT_CONSTANT bool quant_is_coded(rdna_dtype format) { return quant_scales(format) == RDNA__SCALES_CODED; }
#define QUANT_MOST(f) f.most
QUANT_CONSTANT int quant_most(rdna_dtype format) { QUANT_RETURN(format, QUANT_MOST); }
/* Whether each half of 128 values has its scales in two words that hold none of the other half's. */
QUANT_CONSTANT bool quant_has_halves(rdna_dtype format) {
  return quant_scales(format) == RDNA__SCALES_Q2_K || quant_scales(format) == RDNA__SCALES_Q6_K;
}

#define QUANT_TABLE(f) f.table
QUANT_CONSTANT int quant_table(rdna_dtype format) { QUANT_RETURN(format, QUANT_TABLE); }
QUANT_CONSTANT
bool quant_has_table(rdna_dtype format) { return quant_table(format) != RDNA__TABLE_NONE; }
/* The table has 16 signed bytes, which a code indexes: its word |word|, entry 4 word in the lowest byte. */
QUANT_CONSTANT uint32_t quant_table_word(rdna_dtype format, int word) {
  if (quant_table(format) == RDNA__TABLE_E2M1)
    return word == 0 ? 0x03020100u : word == 1 ? 0x0c080604u : word == 2 ? 0xfdfeff00u : 0xf4f8fafcu;
  return word == 0 ? 0xbfad9881u : word == 1 ? 0xf6eaddcfu : word == 2 ? 0x26190d01u : 0x71594535u;
}

/* The byte at which the fifth bits of a block of 32 codes are: a word with bit i for value i; 0: codes have none. */
#define QUANT_FIFTH_AT(f) f.fifth_at
QUANT_CONSTANT int quant_fifth_bits_at(rdna_dtype format) { QUANT_RETURN(format, QUANT_FIFTH_AT); }
QUANT_CONSTANT
bool quant_has_fifth_bits(rdna_dtype format) { return quant_fifth_bits_at(format) != 0; }

/* Where the low bits of a block's value |v| are: byte, lowest bit, mask. A span's take QUANT_LOW_BYTES bytes. */
#define QUANT_LOW_BITS(f) f.low_bits
QUANT_CONSTANT int quant_low_bits(rdna_dtype format) { QUANT_RETURN(format, QUANT_LOW_BITS); }
#define QUANT_LOW_BYTES(f) (f.span * f.low_bits / 8)
#define QUANT_LOW_AT(f) \
  (f.low_at + (f.span < f.values ? v / f.span * QUANT_LOW_BYTES(f) : 0) + (f.low_bits < 8 ? v % QUANT_LOW_BYTES(f) : v))
QUANT_CONSTANT int quant_low_at(rdna_dtype format, int v) { QUANT_RETURN(format, QUANT_LOW_AT); }
#define QUANT_LOW_SHIFT(f) (f.low_bits < 8 ? v % f.span / QUANT_LOW_BYTES(f) * f.low_bits : 0)
QUANT_CONSTANT
int quant_low_shift(rdna_dtype format, int v) { QUANT_RETURN(format, QUANT_LOW_SHIFT); }
#define QUANT_LOW_MASK(f) ((1u << f.low_bits) - 1)
QUANT_CONSTANT uint32_t quant_low_mask(rdna_dtype format) { QUANT_RETURN(format, QUANT_LOW_MASK); }

/* The same of the high bits, which 32 bytes hold for QUANT_HIGH_SPAN values; quant_high_up: their lowest bit in the
 * code. */
#define QUANT_HIGH_BITS(f) f.high_bits
QUANT_CONSTANT int quant_high_bits(rdna_dtype format) { QUANT_RETURN(format, QUANT_HIGH_BITS); }
QUANT_CONSTANT
bool quant_has_high(rdna_dtype format) { return quant_high_bits(format) != 0; }
#define QUANT_HIGH_SPAN(f) (f.high_bits > 1 ? 256 / f.high_bits : 256)
#define QUANT_HIGH_AT(f) (f.high_at + (f.high_bits > 1 ? v / QUANT_HIGH_SPAN(f) * 32 : 0) + v % 32)
QUANT_CONSTANT int quant_high_at(rdna_dtype format, int v) { QUANT_RETURN(format, QUANT_HIGH_AT); }
#define QUANT_HIGH_SHIFT(f) (f.high_bits > 1 ? v % QUANT_HIGH_SPAN(f) / 32 * f.high_bits : v / 32)
QUANT_CONSTANT
int quant_high_shift(rdna_dtype format, int v) { QUANT_RETURN(format, QUANT_HIGH_SHIFT); }
#define QUANT_HIGH_MASK(f) ((1u << f.high_bits) - 1)
QUANT_CONSTANT uint32_t quant_high_mask(rdna_dtype format) { QUANT_RETURN(format, QUANT_HIGH_MASK); }
QUANT_CONSTANT int quant_high_up(rdna_dtype format) { return quant_low_bits(format); }

/* How many bits a code has. */
#define QUANT_BITS(f) (f.low_bits + f.high_bits + (f.fifth_at != 0))
QUANT_CONSTANT int quant_bits(rdna_dtype format) { QUANT_RETURN(format, QUANT_BITS); }
/* The low, or the high, part of codes, from the bytes that begin at value |v|'s. |every|: 0x01010101 for words of four
 * bytes and vectors of such words, 1 for vectors with a byte in each lane. */
#define QUANT_LOW_CODES(format, low, v, every) \
  (((low) >> quant_low_shift(format, v)) & (int32_t)(quant_low_mask(format) * (every)))
#define QUANT_HIGH_CODES(format, high, v, every) \
  ((((high) >> quant_high_shift(format, v)) & (int32_t)(quant_high_mask(format) * (every))) << quant_high_up(format))
/* Puts bit i of |four| at bit 4 of byte i: the fifth bits of four codes. */
RDNA_SCALAR uint32_t quant_spread_bits(uint32_t four) { return ((four & 15) * 0x00204081u & 0x01010101u) << 4; }

/* A block's words that hold d and the scales. quant_head_of loads what value |v| needs of them as they are;
 * quant_unfold then prepares them for the half of 128 values that |v| is in, or in IQ4_XS for |v|'s run of 32. */
struct quant_head {
  uint32_t w[4];
};
struct quant_scale {
  float scale, least;
};

#if defined(__AMDGCN__) || defined(__NVPTX__)
RDNA_SCALAR uint32_t quant_load_16(const char *p) { return *(const uint16_t *)p; }
/* AMD loads a word from any address; for other GPUs the compiler joins two loads of 16 bits. */
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

/* How many words quant_head_of loads. */
QUANT_CONSTANT int quant_head_words(rdna_dtype format) {
  return quant_scales(format) == RDNA__SCALES_Q3_K || quant_scales(format) == RDNA__SCALES_Q4_K ? 4
         : quant_has_halves(format)                                                             ? 3
         : quant_scales(format) == RDNA__SCALES_IQ4_XS                                          ? 2
                                                                                                : 1;
}
RDNA_SCALAR struct quant_head quant_head_of(rdna_dtype format, const char *block, int v) {
  struct quant_head h = {{0, 0, 0, 0}};
  const char *d = block + quant_d_at(format);
  switch ((enum rdna__block_scales)quant_scales(format)) {
    case RDNA__SCALES_D:
      h.w[0] = quant_load_16(d);
      break;
    case RDNA__SCALES_D_M:
      h.w[0] = quant_load_32(format, d);
      break;
    case RDNA__SCALES_POWER:
      h.w[0] = *(const uint8_t *)d;
      break;
    case RDNA__SCALES_Q2_K:
      h.w[0] = quant_load_32(format, d);
      h.w[1] = quant_load_32(format, block + v / 128 * 8);
      h.w[2] = quant_load_32(format, block + v / 128 * 8 + 4);
      break;
    case RDNA__SCALES_Q3_K:
      h.w[0] = quant_load_16(d);
      for (int i = 0; i < 3; i++) h.w[i + 1] = quant_load_32(format, block + 96 + 4 * i);
      break;
    case RDNA__SCALES_Q4_K:
      block = (const char *)__builtin_assume_aligned(block, 16);
      for (int i = 0; i < 4; i++) h.w[i] = quant_load_32(format, block + 4 * i);
      break;
    case RDNA__SCALES_Q6_K:
      h.w[0] = quant_load_16(d);
      h.w[1] = quant_load_32(format, block + 192 + v / 128 * 8);
      h.w[2] = quant_load_32(format, block + 192 + v / 128 * 8 + 4);
      break;
    case RDNA__SCALES_IQ4_XS:
      h.w[0] = quant_load_32(format, block);
      h.w[1] = quant_load_32(format, block + 4);
      break;
    case RDNA__SCALES_CODED:
      break;
  }
  return h;
}

RDNA_SCALAR struct quant_head quant_unfold(rdna_dtype format, struct quant_head h, int v) {
  if (quant_scales(format) == RDNA__SCALES_Q4_K) { /* to 6-bit scales in the bytes of w[1], minimums in w[2] */
    uint32_t s = h.w[1], m = h.w[2], high = h.w[3];
    h.w[1] = v < 128 ? s : (high & 0x0f0f0f0f) | (s >> 2 & 0x30303030);
    h.w[2] = v < 128 ? m : (high >> 4 & 0x0f0f0f0f) | (m >> 2 & 0x30303030);
  } else if (quant_scales(format) == RDNA__SCALES_Q3_K) {
    for (int i = 1; i < 4; i++) h.w[i] >>= v / 128 * 4;
  } else if (quant_scales(format) == RDNA__SCALES_IQ4_XS) {
    h.w[1] = (h.w[1] >> (v / 32 * 4) & 15) | (h.w[0] >> (16 + v / 32 * 2) & 3) << 4;
  }
  return h;
}

/* Scale and minimum of the run that value |v| is in, counted from the beginning of the half that |h| was unfolded for.
 * d times the run's whole number is rounded first, as the formats define it. */
RDNA_SCALAR struct quant_scale quant_scale_of(rdna_dtype format, struct quant_head h, int v) {
  struct quant_scale s = {0, 0};
  float d = f16_to_f32((uint16_t)h.w[0]), dmin = f16_to_f32((uint16_t)(h.w[0] >> 16));
  switch ((enum rdna__block_scales)quant_scales(format)) {
    case RDNA__SCALES_D:
      s.scale = d;
      break;
    case RDNA__SCALES_D_M:
      s.scale = d, s.least = -dmin;
      break;
    case RDNA__SCALES_Q2_K: {
      uint32_t both = (v < 64 ? h.w[1] : h.w[2]) >> (v / 16 % 4 * 8);
      s.scale = d * (float)(both & 15), s.least = dmin * (float)(both >> 4 & 15);
      break;
    }
    case RDNA__SCALES_Q3_K: {
      int shift = v / 16 % 4 * 8;
      uint32_t low = (v < 64 ? h.w[1] : h.w[2]) >> shift & 15, high = h.w[3] >> (shift + v / 64 * 2) & 3;
      s.scale = d * (float)((int32_t)(low | high << 4) - 32);
      break;
    }
    case RDNA__SCALES_Q4_K:
      s.scale = d * (float)(h.w[1] >> (v / 32 * 8) & 63), s.least = dmin * (float)(h.w[2] >> (v / 32 * 8) & 63);
      break;
    case RDNA__SCALES_Q6_K:
      s.scale = d * (float)(int8_t)((v < 64 ? h.w[1] : h.w[2]) >> (v / 16 % 4 * 8));
      break;
    case RDNA__SCALES_IQ4_XS:
      s.scale = d * (float)((int32_t)h.w[1] - 32);
      break;
    case RDNA__SCALES_POWER: /* 2^(e - 128): the table has e2m1 numbers times two */
      s.scale = scalar_from_bits(h.w[0] < 2 ? 0x200000u << h.w[0] : (h.w[0] - 1) << 23);
      break;
    case RDNA__SCALES_CODED:
      break;
  }
  return s;
}

#endif
