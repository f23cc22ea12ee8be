#include <math.h>
#include <stdio.h>

#include "math/attention/flash_math.h"
#include "math/common/case/fill.h"
#include "math/common/test/device.h"
#include "rdna/op/attention.h"

enum layout { BHSD, BSHD, UNALIGNED };    /* the last: rows of d + 3 values, from the second value on */
enum mask_layout { DENSE, ROOM, TURNED }; /* rows of whole 16 values; queries along memory */

struct setting {
  rdna_dtype dtype;
  int batch, heads, kv_heads, sq, sk, d, dv;
  enum layout layout;
  rdna_sdpa options; /* its tensors are made here */
  rdna_dtype mask_type;
  bool masked, slopes, sinks;
  int mask_shape[3]; /* 1 where it is broadcast, 0 where not */
  enum mask_layout mask_layout;
  const int32_t *q_starts, *k_starts; /* of |batch| sequences; sq and sk are then the rows */
};

/* Tensors as doubles: (batch, heads, rows, d), or packed with a batch of 1. */
struct problem {
  const struct setting *s;
  double *q, *k, *v, *mask, *slopes, *sinks, *out, *lse, *dout, *dq, *dk, *dv, *dmask;
  int outer; /* batch, or 1 when packed */
};

static int64_t count_of(const struct problem *p, int heads, int rows, int d) {
  return (int64_t)p->outer * heads * rows * d;
}

static double *numbers(int64_t count) { return calloc((size_t)count + 1, sizeof(double)); }

/* Random numbers that the type can hold. */
static double *random_numbers(rdna__random *random, rdna_dtype dtype, int64_t count) {
  double *out = numbers(count);
  void *stored = malloc((size_t)count * sizeof(float) + 1);
  case_fill(random, dtype, stored, count, 1);
  for (int64_t i = 0; i < count; i++) out[i] = (double)case_get(dtype, stored, i);
  free(stored);
  return out;
}

static void make_problem(const struct setting *s, struct problem *p) {
  rdna__random random;
  rdna__random_seed(&random, (uint64_t)(s->sq * 1000 + s->d));
  *p = (struct problem){.s = s, .outer = s->q_starts ? 1 : s->batch};
  p->q = random_numbers(&random, s->dtype, count_of(p, s->heads, s->sq, s->d));
  p->k = random_numbers(&random, s->dtype, count_of(p, s->kv_heads, s->sk, s->d));
  p->v = random_numbers(&random, s->dtype, count_of(p, s->kv_heads, s->sk, s->dv));
  p->dout = random_numbers(&random, s->dtype, count_of(p, s->heads, s->sq, s->dv));
  p->out = numbers(count_of(p, s->heads, s->sq, s->dv));
  p->lse = numbers(count_of(p, s->heads, s->sq, 1));
  p->dq = numbers(count_of(p, s->heads, s->sq, s->d));
  p->dk = numbers(count_of(p, s->kv_heads, s->sk, s->d));
  p->dv = numbers(count_of(p, s->kv_heads, s->sk, s->dv));
  if (s->masked) {
    int64_t count = (int64_t)s->batch * s->heads * s->sq * s->sk; /* as if in full; broadcast parts are not read */
    p->dmask = numbers(count);
    p->mask = random_numbers(&random, s->mask_type == RDNA_BOOL ? RDNA_F32 : s->mask_type, count);
    for (int64_t i = 0; i < count; i++) {
      if (s->mask_type == RDNA_BOOL)
        p->mask[i] = p->mask[i] > -0.7;
      else if (i % 11 == 3)
        p->mask[i] = -INFINITY;
    }
  }
  if (s->sinks) {
    p->sinks = numbers(s->heads);
    for (int h = 0; h < s->heads; h++) p->sinks[h] = h % 3 == 2 ? -INFINITY : (double)(float)(1.5 * h - 0.7);
  }
  if (s->slopes) {
    p->slopes = numbers((int64_t)s->batch * s->heads);
    for (int i = 0; i < s->batch * s->heads; i++) p->slopes[i] = (double)(float)(0.3 / (1 + i));
  }
}

static void free_problem(struct problem *p) {
  free(p->sinks), free(p->q), free(p->k), free(p->v), free(p->mask), free(p->slopes), free(p->out), free(p->lse),
      free(p->dout);
  free(p->dq), free(p->dk), free(p->dv), free(p->dmask);
}

static int64_t mask_cell(const struct setting *s, int b, int h, int i, int j) {
  int64_t at = s->mask_shape[0] ? 0 : b;
  at = at * (s->mask_shape[1] ? 1 : s->heads) + (s->mask_shape[1] ? 0 : h);
  at = at * (s->mask_shape[2] ? 1 : s->sq) + (s->mask_shape[2] ? 0 : i);
  return at * s->sk + j;
}

