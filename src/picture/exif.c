#include "picture/exif.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint32_t number(const uint8_t *at, int bytes, bool little) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | at[little ? bytes - 1 - i : i];
  return value;
}

enum { HEADER = 8, ENTRY = 12, SHORT = 3, LONG = 4, UNDEFINED = 7 };
enum { ORIENTATION = 0x0112, EXIF_TABLE = 0x8769, USER_COMMENT = 0x9286 }; /* tags */

/* A TIFF file; size 0: it is none. */
typedef struct tiff {
  const uint8_t *at;
  size_t size;
  bool little;
} tiff;

static tiff open_tiff(const uint8_t *at, size_t size) {
  if (size < HEADER || (memcmp(at, "II*\0", 4) != 0 && memcmp(at, "MM\0*", 4) != 0)) return (tiff){0};
  return (tiff){at, size, at[0] == 'I'};
}

/* The entry |tag| of the table that begins at |table|; NULL: there is none. */
static const uint8_t *find(const tiff *t, size_t table, uint32_t tag) {
  if (table > t->size || t->size - table < 2) return NULL;
  size_t count = number(t->at + table, 2, t->little), first = table + 2;
  for (size_t i = 0; i < count && t->size - first >= (i + 1) * ENTRY; i++)
    if (number(t->at + first + i * ENTRY, 2, t->little) == tag) return t->at + first + i * ENTRY;
  return NULL;
}

static uint32_t kind_of(const tiff *t, const uint8_t *entry) { return number(entry + 2, 2, t->little); }

int rdna__exif_orientation(const uint8_t *at, size_t size) {
  tiff t = open_tiff(at, size);
  const uint8_t *entry = t.size ? find(&t, number(at + 4, 4, t.little), ORIENTATION) : NULL;
  uint32_t kind = entry ? kind_of(&t, entry) : 0;
  if (kind != SHORT && kind != LONG) return RDNA__EXIF_PLAIN; /* some write it long */
  uint32_t value = number(entry + 8, kind == SHORT ? 2 : 4, t.little);
  return value >= RDNA__EXIF_PLAIN && value <= RDNA__EXIF_MOST ? (int)value : RDNA__EXIF_PLAIN;
}

/* ---- the comment ---- */

enum { CODE = 8 }; /* bytes that say how a comment is written */
static const char unicode[CODE] = "UNICODE", ascii[CODE] = "ASCII\0\0";

/* UTF-16 in files of either order of bytes is written in either order: in a text the halves with more zeros are the
 * high ones. */
static bool is_little(const uint8_t *at, size_t size) {
  size_t zeros[2] = {0};
  for (size_t i = 0; i < size; i++) zeros[i % 2] += at[i] == 0;
  return zeros[1] > zeros[0];
}

static size_t put_utf8(uint32_t c, char *to) {
  size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
  for (size_t i = more; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
  to[0] = (char)(heads[more] | c);
  return more + 1;
}

/* As UTF-8, up to a zero; a half without its other one becomes U+FFFD. */
static char *text_of_utf16(const uint8_t *at, size_t size) {
  bool little = is_little(at, size);
  char *text = malloc(3 * (size / 2) + 1), *to = text;
  for (size_t i = 0; text && i + 2 <= size; i += 2) {
    uint32_t c = number(at + i, 2, little), next = i + 4 <= size ? number(at + i + 2, 2, little) : 0;
    if (c == 0) break;
    if (c >= 0xd800 && c < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
      c = 0x10000 + ((c - 0xd800) << 10) + (next - 0xdc00);
      i += 2;
    }
    to += put_utf8(c >= 0xd800 && c < 0xe000 ? 0xfffd : c, to);
  }
  if (text) *to = 0;
  return text;
}

char *rdna__exif_comment(const uint8_t *at, size_t size) {
  tiff t = open_tiff(at, size);
  const uint8_t *entry = t.size ? find(&t, number(at + 4, 4, t.little), EXIF_TABLE) : NULL;
  if (entry) entry = find(&t, number(entry + 8, 4, t.little), USER_COMMENT);
  if (!entry || kind_of(&t, entry) != UNDEFINED) return NULL;
  size_t length = number(entry + 4, 4, t.little), begin = number(entry + 8, 4, t.little);
  if (length <= CODE || begin > size || length > size - begin) return NULL;
  const uint8_t *text = at + begin + CODE;
  if (memcmp(at + begin, unicode, CODE) == 0) return text_of_utf16(text, length - CODE);
  if (memcmp(at + begin, ascii, CODE) != 0) return NULL;
  for (size_t i = 0; i < length - CODE; i++)
    if (text[i] >= 0x80) return NULL;
  return strndup((const char *)text, length - CODE);
}

static void put(uint8_t **to, uint32_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; i--) *(*to)++ = (uint8_t)(value >> 8 * i);
}

