// Values as GDB writes them.
#include <inttypes.h>
#include <string.h>

#include "debug/value.h"

enum { ELEMENTS_MOST = 200, REPEATS = 10, NESTING_MOST = 20, ELEMENT_ROOM = 4096, SAME_MOST = 1 << 20 };

static void print(const struct emu_looker *k, const struct emu_value *v, bool top, int nesting, struct emu_text *out);

// ---- numbers

// The bits of `exponent` and `mantissa` as a double.
static double small_float(uint32_t bits, unsigned exponent, unsigned mantissa) {
  uint32_t fraction = bits & ((1u << mantissa) - 1), power = bits >> mantissa & ((1u << exponent) - 1);
  int bias = (1 << (exponent - 1)) - 1, shift = (power ? (int)power : 1) - bias - (int)mantissa;
  double value = (double)(power ? fraction | 1u << mantissa : fraction);
  for (; shift > 0; shift--) value *= 2;
  for (; shift < 0; shift++) value /= 2;
  return bits >> (exponent + mantissa) & 1 ? -value : value;
}

static void print_float(uint64_t bits, uint64_t bytes, const char *name, struct emu_text *out) {
  bool bfloat = bytes == 2 && name && (strcmp(name, "__bf16") == 0);
  unsigned mantissa = bytes == 8 ? 52 : bytes == 4 ? 23 : bfloat ? 7 : 10;
  unsigned exponent = (unsigned)bytes * 8 - 1 - mantissa;
  uint64_t fraction = bits & ((UINT64_C(1) << mantissa) - 1);
  uint64_t power = bits >> mantissa & ((UINT64_C(1) << exponent) - 1);
  const char *sign = bits >> (bytes * 8 - 1) & 1 ? "-" : "";
  if (power == (UINT64_C(1) << exponent) - 1) {
    if (fraction) {
      emu_text_add(out, "%snan(0x%" PRIx64 ")", sign, fraction);
    } else {
      emu_text_add(out, "%sinf", sign);
    }
    return;
  }
  float narrow;
  double wide;
  uint32_t low = (uint32_t)bits;
  memcpy(&narrow, &low, sizeof narrow);
  memcpy(&wide, &bits, sizeof wide);
  if (bytes == 2) wide = small_float(low, exponent, mantissa);
  emu_text_add(out, "%.*g", bytes == 8 ? 17 : bytes == 4 ? 9 : bfloat ? 4 : 5, bytes == 4 ? (double)narrow : wide);
}

static void add_char(unsigned c, char quote, struct emu_text *out) {
  static const char plain[] = "\a\b\t\n\v\f\r\033", shown[] = "abtnvfre";
  const char *found = c ? strchr(plain, (int)c) : NULL;
  if (found && c < 0x80) {
    emu_text_add(out, "\\%c", shown[found - plain]);
  } else if (c == (unsigned char)quote || c == '\\') {
    emu_text_add(out, "\\%c", (int)c);
  } else if (c >= 0x20 && c < 0x7f) {
    emu_text_add(out, "%c", (int)c);
  } else {
    emu_text_add(out, "\\%03o", c);
  }
}

// The enumerator of the value, or those of single bits that make up an enumeration of flags: (A | B | unknown: 0x8).
static void print_enumerator(const struct emu_looker *k, uint32_t type, int64_t value, struct emu_text *out) {
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, type);
  bool flags = true, any = false;
  uint64_t left = (uint64_t)value, seen = 0;
  for (uint32_t i = type + 1; i < e->end; i = emu_dwarf_entry(k->dwarf, i)->end) {
    const struct emu_entry *child = emu_dwarf_entry(k->dwarf, i);
    if (child->tag != EMU_TAG_ENUMERATOR || !child->name) continue;
    if (child->value == value) {
      emu_text_add(out, "%s", child->name);
      return;
    }
    if (__builtin_popcountll((uint64_t)child->value) > 1 || child->value < 0 || (uint64_t)child->value & seen)
      flags = false;
    seen |= (uint64_t)child->value;
  }
  if (!flags || !value) {
    emu_text_add(out, "%" PRId64, value);
    return;
  }
  emu_text_add(out, "(");
  for (uint32_t i = type + 1; i < e->end; i = emu_dwarf_entry(k->dwarf, i)->end) {
    const struct emu_entry *child = emu_dwarf_entry(k->dwarf, i);
    if (child->tag != EMU_TAG_ENUMERATOR || !child->name || !((uint64_t)child->value & left)) continue;
    emu_text_add(out, "%s%s", any ? " | " : "", child->name);
    left &= ~(uint64_t)child->value;
    any = true;
  }
  if (left) emu_text_add(out, "%sunknown: 0x%" PRIx64, any ? " | " : "", left);
  emu_text_add(out, ")");
}

