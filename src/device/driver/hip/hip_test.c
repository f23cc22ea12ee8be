#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/testing.h"
#include "device/driver/gpu/gpu_tests.h"
#include "device/driver/hip/fake_hip.h"
#include "device/driver/hip/hip_properties.h"

#define FAKE(folder, soname) RDNA_FAKES "/" folder "/" soname
#define HIP5 FAKE("hip5", "libamdhip64.so.5")
#define HIP6 FAKE("hip6", "libamdhip64.so.6")
#define HIP7 FAKE("hip7", "libamdhip64.so.7")

static const gpu_expectations hip = {.name = "hip",
                                     .setting = "RDNA_HIP_LIBRARY",
                                     .first_device = "hip:0 (AMD Radeon RX 7900 XTX)",
                                     .out_of_memory = "out of memory (hipErrorOutOfMemory, 2)",
                                     .least_priority = 1,
                                     .greatest_priority = -1,
                                     .elapsed_ms = 0.25f,
                                     .image = "\177ELF",
                                     .image_bytes = 5};
static const struct {
  const char *path, *version;
  int major;
} *flavour_now, flavours_known[] = {{HIP5, "5.2.21153", 5}, {HIP6, "6.4.43484", 6}, {HIP7, "7.15.26333", 7}};
static fake_hip_record *fake;
static int (*set_device)(int);
static int (*get_device)(int *);
static int (*get_last_error)(void);

static int open_fake(void **state) {
  assert_int_equal(probe(flavour_now->path).status, RDNA_OK);
  void *library = dlopen(flavour_now->path, RTLD_NOW | RTLD_NOLOAD);
  fake = dlsym(library, "fake_hip");
  record = &fake->gpu;
  *(void **)&set_device = dlsym(library, "hipSetDevice");
  *(void **)&get_device = dlsym(library, "hipGetDevice");
  *(void **)&get_last_error = dlsym(library, "hipGetLastError");
  set_device(0);
  return 0;
}

static void devices_are_described(void **state) {
  check_probe(flavour_now->path, flavour_now->version);
  check_device(&(rdna_device_info){.name = "AMD Radeon RX 7900 XTX",
                                   .arch = "gfx1100",
                                   .index = 0,
                                   .native_index = 1,
                                   .total_memory = 24ull << 30,
                                   .compute_units = 96, /* HIP says 48 WGPs */
                                   .wave_size = 32,
                                   .max_group_memory = 65536,
                                   .clock_mhz = 2500,
                                   .pci_bus = 3});
  check_device(&(rdna_device_info){.name = "AMD GPU gfx90a", /* HIP gave no name */
                                   .arch = "gfx90a",
                                   .index = 1,
                                   .native_index = 2,
                                   .total_memory = 64ull << 30,
                                   .compute_units = 104, /* no WGPs before gfx10 */
                                   .wave_size = 64,
                                   .max_group_memory = 65536,
                                   .clock_mhz = 2500,
                                   .pci_bus = 0xc1});
  /* the processor's graphics, first for HIP (and called discrete by HIP 5), are last for us */
  check_device(&(rdna_device_info){.name = "AMD Radeon Graphics",
                                   .arch = "gfx1036",
                                   .index = 2,
                                   .native_index = 0,
                                   .integrated = true,
                                   .total_memory = 512ull << 20,
                                   .compute_units = 2,
                                   .wave_size = 32,
                                   .max_group_memory = 65536,
                                   .clock_mhz = 2500,
                                   .pci_bus = 0x7b});
}

static void the_callers_device_comes_back(void **state) {
  rdna__driver_device *card = open_device(0);
  uint64_t available = 0, total = 0;
  int current = -1;
  set_device(2);
  assert_int_equal(driver->memory_info(card, &available, &total), RDNA_OK);
  assert_true(total == 24ull << 30);
  assert_true(available == total - 4096);
  get_device(&current);
  assert_int_equal(current, 2);
  void *huge = &huge;
  assert_int_equal(driver->memory_alloc(card, (size_t)1 << 40, &huge), RDNA_OUT_OF_MEMORY);
  get_device(&current);
  assert_int_equal(current, 2); /* also after a failure */
  set_device(1);
  int switches = record->switches;
  assert_int_equal(driver->memory_info(card, &available, &total), RDNA_OK);
  assert_int_equal(record->switches, switches);
  driver->device_close(card);
}

