// 8-bit floats, which librdna converts and multiplies, and has no other operators for: those that take them describe
// them by what is here, and to all others they are a type that librdna lacks.
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

}  // namespace rdna_torch
