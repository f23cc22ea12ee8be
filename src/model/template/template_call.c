/* Calls: the arguments as written, bound to the parameters of a function or macro. */
#include <string.h>

#include "model/template/template.h"

enum { MAX_PARAMETERS = 6 };

void rdna__tpl_arguments(tpl_run *run, const tpl_node *node, tpl_list **out_positions, tpl_dict **out_names) {
  bool named = false;
  for (size_t i = 0; i < node->argument_count; i++)
    named |= node->arguments[i].name.data || node->arguments[i].stars == 2;
  *out_positions = node->argument_count ? rdna__tpl_new_list(run, node->argument_count) : &run->no_list;
  *out_names = named ? rdna__tpl_new_dict(run) : &run->no_dict;
  for (size_t i = 0; i < node->argument_count && run->status == RDNA_OK; i++) {
    const tpl_argument *argument = &node->arguments[i];
    tpl_value value = rdna__tpl_eval(run, argument->value);
    if (argument->stars == 1) {
      const tpl_list *items = rdna__tpl_items(run, value);
      for (size_t j = 0; j < items->count; j++) rdna__tpl_list_add(run, *out_positions, items->items[j]);
    } else if (argument->stars == 2) {
      if (value.kind != TPL_DICT) {
        rdna__tpl_fail(run, TPL_INVALID, "** takes a dict, not a value of type %s", rdna__tpl_type_name(value));
        return;
      }
      for (size_t j = 0; j < value.dict->count; j++)
        rdna__tpl_dict_set(run, *out_names, value.dict->keys[j], value.dict->values[j]);
    } else if (argument->name.data) {
      tpl_value name = tpl_text(argument->name.data, argument->name.size);
      if (rdna__tpl_dict_find_text(*out_names, argument->name))
        rdna__tpl_fail(run, TPL_INVALID, "the argument '%.*s' is given twice", (int)argument->name.size,
                       argument->name.data);
      rdna__tpl_dict_set(run, *out_names, name, value);
    } else {
      rdna__tpl_list_add(run, *out_positions, value);
    }
  }
}

/* One word of a function's parameters. */
typedef struct parameter {
  rdna_text name;
  bool optional;
} parameter;

static int parse_parameters(const char *text, parameter parameters[MAX_PARAMETERS], bool *rest, bool *named) {
  int count = 0;
  *rest = *named = false;
  while (*text) {
    size_t size = strcspn(text, " ");
    if (size == 1 && *text == '*') {
      *rest = true;
    } else if (size == 2 && text[0] == '*') {
      *named = true;
    } else {
      bool optional = text[size - 1] == '?';
      parameters[count++] = (parameter){{text, size - optional}, optional};
    }
    text += size + strspn(text + size, " ");
  }
  return count;
}

tpl_value rdna__tpl_invoke(tpl_run *run, const tpl_function *function, tpl_value self, tpl_list *positions,
                           tpl_dict *names) {
  size_t share = self.kind == TPL_STRING ? self.text.size / 8 : rdna__tpl_is_list(self) ? self.list->count / 2 : 0;
  if (!rdna__tpl_spend(run, share)) return self;
  parameter parameters[MAX_PARAMETERS];
  tpl_value at[MAX_PARAMETERS];
  bool rest, named;
  int count = parse_parameters(function->parameters, parameters, &rest, &named);
  tpl_call call = {at, &run->no_list, &run->no_dict};
  for (int i = 0; i < count; i++)
    at[i] = (size_t)i < positions->count ? positions->items[i] : (tpl_value){.kind = TPL_ABSENT};
  if (positions->count > (size_t)count && !rest)
    return rdna__tpl_fail(run, TPL_INVALID, "%s takes %d arguments, not %zu", function->name, count, positions->count);
  if (positions->count > (size_t)count) call.rest = rdna__tpl_new_list(run, positions->count - (size_t)count);
  if (named && names->count) call.named = rdna__tpl_new_dict(run);
  for (size_t i = (size_t)count; i < positions->count; i++) rdna__tpl_list_add(run, call.rest, positions->items[i]);
  for (size_t i = 0; i < names->count && run->status == RDNA_OK; i++) {
    rdna_text name = names->keys[i].kind == TPL_STRING ? names->keys[i].text : (rdna_text){"?", 1};
    int which = 0;
    while (which < count && !tpl_same(parameters[which].name, name)) which++;
    if (which < count && at[which].kind == TPL_ABSENT)
      at[which] = names->values[i];
    else if (which == count && named)
      rdna__tpl_dict_set(run, call.named, names->keys[i], names->values[i]);
    else
      rdna__tpl_fail(run, TPL_INVALID, which < count ? "%s is given '%.*s' twice" : "%s has no argument '%.*s'",
                     function->name, (int)name.size, name.data);
  }
  for (int i = 0; i < count; i++)
    if (at[i].kind == TPL_ABSENT && !parameters[i].optional)
      rdna__tpl_fail(run, TPL_INVALID, "%s lacks its argument '%.*s'", function->name, (int)parameters[i].name.size,
                     parameters[i].name.data);
  return run->status == RDNA_OK ? function->code(run, self, &call) : self;
}

