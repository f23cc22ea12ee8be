#include "kernel/manifest.h"

#include <pthread.h>
#include <string.h>

#include "base/strmap.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static rdna__strmap names;

static void index_names(void) {
  for (int i = 0; i < rdna__manifest_count; i++) {
    bool inserted;
    const char *name = rdna__manifest[i].name;
    if (rdna__strmap_insert(&names, name, strlen(name), (uint32_t)i, &inserted) == RDNA_OK) continue;
    rdna__strmap_deinit(&names); /* out of memory: every lookup walks the list */
    return;
  }
}

int rdna__manifest_find(const char *name) {
  pthread_once(&once, index_names);
  uint32_t index;
  if (rdna__strmap_find(&names, name, strlen(name), &index)) return (int)index;
  if (names.count == (size_t)rdna__manifest_count) return -1;
  for (int i = 0; i < rdna__manifest_count; i++)
    if (!strcmp(rdna__manifest[i].name, name)) return i;
  return -1;
}
