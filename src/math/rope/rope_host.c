#include "math/common/host/values.h"
#include "math/rope/rope_kernels.h"

enum { TABLE_PAIRS = 256 };

/* Cosines and sines of one token for up to TABLE_PAIRS pairs, by which each of its heads is rotated. */
struct turn {
  float cosine[TABLE_PAIRS], sine[TABLE_PAIRS]; /* of pairs begin to begin + count */
  int32_t begin, count, half;
  int32_t interleaved;
};

static void fill_table(struct turn *t, const float *inv_freq, int32_t position, float scale) {
  for (int32_t i = 0; i < t->count; i++) {
    scalar_sincos((float)position * inv_freq[t->begin + i], &t->sine[i], &t->cosine[i]);
    t->cosine[i] *= scale;
    t->sine[i] *= scale;
  }
}

/* Rotates |count| pairs (a[i * step], b[i * step]). */
SIMD_INLINE void turn_pairs(const float *a, const float *b, float *a_out, float *b_out, const float *cosine,
                            const float *sine, int32_t count, int32_t step) {
  EACH_APART
  for (int32_t i = 0; i < count; i++) {
    float x = a[i * step], y = b[i * step];
    a_out[i * step] = x * cosine[i] - y * sine[i];
    b_out[i * step] = x * sine[i] + y * cosine[i];
  }
}

#define TURN(from, to)                                                                                                 \
  static void turn_##from##_##to(const struct turn *t, const STORED_##from *x, STORED_##to *out) {                     \
    float in_a[RUN], in_b[RUN], out_a[RUN], out_b[RUN];                                                                \
    if (t->interleaved) {                                                                                              \
      int64_t at = 2 * t->begin, n = 2 * t->count;                                                                     \
      const float *v = read_##from(in_a, x + at, n);                                                                   \
      turn_pairs(v, v + 1, out_a, out_a + 1, t->cosine, t->sine, t->count, 2);                                         \
      store_##to(out + at, out_a, n);                                                                                  \
    } else {                                                                                                           \
      int64_t at = t->begin, n = t->count;                                                                             \
      turn_pairs(read_##from(in_a, x + at, n), read_##from(in_b, x + t->half + at, n), out_a, out_b, t->cosine,        \
                 t->sine, t->count, 1);                                                                                \
      store_##to(out + at, out_a, n);                                                                                  \
      store_##to(out + t->half + at, out_b, n);                                                                        \
    }                                                                                                                  \
  }                                                                                                                    \
  static void turn_heads_##from##_##to(const STORED_##from *x, int64_t x_stride, STORED_##to *out, int64_t out_stride, \
                                       int32_t heads, const float *inv_freq, int32_t n_rot, int32_t interleaved,       \
                                       int32_t position, float scale) {                                                \
    struct turn t = {.half = n_rot / 2, .interleaved = interleaved};                                                   \
    for (t.begin = 0; t.begin < t.half; t.begin += t.count) {                                                          \
      t.count = t.half - t.begin < TABLE_PAIRS ? t.half - t.begin : TABLE_PAIRS;                                       \
      fill_table(&t, inv_freq, position, scale);                                                                       \
      for (int32_t h = 0; h < heads; h++) turn_##from##_##to(&t, x + h * x_stride, out + h * out_stride);              \
    }                                                                                                                  \
  }                                                                                                                    \
  static void copy_heads_##from##_##to(const STORED_##from *x, int64_t x_stride, STORED_##to *out, int64_t out_stride, \
                                       int32_t heads, int32_t begin, int32_t end) {                                    \
    float buffer[RUN];                                                                                                 \
    for (int32_t h = 0; h < heads; h++) {                                                                              \
      for (int64_t n, at = begin; at < end; at += n) {                                                                 \
        n = run_length(end - at);                                                                                      \
        store_##to(out + h * out_stride + at, read_##from(buffer, x + h * x_stride + at, n), n);                       \
      }                                                                                                                \
    }                                                                                                                  \
  }

/* A buffer of RUN values holds all interleaved pairs of a table. */
_Static_assert(RUN >= 2 * TABLE_PAIRS, "buffers of turn_*");

TURN(f32, f32)
TURN(f16, f16)
TURN(f32, f16)
TURN(f32, bf16)

#define ROPE(type)                                                                                                 \
  static void rope_##type##_tokens(void *context, int64_t begin, int64_t end) {                                    \
    const struct rope_args *a = context;                                                                           \
    for (int64_t token = begin; token < end; token++) {                                                            \
      const STORED_##type *x = (const STORED_##type *)a->x + token * a->x_token_stride;                            \
      STORED_##type *out = (STORED_##type *)a->out + token * a->out_token_stride;                                  \
      turn_heads_##type##_##type(x, a->x_head_stride, out, a->out_head_stride, a->heads, a->inv_freq, a->n_rot,    \
                                 a->interleaved, a->positions[token], a->scale);                                   \
      if (x != out) {                                                                                              \
        copy_heads_##type##_##type(x, a->x_head_stride, out, a->out_head_stride, a->heads, a->n_rot, a->head_dim); \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  void RDNA_HOST_KERNEL(rope_##type)(const void *args, rdna_grid grid) {                                           \
    struct rope_args a = *(const struct rope_args *)args;                                                          \
    rdna__parallel_for(a.tokens, 4, rope_##type##_tokens, &a);                                                     \
  }
ROPE(f32)
ROPE(f16)

/* One head of |dim| values, normed as rope_kernels.h says, into |out|. */
static void norm_head(const float *x, const float *weight, int32_t dim, float epsilon, float *out) {
  float lane[32] = {0};
  for (int32_t i = 0; i < dim; i++) lane[i % 32] = fma_f32(x[i], x[i], lane[i % 32]);
  for (int half = 16; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) lane[i] += lane[i + half];
  }
  float factor = 1.0f / scalar_sqrt(lane[0] / (float)dim + epsilon);
  for (int32_t i = 0; i < dim; i++) out[i] = x[i] * factor * weight[i];
}

