/* Convolution of 3 x 3 in f32 by Winograd's way: what is done before and after the products. */
#include "kernel/prelude.h"
#include "math/conv/winograd_kernels.h"

#define WINOGRAD_DEFINE(name, one)                                                                       \
  RDNA_KERNEL(WINOGRAD_THREADS) name(struct winograd_args args) {                                        \
    uint32_t number = group_id_x() * WINOGRAD_THREADS + thread_id(), channels = (uint32_t)args.channels; \
    uint32_t other = args.last ? number / channels : number;                                             \
    uint32_t channel = args.last ? number - other * channels : group_id_y();                             \
    if (other < (uint32_t)args.count) one(&args, (int32_t)channel, (int32_t)other);                      \
  }
WINOGRAD_DEFINE(winograd_weight, winograd_one_weight)
WINOGRAD_DEFINE(winograd_image, winograd_one_image)
WINOGRAD_DEFINE(winograd_result, winograd_one_result)
WINOGRAD_DEFINE(winograd_gradient, winograd_one_gradient)
WINOGRAD_DEFINE(winograd_window, winograd_one_window)
