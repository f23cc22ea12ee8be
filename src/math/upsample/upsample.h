/* What the operator and the generated cases of resampling share. */
#ifndef RDNA_MATH_UPSAMPLE_H
#define RDNA_MATH_UPSAMPLE_H

#include "math/upsample/upsample_kernels.h"
#include "rdna/op/upsample.h"

/* Returns the scales of one dimension of |in| inputs and |out| outputs, both at least 1; |factor| is that of |options|,
 * or 0 where it gives none. */
struct upsample_axis rdna__upsample_axis(const rdna_upsample *options, double factor, int32_t in, int32_t out);

#endif
