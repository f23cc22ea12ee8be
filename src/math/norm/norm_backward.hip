/* Gradients of layer_norm and rms_norm. A wave takes a row of up to 512 values, a group a longer one. A row of up to
 * 4,096 values, or of 8,192 of 16 bits, stays in registers with its slice's column sums, so that memory is read once,
 * and the next row is on its way while the sums of this one are joined; a longer row is read again from the cache, and
 * its sums are kept in the partial results. */
#include "kernel/arguments.h"
#include "math/chunk.h"
#include "math/norm/norm_backward_kernels.h"

static constexpr uint32_t threads = NORM_BACKWARD_THREADS;
static constexpr uint32_t dtype_f16 = 1, dtype_bf16 = 2; /* as rdna_dtype has them */

/* The threads that share a row. */
struct wave_team {
  enum { SIZE = WAVE_SIZE, COUNT = NORM_BACKWARD_THREADS / WAVE_SIZE };
  RDNA_DEVICE uint32_t rank() { return lane_id(); }
  RDNA_DEVICE uint32_t index() { return wave_id(); }
  RDNA_DEVICE void sums(float *v, float *) {
#pragma unroll
    for (int i = 0; i < 3; i++) v[i] = wave_sum_f32(v[i]);
  }
  RDNA_DEVICE float sum(float v, float *) { return wave_sum_f32(v); }
};
struct group_team {
  enum { SIZE = NORM_BACKWARD_THREADS, COUNT = 1 };
  RDNA_DEVICE uint32_t rank() { return thread_id(); }
  RDNA_DEVICE uint32_t index() { return 0; }
  /* Three sums for the price of one's barriers. */
  RDNA_DEVICE void sums(float *v, float *scratch) {
    constexpr uint32_t waves = threads / WAVE_SIZE;
#pragma unroll
    for (int i = 0; i < 3; i++) v[i] = wave_sum_f32(v[i]);
    group_barrier();
    if (lane_id() == 0) {
#pragma unroll
      for (int i = 0; i < 3; i++) scratch[i * waves + wave_id()] = v[i];
    }
    group_barrier();
#pragma unroll
    for (int i = 0; i < 3; i++) {
      v[i] = scratch[i * waves];
#pragma unroll
      for (uint32_t w = 1; w < waves; w++) v[i] += scratch[i * waves + w];
    }
  }
  RDNA_DEVICE float sum(float v, float *scratch) { return group_sum_f32<threads>(v, scratch); }
};

struct row_statistics {
  float mean, inverse; /* of x: mean and 1 / deviation */
  float g, gy;         /* means of g and of g * y */
};

/* dx of one value. */
RDNA_DEVICE float slope(const row_statistics &s, float g, float y) { return s.inverse * (g - s.g - y * s.gy); }

template <typename type, typename weights, int count>
RDNA_DEVICE void weighted(const norm_backward_args &a, uint64_t i, const float *dout, float *g) {
  if (a.weight) {
    chunk<type, (count > 1)>::template load<weights>(a.weight, i, g);
#pragma unroll
    for (int k = 0; k < count; k++) g[k] *= dout[k];
  } else {
#pragma unroll
    for (int k = 0; k < count; k++) g[k] = dout[k];
  }
}

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
  RDNA_DEVICE uint4 load(const void *row, uint32_t j, uint32_t cols) {
    if constexpr (wide) {
      return load_as<uint4>((const char *)row + column(j, 0) * type::BYTES);
    } else {
      const typename type::stored *from = (const typename type::stored *)row;
      uint4 bits = {};
#pragma unroll
      for (uint32_t k = 0; k < SIZE; k++) {
        if (column(j, k) >= cols) continue;
        if constexpr (type::BYTES == 4) {
          bits[k] = bits_as<uint32_t>(from[column(j, k)]);
        } else {
          bits[k / 2] |= (uint32_t)from[column(j, k)] << 16 * (k % 2);
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
        if (column(j, k) < cols) to::store(row, column(j, k), v[k]);
      }
    }
  }
};

template <typename type, int vectors>
struct row_bits {
  uint4 x[vectors], dout[vectors];
};

template <typename type, typename place, int vectors>
RDNA_DEVICE void load_row(const norm_backward_args &a, int64_t row, row_bits<type, vectors> &bits) {
  const char *x = (const char *)a.x + row * a.x_stride * type::BYTES;
  const char *dout = (const char *)a.dout + row * a.dout_stride * type::BYTES;
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (place::column(j, 0) >= (uint32_t)a.cols) continue;
    bits.x[j] = place::load(x, j, (uint32_t)a.cols);
    bits.dout[j] = place::load(dout, j, (uint32_t)a.cols);
  }
}

