// Floats of 8 and 4 bits. Those of 8 with a mantissa librdna converts and multiplies, and has no other operators for:
// those that take them describe them by what is here, and to all others they are a type that librdna lacks. E8M0, the
// powers of two that scale blocks, and pairs of E2M1 are bytes to it, which are taken apart here.
#pragma once

#include "tensor.h"

namespace rdna_torch {

// dtype_of(), and the 8-bit floats.
inline std::optional<rdna_dtype> stored_dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat8_e4m3fn:
      return RDNA_F8_E4M3FN;
    case at::kFloat8_e5m2:
      return RDNA_F8_E5M2;
    case at::kFloat8_e4m3fnuz:
      return RDNA_F8_E4M3FNUZ;
    case at::kFloat8_e5m2fnuz:
      return RDNA_F8_E5M2FNUZ;
    default:
      return dtype_of(type);
  }
}

// describe(), and of 8-bit floats; up to RDNA_MAX_RANK dimensions.
inline rdna_tensor describe_stored(const at::Tensor &t) {
  if (!at::isFloat8Type(t.scalar_type())) return describe(t);
  rdna_tensor r = describe(t.view(at::kByte));
  r.dtype = *stored_dtype_of(t.scalar_type());
  return r;
}

// E8M0, and pairs of E2M1 in a byte, the first in the lower half: not in every release of PyTorch.
bool is_e8m0(at::ScalarType type);
bool is_pair_of_e2m1(at::ScalarType type);

// f32 of E8M0, whose 255 is NaN, and E8M0 of f32, rounded to the nearest power without its sign.
at::Tensor e8m0_values(const at::Tensor &powers);
at::Tensor e8m0_of(const at::Tensor &values, at::ScalarType type);
// f32, twice as many as there are bytes along the dimension whose stride is 1.
at::Tensor e2m1_values(const at::Tensor &pairs);

}  // namespace rdna_torch
