/* Device code: channel_map_*, what batch and group norm compute of each value. */
#ifndef RDNA_MATH_NORM_CHANNEL_NORM_MAP_H
#define RDNA_MATH_NORM_CHANNEL_NORM_MAP_H

#include "math/norm/channel_norm_values.h"

/* Loads |count| neighbouring weights or biases, of |type| or of f32. */
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

/* What is computed of each value, |what| below: find() fetches what |count| neighbouring columns need for it, map()
 * computes one value, finish() what comes after the sum with the other tensor. */
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

/* The tensors from some value on: offsets from there are of 32 bits, for which there are cheaper addresses. */
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

/* Maps |vectors| vectors that lie |step| values apart, in flight together. */
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

/* A thread's next vectors, |ahead| at most, |step| values apart and before |end|: loaded while others are computed. */
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

/* Maps runs, each a team's. Units go from the last to the first: see "The second pass goes backwards" in
 * src/math/README.md. The values of a group are fewer than 2^27. */
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

/* Maps columns that lie side by side: a group has tiles of columns, as in partial_columns. */
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

#endif
