#include "kernel/prelude.h"
#include "math/fill/fill_kernels.h"

RDNA_KERNEL(256) fill_u32(struct fill_args a) {
  uint64_t stride = (uint64_t)group_count_x() * 256;
  for (uint64_t i = (uint64_t)group_id_x() * 256 + thread_id(); i < a.count; i += stride) a.out[i] = a.value;
}
