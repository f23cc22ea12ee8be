// The only file that is compiled once for each soname.
#include "hip/hip.h"

const int emu_hip_major = EMU_HIP_MAJOR;
