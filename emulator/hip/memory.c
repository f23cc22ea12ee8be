// Allocations. Device addresses are host addresses. A gap lies behind each block, so that neither a kernel nor
// a copy that runs over its end meets the next one unseen:
//
//     base                       base + bytes        base + mapped
//      | the block                    | gap, in no table  |  other mappings …
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hip/graph.h"

enum { GAP_BYTES = 4096, POISON = 0xe5, POISON_BYTES = 16 << 20, QUARANTINE = 1024, LARGE_PAGE = 2 << 20 };

static struct {
  pthread_mutex_t lock;
  struct emu_block *blocks;  // ascending
  size_t count, room;
  unsigned made[5];  // by kind, for names
  // A ring of the last blocks that were freed. Their pages go back to the system at once, but their addresses stay
  // mapped without access until they leave the ring, so that a stale pointer does not meet another block.
  struct emu_block quarantine[QUARANTINE];
  unsigned quarantine_next;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void retire(const struct emu_block *block) {
  struct emu_block *slot = &table.quarantine[table.quarantine_next++ % QUARANTINE];
  struct emu_block old = *slot;
  enum { KIND = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED };  // pages of a file, too, go back at once
  bool kept = mmap((void *)block->base, block->mapped, PROT_NONE, KIND, -1, 0) != MAP_FAILED;
  *slot = kept ? *block : (struct emu_block){0};
  if (!kept) munmap((void *)block->base, block->mapped);
  if (old.mapped) munmap((void *)old.base, old.mapped);
}

static void empty_quarantine(void) {
  pthread_mutex_lock(&table.lock);
  for (int i = 0; i < QUARANTINE; i++) {
    struct emu_block *old = &table.quarantine[i];
    if (old->mapped) munmap((void *)old->base, old->mapped);
    *old = (struct emu_block){0};
  }
  pthread_mutex_unlock(&table.lock);
}

static const struct emu_block *freed_at(uint64_t address) {
  for (int i = 0; i < QUARANTINE; i++) {
    const struct emu_block *old = &table.quarantine[i];
    if (old->mapped && address - old->base < old->mapped) return old;
  }
  return NULL;
}

static uint8_t *map(size_t bytes) {
  enum { ACCESS = PROT_READ | PROT_WRITE, KIND = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
  void *data = mmap(NULL, bytes, ACCESS, KIND, -1, 0);
  if (data != MAP_FAILED) return data;
  empty_quarantine();
  data = mmap(NULL, bytes, ACCESS, KIND, -1, 0);
  return data == MAP_FAILED ? NULL : data;
}

// Maps `bytes`; from LARGE_PAGE on aligned to it, as on the card: the device's malloc relies on it.
static uint8_t *map_aligned(size_t bytes) {
  if (bytes < LARGE_PAGE) return map(bytes);
  uint8_t *data = map(bytes + LARGE_PAGE);
  if (!data) return NULL;
  size_t before = (LARGE_PAGE - (uintptr_t)data % LARGE_PAGE) % LARGE_PAGE;
  if (before) munmap(data, before);
  munmap(data + before + bytes, LARGE_PAGE - before);
  return data + before;
}

// The first block whose base is above the address.
static size_t above(uint64_t address) {
  size_t low = 0, high = table.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (table.blocks[middle].base <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool insert(const struct emu_block *block) {
  if (table.count == table.room) {
    size_t room = table.room ? 2 * table.room : 64;
    struct emu_block *grown = realloc(table.blocks, room * sizeof *grown);
    if (!grown) return false;
    table.blocks = grown;
    table.room = room;
  }
  size_t at = above(block->base);
  memmove(&table.blocks[at + 1], &table.blocks[at], (table.count - at) * sizeof *table.blocks);
  table.blocks[at] = *block;
  table.count++;
  return true;
}

static bool sees(const struct emu_device *device, const struct emu_block *block) {
  if (block->readers >> device->index & 1) return true;
  if (block->kind == EMU_BLOCK_MAPPED) return false;
  return block->kind != EMU_BLOCK_DEVICE || device == block->device || device->peers >> block->device->index & 1;
}

// Enters the block into the tables of the devices that see it. Device memory counts as unwritten to the checker, all
// other memory as written, since the host may write it at any time.
static bool show(const struct emu_block *block, const char *name) {
  struct emu_state *s = emu_state();
  bool good = true;
  for (int i = 0; i < s->device_count; i++)
    if (sees(&s->devices[i], block))
      good &= emu_memory_add(s->devices[i].memory, block->base, block->bytes, name, block->kind != EMU_BLOCK_DEVICE);
  return good;
}

static void hide(const struct emu_block *block) {
  struct emu_state *s = emu_state();
  for (int i = 0; i < s->device_count; i++) {
    if (!sees(&s->devices[i], block)) continue;
    if (block->mapped) {
      (void)emu_memory_free(s->devices[i].memory, block->base);
    } else {
      (void)emu_memory_remove(s->devices[i].memory, block->base);
    }
  }
}

static void name_block(const struct emu_block *block, const char *given, char name[48]) {
  static const char *const calls[] = {"hipMalloc", "hipHostMalloc", "hipMallocManaged", "hipHostRegister", "hipMemMap"};
  unsigned number = ++table.made[block->kind];
  if (given) {
    snprintf(name, 48, "%s", given);
  } else {
    snprintf(name, 48, "%s #%u", calls[block->kind], number);
  }
}

static int enter(struct emu_block *block, const char *given) {
  char name[48];
  pthread_mutex_lock(&table.lock);
  struct emu_device *device = block->device;
  if (block->kind == EMU_BLOCK_DEVICE && block->bytes > device->total - device->used) {
    pthread_mutex_unlock(&table.lock);
    return HIP_OUT_OF_MEMORY;
  }
  name_block(block, given, name);
  bool good = insert(block);
  if (good && !show(block, name)) {
    hide(block);
    size_t at = above(block->base) - 1;
    memmove(&table.blocks[at], &table.blocks[at + 1], (--table.count - at) * sizeof *table.blocks);
    good = false;
  }
  if (good && block->kind == EMU_BLOCK_DEVICE) device->used += block->bytes;
  pthread_mutex_unlock(&table.lock);
  return good ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

int emu_block_create(struct emu_device *device, enum emu_block_kind kind, size_t bytes, unsigned flags,
                     const char *name, void **out) {
  *out = NULL;
  if (!device) return HIP_NO_DEVICE;
  if (bytes > SIZE_MAX / 2) return HIP_OUT_OF_MEMORY;
  size_t mapped = (bytes + GAP_BYTES - 1) / GAP_BYTES * GAP_BYTES + GAP_BYTES;
  if (kind == EMU_BLOCK_DEVICE && bytes > device->total) return HIP_OUT_OF_MEMORY;
  uint8_t *data = map_aligned(mapped);
  if (!data) return HIP_OUT_OF_MEMORY;
  // a card hands out what the last program left; zeros would hide that
  if (kind == EMU_BLOCK_DEVICE && !name) memset(data, POISON, bytes < POISON_BYTES ? bytes : POISON_BYTES);
  struct emu_block block = {
      .base = (uint64_t)data, .bytes = bytes, .kind = kind, .flags = flags, .device = device, .mapped = mapped};
  int code = enter(&block, name);
  if (code != HIP_SUCCESS) {
    munmap(data, mapped);
    return code;
  }
  *out = data;
  return HIP_SUCCESS;
}

// Takes the block that starts at the pointer out of the table.
static bool leave(const void *pointer, bool registered, struct emu_block *out) {
  pthread_mutex_lock(&table.lock);
  size_t at = above((uint64_t)pointer);
  bool found = at > 0 && table.blocks[at - 1].base == (uint64_t)pointer &&
               (table.blocks[at - 1].kind == EMU_BLOCK_REGISTERED) == registered;
  if (found) {
    *out = table.blocks[--at];
    hide(out);
    memmove(&table.blocks[at], &table.blocks[at + 1], (--table.count - at) * sizeof *table.blocks);
    if (out->kind == EMU_BLOCK_DEVICE) out->device->used -= out->bytes;
    if (out->pool) emu_pool_count(out->pool, out->bytes, false);
    if (out->file) close(out->file - 1);
    if (out->adopted) {
      munmap((void *)out->base, out->mapped);
    } else if (out->mapped) {
      retire(out);
    }
  }
  pthread_mutex_unlock(&table.lock);
  return found;
}

int emu_block_release(void *pointer) {
  struct emu_block block;
  return leave(pointer, false, &block) ? HIP_SUCCESS : HIP_INVALID_VALUE;
}

static bool move_to(int file, const struct emu_block *block) {
  if (ftruncate(file, (off_t)block->mapped) != 0) return false;
  void *there = mmap(NULL, block->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (there == MAP_FAILED) return false;
  memcpy(there, (void *)block->base, block->bytes);
  munmap(there, block->mapped);
  enum { ACCESS = PROT_READ | PROT_WRITE, KIND = MAP_SHARED | MAP_FIXED };
  return mmap((void *)block->base, block->mapped, ACCESS, KIND, file, 0) != MAP_FAILED;
}

int emu_block_share(void *base, int *out_file) {
  pthread_mutex_lock(&table.lock);
  size_t at = above((uint64_t)base);
  struct emu_block *block = at ? &table.blocks[at - 1] : NULL;
  bool good = block && block->base == (uint64_t)base && !block->adopted;
  if (good && !block->file) {
    int file = memfd_create("device memory", MFD_CLOEXEC);
    good = file >= 0 && move_to(file, block);
    if (good) block->file = file + 1;
    if (!good && file >= 0) close(file);
  }
  if (good) *out_file = block->file - 1;
  pthread_mutex_unlock(&table.lock);
  return good ? HIP_SUCCESS : HIP_INVALID_VALUE;
}

int emu_block_adopt(struct emu_device *device, void *base, size_t bytes, size_t mapped) {
  struct emu_block block = {.base = (uint64_t)base,
                            .bytes = bytes,
                            .kind = EMU_BLOCK_DEVICE,
                            .device = device,
                            .mapped = mapped,
                            .adopted = true};
  int code = enter(&block, "hipIpcOpenMemHandle");
  if (code == HIP_SUCCESS) emu_block_written(base, bytes);
  return code;
}

void emu_block_enter_pool(void *pointer, struct emu_pool *pool) {
  pthread_mutex_lock(&table.lock);
  struct emu_block *block = &table.blocks[above((uint64_t)pointer) - 1];
  block->pool = pool;
  emu_pool_count(pool, block->bytes, true);
  pthread_mutex_unlock(&table.lock);
}

void emu_block_leave_pool(struct emu_pool *pool) {
  pthread_mutex_lock(&table.lock);
  for (size_t i = 0; i < table.count; i++)
    if (table.blocks[i].pool == pool) table.blocks[i].pool = NULL;
  pthread_mutex_unlock(&table.lock);
}

enum emu_block_place emu_block_find(const void *pointer, struct emu_block *out) {
  uint64_t address = (uint64_t)pointer;
  enum emu_block_place place = EMU_PLACE_HOST;
  pthread_mutex_lock(&table.lock);
  size_t at = above(address);
  if (at > 0) {
    const struct emu_block *block = &table.blocks[at - 1];
    if (address - block->base < block->bytes) {
      place = EMU_PLACE_BLOCK;
    } else if (address - block->base < block->mapped) {
      place = EMU_PLACE_GAP;
    }
    if (place != EMU_PLACE_HOST) *out = *block;
  }
  const struct emu_block *freed = place == EMU_PLACE_HOST ? freed_at(address) : NULL;
  if (freed) {
    place = EMU_PLACE_FREED;
    *out = *freed;
  }
  pthread_mutex_unlock(&table.lock);
  return place;
}

// Mapped blocks that follow each other are as one.
static int check_mapped(uint64_t address, size_t bytes, const char *what) {
  struct emu_block block;
  for (size_t left = bytes;;) {
    enum emu_block_place place = emu_block_find((void *)address, &block);
    if (place != EMU_PLACE_BLOCK || block.kind != EMU_BLOCK_MAPPED || !block.readers) {
      emu_say("%s reaches 0x%llx of a reserved range, %s", what, (unsigned long long)address,
              place == EMU_PLACE_BLOCK ? "which hipMemSetAccess has given to no device" : "where nothing is mapped");
      return HIP_INVALID_VALUE;
    }
    uint64_t here = block.base + block.bytes - address;
    if (here >= left) return HIP_SUCCESS;
    left -= here;
    address += here;
  }
}

int emu_block_check(const void *pointer, size_t bytes, const char *what) {
  struct emu_block block;
  if (bytes == 0) return HIP_SUCCESS;
  if (!pointer) return HIP_INVALID_VALUE;
  enum emu_block_place place = emu_block_find(pointer, &block);
  if (emu_virtual_reserved(pointer)) return check_mapped((uint64_t)pointer, bytes, what);
  if (place == EMU_PLACE_HOST) return HIP_SUCCESS;
  if (place == EMU_PLACE_BLOCK && bytes <= block.bytes - ((uint64_t)pointer - block.base)) return HIP_SUCCESS;
  if (place == EMU_PLACE_FREED) {
    emu_say("%s of %zu bytes at %p, in an allocation that had %llu bytes and has been freed", what, bytes, pointer,
            (unsigned long long)block.bytes);
    return HIP_INVALID_VALUE;
  }
  emu_say("%s of %zu bytes at %p runs over the end of an allocation of %llu bytes at 0x%llx", what, bytes, pointer,
          (unsigned long long)block.bytes, (unsigned long long)block.base);
  return HIP_INVALID_VALUE;
}

void emu_block_written(const void *pointer, size_t bytes) {
  struct emu_block block;
  if (bytes == 0 || emu_block_find(pointer, &block) != EMU_PLACE_BLOCK) return;
  bool mapped = block.kind == EMU_BLOCK_MAPPED;  // and may go on in others, which other devices see
  if (block.kind != EMU_BLOCK_DEVICE && !mapped) return;
  struct emu_state *s = emu_state();
  for (int i = 0; i < s->device_count; i++)
    if (mapped || sees(&s->devices[i], &block)) emu_memory_written(s->devices[i].memory, (uint64_t)pointer, bytes);
}

int emu_block_map(struct emu_device *device, void *base, size_t bytes) {
  struct emu_block block = {.base = (uint64_t)base, .bytes = bytes, .kind = EMU_BLOCK_MAPPED, .device = device};
  return enter(&block, NULL);
}

void emu_block_unmap(void *base) {
  struct emu_block block;
  (void)leave(base, false, &block);
}

int emu_block_allow(void *base, struct emu_device *device, bool read, bool write, bool written) {
  char name[48];
  bool good = true;
  uint32_t bit = UINT32_C(1) << device->index;
  pthread_mutex_lock(&table.lock);
  struct emu_block *block = &table.blocks[above((uint64_t)base) - 1];
  if (block->readers & bit && (!read || !(block->writers & bit) != !write)) {
    (void)emu_memory_remove(device->memory, block->base);
    block->readers &= ~bit;
    block->writers &= ~bit;
    written = true;
  }
  if (read && !(block->readers & bit)) {
    name_block(block, NULL, name);
    good = emu_memory_add(device->memory, block->base, block->bytes, name, written);
    if (good && !write) (void)emu_memory_protect(device->memory, block->base);
    if (good) block->readers |= bit;
    if (good && write) block->writers |= bit;
  }
  pthread_mutex_unlock(&table.lock);
  return good ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

bool emu_block_take_room(struct emu_device *device, size_t bytes) {
  pthread_mutex_lock(&table.lock);
  bool fits = bytes <= device->total - device->used;
  if (fits) device->used += bytes;
  pthread_mutex_unlock(&table.lock);
  return fits;
}
void emu_block_give_room(struct emu_device *device, size_t bytes) {
  pthread_mutex_lock(&table.lock);
  device->used -= bytes;
  pthread_mutex_unlock(&table.lock);
}

bool emu_block_pageable(const void *pointer) {
  struct emu_block block;
  return emu_block_find(pointer, &block) == EMU_PLACE_HOST;
}

// ---- the calls

API int hipMalloc(void **out, size_t bytes) {
  if (!out) return emu_done(HIP_INVALID_VALUE);
  *out = NULL;
  if (bytes == 0) return emu_done(HIP_SUCCESS);
  return emu_done(emu_block_create(emu_current(), EMU_BLOCK_DEVICE, bytes, 0, NULL, out));
}
API int hipExtMallocWithFlags(void **out, size_t bytes, unsigned flags) { return hipMalloc(out, bytes); }

API int hipMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
  if (!out || !pitch || width > SIZE_MAX / 4) return emu_done(HIP_INVALID_VALUE);
  *pitch = (width + 255) / 256 * 256;
  if (height && *pitch > SIZE_MAX / 4 / height) return emu_done(HIP_OUT_OF_MEMORY);
  return hipMalloc(out, *pitch * height);
}

// Waits for all work first, as the real one does: a kernel may still read the block.
API int hipFree(void *pointer) {
  struct emu_block block;
  if (!pointer) return emu_done(HIP_SUCCESS);
  if (emu_block_find(pointer, &block) != EMU_PLACE_BLOCK || block.base != (uint64_t)pointer ||
      (block.kind != EMU_BLOCK_DEVICE && block.kind != EMU_BLOCK_MANAGED) || block.adopted)
    return emu_done(HIP_INVALID_VALUE);
  int code = emu_device_finish(block.device);
  int released = emu_block_release(pointer);
  return emu_done(released != HIP_SUCCESS ? released : code);
}

static int allocate_from(struct emu_pool *pool, void **out, size_t bytes) {
  struct emu_device *device = emu_pool_device(pool);
  if (!out || !device) return HIP_INVALID_VALUE;
  *out = NULL;
  if (bytes == 0) return HIP_SUCCESS;
  int code = emu_block_create(device, EMU_BLOCK_DEVICE, bytes, 0, NULL, out);
  if (code == HIP_SUCCESS) emu_block_enter_pool(*out, pool);
  return code;
}

// In a stream that is captured, allocations and their ends are nodes.
static int capture_allocation(struct emu_stream *stream, void **out, size_t bytes) {
  struct emu_allocation_node with = {.bytes = bytes};
  struct emu_task *task;
  if (!out) return HIP_INVALID_VALUE;
  *out = NULL;
  if (bytes == 0) return HIP_SUCCESS;
  with.pool.kind = with.pool.location.type = 1;  // pinned; of a device
  with.pool.location.id = emu_stream_device(stream)->index;
  int code = emu_task_of_allocation(&with, emu_stream_device(stream), &task);
  if (code == HIP_SUCCESS) code = emu_stream_capture_task(stream, task);
  if (code == HIP_SUCCESS) *out = with.pointer;
  return code;
}
static int capture_free(struct emu_stream *stream, void *pointer) {
  struct emu_task *task;
  int code = emu_task_of_free(pointer, &task);
  return code == HIP_SUCCESS ? emu_stream_capture_task(stream, task) : code;
}

API int hipMallocFromPoolAsync(void **out, size_t bytes, struct emu_pool *pool, void *handle) {
  return emu_done(emu_stream_of(handle) ? allocate_from(pool, out, bytes) : HIP_INVALID_HANDLE);
}
API int hipMallocAsync(void **out, size_t bytes, void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream) return emu_done(HIP_INVALID_HANDLE);
  if (emu_stream_captures(stream)) return emu_done(capture_allocation(stream, out, bytes));
  return emu_done(allocate_from(emu_pool_current(emu_stream_device(stream)), out, bytes));
}

static int free_later(void *pointer) { return emu_block_release(pointer); }

API int hipFreeAsync(void *pointer, void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  struct emu_block block;
  if (!stream) return emu_done(HIP_INVALID_HANDLE);
  if (!pointer) return emu_done(HIP_SUCCESS);
  if (emu_block_find(pointer, &block) != EMU_PLACE_BLOCK || block.base != (uint64_t)pointer ||
      block.kind != EMU_BLOCK_DEVICE || block.adopted)
    return emu_done(HIP_INVALID_VALUE);
  if (emu_stream_captures(stream) && emu_graph_allocated(pointer)) return emu_done(capture_free(stream, pointer));
  return emu_done(emu_stream_submit(stream, (struct emu_work){free_later, NULL, pointer, EMU_NODE_EMPTY}, NULL, NULL));
}

API int hipHostMalloc(void **out, size_t bytes, unsigned flags) {
  if (!out) return emu_done(HIP_INVALID_VALUE);
  *out = NULL;
  if (bytes == 0) return emu_done(HIP_SUCCESS);
  return emu_done(emu_block_create(emu_current(), EMU_BLOCK_HOST, bytes, flags, NULL, out));
}
API int hipHostAlloc(void **out, size_t bytes, unsigned flags) { return hipHostMalloc(out, bytes, flags); }
API int hipMallocHost(void **out, size_t bytes) { return hipHostMalloc(out, bytes, 0); }
API int hipMemAllocHost(void **out, size_t bytes) { return hipHostMalloc(out, bytes, 0); }

API int hipHostFree(void *pointer) {
  struct emu_block block;
  if (!pointer) return emu_done(HIP_SUCCESS);
  if (emu_block_find(pointer, &block) != EMU_PLACE_BLOCK || block.base != (uint64_t)pointer ||
      block.kind != EMU_BLOCK_HOST)
    return emu_done(HIP_INVALID_VALUE);
  struct emu_state *s = emu_state();
  int code = HIP_SUCCESS;
  for (int i = 0; i < s->device_count; i++) {
    int one = emu_device_finish(&s->devices[i]);
    if (code == HIP_SUCCESS) code = one;
  }
  int released = emu_block_release(pointer);
  return emu_done(released != HIP_SUCCESS ? released : code);
}
API int hipFreeHost(void *pointer) { return hipHostFree(pointer); }

API int hipHostRegister(void *pointer, size_t bytes, unsigned flags) {
  struct emu_block other, block = {.base = (uint64_t)pointer,
                                   .bytes = bytes,
                                   .kind = EMU_BLOCK_REGISTERED,
                                   .flags = flags,
                                   .device = emu_current()};
  if (!pointer || bytes == 0) return emu_done(HIP_INVALID_VALUE);
  if (!block.device) return emu_done(HIP_NO_DEVICE);
  if (emu_block_find(pointer, &other) == EMU_PLACE_BLOCK) return emu_done(HIP_HOST_ALREADY_REGISTERED);
  return emu_done(enter(&block, NULL));
}

API int hipHostUnregister(void *pointer) {
  struct emu_block block;
  return emu_done(pointer && leave(pointer, true, &block) ? HIP_SUCCESS : HIP_HOST_NOT_REGISTERED);
}

API int hipHostGetDevicePointer(void **out, void *pointer, unsigned flags) {
  struct emu_block block;
  if (!out || flags != 0) return emu_done(HIP_INVALID_VALUE);
  if (emu_block_find(pointer, &block) != EMU_PLACE_BLOCK || emu_block_is_device(&block))
    return emu_done(HIP_INVALID_VALUE);
  *out = pointer;
  return emu_done(HIP_SUCCESS);
}

API int hipHostGetFlags(unsigned *flags, void *pointer) {
  struct emu_block block;
  if (!flags || emu_block_find(pointer, &block) != EMU_PLACE_BLOCK || block.kind != EMU_BLOCK_HOST)
    return emu_done(HIP_INVALID_VALUE);
  *flags = block.flags;
  return emu_done(HIP_SUCCESS);
}

API int hipMallocManaged(void **out, size_t bytes, unsigned flags) {
  if (!out || bytes == 0 || (flags != 1 && flags != 2)) return emu_done(HIP_INVALID_VALUE);
  return emu_done(emu_block_create(emu_current(), EMU_BLOCK_MANAGED, bytes, flags, NULL, out));
}
// Managed memory is the host's own: nothing moves.
API int hipMemPrefetchAsync(const void *pointer, size_t bytes, int device, void *handle) {
  if (!emu_stream_of(handle)) return emu_done(HIP_INVALID_HANDLE);
  return emu_done(emu_block_check(pointer, bytes, "hipMemPrefetchAsync"));
}
API int hipMemAdvise(const void *pointer, size_t bytes, int advice, int device) {
  return emu_done(emu_block_check(pointer, bytes, "hipMemAdvise"));
}

API int hipMemGetInfo(size_t *available, size_t *total) {
  struct emu_device *device = emu_current();
  if (!device) return emu_done(HIP_NO_DEVICE);
  pthread_mutex_lock(&table.lock);
  if (available) *available = device->total - device->used;
  if (total) *total = device->total;
  pthread_mutex_unlock(&table.lock);
  return emu_done(HIP_SUCCESS);
}

API int hipDeviceTotalMem(size_t *bytes, int index) {
  struct emu_device *device = emu_device(index);
  if (!bytes || !device) return emu_done(bytes ? HIP_INVALID_DEVICE : HIP_INVALID_VALUE);
  *bytes = device->total;
  return emu_done(HIP_SUCCESS);
}

API int hipMemGetAddressRange(void **base, size_t *bytes, void *pointer) {
  struct emu_block block;
  if (emu_block_find(pointer, &block) != EMU_PLACE_BLOCK) return emu_done(HIP_NOT_FOUND);
  if (base) *base = (void *)block.base;
  if (bytes) *bytes = block.bytes;
  return emu_done(HIP_SUCCESS);
}
API int hipMemPtrGetInfo(void *pointer, size_t *bytes) {
  struct emu_block block;
  if (!bytes || emu_block_find(pointer, &block) != EMU_PLACE_BLOCK) return emu_done(HIP_INVALID_VALUE);
  *bytes = block.bytes;
  return emu_done(HIP_SUCCESS);
}

struct visible {
  struct emu_device *device, *peer;
  bool add;
};

// The name is the one that it has on its own device.
static bool show_also(const struct emu_block *block, struct emu_device *device) {
  struct emu_allocation known = {0};
  const char *name = emu_memory_find(block->device->memory, block->base, &known) ? known.name : NULL;
  return emu_memory_add(device->memory, block->base, block->bytes, name, true);
}

static void for_peer(const struct visible *v) {
  for (size_t i = 0; i < table.count; i++) {
    const struct emu_block *block = &table.blocks[i];
    if (block->kind != EMU_BLOCK_DEVICE || block->device != v->peer) continue;
    if (block->readers >> v->device->index & 1) continue;  // seen with and without
    if (v->add) {
      (void)show_also(block, v->device);
    } else {
      (void)emu_memory_remove(v->device->memory, block->base);
    }
  }
}

int emu_block_lend(void *base, struct emu_device *device) {
  pthread_mutex_lock(&table.lock);
  struct emu_block *block = &table.blocks[above((uint64_t)base) - 1];
  bool good = sees(device, block) || show_also(block, device);
  if (good) block->readers |= UINT32_C(1) << device->index;
  pthread_mutex_unlock(&table.lock);
  return good ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

static int set_peer(int index, bool enabled) {
  struct emu_device *device = emu_current(), *peer = emu_device(index);
  if (!device || !peer || device == peer) return HIP_INVALID_DEVICE;
  uint32_t bit = UINT32_C(1) << index;
  pthread_mutex_lock(&table.lock);
  bool was = device->peers & bit;
  if (was != enabled) {
    for_peer(&(struct visible){device, peer, enabled});
    device->peers ^= bit;
  }
  pthread_mutex_unlock(&table.lock);
  if (was != enabled) return HIP_SUCCESS;
  return enabled ? HIP_PEER_ALREADY_ENABLED : HIP_PEER_NOT_ENABLED;
}

API int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return emu_done(flags ? HIP_INVALID_VALUE : set_peer(peer, true));
}
API int hipDeviceDisablePeerAccess(int peer) { return emu_done(set_peer(peer, false)); }

// hipPointerAttribute_t; the kinds were renumbered in HIP 6, when 0 became "unregistered".
struct pointer_attributes {
  int type, device;
  void *device_pointer, *host_pointer;
  int managed;
  unsigned flags;
};

API int emu_pointer_attributes(int major, void *to, const void *pointer) {
  struct pointer_attributes *out = to;
  static const int old_types[] = {1, 0, 0, 0, 1}, new_types[] = {2, 1, 3, 1, 2};
  struct emu_block block;
  if (!out || !pointer) return emu_done(HIP_INVALID_VALUE);
  if (emu_block_find(pointer, &block) != EMU_PLACE_BLOCK) {
    if (major < 6) return emu_done(HIP_INVALID_VALUE);
    *out = (struct pointer_attributes){.device = -2, .host_pointer = NULL};
    return emu_done(HIP_SUCCESS);
  }
  bool device_only = emu_block_is_device(&block);
  *out = (struct pointer_attributes){
      .type = (major < 6 ? old_types : new_types)[block.kind],
      .device = block.device->index,
      .device_pointer = (void *)pointer,
      .host_pointer = device_only ? NULL : (void *)pointer,
      .managed = block.kind == EMU_BLOCK_MANAGED,
      .flags = block.flags,
  };
  return emu_done(HIP_SUCCESS);
}

// The CUDA-like queries that Triton makes; numbers of hipPointer_attribute.
enum {
  CONTEXT = 1,
  TYPE,
  DEVICE_POINTER,
  HOST_POINTER,
  SYNC_MEMOPS = 6,
  IS_MANAGED = 8,
  ORDINAL = 9,
  RANGE_START = 11,
  RANGE_SIZE,
  MAPPED
};
static size_t attribute_bytes(int attribute) {  // 0: there is no such attribute
  switch (attribute) {
    case IS_MANAGED:
    case MAPPED:
      return 1;
    case TYPE:
    case SYNC_MEMOPS:
    case ORDINAL:
      return 4;
    case CONTEXT:
    case DEVICE_POINTER:
    case HOST_POINTER:
    case RANGE_START:
    case RANGE_SIZE:
      return 8;
    default:
      return 0;
  }
}

static int pointer_attribute(int major, void *out, int attribute, void *pointer) {
  struct emu_block block;
  if (!out) return HIP_INVALID_VALUE;
  if (emu_block_find(pointer, &block) != EMU_PLACE_BLOCK) return HIP_INVALID_VALUE;
  uint64_t value = 0;
  switch (attribute) {
    case CONTEXT:
      value = (uint64_t)block.device;
      break;
    case TYPE:
      value = emu_block_is_device(&block) ? 2 : block.kind == EMU_BLOCK_MANAGED ? 3 : 1;
      if (major < 6) value = emu_block_is_device(&block);
      break;
    case DEVICE_POINTER:
      value = (uint64_t)pointer;
      break;
    case HOST_POINTER:
      if (emu_block_is_device(&block)) return HIP_INVALID_VALUE;
      value = (uint64_t)pointer;
      break;
    case SYNC_MEMOPS:
      value = block.waits;
      break;
    case IS_MANAGED:
      value = block.kind == EMU_BLOCK_MANAGED;
      break;
    case ORDINAL:
      value = (uint64_t)block.device->index;
      break;
    case RANGE_START:
      value = block.base;
      break;
    case RANGE_SIZE:
      value = block.bytes;
      break;
    case MAPPED:
      value = 1;
      break;
    default:
      emu_say("hipPointerGetAttribute %d is not in the emulator", attribute);
      return HIP_NOT_SUPPORTED;
  }
  memcpy(out, &value, attribute_bytes(attribute));
  return HIP_SUCCESS;
}
API int emu_pointer_attribute(int major, void *out, int attribute, void *pointer) {
  return emu_done(pointer_attribute(major, out, attribute, pointer));
}

API int hipPointerSetAttribute(const void *value, int attribute, void *pointer) {
  if (!value || !pointer || attribute != SYNC_MEMOPS) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&table.lock);
  size_t at = above((uint64_t)pointer);
  struct emu_block *block = at ? &table.blocks[at - 1] : NULL;
  bool found = block && (uint64_t)pointer - block->base < block->bytes && emu_block_is_device(block);
  if (found) block->waits = *(const int *)value != 0;
  pthread_mutex_unlock(&table.lock);
  return emu_done(found ? HIP_SUCCESS : HIP_INVALID_DEVICE_POINTER);
}

// Attributes of an address that HIP does not know are 0, and that is no error.
API int emu_pointer_attribute_list(int major, unsigned count, const int *attributes, void **out, void *pointer) {
  struct emu_block block;
  if (!attributes || !out || count == 0) return emu_done(HIP_INVALID_VALUE);
  bool known = emu_block_find(pointer, &block) == EMU_PLACE_BLOCK;
  for (unsigned i = 0; i < count; i++) {
    int code = known ? pointer_attribute(major, out[i], attributes[i], pointer) : HIP_INVALID_VALUE;
    if (code == HIP_SUCCESS) continue;
    if (code == HIP_NOT_SUPPORTED || !out[i]) return emu_done(code);
    size_t bytes = attribute_bytes(attributes[i]);
    if (bytes == 0) return emu_done(HIP_INVALID_VALUE);
    memset(out[i], 0, bytes);
  }
  return emu_done(HIP_SUCCESS);
}
