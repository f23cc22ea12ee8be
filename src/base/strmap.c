#include "base/strmap.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint32_t hash_bytes(const char *key, size_t size) { return (uint32_t)XXH3_64bits(key, size); }

/* The slot that holds |key|, or the free one where it belongs. */
static size_t find_slot(const rdna__strmap *map, const char *key, size_t size, uint32_t hash) {
  size_t mask = map->slot_count - 1;
  size_t i = hash & mask;
  for (;;) {
    const rdna__strmap_slot *slot = &map->slots[i];
    if (!slot->key) return i;
    if (slot->hash == hash && slot->size == size && memcmp(slot->key, key, size) == 0) return i;
    i = (i + 1) & mask;
  }
}

static rdna_status resize(rdna__strmap *map, size_t slot_count) {
  rdna__strmap_slot *slots = calloc(slot_count, sizeof *slots);
  if (!slots) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a table of %zu names", slot_count);
  size_t mask = slot_count - 1;
  for (size_t i = 0; i < map->slot_count; i++) {
    if (!map->slots[i].key) continue;
    size_t to = map->slots[i].hash & mask;
    while (slots[to].key) to = (to + 1) & mask;
    slots[to] = map->slots[i];
  }
  free(map->slots);
  map->slots = slots;
  map->slot_count = slot_count;
  return RDNA_OK;
}

rdna_status rdna__strmap_init(rdna__strmap *map, size_t expected) {
  *map = (rdna__strmap){0};
  if (expected == 0) return RDNA_OK;
  /* the hash has 32 bits; more names than that would crowd */
  if (expected > UINT32_MAX / 2) return rdna__fail(RDNA_UNSUPPORTED, "a table of %zu names is too large", expected);
  size_t slot_count = 8;
  while (slot_count / 3 * 2 <= expected) slot_count *= 2;
  return resize(map, slot_count);
}

void rdna__strmap_deinit(rdna__strmap *map) {
  free(map->slots);
  *map = (rdna__strmap){0};
}

rdna_status rdna__strmap_insert(rdna__strmap *map, const char *key, size_t size, uint32_t value, bool *out_inserted) {
  if (map->count >= map->slot_count / 3 * 2) RDNA_TRY(resize(map, map->slot_count ? map->slot_count * 2 : 8));
  if (!key) key = ""; /* NULL marks a free slot */
  uint32_t hash = hash_bytes(key, size);
  rdna__strmap_slot *slot = &map->slots[find_slot(map, key, size, hash)];
  *out_inserted = !slot->key;
  if (slot->key) return RDNA_OK;
  *slot = (rdna__strmap_slot){key, size, hash, value};
  map->count++;
  return RDNA_OK;
}

bool rdna__strmap_find(const rdna__strmap *map, const char *key, size_t size, uint32_t *out_value) {
  if (map->count == 0) return false;
  if (!key) key = "";
  const rdna__strmap_slot *slot = &map->slots[find_slot(map, key, size, hash_bytes(key, size))];
  if (!slot->key) return false;
  *out_value = slot->value;
  return true;
}
