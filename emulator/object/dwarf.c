// Reads the entries of all units, in their order; references are found again by their offsets.
#include "object/dwarf.h"

#include <stdlib.h>

#include "object/reader.h"

enum { ENTRIES_MOST = 1 << 21, ABBREVIATIONS_MOST = 1 << 16, ORIGINS_MOST = 4 };
// Attributes need no bytes of the entry, and units share tables: without a limit a small file would be read for hours.
enum { ATTRIBUTES_MOST = 1 << 26 };

enum {
  AT_LOCATION = 0x02,
  AT_NAME = 0x03,
  AT_BYTE_SIZE = 0x0b,
  AT_BIT_SIZE = 0x0d,
  AT_STMT_LIST = 0x10,
  AT_LOW_PC = 0x11,
  AT_HIGH_PC = 0x12,
  AT_CONST_VALUE = 0x1c,
  AT_UPPER_BOUND = 0x2f,
  AT_ABSTRACT_ORIGIN = 0x31,
  AT_ADDRESS_CLASS = 0x33,
  AT_COUNT = 0x37,
  AT_MEMBER_LOCATION = 0x38,
  AT_DECLARATION = 0x3c,
  AT_ENCODING = 0x3e,
  AT_FRAME_BASE = 0x40,
  AT_SPECIFICATION = 0x47,
  AT_TYPE = 0x49,
  AT_RANGES = 0x55,
  AT_CALL_FILE = 0x58,
  AT_CALL_LINE = 0x59,
  AT_DATA_BIT_OFFSET = 0x6b,
  AT_STR_OFFSETS_BASE = 0x72,
  AT_ADDR_BASE = 0x73,
  AT_RNGLISTS_BASE = 0x74,
  AT_LOCLISTS_BASE = 0x8c,
  AT_GNU_VECTOR = 0x2107,
};
enum {
  FORM_ADDR = 0x01,
  FORM_BLOCK2 = 0x03,
  FORM_BLOCK4 = 0x04,
  FORM_DATA2 = 0x05,
  FORM_DATA4 = 0x06,
  FORM_DATA8 = 0x07,
  FORM_STRING = 0x08,
  FORM_BLOCK = 0x09,
  FORM_BLOCK1 = 0x0a,
  FORM_DATA1 = 0x0b,
  FORM_FLAG = 0x0c,
  FORM_SDATA = 0x0d,
  FORM_STRP = 0x0e,
  FORM_UDATA = 0x0f,
  FORM_REF_ADDR = 0x10,
  FORM_REF1 = 0x11,
  FORM_REF2 = 0x12,
  FORM_REF4 = 0x13,
  FORM_REF8 = 0x14,
  FORM_REF_UDATA = 0x15,
  FORM_INDIRECT = 0x16,
  FORM_SEC_OFFSET = 0x17,
  FORM_EXPRLOC = 0x18,
  FORM_FLAG_PRESENT = 0x19,
  FORM_STRX = 0x1a,
  FORM_ADDRX = 0x1b,
  FORM_DATA16 = 0x1e,
  FORM_LINE_STRP = 0x1f,
  FORM_REF_SIG8 = 0x20,
  FORM_IMPLICIT_CONST = 0x21,
  FORM_LOCLISTX = 0x22,
  FORM_RNGLISTX = 0x23,
  FORM_STRX1 = 0x25,
  FORM_STRX2 = 0x26,
  FORM_STRX3 = 0x27,
  FORM_STRX4 = 0x28,
  FORM_ADDRX1 = 0x29,
  FORM_ADDRX2 = 0x2a,
  FORM_ADDRX3 = 0x2b,
  FORM_ADDRX4 = 0x2c,
};

enum value_kind { VALUE_NUMBER, VALUE_SIGNED, VALUE_BLOCK, VALUE_TEXT, VALUE_ADDRESS, VALUE_ENTRY, VALUE_INDEX };
struct value {
  enum value_kind kind;
  uint64_t number;
  struct emu_section block;
  const char *text;
};

struct abbreviation {
  uint64_t code, tag;
  const uint8_t *attributes;  // pairs of name and form, terminated as its reader has seen
  bool children;
};

