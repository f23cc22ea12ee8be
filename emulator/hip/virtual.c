// Virtual memory: ranges of addresses, memory without an address, and which of it lies where.
//
//     hipMemAddressReserve   | range: no access                                        |
//     hipMemMap              |      | mapping of a handle | mapping |                  |
//     hipMemSetAccess               | device 0 reads and writes      |
//
// The memory of a handle is an anonymous file, so that it can lie at several addresses and in several processes.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hip/hip.h"
#include "hip/layouts.h"

enum { GRANULE = 4096, LARGE_GRANULE = 2 << 20, ON_DEVICE = 1, PINNED = 1, FILE_DESCRIPTOR = 1 };
enum { READ = 1, READ_WRITE = 3 };  // hipMemAccessFlags

// hipMemAllocationProp
struct allocation_properties {
  int kind, handles;
  struct emu_location location;
  void *windows;
  uint8_t compression, rdma;
  uint16_t usage;
};

struct handle {
  struct handle *next;
  struct emu_device *device;
  size_t bytes;
  int file, owners, references, shares;  // owners: what programs have to release; references: those and mappings
  bool touched;                          // kernels may have written it
};
struct range {
  struct range *next;
  uint64_t base, bytes;
};
struct mapping {
  struct mapping *next;
  uint64_t base, bytes;
  struct handle *handle;
};

