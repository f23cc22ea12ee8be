#include "wire.h"

#include <stdlib.h>
#include <string.h>

uint64_t wire_varint(const unsigned char **at, const unsigned char *end) {
  uint64_t value = 0;
  for (int shift = 0; *at < end && shift < 64; shift += 7) {
    unsigned char byte = *(*at)++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) break;
  }
  return value;
}

bool wire_next(const unsigned char **at, const unsigned char *end, struct field *out) {
  if (*at >= end) return false;
  uint64_t tag = wire_varint(at, end);
  *out = (struct field){.number = (int)(tag >> 3 & 0x1fffffff), .kind = (int)(tag & 7)};
  size_t length = 0;
  if (out->kind == WIRE_VARINT) {
    out->value = wire_varint(at, end);
    return true;
  }
  if (out->kind == WIRE_BYTES) {
    uint64_t said = wire_varint(at, end);
    if (said > (uint64_t)(end - *at)) return false;
    length = (size_t)said;
  } else if (out->kind == WIRE_64 || out->kind == WIRE_32) {
    length = out->kind == WIRE_64 ? 8 : 4;
    if (length > (size_t)(end - *at)) return false;
  } else {
    return false;
  }
  out->text = (struct text){*at, length};
  *at += length;
  return true;
}

static void append(struct wire *to, const void *data, size_t size) {
  if (to->failed || size == 0) return;
  if (to->room - to->size < size) {
    size_t room = (to->size + size) * 2;
    unsigned char *grown = realloc(to->data, room);
    if (!grown) {
      to->failed = true;
      return;
    }
    to->data = grown;
    to->room = room;
  }
  memcpy(to->data + to->size, data, size);
  to->size += size;
}

static void varint(struct wire *to, uint64_t value) {
  unsigned char bytes[10];
  size_t count = 0;
  do {
    bytes[count] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    count++;
    value >>= 7;
  } while (value);
  append(to, bytes, count);
}

void wire_number(struct wire *to, int field, uint64_t value) {
  varint(to, (uint64_t)field << 3);
  varint(to, value);
}

void wire_bytes(struct wire *to, int field, const void *data, size_t size) {
  varint(to, (uint64_t)field << 3 | 2);
  varint(to, size);
  append(to, data, size);
}

void wire_text(struct wire *to, int field, const char *text) { wire_bytes(to, field, text, strlen(text)); }

void wire_float(struct wire *to, int field, float value) {
  unsigned char bytes[4];
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(bits >> 8 * i);
  varint(to, (uint64_t)field << 3 | WIRE_32);
  append(to, bytes, sizeof bytes);
}

void wire_message(struct wire *to, int field, struct wire *message) {
  to->failed |= message->failed;
  wire_bytes(to, field, message->data, message->size);
  free(message->data);
  *message = (struct wire){0};
}
