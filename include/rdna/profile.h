/* What ran on a device, and when: every kernel, library call, copy and fill that is queued between start and stop, with
 * an event before it and one behind it. Queuing costs more meanwhile, and work of several threads on one device is
 * queued one by one. Work that is recorded into a graph is not seen, a replay is one piece. */
#ifndef RDNA_PROFILE_H
#define RDNA_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "rdna/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rdna_profile_kind {
  RDNA_PROFILE_KIND_KERNEL = 0,
  RDNA_PROFILE_KIND_LIBRARY, /* what a vendor's library queued */
  RDNA_PROFILE_KIND_GRAPH,
  RDNA_PROFILE_KIND_COPY_TO_DEVICE,
  RDNA_PROFILE_KIND_COPY_TO_HOST,
  RDNA_PROFILE_KIND_COPY_ON_DEVICE,
  RDNA_PROFILE_KIND_COPY_PEER,
  RDNA_PROFILE_KIND_FILL
} rdna_profile_kind;

typedef struct rdna_profile_record {
  const char *name; /* "gemm_f16_f16_f16_large", "cublaslt", "copy to device"; lives as long as the device */
  rdna_profile_kind kind;
  int stream;     /* the number of the stream within the device; 0 is the default one */
  uint64_t mark;  /* the queuing thread's at that moment */
  uint64_t bytes; /* of copies and fills, 0 otherwise */
  double start;   /* milliseconds since rdna_profile_start */
  double length;  /* milliseconds */
} rdna_profile_record;

/* Waits for the device's work and begins. RDNA_INVALID_ARGUMENT: it was begun already. */
RDNA_CHECKED rdna_status rdna_profile_start(rdna_device *device);
/* Waits for the device's work, also where that failed, and ends. |*out_records|, in the order of queuing, is to be
 * freed with free(); both places may be NULL. RDNA_INVALID_ARGUMENT: it was not begun. */
RDNA_CHECKED rdna_status rdna_profile_stop(rdna_device *device, rdna_profile_record **out_records, size_t *out_count);
/* What the calling thread queues from now on has this number; 0 at first. */
RDNA_API void rdna_profile_mark(uint64_t mark);

#ifdef __cplusplus
}
#endif
#endif
