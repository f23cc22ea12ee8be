/* Convolution of 3 x 3 in f32 by Winograd's way: what is done before and after the products. */
#include "kernel/prelude.h"
#include "math/conv/winograd_kernels.h"

#define WINOGRAD_DEFINE(name, one)                                             \
  RDNA_KERNEL(WINOGRAD_THREADS) name(struct winograd_args args) {              \
    int32_t number = (int32_t)(group_id_x() * WINOGRAD_THREADS + thread_id()); \
    if (number < args.count) one(&args, (int32_t)group_id_y(), number);        \
  }
WINOGRAD_DEFINE(winograd_weight, winograd_one_weight)
WINOGRAD_DEFINE(winograd_image, winograd_one_image)
WINOGRAD_DEFINE(winograd_result, winograd_one_result)
WINOGRAD_DEFINE(winograd_gradient, winograd_one_gradient)
WINOGRAD_DEFINE(winograd_window, winograd_one_window)
