// out = f(x)
#include <ATen/Functions.h>
#include <ATen/OpMathType.h>

#include <cmath>

#include "complex_functions.h"
#include "iterate.h"
#include "native.h"
#include "rdna/op/complex.h"
#include "rdna/op/pointwise.h"

namespace rdna_torch {
namespace {

enum Types { kAll, kReal };  // as in rdna/op/pointwise.h: R and I, R alone

bool takes(Types types, at::ScalarType t) { return types == kAll ? has_dtype(t) : is_real(t); }

// A parameter: a number, or the argument with that place.
struct Parameter {
  int argument;  // -1: |value|
  double value;
};
constexpr Parameter kNone{-1, 0};
constexpr Parameter number(double v) { return {-1, v}; }
constexpr Parameter argument(int i) { return {i, 0}; }

struct Row {
  const char *name;
  rdna_map op;
  Types types;
  Promote promote;
  Parameter p = kNone, q = kNone;
  rdna_complex_map complex = RDNA_COMPLEX_MAP_COUNT;  // none
};

rdna_scalar value(const Parameter &p, const Call &call, at::ScalarType type) {
  if (p.argument < 0) return rdna_scalar_real(p.value);
  return scalar_of(call.scalar(static_cast<size_t>(p.argument)), type);
}

bool map(Call &call, rdna_map op, Types types, Promote promote, rdna_scalar p, rdna_scalar q,
         rdna_complex_map complex = RDNA_COMPLEX_MAP_COUNT) {
  auto out = iterate(
      call.output(), {call.tensor(0)}, promote,
      [&](at::ScalarType t) { return is_complex(t) ? complex != RDNA_COMPLEX_MAP_COUNT : takes(types, t); },
      [&](const Iteration &it) {
        if (is_complex(it.type))
          check(rdna_op_complex_map(it.stream, complex, &it.inputs[0].tensor, &it.out));
        else
          check(rdna_op_map(it.stream, op, &it.inputs[0].tensor, p, q, &it.out));
      });
  return out && call.give(*out);
}

// Of complex numbers, by those that have a kernel.
at::Tensor complex_value(rdna_map op, const at::Tensor &x) {
  switch (op) {
    case RDNA_MAP_RSQRT:
      return at::reciprocal(at::sqrt(x));
    case RDNA_MAP_LOG2:
      return at::mul(at::log(x), 1 / M_LN2);
    case RDNA_MAP_LOG10:
      return at::mul(at::log(x), 1 / M_LN10);
    case RDNA_MAP_EXP2:
      return at::exp(at::mul(x, M_LN2));
    case RDNA_MAP_EXPM1:
      return complex_expm1(x);
    case RDNA_MAP_LOG1P:
      return complex_log1p(x);
    case RDNA_MAP_SIGMOID:
      return complex_sigmoid(x);
    case RDNA_MAP_SILU:
      return at::mul(x, complex_sigmoid(x));
    default:
      return {};
  }
}

bool run(const Row &row, Call &call) {
  if (!call.tensor(0).defined() || call.tensor(0).device().type() != kRdna) return false;
  if (is_complex(call.tensor(0).scalar_type()) && row.complex == RDNA_COMPLEX_MAP_COUNT) {
    const at::Tensor value = complex_value(row.op, call.tensor(0));
    if (!value.defined()) return false;
    Output out(call.output(), value.sizes(), value.scalar_type(), value, false);
    out.get().copy_(value);
    return call.give(out.finish());
  }
  if (is_complex(call.tensor(0).scalar_type())) return map(call, row.op, row.types, row.promote, {}, {}, row.complex);
  const at::ScalarType type = call.tensor(0).scalar_type();
  if (!has_dtype(type)) return false;
  TORCH_CHECK(row.op != RDNA_MAP_NEG || type != at::kBool,
              "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
              "the `~` or `logical_not()` operator instead.");
  const bool clamps = row.op == RDNA_MAP_CLAMP;  // to values of the type; other parameters are those it computes in
  if (clamps && (type == at::kBool || (type == at::kByte && (call.real(1) < 0 || call.real(2) < 0))))
    return false;  // the CPU says why not
  const at::ScalarType in = clamps ? type : at::toOpMathType(type);
  return map(call, row.op, row.types, row.promote, value(row.p, call, in), value(row.q, call, in));
}

constexpr Promote S = Promote::kSame, F = Promote::kFloat;

const Row rows[] = {
    {"neg.out", RDNA_MAP_NEG, kAll, S, kNone, kNone, RDNA_COMPLEX_NEG},
    {"sign.out", RDNA_MAP_SIGN, kAll, S},
    {"sgn.out", RDNA_MAP_SIGN, kAll, S, kNone, kNone, RDNA_COMPLEX_SGN},
    {"bitwise_not.out", RDNA_MAP_BITWISE_NOT, kAll, S},
    {"relu", RDNA_MAP_RELU, kAll, S},
    {"relu_", RDNA_MAP_RELU, kAll, S},
    {"leaky_relu.out", RDNA_MAP_LEAKY_RELU, kReal, S, argument(1)},
    {"hardtanh", RDNA_MAP_CLAMP, kAll, S, argument(1), argument(2)},
    {"hardtanh_", RDNA_MAP_CLAMP, kAll, S, argument(1), argument(2)},
    {"hardtanh.out", RDNA_MAP_CLAMP, kAll, S, argument(1), argument(2)},
    {"hardswish", RDNA_MAP_HARDSWISH, kReal, S},
    {"hardswish_", RDNA_MAP_HARDSWISH, kReal, S},
    {"hardswish.out", RDNA_MAP_HARDSWISH, kReal, S},
    {"hardsigmoid.out", RDNA_MAP_HARDSIGMOID, kReal, S},
    {"silu.out", RDNA_MAP_SILU, kReal, S},
    {"mish.out", RDNA_MAP_MISH, kReal, S},
    {"softplus.out", RDNA_MAP_SOFTPLUS, kReal, S, argument(1), argument(2)},
    {"sqrt.out", RDNA_MAP_SQRT, kReal, F, kNone, kNone, RDNA_COMPLEX_SQRT},
    {"rsqrt.out", RDNA_MAP_RSQRT, kReal, F},
    {"frac.out", RDNA_MAP_FRAC, kReal, S},
    {"reciprocal.out", RDNA_MAP_RECIPROCAL, kReal, F, kNone, kNone, RDNA_COMPLEX_RECIPROCAL},
    {"exp.out", RDNA_MAP_EXP, kReal, F, kNone, kNone, RDNA_COMPLEX_EXP},
    {"exp2.out", RDNA_MAP_EXP2, kReal, F},
    {"expm1.out", RDNA_MAP_EXPM1, kReal, F},
    {"log.out", RDNA_MAP_LOG, kReal, F, kNone, kNone, RDNA_COMPLEX_LOG},
    {"log2.out", RDNA_MAP_LOG2, kReal, F},
    {"log10.out", RDNA_MAP_LOG10, kReal, F},
    {"log1p.out", RDNA_MAP_LOG1P, kReal, F},
    {"sin.out", RDNA_MAP_SIN, kReal, F, kNone, kNone, RDNA_COMPLEX_SIN},
    {"cos.out", RDNA_MAP_COS, kReal, F, kNone, kNone, RDNA_COMPLEX_COS},
    {"tan.out", RDNA_MAP_TAN, kReal, F, kNone, kNone, RDNA_COMPLEX_TAN},
    {"tanh.out", RDNA_MAP_TANH, kReal, F, kNone, kNone, RDNA_COMPLEX_TANH},
    {"erf.out", RDNA_MAP_ERF, kReal, F},
    {"sigmoid.out", RDNA_MAP_SIGMOID, kReal, F},
};

// Rounding leaves integers as they are.
const Row rounding[] = {
    {"ceil.out", RDNA_MAP_CEIL, kReal, S},
    {"floor.out", RDNA_MAP_FLOOR, kReal, S},
    {"round.out", RDNA_MAP_ROUND, kReal, S},
    {"trunc.out", RDNA_MAP_TRUNC, kReal, S},
};

bool run_rounding(const Row &row, Call &call) {
  if (!is_integer(call.tensor(0).scalar_type()) || call.tensor(0).scalar_type() == at::kBool) return run(row, call);
  return map(call, RDNA_MAP_AFFINE, kAll, S, rdna_scalar_integer(1), rdna_scalar_integer(0));
}

bool measure(Call &call, rdna_complex_measure op, const at::Tensor &given) {
  auto out = iterate(given, {call.tensor(0)}, Promote::kMeasure, is_complex, [&](const Iteration &it) {
    check(rdna_op_complex_measure(it.stream, op, &it.inputs[0].tensor, &it.out));
  });
  return out && call.give(*out);
}

// Kept lazy where it can be: this is asked for where it cannot.
bool conjugate(Call &call) {  // self, out
  auto out = iterate(call.output(), {call.tensor(0)}, S, is_complex, [&](const Iteration &it) {
    check(rdna_op_complex_map(it.stream, RDNA_COMPLEX_CONJ, &it.inputs[0].tensor, &it.out));
  });
  return out && call.give(*out);
}

bool gelu(Call &call) {  // self, approximate
  const bool tanh = call[1].toStringRef() == "tanh";
  TORCH_CHECK(tanh || call[1].toStringRef() == "none", "approximate argument must be either none or tanh.");
  return map(call, tanh ? RDNA_MAP_GELU_TANH : RDNA_MAP_GELU_ERF, kReal, S, {}, {});
}

bool elu(Call &call) {  // self, alpha, scale, input_scale
  if (call.real(3) != 1) return false;
  const double scale = call.real(2);
  return map(call, RDNA_MAP_ELU, kReal, S, rdna_scalar_real(call.real(1) * scale), rdna_scalar_real(scale));
}

bool clamp(Call &call) {  // self, min, max
  const at::ScalarType type = call.tensor(0).scalar_type();
  auto integral = [&](size_t i) { return call.none(i) || !call.scalar(i).isFloatingPoint(); };
  if (!has_dtype(type) || type == at::kBool || (is_integer(type) && !(integral(1) && integral(2))))
    return false;  // the result is promoted
  for (size_t i : {1, 2})
    if (!call.none(i) && call.scalar(i).isFloatingPoint() && std::isnan(call.real(i))) return false;
  const rdna_scalar low = call.none(1) ? rdna_scalar{-INFINITY, INT64_MIN} : scalar_of(call.scalar(1), type);
  const rdna_scalar high = call.none(2) ? rdna_scalar{INFINITY, INT64_MAX} : scalar_of(call.scalar(2), type);
  return map(call, RDNA_MAP_CLAMP, kAll, S, low, high);
}

bool clamp_one(Call &call, bool low) {  // self, min or max
  const at::ScalarType type = call.tensor(0).scalar_type();
  const at::Scalar v = call.scalar(1);
  if (!has_dtype(type) || type == at::kBool || v.isComplex() || (is_integer(type) && v.isFloatingPoint())) return false;
  if (v.isFloatingPoint() && std::isnan(v.toDouble())) return false;
  return map(call, RDNA_MAP_CLAMP, kAll, S, low ? scalar_of(v, type) : rdna_scalar{-INFINITY, INT64_MIN},
             low ? rdna_scalar{INFINITY, INT64_MAX} : scalar_of(v, type));
}
bool clamp_min(Call &call) { return clamp_one(call, true); }
bool clamp_max(Call &call) { return clamp_one(call, false); }

// The size of a complex number is real.
bool abs(Call &call) {  // self, out
  if (!call.tensor(0).is_complex()) return map(call, RDNA_MAP_ABS, kAll, S, {}, {});
  return measure(call, RDNA_COMPLEX_ABS, call.output());
}

const Single singles[] = {
    {"abs.out", abs},
    {"conj_physical.out", conjugate},
    {"clamp_min.out", clamp_min},
    {"clamp_max.out", clamp_max},
    {"gelu.out", gelu},
    {"elu.out", elu},
    {"clamp.out", clamp},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_all_forms(m, rows, run);
  add_all_forms(m, rounding, run_rounding);
  add_all_forms(m, singles);
}

}  // namespace
}  // namespace rdna_torch
