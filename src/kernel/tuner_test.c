#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/testing.h"
#include "device/driver.h"
#include "device/driver/testing_flavours.h"
#include "kernel/tuner.h"
#include "kernel/tuner_shipped.h"
#include "rdna/tune.h"

/* A candidate is a time by which the null device's clock is advanced. */
enum { QUICK, MIDDLE, SLOW, BROKEN, ENDLESS, NEARLY, LITTLE };
static const double times_ms[] = {0.2, 3, 12, 0, 50, 2.97, 2.9};
static bool sleeps; /* for as long as well */
static const char *const names[] = {"quick", "middle", "slow", "broken", "endless", "nearly", "little"};
static int trials, warnings;
static char warning[1024];
static char folder[] = "/tmp/rdna-tuner-XXXXXX", file[64];
static rdna_device *device;
static rdna_stream *stream;

static rdna_status trial(void *context, int id) {
  trials++;
  if (id == BROKEN) return rdna__fail(RDNA_UNSUPPORTED, "broken");
  rdna__null_pass_time(times_ms[id]);
  if (sleeps) nanosleep(&(struct timespec){0, (long)(times_ms[id] * 1e6)}, NULL);
  return RDNA_OK;
}
static void count_warning(void *context, rdna__log_level level, const char *message) {
  if (level > RDNA__LOG_WARNING) return;
  warnings++;
  snprintf(warning, sizeof warning, "%s", message);
}

static rdna__tuner_result decide(int shape, const char *libraries, int count, const int *ids) {
  char text[32];
  snprintf(text, sizeof text, "n%d", shape);
  rdna__tuner_question q = {.operator_name = "nap",
                            .shape = &shape,
                            .shape_size = sizeof shape,
                            .shape_text = text,
                            .families = "",
                            .libraries = libraries,
                            .count = count,
                            .trial = trial};
  for (int i = 0; i < count; i++) q.candidates[i] = (rdna__tuner_candidate){ids[i], names[ids[i]], ids[i] == ENDLESS};
  rdna__tuner_result result, found;
  rdna__tuner_decide(stream, &q, &result);
  assert_true(rdna__tuner_find(device, "nap", &shape, sizeof shape, &found));
  assert_int_equal(found.id, result.id);
  return result;
}
#define DECIDE(shape, libraries, ...) \
  decide(shape, libraries, sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__})

static int open_null(void **state) {
  rdna__log_set_sink(count_warning, NULL);
  assert_ok(rdna_device_open("null", &device));
  stream = rdna_device_default_stream(device);
  return 0;
}
static int close_null(void **state) {
  rdna_device_release(device);
  return 0;
}

static void the_fastest_is_taken_and_kept(void **state) {
  rdna__tuner_result found;
  assert_false(rdna__tuner_find(device, "nap", &(int){1}, sizeof(int), &found));
  rdna__tuner_result r = DECIDE(1, "lib 1", SLOW, MIDDLE, QUICK);
  assert_int_equal(r.id, QUICK);
  assert_string_equal(r.why, "measured");
  assert_string_equal(r.implementation, "quick");
  assert_string_equal(r.next, "middle");
  assert_true(r.ms > 0.19 && r.ms < 0.21 && r.next_ms > 2.9 && r.next_ms < 3.1);
  int before = trials;
  assert_int_equal(DECIDE(1, "lib 1", SLOW, MIDDLE, QUICK).id, QUICK);
  assert_int_equal(trials, before);
}
static void noise_changes_no_order(void **state) {
  rdna__tuner_result r = DECIDE(9, "", MIDDLE, NEARLY, SLOW);
  assert_int_equal(r.id, MIDDLE);
  assert_string_equal(r.next, "nearly");
  r = DECIDE(10, "", MIDDLE, NEARLY, LITTLE);
  assert_int_equal(r.id, LITTLE);
  assert_string_equal(r.next, "nearly"); /* it took no place, and is faster than the one that lost it */
}
static void failing_candidates_are_dropped(void **state) {
  assert_int_equal(DECIDE(2, "", BROKEN, SLOW, MIDDLE).id, MIDDLE);
  rdna__tuner_result r = DECIDE(3, "", BROKEN, BROKEN);
  assert_int_equal(r.id, BROKEN);
  assert_string_equal(r.why, "rule");
}
/* The tuner does not take the error of an earlier kernel from the stream: it is for whoever waits for the stream next.
 */
