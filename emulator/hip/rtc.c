// hiprtc…: source to a code object at run time, by a clang that can be found.
//
// With ROCm's headers and device libraries for the GPU a source sees what AMD's sees. Without them it sees the header
// that this repository gives its own kernels (types, indices, barriers, atomics, mathematics), where the emulator was
// built as a part of it, and else the compiler's builtins alone: the log says which.
// Source of names, numbers and rules: hiprtc.h of ROCm 6 and AMD's HIP RTC guide.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hip/clang.h"
#include "hip/hip.h"
#include "hip/rtc.h"

struct text {
  char *name, *text;
};
struct expression {
  char *source, *lowered;
};

struct program {
  struct program *next;
  char *source, *name, *log;
  struct text *headers;
  int header_count;
  struct expression *expressions;
  int expression_count;
  void *code;
  size_t code_bytes, log_bytes;
  bool compiled, is_bitcode;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct program *programs;

// Calls on one program at a time are the caller's to see to, as with AMD's.
static bool is_program(const struct program *wanted) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const struct program *p = programs; p && !found; p = p->next) found = p == wanted;
  pthread_mutex_unlock(&lock);
  return found;
}

// ---- the program

static void release(struct program *p) {
  for (int i = 0; p->headers && i < p->header_count; i++) free(p->headers[i].name), free(p->headers[i].text);
  for (int i = 0; i < p->expression_count; i++) free(p->expressions[i].source), free(p->expressions[i].lowered);
  free(p->headers);
  free(p->expressions);
  free(p->source);
  free(p->name);
  free(p->log);
  free(p->code);
  free(p);
}

API int hiprtcCreateProgram(struct program **out, const char *source, const char *name, int count,
                            const char *const *headers, const char *const *names) {
  if (!out || !source || count < 0 || (count && (!headers || !names))) return RTC_INVALID_INPUT;
  struct program *p = calloc(1, sizeof *p);
  if (!p) return RTC_OUT_OF_MEMORY;
  p->source = strdup(source);
  p->name = strdup(name && *name ? name : "program.hip");
  p->log = calloc(1, 1);
  p->log_bytes = 1;
  p->headers = calloc((size_t)count + 1, sizeof *p->headers);
  p->header_count = count;
  bool good = p->source && p->name && p->log && p->headers;
  for (int i = 0; i < count && good; i++) {
    p->headers[i] = (struct text){strdup(names[i]), strdup(headers[i])};
    good = p->headers[i].name && p->headers[i].text;
  }
  if (!good) {
    release(p);
    return RTC_OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&lock);
  p->next = programs;
  programs = p;
  pthread_mutex_unlock(&lock);
  *out = p;
  return RTC_SUCCESS;
}

API int hiprtcDestroyProgram(struct program **program) {
  if (!program) return RTC_INVALID_INPUT;
  pthread_mutex_lock(&lock);
  struct program **at = &programs, *found;
  while (*at && *at != *program) at = &(*at)->next;
  found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&lock);
  if (!found) return RTC_INVALID_PROGRAM;
  release(found);
  *program = NULL;
  return RTC_SUCCESS;
}

API int hiprtcAddNameExpression(struct program *p, const char *expression) {
  if (!expression || !*expression) return RTC_INVALID_INPUT;
  if (!is_program(p)) return RTC_INVALID_PROGRAM;
  if (p->compiled) return RTC_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  for (int i = 0; i < p->expression_count; i++)
    if (strcmp(p->expressions[i].source, expression) == 0) return RTC_SUCCESS;
  struct expression *grown = realloc(p->expressions, ((size_t)p->expression_count + 1) * sizeof *grown);
  if (!grown) return RTC_OUT_OF_MEMORY;
  p->expressions = grown;
  char *source = strdup(expression);
  if (!source) return RTC_OUT_OF_MEMORY;
  p->expressions[p->expression_count++] = (struct expression){.source = source};
  return RTC_SUCCESS;
}

// ---- what it is compiled with

static bool exists(const char *path) {
  struct stat found;
  return stat(path, &found) == 0;
}