struct parser {
  struct emu_dwarf *dwarf;
  struct emu_unit unit;
  struct emu_reader r;
  uint64_t abbreviations_at;  // the offset of the table that was read
  struct abbreviation *abbreviations;
  size_t abbreviation_count;
  uint64_t attributes;  // read so far, those of tables too
};

// ---- values

bool emu_unit_address(const struct emu_dwarf *dwarf, const struct emu_unit *unit, uint64_t number, uint64_t *out) {
  const struct emu_section *addr = &dwarf->sections.addr;
  if (number > addr->bytes) return false;
  uint64_t at = unit->addr + number * unit->address_bytes;
  *out = 0;
  if (at < unit->addr || !emu_within(at, unit->address_bytes, addr->bytes)) return false;
  memcpy(out, addr->data + at, unit->address_bytes);
  return true;
}

static const char *indexed_text(const struct parser *p, uint64_t number) {
  const struct emu_section *offsets = &p->dwarf->sections.str_offsets, *str = &p->dwarf->sections.str;
  if (number > offsets->bytes) return NULL;
  uint64_t at = p->unit.str_offsets + number * p->unit.offset_bytes, offset = 0;
  if (at < p->unit.str_offsets || !emu_within(at, p->unit.offset_bytes, offsets->bytes)) return NULL;
  memcpy(&offset, offsets->data + at, p->unit.offset_bytes);
  return emu_string_at(str->data, str->bytes, offset);
}

static void take_block(struct emu_reader *r, uint64_t bytes, struct value *out) {
  const uint8_t *at = r->at;
  emu_skip(r, bytes);
  *out = (struct value){.kind = VALUE_BLOCK, .block = {at, r->bad ? 0 : bytes}};
}

// Bytes of a form that is a number of fixed size; 0: it is none.
static unsigned fixed_bytes(uint64_t form) {
  static const uint8_t bytes[] = {
      [FORM_DATA1] = 1, [FORM_DATA2] = 2, [FORM_DATA4] = 4,  [FORM_DATA8] = 8,    [FORM_FLAG] = 1,   [FORM_REF1] = 1,
      [FORM_REF2] = 2,  [FORM_REF4] = 4,  [FORM_REF8] = 8,   [FORM_REF_SIG8] = 8, [FORM_STRX1] = 1,  [FORM_STRX2] = 2,
      [FORM_STRX3] = 3, [FORM_STRX4] = 4, [FORM_ADDRX1] = 1, [FORM_ADDRX2] = 2,   [FORM_ADDRX3] = 3, [FORM_ADDRX4] = 4};
  return form < sizeof bytes ? bytes[form] : 0;
}

static bool take_number(struct parser *p, uint64_t form, int64_t implicit, struct value *out) {
  struct emu_reader *r = &p->r;
  switch (form) {
    case FORM_DATA1:
    case FORM_DATA2:
    case FORM_DATA4:
    case FORM_DATA8:
    case FORM_FLAG:
      return true;
    case FORM_UDATA:
      out->number = emu_take_uleb(r);
      return true;
    case FORM_SDATA:
      out->kind = VALUE_SIGNED;
      out->number = (uint64_t)emu_take_sleb(r);
      return true;
    case FORM_IMPLICIT_CONST:
      out->kind = VALUE_SIGNED;
      out->number = (uint64_t)implicit;
      return true;
    case FORM_FLAG_PRESENT:
      out->number = 1;
      return true;
    case FORM_SEC_OFFSET:
      out->number = emu_take(r, p->unit.offset_bytes);
      return true;
    case FORM_LOCLISTX:
    case FORM_RNGLISTX:
      out->kind = VALUE_INDEX;
      out->number = emu_take_uleb(r);
      return true;
    default:
      return false;
  }
}

static bool take_reference(struct parser *p, uint64_t form, struct value *out) {
  struct emu_reader *r = &p->r;
  out->kind = VALUE_ENTRY;
  switch (form) {
    case FORM_REF1:
    case FORM_REF2:
    case FORM_REF4:
    case FORM_REF8:
      out->number += p->unit.offset;
      return true;
    case FORM_REF_UDATA:
      out->number = emu_take_uleb(r) + p->unit.offset;
      return true;
    case FORM_REF_ADDR:
      out->number = emu_take(r, p->unit.offset_bytes);
      return true;
    case FORM_REF_SIG8:  // a type unit's, which is not read
      out->number = 0;
      return true;
    default:
      return false;
  }
}

