// Batches of matrices as the linear algebra of librdna takes them, and results as PyTorch declares them.
#pragma once

#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <utility>

#include "native.h"

namespace rdna_torch {

// What factorizations are offered in; what PyTorch's words say of others, its own functions raise.
inline bool factorable(const at::Tensor &t) { return t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble; }

// What systems are solved in: the same, and complex matrices.
inline bool solvable(const at::Tensor &t) { return factorable(t) || is_complex(t.scalar_type()); }

// A new tensor whose matrices are stored by columns, as LAPACK's are and PyTorch's results.
at::Tensor make_columns(at::IntArrayRef shape, at::ScalarType type, const at::Tensor &like);
// Whether all matrices are stored one behind the other, by rows or by columns.
bool dense(const at::Tensor &t);
// (batch, rows, columns) of a tensor of any rank, with one of the last two strides 1: a view where it lies so, else a
// copy, which is only good to be read.
at::Tensor flat(const at::Tensor &t);
// The same of one that is dense, to be written.
at::Tensor flat_written(const at::Tensor &t);
// (batch, rows) of (…, rows), contiguous.
at::Tensor flat_vectors(const at::Tensor &t);

// (…, n, 2, columns), reals, of complex (…, n, columns): a row's real parts and then its imaginary ones; and back into
// x.
at::Tensor split_rows(const at::Tensor &x);
void join_rows(const at::Tensor &rows, const at::Tensor &x);

// x becomes the solution of a x' = x, or with |left| false of x' a = x; x is dense, and a apart from it.
void solve_triangular(const at::Tensor &a, bool upper, bool left, bool unit, const at::Tensor &x);

// Rows of x change places as |pivots| say, in order or |backwards|; x is dense, and of their batch.
void swap_rows(const at::Tensor &pivots, bool backwards, const at::Tensor &x);

// |given| resized to be such a result, or a temporary where its strides are others and not |any| dense ones will do.
at::Tensor result_in(const at::Tensor &given, at::IntArrayRef sizes, at::IntArrayRef strides,
                     const at::TensorOptions &options, bool any_strides);

// The results of an operator that PyTorch declares with a function of its own, Meta::meta(…), which checks the
// arguments and says what shapes, strides and types the results have. Those that the caller gave are resized; where
// their strides are others, a temporary is written instead, and give() brings it home.
template <class Meta, size_t N>
class Results final : public Meta {
 public:
  // The last arguments of the call are the tensors of out=.
  explicit Results(Call &call) : call_(call) {
    for (size_t i = 0; i < N; i++) given_[i] = call.tensor(call.count() - N + i);
  }
  const at::Tensor &operator[](size_t i) const { return work_[i]; }
  const at::Tensor &maybe_get_output(int64_t i) override { return work_[static_cast<size_t>(i)]; }
  void set_output_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) {
    work_[static_cast<size_t>(i)] = result_in(given_[static_cast<size_t>(i)], sizes, strides, options, false);
  }
  void set_output_raw_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) {
    work_[static_cast<size_t>(i)] = result_in(given_[static_cast<size_t>(i)], sizes, strides, options, true);
  }
#if __has_include(<ATen/core/Dimname.h>)  // earlier releases name dimensions, and these are the functions they call
  void set_output_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options,
                          at::DimnameList) {
    set_output_strided(i, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options,
                              at::DimnameList) {
    set_output_raw_strided(i, sizes, strides, options);
  }
#endif
  bool give() {
    for (size_t i = 0; i < N; i++)
      if (!given_[i].is_same(work_[i])) given_[i].copy_(work_[i]);
    return give(std::make_index_sequence<N>());
  }

 private:
  template <size_t... I>
  bool give(std::index_sequence<I...>) {
    return call_.give({given_[I]...});
  }

  Call &call_;
  std::array<at::Tensor, N> given_, work_;
};

}  // namespace rdna_torch
