/* The tables of routes against the manifest: their names are kernels, their rows can be reached and say when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the above */
#include <cmocka.h>

#include "kernel/manifest.h"
#include "math/common/plan/route.h"

static bool is_kernel(void *context, const char *name) {
  bool found = rdna__manifest_find(name) >= 0;
  if (!found) print_error("there is no kernel %s\n", name);
  return found;
}

static void names_are_kernels(void **state) {
  for (int t = 0; t < rdna__route_table_count; t++) {
    const rdna__route_table *table = rdna__route_tables[t];
    for (int i = 0; i < table->count; i++) {
      const rdna__route *route = rdna__route_at(table, i);
      for (int k = 0; k < RDNA__ROUTE_KERNELS && route->kernels[k]; k++)
        if (!rdna__route_expand(route->kernels[k], is_kernel, NULL))
          fail_msg("%s, %s: %s", table->title, route->name, route->kernels[k]);
    }
  }
}

static void rows_can_be_reached(void **state) {
  for (int t = 0; t < rdna__route_table_count; t++) {
    const rdna__route_table *table = rdna__route_tables[t];
    assert_non_null(strstr(table->source, "/math/"));
    assert_true(table->count > 0);
    for (int i = 0; i < table->count; i++) {
      const rdna__route *route = rdna__route_at(table, i);
      if (!route->name || !route->when) fail_msg("%s: row %d has no name or does not say when", table->title, i);
      assert_true(!route->cost == !rdna__route_at(table, 0)->cost);
      if (!route->applies && !route->cost && i < table->count - 1)
        fail_msg("%s: nothing after %s is ever taken", table->title, route->name);
      for (int j = 0; j < i; j++) assert_string_not_equal(route->name, rdna__route_at(table, j)->name);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_kernels), cmocka_unit_test(rows_can_be_reached)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
