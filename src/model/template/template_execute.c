/* Statements: text to the output, names to the innermost scope. */
#include <string.h>

#include "model/template/template.h"

struct tpl_loop {
  const tpl_node *node; /* the FOR */
  const tpl_list *source;
  size_t source_at; /* the next item that node->c was not yet asked about, in |scope| */
  tpl_scope *scope;
  tpl_list *items;   /* those that passed, as far as anyone has asked */
  size_t at;         /* the current one */
  tpl_value changed; /* what loop.changed was last called with */
};

void rdna__tpl_bind(tpl_run *run, rdna_text name, tpl_value value) {
  for (tpl_binding *b = run->scope->bindings; b; b = b->next)
    if (tpl_same(b->name, name)) {
      b->value = value;
      return;
    }
  tpl_binding *binding = run->free_bindings;
  if (binding)
    run->free_bindings = binding->next;
  else
    binding = rdna__tpl_alloc(run, sizeof *binding);
  if (!binding) return;
  *binding = (tpl_binding){name, value, run->scope->bindings};
  run->scope->bindings = binding;
}

tpl_scope *rdna__tpl_open_scope(tpl_run *run, tpl_scope *parent) {
  tpl_scope *scope = rdna__tpl_alloc(run, sizeof *scope);
  if (!scope) return NULL;
  *scope = (tpl_scope){.parent = parent};
  run->scope = scope;
  return scope;
}

void rdna__tpl_clear_scope(tpl_run *run, tpl_scope *scope) {
  while (scope && scope->bindings) {
    tpl_binding *next = scope->bindings->next;
    scope->bindings->next = run->free_bindings;
    run->free_bindings = scope->bindings;
    scope->bindings = next;
  }
}

void rdna__tpl_assign(tpl_run *run, const tpl_node *target, tpl_value value) {
  if (run->status != RDNA_OK) return;
  if (target->kind == TPL_NODE_NAME) {
    rdna__tpl_bind(run, target->name, value);
  } else if (target->kind == TPL_NODE_NS_TARGET) {
    tpl_value space = rdna__tpl_eval(run, target->a);
    if (space.kind != TPL_NAMESPACE)
      rdna__tpl_fail(run, TPL_INVALID, "only a namespace has attributes that can be set, not a value of type %s",
                     rdna__tpl_type_name(space));
    else
      rdna__tpl_dict_set(run, space.dict, target->constant, value);
  } else {
    const tpl_list *items = rdna__tpl_items(run, value);
    if (items->count != target->item_count)
      rdna__tpl_fail(run, TPL_INVALID, "%zu names for %zu values", target->item_count, items->count);
    for (size_t i = 0; i < target->item_count && run->status == RDNA_OK; i++)
      rdna__tpl_assign(run, target->items[i], items->items[i]);
  }
}

/* Runs |body| with the output going to a text of its own, in a scope of its own. */
static tpl_value capture(tpl_run *run, const tpl_node *body) {
  tpl_buffer text = {0}, *out = run->out;
  tpl_scope *scope = run->scope;
  run->out = &text;
  if (rdna__tpl_open_scope(run, scope)) rdna__tpl_execute(run, body);
  run->scope = scope;
  run->out = out;
  return tpl_buffer_text(&text);
}

/* ---- loops ---- */

/* Whether there is an item |index|: looks at more of the source, and asks the loop's "if", only as far as it must. */
static bool reach(tpl_run *run, tpl_loop *loop, size_t index) {
  while (run->status == RDNA_OK && loop->items->count <= index && loop->source_at < loop->source->count) {
    tpl_value item = loop->source->items[loop->source_at++];
    bool passes = false;
    tpl_scope *scope = run->scope, *inside = rdna__tpl_open_scope(run, loop->scope);
    if (inside) {
      rdna__tpl_assign(run, loop->node->a, item);
      passes = rdna__tpl_truth(rdna__tpl_eval(run, loop->node->c));
    }
    rdna__tpl_clear_scope(run, inside);
    run->scope = scope;
    if (passes) rdna__tpl_list_add(run, loop->items, item);
  }
  return loop->items->count > index;
}

static int64_t loop_length(tpl_run *run, tpl_loop *loop) {
  reach(run, loop, loop->source->count); /* there is none there: everything is looked at */
  return (int64_t)loop->items->count;
}

