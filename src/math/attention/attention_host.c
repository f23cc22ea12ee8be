/* Attention on the host, by the same running maximum as the device kernels. A block of query rows walks over tiles of
 * positions; scores stand transposed, (positions, rows), so that the maximum and the exponentials run across rows and
 * neither K nor V needs a transposition. */
#include <string.h>

#include "kernel/host.h"
#include "math/attention/attention_kernels.h"
#include "math/attention/attention_multiply.h"
#include "math/common/host/simd.h"

enum type { F32, F16, BF16, Q8_0 };
enum { ROWS = 64, TILE = 32, FEW = 8, MAX_D = ATTENTION_WIDE_D, MAX_DV = ATTENTION_WIDE_DV };

/* Query rows of one key head, each with the positions it may see in the sequence at hand. */
struct block {
  const struct attention_args *a;
  enum type type;
  int n, padded_n, padded_d, padded_dv; /* rows, and rows, d and dv rounded up to 2 SIMD_WIDTH */
  int32_t low[ROWS], high[ROWS];
  _Alignas(64) float m[ROWS], l[ROWS];
  _Alignas(64) float q[MAX_D * ROWS];  /* scaled: (d, padded_n), or (n, padded_d) when n <= FEW */
  _Alignas(64) float o[ROWS * MAX_DV]; /* (rows, padded_dv) */
  _Alignas(64) float k[TILE * MAX_D];  /* (positions, padded_d) */
  _Alignas(64) float v[TILE * MAX_DV]; /* (positions, padded_dv) */
  _Alignas(64) float s[TILE * ROWS];   /* (positions, padded_n), or (n, positions) when n <= FEW */
};

static int round_up(int n, int unit) { return (n + unit - 1) / unit * unit; }

/* |row| -1 is one that does not exist: NaN. */
static void row_to_f32(const struct block *b, const void *cache, int64_t row, int64_t stride, int64_t offset, int d,
                       int padded, float *out) {
  int i = 0;
  if (row < 0) {
    for (; i < d; i++) out[i] = __builtin_nanf("");
  } else if (b->type == F32) {
    memcpy(out, (const float *)cache + row * stride + offset, (size_t)d * sizeof(float));
  } else if (b->type == Q8_0) {
    const uint8_t *in = (const uint8_t *)cache + (row * stride + offset) / 32 * 34;
    for (; i < d; in += 34) {
      uint16_t bits;
      memcpy(&bits, in, sizeof bits);
      float scale = f16_to_f32(bits);
      for (int end = i + 32; i < end; i++) out[i] = scale * (float)(int8_t)in[2 + i % 32];
    }
  } else {
    const uint16_t *in = (const uint16_t *)cache + row * stride + offset;
    for (; i + SIMD_WIDTH <= d; i += SIMD_WIDTH)
      simd_store(out + i, b->type == F16 ? simd_load_f16(in + i) : simd_load_bf16(in + i));
    for (; i < d; i++) out[i] = b->type == F16 ? f16_to_f32(in[i]) : bf16_to_f32(in[i]);
  }
  for (i = d; i < padded; i++) out[i] = 0;
}

/* The cache rows of |count| positions from |first| on, of the sequence that |base| is the first row or the number of.
 */
static void rows_of_tile(const struct attention_args *a, int64_t base, int64_t first, int count, int64_t *rows) {
  if (!a->block_table) {
    for (int j = 0; j < count; j++) rows[j] = base + first + j;
    return;
  }
  int64_t entry = base * a->table_stride + first / a->block_rows, in_block = first % a->block_rows;
  for (int j = 0; j < count; entry++, in_block = 0) {
    const int32_t block = a->block_table[entry];
    const bool exists = block >= 0 && block < a->slots / a->block_rows;
    for (; in_block < a->block_rows && j < count; in_block++, j++)
      rows[j] = exists ? (int64_t)block * a->block_rows + in_block : -1;
  }
}

/* Positions of few_scores at once. */
enum { FEW_AT_ONCE = 4 };

/* |rows| rows of q, |padded_d| apart, against FEW_AT_ONCE rows of k: what is to be added up over the lanes of
 * sum[row][at + position]. */
