// What compiled programs call before main and at each <<<>>>: fat binaries, kernels and variables by the address of
// their host stand-ins. Registering only notes pointers; a fat binary is parsed when something in it is first used, for
// the device that uses it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip/hip.h"

// A __managed__ variable: the host's and the devices' variables of that name are pointers to one allocation.
struct managed {
  struct managed *next;
  void **host;
  char *name;
};

struct fat_binary {
  const void *wrapper;
  struct managed *managed;
  struct emu_module *modules[EMU_MAX_DEVICES];
  int codes[EMU_MAX_DEVICES];  // the error for which a device's module is NULL
  bool tried[EMU_MAX_DEVICES];
};

struct entry {
  const void *symbol;  // the address by which the host names a kernel or variable; NULL: free
  struct fat_binary *binary;
  char *name;
  bool variable;
};

static struct {
  pthread_mutex_t lock;
  struct entry *entries;  // a hash table with open addressing, the key is the symbol
  size_t count, room;     // room: a power of two
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct dim3 {
  unsigned x, y, z;
};
struct configuration {
  struct dim3 grid, block;
  size_t lds;
  void *stream;
};
enum { CONFIGURATIONS = 16 };
static _Thread_local struct configuration configurations[CONFIGURATIONS];
static _Thread_local unsigned configuration_count;

static size_t slot(const void *symbol) {
  size_t at = ((uintptr_t)symbol >> 3) * 0x9e3779b97f4a7c15u >> 20 & (table.room - 1);
  while (table.entries[at].symbol && table.entries[at].symbol != symbol) at = (at + 1) & (table.room - 1);
  return at;
}

static bool grow(void) {
  struct entry *old = table.entries;
  size_t old_room = table.room;
  struct entry *entries = calloc(old_room ? 2 * old_room : 1024, sizeof *entries);
  if (!entries) return false;
  table.entries = entries;
  table.room = old_room ? 2 * old_room : 1024;
  for (size_t i = 0; i < old_room; i++)
    if (old[i].symbol) table.entries[slot(old[i].symbol)] = old[i];
  free(old);
  return true;
}

static void note(struct fat_binary *binary, const void *symbol, const char *name, bool variable) {
  if (!binary || !symbol || !name) return;
  pthread_mutex_lock(&table.lock);
  if (2 * table.count < table.room || grow()) {
    struct entry *entry = &table.entries[slot(symbol)];
    if (!entry->symbol) table.count++;
    free(entry->name);
    *entry = (struct entry){symbol, binary, strdup(name), variable};
  }
  pthread_mutex_unlock(&table.lock);
}

// The fat binary's module on the device, loaded now if it was not. The lock is held.
static int module_on(struct fat_binary *binary, struct emu_device *device, struct emu_module **out) {
  int index = device->index;
  if (!binary->tried[index]) {
    binary->codes[index] = emu_module_load(device, binary->wrapper, SIZE_MAX, &binary->modules[index]);
    binary->tried[index] = true;
    for (struct managed *m = binary->managed; m && binary->codes[index] == HIP_SUCCESS; m = m->next) {
      void *place;
      size_t bytes;
      int code = emu_module_global(binary->modules[index], m->name, &place, &bytes);
      if (code == HIP_SUCCESS && bytes == sizeof *m->host) memcpy(place, m->host, bytes);
    }
  }
  *out = binary->modules[index];
  return binary->codes[index];
}

// Finds what the host address stands for; *out_module is its module on the current device.
static int find(const void *symbol, bool variable, struct emu_module **out_module, const char **out_name) {
  struct emu_device *device = emu_current();
  int missing = variable ? HIP_INVALID_SYMBOL : HIP_INVALID_DEVICE_FUNCTION, code = missing;
  if (!device) return HIP_NO_DEVICE;
  pthread_mutex_lock(&table.lock);
  if (symbol && table.room) {
    const struct entry *entry = &table.entries[slot(symbol)];
    if (entry->symbol && entry->name && entry->variable == variable) {
      *out_name = entry->name;
      code = module_on(entry->binary, device, out_module);
    }
  }
  pthread_mutex_unlock(&table.lock);
  return code;
}

int emu_registered_function(const void *symbol, struct emu_function **out) {
  struct emu_module *module = NULL;
  const char *name = NULL;
  *out = NULL;
  int code = find(symbol, false, &module, &name);
  if (code != HIP_SUCCESS) return code;
  *out = emu_module_function(module, name);
  return *out ? HIP_SUCCESS : HIP_INVALID_DEVICE_FUNCTION;
}

int emu_registered_variable(const void *symbol, void **out, size_t *bytes) {
  struct emu_module *module = NULL;
  const char *name = NULL;
  int code = find(symbol, true, &module, &name);
  if (code != HIP_SUCCESS) return code;
  code = emu_module_global(module, name, out, bytes);
  return code == HIP_NOT_FOUND ? HIP_INVALID_SYMBOL : code;
}

// ---- the calls

API struct fat_binary *__hipRegisterFatBinary(const void *wrapper) {
  struct fat_binary *binary = calloc(1, sizeof *binary);
  if (binary) binary->wrapper = wrapper;
  return binary;
}

API void __hipRegisterFunction(struct fat_binary *binary, const void *symbol, char *name, const char *device_name,
                               unsigned limit, void *thread_id, void *block_id, void *block, void *grid, int *size) {
  note(binary, symbol, device_name, false);
}

API void __hipRegisterVar(struct fat_binary *binary, void *symbol, char *name, char *device_name, int external,
                          size_t bytes, int constant, int global) {
  note(binary, symbol, device_name, true);
}

API void __hipRegisterManagedVar(struct fat_binary *binary, void **host, const void *initial, const char *name,
                                 size_t bytes, unsigned alignment) {
  enum { ATTACH_GLOBAL = 1 };
  void *memory = NULL;
  struct managed *m = binary ? calloc(1, sizeof *m) : NULL;
  if (!m) return;
  *m = (struct managed){binary->managed, host, strdup(name)};
  if (!m->name || emu_block_create(emu_device(0), EMU_BLOCK_MANAGED, bytes, ATTACH_GLOBAL, name, &memory)) {
    emu_say("there is no memory for the managed variable '%s' of %zu bytes", name, bytes);
    free(m->name);
    free(m);
    return;
  }
  memcpy(memory, initial, bytes);
  *host = memory;
  pthread_mutex_lock(&table.lock);
  binary->managed = m;
  pthread_mutex_unlock(&table.lock);
}

// A program's destructors may run while the runtime's do: what is left is the process's to free.
API void __hipUnregisterFatBinary(struct fat_binary *binary) {
  if (!binary) return;
  pthread_mutex_lock(&table.lock);
  for (size_t i = 0; i < table.room; i++) {
    struct entry *entry = &table.entries[i];
    if (!entry->symbol || entry->binary != binary) continue;
    free(entry->name);
    entry->name = NULL;  // the slot stays taken, so that others are still found
    entry->binary = NULL;
  }
  pthread_mutex_unlock(&table.lock);
  for (int i = 0; i < EMU_MAX_DEVICES; i++) {
    if (!binary->modules[i]) continue;
    if (emu_device_finish(binary->modules[i]->device) != HIP_SUCCESS) emu_report_untold(1);
    emu_module_unload(binary->modules[i]);
  }
  while (binary->managed) {
    struct managed *m = binary->managed;
    binary->managed = m->next;
    (void)emu_block_release(*m->host);
    *m->host = NULL;
    free(m->name);
    free(m);
  }
  free(binary);
}

API int __hipPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t lds, void *stream) {
  if (configuration_count == CONFIGURATIONS) return emu_done(HIP_MISSING_CONFIGURATION);
  configurations[configuration_count++] = (struct configuration){grid, block, lds, stream};
  return emu_done(HIP_SUCCESS);
}

