/* Norms: one group a row. A row of up to 8,192 values that allows 16-byte accesses stays in registers, so that
 * memory is read once; any other row is read again from the cache. */
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

template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void norm_kept(const norm_row &row) {
  constexpr uint32_t size = type::IN_16, vectors = kept_values / size;
  uint32_t cols = (uint32_t)row.cols;
  uint4 x_bits[vectors], residual_bits[vectors];
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    uint32_t i = (j * threads + thread_id()) * size;
    if (i < cols) {
      x_bits[j] = load_as<uint4>((const char *)row.x + i * type::BYTES);
      if constexpr (adds) residual_bits[j] = load_as<uint4>((const char *)row.residual + i * type::BYTES);
    }
  }
  float v[vectors][size], sum = 0, mean = 0;
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    uint32_t i = (j * threads + thread_id()) * size;
    if (i < cols) {
      type::unpack(x_bits[j], v[j]);
      if constexpr (adds) {
        float r[size];
        type::unpack(residual_bits[j], r);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[j][k] = type::rounded(r[k] + v[j][k]);
        type::store_16((char *)row.residual + i * type::BYTES, v[j]);
      }
#pragma unroll
      for (uint32_t k = 0; k < size; k++) sum = centred ? sum + v[j][k] : fma_f32(v[j][k], v[j][k], sum);
    }
  }
  sum = group_sum_f32<threads>(sum, row.scratch);
  if constexpr (centred) {
    mean = sum / (float)cols;
    sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      if ((j * threads + thread_id()) * size < cols) {
#pragma unroll
        for (uint32_t k = 0; k < size; k++) sum = fma_f32(v[j][k] - mean, v[j][k] - mean, sum);
      }
    }
    sum = group_sum_f32<threads>(sum, row.scratch);
  }
  float scale = inverse_deviation(row, sum);
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    uint32_t i = (j * threads + thread_id()) * size;
    if (i < cols) give<type, weights, true>(row, i, v[j], mean, scale);
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

template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void norm(const norm_row &row) {
  uint64_t bits = address_of(row.x) | address_of(row.residual) | address_of(row.weight) | address_of(row.bias) |
                  address_of(row.out) | row.cols * type::BYTES;
  if (!all_16(bits)) {
    norm_long<type, weights, adds, centred, false>(row);
  } else if (row.cols > threads * kept_values) {
    norm_long<type, weights, adds, centred, true>(row);
  } else {
    norm_kept<type, weights, adds, centred>(row);
  }
}

template <typename type>
RDNA_DEVICE char *row_of(const void *p, int64_t stride) {
  return (char *)p + (int64_t)group_id_x() * stride * type::BYTES;
}

#define NORMS(suffix, type, weights)                                                                                  \
  RDNA_KERNEL(256) rms_norm_##suffix(struct rms_norm_args a) {                                                        \
    RDNA_SHARED float scratch[GROUP_SCRATCH(threads)];                                                                \
    norm<type, weights, false, false>({row_of<type>(a.x, a.x_stride), NULL, a.weight, NULL,                           \
                                       row_of<type>(a.out, a.out_stride), (uint64_t)a.cols, a.epsilon, scratch});     \
  }                                                                                                                   \
  RDNA_KERNEL(256) add_rms_norm_##suffix(struct add_rms_norm_args a) {                                                \
    RDNA_SHARED float scratch[GROUP_SCRATCH(threads)];                                                                \
    norm<type, weights, true, false>({row_of<type>(a.x, a.x_stride), row_of<type>(a.residual, a.residual_stride),     \
                                      a.weight, NULL, row_of<type>(a.out, a.out_stride), (uint64_t)a.cols, a.epsilon, \
                                      scratch});                                                                      \
  }                                                                                                                   \
  RDNA_KERNEL(256) layer_norm_##suffix(struct layer_norm_args a) {                                                    \
    RDNA_SHARED float scratch[GROUP_SCRATCH(threads)];                                                                \
    norm<type, weights, false, true>({row_of<type>(a.x, a.x_stride), NULL, a.weight, a.bias,                          \
                                      row_of<type>(a.out, a.out_stride), (uint64_t)a.cols, a.epsilon, scratch});      \
  }
RDNA__NORM_TYPES(NORMS)
