#include "rdna/op/optim.h"
#include "math/common/test/operand.h"

enum { TENSORS = 4, STATES = 3 };
static const rdna_dtype float_types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};

/* Computes the published update rules in double, on one value. */
static double define(const rdna_optim *o, double p, double g, double *s) {
  double rate = (double)o->learning_rate, decay = (double)o->weight_decay, momentum = (double)o->momentum;
  double b1 = (double)o->beta1, b2 = (double)o->beta2, epsilon = o->epsilon;
  if (o->maximize) g = -g;
  if (o->kind == RDNA_OPTIM_KIND_ADAM && o->decoupled) p *= 1 - rate * decay;
  if (!(o->kind == RDNA_OPTIM_KIND_ADAM && o->decoupled)) g += decay * p;
  if (o->kind == RDNA_OPTIM_KIND_SGD) {
    if (momentum == 0) return p - rate * g;
    s[0] = o->step == 1 ? g : momentum * s[0] + (1 - (double)o->dampening) * g;
    return p - rate * (o->nesterov ? g + momentum * s[0] : s[0]);
  }
  if (o->kind == RDNA_OPTIM_KIND_ADAM) {
    s[0] = b1 * s[0] + (1 - b1) * g;
    s[1] = b2 * s[1] + (1 - b2) * g * g;
    if (o->amsgrad) s[2] = fmax(s[2], s[1]);
    double m = s[0] / (1 - pow(b1, (double)o->step)), v = s[o->amsgrad ? 2 : 1] / (1 - pow(b2, (double)o->step));
    return p - rate * m / (sqrt(v) + epsilon);
  }
  s[0] = b1 * s[0] + (1 - b1) * g * g;
  s[1] = b1 * s[1] + (1 - b1) * g;
  double slope = g / (sqrt(o->centered ? s[0] - s[1] * s[1] : s[0]) + epsilon);
  if (momentum == 0) return p - rate * slope;
  s[2] = momentum * s[2] + slope;
  return p - rate * s[2];
}

struct tensors {
  int count;
  operand param[TENSORS], grad[TENSORS], state[TENSORS][STATES];
  rdna_optim_item items[TENSORS];
};

static void make_tensors(struct tensors *t, int count, rdna_dtype dtype, int64_t offset) {
  static const int64_t sizes[] = {5, 20000, 1, 8192};
  t->count = count;
  for (int i = 0; i < count; i++) {
    t->param[i] = operand_make(RDNA_F32, 1, &sizes[i], NULL, offset);
    t->grad[i] = operand_make(dtype, 1, &sizes[i], NULL, offset);
    operand_fill(&t->param[i], 1);
    operand_fill(&t->grad[i], 1);
    t->items[i] = (rdna_optim_item){.param = &t->param[i].tensor, .grad = &t->grad[i].tensor};
    for (int k = 0; k < STATES; k++) {
      t->state[i][k] = operand_make(RDNA_F32, 1, &sizes[i], NULL, offset);
      for (int64_t j = 0; j < sizes[i]; j++) operand_set(&t->state[i][k], j, 0);
      operand_upload(&t->state[i][k]);
      t->items[i].state[k] = &t->state[i][k].tensor;
    }
  }
}

static void free_tensors(struct tensors *t) {
  for (int i = 0; i < t->count; i++) {
    operand_free(&t->param[i]), operand_free(&t->grad[i]);
    for (int k = 0; k < STATES; k++) operand_free(&t->state[i][k]);
  }
}

static operand one_value(double v) {
  const int64_t one = 1;
  operand o = operand_make(RDNA_F32, 1, &one, NULL, 0);
  operand_set(&o, 0, v);
  operand_upload(&o);
  return o;
}

/* Takes three steps with new gradients and compares with the definition. |counted|: tensors count their own steps. */
static void check_optimizer(rdna_optim o, rdna_dtype dtype, int count, int64_t offset, double scale, bool counted) {
  struct tensors t;
  make_tensors(&t, count, dtype, offset);
  operand divisor = one_value(scale), inf = one_value(0), steps[TENSORS];
  double *want[TENSORS];
  for (int i = 0; i < count; i++) {
    steps[i] = one_value(0);
    if (counted) t.items[i].step = &steps[i].tensor;
    want[i] = calloc((size_t)operand_span(&t.param[i]) * 4, sizeof(double));
    for (int64_t j = 0; j < operand_span(&t.param[i]); j++) want[i][4 * j] = operand_get(&t.param[i], j);
  }
  for (int64_t step = 1; step <= 3; step++) {
    for (int i = 0; i < count; i++) {
      o.step = counted ? step + i * i * 1000 : step;
      operand_set(&steps[i], 0, (double)o.step);
      operand_upload(&steps[i]);
      operand_fill(&t.grad[i], 2);
      for (int64_t j = 0; j < operand_span(&t.param[i]); j++) {
        want[i][4 * j] = define(&o, want[i][4 * j], operand_get(&t.grad[i], j) / scale, &want[i][4 * j + 1]);
      }
    }
    o.step = counted ? 77 : step;
    assert_ok(rdna_op_optim_step(stream, &o, t.items, count, scale == 1 ? NULL : &divisor.tensor, &inf.tensor));
  }
  for (int i = 0; i < count; i++) {
    operand_download(&t.param[i]);
    for (int64_t j = 0; j < operand_span(&t.param[i]); j++) {
      /* RMSprop about the mean divides by a difference that may be small; an Adam step is at most about the rate */
      double bound = 40 * 0x1p-24 * (1 + fabs(want[i][4 * j])), steep = o.centered ? 2e-4 : 4e-6;
      assert_close(RDNA_F32, operand_get(&t.param[i], j), want[i][4 * j], bound + steep, "param", j);
    }
    free(want[i]);
    operand_free(&steps[i]);
  }
  free_tensors(&t);
  operand_free(&divisor), operand_free(&inf);
}

