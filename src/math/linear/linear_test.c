#include "rdna/op/linear.h"

#include "math/common/test/operand.h"
#include "math/linear/linear.h"
#include "math/linear/linear_steps.h"
#include "math/quant/quant_case.h"
#include "math/quant/testing_blocks.h"

typedef struct layer {
  rdna_dtype x, weight, out;
  int64_t m, n, k;
  int64_t x_gap, out_gap; /* values between rows */
  bool with_bias, add;
  bool may_round;  /* by rdna__linear_rounded */
  int64_t sampled; /* 0, or how many columns in a row are compared: the first, the middle and the last ones */
} layer;

static bool is_quantized(rdna_dtype dtype) { return rdna_dtype_block_values(dtype) > 1; }

/* Whether rows meet weights whose scales and minimums, and then they themselves, were rounded to f16. */
static bool is_by_units(const layer *l) {
  bool on_host = strcmp(rdna_device_get_info(rdna_stream_device(stream))->driver, "host") == 0;
  return !on_host && is_quantized(l->weight) && l->x == RDNA_F16 && (l->k + l->x_gap) % 8 == 0 && l->m <= 64;
}
/* Whether many rows of 16 bits meet weights that were rounded to their type; in f32 these are exact, or rounded once.
 */
static bool is_rounded(const layer *l) {
  return is_quantized(l->weight) && l->x != RDNA_F32 && !is_by_units(l) && l->m > 8;
}

/* Whether x became whole numbers. */
static bool has_units(const layer *l) {
  bool on_host = strcmp(rdna_device_get_info(rdna_stream_device(stream))->driver, "host") == 0;
  return l->may_round && on_host && is_quantized(l->weight);
}

static double weight_value(const layer *l, const operand *weight, int64_t i) {
  double value = is_quantized(l->weight) ? test_quant_value(l->weight, weight->host, i, NULL) : operand_get(weight, i);
  float rounded = 0; /* or a value of 16 bits */
  if (!is_rounded(l)) return value;
  case_set(l->x, &rounded, 0, (float)value);
  return (double)case_get(l->x, &rounded, 0);
}

static void compare(const layer *l, const operand *x, const operand *weight, const operand *bias, const operand *before,
                    const operand *out) {
  double *w = malloc((size_t)l->k * sizeof *w + 1), wrong = 0, all = 0;
  assert_non_null(w);
  for (int64_t j = 0; j < l->n; j++) {
    int64_t far = llabs(2 * j - l->n), edge = l->n - 2 * l->sampled;
    if (l->sampled > 0 && far > l->sampled && far < edge) continue;
    for (int64_t p = 0; p < l->k; p++) w[p] = weight_value(l, weight, j * l->k + p);
    for (int64_t i = 0; i < l->m; i++) {
      double sum = 0, magnitude = 0, squares = 0, largest = 0;
      for (int64_t p = 0; p < l->k; p++) {
        double row = operand_get(x, i * (l->k + l->x_gap) + p), v = row * w[p];
        sum += v;
        largest = fmax(largest, fabs(row));
        magnitude += fabs(v);
        squares += row * row;
      }
      int64_t at = i * (l->n + l->out_gap) + j;
      double from_bias = bias ? operand_get(bias, j) : 0, from_out = l->add ? operand_get(before, at) : 0;
      double added = from_bias + from_out;
      /* k roundings of the sum in f32, and as many again of at most 2^-23 of quants of one sign: a weight of q4_K is
       * a difference, rounded at the size of its product, which is up to about 4 here */
      double error = 0x1p-24 * ((double)(l->k + 4) * magnitude + 4 * (fabs(from_bias) + fabs(from_out) + fabs(sum)));
      /* scale, minimum and difference are up to about 4 and up or down by half of 2^-10 each: 6 deviations of the sum
       */
      if (is_by_units(l)) error += 6 * 3 * 0x1p-11 * 4 * sqrt(squares);
      if (is_quantized(l->weight) && !is_rounded(l)) error += 0x1p-24 * 4 * (double)l->k * 4;
      /* x is off by up to 2^-15 of the largest, up or down: 6 deviations of the sum */
      if (has_units(l)) error += 6 * 0x1p-15 * 4 * largest * sqrt((double)l->k);
      assert_close(l->out, operand_get(out, at), sum + added, error, rdna_dtype_name(l->weight), at);
      wrong += pow(operand_get(out, at) - (sum + added), 2), all += sum * sum;
    }
  }
  if (has_units(l) && l->m * l->n >= 100) assert_true(wrong <= 1e-8 * all);
  free(w);
}

