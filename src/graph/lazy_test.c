/* Lazy arrays: the functions of rdna/array.h have the values that they have of arrays with values, and gradients. The
 * device: RDNA_TEST_DEVICE. */
#include "rdna/graph_array.h"

#include "graph/gradient_test.h"

/* A program that knows nothing of graphs. It uses every function that records. */
static rdna_array *program(rdna_array *x, rdna_array *y) {
  rdna_array *t[24], *result;
  int n = 0;
#define STEP(call) \
  assert_ok(call); \
  n++
  STEP(rdna_array_map(x, RDNA_MAP_TANH, zero, zero, &t[n]));                                     /* (2, 3) */
  STEP(rdna_array_zip(t[0], y, RDNA_ZIP_MUL, zero, zero, &t[n]));                                /* by (3) */
  STEP(rdna_array_zip_number(t[1], rdna_scalar_real(2), true, RDNA_ZIP_SUB, zero, zero, &t[n])); /* 2 - */
  STEP(rdna_array_permute(t[2], NULL, &t[n]));                                                   /* (3, 2) */
  STEP(rdna_array_matmul(t[2], t[3], &t[n]));                                                    /* (2, 2) */

  STEP(rdna_array_slice(t[2], 1, 2, 2, -2, &t[n]));                                      /* (2, 2) */
  STEP(rdna_array_compare(t[4], t[5], RDNA_COMPARE_GT, &t[n]));                          /* (2, 2) */
  STEP(rdna_array_where(t[6], t[4], t[5], &t[n]));                                       /* (2, 2) */
  STEP(rdna_array_expand(t[7], 1, &t[n]));                                               /* (2, 1, 2) */
  STEP(rdna_array_broadcast(t[8], 3, (int64_t[]){2, 3, 2}, &t[n]));                      /* (2, 3, 2) */
  STEP(rdna_array_reshape(t[9], 2, (int64_t[]){4, -1}, &t[n]));                          /* (4, 3) */
  STEP(rdna_array_concat((rdna_array *[]){t[10], x}, 2, 0, &t[n]));                      /* (6, 3) */
  STEP(rdna_array_compare_number(t[11], rdna_scalar_real(0.5), RDNA_COMPARE_LT, &t[n])); /* (6, 3) */
  STEP(rdna_array_cast(t[12], RDNA_F64, &t[n]));                                         /* 0 and 1 */
  STEP(rdna_array_compare(t[13], NULL, RDNA_COMPARE_LOGICAL_NOT, &t[n]));                /* (6, 3) */
  STEP(rdna_array_cast(t[14], RDNA_I64, &t[n]));                                         /* 1 and 0 */
  STEP(rdna_array_gather(t[11], 0, t[15], &t[n]));                                       /* (6, 3) */
  STEP(rdna_array_zip(t[16], t[13], RDNA_ZIP_ADD, zero, zero, &t[n]));                   /* (6, 3) */
  STEP(rdna_array_reduce(t[17], RDNA_REDUCTION_LOGSUMEXP, 2, true, 0, &t[n]));           /* (6, 1) */
  STEP(rdna_array_squeeze(t[18], 1, &t[n]));                                             /* (6) */
  STEP(rdna_array_contiguous(t[19], &t[n]));
#undef STEP
  result = rdna_array_retain(t[n - 1]);
  for (int i = 0; i < n; i++) rdna_array_release(t[i]);
  return result;
}

static double total(rdna_array *x, rdna_array *y) {
  double values[6], sum = 0;
  rdna_array *result = program(x, y);
  assert_int_equal(rdna_array_tensor(result)->shape[0], 6);
  download(result, values);
  rdna_array_release(result);
  for (int i = 0; i < 6; i++) sum += values[i];
  return sum;
}

