/* Values that are computed once more for their gradients rather than kept until then:
 *
 *     x --- f --- y --- checkpoint --- …          values are y's
 *      \                    g                     what comes back
 *       after(x, g) --- f again --- y again       which gives the gradients by x, and is not begun before g is there
 *
 * A checkpoint's inputs are y and the boundary: what y needs of nodes that were there before the mark. */
#include <stdlib.h>

#include "graph/build.h"
#include "graph/order.h"

/* The first input, but not before the second is there. */
static void gradient_after(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = upstream[0];
}
const rdna__operator rdna__operator_after = {
    .name = "after", .view = true, .infer = rdna__infer_same, .run = rdna__run_same, .gradient = gradient_after};

/* |copies| of the nodes of |order| with others in the place of the boundary, which have their copies already. What does
 * not read these is itself. */
static rdna_status copy_nodes(rdna_recorder *r, const rdna__order *order, rdna_node **copies) {
  for (int64_t i = 0; i < order->count; i++) {
    rdna_node *node = order->nodes[i];
    if (copies[i]) continue;
    rdna_node **inputs = calloc((size_t)node->input_count + 1, sizeof(rdna_node *));
    if (!inputs) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the copy of a node");
    bool changed = false;
    for (int k = 0; k < node->input_count; k++) {
      inputs[k] = copies[rdna__order_find(order, node->inputs[k])];
      changed |= inputs[k] != node->inputs[k];
    }
    copies[i] = changed ? rdna__record(r, node->op, &node->attributes, inputs, node->input_count) : node;
    free(inputs);
    if (!copies[i]) return rdna_recorder_status(r);
  }
  return RDNA_OK;
}

/* Gradients by the boundary, whose nodes of floats have stand-ins. |out| is for all inputs. */
static rdna_status differentiate(rdna_recorder *r, const rdna_node *node, const rdna__order *order, rdna_node *upstream,
                                 rdna_node **copies, rdna_node **stand_ins, rdna_node **out) {
  int count = 0;
  for (int k = 1; k < node->input_count; k++) {
    rdna_node *from = node->inputs[k];
    rdna_node *made =
        rdna__record(r, &rdna__operator_after, &(rdna__attributes){0}, (rdna_node *[]){from, upstream}, 2);
    copies[rdna__order_find(order, from)] = made;
    if (!made) return rdna_recorder_status(r);
    if (rdna__array_is_float(from->type.dtype)) stand_ins[count++] = made;
  }
  RDNA_TRY(copy_nodes(r, order, copies));
  rdna_node **found = stand_ins + node->input_count, *again = copies[order->count - 1];
  RDNA_TRY(rdna__differentiate(r, &again, 1, &upstream, stand_ins, count, true, found));
  for (int k = 1, i = 0; k < node->input_count; k++)
    if (rdna__array_is_float(node->inputs[k]->type.dtype)) out[k] = found[i++];
  return RDNA_OK;
}

static void gradient_checkpoint(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna__order order;
  rdna_status status = rdna__order_init(&order, node->inputs, 1, node->inputs + 1, node->input_count - 1);
  if (status == RDNA_OK) {
    rdna_node **copies = calloc((size_t)order.count + 1, sizeof(rdna_node *));
    rdna_node **stand_ins = calloc((size_t)node->input_count * 2, sizeof(rdna_node *));
    status = copies && stand_ins ? differentiate(r, node, &order, upstream[0], copies, stand_ins, out)
                                 : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a checkpoint's gradients");
    free(copies);
    free(stand_ins);
    rdna__order_deinit(&order);
  }
  if (status != RDNA_OK) rdna__record_failure(r, status);
}

const rdna__operator rdna__operator_checkpoint = {.name = "checkpoint",
                                                  .view = true,
                                                  .infer = rdna__infer_same,
                                                  .run = rdna__run_same,
                                                  .gradient = gradient_checkpoint};

rdna_node *rdna_record_checkpoint(rdna_recorder *r, rdna_node *y, uint64_t mark) {
  if (rdna__record_stopped(r, "checkpoint", &y, 1)) return NULL;
  if (y->serial <= mark || !rdna__array_is_float(y->type.dtype)) return y;
  rdna__order order;
  rdna_status status = rdna__order_init_since(&order, &y, mark);
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  rdna_node **inputs = calloc((size_t)order.count + 1, sizeof(rdna_node *)), *made = NULL;
  int count = 0;
  if (inputs) inputs[count++] = y;
  for (int64_t i = 0; inputs && i < order.count; i++)
    if (order.nodes[i]->serial <= mark) inputs[count++] = order.nodes[i];
  if (inputs)
    made = rdna__record(r, &rdna__operator_checkpoint, &(rdna__attributes){0}, inputs, count);
  else
    rdna__record_failure(r, rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a checkpoint"));
  free(inputs);
  rdna__order_deinit(&order);
  return made;
}
