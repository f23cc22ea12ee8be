/* Losses and their gradients. */
#include "kernel/arguments.h"
#include "math/chunk.h"
#include "math/edges.h"
#include "math/loss/loss_kernels.h"
#include "math/loss/loss_math.h"

static constexpr int threads = LOSS_THREADS;
static constexpr uint32_t dtype_f16 = 1, dtype_bf16 = 2; /* as rdna_dtype has them */

RDNA_DEVICE void store_as_dtype(uint32_t dtype, void *p, uint64_t i, float v) {
  if (dtype == dtype_f16) {
    f16::store(p, i, v);
  } else if (dtype == dtype_bf16) {
    bf16::store(p, i, v);
  } else {
    f32::store(p, i, v);
  }
}

/* Calls |each| with the thread's share of a block: whole 16 bytes, or single values |threads| apart. */
template <typename type, bool wide, typename function>
RDNA_DEVICE void for_block(int64_t block, int64_t count, function each) {
  constexpr int size = chunk<type, wide>::COUNT;
#pragma unroll 2
  for (int j = 0; j < LOSS_BLOCK / threads / size; j++) {
    int64_t i = block * LOSS_BLOCK + (j * threads + (int64_t)thread_id()) * size;
    if (i < count) each((uint64_t)i);
  }
}

template <typename type, bool wide>
RDNA_DEVICE void loss_values(const loss_values_args &a, float *scratch) {
  typedef chunk<type, wide> part;
  constexpr int size = part::COUNT;
  int64_t blocks = (a.count + LOSS_BLOCK - 1) / LOSS_BLOCK;
  for (int64_t slice = group_id_x(); slice < a.slices; slice += group_count_x()) {
    float sum = 0;
    for (int64_t block = slice; block < blocks; block += a.slices) {
      for_block<type, wide>(block, a.count, [&] __attribute__((device)) (uint64_t i) {
        float x[size], t[size], w[size];
        part::template load<type>(a.x, i, x);
        part::template load<type>(a.target, i, t);
        if (a.weight) part::template load<type>(a.weight, i, w);
#pragma unroll
        for (int k = 0; k < size; k++) {
          x[k] = loss_of(a.kind, x[k], t[k], a.beta);
          if (a.weight) x[k] *= w[k];
          sum += x[k];
        }
        if (a.out) part::store(a.out, i, x);
      });
    }
    if (a.out) continue;
    sum = group_sum_f32<threads>(sum, scratch);
    if (thread_id() == 0) a.partial[slice] = sum;
  }
}

template <typename type, bool wide>
RDNA_DEVICE void loss_values_backward(const loss_values_backward_args &a) {
  typedef chunk<type, wide> part;
  constexpr int size = part::COUNT;
  int64_t blocks = (a.count + LOSS_BLOCK - 1) / LOSS_BLOCK;
  if (blocks == 0) return;
  float all = 0;
  if (a.one) all = a.scale * (a.dout_f32 ? f32::load(a.dout, 0) : type::load(a.dout, 0));
  for (int64_t block = group_id_x(); block < blocks; block += group_count_x()) {
    for_block<type, wide>(block, a.count, [&] __attribute__((device)) (uint64_t i) {
      float x[size], t[size], g[size];
      part::template load<type>(a.x, i, x);
      part::template load<type>(a.target, i, t);
      if (!a.one) part::template load<type>(a.dout, i, g);
#pragma unroll
      for (int k = 0; k < size; k++) {
        float factor = a.one ? all : a.scale * g[k];
        x[k] = factor * loss_slope(a.kind, x[k], t[k], a.beta);
      }
      if (a.weight) {
        part::template load<type>(a.weight, i, t);
#pragma unroll
        for (int k = 0; k < size; k++) x[k] *= t[k];
      }
      part::store(a.dx, i, x);
    });
  }
}

