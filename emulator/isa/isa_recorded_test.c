// Decodes recorded words and compares the text with LLVM's.
//
//   isa_recorded_test gfx950 FILE
//
// A line of the file is "word word … text", words in hexadecimal; '#' begins a comment. Exit: 0 agreement, 1
// differences.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/isa.h"

enum { LINE = 512, WORDS = 5 };

// The words at the beginning of a line; *text is what stands behind them.
static size_t read_words(char *line, uint32_t words[WORDS], const char **text) {
  size_t n = 0;
  char *at = line;
  while (n < WORDS && strspn(at, "0123456789abcdef") == 8 && at[8] == ' ') {
    words[n++] = (uint32_t)strtoul(at, NULL, 16);
    at += 9;
  }
  *text = at;
  return n;
}

int main(int argc, char **argv) {
  const struct emu_isa *target = argc == 3 ? emu_isa_find(argv[1]) : NULL;
  FILE *file = target ? fopen(argv[2], "r") : NULL;
  if (!file) {
    fprintf(stderr, "usage: isa_recorded_test TARGET FILE\n");
    return 2;
  }
  char line[LINE];
  unsigned read = 0, differences = 0;
  while (fgets(line, sizeof(line), file)) {
    line[strcspn(line, "\n")] = 0;
    if (line[0] == '#' || !line[0]) continue;
    uint32_t words[WORDS] = {0};
    const char *expected;
    size_t count = read_words(line, words, &expected);
    struct emu_inst inst;
    char text[EMU_ISA_TEXT];
    enum emu_decode_status status = emu_isa_decode(target, target->lanes, words, count, &inst);
    if (status == EMU_DECODE_OK) {
      emu_isa_print(&inst, target, text, sizeof(text));
    } else {
      snprintf(text, sizeof(text), "%s", emu_isa_reason(status));
    }
    read++;
    if (!strcmp(text, expected) && inst.size == count * 4) continue;
    differences++;
    printf("%s\n  ours: %s, %u bytes\n", line, text, inst.size);
  }
  fclose(file);
  printf("%s: %u recorded instructions, %u differences\n", target->name, read, differences);
  return differences || !read ? 1 : 0;
}