static void print_base(const struct emu_entry *e, int64_t value, uint64_t bytes, struct emu_text *out) {
  switch (e->encoding) {
    case EMU_ENCODING_FLOAT:
      print_float((uint64_t)value, bytes, e->name, out);
      return;
    case EMU_ENCODING_BOOLEAN:
      if (value == 0 || value == 1) {
        emu_text_add(out, value ? "true" : "false");
      } else {
        emu_text_add(out, "%" PRId64, value);
      }
      return;
    case EMU_ENCODING_SIGNED_CHAR:
    case EMU_ENCODING_UNSIGNED_CHAR:
      emu_text_add(out, "%" PRId64 " '", value);
      add_char((unsigned char)value, '\'', out);
      emu_text_add(out, "'");
      return;
    case EMU_ENCODING_SIGNED:
      emu_text_add(out, "%" PRId64, value);
      return;
    default:
      emu_text_add(out, "%" PRIu64, (uint64_t)value);
  }
}

// ---- arrays

static bool is_text(const struct emu_looker *k, uint32_t element) {
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, emu_type_plain(k->dwarf, element));
  bool character = e && (e->encoding == EMU_ENCODING_SIGNED_CHAR || e->encoding == EMU_ENCODING_UNSIGNED_CHAR);
  return character && e->tag == EMU_TAG_BASE && e->bytes == 1;
}

// Characters with what repeats often apart: "abc", '\000' <repeats 12 times>.
static void print_text(const uint8_t *text, size_t length, bool more, struct emu_text *out) {
  bool quoted = false, any = false;
  for (size_t i = 0; i < length;) {
    size_t same = 1;
    while (i + same < length && text[i + same] == text[i]) same++;
    if (same > REPEATS) {
      emu_text_add(out, "%s%s'", quoted ? "\"" : "", any ? ", " : "");
      add_char(text[i], '\'', out);
      emu_text_add(out, "' <repeats %zu times>", same);
      quoted = false;
      i += same;
    } else {
      if (!quoted) emu_text_add(out, "%s\"", any ? ", " : "");
      quoted = true;
      add_char(text[i++], '"', out);
    }
    any = true;
  }
  emu_text_add(out, "%s%s", quoted ? "\"" : any ? "" : "\"\"", more ? "..." : "");
}

static bool print_text_array(const struct emu_looker *k, const struct emu_value *v, uint64_t count,
                             struct emu_text *out) {
  uint8_t text[ELEMENTS_MOST];
  uint64_t bad, some = count < ELEMENTS_MOST ? count : ELEMENTS_MOST;
  if (emu_value_fetch(k, v, 0, text, (size_t)some, &bad) != EMU_FETCHED) return false;
  bool drop = some && some == count && !text[some - 1];
  print_text(text, (size_t)(drop ? some - 1 : some), some < count, out);
  return true;
}