/* The threads that share a row. */
struct wave_team {
  enum { SIZE = WAVE_SIZE };
  RDNA_DEVICE uint32_t rank() { return lane_id(); }
  RDNA_DEVICE float sum(float v, float *) { return wave_sum_f32(v); }
  RDNA_DEVICE float max(float v, float *) { return wave_max_f32(v); }
};
struct group_team {
  enum { SIZE = LOSS_THREADS };
  RDNA_DEVICE uint32_t rank() { return thread_id(); }
  RDNA_DEVICE float sum(float v, float *scratch) { return group_sum_f32<threads>(v, scratch); }
  RDNA_DEVICE float max(float v, float *scratch) { return group_max_f32<threads>(v, scratch); }
};

RDNA_DEVICE int64_t target_of(const void *target, int64_t row, uint32_t is_i64) {
  return is_i64 ? ((const int64_t *)target)[row] : (int64_t)((const int32_t *)target)[row];
}
RDNA_DEVICE float not_a_number() { return __builtin_nanf(""); }

/* Single value |k| of those before and after a row's vectors. */
RDNA_DEVICE uint64_t single_at(const row_edges &e, uint64_t cols, uint64_t k) {
  return k < e.head ? k : cols - e.tail + (k - e.head);
}

/* Exponentials below |top|, and the sums of w and of w x. */
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

/* log of the sum of exp of a row, in one pass; with smoothing, the sums of w and of w x too. */
template <typename type, typename team>
RDNA_DEVICE float log_sum_exp(const cross_entropy_args &a, const void *x, float *scratch, float *out_w, float *out_wx) {
  constexpr uint64_t size = type::IN_16, step = team::SIZE * size;
  const uint64_t cols = (uint64_t)a.cols;
  const row_edges e = row_edges_of(address_of(x), cols, type::IN_16);
  const uint64_t last = cols - e.tail; /* begins what is left */
  exp_sums s = {-infinity_f32(), 0, 0, 0};
#pragma nounroll
  for (uint64_t k = team::rank(); k < e.head + e.tail; k += team::SIZE) {
    uint64_t i = single_at(e, cols, k);
    float v = type::load(x, i);
    exp_sums::add<1>(s, a, i, &v);
  }
#pragma nounroll
  for (uint64_t i = e.head + team::rank() * size; i < last; i += LOSS_AHEAD * step) {
    uint4 bits[LOSS_AHEAD];
#pragma unroll
    for (int j = 0; j < LOSS_AHEAD; j++) {
      bits[j] = uint4{0, 0, 0, 0};
      if (i + j * step < last) bits[j] = load_as<uint4>((const char *)x + (i + j * step) * type::BYTES);
    }
#pragma unroll
    for (int j = 0; j < LOSS_AHEAD; j++) {
      if (i + j * step >= last) break;
      float v[size];
      type::unpack(again(bits[j]), v);
      exp_sums::add<(int)size>(s, a, i + j * step, v);
    }
  }
  float row_top = team::max(s.top, scratch);
  float sum = team::sum(s.sum != 0 ? s.sum * fast_exp(s.top - row_top) : 0, scratch);
  if (a.smoothing != 0) {
    *out_w = team::sum(s.w, scratch);
    *out_wx = team::sum(s.wx, scratch);
  }
  return row_top + scalar_log(sum);
}

template <typename type, typename team>
RDNA_DEVICE void cross_entropy_row(const cross_entropy_args &a, int64_t row, float *scratch) {
  const void *x = (const char *)a.x + row * a.x_stride * type::BYTES;
  int64_t y = target_of(a.target, row, a.target_i64);
  float lse = 0, w = 0, wx = 0, loss = 0, row_weight = 0;
  if (!a.nll) lse = log_sum_exp<type, team>(a, x, scratch, &w, &wx);
  if (team::rank() != 0) return;
  if (y != a.ignore && (uint64_t)y < (uint64_t)a.cols) {
    row_weight = a.weight ? a.weight[y] : 1;
    float own = row_weight * (lse - type::load(x, (uint64_t)y));
    loss = a.smoothing != 0 ? (1 - a.smoothing) * own + a.smoothing / (float)a.cols * (w * lse - wx) : own;
  } else if (y != a.ignore) {
    loss = row_weight = not_a_number();
  }
  a.loss[row] = loss;
  a.lse[row] = lse;
  a.row_weight[row] = row_weight;
}

