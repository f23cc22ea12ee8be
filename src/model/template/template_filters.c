/* Filters of texts and numbers, and where filters are found. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/template/template.h"

#define FILTER(name) static tpl_value name(tpl_run *run, tpl_value self, const tpl_call *call)

FILTER(to_upper) { return rdna__tpl_change_case(run, rdna__tpl_to_text(run, self).text, "upper"); }
FILTER(to_lower) { return rdna__tpl_change_case(run, rdna__tpl_to_text(run, self).text, "lower"); }
FILTER(capitalize) { return rdna__tpl_change_case(run, rdna__tpl_to_text(run, self).text, "capitalize"); }
FILTER(title) { return rdna__tpl_change_case(run, rdna__tpl_to_text(run, self).text, "words"); }
FILTER(string) { return rdna__tpl_to_text(run, self); }

FILTER(trim) {
  tpl_value text = rdna__tpl_to_text(run, self), characters = call->at[0];
  bool given = characters.kind != TPL_ABSENT && characters.kind != TPL_NONE;
  if (given && characters.kind != TPL_STRING) return rdna__tpl_fail(run, TPL_INVALID, "trim takes a text");
  if (run->status != RDNA_OK) return self;
  rdna_text left = rdna__tpl_strip(text.text, given ? &characters.text : NULL, TPL_LEFT | TPL_RIGHT);
  return tpl_text(left.data, left.size);
}

FILTER(replace) {
  int64_t most = -1;
  tpl_value text = rdna__tpl_to_text(run, self), old = rdna__tpl_to_text(run, call->at[0]);
  tpl_value with = rdna__tpl_to_text(run, call->at[1]), count = call->at[2];
  if (count.kind != TPL_ABSENT && count.kind != TPL_NONE) rdna__tpl_get_int(run, count, "replace", &most);
  return run->status == RDNA_OK ? rdna__tpl_replace(run, text.text, old.text, with.text, most) : self;
}

FILTER(by_default) {
  bool replaced = self.kind == TPL_UNDEFINED || (rdna__tpl_truth(call->at[1]) && !rdna__tpl_truth(self));
  return replaced ? tpl_or(call->at[0], tpl_text("", 0)) : self;
}

/* ---- numbers ---- */

/* A number in |text| as int() and float() read it: white space around it and underscores inside do not count. False
 * when it is none. */
static bool clean_number(rdna_text text, char *out, size_t room) {
  size_t size = 0;
  text = rdna__tpl_strip(text, NULL, TPL_LEFT | TPL_RIGHT);
  for (size_t i = 0; i < text.size && size < room; i++) {
    bool between = i > 0 && i + 1 < text.size && text.data[i - 1] != '_' && text.data[i + 1] != '_';
    if (text.data[i] == '_' && !between) return false;
    if (text.data[i] != '_') out[size++] = text.data[i];
  }
  if (size == 0 || size == room) return false;
  out[size] = 0;
  return strlen(out) == size;
}

static bool parse_real(rdna_text text, double *out) {
  char digits[400], *end;
  if (!clean_number(text, digits, sizeof digits) || strpbrk(digits, "xX(")) return false;
  *out = rdna__tpl_parse_real(digits, &end);
  return *end == 0 && end > digits;
}

static bool parse_int(rdna_text text, int64_t base, int64_t *out) {
  char digits[80], *end;
  if (!clean_number(text, digits, sizeof digits)) return false;
  const char *p = digits + (digits[0] == '+' || digits[0] == '-');
  int prefix = p[0] != '0' ? 0 : (p[1] | 32) == 'x' ? 16 : (p[1] | 32) == 'o' ? 8 : (p[1] | 32) == 'b' ? 2 : 0;
  if (prefix && (base == prefix || base == 0)) {
    base = prefix;
    p += 2;
  } else if (base == 0) {
    base = 10;
  }
  if (!((*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'z'))) return false;
  unsigned long long value = strtoull(p, &end, (int)base);
  if (*end || value > INT64_MAX) return false;
  *out = digits[0] == '-' ? -(int64_t)value : (int64_t)value;
  return true;
}

FILTER(to_int) {
  int64_t base = 10, integer;
  double real;
  tpl_value otherwise = tpl_or(call->at[0], tpl_int(0));
  if (call->at[1].kind != TPL_ABSENT && !rdna__tpl_get_int(run, call->at[1], "int's base", &base)) return self;
  if (self.kind == TPL_UNDEFINED)
    return rdna__tpl_fail(run, TPL_INVALID, "'%.*s' is undefined, and no number", (int)self.text.size,
                          self.text.data ? self.text.data : "");
  if (self.kind == TPL_BOOL || self.kind == TPL_INT) return tpl_int(rdna__tpl_as_int(self));
  if (self.kind == TPL_STRING) {
    if (base != 0 && (base < 2 || base > 36)) return otherwise;
    if (parse_int(self.text, base, &integer)) return tpl_int(integer);
    if (!parse_real(self.text, &real) || !isfinite(real)) return otherwise;
  } else if (self.kind == TPL_FLOAT) {
    real = self.real;
  } else {
    return otherwise;
  }
  if (isnan(real)) return otherwise;
  if (real >= 9223372036854775808.0 || real < -9223372036854775808.0)
    return rdna__tpl_fail(run, RDNA_UNSUPPORTED, "int: the number has more than 64 bits");
  return tpl_int((int64_t)real);
}