static void check(layer l) {
  int64_t weight_shape[] = {l.n, l.k}, weight_bytes = (int64_t)rdna_dtype_bytes(l.weight, l.n * l.k);
  int64_t x_stride[] = {l.k + l.x_gap, 1}, out_stride[] = {l.n + l.out_gap, 1};
  operand x = operand_make(l.x, 2, (int64_t[]){l.m, l.k}, x_stride, 0);
  operand out = operand_make(l.out, 2, (int64_t[]){l.m, l.n}, out_stride, 0);
  operand before = operand_make(l.out, 2, (int64_t[]){l.m, l.n}, out_stride, 0);
  operand bias = operand_make(l.out, 1, &l.n, NULL, 0);
  operand weight = is_quantized(l.weight) ? operand_make(RDNA_U8, 1, &weight_bytes, NULL, 0)
                                          : operand_make(l.weight, 2, weight_shape, NULL, 0);
  rdna_tensor weight_tensor = rdna_tensor_contiguous(weight.tensor.data, l.weight, 2, weight_shape);
  operand_fill(&x, 1);
  operand_fill(&bias, 1);
  if (is_quantized(l.weight)) {
    rdna__fill_blocks(&random_state, l.weight, weight.host, l.n * l.k);
    operand_upload(&weight);
  } else {
    operand_fill(&weight, 1);
  }
  if (l.add)
    operand_fill(&out, 1);
  else
    operand_upload(&out);
  if (out.bytes > 0) memcpy(before.host, out.host, out.bytes);
  const rdna_tensor *bias_tensor = l.with_bias ? &bias.tensor : NULL;
  assert_ok(l.may_round ? rdna__linear_rounded(stream, &x.tensor, &weight_tensor, bias_tensor, &out.tensor, l.add)
            : l.add     ? rdna_op_linear_add(stream, &x.tensor, &weight_tensor, bias_tensor, &out.tensor)
                        : rdna_op_linear(stream, &x.tensor, &weight_tensor, bias_tensor, &out.tensor));
  operand_download(&out);
  compare(&l, &x, &weight, l.with_bias ? &bias : NULL, &before, &out);
  operand_free(&x);
  operand_free(&out);
  operand_free(&before);
  operand_free(&bias);
  operand_free(&weight);
}

#define FORMAT(X, name, NAME, ...) RDNA_##NAME,
static const rdna_dtype weights[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_BLOCK_FORMATS(FORMAT, )};

/* Up to 8 rows take the gemv kernels, which read the weights once; more rows, and rows of x that are not at multiples
 * of 16 bytes, take the gemm kernels with tiles. */
static void any_weight_and_row_count(void **state) {
  static const int64_t rows[] = {1, 2, 4, 5, 8, 9, 70, 150};
  for (size_t w = 0; w < sizeof weights / sizeof weights[0]; w++) {
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
      layer l = {.weight = weights[w], .m = rows[r], .n = rows[r] > 8 ? 131 : 37, .k = 512};
      l.with_bias = r % 2;
      l.add = r % 3 == 1;
      l.x_gap = r % 4 == 2 ? 1 : r % 4 == 3 ? 4 : 0;
      l.out_gap = r % 3;
      check(l);
    }
  }
}

