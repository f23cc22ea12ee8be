#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 2048 };

static _Thread_local char last_message[MESSAGE_BYTES];

const char *rdna_status_name(rdna_status status) {
  static const char *const names[] = {
      "OK",       "INVALID_ARGUMENT", "OUT_OF_MEMORY", "NOT_FOUND", "UNSUPPORTED", "UNAVAILABLE", "IO_ERROR",
      "BAD_DATA", "DEVICE_ERROR",     "DEVICE_LOST",   "NOT_READY", "CANCELLED",   "INTERNAL",
  };
  unsigned index = (unsigned)status;
  return index < sizeof names / sizeof *names ? names[index] : "UNKNOWN";
}

const char *rdna_last_error(void) { return last_message; }

rdna_status rdna__fail(rdna_status code, const char *format, ...) {
  /* an argument may be the old sentence itself, so the new one is built aside */
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  memcpy(last_message, message, sizeof message);
  return code;
}

rdna_status rdna__annotate(rdna_status code, const char *format, ...) {
  if (code == RDNA_OK) return code;
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if (length >= (int)sizeof message) length = (int)sizeof message - 1;
  snprintf(message + length, sizeof message - (size_t)length, ": %s", last_message);
  memcpy(last_message, message, sizeof message);
  return code;
}

void rdna__set_last_error(const char *message) { snprintf(last_message, sizeof last_message, "%s", message); }
