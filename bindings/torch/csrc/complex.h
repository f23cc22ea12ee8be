// Functions of complex tensors, for operators that are made of others.
#pragma once

#include "rdna/op/complex.h"
#include "tensor.h"

namespace rdna_torch {

at::Tensor mapped(rdna_complex_map op, const at::Tensor &x);
// Its result is real.
at::Tensor measured(rdna_complex_measure op, const at::Tensor &x);

}  // namespace rdna_torch
