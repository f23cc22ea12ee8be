// Variables of a lane: found by name in a frame, followed through members, elements and pointers, and written as GDB
// writes them.
#ifndef EMULATOR_DEBUG_VALUE_H
#define EMULATOR_DEBUG_VALUE_H

#include "debug/frames.h"
#include "debug/text.h"
#include "debug/types.h"

// Who looks: a lane in a frame of a stopped wave.
struct emu_looker {
  const struct emu_wave *wave;
  struct emu_wave_view view;
  unsigned lane;
  const struct emu_dwarf *dwarf;
  uint64_t linked;
  const struct emu_frame *frame;
};

// Something with a type and a place, of which `from` bytes are passed over.
struct emu_value {
  uint32_t type;       // its entry, EMU_NO_ENTRY: void, or a number
  bool points;         // it is an address of such a type, and stands in `pieces` itself
  unsigned dimension;  // of an array: how many of its dimensions have an index already
  struct emu_piece pieces[EMU_PIECES_MOST];
  unsigned count;
  uint64_t from;
  unsigned bit_from, bit_size;  // of a bit field; bit_size 0: it is none
  const char *why;              // why it is not known; NULL: it is
};

enum emu_fetched { EMU_FETCHED, EMU_FETCHED_NOTHING, EMU_FETCHED_NO_MEMORY };
enum emu_fetched emu_value_fetch(const struct emu_looker *looker, const struct emu_value *value, uint64_t from,
                                 void *out, size_t bytes, uint64_t *bad_address);

// The variable of an entry.
void emu_value_of(const struct emu_looker *looker, uint32_t entry, struct emu_value *out);
uint64_t emu_value_bytes(const struct emu_looker *looker, const struct emu_value *value);  // 0: not known
// The address of its bytes as the lane's flat instructions know it. false: it does not lie together in memory.
bool emu_value_address(const struct emu_looker *looker, const struct emu_value *value, uint64_t *out);

// ---- parts. They return NULL, or a sentence that says why not.

const char *emu_value_member(const struct emu_looker *looker, const struct emu_value *value, const char *name,
                             struct emu_value *out);
const char *emu_value_element(const struct emu_looker *looker, const struct emu_value *value, int64_t index,
                              struct emu_value *out);
const char *emu_value_target(const struct emu_looker *looker, const struct emu_value *pointer, struct emu_value *out);
const char *emu_value_whole(const struct emu_looker *looker, const struct emu_value *value, int64_t *out);
// The variable that the name means in the frame, or in the program. false: there is none.
bool emu_value_named(const struct emu_looker *looker, const char *name, struct emu_value *out);
// What an expression of names, numbers, * & . -> [] and brackets means.
const char *emu_value_parse(const struct emu_looker *looker, const char *text, struct emu_value *out);

// ---- text

// `top`: pointers are written with their types, as GDB does of what was asked for by itself.
void emu_value_print(const struct emu_looker *looker, const struct emu_value *value, bool top, struct emu_text *out);

#endif
