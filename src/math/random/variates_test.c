/* Samples beside exact distribution functions and probabilities, gradients beside differences of inverse distribution
 * functions, in long double. */
#include "math/common/test/operand.h"
#include "rdna/op/random.h"

typedef long double wide;

static const rdna_dtype types[] = {RDNA_F64, RDNA_F32, RDNA_F16, RDNA_BF16};

/* An emulated card has the host's bits (cases_test), so that fewer values do there. */
static int64_t sample_count(void) {
  const char *name = getenv("RDNA_TEST_DEVICE");
  return !name || strcmp(name, "host") == 0 ? 200000 : 2000;
}

/* --- distribution functions, by series of positive terms, with their densities --- */

static wide gamma_density(wide a, wide x) { return expl((a - 1) * logl(x) - x - lgammal(a)); }
static wide gamma_below(wide a, wide x) {
  wide term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-21L; k++) term *= x / (a + k), sum += term;
  return x == 0 ? 0 : sum * expl(a * logl(x) - x - lgammal(a + 1));
}
static wide beta_density(wide a, wide b, wide x) {
  return expl((a - 1) * logl(x) + (b - 1) * log1pl(-x) + lgammal(a + b) - lgammal(a) - lgammal(b));
}
static wide beta_below(wide a, wide b, wide x) {
  if (x > 0.5L) return 1 - beta_below(b, a, 1 - x);
  wide term = 1, sum = 1;
  for (int k = 0; term > sum * 1e-21L; k++) term *= x * (a + b + k) / (a + 1 + k), sum += term;
  return x == 0 ? 0 : sum * beta_density(a, b, x) * x * (1 - x) / a;
}

/* --- drawing --- */

enum kind { GAMMA, POISSON, BINOMIAL, DIRICHLET };
static rdna_status draw_into(enum kind kind, uint64_t seed, uint64_t offset, const operand *first,
                             const operand *second, const operand *out) {
  switch (kind) {
    case GAMMA:
      return rdna_op_random_gamma(stream, seed, offset, &first->tensor, &out->tensor);
    case POISSON:
      return rdna_op_random_poisson(stream, seed, offset, &first->tensor, &out->tensor);
    case BINOMIAL:
      return rdna_op_random_binomial(stream, seed, offset, &first->tensor, &second->tensor, &out->tensor);
    default:
      return rdna_op_random_dirichlet(stream, seed, offset, &first->tensor, &out->tensor);
  }
}
static operand filled(rdna_dtype dtype, int rank, const int64_t *shape, const double *v, int64_t period) {
  operand o = operand_make(dtype, rank, shape, NULL, 1);
  for (int64_t i = 0; i < operand_span(&o); i++) operand_set(&o, i, v[i % period]);
  operand_upload(&o);
  return o;
}
/* |count| samples of one distribution, to be freed. */
static double *drawn(enum kind kind, rdna_dtype dtype, int64_t count, double first, double second) {
  operand a = filled(dtype, 1, &count, &first, 1), b = filled(dtype, 1, &count, &second, 1);
  operand out = operand_make(dtype, 1, &count, NULL, 0);
  operand_upload(&out);
  assert_ok(draw_into(kind, 71, 0xfffffff0u, &a, &b, &out));
  operand_download(&out);
  double *v = malloc((size_t)count * sizeof *v);
  assert_non_null(v);
  for (int64_t i = 0; i < count; i++) v[i] = operand_get(&out, i);
  operand_free(&a), operand_free(&b), operand_free(&out);
  return v;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}
/* Sorts, and fails where the share of samples below some of them is farther from the distribution function than one in
 * a million such sets is (Kolmogorov and Smirnov). |least| is where smaller samples lie. */
