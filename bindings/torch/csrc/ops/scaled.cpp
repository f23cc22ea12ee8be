// Products of 8-bit floats with scales: _scaled_mm, its out= form, and the one with recipes.
#include <ATen/Functions.h>

#include "float8.h"
#include "native.h"
#include "rdna/op/cast.h"
#include "rdna/op/gemm.h"

namespace rdna_torch {
namespace {

enum { TENSOR_WISE, ROW_WISE };  // the first of PyTorch's recipes

bool is_e5m2(at::ScalarType type) { return type == at::kFloat8_e5m2 || type == at::kFloat8_e5m2fnuz; }

void check_matrices(const at::Tensor &a, const at::Tensor &b) {
  TORCH_CHECK(a.dim() == 2, "mat1 must be a matrix");
  TORCH_CHECK(b.dim() == 2, "mat2 must be a matrix");
  TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1), " and ",
              b.size(0), "x", b.size(1), ")");
  TORCH_CHECK(at::isFloat8Type(a.scalar_type()), "Expected mat1 to be Float8 matrix got ", a.scalar_type());
  TORCH_CHECK(at::isFloat8Type(b.scalar_type()), "Expected mat2 to be Float8 matrix got ", b.scalar_type());
  TORCH_CHECK(!is_e5m2(a.scalar_type()) || !is_e5m2(b.scalar_type()), "Multiplication of two ", a.scalar_type(),
              " matrices is not supported");
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

// One scale for all, or one a row of |rows|, which lies in dimension |dim| of a matrix.
bool is_recipe(int64_t recipe, const at::Tensor &scale, int64_t rows, int64_t dim) {
  if (scale.scalar_type() != at::kFloat) return false;
  if (recipe == TENSOR_WISE) return scale.numel() == 1;
  return recipe == ROW_WISE && scale.dim() == 2 && scale.size(dim) == rows && scale.size(1 - dim) == 1;
}

bool multiply(Call &call, const at::Tensor &scale_a, const at::Tensor &scale_b, bool is_known, const at::Tensor &bias,
              const at::Tensor &scale_result, std::optional<at::ScalarType> type) {
  const at::Tensor a = call.tensor(0), b = call.tensor(1), given = call.output();
  const int64_t m = a.size(0), n = b.size(1);
  TORCH_CHECK(!given.defined() || !type || *type == given.scalar_type(), "out_dtype must match output matrix type");
  const at::ScalarType out_type = type.value_or(given.defined() ? given.scalar_type() : a.scalar_type());
  const bool narrow = at::isFloat8Type(out_type);
  TORCH_CHECK(narrow || is_float(out_type),
              "Only float32, float16, bfloat16 and float8 output types are supported, got ", out_type);
  TORCH_CHECK(
      is_known,
      "Invalid scaling configuration: on rdna scale_a and scale_b are both float32, either of one value each, or "
      "of shapes (",
      m, ", 1) and (1, ", n, "); got ", scale_a.scalar_type(), " of ", scale_a.sizes(), " and ", scale_b.scalar_type(),
      " of ", scale_b.sizes());
  check_bias(bias, n, out_type);
  TORCH_CHECK(!scale_result.defined() || narrow, "scale_result is for results of 8-bit floats, got out_dtype ",
              out_type, ": multiply a wider result by it");
  TORCH_CHECK(!scale_result.defined() || (scale_result.numel() == 1 && scale_result.scalar_type() == at::kFloat),
              "scale_result must be one float32 value, got ", scale_result.scalar_type(), " of ", scale_result.sizes());
  Output out(given, {m, n}, out_type, a);
  if (out.get().numel() == 0) return call.give(out.finish());
  // 8 bits are rounded from f32, once
  const at::Tensor sums = narrow ? make({m, n}, at::kFloat, a) : out.get();
  const at::Tensor added = bias.defined() ? bias.reshape({n}).to(sums.scalar_type()).contiguous() : bias;
  const at::Tensor of_a = scale_a.reshape({-1}).contiguous(), of_b = scale_b.reshape({-1}).contiguous();
  const rdna_tensor x = describe_stored(a), y = describe_stored(b), z = describe(sums), s = describe(of_a),
                    t = describe(of_b);
  const Operand plus(added);
  const rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .bias = plus};
  check(rdna_op_gemm_f8(stream_of(a), &epilogue, &x, &s, &y, &t, &z));
  if (narrow) {
    if (scale_result.defined()) sums.mul_(scale_result);
    const rdna_tensor rounded = describe_stored(out.get()), from = describe(sums);
    check(rdna_op_cast_saturating(stream_of(a), &from, &rounded));
  }
  return call.give(out.finish());
}

bool scaled_mm(Call &call) {  // self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum, [out]
  const at::Tensor a = call.tensor(0), b = call.tensor(1), scale_a = call.tensor(2), scale_b = call.tensor(3);
  check_matrices(a, b);
  const int64_t m = a.size(0), n = b.size(1);
  const bool is_known = (is_recipe(TENSOR_WISE, scale_a, m, 0) && is_recipe(TENSOR_WISE, scale_b, n, 1)) ||
                        (is_recipe(ROW_WISE, scale_a, m, 0) && is_recipe(ROW_WISE, scale_b, n, 1));
  return multiply(call, scale_a, scale_b, is_known, call.tensor(4), call.tensor(5), call.type(6));
}

// self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim,
// use_fast_accum, [out]
bool scaled_mm_recipes(Call &call) {
  const at::Tensor a = call.tensor(0), b = call.tensor(1);
  const std::vector<at::Tensor> scales_a = call.tensors(2), scales_b = call.tensors(5);
  const std::vector<int64_t> recipe_a = call.integers(3), recipe_b = call.integers(6);
  check_matrices(a, b);
  TORCH_CHECK_VALUE(scales_a.size() == 1 && scales_b.size() == 1 && recipe_a.size() == 1 && recipe_a == recipe_b,
                    "Invalid scaling configuration: on rdna one scale and one recipe for both, got ", scales_a.size(),
                    " and ", scales_b.size());
  for (const size_t swizzle : {4, 7})
    for (const int64_t kind : call.integers(swizzle))
      TORCH_CHECK_VALUE(kind == 0, "scales on rdna are not swizzled: give no swizzle or NO_SWIZZLE (0), got ", kind);
  const std::vector<int64_t> contracted = call.integers(10);
  TORCH_CHECK_VALUE(contracted.empty() || contracted == std::vector<int64_t>({1, 0}),
                    "contraction_dim on rdna is empty or (1, 0), the columns of mat1 and the rows of mat2, got ",
                    at::IntArrayRef(contracted));
  const bool is_known =
      is_recipe(recipe_a[0], scales_a[0], a.size(0), 0) && is_recipe(recipe_b[0], scales_b[0], b.size(1), 1);
  return multiply(call, scales_a[0], scales_b[0], is_known, call.tensor(8), {}, call.type(9));
}

const Single singles[] = {
    {"_scaled_mm", scaled_mm},
    {"_scaled_mm.out", scaled_mm},
    {"_scaled_mm_v2", scaled_mm_recipes},
    {"_scaled_mm_v2.out", scaled_mm_recipes},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
