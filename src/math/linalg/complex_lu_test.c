/* Residuals in double, of what was given, and pivots that are the largest of what they were chosen from. */
#include <complex.h>

#include "math/common/test/operand.h"
#include "math/linalg/matrices_test.h"

enum kind { NORMAL, TIES, SINGULAR, STAYING, KINDS };

static double complex pair(const operand *t, int64_t i) {
  return operand_get(t, 2 * i) + I * operand_get(t, 2 * i + 1);
}
static double size_of(double complex v) { return fabs(creal(v)) + fabs(cimag(v)); }

static void factorize(rdna_dtype dtype, int64_t batch, int64_t m, int64_t n, enum kind kind) {
  int64_t k = m < n ? m : n;
  operand a = operand_make(dtype, 4, (int64_t[]){batch, n, m, 2}, NULL, 0);
  operand pivots = operand_make(RDNA_I32, 2, (int64_t[]){batch, k}, NULL, 0);
  operand info = operand_make(RDNA_I32, 1, &batch, NULL, 0);
  double complex *given = malloc(((size_t)(batch * m * n) + 1) * sizeof *given);
  assert_non_null(given);
  for (int64_t e = 0; e < batch * m * n; e++) {
    int64_t i = e % m, j = e / m % n;
    for (int64_t part = 0; part < 2; part++) {
      double v = kind == TIES ? (double)rdna__random_range(&random_state, -1, 1) : rdna__random_normal(&random_state);
      if (kind == SINGULAR && j == n / 2) v = 0;
      set(&a, 2 * e + part, v + (kind == STAYING && i == j ? 8 * (double)n : 0));
    }
    given[e] = pair(&a, e);
  }
  operand_upload(&a), operand_upload(&pivots), operand_upload(&info);
  assert_ok(rdna_op_complex_lu(stream, kind != STAYING, &a.tensor, &pivots.tensor, &info.tensor));
  operand_download(&a), operand_download(&pivots), operand_download(&info);
  for (int64_t b = 0; b < batch; b++) {
    double complex *x = given + b * m * n;
    int64_t zero = 0;
    for (int64_t j = 0; j < k; j++) {
      int64_t p = (int64_t)operand_get(&pivots, b * k + j) - 1;
      assert_true(p >= j && p < m && (kind != STAYING || p == j));
      for (int64_t c = 0; c < n; c++) {
        double complex v = x[c * m + j];
        x[c * m + j] = x[c * m + p], x[c * m + p] = v;
      }
      if (!zero && pair(&a, b * m * n + j * m + j) == 0) zero = j + 1;
    }
    assert_int_equal(operand_get(&info, b), zero);
    for (int64_t e = 0; e < m * n; e++) {
      int64_t i = e % m, j = e / m;
      double complex sum = 0;
      double size = 0;
      for (int64_t c = 0; c <= i && c <= j && c < k; c++) {
        double complex l = c == i ? 1 : pair(&a, b * m * n + c * m + i), v = l * pair(&a, b * m * n + j * m + c);
        if (kind != STAYING && !(cabs(l) <= 1.5)) fail_msg("a multiplier of %g", cabs(l));
        sum += v, size += size_of(v);
      }
      if (!(cabs(sum - x[e]) <= 8 * (double)(k + 1) * unit_of(dtype) * (size + cabs(x[e])))) {
        fail_msg("%s %lld x %lld kind %d: (%lld, %lld) is off by %g", rdna_dtype_name(dtype), (long long)m,
                 (long long)n, kind, (long long)i, (long long)j, cabs(sum - x[e]));
      }
    }
  }
  free(given);
  operand_free(&a), operand_free(&pivots), operand_free(&info);
}

static void factors(void **state) {
  static const int64_t sizes[][2] = {{1, 1}, {2, 5}, {9, 9}, {40, 33}, {7, 30}, {70, 70}, {0, 3}, {3, 0}};
  for (int s = 0; s < 8; s++) {
    for (int k = 0; k < 2 * KINDS; k++)
      factorize(k & 1 ? RDNA_F64 : RDNA_F32, s == 6 ? 0 : 1 + s % 3, sizes[s][0], sizes[s][1], (enum kind)(k / 2));
  }
}

static void refused(void **state) {
  operand a = operand_make(RDNA_F32, 4, (int64_t[]){1, 2, 1025, 2}, NULL, 0);
  operand pivots = operand_make(RDNA_I32, 2, (int64_t[]){1, 2}, NULL, 0);
  operand info = operand_make(RDNA_I32, 1, (int64_t[]){1}, NULL, 0);
  assert_refused(rdna_op_complex_lu(stream, true, &a.tensor, &pivots.tensor, &info.tensor), RDNA_UNSUPPORTED,
                 "up to 1024 are offered");
  operand_free(&a), operand_free(&pivots), operand_free(&info);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(factors), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
