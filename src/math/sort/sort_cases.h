/* For case makers of sorting kernels: types of the size in a kernel's name, and values with many ties. */
#ifndef RDNA_MATH_SORT_CASES_H
#define RDNA_MATH_SORT_CASES_H

#include <math.h>
#include <stdlib.h>

#include "kernel/dtype.h"
#include "math/common/case/fill.h"
#include "math/sort/sort_plan.h"

/* One of the types that have the size in which |kernel_name| ends, by the case's number, and its order. */
static inline rdna_dtype sort_case_dtype(const char *kernel_name, int n, struct sort_order *out_order) {
  static const rdna_dtype types[4][4] = {{RDNA_U8, RDNA_I8, RDNA_BOOL, RDNA_U8},
                                         {RDNA_F16, RDNA_BF16, RDNA_I16, RDNA_U16},
                                         {RDNA_F32, RDNA_I32, RDNA_F32, RDNA_U32},
                                         {RDNA_F64, RDNA_I64, RDNA_F64, RDNA_U64}};
  int bits = atoi(strrchr(kernel_name, '_') + 1), size = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3;
  rdna_dtype dtype = types[size][n % 4];
  *out_order = rdna__sort_order(dtype, n / 4 % 2);
  return dtype;
}

static inline uint64_t sort_case_bits(rdna_dtype dtype, const void *data, int64_t i) {
  size_t bytes = rdna_dtype_block_bytes(dtype);
  uint64_t v = 0;
  memcpy(&v, (const char *)data + (size_t)i * bytes, bytes);
  return v;
}

/* Few whole numbers, normal numbers, both zeros, infinities and NaN. */
static inline void sort_case_fill(rdna__random *random, rdna_dtype dtype, void *data, int64_t count) {
  static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30};
  size_t bytes = rdna_dtype_block_bytes(dtype);
  for (int64_t i = 0; i < count; i++) {
    uint64_t pick = rdna__random_below(random, 8), bits = rdna__random_bits(random);
    double v = pick == 0  ? special[bits % 6]
               : pick < 4 ? (double)rdna__random_range(random, -9, 9)
                          : 50 * rdna__random_normal(random);
    if (dtype_is_float(dtype)) {
      case_set(dtype, data, i, (float)v);
    } else if (dtype == RDNA_F64) {
      ((double *)data)[i] = v;
    } else {
      uint64_t whole = dtype == RDNA_BOOL ? bits & 1
                       : pick == 0        ? bits
                                          : (uint64_t)(int64_t)(v < -99 || v > 99 ? 99 : v);
      if (v != v) whole = 0;
      memcpy((char *)data + (size_t)i * bytes, &whole, bytes);
    }
  }
}

#endif
