#include "command/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(const command_line *line) {
  printf("usage: %s%s%s%s\n\n%s\n", line->name, line->option_count ? " [options]" : "",
         line->positional_help[0] ? " " : "", line->positional_help, line->summary);
  if (line->option_count) printf("\n");
  for (int i = 0; i < line->option_count; i++) {
    const option_row *row = &line->options[i];
    int width = printf("  %s%s%s", row->name, row->argument ? " " : "", row->argument ? row->argument : "");
    printf("%*s %s\n", width < 30 ? 30 - width : 0, "", row->help);
  }
}

static bool misuse(const command_line *line, int *out_exit, const char *problem, const char *what, const char *more) {
  fprintf(stderr, "%s: %s '%s'%s; see %s --help\n", line->name, problem, what, more, line->name);
  *out_exit = EXIT_USAGE;
  return false;
}

static bool is_choice(const char *choices, const char *text) {
  size_t length = strlen(text);
  for (const char *p = choices; length > 0 && *p; p += *p == '|') {
    const char *end = strchrnul(p, '|');
    if ((size_t)(end - p) == length && memcmp(p, text, length) == 0) return true;
    p = end;
  }
  return false;
}

static bool in_bounds(const option_row *row, double value) {
  return (row->low == 0 && row->high == 0) || (value >= row->low && value <= row->high);
}

static bool store(const command_line *line, const option_row *row, const char *text, int *out_exit) {
  char *end, bounds[96] = "";
  if (row->low != 0 || row->high != 0)
    snprintf(bounds, sizeof bounds, " for %s, which takes %g to %g", row->name, row->low, row->high);
  else
    snprintf(bounds, sizeof bounds, " for %s", row->name);
  errno = 0;
  switch (row->kind) {
    case OPTION_FLAG:
      *(bool *)row->target = true;
      return true;
    case OPTION_TEXT:
      *(const char **)row->target = text;
      return true;
    case OPTION_TEXTS: {
      option_texts *texts = row->target;
      snprintf(bounds, sizeof bounds, ": %s is given more than %d times", row->name, OPTION_TEXTS_MOST);
      if (texts->count == OPTION_TEXTS_MOST) return misuse(line, out_exit, "one too many", text, bounds);
      texts->values[texts->count++] = text;
      return true;
    }
    case OPTION_CHOICE:
      if (!is_choice(row->argument, text)) {
        snprintf(bounds, sizeof bounds, " for %s, which takes %.60s", row->name, row->argument);
        return misuse(line, out_exit, "no choice", text, bounds);
      }
      *(const char **)row->target = text;
      return true;
    case OPTION_INTEGER: {
      long long value = strtoll(text, &end, 10);
      if (end == text || *end || errno || !in_bounds(row, (double)value))
        return misuse(line, out_exit, "not a valid whole number", text, bounds);
      *(int64_t *)row->target = value;
      return true;
    }
    case OPTION_NUMBER: {
      double value = strtod(text, &end);
      if (end == text || *end || errno || !isfinite(value) || !in_bounds(row, value))
        return misuse(line, out_exit, "not a valid number", text, bounds);
      *(double *)row->target = value;
      return true;
    }
  }
  return false;
}

static const option_row *find(const command_line *line, const char *name, size_t length) {
  for (int i = 0; i < line->option_count; i++)
    if (strlen(line->options[i].name) == length && memcmp(line->options[i].name, name, length) == 0)
      return &line->options[i];
  return NULL;
}

bool parse_command_line(const command_line *line, int argc, char **argv, const char *positionals[POSITIONAL_MAX],
                        int *out_count, int *out_exit) {
  int count = 0;
  bool options_ended = false;
  for (int i = 1; i < argc; i++) {
    const char *text = argv[i];
    if (options_ended || text[0] != '-' || text[1] == 0) {
      if (count == line->positional_max) return misuse(line, out_exit, "one argument too many:", text, "");
      positionals[count++] = text;
      continue;
    }
    if (strcmp(text, "--") == 0) {
      options_ended = true;
      continue;
    }
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
      print_help(line);
      *out_exit = EXIT_OK;
      return false;
    }
    const char *equals = strchr(text, '=');
    const option_row *row = find(line, text, equals ? (size_t)(equals - text) : strlen(text));
    if (!row) return misuse(line, out_exit, "no option", text, "");
    const char *value = NULL;
    if (row->kind == OPTION_FLAG) {
      if (equals) return misuse(line, out_exit, "no value goes with", text, "");
    } else {
      value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
      if (!value) return misuse(line, out_exit, "no value after", text, "");
    }
    if (!store(line, row, value, out_exit)) return false;
  }
  if (count < line->positional_min) {
    fprintf(stderr, "%s: too few arguments; usage: %s%s %s\n", line->name, line->name,
            line->option_count ? " [options]" : "", line->positional_help);
    *out_exit = EXIT_USAGE;
    return false;
  }
  *out_count = count;
  return true;
}
