// Findings and failures of launches as a file for other programs, written when the process ends. RDNA_EMULATE_REPORT
// names it; the end of its name says in which form:
//
//     .json    {"launches": N, "reports": [{"kernel", "kind", "level", "message", "file", "line", …}]}
//     .sarif   SARIF 2.1.0, the form of OASIS that code hosts show beside the lines
//     .xml     JUnit's: a test case for each kernel that was launched, which fails where it had findings
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug/text.h"
#include "hip/hip.h"

enum { KEPT_MAX = 10000 };

struct kept {
  char *kernel, *text, *file;  // file: NULL where no line is known
  unsigned line;
  const char *level;  // "error", "warning" of lints
  char kind[24];
  uint32_t group[3], wave;
  int32_t lane;
  uint64_t pc, address;
};

static struct {
  pthread_mutex_t lock;
  pthread_once_t once;
  const char *path;
  struct kept *reports;
  size_t count;
  uint64_t launches, left_out;
  char **kernels;  // each that was launched, once
  size_t kernel_count;
  bool taken;        // emu_report_take was called
  size_t to_take;    // the first that it has not given
  uint64_t missing;  // errors that were not kept since it was called
  bool is_child;     // of a fork: nothing of what the parent launched is here
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

// ---- text of others

// In JSON's quotes; in XML's, where `xml`, with the same alphabet.
static void put_text(FILE *out, const char *text, bool xml) {
  if (!xml) {
    emu_put_json(out, text);
    return;
  }
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c >= 0x20 && *c < 0x7f && !strchr("&<>\"'", *c)) {
      fputc(*c, out);
    } else if (*c >= 0x20 || *c == '\n' || *c == '\t') {
      fprintf(out, "&#%u;", *c);
    } else {
      fputc('?', out);  // XML has no such character
    }
  }
}

static void put_member(FILE *out, const char *name, const char *text) {
  fprintf(out, "\"%s\": \"", name);
  put_text(out, text, false);
  fputc('"', out);
}

// A path as a URI: what may not stand in one is escaped.
static void put_uri(FILE *out, const char *path) {
  for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
    bool plain =
        (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') || strchr("-._~/+@", *c);
    if (plain) {
      fputc(*c, out);
    } else {
      fprintf(out, "%%%02X", *c);
    }
  }
}

// ---- the three forms

static void write_json(FILE *out) {
  fprintf(out,
          "{\n  \"tool\": \"rdna emulator\",\n  \"launches\": %" PRIu64 ",\n  \"left_out\": %" PRIu64
          ",\n  \"reports\": [",
          all.launches, all.left_out);
  for (size_t i = 0; i < all.count; i++) {
    const struct kept *k = &all.reports[i];
    fprintf(out, "%s\n    {", i ? "," : "");
    put_member(out, "kernel", k->kernel);
    fputs(", ", out);
    put_member(out, "kind", k->kind);
    fprintf(out, ", \"level\": \"%s\", ", k->level);
    put_member(out, "message", k->text);
    if (k->file) {
      fputs(",\n     ", out);
      put_member(out, "file", k->file);
      fprintf(out, ", \"line\": %u", k->line);
    }
    fprintf(out,
            ",\n     \"group\": [%u, %u, %u], \"wave\": %u, \"lane\": %d, \"offset\": %" PRIu64
            ", \"address\": %" PRIu64 "}",
            k->group[0], k->group[1], k->group[2], k->wave, k->lane, k->pc, k->address);
  }
  fputs("\n  ]\n}\n", out);
}

