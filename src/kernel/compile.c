/* rdna_compile: from the cache, or by a compiler. */
#include "kernel/compile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/config.h"
#include "base/options.h"
#include "device/targets.h"
#include "kernel/loader.h"

enum { MOST_FLAGS = 128, LIST_SIZE = 1024 };

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

void rdna__compile_line(const rdna__compile_job *job, char line[RDNA__COMPILE_PATH]) {
  size_t used = (size_t)snprintf(line, RDNA__COMPILE_PATH, "#line 1 \"");
  for (const char *c = job->name; *c && used < RDNA__COMPILE_PATH - 4; c++) {
    if (*c == '"' || *c == '\\') line[used++] = '\\';
    line[used++] = *c == '\n' ? ' ' : *c;
  }
  memcpy(line + used, "\"\n", 3);
}

/* "libhiprtc.so", "/opt/x/libhiprtc.so.6"; not the clang of a folder whose name has ".so" in it. */
static bool is_library(const char *chosen) {
  const char *slash = strrchr(chosen, '/'), *at = slash ? slash + 1 : chosen;
  while ((at = strstr(at, ".so")) != NULL) {
    at += 3;
    if (*at == '\0' || *at == '.') return true;
  }
  return false;
}

rdna_status rdna__compiler_find(const char *target, rdna__compiler *compiler) {
  const char *chosen = rdna__config_text(RDNA__CONFIG_COMPILER);
  bool is_amd = strncmp(target, "sm_", 3) != 0;
  const char *vendors = is_amd ? "hiprtc" : "nvrtc", *others = is_amd ? "nvrtc" : "hiprtc";
  bool (*find)(const char *chosen, rdna__compiler *compiler) = is_amd ? rdna__hiprtc_find : rdna__nvrtc_find;
  if (!strcmp(chosen, others))
    return rdna__fail(RDNA_UNAVAILABLE, "RDNA_COMPILER asks for '%s', which does not compile for %s GPUs", chosen,
                      is_amd ? "AMD's" : "NVIDIA's");
  if (!strcmp(chosen, vendors) || is_library(chosen)) {
    if (find(strcmp(chosen, vendors) ? chosen : "", compiler)) return RDNA_OK;
    return rdna__fail(RDNA_UNAVAILABLE, "RDNA_COMPILER asks for '%s', but no %s is there or it does not load", chosen,
                      vendors);
  }
  if (!chosen[0] && is_amd && rdna__hiprtc_find("", compiler)) return RDNA_OK;
  rdna_status status = rdna__clang_find(chosen, compiler);
  if (status == RDNA_OK || chosen[0] || is_amd) return status;
  if (rdna__nvrtc_find("", compiler)) return RDNA_OK;
  return rdna__annotate(status, "for NVIDIA's GPUs a libnvrtc.so of CUDA would do too, and none was found");
}

void rdna__compiler_settle(const char *target) {
  static const char source[] = "extern \"C\" __global__ void settle(float *x) { x[threadIdx.x] = x[threadIdx.x] / 3; }";
  rdna__compile_job job = {.source = source, .target = target, .name = "settle.hip"};
  rdna__compile_result result = {0};
  rdna__compiler *compiler = calloc(1, sizeof *compiler);
  /* what fails here fails again for whom it matters */
  if (compiler && rdna__compiler_find(target, compiler) == RDNA_OK && compiler->is_library)
    (void)!compiler->compile(compiler, &job, &result);
  free(result.data);
  free(result.text);
  free(result.files);
  free(compiler);
}

static rdna_status check_target(const char *target) {
  char list[LIST_SIZE] = "";
  if (!target) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_compile needs a target such as gfx1100");
  if (!strncmp(target, "sm_", 3) && target[3] && strspn(target + 3, "0123456789") == strlen(target + 3) &&
      strlen(target) < 8)
    return RDNA_OK;
  for (int i = 0; i < rdna__target_count; i++) {
    if (!rdna__targets[i].mach) continue;
    if (!strcmp(rdna__targets[i].name, target)) return RDNA_OK;
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", used ? " " : "", rdna__targets[i].name);
  }
  return rdna__fail(RDNA_INVALID_ARGUMENT, "'%.64s' is no GPU to compile for; there are %s, and NVIDIA's such as sm_80",
                    target, list);
}

