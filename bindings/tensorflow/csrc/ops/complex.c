/* Complex numbers: pairs of reals to librdna, one value to TensorFlow. */
#include "rdna/op/complex.h"

#include <string.h>

#include "compose.h"
#include "ops.h"
#include "unsigned.h"

static const rdna_complex one = {1, 0};

rdna_status compute_complex_map(call *c) {
  rdna_tensor x, out;
  TRY(call_pairs(c, 0, &x));
  TRY(call_output_pairs(c, 0, x.rank - 1, x.shape, &out));
  return rdna_op_complex_map(c->stream, (rdna_complex_map)c->number, &x, &out);
}

/* 1 / sqrt(x) */
rdna_status compute_complex_rsqrt(call *c) {
  rdna_tensor x, out;
  TRY(call_pairs(c, 0, &x));
  TRY(call_output_pairs(c, 0, x.rank - 1, x.shape, &out));
  TRY(rdna_op_complex_map(c->stream, RDNA_COMPLEX_SQRT, &x, &out));
  return rdna_op_complex_map(c->stream, RDNA_COMPLEX_RECIPROCAL, &out, &out);
}

rdna_status compute_complex_square(call *c) {
  rdna_tensor x, out;
  TRY(call_pairs(c, 0, &x));
  TRY(call_output_pairs(c, 0, x.rank - 1, x.shape, &out));
  return rdna_op_complex_zip(c->stream, RDNA_COMPLEX_MUL, &x, &x, one, &out);
}

static rdna_status two(call *c, rdna_tensor *a, rdna_tensor *b, int *rank, int64_t *shape) {
  TRY(call_pairs(c, 0, a));
  TRY(call_pairs(c, 1, b));
  rdna_tensor front_a = *a, front_b = *b;
  front_a.rank--;
  front_b.rank--;
  return call_broadcast(c, &front_a, &front_b, rank, shape);
}

rdna_status compute_complex_zip(call *c) {
  rdna_tensor a, b, out;
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(two(c, &a, &b, &rank, shape));
  TRY(call_output_pairs(c, 0, rank, shape, &out));
  return rdna_op_complex_zip(c->stream, (rdna_complex_zip)c->number, &a, &b, one, &out);
}

/* |a| op |b|, and 0 where b is: DivNoNan, MulNoNan. */
rdna_status compute_complex_or_zero(call *c) {
  rdna_tensor a, b, out, size, none;
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(two(c, &a, &b, &rank, shape));
  TRY(call_output_pairs(c, 0, rank, shape, &out));
  TRY(rdna_op_complex_zip(c->stream, (rdna_complex_zip)c->number, &a, &b, one, &out));
  TRY(call_scratch(c, b.dtype, b.rank - 1, b.shape, &size));
  TRY(rdna_op_complex_measure(c->stream, RDNA_COMPLEX_ABS, &b, &size));
  TRY(answers(c, RDNA_COMPARE_EQ, &size, 0, &none));
  none.shape[none.rank] = 2; /* for both parts */
  none.stride[none.rank++] = 0;
  return rdna_op_masked_fill(c->stream, &none, zero, &out, &out);
}

/* (y, dy): dy times the conjugate of the derivative, by the result y, of the function whose row this is; TensorFlow's
 * gradient of tanh gives y as its conjugate already. */
rdna_status compute_complex_gradient(call *c) {
  rdna_tensor y, dy, out, d;
  TRY(call_pairs(c, 0, &y));
  TRY(call_pairs(c, 1, &dy));
  if (!same_shape(&y, dy.rank, dy.shape)) return call_fail(c, RDNA_INVALID_ARGUMENT, "y and dy must be of one shape");
  TRY(call_output_pairs(c, 0, y.rank - 1, y.shape, &out));
  TRY(like(c, &y, &d));
  rdna_complex half = {0.5, 0}, minus_half = {-0.5, 0};
  switch (c->number) {
    case GRADIENT_SQRT: /* 1 / (2 y) */
      TRY(rdna_op_complex_map(c->stream, RDNA_COMPLEX_RECIPROCAL, &y, &d));
      TRY(rdna_op_complex_zip_scalar(c->stream, RDNA_COMPLEX_MUL, &d, half, false, one, &d));
      break;
    case GRADIENT_RSQRT: /* -y^3 / 2 */
      TRY(rdna_op_complex_zip(c->stream, RDNA_COMPLEX_MUL, &y, &y, one, &d));
      TRY(rdna_op_complex_zip(c->stream, RDNA_COMPLEX_MUL, &d, &y, one, &d));
      TRY(rdna_op_complex_zip_scalar(c->stream, RDNA_COMPLEX_MUL, &d, minus_half, false, one, &d));
      break;
    case GRADIENT_TANH: /* 1 - y^2 */
      TRY(rdna_op_complex_zip(c->stream, RDNA_COMPLEX_MUL, &y, &y, one, &d));
      TRY(rdna_op_complex_zip_scalar(c->stream, RDNA_COMPLEX_SUB, &d, one, true, one, &d));
      break;
    default: /* of the reciprocal: -y^2 */
      TRY(rdna_op_complex_zip(c->stream, RDNA_COMPLEX_MUL, &y, &y, one, &d));
      TRY(rdna_op_complex_map(c->stream, RDNA_COMPLEX_NEG, &d, &d));
  }
  if (c->number != GRADIENT_TANH) TRY(rdna_op_complex_map(c->stream, RDNA_COMPLEX_CONJ, &d, &d));
  return rdna_op_complex_zip(c->stream, RDNA_COMPLEX_MUL, &dy, &d, one, &out);
}

