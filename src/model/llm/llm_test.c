/* Sessions of a made model: what was forgotten leaves no trace, and recorded steps are steps like any other. Whether
 * the logits themselves are right is what tests/logits_test.py asks. */
#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "math/common/test/device.h"
#include "model/gguf/testing_gguf.h"
#include "rdna/llm.h"

enum {
  WIDTH = 32,
  HEADS = 4,
  KV_HEADS = 2,
  HIDDEN = 48,
  LAYERS = 2,
  VOCABULARY = 40,
  CONTEXT = 400,
  WINDOW = 6,
  REACH = LAYERS * (WINDOW - 1), /* how far back a logit looks through all layers */
  TOKENS = 160,
  MOST_TENSORS = 32
};

typedef struct made {
  testing_gguf bytes;
  rdna_gguf *file;
  rdna_llm *llm;
} made;

typedef struct tensor_row {
  char name[32];
  uint64_t dims[2]; /* (columns, rows), or (values, 1) */
} tensor_row;

static int list_tensors(tensor_row *rows) {
  static const struct {
    const char *name;
    int columns, rows;
  } of_layer[] = {{"attn_norm", WIDTH, 1},
                  {"ffn_norm", WIDTH, 1},
                  {"attn_q", WIDTH, WIDTH},
                  {"attn_k", WIDTH, WIDTH / HEADS * KV_HEADS},
                  {"attn_v", WIDTH, WIDTH / HEADS * KV_HEADS},
                  {"attn_output", WIDTH, WIDTH},
                  {"ffn_gate", WIDTH, HIDDEN},
                  {"ffn_up", WIDTH, HIDDEN},
                  {"ffn_down", HIDDEN, WIDTH}};
  int count = 0;
  rows[count++] = (tensor_row){"token_embd.weight", {WIDTH, VOCABULARY}};
  rows[count++] = (tensor_row){"output_norm.weight", {WIDTH, 1}};
  rows[count++] = (tensor_row){"output.weight", {WIDTH, VOCABULARY}};
  for (int layer = 0; layer < LAYERS; layer++) {
    for (size_t k = 0; k < sizeof of_layer / sizeof *of_layer; k++) {
      tensor_row *row = &rows[count++];
      snprintf(row->name, sizeof row->name, "blk.%d.%s.weight", layer, of_layer[k].name);
      row->dims[0] = (uint64_t)of_layer[k].columns;
      row->dims[1] = (uint64_t)of_layer[k].rows;
    }
  }
  return count;
}

static made make_model(uint32_t window) {
  static const struct {
    const char *key;
    uint32_t value;
  } keys[] = {{"llama.block_count", LAYERS},         {"llama.embedding_length", WIDTH},
              {"llama.feed_forward_length", HIDDEN}, {"llama.context_length", CONTEXT},
              {"llama.attention.head_count", HEADS}, {"llama.attention.head_count_kv", KV_HEADS}};
  enum { KEYS = sizeof keys / sizeof *keys };
  tensor_row rows[MOST_TENSORS];
  int count = list_tensors(rows);
  made m = {0};
  testing_put_header(&m.bytes, 3, (uint64_t)count, KEYS + 1 + (window > 0));
  testing_put_key_text(&m.bytes, "general.architecture", "llama");
  for (int k = 0; k < KEYS; k++) testing_put_key_u32(&m.bytes, keys[k].key, keys[k].value);
  if (window) testing_put_key_u32(&m.bytes, "llama.attention.sliding_window", window);
  uint64_t offset = 0;
  for (int k = 0; k < count; k++) {
    testing_put_tensor(&m.bytes, rows[k].name, rows[k].dims[1] > 1 ? 2 : 1, rows[k].dims, 0, offset);
    offset += rows[k].dims[0] * rows[k].dims[1] * sizeof(float); /* each a multiple of the alignment of 32 */
  }
  testing_pad(&m.bytes, 32);
  rdna__random random;
  rdna__random_seed(&random, 12);
  for (int k = 0; k < count; k++) {
    bool norm = rows[k].dims[1] == 1;
    for (uint64_t i = 0; i < rows[k].dims[0] * rows[k].dims[1]; i++) {
      float v = (float)(rdna__random_normal(&random) * (norm ? 0.2 : 1 / sqrt((double)rows[k].dims[0])) + norm);
      testing_put(&m.bytes, &v, sizeof v);
    }
  }
  assert_ok(rdna_gguf_open_memory(m.bytes.data, m.bytes.size, &m.file));
  assert_ok(rdna_llm_open(device, m.file, NULL, NULL, &m.llm));
  return m;
}

static void free_model(made *m) {
  rdna_llm_release(m->llm);
  rdna_gguf_close(m->file);
  free(m->bytes.data);
}

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
