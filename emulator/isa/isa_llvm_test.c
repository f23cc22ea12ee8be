// Compares the decoder with LLVM's on random words: accepted or refused alike, and the same text.
//
//   isa_llvm_test gfx1100 [--wave 64] [--count N] [--seed S] [--show K] [--halves 1] [--program LLVM_MC]
//
// --halves: LLVM 19 decodes GFX11's half registers only on request and for some opcodes; compare those, and nothing
// else.
//
// llvm-mc --disassemble reads bytes as text. It takes its input as one stream, so after words that it refuses it may
// run into the next sample: every sample is followed by marks (s_nop with the sample's number), more of them than the
// longest instruction has words. Exit: 0 agreement, 1 differences, 77 llvm-mc-19 is not installed.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isa/isa.h"
#include "isa/isa_llvm_exceptions.h"
#include "isa/isa_samples.h"

enum { MARKS = 6, BATCH = 50000, LINE = 4096 };

struct sample {
  uint32_t words[SAMPLE_WORDS];
  enum emu_decode_status status;
  struct emu_inst inst;
  char ours[EMU_ISA_TEXT];
  bool refused;  // by LLVM
  char theirs[EMU_ISA_TEXT];
};

static struct options {
  const struct emu_isa *target;
  unsigned wave;
  unsigned long count;
  uint64_t seed;
  unsigned long show;
  bool halves;
  const char *program;
} options = {.wave = 32, .count = 100000, .seed = 1, .show = 20, .program = "llvm-mc-19"};

static unsigned long shown, accepted, differences, excused[ISA_EXCEPTION_COUNT];
static bool seen[EMU_OP_COUNT];  // decoded alike at least once

static void write_words(FILE *file, const uint32_t *words, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    for (unsigned b = 0; b < 32; b += 8) fprintf(file, "%s0x%02x", i || b ? "," : "", words[i] >> b & 255);
  }
  fputc('\n', file);
}

static int write_input(const char *path, const struct sample *samples, size_t count) {
  FILE *file = fopen(path, "w");
  if (!file) return -1;
  for (size_t i = 0; i < count; i++) {
    bool taken = samples[i].status == EMU_DECODE_OK;
    write_words(file, samples[i].words, taken ? samples[i].inst.size / 4u : SAMPLE_WORDS);
    uint32_t marks[MARKS];
    for (int m = 0; m < MARKS; m++) marks[m] = 0xbf800000u | (i & 0xffff);
    write_words(file, marks, MARKS);
  }
  return fclose(file);
}

static int run_llvm(const char *input, const char *output, const char *errors) {
  char command[512];
  snprintf(command, sizeof(command), "'%s' --disassemble -triple=amdgcn -mcpu=%s -mattr=%s%s '%s' > '%s' 2> '%s'",
           options.program, options.target->name,
           options.wave == 64 ? "-wavefrontsize32,+wavefrontsize64" : "+wavefrontsize32",
           options.halves ? ",+real-true16" : "", input, output, errors);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Lines that begin with a complaint: samples stand on the odd lines of the input, and only a complaint about their
// first byte is about the sample.
static int read_errors(const char *path, struct sample *samples, size_t count) {
  FILE *file = fopen(path, "r");
  if (!file) return -1;
  char line[LINE];
  while (fgets(line, sizeof(line), file)) {
    const char *at = strchr(line, ':');
    unsigned long row, column;
    if (!at || sscanf(at, ":%lu:%lu: warning", &row, &column) != 2 || column != 1) continue;
    if (row % 2 == 1 && row / 2 < count) samples[row / 2].refused = true;
  }
  return fclose(file);
}

static bool is_mark(const char *line, size_t i) {
  return strncmp(line, "s_nop ", 6) == 0 && strtoul(line + 6, NULL, 0) == (i & 0xffff);
}

static bool next_line(FILE *file, char line[LINE], const char **text) {
  if (!fgets(line, LINE, file)) return false;
  size_t end = strcspn(line, "\n");
  while (end && line[end - 1] == ' ') end--;  // "s_barrier_signal m0 "
  line[end] = 0;
  *text = line + strspn(line, "\t ");
  return true;
}

static int read_output(const char *path, struct sample *samples, size_t count) {
  FILE *file = fopen(path, "r");
  if (!file) return -1;
  char line[LINE];
  const char *text;
  bool more = next_line(file, line, &text) && next_line(file, line, &text);  // after the .text directive
  for (size_t i = 0; i < count; i++) {
    unsigned lines = 0;
    bool first = !samples[i].refused;
    while (more && (first || !is_mark(text, i))) {
      if (first) snprintf(samples[i].theirs, sizeof(samples[i].theirs), "%s", text);
      first = false;
      lines++;
      more = next_line(file, line, &text);
    }
    while (more && is_mark(text, i)) more = next_line(file, line, &text);
    bool whole = samples[i].status != EMU_DECODE_OK || lines == 1;
    if (!samples[i].refused && !whole) strcat(samples[i].theirs, " …");  // LLVM's instruction is shorter than ours
  }
  return fclose(file);
}

// Low halves are marked by LLVM only when asked for halves, and by us for v_mov_b16.
static void drop_low_marks(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++) {
    if (from[0] == '.' && from[1] == 'l') {
      from++;
    } else {
      *to++ = *from;
    }
  }
  *to = 0;
}

