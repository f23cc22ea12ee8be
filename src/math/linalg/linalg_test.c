/* Residuals in double: of what was given, not of another factorization. */
#include "math/common/test/operand.h"
#include "math/linalg/matrices_test.h"

/* |a - l l'| <= c n eps sqrt(a_ii a_jj), the bound of Cholesky's factors (Higham, theorem 10.3). The other triangle is
 * NaN, so that reading it is seen. Matrix 1 fails at |bad|. */
static void factorize(rdna_dtype dtype, int64_t batch, int64_t n, bool upper, bool columns, int64_t bad) {
  operand a = matrices(dtype, batch, n, n, columns), info = operand_make(RDNA_I32, 1, &batch, NULL, 0);
  double *want = calloc((size_t)(batch * n * n) + 1, sizeof *want);
  assert_non_null(want);
  for (int64_t b = 0; b < batch; b++) {
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j <= i; j++) {
        double v = i == j ? (double)n : rdna__random_unit(&random_state) - 0.5;
        if (b == 1 && i == bad && j == bad) v = bad % 2 ? -1 : NAN;
        set(&a, upper ? at(&a, b, j, i) : at(&a, b, i, j), v);
        if (i != j) set(&a, upper ? at(&a, b, i, j) : at(&a, b, j, i), NAN);
        want[(b * n + i) * n + j] = operand_get(&a, upper ? at(&a, b, j, i) : at(&a, b, i, j));
      }
    }
  }
  operand_upload(&a), operand_upload(&info);
  assert_ok(rdna_op_cholesky(stream, upper, &a.tensor, &info.tensor));
  operand_download(&a), operand_download(&info);
  for (int64_t b = 0; b < batch; b++) {
    int64_t failed = b == 1 && bad >= 0 ? bad + 1 : 0;
    assert_int_equal(operand_get(&info, b), failed);
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j < i; j++) assert_true(operand_get(&a, upper ? at(&a, b, i, j) : at(&a, b, j, i)) == 0);
    }
    for (int64_t i = 0; i < n && !failed; i++) {
      for (int64_t j = 0; j <= i; j++) {
        double sum = 0;
        for (int64_t k = 0; k <= j; k++) {
          sum += operand_get(&a, upper ? at(&a, b, k, i) : at(&a, b, i, k)) *
                 operand_get(&a, upper ? at(&a, b, k, j) : at(&a, b, j, k));
        }
        double error = fabs(sum - want[(b * n + i) * n + j]), bound = 2 * (double)(n + 1) * unit_of(dtype) * (double)n;
        if (!(error <= bound)) {
          fail_msg("%s %lld upper %d columns %d: (%lld, %lld, %lld) is off by %g, allowed %g", rdna_dtype_name(dtype),
                   (long long)n, upper, columns, (long long)b, (long long)i, (long long)j, error, bound);
        }
      }
    }
  }
  free(want);
  operand_free(&a), operand_free(&info);
}

static void factors(void **state) {
  static const int64_t sizes[] = {1, 2, 31, 33, 64, 97, 128, 129, 150, 290};
  for (int s = 0; s < 10; s++) {
    for (int k = s < 7 ? 0 : 4; k < 8; k++) {
      int64_t n = sizes[s], bad = k < 4 ? -1 : n - 1 - (k % 2 ? n / 3 : 0);
      factorize(k & 1 ? RDNA_F64 : RDNA_F32, 1 + s % 3, n, k & 2, (k + s) & 1, bad);
    }
  }
}

/* |a x - b| <= n eps |a| |x|, row by row (Higham, theorem 8.5). */
static void solve(rdna_dtype dtype, int64_t batch, int64_t n, int64_t m, bool upper, bool unit, bool turned) {
  operand a = matrices(dtype, batch, n, n, turned), x = matrices(dtype, batch, n, m, m % 2);
  double *b = malloc((size_t)(batch * n * m) * sizeof *b);
  assert_non_null(b);
  for (int64_t i = 0; i < batch * n * n; i++) {
    int64_t r = i / n % n, c = i % n;
    double v = r == c ? 1 + rdna__random_unit(&random_state) : rdna__random_normal(&random_state) / (double)n;
    set(&a, at(&a, i / n / n, r, c), (upper ? c < r : c > r) || (unit && r == c) ? NAN : v);
  }
  for (int64_t i = 0; i < batch * n * m; i++) {
    int64_t to = at(&x, i / m / n, i / m % n, i % m);
    set(&x, to, rdna__random_normal(&random_state));
    b[i] = operand_get(&x, to);
  }
  operand_upload(&a), operand_upload(&x);
  assert_ok(rdna_op_solve_triangular(stream, upper, unit, &a.tensor, &x.tensor));
  operand_download(&a), operand_download(&x);
  for (int64_t i = 0; i < batch * n * m; i++) {
    int64_t z = i / m / n, r = i / m % n;
    double sum = 0, size = 0;
    for (int64_t k = upper ? r : 0; k < (upper ? n : r + 1); k++) {
      double v = (unit && k == r ? 1 : operand_get(&a, at(&a, z, r, k))) * operand_get(&x, at(&x, z, k, i % m));
      sum += v, size += fabs(v);
    }
    if (!(fabs(sum - b[i]) <= (double)(n + 1) * unit_of(dtype) * size)) {
      fail_msg("%s %lld x %lld upper %d unit %d turned %d: value %lld, got %g, want %g", rdna_dtype_name(dtype),
               (long long)n, (long long)m, upper, unit, turned, (long long)i, sum, b[i]);
    }
  }
  free(b);
  operand_free(&a), operand_free(&x);
}

static void systems(void **state) {
  static const int64_t sizes[][2] = {{1, 1},  {31, 3},   {32, 64},  {33, 1},  {70, 130},
                                     {97, 2}, {128, 33}, {129, 35}, {150, 2}, {290, 1}};
  for (int s = 0; s < 10; s++) {
    for (int k = 0; k < 8; k++)
      solve((s + k) % 2 ? RDNA_F64 : RDNA_F32, 1 + k % 3, sizes[s][0], sizes[s][1], k & 1, k & 2, k & 4);
  }
}

static void nothing(void **state) {
  factorize(RDNA_F32, 2, 0, false, false, -1);
  factorize(RDNA_F64, 0, 5, false, false, -1);
  int64_t shape[3] = {2, 5, 5}, none[3] = {2, 5, 0};
  operand a = operand_make(RDNA_F32, 3, shape, NULL, 0), x = operand_make(RDNA_F32, 3, none, NULL, 0);
  assert_ok(rdna_op_solve_triangular(stream, true, false, &a.tensor, &x.tensor));
  operand_free(&a), operand_free(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(factors), cmocka_unit_test(systems), cmocka_unit_test(nothing)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