/* One query by the formula, and its share of the gradients when p->dq is wanted. */
static void reference_row(struct problem *p, int b, int h, int i, int q_begin, int sq, int k_begin, int sk,
                          bool gradients) {
  const struct setting *s = p->s;
  const rdna_sdpa *o = &s->options;
  int kv_head = h / (s->heads / s->kv_heads), outer = s->q_starts ? 0 : b;
  int shift = o->diagonal == RDNA_DIAGONAL_BOTTOM_RIGHT ? sk - sq : 0;
  int64_t q_row = ((int64_t)outer * s->heads + h) * s->sq + q_begin + i;
  int64_t k_row = ((int64_t)outer * s->kv_heads + kv_head) * s->sk + k_begin;
  double *score = numbers(sk), *slope_of_cap = numbers(sk), *kept = numbers(sk), top = -INFINITY, sum = 0, dot = 0;
  int64_t draw_keys = s->q_starts ? o->max_keys : s->sk, draw_queries = s->q_starts ? o->max_queries : s->sq;
  for (int j = 0; j < sk; j++) {
    double x = 0;
    for (int e = 0; e < s->d; e++) x += p->q[q_row * s->d + e] * p->k[(k_row + j) * s->d + e];
    x *= (double)o->scale;
    slope_of_cap[j] = 1;
    if (o->softcap != 0) {
      double t = tanh(x / (double)o->softcap);
      x = (double)o->softcap * t;
      slope_of_cap[j] = 1 - t * t;
    }
    int at = i + shift;
    if (s->slopes) x -= p->slopes[o->slopes->rank == 2 ? b * s->heads + h : h] * abs(at - j);
    if (s->masked) {
      double m = p->mask[mask_cell(s, b, h, i, j)];
      x += s->mask_type == RDNA_BOOL ? (m != 0 ? 0 : -INFINITY) : m;
    }
    if (o->causal && j > at) x = -INFINITY;
    if (o->windowed && (j < at - o->left || (j > at + o->right))) x = -INFINITY;
    score[j] = x;
    top = fmax(top, x);
    kept[j] = 1;
    if (o->dropout != 0) {
      uint64_t row = ((uint64_t)b * (uint64_t)s->heads + (uint64_t)h) * (uint64_t)draw_queries + (uint64_t)i;
      struct random_words w = random_block(o->seed, o->offset, row * (uint64_t)((draw_keys + 3) / 4) + (uint64_t)j / 4);
      kept[j] = random_unit(w.word[j % 4]) >= o->dropout ? 1 / (1 - (double)o->dropout) : 0;
    }
  }
  if (s->sinks) top = fmax(top, p->sinks[h]);
  if (s->sinks && top > -INFINITY) sum = exp(p->sinks[h] - top);
  for (int j = 0; j < sk; j++) sum += top == -INFINITY ? 0 : exp(score[j] - top);
  p->lse[q_row] = sum > 0 ? top + log(sum) : -INFINITY;
  double *out = p->out + q_row * s->dv;
  for (int e = 0; e < s->dv; e++) out[e] = 0;
  for (int j = 0; j < sk; j++) {
    score[j] = sum > 0 ? exp(score[j] - p->lse[q_row]) : 0;
    for (int e = 0; e < s->dv; e++) out[e] += score[j] * kept[j] * p->v[(k_row + j) * s->dv + e];
  }
  const double *dout = p->dout + q_row * s->dv;
  for (int e = 0; e < s->dv; e++) dot += out[e] * dout[e];
  for (int j = 0; gradients && j < sk; j++) {
    double dp = 0;
    for (int e = 0; e < s->dv; e++) {
      dp += dout[e] * p->v[(k_row + j) * s->dv + e];
      p->dv[(k_row + j) * s->dv + e] += score[j] * kept[j] * dout[e];
    }
    double dscore = score[j] * (dp * kept[j] - dot), ds = dscore * slope_of_cap[j] * (double)o->scale;
    if (s->masked) p->dmask[mask_cell(s, b, h, i, j)] += dscore;
    for (int e = 0; e < s->d; e++) {
      p->dq[q_row * s->d + e] += ds * p->k[(k_row + j) * s->d + e];
      p->dk[(k_row + j) * s->d + e] += ds * p->q[q_row * s->d + e];
    }
  }
  free(score), free(slope_of_cap), free(kept);
}

static void reference(struct problem *p, bool gradients) {
  const struct setting *s = p->s;
  for (int b = 0; b < s->batch; b++) {
    int q_begin = s->q_starts ? s->q_starts[b] : 0, sq = s->q_starts ? s->q_starts[b + 1] - q_begin : s->sq;
    int k_begin = s->k_starts ? s->k_starts[b] : 0, sk = s->k_starts ? s->k_starts[b + 1] - k_begin : s->sk;
    for (int h = 0; h < s->heads; h++)
      for (int i = 0; i < sq; i++) reference_row(p, b, h, i, q_begin, sq, k_begin, sk, gradients);
  }
}

/* A tensor on the device in the setting's layout. */
struct placed {
  rdna_tensor t;
  void *memory;
  size_t bytes;
};

static void place(const struct problem *p, const double *values, int heads, int rows, int d, struct placed *out) {
  const struct setting *s = p->s;
  bool packed = s->q_starts != NULL;
  int64_t row = d, first = 0;
  if (s->layout == UNALIGNED) row = d + 3, first = 1;
  int64_t head_stride = s->layout == BHSD && !packed ? rows * row : row;
  int64_t row_stride = s->layout == BHSD && !packed ? row : heads * row, batch_stride = (int64_t)heads * rows * row;
  if (s->layout == UNALIGNED && !packed) head_stride = rows * row, row_stride = row;
  int64_t cells = p->outer * batch_stride + first;
  out->bytes = rdna_dtype_bytes(s->dtype, cells);
  uint8_t *host = malloc(out->bytes + 1);
  for (int64_t i = 0; i < cells; i++) case_set(s->dtype, host, i, NAN);
  for (int b = 0; b < p->outer; b++)
    for (int h = 0; h < heads; h++)
      for (int i = 0; i < rows; i++)
        for (int e = 0; e < d; e++)
          if (values)
            case_set(s->dtype, host, first + b * batch_stride + h * head_stride + i * row_stride + e,
                     (float)values[(((int64_t)b * heads + h) * rows + i) * d + e]);
  out->memory = test_upload(host, out->bytes);
  free(host);
  void *data = (char *)out->memory + rdna_dtype_bytes(s->dtype, first);
  if (packed)
    out->t = (rdna_tensor){data, s->dtype, 3, {rows, heads, d}, {row_stride, head_stride, 1}};
  else
    out->t = (rdna_tensor){data, s->dtype, 4, {p->outer, heads, rows, d}, {batch_stride, head_stride, row_stride, 1}};
}

/* Where value |i| of a mask lies. */
static int64_t mask_place(const rdna_tensor *t, int64_t i) {
  int64_t at = 0;
  for (int k = 3; k >= 0; k--) at += i % t->shape[k] * t->stride[k], i /= t->shape[k];
  return at;
}
/* Values from the first to the last, with what is between. */
static int64_t mask_extent(const rdna_tensor *t) {
  int64_t count = 1;
  for (int k = 0; k < 4; k++) count += (t->shape[k] - 1) * t->stride[k];
  return count;
}

/* Sums of ds: as many to a value as the mask is the same for. */
static void compare_dmask(const struct problem *p, const rdna_tensor *got, double bound) {
  const struct setting *s = p->s;
  int64_t count = rdna_tensor_count(got), extent = mask_extent(got), written = 0;
  uint8_t *host = malloc(rdna_dtype_bytes(got->dtype, extent) + 1);
  test_download(host, got->data, rdna_dtype_bytes(got->dtype, extent));
  for (int64_t i = 0; i < extent; i++) written += !isnan(case_get(got->dtype, host, i));
  assert_int_equal(written, count); /* what is between is as it was */
  for (int64_t i = 0; i < count; i++) {
    double g = (double)case_get(got->dtype, host, mask_place(got, i)), w = p->dmask[i];
    double allowed = bound + fabs(w) * case_spacing(got->dtype);
    if (!(fabs(g - w) <= allowed))
      fail_msg("dmask of %s %d heads %d/%d %d x %d d %d/%d: [%d] is %g, not %g (bound %g)", rdna_dtype_name(s->dtype),
               s->batch, s->heads, s->kv_heads, s->sq, s->sk, s->d, s->dv, (int)i, g, w, allowed);
  }
  free(host);
}

