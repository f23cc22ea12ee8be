#include "complex_functions.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "complex.h"

namespace rdna_torch {
namespace {

struct Parts {
  at::Tensor x, y;
};
Parts parts(const at::Tensor &z) {
  const at::Tensor pairs = at::view_as_real(z.resolve_conj().resolve_neg());
  return {pairs.select(-1, 0), pairs.select(-1, 1)};
}
at::Tensor joined(const at::Tensor &x, const at::Tensor &y) { return at::complex(x.contiguous(), y.contiguous()); }
at::Tensor root(const at::Tensor &x, const at::Tensor &y) { return mapped(RDNA_COMPLEX_SQRT, joined(x, y)); }

// W. Kahan, Branch Cuts for Complex Elementary Functions, 1987: by the roots of what is 0 at 1 and -1, whose zeros keep
// their signs.
at::Tensor asin(const Parts &z) {
  const Parts low = parts(root(1 - z.x, -z.y)), high = parts(root(1 + z.x, z.y));
  return joined(at::atan2(z.x, low.x * high.x - low.y * high.y), at::asinh(low.x * high.y - low.y * high.x));
}
at::Tensor acos(const Parts &z) {
  const Parts low = parts(root(1 - z.x, -z.y)), high = parts(root(1 + z.x, z.y));
  return joined(at::atan2(low.x, high.x) * 2, at::asinh(high.x * low.y - high.y * low.x));
}
at::Tensor acosh(const Parts &z) {
  const Parts low = parts(root(z.x - 1, z.y)), high = parts(root(z.x + 1, z.y));
  return joined(at::asinh(low.x * high.x + low.y * high.y), at::atan2(low.y, high.x) * 2);
}
at::Tensor atanh(const Parts &z) {
  const at::Tensor a = at::abs(z.x), rest = 1 - a;
  const at::Tensor re = at::log1p(a * 4 / (rest * rest + z.y * z.y)) / 4,
                   im = at::atan2(z.y * 2, rest * (1 + a) - z.y * z.y) / 2;
  // far out in any direction it is i pi / 2 (C17, G.6.2.3)
  const at::Tensor far = at::logical_or(at::isinf(a), at::isinf(z.y)), right = at::full({}, M_PI / 2, im.options());
  return joined(at::copysign(at::where(far, at::zeros({}, re.options()), re), z.x),
                at::where(at::logical_and(far, at::isnan(z.y).logical_not()), at::copysign(right, z.y), im));
}

// f(i z) / i
at::Tensor turned(at::Tensor (*f)(const Parts &), const Parts &z) {
  const Parts value = parts(f({-z.y, z.x}));
  return joined(value.y, -value.x);
}

at::Tensor expm1(const Parts &z) {
  const at::Tensor half = at::sin(z.y / 2);
  return joined(at::expm1(z.x) * at::cos(z.y) - half * half * 2, at::exp(z.x) * at::sin(z.y));
}
at::Tensor log1p(const Parts &z) {
  const at::Tensor right = z.x + 1, length = at::hypot(right, z.y);
  const at::Tensor near = at::log1p(z.x * (z.x + 2) + z.y * z.y) / 2;
  const at::Tensor is_near = at::logical_and(at::gt(length, 0.5), at::lt(length, 2));
  return joined(at::where(is_near, near, at::log(length)), at::atan2(z.y, right));
}

// Parts of complex64 are computed in f64, where no formula here loses what that type holds.
template <class F>
at::Tensor computed(const at::Tensor &z, F f) {
  return f(parts(z.to(at::kComplexDouble))).to(z.scalar_type());
}

}  // namespace

at::Tensor complex_special(rdna_special function, const at::Tensor &z) {
  return computed(z, [&](const Parts &p) -> at::Tensor {
    switch (function) {
      case RDNA_SPECIAL_ASIN:
        return asin(p);
      case RDNA_SPECIAL_ACOS:
        return acos(p);
      case RDNA_SPECIAL_ATAN:
        return turned(atanh, p);
      case RDNA_SPECIAL_ASINH:
        return turned(asin, p);
      case RDNA_SPECIAL_ACOSH:
        return acosh(p);
      case RDNA_SPECIAL_ATANH:
        return atanh(p);
      default:
        return {};
    }
  });
}

at::Tensor complex_expm1(const at::Tensor &z) { return computed(z, expm1); }
at::Tensor complex_log1p(const at::Tensor &z) { return computed(z, log1p); }
at::Tensor complex_sigmoid(const at::Tensor &z) { return at::reciprocal(at::exp(-z) + 1); }
at::Tensor complex_sinc(const at::Tensor &z) {
  const at::Tensor w = z.to(at::kComplexDouble) * M_PI;
  return at::where(at::eq(z, 0), at::ones({}, w.options()), at::sin(w) / w).to(z.scalar_type());
}

// The one with the larger real part first; of two that are exp's zeros, one of them.
at::Tensor complex_logaddexp(const at::Tensor &a, const at::Tensor &b) {
  const at::Tensor x = at::real(a.resolve_conj()), y = at::real(b.resolve_conj()), first = at::ge(x, y);
  const at::Tensor most = at::where(first, a, b), least = at::where(first, b, a);
  const at::Tensor nothing = at::logical_and(at::eq(x, y), at::eq(x, -INFINITY));
  return at::where(nothing, least, most + complex_log1p(at::exp(least - most)));
}

// Each with all before it, in as many steps as the length has binary digits.
at::Tensor scanned(const at::Tensor &given, int64_t dim, at::Tensor (*f)(const at::Tensor &, const at::Tensor &)) {
  at::Tensor x = given.clone(at::MemoryFormat::Contiguous);
  const int64_t n = x.dim() ? x.size(dim) : 0;
  for (int64_t step = 1; step < n; step *= 2) {
    const at::Tensor more = f(x.narrow(dim, 0, n - step), x.narrow(dim, step, n - step));
    x.narrow(dim, step, n - step).copy_(more);
  }
  return x;
}

}  // namespace rdna_torch
