/* Values: making them, and how they are printed. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/template/template.h"

tpl_value rdna__tpl_fail(tpl_run *run, rdna_status status, const char *format, ...) {
  if (run->status == RDNA_OK) {
    char sentence[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    run->status = rdna__fail(status, "template line %d: %s", run->line, sentence);
  }
  return (tpl_value){.kind = TPL_UNDEFINED};
}

bool rdna__tpl_spend(tpl_run *run, size_t steps) {
  if (run->status != RDNA_OK) return false;
  run->steps += (int64_t)(steps < TPL_MAX_STEPS ? steps : TPL_MAX_STEPS) + 1;
  if (run->steps <= run->most_steps) return true;
  rdna__tpl_fail(run, RDNA_UNSUPPORTED, "the template still runs after %lld steps", (long long)run->most_steps);
  return false;
}

bool rdna__tpl_deeper(tpl_run *run) {
  if (run->status != RDNA_OK) return false;
  if (run->depth < TPL_MAX_RUN_DEPTH) {
    run->depth++;
    return true;
  }
  rdna__tpl_fail(run, RDNA_UNSUPPORTED, "macros, expressions or values are more than %d deep inside each other",
                 TPL_MAX_RUN_DEPTH);
  return false;
}

void rdna__tpl_shallower(tpl_run *run) { run->depth--; }

/* ---- making ---- */

tpl_list *rdna__tpl_new_list(tpl_run *run, size_t capacity) {
  tpl_list *list = rdna__tpl_alloc(run, sizeof *list);
  tpl_value *items = capacity && list ? rdna__tpl_alloc(run, capacity * sizeof *items) : NULL;
  if (!list || (capacity && !items)) return &run->no_list;
  *list = (tpl_list){.items = items, .capacity = capacity};
  return list;
}

tpl_value rdna__tpl_list_value(tpl_kind kind, tpl_list *list) { return (tpl_value){.kind = kind, .list = list}; }

void rdna__tpl_list_add(tpl_run *run, tpl_list *list, tpl_value item) {
  if (!rdna__tpl_spend(run, 0)) return;
  if (list->count == list->capacity) {
    size_t capacity = 2 * list->capacity + 4;
    tpl_value *grown = rdna__tpl_alloc(run, capacity * sizeof *grown);
    if (!grown) return;
    if (list->count) memcpy(grown, list->items, list->count * sizeof *grown);
    list->items = grown;
    list->capacity = capacity;
  }
  list->items[list->count++] = item;
}

tpl_value rdna__tpl_pair(tpl_run *run, tpl_value first, tpl_value second) {
  tpl_list *pair = rdna__tpl_new_list(run, 2);
  rdna__tpl_list_add(run, pair, first);
  rdna__tpl_list_add(run, pair, second);
  return rdna__tpl_list_value(TPL_TUPLE, pair);
}

tpl_dict *rdna__tpl_new_dict(tpl_run *run) {
  tpl_dict *dict = rdna__tpl_alloc(run, sizeof *dict);
  if (!dict) return &run->no_dict;
  *dict = (tpl_dict){0};
  return dict;
}

static bool can_be_key(tpl_value key) {
  if (key.kind == TPL_TUPLE) {
    for (size_t i = 0; i < key.list->count; i++)
      if (key.list->items[i].kind == TPL_TUPLE || !can_be_key(key.list->items[i])) return false;
    return true;
  }
  return key.kind == TPL_NONE || key.kind == TPL_UNDEFINED || key.kind == TPL_STRING || rdna__tpl_is_number(key);
}

const tpl_value *rdna__tpl_dict_find_text(const tpl_dict *dict, rdna_text key) {
  for (size_t i = 0; i < dict->count; i++)
    if (dict->keys[i].kind == TPL_STRING && tpl_same(dict->keys[i].text, key)) return &dict->values[i];
  return NULL;
}

const tpl_value *rdna__tpl_dict_find(tpl_run *run, const tpl_dict *dict, tpl_value key) {
  if (!rdna__tpl_spend(run, dict->count / 8)) return NULL;
  if (key.kind == TPL_STRING) return rdna__tpl_dict_find_text(dict, key.text);
  if (!can_be_key(key)) {
    rdna__tpl_fail(run, TPL_INVALID, "a value of type %s cannot be a key of a dict", rdna__tpl_type_name(key));
    return NULL;
  }
  for (size_t i = 0; i < dict->count; i++)
    if (rdna__tpl_equal(run, dict->keys[i], key)) return &dict->values[i];
  return NULL;
}

