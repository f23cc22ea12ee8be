/* Device code: cross-entropy of rows that belong to a wave, to a group, or in parts to several groups. A row is seen as
 * single values, vectors of 16 bytes, single values; see "Rows at any alignment" in src/math/README.md. */
#ifndef RDNA_MATH_LOSS_LOSS_ROWS_H
#define RDNA_MATH_LOSS_LOSS_ROWS_H

#include "kernel/arguments.h"
#include "math/common/device/teams.h"
#include "math/common/edges.h"
#include "math/loss/loss_values.h"

RDNA_DEVICE int64_t target_of(const void *target, int64_t row, uint32_t is_i64) {
  return is_i64 ? ((const int64_t *)target)[row] : (int64_t)((const int32_t *)target)[row];
}
RDNA_DEVICE float not_a_number() { return __builtin_nanf(""); }
/* The loss of a row whose target is no class; says so in |outside|. */
RDNA_DEVICE float no_class(uint32_t *outside) {
  if (outside) atomic_or_u32(outside, 1);
  return not_a_number();
}

/* The column of single value |k|, of those before and after a row's vectors. */
RDNA_DEVICE uint64_t single_at(const row_edges &e, uint64_t cols, uint64_t k) {
  return k < e.head ? k : cols - e.tail + (k - e.head);
}

/* Of some of a row's values: the largest, the sum of exp(x - top), and with smoothing the sums of w and of w x. */
struct exp_sums {
  float top, sum, w, wx;
  template <int size>
  RDNA_DEVICE void add(exp_sums &s, const cross_entropy_args &a, uint64_t i, const float *v) {
    if (a.smoothing != 0) {
#pragma unroll
      for (int k = 0; k < size; k++) {
        float w = a.weight ? a.weight[i + k] : 1;
        s.w += w;
        s.wx = fma_f32(w, v[k], s.wx);
      }
    }
    float grown = s.top;
#pragma unroll
    for (int k = 0; k < size; k++) grown = max_f32(grown, v[k]);
    if (grown == -infinity_f32()) return; /* no difference of maxima yet */
    s.sum *= s.sum != 0 ? fast_exp(s.top - grown) : 1;
#pragma unroll
    for (int k = 0; k < size; k++) s.sum += fast_exp(v[k] - grown);
    s.top = grown;
  }
};

/* Reads vectors |begin| to |end| of a row, and its single values if |singles|, once. All of the team get the sums. */
template <typename type, typename team>
RDNA_DEVICE exp_sums sums_of_row(const cross_entropy_args &a, const void *x, const row_edges &e, uint64_t begin,
                                 uint64_t end, bool singles, float *scratch) {
  constexpr uint64_t size = type::IN_16, step = team::SIZE * size;
  const uint64_t stop = e.head + end * size;
  exp_sums s = {-infinity_f32(), 0, 0, 0};
  if (singles) {
#pragma nounroll
    for (uint64_t k = team::rank(); k < e.head + e.tail; k += team::SIZE) {
      uint64_t i = single_at(e, (uint64_t)a.cols, k);
      float v = type::load(x, i);
      exp_sums::add<1>(s, a, i, &v);
    }
  }
#pragma nounroll
  for (uint64_t i = e.head + (begin + team::rank()) * size; i < stop; i += LOSS_AHEAD * step) {
    uint4 bits[LOSS_AHEAD];
#pragma unroll
    for (int j = 0; j < LOSS_AHEAD; j++) {
      bits[j] = uint4{0, 0, 0, 0};
      if (i + j * step < stop) bits[j] = load_as<uint4>((const char *)x + (i + j * step) * type::BYTES);
    }
#pragma unroll
    for (int j = 0; j < LOSS_AHEAD; j++) {
      if (i + j * step >= stop) break;
      float v[size];
      type::unpack(again(bits[j]), v);
      exp_sums::add<(int)size>(s, a, i + j * step, v);
    }
  }
  float top = team::max(s.top, scratch);
  s.sum = team::sum(s.sum != 0 ? s.sum * fast_exp(s.top - top) : 0, scratch);
  s.top = top;
  if (a.smoothing != 0) {
    s.w = team::sum(s.w, scratch);
    s.wx = team::sum(s.wx, scratch);
  }
  return s;
}

struct row_loss {
  float loss, weight;
};

/* |own|: the value of x at the target, if that is a class. */
RDNA_DEVICE row_loss loss_of_row(const cross_entropy_args &a, int64_t y, float own, float lse, float w, float wx) {
  if (y == a.ignore) return {0, 0};
  if ((uint64_t)y >= (uint64_t)a.cols) {
    const float nan = no_class(a.outside);
    return {nan, nan};
  }
  float weight = a.weight ? a.weight[y] : 1;
  float loss = weight * (lse - own);
  if (a.smoothing != 0) loss = (1 - a.smoothing) * loss + a.smoothing / (float)a.cols * (w * lse - wx);
  return {loss, weight};
}

