/* RMS norms of rows of f32 whose results are of 16 bits, as products on matrix units want them, while what is added up
 * from layer to layer stays f32. Formulas and structs are those of norm_kernels.h: weights and residuals are f32, out
 * has the last type of the name, x the one before. A group takes a row; any grid is right. */
#ifndef RDNA_MATH_NARROW_NORM_KERNELS_H
#define RDNA_MATH_NARROW_NORM_KERNELS_H

#include "math/norm/norm_kernels.h"

enum { NARROW_NORM_KEPT = 8192 /* values of a row that a group's registers hold */ };

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_NARROW_NORM_KERNELS(X)                                                                \
  X(rms_norm_narrow_f32_f16, struct rms_norm_args, NORM_THREADS, rdna__rms_norm_case)              \
  X(rms_norm_narrow_f32_bf16, struct rms_norm_args, NORM_THREADS, rdna__rms_norm_case)             \
  X(add_rms_norm_narrow_f32_f16, struct add_rms_norm_args, NORM_THREADS, rdna__add_rms_norm_case)  \
  X(add_rms_norm_narrow_f32_bf16, struct add_rms_norm_args, NORM_THREADS, rdna__add_rms_norm_case) \
  X(add_rms_norm_narrow_f16_f16, struct add_rms_norm_args, NORM_THREADS, rdna__add_rms_norm_case)  \
  X(add_rms_norm_narrow_bf16_bf16, struct add_rms_norm_args, NORM_THREADS, rdna__add_rms_norm_case)

#endif
