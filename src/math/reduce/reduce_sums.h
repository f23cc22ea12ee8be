/* Device code: plain sums, the most frequent reduction, without a choice inside of the loop. */
#ifndef RDNA_MATH_REDUCE_REDUCE_SUMS_H
#define RDNA_MATH_REDUCE_REDUCE_SUMS_H

#include "math/common/device/values.h"
#include "math/reduce/reduce_write.h"

/* Adds |ahead| vectors of a thread, in flight together: all of them lie before |end| if |all|, else those that do. */
template <int ahead, bool all, typename type>
RDNA_DEVICE float sum_vectors(const char *p, const char *end, uint32_t step, float sum) {
  uint4 bits[ahead];
#pragma unroll
  for (uint32_t j = 0; j < ahead; j++) {
    bits[j] = uint4{0, 0, 0, 0};
    if (all || p + (uint64_t)j * step < end) bits[j] = load_as<uint4>(p + (uint64_t)j * step);
  }
#pragma unroll
  for (int j = 0; j < ahead; j++) {
    float v[type::IN_16];
    type::unpack(again(bits[j]), v); /* one after the other: all at once they would not fit the registers */
#pragma unroll
    for (int by = 1; by < type::IN_16; by *= 2)
#pragma unroll
      for (int k = 0; k + by < type::IN_16; k += 2 * by) v[k] += v[k + by];
    sum = again(sum + v[0]);
  }
  return sum;
}

/* Sums |bytes| of a row: the single values at both ends, then |most| vectors at once, then up to |rest| at once. */
template <int most, int rest, typename type>
RDNA_DEVICE float sum_line(const char *p, int64_t bytes, uint32_t rank, uint32_t threads) {
  const uint32_t step = threads * 16;
  int64_t before = (int64_t)(-address_of(p) & 15);
  if (before > bytes) before = bytes;
  int64_t after = (bytes - before) & 15;
  const char *end = p + (bytes - after);
  float sum = 0;
  if (rank * type::BYTES < before) sum = type::load(p, rank);
  if (rank * type::BYTES < after) sum += type::load(end, rank);
#pragma nounroll
  for (uint32_t k = rank + threads; k < type::IN_16; k += threads) { /* where threads are fewer than single values */
    if (k * type::BYTES < before) sum += type::load(p, k);
    if (k * type::BYTES < after) sum += type::load(end, k);
  }
  p += before + rank * 16;
  for (; p + (most - 1) * step < end; p += most * step) sum = sum_vectors<most, true, type>(p, end, step, sum);
#pragma nounroll
  for (; p < end; p += rest * step) sum = sum_vectors<rest, false, type>(p, end, step, sum);
  return sum;
}

template <typename type>
RDNA_DEVICE const char *line_of(const reduce_dims_args &a, int64_t out) {
  return (const char *)a.x + place(a.kept_rank, a.kept_size, a.kept_stride, out) * type::BYTES;
}

/* A row belongs to a wave, or a short one to |a.team| lanes; one of up to 8 KB is in flight as a whole. */
template <typename type>
RDNA_DEVICE void sum_rows_of_waves(const reduce_dims_args &a) {
  const uint32_t team = (uint32_t)a.team, rank = thread_id() & (team - 1);
  const int64_t at_once = REDUCE_DIMS_THREADS / team, bytes = a.count * type::BYTES;
  for (int64_t first = group_id_x() * at_once; first < a.outs; first += group_count_x() * at_once) {
    int64_t out = first + thread_id() / team;
    sum_of<float> s;
    if (team == WAVE_SIZE) {
      if (out < a.outs) s.v = sum_line<16, 8, type>(line_of<type>(a, out), bytes, rank, team);
      s.v = wave_sum_f32(s.v);
    } else {
      if (out < a.outs) s.v = sum_line<4, 4, type>(line_of<type>(a, out), bytes, rank, team);
      s = wave_join(s, team);
    }
    if (rank == 0 && out < a.outs) write(a, out, 0, s);
  }
}

/* A row's slice belongs to a group. */
template <typename type>
RDNA_DEVICE void sum_long_rows(const reduce_dims_args &a, float *scratch) {
  for (int64_t unit = group_id_x(); unit < a.outs * a.slices; unit += group_count_x()) {
    int64_t slice = a.slices == 1 ? 0 : (uint32_t)unit / (uint32_t)a.outs, out = unit - slice * a.outs;
    const char *line = line_of<type>(a, out);
    float sum = 0;
    for (int64_t first = slice * a.slice; first < a.count; first += a.slices * a.slice) {
      int64_t count = first + a.slice < a.count ? a.slice : a.count - first;
      sum += sum_line<REDUCE_DIMS_AHEAD, REDUCE_DIMS_AHEAD, type>(line + first * type::BYTES, count * type::BYTES,
                                                                  thread_id(), REDUCE_DIMS_THREADS);
    }
    sum = group_sum_f32<REDUCE_DIMS_THREADS>(sum, scratch);
    if (thread_id() == 0) write(a, out, slice, sum_of<float>{sum});
  }
}

/* Sums of outputs side by side, whose rows may begin anywhere. Rows whose numbers are equal modulo 8 begin equally far
 * from a multiple of 16 bytes, so each 32 threads take one such class of rows and add whole aligned vectors. Their sums
 * are shifted to their columns at the end, through LDS:
 *
 *     row 0    | 0 0 0 0 | 0 0 0 0 |        class 0: threads 0 to 31
 *     row 1        | 1 1 1 1 | 1 1 1 1 |    class 1: threads 32 to 63, with vectors that begin elsewhere
 *     row 8    | 0 0 0 0 | 0 0 0 0 |        class 0 again
 *
 * A vector at the edge of a row holds values of its neighbours too. Of the first and the last row that would be memory
 * of others: there the edge is added value by value. */
