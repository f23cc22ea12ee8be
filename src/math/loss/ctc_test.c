/* Connectionist temporal classification beside all paths one by one, and a sum over paths of probabilities in long
 * double whose differences are the gradient. */
#include "math/common/test/operand.h"
#include "rdna/op/loss.h"

enum { MOST_STATES = 2 * 1100 + 1 };

typedef struct problem {
  int64_t steps, batch, classes, longest, blank;
  double *z;        /* (steps, batch, classes): logits */
  int64_t *targets; /* (batch, longest) */
  int64_t *spans;   /* (batch, 3) */
} problem;

static problem problem_make(int64_t steps, int64_t batch, int64_t classes, int64_t longest) {
  problem p = {.steps = steps, .batch = batch, .classes = classes, .longest = longest};
  p.blank = (int64_t)rdna__random_below(&random_state, (uint64_t)classes);
  p.z = malloc(sizeof(double) * (size_t)(steps * batch * classes + 1));
  p.targets = malloc(sizeof(int64_t) * (size_t)(batch * longest + 1));
  p.spans = malloc(sizeof(int64_t) * (size_t)(batch * 3));
  assert_true(p.z && p.targets && p.spans);
  for (int64_t i = 0; i < steps * batch * classes; i++) p.z[i] = 2 * rdna__random_normal(&random_state);
  for (int64_t i = 0; i < batch * longest; i++) {
    do p.targets[i] = rdna__random_range(&random_state, 0, classes - 1);
    while (p.targets[i] == p.blank && classes > 1);
  }
  for (int64_t i = 0; i < batch; i++) {
    p.spans[3 * i] = i * longest;
    p.spans[3 * i + 1] = rdna__random_range(&random_state, i % 3 == 2 ? longest : 0, longest);
    p.spans[3 * i + 2] = rdna__random_range(&random_state, i % 4 ? 0 : steps, steps);
  }
  return p;
}
static void problem_free(problem *p) { free(p->z), free(p->targets), free(p->spans); }

static long double probability(const problem *p, const double *z, int64_t step, int64_t text, int64_t class) {
  const double *row = z + (step * p->batch + text) * p->classes;
  long double sum = 0;
  for (int64_t c = 0; c < p->classes; c++) sum += expl((long double)row[c]);
  return expl((long double)row[class]) / sum;
}

/* A path says a class for each step; without repetitions and blanks it must be the text. */
static long double by_paths(const problem *p, int64_t text) {
  int64_t count = p->spans[3 * text + 1], steps = p->spans[3 * text + 2], paths = 1;
  const int64_t *labels = p->targets + text * p->longest;
  long double total = 0;
  for (int64_t t = 0; t < steps; t++) paths *= p->classes;
  for (int64_t path = 0; path < paths; path++) {
    long double product = 1;
    int64_t last = -1, found = 0, rest = path;
    for (int64_t t = 0; t < steps; t++) {
      int64_t class = rest % p->classes;
      rest /= p->classes;
      product *= probability(p, p->z, t, text, class);
      if (class != last && class != p->blank) {
        found = found >= 0 && found < count && labels[found] == class ? found + 1 : -1;
        if (found < 0) break;
      }
      last = class;
    }
    if (found == count) total += product;
  }
  return -logl(total);
}

