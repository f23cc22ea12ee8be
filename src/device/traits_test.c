/* Properties of devices: which row a device has. */
#include "device/traits.h"

#include <stdio.h>

#include "base/testing.h"

static const rdna__device_traits *traits(const char *driver, const char *arch) {
  rdna_device_info info = {0};
  snprintf(info.driver, sizeof info.driver, "%s", driver);
  snprintf(info.arch, sizeof info.arch, "%s", arch);
  return rdna__device_traits_of(&info);
}

static void a_device_has_its_row(void **state) {
  assert_true(traits("hip", "gfx1100")->is_gpu);
  assert_false(traits("hip", "gfx1100")->asynchronous_copies);
  assert_false(traits("hip", "gfx942")->is_measured);
  assert_true(traits("cuda", "sm_80")->is_measured && traits("cuda", "sm_90")->is_measured);
  assert_true(traits("cuda", "sm_80")->asynchronous_copies);
  assert_false(traits("cuda", "sm_80")->asynchronous_matrix_units);
  assert_true(traits("cuda", "sm_90")->asynchronous_matrix_units);
  assert_true(traits("host", "x86-64-v4")->divides_work);
  assert_false(traits("host", "x86-64-v4")->is_gpu);
  assert_false(traits("null", "null")->is_gpu);
  assert_false(traits("null", "null")->divides_work);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_device_has_its_row)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
