// What sparse tensors have of their own on rdna; ops/sparse.cpp registers it, and the CPU's for the rest.
#pragma once

#include <torch/library.h>

#include "native.h"

namespace rdna_torch {

void add_coo_forms(torch::Library &m);
void add_coo_products(torch::Library &m);
void add_compressed_products(torch::Library &m);

// The places of entries as one number each, of the sizes of the first dimensions: (entries) of (dimensions, entries).
at::Tensor flat_places(const at::Tensor &indices, at::IntArrayRef sizes);
// Whether values of that type stay so times the number: of integers no fractions, of reals no complex numbers, which
// PyTorch refuses or cuts off.
inline bool keeps(at::ScalarType type, const at::Scalar &by) { return c10::canCast(by.type(), type); }
// The row of each of |count| entries, of where rows start.
at::Tensor rows_of(const at::Tensor &starts, int64_t count);

}  // namespace rdna_torch
