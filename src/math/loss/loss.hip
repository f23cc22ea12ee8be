/* Losses and their gradients. Cross-entropy reads the logits once for the loss; its gradient reads them again and is
 * written: 6 bytes a value of bf16, and an exponential in either pass, about 60 instructions for a lane's 16 bytes
 * where an H200 has time for 110 while it reads them. Large inputs should go at the copy rate; of small ones, the three
 * or four launches take as long as their bytes. Rows shorter than a wave's 16 bytes a lane would leave most lanes idle:
 * those are shared by 4 or 16 lanes. Of few long rows most multiprocessors would see none: those go in parts. */
#include "kernel/arguments.h"
#include "math/common/device/chunk.h"
#include "math/common/device/partial.h"
#include "math/common/device/teams.h"
#include "math/common/edges.h"
#include "math/loss/loss_kernels.h"
#include "math/loss/loss_math.h"

static constexpr int threads = LOSS_THREADS;

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

RDNA_DEVICE int64_t target_of(const void *target, int64_t row, uint32_t is_i64) {
  return is_i64 ? ((const int64_t *)target)[row] : (int64_t)((const int32_t *)target)[row];
}
RDNA_DEVICE float not_a_number() { return __builtin_nanf(""); }
/* What becomes of a row whose target is no class. */
RDNA_DEVICE float no_class(uint32_t *outside) {
  if (outside) atomic_or_u32(outside, 1);
  return not_a_number();
}

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

/* Of vectors |begin| to |end| of a row, and of its single values if |singles|, in one pass. The same in all of the
 * team. */
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

/* |own| is the value of x at the target if that is a class. */
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

template <typename type>
RDNA_DEVICE const char *row_of(const void *data, int64_t row, int64_t stride) {
  return (const char *)data + row * stride * type::BYTES;
}

