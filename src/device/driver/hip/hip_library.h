/* Where AMD's HIP runtime is on this machine. */
#ifndef RDNA_DEVICE_DRIVER_HIP_HIP_LIBRARY_H
#define RDNA_DEVICE_DRIVER_HIP_HIP_LIBRARY_H

#include "base/status.h"
#include "device/driver/library.h"

/* Opens the HIP runtime, the first that loads of:
 *   1. RDNA_HIP_LIBRARY, and then nothing else (with RDNA_EMULATE it is the path of the emulator);
 *   2. with RDNA_EMULATE: librdna_emulator.so beside this library or program, and then nothing else;
 *   3. one that the process has already (PyTorch's): two runtimes in one process crash;
 *   4. Python wheels: _rocm_sdk_core/lib, then torch/lib, in the site-packages around this library, around the
 *      program and in $VIRTUAL_ENV. Wheels hold only SONAME files, so the unversioned name does not exist there;
 *   5. $ROCM_PATH/lib, /opt/rocm/lib, /opt/rocm/core-X/lib, /opt/rocm-X/lib, newest first;
 *   6. libamdhip64.so.7, .6, .5 through the dynamic linker;
 *   7. any libamdhip64.so.N in the usual library folders, highest number first.
 * Where the process shows an LLVM (rdna__library_meets_llvm), 4 to 7 are looked for only if the kernel has a driver
 * for a card. RDNA_UNAVAILABLE with what was looked for and what to do. */
rdna_status rdna__hip_library_open(rdna__library *library);

/* Opens the emulator alone, at the places of 1 and 2. |asked_by| starts the sentence of a failure. */
rdna_status rdna__hip_library_open_emulator(rdna__library *library, const char *asked_by);

#endif