static bool take_text(struct parser *p, uint64_t form, struct value *out) {
  const struct emu_dwarf_sections *s = &p->dwarf->sections;
  struct emu_reader *r = &p->r;
  out->kind = VALUE_TEXT;
  switch (form) {
    case FORM_STRX:
      out->text = indexed_text(p, emu_take_uleb(r));
      return true;
    case FORM_STRX1:
    case FORM_STRX2:
    case FORM_STRX3:
    case FORM_STRX4:
      out->text = indexed_text(p, out->number);
      return true;
    case FORM_STRING:
      out->text = emu_take_string(r);
      return true;
    case FORM_STRP:
      out->text = emu_string_at(s->str.data, s->str.bytes, emu_take(r, p->unit.offset_bytes));
      return true;
    case FORM_LINE_STRP:
      out->text = emu_string_at(s->line_str.data, s->line_str.bytes, emu_take(r, p->unit.offset_bytes));
      return true;
    default:
      return false;
  }
}

static bool take_address(struct parser *p, uint64_t form, struct value *out) {
  out->kind = VALUE_ADDRESS;
  if (form == FORM_ADDR) {
    out->number = emu_take(&p->r, p->unit.address_bytes);
    return true;
  }
  if (form == FORM_ADDRX) {
    out->number = emu_take_uleb(&p->r);
  } else if (form < FORM_ADDRX1 || form > FORM_ADDRX4) {
    return false;
  }
  if (!emu_unit_address(p->dwarf, &p->unit, out->number, &out->number)) out->kind = VALUE_NUMBER;
  return true;
}

static bool take_bytes(struct parser *p, uint64_t form, struct value *out) {
  struct emu_reader *r = &p->r;
  switch (form) {
    case FORM_BLOCK1:
      take_block(r, emu_take(r, 1), out);
      return true;
    case FORM_BLOCK2:
      take_block(r, emu_take(r, 2), out);
      return true;
    case FORM_BLOCK4:
      take_block(r, emu_take(r, 4), out);
      return true;
    case FORM_BLOCK:
    case FORM_EXPRLOC:
      take_block(r, emu_take_uleb(r), out);
      return true;
    case FORM_DATA16:
      take_block(r, 16, out);
      return true;
    default:
      return false;
  }
}

static void take_value(struct parser *p, uint64_t form, int64_t implicit, struct value *out) {
  if (form == FORM_INDIRECT) {
    form = emu_take_uleb(&p->r);
    if (form == FORM_INDIRECT || form == FORM_IMPLICIT_CONST) p->r.bad = true;
  }
  unsigned fixed = fixed_bytes(form);
  uint64_t number = fixed ? emu_take(&p->r, fixed) : 0;
  *out = (struct value){.kind = VALUE_NUMBER, .number = number};
  if (take_number(p, form, implicit, out) || take_reference(p, form, out) || take_text(p, form, out) ||
      take_address(p, form, out) || take_bytes(p, form, out))
    return;
  p->r.bad = true;
}

// ---- abbreviations

static int compare_codes(const void *a, const void *b) {
  const struct abbreviation *x = a, *y = b;
  return x->code < y->code ? -1 : x->code > y->code;
}

static bool take_attribute(struct emu_reader *r, uint64_t *name, uint64_t *form, int64_t *implicit) {
  *name = emu_take_uleb(r);
  *form = emu_take_uleb(r);
  *implicit = *form == FORM_IMPLICIT_CONST ? emu_take_sleb(r) : 0;
  return !r->bad && (*name || *form);
}

