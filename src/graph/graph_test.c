/* Graphs: gradients and second derivatives against differences in double, values against the eager arrays, what plans
 * leave out and join, and what is refused. The device: RDNA_TEST_DEVICE. */
#include "rdna/graph.h"

#include "base/config.h"
#include "device/driver.h"
#include "graph/gradient_test.h"
#include "rdna/tune.h"

static void expect_near(double got, double want, double tolerance) {
  if (!(fabs(got - want) <= tolerance)) fail_msg("%.12g, not %.12g", got, want);
}

typedef struct pointwise {
  int code;
  double p, q, low, high;
} pointwise;

static rdna_node *build_map(rdna_recorder *r, rdna_node *const *in, const void *what) {
  const pointwise *c = what;
  return rdna_record_map(r, in[0], (rdna_map)c->code, rdna_scalar_real(c->p), rdna_scalar_real(c->q));
}
static rdna_node *build_zip(rdna_recorder *r, rdna_node *const *in, const void *what) {
  const pointwise *c = what;
  return rdna_record_zip(r, in[0], in[1], (rdna_zip)c->code, rdna_scalar_real(c->p), rdna_scalar_real(c->q));
}

static void maps(void **state) {
  for (int code = 0; code < RDNA_MAP_COUNT; code++) {
    rdna_dtype dtype;
    if (rdna__array_map_type((rdna_map)code, RDNA_F64, &dtype) != RDNA_OK) continue; /* of integers */
    pointwise c = {code, 1.25, 2.5, -2, 2};
    bool positive = code == RDNA_MAP_SQRT || code == RDNA_MAP_RSQRT || code == RDNA_MAP_LOG || code == RDNA_MAP_LOG2 ||
                    code == RDNA_MAP_LOG10 || code == RDNA_MAP_LOG1P || code == RDNA_MAP_POW ||
                    code == RDNA_MAP_RECIPROCAL;
    if (positive) c.low = 0.3;
    if (code == RDNA_MAP_TAN) c.low = -1, c.high = 1;
    subject s = {rdna_map_name((rdna_map)code), build_map, &c, 1, {F64(2, 3)}, c.low, c.high, {{0}}};
    expect_slopes(&s);
  }
}

static void zips(void **state) {
  for (int code = 0; code < RDNA_ZIP_COUNT; code++) {
    rdna_dtype dtype;
    if (rdna__array_zip_type((rdna_zip)code, RDNA_F64, &dtype) != RDNA_OK) continue; /* of integers */
    pointwise c = {code, 1.25, 2.5, 0.3, 2};
    const char *name = rdna_zip_name((rdna_zip)code);
    /* broadcast, on both sides; and the same on one */
    subject s = {name, build_zip, &c, 2, {F64(2, 1), F64(3)}, c.low, c.high, {{0}}};
    expect_slopes(&s);
    subject same = {name, build_zip, &c, 2, {F64(4), F64(4)}, c.low, c.high, {{0}}};
    expect_slopes(&same);
  }
}

typedef struct reduction {
  int code;
  uint32_t dims;
  bool keep;
  double parameter;
} reduction;

static rdna_node *build_reduce(rdna_recorder *r, rdna_node *const *in, const void *what) {
  const reduction *c = what;
  return rdna_record_reduce(r, in[0], (rdna_reduction)c->code, c->dims, c->keep, c->parameter);
}

static void reductions(void **state) {
  for (int code = 0; code < RDNA_REDUCTION_COUNT; code++) {
    if (code == RDNA_REDUCTION_ARGMIN || code == RDNA_REDUCTION_ARGMAX || code == RDNA_REDUCTION_ANY ||
        code == RDNA_REDUCTION_ALL)
      continue;
    double parameters[] = {2, 3, 1, (double)INFINITY};
    for (int i = 0; i < 4; i++) {
      if (i > 0 && code != RDNA_REDUCTION_NORM) break;
      reduction c = {code, i & 1 ? 4u : 5u, i & 1, code == RDNA_REDUCTION_NORM ? parameters[i] : 1};
      subject s = {rdna_reduction_name((rdna_reduction)code), build_reduce, &c, 1, {F64(2, 2, 3)}, 0.4, 2, {{0}}};
      expect_slopes(&s);
    }
  }
}

static rdna_node *build_moves(rdna_recorder *r, rdna_node *const *in, const void *what) {
  rdna_node *x = rdna_record_permute(r, in[0], (int[]){2, 0, 1});           /* (4, 2, 3) */
  rdna_node *y = rdna_record_slice(r, x, 0, 3, 2, -2);                      /* (2, 2, 3) */
  rdna_node *z = rdna_record_broadcast(r, in[1], 3, (int64_t[]){2, 2, 3});  /* of (2, 1) */
  rdna_node *both = rdna_record_concat(r, (rdna_node *[]){y, z, y}, 3, -2); /* (2, 6, 3) */
  rdna_node *flat = rdna_record_reshape(r, both, 2, (int64_t[]){4, -1});    /* (4, 9) */
  rdna_node *spread = rdna_record_unslice(r, flat, 1, 1, 2, 19);            /* (4, 19) */
  rdna_node *stopped = rdna_record_zip(r, spread, rdna_record_stop(r, spread), RDNA_ZIP_ADD, zero, zero);
  rdna_node *off = rdna_record_zip(r, stopped, rdna_record_stop(r, spread), RDNA_ZIP_SUB, zero, zero);
  rdna_node *condition =
      rdna_record_compare(r, spread, rdna_record_full(r, RDNA_F64, 0, NULL, rdna_scalar_real(1)), RDNA_COMPARE_GT);
  return rdna_record_where(r, condition, rdna_record_map(r, off, RDNA_MAP_SQUARE, zero, zero), spread);
}

