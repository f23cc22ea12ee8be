/* What the operators on block-quantized tensors share. */
#ifndef RDNA_MATH_QUANT_H
#define RDNA_MATH_QUANT_H

#include "base/status.h"
#include "math/gemm/gemm.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

/* |blocks| is a quantized type, contiguous, its last size a whole number of blocks, and aligned as the kernels ask. */
rdna_status rdna__check_blocks(const char *op_name, const char *argument, const rdna_tensor *blocks);

/* What its address is a multiple of. */
int rdna__blocks_alignment(rdna_dtype dtype);

/* How many of |groups| work-groups of such a kernel to launch: they take the others' rows too, with an A that is in
 * place already. */
uint32_t rdna__quant_gemv_groups(rdna_stream *stream, uint32_t groups);

/* The kernels that multiply these types, of A, B in blocks and C, or NULL. */
const rdna__gemm_product *rdna__quant_product(const rdna_dtype types[3]);

/* The same memory as bytes, for comparing where tensors lie. */
rdna_tensor rdna__blocks_as_bytes(const rdna_tensor *blocks);

#endif
