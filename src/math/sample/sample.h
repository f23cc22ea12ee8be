/* What the operators and the generated cases of sampling share. */
#ifndef RDNA_MATH_SAMPLE_SAMPLE_H
#define RDNA_MATH_SAMPLE_SAMPLE_H

#include "math/sample/sample_kernels.h"
#include "rdna/op/sample.h"
#include "rdna/tensor.h"

/* |size|: of the image, z, y, x. */
struct sample_grid rdna__sample_grid_of(rdna_sample_mode mode, rdna_sample_padding padding, rdna_sample_units units,
                                        const rdna_tensor *grid, uint32_t dims, const int32_t size[3]);
/* Writes the strides of a grid: n, z, y, x, coordinate; 0 for what it lacks. */
void rdna__sample_strides(const rdna_tensor *grid, int64_t out_stride[5]);
/* The shape of positions x, y, z of |size| (z, y, x) and |last| more. */
struct strided_shape rdna__sample_shape(const int32_t size[3], int64_t last);
/* Returns how many values a place takes. */
static inline uint32_t rdna__sample_corners(uint32_t kind, uint32_t dims) {
  return kind == SAMPLE_CUBIC ? 16 : kind == SAMPLE_NEAREST ? 1 : dims == 2 ? 4 : 8;
}

#endif
