/* Products of matrices, and biases. */
#include <string.h>

#include "activation.h"
#include "compose.h"
#include "ops.h"
#include "rdna/op/gemm.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/reduce.h"

/* librdna multiplies floats: |transpose_a|, |transpose_b| of MatMul, |adj_x|, |adj_y| of the batched ones */
static rdna_status multiply(call *c, rdna_tensor a, bool turn_a, rdna_tensor b, bool turn_b, const rdna_tensor *out) {
  if (turn_a) a = transposed(a);
  if (turn_b) b = transposed(b);
  return rdna_op_gemm(c->stream, 1, &a, &b, 0, NULL, out);
}

/* Both operands as they are multiplied, and the product's shape. */
static rdna_status matrices(call *c, rdna_tensor *out_a, rdna_tensor *out_b, int64_t *shape) {
  const struct attributes *at = c->attributes;
  rdna_tensor a, b;
  TRY(call_input(c, 0, &a));
  TRY(call_input(c, 1, &b));
  if (a.rank != 2 || b.rank != 2)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "MatMul of tensors of rank %d and %d; both are matrices", a.rank,
                     b.rank);
  int64_t inner_a = a.shape[at->transpose_a ? 0 : 1], inner_b = b.shape[at->transpose_b ? 1 : 0];
  shape[0] = a.shape[at->transpose_a ? 1 : 0];
  shape[1] = b.shape[at->transpose_b ? 0 : 1];
  if (inner_a != inner_b)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: [%lld,%lld], In[1]: [%lld,%lld]",
                     (long long)a.shape[0], (long long)a.shape[1], (long long)b.shape[0], (long long)b.shape[1]);
  *out_a = at->transpose_a ? transposed(a) : a;
  *out_b = at->transpose_b ? transposed(b) : b;
  return RDNA_OK;
}

rdna_status compute_matmul(call *c) {
  rdna_tensor a, b, out;
  int64_t shape[2];
  TRY(matrices(c, &a, &b, shape));
  TRY(call_output(c, 0, 2, shape, &out));
  return rdna_op_gemm(c->stream, 1, &a, &b, 0, NULL, &out);
}

rdna_status call_activation(call *c, rdna_activation *out) {
  static const char *const words[] = {[RDNA_ACTIVATION_NONE] = "none",        [RDNA_ACTIVATION_RELU] = "relu",
                                      [RDNA_ACTIVATION_SIGMOID] = "sigmoid",  [RDNA_ACTIVATION_TANH] = "tanh",
                                      [RDNA_ACTIVATION_SILU] = "silu",        [RDNA_ACTIVATION_GELU_TANH] = "gelu_tanh",
                                      [RDNA_ACTIVATION_GELU_ERF] = "gelu_erf"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    *out = (rdna_activation)i;
    if (strcmp(c->attributes->activation, words[i]) == 0) return RDNA_OK;
  }
  return call_fail(c, RDNA_INVALID_ARGUMENT, "no activation '%s'", c->attributes->activation);
}

rdna_status call_activate(call *c, rdna_activation activation, const rdna_tensor *x, const rdna_tensor *out) {
  static const rdna_map maps[] = {
      [RDNA_ACTIVATION_RELU] = RDNA_MAP_RELU,           [RDNA_ACTIVATION_SIGMOID] = RDNA_MAP_SIGMOID,
      [RDNA_ACTIVATION_TANH] = RDNA_MAP_TANH,           [RDNA_ACTIVATION_SILU] = RDNA_MAP_SILU,
      [RDNA_ACTIVATION_GELU_TANH] = RDNA_MAP_GELU_TANH, [RDNA_ACTIVATION_GELU_ERF] = RDNA_MAP_GELU_ERF};
  if (activation == RDNA_ACTIVATION_NONE) return x->data == out->data ? RDNA_OK : rdna_op_copy(c->stream, x, out);
  return rdna_op_map(c->stream, maps[activation], x, zero, zero, out);
}

/* The shape that input 3, if there is one, gives to a product of |shape|, with one -1 found. */
static rdna_status shape_of_product(call *c, const int64_t *product, int *rank, int64_t *shape) {
  int64_t count = product[0] * product[1], known = 1;
  int open = -1;
  *rank = 2;
  memcpy(shape, product, 2 * sizeof *shape);
  if (!c->attributes->shape_count) return RDNA_OK;
  TRY(call_integers(c, 3, RDNA_MAX_RANK, shape, rank));
  for (int i = 0; i < *rank; i++) {
    if (shape[i] < -1 || (shape[i] == -1 && open >= 0))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "only one size of a shape may be -1, and none less");
    if (shape[i] == -1)
      open = i;
    else
      TRY(size_times(c, &known, shape[i]));
  }
  if (open >= 0 && known > 0 && count % known == 0) known *= shape[open] = count / known;
  if (known != count || (open >= 0 && shape[open] < 0))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "a product of %lld values in a shape of %lld", (long long)count,
                     (long long)known);
  return RDNA_OK;
}