static void print_array(const struct emu_looker *k, const struct emu_value *v, int nesting, struct emu_text *out) {
  char rooms[2][ELEMENT_ROOM];
  bool there, first = true;
  uint64_t count = emu_type_elements(k->dwarf, emu_type_plain(k->dwarf, v->type), v->dimension, &there);
  struct emu_value element;
  if (!there || count == EMU_NO_COUNT) {
    emu_text_add(out, "<of unknown length>");
    return;
  }
  if (count && emu_value_element(k, v, 0, &element) == NULL && !element.dimension && is_text(k, element.type) &&
      print_text_array(k, v, count, out))
    return;
  emu_text_add(out, "{");
  uint64_t shown = 0, i = 0;
  int now = 0;
  if (count) {
    struct emu_text text = {rooms[now], 0, ELEMENT_ROOM};
    rooms[now][0] = '\0';
    if (!emu_value_element(k, v, 0, &element)) print(k, &element, false, nesting + 1, &text);
  }
  while (i < count && shown < ELEMENTS_MOST && out->used + 1 < out->room) {
    uint64_t same = 1;
    // what the element after the equal ones is stays for the next turn
    for (;; same++) {
      struct emu_text text = {rooms[!now], 0, ELEMENT_ROOM};
      rooms[!now][0] = '\0';
      if (i + same >= count || same == SAME_MOST) break;
      if (!emu_value_element(k, v, (int64_t)(i + same), &element)) print(k, &element, false, nesting + 1, &text);
      if (strcmp(rooms[0], rooms[1]) != 0) break;
    }
    if (same > REPEATS) {
      emu_text_add(out, "%s%s <repeats %" PRIu64 " times>", first ? "" : ", ", rooms[now], same);
      shown += REPEATS;
    } else {
      for (uint64_t n = 0; n < same && shown < ELEMENTS_MOST; n++, shown++)
        emu_text_add(out, "%s%s", first && !n ? "" : ", ", rooms[now]);
    }
    first = false;
    i += same;
    now = !now;
  }
  emu_text_add(out, i < count ? "...}" : "}");
}

// ---- structures and pointers

static void print_members(const struct emu_looker *k, const struct emu_value *v, int nesting, struct emu_text *out) {
  uint32_t type = emu_type_plain(k->dwarf, v->type);
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, type);
  bool first = true;
  emu_text_add(out, "{");
  // a full text ends it: structures that claim to hold themselves are as many as 2 to the depth
  for (uint32_t i = type + 1; i < e->end && out->used + 1 < out->room; i = emu_dwarf_entry(k->dwarf, i)->end) {
    const struct emu_entry *m = emu_dwarf_entry(k->dwarf, i);
    bool inherited = m->tag == EMU_TAG_INHERITANCE;
    if (!inherited && (m->tag != EMU_TAG_MEMBER || m->declaration)) continue;
    struct emu_value member = *v;
    member.dimension = 0;
    member.type = emu_dwarf_type(k->dwarf, i);
    member.from += m->member_at + m->bit_at / 8;
    member.bit_from = (unsigned)(m->bit_at % 8);
    member.bit_size = (unsigned)(m->bit_size < 64 ? m->bit_size : 64);
    emu_text_add(out, "%s", first ? "" : ", ");
    if (inherited) {
      emu_text_add(out, "<");
      emu_type_name(k->dwarf, member.type, out);
      emu_text_add(out, "> = ");
    } else if (m->name) {
      emu_text_add(out, "%s = ", m->name);
    }
    print(k, &member, false, nesting + 1, out);
    first = false;
  }
  emu_text_add(out, first ? "<No data fields>}" : "}");
}

static void print_pointer(const struct emu_looker *k, const struct emu_value *v, int64_t address, bool top,
                          struct emu_text *out) {
  struct emu_value target, letter;
  const struct emu_entry *e = emu_dwarf_entry(k->dwarf, emu_type_plain(k->dwarf, v->type));
  uint32_t of = emu_dwarf_type(k->dwarf, emu_type_plain(k->dwarf, v->type));
  if (e->tag != EMU_TAG_POINTER) {
    emu_text_add(out, "@0x%" PRIx64, (uint64_t)address);
    return;
  }
  bool text = is_text(k, of);
  if (top && !text) {
    emu_text_add(out, "(");
    emu_type_name(k->dwarf, v->type, out);
    emu_text_add(out, ") ");
  }
  emu_text_add(out, "0x%" PRIx64, (uint64_t)address);
  if (!text || !address || emu_value_target(k, v, &target)) return;
  uint8_t letters[ELEMENTS_MOST];
  size_t length = 0;
  uint64_t bad;
  for (; length < sizeof letters; length++) {
    if (emu_value_element(k, v, (int64_t)length, &letter)) break;
    if (emu_value_fetch(k, &letter, 0, &letters[length], 1, &bad) != EMU_FETCHED) return;
    if (!letters[length]) break;
  }
  emu_text_add(out, " ");
  print_text(letters, length, length == sizeof letters, out);
}

