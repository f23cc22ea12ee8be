#include "math/common/test/operand.h"
#include "math/moe/moe_gated.h"
#include "math/quant/quant_case.h"
#include "math/quant/testing_blocks.h"
#include "rdna/op/moe.h"

typedef struct layer {
  rdna_dtype type; /* of the weights */
  int64_t tokens, top, experts, n, k;
  bool with_bias, with_shares, add, x_of_slots;
  int64_t gap;    /* values between rows of x, and of out */
  int64_t chosen; /* slots choose among the first so many experts; 0: among all */
  rdna_dtype x;
  bool may_round;
} layer;

static bool is_quantized(rdna_dtype dtype) { return rdna_dtype_block_values(dtype) > 1; }

/* A layer's tensors. */
typedef struct operands {
  operand x, weights, bias, shares, indices, out, before;
} operands;

/* Whether few rows meet weights whose scales and minimums, and then they themselves, were rounded to f16. */
static bool is_by_units(const layer *l) {
  bool on_host = strcmp(rdna_device_get_info(rdna_stream_device(stream))->driver, "host") == 0;
  return !on_host && is_quantized(l->type) && l->x == RDNA_F16 && (l->k + l->gap) % 8 == 0 &&
         l->tokens * l->top <= 12 * l->experts;
}

/* Blocks that meet many rows of f16 on matrix units are rounded to it; in f32 their values are exact, or rounded once.
 */
static bool is_rounded(const layer *l) {
  return !is_by_units(l) && is_quantized(l->type) && l->x == RDNA_F16 && l->tokens * l->top > l->experts;
}

/* Whether x became whole numbers, which are off by up to 2^-15 of the largest of 32 neighbours. */
static bool has_units(const layer *l) {
  bool on_host = strcmp(rdna_device_get_info(rdna_stream_device(stream))->driver, "host") == 0;
  return l->may_round && on_host && is_quantized(l->type) && l->x == RDNA_F32;
}

static double weight_at(const layer *l, const operands *o, int64_t i) {
  double v = is_quantized(l->type) ? test_quant_value(l->type, o->weights.host, i, NULL) : operand_get(&o->weights, i);
  float rounded = 0; /* or a value of 16 bits */
  if (!is_rounded(l)) return v;
  case_set(RDNA_F16, &rounded, 0, (float)v);
  return (double)case_get(RDNA_F16, &rounded, 0);
}

/* Value |j| of the product of slot |slot|, 0 without an expert, in |magnitude| the sum of its terms', and in |squares|
 * that of x's squares. */
static double slot_value(const layer *l, const operands *o, int64_t slot, int64_t j, double *magnitude,
                         double *squares) {
  int64_t expert = (int64_t)operand_get(&o->indices, slot), row = l->x_of_slots ? slot : slot / l->top;
  *magnitude = *squares = 0;
  if (expert < 0 || expert >= l->experts) return 0;
  double sum = l->with_bias ? operand_get(&o->bias, expert * l->n + j) : 0;
  *magnitude = fabs(sum);
  for (int64_t p = 0; p < l->k; p++) {
    double x = operand_get(&o->x, row * (l->k + l->gap) + p);
    double v = x * weight_at(l, o, (expert * l->n + j) * l->k + p);
    *squares += x * x;
    sum += v;
    *magnitude += fabs(v);
  }
  return sum;
}

/* k roundings of the sum, and as many of a weight that is a difference, as linear_test.c has it; then a few of bias,
 * share and sum for each slot. */
static void compare(const layer *l, const operands *o) {
  int64_t rows = l->with_shares ? l->tokens : l->tokens * l->top, each = l->with_shares ? l->top : 1;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < l->n; j++) {
      int64_t at = r * (l->n + l->gap) + j;
      double want = l->add ? operand_get(&o->before, at) : 0, error = 0, so_far = fabs(want);
      for (int64_t i = 0; i < each; i++) {
        double magnitude, squares, v = slot_value(l, o, r * each + i, j, &magnitude, &squares);
        double share = l->with_shares ? operand_get(&o->shares, r * each + i) : 1;
        want += share * v;
        so_far += fabs(share) * magnitude;
        error += 0x1p-24 * ((double)(l->k + 6) * fabs(share) * magnitude + 2 * so_far);
        /* scale, minimum and difference, as linear_test.c has it */
        if (is_by_units(l)) error += 6 * 3 * 0x1p-11 * 4 * sqrt(squares) * fabs(share);
        if (has_units(l)) error += 6 * 0x1p-15 * 4 * 5 * sqrt((double)l->k) * fabs(share); /* and x is up to about 5 */
        if (is_quantized(l->type) && !is_rounded(l)) error += 0x1p-24 * 16 * (double)l->k * fabs(share);
      }
      assert_close(RDNA_F32, operand_get(&o->out, at), want, error, rdna_dtype_name(l->type), at);
    }
    for (int64_t g = 0; g < l->gap && r + 1 < rows && !l->add; g++)
      assert_true(operand_is_poison(&o->out, r * (l->n + l->gap) + l->n + g));
  }
}

