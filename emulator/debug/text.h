// Text for people: in a buffer, where what does not fit is left out, and in JSON.
#ifndef EMULATOR_DEBUG_TEXT_H
#define EMULATOR_DEBUG_TEXT_H

#include <stdarg.h>
#include <stdio.h>

struct emu_text {
  char *data;  // terminated
  size_t used, room;
};

__attribute__((format(printf, 2, 3))) static inline void emu_text_add(struct emu_text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text->data + text->used, text->room - text->used, format, arguments);
  va_end(arguments);
  size_t left = text->room - text->used - 1;
  if (length > 0) text->used += (size_t)length < left ? (size_t)length : left;
}

// Writes it as it stands in JSON's quotes. What is not ASCII is taken as Latin 1: names in damaged objects are bytes.
static inline void emu_put_json(FILE *out, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c >= 0x20 && *c < 0x7f && *c != '"' && *c != '\\') {
      fputc(*c, out);
    } else {
      fprintf(out, "\\u%04x", *c);
    }
  }
}

#endif
