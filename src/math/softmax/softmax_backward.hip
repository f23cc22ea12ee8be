/* Gradients of softmax and log-softmax, and both of them along any dimension. A row that fits registers is read once,
 * in whole vectors wherever it begins if it does so alike in all three: 6 bytes a value of bf16, about 4 instructions,
 * so an H200 should come near its copy rate, less what a launch takes. Longer rows are read twice. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/common/device/chunk.h"
#include "math/common/device/teams.h"
#include "math/common/edges.h"
#include "math/softmax/softmax_backward_kernels.h"

static constexpr int threads = SOFTMAX_BACKWARD_THREADS;

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

/* A row in the registers of a team, |pieces| a thread of 16 bytes if |wide|, else of one value: read once. |edged|:
 * dout, out and dx begin equally far from 16 bytes, and a thread has one of the single values at most. */
template <typename type, typename team, bool wide, bool edged, int pieces>
RDNA_DEVICE void held_row(const row_data &r, float *scratch) {
  typedef piece<type, wide> part;
  constexpr uint32_t size = part::COUNT;
  const uint32_t cols = (uint32_t)r.cols, first = team::rank() * size;
  uint32_t body = cols, head = 0, single = cols;
  if (edged) {
    const row_edges e = row_edges_of(address_of(r.dout), cols, type::IN_16);
    body = (uint32_t)e.vectors * size, head = (uint32_t)e.head;
    single = (uint32_t)row_edges_single(&e, cols, team::rank(), type::IN_16);
  }
  const char *dout = (const char *)r.dout + head * type::BYTES, *out = (const char *)r.out + head * type::BYTES;
  part d_held[pieces], y_held[pieces];
  piece<type, false> d_single = {}, y_single = {};
#pragma unroll
  for (uint32_t j = 0; j < pieces; j++) {
    uint32_t i = j * team::SIZE * size + first;
    if (i < body) d_held[j] = part::load(dout, i), y_held[j] = part::load(out, i);
  }
  if (edged && single < cols) {
    d_single = piece<type, false>::load(r.dout, single), y_single = piece<type, false>::load(r.out, single);
  }
  float d[size], y[size], sum = 0;
#pragma unroll
  for (uint32_t j = 0; j < pieces; j++) {
    if (j * team::SIZE * size + first >= body) continue;
    part::unpack(d_held[j], d);
    part::unpack(y_held[j], y);
#pragma unroll
    for (uint32_t k = 0; k < size; k++) sum += term(d[k], y[k], r.log);
  }
  if (edged) {
    piece<type, false>::unpack(d_single, d);
    piece<type, false>::unpack(y_single, y);
    sum += term(d[0], y[0], r.log); /* 0 of what is not there */
  }
  sum = team::sum(sum, scratch);
  if (edged && single < cols) {
    d[0] = slope(d[0], y[0], sum, r.scale, r.log);
    chunk<type, false>::store(r.dx, single, d);
  }
#pragma unroll
  for (uint32_t j = 0; j < pieces; j++) {
    uint32_t i = j * team::SIZE * size + first;
    if (i >= body) continue;
    part::unpack(d_held[j], d);
    part::unpack(y_held[j], y);
#pragma unroll
    for (uint32_t k = 0; k < size; k++) d[k] = slope(d[k], y[k], sum, r.scale, r.log);
    chunk<type, wide>::store((char *)r.dx + head * type::BYTES, i, d);
  }
}

