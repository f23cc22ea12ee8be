// Special functions of one tensor: lgamma and its derivatives, the error function's complement and inverses, functions
// of Bessel and Airy. Integers become floats; f16 and bf16 are computed in f64, by f32, and rounded once more.
#include "rdna/op/special.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/result_type.h>

#include <cmath>

#include "complex.h"
#include "complex_functions.h"
#include "native.h"

namespace rdna_torch {
namespace {

struct Row {
  const char *name;
  rdna_special function;
  int complex = -1;  // rdna_complex_map, where there is one
};

// The contiguous |value| in |type|, with its dimensions in memory in the order of |x|'s, as PyTorch's own results have
// it.
at::Tensor laid_as(const at::Tensor &x, const at::Tensor &value, at::ScalarType type) {
  if (x.is_contiguous()) return value.scalar_type() == type ? value : value.to(type);
  const at::Tensor result = at::empty_like(x, x.options().dtype(type).device(value.device()));
  return result.copy_(value);
}

bool map(Call &call, const at::Tensor &x, rdna_special function, int64_t order) {
  const at::ScalarType type = x.scalar_type();
  if (!has_dtype(type) || order > 100) return false;
  const at::ScalarType result = is_real(type) ? type : default_type();
  const at::Tensor given = call.output();
  if (!is_real(result) || (given.defined() && !is_real(given.scalar_type()))) return false;
  const at::ScalarType computed = result == at::kDouble ? at::kDouble : at::kFloat;
  if (given.defined() && !given.is_same(x)) at::assert_no_partial_overlap(given, x);
  const at::Tensor from = x.to(computed).contiguous();
  const at::Tensor value = make(x.sizes(), computed, from);
  if (value.numel()) {
    const rdna_tensor in = describe(from), out = describe(value);
    check(rdna_op_special(stream_of(x), function, static_cast<int>(order), &in, &out));
  }
  if (!given.defined()) return call.give(laid_as(x, value, result));
  Output out(given, x.sizes(), result, x, false);
  out.get().copy_(value);
  return call.give(out.finish());
}

bool run(const Row &row, Call &call) {
  const at::Tensor x = call.tensor(0);
  if (row.complex >= 0 && is_complex(x.scalar_type()))
    return give_or_write(call, mapped(static_cast<rdna_complex_map>(row.complex), x));
  if (is_complex(x.scalar_type())) {
    const at::Tensor value = complex_special(row.function, x);
    return value.defined() && give_or_write(call, value);
  }
  return map(call, x, row.function, 0);
}

bool polygamma(Call &call) {  // n, self, out
  TORCH_CHECK(call.integer(0) >= 0, "polygamma(n, x) does not support negative n.");
  return map(call, call.tensor(1), RDNA_SPECIAL_POLYGAMMA, call.integer(0));
}

struct PairRow {
  const char *name;
  rdna_special_pair function;
  bool whole = true;  // whether whole numbers become floats
};

// Of two, broadcast; either may be a number.
bool pair(const PairRow &row, Call &call) {  // self, other, [out]
  const at::Tensor given = call.output();
  const c10::Device device(kRdna, call.device());
  auto operand = [&](size_t i) {
    return call[i].isTensor() ? call.tensor(i) : at::scalar_tensor(call.scalar(i)).to(device);
  };
  const at::Tensor a = operand(0), b = operand(1);
  if (given.defined())
    for (const at::Tensor &t : {a, b}) at::assert_no_partial_overlap(given, t);
  const at::ScalarType common = call[0].isTensor() && call[1].isTensor() ? at::result_type(a, b)
                                : call[0].isTensor()                     ? at::result_type(a, call.scalar(1))
                                                                         : at::result_type(b, call.scalar(0));
  const at::ScalarType type = at::isIntegralType(common, true) && row.whole ? default_type() : common;
  if (is_integer(type) && (row.function == RDNA_SPECIAL_PAIR_FMAX || row.function == RDNA_SPECIAL_PAIR_FMIN))
    return give_or_write(call, row.function == RDNA_SPECIAL_PAIR_FMAX ? at::maximum(a, b) : at::minimum(a, b));
  if (is_complex(type) && row.function == RDNA_SPECIAL_PAIR_LOGADDEXP)
    return give_or_write(call, complex_logaddexp(a.to(device, type), b.to(device, type)));
  if (!is_real(type) || (given.defined() && !is_real(given.scalar_type()))) return false;
  for (const at::Tensor &t : {a, b})
    if (!has_dtype(t.scalar_type())) return false;
  const at::ScalarType computed = type == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor x = a.to(device, computed), y = b.to(device, computed);
  if (!x.sizes().equals(y.sizes())) {
    const std::vector<int64_t> shape = at::infer_size(x.sizes(), y.sizes());
    x = x.expand(shape), y = y.expand(shape);
  }
  x = x.contiguous(), y = y.contiguous();
  const at::Tensor value = make(x.sizes(), computed, x);
  if (value.numel()) {
    const rdna_tensor first = describe(x), second = describe(y), to = describe(value);
    check(rdna_op_special_pair(stream_of(x), row.function, &first, &second, &to));
  }
  if (!given.defined()) {
    const at::Tensor &like = a.sizes().equals(value.sizes()) ? a : b.sizes().equals(value.sizes()) ? b : value;
    return call.give(laid_as(like, value, type));
  }
  Output out(given, value.sizes(), type, value, false);
  out.get().copy_(value);
  return call.give(out.finish());
}

// Functions of others that are here, in f64, rounded once.
bool made_of(Call &call, at::Tensor (*function)(const at::Tensor &)) {
  const at::Tensor x = call.tensor(0), given = call.output();
  const at::ScalarType type = is_real(x.scalar_type()) ? x.scalar_type() : default_type();
  if (!has_dtype(x.scalar_type()) || !is_real(type) || !is_real(given.scalar_type())) return false;
  const at::Tensor value = function(x.to(at::kDouble));
  Output out(given, x.sizes(), type, x, false);
  out.get().copy_(type == at::kDouble ? value : value.to(at::kFloat));
  return call.give(out.finish());
}
// exp(x^2) erfc(x): from 10 on by its expansion (A&S 7.1.23), whose terms have fallen to nothing there.
at::Tensor scaled_complement(const at::Tensor &x) {
  const at::Tensor near = at::exp(x * x) * at::erfc(x), z = 0.5 / (x * x);
  at::Tensor far = at::ones_like(x);
  for (int k = 14; k > 0; k--) far = 1 - far * z * (2 * k - 1);
  far = far * (M_2_SQRTPI / 2) / x;
  return at::where(at::gt(x, 10), far, near);
}
bool erfcx(Call &call) { return made_of(call, scaled_complement); }
// log(Phi(x)), by the complement of the error function where Phi is near 1, scaled where it is near 0.
bool log_ndtr(Call &call) {
  return made_of(call, [](const at::Tensor &x) {
    const at::Tensor t = x * M_SQRT1_2, low = at::clamp_max(t, 0), high = at::clamp_min(t, -1);
    return at::where(at::lt(x, -1), at::log(0.5 * scaled_complement(-low)) - low * low,
                     at::log1p(-0.5 * at::erfc(high)));
  });
}
bool spherical_j0(Call &call) {
  return made_of(call, [](const at::Tensor &x) {
    const at::Tensor wave = at::sin(x) / x;
    return wave.masked_fill(at::eq(x, 0), 1).masked_fill(at::isinf(x), 0);
  });
}

const Row rows[] = {
    {"erfc.out", RDNA_SPECIAL_ERFC},
    {"erfinv.out", RDNA_SPECIAL_ERFINV},
    {"special_ndtri.out", RDNA_SPECIAL_NDTRI},
    {"lgamma.out", RDNA_SPECIAL_LGAMMA},
    {"digamma.out", RDNA_SPECIAL_DIGAMMA},
    {"i0.out", RDNA_SPECIAL_I0},
    {"special_i0e.out", RDNA_SPECIAL_I0E},
    {"special_i1.out", RDNA_SPECIAL_I1},
    {"special_i1e.out", RDNA_SPECIAL_I1E},
    {"special_modified_bessel_i0.out", RDNA_SPECIAL_I0},
    {"special_modified_bessel_i1.out", RDNA_SPECIAL_I1},
    {"special_bessel_j0.out", RDNA_SPECIAL_J0},
    {"special_bessel_j1.out", RDNA_SPECIAL_J1},
    {"special_bessel_y0.out", RDNA_SPECIAL_Y0},
    {"special_bessel_y1.out", RDNA_SPECIAL_Y1},
    {"special_modified_bessel_k0.out", RDNA_SPECIAL_K0},
    {"special_modified_bessel_k1.out", RDNA_SPECIAL_K1},
    {"special_scaled_modified_bessel_k0.out", RDNA_SPECIAL_K0E},
    {"special_scaled_modified_bessel_k1.out", RDNA_SPECIAL_K1E},
    {"special_airy_ai.out", RDNA_SPECIAL_AIRY_AI},
    {"asin.out", RDNA_SPECIAL_ASIN},
    {"acos.out", RDNA_SPECIAL_ACOS},
    {"atan.out", RDNA_SPECIAL_ATAN},
    {"sinh.out", RDNA_SPECIAL_SINH, RDNA_COMPLEX_SINH},
    {"cosh.out", RDNA_SPECIAL_COSH, RDNA_COMPLEX_COSH},
    {"asinh.out", RDNA_SPECIAL_ASINH},
    {"acosh.out", RDNA_SPECIAL_ACOSH},
    {"atanh.out", RDNA_SPECIAL_ATANH},
};
#define POLYNOMIAL(NAME, FUNCTION)                                                   \
  {"special_" NAME ".out", FUNCTION}, {"special_" NAME ".x_scalar_out", FUNCTION}, { \
    "special_" NAME ".n_scalar_out", FUNCTION                                        \
  }
const PairRow pairs[] = {
    {"igamma.out", RDNA_SPECIAL_PAIR_IGAMMA, false},
    {"igammac.out", RDNA_SPECIAL_PAIR_IGAMMAC, false},
    {"special_zeta.out", RDNA_SPECIAL_PAIR_ZETA},
    {"special_zeta.self_scalar_out", RDNA_SPECIAL_PAIR_ZETA},
    {"special_zeta.other_scalar_out", RDNA_SPECIAL_PAIR_ZETA},
    POLYNOMIAL("chebyshev_polynomial_t", RDNA_SPECIAL_PAIR_CHEBYSHEV_T),
    POLYNOMIAL("chebyshev_polynomial_u", RDNA_SPECIAL_PAIR_CHEBYSHEV_U),
    POLYNOMIAL("chebyshev_polynomial_v", RDNA_SPECIAL_PAIR_CHEBYSHEV_V),
    POLYNOMIAL("chebyshev_polynomial_w", RDNA_SPECIAL_PAIR_CHEBYSHEV_W),
    POLYNOMIAL("shifted_chebyshev_polynomial_t", RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_T),
    POLYNOMIAL("shifted_chebyshev_polynomial_u", RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_U),
    POLYNOMIAL("shifted_chebyshev_polynomial_v", RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_V),
    POLYNOMIAL("shifted_chebyshev_polynomial_w", RDNA_SPECIAL_PAIR_SHIFTED_CHEBYSHEV_W),
    POLYNOMIAL("hermite_polynomial_h", RDNA_SPECIAL_PAIR_HERMITE_H),
    POLYNOMIAL("hermite_polynomial_he", RDNA_SPECIAL_PAIR_HERMITE_HE),
    POLYNOMIAL("laguerre_polynomial_l", RDNA_SPECIAL_PAIR_LAGUERRE),
    POLYNOMIAL("legendre_polynomial_p", RDNA_SPECIAL_PAIR_LEGENDRE),
    {"logaddexp.out", RDNA_SPECIAL_PAIR_LOGADDEXP, false},
    {"logaddexp2.out", RDNA_SPECIAL_PAIR_LOGADDEXP2, false},
    {"xlogy.OutTensor", RDNA_SPECIAL_PAIR_XLOGY},
    {"special_xlog1py.out", RDNA_SPECIAL_PAIR_XLOG1PY},
    {"hypot.out", RDNA_SPECIAL_PAIR_HYPOT, false},
    {"copysign.out", RDNA_SPECIAL_PAIR_COPYSIGN},
    {"fmax.out", RDNA_SPECIAL_PAIR_FMAX, false},
    {"fmin.out", RDNA_SPECIAL_PAIR_FMIN, false},
};
const Single singles[] = {{"polygamma.out", polygamma},
                          {"special_erfcx.out", erfcx},
                          {"special_log_ndtr.out", log_ndtr},
                          {"special_spherical_bessel_j0.out", spherical_j0}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_new_forms(m, rows, run);
  add_new_forms(m, pairs, pair);
  add(m, singles);
}

}  // namespace
}  // namespace rdna_torch
