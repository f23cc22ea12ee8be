/* Elementwise kernels. Every one takes tiles of RDNA__ELEMENTWISE_TILE_BYTES of its first input, one a work-group
 * along x; the grid covers the count. */
#ifndef RDNA_MATH_ELEMENTWISE_KERNELS_H
#define RDNA_MATH_ELEMENTWISE_KERNELS_H

#include <stdint.h>

enum {
  RDNA__ELEMENTWISE_THREADS = 256,
  RDNA__ELEMENTWISE_VECTORS = 1, /* of 16 bytes, a thread: two are 3 % slower on an H200 */
  RDNA__ELEMENTWISE_TILE_BYTES = RDNA__ELEMENTWISE_THREADS * RDNA__ELEMENTWISE_VECTORS * 16
};

/* out = f(x) */
struct unary_args {
  const void *x;
  void *out;
  int64_t count;
};

/* out = fma(x, scale, shift) */
struct affine_args {
  const void *x;
  void *out;
  int64_t count;
  float scale, shift;
};

/* out = f(a, b) */
struct binary_args {
  const void *a;
  const void *b;
  void *out;
  int64_t count;
};

/* out = f(a, b), b repeated for each row of a */
struct binary_row_args {
  const void *a; /* (rows, cols) */
  const void *b; /* (cols) */
  void *out;     /* (rows, cols) */
  int64_t rows, cols;
};

/* name, expression of a and b */
#define RDNA__BINARY_OPS(OP) \
  OP(add, a + b)             \
  OP(sub, a - b)             \
  OP(mul, a *b)              \
  OP(div, a / b)

/* name, expression of x */
#define RDNA__UNARY_OPS(OP)            \
  OP(neg, -x)                          \
  OP(exp, scalar_exp(x))               \
  OP(relu, x > 0 || x != x ? x : 0.0f) \
  OP(sigmoid, scalar_sigmoid(x))       \
  OP(tanh, scalar_tanh(x))             \
  OP(silu, scalar_silu(x))             \
  OP(gelu_tanh, scalar_gelu_tanh(x))   \
  OP(gelu_erf, scalar_gelu(x))

#define RDNA__ELEMENTWISE_TYPE_KERNELS(X, type)                         \
  X(add_##type, struct binary_args, 256, rdna__binary_case)             \
  X(sub_##type, struct binary_args, 256, rdna__binary_case)             \
  X(mul_##type, struct binary_args, 256, rdna__binary_case)             \
  X(div_##type, struct binary_args, 256, rdna__binary_case)             \
  X(swiglu_##type, struct binary_args, 256, rdna__binary_case)          \
  X(add_row_##type, struct binary_row_args, 256, rdna__binary_row_case) \
  X(sub_row_##type, struct binary_row_args, 256, rdna__binary_row_case) \
  X(mul_row_##type, struct binary_row_args, 256, rdna__binary_row_case) \
  X(div_row_##type, struct binary_row_args, 256, rdna__binary_row_case) \
  X(neg_##type, struct unary_args, 256, rdna__unary_case)               \
  X(exp_##type, struct unary_args, 256, rdna__unary_case)               \
  X(relu_##type, struct unary_args, 256, rdna__unary_case)              \
  X(sigmoid_##type, struct unary_args, 256, rdna__unary_case)           \
  X(tanh_##type, struct unary_args, 256, rdna__unary_case)              \
  X(silu_##type, struct unary_args, 256, rdna__unary_case)              \
  X(gelu_tanh_##type, struct unary_args, 256, rdna__unary_case)         \
  X(gelu_erf_##type, struct unary_args, 256, rdna__unary_case)          \
  X(affine_##type, struct affine_args, 256, rdna__affine_case)

/* name, argument struct, threads of a group, maker of random cases */
#define RDNA_ELEMENTWISE_KERNELS(X)      \
  RDNA__ELEMENTWISE_TYPE_KERNELS(X, f32) \
  RDNA__ELEMENTWISE_TYPE_KERNELS(X, f16) \
  RDNA__ELEMENTWISE_TYPE_KERNELS(X, bf16)

#endif
