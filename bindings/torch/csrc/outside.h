// Indices that lie outside of what they index. They are on the device, where a call cannot look at them, so that
// librdna skips them and leaves a mark; the mark raises IndexError where the host next waits for the device.
#pragma once

#include <cstdint>

#include "device.h"

namespace rdna_torch {

// The word in which |name| leaves its mark on the device of |t|: page-locked host memory that the device writes to.
uint32_t *outside(const at::Tensor &t, const char *name);
// Raises for the marks of the device and takes them away. Call it when the work was waited for.
void check_outside(c10::DeviceIndex index);

}  // namespace rdna_torch
