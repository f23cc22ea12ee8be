/* What hip_test.c and cuda_test.c share: the tests that either vendor's stand-in must pass, in a file that has included
 * cmocka. The including test sets the three variables before they run. */
#ifndef RDNA_DEVICE_DRIVER_GPU_GPU_TESTS_H
#define RDNA_DEVICE_DRIVER_GPU_GPU_TESTS_H

#include <stdint.h>
#include <string.h>

#include "device/driver.h"
#include "device/driver/gpu/fake_gpu.h"
#include "device/driver/testing_flavours.h"

typedef struct gpu_expectations {
  const char *name, *setting;            /* the driver's, and the environment's variable with the library's path */
  const char *first_device;              /* as sentences name it */
  const char *out_of_memory;             /* the library's words for it */
  int least_priority, greatest_priority; /* of streams */
  float elapsed_ms;                      /* between any two events */
  const char *image;                     /* one that loads */
  size_t image_bytes;
} gpu_expectations;

static const rdna__driver *driver;
static const gpu_expectations *expected;
static fake_gpu_record *record;

/* Asks the driver what it finds, in the file |library| or, where that is NULL, in its usual places. */
static rdna_driver_info probe(const char *library) {
  rdna_driver_info info = {0};
  if (library != NULL) setenv(expected->setting, library, 1);
  driver->probe(&info);
  assert_string_equal(info.name, expected->name);
  return info;
}

static rdna__driver_device *open_device(int index) {
  rdna__driver_device *device = NULL;
  assert_int_equal(driver->device_open(index, &device), RDNA_OK);
  return device;
}

/* All that the driver says of its device |want->index|. */
static void check_device(const rdna_device_info *want) {
  rdna_device_info got;
  assert_int_equal(driver->describe(want->index, &got), RDNA_OK);
  assert_string_equal(got.name, want->name);
  assert_string_equal(got.driver, expected->name);
  assert_string_equal(got.arch, want->arch);
  assert_int_equal(got.index, want->index);
  assert_int_equal(got.native_index, want->native_index);
  assert_int_equal(got.integrated, want->integrated);
  assert_false(got.emulated);
  assert_true(got.total_memory == want->total_memory);
  assert_int_equal(got.compute_units, want->compute_units);
  assert_int_equal(got.wave_size, want->wave_size);
  assert_int_equal(got.max_group_threads, 1024);
  assert_int_equal(got.max_group_memory, want->max_group_memory);
  assert_int_equal(got.clock_mhz, want->clock_mhz);
  assert_int_equal(got.pci_domain, want->pci_domain);
  assert_int_equal(got.pci_bus, want->pci_bus);
  assert_int_equal(got.pci_device, 0);
}

static void check_probe(const char *library, const char *version) {
  rdna_driver_info info = probe(library);
  rdna_device_info device;
  assert_int_equal(info.status, RDNA_OK);
  assert_int_equal(info.device_count, 3);
  assert_string_equal(info.version, version);
  assert_string_equal(info.library, library);
  assert_non_null(strstr(info.message, "3 devices"));
  assert_int_equal(driver->describe(3, &device), RDNA_NOT_FOUND);
  assert_int_equal(driver->describe(-1, &device), RDNA_NOT_FOUND);
}

