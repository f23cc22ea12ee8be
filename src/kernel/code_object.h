/* What compiled code says of itself: which GPU it is for, and its kernels with their arguments. */
#ifndef RDNA_KERNEL_CODE_OBJECT_H
#define RDNA_KERNEL_CODE_OBJECT_H

#include <stdint.h>

#include "base/status.h"
#include "rdna/compile.h"

typedef struct rdna__code_text rdna__code_text; /* a string of a description */

typedef struct rdna__code_description {
  char target[32];
  rdna_code_kernel *kernels; /* in the order of the code */
  int kernel_count;
  rdna__code_text *texts;
} rdna__code_description;

/* Reads an AMD code object or NUL-terminated PTX, from any bytes. RDNA_BAD_DATA: neither, or broken.
 * Layout: LLVM, "User Guide for AMDGPU Backend", code object V3 to V6, metadata; NVIDIA, "PTX ISA", directives. */
rdna_status rdna__code_describe(const void *data, size_t size, rdna__code_description *out_description);
void rdna__code_description_free(rdna__code_description *description); /* all zeros is fine */

/* Keeps a copy of |length| bytes as a string; NULL without memory. */
const char *rdna__code_text_add(rdna__code_description *description, const char *text, size_t length);

/* For one kernel whose symbol and arguments' offsets and sizes are there: fills its name and, from a C++ symbol, the
 * types of its arguments where it tells them and they agree with what is known. */
rdna_status rdna__code_name_kernel(rdna__code_description *description, rdna_code_kernel *kernel);

/* Reads the entries of PTX. */
rdna_status rdna__code_describe_ptx(const char *text, size_t size, rdna__code_description *description);

#endif