static operand make_rows(const layer *l, rdna_dtype type, bool of_slots, int64_t size) {
  int64_t row = size + l->gap, slots[] = {l->tokens, l->top, size}, tokens[] = {l->tokens, size};
  return of_slots ? operand_make(type, 3, slots, (int64_t[]){l->top * row, row, 1}, 0)
                  : operand_make(type, 2, tokens, (int64_t[]){row, 1}, 0);
}

static void make(const layer *l, operands *o) {
  int64_t count = l->experts * l->n * l->k, bytes = (int64_t)rdna_dtype_bytes(l->type, count);
  o->x = make_rows(l, l->x, l->x_of_slots, l->k);
  o->out = make_rows(l, RDNA_F32, !l->with_shares, l->n);
  o->before = make_rows(l, RDNA_F32, !l->with_shares, l->n);
  o->bias = operand_make(RDNA_F32, 2, (int64_t[]){l->experts, l->n}, NULL, 0);
  o->shares = operand_make(RDNA_F32, 2, (int64_t[]){l->tokens, l->top}, NULL, 0);
  o->indices = operand_make(RDNA_I32, 2, (int64_t[]){l->tokens, l->top}, NULL, 0);
  o->weights =
      is_quantized(l->type) ? operand_make(RDNA_U8, 1, &bytes, NULL, 0) : operand_make(l->type, 1, &count, NULL, 0);
  operand_fill(&o->x, 1);
  operand_fill(&o->bias, 1);
  operand_fill(&o->shares, 1);
  if (is_quantized(l->type)) {
    rdna__fill_blocks(&random_state, l->type, o->weights.host, count);
    operand_upload(&o->weights);
  } else {
    operand_fill(&o->weights, 1);
  }
  for (int64_t i = 0; i < l->tokens * l->top; i++) { /* some of no expert, at both ends */
    bool none = rdna__random_below(&random_state, 12) == 0;
    int64_t other = i % 2 ? -1 : l->experts + 3;
    int64_t last = (l->chosen ? l->chosen : l->experts) - 1;
    operand_set(&o->indices, i, (double)(none ? other : rdna__random_range(&random_state, 0, last)));
  }
  operand_upload(&o->indices);
  if (l->add)
    operand_fill(&o->out, 1);
  else
    operand_upload(&o->out);
  if (o->out.bytes > 0) memcpy(o->before.host, o->out.host, o->out.bytes);
}

static void check(layer l) {
  operands o;
  make(&l, &o);
  rdna_tensor weights = rdna_tensor_contiguous(o.weights.tensor.data, l.type, 3, (int64_t[]){l.experts, l.n, l.k});
  rdna_moe_product options = {RDNA_MOE_PRODUCT_INIT, .add = l.add, .bias = l.with_bias ? &o.bias.tensor : NULL,
                              .shares = l.with_shares ? &o.shares.tensor : NULL, .may_round = l.may_round};
  assert_ok(rdna_op_moe_linear(stream, &options, &o.x.tensor, &weights, &o.indices.tensor, &o.out.tensor));
  operand_download(&o.out);
  compare(&l, &o);
  operand *all[] = {&o.x, &o.weights, &o.bias, &o.shares, &o.indices, &o.out, &o.before};
  for (int i = 0; i < 7; i++) operand_free(all[i]);
}