/* What a group has of a longer row at once: |at_once| pieces a thread, STEP columns. */
template <typename type, bool wide>
struct stretch {
  typedef piece<type, wide> part;
  static constexpr uint32_t at_once = wide ? 4 : 8;
  static constexpr uint64_t STEP = at_once * threads * part::COUNT;
  part d[at_once], y[at_once];
  RDNA_DEVICE uint32_t column(uint32_t j) { return (j * threads + thread_id()) * part::COUNT; }
  /* How many columns there are of |first| to |end|. */
  RDNA_DEVICE uint32_t count(uint64_t first, uint64_t end) {
    return again_uniform(end - first < STEP ? (uint32_t)(end - first) : (uint32_t)STEP);
  }
  RDNA_DEVICE void load(stretch &s, const row_data &r, uint64_t first, uint64_t end) {
    if (first >= end) return;
    const uint32_t left = count(first, end);
    const char *dout = (const char *)r.dout + first * type::BYTES, *out = (const char *)r.out + first * type::BYTES;
#pragma unroll
    for (uint32_t j = 0; j < at_once; j++) {
      if (column(j) >= left) continue;
      s.d[j] = part::load(dout, column(j)), s.y[j] = part::load(out, column(j));
    }
  }
  RDNA_DEVICE float sum(stretch &s, const row_data &r, uint64_t first, uint64_t end) {
    float d[part::COUNT], y[part::COUNT], sum = 0;
    const uint32_t left = count(first, end);
#pragma unroll
    for (uint32_t j = 0; j < at_once; j++) {
      if (column(j) >= left) continue;
      part::unpack(s.d[j], d);
      part::unpack(s.y[j], y);
#pragma unroll
      for (uint32_t k = 0; k < part::COUNT; k++) sum += term(d[k], y[k], r.log);
    }
    return sum;
  }
  RDNA_DEVICE void write(stretch &s, const row_data &r, float sum, uint64_t first, uint64_t end) {
    float d[part::COUNT], y[part::COUNT];
    const uint32_t left = count(first, end);
#pragma unroll
    for (uint32_t j = 0; j < at_once; j++) {
      if (column(j) >= left) continue;
      part::unpack(s.d[j], d);
      part::unpack(s.y[j], y);
#pragma unroll
      for (uint32_t k = 0; k < part::COUNT; k++) d[k] = slope(d[k], y[k], sum, r.scale, r.log);
      chunk<type, wide>::store(r.dx, first + column(j), d);
    }
  }
};

/* Sums columns |begin| to |end|, for the whole group. */
template <typename type, bool wide>
RDNA_DEVICE float group_sum(const row_data &r, uint64_t begin, uint64_t end, float *scratch) {
  stretch<type, wide> s;
  float sum = 0;
  for (uint64_t first = begin; first < end; first += stretch<type, wide>::STEP) {
    stretch<type, wide>::load(s, r, first, end);
    sum += stretch<type, wide>::sum(s, r, first, end);
  }
  return group_sum_f32<threads>(sum, scratch);
}

/* Writes columns |begin| to |end|, the first of which are in |s|. */
template <typename type, bool wide>
RDNA_DEVICE void group_write(stretch<type, wide> &s, const row_data &r, float sum, uint64_t begin, uint64_t end) {
  for (uint64_t first = begin; first < end; first += stretch<type, wide>::STEP) {
    if (first > begin) stretch<type, wide>::load(s, r, first, end);
    stretch<type, wide>::write(s, r, sum, first, end);
  }
}

template <typename type, typename args>
RDNA_DEVICE row_data row_of(const args &a, int64_t row) {
  return {(const char *)a.dout + row * a.dout_stride * type::BYTES,
          (const char *)a.out + row * a.out_stride * type::BYTES,
          (char *)a.dx + row * a.dx_stride * type::BYTES,
          (uint64_t)a.cols,
          a.scale,
          a.log != 0};
}

/* Rows of at most 16 bytes a lane, which |lanes| of a wave share; they have |at_once| rows in flight together. */
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

template <typename type, bool wide, bool edged, int pieces>
RDNA_DEVICE void wave_rows(const softmax_backward_args &a, float *scratch) {
  constexpr int64_t waves = threads / WAVE_SIZE;
  for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
    held_row<type, wave_team<threads>, wide, edged, pieces>(row_of<type>(a, row), scratch);
  }
}
template <typename type, bool wide, bool edged, int pieces>
RDNA_DEVICE void group_rows(const softmax_backward_args &a, float *scratch) {
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    held_row<type, group_team<threads>, wide, edged, pieces>(row_of<type>(a, row), scratch);
  }
}

template <typename type, typename args>
RDNA_DEVICE bool is_wide(const args &a) {
  uint64_t sizes = (uint64_t)(a.cols | a.dout_stride | a.out_stride | a.dx_stride) * type::BYTES;
  return all_16(address_of(a.dout) | address_of(a.out) | address_of(a.dx) | sizes);
}
/* Whether each row begins equally far from 16 bytes in all three. */
template <typename type, typename args>
RDNA_DEVICE bool is_alike(const args &a) {
  uint64_t apart = (uint64_t)(a.dout_stride - a.out_stride) | (uint64_t)(a.dout_stride - a.dx_stride);
  uint64_t at = address_of(a.dout);
  return all_16((at ^ address_of(a.out)) | (at ^ address_of(a.dx)) | apart * type::BYTES);
}

