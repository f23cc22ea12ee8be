/* The one list of block formats: a row for each, which the dtypes' sizes, the GGUF reader, the kernels' lists, the host
 * twins, the cases and the tests are made from. "A block format" in docs/adding.md says how to add one.
 *
 * The layouts are those of GGUF files (ggml's block_q8_0 and so on), little-endian, with no padding. d, m and dmin are
 * f16; "nibbles of 32" are 16 bytes whose low nibbles are values 0 to 15 and whose high nibbles values 16 to 31; l is a
 * value's place among 32.
 *
 *   32 values
 *   q8_0    34 bytes: d, 32 int8 q.                                                       value = d q
 *   q4_0    18 bytes: d, nibbles of 32.                                                   value = d (q - 8)
 *   q4_1    20 bytes: d, m, nibbles of 32.                                                value = d q + m
 *   q5_0    22 bytes: d, 32 bits, bit i the fifth of value i, nibbles of 32.              value = d (q - 16)
 *   q5_1    24 bytes: d, m, 32 bits, nibbles of 32.                                       value = d q + m
 *   iq4_nl  18 bytes: d, nibbles of 32, which number 16 values of a table t.              value = d t[q]
 *   mxfp4   17 bytes: a byte e, nibbles of 32, of e2m1: sign, 2 bits of exponent, 1 of fraction (OCP Microscaling
 *           Formats 1.0). e 255, a NaN there, counts as 2^128 here as in GGUF.            value = 2^(e - 127) q
 *
 *   256 values
 *   q2_K    84 bytes: 16 bytes of a 4-bit scale s with a 4-bit minimum m above it, one for 16 values; 64 bytes of
 *           pairs; d, dmin. Each half of 128 values has 32 bytes, value l + 32 r at bit 2 r of byte l.
 *                                                                                         value = d s q - dmin m
 *   q3_K    110 bytes: 32 bytes of third bits, value l + 32 r at bit r of byte l; 64 bytes of pairs as in q2_K; 12
 *           bytes of 16 6-bit scales s: low nibbles first of scales 0 to 7, then 8 to 15 in bytes 0 to 7, the top
 *           pair of scale i at bit 2 (i / 4) of byte 8 + i % 4; d.                        value = d (s - 32) (q - 4)
 *   q4_K    144 bytes: d, dmin, 12 bytes of scales, 128 bytes of nibbles. Each run of 64 values has 32 bytes, low
 *           nibbles first. Sub-block j of 32 values has a 6-bit scale s and minimum m: the low 6 bits of bytes j and
 *           j + 4 for j < 4; for the others nibbles of byte j + 4 under the top bits of bytes j - 4 and j.
 *                                                                                         value = d s q - dmin m
 *   q5_K    176 bytes: d, dmin and scales as in q4_K, 32 bytes of fifth bits, value l + 32 r at bit r of byte l; 128
 *           bytes of nibbles as in q4_K.                                                  value = d s q - dmin m
 *   q6_K    210 bytes: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 int8 scales s, d. Within a half of 128
 *           values, value l + 32 r has its nibble in byte l + 32 (r % 2), low for r < 2, and its pair in byte l at bit
 *           2 r; each 16 values share a scale.                                            value = d s (q - 32)
 *   iq4_xs  136 bytes: d, 8 high pairs and 8 low nibbles of 6-bit scales s of 32 values, nibbles of 32, eight times.
 *                                                                                         value = d (s - 32) t[q]
 *   tq2_0   66 bytes: 64 bytes of pairs as in q2_K, d.                                    value = d (q - 1)
 *   tq1_0   54 bytes: 32 bytes with five digits q of base 3, digit n of byte l being value l + 32 n; 16 bytes more, of
 *           values 160 + l + 16 n; 4 bytes with the last 16 values in four digits each; d. Digits a, b, c, d, e, the
 *           first the highest, are the byte ceil(256 / 243 (81 a + 27 b + 9 c + 3 d + e)).  value = d (q - 1)
 *
 *   Blocks of 256 whose magnitudes are entries g of a grid (math/quant/quant_grids.h), 8 values each, in IQ3 4. Runs of
 *   32 values follow each other; |signs| are a bit a value, 1 for minus, in 7 bits for 8 values whose number of minus
 *   signs is even. s is 4 bits.
 *   iq2_xxs 66 bytes: d; for each run 4 bytes of indices, and a word of four times 7 signs and s above them.
 *                                                                                         value = d (s + 1/2) / 4 g
 *   iq2_xs  74 bytes: d; 32 words of 16 bits, an index of 9 bits and 7 signs; for each run a byte of two s, one for 16
 *           values, low first.                                                            value = d (s + 1/2) / 4 g
 *   iq2_s   82 bytes: d; 32 bytes of indices; 32 bytes of signs; for each run a byte of four pairs, bits 8 and 9 of its
 *           indices; and s as in iq2_xs.                                                  value = d (s + 1/2) / 4 g
 *   iq3_xxs 98 bytes: d; 64 bytes of indices; for each run a word of signs and s as in iq2_xxs.
 *                                                                                         value = d (s + 1/2) / 2 g
 *   iq3_s   110 bytes: d; 64 bytes of indices; for each run a byte with bit 8 of its indices; 32 bytes of signs; 4
 *           bytes of two s, one for each run.                                             value = d (2 s + 1) g
 *   iq1_s   50 bytes: d; 32 bytes of indices; for each run 16 bits: four times 3 bits above the indices' 8, 3 bits s,
 *           and whether 1/8 is taken off g, -1, 0 or 1, not added.             value = d (2 s + 1) (g +- 1/8)
 *   iq1_m   56 bytes: 32 bytes of indices; for each run 4 nibbles: 3 bits above an index's 8, and the sign of its 1/8;
 *           four words of 16 bits, each with four times 3 bits s, one for 16 values, and a nibble of d, low first.
 *                                                                              value = d (2 s + 1) (g +- 1/8)
 *
 * The order of roundings is part of the format here: (d s) q - (dmin m) and (d s) (q - 32), no fused operations. */