SIMD_INLINE void few_products(int rows, int padded_d, const float *q, const float *k, int at,
                              simd_float sum[][SIMD_WIDTH]) {
  simd_float total[4][FEW_AT_ONCE];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int j = 0; j < FEW_AT_ONCE; j++) total[r][j] = simd_set(0);
  for (int e = 0; e < padded_d; e += SIMD_WIDTH) {
    simd_float v[FEW_AT_ONCE];
#pragma GCC unroll 4
    for (int j = 0; j < FEW_AT_ONCE; j++) v[j] = simd_load(k + j * padded_d + e);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      simd_float u = simd_load(q + r * padded_d + e);
#pragma GCC unroll 4
      for (int j = 0; j < FEW_AT_ONCE; j++) total[r][j] = simd_fma(u, v[j], total[r][j]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int j = 0; j < FEW_AT_ONCE; j++) sum[r][at + j] = total[r][j];
}

/* Scores of |rows| rows from row |first| on, (rows, TILE). */
SIMD_INLINE void few_scores(struct block *b, int rows, int first, int count) {
  for (int at = 0; at < TILE; at += SIMD_WIDTH) {
    simd_float sum[4][SIMD_WIDTH];
    for (int j = 0; j < SIMD_WIDTH; j += FEW_AT_ONCE) {
      if (at + j < count) {
        few_products(rows, b->padded_d, b->q + first * b->padded_d, b->k + (at + j) * b->padded_d, j, sum);
      } else {
        for (int r = 0; r < rows; r++)
          for (int i = 0; i < FEW_AT_ONCE; i++) sum[r][j + i] = simd_set(0);
      }
    }
    for (int r = 0; r < rows; r++) simd_store(b->s + (first + r) * TILE + at, simd_sum_each(sum[r]));
  }
}

static float largest_of_tile(const float *s) {
  float top[TILE / 2];
  for (int j = 0; j < TILE / 2; j++) top[j] = max_f32(s[j], s[j + TILE / 2]);
  for (int half = TILE / 4; half > 0; half /= 2)
    for (int j = 0; j < half; j++) top[j] = max_f32(top[j], top[j + half]);
  return top[0];
}

/* A tile of few rows, whose scores lie (rows, TILE), so that no lane is idle; its k and v are there. */
static void add_few(struct block *b, int64_t first, int count) {
  const struct attention_args *a = b->a;
  for (int j = count; j % FEW_AT_ONCE != 0; j++) memset(b->k + j * b->padded_d, 0, (size_t)b->padded_d * sizeof(float));
  int done = 0;
  for (; done + 4 <= b->n; done += 4) few_scores(b, 4, done, count);
  for (; done < b->n; done++) few_scores(b, 1, done, count);
  for (int r = 0; r < b->n; r++) {
    float *s = b->s + r * TILE, sum[SIMD_WIDTH] = {0};
    if (a->softcap != 0) {
      for (int j = 0; j < TILE; j++) s[j] = a->softcap * scalar_tanh(s[j] / a->softcap);
    }
    const int64_t low = b->low[r] - first, high = b->high[r] - first < count ? b->high[r] - first : count - 1;
    if (low > 0 || high < TILE - 1) {
      for (int j = 0; j < TILE; j++) s[j] = j >= low && j <= high ? s[j] : -__builtin_inff();
    }
    const float top = max_f32(b->m[r], largest_of_tile(s)), rescale = scalar_exp(b->m[r] - top);
    for (int j = 0; j < TILE; j += SIMD_WIDTH) {
      for (int i = 0; i < SIMD_WIDTH; i++) {
        s[j + i] = scalar_exp(s[j + i] - top);
        sum[i] += s[j + i];
      }
    }
    b->m[r] = top;
    b->l[r] = b->l[r] * rescale + simd_sum(simd_load(sum));
    if (rescale == 1) continue;
    for (int i = 0; i < b->padded_dv; i++) b->o[r * b->padded_dv + i] *= rescale;
  }
  multiply(b->n, b->padded_dv, count, b->s, TILE, 1, b->v, b->padded_dv, b->o, b->padded_dv, true);
}

/* Bytes of |count| values of the cache, and at which they begin. */
static int64_t cache_bytes(enum type type, int64_t count) {
  return type == F32 ? count * 4 : type == Q8_0 ? count / 32 * 34 : count * 2;
}
static void prefetch_row(enum type type, const void *cache, int64_t first, int64_t count) {
  const char *from = (const char *)cache + cache_bytes(type, first);
  for (int64_t i = 0; i < cache_bytes(type, count); i += 64) __builtin_prefetch(from + i);
}

/* A head's rows lie so far from each other that the processor does not foresee them. */
static void prefetch_tile(const struct block *b, int64_t base, int64_t first, int count, int kv_head) {
  const struct attention_args *a = b->a;
  int64_t rows[TILE];
  rows_of_tile(a, base, first, count, rows);
  for (int j = 0; j < count; j++) {
    if (rows[j] < 0) continue;
    prefetch_row(b->type, a->k, rows[j] * a->k_stride + (int64_t)kv_head * a->d, a->d);
    prefetch_row(b->type, a->v, rows[j] * a->v_stride + (int64_t)kv_head * a->dv, a->dv);
  }
}