static void programs(void **state) {
  const rdna__type of_x = F64(2, 3), of_y = F64(3);
  double values[9], slopes[9];
  for (int i = 0; i < 9; i++) values[i] = uniform(-1, 1);
  rdna_array *x = upload(&of_x, values), *y = upload(&of_y, values + 6), *lazy[2], *sum, *gradients[2], *made[3];
  assert_ok(rdna_array_lazy(x, &lazy[0]));
  assert_ok(rdna_array_lazy(y, &lazy[1]));
  assert_true(rdna_array_is_lazy(lazy[0]) && !rdna_array_is_lazy(x) && !rdna_array_is_lazy(NULL));
  double want = total(x, y);
  assert_true(fabs(total(lazy[0], lazy[1]) - want) < 1e-12); /* computed because it is downloaded */
  assert_true(fabs(total(lazy[0], y) - want) < 1e-12);
  rdna_array *result = program(lazy[0], lazy[1]);
  assert_ok(rdna_array_reduce(result, RDNA_REDUCTION_SUM, 1, false, 0, &sum));
  assert_ok(rdna_array_gradients(&sum, 1, NULL, lazy, 2, gradients));
  assert_ok(rdna_array_evaluate((rdna_array *[]){gradients[0], gradients[1], x}, 3, made));
  download(made[0], slopes);
  download(made[1], slopes + 6);
  for (int i = 0; i < 9; i++) {
    double sums[2], h = 1e-5;
    for (int side = 0; side < 2; side++) {
      double v = values[i];
      values[i] = v + (side ? -h : h);
      rdna_array *moved_x = upload(&of_x, values), *moved_y = upload(&of_y, values + 6);
      sums[side] = total(moved_x, moved_y);
      rdna_array_release(moved_x);
      rdna_array_release(moved_y);
      values[i] = v;
    }
    assert_true(fabs(slopes[i] - (sums[0] - sums[1]) / (2 * h)) < 1e-6);
  }
  rdna_array *all[] = {x, y, lazy[0], lazy[1], sum, result, gradients[0], gradients[1], made[0], made[1], made[2]};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) rdna_array_release(all[i]);
}

/* A plan that is run with several arrays. */
static void plans(void **state) {
  const rdna__type of_x = F64(2, 3), of_y = F64(3);
  rdna_array *inputs[2], *result, *out;
  rdna_plan *plan;
  assert_ok(rdna_array_placeholder(stream, RDNA_F64, 2, of_x.shape, &inputs[0]));
  assert_ok(rdna_array_placeholder(stream, RDNA_F64, 1, of_y.shape, &inputs[1]));
  result = program(inputs[0], inputs[1]);
  assert_ok(rdna_array_plan(&result, 1, inputs, 2, &plan));
  double ignored[6];
  assert_refused(rdna_array_to_host(result, ignored, sizeof ignored), RDNA_INVALID_ARGUMENT, "need an input");
  rdna_array_release(result);
  for (int trial = 0; trial < 3; trial++) {
    double values[9], got[6], sum = 0;
    for (int i = 0; i < 9; i++) values[i] = uniform(-1, 1);
    rdna_array *given[2] = {upload(&of_x, values), upload(&of_y, values + 6)};
    assert_ok(rdna_plan_run(plan, given, 2, &out));
    download(out, got);
    for (int i = 0; i < 6; i++) sum += got[i];
    assert_true(fabs(sum - total(given[0], given[1])) < 1e-12);
    rdna_array_release(out);
    for (int i = 0; i < 2; i++) rdna_array_release(given[i]);
  }
  rdna_plan_release(plan);
  for (int i = 0; i < 2; i++) rdna_array_release(inputs[i]);
}

