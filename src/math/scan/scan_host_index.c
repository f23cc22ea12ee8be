/* Running extremes with their places, on the host. */
#include "math/common/host/bits.h"
#include "math/scan/scan_index_kernels.h"

struct work {
  struct scan_index_args a;
  int bytes;
};

static void scan_units(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct scan_index_args *a = &work->a;
  int bytes = work->bytes;
  for (int64_t unit = begin; unit < end; unit++) {
    uint32_t segment = (uint32_t)(unit % a->segments), first = segment * a->segment;
    uint32_t last = first + a->segment < a->n ? first + a->segment : a->n, place = 0;
    int64_t column = unit / a->segments, at = (column / a->inner * a->n + first) * a->inner + column % a->inner;
    uint64_t kept = 0;
    bool any = a->carry_values && segment > 0;
    if (any) kept = load_bits(a->carry_values, bytes, unit - 1), place = a->carry_places[unit - 1];
    for (uint32_t i = first; i < last; i++, at += a->inner) {
      uint64_t v = load_bits(a->x, bytes, at);
      if (!any || scan_rank_64(a, v) >= scan_rank_64(a, kept)) kept = v, place = a->places ? a->places[at] : i;
      any = true;
      if (a->total_values) continue;
      store_bits(a->values, bytes, at, kept);
      store_place(a->indices, a->narrow, at, place);
    }
    if (a->total_values) store_bits(a->total_values, bytes, unit, kept), a->total_places[unit] = place;
  }
}

#define SCAN_INDEX(bits)                                                           \
  void RDNA_HOST_KERNEL(scan_index_##bits)(const void *args, rdna_grid grid) {     \
    struct work work = {*(const struct scan_index_args *)args, bits / 8};          \
    int64_t units = work.a.outer * work.a.inner * work.a.segments;                 \
    rdna__parallel_for(units, 1 + 8192 / (work.a.segment + 1), scan_units, &work); \
  }
SCAN_INDEX(8)
SCAN_INDEX(16)
SCAN_INDEX(32)
SCAN_INDEX(64)
