/* rdna selftest: every kernel of the manifest on a device against its twin on the host. The report is what an owner of
 * a card that we do not have can send in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "math/selftest.h"

static bool show(void *context, const rdna__selftest_kernel *kernel, int done, int total) {
  show_progress(kernel->name, (double)done / total);
  return true;
}

static json_t *report_json(const rdna_device_info *device, const rdna__selftest_report *report) {
  rdna_driver_info driver = {0};
  for (int i = 0; i < rdna_driver_count(); i++)
    if (rdna_driver_get_info(i, &driver) == RDNA_OK && strcmp(driver.name, device->driver) == 0) break;
  json_t *kernels = json_array();
  for (int i = 0; i < report->kernel_count; i++) {
    const rdna__selftest_kernel *k = &report->kernels[i];
    json_array_append_new(
        kernels, json_pack("{s:s, s:s, s:b, s:i, s:f, s:s}", "name", k->name, "family", k->family, "passed", k->passed,
                           "cases", k->cases, "worst", k->worst, "message", k->message));
  }
  return json_pack("{s:s, s:{s:s, s:s, s:s, s:b, s:I, s:i, s:i, s:i, s:I, s:s, s:s}, s:s, s:i, s:i, s:I, s:o}",
                   "rdna_version", RDNA_VERSION, "device", "name", device->name, "driver", device->driver, "arch",
                   device->arch, "emulated", device->emulated, "total_memory", (json_int_t)device->total_memory,
                   "compute_units", device->compute_units, "wave_size", device->wave_size, "max_group_threads",
                   device->max_group_threads, "max_group_memory", (json_int_t)device->max_group_memory, "library",
                   driver.library ? driver.library : "", "library_version", driver.version ? driver.version : "",
                   "compared_with", report->against ? report->against : "", "kernel_count", report->kernel_count,
                   "failed_count", report->failed_count, "case_count", (json_int_t)report->case_count, "kernels",
                   kernels);
}

static void print_report(const rdna_device_info *device, const rdna__selftest_report *report) {
  printf("%s (%s:%d, %s), compared with %s\n\n", device->name, device->driver, device->index, device->arch,
         report->against);
  const char *family = "";
  int first = 0;
  for (int i = 0; i <= report->kernel_count; i++) {
    if (i < report->kernel_count && (i == first || strcmp(report->kernels[i].family, family) == 0)) {
      family = report->kernels[i].family;
      continue;
    }
    int passed = 0, cases = 0;
    double worst = 0;
    for (int k = first; k < i; k++) {
      passed += report->kernels[k].passed;
      cases += report->kernels[k].cases;
      if (report->kernels[k].worst > worst) worst = report->kernels[k].worst;
    }
    printf("  %-20s %3d of %3d kernels  %5d cases  largest error %6.3f of its bound\n", family, passed, i - first,
           cases, worst);
    if (i == report->kernel_count) break;
    first = i;
    family = report->kernels[i].family;
  }
  for (int i = 0; i < report->kernel_count; i++)
    if (!report->kernels[i].passed) printf("FAILED %s: %s\n", report->kernels[i].name, report->kernels[i].message);
  printf("\n%d of %d kernels agree (%lld cases)\n", report->kernel_count - report->failed_count, report->kernel_count,
         (long long)report->case_count);
}

int command_selftest(int argc, char **argv) {
  device_choice choice = DEVICE_CHOICE_DEFAULT;
  bool json = false;
  int64_t cases = 8, seed = 1;
  const char *filter = NULL;
  const option_row options[] = {
      {"--cases", OPTION_INTEGER, &cases, "N", "random cases for each kernel (8)", 1, 1000000},
      {"--kernel", OPTION_TEXT, &filter, "NAME", "only this family, or kernels with this in their names", 0, 0},
      {"--seed", OPTION_INTEGER, &seed, "N", "which random cases (1)", 0, 0},
      {"--json", OPTION_FLAG, &json, NULL, "print the whole report as JSON, to keep or send in", 0, 0},
      DEVICE_OPTIONS(choice),
  };
  const command_line line = {
      "rdna selftest", "Compares every kernel on a device with its twin on the host.", "", 0, 0, options, 6};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  rdna_device *device;
  if (open_chosen_device(&choice, &device) != RDNA_OK) return fail_with_status();
  rdna__selftest_options selftest = {.cases = (int)cases, .filter = filter, .seed = (uint64_t)seed, .progress = show};
  rdna__selftest_report report = {0};
  rdna_status status = rdna__selftest_run(device, &selftest, &report);
  end_progress();
  exit_status = status != RDNA_OK ? fail_with_status() : report.failed_count ? EXIT_FAILED : EXIT_OK;
  if (status == RDNA_OK) {
    if (json)
      print_json(report_json(rdna_device_get_info(device), &report));
    else
      print_report(rdna_device_get_info(device), &report);
  }
  rdna__selftest_deinit(&report);
  rdna_device_release(device);
  return exit_status;
}