static void write_sarif(FILE *out) {
  fputs(
      "{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n  \"version\": \"2.1.0\",\n  \"runs\": "
      "[{\n"
      "    \"tool\": {\"driver\": {\"name\": \"rdna emulator\", \"rules\": [",
      out);
  for (size_t i = 0, rules = 0; i < all.count; i++) {
    size_t first = 0;
    while (strcmp(all.reports[first].kind, all.reports[i].kind) != 0) first++;
    if (first < i) continue;
    fputs(rules++ ? ", {" : "{", out);
    put_member(out, "id", all.reports[i].kind);
    fputc('}', out);
  }
  fputs("]}},\n    \"results\": [", out);
  for (size_t i = 0; i < all.count; i++) {
    const struct kept *k = &all.reports[i];
    fprintf(out, "%s\n      {", i ? "," : "");
    put_member(out, "ruleId", k->kind);
    fprintf(out, ", \"level\": \"%s\", \"message\": {", k->level);
    put_member(out, "text", k->text);
    fputs("},\n       \"locations\": [{", out);
    if (k->file) {
      fputs("\"physicalLocation\": {\"artifactLocation\": {\"uri\": \"", out);
      put_uri(out, k->file);
      fprintf(out, "\"}, \"region\": {\"startLine\": %u}}, ", k->line);
    }
    fputs("\"logicalLocations\": [{", out);
    put_member(out, "name", k->kernel);
    fputs(", \"kind\": \"function\"}]}]}", out);
  }
  fputs("\n    ]\n  }]\n}\n", out);
}

static bool fails(const struct kept *k, const char *kernel) {
  return !strcmp(k->kernel, kernel) && !strcmp(k->level, "error");
}

static void write_junit(FILE *out) {
  size_t failed = 0;
  for (size_t i = 0; i < all.kernel_count; i++) {
    size_t k = 0;
    while (k < all.count && !fails(&all.reports[k], all.kernels[i])) k++;
    failed += k < all.count;
  }
  fprintf(out,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"rdna emulator\" tests=\"%zu\" "
          "failures=\"%zu\" errors=\"0\" skipped=\"0\">\n",
          all.kernel_count, failed);
  for (size_t i = 0; i < all.kernel_count; i++) {
    fputs("    <testcase classname=\"kernel\" name=\"", out);
    put_text(out, all.kernels[i], true);
    fputs("\">\n", out);
    for (size_t k = 0; k < all.count; k++) {
      if (!fails(&all.reports[k], all.kernels[i])) continue;
      fputs("      <failure type=\"", out);
      put_text(out, all.reports[k].kind, true);
      fputs("\" message=\"", out);
      put_text(out, all.reports[k].text, true);
      fputs("\"/>\n", out);
    }
    fputs("    </testcase>\n", out);
  }
  fputs("  </testsuite>\n</testsuites>\n", out);
}

static const struct {
  const char *ending;
  void (*write)(FILE *out);
} forms[] = {{".json", write_json}, {".sarif", write_sarif}, {".xml", write_junit}};

static void (*form_of(const char *path))(FILE *out) {
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    size_t ending = strlen(forms[i].ending);
    if (length > ending && strcmp(path + length - ending, forms[i].ending) == 0) return forms[i].write;
  }
  return NULL;
}

static void start(void) {
  const char *path = getenv("RDNA_EMULATE_REPORT");
  if (!path || !path[0]) return;
  if (form_of(path)) {
    all.path = strdup(path);
  } else {
    emu_say("RDNA_EMULATE_REPORT: '%s' ends with none of .json, .sarif and .xml, so no report is written", path);
  }
}

void emu_report_leave_to_parent(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  all.lock = fresh;
  all.reports = NULL;
  all.kernels = NULL;
  all.count = all.kernel_count = all.to_take = 0;
  all.launches = all.left_out = all.missing = 0;
  all.is_child = true;
}

void emu_report_write(void) {
  pthread_once(&all.once, start);
  if (!all.path || (all.is_child && all.launches == 0)) return;
  pthread_mutex_lock(&all.lock);
  FILE *out = fopen(all.path, "w");
  if (out) form_of(all.path)(out);
  if (!out || fclose(out) != 0) emu_say("RDNA_EMULATE_REPORT: %s cannot be written", all.path);
  pthread_mutex_unlock(&all.lock);
}

// ---- what is kept

static void note_kernel(const char *name) {
  for (size_t i = 0; i < all.kernel_count; i++)
    if (strcmp(all.kernels[i], name) == 0) return;
  char **grown = realloc(all.kernels, (all.kernel_count + 1) * sizeof *grown), *copy = grown ? strdup(name) : NULL;
  if (grown) all.kernels = grown;
  if (copy) all.kernels[all.kernel_count++] = copy;
}

