// Memory of other libraries' tensors.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace rdna_torch {

// Makes the tensor in a DLPack capsule, of CUDA's or ROCm's memory, one of the rdna device with that memory. Raises
// where there is none.
void adopt_dlpack(pybind11::object capsule);

}  // namespace rdna_torch
