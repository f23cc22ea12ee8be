/* rdna emulate: one kernel of a code object on the emulated GPU that it was compiled for. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "command/command.h"
#include "device/driver/hip/hip_library.h"

enum { RUN_CHECK = 1, RUN_COUNTERS = 2, SIDE_MAX = 0x7fffffff };

/* The emulator's own entry, beside the names of AMD's library: 0, or 1 with a sentence in |message|. */
typedef int (*run_file_function)(const char *path, const char *kernel, const unsigned grid[3], const unsigned block[3],
                                 unsigned lds_bytes, unsigned flags, int count, const char *const *arguments,
                                 char *message, size_t room);

/* "4", "4,2" or "4,2,1"; a missing one is 1. */
static bool parse_sides(const char *option, const char *text, unsigned out_sides[3]) {
  const char *at = text;
  for (int i = 0; i < 3; i++) out_sides[i] = 1;
  for (int i = 0; i < 3; i++) {
    char *end;
    errno = 0;
    unsigned long side = strtoul(at, &end, 10);
    if (at[0] < '0' || at[0] > '9' || errno || side == 0 || side > SIDE_MAX || (*end && *end != ',')) break;
    out_sides[i] = (unsigned)side;
    if (!*end) return true;
    at = end + 1;
  }
  fprintf(stderr, "rdna emulate: %s '%s' is not X, X,Y or X,Y,Z with sides from 1 on\n", option, text);
  return false;
}

int command_emulate(int argc, char **argv) {
  const char *grid_text = "1", *block_text = "1";
  int64_t lds = 0;
  bool check = false, counters = false;
  const option_row options[] = {
      {"--grid", OPTION_TEXT, &grid_text, "X,Y,Z", "work-groups (1)", 0, 0},
      {"--block", OPTION_TEXT, &block_text, "X,Y,Z", "work-items of a group (1)", 0, 0},
      {"--lds", OPTION_INTEGER, &lds, "BYTES", "LDS that the launch adds to the kernel's own (0)", 0, 65536},
      {"--check", OPTION_FLAG, &check, NULL, "look for wrong accesses, races, unwritten values, missing waits", 0, 0},
      {"--counters", OPTION_FLAG, &counters, NULL, "print what was executed: counts, not times", 0, 0},
  };
  const command_line line = {
      "rdna emulate",
      "Runs one kernel on an emulated GPU; the target is read from the file. Each ARG in order is one of\n"
      "  i32:N i64:N f32:X f64:X   a number\n"
      "  in:FILE                   a buffer with the file's bytes\n"
      "  out:BYTES:FILE            a buffer of unwritten bytes, written to FILE afterwards\n"
      "  inout:FILE:OUTFILE        a buffer with FILE's bytes, written to OUTFILE afterwards\n"
      "  bytes:HEX                 a struct passed by value",
      "FILE.hsaco KERNEL [ARG ...]",
      2,
      POSITIONAL_MAX,
      options,
      5};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  unsigned grid[3], block[3];
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  if (!parse_sides("--grid", grid_text, grid) || !parse_sides("--block", block_text, block)) return EXIT_FAILED;
  rdna__library library = {0};
  if (rdna__hip_library_open_emulator(&library, "rdna emulate") != RDNA_OK) return fail_with_status();
  run_file_function run_file;
  *(void **)&run_file = dlsym(library.handle, "emu_run_file");
  if (!run_file) {
    fprintf(stderr, "rdna: %s is not the emulator: it has no emu_run_file\n", library.path);
    return EXIT_FAILED;
  }
  char message[1200];
  unsigned flags = (check ? RUN_CHECK : 0) | (counters ? RUN_COUNTERS : 0);
  if (run_file(positionals[0], positionals[1], grid, block, (unsigned)lds, flags, count - 2, positionals + 2, message,
               sizeof message) == 0)
    return EXIT_OK;
  fprintf(stderr, "rdna: %s\n", message);
  return EXIT_FAILED;
}