static void moves(void **state) {
  subject s = {"moves", build_moves, NULL, 2, {F64(2, 3, 4), F64(2, 1)}, 0.5, 2, {{0}}};
  expect_slopes(&s);
}

/* Slices of one array, each read otherwise: which there are says |what|, rows of start, count and step. */
typedef struct slices {
  int count;
  bool permuted;
  int64_t rows[4][3];
} slices;

static rdna_node *build_slices(rdna_recorder *r, rdna_node *const *in, const void *what) {
  static const rdna_map maps[] = {RDNA_MAP_SQUARE, RDNA_MAP_EXP, RDNA_MAP_SIN, RDNA_MAP_TANH};
  const slices *c = what;
  rdna_node *x = c->permuted ? rdna_record_permute(r, in[0], (int[]){-2, 2, 0}) : in[0], *parts[4];
  for (int i = 0; i < c->count; i++) {
    parts[i] = rdna_record_slice(r, x, 0, c->rows[i][0], c->rows[i][1], c->rows[i][2]);
    parts[i] = rdna_record_map(r, parts[i], maps[i], zero, zero);
  }
  return rdna_record_concat(r, parts, c->count, 0);
}

/* Gradients of slices that lie beside each other are joined by one copy for each, whatever the order. */
static void slices_of_one(void **state) {
  static const slices cases[] = {
      {3, false, {{0, 2, 1}, {2, 1, 1}, {3, 2, 1}}},             /* all of it */
      {3, true, {{3, 2, 1}, {0, 2, 1}, {2, 1, 1}}},              /* of what was permuted, in another order */
      {2, false, {{3, 1, 1}, {1, 2, 1}}},                        /* with zeros around */
      {3, true, {{0, 2, 1}, {3, 2, 1}, {1, 3, 1}}},              /* that overlap, so that some are added */
      {4, false, {{4, 2, -2}, {0, 1, 1}, {1, 1, 1}, {2, 3, 1}}}, /* one backwards */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rdna__type type = cases[i].permuted ? (rdna__type)F64(2, 5, 3) : (rdna__type)F64(5, 2, 3);
    subject s = {"slices of one array", build_slices, &cases[i], 1, {type}, -1, 1, {{0}}};
    expect_slopes(&s);
  }
  for (int permuted = 0; permuted < 2; permuted++) {
    rdna_recorder *r;
    rdna_plan *plan;
    assert_ok(rdna_recorder_create(stream, &r));
    rdna_node *x = rdna_record_input(r, RDNA_F32, 3, permuted ? (int64_t[]){2, 5, 3} : (int64_t[]){5, 2, 3}), *slope;
    rdna_node *y = build_slices(r, &x, &cases[permuted]);
    rdna_node *sum = rdna_record_reduce(r, y, RDNA_REDUCTION_SUM, 7, false, 0);
    assert_ok(rdna_record_gradients(r, &sum, 1, NULL, &x, 1, &slope));
    assert_ok(rdna_plan_create(&slope, 1, &x, 1, &plan));
    /* of each slice at most two operations and the number that they begin with; and they are joined */
    if (rdna_plan_steps(plan) > 10) fail_msg("%lld steps", (long long)rdna_plan_steps(plan));
    rdna_plan_release(plan);
    rdna_recorder_release(r);
  }
}

static rdna_node *build_product(rdna_recorder *r, rdna_node *const *in, const void *what) {
  return rdna_record_map(r, rdna_record_matmul(r, in[0], in[1]), RDNA_MAP_SQUARE, zero, zero);
}

static void products(void **state) {
  static const rdna__type shapes[][2] = {{F64(2, 3), F64(3, 4)},    {F64(3), F64(3, 2)},
                                         {F64(2, 3), F64(3)},       {F64(3), F64(3)},
                                         {F64(2, 2, 3), F64(3, 2)}, {F64(2, 1, 2, 3), F64(2, 3, 2)}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    subject s = {"matmul", build_product, NULL, 2, {shapes[i][0], shapes[i][1]}, -1, 1, {{0}}};
    expect_slopes(&s);
  }
}

/* Gradients by a product of batches, which operations on values read as the rows that it was made of: of tanh(h) and of
 * tanh(h) + h^2, beside 1 - tanh(h)^2 and that with 2 h. */