// false: there is no memory.
static bool read_abbreviations(struct parser *p, uint64_t offset) {
  const struct emu_section *section = &p->dwarf->sections.abbrev;
  if (offset == p->abbreviations_at) return true;
  p->abbreviations_at = offset;
  p->abbreviation_count = 0;
  if (offset >= section->bytes) return true;
  struct emu_reader r = {section->data + offset, section->data + section->bytes, false};
  size_t room = 0;
  free(p->abbreviations);
  p->abbreviations = NULL;
  while (p->abbreviation_count < ABBREVIATIONS_MOST) {
    struct abbreviation a = {.code = emu_take_uleb(&r)};
    uint64_t name, form;
    int64_t implicit;
    if (r.bad || !a.code) break;
    a.tag = emu_take_uleb(&r);
    a.children = emu_take(&r, 1) != 0;
    a.attributes = r.at;
    while (p->attributes++ < ATTRIBUTES_MOST && take_attribute(&r, &name, &form, &implicit)) continue;
    if (p->attributes > ATTRIBUTES_MOST) break;
    if (r.bad) break;
    if (p->abbreviation_count == room) {
      room = room * 2 + 64;
      struct abbreviation *grown = realloc(p->abbreviations, room * sizeof *grown);
      if (!grown) return false;
      p->abbreviations = grown;
    }
    p->abbreviations[p->abbreviation_count++] = a;
  }
  if (p->abbreviation_count) qsort(p->abbreviations, p->abbreviation_count, sizeof *p->abbreviations, compare_codes);
  return true;
}

static const struct abbreviation *find_abbreviation(const struct parser *p, uint64_t code) {
  struct abbreviation key = {.code = code};
  if (!p->abbreviation_count) return NULL;
  return bsearch(&key, p->abbreviations, p->abbreviation_count, sizeof key, compare_codes);
}

// ---- entries

static void set_place(struct emu_place *out, const struct value *v) {
  if (v->kind == VALUE_BLOCK) {
    *out = (struct emu_place){EMU_PLACE_EXPRESSION, v->block.data, v->block.bytes};
  } else {
    *out = (struct emu_place){v->kind == VALUE_INDEX ? EMU_PLACE_LIST_INDEX : EMU_PLACE_LIST, NULL, v->number};
  }
}

static void set_unit(struct emu_unit *u, uint64_t name, const struct value *v) {
  if (name == AT_STR_OFFSETS_BASE) u->str_offsets = v->number;
  if (name == AT_ADDR_BASE) u->addr = v->number;
  if (name == AT_RNGLISTS_BASE) u->rnglists = v->number;
  if (name == AT_LOCLISTS_BASE) u->loclists = v->number;
  if (name == AT_STMT_LIST) u->lines = v->number;
}

static void set_attribute(struct emu_entry *e, uint64_t name, const struct value *v, bool *offset_high) {
  uint32_t entry = v->kind == VALUE_ENTRY && v->number < UINT32_MAX ? (uint32_t)v->number : 0;
  switch (name) {
    case AT_NAME:
      e->name = v->text;
      return;
    case AT_TYPE:
      e->type = entry;
      return;
    case AT_ABSTRACT_ORIGIN:
    case AT_SPECIFICATION:
      e->origin = entry;
      return;
    case AT_LOW_PC:
      e->low = v->number;
      e->has_low = v->kind == VALUE_ADDRESS;
      return;
    case AT_HIGH_PC:
      e->high = v->number;
      *offset_high = v->kind != VALUE_ADDRESS;
      return;
    case AT_RANGES:
      e->ranges = v->number;
      e->ranges_indexed = v->kind == VALUE_INDEX;
      e->has_ranges = true;
      return;
    case AT_LOCATION:
      set_place(&e->location, v);
      return;
    case AT_FRAME_BASE:
      set_place(&e->frame_base, v);
      return;
    case AT_CONST_VALUE:
      e->has_value = true;
      e->value = (int64_t)v->number;
      e->literal = v->block;
      return;
    case AT_BYTE_SIZE:
      e->bytes = v->kind == VALUE_BLOCK ? 0 : v->number;
      return;
    case AT_COUNT:
      if (v->kind == VALUE_NUMBER || v->kind == VALUE_SIGNED) e->count = v->number;
      return;
    case AT_UPPER_BOUND:
      if (v->kind == VALUE_NUMBER || v->kind == VALUE_SIGNED) e->count = v->number + 1;
      return;
    case AT_MEMBER_LOCATION:
      e->member_at = v->kind == VALUE_BLOCK ? 0 : v->number;
      return;
    case AT_DATA_BIT_OFFSET:
      e->bit_at = v->number;
      return;
    case AT_BIT_SIZE:
      e->bit_size = v->number;
      return;
    case AT_ENCODING:
      e->encoding = (uint8_t)v->number;
      return;
    case AT_ADDRESS_CLASS:
      e->address_class = (uint32_t)v->number;
      return;
    case AT_CALL_FILE:
      e->call_file = (uint32_t)v->number;
      return;
    case AT_CALL_LINE:
      e->call_line = (uint32_t)v->number;
      return;
    case AT_DECLARATION:
      e->declaration = v->number;
      return;
    case AT_GNU_VECTOR:
      e->vector = v->number;
      return;
    default:
      return;
  }
}