template <typename type>
RDNA_DEVICE void cross_entropy(const cross_entropy_args &a, float *scratch) {
  if (a.cols <= LOSS_WAVE_COLS) {
    constexpr int64_t waves = threads / WAVE_SIZE;
    for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
      cross_entropy_row<type, wave_team>(a, row, scratch);
    }
  } else {
    for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
      cross_entropy_row<type, group_team>(a, row, scratch);
    }
  }
}

/* dx[c] = factor * exp(x[c] - lse) - even * w[c] - (c = y ? own : 0) */
struct row_slope {
  float lse, factor, even, own;
  int64_t y;
};

/* |v| becomes the slopes of values |i| onwards. */
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

template <typename type, typename team>
RDNA_DEVICE void slope_row(const cross_entropy_backward_args &a, const row_slope &s, const void *x, void *dx) {
  constexpr uint64_t size = type::IN_16, step = team::SIZE * size;
  const uint64_t cols = (uint64_t)a.cols;
  row_edges e = {cols, 0, 0}; /* all of it by single values */
  if (all_16(address_of(x) ^ address_of(dx))) e = row_edges_of(address_of(x), cols, type::IN_16);
  const uint64_t last = cols - e.tail;
#pragma nounroll
  for (uint64_t k = team::rank(); k < e.head + e.tail; k += team::SIZE) {
    uint64_t i = single_at(e, cols, k);
    float v = 0;
    if (s.factor != 0) v = type::load(x, i);
    slopes<1>(a, s, i, &v);
    type::store(dx, i, v);
  }
#pragma nounroll
  for (uint64_t i = e.head + team::rank() * size; i < last;) {
    uint4 bits[LOSS_AHEAD];
#pragma unroll
    for (int j = 0; j < LOSS_AHEAD; j++) {
      bits[j] = uint4{0, 0, 0, 0};
      if (i + j * step < last && s.factor != 0)
        bits[j] = load_as<uint4>((const char *)x + (i + j * step) * type::BYTES);
    }
#pragma nounroll
    for (int j = 0; j < LOSS_AHEAD && i < last; j++, i += step) {
      float v[size];
      type::unpack(bits[0], v);
      slopes<(int)size>(a, s, i, v);
      type::store_16((char *)dx + i * type::BYTES, v);
#pragma unroll
      for (int k = 1; k < LOSS_AHEAD; k++) bits[k - 1] = bits[k];
    }
  }
}

template <typename type, typename team>
RDNA_DEVICE void cross_entropy_backward_row(const cross_entropy_backward_args &a, int64_t row, float *scratch) {
  const void *x = (const char *)a.x + row * a.x_stride * type::BYTES;
  void *dx = (char *)a.dx + row * a.dx_stride * type::BYTES;
  int64_t y = target_of(a.target, row, a.target_i64);
  bool known = (uint64_t)y < (uint64_t)a.cols;
  row_slope s = {a.lse[row], 0, 0, 0, y};
  if (y != a.ignore) {
    uint64_t at = a.one ? 0 : (uint64_t)row;
    float g = a.dout_f32 ? f32::load(a.dout, at) : type::load(a.dout, at);
    if (a.total) g /= *a.total;
    float w = a.weight && known ? a.weight[y] : 1, w_sum = (float)a.cols;
    if (a.smoothing != 0 && a.weight) {
      w_sum = 0;
      for (uint64_t i = team::rank(); i < (uint64_t)a.cols; i += team::SIZE) w_sum += a.weight[i];
      w_sum = team::sum(w_sum, scratch);
    }
    s.even = g * a.smoothing / (float)a.cols;
    s.own = g * (1 - a.smoothing) * w;
    s.factor = a.nll ? 0 : s.own + s.even * w_sum;
    if (!known) s.factor = s.even = not_a_number();
  }
  slope_row<type, team>(a, s, x, dx);
}