static void gradients_between(void **state) {
  enum { COUNT = 2 * 3 * 5 };
  double values[2 * 3 * 4], got[2][COUNT], h[COUNT];
  for (int i = 0; i < 24; i++) values[i] = uniform(-1, 1);
  rdna_array *x = upload(&(rdna__type)F64(2, 3, 4), values), *out[3];
  for (int i = 0; i < 20; i++) values[i] = uniform(-1, 1);
  rdna_array *w = upload(&(rdna__type)F64(4, 5), values);
  rdna_recorder *r;
  rdna_plan *plan;
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *nodes[3] = {rdna_record_matmul(r, rdna_record_constant(r, x), rdna_record_constant(r, w))};
  rdna_node *y = rdna_record_map(r, nodes[0], RDNA_MAP_TANH, zero, zero);
  for (int i = 0; i < 2; i++) {
    rdna_node *sum = rdna_record_reduce(r, y, RDNA_REDUCTION_SUM, 7, false, 0);
    assert_ok(rdna_record_gradients(r, &sum, 1, NULL, nodes, 1, &nodes[1 + i]));
    y = rdna_record_zip(r, y, rdna_record_map(r, nodes[0], RDNA_MAP_SQUARE, zero, zero), RDNA_ZIP_ADD, zero, zero);
  }
  assert_ok(rdna_plan_create(nodes, 3, NULL, 0, &plan));
  assert_ok(rdna_plan_run(plan, NULL, 0, out));
  download(out[0], h);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(rdna_array_tensor(out[1 + i])->rank, 3);
    download(out[1 + i], got[i]);
  }
  for (int i = 0; i < COUNT; i++) {
    expect_near(got[0][i], 1 - tanh(h[i]) * tanh(h[i]), 1e-12);
    expect_near(got[1][i], 1 - tanh(h[i]) * tanh(h[i]) + 2 * h[i], 1e-12);
  }
  for (int i = 0; i < 3; i++) rdna_array_release(out[i]);
  rdna_plan_release(plan);
  rdna_recorder_release(r);
  rdna_array_release(x);
  rdna_array_release(w);
}

/* One node as both inputs of operators whose gradients are compositions, and values read many times. */
static rdna_node *build_shared(rdna_recorder *r, rdna_node *const *in, const void *what) {
  rdna_node *x = in[0], *s = rdna_record_map(r, x, RDNA_MAP_SIGMOID, zero, zero);
  rdna_node *a = rdna_record_zip(r, s, s, RDNA_ZIP_SIGMOID_GRAD, zero, zero);
  rdna_node *b = rdna_record_zip(r, x, x, RDNA_ZIP_GELU_ERF_GRAD, zero, zero);
  rdna_node *c = rdna_record_zip(r, a, b, RDNA_ZIP_MUL, zero, zero);
  return rdna_record_zip(r, c, rdna_record_zip(r, x, c, RDNA_ZIP_POW, zero, zero), RDNA_ZIP_ADD, zero, zero);
}

static void shared(void **state) {
  subject s = {"shared", build_shared, NULL, 1, {F64(5)}, 0.5, 2, {{0}}};
  expect_slopes(&s);
}

/* A product of which one factor, or two, are 0: its differences are exact. */
static void product_of_zeros(void **state) {
  double x[2][3] = {{2, 0, 5}, {0, 3, 0}}, got[6];
  rdna_recorder *r;
  rdna_array *array = upload(&(rdna__type)F64(2, 3), &x[0][0]), *out;
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *in = rdna_record_constant(r, array), *gradient;
  rdna_node *sum = weigh(r, rdna_record_reduce(r, in, RDNA_REDUCTION_PROD, 2, false, 0), -1.7);
  assert_ok(rdna_record_gradients(r, &sum, 1, NULL, &in, 1, &gradient));
  assert_ok(rdna_evaluate(&gradient, 1, &out));
  download(out, got);
  double want[6] = {0, 10 * (cos(-1.7) + 0.3), 0, 0, 0, 0};
  for (int i = 0; i < 6; i++) expect_near(got[i], want[i], 1e-12);
  rdna_array_release(out);
  rdna_array_release(array);
  rdna_recorder_release(r);
}

/* ---- plans ---- */

/* Values of f32 in chains, which plans join, against the eager arrays. */
static void check_chains(int columns) {
  enum { ROWS = 5, COLUMNS = 8 };
  float x[ROWS * COLUMNS], row[COLUMNS];
  for (int i = 0; i < ROWS * columns; i++) x[i] = (float)uniform(-2, 2);
  for (int i = 0; i < columns; i++) row[i] = (float)uniform(-2, 2);
  rdna_recorder *r;
  rdna_array *of_x, *of_row, *out[2];
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){ROWS, columns}, x, &of_x));
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 1, (int64_t[]){columns}, row, &of_row));
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *a = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){ROWS, columns});
  rdna_node *b = rdna_record_input(r, RDNA_F32, 1, (int64_t[]){columns});
  rdna_node *two = rdna_record_full(r, RDNA_F32, 0, NULL, rdna_scalar_real(2));
  rdna_node *y = rdna_record_zip(r, a, two, RDNA_ZIP_MUL, zero, zero);
  y = rdna_record_zip(r, b, y, RDNA_ZIP_SUB, zero, zero);
  y = rdna_record_map(r, y, RDNA_MAP_RELU, zero, zero);
  y = rdna_record_zip(r, b, y, RDNA_ZIP_SUB, zero, zero);
  y = rdna_record_zip(r, two, y, RDNA_ZIP_SUB, zero, zero);
  y = rdna_record_zip(r, y, two, RDNA_ZIP_DIV, zero, zero);
  y = rdna_record_zip(r, y, two, RDNA_ZIP_MINIMUM, zero, zero);
  rdna_node *again = rdna_record_zip(r, a, two, RDNA_ZIP_MUL, zero, zero); /* known already */
  rdna_node *unused = rdna_record_map(r, a, RDNA_MAP_EXP, zero, zero);
  rdna_node *sum = rdna_record_reduce(r, again, RDNA_REDUCTION_SUM, 3, false, 0);
  assert_non_null(unused);
  rdna_plan *plan;
  assert_ok(rdna_plan_create((rdna_node *[]){y, sum}, 2, (rdna_node *[]){a, b}, 2, &plan));
  /* the product, which two read; a chain; a sum */
  assert_int_equal(rdna_plan_steps(plan), 3);
  assert_int_equal(rdna_plan_peak_bytes(plan), (2 * ROWS * (size_t)columns + 1) * sizeof(float));
  rdna_recorder_release(r); /* the plan keeps what it needs */
  for (int trial = 0; trial < 2; trial++) {
    assert_ok(rdna_plan_run(plan, (rdna_array *[]){of_x, of_row}, 2, out));
    double got[ROWS * COLUMNS], total, want_total = 0;
    download(out[0], got);
    download(out[1], &total);
    for (int i = 0; i < ROWS * columns; i++) {
      double side = (double)row[i % columns], v = side - fmax(side - 2 * (double)x[i], 0);
      expect_near(got[i], fmin((2 - v) / 2, 2), 1e-6);
      want_total += 2 * (double)x[i];
    }
    expect_near(total, want_total, 1e-4);
    rdna_array_release(out[0]);
    rdna_array_release(out[1]);
  }
  rdna_plan_release(plan);
  rdna_array_release(of_x);
  rdna_array_release(of_row);
}

