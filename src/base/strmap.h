/* A hash table from byte strings to 32-bit numbers, for names that are put in once and looked up often. */
#ifndef RDNA_BASE_STRMAP_H
#define RDNA_BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct rdna__strmap_slot {
  const char *key; /* NULL: free */
  size_t size;
  uint32_t hash; /* kept so that growing reads no key */
  uint32_t value;
} rdna__strmap_slot;

typedef struct rdna__strmap {
  rdna__strmap_slot *slots; /* a power of two of them, at most two thirds in use; NULL while empty */
  size_t slot_count;
  size_t count;
} rdna__strmap;

/* Caller's storage. All zeros is also a valid empty map. |expected| keys will fit without growing. */
rdna_status rdna__strmap_init(rdna__strmap *map, size_t expected);
void rdna__strmap_deinit(rdna__strmap *map); /* leaves an empty map */

/* Puts |key| in unless it is there already; |out_inserted| says which, and an existing value stays as it was. The
 * bytes are borrowed and must outlive the map; they may hold zeros, and be none at all. */
rdna_status rdna__strmap_insert(rdna__strmap *map, const char *key, size_t size, uint32_t value, bool *out_inserted);

/* False when |key| is not there; |out_value| is then untouched. Any number of threads while none inserts. */
bool rdna__strmap_find(const rdna__strmap *map, const char *key, size_t size, uint32_t *out_value);

#endif
