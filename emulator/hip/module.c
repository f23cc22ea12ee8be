// A code object on a device: segments in the device's memory, relocations applied, kernels ready to run.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hip/hip.h"
#include "object/dwarf.h"
#include "object/lines.h"

static uint64_t loaded_at(const struct emu_module *module, uint64_t address) {
  return (uint64_t)module->loaded + (address - module->object.low);
}

static void relocate(struct emu_module *module) {
  for (unsigned i = 0; i < module->object.relocation_count; i++) {
    const struct emu_relocation *r = &module->object.relocations[i];
    uint64_t place = loaded_at(module, r->address);
    uint64_t value = loaded_at(module, r->symbol) + (uint64_t)r->addend;
    size_t bytes = 4;
    switch (r->kind) {
      case EMU_ABS32_LO:
      case EMU_ABS32:
        break;
      case EMU_ABS32_HI:
        value >>= 32;
        break;
      case EMU_ABS64:
        bytes = 8;
        break;
      case EMU_REL32:
        value -= place;
        break;
      case EMU_REL64:
        value -= place;
        bytes = 8;
        break;
      case EMU_RELATIVE64:
        value = loaded_at(module, 0) + (uint64_t)r->addend;
        bytes = 8;
        break;
    }
    memcpy((void *)place, &value, bytes);
  }
}

static bool show_segments(struct emu_module *module, unsigned *shown) {
  for (*shown = 0; *shown < module->object.segment_count; ++*shown) {
    const struct emu_segment *s = &module->object.segments[*shown];
    const char *name = s->executable ? "code" : s->writable ? "device variables" : "constants of the code object";
    if (!emu_memory_add(module->device->memory, loaded_at(module, s->address), s->memory_bytes, name, true))
      return false;
  }
  return true;
}

static void hide_segments(struct emu_module *module, unsigned shown) {
  for (unsigned i = 0; i < shown; i++)
    (void)emu_memory_free(module->device->memory, loaded_at(module, module->object.segments[i].address));
}