/* The loss of one row, which is a team's. */
template <typename type, typename team>
RDNA_DEVICE void cross_entropy_row(const cross_entropy_args &a, int64_t row, float *scratch) {
  const char *x = row_at<type>(a.x, row, a.x_stride);
  int64_t y = target_of(a.target, row, a.target_i64);
  exp_sums s = {0, 1, 0, 0};
  if (!a.nll) {
    const row_edges e = row_edges_of(address_of(x), (uint64_t)a.cols, type::IN_16);
    s = sums_of_row<type, team>(a, x, e, 0, e.vectors, true, scratch);
  }
  if (team::rank() != 0) return;
  float lse = a.nll ? 0 : s.top + scalar_log(s.sum);
  float own = (uint64_t)y < (uint64_t)a.cols ? type::load(x, (uint64_t)y) : 0;
  row_loss l = loss_of_row(a, y, own, lse, s.w, s.wx);
  a.loss[row] = l.loss;
  a.lse[row] = lse;
  a.row_weight[row] = l.weight;
}

template <typename type>
RDNA_DEVICE void cross_entropy(const cross_entropy_args &a, float *scratch) {
  if (a.states) {
    for (int64_t unit = group_id_x(); unit < a.rows * a.parts; unit += group_count_x()) {
      int64_t row = unit / a.parts, part = unit - row * a.parts;
      const char *x = row_at<type>(a.x, row, a.x_stride);
      const row_edges e = row_edges_of(address_of(x), (uint64_t)a.cols, type::IN_16);
      uint64_t begin = (uint64_t)part * a.part_vectors, end = begin + a.part_vectors;
      end = end < e.vectors ? end : e.vectors;
      exp_sums s = sums_of_row<type, group_team<threads>>(a, x, e, begin, end, part == 0, scratch);
      if (thread_id() == 0) store_f32x4(a.states + 4 * unit, float4{s.top, s.sum, s.w, s.wx});
    }
  } else if (a.cols <= LOSS_WAVE_COLS) {
    constexpr int64_t waves = threads / WAVE_SIZE;
    for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
      cross_entropy_row<type, wave_team<threads>>(a, row, scratch);
    }
  } else {
    for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
      cross_entropy_row<type, group_team<threads>>(a, row, scratch);
    }
  }
}

/* Joins the parts of each row, and adds up the rows' losses. Neighbouring lanes share a row, as many as there are
 * threads for. */
template <typename type>
RDNA_DEVICE void cross_entropy_finish(const cross_entropy_finish_args &all, float *scratch) {
  const cross_entropy_args &a = all.rows;
  uint32_t lanes = 32;
  while (lanes > 1 && lanes * a.rows > LOSS_SUM_THREADS) lanes /= 2;
  float loss = 0, weight = 0;
  for (int64_t first = 0; first < a.rows; first += LOSS_SUM_THREADS / lanes) {
    const int64_t row = first + thread_id() / lanes;
    const uint32_t rank = thread_id() % lanes, parts = row < a.rows ? a.parts : 0;
    const float *states = a.states + row * a.parts * 4;
    exp_sums s = {-infinity_f32(), 0, 0, 0};
    for (uint32_t p = rank; p < parts; p += lanes) s.top = max_f32(s.top, states[4 * p]);
    for (uint32_t mask = 1; mask < lanes; mask *= 2) s.top = max_f32(s.top, wave_shuffle_f32(s.top, lane_id() ^ mask));
    for (uint32_t p = rank; p < parts; p += lanes) {
      float4 one = load_f32x4(states + 4 * p);
      if (one.y != 0) s.sum += one.y * fast_exp(one.x - s.top);
      s.w += one.z, s.wx += one.w;
    }
    for (uint32_t mask = 1; mask < lanes; mask *= 2) {
      s.sum += wave_shuffle_f32(s.sum, lane_id() ^ mask);
      s.w += wave_shuffle_f32(s.w, lane_id() ^ mask);
      s.wx += wave_shuffle_f32(s.wx, lane_id() ^ mask);
    }
    if (rank != 0 || row >= a.rows) continue;
    int64_t y = target_of(a.target, row, a.target_i64);
    float own = 0, lse = s.top + scalar_log(s.sum);
    if ((uint64_t)y < (uint64_t)a.cols) own = type::load(row_at<type>(a.x, row, a.x_stride), (uint64_t)y);
    row_loss l = loss_of_row(a, y, own, lse, s.w, s.wx);
    a.loss[row] = l.loss, a.lse[row] = lse;
    loss += l.loss, weight += l.weight;
  }
  loss = group_sum_f32<LOSS_SUM_THREADS>(loss, scratch);
  weight = group_sum_f32<LOSS_SUM_THREADS>(weight, scratch);
  if (thread_id() != 0 || group_id_x() != 0) return;
  if (all.out) store_float(all.out, 0, all.dtype, all.mean ? loss / weight : loss);
  *all.total = weight;
}

/* What the gradient of a row is made of: dx[c] = factor * exp(x[c] - lse) - even * w[c] - (c = y ? own : 0). */
struct row_slope {
  float lse, factor, even, own;
  int64_t y;
};

