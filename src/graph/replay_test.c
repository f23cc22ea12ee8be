/* Plans that the driver replays: values of every run against loops in double, of inputs that lie elsewhere each time,
 * while results are held and after the plan is gone. RDNA_TEST_DEVICE; on the host, that there is no replay and why. */
#include <math.h>
#include <string.h>

#include "graph/gradient_test.h"

enum { ROWS = 60, COLS = 32, COUNT = ROWS * COLS };

static bool replays(void) { return strcmp(rdna_device_get_info(rdna_stream_device(stream))->driver, "host") != 0; }

/* out: tanh(x) y + x of x (ROWS, COLS) and y (COLS), its sum, and y itself. */
static rdna_plan *make_plan(void) {
  rdna_recorder *r;
  rdna_plan *plan;
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *x = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){ROWS, COLS});
  rdna_node *y = rdna_record_input(r, RDNA_F32, 1, (int64_t[]){COLS});
  rdna_node *made = rdna_record_zip(r, rdna_record_map(r, x, RDNA_MAP_TANH, zero, zero), y, RDNA_ZIP_MUL, zero, zero);
  made = rdna_record_zip(r, made, x, RDNA_ZIP_ADD, zero, zero);
  rdna_node *sum = rdna_record_reduce(r, made, RDNA_REDUCTION_SUM, 3, false, 0);
  assert_ok(rdna_plan_create((rdna_node *[]){made, sum, y}, 3, (rdna_node *[]){x, y}, 2, &plan));
  rdna_recorder_release(r);
  return plan;
}

typedef struct given {
  double x[COUNT], y[COLS];
  rdna_array *arrays[2];
} given;

static void draw(given *g) {
  const rdna__type of_x = TYPE(RDNA_F32, ROWS, COLS), of_y = TYPE(RDNA_F32, COLS);
  for (int i = 0; i < COUNT; i++) g->x[i] = (float)uniform(-2, 2);
  for (int i = 0; i < COLS; i++) g->y[i] = (float)uniform(-2, 2);
  g->arrays[0] = upload(&of_x, g->x);
  g->arrays[1] = upload(&of_y, g->y);
}

static void check(const given *g, rdna_array *const *out) {
  static double got[COUNT];
  double total, want_total = 0;
  download(out[0], got);
  for (int i = 0; i < COUNT; i++) {
    double want = tanh(g->x[i]) * g->y[i % COLS] + g->x[i];
    want_total += want;
    assert_true(fabs(got[i] - want) < 1e-5);
  }
  download(out[1], &total);
  assert_true(fabs(total - want_total) < 0.01); /* 1,920 summands of 4 at most, rounded once each */
  download(out[2], got);
  for (int i = 0; i < COLS; i++) assert_true(got[i] == g->y[i]);
}

static void release_all(rdna_array *const *arrays, int count) {
  for (int i = 0; i < count; i++) rdna_array_release(arrays[i]);
}

static given *at(int i) {
  static given some[3];
  return &some[i];
}

static void each_run(void **state) {
  rdna_plan *plan = make_plan();
  rdna_array *out[3], *held[3];
  const char *why = "not asked";
  assert_ok(rdna_plan_replay(plan, true));
  for (int i = 0; i < 3; i++) draw(at(i));
  for (int run = 0; run < 8; run++) { /* inputs of three places in turn */
    given *g = at(run % 3);
    assert_ok(rdna_plan_run(plan, g->arrays, 2, out));
    check(g, out);
    release_all(out, 3);
  }
  int64_t count = rdna_plan_replays(plan, &why);
  if (!replays()) {
    assert_int_equal(count, 0);
    assert_non_null(strstr(why, "cannot record a graph"));
  } else {
    assert_int_equal(count, 7); /* all but the first */
    assert_string_equal(why, "");
    assert_ok(rdna_plan_run(plan, at(0)->arrays, 2, held));
    for (int run = 1; run < 3; run++) { /* what somebody has is not written over */
      assert_ok(rdna_plan_run(plan, at(run)->arrays, 2, out));
      check(at(run), out);
      check(at(0), held);
      release_all(out, 3);
    }
    release_all(held, 3);
    assert_ok(rdna_plan_run(plan, at(1)->arrays, 2, out));
    assert_int_equal(rdna_plan_replays(plan, NULL), 11);
    rdna_plan_release(plan);
    plan = NULL;
    check(at(1), out); /* after the plan is gone */
    release_all(out, 3);
  }
  rdna_plan_release(plan);
  for (int i = 0; i < 3; i++) release_all(at(i)->arrays, 2);
}

/* An array that is written between runs, where it lies: what parameters are. */
static void written_in_place(void **state) {
  rdna_plan *plan = make_plan();
  rdna_array *out[3], *own;
  given *g = at(0);
  assert_ok(rdna_plan_replay(plan, true));
  draw(g);
  for (int run = 0; run < 5; run++) {
    assert_ok(rdna_plan_run(plan, g->arrays, 2, out));
    check(g, out);
    release_all(out, 3);
    assert_ok(rdna_array_own(g->arrays[0], &own));
    assert_ptr_equal(own, g->arrays[0]); /* the plan keeps no hold of it */
    assert_ok(rdna_op_map(stream, RDNA_MAP_NEG, rdna_array_tensor(own), zero, zero, rdna_array_tensor(own)));
    for (int i = 0; i < COUNT; i++) g->x[i] = -g->x[i];
    rdna_array_release(own);
  }
  assert_int_equal(rdna_plan_replays(plan, NULL), replays() ? 4 : 0);
  assert_ok(rdna_plan_replay(plan, false));
  assert_ok(rdna_plan_run(plan, g->arrays, 2, out));
  check(g, out);
  assert_int_equal(rdna_plan_replays(plan, NULL), 0);
  release_all(out, 3);
  rdna_plan_release(plan);
  release_all(g->arrays, 2);
}

static void obstacles(void **state) {
  rdna_recorder *r;
  rdna_plan *plan;
  const char *why;
  assert_refused(rdna_plan_replay(NULL, true), RDNA_INVALID_ARGUMENT, "needs a plan");
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *x = rdna_record_input(r, RDNA_F32, 1, (int64_t[]){8});
  rdna_node *y = rdna_record_map(r, x, RDNA_MAP_EXP, zero, zero),
            *z = rdna_record_reduce(r, y, RDNA_REDUCTION_SUM, 1, true, 0);
  rdna_node *view = rdna_record_slice(r, x, 0, 0, 4, 2);
  const struct {
    rdna_node *outputs[3];
    int count;
    const char *why;
  } cases[] = {{{y}, 1, "one launch"}, {{z, y, view}, 3, "view of an input"}};
  for (int i = 0; i < 2; i++) {
    rdna_array *in, *out[3];
    assert_ok(rdna_plan_create(cases[i].outputs, cases[i].count, &x, 1, &plan));
    assert_ok(rdna_plan_replay(plan, true));
    assert_ok(rdna_array_full(stream, RDNA_F32, 1, (int64_t[]){8}, rdna_scalar_real(1), &in));
    for (int run = 0; run < 3; run++) {
      assert_ok(rdna_plan_run(plan, &in, 1, out));
      release_all(out, cases[i].count);
    }
    assert_int_equal(rdna_plan_replays(plan, &why), 0);
    assert_non_null(strstr(why, cases[i].why));
    rdna_array_release(in);
    rdna_plan_release(plan);
  }
  rdna_recorder_release(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_run), cmocka_unit_test(written_in_place),
                                     cmocka_unit_test(obstacles)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
