// One kernel from a file, as `rdna emulate` wants it: the target is read from the file, arguments come as text.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hip/hip.h"

enum { RUN_CHECK = 1, RUN_COUNTERS = 2, MAX_ARGS = 64, KERNARG_MAX = 4096, COPY_TO_DEVICE = 1, COPY_TO_HOST = 2 };

struct argument {
  uint8_t value[KERNARG_MAX];
  size_t bytes;
  void *buffer;
  size_t buffer_bytes;
  const char *write_to;
};

struct run {
  const char *path, *kernel;
  struct argument *arguments;
  int count;
  struct emu_module *module;
  char *message;
  size_t room;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct run *run, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(run->message, run->room, format, arguments);
  va_end(arguments);
  return false;
}

static bool read_file(struct run *run, const char *path, void **out, size_t *out_bytes) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    refuse(run, "%s cannot be read: %s", path, file < 0 ? strerror(errno) : "it is not a file");
    if (file >= 0) close(file);
    return false;
  }
  uint8_t *data = malloc((size_t)about.st_size + 1);
  size_t got = 0;
  while (data && got < (size_t)about.st_size) {
    ssize_t n = read(file, data + got, (size_t)about.st_size - got);
    if (n <= 0) break;
    got += (size_t)n;
  }
  close(file);
  if (!data || got != (size_t)about.st_size) {
    free(data);
    return refuse(run, "%s cannot be read to its end", path);
  }
  *out = data;
  *out_bytes = got;
  return true;
}

static bool write_file(struct run *run, const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite(data, 1, bytes, file) == bytes;
  if (file && fclose(file) != 0) good = false;
  return good || refuse(run, "%s cannot be written: %s", path, strerror(errno));
}

// ---- arguments

static bool take_number(struct run *run, const char *text, struct argument *out) {
  const char *digits = text + 4;
  char *end = NULL;
  errno = 0;
  if (text[0] == 'i') {
    long long n = strtoll(digits, &end, 0);
    bool fits = text[1] == '6' ? errno == 0 : errno == 0 && n >= INT32_MIN && n <= UINT32_MAX;
    if (text[1] == '6' && errno == ERANGE && digits[0] != '-') {  // unsigned beyond INT64_MAX
      errno = 0;
      n = (long long)strtoull(digits, &end, 0);
      fits = errno == 0;
    }
    if (!fits || end == digits || *end) return refuse(run, "argument '%s' is not a number that fits", text);
    memcpy(out->value, &n, 8);
  } else if (text[1] == '3') {
    float x = strtof(digits, &end);
    if (end == digits || *end) return refuse(run, "argument '%s' is not a number", text);
    memcpy(out->value, &x, sizeof x);
  } else {
    double x = strtod(digits, &end);
    if (end == digits || *end) return refuse(run, "argument '%s' is not a number", text);
    memcpy(out->value, &x, sizeof x);
  }
  out->bytes = text[1] == '6' ? 8 : 4;
  return true;
}

