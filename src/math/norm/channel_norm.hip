/* Batch and group norm; see channel_norm_kernels.h. Where a column's values lie in runs, a wave or a group takes a
 * slice of one; where they do not (channels last), threads side by side take 16 bytes of columns each, and those in
 * rows above each other are joined at the end. 64 bytes a thread are on their way at once. */
#include "kernel/arguments.h"
#include "math/common/device/doubles.h"
#include "math/common/device/join.h"
#include "math/norm/channel_norm_kernels.h"

static constexpr uint32_t threads = CHANNEL_THREADS;
static constexpr uint32_t ahead = CHANNEL_AHEAD;

template <typename acc>
struct gradient_sums {
  acc d = 0, dy = 0;
  RDNA_DEVICE void join(gradient_sums &s, const gradient_sums &o) { s.d += o.d, s.dy += o.dy; }
};

/* What is reduced: |count| values of one column at a time. */
template <typename type>
struct moments_of {
  typedef typename computed<type>::in acc;
  typedef moments<acc> state;
  enum { READS_DOUT = 0 };
  template <int count>
  RDNA_DEVICE void add(state &s, const acc *x, const acc *dout, acc mean) {
    state::template add<count>(s, x);
  }
  RDNA_DEVICE void parts(const state &s, acc *out) { out[0] = s.mean, out[1] = s.squares; }
};
template <typename type>
struct gradients_of {
  typedef typename computed<type>::in acc;
  typedef gradient_sums<acc> state;
  enum { READS_DOUT = 1 };
  template <int count>
  RDNA_DEVICE void add(state &s, const acc *x, const acc *dout, acc mean) {
    acc d = 0, dy = 0;
#pragma unroll
    for (int k = 0; k < count; k++) d += dout[k], dy = fused(dout[k], x[k] - mean, dy);
    s.d += d, s.dy += dy;
  }
  RDNA_DEVICE void parts(const state &s, acc *out) { out[0] = s.d, out[1] = s.dy; }
};

/* Values before the first multiple of 16 bytes, at most |count|. */
template <typename type>
RDNA_DEVICE uint32_t values_to_16(uint64_t address, uint64_t count) {
  uint32_t head = (uint32_t)(-address & 15) / type::BYTES;
  return head < count ? head : (uint32_t)count;
}

template <typename type>
RDNA_DEVICE uint4 vector_at(const void *p, uint64_t i) {
  return load_as<uint4>((const char *)p + i * type::BYTES);
}

/* Thread |rank| of |team| takes its share of values [0, count) at x and dout, which are equally far from 16 bytes if
 * |wide|. */
template <typename type, typename what, bool wide>
RDNA_DEVICE void partial_run(const char *x, const char *dout, uint64_t count, uint32_t rank, uint32_t team,
                             typename what::acc mean, typename what::state &s) {
  typedef typename what::acc acc;
  constexpr uint32_t size = type::IN_16;
  if constexpr (!wide) {
#pragma nounroll
    for (uint64_t i = rank; i < count; i += team) {
      acc v = type::load(x, i), d = what::READS_DOUT ? type::load(dout, i) : (acc)0;
      what::template add<1>(s, &v, &d, mean);
    }
    return;
  }
  uint64_t head = values_to_16<type>(address_of(x), count), end = head + (count - head) / size * size, i;
  acc v[ahead * size], d[ahead * size];
#pragma nounroll
  for (i = head + rank * size; i + (ahead - 1) * team * size < end; i += ahead * team * size) {
    uint4 x_bits[ahead], d_bits[ahead];
#pragma unroll
    for (uint32_t j = 0; j < ahead; j++) {
      x_bits[j] = vector_at<type>(x, i + j * team * size);
      if constexpr (what::READS_DOUT) d_bits[j] = vector_at<type>(dout, i + j * team * size);
    }
#pragma unroll
    for (uint32_t j = 0; j < ahead; j++) {
      type::unpack(x_bits[j], v + j * size);
      if constexpr (what::READS_DOUT) type::unpack(d_bits[j], d + j * size);
    }
    what::template add<ahead * size>(s, v, d, mean);
  }
  uint4 x_rest[ahead - 1], d_rest[ahead - 1];
#pragma unroll
  for (uint32_t j = 0; j < ahead - 1; j++) {
    if (i + j * team * size >= end) continue;
    x_rest[j] = vector_at<type>(x, i + j * team * size);
    if constexpr (what::READS_DOUT) d_rest[j] = vector_at<type>(dout, i + j * team * size);
  }
#pragma unroll
  for (uint32_t j = 0; j < ahead - 1; j++) {
    if (i + j * team * size >= end) continue;
    type::unpack(x_rest[j], v);
    if constexpr (what::READS_DOUT) type::unpack(d_rest[j], d);
    what::template add<size>(s, v, d, mean);
  }
  uint64_t loose = head + count - end;
#pragma nounroll
  for (i = rank; i < loose; i += team) {
    uint64_t at = i < head ? i : end + i - head;
    v[0] = type::load(x, at);
    if constexpr (what::READS_DOUT) d[0] = type::load(dout, at);
    what::template add<1>(s, v, d, mean);
  }
}

