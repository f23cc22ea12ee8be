/* Convolutions made of other operators. */
#ifndef RDNA_GRAPH_CONVOLUTION_F64_H
#define RDNA_GRAPH_CONVOLUTION_F64_H

#include "graph/node.h"
#include "rdna/op/conv.h"

/* What is given fits, as convolution.c has checked. |out| is the result's type. */
rdna_node *rdna__compose_conv(rdna_recorder *r, rdna_node *x, rdna_node *weight, const rdna_convolution *conv,
                              const rdna__type *out);
/* |sizes| are the result's spatial ones. */
rdna_node *rdna__compose_conv_transpose(rdna_recorder *r, rdna_node *x, rdna_node *weight, const rdna_convolution *conv,
                                        const int64_t *sizes);

#endif
