// One value everywhere, ranges, triangles, masks, choices.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_real.h>

#include <cmath>

#include "iterate.h"
#include "native.h"
#include "rdna/memory.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"

namespace rdna_torch {
namespace {

// Fills what librdna can name; other types go to the CPU unless they are zeros all over.
bool set_all(const at::Tensor &self, const at::Scalar &value) {
  if (self.numel() == 0) return true;
  if (!value.isComplex() && describable(self)) {
    rdna_tensor out = describe(self);
    check(rdna_op_fill(stream_of(self), scalar_of(value, self.scalar_type()), &out));
    return true;
  }
  if (self.is_complex()) {
    if (self.is_conj()) return set_all(at::_conj(self), std::conj(value.toComplexDouble()));
    const at::Tensor parts = at::view_as_real(self);
    const c10::complex<double> v = value.toComplexDouble();
    return set_all(parts.select(-1, 0), v.real()) && set_all(parts.select(-1, 1), v.imag());
  }
  const bool zero = value.isComplex() ? value.toComplexDouble() == c10::complex<double>(0) : value.toDouble() == 0;
  if (!zero || !self.is_non_overlapping_and_dense()) return false;
  check(rdna_fill_bytes(stream_of(self), self.mutable_data_ptr(), 0, self.nbytes()));
  return true;
}

bool fill_scalar(Call &call) { return set_all(call.tensor(0), call.scalar(1)) && call.give(call.tensor(0)); }
bool zero(Call &call) { return set_all(call.tensor(0), 0) && call.give(call.tensor(0)); }
bool fill_tensor(Call &call) {
  const at::Tensor value = call.tensor(1);
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  const at::Tensor self = call.tensor(0);
  self.copy_(value.expand(self.sizes()));
  return call.give(self);
}

// As the CPU has it: infinity for 70000 in f16, which full() refuses, and no 300 in u8.
at::Tensor scalar_tensor(const at::Scalar &s, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool>) {
  const at::Tensor value = at::scalar_tensor(s, type, layout, at::kCPU, std::nullopt);
  return at::empty({}, value.options().device(device)).fill_(value.item());
}

bool arange(Call &call) {  // start, end, step, out
  const at::Tensor out = call.tensor(3);
  const at::Scalar start = call.scalar(0), end = call.scalar(1), step = call.scalar(2);
  const at::ScalarType type = out.scalar_type();
  if (!has_dtype(type) || type == at::kBool || start.isComplex()) return false;
  const bool real = at::isFloatingType(type);
  TORCH_CHECK(step.toDouble() != 0, "step must be nonzero");
  TORCH_CHECK_VALUE(type != at::kLong || step.toLong() != 0, "step must be nonzero");  // as the whole number that it is
  TORCH_CHECK(std::isfinite(start.toDouble()) && std::isfinite(end.toDouble()), "unsupported range: ", start.toDouble(),
              " -> ", end.toDouble());
  TORCH_CHECK((step.toDouble() > 0) == (end.toDouble() >= start.toDouble()) || end.toDouble() == start.toDouble(),
              "upper bound and lower bound inconsistent with step sign");
  double count;
  if (type == at::kLong) {  // bounds and step are whole numbers first; of other types, the result's size is theirs
    const int64_t sign = step.toLong() > 0 ? 1 : -1;
    count = static_cast<double>((end.toLong() - start.toLong() + step.toLong() - sign) / step.toLong());
  } else {
    count = std::ceil((end.toDouble() - start.toDouble()) / step.toDouble());
  }
  const int64_t n = static_cast<int64_t>(count);
  if (out.numel() != n) out.resize_({n});
  if (n == 0) return call.give(out);
  const at::Tensor flat = out.dim() == 1 ? out : out.reshape({-1});
  if (flat.data_ptr() != out.data_ptr()) return false;
  const rdna_tensor t = describe(flat);
  auto as = [&](const at::Scalar &s) {
    return real ? rdna_scalar_real(s.toDouble())
                : rdna_scalar_integer(s.isFloatingPoint() ? static_cast<int64_t>(s.toDouble()) : s.toLong());
  };
  check(rdna_op_arange(stream_of(out), as(start), as(step), &t));
  return call.give(out);
}

struct TriangleRow {
  const char *name;
  bool upper;
};

bool triangle(const TriangleRow &row, Call &call) {  // self, diagonal, out
  const at::Tensor x = call.tensor(0);
  if (is_complex(x.scalar_type()) && x.dim() >= 2) {
    const at::Tensor value = at::empty_like(x.resolve_conj()), from = at::view_as_real(x.resolve_conj());
    for (int64_t i : {0, 1}) {
      const at::Tensor part = from.select(-1, i);
      at::view_as_real(value).select(-1, i).copy_(row.upper ? at::triu(part, call.integer(1))
                                                            : at::tril(part, call.integer(1)));
    }
    Output out(call.output(), x.sizes(), x.scalar_type(), value, false);
    out.get().copy_(value);
    return call.give(out.finish());
  }
  if (!describable(x) || x.dim() < 2) return false;
  Output out(call.output(), x.sizes(), x.scalar_type(), x, false);
  if (x.numel() == 0) return call.give(out.finish());
  const at::Tensor apart = x.storage().data() == out.get().storage().data() ? make_like(x) : out.get();
  const rdna_tensor from = describe(x), to = describe(apart);
  check(rdna_op_triangle(stream_of(x), &from, row.upper, call.integer(1), &to));
  if (!apart.is_same(out.get())) out.get().copy_(apart);
  return call.give(out.finish());
}

const TriangleRow triangles[] = {{"tril.out", false}, {"triu.out", true}};

bool masked_fill(Call &call) {  // self, mask, value
  const at::Tensor self = call.tensor(0), mask = call.tensor(1);
  if (mask.scalar_type() != at::kBool || mask.device() != self.device()) return false;
  if (is_complex(self.scalar_type()) && !self.is_conj() && self.dim() < RDNA_MAX_RANK) {
    const at::Tensor parts = at::view_as_real(self);
    const c10::complex<double> v = call.scalar(2).toComplexDouble();
    parts.select(-1, 0).masked_fill_(mask, v.real());
    parts.select(-1, 1).masked_fill_(mask, v.imag());
    return call.give(self);
  }
  if (call.scalar(2).isComplex()) return false;
  if (!describable(self) || self.dim() < mask.dim()) return false;
  at::Scalar v = call.scalar(2);
  if (!at::isFloatingType(self.scalar_type()) && v.isFloatingPoint()) {
    const double whole = v.toDouble();  // PyTorch has the words for what does not fit
    if (self.scalar_type() == at::kBool || !(whole >= 0 && whole <= 127 && whole == std::floor(whole))) return false;
    v = static_cast<int64_t>(whole);
  }
  if (self.numel() == 0) return call.give(self);
  const rdna_tensor condition = describe(mask), out = describe(self);
  check(rdna_op_masked_fill(stream_of(self), &condition, scalar_of(v, self.scalar_type()), &out, &out));
  return call.give(self);
}

// By the parts.
bool complex_where(Call &call, at::ScalarType type) {  // condition, self, other
  const at::Tensor condition = call.tensor(0);
  const c10::Device place(kRdna, call.device());
  auto parts = [&](const at::Tensor &t) { return at::view_as_real(t.to(place, type).resolve_conj()); };
  for (const at::Tensor &t : {condition, call.tensor(1), call.tensor(2)})
    if (t.dim() >= RDNA_MAX_RANK || (t.device() != place && t.dim() > 0)) return false;
  const at::Tensor chosen = at::where(condition.to(place).unsqueeze(-1), parts(call.tensor(1)), parts(call.tensor(2)));
  const at::Tensor value = at::view_as_complex(chosen.contiguous()), given = call.output();
  if (!given.defined()) return call.give(value);
  Output out(given, value.sizes(), type, value, false);
  out.get().copy_(value);
  return call.give(out.finish());
}

bool where(Call &call) {  // condition, self, other
  at::Tensor condition = call.tensor(0);
  const at::Tensor a = call.tensor(1), b = call.tensor(2);
  const at::ScalarType type = at::result_type(a, b);
  if (is_complex(type)) return complex_where(call, type);
  if (!has_dtype(type) || !has_dtype(a.scalar_type()) || !has_dtype(b.scalar_type())) return false;
  if (condition.scalar_type() != at::kBool) return false;
  const c10::Device place(kRdna, call.device());
  const std::vector<int64_t> shape = at::infer_size(at::infer_size(condition.sizes(), a.sizes()), b.sizes());
  if (shape.size() > RDNA_MAX_RANK) return false;
  auto here = [&](const at::Tensor &t) {
    if (t.device() == place)
      return converted(t, t.scalar_type() == at::kBool && t.is_same(condition) ? at::kBool : type);
    TORCH_CHECK(t.dim() == 0 && t.device().is_cpu(),
                "Expected condition, x and y to be on the same device, but condition is on ", condition.device(),
                " and x and y are on ", a.device(), " and ", b.device(), " respectively");
    return t.to(place, t.is_same(condition) ? at::kBool : type, /*non_blocking=*/true);
  };
  if (condition.device() != place) condition = here(condition);
  at::Tensor x = here(a), y = here(b);
  Output out(call.output(), shape, type, condition, false);
  if (call.output().defined())
    for (const at::Tensor &t : {a, b}) at::assert_no_partial_overlap(call.output(), t);
  if (out.get().numel()) {
    const rdna_tensor r = describe(out.get());
    for (at::Tensor *t : {&condition, &x, &y})
      if (spoils(r, describe(*t))) *t = t->clone();
    const rdna_tensor c = describe(condition), p = describe(x), q = describe(y);
    check(rdna_op_where(stream_of(condition), &c, &p, &q, &r));
  }
  return call.give(out.finish());
}

const Single singles[] = {
    {"fill_.Scalar", fill_scalar}, {"fill_.Tensor", fill_tensor},        {"zero_", zero},
    {"arange.start_out", arange},  {"masked_fill_.Scalar", masked_fill}, {"where.self", where},
    {"where.self_out", where},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, triangles, triangle);
  add(m, singles);
  m.impl("scalar_tensor", scalar_tensor);
}

}  // namespace
}  // namespace rdna_torch
