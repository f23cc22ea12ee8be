#include <pthread.h>
#include <stdio.h>

#include "base/config.h"
#include "base/testing.h"
#include "device/driver.h"
#include "rdna/stream.h"

static void test_drivers_are_listed_in_order(void **state) {
  static const char *const names[] = {"hip", "cuda", "host", "null"};
  assert_int_equal(rdna_driver_count(), 4);
  for (int i = 0; i < 4; i++) {
    rdna_driver_info info;
    assert_ok(rdna_driver_get_info(i, &info));
    assert_string_equal(info.name, names[i]);
    assert_non_null(info.library);
    assert_non_null(info.version);
    assert_true(info.message[0] != 0); /* a missing driver says why */
    if (info.status != RDNA_OK) assert_int_equal(info.device_count, 0);
  }
  rdna_driver_info info;
  assert_int_equal(rdna_driver_get_info(4, &info), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_driver_get_info(-1, &info), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_driver_get_info(0, NULL), RDNA_INVALID_ARGUMENT);
}

static void test_a_name_finds_its_device(void **state) {
  static const struct {
    const char *name, *driver;
    int index;
  } names[] = {{"host", "host", 0}, {"host:0", "host", 0}, {"null", "null", 0}, {"null:1", "null", 1}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    rdna_device *device;
    assert_ok(rdna_device_open(names[i].name, &device));
    assert_string_equal(rdna_device_get_info(device)->driver, names[i].driver);
    assert_int_equal(rdna_device_get_info(device)->index, names[i].index);
    rdna_device_release(device);
  }
}

static void test_a_wrong_name_gets_the_list(void **state) {
  static const char *const names[] = {"",        ":",       "host:", "host:x", "host:1", "host:-1",
                                      "host:0x", "hos",     "hostx", "gpu",    "null:2", "null:99999999999999999999",
                                      "HOST",    "host:0:0"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    rdna_device *device = (rdna_device *)&device;
    assert_int_equal(rdna_device_open(names[i], &device), RDNA_NOT_FOUND);
    assert_null(device);
    assert_non_null(strstr(rdna_last_error(), "host:0 ("));
    for (int d = 0; d < 2; d++) {
      rdna_driver_info info;
      assert_ok(rdna_driver_get_info(d, &info));
      if (info.device_count == 0) assert_non_null(strstr(rdna_last_error(), info.message));
    }
  }
  assert_int_equal(rdna_device_open("host", NULL), RDNA_INVALID_ARGUMENT);
}

static void test_a_missing_driver_says_why(void **state) {
  for (int d = 0; d < 2; d++) {
    rdna_driver_info info;
    rdna_device *device;
    assert_ok(rdna_driver_get_info(d, &info));
    if (info.status == RDNA_OK) continue; /* this machine has it */
    assert_int_equal(rdna_device_open(info.name, &device), RDNA_UNAVAILABLE);
    assert_non_null(strstr(rdna_last_error(), info.message));
  }
}

static void test_auto_obeys_the_setting_and_never_picks_null(void **state) {
  rdna_device *device, *again;
  assert_ok(rdna__config_set(RDNA__CONFIG_DRIVER, "null"));
  assert_ok(rdna_device_open("auto", &device));
  assert_string_equal(rdna_device_get_info(device)->driver, "null");
  rdna_device_release(device);
  assert_ok(rdna__config_set(RDNA__CONFIG_DRIVER, "host"));
  assert_ok(rdna_device_open(NULL, &device));
  assert_string_equal(rdna_device_get_info(device)->driver, "host");
  rdna_device_release(device);
  assert_ok(rdna__config_set(RDNA__CONFIG_DRIVER, "auto"));
  assert_ok(rdna_device_open("auto", &device));
  assert_ok(rdna_device_open(NULL, &again));
  assert_ptr_equal(device, again);
  /* the first driver that has a device, counted here from what the drivers say */
  rdna_driver_info info;
  int first = 0;
  do assert_ok(rdna_driver_get_info(first++, &info));
  while (info.device_count == 0);
  assert_string_equal(rdna_device_get_info(device)->driver, info.name);
  assert_string_not_equal(info.name, "null");
  rdna_device_release(again);
  rdna_device_release(device);
}

