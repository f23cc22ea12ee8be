/* Gradients of norms, kind 1: rows that stay in the registers of a team, with the sums of the columns of their slice.
 */
#ifndef RDNA_MATH_NORM_NORM_BACKWARD_HELD_H
#define RDNA_MATH_NORM_NORM_BACKWARD_HELD_H

#include "kernel/arguments.h"
#include "math/common/device/chunk.h"
#include "math/common/device/teams.h"
#include "math/norm/norm_backward_kernels.h"

static constexpr uint32_t threads = NORM_BACKWARD_THREADS;

/* Which values of a row a thread of a team has: some vectors of 16 bytes, of SIZE values each. With 4 threads and SIZE
 * 4, the numbers being threads:
 *
 *     |wide|:  0000 1111 2222 3333 | 0000 1111 ...   a vector is 16 bytes of memory, at a multiple of 16
 *     else:    0123 0123 0123 0123 | 0123 0123 ...   a vector's values lie a team apart
 *
 * The second suits any alignment: each access of a team is to neighbours. */
template <typename type, typename team, bool wide>
struct row_layout {
  enum : uint32_t { SIZE = type::IN_16 };
  RDNA_DEVICE uint32_t column(uint32_t j, uint32_t k) {
    return wide ? (j * team::SIZE + team::rank()) * SIZE + k : (j * SIZE + k) * team::SIZE + team::rank();
  }
  /* Whether value |k| of vector |j| is past the end. Vectors of a |wide| row are whole: only their first value is asked
   * for. */
  RDNA_DEVICE bool lacks(uint32_t j, uint32_t k, uint32_t cols) {
    return (wide ? k == 0 : true) && column(j, k) >= cols;
  }
  /* A vector as it was loaded. It is packed later, as packing single values waits for them. */
  struct raw {
    uint4 bits;
    typename type::stored value[wide ? 1 : SIZE];
  };
  RDNA_DEVICE void load(raw &r, const void *row, uint32_t j, uint32_t cols) {
    if constexpr (wide) {
      r.bits = load_as<uint4>((const char *)row + column(j, 0) * type::BYTES);
    } else {
#pragma unroll
      for (uint32_t k = 0; k < SIZE; k++) {
        r.value[k] = 0;
        if (column(j, k) < cols) r.value[k] = ((const typename type::stored *)row)[column(j, k)];
      }
    }
  }
  RDNA_DEVICE uint4 packed(const raw &r) {
    if constexpr (wide) {
      return r.bits;
    } else {
      uint4 bits = {};
#pragma unroll
      for (uint32_t k = 0; k < SIZE; k++) {
        if constexpr (type::BYTES == 4) {
          bits[k] = bits_as<uint32_t>(r.value[k]);
        } else {
          bits[k / 2] |= (uint32_t)r.value[k] << 16 * (k % 2);
        }
      }
      return bits;
    }
  }
  template <typename to>
  RDNA_DEVICE void load_as_floats(const void *row, uint32_t j, uint32_t cols, float *v) {
    if constexpr (wide) {
      chunk<type, true>::template load<to>(row, column(j, 0), v);
    } else {
#pragma unroll
      for (uint32_t k = 0; k < SIZE; k++) {
        v[k] = 0;
        if (column(j, k) < cols) v[k] = to::load(row, column(j, k));
      }
    }
  }
  template <typename to>
  RDNA_DEVICE void store(void *row, uint32_t j, uint32_t cols, const float *v) {
    if constexpr (wide) {
#pragma unroll
      for (uint32_t k = 0; k < SIZE; k += to::IN_16) to::store_16((char *)row + column(j, k) * to::BYTES, v + k);
    } else {
#pragma unroll
      for (uint32_t k = 0; k < SIZE; k++) {
        if (column(j, k) < cols) ((typename to::stored *)row)[column(j, k)] = stored_of<to>(v[k]);
      }
    }
  }
};

RDNA_DEVICE float inverse_of(const norm_backward_args &a, int64_t row, float variance) {
  return a.inverse ? a.inverse[row] : 1.0f / sqrt_f32(variance + a.epsilon);
}

template <typename type, int vectors>
struct row_bits {
  uint4 x[vectors], dout[vectors];
};

/* What norm_backward_edged.h adds: where the vectors of a row begin and end, the single value before or after them that
 * this thread has, if any, and its columns' sums. */