static void chains(void **state) { check_chains(7); }

/* The same where each chain has a kernel of its own, compiled before its first launch; the host has none. */
static void chains_of_their_own(void **state) {
  rdna_choice choice;
  assert_ok(rdna__config_set(RDNA__CONFIG_FUSED_COMPILE, "always"));
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILE_CACHE, "off"));
  check_chains(8);
  assert_ok(rdna__config_set(RDNA__CONFIG_FUSED_COMPILE, "auto"));
  if (rdna__device_driver(rdna_stream_device(stream))->code_format == RDNA__CODE_HOST) return;
  assert_ok(rdna_choice_last("fused", &choice));
  if (strcmp(choice.implementation, "compiled") != 0) fail_msg("%s", choice.why);
}

/* Random programs of which each operation reads results before it, so that branches part and join; only the last
 * result is an output. Of operations that give the same bits everywhere: what a plan joins is what arrays compute one
 * by one. */
static void random_programs(void **state) {
  static const rdna_map some_maps[] = {RDNA_MAP_RELU, RDNA_MAP_NEG, RDNA_MAP_ABS, RDNA_MAP_AFFINE};
  static const rdna_zip some_zips[] = {RDNA_ZIP_ADD, RDNA_ZIP_SUB, RDNA_ZIP_MUL, RDNA_ZIP_MAXIMUM};
  enum { ROWS = 3, COLUMNS = 8, OPERATIONS = 14 };
  const rdna_scalar half = rdna_scalar_real(0.5), one = rdna_scalar_real(-1);
  int64_t steps = 0, programs = few ? 20 : 300;
  for (int64_t n = 0; n < programs; n++) {
    rdna_recorder *r;
    rdna_plan *plan;
    rdna_array *values[2 + OPERATIONS], *out;
    rdna_node *nodes[2 + OPERATIONS];
    assert_ok(rdna_recorder_create(stream, &r));
    for (int i = 0; i < 2; i++) {
      float given[ROWS * COLUMNS];
      for (int k = 0; k < ROWS * COLUMNS; k++) given[k] = (float)uniform(-1, 1);
      int64_t shape[] = {n % 3 == i + 1 ? 1 : ROWS, COLUMNS};
      assert_ok(rdna_array_from_host(stream, RDNA_F32, 2, shape, given, &values[i]));
      nodes[i] = rdna_record_constant(r, values[i]);
    }
    for (int i = 2; i < 2 + OPERATIONS; i++) {
      int a = (int)rdna__random_below(&random_state, (uint64_t)i), kind = (int)rdna__random_below(&random_state, 12);
      int b = kind < 9 && i > 2 ? i - 1 : (int)rdna__random_below(&random_state, (uint64_t)i);
      if (kind % 3 == 0) {
        nodes[i] = rdna_record_map(r, nodes[b], some_maps[kind / 3], half, one);
        assert_ok(rdna_array_map(values[b], some_maps[kind / 3], half, one, &values[i]));
      } else {
        nodes[i] = rdna_record_zip(r, nodes[a], nodes[b], some_zips[kind / 3], zero, zero);
        assert_ok(rdna_array_zip(values[a], values[b], some_zips[kind / 3], zero, zero, &values[i]));
      }
    }
    assert_ok(rdna_plan_create(&nodes[1 + OPERATIONS], 1, NULL, 0, &plan));
    assert_ok(rdna_plan_run(plan, NULL, 0, &out));
    steps += rdna_plan_steps(plan);
    double want[MOST], got[MOST];
    download(values[1 + OPERATIONS], want);
    download(out, got);
    for (int64_t k = 0; k < rdna_tensor_count(rdna_array_tensor(out)); k++)
      if (got[k] != want[k])
        fail_msg("program %lld: value %lld is %.9g, not %.9g", (long long)n, (long long)k, got[k], want[k]);
    rdna_array_release(out);
    rdna_plan_release(plan);
    for (int i = 0; i < 2 + OPERATIONS; i++) rdna_array_release(values[i]);
    rdna_recorder_release(r);
  }
  if (steps > 3 * programs) fail_msg("%lld programs are %lld launches", (long long)programs, (long long)steps);
}

/* Two operations, which are a chain by themselves too. */
static rdna_node *build_gate(rdna_recorder *r, rdna_node *x) {
  return rdna_record_map(r, rdna_record_map(r, x, RDNA_MAP_SIGMOID, zero, zero), RDNA_MAP_NEG, zero, zero);
}

