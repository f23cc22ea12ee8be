/* The host driver's own promises: streams are asynchronous, so a missing synchronization shows, and nothing is lost
 * when a queue is full, large or released early. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/testing.h"
#include "device/driver.h"
#include "device/testing_gate.h"
#include "rdna/memory.h"

static rdna_device *open_host(void) {
  rdna_device *device = NULL;
  assert_ok(rdna_device_open("host", &device));
  return device;
}

static void test_a_missing_wait_reads_old_bytes(void **state) {
  rdna_device *device = open_host();
  rdna_stream *stream = rdna_device_default_stream(device);
  gate g = GATE;
  uint8_t *data, back[64], source[64];
  memset(source, 5, sizeof source);
  memset(back, 9, sizeof back);
  assert_ok(rdna_memory_alloc(device, sizeof source, NULL, (void **)&data));
  assert_ok(rdna_fill_bytes(stream, data, 1, sizeof source));
  assert_ok(rdna_stream_synchronize(stream));
  assert_ok(rdna_stream_call(stream, wait_at, &g));
  assert_ok(rdna_copy_to_device(stream, data, source, sizeof source));
  assert_ok(rdna_copy_to_host(stream, back, data, sizeof back));
  assert_int_equal(rdna_stream_query(stream), RDNA_NOT_READY);
  assert_int_equal(back[0], 9); /* nothing has run */
  assert_int_equal(data[0], 1);
  open_gate(&g);
  assert_ok(rdna_stream_synchronize(stream));
  for (size_t i = 0; i < sizeof back; i++) assert_int_equal(back[i], 5);
  assert_ok(rdna_memory_free(device, data));
  rdna_device_release(device);
}

/* What rdna_memory_record_stream prevents really happens without it. */
static void use_after_free(bool record, uint8_t expected) {
  enum { SIZE = 4096 };
  rdna_device *device = open_host();
  rdna_stream *owner = rdna_device_default_stream(device), *user;
  assert_ok(rdna_stream_create(device, 0, &user));
  gate g = GATE;
  uint8_t *x, *y;
  assert_ok(rdna_memory_alloc(device, SIZE, owner, (void **)&x));
  if (record) assert_ok(rdna_memory_record_stream(device, x, user));
  assert_ok(rdna_stream_call(user, wait_at, &g));
  assert_ok(rdna_fill_bytes(user, x, 0xaa, SIZE));
  assert_ok(rdna_memory_free(device, x));
  assert_ok(rdna_memory_alloc(device, SIZE, owner, (void **)&y));
  assert_ok(rdna_fill_bytes(owner, y, 0x55, SIZE));
  assert_ok(rdna_stream_synchronize(owner));
  open_gate(&g);
  assert_ok(rdna_stream_synchronize(user));
  assert_int_equal(x == y, !record);
  assert_int_equal(y[SIZE - 1], expected);
  assert_ok(rdna_memory_free(device, y));
  rdna_stream_release(user);
  rdna_device_release(device);
}

static void test_an_unrecorded_stream_overwrites_the_next_owner(void **state) { use_after_free(false, 0xaa); }
static void test_a_recorded_stream_does_not(void **state) { use_after_free(true, 0x55); }

static void count_up(void *data) { atomic_fetch_add((atomic_int *)data, 1); }

static void test_a_full_queue_holds_the_caller_and_loses_nothing(void **state) {
  enum { TASKS = 5000 };
  rdna_device *device = open_host();
  rdna_stream *stream;
  atomic_int count = 0;
  assert_ok(rdna_stream_create(device, 0, &stream));
  for (int i = 0; i < TASKS; i++) assert_ok(rdna_stream_call(stream, count_up, &count));
  rdna_stream_release(stream); /* waits */
  assert_int_equal(atomic_load(&count), TASKS);
  rdna_device_release(device);
}

static void test_a_released_event_lives_as_long_as_its_waiters(void **state) {
  rdna_device *device = open_host();
  rdna_stream *first, *second;
  rdna_event *event;
  gate g = GATE;
  atomic_int count = 0;
  assert_ok(rdna_stream_create(device, 0, &first));
  assert_ok(rdna_stream_create(device, 0, &second));
  assert_ok(rdna_event_create(device, true, &event));
  assert_ok(rdna_stream_call(first, wait_at, &g));
  assert_ok(rdna_event_record(event, first));
  assert_int_equal(rdna_event_query(event), RDNA_NOT_READY);
  float ms;
  assert_int_equal(rdna_event_elapsed(event, event, &ms), RDNA_NOT_READY);
  assert_ok(rdna_stream_wait(second, event));
  assert_ok(rdna_stream_call(second, count_up, &count));
  rdna_event_release(event);
  assert_int_equal(rdna_stream_query(second), RDNA_NOT_READY);
  assert_int_equal(atomic_load(&count), 0);
  open_gate(&g);
  rdna_stream_release(first);
  rdna_stream_release(second);
  assert_int_equal(atomic_load(&count), 1);
  rdna_device_release(device);
}

static void test_idle_streams_sleep(void **state) {
  enum { STREAMS = 8 };
  rdna_device *device = open_host();
  rdna_stream *streams[STREAMS];
  for (int i = 0; i < STREAMS; i++) assert_ok(rdna_stream_create(device, 0, &streams[i]));
  assert_ok(rdna_device_synchronize(device));
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  struct timespec t = {.tv_nsec = 300000000};
  nanosleep(&t, NULL);
  getrusage(RUSAGE_SELF, &after);
  double used =
      (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
      1e-6 *
          (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec);
  assert_true(used < 0.1); /* one spinning thread would use 0.3 s on an idle machine */
  for (int i = 0; i < STREAMS; i++) rdna_stream_release(streams[i]);
  rdna_device_release(device);
}

static atomic_int signals_in_test;
static pthread_t test_thread;

static void on_signal(int number) {
  if (pthread_equal(pthread_self(), test_thread)) atomic_fetch_add(&signals_in_test, 1);
}

static void test_signals_go_to_the_programs_threads(void **state) {
  rdna_device *device = open_host();
  test_thread = pthread_self();
  signal(SIGUSR1, on_signal);
  for (int i = 0; i < 20; i++) kill(getpid(), SIGUSR1);
  assert_int_equal(atomic_load(&signals_in_test), 20);
  signal(SIGUSR1, SIG_DFL);
  rdna_device_release(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_missing_wait_reads_old_bytes),
      cmocka_unit_test(test_an_unrecorded_stream_overwrites_the_next_owner),
      cmocka_unit_test(test_a_recorded_stream_does_not),
      cmocka_unit_test(test_a_full_queue_holds_the_caller_and_loses_nothing),
      cmocka_unit_test(test_a_released_event_lives_as_long_as_its_waiters),
      cmocka_unit_test(test_idle_streams_sleep),
      cmocka_unit_test(test_signals_go_to_the_programs_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
