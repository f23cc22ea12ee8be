/* A layer of a recurrent network on arrays that are there: one call for all steps where that pays, else a product and a
 * cell for each. */
#ifndef RDNA_GRAPH_RECURRENT_RUN_H
#define RDNA_GRAPH_RECURRENT_RUN_H

#include "base/status.h"
#include "rdna/op/recurrent.h"

/* All contiguous. Where n is the size of a state and an LSTM has 4 parts, a GRU 3 and the others 1: |x| (steps, rows,
 * inputs), |weight_ih| (parts n, inputs), |weight_hh| (parts n, n), |h| and an LSTM's |c| (rows, n), |bias| and a GRU's
 * |hidden_bias| (parts n) or NULL; the results are (steps, rows, n), the gates' rows of parts n. |second| is an LSTM's
 * cells, or the part of a GRU's gates that its gradient reads. What a cell has not is NULL. */
typedef struct rdna__recurrent {
  rdna_stream *stream;
  rdna_cell cell;
  bool reverse;
  const rdna_tensor *x, *weight_ih, *weight_hh, *h, *c, *bias, *hidden_bias;
  const rdna_tensor *out, *second, *gates; /* without gates |out| takes the sums first */
} rdna__recurrent;

/* Fills in the results. */
rdna_status rdna__recurrent_forward(const rdna__recurrent *layer);

/* From the gradients |dout|, of out, and |dc|, of the c behind the last step, each or NULL for zeros, those of the
 * sums, |dsums|, of a GRU's products with the states, |dhidden|, both (steps, rows, parts n), and of the first states,
 * |dh| and |dfirst_c|. The results are as forward left them; x, weight_ih and the biases are not read. */
rdna_status rdna__recurrent_backward(const rdna__recurrent *layer, const rdna_tensor *dout, const rdna_tensor *dc,
                                     const rdna_tensor *dsums, const rdna_tensor *dhidden, const rdna_tensor *dh,
                                     const rdna_tensor *dfirst_c);

static inline int rdna__cell_parts(rdna_cell cell) {
  return cell == RDNA_CELL_LSTM ? 4 : cell == RDNA_CELL_GRU ? 3 : 1;
}

#endif
