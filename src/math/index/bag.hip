/* Bags of rows. Bound by the rows that are read, which lie anywhere: a thread has four of them in flight. */
#include "kernel/prelude.h"
#include "math/common/device/values.h"
#include "math/index/bag_kernels.h"

enum { AHEAD = 4 };

RDNA_DEVICE int64_t index_at(const bag_args &a, const void *list, int64_t i) {
  return a.indices_i64 ? global((const int64_t *)list)[i] : global((const int32_t *)list)[i];
}

template <typename type, typename acc>
RDNA_DEVICE void bags(const bag_args &a) {
  const uint32_t lane = thread_id() & (a.lanes - 1), per_group = BAG_THREADS / a.lanes;
  const int64_t step = (int64_t)group_count_x() * per_group;
#pragma nounroll
  for (int64_t bag = (int64_t)group_id_x() * per_group + thread_id() / a.lanes; bag < a.bags; bag += step) {
    int64_t begin = index_at(a, a.begins, bag);
    int64_t end = bag + 1 < a.bags || a.has_end ? index_at(a, a.begins, bag + 1) : a.count;
    begin = begin < 0 ? 0 : begin, end = end < a.count ? end : a.count;
    int64_t size = 0;
#pragma nounroll
    for (int64_t c = lane; c < a.cols || c == lane; c += a.lanes) {
      acc sum = 0;
      int64_t best = 0, counted = 0;
#pragma nounroll
      for (int64_t at = begin; at < end; at += AHEAD) {
        int64_t row[AHEAD];
        acc v[AHEAD], w[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
          row[k] = at + k < end ? index_at(a, a.indices, at + k) : -1;
          if (at + k < end && (row[k] < 0 || row[k] >= a.rows)) {
            if (a.outside) atomic_or_u32(a.outside, 1);
            row[k] = -1;
          }
          if (row[k] == a.padding) row[k] = -1;
          v[k] = row[k] >= 0 && c < a.cols ? type::load(a.table, (uint64_t)(row[k] * a.table_stride + c)) : 0;
          w[k] = a.weights && row[k] >= 0 ? type::load(a.weights, (uint64_t)(at + k)) : 1;
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
          if (row[k] < 0) continue;
          if (a.mode != BAG_MAX) {
            sum += v[k] * w[k];
          } else if (counted == 0 || v[k] > sum) {
            sum = v[k], best = row[k];
          }
          counted++;
        }
      }
      size = counted;
      if (c >= a.cols) continue;
      if (a.mode == BAG_MEAN && counted > 0) sum /= (acc)counted;
      type::store(a.out, (uint64_t)(bag * a.cols + c), sum);
      if (a.largest) a.largest[bag * a.cols + c] = best;
    }
    if (a.sizes && lane == 0) a.sizes[bag] = size;
    for (int64_t at = begin + lane; at < end && a.bag_of; at += a.lanes) a.bag_of[at] = bag;
  }
}

RDNA_KERNEL(BAG_THREADS) bag_f32(struct bag_args a) { bags<f32, float>(a); }
RDNA_KERNEL(BAG_THREADS) bag_f16(struct bag_args a) { bags<f16, float>(a); }
RDNA_KERNEL(BAG_THREADS) bag_bf16(struct bag_args a) { bags<bf16, float>(a); }
RDNA_KERNEL(BAG_THREADS) bag_f64(struct bag_args a) { bags<f64, double>(a); }
