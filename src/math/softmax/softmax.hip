/* Softmax of rows. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/chunk.h"
#include "math/fast.h"
#include "math/softmax/softmax_kernels.h"

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

/* Results of 16 bits hide the error of the hardware's exponential. */
template <typename type>
RDNA_DEVICE float exp_of(float v) {
  return type::BYTES == 4 ? scalar_exp(v) : fast_exp(v);
}

/* The value written for scale x = v. |top| is the row's maximum; |last| is 1 / sum, or log(sum). */
template <typename type>
RDNA_DEVICE float finish(float v, float top, float last, bool log) {
  return log ? v - top - last : exp_of<type>(v - top) * last;
}

/* A row that fits the team's registers, |pieces| a thread: exponentials are computed twice, since keeping them would
 * take twice the registers, and with that half of the loads in flight. */
template <typename type, bool wide, int pieces, typename team>
RDNA_DEVICE void held_row(const softmax_args &a, const void *x, void *out, float *scratch) {
  typedef piece<type, wide> part;
  constexpr uint32_t width = part::COUNT;
  const uint32_t cols = (uint32_t)a.cols, first = team::rank() * width;
  part held[pieces];
  float v[width], top = -infinity_f32(), sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < pieces; i++) {
    uint32_t col = i * team::SIZE * width + first;
    if (col < cols) held[i] = part::load(x, col);
  }
#pragma unroll
  for (uint32_t i = 0; i < pieces; i++) {
    if (i * team::SIZE * width + first >= cols) continue;
    part::unpack(held[i], v);
#pragma unroll
    for (uint32_t j = 0; j < width; j++) top = max_f32(top, v[j] * a.scale);
  }
  top = team::max(top, scratch);
#pragma unroll
  for (uint32_t i = 0; i < pieces; i++) {
    if (i * team::SIZE * width + first >= cols) continue;
    part::unpack(held[i], v);
#pragma unroll
    for (uint32_t j = 0; j < width; j++) sum += exp_of<type>(v[j] * a.scale - top);
  }
  sum = team::sum(sum, scratch);
  float last = a.log ? scalar_log(sum) : 1 / sum;
#pragma unroll
  for (uint32_t i = 0; i < pieces; i++) {
    uint32_t col = i * team::SIZE * width + first;
    if (col >= cols) continue;
    part::unpack(held[i], v);
#pragma unroll
    for (uint32_t j = 0; j < width; j++) v[j] = finish<type>(v[j] * a.scale, top, last, a.log);
    store_values<type, width>(out, col, v);
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
    sum *= sum != 0 ? exp_of<type>(top - grown) : 1;
#pragma unroll
    for (int j = 0; j < width; j++) sum += exp_of<type>(v[j] - grown);
    top = grown;
  }
  float row_top = group_max_f32<SOFTMAX_THREADS>(top, scratch);
  sum = group_sum_f32<SOFTMAX_THREADS>(sum != 0 ? sum * exp_of<type>(top - row_top) : 0, scratch);
  float last = a.log ? scalar_log(sum) : 1 / sum;
  for (uint64_t col = (uint64_t)thread_id() * width; col < (uint64_t)a.cols; col += step) {
    float v[width];
    load_values<type, width>(x, col, v);
#pragma unroll
    for (int j = 0; j < width; j++) v[j] = finish<type>(v[j] * a.scale, row_top, last, a.log);
    store_values<type, width>(out, col, v);
  }
}

template <typename type>
RDNA_DEVICE const char *row_at(const void *data, int64_t row, int64_t stride) {
  return (const char *)data + row * stride * type::BYTES;
}

template <typename type, bool wide, int pieces>
RDNA_DEVICE void wave_rows(const softmax_args &a) {
  constexpr int64_t waves = SOFTMAX_THREADS / WAVE_SIZE;
  for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
    held_row<type, wide, pieces, wave_team>(a, row_at<type>(a.x, row, a.x_stride),
                                            (char *)row_at<type>(a.out, row, a.out_stride), NULL);
  }
}

template <typename type>
RDNA_DEVICE void softmax(const softmax_args &a, float *scratch) {
  constexpr int few = 4, many = SOFTMAX_WAVE_BYTES / 16 / WAVE_SIZE, single = 16; /* pieces of a thread */
  uint64_t bytes = (uint64_t)a.cols | (uint64_t)a.x_stride | (uint64_t)a.out_stride;
  bool wide = all_16(address_of(a.x) | address_of(a.out) | bytes * type::BYTES);
  if (wide && a.cols <= few * WAVE_SIZE * type::IN_16) return wave_rows<type, true, few>(a);
  if (wide && a.cols * type::BYTES <= SOFTMAX_WAVE_BYTES) return wave_rows<type, true, many>(a);
  if (!wide && a.cols <= SOFTMAX_WAVE_COLS) return wave_rows<type, false, single>(a);
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    const void *from = row_at<type>(a.x, row, a.x_stride);
    void *to = (char *)row_at<type>(a.out, row, a.out_stride);
    if (!wide) {
      long_row<type, 1>(a, from, to, scratch);
    } else if (a.cols <= many * SOFTMAX_THREADS * type::IN_16) {
      held_row<type, true, many, group_team>(a, from, to, scratch);
    } else {
      long_row<type, type::IN_16>(a, from, to, scratch);
    }
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
