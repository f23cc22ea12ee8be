#include "model/grammar/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rules that every grammar of a schema has. A pair of escapes is one character, as it is for those who count them. */
static const char common[] =
    "sp ::= (\" \" | \"\\n\" [ \\t]{0,40})?\n"
    "hex ::= [0-9a-fA-F]\n"
    "char ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-cefA-CEF] hex{3} | [dD] [0-7] hex{2} | "
    "[dD] "
    "[89abAB] hex{2} \"\\\\u\" [dD] [c-fC-F] hex{2}))\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,17})\n"
    "number ::= integer (\".\" [0-9]{1,18})? ([eE] [-+]? [0-9] [0-9]?)?\n"
    "object ::= \"{\" sp (string \":\" sp value (\",\" sp string \":\" sp value)*)? sp \"}\"\n"
    "array ::= \"[\" sp (value (\",\" sp value)*)? sp \"]\"\n"
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n";

const char *rdna__grammar_any_object(void) {
  return "root ::= object\n"
         "sp ::= (\" \" | \"\\n\" [ \\t]{0,40})?\n"
         "char ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n"
         "string ::= \"\\\"\" char* \"\\\"\"\n"
         "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,17}) (\".\" [0-9]{1,18})? ([eE] [-+]? [0-9] [0-9]?)?\n"
         "object ::= \"{\" sp (string \":\" sp value (\",\" sp string \":\" sp value)*)? sp \"}\"\n"
         "array ::= \"[\" sp (value (\",\" sp value)*)? sp \"]\"\n"
         "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n";
}

static void out_of_memory(schema_compiler *c) {
  if (c->status == RDNA_OK) c->status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schema's grammar");
}

static void put_bytes(schema_compiler *c, const char *bytes, size_t size) {
  if (c->status != RDNA_OK) return;
  schema_text *t = &c->out;
  if (t->size + size > SCHEMA_MOST_TEXT) {
    rdna__schema_refuse(c, RDNA_UNSUPPORTED, "the schema's grammar has more than %d bytes", SCHEMA_MOST_TEXT);
    return;
  }
  if (t->room - t->size < size + 1) {
    size_t room = 2 * (t->room + size + 64);
    char *grown = realloc(t->data, room);
    if (!grown) {
      out_of_memory(c);
      return;
    }
    t->data = grown;
    t->room = room;
  }
  memcpy(t->data + t->size, bytes, size);
  t->size += size;
  t->data[t->size] = 0;
}

