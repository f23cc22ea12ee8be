/* Getting and launching kernels, with two kernels of this test as the manifest. What a GPU's code object adds is
 * tested end to end on the emulated GPU. */
#include "rdna/kernel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "base/testing.h"
#include "device/driver.h"
#include "device/driver/cuda/fake_cuda.h"
#include "kernel/manifest.h"
#include "rdna/memory.h"

struct count_args {
  uint32_t *out;
  uint32_t add;
};

static void count_groups(const void *args, rdna_grid grid) {
  const struct count_args *a = args;
  *a->out += a->add * grid.x * grid.y * grid.z;
}
static void subtract(const void *args, rdna_grid grid) {
  const struct count_args *a = args;
  *a->out -= a->add;
}

const rdna__kernel_info rdna__manifest[] = {{"count_groups", "test", sizeof(struct count_args), 64, NULL, {1000, 2000}},
                                            {"subtract", "other", sizeof(struct count_args), 64, NULL, {1000, 2000}}};
const int rdna__manifest_count = 2;
rdna__host_kernel rdna__host_twin(int index) { return index ? subtract : count_groups; }
const char *rdna__host_isa(void) { return "baseline"; }
rdna__host_kernel rdna__host_twin_for(const char *isa, int index) { return rdna__host_twin(index); }

static void test_get(void **state) {
  rdna_device *device;
  const rdna_kernel *kernel, *again, *other;
  assert_ok(rdna_device_open("host", &device));
  assert_ok(rdna_kernel_get(device, "count_groups", &kernel));
  assert_ok(rdna_kernel_get(device, "count_groups", &again));
  assert_ok(rdna_kernel_get(device, "subtract", &other));
  assert_ptr_equal(kernel, again);
  assert_ptr_not_equal(kernel, other);
  assert_int_equal(rdna_kernel_get(device, "multiply", &again), RDNA_NOT_FOUND);
  assert_null(again);
  assert_non_null(strstr(rdna_last_error(), "'multiply'"));
  assert_int_equal(rdna_kernel_get(NULL, "subtract", &again), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_kernel_get(device, NULL, &again), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_kernel_get(device, "subtract", NULL), RDNA_INVALID_ARGUMENT);
  rdna_device_release(device);
}

static void test_launch(void **state) {
  rdna_device *device, *null;
  const rdna_kernel *kernel, *other;
  void *memory;
  uint32_t result = 0;
  assert_ok(rdna_device_open("host", &device));
  rdna_stream *stream = rdna_device_default_stream(device);
  assert_ok(rdna_memory_alloc(device, 4, stream, &memory));
  assert_ok(rdna_fill_bytes(stream, memory, 0, 4));
  assert_ok(rdna_kernel_get(device, "count_groups", &kernel));
  assert_ok(rdna_kernel_get(device, "subtract", &other));
  struct count_args args = {memory, 10};
  assert_ok(rdna_launch(stream, kernel, (rdna_grid){2, 3, 4}, &args));
  args.add = 1; /* the arguments were copied, so the first launch keeps its 10 */
  assert_ok(rdna_launch(stream, kernel, (rdna_grid){5, 1, 1}, &args));
  for (int zero = 0; zero < 3; zero++) {
    rdna_grid grid = {zero != 0, zero != 1, zero != 2};
    assert_ok(rdna_launch(stream, kernel, grid, &args));
    assert_ok(rdna_launch(stream, other, grid, &args));
  }
  assert_ok(rdna_launch(stream, other, (rdna_grid){7, 7, 7}, &args));
  assert_ok(rdna_copy_to_host(stream, &result, memory, 4));
  assert_ok(rdna_stream_synchronize(stream));
  assert_int_equal(result, 10 * 24 + 5 - 1);

  assert_int_equal(rdna_launch(NULL, kernel, (rdna_grid){1, 1, 1}, &args), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_launch(stream, NULL, (rdna_grid){1, 1, 1}, &args), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna_launch(stream, kernel, (rdna_grid){1, 1, 1}, NULL), RDNA_INVALID_ARGUMENT);
  assert_ok(rdna_device_open("null", &null));
  assert_int_equal(rdna_launch(rdna_device_default_stream(null), kernel, (rdna_grid){1, 1, 1}, &args),
                   RDNA_INVALID_ARGUMENT);
  assert_non_null(strstr(rdna_last_error(), "'count_groups' belongs to another device"));
  rdna_device_release(null);
  assert_ok(rdna_memory_free(device, memory));
  rdna_device_release(device);
}

