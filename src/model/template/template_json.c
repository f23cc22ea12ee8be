/* JSON to values, and the filter tojson, which writes as Python's json.dumps does. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/template/template.h"

tpl_value rdna__tpl_from_json(tpl_run *run, const json_t *json) {
  tpl_value value = tpl_none();
  if (json_is_string(json)) return tpl_text(json_string_value(json), json_string_length(json));
  if (json_is_integer(json)) return tpl_int(json_integer_value(json));
  if (json_is_real(json)) return tpl_real(json_real_value(json));
  if (json_is_boolean(json)) return tpl_bool(json_is_true(json));
  if (json_is_null(json) || !rdna__tpl_deeper(run)) return value;
  if (json_is_array(json)) {
    value = rdna__tpl_list_value(TPL_LIST, rdna__tpl_new_list(run, json_array_size(json)));
    for (size_t i = 0; i < json_array_size(json) && run->status == RDNA_OK; i++)
      rdna__tpl_list_add(run, value.list, rdna__tpl_from_json(run, json_array_get(json, i)));
  } else {
    tpl_dict *dict = rdna__tpl_new_dict(run);
    size_t count = json_object_size(json);
    tpl_value *keys = count ? rdna__tpl_alloc(run, 2 * count * sizeof *keys) : NULL;
    if (keys) *dict = (tpl_dict){keys, keys + count, 0, count};
    for (void *at = json_object_iter((json_t *)json); at && run->status == RDNA_OK;
         at = json_object_iter_next((json_t *)json, at)) { /* its keys differ: no need to look */
      dict->keys[dict->count] = tpl_text(json_object_iter_key(at), json_object_iter_key_len(at));
      dict->values[dict->count++] = rdna__tpl_from_json(run, json_object_iter_value(at));
    }
    value = (tpl_value){.kind = TPL_DICT, .dict = dict};
  }
  rdna__tpl_shallower(run);
  return value;
}

typedef struct writer {
  tpl_run *run;
  tpl_buffer buffer;
  bool ascii, sort, lines;
  rdna_text indent; /* of one level, when |lines| */
  rdna_text comma, colon;
  int level;
} writer;

static void put(writer *w, rdna_text text) { rdna__tpl_append(w->run, &w->buffer, text.data, text.size); }
static void put_text(writer *w, const char *text) { rdna__tpl_append_text(w->run, &w->buffer, text); }

static void put_string(writer *w, rdna_text text) {
  static const char named[] = "\"\\\n\r\t\b\f", names[] = "\"\\nrtbf";
  put_text(w, "\"");
  for (size_t at = 0; at < text.size && w->run->status == RDNA_OK;) {
    size_t begin = at;
    uint32_t c = rdna__tpl_next(text, &at);
    const char *found = c && c < 0x80 ? strchr(named, (int)c) : NULL;
    char escape[16];
    if (found)
      snprintf(escape, sizeof escape, "\\%c", names[found - named]);
    else if (c >= 0x20 && (!w->ascii || c < 0x80))
      escape[0] = 0;
    else if (c < 0x10000)
      snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
    else /* two halves, as in UTF-16 */
      snprintf(escape, sizeof escape, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
               (unsigned)(0xdc00 + (c & 0x3ff)));
    if (escape[0])
      put_text(w, escape);
    else
      put(w, (rdna_text){text.data + begin, at - begin});
  }
  put_text(w, "\"");
}

static void put_value(writer *w, tpl_value value);

static void put_newline(writer *w) {
  if (!w->lines) return;
  put_text(w, "\n");
  for (int i = 0; i < w->level && w->run->status == RDNA_OK; i++) put(w, w->indent);
}

/* Before item |index|. */
static void put_between(writer *w, size_t index) {
  if (index) put(w, w->comma);
  put_newline(w);
}

static void put_list(writer *w, const tpl_list *list) {
  put_text(w, "[");
  w->level++;
  for (size_t i = 0; i < list->count && w->run->status == RDNA_OK; i++) {
    put_between(w, i);
    put_value(w, list->items[i]);
  }
  w->level--;
  if (list->count) put_newline(w);
  put_text(w, "]");
}

static void put_key(writer *w, tpl_value key) {
  if (key.kind == TPL_STRING) {
    put_string(w, key.text);
  } else if (key.kind == TPL_TUPLE) {
    rdna__tpl_fail(w->run, TPL_INVALID, "tojson: a tuple cannot be a key in JSON");
  } else {
    put_text(w, "\"");
    put_value(w, key);
    put_text(w, "\"");
  }
}

