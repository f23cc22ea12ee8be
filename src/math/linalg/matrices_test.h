/* What tests of factorizations share: batches of matrices as operands. */
#ifndef RDNA_MATH_LINALG_MATRICES_TEST_H
#define RDNA_MATH_LINALG_MATRICES_TEST_H

#include "base/random.h"
#include "math/common/test/operand.h"
#include "rdna/op/linalg.h"

static inline double unit_of(rdna_dtype dtype) { return dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24; }

/* Matrices by rows or by columns, with gaps. */
static inline operand matrices(rdna_dtype dtype, int64_t batch, int64_t m, int64_t n, bool columns) {
  int64_t ld = (columns ? m : n) + 3, shape[3] = {batch, m, n};
  return operand_make(dtype, 3, shape, (int64_t[3]){ld * (columns ? n : m), columns ? 1 : ld, columns ? ld : 1}, 1);
}
static inline int64_t at(const operand *o, int64_t b, int64_t i, int64_t j) {
  return b * o->tensor.stride[0] + i * o->tensor.stride[1] + j * o->tensor.stride[2];
}
static inline void set(operand *o, int64_t i, double v) {
  if (o->tensor.dtype == RDNA_F64) ((double *)(void *)o->host)[i] = v;
  if (o->tensor.dtype == RDNA_F32) ((float *)(void *)o->host)[i] = (float)v;
}

#endif
