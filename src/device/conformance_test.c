/* What every driver must do, checked on the device that the command line names ("host" when it names none):
 *   conformance_test [DEVICE]     for example  conformance_test cuda:0
 * Exit status 77: the device's driver is not available here. A check that has nothing to look at on this device counts
 * as skipped, and says why. Needs no files. Device memory is only ever read
 * through copies. Work is held up by callbacks that sleep, so that a missing wait shows. */
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/testing.h"
#include "device/driver.h"
#include "rdna/memory.h"

#define MIB ((size_t)1 << 20)
#define OK(expression) check_ok((expression), #expression, __LINE__)
#define REFUSED(expression) expect_refused((expression), #expression, __LINE__)

enum { SLEEP_MS = 40 };

static const char *device_name = "host";

static void check_ok(rdna_status status, const char *what, int line) {
  if (status != RDNA_OK) fail_msg("line %d: %s is %s: %s", line, what, rdna_status_name(status), rdna_last_error());
}

static void expect_refused(rdna_status status, const char *what, int line) {
  if (status != RDNA_INVALID_ARGUMENT) fail_msg("line %d: %s is %s", line, what, rdna_status_name(status));
  if (!rdna_last_error()[0]) fail_msg("line %d: %s left no sentence", line, what);
}

static int open_device(void **state) {
  rdna_device *device;
  OK(rdna_device_open(device_name, &device));
  *state = device;
  return 0;
}

static int close_device(void **state) {
  rdna_device_release(*state);
  return 0;
}

/* Another device than the one under test, to be foreign. */
static rdna_device *open_foreign(void) {
  rdna_device *device;
  OK(rdna_device_open(strncmp(device_name, "null", 4) == 0 ? "host" : "null", &device));
  return device;
}

static void *alloc(rdna_device *device, size_t size, rdna_stream *stream) {
  void *data = NULL;
  OK(rdna_memory_alloc(device, size, stream, &data));
  assert_non_null(data);
  return data;
}

static rdna_stream *new_stream(rdna_device *device) {
  rdna_stream *stream = NULL;
  OK(rdna_stream_create(device, 0, &stream));
  return stream;
}

static void sleep_callback(void *data) {
  struct timespec t = {.tv_nsec = SLEEP_MS * 1000000L};
  nanosleep(&t, NULL);
}

static void randomize(rdna__random *random, uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)rdna__random_bits(random);
}

/* Whether |size| bytes of the device are all |value|. */
static bool all_are(rdna_stream *stream, const void *device_data, uint8_t value, size_t size) {
  uint8_t *bytes = malloc(size);
  assert_non_null(bytes);
  memset(bytes, value + 1, size);
  OK(rdna_copy_to_host(stream, bytes, device_data, size));
  OK(rdna_stream_synchronize(stream));
  size_t i = 0;
  while (i < size && bytes[i] == value) i++;
  free(bytes);
  return i == size;
}

static void test_info_makes_sense(void **state) {
  const rdna_device_info *info = rdna_device_get_info(*state);
  assert_true(strlen(info->name) > 3 && strlen(info->name) < sizeof info->name);
  assert_true(strncmp(info->driver, device_name, strlen(info->driver)) == 0);
  assert_true(info->arch[0] != 0);
  assert_true(info->index >= 0 && info->native_index >= 0);
  assert_true(info->total_memory >= 64 * MIB && info->total_memory < UINT64_C(1) << 50);
  assert_true(info->compute_units > 0 && info->compute_units < 100000);
  assert_true(info->wave_size == 1 || info->wave_size == 32 || info->wave_size == 64);
  assert_true(info->max_group_threads >= 256 && info->max_group_memory >= 16384);
  assert_true(info->clock_mhz >= 0 && info->clock_mhz < 20000);
  rdna_device_info again;
  OK(rdna_device_describe(info->driver, info->index, &again));
  assert_string_equal(again.name, info->name);
  assert_string_equal(again.arch, info->arch);
  assert_int_equal(again.pci_bus, info->pci_bus);
  uint64_t free_bytes = 0, total = 0;
  OK(rdna_memory_get_info(*state, &free_bytes, &total));
  assert_true(free_bytes <= total && total > 0);
  print_message("%s: %s, %s, %d units, wave %d, %llu MiB\n", device_name, info->name, info->arch, info->compute_units,
                info->wave_size, (unsigned long long)(info->total_memory / MIB));
}

static void test_device_is_one_object(void **state) {
  rdna_device *again;
  OK(rdna_device_open(device_name, &again));
  assert_ptr_equal(again, *state);
  rdna_device_release(again);
  /* a stream holds its device */
  rdna_stream *stream = new_stream(*state);
  assert_ptr_equal(rdna_stream_device(stream), *state);
  rdna_stream_release(stream);
}

static void test_blocks_are_aligned_and_apart(void **state) {
  enum { BLOCKS = 200 };
  rdna_device *device = *state;
  rdna_stream *stream = new_stream(device);
  rdna__random random;
  rdna__random_seed(&random, 1);
  void *data[BLOCKS];
  size_t sizes[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    sizes[i] = 1 + rdna__random_below(&random, UINT64_C(1) << (1 + rdna__random_below(&random, 21)));
    data[i] = alloc(device, sizes[i], stream);
    assert_int_equal((uintptr_t)data[i] % 256, 0);
    OK(rdna_fill_bytes(stream, data[i], (uint8_t)i, sizes[i]));
  }
  for (int i = 0; i < BLOCKS; i++) assert_true(all_are(stream, data[i], (uint8_t)i, sizes[i]));
  for (int i = 0; i < BLOCKS; i++) OK(rdna_memory_free(device, data[(i * 77) % BLOCKS]));
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  assert_int_equal(stats.allocated, 0);
  assert_int_equal(stats.requested, 0);
  OK(rdna_memory_empty_cache(device));
  rdna_memory_get_stats(device, &stats);
  assert_int_equal(stats.reserved, 0);
  rdna_stream_release(stream);
}

