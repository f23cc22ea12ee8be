#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "base/testing.h"
#include "base/threads.h"

static void status_keeps_a_sentence(void **state) {
  assert_int_equal(rdna__fail(RDNA_NOT_FOUND, "no file '%s'", "x"), RDNA_NOT_FOUND);
  assert_string_equal(rdna_last_error(), "no file 'x'");
  assert_ok(rdna__annotate(RDNA_OK, "unused"));
  assert_string_equal(rdna_last_error(), "no file 'x'");
  assert_int_equal(rdna__annotate(RDNA_NOT_FOUND, "opening %d", 3), RDNA_NOT_FOUND);
  assert_string_equal(rdna_last_error(), "opening 3: no file 'x'");
  /* the old sentence may be an argument of the new one */
  assert_int_equal(rdna__fail(RDNA_IO_ERROR, "again: %s", rdna_last_error()), RDNA_IO_ERROR);
  assert_string_equal(rdna_last_error(), "again: opening 3: no file 'x'");
  assert_string_equal(rdna_status_name(RDNA_INTERNAL), "INTERNAL");
  assert_string_equal(rdna_status_name((rdna_status)99), "UNKNOWN");
  assert_string_equal(rdna_status_name((rdna_status)-1), "UNKNOWN");
}

static void status_cuts_long_sentences(void **state) {
  char long_text[5000];
  memset(long_text, 'a', sizeof long_text - 1);
  long_text[sizeof long_text - 1] = 0;
  assert_int_equal(rdna__fail(RDNA_IO_ERROR, "%s", long_text), RDNA_IO_ERROR);
  size_t length = strlen(rdna_last_error());
  assert_true(length > 1000 && length < 5000);
  assert_int_equal(rdna__annotate(RDNA_IO_ERROR, "%s", long_text), RDNA_IO_ERROR);
  assert_int_equal(strlen(rdna_last_error()), length);
}

static void *fail_elsewhere(void *unused) {
  (void)!rdna__fail(RDNA_IO_ERROR, "of another thread");
  return NULL;
}

static void status_belongs_to_its_thread(void **state) {
  (void)!rdna__fail(RDNA_IO_ERROR, "mine");
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
  pthread_join(thread, NULL);
  assert_string_equal(rdna_last_error(), "mine");
}

static void every_default_parses(void **state) {
  for (int key = 0; key < RDNA__CONFIG_COUNT; key++)
    assert_ok(rdna__config_set((rdna__config_key)key, rdna__config_entries[key].initial));
}

static void config_refuses_nonsense(void **state) {
  assert_int_equal(rdna__config_set(RDNA__CONFIG_DRIVER, "metal"), RDNA_INVALID_ARGUMENT);
  assert_non_null(strstr(rdna_last_error(), "auto|hip|cuda|host|null"));
  assert_int_equal(rdna__config_set(RDNA__CONFIG_DRIVER, "hip|cuda"), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna__config_set(RDNA__CONFIG_DRIVER, ""), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna__config_set(RDNA__CONFIG_DRIVER, "hi"), RDNA_INVALID_ARGUMENT);
  const char *bad_numbers[] = {"", "x", "3x", "-1", "1025", "99999999999999999999"};
  for (int i = 0; i < 6; i++)
    assert_int_equal(rdna__config_set(RDNA__CONFIG_THREADS, bad_numbers[i]), RDNA_INVALID_ARGUMENT);
  assert_ok(rdna__config_set(RDNA__CONFIG_DRIVER, "host"));
  assert_string_equal(rdna__config_text(RDNA__CONFIG_DRIVER), "host");
  assert_ok(rdna__config_set(RDNA__CONFIG_DRIVER, "auto"));
}

/* The environment is read once in a process, so each case has one of its own. */
static int in_child(const char *environment, const char *value, int (*check)(void)) {
  pid_t child = fork();
  if (child == 0) {
    setenv(environment, value, 1);
    _exit(check());
  }
  int result;
  waitpid(child, &result, 0);
  return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static int sees_three_threads(void) { return rdna__config_check() == RDNA_OK && rdna__thread_count() == 3 ? 0 : 1; }
static int complains(void) {
  if (rdna__config_check() != RDNA_INVALID_ARGUMENT) return 1;
  if (strstr(rdna_last_error(), "RDNA_THREADS is 'many'") == NULL) return 2;
  return rdna__config_integer(RDNA__CONFIG_THREADS) == 0 ? 0 : 3;
}

static void config_reads_the_environment(void **state) {
  assert_int_equal(in_child("RDNA_THREADS", "3", sees_three_threads), 0);
  assert_int_equal(in_child("RDNA_THREADS", "many", complains), 0);
}

static char logged[256];
static int logged_count;
static void keep(void *data, rdna__log_level level, const char *message) {
  logged_count++;
  strncpy(logged, message, sizeof logged - 1);
}

static void log_respects_its_level(void **state) {
  rdna__log_set_sink(keep, NULL);
  assert_ok(rdna__config_set(RDNA__CONFIG_LOG, "info"));
  rdna__log(RDNA__LOG_DEBUG, "hidden");
  rdna__log(RDNA__LOG_INFO, "shown %d", 1);
  assert_int_equal(logged_count, 1);
  assert_string_equal(logged, "shown 1");
  assert_ok(rdna__config_set(RDNA__CONFIG_LOG, "warning"));
  rdna__log(RDNA__LOG_INFO, "hidden");
  rdna__log(RDNA__LOG_ERROR, "shown 2");
  assert_int_equal(logged_count, 2);
  rdna__log_set_sink(NULL, NULL);
}

enum { MARKS = 100003 };
static _Atomic unsigned char marks[MARKS];

static void mark(void *context, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&marks[i], 1);
}

