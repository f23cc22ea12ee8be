/* Device properties out of HIP's struct, whose layout has two versions in the field. */
#ifndef RDNA_DEVICE_DRIVER_HIP_HIP_PROPERTIES_H
#define RDNA_DEVICE_DRIVER_HIP_HIP_PROPERTIES_H

#include <stdbool.h>

#include "rdna/device.h"

/* R0000 is the struct of HIP 5, 792 bytes; R0600 that of HIP 6 and 7, 1,472 bytes. */
typedef enum rdna__hip_layout { RDNA__HIP_R0000, RDNA__HIP_R0600 } rdna__hip_layout;

/* Room for either and for what a later runtime may append; zero it before the call. */
enum { RDNA__HIP_PROPERTIES_BYTES = 4096 };

/* Reads |properties|. False when no target name ("gfx…") stands where this layout has it: then the struct is of
 * another layout and nothing was written. compute_units is still HIP's multiProcessorCount. */
bool rdna__hip_properties_read(const unsigned char properties[RDNA__HIP_PROPERTIES_BYTES], rdna__hip_layout layout,
                               rdna_device_info *out_info);

/* CUs from what HIP calls multiprocessors. HIP halves the number on gfx10 and later, where it counts WGPs (48 on an
 * RX 7900 XTX), unless GPU_ENABLE_WGP_MODE=0 (|wgp_mode| false). The kernel driver's count decides between the
 * two when there is one and it agrees with either; |kernel_driver_units| 0 means there is none.
 * Source: ROCm clr, rocclr/device/rocm/rocdevice.cpp (enableWgpMode_). */
int rdna__hip_compute_units(const char *arch, int multiprocessors, bool wgp_mode, int kernel_driver_units);

#endif