/* Where values may be rounded, of every shape of tiles' edges. */
static void may_be_rounded(void **state) {
  for (size_t w = 0; w < sizeof weights / sizeof weights[0]; w++) {
    int64_t block = rdna_dtype_block_values(weights[w]);
    check((layer){.weight = weights[w], .m = 150, .n = 131, .k = 512, .may_round = true});
    check((layer){.weight = weights[w], .m = 9, .n = 7, .k = 7 * block, .may_round = true, .with_bias = true});
    check((layer){.weight = weights[w], .m = 31, .n = 40, .k = 768, .may_round = true, .x_gap = 3, .out_gap = 2});
    for (int64_t m = 1; m <= 8; m++)
      check((layer){.weight = weights[w], .m = m, .n = 40, .k = 512, .may_round = true, .add = m % 2, .x_gap = m % 3});
    check((layer){.weight = weights[w], .m = 1, .n = 9, .k = 40 * 256, .may_round = true});
    check((layer){.weight = weights[w], .m = 20, .n = 3, .k = 0, .may_round = true, .with_bias = true});
    check((layer){.weight = weights[w], .m = 20, .n = 0, .k = block, .may_round = true});
  }
}

/* Values of every size in one row, and rows with an infinity or a NaN, which spoil no other. */
static void check_extremes(int64_t m) {
  const int64_t n = 5, k = 96;
  static const float sizes[] = {1e-42f, 1e-20f, 1, 1e15f};
  operand x = operand_make(RDNA_F32, 2, (int64_t[]){m, k}, NULL, 0);
  operand out = operand_make(RDNA_F32, 2, (int64_t[]){m, n}, NULL, 0);
  operand weight = operand_make(RDNA_U8, 1, (int64_t[]){(int64_t)rdna_dtype_bytes(RDNA_Q8_0, n * k)}, NULL, 0);
  rdna_tensor w = rdna_tensor_contiguous(weight.tensor.data, RDNA_Q8_0, 2, (int64_t[]){n, k});
  float *values = (float *)(void *)x.host;
  operand_fill(&x, 1);
  for (int64_t i = 0; i < m * k; i++) values[i] *= sizes[i / k % 4];
  values[3 * k + 40] = NAN, values[6 * k] = INFINITY;
  operand_upload(&x);
  rdna__fill_blocks(&random_state, RDNA_Q8_0, weight.host, n * k);
  operand_upload(&weight);
  operand_upload(&out);
  assert_ok(rdna__linear_rounded(stream, &x.tensor, &w, NULL, &out.tensor, false));
  operand_download(&out);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double sum = 0, got = operand_get(&out, i * n + j);
      for (int64_t p = 0; p < k; p++)
        sum += (double)values[i * k + p] * test_quant_value(RDNA_Q8_0, weight.host, j * k + p, NULL);
      if (i == 3 || i == 6)
        assert_false(isfinite(got));
      else
        assert_close(RDNA_F32, got, sum, (double)sizes[i % 4] * 6 * 0x1p-15 * 16 * sqrt((double)k) + 1e-32, "row", i);
    }
  }
  operand *all[] = {&x, &out, &weight};
  for (int i = 0; i < 3; i++) operand_free(all[i]);
}
static void rounded_extremes(void **state) {
  check_extremes(20);
  check_extremes(7);
}

static void long_and_short_rows(void **state) {
  for (size_t w = 0; w < sizeof weights / sizeof weights[0]; w++) {
    int64_t block = rdna_dtype_block_values(weights[w]);
    check((layer){.weight = weights[w], .m = 1, .n = 5, .k = 256 * 19});
    check((layer){.weight = weights[w], .m = 1, .n = 3, .k = 256 * 41, .add = true});
    check((layer){.weight = weights[w], .m = 3, .n = 6, .k = block});
    check((layer){.weight = weights[w], .m = 20, .n = 3, .k = block, .x_gap = 3});
    check((layer){.weight = weights[w], .m = 2, .n = 3, .k = 0, .with_bias = true});
    check((layer){.weight = weights[w], .m = 0, .n = 3, .k = block});
    check((layer){.weight = weights[w], .m = 2, .n = 0, .k = block});
  }
}

/* ---- one row with steps around it ---- */

