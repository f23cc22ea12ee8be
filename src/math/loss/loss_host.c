/* Losses and their gradients on the host. */
#include "kernel/host.h"
#include "math/common/edges.h"
#include "math/common/host/floats.h"
#include "math/loss/loss_kernels.h"
#include "math/loss/loss_math.h"

enum { CHUNK = 1024, WAYS = 16 };

struct work {
  const void *args;
  rdna_dtype dtype;
};

static float run_sum(const float *v, int64_t count) {
  float part[WAYS] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + WAYS <= count; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] += v[i + j];
  }
  for (; i < count; i++) part[0] += v[i];
  for (int j = 0; j < WAYS; j++) sum += part[j];
  return sum;
}

static void value_slices(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct loss_values_args *a = w->args;
  int64_t bytes = floats_bytes(w->dtype), blocks = (a->count + LOSS_BLOCK - 1) / LOSS_BLOCK;
  float x[LOSS_BLOCK], t[LOSS_BLOCK];
  for (int64_t slice = begin; slice < end; slice++) {
    double sum = 0;
    for (int64_t block = slice; block < blocks; block += a->slices) {
      int64_t at = block * LOSS_BLOCK, n = a->count - at < LOSS_BLOCK ? a->count - at : LOSS_BLOCK;
      floats_load(w->dtype, (const char *)a->x + at * bytes, n, x);
      floats_load(w->dtype, (const char *)a->target + at * bytes, n, t);
      for (int64_t i = 0; i < n; i++) x[i] = loss_of(a->kind, x[i], t[i], a->beta);
      if (a->weight) {
        floats_load(w->dtype, (const char *)a->weight + at * bytes, n, t);
        for (int64_t i = 0; i < n; i++) x[i] *= t[i];
      }
      if (a->out) {
        floats_store(w->dtype, (char *)a->out + at * bytes, n, x);
      } else {
        sum += (double)run_sum(x, n);
      }
    }
    if (!a->out) a->partial[slice] = (float)sum;
  }
}

static void values(const void *args, rdna_dtype dtype) {
  struct work work = {args, dtype};
  rdna__parallel_for(((const struct loss_values_args *)args)->slices, 1, value_slices, &work);
}

static float load_one(rdna_dtype dtype, uint32_t is_f32, const void *p, int64_t i) {
  float v;
  rdna_dtype stored = is_f32 ? RDNA_F32 : dtype;
  floats_load(stored, (const char *)p + i * floats_bytes(stored), 1, &v);
  return v;
}

static void value_backward_blocks(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct loss_values_backward_args *a = w->args;
  int64_t bytes = floats_bytes(w->dtype);
  float x[LOSS_BLOCK], t[LOSS_BLOCK], g[LOSS_BLOCK];
  float all = a->one ? load_one(w->dtype, a->dout_f32, a->dout, 0) : 0;
  for (int64_t block = begin; block < end; block++) {
    int64_t at = block * LOSS_BLOCK, n = a->count - at < LOSS_BLOCK ? a->count - at : LOSS_BLOCK;
    floats_load(w->dtype, (const char *)a->x + at * bytes, n, x);
    floats_load(w->dtype, (const char *)a->target + at * bytes, n, t);
    if (a->one) {
      for (int64_t i = 0; i < n; i++) g[i] = all;
    } else {
      floats_load(w->dtype, (const char *)a->dout + at * bytes, n, g);
    }
    for (int64_t i = 0; i < n; i++) x[i] = a->scale * g[i] * loss_slope(a->kind, x[i], t[i], a->beta);
    if (a->weight) {
      floats_load(w->dtype, (const char *)a->weight + at * bytes, n, t);
      for (int64_t i = 0; i < n; i++) x[i] *= t[i];
    }
    floats_store(w->dtype, (char *)a->dx + at * bytes, n, x);
  }
}

static void values_backward(const void *args, rdna_dtype dtype) {
  struct work work = {args, dtype};
  const struct loss_values_backward_args *a = args;
  rdna__parallel_for((a->count + LOSS_BLOCK - 1) / LOSS_BLOCK, 1, value_backward_blocks, &work);
}

