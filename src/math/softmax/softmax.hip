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

/* A longer row: one pass keeps a maximum and a sum a thread, the second writes. Without 16-byte accesses a thread takes
 * four values at once, a group's width apart. */
template <typename type, int width>
RDNA_DEVICE void long_row(const softmax_args &a, const void *x, void *out, float *scratch) {
  constexpr int count = width == 1 ? 4 : width;
  constexpr uint64_t apart = width == 1 ? SOFTMAX_THREADS : 1, step = SOFTMAX_THREADS * count;
  const uint64_t cols = (uint64_t)a.cols, begin = (uint64_t)thread_id() * width;
  float top = -infinity_f32(), sum = 0;
  for (uint64_t col = begin; col < cols; col += step) {
    float v[count], grown = top;
    if constexpr (width == 1) {
#pragma unroll
      for (int j = 0; j < count; j++) v[j] = type::load(x, col + j * apart < cols ? col + j * apart : col);
    } else {
      load_values<type, width>(x, col, v);
    }
#pragma unroll
    for (int j = 0; j < count; j++) {
      v[j] = width == 1 && col + j * apart >= cols ? -infinity_f32() : v[j] * a.scale;
      grown = max_f32(grown, v[j]);
    }
    /* a row that begins with -inf has no difference of maxima yet, and nothing to rescale */
    if (grown == -infinity_f32()) continue;
    sum *= sum != 0 ? exp_of<type>(top - grown) : 1;
#pragma unroll
    for (int j = 0; j < count; j++) sum += exp_of<type>(v[j] - grown);
    top = grown;
  }
  float row_top = group_max_f32<SOFTMAX_THREADS>(top, scratch);
  sum = group_sum_f32<SOFTMAX_THREADS>(sum != 0 ? sum * exp_of<type>(top - row_top) : 0, scratch);
  float last = a.log ? scalar_log(sum) : 1 / sum;
  for (uint64_t col = begin; col < cols; col += step) {
    float v[count];
    if constexpr (width == 1) {
#pragma unroll
      for (int j = 0; j < count; j++) v[j] = type::load(x, col + j * apart < cols ? col + j * apart : col);
    } else {
      load_values<type, width>(x, col, v);
    }
#pragma unroll
    for (int j = 0; j < count; j++) v[j] = finish<type>(v[j] * a.scale, row_top, last, a.log);
    if constexpr (width == 1) {
#pragma unroll
      for (int j = 0; j < count; j++) {
        if (col + j * apart < cols) type::store(out, col + j * apart, v[j]);
      }
    } else {
      store_values<type, width>(out, col, v);
    }
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

/* |lanes| of a wave for each row of at most 16 bytes a lane, |at_once| rows for each of those, whose loads wait
 * together. */
template <typename type, uint32_t lanes, uint32_t at_once>
RDNA_DEVICE void short_rows(const softmax_args &a) {
  constexpr uint32_t width = type::IN_16, teams = SOFTMAX_THREADS / lanes;
  const uint32_t col = lane_id() % lanes * width;
  for (int64_t first = (int64_t)group_id_x() * teams * at_once; first < a.rows;
       first += (int64_t)group_count_x() * teams * at_once) {
    uint4 bits[at_once];
    int64_t row[at_once];
    bool there[at_once];
#pragma unroll
    for (uint32_t r = 0; r < at_once; r++) {
      row[r] = first + r * teams + thread_id() / lanes;
      there[r] = row[r] < a.rows && col < (uint32_t)a.cols;
      bits[r] = uint4{};
      if (there[r]) bits[r] = load_as<uint4>(row_at<type>(a.x, row[r], a.x_stride) + col * type::BYTES);
    }
#pragma unroll
    for (uint32_t r = 0; r < at_once; r++) {
      float v[width], top = -infinity_f32(), sum = 0;
      type::unpack(bits[r], v);
#pragma unroll
      for (uint32_t k = 0; k < width; k++) {
        v[k] *= a.scale;
        if (there[r]) top = max_f32(top, v[k]);
      }
#pragma unroll
      for (uint32_t mask = 1; mask < lanes; mask *= 2) top = max_f32(top, wave_shuffle_xor_f32(top, mask));
#pragma unroll
      for (uint32_t k = 0; k < width; k++) {
        if (there[r]) sum += exp_of<type>(v[k] - top);
      }
#pragma unroll
      for (uint32_t mask = 1; mask < lanes; mask *= 2) sum += wave_shuffle_xor_f32(sum, mask);
      float last = a.log ? scalar_log(sum) : 1 / sum;
#pragma unroll
      for (uint32_t k = 0; k < width; k++) v[k] = finish<type>(v[k], top, last, a.log);
      if (there[r]) type::store_16((char *)row_at<type>(a.out, row[r], a.out_stride) + col * type::BYTES, v);
    }
  }
}

template <typename type>
RDNA_DEVICE void softmax(const softmax_args &a, float *scratch) {
  constexpr int few = 4, many = SOFTMAX_WAVE_BYTES / 16 / WAVE_SIZE, single = 16; /* pieces of a thread */
  uint64_t bytes = (uint64_t)a.cols | (uint64_t)a.x_stride | (uint64_t)a.out_stride;
  bool wide = all_16(address_of(a.x) | address_of(a.out) | bytes * type::BYTES);
  if (wide && a.cols <= 4 * type::IN_16) return short_rows<type, 4, 4>(a);
  if (wide && a.cols <= 16 * type::IN_16) return short_rows<type, 16, 4>(a);
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