static void errors_of_others_stay(void **state) {
  rdna__driver_function function = {.name = "earlier"};
  rdna__null_fail_launch(RDNA_DEVICE_ERROR);
  assert_ok(rdna__stream_launch(stream, &function, (rdna_grid){1, 1, 1}, &function));
  assert_string_equal(DECIDE(8, "", SLOW, QUICK).why, "measured");
  assert_int_equal(rdna_stream_synchronize(stream), RDNA_DEVICE_ERROR);
}
static void one_candidate_needs_no_trial(void **state) {
  int before = trials;
  assert_string_equal(DECIDE(4, "", SLOW).why, "only one");
  assert_int_equal(trials, before);
}
static void a_slow_start_is_for_who_asks(void **state) {
  assert_int_equal(DECIDE(5, "", ENDLESS, SLOW, QUICK).id, QUICK);
  assert_string_equal(DECIDE(6, "", ENDLESS, ENDLESS).why, "rule");
}
static void many_shapes(void **state) {
  for (int shape = 1000; shape < 1400; shape++) DECIDE(shape, "", shape % 2 ? SLOW : QUICK);
  for (int shape = 1000; shape < 1400; shape++) {
    rdna__tuner_result r;
    assert_true(rdna__tuner_find(device, "nap", &shape, sizeof shape, &r));
    assert_int_equal(r.id, shape % 2 ? SLOW : QUICK);
    assert_false(rdna__tuner_find(device, "other", &shape, sizeof shape, &r));
  }
}
/* Four threads find and decide the same shapes; everyone gets the same answer for each. */
enum { SHARED_SHAPES = 300 };
static int answers[4][SHARED_SHAPES];
static void *ask(void *context) {
  int number = (int)(intptr_t)context;
  for (int i = 0; i < SHARED_SHAPES; i++) {
    int shape = 5000 + (i * 7 + number) % SHARED_SHAPES;
    rdna__tuner_result result;
    rdna__tuner_question q = {.operator_name = "nap",
                              .shape = &shape,
                              .shape_size = sizeof shape,
                              .shape_text = "x",
                              .families = "",
                              .libraries = "",
                              .count = 1,
                              .candidates = {{shape % 3, names[shape % 3], false}}};
    if (!rdna__tuner_find(device, "nap", &shape, sizeof shape, &result)) rdna__tuner_decide(stream, &q, &result);
    answers[number][shape - 5000] = result.id;
  }
  return NULL;
}
static void threads_agree(void **state) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask, (void *)(intptr_t)i), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++)
    for (int shape = 0; shape < SHARED_SHAPES; shape++) assert_int_equal(answers[i][shape], (5000 + shape) % 3);
}
static void who_asks_is_told_what_ran(void **state) {
  rdna_choice choice;
  assert_int_equal(rdna_choice_last("gemm", &choice), RDNA_NOT_FOUND);
  rdna__choice_note("gemm", "a", "rule");
  rdna__choice_note("conv", "b", "stored");
  rdna__choice_note("gemm", "c", "measured");
  assert_ok(rdna_choice_last("gemm", &choice));
  assert_string_equal(choice.implementation, "c");
  assert_ok(rdna_choice_last("conv", &choice));
  assert_string_equal(choice.why, "stored");
  assert_int_equal(rdna_choice_last(NULL, &choice), RDNA_INVALID_ARGUMENT);
}

