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
// The row of each of |count| entries, of where rows start.
at::Tensor rows_of(const at::Tensor &starts, int64_t count);

}  // namespace rdna_torch
