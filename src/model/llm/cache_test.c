/* Many sequences over one cache: each has the logits that it has alone, whatever shares its steps and its pages, and
 * whatever forks and truncations came before. */
#include "device/driver.h"
#include "model/llm/testing_model.h"
#include "rdna/llm_cache.h"

enum {
  VOCABULARY = MADE_VOCABULARY,
  TEXTS = 4,
  LENGTH = 150,
  MOST = 9, /* sequences at a time */
  PAGE = 8,
  BATCH = 48
};

typedef float row[VOCABULARY];

static int below(int n) { return (int)rdna__random_below(&random_state, (uint64_t)n); }

/* Texts that begin alike, and their logits when each is read alone. */
static int32_t texts[TEXTS][LENGTH];
static row want[TEXTS][LENGTH];
static const int common[TEXTS][TEXTS] = {
    {LENGTH, 37, 64, 5}, {37, LENGTH, 37, 5}, {64, 37, LENGTH, 5}, {5, 5, 5, LENGTH}};

static void make_texts(const made *m) {
  for (int i = 0; i < TEXTS; i++) {
    rdna__random random;
    rdna__random_seed(&random, 100 + (uint64_t)i);
    for (int k = 0; k < LENGTH; k++) texts[i][k] = (int32_t)rdna__random_below(&random, VOCABULARY);
    for (int k = 0; i > 0 && k < common[i][0]; k++) texts[i][k] = texts[0][k];
    rdna_llm_session *session;
    const rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = LENGTH, .kv_dtype = RDNA_F32,
                                              .exact = 1};
    assert_ok(rdna_llm_session_create(m->llm, &options, &session));
    assert_ok(rdna_llm_session_eval_all(session, texts[i], LENGTH, want[i][0]));
    rdna_llm_session_release(session);
  }
}

/* With lanes a sequence has the same bits whatever else is in its steps. Each reads its text in pieces that are drawn
 * for it, first alone and then among the others, as chance will have it. */
static void check_lanes(int lanes, rdna_dtype kv_dtype, int exact) {
  enum { SOME = 5, PIECES = 7, LOGITS = 3 };
  static const int sizes[] = {1, 1, 1, 2, 5, 9, 23};
  static row alone[SOME][PIECES][LOGITS];
  int plan[SOME][PIECES], done[SOME] = {0};
  made m = make_model(0);
  make_texts(&m);
  const rdna_llm_cache_options options = {RDNA_LLM_CACHE_OPTIONS_INIT,
                                          .positions = SOME * 176,
                                          .context = 176,
                                          .sequences = SOME,
                                          .batch = 256,
                                          .logits = 32,
                                          .page = PAGE,
                                          .kv_dtype = kv_dtype,
                                          .exact = exact,
                                          .lanes = lanes};
  rdna_llm_cache *cache;
  rdna_llm_sequence *sequences[SOME];
  const float *logits;
  assert_ok(rdna_llm_cache_create(m.llm, &options, &cache));
  for (int i = 0; i < SOME; i++) {
    rdna_llm_sequence *s;
    assert_ok(rdna_llm_sequence_create(cache, &s));
    for (int k = 0; k < PIECES; k++) {
      int left = LENGTH - rdna_llm_sequence_position(s), size = sizes[below(sizeof sizes / sizeof *sizes)];
      plan[i][k] = size < left ? size : 1;
      rdna_llm_part part = part_of(s, texts[i % TEXTS] + LENGTH - left, plan[i][k], plan[i][k] < LOGITS ? 1 : LOGITS);
      assert_ok(rdna_llm_step(cache, &part, 1, &logits));
      memcpy(alone[i][k], logits, (size_t)part.logits * sizeof(row));
    }
    rdna_llm_sequence_release(s);
    assert_ok(rdna_llm_sequence_create(cache, &sequences[i]));
  }
  for (int left = SOME * PIECES; left > 0;) {
    rdna_llm_part parts[SOME];
    int who[SOME], count = 0;
    for (int i = 0; i < SOME; i++) {
      if (done[i] == PIECES || below(3) == 0) continue;
      const int32_t *tokens = texts[i % TEXTS] + rdna_llm_sequence_position(sequences[i]);
      who[count] = i;
      parts[count++] = part_of(sequences[i], tokens, plan[i][done[i]], plan[i][done[i]] < LOGITS ? 1 : LOGITS);
    }
    if (count == 0) continue;
    assert_ok(rdna_llm_step(cache, parts, count, &logits));
    for (int i = 0; i < count; logits += parts[i++].logits * VOCABULARY, left--)
      assert_memory_equal(logits, alone[who[i]][done[who[i]]++], (size_t)parts[i].logits * sizeof(row));
  }
  for (int i = 0; i < SOME; i++) rdna_llm_sequence_release(sequences[i]);
  rdna_llm_cache_release(cache);
  free_model(&m);
}