/* Branches that join, in one launch; with the bits that they have where the branch is a launch of its own. */
static void forks(void **state) {
  enum { COUNT = 1003 };
  for (int form = 0; form < 6; form++) {
    rdna_dtype dtype = form % 2 ? RDNA_F16 : RDNA_F32;
    rdna_recorder *r;
    rdna_plan *plan;
    rdna_array *x, *side, *want, *got;
    double values[COUNT], results[2][COUNT];
    for (int i = 0; i < COUNT; i++) values[i] = uniform(-3, 3);
    x = upload(&(rdna__type)TYPE(dtype, COUNT), values);
    assert_ok(rdna_recorder_create(stream, &r));
    rdna_node *in = rdna_record_constant(r, x), *results_of[2];
    rdna_node *of_x =
        form < 4 ? in : rdna_record_map(r, in, RDNA_MAP_SQUARE, zero, zero); /* which both branches read */
    if (form >= 4) {
      assert_ok(rdna_evaluate(&of_x, 1, &side));
      in = rdna_record_constant(r, side);
      rdna_array_release(side);
    }
    rdna_node *gate = build_gate(r, in);
    assert_ok(rdna_evaluate(&gate, 1, &side));
    for (int whole = 0; whole < 2; whole++) {
      rdna_node *from = whole ? of_x : in;
      rdna_node *branch = whole ? build_gate(r, from) : rdna_record_constant(r, side);
      rdna_node *y = rdna_record_map(r, from, RDNA_MAP_AFFINE, rdna_scalar_real(1.5), rdna_scalar_real(0.5));
      y = rdna_record_map(r, y, RDNA_MAP_RELU, zero, zero);
      y = rdna_record_zip(r, y, branch, form < 2 ? RDNA_ZIP_MUL : RDNA_ZIP_SUB, zero, zero); /* y goes through */
      y = rdna_record_zip(r, y, from, RDNA_ZIP_SUB, zero, zero);
      results_of[whole] = rdna_record_map(r, y, RDNA_MAP_SQUARE, zero, zero);
    }
    assert_ok(rdna_evaluate(&results_of[0], 1, &want));
    assert_ok(rdna_plan_create(&results_of[1], 1, NULL, 0, &plan));
    assert_int_equal(rdna_plan_steps(plan), 1);
    assert_ok(rdna_plan_run(plan, NULL, 0, &got));
    download(want, results[0]);
    download(got, results[1]);
    assert_memory_equal(results[1], results[0], sizeof results[0]);
    rdna_plan_release(plan);
    rdna_array_release(x);
    rdna_array_release(side);
    rdna_array_release(want);
    rdna_array_release(got);
    rdna_recorder_release(r);
  }
}

/* act(x w + b) + residual as one launch, and with less of it. */
static void epilogues(void **state) {
  enum { M = 6, K = 5, N = 9 };
  float x[M * K], w[K * N], bias[N], rest[M * N];
  for (int i = 0; i < M * K; i++) x[i] = (float)uniform(-1, 1);
  for (int i = 0; i < K * N; i++) w[i] = (float)uniform(-1, 1);
  for (int i = 0; i < N; i++) bias[i] = (float)uniform(-1, 1);
  for (int i = 0; i < M * N; i++) rest[i] = (float)uniform(-1, 1);
  rdna_array *arrays[4], *out;
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){M, K}, x, &arrays[0]));
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){K, N}, w, &arrays[1]));
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 1, (int64_t[]){N}, bias, &arrays[2]));
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){M, N}, rest, &arrays[3]));
  for (int parts = 1; parts < 16; parts++) {
    bool batched = parts >= 8; /* x as (2, 3, k), which is one product of 6 rows */
    if (parts == 8) continue;
    rdna_recorder *r;
    rdna_node *in[4];
    rdna_plan *plan;
    assert_ok(rdna_recorder_create(stream, &r));
    for (int i = 0; i < 4; i++) in[i] = rdna_record_constant(r, arrays[i]);
    rdna_node *y = batched ? rdna_record_reshape(r, in[0], 3, (int64_t[]){2, M / 2, K}) : in[0];
    if (batched) in[3] = rdna_record_reshape(r, in[3], 3, (int64_t[]){2, M / 2, N});
    y = rdna_record_matmul(r, y, in[1]);
    if (parts & 1) y = rdna_record_zip(r, in[2], y, RDNA_ZIP_ADD, zero, zero);
    if (parts & 2) y = rdna_record_map(r, y, RDNA_MAP_RELU, zero, zero);
    if (parts & 4) y = rdna_record_zip(r, y, in[3], RDNA_ZIP_ADD, zero, zero);
    assert_int_equal(rdna_node_rank(y), batched ? 3 : 2);
    assert_ok(rdna_plan_create(&y, 1, NULL, 0, &plan));
    assert_int_equal(rdna_plan_steps(plan), parts < 14 ? 1 : 2); /* behind an activation it is in the batches' shape */
    assert_ok(rdna_plan_run(plan, NULL, 0, &out));
    double got[M * N];
    download(out, got);
    for (int i = 0; i < M * N; i++) {
      double want = parts & 1 ? (double)bias[i % N] : 0;
      for (int k = 0; k < K; k++) want += (double)x[i / N * K + k] * (double)w[k * N + i % N];
      if (parts & 2) want = fmax(want, 0);
      if (parts & 4) want += (double)rest[i];
      expect_near(got[i], want, 1e-5);
    }
    rdna_array_release(out);
    rdna_plan_release(plan);
    rdna_recorder_release(r);
  }
  for (int i = 0; i < 4; i++) rdna_array_release(arrays[i]);
}