FILTER(to_float) {
  double real;
  if (self.kind == TPL_UNDEFINED)
    return rdna__tpl_fail(run, TPL_INVALID, "'%.*s' is undefined, and no number", (int)self.text.size,
                          self.text.data ? self.text.data : "");
  if (rdna__tpl_is_number(self)) return tpl_real(rdna__tpl_as_real(self));
  return self.kind == TPL_STRING && parse_real(self.text, &real) ? tpl_real(real) : tpl_or(call->at[0], tpl_real(0));
}

FILTER(absolute) {
  if (!rdna__tpl_is_number(self))
    return rdna__tpl_fail(run, TPL_INVALID, "abs of a value of type %s", rdna__tpl_type_name(self));
  if (self.kind == TPL_FLOAT) return tpl_real(fabs(self.real));
  int64_t value = rdna__tpl_as_int(self);
  return value < 0 ? rdna__tpl_arithmetic(run, TPL_NODE_SUBTRACT, tpl_int(0), tpl_int(value)) : tpl_int(value);
}

FILTER(rounded) {
  int64_t digits = 0;
  tpl_value method = tpl_or(call->at[1], tpl_text("common", 6));
  if (call->at[0].kind != TPL_ABSENT && !rdna__tpl_get_int(run, call->at[0], "round's precision", &digits)) return self;
  if (!rdna__tpl_is_number(self))
    return rdna__tpl_fail(run, TPL_INVALID, "round of a value of type %s", rdna__tpl_type_name(self));
  bool up = method.kind == TPL_STRING && rdna__tpl_is(method.text, "ceil");
  bool down = method.kind == TPL_STRING && rdna__tpl_is(method.text, "floor");
  if (up || down) {
    double unit = pow(10, (double)digits), scaled = rdna__tpl_as_real(self) * unit;
    return tpl_real((up ? ceil(scaled) : floor(scaled)) / unit);
  }
  if (method.kind != TPL_STRING || !rdna__tpl_is(method.text, "common"))
    return rdna__tpl_fail(run, TPL_INVALID, "round knows the methods common, ceil and floor");
  int places = digits > 400 ? 400 : digits < -400 ? -400 : (int)digits;
  if (self.kind == TPL_FLOAT) return tpl_real(rdna__tpl_round(self.real, places));
  int64_t value = rdna__tpl_as_int(self), unit = 1;
  if (places >= 0) return tpl_int(value);
  if (places < -18) return tpl_int(0);
  for (int i = 0; i > places; i--) unit *= 10;
  int64_t rest = ((value % unit) + unit) % unit, below;
  if (__builtin_sub_overflow(value, rest, &below))
    return rdna__tpl_fail(run, RDNA_UNSUPPORTED, "round: more than 64 bits");
  bool above = rest > unit / 2 || (rest == unit / 2 && (below / unit) % 2 != 0); /* half goes to the even one */
  return rdna__tpl_arithmetic(run, TPL_NODE_ADD, tpl_int(below), tpl_int(above ? unit : 0));
}

/* ---- layout ---- */

FILTER(indent) {
  int64_t width = 4;
  tpl_buffer margin = {0}, out = {0};
  tpl_value by = call->at[0];
  bool first = rdna__tpl_truth(call->at[1]), blank = rdna__tpl_truth(call->at[2]);
  if (self.kind != TPL_STRING)
    return rdna__tpl_fail(run, TPL_INVALID, "indent takes a text, not a value of type %s", rdna__tpl_type_name(self));
  if (by.kind == TPL_STRING)
    rdna__tpl_append(run, &margin, by.text.data, by.text.size);
  else if (by.kind != TPL_ABSENT && !rdna__tpl_get_int(run, by, "indent", &width))
    return self;
  for (int64_t i = 0; by.kind != TPL_STRING && i < width && run->status == RDNA_OK; i++)
    rdna__tpl_append(run, &margin, " ", 1);
  tpl_value with_end =
      rdna__tpl_arithmetic(run, TPL_NODE_ADD, self, tpl_text("\n", 1)); /* so that an empty last line counts */
  const tpl_list *lines = rdna__tpl_lines(run, with_end.text, false);
  for (size_t i = 0; i < lines->count && run->status == RDNA_OK; i++) {
    rdna_text line = lines->items[i].text;
    if (i) rdna__tpl_append(run, &out, "\n", 1);
    if (i ? blank || line.size : first) rdna__tpl_append(run, &out, margin.data, margin.size);
    rdna__tpl_append(run, &out, line.data, line.size);
  }
  return tpl_buffer_text(&out);
}

FILTER(center) {
  int64_t width = 80;
  if (call->at[0].kind != TPL_ABSENT && !rdna__tpl_get_int(run, call->at[0], "center", &width)) return self;
  return rdna__tpl_padded(run, rdna__tpl_to_text(run, self).text, width, (rdna_text){" ", 1}, TPL_LEFT | TPL_RIGHT);
}

