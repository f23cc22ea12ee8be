/* Chains of operations on the host: a run of values goes through all steps in buffers that stay in the first-level
 * cache. */
#include "math/common/host/values.h"
#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"

enum { GRAIN = 8192 }; /* values that a thread takes at least */

/* Loads (gather) or stores (scatter) |n| values that lie |step| apart, from value |at| of the operand on. */
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

/* Results replace v. */
static void map(uint32_t op, float *restrict v, int n, float p, float q) {
  typedef float pw_value;
  switch (op) {
    FUSED_ANY_MAPS
    default:
      break;
  }
}
static void zip(uint32_t op, float *restrict v, const float *restrict w, int n, float p, float q) {
  typedef float pw_value;
  switch (op) { FUSED_ANY_ZIPS default : break; }
}

/* |keep| rounds values to the type of the tensors, in place. */
static void run_steps(const struct fused_args *a, float *value, float v[RDNA_FUSED_MAX_INPUTS][RUN], int n,
                      void (*keep)(float *values, int n)) {
  float other[RUN];
  for (uint32_t s = 0; s < a->steps; s++) {
    uint32_t word = a->step[s], op = word & FUSED_OP_MASK;
    if (word & FUSED_IS_MOVE) {
      float *slot = v[word >> FUSED_INPUT_SHIFT];
      if (op == FUSED_KEEP) keep(value, n);
      memcpy(op == FUSED_KEEP ? slot : value, op == FUSED_KEEP ? value : slot, (size_t)n * sizeof *value);
      continue;
    }
    if (!(word & FUSED_IS_ZIP)) {
      map(op, value, n, a->p[s], a->q[s]);
      continue;
    }
    const float *input = v[word >> FUSED_INPUT_SHIFT];
    if (word & FUSED_INPUT_FIRST) {
      memcpy(other, value, (size_t)n * sizeof *other);
      memcpy(value, input, (size_t)n * sizeof *value);
      input = other;
    }
    zip(op, value, input, n, a->p[s], a->q[s]);
  }
}

enum { IN_16_f32 = 4, IN_16_f16 = 8, IN_16_bf16 = 8 };

/* The offset of unit |i| in each operand, in values. */
static void find(const struct fused_args *a, int64_t i, int64_t *at) {
  int64_t unit = i % a->units, rest = i / a->units;
  for (uint32_t k = 0; k <= a->inputs; k++) {
    const struct fused_operand *o = &a->operand[k];
    at[k] = unit % a->shape.size[0] * o->stride[0] + unit / a->shape.size[0] * o->stride[1];
  }
  for (uint32_t d = 2; d < a->shape.rank; d++) {
    for (uint32_t k = 0; k <= a->inputs; k++) at[k] += rest % a->shape.size[d] * a->operand[k].stride[d];
    rest /= a->shape.size[d];
  }
}

/* Computes units [begin, end), a run at a time: units of one row, as many as fit the buffers. */
#define FUSED(type)                                                                             \
  static void keep_##type(float *values, int n) {                                               \
    STORED_##type stored[RUN];                                                                  \
    store_##type(stored, values, n);                                                            \
    gather_##type(stored, 0, 1, n, values);                                                     \
  }                                                                                             \
  static void fused_##type##_piece(void *context, int64_t begin, int64_t end) {                 \
    const struct fused_args *a = context;                                                       \
    int64_t columns = a->shape.size[0], width = a->wide ? IN_16_##type : 1;                     \
    float v[RDNA_FUSED_MAX_INPUTS][RUN], value[RUN];                                            \
    for (int64_t n; begin < end; begin += n) {                                                  \
      int64_t unit = begin % a->units, left = columns - unit % columns, at[FUSED_OPERANDS];     \
      if (left > a->units - unit) left = a->units - unit;                                       \
      if (left > end - begin) left = end - begin;                                               \
      n = left < RUN / width ? left : RUN / width;                                              \
      int64_t count = n * width;                                                                \
      if (a->tail && unit + n == a->units) count -= width - a->tail;                            \
      find(a, begin, at);                                                                       \
      for (uint32_t k = 0; k < a->inputs; k++) {                                                \
        const struct fused_operand *from = &a->operand[k + 1];                                  \
        gather_##type(from->data, at[k + 1], from->stride[0] / width, count, v[k]);             \
      }                                                                                         \
      memcpy(value, v[0], (size_t)count * sizeof *value);                                       \
      run_steps(a, value, v, (int)count, keep_##type);                                          \
      scatter_##type(a->operand[0].data, at[0], a->operand[0].stride[0] / width, count, value); \
    }                                                                                           \
  }                                                                                             \
  void RDNA_HOST_KERNEL(fused_##type)(const void *args, rdna_grid grid) {                       \
    struct fused_args a = *(const struct fused_args *)args;                                     \
    int64_t units = a.units;                                                                    \
    for (uint32_t d = 2; d < a.shape.rank; d++) units *= a.shape.size[d];                       \
    rdna__parallel_for(units, GRAIN / (a.wide ? IN_16_##type : 1), fused_##type##_piece, &a);   \
  }                                                                                             \
  void RDNA_HOST_KERNEL(fused_any_##type)(const void *args, rdna_grid grid) {                   \
    RDNA_HOST_KERNEL(fused_##type)(args, grid);                                                 \
  }
FUSED(f32)
FUSED(f16)
FUSED(bf16)
