/* Convolution of each channel over time; see causal_conv_kernels.h. */
#include "math/recurrent/causal_conv_kernels.h"

#include "kernel/prelude.h"
#include "math/common/device/fast.h"

static constexpr int ahead = 4; /* rows that are loaded before they are used */

/* The last |width| - 1 inputs of a channel, the oldest first. */
template <int width>
struct history {
  float v[width - 1];
  RDNA_MEMBER void push(float x) {
#pragma unroll
    for (int j = 0; j + 2 < width; j++) v[j] = v[j + 1];
    v[width - 2] = x;
  }
};

template <int width>
RDNA_DEVICE history<width> load_state(const float *state) {
  history<width> h;
#pragma unroll
  for (int j = 0; j < width - 1; j++) h.v[j] = state[j];
  return h;
}

/* Pushes the rows of [end - (width - 1), end) that are not before |begin|. */
template <int width>
RDNA_DEVICE void push_rows(history<width> &h, const float *x, int64_t stride, int64_t begin, int64_t end) {
#pragma unroll
  for (int j = width - 1; j >= 1; j--) {
    if (end - j >= begin) h.push(x[(end - j) * stride]);
  }
}

/* Computes rows begin to end of a channel; |h| is what came before them. */
template <int width>
RDNA_DEVICE void convolve(const struct causal_conv_args &a, const float *x, float *out, const float *weight,
                          history<width> h, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; t += ahead) {
    float next[ahead];
#pragma unroll
    for (int i = 0; i < ahead; i++) next[i] = t + i < end ? x[(t + i) * a.x_stride] : 0.0f;
#pragma unroll
    for (int i = 0; i < ahead; i++) {
      float sum = h.v[0] * weight[0];
#pragma unroll
      for (int j = 1; j < width - 1; j++) sum = fma_f32(h.v[j], weight[j], sum);
      sum = fma_f32(next[i], weight[width - 1], sum);
      if (t + i < end) out[(t + i) * a.out_stride] = a.silu ? close_silu(sum) : sum;
      h.push(next[i]);
    }
  }
}

template <int width>
RDNA_DEVICE void causal_conv(const struct causal_conv_args &a) {
  uint32_t channel = group_id_x() * CAUSAL_CONV_THREADS + thread_id();
  if (channel >= (uint32_t)a.channels) return;
  struct sequence s = sequence_at(&a.sequences, group_id_y());
  const float *x = a.x + channel;
  float *out = a.out + channel;
  float *state = a.state + (s.slot * a.channels + channel) * (width - 1);
  int64_t begin = s.begin + (int64_t)group_id_z() * CAUSAL_CONV_PIECE;
  if (s.slot < 0) {
    for (int64_t t = s.begin + group_id_z(); t < s.end; t += group_count_z()) out[t * a.out_stride] = 0;
    return;
  }
  if (begin >= s.end) return;
  float weight[width];
#pragma unroll
  for (int j = 0; j < width; j++) weight[j] = a.weight[channel * width + j];
  history<width> first = {};
  if (begin == s.begin) first = load_state<width>(state);
  for (int64_t at = begin; at < s.end; at += (int64_t)group_count_z() * CAUSAL_CONV_PIECE) {
    history<width> h = first;
    push_rows(h, x, a.x_stride, s.begin, at);
    convolve<width>(a, x, out, weight, h, at, at + CAUSAL_CONV_PIECE < s.end ? at + CAUSAL_CONV_PIECE : s.end);
  }
  if (begin > s.begin) return;
  push_rows(first, x, a.x_stride, s.begin, s.end);
#pragma unroll
  for (int j = 0; j < width - 1; j++) state[j] = first.v[j];
}

#define CAUSAL_CONV(width) \
  RDNA_KERNEL(64) causal_conv_##width(struct causal_conv_args a) { causal_conv<width>(a); }
CAUSAL_CONV(2)
CAUSAL_CONV(3)
CAUSAL_CONV(4)
