// Every instruction of one wave of each launch.
//
// Registers that are read are the instruction's operands; those that are written are found by comparing all of the
// wave's registers before and after, so that a destination which keeps its value is not among them.
#include "debug/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debug/text.h"

enum { MOST = 1000000, ROOM = 1 << 16, SCALARS = EMU_SCALAR_COUNT };

struct emu_trace {
  FILE *file;
  bool json, comma, met;  // met: the wave was there
  uint32_t group[3];
  unsigned index, launches;
  const struct emu_wave *wave;  // NULL: none is under way
  unsigned launch;
  uint64_t executed, written;  // by the wave; instructions in the file
  // of the instruction under way
  struct emu_inst inst;
  struct emu_wave_view before;
  uint32_t s[SCALARS];
  uint32_t *v;
  size_t v_room;
  char text[EMU_ISA_TEXT], line[600];
  char *reads, *writes;  // ROOM each
  // of the lines in JSON: the one that goes on, and since when
  char open_line[600];
  uint64_t open_since;
};

static bool parse_wave(struct emu_trace *t, const char *text) {
  int end = 0;
  if (!text || !text[0]) return true;
  return sscanf(text, "%" SCNu32 ",%" SCNu32 ",%" SCNu32 ":%u%n", &t->group[0], &t->group[1], &t->group[2], &t->index,
                &end) == 4 &&
         text[end] == '\0' && !strchr(text, '-');
}

static void destroy(struct emu_trace *t) {
  if (t->file) fclose(t->file);
  free(t->v);
  free(t->reads);
  free(t->writes);
  free(t);
}

static FILE *open_file(const char *path, void (*say)(const char *format, ...)) {
  char name[4096];
  const char *number = strstr(path, "%p");
  int length = number ? snprintf(name, sizeof name, "%.*s%d%s", (int)(number - path), path, (int)getpid(), number + 2)
                      : snprintf(name, sizeof name, "%s", path);
  if (length < 0 || (size_t)length >= sizeof name) {
    say("the trace %.40s... cannot be written: its name is too long", path);
    return NULL;
  }
  struct stat about;
  bool device = stat(name, &about) == 0 && !S_ISREG(about.st_mode);  // such as /dev/stderr
  FILE *file = fopen(name, device ? "w" : "wx");
  if (!file && errno == EEXIST)
    say("the trace %s is there already, maybe another process's: remove it, or write %%p, the process's number, into "
        "the name",
        name);
  else if (!file)
    say("the trace %s cannot be written", name);
  return file;
}

struct emu_trace *emu_trace_create(const char *path, const char *wave, void (*say)(const char *format, ...)) {
  struct emu_trace *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->reads = calloc(1, ROOM);
  t->writes = calloc(1, ROOM);
  size_t length = strlen(path);
  t->json = length > 5 && strcmp(path + length - 5, ".json") == 0;
  bool understood = parse_wave(t, wave);
  if (!understood) {
    say("'%s' is no wave to trace: X,Y,Z:W, a work-group's place in the grid and the number of its wave", wave);
  } else {
    t->file = open_file(path, say);
  }
  if (!t->file || !t->reads || !t->writes) {
    destroy(t);
    return NULL;
  }
  if (t->json)
    fprintf(t->file,
            "{\"otherData\": {\"note\": \"an emulated wave; a microsecond is an instruction, not a "
            "time\"},\n\"traceEvents\": [");
  return t;
}

// ---- JSON

enum { TRACK_LINES = 1, TRACK_CODE = 2 };

// Begins an event; the caller adds members and the brace.
static void event(struct emu_trace *t, const char *phase, unsigned track, const char *name) {
  fprintf(t->file, "%s\n{\"ph\": \"%s\", \"pid\": %u, \"tid\": %u, \"name\": \"", t->comma ? "," : "", phase, t->launch,
          track);
  emu_put_json(t->file, name);
  fprintf(t->file, "\"");
  t->comma = true;
}

