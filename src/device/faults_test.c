/* Every call of the null driver fails in turn, as out of memory and as a lost device: nothing is lost, nothing
 * leaks, and what comes after works. */
#include <stdio.h>

#include "base/log.h"
#include "base/testing.h"
#include "device/driver.h"
#include "rdna/memory.h"

#define MIB ((size_t)1 << 20)

static int warnings;

static void count_warning(void *data, rdna__log_level level, const char *message) { warnings++; }

/* What a workload holds, so that it can let go of it wherever it stopped. */
typedef struct holdings {
  rdna_device *device, *peer;
  rdna_stream *streams[2];
  rdna_event *start, *end;
  void *blocks[8], *peer_block, *pinned;
  char *json;
} holdings;

static int callbacks;

static void callback(void *data) { callbacks++; }

static rdna_status free_block(holdings *h, int i) {
  RDNA_TRY(rdna_memory_free(h->device, h->blocks[i]));
  h->blocks[i] = NULL;
  return RDNA_OK;
}

/* The allocator's last resorts: a block of another stream, and emptying the cache. */
static rdna_status fill_the_cap(holdings *h) {
  rdna_device *device = h->device;
  /* having held more, the allocator would not yet trim by itself */
  RDNA_TRY(rdna_memory_alloc(device, 28 * MIB, h->streams[0], &h->blocks[4]));
  RDNA_TRY(free_block(h, 4));
  RDNA_TRY(rdna_memory_empty_cache(device));
  RDNA_TRY(rdna_memory_set_fraction(device, (double)(20 * MIB) / (double)rdna_device_get_info(device)->total_memory));
  for (int i = 4; i < 8; i++) RDNA_TRY(rdna_memory_alloc(device, 3 * MIB, h->streams[i % 2], &h->blocks[i]));
  for (int i = 4; i < 7; i++) RDNA_TRY(free_block(h, i));
  for (int i = 4; i < 6; i++) RDNA_TRY(rdna_memory_alloc(device, 3 * MIB, h->streams[1], &h->blocks[i]));
  for (int i = 4; i < 6; i++) RDNA_TRY(free_block(h, i));
  RDNA_TRY(rdna_memory_alloc(device, 12 * MIB, h->streams[0], &h->blocks[4]));
  return rdna_memory_set_fraction(device, 1);
}

static rdna_status run(holdings *h) {
  static const rdna__driver_function function = {.name = "a_kernel", .args_size = 4};
  uint8_t bytes[300] = {1};
  float ms;
  RDNA_TRY(rdna_device_open("null:0", &h->device));
  RDNA_TRY(rdna_device_open("null:1", &h->peer));
  for (int i = 0; i < 2; i++) RDNA_TRY(rdna_stream_create(h->device, 0, &h->streams[i]));
  RDNA_TRY(rdna_event_create(h->device, true, &h->start));
  RDNA_TRY(rdna_event_create(h->device, true, &h->end));
  for (int i = 0; i < 4; i++) RDNA_TRY(rdna_memory_alloc(h->device, 100000 << i, h->streams[i % 2], &h->blocks[i]));
  RDNA_TRY(rdna_host_alloc(h->device, 1000, &h->pinned));
  RDNA_TRY(rdna_event_record(h->start, h->streams[0]));
  RDNA_TRY(rdna_copy_to_device(h->streams[0], h->blocks[0], bytes, sizeof bytes));
  RDNA_TRY(rdna_stream_wait(h->streams[1], h->start));
  RDNA_TRY(rdna_memory_record_stream(h->device, h->blocks[0], h->streams[1]));
  RDNA_TRY(rdna_copy_on_device(h->streams[1], h->blocks[1], h->blocks[0], sizeof bytes));
  RDNA_TRY(rdna_fill_bytes(h->streams[1], h->blocks[2], 7, 5000));
  uint32_t args = 0;
  RDNA_TRY(rdna__stream_launch(h->streams[1], &function, (rdna_grid){1, 1, 1}, &args));
  RDNA_TRY(rdna_stream_call(h->streams[1], callback, NULL));
  RDNA_TRY(rdna_event_record(h->end, h->streams[1]));
  RDNA_TRY(rdna_memory_free(h->device, h->blocks[0]));
  h->blocks[0] = NULL;
  RDNA_TRY(rdna_memory_alloc(h->device, 100000, h->streams[0], &h->blocks[0]));
  RDNA_TRY(rdna_copy_to_host(h->streams[1], bytes, h->blocks[1], sizeof bytes));
  RDNA_TRY(rdna_stream_query(h->streams[1]));
  RDNA_TRY(rdna_event_query(h->end));
  RDNA_TRY(rdna_event_synchronize(h->end));
  RDNA_TRY(rdna_event_elapsed(h->start, h->end, &ms));
  RDNA_TRY(fill_the_cap(h));
  RDNA_TRY(rdna_memory_alloc(h->peer, 5 * MIB, NULL, &h->peer_block));
  RDNA_TRY(rdna_copy_peer(rdna_device_default_stream(h->peer), h->peer_block, h->device, h->blocks[4], 5 * MIB));
  RDNA_TRY(rdna_memory_snapshot(h->device, &h->json));
  RDNA_TRY(rdna_stream_synchronize(h->streams[0]));
  RDNA_TRY(rdna_device_synchronize(h->device));
  RDNA_TRY(rdna_memory_empty_cache(h->device));
  return rdna_memory_get_info(h->device, NULL, NULL);
}

