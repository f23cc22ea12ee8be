// hiprtcLink… and hipLink…: pieces of bitcode, as hiprtcCompileProgram makes with -fgpu-rdc, to one code object.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip/clang.h"
#include "hip/hip.h"
#include "hip/rtc.h"

// hipJitInputType, of which the last is SPIR-V
enum { INPUT_BITCODE = 100, INPUT_LAST = 103 };

void *emu_rtc_link(const char *arch, const struct emu_rtc_input *inputs, int count, size_t *out_size, char **out_said) {
  struct emu_workshop shop;
  struct emu_words words = {0};
  char clang[EMU_PATH];
  void *code = NULL;
  *out_said = NULL;
  if (!emu_clang_find(clang) || !emu_workshop_open(&shop)) return NULL;
  emu_words_add(&words, "%s", clang);
  emu_words_add(&words, "--target=amdgcn-amd-amdhsa");
  emu_words_add(&words, "-mcpu=%s", arch);
  static const char *const fixed[] = {"-nogpulib", "-flto", "-O3", "-fno-color-diagnostics"};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) emu_words_add(&words, "%s", fixed[i]);
  bool good = true;
  for (int i = 0; i < count && good; i++) {
    char name[32];
    snprintf(name, sizeof name, "%d.bc", i);
    good = emu_workshop_write(&shop, name, inputs[i].data, inputs[i].size);
    emu_words_add(&words, "%s/%s", shop.folder, name);
  }
  emu_words_add(&words, "-o");
  emu_words_add(&words, "%s/code", shop.folder);
  if (good && emu_words_run(&words, out_said) == 0) code = emu_workshop_read(&shop, "code", out_size);
  emu_words_release(&words);
  emu_workshop_close(&shop);
  return code;
}

struct link {
  struct link *next;
  struct emu_rtc_input *inputs;
  int count;
  void *code;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct link *links;

static bool is_link(const struct link *wanted) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const struct link *l = links; l && !found; l = l->next) found = l == wanted;
  pthread_mutex_unlock(&lock);
  return found;
}

// Options are for CUDA's assembler, and AMD's library heeds none of them either.
API int hiprtcLinkCreate(unsigned count, const int *options, void **values, struct link **out) {
  if (!out || (count && (!options || !values))) return RTC_INVALID_INPUT;
  struct link *l = calloc(1, sizeof *l);
  if (!l) return RTC_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  l->next = links;
  links = l;
  pthread_mutex_unlock(&lock);
  *out = l;
  return RTC_SUCCESS;
}

// `data` becomes the link's.
static int keep_input(struct link *l, void *data, size_t size) {
  struct emu_rtc_input *grown = data ? realloc(l->inputs, ((size_t)l->count + 1) * sizeof *grown) : NULL;
  if (!grown) {
    free(data);
    return RTC_OUT_OF_MEMORY;
  }
  l->inputs = grown;
  l->inputs[l->count++] = (struct emu_rtc_input){data, size};
  return RTC_SUCCESS;
}

static bool is_bitcode(const void *data, size_t size) { return size >= 4 && memcmp(data, "BC\xc0\xde", 4) == 0; }

API int hiprtcLinkAddData(struct link *l, int kind, const void *data, size_t size, const char *name, unsigned count,
                          const int *options, void **values) {
  if (!is_link(l) || !data || !size || kind < 0 || kind > INPUT_LAST) return RTC_INVALID_INPUT;
  if (kind != INPUT_BITCODE || !is_bitcode(data, size)) {
    emu_say("%s: linked is bitcode as hiprtcCompileProgram makes it with -fgpu-rdc, and this is none",
            name && *name ? name : "hiprtcLinkAddData");
    return RTC_PROGRAM_CREATION_FAILURE;
  }
  void *copy = malloc(size);
  if (copy) memcpy(copy, data, size);
  return keep_input(l, copy, size);
}

API int hiprtcLinkAddFile(struct link *l, int kind, const char *path, unsigned count, const int *options,
                          void **values) {
  if (!is_link(l) || !path || kind < 0 || kind > INPUT_LAST) return RTC_INVALID_INPUT;
  FILE *file = fopen(path, "rbe");
  long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  void *data = size > 0 ? malloc((size_t)size) : NULL;
  bool good = data && fseek(file, 0, SEEK_SET) == 0 && fread(data, 1, (size_t)size, file) == (size_t)size;
  if (file) fclose(file);
  int code = good ? hiprtcLinkAddData(l, kind, data, (size_t)size, path, count, options, values) : RTC_INVALID_INPUT;
  free(data);
  return code;
}

// The code object stays the link's.
API int hiprtcLinkComplete(struct link *l, void **out, size_t *out_size) {
  const struct emu_device *device = emu_current();
  if (!is_link(l) || !out || !out_size) return RTC_INVALID_INPUT;
  if (!device || !l->count) return RTC_LINKING;
  char *said = NULL;
  size_t size = 0;
  void *code = emu_rtc_link(device->card->arch, l->inputs, l->count, &size, &said);
  if (!code) emu_say("bitcode does not link for %s: %s", device->card->arch, said ? said : "there is no clang");
  free(said);
  if (!code) return RTC_LINKING;
  free(l->code);
  l->code = code;
  *out = code;
  *out_size = size;
  return RTC_SUCCESS;
}

API int hiprtcLinkDestroy(struct link *l) {
  pthread_mutex_lock(&lock);
  struct link **at = &links;
  while (*at && *at != l) at = &(*at)->next;
  bool found = l && *at;
  if (found) *at = l->next;
  pthread_mutex_unlock(&lock);
  if (!found) return RTC_INVALID_INPUT;
  for (int i = 0; i < l->count; i++) free(l->inputs[i].data);
  free(l->inputs);
  free(l->code);
  free(l);
  return RTC_SUCCESS;
}

// ---- the same by the names of HIP's library

static int as_hip(int code) {
  switch (code) {
    case RTC_SUCCESS:
      return emu_done(HIP_SUCCESS);
    case RTC_OUT_OF_MEMORY:
      return emu_done(HIP_OUT_OF_MEMORY);
    case RTC_INVALID_INPUT:
      return emu_done(HIP_INVALID_VALUE);
    case RTC_PROGRAM_CREATION_FAILURE:
      return emu_done(HIP_INVALID_IMAGE);
    default:
      return emu_done(HIP_UNKNOWN);
  }
}

API int hipLinkCreate(unsigned count, const int *options, void **values, struct link **out) {
  return as_hip(hiprtcLinkCreate(count, options, values, out));
}
API int hipLinkAddData(struct link *l, int kind, void *data, size_t size, const char *name, unsigned count,
                       const int *options, void **values) {
  return as_hip(hiprtcLinkAddData(l, kind, data, size, name, count, options, values));
}
API int hipLinkAddFile(struct link *l, int kind, const char *path, unsigned count, const int *options, void **values) {
  return as_hip(hiprtcLinkAddFile(l, kind, path, count, options, values));
}
API int hipLinkComplete(struct link *l, void **out, size_t *out_size) {
  return as_hip(hiprtcLinkComplete(l, out, out_size));
}
API int hipLinkDestroy(struct link *l) { return as_hip(hiprtcLinkDestroy(l)); }