static void test_nothing_is_something_that_works(void **state) {
  rdna_device *device = *state;
  rdna_stream *stream = rdna_device_default_stream(device);
  void *data = &data;
  OK(rdna_memory_alloc(device, 0, NULL, &data));
  assert_null(data);
  OK(rdna_memory_free(device, NULL));
  data = &data;
  OK(rdna_host_alloc(device, 0, &data));
  assert_null(data);
  rdna_host_free(device, NULL);
  OK(rdna_copy_to_device(stream, NULL, NULL, 0));
  OK(rdna_copy_to_host(stream, NULL, NULL, 0));
  OK(rdna_copy_on_device(stream, NULL, NULL, 0));
  OK(rdna_copy_peer(stream, NULL, device, NULL, 0));
  OK(rdna_fill_bytes(stream, NULL, 1, 0));
  rdna_stream_release(NULL);
  rdna_event_release(NULL);
  rdna_device_release(NULL);
}

/* Copies and fills at odd offsets of odd sizes, in pageable and pinned memory, against an image kept here. */
static void test_copies_move_exactly_their_bytes(void **state) {
  enum { SIZE = 300007, ROUNDS = 200 };
  rdna_device *device = *state;
  rdna_stream *stream = new_stream(device);
  rdna__random random;
  rdna__random_seed(&random, 2);
  uint8_t *a = alloc(device, SIZE, stream), *b = alloc(device, SIZE, stream), *pinned;
  uint8_t *image_a = malloc(SIZE), *image_b = malloc(SIZE), *pageable = malloc(SIZE);
  OK(rdna_host_alloc(device, SIZE, (void **)&pinned));
  randomize(&random, image_a, SIZE);
  randomize(&random, image_b, SIZE);
  OK(rdna_copy_to_device(stream, a, image_a, SIZE));
  OK(rdna_copy_to_device(stream, b, image_b, SIZE));
  for (int round = 0; round < ROUNDS; round++) {
    size_t size = 1 + rdna__random_below(&random, round % 3 ? 300 : SIZE / 2);
    size_t from = rdna__random_below(&random, SIZE - size), to = rdna__random_below(&random, SIZE - size);
    uint8_t *host = round % 2 ? pinned : pageable, value = (uint8_t)rdna__random_bits(&random);
    switch (rdna__random_below(&random, 4)) {
      case 0:
        randomize(&random, host + from, size);
        OK(rdna_copy_to_device(stream, a + to, host + from, size));
        memcpy(image_a + to, host + from, size);
        if (host == pinned) OK(rdna_stream_synchronize(stream));
        break;
      case 1:
        OK(rdna_copy_on_device(stream, b + to, a + from, size));
        memcpy(image_b + to, image_a + from, size);
        break;
      case 2:
        OK(rdna_fill_bytes(stream, b + to, value, size));
        memset(image_b + to, value, size);
        break;
      default:
        memset(host, 0x5a, SIZE);
        OK(rdna_copy_to_host(stream, host + to, b + from, size));
        OK(rdna_stream_synchronize(stream));
        assert_memory_equal(host + to, image_b + from, size);
        if (to) assert_int_equal(host[to - 1], 0x5a);
        assert_int_equal(host[to + size], 0x5a);
    }
  }
  OK(rdna_copy_to_host(stream, pageable, a, SIZE));
  OK(rdna_copy_to_host(stream, pinned, b, SIZE));
  OK(rdna_stream_synchronize(stream));
  assert_memory_equal(pageable, image_a, SIZE);
  assert_memory_equal(pinned, image_b, SIZE);
  OK(rdna_memory_free(device, a));
  OK(rdna_memory_free(device, b));
  rdna_host_free(device, pinned);
  free(image_a);
  free(image_b);
  free(pageable);
  rdna_stream_release(stream);
}

/* "Pageable memory has been read when the call returns", while the stream is held up. */
static void test_pageable_sources_may_change_at_once(void **state) {
  rdna_device *device = *state;
  static const size_t sizes[] = {1, 200, 300, 65536, 65537, 3 * MIB};
  rdna_stream *stream = new_stream(device);
  uint8_t *data = alloc(device, 3 * MIB, stream), *source = malloc(3 * MIB);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    memset(source, (int)i + 1, sizes[i]);
    OK(rdna_stream_call(stream, sleep_callback, NULL));
    OK(rdna_copy_to_device(stream, data, source, sizes[i]));
    memset(source, 0xee, sizes[i]);
    assert_true(all_are(stream, data, (uint8_t)(i + 1), sizes[i]));
  }
  free(source);
  OK(rdna_memory_free(device, data));
  rdna_stream_release(stream);
}

static void test_a_stream_runs_in_order(void **state) {
  enum { SIZE = 4099, STEPS = 50 };
  rdna_device *device = *state;
  rdna_stream *stream = new_stream(device);
  uint8_t *a = alloc(device, SIZE, stream), *b = alloc(device, SIZE, stream), *copies;
  OK(rdna_host_alloc(device, (size_t)SIZE * STEPS, (void **)&copies));
  OK(rdna_stream_call(stream, sleep_callback, NULL));
  for (int i = 0; i < STEPS; i++) {
    OK(rdna_fill_bytes(stream, a, (uint8_t)(i + 1), SIZE));
    OK(rdna_copy_on_device(stream, b, a, SIZE));
    OK(rdna_fill_bytes(stream, a, 0, SIZE));
    OK(rdna_copy_to_host(stream, copies + (size_t)i * SIZE, b, SIZE));
  }
  OK(rdna_stream_synchronize(stream));
  for (int i = 0; i < STEPS; i++)
    for (int j = 0; j < SIZE; j++) assert_int_equal(copies[(size_t)i * SIZE + (size_t)j], i + 1);
  rdna_host_free(device, copies);
  OK(rdna_memory_free(device, a));
  OK(rdna_memory_free(device, b));
  rdna_stream_release(stream);
}

