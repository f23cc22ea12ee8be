/* Finding and opening devices. A device is a GPU through HIP or CUDA, or the host's own processor. */
#ifndef RDNA_DEVICE_H
#define RDNA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_device rdna_device;

typedef struct rdna_device_info {
  char name[128];                      /* as the driver tells it; an emulated or host device says so here */
  char driver[8];                      /* "hip", "cuda", "host", "null" */
  char arch[32];                       /* "gfx1100", "sm_90", "x86-64-v4": what kernels are compiled for */
  int index;                           /* within its driver, after ordering: discrete cards first */
  int native_index;                    /* the number that the driver's own library uses */
  bool integrated;                     /* shares the host's memory */
  bool emulated;                       /* an interpreted GPU: right, and slow */
  uint64_t total_memory;               /* bytes */
  int compute_units;                   /* CUs (never WGPs), SMs, or host threads */
  int wave_size;                       /* threads that run in lockstep: 32 or 64; 1 on the host */
  int max_group_threads;               /* threads in one work-group */
  uint32_t max_group_memory;           /* bytes of LDS / shared memory in one work-group */
  int clock_mhz;                       /* 0 when unknown */
  int pci_domain, pci_bus, pci_device; /* -1 when there is none */
} rdna_device_info;

typedef struct rdna_driver_info {
  const char *name;    /* "hip", … */
  rdna_status status;  /* RDNA_OK, or why it has no devices */
  const char *message; /* one sentence: what was loaded, or what is missing and what to do */
  const char *library; /* path of the vendor library in use, or "" */
  const char *version; /* the vendor runtime's version, or "" */
  int device_count;
} rdna_driver_info;

/* Drivers in the order that "auto" tries them: hip, cuda, host, then null (which only a name asks for).
 * The first call probes; the answer is kept for the process's life. Thread-safe. */
RDNA_API int rdna_driver_count(void);
/* |out_info| borrows strings that live as long as the process. RDNA_INVALID_ARGUMENT past the last. */
RDNA_CHECKED rdna_status rdna_driver_get_info(int driver, rdna_driver_info *out_info);

/* The driver that "auto" stands for, without opening a device. |out_asked|, or NULL: whether a person chose it with
 * RDNA_DRIVER, or asked for emulated cards with RDNA_EMULATE. RDNA_UNAVAILABLE when there is none. */
RDNA_CHECKED rdna_status rdna_driver_default(rdna_driver_info *out_info, bool *out_asked);

/* Describes device |index| of the driver called |driver| without opening it. */
RDNA_CHECKED rdna_status rdna_device_describe(const char *driver, int index, rdna_device_info *out_info);

/* Opens a device by name: "auto" (also NULL), "hip", "cuda:1", "host", "null". "auto" honours RDNA_DRIVER.
 * The same device opened twice is the same object with one more reference: one memory pool for everyone
 * in the process. Release with rdna_device_release.
 * RDNA_NOT_FOUND: no such driver or index, with the list of those that exist. RDNA_UNAVAILABLE: the driver's
 * library is missing, with the reason. */
RDNA_CHECKED rdna_status rdna_device_open(const char *name, rdna_device **out_device);
RDNA_API rdna_device *rdna_device_retain(rdna_device *device);
RDNA_API void rdna_device_release(rdna_device *device); /* NULL is fine */

/* Borrowed; lives as long as the device. */
RDNA_API const rdna_device_info *rdna_device_get_info(const rdna_device *device);

/* Waits for all work on all streams of the device; returns the first error among them. */
RDNA_CHECKED rdna_status rdna_device_synchronize(rdna_device *device);

#ifdef __cplusplus
}
#endif
#endif
