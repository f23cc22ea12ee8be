// Types of a program's variables.
#include "debug/types.h"

enum { NESTING_MOST = 24, NAME_ROOM = 300 };

static bool is_plain(unsigned tag) {
  return tag != EMU_TAG_TYPEDEF && tag != EMU_TAG_CONST && tag != EMU_TAG_VOLATILE && tag != EMU_TAG_RESTRICT;
}

uint32_t emu_type_plain(const struct emu_dwarf *dwarf, uint32_t type) {
  for (int i = 0; i < NESTING_MOST && type != EMU_NO_ENTRY; i++) {
    if (is_plain(emu_dwarf_entry(dwarf, type)->tag)) return type;
    type = emu_dwarf_type(dwarf, type);
  }
  return EMU_NO_ENTRY;
}

enum emu_address_space emu_type_space(const struct emu_entry *pointer) {
  if (pointer->address_class == EMU_ADDRESS_PRIVATE) return EMU_ADDRESS_PRIVATE;
  return pointer->address_class == EMU_ADDRESS_LOCAL ? EMU_ADDRESS_LOCAL : EMU_ADDRESS_FLAT;
}

uint64_t emu_type_elements(const struct emu_dwarf *dwarf, uint32_t array, unsigned dimension, bool *there) {
  const struct emu_entry *e = emu_dwarf_entry(dwarf, array);
  for (uint32_t i = array + 1; i < e->end;) {
    const struct emu_entry *child = emu_dwarf_entry(dwarf, i);
    *there = child->tag == EMU_TAG_SUBRANGE && dimension-- == 0;
    if (*there) return child->count;
    i = child->end;
  }
  *there = false;
  return 0;
}

uint64_t emu_type_bytes(const struct emu_dwarf *dwarf, uint32_t type, unsigned dimension) {
  uint64_t times = 1;
  for (int i = 0; i < NESTING_MOST; i++, dimension = 0) {
    type = emu_type_plain(dwarf, type);
    const struct emu_entry *e = emu_dwarf_entry(dwarf, type);
    if (!e) return 0;
    if (e->tag != EMU_TAG_ARRAY) {
      bool points = e->tag == EMU_TAG_POINTER || e->tag == EMU_TAG_REFERENCE || e->tag == EMU_TAG_RVALUE_REFERENCE;
      uint64_t bytes = e->bytes ? e->bytes : !points ? 0 : emu_type_space(e) == EMU_ADDRESS_FLAT ? 8 : 4;
      return bytes && times <= UINT32_MAX / bytes ? times * bytes : 0;
    }
    if (e->bytes && !dimension) return times <= UINT32_MAX && e->bytes <= UINT32_MAX ? times * e->bytes : 0;
    bool there;
    for (;; dimension++) {
      uint64_t count = emu_type_elements(dwarf, type, dimension, &there);
      if (!there) break;
      if (count > UINT32_MAX || times > UINT32_MAX) return 0;
      times *= count;
    }
    type = emu_dwarf_type(dwarf, type);
  }
  return 0;
}

static void add_qualified(const struct emu_dwarf *dwarf, uint32_t type, struct emu_text *out) {
  uint32_t scopes[NESTING_MOST];
  int count = 0;
  for (uint32_t at = type; at != EMU_NO_ENTRY && count < NESTING_MOST; at = emu_dwarf_entry(dwarf, at)->parent) {
    unsigned tag = emu_dwarf_entry(dwarf, at)->tag;
    bool named = tag == EMU_TAG_NAMESPACE || tag == EMU_TAG_STRUCTURE || tag == EMU_TAG_CLASS || tag == EMU_TAG_UNION;
    if (at != type && !named) break;
    scopes[count++] = at;
  }
  while (count-- > 0) {
    const char *name = emu_dwarf_name(dwarf, scopes[count]);
    const char *otherwise =
        emu_dwarf_entry(dwarf, scopes[count])->tag == EMU_TAG_NAMESPACE ? "(anonymous namespace)" : "{...}";
    emu_text_add(out, "%s%s", name ? name : otherwise, count ? "::" : "");
  }
}

// `inner` stands behind what the type is made of: "*" for a pointer to it.
static void add_name(const struct emu_dwarf *dwarf, uint32_t type, const char *inner, int nesting,
                     struct emu_text *out) {
  char room[NAME_ROOM];
  struct emu_text text = {room, 0, sizeof room};
  const struct emu_entry *e = emu_dwarf_entry(dwarf, type);
  room[0] = '\0';
  if (!e || nesting > NESTING_MOST) {
    emu_text_add(out, "void%s%s", inner[0] ? " " : "", inner);
    return;
  }
  uint32_t of = emu_dwarf_type(dwarf, type);
  switch (e->tag) {
    case EMU_TAG_POINTER:
    case EMU_TAG_REFERENCE:
    case EMU_TAG_RVALUE_REFERENCE:
      emu_text_add(&text, "%s%s", e->tag == EMU_TAG_POINTER ? "*" : e->tag == EMU_TAG_REFERENCE ? "&" : "&&", inner);
      add_name(dwarf, of, room, nesting + 1, out);
      return;
    case EMU_TAG_CONST:
    case EMU_TAG_VOLATILE: {
      const char *word = e->tag == EMU_TAG_CONST ? "const" : "volatile";
      const struct emu_entry *target = emu_dwarf_entry(dwarf, of);
      if (target && target->tag == EMU_TAG_POINTER) {
        emu_text_add(&text, " %s%s", word, inner);
        add_name(dwarf, of, room, nesting + 1, out);
      } else {
        emu_text_add(out, "%s ", word);
        add_name(dwarf, of, inner, nesting + 1, out);
      }
      return;
    }
    case EMU_TAG_RESTRICT:
      add_name(dwarf, of, inner, nesting + 1, out);
      return;
    case EMU_TAG_ARRAY: {
      bool there, points = inner[0] == '*' || inner[0] == '&';
      emu_text_add(&text, points ? "(%s)" : "%s", inner);
      for (unsigned k = 0;; k++) {
        uint64_t count = emu_type_elements(dwarf, type, k, &there);
        if (!there) break;
        if (count == EMU_NO_COUNT) {
          emu_text_add(&text, "[]");
        } else {
          emu_text_add(&text, "[%llu]", (unsigned long long)count);
        }
      }
      add_name(dwarf, of, room, nesting + 1, out);
      return;
    }
    case EMU_TAG_SUBROUTINE:
      emu_text_add(&text, inner[0] ? "(%s)(...)" : "%s(...)", inner);
      add_name(dwarf, of, room, nesting + 1, out);
      return;
    default:
      add_qualified(dwarf, type, out);
      emu_text_add(out, "%s%s", inner[0] && inner[0] != ' ' ? " " : "", inner);
  }
}

void emu_type_name(const struct emu_dwarf *dwarf, uint32_t type, struct emu_text *out) {
  add_name(dwarf, type, "", 0, out);
}
