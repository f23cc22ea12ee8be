/* Text in pieces, for what prints and draws graphs. */
#ifndef RDNA_GRAPH_PRINT_H
#define RDNA_GRAPH_PRINT_H

#include "graph/node.h"

typedef struct rdna__printer {
  rdna_graph_write write;
  void *data;
  rdna_status status; /* of the first piece that was not taken, behind which nothing is written */
} rdna__printer;

__attribute__((format(printf, 2, 3))) void rdna__print(rdna__printer *p, const char *format, ...);
/* "relu", "sum", "matmul" */
const char *rdna__node_name(const rdna_node *node);

#endif
