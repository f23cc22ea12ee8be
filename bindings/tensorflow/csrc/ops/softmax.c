/* Softmax and the losses that have it inside, with the gradients that TensorFlow takes from them at once. */
#include "rdna/op/softmax.h"

#include "ops.h"
#include "rdna/op/loss.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/reduce.h"

rdna_status compute_softmax(call *c) {
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  if (x.rank < 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "logits must have >= 1 dimension, got a scalar");
  TRY(call_output_over(c, 1, 0, x.rank, x.shape, &out));
  return c->number ? rdna_op_log_softmax(c->stream, &x, -1, 1, &out) : rdna_op_softmax(c->stream, &x, -1, 1, &out);
}

/* A loss for each row, and its gradient by the logits: softmax less 1 at the label. */
rdna_status compute_sparse_cross_entropy(call *c) {
  rdna_tensor x, labels, loss, dx, lse, total, ones;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &labels));
  if (x.rank != 2 || labels.rank != 1 || labels.shape[0] != x.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "logits and labels must have the same first dimension, and rank 2 and 1");
  TRY(call_output(c, 0, 1, x.shape, &loss));
  TRY(call_output(c, 1, 2, x.shape, &dx));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  TRY(call_scratch(c, RDNA_F32, 1, x.shape, &lse));
  TRY(call_scratch(c, RDNA_F32, 0, NULL, &total));
  TRY(call_scratch(c, x.dtype, 1, x.shape, &ones));
  rdna_cross_entropy options = {RDNA_CROSS_ENTROPY_INIT, .reduction = RDNA_LOSS_REDUCTION_NONE,
                                .ignore_index = INT64_MIN};
  TRY(rdna_op_cross_entropy(c->stream, &options, &x, &labels, NULL, &loss, &lse, &total));
  TRY(rdna_op_fill(c->stream, rdna_scalar_integer(1), &ones));
  return rdna_op_cross_entropy_backward(c->stream, &options, &ones, &x, &labels, NULL, &lse, &total, &dx);
}

/* Labels are probabilities: loss = -sum of p log softmax(x), gradient = softmax(x) - p; either may be one row for all.
 */
rdna_status compute_cross_entropy(call *c) {
  rdna_tensor x, p, loss, dx, logs;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &p));
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_broadcast(c, &x, &p, &rank, shape));
  if (rank != 2) return call_fail(c, RDNA_INVALID_ARGUMENT, "logits and labels must be 2-dimensional");
  TRY(call_output(c, 0, 1, shape, &loss));
  TRY(call_output(c, 1, 2, shape, &dx));
  if (rdna_tensor_count(&dx) == 0) return rdna_op_fill(c->stream, zero, &loss);
  TRY(call_scratch(c, x.dtype, 2, shape, &logs));
  TRY(rdna_op_copy(c->stream, &x, &dx));
  TRY(rdna_op_log_softmax(c->stream, &dx, -1, 1, &logs));
  TRY(rdna_op_softmax(c->stream, &dx, -1, 1, &dx));
  TRY(rdna_op_zip(c->stream, RDNA_ZIP_SUB, &dx, &p, zero, zero, &dx));
  TRY(rdna_op_zip(c->stream, RDNA_ZIP_MUL, &logs, &p, zero, zero, &logs));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &logs, 2, 0, &loss));
  return rdna_op_map(c->stream, RDNA_MAP_NEG, &loss, zero, zero, &loss);
}
