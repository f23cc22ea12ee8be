#include "server/jobs_request.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PROMPT = 32768, MOST_JOB_STOPS = 4, MOST_STOP_BYTES = 100 };

typedef enum kind { KIND_TEXT, KIND_INTEGER, KIND_NUMBER, KIND_BOOL, KIND_TEXTS } kind;

typedef struct row {
  const char *name;
  kind kind;
  bool required;
  double low, high; /* of numbers */
} row;

static const row rows[] = {
    {"operation", KIND_TEXT, false, 0, 0},
    {"hive_id", KIND_TEXT, false, 0, 0},
    {"worker_id", KIND_TEXT, false, 0, 0},
    {"device", KIND_TEXT, false, 0, 0},
    {"model", KIND_TEXT, false, 0, 0},
    {"prompt", KIND_TEXT, true, 0, 0},
    {"max_tokens", KIND_INTEGER, true, 1, 2048},
    {"temperature", KIND_NUMBER, false, 0, 2},
    {"top_p", KIND_NUMBER, false, 0, 1},
    {"top_k", KIND_INTEGER, false, 0, 4294967295.0},
    {"min_p", KIND_NUMBER, false, 0, 1},
    {"repetition_penalty", KIND_NUMBER, false, 0, 2},
    {"seed", KIND_INTEGER, false, -9223372036854775808.0, 9223372036854775807.0},
    {"stop", KIND_TEXTS, false, 0, 0},
    {"stream", KIND_BOOL, false, 0, 0},
    {"priority", KIND_INTEGER, false, -MOST_PRIORITY, MOST_PRIORITY},
    {"timeout", KIND_NUMBER, false, 0, MOST_TIMEOUT},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* |value| is not copied where it is a text: prompts stay out of errors, as they may be secret. */
__attribute__((format(printf, 5, 6))) static void add(json_t *errors, const char *field, const char *constraint,
                                                      const json_t *value, const char *format, ...) {
  char message[256], text[64] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  json_t *error = json_pack("{s:s, s:s, s:s}", "field", field, "constraint", constraint, "message", message);
  if (json_is_integer(value))
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  else if (json_is_real(value))
    snprintf(text, sizeof text, "%.9g", json_real_value(value));
  if (text[0]) json_object_set_new(error, "value", json_string(text));
  json_array_append_new(errors, error);
}

/* Of UTF-8, which jansson has checked. */
static size_t count_characters(const json_t *text) {
  const char *data = json_string_value(text);
  size_t count = 0;
  for (size_t i = 0; i < json_string_length(text); i++) count += ((unsigned char)data[i] & 0xc0) != 0x80;
  return count;
}

static void check_prompt(json_t *errors, const json_t *value) {
  static const char constraint[] = "length(1..=32768)";
  size_t count = count_characters(value);
  if (count == 0) add(errors, "prompt", constraint, NULL, "prompt must not be empty");
  if (count > MOST_PROMPT)
    add(errors, "prompt", constraint, NULL, "prompt must be at most %d characters (got %zu)", MOST_PROMPT, count);
}

static void check_stops(json_t *errors, const json_t *list) {
  size_t count = json_array_size(list);
  if (count > MOST_JOB_STOPS)
    add(errors, "stop", "max_count(4)", NULL, "stop must have at most %d sequences (got %zu)", MOST_JOB_STOPS, count);
  for (size_t i = 0; i < count; i++) {
    const json_t *stop = json_array_get(list, i);
    size_t size = json_string_length(stop);
    if (!json_is_string(stop))
      add(errors, "stop", "type(text)", NULL, "stop sequence %zu must be a text", i);
    else if (size == 0 || strlen(json_string_value(stop)) != size)
      add(errors, "stop", "non_empty", NULL, "stop sequence %zu must not be empty or hold zeros", i);
    else if (size > MOST_STOP_BYTES)
      add(errors, "stop", "max_length(100)", NULL, "stop sequence %zu must be at most %d bytes (got %zu)", i,
          MOST_STOP_BYTES, size);
  }
}

static void check_number(json_t *errors, const row *r, const json_t *value) {
  char constraint[64];
  double number = json_number_value(value);
  if (number >= r->low && number <= r->high) return;
  snprintf(constraint, sizeof constraint, r->kind == KIND_INTEGER ? "range(%.0f..=%.0f)" : "range(%.1f..=%.1f)", r->low,
           r->high);
  if (number < r->low)
    add(errors, r->name, constraint, value, "%s must be at least %g (got %g)", r->name, r->low, number);
  else
    add(errors, r->name, constraint, value, "%s must be at most %g (got %g)", r->name, r->high, number);
}

static void check_value(json_t *errors, const row *r, const json_t *value) {
  static const char *const names[] = {"a text", "an integer", "a number", "true or false", "a list of texts"};
  const bool right[] = {json_is_string(value), json_is_integer(value), json_is_number(value), json_is_boolean(value),
                        json_is_array(value)};
  static const char *const types[] = {"type(text)", "type(integer)", "type(number)", "type(bool)", "type(texts)"};
  if (!right[r->kind])
    add(errors, r->name, types[r->kind], NULL, "%s must be %s", r->name, names[r->kind]);
  else if (r->kind == KIND_INTEGER || r->kind == KIND_NUMBER)
    check_number(errors, r, value);
  else if (r->kind == KIND_TEXTS)
    check_stops(errors, value);
  else if (strcmp(r->name, "prompt") == 0)
    check_prompt(errors, value);
}

static void check_unknown(json_t *errors, const json_t *json) {
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)json, name, value) {
    int i = 0;
    while (i < ROWS && strcmp(rows[i].name, name) != 0) i++;
    if (i == ROWS) add(errors, name, "known", NULL, "there is no field '%.64s' in a job", name);
  }
}