/* Compares with |want|, and expects what is between the rows to be as it was. */
static void compare(const struct problem *p, const char *name, const struct placed *got, const double *want, int heads,
                    int rows, int d, double bound) {
  const struct setting *s = p->s;
  bool packed = s->q_starts != NULL;
  uint8_t *host = malloc(got->bytes + 1);
  int64_t first = s->layout == UNALIGNED, cells = (int64_t)(got->bytes / rdna_dtype_bytes(s->dtype, 1)),
          numbers_seen = 0;
  test_download(host, got->memory, got->bytes);
  for (int64_t i = 0; i < cells; i++) numbers_seen += !isnan(case_get(s->dtype, host, i));
  for (int b = 0; b < p->outer; b++)
    for (int h = 0; h < heads; h++)
      for (int i = 0; i < rows; i++)
        for (int e = 0; e < d; e++) {
          const int64_t *stride = got->t.stride;
          int64_t at =
              first + (packed ? i * stride[0] + h * stride[1] : b * stride[0] + h * stride[1] + i * stride[2]) + e;
          double g = (double)case_get(s->dtype, host, at), w = want[(((int64_t)b * heads + h) * rows + i) * d + e];
          double allowed = bound + fabs(w) * case_spacing(s->dtype);
          if (fabs(g - w) <= allowed) continue;
          fail_msg("%s of %s %d heads %d/%d %d x %d d %d/%d: [%d, %d, %d, %d] is %g, not %g (bound %g)", name,
                   rdna_dtype_name(s->dtype), s->batch, s->heads, s->kv_heads, s->sq, s->sk, s->d, s->dv, b, h, i, e, g,
                   w, allowed);
        }
  assert_int_equal(numbers_seen, count_of(p, heads, rows, d));
  free(host);
}

/* Scores are of unit size (d products of unit size, times d^-1/2), a probability of the type is off by half a unit in
 * the last place, and what it multiplies is below 6. f32: as in attention_test.c. */
static double bound_of(const struct setting *s) {
  double probability = (4 * sqrt(s->d) + 18) * 0x1p-24 * (s->options.dropout != 0 ? 2 : 1);
  double rounding = s->dtype == RDNA_F32 ? 0 : case_spacing(s->dtype) / 2;
  return 6 * (2 * probability + 2 * sqrt((double)s->sk) * 0x1p-24 + rounding) / (1 - (double)s->options.dropout);
}

struct tensors {
  struct placed q, k, v, out;
  rdna_tensor mask, slopes, sinks, q_starts, k_starts, lse;
  rdna_sdpa options;
};

static void make_tensors(struct problem *p, struct tensors *t) {
  const struct setting *s = p->s;
  memset(t, 0, sizeof *t);
  t->options = s->options, t->options.size = sizeof t->options;
  place(p, p->q, s->heads, s->sq, s->d, &t->q);
  place(p, p->k, s->kv_heads, s->sk, s->d, &t->k);
  place(p, p->v, s->kv_heads, s->sk, s->dv, &t->v);
  place(p, NULL, s->heads, s->sq, s->dv, &t->out);
  int64_t rows = count_of(p, s->heads, s->sq, 1);
  t->lse = rdna_tensor_contiguous(test_poisoned((size_t)rows * 4), RDNA_F32, s->q_starts ? 2 : 3,
                                  s->q_starts ? (int64_t[]){s->heads, s->sq} : (int64_t[]){s->batch, s->heads, s->sq});
  if (s->masked) {
    int64_t shape[4] = {s->mask_shape[0] ? 1 : s->batch, s->mask_shape[1] ? 1 : s->heads, s->mask_shape[2] ? 1 : s->sq,
                        s->sk};
    t->mask = rdna_tensor_contiguous(NULL, s->mask_type, 4, shape);
    if (s->mask_layout == ROOM) {
      t->mask.stride[2] = (s->sk + 15) / 16 * 16;
      for (int k = 1; k >= 0; k--) t->mask.stride[k] = t->mask.stride[k + 1] * shape[k + 1];
    }
    if (s->mask_layout == TURNED) t->mask.stride[2] = 1, t->mask.stride[3] = shape[2];
    int64_t count = rdna_tensor_count(&t->mask), extent = mask_extent(&t->mask);
    uint8_t *host = malloc((size_t)extent * 4 + 1);
    memset(host, 0xff, (size_t)extent * 4);
    for (int64_t i = 0; i < count; i++) {
      if (s->mask_type == RDNA_BOOL)
        host[mask_place(&t->mask, i)] = p->mask[i] != 0;
      else
        case_set(s->mask_type, host, mask_place(&t->mask, i), (float)p->mask[i]);
    }
    t->mask.data = test_upload(host, rdna_dtype_bytes(s->mask_type, extent));
    t->options.mask = &t->mask;
    free(host);
  }
  if (s->sinks) {
    float host[64];
    for (int h = 0; h < s->heads; h++) host[h] = (float)p->sinks[h];
    t->sinks = rdna_tensor_contiguous(test_upload(host, (size_t)s->heads * 4), RDNA_F32, 1, (int64_t[]){s->heads});
    t->options.sinks = &t->sinks;
  }
  if (s->slopes) {
    float host[64];
    int rank = s->options.slopes->rank, count = rank == 2 ? s->batch * s->heads : s->heads;
    for (int i = 0; i < count; i++) host[i] = (float)p->slopes[i];
    t->slopes = rdna_tensor_contiguous(test_upload(host, (size_t)count * 4), RDNA_F32, rank,
                                       rank == 2 ? (int64_t[]){s->batch, s->heads} : (int64_t[]){s->heads});
    t->options.slopes = &t->slopes;
  }
  if (s->q_starts) {
    int64_t count = s->batch + 1;
    t->q_starts = rdna_tensor_contiguous(test_upload(s->q_starts, (size_t)count * 4), RDNA_I32, 1, &count);
    t->k_starts = rdna_tensor_contiguous(test_upload(s->k_starts, (size_t)count * 4), RDNA_I32, 1, &count);
    t->options.q_starts = &t->q_starts, t->options.k_starts = &t->k_starts;
  }
}

