/* For operators: from tensors (n, channels, spatial…) to the arguments of kernels. */
#ifndef RDNA_MATH_COMMON_PLAN_VOLUME_H
#define RDNA_MATH_COMMON_PLAN_VOLUME_H

#include "math/common/plan/check.h"
#include "math/common/volume.h"

/* Checks that the tensor is f32, f16, bf16 or f64, of rank 3 to 5 (of rank dims + 2 if |dims| is not 0), with every
 * size, and the product of the spatial ones, below 2^31. */
rdna_status rdna__check_volume(const char *op_name, const char *argument, const rdna_tensor *tensor, int dims);
/* Checks that |tensor| and |other| have the same rank, samples and channels. */
rdna_status rdna__check_same_planes(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                    const char *other_argument, const rdna_tensor *other);

struct volume rdna__volume_of(const rdna_tensor *tensor);
/* Writes the spatial sizes z, y, x; 1 for those that the tensor lacks. */
void rdna__volume_sizes(const rdna_tensor *tensor, int32_t out_sizes[3]);

/* Divides the values of |tensors[0]| into work items. An item is a vector of channels where channels are innermost and
 * the strides of all |count| tensors, whose types may differ, allow it. Where channels are not innermost it is up to
 * |block| channels, fewer if there would be too few items to fill a GPU. RDNA_UNSUPPORTED: 2^31 items or more. */
rdna_status rdna__volume_order(const char *op_name, const rdna_tensor *const *tensors, int count, uint32_t block,
                               struct volume_order *out_order);
/* Launches a thread for each work item, in groups of 256. */
rdna_status rdna__volume_launch(rdna_stream *stream, const char *kernel, const struct volume_order *order,
                                const void *args);

#endif
