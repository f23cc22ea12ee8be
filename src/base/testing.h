/* For tests: cmocka, and calls that must succeed or be refused. */
#ifndef RDNA_BASE_TESTING_H
#define RDNA_BASE_TESTING_H

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

/* Ends the test as skipped, with the reason for whoever reads the log. Takes what printf takes. */
#define skip_because(...)       \
  do {                          \
    print_message("skipped: "); \
    print_message(__VA_ARGS__); \
    print_message("\n");        \
    skip();                     \
  } while (0)

#ifdef __SANITIZE_ADDRESS__
void __lsan_disable(void);
void __lsan_enable(void);
#endif
/* setlocale, whose C library loses what it makes of LOCPATH: no leak of ours. */
static inline bool use_locale(const char *name) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_disable();
#endif
  bool used = setlocale(LC_NUMERIC, name) != NULL;
#ifdef __SANITIZE_ADDRESS__
  __lsan_enable();
#endif
  return used;
}

/* Makes a locale in |folder| whose numbers have commas, and uses it until setlocale; skips the test where localedef
 * cannot. */
static inline void use_commas_or_skip(const char *folder) {
  char command[300], number[8];
  snprintf(command, sizeof command,
           "printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \"\"\\ngrouping -1\\nEND LC_NUMERIC\\n' | "
           "localedef -c %s/comma >/dev/null 2>&1",
           folder);
  setenv("LOCPATH", folder, 1);
  if (system(command) == -1 || !use_locale("comma"))
    skip_because("localedef made no locale whose numbers have commas; Debian's package locales has its sources");
  snprintf(number, sizeof number, "%g", 1.5);
  assert_string_equal(number, "1,5");
}

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
