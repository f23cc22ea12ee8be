/* Norms of rows; norm_kernels.h says which rows are a wave's and which a group's. A wave needs no barrier, and has all
 * of its row in flight at once. Rows of up to NORM_KEPT_COLS values stay in registers, so that memory is read once, 4
 * bytes a 16-bit value in all; longer ones are read again, from the cache if it has them. shifted_norm.hip and
 * long_norm.hip have the rows that are not taken here. */
#include "kernel/prelude.h"
#include "math/common/device/chunk.h"
#include "math/common/device/teams.h"
#include "math/norm/factors.h"
#include "math/norm/norm_kernels.h"

static constexpr uint32_t threads = 256;
static constexpr uint32_t kept_values = NORM_KEPT_COLS / threads; /* a thread */

struct norm_row {
  const void *x;      /* (cols) */
  void *residual;     /* (cols), where x is added to it first */
  const void *weight; /* (cols) or NULL */
  const void *bias;   /* (cols) or NULL */
  void *out;          /* (cols) */
  uint64_t cols;
  float epsilon;
  float *scratch;        /* for group sums */
  float *mean, *inverse; /* where the row's go, or NULL */
};

/* Reads 16 bytes of x; if |adds|, adds the residual, stores the sum there, and returns it rounded as it was stored. */
template <typename type, bool adds>
RDNA_DEVICE void take(const norm_row &row, uint64_t i, float *v) {
  typedef chunk<type, true> part;
  part::template load<type>(row.x, i, v);
  if constexpr (adds) {
    float r[part::COUNT];
    part::template load<type>(row.residual, i, r);
#pragma unroll
    for (int k = 0; k < part::COUNT; k++) v[k] = type::rounded(r[k] + v[k]);
    part::store(row.residual, i, v);
  }
}

