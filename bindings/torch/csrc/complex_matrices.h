// Complex matrices as reals: what librdna factors is real.
#pragma once

#include <ATen/core/Tensor.h>

namespace rdna_torch {

// (…, 2 m, 2 n), reals, of complex (…, m, n): a number is [[re, -im], [im, re]] there, so that sums, products and
// adjoints of such matrices are those of the complex ones.
at::Tensor real_matrix(const at::Tensor &a);
// Back: (…, m, n), complex.
at::Tensor complex_matrix(const at::Tensor &real);

// As LAPACK's geqrf: |a| (…, m, n) becomes R and the vectors of reflections, |tau| their factors.
void complex_qr(const at::Tensor &a, const at::Tensor &tau);
// Q x, or with |adjoint| Q^H x, of the reflections in |a| and |tau|.
at::Tensor complex_reflected(const at::Tensor &a, const at::Tensor &tau, bool adjoint, const at::Tensor &x);

// |v| (…, 2 n, 2 n) is orthogonal, and its columns, as complex vectors, are two of each eigenspace's dimension, as
// those of real_matrix() of a Hermitian matrix are: n of them that are a unitary basis of the same spaces in the same
// order.
at::Tensor complex_basis(const at::Tensor &v);

}  // namespace rdna_torch
