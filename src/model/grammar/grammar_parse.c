/* The text of a grammar to a tree for each rule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strmap.h"
#include "model/grammar/grammar_net.h"

typedef struct parser {
  const rdna__vocabulary *vocabulary;
  const char *start, *at, *end;
  grammar_net *net;
  rdna__strmap names; /* of rules, in the text */
} parser;

static size_t line_of(const parser *p) {
  size_t line = 1;
  for (const char *c = p->start; c < p->at; c++) line += *c == '\n';
  return line;
}

__attribute__((format(printf, 2, 3))) static rdna_status refuse(const parser *p, const char *format, ...) {
  char sentence[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  return rdna__fail(RDNA_INVALID_ARGUMENT, "the grammar, line %zu: %s", line_of(p), sentence);
}

static rdna_status out_of_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a grammar"); }

static rdna_status make(parser *p, expression_kind kind, expression **out) {
  expression *e = calloc(1, sizeof *e);
  if (!e) return out_of_memory();
  e->kind = kind;
  e->made_before = p->net->made;
  p->net->made = e;
  *out = e;
  return RDNA_OK;
}

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Over spaces and comments, and over ends of lines when they mean nothing here. */
static void skip_space(parser *p, bool lines) {
  for (; p->at < p->end; p->at++) {
    if (*p->at == '#') {
      while (p->at < p->end && *p->at != '\n') p->at++;
      if (p->at == p->end) return;
    }
    if (*p->at == '\n' ? !lines : !(*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) return;
  }
}

static bool take(parser *p, const char *word) {
  size_t size = strlen(word);
  if ((size_t)(p->end - p->at) < size || memcmp(p->at, word, size) != 0) return false;
  p->at += size;
  return true;
}

/* The number of the rule called so, which may come later. */
static rdna_status rule_named(parser *p, const char *name, size_t size, uint32_t *out_rule) {
  if (rdna__strmap_find(&p->names, name, size, out_rule)) return RDNA_OK;
  if (p->names.count == GRAMMAR_MOST_RULES)
    return rdna__fail(RDNA_UNSUPPORTED, "the grammar has more than %d rules", GRAMMAR_MOST_RULES);
  grammar_rule rule = {.name = strndup(name, size), .line = line_of(p)};
  if (!rule.name) return out_of_memory();
  rdna_status status = rdna__grammar_add_rule(p->net, rule, out_rule);
  if (status != RDNA_OK) {
    free(rule.name);
    return status;
  }
  bool inserted;
  return rdna__strmap_insert(&p->names, name, size, *out_rule, &inserted);
}

static int hex_value(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

static rdna_status read_hex(parser *p, int digits, uint32_t *out) {
  *out = 0;
  for (int i = 0; i < digits; i++) {
    int value = p->at < p->end ? hex_value(*p->at) : -1;
    if (value < 0) return refuse(p, "an escape needs %d hexadecimal digits", digits);
    *out = *out << 4 | (uint32_t)value;
    p->at++;
  }
  if (*out > 0x10ffff || (*out >= 0xd800 && *out < 0xe000)) return refuse(p, "U+%04X is no character", (unsigned)*out);
  return RDNA_OK;
}

/* One character of a literal or a class, which may be escaped. */
static rdna_status read_character(parser *p, uint32_t *out) {
  if (p->at == p->end) return refuse(p, "the text ends inside a literal or a class");
  unsigned char c = (unsigned char)*p->at;
  if (c == '\\') {
    p->at++;
    if (p->at == p->end) return refuse(p, "the text ends inside an escape");
    c = (unsigned char)*p->at++;
    const char *plain = "\\\"[]-^/'.$*+?(){}|", *found = c ? strchr(plain, c) : NULL;
    if (found) {
      *out = c;
      return RDNA_OK;
    }
    switch (c) {
      case 'n':
        *out = '\n';
        return RDNA_OK;
      case 't':
        *out = '\t';
        return RDNA_OK;
      case 'r':
        *out = '\r';
        return RDNA_OK;
      case 'x':
        return read_hex(p, 2, out);
      case 'u':
        return read_hex(p, 4, out);
      case 'U':
        return read_hex(p, 8, out);
      default:
        return refuse(p, "there is no escape \\%c", c >= 32 && c < 127 ? c : '?');
    }
  }
  static const uint32_t leasts[] = {0, 0, 0x80, 0x800, 0x10000};
  int size = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (size == 0 || p->end - p->at < size) return refuse(p, "there are bytes that are not UTF-8");
  uint32_t value = size == 1 ? c : c & (0x7fu >> size);
  for (int i = 1; i < size; i++) {
    if (((unsigned char)p->at[i] & 0xc0) != 0x80) return refuse(p, "there are bytes that are not UTF-8");
    value = value << 6 | ((unsigned char)p->at[i] & 0x3f);
  }
  if (value < leasts[size] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
    return refuse(p, "there are bytes that are not UTF-8");
  p->at += size;
  *out = value;
  return RDNA_OK;
}

static size_t put_utf8(uint32_t c, char *out) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = size - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)((0xf00u >> size) | c);
  return size;
}

static rdna_status read_literal(parser *p, expression **out) {
  RDNA_TRY(make(p, EXPRESSION_TEXT, out));
  expression *e = *out;
  size_t room = 0;
  while (p->at < p->end && *p->at != '"') {
    uint32_t character;
    RDNA_TRY(read_character(p, &character));
    if (room - e->count < 4) {
      char *grown = realloc(e->text, room = 2 * room + 16);
      if (!grown) return out_of_memory();
      e->text = grown;
    }
    e->count += put_utf8(character, e->text + e->count);
  }
  return take(p, "\"") ? RDNA_OK : refuse(p, "a literal has no end");
}

static int compare_ranges(const void *a, const void *b) {
  const code_range *left = a, *right = b;
  return left->low != right->low ? (left->low < right->low ? -1 : 1) : 0;
}

/* Orders and joins ranges, and takes what is between them when |inverted|. Characters alone: no surrogates. */
static rdna_status settle_ranges(expression *e, bool inverted) {
  if (e->count) qsort(e->ranges, e->count, sizeof *e->ranges, compare_ranges);
  size_t count = 0;
  for (size_t i = 0; i < e->count; i++) {
    if (count && e->ranges[i].low <= e->ranges[count - 1].high + 1) {
      if (e->ranges[i].high > e->ranges[count - 1].high) e->ranges[count - 1].high = e->ranges[i].high;
    } else {
      e->ranges[count++] = e->ranges[i];
    }
  }
  code_range *settled = malloc((count + 3) * sizeof *settled);
  if (!settled) return out_of_memory();
  size_t used = 0;
  uint32_t from = 0;
  for (size_t i = 0; i <= count; i++) {
    code_range range = i < count ? e->ranges[i] : (code_range){0x110000, 0x110000};
    if (inverted ? range.low > from : i < count) settled[used++] = inverted ? (code_range){from, range.low - 1} : range;
    from = range.high + 1;
  }
  free(e->ranges);
  e->ranges = settled;
  e->count = used;
  return RDNA_OK;
}

static rdna_status read_class(parser *p, expression **out) {
  RDNA_TRY(make(p, EXPRESSION_CLASS, out));
  expression *e = *out;
  bool inverted = take(p, "^");
  size_t room = 0;
  while (p->at < p->end && *p->at != ']') {
    code_range range;
    RDNA_TRY(read_character(p, &range.low));
    range.high = range.low;
    if (p->end - p->at > 1 && *p->at == '-' && p->at[1] != ']') {
      p->at++;
      RDNA_TRY(read_character(p, &range.high));
    }
    if (range.high < range.low) return refuse(p, "a range in a class goes backwards");
    if (e->count == room) {
      code_range *grown = realloc(e->ranges, (room = 2 * room + 8) * sizeof *grown);
      if (!grown) return out_of_memory();
      e->ranges = grown;
    }
    e->ranges[e->count++] = range;
  }
  if (!take(p, "]")) return refuse(p, "a class has no end");
  return settle_ranges(e, inverted);
}

static rdna_status read_number(parser *p, uint32_t *out) {
  const char *first = p->at;
  uint32_t value = 0;
  for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
    value = value * 10 + (uint32_t)(*p->at - '0');
    if (value > GRAMMAR_MOST_REPEATS)
      return rdna__fail(RDNA_UNSUPPORTED, "the grammar, line %zu: a number is above %d", line_of(p),
                        GRAMMAR_MOST_REPEATS);
  }
  *out = value;
  return p->at > first ? RDNA_OK : refuse(p, "a number is missing");
}

/* <[7]> or <text>, which has its brackets. */
static rdna_status read_token(parser *p, expression **out) {
  RDNA_TRY(make(p, EXPRESSION_TOKEN, out));
  const rdna__vocabulary *vocabulary = p->vocabulary;
  if (take(p, "<[")) {
    uint32_t number;
    RDNA_TRY(read_number(p, &number));
    if (!take(p, "]>")) return refuse(p, "a token's number has no end");
    if (number >= vocabulary->count) return refuse(p, "there is no token %u", (unsigned)number);
    (*out)->token = (int32_t)number;
    return RDNA_OK;
  }
  const char *end = memchr(p->at, '>', (size_t)(p->end - p->at));
  if (!end) return refuse(p, "a token's name has no end");
  rdna_text name = {p->at, (size_t)(end + 1 - p->at)};
  for (size_t id = 0; id < vocabulary->count; id++) {
    rdna_text piece = vocabulary->pieces[id];
    if (piece.size != name.size || memcmp(piece.data, name.data, name.size) != 0) continue;
    p->at = end + 1;
    (*out)->token = (int32_t)id;
    return RDNA_OK;
  }
  return refuse(p, "the model has no token %.*s", name.size < 100 ? (int)name.size : 100, name.data);
}

static rdna_status read_choice(parser *p, int nesting, expression **out);

static rdna_status read_item(parser *p, int nesting, expression **out) {
  if (is_name(*p->at)) {
    const char *name = p->at;
    while (p->at < p->end && is_name(*p->at)) p->at++;
    RDNA_TRY(make(p, EXPRESSION_RULE, out));
    return rule_named(p, name, (size_t)(p->at - name), &(*out)->rule);
  }
  if (take(p, "\"")) return read_literal(p, out);
  if (take(p, "[")) return read_class(p, out);
  if (take(p, ".")) {
    RDNA_TRY(make(p, EXPRESSION_CLASS, out));
    return settle_ranges(*out, true);
  }
  if (*p->at == '<') return read_token(p, out);
  if (!take(p, "(")) return refuse(p, "a %c stands where nothing begins with it", *p->at > 32 ? *p->at : '?');
  if (nesting == GRAMMAR_MOST_NESTING)
    return rdna__fail(RDNA_UNSUPPORTED, "the grammar has groups in each other more than %d deep", nesting);
  RDNA_TRY(read_choice(p, nesting + 1, out));
  return take(p, ")") ? RDNA_OK : refuse(p, "a group has no end");
}

/* What stands behind an item says how often it may come. */
static rdna_status read_repeats(parser *p, bool lines, expression **item) {
  for (int marks = 0;; marks++) {
    skip_space(p, lines);
    uint32_t least = 0, most = GRAMMAR_NO_LIMIT;
    if (take(p, "?")) {
      most = 1;
    } else if (take(p, "+")) {
      least = 1;
    } else if (take(p, "{")) {
      skip_space(p, lines);
      RDNA_TRY(read_number(p, &least));
      most = least;
      skip_space(p, lines);
      if (take(p, ",")) {
        most = GRAMMAR_NO_LIMIT;
        skip_space(p, lines);
        if (p->at < p->end && *p->at != '}') RDNA_TRY(read_number(p, &most));
        skip_space(p, lines);
      }
      if (!take(p, "}")) return refuse(p, "a number of repetitions has no end");
      if (most < least) return refuse(p, "at least %u times and at most %u", (unsigned)least, (unsigned)most);
    } else if (!take(p, "*")) {
      return RDNA_OK;
    }
    if (marks == GRAMMAR_MOST_MARKS)
      return rdna__fail(RDNA_UNSUPPORTED, "the grammar repeats an item in more than %d ways", marks);
    expression *repeat = NULL;
    RDNA_TRY(make(p, EXPRESSION_REPEAT, &repeat));
    repeat->children = *item;
    repeat->least = least;
    repeat->most = most;
    *item = repeat;
  }
}

static rdna_status read_sequence(parser *p, int nesting, expression **out) {
  RDNA_TRY(make(p, EXPRESSION_SEQUENCE, out));
  expression **last = &(*out)->children;
  for (;;) {
    skip_space(p, nesting > 0);
    if (p->at == p->end || *p->at == '|' || *p->at == ')' || *p->at == '\n') return RDNA_OK;
    expression *item = NULL;
    RDNA_TRY(read_item(p, nesting, &item));
    RDNA_TRY(read_repeats(p, nesting > 0, &item));
    *last = item;
    last = &item->next;
  }
}

static rdna_status read_choice(parser *p, int nesting, expression **out) {
  RDNA_TRY(make(p, EXPRESSION_CHOICE, out));
  expression **last = &(*out)->children;
  do {
    skip_space(p, true);
    RDNA_TRY(read_sequence(p, nesting, last));
    last = &(*last)->next;
  } while (take(p, "|"));
  return RDNA_OK;
}

static rdna_status read_rule(parser *p) {
  const char *name = p->at;
  while (p->at < p->end && is_name(*p->at)) p->at++;
  size_t size = (size_t)(p->at - name);
  if (size == 0) return refuse(p, "a rule's name is missing");
  skip_space(p, false);
  if (!take(p, "::=")) return refuse(p, "::= is missing behind the rule's name");
  uint32_t rule;
  RDNA_TRY(rule_named(p, name, size, &rule));
  if (p->net->rules[rule].body) return refuse(p, "the rule %s stands there twice", p->net->rules[rule].name);
  expression *body = NULL;
  RDNA_TRY(read_choice(p, 0, &body));
  p->net->rules[rule].body = body;
  if (p->at < p->end && *p->at != '\n') return refuse(p, "a group ends that has not begun");
  return RDNA_OK;
}

static rdna_status read_rules(parser *p) {
  uint32_t root;
  RDNA_TRY(rule_named(p, "root", 4, &root)); /* rule 0 */
  for (skip_space(p, true); p->at < p->end; skip_space(p, true)) RDNA_TRY(read_rule(p));
  for (size_t i = 0; i < p->net->rule_count; i++) {
    const grammar_rule *rule = &p->net->rules[i];
    if (rule->body) continue;
    if (i == 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "the grammar has no rule root, from which all begins");
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the grammar, line %zu: there is no rule %.100s", rule->line, rule->name);
  }
  return RDNA_OK;
}

rdna_status rdna__grammar_parse(const rdna__vocabulary *vocabulary, const char *text, size_t size, grammar_net *net) {
  if (size > GRAMMAR_MOST_TEXT)
    return rdna__fail(RDNA_UNSUPPORTED, "the grammar has %zu bytes, more than %d", size, GRAMMAR_MOST_TEXT);
  parser p = {.vocabulary = vocabulary, .start = text, .at = text, .end = text + size, .net = net};
  rdna_status status = read_rules(&p);
  rdna__strmap_deinit(&p.names);
  return status;
}
