/* Norms of rows that are long and few, in two kernels: long_norm_part sums up parts of rows, long_norm_finish joins a
 * row's parts and writes. x is read twice, the second time backwards and partly from the cache: 6 bytes of memory a
 * 16-bit value, 2/3 of the speed of a copy. A group takes the same columns of several rows, so that it reads their
 * weights once:
 *
 *              part 0     part 1      the parts in the order in which they are taken; each group takes a
 *     row 0  |    0     |    3     |  stretch of it. A part is read in steps of LONG_NORM_STEP_BYTES.
 *     row 1  |    1     |    4     |
 *     row 2  |    2     |    5     | */
#include "kernel/arguments.h"
#include "math/norm/factors.h"
#include "math/norm/long_norm_kernels.h"
#include "math/norm/span.h"

static constexpr uint32_t threads = LONG_NORM_THREADS;

template <typename type>
RDNA_DEVICE char *place(const void *p, int64_t row, int64_t stride, int64_t col) {
  return (char *)p + (row * stride + col) * type::BYTES;
}
RDNA_DEVICE uint32_t least(int64_t a, int64_t b) { return (uint32_t)(a < b ? a : b); }

template <typename type>
RDNA_DEVICE void long_norm_part(const long_norm_part_args &args, float *scratch) {
  constexpr uint32_t count = LONG_NORM_STEP_BYTES / 16 / threads;
  typedef held<type, count> part_of;
  const int64_t items = args.rows * args.parts, end = items * (group_id_x() + 1) / group_count_x();
  int64_t item = items * group_id_x() / group_count_x();
  if (item >= end || args.cols == 0) return;
  int64_t part = item / args.rows, row = item - part * args.rows, col = part * args.part_cols;
  part_of next;
  span next_span;
  auto load = [&] {
    const long_norm_part_args &a = arguments_again_wide(args);
    const char *x = place<type>(a.x, row, a.x_stride, col);
    const char *first = a.residual ? place<type>(a.residual, row, a.residual_stride, col) : x;
    const int64_t left = (part + 1) * a.part_cols < a.cols ? (part + 1) * a.part_cols - col : a.cols - col;
    next_span = span_of<type>(first, least(left, part_of::COLS));
    part_of::load(next, x, next_span, all_16(address_of(x) ^ address_of(first)));
  };
  moments<float> all;
  for (load(); item < end;) {
    const long_norm_part_args &a = arguments_again_wide(args);
    part_of now = next;
    const span s = next_span;
    const int64_t place_of_sums = row * a.parts + part;
    char *residual = place<type>(a.residual, row, a.residual_stride, col);
    bool last = false;
    col += part_of::COLS;
    if (col >= (part + 1) * a.part_cols || col >= a.cols) { /* the part's last step */
      last = true;
      item++;
      if (++row == a.rows) row = 0, part++;
      col = part * a.part_cols;
    }
    if (item < end) load();
    if (a.residual) add_residual(now, residual, s);
    moments<float> here = moments_of(now, s, a.centred, scratch);
    if (a.centred) {
      moments<float>::join(all, here);
    } else {
      all.squares += here.squares;
    }
    if (!last) continue;
    if (thread_id() == 0) a.mean[place_of_sums] = all.mean, a.squares[place_of_sums] = all.squares;
    all = {};
  }
}

/* A row's mean and 1 / deviation. A wave joins them from the row's parts, each time in the same order. */
struct statistics {
  float mean, scale;
};
static constexpr uint32_t known_rows = 64;
RDNA_DEVICE statistics statistics_of(const long_norm_finish_args &a, int64_t row) {
  const float *means = a.mean + row * a.parts, *sums = a.squares + row * a.parts;
  const uint32_t parts = (uint32_t)a.parts;
  const float cols = (float)a.cols, part = (float)a.part_cols, rest = (float)(a.cols - (a.parts - 1) * a.part_cols);
  float mean = 0, squares = 0;
#pragma unroll 4
  for (uint32_t p = lane_id(); p < parts; p += WAVE_SIZE) {
    mean = fma_f32(means[p], (p + 1 < parts ? part : rest) / cols, mean);
  }
  mean = wave_sum_f32(mean);
#pragma unroll 4
  for (uint32_t p = lane_id(); p < parts; p += WAVE_SIZE) {
    const float apart = means[p] - mean;
    squares += fma_f32(apart * apart, p + 1 < parts ? part : rest, sums[p]);
  }
  return {mean, 1.0f / sqrt_f32(wave_sum_f32(squares) / cols + a.epsilon)};
}

template <typename weights, uint32_t count>
RDNA_DEVICE void load_each(const void *p, int64_t col, float *v) {
#pragma unroll
  for (uint32_t k = 0; k < count; k++) v[k] = weights::load(p, (uint64_t)col + k);
}

/* Writes rows in steps of two vectors a thread, the next step in flight; the last step comes first. |known| is group
 * memory for the statistics of the group's next |known_rows| steps. |wide|: rows, weights and biases are aligned. */