static void test_failing_launch(void **state) {
  rdna_device *device;
  const rdna_kernel *kernel;
  assert_ok(rdna_device_open("null", &device));
  assert_ok(rdna_kernel_get(device, "subtract", &kernel));
  struct count_args args = {NULL, 1};
  rdna__null_fail(1, RDNA_DEVICE_ERROR);
  assert_int_equal(rdna_launch(rdna_device_default_stream(device), kernel, (rdna_grid){1, 1, 1}, &args),
                   RDNA_DEVICE_ERROR);
  assert_non_null(strstr(rdna_last_error(), "subtract"));
  assert_ok(rdna_launch(rdna_device_default_stream(device), kernel, (rdna_grid){1, 1, 1}, &args));
  rdna__null_fail(0, RDNA_OK);
  rdna_device_release(device);
}

enum { THREADS = 8, ROUNDS = 200 };
static rdna_device *shared_device;
static pthread_barrier_t start;

static void *get_both(void *out) {
  const rdna_kernel **kernels = out;
  pthread_barrier_wait(&start);
  for (int i = 0; i < 2; i++)
    if (rdna_kernel_get(shared_device, i ? "subtract" : "count_groups", &kernels[i]) != RDNA_OK) kernels[i] = NULL;
  return NULL;
}

/* The first use from many threads at once, on a device that nobody used before. */
static void test_threads(void **state) {
  for (int round = 0; round < ROUNDS; round++) {
    const rdna_kernel *got[THREADS][2];
    pthread_t threads[THREADS];
    assert_ok(rdna_device_open("null", &shared_device));
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, get_both, got[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
      assert_non_null(got[i][0]);
      assert_ptr_equal(got[i][0], got[0][0]);
      assert_ptr_equal(got[i][1], got[0][1]);
    }
    pthread_barrier_destroy(&start);
    rdna_device_release(shared_device);
  }
}

/* Packs with an image for compute capability 9.0 alone, which the driver refuses for one of the families. */
static void test_special_image(void **state) {
  char command[1024];
  snprintf(
      command, sizeof command,
      "cd %s && for f in test test.sm_90a other; do echo .version >$f.ptx; done && echo nonsense >other.sm_90a.ptx "
      "&& %s sm_80.rdnapack sm_80 3 *.ptx",
      getenv("RDNA_KERNEL_PATH"), TEST_BUILDER);
  assert_int_equal(system(command), 0);
  static const struct {
    const char *device, *kernel;
    unsigned group_memory;
  } launches[] = {{"cuda:0", "count_groups", 1000}, {"cuda:1", "count_groups", 2000}, {"cuda:1", "subtract", 1000}};
  for (int i = 0; i < 3; i++) {
    rdna_device *device;
    const rdna_kernel *kernel;
    struct count_args args = {NULL, 1};
    assert_ok(rdna_device_open(launches[i].device, &device));
    assert_ok(rdna_kernel_get(device, launches[i].kernel, &kernel));
    assert_ok(rdna_launch(rdna_device_default_stream(device), kernel, (rdna_grid){1, 1, 1}, &args));
    const fake_cuda_record *record = dlsym(dlopen(TEST_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD), "fake_cuda");
    assert_string_equal(record->gpu.kernel, launches[i].kernel);
    assert_int_equal(record->gpu.shared_bytes, launches[i].group_memory);
    rdna_device_release(device);
  }
}

static int remove_folder(void **state) {
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", getenv("RDNA_KERNEL_PATH"));
  return system(command);
}

int main(void) {
  char folder[] = "/tmp/rdna-kernel-XXXXXX";
  setenv("RDNA_CUDA_LIBRARY", TEST_FAKE_CUDA, 1);
  setenv("RDNA_KERNEL_PATH", mkdtemp(folder), 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_get),     cmocka_unit_test(test_launch),        cmocka_unit_test(test_failing_launch),
      cmocka_unit_test(test_threads), cmocka_unit_test(test_special_image),
  };
  return cmocka_run_group_tests(tests, NULL, remove_folder);
}
