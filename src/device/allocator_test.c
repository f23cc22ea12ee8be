/* The caching allocator on the null driver (bounds, books, failures) and on the host driver (real waiting). */
#include "device/allocator.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>

#include "base/random.h"
#include "base/testing.h"
#include "device/driver.h"
#include "device/testing_gate.h"
#include "rdna/memory.h"

#define MIB ((size_t)1 << 20)

static rdna_memory_stats stats_of(rdna_device *device) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  return stats;
}

static rdna_device *open_device(const char *name) {
  rdna_device *device = NULL;
  assert_ok(rdna_device_open(name, &device));
  return device;
}

/* ---- 10^6 random calls ---- */

/* The thread sanitizer walks its shadow of each piece that the null driver unmaps, and there is one thread here. */
#ifdef __SANITIZE_THREAD__
enum { CALLS = 50000 };
#else
enum { CALLS = 1000000 };
#endif
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
  for (int i = 1; i < STREAMS; i++) assert_ok(rdna_stream_create(device, 0, &streams[i]));
  held *slots = calloc(SLOTS, sizeof *slots);
  rdna__random random;
  rdna__random_seed(&random, seed);
  size_t live = 0, live_peak = 0, count = 0;
  for (int i = 0; i < calls; i++) {
    size_t size = (size_t)(low * pow(high / low, rdna__random_unit(&random)));
    bool grow = count == 0 || (count < SLOTS && rdna__random_below(&random, 2) == 0);
    while (count && (live + size > cap || !grow)) {
      held *one = &slots[rdna__random_below(&random, count)];
      assert_ok(rdna_memory_free(device, one->data));
      live -= one->size;
      *one = slots[--count];
      grow = true;
    }
    held *one = &slots[count++];
    one->size = size;
    assert_ok(rdna_memory_alloc(device, size, streams[rdna__random_below(&random, STREAMS)], (void **)&one->data));
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
  while (count) assert_ok(rdna_memory_free(device, slots[--count].data));
  assert_ok(rdna_memory_empty_cache(device));
  assert_int_equal(stats_of(device).allocated, 0);
  assert_int_equal(stats_of(device).reserved, 0);
  free(slots);
  for (int i = 1; i < STREAMS; i++) rdna_stream_release(streams[i]);
  rdna_device_release(device);
  return (double)stats.peak_reserved / (double)live_peak;
}

static void test_million_random_calls_stay_near_the_live_peak(void **state) {
  assert_true(churn(1, CALLS, 1, 32e6, 1024 * MIB) <= 1.5);
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
    assert_true(churn(i + 2, CALLS / 5, mixes[i].low, mixes[i].high, mixes[i].cap) <= 1.5);
}

/* ---- borrowing between streams, on the host driver, whose streams really run apart ---- */

static void *alloc(rdna_device *device, size_t size, rdna_stream *stream) {
  void *data = NULL;
  assert_ok(rdna_memory_alloc(device, size, stream, &data));
  return data;
}

/* The first stream is held up with a write to come into a block that was freed; the second gets the same block,
 * and its own write must come later all the same. */
static void borrow(size_t size, size_t beside) {
  rdna_device *device = open_device("host");
  rdna_stream *first, *second;
  assert_ok(rdna_stream_create(device, 0, &first));
  assert_ok(rdna_stream_create(device, 0, &second));
  gate g = GATE, h = GATE;
  uint8_t *x = alloc(device, size, first), *kept = beside ? alloc(device, beside, first) : NULL;
  assert_ok(rdna_stream_call(first, wait_at, &g));
  assert_ok(rdna_fill_bytes(first, x, 0xaa, size));
  assert_ok(rdna_memory_free(device, x));
  uint8_t *y = alloc(device, size, second);
  assert_ptr_equal(x, y);
  assert_int_equal(stats_of(device).driver_allocs, 1);
  assert_ok(rdna_fill_bytes(second, y, 0x55, size));
  assert_int_equal(rdna_stream_query(second), RDNA_NOT_READY);
  open_gate(&g);
  assert_ok(rdna_stream_synchronize(second));
  for (size_t i = 0; i < size; i++) assert_int_equal(y[i], 0x55);

  /* the way back: part of a segment is the first stream's again only when the second has passed */
  assert_ok(rdna_stream_call(second, wait_at, &h));
  assert_ok(rdna_memory_free(device, y));
  uint8_t *z = alloc(device, size, first);
  if (beside) assert_ptr_not_equal(z, y);
  open_gate(&h);
  assert_ok(rdna_stream_synchronize(second));
  assert_ok(rdna_memory_free(device, z));
  if (beside) {
    /* two fit into the second segment; the third needs the block that was lent */
    void *three[3];
    for (int i = 0; i < 3; i++) three[i] = alloc(device, size, first);
    assert_ptr_equal(three[2], y);
    assert_int_equal(stats_of(device).driver_allocs, 2);
    for (int i = 0; i < 3; i++) assert_ok(rdna_memory_free(device, three[i]));
  }
  assert_ok(rdna_memory_free(device, kept));
  assert_ok(rdna_memory_empty_cache(device));
  assert_int_equal(stats_of(device).reserved, 0);
  rdna_stream_release(first);
  rdna_stream_release(second);
  rdna_device_release(device);
}