/* Writes 16 bytes of out. */
template <typename type, typename weights>
RDNA_DEVICE void give(const norm_row &row, uint64_t i, const float *v, float mean, float scale) {
  typedef chunk<type, true> part;
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

/* Both of a piece, where the row has them. */
template <typename type, typename weights, bool wide>
struct line {
  factors<type, weights, wide> weight, bias;
  RDNA_DEVICE void load(line &l, const norm_row &row, uint64_t i) {
    if (row.weight) factors<type, weights, wide>::load(l.weight, row.weight, i);
    if (row.bias) factors<type, weights, wide>::load(l.bias, row.bias, i);
  }
  RDNA_DEVICE void apply(const line &l, const norm_row &row, float *v, float mean, float scale) {
    constexpr int count = factors<type, weights, wide>::COUNT;
    float w[count];
#pragma unroll
    for (int k = 0; k < count; k++) v[k] = (v[k] - mean) * scale;
    if (row.weight) {
      factors<type, weights, wide>::unpack(l.weight, w);
#pragma unroll
      for (int k = 0; k < count; k++) v[k] *= w[k];
    }
    if (row.bias) {
      factors<type, weights, wide>::unpack(l.bias, w);
#pragma unroll
      for (int k = 0; k < count; k++) v[k] += w[k];
    }
  }
};

RDNA_DEVICE float inverse_deviation(const norm_row &row, float sum) {
  return 1.0f / sqrt_f32(sum / (float)row.cols + row.epsilon);
}

/* Of a centred row, by one of its threads. */
RDNA_DEVICE void give_statistics(const norm_row &row, float mean, float scale) {
  if (row.mean) *row.mean = mean;
  if (row.inverse) *row.inverse = scale;
}

/* A row in the registers of a team: |pieces| a thread, each of 16 bytes if |wide|, else of one value. Piece j of thread
 * t is number j * team::SIZE + t of the row's. */
template <typename type, typename weights, bool adds, bool centred, bool wide, int pieces, typename team>
RDNA_DEVICE void norm_kept(const norm_row &row) {
  typedef piece<type, wide> part;
  constexpr uint32_t size = part::COUNT;
  const uint32_t first = team::rank() * size;
  uint32_t cols = (uint32_t)row.cols; /* see again_uniform */
  /* Weights are loaded for |batch| pieces at a time, all before the batch's stores: a store may alias them, so that
   * later loads wait for it. The first batch is loaded before the sums where registers allow. */
  constexpr bool batched = !wide || pieces < 16;
  constexpr uint32_t batch = !wide ? 4 : weights::BYTES == 4 ? 1 : 2;
  constexpr bool ahead = batched && pieces < 16;
  line<type, weights, wide> lines[batch];
  part kept[pieces];
  float v[size], sum = 0, mean = 0;
#pragma unroll
  for (uint32_t j = 0; j < pieces; j++) {
    uint32_t i = j * team::SIZE * size + first;
    if (i < cols) kept[j] = part::load(row.x, i);
  }
  if constexpr (ahead) {
#pragma unroll
    for (uint32_t j = 0; j < batch; j++) {
      uint32_t i = j * team::SIZE * size + first;
      if (i < cols) line<type, weights, wide>::load(lines[j], row, i);
    }
  }
  if constexpr (adds) {
    cols = again_uniform(cols);
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
  cols = again_uniform(cols);
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
    cols = again_uniform(cols);
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
  if (centred && team::rank() == 0) give_statistics(row, mean, scale);
  cols = again_uniform(cols);
  if constexpr (!batched) {
#pragma unroll
    for (uint32_t j = 0; j < pieces; j++) {
      uint32_t i = j * team::SIZE * size + first;
      if (i >= cols) continue;
      part::unpack(kept[j], v);
      give<type, weights>(row, i, v, mean, scale);
    }
    return;
  }
#pragma unroll
  for (uint32_t b = 0; b < pieces; b += batch) {
    cols = again_uniform(cols);
    if (!ahead || b > 0) {
#pragma unroll
      for (uint32_t j = 0; j < batch; j++) {
        uint32_t i = (b + j) * team::SIZE * size + first;
        if (i < cols) line<type, weights, wide>::load(lines[j], row, i);
      }
    }
    cols = again_uniform(cols);
#pragma unroll
    for (uint32_t j = 0; j < batch; j++) {
      uint32_t i = (b + j) * team::SIZE * size + first;
      if (i >= cols) continue;
      part::unpack(kept[b + j], v);
      line<type, weights, wide>::apply(lines[j], row, v, mean, scale);
      chunk<type, wide>::store(row.out, i, v);
    }
  }
}

/* A row of any length, read again in each pass. A thread has the same values in every pass, so that it reads the
 * residual that it wrote itself. */
template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void norm_long(const norm_row &row) {
  typedef chunk<type, true> part;
  const uint64_t first = thread_id() * part::COUNT, step = threads * part::COUNT;
  const void *again = adds ? row.residual : row.x;
  float sum = 0, mean = 0;
  for (uint64_t i = first; i < row.cols; i += step) {
    float v[part::COUNT];
    take<type, adds>(row, i, v);
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
  if (centred && thread_id() == 0) give_statistics(row, mean, scale);
  for (uint64_t i = first; i < row.cols; i += step) {
    float v[part::COUNT];
    part::template load<type>(again, i, v);
    give<type, weights>(row, i, v, mean, scale);
  }
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
  if (row.mean) row.mean += r;
  if (row.inverse) row.inverse += r;
  return row;
}

template <typename type, typename weights, bool adds, bool centred, bool wide, int pieces>
RDNA_DEVICE void wave_rows(const norm_rows &all) {
  constexpr int64_t waves = threads / WAVE_SIZE;
  for (int64_t r = group_id_x() * waves + wave_id(); r < all.rows; r += group_count_x() * waves) {
    norm_kept<type, weights, adds, centred, wide, pieces, wave_team<threads>>(at_row<type>(all, r));
  }
}

/* Rows of which each has |lanes| of a wave, a power of two, and up to |vectors| times 16 bytes a lane. The next rows
 * are in flight; weights lie in group memory.
 *
 *     lanes 4, vectors 2:   row 0  | lane 0 | 1 | 2 | 3 | 0 | 1 | 2 | 3 |
 *                           row 1  | lane 4 | 5 | 6 | 7 | 4 | 5 | 6 | 7 | */
template <typename type, typename weights, bool adds, bool centred, uint32_t vectors>
RDNA_DEVICE void short_rows(const norm_rows &all, uint32_t lanes, typename weights::stored *weight,
                            typename weights::stored *bias) {
  constexpr uint32_t size = type::IN_16;
  const uint32_t teams = threads / lanes, rank = lane_id() & (lanes - 1);
  const int64_t step = (int64_t)group_count_x() * teams;
  uint32_t cols = (uint32_t)all.first.cols;
  auto column = [&](uint32_t j) { return (j * lanes + rank) * size; };
  auto sum_up = [&](float v) {
#pragma unroll
    for (uint32_t mask = 1; mask < WAVE_SIZE; mask *= 2) {
      if (mask < lanes) v += wave_shuffle_xor_f32(v, mask);
    }
    return v;
  };
  for (uint32_t i = thread_id(); i < cols; i += threads) {
    if (all.first.weight) weight[i] = ((const typename weights::stored *)all.first.weight)[i];
    if (all.first.bias) bias[i] = ((const typename weights::stored *)all.first.bias)[i];
  }
  group_barrier();
  uint4 x[vectors], residual[vectors];
  auto load = [&](int64_t number) {
    norm_row row = at_row<type>(all, number);
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      x[j] = uint4{}; /* what is absent is 0 */
      if (adds) residual[j] = uint4{};
      if (number >= all.rows || column(j) >= cols) continue;
      x[j] = load_as<uint4>((const char *)row.x + column(j) * type::BYTES);
      if (adds) residual[j] = load_as<uint4>((const char *)row.residual + column(j) * type::BYTES);
    }
  };
  int64_t number = (int64_t)group_id_x() * teams + thread_id() / lanes;
  load(number);
  for (int64_t begin = (int64_t)group_id_x() * teams; begin < all.rows; begin += step, number += step) {
    const bool there = number < all.rows;
    norm_row row = at_row<type>(all, number);
    uint4 kept[vectors];
    float v[size], sum = 0, mean = 0;
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      kept[j] = x[j];
      if constexpr (adds) {
        float more[size];
        type::unpack(x[j], v);
        type::unpack(residual[j], more);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[k] += more[k];
        kept[j] = type::pack(v);
        if (there && column(j) < cols) store_as<uint4>((char *)row.residual + column(j) * type::BYTES, kept[j]);
      }
    }
    load(number + step);
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      type::unpack(kept[j], v);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) sum = centred ? sum + v[k] : fma_f32(v[k], v[k], sum);
    }
    sum = sum_up(sum);
    cols = again_uniform(cols);
    if constexpr (centred) {
      mean = sum / (float)cols;
      sum = 0;
#pragma unroll
      for (uint32_t j = 0; j < vectors; j++) {
        if (column(j) >= cols) continue;
        type::unpack(kept[j] = again(kept[j]), v);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) sum = fma_f32(v[k] - mean, v[k] - mean, sum);
      }
      sum = sum_up(sum);
      cols = again_uniform(cols);
    }
    float scale = inverse_deviation(row, sum);
    if (centred && there && rank == 0) give_statistics(row, mean, scale);