/* What a product that norms x itself multiplies, in place of the row of x at |first|. */
static void norm_row(operand *x, int64_t first, const operand *weight, int64_t k) {
  double squares = 0;
  for (int64_t p = 0; p < k; p++) squares += operand_get(x, first + p) * operand_get(x, first + p);
  for (int64_t p = 0; p < k; p++)
    operand_set(x, first + p, operand_get(x, first + p) * operand_get(weight, p) / sqrt(squares / (double)k + 1e-3));
}

/* The gates' product and the other in one launch, of matrices apart or, |joined|, of one: of each expert n rows of the
 * gate's, then n of the other's. Of matrices apart with biases where the layer has some. */
static void check_gated(layer l, bool joined, float limit, bool normed) {
  int64_t n = l.n, slots = l.tokens * l.top, wide = joined ? 2 * n : n, shape[] = {l.experts, n, l.k};
  operands of_gate, of_up;
  layer both = l;
  both.n = wide;
  make(&both, &of_gate);
  make(&both, &of_up);
  operand out = operand_make(RDNA_F32, 3, (int64_t[]){l.tokens, l.top, n}, NULL, 0);
  operand_upload(&out);
  operand norm = operand_make(RDNA_F32, 1, &l.k, NULL, 0);
  operand_fill(&norm, 1);
  rdna_tensor gate = rdna_tensor_contiguous(of_gate.weights.tensor.data, l.type, 3, shape), up = gate;
  gate.stride[0] = up.stride[0] = wide * l.k;
  up.data = joined ? (char *)gate.data + rdna_dtype_bytes(l.type, n * l.k) : of_up.weights.tensor.data;
  assert_true(rdna__moe_is_gated(&of_gate.x.tensor, &gate, &up, &of_gate.indices.tensor));
  const rdna__moe_gate options = {RDNA_ACTIVATION_SILU,
                                  limit,
                                  limit > 0 ? 1.5f : 0,
                                  l.with_bias ? &of_gate.bias.tensor : NULL,
                                  l.with_bias ? &of_up.bias.tensor : NULL,
                                  l.may_round,
                                  normed ? &norm.tensor : NULL,
                                  1e-3};
  assert_ok(rdna__moe_gated(stream, &options, &of_gate.x.tensor, &gate, &up, &of_gate.indices.tensor, &out.tensor));
  operand_download(&out);
  for (int64_t r = 0; normed && r < l.tokens; r++) norm_row(&of_gate.x, r * l.k, &norm, l.k);
  if (!joined) memcpy(of_up.x.host, of_gate.x.host, of_gate.x.bytes); /* for slot_value */
  if (!joined) memcpy(of_up.indices.host, of_gate.indices.host, of_gate.indices.bytes);
  for (int64_t slot = 0; slot < slots; slot++) {
    for (int64_t j = 0; j < n; j++) {
      double magnitude[2], error[2], squares;
      double g = slot_value(&both, &of_gate, slot, j, &magnitude[0], &squares);
      double u = slot_value(&both, joined ? &of_gate : &of_up, slot, joined ? n + j : j, &magnitude[1], &squares);
      for (int i = 0; i < 2; i++) error[i] = 0x1p-24 * ((double)(l.k + 6) * magnitude[i] + 16 * (double)l.k);
      for (int i = 0; i < 2 && has_units(&both); i++) error[i] += 6 * 0x1p-15 * 4 * 5 * sqrt((double)l.k);
      if (limit > 0) g = fmin(g, limit), u = fmax(fmin(u, limit), -limit) + 1; /* whose slope is at most 1 */
      double f = g / (1 + exp(-g * (limit > 0 ? 1.5 : 1)));
      double most = 1.2 * error[0] * (fabs(u) + error[1]) + error[1] * fabs(f);
      assert_close(RDNA_F32, operand_get(&out, slot * n + j), f * u, most + 0x1p-21 * fabs(f * u) + 0x1p-100,
                   rdna_dtype_name(l.type), slot * n + j);
    }
  }
  operand_free(&out);
  operand_free(&norm);
  operands *each[] = {&of_gate, &of_up};
  for (int i = 0; i < 2; i++) {
    operands *o = each[i];
    operand *all[] = {&o->x, &o->weights, &o->bias, &o->shares, &o->indices, &o->out, &o->before};
    for (int k = 0; k < 7; k++) operand_free(all[k]);
  }
}

#define FORMAT(X, name, NAME, ...) RDNA_##NAME,
static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_BLOCK_FORMATS(FORMAT, )};
enum { TYPES = sizeof types / sizeof types[0] };

