/* How the library chooses among several implementations of an operator, and what it chose. */
#ifndef RDNA_TUNE_H
#define RDNA_TUNE_H

#include <stdbool.h>

#include "rdna/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True: every operator gives the same bits for the same inputs from run to run on one device. Choices then follow
 * from the shape alone (no measured time, no vendor's library), and no operator sums in an order that varies. The
 * first answer is RDNA_DETERMINISTIC's. A change holds for calls that start after it, in every thread. */
RDNA_API void rdna_deterministic_set(bool deterministic);
RDNA_API bool rdna_deterministic_get(void);

typedef struct rdna_choice {
  const char *implementation; /* "tile 128 x 64", "cublaslt"; static */
  const char *why;            /* "rule", "stored", "shipped", "measured", "deterministic" or "only one"; of a chain a
                               * sentence; static */
} rdna_choice;

/* What the calling thread's last call of |operator| ("gemm", "linear", "conv", "fused") ran, and why. RDNA_NOT_FOUND:
 * this thread has not called it, or it has one implementation only (rdna_stream_last_kernel names it then). */
RDNA_CHECKED rdna_status rdna_choice_last(const char *operator_name, rdna_choice *out_choice);

/* What |device| does from now on about classes of shapes that this process has not met: |mode| is a word of RDNA_TUNE,
 * |file| a path as in RDNA_TUNE_FILE; NULL leaves either as it is. What was chosen before stays.
 * RDNA_INVALID_ARGUMENT: no device, another word, or a path that is empty or too long. */
RDNA_CHECKED rdna_status rdna_tune_set(rdna_device *device, const char *mode, const char *file);

typedef struct rdna_tune_stats {
  uint64_t entries; /* classes of shapes that have a choice */
  uint64_t hits;    /* of them, where there was a choice: those that a file or the shipped results knew */
  uint64_t misses;  /* those that were measured, or left to the rule */
} rdna_tune_stats;
/* Of this process. RDNA_INVALID_ARGUMENT: no device, or no place for the answer. */
RDNA_CHECKED rdna_status rdna_tune_get_stats(rdna_device *device, rdna_tune_stats *out_stats);

typedef struct rdna_vendor_info {
  const char *name;    /* as in RDNA_VENDOR: "cublaslt", "rocblas", "hipblaslt", "miopen"; and "nccl", "rccl" */
  const char *driver;  /* the driver whose devices it serves */
  rdna_status status;  /* RDNA_OK, or why it is not used on this device */
  const char *message; /* one sentence: what was loaded, or what is missing and what to do */
  const char *library; /* path of the file in use, or "" */
  const char *version; /* as the library says, or "" */
} rdna_vendor_info;

/* Vendors' libraries that know more ways to run an operator, none of which is needed, and those of rdna/comm.h. */
RDNA_API int rdna_vendor_count(void);
/* Loads library |vendor| for |device| unless that was tried before. |out_info| borrows strings that live as long as
 * the device. RDNA_INVALID_ARGUMENT: no device, or |vendor| out of range; a library that is missing is RDNA_OK with the
 * reason in |out_info|. */
RDNA_CHECKED rdna_status rdna_vendor_get_info(rdna_device *device, int vendor, rdna_vendor_info *out_info);

#ifdef __cplusplus
}
#endif
#endif