template <typename type>
RDNA_DEVICE void sum_columns(const reduce_dims_args &args, float *scratch) {
  constexpr int width = type::IN_16, lanes = 32, line = lanes * width, ahead = REDUCE_DIMS_AHEAD;
  constexpr uint32_t classes = REDUCE_DIMS_THREADS / lanes;
  constexpr int64_t tile = line - width;
  const int64_t tiles = (args.kept_size[0] + tile - 1) / tile, whole = tiles * (args.outs / args.kept_size[0]);
  const uint32_t my_class = thread_id() / lanes, lane = thread_id() % lanes;
  for (int64_t unit = group_id_x(); unit < whole * args.slices; unit += group_count_x()) {
    const reduce_dims_args &a = arguments_again_wide(args);
    const int64_t inner = a.kept_size[0], row_bytes = a.reduced_stride[0] * type::BYTES;
    int64_t slice = unit / whole, left = unit - slice * whole, outer = left / tiles;
    int64_t column = (left - outer * tiles) * tile;
    int64_t base = place(a.kept_rank - 1, a.kept_size + 1, a.kept_stride + 1, outer);
    const char *p = (const char *)a.x + (base + column) * type::BYTES;
    int64_t mine = column + lane * width - (int64_t)((address_of(p) + my_class * row_bytes & 15) / type::BYTES);
    const bool edge = mine < 0 || mine + width > inner;
    const char *q = (const char *)a.x + (base + mine) * type::BYTES;
    float s[width];
#pragma unroll
    for (int j = 0; j < width; j++) s[j] = 0;
    for (int64_t first = slice * a.slice; first < a.count && mine < inner; first += a.slices * a.slice) {
      int64_t end = first + a.slice < a.count ? first + a.slice : a.count, i = first + my_class;
      if (edge && i == 0) i += classes;
      if (edge && end == a.count) end--;
      const char *row = q + i * row_bytes;
#pragma nounroll
      for (; i < end; i += ahead * classes) {
        uint4 bits[ahead];
#pragma unroll
        for (int k = 0; k < ahead; k++) {
          bits[k] = uint4{0, 0, 0, 0};
          if (i + k * classes < end) bits[k] = load_as<uint4>(row);
          row += classes * row_bytes;
        }
#pragma unroll
        for (int k = 0; k < ahead; k++) {
          float v[width];
          type::unpack(again(bits[k]), v);
#pragma unroll
          for (int j = 0; j < width; j++) s[j] += v[j];
        }
      }
    }
    if (edge && mine < inner) {
#pragma nounroll
      for (int64_t row = 0; row < a.count; row = row + 1 < a.count ? a.count - 1 : a.count) {
        if (row % classes != my_class || row / a.slice % a.slices != slice) continue;
#pragma unroll
        for (int j = 0; j < width; j++)
          if (mine + j >= 0 && mine + j < inner) s[j] += type::load(q + row * row_bytes, j);
      }
    }
    group_barrier();
#pragma unroll
    for (int j = 0; j < width; j++) scratch[my_class * line + lane * width + j] = s[j];
    group_barrier();
    if (thread_id() < tile && column + thread_id() < inner) {
      sum_of<float> sum;
#pragma unroll
      for (uint32_t c = 0; c < classes; c++)
        sum.v += scratch[c * line + thread_id() + (address_of(p) + c * row_bytes & 15) / type::BYTES];
      write(a, outer * inner + column + thread_id(), slice, sum);
    }
  }
}

template <typename type>
struct dtype_of;
template <>
struct dtype_of<f32> {
  enum { DTYPE = RDNA_F32 };
};
template <>
struct dtype_of<f16> {
  enum { DTYPE = RDNA_F16 };
};
template <>
struct dtype_of<bf16> {
  enum { DTYPE = RDNA_BF16 };
};

/* Sums of outputs side by side, for short columns that are many: a thread has a vector of outputs, and takes all of
 * their values. */
template <typename type>
RDNA_DEVICE void sum_alone(const reduce_dims_args &a) {
  constexpr int width = type::IN_16, ahead = 8;
  constexpr int64_t tile = REDUCE_DIMS_THREADS * width;
  const int64_t row_bytes = a.reduced_stride[0] * type::BYTES;
  for (int64_t out = group_id_x() * tile + thread_id() * width; out < a.outs; out += group_count_x() * tile) {
    const char *p = line_of<type>(a, out);
    float s[width];
#pragma unroll
    for (int j = 0; j < width; j++) s[j] = 0;
#pragma nounroll
    for (int64_t i = 0; i < a.count; i += ahead) {
      uint4 bits[ahead];
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        bits[k] = uint4{0, 0, 0, 0};
        if (i + k < a.count) bits[k] = load_as<uint4>(p);
        p += row_bytes;
      }
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        float v[width];
        type::unpack(again(bits[k]), v);
#pragma unroll
        for (int j = 0; j < width; j++) s[j] += v[j];
      }
    }
    if (a.out_dtype == dtype_of<type>::DTYPE && all_16(address_of(a.out))) {
      if (a.end == REDUCE_SCALED) {
#pragma unroll
        for (int j = 0; j < width; j++) s[j] *= (float)a.parameter;
      }
      type::store_16((char *)a.out + out * type::BYTES, s);
      continue;
    }
#pragma nounroll
    for (int j = 0; j < width; j++) {
      write(a, out + j, 0, sum_of<float>{s[0]});
#pragma unroll
      for (int k = 1; k < width; k++) s[k - 1] = s[k];
    }
  }
}

#endif
