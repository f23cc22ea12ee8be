// torch.profiler on rdna devices.
#pragma once

namespace rdna_torch {

// Tells PyTorch's profilers, once.
void register_profiler();

}  // namespace rdna_torch
