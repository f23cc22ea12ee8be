// Products of matrices.
#include <ATen/Functions.h>

#include <algorithm>

#include "native.h"
#include "rdna/op/complex.h"
#include "rdna/op/gemm.h"

namespace rdna_torch {
namespace {

// A matrix (or batch of them) that rdna_op_gemm can read as it lies, or a contiguous copy.
at::Tensor readable(const at::Tensor &t) {
  const int64_t r = t.stride(-2), c = t.stride(-1);
  const bool rows = c == 1 && r >= t.size(-1), columns = r == 1 && c >= t.size(-2);
  return rows || columns ? t : t.contiguous();
}

// The same of complex numbers, of which a and b may be conjugated lazily.
void complex_product(const at::Scalar &alpha, const at::Tensor &a, const at::Tensor &b, const at::Scalar &beta,
                     const at::Tensor &c) {
  const at::Tensor left = a.is_neg() ? a.resolve_neg() : a, right = b.is_neg() ? b.resolve_neg() : b;
  const bool add = !beta.equal(0);
  if (add && !beta.equal(1)) c.mul_(beta);
  const rdna_tensor x = describe_pairs(left), y = describe_pairs(right), z = describe_pairs(c);
  check(rdna_op_complex_gemm(stream_of(c), complex_of(alpha), &x, left.is_conj(), &y, right.is_conj(), add, &z));
}

bool is_integer(at::ScalarType type) {
  return type == at::kByte || type == at::kChar || type == at::kShort || type == at::kInt || type == at::kLong;
}

// The product of integers modulo 2^64. Numbers of more than 16 bits are sums of digits of 16, the last of which has the
// sign; f64 holds sums of 2^20 products of those, and what is beyond the 4 digits of the result is not computed:
//
//     digit s of the result, not yet carried: a_0 b_s + … + a_s b_0 = [a_0 … a_s] [b_s; …; b_0], one product
at::Tensor integer_product(const at::Tensor &a, const at::Tensor &b) {
  constexpr int64_t kMost = 1 << 18;
  const int64_t k = a.size(-1);
  const int digits = std::max(static_cast<int>(a.element_size()) / 2, 1);
  std::vector<int64_t> shape = a.sizes().vec();
  shape.back() = b.size(-1);
  const at::Tensor sum = at::zeros(shape, a.options().dtype(at::kLong));
  auto digit = [&](const at::Tensor &x, int i) {
    const at::Tensor high = i ? at::__rshift__(x, 16 * i) : x;
    return (i + 1 < digits ? at::bitwise_and(high, 0xffff) : high).to(at::kDouble);
  };
  for (int64_t begin = 0; begin < k; begin += kMost) {
    const int64_t count = std::min(kMost, k - begin);
    std::vector<at::Tensor> left, right;
    for (int s = 0; s < digits; s++) {
      left.push_back(digit(a.narrow(-1, begin, count), s));
      right.insert(right.begin(), digit(b.narrow(-2, begin, count), s));
      const at::Tensor share = at::matmul(at::cat(left, -1), at::cat(right, -2)).to(at::kLong);
      sum.add_(share.mul_(int64_t{1} << 16 * s));
    }
  }
  return sum;
}

// c = alpha a b + beta c + bias, all of rank 2 or all of rank 3, c with rows that are dense.
void product(const at::Scalar &by, const at::Tensor &a, const at::Tensor &b, const at::Scalar &keep,
             const at::Tensor &bias, const at::Tensor &c) {
  if (c.numel() == 0) return;
  if (c.is_complex()) return complex_product(by, a, b, keep, c);
  if (is_integer(c.scalar_type())) {
    const at::Tensor value = integer_product(a, b).mul_(by);
    if (!keep.equal(0)) value.add_(c.to(at::kLong), keep);
    if (bias.defined()) value.add_(bias);
    c.copy_(value);
    return;
  }
  const double alpha = by.toDouble(), beta = keep.toDouble();
  const at::Tensor left = readable(a), right = readable(b);
  const bool narrow = static_cast<float>(alpha) == alpha && static_cast<float>(beta) == beta;
  if (!narrow && c.scalar_type() == at::kDouble) {  // librdna's factors are f32
    const at::Tensor plain = make_like(c);
    product(1, a, b, 0, {}, plain);
    if (beta == 0)
      c.zero_();
    else
      c.mul_(beta);
    c.add_(plain, alpha);
    if (bias.defined()) c.add_(bias);
    return;
  }
  const rdna_tensor x = describe(left), y = describe(right), z = describe(c);
  check(rdna_op_gemm(stream_of(c), static_cast<float>(alpha), &x, &y, static_cast<float>(beta), Operand(bias), &z));
}

bool supported(std::initializer_list<at::Tensor> tensors) {
  const at::ScalarType type = tensors.begin()->scalar_type();
  if (!is_real(type) && !is_complex(type) && !is_integer(type)) return false;
  for (const at::Tensor &t : tensors)
    if (t.scalar_type() != type || t.device() != tensors.begin()->device()) return false;
  return true;
}

// Factors of integers are integers; PyTorch has the words where they are not.
bool factors_fit(const at::Tensor &self, const at::Scalar &beta, const at::Scalar &alpha) {
  return !is_integer(self.scalar_type()) || (beta.isIntegral(false) && alpha.isIntegral(false));
}

void check_matrices(const at::Tensor &a, const at::Tensor &b) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2, "expected two matrices, got ", a.dim(), "-D and ", b.dim(), "-D tensors");
  TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1), " and ",
              b.size(0), "x", b.size(1), ")");
}

