/* Reductions of rows. Each thread keeps as many partial results as 16 bytes hold values, so that their additions do
 * not wait for each other. */
#include "kernel/prelude.h"
#include "math/common/device/values.h"
#include "math/reduce/reduce_kernels.h"

struct sum_of {
  RDNA_DEVICE float identity() { return 0; }
  RDNA_DEVICE float join(float a, float b) { return a + b; }
  RDNA_DEVICE float wave(float v) { return wave_sum_f32(v); }
  RDNA_DEVICE float group(float v, float *scratch) { return group_sum_f32<REDUCE_THREADS>(v, scratch); }
};
struct max_of {
  RDNA_DEVICE float identity() { return -infinity_f32(); }
  RDNA_DEVICE float join(float a, float b) { return max_f32(a, b); }
  RDNA_DEVICE float wave(float v) { return wave_max_f32(v); }
  RDNA_DEVICE float group(float v, float *scratch) { return group_max_f32<REDUCE_THREADS>(v, scratch); }
};

/* What thread |rank| of |threads| finds in its share of the row. */
template <typename type, typename op, int width>
RDNA_DEVICE float partial(const typename type::stored *row, uint64_t cols, uint32_t rank, uint32_t threads) {
  float v[width], all[width];
#pragma unroll
  for (int j = 0; j < width; j++) all[j] = op::identity();
#pragma unroll 4
  for (uint64_t col = (uint64_t)rank * width; col < cols; col += (uint64_t)threads * width) {
    if constexpr (width == 1) {
      v[0] = type::load(row, col);
    } else {
      type::load_16(row + col, v);
    }
#pragma unroll
    for (int j = 0; j < width; j++) all[j] = op::join(all[j], v[j]);
  }
#pragma unroll
  for (int half = width / 2; half > 0; half /= 2)
#pragma unroll
    for (int j = 0; j < half; j++) all[j] = op::join(all[j], all[j + half]);
  return all[0];
}

template <typename type, typename op, int width>
RDNA_DEVICE void reduce_rows(const reduce_args &a, float *scratch) {
  const typename type::stored *x = (const typename type::stored *)a.x;
  if (REDUCE_BY_WAVE(a.rows, a.cols)) {
    constexpr int64_t waves = REDUCE_THREADS / WAVE_SIZE;
    for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
      float v = op::wave(partial<type, op, width>(x + row * a.x_stride, (uint64_t)a.cols, lane_id(), WAVE_SIZE));
      if (lane_id() == 0) a.out[row] = v * a.scale;
    }
    return;
  }
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    float v = partial<type, op, width>(x + row * a.x_stride, (uint64_t)a.cols, thread_id(), REDUCE_THREADS);
    v = op::group(v, scratch);
    if (thread_id() == 0) a.out[row] = v * a.scale;
  }
}

template <typename type, typename op>
RDNA_DEVICE void reduce(const reduce_args &a, float *scratch) {
  if (all_16(address_of(a.x) | ((uint64_t)a.cols | (uint64_t)a.x_stride) * type::BYTES)) {
    reduce_rows<type, op, type::IN_16>(a, scratch);
  } else {
    reduce_rows<type, op, 1>(a, scratch);
  }
}

#define REDUCE(name, type, op)                                       \
  RDNA_KERNEL(REDUCE_THREADS) name(struct reduce_args a) {           \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(REDUCE_THREADS)]; \
    reduce<type, op>(a, scratch);                                    \
  }
REDUCE(sum_rows_f32, f32, sum_of)
REDUCE(sum_rows_f16, f16, sum_of)
REDUCE(sum_rows_bf16, bf16, sum_of)
REDUCE(max_rows_f32, f32, max_of)
REDUCE(max_rows_f16, f16, max_of)
REDUCE(max_rows_bf16, bf16, max_of)

template <int width>
RDNA_DEVICE value_index argmax_partial(const float *row, uint32_t cols, uint32_t rank, uint32_t threads) {
  value_index best = {-infinity_f32(), 0xffffffffu};
#pragma unroll 4
  for (uint64_t col = (uint64_t)rank * width; col < cols; col += (uint64_t)threads * width) {
    float v[width];
    if constexpr (width == 1) {
      v[0] = row[col];
    } else {
      f32::load_16(row + col, v);
    }
#pragma unroll
    for (int j = 0; j < width; j++) {
      value_index here = {v[j], (uint32_t)col + (uint32_t)j};
      if (value_index_before(here, best)) best = here;
    }
  }
  return best;
}

template <int width>
RDNA_DEVICE void argmax_rows(const argmax_args &a, value_index *scratch) {
  const float *x = (const float *)a.x;
  if (REDUCE_BY_WAVE(a.rows, a.cols)) {
    constexpr int64_t waves = REDUCE_THREADS / WAVE_SIZE;
    for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
      value_index v = argmax_partial<width>(x + row * a.x_stride, (uint32_t)a.cols, lane_id(), WAVE_SIZE);
      v = wave_argmax_f32(v);
      if (lane_id() == 0) a.out[row] = (int32_t)v.index;
    }
    return;
  }
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    value_index v = argmax_partial<width>(x + row * a.x_stride, (uint32_t)a.cols, thread_id(), REDUCE_THREADS);
    v = group_argmax_f32<REDUCE_THREADS>(v, scratch);
    if (thread_id() == 0) a.out[row] = (int32_t)v.index;
  }
}

RDNA_KERNEL(REDUCE_THREADS) argmax_rows_f32(struct argmax_args a) {
  RDNA_SHARED static value_index scratch[GROUP_SCRATCH(REDUCE_THREADS)];
  if (all_16(address_of(a.x) | ((uint64_t)a.cols | (uint64_t)a.x_stride) * 4)) {
    argmax_rows<4>(a, scratch);
  } else {
    argmax_rows<1>(a, scratch);
  }
}
