/* Tensors joined along a dimension; cat_kernels.h has the layout. Every value is read once and written once. */
#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/movement/cat_kernels.h"

template <typename bits>
RDNA_DEVICE void cat_rows(const cat_args &args) {
  constexpr uint32_t each = CAT_TILE / CAT_THREADS;
  const cat_args &a = arguments_again(args); /* in memory, since which part is read depends on the group */
  uint32_t p = 0;
  while (p + 1 < a.parts && group_id_x() >= a.part[p + 1].group) p++;
  const bits *in = (const bits *)a.part[p].data;
  const uint32_t width = a.part[p].width, count = a.part[p].count;
  const uint32_t first = (group_id_x() - a.part[p].group) * CAT_TILE + thread_id();
  bits *out = (bits *)a.out + a.part[p].column;
  const int64_t stride = a.stride;
  bits v[each];
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    const uint32_t i = first + j * CAT_THREADS;
    if (i < count) v[j] = in[i];
  }
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    const uint32_t i = first + j * CAT_THREADS, row = i / width;
    if (i < count) out[row * stride + (i - row * width)] = v[j];
  }
}

#define CAT(size, bits) \
  RDNA_KERNEL(CAT_THREADS) cat_rows_##size(struct cat_args a) { cat_rows<bits>(a); }
CAT(8, uint8_t)
CAT(16, uint16_t)
CAT(32, uint32_t)
CAT(64, uint64_t)
CAT(128, uint4)