template <typename type>
struct row_edge {
  uint32_t head, cols; /* values before the vectors, and in them */
  uint32_t single;     /* column of the single value, or NONE */
  enum : uint32_t { NONE = 0xffffffff };
  typename type::stored x, dout;
  float weight, dweight, dbias; /* of the single value */
  const void *weights;          /* in group memory, from the first vector's on */
};

/* Loads x and dout of row |row|. */
template <typename type, typename place, int vectors, bool edged>
RDNA_DEVICE void load_row(const norm_backward_args &a, int64_t row, row_bits<type, vectors> &bits,
                          row_edge<type> &edge) {
  typedef typename type::stored stored;
  const char *x = (const char *)a.x + row * a.x_stride * type::BYTES;
  const char *dout = (const char *)a.dout + row * a.dout_stride * type::BYTES;
  const uint32_t cols = edged ? edge.cols : (uint32_t)a.cols;
  if (edged && edge.single != edge.NONE) {
    edge.x = ((const stored *)x)[edge.single], edge.dout = ((const stored *)dout)[edge.single];
  }
  if (edged) x += edge.head * type::BYTES, dout += edge.head * type::BYTES;
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (place::column(j, 0) >= cols) continue;
    typename place::raw x_raw, dout_raw;
    place::load(x_raw, x, j, cols);
    place::load(dout_raw, dout, j, cols);
    bits.x[j] = place::packed(x_raw);
    bits.dout[j] = place::packed(dout_raw);
  }
}

/* Computes dx of row |row|, which |bits| holds, and adds to the columns' sums. Row |next| is in flight meanwhile, if
 * there is one, and |bits| holds it afterwards. */
template <typename type, typename weights, typename team, int vectors, bool wide, bool edged>
RDNA_DEVICE void held_row(const norm_backward_args &args, int64_t row, int64_t next, row_bits<type, vectors> &bits,
                          float (*dweight)[type::IN_16], float (*dbias)[type::IN_16], row_edge<type> &edge,
                          float *scratch) {
  typedef row_layout<type, team, wide> place;
  constexpr uint32_t size = type::IN_16;
  const norm_backward_args &a = arguments_again(args);
  char *dx = (char *)a.dx + row * a.dx_stride * type::BYTES;
  auto cols_again = [&] { return edged ? again_uniform(edge.cols) : (uint32_t)arguments_again(args).cols; };
  uint32_t cols = edged ? edge.cols : (uint32_t)a.cols;
  const float count = (float)a.cols;
  const bool alone = edged && edge.single != edge.NONE;
  float y_alone = 0, g_alone = 0, d_alone = 0;
  if (alone) y_alone = type::load(&edge.x, 0), d_alone = type::load(&edge.dout, 0), g_alone = d_alone * edge.weight;
  /* y is x less the mean. g = dout * weight is kept, or with weights in group memory computed twice. */
  float mean = 0, y[vectors][size], kept[edged ? 1 : vectors][size];
  uint4 dout[vectors];
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    type::unpack(bits.x[j], y[j]);
    dout[j] = bits.dout[j];
  }
  if (next < a.rows) load_row<type, place, vectors, edged>(a, next, bits, edge);
  if (a.mean) {
    mean = a.mean[row];
  } else if (a.centred) {
    float sum = y_alone;
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      if (place::column(j, 0) >= cols) continue;
#pragma unroll
      for (uint32_t k = 0; k < size; k++) {
        if (!place::lacks(j, k, cols)) sum += y[j][k];
      }
    }
    mean = team::sum(sum, scratch) / count;
  }
  cols = cols_again(); /* so that comparisons with it are made again, not kept as masks */
  y_alone = alone ? y_alone - mean : 0;
  float sums[3] = {y_alone * y_alone, g_alone * y_alone, g_alone}; /* of y^2, g y and g */
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (place::column(j, 0) >= cols) continue;
    float *const g = kept[edged ? 0 : j];
    type::unpack(dout[j], g);
    if (edged || a.weight) {
      float w[size];
      place::template load_as_floats<weights>(edged ? edge.weights : a.weight, j, cols, w);
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
  team::sums(sums, scratch);
  float inverse = inverse_of(a, row, sums[0] / count);
  cols = cols_again();
  /* dx = inverse g + of_y y / deviation + level */
  float of_y = -(sums[1] * inverse / count) * inverse, level = a.centred ? -(sums[2] / count) * inverse : 0;
  if (alone) {
    const float normal = y_alone * inverse;
    edge.dweight = fma_f32(d_alone, normal, edge.dweight);
    edge.dbias += d_alone;
    ((typename type::stored *)dx)[edge.single] =
        stored_of<type>(fma_f32(normal, of_y, fma_f32(g_alone, inverse, level)));
  }
  if (edged) dx += edge.head * type::BYTES;
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (place::column(j, 0) >= cols) continue;
    float d[size], *const g = kept[edged ? 0 : j];
    type::unpack(dout[j] = again(dout[j]), d);
    if (edged) {
      place::template load_as_floats<weights>(edge.weights, j, cols, g);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) g[k] *= d[k];
    }