API int __hipPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *lds, void **stream) {
  if (configuration_count == 0) return emu_done(HIP_MISSING_CONFIGURATION);
  const struct configuration *c = &configurations[--configuration_count];
  *grid = c->grid;
  *block = c->block;
  *lds = c->lds;
  *stream = c->stream;
  return emu_done(HIP_SUCCESS);
}

static int launch_symbol(const void *symbol, struct dim3 grid, struct dim3 block, void **parameters, size_t lds,
                         void *handle, bool cooperative) {
  struct emu_function *function;
  int code = emu_registered_function(symbol, &function);
  if (code != HIP_SUCCESS) return code;
  if (lds > UINT32_MAX) return HIP_INVALID_VALUE;
  struct emu_launch launch = {.function = function,
                              .groups = {grid.x, grid.y, grid.z},
                              .threads = {block.x, block.y, block.z},
                              .lds = (unsigned)lds,
                              .parameters = parameters,
                              .cooperative = cooperative};
  return emu_launch(&launch, emu_stream_of(handle));
}

API int hipLaunchKernel(const void *symbol, struct dim3 grid, struct dim3 block, void **parameters, size_t lds,
                        void *handle) {
  return emu_done(launch_symbol(symbol, grid, block, parameters, lds, handle, false));
}
API int hipLaunchCooperativeKernel(const void *symbol, struct dim3 grid, struct dim3 block, void **parameters,
                                   unsigned lds, void *handle) {
  return emu_done(launch_symbol(symbol, grid, block, parameters, lds, handle, true));
}

