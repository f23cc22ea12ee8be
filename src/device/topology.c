#include "device/topology.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "device/targets.h"

enum { MAX_NODES = 256, MAX_BANKS = 64, HEAP_FRAME_BUFFER_PUBLIC = 1, HEAP_FRAME_BUFFER_PRIVATE = 2 };

static FILE *open_properties(const char *path) { return fopen(path, "re"); }

/* One "name value" line; false at the end of the file. */
static bool read_property(FILE *file, char name[64], uint64_t *value) {
  char line[256];
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "%63s %" SCNu64, name, value) == 2) return true;
  }
  return false;
}

static uint64_t read_frame_buffer(const char *node_folder) {
  uint64_t total = 0;
  for (int bank = 0; bank < MAX_BANKS; bank++) {
    char path[PATH_MAX], name[64];
    if (snprintf(path, sizeof path, "%s/mem_banks/%d/properties", node_folder, bank) >= (int)sizeof path) break;
    FILE *file = open_properties(path);
    if (file == NULL) break;
    uint64_t value = 0, heap = 0, size = 0;
    while (read_property(file, name, &value)) {
      if (strcmp(name, "heap_type") == 0) heap = value;
      if (strcmp(name, "size_in_bytes") == 0) size = value;
    }
    fclose(file);
    if (heap == HEAP_FRAME_BUFFER_PUBLIC || heap == HEAP_FRAME_BUFFER_PRIVATE) total += size;
  }
  return total;
}

/* False when the node is a processor without a GPU. */
static bool read_node(FILE *file, rdna__topology_gpu *gpu) {
  char name[64];
  uint64_t value = 0, simds = 0, simds_per_cu = 0, cores = 0, version = 0, location = 0;
  gpu->render_minor = -1;
  while (read_property(file, name, &value)) {
    if (strcmp(name, "simd_count") == 0) simds = value;
    if (strcmp(name, "simd_per_cu") == 0) simds_per_cu = value;
    if (strcmp(name, "cpu_cores_count") == 0) cores = value;
    if (strcmp(name, "gfx_target_version") == 0) version = value;
    if (strcmp(name, "location_id") == 0) location = value;
    if (strcmp(name, "domain") == 0) gpu->pci_domain = (int)value;
    if (strcmp(name, "device_id") == 0) gpu->device_id = (uint32_t)value;
    if (strcmp(name, "drm_render_minor") == 0 && value > 0) gpu->render_minor = (int)value;
  }
  if (simds == 0 || version == 0) return false;
  /* decimal 110001 is gfx1101, 90010 is gfx90a: the last two fields are written as hexadecimal digits */
  snprintf(gpu->arch, sizeof gpu->arch, "gfx%u%x%x", (unsigned)(version / 10000 % 100), (unsigned)(version / 100 % 100),
           (unsigned)(version % 100));
  gpu->compute_units = simds_per_cu == 0 ? 0 : (int)(simds / simds_per_cu);
  gpu->pci_bus = (int)(location >> 8 & 0xff); /* bus, device, function: 8, 5, 3 bits */
  gpu->pci_device = (int)(location >> 3 & 0x1f);
  gpu->integrated = cores > 0 || rdna__topology_arch_is_integrated(gpu->arch);
  return true;
}

int rdna__topology_read(const char *root, rdna__topology_gpu *out_gpus, int capacity) {
  int count = 0;
  for (int node = 0; node < MAX_NODES; node++) {
    char folder[PATH_MAX - 64], path[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s/sys/class/kfd/kfd/topology/nodes/%d", root, node) >= (int)sizeof folder) {
      break;
    }
    snprintf(path, sizeof path, "%s/properties", folder);
    FILE *file = open_properties(path);
    if (file == NULL) break;
    rdna__topology_gpu gpu = {.node = node};
    bool is_gpu = read_node(file, &gpu);
    fclose(file);
    if (!is_gpu) continue;
    gpu.vram_bytes = read_frame_buffer(folder);
    if (count < capacity) out_gpus[count] = gpu;
    count++;
  }
  return count;
}

bool rdna__topology_arch_is_integrated(const char *arch) {
  const rdna__target *target = rdna__target_find(arch);
  return target && target->is_apu;
}