/* Where a slice's parts go; |all| slices of all columns. */
template <typename what>
RDNA_DEVICE void write_partial(const channel_partial_args &a, uint64_t at, const typename what::state &s) {
  typename what::acc parts[2];
  uint64_t all = (uint64_t)a.outer * a.slices.slices * a.cols;
  what::parts(s, parts);
  ((typename what::acc *)a.partial)[at] = parts[0];
  ((typename what::acc *)a.partial)[all + at] = parts[1];
}

template <typename type, typename what>
RDNA_DEVICE typename what::acc mean_at(const channel_partial_args &a, uint32_t outer, uint32_t col) {
  if constexpr (!what::READS_DOUT) return 0;
  uint32_t width = a.width;
  return load_or_f32<type>(a.mean, (uint64_t)outer * (a.cols / width) + col / width, a.mean_f32);
}

template <typename type, typename what, bool wide>
RDNA_DEVICE void partial_runs(const channel_partial_args &a, typename what::state *scratch) {
  uint32_t cols = a.cols, slices = a.slices.slices, units = a.outer * slices * cols;
  uint32_t at_once = a.wave ? threads / WAVE_SIZE : 1, own = a.wave ? wave_id() : 0;
  uint32_t rank = a.wave ? lane_id() : thread_id(), workers = a.wave ? WAVE_SIZE : threads;
  uint32_t teams = workers / a.team, member = rank & (a.team - 1), index = rank / a.team;
  for (uint32_t unit = group_id_x() * at_once + own; unit < units; unit += group_count_x() * at_once) {
    const channel_partial_args &now = arguments_again_wide(a);
    uint32_t block = unit / cols, col = unit - block * cols, outer = slices == 1 ? block : block / slices;
    channel_slice slice = channel_slice_at(&now.slices, block - outer * slices);
    typename what::acc mean = mean_at<type, what>(now, outer, col);
    typename what::state s;
    for (uint32_t run = slice.run + index; run < slice.run_end && slice.begin < slice.end; run += teams) {
      uint64_t at =
          (((uint64_t)outer * now.slices.runs + run) * cols + col) * (uint64_t)now.slices.len + (uint64_t)slice.begin;
      partial_run<type, what, wide>((const char *)now.x + at * type::BYTES, (const char *)now.dout + at * type::BYTES,
                                    (uint64_t)(slice.end - slice.begin), member, a.team, mean, s);
    }
    s = wave_join(s);
    if (!a.wave) s = group_join<threads>(s, scratch);
    if (rank == 0) write_partial<what>(now, unit, s);
  }
}

