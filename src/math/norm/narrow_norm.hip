/* RMS norms of rows of f32 into rows of 16 bits. A group takes a row: what its threads read, they keep in registers
 * until the sum is known, and what is past that is read again. A thread has 4 neighbouring values at a time:
 *
 *     values    0 .. 3 | 4 .. 7 | ... | 1020 .. 1023 | 1024 .. 1027 | ...
 *     thread    0      | 1      | ... | 255          | 0            | ...          */
#include "math/common/device/values.h"
#include "math/norm/narrow_norm_kernels.h"

static constexpr uint32_t threads = NORM_THREADS, turns = NARROW_NORM_KEPT / threads / 4;

template <typename type>
RDNA_DEVICE float4 load4(const char *p) {
  if constexpr (type::BYTES == 4) {
    return load_as<float4>(p);
  } else {
    uint2 bits = load_as<uint2>(p);
    float2 low = type::decode2(bits.x), high = type::decode2(bits.y);
    return float4{low.x, low.y, high.x, high.y};
  }
}

/* One row, at its first value. */
struct narrow_row {
  const char *x;
  char *residual, *out;
  const char *weight;
  int64_t cols;
  float epsilon;
};
RDNA_DEVICE float deviation_to_scale(const narrow_row &row, float squares) {
  return 1.0f / sqrt_f32(squares / (float)row.cols + row.epsilon);
}

/* Values at multiples of 4, all of whose addresses are aligned. */
template <typename from, typename to, bool adds>
RDNA_DEVICE void in_fours(const narrow_row &row, float *scratch) {
  const int64_t cols = row.cols, step = threads * 4, first = thread_id() * 4;
  float4 kept[turns];
  float sum = 0;
  auto take = [&](int64_t at) {
    float4 v = load4<from>(row.x + at * from::BYTES);
    if constexpr (adds) {
      v += load4<f32>(row.residual + at * 4);
      store_as<float4>(row.residual + at * 4, v);
    }
    sum = fma_f32(v.x, v.x, fma_f32(v.y, v.y, fma_f32(v.z, v.z, fma_f32(v.w, v.w, sum))));
    return v;
  };
#pragma unroll
  for (uint32_t j = 0; j < turns; j++) {
    if (j * step + first < cols) kept[j] = take(j * step + first);
  }
  for (int64_t at = turns * step + first; at < cols; at += step) take(at);
  const float scale = deviation_to_scale(row, group_sum_f32<threads>(sum, scratch));
  auto give = [&](int64_t at, float4 v) {
    v *= scale;
    if (row.weight) v *= load4<f32>(row.weight + at * 4);
    to::store4((typename to::stored *)(row.out + at * to::BYTES), v);
  };
#pragma unroll
  for (uint32_t j = 0; j < turns; j++) {
    if (j * step + first < cols) give(j * step + first, kept[j]);
  }
  for (int64_t at = turns * step + first; at < cols; at += step)
    give(at, adds ? load4<f32>(row.residual + at * 4) : load4<from>(row.x + at * from::BYTES));
}

/* Rows at any address. */
template <typename from, typename to, bool adds>
RDNA_DEVICE void one_by_one(const narrow_row &row, float *scratch) {
  float sum = 0;
  for (int64_t at = thread_id(); at < row.cols; at += threads) {
    float v = from::load(row.x, at);
    if constexpr (adds) {
      v += f32::load(row.residual, at);
      f32::store(row.residual, at, v);
    }
    sum = fma_f32(v, v, sum);
  }
  const float scale = deviation_to_scale(row, group_sum_f32<threads>(sum, scratch));
  for (int64_t at = thread_id(); at < row.cols; at += threads) {
    float v = (adds ? f32::load(row.residual, at) : from::load(row.x, at)) * scale;
    to::store(row.out, at, row.weight ? v * f32::load(row.weight, at) : v);
  }
}

template <typename from, typename to, bool adds>
RDNA_DEVICE void narrow_norm(const add_rms_norm_args &a) {
  RDNA_SHARED float scratch[GROUP_SCRATCH(threads)];
  for (int64_t r = group_id_x(); r < a.rows; r += group_count_x()) {
    const narrow_row row = {row_at<from>(a.x, r, a.x_stride),
                            adds ? row_at<f32>(a.residual, r, a.residual_stride) : NULL,
                            row_at<to>(a.out, r, a.out_stride),
                            (const char *)a.weight,
                            a.cols,
                            a.epsilon};
    const uint64_t in_f32 = address_of(row.residual) | address_of(row.weight) | (uint64_t)a.cols * 4 |
                            (from::BYTES == 4 ? address_of(row.x) : 2 * address_of(row.x));
    if (all_16(in_f32 | 2 * address_of(row.out))) {
      in_fours<from, to, adds>(row, scratch);
    } else {
      one_by_one<from, to, adds>(row, scratch);
    }
  }
}

#define NARROW(from, to)                                                                    \
  RDNA_KERNEL(NORM_THREADS) add_rms_norm_narrow_##from##_##to(struct add_rms_norm_args a) { \
    narrow_norm<from, to, true>(a);                                                         \
  }
#define NARROW_ALONE(to)                                                                                               \
  RDNA_KERNEL(NORM_THREADS) rms_norm_narrow_f32_##to(struct rms_norm_args a) {                                         \
    narrow_norm<f32, to, false>({a.x, NULL, a.weight, a.out, a.rows, a.cols, a.x_stride, 0, a.out_stride, a.epsilon}); \
  }
NARROW(f32, f16)
NARROW(f32, bf16)
NARROW(f16, f16)
NARROW(bf16, bf16)
NARROW_ALONE(f16)
NARROW_ALONE(bf16)
