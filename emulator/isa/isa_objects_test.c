// Decodes every instruction of code objects and compares the text with llvm-objdump's.
//
//   isa_objects_test gfx1100 32|64 FILE…       a FILE that is a folder: its *.hsaco
//
// Exit: 0 agreement, 1 differences or no instruction at all, 77 llvm-objdump-19 is not installed.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isa/isa.h"

static const struct emu_isa *target;
static unsigned wave;
static unsigned long instructions, differences;
static bool seen[EMU_OP_COUNT];

static void differ(const char *theirs, const char *ours, const uint32_t *words, size_t count) {
  if (differences++ >= 20) return;
  for (size_t i = 0; i < count; i++) printf("%08x ", words[i]);
  printf("\n  ours:   %s\n  theirs: %s\n", ours, theirs);
}

// "\ttext   // address: words <symbol>"
static void check_line(char *line) {
  char *comment = strstr(line, "// ");
  char *colon = comment ? strchr(comment, ':') : NULL;
  if (line[0] != '\t' || !colon) return;
  uint32_t words[8];
  size_t count = 0;
  for (char *at = colon + 1; count < 8;) {
    char *end;
    unsigned long word = strtoul(at, &end, 16);
    if (end == at) break;
    words[count++] = (uint32_t)word;
    at = end;
  }
  while (comment > line && (comment[-1] == ' ' || comment[-1] == '\t')) comment--;
  *comment = 0;
  const char *theirs = line + strspn(line, "\t ");
  struct emu_inst inst;
  char ours[EMU_ISA_TEXT];
  enum emu_decode_status status = emu_isa_decode(target, wave, words, count, &inst);
  instructions++;
  if (status == EMU_DECODE_OPCODE && strcmp(theirs, "v_illegal") == 0) return;  // the word 0, between functions
  if (status != EMU_DECODE_OK) {
    differ(theirs, emu_isa_reason(status), words, count);
    return;
  }
  emu_isa_print(&inst, target, ours, sizeof(ours));
  seen[inst.op] = true;
  if (inst.format == EMU_VOPD) seen[inst.y.op] = true;
  if (strcmp(ours, theirs) != 0 || inst.size != count * 4) differ(theirs, ours, words, count);
}

static int check_file(const char *path) {
  char command[4096];
  snprintf(command, sizeof(command), "llvm-objdump-19 -d --mattr=%s '%s'",
           wave == 64 ? "-wavefrontsize32,+wavefrontsize64" : "+wavefrontsize32", path);
  FILE *pipe = popen(command, "r");
  if (!pipe) return -1;
  char line[4096];
  while (fgets(line, sizeof(line), pipe)) {
    line[strcspn(line, "\n")] = 0;
    check_line(line);
  }
  return pclose(pipe);
}

static int check_path(const char *path) {
  struct stat status;
  if (stat(path, &status)) return -1;
  if (!S_ISDIR(status.st_mode)) return check_file(path);
  DIR *folder = opendir(path);
  if (!folder) return -1;
  int result = 0;
  for (struct dirent *entry; !result && (entry = readdir(folder));) {
    size_t length = strlen(entry->d_name);
    if (length < 6 || strcmp(entry->d_name + length - 6, ".hsaco") != 0) continue;
    char file[4096];
    snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
    result = check_file(file);
  }
  closedir(folder);
  return result;
}

int main(int argc, char **argv) {
  if (argc < 4 || !(target = emu_isa_find(argv[1]))) {
    fprintf(stderr, "usage: isa_objects_test gfx1030|gfx1100|gfx1201 32|64 FILE…\n");
    return 2;
  }
  wave = (unsigned)strtoul(argv[2], NULL, 10);
  if (system("llvm-objdump-19 --version > /dev/null 2>&1") != 0) {
    printf("skipped: llvm-objdump-19 (Debian package llvm-19) is not installed\n");
    return 77;
  }
  for (int i = 3; i < argc; i++) {
    if (check_path(argv[i])) {
      printf("cannot disassemble %s\n", argv[i]);
      return 2;
    }
  }
  unsigned opcodes = 0;
  for (int op = 0; op < EMU_OP_COUNT; op++) opcodes += seen[op];
  if (!instructions) printf("no code in these files; are the kernels built (target kernels_%s)?\n", argv[1]);
  printf("%s wave%u: %lu instructions, %u opcodes, %lu differences\n", argv[1], wave, instructions, opcodes,
         differences);
  return differences || !instructions ? 1 : 0;
}
