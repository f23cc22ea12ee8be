/* Results times a function of a gate; see gate_kernels.h. */
#include "math/recurrent/gate_kernels.h"

#include "kernel/prelude.h"
#include "math/common/device/fast.h"
#include "math/common/device/values.h"

/* |width| values that lie together. */
template <int width>
struct values {
  float v[width];
  RDNA_MEMBER void load(const float *p) {
    if constexpr (width == 4) {
      f32::load_16(p, v);
    } else {
      v[0] = *p;
    }
  }
  template <typename type>
  RDNA_MEMBER void store(typename type::stored *p) const {
    if constexpr (width == 4) {
      type::store4(p, float4{v[0], v[1], v[2], v[3]});
    } else {
      type::store(p, 0, v[0]);
    }
  }
};

/* The first value of a row of x, gate and out. */
template <typename type>
struct row {
  const float *x, *gate;
  typename type::stored *out;
  RDNA_MEMBER row(const gate_args &a, int64_t number) {
    int64_t token = number / a.heads, head = number - token * a.heads;
    x = a.x + token * a.x_at.token + head * a.x_at.head;
    gate = a.gate + token * a.gate_at.token + head * a.gate_at.head;
    out = (typename type::stored *)a.out + token * a.out_at.token + head * a.out_at.head;
  }
};

/* Returns whether four values at a time are at multiples of 16 bytes (of 8 in a type of 16 bits) in all rows. */
template <typename type>
RDNA_DEVICE bool is_wide(const gate_args &a) {
  uint64_t floats = address_of(a.x) | address_of(a.weight);
  int64_t strides = a.x_at.token | a.x_at.head | a.out_at.token | a.out_at.head | a.d;
  if (!a.one_gate) {
    floats |= address_of(a.gate);
    strides |= a.gate_at.token | a.gate_at.head;
  }
  return all_16(floats) && address_of(a.out) % (4 * type::BYTES) == 0 && strides % 4 == 0;
}

template <typename type, int width>
RDNA_DEVICE void norm_row(const gate_args &a, const row<type> &r) {
  const int32_t step = WAVE_SIZE * width, first = (int32_t)lane_id() * width;
  values<width> x, gate, weight;
  float squares = 0;
  for (int32_t i = first; i < a.d; i += step) {
    x.load(r.x + i);
#pragma unroll
    for (int j = 0; j < width; j++) squares = fma_f32(x.v[j], x.v[j], squares);
  }
  float scale = 1.0f / sqrt_f32(wave_sum_f32(squares) / (float)a.d + a.epsilon);
  for (int32_t i = first; i < a.d; i += step) {
    x.load(r.x + i);
    gate.load(r.gate + i);
    if (a.weight) weight.load(a.weight + i);
#pragma unroll
    for (int j = 0; j < width; j++) {
      x.v[j] = x.v[j] * scale * (a.weight ? weight.v[j] : 1.0f) * close_silu(gate.v[j]);
    }
    x.template store<type>(r.out + i);
  }
}

template <typename type>
RDNA_DEVICE void rms_norm_gated(const gate_args &a) {
  constexpr uint32_t waves = GATE_THREADS / WAVE_SIZE;
  bool wide = is_wide<type>(a);
  for (int64_t i = (int64_t)group_id_x() * waves + wave_id(); i < a.rows; i += (int64_t)group_count_x() * waves) {
    if (wide) {
      norm_row<type, 4>(a, row<type>(a, i));
    } else {
      norm_row<type, 1>(a, row<type>(a, i));
    }
  }
}

template <typename type, int width>
RDNA_DEVICE void mul_sigmoid_by(const gate_args &a) {
  uint32_t in_row = (uint32_t)a.d / width, count = (uint32_t)a.rows * in_row; /* the operator sees that it fits */
  for (uint64_t i = (uint64_t)group_id_x() * GATE_THREADS + thread_id(); i < count;
       i += (uint64_t)group_count_x() * GATE_THREADS) {
    uint32_t number = (uint32_t)i / in_row, at = ((uint32_t)i - number * in_row) * width;
    row<type> r(a, number);
    values<width> x, gate;
    x.load(r.x + at);
    if (a.one_gate) {
#pragma unroll
      for (int j = 0; j < width; j++) gate.v[j] = *r.gate;
    } else {
      gate.load(r.gate + at);
    }
#pragma unroll
    for (int j = 0; j < width; j++) x.v[j] *= close_sigmoid(gate.v[j]);
    x.template store<type>(r.out + at);
  }
}
template <typename type>
RDNA_DEVICE void mul_sigmoid(const gate_args &a) {
  if (is_wide<type>(a)) {
    mul_sigmoid_by<type, 4>(a);
  } else {
    mul_sigmoid_by<type, 1>(a);
  }
}

#define GATE(type)                                                                        \
  RDNA_KERNEL(256) rms_norm_gated_##type(struct gate_args a) { rms_norm_gated<type>(a); } \
  RDNA_KERNEL(256) mul_sigmoid_##type(struct gate_args a) { mul_sigmoid<type>(a); }
GATE(f32)
GATE(f16)
GATE(bf16)