static int first_process(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_fastest_is_taken_and_kept),
      cmocka_unit_test(noise_changes_no_order),
      cmocka_unit_test(failing_candidates_are_dropped),
      cmocka_unit_test(errors_of_others_stay),
      cmocka_unit_test(one_candidate_needs_no_trial),
      cmocka_unit_test(a_slow_start_is_for_who_asks),
      cmocka_unit_test(many_shapes),
      cmocka_unit_test(threads_agree),
      cmocka_unit_test(who_asks_is_told_what_ran),
  };
  return cmocka_run_group_tests(tests, open_null, close_null);
}

/* After first_process. */
static void another_process_finds_it(void **state) {
  rdna__tuner_result r = DECIDE(1, "lib 1", SLOW, MIDDLE, QUICK);
  assert_string_equal(r.why, "stored");
  assert_int_equal(r.id, QUICK);
  assert_string_equal(r.next, "middle");
  assert_int_equal(trials, 0);
  /* a candidate that is not there cannot be chosen, nor one of another version */
  assert_string_equal(DECIDE(2, "", BROKEN, SLOW).why, "rule");
  assert_string_equal(DECIDE(5, "lib 2", SLOW, QUICK).why, "rule");
  assert_int_equal(trials, 0);
}
static int second_process(void) {
  setenv("RDNA_TUNE", "cached", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(another_process_finds_it)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}

/* A stored result is for its own card, driver, code, libraries, operator and shape. */
static void what_was_measured_elsewhere_is_not_taken(void **state) {
  char text[RDNA__TUNER_TEXT], code[RDNA__TUNER_CODE];
  rdna__tuner_device_text(device, text);
  rdna__tuner_code_text(device, "", code);
  const char *gpu = strtok(text, ","), *arch = strtok(NULL, ","), *driver = strtok(NULL, ",");
  assert_non_null(driver);
  char newer[RDNA__TUNER_TEXT];
  snprintf(newer, sizeof newer, "%s.1", driver);
  const rdna__tuner_row own = {gpu, arch, driver, code, "nap", "n0", "lib 1", "slow", "quick", 1, 2};
  rdna__tuner_row rows[] = {own, own, own, own, own, own, own};
  rows[1].gpu = "another card";
  rows[2].arch = "another arch";
  rows[3].driver = newer;
  rows[4].pack = "0123456789abcdef";
  rows[5].operator_name = "sleep";
  rows[6].libraries = "lib 2";
  enum { ROWS = sizeof rows / sizeof *rows };
  rdna__tuner_store *rival;
  assert_ok(rdna__tuner_store_open(getenv("RDNA_TUNE_FILE"), &rival));
  for (int i = 0; i < ROWS; i++) {
    char shape[8];
    snprintf(shape, sizeof shape, "n%d", i);
    rows[i].shape = shape;
    assert_ok(rdna__tuner_store_write(rival, &rows[i]));
  }
  rdna__tuner_store_close(rival);
  for (int i = 0; i <= ROWS; i++) { /* of the last shape nobody stored anything */
    rdna__tuner_result r = DECIDE(i, "lib 1", SLOW, QUICK);
    if (strcmp(r.why, i == 0 ? "stored" : "measured") != 0 || r.id != (i == 0 ? SLOW : QUICK))
      fail_msg("row %d: %s, %s", i, r.implementation, r.why);
  }
}
static int other_places(void) {
  char path[96];
  snprintf(path, sizeof path, "%s.others", file);
  setenv("RDNA_TUNE_FILE", path, 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_measured_elsewhere_is_not_taken)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}

static void nothing_is_asked(void **state) {
  assert_string_equal(DECIDE(1, "lib 1", SLOW, QUICK).why, "rule");
  assert_int_equal(trials, 0);
}
static int turned_off(void) {
  setenv("RDNA_TUNE", "off", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_asked)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}

static void never_more_than_a_second(void **state) {
  struct timespec begun, ended;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  int rules = 0;
  sleeps = true;
  for (int shape = 100; shape < 200; shape++) rules += strcmp(DECIDE(shape, "", SLOW, MIDDLE, QUICK).why, "rule") == 0;
  clock_gettime(CLOCK_MONOTONIC, &ended);
  double seconds = (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) * 1e-9;
  assert_true(rules > 0 && rules < 100);
  assert_true(rdna__tuner_spent() > 0.5 &&
              rdna__tuner_spent() < 1.5); /* a busy machine sleeps longer than it is told */
  assert_true(seconds < 4);               /* with what opening files costs */
}
static int budget(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(never_more_than_a_second)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}

/* A run that takes longer than a second is not begun, if the caller says so. */
static void long_runs_are_not_begun(void **state) {
  rdna__tuner_question q = {.operator_name = "nap",
                            .shape = "x",
                            .shape_size = 1,
                            .shape_text = "x",
                            .families = "",
                            .libraries = "",
                            .count = 2,
                            .candidates = {{SLOW, "slow", false}, {QUICK, "quick", false}},
                            .seconds = 0.4,
                            .trial = trial};
  rdna__tuner_result r;
  rdna__tuner_decide(stream, &q, &r);
  assert_string_equal(r.why, "rule");
  assert_int_equal(trials, 0);
}
static int long_runs(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_runs_are_not_begun)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}