static void check_distribution(const char *what, double *v, int64_t count, double least, wide (*below)(wide, wide),
                               double parameter) {
  qsort(v, (size_t)count, sizeof *v, by_size);
  double worst = 0, limit = 2.7 / sqrt((double)count);
  for (int64_t i = 0; i < count; i += count / 500) {
    if (v[i] <= least) continue;
    worst = fmax(worst, fabs((double)below((wide)parameter, (wide)v[i]) - ((double)i + 0.5) / (double)count));
  }
  if (!(worst < limit)) fail_msg("%s(%g): %.5f from the distribution, at most %.5f", what, parameter, worst, limit);
}
static void check_moments(const char *what, const double *v, int64_t count, double mean, double variance,
                          double excess) {
  double sum = 0, square = 0;
  for (int64_t i = 0; i < count; i++) sum += (v[i] - mean) / (double)count;
  for (int64_t i = 0; i < count; i++) square += (v[i] - mean) * (v[i] - mean) / (double)count;
  double off = sum / sqrt(variance / (double)count);
  double spread = (square - variance) / (variance * sqrt((2 + excess) / (double)count));
  if (!(fabs(off) < 6)) fail_msg("%s of mean %g: %.2f deviations off", what, mean, off);
  if (!(fabs(spread) < 8)) fail_msg("%s of mean %g, variance %g: %.2f deviations off", what, mean, variance, spread);
}

static void gamma_has_its_distribution(void **state) {
  static const double shapes[] = {1e-3, 0.02, 0.5, 0.9, 1, 3, 1e4};
  for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
    /* a million show that a sample of shape + 1.02 is taken for one of shape + 1 */
    const int64_t count = sample_count() * (shapes[n] > 0.1 && shapes[n] < 1 ? 5 : 1);
    double *v = drawn(GAMMA, RDNA_F64, count, shapes[n], 0);
    if (shapes[n] > 0.1) check_moments("gamma", v, count, shapes[n], shapes[n], 6 / shapes[n]);
    check_distribution("gamma", v, count, 0x1p-1022, gamma_below, shapes[n]);
    assert_true(v[0] >= 0x1p-1022);
    free(v);
  }
  const int64_t count = sample_count();
  double *v = drawn(GAMMA, RDNA_F64, count, 1e12, 0); /* nearly normal: by its moments */
  check_moments("gamma", v, count, 1e12, 1e12, 0);
  free(v);
}

/* --- whole numbers --- */

static wide poisson_log(wide k, wide rate, wide unused) {
  (void)unused;
  return k * logl(rate) - rate - lgammal(k + 1);
}
static wide binomial_log(wide k, wide n, wide p) {
  if (k > n) return -1e9L;
  return lgammal(n + 1) - lgammal(k + 1) - lgammal(n - k + 1) + k * logl(p) + (n - k) * log1pl(-p);
}
/* Pearson's chi-square over runs of numbers of which at least one sample in 100 is expected. */
static void check_numbers(const char *what, double *v, int64_t count, double mean, double deviation,
                          wide (*log_of)(wide, wide, wide), double first, double second) {
  qsort(v, (size_t)count, sizeof *v, by_size);
  double from = floor(fmax(0, mean - 9 * deviation - 9)), to = ceil(mean + 9 * deviation + 40), chi = 0, expected = 0;
  double left = (double)count;
  int64_t at = 0, seen = 0;
  int freedom = 0;
  for (double k = from; k <= to; k++) {
    expected += (double)(expl(log_of((wide)k, (wide)first, (wide)second)) * (wide)count);
    for (; at < count && v[at] <= k; at++) seen++;
    if (expected < (double)count / 100 && k < to) continue;
    if (k == to) expected = left, seen += count - at; /* the last run has the rest */
    if (expected > 1e-9) chi += ((double)seen - expected) * ((double)seen - expected) / fmax(expected, 1), freedom++;
    left -= expected, expected = 0, seen = 0;
  }
  double limit = freedom + 5 * sqrt(2.0 * freedom) + 14;
  if (!(chi < limit)) {
    fail_msg("%s(%g, %g): chi-square %.1f of %d runs, at most %.1f", what, first, second, chi, freedom, limit);
  }
  for (int64_t i = 0; i < count; i++) assert_true(v[i] == floor(v[i]) && v[i] >= 0);
}

static void poisson_has_its_probabilities(void **state) {
  static const double rates[] = {0.1, 1, 5, 9.99, 10, 12, 50, 1000, 1e6};
  int64_t count = sample_count();
  for (size_t n = 0; n < sizeof rates / sizeof *rates; n++) {
    double *v = drawn(POISSON, RDNA_F64, count, rates[n], 0);
    check_moments("Poisson", v, count, rates[n], rates[n], 1 / rates[n]);
    check_numbers("Poisson", v, count, rates[n], sqrt(rates[n]), poisson_log, rates[n], 0);
    free(v);
  }
  double *v = drawn(POISSON, RDNA_F64, count, 1e14, 0);
  check_moments("Poisson", v, count, 1e14, 1e14, 0);
  free(v);
}