void rdna__schema_put(schema_compiler *c, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  put_bytes(c, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

void rdna__schema_put_text(schema_compiler *c, const char *text) { put_bytes(c, text, strlen(text)); }

void rdna__schema_refuse(schema_compiler *c, rdna_status status, const char *format, ...) {
  if (c->status != RDNA_OK) return;
  char sentence[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  c->status = rdna__fail(status, "the schema at %.200s: %s", c->path, sentence);
}

void rdna__schema_literal(schema_compiler *c, const char *text, size_t size) {
  put_bytes(c, "\"", 1);
  for (size_t i = 0; i < size; i++) {
    unsigned char byte = (unsigned char)text[i];
    if (byte == '"' || byte == '\\') {
      rdna__schema_put(c, "\\%c", byte);
    } else if (byte < 32) {
      rdna__schema_put(c, "\\x%02x", byte);
    } else {
      put_bytes(c, text + i, 1);
    }
  }
  put_bytes(c, "\"", 1);
}

void rdna__schema_value(schema_compiler *c, const json_t *schema, const char *format, ...) {
  if (c->status != RDNA_OK) return;
  for (size_t i = 0; i < c->rule_count; i++)
    if (c->rules[i].schema == schema && !json_is_boolean(schema)) {
      rdna__schema_put(c, "s%zu", i);
      return;
    }
  if (c->rule_count == SCHEMA_MOST_RULES) {
    rdna__schema_refuse(c, RDNA_UNSUPPORTED, "the schema has more than %d parts", SCHEMA_MOST_RULES);
    return;
  }
  char step[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(step, sizeof step, format, arguments);
  va_end(arguments);
  if (c->rule_count == c->rule_room) {
    size_t room = 2 * c->rule_room + 16;
    schema_rule *grown = realloc(c->rules, room * sizeof *grown);
    if (!grown) {
      out_of_memory(c);
      return;
    }
    c->rules = grown;
    c->rule_room = room;
  }
  char path[600];
  snprintf(path, sizeof path, "%.390s%s", c->path, step);
  schema_rule rule = {.schema = schema, .path = strdup(path)};
  if (!rule.path) {
    out_of_memory(c);
    return;
  }
  c->rules[c->rule_count] = rule;
  rdna__schema_put(c, "s%zu", c->rule_count++);
}

void rdna__schema_swap(schema_compiler *c) {
  schema_text out = c->out;
  c->out = c->aside;
  c->aside = out;
}

void rdna__schema_count(schema_compiler *c, const json_t *schema, const char *keyword, uint32_t *out) {
  const json_t *value = json_object_get(schema, keyword);
  if (!value) return;
  double number = json_is_number(value) ? json_number_value(value) : -1;
  if (!(number >= 0 && number <= SCHEMA_MOST_LENGTH) || number != (double)(uint32_t)number) {
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "%s is to be a whole number from 0 to %d", keyword,
                        SCHEMA_MOST_LENGTH);
    return;
  }
  *out = (uint32_t)number;
}

/* ---- references ---- */

/* One step of a JSON pointer (RFC 6901), which may be percent-encoded. */
static void decode_step(const char *step, size_t size, char *out) {
  size_t used = 0;
  for (size_t i = 0; i < size; i++) {
    unsigned value;
    char hex[3] = {0};
    if (step[i] == '%' && size - i > 2) {
      hex[0] = step[i + 1];
      hex[1] = step[i + 2];
      if (sscanf(hex, "%2x", &value) == 1) {
        out[used++] = (char)value;
        i += 2;
        continue;
      }
    }
    if (step[i] == '~' && i + 1 < size && (step[i + 1] == '0' || step[i + 1] == '1')) {
      out[used++] = step[++i] == '0' ? '~' : '/';
      continue;
    }
    out[used++] = step[i];
  }
  out[used] = 0;
}

static const json_t *find_reference(schema_compiler *c, const char *reference) {
  const json_t *at = c->root;
  const char *rest = reference;
  if (*rest++ != '#') at = NULL;
  while (at && *rest == '/') {
    size_t size = strcspn(++rest, "/");
    char *step = malloc(size + 1);
    if (!step) {
      out_of_memory(c);
      return NULL;
    }
    decode_step(rest, size, step);
    at = json_is_array(at) ? json_array_get(at, strtoul(step, NULL, 10)) : json_object_get(at, step);
    free(step);
    rest += size;
  }
  if (at && *rest == 0) return at;
  rdna__schema_refuse(c, RDNA_UNSUPPORTED, "$ref %.150s is not found in the schema itself", reference);
  return NULL;
}

/* ---- what is refused ---- */

static bool is_one_of(const char *word, const char *const *list) {
  for (; *list; list++)
    if (strcmp(word, *list) == 0) return true;
  return false;
}

static const char *const annotations[] = {
    "title",           "description", "default",      "examples",  "example", "$schema",     "$id",
    "$comment",        "deprecated",  "readOnly",     "writeOnly", "$defs",   "definitions", "contentMediaType",
    "contentEncoding", "strict",      "externalDocs", "xml",       NULL};
static const char *const read_keywords[] = {"type",
                                            "nullable",
                                            "enum",
                                            "const",
                                            "anyOf",
                                            "oneOf",
                                            "allOf",
                                            "$ref",
                                            "properties",
                                            "required",
                                            "additionalProperties",
                                            "minProperties",
                                            "items",
                                            "prefixItems",
                                            "minItems",
                                            "maxItems",
                                            "minLength",
                                            "maxLength",
                                            "pattern",
                                            "format",
                                            "minimum",
                                            "maximum",
                                            "exclusiveMinimum",
                                            "exclusiveMaximum",
                                            NULL};

static bool is_annotation(const char *keyword) {
  return is_one_of(keyword, annotations) || strncmp(keyword, "x-", 2) == 0;
}

/* What changes nothing as it stands. */
static bool is_idle(const char *keyword, const json_t *value) {
  if (strcmp(keyword, "uniqueItems") == 0) return json_is_false(value);
  if (strcmp(keyword, "unevaluatedProperties") == 0 || strcmp(keyword, "unevaluatedItems") == 0)
    return json_is_true(value);
  if (strcmp(keyword, "multipleOf") == 0) return json_is_number(value) && json_number_value(value) == 1;
  return false;
}

static void refuse_unknown(schema_compiler *c, json_t *schema) {
  const char *keyword;
  json_t *value;
  json_object_foreach(schema, keyword, value) {
    if (!is_annotation(keyword) && !is_one_of(keyword, read_keywords) && !is_idle(keyword, value))
      rdna__schema_refuse(c, RDNA_UNSUPPORTED, "the keyword %.100s cannot be enforced", keyword);
  }
}

/* ---- types ---- */

static const char *const type_names[] = {"object", "array", "string", "integer", "number", "boolean", "null", NULL};
enum { OBJECT = 1, ARRAY = 2, STRING = 4, INTEGER = 8, NUMBER = 16, BOOLEAN = 32, NOTHING = 64, ANY = 127 };

static unsigned type_of_name(schema_compiler *c, const json_t *name) {
  for (int i = 0; type_names[i]; i++)
    if (json_is_string(name) && strcmp(json_string_value(name), type_names[i]) == 0) return 1u << i;
  rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT,
                      "type is to be one of object, array, string, integer, number, boolean, "
                      "null, or a list of these");
  return 0;
}

/* The types that a schema without a type means by its keywords. */
static unsigned types_of_keywords(const json_t *schema) {
  static const struct {
    const char *keyword;
    unsigned types;
  } rows[] = {{"properties", OBJECT},      {"required", OBJECT}, {"additionalProperties", OBJECT},
              {"minProperties", OBJECT},   {"items", ARRAY},     {"prefixItems", ARRAY},
              {"minItems", ARRAY},         {"maxItems", ARRAY},  {"minLength", STRING},
              {"maxLength", STRING},       {"pattern", STRING},  {"format", STRING},
              {"minimum", NUMBER},         {"maximum", NUMBER},  {"exclusiveMinimum", NUMBER},
              {"exclusiveMaximum", NUMBER}};
  unsigned types = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (json_object_get(schema, rows[i].keyword)) types |= rows[i].types;
  return types ? types : ANY;
}

static unsigned types_of(schema_compiler *c, const json_t *schema) {
  const json_t *type = json_object_get(schema, "type");
  unsigned types = 0;
  if (json_is_array(type)) {
    for (size_t i = 0; i < json_array_size(type); i++) types |= type_of_name(c, json_array_get(type, i));
  } else {
    types = type ? type_of_name(c, type) : types_of_keywords(schema);
  }
  if (json_is_true(json_object_get(schema, "nullable"))) types |= NOTHING;
  return types;
}

static unsigned type_of_value(const json_t *value) {
  switch (json_typeof(value)) {
    case JSON_OBJECT:
      return OBJECT;
    case JSON_ARRAY:
      return ARRAY;
    case JSON_STRING:
      return STRING;
    case JSON_INTEGER:
      return INTEGER | NUMBER;
    case JSON_REAL:
      return NUMBER;
    case JSON_NULL:
      return NOTHING;
    default:
      return BOOLEAN;
  }
}

/* ---- merging ---- */

static json_t *keep(schema_compiler *c, json_t *schema) {
  if (!schema || json_array_append_new(c->made, schema) != 0) {
    out_of_memory(c);
    return NULL;
  }
  return schema;
}

/* |schema| with what it refers to in place of the reference. */
static const json_t *resolved(schema_compiler *c, const json_t *schema) {
  for (int steps = 0; json_is_object(schema) && c->status == RDNA_OK; steps++) {
    const json_t *reference = json_object_get(schema, "$ref");
    if (!reference) return schema;
    if (!json_is_string(reference) || steps == 64) {
      rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "$ref leads to itself, or is no text");
      return NULL;
    }
    const json_t *target = find_reference(c, json_string_value(reference));
    bool alone = true;
    const char *keyword;
    json_t *value;
    json_object_foreach((json_t *)schema, keyword, value) {
      if (strcmp(keyword, "$ref") != 0 && !is_annotation(keyword)) alone = false;
    }
    if (!target) return NULL;
    if (!alone) {
      json_t *rest = keep(c, json_copy((json_t *)schema));
      if (!rest) return NULL;
      json_object_del(rest, "$ref");
      target = rdna__schema_merge(c, target, rest);
    }
    schema = target;
  }
  return schema;
}

static void merge_keyword(schema_compiler *c, json_t *out, const char *keyword, json_t *a, json_t *b);

static json_t *intersection(json_t *a, json_t *b) {
  json_t *out = json_array();
  for (size_t i = 0; i < json_array_size(a); i++)
    for (size_t j = 0; j < json_array_size(b); j++)
      if (json_equal(json_array_get(a, i), json_array_get(b, j))) {
        json_array_append(out, json_array_get(a, i));
        break;
      }
  return out;
}

static json_t *both(json_t *a, json_t *b) { return json_pack("{s:[O,O]}", "allOf", a, b); }

/* The properties of both; those in both are to satisfy both. */
static json_t *merge_properties(json_t *a, json_t *b) {
  json_t *out = json_copy(a), *value;
  const char *name;
  json_object_foreach(b, name, value) {
    json_t *other = json_object_get(a, name);
    json_object_set_new(out, name, other ? both(other, value) : json_incref(value));
  }
  return out;
}

static json_t *join_lists(json_t *a, json_t *b) {
  json_t *out = json_copy(a);
  json_array_extend(out, b);
  return out;
}

static json_t *as_list(json_t *value) { return json_is_array(value) ? json_incref(value) : json_pack("[O]", value); }

static void merge_keyword(schema_compiler *c, json_t *out, const char *keyword, json_t *a, json_t *b) {
  static const char *const at_least[] = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", NULL};
  static const char *const at_most[] = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", NULL};
  json_t *merged = NULL;
  if (json_equal(a, b) || is_annotation(keyword)) {
    merged = json_incref(b);
  } else if (is_one_of(keyword, at_least) || is_one_of(keyword, at_most)) {
    bool first = (json_number_value(a) > json_number_value(b)) == is_one_of(keyword, at_least);
    merged = json_incref(first ? a : b);
  } else if (strcmp(keyword, "properties") == 0) {
    merged = merge_properties(a, b);
  } else if (strcmp(keyword, "required") == 0 || strcmp(keyword, "allOf") == 0) {
    merged = join_lists(a, b);
  } else if (strcmp(keyword, "enum") == 0) {
    merged = intersection(a, b);
  } else if (strcmp(keyword, "type") == 0) {
    json_t *left = as_list(a), *right = as_list(b);
    merged = intersection(left, right);
    json_decref(left);
    json_decref(right);
  } else if (strcmp(keyword, "items") == 0) {
    merged = both(a, b);
  } else if (strcmp(keyword, "additionalProperties") == 0) {
    merged = json_is_boolean(a) || json_is_boolean(b) ? json_incref(json_is_false(a) || json_is_true(b) ? a : b)
                                                      : both(a, b);
  } else {
    rdna__schema_refuse(c, RDNA_UNSUPPORTED, "two %.60s apply to the same value, which cannot be enforced", keyword);
  }
  if (merged) json_object_set_new(out, keyword, merged);
}

/* Of the properties that only |other| has, those that |closed| does not allow. */
static void drop_closed(schema_compiler *c, json_t *out, const json_t *closed, const json_t *other) {
  const json_t *own = json_object_get(closed, "properties"), *more = json_object_get(closed, "additionalProperties");
  json_t *properties = json_object_get(other, "properties"), *value;
  if (!more || json_is_true(more)) return;
  json_t *kept = json_copy(json_object_get(out, "properties"));
  const char *name;
  json_object_foreach(properties, name, value) {
    if (json_object_get(own, name)) continue;
    if (json_is_false(more)) {
      json_object_del(kept, name);
    } else {
      rdna__schema_refuse(c, RDNA_UNSUPPORTED, "additionalProperties with a schema, beside other properties in allOf");
    }
  }
  if (kept) json_object_set_new(out, "properties", kept);
}

json_t *rdna__schema_merge(schema_compiler *c, const json_t *a, const json_t *b) {
  if (++c->merges > SCHEMA_MOST_MERGES)
    rdna__schema_refuse(c, RDNA_UNSUPPORTED, "more than %d schemas are to be joined", SCHEMA_MOST_MERGES);
  a = resolved(c, a);
  b = resolved(c, b);
  if (c->status != RDNA_OK) return NULL;
  if (json_is_true(a)) return (json_t *)b;
  if (json_is_true(b)) return (json_t *)a;
  if (!json_is_object(a) || !json_is_object(b)) {
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "a schema is to be an object or true");
    return NULL;
  }
  json_t *out = keep(c, json_copy((json_t *)a)), *value;
  const char *keyword;
  json_object_foreach((json_t *)b, keyword, value) {
    json_t *other = json_object_get(a, keyword);
    if (!out || c->status != RDNA_OK) return NULL;
    if (other) {
      merge_keyword(c, out, keyword, other, value);
    } else {
      json_object_set(out, keyword, value);
    }
  }
  if (!out) return NULL;
  drop_closed(c, out, a, b);
  drop_closed(c, out, b, a);
  return c->status == RDNA_OK ? out : NULL;
}