static void name_track(struct emu_trace *t, const char *what, unsigned track, const char *name) {
  event(t, "M", track, what);
  fprintf(t->file, ", \"args\": {\"name\": \"");
  emu_put_json(t->file, name);
  fprintf(t->file, "\"}}");
}

static void close_line(struct emu_trace *t) {
  if (t->open_line[0] && t->executed > t->open_since) {
    event(t, "X", TRACK_LINES, t->open_line);
    fprintf(t->file, ", \"ts\": %" PRIu64 ", \"dur\": %" PRIu64 "}", t->open_since, t->executed - t->open_since);
  }
  t->open_line[0] = '\0';
}

static void write_json(struct emu_trace *t) {
  char mnemonic[64] = "";
  (void)sscanf(t->text, "%63s", mnemonic);
  if (strcmp(t->open_line, t->line) != 0) {
    close_line(t);
    snprintf(t->open_line, sizeof t->open_line, "%s", t->line);
    t->open_since = t->executed;
  }
  event(t, "X", TRACK_CODE, mnemonic);
  fprintf(t->file, ", \"ts\": %" PRIu64 ", \"dur\": 1, \"args\": {\"offset\": \"0x%" PRIx64 "\"", t->executed,
          t->before.pc - t->before.base);
  const struct {
    const char *name, *text;
  } members[] = {{"instruction", t->text}, {"line", t->line}, {"reads", t->reads}, {"writes", t->writes}};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
    if (!members[i].text[0]) continue;
    fprintf(t->file, ", \"%s\": \"", members[i].name);
    emu_put_json(t->file, members[i].text);
    fprintf(t->file, "\"");
  }
  fprintf(t->file, "}}");
}

// What happened at the place where the wave is.
static void instant_json(struct emu_trace *t, const char *sentence) {
  event(t, "i", TRACK_CODE, sentence);
  fprintf(t->file, ", \"ts\": %" PRIu64 ", \"s\": \"p\"}", t->executed);
}

// ---- text

static void put_sentence(struct emu_trace *t, const char *sentence) {
  if (t->json) {
    instant_json(t, sentence);
  } else {
    fprintf(t->file, "%s\n", sentence);
  }
}

static void write_text(struct emu_trace *t) {
  fprintf(t->file, "%8" PRIu64 "  +0x%04" PRIx64 "  %s%s%s%s\n", t->executed, t->before.pc - t->before.base, t->text,
          t->line[0] ? "  (" : "", t->line, t->line[0] ? ")" : "");
  if (t->reads[0]) fprintf(t->file, "                    <%s\n", t->reads);
  if (t->writes[0]) fprintf(t->file, "                    >%s\n", t->writes);
}

// ---- registers

static uint64_t exec_in(const struct emu_trace *t) {
  return t->s[EMU_EXEC_LO] | (t->before.lanes == 64 ? (uint64_t)t->s[EMU_EXEC_HI] << 32 : 0);
}

static void add_scalar(struct emu_text *out, unsigned reg, uint32_t value) {
  static const struct {
    unsigned reg;
    const char *name;
  } named[] = {{EMU_VCC_LO, "vcc_lo"},   {EMU_VCC_HI, "vcc_hi"},   {EMU_M0, "m0"},
               {EMU_EXEC_LO, "exec_lo"}, {EMU_EXEC_HI, "exec_hi"}, {EMU_NULL, "null"}};
  for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
    if (named[i].reg != reg) continue;
    emu_text_add(out, " %s=0x%" PRIx32, named[i].name, value);
    return;
  }
  bool trap = reg >= EMU_TTMP0;
  emu_text_add(out, " %s%u=0x%" PRIx32, trap ? "ttmp" : "s", trap ? reg - EMU_TTMP0 : reg, value);
}

