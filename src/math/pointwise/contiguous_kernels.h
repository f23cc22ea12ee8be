/* The commonest operations on contiguous tensors, each with a kernel of its own, which pointwise.c launches where it
 * can. A work-group takes a tile of RDNA__CONTIGUOUS_TILE_BYTES of its first input, a thread RDNA__CONTIGUOUS_VECTORS
 * vectors of 16 bytes; the grid's x covers the count. */
#ifndef RDNA_MATH_CONTIGUOUS_KERNELS_H
#define RDNA_MATH_CONTIGUOUS_KERNELS_H

#include <stdint.h>

enum {
  RDNA__CONTIGUOUS_THREADS = 256,
  RDNA__CONTIGUOUS_VECTORS = 1, /* of 16 bytes, of a thread; two are 3 % slower on an H200 */
  RDNA__CONTIGUOUS_TILE_BYTES = RDNA__CONTIGUOUS_THREADS * RDNA__CONTIGUOUS_VECTORS * 16
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

/* out = f(a, b), b broadcast to each row of a */
struct binary_row_args {
  const void *a; /* (rows, cols) */
  const void *b; /* (cols) */
  void *out;     /* (rows, cols) */
  int64_t rows, cols;
};

/* The operations of rdna_zip that have kernels here: OP(NAME, name, expression). */
#define RDNA__CONTIGUOUS_ZIPS(OP) \
  OP(ADD, add, a + b)             \
  OP(SUB, sub, a - b)             \
  OP(MUL, mul, a *b)              \
  OP(DIV, div, a / b)

/* Those of rdna_map, without affine. |f| and |g| say which functions to use: scalar, or close or fast of fast.h. |g| is
 * for functions whose close form is near enough to the twin's, and faster. */
#define RDNA__CONTIGUOUS_MAPS(OP, f, g)      \
  OP(NEG, neg, -x)                           \
  OP(EXP, exp, f##_exp(x))                   \
  OP(RELU, relu, x > 0 || x != x ? x : 0.0f) \
  OP(SIGMOID, sigmoid, g##_sigmoid(x))       \
  OP(TANH, tanh, f##_tanh(x))                \
  OP(SILU, silu, g##_silu(x))                \
  OP(GELU_TANH, gelu_tanh, f##_gelu_tanh(x)) \
  OP(GELU_ERF, gelu_erf, f##_gelu(x))

#define RDNA__CONTIGUOUS_TYPE_KERNELS(X, type)                          \
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
#define RDNA_CONTIGUOUS_KERNELS(X)      \
  RDNA__CONTIGUOUS_TYPE_KERNELS(X, f32) \
  RDNA__CONTIGUOUS_TYPE_KERNELS(X, f16) \
  RDNA__CONTIGUOUS_TYPE_KERNELS(X, bf16)

#endif
