// One emulator under all its names: memory of one library is known to the others, and so is the rest.
//   names_test LIBRDNA_EMULATOR    with LD_LIBRARY_PATH naming the drop-in folder
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NAMES = 5, BYTES = 64, TO_DEVICE = 1, TO_HOST = 2 };
static const char *names[NAMES] = {NULL, "libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"};

static struct {
  int (*malloc)(void **, size_t);
  int (*free)(void *);
  int (*memcpy)(void *, const void *, size_t, int);
  int (*range)(void **, size_t *, void *);
  int (*version)(int *);
  int (*set_device)(int);
  int (*last_error)(void);
  int (*success)(int *);
} hip[NAMES];

static void find(void *handle, const char *name, void *out) {
  *(void **)out = dlsym(handle, name);
  assert_non_null(*(void **)out);
}

static int load(void **state) {
  for (int i = 0; i < NAMES; i++) {
    void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!handle) fprintf(stderr, "%s\n", dlerror());
    assert_non_null(handle);
    find(handle, "hipMalloc", &hip[i].malloc);
    find(handle, "hipFree", &hip[i].free);
    find(handle, "hipMemcpy", &hip[i].memcpy);
    find(handle, "hipMemGetAddressRange", &hip[i].range);
    find(handle, "hipRuntimeGetVersion", &hip[i].version);
    find(handle, "hipSetDevice", &hip[i].set_device);
    find(handle, "hipGetLastError", &hip[i].last_error);
    find(handle, "hipGetDevice", &hip[i].success);
  }
  return 0;
}

static void test_memory_is_shared(void **state) {
  for (int from = 0; from < NAMES; from++)
    for (int to = 0; to < NAMES; to++) {
      uint8_t wrote[BYTES], got[BYTES] = {0};
      void *p = NULL, *base = NULL;
      size_t bytes = 0;
      memset(wrote, 16 * from + to + 1, sizeof wrote);
      assert_int_equal(hip[from].malloc(&p, BYTES), 0);
      assert_int_equal(hip[to].range(&base, &bytes, (uint8_t *)p + 5), 0);
      assert_ptr_equal(base, p);
      assert_int_equal(bytes, BYTES);
      assert_int_equal(hip[from].memcpy(p, wrote, BYTES, TO_DEVICE), 0);
      assert_int_equal(hip[to].memcpy(got, p, BYTES, TO_HOST), 0);
      assert_memory_equal(got, wrote, BYTES);
      assert_int_equal(hip[to].free(p), 0);
      assert_int_equal(hip[from].free(p), 1);
    }
}

// Each name still answers as the version that its callers were built for.
static void test_versions(void **state) {
  static const int majors[NAMES] = {7, 7, 5, 6, 7};
  for (int i = 0; i < NAMES; i++) {
    int version = 0, device = 0;
    assert_int_equal(hip[i].version(&version), 0);
    assert_int_equal(version / 10000000, majors[i]);
    assert_int_equal(hip[i].set_device(99), 101);
    assert_int_equal(hip[i].success(&device), 0);
    assert_int_equal(hip[i].last_error(), majors[i] < 7 ? 0 : 101);
    assert_int_equal(hip[i].last_error(), 0);
  }
}

// Programs that are linked against AMD's library ask for each name with the version that has it since.
static void test_symbol_versions(void **state) {
  static const char *const since[][2] = {{"hipMalloc", "hip_4.2"},
                                         {"hipGraphLaunch", "hip_4.3"},
                                         {"hipMallocAsync", "hip_5.1"},
                                         {"hipDeviceSetLimit", "hip_5.3"},
                                         {"hipModuleLaunchCooperativeKernel", "hip_5.5"},
                                         {"hipGetDevicePropertiesR0600", "hip_6.0"},
                                         {"hipGetProcAddress", "hip_6.1"},
                                         {"hipGetFuncBySymbol", "hip_6.2"},
                                         {"hipEventRecordWithFlags", "hip_6.4"},
                                         {"hipLaunchKernelExC", "hip_6.5"},
                                         {"hipModuleLoadFatBinary", "hip_7.1"},
                                         {"hipLibraryLoadData", "hip_7.2"}};
  for (int i = 0; i < NAMES; i++) {
    void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t k = 0; k < sizeof since / sizeof *since; k++) assert_non_null(dlvsym(handle, since[k][0], since[k][1]));
    dlclose(handle);
  }
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  names[0] = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_is_shared), cmocka_unit_test(test_versions),
                                     cmocka_unit_test(test_symbol_versions)};
  return cmocka_run_group_tests(tests, load, NULL);
}
