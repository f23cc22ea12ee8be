/* Orthogonal columns in double, and what rotations leave as it is: the products of the rows. Eigenvalues beside those
 * of the textbook's rotations in long double. */
#include "math/common/test/operand.h"
#include "math/linalg/matrices_test.h"

enum kind { NORMAL, ALIKE, GRADED };

/* What kind says: normal values; a matrix of rank 3; columns of ever smaller size, some of them 0. */
static double value(enum kind kind, int64_t i, int64_t j) {
  double v = rdna__random_normal(&random_state);
  if (kind == ALIKE) return cos((double)i) + (double)(j % 5) * sin((double)i) + (double)(j * j % 7) * (double)(i % 3);
  return kind == GRADED ? (j % 6 == 4 ? 0 : v * pow(10, -(double)j / 4)) : v;
}

static double product(const operand *a, int64_t b, int64_t i, int64_t j, bool of_rows) {
  double sum = 0;
  for (int64_t k = 0; k < a->tensor.shape[of_rows ? 2 : 1]; k++) {
    sum += operand_get(a, of_rows ? at(a, b, i, k) : at(a, b, k, i)) *
           operand_get(a, of_rows ? at(a, b, j, k) : at(a, b, k, j));
  }
  return sum;
}

static void orthogonalize(rdna_dtype dtype, int64_t batch, int64_t m, int64_t n, bool columns, enum kind kind) {
  double negligible = 2 * unit_of(dtype);
  int64_t sweeps = 20;
  operand a = matrices(dtype, batch, m, n, columns);
  operand turned = operand_make(RDNA_I32, 2, (int64_t[]){batch, sweeps}, NULL, 0);
  for (int64_t e = 0; e < batch * m * n; e++) {
    set(&a, at(&a, e / n / m, e / n % m, e % n), value(kind, e / n % m, e % n));
  }
  operand_upload(&a), operand_upload(&turned);
  double *rows = malloc(((size_t)(batch * m * m) + 1) * sizeof *rows);
  assert_non_null(rows);
  for (int64_t e = 0; e < batch * m * m; e++) rows[e] = product(&a, e / m / m, e / m % m, e % m, true);
  assert_ok(rdna_op_orthogonalize(stream, negligible, &a.tensor, &turned.tensor));
  operand_download(&a), operand_download(&turned);
  double bound = 8 * (double)(m + n + 8) * unit_of(dtype);
  for (int64_t b = 0; b < batch; b++) {
    if (operand_get(&turned, b * sweeps + sweeps - 1) != 0)
      fail_msg("%s %lld x %lld kind %d does not end", rdna_dtype_name(dtype), (long long)m, (long long)n, kind);
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j < i; j++) {
        double length = sqrt(product(&a, b, i, i, false)) * sqrt(product(&a, b, j, j, false));
        double p = product(&a, b, i, j, false);
        bool there =
            product(&a, b, i, i, false) > pow(negligible, 2) && product(&a, b, j, j, false) > pow(negligible, 2);
        if (there && !(fabs(p) <= bound * length)) {
          fail_msg("%s %lld x %lld kind %d: columns %lld and %lld have the product %g, lengths' %g",
                   rdna_dtype_name(dtype), (long long)m, (long long)n, kind, (long long)i, (long long)j, p, length);
        }
      }
    }
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < m; j++) {
        double size = sqrt(rows[(b * m + i) * m + i] * rows[(b * m + j) * m + j]), trace = 0;
        for (int64_t k = 0; k < m; k++) trace += rows[(b * m + k) * m + k];
        if (!(fabs(product(&a, b, i, j, true) - rows[(b * m + i) * m + j]) <= 8 * bound * (size + trace / (double)m)))
          fail_msg("rows %lld and %lld have another product", (long long)i, (long long)j);
      }
    }
  }
  free(rows);
  operand_free(&a), operand_free(&turned);
}

static void becomes_orthogonal(void **state) {
  static const int64_t sizes[][2] = {{1, 1}, {2, 5}, {20, 9}, {33, 32}, {35, 34}, {20, 50}};
  for (int s = 0; s < 6; s++) {
    for (int k = s % 2; k < 6; k += s < 3 ? 1 : 2)
      orthogonalize((k + s / 2) & 1 ? RDNA_F64 : RDNA_F32, 1 + (s == 2), sizes[s][0], sizes[s][1], (k + s) & 2,
                    (enum kind)(k / 2));
  }
}

static void nothing(void **state) {
  orthogonalize(RDNA_F32, 2, 0, 3, false, NORMAL);
  orthogonalize(RDNA_F32, 2, 3, 0, false, NORMAL);
  orthogonalize(RDNA_F64, 0, 5, 5, false, NORMAL);
}