/* Columns side by side; len is 1. */
template <typename type, typename what, bool wide>
RDNA_DEVICE void partial_columns(const channel_partial_args &a, typename what::state *scratch) {
  typedef typename what::acc acc;
  typedef typename what::state state;
  constexpr uint32_t size = wide ? type::IN_16 : 1;
  uint32_t cols = a.cols, slices = a.slices.slices, tile = a.team * size;
  uint32_t tiles = (cols + tile - 1) / tile, units = a.outer * slices * tiles;
  uint32_t member = thread_id() & (a.team - 1), index = thread_id() / a.team, step = threads / a.team;
  for (uint32_t unit = group_id_x(); unit < units; unit += group_count_x()) {
    uint32_t block = unit / tiles, col = (unit - block * tiles) * tile + member * size, outer = block / slices;
    channel_slice slice = channel_slice_at(&a.slices, block - outer * slices);
    state s[size];
    acc mean[size];
    if (col < cols) {
#pragma unroll
      for (uint32_t k = 0; k < size; k++) mean[k] = mean_at<type, what>(a, outer, col + k);
      uint32_t run = slice.run + index;
      uint64_t base = (uint64_t)outer * a.slices.runs * cols + col;
      for (; run + (ahead - 1) * step < slice.run_end; run += ahead * step) {
        acc v[ahead][size], d[ahead][size];
        if constexpr (wide) {
          uint4 x_bits[ahead], d_bits[ahead];
#pragma unroll
          for (uint32_t j = 0; j < ahead; j++) {
            x_bits[j] = vector_at<type>(a.x, base + (uint64_t)(run + j * step) * cols);
            if constexpr (what::READS_DOUT) {
              d_bits[j] = vector_at<type>(a.dout, base + (uint64_t)(run + j * step) * cols);
            }
          }
#pragma unroll
          for (uint32_t j = 0; j < ahead; j++) {
            type::unpack(x_bits[j], v[j]);
            if constexpr (what::READS_DOUT) type::unpack(d_bits[j], d[j]);
          }
        } else {
#pragma unroll
          for (uint32_t j = 0; j < ahead; j++) {
            v[j][0] = type::load(a.x, base + (uint64_t)(run + j * step) * cols);
            if constexpr (what::READS_DOUT) d[j][0] = type::load(a.dout, base + (uint64_t)(run + j * step) * cols);
          }
        }
#pragma unroll
        for (uint32_t k = 0; k < size; k++) {
          acc x_col[ahead], d_col[ahead];
#pragma unroll
          for (uint32_t j = 0; j < ahead; j++) x_col[j] = v[j][k], d_col[j] = what::READS_DOUT ? d[j][k] : (acc)0;
          what::template add<ahead>(s[k], x_col, d_col, mean[k]);
        }
      }
      for (; run < slice.run_end; run += step) {
        acc v[size], d[size];
        uint64_t at = base + (uint64_t)run * cols;
        if constexpr (wide) {
          type::load_16((const char *)a.x + at * type::BYTES, v);
          if constexpr (what::READS_DOUT) type::load_16((const char *)a.dout + at * type::BYTES, d);
        } else {
          v[0] = type::load(a.x, at);
          if constexpr (what::READS_DOUT) d[0] = type::load(a.dout, at);
        }
#pragma unroll
        for (uint32_t k = 0; k < size; k++) what::template add<1>(s[k], v + k, d + k, mean[k]);
      }
    }
#pragma unroll
    for (uint32_t k = 0; k < size; k++) {
      group_barrier();
      scratch[thread_id()] = s[k];
      for (uint32_t half = step / 2; half > 0; half /= 2) {
        group_barrier();
        if (index < half) {
          state::join(s[k], scratch[thread_id() + half * a.team]);
          scratch[thread_id()] = s[k];
        }
      }
      if (index == 0 && col < cols) write_partial<what>(a, (uint64_t)block * cols + col + k, s[k]);
    }
  }
}

template <typename type, typename what>
RDNA_DEVICE void partial_runs(const channel_partial_args &a, typename what::state *scratch) {
  if (all_16(what::READS_DOUT ? address_of(a.x) ^ address_of(a.dout) : 0)) {
    partial_runs<type, what, true>(a, scratch);
  } else {
    partial_runs<type, what, false>(a, scratch);
  }
}
template <typename type, typename what>
RDNA_DEVICE void partial_columns(const channel_partial_args &a, typename what::state *scratch) {
  uint64_t dout = what::READS_DOUT ? address_of(a.dout) : 0;
  if (all_16(address_of(a.x) | dout | (uint64_t)a.cols * type::BYTES)) {
    partial_columns<type, what, true>(a, scratch);
  } else {
    partial_columns<type, what, false>(a, scratch);
  }
}

