// Line tables from anywhere: the first two bytes share the rest out among the three sections.
#include <string.h>

#include "object/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  size_t strings = data[0], line_strings = data[1];
  data += 2, size -= 2;
  if (strings + line_strings > size) return 0;
  size_t rest = size - strings - line_strings;
  struct emu_line_sections s = {data, data + rest, data + rest + line_strings, rest, line_strings, strings};
  struct emu_lines *lines = emu_lines_create(&s);
  for (uint64_t address = 0; lines && address < 1 << 14; address += 61) {
    const char *file;
    unsigned line;
    // a name that does not end in its section is found by the address sanitizer
    if (emu_lines_find(lines, address, &file, &line) && strlen(file) > size) __builtin_trap();
  }
  emu_lines_release(lines);
  return 0;
}
