/* Chains of operations; the interpreter's registers are the value and the inputs of each of a thread's places. */
#include "kernel/arguments.h"
#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"
#include "math/values.h"

/* Number |i| of an array among the arguments. NVIDIA's cannot be indexed without a copy in the stack. */
template <typename type>
RDNA_DEVICE type argument_at(const type (&values)[RDNA_FUSED_MAX_STEPS], uint32_t i) {
#ifdef RDNA_AMD
  return values[i];
#else
  type v = values[0];
#pragma unroll
  for (uint32_t k = 1; k < RDNA_FUSED_MAX_STEPS; k++) v = i == k ? values[k] : v;
  return v;
#endif
}

/* |count| neighbours of an operand from value |i| on: a vector of |type|, or one value. */
template <typename type, int count>
RDNA_DEVICE void load_input(const fused_args &args, int k, uint32_t i, float *v) {
  const fused_args &a = arguments_again(args);
  const fused_operand &from = a.operand[k];
  const char *at = (const char *)from.data + fused_offset(&a.shape, &from, i) * type::BYTES;
  if (count > 1 && (a.vectors >> k & 1)) return type::load_16(at, v);
  v[0] = type::load(at, 0);
  int64_t step = from.stride[0];
#pragma unroll
  for (int j = 1; j < count; j++) v[j] = step == 0 ? v[0] : type::load(at + j * step * type::BYTES, 0);
}

/* What the steps make of |count| values from |i| on, which all are there. */
template <typename type, int count>
RDNA_DEVICE void fused_values(const fused_args &a, uint32_t i) {
  float v[RDNA_FUSED_MAX_INPUTS][count] = {}, value[count];
#pragma unroll
  for (int k = 0; k < RDNA_FUSED_MAX_INPUTS; k++) {
    if ((uint32_t)k >= a.inputs) break;
    load_input<type, count>(a, k + 1, i, v[k]);
  }
#pragma unroll
  for (int j = 0; j < count; j++) value[j] = v[0][j];
#pragma unroll 1
  for (uint32_t s = 0; s < a.steps; s++) {
    const fused_args &now = arguments_again(a);
    uint32_t word = wave_uniform_u32(argument_at(now.step, s)), op = word & FUSED_OP_MASK;
    float p = argument_at(now.p, s), q = argument_at(now.q, s);
    if (!(word & FUSED_IS_ZIP)) {
      fused_map(op, value, count, p, q);
      continue;
    }
    float other[count];
    uint32_t input = word >> FUSED_INPUT_SHIFT;
    bool turned = word & FUSED_INPUT_FIRST;
#pragma unroll
    for (int j = 0; j < count; j++) {
      float picked = v[0][j], before = value[j];
#pragma unroll
      for (uint32_t k = 1; k < RDNA_FUSED_MAX_INPUTS; k++) picked = input == k ? v[k][j] : picked;
      value[j] = turned ? picked : before;
      other[j] = turned ? before : picked;
    }
    fused_zip(op, value, other, count, p, q);
  }

  const fused_args &now = arguments_again(a);
  const fused_operand &to = now.operand[0];
  char *at = (char *)to.data + fused_offset(&now.shape, &to, i) * type::BYTES;
  if (count > 1 && (now.vectors & 1)) return type::store_16(at, value);
#pragma unroll
  for (int j = 0; j < count; j++) type::store(at + j * (int64_t)to.stride[0] * type::BYTES, 0, value[j]);
}

template <typename type>
RDNA_DEVICE void fused(const fused_args &a) {
  constexpr int count = type::IN_16;
  uint32_t start = group_id_x() * RDNA__FUSED_THREADS * count;
  if (a.together) {
    uint32_t i = start + thread_id() * count;
    if (i < a.shape.count) fused_values<type, count>(a, i);
    return;
  }
#pragma unroll 1
  for (uint32_t j = 0; j < count; j++) {
    uint32_t i = start + j * RDNA__FUSED_THREADS + thread_id();
    if (i < a.shape.count) fused_values<type, 1>(a, i);
  }
}

RDNA_KERNEL(256) fused_f32(struct fused_args a) { fused<f32>(a); }
RDNA_KERNEL(256) fused_f16(struct fused_args a) { fused<f16>(a); }
RDNA_KERNEL(256) fused_bf16(struct fused_args a) { fused<bf16>(a); }
