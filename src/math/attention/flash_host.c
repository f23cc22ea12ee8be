/* Attention over whole sequences on the host. A block of queries meets a tile of keys; scores stand transposed, (keys,
 * queries), so that maxima and exponentials run across queries. */
#include <string.h>

#include "kernel/host.h"
#include "math/attention/attention_multiply.h"
#include "math/attention/flash_math.h"

enum { ROWS = 32, KEYS = 32, MAX_D = FLASH_MAX_D };
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
  float one[MAX_D];
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
  _Alignas(64) float q[MAX_D * ROWS]; /* (d, ROWS) */
  _Alignas(64) float o[ROWS * MAX_D];
  _Alignas(64) float k[KEYS * MAX_D];
  _Alignas(64) float v[KEYS * MAX_D];
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
#define FORWARD_TYPE(type, TYPE)                \
  FORWARD(flash_forward_##type##_64, TYPE)      \
  FORWARD(flash_forward_##type##_128, TYPE)     \
  FORWARD(flash_forward_##type##_256, TYPE)     \
  FORWARD(flash_forward_any_##type##_64, TYPE)  \
  FORWARD(flash_forward_any_##type##_128, TYPE) \
  FORWARD(flash_forward_any_##type##_256, TYPE)
FORWARD_TYPE(f32, F32)
FORWARD_TYPE(f16, F16)
FORWARD_TYPE(bf16, BF16)
