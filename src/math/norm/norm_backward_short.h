/* Gradients of norms, kind 2: aligned short rows, several to a wave. */
#ifndef RDNA_MATH_NORM_NORM_BACKWARD_SHORT_H
#define RDNA_MATH_NORM_NORM_BACKWARD_SHORT_H

#include "math/norm/norm_backward_held.h"

/* A row that |lanes| of a wave share, a power of two: |vectors| times 16 bytes a lane, lane by lane. */
template <typename type, uint32_t vectors>
struct short_row {
  enum : uint32_t { SIZE = type::IN_16 };
  uint4 bits[vectors];
  RDNA_DEVICE uint32_t column(uint32_t j, uint32_t lanes) { return (j * lanes + (lane_id() & (lanes - 1))) * SIZE; }
  RDNA_DEVICE void load(short_row &r, const void *p, int64_t row, int64_t stride, int64_t end, uint32_t cols,
                        uint32_t lanes) {
    const char *from = (const char *)p + row * stride * type::BYTES;
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      r.bits[j] = uint4{}; /* what is absent is 0 */
      if (row < end && column(j, lanes) < cols) r.bits[j] = load_as<uint4>(from + column(j, lanes) * type::BYTES);
    }
  }
};

/* Sums each of |v| over the lanes of a row. */
template <int count>
RDNA_DEVICE void sum_lanes(float *v, uint32_t lanes) {
#pragma unroll
  for (uint32_t mask = 1; mask < WAVE_SIZE; mask *= 2) {
    if (mask >= lanes) return;
#pragma unroll
    for (int i = 0; i < count; i++) v[i] += wave_shuffle_xor_f32(v[i], mask);
  }
}

/* Groups take slices in turn, a slice being consecutive rows, one for each set of |lanes| at a time. Group memory holds
 * |weight|, NORM_BACKWARD_WAVE_COLS of them, and as many |columns|' sums for each wave. */
template <typename type, typename weights, uint32_t vectors>
RDNA_DEVICE void short_slices(const norm_backward_args &args, uint32_t lanes, typename weights::stored *weight,
                              float *columns) {
  typedef short_row<type, vectors> row_of;
  constexpr uint32_t size = row_of::SIZE, waves = threads / WAVE_SIZE;
  const uint32_t teams = threads / lanes, team = thread_id() / lanes;
  for (uint32_t i = thread_id(); i < (uint32_t)args.cols; i += threads) {
    weight[i] = args.weight ? ((const typename weights::stored *)args.weight)[i] : stored_of<weights>(1);
  }
  group_barrier();
  for (int64_t slice = group_id_x(); slice < args.slices; slice += group_count_x()) {
    float dweight[vectors][size] = {}, dbias[vectors][size] = {};
    const norm_backward_args &all = arguments_again_wide(args);
    const int64_t first = all.rows * slice / all.slices, end = all.rows * (slice + 1) / all.slices;
    row_of next; /* in flight: x alone, as there are no registers for dout too */
    row_of::load(next, all.x, first + team, all.x_stride, end, (uint32_t)all.cols, lanes);
    for (int64_t begin = first; begin < end; begin += teams) {
      const norm_backward_args &a = arguments_again_wide(args);
      const int64_t row = begin + team;
      const float share = 1.0f / (float)a.cols;
      uint32_t cols = (uint32_t)a.cols;
      row_of x = next, dout;
      row_of::load(dout, a.dout, row, a.dout_stride, end, cols, lanes);
      row_of::load(next, a.x, row + teams, a.x_stride, end, cols, lanes);
      float v[size], d[size], w[size], mean = 0, sums[3] = {0, 0, 0}; /* of y^2, g y and g */
      if (a.mean) {
        mean = row < end ? a.mean[row] : 0;
      } else if (a.centred) {
#pragma unroll
        for (uint32_t j = 0; j < vectors; j++) {
          type::unpack(x.bits[j], v);
#pragma unroll
          for (uint32_t k = 0; k < size; k++) mean += v[k];
        }
        sum_lanes<1>(&mean, lanes);
        mean *= share;
      }
#pragma unroll
      for (uint32_t j = 0; j < vectors; j++) {
        if (row_of::column(j, lanes) >= cols) continue;
        type::unpack(x.bits[j] = again(x.bits[j]), v);
        type::unpack(dout.bits[j], d);
        chunk<type, true>::template load<weights>(weight, row_of::column(j, lanes), w);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) {
          const float y = v[k] - mean, g = d[k] * w[k];
          sums[0] = fma_f32(y, y, sums[0]);
          sums[1] = fma_f32(g, y, sums[1]);
          sums[2] += g;
        }
      }
      sum_lanes<3>(sums, lanes);
      const float inverse = row < end ? inverse_of(a, row, sums[0] * share) : 0;
      const float of_y = -(sums[1] * share * inverse) * inverse, level = a.centred ? -(sums[2] * share) * inverse : 0;
      char *dx = (char *)a.dx + row * a.dx_stride * type::BYTES;
      cols = again_uniform(cols);
#pragma unroll
      for (uint32_t j = 0; j < vectors; j++) {
        const uint32_t col = row_of::column(j, lanes);
        if (col >= cols) continue;
        type::unpack(x.bits[j] = again(x.bits[j]), v);
        type::unpack(dout.bits[j] = again(dout.bits[j]), d);
        chunk<type, true>::template load<weights>(weight, row_of::column(j, lanes), w);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) {
          const float normal = (v[k] - mean) * inverse;
          dweight[j][k] = fma_f32(d[k], normal, dweight[j][k]);
          dbias[j][k] += d[k];
          v[k] = fma_f32(normal, of_y, fma_f32(d[k] * w[k], inverse, level));
        }
        if (row < end) type::store_16(dx + col * type::BYTES, v);
      }
    }
