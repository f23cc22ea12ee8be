/* The nodes that others need, each once and behind its inputs. */
#ifndef RDNA_GRAPH_ORDER_H
#define RDNA_GRAPH_ORDER_H

#include "base/strmap.h"
#include "graph/node.h"

typedef struct rdna__order {
  rdna_node **nodes; /* (count) borrowed */
  int64_t count, capacity;
  rdna__strmap numbers; /* of nodes, by their addresses */
} rdna__order;

/* All that |roots| need. What |stops| need is left out, unless it is needed otherwise. Roots, and inputs of nodes, stay
 * where they are as long as the order does. */
rdna_status rdna__order_init(rdna__order *order, rdna_node *const *roots, int root_count, rdna_node *const *stops,
                             int stop_count);
/* All that |*root| needs of nodes that are made after |serial|, and of others those that these read. */
rdna_status rdna__order_init_since(rdna__order *order, rdna_node *const *root, uint64_t serial);
void rdna__order_deinit(rdna__order *order);
/* Its place; -1: it is not among them. */
int64_t rdna__order_find(const rdna__order *order, const rdna_node *node);

#endif
