#include "rdna/op/moe.h"

#include "math/common/test/operand.h"

enum { MOST = 1024 };

struct routing {
  int64_t tokens, experts, k;
  rdna_moe_routing options;
  int64_t gap; /* between rows of logits */
  bool biased;
};

/* The scores of a token by the definition, and what ranks them. */
static void score_token(const struct routing *r, const operand *logits, const operand *bias, int64_t token,
                        double *score, double *value) {
  const int64_t row = token * (r->experts + r->gap);
  double largest = -INFINITY, sum = 0;
  for (int64_t e = 0; e < r->experts; e++) largest = fmax(largest, operand_get(logits, row + e));
  for (int64_t e = 0; e < r->experts; e++) sum += exp(operand_get(logits, row + e) - largest);
  for (int64_t e = 0; e < r->experts; e++) {
    double x = operand_get(logits, row + e);
    score[e] = r->options.score == RDNA_MOE_SCORE_SOFTMAX   ? exp(x - largest) / sum
               : r->options.score == RDNA_MOE_SCORE_SIGMOID ? 1 / (1 + exp(-x))
                                                            : x;
    value[e] = score[e] + (r->biased ? operand_get(bias, e) : 0);
  }
}

static int descending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Hides the experts of groups that are not among the best, by the sum of their best ones. */
static void hide_groups(const struct routing *r, double *value) {
  int32_t groups = r->options.groups;
  int64_t size = r->experts / groups;
  double rank[32], sorted[MOST], ranks[32];
  for (int32_t g = 0; g < groups; g++) {
    memcpy(sorted, value + g * size, (size_t)size * sizeof *sorted);
    qsort(sorted, (size_t)size, sizeof *sorted, descending);
    rank[g] = sorted[0] + (r->options.group_best > 1 && size > 1 ? sorted[1] : 0);
  }
  memcpy(ranks, rank, sizeof ranks);
  qsort(ranks, (size_t)groups, sizeof *ranks, descending);
  for (int64_t e = 0; e < r->experts; e++) {
    if (rank[e / size] < ranks[r->options.groups_kept - 1]) value[e] = -INFINITY;
  }
}

/* Each chosen expert has the value that its place asks for, to within what scores of up to 1 and biases are off by, and
 * is there once; weights follow from the scores of those that were chosen. */
static void compare_token(const struct routing *r, int64_t token, const double *score, double *value,
                          const operand *indices, const operand *weights) {
  double sorted[MOST], sum = 0, top = -INFINITY;
  bool seen[MOST] = {false};
  if (r->options.groups > 1) hide_groups(r, value);
  memcpy(sorted, value, (size_t)r->experts * sizeof *sorted);
  qsort(sorted, (size_t)r->experts, sizeof *sorted, descending);
  for (int64_t i = 0; i < r->k; i++) {
    int64_t e = (int64_t)operand_get(indices, token * r->k + i);
    assert_true(e >= 0 && e < r->experts && !seen[e]);
    seen[e] = true;
    if (!(fabs(value[e] - sorted[i]) <= 40 * 0x1p-24 * (1 + fabs(sorted[i]))))
      fail_msg("token %d: %d-th is expert %d of %g, want one of %g", (int)token, (int)i, (int)e, value[e], sorted[i]);
    sum += score[e], top = fmax(top, score[e]);
  }
  double divisor = r->options.normalised ? sum : 1;
  if (r->options.score == RDNA_MOE_SCORE_CHOSEN) {
    divisor = 0;
    for (int64_t e = 0; e < r->experts; e++) divisor += seen[e] ? exp(score[e] - top) : 0;
  }
  for (int64_t i = 0; i < r->k; i++) {
    double s = score[(int64_t)operand_get(indices, token * r->k + i)];
    double want = (r->options.score == RDNA_MOE_SCORE_CHOSEN ? exp(s - top) : s) / divisor * (double)r->options.scale;
    /* two sums of up to 64 additions in turn, and the exponentials */
    assert_close(RDNA_F32, operand_get(weights, token * r->k + i), want, 100 * 0x1p-24 * fabs(want), "weight", i);
  }
}

static void check(struct routing r) {
  operand logits = operand_make(RDNA_F32, 2, (int64_t[]){r.tokens, r.experts}, (int64_t[]){r.experts + r.gap, 1}, 0);
  operand bias = operand_make(RDNA_F32, 1, &r.experts, NULL, 0);
  operand indices = operand_make(RDNA_I32, 2, (int64_t[]){r.tokens, r.k}, NULL, 0);
  operand weights = operand_make(RDNA_F32, 2, (int64_t[]){r.tokens, r.k}, NULL, 0);
  operand_fill(&logits, 2);
  operand_fill(&bias, 0.3);
  operand_upload(&indices);
  operand_upload(&weights);
  if (r.biased) r.options.bias = &bias.tensor;
  assert_ok(rdna_op_moe_route(stream, &r.options, &logits.tensor, &indices.tensor, &weights.tensor));
  operand_download(&indices);
  operand_download(&weights);
  for (int64_t t = 0; t < r.tokens; t++) {
    double score[MOST], value[MOST];
    score_token(&r, &logits, &bias, t, score, value);
    compare_token(&r, t, score, value, &indices, &weights);
  }
  operand *all[] = {&logits, &bias, &indices, &weights};
  for (int i = 0; i < 4; i++) operand_free(all[i]);
}