/* Joins the ways of each output; the result is way 0's. */
template <typename state>
RDNA_DEVICE void join_ways(state &s, state *scratch) {
  scratch[thread_id()] = s;
  for (uint32_t half = CHANNEL_END_WAYS / 2; half > 0; half /= 2) {
    group_barrier();
    if (thread_id() < half * CHANNEL_END_OUTS) {
      state::join(s, scratch[thread_id() + half * CHANNEL_END_OUTS]);
      scratch[thread_id()] = s;
    }
  }
}

template <typename acc>
RDNA_DEVICE acc inverse_of(uint32_t variance, acc spread, double epsilon) {
  return variance ? 1 / root(spread + (acc)epsilon) : spread;
}

template <typename acc>
RDNA_DEVICE void moments_end(const channel_moments_end_args &a, moments<acc> *scratch) {
  uint32_t width = a.width, slices = a.slices.slices, groups = a.cols / width;
  uint32_t out = group_id_x() * CHANNEL_END_OUTS + thread_id() % CHANNEL_END_OUTS, outs = a.outer * groups;
  uint32_t outer = out / groups;
  const acc *means = (const acc *)a.partial, *squares = means + (uint64_t)a.outer * a.slices.slices * a.cols;
  moments<acc> s;
  if (out < outs) {
#pragma unroll 4
    for (uint32_t i = thread_id() / CHANNEL_END_OUTS; i < slices * width; i += CHANNEL_END_WAYS) {
      uint32_t slice = i / width;
      uint64_t at = ((uint64_t)outer * slices + slice) * a.cols + (out - outer * groups) * width + (i - slice * width);
      moments<acc> o;
      o.mean = means[at], o.squares = squares[at];
      o.n = (acc)channel_slice_count(channel_slice_at(&a.slices, slice));
      moments<acc>::join(s, o);
    }
  }
  join_ways(s, scratch);
  if (thread_id() >= CHANNEL_END_OUTS || out >= outs) return;
  ((acc *)a.mean)[out] = s.mean;
  ((acc *)a.inverse)[out] = inverse_of<acc>(1, s.squares / s.n, a.epsilon);
  if (s.n == 0) return;
  acc momentum = (acc)a.momentum;
  if (a.running_mean) {
    acc old = load_any<acc>(a.running_mean, out, a.running_dtype);
    store_any<acc>(a.running_mean, out, a.running_dtype, (1 - momentum) * old + momentum * s.mean);
  }
  if (a.running_var) {
    acc old = load_any<acc>(a.running_var, out, a.running_dtype);
    store_any<acc>(a.running_var, out, a.running_dtype, (1 - momentum) * old + momentum * (s.squares / (s.n - 1)));
  }
}

template <typename acc>
RDNA_DEVICE void slopes_end(const channel_gradients_end_args &a, gradient_sums<acc> *scratch) {
  uint32_t width = a.width, slices = a.slices.slices, groups = a.cols / width;
  uint32_t out = group_id_x() * CHANNEL_END_OUTS + thread_id() % CHANNEL_END_OUTS, outs = a.outer * groups;
  uint32_t outer = out / groups;
  const acc *d = (const acc *)a.partial, *dy = d + (uint64_t)a.outer * a.slices.slices * a.cols;
  gradient_sums<acc> s;
  if (out < outs) {
#pragma unroll 4
    for (uint32_t i = thread_id() / CHANNEL_END_OUTS; i < slices * width; i += CHANNEL_END_WAYS) {
      uint32_t slice = i / width, col = (out - outer * groups) * width + (i - slice * width);
      uint64_t at = ((uint64_t)outer * slices + slice) * a.cols + col;
      acc weight = a.weight ? load_any<acc>(a.weight, col, a.weight_dtype) : (acc)1;
      s.d += weight * d[at], s.dy += weight * dy[at];
    }
  }
  join_ways(s, scratch);
  if (thread_id() >= CHANNEL_END_OUTS || out >= outs) return;
  acc inverse = inverse_of<acc>(a.variance, load_any<acc>(a.spread, out, a.spread_dtype), a.epsilon);
  acc n = (acc)((int64_t)a.width * a.slices.runs * a.slices.len);
  ((acc *)a.slope)[out] = -(s.d / n * inverse);
  ((acc *)a.slope)[outs + out] = -(s.dy / n * inverse * inverse * inverse);
}

