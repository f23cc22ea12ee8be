/* Host twins of one operation on each of many tensors: threads share the work-groups of each_kernels.h, and compute a
 * run of values at a time. */
#include "math/common/host/values.h"
#include "math/pointwise/each_kernels.h"
#include "math/pointwise/pointwise_ops.h"

enum { GRAIN = 4 }; /* work-groups that a thread takes at least */

/* Values of a work-group. */
#define TILE(type) ((int64_t)EACH_THREADS * EACH_VECTORS * 16 / (int64_t)sizeof(STORED_##type))

/* load: fills v with |n| values of input |k|, counted from 1, from value |at| of the tensor |t| on. group: computes
 * one work-group. */
#define EACH_TYPE(type)                                                                                                \
  static void load_##type(const struct each_args *a, uint32_t t, int inputs, int k, int64_t at, int64_t n, float *v) { \
    const STORED_##type *data = a->pointer[t * (uint32_t)(inputs + 1) + (uint32_t)k];                                  \
    if (a->constants >> k & 1) {                                                                                       \
      for (int64_t i = 0; i < n; i++) v[i] = a->constant;                                                              \
    } else if (k == 2 && a->ones >> t & 1) {                                                                           \
      float buffer[1], one = read_##type(buffer, data, 1)[0];                                                          \
      for (int64_t i = 0; i < n; i++) v[i] = one;                                                                      \
    } else {                                                                                                           \
      const float *from = read_##type(v, data + at, n);                                                                \
      if (from != v) memcpy(v, from, (size_t)n * sizeof *v);                                                           \
    }                                                                                                                  \
  }                                                                                                                    \
  SIMD_INLINE void group_##type(const struct each_args *a, int inputs, int64_t group) {                                \
    uint32_t t = each_tensor(a, (uint32_t)group);                                                                      \
    int64_t at = (group - a->group[t]) * TILE(type), left = a->count[t] - at;                                          \
    int64_t end = at + (left < TILE(type) ? left : TILE(type));                                                        \
    float v[3][RUN];                                                                                                   \
    for (int64_t n; at < end; at += n) {                                                                               \
      n = run_length(end - at);                                                                                        \
      for (int k = 1; k <= inputs; k++) load_##type(a, t, inputs, k, at, n, v[k - 1]);                                 \
      if (inputs == 1) pointwise_map_simple(a->op, v[0], (int)n, a->p, a->q);                                          \
      if (inputs == 2) pointwise_zip_simple(a->op, v[0], v[1], (int)n, a->p, a->q);                                    \
      if (inputs == 3) pointwise_zip3_simple(a->op, v[0], v[1], v[2], (int)n, a->p);                                   \
      store_##type((STORED_##type *)(uintptr_t)a->pointer[t * (uint32_t)(inputs + 1)] + at, v[0], n);                  \
    }                                                                                                                  \
  }                                                                                                                    \
  EACH_KERNEL(map, 1, type) EACH_KERNEL(zip, 2, type) EACH_KERNEL(zip3, 3, type)

#define EACH_KERNEL(kind, inputs, type)                                                     \
  static void kind##_each_##type##_groups(void *context, int64_t begin, int64_t end) {      \
    for (int64_t group = begin; group < end; group++) group_##type(context, inputs, group); \
  }                                                                                         \
  void RDNA_HOST_KERNEL(kind##_each_##type)(const void *args, rdna_grid grid) {             \
    struct each_args a = *(const struct each_args *)args;                                   \
    rdna__parallel_for(a.groups, GRAIN, kind##_each_##type##_groups, &a);                   \
  }

EACH_TYPE(f32)
EACH_TYPE(f16)
EACH_TYPE(bf16)
