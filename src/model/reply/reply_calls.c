/* Reading calls behind their openers. */
#include <stdlib.h>
#include <string.h>

#include "model/reply/reply_parts.h"

#define DEEPSEEK(words) "<\xef\xbd\x9ctool\xe2\x96\x81" words "\xef\xbd\x9c>"

void rdna__reply_space(reply_cursor *c) {
  while (c->at < c->size && strchr(" \n\r\t", c->data[c->at]) && c->data[c->at]) c->at++;
}

reply_found rdna__reply_word(reply_cursor *c, const char *word) {
  size_t size = strlen(word), rest = c->size - c->at;
  if (memcmp(c->data + c->at, word, size < rest ? size : rest) != 0) return REPLY_BAD;
  if (rest < size) return REPLY_MORE;
  c->at += size;
  return REPLY_READ;
}

reply_found rdna__reply_until(reply_cursor *c, const char *word, rdna_text *out) {
  const char *found = memmem(c->data + c->at, c->size - c->at, word, strlen(word));
  if (!found) return REPLY_MORE;
  *out = (rdna_text){c->data + c->at, (size_t)(found - c->data) - c->at};
  c->at = (size_t)(found - c->data) + strlen(word);
  return REPLY_READ;
}

/* Counts brackets outside of texts; whether it is JSON is seen when it is whole. */
reply_found rdna__reply_json(reply_cursor *c, rdna_text *out) {
  size_t depth = 0, from = c->at;
  bool quoted = false;
  if (c->at == c->size) return REPLY_MORE;
  if (c->data[c->at] != '{' && c->data[c->at] != '[') return REPLY_BAD;
  for (; c->at < c->size; c->at++) {
    char byte = c->data[c->at];
    if (quoted) {
      if (byte == '\\') c->at++;
      if (byte == '"') quoted = false;
    } else if (byte == '"') {
      quoted = true;
    } else if (byte == '{' || byte == '[') {
      depth++;
    } else if ((byte == '}' || byte == ']') && --depth == 0) {
      c->at++;
      *out = (rdna_text){c->data + from, c->at - from};
      return REPLY_READ;
    }
  }
  c->at = c->size;
  return REPLY_MORE;
}

bool rdna__reply_is_object(rdna_text text) {
  json_t *value = json_loadb(text.data, text.size, 0, NULL);
  bool is_object = json_is_object(value);
  json_decref(value);
  return is_object;
}

/* Arguments as |object| has them in |text|: numbers and spaces as they were written. NULL data: there are none. */
static rdna_text find_member(rdna_text text, const char *key) {
  reply_cursor c = {text.data, 1, text.size};
  size_t size = strlen(key);
  for (size_t depth = 1; c.at < c.size; c.at++) {
    char byte = c.data[c.at];
    if (byte == '{' || byte == '[') depth++;
    if (byte == '}' || byte == ']') depth--;
    if (byte != '"') continue;
    size_t from = ++c.at;
    while (c.at < c.size && c.data[c.at] != '"') c.at += c.data[c.at] == '\\' ? 2 : 1;
    if (depth != 1 || c.at - from != size || memcmp(c.data + from, key, size) != 0) continue;
    c.at++;
    rdna__reply_space(&c);
    rdna_text value;
    if (rdna__reply_word(&c, ":") != REPLY_READ) {
      c.at--;
      continue;
    }
    rdna__reply_space(&c);
    if (rdna__reply_json(&c, &value) == REPLY_READ) return value;
    break;
  }
  return (rdna_text){NULL, 0};
}

/* {"name": …, "arguments": {…}}, or "parameters"; arguments may be a text with JSON in it. */
static reply_found add_object(rdna__reply *r, rdna_text text) {
  json_t *object = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
  const json_t *name = json_object_get(object, "name"), *arguments = json_object_get(object, "arguments");
  const char *key = arguments ? "arguments" : "parameters";
  if (!arguments) arguments = json_object_get(object, "parameters");
  reply_found found = REPLY_BAD;
  if (json_is_string(name) && json_string_length(name) > 0) {
    rdna_text raw = {json_string_value(arguments), json_string_length(arguments)};
    if (json_is_object(arguments)) raw = find_member(text, key);
    if (!arguments) raw = (rdna_text){"{}", 2};
    if (raw.data && rdna__reply_is_object(raw)) {
      rdna__reply_call(r, (rdna_text){json_string_value(name), json_string_length(name)}, raw);
      found = REPLY_READ;
    }
  }
  json_decref(object);
  return found;
}

