/* Optimizer steps and gradient scaling over one tensor or many. */
#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/common/device/values.h"
#include "math/optim/optim_kernels.h"
#include "math/optim/optim_math.h"

static constexpr uint32_t threads = OPTIM_THREADS;

struct chunk_place {
  optim_tensor tensor;
  int64_t begin; /* the first value */
  uint32_t count;
};

/* Finds a chunk in its tensor, by bisection: of the tensors whose first chunk is this one or before it the last, which
 * is not empty, as those before it with the same first chunk are. */
RDNA_DEVICE chunk_place find_chunk(const optim_tensors &of, int64_t chunk) {
  chunk_place c;
  if (!of.table) {
    c.tensor = of.only;
  } else {
    int64_t low = 0, high = of.tensors;
    while (high - low > 1) {
      int64_t middle = (low + high) / 2;
      if (of.table[middle].first_chunk <= chunk) {
        low = middle;
      } else {
        high = middle;
      }
    }
    c.tensor = of.table[low];
  }
  c.begin = (chunk - c.tensor.first_chunk) * OPTIM_CHUNK;
  int64_t left = c.tensor.count - c.begin;
  c.count = left < OPTIM_CHUNK ? (uint32_t)left : OPTIM_CHUNK;
  return c;
}

RDNA_DEVICE char *place(const void *base, int64_t bytes) { return (char *)base + bytes; }
RDNA_DEVICE int64_t grad_bytes(uint32_t dtype) { return dtype == RDNA_F32 ? 4 : 2; }
/* The address as bits for all_16: of 16-bit gradients twice the address, as four of them take 8 bytes. */
RDNA_DEVICE uint32_t four_grads(const char *grad, uint32_t dtype) {
  return (uint32_t)address_of(grad) << (dtype != RDNA_F32);
}

/* Loads the first |n| of four values from |i| on, a multiple of four. |wide|: n is 4, and they are aligned. */
RDNA_DEVICE void load_four(const char *p, uint32_t i, uint32_t n, bool wide, float *v) {
  if (wide) {
    f32::load_16(p + i * 4, v);
  } else {
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) v[k] = k < n ? f32::load(p, i + k) : 0;
  }
}
RDNA_DEVICE void store_four(char *p, uint32_t i, uint32_t n, bool wide, const float *v) {
  if (wide) {
    f32::store_16(p + i * 4, v);
  } else {
#pragma unroll
    for (uint32_t k = 0; k < 4; k++)
      if (k < n) f32::store(p, i + k, v[k]);
  }
}
RDNA_DEVICE void load_grads(const char *p, uint32_t dtype, uint32_t i, uint32_t n, bool wide, float *v) {
  if (dtype == RDNA_F32) {
    load_four(p, i, n, wide, v);
  } else if (wide) {
    uint2 bits = load_as<uint2>(p + i * 2);
    float2 low = dtype == RDNA_F16 ? f16x2_to_f32(bits.x) : bf16x2_to_f32(bits.x);
    float2 high = dtype == RDNA_F16 ? f16x2_to_f32(bits.y) : bf16x2_to_f32(bits.y);
    v[0] = low.x, v[1] = low.y, v[2] = high.x, v[3] = high.y;
  } else {
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
      v[k] = k >= n ? 0 : dtype == RDNA_F16 ? f16::load(p, i + k) : bf16::load(p, i + k);
    }
  }
}
RDNA_DEVICE void store_grads(char *p, uint32_t dtype, uint32_t i, uint32_t n, bool wide, const float *v) {
  if (dtype == RDNA_F32) {
    store_four(p, i, n, wide, v);
  } else if (wide) {
    uint2 bits = dtype == RDNA_F16 ? uint2{f32_to_f16x2(v[0], v[1]), f32_to_f16x2(v[2], v[3])}
                                   : uint2{f32_to_bf16x2(v[0], v[1]), f32_to_bf16x2(v[2], v[3])};
    store_as<uint2>(p + i * 2, bits);
  } else {
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
      if (k >= n) continue;
      if (dtype == RDNA_F16) {
        f16::store(p, i + k, v[k]);
      } else {
        bf16::store(p, i + k, v[k]);
      }
    }
  }
}
RDNA_DEVICE uint32_t of_four(uint32_t i, uint32_t count) { return min_u32(count - i, 4); }

/* Makes a type of one of optim_math.h's functions, as a template argument. */
#define RULE(name, counted)                                                                          \
  struct name##_rule {                                                                               \
    static constexpr bool counts = counted;                                                          \
    RDNA_DEVICE float value(const optim_step_args *a, optim_step step, float p, float g, float *s) { \
      return optim_##name##_value(a, step, p, g, s);                                                 \
    }                                                                                                \
  };
RULE(sgd, false)
RULE(adam, true)
RULE(rmsprop, false)

