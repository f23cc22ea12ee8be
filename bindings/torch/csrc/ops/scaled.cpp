// Products of floats of 8 and 4 bits with scales: _scaled_mm, its out= form, and the one with recipes.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "float8.h"
#include "native.h"
#include "rdna/op/cast.h"
#include "rdna/op/gemm.h"
#include "scaled_blocks.h"

namespace rdna_torch {
namespace {

bool is_e5m2(at::ScalarType type) { return type == at::kFloat8_e5m2 || type == at::kFloat8_e5m2fnuz; }
bool is_code(at::ScalarType type) {
  return (at::isFloat8Type(type) && stored_dtype_of(type).has_value()) || is_pair_of_e2m1(type);
}

void check_matrices(const at::Tensor &a, const at::Tensor &b) {
  TORCH_CHECK(a.dim() == 2, "mat1 must be a matrix");
  TORCH_CHECK(b.dim() == 2, "mat2 must be a matrix");
  TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1), " and ",
              b.size(0), "x", b.size(1), ")");
  TORCH_CHECK(is_code(a.scalar_type()), "Expected mat1 to be Float8 matrix got ", a.scalar_type());
  TORCH_CHECK(is_code(b.scalar_type()), "Expected mat2 to be Float8 matrix got ", b.scalar_type());
  TORCH_CHECK(!is_e5m2(a.scalar_type()) || !is_e5m2(b.scalar_type()), "Multiplication of two ", a.scalar_type(),
              " matrices is not supported");
  TORCH_CHECK(is_pair_of_e2m1(a.scalar_type()) == is_pair_of_e2m1(b.scalar_type()), "Multiplication of ",
              a.scalar_type(), " and ", b.scalar_type(), " matrices is not supported");
}

void check_bias(const at::Tensor &bias, int64_t n, at::ScalarType out) {
  if (!bias.defined()) return;
  TORCH_CHECK(bias.numel() == n, "Bias must be size ", n, " but got ", bias.numel());
  TORCH_CHECK(out != at::kFloat, "Bias is not supported when out_dtype is set to Float32");
  TORCH_CHECK(bias.scalar_type() == at::kBFloat16 || bias.scalar_type() == at::kHalf,
              "Bias must be either Half or BFloat16, but got ", bias.scalar_type());
  TORCH_CHECK(out != at::kBFloat16 || bias.scalar_type() == at::kBFloat16, "Bias must be BFloat16 to compute ", out,
              " output, but got ", bias.scalar_type());
  TORCH_CHECK(out != at::kHalf || bias.scalar_type() == at::kHalf, "Bias must be Float16 to compute ", out,
              " output, but got ", bias.scalar_type());
}

// One scale for all, or one a row, of 8-bit floats: one product that reads the codes.
void multiply_codes(const Scaled &x, const Scaled &y, const at::Tensor &added, const at::Tensor &sums) {
  const at::Tensor of_a = x.scales[0].reshape({-1}).contiguous(), of_b = y.scales[0].reshape({-1}).contiguous();
  const rdna_tensor a = describe_stored(x.codes), b = describe_stored(y.codes.t()), z = describe(sums),
                    s = describe(of_a), t = describe(of_b);
  const Operand plus(added);
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .bias = plus};
  check(rdna_op_gemm_f8(stream_of(sums), &epilogue, &a, &s, &b, &t, &z));
}

// Scales of blocks: f32 of what the codes stand for.
void multiply_values(const Scaled &x, const Scaled &y, const at::Tensor &added, const at::Tensor &sums) {
  const at::Tensor product = at::mm(scaled_values(x), scaled_values(y).t());
  sums.copy_(added.defined() ? product.add_(added) : product);
}

bool multiply(Call &call, const Scaled &x, const Scaled &y, const at::Tensor &bias, const at::Tensor &scale_result,
              std::optional<at::ScalarType> type) {
  const at::Tensor given = call.output();
  const int64_t m = x.codes.size(0), n = y.codes.size(0);
  TORCH_CHECK(!given.defined() || !type || *type == given.scalar_type(), "out_dtype must match output matrix type");
  const at::ScalarType out_type = type.value_or(given.defined() ? given.scalar_type() : x.codes.scalar_type());
  const bool narrow = at::isFloat8Type(out_type) && stored_dtype_of(out_type);
  TORCH_CHECK(narrow || is_float(out_type),
              "Only float32, float16, bfloat16 and float8 output types are supported, got ", out_type);
  check_bias(bias, n, out_type);
  TORCH_CHECK(!scale_result.defined() || narrow, "scale_result is for results of 8-bit floats, got out_dtype ",
              out_type, ": multiply a wider result by it");
  TORCH_CHECK(!scale_result.defined() || (scale_result.numel() == 1 && scale_result.scalar_type() == at::kFloat),
              "scale_result must be one float32 value, got ", scale_result.scalar_type(), " of ", scale_result.sizes());
  Output out(given, {m, n}, out_type, x.codes);
  if (out.get().numel() == 0) return call.give(out.finish());
  // 8 bits are rounded from f32, once
  const at::Tensor sums = narrow ? make({m, n}, at::kFloat, x.codes) : out.get();
  const bool blocks = is_by_blocks(x) || is_by_blocks(y);
  const at::Tensor added =
      bias.defined() ? bias.reshape({n}).to(blocks ? at::kFloat : sums.scalar_type()).contiguous() : bias;
  (blocks ? multiply_values : multiply_codes)(x, y, added, sums);
  if (narrow) {
    if (scale_result.defined()) sums.mul_(scale_result);
    const rdna_tensor rounded = describe_stored(out.get()), from = describe(sums);
    check(rdna_op_cast_saturating(stream_of(sums), &from, &rounded));
  }
  return call.give(out.finish());
}