static void binomial_has_its_probabilities(void **state) {
  static const double rows[][2] = {{1, 0.3},    {10, 0.3},     {19, 0.5},   {21, 0.5},     {100, 0.0999},
                                   {100, 0.11}, {30, 0.4},     {40, 0.7},   {1000, 0.999}, {1e6, 0.3},
                                   {1e9, 1e-9}, {12345, 0.71}, {50, 0.9999}};
  int64_t count = sample_count();
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    const double n = rows[r][0], p = rows[r][1], variance = n * p * (1 - p);
    double *v = drawn(BINOMIAL, RDNA_F64, count, n, p);
    check_moments("binomial", v, count, n * p, variance, (1 - 6 * p * (1 - p)) / variance);
    check_numbers("binomial", v, count, n * p, sqrt(variance), binomial_log, n, p);
    free(v);
  }
  double *v = drawn(BINOMIAL, RDNA_F64, count, 1e14, 0.25);
  check_moments("binomial", v, count, 0.25e14, 0.1875e14, 0);
  free(v);
}

/* --- Dirichlet --- */

static wide power_below(wide a, wide x) { return powl(x, a); }

/* The first of two values with concentrations a and 1 is below x with probability x^a. */
static void dirichlet_has_its_distribution(void **state) {
  static const double shapes[] = {0.02, 0.5, 1, 40};
  const int64_t rows = sample_count(), shape[] = {rows, 2};
  for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
    const double pair[] = {shapes[n], 1};
    operand a = filled(RDNA_F64, 2, shape, pair, 2), out = operand_make(RDNA_F64, 2, shape, NULL, 0);
    operand_upload(&out);
    assert_ok(draw_into(DIRICHLET, 5, 0, &a, NULL, &out));
    operand_download(&out);
    double *v = malloc((size_t)rows * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < rows; i++) {
      v[i] = operand_get(&out, 2 * i);
      assert_true(fabs(v[i] + operand_get(&out, 2 * i + 1) - 1) < 1e-15);
    }
    check_distribution("Dirichlet", v, rows, 0x1p-1022, power_below, shapes[n]);
    free(v), operand_free(&a), operand_free(&out);
  }
}

/* Of concentrations at which each gamma sample underflows in most rows, nearly all is one value's. */
static void dirichlet_does_not_underflow(void **state) {
  enum { WIDTH = 3 };
  const int64_t rows = sample_count() / 10, shape[] = {rows, WIDTH};
  for (int t = 0; t < 4; t++) {
    const double tiny = 1e-3;
    operand a = filled(types[t], 2, shape, &tiny, 1), out = operand_make(types[t], 2, shape, NULL, 1);
    operand_upload(&out);
    assert_ok(draw_into(DIRICHLET, 6, 9, &a, NULL, &out));
    operand_download(&out);
    double first[WIDTH] = {0}, even = 0;
    for (int64_t i = 0; i < rows; i++) {
      double sum = 0, most = 0;
      for (int k = 0; k < WIDTH; k++) {
        double x = operand_get(&out, WIDTH * i + k);
        assert_true(x > 0 && x <= 1);
        sum += x, most = fmax(most, x), first[k] += x / (double)rows;
      }
      assert_true(fabs(sum - 1) < (t < 2 ? 1e-6 : 0.01));
      even += most < 0.9;
    }
    assert_true(even < 0.02 * (double)rows);
    for (int k = 0; k < WIDTH; k++) assert_true(fabs(first[k] - 1.0 / 3) < 6 * sqrt(2.0 / 9 / (double)rows));
    operand_free(&a), operand_free(&out);
  }
}

/* --- types, places, edges --- */

