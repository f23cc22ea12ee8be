/* Unicode's normal forms D and C (Unicode Standard Annex 15): characters are taken apart, their marks put in order, and
 * in form C what can be one character becomes one again.
 *
 *     e U+0301  ->  U+00E9        e U+0301 U+0323  ->  U+1EB9 U+0301        U+212B  ->  U+00C5 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unicode_tables.h"

enum {
  FIRST_OF_INTEREST = 0x300, /* characters below are what they are, alone and before another of them */
  NO_CHARACTER = 0x110000,   /* plus a byte that is not UTF-8 */
  SYLLABLES = 0xac00,        /* Hangul's, of a first, a second and perhaps a third part */
  FIRSTS = 0x1100,
  SECONDS = 0x1161,
  THIRDS = 0x11a7,
  FIRST_COUNT = 19,
  SECOND_COUNT = 21,
  THIRD_COUNT = 28,
  SYLLABLE_COUNT = FIRST_COUNT * SECOND_COUNT * THIRD_COUNT,
  ROWS = sizeof unicode_decompositions / (3 * sizeof(uint32_t)),
  COMPOSED = sizeof unicode_compositions / sizeof(uint16_t),
  CLASSES = sizeof unicode_classes / (3 * sizeof(uint32_t))
};

/* Characters of a piece of text: code in the low 24 bits, above them the place, above that the class, so that sorting
 * numbers sorts marks as they should be. */
typedef struct piece {
  uint64_t *marks;
  size_t count, capacity;
} piece;

static uint32_t code_of(uint64_t mark) { return (uint32_t)(mark & 0xffffff); }
static uint32_t class_of(uint64_t mark) { return (uint32_t)(mark >> 56); }

static uint32_t find_class(uint32_t code) {
  size_t low = 0, high = CLASSES;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const uint32_t *row = unicode_classes + 3 * middle;
    if (code < row[0])
      high = middle;
    else if (code > row[1])
      low = middle + 1;
    else
      return row[2];
  }
  return 0;
}

static const uint32_t *find_decomposition(uint32_t code) {
  size_t low = 0, high = ROWS;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const uint32_t *row = unicode_decompositions + 3 * middle;
    if (code == row[0]) return row;
    if (code < row[0])
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

static rdna_status append(piece *p, uint32_t code) {
  if (p->count == p->capacity) {
    size_t capacity = p->capacity ? 2 * p->capacity : 64;
    uint64_t *grown = realloc(p->marks, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to normalize a text");
    p->marks = grown;
    p->capacity = capacity;
  }
  uint64_t place = p->count & 0xffffffff;
  p->marks[p->count++] = (uint64_t)find_class(code) << 56 | place << 24 | code;
  return RDNA_OK;
}

static rdna_status append_parts(piece *p, uint32_t code) {
  if (code >= SYLLABLES && code < SYLLABLES + SYLLABLE_COUNT) {
    uint32_t syllable = code - SYLLABLES, third = syllable % THIRD_COUNT;
    RDNA_TRY(append(p, FIRSTS + syllable / (SECOND_COUNT * THIRD_COUNT)));
    RDNA_TRY(append(p, SECONDS + syllable / THIRD_COUNT % SECOND_COUNT));
    return third ? append(p, THIRDS + third) : RDNA_OK;
  }
  const uint32_t *row = find_decomposition(code);
  if (!row) return append(p, code);
  RDNA_TRY(append_parts(p, row[1])); /* a few deep at most */
  return row[2] ? append(p, row[2]) : RDNA_OK;
}

static int compare(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

static void put_in_order(piece *p) {
  for (size_t i = 0, end; i < p->count; i = end + 1) {
    for (end = i; end < p->count && class_of(p->marks[end]) != 0;) end++;
    if (end - i > 1) qsort(p->marks + i, end - i, sizeof *p->marks, compare);
  }
}

/* What |first| and |second| are as one character; 0: nothing. */
static uint32_t compose(uint32_t first, uint32_t second) {
  if (first - FIRSTS < FIRST_COUNT && second - SECONDS < SECOND_COUNT)
    return SYLLABLES + ((first - FIRSTS) * SECOND_COUNT + second - SECONDS) * THIRD_COUNT;
  if (first - SYLLABLES < SYLLABLE_COUNT && (first - SYLLABLES) % THIRD_COUNT == 0 &&
      second - THIRDS - 1 < THIRD_COUNT - 1)
    return first + second - THIRDS;
  size_t low = 0, high = COMPOSED;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const uint32_t *row = unicode_decompositions + 3 * unicode_compositions[middle];
    if (first == row[1] && second == row[2]) return row[0];
    if (first < row[1] || (first == row[1] && second < row[2]))
      high = middle;
    else
      low = middle + 1;
  }
  return 0;
}

/* A character is joined to the last one of class 0 when no character between them is of its class or of none. */
static void put_together(piece *p) {
  size_t out = 0, starter = SIZE_MAX;
  for (size_t i = 0; i < p->count; i++) {
    uint64_t mark = p->marks[i];
    uint32_t class = class_of(mark), joined = 0;
    bool next = starter != SIZE_MAX && out == starter + 1;
    if (starter != SIZE_MAX && (next || (class != 0 && class_of(p->marks[out - 1]) < class)))
      joined = compose(code_of(p->marks[starter]), code_of(mark));
    if (joined) {
      p->marks[starter] = joined;
      continue;
    }
    if (class == 0) starter = out;
    p->marks[out++] = mark;
  }
  p->count = out;
}

size_t rdna__put_utf8(uint32_t code, char *out) {
  if (code >= NO_CHARACTER || code < 0x80) {
    out[0] = (char)(code & 0xff);
    return 1;
  }
  size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)(0xf00u >> length | code);
  return length;
}

uint32_t rdna__next_code(const char *text, size_t size, size_t *out_length) {
  int length = rdna__utf8_length(text, size);
  const uint8_t *bytes = (const uint8_t *)text;
  *out_length = length < 1 ? 1 : (size_t)length;
  if (length < 1) return NO_CHARACTER + bytes[0];
  uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);
  for (int i = 1; i < length; i++) code = code << 6 | (bytes[i] & 0x3fu);
  return code;
}

