/* Values of unsigned types, which librdna takes for the signed ones of their size. */
#ifndef RDNA_TENSORFLOW_UNSIGNED_H
#define RDNA_TENSORFLOW_UNSIGNED_H

#include "kernel.h"

/* |x|, where TensorFlow's type is u16, u32 or u64, as i64, or as f64 of u64 that become floats; others stay. */
rdna_status from_unsigned(call *c, TF_DataType type, bool to_float, rdna_tensor *x);

#endif