#define OPTIONS(...) .options = {RDNA_MOE_ROUTING_INIT, __VA_ARGS__}
static void routes_of_models(void **state) {
  check((struct routing){7, 8, 2, OPTIONS(.normalised = true, .scale = 1)}); /* Mixtral */
  check((struct routing){130, 128, 8, OPTIONS(.normalised = true, .scale = 1), .gap = 3});
  check((struct routing){9, 60, 4, OPTIONS(.scale = 1)});
  check((struct routing){33, 128, 4, OPTIONS(.score = RDNA_MOE_SCORE_CHOSEN, .scale = 1)}); /* gpt-oss */
  check((struct routing){50, 256, 8,
                         OPTIONS(.score = RDNA_MOE_SCORE_SIGMOID, .normalised = true, .groups = 8, .groups_kept = 4,
                                 .group_best = 2, .scale = 2.5f),
                         .biased = true}); /* DeepSeek V3 */
  check((struct routing){20, 160, 6, OPTIONS(.groups = 8, .groups_kept = 3, .group_best = 1, .scale = 16)});
  check((struct routing){3, 1024, 32, OPTIONS(.score = RDNA_MOE_SCORE_SIGMOID, .scale = 1), .biased = true});
  check((struct routing){5, 1, 1, OPTIONS(.score = RDNA_MOE_SCORE_SIGMOID, .scale = 1)});
  check((struct routing){0, 8, 2, OPTIONS(.scale = 1)});
  for (int n = 0; n < 40; n++) {
    int32_t groups = (int32_t)rdna__random_range(&random_state, 1, 8), kept = 1 + (groups > 1) * (n % groups);
    int64_t size = rdna__random_range(&random_state, 1, 40), open = size * (groups > 1 ? kept : 1);
    check((struct routing){rdna__random_range(&random_state, 1, 9), groups * size,
                           rdna__random_range(&random_state, 1, open < 32 ? open : 32),
                           OPTIONS(.score = (rdna_moe_score)(n % 3), .normalised = n % 2, .groups = groups,
                                   .groups_kept = kept, .group_best = 1 + n % 4 / 2, .scale = 0.5f),
                           .biased = n % 5 < 2});
  }
}

/* Of equal ones the lower number; a NaN before all; what is chosen in order. */
static void ties_and_special_values(void **state) {
  enum { EXPERTS = 70, K = 6 };
  static const int want[4][K] = {{3, 35, 67, 0, 1, 2}, {40, 3, 35, 67, 0, 1}, {0, 1, 2, 3, 4, 5}, {5, 69, 0, 1, 2, 3}};
  float x[4][EXPERTS];
  for (int e = 0; e < EXPERTS; e++) {
    x[0][e] = x[1][e] = e % 32 == 3 ? 2 : 1;
    x[2][e] = e % 2 ? 0.0f : -0.0f;
    x[3][e] = e % 64 == 5 ? -1 : -INFINITY;
  }
  x[1][40] = NAN;
  operand logits = operand_make(RDNA_F32, 2, (int64_t[]){4, EXPERTS}, NULL, 0);
  operand indices = operand_make(RDNA_I32, 2, (int64_t[]){4, K}, NULL, 0);
  operand weights = operand_make(RDNA_F32, 2, (int64_t[]){4, K}, NULL, 0);
  memcpy(logits.host, x, sizeof x);
  operand_upload(&logits);
  operand_upload(&indices);
  operand_upload(&weights);
  rdna_moe_routing options = {RDNA_MOE_ROUTING_INIT, .score = RDNA_MOE_SCORE_CHOSEN, .scale = 1};
  assert_ok(rdna_op_moe_route(stream, &options, &logits.tensor, &indices.tensor, &weights.tensor));
  operand_download(&indices);
  operand_download(&weights);
  for (int t = 0; t < 4; t++) {
    for (int i = 0; i < K; i++) assert_int_equal((int)operand_get(&indices, t * K + i), want[t][i]);
  }
  for (int i = 0; i < K; i++) {
    assert_true(isnan(operand_get(&weights, K + i)));
    assert_true(operand_get(&weights, 3 * K + i) == (i < 2 ? 0.5 : 0));
  }
  operand *all[] = {&logits, &indices, &weights};
  for (int i = 0; i < 3; i++) operand_free(all[i]);
}

static void refused(void **state) {
  operand logits = operand_make(RDNA_F32, 2, (int64_t[]){2, 1025}, NULL, 0);
  operand indices = operand_make(RDNA_I32, 2, (int64_t[]){2, 40}, NULL, 0);
  operand weights = operand_make(RDNA_F32, 2, (int64_t[]){2, 40}, NULL, 0);
  rdna_moe_routing options = {RDNA_MOE_ROUTING_INIT, .scale = 1};
  rdna_tensor l = logits.tensor, i = indices.tensor, w = weights.tensor;
#define TRY rdna_op_moe_route(stream, &options, &l, &i, &w)
  assert_refused(TRY, RDNA_UNSUPPORTED, "1025 experts", "1024");
  l.shape[1] = 64;
  assert_refused(TRY, RDNA_UNSUPPORTED, "takes 40", "32");
  l.shape[1] = 4, i.shape[1] = w.shape[1] = 5;
  i.stride[0] = w.stride[0] = 5;
  assert_refused(TRY, RDNA_INVALID_ARGUMENT, "5 experts of each token", "from 4");
  l.shape[1] = 16, options.groups = 4, options.groups_kept = options.group_best = 1;
  assert_refused(TRY, RDNA_INVALID_ARGUMENT, "5 experts of each token", "from 4");
  operand *all[] = {&logits, &indices, &weights};
  for (int n = 0; n < 3; n++) operand_free(all[n]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(routes_of_models), cmocka_unit_test(ties_and_special_values),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