static struct {
  pthread_mutex_t lock;
  struct handle *handles;
  struct range *ranges;
  struct mapping *mappings;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct handle *find_handle(const void *wanted) {
  for (struct handle *h = all.handles; h; h = h->next)
    if (h == wanted) return h;
  return NULL;
}
static struct range *range_of(uint64_t address, uint64_t bytes) {
  for (struct range *r = all.ranges; r; r = r->next)
    if (address - r->base < r->bytes && bytes <= r->bytes - (address - r->base)) return r;
  return NULL;
}
static struct mapping *mapping_of(uint64_t address) {
  for (struct mapping *m = all.mappings; m; m = m->next)
    if (address - m->base < m->bytes) return m;
  return NULL;
}
static bool is_free(uint64_t base, uint64_t bytes) {
  for (const struct mapping *m = all.mappings; m; m = m->next)
    if (m->base < base + bytes && base < m->base + m->bytes) return false;
  return true;
}
// Whether mappings cover the addresses from the start of one to the end of one.
static bool is_covered(uint64_t base, uint64_t bytes) {
  for (uint64_t at = base; bytes;) {
    const struct mapping *m = mapping_of(at);
    if (!m || m->base != at || m->bytes > bytes) return false;
    at += m->bytes;
    bytes -= m->bytes;
  }
  return true;
}

bool emu_virtual_reserved(const void *pointer) {
  pthread_mutex_lock(&all.lock);
  bool reserved = range_of((uint64_t)pointer, 1) != NULL;
  pthread_mutex_unlock(&all.lock);
  return reserved;
}

static void let_go(struct handle *handle) {
  if (--handle->references > 0) return;
  for (struct handle **h = &all.handles; *h; h = &(*h)->next)
    if (*h == handle) {
      *h = handle->next;
      break;
    }
  emu_block_give_room(handle->device, handle->bytes);
  close(handle->file);
  free(handle);
}

// ---- ranges

static void *reserve(size_t bytes, size_t alignment, void *wish) {
  enum { KIND = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
  if ((uintptr_t)wish % alignment == 0) {
    uint8_t *there = mmap(wish, bytes, PROT_NONE, KIND, -1, 0);
    if (there == MAP_FAILED) return NULL;
    if ((uintptr_t)there % alignment == 0) return there;
    munmap(there, bytes);
  }
  if (bytes > SIZE_MAX / 2 - alignment) return NULL;
  uint8_t *there = mmap(NULL, bytes + alignment, PROT_NONE, KIND, -1, 0);
  if (there == MAP_FAILED) return NULL;
  size_t before = (alignment - (uintptr_t)there % alignment) % alignment;
  if (before) munmap(there, before);
  munmap(there + before + bytes, alignment - before);
  return there + before;
}

// The address that is wished for is taken if it is free, as documented of CUDA's.
API int hipMemAddressReserve(void **out, size_t bytes, size_t alignment, void *wish, unsigned long long flags) {
  if (!out || bytes == 0 || bytes % GRANULE || alignment & (alignment - 1) || flags) return emu_done(HIP_INVALID_VALUE);
  struct range *range = malloc(sizeof *range);
  void *there = range ? reserve(bytes, alignment > LARGE_GRANULE ? alignment : LARGE_GRANULE, wish) : NULL;
  if (!there) {
    free(range);
    return emu_done(HIP_OUT_OF_MEMORY);
  }
  pthread_mutex_lock(&all.lock);
  *range = (struct range){all.ranges, (uint64_t)there, bytes};
  all.ranges = range;
  pthread_mutex_unlock(&all.lock);
  *out = there;
  return emu_done(HIP_SUCCESS);
}

API int hipMemAddressFree(void *base, size_t bytes) {
  int code = HIP_INVALID_VALUE;
  pthread_mutex_lock(&all.lock);
  for (struct range **r = &all.ranges; *r; r = &(*r)->next) {
    struct range *range = *r;
    if (range->base != (uint64_t)base || range->bytes != bytes) continue;
    if (!is_free(range->base, bytes)) break;
    *r = range->next;
    munmap(base, bytes);
    free(range);
    code = HIP_SUCCESS;
    break;
  }
  pthread_mutex_unlock(&all.lock);
  return emu_done(code);
}

// ---- memory

static struct emu_device *place_of(const struct emu_location *location) {
  return location->type == ON_DEVICE ? emu_device(location->id) : NULL;
}

API int hipMemGetAllocationGranularity(size_t *out, const struct allocation_properties *with, int recommended) {
  if (!out || !with || with->kind != PINNED || !place_of(&with->location) || recommended < 0 || recommended > 1)
    return emu_done(HIP_INVALID_VALUE);
  *out = recommended ? LARGE_GRANULE : GRANULE;
  return emu_done(HIP_SUCCESS);
}

static int keep(int file, size_t bytes, struct emu_device *device, int shares, struct handle **out) {
  struct handle *handle = malloc(sizeof *handle);
  if (!handle || !emu_block_take_room(device, bytes)) {
    free(handle);
    close(file);
    return HIP_OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&all.lock);
  *handle = (struct handle){all.handles, device, bytes, file, 1, 1, shares, false};
  all.handles = handle;
  pthread_mutex_unlock(&all.lock);
  *out = handle;
  return HIP_SUCCESS;
}

API int hipMemCreate(struct handle **out, size_t bytes, const struct allocation_properties *with,
                     unsigned long long flags) {
  struct emu_device *device = with ? place_of(&with->location) : NULL;
  if (!out || !device || with->kind != PINNED || bytes == 0 || bytes % GRANULE || flags)
    return emu_done(HIP_INVALID_VALUE);
  if (with->handles != 0 && with->handles != FILE_DESCRIPTOR) return emu_done(HIP_NOT_SUPPORTED);
  if (bytes > device->total) return emu_done(HIP_OUT_OF_MEMORY);
  int file = memfd_create("device memory", MFD_CLOEXEC);
  if (file < 0) return emu_done(HIP_OUT_OF_MEMORY);
  if (ftruncate(file, (off_t)bytes) != 0) {
    close(file);
    return emu_done(HIP_OUT_OF_MEMORY);
  }
  return emu_done(keep(file, bytes, device, with->handles, out));
}

API int hipMemRelease(struct handle *handle) {
  pthread_mutex_lock(&all.lock);
  struct handle *h = find_handle(handle);
  bool owned = h && h->owners > 0;  // released as often as it was given, it may still lie in mappings
  if (owned) {
    h->owners--;
    let_go(h);
  }
  pthread_mutex_unlock(&all.lock);
  return emu_done(owned ? HIP_SUCCESS : HIP_INVALID_VALUE);
}

API int hipMemRetainAllocationHandle(struct handle **out, void *address) {
  if (!out || !address) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&all.lock);
  const struct mapping *m = mapping_of((uint64_t)address);
  if (m) {
    m->handle->references++;
    m->handle->owners++;
    *out = m->handle;
  }
  pthread_mutex_unlock(&all.lock);
  return emu_done(m ? HIP_SUCCESS : HIP_INVALID_VALUE);
}

API int hipMemGetAllocationPropertiesFromHandle(struct allocation_properties *out, struct handle *handle) {
  if (!out) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&all.lock);
  const struct handle *h = find_handle(handle);
  if (h)
    *out =
        (struct allocation_properties){.kind = PINNED, .handles = h->shares, .location = {ON_DEVICE, h->device->index}};
  pthread_mutex_unlock(&all.lock);
  return emu_done(h ? HIP_SUCCESS : HIP_INVALID_VALUE);
}

