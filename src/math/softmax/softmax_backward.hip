/* Gradients of softmax and log-softmax, and both of them along any dimension. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/chunk.h"
#include "math/softmax/softmax_backward_kernels.h"

static constexpr int threads = SOFTMAX_BACKWARD_THREADS;

/* The threads that share a row. */
struct wave_team {
  enum { SIZE = WAVE_SIZE };
  RDNA_DEVICE uint32_t rank() { return lane_id(); }
  RDNA_DEVICE float sum(float v, float *) { return wave_sum_f32(v); }
};
struct group_team {
  enum { SIZE = SOFTMAX_BACKWARD_THREADS };
  RDNA_DEVICE uint32_t rank() { return thread_id(); }
  RDNA_DEVICE float sum(float v, float *scratch) { return group_sum_f32<threads>(v, scratch); }
};

RDNA_DEVICE float term(float dout, float y, bool log) { return log ? dout : dout * y; }
RDNA_DEVICE float slope(float dout, float y, float sum, float scale, bool log) {
  return log ? scale * (dout - scalar_exp(y) * sum) : scale * y * (dout - sum);
}

struct row_data {
  const void *dout, *out;
  void *dx;
  uint64_t cols;
  float scale;
  bool log;
};

/* A row that fits the team's registers: read once. */
template <typename type, typename team, int vectors>
RDNA_DEVICE void held_row(const row_data &r, float *scratch) {
  constexpr uint32_t size = type::IN_16;
  uint32_t cols = (uint32_t)r.cols;
  uint4 d_bits[vectors], y_bits[vectors];
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    uint32_t i = (j * team::SIZE + team::rank()) * size;
    if (i < cols) {
      d_bits[j] = load_as<uint4>((const char *)r.dout + i * type::BYTES);
      y_bits[j] = load_as<uint4>((const char *)r.out + i * type::BYTES);
    }
  }
  float d[size], y[size], sum = 0;
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    uint32_t i = (j * team::SIZE + team::rank()) * size;
    if (i >= cols) continue;
    type::unpack(d_bits[j], d);
    type::unpack(y_bits[j], y);
#pragma unroll
    for (uint32_t k = 0; k < size; k++) sum += term(d[k], y[k], r.log);
  }
  sum = team::sum(sum, scratch);
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    uint32_t i = (j * team::SIZE + team::rank()) * size;
    if (i >= cols) continue;
    type::unpack(d_bits[j], d);
    type::unpack(y_bits[j], y);
#pragma unroll
    for (uint32_t k = 0; k < size; k++) d[k] = slope(d[k], y[k], sum, r.scale, r.log);
    type::store_16((char *)r.dx + i * type::BYTES, d);
  }
}

template <typename type, typename team, bool wide>
RDNA_DEVICE void long_row(const row_data &r, float *scratch) {
  typedef chunk<type, wide> part;
  constexpr int size = part::COUNT;
  const uint64_t first = team::rank() * size, step = team::SIZE * size;
  float d[size], y[size], sum = 0;
  for (uint64_t i = first; i < r.cols; i += step) {
    part::template load<type>(r.dout, i, d);
    part::template load<type>(r.out, i, y);
#pragma unroll
    for (int k = 0; k < size; k++) sum += term(d[k], y[k], r.log);
  }
  sum = team::sum(sum, scratch);
  for (uint64_t i = first; i < r.cols; i += step) {
    part::template load<type>(r.dout, i, d);
    part::template load<type>(r.out, i, y);
#pragma unroll
    for (int k = 0; k < size; k++) d[k] = slope(d[k], y[k], sum, r.scale, r.log);
    part::store(r.dx, i, d);
  }
}

template <typename type>
RDNA_DEVICE row_data row_of(const softmax_backward_args &a, int64_t row) {
  return {(const char *)a.dout + row * a.dout_stride * type::BYTES,
          (const char *)a.out + row * a.out_stride * type::BYTES,
          (char *)a.dx + row * a.dx_stride * type::BYTES,
          (uint64_t)a.cols,
          a.scale,
          a.log != 0};
}