void rdna__tpl_dict_set(tpl_run *run, tpl_dict *dict, tpl_value key, tpl_value value) {
  const tpl_value *old = rdna__tpl_dict_find(run, dict, key);
  if (run->status != RDNA_OK) return;
  if (old) {
    dict->values[old - dict->values] = value;
    return;
  }
  if (dict->count == dict->capacity) {
    size_t capacity = 2 * dict->capacity + 4;
    tpl_value *keys = rdna__tpl_alloc(run, 2 * capacity * sizeof *keys);
    if (!keys) return;
    if (dict->count) {
      memcpy(keys, dict->keys, dict->count * sizeof *keys);
      memcpy(keys + capacity, dict->values, dict->count * sizeof *keys);
    }
    dict->keys = keys;
    dict->values = keys + capacity;
    dict->capacity = capacity;
  }
  dict->keys[dict->count] = key;
  dict->values[dict->count++] = value;
}

tpl_list *rdna__tpl_new_range(tpl_run *run, int64_t start, int64_t stop, int64_t step) {
  uint64_t distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
  uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  uint64_t count = (step > 0 ? start < stop : start > stop) ? (distance - 1) / stride + 1 : 0;
  if (count > TPL_MAX_RANGE) {
    rdna__tpl_fail(run, RDNA_UNSUPPORTED, "a range of %llu numbers; templates may have %d", (unsigned long long)count,
                   TPL_MAX_RANGE);
    count = 0;
  }
  tpl_list *list = rdna__tpl_new_list(run, count);
  for (uint64_t i = 0; i < count; i++)
    rdna__tpl_list_add(run, list, tpl_int((int64_t)((uint64_t)start + i * (uint64_t)step)));
  if (run->status == RDNA_OK) list->start = start, list->stop = stop, list->step = step;
  return list;
}

/* ---- asking ---- */

const char *rdna__tpl_type_name(tpl_value value) {
  static const char *const names[] = {"undefined", "nothing",   "NoneType", "bool",     "int",       "float",
                                      "str",       "list",      "tuple",    "range",    "dict view", "generator",
                                      "dict",      "namespace", "macro",    "function", "loop"};
  return names[value.kind];
}

bool rdna__tpl_is_number(tpl_value v) { return v.kind == TPL_BOOL || v.kind == TPL_INT || v.kind == TPL_FLOAT; }
bool rdna__tpl_is_list(tpl_value v) { return v.kind >= TPL_LIST && v.kind <= TPL_VIEW; }
int64_t rdna__tpl_as_int(tpl_value v) { return v.kind == TPL_BOOL ? v.boolean : v.integer; }
double rdna__tpl_as_real(tpl_value v) { return v.kind == TPL_FLOAT ? v.real : (double)rdna__tpl_as_int(v); }

bool rdna__tpl_get_int(tpl_run *run, tpl_value value, const char *what, int64_t *out) {
  if (value.kind != TPL_BOOL && value.kind != TPL_INT) {
    rdna__tpl_fail(run, TPL_INVALID, "%s takes a whole number, not a value of type %s", what,
                   rdna__tpl_type_name(value));
    return false;
  }
  *out = rdna__tpl_as_int(value);
  return true;
}

bool rdna__tpl_truth(tpl_value value) {
  int64_t length;
  switch (value.kind) {
    case TPL_UNDEFINED:
    case TPL_ABSENT:
    case TPL_NONE:
      return false;
    case TPL_BOOL:
      return value.boolean;
    case TPL_INT:
      return value.integer != 0;
    case TPL_FLOAT:
      return value.real != 0;
    case TPL_STRING:
      return value.text.size > 0;
    default:
      return !rdna__tpl_length(value, &length) || length > 0;
  }
}

bool rdna__tpl_length(tpl_value value, int64_t *out_length) {
  if (value.kind == TPL_STRING)
    *out_length = rdna__tpl_count(value.text);
  else if (value.kind == TPL_DICT)
    *out_length = (int64_t)value.dict->count;
  else if (value.kind == TPL_UNDEFINED)
    *out_length = 0;
  else if (rdna__tpl_is_list(value))
    *out_length = (int64_t)value.list->count;
  else
    return false;
  return true;
}

/* ---- printing ---- */

static void append_string_repr(tpl_run *run, tpl_buffer *buffer, rdna_text text) {
  char quote = memchr(text.data, '\'', text.size) && !memchr(text.data, '"', text.size) ? '"' : '\'';
  rdna__tpl_append(run, buffer, &quote, 1);
  for (size_t at = 0; at < text.size && run->status == RDNA_OK;) {
    size_t begin = at;
    uint32_t c = rdna__tpl_next(text, &at);
    char escape[12];
    if (c == (unsigned char)quote || c == '\\')
      snprintf(escape, sizeof escape, "\\%c", (char)c);
    else if (c == '\n' || c == '\r' || c == '\t')
      snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (rdna__tpl_is_printable(c))
      escape[0] = 0;
    else
      snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
    if (escape[0])
      rdna__tpl_append_text(run, buffer, escape);
    else
      rdna__tpl_append(run, buffer, text.data + begin, at - begin);
  }
  rdna__tpl_append(run, buffer, &quote, 1);
}

