/* For tests of operators: the device that RDNA_TEST_DEVICE names ("host" when unset), and memory on it. */
#ifndef RDNA_MATH_COMMON_TEST_DEVICE_H
#define RDNA_MATH_COMMON_TEST_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rdna/memory.h"

static rdna_device *test_device;
static rdna_stream *test_stream;

#define assert_ok(expression)                                                        \
  do {                                                                               \
    if ((expression) != RDNA_OK) fail_msg("%s: %s", #expression, rdna_last_error()); \
  } while (0)

/* The call fails with |code|, and its sentence has |text| in it. */
#define assert_fails(code, text, expression)                                                        \
  do {                                                                                              \
    assert_string_equal(rdna_status_name(expression), rdna_status_name(code));                      \
    if (!strstr(rdna_last_error(), text)) fail_msg("'%s' is not in '%s'", text, rdna_last_error()); \
  } while (0)

/* Group set-up and tear-down. */
static inline int test_device_open(void **state) {
  const char *name = getenv("RDNA_TEST_DEVICE");
  assert_ok(rdna_device_open(name ? name : "host", &test_device));
  test_stream = rdna_device_default_stream(test_device);
  return 0;
}
static inline int test_device_close(void **state) {
  rdna_device_release(test_device);
  return 0;
}

/* A copy of |data| on the device; test_release it. */
static inline void *test_upload(const void *data, size_t bytes) {
  void *memory;
  assert_ok(rdna_memory_alloc(test_device, bytes, test_stream, &memory));
  if (bytes > 0) assert_ok(rdna_copy_to_device(test_stream, memory, data, bytes));
  assert_ok(rdna_stream_synchronize(test_stream));
  return memory;
}
/* Every float in it, of any width, is a NaN; test_release it. */
static inline void *test_poisoned(size_t bytes) {
  void *memory;
  assert_ok(rdna_memory_alloc(test_device, bytes, test_stream, &memory));
  if (bytes > 0) assert_ok(rdna_fill_bytes(test_stream, memory, 0xff, bytes));
  return memory;
}
/* Waits for the stream. */
static inline void test_download(void *data, const void *memory, size_t bytes) {
  if (bytes > 0) assert_ok(rdna_copy_to_host(test_stream, data, memory, bytes));
  assert_ok(rdna_stream_synchronize(test_stream));
}
static inline void test_release(void *memory) { assert_ok(rdna_memory_free(test_device, memory)); }

#endif
