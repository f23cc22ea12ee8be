/* cases_test [device [cases [filter [seed [first]]]]]: the generated test as a program that runs anywhere, without
 * cmocka. */
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

int main(int argc, char **argv) {
  rdna__selftest_options options = {.cases = argc > 2 ? atoi(argv[2]) : 12,
                                    .filter = argc > 3 ? argv[3] : NULL,
                                    .seed = argc > 4 ? strtoull(argv[4], NULL, 0) : 1,
                                    .first = argc > 5 ? atoi(argv[5]) : 0,
                                    .progress = show};
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
