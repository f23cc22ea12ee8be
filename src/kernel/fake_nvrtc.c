/* A libnvrtc for tests. It insists on what the real one insists on and makes PTX that has the source's kernels with
 * nothing in them. Declared here from NVIDIA's "NVRTC" (CUDA Toolkit documentation), separately from compile_rtc.c's
 * own table, so that a slip in one of the two shows. A source with the word fake_error does not compile. */
#include "kernel/fake_nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
/* every entry starts by declaring itself */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef enum nvrtcResult {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6
} nvrtcResult;
typedef struct program {
  char *source, *ptx;
  const char *log;
} *nvrtcProgram;

EXPORT fake_nvrtc_record fake_nvrtc;

/* Says which rule a call broke, for whoever reads a failed test; returns |code|. */
#define REFUSE(code, rule) (fprintf(stderr, "%s: %s\n", __func__, rule), (code))

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor) {
  if (!major || !minor) return REFUSE(NVRTC_ERROR_INVALID_INPUT, "no place for the version");
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}
EXPORT const char *nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_ERROR_INVALID_OPTION ? "NVRTC_ERROR_INVALID_OPTION" : "NVRTC_ERROR unknown";
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source, const char *name, int header_count,
                                      const char *const *headers, const char *const *include_names) {
  if (!out || !source || header_count < 0) return REFUSE(NVRTC_ERROR_INVALID_INPUT, "no program, source or count");
  if ((header_count > 0) != (headers != NULL) || (header_count > 0) != (include_names != NULL))
    return REFUSE(NVRTC_ERROR_INVALID_INPUT, "headers or their names are NULL where there are some, or not where none");
  for (int i = 0; i < header_count; i++)
    if (!headers[i] || !include_names[i]) return REFUSE(NVRTC_ERROR_INVALID_INPUT, "a header is NULL");
  *out = calloc(1, sizeof **out);
  if (!*out || !((*out)->source = strdup(source))) return NVRTC_ERROR_OUT_OF_MEMORY;
  (*out)->log = "";
  fake_nvrtc.programs++;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  if (!program || !*program) return REFUSE(NVRTC_ERROR_INVALID_PROGRAM, "no program");
  free((*program)->source);
  free((*program)->ptx);
  free(*program);
  *program = NULL;
  fake_nvrtc.programs--;
  return NVRTC_SUCCESS;
}

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Takes the options that are documented and that somebody may want; those that say one thing may be there once. */
static nvrtcResult read_options(int count, const char *const *options, char architecture[16]) {
  static const char *const once[] = {"-std=", "--gpu-architecture=compute_", "--fmad=", "--use_fast_math",
                                     "-default-device"};
  static const char *const often[] = {"-D", "-U", "-I"};
  int seen[sizeof once / sizeof *once] = {0};
  fake_nvrtc.options[0] = 0;
  for (int i = 0; i < count; i++) {
    int known = 0;
    if (!options[i]) return REFUSE(NVRTC_ERROR_INVALID_OPTION, "an option is NULL");
    for (size_t k = 0; k < sizeof once / sizeof *once; k++) {
      if (!begins(options[i], once[k])) continue;
      known = 1;
      if (seen[k]++) return REFUSE(NVRTC_ERROR_INVALID_OPTION, "an option is there twice");
    }
    for (size_t k = 0; k < sizeof often / sizeof *often; k++) known |= begins(options[i], often[k]);
    if (!known) return REFUSE(NVRTC_ERROR_INVALID_OPTION, options[i]);
    if (begins(options[i], once[1])) snprintf(architecture, 16, "%.15s", options[i] + strlen(once[1]));
    size_t used = strlen(fake_nvrtc.options);
    snprintf(fake_nvrtc.options + used, sizeof fake_nvrtc.options - used, "%s\n", options[i]);
  }
  if (strspn(architecture, "0123456789") != strlen(architecture) || strlen(architecture) < 2)
    return REFUSE(NVRTC_ERROR_INVALID_OPTION, "no --gpu-architecture=compute_NN");
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  static const char kernel[] = "__global__ void ";
  char architecture[16] = "", *ptx = NULL;
  size_t size;
  if (!program) return REFUSE(NVRTC_ERROR_INVALID_PROGRAM, "no program");
  if (count < 0 || (count > 0 && !options)) return REFUSE(NVRTC_ERROR_INVALID_INPUT, "no options");
  fake_nvrtc.compilations++;
  nvrtcResult result = read_options(count, options, architecture);
  if (result != NVRTC_SUCCESS) return result;
  if (strstr(program->source, "fake_error")) {
    program->log = "add.hip(1): error: identifier \"fake_error\" is undefined\n";
    return NVRTC_ERROR_COMPILATION;
  }
  FILE *file = open_memstream(&ptx, &size);
  if (!file) return NVRTC_ERROR_OUT_OF_MEMORY;
  fprintf(file, "// made by nobody\n.version 9.0\n.target sm_%s\n.address_size 64\n", architecture);
  for (const char *at = program->source; (at = strstr(at, kernel));) {
    at += strlen(kernel);
    int length = (int)strcspn(at, "(");
    fprintf(file, ".visible .entry %.*s(\n\t.param .u64 %.*s_param_0\n)\n{\n\tret;\n}\n", length, at, length, at);
  }
  fclose(file);
  free(program->ptx);
  program->ptx = ptx;
  return NVRTC_SUCCESS;
}

/* Sizes count the NUL. */
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) {
  if (!program || !size) return REFUSE(NVRTC_ERROR_INVALID_PROGRAM, "no program, or no place for the size");
  *size = strlen(program->log) + 1;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
  if (!program || !log) return REFUSE(NVRTC_ERROR_INVALID_PROGRAM, "no program, or no place for the log");
  strcpy(log, program->log);
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size) {
  if (!program || !program->ptx || !size) return REFUSE(NVRTC_ERROR_INVALID_PROGRAM, "nothing was compiled");
  *size = strlen(program->ptx) + 1;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx) {
  if (!program || !program->ptx || !ptx) return REFUSE(NVRTC_ERROR_INVALID_PROGRAM, "nothing was compiled");
  strcpy(ptx, program->ptx);
  return NVRTC_SUCCESS;
}
