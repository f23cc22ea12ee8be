/* Tests, functions that every template knows, and methods of dicts and lists. */
#include <locale.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "model/template/template.h"

#define FUNCTION(name) static tpl_value name(tpl_run *run, tpl_value self, const tpl_call *call)

/* ---- tests ---- */

FUNCTION(is_defined) { return tpl_bool(self.kind != TPL_UNDEFINED); }
FUNCTION(is_undefined) { return tpl_bool(self.kind == TPL_UNDEFINED); }
FUNCTION(is_none) { return tpl_bool(self.kind == TPL_NONE); }
FUNCTION(is_string) { return tpl_bool(self.kind == TPL_STRING); }
FUNCTION(is_mapping) { return tpl_bool(self.kind == TPL_DICT); }
FUNCTION(is_number) { return tpl_bool(rdna__tpl_is_number(self)); }
FUNCTION(is_integer) { return tpl_bool(self.kind == TPL_INT); }
FUNCTION(is_float) { return tpl_bool(self.kind == TPL_FLOAT); }
FUNCTION(is_boolean) { return tpl_bool(self.kind == TPL_BOOL); }
FUNCTION(is_true) { return tpl_bool(self.kind == TPL_BOOL && self.boolean); }
FUNCTION(is_false) { return tpl_bool(self.kind == TPL_BOOL && !self.boolean); }
/* Calling what is undefined fails, but it can be called, as Jinja has it. */
FUNCTION(is_callable) {
  return tpl_bool(self.kind == TPL_MACRO || self.kind == TPL_FUNCTION || self.kind == TPL_UNDEFINED);
}
FUNCTION(is_escaped) { return tpl_bool(self.safe); }
FUNCTION(is_lower) { return tpl_bool(rdna__tpl_has_case(rdna__tpl_to_text(run, self).text, false)); }
FUNCTION(is_upper) { return tpl_bool(rdna__tpl_has_case(rdna__tpl_to_text(run, self).text, true)); }
FUNCTION(is_filter) { return tpl_bool(self.kind == TPL_STRING && rdna__tpl_find_filter(self.text)); }
FUNCTION(is_test) { return tpl_bool(self.kind == TPL_STRING && rdna__tpl_find_test(self.text)); }

FUNCTION(is_iterable) {
  bool yes = rdna__tpl_is_list(self) || self.kind == TPL_STRING || self.kind == TPL_DICT || self.kind == TPL_ITERATOR ||
             self.kind == TPL_UNDEFINED || self.kind == TPL_LOOP;
  return tpl_bool(yes);
}

FUNCTION(is_sequence) {
  bool places = rdna__tpl_is_list(self) && self.kind != TPL_VIEW;
  return tpl_bool(places || self.kind == TPL_STRING || self.kind == TPL_DICT || self.kind == TPL_UNDEFINED);
}

/* The remainder of self by |divisor| is zero, or one. */
static tpl_value has_rest(tpl_run *run, tpl_value self, tpl_value divisor, int rest) {
  tpl_value left = rdna__tpl_arithmetic(run, TPL_NODE_MODULO, self, divisor);
  return run->status == RDNA_OK ? tpl_bool(rdna__tpl_equal(run, left, tpl_int(rest))) : self;
}
FUNCTION(is_even) { return has_rest(run, self, tpl_int(2), 0); }
FUNCTION(is_odd) { return has_rest(run, self, tpl_int(2), 1); }
FUNCTION(is_divisible) { return has_rest(run, self, call->at[0], 0); }

FUNCTION(is_same) {
  tpl_value other = call->at[0];
  bool scalar = self.kind == TPL_INT || self.kind == TPL_BOOL || self.kind == TPL_NONE || self.kind == TPL_STRING;
  bool same = self.kind == other.kind && (scalar ? rdna__tpl_equal(run, self, other) : self.list == other.list);
  return tpl_bool(same);
}

static tpl_value compare(tpl_run *run, tpl_comparison how, tpl_value self, const tpl_call *call) {
  return tpl_bool(rdna__tpl_compare(run, how, self, call->at[0]));
}
FUNCTION(is_equal) { return compare(run, TPL_EQ, self, call); }
FUNCTION(is_unequal) { return compare(run, TPL_NE, self, call); }
FUNCTION(is_less) { return compare(run, TPL_LT, self, call); }
FUNCTION(is_at_most) { return compare(run, TPL_LE, self, call); }
FUNCTION(is_more) { return compare(run, TPL_GT, self, call); }
FUNCTION(is_at_least) { return compare(run, TPL_GE, self, call); }
FUNCTION(is_in) { return compare(run, TPL_IN, self, call); }

