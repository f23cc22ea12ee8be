/* Kernels compiled at run time, by the clang of this machine, run on an emulated gfx1100 with the checker. */
#include "rdna/compile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/testing.h"
#include "kernel/compile.h"
#include "kernel/fake_nvrtc.h"
#include "rdna/memory.h"

static char folder[64] = "/tmp/rdna-compile-test-XXXXXX", counter[128], wrapper[128];
static int folders;
static rdna_device *device;
static rdna_stream *stream;

static const char add_source[] =
    "__global__ void add(const float* a, const float* b, float* c, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) c[i] = a[i] + b[i];\n"
    "}\n";

/* A cache folder that nothing used before. */
static const char *fresh_folder(char path[128]) {
  snprintf(path, 128, "%s/cache%d", folder, folders++);
  return path;
}

static rdna_code *compile_into(const char *source, const char *target, const char *cache) {
  rdna_code *code;
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = target, .cache = cache};
  assert_ok(rdna_compile(source, &options, &code));
  return code;
}

static rdna_code_report report_of(const rdna_code *code) {
  rdna_code_report report;
  rdna_code_get_report(code, &report);
  return report;
}

/* How often the compiler was started: |wrapper| writes a letter each time. */
static int compiler_runs(void) {
  struct stat found;
  return stat(counter, &found) == 0 ? (int)found.st_size : 0;
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* ---- launching ---------------------------------------------------------------------------------------------- */

static void *upload(const void *data, size_t size) {
  void *memory;
  assert_ok(rdna_memory_alloc(device, size, stream, &memory));
  assert_ok(rdna_copy_to_device(stream, memory, data, size));
  return memory;
}

static void download(void *out, void *memory, size_t size) {
  assert_ok(rdna_copy_to_host(stream, out, memory, size));
  assert_ok(rdna_stream_synchronize(stream));
  assert_ok(rdna_memory_free(device, memory));
}

#define POINTER(variable, kind, bytes) \
  (rdna_launch_argument) { .data = &(variable), .is_pointer = true, .number = kind, .size = bytes }
#define VALUE(variable, kind) \
  (rdna_launch_argument) { .data = &(variable), .number = kind, .size = sizeof(variable) }

static rdna_module *load(const char *source, const char *name, int *out_kernel) {
  char path[128];
  rdna_code *code = compile_into(source, "gfx1100", fresh_folder(path));
  rdna_module *module;
  assert_ok(rdna_code_find(code, name, out_kernel));
  assert_ok(rdna_module_load(device, code, &module));
  rdna_code_release(code);
  return module;
}

static void test_add(void **state) {
  enum { N = 1003 };
  float a[N], b[N], c[N];
  for (int i = 0; i < N; i++) a[i] = (float)rand() / 1e6f, b[i] = (float)rand() / 1e7f, c[i] = NAN;
  int add, n = N;
  rdna_module *module = load(add_source, "add", &add);
  void *da = upload(a, sizeof a), *db = upload(b, sizeof b), *dc = upload(c, sizeof c);
  rdna_launch_argument arguments[] = {POINTER(da, RDNA_NUMBER_FLOAT, 4), POINTER(db, RDNA_NUMBER_FLOAT, 4),
                                      POINTER(dc, RDNA_NUMBER_FLOAT, 4), VALUE(n, RDNA_NUMBER_INTEGER)};
  rdna_launch_shape shape = {{(N + 255) / 256, 1, 1}, {256, 1, 1}, 0};
  assert_ok(rdna_module_launch(stream, module, add, &shape, arguments, 4));
  assert_string_equal(rdna_stream_last_kernel(stream), "add");
  rdna_module_release(module); /* waits for it */
  assert_string_equal(rdna_stream_last_kernel(stream), "add");
  download(c, dc, sizeof c);
  for (int i = 0; i < N; i++) assert_true(c[i] == a[i] + b[i]);
  assert_ok(rdna_memory_free(device, da));
  assert_ok(rdna_memory_free(device, db));
}

/* Three dimensions in groups and grid, LDS asked for at launch, all widths of arguments, each at its offset. */
static void test_shapes_and_widths(void **state) {
  static const char source[] =
      "struct three { int a; short b; char c; };\n"
      "__global__ void mix(long long* out, bool flag, short s, three t, double d, half h, unsigned char u) {\n"
      "  extern __shared__ int shared[];\n"
      "  int inner = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
      "  int outer = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;\n"
      "  int threads = blockDim.x * blockDim.y * blockDim.z;\n"
      "  shared[inner] = inner * 3 + outer;\n"
      "  __syncthreads();\n"
      "  out[outer * threads + inner] = shared[threads - 1 - inner] + flag + s + t.a + t.b + t.c + (long long)d +\n"
      "                                 (long long)(float)h + u;\n"
      "}\n";
  enum { X = 3, Y = 5, Z = 2, THREADS = X * Y * Z, GROUPS = 2 * 1 * 3 };
  int64_t out[THREADS * GROUPS];
  int mix;
  rdna_module *module = load(source, "mix", &mix);
  memset(out, 0xff, sizeof out);
  void *memory = upload(out, sizeof out);
  bool flag = true;
  int16_t s = -300;
  struct three {
    int a;
    short b;
    char c;
  } t = {100000, 200, 3};
  double d = 1e12;
  uint16_t h = 0x4900; /* 10 */
  uint8_t u = 250;
  rdna_launch_argument arguments[] = {POINTER(memory, RDNA_NUMBER_INTEGER, 8),
                                      VALUE(flag, RDNA_NUMBER_INTEGER),
                                      VALUE(s, RDNA_NUMBER_INTEGER),
                                      VALUE(t, RDNA_NUMBER_UNKNOWN),
                                      VALUE(d, RDNA_NUMBER_FLOAT),
                                      VALUE(h, RDNA_NUMBER_FLOAT),
                                      VALUE(u, RDNA_NUMBER_INTEGER)};
  rdna_launch_shape shape = {{2, 1, 3}, {X, Y, Z}, THREADS * 4};
  assert_ok(rdna_module_launch(stream, module, mix, &shape, arguments, 7));
  download(out, memory, sizeof out);
  for (int g = 0; g < GROUPS; g++)
    for (int i = 0; i < THREADS; i++)
      assert_int_equal(out[g * THREADS + i],
                       (THREADS - 1 - i) * 3 + g + 1 - 300 + 100000 + 200 + 3 + 1000000000000ll + 10 + 250);
  shape.grid[1] = 0; /* no work */
  assert_ok(rdna_module_launch(stream, module, mix, &shape, arguments, 7));
  rdna_module_release(module);
}

/* What does not fit is refused and nothing runs: the memory stays as it was. */
static void test_refused_launches(void **state) {
  float values[4] = {1, 2, 3, 4}, after[4];
  int add, n = 4;
  int64_t wide = 4;
  float real = 4;
  rdna_module *module = load(add_source, "add", &add);
  void *m = upload(values, sizeof values);
  rdna_launch_shape shape = {{1, 1, 1}, {64, 1, 1}, 0};
  const rdna_launch_argument f = POINTER(m, RDNA_NUMBER_FLOAT, 4), i = VALUE(n, RDNA_NUMBER_INTEGER);
#define REFUSED(shape, count, sentence, ...)                                                                      \
  assert_refused(rdna_module_launch(stream, module, add, &(shape), (rdna_launch_argument[]){__VA_ARGS__}, count), \
                 RDNA_INVALID_ARGUMENT, "'add'", sentence)
  REFUSED(shape, 3, "takes 4 arguments, and 3 were given", f, f, f);
  REFUSED(shape, 5, "takes 4 arguments, and 5 were given", f, f, f, i, i);
  REFUSED(shape, 4, "argument 1, const float* a: it is a pointer to memory of the GPU, and a value was given", i, f, f,
          i);
  REFUSED(shape, 4, "argument 4, int n: it is a value, and a pointer was given", f, f, f, f);
  REFUSED(shape, 4, "argument 4, int n: it has 4 bytes, and 8 were given", f, f, f, VALUE(wide, RDNA_NUMBER_INTEGER));
  REFUSED(shape, 4, "kind integer, and one of kind float was given", f, f, f, VALUE(real, RDNA_NUMBER_FLOAT));
  REFUSED(shape, 4, "argument 2, const float* b: it points to a 4-byte float, and memory of a 8-byte float", f,
          POINTER(m, RDNA_NUMBER_FLOAT, 8), f, i);
  REFUSED(shape, 4, "and memory of a 4-byte integer", f, POINTER(m, RDNA_NUMBER_INTEGER, 4), f, i);
  REFUSED(shape, 4, "it has no data", f, f, f, ((rdna_launch_argument){.number = RDNA_NUMBER_INTEGER, .size = 4}));
  rdna_launch_shape bad = {{1, 1, 1}, {1025, 1, 1}, 0};
  REFUSED(bad, 4, "side 0 of the block is 1025", f, f, f, i);
  bad = (rdna_launch_shape){{1, 1, 1}, {64, 0, 1}, 0};
  REFUSED(bad, 4, "side 1 of the block is 0", f, f, f, i);
  bad = (rdna_launch_shape){{1, 1, 1}, {64, 32, 1}, 0};
  REFUSED(bad, 4, "is 2048 threads", f, f, f, i);
  bad = (rdna_launch_shape){{1, 1, 1}, {64, 1, 1}, 70000};
  REFUSED(bad, 4, "70000 asked for", f, f, f, i);
  bad = (rdna_launch_shape){{1u << 30, 1, 1}, {64, 1, 1}, 0};
  REFUSED(bad, 4, "more than 2^32 - 1", f, f, f, i);
  const rdna_launch_argument good[] = {f, f, f, i};
  assert_refused(rdna_module_launch(stream, module, 1, &shape, good, 4), RDNA_INVALID_ARGUMENT, "has 1 kernels");
  assert_refused(rdna_module_launch(NULL, module, add, &shape, good, 4), RDNA_INVALID_ARGUMENT, "needs a stream");
  rdna_device *host;
  assert_ok(rdna_device_open("host", &host));
  assert_refused(rdna_module_launch(rdna_device_default_stream(host), module, add, &shape, good, 4),
                 RDNA_INVALID_ARGUMENT, "'add'", "another device");
  rdna_device_release(host);
  download(after, m, sizeof after);
  assert_memory_equal(after, values, sizeof values);
  rdna_module_release(module);

  module = load("__global__ __launch_bounds__(128, 2) void few(int* p) { *p = 1; }", "few", &add);
  m = upload(values, sizeof values);
  shape.block[0] = 129;
  assert_refused(rdna_module_launch(stream, module, add, &shape, &POINTER(m, RDNA_NUMBER_INTEGER, 4), 1),
                 RDNA_INVALID_ARGUMENT, "128");
  shape.block[0] = 1, shape.block[1] = 2, shape.block[2] = 128;
  assert_refused(rdna_module_launch(stream, module, add, &shape, &POINTER(m, RDNA_NUMBER_INTEGER, 4), 1),
                 RDNA_INVALID_ARGUMENT, "128 is the most by its launch bounds");
  download(after, m, sizeof after);
  assert_memory_equal(after, values, sizeof values);
  rdna_module_release(module);
}

static void test_other_devices(void **state) {
  char path[128];
  rdna_device *host;
  rdna_module *module;
  rdna_code *code = compile_into(add_source, "gfx1030", fresh_folder(path));
  assert_ok(rdna_device_open("host", &host));
  assert_refused(rdna_module_load(host, code, &module), RDNA_UNSUPPORTED, "gfx1030", "runs none of a GPU");
  assert_refused(rdna_module_load(device, code, &module), RDNA_UNSUPPORTED, "gfx1030", "compile it for gfx1100");
  assert_null(module);
  rdna_device_release(host);
  rdna_code_release(code);
}

/* ---- what code says of itself ------------------------------------------------------------------------------- */

static void check_kernel(const rdna_code *code, const char *name, int count, const char *const *types,
                         const char *const *names) {
  int index;
  assert_ok(rdna_code_find(code, name, &index));
  const rdna_code_kernel *kernel = rdna_code_get_kernel(code, index);
  assert_int_equal(kernel->argument_count, count);
  for (int i = 0; i < count; i++) {
    assert_string_equal(kernel->arguments[i].type, types[i]);
    if (names) assert_string_equal(kernel->arguments[i].name, names[i]);
  }
}
#define TYPES(...) \
  (const char *const[]) { __VA_ARGS__ }

/* The types that the source has are those that are read back, on AMD from metadata and symbol, on NVIDIA from PTX. */
static void test_descriptions(void **state) {
  static const char source[] =
      "namespace outer { namespace inner {\n"
      "__global__ void nested(float* x, const float* const y, const float* z, float* w, int) {}\n"
      "template <typename t, int n> __global__ void instance(const t* x, t* y, t v, const t* z) {}\n"
      "template __global__ void instance<half, 4>(const half*, half*, half, const half*);\n"
      "template <typename t, int n> __global__ void instance(const t* x, t* y, t v, const t* z);\n"
      "} }\n"
      "struct pair { int a, b; };\n"
      "__global__ void many(bool a, char b, signed char c, unsigned char d, short e, unsigned short f, int g,\n"
      "                     unsigned h, long i, unsigned long j, long long k, unsigned long long l, double m,\n"
      "                     hip_bfloat16* n, half o, float4* p, pair q, void* r, float** s, const pair* t, const void* "
      "u,\n"
      "                     const double* __restrict__ v, const double* w) {}\n"
      "extern \"C\" __global__ void plain(float* x, int n) {}\n"
      "__global__ void none() {}\n";
  static const char *const targets[] = {"gfx1100", "gfx906", "gfx90a", "gfx1030", "gfx1201", "sm_80"};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    char path[128];
    rdna_code *code = compile_into(source, targets[i], fresh_folder(path));
    bool amd = targets[i][0] == 'g';
    assert_string_equal(report_of(code).target, targets[i]);
    assert_int_equal(rdna_code_kernel_count(code), 5);
    check_kernel(code, "nested", 5, TYPES("float*", "const float*", "const float*", "float*", "int"),
                 amd ? TYPES("x", "y", "z", "w", "") : NULL);
    check_kernel(code, "instance", 4, TYPES("const _Float16*", "_Float16*", "_Float16", "const _Float16*"), NULL);
    check_kernel(
        code, "many", 23,
        TYPES("bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long",
              "unsigned long", "long long", "unsigned long long", "double", "__bf16*", "_Float16", "float4*", "pair",
              "void*", "float**", "const pair*", "const void*", "const double*", "const double*"),
        NULL);
    check_kernel(code, "plain", 2, TYPES("", ""), amd ? TYPES("x", "n") : NULL);
    check_kernel(code, "none", 0, NULL, NULL);
    int index;
    assert_ok(rdna_code_find(code, "many", &index));
    const rdna_code_kernel *many = rdna_code_get_kernel(code, index);
    assert_int_equal(many->arguments[13].number, RDNA_NUMBER_BFLOAT);
    assert_int_equal(many->arguments[13].number_size, 2);
    assert_int_equal(many->arguments[16].offset, 80); /* as C lays it out */
    assert_int_equal(many->arguments[16].size, 8);
    assert_int_equal(many->arguments[18].number, RDNA_NUMBER_UNKNOWN); /* float**: to pointers */
    assert_true(many->arguments[18].is_pointer && !many->arguments[16].is_pointer);
    assert_int_equal(many->wave_size, targets[i][3] == '9' ? 64 : 32);
    assert_ok(rdna_code_find(code, many->symbol, &index));
    assert_refused(rdna_code_find(code, "add", &index), RDNA_NOT_FOUND, "'add'", "nested", "many (_Z4many", "plain");
    assert_null(rdna_code_get_kernel(code, 5));
    rdna_code_release(code);
  }
}