static void free_tensors(struct tensors *t) {
  void *memory[] = {t->q.memory,   t->k.memory,  t->v.memory,    t->out.memory,    t->lse.data,
                    t->sinks.data, t->mask.data, t->slopes.data, t->q_starts.data, t->k_starts.data};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    if (memory[i]) test_release(memory[i]);
}

static void check_lse(const struct problem *p, const struct tensors *t) {
  int64_t rows = count_of(p, p->s->heads, p->s->sq, 1);
  float *lse = malloc((size_t)rows * 4 + 1);
  test_download(lse, t->lse.data, (size_t)rows * 4);
  for (int64_t i = 0; i < rows; i++) {
    double want = p->lse[i], bound = (4 * sqrt(p->s->d) + 18 + sqrt(p->s->sk)) * 0x1p-23 * fmax(1, fabs(want));
    if (isinf(want) ? (double)lse[i] != want : !(fabs((double)lse[i] - want) <= bound))
      fail_msg("lse %d of %d x %d is %g, not %g", (int)i, p->s->sq, p->s->sk, (double)lse[i], want);
  }
  free(lse);
}

static void check_forward(const struct setting *s) {
  struct problem p;
  struct tensors t;
  make_problem(s, &p);
  make_tensors(&p, &t);
  reference(&p, false);
  assert_ok(rdna_op_sdpa(stream, &t.options, &t.q.t, &t.k.t, &t.v.t, &t.out.t, &t.lse));
  compare(&p, "out", &t.out, p.out, s->heads, s->sq, s->dv, bound_of(s));
  check_lse(&p, &t);
  free_tensors(&t);
  free_problem(&p);
}

/* Probabilities and ds err as the forward pass; those of a query add up to 1, those of a key to queries / keys or so.
 */
static void check_backward(const struct setting *s) {
  struct problem p;
  struct tensors t;
  struct placed dout, dq, dk, dv;
  make_problem(s, &p);
  make_tensors(&p, &t);
  reference(&p, true);
  place(&p, p.dout, s->heads, s->sq, s->dv, &dout);
  place(&p, NULL, s->heads, s->sq, s->d, &dq);
  place(&p, NULL, s->kv_heads, s->sk, s->d, &dk);
  place(&p, NULL, s->kv_heads, s->sk, s->dv, &dv);
  bool added = s->masked && s->mask_type != RDNA_BOOL;
  rdna_tensor dmask = t.mask;
  if (added) dmask.data = test_poisoned(rdna_dtype_bytes(dmask.dtype, mask_extent(&dmask)));
  assert_ok(rdna_op_sdpa(stream, &t.options, &t.q.t, &t.k.t, &t.v.t, &t.out.t, &t.lse));
  assert_ok(rdna_op_sdpa_backward(stream, &t.options, &t.q.t, &t.k.t, &t.v.t, &t.out.t, &t.lse, &dout.t, &dq.t, &dk.t,
                                  &dv.t, added ? &dmask : NULL));
  double per_key = 3 + 2.0 * s->heads / s->kv_heads * s->sq / (s->sk + 1), bound = bound_of(s);
  double ds = (5 * sqrt(s->dv) + 5) * fabs((double)s->options.scale) / (1 - (double)s->options.dropout);
  if (s->dtype != RDNA_F32) bound += 6 * case_spacing(s->dtype) / 2; /* delta is of an output that was rounded */
  compare(&p, "dq", &dq, p.dq, s->heads, s->sq, s->d, bound * ds);
  compare(&p, "dk", &dk, p.dk, s->kv_heads, s->sk, s->d, bound * ds * per_key);
  compare(&p, "dv", &dv, p.dv, s->kv_heads, s->sk, s->dv, bound * per_key);
  if (added) {
    double same = 1, sizes[3] = {s->batch, s->heads, s->sq};
    for (int i = 0; i < 3; i++) same *= s->mask_shape[i] ? sizes[i] : 1;
    /* probabilities of |same| scores of which each query has sk add up to about same / sk */
    compare_dmask(&p, &dmask, bound * ds / fabs((double)s->options.scale) * (3 * same + 60) / s->sk);
    test_release(dmask.data);
  }
  void *memory[] = {dout.memory, dq.memory, dk.memory, dv.memory};
  for (int i = 0; i < 4; i++) test_release(memory[i]);
  free_tensors(&t);
  free_problem(&p);
}

