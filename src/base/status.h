/* Making and passing on failures. */
#ifndef RDNA_BASE_STATUS_H
#define RDNA_BASE_STATUS_H

#include <stdarg.h>

#include "rdna/status.h"

/* Sets the thread's sentence and returns |code|. */
__attribute__((format(printf, 2, 3))) rdna_status rdna__fail(rdna_status code, const char *format, ...);

/* Puts "what: " before the thread's sentence and returns |code| unchanged; RDNA_OK passes untouched. */
__attribute__((format(printf, 2, 3))) rdna_status rdna__annotate(rdna_status code, const char *format, ...);

/* Sets the sentence of a failure that happened on another thread. */
void rdna__set_last_error(const char *message);

#define RDNA_TRY(expression)                                  \
  do {                                                        \
    rdna_status rdna_try_status_ = (expression);              \
    if (rdna_try_status_ != RDNA_OK) return rdna_try_status_; \
  } while (0)

#endif
