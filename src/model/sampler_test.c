#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "base/testing.h"
#include "rdna/model.h"

enum { MOST = 512 };

static rdna_sampler *create(rdna_sampling sampling) {
  rdna_sampler *sampler = NULL;
  if (rdna_sampler_create(&sampling, &sampler) != RDNA_OK) fail_msg("%s", rdna_last_error());
  return sampler;
}

/* The definition, written out: which tokens are left, by counting the more likely ones, and how likely each is. */
static void exact(const float *logits, int count, rdna_sampling s, const bool *said, double *out) {
  double l[MOST], p[MOST];
  bool kept[MOST];
  for (int i = 0; i < count; i++) {
    l[i] = logits[i];
    if (said && said[i]) l[i] = (float)(l[i] > 0 ? logits[i] / s.repetition_penalty : logits[i] * s.repetition_penalty);
  }
  double total = 0;
  for (int i = 0; i < count; i++) {
    int before = 0;
    for (int j = 0; j < count; j++) before += l[j] > l[i] || (l[j] == l[i] && j < i);
    kept[i] = s.top_k == 0 || before < s.top_k;
    p[i] = kept[i] ? exp(l[i]) : 0;
    total += p[i];
  }
  bool next[MOST];
  double most = 0;
  for (int i = 0; i < count; i++) {
    double before = 0; /* what the more likely ones reach without this one */
    for (int j = 0; j < count; j++)
      if (kept[j] && (l[j] > l[i] || (l[j] == l[i] && j < i))) before += p[j];
    next[i] = kept[i] && (s.top_p >= 1 || before == 0 || before / total < (double)s.top_p);
    if (next[i] && p[i] > most) most = p[i];
  }
  total = 0;
  for (int i = 0; i < count; i++) {
    bool in = next[i] && p[i] >= (double)s.min_p * most;
    out[i] = in ? exp(l[i] / s.temperature) : 0;
    total += out[i];
  }
  for (int i = 0; i < count; i++) out[i] /= total;
}

/* The value that chi-square with |freedom| degrees exceeds once in 10,000 times (Wilson and Hilferty, 1931). */
static double critical(int freedom) {
  double f = freedom, t = 1 - 2 / (9 * f) + 3.719 * sqrt(2 / (9 * f));
  return f * t * t * t;
}

static void check_distribution(const float *logits, int count, rdna_sampling s, const bool *said) {
  enum { DRAWS = 40000 };
  double wanted[MOST];
  int seen[MOST] = {0};
  exact(logits, count, s, said, wanted);
  rdna_sampler *sampler = create(s);
  for (int i = 0; said && i < count; i++)
    if (said[i]) assert_ok(rdna_sampler_accept(sampler, i));
  for (int d = 0; d < DRAWS; d++) {
    int32_t id = -1;
    assert_ok(rdna_sampler_sample(sampler, logits, (size_t)count, &id));
    assert_in_range(id, 0, count - 1);
    seen[id]++;
    if (!said) continue; /* the draw itself counts as said: start again */
    rdna_sampler_release(sampler);
    s.seed++;
    sampler = create(s);
    for (int i = 0; i < count; i++)
      if (said[i]) assert_ok(rdna_sampler_accept(sampler, i));
  }
  rdna_sampler_release(sampler);
  double chi = 0, rest_wanted = 0, rest_seen = 0;
  int cells = 0;
  for (int i = 0; i < count; i++) {
    if (wanted[i] == 0) assert_int_equal(seen[i], 0);
    double expected = wanted[i] * DRAWS;
    if (expected < 8) { /* too rare for the statistic: together */
      rest_wanted += expected;
      rest_seen += seen[i];
      continue;
    }
    chi += (seen[i] - expected) * (seen[i] - expected) / expected;
    cells++;
  }
  if (rest_wanted >= 8) {
    chi += (rest_seen - rest_wanted) * (rest_seen - rest_wanted) / rest_wanted;
    cells++;
  }
  if (cells > 1 && chi > critical(cells - 1)) fail_msg("chi-square %g over %d cells", chi, cells);
}

