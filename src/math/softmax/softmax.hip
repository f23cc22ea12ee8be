/* Softmax of rows. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/softmax/softmax_kernels.h"
#include "math/values.h"

/* The threads that share a row. */
struct wave_team {
  enum { SIZE = WAVE_SIZE };
  RDNA_DEVICE uint32_t rank() { return lane_id(); }
  RDNA_DEVICE float sum(float v, float *) { return wave_sum_f32(v); }
  RDNA_DEVICE float max(float v, float *) { return wave_max_f32(v); }
};
struct group_team {
  enum { SIZE = SOFTMAX_THREADS };
  RDNA_DEVICE uint32_t rank() { return thread_id(); }
  RDNA_DEVICE float sum(float v, float *scratch) { return group_sum_f32<SOFTMAX_THREADS>(v, scratch); }
  RDNA_DEVICE float max(float v, float *scratch) { return group_max_f32<SOFTMAX_THREADS>(v, scratch); }
};

/* |width| values, either 16 bytes at once or one. */
template <typename type, int width>
RDNA_DEVICE void load_values(const void *row, uint64_t col, float *v) {
  if constexpr (width == 1) {
    v[0] = type::load(row, col);
  } else {
    type::load_16((const typename type::stored *)row + col, v);
  }
}
template <typename type, int width>
RDNA_DEVICE void store_values(void *row, uint64_t col, const float *v) {
  if constexpr (width == 1) {
    type::store(row, col, v[0]);
  } else {
    type::store_16((typename type::stored *)row + col, v);
  }
}

/* The value written for scale x = v. |top| is the row's maximum; |last| is 1 / sum, or log(sum). */
RDNA_DEVICE float finish(float v, float top, float last, bool log) {
  return log ? v - top - last : scalar_exp(v - top) * last;
}

/* A row that fits the team's registers: |held| steps of |width| values a thread. */
template <typename type, int width, typename team>
RDNA_DEVICE void held_row(const softmax_args &a, const void *x, void *out, float *scratch) {
  constexpr int held = 32 / width;
  float v[held][width], top = -infinity_f32(), sum = 0;
#pragma unroll
  for (int i = 0; i < held; i++) {
    uint64_t col = ((uint64_t)i * team::SIZE + team::rank()) * width;
#pragma unroll
    for (int j = 0; j < width; j++) v[i][j] = -infinity_f32();
    if (col >= (uint64_t)a.cols) continue;
    load_values<type, width>(x, col, v[i]);
#pragma unroll
    for (int j = 0; j < width; j++) {
      v[i][j] *= a.scale;
      top = max_f32(top, v[i][j]);
    }
  }
  top = team::max(top, scratch);
#pragma unroll
  for (int i = 0; i < held; i++) {
    uint64_t col = ((uint64_t)i * team::SIZE + team::rank()) * width;
    if (col >= (uint64_t)a.cols) continue;
#pragma unroll
    for (int j = 0; j < width; j++) {
      float e = scalar_exp(v[i][j] - top);
      sum += e;
      if (!a.log) v[i][j] = e;
    }
  }
  sum = team::sum(sum, scratch);
  float last = a.log ? scalar_log(sum) : 1 / sum;
#pragma unroll
  for (int i = 0; i < held; i++) {
    uint64_t col = ((uint64_t)i * team::SIZE + team::rank()) * width;
    if (col >= (uint64_t)a.cols) continue;
#pragma unroll
    for (int j = 0; j < width; j++) v[i][j] = a.log ? v[i][j] - top - last : v[i][j] * last;
    store_values<type, width>(out, col, v[i]);
  }
}

/* A longer row: one pass keeps a maximum and a sum a thread, the second writes. */
template <typename type, int width>
RDNA_DEVICE void long_row(const softmax_args &a, const void *x, void *out, float *scratch) {
  constexpr uint64_t step = SOFTMAX_THREADS * width;
  float top = -infinity_f32(), sum = 0;
  for (uint64_t col = (uint64_t)thread_id() * width; col < (uint64_t)a.cols; col += step) {
    float v[width], grown = top;
    load_values<type, width>(x, col, v);
#pragma unroll
    for (int j = 0; j < width; j++) {
      v[j] *= a.scale;
      grown = max_f32(grown, v[j]);
    }
    /* a row that begins with -inf has no difference of maxima yet, and nothing to rescale */
    if (grown == -infinity_f32()) continue;
    sum *= sum != 0 ? scalar_exp(top - grown) : 1;
#pragma unroll
    for (int j = 0; j < width; j++) sum += scalar_exp(v[j] - grown);
    top = grown;
  }
  float row_top = group_max_f32<SOFTMAX_THREADS>(top, scratch);
  sum = group_sum_f32<SOFTMAX_THREADS>(sum != 0 ? sum * scalar_exp(top - row_top) : 0, scratch);
  float last = a.log ? scalar_log(sum) : 1 / sum;
  for (uint64_t col = (uint64_t)thread_id() * width; col < (uint64_t)a.cols; col += step) {
    float v[width];
    load_values<type, width>(x, col, v);
#pragma unroll
    for (int j = 0; j < width; j++) v[j] = finish(v[j] * a.scale, row_top, last, a.log);
    store_values<type, width>(out, col, v);
  }
}

template <typename type, int width>
RDNA_DEVICE void rows_of(const softmax_args &a, float *scratch) {
  const char *x = (const char *)a.x;
  char *out = (char *)a.out;
  if (a.cols <= SOFTMAX_WAVE_COLS) {
    constexpr int64_t waves = SOFTMAX_THREADS / WAVE_SIZE;
    for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
      held_row<type, width, wave_team>(a, x + row * a.x_stride * type::BYTES, out + row * a.out_stride * type::BYTES,
                                       scratch);
    }
    return;
  }
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    const void *from = x + row * a.x_stride * type::BYTES;
    void *to = out + row * a.out_stride * type::BYTES;
    if (a.cols <= SOFTMAX_HELD_COLS) {
      held_row<type, width, group_team>(a, from, to, scratch);
    } else {
      long_row<type, width>(a, from, to, scratch);
    }
  }
}

template <typename type>
RDNA_DEVICE void softmax(const softmax_args &a, float *scratch) {
  uint64_t bytes = (uint64_t)a.cols | (uint64_t)a.x_stride | (uint64_t)a.out_stride;
  if (all_16(address_of(a.x) | address_of(a.out) | bytes * type::BYTES)) {
    rows_of<type, type::IN_16>(a, scratch);
  } else {
    rows_of<type, 1>(a, scratch);
  }
}

#define SOFTMAX(name, type)                                           \
  RDNA_KERNEL(SOFTMAX_THREADS) name(struct softmax_args a) {          \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(SOFTMAX_THREADS)]; \
    softmax<type>(a, scratch);                                        \
  }
SOFTMAX(softmax_f32, f32)
SOFTMAX(softmax_f16, f16)
SOFTMAX(softmax_bf16, bf16)