static void test_ambiguous_and_none(void **state) {
  char path[128];
  int index;
  rdna_code *code = compile_into(
      "template <class t> __global__ void twice(t* x) { *x *= 2; }\n"
      "template __global__ void twice<int>(int*);\n"
      "template __global__ void twice<float>(float*);\n",
      "gfx1100", fresh_folder(path));
  assert_refused(rdna_code_find(code, "twice", &index), RDNA_INVALID_ARGUMENT, "2 kernels", "_Z5twiceIiEvPT_");
  assert_ok(rdna_code_find(code, "_Z5twiceIfEvPT_", &index));
  assert_int_equal(rdna_code_get_kernel(code, index)->arguments[0].number, RDNA_NUMBER_FLOAT);
  rdna_code_release(code);
  code = compile_into("__device__ int x;", "gfx1100", path);
  assert_int_equal(rdna_code_kernel_count(code), 0);
  assert_refused(rdna_code_find(code, "add", &index), RDNA_NOT_FOUND, "none");
  rdna_code_release(code);
}

/* ---- compiling ---------------------------------------------------------------------------------------------- */

static void test_errors(void **state) {
  char path[128];
  rdna_code *code;
  const char *flags[] = {"-DN=4"};
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "gfx1100", .name = "wave \"one\".hip",
                                  .cache = fresh_folder(path)};
  assert_refused(rdna_compile("\n\n__global__ void f(float* x) { x[0] = y; }\n", &options, &code), RDNA_BAD_DATA,
                 "wave \"one\".hip:3:", "use of undeclared identifier 'y'");
  assert_null(code);
  assert_refused(rdna_compile("int f(", &options, &code), RDNA_BAD_DATA, ":1:");
  assert_refused(rdna_compile("#error \"asked for\"\n", &options, &code), RDNA_BAD_DATA, "asked for");
  options.flags = flags, options.flag_count = 1;
  rdna_code_release(compile_into(add_source, "gfx1100", path));
  assert_ok(rdna_compile("static_assert(N == 4); __global__ void f() {}", &options, &code));
  assert_string_equal(report_of(code).warnings, "");
  rdna_code_release(code);
  flags[0] = "-Wall";
  assert_ok(rdna_compile("__global__ void f() { int unused; }", &options, &code));
  assert_non_null(strstr(report_of(code).warnings, "unused variable 'unused'"));
  rdna_code_release(code);
  static const char *const bad[] = {"-o", "/tmp/x", "-x", "-O4", "-Ofast", "", "-D", "@file", "-Xclang", "-include"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    flags[0] = bad[i];
    assert_refused(rdna_compile(add_source, &options, &code), RDNA_INVALID_ARGUMENT, "is no flag for a kernel");
  }
  options.flag_count = 0;
  static const char *const targets[] = {"gfx1", "sm_", "sm_x", "", "gfx1100:xnack+"};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    options.target = targets[i];
    assert_refused(rdna_compile(add_source, &options, &code), RDNA_INVALID_ARGUMENT, "gfx1100", "sm_80");
  }
  options.target = NULL;
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_INVALID_ARGUMENT, "target");
  assert_refused(rdna_compile(NULL, &options, &code), RDNA_INVALID_ARGUMENT, "source");
  assert_refused(rdna_compile(add_source, NULL, &code), RDNA_INVALID_ARGUMENT, "options");
}

