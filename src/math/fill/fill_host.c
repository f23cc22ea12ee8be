#include "kernel/host.h"
#include "math/fill/fill_kernels.h"

static void fill_part(void *context, int64_t begin, int64_t end) {
  const struct fill_args *a = context;
  for (int64_t i = begin; i < end; i++) a->out[i] = a->value;
}

void RDNA_HOST_KERNEL(fill_u32)(const void *args, rdna_grid grid) {
  struct fill_args a = *(const struct fill_args *)args;
  rdna__parallel_for((int64_t)a.count, 1 << 16, fill_part, &a);
}
