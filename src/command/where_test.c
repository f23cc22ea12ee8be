/* The table of places, which is made from the sources, has a row for each kernel of the manifest and no other. */

#include "base/testing.h"
#include "command/places.h"
#include "kernel/manifest.h"

static void has_the_manifest(void **state) {
  assert_int_equal(kernel_place_count, rdna__manifest_count);
  for (int i = 0; i < kernel_place_count; i++) {
    if (rdna__manifest_find(kernel_places[i].kernel) < 0) fail_msg("%s is no kernel", kernel_places[i].kernel);
    if (i > 0) assert_string_not_equal(kernel_places[i].kernel, kernel_places[i - 1].kernel);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(has_the_manifest)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
