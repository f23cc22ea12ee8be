#include "kernel/host.h"
#include "math/special/bessel_functions.h"
#include "math/special/elementary_functions.h"
#include "math/special/special_kernels.h"

#define SPECIAL_TWIN(family, suffix, type)                                                                      \
  static void part_##family##_##suffix(void *context, int64_t begin, int64_t end) {                             \
    const struct special_args *a = context;                                                                     \
    const type *x = a->x;                                                                                       \
    type *out = a->out;                                                                                         \
    for (int64_t i = begin; i < end; i++) out[i] = (type)special_##family(a->function, a->order, (double)x[i]); \
  }                                                                                                             \
  void RDNA_HOST_KERNEL(special_##family##_##suffix)(const void *args, rdna_grid grid) {                        \
    struct special_args a = *(const struct special_args *)args;                                                 \
    rdna__parallel_for((int64_t)a.count, 1 << 12, part_##family##_##suffix, &a);                                \
  }
RDNA_SPECIAL_FAMILIES(SPECIAL_TWIN)
