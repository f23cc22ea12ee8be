#include "base/options.h"

#include <stdint.h>
#include <string.h>

enum { MOST_BYTES = 1 << 12 /* more is no struct of options but memory that nobody wrote */ };

rdna_status rdna__options_read(const char *op_name, const char *argument, const void *given, void *known,
                               size_t known_size) {
  if (!given) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is NULL; pass a struct", op_name, argument);
  size_t size;
  memcpy(&size, given, sizeof size);
  if (size < sizeof size || size > MOST_BYTES) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s has size %zu; begin it with its RDNA_..._INIT", op_name, argument,
                      size);
  }
  for (size_t i = known_size; i < size; i++) {
    if (((const uint8_t *)given)[i] == 0) continue;
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: %s has %zu bytes, of which this library knows %zu, and byte %zu is set; use the library of "
                      "the header, or leave its newer fields zero",
                      op_name, argument, size, known_size, i);
  }
  memset(known, 0, known_size);
  memcpy(known, given, size < known_size ? size : known_size);
  memcpy(known, &known_size, sizeof known_size);
  return RDNA_OK;
}
