// The table of live allocations, sorted by address.
#include "machine/checker_state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { FREED = 1024 };

struct emu_memory {
  pthread_rwlock_t lock;
  atomic_uint_fast64_t epoch;
  struct emu_allocation *table;
  struct emu_shadow **shadow;  // beside the table; entries are NULL until the checker needs them
  bool watched;
  size_t count, room;
  struct emu_allocation freed[FREED];  // a ring of the last ones; those without bytes are none
  unsigned freed_next;
};

struct emu_memory *emu_memory_create(void) {
  struct emu_memory *memory = calloc(1, sizeof(*memory));
  if (!memory) return NULL;
  if (pthread_rwlock_init(&memory->lock, NULL)) {
    free(memory);
    return NULL;
  }
  atomic_init(&memory->epoch, 1);
  return memory;
}

void emu_memory_release(struct emu_memory *memory) {
  if (!memory) return;
  pthread_rwlock_destroy(&memory->lock);
  for (size_t i = 0; i < memory->count; i++) emu__shadow_release(memory->shadow[i]);
  free(memory->shadow);
  free(memory->table);
  free(memory);
}

void emu_memory_watch(struct emu_memory *memory) { memory->watched = true; }

uint64_t emu__memory_epoch(const struct emu_memory *memory) {
  return atomic_load_explicit(&memory->epoch, memory_order_relaxed);
}

