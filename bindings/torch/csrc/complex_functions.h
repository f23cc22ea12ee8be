// Functions of complex numbers that have no kernel of their own: of their parts, by functions of reals, and by
// functions that have one.
#pragma once

#include <ATen/core/Tensor.h>

#include "rdna/op/special.h"

namespace rdna_torch {

// The inverse trigonometric and hyperbolic ones; of others an undefined tensor.
at::Tensor complex_special(rdna_special function, const at::Tensor &z);
at::Tensor complex_expm1(const at::Tensor &z);
at::Tensor complex_log1p(const at::Tensor &z);
at::Tensor complex_sigmoid(const at::Tensor &z);
at::Tensor complex_sinc(const at::Tensor &z);
at::Tensor complex_logaddexp(const at::Tensor &a, const at::Tensor &b);

// x along |dim|, each value joined by |f| with all before it.
at::Tensor scanned(const at::Tensor &x, int64_t dim, at::Tensor (*f)(const at::Tensor &, const at::Tensor &));

}  // namespace rdna_torch