static void test_a_whole_segment_changes_hands_in_order(void **state) { borrow(8 * MIB, 0); }
static void test_part_of_a_segment_is_lent_in_order(void **state) { borrow(MIB, MIB / 2); }

static void test_a_released_streams_memory_is_the_default_streams(void **state) {
  rdna_device *device = open_device("null");
  rdna_stream *stream, *user;
  assert_ok(rdna_stream_create(device, 0, &stream));
  assert_ok(rdna_stream_create(device, 0, &user));
  void *cached = alloc(device, 5000, stream), *live = alloc(device, 3 * MIB, stream);
  assert_ok(rdna_memory_record_stream(device, live, user));
  assert_ok(rdna_memory_free(device, cached));
  rdna_stream_release(stream);
  rdna_stream_release(user);
  assert_ptr_equal(alloc(device, 5000, NULL), cached);
  assert_ok(rdna_memory_free(device, live));
  assert_ptr_equal(alloc(device, 3 * MIB, NULL), live);
  assert_int_equal(stats_of(device).driver_allocs, 2);
  assert_ok(rdna_memory_free(device, cached));
  assert_ok(rdna_memory_free(device, live));
  rdna_device_release(device);
}

/* A freed block waits for a stream whose mark could not be made; the stream goes, and with it the use: nobody asks the
 * driver about it any more, and the block is free. */
static void test_a_waiting_block_forgets_a_released_stream(void **state) {
  rdna_device *device = open_device("null");
  rdna_stream *users[2];
  void *data = alloc(device, 5 * MIB, NULL);
  for (int i = 0; i < 2; i++) {
    assert_ok(rdna_stream_create(device, 0, &users[i]));
    assert_ok(rdna_memory_record_stream(device, data, users[i]));
  }
  rdna__null_fail(1, RDNA_OUT_OF_MEMORY); /* the first user's mark */
  assert_ok(rdna_memory_free(device, data));
  assert_true(rdna__null_calls() > 1);
  for (int i = 0; i < 2; i++) rdna_stream_release(users[i]);
  rdna__null_fail(0, RDNA_OK);
  void *again = alloc(device, 5 * MIB, NULL);
  assert_ptr_equal(again, data);
  assert_int_equal(rdna__null_calls(), 0);
  assert_ok(rdna_memory_free(device, again));
  rdna_device_release(device);
}

static void test_neighbours_join_again(void **state) {
  rdna_device *device = open_device("null");
  uint8_t *data[4];
  for (int i = 0; i < 4; i++) data[i] = alloc(device, MIB / 2, NULL); /* fills a segment */
  for (int i = 1; i < 4; i++) assert_ptr_equal(data[i], data[0] + (size_t)i * MIB / 2);
  static const int order[] = {2, 0, 3, 1};
  for (int i = 0; i < 4; i++) assert_ok(rdna_memory_free(device, data[order[i]]));
  rdna_memory_stats stats = stats_of(device);
  assert_true(stats.fragmentation == 0 && stats.segment_count == 1 && stats.reserved == 2 * MIB);
  uint8_t *halves[2] = {alloc(device, MIB, NULL), alloc(device, MIB, NULL)};
  assert_int_equal(llabs(halves[1] - halves[0]), MIB);
  assert_int_equal(stats_of(device).driver_allocs, 1);
  for (int i = 0; i < 2; i++) assert_ok(rdna_memory_free(device, halves[i]));
  rdna_device_release(device);
}

/* Steps whose sizes follow one another, two of them live at once: their segments together are four times that, so that
 * without spare memory every step gives some back and asks for them again. */
