// Little-endian reads from unaligned memory, and a range check that cannot wrap.
#ifndef EMULATOR_OBJECT_BYTES_H
#define EMULATOR_OBJECT_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t emu_read16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t emu_read32(const uint8_t *p) {
  uint32_t value;
  memcpy(&value, p, sizeof value);
  return value;
}
static inline uint64_t emu_read64(const uint8_t *p) {
  uint64_t value;
  memcpy(&value, p, sizeof value);
  return value;
}

// Whether [offset, offset + bytes) lies in [0, size).
static inline bool emu_within(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

#endif