/* Row |row|, which is in |bits|, adding to the columns' sums; then |bits| holds row |next|, if there is one. */
template <typename type, typename weights, typename team, int vectors, bool wide>
RDNA_DEVICE void held_row(const norm_backward_args &args, int64_t row, int64_t next, row_bits<type, vectors> &bits,
                          float (*dweight)[type::IN_16], float (*dbias)[type::IN_16], float *scratch) {
  typedef held<type, team, wide> place;
  constexpr uint32_t size = type::IN_16;
  const norm_backward_args &a = arguments_again(args);
  char *dx = (char *)a.dx + row * a.dx_stride * type::BYTES;
  uint32_t cols = (uint32_t)a.cols;
  float count = (float)cols;
  float mean = 0, y[vectors][size], g[vectors][size]; /* y: x less the mean */
  uint4 dout[vectors];
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    type::unpack(bits.x[j], y[j]);
    dout[j] = bits.dout[j];
  }
  if (next < a.rows) load_row<type, place, vectors>(a, next, bits);
  if (a.centred) {
    float sum = 0;
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
  cols = (uint32_t)arguments_again(args).cols; /* which columns there are is found again, not kept */
  float sums[3] = {0, 0, 0};                   /* of y^2, g y and g */
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (place::column(j, 0) >= cols) continue;
    type::unpack(dout[j], g[j]);
    if (a.weight) {
      float w[size];
      place::template load_as_floats<weights>(a.weight, j, cols, w);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) g[j][k] *= w[k];
    }
#pragma unroll
    for (uint32_t k = 0; k < size; k++) {
      if (place::lacks(j, k, cols)) continue;
      y[j][k] -= mean;
      sums[0] = fma_f32(y[j][k], y[j][k], sums[0]);
      sums[1] = fma_f32(g[j][k], y[j][k], sums[1]);
      sums[2] += g[j][k];
    }
  }
  team::sums(sums, scratch);
  float inverse = 1.0f / sqrt_f32(sums[0] / count + a.epsilon);
  cols = (uint32_t)arguments_again(args).cols;
  /* dx = inverse g + of_y y / deviation + level */
  float of_y = -(sums[1] * inverse / count) * inverse, level = a.centred ? -(sums[2] / count) * inverse : 0;
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (place::column(j, 0) >= cols) continue;
    float d[size];
    type::unpack(dout[j] = again(dout[j]), d);
#pragma unroll
    for (uint32_t k = 0; k < size; k++) {
      float normal = y[j][k] * inverse;
      dweight[j][k] = fma_f32(d[k], normal, dweight[j][k]);
      dbias[j][k] += d[k];
      d[k] = fma_f32(normal, of_y, fma_f32(g[j][k], inverse, level));
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
    if (row < a.rows) load_row<type, place, vectors>(a, row, bits);
    for (; row < a.rows; row += step) {
      held_row<type, weights, team, vectors, wide>(a, row, row + step, bits, dweight, dbias, scratch);
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
          place::template store<f32>(turn + 1 < team::COUNT ? columns : to, j, cols, sums[j]);
        }
      }
      if (team::COUNT > 1) group_barrier();
      to += a.slices * a.cols;
    }
  }
}

/* Each thread meets the same columns in every row, so the partial sums that it reads are its own. */
template <typename type, typename weights, bool wide>
RDNA_DEVICE void long_row(const norm_backward_args &a, int64_t row, float *dweight, float *dbias, bool first,
                          float *scratch) {
  typedef chunk<type, wide> part;
  constexpr int size = part::COUNT;
  const uint64_t begin = thread_id() * size, step = threads * size, cols = (uint64_t)a.cols;
  const char *from = (const char *)a.x + row * a.x_stride * type::BYTES;
  const char *dout = (const char *)a.dout + row * a.dout_stride * type::BYTES;
  char *dx = (char *)a.dx + row * a.dx_stride * type::BYTES;
  row_statistics s = {0, 0, 0, 0};
  float v[size], d[size], g[size], count = (float)cols;
  if (a.centred) {
    float sum = 0;
    for (uint64_t i = begin; i < cols; i += step) {
      part::template load<type>(from, i, v);
#pragma unroll
      for (int k = 0; k < size; k++) sum += v[k];
    }
    s.mean = group_sum_f32<threads>(sum, scratch) / count;
  }
  float squares = 0, sum_g = 0, sum_gy = 0;
  for (uint64_t i = begin; i < cols; i += step) {
    part::template load<type>(from, i, v);
    part::template load<type>(dout, i, d);
    weighted<type, weights, size>(a, i, d, g);
#pragma unroll
    for (int k = 0; k < size; k++) {
      float y = v[k] - s.mean;
      squares = fma_f32(y, y, squares);
      sum_gy = fma_f32(g[k], y, sum_gy);
      sum_g += g[k];
    }
  }
  s.inverse = 1.0f / sqrt_f32(group_sum_f32<threads>(squares, scratch) / count + a.epsilon);
  s.gy = group_sum_f32<threads>(sum_gy, scratch) * s.inverse / count;
  if (a.centred) s.g = group_sum_f32<threads>(sum_g, scratch) / count;
  for (uint64_t i = begin; i < cols; i += step) {
    part::template load<type>(from, i, v);
    part::template load<type>(dout, i, d);
    weighted<type, weights, size>(a, i, d, g);
#pragma unroll
    for (int k = 0; k < size; k++) {
      float y = (v[k] - s.mean) * s.inverse;
      dweight[i + k] = fma_f32(d[k], y, first ? 0 : dweight[i + k]);
      dbias[i + k] = first ? d[k] : dbias[i + k] + d[k];
      g[k] = slope(s, g[k], y);
    }
    part::store(dx, i, g);
  }
}

