#include "kernel/prelude.h"
#include "math/special/elementary_functions.h"
#include "math/special/pair_functions.h"
#include "math/special/pair_kernels.h"

/* A value a thread, as in special.hip. */
#define PAIR_KERNEL(family, suffix, type)                                                                \
  RDNA_KERNEL(PAIR_THREADS) pair_##family##_##suffix(struct pair_args a) {                               \
    uint64_t i = (uint64_t)group_id_x() * PAIR_THREADS + thread_id();                                    \
    if (i >= a.count) return;                                                                            \
    ((type *)a.out)[i] =                                                                                 \
        (type)pair_##family(a.function, (double)((const type *)a.x)[i], (double)((const type *)a.y)[i]); \
  }
RDNA_PAIR_FAMILIES(PAIR_KERNEL)