static void test_distributions(void **state) {
  rdna__random random;
  rdna__random_seed(&random, 3);
  float logits[MOST];
  rdna_sampling plain = {RDNA_SAMPLING_INIT};
  for (int round = 0; round < 24; round++) {
    int count = (int)rdna__random_range(&random, 1, round % 3 ? 40 : 300);
    for (int i = 0; i < count; i++) {
      logits[i] = (float)(rdna__random_normal(&random) * 2);
      if (round % 4 == 3) logits[i] = roundf(logits[i]); /* ties */
      if (round % 5 == 4 && i) logits[i] = rdna__random_below(&random, 2) ? -INFINITY : logits[i];
    }
    rdna_sampling s = plain;
    s.seed = (uint64_t)round;
    if (round & 1) s.top_k = (int32_t)rdna__random_range(&random, 1, count);
    if (round & 2) s.top_p = (float)rdna__random_unit(&random);
    if (round & 4) s.min_p = (float)(rdna__random_unit(&random) * 0.3);
    if (round & 8) s.temperature = (float)(0.3 + rdna__random_unit(&random) * 1.5);
    check_distribution(logits, count, s, NULL);
  }
}

static void test_penalty(void **state) {
  const float logits[] = {2.0f, -1.0f, 0.5f, 1.5f, 0.0f};
  const bool said[] = {true, true, false, false, true};
  rdna_sampling s = {RDNA_SAMPLING_INIT};
  s.repetition_penalty = 1.7f;
  s.repeat_last_n = 3;
  check_distribution(logits, 5, s, said);
  s.repetition_penalty = 0.5f; /* below 1 it rewards */
  s.top_k = 3;
  check_distribution(logits, 5, s, said);
}

/* Greedy over two tokens shows which are still in the window. */
static void test_window(void **state) {
  const float logits[] = {1.0f, 0.9f, 0.8f, 0.7f};
  rdna_sampling s = {RDNA_SAMPLING_INIT};
  s.temperature = 0;
  s.repetition_penalty = 2;
  s.repeat_last_n = 2;
  rdna_sampler *sampler = create(s);
  /* each was penalized to about half for the two draws after it was said */
  static const int32_t wanted[] = {0, 1, 2, 0, 1, 2, 0};
  for (int i = 0; i < 7; i++) {
    int32_t id = -1;
    assert_ok(rdna_sampler_sample(sampler, logits, 4, &id));
    assert_int_equal(id, wanted[i]);
  }
  rdna_sampler_release(sampler);
  s.repeat_last_n = 0; /* nothing is remembered */
  sampler = create(s);
  for (int i = 0; i < 4; i++) {
    int32_t id = -1;
    assert_ok(rdna_sampler_sample(sampler, logits, 4, &id));
    assert_int_equal(id, 0);
  }
  rdna_sampler_release(sampler);
  s.repeat_last_n = 128; /* the same token many times is penalized once: 1/2 > 0.4 */
  sampler = create(s);
  const float two[] = {1.0f, 0.4f};
  for (int i = 0; i < 200; i++) assert_ok(rdna_sampler_accept(sampler, 0));
  assert_ok(rdna_sampler_accept(sampler, 1000)); /* of a wider vocabulary: no harm */
  int32_t id = -1;
  assert_ok(rdna_sampler_sample(sampler, two, 2, &id));
  assert_int_equal(id, 0);
  assert_int_equal(rdna_sampler_accept(sampler, -1), RDNA_INVALID_ARGUMENT);
  rdna_sampler_release(sampler);
  s.repetition_penalty = 1e-38f; /* beyond the range of f32, and still a number */
  sampler = create(s);
  const float large[] = {1e30f, 1.0f};
  assert_ok(rdna_sampler_accept(sampler, 0));
  assert_ok(rdna_sampler_sample(sampler, large, 2, &id));
  assert_int_equal(id, 0);
  rdna_sampler_release(sampler);
}

static void test_narrow(void **state) {
  const float logits[] = {0.5f, 3.0f, -1.0f, 3.0f, 2.9f};
  rdna_sampling plain = {RDNA_SAMPLING_INIT}, narrow[5];
  for (int i = 0; i < 5; i++) narrow[i] = plain;
  narrow[0].temperature = 0;
  narrow[1].top_k = 1;
  narrow[2].top_p = 0;
  narrow[3].temperature = 1e-30f;
  narrow[4].temperature = 0, narrow[4].top_k = 4, narrow[4].min_p = 1;
  for (int n = 0; n < 5; n++) {
    rdna_sampler *sampler = create(narrow[n]);
    for (int i = 0; i < 50; i++) {
      int32_t id = -1;
      assert_ok(rdna_sampler_sample(sampler, logits, 5, &id));
      if (n == 3) {
        assert_true(id == 1 || id == 3); /* a tie stays a tie, however cold */
      } else {
        assert_int_equal(id, 1); /* the first of equals */
      }
    }
    rdna_sampler_release(sampler);
  }
  plain.min_p = 1; /* all that are as likely as the most likely */
  const double half[] = {0, 0.5, 0, 0.5, 0};
  double p[5];
  exact(logits, 5, plain, NULL, p);
  for (int i = 0; i < 5; i++) assert_true(fabs(p[i] - half[i]) < 1e-12);
  check_distribution(logits, 5, plain, NULL);
  const float one[] = {-7.0f};
  check_distribution(one, 1, plain, NULL);
}