/* One object, or a list of them. */
static reply_found read_objects(rdna__reply *r, reply_cursor *c) {
  rdna_text whole;
  rdna__reply_space(c);
  reply_found found = rdna__reply_json(c, &whole);
  if (found != REPLY_READ || *whole.data == '{') return found == REPLY_READ ? add_object(r, whole) : found;
  reply_cursor each = {whole.data, 1, whole.size};
  for (bool any = false;; any = true) {
    rdna__reply_space(&each);
    if (rdna__reply_word(&each, "]") == REPLY_READ) return any ? REPLY_READ : REPLY_BAD;
    if (any && rdna__reply_word(&each, ",") != REPLY_READ) return REPLY_BAD;
    rdna__reply_space(&each);
    if (each.at >= each.size || each.data[each.at] != '{') return REPLY_BAD;
    if (rdna__reply_json(&each, &whole) != REPLY_READ || add_object(r, whole) != REPLY_READ) return REPLY_BAD;
  }
}

/* ---- arguments as tags ---- */

/* Whether a function's argument is a text, by the tools that the model was given. */
static bool is_text(const rdna__reply *r, rdna_text function, rdna_text key, bool *out_known) {
  *out_known = false;
  for (size_t i = 0; i < json_array_size(r->tools); i++) {
    const json_t *tool = json_array_get(r->tools, i), *inner = json_object_get(tool, "function");
    if (inner) tool = inner;
    const char *name = json_string_value(json_object_get(tool, "name"));
    if (!name || strlen(name) != function.size || memcmp(name, function.data, function.size) != 0) continue;
    const json_t *properties = json_object_get(json_object_get(tool, "parameters"), "properties");
    char word[256];
    if (key.size >= sizeof word) return false;
    memcpy(word, key.data, key.size);
    word[key.size] = 0;
    const json_t *type = json_object_get(json_object_get(properties, word), "type");
    *out_known = json_is_string(type);
    return *out_known && strcmp(json_string_value(type), "string") == 0;
  }
  return false;
}

/* A value of a tag: a text as it is, others as JSON. Where the type is not known, what is JSON and no text is that. */
static json_t *value_of(const rdna__reply *r, rdna_text function, rdna_text key, rdna_text text) {
  bool known, as_text = is_text(r, function, key, &known);
  json_t *value = as_text ? NULL : json_loadb(text.data, text.size, JSON_DECODE_ANY, NULL);
  if (value && !known && json_is_string(value)) {
    json_decref(value);
    value = NULL;
  }
  return value ? value : json_stringn(text.data, text.size);
}

static reply_found add_arguments(rdna__reply *r, rdna_text name, json_t *arguments) {
  char *text = json_dumps(arguments, 0);
  bool fine = text && name.size > 0;
  if (fine) rdna__reply_call(r, name, (rdna_text){text, strlen(text)});
  free(text);
  return fine ? REPLY_READ : REPLY_BAD;
}

static rdna_text trimmed(rdna_text text) {
  while (text.size && strchr(" \n\r\t", *text.data)) text = (rdna_text){text.data + 1, text.size - 1};
  while (text.size && strchr(" \n\r\t", text.data[text.size - 1])) text.size--;
  return text;
}

/* One line's end on either side, which templates put there. */
static rdna_text without_ends(rdna_text text) {
  if (text.size && *text.data == '\n') text = (rdna_text){text.data + 1, text.size - 1};
  if (text.size && text.data[text.size - 1] == '\n') text.size--;
  return text;
}

static bool set_argument(const rdna__reply *r, json_t *arguments, rdna_text function, rdna_text key, rdna_text text) {
  json_t *value = value_of(r, function, key, text);
  return value && key.size && json_object_setn_new(arguments, key.data, key.size, value) == 0;
}

/* Up to an end of a value behind which |next| or |last| follows. */
static reply_found read_value(reply_cursor *c, const char *end, const char *next, const char *last, rdna_text *out) {
  size_t from = c->at;
  for (;;) {
    rdna_text piece;
    if (rdna__reply_until(c, end, &piece) != REPLY_READ) return REPLY_MORE;
    *out = (rdna_text){c->data + from, (size_t)(piece.data + piece.size - (c->data + from))};
    reply_cursor ahead = *c;
    rdna__reply_space(&ahead);
    reply_found a = rdna__reply_word(&ahead, next), b = rdna__reply_word(&ahead, last);
    if (a == REPLY_READ || b == REPLY_READ) return REPLY_READ;
    if (a == REPLY_MORE || b == REPLY_MORE) return REPLY_MORE;
  }
}