static void test_no_compiler(void **state) {
  rdna_code *code;
  char path[128];
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "gfx1100", .cache = fresh_folder(path)};
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, "/nowhere/clang"));
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_UNAVAILABLE, "/nowhere/clang");
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, "/nowhere/x.software/clang.so.d"));
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_UNAVAILABLE, "hiprtc");
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, "/nowhere/x.so.d/x.software"));
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_UNAVAILABLE, "which is no program");
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, "hiprtc"));
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_UNAVAILABLE, "hiprtc");
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, ""));
  char *before = strdup(getenv("PATH"));
  setenv("PATH", folder, 1);
  setenv("ROCM_PATH", folder, 1);
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_UNAVAILABLE, "clang-19", "RDNA_COMPILER");
  setenv("PATH", before, 1);
  unsetenv("ROCM_PATH");
  free(before);
  code = compile_into(add_source, "gfx1100", path); /* an emulated card is no reason for hiprtc */
  assert_non_null(strstr(report_of(code).compiler, "clang"));
  rdna_code_release(code);
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, wrapper));
}

/* AMD's own compiler, where Debian's HIP has it; in a process of its own, since this one has the emulator. */
static void test_hiprtc(void **state) {
  static const char runtime[] = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";
  if (access(runtime, R_OK) != 0) skip_because("%s is not here", runtime);
  pid_t child = fork();
  if (child == 0) {
    rdna_code *code;
    int add;
    rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "gfx1030", .name = "add.hip", .cache = "off"};
    bool good = rdna__config_set(RDNA__CONFIG_COMPILER, runtime) == RDNA_OK &&
                rdna_compile(add_source, &options, &code) == RDNA_OK && rdna_code_find(code, "add", &add) == RDNA_OK;
    if (good) {
      const rdna_code_kernel *kernel = rdna_code_get_kernel(code, add);
      good = kernel->argument_count == 4 && !strcmp(kernel->arguments[0].type, "const float*") &&
             !strcmp(report_of(code).target, "gfx1030") && strstr(report_of(code).compiler, "libamdhip64");
    }
    if (!good) fprintf(stderr, "%s\n", rdna_last_error());
    bool refused = rdna_compile("\n__global__ void f() { y; }", &options, &code) == RDNA_BAD_DATA &&
                   strstr(rdna_last_error(), "add.hip:2") && strstr(rdna_last_error(), "undeclared identifier 'y'");
    if (!refused) fprintf(stderr, "%s\n", rdna_last_error());
    fflush(stderr);
    _exit(good && refused ? 0 : 1);
  }
  int exit_status;
  assert_int_equal(waitpid(child, &exit_status, 0), child);
  assert_true(WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0);
}

