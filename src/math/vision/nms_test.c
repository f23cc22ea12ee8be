#include <math.h>

#include "math/common/test/operand.h"
#include "rdna/op/vision.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

struct problem {
  int64_t n;
  double threshold;
  bool strided, nans, ties;
};

/* As the header says: a NaN first, then from the highest score; equal ones by their number. */
static bool before(const operand *scores, int64_t step, int64_t i, int64_t j) {
  double a = operand_get(scores, i * step), b = operand_get(scores, j * step);
  if (isnan(a) || isnan(b)) return isnan(a) && (!isnan(b) || i < j);
  return a > b || (a == b && i < j);
}

/* The quotient as the type that is computed in rounds it. */
static double overlap(rdna_dtype dtype, const double *a, const double *b) {
  double wide = fmin(a[2], b[2]) - fmax(a[0], b[0]), high = fmin(a[3], b[3]) - fmax(a[1], b[1]);
  for (int d = 0; d < 4; d++) {
    if (isnan(a[d]) || isnan(b[d])) return -INFINITY;
  }
  double both = fmax(wide, 0) * fmax(high, 0);
  double all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;
  if (all == 0) return -INFINITY;
  return dtype == RDNA_F64 ? both / all : (double)((float)both / (float)all);
}

/* Corners are multiples of 1/8 below 32, so that areas and their sums are exact in f32. */
static void check(rdna_dtype dtype, const struct problem *p) {
  int64_t n = p->n, shape[] = {n, 4}, stride[] = {p->strided ? 1 : 4, p->strided ? n + 3 : 1},
          step = p->strided ? 2 : 1;
  operand boxes = operand_make(dtype, 2, shape, stride, p->strided), kept = operand_make(RDNA_I64, 1, &n, NULL, 0);
  operand scores = operand_make(dtype, 1, &n, &step, 0), count = operand_make(RDNA_I64, 0, NULL, NULL, 0);
  double *box = malloc((size_t)(4 * n + 1) * sizeof *box);
  int64_t *order = malloc((size_t)(n + 1) * sizeof *order);
  uint8_t *gone = calloc((size_t)n + 1, 1);
  assert_true(box && order && gone);
  for (int64_t i = 0; i < n; i++) {
    for (int d = 0; d < 4; d++) {
      double v = d < 2 ? (double)rdna__random_range(&random_state, 0, 96) / 8
                       : box[4 * i + d - 2] + (double)rdna__random_range(&random_state, 0, 64) / 8;
      if (p->nans && i % 11 == 3 && d == i % 4) v = NAN;
      operand_set(&boxes, i * stride[0] + d * stride[1], v);
      box[4 * i + d] = operand_get(&boxes, i * stride[0] + d * stride[1]);
    }
    double score = p->ties ? (double)rdna__random_range(&random_state, 0, 5) : rdna__random_normal(&random_state);
    operand_set(&scores, i * step, p->nans && i % 7 == 2 ? NAN : score);
    order[i] = i;
  }
  operand_upload(&boxes), operand_upload(&scores), operand_upload(&kept), operand_upload(&count);
  assert_ok(rdna_op_nms(stream, &boxes.tensor, &scores.tensor, p->threshold, &kept.tensor, &count.tensor));
  operand_download(&kept), operand_download(&count);
  for (int64_t i = 1; i < n; i++) { /* by insertion */
    for (int64_t j = i; j > 0 && before(&scores, step, order[j], order[j - 1]); j--) {
      int64_t v = order[j];
      order[j] = order[j - 1], order[j - 1] = v;
    }
  }
  int64_t want = 0;
  for (int64_t i = 0; i < n; i++) {
    if (gone[i]) continue;
    if ((double)order[i] != operand_get(&kept, want)) {
      fail_msg("%s, %lld boxes: number %lld kept is %g, want %lld", rdna_dtype_name(dtype), (long long)n,
               (long long)want, operand_get(&kept, want), (long long)order[i]);
    }
    want++;
    for (int64_t j = i + 1; j < n; j++) {
      if (overlap(dtype, box + 4 * order[i], box + 4 * order[j]) > p->threshold) gone[j] = 1;
    }
  }
  assert_int_equal((int64_t)operand_get(&count, 0), want);
  for (int64_t i = want; i < n; i++) assert_true(operand_is_poison(&kept, i));
  free(box), free(order), free(gone);
  operand_free(&boxes), operand_free(&scores), operand_free(&kept), operand_free(&count);
}

static void keeps_what_overlaps_little(void **state) {
  static const double thresholds[] = {0.5, 0.3, 0.7, 0, 1, -0.5, 0.25};
  for (int t = 0; t < 4; t++) {
    for (int k = 0; k < 24; k++) {
      struct problem p = {.n = k < 3 ? k : rdna__random_range(&random_state, 1, 400),
                          .threshold = thresholds[k % 7],
                          .strided = k % 3 == 1,
                          .nans = k % 4 == 2,
                          .ties = k % 5 < 2};
      check(types[t], &p);
    }
  }
}

/* More than a chunk of the kernels, with few and with many that are kept. */
static void goes_in_chunks(void **state) {
  check(RDNA_F32, &(struct problem){.n = 4097, .threshold = 0.05, .ties = true});
  check(RDNA_F64, &(struct problem){.n = 5000, .threshold = 0.6});
}

/* A third of the union is more than the f32 below 1/3, and not more than 1/3. */
static void the_threshold_itself_is_allowed(void **state) {
  static const double corners[] = {0, 0, 2, 1, 1, 0, 3, 1};
  for (int t = 0; t < 4; t += 3) {
    double third = t == 0 ? (double)(1.0f / 3.0f) : 1.0 / 3.0;
    for (int k = 0; k < 3; k++) {
      const int64_t shape[] = {2, 4}, two = 2;
      operand boxes = operand_make(types[t], 2, shape, NULL, 0), scores = operand_make(types[t], 1, &two, NULL, 0);
      operand kept = operand_make(RDNA_I64, 1, &two, NULL, 0), count = operand_make(RDNA_I64, 0, NULL, NULL, 0);
      for (int i = 0; i < 8; i++) operand_set(&boxes, i, corners[i]);
      for (int i = 0; i < 2; i++) operand_set(&scores, i, i);
      operand *all[] = {&boxes, &scores, &kept, &count};
      for (int i = 0; i < 4; i++) operand_upload(all[i]);
      double threshold = k == 0 ? nextafter(third, 0) : k == 1 ? third : nextafter(third, 1);
      assert_ok(rdna_op_nms(stream, &boxes.tensor, &scores.tensor, threshold, &kept.tensor, &count.tensor));
      operand_download(&count);
      assert_int_equal((int64_t)operand_get(&count, 0), k == 0 ? 1 : 2);
      for (int i = 0; i < 4; i++) operand_free(all[i]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_what_overlaps_little),
      cmocka_unit_test(goes_in_chunks),
      cmocka_unit_test(the_threshold_itself_is_allowed),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