static void refusals(void **state) {
  const rdna__type of_x = F64(2, 3), of_y = F64(4);
  double values[6] = {0};
  rdna_array *x = upload(&of_x, values), *y = upload(&of_y, values), *lazy, *out = NULL;
  rdna_plan *plan;
  assert_ok(rdna_array_lazy(x, &lazy));
  assert_refused(rdna_array_zip(lazy, y, RDNA_ZIP_ADD, zero, zero, &out), RDNA_INVALID_ARGUMENT, "add",
                 "f64 (2, 3) and f64 (4)");
  assert_refused(rdna_array_diagonal(lazy, 0, 1, 0, &out), RDNA_UNSUPPORTED, "f64 (2, 3)", "no values yet");
  assert_refused(rdna_array_bits(lazy, RDNA_I64, &out), RDNA_UNSUPPORTED, "no values yet");
  assert_refused(rdna_op_map(stream, RDNA_MAP_EXP, rdna_array_tensor(lazy), zero, zero, rdna_array_tensor(x)),
                 RDNA_INVALID_ARGUMENT, "data");
  assert_refused(rdna_array_gradients(&lazy, 1, NULL, &lazy, 1, &out), RDNA_INVALID_ARGUMENT, "not a single value");
  assert_refused(rdna_array_gradients(&lazy, 1, NULL, &x, 1, &out), RDNA_INVALID_ARGUMENT, "input 0 is not a lazy");
  assert_refused(rdna_array_plan(&lazy, 1, &x, 1, &plan), RDNA_INVALID_ARGUMENT, "input 0 is not a lazy");
  assert_refused(rdna_array_plan(&lazy, 1, &lazy, 1, &plan), RDNA_INVALID_ARGUMENT, "no rdna_record_input");
  assert_refused(rdna_array_concat(NULL, 0, 0, &out), RDNA_INVALID_ARGUMENT, "not 0");
  assert_refused(rdna_array_concat((rdna_array *[]){x, y}, 2, 0, &out), RDNA_INVALID_ARGUMENT,
                 "f64 (2, 3) and f64 (4)");
  assert_null(out);
  rdna_array_release(lazy);
  rdna_array_release(x);
  rdna_array_release(y);
}

/* ---- operators of one's own: x^3, and where the largest x is ---- */

typedef struct cube {
  int runs, slopes, gone;
  rdna_status ends; /* how runs do */
  bool wrong;       /* results of another type */
} cube;

static rdna_status times(rdna_array *a, rdna_array *b, rdna_array **out) {
  return rdna_array_zip(a, b, RDNA_ZIP_MUL, zero, zero, out);
}
static rdna_status run_cube(void *data, rdna_array *const *inputs, rdna_array **results) {
  cube *own = data;
  rdna_array *square;
  own->runs++;
  assert_false(rdna_array_is_lazy(inputs[0]));
  RDNA_TRY(times(inputs[0], inputs[0], &square));
  rdna_status status = times(square, inputs[0], &results[0]);
  rdna_array_release(square);
  if (status == RDNA_OK) status = rdna_array_reduce(inputs[0], RDNA_REDUCTION_ARGMAX, 3, false, 0, &results[1]);
  if (status == RDNA_OK && own->wrong) {
    rdna_array_release(results[1]);
    status = rdna_array_map(inputs[0], RDNA_MAP_ABS, zero, zero, &results[1]);
  }
  return status == RDNA_OK ? own->ends : status;
}
/* 3 x^2 g, by arrays that are differentiated themselves */
static rdna_status differentiate_cube(void *data, rdna_array *const *inputs, rdna_array *const *results,
                                      rdna_array *const *upstream, rdna_array **gradients) {
  rdna_array *t[2];
  ((cube *)data)->slopes++;
  assert_true(rdna_array_is_lazy(results[0]) && rdna_array_is_lazy(results[1]) && upstream[0] && !upstream[1]);
  RDNA_TRY(times(inputs[0], inputs[0], &t[0]));
  RDNA_TRY(rdna_array_zip_number(t[0], rdna_scalar_real(3), false, RDNA_ZIP_MUL, zero, zero, &t[1]));
  rdna_status status = times(t[1], upstream[0], gradients);
  for (int i = 0; i < 2; i++) rdna_array_release(t[i]);
  return status;
}
static void release_cube(void *data) { ((cube *)data)->gone++; }

static rdna_status call_cube(cube *own, rdna_array *x, rdna_array **out) {
  rdna_array_operator op = {sizeof op, "cube", own, release_cube, run_cube, differentiate_cube};
  rdna_tensor types[2] = {*rdna_array_tensor(x), rdna_tensor_contiguous(NULL, RDNA_I64, 0, NULL)};
  return rdna_array_call(&op, &x, 1, types, 2, out);
}

static rdna_array *sum_of(rdna_array *x) {
  rdna_array *sum;
  assert_ok(rdna_array_reduce(x, RDNA_REDUCTION_SUM, 3, false, 0, &sum));
  return sum;
}