FILTER(truncate) {
  int64_t length = 255, leeway = 5;
  tpl_value end = tpl_or(call->at[2], tpl_text("...", 3));
  if (call->at[0].kind != TPL_ABSENT) rdna__tpl_get_int(run, call->at[0], "truncate", &length);
  if (call->at[3].kind != TPL_ABSENT && call->at[3].kind != TPL_NONE)
    rdna__tpl_get_int(run, call->at[3], "truncate", &leeway);
  int64_t whole = 0, kept = length - (end.kind == TPL_STRING ? rdna__tpl_count(end.text) : 0);
  if (kept < 0 || leeway < 0) return rdna__tpl_fail(run, TPL_INVALID, "truncate to less than its end");
  if (rdna__tpl_length(self, &whole) && whole - leeway <= length && end.kind == TPL_STRING) return self;
  if (self.kind != TPL_STRING || end.kind != TPL_STRING)
    return rdna__tpl_fail(run, TPL_INVALID, "truncate takes texts");
  tpl_value bounds[] = {tpl_none(), tpl_int(kept), tpl_none()}, part = rdna__tpl_slice(run, self, bounds);
  if (run->status != RDNA_OK) return self;
  const char *space = memrchr(part.text.data, ' ', part.text.size);
  if (space && !rdna__tpl_truth(call->at[1])) part.text.size = (size_t)(space - part.text.data);
  return rdna__tpl_arithmetic(run, TPL_NODE_ADD, part, end);
}

FILTER(format) {
  tpl_value arguments = rdna__tpl_list_value(TPL_TUPLE, call->rest);
  if (call->named->count && call->rest->count) return rdna__tpl_fail(run, TPL_INVALID, "format takes places or names");
  if (call->named->count) arguments = (tpl_value){.kind = TPL_DICT, .dict = call->named};
  return rdna__tpl_percent(run, rdna__tpl_to_text(run, self).text, arguments);
}

FILTER(escape) { return rdna__tpl_escape(run, self); }

FILTER(safe) {
  tpl_value text = rdna__tpl_to_text(run, self);
  text.safe = true;
  return text;
}

FILTER(wordcount) {
  rdna_text text = rdna__tpl_to_text(run, self).text;
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; run->status == RDNA_OK && at < text.size;) {
    bool word = rdna__tpl_is_word(rdna__tpl_next(text, &at));
    count += word && !inside;
    inside = word;
  }
  return tpl_int(count);
}

FILTER(urlencode) {
  rdna_text text = rdna__tpl_to_text(run, self).text;
  tpl_buffer out = {0};
  if (self.kind == TPL_DICT || rdna__tpl_is_list(self))
    return rdna__tpl_fail(run, RDNA_UNSUPPORTED, "urlencode of several values is not offered");
  for (size_t i = 0; i < text.size && run->status == RDNA_OK; i++) {
    unsigned char c = (unsigned char)text.data[i];
    bool plain = c < 0x80 && (rdna__tpl_is_word(c) || strchr("-.~/", c)) && c;
    char escape[] = {'%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15]};
    rdna__tpl_append(run, &out, plain ? text.data + i : escape, plain ? 1 : 3);
  }
  return tpl_buffer_text(&out);
}

const tpl_function rdna__tpl_text_filters[] = {
    {"upper", "", to_upper},
    {"lower", "", to_lower},
    {"capitalize", "", capitalize},
    {"title", "", title},
    {"string", "", string},
    {"safe", "", safe},
    {"trim", "chars?", trim},
    {"replace", "old new count?", replace},
    {"default", "default_value? boolean?", by_default},
    {"d", "default_value? boolean?", by_default},
    {"int", "default? base?", to_int},
    {"float", "default?", to_float},
    {"abs", "", absolute},
    {"round", "precision? method?", rounded},
    {"indent", "width? first? blank?", indent},
    {"center", "width?", center},
    {"truncate", "length? killwords? end? leeway?", truncate},
    {"format", "* **", format},
    {"escape", "", escape},
    {"e", "", escape},
    {"wordcount", "", wordcount},
    {"urlencode", "", urlencode},
};
const size_t rdna__tpl_text_filter_count = sizeof rdna__tpl_text_filters / sizeof *rdna__tpl_text_filters;

const tpl_function *rdna__tpl_find_in(const tpl_function *table, size_t count, rdna_text name) {
  for (size_t i = 0; i < count; i++)
    if (rdna__tpl_is(name, table[i].name)) return &table[i];
  return NULL;
}

const tpl_function *rdna__tpl_find_filter(rdna_text name) {
  const tpl_function *found = rdna__tpl_find_in(rdna__tpl_text_filters, rdna__tpl_text_filter_count, name);
  if (!found) found = rdna__tpl_find_in(rdna__tpl_sequence_filters, rdna__tpl_sequence_filter_count, name);
  return found ? found : rdna__tpl_find_in(&rdna__tpl_tojson, 1, name);
}