static bool take_hex(struct run *run, const char *text, struct argument *out) {
  const char *hex = text + strlen("bytes:");
  size_t digits = strlen(hex);
  if (digits % 2 || digits / 2 > KERNARG_MAX || strspn(hex, "0123456789abcdefABCDEF") != digits)
    return refuse(run, "argument 'bytes:…' takes an even number of hexadecimal digits, at most %d bytes", KERNARG_MAX);
  for (size_t i = 0; i < digits / 2; i++) {
    char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
    out->value[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
  out->bytes = digits / 2;
  return true;
}

int hipMemcpy(void *dst, const void *src, size_t bytes, int kind);
int hipDeviceSynchronize(void);

// A buffer of the file's bytes, or of `bytes` unwritten ones when there is no file.
static bool make_buffer(struct run *run, const char *text, const char *path, size_t bytes, struct argument *out) {
  void *data = NULL;
  if (path && !read_file(run, path, &data, &bytes)) return false;
  char name[48];
  snprintf(name, sizeof name, "argument %d", (int)(out - run->arguments));
  int code = bytes == 0 ? HIP_SUCCESS : emu_block_create(emu_current(), EMU_BLOCK_DEVICE, bytes, 0, name, &out->buffer);
  if (code == HIP_SUCCESS && bytes) {
    memset(out->buffer, 0xe5, bytes);
    if (data) code = hipMemcpy(out->buffer, data, bytes, COPY_TO_DEVICE);
  }
  free(data);
  if (code != HIP_SUCCESS) return refuse(run, "no device memory for argument '%s'", text);
  out->buffer_bytes = bytes;
  memcpy(out->value, &out->buffer, sizeof out->buffer);
  out->bytes = sizeof out->buffer;
  return true;
}

static bool take_argument(struct run *run, const char *text, struct argument *out) {
  char copy[4096];
  if (strlen(text) >= sizeof copy && strncmp(text, "bytes:", 6) != 0) return refuse(run, "an argument is too long");
  snprintf(copy, sizeof copy, "%s", text);
  if (strncmp(text, "i32:", 4) == 0 || strncmp(text, "i64:", 4) == 0 || strncmp(text, "f32:", 4) == 0 ||
      strncmp(text, "f64:", 4) == 0)
    return take_number(run, text, out);
  if (strncmp(text, "bytes:", 6) == 0) return take_hex(run, text, out);
  if (strncmp(text, "in:", 3) == 0) return make_buffer(run, text, text + 3, 0, out);
  if (strncmp(text, "out:", 4) == 0) {
    char *end;
    unsigned long long bytes = strtoull(text + 4, &end, 0);
    if (end == text + 4 || *end != ':' || !end[1]) return refuse(run, "argument '%s' is not out:BYTES:FILE", text);
    out->write_to = end + 1;
    return make_buffer(run, text, NULL, bytes, out);
  }
  if (strncmp(text, "inout:", 6) == 0) {
    char *colon = strchr(copy + 6, ':');
    if (!colon || !colon[1]) return refuse(run, "argument '%s' is not inout:FILE:OUTFILE", text);
    *colon = '\0';
    out->write_to = text + (colon - copy) + 1;
    return make_buffer(run, text, copy + 6, 0, out);
  }
  return refuse(run,
                "argument '%s' is none of i32:N, i64:N, f32:X, f64:X, in:FILE, out:BYTES:FILE, inout:FILE:OUTFILE and "
                "bytes:HEX",
                text);
}

// The block of arguments where the kernel's metadata puts them, or one after the other when it has none.
static bool lay_out(struct run *run, const struct emu_object_kernel *kernel, uint8_t *block, size_t *out_bytes) {
  size_t at = 0;
  int next = 0;
  if (!kernel->has_args) {
    for (int i = 0; i < run->count; i++) {
      size_t bytes = run->arguments[i].bytes, alignment = bytes >= 8 ? 8 : bytes >= 4 ? 4 : 1;
      at = (at + alignment - 1) / alignment * alignment;
      if (at + bytes > KERNARG_MAX) return refuse(run, "the arguments take more than %d bytes", KERNARG_MAX);
      memcpy(block + at, run->arguments[i].value, bytes);
      at += bytes;
    }
    *out_bytes = at;
    return true;
  }
  for (unsigned i = 0; i < kernel->arg_count; i++) {
    const struct emu_arg *arg = &kernel->args[i];
    if (arg->kind > EMU_ARG_POINTER) continue;
    if (next == run->count) {
      next++;
      break;
    }
    const struct argument *given = &run->arguments[next++];
    bool narrow = given->bytes == 4 && arg->size < 4 && !given->buffer;
    if (given->bytes != arg->size && !narrow)
      return refuse(run, "argument %d of '%s' has %u bytes, %zu were given", next - 1, run->kernel, arg->size,
                    given->bytes);
    if (arg->offset + (size_t)arg->size > KERNARG_MAX)
      return refuse(run, "the arguments of '%s' take more than %d bytes", run->kernel, KERNARG_MAX);
    memcpy(block + arg->offset, given->value, arg->size);
    if (arg->offset + (size_t)arg->size > at) at = arg->offset + (size_t)arg->size;
  }
  if (next != run->count) {
    unsigned wanted = 0;
    for (unsigned i = 0; i < kernel->arg_count; i++) wanted += kernel->args[i].kind <= EMU_ARG_POINTER;
    return refuse(run, "'%s' takes %u arguments, %d were given", run->kernel, wanted, run->count);
  }
  *out_bytes = at;
  return true;
}

// ---- the run

static bool choose_target(struct run *run, const void *file, size_t bytes) {
  struct emu_image image;
  struct emu_object_error error = {{0}};
  if (emu_image_find(file, bytes, NULL, &image, &error) != EMU_OBJECT_OK)
    return refuse(run, "%s: %s", run->path, error.text);
  uint32_t flags;
  memcpy(&flags, image.data + 48, sizeof flags);
  emu_image_release(&image);
  const char *arch = emu_mach_name(flags);
  if (!arch) return refuse(run, "%s is for a processor that is not known (e_flags 0x%x)", run->path, flags);
  if (strcmp(arch, "gfx12-generic") == 0) arch = "gfx1201";
  if (strcmp(arch, "gfx11-generic") == 0) arch = "gfx1100";
  if (strcmp(arch, "gfx10-3-generic") == 0) arch = "gfx1030";
  if (strcmp(arch, "gfx10-1-generic") == 0) arch = "gfx1010";
  setenv("RDNA_EMULATE", arch, 1);
  if (!emu_current()) return refuse(run, "%s is for %s, which is not emulated", run->path, arch);
  return true;
}

static bool load_module(struct run *run) {
  void *file;
  size_t bytes;
  if (!read_file(run, run->path, &file, &bytes)) return false;
  bool good = choose_target(run, file, bytes);
  if (good && emu_module_load(emu_current(), file, bytes, &run->module) != HIP_SUCCESS)
    good = refuse(run, "%s does not load", run->path);
  free(file);  // the module keeps what it needs
  return good;
}

static bool launch(struct run *run, const unsigned grid[3], const unsigned block[3], unsigned lds) {
  struct emu_function *function = emu_module_function(run->module, run->kernel);
  if (!function) {
    const struct emu_object *object = &run->module->object;
    return refuse(run, "%s has no kernel '%s'; it has %s%s", run->path, run->kernel,
                  object->kernel_count ? object->kernels[0].name : "none",
                  object->kernel_count > 1 ? " and others" : "");
  }
  uint8_t packed[KERNARG_MAX] = {0};
  struct emu_launch l = {.function = function,
                         .groups = {grid[0], grid[1], grid[2]},
                         .threads = {block[0], block[1], block[2]},
                         .lds = lds,
                         .packed = packed};
  if (!lay_out(run, function->source, packed, &l.packed_bytes)) return false;
  int code = emu_launch(&l, emu_stream_of(NULL));
  if (code == HIP_INVALID_CONFIGURATION)
    return refuse(run, "'%s' cannot have %u x %u x %u groups of %u x %u x %u work-items", run->kernel, grid[0], grid[1],
                  grid[2], block[0], block[1], block[2]);
  if (code != HIP_SUCCESS) return refuse(run, "'%s' cannot be launched (%d)", run->kernel, code);
  code = hipDeviceSynchronize();
  if (code == HIP_SUCCESS || emu_report_failures() == 0) return true;
  return refuse(run, "kernel '%s' failed (%d)", run->kernel, code);
}

static bool write_outputs(struct run *run) {
  for (int i = 0; i < run->count; i++) {
    const struct argument *a = &run->arguments[i];
    if (a->write_to && !write_file(run, a->write_to, a->buffer, a->buffer_bytes)) return false;
  }
  return true;
}

static bool run_all(struct run *run, const unsigned grid[3], const unsigned block[3], unsigned lds, unsigned flags,
                    const char *const *arguments) {
  if (run->count > MAX_ARGS) return refuse(run, "at most %d arguments are taken", MAX_ARGS);
  if (flags & RUN_CHECK) setenv("RDNA_EMULATE_CHECK", "1", 1);
  if (flags & RUN_COUNTERS) setenv("RDNA_EMULATE_COUNTERS", "-", 1);
  if (!load_module(run)) return false;
  for (int i = 0; i < run->count; i++)
    if (!take_argument(run, arguments[i], &run->arguments[i])) return false;
  if (!launch(run, grid, block, lds) || !write_outputs(run)) return false;
  unsigned findings = emu_report_count_findings();
  if (findings)
    return refuse(run, "the checker has %u finding%s in '%s'", findings, findings == 1 ? "" : "s", run->kernel);
  return true;
}

// Called through dlsym by the rdna program; a plain C function so that neither side includes the other's headers.
// Returns 0, or 1 with one sentence in message. flags: 1 turns the checker on, 2 prints counters when the process ends.
API int emu_run_file(const char *path, const char *kernel, const unsigned grid[3], const unsigned block[3],
                     unsigned lds_bytes, unsigned flags, int count, const char *const *arguments, char *message,
                     size_t room) {
  struct run run = {.path = path, .kernel = kernel, .count = count, .message = message, .room = room};
  char said[1024] = "";
  message[0] = '\0';
  emu_report_is_told();
  run.arguments = calloc((size_t)count + 1, sizeof *run.arguments);
  if (!run.arguments) return refuse(&run, "no host memory for the arguments"), 1;
  emu_say_into(said, sizeof said);
  bool good = run_all(&run, grid, block, lds_bytes, flags, arguments);
  emu_say_into(NULL, 0);
  // what the emulator said first is nearer to the cause
  if (!good && said[0]) snprintf(message, room, "%s", said);
  for (int i = 0; i < count && i < MAX_ARGS; i++)
    if (run.arguments[i].buffer) (void)emu_block_release(run.arguments[i].buffer);
  if (run.module) emu_module_unload(run.module);
  free(run.arguments);
  return good ? 0 : 1;
}
