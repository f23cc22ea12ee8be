/* Host twins of what Winograd's way does before and after the products. */
#include "kernel/host.h"
#include "math/conv/winograd_kernels.h"

#define TWIN(name, one)                                                    \
  static void name##_channels(void *context, int64_t begin, int64_t end) { \
    const struct winograd_args *a = context;                               \
    for (int64_t channel = begin; channel < end; channel++)                \
      for (int32_t i = 0; i < a->count; i++) one(a, (int32_t)channel, i);  \
  }                                                                        \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) {          \
    struct winograd_args a = *(const struct winograd_args *)args;          \
    rdna__parallel_for(a.channels, 1, name##_channels, &a);                \
  }
TWIN(winograd_weight, winograd_one_weight)
TWIN(winograd_image, winograd_one_image)
TWIN(winograd_result, winograd_one_result)
TWIN(winograd_gradient, winograd_one_gradient)
TWIN(winograd_window, winograd_one_window)
