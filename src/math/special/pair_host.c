#include "kernel/host.h"
#include "math/special/elementary_functions.h"
#include "math/special/pair_functions.h"
#include "math/special/pair_kernels.h"

#define PAIR_TWIN(family, suffix, type)                                               \
  static void part_##family##_##suffix(void *context, int64_t begin, int64_t end) {   \
    const struct pair_args *a = context;                                              \
    const type *x = a->x, *y = a->y;                                                  \
    type *out = a->out;                                                               \
    for (int64_t i = begin; i < end; i++) {                                           \
      out[i] = (type)pair_##family(a->function, (double)x[i], (double)y[i]);          \
    }                                                                                 \
  }                                                                                   \
  void RDNA_HOST_KERNEL(pair_##family##_##suffix)(const void *args, rdna_grid grid) { \
    struct pair_args a = *(const struct pair_args *)args;                             \
    rdna__parallel_for((int64_t)a.count, 1 << 10, part_##family##_##suffix, &a);      \
  }
RDNA_PAIR_FAMILIES(PAIR_TWIN)
