/* Regular expressions of a schema's strings (ECMA-262, as JSON Schema names it) as expressions of a grammar: what is
 * regular in them, over the characters of JSON with their escapes. Anchors stand at the ends of alternatives alone. */
#include <stdlib.h>
#include <string.h>

#include "model/grammar/grammar_net.h"
#include "model/grammar/schema.h"

enum { MOST_RANGES = 256, MOST_GROUPS = 32, LAST = 0x10ffff };

/* Characters. Ranges may overlap until they are settled. */
typedef struct charset {
  code_range ranges[MOST_RANGES];
  size_t count;
} charset;

typedef struct pattern {
  schema_compiler *c;
  const char *at;
} pattern;

static void refuse(pattern *p, const char *what) {
  rdna__schema_refuse(p->c, RDNA_UNSUPPORTED, "%s in a pattern cannot be enforced", what);
}

static void add(pattern *p, charset *set, uint32_t low, uint32_t high) {
  if (set->count == MOST_RANGES) {
    refuse(p, "a class of more than 256 ranges");
    return;
  }
  set->ranges[set->count++] = (code_range){low, high};
}

static int compare(const void *a, const void *b) {
  const code_range *left = a, *right = b;
  return (left->low > right->low) - (left->low < right->low);
}

/* In order, without overlaps; what is between them when |inverted|. */
static void settle(pattern *p, charset *set, bool inverted) {
  if (set->count) qsort(set->ranges, set->count, sizeof *set->ranges, compare);
  charset out = {.count = 0};
  uint32_t from = 0;
  for (size_t i = 0; i < set->count; i++) {
    code_range r = set->ranges[i];
    if (r.high < from) continue;
    if (r.low < from) r.low = from;
    if (!inverted) {
      add(p, &out, r.low, r.high);
    } else if (r.low > from) {
      add(p, &out, from, r.low - 1);
    }
    from = r.high + 1;
  }
  if (inverted && from <= LAST) add(p, &out, from, LAST);
  *set = out;
}

static bool has(const charset *set, uint32_t character) {
  for (size_t i = 0; i < set->count; i++)
    if (character >= set->ranges[i].low && character <= set->ranges[i].high) return true;
  return false;
}

/* Writes a settled set: the characters that stand for themselves in JSON, and the escapes of others. */
static void put_set(pattern *p, const charset *set) {
  static const struct {
    char character;
    const char *escape;
  } escapes[] = {{'"', "\\\\\\\""}, {'\\', "\\\\\\\\"}, {'\n', "\\\\n"}, {'\t', "\\\\t"},
                 {'\r', "\\\\r"},   {'\f', "\\\\f"},    {'\b', "\\\\b"}};
  static const code_range plain[] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0xd7ff}, {0xe000, LAST}};
  schema_compiler *c = p->c;
  const char *before = "([";
  bool any = false;
  for (size_t i = 0; i < set->count; i++)
    for (size_t j = 0; j < sizeof plain / sizeof *plain; j++) {
      uint32_t low = set->ranges[i].low, high = set->ranges[i].high;
      if (low < plain[j].low) low = plain[j].low;
      if (high > plain[j].high) high = plain[j].high;
      if (low > high) continue;
      rdna__schema_put(c, "%s\\U%08X-\\U%08X", before, (unsigned)low, (unsigned)high);
      before = "";
      any = true;
    }
  before = any ? "] | " : "(";
  for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
    if (!has(set, (uint32_t)escapes[i].character)) continue;
    rdna__schema_put(c, "%s\"%s\"", before, escapes[i].escape);
    before = " | ";
  }
  if (before[0] == '(') {
    refuse(p, "a class without characters that JSON can write");
  } else {
    rdna__schema_put(c, before[0] == ']' ? "])" : ")");
  }
}

static uint32_t read_character(pattern *p) {
  const unsigned char *at = (const unsigned char *)p->at; /* jansson has seen to it that this is UTF-8 */
  int size = *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
  uint32_t value = size == 1 ? *at : *at & (0x7fu >> size);
  for (int i = 1; i < size; i++) value = value << 6 | (at[i] & 0x3f);
  p->at += size;
  return value;
}

static uint32_t read_hex(pattern *p, int digits) {
  uint32_t value = 0;
  for (int i = 0; i < digits; i++, p->at++) {
    const char *digit = *p->at ? strchr("0123456789abcdef", *p->at | 0x20) : NULL;
    if (!digit) {
      refuse(p, "an escape without its digits");
      return 0;
    }
    value = value << 4 | (uint32_t)(digit - "0123456789abcdef");
  }
  return value;
}

