/* Gradients of norms, kind 5: any other rows, in three passes that read memory twice.
 *
 *     norm_parts     sums of each part of a row            |  row 0: part 0 | part 1 | part 2
 *     norm_join      a row's statistics from its parts     |  row 1: part 0 | part 1 | part 2
 *     norm_columns   dx, and the sums of columns           |         slab 0 | slab 1 | ... */
#ifndef RDNA_MATH_NORM_NORM_BACKWARD_PARTS_H
#define RDNA_MATH_NORM_NORM_BACKWARD_PARTS_H

#include "math/common/device/join.h"
#include "math/norm/norm_backward_held.h"

/* x and dout of a part of a row, NORM_BACKWARD_PART_COLS columns at most, in the registers of a group. */
template <typename type, typename place>
struct part_bits {
  enum : uint32_t { VECTORS = NORM_BACKWARD_PART_COLS / threads / type::IN_16 };
  typename place::raw x[VECTORS], dout[VECTORS];
  RDNA_DEVICE void load(part_bits &p, const norm_parts_args &a, int64_t row, int64_t part) {
    const int64_t begin = part * NORM_BACKWARD_PART_COLS;
    const uint32_t cols =
        a.cols - begin < NORM_BACKWARD_PART_COLS ? (uint32_t)(a.cols - begin) : NORM_BACKWARD_PART_COLS;
    const char *x = (const char *)a.x + (row * a.x_stride + begin) * type::BYTES;
    const char *dout = (const char *)a.dout + (row * a.dout_stride + begin) * type::BYTES;
#pragma unroll
    for (uint32_t j = 0; j < VECTORS; j++) {
      if (place::column(j, 0) >= cols) continue;
      place::load(p.x[j], x, j, cols);
      place::load(p.dout[j], dout, j, cols);
    }
  }
};

/* Pass 1: the sums of each part of each row. A group takes consecutive parts of the order row 0 part 0, row 1 part 0,
 * ..., so that most share their columns and with them the weights in registers; the next part is in flight meanwhile.
 */
template <typename type, typename weights, bool wide>
RDNA_DEVICE void norm_parts(const norm_parts_args &args, float *scratch) {
  typedef row_layout<type, group_team<threads>, wide> place;
  typedef part_bits<type, place> part_of;
  constexpr uint32_t size = type::IN_16, vectors = part_of::VECTORS, loads = size / (uint32_t)weights::IN_16;
  const int64_t items = args.rows * args.parts, end = items * (group_id_x() + 1) / group_count_x();
  int64_t item = items * group_id_x() / group_count_x(), weights_at = -1;
  if (item >= end) return;
  int64_t part = item / args.rows, row = item - part * args.rows;
  uint4 weight[vectors][loads];
  part_of next;
  if (wide) part_of::load(next, args, row, part); /* in flight; single values take too many registers for that */
  for (; item < end; item++) {
    const norm_parts_args &a = arguments_again_wide(args);
    const int64_t begin = part * NORM_BACKWARD_PART_COLS, to = row * a.parts + part;
    const int64_t left = a.cols - begin;
    uint32_t cols = wave_uniform_u32(left < NORM_BACKWARD_PART_COLS ? (uint32_t)left : NORM_BACKWARD_PART_COLS);
    const char *weight_from = a.weight ? (const char *)a.weight + begin * weights::BYTES : NULL;
    if (wide && weight_from && weights_at != part) {
      weights_at = part;
#pragma unroll
      for (uint32_t j = 0; j < vectors; j++) {
        if (place::column(j, 0) >= cols) continue;
#pragma unroll
        for (uint32_t k = 0; k < loads; k++) {
          weight[j][k] = load_as<uint4>(weight_from + place::column(j, 0) * weights::BYTES + k * 16);
        }
      }
    }
    part_of now = next;
    if (!wide) part_of::load(now, a, row, part);
    if (++row == a.rows) row = 0, part++;
    if (wide && item + 1 < end) part_of::load(next, a, row, part);
    float y[vectors][size], g[size], mean = 0, sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      if (place::column(j, 0) >= cols) continue;
      type::unpack(place::packed(now.x[j]), y[j]);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) {
        if (!place::lacks(j, k, cols)) sum += y[j][k];
      }
    }
    if (a.centred) mean = group_team<threads>::sum(sum, scratch) / (float)cols;
    cols = again_uniform(cols);
    float sums[3] = {0, 0, 0}; /* of y^2, g y and g */
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      if (place::column(j, 0) >= cols) continue;
      type::unpack(place::packed(now.dout[j]), g);
      if (weight_from) {
        float w[size];
        if constexpr (wide) {
#pragma unroll
          for (uint32_t k = 0; k < loads; k++) weights::unpack(weight[j][k], w + k * weights::IN_16);
        } else {
          place::template load_as_floats<weights>(weight_from, j, cols, w);
        }
#pragma unroll
        for (uint32_t k = 0; k < size; k++) g[k] *= w[k];
      }
