#pragma once

namespace rdna_torch {

// From here on PyTorch reads "cuda" and "cuda:1" as rdna's devices, and calls those by that name: device.type,
// str(device). "rdna" is read as before. Raises where this build of PyTorch cannot be taught; nothing has changed then.
// For good: what has seen one name would not know the other.
void as_cuda();

}  // namespace rdna_torch
