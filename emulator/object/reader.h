// A cursor over bytes that nobody vouches for: past the end it yields zeros and says so.
#ifndef EMULATOR_OBJECT_READER_H
#define EMULATOR_OBJECT_READER_H

#include "object/bytes.h"

struct emu_reader {
  const uint8_t *at, *end;
  bool bad;
};

static inline uint64_t emu_take(struct emu_reader *r, unsigned bytes) {
  uint64_t value = 0;
  if (r->bad || (size_t)(r->end - r->at) < bytes) {
    r->bad = true;
    return 0;
  }
  memcpy(&value, r->at, bytes);
  r->at += bytes;
  return value;
}

static inline uint64_t emu_take_uleb(struct emu_reader *r) {
  uint64_t value = 0;
  for (unsigned shift = 0; !r->bad; shift += 7) {
    uint64_t byte = emu_take(r, 1);
    if (shift < 64) value |= (byte & 127) << shift;
    if (!(byte & 128)) break;
  }
  return value;
}

static inline int64_t emu_take_sleb(struct emu_reader *r) {
  uint64_t value = 0, byte = 0;
  unsigned shift = 0;
  do {
    byte = emu_take(r, 1);
    if (shift < 64) value |= (byte & 127) << shift;
    shift += 7;
  } while (byte & 128 && !r->bad);
  if (shift < 64 && byte & 64) value |= UINT64_MAX << shift;
  return (int64_t)value;
}

static inline void emu_skip(struct emu_reader *r, uint64_t bytes) {
  if (r->bad || (uint64_t)(r->end - r->at) < bytes) {
    r->bad = true;
  } else {
    r->at += bytes;
  }
}

// NULL when it is not terminated.
static inline const char *emu_take_string(struct emu_reader *r) {
  const uint8_t *start = r->at, *zero = r->bad ? NULL : memchr(start, 0, (size_t)(r->end - start));
  if (!zero) {
    r->bad = true;
    return NULL;
  }
  r->at = zero + 1;
  return (const char *)start;
}

static inline const char *emu_string_at(const uint8_t *section, size_t size, uint64_t offset) {
  if (offset >= size || !memchr(section + offset, 0, size - offset)) return NULL;
  return (const char *)section + offset;
}

#endif
