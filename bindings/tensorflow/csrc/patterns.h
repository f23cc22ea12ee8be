/* Groups of nodes that one call of librdna computes, where nobody else sees what is between them:
 *
 * RdnaMatMul, RdnaConv2D: activation(product + bias), where the activation is Relu, Tanh or Sigmoid, or behind a MatMul
 * GELU as Keras writes it.
 *
 * RdnaLayerNorm: layer norm over the last dimension, as Keras and as tf.nn.batch_normalization write it.
 *
 * RdnaConv2DBatchNorm: activation(batch norm(Conv2D + bias) + residual) of inference, as Keras writes it, in float.
 */
#ifndef RDNA_TENSORFLOW_PATTERNS_H
#define RDNA_TENSORFLOW_PATTERNS_H

#include "graph_def.h"

enum { PATTERN_NODES = 24, PATTERN_INPUTS = 8 };

struct pattern {
  const struct graph *graph;
  struct node *last;                 /* whose name and users the new node gets */
  struct node *nodes[PATTERN_NODES]; /* all that the new node stands for, |last| too */
  int count;
  const char *op, *activation; /* NULL: the operator has none */
  struct text inputs[PATTERN_INPUTS];
  int input_count;
  const struct node *like; /* whose attributes the new node has too, with T */
  int scales, offsets, biases, shapes,
      residuals;  /* how many of them are among the inputs; -1: the operator has no such */
  double epsilon; /* negative: the operator has none */
};

/* A group that ends at |last|, larger than one around a BiasAdd. */
bool find_large(const struct graph *g, struct node *last, struct pattern *out);
/* The group of |bias|, a BiasAdd. */
bool find_biased(const struct graph *g, struct node *bias, struct pattern *out);

#endif
