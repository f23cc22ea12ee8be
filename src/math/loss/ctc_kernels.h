/* Connectionist temporal classification (Graves et al., "Connectionist temporal classification", 2006): the probability
 * of a text, summed over all ways to lay its labels along the steps of a recording.
 *
 * Blanks stand before, between and after the labels, so that a text of n labels has 2 n + 1 states, the even ones
 * blanks:
 *
 *     text a b b     states   - a - b - b -
 *                             0 1 2 3 4 5 6
 *
 * From step to step a text stays in its state, goes to the next one, or skips a blank between different labels: from 1
 * to 3, but not from 3 to 5, which would be one b. */
#ifndef RDNA_MATH_LOSS_CTC_KERNELS_H
#define RDNA_MATH_LOSS_CTC_KERNELS_H

#include <stdint.h>

/* CTC_SHARED: so many states are kept in group memory from one step to the next, more in global memory. */
enum { CTC_THREADS = 256, CTC_SHARED = 2048, CTC_SUMS = 64 };

/* A text's place in |spans|: its first label, their count, its steps. What exceeds a tensor is cut. */
enum { CTC_BEGIN, CTC_LABELS, CTC_STEPS, CTC_SPAN };

/* What all kernels are given. */
struct ctc_texts {
  const float *x;         /* (steps, batch, classes): logarithms of probabilities */
  const int64_t *targets; /* (labels of all) */
  const int64_t *spans;   /* (batch, CTC_SPAN) */
  int64_t x_stride[3];
  int64_t steps, batch, classes, target_count;
  int64_t width; /* states of the longest text */
  int64_t blank;
};

/* A group does a text: ctc_alpha, the logarithms of what all beginnings of a way come to; ctc_posterior, backwards
 * from the end, the probabilities of being in a state at a step, given the text. Grid x: batch. */
struct ctc_args {
  struct ctc_texts texts;
  float *rows;        /* (batch, 2, width) where width exceeds CTC_SHARED; else NULL */
  const float *alpha; /* (batch, steps, width): of ctc_posterior */
  float *states;      /* (batch, steps, width): written, also where there is no such step or state */
  float *loss;        /* (batch): written by ctc_alpha, read by ctc_posterior */
  int32_t *chain;     /* (batch, width / 2): of each label the next place of the same class, or the count of labels;
                       * inverted (~) where it is not the first of its class. Written by ctc_posterior */
  uint32_t *outside;  /* becomes 1 when a label is no class, or NULL; the loss is a NaN then */
};

/* dx = dloss (exp(x) - probability of the class at that step), 0 behind a text's steps: the gradient by what a
 * log_softmax gave x. Groups do steps of texts in turn. */
struct ctc_gradient_args {
  struct ctc_texts texts;
  const float *states; /* (batch, steps, width): of ctc_posterior */
  const float *loss;   /* (batch) */
  const float *dloss;  /* (batch) */
  const int32_t *chain;
  float *dx; /* (steps, batch, classes), contiguous */
  uint32_t zero_infinity;
};

#define RDNA_CTC_KERNELS(X)                                      \
  X(ctc_alpha, struct ctc_args, CTC_THREADS, rdna__ctc_case)     \
  X(ctc_posterior, struct ctc_args, CTC_THREADS, rdna__ctc_case) \
  X(ctc_gradient, struct ctc_gradient_args, CTC_THREADS, rdna__ctc_gradient_case)

#endif
