/* Device code: cross-entropy of short rows, which are several to a wave. */
#ifndef RDNA_MATH_LOSS_LOSS_SHORT_H
#define RDNA_MATH_LOSS_LOSS_SHORT_H

#include "math/common/device/partial.h"
#include "math/loss/loss_rows.h"

/* |lanes| neighbours have |at_once| rows, all in flight together. A row is read as the aligned vectors that it lies in,
 * |vectors| a lane at most, so that its first and last vector hold values of its neighbours too, which are left out:
 *
 *     rows of 6 values    | 0 0 0 0 | 0 0 1 1 | 1 1 1 1 | 2 2 2 2 | ...
 *                                   [    row 1 is read as   ]
 *
 * What a row has one of (its target, its loss) is found by one lane for each row, the first |at_once| of them. */
template <typename type, uint32_t lanes>
struct short_rows {
  enum { WIDTH = type::IN_16, TEAMS = threads / lanes };
  RDNA_DEVICE uint32_t rank() { return thread_id() % lanes; }
  /* The column of the first value of this lane's vector |k| of the row at |x|. */
  RDNA_DEVICE int32_t column(const char *x, int k) {
    return (int32_t)((rank() + (uint32_t)k * lanes) * WIDTH) - (int32_t)(address_of(x) & 15) / (int32_t)type::BYTES;
  }
  RDNA_DEVICE bool has(int32_t at, int j, int32_t cols) { return (uint32_t)(at + j) < (uint32_t)cols; }
  /* The same column, so that comparisons with it are made again rather than kept. */
  RDNA_DEVICE int32_t anew(int32_t at) { return bits_as<int32_t>(again(bits_as<float>(at))); }
  /* Values from column |at| on, -inf beyond the row. */
  RDNA_DEVICE void values(uint4 bits, int32_t at, int32_t cols, float *v) {
    type::unpack(bits, v);
#pragma unroll
    for (int j = 0; j < WIDTH; j++) v[j] = has(at, j, cols) ? v[j] : -infinity_f32();
  }
  /* Loads the vector whose first value is column |at|. What lies before the first row or after the last is not read. */
  template <typename args>
  RDNA_DEVICE uint4 load(const args &a, int64_t row, const char *x, int32_t at) {
    const int32_t cols = (int32_t)a.cols;
    if (at >= cols) return uint4{0, 0, 0, 0};
    int64_t low = -row * a.x_stride, high = low + (a.rows - 1) * a.x_stride + cols;
    if (at >= low && at + WIDTH <= high) return load_as<uint4>(x + (int64_t)at * type::BYTES);
    return load_partial((const typename type::stored *)x + at, -at, cols - at);
  }
};

template <typename type, uint32_t lanes, int vectors, int at_once>
RDNA_DEVICE void cross_entropy_short(const cross_entropy_args &args, float *scratch) {
  typedef short_rows<type, lanes> part;
  constexpr int width = type::IN_16;
  const int64_t blocks = (args.rows + LOSS_SHORT_ROWS - 1) / LOSS_SHORT_ROWS;
  for (int64_t block = group_id_x(); block < blocks; block += group_count_x()) {
    const cross_entropy_args &a = arguments_again_wide(args);
    float loss = 0, weight = 0;
#pragma nounroll
    for (uint32_t round = thread_id() / lanes * at_once; round < LOSS_SHORT_ROWS; round += part::TEAMS * at_once) {
      const int64_t first = block * LOSS_SHORT_ROWS + round, mine = first + part::rank();
      const bool there = part::rank() < at_once && mine < a.rows;
      uint4 bits[at_once][vectors];
      int64_t y = there ? target_of(a.target, mine, a.target_i64) : -1;
#pragma unroll
      for (int r = 0; r < at_once; r++) {
        int64_t row = first + r < a.rows ? first + r : a.rows - 1;
        const char *x = row_at<type>(a.x, row, a.x_stride);
#pragma unroll
        for (int k = 0; k < vectors; k++) bits[r][k] = part::load(a, row, x, part::column(x, k));
      }
      float own = 0, own_top = 0, own_sum = 0;
      if (there && (uint64_t)y < (uint64_t)a.cols) own = type::load(row_at<type>(a.x, mine, a.x_stride), (uint64_t)y);
#pragma unroll
      for (int r = 0; r < at_once; r++) {
        const char *x = row_at<type>(a.x, first + r, a.x_stride);
        const int32_t cols = (int32_t)a.cols;
        float v[width], top = -infinity_f32(), sum = 0;
#pragma unroll
        for (int k = 0; k < vectors; k++) {
          part::values(bits[r][k], part::column(x, k), cols, v);
#pragma unroll
          for (int j = 0; j < width; j++) top = max_f32(top, v[j]);
        }
#pragma unroll
        for (uint32_t mask = 1; mask < lanes; mask *= 2) top = max_f32(top, wave_shuffle_xor_f32(top, mask));
        const float base = top == -infinity_f32() ? 0 : top;
#pragma unroll
        for (int k = 0; k < vectors; k++) {
          if (vectors > 1) part::values(again(bits[r][k]), part::anew(part::column(x, k)), cols, v);
#pragma unroll
          for (int j = 0; j < width; j++) sum += fast_exp(v[j] - base);
        }
#pragma unroll
        for (uint32_t mask = 1; mask < lanes; mask *= 2) sum += wave_shuffle_xor_f32(sum, mask);
        if (part::rank() == (uint32_t)r) own_top = top, own_sum = sum;
      }
      if (!there) continue;
      const float lse = own_top + scalar_log(own_sum);
      row_loss l = loss_of_row(a, y, own, lse, 0, 0);
      a.lse[mine] = lse;
      if (a.partial) {
        loss += l.loss, weight += l.weight;
      } else {
        a.loss[mine] = l.loss, a.row_weight[mine] = l.weight;
      }
    }
    if (!a.partial) continue;
    loss = group_sum_f32<threads>(loss, scratch);
    weight = group_sum_f32<threads>(weight, scratch);
    if (thread_id() == 0) a.partial[block] = loss, a.partial[blocks + block] = weight;
  }
}