/* \d, \w, \s and their opposites; false for other letters. */
static bool add_named(pattern *p, char letter, charset *out) {
  static const code_range digits[] = {{'0', '9'}}, word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                          space[] = {{9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
                                     {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                                     {0x3000, 0x3000}, {0xfeff, 0xfeff}};
  const code_range *ranges = strchr("dD", letter) ? digits : strchr("wW", letter) ? word : space;
  size_t count = ranges == digits ? 1 : ranges == word ? 4 : sizeof space / sizeof *space;
  if (!strchr("dDwWsS", letter)) return false;
  charset set = {.count = 0};
  for (size_t i = 0; i < count; i++) add(p, &set, ranges[i].low, ranges[i].high);
  settle(p, &set, letter < 'a');
  for (size_t i = 0; i < set.count; i++) add(p, out, set.ranges[i].low, set.ranges[i].high);
  return true;
}

/* Behind a backslash. True when it was one character. */
static bool read_escape(pattern *p, charset *out, uint32_t *character) {
  char letter = *p->at;
  if (!letter) {
    refuse(p, "a backslash at the end");
    return false;
  }
  if (add_named(p, letter, out)) {
    p->at++;
    return false;
  }
  static const char from[] = "ntrfv0", to[] = "\n\t\r\f\v\0";
  const char *found = strchr(from, letter);
  if (found) {
    p->at++;
    *character = (uint32_t)to[found - from];
  } else if (letter == 'x' || letter == 'u') {
    p->at++;
    *character = read_hex(p, letter == 'x' ? 2 : 4);
    if (*character >= 0xd800 && *character < 0xe000) refuse(p, "half a character");
  } else if ((letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) {
    char what[] = "\\?";
    what[1] = letter;
    refuse(p, what);
  } else {
    *character = read_character(p);
  }
  return p->c->status == RDNA_OK;
}

static void put_class(pattern *p) {
  charset set = {.count = 0};
  bool inverted = *p->at == '^';
  p->at += inverted;
  while (*p->at && *p->at != ']' && p->c->status == RDNA_OK) {
    uint32_t low = 0, high;
    bool single = true;
    if (*p->at == '\\') {
      p->at++;
      if (*p->at == 'b') {
        p->at++;
        low = '\b';
      } else {
        single = read_escape(p, &set, &low);
      }
    } else {
      low = read_character(p);
    }
    if (!single) continue;
    high = low;
    if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
      p->at++;
      high = 0;
      if (*p->at == '\\') {
        p->at++;
        if (!read_escape(p, &set, &high)) refuse(p, "a range without an end");
      } else {
        high = read_character(p);
      }
      if (high < low) refuse(p, "a range that goes backwards");
    }
    add(p, &set, low, high);
  }
  if (*p->at++ != ']') {
    p->at--;
    refuse(p, "a class without an end");
    return;
  }
  settle(p, &set, inverted);
  put_set(p, &set);
}

static void put_alternatives(pattern *p, int depth);

static void put_group(pattern *p, int depth) {
  if (strncmp(p->at, "?:", 2) == 0) {
    p->at += 2;
  } else if (strncmp(p->at, "?<", 2) == 0 && p->at[2] != '=' && p->at[2] != '!') {
    p->at += strcspn(p->at, ">");
    p->at += *p->at == '>';
  } else if (*p->at == '?') {
    refuse(p, "looking ahead or behind");
  }
  if (depth == MOST_GROUPS) refuse(p, "groups in groups more than 32 deep");
  if (p->c->status != RDNA_OK) return;
  rdna__schema_put(p->c, "(");
  put_alternatives(p, depth + 1);
  rdna__schema_put(p->c, ")");
  if (*p->at == ')') {
    p->at++;
  } else {
    refuse(p, "a group without an end");
  }
}

static void put_atom(pattern *p, int depth) {
  charset set = {.count = 0};
  char first = *p->at;
  if (strchr("*+?{}", first)) {
    refuse(p, "a repetition of nothing");
    return;
  }
  if (first == '(' || first == '[') {
    p->at++;
    if (first == '(') {
      put_group(p, depth);
    } else {
      put_class(p);
    }
    return;
  }
  uint32_t character = 0;
  bool single = true;
  if (first == '.') {
    p->at++;
    add(p, &set, '\n', '\n');
    add(p, &set, '\r', '\r');
    add(p, &set, 0x2028, 0x2029);
    settle(p, &set, true);
    single = false;
  } else if (first == '\\') {
    p->at++;
    single = read_escape(p, &set, &character);
  } else {
    character = read_character(p);
  }
  if (single) add(p, &set, character, character);
  settle(p, &set, false);
  if (p->c->status == RDNA_OK) put_set(p, &set);
}

static void put_repetition(pattern *p) {
  if (*p->at && strchr("*+?", *p->at)) {
    rdna__schema_put(p->c, "%c", *p->at++);
  } else if (*p->at == '{') {
    size_t size = strspn(p->at + 1, "0123456789,");
    if (p->at[1 + size] != '}' || size > 16 || p->at[1] == ',' || size == 0) {
      refuse(p, "a repetition that is not {m}, {m,} or {m,n}");
      return;
    }
    rdna__schema_put(p->c, "%.*s", (int)size + 2, p->at);
    p->at += size + 2;
  } else {
    return;
  }
  if (*p->at == '?') p->at++; /* as few as possible: the same texts */
  if (*p->at && strchr("*+?{", *p->at)) refuse(p, "a repetition of a repetition");
}

/* Up to the end or to the ) of a group. What is not anchored may have anything around it. */
static void put_alternatives(pattern *p, int depth) {
  bool more = true;
  while (more && p->c->status == RDNA_OK) {
    bool from_start = depth == 0 && *p->at == '^', to_end = depth > 0;
    p->at += from_start;
    rdna__schema_put(p->c, depth == 0 && !from_start ? "char* \"\"" : "\"\"");
    while (*p->at && *p->at != '|' && *p->at != ')' && p->c->status == RDNA_OK) {
      if (*p->at == '$' && depth == 0 && (!p->at[1] || p->at[1] == '|')) {
        p->at++;
        to_end = true;
        break;
      }
      if (*p->at == '^' || *p->at == '$') {
        refuse(p, "an anchor inside");
        return;
      }
      rdna__schema_put(p->c, " ");
      put_atom(p, depth);
      if (p->c->status == RDNA_OK) put_repetition(p);
    }
    if (!to_end) rdna__schema_put(p->c, " char*");
    more = *p->at == '|';
    if (more) {
      p->at++;
      rdna__schema_put(p->c, " | ");
    }
  }
  if (depth == 0 && *p->at == ')') refuse(p, "a group's end without its beginning");
}

void rdna__schema_pattern(schema_compiler *c, const char *text) {
  pattern p = {c, text};
  put_alternatives(&p, 0);
}