// The descriptor is the caller's to close.
API int hipMemExportToShareableHandle(void *out, struct handle *handle, int kind, unsigned long long flags) {
  if (!out || flags) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&all.lock);
  const struct handle *h = find_handle(handle);
  int code = !h || kind != FILE_DESCRIPTOR || h->shares != kind ? HIP_INVALID_VALUE : HIP_SUCCESS;
  int file = code == HIP_SUCCESS ? fcntl(h->file, F_DUPFD_CLOEXEC, 0) : -1;
  pthread_mutex_unlock(&all.lock);
  if (code == HIP_SUCCESS && file < 0) code = HIP_OUT_OF_MEMORY;
  if (code == HIP_SUCCESS) *(int *)out = file;
  return emu_done(code);
}

// |shared| is the descriptor itself, cast to a pointer, or points to one: programs do both.
API int hipMemImportFromShareableHandle(struct handle **out, void *shared, int kind) {
  enum { DESCRIPTORS = 1 << 20 };
  struct emu_device *device = emu_current();
  struct stat found;
  if (!out || kind != FILE_DESCRIPTOR || !device) return emu_done(device ? HIP_INVALID_VALUE : HIP_NO_DEVICE);
  int given = (uintptr_t)shared < DESCRIPTORS ? (int)(uintptr_t)shared : *(const int *)shared;
  if (fstat(given, &found) != 0 || found.st_size <= 0 || found.st_size % GRANULE) return emu_done(HIP_INVALID_VALUE);
  int file = fcntl(given, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return emu_done(HIP_OUT_OF_MEMORY);
  int code = keep(file, (size_t)found.st_size, device, kind, out);
  if (code == HIP_SUCCESS) (*out)->touched = true;
  return emu_done(code);
}

// ---- mappings

static int map(uint64_t base, size_t bytes, struct handle *handle) {
  enum { KIND = MAP_SHARED | MAP_FIXED, NONE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED };
  struct mapping *m = malloc(sizeof *m);
  if (!m || mmap((void *)base, bytes, PROT_READ | PROT_WRITE, KIND, handle->file, 0) == MAP_FAILED) {
    free(m);
    return HIP_OUT_OF_MEMORY;
  }
  int code = emu_block_map(handle->device, (void *)base, bytes);
  if (code != HIP_SUCCESS) {
    (void)mmap((void *)base, bytes, PROT_NONE, NONE, -1, 0);
    free(m);
    return code;
  }
  *m = (struct mapping){all.mappings, base, bytes, handle};
  handle->references++;
  all.mappings = m;
  return HIP_SUCCESS;
}

API int hipMemMap(void *at, size_t bytes, size_t offset, struct handle *handle, unsigned long long flags) {
  uint64_t base = (uint64_t)at;
  if (!at || bytes == 0 || bytes % GRANULE || base % GRANULE || offset || flags) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&all.lock);
  struct handle *h = find_handle(handle);
  bool fits = h && bytes <= h->bytes && range_of(base, bytes) && is_free(base, bytes);
  int code = fits ? map(base, bytes, h) : HIP_INVALID_VALUE;
  pthread_mutex_unlock(&all.lock);
  return emu_done(code);
}

