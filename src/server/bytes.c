#include "server/bytes.h"

#include <stdlib.h>
#include <string.h>

void bytes_append(bytes *b, const void *data, size_t size) {
  if (size == 0) return;
  if (b->room - b->size < size) {
    size_t room = 2 * b->room + size;
    char *grown = realloc(b->data, room);
    if (!grown) {
      b->failed = true;
      return;
    }
    b->data = grown;
    b->room = room;
  }
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

void bytes_append_text(bytes *b, const char *text) { bytes_append(b, text, strlen(text)); }

void bytes_drop(bytes *b, size_t size) {
  b->size -= size;
  if (b->size) memmove(b->data, b->data + size, b->size);
}

void bytes_deinit(bytes *b) {
  free(b->data);
  *b = (bytes){0};
}