static float *random_values(rdna_dtype dtype, operand *o, int64_t count) {
  *o = operand_make(dtype, 1, &count, NULL, 0);
  operand_fill(o, 1);
  return (float *)(void *)o->host;
}

static double activated(rdna_activation activation, double v) {
  return activation == RDNA_ACTIVATION_SILU ? v / (1 + exp(-v)) : v * erfc(-v / sqrt(2)) / 2;
}

static void check_steps(rdna_dtype dtype, int64_t n, int64_t k, rdna__linear_steps steps, bool with_bias) {
  int64_t rows = steps.gated ? 2 * n : n, bytes = (int64_t)rdna_dtype_bytes(dtype, rows * k), shape[] = {rows, k};
  layer l = {.weight = dtype, .m = 1, .n = n, .k = k};
  operand x, norm, bias, out,
      weight = is_quantized(dtype) ? operand_make(RDNA_U8, 1, &bytes, NULL, 0) : operand_make(dtype, 2, shape, NULL, 0);
  const float *x_values = random_values(RDNA_F32, &x, k), *factors = random_values(RDNA_F32, &norm, k);
  const float *b = random_values(RDNA_F32, &bias, n), *result = random_values(RDNA_F32, &out, n);
  float *before = malloc((size_t)n * sizeof *before + 1);
  assert_non_null(before);
  memcpy(before, result, (size_t)n * sizeof *before);
  if (is_quantized(dtype)) {
    rdna__fill_blocks(&random_state, dtype, weight.host, rows * k);
    operand_upload(&weight);
  } else {
    operand_fill(&weight, 1);
  }
  rdna_tensor w = rdna_tensor_contiguous(weight.tensor.data, dtype, 2, shape);
  rdna_tensor row = rdna_tensor_contiguous(x.tensor.data, RDNA_F32, 2, (int64_t[]){1, k});
  rdna_tensor to = rdna_tensor_contiguous(out.tensor.data, RDNA_F32, 2, (int64_t[]){1, n});
  if (steps.norm) steps.norm = &norm.tensor;
  const rdna_tensor *bias_tensor = with_bias ? &bias.tensor : NULL;
  assert_true(rdna__linear_is_stepped(stream, &steps, &row, &w, bias_tensor, &to));
  assert_ok(rdna__linear_stepped(stream, &steps, &row, &w, bias_tensor, &to));
  operand_download(&out);
  double squares = 0;
  for (int64_t p = 0; p < k; p++) squares += (double)x_values[p] * (double)x_values[p];
  double scale = steps.norm ? 1 / sqrt(squares / (double)k + steps.epsilon) : 1;
  for (int64_t j = 0; j < n; j++) {
    double sum[2] = {0}, magnitude[2] = {0}, error[2];
    for (int side = 0; side < 1 + steps.gated; side++) {
      for (int64_t p = 0; p < k; p++) {
        double v = weight_value(&l, &weight, (j + side * n) * k + p) * (double)x_values[p] * scale;
        if (steps.norm) v *= (double)factors[p];
        sum[side] += v, magnitude[side] += fabs(v);
      }
      error[side] = 0x1p-24 * (double)(k + 8) * magnitude[side];
      if (steps.may_round) error[side] += 6 * 0x1p-15 * 16 * 4 * scale * sqrt((double)k);
      if (is_quantized(dtype)) error[side] += 0x1p-24 * 16 * (double)k * scale * (steps.norm ? 4 : 1);
    }
    double want = sum[0] + (steps.add ? (double)before[j] : 0) + (with_bias ? (double)b[j] : 0), most = error[0];
    if (steps.gated) {
      double gate = activated(steps.activation, sum[0]);
      want = gate * sum[1];
      most = 1.2 * error[0] * (fabs(sum[1]) + error[1]) + error[1] * fabs(gate) + 0x1p-21 * fabs(want);
    }
    assert_close(RDNA_F32, (double)result[j], want, most + 0x1p-22 * (fabs(want) + 4), rdna_dtype_name(dtype), j);
  }
  free(before);
  operand *all[] = {&x, &norm, &bias, &out, &weight};
  for (int i = 0; i < 5; i++) operand_free(all[i]);
}

