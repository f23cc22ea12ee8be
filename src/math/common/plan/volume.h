/* For operators: from tensors (n, channels, spatial…) to the arguments of kernels. */
#ifndef RDNA_MATH_COMMON_PLAN_VOLUME_H
#define RDNA_MATH_COMMON_PLAN_VOLUME_H

#include "math/common/plan/check.h"
#include "math/common/volume.h"

/* f32, f16, bf16 or f64, of rank 3 to 5 with every size below 2^31, or of rank dims + 2 if |dims| is not 0. */
rdna_status rdna__check_volume(const char *op_name, const char *argument, const rdna_tensor *tensor, int dims);
/* |tensor| has as many samples and channels as |other|, and its rank. */
rdna_status rdna__check_same_planes(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                    const char *other_argument, const rdna_tensor *other);

struct volume rdna__volume_of(const rdna_tensor *tensor);
/* Sizes of what is spatial: z, y, x. */
void rdna__volume_sizes(const rdna_tensor *tensor, int32_t out_sizes[3]);

/* The order of |tensors[0]|'s values: vectors if the |count| tensors allow it, whose types may differ, or |block|
 * channels at a time where they are not the innermost and numbers enough remain. RDNA_UNSUPPORTED from 2^31 on. */
rdna_status rdna__volume_order(const char *op_name, const rdna_tensor *const *tensors, int count, uint32_t block,
                               struct volume_order *out_order);
/* One thread of 256 in a group for each number of the order. */
rdna_status rdna__volume_launch(rdna_stream *stream, const char *kernel, const struct volume_order *order,
                                const void *args);

#endif
