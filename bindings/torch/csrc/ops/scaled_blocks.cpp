#include "scaled_blocks.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "float8.h"

namespace rdna_torch {
namespace {

int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
int64_t rounded(int64_t n, int64_t to) { return parts(n, to) * to; }

int64_t rows_of(const Scaled &x) { return x.codes.size(0); }
int64_t depth_of(const Scaled &x) { return x.codes.size(1) * (is_pair_of_e2m1(x.codes.scalar_type()) ? 2 : 1); }
int64_t swizzle_of(const Scaled &x, size_t i) { return i < x.swizzles.size() ? x.swizzles[i] : NOT_SWIZZLED; }

// Values of a row that share a scale; 0 where all do.
int64_t block_of(int64_t recipe) {
  switch (recipe) {
    case BLOCK_1X16:
      return 16;
    case BLOCK_1X32:
      return 32;
    case BLOCK_1X128:
    case BLOCK_128X128:
      return 128;
    default:
      return 0;
  }
}

// (rows, blocks) of scales in the order of tiles of 128 rows and 4 blocks, in which rows r, r + 32, r + 64 and r + 96
// follow each other.
at::Tensor unswizzled(const at::Tensor &scale, int64_t rows, int64_t blocks) {
  const int64_t m = parts(rows, 128), n = parts(blocks, 4);
  const at::Tensor tiles = scale.contiguous().view({m, n, 32, 4, 4}).permute({0, 3, 2, 1, 4});
  return tiles.reshape({m * 128, n * 4}).narrow(0, 0, rows).narrow(1, 0, blocks);
}

// Whether scale |i| is of a type and of a number that its recipe takes.
bool fits(const Scaled &x, size_t i) {
  const at::Tensor &scale = x.scales[i];
  const at::ScalarType type = scale.scalar_type();
  const int64_t recipe = x.recipes[i], rows = rows_of(x), block = block_of(recipe);
  const int64_t blocks = block ? parts(depth_of(x), block) : 1;
  const bool swizzled = swizzle_of(x, i) == SWIZZLED_32_4_4, pairs = is_pair_of_e2m1(x.codes.scalar_type());
  switch (recipe) {
    case TENSOR_WISE:
      return type == at::kFloat && scale.numel() == 1;
    case ROW_WISE:
      return type == at::kFloat && !pairs && scale.dim() == 2 && scale.size(0) == rows && scale.size(1) == 1;
    case BLOCK_1X16:
      if (type != at::kFloat8_e4m3fn || !pairs) return false;
      break;
    case BLOCK_1X32:
      if (!is_e8m0(type)) return false;
      break;
    case BLOCK_1X128:
      return type == at::kFloat && !pairs && scale.sizes() == at::IntArrayRef({rows, blocks});
    case BLOCK_128X128:  // (blocks, tiles of rows)
      return type == at::kFloat && !pairs && scale.dim() == 2 && scale.size(1) == parts(rows, 128) &&
             (scale.size(0) == blocks || scale.size(0) == rounded(blocks, 4));
    default:
      return false;
  }
  if (!swizzled && scale.dim() == 2) return scale.sizes() == at::IntArrayRef({rows, blocks});
  return scale.numel() == (swizzled ? rounded(rows, 128) * rounded(blocks, 4) : rows * blocks);
}

bool is_known(const Scaled &x) {
  const auto &r = x.recipes;
  const bool pairs = is_pair_of_e2m1(x.codes.scalar_type());
  const bool two = r.size() == 2 && r[0] == BLOCK_1X16 && r[1] == TENSOR_WISE;
  if ((r.size() != 1 && !two) || r.size() != x.scales.size() || (pairs && !block_of(r[0]))) return false;
  for (size_t i = 0; i < r.size(); i++)
    if (!fits(x, i)) return false;
  return true;
}

// One for all with one for all, rows with rows, and blocks of one size, of which 128 x 128 goes with 1 x 128.
bool go_together(const Scaled &x, const Scaled &y) {
  if (x.recipes.size() != y.recipes.size()) return false;
  const int64_t a = x.recipes[0], b = y.recipes[0];
  return a == b ? a != BLOCK_128X128 : block_of(a) == 128 && block_of(b) == 128;
}

std::string said(const Scaled &x) {
  std::string words;
  for (const at::Tensor &s : x.scales)
    words +=
        (words.empty() ? "" : " and ") + std::string(c10::toString(s.scalar_type())) + " of " + c10::str(s.sizes());
  return words + " for recipe " + c10::str(x.recipes) + " and swizzle " + c10::str(x.swizzles);
}

}  // namespace

std::pair<Scaled, Scaled> by_shapes(const at::Tensor &a, const at::Tensor &b, const at::Tensor &scale_a,
                                    const at::Tensor &scale_b) {
  Scaled x{a, {scale_a}, {}, {}}, y{b.t(), {scale_b}, {}, {}};
  const bool sixteen = is_pair_of_e2m1(a.scalar_type()) && scale_a.scalar_type() == at::kFloat8_e4m3fn;
  if (sixteen || is_e8m0(scale_a.scalar_type())) {
    x.recipes = y.recipes = {sixteen ? BLOCK_1X16 : BLOCK_1X32};
    x.swizzles = y.swizzles = {SWIZZLED_32_4_4};
    if (is_known(x) && is_known(y)) return {x, y};
  }
  // Scales of b lie as b does here, and those of 128 x 128 blocks of a as a does.
  const int64_t rows[] = {TENSOR_WISE, ROW_WISE, BLOCK_1X128, BLOCK_128X128};
  for (const int64_t one : rows)
    for (const int64_t two : rows) {
      x.recipes = {one}, y.recipes = {two}, x.swizzles = y.swizzles = {};
      x.scales = {one == BLOCK_128X128 && scale_a.dim() == 2 ? scale_a.t() : scale_a};
      y.scales = {two != BLOCK_128X128 && scale_b.dim() == 2 ? scale_b.t() : scale_b};
      if (is_known(x) && is_known(y) && go_together(x, y)) return {x, y};
    }
  const int64_t m = rows_of(x), n = rows_of(y), k = parts(depth_of(x), 128);
  TORCH_CHECK(false,
              "Invalid scaling configuration: on rdna scale_a and scale_b are float32 of one value each, of shapes (",
              m, ", 1) and (1, ", n, "), or of blocks of 128 values, (", m, ", ", k, ") and (", k, ", ", n, ") or (", k,
              ", ", parts(n, 128),
              "), or, swizzled, float8_e8m0fnu of blocks of 32 values or float8_e4m3fn of 16 of 4 bits;"
              " got ",
              scale_a.scalar_type(), " of ", scale_a.sizes(), " and ", scale_b.scalar_type(), " of ", scale_b.sizes());
}

static void check_swizzles(const Scaled &x) {
  for (size_t i = 0; i < x.swizzles.size(); i++) {
    const bool may = i < x.recipes.size() && (x.recipes[i] == BLOCK_1X16 || x.recipes[i] == BLOCK_1X32);
    TORCH_CHECK_VALUE(x.swizzles[i] == NOT_SWIZZLED || (may && x.swizzles[i] == SWIZZLED_32_4_4),
                      "scales of float32 on rdna are not swizzled: give no swizzle or NO_SWIZZLE (0), got ",
                      x.swizzles[i]);
  }
}

void check_recipes(const Scaled &x, const Scaled &y) {
  check_swizzles(x);
  check_swizzles(y);
  const bool known = !x.recipes.empty() && !y.recipes.empty() && is_known(x) && is_known(y);
  TORCH_CHECK_VALUE(known && go_together(x, y), "Invalid scaling configuration: on rdna ", x.codes.scalar_type(),
                    " of ", x.codes.sizes(), " and ", y.codes.scalar_type(), " of ", y.codes.sizes(),
                    ", rows of what is summed over, are not multiplied with ", said(x), ", and ", said(y));
}

bool is_by_blocks(const Scaled &x) { return block_of(x.recipes[0]) > 0; }

at::Tensor scaled_values(const Scaled &x) {
  const int64_t rows = rows_of(x), depth = depth_of(x);
  at::Tensor values =
      is_pair_of_e2m1(x.codes.scalar_type()) ? e2m1_values(x.codes) : x.codes.contiguous().to(at::kFloat);
  for (size_t i = 0; i < x.scales.size(); i++) {
    const int64_t recipe = x.recipes[i], block = block_of(recipe);
    at::Tensor scale = x.scales[i].to(at::kFloat);
    if (!block) {
      values.mul_(scale.numel() == 1 ? scale.reshape({}) : scale.reshape({rows, 1}));
      continue;
    }
    const int64_t blocks = parts(depth, block);
    if (swizzle_of(x, i) == SWIZZLED_32_4_4)
      scale = unswizzled(scale, rows, blocks);
    else if (recipe == BLOCK_128X128)
      scale = at::repeat_interleave(scale.narrow(0, 0, blocks).t(), 128, 0).narrow(0, 0, rows);
    else
      scale = scale.reshape({rows, blocks});
    const int64_t whole = depth / block;
    values.narrow(1, 0, whole * block).unflatten(1, {whole, block}).mul_(scale.narrow(1, 0, whole).unsqueeze(-1));
    if (whole < blocks) values.narrow(1, whole * block, depth - whole * block).mul_(scale.narrow(1, whole, 1));
  }
  return values;
}

}  // namespace rdna_torch