static void take_attributes(struct parser *p, const struct abbreviation *a, struct emu_entry *e) {
  const struct emu_section *section = &p->dwarf->sections.abbrev;
  bool is_unit = e->parent == EMU_NO_ENTRY, offset_high = false;
  const uint8_t *start = p->r.at;
  uint64_t name, form;
  int64_t implicit;
  struct value v;
  // a unit's bases may stand behind what needs them
  for (int turn = is_unit ? 0 : 1; turn < 2; turn++) {
    struct emu_reader r = {a->attributes, section->data + section->bytes, false};
    p->r.at = start;
    while (!p->r.bad && take_attribute(&r, &name, &form, &implicit)) {
      take_value(p, form, implicit, &v);
      if (p->attributes++ >= ATTRIBUTES_MOST) p->r.bad = true;
      if (p->r.bad) return;
      if (turn == 0) {
        set_unit(&p->unit, name, &v);
      } else {
        set_attribute(e, name, &v, &offset_high);
      }
    }
  }
  if (offset_high) e->high += e->low;
  if (is_unit) p->unit.low = e->has_low ? e->low : 0;
}

static bool add_entry(struct emu_dwarf *d, const struct emu_entry *entry) {
  if (d->count == d->room) {
    uint32_t room = d->room * 2 + 256;
    struct emu_entry *grown = realloc(d->entries, room * sizeof *grown);
    if (!grown) return false;
    d->entries = grown;
    d->room = room;
  }
  d->entries[d->count++] = *entry;
  return true;
}

static bool add_unit(struct emu_dwarf *d, const struct emu_unit *unit) {
  if (d->unit_count == d->unit_room) {
    uint32_t room = d->unit_room * 2 + 16;
    struct emu_unit *grown = realloc(d->units, room * sizeof *grown);
    if (!grown) return false;
    d->units = grown;
    d->unit_room = room;
  }
  d->units[d->unit_count++] = *unit;
  return true;
}

// false: there is no memory. What the unit has of an entry that is cut is left out.
static bool read_entries(struct parser *p) {
  struct emu_dwarf *d = p->dwarf;
  uint32_t parent = EMU_NO_ENTRY, first = d->count;
  while (p->r.at < p->r.end && d->count < ENTRIES_MOST) {
    struct emu_entry e = {.offset = (uint32_t)(p->r.at - d->sections.info.data),
                          .parent = parent,
                          .unit = d->unit_count,
                          .count = EMU_NO_COUNT};
    uint64_t code = emu_take_uleb(&p->r);
    if (p->r.bad) break;
    if (!code) {
      if (parent == EMU_NO_ENTRY) break;
      d->entries[parent].end = d->count;
      parent = d->entries[parent].parent;
      if (parent == EMU_NO_ENTRY) break;
      continue;
    }
    const struct abbreviation *a = find_abbreviation(p, code);
    if (!a) break;
    e.tag = a->tag < UINT16_MAX ? (uint16_t)a->tag : UINT16_MAX;
    e.end = d->count + 1;
    take_attributes(p, a, &e);
    if (p->r.bad) break;
    if (!add_entry(d, &e)) return false;
    if (a->children) parent = d->count - 1;
    if (!a->children && parent == EMU_NO_ENTRY) break;
  }
  for (; parent != EMU_NO_ENTRY; parent = d->entries[parent].parent) d->entries[parent].end = d->count;
  return d->count == first || add_unit(d, &p->unit);
}