bool mm(Call &call) {  // self, mat2, out
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  if (!supported({a, b})) return false;
  check_matrices(a, b);
  Output out(call.output(), {a.size(0), b.size(1)}, a.scalar_type(), a);
  product(1, a, b, 0, {}, out.get());
  return call.give(out.finish());
}

// What is added is a bias where it is one row, else it goes into the result first.
bool add_product(Call &call, const at::Tensor &self, const at::Tensor &a, const at::Tensor &b, at::IntArrayRef shape,
                 const at::Scalar &beta, const at::Scalar &alpha) {
  Output out(call.output(), shape, a.scalar_type(), a);
  const at::Tensor &c = out.get();
  if (c.numel() == 0) return call.give(out.finish());
  if (beta.equal(0)) {
    self.expand(shape);  // refused where it does not fit, though it is not read
    product(alpha, a, b, 0, {}, c);
  } else if (beta.equal(1) && !c.is_complex() && self.dim() == 1 && self.size(0) == shape.back() &&
             self.is_contiguous() && self.storage().data() != c.storage().data()) {
    product(alpha, a, b, 0, self, c);
  } else {
    if (!self.is_same(c)) c.copy_(self.expand(shape));
    product(alpha, a, b, beta, {}, c);
  }
  return call.give(out.finish());
}

bool addmm(Call &call) {  // self, mat1, mat2, beta, alpha, out
  const at::Tensor self = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  if (!supported({a, b, self}) || !factors_fit(self, call.scalar(3), call.scalar(4))) return false;
  check_matrices(a, b);
  return add_product(call, self, a, b, {a.size(0), b.size(1)}, call.scalar(3), call.scalar(4));
}

void check_batches(const at::Tensor &a, const at::Tensor &b) {
  TORCH_CHECK(a.dim() == 3 && b.dim() == 3, "batch1 and batch2 must be 3D tensors, got ", a.dim(), "-D and ", b.dim(),
              "-D");
  TORCH_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1),
              "Expected size for first two dimensions of batch2 tensor to be: [", a.size(0), ", ", a.size(2),
              "] but got: [", b.size(0), ", ", b.size(1), "].");
}

bool bmm(Call &call) {  // self, mat2, out
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  if (!supported({a, b})) return false;
  check_batches(a, b);
  Output out(call.output(), {a.size(0), a.size(1), b.size(2)}, a.scalar_type(), a);
  product(1, a, b, 0, {}, out.get());
  return call.give(out.finish());
}

bool baddbmm(Call &call) {  // self, batch1, batch2, beta, alpha, out
  const at::Tensor self = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  if (!supported({a, b, self}) || !factors_fit(self, call.scalar(3), call.scalar(4))) return false;
  check_batches(a, b);
  const std::vector<int64_t> shape{a.size(0), a.size(1), b.size(2)};
  Output out(call.output(), shape, a.scalar_type(), a);
  if (out.get().numel() == 0) return call.give(out.finish());
  if (!call.scalar(3).equal(0) && !self.is_same(out.get())) out.get().copy_(self.expand(shape));
  product(call.scalar(4), a, b, call.scalar(3), {}, out.get());
  return call.give(out.finish());
}

