/* Fusions in a graph of TensorFlow, whose bytes are read and written here without TensorFlow. */
#ifndef RDNA_TENSORFLOW_REWRITE_H
#define RDNA_TENSORFLOW_REWRITE_H

#include "graph_def.h"

/* |graph|, a GraphDef, with what patterns.h finds on a device RDNA as one node each, under the name of the last of
 * those that it stands for. Returns how many there were; 0: |out| is not written. Also 0 for bytes that are no
 * GraphDef, and without memory. */
int rewrite_graph(const void *graph, size_t size, const struct kept *kept, struct wire *out);

#endif
