/* Norms. A row of up to NORM_WAVE_BYTES belongs to a wave, which needs no barrier and has all of it in flight; a longer
 * one to a group. Rows of up to 8,192 values that allow 16-byte accesses stay in registers, so that memory is read
 * once; any other is read again from the cache. */
#include "kernel/prelude.h"
#include "math/chunk.h"
#include "math/norm/norm_kernels.h"

static constexpr uint32_t threads = 256;
static constexpr uint32_t kept_values = 32; /* a thread */

struct norm_row {
  const void *x;      /* (cols) */
  void *residual;     /* (cols), where x is added to it first */
  const void *weight; /* (cols) or NULL */
  const void *bias;   /* (cols) or NULL */
  void *out;          /* (cols) */
  uint64_t cols;
  float epsilon;
  float *scratch; /* for group sums */
};

/* Reads x; where |adds|, adds it to the residual and gives that back as the next step will read it. */
template <typename type, bool wide, bool adds>
RDNA_DEVICE void take(const norm_row &row, uint64_t i, float *v) {
  typedef chunk<type, wide> part;
  part::template load<type>(row.x, i, v);
  if constexpr (adds) {
    float r[part::COUNT];
    part::template load<type>(row.residual, i, r);
#pragma unroll
    for (int k = 0; k < part::COUNT; k++) v[k] = type::rounded(r[k] + v[k]);
    part::store(row.residual, i, v);
  }
}

template <typename type, typename weights, bool wide>
RDNA_DEVICE void give(const norm_row &row, uint64_t i, const float *v, float mean, float scale) {
  typedef chunk<type, wide> part;
  float w[part::COUNT], y[part::COUNT];
#pragma unroll
  for (int k = 0; k < part::COUNT; k++) y[k] = (v[k] - mean) * scale;
  if (row.weight) {
    part::template load<weights>(row.weight, i, w);
#pragma unroll
    for (int k = 0; k < part::COUNT; k++) y[k] *= w[k];
  }
  if (row.bias) {
    part::template load<weights>(row.bias, i, w);
#pragma unroll
    for (int k = 0; k < part::COUNT; k++) y[k] += w[k];
  }
  part::store(row.out, i, y);
}

RDNA_DEVICE float inverse_deviation(const norm_row &row, float sum) {
  return 1.0f / sqrt_f32(sum / (float)row.cols + row.epsilon);
}

/* The threads that share a row. */
struct wave_team {
  enum { SIZE = WAVE_SIZE };
  RDNA_DEVICE uint32_t rank() { return lane_id(); }
  RDNA_DEVICE float sum(float v, float *) { return wave_sum_f32(v); }
};
struct group_team {
  enum { SIZE = threads };
  RDNA_DEVICE uint32_t rank() { return thread_id(); }
  RDNA_DEVICE float sum(float v, float *scratch) { return group_sum_f32<threads>(v, scratch); }
};

/* |pieces| of 16 bytes a thread, or of one value. */
template <typename type, typename weights, bool adds, bool centred, bool wide, int pieces, typename team>
RDNA_DEVICE void norm_kept(const norm_row &row) {
  typedef piece<type, wide> part;
  constexpr uint32_t size = part::COUNT;
  const uint32_t cols = (uint32_t)row.cols, first = team::rank() * size;
  part kept[pieces];
  float v[size], sum = 0, mean = 0;
#pragma unroll
  for (uint32_t j = 0; j < pieces; j++) {
    uint32_t i = j * team::SIZE * size + first;
    if (i < cols) kept[j] = part::load(row.x, i);
  }
  if constexpr (adds) {
#pragma unroll
    for (uint32_t j = 0; j < pieces; j++) {
      uint32_t i = j * team::SIZE * size + first;
      if (i >= cols) continue;
      float r[size];
      part residual = part::load(row.residual, i);
      part::unpack(residual, r);
      part::unpack(kept[j], v);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) v[k] += r[k];
      kept[j] = part::pack(v);
      part::store(row.residual, i, kept[j]);
    }
  }
#pragma unroll
  for (uint32_t j = 0; j < pieces; j++) {
    if (j * team::SIZE * size + first >= cols) continue;
    part::unpack(kept[j], v);
#pragma unroll
    for (uint32_t k = 0; k < size; k++) sum = centred ? sum + v[k] : fma_f32(v[k], v[k], sum);
  }
  sum = team::sum(sum, row.scratch);
  if constexpr (centred) {
    mean = sum / (float)cols;
    sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < pieces; j++) {
      if (j * team::SIZE * size + first >= cols) continue;
      part::unpack(kept[j], v);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) sum = fma_f32(v[k] - mean, v[k] - mean, sum);
    }
    sum = team::sum(sum, row.scratch);
  }
  float scale = inverse_deviation(row, sum);
#pragma unroll
  for (uint32_t j = 0; j < pieces; j++) {
    uint32_t i = j * team::SIZE * size + first;
    if (i >= cols) continue;
    part::unpack(kept[j], v);
    give<type, weights, wide>(row, i, v, mean, scale);
  }
}