/* Slot by slot, and in tiles, of every type: the up and the down product of a layer. */
static void of_every_type(void **state) {
  for (int t = 0; t < TYPES; t++) {
    check((layer){types[t], 2, 3, 5, 21, 512, .with_bias = t % 2});
    check(
        (layer){types[t], 3, 2, 4, 21, 256, .with_shares = true, .x_of_slots = true, .add = t % 2, .with_bias = true});
    check((layer){types[t], 30, 2, 3, 70, 256, .with_bias = t % 2, .gap = t % 3});
    check((layer){types[t], 17, 3, 2, 9, 256, .with_shares = true, .x_of_slots = true, .add = !(t % 2), .gap = t % 3});
    check((layer){types[t], 30, 2, 3, 40, 256, .with_shares = t % 2, .with_bias = t % 3, .may_round = true});
    check((layer){types[t], 2, 3, 5, 21, 512, .with_shares = t % 2, .with_bias = t % 3, .may_round = true});
  }
}

/* A gate and what it multiplies, of each type of blocks; of others there is no one launch. */
static void gates(void **state) {
  for (int t = 0; t < TYPES; t++) {
    layer l = {types[t], 1 + t % 2, 3, 5, 21, 256 * (1 + t % 3), .x = RDNA_F32, .with_bias = t % 4 == 2};
    if (is_quantized(l.type)) check_gated(l, t % 2, t % 3 ? 0 : 2, t % 5 > 2);
    l.may_round = true, l.with_bias = t % 4 == 0;
    if (is_quantized(l.type)) check_gated(l, t % 2, t % 3 ? 2 : 0, t % 5 < 2);
  }
  check_gated((layer){RDNA_Q4_K, 1, 2, 4, 2100, 256, .x = RDNA_F32}, true, 0, true);
  check_gated((layer){RDNA_MXFP4, 1, 2, 4, 2100, 256, .x = RDNA_F32, .with_bias = true}, false, 1, false);
  check_gated((layer){RDNA_Q6_K, 1, 4, 6, 9, 256 * 17, .x = RDNA_F32}, false, 0, true);
  layer dense = {RDNA_F16, 1, 2, 3, 5, 64, .x = RDNA_F32};
  operands o;
  make(&dense, &o);
  rdna_tensor w = rdna_tensor_contiguous(o.weights.tensor.data, RDNA_F16, 3, (int64_t[]){3, 5, 64});
  assert_false(rdna__moe_is_gated(&o.x.tensor, &w, &w, &o.indices.tensor));
  assert_int_equal(rdna__moe_gated(stream, &(rdna__moe_gate){0}, &o.x.tensor, &w, &w, &o.indices.tensor, &o.out.tensor),
                   RDNA_UNSUPPORTED);
  operand *all[] = {&o.x, &o.weights, &o.bias, &o.shares, &o.indices, &o.out, &o.before};
  for (int i = 0; i < 7; i++) operand_free(all[i]);
}

/* x of 16 bits: on matrix units with weights of its type and f16 with blocks, else as f32. */
static void of_halves(void **state) {
  for (int t = 0; t < TYPES; t++) {
    rdna_dtype x = t % 3 == 2 ? RDNA_BF16 : RDNA_F16;
    check((layer){types[t], 2, 2, 5, 21, 256, .with_bias = t % 2, .x = x});
    check((layer){types[t], 30, 2, 3, 70, 256, .with_bias = t % 2, .gap = t % 3, .x = RDNA_F16});
    check((layer){types[t], 17, 3, 2, 9, 256, .with_shares = true, .x_of_slots = true, .add = t % 2, .x = x});
  }
  check((layer){RDNA_BF16, 150, 2, 1, 130, 33, .with_bias = true, .x = RDNA_BF16});
  check((layer){RDNA_F16, 90, 4, 3, 40, 24, .with_shares = true, .gap = 8, .x = RDNA_F16});
  check((layer){RDNA_F16, 40, 2, 3, 3, 0, .with_bias = true, .x = RDNA_F16});
  check((layer){RDNA_Q4_K, 0, 2, 3, 3, 256, .x = RDNA_F16});
  /* tiles of 16 rows: two of an expert, all columns of two, k that waves share out unevenly, rows beyond a tile's */
  check((layer){RDNA_Q4_K, 16, 8, 128, 33, 768, .with_shares = true, .x_of_slots = true, .x = RDNA_F16});
  check((layer){RDNA_MXFP4, 33, 1, 3, 64, 96 * 3, .with_bias = true, .gap = 8, .x = RDNA_F16});
  check((layer){RDNA_Q6_K, 1, 2, 4, 17, 2048, .x = RDNA_F16});
  /* and tiles that are full to their last row, with biases */
  check((layer){RDNA_Q4_0, 46, 1, 4, 33, 256, .with_bias = true, .x = RDNA_F16, .chosen = 1});
  check((layer){RDNA_Q8_0, 3, 2, 4, 17, 0, .with_bias = true, .x = RDNA_F16});
}