/* Ten layers of tanh(x w + b), which gradients need the values of: kept, or every two computed once more. */
static rdna_node *layers(rdna_recorder *r, rdna_node *const *in, bool checkpoints) {
  rdna_node *x = in[0];
  uint64_t mark = rdna_record_mark();
  for (int i = 0; i < 10; i++) {
    rdna_node *y = rdna_record_zip(r, rdna_record_matmul(r, x, in[1]), in[2], RDNA_ZIP_ADD, zero, zero);
    x = rdna_record_map(r, y, RDNA_MAP_TANH, zero, zero);
    if (checkpoints && i % 2 == 1) {
      x = rdna_record_checkpoint(r, x, mark);
      mark = rdna_record_mark();
    }
  }
  return x;
}
static rdna_node *checkpointed(rdna_recorder *r, rdna_node *const *in, const void *what) { return layers(r, in, true); }
/* One within another, which also reads a node from around itself. */
static rdna_node *checkpoint_within(rdna_recorder *r, rdna_node *const *in, const void *what) {
  uint64_t outer = rdna_record_mark();
  rdna_node *a = rdna_record_map(r, in[0], RDNA_MAP_SIN, zero, zero);
  uint64_t inner = rdna_record_mark();
  rdna_node *b = rdna_record_zip(r, rdna_record_map(r, a, RDNA_MAP_EXP, zero, zero), in[2], RDNA_ZIP_MUL, zero, zero);
  b = rdna_record_checkpoint(r, b, inner);
  return rdna_record_checkpoint(r, rdna_record_zip(r, b, a, RDNA_ZIP_MUL, zero, zero), outer);
}

static void checkpoints(void **state) {
  subject s = {"layers", checkpointed, NULL, 3, {F64(3, 4), F64(4, 4), F64(4)}, -0.5, 0.5, {{0}}};
  expect_slopes(&s);
  subject within = {"checkpoints within", checkpoint_within, NULL, 3, {F64(3, 4), F64(4, 4), F64(4)}, -1, 1, {{0}}};
  expect_slopes(&within);
  size_t peaks[2];
  int64_t steps[2];
  for (int i = 0; i < 2; i++) {
    rdna_recorder *r;
    rdna_plan *plan;
    rdna_node *in[3], *dw;
    assert_ok(rdna_recorder_create(stream, &r));
    in[0] = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){1000, 8});
    in[1] = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){8, 8});
    in[2] = rdna_record_input(r, RDNA_F32, 1, (int64_t[]){8});
    rdna_node *sum = rdna_record_reduce(r, layers(r, in, i), RDNA_REDUCTION_SUM, 3, false, 0);
    assert_ok(rdna_record_gradients(r, &sum, 1, NULL, &in[1], 1, &dw));
    assert_ok(rdna_plan_create((rdna_node *[]){sum, dw}, 2, in, 3, &plan));
    peaks[i] = rdna_plan_peak_bytes(plan);
    steps[i] = rdna_plan_steps(plan);
    /* what needs no gradient, or was there before, is itself */
    assert_ptr_equal(rdna_record_checkpoint(r, sum, rdna_record_mark()), sum);
    rdna_node *question = rdna_record_compare(r, sum, NULL, RDNA_COMPARE_ISNAN);
    assert_ptr_equal(rdna_record_checkpoint(r, question, 0), question);
    assert_null(rdna_record_checkpoint(r, NULL, 0));
    assert_refused(rdna_recorder_status(r), RDNA_INVALID_ARGUMENT, "checkpoint: input 1 of 1 is NULL");
    rdna_plan_release(plan);
    rdna_recorder_release(r);
  }
  assert_true(peaks[0] >= 10 * 32000 && peaks[1] <= 8 * 32000); /* ten results; every second, and some on the way */
  assert_true(steps[1] > steps[0]);
}

/* A chain far too deep for a stack: x + 1 - 1 + 1 …, whose gradient is 1. */
static void long_chain(void **state) {
  int64_t length = few ? 2000 : 1000000;
  rdna_recorder *r;
  rdna_array *out[2];
  double value, slope;
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *x = rdna_record_input(r, RDNA_F32, 0, NULL), *y = x, *dx;
  rdna_node *one = rdna_record_full(r, RDNA_F32, 0, NULL, rdna_scalar_real(1));
  for (int64_t i = 0; i < length; i++) y = rdna_record_zip(r, y, one, i & 1 ? RDNA_ZIP_SUB : RDNA_ZIP_ADD, zero, zero);
  assert_ok(rdna_recorder_status(r));
  assert_ok(rdna_record_gradients(r, &y, 1, NULL, &x, 1, &dx));
  rdna_plan *plan;
  assert_ok(rdna_plan_create((rdna_node *[]){y, dx}, 2, &x, 1, &plan));
  assert_true(rdna_plan_peak_bytes(plan) <= 16);
  rdna_array *given;
  assert_ok(rdna_array_full(stream, RDNA_F32, 0, NULL, rdna_scalar_real(0.25), &given));
  assert_ok(rdna_plan_run(plan, &given, 1, out));
  download(out[0], &value);
  download(out[1], &slope);
  expect_near(value, 0.25, 0);
  expect_near(slope, 1, 0);
  rdna_array_release(given);
  rdna_array_release(out[0]);
  rdna_array_release(out[1]);
  rdna_plan_release(plan);
  rdna_recorder_release(r);
}

