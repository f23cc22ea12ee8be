/* For tests of gradients: a network of a few inputs, its gradients and second derivatives, and what they should be. */
#ifndef RDNA_GRAPH_GRADIENT_TEST_H
#define RDNA_GRAPH_GRADIENT_TEST_H

#include <math.h>

#include "graph/node.h"
#include "math/common/test/device.h"

enum { MOST = 256, MOST_INPUTS = 7 };
static const rdna_scalar zero = {0, 0};
static bool few; /* cases, on a slow device */

static inline double uniform(double low, double high) {
  return low + (high - low) * (double)rdna__random_below(&random_state, 1 << 30) / (1 << 30);
}

typedef rdna_node *network(rdna_recorder *r, rdna_node *const *in, const void *what);

typedef struct subject {
  const char *name;
  network *build;
  const void *what; /* for |build| */
  int input_count;
  rdna__type types[MOST_INPUTS];
  double low, high; /* of the inputs */
  double values[MOST_INPUTS][MOST];
} subject;

#define TYPE(dtype, ...)                                                              \
  {                                                                                   \
    dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), { __VA_ARGS__ } \
  }
#define F64(...) TYPE(RDNA_F64, __VA_ARGS__)

static inline rdna_array *upload(const rdna__type *type, const double *values) {
  rdna_array *wide, *made;
  assert_ok(rdna_array_from_host(stream, RDNA_F64, type->rank, type->shape, values, &wide));
  assert_ok(rdna_array_cast(wide, type->dtype, &made));
  rdna_array_release(wide);
  return made;
}

static inline void download(rdna_array *array, double *values) {
  rdna_array *wide;
  assert_ok(rdna_array_cast(array, RDNA_F64, &wide));
  size_t bytes = (size_t)rdna_tensor_count(rdna_array_tensor(wide)) * sizeof *values;
  assert_ok(rdna_array_to_host(wide, values, bytes));
  rdna_array_release(wide);
}

/* The sum of |x| times weights that are not alike. */
static inline rdna_node *weigh(rdna_recorder *r, rdna_node *x, double phase) {
  double weights[4096];
  rdna__type type = x->type;
  assert_true(rdna__type_count(&type) <= 4096);
  for (int64_t i = 0; i < rdna__type_count(&type); i++) weights[i] = cos((double)i * 1.7 + phase) + 0.3;
  rdna_array *array = upload(&type, weights);
  rdna_node *w = rdna_record_constant(r, array);
  rdna_array_release(array);
  return rdna_record_reduce(r, rdna_record_zip(r, x, w, RDNA_ZIP_MUL, zero, zero), RDNA_REDUCTION_SUM,
                            (1u << type.rank) - 1, false, 0);
}

/* A loss L, which is a weighted sum of what is built; S, one of its gradients; the gradients of L, and those of S. */
enum { MOST_RESULTS = 2 + 2 * MOST_INPUTS };
static inline int result_count(const subject *s) { return 2 + 2 * s->input_count; }

/* Plans for all of them, and for L and S alone unless NULL. */
static inline void make_plans(const subject *s, rdna_plan **whole, rdna_plan **values) {
  rdna_recorder *r;
  rdna_node *in[MOST_INPUTS], *all[MOST_RESULTS], **first = all + 2, **second = first + s->input_count;
  assert_ok(rdna_recorder_create(stream, &r));
  for (int i = 0; i < s->input_count; i++)
    in[i] = rdna_record_input(r, s->types[i].dtype, s->types[i].rank, s->types[i].shape);
  rdna_node *made = s->build(r, in, s->what);
  if (rdna_recorder_status(r) != RDNA_OK) fail_msg("%s: %s", s->name, rdna_last_error());
  all[0] = weigh(r, made, 0);
  if (rdna_record_gradients(r, all, 1, NULL, in, s->input_count, first) != RDNA_OK)
    fail_msg("%s: %s", s->name, rdna_last_error());
  all[1] = weigh(r, first[0], 1);
  for (int i = 1; i < s->input_count; i++)
    all[1] = rdna_record_zip(r, all[1], weigh(r, first[i], 1 + i), RDNA_ZIP_ADD, zero, zero);
  if (rdna_record_gradients(r, all + 1, 1, NULL, in, s->input_count, second) != RDNA_OK)
    fail_msg("%s, twice: %s", s->name, rdna_last_error());
  assert_ok(rdna_plan_create(all, result_count(s), in, s->input_count, whole));
  if (values) assert_ok(rdna_plan_create(all, 2, in, s->input_count, values));
  rdna_recorder_release(r);
}

