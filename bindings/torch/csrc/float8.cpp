#include "float8.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <vector>

namespace rdna_torch {

#if __has_include(<c10/util/Float8_e8m0fnu.h>)
bool is_e8m0(at::ScalarType type) { return type == at::kFloat8_e8m0fnu; }
#else
bool is_e8m0(at::ScalarType) { return false; }
#endif
#if __has_include(<c10/util/Float4_e2m1fn_x2.h>)
bool is_pair_of_e2m1(at::ScalarType type) { return type == at::kFloat4_e2m1fn_x2; }
#else
bool is_pair_of_e2m1(at::ScalarType) { return false; }
#endif

// The byte is f32's exponent; 0 is 2^-127, a subnormal number there.
at::Tensor e8m0_values(const at::Tensor &powers) {
  const at::Tensor code = powers.view(at::kByte).to(at::kInt), bits = at::bitwise_left_shift(code, 23);
  const at::Tensor least = at::full({}, 1 << 22, bits.options()), nan = at::full({}, 0x7fc00000, bits.options());
  return at::where(at::eq(code, 0), least, at::where(at::eq(code, 255), nan, bits)).view(at::kFloat);
}

at::Tensor e8m0_of(const at::Tensor &values, at::ScalarType type) {
  const at::Tensor bits = values.to(at::kFloat).contiguous().view(at::kInt);
  const at::Tensor exponent = at::bitwise_and(at::bitwise_right_shift(bits, 23), 255);
  const at::Tensor rest = at::bitwise_and(bits, (1 << 23) - 1), half = at::full({}, 1 << 22, bits.options());
  // half way goes up, but for the numbers below f32's least normal one
  const at::Tensor up = at::logical_or(at::gt(rest, half), at::logical_and(at::eq(rest, half), at::gt(exponent, 0)));
  const at::Tensor code = exponent + at::logical_and(up, at::lt(exponent, 255)).to(at::kInt);
  return code.to(at::kByte).view(type);
}

// f32 of both codes of each byte: a sign, two bits of the exponent, one of the mantissa (OCP Microscaling
// Formats, 1.0), 0 to 6.
static at::Tensor e2m1_pairs(const at::Tensor &like) {
  const at::Tensor bytes = at::arange(256, like.options().dtype(at::kInt));
  const at::Tensor code = at::stack({at::bitwise_and(bytes, 15), at::bitwise_right_shift(bytes, 4)}, -1);
  const at::Tensor power = at::bitwise_and(at::bitwise_right_shift(code, 1), 3), rest = at::bitwise_and(code, 1);
  const at::Tensor quarters = at::where(at::eq(power, 0), rest * 2, at::bitwise_left_shift(rest + 2, power));
  const at::Tensor size = quarters.to(at::kFloat) * 0.25;
  return at::where(at::ge(code, 8), -size, size);
}

at::Tensor e2m1_values(const at::Tensor &pairs) {
  if (pairs.dim() == 2 && pairs.stride(0) == 1 && pairs.stride(1) != 1) return e2m1_values(pairs.t()).t();
  std::vector<int64_t> shape = pairs.sizes().vec();
  shape.back() *= 2;
  const at::Tensor bytes = pairs.contiguous().view(at::kByte).flatten().to(at::kInt);
  return e2m1_pairs(bytes).index_select(0, bytes).view(shape);
}

}  // namespace rdna_torch
