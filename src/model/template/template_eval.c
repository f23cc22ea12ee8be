/* Expressions to values. */
#include <string.h>

#include "model/template/template.h"

static tpl_value find_name(tpl_run *run, rdna_text name) {
  for (const tpl_scope *scope = run->scope; scope; scope = scope->parent)
    for (const tpl_binding *b = scope->bindings; b; b = b->next)
      if (tpl_same(b->name, name)) return b->value;
  const tpl_value *variable = rdna__tpl_dict_find_text(run->variables, name);
  if (variable) return *variable;
  const tpl_function *function = rdna__tpl_find_global(name);
  tpl_bound *bound = function ? rdna__tpl_alloc(run, sizeof *bound) : NULL;
  if (!bound) return tpl_undefined(name);
  *bound = (tpl_bound){.function = function};
  return (tpl_value){.kind = TPL_FUNCTION, .bound = bound};
}

static tpl_value eval_list(tpl_run *run, const tpl_node *node) {
  tpl_list *list = rdna__tpl_new_list(run, node->item_count);
  for (size_t i = 0; i < node->item_count; i++) rdna__tpl_list_add(run, list, rdna__tpl_eval(run, node->items[i]));
  return rdna__tpl_list_value(node->kind == TPL_NODE_LIST ? TPL_LIST : TPL_TUPLE, list);
}

static tpl_value eval_dict(tpl_run *run, const tpl_node *node) {
  tpl_dict *dict = rdna__tpl_new_dict(run);
  for (size_t i = 0; i + 1 < node->item_count && run->status == RDNA_OK; i += 2) {
    tpl_value key = rdna__tpl_eval(run, node->items[i]), value = rdna__tpl_eval(run, node->items[i + 1]);
    rdna__tpl_dict_set(run, dict, key, value);
  }
  return (tpl_value){.kind = TPL_DICT, .dict = dict};
}

static tpl_value eval_slice(tpl_run *run, const tpl_node *node) {
  tpl_value value = rdna__tpl_eval(run, node->a), bounds[3];
  for (int i = 0; i < 3; i++) bounds[i] = node->items[i] ? rdna__tpl_eval(run, node->items[i]) : tpl_none();
  return run->status == RDNA_OK ? rdna__tpl_slice(run, value, bounds) : value;
}

static tpl_value eval_compare(tpl_run *run, const tpl_node *node) {
  tpl_value left = rdna__tpl_eval(run, node->a);
  for (size_t i = 0; i < node->item_count; i++) {
    tpl_value right = rdna__tpl_eval(run, node->items[i]);
    if (run->status != RDNA_OK || !rdna__tpl_compare(run, node->operators[i], left, right)) return tpl_bool(false);
    left = right;
  }
  return tpl_bool(true);
}

static tpl_value eval_concat(tpl_run *run, const tpl_node *node) {
  tpl_buffer buffer = {0};
  for (size_t i = 0; i < node->item_count && run->status == RDNA_OK; i++)
    rdna__tpl_append_value(run, &buffer, rdna__tpl_eval(run, node->items[i]));
  return tpl_buffer_text(&buffer);
}

static tpl_value eval_sign(tpl_run *run, const tpl_node *node) {
  tpl_value value = rdna__tpl_eval(run, node->a);
  if (run->status != RDNA_OK) return value;
  if (!rdna__tpl_is_number(value))
    return rdna__tpl_fail(run, TPL_INVALID, "a sign before a value of type %s", rdna__tpl_type_name(value));
  if (node->kind == TPL_NODE_POSITIVE) return value.kind == TPL_FLOAT ? value : tpl_int(rdna__tpl_as_int(value));
  if (value.kind == TPL_FLOAT) return tpl_real(-value.real);
  return rdna__tpl_arithmetic(run, TPL_NODE_SUBTRACT, tpl_int(0), value);
}