/* ---- alternatives ---- */

static json_t *without(schema_compiler *c, const json_t *schema, const char *keyword) {
  json_t *rest = keep(c, json_copy((json_t *)schema)), *value;
  if (!rest) return NULL;
  json_object_del(rest, keyword);
  const char *name;
  void *next;
  json_object_foreach_safe(rest, next, name, value) {
    if (is_annotation(name)) json_object_del(rest, name);
  }
  return rest;
}

/* The values that a schema lists, new; NULL when it lists none. */
static json_t *listed(const json_t *schema) {
  json_t *value = json_object_get(schema, "const"), *list = json_object_get(schema, "enum");
  return value ? json_pack("[O]", value) : json_is_array(list) ? json_incref(list) : NULL;
}

static bool exclude_by_values(const json_t *a, const json_t *b) {
  json_t *left = listed(a), *right = listed(b), *shared = left && right ? intersection(left, right) : NULL;
  bool apart = shared && json_array_size(shared) == 0;
  json_decref(left);
  json_decref(right);
  json_decref(shared);
  return apart;
}

static bool
  requires(const json_t *schema, const char *name)
{
  const json_t *list = json_object_get(schema, "required");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *each = json_string_value(json_array_get(list, i));
    if (each && strcmp(each, name) == 0) return true;
  }
  return false;
}

