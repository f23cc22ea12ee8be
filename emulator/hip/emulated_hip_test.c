// The HIP interface as a program meets it: the emulator is called through AMD's names and nothing else.
//   emulated_hip_test FOLDER     with RDNA_EMULATE=gfx1100,gfx1030; the folder holds what CMake builds from
//   hip/probe.hip
#include <limits.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

int hipGetDeviceCount(int *);
int hipSetDevice(int);
int hipGetDeviceProperties(void *, int);
int hipGetDevicePropertiesR0600(void *, int);
int hipDeviceGetAttribute(int *, int, int);
int hipDeviceGetPCIBusId(char *, int, int);
int hipDeviceGetByPCIBusId(int *, const char *);
int hipDriverGetVersion(int *);
int hipGetLastError(void);
int hipDeviceGetLimit(size_t *, int);
int hipDeviceSetLimit(int, size_t);
int hipPeekAtLastError(void);
const char *hipGetErrorName(int);
int hipMalloc(void **, size_t);
int hipFree(void *);
int hipHostMalloc(void **, size_t, unsigned);
int hipHostFree(void *);
int hipMemGetInfo(size_t *, size_t *);
int hipMemcpy(void *, const void *, size_t, int);
int hipMemcpyAsync(void *, const void *, size_t, int, void *);
int hipMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int);
int hipMemset(void *, int, size_t);
int hipMemsetAsync(void *, int, size_t, void *);
int hipMemsetD32(void *, int, size_t);
int hipPointerGetAttributes(void *, const void *);
int hipStreamCreate(void **);
int hipStreamCreateWithFlags(void **, unsigned);
int hipStreamDestroy(void *);
int hipStreamQuery(void *);
int hipStreamSynchronize(void *);
int hipDeviceSynchronize(void);
int hipLaunchHostFunc(void *, void (*)(void *), void *);
int hipEventCreate(void **);
int hipEventCreateWithFlags(void **, unsigned);
int hipEventDestroy(void *);
int hipEventRecord(void *, void *);
int hipEventQuery(void *);
int hipEventSynchronize(void *);
int hipEventElapsedTime(float *, void *, void *);
int hipStreamWaitEvent(void *, void *, unsigned);
int hipStreamWaitValue32(void *, void *, uint32_t, unsigned, uint32_t);
int hipStreamWaitValue64(void *, void *, uint64_t, unsigned, uint64_t);
int hipStreamWriteValue32(void *, void *, uint32_t, unsigned);
int hipStreamWriteValue64(void *, void *, uint64_t, unsigned);
int hipStreamBeginCapture(void *, int);
int hipGraphInstantiate(void **, void *, void **, char *, size_t);
int hipGraphDestroy(void *);
int hipGraphExecDestroy(void *);
int hipEventRecord_spt(void *, void *);
int hipGraphLaunch_spt(void *, void *);
int hipLaunchHostFunc_spt(void *, void (*)(void *), void *);
int hipMemcpy_spt(void *, const void *, size_t, int);
int hipMemcpyAsync_spt(void *, const void *, size_t, int, void *);
int hipMemcpy2D_spt(void *, size_t, const void *, size_t, size_t, size_t, int);
int hipMemset_spt(void *, int, size_t);
int hipMemsetAsync_spt(void *, int, size_t, void *);
int hipMemset2D_spt(void *, size_t, int, size_t, size_t);
int hipStreamBeginCapture_spt(void *, int);
int hipStreamEndCapture_spt(void *, void **);
int hipStreamIsCapturing_spt(void *, int *);
int hipStreamQuery_spt(void *);
int hipStreamSynchronize_spt(void *);
int hipStreamWaitEvent_spt(void *, void *, unsigned);
int hipGraphCreate(void **, unsigned);
int hipGraphAddEmptyNode(void **, void *, void *const *, size_t);
int hipGraphNodeGetDependentNodes(void *, void **, size_t *);
int hipGraphGetEdges(void *, void **, void **, size_t *);
int hipMemsetD2D8(void *, size_t, unsigned char, size_t, size_t);
int hipMemsetD2D16Async(void *, size_t, unsigned short, size_t, size_t, void *);
int hipMemsetD2D32(void *, size_t, unsigned, size_t, size_t);
int hipModuleLoad(void **, const char *);
int hipModuleLoadData(void **, const void *);
int hipModuleUnload(void *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleGetGlobal(void **, size_t *, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
int ext_launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void *, void **, void **, void *, void *, unsigned) __asm__(
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j");
int hipModuleLaunchCooperativeKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     void *, void **);
int hipDrvLaunchKernelEx(const void *, void *, void **, void **);
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *, void *, int, size_t);
int hipGetProcAddress(const char *, void **, int, uint64_t, int *);
int hipGetDriverEntryPoint(const char *, void **, uint64_t, int *);
int hipBindTexture(void);

enum { TO_DEVICE = 1, TO_HOST = 2, NON_BLOCKING = 1 };
static const char *folder;

static void *load(int device, const char *name) {
  char path[PATH_MAX];
  void *module = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(hipSetDevice(device), 0);
  assert_int_equal(hipModuleLoad(&module, path), 0);
  return module;
}

static void *function(void *module, const char *name) {
  void *f = NULL;
  assert_int_equal(hipModuleGetFunction(&f, module, name), 0);
  return f;
}

static void *alloc(size_t bytes) {
  void *p = NULL;
  assert_int_equal(hipMalloc(&p, bytes), 0);
  return p;
}

