// What sparse tensors have of their own on rdna; ops/sparse.cpp registers it, and the CPU's for the rest.
#pragma once

#include <torch/library.h>

#include <optional>

#include "native.h"

namespace rdna_torch {

void add_coo_forms(torch::Library &m);
void add_coo_products(torch::Library &m);
void add_compressed_products(torch::Library &m);
void add_coo_pairs(torch::Library &m);

// The places of entries as one number each, of the sizes of the first dimensions: (entries) of (dimensions, entries).
at::Tensor flat_places(const at::Tensor &indices, at::IntArrayRef sizes);
// Whether values of that type stay so times the number: of integers no fractions, of reals no complex numbers, which
// PyTorch refuses or cuts off.
inline bool keeps(at::ScalarType type, const at::Scalar &by) { return c10::canCast(by.type(), type); }
// The row of each of |count| entries, of where rows start.
at::Tensor rows_of(const at::Tensor &starts, int64_t count);

// Entries of a matrix of m rows and n columns. Of those that are in the order of rows, |starts| says where each begins.
struct Entries {
  int64_t m, n;
  at::Tensor rows, columns, values;
  at::Tensor starts;
  int64_t count() const { return values.size(0); }
};
// Nothing of what is no matrix of single values.
std::optional<Entries> entries_of(const at::Tensor &t);
void sort_rows(Entries &e);

// The product of two sparse matrices, by coordinates if both are, else in compressed rows; undefined where that is not
// for these.
at::Tensor sparse_product(const at::Tensor &a, const at::Tensor &b);
// Of tensors by coordinates whose sizes and split into sparse and dense dimensions are the same.
bool same_places(const at::Tensor &a, const at::Tensor &b);
// What |t| has at flat places, (count, dense dimensions), zeros where it has no entry.
at::Tensor values_where(const at::Tensor &t, const at::Tensor &places);
// Those times |by|, zeros where |t| has no entry, whatever |by| is there.
at::Tensor products_where(const at::Tensor &by, const at::Tensor &t, const at::Tensor &places);
at::Tensor places_of(const at::Tensor &t);

}  // namespace rdna_torch
