#include "tensor.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/view_as_real.h>

#include "rdna/op/movement.h"

namespace rdna_torch {

std::optional<rdna_dtype> dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return RDNA_F32;
    case at::kHalf:
      return RDNA_F16;
    case at::kBFloat16:
      return RDNA_BF16;
    case at::kDouble:
      return RDNA_F64;
    case at::kChar:
      return RDNA_I8;
    case at::kByte:
      return RDNA_U8;
    case at::kShort:
      return RDNA_I16;
    case at::kInt:
      return RDNA_I32;
    case at::kLong:
      return RDNA_I64;
    case at::kBool:
      return RDNA_BOOL;
    default:
      return std::nullopt;
  }
}

rdna_tensor describe(const at::Tensor &t) {
  TORCH_CHECK(t.device().type() == kRdna, "expected a tensor on rdna, got one on ", t.device());
  const auto dtype = dtype_of(t.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(dtype, "rdna has no operators on values of type ", t.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(t.dim() <= RDNA_MAX_RANK, "rdna's operators take up to ", RDNA_MAX_RANK,
                              " dimensions, got ", t.dim());
  rdna_tensor r{};
  r.data = t.mutable_data_ptr();
  r.dtype = *dtype;
  r.rank = static_cast<int>(t.dim());
  for (int i = 0; i < r.rank; i++) {
    r.shape[i] = t.size(i);
    r.stride[i] = t.stride(i);
  }
  return r;
}

at::Tensor below_bits(const at::Tensor &t) {
  at::Tensor below = t.is_conj() ? at::_conj(t) : t;
  return below.is_neg() ? at::_neg_view(below) : below;
}
rdna_tensor line(const at::Tensor &t) {
  const int64_t n = t.numel();
  return rdna_tensor_contiguous(t.mutable_data_ptr(), *dtype_of(t.scalar_type()), 1, &n);
}

rdna_tensor describe_pairs(const at::Tensor &t) { return describe(at::view_as_real(below_bits(t))); }

at::Tensor make(at::IntArrayRef shape, at::ScalarType type, const at::Tensor &like) {
  return at::empty(shape, at::TensorOptions().dtype(type).device(like.device()));
}

void copy_values(const at::Tensor &x, const at::Tensor &out) {
  const rdna_tensor from = describe(x), to = describe(out);
  check(rdna_op_copy(stream_of(out), &from, &to));
}

at::Tensor apart(const at::Tensor &t, const at::Tensor &written) {
  return t.numel() && t.storage().data() == written.storage().data() ? t.clone() : t;
}

bool spoils(const rdna_tensor &out, const rdna_tensor &in) {
  if (!rdna_tensor_overlap(&out, &in)) return false;
  bool same = out.data == in.data && out.rank == in.rank &&
              rdna_dtype_block_bytes(out.dtype) == rdna_dtype_block_bytes(in.dtype);
  for (int i = 0; same && i < out.rank; i++)
    same = out.shape[i] == in.shape[i] && (out.shape[i] == 1 || out.stride[i] == in.stride[i]);
  return !same;
}

at::Tensor converted(const at::Tensor &x, at::ScalarType type) {
  if (x.scalar_type() == type) return x;
  at::Tensor out = make(x.sizes(), type, x);
  copy_values(x, out);
  return out;
}

rdna_scalar scalar_of(const at::Scalar &s, at::ScalarType type) {
  int64_t whole = 0;
  if (at::isFloatingType(type))
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "rdna", [&] { (void)s.to<scalar_t>(); });
  else
    AT_DISPATCH_INTEGRAL_TYPES_AND(at::kBool, type, "rdna", [&] { whole = static_cast<int64_t>(s.to<scalar_t>()); });
  return at::isFloatingType(type) ? rdna_scalar_real(s.toDouble()) : rdna_scalar_integer(whole);
}

}  // namespace rdna_torch