#ifndef RDNA_BASE_BLOCK_FORMATS_H
#define RDNA_BASE_BLOCK_FORMATS_H

#include <stdbool.h>

/* How a block's scales are stored: quant_unpack.h reads each of these ways. */
enum rdna__block_scales {
  RDNA__SCALES_D,     /* d alone */
  RDNA__SCALES_D_M,   /* d, m */
  RDNA__SCALES_POWER, /* a byte e instead of d: 2^(e - 128) */
  RDNA__SCALES_Q2_K,
  RDNA__SCALES_Q3_K,
  RDNA__SCALES_Q4_K, /* q5_K's too */
  RDNA__SCALES_Q6_K,
  RDNA__SCALES_IQ4_XS,
  RDNA__SCALES_CODED /* quant_coded.h reads them and the codes, which become signed bytes, a run of 32 at a time */
};
/* What codes stand for, where that is no number of their own: 16 signed bytes. */
enum rdna__block_table { RDNA__TABLE_NONE, RDNA__TABLE_IQ4, RDNA__TABLE_E2M1 /* times two */ };

/* Where the parts of a block lie, in bytes from its beginning. What a row leaves out is 0. */
struct rdna__block_layout {
  int values, bytes;      /* of a block: from the row's columns */
  int low_at, low_bits;   /* the codes' low bits, and how many: 2, 4 or 8 of each */
  int span;               /* values whose low bits lie in the same bytes: of nibbles of 32, 32 */
  int run;                /* values that share a scale: 16 or 32 */
  int high_at, high_bits; /* 32 bytes for each 256 / high_bits values, with the bits above the low ones */
  int fifth_at;           /* or 4 bytes with a fifth bit for each of 32 values */
  int zero;               /* the code of 0 */
  enum rdna__block_table table;
  bool least; /* a minimum is taken off */
  enum rdna__block_scales scales;
  int d_at;      /* d or e, and behind d what there is of m or dmin */
  int scale_top; /* the largest magnitude of a run's scale s */
  int most;      /* the largest magnitude of a value over d, rounded up; 0: it follows from codes and scales */
};

