#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing.h"
#include "device/driver/cuda/fake_cuda.h"
#include "device/driver/gpu/gpu_tests.h"

static const gpu_expectations cuda = {.name = "cuda",
                                      .setting = "RDNA_CUDA_LIBRARY",
                                      .first_device = "cuda:0 (Fake A100)",
                                      .out_of_memory = "out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)",
                                      .least_priority = 0,
                                      .greatest_priority = -5,
                                      .elapsed_ms = 1.5f,
                                      .image = ".version 7.0\n",
                                      .image_bytes = sizeof ".version 7.0\n"};
static fake_cuda_record *fake;
static int (*set_current)(void *);
static int (*get_current)(void **);

static int open_fake(void **state) {
  probe(RDNA_FAKE_CUDA);
  void *library = dlopen(RDNA_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  fake = dlsym(library, "fake_cuda");
  record = &fake->gpu;
  *(void **)&set_current = dlsym(library, "cuCtxSetCurrent");
  *(void **)&get_current = dlsym(library, "cuCtxGetCurrent");
  return 0;
}

static void devices_are_described(void **state) {
  check_probe(RDNA_FAKE_CUDA, "12.9");
  check_device(&(rdna_device_info){.name = "Fake A100",
                                   .arch = "sm_80",
                                   .index = 0,
                                   .native_index = 1,
                                   .total_memory = 40ull << 30,
                                   .compute_units = 108,
                                   .wave_size = 32,
                                   .pci_bus = 65,
                                   .max_group_memory = 232448,
                                   .clock_mhz = 1980,
                                   .pci_domain = 4});
  check_device(&(rdna_device_info){.name = "Fake H200",
                                   .arch = "sm_90",
                                   .index = 1,
                                   .native_index = 2,
                                   .total_memory = 141ull << 30,
                                   .compute_units = 132,
                                   .wave_size = 32,
                                   .pci_bus = 129,
                                   .max_group_memory = 232448,
                                   .clock_mhz = 1980,
                                   .pci_domain = 4});
  /* the integrated one, first for CUDA, is last for us */
  check_device(&(rdna_device_info){.name = "Fake Orin",
                                   .arch = "sm_87",
                                   .index = 2,
                                   .native_index = 0,
                                   .integrated = true,
                                   .total_memory = 8ull << 30,
                                   .compute_units = 16,
                                   .wave_size = 32,
                                   .pci_bus = 0,
                                   .max_group_memory = 232448,
                                   .clock_mhz = 1980,
                                   .pci_domain = 4});
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
  int switches = record->switches;
  assert_int_equal(driver->memory_info(orin, &available, &total), RDNA_OK);
  assert_int_equal(record->switches, switches); /* already current: nothing to switch */
  rdna__driver_stream *stream = NULL;
  void *native = NULL;
  assert_int_equal(driver->stream_create(h200, 0, &stream), RDNA_OK);
  assert_int_equal(driver->stream_native(h200, stream, &native), RDNA_OK);
  assert_non_null(native);
  get_current(&current);
  assert_ptr_not_equal(current, foreign); /* that of a native stream stays */
  driver->stream_destroy(h200, stream);
  driver->device_close(a100);
  driver->device_close(h200);
  driver->device_close(orin);
  get_current(&current);
  assert_null(current);
  assert_int_equal(fake->retains, fake->releases);
}

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
  check_launch(device, stream, module, 65536);
  assert_int_equal(fake->dynamic_limit, 65536);
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
    assert_string_equal(record->kernel, functions[i].name);
    assert_memory_equal(record->grid, ((unsigned[]){7, 5, 6}), sizeof record->grid);
    assert_memory_equal(record->block, ((unsigned[]){functions[i].group_threads, 1, 1}), sizeof record->block);
    assert_memory_equal(record->args, "abc", 4);
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

ONE_TEST(missing_function, a_missing_function_is_named)

static void no_device_is_said(void **state) {
  setenv("FAKE_CUDA_NO_DEVICE", "1", 1);
  rdna_driver_info info = probe(RDNA_FAKE_CUDA);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_int_equal(info.device_count, 0);
  assert_string_equal(info.version, "12.9");
  assert_non_null(strstr(info.message, "no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, 100)"));
  assert_non_null(strstr(info.message, "nvidia-smi"));
}

ONE_TEST(no_device, no_device_is_said)

ONE_TEST(wrong_setting, a_wrong_setting_is_named)

static void absence_is_said(void **state) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != NULL)
    skip_because("this machine has NVIDIA's driver, so its absence cannot be seen");
  unsetenv("RDNA_CUDA_LIBRARY");
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_non_null(
      strstr(info.message, "NVIDIA's driver library was not found (libcuda.so.1: cannot open shared object"));
  assert_non_null(strstr(info.message, "RDNA_CUDA_LIBRARY"));
}

ONE_TEST(absence, absence_is_said)

int main(void) {
  static const flavour flavours[] = {
      {"a whole libcuda", whole_library}, {"one function missing", missing_function},
      {"no device", no_device},           {"a wrong setting", wrong_setting},
      {"nothing installed", absence},
  };
  driver = &rdna__cuda_driver;
  expected = &cuda;
  return run_flavours(flavours, sizeof flavours / sizeof *flavours, 60);
}