#pragma unroll
      for (uint32_t k = 0; k < size; k++) {
        if (place::lacks(j, k, cols)) continue;
        y[j][k] -= mean;
        sums[0] = fma_f32(y[j][k], y[j][k], sums[0]);
        sums[1] = fma_f32(g[k], y[j][k], sums[1]);
        sums[2] += g[k];
      }
    }
    group_team<threads>::sums(sums, scratch);
    if (thread_id() == 0) {
      a.mean[to] = mean;
      a.squares[to] = sums[0];
      a.gy[to] = sums[1];
      a.g[to] = sums[2];
    }
  }
}

/* What is known of |n| of a row's values: their mean, and with y = x - mean the sums of y^2, g y and g. join corrects
 * those sums for the mean of both. */
struct row_sums {
  float mean, squares, gy, g, n;
  RDNA_DEVICE void join(row_sums &s, const row_sums &o) {
    if (o.n == 0) return;
    if (s.n == 0) {
      s = o;
      return;
    }
    float n = s.n + o.n, apart = o.mean - s.mean, share = o.n / n;
    s.squares += o.squares + apart * apart * s.n * share;
    s.gy += o.gy + apart * (o.g * (1 - share) - s.g * share);
    s.mean += apart * share;
    s.g += o.g;
    s.n = n;
  }
};

/* A thread's columns of every row: 16 bytes if |wide|, else NORM_BACKWARD_SINGLES values that lie a group apart. */
template <typename type, bool wide>
struct column_set {
  enum : uint32_t { COUNT = wide ? (uint32_t)type::IN_16 : NORM_BACKWARD_SINGLES, APART = wide ? 1 : threads };
  uint4 bits;
  typename type::stored value[wide ? 1 : COUNT];
  RDNA_DEVICE void load(column_set &s, const char *row, int64_t col, int64_t cols) {
    if constexpr (wide) {
      s.bits = load_as<uint4>(row + col * type::BYTES);
    } else {
#pragma unroll
      for (uint32_t k = 0; k < COUNT; k++) {
        s.value[k] = 0;
        if (col + k * APART < cols) s.value[k] = ((const typename type::stored *)row)[col + k * APART];
      }
    }
  }
  RDNA_DEVICE void unpack(const column_set &s, float *v) {
    if constexpr (wide) {
      type::unpack(s.bits, v);
    } else {
#pragma unroll
      for (uint32_t k = 0; k < COUNT; k++) v[k] = type::load(&s.value[k], 0);
    }
  }
  template <typename to>
  RDNA_DEVICE void store(char *row, int64_t col, int64_t cols, const float *v) {
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k += wide ? (uint32_t)to::IN_16 : 1) {
      if constexpr (wide) {
        to::store_16(row + (col + k) * to::BYTES, v + k);
      } else if (col + k * APART < cols) {
        ((typename to::stored *)row)[col + k * APART] = stored_of<to>(v[k]);
      }
    }
  }
};

/* Pass 3: dx, and the sums of columns. A group takes slabs of columns in turn, and of a slab the rows of one slice,
 * |at_once| at a time, all in flight together. The last row comes first: see "The second pass goes backwards" in
 * src/math/README.md. */
