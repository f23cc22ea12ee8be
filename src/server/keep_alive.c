#include "server/keep_alive.h"

#include <string.h>

static const double MOST_SECONDS = 1e9;

/* Reads digits with at most one point; false where there are none. */
static bool read_digits(const char **text, double *out) {
  const char *p = *text;
  double value = 0, place = 0; /* of the next digit, behind a point */
  int digits = 0;
  for (; (*p >= '0' && *p <= '9') || (*p == '.' && place == 0); p++) {
    if (*p == '.') {
      place = 0.1;
      continue;
    }
    value = place > 0 ? value + place * (*p - '0') : 10 * value + (*p - '0');
    place /= 10;
    digits++;
  }
  *text = p;
  *out = value;
  return digits > 0;
}

/* Reads "1h30m" into seconds. A number alone is seconds. */
static bool read_duration(const char *text, double *out) {
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  bool negative = *text == '-';
  double sum = 0, value;
  if (*text == '-' || *text == '+') text++;
  do {
    size_t i = 0, count = sizeof units / sizeof *units;
    if (!read_digits(&text, &value)) return false;
    while (i < count && strncmp(text, units[i].name, strlen(units[i].name)) != 0) i++;
    if (i == count && (*text || sum > 0)) return false;
    sum += i < count ? value * units[i].seconds : value;
    if (i < count) text += strlen(units[i].name);
  } while (*text);
  *out = negative && sum > 0 ? -1 : sum;
  return true;
}

bool read_keep_alive(const json_t *json, double *out, problem *p) {
  static const char field[] = "keep_alive";
  const json_t *given = json_object_get(json, field);
  double seconds = json_number_value(given);
  if (!given || json_is_null(given)) return true;
  bool fine = json_is_number(given) || (json_is_string(given) && read_duration(json_string_value(given), &seconds));
  if (!fine)
    return refuse(p, 400, NULL, field, "'keep_alive' must be a number of seconds, or a time such as \"5m\" or \"-1\"");
  *out = seconds < 0 ? -1 : seconds > MOST_SECONDS ? MOST_SECONDS : seconds;
  return true;
}