template <typename type, typename team>
RDNA_DEVICE void cross_entropy_row(const cross_entropy_args &a, int64_t row, float *scratch) {
  const char *x = row_of<type>(a.x, row, a.x_stride);
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
      const char *x = row_of<type>(a.x, row, a.x_stride);
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

/* The losses of rows from what their parts come to, and the sums of those. Neighbouring lanes share a row, as many as
 * there are threads for. */
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
    if ((uint64_t)y < (uint64_t)a.cols) own = type::load(row_of<type>(a.x, row, a.x_stride), (uint64_t)y);
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

/* Short rows: |lanes| neighbours have |at_once| rows, whose loads wait together, and |vectors| vectors each of a row,
 * which they see wherever it begins in them. Neighbouring rows' values that lie in a row's first and last vector are
 * read with them. What there is one of for each row, the first |at_once| of the lanes find for one row each. */
template <typename type, uint32_t lanes>
struct short_rows {
  enum { WIDTH = type::IN_16, TEAMS = threads / lanes };
  RDNA_DEVICE uint32_t rank() { return thread_id() % lanes; }
  /* The column of the first value of this lane's vector |k| of the row at |x|. */
  RDNA_DEVICE int32_t column(const char *x, int k) {
    return (int32_t)((rank() + (uint32_t)k * lanes) * WIDTH) - (int32_t)(address_of(x) & 15) / (int32_t)type::BYTES;
  }
  RDNA_DEVICE bool has(int32_t at, int j, int32_t cols) { return (uint32_t)(at + j) < (uint32_t)cols; }
  /* The same column, for which comparisons are made again rather than kept. */
  RDNA_DEVICE int32_t anew(int32_t at) { return bits_as<int32_t>(again(bits_as<float>(at))); }
  /* Values from column |at| on, -inf beyond the row. */
  RDNA_DEVICE void values(uint4 bits, int32_t at, int32_t cols, float *v) {
    type::unpack(bits, v);
#pragma unroll
    for (int j = 0; j < WIDTH; j++) v[j] = has(at, j, cols) ? v[j] : -infinity_f32();
  }
  template <typename args>
  RDNA_DEVICE uint4 load(const args &a, int64_t row, const char *x, int32_t at) {
    const int32_t cols = (int32_t)a.cols;
    if (at >= cols) return uint4{0, 0, 0, 0};
    int64_t low = -row * a.x_stride, high = low + (a.rows - 1) * a.x_stride + cols;
    if (at >= low && at + WIDTH <= high) return load_as<uint4>(x + (int64_t)at * type::BYTES);
    return load_partial((const typename type::stored *)x + at, -at,
                        cols - at); /* at the first row's or last one's end */
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
        const char *x = row_of<type>(a.x, row, a.x_stride);
#pragma unroll
        for (int k = 0; k < vectors; k++) bits[r][k] = part::load(a, row, x, part::column(x, k));
      }
      float own = 0, own_top = 0, own_sum = 0;
      if (there && (uint64_t)y < (uint64_t)a.cols) own = type::load(row_of<type>(a.x, mine, a.x_stride), (uint64_t)y);
#pragma unroll
      for (int r = 0; r < at_once; r++) {
        const char *x = row_of<type>(a.x, first + r, a.x_stride);
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

/* The gradient of a row's loss, over what the rows' weights sum to. */
template <typename type>
RDNA_DEVICE float slope_of_loss(const cross_entropy_backward_args &a, int64_t row) {
  uint64_t at = a.one ? 0 : (uint64_t)row;
  float g = a.dout_f32 ? f32::load(a.dout, at) : type::load(a.dout, at);
  return a.total ? g / *a.total : g;
}

template <typename type, typename team>
RDNA_DEVICE void cross_entropy_backward_row(const cross_entropy_backward_args &a, int64_t row, int64_t part,
                                            float *scratch) {
  const void *x = row_of<type>(a.x, row, a.x_stride);
  void *dx = (char *)row_of<type>(a.dx, row, a.dx_stride);
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

/* The last rows first, since the loss has just read them and they may still be in the cache. */
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
      const char *x = row_of<type>(a.x, row, a.x_stride);
#pragma unroll
      for (int k = 0; k < vectors; k++) bits[r][k] = part::load(a, row, x, part::column(x, k));
    }
#pragma unroll
    for (int r = 0; r < at_once; r++) {
      const uint32_t from = lane_id() - part::rank() + r;
      row_slope s = {wave_shuffle_f32(lse, from), wave_shuffle_f32(factor, from), 0, wave_shuffle_f32(own, from), 0};
      const int32_t y = (int32_t)wave_shuffle_u32((uint32_t)place, from), cols = (int32_t)a.cols;
      if (first + r >= a.rows) continue;
      const char *x = row_of<type>(a.x, first + r, a.x_stride);
      char *dx = (char *)row_of<type>(a.dx, first + r, a.dx_stride);
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

#define LOSS(type)                                                                                                  \
  RDNA_KERNEL(LOSS_THREADS) loss_values_##type(struct loss_values_args a) {                                         \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                       \
    if (all_16(address_of(a.x) | address_of(a.target) | address_of(a.weight) | address_of(a.out) |                  \
               (uint64_t)a.count * type::BYTES)) {                                                                  \
      loss_values<type, true>(a, scratch);                                                                          \
    } else {                                                                                                        \
      loss_values<type, false>(a, scratch);                                                                         \
    }                                                                                                               \
  }                                                                                                                 \
  RDNA_KERNEL(LOSS_THREADS) loss_values_backward_##type(struct loss_values_backward_args a) {                       \
    if (all_16((a.one ? 0 : address_of(a.dout)) | address_of(a.x) | address_of(a.target) | address_of(a.weight) |   \
               address_of(a.dx) | (uint64_t)a.count * type::BYTES)) {                                               \
      loss_values_backward<type, true>(a);                                                                          \
    } else {                                                                                                        \
      loss_values_backward<type, false>(a);                                                                         \
    }                                                                                                               \
  }                                                                                                                 \
  RDNA_KERNEL(LOSS_THREADS) cross_entropy_##type(struct cross_entropy_args a) {                                     \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                       \
    cross_entropy<type>(a, scratch);                                                                                \
  }                                                                                                                 \
  RDNA_KERNEL(LOSS_THREADS) cross_entropy_backward_##type(struct cross_entropy_backward_args a) {                   \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                       \
    cross_entropy_backward<type>(a, scratch);                                                                       \
  }                                                                                                                 \
  RDNA_KERNEL(LOSS_SUM_THREADS) cross_entropy_finish_##type(struct cross_entropy_finish_args a) {                   \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(LOSS_SUM_THREADS)];                                              \
    cross_entropy_finish<type>(a, scratch);                                                                         \
  }                                                                                                                 \
  RDNA_KERNEL_RESIDENT(LOSS_THREADS, 4) cross_entropy_short_##type(struct cross_entropy_args a) {                   \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                       \
    if (a.cols <= LOSS_SHORT_COLS(4, 1, type::BYTES)) {                                                             \
      cross_entropy_short<type, 4, 1, 1>(a, scratch);                                                               \
    } else if (a.cols <= LOSS_SHORT_COLS(16, 1, type::BYTES)) {                                                     \
      cross_entropy_short<type, 16, 1, 4>(a, scratch);                                                              \
    } else if (a.cols <= LOSS_SHORT_COLS(16, 2, type::BYTES)) {                                                     \
      cross_entropy_short<type, 16, 2, 2>(a, scratch);                                                              \
    } else {                                                                                                        \
      cross_entropy_short<type, 16, 4, 1>(a, scratch);                                                              \
    }                                                                                                               \
  }                                                                                                                 \
  RDNA_KERNEL_RESIDENT(LOSS_THREADS, 4) cross_entropy_backward_short_##type(struct cross_entropy_backward_args a) { \
    if (a.cols <= LOSS_SHORT_COLS(4, 1, type::BYTES)) {                                                             \
      cross_entropy_backward_short<type, 4, 1, 1>(a);                                                               \
    } else if (a.cols <= LOSS_SHORT_COLS(16, 1, type::BYTES)) {                                                     \
      cross_entropy_backward_short<type, 16, 1, 4>(a);                                                              \
    } else if (a.cols <= LOSS_SHORT_COLS(16, 2, type::BYTES)) {                                                     \
      cross_entropy_backward_short<type, 16, 2, 2>(a);                                                              \
    } else {                                                                                                        \
      cross_entropy_backward_short<type, 16, 4, 1>(a);                                                              \
    }                                                                                                               \
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
  store_float(a.out, 0, a.dtype, a.weights ? a.scale * sum / weight : a.scale * sum);
  if (a.total) *a.total = weight;
}

RDNA_KERNEL(LOSS_THREADS) loss_store(struct loss_store_args a) {
  for (int64_t i = (int64_t)group_id_x() * threads + thread_id(); i < a.count;
       i += (int64_t)group_count_x() * threads) {
    store_float(a.out, (uint64_t)i, a.dtype, a.values[i]);
  }
}
