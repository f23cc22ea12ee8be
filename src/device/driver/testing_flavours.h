/* For tests of drivers: a driver probes once in a process and the environment is read once, so each flavour of a
 * vendor's library is met in a process of its own. */
#ifndef RDNA_DEVICE_DRIVER_TESTING_FLAVOURS_H
#define RDNA_DEVICE_DRIVER_TESTING_FLAVOURS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct flavour {
  const char *name;
  int (*run)(void); /* in a child; returns the number of failed tests */
} flavour;

/* Returns the number of flavours that failed, crashed or took longer than |seconds|. */
static inline int run_flavours(const flavour *flavours, size_t count, unsigned seconds) {
  int failed = 0;
  for (size_t i = 0; i < count; i++) {
    printf("== %s\n", flavours[i].name);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      alarm(seconds);
      exit(flavours[i].run() != 0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      printf("== %s failed (wait status 0x%x)\n", flavours[i].name, (unsigned)status);
      failed++;
    }
  }
  return failed;
}

#endif