bool scaled_mm(Call &call) {  // self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum, [out]
  check_matrices(call.tensor(0), call.tensor(1));
  const auto [x, y] = by_shapes(call.tensor(0), call.tensor(1), call.tensor(2), call.tensor(3));
  return multiply(call, x, y, call.tensor(4), call.tensor(5), call.type(6));
}

void check_contraction(const std::vector<int64_t> &dims) {
  TORCH_CHECK_VALUE(dims.empty() || dims == std::vector<int64_t>({1, 0}),
                    "contraction_dim on rdna is empty or (1, 0), the columns of mat1 and the rows of mat2, got ",
                    at::IntArrayRef(dims));
}

// self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim,
// use_fast_accum, [out]
bool scaled_mm_recipes(Call &call) {
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  check_matrices(a, b);
  check_contraction(call.integers(10));
  const Scaled x{a, call.tensors(2), call.integers(3), call.integers(4)};
  Scaled y{b.t(), call.tensors(5), call.integers(6), call.integers(7)};
  if (y.recipes == std::vector<int64_t>{ROW_WISE})  // which lie as b's columns do
    for (at::Tensor &scale : y.scales)
      if (scale.dim() == 2 && scale.size(0) == 1) scale = scale.t();
  check_recipes(x, y);
  return multiply(call, x, y, call.tensor(8), {}, call.type(9));
}

#if __has_include(<ATen/ops/_grouped_mm.h>)
// Scales of rows of a and columns of b, in each group where both are matrices.
at::Tensor grouped(const at::Tensor &a, const at::Tensor &b, const at::Tensor &scale_a, const at::Tensor &scale_b,
                   const std::optional<at::Tensor> &offs, at::ScalarType type) {
  const at::Tensor ends = offs.value_or(at::Tensor());
  for (const at::Tensor &t : {a, b})
    TORCH_CHECK(at::isFloat8Type(t.scalar_type()) && stored_dtype_of(t.scalar_type()) && (t.dim() == 2 || t.dim() == 3),
                "_scaled_grouped_mm takes matrices or batches of them of 8-bit floats, got ", t.scalar_type(), " of ",
                t.sizes());
  const bool matrices = a.dim() == 2 && b.dim() == 2;
  TORCH_CHECK(ends.defined() || (a.dim() == 3 && b.dim() == 3), "_scaled_grouped_mm: offs says where groups end");
  const int64_t groups = matrices ? ends.size(0) : 1;
  const int64_t of_a = a.numel() / std::max<int64_t>(1, a.size(-1)) * groups,
                of_b = b.numel() / std::max<int64_t>(1, b.size(-2)) * groups;
  TORCH_CHECK(scale_a.scalar_type() == at::kFloat && scale_b.scalar_type() == at::kFloat && scale_a.numel() == of_a &&
                  scale_b.numel() == of_b,
              "_scaled_grouped_mm on rdna takes float32 scales of rows of mat_a, ", of_a, ", and of columns of mat_b, ",
              of_b, "; got ", scale_a.scalar_type(), " of ", scale_a.sizes(), " and ", scale_b.scalar_type(), " of ",
              scale_b.sizes());
  const at::Tensor x = a.to(at::kFloat), y = b.to(at::kFloat);
  if (!matrices) {
    x.mul_(scale_a.reshape_as(a.select(-1, 0)).unsqueeze(-1));
    y.mul_(scale_b.reshape_as(b.select(-2, 0)).unsqueeze(-2));
  }
  const at::Tensor out = at::_grouped_mm(x, y, offs);
  if (matrices) out.mul_(scale_a.reshape({groups, -1, 1})).mul_(scale_b.reshape({groups, 1, -1}));
  return out.to(type);
}

bool scaled_grouped_mm(Call &call) {  // self, mat2, scale_a, scale_b, offs, bias, scale_result, out_dtype, …
  TORCH_CHECK(call.none(5) && call.none(6), "_scaled_grouped_mm takes neither bias nor scale_result");
  return call.give(grouped(call.tensor(0), call.tensor(1), call.tensor(2), call.tensor(3), call.optional(4),
                           call.type(7).value_or(at::kBFloat16)));
}

// self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, offs, bias, out_dtype, contraction_dim, …
bool scaled_grouped_mm_recipes(Call &call) {
  TORCH_CHECK(call.none(9), "_scaled_grouped_mm_v2 takes no bias");
  check_contraction(call.integers(11));
  const std::vector<int64_t> rows{ROW_WISE};
  TORCH_CHECK_NOT_IMPLEMENTED(call.integers(3) == rows && call.integers(6) == rows,
                              "_scaled_grouped_mm_v2 on rdna has scales of rows alone (recipe 1), got recipes ",
                              at::IntArrayRef(call.integers(3)), " and ", at::IntArrayRef(call.integers(6)));
  return call.give(grouped(call.tensor(0), call.tensor(1), call.tensors(2).at(0), call.tensors(5).at(0),
                           call.optional(8), call.type(10).value_or(at::kBFloat16)));
}
#endif

const Single singles[] = {
    {"_scaled_mm", scaled_mm},
    {"_scaled_mm.out", scaled_mm},
    {"_scaled_mm_v2", scaled_mm_recipes},
    {"_scaled_mm_v2.out", scaled_mm_recipes},
#if __has_include(<ATen/ops/_grouped_mm.h>)
    {"_scaled_grouped_mm", scaled_grouped_mm},
    {"_scaled_grouped_mm_v2", scaled_grouped_mm_recipes},
#endif
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