static void test_events_order_streams(void **state) {
  enum { SIZE = 100003 };
  rdna_device *device = *state;
  rdna_stream *writer = new_stream(device), *reader = new_stream(device);
  rdna_event *written, *read;
  OK(rdna_event_create(device, false, &written));
  OK(rdna_event_create(device, false, &read));
  uint8_t *x = alloc(device, SIZE, writer), *y = alloc(device, SIZE, reader);
  OK(rdna_fill_bytes(writer, x, 0, SIZE));
  OK(rdna_stream_wait(reader, written)); /* never recorded: nothing to wait for */
  for (int round = 1; round <= 3; round++) {
    OK(rdna_stream_wait(writer, read));
    OK(rdna_stream_call(writer, sleep_callback, NULL));
    OK(rdna_fill_bytes(writer, x, (uint8_t)round, SIZE));
    OK(rdna_event_record(written, writer));
    OK(rdna_stream_wait(reader, written));
    OK(rdna_copy_on_device(reader, y, x, SIZE));
    OK(rdna_event_record(read, reader));
    /* the writer must not overtake the reader in the next turn; this fill would show it */
    OK(rdna_stream_wait(writer, read));
    OK(rdna_fill_bytes(writer, x, 0xcc, SIZE));
    assert_true(all_are(reader, y, (uint8_t)round, SIZE));
  }
  OK(rdna_device_synchronize(device));
  OK(rdna_memory_free(device, x));
  OK(rdna_memory_free(device, y));
  rdna_event_release(written);
  rdna_event_release(read);
  rdna_stream_release(writer);
  rdna_stream_release(reader);
}

/* A wait is for the record before it, not for a later one of the same event; and an event may be released while
 * streams still wait for it. */
static void test_a_wait_is_for_the_last_record(void **state) {
  rdna_device *device = *state;
  rdna_stream *slow = new_stream(device), *other = new_stream(device);
  rdna_event *event;
  OK(rdna_event_create(device, false, &event));
  uint8_t *x = alloc(device, 5000, slow), *y = alloc(device, 5000, other);
  OK(rdna_stream_call(slow, sleep_callback, NULL));
  OK(rdna_fill_bytes(slow, x, 7, 5000));
  OK(rdna_event_record(event, slow));
  OK(rdna_stream_wait(other, event));
  OK(rdna_event_record(event, rdna_device_default_stream(device))); /* at once done */
  rdna_event_release(event);
  OK(rdna_copy_on_device(other, y, x, 5000));
  assert_true(all_are(other, y, 7, 5000));
  OK(rdna_stream_synchronize(slow));
  OK(rdna_memory_free(device, x));
  OK(rdna_memory_free(device, y));
  rdna_stream_release(slow);
  rdna_stream_release(other);
}

static void test_events_tell_the_time(void **state) {
  rdna_device *device = *state;
  rdna_stream *stream = new_stream(device);
  rdna_event *marks[3], *untimed;
  for (int i = 0; i < 3; i++) OK(rdna_event_create(device, true, &marks[i]));
  OK(rdna_event_create(device, false, &untimed));
  OK(rdna_event_query(marks[0])); /* never recorded */
  OK(rdna_event_synchronize(marks[0]));
  float first, second, both;
  REFUSED(rdna_event_elapsed(marks[0], marks[1], &first));
  for (int i = 0; i < 3; i++) {
    OK(rdna_event_record(marks[i], stream));
    if (i < 2) OK(rdna_stream_call(stream, sleep_callback, NULL));
  }
  rdna_status status = rdna_event_query(marks[2]);
  assert_true(status == RDNA_OK || status == RDNA_NOT_READY);
  OK(rdna_event_record(untimed, stream));
  OK(rdna_event_synchronize(marks[2]));
  OK(rdna_event_query(marks[2]));
  OK(rdna_event_elapsed(marks[0], marks[1], &first));
  OK(rdna_event_elapsed(marks[1], marks[2], &second));
  OK(rdna_event_elapsed(marks[0], marks[2], &both));
  assert_true(first >= SLEEP_MS * 0.95f && second >= SLEEP_MS * 0.95f);
  assert_true(first + second >= both * 0.99f && first + second <= both * 1.01f);
  OK(rdna_event_synchronize(untimed));
  REFUSED(rdna_event_elapsed(marks[0], untimed, &first));
  REFUSED(rdna_event_elapsed(untimed, marks[0], &first));
  for (int i = 0; i < 3; i++) rdna_event_release(marks[i]);
  rdna_event_release(untimed);
  rdna_stream_release(stream);
}

static void test_any_priority_works(void **state) {
  static const int priorities[] = {-1000, -1, 0, 1, 1000};
  for (size_t i = 0; i < sizeof priorities / sizeof *priorities; i++) {
    rdna_stream *stream;
    OK(rdna_stream_create(*state, priorities[i], &stream));
    void *data = alloc(*state, 1000, stream);
    OK(rdna_fill_bytes(stream, data, (uint8_t)i, 1000));
    assert_true(all_are(stream, data, (uint8_t)i, 1000));
    OK(rdna_memory_free(*state, data));
    rdna_stream_release(stream);
  }
}

