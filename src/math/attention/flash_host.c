/* Attention over whole sequences on the host. A block of queries meets a tile of keys; scores stand transposed, (keys,
 * queries), so that maxima and exponentials run across queries. */
#include <string.h>

#include "kernel/host.h"
#include "math/attention/attention_multiply.h"
#include "math/attention/flash_backward_kernels.h"
#include "math/attention/flash_mask_kernels.h"
#include "math/attention/flash_math.h"
#include "math/attention/flash_wide_kernels.h"

enum { ROWS = 32, KEYS = 32, MAX_D = FLASH_MAX_D, FORWARD_D = FLASH_WIDE_D, FORWARD_DV = FLASH_WIDE_DV };
enum type { F32, F16, BF16 };

struct work {
  struct flash_args a;
  enum type type;
};

/* One head of one sequence. */
struct head {
  const struct work *work;
  struct flash_sequence s;
  int32_t batch, head, kv_head;
  float slope;
};

static struct head head_of(const struct work *work, int32_t batch, int32_t head) {
  const struct flash_args *a = &work->a;
  struct head h = {work, flash_sequence_of(a, batch), batch, head, head / (a->heads / a->kv_heads), 0};
  if (a->slopes) h.slope = a->slopes[batch * a->slopes_stride + head];
  return h;
}

static int round_up(int n) { return (n + 2 * SIMD_WIDTH - 1) / (2 * SIMD_WIDTH) * (2 * SIMD_WIDTH); }

/* Where row |row| of a head begins, in values. */
static int64_t row_at(const int64_t stride[3], int32_t batch, int64_t row, int32_t head) {
  return batch * stride[0] + row * stride[1] + head * stride[2];
}

/* d values as floats, zeros up to |padded|. */
static void load_row(enum type type, const void *data, int64_t at, int d, int padded, float *out) {
  int i = 0;
  if (type == F32) {
    memcpy(out, (const float *)data + at, (size_t)d * sizeof(float));
    i = d;
  } else {
    const uint16_t *in = (const uint16_t *)data + at;
    for (; i + SIMD_WIDTH <= d; i += SIMD_WIDTH)
      simd_store(out + i, type == F16 ? simd_load_f16(in + i) : simd_load_bf16(in + i));
    for (; i < d; i++) out[i] = type == F16 ? f16_to_f32(in[i]) : bf16_to_f32(in[i]);
  }
  for (; i < padded; i++) out[i] = 0;
}
static void store_row(enum type type, void *data, int64_t at, int d, const float *in) {
  for (int i = 0; i < d; i++) {
    if (type == F32) ((float *)data)[at + i] = in[i];
    if (type == F16) ((uint16_t *)data)[at + i] = f32_to_f16(in[i]);
    if (type == BF16) ((uint16_t *)data)[at + i] = f32_to_bf16(in[i]);
  }
}

/* |count| rows from |first| on, (count, padded d). */
static void load_rows(const struct head *h, const void *data, const int64_t stride[3], int64_t row, int32_t head,
                      int count, int d, float *out) {
  for (int i = 0; i < count; i++)
    load_row(h->work->type, data, row_at(stride, h->batch, row + i, head), d, round_up(d), out + i * round_up(d));
}
/* The same as (d, ROWS), zeros for the rows that are missing. */
static void load_rows_turned(const struct head *h, const void *data, const int64_t stride[3], int64_t row, int32_t head,
                             int count, int d, float *out) {
  float one[FORWARD_D];
  memset(out, 0, (size_t)(d * ROWS) * sizeof(float));
  for (int r = 0; r < count; r++) {
    load_row(h->work->type, data, row_at(stride, h->batch, row + r, head), d, d, one);
    for (int i = 0; i < d; i++) out[i * ROWS + r] = one[i];
  }
}

