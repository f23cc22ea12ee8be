#include "kernel/host.h"
#include "math/common/host/doubles.h"
#include "math/index/bag_kernels.h"

struct work {
  const struct bag_args *args;
  rdna_dtype dtype;
};

static int64_t index_at(const struct bag_args *a, const void *list, int64_t i) {
  return a->indices_i64 ? ((const int64_t *)list)[i] : ((const int32_t *)list)[i];
}
/* The row of index |i|, or -1 of one that does not count. */
static int64_t row_of(const struct bag_args *a, int64_t i) {
  int64_t row = index_at(a, a->indices, i);
  if (row >= 0 && row < a->rows) return row == a->padding ? -1 : row;
  if (a->outside) __atomic_fetch_or(a->outside, 1, __ATOMIC_RELAXED);
  return -1;
}

/* f32 sums for all but f64, as the device has them. */
#define BAG(name, real, load, store)                                                          \
  static void bag_##name(const struct bag_args *a, int64_t bag, int64_t begin, int64_t end) { \
    int64_t counted = 0;                                                                      \
    for (int64_t c0 = 0; c0 < a->cols || c0 == 0; c0 += 64) {                                 \
      int64_t n = a->cols - c0 < 64 ? a->cols - c0 : 64, best[64] = {0};                      \
      real sum[64] = {0};                                                                     \
      counted = 0;                                                                            \
      for (int64_t at = begin; at < end; at++) {                                              \
        int64_t row = row_of(a, at);                                                          \
        if (row < 0) continue;                                                                \
        int64_t place = row * a->table_stride + c0;                                           \
        real w = a->weights ? load(a->weights, at) : 1;                                       \
        for (int64_t c = 0; c < n; c++) {                                                     \
          real v = load(a->table, place + c);                                                 \
          if (a->mode != BAG_MAX) {                                                           \
            sum[c] += v * w;                                                                  \
          } else if (counted == 0 || v > sum[c]) {                                            \
            sum[c] = v, best[c] = row;                                                        \
          }                                                                                   \
        }                                                                                     \
        counted++;                                                                            \
      }                                                                                       \
      for (int64_t c = 0; c < n; c++) {                                                       \
        if (a->mode == BAG_MEAN && counted > 0) sum[c] /= (real)counted;                      \
        store(a->out, bag * a->cols + c0 + c, sum[c]);                                        \
        if (a->largest) a->largest[bag * a->cols + c0 + c] = best[c];                         \
      }                                                                                       \
    }                                                                                         \
    if (a->sizes) a->sizes[bag] = counted;                                                    \
  }
#define LOAD_F32(p, i) ((const float *)(p))[i]
#define LOAD_F16(p, i) f16_to_f32(((const uint16_t *)(p))[i])
#define LOAD_BF16(p, i) bf16_to_f32(((const uint16_t *)(p))[i])
#define LOAD_F64(p, i) ((const double *)(p))[i]
#define STORE_F32(p, i, v) ((float *)(p))[i] = (v)
#define STORE_F16(p, i, v) ((uint16_t *)(p))[i] = f32_to_f16(v)
#define STORE_BF16(p, i, v) ((uint16_t *)(p))[i] = f32_to_bf16(v)
#define STORE_F64(p, i, v) ((double *)(p))[i] = (v)
BAG(f32, float, LOAD_F32, STORE_F32)
BAG(f16, float, LOAD_F16, STORE_F16)
BAG(bf16, float, LOAD_BF16, STORE_BF16)
BAG(f64, double, LOAD_F64, STORE_F64)

static void some_bags(void *context, int64_t first, int64_t last) {
  const struct work *work = context;
  const struct bag_args *a = work->args;
  for (int64_t bag = first; bag < last; bag++) {
    int64_t begin = index_at(a, a->begins, bag);
    int64_t end = bag + 1 < a->bags || a->has_end ? index_at(a, a->begins, bag + 1) : a->count;
    begin = begin < 0 ? 0 : begin, end = end < a->count ? end : a->count;
    if (work->dtype == RDNA_F32) bag_f32(a, bag, begin, end);
    if (work->dtype == RDNA_F16) bag_f16(a, bag, begin, end);
    if (work->dtype == RDNA_BF16) bag_bf16(a, bag, begin, end);
    if (work->dtype == RDNA_F64) bag_f64(a, bag, begin, end);
    for (int64_t at = begin; at < end && a->bag_of; at++) a->bag_of[at] = bag;
  }
}

static void bags(const void *args, rdna_dtype dtype) {
  struct bag_args a = *(const struct bag_args *)args;
  struct work work = {&a, dtype};
  rdna__parallel_for(a.bags, 1 + 4096 / (1 + a.cols + (a.bags ? a.count / a.bags * a.cols : 0)), some_bags, &work);
}
void RDNA_HOST_KERNEL(bag_f32)(const void *args, rdna_grid grid) { bags(args, RDNA_F32); }
void RDNA_HOST_KERNEL(bag_f16)(const void *args, rdna_grid grid) { bags(args, RDNA_F16); }
void RDNA_HOST_KERNEL(bag_bf16)(const void *args, rdna_grid grid) { bags(args, RDNA_BF16); }
void RDNA_HOST_KERNEL(bag_f64)(const void *args, rdna_grid grid) { bags(args, RDNA_F64); }