static void keep(const struct emu_dispatch *dispatch, const struct emu_report *report) {
  struct kept *grown = all.count < KEPT_MAX ? realloc(all.reports, (all.count + 1) * sizeof *grown) : NULL;
  if (grown) all.reports = grown;
  struct kept k = {.kernel = grown ? strdup(dispatch->name) : NULL, .text = grown ? strdup(report->text) : NULL};
  if (!k.kernel || !k.text) {
    free(k.kernel);
    free(k.text);
    all.left_out++;
    all.missing += !report->lint;
    return;
  }
  char place[1024];
  if (dispatch->source_line && dispatch->source_line(dispatch->source_context, report->pc, place, sizeof place)) {
    char *colon = strrchr(place, ':');
    if (colon) {
      *colon = '\0';
      k.line = (unsigned)strtoul(colon + 1, NULL, 10);
      k.file = strdup(place);
    }
  }
  k.level = report->lint ? "warning" : "error";
  k.lane = report->lane;
  k.wave = report->wave;
  k.pc = report->pc;
  k.address = report->address;
  memcpy(k.kind, report->kind, sizeof k.kind);
  memcpy(k.group, report->group, sizeof k.group);
  all.reports[all.count++] = k;
}

void emu_report_keep(const struct emu_dispatch *dispatch, const struct emu_report *failure) {
  pthread_once(&all.once, start);
  pthread_mutex_lock(&all.lock);
  if (!all.path && !all.taken) {
    pthread_mutex_unlock(&all.lock);
    return;
  }
  all.launches++;
  note_kernel(dispatch->name);
  uint32_t kept = dispatch->report_count < dispatch->report_room ? dispatch->report_count : dispatch->report_room;
  uint32_t errors = dispatch->report_count - dispatch->lint_count;
  for (uint32_t i = 0; i < kept; i++) {
    errors -= !dispatch->reports[i].lint;
    keep(dispatch, &dispatch->reports[i]);
  }
  all.left_out += dispatch->report_count - kept;
  all.missing += errors;
  if (failure) keep(dispatch, failure);
  pthread_mutex_unlock(&all.lock);
}

// ---- what is asked for while the process runs

// Those that were taken are wanted once more only by the file.
static void forget_taken(void) {
  if (all.path) return;
  for (size_t i = 0; i < all.to_take; i++) {
    free(all.reports[i].kernel);
    free(all.reports[i].text);
    free(all.reports[i].file);
  }
  all.count -= all.to_take;
  if (all.count) memmove(all.reports, all.reports + all.to_take, all.count * sizeof *all.reports);
  all.to_take = 0;
}

// A line and its end, the line cut where it alone does not fit. false: there is no more room.
static bool add_line(char *text, size_t room, size_t *used, const char *line) {
  size_t length = strlen(line);
  if (length + 2 > room && room >= 2) length = room - 2;
  if (*used + length + 2 > room) return false;
  memcpy(text + *used, line, length);
  *used += length;
  text[(*used)++] = '\n';
  return true;
}

API size_t emu_report_take(char *text, size_t room) {
  size_t used = 0;
  struct emu_state *s = emu_state();
  for (int i = 0; s && i < s->device_count; i++) (void)emu_device_finish(&s->devices[i]);
  emu_report_is_told();
  pthread_mutex_lock(&all.lock);
  if (!all.taken) {
    all.to_take = all.count;
    all.missing = 0;
  }
  all.taken = true;
  for (; all.to_take < all.count; all.to_take++) {
    const struct kept *k = &all.reports[all.to_take];
    if (strcmp(k->level, "error") != 0) continue;
    if (!add_line(text, room, &used, k->text)) break;
  }
  if (all.to_take == all.count && all.missing) {
    char line[120];
    snprintf(line, sizeof line, "%" PRIu64 " more findings or failed launches are not kept one by one", all.missing);
    if (add_line(text, room, &used, line)) all.missing = 0;
  }
  forget_taken();
  pthread_mutex_unlock(&all.lock);
  if (room) text[used] = '\0';
  return used;
}