template <typename acc>
RDNA_DEVICE void weights_end(const channel_gradients_end_args &a, gradient_sums<acc> *scratch) {
  uint32_t width = a.width, slices = a.slices.slices, cols = a.cols;
  uint32_t col = (group_id_x() - a.slope_groups) * CHANNEL_END_OUTS + thread_id() % CHANNEL_END_OUTS;
  const acc *d = (const acc *)a.partial, *dy = d + (uint64_t)a.outer * a.slices.slices * a.cols;
  gradient_sums<acc> s;
  if (col < cols) {
#pragma unroll 4
    for (uint32_t i = thread_id() / CHANNEL_END_OUTS; i < a.outer * slices; i += CHANNEL_END_WAYS) {
      uint32_t of = i / slices * (cols / width) + col / width;
      acc inverse = inverse_of<acc>(a.variance, load_any<acc>(a.spread, of, a.spread_dtype), a.epsilon);
      uint64_t at = (uint64_t)i * cols + col;
      s.d += d[at], s.dy += inverse * dy[at];
    }
  }
  join_ways(s, scratch);
  if (thread_id() >= CHANNEL_END_OUTS || col >= cols) return;
  if (a.dweight) store_any<acc>(a.dweight, col, a.gradient_dtype, s.dy);
  if (a.dbias) store_any<acc>(a.dbias, col, a.gradient_dtype, s.d);
}

/* |count| neighbouring values of what the columns have, of |type| or f32. */
template <typename type, uint32_t count, typename acc>
RDNA_DEVICE void load_row(const void *p, uint32_t i, uint32_t is_f32, acc *v) {
  if (is_f32) {
#pragma unroll
    for (uint32_t k = 0; k < count; k++) v[k] = f32::load(p, i + k);
  } else {
#pragma unroll
    for (uint32_t k = 0; k < count; k++) v[k] = type::load(p, i + k);
  }
}

