// torch.distributed among rdna devices.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace rdna_torch {

// Adds make_process_group to the module, where PyTorch was built with torch.distributed.
void define_process_group(pybind11::module &m);

}  // namespace rdna_torch
