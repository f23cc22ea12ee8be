// Memory pools. An allocation comes from the device and goes back to it at once, so a pool keeps counts and what it was
// told, and nothing in reserve.
#include <stdlib.h>
#include <string.h>

#include "hip/hip.h"
#include "hip/layouts.h"

enum attribute {
  FOLLOW_EVENTS = 1,
  OPPORTUNISTIC,
  INTERNAL_DEPENDENCIES,
  RELEASE_THRESHOLD,
  RESERVED_CURRENT,
  RESERVED_HIGH,
  USED_CURRENT,
  USED_HIGH,
  ATTRIBUTES
};
enum { ACCESS_NONE = 0, ACCESS_READ_WRITE = 3, ON_DEVICE = 1, PINNED = 1 };

struct emu_pool {
  struct emu_pool *next;
  struct emu_device *device;
  uint64_t values[ATTRIBUTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_pool first[EMU_MAX_DEVICES];  // each device's default
static struct emu_pool *made;                   // by programs
static struct emu_pool *current[EMU_MAX_DEVICES];

static void reset(struct emu_pool *pool, struct emu_device *device) {
  *pool = (struct emu_pool){.device = device};
  pool->values[FOLLOW_EVENTS] = pool->values[OPPORTUNISTIC] = pool->values[INTERNAL_DEPENDENCIES] = 1;
}

static struct emu_pool *default_of(struct emu_device *device) {
  struct emu_pool *pool = &first[device->index];
  pthread_mutex_lock(&lock);
  if (!pool->device) reset(pool, device);
  pthread_mutex_unlock(&lock);
  return pool;
}

struct emu_pool *emu_pool_current(struct emu_device *device) {
  struct emu_pool *pool = default_of(device);
  pthread_mutex_lock(&lock);
  if (current[device->index]) pool = current[device->index];
  pthread_mutex_unlock(&lock);
  return pool;
}

void emu_pool_count(struct emu_pool *pool, uint64_t bytes, bool more) {
  pthread_mutex_lock(&lock);
  uint64_t *used = &pool->values[USED_CURRENT];
  *used = more ? *used + bytes : *used - bytes;
  pool->values[RESERVED_CURRENT] = *used;
  if (*used > pool->values[USED_HIGH]) pool->values[USED_HIGH] = *used;
  if (*used > pool->values[RESERVED_HIGH]) pool->values[RESERVED_HIGH] = *used;
  pthread_mutex_unlock(&lock);
}

static bool known(const struct emu_pool *pool) {
  for (int i = 0; i < EMU_MAX_DEVICES; i++)
    if (pool == &first[i]) return first[i].device != NULL;
  pthread_mutex_lock(&lock);
  const struct emu_pool *p = made;
  while (p && p != pool) p = p->next;
  pthread_mutex_unlock(&lock);
  return p != NULL;
}

struct emu_device *emu_pool_device(struct emu_pool *pool) { return pool && known(pool) ? pool->device : NULL; }

API int hipDeviceGetDefaultMemPool(struct emu_pool **out, int index) {
  struct emu_device *device = emu_device(index);
  if (!out || !device) return emu_done(out ? HIP_INVALID_DEVICE : HIP_INVALID_VALUE);
  *out = default_of(device);
  return emu_done(HIP_SUCCESS);
}
API int hipDeviceGetMemPool(struct emu_pool **out, int index) {
  struct emu_device *device = emu_device(index);
  if (!out || !device) return emu_done(out ? HIP_INVALID_DEVICE : HIP_INVALID_VALUE);
  *out = emu_pool_current(device);
  return emu_done(HIP_SUCCESS);
}
API int hipDeviceSetMemPool(int index, struct emu_pool *pool) {
  struct emu_device *device = emu_device(index);
  if (!device) return emu_done(HIP_INVALID_DEVICE);
  if (emu_pool_device(pool) != device) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  current[index] = pool;
  pthread_mutex_unlock(&lock);
  return emu_done(HIP_SUCCESS);
}

API int hipMemPoolCreate(struct emu_pool **out, const struct emu_pool_properties *properties) {
  if (!out || !properties || properties->kind != PINNED || properties->location.type != ON_DEVICE)
    return emu_done(HIP_INVALID_VALUE);
  struct emu_device *device = emu_device(properties->location.id);
  if (!device) return emu_done(HIP_INVALID_DEVICE);
  if (properties->handles) {
    emu_say("memory pools that are shared with other processes are not in the emulator");
    return emu_done(HIP_NOT_SUPPORTED);
  }
  struct emu_pool *pool = malloc(sizeof *pool);
  if (!pool) return emu_done(HIP_OUT_OF_MEMORY);
  reset(pool, device);
  pthread_mutex_lock(&lock);
  pool->next = made;
  made = pool;
  pthread_mutex_unlock(&lock);
  *out = pool;
  return emu_done(HIP_SUCCESS);
}

// The device's own pool takes the place of one that was current. Memory that is still allocated stays until it is
// freed.
API int hipMemPoolDestroy(struct emu_pool *pool) {
  bool mine = emu_pool_device(pool) && pool != &first[pool->device->index];
  if (!mine) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  for (struct emu_pool **p = &made; *p; p = &(*p)->next)
    if (*p == pool) {
      *p = pool->next;
      break;
    }
  if (current[pool->device->index] == pool) current[pool->device->index] = NULL;
  pthread_mutex_unlock(&lock);
  emu_block_leave_pool(pool);
  free(pool);
  return emu_done(HIP_SUCCESS);
}

API int hipMemPoolTrimTo(struct emu_pool *pool, size_t bytes) {
  return emu_done(emu_pool_device(pool) ? HIP_SUCCESS : HIP_INVALID_VALUE);
}

// The first three are ints, the rest 64 bits wide. The counts can be set to nothing but 0, the marks.
API int hipMemPoolSetAttribute(struct emu_pool *pool, int attribute, const void *value) {
  bool valid = emu_pool_device(pool) && value && attribute >= FOLLOW_EVENTS && attribute < ATTRIBUTES &&
               attribute != RESERVED_CURRENT && attribute != USED_CURRENT;
  if (!valid) return emu_done(HIP_INVALID_VALUE);
  uint64_t wanted = 0;
  memcpy(&wanted, value, attribute <= INTERNAL_DEPENDENCIES ? sizeof(int) : sizeof wanted);
  if (attribute > RELEASE_THRESHOLD && wanted != 0) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  pool->values[attribute] = attribute > RELEASE_THRESHOLD ? pool->values[USED_CURRENT] : wanted;
  pthread_mutex_unlock(&lock);
  return emu_done(HIP_SUCCESS);
}
API int hipMemPoolGetAttribute(struct emu_pool *pool, int attribute, void *value) {
  if (!emu_pool_device(pool) || !value || attribute < FOLLOW_EVENTS || attribute >= ATTRIBUTES)
    return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  memcpy(value, &pool->values[attribute], attribute <= INTERNAL_DEPENDENCIES ? sizeof(int) : sizeof *pool->values);
  pthread_mutex_unlock(&lock);
  return emu_done(HIP_SUCCESS);
}

// A pool's memory is the device's own: others see it when hipDeviceEnablePeerAccess lets them.
API int hipMemPoolSetAccess(struct emu_pool *pool, const struct emu_access *list, size_t count) {
  struct emu_device *device = emu_pool_device(pool);
  if (!device || (!list && count)) return emu_done(HIP_INVALID_VALUE);
  for (size_t i = 0; i < count; i++) {
    const struct emu_device *other = list[i].location.type == ON_DEVICE ? emu_device(list[i].location.id) : NULL;
    if (!other || (other == device && list[i].flags != ACCESS_READ_WRITE)) return emu_done(HIP_INVALID_VALUE);
    if (other == device || (list[i].flags != ACCESS_NONE) == (other->peers >> device->index & 1)) continue;
    emu_say("access to a memory pool from another device is not in the emulator; hipDeviceEnablePeerAccess is");
    return emu_done(HIP_NOT_SUPPORTED);
  }
  return emu_done(HIP_SUCCESS);
}
API int hipMemPoolGetAccess(int *flags, struct emu_pool *pool, const struct emu_location *location) {
  struct emu_device *device = emu_pool_device(pool);
  const struct emu_device *other = location && location->type == ON_DEVICE ? emu_device(location->id) : NULL;
  if (!flags || !device || !other) return emu_done(HIP_INVALID_VALUE);
  *flags = other == device || other->peers >> device->index & 1 ? ACCESS_READ_WRITE : ACCESS_NONE;
  return emu_done(HIP_SUCCESS);
}
