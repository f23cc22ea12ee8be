#include "kernel/tuner_shipped.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 11, LINE = 1024 };

/* Sets the thread's locale to C until c_leave, so that numbers have a decimal point whatever the program's locale is.
 * Returns the one before. */
static locale_t c_enter(locale_t *out_c) {
  *out_c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return uselocale(*out_c);
}
static void c_leave(locale_t c, locale_t before) {
  uselocale(before);
  if (c) freelocale(c);
}

/* Milliseconds: a plain number, not negative. */
static bool read_ms(const char *field, double *out_ms) {
  char *end;
  if (field[0] == 0 || strspn(field, "0123456789.e-+") != strlen(field)) return false;
  *out_ms = strtod(field, &end);
  return *end == 0 && isfinite(*out_ms) && *out_ms >= 0;
}

static bool read_line(char *line, rdna__tuner_row *out_row) {
  char *fields[FIELDS];
  locale_t c, before;
  for (int i = 0; i < FIELDS; i++) {
    fields[i] = line ? strsep(&line, ",") : NULL;
    if (!fields[i]) return false;
  }
  *out_row = (rdna__tuner_row){fields[0], fields[1], fields[2], fields[3], fields[4], fields[5],
                               fields[6], fields[7], fields[9], 0,         0};
  if (line || !fields[0][0] || !fields[4][0] || !fields[5][0] || !fields[7][0]) return false;
  before = c_enter(&c);
  bool good = read_ms(fields[8], &out_row->ms) && read_ms(fields[10], &out_row->next_ms);
  c_leave(c, before);
  return good;
}

rdna_status rdna__tuner_text_read(const char *text, size_t size,
                                  void (*visit)(void *context, const rdna__tuner_row *row), void *context) {
  bool first = true;
  int number = 0;
  for (size_t at = 0; at < size;) {
    const char *end = memchr(text + at, '\n', size - at);
    size_t length = end ? (size_t)(end - text) - at : size - at;
    const char *start = text + at;
    char line[LINE];
    at += length + 1;
    number++;
    if (length > 0 && start[length - 1] == '\r') length--;
    if (length == 0 || start[0] == '#') continue;
    bool fits = length < sizeof line && !memchr(start, 0, length);
    if (fits) {
      memcpy(line, start, length);
      line[length] = 0;
    }
    rdna__tuner_row row;
    if (first && fits && strcmp(line, RDNA__TUNER_TEXT_HEADER) == 0) {
      first = false;
      continue;
    }
    if (first)
      return rdna__fail(RDNA_BAD_DATA, "line %d of the measurements is not their header '%s'", number,
                        RDNA__TUNER_TEXT_HEADER);
    if (!fits || !read_line(line, &row))
      return rdna__fail(RDNA_BAD_DATA, "line %d of the measurements is not %d fields between commas, with times in ms",
                        number, FIELDS);
    visit(context, &row);
  }
  return RDNA_OK;
}

rdna_status rdna__tuner_text_write(const rdna__tuner_row *row, char line[1024]) {
  const char *fields[] = {row->gpu,   row->arch,      row->driver,         row->pack, row->operator_name,
                          row->shape, row->libraries, row->implementation, row->next};
  for (int i = 0; i < 9; i++)
    if (strpbrk(fields[i], ",\r\n"))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "'%s' has a comma or a line's end, which the format cannot hold",
                        fields[i]);
  locale_t c, before = c_enter(&c);
  int length =
      snprintf(line, LINE, "%s,%s,%s,%s,%s,%s,%s,%s,%.6g,%s,%.6g", row->gpu, row->arch, row->driver, row->pack,
               row->operator_name, row->shape, row->libraries, row->implementation, row->ms, row->next, row->next_ms);
  c_leave(c, before);
  if (length >= LINE || row->gpu[0] == '#')
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a measurement of '%s' is too long for a line, or starts with #",
                      row->gpu);
  return RDNA_OK;
}
