// A kernel's printf: 0 for standard output or 1 for standard error, the format, then each argument. A number takes one
// word, a string as many as it fills with its terminator.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip/hip.h"

struct words {
  const uint64_t *at, *end;
};

// The string that starts here; NULL when it has no end.
static const char *take_string(struct words *w) {
  const char *text = (const char *)w->at;
  const char *end = memchr(text, '\0', (size_t)(w->end - w->at) * sizeof *w->at);
  if (!end) return NULL;
  w->at += (end - text) / 8 + 1;
  return text;
}

// A specification, taken apart: what is printed is put together again from parts that are known.
struct spec {
  char flags[8];
  int width, precision;  // precision -1: none
  bool is_long;
  char kind;
};

static const char *take_number(const char *at, struct words *w, int *out) {
  if (*at == '*') {
    *out = w->at < w->end ? (int)*w->at++ : 0;
    return at + 1;
  }
  for (*out = 0; *at >= '0' && *at <= '9'; at++) *out = *out < 100000 ? *out * 10 + (*at - '0') : *out;
  return at;
}

static const char *take_spec(const char *at, struct words *w, struct spec *out) {
  *out = (struct spec){.precision = -1};
  for (size_t i = 0; *at && strchr("-+ #0'", *at); at++)
    if (i < sizeof out->flags - 1) out->flags[i++] = *at;
  at = take_number(at, w, &out->width);
  if (*at == '.') at = take_number(at + 1, w, &out->precision);
  for (; *at && strchr("hlLqjzt", *at); at++) out->is_long = out->is_long || *at != 'h';
  out->kind = *at;
  return *at ? at + 1 : at;
}

static int print_argument(FILE *out, const struct spec *spec, struct words *w) {
  char format[32];
  bool integer = strchr("diouxX", spec->kind) != NULL;
  snprintf(format, sizeof format, "%%%s*.*%s%c", spec->flags, integer && spec->is_long ? "ll" : "", spec->kind);
  if (spec->kind == 's') {
    const char *text = take_string(w);
    return fprintf(out, format, spec->width, spec->precision, text ? text : "");
  }
  uint64_t word = *w->at++;
  double real;
  memcpy(&real, &word, sizeof real);
  if (spec->kind == 'n') return 0;
  if (strchr("fFeEgGaA", spec->kind)) return fprintf(out, format, spec->width, spec->precision, real);
  if (integer && spec->is_long) return fprintf(out, format, spec->width, spec->precision, (long long)word);
  if (integer) return fprintf(out, format, spec->width, spec->precision, (int)word);
  snprintf(format, sizeof format, "%%%s*%c", spec->flags, spec->kind);
  if (spec->kind == 'c') return fprintf(out, format, spec->width, (int)word);
  return fprintf(out, format, spec->width, (void *)word);  // 'p'
}

int emu_print_message(const uint64_t *words, size_t count) {
  struct words w = {words, words + count};
  const char *at = NULL;
  if (count) {
    w.at++;
    at = take_string(&w);
  }
  if (!at) return -1;
  FILE *out = words[0] & 1 ? stderr : stdout;
  int printed = 0;
  flockfile(out);  // one piece, whoever else prints
  while (*at) {
    size_t plain = strcspn(at, "%");
    fwrite(at, 1, plain, out);
    printed += (int)plain;
    at += plain;
    if (!*at) break;
    if (at[1] == '%') {
      fputc('%', out);
      printed++;
      at += 2;
      continue;
    }
    struct spec spec;
    at = take_spec(at + 1, &w, &spec);
    if (!spec.kind || !strchr("diouxXfFeEgGaAcspn", spec.kind) || w.at >= w.end) break;
    printed += print_argument(out, &spec, &w);
  }
  funlockfile(out);
  return printed;
}
