/* SentencePiece's precompiled map of characters (github.com/google/sentencepiece, src/normalizer.h):
 *
 *     u32 size of the trie | trie: u32 units | replacements, each with a zero behind it
 *
 * The trie is a double array of darts-clone's (github.com/s-yata/darts-clone): unit 0 is the root; the child of the
 * node at |n| by byte c is at n ^ offset(n) ^ c, if its label is c. A node that ends a string has bit 8 set, and the
 * string's value, where its replacement begins, is in the unit at n ^ offset(n). */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"

struct rdna__charsmap {
  uint32_t *units; /* (unit_count) */
  size_t unit_count;
  char *replacements; /* (replacement_bytes), the last of which is zero */
  size_t replacement_bytes;
};

static bool ends(uint32_t unit) { return unit >> 8 & 1; }
static uint32_t label(uint32_t unit) { return unit & (UINT32_C(1) << 31 | 0xff); }
static uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

rdna_status rdna__charsmap_create(const uint8_t *data, size_t size, rdna__charsmap **out_map) {
  uint32_t trie;
  if (size < 2 * sizeof trie + 1)
    return rdna__fail(RDNA_BAD_DATA, "a map of characters of %zu bytes, which has no trie", size);
  memcpy(&trie, data, sizeof trie);
  if (trie < sizeof trie || trie % sizeof trie || trie >= size - sizeof trie || data[size - 1] != 0)
    return rdna__fail(RDNA_BAD_DATA, "a map of characters of %zu bytes, whose trie has %u, and the rest ends in %d",
                      size, (unsigned)trie, data[size - 1]);
  rdna__charsmap *map = calloc(1, sizeof *map);
  if (!map) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a map of characters");
  map->unit_count = trie / sizeof trie;
  map->replacement_bytes = size - sizeof trie - trie;
  map->units = malloc(trie);
  map->replacements = malloc(map->replacement_bytes);
  if (!map->units || !map->replacements) {
    rdna__charsmap_release(map);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a map of characters");
  }
  memcpy(map->units, data + sizeof trie, trie);
  memcpy(map->replacements, data + sizeof trie + trie, map->replacement_bytes);
  *out_map = map;
  return RDNA_OK;
}

void rdna__charsmap_release(rdna__charsmap *map) {
  if (!map) return;
  free(map->units);
  free(map->replacements);
  free(map);
}

size_t rdna__charsmap_find(const rdna__charsmap *map, rdna_text text, rdna_text *out_replacement) {
  size_t found = 0;
  uint32_t node = offset(map->units[0]), value = 0;
  for (size_t i = 0; i < text.size; i++) {
    uint8_t byte = (uint8_t)text.data[i];
    node ^= byte;
    if (node >= map->unit_count || label(map->units[node]) != byte) break;
    uint32_t unit = map->units[node];
    node ^= offset(unit);
    if (!ends(unit) || node >= map->unit_count) continue;
    value = map->units[node] & 0x7fffffff;
    if (value < map->replacement_bytes) found = i + 1;
  }
  if (found) {
    const char *replacement = map->replacements + value;
    *out_replacement = (rdna_text){replacement, strlen(replacement)};
  }
  return found;
}
