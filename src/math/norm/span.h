/* Device code: some columns of a row at any alignment, in the registers of a group. */
#ifndef RDNA_MATH_NORM_SPAN_H
#define RDNA_MATH_NORM_SPAN_H

#include "math/common/device/chunk.h"
#include "math/common/device/join.h"
#include "math/common/edges.h"

static constexpr uint32_t SPAN_THREADS = 256;

/* Where the vectors of some columns lie, |head| single values before them and others after them; see "Rows at any
 * alignment" in src/math/README.md. */
struct span {
  uint32_t head, vectors, single; /* single: the column of this thread's single value, or |cols| if it has none */
  uint32_t cols;
};
template <typename type>
RDNA_DEVICE span span_of(const char *at, uint32_t cols) {
  row_edges e = row_edges_of(address_of(at), cols, type::IN_16);
  return {wave_uniform_u32((uint32_t)e.head), wave_uniform_u32((uint32_t)e.vectors),
          (uint32_t)row_edges_single(&e, cols, thread_id(), type::IN_16), cols};
}

/* What a thread holds of a span: |count| vectors, of which number j is the span's vector j * SPAN_THREADS +
 * thread_id(), and at most one single value. |alike|: |at| is as far from 16 bytes as the row that the span was made
 * of. */
template <typename type, uint32_t count>
struct held {
  enum : uint32_t { COLS = SPAN_THREADS * count * type::IN_16 };
  uint4 vector[count];
  typename type::stored single;
  RDNA_DEVICE void load(held &h, const char *at, const span &s, bool alike) {
    const char *body = at + s.head * type::BYTES;
#pragma unroll
    for (uint32_t j = 0; j < count; j++) {
      const uint32_t i = j * SPAN_THREADS + thread_id();
      if (i >= s.vectors) continue;
      if (alike) {
        h.vector[j] = load_as<uint4>(body + i * 16);
      } else {
        float v[type::IN_16];
#pragma unroll
        for (uint32_t k = 0; k < type::IN_16; k++) v[k] = type::load(body, i * type::IN_16 + k);
        h.vector[j] = type::pack(v);
      }
    }
    if (s.single < s.cols) h.single = ((const typename type::stored *)at)[s.single];
  }
};

/* Returns mean, sum of squares about it, and count of the span's values, by two sums over the group; without |centred|
 * the mean is 0, and it is one sum. */
template <typename type, uint32_t count>
RDNA_DEVICE moments<float> moments_of(held<type, count> &h, const span &s, bool centred, float *scratch) {
  moments<float> m;
  float v[type::IN_16], sum = 0;
  uint32_t vectors = s.vectors;
  m.n = (float)s.cols;
  const float alone = s.single < s.cols ? type::load(&h.single, 0) : 0;
  if (centred) {
    sum = alone;
#pragma unroll
    for (uint32_t j = 0; j < count; j++) {
      if (j * SPAN_THREADS + thread_id() >= vectors) continue;
      type::unpack(h.vector[j], v);
#pragma unroll
      for (uint32_t k = 0; k < type::IN_16; k++) sum += v[k];
    }
    m.mean = group_sum_f32<SPAN_THREADS>(sum, scratch) / m.n;
  }
  vectors = again_uniform(vectors);
  sum = s.single < s.cols ? (alone - m.mean) * (alone - m.mean) : 0;
#pragma unroll
  for (uint32_t j = 0; j < count; j++) {
    if (j * SPAN_THREADS + thread_id() >= vectors) continue;
    type::unpack(h.vector[j] = again(h.vector[j]), v);
#pragma unroll
    for (uint32_t k = 0; k < type::IN_16; k++) sum = fma_f32(v[k] - m.mean, v[k] - m.mean, sum);
  }
  m.squares = group_sum_f32<SPAN_THREADS>(sum, scratch);
  return m;
}

/* Adds x, which is in |h|, to the residual in memory; then |h| has the sum, rounded as it was stored. */
template <typename type, uint32_t count>
RDNA_DEVICE void add_residual(held<type, count> &h, char *residual, const span &s) {
  held<type, count> r;
  float v[type::IN_16], more[type::IN_16];
  held<type, count>::load(r, residual, s, true);
#pragma unroll
  for (uint32_t j = 0; j < count; j++) {
    const uint32_t i = j * SPAN_THREADS + thread_id();
    if (i >= s.vectors) continue;
    type::unpack(h.vector[j], v);
    type::unpack(r.vector[j], more);
#pragma unroll
    for (uint32_t k = 0; k < type::IN_16; k++) v[k] += more[k];
    h.vector[j] = type::pack(v);
    store_as<uint4>(residual + s.head * type::BYTES + i * 16, h.vector[j]);
  }
  if (s.single >= s.cols) return;
  h.single = stored_of<type>(type::load(&h.single, 0) + type::load(&r.single, 0));
  ((typename type::stored *)residual)[s.single] = h.single;
}

#endif