json_t *jobs_check(const json_t *json, const char *worker_id) {
  json_t *errors = json_array();
  if (!errors) return NULL;
  for (int i = 0; i < ROWS; i++) {
    const json_t *value = json_object_get(json, rows[i].name);
    if (value && !json_is_null(value))
      check_value(errors, &rows[i], value);
    else if (rows[i].required)
      add(errors, rows[i].name, "required", NULL, "%s is missing", rows[i].name);
  }
  check_unknown(errors, json);
  const char *operation = json_string_value(json_object_get(json, "operation")),
             *wanted = json_string_value(json_object_get(json, "worker_id"));
  if (operation && strcmp(operation, "infer") != 0)
    add(errors, "operation", "one_of(infer)", NULL, "operation must be infer, which is all that this worker does");
  if (wanted && worker_id && strcmp(wanted, worker_id) != 0)
    add(errors, "worker_id", "this_worker", NULL, "this worker is %.100s", worker_id);
  if (json_is_false(json_object_get(json, "stream")))
    add(errors, "stream", "one_of(true)", NULL, "a job's answer comes as a stream alone");
  return errors;
}

bool jobs_settings(const json_t *json, settings *s, problem *p) {
  rdna_sampling *sampling = &s->sampling;
  double temperature = 1, top_p = 1, min_p = 0, repetition = 1;
  int64_t top_k = 0, seed = 0;
  bool fine = read_number(json, "temperature", 0, 2, &temperature, p) && read_number(json, "top_p", 0, 1, &top_p, p) &&
              read_number(json, "min_p", 0, 1, &min_p, p) && read_integer(json, "top_k", 0, UINT32_MAX, &top_k, p) &&
              read_number(json, "repetition_penalty", 0, 2, &repetition, p) &&
              read_integer(json, "seed", INT64_MIN, INT64_MAX, &seed, p) &&
              read_integer(json, "max_tokens", 1, 2048, &s->most_tokens, p) && read_stops(json, "stop", s, p) &&
              read_urgency(json, s, p);
  sampling->temperature = (float)temperature;
  sampling->top_p = (float)top_p;
  sampling->min_p = (float)min_p;
  sampling->top_k = top_k > INT32_MAX ? 0 : (int32_t)top_k; /* more than any vocabulary has: all of it */
  sampling->repetition_penalty = repetition > 0 ? (float)repetition : 1;
  sampling->repeat_last_n = 128;
  sampling->seed = (uint64_t)seed;
  return fine;
}