static void steps_match_the_published_rules(void **state) {
  const rdna_optim sgd = {RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_SGD, .learning_rate = 0.1f};
  const rdna_optim adam = {RDNA_OPTIM_INIT,        .kind = RDNA_OPTIM_KIND_ADAM,
                           .learning_rate = 0.01f, .beta1 = 0.9f,
                           .beta2 = 0.999f,        .epsilon = 1e-8};
  const rdna_optim rms = {RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_RMSPROP, .learning_rate = 0.01f, .beta1 = 0.9f,
                          .epsilon = 1e-3};
  rdna_optim all[12] = {sgd, sgd, sgd, sgd, adam, adam, adam, adam, rms, rms, rms, rms};
  all[1].momentum = 0.9f, all[1].weight_decay = 0.1f;
  all[2].momentum = 0.9f, all[2].nesterov = true;
  all[3].momentum = 0.5f, all[3].dampening = 0.25f, all[3].maximize = true;
  all[5].weight_decay = 0.1f;
  all[6].weight_decay = 0.1f, all[6].decoupled = true;
  all[7].amsgrad = true, all[7].maximize = true;
  all[9].momentum = 0.9f, all[9].weight_decay = 0.1f;
  all[10].centered = true;
  all[11].centered = true, all[11].momentum = 0.9f;
  for (int n = 0; n < 12; n++) {
    for (int d = 0; d < 3; d++) {
      check_optimizer(all[n], float_types[d], 1 + (n + d) % TENSORS, n % 3 == 2, d == 1 ? 8 : 1, false);
      if (n / 4 == 1) check_optimizer(all[n], float_types[d], TENSORS - d, n % 3 == 2, 1, true);
    }
  }
}

static void found_inf_stops_the_step(void **state) {
  struct tensors t;
  const rdna_optim o = {RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_SGD, .learning_rate = 1, .momentum = 0.5f, .step = 2};
  make_tensors(&t, 3, RDNA_F16, 0);
  operand inf = one_value(1);
  operand before = t.param[1];
  float *kept = malloc(before.bytes);
  memcpy(kept, before.host, before.bytes);
  assert_ok(rdna_op_optim_step(stream, &o, t.items, 3, NULL, &inf.tensor));
  operand_download(&t.param[1]), operand_download(&t.state[1][0]);
  assert_memory_equal(kept, t.param[1].host, before.bytes);
  for (int64_t i = 0; i < 20000; i++) assert_true(operand_get(&t.state[1][0], i) == 0);
  free(kept);
  free_tensors(&t);
  operand_free(&inf);
}

