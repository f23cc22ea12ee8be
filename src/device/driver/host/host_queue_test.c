/* The host driver's own promises: streams are asynchronous, so a missing synchronization shows, and nothing is lost
 * when a queue is full, large or released early. */
#include <fenv.h>
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

/* ---- little tasks, which lie until somebody asks ---- */

static void spend_time(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

/* A look without asking, which the thread sanitizer would take for a mistake. */
__attribute__((no_sanitize("thread"))) static uint8_t peek(const volatile uint8_t *at) { return *at; }

static void test_little_tasks_run_when_somebody_asks(void **state) {
  rdna_device *device = open_host();
  rdna_stream *stream = rdna_device_default_stream(device), *other;
  rdna_event *event;
  uint8_t *data;
  assert_ok(rdna_stream_create(device, 0, &other));
  assert_ok(rdna_event_create(device, false, &event));
  assert_ok(rdna_memory_alloc(device, 64, NULL, (void **)&data));
  for (int asking = 0; asking < 6; asking++) {
    uint8_t value = (uint8_t)(asking + 1), back = 0;
    assert_ok(rdna_fill_bytes(stream, data, value, 64));
    switch (asking) {
      case 0:
        assert_ok(rdna_stream_synchronize(stream));
        break;
      case 1: /* again and again */
        for (int i = 0; i < 50000 && rdna_stream_query(stream) == RDNA_NOT_READY; i++) spend_time();
        break;
      case 2:
        assert_ok(rdna_device_synchronize(device));
        break;
      case 3:
        assert_ok(rdna_event_record(event, stream));
        for (int i = 0; i < 50000 && rdna_event_query(event) == RDNA_NOT_READY; i++) spend_time();
        break;
      case 4: /* another stream */
        assert_ok(rdna_event_record(event, stream));
        assert_ok(rdna_stream_wait(other, event));
        assert_ok(rdna_copy_to_host(other, &back, data, 1));
        assert_ok(rdna_stream_synchronize(other));
        assert_int_equal(back, value);
        break;
      default: /* so many that they are not little */
        for (int i = 0; i < 64; i++) assert_ok(rdna_fill_bytes(stream, data, value, 64));
        for (int i = 0; i < 50000 && peek(data) != value; i++) spend_time();
        assert_int_equal(peek(data), value);
        assert_ok(rdna_stream_synchronize(stream));
    }
    assert_int_equal(data[63], value);
  }
  assert_ok(rdna_memory_free(device, data));
  rdna_event_release(event);
  rdna_stream_release(other);
  rdna_device_release(device);
}

/* Threads that queue, wait and ask at once: tasks run each once and in their order. */
enum { ROUNDS = 3000, WRITERS = 4 };
static rdna_stream *shared_stream;
static uint8_t *shared_bytes;

static void *write_and_wait(void *argument) {
  uint8_t *own = shared_bytes + 64 * *(int *)argument;
  unsigned random = (unsigned)*(int *)argument + 1;
  for (int i = 0; i < ROUNDS; i++) {
    uint8_t value = (uint8_t)(i % 251), back = 0;
    random = random * 1664525u + 1013904223u;
    assert_ok(rdna_fill_bytes(shared_stream, own, 255, 64));
    assert_ok(rdna_fill_bytes(shared_stream, own, value, 64));
    assert_ok(rdna_copy_to_host(shared_stream, &back, own + 63, 1));
    if (random >> 30 == 0) (void)!rdna_stream_query(shared_stream);
    assert_ok(rdna_stream_synchronize(shared_stream));
    assert_int_equal(back, value);
  }
  return NULL;
}

static void test_threads_wait_and_help_each_other(void **state) {
  rdna_device *device = open_host();
  pthread_t threads[WRITERS];
  int numbers[WRITERS];
  assert_ok(rdna_stream_create(device, 0, &shared_stream));
  assert_ok(rdna_memory_alloc(device, 64 * WRITERS, NULL, (void **)&shared_bytes));
  for (int i = 0; i < WRITERS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, write_and_wait, &numbers[i]), 0);
  }
  for (int i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);
  assert_ok(rdna_memory_free(device, shared_bytes));
  rdna_stream_release(shared_stream);
  rdna_device_release(device);
}

static void remember_thread(void *data) { *(pthread_t *)data = pthread_self(); }

/* Callbacks are the stream's thread's, and a waiter's rounding is neither taken nor changed. */
static void test_a_waiter_keeps_what_is_its_own(void **state) {
  rdna_device *device = open_host();
  rdna_stream *stream = rdna_device_default_stream(device);
  pthread_t by;
  uint8_t *data;
  assert_ok(rdna_memory_alloc(device, 64, NULL, (void **)&data));
  assert_int_equal(fesetround(FE_UPWARD), 0);
  for (int i = 0; i < 50; i++) {
    assert_ok(rdna_fill_bytes(stream, data, 1, 64));
    assert_ok(rdna_stream_call(stream, remember_thread, &by));
    assert_ok(rdna_fill_bytes(stream, data, 2, 64));
    assert_ok(rdna_stream_synchronize(stream));
    assert_false(pthread_equal(by, pthread_self()));
    assert_int_equal(fegetround(), FE_UPWARD);
  }
  assert_int_equal(fesetround(FE_TONEAREST), 0);
  assert_ok(rdna_memory_free(device, data));
  rdna_device_release(device);
}

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
      cmocka_unit_test(test_little_tasks_run_when_somebody_asks),
      cmocka_unit_test(test_threads_wait_and_help_each_other),
      cmocka_unit_test(test_a_waiter_keeps_what_is_its_own),
      cmocka_unit_test(test_a_full_queue_holds_the_caller_and_loses_nothing),
      cmocka_unit_test(test_a_released_event_lives_as_long_as_its_waiters),
      cmocka_unit_test(test_idle_streams_sleep),
      cmocka_unit_test(test_signals_go_to_the_programs_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