/* ---- what is refused ---- */

#define REFUSED(code, call, ...)                                \
  do {                                                          \
    assert_null(call);                                          \
    assert_refused(rdna_recorder_status(r), code, __VA_ARGS__); \
  } while (0)

static void refusals(void **state) {
  rdna_recorder *r;
  rdna_plan *plan;
  rdna_node *out;
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_recorder_origin(r, "model.c:7");
  rdna_node *a = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){3, 4});
  rdna_node *b = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){2, 4});
  rdna_node *n = rdna_record_input(r, RDNA_I64, 1, (int64_t[]){3});
  rdna_node *e = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){0, 4});
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_zip(r, a, b, RDNA_ZIP_ADD, zero, zero), "add", "f32 (3, 4) and f32 (2, 4)",
          "recorded at model.c:7");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_matmul(r, a, b), "f32 (3, 4) by f32 (2, 4)", "must be equal");
  REFUSED(RDNA_UNSUPPORTED, rdna_record_matmul(r, n, n), "i64 (3)", "products of floats");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_zip(r, a, NULL, RDNA_ZIP_ADD, zero, zero), "add: input 2 of 2 is NULL");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_map(r, a, RDNA_MAP_COUNT, zero, zero), "no map");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_zip(r, a, a, RDNA_ZIP_COUNT, zero, zero), "no zip");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_compare(r, a, NULL, RDNA_COMPARE_EQ), "about two nodes");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_compare(r, a, a, RDNA_COMPARE_ISNAN), "about one node");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_compare(r, a, a, RDNA_COMPARE_COUNT), "no question");
  REFUSED(RDNA_UNSUPPORTED, rdna_record_map(r, a, RDNA_MAP_BITWISE_NOT, zero, zero), "integers and bool");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_where(r, a, a, a), "not bool");
  REFUSED(RDNA_UNSUPPORTED, rdna_record_cast(r, a, RDNA_Q8_0), "q8_0");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_reduce(r, a, RDNA_REDUCTION_SUM, 4, false, 0), "dims 0x4", "f32 (3, 4)");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_reduce(r, a, RDNA_REDUCTION_COUNT, 1, false, 0), "no reduction");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_reduce(r, e, RDNA_REDUCTION_MAX, 1, false, 0), "max of no values",
          "f32 (0, 4)");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_reshape(r, a, 2, (int64_t[]){5, -1}), "do not fill");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_reshape(r, a, 9, (int64_t[]){5, -1}), "0 to 8 dimensions");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_permute(r, a, (int[]){1, -1}), "named twice");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_slice(r, a, 1, 3, 2, 1), "2 places from 3 on");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_unslice(r, a, 1, 3, 2, 8), "4 places from 3 on");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_unslice(r, a, 2, 3, 2, 8), "dim 2");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_broadcast(r, a, 2, (int64_t[]){6, 4}), "does not repeat");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_concat(r, (rdna_node *[]){a, n}, 2, 0), "f64 (3, 4) and f64 (3)");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_concat(r, NULL, 0, 0), "not 0");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_input(r, RDNA_F32, 1, (int64_t[]){-2}), "negative");
  REFUSED(RDNA_INVALID_ARGUMENT, rdna_record_constant(r, NULL), "needs an array");
  assert_refused(rdna_record_gradients(r, &a, 1, NULL, &a, 1, &out), RDNA_INVALID_ARGUMENT, "output 0 is f32 (3, 4)",
                 "single value");
  assert_refused(rdna_record_gradients(r, &a, 1, &b, &a, 1, &out), RDNA_INVALID_ARGUMENT, "seed 0 is f32 (2, 4)");
  assert_refused(rdna_record_gradients(r, &a, 1, &a, &n, 1, &out), RDNA_INVALID_ARGUMENT, "input 0 is i64 (3)");
  assert_refused(rdna_plan_create(&a, 1, &b, 1, &plan), RDNA_INVALID_ARGUMENT, "f32 (3, 4)", "not among", "model.c:7");
  rdna_node *y = rdna_record_map(r, a, RDNA_MAP_EXP, zero, zero);
  assert_refused(rdna_plan_create(&y, 1, &y, 1, &plan), RDNA_INVALID_ARGUMENT, "no rdna_record_input but map");
  assert_ok(rdna_plan_create(&y, 1, &a, 1, &plan));
  rdna_array *wrong, *result = NULL;
  assert_ok(rdna_array_full(stream, RDNA_F32, 1, (int64_t[]){4}, zero, &wrong));
  assert_refused(rdna_plan_run(plan, &wrong, 1, &result), RDNA_INVALID_ARGUMENT, "input 0 is f32 (4)",
                 "recorded as f32 (3, 4)", "model.c:7");
  assert_refused(rdna_plan_run(plan, NULL, 0, &result), RDNA_INVALID_ARGUMENT, "1 inputs, and 0");
  assert_null(result);
  /* what no path leads to, or only one of integers, is zeros */
  rdna_node *whole = rdna_record_cast(r, rdna_record_cast(r, a, RDNA_I32), RDNA_F32);
  assert_ok(rdna_record_gradients(r, &whole, 1, &a, (rdna_node *[]){a}, 1, &out));
  assert_true(out->op == &rdna__operator_full && out->attributes.p.real == 0);
  rdna_array_release(wrong);
  rdna_plan_release(plan);
  rdna_recorder_release(r);
}

/* ---- text and pictures ---- */

typedef struct sink {
  char text[8192];
  size_t size, most; /* more is refused */
} sink;

