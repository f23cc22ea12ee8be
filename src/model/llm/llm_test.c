/* Sessions of a made model: what was forgotten leaves no trace, and recorded steps are steps like any other. Whether
 * the logits themselves are right is what tests/logits_test.py asks. */
#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "math/common/test/device.h"
#include "model/llm/testing_model.h"

enum {
  CONTEXT = MADE_CONTEXT,
  VOCABULARY = MADE_VOCABULARY,
  WINDOW = 6,
  REACH = MADE_LAYERS * (WINDOW - 1), /* how far back a logit looks through all layers */
  TOKENS = 160
};

static rdna_llm_session *open_session(const made *m, int batch) {
  rdna_llm_session *session = NULL;
  const rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = CONTEXT, .kv_dtype = RDNA_F32,
                                            .exact = 1, .batch = batch};
  assert_ok(rdna_llm_session_create(m->llm, &options, &session));
  return session;
}

static void draw_tokens(int32_t *tokens, uint64_t seed) {
  rdna__random random;
  rdna__random_seed(&random, seed);
  for (int i = 0; i < TOKENS; i++) tokens[i] = (int32_t)rdna__random_below(&random, VOCABULARY);
}

typedef float row[VOCABULARY];

/* Passes of other lengths go through other kernels, which add in another order. */
static void check_rows(const row *got, const row *want, int count, const char *what) {
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < VOCABULARY; k++) {
      if (!(fabs((double)got[i][k] - (double)want[i][k]) < 1e-4))
        fail_msg("%s: row %d, logit %d: got %g, want %g", what, i, k, (double)got[i][k], (double)want[i][k]);
    }
  }
}

/* |want| is filled by a session that saw nothing but |tokens|. */
static void evaluate_afresh(const made *m, const int32_t *tokens, row *want) {
  rdna_llm_session *session = open_session(m, 32);
  assert_ok(rdna_llm_session_eval_all(session, tokens, TOKENS, want[0]));
  rdna_llm_session_release(session);
}

static void test_rewound_sessions_forget(void **state) {
  static row want[TOKENS], got[TOKENS];
  int32_t tokens[TOKENS], others[TOKENS];
  draw_tokens(tokens, 1), draw_tokens(others, 2);
  made m = make_model(0);
  evaluate_afresh(&m, tokens, want);
  rdna_llm_session *session = open_session(&m, 32);
  assert_ok(rdna_llm_session_eval_all(session, others, TOKENS, got[0]));
  assert_true(fabs((double)got[9][3] - (double)want[9][3]) > 1e-2); /* other tokens do make a difference */
  assert_ok(rdna_llm_session_rewind(session, 0));
  assert_int_equal(rdna_llm_session_position(session), 0);
  assert_ok(rdna_llm_session_eval_all(session, tokens, TOKENS, got[0]));
  assert_memory_equal(got, want, sizeof want); /* the same passes from the same place: the same bits */
  static const int places[] = {159, 1, 96, 64, 63, 0};
  for (int n = 0; n < 6; n++) {
    int at = places[n], count = TOKENS - at < 40 ? TOKENS - at : 40;
    if (rdna_llm_session_position(session) < at)
      assert_ok(rdna_llm_session_eval_all(session, tokens + rdna_llm_session_position(session),
                                          at - rdna_llm_session_position(session), got[0]));
    assert_ok(rdna_llm_session_rewind(session, at));
    assert_ok(rdna_llm_session_eval(session, others, 3, got[0]));
    assert_int_equal(rdna_llm_session_position(session), at + 3);
    assert_ok(rdna_llm_session_rewind(session, at));
    assert_ok(rdna_llm_session_eval_all(session, tokens + at, count, got[0]));
    assert_int_equal(rdna_llm_session_position(session), at + count);
    check_rows(got, want + at, count, "after a rewind");
  }
  rdna_llm_session_release(session);
  free_model(&m);
}

/* Steps of one token are recorded where the device can, and replayed up to the next length: prompts, rewinds and other
 * tokens in between must not show. */
