/* Vendors' own compilers as libraries, whose interfaces are the same but for the names: AMD's hiprtc ("hiprtc.h" of
 * HIP, from 4.2 on), with AMD's headers, and NVIDIA's NVRTC ("NVRTC" in CUDA's documentation, from 11 on), which makes
 * PTX of CUDA's C++. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "device/device.h"
#include "device/driver.h"
#include "device/driver/library.h"
#include "kernel/compile.h"

enum { RESULT_COMPILATION = 6 };

typedef struct rtc_calls {
  int (*version)(int *major, int *minor);
  const char *(*error_string)(int result);
  int (*create)(void **out_program, const char *source, const char *name, int header_count, const char *const *headers,
                const char *const *header_names);
  int (*compile)(void *program, int option_count, const char *const *options);
  int (*log_size)(void *program, size_t *out_size);
  int (*log)(void *program, char *out_log);
  int (*code_size)(void *program, size_t *out_size);
  int (*code)(void *program, char *out_code);
  int (*destroy)(void **program);
} rtc_calls;

#define SYMBOLS(prefix, code_name)                                             \
  {                                                                            \
    {prefix "Version", offsetof(rtc_calls, version), true},                    \
        {prefix "GetErrorString", offsetof(rtc_calls, error_string), true},    \
        {prefix "CreateProgram", offsetof(rtc_calls, create), true},           \
        {prefix "CompileProgram", offsetof(rtc_calls, compile), true},         \
        {prefix "GetProgramLogSize", offsetof(rtc_calls, log_size), true},     \
        {prefix "GetProgramLog", offsetof(rtc_calls, log), true},              \
        {prefix "Get" code_name "Size", offsetof(rtc_calls, code_size), true}, \
        {prefix "Get" code_name, offsetof(rtc_calls, code), true}, {           \
      prefix "DestroyProgram", offsetof(rtc_calls, destroy), true              \
    }                                                                          \
  }
enum { SYMBOL_COUNT = 9 };

/* A kind of library, found once and never closed again; under the lock until it is bound. */
typedef struct rtc {
  const char *name; /* "hiprtc" */
  rdna__symbol symbols[SYMBOL_COUNT];
  rdna__library library;
  rtc_calls calls;
  bool bound;
  char identity[64];
} rtc;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rtc hiprtc = {.name = "hiprtc", .symbols = SYMBOLS("hiprtc", "Code")};
static rtc nvrtc = {.name = "nvrtc", .symbols = SYMBOLS("nvrtc", "PTX")};

static bool bind(rtc *r) {
  int major = 0, minor = 0;
  if (rdna__library_bind(&r->library, r->symbols, SYMBOL_COUNT, &r->calls)) return false;
  if (r->calls.version(&major, &minor) != 0) return false;
  snprintf(r->identity, sizeof r->identity, "%s %d.%d", r->name, major, minor);
  return true;
}

/* ---- where they are ------------------------------------------------------------------------------------------ */

/* The library of the HIP runtime in use when that has real cards, or "". Where another driver is named HIP is not
 * loaded. */
static const char *real_runtime(void) {
  const char *wanted = rdna__config_text(RDNA__CONFIG_DRIVER);
  const rdna_driver_info *driver = NULL;
  rdna_device_info device;
  if (strcmp(wanted, "auto") != 0 && strcmp(wanted, "hip") != 0) return "";
  if (!rdna__driver_find("hip", &driver) || driver->status != RDNA_OK) return "";
  if (rdna_device_describe("hip", 0, &device) != RDNA_OK || device.emulated) return "";
  return driver->library;
}

static bool open_hiprtc(void) {
  rdna__library *library = &hiprtc.library;
  const char *runtime = real_runtime(), *slash = strrchr(runtime, '/');
  char folder[RDNA__COMPILE_PATH];
  if (!slash) return false;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - runtime), runtime);
  if (rdna__library_open_newest(library, folder, "libhiprtc.so") && bind(&hiprtc)) return true;
  return rdna__library_open(library, runtime, true) && bind(&hiprtc); /* before HIP 6 the runtime has it too */
}

