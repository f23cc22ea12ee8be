/* For tests: a command of the shell that must succeed. */
#ifndef RDNA_KERNEL_TESTING_SHELL_H
#define RDNA_KERNEL_TESTING_SHELL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/testing.h"

__attribute__((format(printf, 1, 2))) static inline void shell(const char *format, ...) {
  char command[8192];
  va_list list;
  va_start(list, format);
  vsnprintf(command, sizeof command, format, list);
  va_end(list);
  if (system(command) != 0) fail_msg("failed: %s", command);
}

#endif