static void everything_is_measured(void **state) {
  sleeps = true;
  assert_string_equal(DECIDE(7, "", ENDLESS, SLOW).why, "measured");
  for (int shape = 300; shape < 315; shape++) assert_int_equal(DECIDE(shape, "", SLOW, QUICK).id, QUICK);
  assert_true(rdna__tuner_spent() == 0);
}
static int full(void) {
  setenv("RDNA_TUNE", "full", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_measured)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}

static void a_broken_database_is_left(void **state) {
  assert_int_equal(rdna__fail(RDNA_NOT_FOUND, "the caller's own"), RDNA_NOT_FOUND);
  rdna__tuner_result r = DECIDE(1, "", SLOW, QUICK);
  assert_string_equal(rdna_last_error(), "the caller's own");
  assert_int_equal(r.id, QUICK);
  assert_string_equal(r.why, "measured");
  DECIDE(2, "", SLOW, QUICK);
  assert_int_equal(warnings, 1);
  assert_non_null(strstr(warning, "tuner's database"));
  assert_non_null(strstr(warning, "RDNA_TUNE_FILE"));
}
static int with_file(const char *bytes, size_t size) {
  char path[96];
  snprintf(path, sizeof path, "%s.broken", file);
  FILE *f = fopen(path, "wb");
  fwrite(bytes, 1, size, f);
  fclose(f);
  setenv("RDNA_TUNE_FILE", path, 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_broken_database_is_left)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}
static int garbage(void) {
  char bytes[5000];
  memset(bytes, 'x', sizeof bytes);
  return with_file(bytes, sizeof bytes);
}
/* Its first page is whole, the others are cut away. */
static int cut_short(void) {
  char bytes[4096];
  FILE *f = fopen(file, "rb");
  size_t size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  memset(bytes + 200, 0x5a, size - 200);
  return with_file(bytes, size);
}
static int no_such_folder(void) {
  setenv("RDNA_TUNE_FILE", "/proc/nowhere/tune.sqlite", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_broken_database_is_left)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}

static void count_row(void *context, const rdna__tuner_row *row) { ++*(int *)context; }