template <typename type, typename weights, bool wide>
RDNA_DEVICE void norm_columns(const norm_columns_args &args) {
  typedef column_set<type, wide> set;
  constexpr uint32_t size = set::COUNT, at_once = 4;
  constexpr int64_t slab_cols = threads * size;
  const int64_t slabs = (args.cols + slab_cols - 1) / slab_cols;
  for (int64_t item = group_id_x(); item < slabs * args.slices; item += group_count_x()) {
    const norm_columns_args &a = arguments_again(args);
    const int64_t slice = item / slabs, col = (item - slice * slabs) * slab_cols + thread_id() * (wide ? size : 1);
    if (col >= a.cols) continue;
    float w[size], dweight[size] = {}, dbias[size] = {};
#pragma unroll
    for (uint32_t k = 0; k < size; k++) {
      int64_t at = col + k * set::APART;
      w[k] = a.weight && at < a.cols ? weights::load(a.weight, (uint64_t)at) : 1;
    }
    const int64_t rows = a.rows, slices = a.slices;
    for (int64_t first = slice; first < rows; first += at_once * slices) {
      set x[at_once], dout[at_once];
      float4 row[at_once]; /* as norm_columns_args has it */
      const norm_columns_args &from = arguments_again(args);
#pragma unroll
      for (uint32_t r = 0; r < at_once; r++) {
        int64_t number = rows - 1 - (first + r * slices);
        if (number < 0) continue;
        set::load(x[r], (const char *)from.x + number * from.x_stride * type::BYTES, col, from.cols);
        set::load(dout[r], (const char *)from.dout + number * from.dout_stride * type::BYTES, col, from.cols);
        row[r] = load_as<float4>(from.statistics + 4 * number);
      }
#pragma unroll
      for (uint32_t r = 0; r < at_once; r++) {
        const norm_columns_args &to = arguments_again(args);
        int64_t number = rows - 1 - (first + r * slices);
        if (number < 0) continue;
        float v[size], d[size];
        set::unpack(x[r], v);
        set::unpack(dout[r], d);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) {
          float normal = (v[k] - row[r].x) * row[r].y;
          dweight[k] = fma_f32(d[k], normal, dweight[k]);
          dbias[k] += d[k];
          v[k] = fma_f32(normal, row[r].w, fma_f32(d[k] * w[k], row[r].y, row[r].z));
        }
        set::template store<type>((char *)to.dx + number * to.dx_stride * type::BYTES, col, to.cols, v);
      }
    }
    const norm_columns_args &to = arguments_again(args);
#pragma unroll
    for (int which = 0; which < 2; which++) {
      const float *of = which ? dbias : dweight;
      if (to.partial) {
        set::template store<f32>((char *)(to.partial + (which * to.slices + slice) * to.cols), col, to.cols, of);
      } else if (to.sums[which] && to.sums_f32[which]) {
        set::template store<f32>((char *)to.sums[which], col, to.cols, of);
      } else if (to.sums[which]) {
        set::template store<type>((char *)to.sums[which], col, to.cols, of);
      }
    }
  }
}

/* Pass 2: joins parts |first|, |first| + |step| and so on of a row, and those of the wave's lanes. */
RDNA_DEVICE row_sums sums_of(const norm_join_args &a, int64_t row, uint32_t first, uint32_t step) {
  row_sums s = {};
  for (int64_t part = first; part < a.parts; part += step) {
    int64_t i = row * a.parts + part, left = a.cols - part * NORM_BACKWARD_PART_COLS;
    float n = left < NORM_BACKWARD_PART_COLS ? (float)left : NORM_BACKWARD_PART_COLS;
    row_sums::join(s, {a.mean[i], a.squares[i], a.gy[i], a.g[i], n});
  }
  return wave_join(s);
}
/* Stores what pass 3 takes of a row. */
RDNA_DEVICE void store_statistics(const norm_join_args &a, int64_t row, const row_sums &s) {
  float n = (float)a.cols, mean = s.mean, gy = s.gy, inverse;
  if (a.given_mean) {
    mean = a.given_mean[row], inverse = a.given_inverse[row];
    gy = fma_f32(s.mean - mean, s.g, gy);
  } else {
    inverse = 1.0f / sqrt_f32(s.squares / n + a.epsilon);
  }
  float level = a.centred ? -(s.g / n) * inverse : 0, of_y = -(gy * inverse / n) * inverse;
  store_as<float4>(a.statistics + 4 * row, float4{mean, inverse, level, of_y});
}

#endif
