/* Bytes that grow. */
#ifndef RDNA_SERVER_BYTES_H
#define RDNA_SERVER_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/* All zeros is an empty one. */
typedef struct bytes {
  char *data;
  size_t size, room;
  bool failed; /* there was no memory for something that was appended, and the bytes are not whole */
} bytes;

void bytes_append(bytes *b, const void *data, size_t size);
void bytes_append_text(bytes *b, const char *text);
/* Takes the first |size| bytes away. */
void bytes_drop(bytes *b, size_t size);
void bytes_deinit(bytes *b); /* leaves an empty one */

#endif