/* Norms, gates and additions around a product of one row, each alone and together, of rows that one tile holds and of
 * longer ones, in more turns than there are work-groups. */
static void steps_around_one_row(void **state) {
  const rdna_tensor there = {0};
  for (size_t w = 0; w < sizeof weights / sizeof weights[0]; w++) {
    rdna_dtype dtype = weights[w];
    int64_t block = rdna_dtype_block_values(dtype), some = 256 * (1 + (int64_t)w % 3), other = block == 1 ? 56 : block;
    rdna__linear_steps norm = {.norm = &there, .epsilon = 0.01}, gate = {.gated = true};
    gate.activation = w % 2 ? RDNA_ACTIVATION_SILU : RDNA_ACTIVATION_GELU_ERF;
    rdna__linear_steps both = gate, with_add = norm;
    both.norm = &there, both.epsilon = 1e-6, with_add.add = true;
    check_steps(dtype, 37, some, norm, w % 2);
    check_steps(dtype, 19, some, gate, false);
    check_steps(dtype, 21, other, both, false);
    check_steps(dtype, 9, other, with_add, w % 2);
    check_steps(dtype, 5, 256 * 18, w % 2 ? both : norm, false);
    check_steps(dtype, 3, 256 * 25, w % 2 ? norm : both, false);
    norm.may_round = both.may_round = with_add.may_round = true;
    check_steps(dtype, 21, other, both, false);
    check_steps(dtype, 9, other, with_add, w % 2);
    check_steps(dtype, 5, some, norm, w % 2);
  }
  check_steps(RDNA_Q4_K, 700, 256, (rdna__linear_steps){.gated = true, .activation = RDNA_ACTIVATION_SILU}, false);
}

/* What no one launch does, and says so. */
static void steps_of_other_products(void **state) {
  int64_t k = 512, n = 64;
  operand x = operand_make(RDNA_F32, 2, (int64_t[]){2, k}, NULL, 0), bias = operand_make(RDNA_F32, 1, &n, NULL, 0);
  operand weight = operand_make(RDNA_F32, 2, (int64_t[]){n, k}, NULL, 0);
  operand out = operand_make(RDNA_F32, 2, (int64_t[]){2, n}, NULL, 0);
  rdna_tensor row = x.tensor, to = out.tensor, off = x.tensor, other = weight.tensor;
  row.shape[0] = to.shape[0] = off.shape[0] = 1;
  const rdna__linear_steps none = {0}, gate = {.gated = true};
  assert_true(rdna__linear_is_stepped(stream, &none, &row, &weight.tensor, &bias.tensor, &to));
  assert_false(rdna__linear_is_stepped(stream, &none, &x.tensor, &weight.tensor, NULL, &out.tensor));
  assert_false(rdna__linear_is_stepped(stream, &gate, &row, &weight.tensor, NULL, &to)); /* of n rows */
  to.shape[1] = n / 2;
  assert_true(rdna__linear_is_stepped(stream, &gate, &row, &weight.tensor, NULL, &to));
  assert_false(rdna__linear_is_stepped(stream, &gate, &row, &weight.tensor, &bias.tensor, &to));
  to.shape[1] = n;
  off.data = (float *)off.data + 1;
  assert_false(rdna__linear_is_stepped(stream, &none, &off, &weight.tensor, NULL, &to));
  other.dtype = RDNA_F64;
  assert_false(rdna__linear_is_stepped(stream, &none, &row, &other, NULL, &to));
  assert_int_equal(rdna__linear_stepped(stream, &none, &row, &other, NULL, &to), RDNA_UNSUPPORTED);
  operand *all[] = {&x, &bias, &weight, &out};
  for (int i = 0; i < 4; i++) operand_free(all[i]);
}