static int count_of_tile(int64_t left) { return left < 0 ? 0 : left < TILE ? (int)left : TILE; }

/* At most TILE positions from |first| on, of those before |end|, with which the next tiles go on. */
static void add_tile(struct block *b, int64_t base, int64_t first, int64_t end, int kv_head) {
  const struct attention_args *a = b->a;
  int64_t rows[TILE];
  const int n = b->padded_n, count = count_of_tile(end - first);
  prefetch_tile(b, base, first + count, count_of_tile(end - first - count), kv_head);
  rows_of_tile(a, base, first, count, rows);
  for (int j = 0; j < count; j++) {
    row_to_f32(b, a->k, rows[j], a->k_stride, (int64_t)kv_head * a->d, a->d, b->padded_d, b->k + j * b->padded_d);
    row_to_f32(b, a->v, rows[j], a->v_stride, (int64_t)kv_head * a->dv, a->dv, b->padded_dv, b->v + j * b->padded_dv);
  }
  if (b->n <= FEW) {
    add_few(b, first, count);
    return;
  }
  multiply(count, n, a->d, b->k, b->padded_d, 1, b->q, n, b->s, n, false);
  _Alignas(64) float top[ROWS], rescale[ROWS];
  memcpy(top, b->m, sizeof top);
  for (int j = 0; j < count; j++) {
    float *s = b->s + j * n;
    int32_t position = (int32_t)(first + j);
    if (a->softcap != 0) {
      for (int r = 0; r < n; r++) s[r] = a->softcap * scalar_tanh(s[r] / a->softcap);
    }
    for (int r = 0; r < n; r++) {
      s[r] = position >= b->low[r] && position <= b->high[r] ? s[r] : -__builtin_inff();
      top[r] = max_f32(top[r], s[r]);
    }
  }
  for (int r = 0; r < n; r++) {
    rescale[r] = scalar_exp(b->m[r] - top[r]);
    b->m[r] = top[r];
    b->l[r] *= rescale[r];
  }
  for (int j = 0; j < count; j++) {
    float *s = b->s + j * n;
    for (int r = 0; r < n; r++) {
      s[r] = scalar_exp(s[r] - top[r]);
      b->l[r] += s[r];
    }
  }
  for (int r = 0; r < b->n; r++) {
    if (rescale[r] == 1) continue;
    for (int i = 0; i < b->padded_dv; i++) b->o[r * b->padded_dv + i] *= rescale[r];
  }
  multiply(b->n, b->padded_dv, count, b->s, 1, n, b->v, b->padded_dv, b->o, b->padded_dv, true);
}

/* Takes |n| query rows; row r is q_rows[r]. No row may see anything yet. */
static void block_init(struct block *b, const struct attention_args *a, enum type type, int n, const float **q_rows) {
  b->a = a;
  b->type = type;
  b->n = n;
  b->padded_n = round_up(n, 2 * SIMD_WIDTH);
  b->padded_d = round_up(a->d, 2 * SIMD_WIDTH);
  b->padded_dv = round_up(a->dv, 2 * SIMD_WIDTH);
  memset(b->q, 0, (size_t)(n <= FEW ? n * b->padded_d : a->d * b->padded_n) * sizeof(float));
  memset(b->o, 0, (size_t)(n * b->padded_dv) * sizeof(float));
  for (int r = 0; r < ROWS; r++) {
    b->low[r] = 0;
    b->high[r] = -1;
    b->m[r] = ATTENTION_LOWEST;
    b->l[r] = 0;
  }
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < a->d; i++) {
      b->q[n <= FEW ? r * b->padded_d + i : i * b->padded_n + r] = q_rows[r][i] * a->scale;
    }
  }
}

struct reach {
  int64_t base;
  int32_t low, high;
  bool outside;
};

static struct reach token_reach(const struct attention_args *a, int32_t token) {
  struct reach r = {.base = a->cache_base[token], .high = a->position[token]};
  r.low = a->window > 0 && r.high >= a->window ? r.high - a->window + 1 : 0;
  if (a->block_table)
    r.outside = r.high >= 0 && (r.base < 0 || r.base >= a->sequences || r.high / a->block_rows >= a->table_stride);
  else
    r.outside = r.high >= 0 && (r.base < 0 || r.base + r.high >= a->slots);
  if (r.outside || r.high < 0) r.high = -1;
  return r;
}