/* Each thread meets the same values in every pass, so the residual that it wrote is what it reads. */
template <typename type, typename weights, bool adds, bool centred, bool wide>
RDNA_DEVICE void norm_long(const norm_row &row) {
  typedef chunk<type, wide> part;
  const uint64_t first = thread_id() * part::COUNT, step = threads * part::COUNT;
  const void *again = adds ? row.residual : row.x;
  float sum = 0, mean = 0;
  for (uint64_t i = first; i < row.cols; i += step) {
    float v[part::COUNT];
    take<type, wide, adds>(row, i, v);
#pragma unroll
    for (int k = 0; k < part::COUNT; k++) sum = centred ? sum + v[k] : fma_f32(v[k], v[k], sum);
  }
  sum = group_sum_f32<threads>(sum, row.scratch);
  if constexpr (centred) {
    mean = sum / (float)row.cols;
    sum = 0;
    for (uint64_t i = first; i < row.cols; i += step) {
      float v[part::COUNT];
      part::template load<type>(again, i, v);
#pragma unroll
      for (int k = 0; k < part::COUNT; k++) sum = fma_f32(v[k] - mean, v[k] - mean, sum);
    }
    sum = group_sum_f32<threads>(sum, row.scratch);
  }
  float scale = inverse_deviation(row, sum);
  for (uint64_t i = first; i < row.cols; i += step) {
    float v[part::COUNT];
    part::template load<type>(again, i, v);
    give<type, weights, wide>(row, i, v, mean, scale);
  }
}

template <typename type>
RDNA_DEVICE char *row_at(const void *p, int64_t row, int64_t stride) {
  return p ? (char *)p + row * stride * type::BYTES : NULL;
}

struct norm_rows {
  norm_row first;
  int64_t rows, x_stride, residual_stride, out_stride;
};

template <typename type>
RDNA_DEVICE norm_row at_row(const norm_rows &all, int64_t r) {
  norm_row row = all.first;
  row.x = row_at<type>(row.x, r, all.x_stride);
  row.residual = row_at<type>(row.residual, r, all.residual_stride);
  row.out = row_at<type>(row.out, r, all.out_stride);
  return row;
}

template <typename type, typename weights, bool adds, bool centred, bool wide, int pieces>
RDNA_DEVICE void wave_rows(const norm_rows &all) {
  constexpr int64_t waves = threads / WAVE_SIZE;
  for (int64_t r = group_id_x() * waves + wave_id(); r < all.rows; r += group_count_x() * waves) {
    norm_kept<type, weights, adds, centred, wide, pieces, wave_team>(at_row<type>(all, r));
  }
}

template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void norm(const norm_rows &all) {
  constexpr int few = 4, many = NORM_WAVE_BYTES / 16 / WAVE_SIZE, single = NORM_WAVE_COLS / WAVE_SIZE;
  constexpr int group_pieces = kept_values / type::IN_16;
  const norm_row &first = all.first;
  uint64_t strides = (uint64_t)all.x_stride | (uint64_t)all.residual_stride | (uint64_t)all.out_stride;
  uint64_t bits = address_of(first.x) | address_of(first.residual) | address_of(first.weight) | address_of(first.bias) |
                  address_of(first.out) | (first.cols | strides) * type::BYTES;
  bool wide = all_16(bits);
  if (wide && first.cols <= few * WAVE_SIZE * type::IN_16) {
    return wave_rows<type, weights, adds, centred, true, few>(all);
  }
  if (wide && first.cols * type::BYTES <= NORM_WAVE_BYTES && all.rows >= NORM_MANY_ROWS) {
    return wave_rows<type, weights, adds, centred, true, many>(all);
  }
  if (!wide && first.cols <= NORM_WAVE_COLS) return wave_rows<type, weights, adds, centred, false, single>(all);
  for (int64_t r = group_id_x(); r < all.rows; r += group_count_x()) {
    norm_row row = at_row<type>(all, r);
    if (!wide) {
      norm_long<type, weights, adds, centred, false>(row);
    } else if (row.cols > threads * kept_values) {
      norm_long<type, weights, adds, centred, true>(row);
    } else {
      norm_kept<type, weights, adds, centred, true, group_pieces, group_team>(row);
    }
  }
}

#define NORMS(suffix, type, weights)                                                                 \
  RDNA_KERNEL(256) rms_norm_##suffix(struct rms_norm_args a) {                                       \
    RDNA_SHARED float scratch[GROUP_SCRATCH(threads)];                                               \
    norm_row first = {a.x, NULL, a.weight, NULL, a.out, (uint64_t)a.cols, a.epsilon, scratch};       \
    norm<type, weights, false, false>({first, a.rows, a.x_stride, 0, a.out_stride});                 \
  }                                                                                                  \
  RDNA_KERNEL(256) add_rms_norm_##suffix(struct add_rms_norm_args a) {                               \
    RDNA_SHARED float scratch[GROUP_SCRATCH(threads)];                                               \
    norm_row first = {a.x, a.residual, a.weight, NULL, a.out, (uint64_t)a.cols, a.epsilon, scratch}; \
    norm<type, weights, true, false>({first, a.rows, a.x_stride, a.residual_stride, a.out_stride});  \
  }                                                                                                  \
  RDNA_KERNEL(256) layer_norm_##suffix(struct layer_norm_args a) {                                   \
    RDNA_SHARED float scratch[GROUP_SCRATCH(threads)];                                               \
    norm_row first = {a.x, NULL, a.weight, a.bias, a.out, (uint64_t)a.cols, a.epsilon, scratch};     \
    norm<type, weights, false, true>({first, a.rows, a.x_stride, 0, a.out_stride});                  \
  }
RDNA__NORM_TYPES(NORMS)
