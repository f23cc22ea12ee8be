/* The tables of routes against the manifest: their names are kernels, their rows can be reached and say when. */
#include <stdio.h>

#include "base/testing.h"
#include "kernel/manifest.h"
#include "math/common/plan/route.h"

/* Not every word goes with every other. */
static bool count_kernels(void *context, const char *name) {
  *(int *)context += rdna__manifest_find(name) >= 0;
  return true;
}

/* |pattern| with |word| in the place of what stands in the braces at |open|. */
static int kernels_with(const char *pattern, const char *open, const char *word) {
  char one[256];
  int count = 0;
  snprintf(one, sizeof one, "%.*s%s%s", (int)(open - pattern), pattern, word, strchr(open, '}') + 1);
  assert_true(rdna__route_expand(one, count_kernels, &count));
  return count;
}

static bool has_a_kernel(void *context, const char *word) {
  const char *const *of = context;
  return kernels_with(of[0], of[1], word) > 0;
}

/* Each word of a name leads to a kernel. */
static void names_are_kernels(void **state) {
  for (int t = 0; t < rdna__route_table_count; t++) {
    const rdna__route_table *table = rdna__route_tables[t];
    for (int i = 0; i < table->count; i++) {
      const rdna__route *route = rdna__route_at(table, i);
      for (int k = 0; k < RDNA__ROUTE_KERNELS && route->kernels[k]; k++) {
        const char *pattern = route->kernels[k];
        int count = 0;
        assert_true(rdna__route_expand(pattern, count_kernels, &count));
        if (count == 0) fail_msg("%s, %s: %s is no kernel", table->title, route->name, pattern);
        for (const char *open = pattern; (open = strchr(open, '{')) != NULL; open++) {
          char braces[256];
          const char *of[2] = {pattern, open};
          snprintf(braces, sizeof braces, "%.*s", (int)(strchr(open, '}') + 1 - open), open);
          if (!rdna__route_expand(braces, has_a_kernel, of))
            fail_msg("%s, %s: %s has a word without a kernel in %s", table->title, route->name, pattern, braces);
        }
      }
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
      if (!table->fixed && !route->applies && !route->cost && i < table->count - 1)
        fail_msg("%s: nothing after %s is ever taken", table->title, route->name);
      for (int j = 0; j < i; j++) assert_string_not_equal(route->name, rdna__route_at(table, j)->name);
    }
  }
}

static bool is_chosen(const char *kernel) {
  for (int t = 0; t < rdna__route_table_count; t++)
    for (int i = 0; i < rdna__route_tables[t]->count; i++) {
      const rdna__route *route = rdna__route_at(rdna__route_tables[t], i);
      for (int k = 0; k < RDNA__ROUTE_KERNELS && route->kernels[k]; k++)
        if (rdna__route_matches(route->kernels[k], kernel)) return true;
    }
  return false;
}

/* fill_u32 is no operator's: it is the example of a family, and what tests launch. */
static void every_kernel_has_a_route(void **state) {
  for (int i = 0; i < rdna__manifest_count; i++) {
    const char *kernel = rdna__manifest[i].name;
    if (!is_chosen(kernel) && strcmp(kernel, "fill_u32") != 0) fail_msg("no table of routes names %s", kernel);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_kernels), cmocka_unit_test(rows_can_be_reached),
                                     cmocka_unit_test(every_kernel_has_a_route)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