/* Lets go of everything. With |off|, failing is turned off first, so that the books must balance exactly while
 * the device is still open. */
static void let_go(holdings *h, bool off) {
  if (off) rdna__null_fail(0, RDNA_OK);
  for (int i = 0; i < 8; i++)
    if (h->blocks[i]) assert_ok(rdna_memory_free(h->device, h->blocks[i]));
  if (h->peer_block) assert_ok(rdna_memory_free(h->peer, h->peer_block));
  rdna_host_free(h->device, h->pinned);
  rdna_event_release(h->start);
  rdna_event_release(h->end);
  for (int i = 0; i < 2; i++) rdna_stream_release(h->streams[i]);
  free(h->json);
  if (off && h->device) {
    rdna_memory_stats stats;
    uint64_t free_bytes, total;
    assert_ok(rdna_memory_empty_cache(h->device));
    assert_ok(rdna_memory_get_info(h->device, &free_bytes, &total));
    assert_int_equal(free_bytes, total);
    rdna_memory_get_stats(h->device, &stats);
    assert_int_equal(stats.reserved + stats.allocated + stats.requested + stats.blocks + stats.segment_count, 0);
    assert_int_equal(stats.alloc_count, stats.free_count);
  }
  rdna_device_release(h->peer);
  rdna_device_release(h->device);
  memset(h, 0, sizeof *h);
}

static void fail_each_call(rdna_status with, bool off) {
  holdings h = {0};
  rdna__null_fail(0, RDNA_OK);
  assert_ok(run(&h));
  rdna_memory_stats stats;
  rdna_memory_get_stats(h.device, &stats);
  assert_true(stats.retries == 2 && stats.driver_frees >= 4); /* the run did get to the allocator's last resorts */
  if (!off) let_go(&h, false);                                /* the calls of letting go fail in turn too */
  uint64_t calls = rdna__null_calls();
  if (off) let_go(&h, true);
  assert_int_equal(rdna__null_live(), 0);
  assert_true(calls >= 50);
  uint64_t failed = 0;
  for (uint64_t nth = 1; nth <= calls; nth++) {
    rdna__null_fail(nth, with);
    rdna_status status = run(&h);
    /* a failed optional step is made up for by another way, so not every failed call fails the run */
    if (status != RDNA_OK) {
      failed++;
      assert_int_equal(status, with);
      assert_true(rdna_last_error()[0] != 0);
    }
    let_go(&h, off);
    rdna__null_fail(0, RDNA_OK);
    assert_int_equal(rdna__null_live(), 0);
    assert_ok(run(&h));
    let_go(&h, true);
    assert_int_equal(rdna__null_live(), 0);
  }
  print_message("  %llu calls failed in turn with %s; %llu ended the run\n", (unsigned long long)calls,
                rdna_status_name(with), (unsigned long long)failed);
  assert_true(failed >= calls / 2);
}

static void test_out_of_memory_at_every_call(void **state) { fail_each_call(RDNA_OUT_OF_MEMORY, true); }
static void test_device_lost_at_every_call(void **state) { fail_each_call(RDNA_DEVICE_LOST, true); }
static void test_out_of_memory_while_letting_go(void **state) { fail_each_call(RDNA_OUT_OF_MEMORY, false); }
static void test_device_lost_while_letting_go(void **state) { fail_each_call(RDNA_DEVICE_LOST, false); }

static rdna_device *open_null(void) {
  rdna_device *device = NULL;
  rdna__null_fail(0, RDNA_OK);
  assert_ok(rdna_device_open("null", &device));
  return device;
}

static void launch(rdna_stream *stream, const char *name) {
  rdna__driver_function function = {.name = name, .args_size = 4};
  uint32_t args = 0;
  assert_ok(rdna__stream_launch(stream, &function, (rdna_grid){1, 1, 1}, &args));
}

