#include "graph/operands.h"

static bool is_rows(const rdna_tensor *tensor) {
  return tensor->rank == 2 && tensor->stride[1] == 1 && tensor->stride[0] >= tensor->shape[1];
}

rdna_status rdna__array_make_rows(rdna_stream *stream, rdna_dtype dtype, int64_t rows, int64_t columns,
                                  rdna_array **out_array) {
  int64_t each = 16 / (int64_t)rdna_dtype_bytes(dtype, 1), shape[] = {rows, (columns + each - 1) / each * each};
  rdna_array *whole;
  RDNA_TRY(rdna__array_make(stream, dtype, 2, shape, &whole));
  rdna_status status = rdna_array_slice(whole, 1, 0, columns, 1, out_array);
  rdna_array_release(whole);
  return status;
}

/* Of inputs those whose bits are set in |rows| stay as they are where they are rows, those in |strided| however they
 * lie. */
static rdna_status init(rdna__operands *o, const rdna_node *node, rdna_array *const *inputs, unsigned results,
                        unsigned rows, unsigned strided) {
  *o = (rdna__operands){.held = {NULL}};
  rdna__type types[RDNA__MOST_RESULTS];
  rdna__making m = {NULL, &node->attributes, node->inputs, node->input_count};
  rdna_status status = node->op->infer(&m, types);
  for (int i = 0; i < node->input_count && status == RDNA_OK; i++) {
    if ((strided >> i & 1) || ((rows >> i & 1) && is_rows(&inputs[i]->tensor)))
      o->held[i] = rdna_array_retain(inputs[i]);
    else
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

rdna_status rdna__operands_init(rdna__operands *o, const rdna_node *node, rdna_array *const *inputs, unsigned results) {
  return init(o, node, inputs, results, 0, 0);
}

rdna_status rdna__operands_init_rows(rdna__operands *o, const rdna_node *node, rdna_array *const *inputs,
                                     unsigned results, unsigned rows) {
  return init(o, node, inputs, results, rows, 0);
}

rdna_status rdna__operands_init_strided(rdna__operands *o, const rdna_node *node, rdna_array *const *inputs,
                                        unsigned results) {
  return init(o, node, inputs, results, 0, ~0u);
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
