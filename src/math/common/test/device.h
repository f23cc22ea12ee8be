/* For tests of operators: the device that RDNA_TEST_DEVICE names ("host" when unset), and memory on it. */
#ifndef RDNA_MATH_COMMON_TEST_DEVICE_H
#define RDNA_MATH_COMMON_TEST_DEVICE_H

#include "base/random.h"
#include "base/testing.h"
#include "rdna/memory.h"

static rdna_device *device;
static rdna_stream *stream;
static rdna__random random_state;

/* Group set-up and tear-down. */
static inline int open_device(void **state) {
  const char *name = getenv("RDNA_TEST_DEVICE");
  rdna__random_seed(&random_state, 20260103);
  assert_ok(rdna_device_open(name ? name : "host", &device));
  stream = rdna_device_default_stream(device);
  return 0;
}
static inline int close_device(void **state) {
  rdna_device_release(device);
  return 0;
}

/* Returns a copy of |data| on the device; test_release it. */
static inline void *test_upload(const void *data, size_t bytes) {
  void *memory;
  assert_ok(rdna_memory_alloc(device, bytes, stream, &memory));
  if (bytes > 0) assert_ok(rdna_copy_to_device(stream, memory, data, bytes));
  assert_ok(rdna_stream_synchronize(stream));
  return memory;
}
/* Returns memory on the device in which every float, of any width, is a NaN; test_release it. */
static inline void *test_poisoned(size_t bytes) {
  void *memory;
  assert_ok(rdna_memory_alloc(device, bytes, stream, &memory));
  if (bytes > 0) assert_ok(rdna_fill_bytes(stream, memory, 0xff, bytes));
  return memory;
}
/* Copies to the host and waits for the stream. */
static inline void test_download(void *data, const void *memory, size_t bytes) {
  if (bytes > 0) assert_ok(rdna_copy_to_host(stream, data, memory, bytes));
  assert_ok(rdna_stream_synchronize(stream));
}
static inline void test_release(void *memory) { assert_ok(rdna_memory_free(device, memory)); }

#endif