bool addmv(Call &call) {  // self, mat, vec, beta, alpha, out
  const at::Tensor self = call.tensor(0), a = call.tensor(1), x = call.tensor(2);
  if (!supported({a, x, self}) || a.dim() != 2 || x.dim() != 1) return false;
  if (!factors_fit(self, call.scalar(3), call.scalar(4))) return false;
  TORCH_CHECK(a.size(1) == x.size(0), "size mismatch, got input (", a.size(0), "x", a.size(1), "), vec (", x.size(0),
              ")");
  Output out(call.output(), {a.size(0)}, a.scalar_type(), a);
  if (out.get().numel() == 0) return call.give(out.finish());
  if (!call.scalar(3).equal(0) && !self.is_same(out.get())) out.get().copy_(self.expand({a.size(0)}));
  product(call.scalar(4), a, x.contiguous().unsqueeze(1), call.scalar(3), {}, out.get().unsqueeze(1));
  return call.give(out.finish());
}

bool dot_of(Call &call, const at::Tensor &a, const at::Tensor &b) {
  if (!supported({a, b}) || a.dim() != 1 || b.dim() != 1 || a.numel() != b.numel()) return false;
  const at::Tensor out = make({}, a.scalar_type(), a);
  product(1, a.contiguous().unsqueeze(0), b.contiguous().unsqueeze(1), 0, {}, out.view({1, 1}));
  return call.give(out);
}

bool dot(Call &call) { return dot_of(call, call.tensor(0), call.tensor(1)); }  // self, tensor
bool vdot(Call &call) { return dot_of(call, call.tensor(0).conj(), call.tensor(1)); }

// Products of matrices whose result is of a type that is given: that of the factors, or f32. What f16 and bf16 hold is
// the same in f32.
void check_result(const at::Tensor &a, const at::Tensor &b, at::ScalarType type) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected both matrices to have the same dtype, got ",
              a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK(type == a.scalar_type() || (type == at::kFloat && is_float(a.scalar_type())),
              "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs, got ", type, " for ",
              a.scalar_type());
}

bool give_as(Call &call, const at::Tensor &value) {
  const at::Tensor given = call.output();
  TORCH_CHECK(!given.defined() || given.scalar_type() == value.scalar_type(), "out must have the dtype of out_dtype, ",
              value.scalar_type(), ", but has ", given.scalar_type());
  return give_or_write(call, value);
}

bool product_as(Call &call) {  // self, mat2, out_dtype, [out!]
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  const at::ScalarType type = *call.type(2);
  check_result(a, b, type);
  return give_as(call, at::matmul(a.to(type), b.to(type)));
}
bool mm_as(Call &call) {
  check_matrices(call.tensor(0), call.tensor(1));
  return product_as(call);
}
bool bmm_as(Call &call) {
  check_batches(call.tensor(0), call.tensor(1));
  return product_as(call);
}

// self, mat1, mat2, out_dtype, beta, alpha, [out!]
bool add_product_as(Call &call, at::Tensor (*add)(const at::Tensor &, const at::Tensor &, const at::Tensor &,
                                                  const at::Scalar &, const at::Scalar &)) {
  const at::Tensor self = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  const at::ScalarType type = *call.type(3);
  check_result(a, b, type);
  TORCH_CHECK(self.scalar_type() == type || self.scalar_type() == a.scalar_type(),
              "self dtype must match either out_dtype or mat1 dtype, got ", self.scalar_type());
  return give_as(call, add(self.to(type), a.to(type), b.to(type), call.scalar(4), call.scalar(5)));
}
bool addmm_as(Call &call) { return add_product_as(call, at::addmm); }
bool baddbmm_as(Call &call) { return add_product_as(call, at::baddbmm); }

const Single singles[] = {
    {"mm.dtype", mm_as},
    {"mm.dtype_out", mm_as},
    {"bmm.dtype", bmm_as},
    {"bmm.dtype_out", bmm_as},
    {"addmm.dtype", addmm_as},
    {"addmm.dtype_out", addmm_as},
    {"baddbmm.dtype", baddbmm_as},
    {"baddbmm.dtype_out", baddbmm_as},
    {"mm.out", mm},
    {"addmm.out", addmm},
    {"bmm.out", bmm},
    {"baddbmm.out", baddbmm},
    {"addmv.out", addmv},
    {"dot", dot},
    {"vdot", vdot},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add_new_forms(m, singles); }

}  // namespace
}  // namespace rdna_torch
