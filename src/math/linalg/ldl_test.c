/* Residuals in double, of what was given; bounded growth; what is above the diagonal stays. */
#include "math/common/test/operand.h"
#include "math/linalg/matrices_test.h"

enum kind { NORMAL, TIES, SINGULAR, DEFINITE, ZERO_DIAGONAL, KINDS };

/* Solves nothing: multiplies the factors in double, step by step backwards, and compares with |given|. */
static void factorize(rdna_dtype dtype, int64_t batch, int64_t n, enum kind kind) {
  operand a = operand_make(dtype, 3, (int64_t[]){batch, n, n}, NULL, 0);
  operand pivots = operand_make(RDNA_I32, 2, (int64_t[]){batch, n}, NULL, 0);
  operand info = operand_make(RDNA_I32, 1, &batch, NULL, 0);
  double *given = malloc(((size_t)(batch * n * n) + 1) * sizeof *given);
  double *made = malloc(((size_t)(n * n) + 1) * sizeof *made);
  assert_non_null(given), assert_non_null(made);
  for (int64_t e = 0; e < batch * n * n; e++) {
    int64_t i = e % n, j = e / n % n;
    double v = kind == TIES ? (double)rdna__random_range(&random_state, -1, 1) : rdna__random_normal(&random_state);
    if (kind == SINGULAR && (i == n / 2 || j == n / 2)) v = 0;
    if (kind == DEFINITE && i == j) v = 8 * (double)n;
    if (kind == ZERO_DIAGONAL && i == j) v = 0;
    set(&a, e, v);
    given[e] = operand_get(&a, e);
  }
  operand_upload(&a), operand_upload(&pivots), operand_upload(&info);
  assert_ok(rdna_op_ldl(stream, &a.tensor, &pivots.tensor, &info.tensor));
  operand_download(&a), operand_download(&pivots), operand_download(&info);
  for (int64_t b = 0; b < batch; b++) {
    const double *x = given + b * n * n;
    double most = 0;
    bool is_zero = false;
    for (int64_t e = 0; e < n * n; e++) {
      int64_t i = e % n, j = e / n;
      made[e] = 0;
      most = fmax(most, fabs(x[e]));
      if (i < j) assert_true(operand_get(&a, b * n * n + e) == x[e]);
    }
    for (int64_t end = n; end > 0;) {
      int64_t pivot = (int64_t)operand_get(&pivots, b * n + end - 1), two = pivot < 0, k = end - 1 - two;
      int64_t p = (two ? -pivot : pivot) - 1;
      assert_true(k >= 0 && p >= k + two && p < n && (!two || operand_get(&pivots, b * n + k) == (double)pivot));
      assert_true(kind != DEFINITE || (!two && p == k));
      double d[3] = {operand_get(&a, b * n * n + k * n + k), 0, 0};
      if (two)
        d[1] = operand_get(&a, b * n * n + k * n + k + 1), d[2] = operand_get(&a, b * n * n + (k + 1) * n + k + 1);
      is_zero = is_zero || (!two && d[0] == 0);
      for (int64_t j = k; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
          double l[2][2]; /* of rows i and j, in the block's columns */
          for (int64_t c = 0; c < 2; c++) {
            l[0][c] = i < end ? i == k + c : c <= two ? operand_get(&a, b * n * n + (k + c) * n + i) : 0;
            l[1][c] = j < end ? j == k + c : c <= two ? operand_get(&a, b * n * n + (k + c) * n + j) : 0;
          }
          made[j * n + i] += l[0][0] * (d[0] * l[1][0] + d[1] * l[1][1]) + l[0][1] * (d[1] * l[1][0] + d[2] * l[1][1]);
        }
      }
      int64_t one = k + two;
      for (int64_t i = k; i < n && p != one; i++) { /* columns, and then rows, as both triangles would have it */
        if (i == one || i == p) continue;
        double *u = &made[i < one ? i * n + one : one * n + i], *v = &made[i < p ? i * n + p : p * n + i], t = *u;
        *u = *v, *v = t;
      }
      double t = made[one * n + one];
      made[one * n + one] = made[p * n + p], made[p * n + p] = t;
      end = k;
    }
    assert_true((operand_get(&info, b) != 0) == is_zero);
    for (int64_t e = 0; e < n * n; e++) {
      double error = fabs(made[e] - x[e]);
      if (e % n >= e / n && !(error <= 8 * (double)(n + 1) * unit_of(dtype) * most * 4)) {
        fail_msg("%s %lld kind %d: (%lld, %lld) is off by %g", rdna_dtype_name(dtype), (long long)n, kind,
                 (long long)(e % n), (long long)(e / n), error);
      }
    }
  }
  free(given), free(made);
  operand_free(&a), operand_free(&pivots), operand_free(&info);
}

static void factors(void **state) {
  static const int64_t sizes[] = {1, 2, 3, 9, 33, 70, 0};
  for (int s = 0; s < 7; s++) {
    for (int k = 0; k < 2 * KINDS; k++)
      factorize(k & 1 ? RDNA_F64 : RDNA_F32, s == 5 ? 2 : 1 + s % 3, sizes[s], (enum kind)(k / 2));
  }
}

static void refused(void **state) {
  operand a = operand_make(RDNA_F32, 3, (int64_t[]){1, 2, 3}, NULL, 0);
  operand many = operand_make(RDNA_F32, 3, (int64_t[]){1, 1025, 1025}, NULL, 0);
  operand pivots = operand_make(RDNA_I32, 2, (int64_t[]){1, 1025}, NULL, 0);
  operand info = operand_make(RDNA_I32, 1, (int64_t[]){1}, NULL, 0);
  assert_refused(rdna_op_ldl(stream, &a.tensor, &pivots.tensor, &info.tensor), RDNA_INVALID_ARGUMENT,
                 "a is f32 (1, 2, 3)", "2");
  assert_refused(rdna_op_ldl(stream, &many.tensor, &pivots.tensor, &info.tensor), RDNA_UNSUPPORTED,
                 "up to 1024 are offered", "1025");
  operand_free(&a), operand_free(&many), operand_free(&pivots), operand_free(&info);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(factors), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
