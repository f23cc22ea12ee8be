// Ranges of addresses, and lists of what holds in which of them.
#include "object/dwarf.h"
#include "object/reader.h"

// The kinds of version 5; those of location lists have one more before BASE_ADDRESS.
enum {
  LIST_END,
  LIST_BASE_ADDRESSX,
  LIST_STARTX_ENDX,
  LIST_STARTX_LENGTH,
  LIST_OFFSET_PAIR,
  LIST_BASE_ADDRESS,
  LIST_START_END,
  LIST_START_LENGTH,
  LIST_DEFAULT,
};

struct list {
  const struct emu_dwarf *dwarf;
  const struct emu_unit *unit;
  struct emu_reader r;
  uint64_t base;
  bool locations;
};

// Where a list begins: version 5 may count them from a base, in a table of offsets.
static bool open_list(struct list *l, const struct emu_section *section, uint64_t at, bool indexed, uint64_t base) {
  unsigned bytes = l->unit->offset_bytes;
  if (indexed) {
    uint64_t offset = 0;
    if (at > section->bytes || base > section->bytes || !emu_within(base + at * bytes, bytes, section->bytes))
      return false;
    memcpy(&offset, section->data + base + at * bytes, bytes);
    if (offset > section->bytes) return false;
    at = base + offset;
  }
  if (at >= section->bytes) return false;
  l->r = (struct emu_reader){section->data + at, section->data + section->bytes, false};
  l->base = l->unit->low;
  return true;
}

static uint64_t take_indexed(struct list *l) {
  uint64_t address = 0;
  if (!emu_unit_address(l->dwarf, l->unit, emu_take_uleb(&l->r), &address)) l->r.bad = true;
  return address;
}

static void take_expression(struct list *l, uint64_t bytes, struct emu_section *out) {
  *out = (struct emu_section){l->r.at, bytes};
  emu_skip(&l->r, bytes);
}

// The next range of version 5; false: there is none any more. *all: it holds wherever no other does.
static bool next_5(struct list *l, uint64_t *low, uint64_t *high, bool *all, struct emu_section *out) {
  static const uint8_t of_locations[] = {LIST_END,           LIST_BASE_ADDRESSX, LIST_STARTX_ENDX,
                                         LIST_STARTX_LENGTH, LIST_OFFSET_PAIR,   LIST_DEFAULT,
                                         LIST_BASE_ADDRESS,  LIST_START_END,     LIST_START_LENGTH};
  struct emu_reader *r = &l->r;
  for (;;) {
    uint64_t kind = emu_take(r, 1);
    if (l->locations) kind = kind < sizeof of_locations ? of_locations[kind] : UINT64_MAX;
    *all = false;
    *low = *high = 0;
    switch (kind) {
      case LIST_BASE_ADDRESSX:
        l->base = take_indexed(l);
        break;
      case LIST_BASE_ADDRESS:
        l->base = emu_take(r, l->unit->address_bytes);
        break;
      case LIST_STARTX_ENDX:
        *low = take_indexed(l);
        *high = take_indexed(l);
        break;
      case LIST_STARTX_LENGTH:
        *low = take_indexed(l);
        *high = *low + emu_take_uleb(r);
        break;
      case LIST_OFFSET_PAIR:
        *low = l->base + emu_take_uleb(r);
        *high = l->base + emu_take_uleb(r);
        break;
      case LIST_START_END:
        *low = emu_take(r, l->unit->address_bytes);
        *high = emu_take(r, l->unit->address_bytes);
        break;
      case LIST_START_LENGTH:
        *low = emu_take(r, l->unit->address_bytes);
        *high = *low + emu_take_uleb(r);
        break;
      case LIST_DEFAULT:
        *all = l->locations;
        break;
      default:
        return false;
    }
    if (r->bad) return false;
    if (kind == LIST_BASE_ADDRESSX || kind == LIST_BASE_ADDRESS) continue;
    if (l->locations) take_expression(l, emu_take_uleb(r), out);
    return !r->bad;
  }
}

static bool next_4(struct list *l, uint64_t *low, uint64_t *high, struct emu_section *out) {
  unsigned bytes = l->unit->address_bytes;
  uint64_t most = bytes == 8 ? UINT64_MAX : UINT32_MAX;
  for (;;) {
    *low = emu_take(&l->r, bytes);
    *high = emu_take(&l->r, bytes);
    if (l->r.bad || (!*low && !*high)) return false;
    if (*low != most) break;
    l->base = *high;
  }
  *low += l->base;
  *high += l->base;
  if (l->locations) take_expression(l, emu_take(&l->r, 2), out);
  return !l->r.bad;
}

// Whether a range of the list covers the address; *out: what holds there.
static bool find(struct list *l, uint64_t address, struct emu_section *out) {
  uint64_t low, high;
  bool all = false, otherwise = false;
  struct emu_section expression = {0};
  while (l->unit->version == 5 ? next_5(l, &low, &high, &all, &expression) : next_4(l, &low, &high, &expression)) {
    if (!all && (address < low || address >= high)) continue;
    *out = expression;
    if (!all) return true;
    otherwise = true;
  }
  return otherwise;
}

bool emu_dwarf_covers(const struct emu_dwarf *d, uint32_t index, uint64_t address) {
  const struct emu_entry *e = emu_dwarf_entry(d, index);
  if (!e) return false;
  if (!e->has_ranges) return e->has_low && (e->high > e->low ? address >= e->low && address < e->high : false);
  struct list l = {.dwarf = d, .unit = &d->units[e->unit]};
  const struct emu_section *section = l.unit->version == 5 ? &d->sections.rnglists : &d->sections.ranges;
  struct emu_section nothing;
  return open_list(&l, section, e->ranges, e->ranges_indexed, l.unit->rnglists) && find(&l, address, &nothing);
}

bool emu_dwarf_expression(const struct emu_dwarf *d, uint32_t index, const struct emu_place *place, uint64_t address,
                          struct emu_section *out) {
  const struct emu_entry *e = emu_dwarf_entry(d, index);
  if (!e || place->kind == EMU_PLACE_NONE) return false;
  if (place->kind == EMU_PLACE_EXPRESSION) {
    *out = (struct emu_section){place->data, place->bytes};
    return true;
  }
  struct list l = {.dwarf = d, .unit = &d->units[e->unit], .locations = true};
  const struct emu_section *section = l.unit->version == 5 ? &d->sections.loclists : &d->sections.loc;
  return open_list(&l, section, place->bytes, place->kind == EMU_PLACE_LIST_INDEX, l.unit->loclists) &&
         find(&l, address, out);
}
