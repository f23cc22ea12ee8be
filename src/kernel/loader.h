/* Finding the code object that fits a GPU.
 *
 * A pack serves its own target and the members of its family that run the same instructions (LLVM's "User Guide for
 * AMDGPU Backend", generic processors). For a relative the loader rewrites the machine in the ELF header and the
 * target's name in the metadata, since HIP compares both with the card. A PTX pack serves its own compute
 * capability and every later one; a family in it may have a second image, <family>.sm_90a, for one capability alone. */
#ifndef RDNA_KERNEL_LOADER_H
#define RDNA_KERNEL_LOADER_H

#include <stdbool.h>

#include "device/driver.h"
#include "kernel/pack.h"

typedef struct rdna__loader rdna__loader;

/* Finds and opens the pack for |arch|: in RDNA_KERNEL_PATH, else beside the program or library, else where it was
 * installed. RDNA_UNSUPPORTED: no pack fits; the sentence says which there are and what to do. */
rdna_status rdna__loader_open(const char *arch, rdna__code_format format, rdna__loader **out_loader);
void rdna__loader_close(rdna__loader *loader); /* NULL is fine */
const rdna__pack *rdna__loader_pack(const rdna__loader *loader);
/* True when the pack was built for another member of the family. */
bool rdna__loader_retargets(const rdna__loader *loader);
/* |family|'s code, ready for the driver's module_load; from any thread. Free it with free(). With |special| that for
 * the device's capability alone: RDNA_NOT_FOUND when there is none. */
rdna_status rdna__loader_image(const rdna__loader *loader, const char *family, bool special, void **out_image,
                               size_t *out_size);

/* Returns a hash of the images of |family| for the device, its special one included: other code has another. 0: the
 * pack has none. */
uint64_t rdna__loader_hash(const rdna__loader *loader, const char *family);

/* Visits every pack file on the search path, first places first; a name that an earlier place has is not visited
 * again. Stops at the first status that is not RDNA_OK and returns it. */
rdna_status rdna__loader_visit(rdna_status (*visit)(void *context, const char *path, const char *target),
                               void *context);

/* How well code for |target| runs on |arch|: 0 not at all, larger is better. */
int rdna__target_fitness(const char *target, const char *arch);
/* Returns which of the targets that are built fits |arch| best: "gfx1100" for gfx1103. NULL when none does. */
const char *rdna__target_for(const char *arch);
/* Rewrites a code object for |from| so that it says |to|. RDNA_BAD_DATA: not a code object for |from|.
 * RDNA_UNSUPPORTED: another family. */
rdna_status rdna__retarget(void *image, size_t size, const char *from, const char *to);

#endif
