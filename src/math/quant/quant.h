/* What the operators on block-quantized tensors share. */
#ifndef RDNA_MATH_QUANT_H
#define RDNA_MATH_QUANT_H

#include "base/status.h"
#include "math/gemm/gemm.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

/* Checks that |blocks| is of a quantized type, contiguous, aligned as the kernels ask, and that its last size is a
 * whole number of blocks. */
rdna_status rdna__check_blocks(const char *op_name, const char *argument, const rdna_tensor *blocks);

/* The alignment in bytes that kernels ask of a buffer of blocks. */
int rdna__blocks_alignment(rdna_dtype dtype);

/* How many work-groups of a gemv kernel to launch where |groups| would take all rows, one turn each: no more than run
 * at once. Those take further rows in turn, and need not load A into group memory again if all of it fits there. */
uint32_t rdna__quant_gemv_groups(rdna_stream *stream, uint32_t groups);

/* The kernels for |types| of A, of B, which is in blocks, and of C; NULL: there are none. */
const rdna__gemm_product *rdna__quant_product(const rdna_dtype types[3]);

/* A view of the same memory as bytes, for tests of whether tensors overlap. */
rdna_tensor rdna__blocks_as_bytes(const rdna_tensor *blocks);

#endif
