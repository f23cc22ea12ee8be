/* Residuals in double: of what was given, not of another factorization. */
#include "math/common/test/operand.h"
#include "math/linalg/matrices_test.h"

enum kind { NORMAL, SPARSE, HUGE_VALUES, TINY_VALUES, GRADED };

/* What kind says: normal values; such that are mostly 0, a column wholly; near the ends of the type's range; columns of
 * ever smaller size. */
static double value(rdna_dtype dtype, enum kind kind, int64_t j, int64_t n) {
  double v = rdna__random_normal(&random_state), most = dtype == RDNA_F64 ? 0x1p1000 : 0x1p110;
  if (kind == SPARSE && (j == n / 2 || rdna__random_range(&random_state, 0, 2))) return 0;
  if (kind == GRADED) return v * pow(most, -(double)(j % 8) / 8);
  return kind == HUGE_VALUES ? v * most : kind == TINY_VALUES ? v / most : v;
}

/* q (m, m) must be orthogonal, and q r each column of what was given but for c eps times its length (Higham, theorem
 * 19.4). */
static void check_factors(const operand *a, const operand *q, const double *given) {
  int64_t batch = a->tensor.shape[0], m = a->tensor.shape[1], n = a->tensor.shape[2], k = m < n ? m : n;
  double bound = 4 * (double)(k + 4) * unit_of(a->tensor.dtype);
  for (int64_t b = 0; b < batch; b++) {
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < m; j++) {
        double sum = 0;
        for (int64_t c = 0; c < m; c++) sum += operand_get(q, at(q, b, c, i)) * operand_get(q, at(q, b, c, j));
        if (!(fabs(sum - (i == j)) <= bound))
          fail_msg("columns %lld and %lld of %lld have the product %g", (long long)i, (long long)j, (long long)m, sum);
      }
    }
    for (int64_t j = 0; j < n; j++) {
      double length = 0;
      for (int64_t i = 0; i < m; i++) length = hypot(length, given[(b * m + i) * n + j]);
      for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t c = 0; c <= j && c < m; c++)
          sum += operand_get(q, at(q, b, i, c)) * operand_get(a, at(a, b, c, j));
        double error = fabs(sum - given[(b * m + i) * n + j]);
        if (!(error <= bound * length)) {
          fail_msg("%s %lld x %lld: (%lld, %lld, %lld) is off by %g, allowed %g", rdna_dtype_name(a->tensor.dtype),
                   (long long)m, (long long)n, (long long)b, (long long)i, (long long)j, error, bound * length);
        }
      }
    }
  }
}

/* x, and from the right its transpose, times q as it was found from the identity. */
static void check_products(const operand *a, const operand *tau, const operand *q, bool transposed, bool right) {
  rdna_dtype dtype = a->tensor.dtype;
  int64_t batch = a->tensor.shape[0], m = a->tensor.shape[1], n = 5;
  operand x = matrices(dtype, batch, right ? n : m, right ? m : n, transposed != right);
  double *given = malloc(((size_t)(batch * m * n) + 1) * sizeof *given);
  assert_non_null(given);
  for (int64_t e = 0; e < batch * m * n; e++) {
    int64_t b = e / n / m, i = e / n % m, j = e % n, to = right ? at(&x, b, j, i) : at(&x, b, i, j);
    set(&x, to, rdna__random_normal(&random_state));
    given[e] = operand_get(&x, to);
  }
  operand_upload(&x);
  rdna_tensor view = x.tensor;
  if (right) {
    view.shape[1] = m, view.shape[2] = n;
    view.stride[1] = x.tensor.stride[2], view.stride[2] = x.tensor.stride[1];
  }
  assert_ok(rdna_op_reflect(stream, transposed, false, &a->tensor, &tau->tensor, &view));
  operand_download(&x);
  for (int64_t e = 0; e < batch * m * n; e++) {
    int64_t b = e / n / m, i = e / n % m, j = e % n;
    double sum = 0, length = 0;
    for (int64_t c = 0; c < m; c++) {
      double v = given[(b * m + c) * n + j];
      sum += operand_get(q, transposed ? at(q, b, c, i) : at(q, b, i, c)) * v, length = hypot(length, v);
    }
    double found = operand_get(&x, right ? at(&x, b, j, i) : at(&x, b, i, j));
    if (!(fabs(found - sum) <= 8 * (double)(m + 4) * unit_of(dtype) * length))
      fail_msg("(%lld, %lld) of %lld is %g, not %g", (long long)i, (long long)j, (long long)m, found, sum);
  }
  free(given);
  operand_free(&x);
}

