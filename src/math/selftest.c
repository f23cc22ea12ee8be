#include "math/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"

/* A kernel's cases do not depend on which others are in the manifest or pass the filter. */
static uint64_t case_seed(const char *name, uint64_t seed, int n) {
  uint64_t hash = 0xcbf29ce484222325u ^ seed; /* FNV-1a (Fowler, Noll, Vo) */
  for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
  return (hash ^ (uint64_t)n) * 0x100000001b3u;
}

static bool matches(const rdna__kernel_info *kernel, const char *filter) {
  if (!filter || !filter[0]) return true;
  if (filter[0] == '=') return !strcmp(kernel->family, filter + 1);
  return !strcmp(kernel->family, filter) || strstr(kernel->name, filter);
}

static void note_failure(rdna__selftest_kernel *kernel, const rdna__kernel_case *c, int n, const char *where,
                         const char *message) {
  if (!kernel->passed) return;
  kernel->passed = false;
  snprintf(kernel->message, sizeof kernel->message, "case %d (%s) on %s: %s", n, c->label, where, message);
}

/* One comparison; a failing device is a failing kernel. */
static void judge(rdna__selftest_kernel *kernel, const rdna__kernel_case *c, int n, const char *where,
                  rdna_status status, const rdna__case_result *result) {
  if (status != RDNA_OK) {
    note_failure(kernel, c, n, where, rdna_last_error());
    return;
  }
  if (result->worst > kernel->worst) kernel->worst = result->worst;
  if (!result->passed) note_failure(kernel, c, n, where, result->message);
}

static rdna_status run_case(rdna_device *device, const rdna__kernel_info *info, uint64_t seed, int n,
                            rdna__selftest_kernel *kernel) {
  static const char *const isas[] = {"avx2", "avx512"};
  rdna__kernel_case *c = calloc(1, sizeof *c);
  if (!c) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case of kernel %s", info->name);
  rdna__random random;
  rdna__random_seed(&random, case_seed(info->name, seed, n));
  rdna_status status = info->make_case(info, &random, n, c);
  rdna__case_result result;
  const char *driver = rdna_device_get_info(device)->driver;
  for (int i = 0; status == RDNA_OK && i < 2 && !strcmp(driver, "host"); i++)
    if (rdna__host_twin_for(isas[i], rdna__manifest_find(info->name)))
      judge(kernel, c, n, isas[i], rdna__case_run_isa(isas[i], info, c, &result), &result);
  if (status == RDNA_OK) judge(kernel, c, n, driver, rdna__case_run(device, info, c, &result), &result);
  kernel->cases++;
  rdna__case_free(c);
  free(c);
  return rdna__annotate(status, "making case %d of kernel %s", n, info->name);
}

rdna_status rdna__selftest_run(rdna_device *device, const rdna__selftest_options *options,
                               rdna__selftest_report *out_report) {
  *out_report = (rdna__selftest_report){0};
  bool host = !strcmp(rdna_device_get_info(device)->driver, "host");
  if (host && !rdna__host_twin_for("baseline", 0)) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "this library has host kernels of the %s instructions alone, and so nothing to "
                      "compare them with; build it without RDNA_HOST_TWINS=native",
                      rdna__host_isa());
  }
  out_report->against = host ? "the baseline host twins" : "the host twins";
  out_report->kernels = calloc((size_t)rdna__manifest_count + 1, sizeof *out_report->kernels);
  if (!out_report->kernels) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for the report of a self-test");
  int total = 0;
  for (int i = 0; i < rdna__manifest_count; i++) total += matches(&rdna__manifest[i], options->filter);
  if (!total)
    return rdna__fail(RDNA_NOT_FOUND, "no kernel or family matches '%s'", options->filter ? options->filter : "");

  for (int i = 0; i < rdna__manifest_count; i++) {
    const rdna__kernel_info *info = &rdna__manifest[i];
    if (!matches(info, options->filter)) continue;
    rdna__selftest_kernel *kernel = &out_report->kernels[out_report->kernel_count++];
    *kernel = (rdna__selftest_kernel){.name = info->name, .family = info->family, .passed = true};
    for (int n = options->first; n < options->cases && kernel->passed; n++)
      RDNA_TRY(run_case(device, info, options->seed, n, kernel));
    out_report->case_count += kernel->cases;
    out_report->failed_count += !kernel->passed;
    if (options->progress && !options->progress(options->context, kernel, out_report->kernel_count, total))
      return rdna__fail(RDNA_CANCELLED, "the self-test was stopped after %d of %d kernels", out_report->kernel_count,
                        total);
  }
  return RDNA_OK;
}

void rdna__selftest_deinit(rdna__selftest_report *report) {
  free(report->kernels);
  *report = (rdna__selftest_report){0};
}
