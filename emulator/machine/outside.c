// What is said of an access that lies in no allocation: a null pointer, freed memory, beside which allocation.
#include <inttypes.h>
#include <stdio.h>

#include "machine/memory.h"

enum { NEAR_NULL = 1 << 20 };
static const uint64_t far_away = UINT64_C(64) << 30;  // no index of 32 bits leads there

static void describe(struct emu_memory *memory, uint64_t address, bool write, char *text, size_t room) {
  struct emu_allocation below, next, freed;
  int64_t from_null = (int64_t)address;
  if (from_null > -NEAR_NULL && from_null < NEAR_NULL) {
    snprintf(text, room, ": that is a null pointer %c %" PRIu64 ".", from_null < 0 ? '-' : '+',
             (uint64_t)(from_null < 0 ? -from_null : from_null));
    return;
  }
  bool inside = emu_memory_find(memory, address, &below);
  if (inside && below.read_only && write) {
    snprintf(text, room, ", byte %" PRIu64 " of %s, which this device may only read.", address - below.base,
             below.name);
    return;
  }
  if (inside) {
    snprintf(text, room, ", byte %" PRIu64 " of %s, which has only %" PRIu64 " bytes.", address - below.base,
             below.name, below.bytes);
    return;
  }
  if (emu__memory_freed(memory, address, &freed)) {
    snprintf(text, room, ", byte %" PRIu64 " of %s, which had %" PRIu64 " bytes and has been freed.",
             address - freed.base, freed.name, freed.bytes);
    return;
  }
  uint64_t past = below.bytes ? address - below.base - below.bytes : UINT64_MAX;
  uint64_t before = emu__memory_next(memory, address, &next) ? next.base - address : UINT64_MAX;
  if (past > far_away && before > far_away) {
    snprintf(text, room, ": there is no allocation%s.", below.bytes || before != UINT64_MAX ? " near it" : " at all");
  } else if (before < past) {
    snprintf(text, room, ", %" PRIu64 " bytes before %s, which has %" PRIu64 " bytes.", before, next.name, next.bytes);
  } else {
    snprintf(text, room, ", %" PRIu64 " bytes past the end of %s, which has %" PRIu64 " bytes.", past, below.name,
             below.bytes);
  }
}

void emu__memory_outside(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address, unsigned bytes,
                         bool write) {
  char text[200];
  describe(wave->group->run->dispatch->memory, address, write, text, sizeof text);
  emu__wave_trap(wave, step, EMU_FAULT, "out of bounds", lane, address, "It %s %u bytes at 0x%" PRIx64 "%s",
                 write ? "writes" : "reads", bytes, address, text);
}