/* |l| with rows of x that are 2^|exponent| times normal numbers, and |odd| at a random place of the first row if it is
 * not 0. The mean square of the errors is within that of f32, which a bound for the worst order of a sum says little
 * of: digits of x that were dropped or mixed up would show. */
static void check_precision(layer l, int exponent, double odd) {
  int64_t weight_shape[] = {l.n, l.k}, weight_bytes = (int64_t)rdna_dtype_bytes(l.weight, l.n * l.k);
  operand x = operand_make(RDNA_F32, 2, (int64_t[]){l.m, l.k}, NULL, 0);
  operand out = operand_make(RDNA_F32, 2, (int64_t[]){l.m, l.n}, NULL, 0);
  operand weight = operand_make(RDNA_U8, 1, &weight_bytes, NULL, 0);
  rdna_tensor weight_tensor = rdna_tensor_contiguous(weight.tensor.data, l.weight, 2, weight_shape);
  rdna__fill_blocks(&random_state, l.weight, weight.host, l.n * l.k);
  operand_fill(&x, ldexp(1, exponent));
  if (odd != 0) operand_set(&x, (int64_t)rdna__random_below(&random_state, (uint64_t)l.k), odd);
  operand_upload(&weight);
  operand_upload(&x);
  operand_upload(&out);
  assert_ok(rdna_op_linear(stream, &x.tensor, &weight_tensor, NULL, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < l.m; i++) {
    double error = 0, square = 0;
    for (int64_t j = 0; j < l.n; j++) {
      double sum = 0, got = operand_get(&out, i * l.n + j);
      for (int64_t p = 0; p < l.k; p++) {
        double w = weight_value(&l, &weight, j * l.k + p), v = operand_get(&x, i * l.k + p);
        if (w != 0) sum += w * v;
      }
      if (odd != 0 && i == 0 && isfinite(sum)) continue; /* a weight of 0 */
      if (isfinite(sum) != isfinite(got)) fail_msg("%s: %g in place of %g", rdna_dtype_name(l.weight), got, sum);
      if (!isfinite(sum)) continue;
      error += ldexp(got - sum, -exponent) * ldexp(got - sum, -exponent);
      square += ldexp(sum, -exponent) * ldexp(sum, -exponent);
    }
    if (error > 1e-11 * square) fail_msg("%s: relative squared error %g", rdna_dtype_name(l.weight), error / square);
  }
  operand_free(&x);
  operand_free(&out);
  operand_free(&weight);
}

static void few_rows_are_as_precise_as_f32(void **state) {
  for (size_t w = 3; w < sizeof weights / sizeof weights[0]; w++) {
    int64_t block = rdna_dtype_block_values(weights[w]);
    for (int64_t m = 1; m <= 8; m += 1 + m / 3)
      check_precision((layer){.weight = weights[w], .m = m, .n = 40, .k = block * (block == 32 ? 9 : 3)}, 0, 0);
    check_precision((layer){.weight = weights[w], .m = 1, .n = 40, .k = 256}, 60, 0);
    check_precision((layer){.weight = weights[w], .m = 1, .n = 40, .k = 256}, -60, 0);
    check_precision((layer){.weight = weights[w], .m = 2, .n = 40, .k = 256}, 0, INFINITY);
    check_precision((layer){.weight = weights[w], .m = 3, .n = 40, .k = 256}, 0, NAN);
  }
}

/* Work-groups take several turns where the rows ask for more of them than the device runs at once. */
static void many_rows(void **state) {
  check((layer){.weight = RDNA_Q6_K, .m = 1, .n = 4300, .k = 256});
  check((layer){.weight = RDNA_Q8_0, .m = 1, .n = 4230, .k = 96});
  check((layer){.weight = RDNA_F16, .m = 1, .n = 4230, .k = 96});
}

static void activations_of_16_bits(void **state) {
  for (int64_t m = 1; m <= 16; m += 5) {
    check((layer){.x = RDNA_F16, .weight = RDNA_F16, .out = RDNA_F16, .m = m, .n = 20, .k = 104, .with_bias = true});
    check((layer){.x = RDNA_BF16, .weight = RDNA_BF16, .out = RDNA_BF16, .m = m, .n = 20, .k = 104, .add = true});
    check((layer){.x = RDNA_BF16, .weight = RDNA_BF16, .out = RDNA_F32, .m = m, .n = 20, .k = 33});
  }
}

/* On a GPU up to 64 rows meet weights that are unpacked in registers. Otherwise up to 8 are multiplied as f32, and more
 * by weights that were unpacked to memory. */
static void activations_of_16_bits_and_other_weights(void **state) {
  static const int64_t rows[] = {1, 3, 8, 9, 16, 17, 32, 40, 64, 67};
  for (size_t w = 0; w < sizeof weights / sizeof weights[0]; w++) {
    int64_t block = rdna_dtype_block_values(weights[w]);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
      layer l = {.x = (r + w) % 4 == 3 ? RDNA_BF16 : RDNA_F16, .weight = weights[w], .m = rows[r]};
      l.out = (r + w) % 3 ? l.x : RDNA_F32;
      l.n = 37;
      l.k = block * (r % 2 ? 1 : 512 / block);
      l.with_bias = r % 2;
      l.add = r % 3 == 1;
      l.x_gap = r % 4 == 2 ? 1 : r % 4 == 3 ? 8 : 0;
      l.out_gap = r % 3;
      check(l);
    }
    check((layer){.x = RDNA_F16, .weight = weights[w], .out = RDNA_F16, .m = 21, .n = 1, .k = block, .add = true});
    layer none = {.x = RDNA_F16, .weight = weights[w], .out = RDNA_F16, .m = 11, .n = 3, .with_bias = true};
    check(none);
    none.k = block, none.m = 0;
    check(none);
    none.m = 11, none.n = 0;
    check(none);
  }
}

