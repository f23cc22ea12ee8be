// Where a variable is: DWARF's expressions, executed without trust.
//
// Source: "DWARF Debugging Information Format", version 5, sections 2.5 and 2.6; LLVM "User Guide for AMDGPU Backend"
// for what numbers of registers and of address spaces mean.
#ifndef EMULATOR_OBJECT_LOCATION_H
#define EMULATOR_OBJECT_LOCATION_H

#include "object/dwarf.h"

// What an address counts in. LINKED: as the object was linked; PRIVATE and LOCAL: an offset in a lane's scratch, in
// LDS.
enum emu_address_space { EMU_ADDRESS_FLAT, EMU_ADDRESS_PRIVATE, EMU_ADDRESS_LOCAL, EMU_ADDRESS_LINKED };

enum emu_piece_kind {
  EMU_PIECE_NOWHERE,  // optimized out
  EMU_PIECE_MEMORY,   // at address `value` of `space`
  EMU_PIECE_REGISTER,
  EMU_PIECE_VALUE,    // the low bytes of `value`
  EMU_PIECE_LITERAL,  // the bytes of `literal`
};
struct emu_piece {
  enum emu_piece_kind kind;
  enum emu_address_space space;
  uint64_t value;  // or the register's number
  uint64_t bytes;  // 0: all that there is
  struct emu_section literal;
};
enum { EMU_PIECES_MOST = 64 };

// The machine as one lane sees it. Functions return whether it is known.
struct emu_location_machine {
  void *context;
  // A register's bits, or those that it had when the function was called. *space: what it counts in as an address.
  bool (*reg)(void *context, uint64_t number, bool at_entry, uint64_t *out, enum emu_address_space *space);
  bool (*read)(void *context, enum emu_address_space space, uint64_t address, void *data, size_t bytes);
  bool (*frame_base)(void *context, uint64_t *out);  // in scratch
};

// Executes an expression of the entry `index`. Returns the number of pieces, 0: it cannot be told, and *why says why.
unsigned emu_locate(const struct emu_dwarf *dwarf, uint32_t index, const struct emu_section *expression,
                    const struct emu_location_machine *machine, struct emu_piece out[EMU_PIECES_MOST],
                    const char **why);

#endif