const tpl_function *rdna__tpl_find_test(rdna_text name) {
  static const tpl_function tests[] = {{"defined", "", is_defined},
                                       {"undefined", "", is_undefined},
                                       {"none", "", is_none},
                                       {"string", "", is_string},
                                       {"mapping", "", is_mapping},
                                       {"number", "", is_number},
                                       {"integer", "", is_integer},
                                       {"float", "", is_float},
                                       {"boolean", "", is_boolean},
                                       {"true", "", is_true},
                                       {"false", "", is_false},
                                       {"callable", "", is_callable},
                                       {"escaped", "", is_escaped},
                                       {"lower", "", is_lower},
                                       {"upper", "", is_upper},
                                       {"filter", "", is_filter},
                                       {"test", "", is_test},
                                       {"iterable", "", is_iterable},
                                       {"sequence", "", is_sequence},
                                       {"even", "", is_even},
                                       {"odd", "", is_odd},
                                       {"divisibleby", "num", is_divisible},
                                       {"sameas", "other", is_same},
                                       {"eq", "other", is_equal},
                                       {"equalto", "other", is_equal},
                                       {"==", "other", is_equal},
                                       {"ne", "other", is_unequal},
                                       {"!=", "other", is_unequal},
                                       {"lt", "other", is_less},
                                       {"lessthan", "other", is_less},
                                       {"<", "other", is_less},
                                       {"le", "other", is_at_most},
                                       {"<=", "other", is_at_most},
                                       {"gt", "other", is_more},
                                       {"greaterthan", "other", is_more},
                                       {">", "other", is_more},
                                       {"ge", "other", is_at_least},
                                       {">=", "other", is_at_least},
                                       {"in", "seq", is_in}};
  return rdna__tpl_find_in(tests, sizeof tests / sizeof *tests, name);
}

/* ---- functions that every template knows ---- */

FUNCTION(range) {
  int64_t start = 0, stop, step = 1;
  bool one = call->at[1].kind == TPL_ABSENT;
  if (!rdna__tpl_get_int(run, call->at[one ? 0 : 1], "range", &stop)) return self;
  if (!one && !rdna__tpl_get_int(run, call->at[0], "range", &start)) return self;
  if (call->at[2].kind != TPL_ABSENT && !rdna__tpl_get_int(run, call->at[2], "range", &step)) return self;
  if (step == 0) return rdna__tpl_fail(run, TPL_INVALID, "a range's step is zero");
  return rdna__tpl_list_value(TPL_RANGE, rdna__tpl_new_range(run, start, stop, step));
}

/* A dict of another dict or a list of pairs, and of names. */
static tpl_dict *make_dict(tpl_run *run, const tpl_call *call) {
  tpl_dict *dict = rdna__tpl_new_dict(run);
  tpl_value from = call->at[0];
  if (from.kind == TPL_DICT) {
    for (size_t i = 0; i < from.dict->count; i++)
      rdna__tpl_dict_set(run, dict, from.dict->keys[i], from.dict->values[i]);
  } else if (from.kind != TPL_ABSENT) {
    const tpl_list *all = rdna__tpl_items(run, from);
    for (size_t i = 0; i < all->count && run->status == RDNA_OK; i++) {
      const tpl_list *pair = rdna__tpl_items(run, all->items[i]);
      if (pair->count != 2)
        rdna__tpl_fail(run, TPL_INVALID, "dict takes pairs, not %zu values", pair->count);
      else
        rdna__tpl_dict_set(run, dict, pair->items[0], pair->items[1]);
    }
  }
  for (size_t i = 0; i < call->named->count && run->status == RDNA_OK; i++)
    rdna__tpl_dict_set(run, dict, call->named->keys[i], call->named->values[i]);
  return dict;
}
FUNCTION(dict) { return (tpl_value){.kind = TPL_DICT, .dict = make_dict(run, call)}; }
FUNCTION(name_space) { return (tpl_value){.kind = TPL_NAMESPACE, .dict = make_dict(run, call)}; }

FUNCTION(raise_exception) {
  tpl_value message = rdna__tpl_to_text(run, call->at[0]);
  return rdna__tpl_fail(run, TPL_INVALID, "the template refuses these messages: %.*s", (int)message.text.size,
                        message.text.data);
}