static void loops_cover_each_index_once(void **state) {
  const int64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, MARKS};
  for (int c = 0; c < 12; c++)
    for (int64_t grain = 1; grain <= 4096; grain *= 8) {
      for (int i = 0; i < MARKS; i++) marks[i] = 0;
      rdna__parallel_for(counts[c], grain, mark, NULL);
      for (int i = 0; i < MARKS; i++) assert_int_equal(marks[i], i < counts[c]);
    }
  rdna__parallel_for(-5, 1, mark, NULL);
}

static _Atomic int64_t nested_total;
static void add_one(void *context, int64_t begin, int64_t end) { atomic_fetch_add(&nested_total, end - begin); }
static void nest(void *context, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) rdna__parallel_for(100, 1, add_one, NULL);
}

static void loops_nest(void **state) {
  nested_total = 0;
  rdna__parallel_for(50, 1, nest, NULL);
  assert_int_equal(nested_total, 5000);
}

static void *loop_many(void *unused) {
  for (int i = 0; i < 500; i++) rdna__parallel_for(64, 1, add_one, NULL);
  return NULL;
}

static void loops_run_from_many_threads(void **state) {
  nested_total = 0;
  pthread_t threads[6];
  for (int i = 0; i < 6; i++) assert_int_equal(pthread_create(&threads[i], NULL, loop_many, NULL), 0);
  for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  assert_int_equal(nested_total, 6 * 500 * 64);
}

static int loops_in_child(void) {
  nested_total = 0;
  rdna__parallel_for(1000, 1, add_one, NULL);
  return nested_total == 1000 ? 0 : 1;
}

static void loops_survive_a_fork(void **state) {
  loop_many(NULL);
  assert_int_equal(in_child("RDNA_LOG", "error", loops_in_child), 0);
}

/* The published test values of xoshiro256** seeded with 1, 2, 3, 4 (prng.di.unimi.it; also rand_xoshiro's). */
static void random_matches_the_published_generator(void **state) {
  rdna__random random = {{1, 2, 3, 4}};
  const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240};
  for (int i = 0; i < 4; i++) assert_true(rdna__random_bits(&random) == expected[i]);
}

static void random_is_spread_evenly(void **state) {
  rdna__random random;
  rdna__random_seed(&random, 7);
  enum { DRAWS = 300000, SIDES = 7 };
  int seen[SIDES] = {0};
  double sum = 0, squares = 0;
  for (int i = 0; i < DRAWS; i++) {
    seen[rdna__random_below(&random, SIDES)]++;
    double unit = rdna__random_unit(&random);
    assert_true(unit >= 0 && unit < 1);
    double normal = rdna__random_normal(&random);
    sum += normal;
    squares += normal * normal;
  }
  double chi = 0, expected = (double)DRAWS / SIDES;
  for (int i = 0; i < SIDES; i++) chi += (seen[i] - expected) * (seen[i] - expected) / expected;
  assert_true(chi < 27.9); /* 6 degrees of freedom, p = 1e-4 */
  assert_true(fabs(sum / DRAWS) < 4 / sqrt(DRAWS));
  assert_true(fabs(squares / DRAWS - 1) < 4 * sqrt(2.0 / DRAWS));
  for (int i = 0; i < 1000; i++) {
    int64_t value = rdna__random_range(&random, -3, 3);
    assert_true(value >= -3 && value <= 3);
  }
  assert_int_equal(rdna__random_below(&random, 0), 0);
  assert_int_equal(rdna__random_range(&random, 5, 5), 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(config_reads_the_environment), /* first: it forks before anything is read */
      cmocka_unit_test(status_keeps_a_sentence),
      cmocka_unit_test(status_cuts_long_sentences),
      cmocka_unit_test(status_belongs_to_its_thread),
      cmocka_unit_test(every_default_parses),
      cmocka_unit_test(config_refuses_nonsense),
      cmocka_unit_test(log_respects_its_level),
      cmocka_unit_test(loops_cover_each_index_once),
      cmocka_unit_test(loops_nest),
      cmocka_unit_test(loops_run_from_many_threads),
      cmocka_unit_test(loops_survive_a_fork),
      cmocka_unit_test(random_matches_the_published_generator),
      cmocka_unit_test(random_is_spread_evenly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