/* One sweep is not enough, and says so. */
static void too_few(void **state) {
  operand a = operand_make(RDNA_F32, 3, (int64_t[]){1, 34, 34}, NULL, 0);
  operand turned = operand_make(RDNA_I32, 2, (int64_t[]){1, 1}, NULL, 0);
  operand_fill(&a, 1), operand_upload(&turned);
  assert_ok(rdna_op_orthogonalize(stream, 0, &a.tensor, &turned.tensor));
  operand_download(&a), operand_download(&turned);
  assert_int_equal(operand_get(&turned, 0), 1);
  operand_free(&a), operand_free(&turned);
}

/* The values on the diagonal of a (n, n) after rotations one by one (Golub and Van Loan, 8.5): the largest first. */
static void eigenvalues(int64_t n, long double *a) {
  for (int sweep = 0; sweep < 60; sweep++) {
    for (int64_t p = 0; p < n; p++) {
      for (int64_t q = p + 1; q < n; q++) {
        long double product = a[p * n + q], cotangent = (a[q * n + q] - a[p * n + p]) / (2 * product);
        if (product == 0) continue;
        long double t = copysignl(1, cotangent) / (fabsl(cotangent) + sqrtl(cotangent * cotangent + 1));
        long double c = 1 / sqrtl(t * t + 1);
        for (int side = 0; side < 2; side++) {
          for (int64_t k = 0; k < n; k++) {
            long double *x = side ? &a[k * n + p] : &a[p * n + k], *y = side ? &a[k * n + q] : &a[q * n + k], left = *x;
            *x = c * left - t * c * *y, *y = t * c * left + c * *y;
          }
        }
        a[p * n + q] = a[q * n + p] = 0;
      }
    }
  }
  for (int64_t i = 0; i < n; i++) a[i] = a[i * n + i];
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = i + 1; j < n; j++) {
      long double v = a[i];
      if (a[j] > v) a[i] = a[j], a[j] = v;
    }
  }
}

/* A symmetric matrix: normal values, of rank 3, or D M D with D of 1 to 10^-4, out of order, and M near the identity.
 */
static void set_symmetric(operand *a, int64_t b, enum kind kind) {
  int64_t n = a->tensor.shape[1];
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j <= i; j++) {
      double v = kind == ALIKE ? cos((double)(i + b)) * cos((double)(j + b)) + (double)((i % 7) * (j % 7)) / 20 - 0.25
                               : value(NORMAL, i, j);
      if (kind == GRADED)
        v = (v * (i == j ? 0.1 : 0.3) / sqrt((double)n) + (i == j)) *
            pow(10, -4 * (double)(i * 5 % n + j * 5 % n) / (double)n);
      set(a, at(a, b, i, j), v), set(a, at(a, b, j, i), v);
    }
  }
}

static int downwards(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* V is orthogonal, a V = V times the diagonal, and the diagonal holds a's eigenvalues: of graded matrices each to its
 * own last digits. In parts of |sweeps|, until nothing turns. */
static void diagonalize(rdna_dtype dtype, int64_t batch, int64_t n, bool columns, enum kind kind, int64_t sweeps) {
  operand a = matrices(dtype, batch, n, n, columns), v = matrices(dtype, batch, n + 2, n, !columns);
  operand turned = operand_make(RDNA_I32, 2, (int64_t[]){batch, sweeps}, NULL, 0);
  double bound = 4 * (double)(n + 8) * unit_of(dtype), *before = malloc((size_t)(batch * n * n) * sizeof *before);
  long double *exact = malloc((size_t)(n * n) * sizeof *exact);
  double *found = malloc((size_t)n * sizeof *found);
  assert_true(before && exact && found);
  for (int64_t b = 0; b < batch; b++) {
    set_symmetric(&a, b, kind);
    for (int64_t e = 0; e < n * n; e++) before[b * n * n + e] = operand_get(&a, at(&a, b, e / n, e % n));
    for (int64_t e = 0; e < (n + 2) * n; e++) set(&v, at(&v, b, e / n, e % n), e / n == e % n);
  }
  operand_upload(&a), operand_upload(&v);
  for (int64_t done = 0; done == 0 || operand_get(&turned, sweeps - 1) || operand_get(&turned, batch * sweeps - 1);
       done += sweeps) {
    if (done >= 30) fail_msg("%s %lld kind %d does not end", rdna_dtype_name(dtype), (long long)n, kind);
    operand_upload(&turned);
    assert_ok(rdna_op_diagonalize(stream, &a.tensor, &v.tensor, &turned.tensor));
    operand_download(&turned);
  }
  operand_download(&a), operand_download(&v);
  for (int64_t b = 0; b < batch; b++) {
    const double *of = before + b * n * n;
    double size = 0;
    for (int64_t e = 0; e < n * n; e++) exact[e] = of[e];
    eigenvalues(n, exact);
    for (int64_t i = 0; i < n; i++)
      found[i] = operand_get(&a, at(&a, b, i, i)), size = fmax(size, fabs((double)exact[i]));
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j < n; j++) {
        double rest = -found[j] * operand_get(&v, at(&v, b, i, j)), product = 0;
        for (int64_t k = 0; k < n; k++) {
          rest += of[i * n + k] * operand_get(&v, at(&v, b, k, j));
          product += operand_get(&v, at(&v, b, k, i)) * operand_get(&v, at(&v, b, k, j));
        }
        if (!(fabs(rest) <= bound * size && fabs(product - (i == j)) <= bound)) {
          fail_msg("%s %lld kind %d, %lld %lld: residual %g, product %g", rdna_dtype_name(dtype), (long long)n, kind,
                   (long long)i, (long long)j, rest / size, product);
        }
      }
    }
    qsort(found, (size_t)n, sizeof *found, downwards);
    for (int64_t i = 0; i < n; i++) {
      double e = (double)exact[i];
      if (!(fabs(found[i] - e) <= bound * (kind == GRADED ? fabs(e) : size))) {
        fail_msg("%s %lld kind %d: eigenvalue %lld is %.9g, not %.9g", rdna_dtype_name(dtype), (long long)n, kind,
                 (long long)i, found[i], e);
      }
    }
  }
  free(before), free(exact), free(found);
  operand_free(&a), operand_free(&v), operand_free(&turned);
}

