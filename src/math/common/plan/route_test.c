/* Routes: which row is taken, and which names a pattern stands for. */
#include "math/common/plan/route.h"
#include "base/testing.h"

static bool is_even(const rdna__route *route, const void *problem) { return *(const int *)problem % 2 == 0; }
static bool is_large(const rdna__route *route, const void *problem) { return *(const int *)problem > 100; }
static double plain_cost(const rdna__route *route, const void *problem) { return *(const int *)problem; }
static double flat_cost(const rdna__route *route, const void *problem) { return 50; }

static const rdna__route first_rows[] = {
    {.name = "even", .applies = is_even}, {.name = "large", .applies = is_large}, {.name = "rest"}};
RDNA_ROUTES(first_of, "test", first_rows)

typedef struct wide {
  rdna__route route;
  int more;
} wide;
static const wide costed_rows[] = {{.route = {.name = "even", .applies = is_even, .cost = plain_cost}, .more = 1},
                                   {.route = {.name = "flat", .cost = flat_cost}, .more = 2},
                                   {.route = {.name = "as flat", .cost = flat_cost}, .more = 3}};
RDNA_ROUTES(least_of, "test", costed_rows)

static const rdna__route never_rows[] = {{.name = "large", .applies = is_large}};
RDNA_ROUTES(never_of, "test", never_rows)

static const rdna__route *choose(const rdna__route_table *table, int problem) {
  return rdna__route_choose(table, &problem);
}

static void the_first_that_applies(void **state) {
  assert_ptr_equal(choose(&first_of, 200), &first_rows[0]);
  assert_ptr_equal(choose(&first_of, 201), &first_rows[1]);
  assert_ptr_equal(choose(&first_of, 1), &first_rows[2]);
  assert_null(choose(&never_of, 1));
}

static void the_least_cost_of_those_that_apply(void **state) {
  assert_ptr_equal(choose(&least_of, 40), &costed_rows[0]);
  assert_ptr_equal(choose(&least_of, 60), &costed_rows[1]);
  assert_ptr_equal(choose(&least_of, 41), &costed_rows[1]);
  assert_ptr_equal(choose(&least_of, 50), &costed_rows[0]);
  assert_int_equal(((const wide *)choose(&least_of, 41))->more, 2);
}

static void words_fill_a_name(void **state) {
  char name[RDNA__ROUTE_NAME];
  assert_string_equal(rdna__route_kernel(name, "plain", NULL), "plain");
  assert_string_equal(rdna__route_kernel(name, "a_{x|y}_b{|_c}_{float}", (const char *const[]){"y", "", "f16"}),
                      "a_y_b_f16");
  static const char longest[] = "0123456789012345678901234567890123456789012345678901234567890123456789";
  assert_int_equal(strlen(rdna__route_kernel(name, longest, NULL)), RDNA__ROUTE_NAME - 1);
  assert_int_equal(strlen(rdna__route_kernel(name, "{a}", (const char *const[]){longest})), RDNA__ROUTE_NAME - 1);
}

static bool collect(void *context, const char *name) {
  strcat(strcat(context, name), " ");
  return true;
}

static void a_pattern_stands_for_names(void **state) {
  char all[256] = "";
  assert_true(rdna__route_expand("a{|_w}_{float}", collect, all));
  assert_string_equal(all, "a_f32 a_f16 a_bf16 a_w_f32 a_w_f16 a_w_bf16 ");
  all[0] = 0;
  assert_true(rdna__route_expand("{x|y|}z", collect, all));
  assert_string_equal(all, "xz yz z ");
  assert_true(rdna__route_matches("a{|_w}_{float}", "a_w_f16"));
  assert_true(rdna__route_matches("plain", "plain"));
  assert_false(rdna__route_matches("a{|_w}_{float}", "a_w"));
  assert_false(rdna__route_matches("a{|_w}_{float}", "a_w_f64"));
  assert_false(
      rdna__route_matches("a_name_of_more_than_sixty_three_characters_which_no_kernel_can_have_{float}", "plain"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_that_applies),
                                     cmocka_unit_test(the_least_cost_of_those_that_apply),
                                     cmocka_unit_test(words_fill_a_name), cmocka_unit_test(a_pattern_stands_for_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
