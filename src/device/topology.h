/* AMD GPUs as the kernel driver describes them in /sys/class/kfd/kfd/topology: known without any vendor library.
 * Source of the files: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c. */
#ifndef RDNA_DEVICE_TOPOLOGY_H
#define RDNA_DEVICE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rdna__topology_gpu {
  int node;           /* N of nodes/N */
  char arch[16];      /* "gfx1100", "gfx90a" */
  int compute_units;  /* CUs: simd_count / simd_per_cu */
  bool integrated;    /* shares a chip with the processor */
  uint32_t device_id; /* PCI */
  int pci_domain, pci_bus, pci_device;
  int render_minor;    /* N of /dev/dri/renderDN; -1 when unknown */
  uint64_t vram_bytes; /* of all frame buffer banks */
} rdna__topology_gpu;

/* Reads |root|/sys/class/kfd/kfd/topology/nodes in the order of node numbers, which is HIP's order. Returns how many
 * GPUs there are, of which at most |capacity| were written; 0 when the folder is not there. */
int rdna__topology_read(const char *root, rdna__topology_gpu *out_gpus, int capacity);

/* True for targets that exist in no discrete card (targets.def). Older HIP runtimes report these as discrete. */
bool rdna__topology_arch_is_integrated(const char *arch);

#endif
