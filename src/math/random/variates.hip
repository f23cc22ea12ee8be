#include "kernel/prelude.h"
#include "math/common/device/doubles.h"
#include "math/random/variates_kernels.h"
#include "math/random/variates_math.h"

/* A value a thread. */
#define VARIATES_KERNEL(kernel, arguments)                                         \
  RDNA_KERNEL(VARIATES_THREADS) variates_##kernel(struct variates_args a) {        \
    uint64_t i = (uint64_t)group_id_x() * VARIATES_THREADS + thread_id();          \
    if (i >= a.count) return;                                                      \
    double v[3] = {load_any<double>(a.first, i, a.dtype)};                         \
    if (arguments > 1) v[1] = load_any<double>(a.second, i, a.dtype);              \
    if (arguments > 2) v[2] = load_any<double>(a.third, i, a.dtype);               \
    store_any<double>(a.out, i, a.out_dtype, variates_##kernel##_value(&a, i, v)); \
  }
RDNA_VARIATES_FUNCTIONS(VARIATES_KERNEL)