static bool take_header(struct parser *p, uint64_t *abbreviations) {
  enum { UNIT_COMPILE = 1, UNIT_TYPE, UNIT_PARTIAL, UNIT_SKELETON, UNIT_SPLIT_COMPILE };
  struct emu_reader *r = &p->r;
  p->unit.version = (uint8_t)emu_take(r, 2);
  if (p->unit.version == 5) {
    uint64_t type = emu_take(r, 1);
    p->unit.address_bytes = (uint8_t)emu_take(r, 1);
    *abbreviations = emu_take(r, p->unit.offset_bytes);
    if (type == UNIT_SKELETON || type == UNIT_SPLIT_COMPILE) emu_skip(r, 8);
    if (type == UNIT_TYPE || type > UNIT_SPLIT_COMPILE || !type) return false;
  } else {
    *abbreviations = emu_take(r, p->unit.offset_bytes);
    p->unit.address_bytes = (uint8_t)emu_take(r, 1);
  }
  return !r->bad && (p->unit.version == 4 || p->unit.version == 5) &&
         (p->unit.address_bytes == 4 || p->unit.address_bytes == 8);
}

static bool read_units(struct parser *p) {
  const struct emu_section *info = &p->dwarf->sections.info;
  struct emu_reader all = {info->data, info->data + info->bytes, false};
  while (all.at < all.end && p->attributes < ATTRIBUTES_MOST) {
    uint64_t at = (uint64_t)(all.at - info->data), length = emu_take(&all, 4), abbreviations;
    p->unit = (struct emu_unit){.offset = (uint32_t)at, .first = p->dwarf->count, .offset_bytes = 4};
    if (length == UINT32_MAX) {
      length = emu_take(&all, 8);
      p->unit.offset_bytes = 8;
    }
    if (all.bad || (uint64_t)(all.end - all.at) < length) return true;
    p->r = (struct emu_reader){all.at, all.at + length, false};
    all.at += length;
    if (!take_header(p, &abbreviations)) continue;
    if (!read_abbreviations(p, abbreviations) || !read_entries(p)) return false;
  }
  return true;
}

struct emu_dwarf *emu_dwarf_create(const struct emu_dwarf_sections *sections) {
  if (!sections->info.data || sections->info.bytes > INT32_MAX) return NULL;
  struct emu_dwarf *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  d->sections = *sections;
  struct parser p = {.dwarf = d, .abbreviations_at = UINT64_MAX};
  bool ok = read_units(&p);
  free(p.abbreviations);
  if (ok && d->count) return d;
  emu_dwarf_release(d);
  return NULL;
}

void emu_dwarf_release(struct emu_dwarf *d) {
  if (!d) return;
  free(d->entries);
  free(d->units);
  free(d);
}

// ---- questions

uint32_t emu_dwarf_count(const struct emu_dwarf *d) { return d->count; }
const struct emu_entry *emu_dwarf_entry(const struct emu_dwarf *d, uint32_t index) {
  return index < d->count ? &d->entries[index] : NULL;
}

uint32_t emu_dwarf_at(const struct emu_dwarf *d, uint32_t offset) {
  uint32_t low = 0, high = d->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (d->entries[middle].offset < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < d->count && d->entries[low].offset == offset ? low : EMU_NO_ENTRY;
}

const char *emu_dwarf_name(const struct emu_dwarf *d, uint32_t index) {
  for (int i = 0; i < ORIGINS_MOST && index < d->count; i++) {
    if (d->entries[index].name) return d->entries[index].name;
    if (!d->entries[index].origin) break;
    index = emu_dwarf_at(d, d->entries[index].origin);
  }
  return NULL;
}

uint32_t emu_dwarf_type(const struct emu_dwarf *d, uint32_t index) {
  for (int i = 0; i < ORIGINS_MOST && index < d->count; i++) {
    if (d->entries[index].type) return emu_dwarf_at(d, d->entries[index].type);
    if (!d->entries[index].origin) break;
    index = emu_dwarf_at(d, d->entries[index].origin);
  }
  return EMU_NO_ENTRY;
}

bool emu_dwarf_address(const struct emu_dwarf *d, uint32_t index, uint64_t number, uint64_t *out) {
  return index < d->count && emu_unit_address(d, &d->units[d->entries[index].unit], number, out);
}

uint32_t emu_dwarf_unit_offset(const struct emu_dwarf *d, uint32_t index) {
  return index < d->count ? d->units[d->entries[index].unit].offset : 0;
}

const char *emu_dwarf_file(const struct emu_dwarf *d, uint32_t index, uint32_t number) {
  if (index >= d->count || !d->sections.lines) return NULL;
  return emu_lines_file(d->sections.lines, d->units[d->entries[index].unit].lines, number);
}