typedef struct diary {
  atomic_int count;
  atomic_int pages[64];
} diary;

typedef struct entry {
  diary *book;
  int number;
} entry;

static void write_entry(void *data) {
  entry *one = data;
  int page = atomic_fetch_add(&one->book->count, 1);
  atomic_store(&one->book->pages[page], one->number);
}

static void test_callbacks_come_in_order_and_after_the_work(void **state) {
  enum { CALLS = 64 };
  rdna_device *device = *state;
  rdna_stream *stream = new_stream(device);
  diary book = {0};
  entry entries[CALLS];
  OK(rdna_stream_call(stream, sleep_callback, NULL));
  for (int i = 0; i < CALLS; i++) {
    entries[i] = (entry){.book = &book, .number = i};
    OK(rdna_stream_call(stream, write_entry, &entries[i]));
  }
  OK(rdna_stream_synchronize(stream));
  assert_int_equal(atomic_load(&book.count), CALLS);
  for (int i = 0; i < CALLS; i++) assert_int_equal(atomic_load(&book.pages[i]), i);
  rdna_stream_release(stream);
}

static void set_flag(void *data) { atomic_store((atomic_int *)data, 1); }

static void test_synchronize_waits_for_everything(void **state) {
  enum { STREAMS = 3 };
  rdna_device *device = *state;
  rdna_stream *streams[STREAMS];
  atomic_int flags[STREAMS + 1] = {0};
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = new_stream(device);
    OK(rdna_stream_call(streams[i], sleep_callback, NULL));
    OK(rdna_stream_call(streams[i], set_flag, &flags[i]));
  }
  OK(rdna_stream_call(rdna_device_default_stream(device), set_flag, &flags[STREAMS]));
  OK(rdna_device_synchronize(device));
  for (int i = 0; i <= STREAMS; i++) assert_int_equal(atomic_load(&flags[i]), 1);
  for (int i = 0; i < STREAMS; i++) OK(rdna_stream_query(streams[i]));
  /* a release waits too */
  atomic_store(&flags[0], 0);
  OK(rdna_stream_call(streams[0], sleep_callback, NULL));
  rdna_status status = rdna_stream_query(streams[0]);
  /* a device that does its work inside the calls (null, an emulated one) may be ready */
  assert_true(status == RDNA_NOT_READY || (status == RDNA_OK && strncmp(device_name, "host", 4) != 0));
  OK(rdna_stream_call(streams[0], set_flag, &flags[0]));
  for (int i = 0; i < STREAMS; i++) rdna_stream_release(streams[i]);
  assert_int_equal(atomic_load(&flags[0]), 1);
}

static void test_the_default_stream_is_the_devices(void **state) {
  rdna_device *device = *state;
  rdna_stream *stream = rdna_device_default_stream(device);
  assert_non_null(stream);
  assert_ptr_equal(stream, rdna_device_default_stream(device));
  assert_ptr_equal(rdna_stream_device(stream), device);
  rdna_stream_release(stream); /* not the caller's to release: nothing happens */
  void *data = alloc(device, 999, NULL);
  OK(rdna_fill_bytes(stream, data, 9, 999));
  assert_true(all_are(stream, data, 9, 999));
  OK(rdna_memory_free(device, data));
}

static void test_memory_is_reused_in_its_stream(void **state) {
  rdna_device *device = *state;
  rdna_stream *stream = new_stream(device);
  void *first = alloc(device, 5 * MIB, stream);
  OK(rdna_memory_free(device, first));
  rdna_memory_stats before, after;
  rdna_memory_get_stats(device, &before);
  for (int i = 0; i < 100; i++) {
    void *data = alloc(device, 5 * MIB, stream);
    assert_ptr_equal(data, first);
    OK(rdna_memory_free(device, data));
  }
  rdna_memory_get_stats(device, &after);
  assert_int_equal(after.driver_allocs, before.driver_allocs);
  assert_int_equal(after.alloc_count, before.alloc_count + 100);
  assert_int_equal(after.peak_allocated, 5 * MIB);
  rdna_stream_release(stream);
}

static void test_a_recorded_stream_keeps_the_block(void **state) {
  enum { SIZE = 100000 };
  rdna_device *device = *state;
  rdna_stream *owner = new_stream(device), *user = new_stream(device);
  uint8_t *x = alloc(device, SIZE, owner);
  OK(rdna_memory_record_stream(device, x, user));
  OK(rdna_memory_record_stream(device, x, user));
  OK(rdna_stream_call(user, sleep_callback, NULL));
  OK(rdna_fill_bytes(user, x, 0xaa, SIZE));
  OK(rdna_memory_free(device, x));
  uint8_t *y = alloc(device, SIZE, owner);
  OK(rdna_fill_bytes(owner, y, 0x55, SIZE));
  OK(rdna_stream_synchronize(owner));
  OK(rdna_stream_synchronize(user));
  assert_true(all_are(owner, y, 0x55, SIZE));
  OK(rdna_memory_free(device, y));
  REFUSED(rdna_memory_record_stream(device, x, user));
  /* the block comes back once |user| has passed */
  OK(rdna_memory_empty_cache(device));
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  assert_int_equal(stats.reserved, 0);
  rdna_stream_release(owner);
  rdna_stream_release(user);
}

