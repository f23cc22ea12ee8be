// Types of a program's variables.
#ifndef EMULATOR_DEBUG_TYPES_H
#define EMULATOR_DEBUG_TYPES_H

#include "debug/text.h"
#include "object/location.h"

uint32_t emu_type_plain(const struct emu_dwarf *dwarf, uint32_t type);  // without typedef, const, volatile, restrict
// Of one whose first dimensions, if it is an array, have an index already. 0: not known.
uint64_t emu_type_bytes(const struct emu_dwarf *dwarf, uint32_t type, unsigned dimension);
void emu_type_name(const struct emu_dwarf *dwarf, uint32_t type, struct emu_text *out);
// Elements of an array's dimension; EMU_NO_COUNT: not said. 0 as well behind its last dimension, *there false.
uint64_t emu_type_elements(const struct emu_dwarf *dwarf, uint32_t array, unsigned dimension, bool *there);
enum emu_address_space emu_type_space(const struct emu_entry *pointer);  // where it points to

#endif
