// Debug information from anywhere: five bytes share the rest out among the sections; every entry is asked for its name,
// its code and its place at a few addresses, and places are executed on a machine that has everything.
#include <string.h>

#include "object/dwarf.h"
#include "object/location.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool any_register(void *context, uint64_t number, bool at_entry, uint64_t *out, enum emu_address_space *space) {
  (void)context;
  *out = number * 77 + at_entry;
  *space = number % 3 ? EMU_ADDRESS_FLAT : EMU_ADDRESS_PRIVATE;
  return number < 4000;
}
static bool any_memory(void *context, enum emu_address_space space, uint64_t address, void *data, size_t bytes) {
  (void)context;
  memset(data, (int)(address + space), bytes);
  return address % 64;
}
static bool any_base(void *context, uint64_t *out) {
  (void)context;
  *out = 64;
  return true;
}

static void ask(const struct emu_dwarf *dwarf, uint32_t i, size_t size) {
  static const struct emu_location_machine machine = {NULL, any_register, any_memory, any_base};
  const struct emu_entry *e = emu_dwarf_entry(dwarf, i);
  const char *name = emu_dwarf_name(dwarf, i), *why;
  // a name that does not end in its section is found by the address sanitizer
  if (name && strlen(name) > size) __builtin_trap();
  if (e->end <= i || e->end > emu_dwarf_count(dwarf)) __builtin_trap();
  if (e->parent != EMU_NO_ENTRY && (e->parent >= i || emu_dwarf_entry(dwarf, e->parent)->end < e->end))
    __builtin_trap();
  (void)emu_dwarf_type(dwarf, i);
  for (uint64_t address = 0; address < 1 << 13; address += 1021) {
    struct emu_section expression;
    struct emu_piece pieces[EMU_PIECES_MOST];
    (void)emu_dwarf_covers(dwarf, i, address);
    if (!emu_dwarf_expression(dwarf, i, &e->location, address, &expression)) continue;
    unsigned count = emu_locate(dwarf, i, &expression, &machine, pieces, &why);
    if (!count != (why != NULL) || count > EMU_PIECES_MOST) __builtin_trap();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct emu_section parts[5];
  if (size < 5) return 0;
  const uint8_t *shares = data;
  size_t left = size - 5;
  data += 5;
  for (int i = 0; i < 5; i++) {
    size_t some = shares[i] < left ? shares[i] : left;
    parts[i] = (struct emu_section){data, some};
    data += some;
    left -= some;
  }
  struct emu_dwarf_sections s = {.info = {data, left},
                                 .abbrev = parts[0],
                                 .str = parts[1],
                                 .line_str = parts[1],
                                 .str_offsets = parts[2],
                                 .addr = parts[3],
                                 .loc = parts[4],
                                 .loclists = parts[4],
                                 .ranges = parts[4],
                                 .rnglists = parts[4]};
  struct emu_dwarf *dwarf = emu_dwarf_create(&s);
  for (uint32_t i = 0; dwarf && i < emu_dwarf_count(dwarf) && i < 256; i++) ask(dwarf, i, size);
  emu_dwarf_release(dwarf);
  return 0;
}