/* More weights than any device unpacks at a time. The cutting is the host's, and the checker would take 20 seconds. */
static void slices_of_weights(void **state) {
  const char *checker = getenv("RDNA_EMULATE_CHECK");
  if (checker && strcmp(checker, "0") != 0)
    skip_because("with the emulator's checker it takes 20 s; without it, and on the host, it runs");
  check((layer){.x = RDNA_F16,
                .weight = RDNA_Q4_0,
                .out = RDNA_F16,
                .m = 9,
                .n = 4608,
                .k = 8192,
                .out_gap = 3,
                .with_bias = true,
                .sampled = 20});
  check((layer){.x = RDNA_BF16, .weight = RDNA_Q8_0, .out = RDNA_F32, .m = 10, .n = 300, .k = 32768, .sampled = 20});
}

/* Leading dimensions fold into rows, and a vector is one row. */
static void any_rank(void **state) {
  float x[2 * 3 * 32], weight[4 * 32], got[2 * 3 * 4];
  for (int i = 0; i < 2 * 3 * 32; i++) x[i] = (float)(i % 7);
  for (int i = 0; i < 4 * 32; i++) weight[i] = (float)(i % 5 - 2);
  for (int rank = 1; rank <= 3; rank += 2) {
    int64_t rows = rank == 3 ? 6 : 1, shape[] = {2, 3, 32}, out_shape[] = {2, 3, 4};
    operand ox = operand_make(RDNA_F32, rank, shape + 3 - rank, NULL, 0);
    operand ow = operand_make(RDNA_F32, 2, (int64_t[]){4, 32}, NULL, 0);
    operand oo = operand_make(RDNA_F32, rank, out_shape + 3 - rank, NULL, 0);
    memcpy(ox.host, x, ox.bytes);
    memcpy(ow.host, weight, ow.bytes);
    operand_upload(&ox);
    operand_upload(&ow);
    operand_upload(&oo);
    assert_ok(rdna_op_linear(stream, &ox.tensor, &ow.tensor, NULL, &oo.tensor));
    operand_download(&oo);
    memcpy(got, oo.host, oo.bytes);
    for (int64_t i = 0; i < rows * 4; i++) {
      float want = 0; /* small integers: exact */
      for (int64_t p = 0; p < 32; p++) want += x[i / 4 * 32 + p] * weight[i % 4 * 32 + p];
      assert_true(got[i] == want);
    }
    operand_free(&ox);
    operand_free(&ow);
    operand_free(&oo);
  }
}

