/* Cuts a template into tokens. Text between tags is one token, trimmed as the tags beside it ask:
 *
 *     {%-   all white space before it goes       -%}   all white space behind it
 *     {%+   none goes                            +%}   none
 *     {%    spaces go, if nothing but they        %}   the newline right behind it
 *           stands before it on its line
 *
 * {{ and }} have only the minus, for a plus is the rule there; {# #} is like {% %}. */
#include <string.h>

#include "model/template/template.h"

typedef struct lexer {
  tpl_arena *arena;
  rdna_text source;
  size_t at;
  int line;
  bool at_line_start; /* what was last read ended with a newline, or nothing was read yet */
  tpl_tokens *tokens;
  char brackets[TPL_MAX_PARSE_DEPTH]; /* the closing ones that are waited for */
  int bracket_count;
} lexer;

static rdna_status add(lexer *l, tpl_token_kind kind, const char *data, size_t size) {
  tpl_tokens *t = l->tokens;
  if (t->count == t->capacity) {
    size_t capacity = 2 * t->capacity + 64;
    tpl_token *grown = rdna__tpl_arena_alloc(l->arena, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a template's tokens");
    if (t->count) memcpy(grown, t->items, t->count * sizeof *grown);
    t->items = grown;
    t->capacity = capacity;
  }
  t->items[t->count++] = (tpl_token){kind, l->line, {data, size}};
  return RDNA_OK;
}

static bool looking_at(const lexer *l, const char *text) {
  size_t size = strlen(text);
  return l->source.size - l->at >= size && memcmp(l->source.data + l->at, text, size) == 0;
}

static void move(lexer *l, size_t to) {
  for (; l->at < to; l->at++) l->line += l->source.data[l->at] == '\n';
}

static void skip_space(lexer *l) {
  for (size_t next = l->at; l->at < l->source.size; move(l, next))
    if (!rdna__tpl_is_space(rdna__tpl_next(l->source, &next))) return;
}

/* Where the white space begins with which |source| up to |end| ends, at or behind |begin|. */
static size_t space_before(rdna_text source, size_t begin, size_t end) {
  size_t space = end;
  for (size_t at = begin; at < end;) {
    size_t here = at;
    if (!rdna__tpl_is_space(rdna__tpl_next(source, &at)))
      space = end;
    else if (space == end)
      space = here;
  }
  return space;
}

/* Behind a tag that ends with |size| characters of its own: its sign says what goes. */
static void trim_behind(lexer *l, size_t size, bool newline) {
  char sign = l->source.data[l->at];
  move(l, l->at + size);
  size_t before = l->at;
  if (sign == '-')
    skip_space(l);
  else if (sign != '+' && newline && looking_at(l, "\n"))
    move(l, l->at + 1);
  l->at_line_start = l->at > before && l->source.data[l->at - 1] == '\n';
}

/* The token for text from |begin| to |end|, where a tag begins whose sign, if it has one, is behind its two characters.
 */
static rdna_status add_text(lexer *l, size_t begin, size_t end, bool strips_line, char sign) {
  size_t keep = end;
  const char *data = l->source.data;
  if (sign == '-') {
    keep = space_before(l->source, begin, end);
  } else if (sign != '+' && strips_line) {
    const char *newline = memrchr(data + begin, '\n', end - begin);
    size_t line = newline ? (size_t)(newline - data) + 1 : begin;
    if ((newline || l->at_line_start) && space_before(l->source, line, end) == line) keep = line;
  }
  return keep > begin ? add(l, TPL_TOKEN_TEXT, data + begin, keep - begin) : RDNA_OK;
}

/* A number, as Python and Jinja write them; 0 when there is none. */
static size_t number_size(const lexer *l, bool *out_real) {
  const char *p = l->source.data + l->at, *end = l->source.data + l->source.size;
  const char *q = p;
#define DIGITS(q) \
  while (q < end && ((*q >= '0' && *q <= '9') || (*q == '_' && q + 1 < end && q[1] >= '0' && q[1] <= '9'))) q++
  *out_real = false;
  if (q == end || *q < '0' || *q > '9') return 0;
  if (*p == '0' && end - p > 2 && strchr("xXoObB", p[1])) {
    const char *allowed = strchr("xX", p[1]) ? "0123456789abcdefABCDEF_" : strchr("oO", p[1]) ? "01234567_" : "01_";
    for (q = p + 2; q < end && strchr(allowed, *q) && *q; q++) {
    }
    if (q > p + 2) return (size_t)(q - p);
    q = p;
  }
  DIGITS(q);
  const char *whole = q;
  bool after_dot = l->at > 0 && p[-1] == '.';
  if (!after_dot && end - q > 1 && *q == '.' && q[1] >= '0' && q[1] <= '9') {
    q++;
    DIGITS(q);
    *out_real = true;
  }
  if (!after_dot && q < end && (*q == 'e' || *q == 'E')) {
    const char *power = q + 1;
    if (power < end && (*power == '+' || *power == '-')) power++;
    if (power < end && *power >= '0' && *power <= '9') {
      DIGITS(power);
      q = power;
      *out_real = true;
    }
  }
#undef DIGITS
  if (!*out_real && *p == '0') /* 012 is no number: it is 0, and then 12 */
    for (q = p + 1; q < whole && (*q == '0' || *q == '_'); q++) {
    }
  return (size_t)(q - p);
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* One escape at *at, which is behind the backslash, written to |out|. */
static rdna_status unescape(lexer *l, size_t *at, size_t end, char *out, size_t *size) {
  static const char letters[] = "ntr\\'\"abfv", meant[] = "\n\t\r\\'\"\a\b\f\v";
  char c = l->source.data[(*at)++];
  const char *letter = strchr(letters, c);
  if (c && letter) {
    out[(*size)++] = meant[letter - letters];
    return RDNA_OK;
  }
  if (c == '\n') return RDNA_OK;
  uint32_t code = 0;
  int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (c >= '0' && c <= '7') {
    code = (uint32_t)(c - '0');
    for (int i = 0; i < 2 && *at < end && l->source.data[*at] >= '0' && l->source.data[*at] <= '7'; i++)
      code = code * 8 + (uint32_t)(l->source.data[(*at)++] - '0');
  } else if (digits) {
    for (int i = 0; i < digits; i++) {
      int digit = *at < end ? hex_digit(l->source.data[*at]) : -1;
      if (digit < 0 || code > 0x110000)
        return rdna__fail(RDNA_BAD_DATA, "template line %d: \\%c needs %d hexadecimal digits", l->line, c, digits);
      code = code * 16 + (uint32_t)digit;
      ++*at;
    }
  } else if (c == 'N') {
    return rdna__fail(RDNA_UNSUPPORTED, "template line %d: characters by name (\\N) are not offered; write \\uXXXX",
                      l->line);
  } else {
    out[(*size)++] = '\\'; /* no escape: the backslash stays */
    out[(*size)++] = c;
    return RDNA_OK;
  }
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return rdna__fail(RDNA_BAD_DATA, "template line %d: U+%04X is no character", l->line, (unsigned)code);
  *size += rdna__tpl_put(code, out + *size);
  return RDNA_OK;
}

static rdna_status lex_string(lexer *l) {
  char quote = l->source.data[l->at];
  size_t end = l->at + 1;
  bool escapes = false;
  for (; end < l->source.size && l->source.data[end] != quote; end++)
    if (l->source.data[end] == '\\') {
      escapes = true;
      end++;
    }
  if (end >= l->source.size)
    return rdna__fail(RDNA_BAD_DATA, "template line %d: a string that begins here has no end", l->line);
  size_t begin = l->at + 1;
  if (!escapes) {
    RDNA_TRY(add(l, TPL_TOKEN_STRING, l->source.data + begin, end - begin));
  } else {
    char *text = rdna__tpl_arena_alloc(l->arena, 4 + (end - begin)); /* no escape is shorter than what it means */
    size_t size = 0;
    if (!text) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a template's string");
    for (size_t at = begin; at < end;) {
      if (l->source.data[at] != '\\') {
        text[size++] = l->source.data[at++];
        continue;
      }
      at++;
      RDNA_TRY(unescape(l, &at, end, text, &size));
    }
    RDNA_TRY(add(l, TPL_TOKEN_STRING, text, size));
  }
  move(l, end + 1);
  return RDNA_OK;
}

static rdna_status lex_sign(lexer *l) {
  static const char *const signs[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
    if (!looking_at(l, signs[i])) continue;
    char c = signs[i][0];
    const char *opening = strchr("([{", c), *closing = strchr(")]}", c);
    if (opening) {
      if (l->bracket_count == TPL_MAX_PARSE_DEPTH)
        return rdna__fail(RDNA_UNSUPPORTED, "template line %d: more than %d brackets inside each other", l->line,
                          TPL_MAX_PARSE_DEPTH);
      l->brackets[l->bracket_count++] = ")]}"[opening - "([{"];
    } else if (closing) {
      if (l->bracket_count == 0) return rdna__fail(RDNA_BAD_DATA, "template line %d: '%c' closes nothing", l->line, c);
      if (l->brackets[--l->bracket_count] != c)
        return rdna__fail(RDNA_BAD_DATA, "template line %d: '%c' stands where '%c' is missing", l->line, c,
                          l->brackets[l->bracket_count]);
    }
    RDNA_TRY(add(l, TPL_TOKEN_SIGN, l->source.data + l->at, strlen(signs[i])));
    move(l, l->at + strlen(signs[i]));
    return RDNA_OK;
  }
  return rdna__fail(RDNA_BAD_DATA, "template line %d: no expression has the character '%c'", l->line,
                    l->source.data[l->at]);
}

/* What stands inside {{ }} or {% %}, up to and with its end: |ends| with a minus, with a plus or NULL, without. */
static rdna_status lex_inside(lexer *l, const char *const ends[3], tpl_token_kind end_kind) {
  int begin = l->line;
  for (;;) {
    skip_space(l);
    if (l->at >= l->source.size)
      return rdna__fail(RDNA_BAD_DATA, "template line %d: a tag that begins here has no %s", begin, ends[2]);
    for (int i = 0; i < 3 && l->bracket_count == 0; i++) {
      if (!ends[i] || !looking_at(l, ends[i])) continue;
      RDNA_TRY(add(l, end_kind, l->source.data + l->at, strlen(ends[i])));
      trim_behind(l, strlen(ends[i]), end_kind == TPL_TOKEN_TAG_END);
      return RDNA_OK;
    }
    bool real;
    size_t size = number_size(l, &real), at = l->at;
    char c = l->source.data[l->at];
    if (size) {
      RDNA_TRY(add(l, real ? TPL_TOKEN_FLOAT : TPL_TOKEN_INT, l->source.data + l->at, size));
      move(l, l->at + size);
    } else if (rdna__tpl_is_word(rdna__tpl_next(l->source, &at))) {
      for (size_t next = at; at < l->source.size; at = next)
        if (!rdna__tpl_is_word(rdna__tpl_next(l->source, &next))) break;
      RDNA_TRY(add(l, TPL_TOKEN_NAME, l->source.data + l->at, at - l->at));
      l->at = at;
    } else if (c == '"' || c == '\'') {
      RDNA_TRY(lex_string(l));
    } else {
      RDNA_TRY(lex_sign(l));
    }
  }
}

static rdna_status lex_comment(lexer *l) {
  size_t begin = l->at + 2 + (looking_at(l, "{#-") || looking_at(l, "{#+"));
  int64_t end = rdna__tpl_find(l->source, (rdna_text){"#}", 2}, begin);
  if (end < 0) return rdna__fail(RDNA_BAD_DATA, "template line %d: a comment that begins here has no #}", l->line);
  size_t close = (size_t)end;
  bool sign = close > begin && strchr("-+", l->source.data[close - 1]);
  move(l, close - sign);
  trim_behind(l, 2 + sign, true);
  return RDNA_OK;
}

/* Moves |*at| over the words of a tag such as {%- endraw -%}, of which only |name| may stand in it. */
static bool skip_tag(const lexer *l, size_t *at, const char *name) {
  lexer probe = *l;
  probe.at = *at;
  if (!looking_at(&probe, "{%")) return false;
  probe.at += 2;
  if (looking_at(&probe, "-") || looking_at(&probe, "+")) probe.at++;
  skip_space(&probe);
  if (!looking_at(&probe, name)) return false;
  probe.at += strlen(name);
  skip_space(&probe);
  *at = probe.at;
  return looking_at(&probe, "%}") || looking_at(&probe, "-%}") || looking_at(&probe, "+%}");
}

/* {% raw %} … {% endraw %}, whose inside is text; |end| is where the first tag ends. */
static rdna_status lex_raw(lexer *l, size_t end) {
  int line = l->line;
  move(l, end);
  bool sign = l->source.data[l->at] == '-';
  trim_behind(l, 2 + sign, false);
  size_t begin = l->at;
  for (size_t at = begin; at < l->source.size; at++) {
    size_t tag = at;
    if (l->source.data[at] != '{' || !skip_tag(l, &tag, "endraw")) continue;
    RDNA_TRY(add_text(l, begin, at, true, l->source.data[at + 2]));
    move(l, tag);
    trim_behind(l, l->source.data[tag] == '%' ? 2 : 3, true);
    return RDNA_OK;
  }
  return rdna__fail(RDNA_BAD_DATA, "template line %d: raw text that begins here has no endraw", line);
}

rdna_status rdna__tpl_lex(tpl_arena *arena, rdna_text source, tpl_tokens *tokens) {
  static const char *const print_ends[] = {"-}}", NULL, "}}"}, *const tag_ends[] = {"-%}", "+%}", "%}"};
  lexer l = {.arena = arena, .source = source, .line = 1, .at_line_start = true, .tokens = tokens};
  while (l.at < source.size) {
    size_t begin = l.at, open = begin;
    while (open < source.size) {
      const char *brace = memchr(source.data + open, '{', source.size - open);
      open = brace ? (size_t)(brace - source.data) : source.size;
      if (open + 1 < source.size && strchr("{%#", source.data[open + 1]) && source.data[open + 1]) break;
      if (open < source.size) open++;
    }
    if (open >= source.size) {
      RDNA_TRY(add(&l, TPL_TOKEN_TEXT, source.data + begin, source.size - begin));
      break;
    }
    char kind = source.data[open + 1], sign = open + 2 < source.size ? source.data[open + 2] : 0;
    RDNA_TRY(add_text(&l, begin, open, kind != '{', sign));
    move(&l, open);
    size_t raw_end = open;
    if (kind == '#') {
      RDNA_TRY(lex_comment(&l));
    } else if (kind == '%' && skip_tag(&l, &raw_end, "raw")) {
      RDNA_TRY(lex_raw(&l, raw_end));
    } else {
      RDNA_TRY(add(&l, kind == '{' ? TPL_TOKEN_PRINT_BEGIN : TPL_TOKEN_TAG_BEGIN, source.data + open, 2));
      move(&l, open + 2 + (sign == '-' || sign == '+'));
      RDNA_TRY(
          lex_inside(&l, kind == '{' ? print_ends : tag_ends, kind == '{' ? TPL_TOKEN_PRINT_END : TPL_TOKEN_TAG_END));
    }
  }
  return add(&l, TPL_TOKEN_END, source.data + source.size, 0);
}