#pragma unroll
    for (int which = 0; which < 2; which++) {
      group_barrier(); /* |columns| has been read */
#pragma unroll
      for (uint32_t j = 0; j < vectors; j++) {
        const uint32_t col = row_of::column(j, lanes);
        float sums[size];
#pragma unroll
        for (uint32_t k = 0; k < size; k++) {
          sums[k] = which ? dbias[j][k] : dweight[j][k];
#pragma unroll
          for (uint32_t mask = 1; mask < WAVE_SIZE; mask *= 2) {
            if (mask >= lanes) sums[k] += wave_shuffle_xor_f32(sums[k], mask);
          }
        }
        if (lane_id() >= lanes || col >= (uint32_t)args.cols) continue;
#pragma unroll
        for (uint32_t k = 0; k < size; k += f32::IN_16) {
          f32::store_16(columns + wave_id() * NORM_BACKWARD_WAVE_COLS + col + k, sums + k);
        }
      }
      group_barrier();
      float *to = args.partial + (which * args.slices + slice) * args.cols;
      for (uint32_t col = thread_id(); col < (uint32_t)args.cols; col += threads) {
        float sum = columns[col];
#pragma unroll
        for (uint32_t wave = 1; wave < waves; wave++) sum += columns[wave * NORM_BACKWARD_WAVE_COLS + col];
        to[col] = sum;
      }
    }
  }
}

/* As few lanes a row as hold it in three vectors each; two and three, and more of f32, are compiled apart. */
template <typename type, typename weights>
RDNA_DEVICE void norm_backward_short(const norm_backward_args &a, typename weights::stored *weight, float *columns) {
  const uint32_t vectors = (uint32_t)a.cols / type::IN_16;
  uint32_t lanes = 1;
  while (lanes < 32 && vectors > 3 * lanes) lanes *= 2;
  if (vectors <= 2 * lanes) {
    short_slices<type, weights, 2>(a, lanes, weight, columns);
  } else if (type::BYTES == 2 || vectors <= 3 * lanes) {
    short_slices<type, weights, 3>(a, lanes, weight, columns);
  } else {
    short_slices<type, weights, NORM_BACKWARD_WAVE_COLS / 32 / type::IN_16>(a, lanes, weight, columns);
  }
}

#endif
