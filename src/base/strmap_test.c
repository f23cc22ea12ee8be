#include "base/strmap.h"

#include <stdio.h>

#include "base/random.h"
#include "base/testing.h"

static void test_empty(void **state) {
  rdna__strmap map = {0};
  uint32_t value = 7;
  assert_false(rdna__strmap_find(&map, "a", 1, &value));
  assert_int_equal(value, 7);
  rdna__strmap_deinit(&map);
  assert_ok(rdna__strmap_init(&map, 0));
  assert_false(rdna__strmap_find(&map, "", 0, &value));
  rdna__strmap_deinit(&map);
}

static void test_duplicates_zeros_and_empty_keys(void **state) {
  rdna__strmap map = {0};
  bool inserted = false;
  uint32_t value = 0;
  assert_ok(rdna__strmap_insert(&map, "a\0b", 3, 1, &inserted));
  assert_true(inserted);
  assert_ok(rdna__strmap_insert(&map, "a\0c", 3, 2, &inserted));
  assert_true(inserted);
  assert_ok(rdna__strmap_insert(&map, "a", 1, 3, &inserted));
  assert_true(inserted);
  assert_ok(rdna__strmap_insert(&map, NULL, 0, 4, &inserted));
  assert_true(inserted);
  assert_ok(rdna__strmap_insert(&map, "a\0b", 3, 9, &inserted));
  assert_false(inserted);
  assert_int_equal(map.count, 4);
  assert_true(rdna__strmap_find(&map, "a\0b", 3, &value));
  assert_int_equal(value, 1);
  assert_true(rdna__strmap_find(&map, "a\0c", 3, &value));
  assert_int_equal(value, 2);
  assert_true(rdna__strmap_find(&map, "a", 1, &value));
  assert_int_equal(value, 3);
  assert_true(rdna__strmap_find(&map, "", 0, &value));
  assert_int_equal(value, 4);
  assert_false(rdna__strmap_find(&map, "a\0", 2, &value));
  rdna__strmap_deinit(&map);
}

/* Random keys over a small alphabet, against a linear list. */
static void test_against_a_list(void **state) {
  enum { COUNT = 3000 };
  static char keys[COUNT][4];  // (key, bytes)
  static uint8_t sizes[COUNT];
  static uint32_t values[COUNT];
  int used = 0;
  rdna__random random;
  rdna__random_seed(&random, 11);
  for (int pass = 0; pass < 2; pass++) {
    rdna__strmap map;
    assert_ok(rdna__strmap_init(&map, pass ? COUNT : 0));
    size_t slots_before = map.slot_count;
    used = 0;
    for (int i = 0; i < COUNT; i++) {
      char *key = keys[used];
      sizes[used] = (uint8_t)rdna__random_below(&random, 5);
      for (int b = 0; b < sizes[used]; b++) key[b] = (char)rdna__random_below(&random, 6);
      int same = -1;
      for (int j = 0; j < used && same < 0; j++)
        if (sizes[j] == sizes[used] && memcmp(keys[j], key, sizes[j]) == 0) same = j;
      uint32_t value = ~0u;
      assert_int_equal(rdna__strmap_find(&map, key, sizes[used], &value), same >= 0);
      if (same >= 0) assert_int_equal(value, values[same]);
      bool inserted = same >= 0;
      assert_ok(rdna__strmap_insert(&map, key, sizes[used], (uint32_t)i, &inserted));
      assert_int_equal(inserted, same < 0);
      if (same < 0) values[used++] = (uint32_t)i;
    }
    assert_int_equal(map.count, used);
    if (pass) assert_int_equal(map.slot_count, slots_before);
    for (int j = 0; j < used; j++) {
      uint32_t value = 0;
      assert_true(rdna__strmap_find(&map, keys[j], sizes[j], &value));
      assert_int_equal(value, values[j]);
    }
    rdna__strmap_deinit(&map);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_empty),
      cmocka_unit_test(test_duplicates_zeros_and_empty_keys),
      cmocka_unit_test(test_against_a_list),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