/* |text| in normal form, behind |*size| bytes of |*out|. */
static rdna_status normalize(piece *p, rdna_text text, bool composed, char **out, size_t *size, size_t *capacity) {
  p->count = 0;
  for (size_t i = 0, length; i < text.size; i += length)
    RDNA_TRY(append_parts(p, rdna__next_code(text.data + i, text.size - i, &length)));
  put_in_order(p);
  if (composed) put_together(p);
  if (*capacity - *size < 4 * p->count) {
    *capacity = 2 * (*size + 4 * p->count);
    char *grown = realloc(*out, *capacity);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to normalize a text");
    *out = grown;
  }
  for (size_t i = 0; i < p->count; i++) *size += rdna__put_utf8(code_of(p->marks[i]), *out + *size);
  return RDNA_OK;
}

rdna_status rdna__normal_form(rdna_text text, bool composed, char **out_text, size_t *out_size) {
  const uint8_t first_byte = composed ? 0xcc : 0xc3; /* U+0300 is CC 80, and U+00C0 is C3 80 */
  piece p = {0};
  char *out = NULL;
  size_t size = 0, capacity = 0, length;
  bool ordinary = true;
  for (size_t i = 0; ordinary && i < text.size; i++) ordinary = (uint8_t)text.data[i] < first_byte;
  *out_text = NULL;
  if (ordinary) return RDNA_OK;
  rdna_status status = RDNA_OK;
  /* pieces begin with a character that joins none before it */
  for (size_t start = 0, end; start < text.size && status == RDNA_OK; start = end) {
    (void)rdna__next_code(text.data + start, text.size - start, &length);
    for (end = start + length; end < text.size; end += length)
      if (rdna__next_code(text.data + end, text.size - end, &length) < FIRST_OF_INTEREST) break;
    status = normalize(&p, (rdna_text){text.data + start, end - start}, composed, &out, &size, &capacity);
  }
  free(p.marks);
  if (status == RDNA_OK) {
    *out_text = out;
    *out_size = size;
  } else {
    free(out);
  }
  return status;
}
