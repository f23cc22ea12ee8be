/* "%s" % value and "{}".format(value): what of Python's two ways to lay out values templates use. */
#include <stdio.h>
#include <string.h>

#include "model/template/template.h"

typedef struct layout {
  rdna_text fill; /* one character */
  char align;     /* < > ^ = or 0: as the kind of value has it */
  char sign;      /* + space or - */
  bool alternate, zero, comma;
  int64_t width, precision; /* precision -1: none was given */
  char conversion;          /* 0: as str() */
} layout;

/* |body| with |prefix| before it, to the width. */
static void put_padded(tpl_run *run, tpl_buffer *out, const layout *l, rdna_text prefix, rdna_text body, char align) {
  int64_t missing = l->width - rdna__tpl_count(body) - (int64_t)prefix.size;
  int64_t left = missing <= 0 ? 0 : align == '>' ? missing : align == '^' ? missing / 2 : 0;
  int64_t middle = missing > 0 && align == '=' ? missing : 0, right = missing > 0 ? missing - left - middle : 0;
  rdna_text fill = l->fill.size ? l->fill : (rdna_text){" ", 1};
  for (int64_t i = 0; i < left && run->status == RDNA_OK; i++) rdna__tpl_append(run, out, fill.data, fill.size);
  rdna__tpl_append(run, out, prefix.data, prefix.size);
  for (int64_t i = 0; i < middle && run->status == RDNA_OK; i++) rdna__tpl_append(run, out, fill.data, fill.size);
  rdna__tpl_append(run, out, body.data, body.size);
  for (int64_t i = 0; i < right && run->status == RDNA_OK; i++) rdna__tpl_append(run, out, fill.data, fill.size);
}

/* Commas between groups of three digits before the point. */
static rdna_text with_commas(tpl_run *run, rdna_text digits) {
  tpl_buffer buffer = {0};
  size_t whole = 0;
  while (whole < digits.size && digits.data[whole] >= '0' && digits.data[whole] <= '9') whole++;
  for (size_t i = 0; i < digits.size; i++) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) rdna__tpl_append(run, &buffer, ",", 1);
    rdna__tpl_append(run, &buffer, digits.data + i, 1);
  }
  return tpl_buffer_text(&buffer).text;
}

