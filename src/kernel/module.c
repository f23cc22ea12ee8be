/* Code that was compiled at run time, on a device; launches with checked arguments. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"
#include "kernel/compile.h"
#include "kernel/loader.h"

enum { MOST_BLOCK_BYTES = 64 << 10, ARCH_SIZE = 32 };

typedef struct module_kernel {
  const char *name; /* for as long as the process lives, as streams remember it */
  void *handle;
  uint32_t args_size;
} module_kernel;

struct rdna_module {
  rdna_device *device;
  bool keeps_device;
  rdna__driver_module *handle;
  rdna__code_description description;
  bool is_ptx;
  int kernel_count;
  module_kernel kernels[];
};

/* Names of kernels that were loaded, each once, never freed: streams, profiles and sentences of late errors keep them.
 */
typedef struct name_entry {
  struct name_entry *next;
  char name[];
} name_entry;
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static name_entry *names;

static const char *lasting_name(const char *name) {
  pthread_mutex_lock(&names_lock);
  name_entry *found = names;
  while (found && strcmp(found->name, name) != 0) found = found->next;
  if (!found) {
    size_t size = strlen(name) + 1;
    found = malloc(sizeof *found + size);
    if (found) {
      memcpy(found->name, name, size);
      found->next = names;
      names = found;
    }
  }
  pthread_mutex_unlock(&names_lock);
  return found ? found->name : NULL;
}

/* ---- loading ------------------------------------------------------------------------------------------------ */

/* The device's architecture without its features: "gfx90a" of "gfx90a:xnack-". */
static void base_arch(const rdna_device_info *info, char arch[ARCH_SIZE]) {
  snprintf(arch, ARCH_SIZE, "%.*s", (int)strcspn(info->arch, ":"), info->arch);
}

static rdna_status load_image(rdna_module *module, const rdna_code *code, const char *arch) {
  const rdna__driver *driver = rdna__device_driver(module->device);
  const char *target = code->description.target, *name = "compiled at run time";
  rdna__driver_device *handle = rdna__device_handle(module->device);
  if (module->is_ptx || !strcmp(target, arch))
    return driver->module_load(handle, code->data, code->size, name, &module->handle);
  void *image = malloc(code->size);
  if (!image) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes of code", code->size);
  memcpy(image, code->data, code->size);
  rdna_status status = rdna__retarget(image, code->size, target, arch);
  if (status == RDNA_OK) status = driver->module_load(handle, image, code->size, name, &module->handle);
  free(image);
  return status;
}

static rdna_status find_kernel(rdna_module *module, int index) {
  const rdna__driver *driver = rdna__device_driver(module->device);
  const rdna_code_kernel *kernel = &module->description.kernels[index];
  module_kernel *made = &module->kernels[index];
  made->name = lasting_name(kernel->name);
  if (!made->name) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a kernel");
  for (int i = 0; i < kernel->argument_count; i++) {
    uint32_t end = kernel->arguments[i].offset + kernel->arguments[i].size;
    if (end > made->args_size) made->args_size = end;
  }
  if (made->args_size > MOST_BLOCK_BYTES)
    return rdna__fail(RDNA_UNSUPPORTED, "kernel '%s' takes %u bytes of arguments; %d is the most", kernel->name,
                      made->args_size, MOST_BLOCK_BYTES);
  return driver->module_function(rdna__device_handle(module->device), module->handle, kernel->symbol, &made->handle);
}

static rdna_status load(rdna_module *module, const rdna_code *code, const char *arch) {
  RDNA_TRY(load_image(module, code, arch));
  RDNA_TRY(rdna__code_describe(code->data, code->size, &module->description));
  for (int i = 0; i < module->kernel_count; i++) RDNA_TRY(find_kernel(module, i));
  return RDNA_OK;
}

rdna_status rdna_module_load(rdna_device *device, const rdna_code *code, rdna_module **out_module) {
  RDNA_TRY(rdna__module_load_within(device, code, out_module));
  (*out_module)->keeps_device = true;
  rdna_device_retain(device);
  return RDNA_OK;
}