/* Devices 0 and 1 reach each other, device 2 is integrated and reaches none. */
static void memory_and_copies(void **state) {
  rdna__driver_device *device = open_device(0), *peer = open_device(1), *integrated = open_device(2);
  rdna__driver_stream *stream = NULL;
  assert_int_equal(driver->stream_create(device, -100, &stream), RDNA_OK);
  assert_int_equal(record->stream_priority, expected->greatest_priority);
  assert_int_equal(record->stream_flags, 1);
  void *data = NULL, *other = NULL, *pinned = NULL;
  assert_int_equal(driver->memory_alloc(device, 1000, &data), RDNA_OK);
  assert_int_equal(driver->memory_alloc(device, 1000, &other), RDNA_OK);
  assert_int_equal(driver->host_alloc(device, 1000, &pinned), RDNA_OK);
  assert_int_equal(record->host_alloc_flags, 1);
  unsigned char *host = pinned;
  for (int i = 0; i < 1000; i++) host[i] = (unsigned char)(i * 7);
  assert_int_equal(driver->copy(device, stream, RDNA__COPY_TO_DEVICE, data, host, 1000), RDNA_OK);
  assert_int_equal(driver->copy(device, stream, RDNA__COPY_ON_DEVICE, other, data, 1000), RDNA_OK);
  assert_int_equal(driver->fill(device, stream, other, 0xAB, 10), RDNA_OK);
  memset(host, 0, 1000);
  assert_int_equal(driver->copy(device, stream, RDNA__COPY_TO_HOST, host, other, 1000), RDNA_OK);
  for (int i = 0; i < 1000; i++) assert_int_equal(host[i], i < 10 ? 0xAB : (unsigned char)(i * 7));
  bool direct = false;
  assert_int_equal(driver->copy_peer(device, stream, other, peer, data, 20, &direct), RDNA_OK);
  assert_true(direct);
  assert_memory_equal(other, data, 20);
  assert_int_equal(driver->copy_peer(device, stream, other, integrated, data, 1000, &direct), RDNA_OK);
  assert_false(direct);
  void *huge = &huge;
  char sentence[256];
  assert_int_equal(driver->memory_alloc(device, (size_t)1 << 40, &huge), RDNA_OUT_OF_MEMORY);
  assert_null(huge);
  snprintf(sentence, sizeof sentence, "allocating 1099511627776 bytes of device memory on %s: %s",
           expected->first_device, expected->out_of_memory);
  assert_string_equal(rdna_last_error(), sentence);
  assert_int_equal(driver->host_free(device, pinned), RDNA_OK);
  assert_int_equal(driver->memory_free(device, data), RDNA_OK);
  assert_int_equal(driver->memory_free(device, other), RDNA_OK);
  driver->stream_destroy(device, stream);
  driver->device_close(device);
  driver->device_close(peer);
  driver->device_close(integrated);
}

static void count_call(void *data) { ++*(int *)data; }

static void streams_and_events(void **state) {
  rdna__driver_device *device = open_device(0);
  rdna__driver_stream *stream = NULL;
  rdna__driver_event *start = NULL, *end = NULL;
  assert_int_equal(driver->stream_create(device, 3, &stream), RDNA_OK);
  assert_int_equal(record->stream_priority, expected->least_priority);
  assert_int_equal(driver->event_create(device, false, &start), RDNA_OK);
  assert_int_equal(record->event_flags, 2);
  assert_int_equal(driver->event_create(device, true, &end), RDNA_OK);
  assert_int_equal(record->event_flags, 0);
  assert_int_equal(driver->event_record(device, start, stream), RDNA_OK);
  assert_int_equal(driver->stream_wait(device, stream, start), RDNA_OK);
  assert_int_equal(driver->event_query(device, end), RDNA_OK);
  record->not_ready = 1;
  assert_int_equal(driver->event_query(device, end), RDNA_NOT_READY);
  assert_int_equal(driver->stream_query(device, stream), RDNA_NOT_READY);
  record->not_ready = 0;
  assert_int_equal(driver->event_synchronize(device, end), RDNA_OK);
  float ms = 0;
  assert_int_equal(driver->event_elapsed(device, start, end, &ms), RDNA_OK);
  assert_true(ms == expected->elapsed_ms);
  int calls = 0;
  assert_int_equal(driver->stream_call(device, stream, count_call, &calls), RDNA_OK);
  assert_int_equal(calls, 1);
  assert_int_equal(driver->stream_query(device, stream), RDNA_OK);
  assert_int_equal(driver->stream_synchronize(device, stream), RDNA_OK);
  assert_int_equal(driver->device_synchronize(device), RDNA_OK);
  driver->event_destroy(device, start);
  driver->event_destroy(device, end);
  driver->stream_destroy(device, stream);
  driver->device_close(device);
}