/* Equal where both parts are, not equal where one is not. */
rdna_status compute_complex_compare(call *c) {
  bool equal = c->number == RDNA_COMPARE_EQ;
  rdna_tensor a, b, out, parts;
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(two(c, &a, &b, &rank, shape));
  TRY(call_output(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  shape[rank] = 2;
  TRY(call_scratch(c, RDNA_BOOL, rank + 1, shape, &parts));
  TRY(rdna_op_compare(c->stream, (rdna_compare)c->number, &a, &b, &parts));
  return rdna_op_reduce(c->stream, equal ? RDNA_REDUCTION_ALL : RDNA_REDUCTION_ANY, &parts, 1u << rank, 0, &out);
}

rdna_status compute_complex_measure(call *c) {
  rdna_tensor x, out;
  TRY(call_pairs(c, 0, &x));
  TRY(call_output(c, 0, x.rank - 1, x.shape, &out));
  return rdna_op_complex_measure(c->stream, (rdna_complex_measure)c->number, &x, &out);
}

/* Real (|which| 0) or imaginary (1) parts, as a view. */
static rdna_tensor parts_of(const rdna_tensor *pairs, int which) {
  rdna_tensor view = narrowed(pairs, pairs->rank - 1, which, 1);
  view.rank--;
  return view;
}

rdna_status compute_complex_part(call *c) {
  rdna_tensor x, out;
  TRY(call_pairs(c, 0, &x));
  TRY(call_output(c, 0, x.rank - 1, x.shape, &out));
  rdna_tensor part = parts_of(&x, c->number);
  return rdna_op_copy(c->stream, &part, &out);
}

rdna_status compute_complex(call *c) {
  rdna_tensor in[2], out;
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &in[0]));
  TRY(call_input(c, 1, &in[1]));
  TRY(call_broadcast(c, &in[0], &in[1], &rank, shape));
  TRY(call_output_pairs(c, 0, rank, shape, &out));
  for (int i = 0; i < 2; i++) {
    rdna_tensor part = parts_of(&out, i);
    TRY(rdna_op_copy(c->stream, &in[i], &part));
  }
  return RDNA_OK;
}

static rdna_status to_complex(call *c, const rdna_tensor *x) {
  rdna_tensor out;
  TRY(call_output_pairs(c, 0, x->rank, x->shape, &out));
  rdna_tensor real = parts_of(&out, 0), imag = parts_of(&out, 1);
  TRY(rdna_op_copy(c->stream, x, &real));
  return fill(c, 0, &imag);
}

static bool is_complex(TF_DataType type) { return type == TF_COMPLEX64 || type == TF_COMPLEX128; }

rdna_status from_unsigned(call *c, TF_DataType type, bool to_float, rdna_tensor *x) {
  if (type != TF_UINT16 && type != TF_UINT32 && type != TF_UINT64) return RDNA_OK;
  static const double all = 0x1p64;
  rdna_tensor wide, more, negative;
  TRY(as_type(c, x, RDNA_I64, &wide));
  if (type != TF_UINT64) {
    rdna_scalar mask = rdna_scalar_integer(type == TF_UINT16 ? UINT16_MAX : (int64_t)UINT32_MAX);
    TRY(like(c, &wide, &more));
    TRY(rdna_op_zip_scalar(c->stream, RDNA_ZIP_BITWISE_AND, &wide, mask, false, zero, zero, &more));
    wide = more;
  } else if (to_float) {
    TRY(answers(c, RDNA_COMPARE_LT, &wide, 0, &negative));
    TRY(as_type(c, &wide, RDNA_F64, &more));
    wide = more;
    TRY(like(c, &wide, &more));
    TRY(affine(c, &wide, 1, all, &more));
    TRY(rdna_op_where(c->stream, &negative, &more, &wide, &wide));
  }
  *x = wide;
  return RDNA_OK;
}