struct work {
  struct attention_args a;
  enum type type;
};

/* Adds the sink of head |head| to row |r|: a score without a value. */
static void add_sink(struct block *b, int r, int32_t head) {
  const struct attention_args *a = b->a;
  if (!a->sinks) return;
  float top = max_f32(b->m[r], a->sinks[head]), rescale = scalar_exp(b->m[r] - top);
  b->m[r] = top;
  b->l[r] = b->l[r] * rescale + scalar_exp(a->sinks[head] - top);
  for (int i = 0; i < a->dv; i++) b->o[r * b->padded_dv + i] *= rescale;
}

/* --- prefill: an item is a block of rows (tokens x heads of one key head) --- */

static void write_rows(struct block *b, const int32_t *token, const int32_t *head) {
  const struct attention_args *a = b->a;
  for (int r = 0; r < b->n; r++) {
    add_sink(b, r, head[r]);
    float inverse = b->l[r] != 0 ? 1 / b->l[r] : 0;
    if (token_reach(a, token[r]).outside) inverse = __builtin_nanf("");
    float *out = a->out + token[r] * a->out_stride + (int64_t)head[r] * a->dv;
    for (int i = 0; i < a->dv; i++) out[i] = b->o[r * b->padded_dv + i] * inverse;
  }
}

static void prefill_block(const struct work *work, int32_t first_row, int n, int kv_head) {
  const struct attention_args *a = &work->a;
  int32_t heads_per_kv = a->heads / a->kv_heads, token[ROWS], head[ROWS];
  const float *q_rows[ROWS];
  struct block b;
  for (int r = 0; r < n; r++) {
    token[r] = (first_row + r) / heads_per_kv;
    head[r] = kv_head * heads_per_kv + (first_row + r) % heads_per_kv;
    q_rows[r] = a->q + token[r] * a->q_stride + (int64_t)head[r] * a->d;
  }
  block_init(&b, a, work->type, n, q_rows);
  for (int r = 0, next; r < n; r = next) {
    struct reach all = token_reach(a, token[r]);
    for (int i = 0; i < n; i++) b.high[i] = -1;
    for (next = r; next < n && a->cache_base[token[next]] == all.base; next++) {
      struct reach mine = token_reach(a, token[next]);
      b.low[next] = mine.low;
      b.high[next] = mine.high;
      if (mine.high < 0) continue;
      all.low = all.high < 0 || mine.low < all.low ? mine.low : all.low;
      all.high = mine.high > all.high ? mine.high : all.high;
    }
    for (int64_t at = all.low; at <= all.high; at += TILE) add_tile(&b, all.base, at, (int64_t)all.high + 1, kv_head);
  }
  write_rows(&b, token, head);
}

static void prefill_items(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  int32_t rows = work->a.tokens * (work->a.heads / work->a.kv_heads);
  for (int64_t item = begin; item < end; item++) {
    int32_t first = (int32_t)(item / work->a.kv_heads) * ROWS;
    prefill_block(work, first, rows - first < ROWS ? rows - first : ROWS, (int)(item % work->a.kv_heads));
  }
}

static void prefill(const void *args, enum type type) {
  struct work work = {*(const struct attention_args *)args, type};
  int32_t rows = work.a.tokens * (work.a.heads / work.a.kv_heads);
  rdna__parallel_for((int64_t)((rows + ROWS - 1) / ROWS) * work.a.kv_heads, 1, prefill_items, &work);
}

/* --- decode: an item is a token, a key head and a split of the positions --- */

static void write_split(struct block *b, int32_t token, int32_t head, int32_t split, bool outside) {
  const struct attention_args *a = b->a;
  for (int r = 0; r < b->n; r++) {
    if (split == 0) add_sink(b, r, head + r);
    const float *o = b->o + r * b->padded_dv;
    float poison = outside ? __builtin_nanf("") : 0;
    if (a->splits == 1) {
      float *out = a->out + token * a->out_stride + (int64_t)(head + r) * a->dv;
      for (int i = 0; i < a->dv; i++) out[i] = (b->l[r] != 0 ? o[i] / b->l[r] : 0) + poison;
    } else {
      int64_t cell = ((int64_t)token * a->heads + head + r) * a->splits + split;
      for (int i = 0; i < a->dv; i++) a->partial[cell * a->dv + i] = o[i] + poison;
      a->stats[2 * cell] = b->m[r] + poison;
      a->stats[2 * cell + 1] = b->l[r] + poison;
    }
  }
}

