// Values of a tensor, where the host asks for them.
#pragma once

#include <ATen/core/Tensor.h>

namespace rdna_torch {

// Copies those of a dense |t| to |values| and waits for them; raises for indices that lay outside.
void read(const at::Tensor &t, void *values);

}  // namespace rdna_torch
