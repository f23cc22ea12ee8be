// Pointwise operators through PyTorch's TensorIterator: it broadcasts, promotes types, resizes and checks outputs,
// merges dimensions, and so gives librdna tensors of the lowest rank.
#pragma once

#include <ATen/TensorIterator.h>

#include <functional>
#include <optional>
#include <vector>

#include "tensor.h"

namespace rdna_torch {

enum class Promote {
  kSame,     // inputs to their common type, which the result has
  kFloat,    // integers to the default floating type first
  kCompare,  // inputs to their common type; the result is bool
  kMeasure,  // of complex inputs; the result is real, as the output that is given
};

// One input as librdna gets it: a tensor, or a number that is the same for all values (a CPU tensor of no dimensions).
// Complex ones are pairs of reals in one more dimension, as rdna/op/complex.h takes them.
struct Input {
  rdna_tensor tensor{};
  std::optional<rdna_scalar> number;
  rdna_complex complex{};  // |number|, where the type is complex
};

// The inputs and the output of one pointwise operator, converted to |type| and described.
struct Iteration {
  at::ScalarType type;  // in which it computes
  std::vector<Input> inputs;
  rdna_tensor out{};
  rdna_stream *stream = nullptr;
};

// Builds the iterator over |inputs| and |out| (which may be undefined), asks |supported| of the type in which it will
// compute, and calls |launch| unless there are no values. Returns the output, or nothing where |supported| says no or
// librdna has no such type or rank; then nothing was written.
std::optional<at::Tensor> iterate(const at::Tensor &out, std::initializer_list<at::Tensor> inputs, Promote promote,
                                  const std::function<bool(at::ScalarType)> &supported,
                                  const std::function<void(const Iteration &)> &launch);

// |s| as the 0-dimensional CPU tensor that takes part in type promotion as a Python number does.
at::Tensor number_tensor(const at::Scalar &s);

}  // namespace rdna_torch
