// Runs the line programs of all units and keeps their rows, sorted by address; a look-up is a binary search.
#include "object/lines.h"

#include <stdlib.h>

#include "object/reader.h"

struct row {
  uint64_t address;
  const char *file;
  uint32_t line, order;
  bool ends;  // the row ends a sequence: no code lies between it and the next row
};

// The files of a unit, from its place in the pool of names on.
struct unit_files {
  uint64_t table;  // where its line table begins
  size_t first, count;
};

struct emu_lines {
  struct row *rows;
  size_t count, room;
  const char **names;
  size_t name_count, name_room;
  struct unit_files *units;
  size_t unit_count, unit_room;
};

// ---- the header

enum { FORMATS = 16, FILES = 4096, CONTENT_PATH = 1, STANDARD_OPCODES = 256 };
enum {
  FORM_BLOCK = 0x09,
  FORM_DATA1 = 0x0b,
  FORM_DATA2 = 0x05,
  FORM_DATA4 = 0x06,
  FORM_DATA8 = 0x07,
  FORM_DATA16 = 0x1e,
  FORM_STRING = 0x08,
  FORM_STRP = 0x0e,
  FORM_LINE_STRP = 0x1f,
  FORM_UDATA = 0x0f
};

struct unit {
  const struct emu_line_sections *sections;
  struct emu_reader r;
  unsigned version, offset_bytes, minimum, opcode_base, line_range;
  int line_base;
  uint8_t operands[STANDARD_OPCODES];
  const char **files;
  size_t file_count;
};

// Reads past a value of a file's or directory's entry; returns its text, or NULL where it is no text.
static const char *take_form(struct unit *u, uint64_t form) {
  const struct emu_line_sections *s = u->sections;
  switch (form) {
    case FORM_STRING:
      return emu_take_string(&u->r);
    case FORM_LINE_STRP:
      return emu_string_at(s->line_str, s->line_str_bytes, emu_take(&u->r, u->offset_bytes));
    case FORM_STRP:
      return emu_string_at(s->str, s->str_bytes, emu_take(&u->r, u->offset_bytes));
    case FORM_UDATA:
      (void)emu_take_uleb(&u->r);
      return NULL;
    case FORM_DATA1:
      emu_skip(&u->r, 1);
      return NULL;
    case FORM_DATA2:
      emu_skip(&u->r, 2);
      return NULL;
    case FORM_DATA4:
      emu_skip(&u->r, 4);
      return NULL;
    case FORM_DATA8:
      emu_skip(&u->r, 8);
      return NULL;
    case FORM_DATA16:
      emu_skip(&u->r, 16);
      return NULL;
    case FORM_BLOCK:
      emu_skip(&u->r, emu_take_uleb(&u->r));
      return NULL;
    default:
      u->r.bad = true;
      return NULL;
  }
}

static void add_file(struct unit *u, const char *name) {
  if (u->file_count < FILES) u->files[u->file_count++] = name;
}

// Reads the table of directories, or with `keeps` that of files, whose names it keeps.
static void take_entries(struct unit *u, bool keeps) {
  uint64_t content[FORMATS], form[FORMATS], formats = emu_take(&u->r, 1);
  if (formats > FORMATS) {
    u->r.bad = true;
    return;
  }
  for (uint64_t i = 0; i < formats; i++) {
    content[i] = emu_take_uleb(&u->r);
    form[i] = emu_take_uleb(&u->r);
  }
  uint64_t count = emu_take_uleb(&u->r);
  // an entry without fields takes no bytes: nothing would end the loop early
  if (!formats && count) u->r.bad = true;
  for (uint64_t k = 0; k < count && !u->r.bad; k++) {
    const char *name = NULL;
    for (uint64_t i = 0; i < formats; i++) {
      const char *text = take_form(u, form[i]);
      if (content[i] == CONTENT_PATH) name = text;
    }
    if (keeps) add_file(u, name);
  }
}

static void take_files_4(struct unit *u) {
  for (;;) {
    const char *directory = emu_take_string(&u->r);
    if (!directory || !*directory) break;
  }
  add_file(u, NULL);  // files count from 1
  for (;;) {
    const char *name = emu_take_string(&u->r);
    if (!name || !*name) break;
    for (int i = 0; i < 3; i++) (void)emu_take_uleb(&u->r);
    add_file(u, name);
  }
}

