/* Optimizer steps and gradient scaling over one tensor or many.
 *
 * Tensors are cut into chunks of OPTIM_CHUNK values, which are numbered through all tensors; a work-group takes a
 * chunk, then the one |grid| further on, so any grid is right. With tensors of 20000, 0 and 5000 values:
 *
 *     tensor 0, first_chunk 0    | chunk 0: 8192 | chunk 1: 8192 | chunk 2: 3616 |
 *     tensor 1, first_chunk 3    (empty)
 *     tensor 2, first_chunk 3    | chunk 3: 5000 | */
#ifndef RDNA_MATH_OPTIM_KERNELS_H
#define RDNA_MATH_OPTIM_KERNELS_H

#include <stdint.h>

enum { OPTIM_THREADS = 256, OPTIM_CHUNK = 8192, OPTIM_STATES = 3, GRAD_NORM_THREADS = 1024 };

/* One tensor: its parts as byte offsets from the bases in the arguments. Operators leave the bases NULL, so that these
 * are addresses. */
struct optim_tensor {
  int64_t param, grad;         /* param f32, (count); grad of grad_dtype, (count) */
  int64_t state[OPTIM_STATES]; /* f32, (count) */
  int64_t step;                /* f32, (1) */
  int64_t count;
  int64_t first_chunk; /* the chunks of all tensors before this one */
};

struct optim_tensors {
  const struct optim_tensor *table; /* (tensors), or NULL for |only| */
  struct optim_tensor only;
  int64_t tensors, chunks;
  uint32_t grad_dtype; /* an rdna_dtype: f32, f16 or bf16 */
};

/* The states by number, means being exponential moving averages; bit k of |states_used|: state k is there.
 *
 *                state 0                  state 1                    state 2
 *     sgd        momentum
 *     adam       mean of gradients        mean of squares            largest of state 1 so far (amsgrad)
 *     rmsprop    mean of squares          mean of gradients          momentum */
struct optim_step_args {
  void *params, *states; /* bases, or NULL */
  const void *grads, *steps;
  const float *grad_scale; /* (1): gradients are divided by it; or NULL */
  const float *found_inf;  /* (1): nothing is done unless it is 0; or NULL */
  struct optim_tensors of;
  uint32_t states_used;
  uint32_t nesterov, decoupled, first, maximize; /* 0 or 1 */
  uint32_t counted;                              /* 1: adam's tensors have steps of their own */
  float rate, decay, momentum, dampening;
  float beta1, beta2, epsilon;
  float step_size;            /* adam: rate / (1 - beta1^step) */
  float root_correct;         /* adam: sqrt(1 - beta2^step) */
  float log_beta1, log_beta2; /* adam: natural logarithms; if counted they replace step_size and root_correct */
};

/* partial[chunk] = sum of the squares of a chunk */
struct grad_squares_args {
  const void *grads;
  float *partial; /* (chunks) */
  struct optim_tensors of;
};
/* norm = sqrt(sum of partial), factor = min(1, largest / (norm + 1e-6)); one group */
struct grad_norm_args {
  const float *partial; /* (chunks) */
  float *norm;          /* (1), or NULL */
  float *factor;        /* (1), or NULL */
  int64_t chunks;
  float largest;
};
/* norms[i] = sqrt(sum of partial over the chunks of tensor i); a group for each */
struct grad_norms_args {
  const float *partial; /* (chunks) */
  float *norms;         /* (tensors) */
  struct optim_tensors of;
};
/* grad *= factor; *found_inf becomes 1 if a gradient was not finite */
struct grad_scale_args {
  void *grads;
  const float *factor; /* (1) */
  float *found_inf;    /* (1), or NULL */
  struct optim_tensors of;
};

#define RDNA_OPTIM_KERNELS(X)                                                       \
  X(optim_sgd, struct optim_step_args, OPTIM_THREADS, rdna__optim_step_case)        \
  X(optim_adam, struct optim_step_args, OPTIM_THREADS, rdna__optim_step_case)       \
  X(optim_rmsprop, struct optim_step_args, OPTIM_THREADS, rdna__optim_step_case)    \
  X(grad_squares, struct grad_squares_args, OPTIM_THREADS, rdna__grad_squares_case) \
  X(grad_norm, struct grad_norm_args, GRAD_NORM_THREADS, rdna__grad_norm_case)      \
  X(grad_norms, struct grad_norms_args, OPTIM_THREADS, rdna__grad_norms_case)       \
  X(grad_scale, struct grad_scale_args, OPTIM_THREADS, rdna__grad_scale_case)

#endif