/* F(X, name, NAME, ggml's number, values, bytes, quantize, vector, layout…) for each format.
 *
 * name, NAME: of rdna_dtype_name, and of the enumerator RDNA_<NAME> and GGUF's type.
 * quantize: PACKED, made by quant_pack.h; GRID, by quant_encode.h; OWN, by a kernel of its own; NONE, not made here.
 * vector: on GPUs of compute capability 9.0 the product with one vector is TILED, by quant_gemv_mma.h, for those that
 * it was faster for on an H200: q8_0, q4_0 and q4_K with weights that are in no cache, q6_K, q5_K and q3_K with one
 *   matrix again and again. PLAIN: as everywhere else. */
#define RDNA_BLOCK_FORMATS(F, X)                                                                                    \
  F(X, q8_0, Q8_0, 8, 32, 34, OWN, TILED, .low_at = 2, .low_bits = 8, .span = 32, .run = 32)                        \
  F(X, q4_0, Q4_0, 2, 32, 18, PACKED, TILED, .low_at = 2, .low_bits = 4, .span = 32, .run = 32, .zero = 8)          \
  F(X, q4_K, Q4_K, 12, 256, 144, PACKED, TILED, .low_at = 16, .low_bits = 4, .span = 64, .run = 32, .least = true,  \
    .scales = RDNA__SCALES_Q4_K, .scale_top = 63)                                                                   \
  F(X, q6_K, Q6_K, 14, 256, 210, PACKED, TILED, .low_at = 0, .low_bits = 4, .span = 128, .run = 16, .high_at = 128, \
    .high_bits = 2, .zero = 32, .scales = RDNA__SCALES_Q6_K, .d_at = 208, .scale_top = 128)                         \
  F(X, q4_1, Q4_1, 3, 32, 20, PACKED, PLAIN, .low_at = 4, .low_bits = 4, .span = 32, .run = 32, .least = true,      \
    .scales = RDNA__SCALES_D_M)                                                                                     \
  F(X, q5_0, Q5_0, 6, 32, 22, PACKED, PLAIN, .low_at = 6, .low_bits = 4, .span = 32, .run = 32, .fifth_at = 2,      \
    .zero = 16)                                                                                                     \
  F(X, q5_1, Q5_1, 7, 32, 24, PACKED, PLAIN, .low_at = 8, .low_bits = 4, .span = 32, .run = 32, .fifth_at = 4,      \
    .least = true, .scales = RDNA__SCALES_D_M)                                                                      \
  F(X, q2_K, Q2_K, 10, 256, 84, PACKED, PLAIN, .low_at = 16, .low_bits = 2, .span = 128, .run = 16, .least = true,  \
    .scales = RDNA__SCALES_Q2_K, .d_at = 80, .scale_top = 15)                                                       \
  F(X, q3_K, Q3_K, 11, 256, 110, PACKED, TILED, .low_at = 32, .low_bits = 2, .span = 128, .run = 16, .high_at = 0,  \
    .high_bits = 1, .zero = 4, .scales = RDNA__SCALES_Q3_K, .d_at = 108, .scale_top = 32)                           \
  F(X, q5_K, Q5_K, 13, 256, 176, PACKED, TILED, .low_at = 48, .low_bits = 4, .span = 64, .run = 32, .high_at = 16,  \
    .high_bits = 1, .least = true, .scales = RDNA__SCALES_Q4_K, .scale_top = 63)                                    \
  F(X, iq4_nl, IQ4_NL, 20, 32, 18, PACKED, PLAIN, .low_at = 2, .low_bits = 4, .span = 32, .run = 32,                \
    .table = RDNA__TABLE_IQ4)                                                                                       \
  F(X, iq4_xs, IQ4_XS, 23, 256, 136, PACKED, PLAIN, .low_at = 8, .low_bits = 4, .span = 32, .run = 32,              \
    .table = RDNA__TABLE_IQ4, .scales = RDNA__SCALES_IQ4_XS, .scale_top = 32)                                       \
  F(X, mxfp4, MXFP4, 39, 32, 17, PACKED, PLAIN, .low_at = 1, .low_bits = 4, .span = 32, .run = 32,                  \
    .table = RDNA__TABLE_E2M1, .scales = RDNA__SCALES_POWER)                                                        \
  F(X, tq2_0, TQ2_0, 35, 256, 66, PACKED, PLAIN, .low_at = 0, .low_bits = 2, .span = 128, .run = 32, .zero = 1,     \
    .d_at = 64, .most = 2)                                                                                          \
  F(X, tq1_0, TQ1_0, 34, 256, 54, PACKED, PLAIN, .low_at = 0, .low_bits = 8, .span = 32, .run = 16,                 \
    .scales = RDNA__SCALES_CODED, .d_at = 52, .most = 1)                                                            \
  F(X, iq2_xxs, IQ2_XXS, 16, 256, 66, GRID, PLAIN, .low_at = 2, .low_bits = 8, .span = 32, .run = 16,               \
    .scales = RDNA__SCALES_CODED, .most = 167)                                                                      \
  F(X, iq2_xs, IQ2_XS, 17, 256, 74, GRID, PLAIN, .low_at = 2, .low_bits = 8, .span = 32, .run = 16,                 \
    .scales = RDNA__SCALES_CODED, .most = 167)                                                                      \
  F(X, iq2_s, IQ2_S, 22, 256, 82, GRID, PLAIN, .low_at = 2, .low_bits = 8, .span = 32, .run = 16,                   \
    .scales = RDNA__SCALES_CODED, .most = 167)                                                                      \
  F(X, iq3_xxs, IQ3_XXS, 18, 256, 98, GRID, PLAIN, .low_at = 2, .low_bits = 8, .span = 32, .run = 16,               \
    .scales = RDNA__SCALES_CODED, .most = 481)                                                                      \
  F(X, iq3_s, IQ3_S, 21, 256, 110, GRID, PLAIN, .low_at = 2, .low_bits = 8, .span = 32, .run = 16,                  \
    .scales = RDNA__SCALES_CODED, .most = 465)                                                                      \
  F(X, iq1_s, IQ1_S, 19, 256, 50, GRID, PLAIN, .low_at = 2, .low_bits = 8, .span = 32, .run = 16,                   \
    .scales = RDNA__SCALES_CODED, .most = 17)                                                                       \
  F(X, iq1_m, IQ1_M, 29, 256, 56, GRID, PLAIN, .low_at = 0, .low_bits = 8, .span = 32, .run = 16,                   \
    .scales = RDNA__SCALES_CODED, .d_at = 48, .most = 17)

/* Keeps what rows have whose |quantize| is PACKED, RDNA_BLOCK_IF_##quantize##_(…), or GRID, RDNA_BLOCK_GRID_IF_…. */
#define RDNA_BLOCK_IF_PACKED_(...) __VA_ARGS__
#define RDNA_BLOCK_IF_GRID_(...)
#define RDNA_BLOCK_IF_OWN_(...)
#define RDNA_BLOCK_IF_NONE_(...)
#define RDNA_BLOCK_GRID_IF_PACKED_(...)
#define RDNA_BLOCK_GRID_IF_GRID_(...) __VA_ARGS__
#define RDNA_BLOCK_GRID_IF_OWN_(...)
#define RDNA_BLOCK_GRID_IF_NONE_(...)

#endif