rdna_status rdna__module_load_within(rdna_device *device, const rdna_code *code, rdna_module **out_module) {
  if (!device || !code || !out_module)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_module_load needs a device, code and a place for the module");
  *out_module = NULL;
  const rdna_device_info *info = rdna_device_get_info(device);
  const rdna__driver *driver = rdna__device_driver(device);
  char arch[ARCH_SIZE];
  base_arch(info, arch);
  if (driver->code_format == RDNA__CODE_HOST || !driver->module_load)
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "the code is for %s, and %s runs none of a GPU; open a GPU, or an emulated one with RDNA_EMULATE=%s",
        code->description.target, info->name, code->description.target);
  if (!rdna__target_fitness(code->description.target, arch))
    return rdna__fail(RDNA_UNSUPPORTED, "the code is for %s, which %s (%s) does not run; compile it for %s",
                      code->description.target, info->name, info->arch, arch);
  int count = code->description.kernel_count;
  rdna_module *module = calloc(1, sizeof *module + (size_t)count * sizeof module->kernels[0]);
  if (!module) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a module");
  module->device = device;
  module->is_ptx = driver->code_format == RDNA__CODE_PTX;
  module->kernel_count = count;
  rdna_status status = load(module, code, arch);
  if (status != RDNA_OK) {
    rdna_module_release(module);
    return rdna__annotate(status, "loading compiled code onto %s", info->name);
  }
  *out_module = module;
  return RDNA_OK;
}

void rdna_module_release(rdna_module *module) {
  if (!module) return;
  if (module->handle) {
    (void)!rdna_device_synchronize(module->device); /* an error of its work is found again by whoever waits for it */
    rdna__device_driver(module->device)->module_unload(rdna__device_handle(module->device), module->handle);
  }
  rdna__code_description_free(&module->description);
  if (module->keeps_device) rdna_device_release(module->device);
  free(module);
}

/* ---- launching ---------------------------------------------------------------------------------------------- */

static const char *number_name(rdna_number number) {
  static const char *const kinds[] = {"unknown", "integer", "float", "bfloat"};
  return (unsigned)number < sizeof kinds / sizeof *kinds ? kinds[number] : "unknown";
}

/* "argument 3 (n, an int)" */
static rdna_status wrong(const rdna_code_kernel *kernel, int index, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static rdna_status wrong(const rdna_code_kernel *kernel, int index, const char *format, ...) {
  const rdna_code_argument *argument = &kernel->arguments[index];
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return rdna__fail(RDNA_INVALID_ARGUMENT, "kernel '%s', argument %d%s%s%s%s: %s", kernel->name, index + 1,
                    argument->type[0] ? ", " : "", argument->type, argument->name[0] ? " " : "", argument->name, text);
}

static rdna_status check_argument(const rdna_module *module, const rdna_code_kernel *kernel, int index,
                                  const rdna_launch_argument *given) {
  const rdna_code_argument *wanted = &kernel->arguments[index];
  if (!given->data) return wrong(kernel, index, "it has no data");
  /* PTX has pointers as integers, and only a C++ symbol tells them apart */
  bool unclear = module->is_ptx && !wanted->is_pointer && wanted->size == sizeof(void *) && !wanted->type[0];
  if (given->is_pointer != wanted->is_pointer && !(given->is_pointer && unclear))
    return wrong(kernel, index, "it is %s, and %s was given",
                 wanted->is_pointer ? "a pointer to memory of the GPU" : "a value",
                 given->is_pointer ? "a pointer" : "a value");
  bool known = wanted->number != RDNA_NUMBER_UNKNOWN && given->number != RDNA_NUMBER_UNKNOWN;
  if (given->is_pointer) {
    if (known && (wanted->number != given->number || (given->size && wanted->number_size != given->size)))
      return wrong(kernel, index, "it points to a %u-byte %s, and memory of a %u-byte %s was given",
                   wanted->number_size, number_name(wanted->number), given->size, number_name(given->number));
    return RDNA_OK;
  }
  if (given->size != wanted->size)
    return wrong(kernel, index, "it has %u bytes, and %u were given", wanted->size, given->size);
  if (known && wanted->number != given->number)
    return wrong(kernel, index, "it is of kind %s, and one of kind %s was given", number_name(wanted->number),
                 number_name(given->number));
  return RDNA_OK;
}

static rdna_status check_shape(const rdna_module *module, const rdna_code_kernel *kernel,
                               const rdna_launch_shape *shape) {
  const rdna_device_info *info = rdna_device_get_info(module->device);
  uint64_t threads = 1, most = (uint64_t)info->max_group_threads;
  if (kernel->max_group_threads && kernel->max_group_threads < most) most = kernel->max_group_threads;
  for (int i = 0; i < 3; i++) {
    if (shape->block[i] == 0 || shape->block[i] > most)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "kernel '%s': side %d of the block is %u; it may be 1 to %llu",
                        kernel->name, i, shape->block[i], (unsigned long long)most);
    threads *= shape->block[i];
    if ((uint64_t)shape->grid[i] * shape->block[i] > UINT32_MAX)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "kernel '%s': %u groups of %u threads along side %d are more than 2^32 - 1", kernel->name,
                        shape->grid[i], shape->block[i], i);
  }
  if (threads > most)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "kernel '%s': a block of %u x %u x %u is %llu threads; %llu is the most%s",
                      kernel->name, shape->block[0], shape->block[1], shape->block[2], (unsigned long long)threads,
                      (unsigned long long)most,
                      most < (uint64_t)info->max_group_threads ? " by its launch bounds" : "");
  uint64_t memory = (uint64_t)kernel->group_memory + shape->group_memory;
  if (memory > info->max_group_memory)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "kernel '%s': %u bytes of shared memory of its own and %u asked for are more than the %u that a "
                      "group has",
                      kernel->name, kernel->group_memory, shape->group_memory, info->max_group_memory);
  return RDNA_OK;
}