/* <function=NAME><parameter=KEY>\nVALUE\n</parameter>…</function> */
static reply_found read_function(rdna__reply *r, reply_cursor *c) {
  rdna_text name, key, text;
  if (rdna__reply_until(c, ">", &name) != REPLY_READ) return REPLY_MORE;
  json_t *arguments = json_object();
  reply_found found;
  for (;;) {
    rdna__reply_space(c);
    found = rdna__reply_word(c, "</function>");
    if (found != REPLY_BAD) break;
    found = rdna__reply_word(c, "<parameter=");
    if (found == REPLY_READ) found = rdna__reply_until(c, ">", &key);
    if (found == REPLY_READ) found = read_value(c, "</parameter>", "<parameter=", "</function>", &text);
    if (found == REPLY_READ && !set_argument(r, arguments, name, key, without_ends(text))) found = REPLY_BAD;
    if (found != REPLY_READ) break;
  }
  if (found == REPLY_READ) found = add_arguments(r, name, arguments);
  json_decref(arguments);
  return found;
}

/* NAME\n<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>…</tool_call> */
static reply_found read_keys(rdna__reply *r, reply_cursor *c) {
  rdna_text name = {c->data + c->at, 0}, key, text;
  while (c->at < c->size && c->data[c->at] != '<') c->at++;
  if (c->at == c->size) return REPLY_MORE;
  name.size = c->at - (size_t)(name.data - c->data);
  name = trimmed(name);
  if (name.size == 0 || memchr(name.data, '\n', name.size)) return REPLY_BAD;
  json_t *arguments = json_object();
  reply_found found;
  for (;;) {
    rdna__reply_space(c);
    found = rdna__reply_word(c, "</tool_call>");
    if (found != REPLY_BAD) break;
    found = rdna__reply_word(c, "<arg_key>");
    if (found == REPLY_READ) found = rdna__reply_until(c, "</arg_key>", &key);
    if (found == REPLY_READ) rdna__reply_space(c);
    if (found == REPLY_READ) found = rdna__reply_word(c, "<arg_value>");
    if (found == REPLY_READ) found = read_value(c, "</arg_value>", "<arg_key>", "</tool_call>", &text);
    if (found == REPLY_READ && !set_argument(r, arguments, name, trimmed(key), text)) found = REPLY_BAD;
    if (found != REPLY_READ) break;
  }
  if (found == REPLY_READ) found = add_arguments(r, name, arguments);
  json_decref(arguments);
  return found;
}

/* Behind <tool_call>: JSON, a function with parameters, or a name with keys and values. */
static reply_found read_tool_call(rdna__reply *r, reply_cursor *c) {
  rdna__reply_space(c);
  if (c->at == c->size) return REPLY_MORE;
  reply_found found = rdna__reply_word(c, "<function=");
  if (found == REPLY_MORE) return found;
  if (found == REPLY_READ) {
    found = read_function(r, c);
  } else if (c->data[c->at] == '{' || c->data[c->at] == '[') {
    found = read_objects(r, c);
  } else {
    return read_keys(r, c);
  }
  if (found != REPLY_READ) return found;
  rdna__reply_space(c);
  found = rdna__reply_word(c, "</tool_call>");
  if (found == REPLY_MORE && r->final && c->at == c->size) return REPLY_READ; /* the output ended with the call */
  return found == REPLY_BAD && r->format.form == RDNA__REPLY_GRANITE ? REPLY_READ : found;
}

/* [{…}, {…}], or NAME[ARGS]{…}; some models write [CALL_ID] and an id before the arguments. */
static reply_found read_mistral(rdna__reply *r, reply_cursor *c) {
  rdna__reply_space(c);
  if (c->at == c->size) return REPLY_MORE;
  if (c->data[c->at] == '[' || c->data[c->at] == '{') return read_objects(r, c);
  rdna_text name = {c->data + c->at, 0}, arguments;
  while (c->at < c->size && c->data[c->at] != '[' && c->data[c->at] != '{') c->at++;
  if (c->at == c->size) return REPLY_MORE;
  name.size = c->at - (size_t)(name.data - c->data);
  name = trimmed(name);
  reply_found found = rdna__reply_word(c, "[CALL_ID]");
  if (found == REPLY_MORE) return found;
  if (found == REPLY_READ)
    while (c->at < c->size && c->data[c->at] != '[' && c->data[c->at] != '{') c->at++;
  found = rdna__reply_word(c, "[ARGS]");
  if (found == REPLY_MORE) return found;
  rdna__reply_space(c);
  found = rdna__reply_json(c, &arguments);
  if (found != REPLY_READ) return found;
  if (name.size == 0 || memchr(name.data, '\n', name.size) || !rdna__reply_is_object(arguments)) return REPLY_BAD;
  rdna__reply_call(r, name, arguments);
  return REPLY_READ;
}