/* What is computed of each value, with what a column has of it; found for |count| neighbouring columns. */
template <typename type>
struct scale_of {
  typedef typename computed<type>::in acc;
  acc mean, scale, shift;
  template <uint32_t count>
  RDNA_DEVICE void find(const channel_map_args &a, uint32_t outer, uint32_t col, scale_of *c) {
    uint32_t width = a.width, first = outer * (a.cols / width);
#pragma unroll
    for (uint32_t k = 0; k < count; k++) {
      uint32_t i = first + (col + k) / width;
      c[k].mean = load_or_f32<type>(a.mean, i, a.statistic_f32);
      c[k].scale = inverse_of<acc>(a.variance, load_or_f32<type>(a.spread, i, a.statistic_f32), a.epsilon);
      c[k].shift = 0;
    }
    if (a.weight) {
      acc weight[count];
      load_row<type, count>(a.weight, col, a.weight_f32, weight);
#pragma unroll
      for (uint32_t k = 0; k < count; k++) c[k].scale *= weight[k];
    }
    if (a.bias) {
      acc bias[count];
      load_row<type, count>(a.bias, col, a.weight_f32, bias);
#pragma unroll
      for (uint32_t k = 0; k < count; k++) c[k].shift = bias[k];
    }
  }
  RDNA_DEVICE acc map(const channel_map_args &a, const scale_of &c, acc x, acc other) {
    return fused(x - c.mean, c.scale, c.shift) + other;
  }
  template <int count>
  RDNA_DEVICE void finish(const channel_map_args &a, acc *v) {
    if (!a.relu) return;
#pragma unroll
    for (int k = 0; k < count; k++) v[k] = v[k] < 0 ? 0 : v[k]; /* a NaN stays one */
  }
};
template <typename type>
struct gradient_of {
  typedef typename computed<type>::in acc;
  acc mean, scale, slope, shift;
  template <uint32_t count>
  RDNA_DEVICE void find(const channel_map_args &a, uint32_t outer, uint32_t col, gradient_of *c) {
    uint32_t width = a.width, groups = a.cols / width, first = outer * groups;
#pragma unroll
    for (uint32_t k = 0; k < count; k++) {
      uint32_t i = first + (col + k) / width;
      c[k].mean = load_or_f32<type>(a.mean, i, a.statistic_f32);
      c[k].scale = inverse_of<acc>(a.variance, load_or_f32<type>(a.spread, i, a.statistic_f32), a.epsilon);
      c[k].shift = a.slope ? ((const acc *)a.slope)[i] : (acc)0;
      c[k].slope = a.slope ? ((const acc *)a.slope)[a.outer * groups + i] : (acc)0;
    }
    if (a.weight) {
      acc weight[count];
      load_row<type, count>(a.weight, col, a.weight_f32, weight);
#pragma unroll
      for (uint32_t k = 0; k < count; k++) c[k].scale *= weight[k];
    }
  }
  RDNA_DEVICE acc map(const channel_map_args &a, const gradient_of &c, acc dout, acc x) {
    return a.slope ? fused(dout, c.scale, fused(x - c.mean, c.slope, c.shift)) : dout * c.scale;
  }
  template <int count>
  RDNA_DEVICE void finish(const channel_map_args &a, acc *v) {}
};

template <typename type, typename what>
RDNA_DEVICE void map_vector(const channel_map_args &a, const what *c, bool same, uint4 first, uint4 second, char *out) {
  typedef typename what::acc acc;
  acc v[type::IN_16], w[type::IN_16];
  type::unpack(first, v);
  type::unpack(second, w);
#pragma unroll
  for (int k = 0; k < type::IN_16; k++) v[k] = what::map(a, c[same ? 0 : k], v[k], w[k]);
  what::template finish<type::IN_16>(a, v);
  type::store_16(out, v);
}

/* Tensors from a place on. Bytes beyond it are counted in 32 bits, for which there are cheaper addresses. */
struct map_tensors {
  const char *first, *second;
  char *out;
};
template <typename type>
RDNA_DEVICE map_tensors map_from(const channel_map_args &a, uint64_t at) {
  at *= type::BYTES;
  return {(const char *)a.first + at, a.second ? (const char *)a.second + at : NULL, (char *)a.out + at};
}

template <typename type, typename what>
RDNA_DEVICE void map_one(const channel_map_args &a, const what &c, const map_tensors &t, uint32_t i) {
  typedef typename what::acc acc;
  acc v = type::load(t.first, i), w = t.second ? type::load(t.second, i) : (acc)0;
  v = what::map(a, c, v, w);
  what::template finish<1>(a, &v);
  type::store(t.out, i, v);
}

/* |vectors| of them, |step| values apart. */
template <typename type, typename what, uint32_t vectors>
RDNA_DEVICE void map_vectors(const channel_map_args &a, const what *c, uint64_t at, uint64_t step) {
  uint4 first[vectors], second[vectors];
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    first[j] = vector_at<type>(a.first, at + j * step);
    second[j] = a.second ? vector_at<type>(a.second, at + j * step) : uint4{0, 0, 0, 0};
  }
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    map_vector<type>(a, c, false, first[j], second[j], (char *)a.out + (at + j * step) * type::BYTES);
  }
}