/* NVIDIA's, of which there is a stand-in. */
static void test_nvrtc(void **state) {
  char cache[128];
  rdna_code *code;
  int add;
  const char *flags[] = {"-ffp-contract=off", "-Wall", "-O2", "-DN=4", "-iquote/no where"},
             *unknown[] = {"-mllvm-of-clang"};
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "sm_90",
                                  .name = "add.hip",         .flags = flags,
                                  .flag_count = 5,           .cache = fresh_folder(cache)};
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, TEST_FAKE_NVRTC));
  assert_ok(rdna_compile(add_source, &options, &code));
  fake_nvrtc_record *record = dlsym(dlopen(TEST_FAKE_NVRTC, RTLD_NOW), "fake_nvrtc");
  assert_non_null(record);
  assert_ok(rdna_code_find(code, "add", &add));
  assert_string_equal(report_of(code).target, "sm_90");
  assert_string_equal(report_of(code).warnings, "");
  assert_non_null(strstr(report_of(code).compiler, "libnvrtc"));
  assert_string_equal(record->options,
                      "-std=c++17\n-default-device\n--fmad=false\n-DN=4\n-I/no where\n--gpu-architecture=compute_90\n");
  rdna_code_release(code);
  code = compile_into(add_source, "sm_80", cache); /* of another target; and again */
  assert_non_null(strstr(record->options, "compute_80"));
  rdna_code_release(code);
  code = compile_into(add_source, "sm_80", cache);
  assert_true(report_of(code).cached);
  rdna_code_release(code);
  assert_int_equal(record->compilations, 2);
  rdna__compiler_settle("sm_90");
  assert_int_equal(record->compilations, 3);
  assert_refused(rdna_compile("__global__ void f() { fake_error; }", &options, &code), RDNA_BAD_DATA, "add.hip",
                 "sm_90", "identifier \"fake_error\" is undefined");
  options.flags = unknown, options.flag_count = 1;
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_INVALID_ARGUMENT, "-mllvm-of-clang", "libnvrtc");
  options.target = "gfx1100";
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_UNAVAILABLE, "libnvrtc", "hiprtc");
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, "nvrtc"));
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_UNAVAILABLE, "nvrtc", "AMD's");
  options.target = "sm_90";
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, "hiprtc"));
  assert_refused(rdna_compile(add_source, &options, &code), RDNA_UNAVAILABLE, "hiprtc", "NVIDIA's");
  assert_int_equal(record->programs, 0);
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, wrapper));
  int runs = compiler_runs();
  rdna__compiler_settle("gfx1100"); /* a process of its own needs nothing of the kind */
  assert_int_equal(compiler_runs(), runs);
}

