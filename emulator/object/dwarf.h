// Names, types and scopes of a program: the entries of .debug_info in DWARF 4 and 5, read without trust.
//
// Source: "DWARF Debugging Information Format", version 5, sections 2, 3 and 7; of version 4 what differs.
#ifndef EMULATOR_OBJECT_DWARF_H
#define EMULATOR_OBJECT_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/lines.h"

struct emu_section {
  const uint8_t *data;
  size_t bytes;
};

// The object's sections, empty where it has none. They and the lines (NULL: none) must stay until the entries are
// released.
struct emu_dwarf_sections {
  struct emu_section info, abbrev, str, line_str, str_offsets, addr, loc, loclists, ranges, rnglists;
  const struct emu_lines *lines;
};

enum emu_tag {
  EMU_TAG_ARRAY = 0x01,
  EMU_TAG_CLASS = 0x02,
  EMU_TAG_ENUMERATION = 0x04,
  EMU_TAG_PARAMETER = 0x05,
  EMU_TAG_BLOCK = 0x0b,
  EMU_TAG_MEMBER = 0x0d,
  EMU_TAG_POINTER = 0x0f,
  EMU_TAG_REFERENCE = 0x10,
  EMU_TAG_UNIT = 0x11,
  EMU_TAG_STRUCTURE = 0x13,
  EMU_TAG_SUBROUTINE = 0x15,
  EMU_TAG_TYPEDEF = 0x16,
  EMU_TAG_UNION = 0x17,
  EMU_TAG_INHERITANCE = 0x1c,
  EMU_TAG_INLINED = 0x1d,
  EMU_TAG_SUBRANGE = 0x21,
  EMU_TAG_BASE = 0x24,
  EMU_TAG_CONST = 0x26,
  EMU_TAG_ENUMERATOR = 0x28,
  EMU_TAG_FUNCTION = 0x2e,
  EMU_TAG_VARIABLE = 0x34,
  EMU_TAG_VOLATILE = 0x35,
  EMU_TAG_RESTRICT = 0x37,
  EMU_TAG_NAMESPACE = 0x39,
  EMU_TAG_RVALUE_REFERENCE = 0x42,
};
enum emu_base_encoding {
  EMU_ENCODING_BOOLEAN = 2,
  EMU_ENCODING_FLOAT = 4,
  EMU_ENCODING_SIGNED = 5,
  EMU_ENCODING_SIGNED_CHAR = 6,
  EMU_ENCODING_UNSIGNED = 7,
  EMU_ENCODING_UNSIGNED_CHAR = 8,
};

// Where something is: an expression, or a list of expressions for ranges of addresses.
enum emu_place_kind { EMU_PLACE_NONE, EMU_PLACE_EXPRESSION, EMU_PLACE_LIST, EMU_PLACE_LIST_INDEX };
struct emu_place {
  enum emu_place_kind kind;
  const uint8_t *data;  // the expression's bytes
  uint64_t bytes;       // their count; of a list the offset in its section, or its index
};

enum { EMU_NO_ENTRY = UINT32_MAX };
#define EMU_NO_COUNT UINT64_MAX

struct emu_entry {
  uint32_t offset;        // in .debug_info
  uint32_t parent, end;   // indices: EMU_NO_ENTRY for a unit; the first behind its descendants
  uint32_t unit;          // number of its unit
  uint32_t type, origin;  // offsets of entries, 0: none; the origin has what this one does not say
  uint16_t tag;           // enum emu_tag, or another
  uint8_t encoding;
  bool has_low, has_ranges, ranges_indexed, vector, declaration, has_value;
  const char *name;  // NULL: none
  uint64_t low, high, ranges;
  uint64_t bytes, count;                 // its size; elements of a subrange, EMU_NO_COUNT: not said
  uint64_t member_at, bit_at, bit_size;  // offsets in the structure, in bytes or bits; bit_size 0: no bit field
  uint32_t address_class, call_file, call_line;
  int64_t value;               // of a constant
  struct emu_section literal;  // or its bytes
  struct emu_place location, frame_base;
};

// Reads until the end or the first thing that cannot be, at most two million entries or 67 million attributes; what
// came before is kept. NULL: no memory, or no entry at all.
struct emu_dwarf;
struct emu_dwarf *emu_dwarf_create(const struct emu_dwarf_sections *sections);
void emu_dwarf_release(struct emu_dwarf *dwarf);

uint32_t emu_dwarf_count(const struct emu_dwarf *dwarf);
const struct emu_entry *emu_dwarf_entry(const struct emu_dwarf *dwarf, uint32_t index);  // NULL: there is none
uint32_t emu_dwarf_at(const struct emu_dwarf *dwarf, uint32_t offset);  // index of the entry at an offset, or NO_ENTRY

// What an entry or its origins say.
const char *emu_dwarf_name(const struct emu_dwarf *dwarf, uint32_t index);  // NULL: none
uint32_t emu_dwarf_type(const struct emu_dwarf *dwarf, uint32_t index);     // EMU_NO_ENTRY: none, or void

// Whether the entry's code covers an address, as linked.
bool emu_dwarf_covers(const struct emu_dwarf *dwarf, uint32_t index, uint64_t address);
// The expression of a place that holds at the address. false: there is none there.
bool emu_dwarf_expression(const struct emu_dwarf *dwarf, uint32_t index, const struct emu_place *place,
                          uint64_t address, struct emu_section *out);
// An entry of .debug_addr, as the entry's unit counts them.
bool emu_dwarf_address(const struct emu_dwarf *dwarf, uint32_t index, uint64_t number, uint64_t *out);
uint32_t emu_dwarf_unit_offset(const struct emu_dwarf *dwarf, uint32_t index);  // where the entry's unit begins
// The file that a number in call_file means; NULL: not known.
const char *emu_dwarf_file(const struct emu_dwarf *dwarf, uint32_t index, uint32_t number);

// ---- between the files of this folder

struct emu_unit {
  uint32_t offset, first;  // of its header; index of its first entry
  uint8_t version, address_bytes, offset_bytes;
  uint64_t str_offsets, addr, rnglists, loclists;  // bases
  uint64_t low, lines;
};
struct emu_dwarf {
  struct emu_dwarf_sections sections;
  struct emu_unit *units;
  uint32_t unit_count, unit_room;
  struct emu_entry *entries;
  uint32_t count, room;
};
bool emu_unit_address(const struct emu_dwarf *dwarf, const struct emu_unit *unit, uint64_t number, uint64_t *out);

#endif