static void test_lanes_keep_bits(void **state) {
  check_lanes(8, RDNA_F32, 1);
  check_lanes(16, RDNA_F16, 0);
}

static rdna_llm_cache *make_cache_of(const made *m, int64_t positions, rdna_dtype kv_dtype) {
  const rdna_llm_cache_options options = {RDNA_LLM_CACHE_OPTIONS_INIT,
                                          .positions = positions,
                                          .context = LENGTH,
                                          .sequences = MOST,
                                          .batch = BATCH,
                                          .logits = BATCH,
                                          .page = PAGE,
                                          .kv_dtype = kv_dtype,
                                          .exact = kv_dtype == RDNA_F32};
  rdna_llm_cache *cache;
  assert_ok(rdna_llm_cache_create(m->llm, &options, &cache));
  return cache;
}

static rdna_llm_cache *make_cache(const made *m, int64_t positions) { return make_cache_of(m, positions, RDNA_F32); }

static rdna_llm_cache_info info_of(const rdna_llm_cache *cache) {
  rdna_llm_cache_info info = {RDNA_LLM_CACHE_INFO_INIT};
  assert_ok(rdna_llm_cache_get_info(cache, &info));
  return info;
}

/* The sequences that there are, and which text each reads. */
typedef struct crowd {
  double bound; /* on logits */
  rdna_llm_cache *cache;
  rdna_llm_sequence *sequence[MOST];
  int text[MOST];
  int count;
} crowd;

static int at(const crowd *c, int i) { return rdna_llm_sequence_position(c->sequence[i]); }

static void check_near(const float *got, int text, int position, double bound, const char *what) {
  for (int k = 0; k < VOCABULARY; k++) {
    if (!(fabs((double)got[k] - (double)want[text][position][k]) < bound))
      fail_msg("%s: text %d at %d, logit %d: got %g, want %g", what, text, position, k, (double)got[k],
               (double)want[text][position][k]);
  }
}

static void check_row(const float *got, int text, int position, const char *what) {
  check_near(got, text, position, 1e-4, what);
}

/* Some tokens of some sequences: one each, as in decoding, or now and then a piece of a prompt. */
static void step(crowd *c) {
  rdna_llm_part parts[MOST];
  int who[MOST], from[MOST], count = 0, left = BATCH;
  bool single = below(2);
  for (int i = 0; i < c->count; i++) {
    int room = LENGTH - at(c, i), tokens = single || below(3) ? 1 : 1 + below(20);
    tokens = tokens < room ? tokens : room, tokens = tokens < left ? tokens : left;
    if (tokens < 1 || (!single && below(4) == 0)) continue;
    who[count] = i, from[count] = at(c, i);
    parts[count++] = part_of(c->sequence[i], texts[c->text[i]] + at(c, i), tokens, single ? 1 : below(tokens + 1));
    left -= tokens;
  }
  if (count == 0) return;
  const float *logits;
  assert_ok(rdna_llm_step(c->cache, parts, count, &logits));
  for (int i = 0; i < count; i++) {
    assert_int_equal(at(c, who[i]), from[i] + parts[i].count);
    for (int k = parts[i].count - parts[i].logits; k < parts[i].count; k++, logits += VOCABULARY)
      check_near(logits, c->text[who[i]], from[i] + k, c->bound, single ? "single tokens" : "pieces");
  }
}

static void drop(crowd *c, int i) {
  rdna_llm_sequence_release(c->sequence[i]);
  c->count--;
  c->sequence[i] = c->sequence[c->count], c->text[i] = c->text[c->count];
}

/* Another sequence that goes on as some text does which begins like that of the first. */
static void fork_one(crowd *c) {
  int from = below(c->count), to = below(TEXTS), most = at(c, from), shared = common[c->text[from]][to];
  if (c->count == MOST) return;
  most = most < shared ? most : shared;
  int position = below(most + 1);
  assert_ok(rdna_llm_sequence_fork(c->sequence[from], position, &c->sequence[c->count]));
  assert_int_equal(at(c, c->count), position);
  c->text[c->count++] = to;
}