template <typename type>
RDNA_DEVICE void cross_entropy_backward(const cross_entropy_backward_args &a, float *scratch) {
  if (a.cols <= LOSS_WAVE_COLS) {
    constexpr int64_t waves = threads / WAVE_SIZE;
    for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
      cross_entropy_backward_row<type, wave_team>(arguments_again_wide(a), row, scratch);
    }
  } else {
    for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
      cross_entropy_backward_row<type, group_team>(arguments_again_wide(a), row, scratch);
    }
  }
}

#define LOSS(type)                                                                                                \
  RDNA_KERNEL(LOSS_THREADS) loss_values_##type(struct loss_values_args a) {                                       \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                     \
    if (all_16(address_of(a.x) | address_of(a.target) | address_of(a.weight) | address_of(a.out) |                \
               (uint64_t)a.count * type::BYTES)) {                                                                \
      loss_values<type, true>(a, scratch);                                                                        \
    } else {                                                                                                      \
      loss_values<type, false>(a, scratch);                                                                       \
    }                                                                                                             \
  }                                                                                                               \
  RDNA_KERNEL(LOSS_THREADS) loss_values_backward_##type(struct loss_values_backward_args a) {                     \
    if (all_16((a.one ? 0 : address_of(a.dout)) | address_of(a.x) | address_of(a.target) | address_of(a.weight) | \
               address_of(a.dx) | (uint64_t)a.count * type::BYTES)) {                                             \
      loss_values_backward<type, true>(a);                                                                        \
    } else {                                                                                                      \
      loss_values_backward<type, false>(a);                                                                       \
    }                                                                                                             \
  }                                                                                                               \
  RDNA_KERNEL(LOSS_THREADS) cross_entropy_##type(struct cross_entropy_args a) {                                   \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                     \
    cross_entropy<type>(a, scratch);                                                                              \
  }                                                                                                               \
  RDNA_KERNEL(LOSS_THREADS) cross_entropy_backward_##type(struct cross_entropy_backward_args a) {                 \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                     \
    cross_entropy_backward<type>(a, scratch);                                                                     \
  }
LOSS(f32)
LOSS(f16)
LOSS(bf16)

RDNA_KERNEL(LOSS_SUM_THREADS) loss_sum(struct loss_sum_args a) {
  RDNA_SHARED static float scratch[GROUP_SCRATCH(LOSS_SUM_THREADS)];
  constexpr int ahead = 8;
  float sum = 0, weight = 0;
#pragma nounroll
  for (int64_t i = thread_id(); i < a.count; i += ahead * LOSS_SUM_THREADS) {
    float v[ahead], w[ahead];
#pragma unroll
    for (int j = 0; j < ahead; j++) {
      int64_t at = i + j * LOSS_SUM_THREADS;
      v[j] = at < a.count ? a.values[at] : 0;
      w[j] = at < a.count && a.weights ? a.weights[at] : 0;
    }
#pragma unroll
    for (int j = 0; j < ahead; j++) sum += v[j], weight += w[j];
  }
  sum = group_sum_f32<LOSS_SUM_THREADS>(sum, scratch);
  weight = group_sum_f32<LOSS_SUM_THREADS>(weight, scratch);
  if (thread_id() != 0 || group_id_x() != 0) return;
  store_as_dtype(a.dtype, a.out, 0, a.weights ? a.scale * sum / weight : a.scale * sum);
  if (a.total) *a.total = weight;
}

RDNA_KERNEL(LOSS_THREADS) loss_store(struct loss_store_args a) {
  for (int64_t i = (int64_t)group_id_x() * threads + thread_id(); i < a.count;
       i += (int64_t)group_count_x() * threads) {
    store_as_dtype(a.dtype, a.out, (uint64_t)i, a.values[i]);
  }
}