/* Exactly the first |kept| ids come, and each of them does. */
static void check_kept(const float *logits, int count, rdna_sampling s, int kept) {
  enum { DRAWS = 400 };
  int seen[MOST] = {0}, different = 0;
  rdna_sampler *sampler = create(s);
  for (int d = 0; d < DRAWS; d++) {
    int32_t id = -1;
    assert_ok(rdna_sampler_sample(sampler, logits, (size_t)count, &id));
    assert_in_range(id, 0, count - 1);
    different += seen[id]++ == 0;
    if (id >= kept)
      fail_msg("top_k %d, top_p %a, min_p %a of %d: token %d came, %d are kept", (int)s.top_k, (double)s.top_p,
               (double)s.min_p, count, (int)id, kept);
  }
  if (different != kept)
    fail_msg("top_k %d, top_p %a, min_p %a of %d: %d tokens came, %d are kept", (int)s.top_k, (double)s.top_p,
             (double)s.min_p, count, different, kept);
  rdna_sampler_release(sampler);
}

/* Equal logits make shares that are exact, and sums of them that are p itself: the fewest that reach p are kept. */
static void test_exact_edges(void **state) {
  static const float level[8] = {0}, rising[] = {1, 1, 1, 1, 0, 0, 0, 0};
  rdna_sampling plain = {RDNA_SAMPLING_INIT};
  plain.temperature = 100;
  for (int n = 1; n < 8; n++) {
    rdna_sampling s = plain;
    s.top_p = (float)n / 8;
    check_kept(level, 8, s, n);
    s.top_p = nextafterf((float)n / 8, 1);
    check_kept(level, 8, s, n + 1);
    s.top_p = nextafterf((float)n / 8, 0);
    check_kept(level, 8, s, n);
    s.top_p = 1;
    s.top_k = n; /* of equals the first, whichever side of a step they lie on */
    check_kept(level, 8, s, n);
    check_kept(rising, 8, s, n);
    s.top_p = 0.5f; /* of what top_k has left */
    check_kept(level, 8, s, (n + 1) / 2);
  }
  rdna_sampling s = plain;
  for (int k = 7; k <= 9; k++) s.top_k = k, check_kept(level, 8, s, k < 8 ? k : 8);
  s = plain;
  s.min_p = 1;
  check_kept(level, 8, s, 8);
  check_kept(rising, 8, s, 4);
  /* half as likely is log(2) below: the float next above it is kept, the nearest, which is below, is not */
  float half[] = {0, nextafterf((float)-log(2), 0), (float)-log(2)};
  assert_true((double)half[2] < -log(2) && (double)half[1] > -log(2));
  s.min_p = 0.5f;
  check_kept(half, 3, s, 2);
  s.min_p = 0; /* keeps even what is next to impossible: only -inf never comes */
  const float ruled_out[] = {0, 0, -INFINITY};
  check_kept(ruled_out, 3, s, 2);
}

static void test_seeds(void **state) {
  enum { COUNT = 1000, DRAWS = 64 };
  float logits[COUNT];
  rdna__random random;
  rdna__random_seed(&random, 8);
  for (int i = 0; i < COUNT; i++) logits[i] = (float)rdna__random_normal(&random);
  int32_t drawn[3][DRAWS];
  for (int run = 0; run < 3; run++) {
    rdna_sampling s = {RDNA_SAMPLING_INIT};
    s.top_p = 0.95f;
    s.seed = run == 2 ? 43 : 42;
    rdna_sampler *sampler = create(s);
    for (int d = 0; d < DRAWS; d++) assert_ok(rdna_sampler_sample(sampler, logits, COUNT, &drawn[run][d]));
    rdna_sampler_release(sampler);
  }
  assert_memory_equal(drawn[0], drawn[1], sizeof drawn[0]);
  assert_true(memcmp(drawn[0], drawn[2], sizeof drawn[0]) != 0);
}