/* Launches a kernel of |module| and compares what the library got. */
static void check_launch(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_module *module,
                         uint32_t group_memory) {
  struct {
    const void *x;
    float scale;
    uint32_t n;
  } args = {.x = &args, .scale = 2.5f, .n = 77};
  rdna__driver_function function = {
      .name = "norm_f32", .group_threads = 256, .dynamic_group_memory = group_memory, .args_size = sizeof args};
  void *handle = NULL;
  assert_int_equal(driver->module_function(device, module, "missing_f32", &handle), RDNA_NOT_FOUND);
  assert_non_null(strstr(rdna_last_error(), "'missing_f32'"));
  assert_int_equal(driver->module_function(device, module, "norm_f32", &function.handle), RDNA_OK);
  assert_int_equal(driver->launch(device, stream, &function, (rdna_grid){0, 1, 1}, &args), RDNA_OK);
  assert_int_equal(driver->launch(device, stream, &function, (rdna_grid){4, 0, 1}, &args), RDNA_OK);
  assert_string_equal(record->kernel, "");
  assert_int_equal(driver->launch(device, stream, &function, (rdna_grid){4, 5, 6}, &args), RDNA_OK);
  assert_string_equal(record->kernel, "norm_f32");
  assert_memory_equal(record->grid, ((unsigned[]){4, 5, 6}), sizeof record->grid);
  assert_memory_equal(record->block, ((unsigned[]){256, 1, 1}), sizeof record->block);
  assert_int_equal(record->shared_bytes, group_memory);
  assert_int_equal(record->args_size, sizeof args);
  assert_memory_equal(record->args, &args, sizeof args);
}

/* Last of all: the device stays broken, like a real one. */
static void late_errors_name_the_kernel(void **state) {
  rdna__driver_device *device = open_device(0);
  rdna__driver_stream *stream = NULL, *idle = NULL;
  rdna__driver_module *module = NULL;
  assert_int_equal(driver->stream_create(device, 0, &stream), RDNA_OK);
  assert_int_equal(driver->stream_create(device, 0, &idle), RDNA_OK);
  assert_int_equal(driver->module_load(device, expected->image, expected->image_bytes, "crash", &module), RDNA_OK);
  rdna__driver_function function = {.name = "crash_f32", .group_threads = 64, .args_size = 4};
  assert_int_equal(driver->module_function(device, module, "crash_f32", &function.handle), RDNA_OK);
  assert_int_equal(driver->launch(device, stream, &function, (rdna_grid){1, 1, 1}, "abc"), RDNA_OK);
  assert_int_equal(driver->stream_synchronize(device, stream), RDNA_DEVICE_ERROR);
  char sentence[256];
  snprintf(sentence, sizeof sentence, "waiting for a stream on %s: an illegal memory access was encountered",
           expected->first_device);
  assert_non_null(strstr(rdna_last_error(), sentence));
  assert_non_null(strstr(rdna_last_error(), "last kernel queued on this stream was 'crash_f32'"));
  assert_int_equal(driver->stream_synchronize(device, idle), RDNA_DEVICE_ERROR);
  assert_non_null(strstr(rdna_last_error(), "last kernel queued on this stream was 'none'"));
  assert_int_equal(driver->device_synchronize(device), RDNA_DEVICE_ERROR);
  assert_non_null(strstr(rdna_last_error(), "last kernel queued on this device was 'crash_f32'"));
  driver->module_unload(device, module);
  driver->stream_destroy(device, stream);
  driver->stream_destroy(device, idle);
  driver->device_close(device);
}

static void a_wrong_setting_is_named(void **state) {
  rdna_driver_info info = probe("/nowhere/library.so");
  char sentence[128];
  snprintf(sentence, sizeof sentence, "%s names '/nowhere/library.so', which does not load", expected->setting);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_non_null(strstr(info.message, sentence));
  assert_string_equal(info.library, "");
}

/* int NAME(void): a flavour that is one test. */
#define ONE_TEST(name, test)                                    \
  static int name(void) {                                       \
    const struct CMUnitTest tests[] = {cmocka_unit_test(test)}; \
    return cmocka_run_group_tests(tests, NULL, NULL);           \
  }

#endif
