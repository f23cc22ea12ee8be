/* Protocol Buffers' wire format, as far as TensorFlow's C interface wants bytes of it: no schema, no library. */
#ifndef RDNA_TENSORFLOW_WIRE_H
#define RDNA_TENSORFLOW_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- reading ---- */

/* The number at |*at|, which moves behind it; what ends too early is read as far as it goes. */
uint64_t wire_varint(const unsigned char **at, const unsigned char *end);

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 }; /* kinds of fields */

struct text {
  const unsigned char *data;
  size_t size;
};

struct field {
  int number, kind;
  uint64_t value;   /* of a number */
  struct text text; /* of bytes */
};

/* The field at |*at|, which moves behind it. False at the end, and where there is none. */
bool wire_next(const unsigned char **at, const unsigned char *end, struct field *out);

/* ---- writing ---- */

struct wire {
  unsigned char *data; /* free() it */
  size_t size, room;
  bool failed; /* there was no memory: nothing is written any more */
};

void wire_number(struct wire *to, int field, uint64_t value);
void wire_bytes(struct wire *to, int field, const void *data, size_t size);
void wire_text(struct wire *to, int field, const char *text);
void wire_float(struct wire *to, int field, float value);
/* |message| as a field, and freed. */
void wire_message(struct wire *to, int field, struct wire *message);

#endif
