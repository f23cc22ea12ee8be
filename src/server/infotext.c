#include "server/infotext.h"

#include <stdbool.h>
#include <string.h>

/* |size| bytes without spaces and breaks at either end, as |name| of |object|. */
static void set_text(json_t *object, const char *name, const char *text, size_t size) {
  static const char blank[] = " \n\r\t";
  while (size > 0 && strchr(blank, text[size - 1])) size--;
  while (size > 0 && strchr(blank, *text)) text++, size--;
  json_object_set_new(object, name, json_stringn(text, size));
}

/* "Steps: 20, Sampler: Euler, Hashes: {"a": "b, c"}, …", a comma ending a value unless it is in quotes or braces. */
static void read_pairs(json_t *object, const char *line) {
  while (*line) {
    const char *colon = strchr(line, ':'), *end = colon;
    bool quoted = false;
    int depth = 0;
    if (!colon) return;
    for (; *end && (*end != ',' || quoted || depth > 0); end++) {
      if (*end == '"' && end[-1] != '\\') quoted = !quoted;
      if (!quoted) depth += (*end == '{') - (*end == '}' && depth > 0);
    }
    char name[64];
    size_t size = (size_t)(colon - line);
    if (size > 0 && size < sizeof name) {
      memcpy(name, line, size);
      name[size] = 0;
      set_text(object, name, colon + 1, (size_t)(end - colon - 1));
    }
    line = *end ? end + 1 + strspn(end + 1, " ") : end;
  }
}

/* The prompt, what follows "Negative prompt:", and the last line, which is of pairs. */
json_t *infotext_parse(const char *text) {
  static const char negative[] = "\nNegative prompt:";
  json_t *made = json_object();
  const char *last = strrchr(text, '\n'), *begin = last ? last + 1 : text;
  bool pairs = strncmp(begin, "Steps: ", 7) == 0;
  const char *end = pairs ? begin : text + strlen(text);
  const char *second = strncmp(text, negative + 1, sizeof negative - 2) == 0 ? text : strstr(text, negative);
  if (second && second >= end) second = NULL;
  set_text(made, "Prompt", text, (size_t)((second ? second : end) - text));
  const char *from = second ? second + (*second == '\n') + sizeof negative - 2 : end;
  set_text(made, "Negative prompt", from, (size_t)(end - from));
  if (pairs) read_pairs(made, begin);
  return made;
}
