/* Host twins of compact_kernels.h. */
#include <string.h>

#include "math/common/host/bits.h"
#include "math/index/compact_kernels.h"

struct work {
  struct compact_args a;
  int bytes; /* of what is moved */
  enum { NONZERO, SELECT, SCATTER } kind;
};

static int64_t tile_end(const struct compact_args *a, int64_t tile) {
  int64_t end = (tile + 1) * COMPACT_TILE;
  return end < a->n ? end : a->n;
}

static void count_tiles(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct compact_args *a = &work->a;
  for (int64_t tile = begin; tile < end; tile++) {
    int64_t count = 0;
    for (int64_t i = tile * COMPACT_TILE; i < tile_end(a, tile); i++)
      count += (load_bits(a->x, work->bytes, i) & ~a->ignored) != 0;
    a->offsets[tile] = count;
  }
}

static void keep_tiles(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct compact_args *a = &work->a;
  int flag_bytes = work->kind == NONZERO ? work->bytes : 1;
  size_t bytes = (size_t)work->bytes;
  for (int64_t tile = begin; tile < end; tile++) {
    int64_t rank = a->offsets[tile];
    for (int64_t i = tile * COMPACT_TILE; i < tile_end(a, tile); i++) {
      if ((load_bits(a->x, flag_bytes, i) & ~a->ignored) == 0) continue;
      if (rank >= a->limit) break;
      if (work->kind == NONZERO) {
        compact_coordinates(&a->shape, (uint32_t)i, (int64_t *)a->out + rank * a->shape.rank);
      } else {
        int64_t to = work->kind == SELECT ? rank : i, from = work->kind == SELECT ? i : rank;
        memcpy((char *)a->out + (size_t)to * bytes, (const char *)a->values + (size_t)from * bytes, bytes);
      }
      rank++;
    }
  }
}

void RDNA_HOST_KERNEL(compact_scan)(const void *args, rdna_grid grid) {
  const struct compact_args *a = args;
  int64_t sum = 0;
  for (uint32_t tile = 0; tile < a->tiles; tile++) {
    int64_t count = a->offsets[tile];
    a->offsets[tile] = sum;
    sum += count;
  }
  a->offsets[a->tiles] = sum;
}

#define KERNEL(name, piece, size, kind)                                      \
  void RDNA_HOST_KERNEL(name##_##size)(const void *args, rdna_grid grid) {   \
    struct work work = {*(const struct compact_args *)args, size / 8, kind}; \
    rdna__parallel_for(work.a.tiles, 4, piece, &work);                       \
  }
#define KERNELS(size)                               \
  KERNEL(compact_count, count_tiles, size, NONZERO) \
  KERNEL(nonzero, keep_tiles, size, NONZERO)        \
  KERNEL(masked_select, keep_tiles, size, SELECT)   \
  KERNEL(masked_scatter, keep_tiles, size, SCATTER)
KERNELS(8)
KERNELS(16)
KERNELS(32)
KERNELS(64)