void rdna__compile_target(const rdna_device *device, char target[RDNA__COMPILE_TARGET]) {
  const char *arch = rdna_device_get_info(device)->arch;
  snprintf(target, RDNA__COMPILE_TARGET, "%.*s", (int)strcspn(arch, ":"), arch);
  const rdna__target *known = rdna__target_find(target);
  const char *relative = strncmp(target, "sm_", 3) != 0 && !(known && known->mach) ? rdna__target_for(target) : NULL;
  if (relative) snprintf(target, RDNA__COMPILE_TARGET, "%s", relative);
}

/* Flags that say what the source means or how it is made better: none that name files to write or other inputs. */
static rdna_status check_flags(const rdna_compile_options *options) {
  static const char *const kinds[] = {"-D", "-U", "-I", "-iquote", "-std=", "-f", "-m", "-W"};
  if (options->flag_count < 0 || options->flag_count > MOST_FLAGS || (options->flag_count && !options->flags))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_compile takes up to %d flags, not %d", MOST_FLAGS,
                      options->flag_count);
  for (int i = 0; i < options->flag_count; i++) {
    const char *flag = options->flags[i];
    bool known = flag && flag[0] == '-' && flag[1] == 'O' && strchr("0123", flag[2]) && flag[2] && !flag[3];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && flag && !known; k++)
      known = !strncmp(flag, kinds[k], strlen(kinds[k])) && flag[strlen(kinds[k])];
    if (!known)
      return rdna__fail(
          RDNA_INVALID_ARGUMENT,
          "'%.200s' is no flag for a kernel: there are -D -U -I -iquote -O0 to -O3 -std= -f -m -W, each with "
          "its value in the same word",
          flag ? flag : "NULL");
  }
  return RDNA_OK;
}

/* 32 digits of a hash of all that the code depends on. */
static rdna_status make_key(const rdna__compile_job *job, const rdna__compiler *compiler, char key[RDNA__COMPILE_KEY]) {
  XXH3_state_t *state = XXH3_createState();
  if (!state) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to hash a source");
  XXH3_128bits_reset(state);
  const char *texts[] = {"1", job->target, job->name, compiler->path, compiler->identity, job->source};
  /* each with its NUL, so that no two lists of texts are the same bytes */
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) XXH3_128bits_update(state, texts[i], strlen(texts[i]) + 1);
  for (int i = 0; i < job->flag_count; i++) XXH3_128bits_update(state, job->flags[i], strlen(job->flags[i]) + 1);
  XXH3_128bits_update(state, rdna__hip_header, rdna__hip_header_size);
  XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  snprintf(key, RDNA__COMPILE_KEY, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
  return RDNA_OK;
}

/* Gives |code| the bytes, which it then owns. */
static rdna_status adopt(rdna_code *code, void *data, size_t size, const char *target) {
  free(code->data);
  code->data = data;
  code->size = size;
  RDNA_TRY(rdna__code_describe(data, size, &code->description));
  if (!strcmp(code->description.target, target)) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the compiler made code for %s, not for %s", code->description.target, target);
}

static rdna_status take_cached(rdna_code *code, rdna__cache *cache, const char *key, const char *target) {
  void *data;
  size_t size;
  RDNA_TRY(rdna__cache_read(cache, key, &data, &size));
  RDNA_TRY(adopt(code, data, size, target));
  code->cached = true;
  return RDNA_OK;
}

static rdna_status make(rdna_code *code, rdna__cache *cache, const char *key, const rdna__compiler *compiler,
                        const rdna__compile_job *job) {
  rdna__compile_result result = {0};
  rdna_status status = compiler->compile(compiler, job, &result);
  if (status == RDNA_OK) {
    status = adopt(code, result.data, result.size, job->target);
    if (status == RDNA_OK) rdna__cache_write(cache, key, code->data, code->size, result.files);
    code->warnings = result.text;
  } else {
    free(result.data);
    free(result.text);
  }
  free(result.files);
  return status;
}

