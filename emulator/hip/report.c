// What launches tell people: the checker's findings and failures on stderr, counters at exit, and the exit status.
#include <fnmatch.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hip/hip.h"

enum { PRINTED_MAX = 200 };

static atomic_uint failures, findings;  // lints are no findings here
static atomic_int untold;
unsigned emu_report_failures(void) { return failures; }
unsigned emu_report_count_findings(void) { return findings; }

// ---- findings

static void print_finding(const struct emu_report *report) {
  static atomic_int printed;
  int number = ++printed;
  if (number <= PRINTED_MAX) fprintf(stderr, "rdna emulator: %s%s\n", report->lint ? "lint: " : "", report->text);
  if (number == PRINTED_MAX) fprintf(stderr, "rdna emulator: further findings are not printed\n");
}

void emu_report_findings(const struct emu_dispatch *dispatch, const struct emu_report *failure,
                         enum emu_status status) {
  uint32_t kept = dispatch->report_count < dispatch->report_room ? dispatch->report_count : dispatch->report_room;
  for (uint32_t i = 0; i < kept; i++) print_finding(&dispatch->reports[i]);
  if (dispatch->report_count > kept && kept > 0)
    fprintf(stderr, "rdna emulator: %u more findings in this launch of %s\n", dispatch->report_count - kept,
            dispatch->name);
  findings += dispatch->report_count - dispatch->lint_count;
  emu_report_keep(dispatch, status == EMU_OK || status == EMU_CHECK ? NULL : failure);
  if (status == EMU_OK || status == EMU_CHECK) return;
  failures++;
  emu_say("%s", failure->text);
}

// ---- findings that are known and not wanted

// Lines of "KERNEL KIND", both with * and ?; without a kind all are meant.
struct suppression {
  struct suppression *next;
  char *kernel, *kind;
};
static struct suppression *suppressions;

static void read_suppressions(void) {
  const char *path = getenv("RDNA_EMULATE_SUPPRESS");
  if (!path || !path[0]) return;
  FILE *file = fopen(path, "r");
  if (!file) {
    emu_say("RDNA_EMULATE_SUPPRESS: %s cannot be read, so nothing is suppressed", path);
    return;
  }
  char line[4096];
  while (fgets(line, sizeof line, file)) {
    static const char blanks[] = " \t\r\n";
    char *kernel = line + strspn(line, blanks);
    size_t length = strcspn(kernel, blanks);
    if (length == 0 || kernel[0] == '#') continue;
    char *kind = kernel + length + strspn(kernel + length, blanks);
    kernel[length] = '\0';
    for (size_t end = strlen(kind); end && strchr(blanks, kind[end - 1]); end--) kind[end - 1] = '\0';
    struct suppression *s = malloc(sizeof *s);
    if (!s) break;
    *s = (struct suppression){suppressions, strdup(kernel), strdup(kind[0] ? kind : "*")};
    suppressions = s;
  }
  fclose(file);
}

bool emu_report_is_suppressed(const char *kernel, const char *kind) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_suppressions);
  for (const struct suppression *s = suppressions; s; s = s->next)
    if (s->kernel && s->kind && fnmatch(s->kernel, kernel, 0) == 0 && fnmatch(s->kind, kind, 0) == 0) return true;
  return false;
}

// ---- the exit status
//
// A program that looks at no result of HIP ends with 0 whatever its kernels did, where a card's runtime would have
// ended it. Only a handler that runs early at exit learns the program's status, and only the library's destructor,
// which runs after those of all that use the library, knows the last findings. So the handler notes the status, and the
// destructor may replace it.

enum { STATUS_DEFAULT = 66, NO_STATUS = -1 };

static struct {
  int program;  // what the program ends with
  int wanted;   // RDNA_EMULATE_EXITCODE; NO_STATUS: not set
  bool check, told;
} ending = {.program = NO_STATUS, .wanted = NO_STATUS};

void emu_report_untold(int count) { atomic_fetch_add(&untold, count); }
void emu_report_is_told(void) { ending.told = true; }

static void note_status(int status, void *unused) { ending.program = status & 0xff; }

static void leave_to_parent(void);

void emu_report_watch_exit(bool check) {
  const char *text = getenv("RDNA_EMULATE_EXITCODE");
  ending.check = check;
  if (text && text[0]) {
    char *end;
    long status = strtol(text, &end, 10);
    if (*end == '\0' && status >= 0 && status <= 255) {
      ending.wanted = (int)status;
    } else {
      emu_say("RDNA_EMULATE_EXITCODE='%s' is not a number from 0 to 255; it is ignored", text);
    }
  }
  (void)on_exit(note_status, NULL);
  (void)pthread_atfork(NULL, NULL, leave_to_parent);
}

