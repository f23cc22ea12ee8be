/* Reads any bytes as an entry of the cache of compiled code; what is accepted lies within them. */
#include <stdlib.h>

#include "kernel/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *code;
  const char *files;
  size_t code_size, files_size;
  if (rdna__cache_parse("0123", data, size, &code, &code_size, &files, &files_size) != RDNA_OK) return 0;
  if (code < data || code + code_size != data + size || (const char *)code != files + files_size) abort();
  return 0;
}
