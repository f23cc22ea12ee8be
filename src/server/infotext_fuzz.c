/* Reads any UTF-8 as what a picture says: an object of texts, whose prompt it begins with. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/infotext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  json_t *text = memchr(data, 0, size) ? NULL : json_stringn((const char *)data, size); /* NULL: no UTF-8 */
  const char *name;
  json_t *value;
  if (!text) return 0;
  json_t *made = infotext_parse(json_string_value(text));
  const char *prompt = json_string_value(json_object_get(made, "Prompt"));
  if (!prompt || !strstr(json_string_value(text), prompt)) abort();
  json_object_foreach(made, name, value) {
    if (!json_is_string(value)) abort();
  }
  json_decref(made);
  json_decref(text);
  return 0;
}
