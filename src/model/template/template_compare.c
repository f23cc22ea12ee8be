/* Equality, order and membership, as Python has them. */
#include <string.h>

#include "model/template/template.h"

static bool equal_lists(tpl_run *run, const tpl_list *x, const tpl_list *y) {
  if (x->count != y->count || !rdna__tpl_deeper(run)) return false;
  bool equal = true;
  for (size_t i = 0; i < x->count && equal; i++) equal = rdna__tpl_equal(run, x->items[i], y->items[i]);
  rdna__tpl_shallower(run);
  return equal;
}

static bool equal_dicts(tpl_run *run, const tpl_dict *x, const tpl_dict *y) {
  if (x->count != y->count || !rdna__tpl_deeper(run)) return false;
  bool equal = true;
  for (size_t i = 0; i < x->count && equal; i++) {
    const tpl_value *other = rdna__tpl_dict_find(run, y, x->keys[i]);
    equal = other && rdna__tpl_equal(run, x->values[i], *other);
  }
  rdna__tpl_shallower(run);
  return equal;
}

/* An int beside a float: both exactly, where a double has no room for the int. */
static int order_numbers(tpl_value x, tpl_value y) {
  if (x.kind != TPL_FLOAT && y.kind != TPL_FLOAT) {
    int64_t a = rdna__tpl_as_int(x), b = rdna__tpl_as_int(y);
    return (a > b) - (a < b);
  }
  long double a = x.kind == TPL_FLOAT ? x.real : (long double)rdna__tpl_as_int(x);
  long double b = y.kind == TPL_FLOAT ? y.real : (long double)rdna__tpl_as_int(y);
  return (a > b) - (a < b);
}

static bool is_nan(tpl_value v) { return v.kind == TPL_FLOAT && v.real != v.real; }

bool rdna__tpl_equal(tpl_run *run, tpl_value x, tpl_value y) {
  if (!rdna__tpl_spend(run, 0)) return false;
  if (rdna__tpl_is_number(x) && rdna__tpl_is_number(y)) return !is_nan(x) && !is_nan(y) && order_numbers(x, y) == 0;
  if (x.kind != y.kind) return false;
  switch (x.kind) {
    case TPL_UNDEFINED:
    case TPL_NONE:
      return true;
    case TPL_STRING:
      return rdna__tpl_spend(run, x.text.size / 64) && tpl_same(x.text, y.text);
    case TPL_LIST:
    case TPL_TUPLE:
    case TPL_RANGE:
      return x.list == y.list || equal_lists(run, x.list, y.list);
    case TPL_DICT:
      return x.dict == y.dict || equal_dicts(run, x.dict, y.dict);
    default:
      return x.list == y.list; /* the same thing */
  }
}

int rdna__tpl_order(tpl_run *run, tpl_value x, tpl_value y) {
  if (!rdna__tpl_spend(run, 0)) return 0;
  if (rdna__tpl_is_number(x) && rdna__tpl_is_number(y)) return order_numbers(x, y);
  if (x.kind == TPL_STRING && y.kind == TPL_STRING) { /* the order of UTF-8 is that of characters */
    size_t size = x.text.size < y.text.size ? x.text.size : y.text.size;
    rdna__tpl_spend(run, size / 64);
    int order = size ? memcmp(x.text.data, y.text.data, size) : 0;
    return order ? order : (x.text.size > y.text.size) - (x.text.size < y.text.size);
  }
  if (x.kind == y.kind && (x.kind == TPL_LIST || x.kind == TPL_TUPLE)) {
    if (!rdna__tpl_deeper(run)) return 0;
    size_t i = 0, count = x.list->count < y.list->count ? x.list->count : y.list->count;
    while (i < count && rdna__tpl_equal(run, x.list->items[i], y.list->items[i])) i++;
    int order = i < count ? rdna__tpl_order(run, x.list->items[i], y.list->items[i])
                          : (x.list->count > y.list->count) - (x.list->count < y.list->count);
    rdna__tpl_shallower(run);
    return order;
  }
  if (x.kind == TPL_UNDEFINED || y.kind == TPL_UNDEFINED) {
    rdna_text name = x.kind == TPL_UNDEFINED ? x.text : y.text;
    rdna__tpl_fail(run, TPL_INVALID, "'%.*s' is undefined and cannot be compared", (int)name.size, name.data);
  } else {
    rdna__tpl_fail(run, TPL_INVALID, "values of types %s and %s have no order", rdna__tpl_type_name(x),
                   rdna__tpl_type_name(y));
  }
  return 0;
}

bool rdna__tpl_contains(tpl_run *run, tpl_value whole, tpl_value part) {
  if (whole.kind == TPL_STRING) {
    if (part.kind != TPL_STRING) {
      rdna__tpl_fail(run, TPL_INVALID, "'in' looks for text in a text, not for a value of type %s",
                     rdna__tpl_type_name(part));
      return false;
    }
    return rdna__tpl_spend(run, whole.text.size / 64) && rdna__tpl_find(whole.text, part.text, 0) >= 0;
  }
  if (whole.kind == TPL_DICT) return rdna__tpl_dict_find(run, whole.dict, part) != NULL;
  const tpl_list *items = rdna__tpl_items(run, whole);
  for (size_t i = 0; i < items->count; i++)
    if (rdna__tpl_equal(run, items->items[i], part)) return true;
  return false;
}

bool rdna__tpl_compare(tpl_run *run, tpl_comparison how, tpl_value x, tpl_value y) {
  bool unordered = is_nan(x) || is_nan(y);
  switch (how) {
    case TPL_EQ:
      return rdna__tpl_equal(run, x, y);
    case TPL_NE:
      return !rdna__tpl_equal(run, x, y);
    case TPL_IN:
      return rdna__tpl_contains(run, y, x);
    case TPL_NOT_IN:
      return !rdna__tpl_contains(run, y, x);
    default: {
      int order = rdna__tpl_order(run, x, y);
      return !unordered && (how == TPL_LT   ? order < 0
                            : how == TPL_LE ? order <= 0
                            : how == TPL_GT ? order > 0
                                            : order >= 0);
    }
  }
}