template <typename type>
RDNA_DEVICE void softmax_backward(const softmax_backward_args &a, float *scratch) {
  constexpr int64_t wave_cols = SOFTMAX_BACKWARD_WAVE_COLS, held_cols = SOFTMAX_BACKWARD_HELD_COLS;
  constexpr int singles = held_cols / threads, of_wave = wave_cols / 32 / type::IN_16;
  constexpr int of_group = held_cols / threads / type::IN_16;
  if (is_wide<type>(a)) {
    if (a.cols <= 16 * type::IN_16) return short_rows<type, 16, 2>(a);
    if (a.cols <= wave_cols) return wave_rows<type, true, false, of_wave>(a, scratch);
    return group_rows<type, true, false, of_group>(a, scratch);
  }
  if (is_alike<type>(a)) {
    if (a.cols <= singles * WAVE_SIZE) return wave_rows<type, true, true, singles / type::IN_16>(a, scratch);
    return group_rows<type, true, true, of_group>(a, scratch);
  }
  if (a.cols <= singles * WAVE_SIZE) return wave_rows<type, false, false, singles>(a, scratch);
  group_rows<type, false, false, singles>(a, scratch);
}

template <typename type, bool wide>
RDNA_DEVICE void softmax_backward_long(const softmax_backward_args &a, float *scratch) {
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    row_data r = row_of<type>(a, row);
    stretch<type, wide> s;
    float sum = group_sum<type, wide>(r, 0, r.cols, scratch);
    stretch<type, wide>::load(s, r, 0, r.cols);
    group_write<type, wide>(s, r, sum, 0, r.cols);
  }
}

template <typename type, bool wide>
RDNA_DEVICE void softmax_backward_part(const softmax_backward_part_args &a, float *scratch) {
  for (int64_t item = group_id_x(); item < a.rows * a.parts; item += group_count_x()) {
    int64_t row = item / a.parts, part = item - row * a.parts;
    row_data r = row_of<type>(a, row);
    uint64_t begin = (uint64_t)(part * a.part_cols), end = begin + (uint64_t)a.part_cols;
    float sum = group_sum<type, wide>(r, begin, end < r.cols ? end : r.cols, scratch);
    if (thread_id() == 0) a.sums[item] = sum;
  }
}

/* Writes parts of rows. The last parts come first: see "The second pass goes backwards" in src/math/README.md. */
template <typename type, bool wide>
RDNA_DEVICE void softmax_backward_finish(const softmax_backward_part_args &a, float *scratch) {
  for (int64_t item = a.rows * a.parts - 1 - group_id_x(); item >= 0; item -= group_count_x()) {
    int64_t row = item / a.parts, part = item - row * a.parts;
    row_data r = row_of<type>(a, row);
    uint64_t begin = (uint64_t)(part * a.part_cols), end = begin + (uint64_t)a.part_cols;
    end = end < r.cols ? end : r.cols;
    stretch<type, wide> s;
    stretch<type, wide>::load(s, r, begin, end);
    float sum = 0;
    for (uint32_t p = thread_id(); p < (uint32_t)a.parts; p += threads) sum += a.sums[row * a.parts + p];
    group_write<type, wide>(s, r, group_sum_f32<threads>(sum, scratch), begin, end);
  }
}

/* Along the middle of three dimensions: a thread has |size| neighbours of the inner one, and reads their columns twice.
 */
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

#define SOFTMAX_BOTH(name, resident, args, type)                                          \
  RDNA_KERNEL_RESIDENT(SOFTMAX_BACKWARD_THREADS, resident) name##_##type(struct args a) { \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                             \
    if (is_wide<type>(a)) {                                                               \
      name<type, true>(a, scratch);                                                       \
    } else {                                                                              \
      name<type, false>(a, scratch);                                                      \
    }                                                                                     \
  }
#define SOFTMAX(type)                                                                                          \
  RDNA_KERNEL_RESIDENT(SOFTMAX_BACKWARD_THREADS, type::BYTES == 2 ? 4 : 2)                                     \
  softmax_backward_##type(struct softmax_backward_args a) {                                                    \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                  \
    softmax_backward<type>(a, scratch);                                                                        \
  }                                                                                                            \
  SOFTMAX_BOTH(softmax_backward_long, 2, softmax_backward_args, type)                                          \
  SOFTMAX_BOTH(softmax_backward_part, 3, softmax_backward_part_args, type)                                     \
  SOFTMAX_BOTH(softmax_backward_finish, 3, softmax_backward_part_args, type)                                   \
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
