/* Bags of rows beside loops in double. */
#include "math/common/test/operand.h"
#include "rdna/op/index.h"

enum { ROWS = 23 };

static void check(rdna_dtype dtype, rdna_dtype index, rdna_bag mode, int64_t cols, int64_t count, int64_t bags,
                  bool has_end, bool weighted, int64_t padding, bool outputs) {
  int64_t ends = bags + has_end, stride[] = {cols + 3, 1};
  operand table = operand_make(dtype, 2, (int64_t[]){ROWS, cols}, stride, 1);
  operand out = operand_make(dtype, 2, (int64_t[]){bags, cols}, NULL, 0);
  operand largest = operand_make(RDNA_I64, 2, (int64_t[]){bags, cols}, NULL, 0);
  operand indices = operand_make(index, 1, &count, NULL, 0), begins = operand_make(index, 1, &ends, NULL, 0);
  operand weights = operand_make(dtype, 1, &count, NULL, 0), bag_of = operand_make(RDNA_I64, 1, &count, NULL, 0);
  operand sizes = operand_make(RDNA_I64, 1, &bags, NULL, 0);
  operand_fill(&table, 1), operand_fill(&weights, 1);
  for (int64_t i = 0; i < count; i++) operand_set(&indices, i, (double)rdna__random_range(&random_state, 0, ROWS - 1));
  int64_t at = has_end ? 1 : 0; /* the first need not be 0 */
  for (int64_t i = 0; i < ends; i++) {
    operand_set(&begins, i, (double)at);
    at += rdna__random_range(&random_state, 0, 2 * count / (bags + 1));
    at = at < count ? at : count;
  }
  operand_upload(&indices), operand_upload(&begins), operand_upload(&out), operand_upload(&largest);
  operand_upload(&bag_of), operand_upload(&sizes);
  assert_ok(rdna_op_embedding_bag(stream, mode, &table.tensor, &indices.tensor, &begins.tensor, has_end,
                                  weighted ? &weights.tensor : NULL, padding, &out.tensor,
                                  outputs ? &largest.tensor : NULL, outputs ? &bag_of.tensor : NULL,
                                  outputs ? &sizes.tensor : NULL, NULL));
  operand_download(&out), operand_download(&largest), operand_download(&bag_of), operand_download(&sizes);
  int64_t covered = 0;
  for (int64_t b = 0; b < bags; b++) {
    int64_t from = (int64_t)operand_get(&begins, b), to = b + 1 < ends ? (int64_t)operand_get(&begins, b + 1) : count;
    covered += to - from;
    for (int64_t c = 0; c < cols; c++) {
      double sum = 0, size = 0, magnitude = 0, best = 0;
      for (int64_t i = from; i < to; i++) {
        double row = operand_get(&indices, i), v = operand_get(&table, (int64_t)row * stride[0] + c);
        if ((int64_t)row == padding) continue;
        double w = weighted ? operand_get(&weights, i) : 1;
        bool more = size == 0 || v > sum;
        if (mode == RDNA_BAG_MAX) {
          best = more ? row : best, sum = more ? v : sum;
        } else {
          sum += v * w, magnitude += fabs(v * w);
        }
        size++;
      }
      if (mode == RDNA_BAG_MEAN && size > 0) sum /= size, magnitude /= size;
      double error = mode == RDNA_BAG_MAX ? 0 : (size + 2) * magnitude * (dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24);
      assert_close(dtype, operand_get(&out, b * cols + c), sum, error, "bag", b * cols + c);
      if (outputs && mode == RDNA_BAG_MAX) assert_true(operand_get(&largest, b * cols + c) == best);
      if (outputs) assert_true(operand_get(&sizes, b) == size);
    }
    for (int64_t i = from; i < to && outputs; i++) assert_true(operand_get(&bag_of, i) == (double)b);
  }
  int64_t poison = 0;
  for (int64_t i = 0; i < count; i++) poison += operand_is_poison(&bag_of, i);
  assert_int_equal(poison, outputs ? count - covered : count);
  operand_free(&table), operand_free(&out), operand_free(&largest), operand_free(&indices), operand_free(&begins);
  operand_free(&weights), operand_free(&bag_of), operand_free(&sizes);
}

static void match_loops(void **state) {
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};
  static const int64_t shapes[][3] = {{5, 40, 9}, {16, 7, 7}, {1, 100, 3}, {300, 20, 4}, {64, 0, 5}, {33, 50, 1}};
  for (int i = 0; i < 4 * 6; i++) {
    const int64_t *s = shapes[i / 4];
    rdna_bag mode = (rdna_bag)(i % 3);
    bool weighted = mode == RDNA_BAG_SUM && i % 2;
    check(types[i % 4], i % 5 ? RDNA_I64 : RDNA_I32, mode, s[0], s[1], s[2], i % 4 == 1 && s[1] > 0, weighted,
          i % 3 ? i % ROWS : -1, i % 5 != 3);
  }
  check(RDNA_F32, RDNA_I64, RDNA_BAG_SUM, 4, 10, 0, false, false, -1, true);
}

static void indices_outside(void **state) {
  operand table = operand_make(RDNA_F32, 2, (int64_t[]){4, 3}, NULL, 0),
          out = operand_make(RDNA_F32, 2, (int64_t[]){1, 3}, NULL, 0);
  operand indices = operand_make(RDNA_I64, 1, (int64_t[]){3}, NULL, 0),
          begins = operand_make(RDNA_I64, 1, (int64_t[]){1}, NULL, 0);
  operand word = operand_make(RDNA_I32, 1, (int64_t[]){1}, NULL, 0);
  for (int bad = 0; bad < 3; bad++) {
    operand_fill(&table, 1);
    operand_set(&indices, 0, 2),
        operand_set(&indices, 1,
                    bad == 0   ? 1
                    : bad == 1 ? 4
                               : -1),
        operand_set(&indices, 2, 3);
    operand_set(&begins, 0, 0), operand_set(&word, 0, 0);
    operand_upload(&indices), operand_upload(&begins), operand_upload(&word), operand_upload(&out);
    assert_ok(rdna_op_embedding_bag(stream, RDNA_BAG_SUM, &table.tensor, &indices.tensor, &begins.tensor, false, NULL,
                                    -1, &out.tensor, NULL, NULL, NULL, word.tensor.data));
    operand_download(&out), operand_download(&word);
    assert_true(operand_get(&word, 0) == (bad > 0));
    for (int64_t c = 0; c < 3; c++) {
      double want = operand_get(&table, 6 + c) + (bad ? 0 : operand_get(&table, 3 + c)) + operand_get(&table, 9 + c);
      assert_close(RDNA_F32, operand_get(&out, c), want, 1e-6, "bag", c);
    }
  }
  operand_free(&table), operand_free(&out), operand_free(&indices), operand_free(&begins), operand_free(&word);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(match_loops), cmocka_unit_test(indices_outside)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