rdna_status compute_cast(call *c) {
  rdna_tensor x, out;
  TF_DataType from, to = tf.ExpectedOutputDataType(c->ctx, 0);
  TRY(call_input(c, 0, &x));
  TRY(call_type(c, 0, &from));
  bool to_float = is_complex(to) || dtype_of(to) <= RDNA_F64, wraps = to == TF_UINT16 || to == TF_UINT32;
  TRY(from_unsigned(c, from, to_float, &x));
  if (is_complex(to)) return to_complex(c, &x);
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (wraps && x.dtype <= RDNA_F64) TRY(as_type(c, &x, RDNA_I64, &x)); /* which reaches further than 2^31 */
  return rdna_op_copy(c->stream, &x, &out);
}

/* From complex: to complex of the other width, or the real part. */
rdna_status compute_complex_cast(call *c) {
  rdna_tensor x, out;
  TRY(call_pairs(c, 0, &x));
  if (is_complex(tf.ExpectedOutputDataType(c->ctx, 0))) {
    TRY(call_output_pairs(c, 0, x.rank - 1, x.shape, &out));
    return rdna_op_copy(c->stream, &x, &out);
  }
  TRY(call_output(c, 0, x.rank - 1, x.shape, &out));
  rdna_tensor real = parts_of(&x, 0);
  return rdna_op_copy(c->stream, &real, &out);
}

rdna_status compute_complex_same_value(call *c) { /* zeros_like, ones_like */
  rdna_tensor x, out;
  TRY(call_pairs(c, 0, &x));
  TRY(call_output_pairs(c, 0, x.rank - 1, x.shape, &out));
  rdna_tensor real = parts_of(&out, 0), imag = parts_of(&out, 1);
  TRY(fill(c, c->number, &real));
  return fill(c, 0, &imag);
}

rdna_status compute_complex_add_n(call *c) {
  rdna_tensor x, sum, out;
  TRY(call_pairs(c, 0, &sum));
  TRY(call_output_pairs(c, 0, sum.rank - 1, sum.shape, &out));
  if (call_inputs(c) == 1) return rdna_op_copy(c->stream, &sum, &out);
  for (int i = 1; i < call_inputs(c); i++) {
    TRY(call_pairs(c, i, &x));
    if (!same_shape(&x, out.rank, out.shape))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Inputs to operation AddN must have the same size and shape");
    TRY(zip(c, RDNA_ZIP_ADD, &sum, &x, &out));
    sum = out;
  }
  return RDNA_OK;
}

/* Rows and columns of the matrices before the pairs change places. */
static rdna_tensor turned(rdna_tensor x) {
  int64_t size = x.shape[x.rank - 3], stride = x.stride[x.rank - 3];
  x.shape[x.rank - 3] = x.shape[x.rank - 2], x.stride[x.rank - 3] = x.stride[x.rank - 2];
  x.shape[x.rank - 2] = size, x.stride[x.rank - 2] = stride;
  return x;
}

/* Number 0: MatMul of two matrices, transposed; 1: of batches of the same sizes, whose transposes are conjugate. */
rdna_status compute_complex_matmul(call *c) {
  const struct attributes *at = c->attributes;
  rdna_tensor a, b, out;
  TRY(call_pairs(c, 0, &a));
  TRY(call_pairs(c, 1, &b));
  bool turn_a = c->number ? at->adj_x : at->transpose_a, turn_b = c->number ? at->adj_y : at->transpose_b;
  if (a.rank < 3 || a.rank != b.rank || memcmp(a.shape, b.shape, (size_t)(a.rank - 3) * sizeof *a.shape) != 0)
    return call_fail(c, RDNA_UNSUPPORTED, "products of complex matrices whose batches are broadcast");
  if (turn_a) a = turned(a);
  if (turn_b) b = turned(b);
  if (a.shape[a.rank - 2] != b.shape[b.rank - 3])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Matrix size-incompatible: %lld columns, %lld rows",
                     (long long)a.shape[a.rank - 2], (long long)b.shape[b.rank - 3]);
  int64_t shape[RDNA_MAX_RANK], batch = 1;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 2] = b.shape[b.rank - 2];
  TRY(call_output_pairs(c, 0, a.rank - 1, shape, &out));
  for (int i = 0; i < a.rank - 3; i++) batch *= a.shape[i];
  rdna_tensor *all[] = {&a, &b, &out};
  for (int i = 0; i < 3; i++) { /* the dimensions of a batch, without gaps, become one */
    rdna_tensor *x = all[i];
    int64_t whole = x->shape[x->rank - 3] * x->shape[x->rank - 2] * 2;
    rdna_tensor flat = *x;
    for (int k = 0; k < 3; k++)
      flat.shape[k + 1] = x->shape[x->rank - 3 + k], flat.stride[k + 1] = x->stride[x->rank - 3 + k];
    flat.rank = 4;
    flat.shape[0] = batch;
    flat.stride[0] = whole;
    *x = flat;
  }
  bool conjugate = c->number == 1;
  return rdna_op_complex_gemm(c->stream, one, &a, conjugate && turn_a, &b, conjugate && turn_b, false, &out);
}
