/* Kernels of one device: a table by manifest index, filled on first use. A family's module is loaded once. */
#include "rdna/kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"
#include "kernel/loader.h"
#include "kernel/manifest.h"

struct rdna_kernel {
  rdna__driver_function function;
  rdna_device *device;
  atomic_bool ready;
};

typedef struct family_module {
  const char *family;
  rdna__driver_module *module;
  bool special; /* for the device's compute capability alone */
} family_module;

typedef struct device_kernels {
  pthread_mutex_t lock; /* everything but a ready kernel */
  rdna__loader *loader; /* NULL until a family is asked for; stays NULL on the host */
  family_module *modules;
  int module_count;
  rdna_kernel kernels[]; /* (rdna__manifest_count) */
} device_kernels;

static void destroy(rdna_device *device, void *data) {
  device_kernels *kernels = data;
  const rdna__driver *driver = rdna__device_driver(device);
  for (int i = 0; i < kernels->module_count; i++)
    driver->module_unload(rdna__device_handle(device), kernels->modules[i].module);
  rdna__loader_close(kernels->loader);
  free(kernels->modules);
  pthread_mutex_destroy(&kernels->lock);
  free(kernels);
}

static rdna_status kernels_of(rdna_device *device, device_kernels **out_kernels) {
  *out_kernels = rdna__device_get_slot(device, RDNA__SLOT_KERNELS);
  if (*out_kernels) return RDNA_OK;
  /* modules has a place for as many families as there are kernels, so that it never moves */
  size_t count = (size_t)rdna__manifest_count;
  device_kernels *made = calloc(1, sizeof *made + count * sizeof made->kernels[0]);
  family_module *modules = calloc(count ? count : 1, sizeof *modules);
  if (!made || !modules) {
    free(made);
    free(modules);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a table of %zu kernels", count);
  }
  made->modules = modules;
  pthread_mutex_init(&made->lock, NULL);
  *out_kernels = rdna__device_set_slot(device, RDNA__SLOT_KERNELS, made, destroy);
  if (*out_kernels != made) destroy(device, made);
  return RDNA_OK;
}

/* Loads an image. A driver that is too old for the special one gets the plain one, which does the same. */
static rdna_status load_image(device_kernels *kernels, rdna_device *device, const char *family, bool special,
                              rdna__driver_module **out_module) {
  void *image;
  size_t size;
  RDNA_TRY(rdna__loader_image(kernels->loader, family, special, &image, &size));
  const rdna__driver *driver = rdna__device_driver(device);
  rdna_status status = driver->module_load(rdna__device_handle(device), image, size, family, out_module);
  free(image);
  return status;
}

static rdna_status load_family(device_kernels *kernels, rdna_device *device, const char *family,
                               const family_module **out_module) {
  for (int i = 0; i < kernels->module_count; i++) {
    if (strcmp(kernels->modules[i].family, family)) continue;
    *out_module = &kernels->modules[i];
    return RDNA_OK;
  }
  const rdna__driver *driver = rdna__device_driver(device);
  const rdna_device_info *info = rdna_device_get_info(device);
  if (!kernels->loader) RDNA_TRY(rdna__loader_open(info->arch, driver->code_format, &kernels->loader));
  family_module *made = &kernels->modules[kernels->module_count];
  *made = (family_module){.family = family, .special = true};
  rdna_status status = load_image(kernels, device, family, true, &made->module);
  if (status != RDNA_OK) {
    made->special = false;
    status = load_image(kernels, device, family, false, &made->module);
  }
  if (status == RDNA_OK) {
    kernels->module_count++;
    *out_module = made;
  }
  return rdna__annotate(status, "loading kernels '%s' from %s", family,
                        rdna__pack_path(rdna__loader_pack(kernels->loader)));
}

/* Under the lock. */
static rdna_status prepare(device_kernels *kernels, rdna_device *device, int index) {
  const rdna__kernel_info *info = &rdna__manifest[index];
  const rdna__driver *driver = rdna__device_driver(device);
  rdna_kernel *kernel = &kernels->kernels[index];
  if (atomic_load(&kernel->ready)) return RDNA_OK;
  kernel->device = device;
  kernel->function =
      (rdna__driver_function){.name = info->name, .group_threads = info->group_threads, .args_size = info->args_size};
  if (driver->code_format == RDNA__CODE_HOST) {
    kernel->function.host_function = rdna__host_twin(index);
    if (!kernel->function.host_function) {
      return rdna__fail(RDNA_UNSUPPORTED,
                        "this library's host kernels are of one instruction set, which the processor lacks or "
                        "RDNA_HOST_ISA rules out; build it without RDNA_HOST_TWINS=native");
    }
  } else {
    const family_module *module = NULL;
    RDNA_TRY(load_family(kernels, device, info->family, &module));
    if (driver->code_format == RDNA__CODE_PTX) {
      const uint32_t *bytes = info->cuda_group_memory;
      kernel->function.dynamic_group_memory = module->special && bytes[1] ? bytes[1] : bytes[0];
    }
    rdna_status status =
        driver->module_function(rdna__device_handle(device), module->module, info->name, &kernel->function.handle);
    RDNA_TRY(
        rdna__annotate(status, "kernel '%s' of %s", info->name, rdna__pack_path(rdna__loader_pack(kernels->loader))));
  }
  atomic_store(&kernel->ready, true);
  return RDNA_OK;
}

rdna_status rdna_kernel_get(rdna_device *device, const char *name, const rdna_kernel **out_kernel) {
  if (!device || !name || !out_kernel)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_kernel_get needs a device, a name and a place for the kernel");
  *out_kernel = NULL;
  int index = rdna__manifest_find(name);
  if (index < 0)
    return rdna__fail(RDNA_NOT_FOUND, "there is no kernel '%s' among the %d of this library", name,
                      rdna__manifest_count);
  device_kernels *kernels;
  RDNA_TRY(kernels_of(device, &kernels));
  rdna_kernel *kernel = &kernels->kernels[index];
  if (!atomic_load_explicit(&kernel->ready, memory_order_acquire)) {
    pthread_mutex_lock(&kernels->lock);
    rdna_status status = prepare(kernels, device, index);
    pthread_mutex_unlock(&kernels->lock);
    RDNA_TRY(status);
  }
  *out_kernel = kernel;
  return RDNA_OK;
}

rdna_status rdna_launch(rdna_stream *stream, const rdna_kernel *kernel, rdna_grid grid, const void *args) {
  if (!stream || !kernel || !args)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_launch needs a stream, a kernel and its arguments");
  if (kernel->device != rdna_stream_device(stream))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "kernel '%s' belongs to another device than the stream; get it with "
                      "rdna_kernel_get for the stream's device",
                      kernel->function.name);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return RDNA_OK;
  return rdna__stream_launch(stream, &kernel->function, grid, args);
}