/* Another library's kernels are loaded where the calling thread is, and queued beside ours. */
static void the_device_of_a_native_stream_stays(void **state) {
  rdna__driver_device *card = open_device(0);
  rdna__driver_stream *stream = NULL;
  void *native = NULL;
  int current = -1;
  assert_int_equal(driver->stream_create(card, 0, &stream), RDNA_OK);
  set_device(2);
  assert_int_equal(driver->stream_native(card, stream, &native), RDNA_OK);
  assert_non_null(native);
  get_device(&current);
  assert_int_equal(current, 1); /* the discrete card is the library's second */
  driver->stream_destroy(card, stream);
  driver->device_close(card);
}

static void last_error_stays_others(void **state) {
  rdna__driver_device *card = open_device(0);
  rdna__driver_stream *stream = NULL;
  set_device(1);
  assert_int_equal(driver->stream_create(card, 0, &stream), RDNA_OK);
  get_last_error();
  void *huge = NULL;
  assert_int_equal(driver->memory_alloc(card, (size_t)1 << 40, &huge), RDNA_OUT_OF_MEMORY);
  assert_int_equal(get_last_error(), 0); /* ours was taken back */
  record->not_ready = 1;
  assert_int_equal(driver->stream_query(card, stream), RDNA_NOT_READY);
  assert_int_equal(get_last_error(), 0);
  assert_non_null(strstr(rdna_last_error(), "1099511627776")); /* polling leaves the last sentence alone */
  if (flavour_now->major >= 7) {
    set_device(99); /* another library's error, which it has not looked at yet */
    assert_int_equal(driver->stream_query(card, stream), RDNA_NOT_READY);
    assert_int_equal(get_last_error(), 101);
  }
  record->not_ready = 0;
  driver->stream_destroy(card, stream);
  driver->device_close(card);
}

static void copies_say_which_way(void **state) {
  static const int kinds[] = {[RDNA__COPY_TO_DEVICE] = 1, [RDNA__COPY_TO_HOST] = 2, [RDNA__COPY_ON_DEVICE] = 3};
  rdna__driver_device *device = open_device(0);
  char from[8] = "", to[8] = "";
  for (int kind = RDNA__COPY_TO_DEVICE; kind <= RDNA__COPY_ON_DEVICE; kind++) {
    assert_int_equal(driver->copy(device, NULL, (rdna__copy_kind)kind, to, from, sizeof to), RDNA_OK);
    assert_int_equal(fake->copy_kind, kinds[kind]);
  }
  driver->device_close(device);
}

static void callbacks_take_the_call_that_is_there(void **state) {
  rdna__driver_device *device = open_device(0);
  int calls = 0, host_func = fake->host_func_calls, add_callback = fake->add_callback_calls;
  assert_int_equal(driver->stream_call(device, NULL, count_call, &calls), RDNA_OK);
  assert_int_equal(calls, 1);
  assert_int_equal(fake->host_func_calls - host_func, flavour_now->major >= 6);
  assert_int_equal(fake->add_callback_calls - add_callback, flavour_now->major < 6);
  driver->device_close(device);
}

static void launches_pack_their_arguments(void **state) {
  rdna__driver_device *device = open_device(1);
  rdna__driver_stream *stream = NULL;
  rdna__driver_module *module = NULL;
  char image[] = "\177ELF and more";
  assert_int_equal(driver->stream_create(device, 0, &stream), RDNA_OK);
  assert_int_equal(driver->module_load(device, "nonsense", 9, "norm", &module), RDNA_UNSUPPORTED);
  assert_string_equal(rdna_last_error(),
                      "loading the code object 'norm' of 9 bytes for gfx90a on hip:1 (AMD GPU gfx90a): no kernel image "
                      "is available for execution on the device (hipErrorNoBinaryForGpu, 209)");
  assert_int_equal(driver->module_load(device, image, 0, "norm", &module), RDNA_INVALID_ARGUMENT);
  assert_int_equal(driver->module_load(device, image, sizeof image, "norm", &module), RDNA_OK);
  assert_ptr_not_equal(fake->image, image);
  memset(image, 0, sizeof image);
  assert_memory_equal(fake->image, "\177ELF and more", sizeof image); /* HIP reads it later */
  set_device(1);
  check_launch(device, stream, module, 4096);
  assert_int_equal(fake->launch_device, 2);
  driver->module_unload(device, module);
  assert_int_equal(fake->modules, 0);
  driver->stream_destroy(device, stream);
  driver->device_close(device);
}

/* The stand-ins are of runtimes without graphs; the emulator's are in the conformance suite. */
static void no_graphs_is_said(void **state) {
  rdna__driver_device *device;
  assert_int_equal(driver->device_open(0, &device), RDNA_OK);
  assert_int_equal(driver->graph_begin(device, NULL), RDNA_UNSUPPORTED);
  assert_non_null(strstr(rdna_last_error(), "cannot record a graph"));
  driver->device_close(device);
}