API int hipLaunchKernelExC(const void *configuration, const void *symbol, void **parameters) {
  const struct {  // hipLaunchConfig_t
    struct configuration c;
    const void *attributes;
    unsigned attribute_count;
  } *with = configuration;
  if (!with) return emu_done(HIP_INVALID_VALUE);
  return emu_done(launch_symbol(symbol, with->c.grid, with->c.block, parameters, with->c.lds, with->c.stream,
                                emu_launch_cooperates(with->attributes, with->attribute_count)));
}

API int hipExtLaunchKernel(const void *symbol, struct dim3 grid, struct dim3 block, void **parameters, size_t lds,
                           void *handle, void *start, void *stop, int flags) {
  if (start || stop) {
    emu_say("hipExtLaunchKernel with events is not in the emulator");
    return emu_done(HIP_NOT_SUPPORTED);
  }
  return hipLaunchKernel(symbol, grid, block, parameters, lds, handle);
}

API int hipGetFuncBySymbol(struct emu_function **out, const void *symbol) {
  return emu_done(out ? emu_registered_function(symbol, out) : HIP_INVALID_VALUE);
}

API int hipGetSymbolAddress(void **out, const void *symbol) {
  return emu_done(out ? emu_registered_variable(symbol, out, NULL) : HIP_INVALID_VALUE);
}

API int hipGetSymbolSize(size_t *bytes, const void *symbol) {
  return emu_done(bytes ? emu_registered_variable(symbol, NULL, bytes) : HIP_INVALID_VALUE);
}

int hipMemcpy(void *dst, const void *src, size_t bytes, int kind);
int hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream);

int emu_registered_range(const void *symbol, size_t bytes, size_t offset, void **out) {
  size_t size = 0;
  int code = emu_registered_variable(symbol, out, &size);
  if (code != HIP_SUCCESS) return code;
  if (offset > size || bytes > size - offset) return HIP_INVALID_VALUE;
  *out = (uint8_t *)*out + offset;
  return HIP_SUCCESS;
}

API int hipMemcpyToSymbol(const void *symbol, const void *src, size_t bytes, size_t offset, int kind) {
  void *at;
  int code = emu_registered_range(symbol, bytes, offset, &at);
  return code == HIP_SUCCESS ? hipMemcpy(at, src, bytes, kind) : emu_done(code);
}
API int hipMemcpyToSymbolAsync(const void *symbol, const void *src, size_t bytes, size_t offset, int kind,
                               void *stream) {
  void *at;
  int code = emu_registered_range(symbol, bytes, offset, &at);
  return code == HIP_SUCCESS ? hipMemcpyAsync(at, src, bytes, kind, stream) : emu_done(code);
}
API int hipMemcpyFromSymbol(void *dst, const void *symbol, size_t bytes, size_t offset, int kind) {
  void *at;
  int code = emu_registered_range(symbol, bytes, offset, &at);
  return code == HIP_SUCCESS ? hipMemcpy(dst, at, bytes, kind) : emu_done(code);
}
API int hipMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t bytes, size_t offset, int kind, void *stream) {
  void *at;
  int code = emu_registered_range(symbol, bytes, offset, &at);
  return code == HIP_SUCCESS ? hipMemcpyAsync(dst, at, bytes, kind, stream) : emu_done(code);
}
