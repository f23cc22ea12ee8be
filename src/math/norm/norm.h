/* What the norms of rows share. */
#ifndef RDNA_MATH_NORM_H
#define RDNA_MATH_NORM_H

#include <stdbool.h>

#include "base/status.h"
#include "rdna/op/norm.h"

/* Whether rows of f32 become rows of 16 bits: |values| are x, or the residual. Such a call is rdna__narrow_norm's;
 * |residual| NULL: rms_norm. */
bool rdna__is_narrow_norm(const rdna_tensor *values, const rdna_tensor *out);
rdna_status rdna__narrow_norm(rdna_stream *stream, const char *op_name, const rdna_tensor *x,
                              const rdna_tensor *residual, const rdna_tensor *weight, double epsilon,
                              const rdna_tensor *out);

/* The types in a kernel's name, a word of {norm}: of the values, and of the weights where those are f32 and the values
 * are not. */
static inline const char *rdna__norm_types(const rdna_tensor *values, const rdna_tensor *weights) {
  static const char *const names[RDNA_DTYPE_COUNT][2] = {
      [RDNA_F32] = {"f32", "f32"}, [RDNA_F16] = {"f16", "f16_wf32"}, [RDNA_BF16] = {"bf16", "bf16_wf32"}};
  return names[values->dtype][weights && weights->dtype == RDNA_F32];
}

#endif
