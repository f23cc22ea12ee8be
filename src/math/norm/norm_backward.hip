/* Gradients of layer_norm and rms_norm. Short rows are several to a wave or a wave's, a group takes a longer one. A row
 * of up to 4,096 values, or of 8,192 of 16 bits, stays in registers with its slice's column sums, so that memory is
 * read once, 6 bytes a 16-bit value in all, and the next row is on its way while the sums of this one are joined. Rows
 * that do not allow 16-byte accesses do so with vectors between single values where all rows of a slice begin equally
 * far from 16 bytes; other ones of 16-bit values go through group memory on their way, where they are shifted into
 * place. Of any other row groups sum up the parts, and once the parts are joined others go down the columns: memory is
 * read twice, 10 bytes a 16-bit value, 3/5 of a copy's speed at most. */
#include "kernel/arguments.h"
#include "math/common/device/chunk.h"
#include "math/common/device/join.h"
#include "math/common/device/teams.h"
#include "math/common/edges.h"
#include "math/norm/norm_backward_kernels.h"

static constexpr uint32_t threads = NORM_BACKWARD_THREADS;

/* What a thread holds of a row: |vectors| times 16 bytes of x and of dout. If |wide|, those lie so in memory; otherwise
 * its values are a team apart from each other, so that a team's accesses are neighbours whatever the alignment. */