/* ---- the cache ---------------------------------------------------------------------------------------------- */

static void test_cached(void **state) {
  char path[128];
  size_t first_size, second_size;
  fresh_folder(path);
  int runs = compiler_runs();
  rdna_code *first = compile_into(add_source, "gfx1100", path);
  assert_false(report_of(first).cached);
  assert_int_equal(compiler_runs(), runs + 1);
  double best = 1e9;
  for (int i = 0; i < 5; i++) { /* the quickest of a few: a busy machine may hold up any one */
    rdna_code *second = compile_into(add_source, "gfx1100", path);
    assert_true(report_of(second).cached);
    if (report_of(second).milliseconds < best) best = report_of(second).milliseconds;
    const void *second_data = rdna_code_data(second, &second_size);
    const void *first_data = rdna_code_data(first, &first_size);
    assert_int_equal(first_size, second_size);
    assert_memory_equal(first_data, second_data, first_size);
    rdna_code_release(second);
  }
  assert_int_equal(compiler_runs(), runs + 1);
  double ratio = report_of(first).milliseconds / best;
  print_message("compiled in %.1f ms, from the cache in %.3f ms: %.0f times faster\n", report_of(first).milliseconds,
                best, ratio);
  assert_true(ratio >= 50);
  rdna_code_release(first);

  /* each of these is another key */
  rdna_code_release(compile_into(add_source, "gfx1030", path));
  rdna_code *code;
  const char *flags[] = {"-O1"};
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "gfx1100", .flags = flags, .flag_count = 1,
                                  .cache = path};
  assert_ok(rdna_compile(add_source, &options, &code));
  assert_false(report_of(code).cached);
  rdna_code_release(code);
  flags[0] = "-O2";
  assert_ok(rdna_compile(add_source, &options, &code));
  assert_false(report_of(code).cached);
  rdna_code_release(code);
  assert_int_equal(compiler_runs(), runs + 4);
  assert_ok(rdna_compile_clear_cache(path));
  code = compile_into(add_source, "gfx1100", path);
  assert_false(report_of(code).cached);
  rdna_code_release(code);
  assert_ok(rdna_compile_clear_cache("/nowhere/at/all"));
  runs = compiler_runs();
  for (int i = 0; i < 2; i++) rdna_code_release(compile_into(add_source, "gfx1100", "off"));
  assert_int_equal(compiler_runs(), runs + 2);
}

/* The only entry of a folder. */
static void entry_of(const char *cache, char path[512]) {
  char command[256];
  snprintf(command, sizeof command, "ls %s/*.code", cache);
  FILE *list = popen(command, "r");
  assert_non_null(fgets(path, 512, list));
  path[strcspn(path, "\n")] = 0;
  pclose(list);
}

static void test_corrupt(void **state) {
  char cache[128], path[512];
  fresh_folder(cache);
  rdna_code_release(compile_into(add_source, "gfx1100", cache));
  entry_of(cache, path);
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  for (int round = 0; round < 6; round++) {
    int runs = compiler_runs();
    if (round < 2) { /* cut short, also to nothing */
      assert_int_equal(truncate(path, round ? found.st_size / 2 : 0), 0);
    } else {
      int fd = open(path, O_RDWR);
      off_t at = round == 2 ? 0 : round == 3 ? 9 : rand() % found.st_size;
      uint8_t byte;
      assert_int_equal(pread(fd, &byte, 1, at), 1);
      byte ^= (uint8_t)(1 << rand() % 8);
      assert_int_equal(pwrite(fd, &byte, 1, at), 1);
      close(fd);
    }
    rdna_code *code = compile_into(add_source, "gfx1100", cache);
    assert_false(report_of(code).cached);
    assert_non_null(strstr(report_of(code).notice, "made again"));
    assert_int_equal(compiler_runs(), runs + 1);
    rdna_code_release(code);
    code = compile_into(add_source, "gfx1100", cache);
    assert_true(report_of(code).cached);
    assert_string_equal(report_of(code).notice, "");
    rdna_code_release(code);
  }
}

/* Processes, and threads of this one, that want the same kernel at the same moment. */
static void *compile_in_thread(void *cache) {
  rdna_code *code;
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "gfx1100", .cache = cache};
  if (rdna_compile(add_source, &options, &code) != RDNA_OK) return NULL;
  rdna_code_release(code);
  return cache;
}