static void test_the_default_driver_is_what_auto_opens(void **state) {
  uint64_t live = rdna__null_live();
  rdna_driver_info info;
  bool asked = false;
  assert_ok(rdna__config_set(RDNA__CONFIG_DRIVER, "null"));
  assert_ok(rdna_driver_default(&info, &asked));
  assert_string_equal(info.name, "null");
  assert_int_equal(info.device_count, 2);
  assert_true(asked);
  assert_int_equal(rdna__null_live(), live); /* nothing was opened */
  assert_ok(rdna__config_set(RDNA__CONFIG_DRIVER, "auto"));
  assert_ok(rdna_driver_default(&info, &asked));
  assert_false(asked);
  rdna_device *device;
  assert_ok(rdna_device_open("auto", &device));
  assert_string_equal(rdna_device_get_info(device)->driver, info.name);
  rdna_device_release(device);
  assert_ok(rdna_driver_default(&info, NULL));
  assert_int_equal(rdna_driver_default(NULL, NULL), RDNA_INVALID_ARGUMENT);
}

static void test_describing_does_not_open(void **state) {
  rdna_device_info info;
  uint64_t live = rdna__null_live();
  assert_ok(rdna_device_describe("null", 1, &info));
  assert_int_equal(info.index, 1);
  assert_int_equal(rdna__null_live(), live);
  assert_int_equal(rdna_device_describe("null", 2, &info), RDNA_NOT_FOUND);
  assert_int_equal(rdna_device_describe("null", -1, &info), RDNA_NOT_FOUND);
  assert_int_equal(rdna_device_describe("vulkan", 0, &info), RDNA_NOT_FOUND);
  assert_int_equal(rdna_device_describe(NULL, 0, &info), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_device_describe("null", 0, NULL), RDNA_INVALID_ARGUMENT);
}

static void test_a_stream_and_an_event_keep_the_device_open(void **state) {
  rdna_device *device, *again;
  rdna_stream *stream;
  rdna_event *event;
  assert_ok(rdna_device_open("null:1", &device));
  assert_ok(rdna_stream_create(device, 0, &stream));
  assert_ok(rdna_event_create(device, false, &event));
  rdna_device_release(device);
  assert_ok(rdna_device_open("null:1", &again));
  assert_ptr_equal(device, again);
  rdna_device_release(again);
  rdna_stream_release(stream);
  assert_true(rdna__null_live() > 0);
  rdna_event_release(event);
  assert_int_equal(rdna__null_live(), 0);
}

static void *open_and_release(void *data) {
  for (int i = 0; i < 200; i++) {
    rdna_device *device, *same;
    if (rdna_device_open("null:0", &device) != RDNA_OK) return "open failed";
    if (rdna_device_open("null:0", &same) != RDNA_OK) return "second open failed";
    if (same != device) return "two objects for one device";
    rdna_device_release(rdna_device_retain(device));
    rdna_device_release(same);
    rdna_device_release(device);
  }
  return NULL;
}

static void test_threads_may_open_and_release_at_once(void **state) {
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, open_and_release, NULL), 0);
  for (int i = 0; i < 8; i++) {
    void *error;
    pthread_join(threads[i], &error);
    if (error) fail_msg("%s", (const char *)error);
  }
  assert_int_equal(rdna__null_live(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_drivers_are_listed_in_order),
      cmocka_unit_test(test_a_name_finds_its_device),
      cmocka_unit_test(test_a_wrong_name_gets_the_list),
      cmocka_unit_test(test_a_missing_driver_says_why),
      cmocka_unit_test(test_auto_obeys_the_setting_and_never_picks_null),
      cmocka_unit_test(test_the_default_driver_is_what_auto_opens),
      cmocka_unit_test(test_describing_does_not_open),
      cmocka_unit_test(test_a_stream_and_an_event_keep_the_device_open),
      cmocka_unit_test(test_threads_may_open_and_release_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
