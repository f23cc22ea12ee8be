#include "kernel/prelude.h"
#include "math/special/bessel_functions.h"
#include "math/special/elementary_functions.h"
#include "math/special/special_kernels.h"

/* A value a thread: in a loop the coefficients of a family would be kept in registers, and spilled. */
#define SPECIAL_KERNEL(family, suffix, type)                                                          \
  RDNA_KERNEL(SPECIAL_THREADS) special_##family##_##suffix(struct special_args a) {                   \
    uint64_t i = (uint64_t)group_id_x() * SPECIAL_THREADS + thread_id();                              \
    if (i >= a.count) return;                                                                         \
    ((type *)a.out)[i] = (type)special_##family(a.function, a.order, (double)((const type *)a.x)[i]); \
  }
RDNA_SPECIAL_FAMILIES(SPECIAL_KERNEL)