template <typename type, uint32_t lanes, int vectors, int at_once>
RDNA_DEVICE void cross_entropy_backward_short(const cross_entropy_backward_args &args) {
  typedef short_rows<type, lanes> part;
  constexpr int width = type::IN_16;
  constexpr uint32_t rows = part::TEAMS * at_once; /* of a group at once */
#pragma nounroll
  for (int64_t block = (int64_t)group_id_x() * rows; block < args.rows; block += (int64_t)group_count_x() * rows) {
    const cross_entropy_backward_args &a = arguments_again_wide(args);
    const bool alike =
        all_16((address_of(a.x) ^ address_of(a.dx)) | (uint64_t)(a.x_stride - a.dx_stride) * type::BYTES);
    const int64_t first = block + thread_id() / lanes * at_once, mine = first + part::rank();
    uint4 bits[at_once][vectors];
    float lse = 0, own = 0, factor = 0;
    int32_t place = -1; /* of the target, if it is a class */
    if (part::rank() < at_once && mine < a.rows) {
      int64_t y = target_of(a.target, mine, a.target_i64);
      lse = a.lse[mine];
      bool known = (uint64_t)y < (uint64_t)a.cols;
      if (known) place = (int32_t)y;
      if (y != a.ignore) {
        own = slope_of_loss<type>(a, mine) * (a.weight && known ? a.weight[y] : 1);
        factor = known ? own : no_class(a.outside);
      }
    }
#pragma unroll
    for (int r = 0; r < at_once; r++) {
      int64_t row = first + r < a.rows ? first + r : a.rows - 1;
      const char *x = row_at<type>(a.x, row, a.x_stride);
#pragma unroll
      for (int k = 0; k < vectors; k++) bits[r][k] = part::load(a, row, x, part::column(x, k));
    }
#pragma unroll
    for (int r = 0; r < at_once; r++) {
      const uint32_t from = lane_id() - part::rank() + r;
      row_slope s = {wave_shuffle_f32(lse, from), wave_shuffle_f32(factor, from), 0, wave_shuffle_f32(own, from), 0};
      const int32_t y = (int32_t)wave_shuffle_u32((uint32_t)place, from), cols = (int32_t)a.cols;
      if (first + r >= a.rows) continue;
      const char *x = row_at<type>(a.x, first + r, a.x_stride);
      char *dx = row_at<type>(a.dx, first + r, a.dx_stride);
#pragma unroll
      for (int k = 0; k < vectors; k++) {
        const int32_t at = part::column(x, k);
        if (at >= cols) break;
        float v[width];
        type::unpack(bits[r][k], v);
#pragma unroll
        for (int j = 0; j < width; j++) {
          v[j] = s.factor != 0 ? s.factor * fast_exp(v[j] - s.lse) : 0;
          v[j] -= y - at == j ? s.own : 0;
        }
        if (alike && at >= 0 && at + width <= cols) {
          type::store_16(dx + (int64_t)at * type::BYTES, v);
          continue;
        }
#pragma unroll
        for (int j = 0; j < width; j++) {
          if (part::has(at, j, cols)) ((typename type::stored *)dx)[at + j] = stored_of<type>(v[j]);
        }
      }
    }
  }
}

#endif