/* Whether no value can be of both: by type, by their values, or by those of a property that both require, or that one
 * requires and the other cannot have. */
static bool evidently_apart(schema_compiler *c, const json_t *a, const json_t *b) {
  a = resolved(c, a);
  b = resolved(c, b);
  if (!json_is_object(a) || !json_is_object(b)) return false;
  unsigned left = types_of(c, a), right = types_of(c, b);
  if (left & NUMBER) left |= INTEGER;
  if (right & NUMBER) right |= INTEGER;
  if ((left & right) == 0 && json_object_get(a, "type") && json_object_get(b, "type")) return true;
  if (exclude_by_values(a, b)) return true;
  if ((left & right) != OBJECT) return false;
  for (int side = 0; side < 2; side++) {
    const json_t *one = side ? a : b, *other = side ? b : a;
    json_t *properties = json_object_get(one, "properties"), *theirs = json_object_get(other, "properties"), *value;
    const char *name;
    json_object_foreach(properties, name, value) {
      if (!requires(one, name)) continue;
      const json_t *same = json_object_get(theirs, name);
      if (same ? requires(other, name) && exclude_by_values(value, same)
               : json_is_false(json_object_get(other, "additionalProperties")))
        return true;
    }
  }
  return false;
}

static void check_apart(schema_compiler *c, const json_t *list) {
  for (size_t i = 0; i < json_array_size(list); i++)
    for (size_t j = 0; j < i && c->status == RDNA_OK; j++)
      if (!evidently_apart(c, json_array_get(list, i), json_array_get(list, j)))
        rdna__schema_refuse(
            c, RDNA_UNSUPPORTED,
            "alternatives %zu and %zu of oneOf may both apply to a value, which cannot be enforced; anyOf "
            "can be",
            j, i);
}

