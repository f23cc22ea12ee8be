#include "kernel/host.h"
#include "math/common/host/doubles.h"
#include "math/random/variates_kernels.h"
#include "math/random/variates_math.h"

#define VARIATES_TWIN(kernel, arguments)                                                 \
  static void part_##kernel(void *context, int64_t begin, int64_t end) {                 \
    const struct variates_args *a = context;                                             \
    const rdna_dtype dtype = (rdna_dtype)a->dtype, out_dtype = (rdna_dtype)a->out_dtype; \
    for (int64_t i = begin; i < end; i++) {                                              \
      double v[3] = {load_double(dtype, a->first, i)};                                   \
      if (arguments > 1) v[1] = load_double(dtype, a->second, i);                        \
      if (arguments > 2) v[2] = load_double(dtype, a->third, i);                         \
      store_double(out_dtype, a->out, i, variates_##kernel##_value(a, (uint64_t)i, v));  \
    }                                                                                    \
  }                                                                                      \
  void RDNA_HOST_KERNEL(variates_##kernel)(const void *args, rdna_grid grid) {           \
    struct variates_args a = *(const struct variates_args *)args;                        \
    rdna__parallel_for((int64_t)a.count, 1 << 8, part_##kernel, &a);                     \
  }
RDNA_VARIATES_FUNCTIONS(VARIATES_TWIN)
