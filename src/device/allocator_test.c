/* The caching allocator on the null driver (bounds, books, failures) and on the host driver (real waiting). */
#include "device/allocator.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/random.h"
#include "device/driver.h"
#include "rdna/memory.h"

#define MIB ((size_t)1 << 20)
#define OK(expression) assert_int_equal((expression), RDNA_OK)

static rdna_memory_stats stats_of(rdna_device *device) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  return stats;
}

static rdna_device *open_device(const char *name) {
  rdna_device *device = NULL;
  OK(rdna_device_open(name, &device));
  return device;
}

/* ---- 10^6 random calls ---- */

enum { STREAMS = 4, SLOTS = 1 << 16 };

typedef struct held {
  char *data;
  size_t size;
} held;

/* Log-uniform sizes in [low, high), random streams, random order of frees, at most |cap| bytes live; checks the
 * books as it goes and returns the most that was reserved over the most that was live. */
static double churn(uint64_t seed, int calls, double low, double high, size_t cap) {
  rdna_device *device = open_device("null");
  rdna_stream *streams[STREAMS] = {rdna_device_default_stream(device)};
  for (int i = 1; i < STREAMS; i++) OK(rdna_stream_create(device, 0, &streams[i]));
  held *slots = calloc(SLOTS, sizeof *slots);
  rdna__random random;
  rdna__random_seed(&random, seed);
  size_t live = 0, live_peak = 0, count = 0;
  for (int i = 0; i < calls; i++) {
    size_t size = (size_t)(low * pow(high / low, rdna__random_unit(&random)));
    bool grow = count == 0 || (count < SLOTS && rdna__random_below(&random, 2) == 0);
    while (count && (live + size > cap || !grow)) {
      held *one = &slots[rdna__random_below(&random, count)];
      OK(rdna_memory_free(device, one->data));
      live -= one->size;
      *one = slots[--count];
      grow = true;
    }
    held *one = &slots[count++];
    one->size = size;
    OK(rdna_memory_alloc(device, size, streams[rdna__random_below(&random, STREAMS)], (void **)&one->data));
    assert_int_equal((uintptr_t)one->data % 256, 0);
    live += size;
    if (live > live_peak) live_peak = live;
    if (i % 65536 == 0) {
      rdna_memory_stats stats = stats_of(device);
      assert_int_equal(stats.requested, live);
      assert_int_equal(stats.blocks, count);
      assert_true(stats.reserved >= stats.allocated && stats.allocated >= live);
    }
  }
  rdna_memory_stats stats = stats_of(device);
  print_message(
      "  sizes %.0f..%.0f cap %zu MiB: live peak %.1f MiB, reserved peak %.1f MiB, driver calls %llu + %llu\n", low,
      high, cap / MIB, (double)live_peak / (double)MIB, (double)stats.peak_reserved / (double)MIB,
      (unsigned long long)stats.driver_allocs, (unsigned long long)stats.driver_frees);
  while (count) OK(rdna_memory_free(device, slots[--count].data));
  OK(rdna_memory_empty_cache(device));
  assert_int_equal(stats_of(device).allocated, 0);
  assert_int_equal(stats_of(device).reserved, 0);
  free(slots);
  for (int i = 1; i < STREAMS; i++) rdna_stream_release(streams[i]);
  rdna_device_release(device);
  return (double)stats.peak_reserved / (double)live_peak;
}

static void test_million_random_calls_stay_near_the_live_peak(void **state) {
  assert_true(churn(1, 1000000, 1, 32e6, 1024 * MIB) <= 1.5);
}

static void test_other_mixes_stay_near_the_live_peak(void **state) {
  static const struct {
    double low, high;
    size_t cap;
  } mixes[] = {{1, 64e6, 4096 * MIB},
               {1, 32e6, 256 * MIB},
               {1e6, 1e7, 512 * MIB},
               {1e3, 4e6, 256 * MIB},
               {8e6, 64e6, 1024 * MIB}};
  for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
    assert_true(churn(i + 2, 200000, mixes[i].low, mixes[i].high, mixes[i].cap) <= 1.5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_million_random_calls_stay_near_the_live_peak),
      cmocka_unit_test(test_other_mixes_stay_near_the_live_peak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
