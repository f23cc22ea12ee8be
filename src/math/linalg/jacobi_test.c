/* Orthogonal columns in double, and what rotations leave as it is: the products of the rows. */
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(becomes_orthogonal), cmocka_unit_test(nothing),
                                     cmocka_unit_test(too_few)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
