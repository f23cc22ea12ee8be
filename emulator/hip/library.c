// Libraries: a code object on all devices that it has code for, whose kernels have one handle for all of them.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hip/hip.h"

int hipFuncGetAttribute(int *value, int attribute, struct emu_function *f);

struct kernel {
  struct library *library;
  const char *name;  // of the first module's object
};
struct library {
  struct library *next;
  struct emu_module *modules[EMU_MAX_DEVICES];
  struct kernel *kernels;
  unsigned count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct library *all;

static bool is_library(const struct library *wanted) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const struct library *l = all; l && !found; l = l->next) found = l == wanted;
  pthread_mutex_unlock(&lock);
  return found;
}
static bool is_kernel(const struct kernel *wanted) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const struct library *l = all; l && !found; l = l->next)
    for (unsigned i = 0; i < l->count && !found; i++) found = &l->kernels[i] == wanted;
  pthread_mutex_unlock(&lock);
  return found;
}

static void release(struct library *library) {
  for (int i = 0; i < EMU_MAX_DEVICES; i++)
    if (library->modules[i]) emu_module_unload(library->modules[i]);
  free(library->kernels);
  free(library);
}

// Other devices than the current one may have no code.
static int load_all(struct library *library, const void *data, size_t bytes) {
  const struct emu_device *current = emu_current();
  const struct emu_state *s = emu_state();
  for (int i = 0; i < s->device_count; i++) {
    struct emu_device *device = emu_device(i);
    struct emu_image image;
    struct emu_object_error error = {{0}};
    bool there = emu_image_find(data, bytes, device->card->arch, &image, &error) == EMU_OBJECT_OK;
    if (there) emu_image_release(&image);
    if (!there && device != current) continue;
    int code = emu_module_load(device, data, bytes, &library->modules[i]);
    if (code != HIP_SUCCESS) return code;
  }
  const struct emu_object *object = &library->modules[current->index]->object;
  library->kernels = calloc(object->kernel_count + 1, sizeof *library->kernels);
  if (!library->kernels) return HIP_OUT_OF_MEMORY;
  library->count = object->kernel_count;
  for (unsigned i = 0; i < library->count; i++) library->kernels[i] = (struct kernel){library, object->kernels[i].name};
  return HIP_SUCCESS;
}

static int open_library(const void *data, size_t bytes, struct library **out) {
  if (!emu_current()) return HIP_NO_DEVICE;
  struct library *library = calloc(1, sizeof *library);
  if (!library) return HIP_OUT_OF_MEMORY;
  int code = load_all(library, data, bytes);
  if (code != HIP_SUCCESS) {
    release(library);
    return code;
  }
  pthread_mutex_lock(&lock);
  library->next = all;
  all = library;
  pthread_mutex_unlock(&lock);
  *out = library;
  return HIP_SUCCESS;
}

// Options concern compilers of other vendors' intermediate code.
API int hipLibraryLoadData(struct library **out, const void *data, const int *options, void **values, unsigned count,
                           const int *library_options, void **library_values, unsigned library_count) {
  return emu_done(out && data ? open_library(data, SIZE_MAX, out) : HIP_INVALID_VALUE);
}

API int hipLibraryLoadFromFile(struct library **out, const char *path, const int *options, void **values,
                               unsigned count, const int *library_options, void **library_values,
                               unsigned library_count) {
  struct stat about;
  if (!out || !path) return emu_done(HIP_INVALID_VALUE);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  bool there = file >= 0 && fstat(file, &about) == 0 && about.st_size > 0;
  void *data = there ? mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  if (file >= 0) close(file);
  if (data == MAP_FAILED) return emu_done(there ? HIP_OUT_OF_MEMORY : HIP_FILE_NOT_FOUND);
  int code = open_library(data, (size_t)about.st_size, out);
  munmap(data, (size_t)about.st_size);
  return emu_done(code);
}

