#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver.h"
#include "device/driver/cuda/fake_cuda.h"
#include "device/driver/flavours.h"

static const rdna__driver *const driver = &rdna__cuda_driver;
static fake_cuda_record *fake;
static int (*set_current)(void *);
static int (*get_current)(void **);

static rdna_driver_info probe(const char *library) {
  rdna_driver_info info = {0};
  if (library != NULL) setenv("RDNA_CUDA_LIBRARY", library, 1);
  driver->probe(&info);
  assert_string_equal(info.name, "cuda");
  return info;
}

static int open_fake(void **state) {
  probe(RDNA_FAKE_CUDA);
  void *library = dlopen(RDNA_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  fake = dlsym(library, "fake_cuda");
  *(void **)&set_current = dlsym(library, "cuCtxSetCurrent");
  *(void **)&get_current = dlsym(library, "cuCtxGetCurrent");
  return 0;
}

static rdna__driver_device *open_device(int index) {
  rdna__driver_device *device = NULL;
  assert_int_equal(driver->device_open(index, &device), RDNA_OK);
  return device;
}

static void devices_are_described(void **state) {
  rdna_driver_info info = probe(RDNA_FAKE_CUDA);
  assert_int_equal(info.status, RDNA_OK);
  assert_int_equal(info.device_count, 3);
  assert_string_equal(info.version, "12.9");
  assert_string_equal(info.library, RDNA_FAKE_CUDA);
  rdna_device_info device;
  assert_int_equal(driver->describe(0, &device), RDNA_OK);
  assert_string_equal(device.name, "Fake A100");
  assert_string_equal(device.arch, "sm_80");
  assert_int_equal(device.native_index, 1);
  assert_int_equal(driver->describe(1, &device), RDNA_OK);
  assert_string_equal(device.name, "Fake H200");
  assert_string_equal(device.arch, "sm_90");
  assert_string_equal(device.driver, "cuda");
  assert_int_equal(device.index, 1);
  assert_int_equal(device.native_index, 2);
  assert_false(device.integrated);
  assert_false(device.emulated);
  assert_true(device.total_memory == 141ull << 30);
  assert_int_equal(device.compute_units, 132);
  assert_int_equal(device.wave_size, 32);
  assert_int_equal(device.max_group_threads, 1024);
  assert_int_equal(device.max_group_memory, 232448);
  assert_int_equal(device.clock_mhz, 1980);
  assert_int_equal(device.pci_domain, 4);
  assert_int_equal(device.pci_bus, 129);
  assert_int_equal(device.pci_device, 0);
  /* the integrated one, first for CUDA, is last for us */
  assert_int_equal(driver->describe(2, &device), RDNA_OK);
  assert_string_equal(device.name, "Fake Orin");
  assert_true(device.integrated);
  assert_int_equal(device.native_index, 0);
  assert_int_equal(driver->describe(3, &device), RDNA_NOT_FOUND);
  assert_int_equal(driver->describe(-1, &device), RDNA_NOT_FOUND);
}

static void the_callers_context_comes_back(void **state) {
  rdna__driver_device *a100 = open_device(0), *h200 = open_device(1), *orin = open_device(2);
  uint64_t available = 0, total = 0;
  void *current = &total;
  set_current(NULL);
  assert_int_equal(driver->memory_info(h200, &available, &total), RDNA_OK);
  assert_true(total == 141ull << 30);
  assert_true(available == total - 12345);
  get_current(&current);
  assert_null(current); /* nobody's: the CUDA runtime still chooses its own device 0 */
  assert_int_equal(driver->memory_info(orin, &available, &total), RDNA_OK);
  get_current(&current);
  assert_non_null(current); /* native device 0 stays: it is what the runtime would choose */
  void *foreign = current;
  assert_int_equal(driver->memory_info(a100, &available, &total), RDNA_OK);
  assert_true(total == 40ull << 30);
  get_current(&current);
  assert_ptr_equal(current, foreign);
  set_current(&total); /* somebody's own context is put back even for native device 0 */
  assert_int_equal(driver->memory_info(orin, &available, &total), RDNA_OK);
  get_current(&current);
  assert_ptr_equal(current, &total);
  set_current(foreign);
  int switches = fake->context_switches;
  assert_int_equal(driver->memory_info(orin, &available, &total), RDNA_OK);
  assert_int_equal(fake->context_switches, switches); /* already current: nothing to switch */
  driver->device_close(a100);
  driver->device_close(h200);
  driver->device_close(orin);
  get_current(&current);
  assert_null(current);
  assert_int_equal(fake->retains, fake->releases);
}

static void memory_and_copies(void **state) {
  rdna__driver_device *device = open_device(0), *peer = open_device(1), *orin = open_device(2);
  rdna__driver_stream *stream = NULL;
  assert_int_equal(driver->stream_create(device, -100, &stream), RDNA_OK);
  assert_int_equal(fake->stream_priority, -5);
  assert_int_equal(fake->stream_flags, 1);
  void *data = NULL, *other = NULL, *pinned = NULL;
  assert_int_equal(driver->memory_alloc(device, 1000, &data), RDNA_OK);
  assert_int_equal(driver->memory_alloc(device, 1000, &other), RDNA_OK);
  assert_int_equal(driver->host_alloc(device, 1000, &pinned), RDNA_OK);
  assert_int_equal(fake->host_alloc_flags, 1);
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
  assert_int_equal(driver->copy_peer(device, stream, other, orin, data, 1000, &direct), RDNA_OK);
  assert_false(direct);
  void *huge = &huge;
  assert_int_equal(driver->memory_alloc(device, (size_t)1 << 40, &huge), RDNA_OUT_OF_MEMORY);
  assert_null(huge);
  assert_string_equal(rdna_last_error(),
                      "allocating 1099511627776 bytes of device memory on cuda:0 (Fake A100): out of memory "
                      "(CUDA_ERROR_OUT_OF_MEMORY, 2)");
  assert_int_equal(driver->host_free(device, pinned), RDNA_OK);
  assert_int_equal(driver->memory_free(device, data), RDNA_OK);
  assert_int_equal(driver->memory_free(device, other), RDNA_OK);
  driver->stream_destroy(device, stream);
  driver->device_close(device);
  driver->device_close(peer);
  driver->device_close(orin);
}

static void count_call(void *data) { ++*(int *)data; }

static void streams_and_events(void **state) {
  rdna__driver_device *device = open_device(0);
  rdna__driver_stream *stream = NULL;
  rdna__driver_event *start = NULL, *end = NULL;
  assert_int_equal(driver->stream_create(device, 3, &stream), RDNA_OK);
  assert_int_equal(fake->stream_priority, 0);
  assert_int_equal(driver->event_create(device, false, &start), RDNA_OK);
  assert_int_equal(fake->event_flags, 2);
  assert_int_equal(driver->event_create(device, true, &end), RDNA_OK);
  assert_int_equal(fake->event_flags, 0);
  assert_int_equal(driver->event_record(device, start, stream), RDNA_OK);
  assert_int_equal(driver->stream_wait(device, stream, start), RDNA_OK);
  assert_int_equal(driver->event_query(device, end), RDNA_OK);
  assert_int_equal(driver->event_synchronize(device, end), RDNA_OK);
  float ms = 0;
  assert_int_equal(driver->event_elapsed(device, start, end, &ms), RDNA_OK);
  assert_true(ms == 1.5f);
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

typedef struct sample_args {
  const void *x;
  float scale;
  uint32_t n;
} sample_args;

static void launches_pack_their_arguments(void **state) {
  rdna__driver_device *device = open_device(1);
  rdna__driver_stream *stream = NULL;
  rdna__driver_module *module = NULL;
  static const char ptx[] = ".version 7.0\n.target sm_80\n", bad[] = "nonsense";
  assert_int_equal(driver->stream_create(device, 0, &stream), RDNA_OK);
  assert_int_equal(driver->module_load(device, ptx, sizeof ptx - 1, "norm", &module), RDNA_INVALID_ARGUMENT);
  assert_int_equal(driver->module_load(device, bad, sizeof bad, "norm", &module), RDNA_BAD_DATA);
  assert_non_null(strstr(rdna_last_error(), "compiling the PTX 'norm' for sm_90: ptxas"));
  assert_non_null(strstr(rdna_last_error(), "Missing .version directive on cuda:1 (Fake H200)"));
  assert_int_equal(driver->module_load(device, ptx, sizeof ptx, "norm", &module), RDNA_OK);
  rdna__driver_function function = {
      .name = "norm_f32", .group_threads = 256, .dynamic_group_memory = 65536, .args_size = sizeof(sample_args)};
  void *handle = NULL;
  assert_int_equal(driver->module_function(device, module, "missing_f32", &handle), RDNA_NOT_FOUND);
  assert_non_null(strstr(rdna_last_error(), "'missing_f32'"));
  assert_int_equal(driver->module_function(device, module, "norm_f32", &function.handle), RDNA_OK);
  sample_args args = {.x = &args, .scale = 2.5f, .n = 77};
  assert_int_equal(driver->launch(device, stream, &function, (rdna_grid){0, 1, 1}, &args), RDNA_OK);
  assert_string_equal(fake->kernel, "");
  assert_int_equal(driver->launch(device, stream, &function, (rdna_grid){600, 5, 6}, &args), RDNA_OK);
  assert_string_equal(fake->kernel, "norm_f32");
  assert_memory_equal(fake->grid, ((unsigned[]){600, 5, 6}), sizeof fake->grid);
  assert_memory_equal(fake->block, ((unsigned[]){256, 1, 1}), sizeof fake->block);
  assert_int_equal(fake->shared_bytes, 65536);
  assert_int_equal(fake->dynamic_limit, 65536);
  assert_int_equal(fake->args_size, sizeof args);
  assert_memory_equal(fake->args, &args, sizeof args);
  assert_int_equal(driver->stream_query(device, stream), RDNA_NOT_READY);
  driver->module_unload(device, module);
  driver->stream_destroy(device, stream);
  driver->device_close(device);
}

/* Whether a launch of |ptx| on device |index| may begin before the end of the kernel before it. */
static bool overlaps(int index, const char *ptx) {
  rdna__driver_device *device = open_device(index);
  rdna__driver_module *module = NULL;
  assert_int_equal(driver->module_load(device, ptx, strlen(ptx) + 1, "norm", &module), RDNA_OK);
  rdna__driver_function functions[2] = {{.name = "a", .group_threads = 64, .args_size = 4},
                                        {.name = "b", .group_threads = 32, .args_size = 4}};
  bool overlapped[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(driver->module_function(device, module, functions[i].name, &functions[i].handle), RDNA_OK);
    assert_int_equal(driver->launch(device, NULL, &functions[i], (rdna_grid){7, 5, 6}, "abc"), RDNA_OK);
    assert_string_equal(fake->kernel, functions[i].name);
    assert_memory_equal(fake->grid, ((unsigned[]){7, 5, 6}), sizeof fake->grid);
    assert_memory_equal(fake->block, ((unsigned[]){functions[i].group_threads, 1, 1}), sizeof fake->block);
    assert_memory_equal(fake->args, "abc", 4);
    overlapped[i] = fake->overlapped != 0;
  }
  assert_int_equal(overlapped[0], overlapped[1]);
  driver->module_unload(device, module);
  driver->device_close(device);
  return overlapped[0];
}

static void launches_overlap_where_kernels_wait(void **state) {
  static const char ptx[] = ".version 7.8\n.target sm_80\n.entry a(.param .u64 p)\n{\n ret;\n}\n";
  assert_true(overlaps(1, ptx));
  assert_string_equal(fake->image,
                      ".version 7.8\n.target sm_90\n.entry a(.param .u64 p)\n{\n\tgriddepcontrol.wait;\n ret;\n}\n"
                      "\n.visible .global .align 4 .u32 rdna_kernels_wait = 1;\n");
  assert_false(overlaps(0, ptx)); /* compute capability 8.0 */
  assert_string_equal(fake->image, ptx);
  assert_false(overlaps(1, ".version 7.7\n.target sm_80\n.entry a()\n{\n ret;\n}\n"));
  setenv("FAKE_CUDA_VERSION", "12020", 1); /* which cannot record them */
  probe(RDNA_FAKE_CUDA);
  assert_false(overlaps(1, ptx));
  assert_string_equal(fake->image, ptx);
  unsetenv("FAKE_CUDA_VERSION");
  probe(RDNA_FAKE_CUDA);
  assert_true(overlaps(1, ptx));
}

static void graphs_are_recorded_and_freed(void **state) {
  rdna__driver_device *device = open_device(1);
  rdna__driver_stream *stream;
  rdna__driver_graph *graph;
  assert_int_equal(driver->stream_create(device, 0, &stream), RDNA_OK);
  assert_int_equal(driver->graph_begin(device, stream), RDNA_OK);
  assert_int_equal(fake->capturing, 1);
  assert_int_equal(driver->graph_end(device, stream, &graph), RDNA_OK);
  assert_int_equal(fake->capturing, 0);
  assert_int_equal(fake->graphs, 1); /* the executable one */
  assert_int_equal(driver->graph_launch(device, stream, graph), RDNA_OK);
  assert_int_equal(fake->replays, 1);
  driver->graph_destroy(device, graph);
  assert_int_equal(fake->graphs, 0);
  assert_int_equal(driver->graph_begin(device, stream), RDNA_OK);
  fake->capture_fails = 1;
  assert_int_equal(driver->graph_end(device, stream, &graph), RDNA_DEVICE_ERROR);
  assert_null(graph);
  assert_int_equal(fake->capturing, 0);
  assert_int_equal(fake->graphs, 0);
  driver->stream_destroy(device, stream);
  driver->device_close(device);
}

/* Last: the fake device stays broken, like a real one. */
static void late_errors_name_the_kernel(void **state) {
  rdna__driver_device *device = open_device(1);
  rdna__driver_stream *stream = NULL, *idle = NULL;
  rdna__driver_module *module = NULL;
  static const char ptx[] = ".version 7.0\n";
  assert_int_equal(driver->stream_create(device, 0, &stream), RDNA_OK);
  assert_int_equal(driver->stream_create(device, 0, &idle), RDNA_OK);
  assert_int_equal(driver->module_load(device, ptx, sizeof ptx, "crash", &module), RDNA_OK);
  rdna__driver_function function = {.name = "crash_f32", .group_threads = 64, .args_size = 4};
  assert_int_equal(driver->module_function(device, module, "crash_f32", &function.handle), RDNA_OK);
  assert_int_equal(driver->launch(device, stream, &function, (rdna_grid){1, 1, 1}, "abc"), RDNA_OK);
  assert_int_equal(driver->stream_synchronize(device, stream), RDNA_DEVICE_ERROR);
  assert_non_null(strstr(rdna_last_error(), "waiting for a stream on cuda:1 (Fake H200): an illegal memory access"));
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

static int whole_library(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(devices_are_described),
      cmocka_unit_test(the_callers_context_comes_back),
      cmocka_unit_test(memory_and_copies),
      cmocka_unit_test(streams_and_events),
      cmocka_unit_test(launches_pack_their_arguments),
      cmocka_unit_test(launches_overlap_where_kernels_wait),
      cmocka_unit_test(graphs_are_recorded_and_freed),
      cmocka_unit_test(late_errors_name_the_kernel),
  };
  return cmocka_run_group_tests(tests, open_fake, NULL);
}

static void a_missing_function_is_named(void **state) {
  rdna_driver_info info = probe(RDNA_FAKE_CUDA_NO_LAUNCH);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_int_equal(info.device_count, 0);
  assert_non_null(strstr(info.message, "has no function cuLaunchKernel"));
  assert_non_null(strstr(info.message, RDNA_FAKE_CUDA_NO_LAUNCH));
}

static int missing_function(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_missing_function_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

static void no_device_is_said(void **state) {
  setenv("FAKE_CUDA_NO_DEVICE", "1", 1);
  rdna_driver_info info = probe(RDNA_FAKE_CUDA);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_int_equal(info.device_count, 0);
  assert_string_equal(info.version, "12.9");
  assert_non_null(strstr(info.message, "no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, 100)"));
  assert_non_null(strstr(info.message, "nvidia-smi"));
}

static int no_device(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_device_is_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

static void a_wrong_setting_is_named(void **state) {
  rdna_driver_info info = probe("/nowhere/libcuda.so");
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_non_null(strstr(info.message, "RDNA_CUDA_LIBRARY names '/nowhere/libcuda.so', which does not load"));
  assert_string_equal(info.library, "");
}

static int wrong_setting(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_wrong_setting_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

static void absence_is_said(void **state) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != NULL) {
    print_message("skipped: this machine has NVIDIA's driver, so its absence cannot be seen\n");
    skip();
  }
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_non_null(
      strstr(info.message, "NVIDIA's driver library was not found (libcuda.so.1: cannot open shared object"));
  assert_non_null(strstr(info.message, "RDNA_CUDA_LIBRARY"));
}

static int absence(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(absence_is_said)};
  unsetenv("RDNA_CUDA_LIBRARY");
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
  static const flavour flavours[] = {
      {"a whole libcuda", whole_library}, {"one function missing", missing_function},
      {"no device", no_device},           {"a wrong setting", wrong_setting},
      {"nothing installed", absence},
  };
  return run_flavours(flavours, sizeof flavours / sizeof *flavours, 60);
}