/* As many of a thread's next vectors as there are, |step| values apart; none at |end| or beyond. */
template <typename type>
struct map_ahead {
  uint4 first[ahead], second[ahead];
  RDNA_DEVICE void load(map_ahead &m, const map_tensors &t, uint32_t i, uint32_t end, uint32_t step) {
#pragma unroll
    for (uint32_t j = 0; j < ahead; j++) {
      uint32_t at = (i + j * step) * type::BYTES;
      bool some = i + j * step < end;
      m.first[j] = some ? load_as<uint4>(t.first + at) : uint4{0, 0, 0, 0};
      m.second[j] = some && t.second ? load_as<uint4>(t.second + at) : uint4{0, 0, 0, 0};
    }
  }
  template <typename what>
  RDNA_DEVICE void map(const map_ahead &m, const channel_map_args &a, const what *c, const map_tensors &t, uint32_t i,
                       uint32_t end, uint32_t step) {
#pragma unroll
    for (uint32_t j = 0; j < ahead; j++) {
      uint32_t at = (i + j * step) * type::BYTES;
      if (i + j * step < end) map_vector<type>(a, c, true, m.first[j], m.second[j], t.out + at);
    }
  }
};

/* Backwards, as what was read last is likeliest to be in a cache still. The values of a group are fewer than 2^27. */
template <typename type, typename what, bool wide>
RDNA_DEVICE void map_runs(const channel_map_args &a) {
  constexpr uint32_t size = type::IN_16;
  uint32_t cols = a.cols, runs = a.outer * a.runs * a.cols, teams = threads / a.team;
  uint32_t parts = a.parts, units = (runs + teams - 1) / teams * parts, outers = a.runs * a.cols;
  uint32_t rank = thread_id() & (a.team - 1), team = a.team, step = team * size;
  for (uint32_t unit = group_id_x(); unit < units; unit += group_count_x()) {
    uint32_t from_end = units - 1 - unit, block = parts == 1 ? from_end : from_end / parts;
    uint32_t run = block * teams + thread_id() / team;
    int64_t begin = (int64_t)(from_end - block * parts) * a.part, left = a.len - begin;
    if (run >= runs || left <= 0) continue;
    map_tensors t = map_from<type>(a, (uint64_t)(block * teams) * (uint64_t)a.len + (uint64_t)begin);
    uint32_t count = (uint32_t)(left < a.part ? left : a.part), from = thread_id() / team * (uint32_t)a.len;
    if constexpr (!wide) {
      what c;
      what::template find<1>(a, run / outers, run % cols, &c);
#pragma nounroll
      for (uint32_t i = rank; i < count; i += team) map_one<type>(a, c, t, from + i);
      continue;
    }
    uint32_t head = values_to_16<type>(address_of(t.out) + from * type::BYTES, count);
    uint32_t end = head + (count - head) / size * size, i = head + rank * size;
    map_ahead<type> m;
    map_ahead<type>::load(m, t, from + i, from + end, step); /* before what the column has, which waits */
    what c;
    what::template find<1>(a, run / outers, run % cols, &c);
    while (i < end) {
      map_ahead<type>::map(m, a, &c, t, from + i, from + end, step);
      i += ahead * step;
      map_ahead<type>::load(m, t, from + i, from + end, step);
    }
    uint32_t loose = head + count - end;
    for (i = rank; i < loose; i += team) map_one<type>(a, c, t, from + (i < head ? i : end + i - head));
  }
}