static void test_bad_logits(void **state) {
  rdna_sampling s = {RDNA_SAMPLING_INIT};
  for (int greedy = 0; greedy < 2; greedy++) {
    s.temperature = greedy ? 0 : 1;
    rdna_sampler *sampler = create(s), *twin = create(s);
    int32_t id = -7;
    const float not_number[] = {1, NAN, 2}, infinite[] = {1, INFINITY}, none[] = {-INFINITY, -INFINITY};
    assert_int_equal(rdna_sampler_sample(sampler, not_number, 3, &id), RDNA_BAD_DATA);
    assert_non_null(strstr(rdna_last_error(), "token 1 is not a number"));
    assert_int_equal(rdna_sampler_sample(sampler, infinite, 2, &id), RDNA_BAD_DATA);
    assert_int_equal(rdna_sampler_sample(sampler, none, 2, &id), RDNA_BAD_DATA);
    assert_int_equal(rdna_sampler_sample(sampler, none, 0, &id), RDNA_INVALID_ARGUMENT);
    assert_int_equal(id, -7);
    const float fine[] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int i = 0; i < 20; i++) { /* the failures drew nothing */
      int32_t other;
      assert_ok(rdna_sampler_sample(sampler, fine, 8, &id));
      assert_ok(rdna_sampler_sample(twin, fine, 8, &other));
      assert_int_equal(id, other);
    }
    rdna_sampler_release(sampler);
    rdna_sampler_release(twin);
  }
}

static void refuse(rdna_sampling s, const char *name) {
  rdna_sampler *sampler = NULL;
  assert_int_equal(rdna_sampler_create(&s, &sampler), RDNA_INVALID_ARGUMENT);
  assert_null(sampler);
  assert_non_null(strstr(rdna_last_error(), name));
}

static void test_bad_numbers(void **state) {
  static const float bad_shares[] = {-0.1f, 1.1f, NAN, INFINITY}, bad_temperatures[] = {-1, NAN, INFINITY};
  static const float bad_penalties[] = {0, -1, NAN, INFINITY};
  rdna_sampling s = {RDNA_SAMPLING_INIT};
  assert_true(s.temperature == 1 && s.top_p == 1 && s.top_k == 0 && s.repetition_penalty == 1 && s.min_p == 0);
  assert_int_equal(s.repeat_last_n, 128);
  for (int i = 0; i < 4; i++) {
    s = (rdna_sampling){RDNA_SAMPLING_INIT}, s.top_p = bad_shares[i], refuse(s, "top_p");
    s = (rdna_sampling){RDNA_SAMPLING_INIT}, s.min_p = bad_shares[i], refuse(s, "min_p");
    s = (rdna_sampling){RDNA_SAMPLING_INIT}, s.repetition_penalty = bad_penalties[i], refuse(s, "repetition_penalty");
    if (i < 3) s = (rdna_sampling){RDNA_SAMPLING_INIT}, s.temperature = bad_temperatures[i], refuse(s, "temperature");
  }
  s = (rdna_sampling){RDNA_SAMPLING_INIT}, s.top_k = -1, refuse(s, "top_k");
  s = (rdna_sampling){RDNA_SAMPLING_INIT}, s.repeat_last_n = -1, refuse(s, "repeat_last_n");
  s = (rdna_sampling){RDNA_SAMPLING_INIT}, s.repeat_last_n = INT32_MAX, refuse(s, "repeat_last_n");
  rdna_sampler *sampler = NULL;
  assert_int_equal(rdna_sampler_create(NULL, &sampler), RDNA_INVALID_ARGUMENT);
  rdna_sampler_release(NULL);
}

/* Distributions over more tokens than a block of weights has, of which few, many or all are likely: the shares of
 * sixteen parts of the vocabulary against what exp() in double says. */