#define NORMED(type)                                                                                        \
  /* Norms heads, rotates them unless |t| is NULL, and writes them to |out|. */                             \
  static void write_normed_##type(const struct rope_kv_write_args *a, const struct turn *t, const float *x, \
                                  int64_t x_stride, STORED_##type *out, int64_t out_stride, int32_t heads,  \
                                  int32_t dim, const float *weight) {                                       \
    float buffer[ROPE_NORM_DIM];                                                                            \
    int32_t turned = t ? a->n_rot : 0;                                                                      \
    for (int32_t h = 0; h < heads; h++) {                                                                   \
      norm_head(x + h * x_stride, weight, dim, a->epsilon, buffer);                                         \
      for (int32_t i = 0; i < turned / 2; i += t[i / TABLE_PAIRS].count)                                    \
        turn_f32_##type(&t[i / TABLE_PAIRS], buffer, out + h * out_stride);                                 \
      copy_heads_f32_##type(buffer, 0, out + h * out_stride, 0, 1, turned, dim);                            \
    }                                                                                                       \
  }
NORMED(f32)
NORMED(f16)
NORMED(bf16)

/* The tables of all pairs of a token. */
static void fill_tables(const struct rope_kv_write_args *a, int64_t token, struct turn *t) {
  int32_t half = a->n_rot / 2;
  for (int32_t begin = 0; begin < half; begin += TABLE_PAIRS, t++) {
    *t = (struct turn){.begin = begin, .half = half, .interleaved = a->interleaved};
    t->count = half - begin < TABLE_PAIRS ? half - begin : TABLE_PAIRS;
    fill_table(t, a->inv_freq, a->positions[token], a->scale);
  }
}

#define WRITE_TURNED(type)                                                                                   \
  /* Rotates |heads| heads of q or k, normed by |weight| unless that is NULL. */                             \
  static void write_turned_##type(const struct rope_kv_write_args *a, const struct turn *t, int64_t token,   \
                                  const float *x, int64_t x_stride, const float *weight, STORED_##type *out, \
                                  int64_t out_stride, int32_t heads) {                                       \
    if (weight) {                                                                                            \
      write_normed_##type(a, t, x, x_stride, out, out_stride, heads, a->k_dim, weight);                      \
      return;                                                                                                \
    }                                                                                                        \
    turn_heads_f32_##type(x, x_stride, out, out_stride, heads, a->inv_freq, a->n_rot, a->interleaved,        \
                          a->positions[token], a->scale);                                                    \
    if ((const void *)x != (const void *)out)                                                                \
      copy_heads_f32_##type(x, x_stride, out, out_stride, heads, a->n_rot, a->k_dim);                        \
  }
WRITE_TURNED(f32)
WRITE_TURNED(f16)
WRITE_TURNED(bf16)

#define ROPE_KV_WRITE(type)                                                                                          \
  static void write_v_##type(const struct rope_kv_write_args *a, int64_t token, STORED_##type *out) {                \
    const float *v = a->v + token * a->v_token_stride;                                                               \
    if (a->v_norm)                                                                                                   \
      write_normed_##type(a, NULL, v, a->v_head_stride, out, a->v_cache_head_stride, a->heads, a->v_dim, a->v_norm); \
    else                                                                                                             \
      copy_heads_f32_##type(v, a->v_head_stride, out, a->v_cache_head_stride, a->heads, 0, a->v_dim);                \
  }                                                                                                                  \
  static void rope_kv_write_##type##_tokens(void *context, int64_t begin, int64_t end) {                             \
    const struct rope_kv_write_args *a = context;                                                                    \
    struct turn t[ROPE_NORM_DIM / 2 / TABLE_PAIRS];                                                                  \
    for (int64_t token = begin; token < end; token++) {                                                              \
      int64_t row = a->cache_row[token];                                                                             \
      if (a->q_norm || a->k_norm) fill_tables(a, token, t);                                                          \
      float *q = a->q ? a->q + token * a->q_token_stride : NULL;                                                     \
      if (q && a->q_out)                                                                                             \
        write_turned_##type(a, t, token, q, a->q_head_stride, a->q_norm,                                             \
                            (STORED_##type *)a->q_out + token * a->q_out_token_stride, a->q_out_head_stride,         \
                            a->q_heads);                                                                             \
      else if (q)                                                                                                    \
        write_turned_f32(a, t, token, q, a->q_head_stride, a->q_norm, q, a->q_head_stride, a->q_heads);              \
      if (row < 0 || row >= a->slots) continue;                                                                      \
      write_turned_##type(a, t, token, a->k + token * a->k_token_stride, a->k_head_stride, a->k_norm,                \
                          (STORED_##type *)a->k_cache + row * a->k_slot_stride, a->k_cache_head_stride, a->heads);   \
      write_v_##type(a, token, (STORED_##type *)a->v_cache + row * a->v_slot_stride);                                \
    }                                                                                                                \
  }                                                                                                                  \
  void RDNA_HOST_KERNEL(rope_kv_write_##type)(const void *args, rdna_grid grid) {                                    \
    struct rope_kv_write_args a = *(const struct rope_kv_write_args *)args;                                          \
    rdna__parallel_for(a.tokens, 4, rope_kv_write_##type##_tokens, &a);                                              \
  }
ROPE_KV_WRITE(f32)
ROPE_KV_WRITE(f16)
ROPE_KV_WRITE(bf16)
