/* For fuzz targets: JSON that a fuzzer's bytes choose, so that it gets behind the parser, which it cannot see into. */
#ifndef RDNA_SERVER_JSON_OF_BYTES_H
#define RDNA_SERVER_JSON_OF_BYTES_H

#include <jansson.h>
#include <stdint.h>
#include <string.h>

typedef struct byte_reader {
  const uint8_t *data;
  size_t size;
} byte_reader;

static inline unsigned next_byte(byte_reader *r) {
  if (r->size == 0) return 0;
  r->size--;
  return *r->data++;
}

static inline json_t *object_of_bytes(byte_reader *r, const char *const *names, size_t count, int depth);

static inline json_t *text_of_next_bytes(byte_reader *r) {
  char text[64];
  size_t size = next_byte(r) % sizeof text;
  for (size_t i = 0; i < size; i++) text[i] = (char)(next_byte(r) & 0x7f);
  return json_stringn(text, size);
}

static inline json_t *value_of_bytes(byte_reader *r, const char *const *names, size_t count, int depth) {
  static const double numbers[] = {0, 1, 0.5, -1, 2, 2.1, 1e9, -1e18, 1e300, 2048, 2049};
  json_t *list;
  switch (next_byte(r) % 8) {
    case 0:
      return json_null();
    case 1:
      return json_boolean(next_byte(r) & 1);
    case 2:
      return json_integer((json_int_t)(int8_t)next_byte(r) * (next_byte(r) & 1 ? 1 : 40000000000));
    case 3:
      return json_real(numbers[next_byte(r) % (sizeof numbers / sizeof *numbers)]);
    case 4:
      return json_string(names[next_byte(r) % count]);
    case 5:
      list = json_array();
      for (unsigned n = next_byte(r) % 6; n > 0 && depth > 0; n--)
        json_array_append_new(list, value_of_bytes(r, names, count, depth - 1));
      return list;
    case 6:
      return depth > 0 ? object_of_bytes(r, names, count, depth - 1) : json_object();
    default:
      return text_of_next_bytes(r);
  }
}

static inline json_t *object_of_bytes(byte_reader *r, const char *const *names, size_t count, int depth) {
  json_t *object = json_object();
  for (unsigned n = next_byte(r) % 16; n > 0 && r->size > 0; n--) {
    const char *name = names[next_byte(r) % count];
    json_object_set_new(object, name, value_of_bytes(r, names, count, depth));
  }
  return object;
}

#endif