#pragma unroll
    for (uint32_t j = 0; j < vectors; j++) {
      if (!there || column(j) >= cols) continue;
      float factor[size];
      type::unpack(kept[j] = again(kept[j]), v);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) v[k] = (v[k] - mean) * scale;
      if (row.weight) {
        chunk<type, true>::template load<weights>(weight, column(j), factor);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[k] *= factor[k];
      }
      if (row.bias) {
        chunk<type, true>::template load<weights>(bias, column(j), factor);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[k] += factor[k];
      }
      type::store_16((char *)row.out + column(j) * type::BYTES, v);
    }
  }
}
template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void short_rows(const norm_rows &all, uint4 *factors) {
  constexpr uint32_t most = NORM_LANES_BYTES / type::BYTES;
  typename weights::stored *weight = (typename weights::stored *)factors, *bias = weight + most;
  const uint32_t vectors = (uint32_t)all.first.cols / type::IN_16;
  uint32_t lanes = 1;
  while (vectors > 3 * lanes) lanes *= 2;
  if (vectors <= 2 * lanes) return short_rows<type, weights, adds, centred, 2>(all, lanes, weight, bias);
  short_rows<type, weights, adds, centred, 3>(all, lanes, weight, bias);
}

/* Rows of up to NORM_AHEAD_BYTES, a group's each: the next row is in flight while this one is summed, and weights stay
 * in registers. */