// A row of lanes, those in `mask`: one value, one that grows evenly, or each.
static void add_vector(const struct emu_trace *t, struct emu_text *out, unsigned row, const uint32_t *lanes,
                       uint64_t mask) {
  unsigned accumulators = t->before.accumulators, count = (unsigned)__builtin_popcountll(mask);
  bool accumulator = accumulators && row >= accumulators;
  emu_text_add(out, " %c%u=", accumulator ? 'a' : 'v', accumulator ? row - accumulators : row);
  if (!mask) {
    emu_text_add(out, "no lane");
    return;
  }
  unsigned first = (unsigned)__builtin_ctzll(mask);
  uint64_t rest = mask & (mask - 1);
  unsigned second = rest ? (unsigned)__builtin_ctzll(rest) : first + 1;
  uint32_t growth = rest && second == first + 1 ? lanes[second] - lanes[first] : 0;
  bool even = true;
  for (unsigned l = first; l < t->before.lanes; l++)
    if (mask >> l & 1) even = even && lanes[l] == lanes[first] + growth * (l - first);
  if (even) {
    emu_text_add(out, "0x%" PRIx32, lanes[first]);
    if (growth) emu_text_add(out, "%+" PRId32 "*(lane-%u)", (int32_t)growth, first);
    if (count < t->before.lanes) emu_text_add(out, " in %u lanes", count);
    return;
  }
  emu_text_add(out, "[");
  for (unsigned l = 0; l < t->before.lanes; l++) {
    if (mask >> l & 1) {
      emu_text_add(out, "%s%" PRIx32, l ? " " : "", lanes[l]);
    } else {
      emu_text_add(out, "%s_", l ? " " : "");
    }
  }
  emu_text_add(out, "]");
}

static void add_operand(struct emu_trace *t, struct emu_text *out, const struct emu_operand *operand) {
  const struct emu_wave_view *view = &t->before;
  for (unsigned i = 0; i < operand->dwords; i++) {
    unsigned reg = operand->reg + i;
    if (operand->kind == EMU_OPERAND_SCALAR && reg < SCALARS && reg != EMU_NULL) add_scalar(out, reg, t->s[reg]);
    if (operand->kind != EMU_OPERAND_VECTOR) continue;
    unsigned row = reg >= EMU_ACCUMULATOR ? reg - EMU_ACCUMULATOR + view->accumulators : reg;
    if (row < view->vgprs) add_vector(t, out, row, t->v + (size_t)row * view->lanes, exec_in(t));
  }
}

static void find_reads(struct emu_trace *t) {
  struct emu_text out = {t->reads, 0, ROOM};
  t->reads[0] = '\0';
  for (int i = 0; i < 4; i++) add_operand(t, &out, &t->inst.src[i]);
  for (int i = 0; i < 3 && t->inst.format == EMU_VOPD; i++) add_operand(t, &out, &t->inst.y.src[i]);
}

static void find_writes(struct emu_trace *t, const struct emu_wave_view *after) {
  struct emu_text out = {t->writes, 0, ROOM};
  t->writes[0] = '\0';
  for (unsigned i = 0; i < SCALARS; i++)
    if (after->s[i] != t->s[i]) add_scalar(&out, i, after->s[i]);
  if (after->scc != t->before.scc) emu_text_add(&out, " scc=%d", after->scc);
  if (after->mode != t->before.mode) emu_text_add(&out, " mode=0x%" PRIx32, after->mode);
  for (unsigned row = 0; row < after->vgprs; row++) {
    const uint32_t *was = t->v + (size_t)row * after->lanes, *is = after->v + (size_t)row * after->lanes;
    if (memcmp(was, is, 4 * (size_t)after->lanes) == 0) continue;
    uint64_t mask = 0;
    for (unsigned l = 0; l < after->lanes; l++) mask |= (uint64_t)(was[l] != is[l] || exec_in(t) >> l & 1) << l;
    add_vector(t, &out, row, is, mask);
  }
}

// ---- the wave

void emu_trace_launched(struct emu_trace *t) { t->launches++; }