static int whole_library(int known) {
  flavour_now = (void *)&flavours_known[known];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(devices_are_described),
      cmocka_unit_test(the_callers_device_comes_back),
      cmocka_unit_test(the_device_of_a_native_stream_stays),
      cmocka_unit_test(last_error_stays_others),
      cmocka_unit_test(memory_and_copies),
      cmocka_unit_test(copies_say_which_way),
      cmocka_unit_test(streams_and_events),
      cmocka_unit_test(callbacks_take_the_call_that_is_there),
      cmocka_unit_test(launches_pack_their_arguments),
      cmocka_unit_test(late_errors_name_the_kernel),
      cmocka_unit_test(no_graphs_is_said),
  };
  return cmocka_run_group_tests(tests, open_fake, NULL);
}

static int hip5(void) { return whole_library(0); }
static int hip6(void) { return whole_library(1); }
static int hip7(void) { return whole_library(2); }

static void a_missing_function_is_named(void **state) {
  rdna_driver_info info = probe(FAKE("hip7_no_launch", "libamdhip64.so.7"));
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_int_equal(info.device_count, 0);
  assert_non_null(strstr(info.message, "hip7_no_launch/libamdhip64.so.7 has no function hipModuleLaunchKernel"));
}
ONE_TEST(missing_function, a_missing_function_is_named)

static void no_device_is_explained(void **state) {
  setenv("FAKE_HIP_NO_DEVICE", "1", 1);
  rdna_driver_info info = probe(HIP6);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_int_equal(info.device_count, 0);
  assert_string_equal(info.version, "6.4.43484");
  assert_non_null(strstr(info.message, "HIP 6.4.43484 is there"));
  assert_non_null(strstr(info.message, "but finds no device: /dev/kfd "));
}
ONE_TEST(no_device, no_device_is_explained)

static void an_unknown_layout_is_refused(void **state) {
  setenv("FAKE_HIP_ODD_LAYOUT", "1", 1);
  rdna_driver_info info = probe(HIP7);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_non_null(strstr(info.message, "describes its device 0 in no layout that we know"));
}
ONE_TEST(odd_layout, an_unknown_layout_is_refused)

ONE_TEST(wrong_setting, a_wrong_setting_is_named)

static void emulated_devices_say_so(void **state) {
  setenv("RDNA_EMULATE", "gfx1100", 1);
  rdna_driver_info info = probe(HIP7);
  rdna_device_info device;
  assert_int_equal(info.status, RDNA_OK);
  assert_non_null(strstr(info.message, "emulated HIP 7.15.26333"));
  for (int i = 0; i < 3; i++) {
    assert_int_equal(driver->describe(i, &device), RDNA_OK);
    assert_true(device.emulated);
    assert_non_null(strstr(device.name, " (emulated)"));
  }
  assert_int_equal(driver->describe(0, &device), RDNA_OK);
  assert_string_equal(device.name, "AMD Radeon RX 7900 XTX (emulated)");
}
ONE_TEST(emulated, emulated_devices_say_so)

/* Asking for the emulator never ends at AMD's library, not even when that is in the process already. */
static void emulation_needs_the_emulator(void **state) {
  unsetenv("RDNA_HIP_LIBRARY");
  setenv("RDNA_EMULATE", "gfx1100", 1);
  assert_non_null(dlopen(HIP7, RTLD_NOW | RTLD_LOCAL));
  rdna_driver_info info = probe(NULL);
  if (info.library[0] != '\0') {
    assert_non_null(strstr(info.library, "librdna_emulator.so"));
  } else {
    assert_int_equal(info.status, RDNA_UNAVAILABLE);
    assert_non_null(strstr(info.message, "RDNA_EMULATE=gfx1100 asks for the emulator, but librdna_emulator.so"));
  }
}
ONE_TEST(emulator_only, emulation_needs_the_emulator)

/* ---- where the library is looked for ---------------------------------------------------------------------- */

static char scratch[64];

/* scratch/folder/name becomes a link to |target|. */
static void place(const char *folder, const char *name, const char *target) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", scratch, folder);
  for (char *slash = path + strlen(scratch) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
  mkdir(path, 0700);
  snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", name);
  assert_int_equal(symlink(target, path), 0);
}

static void in_scratch(const char *variable, const char *below) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", scratch, below);
  setenv(variable, path, 1);
}

