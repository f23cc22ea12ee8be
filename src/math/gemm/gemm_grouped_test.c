/* Products of groups against sums in double. */
#include "base/testing.h"

#include <stdlib.h>

#include "math/common/test/operand.h"
#include "rdna/op/gemm.h"

enum { ROWS, COLUMNS, SUMS };

typedef struct shape {
  int cut;
  int64_t m, n, k;
  int groups;
  int32_t ends[6];
  bool a_turned, b_turned;
} shape;

/* A matrix, or |groups| of them where that is not 0, whose rows or columns are 8 values further apart than they must.
 */
static operand matrix(rdna_dtype type, int64_t groups, int64_t rows, int64_t columns, bool turned) {
  int64_t ld = (turned ? rows : columns) + 8, sizes[] = {groups, rows, columns};
  int64_t stride[] = {(turned ? columns : rows) * ld, turned ? 1 : ld, turned ? ld : 1}, skip = groups ? 0 : 1;
  return operand_make(type, groups ? 3 : 2, sizes + skip, stride + skip, 0);
}
static double get(const operand *o, int64_t group, int64_t row, int64_t column) {
  const int64_t *stride = o->tensor.stride + o->tensor.rank - 2;
  int64_t at = row * stride[0] + column * stride[1];
  return operand_get(o, o->tensor.rank == 3 ? at + group * o->tensor.stride[0] : at);
}

/* The group that |i| of |size| belongs to; the number of groups where it is behind the last one. */
static int group_of(const shape *s, int64_t i) {
  int g = 0;
  while (g < s->groups && i >= s->ends[g]) g++;
  return g;
}

static void check(rdna_dtype type, const shape *s) {
  operand a = matrix(type, s->cut == COLUMNS ? s->groups : 0, s->m, s->k, s->a_turned);
  operand b = matrix(type, s->cut == ROWS ? s->groups : 0, s->k, s->n, s->b_turned);
  operand c = matrix(type, s->cut == SUMS ? s->groups : 0, s->m, s->n, false);
  operand ends = operand_make(RDNA_I32, 1, (int64_t[]){s->groups}, NULL, 0);
  for (int g = 0; g < s->groups; g++) operand_set(&ends, g, s->ends[g]);
  operand_fill(&a, 1), operand_fill(&b, 1);
  operand *all[] = {&a, &b, &c, &ends};
  for (int i = 0; i < 4; i++) operand_upload(all[i]);
  assert_ok(rdna_op_gemm_grouped(stream, &a.tensor, &b.tensor, &ends.tensor, &c.tensor));
  operand_download(&c);
  for (int64_t z = 0; z < (s->cut == SUMS ? s->groups : 1); z++) {
    for (int64_t i = 0; i < s->m; i++) {
      for (int64_t j = 0; j < s->n; j++) {
        int g = s->cut == ROWS ? group_of(s, i) : s->cut == COLUMNS ? group_of(s, j) : 0;
        double sum = 0, magnitude = 0;
        for (int64_t p = 0; p < s->k && g < s->groups; p++) {
          if (s->cut == SUMS && group_of(s, p) != z) continue;
          double v = get(&a, g, i, p) * get(&b, g, p, j);
          sum += v, magnitude += fabs(v);
        }
        assert_close(type, get(&c, z, i, j), sum, 0x1p-22 * (double)(s->k + 8) * magnitude, "gemm_grouped",
                     i * s->n + j);
      }
    }
  }
  for (int i = 0; i < 4; i++) operand_free(all[i]);
}

