/* cases_test [device [cases [filter [seed [first]]]]]: the generated test as a program that runs anywhere, without
 * cmocka. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "math/selftest.h"

static bool show(void *context, const rdna__selftest_kernel *kernel, int done, int total) {
  if (kernel->passed)
    printf("ok   %-36s %3d cases, worst %.2f of the bound\n", kernel->name, kernel->cases, kernel->worst);
  else
    printf("FAIL %-36s %s\n", kernel->name, kernel->message);
  fflush(stdout);
  return true;
}

/* Ends the program where the argument is no number: a second filter would be taken for the seed 0. */
static unsigned long long number(char **argv, int at, const char *meaning) {
  char *end = argv[at];
  unsigned long long value = isdigit((unsigned char)argv[at][0]) ? strtoull(argv[at], &end, 0) : 0;
  if (end != argv[at] && !*end) return value;
  fprintf(stderr, "cases_test: '%s' is no number, and argument %d is %s: device cases filter seed first\n", argv[at],
          at, meaning);
  exit(2);
}

int main(int argc, char **argv) {
  rdna__selftest_options options = {.cases = argc > 2 ? (int)number(argv, 2, "the count of cases") : 12,
                                    .filter = argc > 3 ? argv[3] : NULL,
                                    .seed = argc > 4 ? number(argv, 4, "the seed") : 1,
                                    .first = argc > 5 ? (int)number(argv, 5, "the first case") : 0,
                                    .progress = show};
  if (argc > 6) {
    fprintf(stderr, "cases_test: '%s' is one argument too many: device cases filter seed first\n", argv[6]);
    return 2;
  }
  rdna_device *device;
  if (rdna_device_open(argc > 1 ? argv[1] : "host", &device) != RDNA_OK) {
    fprintf(stderr, "cases_test: %s\n", rdna_last_error());
    return 2;
  }
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  rdna__selftest_report report;
  rdna_status status = rdna__selftest_run(device, &options, &report);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (status != RDNA_OK) fprintf(stderr, "cases_test: %s\n", rdna_last_error());
  const rdna_device_info *info = rdna_device_get_info(device);
  printf("%s (%s) against %s: %d kernels, %lld cases, %d failed, %.1f s\n", info->name, info->arch,
         report.against ? report.against : "nothing", report.kernel_count, (long long)report.case_count,
         report.failed_count, (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
  int result = status != RDNA_OK || report.failed_count != 0 || report.case_count == 0;
  rdna__selftest_deinit(&report);
  rdna_device_release(device);
  return result;
}