static void factorize(rdna_dtype dtype, int64_t batch, int64_t m, int64_t n, bool columns, enum kind kind) {
  operand a = matrices(dtype, batch, m, n, columns), q = matrices(dtype, batch, m, m, !columns);
  operand tau = operand_make(dtype, 2, (int64_t[]){batch, m < n ? m : n}, NULL, 0);
  double *given = malloc(((size_t)(batch * m * n) + 1) * sizeof *given);
  assert_non_null(given);
  for (int64_t e = 0; e < batch * m * n; e++) {
    int64_t to = at(&a, e / n / m, e / n % m, e % n);
    set(&a, to, value(dtype, kind, e % n, n));
    given[e] = operand_get(&a, to);
  }
  for (int64_t e = 0; e < batch * m * m; e++) set(&q, at(&q, e / m / m, e / m % m, e % m), e / m % m == e % m);
  operand_upload(&a), operand_upload(&tau), operand_upload(&q);
  assert_ok(rdna_op_qr(stream, &a.tensor, &tau.tensor));
  assert_ok(rdna_op_reflect(stream, false, true, &a.tensor, &tau.tensor, &q.tensor));
  operand_download(&a), operand_download(&tau), operand_download(&q);
  check_factors(&a, &q, given);
  if (kind == NORMAL) check_products(&a, &tau, &q, columns, m & 1), check_products(&a, &tau, &q, !columns, n & 1);
  free(given);
  operand_free(&a), operand_free(&tau), operand_free(&q);
}

static void factors(void **state) {
  static const int64_t sizes[][2] = {{1, 1},   {2, 5},    {31, 31}, {33, 32}, {40, 70},
                                     {66, 65}, {131, 40}, {20, 40}, {150, 1}};
  for (int s = 0; s < 9; s++) {
    for (int k = 0; k < (s < 4 ? 10 : 2); k++)
      factorize(k & 1 ? RDNA_F64 : RDNA_F32, 1 + s % 2, sizes[s][0], sizes[s][1], (k + s) & 2, (enum kind)(k / 2));
  }
}

static void nothing(void **state) {
  factorize(RDNA_F32, 2, 0, 3, false, NORMAL);
  factorize(RDNA_F32, 2, 3, 0, false, NORMAL);
  factorize(RDNA_F64, 0, 5, 5, false, NORMAL);
}

/* A column that is 0 below its diagonal needs no reflection, whatever stands there; NaN stays. */
static void edges(void **state) {
  operand a = matrices(RDNA_F64, 1, 3, 3, true), tau = operand_make(RDNA_F64, 2, (int64_t[]){1, 3}, NULL, 0);
  for (int64_t e = 0; e < 9; e++) set(&a, at(&a, 0, e / 3, e % 3), e / 3 <= e % 3 ? (double)e - 2 : 0);
  operand_upload(&a), operand_upload(&tau);
  assert_ok(rdna_op_qr(stream, &a.tensor, &tau.tensor));
  operand_download(&a), operand_download(&tau);
  for (int64_t e = 0; e < 9; e++)
    assert_true(operand_get(&a, at(&a, 0, e / 3, e % 3)) == (e / 3 <= e % 3 ? (double)e - 2 : 0));
  for (int64_t j = 0; j < 3; j++) assert_true(operand_get(&tau, j) == 0);
  set(&a, at(&a, 0, 2, 0), NAN);
  operand_upload(&a);
  assert_ok(rdna_op_qr(stream, &a.tensor, &tau.tensor));
  operand_download(&a), operand_download(&tau);
  assert_true(isnan(operand_get(&a, at(&a, 0, 0, 0))) && isnan(operand_get(&a, at(&a, 0, 2, 2))));
  operand_free(&a), operand_free(&tau);
}

static void refused(void **state) {
  operand a = matrices(RDNA_F32, 1, 5, 3, true), x = matrices(RDNA_F32, 1, 5, 2, true);
  operand tau = operand_make(RDNA_F32, 2, (int64_t[]){1, 4}, NULL, 0);
  operand_upload(&a), operand_upload(&tau), operand_upload(&x);
  assert_refused(rdna_op_reflect(stream, false, false, &a.tensor, &tau.tensor, &x.tensor), RDNA_INVALID_ARGUMENT,
                 "at most 3 reflections");
  tau.tensor.shape[1] = 3;
  assert_refused(rdna_op_reflect(stream, true, true, &a.tensor, &tau.tensor, &x.tensor), RDNA_INVALID_ARGUMENT,
                 "not transposed");
  tau.tensor.shape[1] = 4;
  operand_free(&a), operand_free(&tau), operand_free(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(factors), cmocka_unit_test(nothing), cmocka_unit_test(edges),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