static void groups_of_any_size(void **state) {
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
  static const shape shapes[] = {
      {ROWS, 70, 40, 33, 4, {3, 3, 68, 70}, false, true},
      {ROWS, 128, 64, 32, 3, {64, 64, 128}, false, false},
      {ROWS, 9, 130, 16, 5, {0, 2, 2, 9, 9}, true, true},
      {ROWS, 20, 10, 8, 2, {5, 12}, false, true},
      {ROWS, 7, 5, 0, 2, {3, 7}, false, false},
      {ROWS, 1, 1, 1, 1, {1}, false, true},
      {COLUMNS, 40, 70, 33, 4, {3, 3, 68, 70}, false, false},
      {COLUMNS, 66, 20, 24, 3, {8, 16, 18}, true, true},
      {SUMS, 40, 33, 70, 4, {3, 3, 68, 70}, true, false},
      {SUMS, 64, 128, 96, 3, {32, 64, 96}, true, false},
      {SUMS, 5, 7, 20, 2, {11, 20}, false, true},
      {SUMS, 65, 9, 40, 3, {0, 24, 30}, false, false},
  };
  for (int t = 0; t < 3; t++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check(types[t], &shapes[i]);
}

/* What a router went wrong about must not reach other memory. */
static void ends_out_of_order(void **state) {
  const int32_t given[] = {5, -3, 100, 7}, taken[] = {5, 5, 20, 20};
  shape s = {ROWS, 20, 10, 8, 4, {5, 5, 20, 20}, false, false};
  operand a = matrix(RDNA_F32, 0, s.m, s.k, false), b = matrix(RDNA_F32, 4, s.k, s.n, false),
          c = matrix(RDNA_F32, 0, s.m, s.n, false), ends = operand_make(RDNA_I32, 1, (int64_t[]){4}, NULL, 0),
          right = operand_make(RDNA_I32, 1, (int64_t[]){4}, NULL, 0), want = matrix(RDNA_F32, 0, s.m, s.n, false);
  for (int g = 0; g < 4; g++) operand_set(&ends, g, given[g]), operand_set(&right, g, taken[g]);
  operand_fill(&a, 1), operand_fill(&b, 1);
  operand *all[] = {&a, &b, &c, &ends, &right, &want};
  for (int i = 0; i < 6; i++) operand_upload(all[i]);
  assert_ok(rdna_op_gemm_grouped(stream, &a.tensor, &b.tensor, &ends.tensor, &c.tensor));
  assert_ok(rdna_op_gemm_grouped(stream, &a.tensor, &b.tensor, &right.tensor, &want.tensor));
  operand_download(&c), operand_download(&want);
  for (int64_t i = 0; i < operand_span(&c); i++)
    if (i % (s.n + 8) < s.n) assert_true(operand_get(&c, i) == operand_get(&want, i));
  for (int i = 0; i < 6; i++) operand_free(all[i]);
}

static void shapes_that_disagree_are_refused(void **state) {
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  operand a = matrix(RDNA_F32, 0, 6, 4, false), b = matrix(RDNA_F32, 3, 4, 5, false),
          c = matrix(RDNA_F32, 0, 6, 5, false), ends = operand_make(RDNA_I32, 1, (int64_t[]){3}, NULL, 0),
          two = operand_make(RDNA_I32, 1, (int64_t[]){2}, NULL, 0);
  operand *all[] = {&a, &b, &c, &ends, &two};
  const rdna_tensor *A = &a.tensor, *B = &b.tensor, *C = &c.tensor, *E = &ends.tensor;
  for (int i = 0; i < 5; i++) operand_upload(all[i]);
  assert_refused(rdna_op_gemm_grouped(stream, A, B, &two.tensor, C), bad, "ends is i32 (2)", "for each of ends");
  assert_refused(rdna_op_gemm_grouped(stream, A, A, E, C), bad, "gemm_grouped", "rank 3");
  assert_refused(rdna_op_gemm_grouped(stream, C, B, E, A), bad, "a is f32 (6, 5)", "(m, k)");
  assert_refused(rdna_op_gemm_grouped(stream, A, B, C, C), bad, "ends is f32", "i32");
  assert_refused(rdna_op_gemm_grouped(NULL, A, B, E, C), bad, "stream", "NULL");
  for (int i = 0; i < 5; i++) operand_free(all[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(groups_of_any_size),
      cmocka_unit_test(ends_out_of_order),
      cmocka_unit_test(shapes_that_disagree_are_refused),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