static void own_operators(void **state) {
  const rdna__type of_x = F64(2, 3);
  cube own = {0};
  double values[6], got[6];
  for (int i = 0; i < 6; i++) values[i] = uniform(-2, 2);
  rdna_array *x = upload(&of_x, values), *lazy, *made[2], *first, *second, *sums[2];
  assert_ok(rdna_array_lazy(x, &lazy));
  assert_ok(call_cube(&own, lazy, made));
  sums[0] = sum_of(made[0]);
  assert_ok(rdna_array_gradients(&sums[0], 1, NULL, &lazy, 1, &first));
  sums[1] = sum_of(first);
  assert_ok(rdna_array_gradients(&sums[1], 1, NULL, &lazy, 1, &second));
  assert_int_equal(own.runs, 0);
  download(made[0], got);
  for (int i = 0; i < 6; i++) assert_true(fabs(got[i] - values[i] * values[i] * values[i]) < 1e-12);
  download(first, got);
  for (int i = 0; i < 6; i++) assert_true(fabs(got[i] - 3 * values[i] * values[i]) < 1e-12);
  download(second, got);
  for (int i = 0; i < 6; i++) assert_true(fabs(got[i] - 6 * values[i]) < 1e-12);
  download(made[1], got);
  for (int i = 0; i < 6; i++) assert_true(values[i] <= values[(int)got[0]]);
  assert_int_equal(own.slopes, 1); /* of the gradient's own operators there are rules */
  rdna_array *all[] = {x, lazy, made[0], made[1], first, second, sums[1], sums[0]};
  for (int i = 0; i < 8; i++) {
    assert_int_equal(own.gone, 0);
    rdna_array_release(all[i]);
  }
  assert_int_equal(own.gone, 1);
}

static void refused_operators(void **state) {
  const rdna__type of_x = F64(2, 3);
  cube own = {.ends = RDNA_CANCELLED};
  double values[6] = {0};
  rdna_array *x = upload(&of_x, values), *lazy, *made[2], *slope = NULL, *sum;
  assert_ok(rdna_array_lazy(x, &lazy));
  assert_ok(call_cube(&own, lazy, made));
  assert_refused(rdna_array_to_host(made[0], values, sizeof values), RDNA_CANCELLED, "");
  own.ends = RDNA_OK;
  own.wrong = true;
  assert_refused(rdna_array_to_host(made[1], values, 8), RDNA_INVALID_ARGUMENT, "cube: result 1 is f64 (2, 3)",
                 "recorded as i64 ()");
  for (int i = 0; i < 2; i++) rdna_array_release(made[i]);
  assert_int_equal(own.gone, 1);
  rdna_tensor type = *rdna_array_tensor(x);
  rdna_array_operator op = {sizeof op, "cube", &own, release_cube, run_cube, NULL};
  assert_refused(rdna_array_call(&op, &lazy, 1, &type, 5, made), RDNA_INVALID_ARGUMENT, "cube", "1 to 4 results");
  assert_refused(rdna_array_call(&op, &lazy, 0, &type, 1, made), RDNA_INVALID_ARGUMENT, "an input or more");
  assert_ok(rdna_array_call(&op, &lazy, 1, &type, 1, made));
  sum = sum_of(made[0]);
  assert_refused(rdna_array_gradients(&sum, 1, NULL, &lazy, 1, &slope), RDNA_UNSUPPORTED, "cube has no gradient");
  assert_null(slope);
  op.size = 8;
  assert_refused(rdna_array_call(&op, &lazy, 1, &type, 1, made), RDNA_INVALID_ARGUMENT, "of this version");
  assert_int_equal(own.gone, 1); /* what was refused stays the caller's */
  rdna_array_release(sum);
  rdna_array_release(made[0]);
  rdna_array_release(lazy);
  rdna_array_release(x);
  assert_int_equal(own.gone, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs), cmocka_unit_test(plans), cmocka_unit_test(refusals),
                                     cmocka_unit_test(own_operators), cmocka_unit_test(refused_operators)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