static void put_alternatives(schema_compiler *c, const json_t *schema, const char *keyword) {
  const json_t *list = json_object_get(schema, keyword);
  if (json_array_size(list) == 0 || json_array_size(list) > 512) {
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "%s is to be a list of from 1 to 512 schemas", keyword);
    return;
  }
  if (strcmp(keyword, "oneOf") == 0) check_apart(c, list);
  json_t *rest = without(c, schema, keyword);
  for (size_t i = 0; i < json_array_size(list) && c->status == RDNA_OK; i++) {
    const json_t *each = json_array_get(list, i);
    if (json_object_size(rest) > 0) each = rdna__schema_merge(c, rest, each);
    if (i) rdna__schema_put(c, " | ");
    if (c->status == RDNA_OK) rdna__schema_value(c, each, "/%s/%zu", keyword, i);
  }
}

static void put_all_of(schema_compiler *c, const json_t *schema) {
  const json_t *list = json_object_get(schema, "allOf"), *merged = without(c, schema, "allOf");
  if (json_array_size(list) == 0) rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "allOf is to be a list of schemas");
  for (size_t i = 0; i < json_array_size(list) && c->status == RDNA_OK; i++)
    merged = rdna__schema_merge(c, merged, json_array_get(list, i));
  if (c->status == RDNA_OK) rdna__schema_value(c, merged, "/allOf");
}