static void test_compiled_once(void **state) {
  enum { PROCESSES = 3, THREADS = 3 };
  char cache[128];
  fresh_folder(cache);
  int runs = compiler_runs(), gate[2];
  assert_int_equal(pipe(gate), 0);
  pid_t children[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    if (children[i]) continue;
    char byte;
    close(gate[1]);
    (void)!read(gate[0], &byte, 1); /* until all are there */
    _exit(compile_in_thread(cache) ? 0 : 1);
  }
  close(gate[1]);
  close(gate[0]);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, compile_in_thread, cache), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    assert_non_null(result);
  }
  for (int i = 0; i < PROCESSES; i++) {
    int exit_status;
    assert_int_equal(waitpid(children[i], &exit_status, 0), children[i]);
    assert_true(WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0);
  }
  assert_int_equal(compiler_runs(), runs + 1);
}

/* A process that ends in the middle of its work leaves its lock to the next. */
static void test_killed_holder(void **state) {
  char cache[128], path[512];
  int pipe_ends[2];
  fresh_folder(cache);
  rdna_code_release(compile_into(add_source, "gfx1100", cache));
  entry_of(cache, path);
  assert_int_equal(unlink(path), 0);
  strcpy(strrchr(path, '.'), ".lock");
  assert_int_equal(pipe(pipe_ends), 0);
  pid_t child = fork();
  if (child == 0) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    flock(fd, LOCK_EX);
    (void)!write(pipe_ends[1], "x", 1);
    for (;;) pause();
  }
  char byte;
  assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
  pthread_t thread;
  void *result;
  assert_int_equal(pthread_create(&thread, NULL, compile_in_thread, cache), 0);
  struct timespec little = {.tv_nsec = 100000000};
  nanosleep(&little, NULL);
  assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY); /* it waits */
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  pthread_join(thread, &result);
  assert_non_null(result);
  assert_int_equal(access(path, F_OK), -1); /* the lock's file is gone */
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

/* Folders that cannot be used cost the keeping alone, and that is said. */
static void test_unusable_folders(void **state) {
  char file[128], path[256], open_to_all[128];
  fresh_folder(file);
  write_text(file, "no folder");
  snprintf(path, sizeof path, "%s/below", file);
  fresh_folder(open_to_all);
  assert_int_equal(mkdir(open_to_all, 0777), 0);
  assert_int_equal(chmod(open_to_all, 0777), 0);
  /* nobody, not even root, makes files in /proc/self */
  const struct {
    const char *path, *why;
  } cases[] = {{file, "not a folder"},
               {path, "cannot make"},
               {"/proc/self", "cannot write into"},
               {"/proc/nothing", "cannot make"},
               {open_to_all, "other users"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int runs = compiler_runs();
    rdna_code *code = compile_into(add_source, "gfx1100", cases[i].path);
    assert_false(report_of(code).cached);
    assert_non_null(strstr(report_of(code).notice, cases[i].why));
    assert_non_null(strstr(report_of(code).notice, cases[i].path));
    assert_int_equal(compiler_runs(), runs + 1);
    assert_int_equal(rdna_code_kernel_count(code), 1);
    rdna_code_release(code);
  }
}

static int entries_of(const char *cache) {
  char command[256], text[32];
  snprintf(command, sizeof command, "ls %s | grep -c code$", cache);
  FILE *list = popen(command, "r");
  assert_non_null(fgets(text, sizeof text, list));
  pclose(list);
  return atoi(text);
}

static bool was_cached(int kernel, const char *cache, uint64_t entries, uint64_t bytes) {
  char source[64];
  rdna_code *code;
  snprintf(source, sizeof source, "__global__ void k%d(int* x) { *x = %d; }", kernel, kernel);
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "gfx1100", .cache = cache,
                                  .cache_entries = entries, .cache_bytes = bytes};
  assert_ok(rdna_compile(source, &options, &code));
  bool cached = report_of(code).cached;
  rdna_code_release(code);
  struct timespec tick = {.tv_nsec = 12000000}; /* longer than a file's time is exact */
  nanosleep(&tick, NULL);
  return cached;
}

static void test_least_recently_used(void **state) {
  char cache[128], path[512];
  fresh_folder(cache);
  for (int i = 0; i < 3; i++) assert_false(was_cached(i, cache, 3, 0));
  assert_true(was_cached(0, cache, 3, 0));
  assert_false(was_cached(3, cache, 3, 0)); /* 1 goes */
  assert_int_equal(entries_of(cache), 3);
  assert_true(was_cached(0, cache, 3, 0));
  assert_true(was_cached(2, cache, 3, 0));
  assert_true(was_cached(3, cache, 3, 0));
  assert_false(was_cached(1, cache, 3, 0)); /* 0 goes */
  assert_true(was_cached(2, cache, 3, 0));
  assert_int_equal(entries_of(cache), 3);

  fresh_folder(cache);
  assert_false(was_cached(0, cache, 0, 0));
  entry_of(cache, path);
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  uint64_t two = 2 * (uint64_t)found.st_size + 200; /* more digits, more bytes */
  assert_false(was_cached(1, cache, 0, two));
  assert_int_equal(entries_of(cache), 2);
  assert_false(was_cached(2, cache, 0, two));
  assert_int_equal(entries_of(cache), 2);
  assert_true(was_cached(1, cache, 0, two));
  assert_false(was_cached(0, cache, 0, two));
}

/* A file that the source includes is part of it. */
static void test_included_files(void **state) {
  char cache[128], header[200], include[200];
  fresh_folder(cache);
  snprintf(include, sizeof include, "-I%s/in cluded", folder);
  snprintf(header, sizeof header, "%s/in cluded", folder);
  mkdir(header, 0700);
  snprintf(header, sizeof header, "%s/in cluded/it's mine.h", folder);
  write_text(header, "#define N 64\n");
  const char *flags[] = {include};
  rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "gfx1100", .flags = flags, .flag_count = 1,
                                  .cache = cache};
  static const char source[] =
      "#include <stdint.h>\n#include <hip/hip_runtime.h>\n#include \"it's mine.h\"\n#include <math.h>\n"
      "__global__ __launch_bounds__(N) void f(uint32_t* x) { *x = N; }";
  static const bool cached[] = {false, true, false, true};
  for (int i = 0; i < 4; i++) {
    rdna_code *code;
    if (i == 2) write_text(header, "#define N 128\n");
    assert_ok(rdna_compile(source, &options, &code));
    assert_int_equal(report_of(code).cached, cached[i]);
    assert_int_equal(rdna_code_get_kernel(code, 0)->max_group_threads, i < 2 ? 64 : 128);
    rdna_code_release(code);
  }
}

