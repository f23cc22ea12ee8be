/* Graphs and plans as text. */
#include "graph/print.h"

#include <stdio.h>

#include "graph/order.h"
#include "graph/plan.h"

void rdna__print(rdna__printer *p, const char *format, ...) {
  char text[1024];
  if (p->status != RDNA_OK) return;
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size >= (int)sizeof text) size = (int)sizeof text - 1;
  if (size > 0) p->status = p->write(p->data, text, (size_t)size);
}

const char *rdna__node_name(const rdna_node *node) {
  return node->op->detail && node->op != &rdna__operator_cast ? node->op->detail(node) : node->op->name;
}

static bool whole(rdna_node *const *nodes, int count) {
  for (int i = 0; i < count; i++)
    if (!nodes[i]) return false;
  return true;
}

rdna_status rdna_nodes_print(rdna_node *const *outputs, int output_count, rdna_graph_write write, void *data) {
  if (output_count < 1 || !outputs || !write || !whole(outputs, output_count))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_nodes_print needs an output or more, none NULL, and where to write");
  rdna__order order;
  rdna__printer p = {write, data, RDNA_OK};
  char text[RDNA__ARRAY_TEXT];
  RDNA_TRY(rdna__order_init(&order, outputs, output_count, NULL, 0));
  for (int64_t i = 0; i < order.count; i++) {
    const rdna_node *node = order.nodes[i];
    rdna__print(&p, "%%%lld = %s", (long long)i, rdna__node_name(node));
    for (int k = 0; k < node->input_count; k++)
      rdna__print(&p, " %%%lld", (long long)rdna__order_find(&order, node->inputs[k]));
    if (node->op == &rdna__operator_full) rdna__print(&p, " %g", node->attributes.p.real);
    if (node->op == &rdna__operator_part) rdna__print(&p, " [%d]", node->attributes.dim);
    rdna__print(&p, " : %s", rdna__type_text(&node->type, text));
    rdna__print(&p, *rdna__node_origin(node) ? "  at %s\n" : "%s\n", rdna__node_origin(node));
  }
  for (int i = 0; i < output_count; i++)
    rdna__print(&p, "output %%%lld\n", (long long)rdna__order_find(&order, outputs[i]));
  rdna__order_deinit(&order);
  return p.status;
}

/* ---- plans ---- */

static const char *activation_name(rdna_activation activation) {
  static const char *const names[] = {"", "+relu", "+sigmoid", "+tanh", "+silu", "+gelu_tanh", "+gelu_erf"};
  return names[activation];
}

static const char *chain_step_name(const rdna_fused_step *step) {
  if (step->is_zip) return rdna_zip_name((rdna_zip)step->op);
  if (step->op < 0) return step->op == RDNA_FUSED_KEEP ? "keep" : "take";
  return rdna_map_name((rdna_map)step->op);
}

static void print_step(rdna__printer *p, const rdna__step *step) {
  const rdna__chain *chain = step->chain;
  if (!chain) {
    rdna__print(p, "%s", rdna__node_name(step->node));
    if (!step->epilogue) return;
    rdna__print(p, "%s%s%s", step->epilogue->bias >= 0 ? "+bias" : "", activation_name(step->epilogue->activation),
                step->epilogue->residual >= 0 ? "+residual" : "");
    return;
  }
  for (int i = 0; i < chain->step_count; i++) rdna__print(p, "%s%s", i ? ", " : "", chain_step_name(&chain->steps[i]));
}

rdna_status rdna_plan_print(const rdna_plan *plan, rdna_graph_write write, void *data) {
  if (!plan || !write) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_plan_print needs a plan and where to write");
  rdna__printer p = {write, data, RDNA_OK};
  char text[RDNA__ARRAY_TEXT];
  for (int64_t i = 0; i < plan->step_count; i++) {
    const rdna__step *step = &plan->steps[i];
    rdna__print(&p, "%%%d = ", step->result);
    print_step(&p, step);
    for (int k = 0; k < rdna__step_input_count(step); k++)
      if (rdna__step_input(step, k) >= 0) rdna__print(&p, " %%%d", rdna__step_input(step, k));
    rdna__print(&p, " : %s", rdna__type_text(&step->node->type, text));
    for (int32_t at = step->dead; at >= 0; at = plan->values[at].next_dead)
      rdna__print(&p, "%s%%%d", at == step->dead ? "  frees " : " ", at);
    rdna__print(&p, "\n");
  }
  for (int i = 0; i < plan->output_count; i++) rdna__print(&p, "output %%%d\n", plan->output_values[i]);
  return p.status;
}