// Reads a unit's header, up to where its program begins. false: not a table that can be read.
static bool take_header(struct unit *u) {
  struct emu_reader *r = &u->r;
  u->version = (unsigned)emu_take(r, 2);
  if (u->version != 4 && u->version != 5) return false;
  if (u->version == 5) emu_skip(r, 2);  // sizes of an address and of a segment selector
  uint64_t length = emu_take(r, u->offset_bytes);
  if (r->bad || (uint64_t)(r->end - r->at) < length) return false;
  const uint8_t *program = r->at + length;
  u->minimum = (unsigned)emu_take(r, 1);
  emu_skip(r, 2);  // operations in an instruction, whether rows begin as statements
  u->line_base = (int8_t)emu_take(r, 1);
  u->line_range = (unsigned)emu_take(r, 1);
  u->opcode_base = (unsigned)emu_take(r, 1);
  if (!u->line_range || !u->opcode_base) return false;
  for (unsigned i = 1; i < u->opcode_base; i++) u->operands[i] = (uint8_t)emu_take(r, 1);
  if (u->version == 5) {
    take_entries(u, false);
    take_entries(u, true);
  } else {
    take_files_4(u);
  }
  if (r->bad) return false;
  r->at = program;
  return true;
}

// ---- the program

struct state {
  uint64_t address, file, line;  // they wrap where the table is nonsense
};

static bool emit(struct emu_lines *lines, const struct unit *u, const struct state *s, bool ends) {
  if (lines->count == lines->room) {
    size_t room = lines->room ? lines->room * 2 : 1024;
    struct row *rows = realloc(lines->rows, room * sizeof(*rows));
    if (!rows) return false;
    lines->rows = rows;
    lines->room = room;
  }
  const char *file = s->file < u->file_count ? u->files[s->file] : NULL;
  uint32_t order = (uint32_t)lines->count;
  lines->rows[lines->count++] = (struct row){s->address, file, (uint32_t)s->line, order, ends};
  return true;
}

enum {
  OP_COPY = 1,
  OP_ADVANCE_PC,
  OP_ADVANCE_LINE,
  OP_SET_FILE,
  OP_CONST_ADD_PC = 8,
  OP_FIXED_ADVANCE_PC,
  EXTENDED_END = 1,
  EXTENDED_ADDRESS = 2
};

static bool run_extended(struct emu_lines *lines, struct unit *u, struct state *s) {
  uint64_t length = emu_take_uleb(&u->r);
  if (u->r.bad || !length || (uint64_t)(u->r.end - u->r.at) < length) {
    u->r.bad = true;
    return true;
  }
  const uint8_t *next = u->r.at + length;
  unsigned op = (unsigned)emu_take(&u->r, 1);
  bool ok = true;
  if (op == EXTENDED_END) {
    ok = emit(lines, u, s, true);
    *s = (struct state){.file = 1, .line = 1};
  } else if (op == EXTENDED_ADDRESS) {
    s->address = emu_take(&u->r, length == 9 ? 8 : 4);
  }
  u->r.at = next;
  return ok;
}

static bool run_program(struct emu_lines *lines, struct unit *u) {
  struct state s = {.file = 1, .line = 1};
  struct emu_reader *r = &u->r;
  while (r->at < r->end && !r->bad) {
    unsigned op = (unsigned)emu_take(r, 1);
    if (op >= u->opcode_base) {
      op -= u->opcode_base;
      s.address += (uint64_t)(op / u->line_range) * u->minimum;
      s.line += (uint64_t)(int64_t)(u->line_base + (int)(op % u->line_range));
      if (!emit(lines, u, &s, false)) return false;
      continue;
    }
    switch (op) {
      case 0:
        if (!run_extended(lines, u, &s)) return false;
        break;
      case OP_COPY:
        if (!emit(lines, u, &s, false)) return false;
        break;
      case OP_ADVANCE_PC:
        s.address += emu_take_uleb(r) * u->minimum;
        break;
      case OP_ADVANCE_LINE:
        s.line += (uint64_t)emu_take_sleb(r);
        break;
      case OP_SET_FILE:
        s.file = emu_take_uleb(r);
        break;
      case OP_CONST_ADD_PC:
        s.address += (uint64_t)((255 - u->opcode_base) / u->line_range) * u->minimum;
        break;
      case OP_FIXED_ADVANCE_PC:
        s.address += emu_take(r, 2);
        break;
      default:
        for (unsigned i = 0; i < u->operands[op]; i++) (void)emu_take_uleb(r);
        break;
    }
  }
  return true;
}