static void test_devices(void **state) {
  // offsets as clients were compiled with them
  static const char *const archs[] = {"gfx1100", "gfx1030"};
  int count = 0, version = 0, value = 0;
  assert_int_equal(hipGetDeviceCount(&count), 0);
  assert_int_equal(count, 2);
  assert_int_equal(hipDriverGetVersion(&version), 0);
  assert_int_equal(version / 10000000, 7);
  for (int i = 0; i < 2; i++) {
    uint8_t p[2048];
    int wave, threads, processors, number;
    memset(p, 0xaa, sizeof p);
    assert_int_equal(hipGetDeviceProperties(p, i), 0);
    assert_string_equal((char *)p + 396, archs[i]);
    memcpy(&wave, p + 276, 4);
    memcpy(&threads, p + 280, 4);
    memcpy(&processors, p + 336, 4);
    memcpy(&number, p + 392, 4);
    assert_true(wave == 32 && threads == 1024 && processors == (i ? 36 : 48) && number == (i ? 1030 : 1100));
    for (int k = 792; k < 2048; k++) assert_int_equal(p[k], 0xaa);
    memset(p, 0xaa, sizeof p);
    assert_int_equal(hipGetDevicePropertiesR0600(p, i), 0);
    assert_string_equal((char *)p + 1160, archs[i]);
    memcpy(&wave, p + 308, 4);
    memcpy(&processors, p + 388, 4);
    assert_true(wave == 32 && processors == (i ? 36 : 48));
    for (int k = 1472; k < 2048; k++) assert_int_equal(p[k], 0xaa);
    assert_int_equal(hipDeviceGetAttribute(&value, 87, i), 0);  // warp size
    assert_int_equal(value, 32);
    assert_int_equal(hipDeviceGetAttribute(&value, 63, i), 0);  // multiprocessors
    assert_int_equal(value, processors);
    char bus[] = "no place yet.";
    int back = -1;
    assert_int_equal(hipDeviceGetPCIBusId(bus, sizeof bus, i), 0);
    assert_int_equal(hipDeviceGetByPCIBusId(&back, bus), 0);
    assert_int_equal(back, i);
  }
  assert_int_equal(hipDeviceGetByPCIBusId(&value, "ffff:ff:ff.f"), 101);
  assert_int_equal(hipGetLastError(), 101);
  assert_int_equal(hipSetDevice(2), 101);
  assert_int_equal(hipGetLastError(), 101);
  assert_int_equal(hipGetLastError(), 0);
}

static const int in_values[2] = {7, 11};
enum { TRUE_C = 5, TRUE_A = 100, TRUE_B = 58 };
static const long long wide = 0x123456789LL;

enum launch { BY_POINTERS, PACKED, EXTENDED, EXTENDED_WITH_EVENTS, LAUNCHES };

static void check_arguments(void *module, enum launch launch) {
  int *in = alloc(sizeof in_values), *out = alloc(6 * sizeof *out), got[6];
  assert_int_equal(hipMemcpy(in, in_values, sizeof in_values, TO_DEVICE), 0);
  char c = TRUE_C;
  long long w = wide;
  int both[2] = {TRUE_A, TRUE_B};
  struct {
    char c;
    long long w;
    int both[2];
    int *in, *out;
  } block = {c, w, {TRUE_A, TRUE_B}, in, out};
  size_t bytes = sizeof block;
  void *parameters[] = {&c, &w, both, &in, &out};
  void *extra[] = {(void *)1, &block, (void *)2, &bytes, (void *)3};
  void *f = function(module, "arguments"), *start = NULL, *stop = NULL;
  if (launch == EXTENDED_WITH_EVENTS) assert_true(hipEventCreate(&start) == 0 && hipEventCreate(&stop) == 0);
  void **pointers = launch == PACKED ? NULL : parameters, **packed = launch == PACKED ? extra : NULL;
  int code = launch < EXTENDED ? hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, pointers, packed)
                               : ext_launch(f, 1, 1, 1, 1, 1, 1, 0, NULL, pointers, packed, start, stop, 0);
  assert_int_equal(code, 0);
  assert_int_equal(hipMemcpy(got, out, sizeof got, TO_HOST), 0);
  const int expected[] = {TRUE_C, (int)(wide >> 32), TRUE_A - TRUE_B, 11, 20, 30};
  assert_memory_equal(got, expected, sizeof got);
  float took = -1;
  if (start) {
    assert_int_equal(hipEventElapsedTime(&took, start, stop), 0);
    assert_true(took >= 0);
    assert_true(hipEventDestroy(start) == 0 && hipEventDestroy(stop) == 0);
  }
  assert_int_equal(hipFree(in), 0);
  assert_int_equal(hipFree(out), 0);
}

static void test_arguments(void **state) {
  static const char *const files[2][2] = {{"probe_gfx1100.hsaco", "probe_compressed.bundle"},
                                          {"probe_gfx1030.hsaco", "probe.bundle"}};
  for (int device = 0; device < 2; device++)
    for (int i = 0; i < 2; i++) {
      void *module = load(device, files[device][i]);
      for (int launch = 0; launch < LAUNCHES; launch++) check_arguments(module, (enum launch)launch);
      assert_int_equal(hipModuleUnload(module), 0);
    }
}

static void test_hidden_arguments(void **state) {
  for (int device = 0; device < 2; device++) {
    void *module = load(device, device ? "probe_gfx1030.hsaco" : "probe_gfx1100.hsaco");
    unsigned *out = alloc(40), got[10];
    void *parameters[] = {&out};
    assert_int_equal(hipModuleLaunchKernel(function(module, "sizes"), 5, 3, 2, 8, 4, 2, 0, NULL, parameters, NULL), 0);
    assert_int_equal(hipMemcpy(got, out, sizeof got, TO_HOST), 0);
    const unsigned expected[] = {5, 3, 2, 8, 4, 2, 0, 0, 0, 3};
    assert_memory_equal(got, expected, sizeof got);
    assert_int_equal(hipFree(out), 0);
    assert_int_equal(hipModuleUnload(module), 0);
  }
}

static void test_variables(void **state) {
  void *module = load(0, "probe_gfx1100.hsaco"), *table = NULL;
  size_t bytes = 0;
  int values[4];
  assert_int_equal(hipModuleGetGlobal(&table, &bytes, module, "table"), 0);
  assert_int_equal(bytes, 16);
  assert_int_equal(hipMemcpy(values, table, sizeof values, TO_HOST), 0);
  assert_true(values[0] == 10 && values[3] == 40);
  assert_int_equal(hipModuleGetGlobal(&table, &bytes, module, "no_such"), 500);
  assert_int_equal(hipModuleUnload(module), 0);
}