static void test_too_much_is_out_of_memory(void **state) {
  rdna_device *device = *state;
  uint64_t total = rdna_device_get_info(device)->total_memory;
  void *data = &data;
  assert_int_equal(rdna_memory_alloc_named(device, total + 1, NULL, "a dream", &data), RDNA_OUT_OF_MEMORY);
  assert_null(data);
  assert_non_null(strstr(rdna_last_error(), "a dream"));
  assert_int_equal(rdna_memory_alloc(device, SIZE_MAX, NULL, &data), RDNA_OUT_OF_MEMORY);
  assert_int_equal(rdna_memory_alloc(device, SIZE_MAX - 511, NULL, &data), RDNA_OUT_OF_MEMORY);
  /* a cap of 64 MiB lets at most two blocks of 24 MiB live, and names their holder */
  OK(rdna_memory_set_fraction(device, (double)(64 * MIB) / (double)total));
  void *blocks[4] = {0};
  int count = 0;
  rdna_status status = RDNA_OK;
  while (count < 4 && status == RDNA_OK)
    if ((status = rdna_memory_alloc_named(device, 24 * MIB, NULL, "weights", &blocks[count])) == RDNA_OK) count++;
  assert_int_equal(status, RDNA_OUT_OF_MEMORY);
  assert_int_equal(count, 2);
  assert_non_null(strstr(rdna_last_error(), "'weights' 48.00 MiB in 2 block(s)"));
  /* freed blocks of the wrong size are given back for a request that needs their room */
  for (int i = 0; i < count; i++) OK(rdna_memory_free(device, blocks[i]));
  OK(rdna_memory_free(device, alloc(device, 60 * MIB, NULL)));
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  assert_int_equal(stats.ooms, 4);
  assert_true(stats.retries >= 1 && stats.peak_reserved <= 64 * MIB);
  OK(rdna_memory_set_fraction(device, 1));
}

static void test_wrong_pointers_are_refused(void **state) {
  rdna_device *device = *state;
  uint8_t *data = alloc(device, 4096, NULL), local;
  REFUSED(rdna_memory_free(device, data + 512));
  REFUSED(rdna_memory_free(device, data + 1));
  REFUSED(rdna_memory_free(device, &local));
  rdna_device *foreign = open_foreign();
  REFUSED(rdna_memory_free(foreign, data));
  rdna_device_release(foreign);
  OK(rdna_fill_bytes(rdna_device_default_stream(device), data, 3, 4096)); /* still ours */
  assert_true(all_are(rdna_device_default_stream(device), data, 3, 4096));
  OK(rdna_memory_free(device, data));
  REFUSED(rdna_memory_free(device, data));
  assert_non_null(strstr(rdna_last_error(), "freed already"));
}

static void test_wrong_arguments_are_refused(void **state) {
  rdna_device *device = *state, *foreign = open_foreign();
  rdna_stream *stream = rdna_device_default_stream(device), *theirs = rdna_device_default_stream(foreign), *out_stream;
  rdna_event *event, *their_event, *out_event;
  OK(rdna_event_create(device, true, &event));
  OK(rdna_event_create(foreign, true, &their_event));
  uint8_t *data = alloc(device, 1000, NULL), byte = 0;
  void *out;
  float ms;
  char *json;
  REFUSED(rdna_memory_alloc(NULL, 1, NULL, &out));
  REFUSED(rdna_memory_alloc(device, 1, NULL, NULL));
  REFUSED(rdna_memory_alloc(device, 1, theirs, &out));
  REFUSED(rdna_memory_free(NULL, data));
  REFUSED(rdna_memory_record_stream(device, data, theirs));
  REFUSED(rdna_memory_record_stream(device, data + 512, stream));
  REFUSED(rdna_memory_set_fraction(device, 0));
  REFUSED(rdna_memory_set_fraction(device, 1.01));
  REFUSED(rdna_memory_set_fraction(device, 0.0 / 0.0));
  REFUSED(rdna_memory_empty_cache(NULL));
  REFUSED(rdna_memory_snapshot(device, NULL));
  REFUSED(rdna_memory_snapshot(NULL, &json));
  REFUSED(rdna_host_alloc(device, 1, NULL));
  REFUSED(rdna_host_alloc(NULL, 1, &out));
  REFUSED(rdna_copy_to_device(NULL, data, &byte, 1));
  REFUSED(rdna_copy_to_device(stream, NULL, &byte, 1));
  REFUSED(rdna_copy_to_device(stream, data, NULL, 1));
  REFUSED(rdna_copy_to_host(stream, NULL, data, 1));
  REFUSED(rdna_copy_on_device(stream, data + 5, data, 6)); /* overlap */
  REFUSED(rdna_copy_on_device(stream, data, data + 5, 6));
  OK(rdna_copy_on_device(stream, data, data + 6, 6));
  REFUSED(rdna_copy_peer(stream, data, NULL, data, 1));
  REFUSED(rdna_fill_bytes(stream, NULL, 0, 1));
  REFUSED(rdna_stream_create(NULL, 0, &out_stream));
  REFUSED(rdna_stream_create(device, 0, NULL));
  REFUSED(rdna_stream_synchronize(NULL));
  REFUSED(rdna_stream_query(NULL));
  REFUSED(rdna_stream_wait(stream, NULL));
  REFUSED(rdna_stream_wait(NULL, event));
  REFUSED(rdna_stream_call(stream, NULL, NULL));
  REFUSED(rdna_event_create(NULL, true, &out_event));
  REFUSED(rdna_event_create(device, true, NULL));
  REFUSED(rdna_event_record(event, NULL));
  REFUSED(rdna_event_record(event, theirs));
  REFUSED(rdna_event_record(NULL, stream));
  REFUSED(rdna_event_query(NULL));
  REFUSED(rdna_event_synchronize(NULL));
  REFUSED(rdna_event_elapsed(event, their_event, &ms));
  REFUSED(rdna_event_elapsed(event, event, NULL));
  REFUSED(rdna_device_synchronize(NULL));
  /* another driver's event can be waited for */
  OK(rdna_event_record(their_event, theirs));
  OK(rdna_stream_wait(stream, their_event));
  OK(rdna_device_synchronize(device));
  OK(rdna_memory_free(device, data));
  rdna_event_release(event);
  rdna_event_release(their_event);
  rdna_device_release(foreign);
}