// ROCm's folder, and the one of its device libraries, where both are and know the GPU.
static bool find_rocm(const char *arch, char root[EMU_PATH], char libraries[EMU_PATH]) {
  static const char *const folders[] = {"amdgcn/bitcode", "lib/x86_64-linux-gnu/amdgcn/bitcode", "lib/amdgcn/bitcode"};
  const char *roots[] = {getenv("ROCM_PATH"), getenv("HIP_PATH"), "/opt/rocm", "/usr"};
  char path[EMU_PATH + 64];
  for (size_t r = 0; r < sizeof roots / sizeof *roots; r++) {
    if (!roots[r] || !*roots[r] || snprintf(root, EMU_PATH, "%s", roots[r]) >= EMU_PATH) continue;
    snprintf(path, sizeof path, "%s/include/hip/hip_runtime.h", root);
    if (!exists(path)) continue;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
      if (snprintf(libraries, EMU_PATH, "%s/%s", root, folders[f]) >= EMU_PATH) continue;
      snprintf(path, sizeof path, "%s/oclc_isa_version_%s.bc", libraries, arch + strlen("gfx"));
      if (exists(path)) return true;
    }
  }
  return false;
}

// The GPU that an option names, or NULL.
static const char *arch_of(const char *option) {
  static const char *const names[] = {"--gpu-architecture=", "-arch=", "--offload-arch="};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(option, names[i], strlen(names[i])) == 0) return option + strlen(names[i]);
  return NULL;
}

struct job {
  struct emu_workshop shop;
  struct emu_words words;
  char clang[EMU_PATH], arch[64];
  const char *notice;  // what a source does without; "" when all is there
};

#ifdef EMU_HIP_HEADER
extern const char rdna__hip_header[];
extern const size_t rdna__hip_header_size;

static bool offer_own_header(struct job *j) {
  static const char *const empty[] = {"hip/hip_runtime.h", "hip/hip_fp16.h", "hip/hip_bf16.h", "math.h", "cmath"};
  bool good = emu_workshop_write(&j->shop, "own/hip_header.h", rdna__hip_header, rdna__hip_header_size);
  for (size_t i = 0; i < sizeof empty / sizeof *empty && good; i++) {
    char name[64];
    snprintf(name, sizeof name, "own/%s", empty[i]);
    good = emu_workshop_write(&j->shop, name, "", 0);
  }
  emu_words_add(&j->words, "-include");
  emu_words_add(&j->words, "%s/own/hip_header.h", j->shop.folder);
  emu_words_add(&j->words, "-isystem");
  emu_words_add(&j->words, "%s/own", j->shop.folder);
  j->notice =
      "note: ROCm's headers and device libraries for this GPU are not on this machine; the source saw those of "
      "rdna, a part of them\n";
  return good;
}
#else
static bool offer_own_header(struct job *j) {
  j->notice =
      "note: ROCm's headers and device libraries for this GPU are not on this machine; the source saw no header\n";
  return true;
}
#endif

static bool offer_headers(struct job *j) {
  char root[EMU_PATH], libraries[EMU_PATH];
  if (find_rocm(j->arch, root, libraries)) {
    emu_words_add(&j->words, "--rocm-path=%s", root);
    emu_words_add(&j->words, "--rocm-device-lib-path=%s", libraries);
    emu_words_add(&j->words, "-include");
    emu_words_add(&j->words, "hip/hip_runtime.h");
    return true;
  }
  static const char *const without[] = {"-nogpuinc", "-nogpulib", "-ffreestanding"};
  for (size_t i = 0; i < sizeof without / sizeof *without; i++) emu_words_add(&j->words, "%s", without[i]);
  return offer_own_header(j);
}

// The source, and behind it a pointer to each thing that is asked for by name: that instantiates templates, and the
// linked pointer tells the symbol.
static bool write_source(const struct program *p, const struct job *j) {
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  if (!file) return false;
  fprintf(file, "#line 1 \"%s\"\n%s\n", p->name, p->source);
  for (int i = 0; i < p->expression_count; i++)
    fprintf(file,
            "#line 1 \"name expression %d\"\nextern \"C\" __attribute__((device, used)) const void *const "
            "rdna_emulator_name_%d = (const void *)(%s%s);\n",
            i, i, p->expressions[i].source[0] == '&' ? "" : "&", p->expressions[i].source);
  bool good = fclose(file) == 0 && emu_workshop_write(&j->shop, "source.hip", text, size);
  free(text);
  return good;
}

