/* Non-maximum suppression; see nms_kernels.h. */
#include "math/common/device/doubles.h"
#include "math/vision/nms_kernels.h"

template <typename type>
RDNA_DEVICE void take_boxes(const nms_boxes_args &a) {
  typedef typename computed<type>::in acc;
  uint32_t i = group_id_x() * NMS_THREADS + thread_id();
  if (i >= a.n) return;
  int64_t from = a.order[i] * a.stride[0];
#pragma unroll
  for (int d = 0; d < 4; d++)
    ((acc *)a.sorted)[4 * (uint64_t)i + d] = type::load(a.boxes, (uint64_t)(from + d * a.stride[1]));
}

template <typename args>
RDNA_DEVICE float threshold_of(const args &a, const float *) {
  return a.threshold;
}
template <typename args>
RDNA_DEVICE double threshold_of(const args &a, const double *) {
  return a.threshold_f64;
}
RDNA_DEVICE bool covers(const float *a, const float *b, float threshold) { return nms_covers_f32(a, b, threshold); }
RDNA_DEVICE bool covers(const double *a, const double *b, double threshold) { return nms_covers_f64(a, b, threshold); }
template <typename acc>
RDNA_DEVICE void load_box(const acc *sorted, uint32_t i, acc *box) {
#pragma unroll
  for (int d = 0; d < 4; d++) box[d] = sorted[4 * (uint64_t)i + d];
}

/* A thread has a box and a word: group x says which 256 boxes, y which word. */
template <typename acc>
RDNA_DEVICE void find_pairs(const nms_pairs_args &a) {
  uint32_t i = group_id_x() * NMS_THREADS + thread_id(), word = group_id_y(), bits = 0;
  const acc *sorted = (const acc *)a.sorted;
  acc threshold = threshold_of(a, sorted);
  if (i < a.count && word >= i / NMS_TILE) {
    acc own[4], other[4];
    load_box(sorted, a.first + i, own);
    uint32_t end = min_u32(NMS_TILE, a.count - word * NMS_TILE);
#pragma nounroll
    for (uint32_t b = 0; b < end; b++) {
      load_box(sorted, a.first + word * NMS_TILE + b, other);
      bool later = word * NMS_TILE + b > i;
      bits |= (uint32_t)(later && covers(own, other, threshold)) << b;
    }
  }
  if (i < (a.count + NMS_TILE - 1) / NMS_TILE * NMS_TILE) a.pairs[(uint64_t)word * NMS_CHUNK + i] = bits;
}

struct tile_rows {
  uint4 part[NMS_TILE / 4];
};
RDNA_DEVICE tile_rows load_rows(const uint32_t *rows) {
  tile_rows r;
#pragma unroll
  for (uint32_t k = 0; k < NMS_TILE / 4; k++) r.part[k] = load_as<uint4>(rows + 4 * k);
  return r;
}

/* One group; thread w has word w of what is covered. The rows of the next tile are loaded while this one is decided. */
RDNA_DEVICE void choose(const nms_choose_args &a) {
  RDNA_SHARED static uint32_t chosen[2];
  uint32_t w = thread_id(), words = (a.count + NMS_TILE - 1) / NMS_TILE, begin = a.range[1], at = begin;
  uint32_t covered = 0;
  bool there = w < words;
  const uint32_t *rows = a.pairs + (uint64_t)(there ? w : 0) * NMS_CHUNK;
  for (uint32_t b = 0; there && b < NMS_TILE; b++) {
    uint32_t i = w * NMS_TILE + b;
    covered |= (uint32_t)(i >= a.count || a.covered[a.first + i]) << b;
  }
  tile_rows next = load_rows(rows);
#pragma nounroll
  for (uint32_t t = 0; t < words; t++) {
    tile_rows now = next;
    if (t + 1 < words) next = load_rows(rows + (t + 1) * NMS_TILE);
    if (w == t) {
      uint32_t gone = covered;
#pragma unroll
      for (uint32_t b = 0; b < NMS_TILE; b++) {
        uint32_t row = now.part[b / 4][b % 4];
        gone |= gone >> b & 1 ? 0 : row;
      }
      chosen[t & 1] = ~gone;
    }
    group_barrier();
    uint32_t bits = chosen[t & 1];
    if (w > t) {
#pragma unroll
      for (uint32_t b = 0; b < NMS_TILE; b++) {
        uint32_t row = now.part[b / 4][b % 4];
        covered |= bits >> b & 1 ? row : 0;
      }
    }
    if (w < NMS_TILE && bits >> w & 1) {
      uint32_t place = a.first + t * NMS_TILE + w, to = at + (uint32_t)__builtin_popcount(bits & ((1u << w) - 1));
      a.kept[to] = a.order[place];
      a.places[to] = place;
    }
    at += (uint32_t)__builtin_popcount(bits);
  }
  if (w == 0) a.range[0] = begin, a.range[1] = at, *a.total = at;
}

template <typename acc>
RDNA_DEVICE void cover_later(const nms_later_args &a) {
  uint32_t i = a.first + group_id_x() * NMS_THREADS + thread_id();
  if (i >= a.n || a.covered[i]) return;
  const acc *sorted = (const acc *)a.sorted;
  acc threshold = threshold_of(a, sorted), own[4], other[4];
  load_box(sorted, i, own);
  uint32_t end = a.range[1];
#pragma nounroll
  for (uint32_t k = a.range[0]; k < end; k++) {
    load_box(sorted, a.places[k], other);
    if (!covers(other, own, threshold)) continue;
    a.covered[i] = 1;
    return;
  }
}

RDNA_KERNEL(NMS_THREADS) nms_boxes_f32(struct nms_boxes_args a) { take_boxes<f32>(a); }
RDNA_KERNEL(NMS_THREADS) nms_boxes_f16(struct nms_boxes_args a) { take_boxes<f16>(a); }
RDNA_KERNEL(NMS_THREADS) nms_boxes_bf16(struct nms_boxes_args a) { take_boxes<bf16>(a); }
RDNA_KERNEL(NMS_THREADS) nms_boxes_f64(struct nms_boxes_args a) { take_boxes<f64>(a); }
RDNA_KERNEL(NMS_THREADS) nms_pairs_f32(struct nms_pairs_args a) { find_pairs<float>(a); }
RDNA_KERNEL(NMS_THREADS) nms_pairs_f64(struct nms_pairs_args a) { find_pairs<double>(a); }
RDNA_KERNEL(NMS_WORDS) nms_choose(struct nms_choose_args a) { choose(a); }
RDNA_KERNEL(NMS_THREADS) nms_later_f32(struct nms_later_args a) { cover_later<float>(a); }
RDNA_KERNEL(NMS_THREADS) nms_later_f64(struct nms_later_args a) { cover_later<double>(a); }