static const int32_t q_starts[] = {0, 5, 5, 45, 60}, k_starts[] = {0, 7, 20, 33, 73};
static const rdna_tensor rank1 = {.rank = 1}, rank2 = {.rank = 2};
static const struct setting settings[] = {
    {RDNA_F16, 1, 1, 1, 16, 16, 64, 64, .options = {.scale = 0.125f}},
    {RDNA_F16, 2, 4, 2, 130, 70, 64, 64, BSHD, .options = {.scale = 0.125f, .causal = true}},
    {RDNA_BF16, 1, 2, 1, 70, 130, 128, 128, BSHD, .options = {.scale = 0.09f, .causal = true, .diagonal = 1}},
    {RDNA_F32, 1, 2, 2, 67, 99, 64, 64, BHSD, .options = {.scale = 0.125f, .causal = true, .diagonal = 1}},
    {RDNA_F32, 2, 3, 1, 33, 35, 128, 80, BSHD, .options = {.scale = 0.1f}},
    {RDNA_F16, 1, 3, 3, 40, 150, 40, 40, BHSD, .options = {.scale = 0.16f, .windowed = true, .left = 20, .right = 5}},
    {RDNA_F16, 1, 2, 1, 150, 40, 96, 32, BSHD,
     .options = {.scale = 0.1f, .windowed = true, .left = 9, .causal = true, .diagonal = 1}},
    {RDNA_BF16, 1, 2, 2, 37, 45, 256, 256, BHSD, .options = {.scale = 0.0625f, .causal = true}},
    {RDNA_F32, 1, 2, 1, 20, 45, 256, 200, BHSD, .options = {.scale = 0.0625f}},
    {RDNA_F16, 1, 2, 2, 19, 23, 37, 29, UNALIGNED, .options = {.scale = 0.17f}},
    {RDNA_F32, 2, 2, 2, 19, 23, 5, 3, UNALIGNED, .options = {.scale = 0.5f, .causal = true}},
    {RDNA_F16, 2, 2, 1, 50, 70, 64, 64, BSHD, .options = {.scale = 0.125f, .softcap = 1.5f}},
    {RDNA_F16, 1, 4, 2, 50, 70, 64, 64, BSHD, .options = {.scale = -0.125f, .causal = true}},
    {RDNA_BF16, 2, 2, 2, 50, 70, 128, 128, BSHD, .options = {.scale = 0.09f, .slopes = &rank2, .diagonal = 1},
     .slopes = true},
    {RDNA_F32, 1, 3, 3, 35, 40, 64, 64, BSHD, .options = {.scale = 0.125f, .slopes = &rank1, .causal = true},
     .slopes = true},
    {RDNA_F16, 2, 2, 1, 35, 75, 64, 64, BHSD, .options = {.scale = 0.125f}, .mask_type = RDNA_F16, .masked = true},
    {RDNA_F16, 2, 2, 1, 35, 75, 128, 128, BHSD, .options = {.scale = 0.09f}, .mask_type = RDNA_F32, .masked = true,
     .mask_shape = {0, 1, 1}},
    {RDNA_BF16, 2, 4, 2, 69, 131, 40, 24, UNALIGNED, .options = {.scale = 0.15f, .softcap = 2, .dropout = 0.25f},
     .mask_type = RDNA_BF16, .masked = true, .mask_shape = {1, 0, 1}},
    {RDNA_F32, 2, 2, 1, 21, 34, 16, 12, BHSD, .options = {.scale = 0.5f, .softcap = 1.5f, .dropout = 0.25f},
     .mask_type = RDNA_F32, .masked = true},
    {RDNA_F32, 2, 2, 1, 70, 9, 64, 64, BSHD, .options = {.scale = 0.125f, .slopes = &rank1, .causal = true},
     .mask_type = RDNA_F32, .masked = true, .slopes = true, .mask_shape = {1, 1, 1}},
    /* of the tiles of 64 beside the diagonal one score is seen */
    {RDNA_F32, 1, 1, 1, 130, 130, 8, 8, BHSD, .options = {.scale = 0.3f, .windowed = true, .left = 1, .right = 1},
     .mask_type = RDNA_F32, .masked = true},
    {RDNA_F32, 3, 2, 2, 66, 70, 12, 8, BHSD, .options = {.scale = -0.3f, .windowed = true, .left = 20, .right = 3},
     .mask_type = RDNA_F32, .masked = true, .mask_shape = {1, 1, 0}},
    {RDNA_BF16, 2, 4, 2, 150, 136, 64, 64, BSHD, .options = {.scale = 0.125f, .causal = true}, .mask_type = RDNA_BF16,
     .masked = true},
    {RDNA_F16, 1, 2, 1, 140, 205, 128, 96, BSHD, .options = {.scale = 0.09f, .windowed = true, .left = 50, .right = 20},
     .mask_type = RDNA_F16, .masked = true, .mask_layout = ROOM},
    {RDNA_BF16, 3, 2, 1, 140, 160, 128, 128, BHSD, .options = {.scale = -0.09f, .causal = true, .diagonal = 1},
     .mask_type = RDNA_BF16, .masked = true, .mask_shape = {1, 1, 0}},
    {RDNA_F16, 2, 4, 2, 150, 77, 64, 48, BSHD, .options = {.scale = 0.125f, .windowed = true, .left = 9, .right = 9},
     .mask_type = RDNA_F16, .masked = true, .mask_shape = {0, 1, 0}, .mask_layout = ROOM},
    {RDNA_F16, 2, 4, 2, 70, 77, 64, 48, BSHD, .options = {.scale = 0.125f}, .mask_type = RDNA_F32, .masked = true,
     .mask_layout = TURNED},
    {RDNA_BF16, 2, 4, 4, 70, 130, 128, 128, BSHD, .options = {.scale = 0.09f}, .mask_type = RDNA_BF16, .masked = true,
     .mask_shape = {1, 0, 0}, .mask_layout = TURNED},
    {RDNA_F16, 2, 2, 2, 100, 128, 64, 64, BSHD, .options = {.scale = 0.125f}, .mask_type = RDNA_BOOL, .masked = true,
     .mask_shape = {0, 1, 1}},
    {RDNA_F16, 1, 3, 1, 64, 0, 64, 64, BSHD, .options = {.scale = 0.125f}, .mask_type = RDNA_F16, .masked = true},
    {RDNA_BF16, 2, 2, 1, 35, 75, 256, 256, BSHD, .options = {.scale = 0.06f, .causal = true}, .mask_type = RDNA_BOOL,
     .masked = true, .mask_shape = {1, 0, 0}},
    {RDNA_F32, 2, 2, 1, 21, 9, 256, 256, BSHD, .options = {.scale = 0.06f}, .mask_type = RDNA_BOOL, .masked = true,
     .mask_shape = {0, 1, 0}},
    {RDNA_F16, 2, 2, 1, 35, 75, 64, 64, BSHD, .options = {.scale = 0.125f, .dropout = 0.3f, .seed = 5, .offset = 77}},
    /* of the last block of a row's random numbers one is used, or all */
    {RDNA_F32, 2, 2, 2, 21, 33, 16, 16, BHSD, .options = {.scale = 0.25f, .dropout = 0.4f, .seed = 3, .offset = 11}},
    {RDNA_BF16, 1, 2, 1, 19, 64, 32, 32, BSHD, .options = {.scale = 0.2f, .dropout = 0.4f, .seed = 4, .offset = 7}},
    {RDNA_F32, 1, 2, 1, 35, 43, 128, 64, BSHD,
     .options = {.scale = 0.1f, .dropout = 0.5f, .seed = 9, .softcap = 2, .causal = true}},
    {RDNA_F16, 4, 2, 1, 60, 73, 64, 64, BSHD,
     .options = {.scale = 0.125f, .causal = true, .diagonal = 1, .max_queries = 40, .max_keys = 40},
     .q_starts = q_starts, .k_starts = k_starts},
    {RDNA_F32, 4, 2, 2, 60, 73, 64, 64, BSHD,
     .options = {.scale = 0.125f, .max_queries = 2, .max_keys = 1, .softcap = 3}, .q_starts = q_starts,
     .k_starts = k_starts},
    {RDNA_BF16, 1, 1, 1, 300, 300, 64, 64, BSHD,
     .options = {.scale = 0.125f, .causal = true, .windowed = true, .left = 70}},
    {RDNA_F16, 1, 1, 1, 5, 0, 64, 64, BSHD, .options = {.scale = 0.125f}},
    {RDNA_F16, 1, 8, 2, 70, 150, 64, 64, BSHD,
     .options = {.scale = 0.125f, .causal = true, .windowed = true, .left = 40, .diagonal = 1}, .sinks = true},
    {RDNA_BF16, 2, 3, 1, 40, 33, 128, 128, BHSD, .options = {.scale = 0.09f, .causal = true}, .sinks = true},
    {RDNA_F32, 1, 6, 3, 21, 30, 16, 12, BHSD, .options = {.scale = 0.4f, .softcap = 2, .dropout = 0.25f},
     .sinks = true},
    {RDNA_F16, 1, 3, 3, 35, 40, 64, 64, BHSD, .options = {.scale = 0.125f}, .mask_type = RDNA_F16, .masked = true,
     .sinks = true},
    {RDNA_F16, 1, 3, 1, 5, 0, 64, 64, BSHD, .options = {.scale = 0.125f}, .sinks = true}, /* sinks alone */
};