static void put_number(tpl_run *run, tpl_buffer *out, const layout *l, tpl_value value) {
  char conversion = l->conversion == 'i' || l->conversion == 'u' ? 'd' : l->conversion;
  tpl_buffer digits = {0};
  bool negative;
  char prefix[4] = "";
  if (strchr("eEfFgG", conversion) && conversion) {
    double real = rdna__tpl_as_real(value);
    negative = __builtin_signbit(real);
    rdna__tpl_append_printf(run, &digits, conversion,
                            l->precision < 0 ? 6 : (int)(l->precision < 120 ? l->precision : 120),
                            negative ? -real : real);
  } else {
    double real = value.kind == TPL_FLOAT ? value.real : 0;
    if (!(real > -9e18 && real < 9e18)) {
      rdna__tpl_fail(run, RDNA_UNSUPPORTED, "a number in a format has more than 64 bits");
      return;
    }
    int64_t integer = value.kind == TPL_FLOAT ? (int64_t)real : rdna__tpl_as_int(value);
    uint64_t absolute = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    char text[72];
    int at = sizeof text;
    unsigned base = conversion == 'x' || conversion == 'X' ? 16 : conversion == 'o' ? 8 : conversion == 'b' ? 2 : 10;
    do text[--at] = (conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[absolute % base];
    while ((absolute /= base) > 0);
    for (int64_t i = (int64_t)sizeof text - at; i < l->precision && run->status == RDNA_OK; i++)
      rdna__tpl_append(run, &digits, "0", 1);
    rdna__tpl_append(run, &digits, text + at, sizeof text - (size_t)at);
    negative = integer < 0;
    if (l->alternate && base != 10) snprintf(prefix + 1, 3, "0%c", conversion);
  }
  char sign = negative ? '-' : l->sign == '+' || l->sign == ' ' ? l->sign : 0;
  prefix[0] = sign ? sign : prefix[1];
  rdna_text before = {prefix, strlen(prefix + 1) + 1};
  if (!sign) {
    memmove(prefix, prefix + 1, 3);
    before.size = strlen(prefix);
  }
  rdna_text body = tpl_buffer_text(&digits).text;
  if (l->comma) body = with_commas(run, body);
  put_padded(run, out, l, before, body, l->align ? l->align : '>');
}

/* The first |count| characters, or all if it is negative. */
static rdna_text first_characters(rdna_text text, int64_t count) {
  size_t at = 0;
  while (count-- > 0 && at < text.size) rdna__tpl_next(text, &at);
  return (rdna_text){text.data, count < -1 && at == 0 ? text.size : at};
}

static int64_t parse_count(rdna_text text, size_t *at) {
  int64_t value = 0;
  for (; *at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9'; ++*at)
    if (value < 1000000) value = 10 * value + (text.data[*at] - '0');
  return value;
}

/* ---- percent ---- */

/* %[(name)][flags][width][.precision]conversion, |at| behind the percent sign. */
static rdna_text parse_percent(rdna_text format, size_t *at, layout *l) {
  rdna_text name = {NULL, 0};
  *l = (layout){.precision = -1};
  if (*at < format.size && format.data[*at] == '(') {
    const char *close = memchr(format.data + *at, ')', format.size - *at);
    if (!close) return name;
    name = (rdna_text){format.data + *at + 1, (size_t)(close - format.data) - *at - 1};
    *at = (size_t)(close - format.data) + 1;
  }
  for (; *at < format.size && strchr("-+ #0", format.data[*at]) && format.data[*at]; ++*at) {
    char flag = format.data[*at];
    if (flag == '-') l->align = '<';
    if (flag == '0') l->zero = true;
    if (flag == '#') l->alternate = true;
    if (flag == '+' || (flag == ' ' && l->sign != '+')) l->sign = flag;
  }
  l->width = parse_count(format, at);
  if (*at < format.size && format.data[*at] == '.') {
    ++*at;
    l->precision = parse_count(format, at);
  }
  if (*at < format.size) l->conversion = format.data[(*at)++];
  return name;
}

static void put_percent(tpl_run *run, tpl_buffer *out, layout *l, tpl_value value) {
  if (l->conversion == 's' || l->conversion == 'r' || l->conversion == 'a') {
    tpl_buffer text = {0};
    if (l->conversion == 's')
      rdna__tpl_append_value(run, &text, value);
    else
      rdna__tpl_append_repr(run, &text, value);
    rdna_text body = tpl_buffer_text(&text).text;
    if (l->precision >= 0) body = first_characters(body, l->precision);
    put_padded(run, out, l, (rdna_text){"", 0}, body, l->align ? l->align : '>');
  } else if (l->conversion && strchr("diuxXoeEfFgG", l->conversion)) {
    bool whole = strchr("xXo", l->conversion) != NULL;
    if (!rdna__tpl_is_number(value) || (whole && value.kind == TPL_FLOAT)) {
      rdna__tpl_fail(run, TPL_INVALID, "%%%c formats numbers, not a value of type %s", l->conversion,
                     rdna__tpl_type_name(value));
      return;
    }
    if (l->zero && !l->align) {
      l->align = '=';
      l->fill = (rdna_text){"0", 1};
    }
    put_number(run, out, l, value);
  } else {
    rdna__tpl_fail(run, RDNA_UNSUPPORTED, "a format has the conversion '%%%c', which is not offered",
                   l->conversion ? l->conversion : ' ');
  }
}

tpl_value rdna__tpl_percent(tpl_run *run, rdna_text format, tpl_value arguments) {
  tpl_buffer out = {0};
  bool tuple = arguments.kind == TPL_TUPLE;
  size_t used = 0, count = tuple ? arguments.list->count : 1;
  bool named = false;
  for (size_t at = 0; at < format.size && run->status == RDNA_OK;) {
    const char *percent = memchr(format.data + at, '%', format.size - at);
    size_t end = percent ? (size_t)(percent - format.data) : format.size;
    rdna__tpl_append(run, &out, format.data + at, end - at);
    at = end + 1;
    if (!percent) break;
    layout l;
    rdna_text name = parse_percent(format, &at, &l);
    if (l.conversion == '%') {
      rdna__tpl_append(run, &out, "%", 1);
    } else if (name.data) {
      const tpl_value *found = arguments.kind == TPL_DICT ? rdna__tpl_dict_find_text(arguments.dict, name) : NULL;
      named = true;
      if (!found) return rdna__tpl_fail(run, TPL_INVALID, "a format asks for '%.*s'", (int)name.size, name.data);
      put_percent(run, &out, &l, *found);
    } else if (used == count) {
      return rdna__tpl_fail(run, TPL_INVALID, "a format asks for more than %zu values", count);
    } else {
      put_percent(run, &out, &l, tuple ? arguments.list->items[used] : arguments);
      used++;
    }
  }
  bool all = named || used == count || (!tuple && (arguments.kind == TPL_DICT || arguments.kind == TPL_LIST));
  if (!all) return rdna__tpl_fail(run, TPL_INVALID, "a format asks for %zu of %zu values", used, count);
  return tpl_buffer_text(&out);
}

/* ---- braces ---- */

/* [[fill]align][sign][#][0][width][,][.precision][conversion] */
static bool parse_brace(rdna_text spec, layout *l) {
  *l = (layout){.precision = -1};
  size_t at = 0, second = 0;
  if (spec.size) rdna__tpl_next(spec, &second);
  if (second && second < spec.size && strchr("<>^=", spec.data[second])) {
    l->fill = (rdna_text){spec.data, second};
    l->align = spec.data[second];
    at = second + 1;
  } else if (spec.size && strchr("<>^=", spec.data[0])) {
    l->align = spec.data[at++];
  }
  if (at < spec.size && strchr("+- ", spec.data[at])) l->sign = spec.data[at++];
  if (at < spec.size && spec.data[at] == '#') l->alternate = true, at++;
  if (at < spec.size && spec.data[at] == '0') {
    at++;
    if (!l->align) l->align = '=';
    if (!l->fill.size) l->fill = (rdna_text){"0", 1};
  }
  l->width = parse_count(spec, &at);
  if (at < spec.size && spec.data[at] == ',') l->comma = true, at++;
  if (at < spec.size && spec.data[at] == '.') {
    at++;
    l->precision = parse_count(spec, &at);
  }
  if (at < spec.size) l->conversion = spec.data[at++];
  return at == spec.size;
}

static void put_brace(tpl_run *run, tpl_buffer *out, rdna_text spec, tpl_value value) {
  layout l;
  bool understood = parse_brace(spec, &l);
  bool number = rdna__tpl_is_number(value) && (value.kind != TPL_BOOL || l.conversion);
  bool integer = number && value.kind != TPL_FLOAT;
  char kinds[] = "sdbxXoeEfFgG";
  if (!understood || (l.conversion && !strchr(kinds, l.conversion))) {
    rdna__tpl_fail(run, RDNA_UNSUPPORTED, "the format '{:%.*s}' is not offered", (int)spec.size, spec.data);
  } else if (spec.size == 0) {
    rdna__tpl_append_value(run, out, value);
  } else if (number && l.conversion != 's' && (l.conversion || (integer && l.precision < 0))) {
    if (!l.conversion) l.conversion = 'd';
    bool real = strchr("eEfFgG", l.conversion) != NULL;
    if (!real && (!integer || l.precision >= 0))
      rdna__tpl_fail(run, TPL_INVALID, "the format '{:%.*s}' does not fit its number", (int)spec.size, spec.data);
    else
      put_number(run, out, &l, value);
  } else if (number && value.kind == TPL_FLOAT && !l.conversion && l.precision < 0) {
    tpl_buffer digits = {0};
    bool negative = __builtin_signbit(value.real);
    rdna__tpl_append_real(run, &digits, negative ? -value.real : value.real);
    rdna_text sign = {negative ? "-" : l.sign == '+' ? "+" : " ", negative || l.sign == '+' || l.sign == ' '};
    rdna_text body = tpl_buffer_text(&digits).text;
    put_padded(run, out, &l, sign, l.comma ? with_commas(run, body) : body, l.align ? l.align : '>');
  } else if (value.kind == TPL_STRING && (!l.conversion || l.conversion == 's') && l.align != '=' && !l.sign &&
             !l.comma) {
    rdna_text body = l.precision >= 0 ? first_characters(value.text, l.precision) : value.text;
    put_padded(run, out, &l, (rdna_text){"", 0}, body, l.align ? l.align : '<');
  } else {
    rdna__tpl_fail(run, TPL_INVALID, "the format '{:%.*s}' does not fit a value of type %s", (int)spec.size, spec.data,
                   rdna__tpl_type_name(value));
  }
}

/* The value that the field |name| of a format asks for: a place, a name, or the next place. */
static const tpl_value *find_field(const tpl_call *call, rdna_text name, size_t *next) {
  size_t at = 0;
  if (name.size == 0) return *next < call->rest->count ? &call->rest->items[(*next)++] : NULL;
  int64_t index = parse_count(name, &at);
  if (at == name.size) return (size_t)index < call->rest->count ? &call->rest->items[index] : NULL;
  return rdna__tpl_dict_find_text(call->named, name);
}

tpl_value rdna__tpl_brace_format(tpl_run *run, rdna_text format, const tpl_call *call) {
  tpl_buffer out = {0};
  size_t next = 0;
  for (size_t at = 0; at < format.size && run->status == RDNA_OK;) {
    char c = format.data[at++];
    bool doubled = at < format.size && format.data[at] == c;
    if (c != '{' && c != '}') {
      rdna__tpl_append(run, &out, &c, 1);
    } else if (doubled) {
      rdna__tpl_append(run, &out, &c, 1);
      at++;
    } else {
      const char *close = c == '{' ? memchr(format.data + at, '}', format.size - at) : NULL;
      if (!close) return rdna__tpl_fail(run, TPL_INVALID, "a format has a single '%c'", c);
      rdna_text field = {format.data + at, (size_t)(close - format.data) - at};
      const char *colon = memchr(field.data, ':', field.size);
      rdna_text name = {field.data, colon ? (size_t)(colon - field.data) : field.size};
      rdna_text spec = colon ? (rdna_text){colon + 1, field.size - name.size - 1} : (rdna_text){"", 0};
      const tpl_value *value = find_field(call, name, &next);
      if (!value)
        return rdna__tpl_fail(run, TPL_INVALID, "a format asks for '{%.*s}', which is not given", (int)name.size,
                              name.data);
      put_brace(run, &out, spec, *value);
      at = (size_t)(close - format.data) + 1;
    }
  }
  return tpl_buffer_text(&out);
}