static rdna_status collect(void *data, const char *text, size_t size) {
  sink *s = data;
  if (s->size + size > s->most) return RDNA_CANCELLED;
  memcpy(s->text + s->size, text, size);
  s->size += size;
  s->text[s->size] = 0;
  return RDNA_OK;
}

static void expect_text(const sink *s, const char *text) {
  if (!strstr(s->text, text)) fail_msg("no '%s' in:\n%s", text, s->text);
}

static void pictures(void **state) {
  static sink lines, steps, picture, short_one;
  lines.most = steps.most = picture.most = sizeof lines.text - 1;
  short_one.most = 20;
  rdna_recorder *r;
  rdna_plan *plan;
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *x = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){8, 3}),
            *w = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){3, 4});
  rdna_recorder_origin(r, "a<b>&c.py:3");
  rdna_node *y = rdna_record_map(r, rdna_record_matmul(r, x, w), RDNA_MAP_RELU, zero, zero);
  rdna_node *sum = rdna_record_reduce(r, y, RDNA_REDUCTION_SUM, 3, false, 0);
  assert_ok(rdna_nodes_print(&sum, 1, collect, &lines));
  assert_string_equal(lines.text,
                      "%0 = input : f32 (8, 3)\n%1 = input : f32 (3, 4)\n"
                      "%2 = matmul %0 %1 : f32 (8, 4)  at a<b>&c.py:3\n"
                      "%3 = relu %2 : f32 (8, 4)  at a<b>&c.py:3\n"
                      "%4 = sum %3 : f32 ()  at a<b>&c.py:3\noutput %4\n");
  assert_ok(rdna_plan_create(&sum, 1, (rdna_node *[]){x, w}, 2, &plan));
  assert_ok(rdna_plan_print(plan, collect, &steps));
  assert_string_equal(steps.text,
                      "%3 = matmul+relu %0 %1 : f32 (8, 4)  frees %1 %0\n"
                      "%4 = sum %3 : f32 ()  frees %3\noutput %4\n");
  assert_ok(rdna_nodes_draw(&sum, 1, collect, &picture));
  expect_text(&picture, "<svg xmlns=");
  expect_text(&picture, ">matmul</text>");
  expect_text(&picture, "a&lt;b&gt;&amp;c.py:3");
  expect_text(&picture, "</svg>");
  int paths = 0;
  for (const char *at = picture.text; (at = strstr(at, "<path")); at++) paths++;
  assert_int_equal(paths, 4);
  assert_int_equal(rdna_nodes_print(&sum, 1, collect, &short_one), RDNA_CANCELLED);
  assert_int_equal(short_one.size, 10); /* what fits, and nothing behind the piece that did not */
  rdna_node *none = NULL;
  assert_refused(rdna_nodes_draw(&none, 1, collect, &picture), RDNA_INVALID_ARGUMENT, "none NULL");
  for (int i = 0; i < 2000; i++) y = rdna_record_map(r, y, RDNA_MAP_NEG, zero, zero);
  assert_refused(rdna_nodes_draw(&y, 1, collect, &picture), RDNA_UNSUPPORTED, "2004 nodes");
  rdna_plan_release(plan);
  rdna_recorder_release(r);
}

/* Nodes outlive their recorder when they are retained, and empty arrays go through. */
static void lifetimes(void **state) {
  rdna_recorder *r;
  rdna_array *out[2];
  assert_ok(rdna_recorder_create(stream, &r));
  rdna_node *x = rdna_record_full(r, RDNA_F32, 2, (int64_t[]){0, 3}, zero);
  rdna_node *sum =
      rdna_record_reduce(r, rdna_record_map(r, x, RDNA_MAP_EXP, zero, zero), RDNA_REDUCTION_SUM, 3, false, 0);
  rdna_node *dx, *kept[2];
  assert_ok(rdna_record_gradients(r, &sum, 1, NULL, &x, 1, &dx));
  kept[0] = rdna_node_retain(sum);
  kept[1] = rdna_node_retain(dx);
  rdna_recorder_release(r);
  assert_int_equal(rdna_node_rank(kept[1]), 2);
  assert_int_equal(rdna_node_shape(kept[1])[1], 3);
  assert_int_equal(rdna_node_dtype(kept[1]), RDNA_F32);
  assert_int_equal(rdna_node_rank(NULL), -1);
  assert_ok(rdna_evaluate(kept, 2, out));
  double total = 1;
  download(out[0], &total);
  expect_near(total, 0, 0);
  for (int i = 0; i < 2; i++) {
    rdna_array_release(out[i]);
    rdna_node_release(kept[i]);
  }
  rdna_node_release(NULL);
}

int main(int argc, char **argv) {
  few = argc > 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(maps),
      cmocka_unit_test(zips),
      cmocka_unit_test(reductions),
      cmocka_unit_test(moves),
      cmocka_unit_test(slices_of_one),
      cmocka_unit_test(products),
      cmocka_unit_test(shared),
      cmocka_unit_test(gradients_between),
      cmocka_unit_test(product_of_zeros),
      cmocka_unit_test(chains),
      cmocka_unit_test(random_programs),
      cmocka_unit_test(forks),
      cmocka_unit_test(chains_of_their_own),
      cmocka_unit_test(epilogues),
      cmocka_unit_test(checkpoints),
      cmocka_unit_test(long_chain),
      cmocka_unit_test(refusals),
      cmocka_unit_test(pictures),
      cmocka_unit_test(lifetimes),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
