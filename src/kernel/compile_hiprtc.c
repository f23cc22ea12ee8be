/* AMD's own compiler as a library, with AMD's headers. Its interface: "hiprtc.h" of HIP, the same from 4.2 on. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"
#include "device/driver/library.h"
#include "kernel/compile.h"

enum { RESULT_COMPILATION = 6 };

typedef struct hiprtc_calls {
  int (*version)(int *major, int *minor);
  const char *(*error_string)(int result);
  int (*create)(void **out_program, const char *source, const char *name, int header_count, const char **headers,
                const char **header_names);
  int (*compile)(void *program, int option_count, const char **options);
  int (*log_size)(void *program, size_t *out_size);
  int (*log)(void *program, char *out_log);
  int (*code_size)(void *program, size_t *out_size);
  int (*code)(void *program, char *out_code);
  int (*destroy)(void **program);
} hiprtc_calls;

static const rdna__symbol symbols[] = {
    {"hiprtcVersion", offsetof(hiprtc_calls, version), true},
    {"hiprtcGetErrorString", offsetof(hiprtc_calls, error_string), true},
    {"hiprtcCreateProgram", offsetof(hiprtc_calls, create), true},
    {"hiprtcCompileProgram", offsetof(hiprtc_calls, compile), true},
    {"hiprtcGetProgramLogSize", offsetof(hiprtc_calls, log_size), true},
    {"hiprtcGetProgramLog", offsetof(hiprtc_calls, log), true},
    {"hiprtcGetCodeSize", offsetof(hiprtc_calls, code_size), true},
    {"hiprtcGetCode", offsetof(hiprtc_calls, code), true},
    {"hiprtcDestroyProgram", offsetof(hiprtc_calls, destroy), true},
};

/* Found once; a library is never closed again. Under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rdna__library library;
static hiprtc_calls calls;
static bool bound;
static char identity[64];

static bool bind(void) {
  int major = 0, minor = 0;
  if (rdna__library_bind(&library, symbols, sizeof symbols / sizeof *symbols, &calls)) return false;
  if (calls.version(&major, &minor) != 0) return false;
  snprintf(identity, sizeof identity, "hiprtc %d.%d", major, minor);
  return true;
}

/* The library of the HIP runtime in use when that has real cards, or "". */
static const char *real_runtime(void) {
  rdna_driver_info driver;
  rdna_device_info device;
  for (int i = 0; i < rdna_driver_count(); i++) {
    if (rdna_driver_get_info(i, &driver) != RDNA_OK || strcmp(driver.name, "hip") != 0) continue;
    if (driver.status != RDNA_OK || rdna_device_describe("hip", 0, &device) != RDNA_OK || device.emulated) return "";
    return driver.library;
  }
  return "";
}

/* Under the lock. */
static bool open_library(const char *chosen) {
  if (chosen[0]) return rdna__library_open(&library, chosen, false) && bind();
  const char *runtime = real_runtime(), *slash = strrchr(runtime, '/');
  char folder[RDNA__COMPILE_PATH];
  if (!slash) return false;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - runtime), runtime);
  if (rdna__library_open_newest(&library, folder, "libhiprtc.so") && bind()) return true;
  return rdna__library_open(&library, runtime, true) && bind(); /* before HIP 6 the runtime has it too */
}

static rdna_status failed(const rdna__compiler *compiler, const char *what, int result) {
  return rdna__fail(RDNA_DEVICE_ERROR, "%s of %s: %s (%d); RDNA_COMPILER=clang takes another compiler", what,
                    compiler->path, calls.error_string(result), result);
}

/* The log, or NULL. */
static char *read_log(void *program) {
  size_t size = 0;
  if (calls.log_size(program, &size) != 0 || size < 2) return NULL;
  char *log = calloc(1, size + 1);
  if (log && calls.log(program, log) == 0) return log;
  free(log);
  return NULL;
}

static rdna_status read_code(const rdna__compiler *compiler, void *program, rdna__compile_result *result) {
  int code = calls.code_size(program, &result->size);
  if (code != 0 || !result->size) return failed(compiler, "hiprtcGetCodeSize", code);
  result->data = malloc(result->size);
  if (!result->data) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes of code", result->size);
  code = calls.code(program, result->data);
  return code == 0 ? RDNA_OK : failed(compiler, "hiprtcGetCode", code);
}

static rdna_status compile_program(const rdna__compiler *compiler, const rdna__compile_job *job, void *program,
                                   rdna__compile_result *result) {
  const char **options = calloc((size_t)job->flag_count + 3, sizeof *options);
  char target[64];
  if (!options) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the compiler's options");
  int count = 0;
  snprintf(target, sizeof target, "--offload-arch=%s", job->target);
  options[count++] = target;
  options[count++] = "-O3";
  for (int i = 0; i < job->flag_count; i++) options[count++] = job->flags[i];
  int code = calls.compile(program, count, options);
  free(options);
  result->text = read_log(program);
  if (code == RESULT_COMPILATION)
    return rdna__fail(RDNA_BAD_DATA, "%s does not compile for %s: %s", job->name, job->target,
                      result->text ? result->text : "hiprtc said nothing");
  if (code != 0) return failed(compiler, "hiprtcCompileProgram", code);
  return read_code(compiler, program, result);
}

static rdna_status compile(const rdna__compiler *compiler, const rdna__compile_job *job, rdna__compile_result *result) {
  void *program = NULL;
  char line[RDNA__COMPILE_PATH], *source = NULL;
  rdna__compile_line(job, line); /* not all versions tell the compiler the name that they are given */
  if (asprintf(&source, "%s%s", line, job->source) < 0)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the source of %s", job->name);
  int code = calls.create(&program, source, job->name, 0, NULL, NULL);
  free(source); /* the program has a copy */
  if (code != 0) return failed(compiler, "hiprtcCreateProgram", code);
  rdna_status status = compile_program(compiler, job, program, result);
  calls.destroy(&program);
  return status;
}

bool rdna__hiprtc_find(const char *chosen, rdna__compiler *compiler) {
  pthread_mutex_lock(&lock);
  bound = bound || open_library(chosen);
  compiler->compile = compile;
  if (bound) snprintf(compiler->path, sizeof compiler->path, "%s", library.path);
  bool found = bound && rdna__compiler_identify(compiler, identity);
  pthread_mutex_unlock(&lock);
  return found;
}
