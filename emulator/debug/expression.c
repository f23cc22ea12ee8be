// Expressions over variables: names, numbers, * & . -> [] and brackets.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug/value.h"

enum { NESTING_MOST = 32, NAME_MOST = 200 };

struct parser {
  const struct emu_looker *looker;
  const char *at;
  unsigned nesting;
};

static const char *take_unary(struct parser *p, struct emu_value *out);

static bool take(struct parser *p, const char *word) {
  p->at += strspn(p->at, " \t");
  size_t length = strlen(word);
  if (strncmp(p->at, word, length) != 0) return false;
  p->at += length;
  return true;
}

// An identifier, with "::" in it and, behind a template's name, nothing.
static bool take_name(struct parser *p, bool qualified, char out[NAME_MOST]) {
  size_t length = 0;
  p->at += strspn(p->at, " \t");
  if (!isalpha((unsigned char)*p->at) && *p->at != '_') return false;
  while (length < NAME_MOST - 1) {
    char c = *p->at;
    bool colons = qualified && c == ':' && (p->at[1] == ':' || (length && out[length - 1] == ':'));
    if (!isalnum((unsigned char)c) && c != '_' && !colons) break;
    out[length++] = c;
    p->at++;
  }
  out[length] = '\0';
  return true;
}

static const char *take_primary(struct parser *p, struct emu_value *out) {
  char name[NAME_MOST];
  if (take(p, "(")) {
    const char *why = take_unary(p, out);
    return why ? why : take(p, ")") ? NULL : "a bracket is not closed";
  }
  if (take_name(p, true, name)) return emu_value_named(p->looker, name, out) ? NULL : "there is no such variable here";
  p->at += strspn(p->at, " \t");
  char *end;
  long long number = strtoll(p->at, &end, 0);
  if (end == p->at) return "it is no expression of names, numbers, * & . -> [ ] ( )";
  p->at = end;
  *out = (struct emu_value){.type = EMU_NO_ENTRY, .count = 1};
  out->pieces[0] = (struct emu_piece){.kind = EMU_PIECE_VALUE, .value = (uint64_t)number};
  return NULL;
}

static const char *take_postfix(struct parser *p, struct emu_value *out) {
  char name[NAME_MOST];
  const char *why = take_primary(p, out);
  while (!why) {
    bool arrow = take(p, "->");
    if (arrow || take(p, ".")) {
      if (arrow) why = emu_value_target(p->looker, out, out);
      if (!why)
        why = take_name(p, false, name) ? emu_value_member(p->looker, out, name, out) : "a member's name is missing";
    } else if (take(p, "[")) {
      struct emu_value index;
      int64_t number;
      why = take_unary(p, &index);
      if (!why) why = take(p, "]") ? emu_value_whole(p->looker, &index, &number) : "a bracket is not closed";
      if (!why) why = emu_value_element(p->looker, out, number, out);
    } else {
      break;
    }
  }
  return why;
}

static const char *take_unary(struct parser *p, struct emu_value *out) {
  if (++p->nesting > NESTING_MOST) return "it is nested too deep";
  const char *why;
  if (take(p, "*")) {
    why = take_unary(p, out);
    if (!why) why = emu_value_target(p->looker, out, out);
  } else if (take(p, "&")) {
    uint64_t address;
    why = take_unary(p, out);
    if (!why && !emu_value_address(p->looker, out, &address)) why = "it does not lie in memory";
    if (!why) {
      *out = (struct emu_value){.type = out->type, .points = true, .count = 1};
      out->pieces[0] = (struct emu_piece){.kind = EMU_PIECE_VALUE, .value = address};
    }
  } else {
    why = take_postfix(p, out);
  }
  p->nesting--;
  return why;
}

const char *emu_value_parse(const struct emu_looker *looker, const char *text, struct emu_value *out) {
  struct parser p = {.looker = looker, .at = text};
  const char *why = take_unary(&p, out);
  if (why) return why;
  p.at += strspn(p.at, " \t\r\n");
  return *p.at ? "more stands behind the expression" : NULL;
}
