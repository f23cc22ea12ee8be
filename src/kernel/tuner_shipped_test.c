/* Shipped results in place of the library's own: heard for the same code and the same libraries alone. */
#include "kernel/tuner_shipped.h"

#include "base/testing.h"
#include "device/driver.h"
#include "kernel/tuner.h"

#define GPU "null device 0 (computes nothing)"
#define ROW(gpu, code, shape, implementation) \
  gpu ",null,null 7," code ",nap," shape ",lib 1," implementation ",1,first,2\n"
/* A driver of any version; the null device has no code: "none". */
const char rdna__tuner_shipped[] =
    RDNA__TUNER_TEXT_HEADER "\n" ROW(GPU, "none", "same", "second") ROW(GPU, "0123456789abcdef", "other code", "second")
        ROW(GPU, "none", "no candidate", "third") ROW("another", "none", "other gpu", "second");
const size_t rdna__tuner_shipped_size = sizeof rdna__tuner_shipped - 1;

static rdna_device *device;

static void expect(const char *shape, const char *libraries, const char *implementation, const char *why) {
  rdna__tuner_question question = {.operator_name = "nap",
                                   .shape = shape,
                                   .shape_size = strlen(shape),
                                   .shape_text = shape,
                                   .families = "",
                                   .libraries = libraries,
                                   .count = 2,
                                   .candidates = {{1, "first", false}, {2, "second", false}}};
  rdna__tuner_result result;
  rdna__tuner_decide(rdna_device_default_stream(device), &question, &result);
  assert_string_equal(result.implementation, implementation);
  assert_string_equal(result.why, why);
}

static void what_was_compared_counts(void **state) {
  char text[RDNA__TUNER_TEXT];
  rdna__tuner_device_text(device, text);
  assert_memory_equal(text, GPU ",null,", strlen(GPU ",null,"));
  expect("same", "lib 1", "second", "shipped");
  expect("other code", "lib 1", "first", "rule");
  expect("no candidate", "lib 1", "first", "rule");
  expect("other gpu", "lib 1", "first", "rule");
}

static void other_libraries_were_not(void **state) { expect("same", "lib 2", "first", "rule"); }

static int open_null(void **state) { return rdna_device_open("null", &device) == RDNA_OK ? 0 : -1; }
static int close_null(void **state) {
  rdna_device_release(device);
  return 0;
}

int main(void) {
  setenv("RDNA_TUNE", "cached", 1);
  setenv("RDNA_TUNE_FILE", "/nowhere/tune.sqlite", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(what_was_compared_counts, open_null, close_null),
                                     cmocka_unit_test_setup_teardown(other_libraries_were_not, open_null, close_null)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
