#include "device/driver/hip/hip_properties.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/topology.h"

/* Byte offsets of fields of hipDeviceProp_t. R0000: offsetof over hip_runtime_api.h 5.2.3. R0600: the field order
 * of hip_runtime_api.h 6.0, which follows CUDA 12's cudaDeviceProp; sizeof 1,472. */
typedef struct layout_offsets {
  unsigned total_memory, group_memory, wave_size, group_threads, clock_khz, multiprocessors, integrated;
  unsigned pci_domain, pci_bus, pci_device, arch;
} layout_offsets;

static const layout_offsets layouts[] = {
    [RDNA__HIP_R0000] = {.total_memory = 256,
                         .group_memory = 264,
                         .wave_size = 276,
                         .group_threads = 280,
                         .clock_khz = 308,
                         .multiprocessors = 336,
                         .pci_domain = 364,
                         .pci_bus = 368,
                         .pci_device = 372,
                         .arch = 396,
                         .integrated = 652},
    [RDNA__HIP_R0600] = {.total_memory = 288,
                         .group_memory = 296,
                         .wave_size = 308,
                         .group_threads = 320,
                         .clock_khz = 348,
                         .multiprocessors = 388,
                         .integrated = 396,
                         .pci_bus = 584,
                         .pci_device = 588,
                         .pci_domain = 592,
                         .arch = 1160},
};

static int read_int(const unsigned char *properties, unsigned offset) {
  int value;
  memcpy(&value, properties + offset, sizeof value);
  return value;
}

static uint64_t read_size(const unsigned char *properties, unsigned offset) {
  uint64_t value;
  memcpy(&value, properties + offset, sizeof value);
  return value;
}

bool rdna__hip_properties_read(const unsigned char properties[RDNA__HIP_PROPERTIES_BYTES], rdna__hip_layout layout,
                               rdna_device_info *out_info) {
  const layout_offsets *at = &layouts[layout];
  const char *arch = (const char *)properties + at->arch; /* "gfx90a:sramecc+:xnack-", 256 bytes */
  size_t length = strcspn(arch, ":");
  if (strncmp(arch, "gfx", 3) != 0 || length >= sizeof out_info->arch) return false;
  memset(out_info, 0, sizeof *out_info);
  memcpy(out_info->driver, "hip", sizeof "hip");
  memcpy(out_info->arch, arch, length);
  snprintf(out_info->name, sizeof out_info->name, "%.100s", (const char *)properties);
  /* the marketing name comes from a table in libdrm; a container with an older one gives none */
  if (out_info->name[0] == '\0') snprintf(out_info->name, sizeof out_info->name, "AMD GPU %s", out_info->arch);
  out_info->total_memory = read_size(properties, at->total_memory);
  out_info->max_group_memory = (uint32_t)read_size(properties, at->group_memory);
  out_info->wave_size = read_int(properties, at->wave_size);
  out_info->max_group_threads = read_int(properties, at->group_threads);
  out_info->clock_mhz = read_int(properties, at->clock_khz) / 1000;
  out_info->compute_units = read_int(properties, at->multiprocessors);
  out_info->integrated = read_int(properties, at->integrated) != 0 || rdna__topology_arch_is_integrated(out_info->arch);
  out_info->pci_domain = read_int(properties, at->pci_domain);
  out_info->pci_bus = read_int(properties, at->pci_bus);
  out_info->pci_device = read_int(properties, at->pci_device);
  return true;
}

int rdna__hip_compute_units(const char *arch, int multiprocessors, bool wgp_mode, int kernel_driver_units) {
  /* gfx9xx names have three digits, gfx10 and later four */
  bool has_wgps = strncmp(arch, "gfx", 3) == 0 && strlen(arch) >= 7;
  if (!has_wgps) return multiprocessors;
  if (kernel_driver_units == multiprocessors || kernel_driver_units == 2 * multiprocessors) return kernel_driver_units;
  return wgp_mode ? 2 * multiprocessors : multiprocessors;
}
