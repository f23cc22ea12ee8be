/* Characters of UTF-8: what they are, in every locale the same. */
#include <locale.h>
#include <string.h>
#include <wctype.h>

#include "model/template/template.h"

bool rdna__tpl_is_utf8(const char *data, size_t size) {
  for (size_t at = 0; at < size;) {
    const unsigned char *p = (const unsigned char *)data + at;
    size_t length = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : 4;
    if (p[0] > 0xf4 || (p[0] >= 0x80 && p[0] < 0xc2) || length > size - at) return false;
    for (size_t i = 1; i < length; i++)
      if ((p[i] & 0xc0) != 0x80) return false;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) return false; /* too long; surrogates */
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return false; /* too long; too large */
    at += length;
  }
  return true;
}

uint32_t rdna__tpl_next(rdna_text text, size_t *at) {
  const unsigned char *p = (const unsigned char *)text.data + *at;
  size_t length = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
  uint32_t character = length == 1 ? p[0] : p[0] & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) character = character << 6 | (p[i] & 0x3f);
  *at += length;
  return character;
}

size_t rdna__tpl_put(uint32_t c, char out[4]) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = length; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)((0xf00 >> length & 0xff) | c);
  return length;
}

int64_t rdna__tpl_count(rdna_text text) {
  int64_t count = 0;
  for (size_t i = 0; i < text.size; i++) count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
  return count;
}

typedef struct range {
  uint32_t first, last;
} range;

static bool is_in(const range *ranges, size_t count, uint32_t c) {
  for (size_t i = 0; i < count; i++)
    if (c >= ranges[i].first && c <= ranges[i].last) return true;
  return false;
}

bool rdna__tpl_is_space(uint32_t c) {
  static const range spaces[] = {{0x09, 0x0d},     {0x1c, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                                 {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                 {0x205f, 0x205f}, {0x3000, 0x3000}};
  return is_in(spaces, sizeof spaces / sizeof *spaces, c);
}

bool rdna__tpl_is_printable(uint32_t c) {
  /* white space but the space, control and format characters, private use; what Unicode has not assigned is not here */
  static const range hidden[] = {
      {0x00, 0x1f},       {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
      {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},
      {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
      {0xd800, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
      {0x110cd, 0x110cd}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff}, {0xf0000, 0x10ffff}};
  return !is_in(hidden, sizeof hidden / sizeof *hidden, c);
}

/* Names for the tables of characters that glibc brings in every installation; NULL, and ASCII alone, without it. */
static locale_t unicode(void) {
  static _Atomic(locale_t) kept;
  locale_t found = kept;
  if (found) return found;
  found = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  locale_t other = (locale_t)0;
  if (found &&
      !__atomic_compare_exchange_n((locale_t *)&kept, &other, found, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    freelocale(found); /* another thread was first */
    return other;
  }
  return found;
}

bool rdna__tpl_is_alpha(uint32_t c) {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  locale_t names = unicode();
  return names && iswalpha_l((wint_t)c, names);
}

bool rdna__tpl_is_word(uint32_t c) { return c == '_' || (c >= '0' && c <= '9') || rdna__tpl_is_alpha(c); }

uint32_t rdna__tpl_upper(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  locale_t names = unicode();
  return names ? (uint32_t)towupper_l((wint_t)c, names) : c;
}

uint32_t rdna__tpl_lower(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  locale_t names = unicode();
  return names ? (uint32_t)towlower_l((wint_t)c, names) : c;
}

int64_t rdna__tpl_find(rdna_text text, rdna_text part, size_t from) {
  if (part.size == 0) return from <= text.size ? (int64_t)from : -1;
  if (from >= text.size) return -1;
  const char *found = memmem(text.data + from, text.size - from, part.data, part.size);
  return found ? found - text.data : -1;
}

bool rdna__tpl_is(rdna_text text, const char *word) {
  return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}
