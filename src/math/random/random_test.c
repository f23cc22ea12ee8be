#include "rdna/op/random.h"
#include "math/common/test/operand.h"
#include "math/random/random_math.h"

static const rdna_dtype float_types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};

/* Known answers that the authors of Random123 publish for philox4x32 with 10 rounds: counter, key, result. */
static void philox_gives_the_published_words(void **state) {
  static const struct {
    uint32_t counter[4], key[2], want[4];
  } known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (int n = 0; n < 3; n++) {
    const uint32_t *c = known[n].counter;
    uint64_t key = (uint64_t)known[n].key[1] << 32 | known[n].key[0];
    struct random_words w = random_philox(c[0], c[1], c[2], c[3], key);
    for (int k = 0; k < 4; k++) assert_int_equal(w.word[k], known[n].want[k]);
  }
}

static void uniform_is_the_top_of_the_known_words(void **state) {
  static const uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const int64_t count = 4;
  operand out = operand_make(RDNA_F32, 1, &count, NULL, 0);
  operand_upload(&out);
  assert_ok(rdna_op_random_uniform(stream, 0, 0, 0, 1, &out.tensor));
  operand_download(&out);
  for (int i = 0; i < 4; i++) assert_true(operand_get(&out, i) == (words[i] >> 8) * 0x1p-24);
  operand_free(&out);
}

/* A call for a part of the values gives what one call for all gives there, at any alignment. */
static void values_depend_on_their_place_alone(void **state) {
  const int64_t count = 40003, rest = count - 12340;
  operand all = operand_make(RDNA_F32, 1, &count, NULL, 0), part = operand_make(RDNA_F32, 1, &rest, NULL, 3);
  const uint64_t offset = 0xfffffff0u; /* the counter carries into its second word */
  operand_upload(&all), operand_upload(&part);
  assert_ok(rdna_op_random_normal(stream, 77, offset, 0, 1, &all.tensor));
  assert_ok(rdna_op_random_normal(stream, 77, offset + 12340 / 4, 0, 1, &part.tensor));
  operand_download(&all), operand_download(&part);
  assert_memory_equal(all.host + 12340 * 4, part.host, part.bytes);
  operand_free(&all), operand_free(&part);
}

/* Checks the first four moments of a million values: each is within six standard deviations of its expectation. */
static void check_moments(const operand *o, double mean, double variance, double third, double fourth) {
  int64_t n = operand_span(o);
  double sums[4] = {0};
  for (int64_t i = 0; i < n; i++) {
    double v = (operand_get(o, i) - mean) / sqrt(variance), power = 1;
    for (int k = 0; k < 4; k++) sums[k] += (power *= v) / (double)n;
  }
  double limit = 6 / sqrt((double)n);
  assert_true(fabs(sums[0]) < limit);
  assert_true(fabs(sums[1] - 1) < limit * sqrt(fourth));
  assert_true(fabs(sums[2] - third) < limit * 20);
  assert_true(fabs(sums[3] - fourth) < limit * 210);
}

static void distributions_have_their_moments(void **state) {
  const int64_t count = 1000000;
  operand o = operand_make(RDNA_F32, 1, &count, NULL, 0);
  operand_upload(&o);
  assert_ok(rdna_op_random_uniform(stream, 1, 5, -1, 3, &o.tensor));
  operand_download(&o);
  check_moments(&o, 1, 16.0 / 12, 0, 1.8);
  for (int64_t i = 0; i < count; i++) assert_true(operand_get(&o, i) >= -1 && operand_get(&o, i) < 3);
  assert_ok(rdna_op_random_normal(stream, 2, 5, 4, 0.5f, &o.tensor));
  operand_download(&o);
  check_moments(&o, 4, 0.25, 0, 3);
  assert_ok(rdna_op_random_exponential(stream, 3, 5, 2, &o.tensor));
  operand_download(&o);
  check_moments(&o, 0.5, 0.25, 2, 9);
  assert_ok(rdna_op_random_bernoulli(stream, 4, 5, 0.3f, &o.tensor));
  operand_download(&o);
  check_moments(&o, 0.3, 0.21, 0.4 / sqrt(0.21), (1 - 3 * 0.21) / 0.21);
  for (int64_t i = 0; i < count; i++) assert_true(operand_get(&o, i) == 0 || operand_get(&o, i) == 1);
  operand_free(&o);
}

/* The first word of this seed and counter has 24 ones at the top: the largest of 2^24 uniform numbers. */
enum { SEED_OF_ONES = 1, COUNTER_OF_ONES = 8418514 };