template <typename rule>
RDNA_DEVICE void take_step(const optim_step_args &args) {
  if (args.found_inf && *args.found_inf != 0) return;
  float scale = args.grad_scale ? *args.grad_scale : 1;
  for (int64_t chunk = group_id_x(); chunk < args.of.chunks; chunk += group_count_x()) {
    const optim_step_args &a = arguments_again_wide(args);
    chunk_place c = find_chunk(a.of, chunk);
    char *param = place(a.params, c.tensor.param + c.begin * 4), *state[OPTIM_STATES];
    const char *grad = place(a.grads, c.tensor.grad + c.begin * grad_bytes(a.of.grad_dtype));
    uint32_t bits = (uint32_t)address_of(param) | four_grads(grad, a.of.grad_dtype);
#pragma unroll
    for (int k = 0; k < OPTIM_STATES; k++) {
      state[k] = place(a.states, c.tensor.state[k] + c.begin * 4);
      if (a.states_used >> k & 1) bits |= (uint32_t)address_of(state[k]);
    }
    optim_step step = {a.step_size, a.root_correct};
    if (rule::counts && a.counted) step = optim_step_at(&a, *(const float *)place(a.steps, c.tensor.step));
    for (uint32_t i = thread_id() * 4; i < c.count; i += threads * 4) {
      uint32_t n = of_four(i, c.count);
      bool wide = n == 4 && all_16(bits);
      float p[4], g[4], s[OPTIM_STATES][4];
      load_four(param, i, n, wide, p);
      load_grads(grad, a.of.grad_dtype, i, n, wide, g);
#pragma unroll
      for (int k = 0; k < OPTIM_STATES; k++) {
        if (a.states_used >> k & 1) load_four(state[k], i, n, wide, s[k]);
      }
#pragma unroll
      for (int j = 0; j < 4; j++) {
        float own[OPTIM_STATES] = {s[0][j], s[1][j], s[2][j]};
        g[j] = a.grad_scale ? g[j] / scale : g[j];
        p[j] = rule::value(&a, step, p[j], a.maximize ? -g[j] : g[j], own);
        s[0][j] = own[0], s[1][j] = own[1], s[2][j] = own[2];
      }
      store_four(param, i, n, wide, p);
#pragma unroll
      for (int k = 0; k < OPTIM_STATES; k++) {
        if (a.states_used >> k & 1) store_four(state[k], i, n, wide, s[k]);
      }
    }
  }
}

RDNA_KERNEL(OPTIM_THREADS) optim_sgd(struct optim_step_args a) { take_step<sgd_rule>(a); }
RDNA_KERNEL(OPTIM_THREADS) optim_adam(struct optim_step_args a) { take_step<adam_rule>(a); }
RDNA_KERNEL(OPTIM_THREADS) optim_rmsprop(struct optim_step_args a) { take_step<rmsprop_rule>(a); }

RDNA_KERNEL(OPTIM_THREADS) grad_squares(struct grad_squares_args a) {
  RDNA_SHARED static float scratch[GROUP_SCRATCH(OPTIM_THREADS)];
  for (int64_t chunk = group_id_x(); chunk < a.of.chunks; chunk += group_count_x()) {
    chunk_place c = find_chunk(a.of, chunk);
    const char *grad = place(a.grads, c.tensor.grad + c.begin * grad_bytes(a.of.grad_dtype));
    bool aligned = all_16(four_grads(grad, a.of.grad_dtype));
    float sum = 0;
    for (uint32_t i = thread_id() * 4; i < c.count; i += threads * 4) {
      uint32_t n = of_four(i, c.count);
      float g[4];
      load_grads(grad, a.of.grad_dtype, i, n, n == 4 && aligned, g);
#pragma unroll
      for (int k = 0; k < 4; k++) sum = fma_f32(g[k], g[k], sum);
    }
    sum = group_sum_f32<OPTIM_THREADS>(sum, scratch);
    if (thread_id() == 0) a.partial[chunk] = sum;
  }
}

RDNA_KERNEL(GRAD_NORM_THREADS) grad_norm(struct grad_norm_args a) {
  RDNA_SHARED static float scratch[GROUP_SCRATCH(GRAD_NORM_THREADS)];
  float sum = 0;
  for (int64_t i = thread_id(); i < a.chunks; i += GRAD_NORM_THREADS) sum += a.partial[i];
  float norm = sqrt_f32(group_sum_f32<GRAD_NORM_THREADS>(sum, scratch));
  if (thread_id() != 0 || group_id_x() != 0) return;
  if (a.norm) *a.norm = norm;
  if (a.factor) *a.factor = min_f32(a.largest / (norm + 1e-6f), 1.0f);
}

RDNA_KERNEL(OPTIM_THREADS) grad_norms(struct grad_norms_args a) {
  RDNA_SHARED static float scratch[GROUP_SCRATCH(OPTIM_THREADS)];
  const optim_tensor t = a.of.table ? a.of.table[group_id_x()] : a.of.only;
  const int64_t end = t.first_chunk + (t.count + OPTIM_CHUNK - 1) / OPTIM_CHUNK;
  float sum = 0;
  for (int64_t i = t.first_chunk + thread_id(); i < end; i += threads) sum += a.partial[i];
  sum = group_sum_f32<OPTIM_THREADS>(sum, scratch);
  if (thread_id() == 0) a.norms[group_id_x()] = sqrt_f32(sum);
}

RDNA_KERNEL(OPTIM_THREADS) grad_scale(struct grad_scale_args a) {
  float factor = *a.factor;
  bool bad = false;
  for (int64_t chunk = group_id_x(); chunk < a.of.chunks; chunk += group_count_x()) {
    chunk_place c = find_chunk(a.of, chunk);
    char *grad = place(a.grads, c.tensor.grad + c.begin * grad_bytes(a.of.grad_dtype));
    bool aligned = all_16(four_grads(grad, a.of.grad_dtype));
    for (uint32_t i = thread_id() * 4; i < c.count; i += threads * 4) {
      uint32_t n = of_four(i, c.count);
      bool wide = n == 4 && aligned;
      float g[4];
      load_grads(grad, a.of.grad_dtype, i, n, wide, g);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        bad = bad || !(abs_f32(g[k]) < infinity_f32());
        g[k] *= factor;
      }
      store_grads(grad, a.of.grad_dtype, i, n, wide, g);
    }
  }
  if (bad && a.found_inf) atomic_or_u32((uint32_t *)a.found_inf, bits_as<uint32_t>(1.0f));
}
