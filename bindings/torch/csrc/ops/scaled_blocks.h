// Matrices of floats of 8 and 4 bits with scales: which scale is which value's, and what the codes stand for.
#pragma once

#include <utility>
#include <vector>

#include "native.h"

namespace rdna_torch {

// How PyTorch numbers what a scale is of (torch.nn.functional.ScalingType), and how scales lie (SwizzleType).
enum ScalingRecipe : int64_t { TENSOR_WISE, ROW_WISE, BLOCK_1X16, BLOCK_1X32, BLOCK_1X128, BLOCK_128X128 };
enum ScalingSwizzle : int64_t { NOT_SWIZZLED, SWIZZLED_32_4_4 };

// One side of a product: rows of values that are summed over. Of several scales all hold.
struct Scaled {
  at::Tensor codes;  // (rows, k), of pairs (rows, k / 2)
  std::vector<at::Tensor> scales;
  std::vector<int64_t> recipes, swizzles;
};

// The sides of a and b, whose recipes are what the scales' types and shapes say; raises where they say none.
std::pair<Scaled, Scaled> by_shapes(const at::Tensor &a, const at::Tensor &b, const at::Tensor &scale_a,
                                    const at::Tensor &scale_b);
// Raises where scales are not as their recipes ask.
void check_recipes(const Scaled &x, const Scaled &y);
bool is_by_blocks(const Scaled &x);
// (rows, k), f32.
at::Tensor scaled_values(const Scaled &x);

}  // namespace rdna_torch