#pragma unroll
    for (uint32_t k = 0; k < size; k++) {
      float normal = y[j][k] * inverse;
      dweight[j][k] = fma_f32(d[k], normal, dweight[j][k]);
      dbias[j][k] += d[k];
      d[k] = fma_f32(normal, of_y, fma_f32(g[k], inverse, level));
    }
    place::template store<type>(dx, j, cols, d);
  }
}

/* Groups take slices in turn; the teams of a group take the rows of a slice in turn and add up their columns' sums in
 * |columns|, of a row's length. */
template <typename type, typename weights, typename team, int vectors, bool wide>
RDNA_DEVICE void held_slices(const norm_backward_args &args, float *scratch, float *columns) {
  typedef row_layout<type, team, wide> place;
  constexpr uint32_t size = type::IN_16;
  for (int64_t slice = group_id_x(); slice < args.slices; slice += group_count_x()) {
    const norm_backward_args &a = arguments_again(args);
    float dweight[vectors][size] = {}, dbias[vectors][size] = {};
    const int64_t step = team::COUNT * a.slices;
    int64_t row = slice + team::index() * a.slices;
    row_bits<type, vectors> bits;
    row_edge<type> edge; /* none */
    if (row < a.rows) load_row<type, place, vectors, false>(a, row, bits, edge);
    for (; row < a.rows; row += step) {
      held_row<type, weights, team, vectors, wide, false>(a, row, row + step, bits, dweight, dbias, edge, scratch);
    }
    float *to = a.partial + slice * a.cols;
#pragma unroll
    for (int which = 0; which < 2; which++) {
      auto &sums = which ? dbias : dweight;
      for (uint32_t turn = 0; turn < team::COUNT;
           turn++) { /* in order: see "The order of sums" in src/math/README.md */
        if (team::COUNT > 1) group_barrier();
        if (turn != team::index()) continue;
        const uint32_t cols = (uint32_t)arguments_again(args).cols;
#pragma unroll
        for (uint32_t j = 0; j < vectors; j++) {
          if (place::column(j, 0) >= cols) continue;
          if (turn > 0) {
            float before[size];
            place::template load_as_floats<f32>(columns, j, cols, before);
#pragma unroll
            for (uint32_t k = 0; k < size; k++) sums[j][k] += before[k];
          }
          if (turn + 1 < team::COUNT) {
            place::template store<f32>(columns, j, cols, sums[j]);
          } else {
            place::template store<f32>(to, j, cols, sums[j]);
          }
        }
      }
      if (team::COUNT > 1) group_barrier();
      to += a.slices * a.cols;
    }
  }
}

template <typename type, typename weights>
RDNA_DEVICE void norm_backward(const norm_backward_args &a, float *scratch, float *columns) {
  constexpr int of_group = NORM_BACKWARD_HELD_COLS / threads / type::IN_16;
  constexpr int of_wave = NORM_BACKWARD_WAVE_COLS / WAVE_SIZE / type::IN_16;
  if (a.cols > NORM_BACKWARD_WAVE_COLS) {
    held_slices<type, weights, group_team<threads>, of_group, true>(a, scratch, columns);
  } else {
    held_slices<type, weights, wave_team<threads>, of_wave, false>(a, scratch, columns);
  }
}

/* A kernel of its own, since rows twice as long take all registers of a thread. */
template <typename type, typename weights>
RDNA_DEVICE void norm_backward_long(const norm_backward_args &a, float *scratch) {
  constexpr int vectors = NORM_BACKWARD_LONG_COLS / threads / type::IN_16;
  held_slices<type, weights, group_team<threads>, vectors, true>(a, scratch, NULL);
}

#endif