static int make_scratch(void **state) {
  unsetenv("RDNA_HIP_LIBRARY");
  strcpy(scratch, "/tmp/rdna_hip_test_XXXXXX");
  return mkdtemp(scratch) == NULL;
}

static int drop_scratch(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", scratch);
  return system(command);
}

static void rocm_path_counts_numbers(void **state) {
  place("rocm/lib", "libamdhip64.so.9", HIP5);
  place("rocm/lib", "libamdhip64.so.10", HIP7);
  place("rocm/lib", "libamdhip64.so", HIP5);
  in_scratch("ROCM_PATH", "rocm");
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_OK);
  assert_string_equal(info.library, HIP7); /* the file itself, not the link */
}

static void wheels_come_before_rocm_path(void **state) {
  place("rocm/lib", "libamdhip64.so.7", HIP7);
  place("venv/lib/python3.11/site-packages/torch/lib", "libamdhip64.so", HIP5);
  place("venv/lib/python3.11/site-packages/_rocm_sdk_core/lib", "libamdhip64.so.6", HIP6);
  in_scratch("ROCM_PATH", "rocm");
  in_scratch("VIRTUAL_ENV", "venv");
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_OK);
  assert_string_equal(info.library, HIP6);
}

static void a_loaded_runtime_comes_first(void **state) {
  place("rocm/lib", "libamdhip64.so.7", HIP7);
  place("venv/lib/python3.11/site-packages/_rocm_sdk_core/lib", "libamdhip64.so.6", HIP6);
  in_scratch("VIRTUAL_ENV", "venv");
  in_scratch("ROCM_PATH", "rocm");
  assert_non_null(dlopen(HIP5, RTLD_NOW | RTLD_LOCAL));
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_OK);
  assert_string_equal(info.library, HIP5);
}

/* PyTorch's wheels carry the library under its unversioned name, sometimes without any soname. */
static void a_loaded_runtime_of_any_name_comes_first(void **state) {
  place("rocm/lib", "libamdhip64.so.7", HIP7);
  in_scratch("ROCM_PATH", "rocm");
  assert_non_null(dlopen(FAKE("hip6_unnamed", "libamdhip64.so"), RTLD_NOW | RTLD_LOCAL));
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_OK);
  assert_string_equal(info.library, FAKE("hip6_unnamed", "libamdhip64.so"));
}

/* The emulator's drop-in has AMD's soname in a file of another name. */
static void a_loaded_runtime_is_known_by_its_soname(void **state) {
  char path[128];
  place("rocm/lib", "libamdhip64.so.7", HIP7);
  place("elsewhere", "other.so", HIP6);
  in_scratch("ROCM_PATH", "rocm");
  snprintf(path, sizeof path, "%s/elsewhere/other.so", scratch);
  assert_non_null(dlopen(path, RTLD_NOW | RTLD_LOCAL));
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_OK);
  assert_string_equal(info.library, HIP6);
}

/* Beside TensorFlow's LLVM a HIP that cannot find a card is not even loaded: its constructor may end the process, which
 * this one's does. */
static void nothing_is_loaded_beside_an_llvm_without_a_card(void **state) {
  if (access("/dev/kfd", F_OK) == 0 || access("/dev/dxg", F_OK) == 0)
    skip_because("this machine's kernel has a driver");
  place("rocm/lib", "libamdhip64.so.7", FAKE("hip7_aborts", "libamdhip64.so.7"));
  in_scratch("ROCM_PATH", "rocm");
  assert_non_null(dlopen(RDNA_FAKES "/llvm1/libllvm1.so", RTLD_NOW | RTLD_GLOBAL));
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_non_null(strstr(info.message, "neither /dev/kfd nor /dev/dxg"));
}

static void a_broken_file_is_passed_over(void **state) {
  place("rocm/lib", "libamdhip64.so.8", "/etc/passwd");
  place("rocm/lib", "libamdhip64.so.7", HIP7);
  in_scratch("ROCM_PATH", "rocm");
  rdna_driver_info info = probe(NULL);
  assert_int_equal(info.status, RDNA_OK);
  assert_string_equal(info.library, HIP7);
}

#define ONE_PLACE(name, test)                                                                              \
  static int name(void) {                                                                                  \
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test, make_scratch, drop_scratch)}; \
    return cmocka_run_group_tests(tests, NULL, NULL);                                                      \
  }
ONE_PLACE(rocm_path, rocm_path_counts_numbers)
ONE_PLACE(wheels, wheels_come_before_rocm_path)
ONE_PLACE(loaded, a_loaded_runtime_comes_first)
ONE_PLACE(loaded_unnamed, a_loaded_runtime_of_any_name_comes_first)
ONE_PLACE(loaded_soname, a_loaded_runtime_is_known_by_its_soname)
ONE_PLACE(broken_file, a_broken_file_is_passed_over)
ONE_PLACE(beside_llvm, nothing_is_loaded_beside_an_llvm_without_a_card)