template <typename type, typename team, bool wide>
struct held {
  enum : uint32_t { SIZE = type::IN_16 };
  RDNA_DEVICE uint32_t column(uint32_t j, uint32_t k) {
    return wide ? (j * team::SIZE + team::rank()) * SIZE + k : (j * SIZE + k) * team::SIZE + team::rank();
  }
  /* If |wide|, what is true of a vector's first value is true of all. */
  RDNA_DEVICE bool lacks(uint32_t j, uint32_t k, uint32_t cols) {
    return (wide ? k == 0 : true) && column(j, k) >= cols;
  }
  /* As it lies in memory: packing single values waits for them, which is for when all loads are under way. */
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

/* Where vectors of 16 bytes begin and end in a row at any alignment, and the single value before or after them that a
 * thread has. Weights are in group memory, from the first vector's on. */
template <typename type>
struct row_edge {
  uint32_t head, cols; /* values before the vectors, and in them */
  uint32_t single;     /* the column, or NONE */
  enum : uint32_t { NONE = 0xffffffff };
  typename type::stored x, dout;
  float weight, dweight, dbias; /* of the single value */
  const void *weights;
};

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

/* Row |row|, which is in |bits|, adding to the columns' sums; then |bits| holds row |next|, if there is one. */
template <typename type, typename weights, typename team, int vectors, bool wide, bool edged>
RDNA_DEVICE void held_row(const norm_backward_args &args, int64_t row, int64_t next, row_bits<type, vectors> &bits,
                          float (*dweight)[type::IN_16], float (*dbias)[type::IN_16], row_edge<type> &edge,
                          float *scratch) {
  typedef held<type, team, wide> place;
  constexpr uint32_t size = type::IN_16;
  const norm_backward_args &a = arguments_again(args);
  char *dx = (char *)a.dx + row * a.dx_stride * type::BYTES;
  auto cols_again = [&] { return edged ? again_uniform(edge.cols) : (uint32_t)arguments_again(args).cols; };
  uint32_t cols = edged ? edge.cols : (uint32_t)a.cols;
  const float count = (float)a.cols;
  const bool alone = edged && edge.single != edge.NONE;
  float y_alone = 0, g_alone = 0, d_alone = 0;
  if (alone) y_alone = type::load(&edge.x, 0), d_alone = type::load(&edge.dout, 0), g_alone = d_alone * edge.weight;
  /* y: x less the mean; of weights in group memory, g is found again rather than kept */
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
  cols = cols_again(); /* which columns there are is found again, not kept */
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

template <typename type, typename weights, typename team, int vectors, bool wide>
RDNA_DEVICE void held_slices(const norm_backward_args &args, float *scratch, float *columns) {
  typedef held<type, team, wide> place;
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
           turn++) { /* waves add up in order, so that the sum is always the same */
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

/* |lanes| of a wave, a power of two, for each row of up to |vectors| times 16 bytes a lane. */
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

template <int count>
RDNA_DEVICE void sum_lanes(float *v, uint32_t lanes) {
#pragma unroll
  for (uint32_t mask = 1; mask < WAVE_SIZE; mask *= 2) {
    if (mask >= lanes) return;
#pragma unroll
    for (int i = 0; i < count; i++) v[i] += wave_shuffle_xor_f32(v[i], mask);
  }
}

/* Rows that are several to a wave. |weight| and, for each wave, |columns|: NORM_BACKWARD_WAVE_COLS. */
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
    row_of next; /* x alone: with dout, registers would not do */
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
      group_barrier(); /* what was there was read */
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

/* Twice as long a row of 16-bit values takes all registers of a thread, and a kernel of its own. */
template <typename type, typename weights>
RDNA_DEVICE void norm_backward_long(const norm_backward_args &a, float *scratch) {
  constexpr int vectors = NORM_BACKWARD_LONG_COLS / threads / type::IN_16;
  held_slices<type, weights, group_team<threads>, vectors, true>(a, scratch, NULL);
}

/* Rows at any alignment, the same for x, dout and dx in all rows of a slice. |weight|, |columns|:
 * NORM_BACKWARD_HELD_COLS. */
template <typename type, typename weights>
RDNA_DEVICE void edged_slices(const norm_backward_args &args, float *scratch, typename weights::stored *weight,
                              float *columns) {
  typedef held<type, group_team<threads>, true> place;
  constexpr uint32_t size = type::IN_16;
  constexpr int vectors = NORM_BACKWARD_HELD_COLS / threads / size;
  for (int64_t slice = group_id_x(); slice < args.slices; slice += group_count_x()) {
    const norm_backward_args &a = arguments_again(args);
    float dweight[vectors][size] = {}, dbias[vectors][size] = {};
    const row_edges e =
        row_edges_of(address_of(a.x) + (uint64_t)(slice * a.x_stride * type::BYTES), (uint64_t)a.cols, size);
    const uint32_t single = (uint32_t)row_edges_single(&e, (uint64_t)a.cols, thread_id(), size);
    row_edge<type> edge;
    edge.head = wave_uniform_u32((uint32_t)e.head), edge.cols = wave_uniform_u32((uint32_t)e.vectors * size);
    edge.single = single < (uint32_t)a.cols ? single : edge.NONE;
    edge.weight = 1, edge.dweight = edge.dbias = 0, edge.weights = weight;
    if (a.weight && edge.single != edge.NONE) edge.weight = weights::load(a.weight, edge.single);
    group_barrier(); /* the last slice's were read */
    for (uint32_t i = thread_id(); i < edge.cols; i += threads) {
      weight[i] = a.weight ? ((const typename weights::stored *)a.weight)[edge.head + i] : stored_of<weights>(1);
    }
    group_barrier();
    row_bits<type, vectors> bits;
    if (slice < a.rows) load_row<type, place, vectors, true>(a, slice, bits, edge);
    for (int64_t row = slice; row < args.rows; row += args.slices) {
      held_row<type, weights, group_team<threads>, vectors, true, true>(a, row, row + args.slices, bits, dweight, dbias,
                                                                        edge, scratch);
    }
    float *to = args.partial + slice * args.cols, *to_bias = to + args.slices * args.cols;
    if (edge.single != edge.NONE) to[edge.single] = edge.dweight, to_bias[edge.single] = edge.dbias;
#pragma unroll
    for (int which = 0; which < 2; which++) { /* by way of group memory, so that neighbours write neighbours */
      float *from_head = (which ? to_bias : to) + edge.head;
      group_barrier();
#pragma unroll
      for (uint32_t j = 0; j < (uint32_t)vectors; j++) {
        if (place::column(j, 0) >= edge.cols) continue;
        place::template store<f32>(columns, j, edge.cols, which ? dbias[j] : dweight[j]);
      }
      group_barrier();
      for (uint32_t i = thread_id(); i < edge.cols; i += threads) from_head[i] = columns[i];
    }
  }
}

/* A row at any alignment as a group has it in registers: vectors, and a single value before or after them. */
template <typename type>
struct shifted_row {
  enum : uint32_t { SIZE = type::IN_16, VECTORS = NORM_BACKWARD_HELD_COLS / threads / SIZE };
  uint4 vector[VECTORS];
  typename type::stored single;
  RDNA_DEVICE void load(shifted_row &r, const char *row, uint32_t cols) {
    row_edges e = row_edges_of(address_of(row), cols, SIZE);
    const char *body = row + e.head * type::BYTES;
    uint32_t single = (uint32_t)row_edges_single(&e, cols, thread_id(), SIZE);
#pragma unroll
    for (uint32_t j = 0; j < VECTORS; j++) {
      uint32_t i = j * threads + thread_id();
      if (i < (uint32_t)e.vectors) r.vector[j] = load_as<uint4>(body + i * 16);
    }
    if (single < cols) r.single = ((const typename type::stored *)row)[single];
  }
  /* Where column 0 of |row| lies in group memory, in values. */
  RDNA_DEVICE uint32_t origin(const char *row) { return (uint32_t)(address_of(row) & 15) / type::BYTES; }
  /* Into group memory, vectors at multiples of 16 bytes as they are in |row|. */
  RDNA_DEVICE void put(const shifted_row &r, const char *row, uint32_t cols, uint4 *to) {
    row_edges e = row_edges_of(address_of(row), cols, SIZE);
    uint32_t first = origin(row) ? 1 : 0, single = (uint32_t)row_edges_single(&e, cols, thread_id(), SIZE);
#pragma unroll
    for (uint32_t j = 0; j < VECTORS; j++) {
      uint32_t i = j * threads + thread_id();
      if (i < (uint32_t)e.vectors) to[first + i] = r.vector[j];
    }
    if (single < cols) ((typename type::stored *)to)[origin(row) + single] = r.single;
  }
};

/* For columns k * threads + thread_id() of a row, four in a row without a branch. */
template <typename each>
RDNA_DEVICE void for_columns(uint32_t cols, const each &at) {
#pragma unroll
  for (uint32_t first = 0; first < NORM_BACKWARD_HELD_COLS / threads; first += 4) {
    if (first * threads >= cols) return;
#pragma unroll
    for (uint32_t k = first; k < first + 4; k++) at(k);
  }
}

/* A thread has columns that lie a group apart. Group memory has something for absent ones too, which counts for
 * nothing; what is read is opaque, or the compiler would move the access below a condition and wait for it there. */
template <typename type, typename weights>
RDNA_DEVICE void shifted_slices(const norm_backward_args &args, float *scratch, uint4 *x_shared, uint4 *dout_shared,
                                typename weights::stored *w_shared) {
  typedef shifted_row<type> row_of;
  constexpr uint32_t values = NORM_BACKWARD_HELD_COLS / threads;
  typedef typename type::stored stored;
  const typename weights::stored *w_values = w_shared + thread_id();
  auto column = [](uint32_t k) { return k * threads + thread_id(); };
  for (uint32_t i = thread_id(); i < NORM_BACKWARD_HELD_COLS; i += threads) {
    w_shared[i] = stored_of<weights>(1);
    if (args.weight && i < (uint32_t)args.cols) w_shared[i] = ((const typename weights::stored *)args.weight)[i];
  }
  for (uint32_t i = thread_id(); i < NORM_BACKWARD_HELD_COLS / type::IN_16 + 1; i += threads) {
    x_shared[i] = dout_shared[i] = uint4{};
  }
  for (int64_t slice = group_id_x(); slice < args.slices; slice += group_count_x()) {
    float dweight[values] = {}, dbias[values] = {};
    row_of x_row, dout_row;
    auto load = [&](int64_t row) {
      const norm_backward_args &a = arguments_again(args);
      row_of::load(x_row, (const char *)a.x + row * a.x_stride * type::BYTES, (uint32_t)a.cols);
      row_of::load(dout_row, (const char *)a.dout + row * a.dout_stride * type::BYTES, (uint32_t)a.cols);
    };
    if (slice < args.rows) load(slice);
    for (int64_t row = slice; row < args.rows; row += args.slices) {
      const norm_backward_args &a = arguments_again(args);
      const char *x_from = (const char *)a.x + row * a.x_stride * type::BYTES;
      const char *dout_from = (const char *)a.dout + row * a.dout_stride * type::BYTES;
      uint32_t cols = (uint32_t)a.cols;
      const float count = (float)cols;
      group_barrier(); /* the last row was read */
      row_of::put(x_row, x_from, cols, x_shared);
      row_of::put(dout_row, dout_from, cols, dout_shared);
      group_barrier();
      float y[values], mean = 0, sums[3] = {0, 0, 0}; /* of y^2, g y and g */
      const stored *x_values = (const stored *)x_shared + row_of::origin(x_from) + thread_id();
      const stored *dout_values = (const stored *)dout_shared + row_of::origin(dout_from) + thread_id();
      for_columns(cols, [&](uint32_t k) { y[k] = again(type::load(x_values, k * threads)); });
      if (row + args.slices < args.rows) load(row + args.slices);
      if (a.mean) {
        mean = a.mean[row];
      } else if (a.centred) {
        float sum = 0;
        for_columns(cols, [&](uint32_t k) { sum += column(k) < cols ? y[k] : 0; });
        mean = group_team<threads>::sum(sum, scratch) / count;
      }
      cols = again_uniform(cols);
      for_columns(cols, [&](uint32_t k) {
        const bool there = column(k) < cols;
        float g = again(type::load(dout_values, k * threads) * weights::load(w_values, k * threads));
        g = there ? g : 0;
        y[k] = there ? y[k] - mean : 0;
        sums[0] = fma_f32(y[k], y[k], sums[0]);
        sums[1] = fma_f32(g, y[k], sums[1]);
        sums[2] += g;
      });
      group_team<threads>::sums(sums, scratch);
      const norm_backward_args &last = arguments_again(args);
      stored *dx = (stored *)((char *)last.dx + row * last.dx_stride * type::BYTES);
      float inverse = inverse_of(last, row, sums[0] / count);
      float of_y = -(sums[1] * inverse / count) * inverse, level = last.centred ? -(sums[2] / count) * inverse : 0;
      cols = again_uniform(cols);
      for_columns(cols, [&](uint32_t k) {
        const float d = type::load(dout_values, k * threads), w = again(weights::load(w_values, k * threads));
        const float normal = y[k] * inverse;
        dweight[k] = fma_f32(d, normal, dweight[k]);
        dbias[k] += d;
        float v = fma_f32(normal, of_y, fma_f32(d * w, inverse, level));
        if (column(k) < cols) dx[column(k)] = stored_of<type>(v);
      });
    }
    float *to = args.partial + slice * args.cols, *to_bias = to + args.slices * args.cols;
#pragma unroll
    for (uint32_t k = 0; k < values; k++) {
      if (column(k) < (uint32_t)args.cols) to[column(k)] = dweight[k], to_bias[column(k)] = dbias[k];
    }
  }
}

/* A part's x and dout, as a group holds them. */
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

/* A group has the same columns of several rows in turn, so that it reads their weights once; the next part is on its
 * way meanwhile. */
template <typename type, typename weights, bool wide>
RDNA_DEVICE void norm_parts(const norm_parts_args &args, float *scratch) {
  typedef held<type, group_team<threads>, wide> place;
  typedef part_bits<type, place> part_of;
  constexpr uint32_t size = type::IN_16, vectors = part_of::VECTORS, loads = size / (uint32_t)weights::IN_16;
  const int64_t items = args.rows * args.parts, end = items * (group_id_x() + 1) / group_count_x();
  int64_t item = items * group_id_x() / group_count_x(), weights_at = -1;
  if (item >= end) return;
  int64_t part = item / args.rows, row = item - part * args.rows;
  uint4 weight[vectors][loads];
  part_of next;
  if (wide) part_of::load(next, args, row, part); /* single values take too many registers for that */
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

/* What is known of some of a row's values: y is x less their mean. */
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

/* Columns that a thread has of every row: 16 bytes, or some that lie a group apart. */
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

/* Some rows at once, whose loads wait together; backwards, as norm_parts read the last ones last, which may be in the
 * cache still. */
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

#define NORM_BACKWARD(suffix, type, weights)                                                         \
  RDNA_KERNEL_RESIDENT(NORM_BACKWARD_THREADS, type::BYTES == 2 ? 2 : 1)                              \
  norm_backward_##suffix(struct norm_backward_args a) {                                              \
    RDNA_SHARED static float scratch[3 * GROUP_SCRATCH(threads)];                                    \
    RDNA_SHARED static __attribute__((aligned(16))) float columns[NORM_BACKWARD_WAVE_COLS];          \
    norm_backward<type, weights>(a, scratch, columns);                                               \
  }                                                                                                  \
  RDNA_KERNEL_RESIDENT(NORM_BACKWARD_THREADS, type::BYTES == 2 ? 3 : 2)                              \
  norm_parts_##suffix(struct norm_parts_args a) {                                                    \
    RDNA_SHARED static float scratch[3 * GROUP_SCRATCH(threads)];                                    \
    if (all_16(address_of(a.x) | address_of(a.dout) | address_of(a.weight) |                         \
               (uint64_t)(a.cols | a.x_stride | a.dout_stride) * type::BYTES)) {                     \
      norm_parts<type, weights, true>(a, scratch);                                                   \
    } else {                                                                                         \
      norm_parts<type, weights, false>(a, scratch);                                                  \
    }                                                                                                \
  }                                                                                                  \
  RDNA_KERNEL_RESIDENT(NORM_BACKWARD_THREADS, 2) norm_columns_##suffix(struct norm_columns_args a) { \
    if (all_16(address_of(a.x) | address_of(a.dout) | address_of(a.dx) | address_of(a.partial) |     \
               address_of(a.sums[0]) | address_of(a.sums[1]) |                                       \
               (uint64_t)(a.cols | a.x_stride | a.dout_stride | a.dx_stride) * type::BYTES)) {       \
      norm_columns<type, weights, true>(a);                                                          \
    } else {                                                                                         \
      norm_columns<type, weights, false>(a);                                                         \
    }                                                                                                \
  }
RDNA__NORM_BACKWARD_TYPES(NORM_BACKWARD)

#define NORM_BACKWARD_EDGED(suffix, type, weights)                                                   \
  RDNA_KERNEL_RESIDENT(NORM_BACKWARD_THREADS, type::BYTES == 2 ? 2 : 1)                              \
  norm_backward_edged_##suffix(struct norm_backward_args a) {                                        \
    RDNA_SHARED static float scratch[3 * GROUP_SCRATCH(threads)];                                    \
    RDNA_SHARED static __attribute__((aligned(16))) weights::stored weight[NORM_BACKWARD_HELD_COLS]; \
    RDNA_SHARED static __attribute__((aligned(16))) float columns[NORM_BACKWARD_HELD_COLS];          \
    edged_slices<type, weights>(a, scratch, weight, columns);                                        \
  }