bool emu_trace_begun(struct emu_trace *t, struct emu_wave *wave) {
  struct emu_wave_view view;
  char title[400];
  emu_wave_look(wave, &view);
  if (memcmp(view.group, t->group, sizeof view.group) != 0 || view.index != t->index) return false;
  const char *name = view.dispatch->name ? view.dispatch->name : "?";
  t->met = true;
  if (t->wave || t->written >= MOST) {
    snprintf(title, sizeof title, "%slaunch %u: kernel %.200s is not traced: %s", t->json ? "" : "\n", t->launches,
             name, t->wave ? "another is, at the same time" : "the file is full");
    put_sentence(t, title);
    return false;
  }
  size_t bytes = (size_t)view.vgprs * view.lanes * 4;
  if (t->v_room < bytes) {
    free(t->v);
    t->v = malloc(bytes);
    t->v_room = t->v ? bytes : 0;
    if (!t->v) return false;
  }
  t->wave = wave;
  t->launch = t->launches;
  t->executed = 0;
  snprintf(title, sizeof title, "launch %u: kernel %.200s on %s, work-group (%u, %u, %u), wave %u of %u lanes",
           t->launch, name, view.target->name, view.group[0], view.group[1], view.group[2], view.index, view.lanes);
  if (t->json) {
    name_track(t, "process_name", TRACK_CODE, title);
    name_track(t, "thread_name", TRACK_LINES, "source lines");
    name_track(t, "thread_name", TRACK_CODE, "instructions");
  } else {
    fprintf(t->file, "%s%s\n", t->launch > 1 ? "\n" : "", title);
  }
  return true;
}

void emu_trace_ended(struct emu_trace *t, const struct emu_wave *wave) {
  if (t->wave != wave) return;
  if (t->json) close_line(t);
  t->wave = NULL;
}

void emu_trace_before(struct emu_trace *t, struct emu_wave *wave) {
  if (t->wave != wave || t->written >= MOST) return;
  emu_wave_look(wave, &t->before);
  memcpy(t->s, t->before.s, sizeof t->s);
  memcpy(t->v, t->before.v, (size_t)t->before.vgprs * t->before.lanes * 4);
  if (!emu_wave_instruction(wave, t->before.pc, &t->inst, t->text)) t->text[0] = '\0';
  const struct emu_dispatch *d = t->before.dispatch;
  bool known =
      d->source_line && d->source_line(d->source_context, t->before.pc - t->before.base, t->line, sizeof t->line);
  if (!known) t->line[0] = '\0';
  find_reads(t);
}

void emu_trace_after(struct emu_trace *t, struct emu_wave *wave) {
  if (t->wave != wave || t->written >= MOST) return;
  struct emu_wave_view after;
  emu_wave_look(wave, &after);
  find_writes(t, &after);
  if (t->json) {
    write_json(t);
  } else {
    write_text(t);
  }
  t->executed++;
  t->written++;
  const struct emu_report *failure = emu_wave_failure(wave);
  if (failure) put_sentence(t, failure->text);
  if (t->written == MOST) {
    char end[80];
    snprintf(end, sizeof end, "The file ends here, after %d instructions.", MOST);
    put_sentence(t, end);
  }
}

void emu_trace_leave(struct emu_trace *t) {
  int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC), file = fileno(t->file);
  // the buffer is flushed at exit, wherever its descriptor leads by then
  if (nothing < 0 || dup3(nothing, file, O_CLOEXEC) < 0) close(file);
  if (nothing >= 0) close(nothing);
}

void emu_trace_finish(struct emu_trace *t, void (*say)(const char *format, ...)) {
  if (t->launches && !t->met)
    say("nothing is traced: no launch had wave %u of work-group (%u, %u, %u)", t->index, t->group[0], t->group[1],
        t->group[2]);
  if (t->json) fprintf(t->file, "\n]}\n");
  destroy(t);
}
