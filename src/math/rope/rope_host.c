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

#define ROPE_KV_WRITE(type)                                                                                        \
  static void rope_kv_write_##type##_tokens(void *context, int64_t begin, int64_t end) {                           \
    const struct rope_kv_write_args *a = context;                                                                  \
    for (int64_t token = begin; token < end; token++) {                                                            \
      int64_t row = a->cache_row[token];                                                                           \
      float *q = a->q + token * a->q_token_stride;                                                                 \
      if (a->q && a->q_out) {                                                                                      \
        STORED_##type *q_out = (STORED_##type *)a->q_out + token * a->q_out_token_stride;                          \
        turn_heads_f32_##type(q, a->q_head_stride, q_out, a->q_out_head_stride, a->q_heads, a->inv_freq, a->n_rot, \
                              a->interleaved, a->positions[token], a->scale);                                      \
        copy_heads_f32_##type(q, a->q_head_stride, q_out, a->q_out_head_stride, a->q_heads, a->n_rot, a->k_dim);   \
      } else if (a->q) {                                                                                           \
        turn_heads_f32_f32(q, a->q_head_stride, q, a->q_head_stride, a->q_heads, a->inv_freq, a->n_rot,            \
                           a->interleaved, a->positions[token], a->scale);                                         \
      }                                                                                                            \
      if (row < 0 || row >= a->slots) continue;                                                                    \
      const float *k = a->k + token * a->k_token_stride, *v = a->v + token * a->v_token_stride;                    \
      STORED_##type *k_out = (STORED_##type *)a->k_cache + row * a->k_slot_stride;                                 \
      STORED_##type *v_out = (STORED_##type *)a->v_cache + row * a->v_slot_stride;                                 \
      turn_heads_f32_##type(k, a->k_head_stride, k_out, a->k_cache_head_stride, a->heads, a->inv_freq, a->n_rot,   \
                            a->interleaved, a->positions[token], a->scale);                                        \
      copy_heads_f32_##type(k, a->k_head_stride, k_out, a->k_cache_head_stride, a->heads, a->n_rot, a->k_dim);     \
      copy_heads_f32_##type(v, a->v_head_stride, v_out, a->v_cache_head_stride, a->heads, 0, a->v_dim);            \
    }                                                                                                              \
  }                                                                                                                \
  void RDNA_HOST_KERNEL(rope_kv_write_##type)(const void *args, rdna_grid grid) {                                  \
    struct rope_kv_write_args a = *(const struct rope_kv_write_args *)args;                                        \
    rdna__parallel_for(a.tokens, 4, rope_kv_write_##type##_tokens, &a);                                            \
  }
ROPE_KV_WRITE(f32)
ROPE_KV_WRITE(f16)
