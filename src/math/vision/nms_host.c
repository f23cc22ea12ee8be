/* Host twins of nms_kernels.h. */
#include "math/common/host/doubles.h"
#include "math/vision/nms_kernels.h"

#define TAKE(type, dtype, real)                                                                \
  static void take_##type(void *context, int64_t begin, int64_t end) {                         \
    const struct nms_boxes_args *a = context;                                                  \
    for (int64_t i = begin; i < end; i++) {                                                    \
      for (int d = 0; d < 4; d++)                                                              \
        ((real *)a->sorted)[4 * i + d] =                                                       \
            (real)load_double(dtype, a->boxes, a->order[i] * a->stride[0] + d * a->stride[1]); \
    }                                                                                          \
  }                                                                                            \
  void RDNA_HOST_KERNEL(nms_boxes_##type)(const void *args, rdna_grid grid) {                  \
    struct nms_boxes_args a = *(const struct nms_boxes_args *)args;                            \
    rdna__parallel_for(a.n, 1024, take_##type, &a);                                            \
  }
TAKE(f32, RDNA_F32, float)
TAKE(f16, RDNA_F16, float)
TAKE(bf16, RDNA_BF16, float)
TAKE(f64, RDNA_F64, double)

static uint32_t words_of(uint32_t count) { return (count + NMS_TILE - 1) / NMS_TILE; }

#define PAIRS(type, real, limit)                                                                         \
  static void pairs_##type(void *context, int64_t begin, int64_t end) {                                  \
    const struct nms_pairs_args *a = context;                                                            \
    const real *sorted = (const real *)a->sorted + 4 * (int64_t)a->first;                                \
    for (uint32_t word = 0; word < words_of(a->count); word++) {                                         \
      for (int64_t i = begin; i < end; i++) {                                                            \
        uint32_t bits = 0;                                                                               \
        for (uint32_t b = 0; i < a->count && b < NMS_TILE; b++) {                                        \
          int64_t j = (int64_t)word * NMS_TILE + b;                                                      \
          if (j > i && j < a->count && nms_covers_##type(sorted + 4 * i, sorted + 4 * j, a->limit))      \
            bits |= UINT32_C(1) << b;                                                                    \
        }                                                                                                \
        a->pairs[(int64_t)word * NMS_CHUNK + i] = bits;                                                  \
      }                                                                                                  \
    }                                                                                                    \
  }                                                                                                      \
  void RDNA_HOST_KERNEL(nms_pairs_##type)(const void *args, rdna_grid grid) {                            \
    struct nms_pairs_args a = *(const struct nms_pairs_args *)args;                                      \
    rdna__parallel_for((int64_t)words_of(a.count) * NMS_TILE, NMS_TILE, pairs_##type, &a);               \
  }                                                                                                      \
  static void later_##type(void *context, int64_t begin, int64_t end) {                                  \
    const struct nms_later_args *a = context;                                                            \
    const real *sorted = a->sorted;                                                                      \
    for (int64_t i = a->first + begin; i < a->first + end; i++) {                                        \
      for (uint32_t k = a->range[0]; !a->covered[i] && k < a->range[1]; k++)                             \
        a->covered[i] = nms_covers_##type(sorted + 4 * (int64_t)a->places[k], sorted + 4 * i, a->limit); \
    }                                                                                                    \
  }                                                                                                      \
  void RDNA_HOST_KERNEL(nms_later_##type)(const void *args, rdna_grid grid) {                            \
    struct nms_later_args a = *(const struct nms_later_args *)args;                                      \
    rdna__parallel_for((int64_t)a.n - a.first, 64, later_##type, &a);                                    \
  }
PAIRS(f32, float, threshold)
PAIRS(f64, double, threshold_f64)

void RDNA_HOST_KERNEL(nms_choose)(const void *args, rdna_grid grid) {
  const struct nms_choose_args *a = args;
  uint32_t covered[NMS_WORDS] = {0}, words = words_of(a->count), at = a->range[1];
  a->range[0] = at;
  for (uint32_t i = 0; i < a->count; i++) {
    if (covered[i / NMS_TILE] >> i % NMS_TILE & 1 || a->covered[a->first + i]) continue;
    a->kept[at] = a->order[a->first + i], a->places[at++] = a->first + i;
    for (uint32_t w = i / NMS_TILE; w < words; w++) covered[w] |= a->pairs[(int64_t)w * NMS_CHUNK + i];
  }
  a->range[1] = at, *a->total = at;
}