/* ---- what stands in for HIP's headers ----------------------------------------------------------------------- */

typedef struct math_case {
  const char *name;
  double (*want)(double);
  double low, high, ulps;
} math_case;

static double rsqrt_of(double x) { return 1 / sqrt(x); }

/* Functions of one float against the C library's in double; the bounds are a little above what HIP's documentation
 * gives for its own. */
static void test_math(void **state) {
  static const math_case cases[] = {
      {"expf", exp, -80, 80, 2},
      {"exp2f", exp2, -100, 100, 2},
      {"expm1f", expm1, -10, 10, 3},
      {"logf", log, 1e-30, 1e30, 2},
      {"log2f", log2, 1e-30, 1e30, 2},
      {"log10f", log10, 1e-30, 1e30, 2},
      {"log1pf", log1p, -0.9, 1e6, 3},
      {"sinf", sin, -1e4, 1e4, 2},
      {"cosf", cos, -1e4, 1e4, 2},
      {"tanf", tan, -1e3, 1e3, 2},
      {"asinf", asin, -1, 1, 2},
      {"acosf", acos, -1, 1, 2},
      {"atanf", atan, -50, 50, 2},
      {"sinhf", sinh, -50, 50, 2},
      {"coshf", cosh, -50, 50, 2},
      {"tanhf", tanh, -9, 9, 3},
      {"erff", erf, -4, 4, 3},
      {"sqrtf", sqrt, 0, 1e10, 1},
      {"rsqrtf", rsqrt_of, 1e-10, 1e10, 2},
      {"floorf", floor, -1e3, 1e3, 0},
      {"ceilf", ceil, -1e3, 1e3, 0},
      {"roundf", round, -1e3, 1e3, 0},
      {"truncf", trunc, -1e3, 1e3, 0},
      {"rintf", rint, -1e3, 1e3, 0},
      {"fabsf", fabs, -1e3, 1e3, 0},
      {"sin", sin, -1e4, 1e4, 2},
  };
  enum { COUNT = sizeof cases / sizeof *cases, N = 64 };
  char source[8192];
  size_t used = (size_t)snprintf(source, sizeof source, "__global__ void all(const float* x, float* y) {\n");
  static float x[COUNT * N], y[COUNT * N];
  for (int c = 0; c < COUNT; c++) {
    used += (size_t)snprintf(source + used, sizeof source - used, "  { int i = %d + threadIdx.x; y[i] = %s(x[i]); }\n",
                             c * N, cases[c].name);
    for (int i = 0; i < N; i++) {
      double t = (double)rand() / RAND_MAX;
      bool wide = cases[c].low > 0 && cases[c].high / cases[c].low > 1e6;
      x[c * N + i] = (float)(wide ? cases[c].low * pow(cases[c].high / cases[c].low, t)
                                  : cases[c].low + t * (cases[c].high - cases[c].low));
    }
  }
  snprintf(source + used, sizeof source - used, "}\n");
  int all;
  rdna_module *module = load(source, "all", &all);
  void *dx = upload(x, sizeof x), *dy = upload(y, sizeof y);
  rdna_launch_argument arguments[] = {POINTER(dx, RDNA_NUMBER_FLOAT, 4), POINTER(dy, RDNA_NUMBER_FLOAT, 4)};
  rdna_launch_shape shape = {{1, 1, 1}, {N, 1, 1}, 0};
  assert_ok(rdna_module_launch(stream, module, all, &shape, arguments, 2));
  download(y, dy, sizeof y);
  assert_ok(rdna_memory_free(device, dx));
  for (int i = 0; i < COUNT * N; i++) {
    const math_case *c = &cases[i / N];
    double want = c->want((double)x[i]), unit = ldexp(1, ilogb(want == 0 ? 1e-38 : want) - 23);
    if (!(fabs(want - (double)y[i]) <= c->ulps * unit))
      fail_msg("%s(%.9g) is %.9g, not %.9g", c->name, (double)x[i], (double)y[i], want);
  }
  rdna_module_release(module);
}