API int hipLibraryUnload(struct library *library) {
  struct emu_state *s = emu_state();
  int code = HIP_SUCCESS;
  if (!is_library(library)) return emu_done(HIP_INVALID_HANDLE);
  for (int i = 0; i < s->device_count; i++) {
    int one = emu_device_finish(emu_device(i));
    if (code == HIP_SUCCESS) code = one;
  }
  pthread_mutex_lock(&lock);
  for (struct library **l = &all; *l; l = &(*l)->next)
    if (*l == library) {
      *l = library->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  release(library);
  return emu_done(code);
}

API int hipLibraryGetKernel(struct kernel **out, struct library *library, const char *name) {
  if (!out || !name) return emu_done(HIP_INVALID_VALUE);
  if (!is_library(library)) return emu_done(HIP_INVALID_HANDLE);
  for (unsigned i = 0; i < library->count; i++)
    if (strcmp(library->kernels[i].name, name) == 0) {
      *out = &library->kernels[i];
      return emu_done(HIP_SUCCESS);
    }
  return emu_done(HIP_NOT_FOUND);
}
API int hipLibraryGetKernelCount(unsigned *out, struct library *library) {
  if (!out) return emu_done(HIP_INVALID_VALUE);
  if (!is_library(library)) return emu_done(HIP_INVALID_HANDLE);
  *out = library->count;
  return emu_done(HIP_SUCCESS);
}
API int hipLibraryEnumerateKernels(struct kernel **out, unsigned room, struct library *library) {
  if (!out || room == 0) return emu_done(HIP_INVALID_VALUE);
  if (!is_library(library)) return emu_done(HIP_INVALID_HANDLE);
  for (unsigned i = 0; i < room && i < library->count; i++) out[i] = &library->kernels[i];
  return emu_done(HIP_SUCCESS);
}

// ---- kernels

static int function_on(const struct kernel *kernel, const struct emu_device *device, struct emu_function **out) {
  if (!is_kernel(kernel)) return HIP_INVALID_HANDLE;
  if (!device) return HIP_INVALID_DEVICE;
  struct emu_module *module = kernel->library->modules[device->index];
  if (!module) return HIP_NO_BINARY_FOR_GPU;
  *out = emu_module_function(module, kernel->name);
  return *out ? HIP_SUCCESS : HIP_NOT_FOUND;
}

// The current device's.
API int hipKernelGetFunction(struct emu_function **out, const struct kernel *kernel) {
  return emu_done(out ? function_on(kernel, emu_current(), out) : HIP_INVALID_VALUE);
}
API int hipKernelGetLibrary(struct library **out, const struct kernel *kernel) {
  if (!out || !is_kernel(kernel)) return emu_done(out ? HIP_INVALID_HANDLE : HIP_INVALID_VALUE);
  *out = kernel->library;
  return emu_done(HIP_SUCCESS);
}
API int hipKernelGetName(const char **out, const struct kernel *kernel) {
  if (!out || !is_kernel(kernel)) return emu_done(out ? HIP_INVALID_HANDLE : HIP_INVALID_VALUE);
  *out = kernel->name;
  return emu_done(HIP_SUCCESS);
}
API int hipKernelGetAttribute(int *out, int attribute, const struct kernel *kernel, int device) {
  struct emu_function *f;
  int code = function_on(kernel, emu_device(device), &f);
  return code == HIP_SUCCESS ? hipFuncGetAttribute(out, attribute, f) : emu_done(code);
}
API int hipKernelGetParamInfo(const struct kernel *kernel, size_t index, size_t *offset, size_t *bytes) {
  struct emu_function *f;
  if (!offset) return emu_done(HIP_INVALID_VALUE);
  int code = function_on(kernel, emu_current(), &f);
  if (code != HIP_SUCCESS) return emu_done(code);
  size_t visible = 0;
  for (unsigned i = 0; i < f->source->arg_count; i++) {
    const struct emu_arg *arg = &f->source->args[i];
    if (arg->kind > EMU_ARG_POINTER || visible++ != index) continue;
    *offset = arg->offset;
    if (bytes) *bytes = arg->size;
    return emu_done(HIP_SUCCESS);
  }
  return emu_done(HIP_INVALID_VALUE);
}