template <typename type, typename weights, bool wide>
RDNA_DEVICE void long_slices(const norm_backward_args &a, float *scratch) {
  for (int64_t slice = group_id_x(); slice < a.slices; slice += group_count_x()) {
    float *dweight = a.partial + slice * a.cols, *dbias = dweight + a.slices * a.cols;
    for (int64_t row = slice; row < a.rows; row += a.slices) {
      long_row<type, weights, wide>(a, row, dweight, dbias, row == slice, scratch);
    }
    if (slice >= a.rows) {
      for (uint64_t i = thread_id(); i < (uint64_t)a.cols; i += threads) dweight[i] = dbias[i] = 0;
    }
  }
}

/* Whether all accesses to rows and to what belongs to their columns may be of 16 bytes. */
template <typename type>
RDNA_DEVICE bool is_wide(const norm_backward_args &a) {
  return all_16(address_of(a.x) | address_of(a.dout) | address_of(a.weight) | address_of(a.dx) | address_of(a.partial) |
                (uint64_t)(a.cols | a.x_stride | a.dout_stride | a.dx_stride) * type::BYTES);
}

template <typename type, typename weights>
RDNA_DEVICE void norm_backward(const norm_backward_args &a, float *scratch, float *columns) {
  constexpr int of_group = NORM_BACKWARD_HELD_COLS / threads / type::IN_16;
  constexpr int of_wave = NORM_BACKWARD_WAVE_COLS / WAVE_SIZE / type::IN_16;
  bool wide = is_wide<type>(a);
  if (a.cols > NORM_BACKWARD_WAVE_COLS) {
    if (wide) {
      held_slices<type, weights, group_team, of_group, true>(a, scratch, columns);
    } else {
      held_slices<type, weights, group_team, of_group, false>(a, scratch, columns);
    }
  } else if (wide) {
    held_slices<type, weights, wave_team, of_wave, true>(a, scratch, columns);
  } else {
    held_slices<type, weights, wave_team, of_wave, false>(a, scratch, columns);
  }
}

/* Twice as long a row of 16-bit values takes all registers of a thread, and a kernel of its own. */
template <typename type, typename weights>
RDNA_DEVICE void norm_backward_long(const norm_backward_args &a, float *scratch) {
  bool wide = is_wide<type>(a);
  if constexpr (type::BYTES == 2) {
    constexpr int vectors = NORM_BACKWARD_LONG_COLS / threads / type::IN_16;
    if (wide && a.cols <= NORM_BACKWARD_LONG_COLS) {
      return held_slices<type, weights, group_team, vectors, true>(a, scratch, NULL);
    }
  }
  if (wide) {
    long_slices<type, weights, true>(a, scratch);
  } else {
    long_slices<type, weights, false>(a, scratch);
  }
}

#define NORM_BACKWARD(suffix, type, weights)                                                    \
  RDNA_KERNEL_RESIDENT(NORM_BACKWARD_THREADS, type::BYTES == 2 ? 2 : 1)                         \
  norm_backward_##suffix(struct norm_backward_args a) {                                         \
    RDNA_SHARED static float scratch[3 * GROUP_SCRATCH(threads)];                               \
    RDNA_SHARED static __attribute__((aligned(16))) float columns[NORM_BACKWARD_WAVE_COLS];     \
    norm_backward<type, weights>(a, scratch, columns);                                          \
  }                                                                                             \
  RDNA_KERNEL(NORM_BACKWARD_THREADS) norm_backward_long_##suffix(struct norm_backward_args a) { \
    RDNA_SHARED static float scratch[3 * GROUP_SCRATCH(threads)];                               \
    norm_backward_long<type, weights>(a, scratch);                                              \
  }
RDNA__NORM_BACKWARD_TYPES(NORM_BACKWARD)

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
  if (dtype == dtype_f16) {
    f16::store(out, (uint64_t)col, sum);
  } else if (dtype == dtype_bf16) {
    bf16::store(out, (uint64_t)col, sum);
  } else {
    f32::store(out, (uint64_t)col, sum);
  }
}