/* activation(a b, in the shape that is given, + bias) */
rdna_status compute_fused_matmul(call *c) {
  rdna_tensor a, b, bias, out, product;
  rdna_gemm_epilogue epilogue = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 1, .bias = &bias};
  int64_t flat[2], shape[RDNA_MAX_RANK], along[RDNA_MAX_RANK];
  int rank;
  TRY(matrices(c, &a, &b, flat));
  TRY(call_input(c, 2, &bias));
  TRY(call_activation(c, &epilogue.activation));
  TRY(shape_of_product(c, flat, &rank, shape));
  if (bias.rank != 1 || rank < 2 || bias.shape[0] != shape[rank - 1])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Must provide as many biases as the last dimension of the input tensor");
  TRY(call_output(c, 0, rank, shape, &out));
  if (shape[rank - 1] == flat[1]) {
    product = reshaped(&out, 2, flat);
    return rdna_op_gemm_epilogue(c->stream, &epilogue, &a, &b, &product);
  }
  TRY(call_scratch(c, a.dtype, 2, flat, &product)); /* the biases are not along its columns */
  TRY(rdna_op_gemm(c->stream, 1, &a, &b, 0, NULL, &product));
  for (int i = 0; i < rank; i++) along[i] = i == rank - 1 ? bias.shape[0] : 1;
  product = reshaped(&product, rank, shape);
  bias = reshaped(&bias, rank, along);
  TRY(rdna_op_zip(c->stream, RDNA_ZIP_ADD, &product, &bias, zero, zero, &out));
  return call_activate(c, epilogue.activation, &out, &out);
}

/* |x| broadcast to |batch| dimensions in front of its matrices, as one dimension; copied where no one stride says it.
 */
static rdna_status as_batch(call *c, const rdna_tensor *x, int rank, const int64_t *batch, rdna_tensor *out) {
  int64_t count = 1, own = 1, shape[RDNA_MAX_RANK], flat[3];
  for (int i = 0; i < rank; i++) count *= batch[i];
  for (int i = 0; i < x->rank - 2; i++) own *= x->shape[i];
  flat[0] = own;
  flat[1] = x->shape[x->rank - 2];
  flat[2] = x->shape[x->rank - 1];
  *out = reshaped(x, 3, flat);
  if (own == count) return RDNA_OK;
  if (own == 1) {
    out->shape[0] = count;
    out->stride[0] = 0;
    return RDNA_OK;
  }
  for (int i = 0; i < rank; i++) shape[i] = batch[i];
  shape[rank] = flat[1];
  shape[rank + 1] = flat[2];
  rdna_tensor whole;
  TRY(call_scratch(c, x->dtype, rank + 2, shape, &whole));
  TRY(rdna_op_copy(c->stream, x, &whole));
  flat[0] = count;
  *out = reshaped(&whole, 3, flat);
  return RDNA_OK;
}

rdna_status compute_batch_matmul(call *c) {
  const struct attributes *at = c->attributes;
  rdna_tensor a, b, out;
  TRY(call_input(c, 0, &a));
  TRY(call_input(c, 1, &b));
  if (a.rank < 2 || b.rank < 2)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "products of tensors of rank %d and %d; at least 2", a.rank, b.rank);
  rdna_tensor front_a = a, front_b = b;
  front_a.rank -= 2;
  front_b.rank -= 2;
  int rank;
  int64_t shape[RDNA_MAX_RANK], flat[3] = {1};
  TRY(call_broadcast(c, &front_a, &front_b, &rank, shape));
  if (rank + 2 > RDNA_MAX_RANK) return call_fail(c, RDNA_UNSUPPORTED, "products of %d dimensions", rank + 2);
  const int64_t *ends_a = a.shape + a.rank - 2, *ends_b = b.shape + b.rank - 2;
  if (ends_a[at->adj_x ? 0 : 1] != ends_b[at->adj_y ? 1 : 0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "In[0] mismatch In[1] shape: %lld vs. %lld",
                     (long long)ends_a[at->adj_x ? 0 : 1], (long long)ends_b[at->adj_y ? 1 : 0]);
  for (int i = 0; i < rank; i++) flat[0] *= shape[i];
  flat[1] = shape[rank] = ends_a[at->adj_x ? 1 : 0];
  flat[2] = shape[rank + 1] = ends_b[at->adj_y ? 0 : 1];
  TRY(call_output(c, 0, rank + 2, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  rdna_tensor batch_a, batch_b, batch_out = reshaped(&out, 3, flat);
  TRY(as_batch(c, &a, rank, shape, &batch_a));
  TRY(as_batch(c, &b, rank, shape, &batch_b));
  return multiply(c, batch_a, at->adj_x, batch_b, at->adj_y, &batch_out);
}

/* ---- biases: along the last dimension, or the second in NCHW ---- */

static int bias_dim(const call *c, int rank) {
  return c->attributes->data_format[0] == 'N' && c->attributes->data_format[1] == 'C' ? 1 : rank - 1;
}

rdna_status compute_bias_add(call *c) {
  rdna_tensor x, bias, out;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &bias));
  if (x.rank < 2 || bias.rank != 1 || bias.shape[0] != x.shape[bias_dim(c, x.rank)])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Must provide as many biases as the last dimension of the input tensor");
  int64_t shape[RDNA_MAX_RANK];
  for (int i = 0; i < x.rank; i++) shape[i] = i == bias_dim(c, x.rank) ? bias.shape[0] : 1;
  bias = reshaped(&bias, x.rank, shape);
  TRY(call_output_over(c, 1, 0, x.rank, x.shape, &out));
  return rdna_op_zip(c->stream, RDNA_ZIP_ADD, &x, &bias, zero, zero, &out);
}

rdna_status compute_bias_gradient(call *c) {
  rdna_tensor dy, out;
  TRY(call_input(c, 0, &dy));
  if (dy.rank < 2)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "BiasAddGrad of a tensor of rank %d; at least 2", dy.rank);
  int dim = bias_dim(c, dy.rank);
  TRY(call_output(c, 0, 1, &dy.shape[dim], &out));
  return rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &dy, ((1u << dy.rank) - 1) & ~(1u << dim), 0, &out);
}
