/* Losses and their gradients, with the meaning of PyTorch's functions of the same names.
 *
 * Values are f32, f16 or bf16, computed in f32, and every tensor is contiguous. Sums have a fixed order. With
 * RDNA_LOSS_REDUCTION_NONE |out| has a value for each loss; otherwise it is one value, of rank 0 or a tensor of one.
 * |out| and |dout| have |x|'s type; f32 is right too where they are one value or belong to rows. Partial sums are taken
 * from the device's memory pool for the time of the call. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing
 * data, overlap. RDNA_UNSUPPORTED: another type or layout. */
#ifndef RDNA_OP_LOSS_H
#define RDNA_OP_LOSS_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rdna_loss_reduction {
  RDNA_LOSS_REDUCTION_NONE,
  RDNA_LOSS_REDUCTION_MEAN,
  RDNA_LOSS_REDUCTION_SUM,
  RDNA_LOSS_REDUCTION_COUNT
} rdna_loss_reduction;

typedef enum rdna_loss {
  RDNA_LOSS_MSE,        /* (x - t)^2 */
  RDNA_LOSS_L1,         /* |x - t| */
  RDNA_LOSS_SMOOTH_L1,  /* (x - t)^2 / (2 beta) below beta, |x - t| - beta / 2 above */
  RDNA_LOSS_HUBER,      /* beta times the above */
  RDNA_LOSS_BCE,        /* -t log(x) - (1 - t) log(1 - x), with logarithms of at least -100 */
  RDNA_LOSS_BCE_LOGITS, /* the same of sigmoid(x) */
  RDNA_LOSS_KL,         /* t (log(t) - x), 0 for t = 0 */
  RDNA_LOSS_KL_LOG,     /* exp(t) (t - x) */
  RDNA_LOSS_COUNT
} rdna_loss;

/* |target|, and |weight| unless NULL, have |x|'s shape and type. |weight| multiplies each loss. |beta| is not negative,
 * and matters to SMOOTH_L1 and HUBER only. With RDNA_LOSS_REDUCTION_NONE |out| may be any of the inputs. */
RDNA_CHECKED rdna_status rdna_op_loss(rdna_stream *stream, rdna_loss loss, float beta, rdna_loss_reduction reduction,
                                      const rdna_tensor *x, const rdna_tensor *target, const rdna_tensor *weight,
                                      const rdna_tensor *out);
/* |dout| has the shape of |out| above. |dx| may be any of the inputs of its own shape. */
RDNA_CHECKED rdna_status rdna_op_loss_backward(rdna_stream *stream, rdna_loss loss, float beta,
                                               rdna_loss_reduction reduction, const rdna_tensor *dout,
                                               const rdna_tensor *x, const rdna_tensor *target,
                                               const rdna_tensor *weight, const rdna_tensor *dx);

typedef struct rdna_cross_entropy {
  size_t size; /* of the struct: RDNA_CROSS_ENTROPY_INIT sets it */
  rdna_loss_reduction reduction;
  int64_t ignore_index;   /* rows with this target count for nothing; PyTorch's default is -100 */
  float label_smoothing;  /* in [0, 1] */
  bool log_probabilities; /* |x| holds logarithms of probabilities: the negative log-likelihood, without smoothing */
  uint32_t *outside; /* a word of device memory that becomes 1 when a target is no class and not ignored; or NULL */
} rdna_cross_entropy;
#define RDNA_CROSS_ENTROPY_INIT .size = sizeof(rdna_cross_entropy)

/* |x| is (rows, cols) of logits, with one stride between rows; |target| (rows) of i32 or i64; |weight| (cols) of f32,
 * one for each class, or NULL. A target that is neither a class nor |ignore_index| makes its loss and gradient NaN:
 * targets are on the device, where a call cannot look at them before it returns. |lse| is (rows) of f32 and |total| one
 * f32: what the gradient needs again. The mean is over the sum of the rows' weights, |total|. Logits are read once here
 * and once for the gradient. */
RDNA_CHECKED rdna_status rdna_op_cross_entropy(rdna_stream *stream, const rdna_cross_entropy *options,
                                               const rdna_tensor *x, const rdna_tensor *target,
                                               const rdna_tensor *weight, const rdna_tensor *out,
                                               const rdna_tensor *lse, const rdna_tensor *total);
/* |lse| and |total| as written above. |dx| has |x|'s shape and type and may be |x|. */
RDNA_CHECKED rdna_status rdna_op_cross_entropy_backward(rdna_stream *stream, const rdna_cross_entropy *options,
                                                        const rdna_tensor *dout, const rdna_tensor *x,
                                                        const rdna_tensor *target, const rdna_tensor *weight,
                                                        const rdna_tensor *lse, const rdna_tensor *total,
                                                        const rdna_tensor *dx);

/* Connectionist temporal classification (Graves et al., 2006): minus the logarithm of a text's probability, summed over
 * all ways to lay its labels along the steps, with blanks between. |x| is (steps, batch, classes) of f32, the
 * logarithms of probabilities, of any strides. |targets| holds the labels of all texts, i64, and |spans| (batch, 3) i64
 * of each text its first label's place, the count of its labels, and of its steps; what exceeds |targets|, |x| or
 * |states| is cut. |states| is (batch, steps, 2 labels of the longest text + 1): the logarithms of what all
 * beginnings come to, which the gradient needs again, as it needs |loss|, (batch). All but |x| are contiguous. A text
 * that needs more steps than it has: infinity. A label that is no class makes the loss a NaN and |outside| 1, a word of
 * device memory or NULL. Sums have a fixed order. */
RDNA_CHECKED rdna_status rdna_op_ctc(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *targets,
                                     const rdna_tensor *spans, int64_t blank, const rdna_tensor *states,
                                     const rdna_tensor *loss, uint32_t *outside);
/* |states| and |loss| as written above, |dloss| (batch). |dx|, contiguous, is the gradient by what a log_softmax made
 * |x| of, as PyTorch has it; 0 behind a text's steps, and with |zero_infinity| of texts whose loss is infinite, which
 * is a NaN otherwise. */
RDNA_CHECKED rdna_status rdna_op_ctc_backward(rdna_stream *stream, const rdna_tensor *dloss, const rdna_tensor *x,
                                              const rdna_tensor *targets, const rdna_tensor *spans, int64_t blank,
                                              bool zero_infinity, const rdna_tensor *states, const rdna_tensor *loss,
                                              const rdna_tensor *dx);

#ifdef __cplusplus
}
#endif
#endif