static void test_a_late_error_surfaces_once_and_names_the_kernels(void **state) {
  rdna_device *device = open_null();
  rdna_stream *stream = rdna_device_default_stream(device), *other;
  assert_ok(rdna_stream_create(device, 0, &other));
  launch(stream, "long_gone");
  assert_ok(rdna_stream_synchronize(stream));
  launch(stream, "fine");
  rdna__null_fail_launch(RDNA_DEVICE_ERROR);
  launch(stream, "broken_f32");
  launch(other, "elsewhere");
  assert_int_equal(rdna_stream_synchronize(stream), RDNA_DEVICE_ERROR);
  assert_non_null(strstr(rdna_last_error(), "2 kernel(s)"));
  assert_non_null(strstr(rdna_last_error(), "'broken_f32', 'fine'"));
  assert_null(strstr(rdna_last_error(), "long_gone"));
  assert_null(strstr(rdna_last_error(), "elsewhere"));
  assert_ok(rdna_stream_synchronize(stream));
  /* a query tells it as well */
  rdna__null_fail_launch(RDNA_DEVICE_LOST);
  launch(other, "last");
  assert_int_equal(rdna_stream_query(other), RDNA_DEVICE_LOST);
  assert_non_null(strstr(rdna_last_error(), "'last', 'elsewhere'"));
  /* more kernels than are remembered, and an error that the device tells instead of the stream */
  for (int i = 0; i < 10; i++) launch(other, i == 9 ? "ninth" : "many");
  rdna__null_fail(1, RDNA_DEVICE_ERROR);
  assert_int_equal(rdna_device_synchronize(device), RDNA_DEVICE_ERROR);
  assert_non_null(strstr(rdna_last_error(), "10 kernel(s)"));
  assert_non_null(strstr(rdna_last_error(), "'ninth', 'many', 'many', 'many'"));
  /* a launch that fails at once names its kernel too */
  rdna__null_fail(1, RDNA_DEVICE_ERROR);
  rdna__driver_function function = {.name = "refused", .args_size = 4};
  assert_int_equal(rdna__stream_launch(stream, &function, (rdna_grid){1, 1, 1}, NULL), RDNA_DEVICE_ERROR);
  assert_non_null(strstr(rdna_last_error(), "'refused'"));
  rdna_stream_release(other);
  rdna_device_release(device);
}

static void test_an_error_that_nobody_waited_for_is_logged(void **state) {
  rdna_device *device = open_null();
  rdna_stream *stream;
  assert_ok(rdna_stream_create(device, 0, &stream));
  rdna__null_fail_launch(RDNA_DEVICE_ERROR);
  launch(stream, "dropped");
  warnings = 0;
  rdna_stream_release(stream);
  assert_int_equal(warnings, 1);
  void *data;
  assert_ok(rdna_memory_alloc_named(device, 5000, NULL, "forgotten", &data));
  rdna_device_release(device); /* with a live block */
  assert_int_equal(warnings, 2);
  assert_int_equal(rdna__null_live(), 0);
}

static void destroy_kernels(rdna_device *device, void *kernels) {
  assert_ok(rdna_device_synchronize(device)); /* still open */
  ++*(int *)kernels;
}

static void test_the_kernels_slot_has_one_winner(void **state) {
  rdna_device *device = open_null();
  int first = 0, second = 0;
  assert_null(rdna__device_get_slot(device, RDNA__SLOT_KERNELS));
  assert_ptr_equal(rdna__device_set_slot(device, RDNA__SLOT_KERNELS, &first, destroy_kernels), &first);
  assert_ptr_equal(rdna__device_set_slot(device, RDNA__SLOT_KERNELS, &second, destroy_kernels), &first);
  assert_ptr_equal(rdna__device_get_slot(device, RDNA__SLOT_KERNELS), &first);
  rdna_device_release(device);
  assert_int_equal(first, 1);
  assert_int_equal(second, 0);
}

int main(void) {
  rdna__log_set_sink(count_warning, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_out_of_memory_at_every_call),
      cmocka_unit_test(test_device_lost_at_every_call),
      cmocka_unit_test(test_out_of_memory_while_letting_go),
      cmocka_unit_test(test_device_lost_while_letting_go),
      cmocka_unit_test(test_a_late_error_surfaces_once_and_names_the_kernels),
      cmocka_unit_test(test_an_error_that_nobody_waited_for_is_logged),
      cmocka_unit_test(test_the_kernels_slot_has_one_winner),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
