/* What the operator and the generated cases of resampling share. */
#ifndef RDNA_MATH_UPSAMPLE_H
#define RDNA_MATH_UPSAMPLE_H

#include "math/upsample/upsample_kernels.h"
#include "rdna/op/upsample.h"

/* Sizes in and out are at least 1. */
struct upsample_axis rdna__upsample_axis(const rdna_upsample *options, double factor, int32_t in, int32_t out);

#endif
