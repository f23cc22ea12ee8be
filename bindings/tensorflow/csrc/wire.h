/* Protocol Buffers' wire format, as far as TensorFlow's C interface wants bytes of it: no schema, no library. */
#ifndef RDNA_TENSORFLOW_WIRE_H
#define RDNA_TENSORFLOW_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- reading ---- */

/* The number at |*at|, which moves behind it; what ends too early is read as far as it goes. */
uint64_t wire_varint(const unsigned char **at, const unsigned char *end);

/* ---- writing ---- */

struct wire {
  unsigned char *data; /* free() it */
  size_t size, room;
  bool failed; /* there was no memory: nothing is written any more */
};

void wire_number(struct wire *to, int field, uint64_t value);
void wire_bytes(struct wire *to, int field, const void *data, size_t size);
void wire_text(struct wire *to, int field, const char *text);
/* |message| as a field, and freed. */
void wire_message(struct wire *to, int field, struct wire *message);

#endif