static void test_the_snapshot_adds_up(void **state) {
  rdna_device *device = *state;
  void *data[3], *freed = alloc(device, 3 * MIB, NULL);
  for (int i = 0; i < 3; i++)
    OK(rdna_memory_alloc_named(device, 1000 + 700000 * (size_t)i, NULL, "activations", &data[i]));
  OK(rdna_memory_free(device, freed));
  char *text;
  OK(rdna_memory_snapshot(device, &text));
  json_t *root = json_loads(text, 0, NULL), *segment, *block;
  assert_non_null(root);
  free(text);
  json_int_t live = 0, requested = 0, reserved = 0, named = 0;
  size_t i, j;
  json_array_foreach(json_object_get(root, "segments"), i, segment) {
    json_int_t next = json_integer_value(json_object_get(segment, "address"));
    json_int_t end = next + json_integer_value(json_object_get(segment, "size"));
    reserved += end - next;
    json_array_foreach(json_object_get(segment, "blocks"), j, block) {
      assert_int_equal(json_integer_value(json_object_get(block, "address")), next);
      json_int_t size = json_integer_value(json_object_get(block, "size"));
      next += size;
      if (strcmp(json_string_value(json_object_get(block, "state")), "live") != 0) continue;
      live += size;
      requested += json_integer_value(json_object_get(block, "requested"));
      named += strcmp(json_string_value(json_object_get(block, "holder")), "activations") == 0;
    }
    assert_int_equal(next, end);
  }
  json_decref(root);
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  assert_int_equal(live, stats.allocated);
  assert_int_equal(requested, 1000 + 701000 + 1401000);
  assert_int_equal(requested, stats.requested);
  assert_int_equal(reserved, stats.reserved);
  assert_int_equal(named, 3);
  assert_true(stats.fragmentation >= 0 && stats.fragmentation < 1);
  assert_true(stats.peak_allocated > stats.allocated);
  rdna_memory_reset_peaks(device);
  rdna_memory_get_stats(device, &stats);
  assert_int_equal(stats.peak_allocated, stats.allocated);
  for (int k = 0; k < 3; k++) OK(rdna_memory_free(device, data[k]));
}

typedef struct worker {
  pthread_t thread;
  rdna_device *device;
  int number;
  char error[256];
} worker;

#define WORKER_TRY(expression)                                                                 \
  do {                                                                                         \
    if ((expression) != RDNA_OK) {                                                             \
      snprintf(self->error, sizeof self->error, "%s: %.180s", #expression, rdna_last_error()); \
      return NULL;                                                                             \
    }                                                                                          \
  } while (0)

static void *work(void *argument) {
  enum { ROUNDS = 60, LARGEST = 200000 };
  worker *self = argument;
  rdna__random random;
  rdna__random_seed(&random, (uint64_t)self->number);
  rdna_stream *stream, *second;
  rdna_event *event;
  WORKER_TRY(rdna_stream_create(self->device, 0, &stream));
  WORKER_TRY(rdna_stream_create(self->device, 0, &second));
  WORKER_TRY(rdna_event_create(self->device, false, &event));
  static _Thread_local uint8_t back[LARGEST];
  for (int round = 0; round < ROUNDS; round++) {
    size_t size = 1 + rdna__random_below(&random, LARGEST);
    uint8_t value = (uint8_t)(self->number * 16 + round);
    void *x, *y;
    WORKER_TRY(rdna_memory_alloc(self->device, size, stream, &x));
    WORKER_TRY(rdna_memory_alloc(self->device, size, second, &y));
    WORKER_TRY(rdna_fill_bytes(stream, x, value, size));
    WORKER_TRY(rdna_event_record(event, stream));
    WORKER_TRY(rdna_stream_wait(second, event));
    WORKER_TRY(rdna_memory_record_stream(self->device, x, second));
    WORKER_TRY(rdna_copy_on_device(second, y, x, size));
    WORKER_TRY(rdna_memory_free(self->device, x));
    WORKER_TRY(rdna_copy_to_host(second, back, y, size));
    WORKER_TRY(rdna_stream_synchronize(second));
    for (size_t i = 0; i < size; i++)
      if (back[i] != value) {
        snprintf(self->error, sizeof self->error, "round %d byte %zu is %d, not %d", round, i, back[i], value);
        return NULL;
      }
    WORKER_TRY(rdna_memory_free(self->device, y));
  }
  rdna_event_release(event);
  rdna_stream_release(stream);
  rdna_stream_release(second);
  return NULL;
}

static void test_eight_threads_at_once(void **state) {
  worker workers[8] = {0};
  for (int i = 0; i < 8; i++) {
    workers[i].device = *state;
    workers[i].number = i;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < 8; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < 8; i++)
    if (workers[i].error[0]) fail_msg("thread %d: %s", i, workers[i].error);
  rdna_memory_stats stats;
  rdna_memory_get_stats(*state, &stats);
  assert_int_equal(stats.allocated, 0);
  assert_int_equal(stats.blocks, 0);
}

/* To another device of the driver when there is one, and always to one of another driver. */
static void copy_between(rdna_device *from, rdna_device *to) {
  enum { SIZE = 21 << 20 | 5 };
  rdna__random random;
  rdna__random_seed(&random, 3);
  rdna_stream *stream = rdna_device_default_stream(from), *arrival = new_stream(to);
  uint8_t *source = malloc(SIZE), *back = malloc(SIZE), *x = alloc(from, SIZE, stream),
          *y = alloc(to, SIZE + 64, arrival);
  randomize(&random, source, SIZE);
  static const size_t sizes[] = {1, 4097, 8 << 20, SIZE};
  OK(rdna_copy_to_device(stream, x, source, SIZE));
  OK(rdna_stream_synchronize(stream));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    OK(rdna_fill_bytes(arrival, y, 0x11, SIZE + 64));
    OK(rdna_copy_peer(arrival, y + 3, from, x + SIZE - sizes[i], sizes[i]));
    OK(rdna_copy_to_host(arrival, back, y + 3, sizes[i]));
    OK(rdna_stream_synchronize(arrival));
    assert_memory_equal(back, source + SIZE - sizes[i], sizes[i]);
    assert_true(all_are(arrival, y, 0x11, 3) && all_are(arrival, y + 3 + sizes[i], 0x11, 7));
  }
  OK(rdna_memory_free(from, x));
  OK(rdna_memory_free(to, y));
  rdna_stream_release(arrival);
  free(source);
  free(back);
}