static rdna_status compile(rdna_code *code, const rdna__compile_job *job, const rdna_compile_options *options) {
  char key[RDNA__COMPILE_KEY];
  rdna__compiler *compiler = calloc(1, sizeof *compiler);
  rdna__cache *cache = calloc(1, sizeof *cache);
  rdna_status status = RDNA_OK;
  if (!compiler || !cache) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to compile %s", job->name);
  if (status == RDNA_OK) status = rdna__compiler_find(job->target, compiler);
  if (status == RDNA_OK) status = make_key(job, compiler, key);
  if (status == RDNA_OK) {
    snprintf(code->compiler, sizeof code->compiler, "%s", compiler->path);
    rdna__cache_open(cache, options->cache, options->cache_entries, options->cache_bytes);
    if (take_cached(code, cache, key, job->target) != RDNA_OK) {
      int lock = rdna__cache_lock(cache, key);
      /* another may have made it while this one waited */
      if (lock < 0 || take_cached(code, cache, key, job->target) != RDNA_OK)
        status = make(code, cache, key, compiler, job);
      rdna__cache_unlock(cache, key, lock);
    }
    snprintf(code->notice, sizeof code->notice, "%s", cache->notice);
  }
  free(compiler);
  free(cache);
  return status;
}

rdna_status rdna_compile(const char *source, const rdna_compile_options *options, rdna_code **out_code) {
  if (!source || !out_code)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_compile needs a source and a place for the code");
  *out_code = NULL;
  rdna_compile_options known;
  RDNA_TRY(RDNA__OPTIONS("rdna_compile", "options", options, &known));
  RDNA_TRY(check_target(known.target));
  RDNA_TRY(check_flags(&known));
  double begin = now_ms();
  rdna__compile_job job = {source, known.target, known.name && known.name[0] ? known.name : "kernel.hip", known.flags,
                           known.flag_count};
  rdna_code *code = calloc(1, sizeof *code);
  if (!code) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to compile %s", job.name);
  rdna_status status = compile(code, &job, &known);
  if (status != RDNA_OK) {
    rdna_code_release(code);
    return status;
  }
  code->milliseconds = now_ms() - begin;
  *out_code = code;
  return RDNA_OK;
}

void rdna_code_release(rdna_code *code) {
  if (!code) return;
  rdna__code_description_free(&code->description);
  free(code->data);
  free(code->warnings);
  free(code);
}

const void *rdna_code_data(const rdna_code *code, size_t *out_size) {
  if (out_size) *out_size = code ? code->size : 0;
  return code ? code->data : NULL;
}

void rdna_code_get_report(const rdna_code *code, rdna_code_report *out_report) {
  if (!code || !out_report) return;
  *out_report = (rdna_code_report){.target = code->description.target,
                                   .compiler = code->compiler,
                                   .notice = code->notice,
                                   .warnings = code->warnings ? code->warnings : "",
                                   .cached = code->cached,
                                   .milliseconds = code->milliseconds};
}

int rdna_code_kernel_count(const rdna_code *code) { return code ? code->description.kernel_count : 0; }

const rdna_code_kernel *rdna_code_get_kernel(const rdna_code *code, int kernel) {
  return kernel >= 0 && kernel < rdna_code_kernel_count(code) ? &code->description.kernels[kernel] : NULL;
}

/* Appends "add (_Z3addPf)" to a list for a sentence. */
static void list_kernel(char list[LIST_SIZE], const rdna_code_kernel *kernel) {
  size_t used = strlen(list);
  snprintf(list + used, LIST_SIZE - used, "%s%s%s%s%s", used ? ", " : "", kernel->name,
           kernel->name == kernel->symbol ? "" : " (", kernel->name == kernel->symbol ? "" : kernel->symbol,
           kernel->name == kernel->symbol ? "" : ")");
}

rdna_status rdna_code_find(const rdna_code *code, const char *name, int *out_kernel) {
  if (!code || !name || !out_kernel)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_code_find needs code, a name and a place for the kernel's number");
  char all[LIST_SIZE] = "", named[LIST_SIZE] = "";
  int matches = 0;
  *out_kernel = -1;
  for (int i = 0; i < code->description.kernel_count; i++) {
    const rdna_code_kernel *kernel = &code->description.kernels[i];
    if (!strcmp(kernel->symbol, name)) {
      *out_kernel = i;
      return RDNA_OK;
    }
    list_kernel(all, kernel);
    if (strcmp(kernel->name, name) != 0) continue;
    list_kernel(named, kernel);
    if (!matches++) *out_kernel = i;
  }
  if (matches == 1) return RDNA_OK;
  *out_kernel = -1;
  if (matches)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d kernels are called '%s': %s; name one by its symbol", matches, name,
                      named);
  return rdna__fail(RDNA_NOT_FOUND, "there is no kernel '%.200s' in the code: it has %s", name,
                    all[0] ? all : "none (a kernel is a __global__ function; templates need an instance)");
}
