#include "server/fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"
#include "rdna/status.h"

/* A sentence may repeat bytes of a request that are no UTF-8, or end within a character; JSON has room for neither. */
static void make_utf8(char *text) {
  size_t size = strlen(text);
  for (size_t i = 0; i < size;) {
    int length = rdna__utf8_length(text + i, size - i);
    if (length < 1) text[i] = '?';
    i += length < 1 ? 1 : (size_t)length;
  }
}

bool refuse(problem *p, int status, const char *code, const char *field, const char *format, ...) {
  va_list arguments;
  *p = (problem){.status = status, .code = code};
  snprintf(p->field, sizeof p->field, "%s", field ? field : "");
  va_start(arguments, format);
  vsnprintf(p->message, sizeof p->message, format, arguments);
  va_end(arguments);
  make_utf8(p->field);
  make_utf8(p->message);
  return false;
}

bool refuse_with_status(problem *p, const char *field) { return refuse(p, 400, NULL, field, "%s", rdna_last_error()); }

bool refuse_by_status(problem *p, rdna_status status, const char *field) {
  bool ours = status == RDNA_OUT_OF_MEMORY; /* what a request says is not to blame */
  return refuse(p, ours ? 500 : 400, NULL, ours ? NULL : field, "%s", rdna_last_error());
}

json_t *parse_object(const char *text, size_t size, problem *p) {
  json_error_t error;
  if (size == 0) {
    refuse(p, 400, NULL, NULL, "the request has no body; a JSON object is needed");
    return NULL;
  }
  json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  if (!object) {
    refuse(p, 400, NULL, NULL, "the body is no JSON: line %d, column %d: %s", error.line, error.column, error.text);
    return NULL;
  }
  if (json_is_object(object)) return object;
  json_decref(object);
  refuse(p, 400, NULL, NULL, "the body is JSON, but no object");
  return NULL;
}

static const char *type_name(const json_t *value) {
  switch (json_typeof(value)) {
    case JSON_OBJECT:
      return "an object";
    case JSON_ARRAY:
      return "a list";
    case JSON_STRING:
      return "a text";
    case JSON_INTEGER:
      return "an integer";
    case JSON_REAL:
      return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
      return "true or false";
    default:
      return "null";
  }
}

/* The field's value, or NULL where there is none. */
static const json_t *value_of(const json_t *object, const char *field) {
  const json_t *value = json_object_get(object, field);
  return json_is_null(value) ? NULL : value;
}

bool read_number(const json_t *object, const char *field, double low, double high, double *out, problem *p) {
  const json_t *value = value_of(object, field);
  if (!value) return true;
  if (!json_is_number(value))
    return refuse(p, 400, NULL, field, "'%s' must be a number, and is %s", field, type_name(value));
  double number = json_number_value(value);
  if (!(number >= low && number <= high))
    return refuse(p, 400, NULL, field, "'%s' is %g, and must be from %g to %g", field, number, low, high);
  *out = number;
  return true;
}

bool read_integer(const json_t *object, const char *field, int64_t low, int64_t high, int64_t *out, problem *p) {
  const json_t *value = value_of(object, field);
  if (!value) return true;
  if (!json_is_integer(value))
    return refuse(p, 400, NULL, field, "'%s' must be an integer, and is %s", field, type_name(value));
  json_int_t number = json_integer_value(value);
  if (number < low || number > high)
    return refuse(p, 400, NULL, field, "'%s' is %lld, and must be from %lld to %lld", field, (long long)number,
                  (long long)low, (long long)high);
  *out = number;
  return true;
}

bool read_bool(const json_t *object, const char *field, bool *out, problem *p) {
  const json_t *value = value_of(object, field);
  if (!value) return true;
  if (!json_is_boolean(value))
    return refuse(p, 400, NULL, field, "'%s' must be true or false, and is %s", field, type_name(value));
  *out = json_is_true(value);
  return true;
}

bool read_text(const json_t *object, const char *field, const char **out, problem *p) {
  const json_t *value = value_of(object, field);
  if (!value) return true;
  if (!json_is_string(value))
    return refuse(p, 400, NULL, field, "'%s' must be a text, and is %s", field, type_name(value));
  if (strlen(json_string_value(value)) != json_string_length(value))
    return refuse(p, 400, NULL, field, "'%s' has a zero byte in it, and no text does", field);
  *out = json_string_value(value);
  return true;
}

static bool asks_nothing(const json_t *value) {
  return json_is_null(value) || json_is_false(value) || (json_is_number(value) && json_number_value(value) == 0) ||
         (json_is_array(value) && json_array_size(value) == 0);
}

bool check_fields(const json_t *object, const field_row *rows, size_t count, problem *p) {
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)object, name, value) {
    size_t i = 0;
    while (i < count && strcmp(rows[i].name, name) != 0) i++;
    if (i == count) return refuse(p, 400, "unknown_parameter", name, "there is no field '%.64s' in this request", name);
    if (rows[i].use == FIELD_REFUSED && !asks_nothing(value))
      return refuse(p, 400, "unsupported_parameter", name, "'%s' is not offered by this server; leave it out", name);
  }
  return true;
}

static bool is_same(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b); /* 1 and 1.0 */
  return json_equal(a, b);
}

bool check_values(const json_t *object, const field_values *rows, size_t count, problem *p) {
  for (size_t i = 0; i < count; i++) {
    const json_t *value = value_of(object, rows[i].name);
    if (!value) continue;
    json_t *offered = json_loads(rows[i].values, 0, NULL);
    bool found = false;
    for (size_t k = 0; k < json_array_size(offered); k++) found |= is_same(value, json_array_get(offered, k));
    bool some = json_array_size(offered) > 0;
    json_decref(offered);
    if (found) continue;
    if (!some)
      return refuse(p, 400, "unsupported_parameter", rows[i].name, "'%s' is not offered by this server; leave it out",
                    rows[i].name);
    return refuse(p, 400, "unsupported_parameter", rows[i].name,
                  "of '%s' this server offers nothing but %s; leave it out", rows[i].name, rows[i].values);
  }
  return true;
}
