/* Residuals in double: of what was given, not of another factorization. */
#include "math/common/test/operand.h"
#include "math/linalg/matrices_test.h"

enum kind { NORMAL, TIES, SINGULAR, STAYING };

/* What kind says: normal values; -1, 0 and 1; a column of zeros; a diagonal so large that no row needs to move. */
static double value(enum kind kind, int64_t i, int64_t j, int64_t n) {
  if (kind == TIES) return (double)rdna__random_range(&random_state, -1, 1);
  if (kind == SINGULAR && j == n / 2) return 0;
  return rdna__random_normal(&random_state) + (kind == STAYING && i == j ? 8 * (double)n : 0);
}

/* |p a - l u| <= c min(m, n) eps |l| |u| (Higham, theorem 9.3), pivots that are the largest of what they were chosen
 * from, so that no multiplier exceeds 1, and info as LAPACK's. */
static void check_factors(const operand *a, const double *given, const operand *pivots, double info, enum kind kind) {
  int64_t batch = a->tensor.shape[0], m = a->tensor.shape[1], n = a->tensor.shape[2], k = m < n ? m : n;
  double *rows = malloc(((size_t)(m * n) + 1) * sizeof *rows);
  assert_non_null(rows);
  for (int64_t b = 0; b < batch; b++) {
    memcpy(rows, given + b * m * n, (size_t)(m * n) * sizeof *rows);
    for (int64_t j = 0; j < k; j++) {
      int64_t p = (int64_t)operand_get(pivots, b * k + j) - 1;
      assert_true(p >= j && p < m && (kind != STAYING || p == j));
      for (int64_t c = 0; c < n && p != j; c++) {
        double v = rows[j * n + c];
        rows[j * n + c] = rows[p * n + c], rows[p * n + c] = v;
      }
    }
    int64_t zero = 0;
    for (int64_t j = k - 1; j >= 0; j--) zero = operand_get(a, at(a, b, j, j)) == 0 ? j + 1 : zero;
    if (b == batch - 1) assert_int_equal(info, zero);
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) {
        double sum = 0, size = 0;
        for (int64_t c = 0; c <= i && c <= j && c < k; c++) {
          double l = c == i ? 1 : operand_get(a, at(a, b, i, c)), v = l * operand_get(a, at(a, b, c, j));
          if (kind != STAYING && !(fabs(l) <= 1)) fail_msg("a multiplier of %g", l);
          sum += v, size += fabs(v);
        }
        double error = fabs(sum - rows[i * n + j]), bound = 2 * (double)(k + 1) * unit_of(a->tensor.dtype) * size;
        if (!(error <= bound)) {
          fail_msg("%s %lld x %lld kind %d: (%lld, %lld, %lld) is off by %g, allowed %g",
                   rdna_dtype_name(a->tensor.dtype), (long long)m, (long long)n, kind, (long long)b, (long long)i,
                   (long long)j, error, bound);
        }
      }
    }
  }
  free(rows);
}

static void factorize(rdna_dtype dtype, int64_t batch, int64_t m, int64_t n, bool columns, enum kind kind) {
  int64_t k = m < n ? m : n;
  operand a = matrices(dtype, batch, m, n, columns), info = operand_make(RDNA_I32, 1, &batch, NULL, 0);
  operand pivots = operand_make(RDNA_I32, 2, (int64_t[]){batch, k}, NULL, 0);
  double *given = malloc(((size_t)(batch * m * n) + 1) * sizeof *given);
  assert_non_null(given);
  for (int64_t e = 0; e < batch * m * n; e++) {
    int64_t to = at(&a, e / n / m, e / n % m, e % n);
    set(&a, to, value(kind, e / n % m, e % n, n));
    given[e] = operand_get(&a, to);
  }
  operand_upload(&a), operand_upload(&pivots), operand_upload(&info);
  assert_ok(rdna_op_lu(stream, kind != STAYING, &a.tensor, &pivots.tensor, &info.tensor));
  operand_download(&a), operand_download(&pivots), operand_download(&info);
  check_factors(&a, given, &pivots, batch ? operand_get(&info, batch - 1) : 0, kind);
  free(given);
  operand_free(&a), operand_free(&pivots), operand_free(&info);
}

