#include "model/image/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { PATH_BYTES = 4096 };

/* Python writes floats that JSON does not have as words. Outside of strings they become, in place, a number beyond
 * every limit and a text where a number is asked for, so that a setting which is read is refused and others are left
 * alone. */
static void replace_words(char *text, size_t size) {
  static const char *const words[][2] = {
      {"-Infinity", "-1e308   "}, {"Infinity", " 1e308  "}, {"NaN", "\"\" "}}; /* of one length */
  bool quoted = false;
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\') i++;
    for (size_t w = 0; !quoted && w < sizeof words / sizeof *words; w++) {
      size_t length = strlen(words[w][0]);
      if (size - i < length || memcmp(text + i, words[w][0], length) != 0) continue;
      memcpy(text + i, words[w][1], length);
      i += length - 1;
      break;
    }
  }
}

rdna_status rdna__settings_parse(const char *text, size_t size, json_t **out_settings) {
  json_error_t error;
  char *copy = malloc(size + 1);
  if (!copy) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for settings");
  if (size) memcpy(copy, text, size);
  replace_words(copy, size);
  json_t *settings = json_loadb(copy, size, JSON_REJECT_DUPLICATES, &error);
  free(copy);
  if (!settings) return rdna__fail(RDNA_BAD_DATA, "it is no JSON: %s", error.text);
  if (json_is_object(settings)) {
    *out_settings = settings;
    return RDNA_OK;
  }
  json_decref(settings);
  return rdna__fail(RDNA_BAD_DATA, "it is no JSON object");
}

rdna_status rdna__settings_open(const char *folder, json_t **out_settings) {
  char path[PATH_BYTES];
  rdna__file file = {0};
  if (snprintf(path, sizeof path, "%s/config.json", folder) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of a model's config.json is too long");
  RDNA_TRY(rdna__annotate(rdna__file_map(path, &file), "%s", path));
  rdna_status status = rdna__settings_parse((const char *)file.data, file.size, out_settings);
  rdna__file_unmap(&file);
  return rdna__annotate(status, "%s", path);
}

/* NULL: it is missing or null. */
static const json_t *value_of(const json_t *settings, const char *name) {
  const json_t *value = json_object_get(settings, name);
  return json_is_null(value) ? NULL : value;
}

static bool is_whole(const json_t *value, int low, int high) {
  return json_is_integer(value) && json_integer_value(value) >= low && json_integer_value(value) <= high;
}

rdna_status rdna__setting_whole(const json_t *settings, const char *name, int initial, int low, int high, int *out) {
  const json_t *value = value_of(settings, name);
  *out = initial;
  if (!value && initial >= low && initial <= high) return RDNA_OK;
  if (!is_whole(value, low, high))
    return rdna__fail(RDNA_BAD_DATA, "the setting '%s' is no whole number from %d to %d", name, low, high);
  *out = (int)json_integer_value(value);
  return RDNA_OK;
}

rdna_status rdna__setting_number(const json_t *settings, const char *name, double initial, double low, double high,
                                 double *out) {
  const json_t *value = value_of(settings, name);
  *out = value ? json_number_value(value) : initial;
  if ((!value || json_is_number(value)) && *out >= low && *out <= high) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the setting '%s' is no number from %g to %g", name, low, high);
}

rdna_status rdna__setting_flag(const json_t *settings, const char *name, bool initial, bool *out) {
  const json_t *value = value_of(settings, name);
  *out = value ? json_is_true(value) : initial;
  if (!value || json_is_boolean(value)) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the setting '%s' is neither true nor false", name);
}

rdna_status rdna__setting_text(const json_t *settings, const char *name, const char *initial, const char **out) {
  const json_t *value = value_of(settings, name);
  *out = value ? json_string_value(value) : initial;
  if (*out) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the setting '%s' is no text", name);
}

/* The length of a list from 1 to |most|. */
static rdna_status count_of(const json_t *list, const char *name, int most, int *out_count) {
  size_t count = json_array_size(list);
  if (count < 1 || count > (size_t)most)
    return rdna__fail(RDNA_BAD_DATA, "the setting '%s' is no list of 1 to %d values", name, most);
  *out_count = (int)count;
  return RDNA_OK;
}

rdna_status rdna__setting_wholes(const json_t *settings, const char *name, int low, int high, int most, int *out,
                                 int *out_count) {
  const json_t *list = value_of(settings, name);
  *out_count = 1;
  if (json_is_integer(list)) return rdna__setting_whole(settings, name, low, low, high, out);
  RDNA_TRY(count_of(list, name, most, out_count));
  for (int i = 0; i < *out_count; i++) {
    const json_t *value = json_array_get(list, (size_t)i);
    if (!is_whole(value, low, high))
      return rdna__fail(RDNA_BAD_DATA, "value %d of the setting '%s' is no whole number from %d to %d", i, name, low,
                        high);
    out[i] = (int)json_integer_value(value);
  }
  return RDNA_OK;
}

rdna_status rdna__setting_texts(const json_t *settings, const char *name, int most, const char **out, int *out_count) {
  const json_t *list = value_of(settings, name);
  RDNA_TRY(count_of(list, name, most, out_count));
  for (int i = 0; i < *out_count; i++) {
    out[i] = json_string_value(json_array_get(list, (size_t)i));
    if (!out[i]) return rdna__fail(RDNA_BAD_DATA, "value %d of the setting '%s' is no text", i, name);
  }
  return RDNA_OK;
}

rdna_status rdna__setting_is(const json_t *settings, const char *name, const char *known) {
  const json_t *value = value_of(settings, name);
  const char *text = json_string_value(value);
  if (!value || (text && strcmp(text, known) == 0)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "the setting '%s' is '%.80s'; '%s' is known", name,
                    text ? text : "another value than a text", known);
}

rdna_status rdna__setting_is_flag(const json_t *settings, const char *name, bool known) {
  const json_t *value = value_of(settings, name);
  if (!value || (json_is_boolean(value) && json_is_true(value) == known)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "the setting '%s' is not %s, as is known", name, known ? "true" : "false");
}

rdna_status rdna__setting_is_null(const json_t *settings, const char *name) {
  if (!value_of(settings, name)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "the setting '%s' has a value; models without are known", name);
}

rdna_status rdna__settings_are(json_t *settings, const char *const *known, size_t count) {
  const char *name;
  const json_t *value;
  json_object_foreach(settings, name, value) {
    bool found = name[0] == '_' || json_is_null(value);
    for (size_t i = 0; i < count; i++) found = found || strcmp(name, known[i]) == 0;
    if (!found)
      return rdna__fail(RDNA_UNSUPPORTED, "the setting '%.80s' is not known, and might make it another network", name);
  }
  return RDNA_OK;
}