/* A character of valid UTF-8, behind which |*text| stands then. */
static uint32_t next_character(const uint8_t **text) {
  uint32_t c = *(*text)++;
  int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
  if (more) c &= 0x3fu >> more;
  for (; more > 0; more--) c = c << 6 | (*(*text)++ & 0x3f);
  return c;
}

static size_t utf16_size(const char *text) {
  size_t size = 0;
  for (const uint8_t *at = (const uint8_t *)text; *at;) size += next_character(&at) < 0x10000 ? 2 : 4;
  return size;
}

rdna_status rdna__exif_check_comment(const char *text) {
  if (utf16_size(text) <= RDNA__EXIF_MOST_TEXT) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT,
                    "a picture's parameters have %zu characters; a JPEG has room for %d: a PNG has more",
                    utf16_size(text) / 2, RDNA__EXIF_MOST_TEXT / 2);
}

rdna_status rdna__exif_of_comment(const char *text, uint8_t **out_bytes, size_t *out_size) {
  enum { TABLE = 2 + ENTRY + 4, SECOND = HEADER + TABLE, TEXT = SECOND + TABLE };
  RDNA_TRY(rdna__exif_check_comment(text));
  size_t size = utf16_size(text);
  uint8_t *to = malloc(TEXT + CODE + size);
  if (!to) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's text");
  *out_bytes = to;
  *out_size = TEXT + CODE + size;
  memcpy(to, "MM\0*\0\0\0\x08", HEADER);
  to += HEADER;
  const uint32_t rows[2][3] = {{EXIF_TABLE, LONG, SECOND}, {USER_COMMENT, UNDEFINED, TEXT}};
  for (int i = 0; i < 2; i++) {
    put(&to, 1, 2); /* entry */
    put(&to, rows[i][0], 2);
    put(&to, rows[i][1], 2);
    put(&to, i ? (uint32_t)(CODE + size) : 1, 4);
    put(&to, rows[i][2], 4);
    put(&to, 0, 4); /* no table behind this one */
  }
  memcpy(to, unicode, CODE);
  to += CODE;
  for (const uint8_t *at = (const uint8_t *)text; *at;) {
    uint32_t c = next_character(&at);
    if (c >= 0x10000) put(&to, 0xd800 + ((c - 0x10000) >> 10), 2);
    put(&to, c >= 0x10000 ? 0xdc00 + (c & 0x3ff) : c, 2);
  }
  return RDNA_OK;
}

/* Each of the two sides of what is in the file may be read backwards. */
rdna_status rdna__exif_turn(int orientation, rdna__picture *picture) {
  if (orientation == RDNA__EXIF_PLAIN) return RDNA_OK;
  bool swaps = orientation > 4;
  bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  size_t width = (size_t)picture->width, channels = (size_t)picture->channels;
  rdna__picture out = *picture;
  if (swaps) out.width = picture->height, out.height = picture->width;
  if (!picture->pixels) {
    *picture = out;
    return RDNA_OK;
  }
  RDNA_TRY(rdna__picture_init(&out, out.width, out.height, picture->channels));
  uint8_t *to = out.pixels;
  for (int y = 0; y < out.height; y++)
    for (int x = 0; x < out.width; x++, to += channels) {
      int column = swaps ? y : x, row = swaps ? x : y;
      if (from_right) column = picture->width - 1 - column;
      if (from_below) row = picture->height - 1 - row;
      memcpy(to, picture->pixels + channels * ((size_t)row * width + (size_t)column), channels);
    }
  out.parameters = picture->parameters;
  picture->parameters = NULL;
  rdna__picture_deinit(picture);
  *picture = out;
  return RDNA_OK;
}
