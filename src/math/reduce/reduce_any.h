/* Device code: reductions of tensors of any strides. */
#ifndef RDNA_MATH_REDUCE_REDUCE_ANY_H
#define RDNA_MATH_REDUCE_REDUCE_ANY_H

#include "kernel/arguments.h"
#include "math/common/device/values.h"
#include "math/reduce/reduce_write.h"

/* Loads |width| values and maps them. */
template <typename type, typename state, int width, typename acc>
RDNA_DEVICE void load(const reduce_dims_args &a, int64_t at, acc *v) {
  if constexpr (width == 1) {
    v[0] = type::load(a.x, (uint64_t)at);
  } else {
    type::load_16((const char *)a.x + at * type::BYTES, v);
  }
  map_values<state::KIND, width>(v, a.map, a.parameter);
}

/* Adds |count| vectors of a thread from value |i| on, |step| values apart, all in flight before the first is looked at.
 */
template <int count, typename type, typename state, int width>
RDNA_DEVICE void add_vectors(const reduce_dims_args &a, int64_t base, int64_t i, int64_t step, state &s) {
  uint4 bits[count];
#pragma unroll
  for (int j = 0; j < count; j++) bits[j] = load_as<uint4>((const char *)a.x + (base + i + j * step) * type::BYTES);
#pragma unroll
  for (int j = 0; j < count; j++) {
    typename state::kept v[width];
    type::unpack(bits[j], v);
    map_values<state::KIND, width>(v, a.map, a.parameter);
    state::template add_to<width>(s, v, i + j * step);
  }
}

/* Reduces the share of thread |rank| of |threads| in a slice: pieces of |a.slice| values are dealt to the slices in
 * turn, and of a piece vectors to the threads. */
template <typename type, typename state, int width>
RDNA_DEVICE state share(const reduce_dims_args &a, int64_t out, int64_t slice, int64_t rank, int64_t threads) {
  typename state::kept v[width];
  const int64_t base = place(a.kept_rank, a.kept_size, a.kept_stride, out), step = threads * width;
  state s;
  for (int64_t first = slice * a.slice; first < a.count; first += a.slices * a.slice) {
    int64_t end = first + a.slice < a.count ? first + a.slice : a.count, i = first + rank * width;
    if constexpr (width > 1) {
      if (a.reduced_rank == 1) {
        for (; i + (REDUCE_DIMS_AHEAD - 1) * step < end; i += REDUCE_DIMS_AHEAD * step) {
          add_vectors<REDUCE_DIMS_AHEAD, type, state, width>(a, base, i, step, s);
        }
      }
    }
#pragma nounroll
    for (; i < end; i += step) {
      load<type, state, width>(a, base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, i), v);
      state::template add_to<width>(s, v, i);
    }
  }
  return s;
}

/* Finds which value of its vector the best one is. */
template <typename type, typename state, int width>
RDNA_DEVICE void look_up(const reduce_dims_args &a, int64_t out, state &s) {
  typename state::kept v[width];
  int64_t base = place(a.kept_rank, a.kept_size, a.kept_stride, out);
  if (s.index == INT64_MAX) return;
  load<type, state, width>(a, base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, s.index), v);
  int at = width - 1;
#pragma unroll
  for (int j = width - 2; j >= 0; j--) at = v[j] == s.v || (v[j] != v[j] && s.v != s.v) ? j : at;
  s.index += at;
}

/* An output's slice belongs to a wave or a group. */
template <typename type, typename state, int width>
RDNA_DEVICE void rows(const reduce_dims_args &args, state *scratch) {
  bool wave = args.layout == REDUCE_WAVE;
  int64_t units = args.outs * args.slices, at_once = wave ? REDUCE_DIMS_THREADS / WAVE_SIZE : 1;
  uint32_t rank = wave ? lane_id() : thread_id(), threads = wave ? WAVE_SIZE : REDUCE_DIMS_THREADS;
  for (int64_t unit = group_id_x() * at_once + (wave ? wave_id() : 0); unit < units;
       unit += group_count_x() * at_once) {
    const reduce_dims_args &a = arguments_again_wide(args);
    int64_t slice = a.slices == 1 ? 0 : unit / a.outs, out = unit - slice * a.outs;
    state s = wave_join(share<type, state, width>(a, out, slice, rank, threads));
    if (!wave) s = group_join<REDUCE_DIMS_THREADS>(s, scratch);
    if (rank != 0) continue;
    if constexpr (state::KIND == REDUCE_ARG && width > 1) look_up<type, state, width>(a, out, s);
    write(a, out, slice, s);
  }
}

