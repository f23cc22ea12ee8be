// From at::Tensor to rdna_tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "device.h"
#include "rdna/op/complex.h"
#include "rdna/scalar.h"
#include "rdna/tensor.h"

namespace rdna_torch {

// librdna's type for the values, or nothing where it has none (complex, unsigned of 16 bits and more, fp8).
std::optional<rdna_dtype> dtype_of(at::ScalarType type);
inline bool has_dtype(at::ScalarType type) { return dtype_of(type).has_value(); }

// The three that every operator of neural networks has.
inline bool is_float(at::ScalarType t) { return t == at::kFloat || t == at::kHalf || t == at::kBFloat16; }
inline bool is_real(at::ScalarType t) { return is_float(t) || t == at::kDouble; }
inline bool is_complex(at::ScalarType t) { return t == at::kComplexFloat || t == at::kComplexDouble; }
inline bool is_integer(at::ScalarType t) { return at::isIntegralType(t, /*includeBool=*/true) && has_dtype(t); }
// What integers become where a function is of floats.
inline at::ScalarType default_type() { return c10::typeMetaToScalarType(c10::get_default_dtype()); }

// A view of |t|'s memory with its own shape and strides. Raises for a type or rank that librdna has no name for: ask
// describable() first where the fallback should take over.
rdna_tensor describe(const at::Tensor &t);
inline bool describable(const at::Tensor &t) { return has_dtype(t.scalar_type()) && t.dim() <= RDNA_MAX_RANK; }

// The memory of a dense tensor in its order, whichever dimension is fastest: for what does not care, as optimizers, as
// long as all of a parameter's tensors lie alike.
rdna_tensor line(const at::Tensor &t);

// A complex tensor as pairs of reals in one more dimension, as they lie below lazy conjugation and negation.
rdna_tensor describe_pairs(const at::Tensor &t);
at::Tensor below_bits(const at::Tensor &t);

// An optional operand: NULL when undefined.
class Operand {
 public:
  explicit Operand(const at::Tensor &t) : there_(t.defined()) {
    if (there_) tensor_ = describe(t);
  }
  operator const rdna_tensor *() const { return there_ ? &tensor_ : nullptr; }

 private:
  bool there_;
  rdna_tensor tensor_{};
};

// A temporary on |like|'s device.
at::Tensor make(at::IntArrayRef shape, at::ScalarType type, const at::Tensor &like);
inline at::Tensor make_like(const at::Tensor &like) { return make(like.sizes(), like.scalar_type(), like); }

// out = x, converted and broadcast, on the device; both are rdna tensors with types that librdna has.
void copy_values(const at::Tensor &x, const at::Tensor &out);
// |t| apart from what is about to be written: a copy where they share memory.
at::Tensor apart(const at::Tensor &t, const at::Tensor &written);
// Whether writing |out| changes values of |in| that may still have to be read: they share memory, and not each value of
// one with the same value of the other.
bool spoils(const rdna_tensor &out, const rdna_tensor &in);
// x with its values as |type|, contiguous or not.
at::Tensor converted(const at::Tensor &x, at::ScalarType type);
// x in what is computed in: f64 as it is, all else as f32.
inline at::Tensor wide(const at::Tensor &x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

inline rdna_complex complex_of(const at::Scalar &s) {
  const c10::complex<double> v = s.toComplexDouble();
  return {v.real(), v.imag()};
}
inline rdna_scalar scalar_of(const at::Scalar &s) {
  return s.isFloatingPoint() ? rdna_scalar_real(s.toDouble())
         : s.isBoolean()     ? rdna_scalar_integer(s.toBool())
                             : rdna_scalar_integer(s.toLong());
}

// |s| as a value of |type|; raises where the type does not hold it, as PyTorch does.
rdna_scalar scalar_of(const at::Scalar &s, at::ScalarType type);

}  // namespace rdna_torch
