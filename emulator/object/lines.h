// From addresses to source lines: the line tables of DWARF 4 and 5, read without trust.
//
// Source: "DWARF Debugging Information Format", version 5, section 6.2.
#ifndef EMULATOR_OBJECT_LINES_H
#define EMULATOR_OBJECT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The object's sections; NULL and 0 where it has none. They must stay until the lines are released.
struct emu_line_sections {
  const uint8_t *line, *line_str, *str;
  size_t line_bytes, line_str_bytes, str_bytes;
};

// Reads until the end or the first thing that cannot be; what came before that is kept. NULL: out of memory, or no line
// at all.
struct emu_lines;
struct emu_lines *emu_lines_create(const struct emu_line_sections *sections);
void emu_lines_release(struct emu_lines *lines);

// The row that covers the address, as linked. *file lives as long as the lines. Safe from any thread.
bool emu_lines_find(const struct emu_lines *lines, uint64_t address, const char **file, unsigned *line);
// The name of a file by its number in the unit whose line table begins at the offset `table`; NULL: there is none.
const char *emu_lines_file(const struct emu_lines *lines, uint64_t table, uint64_t file);

#endif