// Sums up, and returns the status in place of the program's; NO_STATUS: that stays.
static int conclude(void) {
  unsigned found = atomic_load(&findings), failed = atomic_load(&failures);
  if (ending.told || (found == 0 && failed == 0)) return NO_STATUS;
  // without the checker, and unasked, only what no call has returned
  bool grave = ending.check || ending.wanted != NO_STATUS || atomic_load(&untold) > 0;
  int status = ending.wanted == NO_STATUS ? STATUS_DEFAULT : ending.wanted;
  bool change = grave && ending.program == 0 && status != 0;
  if (!change && !ending.check) return NO_STATUS;
  char text[200];
  int at = 0;
  if (ending.check && found)
    at = snprintf(text, sizeof text, "the checker has %u finding%s", found, found == 1 ? "" : "s");
  if (failed)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%u launch%s failed", at ? ", " : "", failed,
                   failed == 1 ? "" : "es");
  if (change) snprintf(text + at, sizeof text - (size_t)at, "; the program ends with status %d in place of 0", status);
  emu_say("%s", text);
  return change ? status : NO_STATUS;
}

__attribute__((destructor)) static void end_process(void) {
  emu_report_write();
  int status = conclude();
  emu_debug_end(status != NO_STATUS ? status : ending.program != NO_STATUS ? ending.program : 0);
  if (status == NO_STATUS) return;
  fflush(NULL);
  _exit(status);
}

// ---- counters

struct row {
  char *name;
  const struct emu_isa *target;
  uint64_t launches;
  uint32_t vgprs, lds_bytes, scratch_bytes, wave, occupancy;
  struct emu_counters counters;
};

