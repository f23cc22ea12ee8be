/* Optimizer steps with PyTorch's formulas, over one tensor or many in one launch, and what mixed precision needs.
 *
 * Parameters and states are f32; gradients are f32, f16 or bf16, all of one call alike. Tensors are contiguous. Several
 * tensors are described by a table that is copied to the device and taken from its memory pool for the time of the
 * call. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing data or states, overlap, numbers out of range. */
#ifndef RDNA_OP_OPTIM_H
#define RDNA_OP_OPTIM_H

#include <stdbool.h>

#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rdna_optim_kind {
  RDNA_OPTIM_KIND_SGD,
  RDNA_OPTIM_KIND_ADAM,
  RDNA_OPTIM_KIND_RMSPROP,
  RDNA_OPTIM_KIND_COUNT
} rdna_optim_kind;

typedef struct rdna_optim {
  size_t size; /* of the struct: RDNA_OPTIM_INIT sets it */
  rdna_optim_kind kind;
  float learning_rate, weight_decay;
  float momentum;         /* SGD, RMSprop; 0 is none */
  float dampening;        /* SGD */
  bool nesterov;          /* SGD */
  float beta1, beta2;     /* Adam; beta1 is RMSprop's alpha */
  double epsilon;         /* Adam, RMSprop */
  bool decoupled;         /* Adam: weight decay is not part of the gradient (AdamW; Loshchilov and Hutter, 2019) */
  bool amsgrad, centered; /* Adam; RMSprop */
  bool maximize;
  int64_t step; /* from 1; SGD's first step fills its momentum. Of no use to Adam whose items have steps of their own */
} rdna_optim;
#define RDNA_OPTIM_INIT .size = sizeof(rdna_optim)

/* A parameter, its gradient and its states, running averages that the step updates; those not used may be NULL:
 *
 *              state[0]   state[1]          state[2]
 *     SGD      momentum
 *     Adam     mean       square            largest square (amsgrad)
 *     RMSprop  square     mean (centered)   momentum */
typedef struct rdna_optim_item {
  const rdna_tensor *param, *grad;
  const rdna_tensor *state[3];
  const rdna_tensor *step; /* Adam: the number of this step, a single f32 on the device; or NULL in all items */
} rdna_optim_item;

/* One step for |count| items. |grad_scale| and |found_inf| are single f32 on the device, or NULL. Gradients are divided
 * by |grad_scale| as they are read, and are not written. Where |found_inf| is not 0 nothing is updated. */
RDNA_CHECKED rdna_status rdna_op_optim_step(rdna_stream *stream, const rdna_optim *options,
                                            const rdna_optim_item *items, int count, const rdna_tensor *grad_scale,
                                            const rdna_tensor *found_inf);
/* norm = sqrt(sum of the squares of all gradients); factor = min(1, largest / (norm + 1e-6)), by which clipping
 * multiplies them. Each is one f32; |factor| may be NULL. */
RDNA_CHECKED rdna_status rdna_op_grad_norm(rdna_stream *stream, const rdna_tensor *const *grads, int count,
                                           float largest, const rdna_tensor *norm, const rdna_tensor *factor);
/* norms[i] = sqrt(sum of the squares of gradient i), f32, (count). */
RDNA_CHECKED rdna_status rdna_op_grad_norms(rdna_stream *stream, const rdna_tensor *const *grads, int count,
                                            const rdna_tensor *norms);
/* Multiplies gradients by |factor|, one f32 on the device. |found_inf|, one f32 or NULL, becomes 1 if a gradient was an
 * infinity or a NaN, and is otherwise left alone. */
RDNA_CHECKED rdna_status rdna_op_grad_scale(rdna_stream *stream, const rdna_tensor *const *grads, int count,
                                            const rdna_tensor *factor, const rdna_tensor *found_inf);

#ifdef __cplusplus
}
#endif
#endif