/* Functions of two numbers, shuffles, votes, atomics, integers, 16-bit floats. */
static void test_the_rest_of_hip(void **state) {
  static const char source[] =
      "#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n"
      "__constant__ int table[4] = {10, 20, 30, 40};\n"
      "__device__ __forceinline__ int helper(int x) { return x + table[x & 3]; }\n"
      "__global__ void rest(const float* x, float* f, int* k, unsigned* sum) {\n"
      "  unsigned t = threadIdx.x;\n"
      "  float a = x[t], b = x[t + 32];\n"
      "  f[t] = powf(a, b);          f[t + 32] = fmodf(a * 100, b);  f[t + 64] = atan2f(a - 2, b);\n"
      "  f[t + 96] = hypotf(a, b);   f[t + 128] = fminf(a, b);       f[t + 160] = __half2float(__float2half(a));\n"
      "  f[t + 192] = (float)(hip_bfloat16)a;  f[t + 224] = fmaf(a, b, 1.0f);  f[t + 256] = fmax(a, b);\n"
      "  float4 v = make_float4(a, b, a, b);  f[t + 288] = v.x * v.y + v.w;  f[t + 320] = __expf(a);\n"
      "  k[t] = __shfl(t * 3, 5);  k[t + 32] = __shfl_xor(t * 3, 6);  k[t + 64] = __shfl_down(t * 3, 3, 8);\n"
      "  k[t + 96] = __shfl_up(t * 3, 2);  k[t + 128] = __popc(t * 77);  k[t + 160] = __clz(t);\n"
      "  k[t + 192] = __ffs(t * 8);  k[t + 224] = max(min((int)t, 20), 4);  k[t + 256] = (int)__ballot(t % 3 == 0);\n"
      "  k[t + 288] = helper(t);  k[t + 320] = __any(t == 9) + 2 * __all(t < 9);\n"
      "  atomicAdd(&sum[0], t);  atomicMax(&sum[1], t * 5);  atomicAdd((float*)&sum[2], 0.5f);\n"
      "  atomicOr(&sum[3], 1u << t);  atomicMin((int*)&sum[4], -(int)t);\n"
      "}\n";
  enum { N = 32, F = 11, K = 11 };
  static float x[2 * N], f[F * N];
  int k[K * N], rest;
  uint32_t sum[5] = {0};
  for (int i = 0; i < 2 * N; i++) x[i] = 0.3f + 4 * (float)rand() / (float)RAND_MAX;
  rdna_module *module = load(source, "rest", &rest);
  void *dx = upload(x, sizeof x), *df = upload(f, sizeof f), *dk = upload(k, sizeof k), *ds = upload(sum, sizeof sum);
  rdna_launch_argument arguments[] = {POINTER(dx, RDNA_NUMBER_FLOAT, 4), POINTER(df, RDNA_NUMBER_FLOAT, 4),
                                      POINTER(dk, RDNA_NUMBER_INTEGER, 4), POINTER(ds, RDNA_NUMBER_INTEGER, 4)};
  rdna_launch_shape shape = {{1, 1, 1}, {N, 1, 1}, 0};
  assert_ok(rdna_module_launch(stream, module, rest, &shape, arguments, 4));
  download(f, df, sizeof f);
  download(k, dk, sizeof k);
  download(sum, ds, sizeof sum);
  assert_ok(rdna_memory_free(device, dx));
  for (int t = 0; t < N; t++) {
    double a = (double)x[t], b = (double)x[t + N];
    const double want[F] = {pow(a, b),
                            fmod((double)(x[t] * 100), b),
                            atan2(a - 2, b),
                            hypot(a, b),
                            fmin(a, b),
                            a,
                            a,
                            a * b + 1,
                            fmax(a, b),
                            a * b + b,
                            exp(a)};
    const double relative[F] = {1e-6, 1e-6, 1e-6, 1e-6, 0, 1.0 / 2048, 1.0 / 256, 1e-7, 0, 1e-6, 1e-5};
    for (int i = 0; i < F; i++)
      if (!(fabs(want[i] - (double)f[i * N + t]) <= relative[i] * fabs(want[i]) + (i == 1 || i == 2 ? 2e-7 : 0)))
        fail_msg("float %d of thread %d: %.9g, not %.9g", i, t, (double)f[i * N + t], want[i]);
    static const int table[] = {10, 20, 30, 40};
    const int ints[K] = {15,
                         (t ^ 6) * 3,
                         (t % 8 + 3 < 8 ? t + 3 : t) * 3,
                         (t < 2 ? t : t - 2) * 3,
                         __builtin_popcount((unsigned)t * 77),
                         t ? __builtin_clz((unsigned)t) : 32,
                         __builtin_ffs(t * 8),
                         t > 20  ? 20
                         : t < 4 ? 4
                                 : t,
                         0x49249249,
                         t + table[t & 3],
                         1};
    for (int i = 0; i < K; i++)
      if (k[i * N + t] != ints[i]) fail_msg("integer %d of thread %d: %d, not %d", i, t, k[i * N + t], ints[i]);
  }
  float halves;
  memcpy(&halves, &sum[2], sizeof halves);
  assert_int_equal(sum[0], 31 * 32 / 2);
  assert_int_equal(sum[1], 155);
  assert_true(halves == 16);
  assert_int_equal(sum[3], UINT32_MAX);
  assert_int_equal((int32_t)sum[4], -31);
  rdna_module_release(module);
}

static int set_up(void **state) {
  if (!mkdtemp(folder)) return -1;
  snprintf(counter, sizeof counter, "%s/runs", folder);
  snprintf(wrapper, sizeof wrapper, "%s/counted", folder);
  rdna__compiler compiler;
  assert_ok(rdna__clang_find("", &compiler));
  char script[RDNA__COMPILE_PATH + 200];
  snprintf(script, sizeof script, "#!/bin/sh\nprintf x >>%s\nexec %s \"$@\"\n", counter, compiler.path);
  write_text(wrapper, script);
  chmod(wrapper, 0700);
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, wrapper));
  assert_ok(rdna_device_open("hip", &device));
  stream = rdna_device_default_stream(device);
  return 0;
}

static int tear_down(void **state) {
  char command[128];
  rdna_device_release(device);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(void) {
  setenv("RDNA_EMULATE", "gfx1100", 1);
  setenv("RDNA_EMULATE_CHECK", "1", 1);
  setenv("RDNA_HIP_LIBRARY", TEST_EMULATOR, 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_add),
      cmocka_unit_test(test_shapes_and_widths),
      cmocka_unit_test(test_refused_launches),
      cmocka_unit_test(test_other_devices),
      cmocka_unit_test(test_descriptions),
      cmocka_unit_test(test_ambiguous_and_none),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_no_compiler),
      cmocka_unit_test(test_hiprtc),
      cmocka_unit_test(test_nvrtc),
      cmocka_unit_test(test_cached),
      cmocka_unit_test(test_corrupt),
      cmocka_unit_test(test_compiled_once),
      cmocka_unit_test(test_killed_holder),
      cmocka_unit_test(test_unusable_folders),
      cmocka_unit_test(test_least_recently_used),
      cmocka_unit_test(test_included_files),
      cmocka_unit_test(test_math),
      cmocka_unit_test(test_the_rest_of_hip),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