/* |lanes| of a wave for each row of at most 16 bytes a lane, |at_once| rows for each of those, whose loads wait
 * together. */
template <typename type, uint32_t lanes, uint32_t at_once>
RDNA_DEVICE void short_rows(const softmax_backward_args &a) {
  constexpr uint32_t width = type::IN_16, teams = threads / lanes;
  const uint32_t col = lane_id() % lanes * width;
  for (int64_t first = (int64_t)group_id_x() * teams * at_once; first < a.rows;
       first += (int64_t)group_count_x() * teams * at_once) {
    uint4 d_bits[at_once], y_bits[at_once];
    row_data row[at_once];
    bool there[at_once];
#pragma unroll
    for (uint32_t r = 0; r < at_once; r++) {
      int64_t number = first + r * teams + thread_id() / lanes;
      row[r] = row_of<type>(a, number);
      there[r] = number < a.rows && col < (uint32_t)a.cols;
      d_bits[r] = y_bits[r] = uint4{};
      if (!there[r]) continue;
      d_bits[r] = load_as<uint4>((const char *)row[r].dout + col * type::BYTES);
      y_bits[r] = load_as<uint4>((const char *)row[r].out + col * type::BYTES);
    }
#pragma unroll
    for (uint32_t r = 0; r < at_once; r++) {
      float d[width], y[width], sum = 0;
      type::unpack(d_bits[r], d);
      type::unpack(y_bits[r], y);
#pragma unroll
      for (uint32_t k = 0; k < width; k++) sum += term(d[k], y[k], a.log); /* 0 of what is not there */
#pragma unroll
      for (uint32_t mask = 1; mask < lanes; mask *= 2) sum += wave_shuffle_xor_f32(sum, mask);
#pragma unroll
      for (uint32_t k = 0; k < width; k++) d[k] = slope(d[k], y[k], sum, a.scale, a.log);
      if (there[r]) type::store_16((char *)row[r].dx + col * type::BYTES, d);
    }
  }
}

template <typename type>
RDNA_DEVICE void softmax_backward(const softmax_backward_args &a, float *scratch) {
  uint64_t sizes = (uint64_t)(a.cols | a.dout_stride | a.out_stride | a.dx_stride) * type::BYTES;
  bool wide = all_16(address_of(a.dout) | address_of(a.out) | address_of(a.dx) | sizes);
  if (wide && a.cols <= 16 * type::IN_16) return short_rows<type, 16, 2>(a);
  if (a.cols <= SOFTMAX_BACKWARD_WAVE_COLS) {
    constexpr int64_t waves = threads / WAVE_SIZE;
    for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
      if (wide) {
        held_row<type, wave_team, SOFTMAX_BACKWARD_WAVE_COLS / 32 / type::IN_16>(row_of<type>(a, row), scratch);
      } else {
        long_row<type, wave_team, false>(row_of<type>(a, row), scratch);
      }
    }
    return;
  }
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    if (!wide) {
      long_row<type, group_team, false>(row_of<type>(a, row), scratch);
    } else if (a.cols > SOFTMAX_BACKWARD_HELD_COLS) {
      long_row<type, group_team, true>(row_of<type>(a, row), scratch);
    } else {
      held_row<type, group_team, SOFTMAX_BACKWARD_HELD_COLS / threads / type::IN_16>(row_of<type>(a, row), scratch);
    }
  }
}