FUNCTION(strftime_now) {
  char format[200], text[600];
  tpl_value given = call->at[0];
  if (given.kind != TPL_STRING || given.text.size >= sizeof format || memchr(given.text.data, 0, given.text.size))
    return rdna__tpl_fail(run, TPL_INVALID, "strftime_now takes a text below %zu bytes", sizeof format);
  memcpy(format, given.text.data, given.text.size);
  format[given.text.size] = 0;
  time_t now = time(NULL);
  struct tm parts;
  localtime_r(&now, &parts);
  size_t size = strftime_l(text, sizeof text, format, &parts, newlocale(LC_ALL_MASK, "C", (locale_t)0));
  tpl_buffer buffer = {0};
  rdna__tpl_append(run, &buffer, text, size);
  return tpl_buffer_text(&buffer);
}

/* Jinja's joiner: a function that returns nothing the first time, and then what it was made with. */
FUNCTION(join_next) {
  bool first = self.list->position == 0;
  self.list->position = 1;
  return first ? tpl_text("", 0) : self.list->items[0];
}

FUNCTION(joiner) {
  static const tpl_function next = {"joiner", "", join_next};
  tpl_list *state = rdna__tpl_new_list(run, 1);
  rdna__tpl_list_add(run, state, tpl_or(call->at[0], tpl_text(", ", 2)));
  tpl_bound *bound = rdna__tpl_alloc(run, sizeof *bound);
  if (!bound) return self;
  *bound = (tpl_bound){&next, rdna__tpl_list_value(TPL_LIST, state)};
  return (tpl_value){.kind = TPL_FUNCTION, .bound = bound};
}

const tpl_function *rdna__tpl_find_global(rdna_text name) {
  static const tpl_function globals[] = {
      {"range", "start stop? step?", range},    {"dict", "from? **", dict},
      {"namespace", "from? **", name_space},    {"raise_exception", "message", raise_exception},
      {"strftime_now", "format", strftime_now}, {"joiner", "sep?", joiner}};
  return rdna__tpl_find_in(globals, sizeof globals / sizeof *globals, name);
}

/* ---- methods of dicts and lists ---- */

FUNCTION(dict_get) {
  const tpl_value *found = rdna__tpl_dict_find(run, self.dict, call->at[0]);
  return found ? *found : tpl_or(call->at[1], tpl_none());
}

static tpl_value view(tpl_run *run, tpl_value self, const char *name) {
  tpl_list *list = rdna__tpl_new_list(run, self.dict->count);
  for (size_t i = 0; i < self.dict->count; i++)
    rdna__tpl_list_add(run, list,
                       name[5] == 'k'   ? self.dict->keys[i]
                       : name[5] == 'v' ? self.dict->values[i]
                                        : rdna__tpl_pair(run, self.dict->keys[i], self.dict->values[i]));
  if (run->status == RDNA_OK) list->view_name = name;
  return rdna__tpl_list_value(TPL_VIEW, list);
}
FUNCTION(dict_items) { return view(run, self, "dict_items"); }
FUNCTION(dict_keys) { return view(run, self, "dict_keys"); }
FUNCTION(dict_values) { return view(run, self, "dict_values"); }
FUNCTION(copy) { return self; /* nothing can change it */ }

FUNCTION(list_index) {
  for (size_t i = 0; i < self.list->count; i++)
    if (rdna__tpl_equal(run, self.list->items[i], call->at[0])) return tpl_int((int64_t)i);
  return rdna__tpl_fail(run, TPL_INVALID, "index: the value is not in the list");
}

FUNCTION(list_count) {
  int64_t found = 0;
  for (size_t i = 0; i < self.list->count; i++) found += rdna__tpl_equal(run, self.list->items[i], call->at[0]);
  return tpl_int(found);
}

const tpl_function *rdna__tpl_find_method(tpl_kind kind, rdna_text name) {
  static const tpl_function of_dicts[] = {{"get", "key default?", dict_get},
                                          {"items", "", dict_items},
                                          {"keys", "", dict_keys},
                                          {"values", "", dict_values},
                                          {"copy", "", copy}};
  static const tpl_function of_lists[] = {
      {"index", "value", list_index}, {"count", "value", list_count}, {"copy", "", copy}};
  if (kind == TPL_STRING) return rdna__tpl_find_in(rdna__tpl_text_methods, rdna__tpl_text_method_count, name);
  if (kind == TPL_DICT) return rdna__tpl_find_in(of_dicts, sizeof of_dicts / sizeof *of_dicts, name);
  if (kind == TPL_LIST) return rdna__tpl_find_in(of_lists, 3, name);
  return kind == TPL_TUPLE || kind == TPL_RANGE ? rdna__tpl_find_in(of_lists, 2, name) : NULL;
}
