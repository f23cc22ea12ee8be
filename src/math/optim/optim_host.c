/* Optimizer steps and gradient scaling on the host. */
#include <math.h>

#include "kernel/host.h"
#include "math/common/host/floats.h"
#include "math/optim/optim_kernels.h"
#include "math/optim/optim_math.h"

struct place {
  const struct optim_tensor *tensor;
  int64_t begin, count;
};

static struct place find_chunk(const struct optim_tensors *of, int64_t chunk) {
  const struct optim_tensor *t = of->table ? of->table : &of->only;
  for (int64_t i = 1; of->table && i < of->tensors && t[1].first_chunk <= chunk; i++) t++;
  int64_t begin = (chunk - t->first_chunk) * OPTIM_CHUNK, left = t->count - begin;
  return (struct place){t, begin, left < OPTIM_CHUNK ? left : OPTIM_CHUNK};
}

/* Adds integers rather than to a pointer: where offsets are addresses the base is NULL. */
static char *at(const void *base, int64_t offset, int64_t bytes) {
  return (char *)((uintptr_t)base + (uintptr_t)offset + (uintptr_t)bytes);  // NOLINT(performance-no-int-to-ptr)
}

typedef float (*rule)(const struct optim_step_args *a, struct optim_step step, float p, float g, float *s);

/* Takes chunks [begin, end). Callers pass a constant |value|, which is thus inlined. */
SIMD_INLINE void step_chunks(const struct optim_step_args *a, int64_t begin, int64_t end, rule value) {
  float grads[OPTIM_CHUNK], scale = a->grad_scale ? *a->grad_scale : 1;
  rdna_dtype dtype = (rdna_dtype)a->of.grad_dtype;
  for (int64_t chunk = begin; chunk < end; chunk++) {
    struct place c = find_chunk(&a->of, chunk);
    float *p = (float *)(void *)at(a->params, c.tensor->param, c.begin * 4), *state[OPTIM_STATES];
    for (int k = 0; k < OPTIM_STATES; k++) {
      state[k] = (float *)(void *)at(a->states, c.tensor->state[k], c.begin * 4);
    }
    floats_load(dtype, at(a->grads, c.tensor->grad, c.begin * floats_bytes(dtype)), c.count, grads);
    struct optim_step step = {a->step_size, a->root_correct};
    if (a->counted) step = optim_step_at(a, *(const float *)(const void *)at(a->steps, c.tensor->step, 0));
    for (int64_t i = 0; i < c.count; i++) {
      float s[OPTIM_STATES] = {0};
      for (int k = 0; k < OPTIM_STATES; k++) {
        if (a->states_used >> k & 1) s[k] = state[k][i];
      }
      float g = a->grad_scale ? grads[i] / scale : grads[i];
      p[i] = value(a, step, p[i], a->maximize ? -g : g, s);
      for (int k = 0; k < OPTIM_STATES; k++) {
        if (a->states_used >> k & 1) state[k][i] = s[k];
      }
    }
  }
}

#define STEP(name)                                                        \
  static void name##_chunks(void *context, int64_t begin, int64_t end) {  \
    step_chunks(context, begin, end, optim_##name##_value);               \
  }                                                                       \
  void RDNA_HOST_KERNEL(optim_##name)(const void *args, rdna_grid grid) { \
    struct optim_step_args a = *(const struct optim_step_args *)args;     \
    if (a.found_inf && *a.found_inf != 0) return;                         \
    rdna__parallel_for(a.of.chunks, 1, name##_chunks, &a);                \
  }
STEP(sgd)
STEP(adam)
STEP(rmsprop)

static void square_chunks(void *context, int64_t begin, int64_t end) {
  const struct grad_squares_args *a = context;
  float g[OPTIM_CHUNK];
  rdna_dtype dtype = (rdna_dtype)a->of.grad_dtype;
  for (int64_t chunk = begin; chunk < end; chunk++) {
    struct place c = find_chunk(&a->of, chunk);
    floats_load(dtype, at(a->grads, c.tensor->grad, c.begin * floats_bytes(dtype)), c.count, g);
    double sum = 0;
    for (int64_t i = 0; i < c.count; i++) sum += (double)g[i] * (double)g[i];
    a->partial[chunk] = (float)sum;
  }
}

void RDNA_HOST_KERNEL(grad_squares)(const void *args, rdna_grid grid) {
  struct grad_squares_args a = *(const struct grad_squares_args *)args;
  rdna__parallel_for(a.of.chunks, 1, square_chunks, &a);
}

void RDNA_HOST_KERNEL(grad_norm)(const void *args, rdna_grid grid) {
  const struct grad_norm_args *a = args;
  double sum = 0;
  for (int64_t i = 0; i < a->chunks; i++) sum += (double)a->partial[i];
  float norm = sqrtf((float)sum);
  if (a->norm) *a->norm = norm;
  if (a->factor) *a->factor = min_f32(a->largest / (norm + 1e-6f), 1.0f);
}

void RDNA_HOST_KERNEL(grad_norms)(const void *args, rdna_grid grid) {
  const struct grad_norms_args *a = args;
  for (int64_t t = 0; t < a->of.tensors; t++) {
    const struct optim_tensor *tensor = a->of.table ? &a->of.table[t] : &a->of.only;
    int64_t chunks = (tensor->count + OPTIM_CHUNK - 1) / OPTIM_CHUNK;
    double sum = 0;
    for (int64_t i = 0; i < chunks; i++) sum += (double)a->partial[tensor->first_chunk + i];
    a->norms[t] = sqrtf((float)sum);
  }
}

static void scale_chunks(void *context, int64_t begin, int64_t end) {
  const struct grad_scale_args *a = context;
  float g[OPTIM_CHUNK];
  rdna_dtype dtype = (rdna_dtype)a->of.grad_dtype;
  bool bad = false;
  for (int64_t chunk = begin; chunk < end; chunk++) {
    struct place c = find_chunk(&a->of, chunk);
    char *grad = at(a->grads, c.tensor->grad, c.begin * floats_bytes(dtype));
    floats_load(dtype, grad, c.count, g);
    for (int64_t i = 0; i < c.count; i++) {
      bad = bad || !(fabsf(g[i]) < INFINITY);
      g[i] *= *a->factor;
    }
    floats_store(dtype, grad, c.count, g);
  }
  if (bad && a->found_inf) __atomic_store_n((uint32_t *)(void *)a->found_inf, scalar_bits(1.0f), __ATOMIC_RELAXED);
}

void RDNA_HOST_KERNEL(grad_scale)(const void *args, rdna_grid grid) {
  struct grad_scale_args a = *(const struct grad_scale_args *)args;
  rdna__parallel_for(a.of.chunks, 1, scale_chunks, &a);
}
