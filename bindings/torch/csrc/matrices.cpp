#include "matrices.h"

#include <ATen/Functions.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/Resize.h>

#include "rdna/op/linalg.h"

namespace rdna_torch {

at::Tensor make_columns(at::IntArrayRef shape, at::ScalarType type, const at::Tensor &like) {
  return at::empty_strided(shape, at::native::batched_matrix_contiguous_strides(shape, true),
                           at::TensorOptions().dtype(type).device(like.device()));
}

bool dense(const at::Tensor &t) { return t.is_contiguous() || t.mT().is_contiguous(); }

namespace {
std::vector<int64_t> flat_shape(const at::Tensor &t, int64_t kept) {
  std::vector<int64_t> shape{1};
  for (int64_t i = 0; i < t.dim() - kept; i++) shape[0] *= t.size(i);
  for (int64_t i = t.dim() - kept; i < t.dim(); i++) shape.push_back(t.size(i));
  return shape;
}
}  // namespace

at::Tensor flat(const at::Tensor &t) {
  const std::vector<int64_t> shape = flat_shape(t, 2);
  const int64_t row = t.stride(-2), column = t.stride(-1);
  const bool lies = (column == 1 && row >= t.size(-1)) || (row == 1 && column >= t.size(-2));
  if (lies && at::detail::computeStride(t.sizes(), t.strides(), shape)) return t.view(shape);
  return at::native::cloneBatchedColumnMajor(t).view(shape);
}

at::Tensor flat_written(const at::Tensor &t) { return t.view(flat_shape(t, 2)); }
at::Tensor flat_vectors(const at::Tensor &t) { return t.view(flat_shape(t, 1)); }

at::Tensor split_rows(const at::Tensor &x) { return at::view_as_real(x.resolve_conj()).transpose(-1, -2).contiguous(); }
void join_rows(const at::Tensor &rows, const at::Tensor &x) {
  x.copy_(at::view_as_complex(rows.transpose(-1, -2).contiguous()));
}

namespace {
// As reals, of which a complex number is [[a, -b], [b, a]]: triangular too, as its rows are divided by its diagonal
// first. It is as much work as the complex system.
void solve_complex(const at::Tensor &a, bool upper, bool unit, const at::Tensor &x) {
  const int64_t n = a.size(-1);
  at::Tensor rest = upper ? a.triu(1) : a.tril(-1), right = x;
  if (!unit) {
    const at::Tensor diagonal = a.diagonal(0, -2, -1).unsqueeze(-1);
    rest = rest.div(diagonal), right = x.div(diagonal);
  }
  const at::Tensor pairs = at::view_as_real(rest.resolve_conj()), re = pairs.select(-1, 0), im = pairs.select(-1, 1);
  const at::Tensor blocks = at::stack({at::stack({re, im.neg()}, -1), at::stack({im, re}, -1)}, -3);
  const at::Tensor rows = split_rows(right);
  std::vector<int64_t> system = a.sizes().vec(), twice = x.sizes().vec();
  system.end()[-1] = system.end()[-2] = twice.end()[-2] = 2 * n;
  solve_triangular(blocks.reshape(system), upper, true, true, rows.view(twice));
  join_rows(rows, x);
}
}  // namespace

void solve_triangular(const at::Tensor &a, bool upper, bool left, bool unit, const at::Tensor &x) {
  if (x.numel() == 0) return;
  if (is_complex(x.scalar_type())) return solve_complex(left ? a : a.mT(), upper == left, unit, left ? x : x.mT());
  const at::Tensor m = flat(left ? a : a.mT()), v = flat_written(left ? x : x.mT());
  const rdna_tensor system = describe(m), solution = describe(v);
  check(rdna_op_solve_triangular(stream_of(x), upper == left, unit, &system, &solution));
}

at::Tensor result_in(const at::Tensor &given, at::IntArrayRef sizes, at::IntArrayRef strides,
                     const at::TensorOptions &options, bool any_strides) {
  TORCH_CHECK(options.dtype() == given.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ",
              given.dtype(), " instead");
  TORCH_CHECK(options.device() == given.device(), "Expected out tensor to have device ", options.device(), ", but got ",
              given.device(), " instead");
  if (at::native::resize_output(given, sizes) && !strides.empty()) given.as_strided_(sizes, strides);
  const bool fits = strides.empty() || given.strides() == strides;
  if (fits || (any_strides && (given.dim() < 2 ? given.is_contiguous() : dense(given)))) return given;
  return at::empty_strided(sizes, strides, options);
}

void swap_rows(const at::Tensor &pivots, bool backwards, const at::Tensor &x) {
  if (x.numel() == 0) return;
  if (is_complex(x.scalar_type())) {
    const at::Tensor rows = split_rows(x);
    swap_rows(pivots, backwards, rows.flatten(-2));
    return join_rows(rows, x);
  }
  const at::Tensor p = flat_vectors(pivots.contiguous()), v = flat_written(x);
  const rdna_tensor exchanges = describe(p), rows = describe(v);
  check(rdna_op_swap_rows(stream_of(x), backwards, &exchanges, &rows));
}

}  // namespace rdna_torch