static struct {
  pthread_mutex_t lock;
  pthread_once_t once;
  const char *path;
  struct row *rows;
  size_t count;
  bool is_child;  // of a fork: nothing of what the parent launched is here
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void write_json(FILE *out) {
  fprintf(out, "{\n  \"note\": \"counts of an emulated device, never times\",\n  \"kernels\": [");
  for (size_t i = 0; i < table.count; i++) {
    const struct row *r = &table.rows[i];
    const struct emu_counters *c = &r->counters;
    fprintf(out,
            "%s\n    {\"name\": \"%s\", \"target\": \"%s\", \"launches\": %" PRIu64 ", \"groups\": %" PRIu64
            ", \"waves\": %" PRIu64
            ",\n     \"wave_size\": %u, \"vgprs\": %u, \"lds_bytes\": %u, "
            "\"scratch_bytes\": %u, \"waves_per_simd\": %u,\n     \"instructions\": {",
            i ? "," : "", r->name, r->target->name, r->launches, c->groups, c->waves, r->wave, r->vgprs, r->lds_bytes,
            r->scratch_bytes, r->occupancy);
    for (int k = 0; k < EMU_CLASS_COUNT; k++)
      fprintf(out, "%s\"%s\": %" PRIu64, k ? ", " : "", emu_class_name((enum emu_class)k), c->instructions[k]);
    fprintf(out, "},\n     \"issue_cycles\": {");
    for (int k = 0; k < EMU_CLASS_COUNT; k++)
      fprintf(out, "%s\"%s\": %" PRIu64, k ? ", " : "", emu_class_name((enum emu_class)k), c->issue_cycles[k]);
    fprintf(out,
            "},\n     \"lanes_active\": %" PRIu64 ", \"lanes_possible\": %" PRIu64 ",\n     \"load_bytes\": %" PRIu64
            ", \"load_lines_64\": %" PRIu64 ", \"load_lines_128\": %" PRIu64 ", \"store_bytes\": %" PRIu64
            ", \"store_lines_64\": %" PRIu64 ", \"store_lines_128\": %" PRIu64 ",\n     \"lds_bytes_moved\": %" PRIu64
            ", \"lds_conflict_cycles\": %" PRIu64 "}",
            c->lanes_active, c->lanes_possible, c->load_bytes, c->load_lines_64, c->load_lines_128, c->store_bytes,
            c->store_lines_64, c->store_lines_128, c->lds_bytes, c->lds_conflict_cycles);
  }
  fprintf(out, "\n  ]\n}\n");
}

static void write_text(FILE *out) {
  fprintf(out, "Counters of the emulated device. They are counts, not times.\n");
  for (size_t i = 0; i < table.count; i++) {
    const struct row *r = &table.rows[i];
    const struct emu_counters *c = &r->counters;
    uint64_t instructions = 0, cycles = 0;
    for (int k = 0; k < EMU_CLASS_COUNT; k++) {
      instructions += c->instructions[k];
      cycles += c->issue_cycles[k];
    }
    fprintf(out, "\n%s on %s: %" PRIu64 " launches, %" PRIu64 " groups, %" PRIu64 " waves of %u\n", r->name,
            r->target->name, r->launches, c->groups, c->waves, r->wave);
    fprintf(out, "  %u VGPRs, %u bytes of LDS, %u of scratch a lane: %u waves a SIMD\n", r->vgprs, r->lds_bytes,
            r->scratch_bytes, r->occupancy);
    fprintf(out, "  %-16s %14s %14s\n", "", "instructions", "issue cycles");
    for (int k = 0; k < EMU_CLASS_COUNT; k++)
      if (c->instructions[k])
        fprintf(out, "  %-16s %14" PRIu64 " %14" PRIu64 "\n", emu_class_name((enum emu_class)k), c->instructions[k],
                c->issue_cycles[k]);
    fprintf(out, "  %-16s %14" PRIu64 " %14" PRIu64 "\n", "all", instructions, cycles);
    if (c->lanes_possible)
      fprintf(out, "  active lanes %.1f %%\n", 100.0 * (double)c->lanes_active / (double)c->lanes_possible);
    uint64_t vector = c->instructions[EMU_CLASS_VALU] + c->instructions[EMU_CLASS_VOPD];
    if (vector)
      fprintf(out, "  VOPD share of simple vector instructions %.1f %%\n",
              100.0 * (double)c->instructions[EMU_CLASS_VOPD] / (double)vector);
    fprintf(out,
            "  loads %" PRIu64 " bytes in %" PRIu64 " lines of 64 (%" PRIu64 " of 128), stores %" PRIu64
            " bytes in %" PRIu64 " (%" PRIu64 ")\n",
            c->load_bytes, c->load_lines_64, c->load_lines_128, c->store_bytes, c->store_lines_64, c->store_lines_128);
    fprintf(out, "  LDS %" PRIu64 " bytes, %" PRIu64 " cycles lost to bank conflicts\n", c->lds_bytes,
            c->lds_conflict_cycles);
  }
}

static void write_table(void) {
  pthread_mutex_lock(&table.lock);
  if (table.is_child && table.count == 0) {
    pthread_mutex_unlock(&table.lock);
    return;
  }
  bool standard = strcmp(table.path, "-") == 0;
  FILE *out = standard ? stdout : fopen(table.path, "w");
  if (!out) {
    emu_say("RDNA_EMULATE_COUNTERS: %s cannot be written", table.path);
  } else {
    size_t length = strlen(table.path);
    if (length > 5 && strcmp(table.path + length - 5, ".json") == 0) {
      write_json(out);
    } else {
      write_text(out);
    }
    if (standard) {
      fflush(out);
    } else {
      fclose(out);
    }
  }
  pthread_mutex_unlock(&table.lock);
}

static void start(void) {
  const char *path = getenv("RDNA_EMULATE_COUNTERS");
  if (!path || !path[0]) return;
  table.path = strdup(path);
  if (table.path) atexit(write_table);
}

bool emu_report_counting(void) {
  pthread_once(&table.once, start);
  return table.path != NULL;
}

void emu_report_count(const struct emu_dispatch *dispatch, const struct emu_isa *target) {
  pthread_mutex_lock(&table.lock);
  struct row *row = NULL;
  for (size_t i = 0; i < table.count && !row; i++)
    if (table.rows[i].target == target && strcmp(table.rows[i].name, dispatch->name) == 0) row = &table.rows[i];
  if (!row) {
    struct row *grown = realloc(table.rows, (table.count + 1) * sizeof *grown);
    char *name = grown ? strdup(dispatch->name) : NULL;
    if (grown) table.rows = grown;
    if (name) {
      row = &grown[table.count++];
      unsigned threads = dispatch->threads[0] * dispatch->threads[1] * dispatch->threads[2];
      uint32_t lds = dispatch->kernel.lds_bytes + dispatch->dynamic_lds_bytes;
      *row = (struct row){.name = name,
                          .target = target,
                          .vgprs = emu_kernel_counted_vgprs(target, &dispatch->kernel),
                          .lds_bytes = lds,
                          .scratch_bytes = dispatch->kernel.scratch_bytes,
                          .wave = emu_kernel_wave(&dispatch->kernel),
                          .occupancy = emu_kernel_occupancy(target, &dispatch->kernel, threads, lds)};
    }
  }
  if (row) {
    row->launches++;
    uint64_t *to = (uint64_t *)&row->counters;
    const uint64_t *from = (const uint64_t *)dispatch->counters;
    for (size_t i = 0; i < sizeof row->counters / sizeof *to; i++) to[i] += from[i];
  }
  pthread_mutex_unlock(&table.lock);
}

// ---- forks

// What its parent's kernels did is not the child's to tell of: it has no findings, counters or launches, and its locks
// are free, whatever the parent's other threads were doing.
static void leave_to_parent(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  atomic_store(&findings, 0);
  atomic_store(&failures, 0);
  atomic_store(&untold, 0);
  table.lock = fresh;
  table.rows = NULL;
  table.count = 0;
  table.is_child = true;
  emu_report_leave_to_parent();
}