static void test_refusals(void **state) {
  char path[PATH_MAX];
  void *module = NULL;
  snprintf(path, sizeof path, "%s/probe_gfx1030.hsaco", folder);
  assert_int_equal(hipSetDevice(0), 0);
  assert_int_equal(hipModuleLoad(&module, path), 209);
  assert_string_equal(hipGetErrorName(209), "hipErrorNoBinaryForGpu");
  static const char nonsense[64] = "this is no code object";
  assert_int_equal(hipModuleLoadData(&module, nonsense), 200);
  assert_int_equal(hipModuleLoad(&module, "/no/such/file"), 301);
  module = load(0, "probe_gfx1100.hsaco");
  void *f = NULL;
  assert_int_equal(hipModuleGetFunction(&f, module, "no_such"), 500);
  f = function(module, "trap");
  assert_int_equal(hipModuleLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL), 9);
  assert_int_equal(hipModuleLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 9);
  assert_int_equal(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 65537, NULL, NULL, NULL), 701);
  assert_int_equal(hipModuleUnload(module), 0);
  (void)hipGetLastError();
}

// The last scalar load of the arguments may reach past their stated size.
static void test_three_last(void **state) {
  void *module = load(0, "probe_gfx1100.hsaco");
  unsigned *a = alloc(sizeof *a), *b = alloc(sizeof *b), *out = alloc(3 * sizeof *out), got[3] = {0};
  const unsigned in[2] = {1000, 2000};
  unsigned x = 7, y = 8, z = 9;
  assert_int_equal(hipMemcpy(a, &in[0], sizeof in[0], 1), 0);
  assert_int_equal(hipMemcpy(b, &in[1], sizeof in[1], 1), 0);
  void *parameters[] = {&a, &b, &out, &x, &y, &z};
  assert_int_equal(hipModuleLaunchKernel(function(module, "three_last"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
                   0);
  assert_int_equal(hipMemcpy(got, out, sizeof got, 2), 0);
  assert_int_equal(got[0], 1007);
  assert_int_equal(got[1], 2008);
  assert_int_equal(got[2], 9);
  assert_int_equal(hipFree(a), 0);
  assert_int_equal(hipFree(b), 0);
  assert_int_equal(hipFree(out), 0);
  assert_int_equal(hipModuleUnload(module), 0);
}

// What a kernel does wrong comes out where one waits for it, once.
static void test_faults(void **state) {
  void *module = load(0, "probe_gfx1100.hsaco");
  int *out = alloc(64 * sizeof *out), n = 64;
  void *parameters[] = {&out, &n};
  void *stream = NULL;
  assert_int_equal(hipStreamCreate(&stream), 0);
  assert_int_equal(
      hipModuleLaunchKernel(function(module, "past_the_end"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), 0);
  assert_int_equal(hipStreamSynchronize(stream), 700);
  assert_int_equal(hipStreamSynchronize(stream), 0);
  n = 63;
  assert_int_equal(
      hipModuleLaunchKernel(function(module, "past_the_end"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), 0);
  assert_int_equal(hipStreamSynchronize(stream), 0);
  assert_int_equal(hipModuleLaunchKernel(function(module, "trap"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), 0);
  assert_int_equal(hipDeviceSynchronize(), 719);
  assert_int_equal(hipStreamDestroy(stream), 0);
  assert_int_equal(hipFree(out), 0);
  assert_int_equal(hipModuleUnload(module), 0);
  (void)hipGetLastError();
}

// ---- what is said

static int said_from, old_error;
static void listen(void) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  old_error = dup(2);
  dup2(ends[1], 2);
  close(ends[1]);
  said_from = ends[0];
}
static const char *heard(void) {
  static char text[4096];
  size_t at = 0;
  dup2(old_error, 2);
  close(old_error);
  for (ssize_t n; (n = read(said_from, text + at, sizeof text - 1 - at)) > 0;) at += (size_t)n;
  close(said_from);
  text[at] = '\0';
  return text;
}

static const char *wild_store(void *f, void *out, int n) {
  void *parameters[] = {&out, &n};
  listen();
  int launched = hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), code = hipDeviceSynchronize();
  const char *text = heard();
  assert_true(launched == 0 && code == 700);
  return text;
}

static unsigned folded(const unsigned *in, unsigned depth) {
  unsigned below = depth ? folded(in, depth - 1) : 0;
  return below * 31 + in[depth + (below & 3)];
}

// A kernel that calls itself has a stack of the size that was asked for, and says so where it is too small.
static void test_recursion(void **state) {
  enum { LANES = 32, MOST = 120, STACK = 0 };
  for (int device = 0; device < 2; device++) {
    void *module = load(device, device ? "probe_gfx1030.hsaco" : "probe_gfx1100.hsaco"),
         *f = function(module, "recurses");
    unsigned values[MOST + LANES + 4], got[LANES], depth = 2, *in = alloc(sizeof values), *out = alloc(sizeof got);
    void *parameters[] = {&in, &out, &depth};
    size_t before = 0, most = 128 * 1024 - 16;
    for (unsigned i = 0; i < MOST + LANES + 4; i++) values[i] = i * 2654435761U;
    assert_int_equal(hipMemcpy(in, values, sizeof values, TO_DEVICE), 0);
    assert_int_equal(hipDeviceGetLimit(&before, STACK), 0);
    assert_int_equal(hipDeviceSetLimit(STACK, 512), 0);
    depth = MOST;
    listen();
    int launched = hipModuleLaunchKernel(f, 1, 1, 1, LANES, 1, 1, 0, NULL, parameters, NULL),
        code = hipDeviceSynchronize();
    const char *text = heard();
    assert_true(launched == 0 && code == 700);
    assert_non_null(strstr(text, "of its scratch, which has 512 bytes a lane."));
    assert_non_null(strstr(text, "hipDeviceSetLimit(hipLimitStackSize, bytes)"));
    assert_int_equal(hipDeviceSetLimit(STACK, most + 1), 1);
    assert_int_equal(hipDeviceSetLimit(STACK, most), 0);
    for (depth = 0; depth <= MOST; depth += MOST / 3) {
      assert_int_equal(hipModuleLaunchKernel(f, 1, 1, 1, LANES, 1, 1, 0, NULL, parameters, NULL), 0);
      assert_int_equal(hipMemcpy(got, out, sizeof got, TO_HOST), 0);
      for (unsigned lane = 0; lane < LANES; lane++) assert_int_equal(got[lane], folded(values, depth + lane));
    }
    assert_int_equal(hipDeviceSetLimit(STACK, before), 0);
    assert_int_equal(hipFree(in), 0);
    assert_int_equal(hipFree(out), 0);
    assert_int_equal(hipModuleUnload(module), 0);
  }
  (void)hipGetLastError();
}

// A wild address is named after what it was or nearly is.
static void test_names_of_addresses(void **state) {
  void *module = load(0, "probe_gfx1100.hsaco"), *f = function(module, "past_the_end");
  assert_non_null(strstr(wild_store(f, NULL, 6), "writes 4 bytes at 0x18: that is a null pointer + 24."));
  assert_non_null(strstr(wild_store(f, NULL, -1), "at 0xfffffffffffffffc: that is a null pointer - 4."));
  assert_non_null(strstr(wild_store(f, (void *)0x1234567890, 0), ": there is no allocation near it."));
  uint8_t *p = alloc(256), *later = NULL, byte = 0;
  assert_int_equal(hipFree(p), 0);
  for (int i = 0; i < 10; i++) {  // its address is not the next one's
    later = alloc(256);
    assert_ptr_not_equal(later, p);
    assert_int_equal(hipFree(later), 0);
  }
  assert_non_null(strstr(wild_store(f, p, 4), ", byte 16 of hipMalloc #"));
  assert_non_null(strstr(wild_store(f, p, 4), ", which had 256 bytes and has been freed."));
  listen();
  int copied = hipMemcpy(&byte, p, 1, TO_HOST), set = hipMemset(p, 0, 1), freed = hipFree(p);
  const char *text = heard();
  assert_true(copied == 1 && set == 1 && freed == 1);
  assert_non_null(strstr(text, "hipMemcpy of 1 bytes at"));
  assert_non_null(strstr(text, "in an allocation that had 256 bytes and has been freed"));
  assert_int_equal(hipModuleUnload(module), 0);
  (void)hipGetLastError();
}

// Addresses of freed memory are kept back only while there are others.
static void test_freed_addresses_run_out(void **state) {
  enum { BLOCK = 300 << 20, ROOM = 400 << 20 };
  struct rlimit old, tight;
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%zu", &pages), 1);
  fclose(file);
  assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
  tight = old;
  tight.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + ROOM;
  assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
  int codes[3] = {0};
  for (int i = 0; i < 3; i++) {
    void *p = NULL;
    codes[i] = hipMalloc(&p, BLOCK);
    (void)hipFree(p);
  }
  assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
  assert_true(codes[0] == 0 && codes[1] == 0 && codes[2] == 0);
}

static void test_memory(void **state) {
  assert_int_equal(hipSetDevice(0), 0);
  size_t before = 0, after = 0, total = 0;
  assert_int_equal(hipMemGetInfo(&before, &total), 0);
  uint8_t *p = alloc(1000), host[1001];
  assert_int_equal(hipMemGetInfo(&after, &total), 0);
  assert_int_equal(before - after, 1000);
  assert_int_equal(hipMemset(p, 0xa1, 1000), 0);
  assert_int_equal(hipMemcpy(host, p, 1000, TO_HOST), 0);
  assert_true(host[0] == 0xa1 && host[999] == 0xa1);
  assert_int_equal(hipMemcpy(host, p, 1001, TO_HOST), 1);  // over the end
  assert_int_equal(hipMemset(p + 1000, 0, 1), 1);
  assert_int_equal(hipMemsetD32(p, 0x01020304, 2), 0);
  assert_int_equal(hipMemcpy(host, p, 9, TO_HOST), 0);
  assert_true(host[0] == 4 && host[7] == 1 && host[8] == 0xa1);
  for (int i = 0; i < 12; i++) host[i] = (uint8_t)i;
  assert_int_equal(hipMemcpy2D(p, 100, host, 4, 3, 3, TO_DEVICE), 0);
  assert_int_equal(hipMemcpy(host, p + 200, 4, TO_HOST), 0);
  assert_true(host[0] == 8 && host[2] == 10 && host[3] == 0xa1);
  struct {
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
  } about;
  assert_int_equal(hipPointerGetAttributes(&about, p + 10), 0);
  assert_true(about.type == 2 && about.device == 0 && about.device_pointer == p + 10);
  assert_int_equal(hipFree(p + 1), 1);
  assert_int_equal(hipFree(p), 0);
  assert_int_equal(hipFree(p), 1);
  void *much = NULL;
  assert_int_equal(hipMalloc(&much, total + 1), 2);
  assert_null(much);
  (void)hipGetLastError();
}

// Blocks that leave the table in any order take no other with them.
static void test_many_blocks(void **state) {
  enum { BLOCKS = 100, BYTES = 40 };
  uint8_t *blocks[BLOCKS], host[BYTES];
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = alloc(BYTES);
    assert_int_equal(hipMemset(blocks[i], i + 1, BYTES), 0);
  }
  for (int i = 0; i < BLOCKS; i++) {
    assert_int_equal(hipFree(blocks[i * 37 % BLOCKS]), 0);
    for (int k = i + 1; k < BLOCKS; k++) {
      int left = k * 37 % BLOCKS;
      assert_int_equal(hipMemcpy(host, blocks[left], BYTES, TO_HOST), 0);
      assert_true(host[0] == left + 1 && host[BYTES - 1] == left + 1);
    }
  }
}

static void wait_for(void *gate) { sem_wait(gate); }

// Queued work has not happened yet when the call returns.
static void test_streams_are_asynchronous(void **state) {
  sem_t gate;
  sem_init(&gate, 0, 0);
  assert_int_equal(hipSetDevice(0), 0);
  void *stream = NULL, *other = NULL;
  uint8_t *pinned = NULL, *p = alloc(16);
  assert_int_equal(hipStreamCreateWithFlags(&stream, NON_BLOCKING), 0);
  assert_int_equal(hipStreamCreateWithFlags(&other, NON_BLOCKING), 0);
  assert_int_equal(hipHostMalloc((void **)&pinned, 16, 0), 0);
  memset(pinned, 1, 16);
  assert_int_equal(hipMemset(p, 2, 16), 0);
  assert_int_equal(hipDeviceSynchronize(), 0);
  assert_int_equal(hipLaunchHostFunc(stream, wait_for, &gate), 0);
  assert_int_equal(hipMemcpyAsync(pinned, p, 16, TO_HOST, stream), 0);
  assert_int_equal(pinned[0], 1);
  assert_int_equal(hipStreamQuery(stream), 600);
  assert_int_equal(hipPeekAtLastError(), 0);  // "not ready" is no error
  assert_int_equal(hipMemsetAsync(p, 3, 16, other), 0);
  assert_int_equal(hipStreamSynchronize(other), 0);  // it does not wait for the first
  sem_post(&gate);
  assert_int_equal(hipStreamSynchronize(stream), 0);
  assert_int_equal(pinned[0], 3);
  assert_int_equal(hipStreamDestroy(stream), 0);
  assert_int_equal(hipStreamDestroy(other), 0);
  assert_int_equal(hipHostFree(pinned), 0);
  assert_int_equal(hipFree(p), 0);
  sem_destroy(&gate);
}

static void set_after_a_while(void *flag) {
  usleep(30000);
  *(volatile int *)flag = 1;
}
static void copy_flag(void *flags) { ((volatile int *)flags)[1] = ((volatile int *)flags)[0]; }

// The null stream waits for blocking streams, and they for it.
// What per-thread default streams are compiled to goes to the thread's own stream, and waits for that alone.
static void test_own_streams(void **state) {
  enum { BYTES = 64 };
  sem_t gate;
  sem_init(&gate, 0, 0);
  assert_int_equal(hipSetDevice(0), 0);
  uint8_t *p = alloc(BYTES), host[BYTES], from[9];
  void *own = (void *)2, *event = NULL, *graph = NULL, *executable = NULL;
  int captures = 0;
  assert_int_equal(hipEventCreate(&event), 0);
  assert_int_equal(hipMemset_spt(p, 1, BYTES), 0);
  assert_int_equal(hipLaunchHostFunc_spt(NULL, wait_for, &gate), 0);
  assert_int_equal(hipMemsetAsync_spt(p, 7, BYTES, NULL), 0);
  assert_int_equal(hipEventRecord_spt(event, NULL), 0);
  assert_int_equal(hipStreamQuery_spt(NULL), 600);
  assert_int_equal(hipStreamQuery(own), 600);
  assert_int_equal(hipEventQuery(event), 600);
  sem_post(&gate);
  assert_int_equal(hipStreamSynchronize_spt(NULL), 0);
  assert_int_equal(hipStreamQuery_spt(NULL), 0);
  assert_int_equal(hipStreamWaitEvent_spt(NULL, event, 0), 0);
  assert_int_equal(hipMemcpy_spt(host, p, BYTES, TO_HOST), 0);
  assert_true(host[0] == 7 && host[BYTES - 1] == 7);
  for (int i = 0; i < 9; i++) from[i] = (uint8_t)(i + 20);
  assert_int_equal(hipMemcpy2D_spt(p, 10, from, 3, 3, 3, TO_DEVICE), 0);
  assert_int_equal(hipMemset2D_spt(p + 3, 10, 5, 2, 3), 0);
  assert_int_equal(hipMemcpyAsync_spt(host, p, BYTES, TO_HOST, NULL), 0);
  assert_int_equal(hipStreamSynchronize_spt(NULL), 0);
  for (int i = 0; i < 30; i++) assert_int_equal(host[i], i % 10 < 3 ? 20 + i / 10 * 3 + i % 10 : i % 10 < 5 ? 5 : 7);
  // the null stream cannot be captured, the thread's own can
  assert_int_not_equal(hipStreamBeginCapture(NULL, 0), 0);
  assert_int_equal(hipStreamBeginCapture_spt(NULL, 0), 0);
  assert_int_equal(hipStreamIsCapturing_spt(NULL, &captures), 0);
  assert_int_equal(captures, 1);
  assert_int_equal(hipMemsetAsync_spt(p, 9, BYTES, NULL), 0);
  assert_int_equal(hipStreamEndCapture_spt(NULL, &graph), 0);
  assert_int_equal(hipGraphInstantiate(&executable, graph, NULL, NULL, 0), 0);
  assert_int_equal(hipMemcpy_spt(host, p, BYTES, TO_HOST), 0);
  assert_int_equal(host[BYTES - 1], 7);
  assert_int_equal(hipGraphLaunch_spt(executable, NULL), 0);
  assert_int_equal(hipMemcpy_spt(host, p, BYTES, TO_HOST), 0);
  assert_true(host[0] == 9 && host[BYTES - 1] == 9);
  assert_int_equal(hipGraphExecDestroy(executable), 0);
  assert_int_equal(hipGraphDestroy(graph), 0);
  assert_int_equal(hipEventDestroy(event), 0);
  assert_int_equal(hipFree(p), 0);
  (void)hipGetLastError();
}

// A diamond: 1 and 2 come after 0, 3 after both.
static void test_edges_of_graphs(void **state) {
  void *graph = NULL, *nodes[4], *found[4], *from[6], *to[6];
  size_t room = 9;
  assert_int_equal(hipGraphCreate(&graph, 0), 0);
  assert_int_equal(hipGraphAddEmptyNode(&nodes[0], graph, NULL, 0), 0);
  assert_int_equal(hipGraphAddEmptyNode(&nodes[1], graph, nodes, 1), 0);
  assert_int_equal(hipGraphAddEmptyNode(&nodes[2], graph, nodes, 1), 0);
  assert_int_equal(hipGraphAddEmptyNode(&nodes[3], graph, nodes + 1, 2), 0);
  assert_int_equal(hipGraphNodeGetDependentNodes(nodes[0], NULL, &room), 0);
  assert_int_equal(room, 2);
  room = 4;
  assert_int_equal(hipGraphNodeGetDependentNodes(nodes[0], found, &room), 0);
  assert_true(room == 2 && found[0] == nodes[1] && found[1] == nodes[2] && !found[2] && !found[3]);
  room = 1;
  assert_int_equal(hipGraphNodeGetDependentNodes(nodes[0], found, &room), 0);
  assert_true(room == 1 && found[0] == nodes[1]);
  assert_int_equal(hipGraphGetEdges(graph, NULL, NULL, &room), 0);
  assert_int_equal(room, 4);
  room = 6;
  assert_int_equal(hipGraphGetEdges(graph, from, to, &room), 0);
  assert_int_equal(room, 4);
  static const int edges[4][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  for (int i = 0; i < 4; i++) assert_true(from[i] == nodes[edges[i][0]] && to[i] == nodes[edges[i][1]]);
  assert_true(!from[4] && !to[5]);
  assert_int_equal(hipGraphGetEdges(graph, from, NULL, &room), 1);
  assert_int_equal(hipGraphDestroy(graph), 0);
  (void)hipGetLastError();
}

static void test_fills_of_rows(void **state) {
  enum { PITCH = 20, ROWS = 3 };
  uint8_t *p = alloc(PITCH * ROWS), host[PITCH * ROWS];
  assert_int_equal(hipMemset(p, 0x11, PITCH * ROWS), 0);
  assert_int_equal(hipMemsetD2D8(p, PITCH, 0xa1, 3, ROWS), 0);
  assert_int_equal(hipMemsetD2D16Async(p + 4, PITCH, 0xb1b2, 2, ROWS, NULL), 0);
  assert_int_equal(hipMemsetD2D32(p + 8, PITCH, 0xc1c2c3c4, 2, ROWS), 0);
  static const uint8_t row[PITCH] = {0xa1, 0xa1, 0xa1, 0x11, 0xb2, 0xb1, 0xb2, 0xb1, 0xc4, 0xc3,
                                     0xc2, 0xc1, 0xc4, 0xc3, 0xc2, 0xc1, 0x11, 0x11, 0x11, 0x11};
  assert_int_equal(hipMemcpy(host, p, sizeof host, TO_HOST), 0);
  for (int i = 0; i < ROWS; i++) assert_memory_equal(host + i * PITCH, row, PITCH);
  assert_int_equal(hipMemsetD2D32(p + 2, PITCH, 0, 1, 1), 1);     // not aligned
  assert_int_equal(hipMemsetD2D32(p, PITCH, 0, 6, ROWS), 12);     // wider than the pitch
  assert_int_equal(hipMemsetD2D32(p, PITCH, 0, 5, ROWS + 1), 1);  // over the end
  assert_int_equal(hipFree(p), 0);
  (void)hipGetLastError();
}

static void test_the_null_stream(void **state) {
  void *stream = NULL;
  assert_int_equal(hipSetDevice(0), 0);
  assert_int_equal(hipStreamCreate(&stream), 0);
  for (int swap = 0; swap < 2; swap++) {
    volatile int flags[2] = {0, 0};
    assert_int_equal(hipLaunchHostFunc(swap ? NULL : stream, set_after_a_while, (void *)flags), 0);
    assert_int_equal(hipLaunchHostFunc(swap ? stream : NULL, copy_flag, (void *)flags), 0);
    assert_int_equal(hipDeviceSynchronize(), 0);
    assert_int_equal(flags[1], 1);
  }
  assert_int_equal(hipStreamDestroy(stream), 0);
}

static void pause_a_while(void *unused) { usleep(20000); }

// The time between two events is there when both have passed, and not before.
static void test_event_times(void **state) {
  enum { NO_TIMING = 2 };
  sem_t gate;
  sem_init(&gate, 0, 0);
  void *stream = NULL, *start = NULL, *end = NULL, *untimed = NULL;
  float milliseconds = -1;
  assert_int_equal(hipSetDevice(0), 0);
  assert_int_equal(hipStreamCreate(&stream), 0);
  assert_int_equal(hipEventCreate(&start), 0);
  assert_int_equal(hipEventCreate(&end), 0);
  assert_int_equal(hipEventCreateWithFlags(&untimed, NO_TIMING), 0);
  assert_int_equal(hipEventElapsedTime(NULL, start, end), 1);
  assert_int_equal(hipEventElapsedTime(&milliseconds, NULL, end), 400);
  assert_int_equal(hipEventElapsedTime(&milliseconds, start, end), 400);  // neither was recorded
  assert_int_equal(hipEventQuery(end), 0);
  assert_int_equal(hipEventSynchronize(end), 0);
  assert_int_equal(hipEventRecord(start, stream), 0);
  assert_int_equal(hipEventRecord(untimed, stream), 0);
  assert_int_equal(hipStreamSynchronize(stream), 0);
  assert_int_equal(hipEventElapsedTime(&milliseconds, start, end), 400);  // one was not
  assert_int_equal(hipEventElapsedTime(&milliseconds, end, start), 400);
  assert_int_equal(hipEventElapsedTime(&milliseconds, start, untimed), 400);
  for (int again = 0; again < 2; again++) {  // a time of an earlier record is none of this one
    assert_int_equal(hipEventRecord(start, stream), 0);
    assert_int_equal(hipLaunchHostFunc(stream, wait_for, &gate), 0);
    assert_int_equal(hipLaunchHostFunc(stream, pause_a_while, NULL), 0);
    assert_int_equal(hipEventRecord(end, stream), 0);
    assert_int_equal(hipEventSynchronize(start), 0);
    assert_int_equal(hipEventQuery(end), 600);
    assert_int_equal(hipEventElapsedTime(&milliseconds, start, end), 600);
    assert_int_equal(hipEventElapsedTime(&milliseconds, end, start), 600);
    assert_true(milliseconds == -1);
    sem_post(&gate);
    assert_int_equal(hipEventSynchronize(end), 0);
    assert_int_equal(hipEventQuery(end), 0);
    assert_int_equal(hipEventElapsedTime(&milliseconds, start, end), 0);
    assert_true(milliseconds >= 20);
    assert_int_equal(hipEventElapsedTime(&milliseconds, end, start), 0);
    assert_true(milliseconds <= -20);
    assert_int_equal(hipEventElapsedTime(&milliseconds, end, end), 0);
    assert_true(milliseconds == 0);
    milliseconds = -1;
  }
  assert_int_equal(hipEventDestroy(start), 0);
  assert_int_equal(hipEventDestroy(end), 0);
  assert_int_equal(hipEventDestroy(untimed), 0);
  assert_int_equal(hipStreamDestroy(stream), 0);
  sem_destroy(&gate);
  (void)hipGetLastError();
}

// A stream waits for the record that stood there when it was told to, and for no later one.
static void test_waiting_for_events(void **state) {
  sem_t gates[2];
  void *from = NULL, *to = NULL, *event = NULL;
  volatile int flags[2] = {0, 0};
  assert_int_equal(hipSetDevice(0), 0);
  assert_int_equal(hipStreamCreateWithFlags(&from, NON_BLOCKING), 0);
  assert_int_equal(hipStreamCreateWithFlags(&to, NON_BLOCKING), 0);
  assert_int_equal(hipEventCreate(&event), 0);
  for (int i = 0; i < 2; i++) sem_init(&gates[i], 0, 0);
  assert_int_equal(hipStreamWaitEvent(to, event, 0), 0);  // never recorded: nothing to wait for
  assert_int_equal(hipStreamSynchronize(to), 0);
  assert_int_equal(hipStreamWaitEvent(to, NULL, 0), 400);
  assert_int_equal(hipLaunchHostFunc(from, wait_for, &gates[0]), 0);
  assert_int_equal(hipLaunchHostFunc(from, set_after_a_while, (void *)flags), 0);
  assert_int_equal(hipEventRecord(event, from), 0);
  assert_int_equal(hipStreamWaitEvent(to, event, 0), 0);
  assert_int_equal(hipLaunchHostFunc(from, wait_for, &gates[1]), 0);
  assert_int_equal(hipEventRecord(event, from), 0);
  assert_int_equal(hipLaunchHostFunc(to, copy_flag, (void *)flags), 0);
  assert_int_equal(hipStreamQuery(to), 600);
  sem_post(&gates[0]);
  assert_int_equal(hipStreamSynchronize(to), 0);
  assert_int_equal(flags[1], 1);
  assert_int_equal(hipEventQuery(event), 600);
  sem_post(&gates[1]);
  assert_int_equal(hipEventSynchronize(event), 0);
  assert_int_equal(hipEventDestroy(event), 0);
  assert_int_equal(hipStreamDestroy(from), 0);
  assert_int_equal(hipStreamDestroy(to), 0);
  for (int i = 0; i < 2; i++) sem_destroy(&gates[i]);
  (void)hipGetLastError();
}

// One stream waits for what another writes: at least, equal, any bit, not all bits; of the bits of a mask.
static void test_values_in_streams(void **state) {
  enum { CASES = 9 };
  static const struct {
    unsigned condition;
    uint64_t value, mask, no, yes;
    bool wide;
  } cases[CASES] = {{0, 5, UINT32_MAX, 4, 5, false},
                    {0, 5, UINT32_MAX, 0, 77, false},
                    {1, 5, UINT32_MAX, 6, 5, false},
                    {1, 5, 0xff, 0x106, 0x305, false},
                    {2, 6, UINT32_MAX, 9, 2, false},
                    {3, 0xfffffff0, UINT32_MAX, 0xf, 0xe, false},
                    {0, UINT64_C(1) << 40, UINT64_MAX, UINT32_MAX, UINT64_C(1) << 41, true},
                    {1, 3, UINT64_MAX, (UINT64_C(1) << 32) + 3, 3, true},
                    {3, ~UINT64_C(1), UINT64_MAX, 1, 0, true}};
  void *waits = NULL, *writes = NULL;
  assert_int_equal(hipSetDevice(0), 0);
  assert_int_equal(hipStreamCreateWithFlags(&waits, NON_BLOCKING), 0);
  assert_int_equal(hipStreamCreateWithFlags(&writes, NON_BLOCKING), 0);
  uint64_t *p = alloc(16);
  for (int i = 0; i < CASES; i++) {
    bool of_64 = cases[i].wide;
    for (int k = 0; k < 2; k++) {
      uint64_t value = k ? cases[i].yes : cases[i].no;
      assert_int_equal(
          of_64 ? hipStreamWriteValue64(writes, p, value, 0) : hipStreamWriteValue32(writes, p, (uint32_t)value, 0), 0);
      assert_int_equal(hipStreamSynchronize(writes), 0);
      if (k) break;
      assert_int_equal(
          of_64 ? hipStreamWaitValue64(waits, p, cases[i].value, cases[i].condition, cases[i].mask)
                : hipStreamWaitValue32(waits, p, (uint32_t)cases[i].value, cases[i].condition, (uint32_t)cases[i].mask),
          0);
      usleep(2000);
      assert_int_equal(hipStreamQuery(waits), 600);
    }
    assert_int_equal(hipStreamSynchronize(waits), 0);
  }
  assert_int_equal(hipStreamWriteValue32(writes, (char *)p + 2, 0, 0), 1);
  assert_int_equal(hipStreamWriteValue64(writes, p + 2, 0, 0), 1);  // past the end
  assert_int_equal(hipStreamWaitValue32(writes, p, 0, 4, 0), 1);
  assert_int_equal(hipStreamDestroy(waits), 0);
  assert_int_equal(hipStreamDestroy(writes), 0);
  assert_int_equal(hipFree(p), 0);
  (void)hipGetLastError();
}

// All groups of a cooperative launch are there at once, so that they can wait for each other.
static void test_cooperative_launches(void **state) {
  enum { ROUNDS = 3, THREADS = 64, WGPS = 48 };
  void *module = load(0, "probe_gfx1100.hsaco"), *f = function(module, "meets");
  int each = 0, cooperative = 0;
  assert_int_equal(setenv("RDNA_EMULATE_THREADS", "1", 1), 0);
  assert_int_equal(hipDeviceGetAttribute(&cooperative, 10, 0), 0);
  assert_int_equal(cooperative, 1);
  assert_int_equal(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, THREADS, 0), 0);
  assert_int_equal(each, 32);  // 4 SIMDs with 16 waves each hold so many groups of 2 waves
  for (int threads = 65; threads <= 96; threads += 31) {
    int of_three = 0;
    assert_int_equal(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&of_three, f, threads, 0), 0);
    assert_int_equal(of_three, 21);
  }
  unsigned most = (unsigned)each * WGPS, rounds = ROUNDS;
  unsigned *sum = alloc(sizeof *sum), *seen = alloc(most * sizeof *seen), *got = malloc(most * sizeof *got);
  void *parameters[] = {&sum, &seen, &rounds};
  const unsigned counts[] = {1, 7, most};
  for (int i = 0; i < 3; i++) {
    unsigned groups = counts[i];
    assert_int_equal(hipMemset(sum, 0, sizeof *sum), 0);
    if (i != 1) {
      assert_int_equal(hipModuleLaunchCooperativeKernel(f, groups, 1, 1, THREADS, 1, 1, 0, NULL, parameters), 0);
    } else {
      struct {
        uint32_t id, padding, value[16];
      } attribute = {2, 0, {1}};
      struct {
        unsigned grid[3], block[3], lds;
        void *stream, *attributes;
        unsigned count;
      } configuration = {{groups, 1, 1}, {THREADS, 1, 1}, 0, NULL, &attribute, 1};
      assert_int_equal(hipDrvLaunchKernelEx(&configuration, f, parameters, NULL), 0);
    }
    assert_int_equal(hipMemcpy(got, seen, groups * sizeof *got, TO_HOST), 0);
    unsigned least = ROUNDS * (groups * (groups + 1) / 2);
    for (unsigned k = 0; k < groups; k++) assert_int_equal(got[k], least);
  }
  assert_int_equal(unsetenv("RDNA_EMULATE_THREADS"), 0);
  assert_int_equal(hipModuleLaunchCooperativeKernel(f, most + 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters), 720);
  free(got);
  // an ordinary launch has nothing to meet at, and RDNA 2 a barrier of its own
  for (int device = 0; device < 2; device++) {
    void *other = load(device, device ? "probe_gfx1030.hsaco" : "probe_gfx1100.hsaco");
    uint64_t *out = alloc(sizeof *out), value = 5;
    void *one[] = {&out};
    assert_int_equal(hipModuleLaunchKernel(function(other, "hidden_sync"), 1, 1, 1, 1, 1, 1, 0, NULL, one, NULL), 0);
    assert_int_equal(hipMemcpy(&value, out, sizeof value, TO_HOST), 0);
    assert_int_equal(value, 0);
    if (device) {
      assert_int_equal(hipModuleLaunchCooperativeKernel(function(other, "hidden_sync"), 1, 1, 1, 1, 1, 1, 0, NULL, one),
                       0);
      assert_int_equal(hipMemcpy(&value, out, sizeof value, TO_HOST), 0);
      assert_int_equal(value, 1);
    }
    assert_int_equal(hipFree(out), 0);
    assert_int_equal(hipModuleUnload(other), 0);
  }
  assert_int_equal(hipSetDevice(0), 0);
  assert_int_equal(hipFree(sum), 0);
  assert_int_equal(hipFree(seen), 0);
  assert_int_equal(hipModuleUnload(module), 0);
  (void)hipGetLastError();
}

static void test_names(void **state) {
  void *found = NULL;
  int status = -1;
  assert_int_equal(hipGetProcAddress("hipMalloc", &found, 600, 0, &status), 0);
  assert_ptr_equal(found, (void *)(uintptr_t)hipMalloc);
  assert_int_equal(status, 0);
  assert_int_equal(hipGetProcAddress("hipGetDeviceProperties", &found, 600, 0, &status), 0);
  assert_ptr_equal(found, (void *)(uintptr_t)hipGetDevicePropertiesR0600);
  assert_int_equal(hipGetProcAddress("hipNoSuch", &found, 600, 0, &status), 500);
  assert_int_equal(status, 1);
  assert_int_equal(hipGetDriverEntryPoint("hipMalloc", &found, 0, &status), 0);
  assert_ptr_equal(found, (void *)(uintptr_t)hipMalloc);
  // what is missing is not given out, and says so by its name, once, to who calls it
  assert_int_equal(hipGetProcAddress("hipBindTexture", &found, 700, 0, &status), 500);
  assert_null(found);
  assert_int_equal(status, 1);
  listen();
  int first = hipBindTexture(), second = hipBindTexture();
  const char *text = heard();
  assert_true(first == 801 && second == 801);
  const char *said = strstr(text, "hipBindTexture is not in the emulator");
  assert_non_null(said);
  assert_null(strstr(said + 1, "hipBindTexture"));
  (void)hipGetLastError();
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_devices),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_hidden_arguments),
      cmocka_unit_test(test_variables),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_three_last),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_many_blocks),
      cmocka_unit_test(test_recursion),
      cmocka_unit_test(test_names_of_addresses),
      cmocka_unit_test(test_freed_addresses_run_out),
      cmocka_unit_test(test_streams_are_asynchronous),
      cmocka_unit_test(test_own_streams),
      cmocka_unit_test(test_edges_of_graphs),
      cmocka_unit_test(test_fills_of_rows),
      cmocka_unit_test(test_the_null_stream),
      cmocka_unit_test(test_event_times),
      cmocka_unit_test(test_waiting_for_events),
      cmocka_unit_test(test_values_in_streams),
      cmocka_unit_test(test_cooperative_launches),
      cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