/* Heads that have no gradients. */
static const struct setting wide[] = {
    {RDNA_F16, 1, 2, 1, 37, 70, 512, 512, BSHD, .options = {.scale = 0.044f, .causal = true, .diagonal = 1}},
    {RDNA_BF16, 2, 4, 1, 19, 133, 576, 512, BSHD, .options = {.scale = 0.04f, .causal = true, .diagonal = 1}},
    {RDNA_F16, 1, 2, 2, 130, 66, 264, 24, BHSD, .options = {.scale = 0.06f}},
    {RDNA_F32, 1, 2, 1, 21, 35, 80, 300, BHSD, .options = {.scale = 0.1f, .causal = true}},
    {RDNA_F16, 1, 4, 2, 70, 75, 512, 512, BSHD,
     .options = {.scale = 0.044f, .windowed = true, .left = 20, .diagonal = 1}, .sinks = true},
    {RDNA_BF16, 1, 2, 1, 20, 35, 300, 260, UNALIGNED, .options = {.scale = 0.06f, .softcap = 2, .slopes = &rank1},
     .slopes = true},
    {RDNA_F16, 2, 2, 1, 35, 75, 272, 272, BHSD, .options = {.scale = 0.06f}, .mask_type = RDNA_F16, .masked = true},
    {RDNA_F32, 1, 2, 1, 9, 20, 576, 512, BSHD, .options = {.scale = 0.04f, .dropout = 0.3f, .seed = 5, .offset = 7}},
};

static void forward(void **state) {
  for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) check_forward(&wide[i]);
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) check_forward(&settings[i]);
}

static void backward(void **state) {
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) check_backward(&settings[i]);
}

/* The sum of out times dout. */
static double objective(struct problem *p) {
  double sum = 0;
  reference(p, false);
  for (int64_t i = 0; i < count_of(p, p->s->heads, p->s->sq, p->s->dv); i++) sum += p->out[i] * p->dout[i];
  return sum;
}

/* The gradients that the others are compared with are those of the formula, by its differences. */
static void reference_differentiates(void **state) {
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
    const struct setting *s = &settings[i];
    struct problem p;
    struct tensors t;
    if ((int64_t)s->batch * s->heads * s->sq * s->sk * s->d > 1000000) continue; /* many evaluations each */
    make_problem(s, &p);
    make_tensors(&p, &t); /* its options name the slopes */
    reference(&p, true);
    double *values[] = {p.q, p.k, p.v, p.mask}, *gradients[] = {p.dq, p.dk, p.dv, p.dmask};
    int64_t counts[] = {count_of(&p, s->heads, s->sq, s->d), count_of(&p, s->kv_heads, s->sk, s->d),
                        count_of(&p, s->kv_heads, s->sk, s->dv),
                        s->masked && s->mask_type != RDNA_BOOL ? rdna_tensor_count(&t.mask) : 0};
    for (int part = 0; part < 4; part++) {
      for (int64_t at = 0; at < counts[part]; at += counts[part] / 5 + 1) {
        double kept = values[part][at], step = 1e-5;
        values[part][at] = kept + step;
        double above = objective(&p);
        values[part][at] = kept - step;
        double below = objective(&p), got = (above - below) / (2 * step);
        values[part][at] = kept;
        if (!(fabs(got - gradients[part][at]) <= 1e-6 * (1 + fabs(got))))
          fail_msg("setting %d, gradient %d [%d]: %.9g, by differences %.9g", (int)i, part, (int)at,
                   gradients[part][at], got);
      }
    }
    free_tensors(&t);
    free_problem(&p);
  }
}

/* Sums of several parts, of any strides, and the same bits every time. */
static void dmask_of_parts(void **state) {
  const struct setting s = {RDNA_F16,
                            3,
                            4,
                            2,
                            150,
                            40,
                            16,
                            16,
                            .options = {.scale = 0.25f},
                            .mask_type = RDNA_F32,
                            .masked = true,
                            .mask_shape = {1, 1, 1}};
  enum { CELLS = 2 * 40 };
  struct problem p;
  struct tensors t;
  struct placed dout;
  float got[2][CELLS];
  make_problem(&s, &p);
  make_tensors(&p, &t);
  reference(&p, true);
  place(&p, p.dout, s.heads, s.sq, s.dv, &dout);
  rdna_tensor dmask = t.mask;
  dmask.stride[3] = 2;
  assert_ok(rdna_op_sdpa(stream, &t.options, &t.q.t, &t.k.t, &t.v.t, &t.out.t, &t.lse));
  for (int turn = 0; turn < 2; turn++) {
    dmask.data = test_poisoned(sizeof got[0]);
    assert_ok(rdna_op_sdpa_backward(stream, &t.options, &t.q.t, &t.k.t, &t.v.t, &t.out.t, &t.lse, &dout.t, NULL, NULL,
                                    NULL, &dmask));
    test_download(got[turn], dmask.data, sizeof got[0]);
    test_release(dmask.data);
  }
  assert_memory_equal(got[0], got[1], sizeof got[0]);
  for (int i = 0; i < CELLS; i++) {
    if (i % 2)
      assert_true(isnan((double)got[0][i]));
    else if (!(fabs((double)got[0][i] - p.dmask[i / 2]) <= 45 * 6 * 0x1p-11))
      fail_msg("dmask [%d] is %g, not %g", i / 2, (double)got[0][i], p.dmask[i / 2]);
  }
  test_release(dout.memory);
  free_tensors(&t);
  free_problem(&p);
}