static void unmap(uint64_t base) {
  enum { NONE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED };
  for (struct mapping **m = &all.mappings; *m; m = &(*m)->next) {
    struct mapping *gone = *m;
    if (gone->base != base) continue;
    *m = gone->next;
    emu_block_unmap((void *)base);
    (void)mmap((void *)base, gone->bytes, PROT_NONE, NONE, -1, 0);
    let_go(gone->handle);
    free(gone);
    return;
  }
}

// Waits for all work first: a kernel may still use it. Whole mappings go, one or several that follow each other.
API int hipMemUnmap(void *at, size_t bytes) {
  struct emu_state *s = emu_state();
  uint64_t base = (uint64_t)at;
  if (!s || !at || bytes == 0) return emu_done(s ? HIP_INVALID_VALUE : HIP_NO_DEVICE);
  int code = HIP_SUCCESS;
  for (int i = 0; i < s->device_count; i++) {
    int one = emu_device_finish(&s->devices[i]);
    if (code == HIP_SUCCESS) code = one;
  }
  pthread_mutex_lock(&all.lock);
  bool covered = is_covered(base, bytes);
  for (uint64_t left = covered ? bytes : 0; left;) {
    uint64_t here = mapping_of(base)->bytes;
    unmap(base);
    base += here;
    left -= here;
  }
  pthread_mutex_unlock(&all.lock);
  return emu_done(covered ? code : HIP_INVALID_VALUE);
}

// A handle that lies at several addresses counts as written at all of them: stores through one are not seen through the
// others by the checker.
static void tell_others(const struct mapping *new) {
  for (const struct mapping *m = all.mappings; m; m = m->next)
    if (m->handle == new->handle && m != new) emu_block_written((void *)m->base, m->bytes);
}

static int allow(const struct mapping *m, const struct emu_access *to) {
  struct emu_device *device = place_of(&to->location);
  bool read = to->flags == READ || to->flags == READ_WRITE, write = to->flags == READ_WRITE;
  int code = emu_block_allow((void *)m->base, device, read, write, m->handle->touched);
  if (!read || code != HIP_SUCCESS) return code;
  m->handle->touched = true;
  tell_others(m);
  return HIP_SUCCESS;
}

API int hipMemSetAccess(void *at, size_t bytes, const struct emu_access *with, size_t count) {
  uint64_t base = (uint64_t)at;
  bool valid = at && bytes && with && count;
  for (size_t i = 0; valid && i < count; i++)
    valid = place_of(&with[i].location) && (with[i].flags == 0 || with[i].flags == READ || with[i].flags == READ_WRITE);
  if (!valid) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&all.lock);
  int code = is_covered(base, bytes) ? HIP_SUCCESS : HIP_INVALID_VALUE;
  for (uint64_t to = base + bytes; code == HIP_SUCCESS && base < to;) {
    const struct mapping *m = mapping_of(base);
    for (size_t i = 0; i < count && code == HIP_SUCCESS; i++) code = allow(m, &with[i]);
    base += m->bytes;
  }
  pthread_mutex_unlock(&all.lock);
  return emu_done(code);
}

API int hipMemGetAccess(unsigned long long *out, const struct emu_location *location, void *at) {
  struct emu_block block;
  struct emu_device *device = location ? place_of(location) : NULL;
  if (!out || !device || emu_block_find(at, &block) != EMU_PLACE_BLOCK || block.kind != EMU_BLOCK_MAPPED)
    return emu_done(HIP_INVALID_VALUE);
  *out = block.writers >> device->index & 1 ? READ_WRITE : block.readers >> device->index & 1 ? READ : 0;
  return emu_done(HIP_SUCCESS);
}