template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void rows_ahead(const norm_rows &all) {
  typedef line<type, weights, true> factors_line;
  constexpr uint32_t size = type::IN_16, pieces = NORM_AHEAD_BYTES / 16 / threads;
  const uint32_t first = thread_id() * size;
  uint32_t cols = (uint32_t)all.first.cols;
  factors_line lines[pieces];
  uint4 x[pieces], residual[pieces];
  auto column = [&](uint32_t j) { return j * threads * size + first; };
  auto load = [&](int64_t r) {
    norm_row row = at_row<type>(all, r);
#pragma unroll
    for (uint32_t j = 0; j < pieces; j++) {
      if (column(j) >= cols) continue;
      x[j] = load_as<uint4>((const char *)row.x + column(j) * type::BYTES);
      if (adds) residual[j] = load_as<uint4>((const char *)row.residual + column(j) * type::BYTES);
    }
  };
  int64_t r = group_id_x();
  if (r < all.rows) load(r);
#pragma unroll
  for (uint32_t j = 0; j < pieces; j++) {
    if (column(j) < cols) factors_line::load(lines[j], all.first, column(j));
  }
  for (; r < all.rows; r += group_count_x()) {
    norm_row row = at_row<type>(all, r);
    uint4 kept[pieces];
    float v[size], sum = 0, mean = 0;
#pragma unroll
    for (uint32_t j = 0; j < pieces; j++) {
      kept[j] = x[j];
      if constexpr (adds) {
        if (column(j) >= cols) continue;
        float more[size];
        type::unpack(x[j], v);
        type::unpack(residual[j], more);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[k] += more[k];
        kept[j] = type::pack(v);
        store_as<uint4>((char *)row.residual + column(j) * type::BYTES, kept[j]);
      }
    }
    if (r + group_count_x() < all.rows) load(r + group_count_x());
#pragma unroll
    for (uint32_t j = 0; j < pieces; j++) {
      if (column(j) >= cols) continue;
      type::unpack(kept[j], v);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) sum = centred ? sum + v[k] : fma_f32(v[k], v[k], sum);
    }
    sum = group_sum_f32<threads>(sum, row.scratch);
    cols = again_uniform(cols);
    if constexpr (centred) {
      mean = sum / (float)cols;
      sum = 0;
#pragma unroll
      for (uint32_t j = 0; j < pieces; j++) {
        if (column(j) >= cols) continue;
        type::unpack(kept[j] = again(kept[j]), v);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) sum = fma_f32(v[k] - mean, v[k] - mean, sum);
      }
      sum = group_sum_f32<threads>(sum, row.scratch);
      cols = again_uniform(cols);
    }
    float scale = inverse_deviation(row, sum);
    if (centred && thread_id() == 0) give_statistics(row, mean, scale);
#pragma unroll
    for (uint32_t j = 0; j < pieces; j++) {
      if (column(j) >= cols) continue;
      type::unpack(kept[j] = again(kept[j]), v);
      factors_line::apply(lines[j], row, v, mean, scale);
      type::store_16((char *)row.out + column(j) * type::BYTES, v);
    }
  }
}