static void decode_items(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct attention_args *a = &work->a;
  int32_t heads_per_kv = a->heads / a->kv_heads;
  for (int64_t item = begin; item < end; item++) {
    int32_t split = (int32_t)(item % a->splits), kv_head = (int32_t)(item / a->splits % a->kv_heads);
    int32_t token = (int32_t)(item / a->splits / a->kv_heads);
    struct reach reach = token_reach(a, token);
    int64_t seen = reach.high < reach.low ? 0 : (int64_t)reach.high - reach.low + 1;
    int64_t even = (seen + a->splits - 1) / a->splits;
    int64_t per_split = even > a->split_positions ? even : a->split_positions;
    int64_t first = split * per_split, last = first + per_split < seen ? first + per_split : seen;
    for (int32_t done = 0; done < heads_per_kv; done += ROWS) {
      int n = heads_per_kv - done < ROWS ? heads_per_kv - done : ROWS;
      int32_t head = kv_head * heads_per_kv + done;
      const float *q_rows[ROWS];
      struct block b;
      for (int r = 0; r < n; r++) q_rows[r] = a->q + token * a->q_stride + (int64_t)(head + r) * a->d;
      block_init(&b, a, work->type, n, q_rows);
      for (int r = 0; r < n; r++) {
        b.low[r] = reach.low;
        b.high[r] = reach.high;
      }
      for (int64_t at = first; at < last; at += TILE)
        add_tile(&b, reach.base, reach.low + at, reach.low + last, kv_head);
      write_split(&b, token, head, split, reach.outside);
    }
  }
}

static void decode(const void *args, enum type type) {
  struct work work = {*(const struct attention_args *)args, type};
  rdna__parallel_for((int64_t)work.a.tokens * work.a.kv_heads * work.a.splits, 1, decode_items, &work);
}

#define TWIN(name, function, type) \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { function(args, type); }
TWIN(attention_prefill_f16_d128, prefill, F16)
TWIN(attention_prefill_f16_d256, prefill, F16)
TWIN(attention_prefill_f32_d128, prefill, F32)
TWIN(attention_prefill_f32_d256, prefill, F32)
TWIN(attention_decode_f16_h1, decode, F16)
TWIN(attention_decode_f16_h4, decode, F16)
TWIN(attention_decode_f16_h8, decode, F16)
TWIN(attention_decode_bf16_h1, decode, BF16)
TWIN(attention_decode_bf16_h4, decode, BF16)
TWIN(attention_decode_bf16_h8, decode, BF16)
TWIN(attention_decode_q8_0_h1, decode, Q8_0)
TWIN(attention_decode_q8_0_h4, decode, Q8_0)
TWIN(attention_decode_q8_0_h8, decode, Q8_0)
TWIN(attention_decode_f32_h1, decode, F32)
TWIN(attention_decode_f32_h4, decode, F32)
TWIN(attention_decode_f32_h8, decode, F32)
TWIN(attention_decode_f16_wide, decode, F16)
TWIN(attention_decode_bf16_wide, decode, BF16)
TWIN(attention_decode_f32_wide, decode, F32)
TWIN(attention_decode_f16_latent, decode, F16)
TWIN(attention_decode_bf16_latent, decode, BF16)
TWIN(attention_decode_f32_latent, decode, F32)

static void combine_rows(void *context, int64_t begin, int64_t end) {
  const struct attention_combine_args *a = context;
  for (int64_t row = begin; row < end; row++) {
    const float *stats = a->stats + row * a->splits * 2, *partial = a->partial + row * a->splits * a->d;
    float *out = a->out + row / a->heads * a->out_stride + row % a->heads * a->d;
    float top = ATTENTION_LOWEST, sum = 0;
    for (int32_t s = 0; s < a->splits; s++) top = max_f32(top, stats[2 * s]);
    for (int32_t i = 0; i < a->d; i++) out[i] = 0;
    for (int32_t s = 0; s < a->splits; s++) {
      float share = scalar_exp(stats[2 * s] - top);
      sum += stats[2 * s + 1] * share;
      for (int32_t i = 0; i < a->d; i++) out[i] += partial[(int64_t)s * a->d + i] * share;
    }
    for (int32_t i = 0; i < a->d; i++) out[i] = sum != 0 ? out[i] / sum : 0;
  }
}

void RDNA_HOST_KERNEL(attention_combine)(const void *args, rdna_grid grid) {
  struct attention_combine_args a = *(const struct attention_combine_args *)args;
  rdna__parallel_for((int64_t)a.tokens * a.heads, 1, combine_rows, &a);
}
