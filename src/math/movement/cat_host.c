/* Tensors joined along a dimension, row by row. */
#include <string.h>

#include "kernel/host.h"
#include "math/movement/cat_kernels.h"

struct cat_work {
  struct cat_args a;
  int64_t bytes;
};

static void cat_groups(void *context, int64_t begin, int64_t end) {
  const struct cat_work *w = context;
  for (int64_t group = begin; group < end; group++) {
    uint32_t p = 0;
    while (p + 1 < w->a.parts && group >= w->a.part[p + 1].group) p++;
    const struct cat_part *part = &w->a.part[p];
    int64_t first = (group - part->group) * CAT_TILE, left = part->count - first;
    int64_t last = first + (left < CAT_TILE ? left : CAT_TILE);
    for (int64_t n, i = first; i < last; i += n) {
      int64_t row = i / part->width, column = i - row * part->width;
      n = part->width - column < last - i ? part->width - column : last - i;
      memcpy((char *)w->a.out + (row * w->a.stride + part->column + column) * w->bytes,
             (const char *)part->data + i * w->bytes, (size_t)(n * w->bytes));
    }
  }
}

#define CAT(size)                                                                    \
  void RDNA_HOST_KERNEL(cat_rows_##size)(const void *args, rdna_grid grid) {         \
    struct cat_work work = {.a = *(const struct cat_args *)args, .bytes = size / 8}; \
    rdna__parallel_for(work.a.groups, 16, cat_groups, &work);                        \
  }
CAT(8)
CAT(16)
CAT(32)
CAT(64)
CAT(128)
