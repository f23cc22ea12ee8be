/* rdna emulate: one kernel of a code object on the emulated GPU that it was compiled for, or a program on emulated
 * GPUs. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Whether the file begins as code objects and bundles of them do. */
static bool holds_code(const char *path) {
  enum { MACHINE_AT = 18, MACHINE_AMDGPU = 224 };
  unsigned char head[24] = {0};
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  size_t got = fread(head, 1, sizeof head, file);
  fclose(file);
  bool elf = got > MACHINE_AT && memcmp(head, "\177ELF", 4) == 0 && head[MACHINE_AT] == MACHINE_AMDGPU;
  return elf || memcmp(head, "__CLANG_OFFLOAD_BUNDLE__", sizeof head) == 0 || memcmp(head, "CCOB", 4) == 0;
}

static bool is_executable(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* As a shell would find it. */
static bool is_program(const char *name) {
  const char *folders = getenv("PATH");
  char path[4096];
  if (holds_code(name)) return false;
  if (strchr(name, '/')) return is_executable(name);
  for (const char *at = folders ? folders : ""; *at;) {
    size_t length = strcspn(at, ":");
    snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
    if (is_executable(path)) return true;
    at += length + (at[length] == ':');
  }
  return false;
}

/* Becomes the program, with the emulator under the names of AMD's library. Returns if it cannot. */
static int run_program(const char *library, const char *target, int count, const char *const *words) {
  char folders[8192], *argv[POSITIONAL_MAX + 1] = {0};
  const char *slash = strrchr(library, '/'), *others = getenv("LD_LIBRARY_PATH");
  if (target[0]) setenv("RDNA_EMULATE", target, 1);
  if (!getenv("RDNA_EMULATE")) {
    fprintf(stderr, "rdna emulate: which GPU is emulated for %s? --target gfx1100, for example, or RDNA_EMULATE\n",
            words[0]);
    return EXIT_FAILED;
  }
  snprintf(folders, sizeof folders, "%.*s/dropin%s%s", slash ? (int)(slash - library) : 1, slash ? library : ".",
           others && others[0] ? ":" : "", others ? others : "");
  setenv("LD_LIBRARY_PATH", folders, 1);
  setenv("RDNA_HIP_LIBRARY", library, 1); /* for those of our own programs */
  for (int i = 0; i < count; i++) argv[i] = (char *)words[i];
  fflush(NULL);
  execvp(argv[0], argv);
  fprintf(stderr, "rdna emulate: %s does not start: %s\n", words[0], strerror(errno));
  return EXIT_FAILED;
}

static void set_text(const char *name, const char *text) {
  if (text[0]) setenv(name, text, 1);
}

/* What the emulator is asked for by its environment. False: it cannot be, which was said. */
static bool set_environment(int64_t gdb, const option_texts *breaks, const char *trace, const char *trace_wave) {
  char text[8192] = "";
  size_t at = 0;
  for (int i = 0; i < breaks->count && at < sizeof text; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? "," : "", breaks->values[i]);
  if (at >= sizeof text) {
    fprintf(stderr, "rdna emulate: all of --break have %zu characters and more; there is room for %zu\n", at,
            sizeof text - 1);
    return false;
  }
  struct stat about;
  if (trace[0] && stat(trace, &about) == 0 && S_ISREG(about.st_mode))
    unlink(trace); /* an earlier run's; the emulator overwrites none */
  set_text("RDNA_EMULATE_BREAK", text);
  set_text("RDNA_EMULATE_TRACE", trace);
  set_text("RDNA_EMULATE_TRACE_WAVE", trace_wave);
  if (gdb < 0) return true;
  snprintf(text, sizeof text, "%" PRId64, gdb);
  set_text("RDNA_EMULATE_GDB", text);
  return true;
}

int command_emulate(int argc, char **argv) {
  const char *grid_text = NULL, *block_text = NULL, *target = "", *trace = "", *trace_wave = "";
  int64_t lds = -1, gdb = -1;
  option_texts breaks = {.count = 0};
  bool check = false, counters = false;
  const option_row options[] = {
      {"--grid", OPTION_TEXT, &grid_text, "X,Y,Z", "work-groups (1)", 0, 0},
      {"--block", OPTION_TEXT, &block_text, "X,Y,Z", "work-items of a group (1)", 0, 0},
      {"--lds", OPTION_INTEGER, &lds, "BYTES", "LDS that the launch adds to the kernel's own (0)", 0, 65536},
      {"--check", OPTION_FLAG, &check, NULL, "look for wrong accesses, races, unwritten values, missing waits", 0, 0},
      {"--counters", OPTION_FLAG, &counters, NULL, "print what was executed: counts, not times", 0, 0},
      {"--break", OPTION_TEXTS, &breaks, "KERNEL[:LINE]", "stop there with a prompt, or in --gdb's", 0, 0},
      {"--gdb", OPTION_INTEGER, &gdb, "PORT", "the first kernel waits for a GDB on this machine (0: any port)", 0,
       65535},
      {"--trace", OPTION_TEXT, &trace, "FILE", "every instruction of a wave; FILE.json is for Perfetto", 0, 0},
      {"--trace-wave", OPTION_TEXT, &trace_wave, "X,Y,Z:W", "of which work-group, and which of its waves (0,0,0:0)", 0,
       0},
      {"--target", OPTION_TEXT, &target, "GPU", "of a COMMAND: gfx1100, or several with commas (RDNA_EMULATE)", 0, 0},
  };
  const command_line line = {"rdna emulate",
                             "Runs a program whose HIP is emulated, or one kernel on an emulated GPU; the target is "
                             "read from the file. Before\n"
                             "a COMMAND with options of its own stands --. Each ARG of a kernel in order is one of\n"
                             "  i32:N i64:N f32:X f64:X   a number\n"
                             "  in:FILE                   a buffer with the file's bytes\n"
                             "  out:BYTES:FILE            a buffer of unwritten bytes, written to FILE afterwards\n"
                             "  inout:FILE:OUTFILE        a buffer with FILE's bytes, written to OUTFILE afterwards\n"
                             "  bytes:HEX                 a struct passed by value",
                             "FILE.hsaco KERNEL [ARG ...] | COMMAND [ARG ...]",
                             1,
                             POSITIONAL_MAX,
                             options,
                             sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  unsigned grid[3], block[3];
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  if (!parse_sides("--grid", grid_text ? grid_text : "1", grid) ||
      !parse_sides("--block", block_text ? block_text : "1", block))
    return EXIT_FAILED;
  bool runs_program = is_program(positionals[0]);
  if (!runs_program && count < 2) {
    fprintf(stderr, "rdna emulate: %s is no program, and of which kernel in it is not said\n", positionals[0]);
    return EXIT_USAGE;
  }
  if (runs_program && (grid_text || block_text || lds >= 0)) {
    fprintf(stderr, "rdna emulate: --grid, --block and --lds are of a kernel in a file; %s is a program\n",
            positionals[0]);
    return EXIT_USAGE;
  }
  if (!runs_program && target[0]) {
    fprintf(stderr, "rdna emulate: --target is of a program; %s itself says for which GPU it is\n", positionals[0]);
    return EXIT_USAGE;
  }
  if (trace_wave[0] && !trace[0] && !getenv("RDNA_EMULATE_TRACE")) {
    fprintf(stderr, "rdna emulate: --trace-wave says which wave --trace FILE writes, and there is no --trace\n");
    return EXIT_USAGE;
  }
  rdna__library library = {0};
  if (rdna__hip_library_open_emulator(&library, "rdna emulate") != RDNA_OK) return fail_with_status();
  if (!set_environment(gdb, &breaks, trace, trace_wave)) return EXIT_USAGE;
  if (runs_program) {
    if (check) setenv("RDNA_EMULATE_CHECK", "1", 1);
    if (counters) setenv("RDNA_EMULATE_COUNTERS", "-", 1);
    return run_program(library.path, target, count, positionals);
  }
  run_file_function run_file;
  *(void **)&run_file = dlsym(library.handle, "emu_run_file");
  if (!run_file) {
    fprintf(stderr, "rdna: %s is not the emulator: it has no emu_run_file\n", library.path);
    return EXIT_FAILED;
  }
  char message[1200];
  unsigned flags = (check ? RUN_CHECK : 0) | (counters ? RUN_COUNTERS : 0);
  if (run_file(positionals[0], positionals[1], grid, block, lds < 0 ? 0 : (unsigned)lds, flags, count - 2,
               positionals + 2, message, sizeof message) == 0)
    return EXIT_OK;
  fprintf(stderr, "rdna: %s\n", message);
  return EXIT_FAILED;
}
