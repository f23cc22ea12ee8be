/* Device code: channel_partial_*, the reductions of batch and group norm over slices of columns. */
#ifndef RDNA_MATH_NORM_CHANNEL_NORM_PARTIAL_H
#define RDNA_MATH_NORM_CHANNEL_NORM_PARTIAL_H

#include "math/common/device/join.h"
#include "math/norm/channel_norm_values.h"

/* Sums of dout, and of dout * (x - mean). */
template <typename acc>
struct gradient_sums {
  acc d = 0, dy = 0;
  RDNA_DEVICE void join(gradient_sums &s, const gradient_sums &o) { s.d += o.d, s.dy += o.dy; }
};

/* What is reduced, |what| below: its state, add(|count| values of one column), and the two parts that are stored. */
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

/* Adds the share of thread |rank| of |team| in values [0, count) of x and dout. If |wide| both are equally far from 16
 * bytes, and their vectors are dealt to the threads in turn, |ahead| of a thread in flight at once:
 *
 *     head | thread 0 | 1 | 2 | 3 | 0 | 1 | 2 | 3 | ... | tail      head and tail value by value */
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

/* Stores the two parts of a slice: |partial| is the first part of all slices of all columns, then the second. */
template <typename what>
RDNA_DEVICE void write_partial(const channel_partial_args &a, uint64_t at, const typename what::state &s) {
  typename what::acc parts[2];
  uint64_t all = (uint64_t)a.outer * a.slices.slices * a.cols;
  what::parts(s, parts);
  ((typename what::acc *)a.partial)[at] = parts[0];
  ((typename what::acc *)a.partial)[all + at] = parts[1];
}

/* The mean of a column's statistic, for what reads dout. */
template <typename type, typename what>
RDNA_DEVICE typename what::acc mean_at(const channel_partial_args &a, uint32_t outer, uint32_t col) {
  if constexpr (!what::READS_DOUT) return 0;
  uint32_t width = a.width;
  return load_or_f32<type>(a.mean, (uint64_t)outer * (a.cols / width) + col / width, a.mean_f32);
}

/* Slices of columns whose values lie in runs. A wave or a group takes a slice of a column in turn, and of that its
 * teams take the runs in turn. */
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

/* Slices of columns that lie side by side (len is 1). A group takes a slice of a tile of columns in turn:
 *
 *              columns ->
 *     run 0    thread 0 | thread 1 | thread 2 | thread 3      a team, here of 4: 16 bytes each if |wide|, else a value
 *     run 1    thread 4 | thread 5 | thread 6 | thread 7      the next one takes the run below
 *
 * At the end the threads of a column join by halves through |scratch|. */
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

#endif