static void uniform_is_below_its_end(void **state) {
  static const float ranges[][2] = {{0, 1}, {-1, 3}, {1, 2}, {-1, 0}, {0.3f, 0.7f}, {-0.7f, -0.3f}, {0, 1e-6f}, {5, 5}};
  const int64_t count = 20000;
  assert_int_equal(random_block(SEED_OF_ONES, COUNTER_OF_ONES, 0).word[0] >> 8, 0xffffff);
  for (int t = 0; t < 3; t++) {
    operand o = operand_make(float_types[t], 1, &count, NULL, 1),
            ends = operand_make(float_types[t], 1, &count, NULL, 0);
    operand_upload(&o);
    for (size_t n = 0; n < sizeof ranges / sizeof *ranges; n++) {
      assert_ok(rdna_op_random_uniform(stream, SEED_OF_ONES, COUNTER_OF_ONES, ranges[n][0], ranges[n][1], &o.tensor));
      operand_download(&o);
      operand_set(&ends, 0, (double)ranges[n][0]), operand_set(&ends, 1, (double)ranges[n][1]);
      const double low = operand_get(&ends, 0), high = operand_get(&ends, 1);
      double most = low;
      for (int64_t i = 0; i < count; i++) {
        struct random_words w = random_block(SEED_OF_ONES, COUNTER_OF_ONES, (uint64_t)i / 4);
        const double v = operand_get(&o, i), exact = low + (high - low) * (w.word[i % 4] >> 8) * 0x1p-24;
        assert_true(v >= low && (v < high || low == high));
        /* rounded to f32 and then to its type, or the last value before |high| */
        const double step = fmax(fabs(low), fabs(high)) * (t == 0 ? 0x1p-22 : t == 1 ? 0x1p-10 : 0x1p-7);
        assert_true(fabs(v - exact) <= fmax(step, t == 1 ? 0x1p-24 : 0));
        most = fmax(most, v);
      }
      assert_true(most == operand_get(&o, 0)); /* value 0, made from the 24 ones, is the largest */
    }
    operand_free(&o), operand_free(&ends);
  }
}

static void exponential_is_above_zero(void **state) {
  static const float rates[] = {1, 1000, 0.5f, 1e30f};
  const int64_t count = 20000;
  for (int t = 0; t < 3; t++) {
    operand o = operand_make(float_types[t], 1, &count, NULL, 1);
    operand_upload(&o);
    for (int n = 0; n < 4; n++) {
      assert_ok(rdna_op_random_exponential(stream, SEED_OF_ONES, COUNTER_OF_ONES, rates[n], &o.tensor));
      operand_download(&o);
      for (int64_t i = 0; i < count; i++) assert_true(operand_get(&o, i) > 0 && isfinite(operand_get(&o, i)));
    }
    operand_free(&o);
  }
}

static void integers_fill_their_range_evenly(void **state) {
  enum { KINDS = 7 };
  const int64_t count = 70001;
  operand o = operand_make(RDNA_I64, 1, &count, NULL, 0), p = operand_make(RDNA_I32, 1, &count, NULL, 0);
  operand_upload(&o), operand_upload(&p);
  assert_ok(rdna_op_random_integers(stream, 9, 1, -3, -3 + KINDS, &o.tensor));
  assert_ok(rdna_op_random_integers(stream, 9, 1, -3, -3 + KINDS, &p.tensor));
  operand_download(&o), operand_download(&p);
  double seen[KINDS] = {0}, chi = 0;
  const int64_t *wide = (const int64_t *)(const void *)o.host;
  const int32_t *narrow = (const int32_t *)(const void *)p.host;
  for (int64_t i = 0; i < count; i++) {
    assert_true(wide[i] >= -3 && wide[i] < -3 + KINDS && wide[i] == narrow[i]);
    seen[wide[i] + 3]++;
  }
  for (int k = 0; k < KINDS; k++) chi += pow(seen[k] - (double)count / KINDS, 2) / ((double)count / KINDS);
  assert_true(chi < 35); /* six degrees of freedom: one in 200,000 */
  /* all 64 bits: the words themselves */
  assert_ok(rdna_op_random_integers(stream, 0, 0, INT64_MIN, INT64_MAX, &o.tensor));
  operand_download(&o);
  double mean = 0;
  for (int64_t i = 0; i < count; i++) mean += (double)wide[i] / (double)count;
  assert_true(fabs(mean) < 6 * 0x1p63 / sqrt(3.0 * (double)count));
  operand_free(&o), operand_free(&p);
}