template <typename type, typename weights, bool adds, bool centred, int pieces>
RDNA_DEVICE void group_rows(const norm_rows &all) {
  for (int64_t r = group_id_x(); r < all.rows; r += group_count_x()) {
    norm_kept<type, weights, adds, centred, true, pieces, group_team<threads>>(at_row<type>(all, r));
  }
}

template <typename type>
RDNA_DEVICE bool is_wide(const norm_rows &all) {
  const norm_row &first = all.first;
  uint64_t strides = (uint64_t)all.x_stride | (uint64_t)all.residual_stride | (uint64_t)all.out_stride;
  return all_16(address_of(first.x) | address_of(first.residual) | address_of(first.weight) | address_of(first.bias) |
                address_of(first.out) | (first.cols | strides) * type::BYTES);
}

template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void norm(const norm_rows &all, uint4 *factors) {
  constexpr int few = 4, single = NORM_WAVE_COLS / WAVE_SIZE;
  const uint64_t cols = all.first.cols;
  if (!is_wide<type>(all)) return wave_rows<type, weights, adds, centred, false, single>(all);
  if (cols * type::BYTES <= NORM_LANES_BYTES) return short_rows<type, weights, adds, centred>(all, factors);
  if (cols <= few * WAVE_SIZE * type::IN_16) return wave_rows<type, weights, adds, centred, true, few>(all);
  if (cols * type::BYTES <= NORM_AHEAD_BYTES) return rows_ahead<type, weights, adds, centred>(all);
  if (cols <= NORM_KEPT_COLS) return group_rows<type, weights, adds, centred, kept_values / type::IN_16>(all);
  for (int64_t r = group_id_x(); r < all.rows; r += group_count_x()) {
    norm_long<type, weights, adds, centred>(at_row<type>(all, r));
  }
}

/* A kernel of its own, since these rows take so many registers that few groups run at once. */
template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void norm_waves(const norm_rows &all) {
  wave_rows<type, weights, adds, centred, true, NORM_WAVE_BYTES / 16 / WAVE_SIZE>(all);
}

#define NORM(name, adds, centred, suffix, type, weights, args, residual, bias, residual_stride, mean, inverse)    \
  RDNA_KERNEL_RESIDENT(256, type::BYTES == 4 || centred || adds ? 3 : 4) name##_##suffix(struct args a) {         \
    RDNA_SHARED float scratch[GROUP_SCRATCH(threads)];                                                            \
    RDNA_SHARED uint4 factors[2 * NORM_LANES_BYTES / type::BYTES * weights::BYTES / 16];                          \
    norm_row first = {a.x, residual, a.weight, bias, a.out, (uint64_t)a.cols, a.epsilon, scratch, mean, inverse}; \
    norm<type, weights, adds, centred>({first, a.rows, a.x_stride, residual_stride, a.out_stride}, factors);      \
  }                                                                                                               \
  RDNA_KERNEL_RESIDENT(256, 2) name##_waves_##suffix(struct args a) {                                             \
    norm_row first = {a.x, residual, a.weight, bias, a.out, (uint64_t)a.cols, a.epsilon, NULL, mean, inverse};    \
    norm_waves<type, weights, adds, centred>({first, a.rows, a.x_stride, residual_stride, a.out_stride});         \
  }
#define NORMS(suffix, type, weights)                                                                                   \
  NORM(rms_norm, false, false, suffix, type, weights, rms_norm_args, NULL, NULL, 0, NULL, NULL)                        \
  NORM(add_rms_norm, true, false, suffix, type, weights, add_rms_norm_args, a.residual, NULL, a.residual_stride, NULL, \
       NULL)                                                                                                           \
  NORM(layer_norm, false, true, suffix, type, weights, layer_norm_args, NULL, a.bias, 0, a.mean, a.inverse)
RDNA__NORM_TYPES(NORMS)