RDNA__NORM_BACKWARD_TYPES(NORM_BACKWARD_EDGED)

#define NORM_BACKWARD_SHORT(suffix, type, weights)                                                                   \
  RDNA_KERNEL_RESIDENT(NORM_BACKWARD_THREADS, 2) norm_backward_short_##suffix(struct norm_backward_args a) {         \
    RDNA_SHARED static __attribute__((aligned(16))) float columns[NORM_BACKWARD_WAVE_COLS * GROUP_SCRATCH(threads)]; \
    RDNA_SHARED static __attribute__((aligned(16))) weights::stored weight[NORM_BACKWARD_WAVE_COLS];                 \
    norm_backward_short<type, weights>(a, weight, columns);                                                          \
  }
RDNA__NORM_BACKWARD_TYPES(NORM_BACKWARD_SHORT)

#define NORM_BACKWARD_SHIFTED(suffix, type, weights)                                                           \
  RDNA_KERNEL_RESIDENT(NORM_BACKWARD_THREADS, 2) norm_backward_shifted_##suffix(struct norm_backward_args a) { \
    RDNA_SHARED static float scratch[3 * GROUP_SCRATCH(threads)];                                              \
    RDNA_SHARED static __attribute__((aligned(16))) uint4 x[NORM_BACKWARD_HELD_COLS / type::IN_16 + 1];        \
    RDNA_SHARED static __attribute__((aligned(16))) uint4 dout[NORM_BACKWARD_HELD_COLS / type::IN_16 + 1];     \
    RDNA_SHARED static weights::stored w[NORM_BACKWARD_HELD_COLS];                                             \
    shifted_slices<type, weights>(a, scratch, x, dout, w);                                                     \
  }
