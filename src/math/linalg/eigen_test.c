/* Residuals in double of what was given; sums of the values and of their squares beside the matrix's traces. */
#include <complex.h>

#include "math/common/test/operand.h"
#include "math/linalg/matrices_test.h"

/* Normal values; -1, 0 and 1; D M / D with a D of powers of ten; a triangle; a cycle of rows, on which steps with the
 * usual shifts stand still; a block of Jordan's, which has one vector; zeros. */
enum kind { NORMAL, WHOLE, GRADED, TRIANGLE, CYCLE, JORDAN, ZERO, KINDS };

static double value(enum kind kind, int64_t i, int64_t j, int64_t n) {
  double v = rdna__random_normal(&random_state);
  if (kind == WHOLE) return (double)rdna__random_range(&random_state, -1, 1);
  if (kind == GRADED) return v * pow(10, (double)(i * 3 % 5 - j * 3 % 5));
  if (kind == TRIANGLE) return i > j ? 0 : v;
  if (kind == CYCLE) return (i + 1) % n == j;
  if (kind == JORDAN) return (double)(i == j) / 2 + (i + 1 == j);
  return kind == ZERO ? 0 : v;
}

static double complex pair(const operand *t, int64_t i) {
  return operand_get(t, 2 * i) + I * operand_get(t, 2 * i + 1);
}

/* |a v - lambda v| <= c n eps |a| with |v| = 1, conjugate pairs that are so exactly, and traces. */
static void check_matrix(const operand *values, const operand *vectors, int64_t b, int64_t n, const double *a,
                         enum kind kind) {
  double norm = 0, unit = unit_of(values->tensor.dtype), size = 0;
  double complex sum = 0, squares = 0;
  for (int64_t i = 0; i < n * n; i++) norm += a[i] * a[i];
  norm = sqrt(norm);
  double bound = 8 * (double)(n + 8) * unit * norm * (kind == GRADED ? 10 : 1);
  for (int64_t j = 0; j < n; j++) {
    double complex lambda = pair(values, b * n + j);
    sum += lambda, squares += lambda * lambda, size += norm * cabs(lambda);
    if (cimag(lambda) > 0) assert_true(pair(values, b * n + j + 1) == conj(lambda));
    if (!vectors) continue;
    double length = 0;
    for (int64_t i = 0; i < n; i++) {
      double complex v = pair(vectors, (b * n + j) * n + i), error = -lambda * v;
      for (int64_t k = 0; k < n; k++) error += a[i * n + k] * pair(vectors, (b * n + j) * n + k);
      length += creal(v * conj(v));
      if (cimag(lambda) == 0) assert_true(cimag(v) == 0);
      if (cimag(lambda) > 0) assert_true(pair(vectors, (b * n + j + 1) * n + i) == conj(v));
      if (!(cabs(error) <= bound)) {
        fail_msg("%s n %lld kind %d: row %lld of vector %lld is off by %g, allowed %g",
                 rdna_dtype_name(values->tensor.dtype), (long long)n, kind, (long long)i, (long long)j, cabs(error),
                 bound);
      }
    }
    if (!(fabs(length - 1) <= 8 * (double)(n + 8) * unit)) fail_msg("vector %lld has length %g", (long long)j, length);
  }
  for (int64_t i = 0; i < n; i++) {
    sum -= a[i * n + i];
    for (int64_t k = 0; k < n; k++) squares -= a[i * n + k] * a[k * n + i];
  }
  if (!(cabs(sum) <= (double)n * bound) || !(cabs(squares) <= (double)n * bound * norm + unit * size))
    fail_msg("n %lld kind %d: traces are off by %g and %g", (long long)n, kind, cabs(sum), cabs(squares));
}