/* The same bits every time, and whatever else is asked for. */
static void check_repeats(const struct setting *of) {
  const struct setting s = *of;
  struct problem p;
  struct tensors t;
  struct placed dout, gradients[2][3];
  make_problem(&s, &p);
  make_tensors(&p, &t);
  place(&p, p.dout, s.heads, s.sq, s.dv, &dout);
  rdna_tensor dmask = t.mask;
  size_t dmask_bytes = s.masked ? rdna_dtype_bytes(s.mask_type, rdna_tensor_count(&dmask)) : 0;
  uint8_t *dmasks = malloc(3 * dmask_bytes + 1);
  assert_ok(rdna_op_sdpa(stream, &t.options, &t.q.t, &t.k.t, &t.v.t, &t.out.t, &t.lse));
  for (int turn = 0; s.masked && turn < 3; turn++) {
    struct placed unused;
    place(&p, NULL, s.heads, s.sq, s.d, &unused);
    dmask.data = test_poisoned(dmask_bytes);
    assert_ok(rdna_op_sdpa_backward(stream, &t.options, &t.q.t, &t.k.t, &t.v.t, &t.out.t, &t.lse, &dout.t,
                                    turn == 0 ? &unused.t : NULL, NULL, NULL, &dmask));
    test_download(dmasks + (size_t)turn * dmask_bytes, dmask.data, dmask_bytes);
    test_release(dmask.data);
    test_release(unused.memory);
  }
  assert_memory_equal(dmasks, dmasks + dmask_bytes, dmask_bytes);
  assert_memory_equal(dmasks, dmasks + 2 * dmask_bytes, dmask_bytes);
  free(dmasks);
  for (int turn = 0; turn < 2; turn++) {
    struct placed *g = gradients[turn];
    place(&p, NULL, s.heads, s.sq, s.d, &g[0]);
    place(&p, NULL, s.kv_heads, s.sk, s.d, &g[1]);
    place(&p, NULL, s.kv_heads, s.sk, s.dv, &g[2]);
    assert_ok(rdna_op_sdpa_backward(stream, &t.options, &t.q.t, &t.k.t, &t.v.t, &t.out.t, &t.lse, &dout.t, &g[0].t,
                                    &g[1].t, turn == 0 ? &g[2].t : NULL, NULL));
  }
  for (int i = 0; i < 3; i++) {
    void *first = malloc(gradients[0][i].bytes), *second = malloc(gradients[0][i].bytes);
    test_download(first, gradients[0][i].memory, gradients[0][i].bytes);
    test_download(second, gradients[1][i].memory, gradients[0][i].bytes);
    if (i < 2)
      assert_memory_equal(first, second, gradients[0][i].bytes);
    else
      assert_true(isnan(f16_to_f32(*(uint16_t *)second))); /* it was not asked for */
    free(first), free(second);
    test_release(gradients[0][i].memory);
    test_release(gradients[1][i].memory);
  }
  test_release(dout.memory);
  free_tensors(&t);
  free_problem(&p);
}

static void repeats(void **state) {
  struct setting s = {RDNA_F16, 2, 4, 2, 90, 112, 64, 64, .layout = BSHD, .options = {.scale = 0.125f}};
  check_repeats(&s);
  s.masked = true, s.mask_type = RDNA_F16;
  check_repeats(&s);
  s.mask_shape[0] = 1;
  check_repeats(&s);
}

static void refused(void **state) {
  enum { BYTES = 1 << 16 };
  char *memory = test_poisoned(BYTES);
  const int64_t shape[4] = {2, 4, 6, 16}, kv_shape[4] = {2, 2, 7, 16}, lse_shape[3] = {2, 4, 6};
  rdna_tensor q = rdna_tensor_contiguous(memory, RDNA_F16, 4, shape), bad, bad_q;
  rdna_tensor k = rdna_tensor_contiguous(memory + 4096, RDNA_F16, 4, kv_shape);
  rdna_tensor out = rdna_tensor_contiguous(memory + 8192, RDNA_F16, 4, shape);
  rdna_tensor lse = rdna_tensor_contiguous(memory + 12288, RDNA_F32, 3, lse_shape);
  rdna_tensor dq = rdna_tensor_contiguous(memory + 16384, RDNA_F16, 4, shape);
  rdna_sdpa options = {RDNA_SDPA_INIT, .scale = 0.25f}, wrong;
#define TRY(options, q, k, v, out, lse) rdna_op_sdpa(stream, options, q, k, v, out, lse)
#define TRY_OPTIONS(code, text)                                                                                    \
  assert_refused(TRY(&wrong, &q, &k, &k, &out, NULL), code, text);                                                 \
  assert_refused(rdna_op_sdpa_backward(stream, &wrong, &q, &k, &k, &out, &lse, &out, &dq, NULL, NULL, NULL), code, \
                 "sdpa_backward: ")
  assert_refused(TRY(NULL, &q, &k, &k, &out, NULL), RDNA_INVALID_ARGUMENT, "options is NULL");
  assert_refused(rdna_op_sdpa(NULL, &options, &q, &k, &k, &out, NULL), RDNA_INVALID_ARGUMENT, "the stream is NULL");
  wrong = options, wrong.dropout = 1;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "dropout is 1");
  wrong = options, wrong.softcap = NAN;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "softcap nan");
  wrong = options, wrong.windowed = true, wrong.left = -1;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "-1 keys to the left");
  wrong = options, wrong.diagonal = (rdna_diagonal)2;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "diagonal is 2");
  rdna_tensor starts = {memory, RDNA_I32, 1, {3}, {1}}, mask = {memory, RDNA_BOOL, 4, {2, 1, 6, 8}, {48, 48, 8, 1}};
  wrong = options, wrong.q_starts = &starts;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "k_starts is NULL");
  wrong.k_starts = &starts;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "max_queries is 0");
  wrong.max_queries = wrong.max_keys = 5;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "rank");
  wrong = options, wrong.mask = &mask;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "mask is bool (2, 1, 6, 8); size 3 must be 7");
  mask.shape[3] = 7, mask.dtype = RDNA_BF16;
  TRY_OPTIONS(RDNA_UNSUPPORTED, "mask is bf16 and q f16");
  rdna_tensor slopes = {memory, RDNA_F32, 1, {3}, {1}};
  wrong = options, wrong.slopes = &slopes;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "slopes is f32 (3); size 0 must be 4");

  bad = k, bad.shape[1] = 3;
  assert_refused(TRY(&options, &q, &bad, &bad, &out, NULL), RDNA_INVALID_ARGUMENT, "q has 4 heads and k 3");
  bad = k, bad.shape[2] = 6;
  assert_refused(TRY(&options, &q, &k, &bad, &out, NULL), RDNA_INVALID_ARGUMENT, "size 2 must be 7");
  bad = k, bad.shape[3] = 8;
  assert_refused(TRY(&options, &q, &bad, &k, &out, NULL), RDNA_INVALID_ARGUMENT, "size 3 must be 16");
  bad = k, bad.dtype = RDNA_BF16;
  assert_refused(TRY(&options, &q, &bad, &k, &out, NULL), RDNA_INVALID_ARGUMENT, "k is bf16");
  bad = q, bad.dtype = RDNA_F64;
  assert_refused(TRY(&options, &bad, &k, &k, &out, NULL), RDNA_UNSUPPORTED, "q is f64");
  bad_q = q, bad_q.shape[3] = 577, bad = k, bad.shape[3] = 577;
  assert_refused(TRY(&options, &bad_q, &bad, &k, &out, NULL), RDNA_UNSUPPORTED, "577 values in a head of q");
  bad = k, bad.shape[3] = 513;
  assert_refused(TRY(&options, &q, &k, &bad, &out, NULL), RDNA_UNSUPPORTED, "513 values in a head of v");
  bad_q.shape[3] = bad.shape[3] = 257;
  assert_refused(rdna_op_sdpa_backward(stream, &options, &bad_q, &bad, &k, &out, &out, &out, &q, &k, &k, NULL),
                 RDNA_UNSUPPORTED, "257 values in a head of q");
  bad = out, bad.shape[2] = 5;
  assert_refused(TRY(&options, &q, &k, &k, &bad, NULL), RDNA_INVALID_ARGUMENT,
                 "out is f16 (2, 4, 5, 16); size 2 must be 6", "");
  bad = out, bad.stride[1] = 0;
  assert_refused(TRY(&options, &q, &k, &k, &bad, NULL), RDNA_INVALID_ARGUMENT, "out");
  assert_refused(TRY(&options, &q, &k, &k, &q, NULL), RDNA_INVALID_ARGUMENT, "out");
  bad = lse, bad.shape[2] = 7;
  assert_refused(TRY(&options, &q, &k, &k, &out, &bad), RDNA_INVALID_ARGUMENT, "lse is f32 (2, 4, 7)");
  bad = lse, bad.data = out.data;
  assert_refused(TRY(&options, &q, &k, &k, &out, &bad), RDNA_INVALID_ARGUMENT, "lse");
