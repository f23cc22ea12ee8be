/* Batch and group norm: the kernels, and those that join slices. See channel_norm_kernels.h for what they compute,
 * channel_norm_partial.h for the reductions and channel_norm_map.h for what has the tensor's shape. 64 bytes a thread
 * are in flight at once. */
#include "math/norm/channel_norm_map.h"
#include "math/norm/channel_norm_partial.h"

/* Joins the states that a group's threads have of each output by halves; way 0 gets the result. Thread t has way
 * t / CHANNEL_END_OUTS of output t % CHANNEL_END_OUTS. */
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

/* Joins the slices of a statistic to its mean and inverse, and brings the running ones up to date. */
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

/* Joins the slices of a statistic's gradient sums to its slopes. */
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

/* Joins the slices of a column's gradient sums to dweight and dbias. */
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