static void find(rdna_dtype dtype, int64_t batch, int64_t n, bool columns, enum kind kind, double size, bool wanted) {
  operand a = matrices(dtype, batch, n, n, columns), info = operand_make(RDNA_I32, 1, &batch, NULL, 0);
  operand values = operand_make(dtype, 3, (int64_t[]){batch, n, 2}, NULL, 0);
  operand vectors = operand_make(dtype, 4, (int64_t[]){batch, n, n, 2}, NULL, 0);
  double *given = malloc(((size_t)(batch * n * n) + 1) * sizeof *given);
  assert_non_null(given);
  for (int64_t e = 0; e < batch * n * n; e++) {
    int64_t to = at(&a, e / n / n, e / n % n, e % n);
    set(&a, to, size * value(kind, e / n % n, e % n, n));
    given[e] = operand_get(&a, to) / size;
  }
  operand_upload(&a), operand_upload(&values), operand_upload(&vectors), operand_upload(&info);
  assert_ok(rdna_op_eigen(stream, &a.tensor, &values.tensor, wanted ? &vectors.tensor : NULL, &info.tensor));
  operand_download(&values), operand_download(&vectors), operand_download(&info);
  for (int64_t e = 0; e < 2 * batch * n; e++) set(&values, e, operand_get(&values, e) / size);
  for (int64_t b = 0; b < batch; b++) {
    assert_int_equal(operand_get(&info, b), 0);
    check_matrix(&values, wanted ? &vectors : NULL, b, n, given + b * n * n, kind);
  }
  free(given);
  operand_free(&a), operand_free(&values), operand_free(&vectors), operand_free(&info);
}

static void small(void **state) {
  static const int64_t sizes[] = {1, 2, 3, 4, 9, 24};
  for (int s = 0; s < 6; s++) {
    for (int k = 0; k < KINDS; k++)
      find((k + s) & 1 ? RDNA_F64 : RDNA_F32, 1 + s % 3, sizes[s], (k + s) & 2, (enum kind)k, 1, k != s);
  }
  find(RDNA_F32, 1, 64, false, NORMAL, 1, false);
}

static void large(void **state) {
  find(RDNA_F64, 1, 66, true, NORMAL, 1, true);
  find(RDNA_F32, 2, 65, false, TRIANGLE, 1, false);
}

/* Near the ends of the range nothing overflows or vanishes. */
static void sizes(void **state) {
  find(RDNA_F32, 1, 9, false, NORMAL, 0x1p120, true);
  find(RDNA_F32, 1, 9, true, NORMAL, 0x1p-100, true);
  find(RDNA_F64, 1, 9, false, NORMAL, 0x1p1000, true);
  find(RDNA_F64, 1, 9, false, NORMAL, 0x1p-960, true);
}

static void nothing(void **state) {
  find(RDNA_F32, 0, 5, false, NORMAL, 1, true);
  find(RDNA_F64, 3, 0, false, NORMAL, 1, true);
}

/* A matrix that is not finite is named, and the others of its batch are not touched by it. */
static void not_finite(void **state) {
  int64_t batch = 3, n = 4;
  operand a = matrices(RDNA_F32, batch, n, n, false), info = operand_make(RDNA_I32, 1, &batch, NULL, 0);
  operand values = operand_make(RDNA_F32, 3, (int64_t[]){batch, n, 2}, NULL, 0);
  for (int64_t e = 0; e < batch * n * n; e++)
    set(&a, at(&a, e / n / n, e / n % n, e % n), e == 7 ? INFINITY : e == 40 ? NAN : (double)(e % 5));
  operand_upload(&a), operand_upload(&values), operand_upload(&info);
  assert_ok(rdna_op_eigen(stream, &a.tensor, &values.tensor, NULL, &info.tensor));
  operand_download(&values), operand_download(&info);
  for (int64_t b = 0; b < batch; b++) {
    assert_int_equal(operand_get(&info, b), b == 1 ? 0 : n);
    for (int64_t e = 0; e < 2 * n; e++) assert_true(isfinite(operand_get(&values, 2 * n * b + e)) == (b == 1));
  }
  operand_free(&a), operand_free(&values), operand_free(&info);
}

static void refused(void **state) {
  operand a = operand_make(RDNA_F32, 3, (int64_t[]){1, 257, 257}, NULL, 0);
  operand values = operand_make(RDNA_F32, 3, (int64_t[]){1, 257, 2}, NULL, 0);
  operand info = operand_make(RDNA_I32, 1, (int64_t[]){1}, NULL, 0);
  assert_refused(rdna_op_eigen(stream, &a.tensor, &values.tensor, NULL, &info.tensor), RDNA_UNSUPPORTED,
                 "up to 256 are offered");
  operand_free(&a), operand_free(&values), operand_free(&info);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(small),      cmocka_unit_test(large),
                                     cmocka_unit_test(sizes),      cmocka_unit_test(nothing),
                                     cmocka_unit_test(not_finite), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
