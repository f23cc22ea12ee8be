/* Vendors' libraries of operators, found at run time and used where they are faster: cuBLASLt, rocBLAS, hipBLASLt,
 * MIOpen; and NCCL and RCCL, which rdna/comm.h is made of. None is needed. Each brings a description of itself and the
 * file beside its operator calls it. */
#ifndef RDNA_MATH_VENDOR_H
#define RDNA_MATH_VENDOR_H

#include "device/driver/library.h"
#include "rdna/stream.h"
#include "rdna/tune.h"

typedef enum rdna__vendor {
  RDNA__CUBLASLT,
  RDNA__ROCBLAS,
  RDNA__HIPBLASLT,
  RDNA__MIOPEN,
  RDNA__NCCL,
  RDNA__RCCL,
  RDNA__VENDOR_COUNT
} rdna__vendor;

typedef struct rdna__vendor_description {
  const char *name;      /* in RDNA_VENDOR, and of the work that it queues */
  const char *driver;    /* whose devices it serves */
  const char *files[5];  /* "libcublasLt.so.13", newest first, then NULL */
  const char *wheels[4]; /* folders of site-packages that may hold it, then NULL */
  /* A folder beside the library, or the one that the environment names, whose files name the targets that it has
   * kernels for; NULL when it compiles or carries what it needs. Without such a file it aborts the process. */
  const char *kernels, *kernels_environment;
  bool alone; /* nothing of ours does what it does, so RDNA_VENDOR does not leave it out */
  const rdna__symbol *symbols;
  size_t symbol_count;
  void *table; /* filled once for the process */
  /* With the device current; |version| has 32 bytes. A failure says why the library cannot serve this device. */
  rdna_status (*open)(rdna_device *device, void **out_handle, char *version);
  void (*close)(void *handle);
} rdna__vendor_description;

extern const rdna__vendor_description rdna__cublaslt, rdna__hipblaslt, rdna__rocblas, rdna__miopen, rdna__nccl,
    rdna__rccl;

/* What the library's |open| made for |device|, on first use. NULL: it is not used there, as rdna_vendor_get_info
 * explains. The thread's last error is left alone. */
void *rdna__vendor_handle(rdna_device *device, rdna__vendor vendor);

/* A library's name and version, for what depends on them: "cublaslt 13.1.0"; "" when it is not used. */
void rdna__vendor_text(rdna_device *device, rdna__vendor vendor, char text[64]);

#endif
