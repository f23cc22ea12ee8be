#include "device/targets.h"

#include <stddef.h>
#include <string.h>

enum { KIND_card, KIND_apu };

#define RDNA_SERIES(prefix, name, major, minor)
#define RDNA_AMD_TARGET(name, mach, kind, runs, pack) {#name, mach, KIND_##kind, runs, #pack},
#define RDNA_NVIDIA_TARGET(name) {#name, 0, false, "", "own"},
const rdna__target rdna__targets[] = {
#include "device/targets.def"
};
const int rdna__target_count = sizeof rdna__targets / sizeof rdna__targets[0];

#undef RDNA_SERIES
#undef RDNA_AMD_TARGET
#undef RDNA_NVIDIA_TARGET
#define RDNA_SERIES(prefix, name, major, minor) {#prefix, name, major, minor},
#define RDNA_AMD_TARGET(name, mach, kind, runs, pack)
#define RDNA_NVIDIA_TARGET(name)
const rdna__series rdna__gpu_series[] = {
#include "device/targets.def"
};
const int rdna__gpu_series_count = sizeof rdna__gpu_series / sizeof rdna__gpu_series[0];

const rdna__target *rdna__target_find(const char *name) {
  for (int i = 0; i < rdna__target_count; i++)
    if (!strcmp(rdna__targets[i].name, name)) return &rdna__targets[i];
  return NULL;
}