static void norms_clip_and_unscaling(void **state) {
  for (int d = 0; d < 3; d++) {
    for (int count = 0; count <= TENSORS; count++) {
      struct tensors t;
      make_tensors(&t, count, float_types[d], count % 2);
      const rdna_tensor *grads[TENSORS];
      operand norm = one_value(-1), factor = one_value(-1), inf = one_value(0);
      operand norms = operand_make(RDNA_F32, 1, (const int64_t[]){count}, NULL, 0);
      double sum = 0, sums[TENSORS] = {0};
      for (int i = 0; i < count; i++) {
        grads[i] = &t.grad[i].tensor;
        for (int64_t j = 0; j < operand_span(&t.grad[i]); j++) sums[i] += pow(operand_get(&t.grad[i], j), 2);
        sum += sums[i];
      }
      operand_upload(&norms);
      assert_ok(rdna_op_grad_norms(stream, grads, count, &norms.tensor));
      operand_download(&norms);
      for (int i = 0; i < count; i++) {
        assert_close(RDNA_F32, operand_get(&norms, i), sqrt(sums[i]), sqrt(sums[i]) * 64 * 0x1p-24, "norms", i);
      }
      operand_free(&norms);
      assert_ok(rdna_op_grad_norm(stream, grads, count, 1.5f, &norm.tensor, &factor.tensor));
      assert_ok(rdna_op_grad_scale(stream, grads, count, &factor.tensor, &inf.tensor));
      operand_download(&norm), operand_download(&factor), operand_download(&inf);
      assert_close(RDNA_F32, operand_get(&norm, 0), sqrt(sum), sqrt(sum) * 64 * 0x1p-24, "norm", 0);
      double want = fmin(1, 1.5 / (sqrt(sum) + 1e-6));
      assert_close(RDNA_F32, operand_get(&factor, 0), want, 80 * 0x1p-24, "factor", 0);
      assert_true(operand_get(&inf, 0) == 0);
      for (int i = 0; i < count; i++) {
        operand scaled = t.grad[i];
        double *old = malloc((size_t)operand_span(&scaled) * sizeof *old);
        for (int64_t j = 0; j < operand_span(&scaled); j++) old[j] = operand_get(&scaled, j);
        operand_download(&scaled);
        for (int64_t j = 0; j < operand_span(&scaled); j++) {
          assert_close(float_types[d], operand_get(&scaled, j), old[j] * operand_get(&factor, 0), 0x1p-22, "grad", j);
        }
        free(old);
      }
      if (count == TENSORS) { /* one infinity in the last tensor */
        operand_set(&t.grad[3], 8191, d ? (double)NAN : (double)-INFINITY);
        operand_upload(&t.grad[3]);
        assert_ok(rdna_op_grad_scale(stream, grads, count, &factor.tensor, &inf.tensor));
        operand_download(&inf);
        assert_true(operand_get(&inf, 0) == 1);
      }
      free_tensors(&t);
      operand_free(&norm), operand_free(&factor), operand_free(&inf);
    }
  }
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  struct tensors t, h;
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  make_tensors(&t, 2, RDNA_F32, 0), make_tensors(&h, 1, RDNA_F16, 0);
  operand one = one_value(3);
  rdna_optim o = {RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_ADAM, .learning_rate = 1, .beta1 = 0.9f, .beta2 = 0.9f,
                  .step = 1};
  rdna_optim_item item = t.items[0];
  item.state[1] = NULL;
  assert_refused(rdna_op_optim_step(stream, &o, &item, 1, NULL, NULL), bad, "optim_step: state 1", "NULL");
  item = t.items[0], item.grad = t.items[1].grad;
  assert_refused(rdna_op_optim_step(stream, &o, &item, 1, NULL, NULL), bad, "param is f32 (5)", "(20000)");
  item = t.items[0], item.state[0] = item.param;
  assert_refused(rdna_op_optim_step(stream, &o, &item, 1, NULL, NULL), bad, "state 0", "apart");
  rdna_optim_item mixed[] = {t.items[1], h.items[0]};
  assert_refused(rdna_op_optim_step(stream, &o, mixed, 2, NULL, NULL), bad, "grad 1 is f16", "the first is f32");
  assert_refused(rdna_op_optim_step(stream, &o, t.items, 2, t.items[0].param, NULL), bad, "grad_scale is f32 (5)",
                 "one value");
  assert_refused(rdna_op_optim_step(NULL, &o, t.items, 2, NULL, NULL), bad, "stream", "NULL");
  rdna_optim_item counted[] = {t.items[0], t.items[1]};
  counted[1].step = &one.tensor;
  assert_refused(rdna_op_optim_step(stream, &o, counted, 2, NULL, NULL), bad, "item 1 has a step", "kind is 1");
  counted[0].step = t.items[0].grad;
  assert_refused(rdna_op_optim_step(stream, &o, counted, 2, NULL, NULL), bad, "step is f32 (5)", "one value");
  counted[0].step = &one.tensor, o.kind = RDNA_OPTIM_KIND_SGD;
  assert_refused(rdna_op_optim_step(stream, &o, counted, 2, NULL, NULL), bad, "item 0 has a step", "kind is 0");
  o.kind = RDNA_OPTIM_KIND_ADAM;
  o.step = 0;
  assert_refused(rdna_op_optim_step(stream, &o, t.items, 2, NULL, NULL), bad, "step is 0", "from 1");
  o.step = 1, o.beta1 = 1;
  assert_refused(rdna_op_optim_step(stream, &o, t.items, 2, NULL, NULL), bad, "beta1 is 1", "[0, 1)");
  assert_refused(rdna_op_grad_norm(stream, NULL, 2, 1, &one.tensor, NULL), bad, "grads is NULL", "2");
  assert_refused(rdna_op_grad_norm(stream, NULL, 0, -1, &one.tensor, NULL), bad, "largest is -1", "negative");
  assert_refused(rdna_op_grad_scale(stream, NULL, -2, &one.tensor, NULL), bad, "count is -2", "negative");
  operand_download(&one);
  assert_true(operand_get(&one, 0) == 3);
  free_tensors(&t), free_tensors(&h);
  operand_free(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_match_the_published_rules),
      cmocka_unit_test(found_inf_stops_the_step),
      cmocka_unit_test(norms_clip_and_unscaling),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
