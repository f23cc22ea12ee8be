/* For |run|: what an operator of rdna/op.h takes and gives. */
#ifndef RDNA_GRAPH_OPERANDS_H
#define RDNA_GRAPH_OPERANDS_H

#include "graph/node.h"

typedef struct rdna__operands {
  const rdna_tensor *in[RDNA__MOST_OPERANDS]; /* contiguous; NULL behind the last */
  const rdna_tensor *out[RDNA__MOST_RESULTS]; /* NULL where the result is not made */
  rdna_array *held[RDNA__MOST_OPERANDS], *made[RDNA__MOST_RESULTS];
} rdna__operands;

/* Makes the results whose bits are set in |results|. A failure leaves nothing to end. */
rdna_status rdna__operands_init(rdna__operands *o, const rdna_node *node, rdna_array *const *inputs, unsigned results);
/* The same, but of inputs whose bits are set in |rows| matrices whose rows are without gaps stay as they are, however
 * far apart the rows lie. */
rdna_status rdna__operands_init_rows(rdna__operands *o, const rdna_node *node, rdna_array *const *inputs,
                                     unsigned results, unsigned rows);
/* The same with all inputs as they lie, for operators that take any strides. */
rdna_status rdna__operands_init_strided(rdna__operands *o, const rdna_node *node, rdna_array *const *inputs,
                                        unsigned results);
/* An array of rows that begin at multiples of 16 bytes. */
rdna_status rdna__array_make_rows(rdna_stream *stream, rdna_dtype dtype, int64_t rows, int64_t columns,
                                  rdna_array **out_array);
/* Hands the results over to |out| where |status| is RDNA_OK; returns it. */
rdna_status rdna__operands_end(rdna__operands *o, rdna_status status, rdna_array **out);

#endif