static int64_t target_of(const void *target, int64_t row, uint32_t is_i64) {
  return is_i64 ? ((const int64_t *)target)[row] : (int64_t)((const int32_t *)target)[row];
}

static int64_t chunk_length(int64_t left) { return left < CHUNK ? left : CHUNK; }

struct sums {
  float top;
  double sum, w, wx; /* of exp(x - top), w and w x */
};

/* Values |from| to |to| of a row. */
static void add_values(const struct cross_entropy_args *a, rdna_dtype dtype, const char *x, int64_t from, int64_t to,
                       struct sums *s) {
  float v[CHUNK];
  for (int64_t n, at = from; at < to; at += n) {
    n = chunk_length(to - at);
    floats_load(dtype, x + at * floats_bytes(dtype), n, v);
    for (int64_t i = 0; a->smoothing != 0 && i < n; i++) {
      float weight = a->weight ? a->weight[at + i] : 1;
      s->w += (double)weight, s->wx += (double)weight * (double)v[i];
    }
    float grown = s->top;
    for (int64_t i = 0; i < n; i++) grown = max_f32(grown, v[i]);
    if (grown == -__builtin_inff()) continue;
    if (s->sum != 0) s->sum *= (double)scalar_exp(s->top - grown);
    for (int64_t i = 0; i < n; i++) v[i] = scalar_exp(v[i] - grown);
    s->sum += (double)run_sum(v, n);
    s->top = grown;
  }
}

static void entropy_parts(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct cross_entropy_args *a = work->args;
  int64_t bytes = floats_bytes(work->dtype), in_16 = 16 / bytes;
  for (int64_t unit = begin; unit < end; unit++) {
    const char *x = (const char *)a->x + unit / a->parts * a->x_stride * bytes;
    int64_t part = unit % a->parts;
    struct row_edges e = row_edges_of((uint64_t)(uintptr_t)x, (uint64_t)a->cols, (uint32_t)in_16);
    int64_t head = (int64_t)e.head, last = a->cols - (int64_t)e.tail, from = head + part * a->part_vectors * in_16;
    int64_t to = from + a->part_vectors * in_16;
    struct sums s = {.top = -__builtin_inff()};
    if (part == 0) add_values(a, work->dtype, x, 0, head, &s), add_values(a, work->dtype, x, last, a->cols, &s);
    if (from < last) add_values(a, work->dtype, x, from, to < last ? to : last, &s);
    float *state = a->states + 4 * unit;
    state[0] = s.top, state[1] = (float)s.sum, state[2] = (float)s.w, state[3] = (float)s.wx;
  }
}

static struct sums sums_of_parts(const struct cross_entropy_args *a, int64_t row) {
  const float *states = a->states + 4 * row * a->parts;
  struct sums s = {.top = -__builtin_inff()};
  for (uint32_t p = 0; p < a->parts; p++) s.top = max_f32(s.top, states[4 * p]);
  for (uint32_t p = 0; p < a->parts; p++) {
    const float *one = states + 4 * p;
    if (one[1] != 0) s.sum += (double)(one[1] * scalar_exp(one[0] - s.top));
    s.w += (double)one[2], s.wx += (double)one[3];
  }
  return s;
}

struct row_loss {
  float lse, loss, weight;
};

/* What becomes of a row whose target is no class. */
static float no_class(uint32_t *outside) {
  if (outside) __atomic_fetch_or(outside, 1, __ATOMIC_RELAXED);
  return __builtin_nanf("");
}

static struct row_loss loss_of_row(const struct cross_entropy_args *a, rdna_dtype dtype, int64_t row,
                                   const struct sums *s) {
  const char *x = (const char *)a->x + row * a->x_stride * floats_bytes(dtype);
  int64_t y = target_of(a->target, row, a->target_i64);
  struct row_loss l = {a->nll ? 0 : s->top + scalar_log((float)s->sum), 0, 0};
  if (y != a->ignore && y >= 0 && y < a->cols) {
    l.weight = a->weight ? a->weight[y] : 1;
    l.loss = l.weight * (l.lse - load_one(dtype, 0, x, y));
    if (a->smoothing != 0) {
      l.loss = (1 - a->smoothing) * l.loss + a->smoothing / (float)a->cols * (float)(s->w * (double)l.lse - s->wx);
    }
  } else if (y != a->ignore) {
    l.loss = l.weight = no_class(a->outside);
  }
  return l;
}

