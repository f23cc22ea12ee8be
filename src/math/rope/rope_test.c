#include "rdna/op/rope.h"
#include "math/common/test/operand.h"

/* Where value (token, head, i) lies. */
static int64_t at(const rdna_tensor *t, int64_t row, int64_t head, int64_t i) {
  return row * t->stride[0] + head * t->stride[1] + i;
}

/* Angles are exact to half a step of f32, as the header says; sine, cosine and the four products and sums add a few
 * roundings of the pair's magnitude. */
static void check_head(const operand *x, const double *before, int64_t token, int64_t head, const operand *out,
                       int64_t row, const rdna_rope *rope, const operand *positions, const operand *inv_freq) {
  int64_t half = rope->inv_freq->shape[0], dim = x->tensor.shape[2];
  /* of a normed value: a sum of positive squares by 32 lanes, a division and a root, two products */
  double normed = rope->epsilon > 0 ? ((double)dim / 32 + 5 + 4) * 0x1p-24 : 0;
  for (int64_t i = 0; i < dim; i++) {
    double got = operand_get(out, at(&out->tensor, row, head, i));
    if (i >= 2 * half) {
      assert_close(out->tensor.dtype, got, before[at(&x->tensor, token, head, i)],
                   normed * fabs(before[at(&x->tensor, token, head, i)]), "rope rest", i);
      continue;
    }
    bool halves = rope->layout == RDNA_ROPE_LAYOUT_HALVES;
    int64_t pair = halves ? i % half : i / 2, first = halves ? pair : 2 * pair,
            second = halves ? pair + half : first + 1;
    float angle = (float)operand_get(positions, token) * (float)operand_get(inv_freq, pair);
    double a = before[at(&x->tensor, token, head, first)], b = before[at(&x->tensor, token, head, second)];
    double c = cos((double)angle) * (double)rope->scale, s = sin((double)angle) * (double)rope->scale;
    double want = i == first ? a * c - b * s : a * s + b * c;
    assert_close(out->tensor.dtype, got, want, (8 * 0x1p-24 + normed) * (fabs(a) + fabs(b)) * (double)rope->scale,
                 "rope", i);
  }
}

static void fill_angles(operand *positions, operand *inv_freq, int64_t limit) {
  for (int64_t t = 0; t < operand_span(positions); t++) {
    operand_set(positions, t, (double)rdna__random_range(&random_state, 0, limit));
  }
  int64_t pairs = operand_span(inv_freq);
  for (int64_t i = 0; i < pairs; i++) operand_set(inv_freq, i, pow(10000, -(double)i / (double)pairs));
  operand_upload(positions);
  operand_upload(inv_freq);
}

static double *values_of(const operand *o) {
  double *values = malloc((size_t)(operand_span(o) + 1) * sizeof *values);
  for (int64_t i = 0; i < operand_span(o); i++) values[i] = operand_get(o, i);
  return values;
}

struct sizes {
  int64_t tokens, heads, dim, pairs;
};

static struct sizes pick_sizes(int n) {
  static const struct sizes edges[] = {{1, 32, 128, 64}, {5, 8, 64, 32}, {600, 4, 128, 64},
                                       {2, 3, 80, 0},    {3, 2, 33, 10}, {2, 1, 1100, 550},
                                       {80, 20, 96, 16}, {1, 1, 1, 0},   {4, 2, 2, 1}};
  if (n < 9) return edges[n];
  int64_t dim = rdna__random_range(&random_state, 1, 200);
  if (n % 2) dim = dim / 16 * 16 + 16;
  return (struct sizes){rdna__random_range(&random_state, 1, 9), rdna__random_range(&random_state, 1, 9), dim,
                        n % 3 ? dim / 2 : rdna__random_range(&random_state, 0, dim / 2)};
}

/* (rows, heads, dim) with gaps of |gap| after heads and rows. */
static operand make_heads(rdna_dtype dtype, int64_t rows, int64_t heads, int64_t dim, int64_t gap, int64_t offset) {
  int64_t shape[] = {rows, heads, dim}, stride[] = {heads * (dim + gap) + gap, dim + gap, 1};
  return operand_make(dtype, 3, shape, stride, offset);
}

