#include "math/common/host/simd.h"
#include "math/recurrent/gated_delta_kernels.h"

enum { ROWS = 32 }; /* rows of a state that a thread takes at a time */

SIMD_INLINE float dot(const float *x, const float *y, int32_t n) {
  simd_float sum = {0};
  float rest = 0;
  int32_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) sum = simd_fma(simd_load(x + i), simd_load(y + i), sum);
  for (; i < n; i++) rest += x[i] * y[i];
  return simd_sum(sum) + rest;
}

static void scale_to_length(const float *x, int32_t n, float length, float epsilon, float *out) {
  float by = length / scalar_sqrt(dot(x, x, n) + epsilon);
  for (int32_t i = 0; i < n; i++) out[i] = x[i] * by;
}

/* s = decay s + by k; returns s.q then. */
SIMD_INLINE float update_row(float *s, float decay, float by, const float *k, const float *q, int32_t n) {
  simd_float sum = {0};
  float rest = 0;
  int32_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) {
    simd_float v = simd_fma(simd_set(by), simd_load(k + i), simd_set(decay) * simd_load(s + i));
    simd_store(s + i, v);
    sum = simd_fma(v, simd_load(q + i), sum);
  }
  for (; i < n; i++) {
    s[i] = fma_f32(by, k[i], decay * s[i]);
    rest += s[i] * q[i];
  }
  return simd_sum(sum) + rest;
}

static int64_t offset_of(const struct gated_delta_strides *at, int64_t token, int64_t head, int64_t repeat) {
  return token * at->token + head * at->head + repeat * at->repeat;
}

/* Rows |first| to |end| of the state of a value head, over the tokens of a sequence. */
static void run_rows(const struct gated_delta_args *a, const struct sequence *sequence, int64_t head, int64_t repeat,
                     int64_t first, int64_t end) {
  float k[GATED_DELTA_MOST_KEYS], q[GATED_DELTA_MOST_KEYS];
  const float rate = a->rate[offset_of(&a->rate_at, 0, head, repeat)];
  const float dt = a->dt[offset_of(&a->dt_at, 0, head, repeat)];
  float *state = a->state + ((sequence->slot * a->k_heads + head) * a->repeats + repeat) * a->d_v * a->d_k;
  for (int64_t t = sequence->begin; t < sequence->end; t++) {
    const float *v = a->v + offset_of(&a->v_at, t, head, repeat);
    float *out = a->out + offset_of(&a->out_at, t, head, repeat);
    if (sequence->slot < 0) {
      for (int64_t c = first; c < end; c++) out[c] = 0;
      continue;
    }
    scale_to_length(a->k + offset_of(&a->k_at, t, head, 0), a->d_k, 1, a->epsilon, k);
    scale_to_length(a->q + offset_of(&a->q_at, t, head, 0), a->d_k, a->scale, a->epsilon, q);
    float decay = scalar_exp(rate * scalar_softplus(a->a[offset_of(&a->a_at, t, head, repeat)] + dt));
    float beta = scalar_sigmoid(a->b[offset_of(&a->b_at, t, head, repeat)]);
    for (int64_t c = first; c < end; c++) {
      float *s = state + c * a->d_k;
      out[c] = update_row(s, decay, beta * (v[c] - decay * dot(s, k, a->d_k)), k, q, a->d_k);
    }
  }
}

static void run_part(void *context, int64_t begin, int64_t end) {
  const struct gated_delta_args *a = context;
  int64_t slices = (a->d_v + ROWS - 1) / ROWS, heads = (int64_t)a->k_heads * a->repeats;
  for (int64_t i = begin; i < end; i++) {
    int64_t first = i % slices * ROWS, head = i / slices % heads;
    struct sequence sequence = sequence_at(&a->sequences, i / (slices * heads));
    run_rows(a, &sequence, head / a->repeats, head % a->repeats, first, first + ROWS < a->d_v ? first + ROWS : a->d_v);
  }
}

static void gated_delta(const void *args) {
  struct gated_delta_args a = *(const struct gated_delta_args *)args;
  int64_t slices = (a.d_v + ROWS - 1) / ROWS;
  rdna__parallel_for(a.sequences.count * slices * a.k_heads * a.repeats, 1, run_part, &a);
}
void RDNA_HOST_KERNEL(gated_delta_d128)(const void *args, rdna_grid grid) { gated_delta(args); }
void RDNA_HOST_KERNEL(gated_delta_any)(const void *args, rdna_grid grid) { gated_delta(args); }
