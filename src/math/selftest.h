/* The generated test: every kernel of the manifest with random cases, on a device and on its host twin. */
#ifndef RDNA_MATH_SELFTEST_H
#define RDNA_MATH_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "rdna/device.h"

typedef struct rdna__selftest_kernel {
  const char *name, *family;
  bool passed;
  int cases;         /* that ran, the failing one included */
  double worst;      /* largest error over its bound */
  char message[512]; /* the first failure: case, difference, how to run it again */
} rdna__selftest_kernel;

typedef struct rdna__selftest_report {
  int kernel_count, failed_count;
  int64_t case_count;
  const char *against;            /* what the device was compared with */
  rdna__selftest_kernel *kernels; /* in the manifest's order */
} rdna__selftest_report;

typedef struct rdna__selftest_options {
  int cases;          /* for each kernel, less |first| */
  int first;          /* the number of the first case: those before it have run elsewhere */
  const char *filter; /* a family, or a part of a kernel's name; "=" and a family: its alone; NULL for all */
  uint64_t seed;
  /* After each kernel. False stops the test with RDNA_CANCELLED. NULL is fine. */
  bool (*progress)(void *context, const rdna__selftest_kernel *kernel, int done, int total);
  void *context;
} rdna__selftest_options;

/* On the host it compares the best twins, and those of every other instruction set, with the baseline ones; on a
 * GPU the kernels with the best twins. A kernel that fails does not stop the test: RDNA_OK says that all were
 * run, the report says how. The report is the caller's to deinit whatever the status. RDNA_NOT_FOUND: no kernel
 * matches the filter. */
rdna_status rdna__selftest_run(rdna_device *device, const rdna__selftest_options *options,
                               rdna__selftest_report *out_report);
void rdna__selftest_deinit(rdna__selftest_report *report);

#endif