static bool fill_words(struct program *p, struct job *j, int count, const char *const *options) {
  static const char *const fixed[] = {"-x",  "hip",        "--offload-device-only", "--no-gpu-bundle-output",
                                      "-O3", "-std=c++17", "-fno-color-diagnostics"};
  emu_words_add(&j->words, "%s", j->clang);
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) emu_words_add(&j->words, "%s", fixed[i]);
  emu_words_add(&j->words, "--offload-arch=%s", j->arch);
  bool good = offer_headers(j);
  emu_words_add(&j->words, "-I%s/given", j->shop.folder);
  p->is_bitcode = false;
  for (int i = 0; i < count; i++) {
    if (strcmp(options[i], "-fgpu-rdc") == 0) p->is_bitcode = true;
    if (!arch_of(options[i])) emu_words_add(&j->words, "%s", options[i]);
  }
  if (p->is_bitcode) emu_words_add(&j->words, "-emit-llvm"), emu_words_add(&j->words, "-c");
  emu_words_add(&j->words, "-o");
  emu_words_add(&j->words, "%s/code", j->shop.folder);
  emu_words_add(&j->words, "%s/source.hip", j->shop.folder);
  for (int i = 0; i < p->header_count && good; i++) {
    char name[EMU_PATH];
    good = snprintf(name, sizeof name, "given/%s", p->headers[i].name) < EMU_PATH &&
           emu_workshop_write(&j->shop, name, p->headers[i].text, strlen(p->headers[i].text));
  }
  return good && write_source(p, j);
}

// ---- names

// The pointers are relocations, whose addends are the addresses of what they point to.
static char *name_at(const struct emu_object *object, uint64_t address) {
  for (unsigned i = 0; i < object->symbol_count; i++) {
    const struct emu_symbol *s = &object->symbols[i];
    if (s->address == address && (s->function || s->object) && strncmp(s->name, "rdna_emulator_name_", 19) != 0)
      return strdup(s->name);
  }
  return NULL;
}

static void lower_names(struct program *p, const void *code, size_t bytes) {
  const struct emu_image image = {code, bytes, NULL};
  struct emu_object object;
  struct emu_object_error error;
  if (emu_object_open(&image, &object, &error) != EMU_OBJECT_OK) return;
  for (int i = 0; i < p->expression_count; i++) {
    char name[64];
    snprintf(name, sizeof name, "rdna_emulator_name_%d", i);
    const struct emu_symbol *pointer = emu_object_symbol(&object, name);
    for (unsigned r = 0; pointer && r < object.relocation_count && !p->expressions[i].lowered; r++) {
      const struct emu_relocation *at = &object.relocations[r];
      if (at->address == pointer->address)
        p->expressions[i].lowered = name_at(&object, (uint64_t)at->addend + (at->kind == EMU_ABS64 ? at->symbol : 0));
    }
  }
  emu_object_close(&object);
}

// ---- compiling

static bool set_log(struct program *p, const char *notice, const char *said) {
  size_t size = strlen(notice) + strlen(said) + 1;
  char *log = malloc(size);
  if (!log) return false;
  snprintf(log, size, "%s%s", notice, said);
  free(p->log);
  p->log = log;
  p->log_bytes = size;
  return true;
}

static int collect(struct program *p, const struct job *j, int exit_code) {
  if (exit_code != 0) return RTC_COMPILATION;
  p->code = emu_workshop_read(&j->shop, "code", &p->code_bytes);
  if (!p->code || !p->code_bytes) return RTC_COMPILATION;
  if (!p->is_bitcode) lower_names(p, p->code, p->code_bytes);
  if (p->is_bitcode && p->expression_count) {
    // names are known of linked code alone
    size_t bytes;
    const struct emu_rtc_input input = {p->code, p->code_bytes};
    char *said = NULL;
    void *linked = emu_rtc_link(j->arch, &input, 1, &bytes, &said);
    if (linked) lower_names(p, linked, bytes);
    free(linked);
    free(said);
  }
  for (int i = 0; i < p->expression_count; i++)
    if (!p->expressions[i].lowered) return RTC_NAME_EXPRESSION_NOT_VALID;
  return RTC_SUCCESS;
}

static int compile(struct program *p, struct job *j, int count, const char *const *options) {
  if (!emu_clang_find(j->clang)) {
    (void)!set_log(p, "",
                   "error: there is no clang-19, clang or amdclang in PATH and none of ROCm's; name one in "
                   "RDNA_EMULATE_CLANG\n");
    return RTC_BUILTIN_OPERATION_FAILURE;
  }
  if (!emu_workshop_open(&j->shop)) return RTC_PROGRAM_CREATION_FAILURE;
  char *said = NULL;
  int code = RTC_PROGRAM_CREATION_FAILURE;
  if (fill_words(p, j, count, options)) {
    int exit_code = emu_words_run(&j->words, &said);
    if (said && set_log(p, j->notice, said)) code = collect(p, j, exit_code);
  }
  free(said);
  return code;
}