#define TRY_BACKWARD(lse, dout, dq, dk, dv) \
  rdna_op_sdpa_backward(stream, &options, &q, &k, &k, &out, lse, dout, dq, dk, dv, NULL)
  assert_refused(TRY_BACKWARD(NULL, &out, &dq, NULL, NULL), RDNA_INVALID_ARGUMENT, "lse is NULL");
  bad = out, bad.shape[3] = 8;
  assert_refused(TRY_BACKWARD(&lse, &bad, &dq, NULL, NULL), RDNA_INVALID_ARGUMENT, "dout is");
  assert_refused(TRY_BACKWARD(&lse, &out, NULL, &dq, NULL), RDNA_INVALID_ARGUMENT,
                 "dk is f16 (2, 4, 6, 16) and k is f16 (2, 2, 7, 16)");
  assert_refused(TRY_BACKWARD(&lse, &out, &q, NULL, NULL), RDNA_INVALID_ARGUMENT, "dq");
  bad = k, bad.data = dq.data;
  assert_refused(TRY_BACKWARD(&lse, &out, &dq, NULL, &bad), RDNA_INVALID_ARGUMENT, "dv");

#define TRY_DMASK(dmask) rdna_op_sdpa_backward(stream, &wrong, &q, &k, &k, &out, &lse, &out, NULL, NULL, NULL, dmask)
  rdna_tensor dmask = {memory + 20480, RDNA_F16, 4, {2, 1, 6, 7}, {42, 42, 7, 1}};
  wrong = options, mask.dtype = RDNA_BOOL;
  assert_refused(TRY_DMASK(&dmask), RDNA_INVALID_ARGUMENT, "dmask is there and mask is NULL");
  wrong.mask = &mask;
  assert_refused(TRY_DMASK(&dmask), RDNA_INVALID_ARGUMENT, "mask is bool");
  mask.dtype = RDNA_F32;
  assert_refused(TRY_DMASK(&dmask), RDNA_INVALID_ARGUMENT, "dmask is f16 and mask is f32");
  mask.dtype = RDNA_F16, bad = dmask, bad.shape[0] = 1;
  assert_refused(TRY_DMASK(&bad), RDNA_INVALID_ARGUMENT, "dmask is f16 (1, 1, 6, 7)");
  bad = dmask, bad.stride[2] = 0;
  assert_refused(TRY_DMASK(&bad), RDNA_INVALID_ARGUMENT, "share memory");
  assert_refused(TRY_DMASK(&mask), RDNA_INVALID_ARGUMENT, "dmask");

  uint16_t got[BYTES / 2];
  test_download(got, memory, BYTES);
  for (int i = 0; i < BYTES / 2; i++) assert_int_equal(got[i], 0xffff); /* nothing was written */
  q.shape[0] = k.shape[0] = out.shape[0] = 0;
  q.data = k.data = out.data = NULL;
  assert_ok(TRY(&options, &q, &k, &k, &out, NULL));
  wrong = options, wrong.mask = &slopes; /* where a struct from before masks ends */
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "mask");
  wrong.size = offsetof(rdna_sdpa, mask);
  assert_ok(TRY(&wrong, &q, &k, &k, &out, NULL));
  wrong.size = 0;
  TRY_OPTIONS(RDNA_INVALID_ARGUMENT, "options has size 0");
  wrong = options, wrong.mask = &mask;
  mask.shape[0] = dmask.shape[0] = 1;
  lse.shape[0] = 0;
  assert_ok(TRY_DMASK(&dmask)); /* the sum of nothing */
  uint16_t sums[42];
  test_download(sums, dmask.data, sizeof sums);
  for (int i = 0; i < 42; i++) assert_int_equal(sums[i], 0);
  test_release(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forward),  cmocka_unit_test(reference_differentiates),
                                     cmocka_unit_test(backward), cmocka_unit_test(dmask_of_parts),
                                     cmocka_unit_test(repeats),  cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