/* Each type has the samples of f64, rounded. */
static void types_round_the_same_samples(void **state) {
  static const double first[] = {0.5, 3, 0.125, 20, 100, 7}, second[] = {0.5, 0.25, 0.75, 0.125, 1, 0};
  const int64_t count = 601;
  for (int kind = GAMMA; kind <= BINOMIAL; kind++) {
    operand exact = operand_make(RDNA_F64, 1, &count, NULL, 0);
    operand_upload(&exact);
    for (int t = 0; t < 4; t++) {
      operand a = filled(types[t], 1, &count, first, 6), b = filled(types[t], 1, &count, second, 6);
      operand *out = t == 0 ? &exact : kind == BINOMIAL ? &b : &a; /* in place */
      assert_ok(draw_into((enum kind)kind, 3, 4, &a, &b, out));
      operand_download(out);
      for (int64_t i = 0; i < count; i++) {
        double want = operand_get(&exact, i), step = t == 2 ? fmax(want * 0x1p-25, 0x1p-24) : want * 0x1p-25;
        assert_close(types[t], operand_get(out, i), want, t ? step : 0, "sample", i);
      }
      operand_free(&a), operand_free(&b);
    }
    operand_free(&exact);
  }
}

/* A call for a part of the values gives what one call for all gives there; calls whose counters follow one another have
 * no values in common, nor are neighbours correlated. */
static void values_depend_on_their_place_alone(void **state) {
  const int64_t count = sample_count() / 4, rest = count - 123;
  static const double first[] = {3}, second[] = {0.4};
  for (int kind = GAMMA; kind <= BINOMIAL; kind++) {
    const double scale = kind == GAMMA ? 1 : 30;
    const double parameter = first[0] * scale;
    operand a = filled(RDNA_F64, 1, &count, &parameter, 1), b = filled(RDNA_F64, 1, &count, second, 1);
    operand some = filled(RDNA_F64, 1, &rest, &parameter, 1), p = filled(RDNA_F64, 1, &rest, second, 1);
    operand all = operand_make(RDNA_F64, 1, &count, NULL, 0), part = operand_make(RDNA_F64, 1, &rest, NULL, 1);
    operand next = operand_make(RDNA_F64, 1, &count, NULL, 0);
    operand_upload(&all), operand_upload(&part), operand_upload(&next);
    const uint64_t offset = 0xfffffff0u; /* the counter carries into its second word */
    assert_ok(draw_into((enum kind)kind, 77, offset, &a, &b, &all));
    assert_ok(draw_into((enum kind)kind, 77, offset + 123, &some, &p, &part));
    assert_ok(draw_into((enum kind)kind, 77, offset + (uint64_t)count, &a, &b, &next));
    operand_download(&all), operand_download(&part), operand_download(&next);
    assert_memory_equal(all.host + 123 * 8, part.host, part.bytes);
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < count; i++) mean += operand_get(&all, i) / (double)count;
    for (int64_t i = 0; i < count; i++) variance += pow(operand_get(&all, i) - mean, 2) / (double)count;
    for (int lag = 0; lag < 4; lag++) { /* 0: of the two calls */
      double sum = 0;
      for (int64_t i = 0; i + lag < count; i++) {
        sum += (operand_get(&all, i) - mean) * (operand_get(lag ? &all : &next, i + lag) - mean);
      }
      double correlation = sum / variance / (double)count;
      if (fabs(correlation) > 6 / sqrt((double)count)) fail_msg("kind %d, lag %d: %.4f", kind, lag, correlation);
    }
    operand_free(&a), operand_free(&b), operand_free(&some), operand_free(&p);
    operand_free(&all), operand_free(&part), operand_free(&next);
  }
}