/* AMD's own library, as Debian packages it, on a machine without a card. */
static void amds_library_says_why_not(void **state) {
  static const char debian[] = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";
  if (access(debian, F_OK) != 0) skip_because("Debian's libamdhip64-5 is not installed (%s is missing)", debian);
  if (access("/dev/kfd", F_OK) == 0) skip_because("this machine has /dev/kfd, so the library may find a card");
  rdna_driver_info info = probe(debian);
  assert_int_equal(info.status, RDNA_UNAVAILABLE);
  assert_int_equal(info.device_count, 0);
  assert_string_equal(info.version, "5.2.21153");
  assert_non_null(strstr(info.library, "libamdhip64.so.5.2.21153"));
  assert_non_null(strstr(info.message, "HIP 5.2.21153 is there"));
  assert_non_null(strstr(info.message, "finds no device: /dev/kfd is missing"));
  rdna_device_info device;
  assert_int_equal(driver->describe(0, &device), RDNA_NOT_FOUND);
  rdna__driver_device *opened = NULL;
  assert_int_equal(driver->device_open(0, &opened), RDNA_NOT_FOUND);
}
ONE_TEST(amds_library, amds_library_says_why_not)

/* ---- properties alone ------------------------------------------------------------------------------------- */

static void layouts_are_told_apart(void **state) {
  unsigned char properties[RDNA__HIP_PROPERTIES_BYTES] = "Card";
  rdna_device_info info = {.index = 42};
  memcpy(properties + 396, "gfx1201:xnack-", 15);
  assert_false(rdna__hip_properties_read(properties, RDNA__HIP_R0600, &info));
  assert_int_equal(info.index, 42);
  assert_true(rdna__hip_properties_read(properties, RDNA__HIP_R0000, &info));
  assert_string_equal(info.arch, "gfx1201");
  memset(properties + 396, 0, 256);
  memset(properties + 1160, 'g', 256);
  memcpy(properties + 1160, "gfx", 3);
  assert_false(rdna__hip_properties_read(properties, RDNA__HIP_R0600, &info)); /* a name without an end */
}

static void compute_units_are_not_wgps(void **state) {
  assert_int_equal(rdna__hip_compute_units("gfx1100", 48, true, 0), 96);
  assert_int_equal(rdna__hip_compute_units("gfx1030", 36, true, 72), 72);
  assert_int_equal(rdna__hip_compute_units("gfx1201", 64, true, 64), 64); /* a runtime that already says CUs */
  assert_int_equal(rdna__hip_compute_units("gfx1201", 64, false, 0), 64); /* GPU_ENABLE_WGP_MODE=0 */
  assert_int_equal(rdna__hip_compute_units("gfx1201", 32, true, 61), 64); /* another card's number: not believed */
  assert_int_equal(rdna__hip_compute_units("gfx942", 304, true, 304), 304);
  assert_int_equal(rdna__hip_compute_units("gfx906", 60, true, 0), 60);
}

static int properties_alone(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layouts_are_told_apart),
                                     cmocka_unit_test(compute_units_are_not_wgps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
  static const flavour flavours[] = {
      {"HIP 5", hip5},
      {"HIP 6", hip6},
      {"HIP 7", hip7},
      {"one function missing", missing_function},
      {"no device", no_device},
      {"an unknown layout", odd_layout},
      {"a wrong setting", wrong_setting},
      {"emulated", emulated},
      {"emulated without a path", emulator_only},
      {"ROCM_PATH", rocm_path},
      {"Python wheels", wheels},
      {"a runtime in the process", loaded},
      {"a runtime in the process under another name", loaded_unnamed},
      {"a runtime in the process known by its soname", loaded_soname},
      {"a broken file", broken_file},
      {"beside an LLVM", beside_llvm},
      {"AMD's library", amds_library},
      {"properties alone", properties_alone},
  };
  driver = &rdna__hip_driver;
  expected = &hip;
  unsetenv("RDNA_EMULATE");
  unsetenv("ROCM_PATH");
  unsetenv("VIRTUAL_ENV");
  unsetenv("GPU_ENABLE_WGP_MODE");
  unsetenv("ROCR_VISIBLE_DEVICES");
  unsetenv("HIP_VISIBLE_DEVICES");
  return run_flavours(flavours, sizeof flavours / sizeof *flavours, 60);
}
