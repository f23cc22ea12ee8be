/* The GPUs that the library knows, as targets.def has them. */
#ifndef RDNA_DEVICE_TARGETS_H
#define RDNA_DEVICE_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rdna__target {
  const char *name; /* "gfx1100", "sm_80" */
  uint32_t mach;    /* in the flags of an AMD code object; 0 for NVIDIA's */
  bool is_apu;      /* there are no cards of it */
  const char *runs; /* "gfx1150 gfx1100": whose code it runs besides its own, the closest relative first */
  const char *pack; /* what a build of all targets makes for it: "none", or that and how it is stored */
} rdna__target;

typedef struct rdna__series {
  const char *prefix, *name; /* "gfx110", "RX 7000" */
  int linux_major, linux_minor;
} rdna__series;

extern const rdna__target rdna__targets[];
extern const int rdna__target_count;
extern const rdna__series rdna__gpu_series[];
extern const int rdna__gpu_series_count;

/* NULL when |name| is no row. */
const rdna__target *rdna__target_find(const char *name);

#endif