static void edges(void **state) {
  const double inf = (double)INFINITY, nan = (double)NAN;
  const struct {
    enum kind kind;
    double first, second, want;
  } rows[] = {
      {GAMMA, 0, 0, 0x1p-126},     {GAMMA, -1, 0, nan},        {GAMMA, nan, 0, nan},      {GAMMA, inf, 0, inf},
      {GAMMA, 1e-30, 0, 0x1p-126}, {POISSON, 0, 0, 0},         {POISSON, -0.0, 0, 0},     {POISSON, -1, 0, nan},
      {POISSON, nan, 0, nan},      {POISSON, inf, 0, inf},     {POISSON, 1e-30, 0, 0},    {BINOMIAL, 0, 0.5, 0},
      {BINOMIAL, -3, 0.5, 0},      {BINOMIAL, 10, 0, 0},       {BINOMIAL, 10, 1, 10},     {BINOMIAL, 10, -0.1, 0},
      {BINOMIAL, 10, 1.1, 10},     {BINOMIAL, 10, nan, nan},   {BINOMIAL, nan, 0.5, nan}, {BINOMIAL, 0.5, 0.5, 0},
      {BINOMIAL, inf, 0.5, inf},   {BINOMIAL, 1e30, 1e-40, 0}, {BINOMIAL, 0, nan, 0},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    double *v = drawn(rows[r].kind, RDNA_F32, 1, rows[r].first, rows[r].second);
    if (!(isnan(rows[r].want) ? isnan(v[0]) : v[0] == rows[r].want)) {
      fail_msg("kind %d (%g, %g): got %g, want %g", rows[r].kind, rows[r].first, rows[r].second, v[0], rows[r].want);
    }
    free(v);
  }
}

/* --- gradients --- */

/* The x at which the distribution of parameter |a| has reached |p|, from a guess on. */
static wide gamma_inverse(wide a, wide p, wide x) {
  for (int step = 0; step < 6; step++) x -= (gamma_below(a, x) - p) / gamma_density(a, x);
  return x;
}
static wide beta_inverse(wide a, wide b, wide p, wide x) {
  for (int step = 0; step < 6; step++) x -= (beta_below(a, b, x) - p) / beta_density(a, b, x);
  return x;
}

typedef struct row {
  double a, b, x;
} row;
enum { MOST_ROWS = 400 };

/* Samples from 4 deviations below the mean to 4 above it. */
static int gamma_rows(row *rows) {
  static const double shapes[] = {0.02, 0.3, 0.999, 1, 1.5, 7, 60, 900, 2e5};
  int count = 0;
  for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
    for (double z = -4; z <= 4; z += shapes[n] > 1000 ? 2 : 0.5) {
      double a = shapes[n], x = z > 0 || a > 20 ? a + z * sqrt(a) : a * exp(z / fmin(a, 1));
      if (x > 1e-250) rows[count++] = (row){a, 0, x};
    }
  }
  return count;
}
static int beta_rows(row *rows) {
  static const double pairs[][2] = {{0.02, 0.05}, {0.5, 0.5}, {1, 1},    {2, 3},    {0.3, 40},
                                    {40, 0.3},    {90, 200},  {3, 2000}, {2000, 3}, {1.2e5, 2e5}};
  int count = 0;
  for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
    double a = pairs[n][0], b = pairs[n][1], mean = a / (a + b), deviation = sqrt(mean * (1 - mean) / (a + b + 1));
    for (double z = -4; z <= 4; z += a > 1e4 ? 2 : 0.5) {
      double x = mean + z * deviation;
      if (x <= 0) x = mean * exp(2 * z);
      if (x >= 1) x = 1 - (1 - mean) * exp(-z);
      if (x > 1e-250 && x < 1) rows[count++] = (row){a, b, x};
    }
  }
  return count;
}