static void entropy_rows(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct cross_entropy_args *a = work->args;
  for (int64_t row = begin; row < end; row++) {
    struct sums s = {.top = -__builtin_inff()};
    const char *x = (const char *)a->x + row * a->x_stride * floats_bytes(work->dtype);
    if (!a->nll) add_values(a, work->dtype, x, 0, a->cols, &s);
    struct row_loss l = loss_of_row(a, work->dtype, row, &s);
    a->lse[row] = l.lse;
    if (!a->partial) {
      a->loss[row] = l.loss, a->row_weight[row] = l.weight;
      continue;
    }
    int64_t block = row / LOSS_SHORT_ROWS, blocks = (a->rows + LOSS_SHORT_ROWS - 1) / LOSS_SHORT_ROWS;
    bool first = row % LOSS_SHORT_ROWS == 0; /* blocks are each one piece of work's */
    a->partial[block] = (first ? 0 : a->partial[block]) + l.loss;
    a->partial[blocks + block] = (first ? 0 : a->partial[blocks + block]) + l.weight;
  }
}

static void entropy_blocks(void *context, int64_t begin, int64_t end) {
  const struct cross_entropy_args *a = ((const struct work *)context)->args;
  int64_t last = end * LOSS_SHORT_ROWS < a->rows ? end * LOSS_SHORT_ROWS : a->rows;
  entropy_rows(context, begin * LOSS_SHORT_ROWS, last);
}

static int64_t row_grain(int64_t cols) { return 1 + (1 << 14) / (cols + 1); }

static void cross_entropy(const void *args, rdna_dtype dtype) {
  struct work work = {args, dtype};
  const struct cross_entropy_args *a = args;
  if (a->states) {
    rdna__parallel_for(a->rows * a->parts, row_grain(a->cols / a->parts), entropy_parts, &work);
  } else if (a->partial) {
    rdna__parallel_for((a->rows + LOSS_SHORT_ROWS - 1) / LOSS_SHORT_ROWS, row_grain(a->cols * LOSS_SHORT_ROWS),
                       entropy_blocks, &work);
  } else {
    rdna__parallel_for(a->rows, row_grain(a->cols), entropy_rows, &work);
  }
}

static void cross_entropy_finish(const void *args, rdna_dtype dtype) {
  const struct cross_entropy_finish_args *all = args;
  const struct cross_entropy_args *a = &all->rows;
  double loss = 0, weight = 0;
  for (int64_t row = 0; row < a->rows; row++) {
    struct sums s = sums_of_parts(a, row);
    struct row_loss l = loss_of_row(a, dtype, row, &s);
    a->loss[row] = l.loss, a->lse[row] = l.lse;
    loss += (double)l.loss, weight += (double)l.weight;
  }
  float out = all->mean ? (float)loss / (float)weight : (float)loss;
  if (all->out) floats_store((rdna_dtype)all->dtype, all->out, 1, &out);
  *all->total = (float)weight;
}

struct row_slope {
  float lse, factor, even, own;
  int64_t y;
};

static void slope_row(const struct cross_entropy_backward_args *a, rdna_dtype dtype, const struct row_slope *s,
                      const char *x, char *dx) {
  float v[CHUNK];
  int64_t bytes = floats_bytes(dtype);
  for (int64_t n, at = 0; at < a->cols; at += n) {
    n = chunk_length(a->cols - at);
    if (s->factor != 0) {
      floats_load(dtype, x + at * bytes, n, v);
      for (int64_t i = 0; i < n; i++) v[i] = s->factor * scalar_exp(v[i] - s->lse);
    } else {
      for (int64_t i = 0; i < n; i++) v[i] = 0;
    }
    for (int64_t i = 0; s->even != 0 && i < n; i++) v[i] -= s->even * (a->weight ? a->weight[at + i] : 1);
    if (s->y >= at && s->y < at + n) v[s->y - at] -= s->own;
    floats_store(dtype, dx + at * bytes, n, v);
  }
}