static void mill_about(uint32_t window, int rounds, rdna_dtype kv_dtype, double bound) {
  made m = make_model(window);
  make_texts(&m);
  crowd c = {.bound = bound, .cache = make_cache_of(&m, MOST * LENGTH, kv_dtype)};
  int64_t pages = info_of(c.cache).pages;
  assert_int_equal(pages, (MOST * LENGTH + PAGE - 1) / PAGE);
  for (int round = 0; round < rounds; round++) {
    int what = below(10);
    if (c.count == 0 || (what == 0 && c.count < MOST)) {
      assert_ok(rdna_llm_sequence_create(c.cache, &c.sequence[c.count]));
      c.text[c.count++] = below(TEXTS);
    }
    if (what == 1) fork_one(&c);
    if (what == 2) {
      int i = below(c.count), position = below(at(&c, i) + 1);
      assert_ok(rdna_llm_sequence_truncate(c.sequence[i], position));
      assert_int_equal(at(&c, i), position);
    }
    if (what == 3 && c.count > 1) drop(&c, below(c.count));
    if (what >= 3) step(&c);
  }
  while (c.count > 0) drop(&c, 0);
  assert_int_equal(info_of(c.cache).free_pages, pages); /* none is lost */
  assert_int_equal(info_of(c.cache).open, 0);
  rdna_llm_cache_release(c.cache);
  free_model(&m);
}

static void test_sequences_do_not_hear_of_each_other(void **state) { mill_about(0, 80, RDNA_F32, 1e-4); }
static void test_windows(void **state) { mill_about(11, 30, RDNA_F32, 1e-4); }
/* Keys and values are rounded by 2^-11 or 2^-8, on a GPU what goes into products too; logits are of size 1, and sums
 * of some. */
static void test_caches_of_16_bits(void **state) {
  mill_about(0, 20, RDNA_F16, 0x1p-7);
  mill_about(5, 20, RDNA_BF16, 0x1p-4);
}

/* What two sequences share lies there once, and who writes behind it takes a page of its own. */
static void test_forks_share_pages(void **state) {
  made m = make_model(0);
  make_texts(&m);
  rdna_llm_cache *cache = make_cache(&m, 10 * PAGE);
  rdna_llm_sequence *first, *second;
  const float *logits;
  assert_ok(rdna_llm_sequence_create(cache, &first));
  rdna_llm_part part = part_of(first, texts[0], 37, 1);
  assert_ok(rdna_llm_step(cache, &part, 1, &logits));
  assert_int_equal(info_of(cache).free_pages, 5);
  assert_ok(rdna_llm_sequence_fork(first, 37, &second));
  assert_int_equal(info_of(cache).free_pages, 5);
  rdna_llm_part both[] = {part_of(second, texts[1] + 37, 1, 1), part_of(first, texts[0] + 37, 1, 1)};
  assert_ok(rdna_llm_step(cache, both, 2, &logits)); /* one of them copies the page of positions 32 to 36 */
  assert_int_equal(info_of(cache).free_pages, 4);
  check_row(logits, 1, 37, "the fork"), check_row(logits + VOCABULARY, 0, 37, "what it came from");
  rdna_llm_sequence_release(first);
  assert_int_equal(info_of(cache).free_pages, 5);
  both[0].tokens++;
  assert_ok(rdna_llm_step(cache, both, 1, &logits));
  check_row(logits, 1, 38, "the fork alone");
  rdna_llm_cache_release(cache); /* it stays until its last sequence goes */
  both[0].tokens++;
  assert_ok(rdna_llm_step(cache, both, 1, &logits));
  check_row(logits, 1, 39, "after the cache's release");
  rdna_llm_sequence_release(second);
  free_model(&m);
}