static void test_steps_between_prompts_and_rewinds(void **state) {
  static row want[TOKENS], got[TOKENS];
  int32_t tokens[TOKENS], others[TOKENS];
  draw_tokens(tokens, 3), draw_tokens(others, 4);
  made m = make_model(0);
  evaluate_afresh(&m, tokens, want);
  rdna_llm_session *session = open_session(&m, 16);
  int at = 0;
  while (at < TOKENS) {
    for (int k = 0; k < 9 && at < TOKENS; k++, at++) /* enough that a recording is made and replayed */
      assert_ok(rdna_llm_session_eval(session, tokens + at, 1, got[at]));
    assert_ok(rdna_llm_session_eval(session, others, 1, got[TOKENS - 1]));
    assert_ok(rdna_llm_session_rewind(session, at));
    int count = TOKENS - at < 21 ? TOKENS - at : 21; /* more than a pass */
    if (count > 0) assert_ok(rdna_llm_session_eval_all(session, tokens + at, count, got[at]));
    at += count;
    if (at < 40) continue;
    assert_ok(rdna_llm_session_rewind(session, at - 5));
    for (int k = at - 5; k < at; k++) assert_ok(rdna_llm_session_eval(session, tokens + k, 1, got[k]));
  }
  check_rows(got, want, TOKENS, "steps");
  rdna_llm_session_release(session);
  free_model(&m);
}

/* Through LAYERS layers that each see WINDOW tokens, a logit depends on the token REACH before it and on none further
 * back, in prompts as in single steps. */
static void test_a_window_ends_where_it_says(void **state) {
  static row full[TOKENS], want[TOKENS], got[TOKENS];
  int32_t tokens[TOKENS];
  draw_tokens(tokens, 5);
  made whole = make_model(0), m = make_model(WINDOW);
  evaluate_afresh(&whole, tokens, full);
  evaluate_afresh(&m, tokens, want);
  check_rows(want, full, WINDOW, "inside the window");
  assert_true(fabs((double)want[WINDOW][0] - (double)full[WINDOW][0]) > 1e-6);
  static const int places[] = {0, 20, 137};
  for (int n = 0; n < 3; n++) {
    int at = places[n], last = at + REACH;
    int32_t kept = tokens[at];
    tokens[at] = (kept + 1) % VOCABULARY;
    evaluate_afresh(&m, tokens, got);
    assert_memory_equal(got + last + 1, want + last + 1,
                        (size_t)(TOKENS - last - 1) * sizeof *got); /* past its reach */
    double difference = 0;
    for (int k = 0; k < VOCABULARY; k++) difference += fabs((double)got[last][k] - (double)want[last][k]);
    assert_true(difference > 1e-6);
    tokens[at] = kept;
  }
  rdna_llm_session *session = open_session(&m, 16);
  for (int i = 0; i < TOKENS; i++) assert_ok(rdna_llm_session_eval(session, tokens + i, 1, got[i]));
  check_rows(got, want, TOKENS, "single steps with a window");
  rdna_llm_session_release(session);
  free_model(&whole), free_model(&m);
}

static void test_what_is_refused_changes_nothing(void **state) {
  static row want[TOKENS], got[2];
  int32_t tokens[TOKENS], wrong[] = {1, VOCABULARY}, negative[] = {-1};
  draw_tokens(tokens, 6);
  made m = make_model(0);
  evaluate_afresh(&m, tokens, want);
  rdna_llm_session *session = open_session(&m, 32);
  assert_ok(rdna_llm_session_eval(session, tokens, 8, got[0]));
  assert_refused(rdna_llm_session_rewind(session, 9), RDNA_INVALID_ARGUMENT, "position 9 of a session with 8");
  assert_refused(rdna_llm_session_rewind(session, -1), RDNA_INVALID_ARGUMENT, "position -1");
  assert_refused(rdna_llm_session_eval(session, wrong, 2, got[0]), RDNA_INVALID_ARGUMENT, "token 1 is id 40");
  assert_refused(rdna_llm_session_eval(session, negative, 1, got[0]), RDNA_INVALID_ARGUMENT, "id -1");
  assert_refused(rdna_llm_session_eval(session, tokens, CONTEXT, got[0]), RDNA_INVALID_ARGUMENT, "context of 400");
  assert_refused(rdna_llm_session_eval(session, tokens, 0, got[0]), RDNA_INVALID_ARGUMENT, "at least 1");
  assert_int_equal(rdna_llm_session_position(session), 8);
  assert_ok(rdna_llm_session_eval_all(session, tokens + 8, 2, got[0]));
  check_rows(got, want + 8, 2, "after refusals");
  rdna_llm_session_release(session);
  free_model(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rewound_sessions_forget),
      cmocka_unit_test(test_steps_between_prompts_and_rewinds),
      cmocka_unit_test(test_a_window_ends_where_it_says),
      cmocka_unit_test(test_what_is_refused_changes_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