static void test_spare_memory_keeps_repeated_steps_from_the_driver(void **state) {
  for (int spare = 0; spare < 2; spare++) {
    rdna_device *device = open_device("null");
    if (spare) assert_ok(rdna_memory_set_spare(device, UINT64_MAX));
    uint64_t allocs = 0;
    for (int step = 0; step < 5; step++) {
      void *before = alloc(device, 12 * MIB, NULL);
      for (size_t mib = 16; mib <= 64; mib += 8) {
        void *data = alloc(device, mib * MIB, NULL);
        assert_ok(rdna_memory_free(device, before));
        before = data;
      }
      assert_ok(rdna_memory_free(device, before));
      if (step == 1) allocs = stats_of(device).driver_allocs;
    }
    rdna_memory_stats stats = stats_of(device);
    assert_true(spare ? stats.driver_allocs == allocs && stats.driver_frees == 0
                      : stats.driver_allocs > allocs && stats.driver_frees > 0);
    assert_ok(
        rdna_memory_set_fraction(device, (double)(96 * MIB) / (double)rdna_device_get_info(device)->total_memory));
    void *data = alloc(device, 90 * MIB, NULL); /* what is spare gives way */
    assert_ok(rdna_memory_free(device, data));
    rdna_device_release(device);
  }
}

static void test_sizes_are_rounded_to_512_bytes(void **state) {
  rdna_device *device = open_device("null");
  static const size_t sizes[] = {1, 511, 512, 513, 1024, MIB, MIB + 1, 10 * MIB, 10 * MIB + 1};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *data = alloc(device, sizes[i], NULL);
    rdna_memory_stats stats = stats_of(device);
    size_t unit = sizes[i] > 10 * MIB ? 2 * MIB : 512; /* a large block is its whole segment */
    assert_int_equal(stats.requested, sizes[i]);
    assert_int_equal(stats.allocated, (sizes[i] + unit - 1) / unit * unit);
    assert_ok(rdna_memory_free(device, data));
  }
  rdna_device_release(device);
}

static void test_peaks_and_counts_begin_anew(void **state) {
  rdna_device *device = open_device("null");
  void *data[4]; /* two segments of small blocks, one medium block's, one large block's */
  static const size_t sizes[] = {1000, MIB, 5 * MIB, 21 * MIB};
  for (int i = 0; i < 4; i++) data[i] = alloc(device, sizes[i], NULL);
  for (int i = 1; i < 4; i++) assert_ok(rdna_memory_free(device, data[i]));
  assert_ok(rdna_memory_empty_cache(device));
  rdna_memory_stats stats = stats_of(device);
  assert_int_equal(stats.peak_requested, 1000 + 27 * MIB);
  assert_int_equal(stats.peak_allocated, 1024 + 28 * MIB); /* a large block is its whole segment */
  assert_int_equal(stats.peak_blocks, 4);
  assert_int_equal(stats.peak_segment_count, 3);
  assert_int_equal(stats.alloc_bytes, 1024 + 28 * MIB);
  assert_int_equal(stats.free_bytes, 28 * MIB);
  assert_true(stats.requested == 1000 && stats.blocks == 1 && stats.segment_count == 1);
  rdna_memory_reset_peaks(device);
  rdna_memory_reset_counts(device);
  stats = stats_of(device);
  assert_true(stats.peak_requested == 1000 && stats.peak_allocated == 1024 && stats.peak_reserved == 2 * MIB);
  assert_true(stats.peak_blocks == 1 && stats.peak_segment_count == 1);
  assert_true(!stats.alloc_count && !stats.free_count && !stats.alloc_bytes && !stats.free_bytes);
  assert_true(!stats.driver_allocs && !stats.driver_frees && !stats.retries && !stats.ooms);
  assert_ok(rdna_memory_free(device, data[0]));
  stats = stats_of(device);
  assert_true(stats.free_count == 1 && stats.free_bytes == 1024 && stats.blocks == 0 && stats.peak_blocks == 1);
  rdna_device_release(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_million_random_calls_stay_near_the_live_peak),
      cmocka_unit_test(test_other_mixes_stay_near_the_live_peak),
      cmocka_unit_test(test_a_whole_segment_changes_hands_in_order),
      cmocka_unit_test(test_part_of_a_segment_is_lent_in_order),
      cmocka_unit_test(test_a_released_streams_memory_is_the_default_streams),
      cmocka_unit_test(test_a_waiting_block_forgets_a_released_stream),
      cmocka_unit_test(test_neighbours_join_again),
      cmocka_unit_test(test_sizes_are_rounded_to_512_bytes),
      cmocka_unit_test(test_spare_memory_keeps_repeated_steps_from_the_driver),
      cmocka_unit_test(test_peaks_and_counts_begin_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