RDNA__NORM_BACKWARD_TYPES_16(NORM_BACKWARD_SHIFTED)

#define NORM_BACKWARD_LONG(suffix, type, weights)                                               \
  RDNA_KERNEL(NORM_BACKWARD_THREADS) norm_backward_long_##suffix(struct norm_backward_args a) { \
    RDNA_SHARED static float scratch[3 * GROUP_SCRATCH(threads)];                               \
    norm_backward_long<type, weights>(a, scratch);                                              \
  }
RDNA__NORM_BACKWARD_TYPES_16(NORM_BACKWARD_LONG)

/* Parts |first|, |first| + |step| and so on of a row. */
RDNA_DEVICE row_sums sums_of(const norm_join_args &a, int64_t row, uint32_t first, uint32_t step) {
  row_sums s = {};
  for (int64_t part = first; part < a.parts; part += step) {
    int64_t i = row * a.parts + part, left = a.cols - part * NORM_BACKWARD_PART_COLS;
    float n = left < NORM_BACKWARD_PART_COLS ? (float)left : NORM_BACKWARD_PART_COLS;
    row_sums::join(s, {a.mean[i], a.squares[i], a.gy[i], a.g[i], n});
  }
  return wave_join(s);
}
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

RDNA_KERNEL(NORM_BACKWARD_THREADS) norm_join(struct norm_join_args a) {
  constexpr int64_t waves = threads / WAVE_SIZE;
  RDNA_SHARED static row_sums scratch[waves];
  if (a.parts > NORM_JOIN_WAVE_PARTS) {
    for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
      row_sums s = group_join<threads>(sums_of(a, row, thread_id(), threads), scratch);
      if (thread_id() == 0) store_statistics(a, row, s);
    }
    return;
  }
  for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
    row_sums s = sums_of(a, row, lane_id(), WAVE_SIZE);
    if (lane_id() == 0) store_statistics(a, row, s);
  }
}

RDNA_KERNEL(COLUMN_SUM_THREADS) column_sum(struct column_sum_args a) {
  constexpr uint32_t cols = COLUMN_SUM_COLS, ways = COLUMN_SUM_THREADS / COLUMN_SUM_COLS;
  RDNA_SHARED static float sums[COLUMN_SUM_THREADS];
  bool second = group_id_y() > 0;
  const float *partial = a.partial + (second ? a.rows * a.cols : 0);
  void *out = second ? a.out[1] : a.out[0];
  uint32_t dtype = second ? a.dtype[1] : a.dtype[0];
  if (!out) return;
  uint32_t way = thread_id() / cols;
  int64_t col = (int64_t)group_id_x() * cols + thread_id() % cols;
  float sum = 0;
  if (col < a.cols) {
#pragma unroll 8
    for (int64_t row = way; row < a.rows; row += ways) sum += partial[row * a.cols + col];
  }
  sums[thread_id()] = sum;
  group_barrier();
  if (way != 0 || col >= a.cols) return;
  for (uint32_t i = 1; i < ways; i++) sum += sums[i * cols + thread_id()];
  store_float(out, (uint64_t)col, dtype, sum);
}
