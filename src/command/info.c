/* rdna info: the devices, the drivers, the vendors' libraries, and why one is missing. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "command/command.h"
#include "kernel/pack.h"
#include "rdna/tune.h"

static json_t *device_json(const rdna_device_info *d) {
  return json_pack("{s:s, s:s, s:s, s:i, s:i, s:b, s:b, s:I, s:i, s:i, s:i, s:I, s:i}", "name", d->name, "driver",
                   d->driver, "arch", d->arch, "index", d->index, "native_index", d->native_index, "integrated",
                   d->integrated, "emulated", d->emulated, "total_memory", (json_int_t)d->total_memory, "compute_units",
                   d->compute_units, "wave_size", d->wave_size, "max_group_threads", d->max_group_threads,
                   "max_group_memory", (json_int_t)d->max_group_memory, "clock_mhz", d->clock_mhz);
}

/* Calls |visit| for each vendor's library on each GPU. */
static rdna_status visit_libraries(void (*visit)(void *context, const char *device, const rdna_vendor_info *info),
                                   void *context) {
  for (int i = 0; i < rdna_driver_count(); i++) {
    rdna_driver_info driver;
    RDNA_TRY(rdna_driver_get_info(i, &driver));
    for (int j = 0; j < driver.device_count; j++) {
      char name[32];
      rdna_device *device;
      snprintf(name, sizeof name, "%s:%d", driver.name, j);
      bool has_any = strcmp(driver.name, "hip") == 0 || strcmp(driver.name, "cuda") == 0;
      if (!has_any) continue;
      RDNA_TRY(rdna_device_open(name, &device));
      for (int k = 0; k < rdna_vendor_count(); k++) {
        rdna_vendor_info info;
        if (rdna_vendor_get_info(device, k, &info) == RDNA_OK && strcmp(info.driver, driver.name) == 0)
          visit(context, name, &info);
      }
      rdna_device_release(device);
    }
  }
  return RDNA_OK;
}

static void add_library(void *context, const char *device, const rdna_vendor_info *info) {
  json_array_append_new(context, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "device", device, "name", info->name,
                                           "status", rdna_status_name(info->status), "message", info->message,
                                           "library", info->library, "version", info->version));
}

static void print_library(void *context, const char *device, const rdna_vendor_info *info) {
  bool *any = context;
  if (!*any) printf("\nVendors' libraries\n");
  *any = true;
  printf("  %-9s %-7s %-10s %s\n", info->name, device, info->status == RDNA_OK ? "used" : "not used", info->message);
}

static int info_json(void) {
  json_t *drivers = json_array(), *devices = json_array(), *libraries = json_array();
  for (int i = 0; i < rdna_driver_count(); i++) {
    rdna_driver_info driver;
    if (rdna_driver_get_info(i, &driver) != RDNA_OK) continue;
    json_array_append_new(
        drivers, json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "name", driver.name, "status",
                           rdna_status_name(driver.status), "message", driver.message, "library", driver.library,
                           "version", driver.version, "devices", driver.device_count));
    for (int j = 0; j < driver.device_count; j++) {
      rdna_device_info device;
      if (rdna_device_describe(driver.name, j, &device) == RDNA_OK)
        json_array_append_new(devices, device_json(&device));
    }
  }
  if (visit_libraries(add_library, libraries) != RDNA_OK) {
    json_decref(drivers);
    json_decref(devices);
    json_decref(libraries);
    return fail_with_status();
  }
  return print_json(json_pack("{s:o, s:o, s:o}", "drivers", drivers, "devices", devices, "libraries", libraries));
}

static void print_device(const rdna_device_info *d) {
  char memory[32];
  printf("  %-4s:%d  %-12s %4d %-7s %10s  %s%s\n", d->driver, d->index, d->arch, d->compute_units,
         strcmp(d->driver, "host") == 0   ? "threads"
         : strcmp(d->driver, "cuda") == 0 ? "SMs"
                                          : "CUs",
         format_bytes((double)d->total_memory, memory), d->name, d->integrated ? ", integrated" : "");
}

int command_info(int argc, char **argv) {
  bool json = false;
  const option_row options[] = {{"--json", OPTION_FLAG, &json, NULL, "print JSON", 0, 0}};
  const command_line line = {
      "rdna info", "Shows the devices, the drivers, and why one is missing.", "", 0, 0, options, 1};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  if (json) return info_json();

  printf("Devices\n");
  for (int i = 0; i < rdna_driver_count(); i++) {
    rdna_driver_info driver;
    if (rdna_driver_get_info(i, &driver) != RDNA_OK) return fail_with_status();
    if (strcmp(driver.name, "null") == 0) continue; /* for tests: nobody's device */
    for (int j = 0; j < driver.device_count; j++) {
      rdna_device_info device;
      if (rdna_device_describe(driver.name, j, &device) != RDNA_OK) return fail_with_status();
      print_device(&device);
    }
  }
  printf("\nDrivers\n");
  for (int i = 0; i < rdna_driver_count(); i++) {
    rdna_driver_info driver;
    if (rdna_driver_get_info(i, &driver) != RDNA_OK) return fail_with_status();
    if (strcmp(driver.name, "null") == 0) continue;
    printf("  %-5s %-12s %s\n", driver.name, driver.status == RDNA_OK ? "ready" : "unavailable", driver.message);
  }
  bool any = false;
  if (visit_libraries(print_library, &any) != RDNA_OK) return fail_with_status();
  return EXIT_OK;
}