static int place_segments(struct emu_module *module) {
  const struct emu_object *object = &module->object;
  module->mapped = (object->high - object->low + 4095) / 4096 * 4096 + 4096;
  module->loaded = mmap(NULL, module->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (module->loaded == MAP_FAILED) {
    module->loaded = NULL;
    return HIP_OUT_OF_MEMORY;
  }
  const struct emu_segment *code = NULL;
  for (unsigned i = 0; i < object->segment_count; i++) {
    const struct emu_segment *s = &object->segments[i];
    memcpy((void *)loaded_at(module, s->address), s->data, s->file_bytes);
    if (s->executable) {
      if (code) {
        emu_say("the code object has two executable segments, which is not done");
        return HIP_INVALID_IMAGE;
      }
      code = s;
    }
  }
  relocate(module);
  if (!code) return HIP_SUCCESS;  // variables only
  module->program_at = code->address;
  uint64_t at = loaded_at(module, code->address);
  module->program = emu_program_create(module->device->card->target, (void *)at, code->file_bytes, at);
  return module->program ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

static int prepare_variables(struct emu_module *module) {
  unsigned count;
  if (!module->program || !emu_state()->check) return HIP_SUCCESS;
  module->symbols = emu_object_variables(&module->object, &count);
  if (!module->symbols) return HIP_SUCCESS;
  module->variables = calloc(count + 1, sizeof *module->variables);
  if (!module->variables) return HIP_OUT_OF_MEMORY;
  for (unsigned i = 0; i < count; i++) {
    const struct emu_symbol *s = &module->symbols[i];
    module->variables[i] = (struct emu_variable){loaded_at(module, s->address), s->bytes, s->name};
  }
  return emu_program_variables(module->program, module->variables, count) ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

static int prepare_functions(struct emu_module *module) {
  const struct emu_object *object = &module->object;
  module->functions = calloc(object->kernel_count + 1, sizeof *module->functions);
  if (!module->functions) return HIP_OUT_OF_MEMORY;
  for (unsigned i = 0; i < object->kernel_count; i++) {
    struct emu_function *f = &module->functions[i];
    f->module = module;
    f->source = &object->kernels[i];
    emu_kernel_parse(f->source->bytes, &f->kernel);
    f->entry = f->source->descriptor + (uint64_t)f->kernel.entry - module->program_at;
  }
  return HIP_SUCCESS;
}

static struct {
  pthread_mutex_t lock;
  struct emu_module *first;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct emu_function *emu_function_known(const void *pointer) {
  struct emu_function *found = NULL;
  pthread_mutex_lock(&loaded.lock);
  for (const struct emu_module *m = loaded.first; m && !found; m = m->next)
    for (unsigned i = 0; i < m->object.kernel_count && !found; i++)
      if (&m->functions[i] == pointer) found = &m->functions[i];
  pthread_mutex_unlock(&loaded.lock);
  return found;
}

static int code_of(enum emu_object_status status) {
  switch (status) {
    case EMU_OBJECT_OK:
      return HIP_SUCCESS;
    case EMU_OBJECT_OTHER_TARGET:
      return HIP_NO_BINARY_FOR_GPU;
    case EMU_OBJECT_NO_MEMORY:
      return HIP_OUT_OF_MEMORY;
    default:
      return HIP_INVALID_IMAGE;
  }
}

int emu_module_load(struct emu_device *device, const void *image, size_t size, struct emu_module **out) {
  struct emu_object_error error = {{0}};
  *out = NULL;
  struct emu_module *module = calloc(1, sizeof *module);
  if (!module) return HIP_OUT_OF_MEMORY;
  module->device = device;
  pthread_mutex_init(&module->lines_lock, NULL);
  enum emu_object_status status = emu_image_find(image, size, device->card->arch, &module->image, &error);
  if (status == EMU_OBJECT_OK && !module->image.owned) {  // the caller's bytes may go away
    module->copy = malloc(module->image.size);
    if (module->copy) {
      memcpy(module->copy, module->image.data, module->image.size);
      module->image.data = module->copy;
    } else {
      status = EMU_OBJECT_NO_MEMORY;
    }
  }
  if (status == EMU_OBJECT_OK) status = emu_object_open(&module->image, &module->object, &error);
  int code = code_of(status);
  if (status != EMU_OBJECT_OK && error.text[0]) emu_say("a code object does not load: %s", error.text);
  unsigned shown = 0;
  if (code == HIP_SUCCESS) code = place_segments(module);
  if (code == HIP_SUCCESS) code = prepare_variables(module);
  if (code == HIP_SUCCESS) code = prepare_functions(module);
  if (code == HIP_SUCCESS && !show_segments(module, &shown)) {
    hide_segments(module, shown);
    code = HIP_OUT_OF_MEMORY;
  }
  if (code == HIP_SUCCESS) {
    pthread_mutex_lock(&loaded.lock);
    module->next = loaded.first;
    loaded.first = module;
    pthread_mutex_unlock(&loaded.lock);
    *out = module;
    return code;
  }
  module->object.segment_count = 0;  // nothing to hide
  emu_module_unload(module);
  return code;
}

void emu_module_unload(struct emu_module *module) {
  pthread_mutex_lock(&loaded.lock);
  for (struct emu_module **m = &loaded.first; *m; m = &(*m)->next)
    if (*m == module) {
      *m = module->next;
      break;
    }
  pthread_mutex_unlock(&loaded.lock);
  hide_segments(module, module->object.segment_count);
  if (module->program) emu_program_release(module->program);
  if (module->loaded) munmap(module->loaded, module->mapped);
  emu_dwarf_release(module->names);
  if (module->lines) emu_lines_release(module->lines);
  pthread_mutex_destroy(&module->lines_lock);
  emu_object_close(&module->object);
  emu_image_release(&module->image);
  free(module->variables);
  free(module->symbols);
  free(module->functions);
  free(module->copy);
  free(module);
}

struct emu_function *emu_module_function(struct emu_module *module, const char *name) {
  const struct emu_object_kernel *kernel = emu_object_kernel(&module->object, name);
  return kernel ? &module->functions[kernel - module->object.kernels] : NULL;
}

static void read_lines(struct emu_module *module) {
  struct emu_line_sections s = {0};
  if (module->lines_read) return;
  module->lines_read = true;
  s.line = emu_object_section(&module->object, ".debug_line", &s.line_bytes);
  s.line_str = emu_object_section(&module->object, ".debug_line_str", &s.line_str_bytes);
  s.str = emu_object_section(&module->object, ".debug_str", &s.str_bytes);
  module->lines = s.line ? emu_lines_create(&s) : NULL;
}

bool emu_module_source_line(void *context, uint64_t pc, char *text, size_t size) {
  struct emu_module *module = context;
  const char *file;
  unsigned line;
  pthread_mutex_lock(&module->lines_lock);
  read_lines(module);
  pthread_mutex_unlock(&module->lines_lock);
  if (!module->lines || !emu_lines_find(module->lines, module->program_at + pc, &file, &line)) return false;
  snprintf(text, size, "%s:%u", file, line);
  return true;
}

static struct emu_section section_of(const struct emu_module *module, const char *name) {
  struct emu_section section = {0};
  section.data = emu_object_section(&module->object, name, &section.bytes);
  if (!section.data) section.bytes = 0;
  return section;
}

static void read_names(struct emu_module *module) {
  struct emu_dwarf_sections s = {.info = section_of(module, ".debug_info"),
                                 .abbrev = section_of(module, ".debug_abbrev"),
                                 .str = section_of(module, ".debug_str"),
                                 .line_str = section_of(module, ".debug_line_str"),
                                 .str_offsets = section_of(module, ".debug_str_offsets"),
                                 .addr = section_of(module, ".debug_addr"),
                                 .loc = section_of(module, ".debug_loc"),
                                 .loclists = section_of(module, ".debug_loclists"),
                                 .ranges = section_of(module, ".debug_ranges"),
                                 .rnglists = section_of(module, ".debug_rnglists")};
  read_lines(module);
  s.lines = module->lines;
  module->names = emu_dwarf_create(&s);
  module->names_read = true;
}

const struct emu_dwarf *emu_module_names(void *context, uint64_t *linked) {
  struct emu_module *module = context;
  pthread_mutex_lock(&module->lines_lock);
  if (!module->names_read) read_names(module);
  pthread_mutex_unlock(&module->lines_lock);
  *linked = module->program_at;
  return module->names;
}

int emu_module_global(struct emu_module *module, const char *name, void **out, size_t *out_bytes) {
  const struct emu_symbol *symbol = emu_object_symbol(&module->object, name);
  if (!symbol || !symbol->object) return HIP_NOT_FOUND;
  if (out) *out = (void *)loaded_at(module, symbol->address);
  if (out_bytes) *out_bytes = symbol->bytes;
  return HIP_SUCCESS;
}

// ---- the calls

API int hipModuleLoadData(struct emu_module **out, const void *image) {
  struct emu_device *device = emu_current();
  if (!out || !image) return emu_done(HIP_INVALID_VALUE);
  if (!device) return emu_done(HIP_NO_DEVICE);
  return emu_done(emu_module_load(device, image, SIZE_MAX, out));
}
// Options concern compilers of other vendors' intermediate code, but for the logs: that of errors has what is wrong
// with the code object, and the sizes become how much is in them.
API int hipModuleLoadDataEx(struct emu_module **out, const void *image, unsigned count, int *options, void **values) {
  enum { INFO_LOG = 3, INFO_LOG_BYTES, ERROR_LOG, ERROR_LOG_BYTES };
  char *log[2] = {NULL, NULL}, text[512] = "";
  size_t *bytes[2] = {NULL, NULL};
  if (count && (!options || !values)) return emu_done(HIP_INVALID_VALUE);
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == INFO_LOG || options[i] == ERROR_LOG) log[options[i] == ERROR_LOG] = values[i];
    if (options[i] == INFO_LOG_BYTES || options[i] == ERROR_LOG_BYTES)
      bytes[options[i] == ERROR_LOG_BYTES] = (size_t *)&values[i];  // the size itself stands in place of a pointer
  }
  if (log[1] && bytes[1]) emu_say_into(text, sizeof text);
  int code = hipModuleLoadData(out, image);
  if (log[1] && bytes[1]) emu_say_into(NULL, 0);
  for (int i = 0; i < 2; i++) {
    size_t room = bytes[i] ? *(const unsigned *)bytes[i] : 0;
    size_t length = log[i] && room ? (size_t)snprintf(log[i], room, "%s", i ? text : "") : 0;
    if (bytes[i]) *bytes[i] = length < room ? length : room ? room - 1 : 0;
  }
  return code;
}

API int hipModuleLoad(struct emu_module **out, const char *path) {
  struct emu_device *device = emu_current();
  if (!out || !path) return emu_done(HIP_INVALID_VALUE);
  if (!device) return emu_done(HIP_NO_DEVICE);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0 || about.st_size == 0) {
    if (file >= 0) close(file);
    return emu_done(HIP_FILE_NOT_FOUND);
  }
  void *image = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (image == MAP_FAILED) return emu_done(HIP_OUT_OF_MEMORY);
  int code = emu_module_load(device, image, (size_t)about.st_size, out);
  munmap(image, (size_t)about.st_size);
  return emu_done(code);
}

API int hipModuleUnload(struct emu_module *module) {
  if (!module) return emu_done(HIP_INVALID_HANDLE);
  int code = emu_device_finish(module->device);
  emu_module_unload(module);
  return emu_done(code);
}

API int hipModuleGetFunction(struct emu_function **out, struct emu_module *module, const char *name) {
  if (!out || !name) return emu_done(HIP_INVALID_VALUE);
  if (!module) return emu_done(HIP_INVALID_HANDLE);
  *out = emu_module_function(module, name);
  return emu_done(*out ? HIP_SUCCESS : HIP_NOT_FOUND);
}

API int hipModuleGetGlobal(void **out, size_t *bytes, struct emu_module *module, const char *name) {
  if (!name || (!out && !bytes)) return emu_done(HIP_INVALID_VALUE);
  if (!module) return emu_done(HIP_INVALID_HANDLE);
  return emu_done(emu_module_global(module, name, out, bytes));
}
API int hipModuleGetFunctionCount(unsigned *out, struct emu_module *module) {
  if (!out || !module) return emu_done(out ? HIP_INVALID_HANDLE : HIP_INVALID_VALUE);
  *out = module->object.kernel_count;
  return emu_done(HIP_SUCCESS);
}
