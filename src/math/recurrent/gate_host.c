#include "math/common/host/values.h"
#include "math/recurrent/gate_kernels.h"

/* Rows that a thread takes at least, so that a piece is worth its start. */
static int64_t row_grain(int64_t d) { return 8192 / (d + 1) + 1; }

static int64_t offset_of(const struct gate_args *a, const struct gate_strides *at, int64_t row) {
  return row / a->heads * at->token + row % a->heads * at->head;
}

static float norm_scale(const float *x, int64_t d, float epsilon) {
  simd_float sum = {0};
  float rest = 0;
  int64_t i = 0;
  for (; i + SIMD_WIDTH <= d; i += SIMD_WIDTH) sum = simd_fma(simd_load(x + i), simd_load(x + i), sum);
  for (; i < d; i++) rest += x[i] * x[i];
  return 1.0f / scalar_sqrt((simd_sum(sum) + rest) / (float)d + epsilon);
}

/* |scale| times x times |weight|, or 1, times silu(gate), for |n| values. */
static void norm_run(const float *x, const float *gate, const float *weight, float scale, float *out, int64_t n) {
  EACH_APART
  for (int64_t i = 0; i < n; i++) out[i] = x[i] * scale * scalar_silu(gate[i]);
  if (!weight) return;
  for (int64_t i = 0; i < n; i++) out[i] *= weight[i];
}
static void sigmoid_run(const float *x, const float *gate, bool one_gate, float *out, int64_t n) {
  if (one_gate) {
    float by = scalar_sigmoid(*gate);
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * by;
    return;
  }
  EACH_APART
  for (int64_t i = 0; i < n; i++) out[i] = x[i] * scalar_sigmoid(gate[i]);
}

/* Computes run by run into |buffer|, as out may be x or gate. */
#define GATE(type)                                                                                           \
  static void norm_rows_##type(void *context, int64_t begin, int64_t end) {                                  \
    const struct gate_args *a = context;                                                                     \
    float buffer[RUN];                                                                                       \
    for (int64_t row = begin; row < end; row++) {                                                            \
      const float *x = a->x + offset_of(a, &a->x_at, row), *gate = a->gate + offset_of(a, &a->gate_at, row); \
      STORED_##type *out = (STORED_##type *)a->out + offset_of(a, &a->out_at, row);                          \
      float scale = norm_scale(x, a->d, a->epsilon);                                                         \
      for (int64_t n, at = 0; at < a->d; at += n) {                                                          \
        n = run_length(a->d - at);                                                                           \
        norm_run(x + at, gate + at, a->weight ? a->weight + at : NULL, scale, buffer, n);                    \
        store_##type(out + at, buffer, n);                                                                   \
      }                                                                                                      \
    }                                                                                                        \
  }                                                                                                          \
  static void sigmoid_rows_##type(void *context, int64_t begin, int64_t end) {                               \
    const struct gate_args *a = context;                                                                     \
    float buffer[RUN];                                                                                       \
    for (int64_t row = begin; row < end; row++) {                                                            \
      const float *x = a->x + offset_of(a, &a->x_at, row), *gate = a->gate + offset_of(a, &a->gate_at, row); \
      STORED_##type *out = (STORED_##type *)a->out + offset_of(a, &a->out_at, row);                          \
      for (int64_t n, at = 0; at < a->d; at += n) {                                                          \
        n = run_length(a->d - at);                                                                           \
        sigmoid_run(x + at, a->one_gate ? gate : gate + at, a->one_gate, buffer, n);                         \
        store_##type(out + at, buffer, n);                                                                   \
      }                                                                                                      \
    }                                                                                                        \
  }                                                                                                          \
  void RDNA_HOST_KERNEL(rms_norm_gated_##type)(const void *args, rdna_grid grid) {                           \
    struct gate_args a = *(const struct gate_args *)args;                                                    \
    rdna__parallel_for(a.rows, row_grain(a.d), norm_rows_##type, &a);                                        \
  }                                                                                                          \
  void RDNA_HOST_KERNEL(mul_sigmoid_##type)(const void *args, rdna_grid grid) {                              \
    struct gate_args a = *(const struct gate_args *)args;                                                    \
    rdna__parallel_for(a.rows, row_grain(a.d), sigmoid_rows_##type, &a);                                     \
  }
GATE(f32)
GATE(f16)
GATE(bf16)
