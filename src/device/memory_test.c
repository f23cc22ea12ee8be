/* Copies between devices that cannot reach each other go through a buffer of two halves. On null devices whose copies
 * read their source late, a half that is filled again too early shows. */
#include "rdna/memory.h"

#include "base/random.h"
#include "base/testing.h"
#include "device/driver.h"

#define MIB ((size_t)1 << 20)

static void test_a_slow_destination_gets_every_byte(void **state) {
  static const size_t sizes[] = {1, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 8 * MIB, 8 * MIB + 1, 12 * MIB, 21 * MIB + 5};
  enum { ROOM = 22 << 20 };
  rdna_device *from, *to;
  rdna_stream *arrival;
  uint8_t *source, *x, *y;
  assert_ok(rdna_device_open("null:1", &from));
  assert_ok(rdna_device_open("null:0", &to));
  assert_ok(rdna_stream_create(to, 0, &arrival));
  assert_ok(rdna_memory_alloc(from, ROOM, NULL, (void **)&x));
  assert_ok(rdna_memory_alloc(to, ROOM, arrival, (void **)&y));
  source = malloc(ROOM);
  assert_non_null(source);
  rdna__random random;
  rdna__random_seed(&random, 4);
  for (size_t i = 0; i + 8 <= ROOM; i += 8) {
    uint64_t bits = rdna__random_bits(&random);
    memcpy(source + i, &bits, 8);
  }
  assert_ok(rdna_copy_to_device(rdna_device_default_stream(from), x, source, ROOM));
  rdna__null_hold_copies(true);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    memset(y, 0x11, ROOM); /* a null device's memory is the host's */
    assert_ok(rdna_copy_peer(arrival, y + 3, from, x + ROOM - sizes[i], sizes[i]));
    /* when the call returns the buffer is free for the next, so all has arrived */
    assert_memory_equal(y + 3, source + ROOM - sizes[i], sizes[i]);
    for (size_t k = 0; k < 7; k++) assert_true((k > 2 || y[k] == 0x11) && y[3 + sizes[i] + k] == 0x11);
  }
  rdna__null_hold_copies(false);
  assert_ok(rdna_memory_free(from, x));
  assert_ok(rdna_memory_free(to, y));
  rdna_stream_release(arrival);
  rdna_device_release(from);
  rdna_device_release(to);
  free(source);
}

/* What holds the memory is named in units that fit it. */
static void test_a_report_has_units(void **state) {
  static const struct {
    size_t bytes;
    const char *words;
  } rows[] = {{512, "'it' 512 bytes in"},
              {MIB - 512, "'it' 1048064 bytes in"},
              {MIB, "'it' 1.00 MiB in"},
              {3 * MIB / 2, "'it' 1.50 MiB in"},
              {1024 * MIB - 6 * MIB, "'it' 1018.00 MiB in"},
              {1024 * MIB, "'it' 1.00 GiB in"},
              {1280 * MIB, "'it' 1.25 GiB in"}};
  rdna_device *device;
  assert_ok(rdna_device_open("null", &device));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    void *held, *more;
    assert_ok(rdna_memory_alloc_named(device, rows[i].bytes, NULL, "it", &held));
    assert_refused(rdna_memory_alloc(device, SIZE_MAX / 2, NULL, &more), RDNA_OUT_OF_MEMORY, rows[i].words);
    assert_ok(rdna_memory_free(device, held));
  }
  rdna_device_release(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_slow_destination_gets_every_byte),
                                     cmocka_unit_test(test_a_report_has_units)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