static void judge(struct sample *sample) {
  bool ours = sample->status == EMU_DECODE_OK;
  // LLVM decodes some operands and controls that cannot be and says so in a comment
  bool theirs = !sample->refused && !strstr(sample->theirs, "/*Invalid ") && !strstr(sample->theirs, "/* Invalid ") &&
                !strstr(sample->theirs, "is not supported starting from") &&
                !strstr(sample->theirs, "is not supported on ASICs earlier") &&
                !strstr(sample->theirs, "dpp only supports");
  if (options.halves) {
    if (!ours || !theirs || !isa_has_high_half(&sample->inst)) return;
    drop_low_marks(sample->ours);
    drop_low_marks(sample->theirs);
  }
  accepted += ours && theirs;
  if (ours == theirs && (!ours || strcmp(sample->ours, sample->theirs) == 0)) {
    seen[sample->inst.op] = true;
    return;
  }
  enum isa_exception exception = isa_find_exception(options.target, sample->words, sample->status, &sample->inst,
                                                    sample->ours, theirs, sample->theirs);
  excused[exception]++;
  if (exception != ISA_NO_EXCEPTION) return;
  differences++;
  if (shown++ >= options.show) return;
  printf("%08x %08x %08x\n  ours:   %s\n  theirs: %s\n", sample->words[0], sample->words[1], sample->words[2],
         ours ? sample->ours : emu_isa_reason(sample->status), sample->refused ? "(refused)" : sample->theirs);
}

static int run_batch(const char *folder, struct sample *samples, size_t count, uint64_t *state) {
  char input[128], output[128], errors[128];
  snprintf(input, sizeof(input), "%s/in", folder);
  snprintf(output, sizeof(output), "%s/out", folder);
  snprintf(errors, sizeof(errors), "%s/err", folder);
  for (size_t i = 0; i < count; i++) {
    struct sample *sample = &samples[i];
    memset(sample, 0, sizeof(*sample));
    isa_sample(options.target, state, sample->words);
    sample->status = emu_isa_decode(options.target, options.wave, sample->words, SAMPLE_WORDS, &sample->inst);
    if (sample->status == EMU_DECODE_OK)
      emu_isa_print(&sample->inst, options.target, sample->ours, sizeof(sample->ours));
  }
  int status = write_input(input, samples, count);
  if (!status) status = run_llvm(input, output, errors);
  if (status == 0 || status == 1) status = read_errors(errors, samples, count) || read_output(output, samples, count);
  for (size_t i = 0; i < count && !status; i++) judge(&samples[i]);
  unlink(input), unlink(output), unlink(errors);
  return status;
}

static bool read_options(int argc, char **argv) {
  if (argc < 2 || !(options.target = emu_isa_find(argv[1]))) return false;
  for (int i = 2; i + 1 < argc; i += 2) {
    unsigned long value = strtoul(argv[i + 1], NULL, 0);
    if (strcmp(argv[i], "--program") == 0) {
      options.program = argv[i + 1];
      continue;
    }
    if (strcmp(argv[i], "--wave") == 0) {
      options.wave = (unsigned)value;
    } else if (strcmp(argv[i], "--count") == 0) {
      options.count = value;
    } else if (strcmp(argv[i], "--seed") == 0) {
      options.seed = value;
    } else if (strcmp(argv[i], "--show") == 0) {
      options.show = value;
    } else if (strcmp(argv[i], "--halves") == 0) {
      options.halves = value != 0;
    } else {
      return false;
    }
  }
  return argc % 2 == 0 && (options.wave == 32 || options.wave == 64);
}

int main(int argc, char **argv) {
  if (!read_options(argc, argv)) {
    fprintf(stderr,
            "usage: isa_llvm_test "
            "gfx900|gfx906|gfx908|gfx90a|gfx942|gfx950|gfx1010|gfx1012|gfx1030|gfx1100|gfx1103|gfx1150|gfx1201 "
            "[--wave 32|64] "
            "[--count N] [--seed S] "
            "[--show K] [--halves 1] [--program LLVM_MC]\n");
    return 2;
  }
  char version[512];
  snprintf(version, sizeof(version), "'%s' --version > /dev/null 2>&1", options.program);
  if (system(version) != 0) {
    printf("skipped: %s (llvm-mc-19 is in Debian's package llvm-19) is not there\n", options.program);
    return 77;
  }
  char folder[] = "/tmp/isa_llvm_XXXXXX";
  struct sample *samples = calloc(BATCH, sizeof(*samples));
  if (!samples || !mkdtemp(folder)) {
    free(samples);
    return 2;
  }
  uint64_t state = options.seed;
  int status = 0;
  for (unsigned long done = 0; done < options.count && !status; done += BATCH) {
    unsigned long left = options.count - done;
    status = run_batch(folder, samples, left < BATCH ? left : BATCH, &state);
  }
  rmdir(folder);
  free(samples);
  if (status) {
    printf("%s failed: status %d\n", options.program, status);
    return 2;
  }
  unsigned opcodes = 0, all = 0;
  for (int op = 1; op < EMU_OP_COUNT; op++) {
    char name[64];
    opcodes += seen[op];
    all += emu_isa_mnemonic(options.target, (enum emu_op)op, name) != NULL;
  }
  printf("%s wave%u: %lu samples, %lu decoded alike with %u of %u opcodes, %lu differences\n", options.target->name,
         options.wave, options.count, accepted, opcodes, all, differences);
  for (int e = 1; e < ISA_EXCEPTION_COUNT; e++) {
    if (excused[e]) printf("  %8lu excepted: %s\n", excused[e], isa_exception_name((enum isa_exception)e));
  }
  bool thin = !options.halves && options.count >= 100000 && opcodes * 100 < all * 97;
  if (thin) printf("too few opcodes were met for the comparison to mean much\n");
  return differences || !accepted || thin ? 1 : 0;
}