static void test_copies_from_and_to_another_driver(void **state) {
  rdna_device *foreign = open_foreign();
  copy_between(*state, foreign);
  copy_between(foreign, *state);
  rdna_device_release(foreign);
}

static void test_copies_between_two_devices(void **state) {
  rdna_device *device = *state, *second;
  const rdna_device_info *info = rdna_device_get_info(device);
  rdna_device_info other;
  int index = info->index == 0 ? 1 : 0;
  if (rdna_device_describe(info->driver, index, &other) != RDNA_OK)
    skip_because("driver %s has one device here, and copies between two are tried", info->driver);
  char name[24];
  snprintf(name, sizeof name, "%s:%d", info->driver, index);
  OK(rdna_device_open(name, &second));
  copy_between(device, second);
  copy_between(second, device);
  rdna_device_release(second);
}

typedef struct sum_args {
  const float *x;       /* (count) */
  float *out;           /* (1) */
  uint64_t padding[40]; /* longer than what a queue keeps inline */
  int64_t count;
} sum_args;

static void sum_kernel(const void *args, rdna_grid grid) {
  const sum_args *a = args;
  double sum = 0;
  for (int64_t i = 0; i < a->count; i++) sum += a->x[i];
  *a->out = (float)(sum * grid.x);
}

/* Kernels of a card need the kernel layer; a C function can be launched from here. */
static void test_a_host_kernel_gets_its_own_arguments(void **state) {
  rdna_device *device = *state;
  if (strcmp(rdna_device_get_info(device)->driver, "host") != 0)
    skip_because("a function of this program is launched on the host driver alone, and this is %s",
                 rdna_device_get_info(device)->driver);
  rdna_stream *stream = new_stream(device);
  float *x = alloc(device, 100 * sizeof *x, stream), *out = alloc(device, sizeof *out, stream), host[100], result = -1;
  for (int i = 0; i < 100; i++) host[i] = (float)i;
  OK(rdna_copy_to_device(stream, x, host, sizeof host));
  OK(rdna_stream_call(stream, sleep_callback, NULL));
  sum_args args = {.x = x, .out = out, .count = 100};
  rdna__driver_function function = {.name = "sum", .host_function = sum_kernel, .args_size = sizeof args};
  OK(rdna__stream_launch(stream, &function, (rdna_grid){2, 1, 1}, &args));
  memset(&args, 0xff, sizeof args); /* copied before the call returned */
  OK(rdna_copy_to_host(stream, &result, out, sizeof result));
  OK(rdna_stream_synchronize(stream));
  assert_true(result == 2 * 4950);
  OK(rdna_memory_free(device, x));
  OK(rdna_memory_free(device, out));
  rdna_stream_release(stream);
}

/* What is no recording is refused, and where there is none to be had a sentence says so. */
static void test_recordings_are_refused_in_sentences(void **state) {
  rdna_stream *stream = new_stream(*state);
  rdna_graph *graph;
  REFUSED(rdna_graph_begin(NULL));
  REFUSED(rdna_graph_end(stream, &graph));
  REFUSED(rdna_graph_launch(NULL, stream));
  rdna_status status = rdna_graph_begin(stream);
  if (status == RDNA_UNSUPPORTED)
    assert_true(strlen(rdna_last_error()) > 20);
  else
    OK(status);
  rdna_stream_release(stream); /* also while it records */
}

/* For kernels of other libraries: a stream of the vendor's, or a sentence where there is no vendor. */
static void test_native_streams(void **state) {
  rdna_stream *stream = new_stream(*state);
  const char *driver = rdna_device_get_info(*state)->driver;
  void *native = &native;
  REFUSED(rdna_stream_native(NULL, &native));
  REFUSED(rdna_stream_native(stream, NULL));
  if (strcmp(driver, "hip") == 0 || strcmp(driver, "cuda") == 0) {
    OK(rdna_stream_native(stream, &native));
    assert_non_null(native);
  } else {
    assert_int_equal(rdna_stream_native(stream, &native), RDNA_UNSUPPORTED);
    assert_non_null(strstr(rdna_last_error(), driver));
    assert_null(native);
  }
  rdna_stream_release(stream);
}