static void test_a_full_cache_says_so(void **state) {
  made m = make_model(0);
  make_texts(&m);
  rdna_llm_cache *cache = make_cache(&m, 5 * PAGE);
  rdna_llm_sequence *a, *b;
  const float *logits;
  assert_ok(rdna_llm_sequence_create(cache, &a));
  assert_ok(rdna_llm_sequence_create(cache, &b));
  rdna_llm_part parts[] = {part_of(a, texts[0], 20, 1), part_of(b, texts[3], 16, 1)};
  assert_ok(rdna_llm_step(cache, parts, 2, &logits));
  parts[0] = part_of(a, texts[0] + 20, 1, 1), parts[1] = part_of(b, texts[3] + 16, 1, 1);
  assert_refused(rdna_llm_step(cache, parts, 2, &logits), RDNA_OUT_OF_MEMORY,
                 "takes 1 more pages of 8 positions, and 0 of the cache's 5 are free");
  assert_int_equal(rdna_llm_sequence_position(a), 20);
  assert_ok(rdna_llm_step(cache, parts, 1, &logits)); /* a has room in its last page */
  check_row(logits, 0, 20, "beside a full cache");
  rdna_llm_sequence_release(a);
  assert_ok(rdna_llm_step(cache, parts + 1, 1, &logits));
  check_row(logits, 3, 16, "after room was made");
  rdna_llm_sequence_release(b);
  rdna_llm_cache_release(cache);
  free_model(&m);
}

/* Each call of a driver that a step makes fails in turn: sequences stand where they stood, no page is lost, and the
 * step goes well afterwards. */
static void test_a_step_that_fails(void **state) {
  rdna_device *real = device;
  assert_ok(rdna_device_open("null", &device));
  made m = make_model(0);
  uint64_t failed = 0, calls = 1;
  for (uint64_t nth = 0; nth <= calls; nth++) { /* first none, to count them */
    rdna_llm_cache *cache = make_cache(&m, 10 * PAGE);
    rdna_llm_sequence *a, *b;
    const float *logits;
    assert_ok(rdna_llm_sequence_create(cache, &a));
    rdna_llm_part parts[] = {part_of(a, texts[0], 20, 0), part_of(NULL, texts[0] + 20, 9, 1)};
    assert_ok(rdna_llm_step(cache, parts, 1, &logits));
    assert_ok(rdna_llm_sequence_fork(a, 20, &b));
    parts[0] = part_of(a, texts[0] + 20, 9, 1), parts[1].sequence = b;
    rdna__null_fail(nth, RDNA_DEVICE_ERROR);
    rdna_status status = rdna_llm_step(cache, parts, 2, &logits);
    if (nth == 0) calls = rdna__null_calls();
    rdna__null_fail(0, RDNA_OK);
    if (status != RDNA_OK) {
      failed++;
      assert_int_equal(rdna_llm_sequence_position(a), 20);
      assert_int_equal(rdna_llm_sequence_position(b), 20);
      assert_in_range(info_of(cache).free_pages, 6, 7); /* of 10: 3 that they share, or one of those for each */
      assert_ok(rdna_llm_step(cache, parts, 2, &logits));
    }
    assert_int_equal(rdna_llm_sequence_position(b), 29);
    assert_int_equal(info_of(cache).free_pages, 4);
    rdna_llm_sequence_release(a), rdna_llm_sequence_release(b);
    assert_int_equal(info_of(cache).free_pages, 10);
    rdna_llm_cache_release(cache);
  }
  assert_true(failed > calls / 2);
  free_model(&m);
  rdna_device_release(device);
  device = real;
}