static void factors(void **state) {
  static const int64_t sizes[][2] = {{1, 1},   {2, 5},    {31, 31}, {33, 32}, {64, 70},
                                     {97, 97}, {131, 40}, {20, 90}, {150, 1}};
  for (int s = 0; s < 9; s++) {
    for (int k = 0; k < 8; k++)
      factorize(k & 1 ? RDNA_F64 : RDNA_F32, 1 + s % 3, sizes[s][0], sizes[s][1], (k + s) & 2, k / 2);
  }
}

static void nothing(void **state) {
  factorize(RDNA_F32, 2, 0, 3, false, NORMAL);
  factorize(RDNA_F32, 2, 3, 0, false, NORMAL);
  factorize(RDNA_F64, 0, 5, 5, false, NORMAL);
}

/* A NaN is chosen before all numbers, and a column of NaN is no pivot of 0. */
static void not_numbers(void **state) {
  operand a = operand_make(RDNA_F64, 3, (int64_t[]){1, 3, 3}, NULL, 0);
  operand pivots = operand_make(RDNA_I32, 2, (int64_t[]){1, 3}, NULL, 0);
  operand info = operand_make(RDNA_I32, 1, (int64_t[]){1}, NULL, 0);
  for (int64_t i = 0; i < 9; i++) set(&a, i, i == 3 ? NAN : i == 6 ? INFINITY : (double)i + 1);
  operand_upload(&a), operand_upload(&pivots), operand_upload(&info);
  assert_ok(rdna_op_lu(stream, true, &a.tensor, &pivots.tensor, &info.tensor));
  operand_download(&a), operand_download(&pivots), operand_download(&info);
  assert_int_equal(operand_get(&pivots, 0), 2);
  assert_int_equal(operand_get(&info, 0), 0);
  assert_true(isnan(operand_get(&a, 0)) && isnan(operand_get(&a, 8)));
  operand_free(&a), operand_free(&pivots), operand_free(&info);
}

/* Exchanges there and back, of rows that exist. */
static void exchanges(void **state) {
  operand x = operand_make(RDNA_F32, 3, (int64_t[]){2, 70, 130}, NULL, 0);
  operand pivots = operand_make(RDNA_I32, 2, (int64_t[]){2, 69}, NULL, 0);
  int64_t order[2][70];
  for (int64_t i = 0; i < 2 * 70 * 130; i++) set(&x, i, (double)i);
  for (int64_t b = 0; b < 2; b++) {
    for (int64_t i = 0; i < 70; i++) order[b][i] = i;
    for (int64_t i = 0; i < 69; i++) {
      int64_t to = rdna__random_range(&random_state, 0, 71), v = order[b][i];
      ((int32_t *)(void *)pivots.host)[b * 69 + i] = (int32_t)to;
      if (to >= 1 && to <= 70) order[b][i] = order[b][to - 1], order[b][to - 1] = v;
    }
  }
  operand_upload(&x), operand_upload(&pivots);
  assert_ok(rdna_op_swap_rows(stream, false, &pivots.tensor, &x.tensor));
  operand_download(&x);
  for (int64_t i = 0; i < 2 * 70 * 130; i++) {
    int64_t b = i / 130 / 70;
    assert_int_equal(operand_get(&x, i), (b * 70 + order[b][i / 130 % 70]) * 130 + i % 130);
  }
  assert_ok(rdna_op_swap_rows(stream, true, &pivots.tensor, &x.tensor));
  operand_download(&x);
  for (int64_t i = 0; i < 2 * 70 * 130; i++) assert_int_equal(operand_get(&x, i), i);
  operand_free(&x), operand_free(&pivots);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(factors), cmocka_unit_test(nothing),
                                     cmocka_unit_test(not_numbers), cmocka_unit_test(exchanges)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