static void entropy_backward_rows(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct cross_entropy_backward_args *a = work->args;
  int64_t bytes = floats_bytes(work->dtype);
  double all_weights = 0;
  for (int64_t i = 0; i < a->cols; i++) all_weights += a->weight ? (double)a->weight[i] : 1;
  for (int64_t row = begin; row < end; row++) {
    int64_t y = target_of(a->target, row, a->target_i64);
    bool known = y >= 0 && y < a->cols;
    struct row_slope s = {.lse = a->lse[row], .y = y};
    if (y != a->ignore) {
      float g = load_one(work->dtype, a->dout_f32, a->dout, a->one ? 0 : row);
      if (a->total) g /= *a->total;
      s.even = g * a->smoothing / (float)a->cols;
      s.own = g * (1 - a->smoothing) * (a->weight && known ? a->weight[y] : 1);
      s.factor = a->nll ? 0 : s.own + s.even * (float)all_weights;
      if (!known) s.factor = s.even = no_class(a->outside);
    }
    slope_row(a, work->dtype, &s, (const char *)a->x + row * a->x_stride * bytes,
              (char *)a->dx + row * a->dx_stride * bytes);
  }
}

static void cross_entropy_backward(const void *args, rdna_dtype dtype) {
  struct work work = {args, dtype};
  const struct cross_entropy_backward_args *a = args;
  rdna__parallel_for(a->rows, row_grain(a->cols), entropy_backward_rows, &work);
}

#define TWINS(suffix, dtype)                                                                                      \
  void RDNA_HOST_KERNEL(loss_values_##suffix)(const void *args, rdna_grid grid) { values(args, dtype); }          \
  void RDNA_HOST_KERNEL(loss_values_backward_##suffix)(const void *args, rdna_grid grid) {                        \
    values_backward(args, dtype);                                                                                 \
  }                                                                                                               \
  void RDNA_HOST_KERNEL(cross_entropy_##suffix)(const void *args, rdna_grid grid) { cross_entropy(args, dtype); } \
  void RDNA_HOST_KERNEL(cross_entropy_backward_##suffix)(const void *args, rdna_grid grid) {                      \
    cross_entropy_backward(args, dtype);                                                                          \
  }                                                                                                               \
  void RDNA_HOST_KERNEL(cross_entropy_finish_##suffix)(const void *args, rdna_grid grid) {                        \
    cross_entropy_finish(args, dtype);                                                                            \
  }                                                                                                               \
  void RDNA_HOST_KERNEL(cross_entropy_short_##suffix)(const void *args, rdna_grid grid) {                         \
    cross_entropy(args, dtype);                                                                                   \
  }                                                                                                               \
  void RDNA_HOST_KERNEL(cross_entropy_backward_short_##suffix)(const void *args, rdna_grid grid) {                \
    cross_entropy_backward(args, dtype);                                                                          \
  }
TWINS(f32, RDNA_F32)
TWINS(f16, RDNA_F16)
TWINS(bf16, RDNA_BF16)

void RDNA_HOST_KERNEL(loss_sum)(const void *args, rdna_grid grid) {
  const struct loss_sum_args *a = args;
  double sum = 0, weight = 0;
  for (int64_t i = 0; i < a->count; i++) sum += (double)a->values[i];
  for (int64_t i = 0; a->weights && i < a->count; i++) weight += (double)a->weights[i];
  float out = a->weights ? a->scale * (float)sum / (float)weight : a->scale * (float)sum;
  floats_store((rdna_dtype)a->dtype, a->out, 1, &out);
  if (a->total) *a->total = (float)weight;
}

void RDNA_HOST_KERNEL(loss_store)(const void *args, rdna_grid grid) {
  const struct loss_store_args *a = args;
  floats_store((rdna_dtype)a->dtype, a->out, a->count, a->values);
}