static void check_gradients(bool dirichlet) {
  static row rows[MOST_ROWS];
  int made = dirichlet ? beta_rows(rows) : gamma_rows(rows);
  assert_in_range(made, 50, MOST_ROWS);
  const int64_t count = made;
  for (int t = 0; t < 4; t++) {
    operand x = operand_make(types[t], 1, &count, NULL, 0), a = operand_make(types[t], 1, &count, NULL, 1);
    operand total = operand_make(types[t], 1, &count, NULL, 0), out = operand_make(types[t], 1, &count, NULL, 1);
    for (int i = 0; i < made; i++) {
      operand_set(&x, i, rows[i].x), operand_set(&a, i, rows[i].a), operand_set(&total, i, rows[i].a + rows[i].b);
    }
    operand_upload(&x), operand_upload(&a), operand_upload(&total), operand_upload(&out);
    assert_ok(dirichlet ? rdna_op_random_dirichlet_gradient(stream, &x.tensor, &a.tensor, &total.tensor, &out.tensor)
                        : rdna_op_random_gamma_gradient(stream, &a.tensor, &x.tensor, &out.tensor));
    operand_download(&out);
    for (int i = 0; i < made; i++) {
      const wide A = (wide)operand_get(&a, i), B = (wide)operand_get(&total, i) - A, X = (wide)operand_get(&x, i);
      const wide h = A * 1e-5L;
      if (!(X > 1e-250L && X < (dirichlet ? 1 : 1e300L)) || (dirichlet && B <= 0)) continue; /* rounded to there */
      if (t >= 2 && (A > 1000 || (dirichlet && B > 1000))) continue; /* nor do 16 bits have such sums */
      wide p = dirichlet ? beta_below(A, B, X) : gamma_below(A, X), want;
      if (p < 1e-12L || p > 1 - 1e-9L) continue; /* there the differences say nothing */
      if (dirichlet) {
        want = (beta_inverse(A + h, B, p, X) - beta_inverse(A - h, B, p, X)) / (2 * h) / (1 - X);
      } else {
        want = (gamma_inverse(A + h, p, X) - gamma_inverse(A - h, p, X)) / (2 * h);
      }
      assert_close(types[t], operand_get(&out, i), (double)want, fabs((double)want) * 2e-6,
                   dirichlet ? "Dirichlet gradient" : "gamma gradient", i);
    }
    operand_free(&x), operand_free(&a), operand_free(&total), operand_free(&out);
  }
}
static void gamma_gradients_are_those_of_the_inverse(void **state) { check_gradients(false); }
static void dirichlet_gradients_are_those_of_the_inverse(void **state) { check_gradients(true); }

/* d x / d shape, and of the beta distribution over 1 - x, where they have a closed form or a limit. */
static void edges_of_gradients(void **state) {
  const double inf = (double)INFINITY, nan = (double)NAN;
  const struct {
    double x, a, total, want; /* total 0: gamma's */
  } rows[] = {
      {0, 2, 0, 0},
      {inf, 2, 0, nan},
      {-1, 2, 0, nan},
      {nan, 2, 0, nan},
      {1, 0, 0, nan},
      {1, nan, 0, nan},
      {0, 1, 3, 0},
      {1, 2, 5, 13.0 / 12 / 3},
      {-1, 1, 3, nan},
      {2, 1, 3, nan},
      {nan, 1, 3, nan},
      {0.5, 0, 3, nan},
      {0.5, 3, 2, nan},
      {0.5, 3, 3, 0},
      {0.3, 4, 5, 0.3 * 1.2039728043259361 / 4 / 0.7}, /* F = x^a: dx/da = -x log(x) / a */
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    const int64_t one = 1;
    operand x = filled(RDNA_F64, 1, &one, &rows[r].x, 1), a = filled(RDNA_F64, 1, &one, &rows[r].a, 1);
    operand total = filled(RDNA_F64, 1, &one, &rows[r].total, 1);
    assert_ok(rows[r].total == 0
                  ? rdna_op_random_gamma_gradient(stream, &a.tensor, &x.tensor, &x.tensor)
                  : rdna_op_random_dirichlet_gradient(stream, &x.tensor, &a.tensor, &total.tensor, &x.tensor));
    operand_download(&x);
    double got = operand_get(&x, 0), want = rows[r].want;
    if (!(isnan(want) ? isnan(got) : fabs(got - want) <= 1e-13)) {
      fail_msg("of (%g, %g, %g): got %.17g, want %.17g", rows[r].x, rows[r].a, rows[r].total, got, want);
    }
    operand_free(&x), operand_free(&a), operand_free(&total);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gamma_has_its_distribution),
      cmocka_unit_test(poisson_has_its_probabilities),
      cmocka_unit_test(binomial_has_its_probabilities),
      cmocka_unit_test(dirichlet_has_its_distribution),
      cmocka_unit_test(dirichlet_does_not_underflow),
      cmocka_unit_test(types_round_the_same_samples),
      cmocka_unit_test(values_depend_on_their_place_alone),
      cmocka_unit_test(edges),
      cmocka_unit_test(gamma_gradients_are_those_of_the_inverse),
      cmocka_unit_test(dirichlet_gradients_are_those_of_the_inverse),
      cmocka_unit_test(edges_of_gradients),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