static void dropout_keeps_and_scales(void **state) {
  for (int t = 0; t < 3; t++) {
    for (int n = 0; n < 4; n++) {
      static const float probabilities[] = {0.25f, 0, 1, 0.9f};
      const int64_t count = 30001;
      const float p = probabilities[n];
      operand x = operand_make(float_types[t], 1, &count, NULL, n == 3),
              mask = operand_make(RDNA_U8, 1, &count, NULL, 0);
      operand out = operand_make(float_types[t], 1, &count, NULL, n == 3),
              dx = operand_make(float_types[t], 1, &count, NULL, 0);
      operand_fill(&x, 1);
      operand_upload(&mask), operand_upload(&out), operand_upload(&dx);
      assert_ok(rdna_op_dropout(stream, 3, 8, p, &x.tensor, &out.tensor, &mask.tensor));
      assert_ok(rdna_op_dropout_backward(stream, p, &x.tensor, &mask.tensor, &dx.tensor));
      operand_download(&mask), operand_download(&out), operand_download(&dx);
      double kept = 0, scale = p < 1 ? 1 / (1 - (double)p) : 0;
      for (int64_t i = 0; i < count; i++) {
        assert_true(mask.host[i] <= 1);
        kept += mask.host[i];
        double want = mask.host[i] ? operand_get(&x, i) * scale : 0;
        assert_close(float_types[t], operand_get(&out, i), want, fabs(want) * 0x1p-22, "dropout", i);
        assert_close(float_types[t], operand_get(&dx, i), want, fabs(want) * 0x1p-22, "dropout backward", i);
      }
      double expected = (1 - (double)p) * (double)count;
      assert_true(fabs(kept - expected) <= 6 * sqrt(expected * (double)p));
      operand_free(&x), operand_free(&mask), operand_free(&out), operand_free(&dx);
    }
  }
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const int64_t count = 6, other = 5;
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  operand x = operand_make(RDNA_F32, 1, &count, NULL, 0), m = operand_make(RDNA_U8, 1, &count, NULL, 0);
  operand m5 = operand_make(RDNA_U8, 1, &other, NULL, 0), i = operand_make(RDNA_I32, 1, &count, NULL, 0);
  operand_upload(&x), operand_upload(&i);
  const rdna_tensor *X = &x.tensor, *I = &i.tensor;
  rdna_tensor empty = rdna_tensor_contiguous(NULL, RDNA_F32, 1, (int64_t[]){0});
  assert_ok(rdna_op_random_uniform(stream, 0, 0, 0, 1, &empty));
  assert_refused(rdna_op_random_uniform(stream, 0, 0, 2, 1, X), bad, "low is 2", "high is 1");
  assert_refused(rdna_op_random_uniform(stream, 0, 0, 0, INFINITY, X), bad, "random_uniform", "finite");
  rdna_tensor half = rdna_tensor_contiguous(x.tensor.data, RDNA_F16, 1, &count);
  assert_refused(rdna_op_random_uniform(stream, 0, 0, 0, 70000, &half), bad, "in f16", "finite");
  assert_refused(rdna_op_random_uniform(stream, 0, 0, 0, 1, I), RDNA_UNSUPPORTED, "out is i32", "bf16");
  assert_refused(rdna_op_random_uniform(NULL, 0, 0, 0, 1, X), bad, "stream", "NULL");
  assert_refused(rdna_op_random_normal(stream, 0, 0, 0, -1, X), bad, "deviation is -1", "negative");
  assert_refused(rdna_op_random_bernoulli(stream, 0, 0, 1.5f, X), bad, "probability is 1.5", "0 to 1");
  assert_refused(rdna_op_random_exponential(stream, 0, 0, 0, X), bad, "rate is 0", "above 0");
  assert_refused(rdna_op_random_integers(stream, 0, 0, 3, 3, I), bad, "low is 3", "high is 3");
  assert_refused(rdna_op_random_integers(stream, 0, 0, 0, INT64_MAX, I), bad, "9223372036854775807", "fit i32");
  assert_refused(rdna_op_random_integers(stream, 0, 0, 0, 2, X), bad, "out is f32", "i32");
  assert_refused(rdna_op_dropout(stream, 0, 0, 0.5f, X, X, &m5.tensor), bad, "mask is u8 (5)", "(6)");
  assert_refused(rdna_op_dropout(stream, 0, 0, 0.5f, X, X, I), bad, "mask is i32", "u8");
  assert_refused(rdna_op_dropout_backward(stream, -1, X, &m.tensor, X), bad, "probability is -1", "0 to 1");
  operand_download(&x), operand_download(&i);
  for (int64_t k = 0; k < count; k++) assert_true(operand_is_poison(&x, k) && operand_is_poison(&i, k));
  operand *all[] = {&x, &m, &m5, &i};
  for (int k = 0; k < 4; k++) operand_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(philox_gives_the_published_words),
      cmocka_unit_test(uniform_is_the_top_of_the_known_words),
      cmocka_unit_test(values_depend_on_their_place_alone),
      cmocka_unit_test(distributions_have_their_moments),
      cmocka_unit_test(uniform_is_below_its_end),
      cmocka_unit_test(exponential_is_above_zero),
      cmocka_unit_test(integers_fill_their_range_evenly),
      cmocka_unit_test(dropout_keeps_and_scales),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
