/* Fusions in a graph of TensorFlow, whose bytes are read and written here without TensorFlow. */
#ifndef RDNA_TENSORFLOW_REWRITE_H
#define RDNA_TENSORFLOW_REWRITE_H

#include "wire.h"

struct kept { /* names of nodes that must stay as they are, one after another */
  int count;
  char *const *names;
  const size_t *lengths;
};

/* |graph|, a GraphDef, with each product of matrices or convolution on a device RDNA whose result goes to a BiasAdd
 * alone, and that to a Relu, Tanh or Sigmoid alone or to others, as one RdnaMatMul or RdnaConv2D under the name of the
 * last. Returns how many there were; 0: |out| is not written. Also 0 for bytes that are no GraphDef, and without
 * memory. */
int rewrite_graph(const void *graph, size_t size, const struct kept *kept, struct wire *out);

#endif