/* Processes that make the file at the same time and write into it. */
static void share_file(const char *path) {
  enum { PROCESSES = 6, ROWS = 12 };
  for (int p = 0; p < PROCESSES; p++) {
    if (fork() != 0) continue;
    rdna__tuner_store *store;
    int failed;
    do failed = rdna__tuner_store_open(path, &store) != RDNA_OK;
    while (failed && strstr(rdna_last_error(), "locked"));
    if (failed) fprintf(stderr, "%s\n", rdna_last_error());
    for (int i = 0; i < ROWS && !failed; i++) {
      char shape[32];
      snprintf(shape, sizeof shape, "%d-%d", p, i % (ROWS - 1)); /* one twice */
      rdna__tuner_row row = {"gpu", "arch", "driver", "pack", "op", shape, "", "one", "two", 1, 2};
      while (rdna__tuner_store_write(store, &row) != RDNA_OK)
        if (!strstr(rdna_last_error(), "locked")) _exit(1);
    }
    _exit(failed);
  }
  for (int p = 0; p < PROCESSES; p++) {
    int status;
    wait(&status);
    assert_int_equal(status, 0);
  }
  rdna__tuner_store *store;
  assert_ok(rdna__tuner_store_open(path, &store));
  int rows = 0;
  assert_ok(rdna__tuner_store_read(store, NULL, NULL, count_row, &rows));
  assert_int_equal(rows, PROCESSES * (ROWS - 1));
  rows = 0;
  assert_ok(rdna__tuner_store_read(store, "gpu", "other", count_row, &rows));
  assert_int_equal(rows, 0);
  rdna__tuner_store_close(store);
}
/* Of a file's first moments there is one each, and they are short: many files. */
static void processes_share_it(void **state) {
  for (int i = 0; i < 40; i++) {
    char path[96];
    snprintf(path, sizeof path, "%s/a/b/shared%d.sqlite", folder, i);
    share_file(path);
  }
}

static void keep_row(void *context, const rdna__tuner_row *row) {
  char line[1024];
  assert_ok(rdna__tuner_text_write(row, line));
  strcat(strcat(context, line), "\n");
}
/* Of the shipped ones each says what was compared. */
static void check_row(void *context, const rdna__tuner_row *row) {
  char line[1024];
  assert_ok(rdna__tuner_text_write(row, line));
  assert_int_equal(strlen(row->pack), 16);
  assert_true(row->ms > 0);
}
static rdna_status read_text(const char *text, char *out) {
  out[0] = 0;
  return rdna__tuner_text_read(text, strlen(text), keep_row, out);
}
static void text_is_read_as_it_is_written(void **state) {
  char out[2048];
  const char *lines =
      "NVIDIA H200,sm_90,cuda 13.0,00ff,gemm,f16 m1,cublaslt 13.1.0,cublaslt,0.25,large,1.5e-05\n"
      "a,b,,,c,d,,e,0,,0\n";
  char text[2048];
  snprintf(text, sizeof text, "# words\n\n" RDNA__TUNER_TEXT_HEADER "\r\n%s", lines);
  assert_ok(read_text(text, out));
  assert_string_equal(out, lines);
  assert_ok(rdna__tuner_text_read(rdna__tuner_shipped, rdna__tuner_shipped_size, check_row, NULL));
  static const char *const wrong[] = {"a,b,,,c,d,,e,0,,0\n",
                                      RDNA__TUNER_TEXT_HEADER "\na,b,,,c,d,,e,0,\n",
                                      RDNA__TUNER_TEXT_HEADER "\na,b,,,c,d,,e,0,,0,\n",
                                      RDNA__TUNER_TEXT_HEADER "\na,b,,,c,d,,e,-1,,0",
                                      RDNA__TUNER_TEXT_HEADER "\na,b,,,c,d,,e,nan,,0",
                                      RDNA__TUNER_TEXT_HEADER "\na,b,,,c,d,,e,1e999,,0",
                                      RDNA__TUNER_TEXT_HEADER "\na,b,,,c,d,,e,1.0.0,,0",
                                      RDNA__TUNER_TEXT_HEADER "\na,b,,,c,d,,e,0,,1-1",
                                      RDNA__TUNER_TEXT_HEADER "\na,b,,,c,d,,,0,,0"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(read_text(wrong[i], out), RDNA_BAD_DATA);
    assert_non_null(strstr(rdna_last_error(), i ? "line 2" : "line 1"));
  }
  rdna__tuner_row row = {"a,b", "", "", "", "c", "d", "", "e", "", 0, 0};
  char line[1024];
  assert_int_equal(rdna__tuner_text_write(&row, line), RDNA_INVALID_ARGUMENT);
}

