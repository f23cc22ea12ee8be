/* Classes of element types, for the host and the GPU. Use these: the order of the enumeration has no meaning. */
#ifndef RDNA_KERNEL_DTYPE_H
#define RDNA_KERNEL_DTYPE_H

#include <stdbool.h>

#include "kernel/scalar.h"
#include "rdna/tensor.h"

/* The types that are computed in f32. */
RDNA_SCALAR bool dtype_is_float(rdna_dtype t) { return t == RDNA_F32 || t == RDNA_F16 || t == RDNA_BF16; }
RDNA_SCALAR bool dtype_is_real(rdna_dtype t) { return dtype_is_float(t) || t == RDNA_F64; }
/* The types that are computed in 64-bit integers, bool among them. */
RDNA_SCALAR bool dtype_is_integer(rdna_dtype t) {
  return t == RDNA_I8 || t == RDNA_U8 || t == RDNA_I16 || t == RDNA_I32 || t == RDNA_I64 || t == RDNA_BOOL ||
         t == RDNA_U16 || t == RDNA_U32 || t == RDNA_U64;
}

#endif