// The number of allocations that start at or below the address.
static size_t position(const struct emu_memory *memory, uint64_t address) {
  size_t low = 0, high = memory->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (memory->table[middle].base <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool grow(struct emu_memory *memory) {
  size_t room = memory->room ? memory->room * 2 : 64;
  struct emu_allocation *table = realloc(memory->table, room * sizeof(*table));
  if (table) memory->table = table;
  struct emu_shadow **shadow = realloc(memory->shadow, room * sizeof(struct emu_shadow *));
  if (shadow) memory->shadow = shadow;
  if (!table || !shadow) return false;
  memory->room = room;
  return true;
}

// What lies there now is no longer what was freed.
static void forget_freed(struct emu_memory *memory, uint64_t base, uint64_t bytes) {
  for (unsigned i = 0; i < FREED; i++) {
    struct emu_allocation *f = &memory->freed[i];
    if (f->bytes && f->base < base + bytes && base < f->base + f->bytes) f->bytes = 0;
  }
}

static bool insert(struct emu_memory *memory, uint64_t base, uint64_t bytes, const char *name, bool initialized) {
  size_t at = position(memory, base);
  bool overlaps = (at && memory->table[at - 1].base + memory->table[at - 1].bytes > base) ||
                  (at < memory->count && base + bytes > memory->table[at].base);
  if (overlaps || !bytes || base + bytes < base) return false;
  if (memory->count == memory->room && !grow(memory)) return false;
  struct emu_shadow *shadow = NULL;
  if (memory->watched && !initialized && !(shadow = emu__shadow_create(base, bytes, false))) return false;
  memmove(memory->table + at + 1, memory->table + at, (memory->count - at) * sizeof(*memory->table));
  memmove(memory->shadow + at + 1, memory->shadow + at, (memory->count - at) * sizeof(*memory->shadow));
  memory->shadow[at] = shadow;
  struct emu_allocation *new = &memory->table[at];
  *new = (struct emu_allocation){.base = base, .bytes = bytes};
  snprintf(new->name, sizeof(new->name), "%s", name ? name : "an allocation");
  memory->count++;
  forget_freed(memory, base, bytes);
  return true;
}

bool emu_memory_add(struct emu_memory *memory, uint64_t base, uint64_t bytes, const char *name, bool initialized) {
  pthread_rwlock_wrlock(&memory->lock);
  bool ok = insert(memory, base, bytes, name, initialized);
  pthread_rwlock_unlock(&memory->lock);
  return ok;
}

bool emu_memory_protect(struct emu_memory *memory, uint64_t base) {
  pthread_rwlock_wrlock(&memory->lock);
  size_t at = position(memory, base);
  bool found = at && memory->table[at - 1].base == base;
  if (found) {
    memory->table[at - 1].read_only = true;
    atomic_fetch_add(&memory->epoch, 1);
  }
  pthread_rwlock_unlock(&memory->lock);
  return found;
}

static bool remove_it(struct emu_memory *memory, uint64_t base, bool freed) {
  pthread_rwlock_wrlock(&memory->lock);
  size_t at = position(memory, base);
  bool found = at && memory->table[at - 1].base == base;
  if (found) {
    if (freed) memory->freed[memory->freed_next++ % FREED] = memory->table[at - 1];
    emu__shadow_release(memory->shadow[at - 1]);
    memmove(memory->table + at - 1, memory->table + at, (memory->count - at) * sizeof(*memory->table));
    memmove(memory->shadow + at - 1, memory->shadow + at, (memory->count - at) * sizeof(*memory->shadow));
    memory->count--;
    atomic_fetch_add(&memory->epoch, 1);
  }
  pthread_rwlock_unlock(&memory->lock);
  return found;
}

bool emu_memory_remove(struct emu_memory *memory, uint64_t base) { return remove_it(memory, base, false); }
bool emu_memory_free(struct emu_memory *memory, uint64_t base) { return remove_it(memory, base, true); }

void emu_memory_written(struct emu_memory *memory, uint64_t address, uint64_t bytes) {
  if (!memory->watched) return;
  uint64_t end = address + bytes;
  pthread_rwlock_rdlock(&memory->lock);
  size_t at = position(memory, address);
  for (size_t i = at ? at - 1 : 0; i < memory->count && memory->table[i].base < end; i++) {
    const struct emu_allocation *a = &memory->table[i];
    uint64_t from = a->base > address ? a->base : address, to = a->base + a->bytes < end ? a->base + a->bytes : end;
    if (memory->shadow[i] && from < to) emu__shadow_written(memory->shadow[i], from, to - from);
  }
  pthread_rwlock_unlock(&memory->lock);
}

const struct emu_shadow *emu__memory_shadow(struct emu_memory *memory, uint64_t address) {
  struct emu_shadow *found = NULL;
  pthread_rwlock_wrlock(&memory->lock);
  size_t at = position(memory, address);
  if (at && address - memory->table[at - 1].base < memory->table[at - 1].bytes) {
    const struct emu_allocation *a = &memory->table[at - 1];
    struct emu_shadow **shadow = &memory->shadow[at - 1];
    if (!*shadow) *shadow = emu__shadow_create(a->base, a->bytes, true);
    if (*shadow && emu__shadow_arm(*shadow)) found = *shadow;
  }
  pthread_rwlock_unlock(&memory->lock);
  return found;
}

bool emu_memory_find(struct emu_memory *memory, uint64_t address, struct emu_allocation *out) {
  *out = (struct emu_allocation){0};
  pthread_rwlock_rdlock(&memory->lock);
  size_t at = position(memory, address);
  if (at) *out = memory->table[at - 1];
  pthread_rwlock_unlock(&memory->lock);
  return at && address - out->base < out->bytes;
}

bool emu__memory_next(struct emu_memory *memory, uint64_t address, struct emu_allocation *out) {
  pthread_rwlock_rdlock(&memory->lock);
  size_t at = position(memory, address);
  bool found = at < memory->count;
  if (found) *out = memory->table[at];
  pthread_rwlock_unlock(&memory->lock);
  return found;
}

uint64_t emu__memory_end(struct emu_memory *memory, uint64_t address, bool write) {
  uint64_t end = address;
  pthread_rwlock_rdlock(&memory->lock);
  size_t at = position(memory, address);
  for (size_t i = at ? at - 1 : 0; i < memory->count; i++) {
    const struct emu_allocation *a = &memory->table[i];
    if (end - a->base >= a->bytes || (write && a->read_only)) break;
    end = a->base + a->bytes;
  }
  pthread_rwlock_unlock(&memory->lock);
  return end;
}

bool emu__memory_freed(struct emu_memory *memory, uint64_t address, struct emu_allocation *out) {
  bool found = false;
  pthread_rwlock_rdlock(&memory->lock);
  for (unsigned i = 1; i <= FREED && !found; i++) {
    const struct emu_allocation *f = &memory->freed[(memory->freed_next - i) % FREED];
    found = f->bytes && address - f->base < f->bytes;
    if (found) *out = *f;
  }
  pthread_rwlock_unlock(&memory->lock);
  return found;
}

void emu_memory_each(struct emu_memory *memory, bool (*visit)(void *context, const struct emu_allocation *allocation),
                     void *context) {
  pthread_rwlock_rdlock(&memory->lock);
  for (size_t i = 0; i < memory->count && visit(context, &memory->table[i]); i++) continue;
  pthread_rwlock_unlock(&memory->lock);
}

// ---- access

static bool in_range(uint64_t address, unsigned bytes, uint64_t base, uint64_t size) {
  return address >= base && address - base < size && size - (address - base) >= bytes;
}

// What a launch may read without its being in the table.
static bool in_launch(const struct emu_run *run, uint64_t address, unsigned bytes, bool write) {
  const struct emu_dispatch *d = run->dispatch;
  if (in_range(address, bytes, d->shared, d->shared_bytes)) return true;
  if (write) return false;
  return in_range(address, bytes, d->kernarg, d->kernarg_bytes) || in_range(address, bytes, run->packet, 64) ||
         in_range(address, bytes, (uint64_t)(uintptr_t)emu__program_code(run->program),
                  emu__program_bytes(run->program));
}

// The allocations that a wave used last answer without the table's lock. An allocation that is gone changes the epoch.
static bool is_recent(struct emu_wave *wave, const struct emu_memory *memory, uint64_t low, uint64_t high,
                      unsigned bytes) {
  struct emu_span *recent = wave->recent;
  uint64_t epoch = emu__memory_epoch(memory);
  if (wave->recent_epoch != epoch) {
    memset(wave->recent, 0, sizeof(wave->recent));
    wave->recent_epoch = epoch;
    return false;
  }
  for (int i = 0; i < 4; i++) {
    if (low < recent[i].base || high >= recent[i].end || recent[i].end - high < bytes) continue;
    struct emu_span hit = recent[i];
    recent[i] = recent[0];
    recent[0] = hit;
    return true;
  }
  return false;
}

static void remember(struct emu_wave *wave, uint64_t base, uint64_t end) {
  memmove(wave->recent + 1, wave->recent, 3 * sizeof(wave->recent[0]));
  wave->recent[0] = (struct emu_span){base, end};
}

bool emu__memory_check_one(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address,
                           unsigned bytes, bool write) {
  struct emu_memory *memory = wave->group->run->dispatch->memory;
  if (!memory) return true;
  struct emu_allocation found;
  if (is_recent(wave, memory, address, address, bytes)) return true;
  bool listed = emu_memory_find(memory, address, &found);
  if (listed && !found.read_only && in_range(address, bytes, found.base, found.bytes)) {
    remember(wave, found.base, found.base + found.bytes);
    return true;
  }
  if (listed && emu__memory_end(memory, address, write) - address >= bytes) return true;
  if (in_launch(wave->group->run, address, bytes, write)) return true;
  emu__memory_outside(wave, step, lane, address, bytes, write);
  return false;
}

// The end of what a launch may read at the address without its being in the table; the address itself: nothing.
static uint64_t end_in_launch(const struct emu_run *run, uint64_t address) {
  const struct emu_dispatch *d = run->dispatch;
  uint64_t code = (uint64_t)(uintptr_t)emu__program_code(run->program), code_bytes = emu__program_bytes(run->program);
  if (in_range(address, 1, d->kernarg, d->kernarg_bytes)) return d->kernarg + d->kernarg_bytes;
  if (in_range(address, 1, run->packet, 64)) return run->packet + 64;
  return in_range(address, 1, code, code_bytes) ? code + code_bytes : address;
}

unsigned emu__memory_scalar(struct emu_wave *wave, uint64_t address, unsigned bytes) {
  const struct emu_dispatch *d = wave->group->run->dispatch;
  struct emu_memory *memory = d->memory;
  if (!memory || in_range(address, bytes, d->kernarg, d->kernarg_bytes)) return bytes;
  if (is_recent(wave, memory, address, address, bytes)) return bytes;
  struct emu_allocation found;
  bool listed = emu_memory_find(memory, address, &found);
  uint64_t end = listed ? found.base + found.bytes : end_in_launch(wave->group->run, address);
  if (end - address >= bytes) {
    if (listed && !found.read_only) remember(wave, found.base, end);
    return bytes;
  }
  if (listed) end = emu__memory_end(memory, address, false);
  if (end - address >= bytes) return bytes;
  uint64_t reach = ((end - 1) | (bytes - 1)) + 1;
  return end > address && address + bytes <= reach ? (unsigned)(end - address) : 0;
}

bool emu__memory_check(struct emu_wave *wave, const struct emu_step *step, const uint64_t *address, uint64_t mask,
                       unsigned bytes, bool write) {
  const struct emu_memory *memory = wave->group->run->dispatch->memory;
  if (!memory) return true;
  // all lanes in one allocation that was used lately: the usual case
  uint64_t low = UINT64_MAX, high = 0;
  for (unsigned half = 0; half < wave->lanes; half += EMU_HALF) {
    const uint64_t *at = address + half;
    uint32_t lanes = (uint32_t)(mask >> half);
    if (lanes == UINT32_MAX) {
      EMU_EACH {
        low = at[l] < low ? at[l] : low;
        high = at[l] > high ? at[l] : high;
      }
      continue;
    }
    EMU_EACH {
      uint64_t on = -(uint64_t)(lanes >> l & 1), least = at[l] | ~on, most = at[l] & on;
      low = least < low ? least : low;
      high = most > high ? most : high;
    }
  }
  if (mask && is_recent(wave, memory, low, high, bytes)) return true;
  for (unsigned l = 0; l < wave->lanes; l++) {
    if (mask >> l & 1 && !emu__memory_check_one(wave, step, (int)l, address[l], bytes, write)) return false;
  }
  return true;
}
