/* Gradients of layer_norm and rms_norm: the kernels. There are five kinds, each in a header of its own:
 *
 *     norm_backward_held.h     rows of up to 4,096 values (long: 8,192 of 16 bits) in registers, read once
 *     norm_backward_short.h    of those, aligned rows of up to 512 values, several to a wave
 *     norm_backward_edged.h    unaligned rows, all at the same distance from 16 bytes
 *     norm_backward_shifted.h  unaligned rows of 16-bit values, each at its own distance
 *     norm_backward_parts.h    any other rows: parts, joined, then columns; read twice
 *
 * The first four move 6 bytes of memory a 16-bit value, the last 10, at 3/5 of a copy's speed at most. The columns'
 * sums of all but the last kind, and of the last if it has slices, are added up by column_sum. */
#include "math/norm/norm_backward_edged.h"
#include "math/norm/norm_backward_parts.h"
#include "math/norm/norm_backward_shifted.h"
#include "math/norm/norm_backward_short.h"

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