static void test_what_is_refused_changes_nothing(void **state) {
  made m = make_model(0);
  make_texts(&m);
  rdna_llm_cache *cache = make_cache(&m, LENGTH), *other = make_cache(&m, LENGTH);
  rdna_llm_sequence *s, *stranger;
  rdna_llm_cache_options odd = {RDNA_LLM_CACHE_OPTIONS_INIT, .page = -1};
  const float *logits;
  int32_t wrong[] = {1, VOCABULARY};
  assert_ok(rdna_llm_sequence_create(cache, &s));
  assert_ok(rdna_llm_sequence_create(other, &stranger));
  rdna_llm_part parts[] = {part_of(s, texts[0], 8, 1), part_of(s, texts[0], 1, 1), part_of(stranger, texts[0], 1, 1)};
  assert_ok(rdna_llm_step(cache, parts, 1, &logits));
#define REFUSED(part, sentence)                                                                  \
  do {                                                                                           \
    rdna_llm_part one = part;                                                                    \
    assert_refused(rdna_llm_step(cache, &one, 1, &logits), RDNA_INVALID_ARGUMENT, sentence, ""); \
  } while (0)
  REFUSED(part_of(s, wrong, 2, 1), "token 1 is id 40");
  REFUSED(part_of(s, wrong, 0, 0), "at least 1");
  REFUSED(part_of(s, NULL, 1, 0), "at least 1");
  REFUSED(part_of(s, wrong, 1, 2), "the logits of 2 of 1 tokens");
  REFUSED(part_of(s, texts[0], LENGTH - 7, 0), "do not fit in a context of 150");
  REFUSED(part_of(s, texts[0], BATCH + 1, 0), "a step of 49 tokens; this cache was made for 48");
  REFUSED(part_of(stranger, texts[0], 1, 0), "not of its cache");
  REFUSED(part_of(NULL, texts[0], 1, 0), "not of its cache");
  assert_refused(rdna_llm_step(cache, parts, 2, &logits), RDNA_INVALID_ARGUMENT, "one sequence twice");
  assert_refused(rdna_llm_step(cache, parts, 0, &logits), RDNA_INVALID_ARGUMENT, "at least one part");
  assert_refused(rdna_llm_step(cache, parts, MOST + 1, &logits), RDNA_INVALID_ARGUMENT, "made for 9");
  assert_refused(rdna_llm_sequence_truncate(s, 9), RDNA_INVALID_ARGUMENT, "a sequence of 8 tokens at position 9");
  assert_refused(rdna_llm_sequence_fork(s, -1, &stranger), RDNA_INVALID_ARGUMENT, "position -1");
  assert_refused(rdna_llm_cache_create(m.llm, &odd, &other), RDNA_INVALID_ARGUMENT, "in pages of -1");
  odd.page = 0, odd.kv_dtype = RDNA_Q8_0;
  assert_refused(rdna_llm_cache_create(m.llm, &odd, &other), RDNA_UNSUPPORTED, "heads of 8 values");
  odd.kv_dtype = RDNA_Q4_0;
  assert_refused(rdna_llm_cache_create(m.llm, &odd, &other), RDNA_INVALID_ARGUMENT, "a KV cache of q4_0");
  odd.kv_dtype = RDNA_F16, odd.lanes = 7;
  assert_refused(rdna_llm_cache_create(m.llm, &odd, &other), RDNA_INVALID_ARGUMENT, "with passes of 7 tokens");
  const int layers[] = {0, 1, 1000};
  odd.lanes = 0, odd.kv_dtype = RDNA_F32, odd.layers = layers; /* and of none */
  assert_refused(rdna_llm_cache_create(m.llm, &odd, &other), RDNA_INVALID_ARGUMENT, "before 0 layers");
  odd.layer_count = 9, odd.gives = RDNA_LLM_GIVES_STATES;
  assert_refused(rdna_llm_cache_create(m.llm, &odd, &other), RDNA_INVALID_ARGUMENT, "before 9 layers");
  odd.layer_count = 3;
  assert_refused(rdna_llm_cache_create(m.llm, &odd, &other), RDNA_INVALID_ARGUMENT, "before layer 1000");
  odd.layer_count = 2, odd.gives = RDNA_LLM_GIVES_LOGITS;
  assert_refused(rdna_llm_cache_create(m.llm, &odd, &other), RDNA_INVALID_ARGUMENT, "of what gives states");
  rdna_llm_part next = part_of(s, texts[0] + 8, 2, 1);
  for (int32_t filling = -1; filling <= 2; filling += 3) { /* all of the two, and fewer than none */
    next.filling = filling;
    assert_refused(rdna_llm_step(cache, &next, 1, &logits), RDNA_INVALID_ARGUMENT, "of 2 tokens fill a text up");
  }
  next = part_of(s, texts[0] + 8, 1, 1);
  assert_ok(rdna_llm_step(cache, &next, 1, &logits));
  check_row(logits, 0, 8, "after refusals");
  rdna_llm_sequence_release(s), rdna_llm_sequence_release(stranger);
  rdna_llm_cache_release(cache), rdna_llm_cache_release(other);
  free_model(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sequences_do_not_hear_of_each_other),
      cmocka_unit_test(test_windows),
      cmocka_unit_test(test_caches_of_16_bits),
      cmocka_unit_test(test_lanes_keep_bits),
      cmocka_unit_test(test_forks_share_pages),
      cmocka_unit_test(test_a_full_cache_says_so),
      cmocka_unit_test(test_a_step_that_fails),
      cmocka_unit_test(test_what_is_refused_changes_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
