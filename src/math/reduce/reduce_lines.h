/* Device code: reductions of dense rows at any alignment, for the kinds that are asked for often. */
#ifndef RDNA_MATH_REDUCE_REDUCE_LINES_H
#define RDNA_MATH_REDUCE_REDUCE_LINES_H

#include "kernel/arguments.h"
#include "math/common/device/values.h"
#include "math/reduce/reduce_write.h"

/* The maps that lines have are of signs, done to the bits of a vector's floats, whose sign bits are |sign|; and
 * squares. */
RDNA_DEVICE uint32_t mapped(uint32_t bits, uint32_t sign, int32_t map) {
  return map == REDUCE_ABS ? bits & ~sign : map == REDUCE_REVERSE ? bits ^ sign : bits;
}
template <typename type>
RDNA_DEVICE uint4 mapped(uint4 bits, int32_t map) {
  constexpr uint32_t sign = type::BYTES == 4 ? 0x80000000 : 0x80008000;
  return uint4{mapped(bits.x, sign, map), mapped(bits.y, sign, map), mapped(bits.z, sign, map),
               mapped(bits.w, sign, map)};
}

/* What a thread keeps of the vectors of a line: a state. */
template <typename type, typename state>
struct line_of_vectors {
  state s;
  RDNA_DEVICE void add(line_of_vectors &l, const reduce_dims_args &a, uint4 bits, uint32_t) {
    typename state::kept v[type::IN_16];
    type::unpack(state::KIND == REDUCE_VAR || state::KIND == REDUCE_LSE ? bits : mapped<type>(bits, a.map), v);
    if constexpr (state::KIND == REDUCE_SUM) {
      bool square = a.map == REDUCE_SQUARE;
#pragma unroll
      for (int j = 0; j < type::IN_16; j++) v[j] *= square ? v[j] : 1;
    }
    state::template add_to<type::IN_16>(l.s, v, 0);
  }
  RDNA_DEVICE void join_to(state &s, const line_of_vectors &l, const reduce_dims_args &, int64_t, uint32_t) {
    state::join(s, l.s);
  }
};

/* For arguments it keeps the vector that has the best value, and its number among the thread's. Which of its values
 * that was is found once, at the end. */
template <typename type>
struct line_of_vectors<type, arg_of<float>> {
  enum { NONE = 0xffffffff };
  uint4 held = {0, 0, 0, 0};
  float best = limits<float>::lowest();
  uint32_t number = NONE;
  RDNA_DEVICE void add(line_of_vectors &l, const reduce_dims_args &a, uint4 bits, uint32_t number) {
    float v[type::IN_16];
    bits = mapped<type>(bits, a.map);
    type::unpack(bits, v);
#pragma unroll
    for (int by = 1; by < type::IN_16; by *= 2)
#pragma unroll
      for (int k = 0; k + by < type::IN_16; k += 2 * by) v[k] = larger(v[k], v[k + by]);
    bool before = v[0] > l.best || (v[0] != v[0] && l.best == l.best) || l.number == NONE;
    l.best = before ? v[0] : l.best;
    l.number = before ? number : l.number;
#pragma unroll
    for (int k = 0; k < 4; k++) l.held[k] = before ? bits[k] : l.held[k];
  }
  RDNA_DEVICE void join_to(arg_of<float> &s, const line_of_vectors &l, const reduce_dims_args &a, int64_t first,
                           uint32_t apart) {
    float v[type::IN_16];
    if (l.number == NONE) return;
    type::unpack(l.held, v);
    int lane = type::IN_16 - 1;
#pragma unroll
    for (int j = type::IN_16 - 2; j >= 0; j--) lane = v[j] == l.best || (v[j] != v[j] && l.best != l.best) ? j : lane;
    arg_of<float> found = {l.best, first + (int64_t)l.number * apart + lane};
    arg_of<float>::join(s, found);
  }
};

/* Adds |count| vectors of a thread from |p| on, |step| bytes apart, as far as they begin before |end|; all are in
 * flight before the first is looked at, which is number |number|. */