static rdna_status check_launch(rdna_stream *stream, const rdna_module *module, int index,
                                const rdna_launch_shape *shape, const rdna_launch_argument *arguments, int count) {
  if (!stream || !module || !shape || (count && !arguments))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_module_launch needs a stream, a module, a shape and its arguments");
  if (index < 0 || index >= module->kernel_count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the module has %d kernels, and kernel %d was asked for",
                      module->kernel_count, index);
  const rdna_code_kernel *kernel = &module->description.kernels[index];
  if (rdna_stream_device(stream) != module->device)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "kernel '%s' was loaded onto another device than the stream's; load it there", kernel->name);
  if (count != kernel->argument_count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "kernel '%s' takes %d arguments, and %d were given", kernel->name,
                      kernel->argument_count, count);
  for (int i = 0; i < count; i++) RDNA_TRY(check_argument(module, kernel, i, &arguments[i]));
  return check_shape(module, kernel, shape);
}

rdna_status rdna_module_launch(rdna_stream *stream, const rdna_module *module, int index,
                               const rdna_launch_shape *shape, const rdna_launch_argument *arguments, int count) {
  RDNA_TRY(check_launch(stream, module, index, shape, arguments, count));
  if (!shape->grid[0] || !shape->grid[1] || !shape->grid[2]) return RDNA_OK;
  const rdna_code_kernel *kernel = &module->description.kernels[index];
  const module_kernel *found = &module->kernels[index];
  uint8_t few[1024] = {0}, *block = found->args_size > sizeof few ? calloc(1, found->args_size) : few;
  if (!block) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the arguments of kernel '%s'", kernel->name);
  for (int i = 0; i < count; i++)
    memcpy(block + kernel->arguments[i].offset, arguments[i].data, kernel->arguments[i].size);
  rdna__driver_function function = {.name = found->name,
                                    .handle = found->handle,
                                    .group_threads = shape->block[0],
                                    .group_sides = {shape->block[1], shape->block[2]},
                                    .dynamic_group_memory = shape->group_memory,
                                    .args_size = found->args_size};
  rdna_status status =
      rdna__stream_launch(stream, &function, (rdna_grid){shape->grid[0], shape->grid[1], shape->grid[2]}, block);
  if (block != few) free(block);
  return status;
}