/* Probabilities of all beginnings, step by step, scaled by the class's at each. */
static long double by_states(const problem *p, const double *z, int64_t text) {
  static long double now[MOST_STATES], next[MOST_STATES];
  int64_t count = p->spans[3 * text + 1], steps = p->spans[3 * text + 2], states = 2 * count + 1;
  const int64_t *labels = p->targets + text * p->longest;
  long double scale = 0;
  if (steps == 0) return count ? (long double)INFINITY : 0;
  for (int64_t t = 0; t < steps; t++) {
    long double most = 0;
    for (int64_t s = 0; s < states; s++) {
      int64_t class = s % 2 ? labels[s / 2] : p->blank;
      long double v = t == 0 ? s < 2 : now[s] + (s > 0 ? now[s - 1] : 0);
      if (t > 0 && s > 1 && s % 2 && labels[s / 2] != labels[s / 2 - 1]) v += now[s - 2];
      next[s] = v * probability(p, z, t, text, class);
      most = fmaxl(most, next[s]);
    }
    for (int64_t s = 0; s < states; s++) now[s] = most > 0 ? next[s] / most : 0;
    scale += most > 0 ? logl(most) : 0;
  }
  long double end = now[states - 1] + (states > 1 ? now[states - 2] : 0);
  return end > 0 ? -(logl(end) + scale) : (long double)INFINITY;
}

static void check(problem *p, bool turned, bool zero_infinity, bool by_difference) {
  const rdna_dtype dtype = RDNA_F32;
  int64_t shape[] = {p->steps, p->batch, p->classes}, width = 2 * p->longest + 1;
  int64_t turned_stride[] = {p->classes, p->classes * p->steps, 1};
  operand x = operand_make(dtype, 3, shape, turned ? turned_stride : NULL, 1);
  operand dx = operand_make(dtype, 3, shape, NULL, 0);
  operand states = operand_make(dtype, 3, (int64_t[]){p->batch, p->steps, width}, NULL, 0);
  operand loss = operand_make(dtype, 1, &p->batch, NULL, 0), dloss = operand_make(dtype, 1, &p->batch, NULL, 0);
  operand targets = operand_make(RDNA_I64, 1, (int64_t[]){p->batch * p->longest}, NULL, 0);
  operand spans = operand_make(RDNA_I64, 2, (int64_t[]){p->batch, 3}, NULL, 0);
  memcpy(targets.host, p->targets, targets.bytes), memcpy(spans.host, p->spans, spans.bytes);
  for (int64_t t = 0; t < p->steps; t++) {
    for (int64_t n = 0; n < p->batch; n++) {
      for (int64_t c = 0; c < p->classes; c++) {
        int64_t at = t * x.tensor.stride[0] + n * x.tensor.stride[1] + c * x.tensor.stride[2];
        operand_set(&x, at, (double)logl(probability(p, p->z, t, n, c)));
      }
    }
  }
  operand_upload(&x), operand_upload(&targets), operand_upload(&spans);
  operand_upload(&states), operand_upload(&loss), operand_upload(&dx);
  operand_fill(&dloss, 1);
  assert_ok(
      rdna_op_ctc(stream, &x.tensor, &targets.tensor, &spans.tensor, p->blank, &states.tensor, &loss.tensor, NULL));
  assert_ok(rdna_op_ctc_backward(stream, &dloss.tensor, &x.tensor, &targets.tensor, &spans.tensor, p->blank,
                                 zero_infinity, &states.tensor, &loss.tensor, &dx.tensor));
  operand_download(&states), operand_download(&loss), operand_download(&dx);
  /* each step rounds a logarithm as large as the loss, and the logarithm of the probability */
  const double unit = 0x1p-24;
  for (int64_t n = 0; n < p->batch; n++) {
    double want = (double)by_states(p, p->z, n),
           far = 8 * unit * (double)(p->steps + 1) * (1 + (isinf(want) ? 0 : want));
    assert_close(dtype, operand_get(&loss, n), want, far, "loss", n);
    for (int64_t i = 0; i < p->steps * p->classes; i++) {
      int64_t t = i / p->classes, at = (t * p->batch + n) * p->classes + i % p->classes;
      double got = operand_get(&dx, at), g = operand_get(&dloss, n);
      if (t >= p->spans[3 * n + 2] || (isinf(want) && zero_infinity)) {
        assert_true(got == 0);
      } else if (isinf(want)) {
        assert_true(isnan(got));
      } else if (by_difference) {
        const double h = 1e-5, z = p->z[at];
        p->z[at] = z + h;
        long double up = by_states(p, p->z, n);
        p->z[at] = z - h;
        long double down = by_states(p, p->z, n);
        p->z[at] = z;
        double slope = (double)((up - down) / (2 * (long double)h));
        assert_close(dtype, got, g * slope, fabs(g) * (1e-9 + 2 * far), "dx", at);
      }
    }
  }
  operand_free(&x), operand_free(&dx), operand_free(&states), operand_free(&loss), operand_free(&dloss);
  operand_free(&targets), operand_free(&spans);
}

