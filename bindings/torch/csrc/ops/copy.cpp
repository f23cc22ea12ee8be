// Copies: between host and device, between devices, between layouts and types on one device.
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_copy_from.h>
#include <torch/library.h>

#include "device.h"
#include "fallback.h"
#include "float8.h"
#include "memory.h"
#include "outside.h"
#include "rdna/op/cast.h"
#include "rdna/op/movement.h"
#include "read.h"
#include "tensor.h"

namespace rdna_torch {
namespace {

bool on_rdna(const at::Tensor &t) { return t.device().type() == kRdna; }

// Values that only move: any type is one of librdna's of the same size, and 16 bytes are two of 8. Nothing where the
// rank does not fit.
std::optional<rdna_tensor> as_bytes(const at::Tensor &t) {
  const size_t size = t.element_size();
  const int pair = size == 16;
  if (t.dim() + pair > RDNA_MAX_RANK) return std::nullopt;
  rdna_tensor r{};
  r.data = t.mutable_data_ptr();
  r.dtype = size == 1 ? RDNA_U8 : size == 2 ? RDNA_I16 : size == 4 ? RDNA_I32 : RDNA_I64;
  r.rank = static_cast<int>(t.dim()) + pair;
  for (int i = 0; i < t.dim(); i++) {
    r.shape[i] = t.size(i);
    r.stride[i] = t.stride(i) * (1 + pair);
  }
  if (pair) {
    r.shape[t.dim()] = 2;
    r.stride[t.dim()] = 1;
  }
  return r;
}

// One run of bytes that both hold in the same order.
bool same_dense(const at::Tensor &a, const at::Tensor &b) {
  return a.sizes().equals(b.sizes()) && a.strides().equals(b.strides()) && a.is_non_overlapping_and_dense();
}

// |src| with as many dimensions as |dst|, so that rank 9 and more can be copied slice by slice.
void copy_slices(const at::Tensor &src, const at::Tensor &dst);

// Same type, one device, no lazy bits.
void move_values(const at::Tensor &src, const at::Tensor &dst) {
  if (dst.numel() == 0) return;
  if (same_dense(src, dst)) {
    if (src.data_ptr() != dst.data_ptr())
      check(rdna_copy_on_device(stream_of(dst), dst.mutable_data_ptr(), src.data_ptr(), dst.nbytes()));
    return;
  }
  const auto from = as_bytes(src), to = as_bytes(dst);
  if (!from || !to) return copy_slices(src, dst);
  check(rdna_op_copy(stream_of(dst), &*from, &*to));
}

void copy_slices(const at::Tensor &src, const at::Tensor &dst) {
  for (int64_t i = 0; i < dst.size(0); i++) dst.select(0, i).copy_(src.select(0, i));
}

// Bytes that overlap: the values of |src| are needed until |dst| is written.
bool may_overlap(const at::Tensor &a, const at::Tensor &b) {
  return a.numel() && b.numel() && a.storage().data() == b.storage().data();
}

at::Tensor dense_on_device(const at::Tensor &t) {
  at::Tensor out = at::empty(t.sizes(), t.options());
  move_values(t, out);
  return out;
}

// Whether what is too large for E4M3FN becomes its largest value rather than NaN, which differs between versions of
// PyTorch.
bool e4m3fn_saturates() {
  static const bool saturates = static_cast<float>(c10::Float8_e4m3fn(1e6f)) == 448;
  return saturates;
}
void convert_saturating(const at::Tensor &src, const at::Tensor &dst) {
  const at::Tensor values = (is_float(src.scalar_type()) ? src : src.to(at::kFloat)).expand(dst.sizes()).contiguous();
  const at::Tensor codes = dst.is_contiguous() ? dst : at::empty(dst.sizes(), dst.options());
  const rdna_tensor from = describe(values.view({-1})), to = describe_stored(codes.view({-1}));
  check(rdna_op_cast_saturating(stream_of(dst), &from, &to));
  if (!codes.is_same(dst)) move_values(codes, dst);
}

void copy_on_device(const at::Tensor &given, const at::Tensor &dst) {
  at::Tensor src = given;
  if (src.is_same(dst)) return;
  if (src.scalar_type() == dst.scalar_type() && same_dense(src, dst) && src.data_ptr() == dst.data_ptr()) return;
  if (may_overlap(src, dst)) {
    at::Tensor apart = at::empty(src.sizes(), src.options());
    move_values(src, apart);
    src = apart;
  }
  if (src.scalar_type() == dst.scalar_type()) {
    if (src.device() == dst.device()) return move_values(src, dst);
    at::Tensor dense = src.is_non_overlapping_and_dense() ? src : [&] {
      CurrentDevice there(src.device().index());
      return dense_on_device(src);
    }();
    at::Tensor landed = same_dense(dense, dst) ? dst : at::empty_strided(dense.sizes(), dense.strides(), dst.options());
    synchronize(src.device().index());
    check(rdna_copy_peer(stream_of(landed), landed.mutable_data_ptr(), device(src.device().index()), dense.data_ptr(),
                         landed.nbytes()));
    if (!landed.is_same(dst)) move_values(landed, dst);
    return;
  }
  if (src.device() != dst.device()) {  // convert where the values are, then move
    at::Tensor same = at::empty(src.sizes(), src.options().dtype(dst.scalar_type()));
    copy_on_device(src, same);
    return copy_on_device(same, dst);
  }
  if (dst.numel() == 0) return;
  if (stored_dtype_of(src.scalar_type()) && stored_dtype_of(dst.scalar_type())) {
    if (dst.dim() > RDNA_MAX_RANK) return copy_slices(src, dst);
    if (dst.scalar_type() == at::kFloat8_e4m3fn && e4m3fn_saturates()) return convert_saturating(src, dst);
    const rdna_tensor from = describe_stored(src), to = describe_stored(dst);
    return check(rdna_op_copy(stream_of(dst), &from, &to));
  }
  if (src.is_complex() && dst.is_complex()) return copy_on_device(at::view_as_real(src), at::view_as_real(dst));
  if (src.is_complex() && has_dtype(dst.scalar_type())) return copy_on_device(at::view_as_real(src).select(-1, 0), dst);
  if (dst.is_complex() && has_dtype(src.scalar_type())) {
    at::Tensor parts = at::view_as_real(dst);
    copy_on_device(src, parts.select(-1, 0));
    parts.select(-1, 1).zero_();
    return;
  }
  if (is_e8m0(src.scalar_type())) return copy_on_device(e8m0_values(src.contiguous()), dst);
  if (is_e8m0(dst.scalar_type()) && (has_dtype(src.scalar_type()) || stored_dtype_of(src.scalar_type())))
    return copy_on_device(e8m0_of(src.to(at::kFloat), dst.scalar_type()), dst);
  count_fallback("aten::_copy_from");  // conversions that librdna does not have: unsigned of 16 bits and more
  dst.copy_(src.to(at::kCPU).to(dst.scalar_type()));
}

void copy_to_device(const at::Tensor &given, const at::Tensor &dst, bool non_blocking) {
  // As it lies, when it is one run of bytes; otherwise made so on the side where that is cheaper.
  at::Tensor src = given;
  if (src.scalar_type() != dst.scalar_type() && src.element_size() > dst.element_size())
    src = src.to(dst.scalar_type());
  if (!src.is_non_overlapping_and_dense()) src = src.contiguous();
  const bool lands = src.scalar_type() == dst.scalar_type() && same_dense(src, dst);
  at::Tensor landed =
      lands ? dst
            : at::empty_strided(src.sizes(), src.strides(), src.options().device(dst.device()).pinned_memory(false));
  rdna_stream *stream = stream_of(dst);
  if (src.nbytes() == 0) return;
  if (!non_blocking) about_to_wait();
  check(rdna_copy_to_device(stream, landed.mutable_data_ptr(), src.data_ptr(), src.nbytes()));
  if (non_blocking && is_pinned(src.data_ptr())) pinned_used(src.data_ptr(), stream);
  if (!lands) copy_on_device(landed, dst);
  if (non_blocking) return;
  // Pageable memory was read, but may not have arrived, and other streams may use |dst| from now on.
  check(rdna_stream_synchronize(stream));
  check_outside(dst.device().index());
}

void copy_to_host(const at::Tensor &given, const at::Tensor &dst, bool non_blocking) {
  at::Tensor src = given;
  if (!src.is_non_overlapping_and_dense()) src = dense_on_device(src);
  const bool lands = src.scalar_type() == dst.scalar_type() && same_dense(src, dst);
  at::Tensor landed = lands ? dst : at::empty_strided(src.sizes(), src.strides(), src.options().device(at::kCPU));
  rdna_stream *stream = stream_of(src);
  if (src.nbytes()) {
    if (!(lands && non_blocking && is_pinned(dst.data_ptr()))) about_to_wait();
    check(rdna_copy_to_host(stream, landed.mutable_data_ptr(), src.data_ptr(), src.nbytes()));
    if (lands && non_blocking && is_pinned(dst.data_ptr())) {
      pinned_used(dst.data_ptr(), stream);
    } else {
      check(rdna_stream_synchronize(stream));
      check_outside(src.device().index());
    }
  }
  if (!lands) dst.copy_(landed);
}

// A copy that conjugates, in one pass. False: not of these.
bool copy_conjugate(const at::Tensor &src, const at::Tensor &dst) {
  if (!on_rdna(src) || src.device() != dst.device() || !is_complex(src.scalar_type()) || may_overlap(src, dst) ||
      src.scalar_type() != dst.scalar_type() || src.dim() >= RDNA_MAX_RANK)
    return false;
  const rdna_tensor from = describe_pairs(src), to = describe_pairs(dst);
  check(rdna_op_complex_map(stream_of(dst), RDNA_COMPLEX_CONJ, &from, &to));
  return true;
}

at::Tensor copy_from(const at::Tensor &self, const at::Tensor &out, bool non_blocking) {
  const at::Tensor src = below_bits(self.sizes().equals(out.sizes()) ? self : self.expand(out.sizes()));
  const at::Tensor dst = below_bits(out);
  CurrentDevice here(on_rdna(dst) ? dst.device().index() : src.device().index());
  const bool conjugates = self.is_complex() && out.is_complex() && self.is_conj() != out.is_conj();
  const bool negates = self.is_neg() != out.is_neg();
  if (conjugates && !negates && copy_conjugate(src, dst)) return out;
  if (on_rdna(src) && on_rdna(dst)) {
    copy_on_device(src, dst);
  } else if (on_rdna(dst)) {
    TORCH_CHECK(src.device().is_cpu(), "copies to rdna come from rdna or the CPU, not ", src.device(),
                ": use .cpu() between");
    copy_to_device(src, dst, non_blocking);
  } else {
    TORCH_CHECK(dst.device().is_cpu(), "copies from rdna go to rdna or the CPU, not ", dst.device(),
                ": use .cpu() between");
    copy_to_host(src, dst, non_blocking);
  }
  // bits that one of the two has and the other has not
  if (conjugates) at::view_as_real(dst).select(-1, 1).neg_();
  if (negates) at::neg_(const_cast<at::Tensor &>(dst));
  return out;
}

at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &dst) {
  at::native::resize_output(dst, self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor &self) {
  TORCH_CHECK(self.numel() == 1, "a tensor with ", self.numel(), " values is not one number");
  at::Tensor host = at::empty({}, self.options().device(at::kCPU));
  copy_from(self.reshape({}), host, false);
  return host.item();
}

}  // namespace

void read(const at::Tensor &t, void *values) {
  rdna_stream *stream = stream_of(t);
  about_to_wait();
  check(rdna_copy_to_host(stream, values, t.data_ptr(), t.nbytes()));
  check(rdna_stream_synchronize(stream));
  check_outside(t.device().index());
}

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}
// copy_ resolves the lazy bits of its destination by cloning, which copies: without these it would never end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace
}  // namespace rdna_torch