static void put_dict(writer *w, const tpl_dict *dict) {
  tpl_list *order = rdna__tpl_new_list(w->run, dict->count); /* places; sorted by key if asked for */
  for (size_t i = 0; i < dict->count; i++) {
    rdna__tpl_list_add(w->run, order, tpl_int((int64_t)i));
    for (size_t j = order->count; w->sort && j-- > 1;) {
      tpl_value *items = order->items, moved = items[j];
      if (rdna__tpl_order(w->run, dict->keys[items[j - 1].integer], dict->keys[moved.integer]) <= 0) break;
      items[j] = items[j - 1];
      items[j - 1] = moved;
    }
  }
  put_text(w, "{");
  w->level++;
  for (size_t i = 0; i < order->count && w->run->status == RDNA_OK; i++) {
    size_t at = (size_t)order->items[i].integer;
    put_between(w, i);
    put_key(w, dict->keys[at]);
    put(w, w->colon);
    put_value(w, dict->values[at]);
  }
  w->level--;
  if (dict->count) put_newline(w);
  put_text(w, "}");
}

static void put_value(writer *w, tpl_value value) {
  if (value.kind == TPL_STRING) {
    put_string(w, value.text);
  } else if (value.kind == TPL_NONE) {
    put_text(w, "null");
  } else if (value.kind == TPL_BOOL) {
    put_text(w, value.boolean ? "true" : "false");
  } else if (value.kind == TPL_FLOAT && !isfinite(value.real)) {
    put_text(w, isnan(value.real) ? "NaN" : value.real < 0 ? "-Infinity" : "Infinity");
  } else if (value.kind == TPL_INT || value.kind == TPL_FLOAT) {
    rdna__tpl_append_value(w->run, &w->buffer, value);
  } else if (value.kind != TPL_LIST && value.kind != TPL_TUPLE && value.kind != TPL_DICT) {
    rdna_text name = value.kind == TPL_UNDEFINED ? value.text : (rdna_text){"value", 5};
    rdna__tpl_fail(w->run, TPL_INVALID, "tojson: '%.*s' is of type %s, which JSON does not have", (int)name.size,
                   name.data ? name.data : "", rdna__tpl_type_name(value));
  } else if (rdna__tpl_deeper(w->run)) {
    if (value.kind == TPL_DICT)
      put_dict(w, value.dict);
    else
      put_list(w, value.list);
    rdna__tpl_shallower(w->run);
  }
}

static tpl_value to_json(tpl_run *run, tpl_value self, const tpl_call *call) {
  tpl_value ascii = call->at[0], indent = call->at[1], separators = call->at[2], sort = call->at[3];
  writer w = {.run = run, .ascii = rdna__tpl_truth(ascii), .sort = rdna__tpl_truth(sort)};
  w.lines = indent.kind != TPL_ABSENT && indent.kind != TPL_NONE;
  w.comma = w.lines ? (rdna_text){",", 1} : (rdna_text){", ", 2};
  w.colon = (rdna_text){": ", 2};
  int64_t spaces = 0;
  if (w.lines && indent.kind == TPL_STRING) {
    w.indent = indent.text;
  } else if (w.lines) {
    tpl_buffer buffer = {0};
    if (!rdna__tpl_get_int(run, indent, "tojson's indent", &spaces)) return self;
    for (int64_t i = 0; i < spaces && run->status == RDNA_OK; i++) rdna__tpl_append(run, &buffer, " ", 1);
    w.indent = tpl_buffer_text(&buffer).text;
  }
  if (separators.kind == TPL_TUPLE || separators.kind == TPL_LIST) {
    const tpl_list *both = separators.list;
    if (both->count != 2 || both->items[0].kind != TPL_STRING || both->items[1].kind != TPL_STRING)
      return rdna__tpl_fail(run, TPL_INVALID, "tojson's separators are two texts");
    w.comma = both->items[0].text;
    w.colon = both->items[1].text;
  }
  put_value(&w, self);
  return tpl_buffer_text(&w.buffer);
}

const tpl_function rdna__tpl_tojson = {"tojson", "ensure_ascii? indent? separators? sort_keys?", to_json};