static void refuses(void **state) {
  _Alignas(64) uint8_t memory[8192];
  int64_t x_shape[] = {2, 64}, weight_shape[] = {3, 64}, out_shape[] = {2, 3}, three = 3;
  rdna_tensor x = rdna_tensor_contiguous(memory, RDNA_F32, 2, x_shape);
  rdna_tensor weight = rdna_tensor_contiguous(memory + 1024, RDNA_Q8_0, 2, weight_shape);
  rdna_tensor out = rdna_tensor_contiguous(memory + 4096, RDNA_F32, 2, out_shape);
  rdna_tensor tx, tw, to;
#define REFUSED(change, ...) \
  tx = x, tw = weight, to = out, change, assert_refused(rdna_op_linear(stream, &tx, &tw, NULL, &to), __VA_ARGS__)
  REFUSED(tw.dtype = RDNA_Q4_K, RDNA_INVALID_ARGUMENT, "weight is q4_K (3, 64)", "256");
  REFUSED(tx.shape[1] = 32, RDNA_INVALID_ARGUMENT, "x is f32 (2, 32)", "weight is q8_0 (3, 64)");
  REFUSED(to.shape[1] = 4, RDNA_INVALID_ARGUMENT, "weight is q8_0 (3, 64)", "out is f32 (2, 4)");
  REFUSED(to.shape[0] = 1, RDNA_INVALID_ARGUMENT, "x is f32 (2, 64)", "out is f32 (1, 3)");
  REFUSED(tw.data = NULL, RDNA_INVALID_ARGUMENT, "linear: weight", "NULL");
  REFUSED(tw.data = memory + 1025, RDNA_UNSUPPORTED, "linear: weight", "multiple of 2");
  REFUSED(tw.stride[0] = 96, RDNA_UNSUPPORTED, "linear: weight", "contiguous");
  REFUSED(to.data = memory + 1024 + 64, RDNA_INVALID_ARGUMENT, "out at", "overlap");
  REFUSED(to.data = memory + 256, RDNA_INVALID_ARGUMENT, "out at", "overlap");
  REFUSED((tx.dtype = RDNA_F16, to.dtype = RDNA_BF16), RDNA_UNSUPPORTED, "f16 times q8_0", "into bf16");
  REFUSED(to.dtype = RDNA_F16, RDNA_UNSUPPORTED, "f32 times q8_0", "into f16");
  REFUSED(tw.dtype = RDNA_I8, RDNA_UNSUPPORTED, "weight is i8", "f16");
  REFUSED(tw.rank = 1, RDNA_INVALID_ARGUMENT, "weight is q8_0 (3)", "2");
  rdna_tensor bias = rdna_tensor_contiguous(memory + 8000, RDNA_F16, 1, &three);
  assert_refused(rdna_op_linear(stream, &x, &weight, &bias, &out), RDNA_INVALID_ARGUMENT, "bias is f16", "f32");
  assert_refused(rdna_op_linear_add(stream, &x, &weight, NULL, NULL), RDNA_INVALID_ARGUMENT, "linear_add",
                 "out is NULL");
#undef REFUSED
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_weight_and_row_count),
      cmocka_unit_test(may_be_rounded),
      cmocka_unit_test(rounded_extremes),
      cmocka_unit_test(long_and_short_rows),
      cmocka_unit_test(steps_around_one_row),
      cmocka_unit_test(steps_of_other_products),
      cmocka_unit_test(few_rows_are_as_precise_as_f32),
      cmocka_unit_test(many_rows),
      cmocka_unit_test(activations_of_16_bits),
      cmocka_unit_test(activations_of_16_bits_and_other_weights),
      cmocka_unit_test(slices_of_weights),
      cmocka_unit_test(any_rank),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