// ---- values

static void print_whole(const struct emu_looker *k, const struct emu_value *v, const struct emu_entry *e, int64_t value,
                        bool top, struct emu_text *out) {
  if (v->points) {
    emu_text_add(out, "(");
    emu_type_name(k->dwarf, v->type, out);
    emu_text_add(out, " *) 0x%" PRIx64, (uint64_t)value);
  } else if (!e) {
    emu_text_add(out, "%" PRId64, value);
  } else if (e->tag == EMU_TAG_ENUMERATION) {
    print_enumerator(k, emu_type_plain(k->dwarf, v->type), value, out);
  } else if (e->tag == EMU_TAG_BASE) {
    print_base(e, value, emu_value_bytes(k, v), out);
  } else {
    print_pointer(k, v, value, top, out);
  }
}

static void print_number(const struct emu_looker *k, const struct emu_value *v, const struct emu_entry *e, bool top,
                         struct emu_text *out) {
  uint64_t bytes = emu_value_bytes(k, v), span = v->bit_size ? (v->bit_from + v->bit_size + 7) / 8 : bytes;
  uint64_t bits = 0, bad = 0;
  if (!span || span > 8) {
    emu_text_add(out, "<%" PRIu64 " bytes of a type that is not known here>", bytes);
    return;
  }
  enum emu_fetched how = emu_value_fetch(k, v, 0, &bits, (size_t)span, &bad);
  int64_t value = (int64_t)bits;
  bool real = e && e->tag == EMU_TAG_BASE && e->encoding == EMU_ENCODING_FLOAT;
  if (how == EMU_FETCHED_NOTHING) {
    emu_text_add(out, "<optimized out>");
  } else if (how == EMU_FETCHED_NO_MEMORY) {
    emu_text_add(out, "<error: Cannot access memory at address 0x%" PRIx64 ">", bad);
  } else if (!real && emu_value_whole(k, v, &value)) {
    emu_text_add(out, "<a type that is not known here>");
  } else {
    print_whole(k, v, e, value, top, out);
  }
}

static void print(const struct emu_looker *k, const struct emu_value *v, bool top, int nesting, struct emu_text *out) {
  const struct emu_entry *e = v->points ? NULL : emu_dwarf_entry(k->dwarf, emu_type_plain(k->dwarf, v->type));
  if (v->why) {
    emu_text_add(out, "<%s>", v->why);
  } else if (nesting > NESTING_MOST) {
    emu_text_add(out, "{...}");
  } else if (v->count == 1 && v->pieces[0].kind == EMU_PIECE_NOWHERE) {
    emu_text_add(out, "<optimized out>");
  } else if (!e && !v->points && v->type != EMU_NO_ENTRY) {
    emu_text_add(out, "void");
  } else if (e && e->tag == EMU_TAG_ARRAY) {
    print_array(k, v, nesting, out);
  } else if (e && (e->tag == EMU_TAG_STRUCTURE || e->tag == EMU_TAG_CLASS || e->tag == EMU_TAG_UNION)) {
    if (e->declaration) {
      emu_text_add(out, "<incomplete type>");
    } else {
      print_members(k, v, nesting, out);
    }
  } else {
    print_number(k, v, e, top, out);
  }
}

void emu_value_print(const struct emu_looker *k, const struct emu_value *v, bool top, struct emu_text *out) {
  print(k, v, top, 0, out);
}
