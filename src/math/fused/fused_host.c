/* Chains of operations on the host: a run of values goes through all steps in buffers that stay in the first-level
 * cache. */
#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"
#include "math/values_host.h"

enum { GRAIN = 8192 }; /* values that a thread takes at least */

/* |n| values |step| apart, from or to the operand's value |at|. */
#define ACCESS(type)                                                                                 \
  SIMD_INLINE void gather_##type(const void *data, int64_t at, int64_t step, int64_t n, float *v) {  \
    const STORED_##type *from = (const STORED_##type *)data + at;                                    \
    if (step == 1) {                                                                                 \
      float buffer[RUN];                                                                             \
      memcpy(v, read_##type(buffer, from, n), (size_t)n * sizeof *v);                                \
      return;                                                                                        \
    }                                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                                \
      float one;                                                                                     \
      memcpy(&v[i], read_##type(&one, from + i * step, 1), sizeof *v);                               \
    }                                                                                                \
  }                                                                                                  \
  SIMD_INLINE void scatter_##type(void *data, int64_t at, int64_t step, int64_t n, const float *v) { \
    STORED_##type *to = (STORED_##type *)data + at;                                                  \
    if (step == 1) return store_##type(to, v, n);                                                    \
    for (int64_t i = 0; i < n; i++) store_##type(to + i * step, v + i, 1);                           \
  }
ACCESS(f32)
ACCESS(f16)
ACCESS(bf16)

static void run_steps(const struct fused_args *a, float *value, float v[RDNA_FUSED_MAX_INPUTS][RUN], int n) {
  float other[RUN];
  for (uint32_t s = 0; s < a->steps; s++) {
    uint32_t word = a->step[s], op = word & FUSED_OP_MASK;
    if (!(word & FUSED_IS_ZIP)) {
      fused_map(op, value, n, a->p[s], a->q[s]);
      continue;
    }
    const float *input = v[word >> FUSED_INPUT_SHIFT];
    if (word & FUSED_INPUT_FIRST) {
      memcpy(other, value, (size_t)n * sizeof *other);
      memcpy(value, input, (size_t)n * sizeof *value);
      input = other;
    }
    fused_zip(op, value, input, n, a->p[s], a->q[s]);
  }
}

#define FUSED(type)                                                                      \
  static void fused_##type##_piece(void *context, int64_t begin, int64_t end) {          \
    const struct fused_args *a = context;                                                \
    float v[RDNA_FUSED_MAX_INPUTS][RUN], value[RUN];                                     \
    for (int64_t n; begin < end; begin += n) {                                           \
      int64_t left = a->shape.size[0] - (uint32_t)begin % a->shape.size[0];              \
      n = run_length(left < end - begin ? left : end - begin);                           \
      struct fused_place place = fused_place_of(&a->shape, (uint32_t)begin);             \
      for (uint32_t k = 0; k < a->inputs; k++) {                                         \
        const struct fused_operand *from = &a->operand[k + 1];                           \
        gather_##type(from->data, fused_offset(from, &place), from->stride[0], n, v[k]); \
      }                                                                                  \
      memcpy(value, v[0], (size_t)n * sizeof *value);                                    \
      run_steps(a, value, v, (int)n);                                                    \
      const struct fused_operand *to = &a->operand[0];                                   \
      scatter_##type(to->data, fused_offset(to, &place), to->stride[0], n, value);       \
    }                                                                                    \
  }                                                                                      \
  void RDNA_HOST_KERNEL(fused_##type)(const void *args, rdna_grid grid) {                \
    struct fused_args a = *(const struct fused_args *)args;                              \
    rdna__parallel_for(a.shape.count, GRAIN, fused_##type##_piece, &a);                  \
  }
FUSED(f32)
FUSED(f16)
FUSED(bf16)