static inline void run(const rdna_plan *plan, const subject *s, double (*results)[MOST], int count) {
  rdna_array *inputs[MOST_INPUTS], *outputs[MOST_RESULTS];
  for (int i = 0; i < s->input_count; i++) inputs[i] = upload(&s->types[i], s->values[i]);
  if (rdna_plan_run(plan, inputs, s->input_count, outputs) != RDNA_OK) fail_msg("%s: %s", s->name, rdna_last_error());
  for (int i = 0; i < count; i++) {
    download(outputs[i], results[i]);
    rdna_array_release(outputs[i]);
  }
  for (int i = 0; i < s->input_count; i++) rdna_array_release(inputs[i]);
}

static inline void draw_inputs(subject *s) {
  for (int i = 0; i < s->input_count; i++) {
    assert_true(rdna__type_count(&s->types[i]) <= MOST);
    for (int64_t k = 0; k < rdna__type_count(&s->types[i]); k++) s->values[i][k] = uniform(s->low, s->high);
  }
}

static inline void expect_close(const subject *s, const char *what, int input, int64_t at, double got, double want,
                                double tolerance) {
  if (fabs(got - want) <= tolerance * fmax(1, fabs(want))) return;
  fail_msg("%s: %s by input %d at %lld is %.12g, not %.12g (x = %.12g)", s->name, what, input, (long long)at, got, want,
           s->values[input][at]);
}

/* Both gradients against differences of step |h|. */
static inline void expect_differences(subject *s, double h, double tolerance) {
  static double results[MOST_RESULTS][MOST], above[2][MOST], below[2][MOST];
  rdna_plan *whole, *values;
  draw_inputs(s);
  make_plans(s, &whole, &values);
  run(whole, s, results, result_count(s));
  for (int i = 0; i < s->input_count; i++)
    for (int64_t k = 0; k < rdna__type_count(&s->types[i]); k += few ? 7 : 1) {
      double x = s->values[i][k];
      s->values[i][k] = x + h;
      run(values, s, above, 2);
      s->values[i][k] = x - h;
      run(values, s, below, 2);
      s->values[i][k] = x;
      expect_close(s, "the gradient", i, k, results[2 + i][k], (above[0][0] - below[0][0]) / (2 * h), tolerance);
      expect_close(s, "the second derivative", i, k, results[2 + s->input_count + i][k],
                   (above[1][0] - below[1][0]) / (2 * h), tolerance);
    }
  rdna_plan_release(whole);
  rdna_plan_release(values);
}

/* Differences are off by h^2 times third derivatives, which here are below 1e3, and by the rounding of sums of up to
 * 256 values over h: 1e-7 and 1e-9. */
static inline void expect_slopes(subject *s) { expect_differences(s, 1e-5, 2e-6); }

/* The same network in |dtype| has the values, gradients and second derivatives that it has in f64, where it is made of
 * other operators. |tolerance|: 1e-4 is a thousand roundings of f32, as sums of up to 256 values and the quotients and
 * exponentials around them have; 1e-3 where differences are divided by small variances, and second derivatives by their
 * cubes. */
static inline void expect_as_in_f64(subject *s, rdna_dtype dtype, double tolerance) {
  static double want[MOST_RESULTS][MOST], got[MOST_RESULTS][MOST];
  rdna_plan *plan;
  draw_inputs(s);
  make_plans(s, &plan, NULL);
  run(plan, s, want, result_count(s));
  rdna_plan_release(plan);
  for (int i = 0; i < s->input_count; i++) s->types[i].dtype = dtype;
  make_plans(s, &plan, NULL);
  run(plan, s, got, result_count(s));
  rdna_plan_release(plan);
  expect_close(s, "the loss", 0, 0, got[0][0], want[0][0], tolerance);
  for (int i = 0; i < 2 * s->input_count; i++)
    for (int64_t k = 0; k < rdna__type_count(&s->types[i % s->input_count]); k++)
      expect_close(s, i < s->input_count ? "the gradient" : "the second derivative", i % s->input_count, k,
                   got[2 + i][k], want[2 + i][k], tolerance);
}

#endif