static void rope_matches_double(void **state) {
  for (int n = 0; n < 60; n++) {
    struct sizes s = pick_sizes(n % 20);
    rdna_dtype dtype = n < 30 ? RDNA_F32 : RDNA_F16;
    bool in_place = n % 4 == 1;
    int64_t gap = n % 5 == 4 ? 3 : n % 5 == 3 ? 8 : 0;
    operand x = make_heads(dtype, s.tokens, s.heads, s.dim, gap, n % 7 == 6);
    operand out = make_heads(dtype, s.tokens, s.heads, s.dim, 2 * gap, n % 7 == 6);
    operand positions = operand_make(RDNA_I32, 1, &s.tokens, NULL, 0);
    operand inv_freq = operand_make(RDNA_F32, 1, &s.pairs, NULL, 0);
    operand_fill(&x, 1);
    operand_upload(&out);
    fill_angles(&positions, &inv_freq, n % 3 ? 5000 : 3000000);
    double *before = values_of(&x);
    rdna_rope rope = {RDNA_ROPE_INIT, n % 2 ? RDNA_ROPE_LAYOUT_HALVES : RDNA_ROPE_LAYOUT_INTERLEAVED, &positions.tensor,
                      &inv_freq.tensor, n % 6 == 5 ? 1.3f : 1.0f};
    operand *to = in_place ? &x : &out;
    assert_ok(rdna_op_rope(stream, &rope, &x.tensor, &to->tensor));
    operand_download(to);
    for (int64_t t = 0; t < s.tokens; t++) {
      for (int64_t h = 0; h < s.heads; h++) check_head(&x, before, t, h, to, t, &rope, &positions, &inv_freq);
    }
    for (int64_t g = 0; !in_place && g < 2 * gap && s.heads > 1; g++) {
      assert_true(operand_is_poison(&out, at(&out.tensor, 0, 0, s.dim) + g));
    }
    free(before);
    operand_free(&x);
    operand_free(&out);
    operand_free(&positions);
    operand_free(&inv_freq);
  }
}

/* Rotation by the identity: at position 0 nothing turns, whatever the layout. */
static void position_zero_copies(void **state) {
  const int64_t tokens = 3, pairs = 16;
  operand x = make_heads(RDNA_F16, tokens, 2, 32, 0, 0), out = make_heads(RDNA_F16, tokens, 2, 32, 0, 0);
  operand positions = operand_make(RDNA_I32, 1, &tokens, NULL, 0),
          inv_freq = operand_make(RDNA_F32, 1, &pairs, NULL, 0);
  operand_fill(&x, 1);
  operand_upload(&out);
  fill_angles(&positions, &inv_freq, 0);
  rdna_rope rope = {RDNA_ROPE_INIT, RDNA_ROPE_LAYOUT_INTERLEAVED, &positions.tensor, &inv_freq.tensor, 1};
  assert_ok(rdna_op_rope(stream, &rope, &x.tensor, &out.tensor));
  operand_download(&out);
  assert_memory_equal(x.host, out.host, x.bytes);
  operand_free(&x);
  operand_free(&out);
  operand_free(&positions);
  operand_free(&inv_freq);
}

static void check_cache(const operand *in, const double *before, const operand *cache, const operand *rows,
                        const rdna_rope *rope, const operand *positions, const operand *inv_freq) {
  int64_t slots = cache->tensor.shape[0], heads = in->tensor.shape[1], dim = in->tensor.shape[2];
  bool *written = calloc((size_t)slots + 1, sizeof *written);
  for (int64_t t = 0; t < in->tensor.shape[0]; t++) {
    int64_t row = (int64_t)operand_get(rows, t);
    if (row < 0 || row >= slots) continue;
    written[row] = true;
    for (int64_t h = 0; h < heads; h++) check_head(in, before, t, h, cache, row, rope, positions, inv_freq);
  }
  for (int64_t row = 0; row < slots; row++) {
    for (int64_t h = 0; h < heads; h++) {
      for (int64_t i = 0; i < dim; i++) {
        if (!written[row]) assert_true(operand_is_poison(cache, at(&cache->tensor, row, h, i)));
      }
    }
  }
  free(written);
}

