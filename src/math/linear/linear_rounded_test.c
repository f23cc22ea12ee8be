/* Products whose values may be rounded: how far they are off, and that no row depends on another. */
#include "math/common/test/operand.h"
#include "math/linear/linear.h"
#include "math/quant/quant_case.h"
#include "math/quant/testing_blocks.h"

enum { MOST_ROWS = 33 };

typedef struct product {
  rdna_dtype format;
  int64_t m, n, k;
  operand x, weight, out;
} product;

static product product_make(rdna_dtype format, int64_t m, int64_t n, int64_t k) {
  product p = {.format = format, .m = m, .n = n, .k = k};
  const int64_t bytes = (int64_t)rdna_dtype_bytes(format, n * k);
  p.x = operand_make(RDNA_F32, 2, (int64_t[]){m, k}, NULL, 0);
  p.out = operand_make(RDNA_F32, 2, (int64_t[]){m, n}, NULL, 0);
  p.weight = operand_make(RDNA_U8, 1, &bytes, NULL, 0);
  rdna__fill_blocks(&random_state, format, p.weight.host, n * k);
  operand_upload(&p.weight);
  operand_fill(&p.x, 1);
  return p;
}
static float *values_of(product *p) { return (float *)(void *)p->x.host; }

/* The results of products of |m| rows each, in p->out. */
static const float *product_of(product *p, int64_t m) {
  rdna_tensor weight = rdna_tensor_contiguous(p->weight.tensor.data, p->format, 2, (int64_t[]){p->n, p->k});
  operand_upload(&p->x);
  memset(p->out.host, OPERAND_POISON, p->out.bytes);
  operand_upload(&p->out);
  for (int64_t i = 0; i < p->m; i += m) {
    rdna_tensor x = p->x.tensor, out = p->out.tensor;
    x.data = (char *)x.data + (size_t)(i * p->k) * sizeof(float);
    out.data = (char *)out.data + (size_t)(i * p->n) * sizeof(float);
    x.shape[0] = out.shape[0] = m;
    assert_ok(rdna__linear_rounded(stream, &x, &weight, NULL, &out, false));
  }
  operand_download(&p->out);
  return (const float *)(const void *)p->out.host;
}
static void product_free(product *p) {
  operand_free(&p->x);
  operand_free(&p->weight);
  operand_free(&p->out);
}

static float *copy_of(const float *values, int64_t count) {
  float *copy = malloc((size_t)count * sizeof *copy);
  assert_non_null(copy);
  memcpy(copy, values, (size_t)count * sizeof *copy);
  return copy;
}

/* Rounding to whole numbers of a unit is off by a twelfth of its square in the mean, and each meets scale times code:
 * a code that is stored as far from 0 as its zero says would count for more. A minimum may be of rounded values too.
 * What rounding a row took is in all of its results, which weights of one sign add up alike: the mean is of many rows,
 * of products of |m| each. */
static void check_error(product *p, int64_t m) {
  double wrong = 0, expected = 0;
  const float *x = values_of(p), *got = product_of(p, m);
  for (int64_t j = 0; j < p->n; j++) {
    double sum[MOST_ROWS] = {0};
    for (int64_t q = 0; q < p->k; q += 32) {
      double largest[MOST_ROWS], squares = 0;
      for (int64_t i = 0; i < p->m; i++) largest[i] = 1e-30;
      for (int64_t r = q; r < q + 32; r++) {
        double of_code, w = test_quant_value(p->format, p->weight.host, j * p->k + r, &of_code);
        squares += w == of_code || w == -of_code ? w * w : w * w + of_code * of_code;
        for (int64_t i = 0; i < p->m; i++) {
          double v = (double)x[i * p->k + r];
          sum[i] += w * v;
          largest[i] = fmax(largest[i], fabs(v));
          expected += 1e-12 * (w * w + of_code * of_code) * v * v;
        }
      }
      for (int64_t i = 0; i < p->m; i++) expected += squares * pow(largest[i] / 32384, 2) / 12;
    }
    for (int64_t i = 0; i < p->m; i++) wrong += pow((double)got[i * p->n + j] - sum[i], 2);
  }
  if (!(wrong <= 1.7 * expected))
    fail_msg("%s, %d rows: squared error %g, %g are expected", rdna_dtype_name(p->format), (int)m, wrong, expected);
}

/* The last scale is below what units are made for: there a value is off as if the largest were 1e-30. */
static void values_are_off_by_a_unit(void **state) {
  static const float scales[] = {1, 1e-25f, 1e-29f, 1e-32f};
  static const int64_t rows[] = {1, 4, 7, 20};
  for (int f = 0; f < TEST_FORMATS; f++) {
    for (int s = 0; s < 4; s++) {
      const int64_t m = rows[(f + s) % 4];
      product p = product_make(test_formats[f], (MOST_ROWS - 1) / m * m, 40, 512);
      for (int64_t i = 0; i < p.m * p.k; i++) values_of(&p)[i] *= scales[s];
      check_error(&p, m);
      product_free(&p);
    }
    product p = product_make(test_formats[f], 32, 40, 512);
    check_error(&p, 8);
    product_free(&p);
  }
}

/* An infinity or a NaN is in its row's results, and the bits of the others stay. */
static void odd_rows_change_no_other(void **state) {
  static const int64_t rows[] = {2, 8, 9};
  for (int f = 0; f < TEST_FORMATS; f++) {
    for (int r = 0; r < 3; r++) {
      const int64_t m = rows[r], n = 37, k = 512, odd = (f + r) % m;
      product p = product_make(test_formats[f], m, n, k);
      float *before = copy_of(product_of(&p, m), m * n);
      values_of(&p)[odd * k + (int64_t)rdna__random_below(&random_state, (uint64_t)k)] = f % 2 ? NAN : INFINITY;
      const float *after = product_of(&p, m);
      for (int64_t i = 0; i < m * n; i++) {
        const bool same = memcmp(after + i, before + i, sizeof *after) == 0;
        if (i / n != odd && !same)
          fail_msg("%s: row %d of %d is another beside row %d with %g", rdna_dtype_name(p.format), (int)(i / n), (int)m,
                   (int)odd, f % 2 ? (double)NAN : (double)INFINITY);
        if (i / n == odd && f % 2) assert_true(isnan(after[i]));
      }
      bool finite = true;
      for (int64_t j = 0; j < n; j++) finite = finite && isfinite(after[odd * n + j]);
      assert_false(finite);
      free(before);
      product_free(&p);
    }
  }
}

/* Rows that are long for the room that few of them have are rounded as shorter ones are, however many they are. On a
 * GPU other counts of rows take other kernels. */
static void long_rows_are_the_same_in_any_number(void **state) {
  const bool on_host = strcmp(rdna_device_get_info(device)->driver, "host") == 0;
  for (int f = 0; f < TEST_FORMATS; f++) {
    product p = product_make(test_formats[f], 32, 3, 65 * 256);
    float *four = copy_of(product_of(&p, 4), p.m * p.n);
    if (on_host && memcmp(product_of(&p, 8), four, (size_t)(p.m * p.n) * sizeof *four) != 0)
      fail_msg("%s: 4 rows differ among 8", rdna_dtype_name(p.format));
    check_error(&p, 8);
    free(four);
    product_free(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_off_by_a_unit),
      cmocka_unit_test(odd_rows_change_no_other),
      cmocka_unit_test(long_rows_are_the_same_in_any_number),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