/* Of the process, of a wheel, of the toolkit, or wherever the linker looks. */
static bool open_nvrtc(void) {
  static const char *const wheels[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
  rdna__library *library = &nvrtc.library;
  if (rdna__library_open_loaded(library, "libnvrtc.so") && bind(&nvrtc)) return true;
  for (size_t i = 0; i < sizeof wheels / sizeof *wheels; i++)
    if (rdna__library_open_wheel(library, wheels[i], "libnvrtc.so") && bind(&nvrtc)) return true;
  if (rdna__library_open_below(library, getenv("CUDA_HOME"), "lib64", "libnvrtc.so") && bind(&nvrtc)) return true;
  if (rdna__library_open_in_folders(library, "/usr/local/cuda/lib64", "libnvrtc.so") && bind(&nvrtc)) return true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (rdna__library_open(library, names[i], false) && bind(&nvrtc)) return true;
  return false;
}

static bool find(rtc *r, bool (*open_usual)(void), const char *chosen, rdna__compiler *compiler) {
  pthread_mutex_lock(&lock);
  if (!r->bound) r->bound = chosen[0] ? rdna__library_open(&r->library, chosen, false) && bind(r) : open_usual();
  if (r->bound) snprintf(compiler->path, sizeof compiler->path, "%s", r->library.path);
  bool found = r->bound && rdna__compiler_identify(compiler, r->identity);
  pthread_mutex_unlock(&lock);
  return found;
}

/* ---- flags --------------------------------------------------------------------------------------------------- */

/* Writes to |options| what NVRTC calls the job's flags ("Supported compile options"), and returns how many they are, or
 * -1: it has nothing for one of them. Warnings are no matter of meaning, and levels of -O it does not have. |room| is
 * for what is written anew, as many bytes as the flags have. */
static int nvrtc_flags(const rdna__compile_job *job, const char **options, char *room, const char **out_unknown) {
  int count = 2;
  options[0] = "-std=c++17";
  options[1] = "-default-device"; /* a function without a word of where it runs is the GPU's */
  for (int i = 0; i < job->flag_count; i++) {
    const char *flag = job->flags[i];
    if (!strncmp(flag, "-D", 2) || !strncmp(flag, "-U", 2) || !strncmp(flag, "-I", 2)) {
      options[count++] = flag;
    } else if (!strncmp(flag, "-iquote", 7)) { /* it has one kind of folder */
      options[count++] = room;
      room += sprintf(room, "-I%s", flag + strlen("-iquote")) + 1;
    } else if (!strncmp(flag, "-std=", 5)) {
      options[0] = flag; /* which it takes once */
    } else if (!strcmp(flag, "-ffp-contract=off")) {
      options[count++] = "--fmad=false";
    } else if (!strcmp(flag, "-ffast-math")) {
      options[count++] = "--use_fast_math";
    } else if (strncmp(flag, "-W", 2) != 0 && strncmp(flag, "-O", 2) != 0 && strcmp(flag, "-ffp-contract=fast") != 0) {
      *out_unknown = flag;
      return -1;
    }
  }
  return count;
}

static int hiprtc_flags(const rdna__compile_job *job, const char **options) {
  options[0] = "-O3";
  for (int i = 0; i < job->flag_count; i++) options[i + 1] = job->flags[i];
  return job->flag_count + 1;
}

/* ---- compiling ----------------------------------------------------------------------------------------------- */

static rdna_status failed(const rtc *r, const char *what, int result) {
  return rdna__fail(RDNA_DEVICE_ERROR, "%s of %s: %s (%d); RDNA_COMPILER=clang takes another compiler", what,
                    r->library.path, r->calls.error_string(result), result);
}

/* The log, or NULL. */
static char *read_log(const rtc *r, void *program) {
  size_t size = 0;
  if (r->calls.log_size(program, &size) != 0 || size < 2) return NULL;
  char *log = calloc(1, size + 1);
  if (log && r->calls.log(program, log) == 0) return log;
  free(log);
  return NULL;
}

static rdna_status read_code(const rtc *r, void *program, rdna__compile_result *result) {
  int code = r->calls.code_size(program, &result->size);
  if (code != 0 || !result->size) return failed(r, "the size of the code", code);
  result->data = malloc(result->size);
  if (!result->data) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes of code", result->size);
  code = r->calls.code(program, result->data);
  return code == 0 ? RDNA_OK : failed(r, "the code", code);
}

static size_t flag_bytes(const rdna__compile_job *job) {
  size_t bytes = 1;
  for (int i = 0; i < job->flag_count; i++) bytes += strlen(job->flags[i]) + 1;
  return bytes;
}

static rdna_status compile_program(const rtc *r, const rdna__compile_job *job, void *program,
                                   rdna__compile_result *result) {
  const char **options = calloc((size_t)job->flag_count + 4, sizeof *options), *unknown = NULL;
  char target[64], *room = malloc(flag_bytes(job));
  if (!options || !room) {
    free(options);
    free(room);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the compiler's options");
  }
  int count = r == &nvrtc ? nvrtc_flags(job, options, room, &unknown) : hiprtc_flags(job, options);
  if (count < 0) {
    free(options);
    free(room);
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s has no flag '%s'; RDNA_COMPILER=clang takes another compiler",
                      r->library.path, unknown);
  }
  if (r == &nvrtc)
    snprintf(target, sizeof target, "--gpu-architecture=compute_%s", job->target + strlen("sm_"));
  else
    snprintf(target, sizeof target, "--offload-arch=%s", job->target);
  options[count++] = target;
  int code = r->calls.compile(program, count, options);
  free(options);
  free(room);
  result->text = read_log(r, program);
  if (code == RESULT_COMPILATION)
    return rdna__fail(RDNA_BAD_DATA, "%s does not compile for %s: %s", job->name, job->target,
                      result->text ? result->text : "the compiler said nothing");
  if (code != 0)
    return rdna__fail(RDNA_DEVICE_ERROR, "%s of %s for %s: %s (%d)%s%s; RDNA_COMPILER=clang takes another compiler",
                      "compiling", r->library.path, job->target, r->calls.error_string(code), code,
                      result->text ? ": " : "", result->text ? result->text : "");
  return read_code(r, program, result);
}