static float mask_at(const struct work *work, int64_t cell) {
  const struct flash_args *a = &work->a;
  if (a->mask_type == FLASH_MASK_BOOL) return ((const uint8_t *)a->mask)[cell] ? 0 : -__builtin_inff();
  if (a->mask_type == FLASH_MASK_F32 || work->type == F32) return ((const float *)a->mask)[cell];
  uint16_t bits = ((const uint16_t *)a->mask)[cell];
  return work->type == F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

/* From the products s(keys, ROWS) to scores, -inf where a query does not see the key. |slack|, or NULL, becomes the
 * derivative of a score by scale * q.k. */
static void finish_scores(const struct head *h, int32_t first_query, int queries, int32_t first_key, int keys, float *s,
                          float *slack) {
  const struct flash_args *a = &h->work->a;
  for (int i = 0; i < keys * ROWS; i++) s[i] *= a->scale;
  if (a->softcap != 0) {
    for (int i = 0; i < keys * ROWS; i++) {
      float tanh = scalar_tanh(s[i] / a->softcap);
      s[i] = a->softcap * tanh;
      if (slack) slack[i] = 1 - tanh * tanh;
    }
  } else if (slack) {
    for (int i = 0; i < keys * ROWS; i++) slack[i] = 1;
  }
  for (int r = 0; r < queries; r++) {
    int32_t query = first_query + r, low = flash_first_key(a, &h->s, query), high = flash_last_key(a, &h->s, query);
    if (a->slopes) {
      for (int j = 0; j < keys; j++) {
        int32_t far = query + h->s.shift - first_key - j;
        s[j * ROWS + r] -= h->slope * (float)(far < 0 ? -far : far);
      }
    }
    if (a->mask_type != FLASH_NO_MASK) {
      int64_t row = h->batch * a->mask_stride[0] + h->head * a->mask_stride[1] + query * a->mask_stride[2];
      for (int j = 0; j < keys; j++) s[j * ROWS + r] += mask_at(h->work, row + (first_key + j) * a->mask_stride[3]);
    }
    for (int j = 0; j < keys; j++)
      if (first_key + j < low || first_key + j > high) s[j * ROWS + r] = -__builtin_inff();
  }
}

/* 1 / (1 - dropout) or 0 for each. */
static void keep(const struct head *h, int32_t first_query, int queries, int32_t first_key, int keys, float *kept) {
  const struct flash_args *a = &h->work->a;
  float scale = 1 / (1 - a->dropout);
  for (int i = 0; i < keys * ROWS; i++) kept[i] = scale;
  if (a->dropout == 0) return;
  for (int r = 0; r < queries; r++) {
    for (int j = 0; j < keys; j += 4) { /* first_key is a multiple of 4 */
      struct random_words w = flash_dropout_words(a, h->batch, h->head, first_query + r, (first_key + j) / 4);
      for (int i = j; i < j + 4 && i < keys; i++)
        if (random_unit(w.word[i - j]) < a->dropout) kept[i * ROWS + r] = 0;
    }
  }
}

/* The tiles of keys that some query of first .. last sees. */
static void key_range(const struct head *h, int32_t first, int32_t last, int32_t *begin, int32_t *end) {
  *begin = flash_first_key(&h->work->a, &h->s, first) / KEYS * KEYS;
  *end = flash_last_key(&h->work->a, &h->s, last) + 1;
}

struct forward_block {
  _Alignas(64) float q[FORWARD_D * ROWS]; /* (d, ROWS) */
  _Alignas(64) float o[ROWS * FORWARD_DV];
  _Alignas(64) float k[KEYS * FORWARD_D];
  _Alignas(64) float v[KEYS * FORWARD_DV];
  _Alignas(64) float s[KEYS * ROWS];
  _Alignas(64) float kept[KEYS * ROWS];
  _Alignas(64) float m[ROWS], l[ROWS];
};

static void forward_tile(struct forward_block *b, int queries, int keys, int padded_dv, bool dropout) {
  float top[ROWS], rescale[ROWS];
  memcpy(top, b->m, sizeof top);
  for (int j = 0; j < keys; j++)
    for (int r = 0; r < ROWS; r++) top[r] = max_f32(top[r], b->s[j * ROWS + r]);
  for (int r = 0; r < ROWS; r++) {
    float base = top[r] == -__builtin_inff() ? 0 : top[r];
    rescale[r] = scalar_exp(b->m[r] - base);
    b->m[r] = top[r];
    top[r] = base;
    b->l[r] *= rescale[r];
  }
  for (int j = 0; j < keys; j++)
    for (int r = 0; r < ROWS; r++) {
      float p = scalar_exp(b->s[j * ROWS + r] - top[r]);
      b->s[j * ROWS + r] = p;
      b->l[r] += p;
    }
  for (int r = 0; r < queries; r++) {
    if (rescale[r] == 1) continue;
    for (int i = 0; i < padded_dv; i++) b->o[r * padded_dv + i] *= rescale[r];
  }
  if (dropout)
    for (int i = 0; i < keys * ROWS; i++) b->s[i] *= b->kept[i];
  multiply(queries, padded_dv, keys, b->s, 1, ROWS, b->v, padded_dv, b->o, padded_dv, true);
}

static void forward_rows(const struct head *h, int32_t first) {
  const struct flash_args *a = &h->work->a;
  int queries = h->s.sq - first < ROWS ? h->s.sq - first : ROWS, padded_d = round_up(a->d), padded_dv = round_up(a->dv);
  int32_t begin, end;
  struct forward_block b;
  load_rows_turned(h, a->q, a->q_stride, h->s.q_row + first, h->head, queries, a->d, b.q);
  memset(b.o, 0, (size_t)(ROWS * padded_dv) * sizeof(float));
  for (int r = 0; r < ROWS; r++) {
    b.m[r] = -__builtin_inff();
    b.l[r] = 0;
  }
  key_range(h, first, first + queries - 1, &begin, &end);
  for (int32_t key = begin; key < end; key += KEYS) {
    int keys = h->s.sk - key < KEYS ? h->s.sk - key : KEYS;
    load_rows(h, a->k, a->k_stride, h->s.k_row + key, h->kv_head, keys, a->d, b.k);
    load_rows(h, a->v, a->v_stride, h->s.k_row + key, h->kv_head, keys, a->dv, b.v);
    multiply(keys, ROWS, a->d, b.k, padded_d, 1, b.q, ROWS, b.s, ROWS, false);
    finish_scores(h, first, queries, key, keys, b.s, NULL);
    if (a->dropout != 0) keep(h, first, queries, key, keys, b.kept);
    forward_tile(&b, queries, keys, padded_dv, a->dropout != 0);
  }
  for (int r = 0; r < queries; r++) {
    float *o = b.o + r * padded_dv, inverse = b.l[r] == 0 ? 0 : 1 / b.l[r];
    if (a->sinks && a->sinks[h->head] != -__builtin_inff()) {
      float top = max_f32(b.m[r], a->sinks[h->head]), share = scalar_exp(b.m[r] - top);
      b.m[r] = top, b.l[r] = b.l[r] * share + scalar_exp(a->sinks[h->head] - top);
      inverse = share / b.l[r];
    }
    for (int i = 0; i < a->dv; i++) o[i] *= inverse;
    store_row(h->work->type, a->out, row_at(a->out_stride, h->batch, h->s.q_row + first + r, h->head), a->dv, o);
    if (a->lse)
      a->lse[h->batch * a->lse_stride[0] + h->head * a->lse_stride[1] + h->s.q_row + first + r] =
          b.l[r] == 0 ? -__builtin_inff() : b.m[r] + scalar_log(b.l[r]);
  }
}

static void forward_items(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct flash_args *a = &work->a;
  int64_t blocks = ((int64_t)a->sq + ROWS - 1) / ROWS;
  for (int64_t item = begin; item < end; item++) {
    struct head h = head_of(work, (int32_t)(item / blocks / a->heads), (int32_t)(item / blocks % a->heads));
    /* sequences may be longer than said */
    for (int64_t first = item % blocks * ROWS; first < h.s.sq; first += blocks * ROWS) forward_rows(&h, (int32_t)first);
  }
}

static void forward(const void *args, enum type type) {
  struct work work = {*(const struct flash_args *)args, type};
  int64_t blocks = ((int64_t)work.a.sq + ROWS - 1) / ROWS;
  rdna__parallel_for(blocks * work.a.heads * work.a.batch, 1, forward_items, &work);
}

#define FORWARD(name, type) \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { forward(args, type); }
#define FORWARD_TYPE(type, TYPE)                 \
  FORWARD(flash_forward_##type##_64, TYPE)       \
  FORWARD(flash_forward_##type##_128, TYPE)      \
  FORWARD(flash_forward_##type##_256, TYPE)      \
  FORWARD(flash_forward_##type##_wide, TYPE)     \
  FORWARD(flash_forward_any_##type##_wide, TYPE) \
  FORWARD(flash_forward_any_##type##_64, TYPE)   \
  FORWARD(flash_forward_any_##type##_128, TYPE)  \
  FORWARD(flash_forward_any_##type##_256, TYPE)
#define FORWARD_MASKED(type, TYPE)                \
  FORWARD(flash_forward_masked_##type##_64, TYPE) \
  FORWARD(flash_forward_masked_##type##_128, TYPE)
FORWARD_TYPE(f32, F32)
FORWARD_TYPE(f16, F16)
FORWARD_TYPE(bf16, BF16)
FORWARD_MASKED(f16, F16)
FORWARD_MASKED(bf16, BF16)

/* --- gradients --- */

struct backward {
  struct flash_backward_args a;
  struct work work; /* of a.of */
};

/* A block of queries and a tile of keys. */
struct backward_block {
  _Alignas(64) float q[ROWS * MAX_D];    /* (queries, padded d) */
  _Alignas(64) float dout[ROWS * MAX_D]; /* (queries, padded dv) */
  _Alignas(64) float q_turned[MAX_D * ROWS];
  _Alignas(64) float dout_turned[MAX_D * ROWS];
  _Alignas(64) float k[KEYS * MAX_D];
  _Alignas(64) float v[KEYS * MAX_D];
  _Alignas(64) float p[KEYS * ROWS]; /* (keys, ROWS), as they meet v */
  _Alignas(64) float ds[KEYS * ROWS];
  _Alignas(64) float slack[KEYS * ROWS];
  _Alignas(64) float kept[KEYS * ROWS];
  float lse[ROWS], delta[ROWS];
};

static void turn(const float *in, int queries, int d, float *out) {
  memset(out, 0, (size_t)(d * ROWS) * sizeof(float));
  for (int r = 0; r < queries; r++)
    for (int i = 0; i < d; i++) out[i * ROWS + r] = in[r * round_up(d) + i];
}

static void load_queries(const struct backward *w, const struct head *h, int32_t first, int queries,
                         struct backward_block *b) {
  const struct flash_args *a = &w->a.of;
  load_rows(h, a->q, a->q_stride, h->s.q_row + first, h->head, queries, a->d, b->q);
  load_rows(h, w->a.dout, w->a.dout_stride, h->s.q_row + first, h->head, queries, a->dv, b->dout);
  turn(b->q, queries, a->d, b->q_turned);
  turn(b->dout, queries, a->dv, b->dout_turned);
  for (int r = 0; r < ROWS; r++) {
    int64_t at = h->batch * a->lse_stride[0] + h->head * a->lse_stride[1] + h->s.q_row + first + r;
    b->lse[r] = r < queries && a->lse[at] != -__builtin_inff() ? a->lse[at] : __builtin_inff();
    b->delta[r] = r < queries ? w->a.delta[at] : 0;
  }
}

static void load_keys(const struct backward *w, const struct head *h, int32_t first, int keys,
                      struct backward_block *b) {
  const struct flash_args *a = &w->a.of;
  load_rows(h, a->k, a->k_stride, h->s.k_row + first, h->kv_head, keys, a->d, b->k);
  load_rows(h, a->v, a->v_stride, h->s.k_row + first, h->kv_head, keys, a->dv, b->v);
}

/* p and ds of what was loaded; ds by scale * q.k, or if |of_mask| by the score. */
static void backward_scores(const struct backward *w, const struct head *h, int32_t query, int queries, int32_t key,
                            int keys, bool of_mask, struct backward_block *b) {
  const struct flash_args *a = &w->a.of;
  multiply(keys, ROWS, a->d, b->k, round_up(a->d), 1, b->q_turned, ROWS, b->p, ROWS, false);
  multiply(keys, ROWS, a->dv, b->v, round_up(a->dv), 1, b->dout_turned, ROWS, b->ds, ROWS, false);
  finish_scores(h, query, queries, key, keys, b->p, b->slack);
  keep(h, query, queries, key, keys, b->kept);
  for (int j = 0; j < keys; j++) {
    for (int r = 0; r < ROWS; r++) {
      int at = j * ROWS + r;
      float p = scalar_exp(b->p[at] - b->lse[r]);
      b->ds[at] = p * (b->ds[at] * b->kept[at] - b->delta[r]) * (of_mask ? 1 : b->slack[at]);
      b->p[at] = p * b->kept[at];
    }
  }
}

static void store_scaled(enum type type, void *data, int64_t at, int d, float scale, float *values) {
  for (int i = 0; i < d; i++) values[i] *= scale;
  store_row(type, data, at, d, values);
}

/* ds of a block of queries and the keys |first_key| .. + |keys| - 1, or without |ds| zeros. */
static void store_dmask(const struct backward *w, const struct head *h, int32_t first, int queries, int32_t first_key,
                        int32_t keys, const float *ds) {
  const int64_t *stride = w->a.dmask_stride;
  enum type type = w->a.of.mask_type == FLASH_MASK_F32 ? F32 : w->work.type;
  int64_t at = h->batch * stride[0] + h->head * stride[1];
  const float zero = 0;
  for (int r = 0; r < queries; r++)
    for (int32_t j = 0; j < keys; j++)
      store_row(type, w->a.dmask, at + (first + r) * stride[2] + (first_key + j) * stride[3], 1,
                ds ? ds + j * ROWS + r : &zero);
}

static void backward_queries(const struct backward *w, const struct head *h, int32_t first) {
  const struct flash_args *a = &w->a.of;
  int queries = h->s.sq - first < ROWS ? h->s.sq - first : ROWS, padded = round_up(a->d);
  _Alignas(64) float dq[ROWS * MAX_D];
  int32_t begin, end;
  struct backward_block b;
  memset(dq, 0, (size_t)(queries * padded) * sizeof(float));
  load_queries(w, h, first, queries, &b);
  key_range(h, first, first + queries - 1, &begin, &end);
  if (w->a.dmask) store_dmask(w, h, first, queries, 0, h->s.sk, NULL);
  for (int32_t key = begin; key < end; key += KEYS) {
    int keys = h->s.sk - key < KEYS ? h->s.sk - key : KEYS;
    load_keys(w, h, key, keys, &b);
    backward_scores(w, h, first, queries, key, keys, false, &b);
    if (w->a.dmask) store_dmask(w, h, first, queries, key, keys, b.ds);
    multiply(queries, padded, keys, b.ds, 1, ROWS, b.k, padded, dq, padded, true);
  }
  for (int r = 0; r < queries; r++)
    store_scaled(w->work.type, w->a.dq, row_at(w->a.dq_stride, h->batch, h->s.q_row + first + r, h->head), a->d,
                 a->scale, dq + r * padded);
}

/* A tile of keys of one key head, over all its query heads. */
static void backward_keys(const struct backward *w, int32_t batch, int32_t kv_head, int32_t first) {
  const struct flash_args *a = &w->a.of;
  int32_t heads_per_kv = a->heads / a->kv_heads;
  struct head h = head_of(&w->work, batch, kv_head * heads_per_kv);
  int keys = h.s.sk - first < KEYS ? h.s.sk - first : KEYS, padded = round_up(a->d), padded_dv = round_up(a->dv);
  _Alignas(64) float dk[KEYS * MAX_D], dv[KEYS * MAX_D];
  struct backward_block b;
  memset(dk, 0, (size_t)(keys * padded) * sizeof(float));
  memset(dv, 0, (size_t)(keys * padded_dv) * sizeof(float));
  load_keys(w, &h, first, keys, &b);
  int32_t begin = flash_first_query(a, &h.s, first) / ROWS * ROWS, last = flash_last_query(a, &h.s, first + keys - 1);
  for (int32_t head = kv_head * heads_per_kv; head < (kv_head + 1) * heads_per_kv; head++) {
    h = head_of(&w->work, batch, head);
    for (int32_t query = begin; query <= last; query += ROWS) {
      int queries = h.s.sq - query < ROWS ? h.s.sq - query : ROWS;
      load_queries(w, &h, query, queries, &b);
      backward_scores(w, &h, query, queries, first, keys, false, &b);
      multiply(keys, padded, queries, b.ds, ROWS, 1, b.q, padded, dk, padded, true);
      multiply(keys, padded_dv, queries, b.p, ROWS, 1, b.dout, padded_dv, dv, padded_dv, true);
    }
  }
  for (int j = 0; j < keys; j++) {
    int64_t row = h.s.k_row + first + j;
    store_scaled(w->work.type, w->a.dk, row_at(w->a.dk_stride, batch, row, kv_head), a->d, a->scale, dk + j * padded);
    store_scaled(w->work.type, w->a.dv, row_at(w->a.dv_stride, batch, row, kv_head), a->dv, 1, dv + j * padded_dv);
  }
}

static void queries_items(void *context, int64_t begin, int64_t end) {
  const struct backward *w = context;
  const struct flash_args *a = &w->a.of;
  int64_t blocks = ((int64_t)a->sq + ROWS - 1) / ROWS;
  for (int64_t item = begin; item < end; item++) {
    struct head h = head_of(&w->work, (int32_t)(item / blocks / a->heads), (int32_t)(item / blocks % a->heads));
    for (int64_t first = item % blocks * ROWS; first < h.s.sq; first += blocks * ROWS)
      backward_queries(w, &h, (int32_t)first);
  }
}
static void keys_items(void *context, int64_t begin, int64_t end) {
  const struct backward *w = context;
  const struct flash_args *a = &w->a.of;
  int64_t blocks = ((int64_t)a->sk + KEYS - 1) / KEYS;
  for (int64_t item = begin; item < end; item++) {
    int32_t batch = (int32_t)(item / blocks / a->kv_heads);
    struct flash_sequence s = flash_sequence_of(a, batch);
    for (int64_t first = item % blocks * KEYS; first < s.sk; first += blocks * KEYS)
      backward_keys(w, batch, (int32_t)(item / blocks % a->kv_heads), (int32_t)first);
  }
}

static void backward(const void *args, enum type type, bool of_keys) {
  struct backward w = {.a = *(const struct flash_backward_args *)args};
  w.work = (struct work){w.a.of, type};
  const struct flash_args *a = &w.a.of;
  int64_t blocks = ((int64_t)(of_keys ? a->sk : a->sq) + ROWS - 1) / ROWS;
  rdna__parallel_for(blocks * (of_keys ? a->kv_heads : a->heads) * a->batch, 1, of_keys ? keys_items : queries_items,
                     &w);
}

struct delta {
  struct flash_delta_args a;
  struct work work;
};

static void delta_items(void *context, int64_t begin, int64_t end) {
  const struct delta *w = context;
  const struct flash_args *a = &w->a.of;
  float x[MAX_D], y[MAX_D];
  for (int64_t item = begin; item < end; item++) {
    struct head h = head_of(&w->work, (int32_t)(item / a->heads), (int32_t)(item % a->heads));
    for (int32_t i = 0; i < h.s.sq; i++) {
      int64_t row = h.s.q_row + i;
      load_row(w->work.type, a->out, row_at(a->out_stride, h.batch, row, h.head), a->dv, a->dv, x);
      load_row(w->work.type, w->a.dout, row_at(w->a.dout_stride, h.batch, row, h.head), a->dv, a->dv, y);
      float sum = 0;
      for (int e = 0; e < a->dv; e++) sum += x[e] * y[e];
      w->a.delta[h.batch * a->lse_stride[0] + h.head * a->lse_stride[1] + row] = sum;
    }
  }
}

static void delta(const void *args, enum type type) {
  struct delta w = {.a = *(const struct flash_delta_args *)args};
  w.work = (struct work){w.a.of, type};
  rdna__parallel_for((int64_t)w.a.of.batch * w.a.of.heads, 1, delta_items, &w);
}

#define BACKWARD(name, type, of_keys) \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { backward(args, type, of_keys); }
#define BACKWARD_SIZE(type, TYPE, size)                             \
  BACKWARD(flash_backward_queries_##type##_##size, TYPE, false)     \
  BACKWARD(flash_backward_queries_any_##type##_##size, TYPE, false) \
  BACKWARD(flash_backward_keys_##type##_##size, TYPE, true)         \
  BACKWARD(flash_backward_keys_any_##type##_##size, TYPE, true)
#define BACKWARD_TYPE(type, TYPE)                                                                    \
  void RDNA_HOST_KERNEL(flash_delta_##type)(const void *args, rdna_grid grid) { delta(args, TYPE); } \
  BACKWARD_SIZE(type, TYPE, 64)                                                                      \
  BACKWARD_SIZE(type, TYPE, 128)                                                                     \
  BACKWARD_SIZE(type, TYPE, 256)
#define BACKWARD_MASKED(type, TYPE, size)                              \
  BACKWARD(flash_backward_queries_masked_##type##_##size, TYPE, false) \
  BACKWARD(flash_backward_keys_masked_##type##_##size, TYPE, true)
BACKWARD_TYPE(f32, F32)
BACKWARD_TYPE(f16, F16)
BACKWARD_TYPE(bf16, BF16)
BACKWARD_MASKED(f16, F16, 64)
BACKWARD_MASKED(f16, F16, 128)
BACKWARD_MASKED(bf16, BF16, 64)
BACKWARD_MASKED(bf16, BF16, 128)

/* --- gradient of the mask --- */

struct of_mask {
  struct flash_mask_args a;
  struct backward backward; /* the same as its kernels see it */
};

/* Adds one block of queries' share to |sum|, (KEYS, ROWS). */
static void mask_add(const struct of_mask *w, int32_t batch, int32_t head, int32_t first, int32_t key, int keys,
                     float *sum) {
  const struct flash_args *a = &w->a.of;
  struct head h = head_of(&w->backward.work, batch, head);
  struct backward_block b;
  int queries = a->sq - first < ROWS ? a->sq - first : ROWS;
  load_queries(&w->backward, &h, first, queries, &b);
  load_keys(&w->backward, &h, key, keys, &b);
  backward_scores(&w->backward, &h, first, queries, key, keys, true, &b);
  for (int j = 0; j < keys; j++)
    for (int r = 0; r < queries; r++) sum[j * ROWS + r] += b.ds[j * ROWS + r];
}

/* One part's share of the mask's block of queries (of all of them where it has one) and tile of keys. */
static void mask_block(const struct of_mask *w, uint32_t part, int32_t batch, int32_t head, int32_t block,
                       int32_t key) {
  const struct flash_mask_args *a = &w->a;
  int32_t tiles = (a->of.sq + FLASH_MASK_TILE - 1) / FLASH_MASK_TILE;
  bool one_query = a->mask_queries == 1;
  uint64_t terms = flash_mask_terms(a);
  int keys = a->of.sk - key < KEYS ? a->of.sk - key : KEYS;
  _Alignas(64) float sum[KEYS * ROWS] = {0};
  for (uint32_t term = (uint32_t)(terms * part / a->parts); term < (uint32_t)(terms * (part + 1) / a->parts); term++) {
    uint32_t rest = term;
    int32_t of_head = head, of_batch = batch, begin = block * ROWS, end = begin + 1;
    if (one_query) {
      begin = (int32_t)rest % tiles * FLASH_MASK_TILE;
      end = a->of.sq - begin < FLASH_MASK_TILE ? a->of.sq : begin + FLASH_MASK_TILE;
      rest /= (uint32_t)tiles;
    }
    if (a->mask_heads == 1) of_head = (int32_t)rest % a->of.heads, rest /= (uint32_t)a->of.heads;
    if (a->mask_batch == 1) of_batch = (int32_t)rest;
    for (int32_t first = begin; first < end; first += ROWS) mask_add(w, of_batch, of_head, first, key, keys, sum);
  }
  int64_t at = part * a->dmask_stride[0] + batch * a->dmask_stride[1] + head * a->dmask_stride[2];
  int queries = a->of.sq - block * ROWS < ROWS ? a->of.sq - block * ROWS : ROWS;
  if (one_query) {
    for (int j = 0; j < keys; j++)
      for (int r = 1; r < ROWS; r++) sum[j * ROWS] += sum[j * ROWS + r];
    queries = 1;
  }
  for (int j = 0; j < keys; j++)
    for (int r = 0; r < queries; r++)
      store_row(a->is_f32 ? F32 : w->backward.work.type, a->dmask,
                at + (block * ROWS + r) * a->dmask_stride[3] + (key + j) * a->dmask_stride[4], 1, sum + j * ROWS + r);
}

static void mask_items(void *context, int64_t begin, int64_t end) {
  const struct of_mask *w = context;
  const struct flash_mask_args *a = &w->a;
  int64_t key_tiles = ((int64_t)a->of.sk + KEYS - 1) / KEYS;
  int64_t blocks = a->mask_queries == 1 ? 1 : ((int64_t)a->of.sq + ROWS - 1) / ROWS;
  for (int64_t item = begin; item < end; item++) {
    int64_t block = item / key_tiles, head = block / blocks, batch = head / a->mask_heads;
    mask_block(w, (uint32_t)(batch / a->mask_batch), (int32_t)(batch % a->mask_batch), (int32_t)(head % a->mask_heads),
               (int32_t)(block % blocks), (int32_t)(item % key_tiles) * KEYS);
  }
}

static void mask_gradient(const void *args, enum type type) {
  struct of_mask w = {.a = *(const struct flash_mask_args *)args};
  const struct flash_mask_args *a = &w.a;
  w.backward.work = (struct work){a->of, type};
  w.backward.a = (struct flash_backward_args){.of = a->of, .dout = a->dout, .delta = a->delta};
  memcpy(w.backward.a.dout_stride, a->dout_stride, sizeof a->dout_stride);
  int64_t blocks = a->mask_queries == 1 ? 1 : ((int64_t)a->of.sq + ROWS - 1) / ROWS;
  rdna__parallel_for(((int64_t)a->of.sk + KEYS - 1) / KEYS * blocks * a->mask_heads * a->mask_batch * a->parts, 1,
                     mask_items, &w);
}

void RDNA_HOST_KERNEL(flash_mask_f32)(const void *args, rdna_grid grid) { mask_gradient(args, F32); }
void RDNA_HOST_KERNEL(flash_mask_f16)(const void *args, rdna_grid grid) { mask_gradient(args, F16); }
void RDNA_HOST_KERNEL(flash_mask_bf16)(const void *args, rdna_grid grid) { mask_gradient(args, BF16); }
void RDNA_HOST_KERNEL(flash_mask_masked_f16_64)(const void *args, rdna_grid grid) { mask_gradient(args, F16); }
void RDNA_HOST_KERNEL(flash_mask_masked_f16_128)(const void *args, rdna_grid grid) { mask_gradient(args, F16); }
void RDNA_HOST_KERNEL(flash_mask_masked_bf16_64)(const void *args, rdna_grid grid) { mask_gradient(args, BF16); }
void RDNA_HOST_KERNEL(flash_mask_masked_bf16_128)(const void *args, rdna_grid grid) { mask_gradient(args, BF16); }