static void matches_all_paths(void **state) {
  for (int i = 0; i < 12; i++) {
    problem p = problem_make(1 + i % 6, 3, 2 + i % 3, i % 4);
    for (int64_t n = 0; n < p.batch; n++) {
      long double paths = by_paths(&p, n), states = by_states(&p, p.z, n);
      assert_true(isinf(paths) ? isinf(states) : fabsl(paths - states) < 1e-15L * (1 + fabsl(paths)));
    }
    check(&p, i % 3 == 1, i % 2, true);
    problem_free(&p);
  }
}

static void long_texts(void **state) {
  static const int64_t sizes[][4] = {{9, 5, 7, 4}, {0, 2, 3, 1}, {40, 3, 300, 12}, {150, 2, 5, 60}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int t = 0; t < 2; t++) {
      problem p = problem_make(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
      check(&p, t, t, i == 0);
      problem_free(&p);
    }
  }
}

/* More states than group memory holds, and than a group has threads. */
static void very_long_texts(void **state) {
  for (int i = 0; i < 2; i++) {
    problem p = problem_make(i ? 300 : 3, 1, 4, i ? 140 : 1030);
    check(&p, false, false, false);
    p.spans[1] = i ? 140 : 2; /* of a longer row */
    check(&p, false, false, false);
    problem_free(&p);
  }
}

static void labels_outside(void **state) {
  problem p = problem_make(5, 2, 3, 2);
  for (int64_t n = 0; n < 2; n++) p.spans[3 * n + 1] = 1, p.spans[3 * n + 2] = 5;
  int64_t shape[] = {5, 2, 3};
  operand x = operand_make(RDNA_F32, 3, shape, NULL, 0),
          states = operand_make(RDNA_F32, 3, (int64_t[]){2, 5, 5}, NULL, 0);
  operand loss = operand_make(RDNA_F32, 1, (int64_t[]){2}, NULL, 0),
          targets = operand_make(RDNA_I64, 1, (int64_t[]){4}, NULL, 0);
  operand spans = operand_make(RDNA_I64, 2, (int64_t[]){2, 3}, NULL, 0),
          word = operand_make(RDNA_I32, 1, (int64_t[]){1}, NULL, 0);
  for (int bad = 0; bad < 3; bad++) {
    p.targets[2] = bad == 0 ? 0 : bad == 1 ? 3 : -1;
    memcpy(targets.host, p.targets, targets.bytes), memcpy(spans.host, p.spans, spans.bytes);
    operand_set(&word, 0, 0);
    operand_fill(&x, 1);
    operand_upload(&targets), operand_upload(&spans), operand_upload(&word), operand_upload(&loss),
        operand_upload(&states);
    assert_ok(rdna_op_ctc(stream, &x.tensor, &targets.tensor, &spans.tensor, p.blank, &states.tensor, &loss.tensor,
                          word.tensor.data));
    operand_download(&loss), operand_download(&word), operand_download(&states);
    assert_true(operand_get(&word, 0) == (bad > 0));
    assert_true(!isnan(operand_get(&loss, 0)) && isnan(operand_get(&loss, 1)) == (bad > 0));
  }
  operand_free(&x), operand_free(&states), operand_free(&loss), operand_free(&targets), operand_free(&spans);
  operand_free(&word);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_all_paths),
      cmocka_unit_test(long_texts),
      cmocka_unit_test(very_long_texts),
      cmocka_unit_test(labels_outside),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
