/* Products of 16-bit matrices by copies of them whose rows begin at multiples of 16 bytes. */
#ifndef RDNA_MATH_GEMM_ALIGNED_H
#define RDNA_MATH_GEMM_ALIGNED_H

#include "math/gemm/gemm.h"

/* Whether an operand lies so that it is worth a copy. */
bool rdna__gemm_aligned_pays(const rdna__gemm_problem *problem);

/* Copies those that are unaligned and multiplies. A copy is of |part_bytes| at most, or of 256 rows or columns of C. */
rdna_status rdna__gemm_run_aligned(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem,
                                   int64_t part_bytes);

#endif