static tpl_value loop_cycle(tpl_run *run, tpl_value self, const tpl_call *call) {
  if (call->rest->count == 0) return rdna__tpl_fail(run, TPL_INVALID, "loop.cycle lacks what it goes through");
  return call->rest->items[self.loop->at % call->rest->count];
}

static tpl_value loop_changed(tpl_run *run, tpl_value self, const tpl_call *call) {
  tpl_value now = rdna__tpl_list_value(TPL_TUPLE, call->rest);
  bool same = rdna__tpl_equal(run, now, self.loop->changed);
  self.loop->changed = now;
  return tpl_bool(!same);
}

static const tpl_function loop_functions[] = {{"cycle", "*", loop_cycle}, {"changed", "*", loop_changed}};

tpl_value rdna__tpl_loop_attribute(tpl_run *run, tpl_loop *loop, rdna_text name) {
  int64_t at = (int64_t)loop->at;
  if (rdna__tpl_is(name, "index")) return tpl_int(at + 1);
  if (rdna__tpl_is(name, "index0")) return tpl_int(at);
  if (rdna__tpl_is(name, "first")) return tpl_bool(at == 0);
  if (rdna__tpl_is(name, "last")) return tpl_bool(!reach(run, loop, loop->at + 1));
  if (rdna__tpl_is(name, "length")) return tpl_int(loop_length(run, loop));
  if (rdna__tpl_is(name, "revindex")) return tpl_int(loop_length(run, loop) - at);
  if (rdna__tpl_is(name, "revindex0")) return tpl_int(loop_length(run, loop) - at - 1);
  if (rdna__tpl_is(name, "previtem")) return at > 0 ? loop->items->items[at - 1] : tpl_undefined(name);
  if (rdna__tpl_is(name, "nextitem"))
    return reach(run, loop, loop->at + 1) ? loop->items->items[at + 1] : tpl_undefined(name);
  if (rdna__tpl_is(name, "depth")) return tpl_int(1);
  if (rdna__tpl_is(name, "depth0")) return tpl_int(0);
  const tpl_function *function = rdna__tpl_find_in(loop_functions, 2, name);
  tpl_bound *bound = function ? rdna__tpl_alloc(run, sizeof *bound) : NULL;
  if (!bound) return tpl_undefined(name);
  *bound = (tpl_bound){function, {.kind = TPL_LOOP, .loop = loop}};
  return (tpl_value){.kind = TPL_FUNCTION, .bound = bound};
}

static void execute_for(tpl_run *run, const tpl_node *node) {
  tpl_value source = rdna__tpl_eval(run, node->b);
  tpl_loop *loop = rdna__tpl_alloc(run, sizeof *loop);
  if (!loop) return;
  tpl_scope *scope = run->scope;
  tpl_list *items = rdna__tpl_items(run, source);
  *loop = (tpl_loop){.node = node, .source = items, .source_at = items->count, .items = items, .scope = scope};
  if (node->c) { /* some are left out */
    loop->source_at = 0;
    loop->items = rdna__tpl_new_list(run, 0);
  }
  bool whole = false; /* some item's body ran to its end: only then does Jinja leave out the "else" */
  for (tpl_scope *inside = NULL; run->flow != TPL_FLOW_BREAK && reach(run, loop, loop->at); loop->at++) {
    if (!inside || node->defines_macros)
      inside = rdna__tpl_open_scope(run, scope);
    else
      rdna__tpl_clear_scope(run, inside); /* nobody has kept the one of the item before */
    if (!inside) break;
    run->scope = inside;
    rdna__tpl_bind(run, (rdna_text){"loop", 4}, (tpl_value){.kind = TPL_LOOP, .loop = loop});
    rdna__tpl_assign(run, node->a, loop->items->items[loop->at]);
    rdna__tpl_execute(run, node->body);
    whole |= run->flow == TPL_FLOW_ON;
    if (run->flow == TPL_FLOW_CONTINUE) run->flow = TPL_FLOW_ON;
  }
  run->scope = scope;
  if (run->flow == TPL_FLOW_BREAK) run->flow = TPL_FLOW_ON;
  if (!whole && node->otherwise && rdna__tpl_open_scope(run, scope)) rdna__tpl_execute(run, node->otherwise);
  run->scope = scope;
}