static void append_items(tpl_run *run, tpl_buffer *buffer, const tpl_list *list, const char *open, const char *close) {
  rdna__tpl_append_text(run, buffer, open);
  for (size_t i = 0; i < list->count && run->status == RDNA_OK; i++) {
    if (i) rdna__tpl_append(run, buffer, ", ", 2);
    rdna__tpl_append_repr(run, buffer, list->items[i]);
  }
  rdna__tpl_append_text(run, buffer, close);
}

static void append_dict(tpl_run *run, tpl_buffer *buffer, const tpl_dict *dict) {
  rdna__tpl_append(run, buffer, "{", 1);
  for (size_t i = 0; i < dict->count && run->status == RDNA_OK; i++) {
    if (i) rdna__tpl_append(run, buffer, ", ", 2);
    rdna__tpl_append_repr(run, buffer, dict->keys[i]);
    rdna__tpl_append(run, buffer, ": ", 2);
    rdna__tpl_append_repr(run, buffer, dict->values[i]);
  }
  rdna__tpl_append(run, buffer, "}", 1);
}

static void append_range(tpl_run *run, tpl_buffer *buffer, const tpl_list *range) {
  char text[90];
  int size = snprintf(text, sizeof text, "range(%lld, %lld", (long long)range->start, (long long)range->stop);
  if (range->step != 1) size += snprintf(text + size, sizeof text - (size_t)size, ", %lld", (long long)range->step);
  rdna__tpl_append(run, buffer, text, (size_t)size);
  rdna__tpl_append(run, buffer, ")", 1);
}

static void append_compound(tpl_run *run, tpl_buffer *buffer, tpl_value value) {
  if (!rdna__tpl_deeper(run)) return;
  if (value.kind == TPL_LIST) {
    append_items(run, buffer, value.list, "[", "]");
  } else if (value.kind == TPL_TUPLE) {
    append_items(run, buffer, value.list, "(", value.list->count == 1 ? ",)" : ")");
  } else if (value.kind == TPL_VIEW) {
    rdna__tpl_append_text(run, buffer, value.list->view_name);
    append_items(run, buffer, value.list, "([", "])");
  } else if (value.kind == TPL_RANGE) {
    append_range(run, buffer, value.list);
  } else {
    append_dict(run, buffer, value.dict);
  }
  rdna__tpl_shallower(run);
}

void rdna__tpl_append_repr(tpl_run *run, tpl_buffer *buffer, tpl_value value) {
  if (value.kind == TPL_STRING) {
    if (value.safe) rdna__tpl_append_text(run, buffer, "Markup(");
    append_string_repr(run, buffer, value.text);
    if (value.safe) rdna__tpl_append(run, buffer, ")", 1);
  } else if (value.kind == TPL_UNDEFINED) {
    rdna__tpl_append_text(run, buffer, "Undefined");
  } else {
    rdna__tpl_append_value(run, buffer, value);
  }
}

void rdna__tpl_append_value(tpl_run *run, tpl_buffer *buffer, tpl_value value) {
  char number[24];
  switch (value.kind) {
    case TPL_UNDEFINED:
      return;
    case TPL_NONE:
      rdna__tpl_append(run, buffer, "None", 4);
      return;
    case TPL_BOOL:
      rdna__tpl_append_text(run, buffer, value.boolean ? "True" : "False");
      return;
    case TPL_INT:
      rdna__tpl_append(run, buffer, number, (size_t)snprintf(number, sizeof number, "%lld", (long long)value.integer));
      return;
    case TPL_FLOAT:
      rdna__tpl_append_real(run, buffer, value.real);
      return;
    case TPL_STRING:
      rdna__tpl_append(run, buffer, value.text.data, value.text.size);
      return;
    case TPL_LIST:
    case TPL_TUPLE:
    case TPL_RANGE:
    case TPL_VIEW:
    case TPL_DICT:
      append_compound(run, buffer, value);
      return;
    default:
      rdna__tpl_fail(run, TPL_INVALID, "a %s cannot be printed%s", rdna__tpl_type_name(value),
                     value.kind == TPL_ITERATOR ? "; |list or |join makes something of it" : "");
  }
}

tpl_value rdna__tpl_to_text(tpl_run *run, tpl_value value) {
  if (value.kind == TPL_STRING) return value;
  tpl_buffer buffer = {0};
  rdna__tpl_append_value(run, &buffer, value);
  return tpl_buffer_text(&buffer);
}
