/* Into and out of block-quantized types. */
#ifndef RDNA_OP_QUANT_H
#define RDNA_OP_QUANT_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The types of blocks are those with more than one rdna_dtype_block_values. Their data lies at a multiple of the
 * largest power of two that divides rdna_dtype_block_bytes, up to 16: 16 for Q4_K, 2 for Q8_0, 1 for MXFP4.
 *
 * |out|, f32, f16 or bf16, = the values of |blocks|. The same shape, both contiguous, no overlap; the last size is a
 * whole number of blocks. The data of |out| lies at a multiple of 32 bytes. Empty is RDNA_OK. RDNA_INVALID_ARGUMENT:
 * shapes that disagree, broken blocks, missing data, overlap. RDNA_UNSUPPORTED: another type, layout or alignment. */
RDNA_CHECKED rdna_status rdna_op_dequantize(rdna_stream *stream, const rdna_tensor *blocks, const rdna_tensor *out);

/* |blocks| = |x|, f32, rounded:
 *
 *     Q8_0                            scale = max |x| / 127 of a block of 32; halves round away from zero
 *     Q4_0, Q5_0, Q3_K, Q6_K          scale = value of the largest magnitude / lowest code: -8, -16, -4, -32
 *     IQ4_NL, IQ4_XS                  the same; the table's lowest entry is -127
 *     Q4_1, Q5_1, Q2_K, Q4_K, Q5_K    scale = (max - min) / largest code; in those of K, 0 belongs to the range
 *     TQ1_0, TQ2_0                    scale = max |x| of a block: values become -1, 0 or 1 times that
 *     MXFP4                           scale = 2^(exponent of max |x| - 2), as OCP Microscaling Formats 1.0 has it: 7 of
 *                                     that scale becomes 6; halves go to the even code
 *
 * of each sub-block, whose scales are rounded to multiples of the block's so that the largest becomes the largest
 * multiple. A value then takes the nearest code for the scales as they are stored.
 *
 * IQ1, IQ2 and IQ3 have no plain rounding: scales are searched as by rdna_op_quantize_weighted with weights of 1. For
 * the scales as they are stored the codes have the least error.
 *
 * Infinite values, or too large for the scale, give blocks that are not numbers. A NaN becomes some number. Shapes and
 * failures as above; |x| lies at a multiple of 16 bytes. RDNA_UNSUPPORTED: |x| of another type. */
RDNA_CHECKED rdna_status rdna_op_quantize(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *blocks);
/* The same, but each sub-block's scale, and minimum, are searched: of some near those above the ones with the least sum
 * of |weights| times squared errors. |weights|, f32, contiguous, at a multiple of 16 bytes, has one number, 0 or more,
 * for each column of |x|: how much the column counts, such as the mean square of what a matrix's columns are multiplied
 * by. All 1: the least error. In IQ1, IQ2 and IQ3 a column counts at least 2^-20 of the one that counts the most in its
 * block. RDNA_UNSUPPORTED, besides: Q8_0, which is near enough. TQ1_0 and TQ2_0 do not search. */
RDNA_CHECKED rdna_status rdna_op_quantize_weighted(rdna_stream *stream, const rdna_tensor *x,
                                                   const rdna_tensor *weights, const rdna_tensor *blocks);

/* Weights (n, k) of integers with a scale for each quantization group of 32, 64, 128 or 256 neighbours of a row, as AWQ
 * and GPTQ make, and torchao: value = scale * (code - zero) + offset. |codes|, at a multiple of 16 bytes, is i8 (n, k),
 * or u8 (n, k / 2) with 4-bit codes, 32 values in each 16 bytes:
 *
 *     byte            0    1   …   15
 *     low nibble     v0   v1   …  v15
 *     high nibble   v16  v17   …  v31
 *
 * |scales| is f16, bf16 or f32 (n, k / group), of any strides. |zeros| has the same shape and the type of |codes|, or
 * is NULL: then zero is 0 for i8 and 8 for 4 bits. |offsets| has shape and type of |scales| and any strides, or is
 * NULL: 0. |codes| and |zeros| are contiguous. */
typedef struct rdna_quant_groups {
  size_t size; /* of the struct: RDNA_QUANT_GROUPS_INIT sets it */
  const rdna_tensor *codes, *scales, *zeros;
  const rdna_tensor *offsets;
} rdna_quant_groups;
#define RDNA_QUANT_GROUPS_INIT .size = sizeof(rdna_quant_groups)

/* |out| (n, k), f32, f16 or bf16, contiguous, at a multiple of 32 bytes, not overlapping the weights, = their values,
 * each rounded once to f32 and then to its type. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data,
 * overlap. RDNA_UNSUPPORTED: other types, groups, layouts or alignments. */
RDNA_CHECKED rdna_status rdna_op_dequantize_groups(rdna_stream *stream, const rdna_quant_groups *weights,
                                                   const rdna_tensor *out);
/* The weights = |x|, f32 (n, k), rounded to the nearest code for the scale as it is stored. With |zeros|, scale =
 * (max(x, 0) - min(x, 0)) / 255 or 15, and zero the nearest code of 0; without, max |x| / 127 for i8, and for 4 bits
 * the value of the largest magnitude / -8. |scales| is contiguous f16 and |offsets| NULL. Failures as above. */
RDNA_CHECKED rdna_status rdna_op_quantize_groups(rdna_stream *stream, const rdna_tensor *x,
                                                 const rdna_quant_groups *weights);
/* out (m, n) = x (m, k) weights^T + bias (n), all but the weights f32, as rdna_op_linear, and with its failures. */
RDNA_CHECKED rdna_status rdna_op_linear_quant_groups(rdna_stream *stream, const rdna_tensor *x,
                                                     const rdna_quant_groups *weights, const rdna_tensor *bias,
                                                     const rdna_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
