#include "base/json.h"

#include <stdlib.h>
#include <string.h>

json_t *rdna__json_of_text(const char *text, size_t size) {
  static const char replacement[] = "\xef\xbf\xbd";
  json_t *whole = json_stringn(text, size);
  if (whole) return whole;
  char *mended = malloc(3 * size); /* a byte becomes 3 */
  size_t used = 0;
  for (size_t i = 0; mended && i < size;) {
    size_t length = 0;
    for (size_t n = 1; length == 0 && n <= 4 && i + n <= size; n++) {
      json_t *one = json_stringn(text + i, n);
      if (one) length = n;
      json_decref(one);
    }
    memcpy(mended + used, length ? text + i : replacement, length ? length : 3);
    used += length ? length : 3;
    i += length ? length : 1;
  }
  whole = mended ? json_stringn(mended, used) : NULL;
  free(mended);
  return whole;
}