/* A value as it stands, with spaces where JSON may have them. */
static void put_constant(schema_compiler *c, const json_t *value) {
  const char *name, *before = "";
  json_t *each;
  size_t i;
  if (json_is_object(value)) {
    rdna__schema_put(c, "\"{\" sp ");
    json_object_foreach((json_t *)value, name, each) {
      json_t *key = json_string(name);
      rdna__schema_put(c, "%s", before);
      if (key) put_constant(c, key);
      rdna__schema_put(c, " \":\" sp ");
      put_constant(c, each);
      json_decref(key);
      before = " \",\" sp ";
    }
    rdna__schema_put(c, " sp \"}\"");
    return;
  }
  if (json_is_array(value)) {
    rdna__schema_put(c, "\"[\" sp ");
    json_array_foreach(value, i, each) {
      rdna__schema_put(c, "%s", before);
      put_constant(c, each);
      before = " \",\" sp ";
    }
    rdna__schema_put(c, " sp \"]\"");
    return;
  }
  char *text = json_dumps(value, JSON_ENCODE_ANY);
  if (!text) {
    out_of_memory(c);
    return;
  }
  rdna__schema_literal(c, text, strlen(text));
  free(text);
}

static void put_listed(schema_compiler *c, const json_t *schema) {
  unsigned types = json_object_get(schema, "type") ? types_of(c, schema) : ANY;
  const char *keyword;
  json_t *value, *list = listed(schema);
  json_object_foreach((json_t *)schema, keyword, value) {
    bool fine = is_annotation(keyword) || strcmp(keyword, "type") == 0 || strcmp(keyword, "nullable") == 0 ||
                strcmp(keyword, "enum") == 0 || strcmp(keyword, "const") == 0 || is_idle(keyword, value);
    if (!fine) rdna__schema_refuse(c, RDNA_UNSUPPORTED, "%.60s beside a list of values cannot be enforced", keyword);
  }
  if (json_object_get(schema, "const") && json_object_get(schema, "enum")) types = 0;
  size_t written = 0;
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (!(type_of_value(json_array_get(list, i)) & types)) continue;
    if (written++) rdna__schema_put(c, " | ");
    put_constant(c, json_array_get(list, i));
  }
  json_decref(list);
  if (written == 0) rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "no value of the list is allowed");
}