/* More rows than a tile, more work-groups than run at once, long rows, rows at odd places. */
static void of_every_size(void **state) {
  check((layer){RDNA_Q8_0, 150, 2, 1, 130, 32, .with_bias = true});
  check((layer){RDNA_F16, 90, 4, 3, 40, 24, .with_shares = true, .gap = 4});
  check((layer){RDNA_F32, 3, 2, 9, 5, 7, .with_shares = true}); /* not aligned: tiles */
  check((layer){RDNA_BF16, 2, 2, 9, 6, 20, .x_of_slots = true});
  check((layer){RDNA_Q4_K, 1, 4, 6, 50, 256 * 17, .with_shares = true, .x_of_slots = true});
  /* rows of which some lanes of a wave have one chunk more than others */
  check((layer){RDNA_Q8_0, 1, 6, 8, 40, 1408, .with_shares = true, .x_of_slots = true});
  check((layer){RDNA_Q4_K, 1, 4, 8, 40, 1536, .with_shares = true, .x_of_slots = true});
  check((layer){RDNA_Q6_K, 1, 4, 8, 40, 2816, .with_shares = true, .x_of_slots = true});
  check((layer){RDNA_MXFP4, 1, 4, 32, 300, 96, .with_bias = true});
  check((layer){RDNA_Q6_K, 1, 2, 4, 4000, 256, .with_shares = true});
  check((layer){RDNA_Q8_0, 1, 300, 100, 3, 32, .with_shares = true}); /* many slots of one token */
  check((layer){RDNA_F32, 4, 1, 1, 3, 0, .with_bias = true});
  check((layer){RDNA_F16, 40, 2, 3, 3, 0, .with_bias = true, .with_shares = true});
  check((layer){RDNA_F32, 0, 2, 3, 3, 8, .add = false});
  check((layer){RDNA_Q8_0, 2, 2, 3, 0, 32, .add = false});
}

/* The same call gives the same bits, and a sum of slots is what their rows and shares make in order. */
static void sums_are_in_order(void **state) {
  enum { TOKENS = 3, TOP = 4, EXPERTS = 6, N = 33, K = 64 };
  layer l = {RDNA_Q8_0, TOKENS, TOP, EXPERTS, N, K, .with_bias = true};
  operands o;
  make(&l, &o);
  rdna_tensor weights = rdna_tensor_contiguous(o.weights.tensor.data, l.type, 3, (int64_t[]){EXPERTS, N, K});
  operand sum = operand_make(RDNA_F32, 2, (int64_t[]){TOKENS, N}, NULL, 0);
  operand_upload(&sum);
  rdna_moe_product options = {RDNA_MOE_PRODUCT_INIT, .bias = &o.bias.tensor};
  assert_ok(rdna_op_moe_linear(stream, &options, &o.x.tensor, &weights, &o.indices.tensor, &o.out.tensor));
  options.shares = &o.shares.tensor;
  assert_ok(rdna_op_moe_linear(stream, &options, &o.x.tensor, &weights, &o.indices.tensor, &sum.tensor));
  operand_download(&o.out);
  operand_download(&sum);
  operand again = operand_make(RDNA_F32, 2, (int64_t[]){TOKENS, N}, NULL, 0);
  operand_upload(&again);
  assert_ok(rdna_op_moe_linear(stream, &options, &o.x.tensor, &weights, &o.indices.tensor, &again.tensor));
  operand_download(&again);
  assert_memory_equal(again.host, sum.host, TOKENS * N * sizeof(float));
  operand_free(&again);
  for (int t = 0; t < TOKENS; t++) {
    for (int j = 0; j < N; j++) {
      double want = 0, error = 0;
      for (int i = 0; i < TOP; i++) {
        int64_t slot = t * TOP + i;
        double term = operand_get(&o.shares, slot) * operand_get(&o.out, slot * N + j);
        want += term, error += 8 * 0x1p-24 * (fabs(term) + fabs(want));
      }
      assert_close(RDNA_F32, operand_get(&sum, t * N + j), want, error, "sum", j);
    }
  }
  operand *all[] = {&o.x, &o.weights, &o.bias, &o.shares, &o.indices, &o.out, &o.before, &sum};
  for (int i = 0; i < 8; i++) operand_free(all[i]);
}

