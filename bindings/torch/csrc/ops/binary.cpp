// out = f(a, b), comparisons, and f(a, b, c)
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/result_type.h>

#include <cmath>

#include "iterate.h"
#include "native.h"
#include "rdna/op/complex.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"

namespace rdna_torch {
namespace {

enum Types { kAll, kNumbers, kReal, kIntegers, kWhole };  // bool is one of kIntegers, not of kWhole

bool takes(Types types, at::ScalarType t) {
  switch (types) {
    case kAll:
      return has_dtype(t);
    case kNumbers:
      return has_dtype(t) && t != at::kBool;
    case kReal:
      return is_real(t);
    case kIntegers:
      return is_integer(t);
    case kWhole:
      return is_integer(t) && t != at::kBool;
  }
  return false;
}

// Argument |i| as a tensor; a number becomes one that promotes as Python's numbers do.
at::Tensor operand(const Call &call, size_t i) {
  return call[i].isTensor() ? call.tensor(i) : number_tensor(call.scalar(i));
}

// The operation on complex numbers that goes with one on reals; none.
constexpr rdna_complex_zip kNoComplex = RDNA_COMPLEX_ZIP_COUNT;

void launch_complex(const Iteration &it, rdna_complex_zip op, rdna_complex p) {
  const Input &a = it.inputs[0], &b = it.inputs[1];
  if (b.number)
    check(rdna_op_complex_zip_scalar(it.stream, op, &a.tensor, b.complex, false, p, &it.out));
  else if (a.number)
    check(rdna_op_complex_zip_scalar(it.stream, op, &b.tensor, a.complex, true, p, &it.out));
  else
    check(rdna_op_complex_zip(it.stream, op, &a.tensor, &b.tensor, p, &it.out));
}

void launch_zip(const Iteration &it, rdna_zip op, rdna_scalar p, rdna_scalar q) {
  const Input &a = it.inputs[0], &b = it.inputs[1];
  if (b.number)
    check(rdna_op_zip_scalar(it.stream, op, &a.tensor, *b.number, false, p, q, &it.out));
  else if (a.number)
    check(rdna_op_zip_scalar(it.stream, op, &b.tensor, *a.number, true, p, q, &it.out));
  else
    check(rdna_op_zip(it.stream, op, &a.tensor, &b.tensor, p, q, &it.out));
}

bool both_numbers(const at::Tensor &a, const at::Tensor &b) { return a.device().is_cpu() && b.device().is_cpu(); }

bool zip(Call &call, const at::Tensor &a, const at::Tensor &b, rdna_zip op, Types types, Promote promote,
         rdna_scalar p = {}, rdna_scalar q = {}, rdna_complex_zip complex = kNoComplex, rdna_complex complex_p = {}) {
  if (both_numbers(a, b)) return false;
  auto out = iterate(
      call.output(), {a, b}, promote,
      [&](at::ScalarType t) { return is_complex(t) ? complex != kNoComplex : takes(types, t); },
      [&](const Iteration &it) {
        if (is_complex(it.type))
          launch_complex(it, complex, complex_p);
        else
          launch_zip(it, op, p, q);
      });
  return out && call.give(*out);
}

struct Row {
  const char *name;
  rdna_zip op;
  Types types;
  Promote promote = Promote::kSame;
  rdna_complex_zip complex = kNoComplex;
};

bool run(const Row &row, Call &call) {
  return zip(call, operand(call, 0), operand(call, 1), row.op, row.types, row.promote, {}, {}, row.complex);
}

const Row rows[] = {
    {"mul.out", RDNA_ZIP_MUL, kAll, Promote::kSame, RDNA_COMPLEX_MUL},
    {"div.out", RDNA_ZIP_DIV, kReal, Promote::kFloat, RDNA_COMPLEX_DIV},
    {"maximum.out", RDNA_ZIP_MAXIMUM, kAll},
    {"minimum.out", RDNA_ZIP_MINIMUM, kAll},
    {"clamp_min.Tensor_out", RDNA_ZIP_MAXIMUM, kAll},
    {"clamp_max.Tensor_out", RDNA_ZIP_MINIMUM, kAll},
    {"nextafter.out", RDNA_ZIP_NEXTAFTER, kReal},
    {"fmod.Tensor_out", RDNA_ZIP_FMOD, kNumbers},
    {"remainder.Tensor_out", RDNA_ZIP_REMAINDER, kNumbers},
    {"remainder.Scalar_Tensor", RDNA_ZIP_REMAINDER, kNumbers},
    {"pow.Tensor_Tensor_out", RDNA_ZIP_POW, kNumbers, Promote::kSame, RDNA_COMPLEX_POW},
    {"pow.Scalar_out", RDNA_ZIP_POW, kNumbers, Promote::kSame, RDNA_COMPLEX_POW},
    {"atan2.out", RDNA_ZIP_ATAN2, kReal, Promote::kFloat},
    {"bitwise_and.Tensor_out", RDNA_ZIP_BITWISE_AND, kIntegers},
    {"bitwise_or.Tensor_out", RDNA_ZIP_BITWISE_OR, kIntegers},
    {"bitwise_xor.Tensor_out", RDNA_ZIP_BITWISE_XOR, kIntegers},
    {"bitwise_left_shift.Tensor_out", RDNA_ZIP_SHIFT_LEFT, kIntegers},
    {"bitwise_right_shift.Tensor_out", RDNA_ZIP_SHIFT_RIGHT, kIntegers},
    {"gcd.out", RDNA_ZIP_GCD, kWhole},
    {"lcm.out", RDNA_ZIP_LCM, kWhole},
    {"floor_divide", RDNA_ZIP_FLOOR_DIV, kNumbers},
    {"floor_divide.out", RDNA_ZIP_FLOOR_DIV, kNumbers},
    {"floor_divide_.Tensor", RDNA_ZIP_FLOOR_DIV, kNumbers},
    {"silu_backward.grad_input", RDNA_ZIP_SILU_GRAD, kReal},
    {"hardswish_backward", RDNA_ZIP_HARDSWISH_GRAD, kReal},
    {"hardsigmoid_backward.grad_input", RDNA_ZIP_HARDSIGMOID_GRAD, kReal},
};

bool scaled(Call &call, double sign) {  // self, other, alpha
  const at::Tensor a = operand(call, 0), b = operand(call, 1);
  const at::Scalar alpha = call.scalar(2);
  TORCH_CHECK(
      !alpha.isFloatingPoint() || at::isFloatingType(at::result_type(a, b)) || at::isComplexType(at::result_type(a, b)),
      "For integral input tensors, argument alpha must not be a floating point number.");
  if (sign < 0)
    TORCH_CHECK(!(a.scalar_type() == at::kBool && b.scalar_type() == at::kBool),
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
                "operator instead.");
  if (alpha.equal(1))
    return zip(call, a, b, sign < 0 ? RDNA_ZIP_SUB : RDNA_ZIP_ADD, kAll, Promote::kSame, {}, {},
               sign < 0 ? RDNA_COMPLEX_SUB : RDNA_COMPLEX_ADD);
  const at::ScalarType type = at::result_type(a, b);
  if (!has_dtype(type) && !is_complex(type)) return false;
  if (alpha.isComplex() && !is_complex(type)) return false;
  rdna_scalar p = is_complex(type) ? rdna_scalar{} : scalar_of(alpha, type);
  if (!is_complex(type) && p.real == 1)
    return zip(call, a, b, sign < 0 ? RDNA_ZIP_SUB : RDNA_ZIP_ADD, kAll, Promote::kSame);
  rdna_complex complex_p = complex_of(alpha);
  p.real *= sign;
  p.integer *= static_cast<int64_t>(sign);
  complex_p.real *= sign;
  complex_p.imag *= sign;
  return zip(call, a, b, RDNA_ZIP_ADD_SCALED, kAll, Promote::kSame, p, {}, RDNA_COMPLEX_ADD_SCALED, complex_p);
}
bool add_scaled(Call &call) { return scaled(call, 1); }
bool sub_scaled(Call &call) { return scaled(call, -1); }

bool rsub(Call &call) {  // self, other, alpha: other - alpha * self
  const at::Tensor a = operand(call, 0), b = operand(call, 1);
  if (!call.scalar(2).equal(1)) return call.give(at::sub(b, a, call.scalar(2)));
  if (a.scalar_type() == at::kBool || b.scalar_type() == at::kBool) return false;
  return zip(call, b, a, RDNA_ZIP_SUB, kAll, Promote::kSame, {}, {}, RDNA_COMPLEX_SUB);
}

bool complex_pow(Call &call, const at::Tensor &x, const at::Scalar &e) {
  auto out = iterate(call.output(), {x, number_tensor(e)}, Promote::kSame, is_complex, [&](const Iteration &it) {
    const rdna_tensor &in = it.inputs[0].tensor;
    if (e.equal(2))
      check(rdna_op_complex_zip(it.stream, RDNA_COMPLEX_MUL, &in, &in, {}, &it.out));
    else if (e.equal(1))
      check(rdna_op_copy(it.stream, &in, &it.out));
    else if (e.equal(0.5))
      check(rdna_op_complex_map(it.stream, RDNA_COMPLEX_SQRT, &in, &it.out));
    else if (e.equal(-1))
      check(rdna_op_complex_map(it.stream, RDNA_COMPLEX_RECIPROCAL, &in, &it.out));
    else
      launch_complex(it, RDNA_COMPLEX_POW, {});
  });
  return out && call.give(*out);
}

bool pow_scalar(Call &call) {  // self, exponent
  const at::Tensor x = call.tensor(0);
  const at::Scalar e = call.scalar(1);
  const at::ScalarType type = at::result_type(x, e);
  if (at::isComplexType(type)) return complex_pow(call, x, e);
  if (!has_dtype(type)) return false;
  if (type != at::kFloat && type != at::kDouble) scalar_of(e, type);  // which raises; these two take any exponent
  const double v = e.toDouble();
  if (is_integer(type)) {
    TORCH_CHECK(v >= 0, "Integers to negative integer powers are not allowed.");
    return zip(call, x, number_tensor(e), RDNA_ZIP_POW, kNumbers, Promote::kSame);
  }
  auto map = [&](rdna_map op, Types types, rdna_scalar p) {
    auto out = iterate(
        call.output(), {x, number_tensor(e)}, Promote::kSame, [&](at::ScalarType t) { return takes(types, t); },
        [&](const Iteration &it) { check(rdna_op_map(it.stream, op, &it.inputs[0].tensor, p, {}, &it.out)); });
    return out && call.give(*out);
  };
  if (v == 2) return map(RDNA_MAP_SQUARE, kReal, {});
  if (v == 0.5) return map(RDNA_MAP_SQRT, kReal, {});
  if (v == -0.5) return map(RDNA_MAP_RSQRT, kReal, {});
  if (v == -1) return map(RDNA_MAP_RECIPROCAL, kReal, {});
  return map(RDNA_MAP_POW, kReal, rdna_scalar_real(v));
}

// An integer divided by zero gives 0, where the CPU raises and other GPUs give anything.
bool div_mode(Call &call) {  // self, other, rounding_mode
  const at::Tensor a = operand(call, 0), b = operand(call, 1);
  if (both_numbers(a, b)) return false;
  if (call.none(2)) return zip(call, a, b, RDNA_ZIP_DIV, kReal, Promote::kFloat, {}, {}, RDNA_COMPLEX_DIV);
  if (call[2].toStringRef() == "floor") return zip(call, a, b, RDNA_ZIP_FLOOR_DIV, kNumbers, Promote::kSame);
  if (call[2].toStringRef() != "trunc") return false;
  auto out = iterate(
      call.output(), {a, b}, Promote::kSame, [](at::ScalarType t) { return takes(kNumbers, t); },
      [&](const Iteration &it) {
        launch_zip(it, RDNA_ZIP_DIV, {}, {});
        if (at::isFloatingType(it.type)) check(rdna_op_map(it.stream, RDNA_MAP_TRUNC, &it.out, {}, {}, &it.out));
      });
  return out && call.give(*out);
}

bool clamp(Call &call) {  // self, min?, max?
  const at::Tensor x = call.tensor(0), low = call.tensor(1), high = call.tensor(2);
  if (!low.defined() && !high.defined()) return false;
  if (!low.defined()) return zip(call, x, high, RDNA_ZIP_MINIMUM, kAll, Promote::kSame);
  if (!high.defined()) return zip(call, x, low, RDNA_ZIP_MAXIMUM, kAll, Promote::kSame);
  for (const at::Tensor &t : {x, low, high})
    if (t.device().type() != kRdna) return false;
  auto out = iterate(call.output(), {x, low, high}, Promote::kSame, has_dtype, [&](const Iteration &it) {
    check(rdna_op_zip3(it.stream, RDNA_ZIP3_CLAMP, &it.inputs[0].tensor, &it.inputs[1].tensor, &it.inputs[2].tensor, {},
                       &it.out));
  });
  return out && call.give(*out);
}

bool lerp_scalar(Call &call) {  // self, end, weight
  if (is_complex(call.tensor(0).scalar_type())) {
    const auto weight = call.scalar(2).toComplexDouble();
    const bool from_end = std::abs(weight) >= 0.5;
    return zip(call, call.tensor(from_end), at::sub(call.tensor(1), call.tensor(0)), RDNA_ZIP_LERP, kReal,
               Promote::kSame, {}, {}, RDNA_COMPLEX_ADD_SCALED, complex_of(from_end ? weight - 1.0 : weight));
  }
  const at::ScalarType type = call.tensor(0).scalar_type();
  if (call.scalar(2).isComplex() || !is_real(type)) return false;
  return zip(call, call.tensor(0), call.tensor(1), RDNA_ZIP_LERP, kReal, Promote::kSame,
             scalar_of(call.scalar(2), at::toOpMathType(type)));
}

// Gradients with parameters. In librdna the gradient of the result comes first.
bool threshold_backward(Call &call) {  // grad_output, self, threshold
  if (call.real(2) != 0) {
    const at::Tensor grad = call.tensor(0), x = call.tensor(1);
    if (!is_real(x.scalar_type()) || grad.scalar_type() != x.scalar_type() || grad.sizes() != x.sizes()) return false;
    Output out(call.output(), x.sizes(), x.scalar_type(), x, false);
    out.get().copy_(grad.masked_fill(at::le(x, call.scalar(2)), 0));
    return call.give(out.finish());
  }
  return zip(call, call.tensor(0), call.tensor(1), RDNA_ZIP_RELU_GRAD, kReal, Promote::kSame);
}
bool tanh_backward(Call &call) {  // grad_output, output
  const at::Tensor grad = call.tensor(0), y = call.tensor(1);
  if (!is_complex(y.scalar_type())) return zip(call, grad, y, RDNA_ZIP_TANH_GRAD, kReal, Promote::kSame);
  return zip(call, grad, at::rsub(at::mul(y, y), 1).conj().resolve_conj(), RDNA_ZIP_MUL, kReal, Promote::kSame, {}, {},
             RDNA_COMPLEX_MUL);
}
bool sigmoid_backward(Call &call) {  // grad_output, output
  const at::Tensor grad = call.tensor(0), y = call.tensor(1);
  if (!is_complex(y.scalar_type())) return zip(call, grad, y, RDNA_ZIP_SIGMOID_GRAD, kReal, Promote::kSame);
  return zip(call, grad, at::mul(y, at::rsub(y, 1)).conj().resolve_conj(), RDNA_ZIP_MUL, kReal, Promote::kSame, {}, {},
             RDNA_COMPLEX_MUL);
}
bool gelu_backward(Call &call) {  // grad_output, self, approximate
  const bool tanh = call[2].toStringRef() == "tanh";
  return zip(call, call.tensor(0), call.tensor(1), tanh ? RDNA_ZIP_GELU_TANH_GRAD : RDNA_ZIP_GELU_ERF_GRAD, kReal,
             Promote::kSame);
}
bool leaky_relu_backward(Call &call) {  // grad_output, self, negative_slope, self_is_result
  return zip(call, call.tensor(0), call.tensor(1), RDNA_ZIP_LEAKY_RELU_GRAD, kReal, Promote::kSame,
             scalar_of(call.scalar(2)));
}
bool softplus_backward(Call &call) {  // grad_output, self, beta, threshold
  return zip(call, call.tensor(0), call.tensor(1), RDNA_ZIP_SOFTPLUS_GRAD, kReal, Promote::kSame,
             scalar_of(call.scalar(2)), scalar_of(call.scalar(3)));
}
bool elu_backward(Call &call) {  // grad_output, alpha, scale, input_scale, is_result, self_or_result
  if (call.flag(4) || call.real(3) != 1) return false;
  const double scale = call.real(2);
  return zip(call, call.tensor(0), call.tensor(5), RDNA_ZIP_ELU_GRAD, kReal, Promote::kSame,
             rdna_scalar_real(call.real(1) * scale), rdna_scalar_real(scale));
}

// PyTorch has the words where the types differ.
bool heaviside(Call &call) {  // self, values
  const at::Tensor x = call.tensor(0), values = call.tensor(1);
  return x.scalar_type() == values.scalar_type() && zip(call, x, values, RDNA_ZIP_HEAVISIDE, kAll, Promote::kSame);
}

const Single singles[] = {
    {"heaviside.out", heaviside},
    {"add.out", add_scaled},
    {"sub.out", sub_scaled},
    {"rsub.Tensor", rsub},
    {"rsub.Scalar", rsub},
    {"pow.Tensor_Scalar_out", pow_scalar},
    {"div.out_mode", div_mode},
    {"lerp.Scalar_out", lerp_scalar},
    {"clamp.Tensor_out", clamp},
    {"threshold_backward.grad_input", threshold_backward},
    {"tanh_backward.grad_input", tanh_backward},
    {"sigmoid_backward.grad_input", sigmoid_backward},
    {"gelu_backward.grad_input", gelu_backward},
    {"leaky_relu_backward.grad_input", leaky_relu_backward},
    {"softplus_backward.grad_input", softplus_backward},
    {"elu_backward.grad_input", elu_backward},
};

struct CompareRow {
  const char *name;
  rdna_compare op, swapped;  // swapped: with the number first
};

// Complex numbers are equal where both parts are.
bool complex_equal(const CompareRow &row, Call &call, const at::Tensor &a, const at::Tensor &b, at::ScalarType type) {
  const c10::Device place(kRdna, call.device());
  const bool equal = row.op == RDNA_COMPARE_EQ;
  if (!is_complex(type) || a.dim() >= RDNA_MAX_RANK || b.dim() >= RDNA_MAX_RANK ||
      (!equal && row.op != RDNA_COMPARE_NE))
    return false;
  auto parts = [&](const at::Tensor &t) { return at::view_as_real(t.to(place, type).resolve_conj()); };
  const at::Tensor x = parts(a), y = parts(b);
  const at::Tensor value = equal ? at::eq(x, y).all(-1) : at::ne(x, y).any(-1), given = call.output();
  if (!given.defined()) return call.give(value);
  at::assert_no_partial_overlap(given, a);
  at::assert_no_partial_overlap(given, b);
  Output out(given, value.sizes(), at::kBool, value, false);
  out.get().copy_(value);
  return call.give(out.finish());
}

// A complex number is true where one of its parts is.
bool complex_logical(const CompareRow &row, Call &call, const at::Tensor &a, const at::Tensor &b) {
  const at::Tensor x = at::ne(a, 0), y = at::ne(b, 0);
  return give_or_write(call, row.op == RDNA_COMPARE_LOGICAL_AND  ? at::logical_and(x, y)
                             : row.op == RDNA_COMPARE_LOGICAL_OR ? at::logical_or(x, y)
                                                                 : at::logical_xor(x, y));
}

bool compare(const CompareRow &row, Call &call) {
  const at::Tensor a = operand(call, 0), b = operand(call, 1);
  if (both_numbers(a, b)) return false;
  const at::ScalarType type = at::result_type(a, b);
  if (at::isComplexType(type) && row.op >= RDNA_COMPARE_LOGICAL_AND && row.op <= RDNA_COMPARE_LOGICAL_XOR)
    return complex_logical(row, call, a, b);
  if (at::isComplexType(type)) return complex_equal(row, call, a, b, type);
  auto out = iterate(call.output(), {a, b}, Promote::kCompare, has_dtype, [&](const Iteration &it) {
    const Input &x = it.inputs[0], &y = it.inputs[1];
    if (y.number)
      check(rdna_op_compare_scalar(it.stream, row.op, &x.tensor, *y.number, &it.out));
    else if (x.number)
      check(rdna_op_compare_scalar(it.stream, row.swapped, &y.tensor, *x.number, &it.out));
    else
      check(rdna_op_compare(it.stream, row.op, &x.tensor, &y.tensor, &it.out));
  });
  return out && call.give(*out);
}

const CompareRow compares[] = {
    {"eq.Tensor_out", RDNA_COMPARE_EQ, RDNA_COMPARE_EQ},
    {"eq.Scalar_out", RDNA_COMPARE_EQ, RDNA_COMPARE_EQ},
    {"ne.Tensor_out", RDNA_COMPARE_NE, RDNA_COMPARE_NE},
    {"ne.Scalar_out", RDNA_COMPARE_NE, RDNA_COMPARE_NE},
    {"lt.Tensor_out", RDNA_COMPARE_LT, RDNA_COMPARE_GT},
    {"lt.Scalar_out", RDNA_COMPARE_LT, RDNA_COMPARE_GT},
    {"le.Tensor_out", RDNA_COMPARE_LE, RDNA_COMPARE_GE},
    {"le.Scalar_out", RDNA_COMPARE_LE, RDNA_COMPARE_GE},
    {"gt.Tensor_out", RDNA_COMPARE_GT, RDNA_COMPARE_LT},
    {"gt.Scalar_out", RDNA_COMPARE_GT, RDNA_COMPARE_LT},
    {"ge.Tensor_out", RDNA_COMPARE_GE, RDNA_COMPARE_LE},
    {"ge.Scalar_out", RDNA_COMPARE_GE, RDNA_COMPARE_LE},
    {"logical_and.out", RDNA_COMPARE_LOGICAL_AND, RDNA_COMPARE_LOGICAL_AND},
    {"logical_or.out", RDNA_COMPARE_LOGICAL_OR, RDNA_COMPARE_LOGICAL_OR},
    {"logical_xor.out", RDNA_COMPARE_LOGICAL_XOR, RDNA_COMPARE_LOGICAL_XOR},
};

struct QuestionRow {
  const char *name;
  rdna_compare op;
};

bool question(const QuestionRow &row, Call &call) {
  const at::Tensor x = call.tensor(0);
  if (is_complex(x.scalar_type()) && row.op == RDNA_COMPARE_LOGICAL_NOT) return give_or_write(call, at::eq(x, 0));
  if (is_complex(x.scalar_type()) && !call.output().defined() && x.dim() < RDNA_MAX_RANK)  // of either part
    return call.give(at::any(row.op == RDNA_COMPARE_ISNAN ? at::isnan(at::view_as_real(x.resolve_conj()))
                                                          : at::isinf(at::view_as_real(x.resolve_conj())),
                             -1));
  auto out = iterate(call.output(), {call.tensor(0)}, Promote::kCompare, has_dtype, [&](const Iteration &it) {
    check(rdna_op_compare(it.stream, row.op, &it.inputs[0].tensor, nullptr, &it.out));
  });
  return out && call.give(*out);
}

const QuestionRow questions[] = {
    {"logical_not.out", RDNA_COMPARE_LOGICAL_NOT},
    {"isnan", RDNA_COMPARE_ISNAN},
    {"isinf", RDNA_COMPARE_ISINF},
};

struct InfinityRow {
  const char *name;
  double value;
};

bool is_infinity(const InfinityRow &row, Call &call) {
  const at::Tensor x = call.tensor(0);
  if (is_integer(x.scalar_type())) {
    Output none(call.output(), x.sizes(), at::kBool, x, false);
    none.get().zero_();
    return call.give(none.finish());
  }
  auto out = iterate(call.output(), {x}, Promote::kCompare, is_real, [&](const Iteration &it) {
    check(
        rdna_op_compare_scalar(it.stream, RDNA_COMPARE_EQ, &it.inputs[0].tensor, rdna_scalar_real(row.value), &it.out));
  });
  return out && call.give(*out);
}

const InfinityRow infinities[] = {{"isposinf.out", INFINITY}, {"isneginf.out", -INFINITY}};

struct TernaryRow {
  const char *name;
  rdna_zip3 op;
  Types types;
  int value;  // the argument that is its parameter, or -1
};

// Of complex numbers, by two operations.
bool complex_ternary(const TernaryRow &row, Call &call) {
  const at::Tensor a = call.tensor(0), b = call.tensor(1), c = call.tensor(2);
  const at::Scalar value = row.value < 0 ? at::Scalar(1) : call.scalar(static_cast<size_t>(row.value));
  at::Tensor result;
  if (row.op == RDNA_ZIP3_LERP) {
    const at::Tensor apart = at::sub(b, a), near = at::add(a, at::mul(apart, c));
    result = at::where(at::lt(at::abs(c), 0.5), near, at::add(b, at::mul(apart, at::sub(c, 1))));
  } else {
    result = at::add(a, row.op == RDNA_ZIP3_ADDCMUL ? at::mul(b, c) : at::div(b, c), value);
  }
  return give_or_write(call, result);
}

bool ternary(const TernaryRow &row, Call &call) {
  for (size_t i : {0, 1, 2})
    if (is_complex(call.tensor(i).scalar_type())) return complex_ternary(row, call);
  for (size_t i : {0, 1, 2})
    if (call.tensor(i).device().type() != kRdna) return false;  // librdna takes no numbers here
  if (row.value >= 0 && call.scalar(static_cast<size_t>(row.value)).isComplex()) return false;
  auto out = iterate(
      call.output(), {call.tensor(0), call.tensor(1), call.tensor(2)}, Promote::kSame,
      [&](at::ScalarType t) { return takes(row.types, t); },
      [&](const Iteration &it) {
        rdna_scalar p{};
        if (row.value >= 0) p = scalar_of(call.scalar(static_cast<size_t>(row.value)), at::toOpMathType(it.type));
        check(rdna_op_zip3(it.stream, row.op, &it.inputs[0].tensor, &it.inputs[1].tensor, &it.inputs[2].tensor, p,
                           &it.out));
      });
  return out && call.give(*out);
}

const TernaryRow ternaries[] = {
    {"addcmul.out", RDNA_ZIP3_ADDCMUL, kNumbers, 3},
    {"addcdiv.out", RDNA_ZIP3_ADDCDIV, kReal, 3},
    {"lerp.Tensor_out", RDNA_ZIP3_LERP, kReal, -1},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_all_forms(m, rows, run);
  add_all_forms(m, singles);
  add_all_forms(m, compares, compare);
  add_all_forms(m, questions, question);
  add_all_forms(m, infinities, is_infinity);
  add_all_forms(m, ternaries, ternary);
}

}  // namespace
}  // namespace rdna_torch
