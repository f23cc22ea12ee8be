// The variables of a code object: what has a name, an address and a size.
#include <stdlib.h>
#include <string.h>

#include "object/bytes.h"
#include "object/object.h"

enum { SYMBOL_BYTES = 24, STT_OBJECT = 1, SHN_UNDEF = 0, SHN_LORESERVE = 0xff00 };

static int by_address(const void *a, const void *b) {
  const struct emu_symbol *x = a, *y = b;
  if (x->address != y->address) return x->address < y->address ? -1 : 1;
  return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static void read_table(const struct emu_object *object, const uint8_t *symbols, size_t bytes, const char *names,
                       size_t names_bytes, struct emu_symbol *out, unsigned *count) {
  for (size_t at = SYMBOL_BYTES; at + SYMBOL_BYTES <= bytes; at += SYMBOL_BYTES) {
    const uint8_t *p = symbols + at;
    uint32_t name = emu_read32(p);
    unsigned section = emu_read16(p + 6);
    struct emu_symbol s = {.address = emu_read64(p + 8), .bytes = emu_read64(p + 16), .object = true};
    if ((p[4] & 15) != STT_OBJECT || section == SHN_UNDEF || section >= SHN_LORESERVE || !s.bytes) continue;
    if (s.address < object->low || !emu_within(s.address, s.bytes, object->high)) continue;
    if (name >= names_bytes || !memchr(names + name, 0, names_bytes - name)) continue;
    s.name = names + name;
    out[(*count)++] = s;
  }
}

// Those that share bytes become one: two names of the same, or texts of which one is the end of the other.
static unsigned join(struct emu_symbol *s, unsigned count) {
  unsigned kept = 0;
  for (unsigned i = 0; i < count; i++) {
    struct emu_symbol *last = kept ? &s[kept - 1] : NULL;
    if (!last || s[i].address >= last->address + last->bytes) {
      s[kept++] = s[i];
    } else if (s[i].address + s[i].bytes > last->address + last->bytes) {
      last->bytes = s[i].address + s[i].bytes - last->address;
    }
  }
  return kept;
}

struct emu_symbol *emu_object_variables(const struct emu_object *object, unsigned *out_count) {
  static const char *const tables[2][2] = {{".symtab", ".strtab"}, {".dynsym", ".dynstr"}};  // static ones, or stripped
  *out_count = 0;
  for (int i = 0; i < 2; i++) {
    size_t bytes = 0, names_bytes = 0;
    const uint8_t *symbols = emu_object_section(object, tables[i][0], &bytes);
    const uint8_t *names = emu_object_section(object, tables[i][1], &names_bytes);
    if (!symbols || !names) continue;
    struct emu_symbol *out = calloc(bytes / SYMBOL_BYTES + 1, sizeof *out);
    if (!out) return NULL;
    read_table(object, symbols, bytes, (const char *)names, names_bytes, out, out_count);
    qsort(out, *out_count, sizeof *out, by_address);
    *out_count = join(out, *out_count);
    return out;
  }
  return NULL;
}