/* Methods of Python that change their value: Jinja's sandbox, which chat templates are run in, does not have them. */
static bool would_change(rdna_text name) {
  static const char *const names[] = {"append", "clear",   "extend",     "insert", "pop",   "popitem",
                                      "remove", "reverse", "setdefault", "sort",   "update"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (rdna__tpl_is(name, names[i])) return true;
  return false;
}

tpl_value rdna__tpl_call_value(tpl_run *run, tpl_value callee, tpl_list *positions, tpl_dict *names) {
  if (callee.kind == TPL_MACRO) return rdna__tpl_run_macro(run, callee.macro, positions, names);
  if (callee.kind == TPL_FUNCTION)
    return rdna__tpl_invoke(run, callee.bound->function, callee.bound->self, positions, names);
  if (callee.kind == TPL_UNDEFINED)
    return rdna__tpl_fail(run, TPL_INVALID, "'%.*s' is undefined and cannot be called%s", (int)callee.text.size,
                          callee.text.data ? callee.text.data : "",
                          would_change(callee.text) ? "; templates cannot change lists and dicts" : "");
  return rdna__tpl_fail(run, TPL_INVALID, "a value of type %s cannot be called", rdna__tpl_type_name(callee));
}

/* Binds the parameters of |node| in the innermost scope; defaults see those before them. */
static void bind_parameters(tpl_run *run, const tpl_node *node, const tpl_list *positions, const tpl_dict *names) {
  for (size_t i = 0; i < node->item_count; i++) {
    rdna_text name = node->items[i]->name;
    const tpl_value *given = i < positions->count ? &positions->items[i] : NULL;
    const tpl_value *named = rdna__tpl_dict_find_text(names, name);
    if (given && named)
      rdna__tpl_fail(run, TPL_INVALID, "macro %.*s is given '%.*s' twice", (int)node->name.size, node->name.data,
                     (int)name.size, name.data);
    if (!given) given = named;
    const tpl_node *otherwise = node->arguments[i].value;
    rdna__tpl_bind(run, name, given ? *given : otherwise ? rdna__tpl_eval(run, otherwise) : tpl_undefined(name));
  }
}

/* What no parameter took: a name that the macro does not have, or varargs and kwargs. */
static void bind_others(tpl_run *run, const tpl_node *node, tpl_list *positions, const tpl_dict *names) {
  tpl_dict *others = rdna__tpl_new_dict(run);
  rdna_text caller = {"caller", 6};
  for (size_t i = 0; i < names->count && run->status == RDNA_OK; i++) {
    rdna_text name = names->keys[i].kind == TPL_STRING ? names->keys[i].text : (rdna_text){"?", 1};
    size_t which = 0;
    while (which < node->item_count && !tpl_same(node->items[which]->name, name)) which++;
    if (which < node->item_count) continue;
    if (node->uses_caller && tpl_same(name, caller))
      rdna__tpl_bind(run, caller, names->values[i]);
    else if (node->uses_kwargs)
      rdna__tpl_dict_set(run, others, names->keys[i], names->values[i]);
    else
      rdna__tpl_fail(run, TPL_INVALID, "macro %.*s has no argument '%.*s'", (int)node->name.size, node->name.data,
                     (int)name.size, name.data);
  }
  if (node->uses_kwargs) rdna__tpl_bind(run, (rdna_text){"kwargs", 6}, (tpl_value){.kind = TPL_DICT, .dict = others});
  if (node->uses_caller && !rdna__tpl_dict_find_text(names, caller)) rdna__tpl_bind(run, caller, tpl_undefined(caller));
  if (!node->uses_varargs && positions->count > node->item_count)
    rdna__tpl_fail(run, TPL_INVALID, "macro %.*s takes %zu arguments, not %zu", (int)node->name.size, node->name.data,
                   node->item_count, positions->count);
  if (!node->uses_varargs) return;
  tpl_list *rest = rdna__tpl_new_list(run, 0);
  for (size_t i = node->item_count; i < positions->count; i++) rdna__tpl_list_add(run, rest, positions->items[i]);
  rdna__tpl_bind(run, (rdna_text){"varargs", 7}, rdna__tpl_list_value(TPL_TUPLE, rest));
}

tpl_value rdna__tpl_run_macro(tpl_run *run, const tpl_macro *macro, tpl_list *positions, tpl_dict *names) {
  if (!rdna__tpl_deeper(run)) return tpl_none();
  tpl_scope *scope = run->scope, *inside = rdna__tpl_open_scope(run, macro->scope);
  tpl_buffer text = {0}, *out = run->out;
  if (inside) {
    run->out = &text;
    bind_parameters(run, macro->node, positions, names);
    bind_others(run, macro->node, positions, names);
    rdna__tpl_execute(run, macro->node->body);
    run->scope = scope;
    run->out = out;
    if (!macro->node->defines_macros) rdna__tpl_clear_scope(run, inside);
  }
  rdna__tpl_shallower(run);
  return tpl_buffer_text(&text);
}
