/* Rehearsals: the same calls leave the same statistics in the pool, and reach no driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "device/driver.h"
#include "rdna/memory.h"

enum { CALLS = 4000, MOST = 48, STREAMS = 3 };

#define assert_ok(call) assert_int_equal(call, RDNA_OK)

/* Random blocks of random sizes on random streams, some of them freed. */
static void follow(rdna_device *device, rdna_memory_stats *out) {
  rdna_stream *streams[STREAMS];
  void *blocks[MOST] = {0};
  rdna__random random;
  rdna__random_seed(&random, 7);
  for (int i = 0; i < STREAMS; i++) assert_ok(rdna_stream_create(device, 0, &streams[i]));
  for (int call = 0; call < CALLS; call++) {
    size_t at = rdna__random_below(&random, MOST), size = (size_t)1 << rdna__random_below(&random, 26);
    rdna_stream *stream = streams[rdna__random_below(&random, STREAMS)];
    assert_ok(rdna_memory_free(device, blocks[at]));
    assert_ok(rdna_memory_alloc(device, size + rdna__random_below(&random, size), stream, &blocks[at]));
    assert_ok(rdna_fill_bytes(stream, blocks[at], 1, size));
    if (call % 500 == 0) assert_ok(rdna_device_synchronize(device));
  }
  rdna_memory_get_stats(device, out);
  for (int i = 0; i < MOST; i++) assert_ok(rdna_memory_free(device, blocks[i]));
  for (int i = 0; i < STREAMS; i++) rdna_stream_release(streams[i]);
}

static void test_pools_agree(void **state) {
  rdna_device *device, *rehearsed;
  rdna_memory_stats want, got;
  assert_ok(rdna_device_open("null", &device));
  assert_ok(rdna__device_rehearse(device, &rehearsed));
  rdna__null_fail(0, RDNA_OK); /* counts from here */
  follow(rehearsed, &got);
  assert_int_equal(rdna__null_calls(), 0);
  follow(device, &want);
  assert_true(rdna__null_calls() > 0);
  assert_true(want.peak_reserved > want.peak_allocated && want.peak_allocated > (UINT64_C(1) << 26));
  assert_memory_equal(&got, &want, sizeof want);
  rdna_device_release(rehearsed);
  rdna_device_release(device);
}

static void test_it_looks_like_its_device(void **state) {
  rdna_device *device, *rehearsed;
  uint64_t free_bytes;
  void *data;
  assert_ok(rdna_device_open("host", &device));
  assert_ok(rdna__device_rehearse(device, &rehearsed));
  const rdna_device_info *want = rdna_device_get_info(device), *got = rdna_device_get_info(rehearsed);
  assert_string_equal(got->name, want->name);
  assert_string_equal(got->arch, want->arch);
  assert_int_equal(got->compute_units, want->compute_units);
  assert_true(got->total_memory > want->total_memory);
  assert_int_equal(rdna__device_driver(rehearsed)->code_format, rdna__device_driver(device)->code_format);
  assert_ok(rdna_memory_get_info(rehearsed, &free_bytes, NULL));
  assert_ok(rdna_memory_alloc(rehearsed, (size_t)want->total_memory * 4, NULL, &data)); /* more than there is */
  assert_ok(rdna_memory_free(rehearsed, data));
  rdna_device *again; /* a name opens the device itself */
  assert_ok(rdna_device_open("host", &again));
  assert_ptr_equal(again, device);
  rdna_device_release(again);
  rdna_device_release(rehearsed);
  rdna_device_release(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pools_agree),
                                     cmocka_unit_test(test_it_looks_like_its_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