/* A program's own locale, which here has a comma in numbers, changes no file. */
static void text_has_points_everywhere(void **state) {
  char number[8];
  use_commas_or_skip(folder);
  text_is_read_as_it_is_written(state);
  snprintf(number, sizeof number, "%g", 1.5);
  assert_string_equal(number, "1,5");
  use_locale("C");
}
static int files(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(processes_share_it),
                                     cmocka_unit_test(text_is_read_as_it_is_written),
                                     cmocka_unit_test(text_has_points_everywhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Set while the process runs: the mode, and another file, which has what the first has not. */
static void set_on_the_way(void **state) {
  char other[96];
  rdna_tune_stats stats;
  assert_string_equal(DECIDE(900, "", SLOW, QUICK).why, "rule");
  assert_ok(rdna_tune_set(device, "full", NULL));
  assert_string_equal(DECIDE(901, "", SLOW, QUICK).why, "measured");
  assert_string_equal(DECIDE(900, "", SLOW, QUICK).why, "rule"); /* as it was chosen before */
  snprintf(other, sizeof other, "%s.other", file);
  assert_ok(rdna_tune_set(device, NULL, other));
  assert_string_equal(DECIDE(902, "", SLOW, QUICK).why, "measured");
  assert_int_equal(access(other, F_OK), 0);
  assert_ok(rdna_tune_set(device, "cached", file));
  assert_string_equal(DECIDE(903, "", SLOW, QUICK).why, "rule");
  assert_ok(rdna_tune_get_stats(device, &stats));
  assert_int_equal(stats.entries, 4);
  assert_int_equal(stats.hits, 0);
  assert_int_equal(stats.misses, 4);
  assert_refused(rdna_tune_set(device, "best", other), RDNA_INVALID_ARGUMENT, "'best' is none of off, cached");
  assert_refused(rdna_tune_set(device, NULL, ""), RDNA_INVALID_ARGUMENT, "1 to 4,095 bytes, not 0");
  assert_refused(rdna_tune_set(NULL, NULL, NULL), RDNA_INVALID_ARGUMENT, "needs a device");
  assert_refused(rdna_tune_get_stats(device, NULL), RDNA_INVALID_ARGUMENT, "a place for the answer");
}
static int set_off(void) {
  setenv("RDNA_TUNE", "off", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(set_on_the_way)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}
/* Another process finds what was measured on the way, in the file that was named. */
static void the_named_file_is_read(void **state) {
  char other[96];
  rdna_tune_stats stats;
  snprintf(other, sizeof other, "%s.other", file);
  assert_ok(rdna_tune_set(device, "cached", other));
  assert_string_equal(DECIDE(902, "", SLOW, QUICK).why, "stored");
  assert_string_equal(DECIDE(901, "", SLOW, QUICK).why, "rule");
  assert_ok(rdna_tune_set(device, NULL, file));
  assert_string_equal(DECIDE(904, "", SLOW, QUICK).why, "rule");
  assert_ok(rdna_tune_get_stats(device, &stats));
  assert_int_equal(stats.hits, 1);
  assert_int_equal(stats.misses, 2);
}
static int read_named(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_named_file_is_read)};
  return cmocka_run_group_tests(tests, open_null, close_null);
}

int main(void) {
  if (!mkdtemp(folder)) return 1;
  snprintf(file, sizeof file, "%s/tune.sqlite", folder);
  setenv("RDNA_TUNE_FILE", file, 1);
  const flavour flavours[] = {
      {"first process", first_process},
      {"second process", second_process},
      {"other places", other_places},
      {"off", turned_off},
      {"budget", budget},
      {"long runs", long_runs},
      {"full", full},
      {"set on the way", set_off},
      {"named file", read_named},
      {"garbage", garbage},
      {"cut short", cut_short},
      {"no folder", no_such_folder},
      {"files", files},
  };
  int failed = run_flavours(flavours, sizeof flavours / sizeof *flavours, 120);
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0 || failed;
}
