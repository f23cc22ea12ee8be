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

/* What one token's update of a state has in common for all rows of a head. */
struct token {
  float k[GATED_DELTA_MOST_KEYS], q[GATED_DELTA_MOST_KEYS]; /* normalised */
  float decay, beta;
};

/* Updates |rows| neighbouring rows together: their sums do not depend on one another, so that none waits. */
SIMD_INLINE void update_rows(float *s, const struct token *now, const float *v, float *out, int32_t d_k, int rows) {
  simd_float sum[4] = {{0}};
  float rest[4] = {0}, by[4];
  int32_t i = 0;
  for (; i + SIMD_WIDTH <= d_k; i += SIMD_WIDTH) {
    simd_float k = simd_load(now->k + i);
    for (int r = 0; r < rows; r++) sum[r] = simd_fma(simd_load(s + r * d_k + i), k, sum[r]);
  }
  for (; i < d_k; i++) {
    for (int r = 0; r < rows; r++) rest[r] += s[r * d_k + i] * now->k[i];
  }
  for (int r = 0; r < rows; r++) {
    by[r] = now->beta * (v[r] - now->decay * (simd_sum(sum[r]) + rest[r]));
    sum[r] = simd_set(0), rest[r] = 0;
  }
  for (i = 0; i + SIMD_WIDTH <= d_k; i += SIMD_WIDTH) {
    simd_float k = simd_load(now->k + i), q = simd_load(now->q + i);
    for (int r = 0; r < rows; r++) {
      simd_float row = simd_fma(simd_set(by[r]), k, simd_set(now->decay) * simd_load(s + r * d_k + i));
      simd_store(s + r * d_k + i, row);
      sum[r] = simd_fma(row, q, sum[r]);
    }
  }
  for (; i < d_k; i++) {
    for (int r = 0; r < rows; r++) {
      s[r * d_k + i] = fma_f32(by[r], now->k[i], now->decay * s[r * d_k + i]);
      rest[r] += s[r * d_k + i] * now->q[i];
    }
  }
  for (int r = 0; r < rows; r++) out[r] = simd_sum(sum[r]) + rest[r];
}

static int64_t offset_of(const struct gated_delta_strides *at, int64_t token, int64_t head, int64_t repeat) {
  return token * at->token + head * at->head + repeat * at->repeat;
}

/* Takes rows |first| to |end| of a value head's state through the tokens of a sequence. */
static void run_rows(const struct gated_delta_args *a, const struct sequence *sequence, int64_t head, int64_t repeat,
                     int64_t first, int64_t end) {
  struct token now;
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
    scale_to_length(a->k + offset_of(&a->k_at, t, head, 0), a->d_k, 1, a->epsilon, now.k);
    scale_to_length(a->q + offset_of(&a->q_at, t, head, 0), a->d_k, a->scale, a->epsilon, now.q);
    now.decay = scalar_exp(rate * scalar_softplus(a->a[offset_of(&a->a_at, t, head, repeat)] + dt));
    now.beta = scalar_sigmoid(a->b[offset_of(&a->b_at, t, head, repeat)]);
    int64_t c = first;
    for (; c + 4 <= end; c += 4) update_rows(state + c * a->d_k, &now, v + c, out + c, a->d_k, 4);
    for (; c < end; c++) update_rows(state + c * a->d_k, &now, v + c, out + c, a->d_k, 1);
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