/* A token's rows have the same bits whatever the other tokens of a call are and choose. */
static void rows_are_alone(void **state) {
  enum { TOKENS = 9, TOP = 2, EXPERTS = 3, N = 40, K = 512 };
  layer l = {RDNA_Q4_K, TOKENS, TOP, EXPERTS, N, K, .with_bias = true, .x = RDNA_F16};
  operands o;
  make(&l, &o);
  rdna_tensor weights = rdna_tensor_contiguous(o.weights.tensor.data, l.type, 3, (int64_t[]){EXPERTS, N, K});
  rdna_moe_product options = {RDNA_MOE_PRODUCT_INIT, .bias = &o.bias.tensor};
  float first[TOP * N];
  for (int time = 0; time < 3; time++) {
    for (int64_t i = TOP; time > 0 && i < (int64_t)TOKENS * TOP; i++)
      operand_set(&o.indices, i, time == 1 ? operand_get(&o.indices, i % TOP) : (double)(i % EXPERTS));
    for (int64_t i = K; time > 0 && i < (int64_t)TOKENS * K; i++) operand_set(&o.x, i, (double)time);
    operand_upload(&o.indices);
    operand_upload(&o.x);
    assert_ok(rdna_op_moe_linear(stream, &options, &o.x.tensor, &weights, &o.indices.tensor, &o.out.tensor));
    operand_download(&o.out);
    if (time == 0) memcpy(first, o.out.host, sizeof first);
    assert_memory_equal(o.out.host, first, sizeof first);
  }
  operand *all[] = {&o.x, &o.weights, &o.bias, &o.shares, &o.indices, &o.out, &o.before};
  for (int i = 0; i < 7; i++) operand_free(all[i]);
}

static void refused(void **state) {
  operand x = operand_make(RDNA_F32, 2, (int64_t[]){2, 8}, NULL, 0),
          w = operand_make(RDNA_F32, 3, (int64_t[]){1025, 4, 8}, NULL, 0);
  operand ids = operand_make(RDNA_I32, 2, (int64_t[]){2, 2}, NULL, 0),
          out = operand_make(RDNA_F32, 3, (int64_t[]){2, 2, 4}, NULL, 0);
  rdna_moe_product options = {RDNA_MOE_PRODUCT_INIT, .add = true};
  rdna_tensor X = x.tensor, W = w.tensor, I = ids.tensor, O = out.tensor;
#define TRY rdna_op_moe_linear(stream, &options, &X, &W, &I, &O)
  assert_refused(TRY, RDNA_INVALID_ARGUMENT, "add is set without shares");
  options.add = false;
  X.shape[1] = 7;
  assert_refused(TRY, RDNA_INVALID_ARGUMENT, "x is f32 (2, 7)", "must be 8");
  X = x.tensor;
  assert_refused(TRY, RDNA_UNSUPPORTED, "up to 1024 experts");
  W.shape[0] = 0;
  assert_refused(TRY, RDNA_INVALID_ARGUMENT, "weights 0 experts");
  W = w.tensor, O.rank = 2;
  assert_refused(TRY, RDNA_INVALID_ARGUMENT, "with shares its rank must be 2");
  operand *all[] = {&x, &w, &ids, &out};
  for (int i = 0; i < 4; i++) operand_free(all[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_every_type),
                                     cmocka_unit_test(gates),
                                     cmocka_unit_test(of_halves),
                                     cmocka_unit_test(of_every_size),
                                     cmocka_unit_test(sums_are_in_order),
                                     cmocka_unit_test(rows_are_alone),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