/* Replaces values |v|, from column |i| on, by their gradients. */
template <int size>
RDNA_DEVICE void slopes(const cross_entropy_backward_args &a, const row_slope &s, uint64_t i, float *v) {
#pragma unroll
  for (int k = 0; k < size; k++) v[k] = s.factor != 0 ? s.factor * fast_exp(v[k] - s.lse) : 0;
  if (s.even != 0) {
#pragma unroll
    for (int k = 0; k < size; k++) v[k] -= s.even * (a.weight ? a.weight[i + k] : 1);
  }
  uint64_t own = (uint64_t)s.y - i;
#pragma unroll
  for (int k = 0; k < size; k++) v[k] -= own == (uint64_t)k ? s.own : 0;
}

/* Writes the gradients of a row, or of a part of it. */
template <typename type, typename team>
RDNA_DEVICE void slope_row(const cross_entropy_backward_args &a, const row_slope &s, const void *x, void *dx,
                           int64_t part) {
  constexpr uint64_t size = type::IN_16, step = team::SIZE * size;
  row_edges e = {(uint64_t)a.cols, 0, 0}; /* all of it by single values */
  if (all_16(address_of(x) ^ address_of(dx))) e = row_edges_of(address_of(x), (uint64_t)a.cols, type::IN_16);
  uint64_t begin = 0, end = e.vectors;
  if (a.parts > 1) {
    begin = (uint64_t)part * a.part_vectors;
    if (begin + a.part_vectors < end) end = begin + a.part_vectors;
  }
  const uint64_t stop = e.head + end * size;
  if (part == 0) {
#pragma nounroll
    for (uint64_t k = team::rank(); k < e.head + e.tail; k += team::SIZE) {
      uint64_t i = single_at(e, (uint64_t)a.cols, k);
      float v = 0;
      if (s.factor != 0) v = type::load(x, i);
      slopes<1>(a, s, i, &v);
      type::store(dx, i, v);
    }
  }
#pragma nounroll
  for (uint64_t i = e.head + (begin + team::rank()) * size; i < stop;) {
    uint4 bits[LOSS_AHEAD];
#pragma unroll
    for (int j = 0; j < LOSS_AHEAD; j++) {
      bits[j] = uint4{0, 0, 0, 0};
      if (i + j * step < stop && s.factor != 0)
        bits[j] = load_as<uint4>((const char *)x + (i + j * step) * type::BYTES);
    }
#pragma nounroll
    for (int j = 0; j < LOSS_AHEAD && i < stop; j++, i += step) {
      float v[size];
      type::unpack(bits[0], v);
      slopes<(int)size>(a, s, i, v);
      type::store_16((char *)dx + i * type::BYTES, v);
#pragma unroll
      for (int k = 1; k < LOSS_AHEAD; k++) bits[k - 1] = bits[k];
    }
  }
}

/* dout of a row, divided by the sum of the rows' weights where there is one. */
template <typename type>
RDNA_DEVICE float slope_of_loss(const cross_entropy_backward_args &a, int64_t row) {
  uint64_t at = a.one ? 0 : (uint64_t)row;
  float g = a.dout_f32 ? f32::load(a.dout, at) : type::load(a.dout, at);
  return a.total ? g / *a.total : g;
}

template <typename type, typename team>
RDNA_DEVICE void cross_entropy_backward_row(const cross_entropy_backward_args &a, int64_t row, int64_t part,
                                            float *scratch) {
  const void *x = row_at<type>(a.x, row, a.x_stride);
  void *dx = row_at<type>(a.dx, row, a.dx_stride);
  int64_t y = target_of(a.target, row, a.target_i64);
  bool known = (uint64_t)y < (uint64_t)a.cols;
  row_slope s = {a.lse[row], 0, 0, 0, y};
  if (y != a.ignore) {
    float g = slope_of_loss<type>(a, row);
    float w = a.weight && known ? a.weight[y] : 1, w_sum = (float)a.cols;
    if (a.smoothing != 0 && a.weight) {
      w_sum = 0;
      for (uint64_t i = team::rank(); i < (uint64_t)a.cols; i += team::SIZE) w_sum += a.weight[i];
      w_sum = team::sum(w_sum, scratch);
    }
    s.even = g * a.smoothing / (float)a.cols;
    s.own = g * (1 - a.smoothing) * w;
    s.factor = a.nll ? 0 : s.own + s.even * w_sum;
    if (!known) s.factor = s.even = no_class(a.outside);
  }
  slope_row<type, team>(a, s, x, dx, part);
}

/* The last rows come first: the loss has just read them, and they may still be in the cache. */
template <typename type>
RDNA_DEVICE void cross_entropy_backward(const cross_entropy_backward_args &a, float *scratch) {
  if (a.cols <= LOSS_WAVE_COLS) {
    constexpr int64_t waves = threads / WAVE_SIZE;
    for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
      cross_entropy_backward_row<type, wave_team<threads>>(arguments_again_wide(a), a.rows - 1 - row, 0, scratch);
    }
  } else {
    for (int64_t unit = a.rows * a.parts - 1 - group_id_x(); unit >= 0; unit -= group_count_x()) {
      int64_t row = unit / a.parts;
      cross_entropy_backward_row<type, group_team<threads>>(arguments_again_wide(a), row, unit - row * a.parts,
                                                            scratch);
    }
  }
}

#endif