/* A filter of |value|, or a test. */
static tpl_value apply(tpl_run *run, const tpl_node *node, tpl_value value) {
  tpl_list *positions;
  tpl_dict *names;
  if (!node->function)
    return rdna__tpl_fail(run, RDNA_UNSUPPORTED, "there is no %s '%.*s'",
                          node->kind == TPL_NODE_FILTER ? "filter" : "test", (int)node->name.size, node->name.data);
  rdna__tpl_arguments(run, node, &positions, &names);
  return rdna__tpl_invoke(run, node->function, value, positions, names);
}

tpl_value rdna__tpl_filter_through(tpl_run *run, const tpl_node *filters, tpl_value value) {
  if (filters->a) value = rdna__tpl_filter_through(run, filters->a, value);
  run->line = filters->line;
  return run->status == RDNA_OK ? apply(run, filters, value) : value;
}

static tpl_value eval_call(tpl_run *run, const tpl_node *node) {
  tpl_list *positions;
  tpl_dict *names;
  tpl_value callee = rdna__tpl_eval(run, node->a);
  rdna__tpl_arguments(run, node, &positions, &names);
  return run->status == RDNA_OK ? rdna__tpl_call_value(run, callee, positions, names) : callee;
}

static tpl_value eval_item(tpl_run *run, const tpl_node *node) {
  tpl_value value = rdna__tpl_eval(run, node->a), key = rdna__tpl_eval(run, node->b);
  return run->status == RDNA_OK ? rdna__tpl_item(run, value, key) : value;
}

static tpl_value eval_any(tpl_run *run, const tpl_node *node) {
  tpl_value value;
  switch (node->kind) {
    case TPL_NODE_CONSTANT:
      return node->constant;
    case TPL_NODE_NAME:
      return find_name(run, node->name);
    case TPL_NODE_LIST:
    case TPL_NODE_TUPLE:
      return eval_list(run, node);
    case TPL_NODE_DICT:
      return eval_dict(run, node);
    case TPL_NODE_ATTRIBUTE:
      value = rdna__tpl_eval(run, node->a);
      return run->status == RDNA_OK ? rdna__tpl_attribute(run, value, node->name) : value;
    case TPL_NODE_ITEM:
      return eval_item(run, node);
    case TPL_NODE_SLICE:
      return eval_slice(run, node);
    case TPL_NODE_CALL:
      return eval_call(run, node);
    case TPL_NODE_FILTER:
      value = rdna__tpl_eval(run, node->a);
      return run->status == RDNA_OK ? apply(run, node, value) : value;
    case TPL_NODE_TEST:
      value = rdna__tpl_eval(run, node->a);
      return run->status == RDNA_OK ? tpl_bool(rdna__tpl_truth(apply(run, node, value))) : value;
    case TPL_NODE_CHOICE:
      if (rdna__tpl_truth(rdna__tpl_eval(run, node->b))) return rdna__tpl_eval(run, node->a);
      return node->c ? rdna__tpl_eval(run, node->c) : tpl_undefined((rdna_text){"if without else", 15});
    case TPL_NODE_OR:
    case TPL_NODE_AND:
      value = rdna__tpl_eval(run, node->a);
      return rdna__tpl_truth(value) == (node->kind == TPL_NODE_OR) ? value : rdna__tpl_eval(run, node->b);
    case TPL_NODE_NOT:
      return tpl_bool(!rdna__tpl_truth(rdna__tpl_eval(run, node->a)));
    case TPL_NODE_NEGATIVE:
    case TPL_NODE_POSITIVE:
      return eval_sign(run, node);
    case TPL_NODE_COMPARE:
      return eval_compare(run, node);
    case TPL_NODE_CONCAT:
      return eval_concat(run, node);
    default: /* of two values */
      value = rdna__tpl_eval(run, node->a);
      return rdna__tpl_arithmetic(run, node->kind, value, rdna__tpl_eval(run, node->b));
  }
}

tpl_value rdna__tpl_eval(tpl_run *run, const tpl_node *node) {
  if (!rdna__tpl_spend(run, 0) || !rdna__tpl_deeper(run)) return tpl_undefined((rdna_text){NULL, 0});
  int line = run->line;
  run->line = node->line;
  tpl_value value = eval_any(run, node);
  run->line = line;
  rdna__tpl_shallower(run);
  return value;
}
