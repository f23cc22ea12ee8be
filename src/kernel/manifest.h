/* The manifest: every kernel by name, with its argument struct's size, its work-group, its host twin, and a
 * maker of random cases, so that any kernel can be compared across drivers with the same bytes.
 *
 * A family of kernels is a folder of src/math with F_kernels.h (argument structs and one X-macro list),
 * F.hip (device code), F_host.c (host twins, compiled once for each instruction set), F_cases.c (random
 * cases) and F.c (operators). */
#ifndef RDNA_KERNEL_MANIFEST_H
#define RDNA_KERNEL_MANIFEST_H

#include "base/random.h"
#include "base/status.h"
#include "rdna/kernel.h"
#include "rdna/tensor.h"

typedef void (*rdna__host_kernel)(const void *args, rdna_grid grid);

enum { RDNA__CASE_MAX_BUFFERS = 13 };

typedef enum rdna__buffer_role {
  RDNA__IN,   /* filled before the run, must be unchanged after */
  RDNA__OUT,  /* poisoned before the run, every value written and compared */
  RDNA__INOUT /* filled, then compared */
} rdna__buffer_role;

typedef struct rdna__case_buffer {
  rdna__buffer_role role;
  rdna_dtype dtype;
  int64_t count;        /* values */
  uint32_t args_offset; /* where in the argument struct the pointer goes */
  /* OUT/INOUT: |got - want| <= absolute + relative * |want|, from the dtype and the length of the sum; both 0
   * asks for equal bits (a NaN matches any NaN). Infinity counts as the value after the largest finite one. */
  double absolute, relative;
  /* of OUT: NULL, or one byte for each value, 1 where the kernel must not write and poison must stay */
  uint8_t *untouched;
  void *data; /* initial bytes, owned by the case */
} rdna__case_buffer;

typedef struct rdna__kernel_case {
  char label[96]; /* shape and flags, for reports */
  rdna_grid grid;
  int buffer_count;
  rdna__case_buffer buffers[RDNA__CASE_MAX_BUFFERS];
  uint8_t args[2048]; /* the argument struct, pointers still NULL */
} rdna__kernel_case;

typedef struct rdna__kernel_info {
  const char *name;
  const char *family; /* the .hip file, and so the code object, that holds it */
  uint32_t args_size;
  uint32_t group_threads; /* the same on every GPU */
  /* Fills |out_case| with case number |n| of an endless sequence: 0 is small, later ones random with odd sizes,
   * NaN and infinities where they have meaning, empty extents. Buffers made with rdna__case_add. */
  rdna_status (*make_case)(const struct rdna__kernel_info *kernel, rdna__random *random, int n,
                           rdna__kernel_case *out_case);
  /* Bytes of shared memory that the NVIDIA kernel requests at launch (GROUP_MEMORY): of the plain image, and of the
   * image for one compute capability alone (0: the same). */
  uint32_t cuda_group_memory[2];
} rdna__kernel_info;

/* The whole manifest, sorted by family. Whoever is linked below this layer provides it: src/math/manifest.c, or a
 * unit test of this layer with kernels of its own. */
extern const rdna__kernel_info rdna__manifest[];
extern const int rdna__manifest_count;
/* Index of |name|, or -1. */
int rdna__manifest_find(const char *name);

/* Host twins by manifest index for the processor's best instruction set (RDNA_HOST_ISA=baseline|avx2|avx512
 * lowers it); NULL if a build of one set alone has none for it. Provided beside the manifest. */
rdna__host_kernel rdna__host_twin(int manifest_index);
const char *rdna__host_isa(void); /* "baseline", "avx2", "avx512"; "none" */

/* Twin for one instruction set, or NULL when this processor or the build lacks it. */
rdna__host_kernel rdna__host_twin_for(const char *isa, int manifest_index);

/* Declares a case maker and begins its definition: RDNA_CASE_MAKER(rdna__fill_case) { ... } */
#define RDNA_CASE_MAKER(maker)                                                                                  \
  rdna_status maker(const rdna__kernel_info *kernel, rdna__random *random, int n, rdna__kernel_case *out_case); \
  rdna_status maker(const rdna__kernel_info *kernel, rdna__random *random, int n, rdna__kernel_case *out_case)

/* Adds a buffer to a case and returns its zeroed storage for the caller to fill (|count| values), or NULL when
 * out of memory. */
void *rdna__case_add(rdna__kernel_case *kernel_case, rdna__buffer_role role, rdna_dtype dtype, int64_t count,
                     uint32_t args_offset);
void rdna__case_tolerance(rdna__kernel_case *kernel_case, double absolute,
                          double relative); /* of the last buffer added */
/* Marks the gaps of the last buffer added, between |rows| rows of |cols| values every |stride| values: they must keep
 * their poison. */
rdna_status rdna__case_guard_rows(rdna__kernel_case *kernel_case, int64_t rows, int64_t cols, int64_t stride);
rdna_status rdna__case_no_memory(const rdna__kernel_case *kernel_case); /* returns the failure: out of memory */
void rdna__case_free(rdna__kernel_case *kernel_case);

typedef struct rdna__case_result {
  bool passed;
  char message[256]; /* the first difference: buffer, index, got, want */
  double worst;      /* largest error over its bound */
} rdna__case_result;

/* Runs the case on |device| and on a host twin with guard zones and poison, and compares every buffer. A host
 * device, which runs the best twin, is compared with the baseline one. */
rdna_status rdna__case_run(rdna_device *device, const rdna__kernel_info *kernel, const rdna__kernel_case *kernel_case,
                           rdna__case_result *out_result);
/* The same for the host twin of |isa| against the baseline one, on this thread and without a device.
 * RDNA_UNSUPPORTED when this processor lacks |isa|. */
rdna_status rdna__case_run_isa(const char *isa, const rdna__kernel_info *kernel, const rdna__kernel_case *kernel_case,
                               rdna__case_result *out_result);

#endif