static void test_large(void **state) {
  enum { COUNT = 5003, PARTS = 16, DRAWS = 3000 };
  static const struct {
    float scale, temperature, top_p, min_p;
    int32_t top_k;
  } rows[] = {{1, 1, 1, 0, 0},        {4, 0.7f, 1, 0, 0},  {1, 1, 0.9f, 0, 0},       {6, 1.3f, 0.95f, 0, 0},
              {0.01f, 1, 0.5f, 0, 0}, {2, 1, 1, 0.02f, 0}, {2, 1, 1, 0, 700},        {2, 1, 0.8f, 0.01f, 2000},
              {40, 50, 1, 0, 0},      {0, 1, 0.3f, 0, 0},  {1000, 300, 0.99f, 0, 0}, {2, 1e-3f, 1, 0, 4000}};
  float logits[COUNT];
  rdna__random random;
  rdna__random_seed(&random, 12);
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    for (int i = 0; i < COUNT; i++) logits[i] = rows[r].scale * (float)rdna__random_normal(&random);
    logits[17] = -INFINITY;
    rdna_sampling s = {RDNA_SAMPLING_INIT};
    s.temperature = rows[r].temperature, s.top_p = rows[r].top_p, s.min_p = rows[r].min_p, s.top_k = rows[r].top_k;
    s.seed = r;
    /* by rank: those before the first that is left out */
    static int32_t rank[COUNT];
    static double p[COUNT];
    for (int i = 0; i < COUNT; i++) {
      int at = 0;
      for (int j = 0; j < COUNT; j++) at += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
      rank[at] = i;
    }
    int kept = s.top_k ? s.top_k : COUNT;
    double top = logits[rank[0]], total = 0, sum = 0;
    for (int n = 0; n < kept; n++) total += exp(logits[rank[n]] - top);
    int reached = kept;
    for (int n = 0; n < kept && reached == kept; n++) {
      sum += exp(logits[rank[n]] - top);
      if (s.top_p < 1 && sum >= (double)s.top_p * total) reached = n + 1;
    }
    memset(p, 0, sizeof p);
    total = 0;
    for (int n = 0; n < reached; n++) {
      if (exp(logits[rank[n]] - top) < (double)s.min_p) break;
      total += p[rank[n]] = exp((logits[rank[n]] - top) / (double)s.temperature);
    }
    double wanted[PARTS] = {0}, chi = 0;
    int seen[PARTS] = {0}, cells = 0;
    rdna_sampler *sampler = create(s);
    for (int i = 0; i < COUNT; i++) wanted[i % PARTS] += DRAWS * p[i] / total;
    for (int d = 0; d < DRAWS; d++) {
      int32_t id = -1;
      assert_ok(rdna_sampler_sample(sampler, logits, COUNT, &id));
      assert_in_range(id, 0, COUNT - 1);
      if (!(p[id] > 0) && id != rank[reached]) /* sums of floats may end a token later */
        fail_msg("row %zu: token %d came, which is left out", r, (int)id);
      seen[id % PARTS]++;
    }
    rdna_sampler_release(sampler);
    for (int k = 0; k < PARTS; k++) {
      if (wanted[k] < 5) continue;
      chi += (seen[k] - wanted[k]) * (seen[k] - wanted[k]) / wanted[k];
      cells++;
    }
    if (cells > 1 && chi > critical(cells - 1)) fail_msg("row %zu: chi-square %g of %d parts", r, chi, cells);
  }
}

/* Large vocabularies, rising, falling, level and random: top-k keeps exactly the k most likely. */
static void test_selection(void **state) {
  enum { COUNT = 50000 };
  float *logits = malloc(COUNT * sizeof *logits);
  assert_non_null(logits);
  rdna__random random;
  rdna__random_seed(&random, 5);
  for (int shape = 0; shape < 5; shape++) {
    for (int i = 0; i < COUNT; i++) {
      float x = (float)i / COUNT;
      float y = (float)rdna__random_unit(&random);
      logits[i] = shape == 0 ? x : shape == 1 ? -x : shape == 2 ? 1 : shape == 3 ? y : floorf(y * 10);
    }
    for (int k = 1; k <= COUNT; k = k * 7 + 1) {
      rdna_sampling s = {RDNA_SAMPLING_INIT};
      s.top_k = k;
      s.temperature = 100; /* near level, so that all that are kept may come */
      s.seed = (uint64_t)k;
      rdna_sampler *sampler = create(s);
      for (int d = 0; d < 20; d++) {
        int32_t id = -1;
        assert_ok(rdna_sampler_sample(sampler, logits, COUNT, &id));
        int before = 0;
        for (int i = 0; i < COUNT; i++) before += logits[i] > logits[id] || (logits[i] == logits[id] && i < id);
        assert_true(before < k);
      }
      rdna_sampler_release(sampler);
    }
  }
  free(logits);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_distributions), cmocka_unit_test(test_penalty),     cmocka_unit_test(test_window),
      cmocka_unit_test(test_narrow),        cmocka_unit_test(test_exact_edges), cmocka_unit_test(test_seeds),
      cmocka_unit_test(test_bad_logits),    cmocka_unit_test(test_bad_numbers), cmocka_unit_test(test_selection),
      cmocka_unit_test(test_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
