/* What a profile says, on the host's queue, on the null driver whose clock is the test's, and when calls fail. */
#include <time.h>

#include "base/testing.h"
#include "device/driver.h"
#include "rdna/memory.h"
#include "rdna/profile.h"

static void sleeps(const void *args, rdna_grid grid) {
  struct timespec t = {0, 3000000};
  nanosleep(&t, NULL);
}
static const rdna__driver_function kernel = {
    .name = "sleeps", .args_size = 4, .host_function = sleeps, .group_threads = 64};

static void test_what_ran_and_when(void **state) {
  rdna_device *device;
  assert_ok(rdna_device_open("host", &device));
  rdna_stream *stream = rdna_device_default_stream(device), *other;
  assert_ok(rdna_stream_create(device, 0, &other));
  void *data;
  char bytes[1000] = {0};
  assert_ok(rdna_memory_alloc(device, 2000, stream, &data));
  uint32_t args = 0;
  assert_ok(rdna__stream_launch(stream, &kernel, (rdna_grid){1, 1, 1}, &args)); /* before it: not seen */
  assert_ok(rdna_profile_start(device));
  rdna_profile_mark(7);
  assert_ok(rdna_copy_to_device(stream, data, bytes, 1000));
  assert_ok(rdna__stream_launch(stream, &kernel, (rdna_grid){1, 1, 1}, &args));
  rdna_profile_mark(9);
  assert_ok(rdna_copy_on_device(stream, (char *)data + 1000, data, 500));
  assert_ok(rdna_fill_bytes(stream, data, 1, 64));
  assert_ok(rdna_copy_to_host(stream, bytes, data, 1000));
  rdna_profile_mark(0);
  assert_ok(rdna__stream_launch(other, &kernel, (rdna_grid){1, 1, 1}, &args));
  rdna_profile_record *records;
  size_t count;
  assert_ok(rdna_profile_stop(device, &records, &count));
  assert_ok(rdna__stream_launch(stream, &kernel, (rdna_grid){1, 1, 1}, &args));
  static const struct {
    const char *name;
    rdna_profile_kind kind;
    uint64_t mark, bytes;
  } want[] = {
      {"copy to device", RDNA_PROFILE_KIND_COPY_TO_DEVICE, 7, 1000}, {"sleeps", RDNA_PROFILE_KIND_KERNEL, 7, 0},
      {"copy on device", RDNA_PROFILE_KIND_COPY_ON_DEVICE, 9, 500},  {"fill", RDNA_PROFILE_KIND_FILL, 9, 64},
      {"copy to host", RDNA_PROFILE_KIND_COPY_TO_HOST, 9, 1000},     {"sleeps", RDNA_PROFILE_KIND_KERNEL, 0, 0}};
  assert_int_equal(count, 6);
  for (size_t i = 0; i < count; i++) {
    assert_string_equal(records[i].name, want[i].name);
    assert_int_equal(records[i].kind, want[i].kind);
    assert_int_equal(records[i].mark, want[i].mark);
    assert_int_equal(records[i].bytes, want[i].bytes);
    assert_true(records[i].start >= 0 && records[i].length >= 0);
    assert_true((records[i].stream == 0) == (i < 5));
    if (want[i].kind == RDNA_PROFILE_KIND_KERNEL) assert_true(records[i].length >= 2.9);
    /* in one stream each begins when the one before has ended */
    if (i > 0 && i < 5) assert_true(records[i].start >= records[i - 1].start + records[i - 1].length - 0.01);
  }
  free(records);
  assert_ok(rdna_memory_free(device, data));
  rdna_stream_release(other);
  rdna_device_release(device);
}

static void test_starts_and_stops(void **state) {
  rdna_device *device;
  rdna_profile_record *records = NULL;
  size_t count = 9;
  assert_ok(rdna_device_open("host", &device));
  assert_int_equal(rdna_profile_start(NULL), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_profile_stop(NULL, NULL, NULL), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_profile_stop(device, &records, &count), RDNA_INVALID_ARGUMENT);
  assert_non_null(strstr(rdna_last_error(), "rdna_profile_start begins it"));
  assert_int_equal(count, 0);
  assert_ok(rdna_profile_start(device));
  assert_int_equal(rdna_profile_start(device), RDNA_INVALID_ARGUMENT);
  assert_non_null(strstr(rdna_last_error(), "rdna_profile_stop ends it"));
  assert_ok(rdna_profile_stop(device, &records, &count));
  assert_int_equal(count, 0);
  free(records);
  assert_ok(rdna_profile_start(device));
  uint32_t args = 0;
  assert_ok(rdna__stream_launch(rdna_device_default_stream(device), &kernel, (rdna_grid){1, 1, 1}, &args));
  assert_ok(rdna_profile_stop(device, NULL, NULL));
  assert_ok(rdna_profile_start(device));
  assert_ok(rdna__stream_launch(rdna_device_default_stream(device), &kernel, (rdna_grid){1, 1, 1}, &args));
  rdna_device_release(device); /* what it holds goes with it */
}

/* Each call of the driver fails in turn: work is queued nevertheless where only its events failed, and nothing leaks.
 */
static void test_failures(void **state) {
  static const rdna__driver_function nothing = {.name = "nothing", .args_size = 4};
  uint64_t live = rdna__null_live();
  for (uint64_t nth = 1; nth < 40; nth++) {
    rdna_device *device;
    rdna_profile_record *records = NULL;
    size_t count = 0;
    assert_ok(rdna_device_open("null", &device));
    rdna__null_fail(nth, RDNA_DEVICE_ERROR);
    uint32_t args = 0;
    rdna_status status = rdna_profile_start(device);
    for (int i = 0; i < 3 && status == RDNA_OK; i++)
      status = rdna__stream_launch(rdna_device_default_stream(device), &nothing, (rdna_grid){1, 1, 1}, &args);
    if (status == RDNA_OK) status = rdna_profile_stop(device, &records, &count);
    rdna__null_fail(0, RDNA_OK);
    if (nth == 39) {
      assert_ok(status);
      assert_int_equal(count, 3);
    }
    free(records);
    rdna_device_release(device);
    assert_int_equal(rdna__null_live(), live);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_ran_and_when),
      cmocka_unit_test(test_starts_and_stops),
      cmocka_unit_test(test_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