template <typename type, bool wide>
RDNA_DEVICE void softmax_dim(const softmax_dim_args &a) {
  typedef chunk<type, wide> part;
  constexpr int size = part::COUNT;
  int64_t across = a.inner / size;
  for (int64_t at = (int64_t)group_id_x() * threads + thread_id(); at < a.outer * across;
       at += (int64_t)group_count_x() * threads) {
    int64_t o = at / across;
    uint64_t first = (uint64_t)(o * a.cols * a.inner + (at - o * across) * size);
    float v[size], top[size], sum[size];
#pragma unroll
    for (int k = 0; k < size; k++) top[k] = -infinity_f32(), sum[k] = 0;
    uint64_t i = first;
    for (int64_t c = 0; c < a.cols; c++, i += (uint64_t)a.inner) {
      part::template load<type>(a.x, i, v);
#pragma unroll
      for (int k = 0; k < size; k++) {
        float x = v[k] * a.scale, grown = max_f32(top[k], x);
        /* nothing but -inf yet: no difference of maxima, and nothing to rescale */
        float kept = sum[k] != 0 ? sum[k] * scalar_exp(top[k] - grown) : 0;
        sum[k] = grown == -infinity_f32() ? 0 : kept + scalar_exp(x - grown);
        top[k] = grown;
      }
    }
#pragma unroll
    for (int k = 0; k < size; k++) sum[k] = a.log ? scalar_log(sum[k]) : 1 / sum[k];
    i = first;
    for (int64_t c = 0; c < a.cols; c++, i += (uint64_t)a.inner) {
      part::template load<type>(a.x, i, v);
#pragma unroll
      for (int k = 0; k < size; k++) {
        float d = v[k] * a.scale - top[k];
        v[k] = a.log ? d - sum[k] : scalar_exp(d) * sum[k];
      }
      part::store(a.out, i, v);
    }
  }
}

template <typename type, bool wide>
RDNA_DEVICE void softmax_dim_backward(const softmax_dim_backward_args &a) {
  typedef chunk<type, wide> part;
  constexpr int size = part::COUNT;
  int64_t across = a.inner / size;
  for (int64_t at = (int64_t)group_id_x() * threads + thread_id(); at < a.outer * across;
       at += (int64_t)group_count_x() * threads) {
    int64_t o = at / across;
    uint64_t first = (uint64_t)(o * a.cols * a.inner + (at - o * across) * size), i = first;
    float d[size], y[size], sum[size] = {};
    for (int64_t c = 0; c < a.cols; c++, i += (uint64_t)a.inner) {
      part::template load<type>(a.dout, i, d);
      part::template load<type>(a.out, i, y);
#pragma unroll
      for (int k = 0; k < size; k++) sum[k] += term(d[k], y[k], a.log);
    }
    i = first;
    for (int64_t c = 0; c < a.cols; c++, i += (uint64_t)a.inner) {
      part::template load<type>(a.dout, i, d);
      part::template load<type>(a.out, i, y);
#pragma unroll
      for (int k = 0; k < size; k++) d[k] = slope(d[k], y[k], sum[k], a.scale, a.log);
      part::store(a.dx, i, d);
    }
  }
}

#define SOFTMAX(type)                                                                                          \
  RDNA_KERNEL(SOFTMAX_BACKWARD_THREADS) softmax_backward_##type(struct softmax_backward_args a) {              \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                  \
    softmax_backward<type>(a, scratch);                                                                        \
  }                                                                                                            \
  RDNA_KERNEL(SOFTMAX_BACKWARD_THREADS) softmax_dim_##type(struct softmax_dim_args a) {                        \
    if (all_16(address_of(a.x) | address_of(a.out) | (uint64_t)a.inner * type::BYTES)) {                       \
      softmax_dim<type, true>(a);                                                                              \
    } else {                                                                                                   \
      softmax_dim<type, false>(a);                                                                             \
    }                                                                                                          \
  }                                                                                                            \
  RDNA_KERNEL(SOFTMAX_BACKWARD_THREADS) softmax_dim_backward_##type(struct softmax_dim_backward_args a) {      \
    if (all_16(address_of(a.dout) | address_of(a.out) | address_of(a.dx) | (uint64_t)a.inner * type::BYTES)) { \
      softmax_dim_backward<type, true>(a);                                                                     \
    } else {                                                                                                   \
      softmax_dim_backward<type, false>(a);                                                                    \
    }                                                                                                          \
  }
SOFTMAX(f32)
SOFTMAX(f16)
SOFTMAX(bf16)