static void put_types(schema_compiler *c, const json_t *schema) {
  unsigned types = types_of(c, schema);
  if (types & NUMBER) types &= ~(unsigned)INTEGER;
  if (types == 0) rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "no type is allowed");
  const char *before = "";
  for (unsigned bit = OBJECT; bit <= NOTHING; bit <<= 1) {
    if (!(types & bit)) continue;
    rdna__schema_put(c, "%s", before);
    before = " | ";
    if (bit == OBJECT) rdna__schema_object(c, schema);
    if (bit == ARRAY) rdna__schema_array(c, schema);
    if (bit == STRING) rdna__schema_string(c, schema);
    if (bit == INTEGER || bit == NUMBER) rdna__schema_number(c, schema, bit == INTEGER);
    if (bit == BOOLEAN) rdna__schema_put(c, "\"true\" | \"false\"");
    if (bit == NOTHING) rdna__schema_put(c, "\"null\"");
  }
}

static void put_body(schema_compiler *c, const json_t *schema) {
  if (json_is_true(schema)) {
    rdna__schema_put(c, "value");
    return;
  }
  if (!json_is_object(schema)) {
    rdna__schema_refuse(c, RDNA_INVALID_ARGUMENT, "a schema is to be an object or true");
    return;
  }
  refuse_unknown(c, (json_t *)schema);
  if (c->status != RDNA_OK) return;
  if (json_object_get(schema, "$ref")) {
    const json_t *target = resolved(c, schema);
    if (target) rdna__schema_value(c, target, "/$ref");
  } else if (json_object_get(schema, "allOf")) {
    put_all_of(c, schema);
  } else if (json_object_get(schema, "anyOf")) {
    put_alternatives(c, schema, "anyOf");
  } else if (json_object_get(schema, "oneOf")) {
    put_alternatives(c, schema, "oneOf");
  } else if (json_object_get(schema, "enum") || json_object_get(schema, "const")) {
    put_listed(c, schema);
  } else {
    put_types(c, schema);
  }
}

static void compile(schema_compiler *c) {
  rdna__schema_put(c, "root ::= ");
  rdna__schema_value(c, c->root, "%s", "");
  rdna__schema_put(c, "\n");
  put_bytes(c, common, sizeof common - 1);
  for (size_t i = 0; i < c->rule_count && c->status == RDNA_OK; i++) {
    c->path = c->rules[i].path;
    rdna__schema_put(c, "s%zu ::= ", i);
    put_body(c, c->rules[i].schema);
    rdna__schema_put(c, "\n");
    put_bytes(c, c->aside.data ? c->aside.data : "", c->aside.size);
    c->aside.size = 0;
  }
}

rdna_status rdna__grammar_of_schema(const char *json, size_t size, char **out_text) {
  json_error_t error;
  schema_compiler c = {.path = "#", .status = RDNA_OK};
  c.root = json_loadb(json, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
  if (!c.root)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the schema is not JSON: line %d, column %d: %s", error.line, error.column,
                      error.text);
  c.made = json_array();
  if (!c.made) out_of_memory(&c);
  compile(&c);
  if (c.status == RDNA_OK) {
    *out_text = c.out.data;
  } else {
    free(c.out.data);
  }
  for (size_t i = 0; i < c.rule_count; i++) free(c.rules[i].path);
  free(c.rules);
  free(c.aside.data);
  json_decref(c.made);
  json_decref(c.root);
  return c.status;
}