static void becomes_diagonal(void **state) {
  static const int64_t sizes[] = {1, 2, 9, 32, 33, 50};
  for (int s = 0; s < 6; s++) {
    for (int k = s % 2; k < 6; k += s < 3 ? 1 : 2)
      diagonalize((k + s / 2) & 1 ? RDNA_F64 : RDNA_F32, 1 + (s == 2 || s == 4), sizes[s], (k + s) & 2,
                  (enum kind)(k / 2), sizes[s] > 32 ? 5 : 30);
  }
}

static void nothing_to_diagonalize(void **state) {
  static const int64_t shapes[][3] = {{0, 5, 5}, {2, 0, 0}};
  for (int i = 0; i < 2; i++) {
    operand a = operand_make(RDNA_F32, 3, shapes[i], NULL, 0);
    operand turned = operand_make(RDNA_I32, 2, (int64_t[]){shapes[i][0], 3}, NULL, 0);
    operand_upload(&a), operand_upload(&turned);
    assert_ok(rdna_op_diagonalize(stream, &a.tensor, NULL, &turned.tensor));
    operand_download(&turned);
    for (int64_t e = 0; e < shapes[i][0] * 3; e++) assert_int_equal(operand_get(&turned, e), 0);
    operand_free(&a), operand_free(&turned);
  }
}

/* Without vectors the values are the same bits; what is not a number ends too. */
static void values_alone(void **state) {
  for (int64_t n = 20; n < 50; n += 20) {
    operand a = matrices(RDNA_F64, 1, n, n, false), w = matrices(RDNA_F64, 1, n, n, false);
    operand v = matrices(RDNA_F64, 1, 3, n, false);
    operand turned = operand_make(RDNA_I32, 2, (int64_t[]){1, 20}, NULL, 0);
    set_symmetric(&a, 0, NORMAL);
    for (int64_t e = 0; e < n * n; e++) set(&w, at(&w, 0, e / n, e % n), operand_get(&a, at(&a, 0, e / n, e % n)));
    operand_upload(&a), operand_upload(&w), operand_upload(&v), operand_upload(&turned);
    assert_ok(rdna_op_diagonalize(stream, &a.tensor, &v.tensor, &turned.tensor));
    assert_ok(rdna_op_diagonalize(stream, &w.tensor, NULL, &turned.tensor));
    operand_download(&a), operand_download(&w);
    for (int64_t i = 0; i < n; i++) assert_true(operand_get(&a, at(&a, 0, i, i)) == operand_get(&w, at(&w, 0, i, i)));
    set(&a, 0, NAN), operand_upload(&a);
    assert_ok(rdna_op_diagonalize(stream, &a.tensor, NULL, &turned.tensor));
    operand_free(&a), operand_free(&w), operand_free(&v), operand_free(&turned);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(becomes_orthogonal),
                                     cmocka_unit_test(nothing),
                                     cmocka_unit_test(too_few),
                                     cmocka_unit_test(becomes_diagonal),
                                     cmocka_unit_test(nothing_to_diagonalize),
                                     cmocka_unit_test(values_alone)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
