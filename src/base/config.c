#include "base/config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RDNA__CONFIG_ROW(key, environment, kind, initial, choices, help) \
  {#key, environment, RDNA__CONFIG_##kind, initial, choices, help},
const rdna__config_entry rdna__config_entries[RDNA__CONFIG_COUNT] = {RDNA__CONFIG_TABLE(RDNA__CONFIG_ROW)};
#undef RDNA__CONFIG_ROW

typedef struct value {
  const char *text; /* the default, or owned */
  bool owned;
  int64_t integer; /* INTEGER and FLAG */
} value;

static value values[RDNA__CONFIG_COUNT];
static char environment_problem[512];
static pthread_once_t environment_once = PTHREAD_ONCE_INIT;

/* Is |text| one of "a|b|c"? */
static bool is_choice(const char *choices, const char *text) {
  size_t length = strlen(text);
  for (const char *p = choices; length > 0; p++) {
    const char *end = strchrnul(p, '|');
    if ((size_t)(end - p) == length && strncmp(p, text, length) == 0) return true;
    if (*end == 0) return false;
    p = end;
  }
  return false;
}

static rdna_status parse_integer(const rdna__config_entry *entry, const char *text, int64_t *out_integer) {
  char *range_rest, *end;
  long long low = strtoll(entry->choices, &range_rest, 10);
  long long high = strtoll(range_rest + 2, NULL, 10); /* past ".." */
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (end == text || *end != 0 || errno != 0 || number < low || number > high)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is '%s'; it must be a whole number in %s", entry->environment, text,
                      entry->choices);
  *out_integer = number;
  return RDNA_OK;
}

static rdna_status parse(rdna__config_key key, const char *text, int64_t *out_integer) {
  const rdna__config_entry *entry = &rdna__config_entries[key];
  *out_integer = 0;
  switch (entry->kind) {
    case RDNA__CONFIG_TEXT:
      return RDNA_OK;
    case RDNA__CONFIG_CHOICE:
      if (is_choice(entry->choices, text)) return RDNA_OK;
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is '%s'; it must be one of %s", entry->environment, text,
                        entry->choices);
    case RDNA__CONFIG_FLAG:
      if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is '%s'; it must be 0 or 1", entry->environment, text);
      *out_integer = text[0] == '1';
      return RDNA_OK;
    case RDNA__CONFIG_INTEGER:
      return parse_integer(entry, text, out_integer);
  }
  return rdna__fail(RDNA_INTERNAL, "setting %s has no kind", entry->key);
}

static rdna_status store(rdna__config_key key, const char *text, bool copy) {
  int64_t integer;
  RDNA_TRY(parse(key, text, &integer));
  char *kept = NULL;
  if (copy && (kept = strdup(text)) == NULL) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a setting");
  if (values[key].owned) free((char *)values[key].text);
  values[key] = (value){kept ? kept : text, copy, integer};
  return RDNA_OK;
}

static void read_environment(void) {
  for (int key = 0; key < RDNA__CONFIG_COUNT; key++) {
    const rdna__config_entry *entry = &rdna__config_entries[key];
    if (store((rdna__config_key)key, entry->initial, false) != RDNA_OK) continue; /* a test parses every default */
    const char *text = getenv(entry->environment);
    if (text == NULL || text[0] == 0) continue;
    if (store((rdna__config_key)key, text, true) != RDNA_OK && environment_problem[0] == 0)
      strncpy(environment_problem, rdna_last_error(), sizeof environment_problem - 1);
  }
}

static const value *get(rdna__config_key key) {
  pthread_once(&environment_once, read_environment);
  return &values[key];
}

rdna_status rdna__config_check(void) {
  get(RDNA__CONFIG_LOG);
  if (environment_problem[0] != 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s", environment_problem);
  return RDNA_OK;
}

const char *rdna__config_text(rdna__config_key key) { return get(key)->text; }
int64_t rdna__config_integer(rdna__config_key key) { return get(key)->integer; }
bool rdna__config_flag(rdna__config_key key) { return get(key)->integer != 0; }

rdna_status rdna__config_set(rdna__config_key key, const char *text) {
  get(key);
  return store(key, text, true);
}