/* ---- the others ---- */

static tpl_value make_macro(tpl_run *run, const tpl_node *node) {
  tpl_macro *macro = rdna__tpl_alloc(run, sizeof *macro);
  if (!macro) return tpl_none();
  *macro = (tpl_macro){node, run->scope};
  return (tpl_value){.kind = TPL_MACRO, .macro = macro};
}

static void execute_call_block(tpl_run *run, const tpl_node *node) {
  tpl_list *positions;
  tpl_dict *names;
  tpl_value callee = rdna__tpl_eval(run, node->b->a), caller = make_macro(run, node->a);
  rdna__tpl_arguments(run, node->b, &positions, &names);
  if (names == &run->no_dict) names = rdna__tpl_new_dict(run);
  if (run->status != RDNA_OK) return;
  rdna__tpl_dict_set(run, names, tpl_text("caller", 6), caller);
  rdna__tpl_append_value(run, run->out, rdna__tpl_call_value(run, callee, positions, names));
}

static void execute_with(tpl_run *run, const tpl_node *node) {
  tpl_scope *outside = run->scope;
  tpl_scope *inside = rdna__tpl_open_scope(run, outside);
  for (size_t i = 0; inside && i < node->item_count; i++) {
    run->scope = outside;
    tpl_value value = rdna__tpl_eval(run, node->arguments[i].value);
    run->scope = inside;
    rdna__tpl_assign(run, node->items[i], value);
  }
  if (inside && run->status == RDNA_OK) rdna__tpl_execute(run, node->body);
  run->scope = outside;
}

static void execute_any(tpl_run *run, const tpl_node *node) {
  tpl_value value;
  switch (node->kind) {
    case TPL_NODE_BLOCK:
      for (size_t i = 0; i < node->item_count && run->flow == TPL_FLOW_ON && run->status == RDNA_OK; i++)
        rdna__tpl_execute(run, node->items[i]);
      return;
    case TPL_NODE_TEXT:
      rdna__tpl_append(run, run->out, node->name.data, node->name.size);
      return;
    case TPL_NODE_PRINT:
      for (size_t i = 0; i < node->item_count && run->status == RDNA_OK; i++) {
        value = rdna__tpl_eval(run, node->items[i]);
        rdna__tpl_append_value(run, run->out, value);
      }
      return;
    case TPL_NODE_IF:
      value = rdna__tpl_eval(run, node->a);
      if (run->status != RDNA_OK) return;
      if (rdna__tpl_truth(value))
        rdna__tpl_execute(run, node->body);
      else if (node->otherwise)
        rdna__tpl_execute(run, node->otherwise);
      return;
    case TPL_NODE_FOR:
      execute_for(run, node);
      return;
    case TPL_NODE_SET:
      rdna__tpl_assign(run, node->a, rdna__tpl_eval(run, node->b));
      return;
    case TPL_NODE_SET_BLOCK:
    case TPL_NODE_FILTER_BLOCK:
      value = capture(run, node->body);
      if (node->b && run->status == RDNA_OK) value = rdna__tpl_filter_through(run, node->b, value);
      if (node->a)
        rdna__tpl_assign(run, node->a, value);
      else if (run->status == RDNA_OK)
        rdna__tpl_append_value(run, run->out, value);
      return;
    case TPL_NODE_MACRO:
      rdna__tpl_bind(run, node->name, make_macro(run, node));
      return;
    case TPL_NODE_CALL_BLOCK:
      execute_call_block(run, node);
      return;
    case TPL_NODE_WITH:
    case TPL_NODE_SCOPE:
      execute_with(run, node);
      return;
    case TPL_NODE_BREAK:
      run->flow = TPL_FLOW_BREAK;
      return;
    case TPL_NODE_CONTINUE:
      run->flow = TPL_FLOW_CONTINUE;
      return;
    default:
      rdna__tpl_fail(run, RDNA_INTERNAL, "an expression stands where a statement should");
  }
}

void rdna__tpl_execute(tpl_run *run, const tpl_node *node) {
  if (!rdna__tpl_spend(run, 0) || !rdna__tpl_deeper(run)) return;
  run->line = node->line;
  execute_any(run, node);
  rdna__tpl_shallower(run);
}