API int hiprtcCompileProgram(struct program *p, int count, const char *const *options) {
  if (count < 0 || (count && !options)) return RTC_INVALID_INPUT;
  if (!is_program(p)) return RTC_INVALID_PROGRAM;
  if (p->compiled) return RTC_INVALID_PROGRAM;
  struct job j = {.notice = ""};
  const struct emu_device *device = emu_current();
  const char *arch = device ? device->card->arch : NULL;
  for (int i = 0; i < count; i++) {
    if (!options[i]) return RTC_INVALID_OPTION;
    if (arch_of(options[i])) arch = arch_of(options[i]);
  }
  if (!arch) return RTC_INTERNAL_ERROR;
  // "gfx90a:sramecc+:xnack-" is a GPU with features, which code of no feature runs on
  snprintf(j.arch, sizeof j.arch, "%.*s", (int)strcspn(arch, ":"), arch);
  int code = strncmp(j.arch, "gfx", 3) == 0 ? compile(p, &j, count, options) : RTC_INVALID_OPTION;
  emu_words_release(&j.words);
  emu_workshop_close(&j.shop);
  p->compiled = code == RTC_SUCCESS;
  if (code != RTC_SUCCESS) {
    free(p->code);
    p->code = NULL;
    p->code_bytes = 0;
  }
  return code;
}

// ---- what came of it

struct piece {
  const void *data;  // NULL: there is none
  size_t bytes;
};
static struct piece code_of(const struct program *p, bool bitcode) {
  return is_program(p) && p->is_bitcode == bitcode ? (struct piece){p->code, p->code_bytes} : (struct piece){0};
}
static struct piece log_of(const struct program *p) {
  return is_program(p) ? (struct piece){p->log, p->log_bytes} : (struct piece){0};
}

static int give_size(struct piece piece, size_t *out) {
  if (!out) return RTC_INVALID_INPUT;
  if (!piece.data) return RTC_INVALID_PROGRAM;
  *out = piece.bytes;
  return RTC_SUCCESS;
}
static int give(struct piece piece, char *out) {
  if (!out) return RTC_INVALID_INPUT;
  if (!piece.data) return RTC_INVALID_PROGRAM;
  memcpy(out, piece.data, piece.bytes);
  return RTC_SUCCESS;
}

API int hiprtcGetCodeSize(struct program *p, size_t *out) { return give_size(code_of(p, false), out); }
API int hiprtcGetCode(struct program *p, char *out) { return give(code_of(p, false), out); }
API int hiprtcGetBitcodeSize(struct program *p, size_t *out) { return give_size(code_of(p, true), out); }
API int hiprtcGetBitcode(struct program *p, char *out) { return give(code_of(p, true), out); }
API int hiprtcGetProgramLogSize(struct program *p, size_t *out) { return give_size(log_of(p), out); }
API int hiprtcGetProgramLog(struct program *p, char *out) { return give(log_of(p), out); }

API int hiprtcGetLoweredName(struct program *p, const char *expression, const char **out) {
  if (!expression || !out) return RTC_INVALID_INPUT;
  if (!is_program(p)) return RTC_INVALID_PROGRAM;
  if (!p->compiled) return RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  for (int i = 0; i < p->expression_count; i++)
    if (strcmp(p->expressions[i].source, expression) == 0) {
      *out = p->expressions[i].lowered;
      return RTC_SUCCESS;
    }
  return RTC_NAME_EXPRESSION_NOT_VALID;
}

API const char *hiprtcGetErrorString(int code) {
  static const char *const names[] = {"HIPRTC_SUCCESS",
                                      "HIPRTC_ERROR_OUT_OF_MEMORY",
                                      "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "HIPRTC_ERROR_INVALID_INPUT",
                                      "HIPRTC_ERROR_INVALID_PROGRAM",
                                      "HIPRTC_ERROR_INVALID_OPTION",
                                      "HIPRTC_ERROR_COMPILATION",
                                      "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
                                      "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                      "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                      "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
                                      "HIPRTC_ERROR_INTERNAL_ERROR"};
  if (code == RTC_LINKING) return "HIPRTC_ERROR_LINKING";
  return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "HIPRTC_ERROR_UNKNOWN";
}