// Orders rows by address; at one address an end comes before what begins there, otherwise the table's order stays.
static int compare(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  if (x->address != y->address) return x->address < y->address ? -1 : 1;
  if (x->ends != y->ends) return x->ends ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

// Keeps the unit's files. The names take no more room than the section's own bytes, as each takes some there.
static bool keep_files(struct emu_lines *lines, const struct unit *u, uint64_t table) {
  if (lines->unit_count == lines->unit_room) {
    size_t room = lines->unit_room * 2 + 16;
    struct unit_files *units = realloc(lines->units, room * sizeof(*units));
    if (!units) return false;
    lines->units = units;
    lines->unit_room = room;
  }
  if (lines->name_room - lines->name_count < u->file_count) {
    size_t room = lines->name_room * 2 + u->file_count;
    const char **names = realloc(lines->names, room * sizeof(*names));
    if (!names) return false;
    lines->names = names;
    lines->name_room = room;
  }
  lines->units[lines->unit_count++] = (struct unit_files){table, lines->name_count, u->file_count};
  if (u->file_count) memcpy(lines->names + lines->name_count, u->files, u->file_count * sizeof(*u->files));
  lines->name_count += u->file_count;
  return true;
}

static bool read_units(struct emu_lines *lines, const struct emu_line_sections *sections, const char **files) {
  struct emu_reader all = {sections->line, sections->line + sections->line_bytes, false};
  while (all.at < all.end) {
    struct unit u = {.sections = sections, .files = files, .offset_bytes = 4};
    uint64_t table = (uint64_t)(all.at - sections->line), length = emu_take(&all, 4);
    if (length == UINT32_MAX) {
      length = emu_take(&all, 8);
      u.offset_bytes = 8;
    }
    if (all.bad || (uint64_t)(all.end - all.at) < length) return true;
    u.r = (struct emu_reader){all.at, all.at + length, false};
    all.at += length;
    if (!take_header(&u)) continue;
    if (!keep_files(lines, &u, table) || !run_program(lines, &u)) return false;
  }
  return true;
}

struct emu_lines *emu_lines_create(const struct emu_line_sections *sections) {
  if (!sections->line || !sections->line_bytes) return NULL;
  struct emu_lines *lines = calloc(1, sizeof(*lines));
  const char **files = calloc(FILES, sizeof(char *));
  bool ok = lines && files && read_units(lines, sections, files);
  free(files);
  if (!ok || !lines->count) {
    emu_lines_release(lines);
    return NULL;
  }
  qsort(lines->rows, lines->count, sizeof(*lines->rows), compare);
  return lines;
}

void emu_lines_release(struct emu_lines *lines) {
  if (!lines) return;
  free(lines->rows);
  free(lines->names);
  free(lines->units);
  free(lines);
}

const char *emu_lines_file(const struct emu_lines *lines, uint64_t table, uint64_t file) {
  for (size_t i = 0; i < lines->unit_count; i++) {
    const struct unit_files *u = &lines->units[i];
    if (u->table == table) return file < u->count ? lines->names[u->first + file] : NULL;
  }
  return NULL;
}

bool emu_lines_find(const struct emu_lines *lines, uint64_t address, const char **file, unsigned *line) {
  size_t low = 0, high = lines->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (lines->rows[middle].address <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (!low || lines->rows[low - 1].ends) return false;
  // line 0 is code that belongs to no line; the one before it is nearest to what a reader looks for
  const struct row *row = &lines->rows[low - 1];
  while (!row->line && row > lines->rows && !row[-1].ends) row--;
  if (!row->line || !row->file) return false;
  *file = row->file;
  *line = row->line;
  return true;
}