template <typename type, typename what, bool wide>
RDNA_DEVICE void map_columns(const channel_map_args &a) {
  constexpr uint32_t size = wide ? type::IN_16 : 1, at_once = ahead / 2; /* each column has registers of its own */
  uint32_t cols = a.cols, tile = a.team * size, tiles = (cols + tile - 1) / tile;
  uint32_t blocks = (uint32_t)(((int64_t)a.runs + a.part - 1) / a.part), units = a.outer * blocks * tiles;
  uint32_t member = thread_id() & (a.team - 1), index = thread_id() / a.team, step = threads / a.team;
  for (uint32_t unit = group_id_x(); unit < units; unit += group_count_x()) {
    uint32_t from_end = units - 1 - unit, row = from_end / tiles, col = (from_end - row * tiles) * tile + member * size;
    uint32_t outer = row / blocks;
    if (col >= cols) continue;
    what c[size];
    what::template find<size>(a, outer, col, c);
    uint32_t part = (uint32_t)a.part, run = (row - outer * blocks) * part;
    uint32_t run_end = a.runs - run > part ? run + part : a.runs;
    uint64_t base = (uint64_t)outer * a.runs * cols + col;
    run += index;
    if constexpr (wide) {
      for (; run + (at_once - 1) * step < run_end; run += at_once * step) {
        map_vectors<type, what, at_once>(a, c, base + (uint64_t)run * cols, (uint64_t)step * cols);
      }
      for (; run < run_end; run += step) {
        map_vectors<type, what, 1>(a, c, base + (uint64_t)run * cols, 0);
      }
    } else {
#pragma nounroll
      for (; run < run_end; run += step) {
        map_one<type>(a, c[0], map_from<type>(a, base + (uint64_t)run * cols), 0);
      }
    }
  }
}

template <typename type, typename what>
RDNA_DEVICE void map_runs(const channel_map_args &a) {
  uint64_t out = address_of(a.out), second = a.second ? address_of(a.second) : out;
  if (all_16((out ^ address_of(a.first)) | (out ^ second))) {
    map_runs<type, what, true>(a);
  } else {
    map_runs<type, what, false>(a);
  }
}
template <typename type, typename what>
RDNA_DEVICE void map_columns(const channel_map_args &a) {
  if (all_16(address_of(a.out) | address_of(a.first) | address_of(a.second) | (uint64_t)a.cols * type::BYTES)) {
    map_columns<type, what, true>(a);
  } else {
    map_columns<type, what, false>(a);
  }
}

#define CHANNEL_PARTIAL(name, layout, type, what)                                                          \
  RDNA_KERNEL(CHANNEL_THREADS) channel_partial_##name##_##layout##_##type(struct channel_partial_args a) { \
    RDNA_SHARED static uint64_t scratch[threads * sizeof(what<type>::state) / 8];                          \
    partial_##layout<type, what<type>>(a, (what<type>::state *)scratch);                                   \
  }
#define CHANNEL_MAP(name, layout, type, what)                                                      \
  RDNA_KERNEL(CHANNEL_THREADS) channel_map_##name##_##layout##_##type(struct channel_map_args a) { \
    map_##layout<type, what<type>>(a);                                                             \
  }
#define CHANNEL_LAYOUT(layout, type)                     \
  CHANNEL_PARTIAL(moments, layout, type, moments_of)     \
  CHANNEL_PARTIAL(gradients, layout, type, gradients_of) \
  CHANNEL_MAP(scale, layout, type, scale_of)             \
  CHANNEL_MAP(gradient, layout, type, gradient_of)
#define CHANNEL_TYPE(type)   \
  CHANNEL_LAYOUT(runs, type) \
  CHANNEL_LAYOUT(columns, type)
CHANNEL_TYPE(f32)
CHANNEL_TYPE(f16)
CHANNEL_TYPE(bf16)
CHANNEL_TYPE(f64)

#define CHANNEL_END(type, acc)                                                                     \
  RDNA_KERNEL(CHANNEL_THREADS) channel_moments_end_##type(struct channel_moments_end_args a) {     \
    RDNA_SHARED static uint64_t scratch[threads * sizeof(moments<acc>) / 8];                       \
    moments_end<acc>(a, (moments<acc> *)scratch);                                                  \
  }                                                                                                \
  RDNA_KERNEL(CHANNEL_THREADS) channel_gradients_end_##type(struct channel_gradients_end_args a) { \
    RDNA_SHARED static uint64_t scratch[threads * sizeof(gradient_sums<acc>) / 8];                 \
    if (group_id_x() < a.slope_groups) {                                                           \
      slopes_end<acc>(a, (gradient_sums<acc> *)scratch);                                           \
    } else {                                                                                       \
      weights_end<acc>(a, (gradient_sums<acc> *)scratch);                                          \
    }                                                                                              \
  }
CHANNEL_END(f32, float)
CHANNEL_END(f64, double)
