/* The self-test itself: it counts what it ran, tells what failed and how, and stops when asked. */
#include "math/selftest.h"
#include "base/testing.h"

static bool count_up_to_two(void *context, const rdna__selftest_kernel *kernel, int done, int total) {
  assert_int_equal(done, ++*(int *)context);
  assert_true(total >= done);
  return done < 2;
}

static void test_passes(void **state) {
  rdna_device *device;
  rdna__selftest_report report;
  assert_ok(rdna_device_open("host", &device));
  rdna__selftest_options options = {.cases = 9, .filter = "fill_u32", .seed = 3};
  assert_ok(rdna__selftest_run(device, &options, &report));
  assert_int_equal(report.kernel_count, 1);
  assert_int_equal(report.failed_count, 0);
  assert_int_equal(report.case_count, 9);
  assert_true(report.kernels[0].passed);
  assert_string_equal(report.kernels[0].family, "fill");
  rdna__selftest_deinit(&report);
  options.first = 7;
  assert_ok(rdna__selftest_run(device, &options, &report));
  assert_int_equal(report.case_count, 2);
  rdna__selftest_deinit(&report);
  rdna_device_release(device);
}

/* The null driver's kernels do nothing, so every one of them fails, in its first case that has something to do. */
static void test_failures(void **state) {
  rdna_device *device;
  rdna__selftest_report report;
  assert_ok(rdna_device_open("null", &device));
  rdna__selftest_options options = {.cases = 3, .filter = "fill_u32", .seed = 3};
  assert_ok(rdna__selftest_run(device, &options, &report));
  assert_int_equal(report.kernel_count, 1);
  assert_int_equal(report.failed_count, 1);
  assert_false(report.kernels[0].passed);
  assert_int_equal(report.kernels[0].cases, 1);
  assert_non_null(strstr(report.kernels[0].message, "case 0 (count 1 grid 1) on null: buffer 0: [0] got"));
  rdna__selftest_deinit(&report);
  options.first = 2;
  assert_ok(rdna__selftest_run(device, &options, &report));
  assert_non_null(strstr(report.kernels[0].message, "case 2 ("));
  rdna__selftest_deinit(&report);
  rdna_device_release(device);
}

static void test_filter_and_stop(void **state) {
  rdna_device *device;
  rdna__selftest_report report;
  int done = 0;
  assert_ok(rdna_device_open("host", &device));
  rdna__selftest_options options = {.cases = 1, .filter = "no such kernel"};
  assert_int_equal(rdna__selftest_run(device, &options, &report), RDNA_NOT_FOUND);
  rdna__selftest_deinit(&report);
  options.filter = "=fill_u32"; /* a kernel's name is no family */
  assert_int_equal(rdna__selftest_run(device, &options, &report), RDNA_NOT_FOUND);
  rdna__selftest_deinit(&report);
  options.filter = "=fill";
  assert_ok(rdna__selftest_run(device, &options, &report));
  assert_true(report.kernel_count > 0);
  for (int i = 0; i < report.kernel_count; i++) assert_memory_equal(report.kernels[i].name, "fill", 4);
  rdna__selftest_deinit(&report);
  options = (rdna__selftest_options){.cases = 1, .progress = count_up_to_two, .context = &done};
  assert_int_equal(rdna__selftest_run(device, &options, &report), RDNA_CANCELLED);
  assert_int_equal(done, 2);
  assert_int_equal(report.kernel_count, 2);
  rdna__selftest_deinit(&report);
  rdna_device_release(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_passes),
      cmocka_unit_test(test_failures),
      cmocka_unit_test(test_filter_and_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
