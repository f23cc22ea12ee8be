/* For tests: cmocka, and calls that must succeed or be refused. */
#ifndef RDNA_BASE_TESTING_H
#define RDNA_BASE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rdna/status.h"

#define assert_ok(expression)                                                            \
  do {                                                                                   \
    rdna_status status_ = (expression);                                                  \
    if (status_ != RDNA_OK) {                                                            \
      fail_msg("%s: %s: %s", #expression, rdna_status_name(status_), rdna_last_error()); \
    }                                                                                    \
  } while (0)

/* The call fails with |code| and a sentence that holds each of the texts. */
#define assert_refused(expression, code, ...) \
  check_refused(expression, code, (const char *const[]){__VA_ARGS__, NULL}, #expression, __FILE__, __LINE__)

static inline void check_refused(rdna_status status, rdna_status want, const char *const *texts, const char *call,
                                 const char *file, int line) {
  if (status != want) {
    print_error("%s: %s, not %s: %s\n", call, rdna_status_name(status), rdna_status_name(want), rdna_last_error());
    _fail(file, line);
  }
  for (; *texts; texts++) {
    if (strstr(rdna_last_error(), *texts)) continue;
    print_error("%s: no '%s' in: %s\n", call, *texts, rdna_last_error());
    _fail(file, line);
  }
}

#endif