/* function SEP NAME\n```json\n{…}\n``` END of V3 and R1, NAME SEP {…} END of V3.1. */
static reply_found read_deepseek(rdna__reply *r, reply_cursor *c) {
  rdna_text name, arguments;
  reply_found found = rdna__reply_until(c, DEEPSEEK("sep"), &name);
  if (found != REPLY_READ) return found;
  bool fenced = name.size == 8 && memcmp(name.data, "function", 8) == 0;
  rdna__reply_space(c);
  if (c->at == c->size) return REPLY_MORE;
  if (fenced && c->data[c->at] != '{') {
    found = rdna__reply_until(c, "\n", &name);
    if (found == REPLY_READ) found = rdna__reply_word(c, "```json");
    if (found != REPLY_READ) return found;
    rdna__reply_space(c);
  } else {
    fenced = false;
  }
  found = rdna__reply_json(c, &arguments);
  if (found != REPLY_READ) return found;
  rdna__reply_space(c);
  if (fenced) found = rdna__reply_word(c, "```");
  if (found == REPLY_READ)
    found = rdna__reply_word(c, DEEPSEEK("call\xe2\x96\x81"
                                         "end"));
  if (found != REPLY_READ) return found;
  name = trimmed(name);
  if (name.size == 0 || !rdna__reply_is_object(arguments)) return REPLY_BAD;
  rdna__reply_call(r, name, arguments);
  return REPLY_READ;
}

/* All calls between the begin and the end of the list. */
static reply_found read_deepseek_list(rdna__reply *r, reply_cursor *c) {
  for (bool any = false;; any = true) {
    rdna__reply_space(c);
    reply_found end = rdna__reply_word(c, DEEPSEEK("calls\xe2\x96\x81"
                                                   "end"));
    if (any && end == REPLY_READ) return end;
    if (any && r->final && c->at == c->size) return REPLY_READ;
    reply_found found = rdna__reply_word(c, DEEPSEEK("call\xe2\x96\x81"
                                                     "begin"));
    if (found == REPLY_READ) found = read_deepseek(r, c);
    if (found != REPLY_READ) return end == REPLY_MORE ? REPLY_MORE : found;
  }
}

/* One object after another, with semicolons between them. */
static reply_found read_llama(rdna__reply *r, reply_cursor *c) {
  for (;;) {
    reply_found found = read_objects(r, c);
    if (found != REPLY_READ) return found;
    reply_cursor ahead = *c;
    rdna__reply_space(&ahead);
    if (ahead.at == ahead.size) return r->final ? REPLY_READ : REPLY_MORE;
    if (rdna__reply_word(&ahead, ";") != REPLY_READ) return REPLY_READ;
    rdna__reply_space(&ahead);
    if (ahead.at == ahead.size && r->final) return REPLY_READ;
    *c = ahead;
  }
}

reply_found rdna__reply_read_calls(rdna__reply *r, const char *opener, reply_cursor *c) {
  reply_found found;
  switch (r->format.form) {
    case RDNA__REPLY_LLAMA:
      return read_llama(r, c);
    case RDNA__REPLY_MISTRAL:
      return read_mistral(r, c);
    case RDNA__REPLY_DEEPSEEK:
      return strstr(opener, "calls") ? read_deepseek_list(r, c) : read_deepseek(r, c);
    case RDNA__REPLY_GRANITE:
      if (strcmp(opener, "<tool_call>") == 0) break;
      found = read_objects(r, c);
      if (found != REPLY_READ) return found;
      found = rdna__reply_word(c, "<|/tool_call|>");
      return found == REPLY_MORE && !r->final ? found : REPLY_READ;
    default:
      if (strcmp(opener, "<function=") != 0) break;
      c->at += strlen(opener);
      return read_function(r, c);
  }
  return read_tool_call(r, c);
}