template <int count, typename type, typename state>
RDNA_DEVICE void add_vectors(const reduce_dims_args &a, const char *p, const char *end, uint32_t step, uint32_t number,
                             line_of_vectors<type, state> &line) {
  uint4 bits[count];
#pragma unroll
  for (uint32_t j = 0; j < count; j++) {
    bits[j] = uint4{0, 0, 0, 0};
    if (p + j * step < end) bits[j] = load_as<uint4>(p + j * step);
  }
#pragma unroll
  for (uint32_t j = 0; j < count; j++) {
    if (p + j * step >= end) break;
    line_of_vectors<type, state>::add(line, a, again(bits[j]), number + j);
  }
}

/* Adds values [first, end) of a dense row: single values up to a multiple of 16 bytes, vectors, and what is left. */
template <typename type, typename state>
RDNA_DEVICE void add_line(const reduce_dims_args &a, int64_t base, int64_t first, int64_t end, uint32_t rank,
                          uint32_t threads, state &s) {
  constexpr uint32_t width = type::IN_16, ahead = REDUCE_DIMS_AHEAD;
  const char *p = (const char *)a.x + (base + first) * type::BYTES;
  int64_t count = end - first, before = (int64_t)((-address_of(p) & 15) / type::BYTES);
  if (before > count) before = count;
  const uint32_t after = (uint32_t)(count - before) % width, step = threads * 16;
  const char *last = p + (count - after) * type::BYTES;
  line_of_vectors<type, state> line;
  uint32_t number = 0;
#pragma nounroll
  for (p += (before + rank * width) * type::BYTES; p < last; p += ahead * step) {
    add_vectors<ahead, type, state>(a, p, last, step, number, line);
    number += ahead;
  }
  line_of_vectors<type, state>::join_to(s, line, a, first + before + rank * width, threads * width);
  /* Of equal arguments the lower wins in a join, whichever is seen first. */
#pragma nounroll
  for (uint32_t k = rank; k < (uint32_t)before + after; k += threads) {
    int64_t at = k < before ? first + k : end - after + (k - before);
    float v = type::load(a.x, (uint64_t)(base + at));
    state one;
    if constexpr (state::KIND != REDUCE_VAR && state::KIND != REDUCE_LSE)
      v = bits_as<float>(mapped(bits_as<uint32_t>(v), 0x80000000, a.map));
    if (state::KIND == REDUCE_SUM && a.map == REDUCE_SQUARE) v *= v;
    state::template add_to<1>(one, &v, at);
    state::join(s, one);
  }
}

/* Each output belongs to |a.team| lanes of a wave, or to a group. */
template <typename type, typename state>
RDNA_DEVICE void lines(const reduce_dims_args &args, void *scratch) {
  const bool group = args.layout == REDUCE_GROUP;
  const uint32_t threads = group ? REDUCE_DIMS_THREADS : (uint32_t)args.team, rank = thread_id() & (threads - 1);
  const int64_t units = args.outs * args.slices, at_once = REDUCE_DIMS_THREADS / threads;
  for (int64_t first = group_id_x() * at_once; first < units; first += group_count_x() * at_once) {
    const reduce_dims_args &a = arguments_again_wide(args);
    int64_t unit = first + thread_id() / threads;
    int64_t slice = a.slices == 1 ? 0 : (uint32_t)unit / (uint32_t)a.outs, out = unit - slice * a.outs;
    int64_t base = unit < units ? place(a.kept_rank, a.kept_size, a.kept_stride, out) : 0;
    state s;
#pragma nounroll
    for (int64_t i = slice * a.slice; i < a.count && unit < units; i += a.slices * a.slice) {
      add_line<type, state>(a, base, i, i + a.slice < a.count ? i + a.slice : a.count, rank, threads, s);
    }
    s = wave_join(s, threads);
    if (group) s = group_join<REDUCE_DIMS_THREADS>(s, (state *)scratch);
    if (rank != 0 || unit >= units) continue;
    write(a, out, slice, s);
  }
}

#endif
