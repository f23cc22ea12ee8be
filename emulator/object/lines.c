// Runs the line programs of all units and keeps their rows, sorted by address; a look-up is a binary search.
#include "object/lines.h"

#include <stdlib.h>

#include "object/bytes.h"

struct row {
  uint64_t address;
  const char *file;
  uint32_t line, order;
  bool ends;  // the row ends a sequence: no code lies between it and the next row
};

struct emu_lines {
  struct row *rows;
  size_t count, room;
};

// ---- bytes

struct reader {
  const uint8_t *at, *end;
  bool bad;
};

static uint64_t take(struct reader *r, unsigned bytes) {
  uint64_t value = 0;
  if (r->bad || (size_t)(r->end - r->at) < bytes) {
    r->bad = true;
    return 0;
  }
  memcpy(&value, r->at, bytes);
  r->at += bytes;
  return value;
}

static uint64_t take_uleb(struct reader *r) {
  uint64_t value = 0;
  for (unsigned shift = 0; !r->bad; shift += 7) {
    uint64_t byte = take(r, 1);
    if (shift < 64) value |= (byte & 127) << shift;
    if (!(byte & 128)) break;
  }
  return value;
}

static int64_t take_sleb(struct reader *r) {
  uint64_t value = 0, byte = 0;
  unsigned shift = 0;
  do {
    byte = take(r, 1);
    if (shift < 64) value |= (byte & 127) << shift;
    shift += 7;
  } while (byte & 128 && !r->bad);
  if (shift < 64 && byte & 64) value |= UINT64_MAX << shift;
  return (int64_t)value;
}

static void skip(struct reader *r, uint64_t bytes) {
  if (r->bad || (uint64_t)(r->end - r->at) < bytes) {
    r->bad = true;
  } else {
    r->at += bytes;
  }
}

// NULL when it is not terminated.
static const char *take_string(struct reader *r) {
  const uint8_t *start = r->at, *zero = r->bad ? NULL : memchr(start, 0, (size_t)(r->end - start));
  if (!zero) {
    r->bad = true;
    return NULL;
  }
  r->at = zero + 1;
  return (const char *)start;
}

static const char *string_at(const uint8_t *section, size_t size, uint64_t offset) {
  if (offset >= size || !memchr(section + offset, 0, size - offset)) return NULL;
  return (const char *)section + offset;
}

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
  struct reader r;
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
      return take_string(&u->r);
    case FORM_LINE_STRP:
      return string_at(s->line_str, s->line_str_bytes, take(&u->r, u->offset_bytes));
    case FORM_STRP:
      return string_at(s->str, s->str_bytes, take(&u->r, u->offset_bytes));
    case FORM_UDATA:
      (void)take_uleb(&u->r);
      return NULL;
    case FORM_DATA1:
      skip(&u->r, 1);
      return NULL;
    case FORM_DATA2:
      skip(&u->r, 2);
      return NULL;
    case FORM_DATA4:
      skip(&u->r, 4);
      return NULL;
    case FORM_DATA8:
      skip(&u->r, 8);
      return NULL;
    case FORM_DATA16:
      skip(&u->r, 16);
      return NULL;
    case FORM_BLOCK:
      skip(&u->r, take_uleb(&u->r));
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
  uint64_t content[FORMATS], form[FORMATS], formats = take(&u->r, 1);
  if (formats > FORMATS) {
    u->r.bad = true;
    return;
  }
  for (uint64_t i = 0; i < formats; i++) {
    content[i] = take_uleb(&u->r);
    form[i] = take_uleb(&u->r);
  }
  uint64_t count = take_uleb(&u->r);
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
    const char *directory = take_string(&u->r);
    if (!directory || !*directory) break;
  }
  add_file(u, NULL);  // files count from 1
  for (;;) {
    const char *name = take_string(&u->r);
    if (!name || !*name) break;
    for (int i = 0; i < 3; i++) (void)take_uleb(&u->r);
    add_file(u, name);
  }
}

// Reads a unit's header, up to where its program begins. false: not a table that can be read.
static bool take_header(struct unit *u) {
  struct reader *r = &u->r;
  u->version = (unsigned)take(r, 2);
  if (u->version != 4 && u->version != 5) return false;
  if (u->version == 5) skip(r, 2);  // sizes of an address and of a segment selector
  uint64_t length = take(r, u->offset_bytes);
  if (r->bad || (uint64_t)(r->end - r->at) < length) return false;
  const uint8_t *program = r->at + length;
  u->minimum = (unsigned)take(r, 1);
  skip(r, 2);  // operations in an instruction, whether rows begin as statements
  u->line_base = (int8_t)take(r, 1);
  u->line_range = (unsigned)take(r, 1);
  u->opcode_base = (unsigned)take(r, 1);
  if (!u->line_range || !u->opcode_base) return false;
  for (unsigned i = 1; i < u->opcode_base; i++) u->operands[i] = (uint8_t)take(r, 1);
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
  uint64_t length = take_uleb(&u->r);
  if (u->r.bad || !length || (uint64_t)(u->r.end - u->r.at) < length) {
    u->r.bad = true;
    return true;
  }
  const uint8_t *next = u->r.at + length;
  unsigned op = (unsigned)take(&u->r, 1);
  bool ok = true;
  if (op == EXTENDED_END) {
    ok = emit(lines, u, s, true);
    *s = (struct state){.file = 1, .line = 1};
  } else if (op == EXTENDED_ADDRESS) {
    s->address = take(&u->r, length == 9 ? 8 : 4);
  }
  u->r.at = next;
  return ok;
}

static bool run_program(struct emu_lines *lines, struct unit *u) {
  struct state s = {.file = 1, .line = 1};
  struct reader *r = &u->r;
  while (r->at < r->end && !r->bad) {
    unsigned op = (unsigned)take(r, 1);
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
        s.address += take_uleb(r) * u->minimum;
        break;
      case OP_ADVANCE_LINE:
        s.line += (uint64_t)take_sleb(r);
        break;
      case OP_SET_FILE:
        s.file = take_uleb(r);
        break;
      case OP_CONST_ADD_PC:
        s.address += (uint64_t)((255 - u->opcode_base) / u->line_range) * u->minimum;
        break;
      case OP_FIXED_ADVANCE_PC:
        s.address += take(r, 2);
        break;
      default:
        for (unsigned i = 0; i < u->operands[op]; i++) (void)take_uleb(r);
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

static bool read_units(struct emu_lines *lines, const struct emu_line_sections *sections, const char **files) {
  struct reader all = {sections->line, sections->line + sections->line_bytes, false};
  while (all.at < all.end) {
    struct unit u = {.sections = sections, .files = files, .offset_bytes = 4};
    uint64_t length = take(&all, 4);
    if (length == UINT32_MAX) {
      length = take(&all, 8);
      u.offset_bytes = 8;
    }
    if (all.bad || (uint64_t)(all.end - all.at) < length) return true;
    u.r = (struct reader){all.at, all.at + length, false};
    all.at += length;
    if (take_header(&u) && !run_program(lines, &u)) return false;
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
  free(lines);
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