/* What the heads of |x| are before they are rotated. */
static void norm_values(const operand *x, double *values, const operand *weight, double epsilon) {
  const rdna_tensor *t = &x->tensor;
  for (int64_t token = 0; token < t->shape[0]; token++) {
    for (int64_t h = 0; h < t->shape[1]; h++) {
      double *head = values + at(t, token, h, 0), squares = 0;
      for (int64_t i = 0; i < t->shape[2]; i++) squares += head[i] * head[i];
      double root = sqrt(squares / (double)t->shape[2] + (double)(float)epsilon);
      for (int64_t i = 0; i < t->shape[2]; i++) head[i] *= operand_get(weight, i) / root;
    }
  }
}

/* Half of the calls have q too, with up to 9 times as many heads as k; half of these write it elsewhere. */
static void kv_write_matches_double(void **state) {
  for (int n = 0; n < 60; n++) {
    struct sizes s = pick_sizes(n % 20);
    if (s.tokens > 100) s.tokens = 70;
    rdna_dtype dtype = n < 25 ? RDNA_F32 : n < 45 ? RDNA_F16 : RDNA_BF16;
    int64_t v_dim = n % 3 == 2 ? s.dim + 5 : s.dim, slots = s.tokens + n % 4, none = 0;
    int64_t gap = n % 5 == 4 ? 3 : n % 5 == 3 ? 8 : 0;
    operand k = make_heads(RDNA_F32, s.tokens, s.heads, s.dim, gap, n % 7 == 6);
    operand v = make_heads(RDNA_F32, s.tokens, s.heads, v_dim, gap, n % 7 == 6);
    operand k_cache = make_heads(dtype, slots, s.heads, s.dim, gap, n % 7 == 5);
    operand v_cache = make_heads(dtype, slots, s.heads, v_dim, gap, n % 7 == 5);
    operand positions = operand_make(RDNA_I32, 1, &s.tokens, NULL, 0),
            rows = operand_make(RDNA_I32, 1, &s.tokens, NULL, 0);
    operand inv_freq = operand_make(RDNA_F32, 1, &s.pairs, NULL, 0),
            no_freq = operand_make(RDNA_F32, 1, &none, NULL, 0);
    int64_t q_heads = s.heads * (n % 9 + 1);
    operand q = make_heads(RDNA_F32, s.tokens, q_heads, s.dim, gap, n % 7 == 4);
    operand q_out = make_heads(dtype, s.tokens, q_heads, s.dim, 2 * gap, n % 7 == 3),
            *turned = n % 4 == 1 ? &q : &q_out;
    bool normed = n % 5 > 2 && s.dim <= 1024;
    operand norm[3];
    for (int i = 0; i < 3; i++) {
      norm[i] = operand_make(RDNA_F32, 1, i == 2 ? &v_dim : &s.dim, NULL, 0);
      operand_fill(&norm[i], 1);
    }
    operand_fill(&q, 1);
    operand_fill(&k, 1);
    operand_fill(&v, 1);
    operand_upload(&q_out);
    operand_upload(&k_cache);
    operand_upload(&v_cache);
    fill_angles(&positions, &inv_freq, n % 3 ? 5000 : 3000000);
    for (int64_t t = 0; t < s.tokens; t++) { /* backwards; some tokens before and behind the cache */
      operand_set(&rows, t, t % 5 == 3 ? -1 : t % 5 == 4 ? (double)slots : (double)(slots - 1 - t));
    }
    operand_upload(&rows);
    double *k_before = values_of(&k), *v_before = values_of(&v), *q_before = values_of(&q);
    rdna_rope rope = {RDNA_ROPE_INIT, n % 2 ? RDNA_ROPE_LAYOUT_HALVES : RDNA_ROPE_LAYOUT_INTERLEAVED, &positions.tensor,
                      &inv_freq.tensor, n % 6 == 5 ? 1.3f : 1.0f};
    if (normed) {
      rope.q_norm = n % 2 ? &norm[0].tensor : NULL, rope.k_norm = &norm[1].tensor;
      rope.v_norm = n % 10 > 5 ? &norm[2].tensor : NULL, rope.epsilon = 1e-3;
      norm_values(&q, q_before, &norm[0], rope.epsilon);
      norm_values(&k, k_before, &norm[1], rope.epsilon);
      if (rope.v_norm) norm_values(&v, v_before, &norm[2], rope.epsilon);
    }
    rdna_rope plain = {RDNA_ROPE_INIT,  rope.layout, &positions.tensor,
                       &no_freq.tensor, 1,           .epsilon = rope.v_norm ? 1e-3 : 0};
    const rdna_tensor *K = &k.tensor, *V = &v.tensor, *KC = &k_cache.tensor, *VC = &v_cache.tensor, *R = &rows.tensor;
    if (n % 2 == 0) assert_ok(rdna_op_rope_kv_write(stream, &rope, K, V, R, KC, VC));
    if (n % 4 == 1) assert_ok(rdna_op_rope_qkv_write(stream, &rope, &q.tensor, K, V, R, KC, VC));
    if (n % 4 == 3) assert_ok(rdna_op_rope_qkv_write_to(stream, &rope, &q.tensor, K, V, R, &q_out.tensor, KC, VC));
    operand_download(turned);
    for (int64_t t = 0; n % 2 && t < s.tokens; t++) {
      for (int64_t h = 0; h < q_heads; h++) check_head(&q, q_before, t, h, turned, t, &rope, &positions, &inv_freq);
    }
    operand_download(&k_cache);
    operand_download(&v_cache);
    check_cache(&k, k_before, &k_cache, &rows, &rope, &positions, &inv_freq);
    check_cache(&v, v_before, &v_cache, &rows, &plain, &positions, &no_freq);
    free(k_before);
    free(v_before);
    free(q_before);
    operand *all[] = {&q,    &q_out,    &k,       &v,       &k_cache, &v_cache, &positions,
                      &rows, &inv_freq, &no_freq, &norm[0], &norm[1], &norm[2]};
    for (int i = 0; i < 13; i++) operand_free(all[i]);
  }
}