/* Outputs side by side: lanes take neighbouring outputs, |width| each, and waves take values in turn.
 *
 *                 outputs ->
 *     value 0     wave 0:  lane 0 | lane 1 | ... | lane 31
 *     value 1     wave 1:  lane 0 | lane 1 | ... | lane 31      the waves of an output join through |scratch| */
template <typename type, typename state, int width>
RDNA_DEVICE void columns(const reduce_dims_args &args, state *scratch) {
  typedef typename state::kept acc;
  constexpr int waves = REDUCE_DIMS_THREADS / WAVE_SIZE, tile = WAVE_SIZE * width;
  int64_t tiles = (args.outs + tile - 1) / tile;
  for (int64_t unit = group_id_x(); unit < tiles * args.slices; unit += group_count_x()) {
    const reduce_dims_args &a = arguments_again(args);
    int64_t out = unit % tiles * tile + lane_id() * width, slice = unit / tiles;
    state s[width];
    int64_t base = out < a.outs ? place(a.kept_rank, a.kept_size, a.kept_stride, out) : 0;
    for (int64_t first = slice * a.slice; first < a.count && out < a.outs; first += a.slices * a.slice) {
      int64_t end = first + a.slice < a.count ? first + a.slice : a.count, i = first + wave_id();
      constexpr int ahead = state::PARTS == 1 ? REDUCE_DIMS_AHEAD : 2;
      if constexpr (width > 1) {
        for (; i + (ahead - 1) * waves < end; i += ahead * waves) {
          uint4 bits[ahead];
#pragma unroll
          for (int k = 0; k < ahead; k++) {
            int64_t at = base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, i + k * waves);
            bits[k] = load_as<uint4>((const char *)a.x + at * type::BYTES);
          }
#pragma unroll
          for (int k = 0; k < ahead; k++) {
            acc v[width];
            type::unpack(bits[k], v);
            map_values<state::KIND, width>(v, a.map, a.parameter);
#pragma unroll
            for (int j = 0; j < width; j++) state::template add_to<1>(s[j], v + j, i + k * waves);
          }
        }
      } else {
        for (; i + (ahead - 1) * waves < end; i += ahead * waves) {
          acc v[ahead];
#pragma unroll
          for (int k = 0; k < ahead; k++) {
            int64_t at = base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, i + k * waves);
            load<type, state, 1>(a, at, v + k);
          }
#pragma unroll
          for (int k = 0; k < ahead; k++) state::template add_to<1>(s[0], v + k, i + k * waves);
        }
      }
#pragma nounroll
      for (; i < end; i += waves) {
        acc v[width];
        load<type, state, width>(a, base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, i), v);
#pragma unroll
        for (int j = 0; j < width; j++) state::template add_to<1>(s[j], v + j, i);
      }
    }
    /* Not unrolled: the end of a reduction is long. */
#pragma nounroll
    for (int j = 0; j < width; j++) {
      state next = s[0];
#pragma unroll
      for (int k = 1; k < width; k++) s[k - 1] = s[k];
      group_barrier();
      scratch[thread_id()] = next;
      group_barrier();
      if (thread_id() < WAVE_SIZE && out < a.outs) {
#pragma nounroll
        for (int w = 1; w < waves; w++) state::join(next, scratch[w * WAVE_SIZE + thread_id()]);
        write(a, out + j, slice, next);
      }
    }
  }
}

template <typename type, typename state, int width>
RDNA_DEVICE void reduce_width(const reduce_dims_args &a, void *scratch) {
  if (a.layout == REDUCE_COLUMNS) {
    /* arguments side by side need more scalar registers for their comparisons than there are */
    if constexpr (state::KIND != REDUCE_ARG || width == 1) columns<type, state, width>(a, (state *)scratch);
  } else {
    rows<type, state, width>(a, (state *)scratch);
  }
}

template <typename type, typename state>
RDNA_DEVICE void reduce_any(const reduce_dims_args &a, void *scratch) {
  if constexpr (__is_same(typename state::kept, float)) {
    if (a.vector) {
      reduce_width<type, state, type::IN_16>(a, scratch);
      return;
    }
  }
  reduce_width<type, state, 1>(a, scratch);
}

#endif
