/* What maps and zips have for gradients: derivative.c's tables. */
#ifndef RDNA_GRAPH_DERIVATIVE_H
#define RDNA_GRAPH_DERIVATIVE_H

#include "graph/node.h"

void rdna__map_gradient(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out);
void rdna__zip_gradient(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out);

#endif