static void empty_tensors_are_no_work(void **state) {
  const int64_t tokens = 0, pairs = 4;
  operand x = make_heads(RDNA_F32, 0, 2, 8, 0, 0), cache = make_heads(RDNA_F16, 3, 2, 8, 0, 0);
  operand v_cache = make_heads(RDNA_F16, 3, 2, 8, 0, 0);
  operand positions = operand_make(RDNA_I32, 1, &tokens, NULL, 0),
          inv_freq = operand_make(RDNA_F32, 1, &pairs, NULL, 0);
  fill_angles(&positions, &inv_freq, 0);
  operand_upload(&cache);
  rdna_rope rope = {RDNA_ROPE_INIT, RDNA_ROPE_LAYOUT_HALVES, &positions.tensor, &inv_freq.tensor, 1};
  assert_ok(rdna_op_rope(stream, &rope, &x.tensor, &x.tensor));
  assert_ok(
      rdna_op_rope_kv_write(stream, &rope, &x.tensor, &x.tensor, &positions.tensor, &cache.tensor, &v_cache.tensor));
  operand_download(&cache);
  for (int64_t i = 0; i < operand_span(&cache); i++) assert_true(operand_is_poison(&cache, i));
  operand_free(&x);
  operand_free(&cache);
  operand_free(&v_cache);
  operand_free(&positions);
  operand_free(&inv_freq);
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const int64_t tokens = 2, three = 3, pairs = 4, five = 5;
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  operand x = make_heads(RDNA_F32, 2, 3, 8, 0, 0), out = make_heads(RDNA_F32, 2, 3, 8, 0, 0);
  operand h = make_heads(RDNA_F16, 2, 3, 8, 0, 0), b = make_heads(RDNA_BF16, 2, 3, 8, 0, 0);
  operand cache = make_heads(RDNA_F16, 6, 3, 8, 0, 0), v_cache = make_heads(RDNA_F16, 6, 3, 8, 0, 0),
          narrow = make_heads(RDNA_F16, 6, 2, 8, 0, 0);
  operand p = operand_make(RDNA_I32, 1, &tokens, NULL, 0), p3 = operand_make(RDNA_I32, 1, &three, NULL, 0);
  operand f = operand_make(RDNA_F32, 1, &pairs, NULL, 0), f5 = operand_make(RDNA_F32, 1, &five, NULL, 0);
  operand_fill(&x, 1);
  operand_upload(&out);
  operand_upload(&cache);
  rdna_rope rope = {RDNA_ROPE_INIT, RDNA_ROPE_LAYOUT_HALVES, &p.tensor, &f.tensor, 1}, wrong = rope;
  const rdna_tensor *X = &x.tensor, *O = &out.tensor, *C = &cache.tensor, *D = &v_cache.tensor, *R = &p.tensor;
  wrong.inv_freq = &f5.tensor;
  assert_refused(rdna_op_rope(stream, &wrong, X, O), bad, "rope: inv_freq has 5", "head of 8");
  wrong = rope, wrong.positions = &p3.tensor;
  assert_refused(rdna_op_rope(stream, &wrong, X, O), bad, "rope: positions is i32 (3)", "must be 2");
  wrong.positions = &f.tensor;
  assert_refused(rdna_op_rope(stream, &wrong, X, O), bad, "positions is f32", "i32");
  wrong = rope, wrong.inv_freq = NULL;
  assert_refused(rdna_op_rope(stream, &wrong, X, O), bad, "rope: inv_freq", "NULL");
  wrong = rope, wrong.layout = (rdna_rope_layout)7;
  assert_refused(rdna_op_rope(stream, &wrong, X, O), bad, "layout", "7");
  assert_refused(rdna_op_rope(stream, NULL, X, O), bad, "rope", "NULL");
  assert_refused(rdna_op_rope(NULL, &rope, X, O), bad, "stream", "NULL");
  assert_refused(rdna_op_rope(stream, &rope, X, &h.tensor), bad, "out is f16", "x is f32");
  assert_refused(rdna_op_rope(stream, &rope, &b.tensor, &b.tensor), RDNA_UNSUPPORTED, "x is bf16", "f16");
  assert_refused(rdna_op_rope(stream, &rope, &p.tensor, O), bad, "x is i32 (2)", "rank must be 3");
  rdna_tensor t = out.tensor;
  t.stride[1] = 7;
  assert_refused(rdna_op_rope(stream, &rope, X, &t), bad, "strides 24 and 7", "overlap");
  t = out.tensor, t.stride[0] = 16;
  assert_refused(rdna_op_rope(stream, &rope, X, &t), bad, "strides 16 and 8", "overlap");
  t = out.tensor, t.data = (uint8_t *)x.tensor.data + 4;
  assert_refused(rdna_op_rope(stream, &rope, X, &t), bad, "out", "overlap");
  assert_refused(rdna_op_rope_kv_write(stream, &rope, X, X, R, &narrow.tensor, C), bad, "k_cache is f16 (6, 2, 8)",
                 "be 3");
  assert_refused(rdna_op_rope_kv_write(stream, &rope, X, X, R, C, O), bad, "v_cache is f32 (2, 3, 8)", "be 6");
  assert_refused(rdna_op_rope_kv_write(stream, &rope, X, X, &p3.tensor, C, C), bad, "cache_row is i32 (3)", "be 2");
  assert_refused(rdna_op_rope_kv_write(stream, &rope, &h.tensor, X, R, C, C), bad, "k is f16", "f32");
  assert_refused(rdna_op_rope_kv_write(stream, &rope, X, X, R, &b.tensor, C), bad, "v_cache is f16 (6, 3, 8)", "be 2");
  assert_refused(rdna_op_rope_qkv_write(stream, &rope, X, X, X, R, C, D), bad, "q at", "overlap");
  int64_t eight = 8, long_head = 1028;
  operand norm = operand_make(RDNA_F32, 1, &eight, NULL, 0), long_norm = operand_make(RDNA_F32, 1, &long_head, NULL, 0);
  operand wide = make_heads(RDNA_F32, 2, 3, long_head, 0, 0), wide_cache = make_heads(RDNA_F32, 6, 3, long_head, 0, 0);
  operand of_v = make_heads(RDNA_F32, 6, 3, 8, 0, 0);
  wrong = rope, wrong.q_norm = &norm.tensor;
  assert_refused(rdna_op_rope_kv_write(stream, &wrong, X, X, R, C, D), bad, "q_norm is given", "");
  assert_refused(rdna_op_rope(stream, &wrong, X, O), bad, "rope: q_norm is given", "");
  wrong = rope, wrong.k_norm = &f5.tensor;
  assert_refused(rdna_op_rope_kv_write(stream, &wrong, X, X, R, C, D), bad, "k_norm is f32 (5)", "must be 8");
  wrong.k_norm = &long_norm.tensor;
  assert_refused(rdna_op_rope_kv_write(stream, &wrong, &wide.tensor, X, R, &wide_cache.tensor, &of_v.tensor),
                 RDNA_UNSUPPORTED, "k_norm is for 3 heads of 1028 values", "1024");
  assert_refused(rdna_op_rope_kv_write(stream, &rope, X, X, R, C, C), bad, "v_cache at", "overlap");
  assert_refused(rdna_op_rope_qkv_write(stream, &rope, &h.tensor, X, X, R, C, D), bad, "q is f16", "f32");
  assert_refused(rdna_op_rope_qkv_write(stream, &rope, O, X, X, R, &narrow.tensor, C), bad, "k_cache is f16 (6, 2, 8)",
                 "be 3");
  operand q_out = make_heads(RDNA_F16, 2, 3, 8, 0, 0);
  const rdna_tensor *Q = &q_out.tensor;
  assert_refused(rdna_op_rope_qkv_write_to(stream, &rope, O, X, X, R, NULL, C, D), bad, "q_out", "NULL");
  assert_refused(rdna_op_rope_qkv_write_to(stream, &rope, O, X, X, R, X, C, D), bad, "q_out is f32", "k_cache is f16");
  assert_refused(rdna_op_rope_qkv_write_to(stream, &rope, O, X, X, R, &narrow.tensor, C, D), bad, "q_out", "(2, 3, 8)");
  t = q_out.tensor, t.data = out.tensor.data;
  assert_refused(rdna_op_rope_qkv_write_to(stream, &rope, O, X, X, R, &t, C, D), bad, "q_out at", "overlap");
  t = cache.tensor, t.data = out.tensor.data;
  assert_refused(rdna_op_rope_qkv_write_to(stream, &rope, O, X, X, R, Q, &t, D), bad, "k_cache at", "overlap");
  operand_free(&q_out);
  t = out.tensor, t.stride[1] = 7;
  assert_refused(rdna_op_rope_qkv_write(stream, &rope, &t, X, X, R, C, D), bad, "strides 24 and 7", "overlap");
  operand_download(&out);
  operand_download(&cache);
  for (int64_t i = 0; i < operand_span(&out); i++) assert_true(operand_is_poison(&out, i));
  for (int64_t i = 0; i < operand_span(&cache); i++) assert_true(operand_is_poison(&cache, i));
  operand *all[] = {&x,  &out, &h,  &b,    &cache,     &v_cache, &narrow,     &p,
                    &p3, &f,   &f5, &norm, &long_norm, &wide,    &wide_cache, &of_v};
  for (int i = 0; i < 16; i++) operand_free(all[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rope_matches_double),
      cmocka_unit_test(position_zero_copies),
      cmocka_unit_test(kv_write_matches_double),
      cmocka_unit_test(empty_tensors_are_no_work),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
