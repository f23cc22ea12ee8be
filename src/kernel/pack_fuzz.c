/* Any bytes: open, find, extract. The table's hash and bases are mended first, or nothing would get past them. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "kernel/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  memcpy(copy, data, size);
  rdna__pack_header header;
  if (size >= sizeof header) {
    memcpy(&header, copy, sizeof header);
    memcpy(header.magic, RDNA__PACK_MAGIC, 8);
    header.version = RDNA__PACK_VERSION;
    header.entry_count %= 8;
    header.base[0] &= 1; /* mostly none, which memory cannot have */
    size_t table = header.entry_count * sizeof(rdna__pack_entry);
    if (table <= size - sizeof header) {
      for (uint32_t i = 0; i < header.entry_count; i++) {
        rdna__pack_entry *entry = (rdna__pack_entry *)(copy + sizeof header) + i;
        entry->base %= header.entry_count + 1;
      }
      header.table_hash = XXH3_64bits(copy + sizeof header, table);
    }
    memcpy(copy, &header, sizeof header);
  }
  rdna__pack *pack;
  if (rdna__pack_open_memory(copy, size, "fuzz", &pack) == RDNA_OK) {
    rdna__pack_find(pack, "fill");
    for (int i = 0; i < rdna__pack_entry_count(pack); i++) {
      void *image;
      size_t image_size;
      rdna_status status = rdna__pack_extract(pack, rdna__pack_entry_at(pack, i), &image, &image_size);
      if ((status == RDNA_OK) != (image != NULL)) abort();
      free(image);
    }
    rdna__pack_close(pack);
  }
  free(copy);
  return 0;
}