/* A recording replays what it was: a fill and two copies, with the bytes that are there at each replay. */
static void test_a_graph_replays(void **state) {
  rdna_device *device = *state;
  rdna_stream *stream;
  rdna_graph *graph;
  OK(rdna_stream_create(device, 0, &stream));
  if (rdna_graph_begin(stream) == RDNA_UNSUPPORTED) {
    rdna_stream_release(stream);
    skip_because("driver %s records no graphs: %s", rdna_device_get_info(device)->driver, rdna_last_error());
  }
  OK(rdna_graph_end(stream, NULL));
  uint8_t *a = alloc(device, MIB, stream), *b = alloc(device, MIB, stream), *c = alloc(device, MIB, stream);
  uint8_t got[3];
  OK(rdna_graph_begin(stream));
  REFUSED(rdna_graph_begin(stream));
  OK(rdna_copy_on_device(stream, b, a, MIB));
  OK(rdna_fill_bytes(stream, a, 7, MIB));
  OK(rdna_copy_on_device(stream, c, a, MIB));
  REFUSED(rdna_stream_synchronize(stream)); /* and the recording goes on */
  REFUSED(rdna_stream_query(stream));
  /* the graph's, so that nobody else gets it */
  void *scratch = alloc(device, MIB, stream);
  OK(rdna_copy_on_device(stream, scratch, a, MIB));
  OK(rdna_memory_free(device, scratch));
  void *other = alloc(device, MIB, stream);
  assert_ptr_not_equal(other, scratch);
  OK(rdna_memory_free(device, other));
  OK(rdna_graph_end(stream, &graph));
  for (int round = 0; round < 3; round++) {
    OK(rdna_fill_bytes(stream, a, (uint8_t)(round + 1), MIB));
    OK(rdna_fill_bytes(stream, c, 99, MIB));
    OK(rdna_graph_launch(graph, stream));
    assert_string_equal(rdna_stream_last_kernel(stream), "graph");
    for (int i = 0; i < 3; i++) OK(rdna_copy_to_host(stream, &got[i], (i == 0 ? a : i == 1 ? b : c) + MIB - 1, 1));
    OK(rdna_stream_synchronize(stream));
    assert_int_equal(got[0], 7);
    assert_int_equal(got[1], round + 1);
    assert_int_equal(got[2], 7);
  }
  rdna_memory_stats before, after;
  rdna_memory_get_stats(device, &before);
  rdna_graph_release(graph);
  rdna_memory_get_stats(device, &after);
  assert_int_equal(before.blocks - after.blocks, 2);
  /* a stream without memory of its own, which while it records cannot wait for the stream that has some to spare */
  rdna_stream *bare = new_stream(device);
  OK(rdna_memory_free(device, alloc(device, 3 * MIB, stream)));
  OK(rdna_graph_begin(bare));
  void *spare = alloc(device, 3 * MIB, bare);
  OK(rdna_fill_bytes(bare, spare, 5, MIB));
  OK(rdna_graph_end(bare, &graph));
  OK(rdna_graph_launch(graph, bare));
  OK(rdna_copy_to_host(bare, got, spare, 1));
  OK(rdna_stream_synchronize(bare));
  assert_int_equal(got[0], 5);
  rdna_graph_release(graph);
  OK(rdna_memory_free(device, spare));
  rdna_stream_release(bare);
  /* begun and left */
  OK(rdna_graph_begin(stream));
  OK(rdna_fill_bytes(stream, a, 1, MIB));
  OK(rdna_graph_end(stream, NULL));
  OK(rdna_copy_to_host(stream, got, a, 1));
  OK(rdna_stream_synchronize(stream));
  assert_int_equal(got[0], 7);
  OK(rdna_graph_begin(stream));
  OK(rdna_memory_free(device, a));
  OK(rdna_memory_free(device, b));
  OK(rdna_memory_free(device, c));
  rdna_stream_release(stream); /* also while it records */
}

#define CHECK(test) cmocka_unit_test_setup_teardown(test, open_device, close_device)

int main(int count, char **arguments) {
  if (count > 1) device_name = arguments[1];
  rdna_device *device;
  rdna_status status = rdna_device_open(device_name, &device);
  if (status == RDNA_UNAVAILABLE) {
    printf("skipped: %s\n", rdna_last_error());
    return 77;
  }
  if (status != RDNA_OK) {
    printf("%s\n", rdna_last_error());
    return 1;
  }
  rdna_device_release(device);
  const struct CMUnitTest tests[] = {
      CHECK(test_info_makes_sense),
      CHECK(test_device_is_one_object),
      CHECK(test_blocks_are_aligned_and_apart),
      CHECK(test_nothing_is_something_that_works),
      CHECK(test_copies_move_exactly_their_bytes),
      CHECK(test_pageable_sources_may_change_at_once),
      CHECK(test_a_stream_runs_in_order),
      CHECK(test_events_order_streams),
      CHECK(test_a_wait_is_for_the_last_record),
      CHECK(test_events_tell_the_time),
      CHECK(test_any_priority_works),
      CHECK(test_callbacks_come_in_order_and_after_the_work),
      CHECK(test_synchronize_waits_for_everything),
      CHECK(test_the_default_stream_is_the_devices),
      CHECK(test_memory_is_reused_in_its_stream),
      CHECK(test_a_recorded_stream_keeps_the_block),
      CHECK(test_too_much_is_out_of_memory),
      CHECK(test_wrong_pointers_are_refused),
      CHECK(test_wrong_arguments_are_refused),
      CHECK(test_the_snapshot_adds_up),
      CHECK(test_eight_threads_at_once),
      CHECK(test_copies_from_and_to_another_driver),
      CHECK(test_copies_between_two_devices),
      CHECK(test_native_streams),
      CHECK(test_recordings_are_refused_in_sentences),
      CHECK(test_a_graph_replays),
      CHECK(test_a_host_kernel_gets_its_own_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
