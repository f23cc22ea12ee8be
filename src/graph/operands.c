#include "graph/operands.h"

rdna_status rdna__operands_init(rdna__operands *o, const rdna_node *node, rdna_array *const *inputs, unsigned results) {
  *o = (rdna__operands){.held = {NULL}};
  rdna__type types[RDNA__MOST_RESULTS];
  rdna__making m = {NULL, &node->attributes, node->inputs, node->input_count};
  rdna_status status = node->op->infer(&m, types);
  for (int i = 0; i < node->input_count && status == RDNA_OK; i++) {
    status = rdna_array_contiguous(inputs[i], &o->held[i]);
    if (status == RDNA_OK) o->in[i] = &o->held[i]->tensor;
  }
  for (int i = 0; i < RDNA__MOST_RESULTS && status == RDNA_OK; i++) {
    if (!(results >> i & 1)) continue;
    status = rdna__array_make(node->stream, types[i].dtype, types[i].rank, types[i].shape, &o->made[i]);
    if (status == RDNA_OK) o->out[i] = &o->made[i]->tensor;
  }
  return status == RDNA_OK ? RDNA_OK : rdna__operands_end(o, status, NULL);
}

rdna_status rdna__operands_end(rdna__operands *o, rdna_status status, rdna_array **out) {
  for (int i = 0; i < RDNA__MOST_OPERANDS; i++) rdna_array_release(o->held[i]);
  for (int i = 0; i < RDNA__MOST_RESULTS; i++) {
    if (status == RDNA_OK)
      out[i] = o->made[i];
    else
      rdna_array_release(o->made[i]);
  }
  return status;
}