static rdna_status compile(const rtc *r, const rdna__compile_job *job, rdna__compile_result *result) {
  /* headers of HIP's and C's, of which NVRTC has what is in them built in */
  static const char *const names[] = {"hip/hip_runtime.h", "cuda_runtime.h", "math.h", "cmath", "assert.h"};
  static const char *const texts[] = {"", "", "", "", "#undef assert\n#define assert(condition) ((void)0)\n"};
  void *program = NULL;
  char line[RDNA__COMPILE_PATH], *source = NULL;
  rdna__compile_line(job, line); /* not all versions tell the compiler the name that they are given */
  if (asprintf(&source, "%s%s", line, job->source) < 0)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the source of %s", job->name);
  int headers = r == &nvrtc ? (int)(sizeof names / sizeof *names) : 0;
  int code = r->calls.create(&program, source, job->name, headers, headers ? texts : NULL, headers ? names : NULL);
  free(source); /* the program has a copy */
  if (code != 0) return failed(r, "making a program", code);
  rdna_status status = compile_program(r, job, program, result);
  r->calls.destroy(&program);
  return status;
}

static rdna_status compile_hip(const rdna__compiler *compiler, const rdna__compile_job *job,
                               rdna__compile_result *result) {
  return compile(&hiprtc, job, result);
}
static rdna_status compile_cuda(const rdna__compiler *compiler, const rdna__compile_job *job,
                                rdna__compile_result *result) {
  return compile(&nvrtc, job, result);
}

bool rdna__hiprtc_find(const char *chosen, rdna__compiler *compiler) {
  compiler->compile = compile_hip;
  compiler->is_library = true;
  return find(&hiprtc, open_hiprtc, chosen, compiler);
}
bool rdna__nvrtc_find(const char *chosen, rdna__compiler *compiler) {
  compiler->compile = compile_cuda;
  compiler->is_library = true;
  return find(&nvrtc, open_nvrtc, chosen, compiler);
}