template <typename type, typename weights, bool wide>
RDNA_DEVICE void long_norm_finish(const long_norm_finish_args &args, statistics *known) {
  constexpr uint32_t count = 2, size = type::IN_16;
  typedef held<type, count> step_of;
  typedef factors<type, weights, true> factors_of;
  const int64_t items = args.rows * ((args.cols + step_of::COLS - 1) / step_of::COLS);
  const int64_t begin = items * group_id_x() / group_count_x();
  int64_t item = items * (group_id_x() + 1) / group_count_x() - 1;
  if (item < begin) return;
  int64_t step = item / args.rows, row = item - step * args.rows, factors_at = -1;
  step_of next;
  span next_span;
  factors_of weight[count], bias[count];
  auto load = [&] {
    const long_norm_finish_args &a = arguments_again_wide(args);
    const char *x = place<type>(a.x, row, a.x_stride, step * step_of::COLS);
    const uint32_t cols = least(a.cols - step * step_of::COLS, step_of::COLS);
    if (wide) {
      next_span = {0, cols / size, cols, cols};
    } else {
      next_span = span_of<type>(x, cols);
    }
    step_of::load(next, x, next_span, true);
  };
  uint32_t at = known_rows;
  for (load(); item >= begin; item--) {
    const long_norm_finish_args &a = arguments_again_wide(args);
    if (at == known_rows) { /* of this item and the next ones */
      at = 0;
      group_barrier();
      for (uint32_t i = wave_id(); i < known_rows && item - i >= begin; i += threads / WAVE_SIZE) {
        const int64_t r = row - i % a.rows;
        const statistics of = statistics_of(a, r < 0 ? r + a.rows : r);
        if (lane_id() == 0) known[i] = of;
      }
      group_barrier();
    }
    const statistics of = known[at++];
    step_of now = next;
    const span s = next_span;
    const int64_t this_row = row, first = step * step_of::COLS, body = first + s.head;
    if (step == 0 && thread_id() == 0) {
      if (a.row_mean) a.row_mean[row] = of.mean;
      if (a.inverse) a.inverse[row] = of.scale;
    }
    char *out = place<type>(a.out, this_row, a.out_stride, first);
    if (wide && factors_at != step) {
      factors_at = step;
#pragma unroll
      for (uint32_t j = 0; j < count; j++) {
        const uint32_t i = j * threads + thread_id();
        if (i >= s.vectors) continue;
        if (a.weight) factors_of::load(weight[j], a.weight, (uint64_t)(body + i * size));
        if (a.bias) factors_of::load(bias[j], a.bias, (uint64_t)(body + i * size));
      }
    }
    if (row-- == 0) row = a.rows - 1, step--;
    if (item > begin) load();
    const bool alike = wide || all_16(address_of(out) + s.head * type::BYTES);
#pragma unroll
    for (uint32_t j = 0; j < count; j++) {
      const uint32_t i = j * threads + thread_id();
      if (i >= s.vectors) continue;
      float v[size], w[size];
      type::unpack(now.vector[j], v);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) v[k] = (v[k] - of.mean) * of.scale;
      if (a.weight) {
        if constexpr (wide) {
          factors_of::unpack(weight[j], w);
        } else {
          load_each<weights, size>(a.weight, body + i * size, w);
        }
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[k] *= w[k];
      }
      if (a.bias) {
        if constexpr (wide) {
          factors_of::unpack(bias[j], w);
        } else {
          load_each<weights, size>(a.bias, body + i * size, w);
        }
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[k] += w[k];
      }
      char *to = out + s.head * type::BYTES + i * 16;
      if (alike) {
        type::store_16(to, v);
      } else {
#pragma unroll
        for (uint32_t k = 0; k < size; k++) ((typename type::stored *)to)[k] = stored_of<type>(v[k]);
      }
    }
    if (wide || s.single >= s.cols) continue;
    float v = (type::load(&now.single, 0) - of.mean) * of.scale;
    if (a.weight) v *= weights::load(a.weight, (uint64_t)(first + s.single));
    if (a.bias) v += weights::load(a.bias, (uint64_t)(first + s.single));
    ((typename type::stored *)out)[s.single] = stored_of<type>(v);
  }
}

#define PART(type)                                                                                 \
  RDNA_KERNEL_RESIDENT(LONG_NORM_THREADS, 3) long_norm_part_##type(struct long_norm_part_args a) { \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                      \
    long_norm_part<type>(a, scratch);                                                              \
  }
PART(f32)
PART(f16)
PART(bf16)

#define FINISH(suffix, type, weights)                                                                    \
  RDNA_KERNEL_RESIDENT(LONG_NORM_THREADS, 3) long_norm_finish_##suffix(struct long_norm_finish_args a) { \
    RDNA_SHARED static statistics known[known_rows];                                                     \
    if (all_16(address_of(a.x) | address_of(a.weight) | address_of(a.bias) | address_of(a.out) |         \
               (uint64_t)(a.cols | a.x_stride | a.out_stride) * type::BYTES)) {                          \
      long_norm_finish<type, weights, true>(a, known);                                                   \
    } else {                                                                                             \
      long_norm_finish<type, weights, false>(a, known);                                                  \
    }                                                                                                    \
  }
RDNA__NORM_TYPES(FINISH)
