/* Filters of lists and dicts. */
#include <string.h>

#include "model/template/template.h"

#define FILTER(name) static tpl_value name(tpl_run *run, tpl_value self, const tpl_call *call)

static tpl_value as_list(tpl_list *list) { return rdna__tpl_list_value(TPL_LIST, list); }
static tpl_value as_iterator(tpl_list *list) { return rdna__tpl_list_value(TPL_ITERATOR, list); }
static bool is_given(tpl_value v) { return v.kind != TPL_ABSENT && v.kind != TPL_NONE; }

/* What "a.b.0" finds in |item|; the item itself where no attribute is given. |otherwise| stands for what is undefined,
 * unless it is absent or none. */
static tpl_value get_attribute(tpl_run *run, tpl_value item, tpl_value attribute, tpl_value otherwise) {
  if (!is_given(attribute)) return item;
  if (attribute.kind != TPL_STRING) return rdna__tpl_item(run, item, attribute);
  rdna_text path = attribute.text;
  for (size_t begin = 0; begin <= path.size && run->status == RDNA_OK;) {
    int64_t dot = rdna__tpl_find(path, (rdna_text){".", 1}, begin), place = 0;
    size_t end = dot >= 0 ? (size_t)dot : path.size;
    bool digits = end > begin && end - begin < 18;
    for (size_t i = begin; i < end; i++) {
      digits = digits && path.data[i] >= '0' && path.data[i] <= '9';
      if (digits) place = 10 * place + (path.data[i] - '0');
    }
    item = rdna__tpl_item(run, item, digits ? tpl_int(place) : tpl_text(path.data + begin, end - begin));
    if (item.kind == TPL_UNDEFINED && is_given(otherwise)) item = otherwise;
    begin = end + 1;
  }
  return item;
}

static tpl_value without_case(tpl_run *run, tpl_value value, tpl_value case_sensitive) {
  if (value.kind != TPL_STRING || rdna__tpl_truth(case_sensitive)) return value;
  return rdna__tpl_change_case(run, value.text, "lower");
}

/* ---- order ---- */

/* Sorts the first |count| of both by |keys|, keeping the order of equals: halves are sorted, then merged. */
static void merge_sort(tpl_run *run, tpl_value *values, tpl_value *keys, tpl_value *spare, size_t count, bool reverse) {
  size_t half = count / 2, i = 0, j = half, k = 0;
  if (count < 2 || run->status != RDNA_OK) return;
  merge_sort(run, values, keys, spare, half, reverse);
  merge_sort(run, values + half, keys + half, spare, count - half, reverse);
  while (i < half || j < count) {
    bool left = j == count;
    if (i < half && j < count) {
      int order = rdna__tpl_order(run, keys[i], keys[j]);
      left = (reverse ? -order : order) <= 0;
    }
    size_t from = left ? i++ : j++;
    spare[k] = values[from];
    spare[count + k++] = keys[from];
  }
  memcpy(values, spare, count * sizeof *values);
  memcpy(keys, spare + count, count * sizeof *keys);
}

/* A sorted copy of |items|; |keys| are sorted with them. */
static tpl_list *sorted(tpl_run *run, const tpl_list *items, tpl_list *keys, bool reverse) {
  tpl_list *copy = rdna__tpl_new_list(run, items->count);
  for (size_t i = 0; i < items->count; i++) rdna__tpl_list_add(run, copy, items->items[i]);
  tpl_value *spare = items->count ? rdna__tpl_alloc(run, 2 * items->count * sizeof *spare) : NULL;
  if (spare) merge_sort(run, copy->items, keys->items, spare, copy->count, reverse);
  return copy;
}

FILTER(sort) {
  tpl_value sensitive = call->at[1], attribute = call->at[2];
  const tpl_list *items = rdna__tpl_items(run, self);
  tpl_list *keys = rdna__tpl_new_list(run, items->count);
  for (size_t i = 0; i < items->count && run->status == RDNA_OK; i++) {
    tpl_list *parts = rdna__tpl_new_list(run, 1); /* "a,b" sorts by two attributes */
    rdna_text path = attribute.kind == TPL_STRING ? attribute.text : (rdna_text){"", 0};
    for (size_t begin = 0; begin <= path.size && run->status == RDNA_OK;) {
      int64_t comma = rdna__tpl_find(path, (rdna_text){",", 1}, begin);
      size_t end = comma >= 0 ? (size_t)comma : path.size;
      tpl_value one = attribute.kind == TPL_STRING ? tpl_text(path.data + begin, end - begin) : attribute;
      tpl_value part = get_attribute(run, items->items[i], one, tpl_none());
      rdna__tpl_list_add(run, parts, without_case(run, part, sensitive));
      begin = end + 1;
    }
    rdna__tpl_list_add(run, keys, as_list(parts));
  }
  return as_list(sorted(run, items, keys, rdna__tpl_truth(call->at[0])));
}

/* (key, value) of each item of a dict. */
static tpl_list *pairs(tpl_run *run, tpl_value self) {
  if (self.kind != TPL_DICT)
    rdna__tpl_fail(run, TPL_INVALID, "a value of type %s has no pairs of keys and values", rdna__tpl_type_name(self));
  tpl_list *list = rdna__tpl_new_list(run, 0);
  for (size_t i = 0; run->status == RDNA_OK && i < self.dict->count; i++)
    rdna__tpl_list_add(run, list, rdna__tpl_pair(run, self.dict->keys[i], self.dict->values[i]));
  return list;
}

FILTER(dictsort) {
  tpl_value by = tpl_or(call->at[1], tpl_text("key", 3));
  bool value = by.kind == TPL_STRING && rdna__tpl_is(by.text, "value");
  if (!value && (by.kind != TPL_STRING || !rdna__tpl_is(by.text, "key")))
    return rdna__tpl_fail(run, TPL_INVALID, "dictsort goes by key or by value");
  tpl_list *items = pairs(run, self), *keys = rdna__tpl_new_list(run, items->count);
  for (size_t i = 0; i < items->count; i++)
    rdna__tpl_list_add(run, keys, without_case(run, items->items[i].list->items[value], call->at[0]));
  return as_list(sorted(run, items, keys, rdna__tpl_truth(call->at[2])));
}

FILTER(items) {
  return self.kind == TPL_UNDEFINED ? as_iterator(rdna__tpl_new_list(run, 0)) : as_iterator(pairs(run, self));
}

FILTER(groupby) {
  tpl_value attribute = call->at[0], otherwise = call->at[1], sensitive = call->at[2];
  const tpl_list *items = rdna__tpl_items(run, self);
  tpl_list *keys = rdna__tpl_new_list(run, items->count), *groups = rdna__tpl_new_list(run, 0), *group = NULL;
  for (size_t i = 0; i < items->count && run->status == RDNA_OK; i++) {
    tpl_value key = get_attribute(run, items->items[i], attribute, otherwise);
    rdna__tpl_list_add(run, keys, without_case(run, key, sensitive));
  }
  const tpl_list *order = sorted(run, items, keys, false);
  for (size_t i = 0; i < order->count && run->status == RDNA_OK; i++) {
    if (i == 0 || !rdna__tpl_equal(run, keys->items[i - 1], keys->items[i])) {
      group = rdna__tpl_new_list(run, 0);
      tpl_value pair = rdna__tpl_pair(run, get_attribute(run, order->items[i], attribute, otherwise), as_list(group));
      if (run->status == RDNA_OK) pair.list->is_group = true;
      rdna__tpl_list_add(run, groups, pair);
    }
    if (group) rdna__tpl_list_add(run, group, order->items[i]);
  }
  return as_list(groups);
}

FILTER(unique) {
  const tpl_list *all = rdna__tpl_items(run, self);
  tpl_list *kept = rdna__tpl_new_list(run, 0), *keys = rdna__tpl_new_list(run, 0);
  for (size_t i = 0; i < all->count && run->status == RDNA_OK; i++) {
    tpl_value key = without_case(run, get_attribute(run, all->items[i], call->at[1], tpl_none()), call->at[0]);
    if (key.kind == TPL_LIST || key.kind == TPL_DICT)
      return rdna__tpl_fail(run, TPL_INVALID, "unique cannot tell values of type %s apart", rdna__tpl_type_name(key));
    if (rdna__tpl_contains(run, as_list(keys), key)) continue;
    rdna__tpl_list_add(run, keys, key);
    rdna__tpl_list_add(run, kept, all->items[i]);
  }
  return as_iterator(kept);
}

static tpl_value extreme(tpl_run *run, tpl_value self, const tpl_call *call, int sign) {
  const tpl_list *all = rdna__tpl_items(run, self);
  tpl_value best = tpl_undefined((rdna_text){"min or max of nothing", 21}), best_key = best;
  for (size_t i = 0; i < all->count && run->status == RDNA_OK; i++) {
    tpl_value key = without_case(run, get_attribute(run, all->items[i], call->at[1], tpl_none()), call->at[0]);
    if (i > 0 && rdna__tpl_order(run, key, best_key) * sign <= 0) continue;
    best = all->items[i];
    best_key = key;
  }
  return best;
}
FILTER(smallest) { return extreme(run, self, call, -1); }
FILTER(largest) { return extreme(run, self, call, 1); }

FILTER(sum) {
  tpl_value total = tpl_or(call->at[1], tpl_int(0));
  if (total.kind == TPL_STRING) return rdna__tpl_fail(run, TPL_INVALID, "sum does not join texts; |join does");
  const tpl_list *all = rdna__tpl_items(run, self);
  for (size_t i = 0; i < all->count && run->status == RDNA_OK; i++)
    total = rdna__tpl_arithmetic(run, TPL_NODE_ADD, total, get_attribute(run, all->items[i], call->at[0], tpl_none()));
  return total;
}

/* ---- parts ---- */

FILTER(length) {
  int64_t count;
  if (!rdna__tpl_length(self, &count))
    return rdna__tpl_fail(run, TPL_INVALID, "a value of type %s has no length", rdna__tpl_type_name(self));
  return tpl_int(count);
}

FILTER(first) {
  if (self.kind == TPL_ITERATOR && self.list->position < self.list->count)
    return self.list->items[self.list->position++];
  const tpl_list *all = rdna__tpl_items(run, self);
  return all->count ? all->items[0] : tpl_undefined((rdna_text){"first of nothing", 16});
}

FILTER(last) {
  if (self.kind == TPL_ITERATOR) return rdna__tpl_fail(run, TPL_INVALID, "last of a generator; |list goes before it");
  const tpl_list *all = rdna__tpl_items(run, self);
  return all->count ? all->items[all->count - 1] : tpl_undefined((rdna_text){"last of nothing", 15});
}

FILTER(list) {
  const tpl_list *all = rdna__tpl_items(run, self);
  tpl_list *copy = rdna__tpl_new_list(run, all->count);
  for (size_t i = 0; i < all->count; i++) rdna__tpl_list_add(run, copy, all->items[i]);
  return as_list(copy);
}

FILTER(reverse) {
  const tpl_list *all = rdna__tpl_items(run, self);
  tpl_list *turned = rdna__tpl_new_list(run, all->count);
  tpl_buffer text = {0};
  for (size_t i = all->count; i-- > 0 && run->status == RDNA_OK;) {
    if (self.kind == TPL_STRING) rdna__tpl_append(run, &text, all->items[i].text.data, all->items[i].text.size);
    rdna__tpl_list_add(run, turned, all->items[i]);
  }
  return self.kind == TPL_STRING     ? tpl_buffer_text(&text)
         : self.kind == TPL_ITERATOR ? as_list(turned)
                                     : as_iterator(turned);
}

FILTER(join) {
  tpl_value between = rdna__tpl_to_text(run, tpl_or(call->at[0], tpl_text("", 0)));
  tpl_buffer out = {0};
  const tpl_list *all = rdna__tpl_items(run, self);
  for (size_t i = 0; i < all->count && run->status == RDNA_OK; i++) {
    if (i) rdna__tpl_append(run, &out, between.text.data, between.text.size);
    rdna__tpl_append_value(run, &out, get_attribute(run, all->items[i], call->at[1], tpl_none()));
  }
  return tpl_buffer_text(&out);
}

/* Rows of |count| items, the last one filled up. */
FILTER(batch) {
  int64_t count;
  const tpl_list *all = rdna__tpl_items(run, self);
  tpl_list *rows = rdna__tpl_new_list(run, 0), *row = NULL;
  if (!rdna__tpl_get_int(run, call->at[0], "batch", &count)) return self;
  for (size_t i = 0; i < all->count && run->status == RDNA_OK; i++) {
    if (!row || (int64_t)row->count == count) {
      row = rdna__tpl_new_list(run, 0);
      rdna__tpl_list_add(run, rows, as_list(row));
    }
    rdna__tpl_list_add(run, row, all->items[i]);
  }
  while (row && is_given(call->at[1]) && (int64_t)row->count < count && run->status == RDNA_OK)
    rdna__tpl_list_add(run, row, call->at[1]);
  return as_iterator(rows);
}

/* |count| rows as equally long as can be; the first ones are the longer. */
FILTER(slice) {
  int64_t count;
  const tpl_list *all = rdna__tpl_items(run, self);
  tpl_list *rows = rdna__tpl_new_list(run, 0);
  if (!rdna__tpl_get_int(run, call->at[0], "slice", &count)) return self;
  if (count == 0) return rdna__tpl_fail(run, TPL_INVALID, "slice into no rows");
  size_t at = 0;
  for (int64_t i = 0; i < count && run->status == RDNA_OK; i++) {
    tpl_list *row = rdna__tpl_new_list(run, 0);
    bool longer = i < (int64_t)all->count % count;
    for (int64_t j = 0; j < (int64_t)all->count / count + longer; j++) rdna__tpl_list_add(run, row, all->items[at++]);
    if (is_given(call->at[1]) && !longer) rdna__tpl_list_add(run, row, call->at[1]);
    rdna__tpl_list_add(run, rows, as_list(row));
  }
  return as_iterator(rows);
}

/* ---- filters that take filters and tests ---- */

/* The items of what is true; none of none, zero and what else is false. */
static const tpl_list *items_if_true(tpl_run *run, tpl_value value) {
  return rdna__tpl_truth(value) ? rdna__tpl_items(run, value) : rdna__tpl_new_list(run, 0);
}

/* Positions behind the first |used|. */
static tpl_list *rest_of(tpl_run *run, const tpl_list *positions, size_t used) {
  tpl_list *rest = rdna__tpl_new_list(run, 0);
  for (size_t i = used; i < positions->count; i++) rdna__tpl_list_add(run, rest, positions->items[i]);
  return rest;
}

FILTER(map) {
  const tpl_value *attribute = rdna__tpl_dict_find_text(call->named, (rdna_text){"attribute", 9});
  const tpl_value *otherwise = rdna__tpl_dict_find_text(call->named, (rdna_text){"default", 7});
  const tpl_list *all = items_if_true(run, self);
  const tpl_function *filter = NULL;
  tpl_list *results = rdna__tpl_new_list(run, 0);
  if (call->rest->count == 0) {
    if (!attribute || call->named->count != 1u + (otherwise != NULL))
      return rdna__tpl_fail(run, TPL_INVALID, "map takes the name of a filter, or attribute= and default=");
  } else {
    tpl_value name = call->rest->items[0];
    if (name.kind == TPL_STRING) filter = rdna__tpl_find_filter(name.text);
    if (!filter) return rdna__tpl_fail(run, TPL_INVALID, "map: there is no filter of that name");
  }
  tpl_list *arguments = rest_of(run, call->rest, 1);
  for (size_t i = 0; i < all->count && run->status == RDNA_OK; i++)
    rdna__tpl_list_add(run, results,
                       filter ? rdna__tpl_invoke(run, filter, all->items[i], arguments, call->named)
                              : get_attribute(run, all->items[i], *attribute, otherwise ? *otherwise : tpl_none()));
  return as_iterator(results);
}

/* Items, or those whose attribute, passes a test; without a test what is true passes. */
static tpl_value choose(tpl_run *run, tpl_value self, const tpl_call *call, bool by_attribute, bool wanted) {
  const tpl_list *all = items_if_true(run, self);
  size_t used = by_attribute;
  const tpl_function *test = NULL;
  tpl_list *kept = rdna__tpl_new_list(run, 0);
  if (call->rest->count < used) return rdna__tpl_fail(run, TPL_INVALID, "the name of an attribute is missing");
  if (call->rest->count > used) {
    tpl_value name = call->rest->items[used++];
    if (name.kind == TPL_STRING) test = rdna__tpl_find_test(name.text);
    if (!test) return rdna__tpl_fail(run, TPL_INVALID, "select and reject: there is no test of that name");
  }
  tpl_list *arguments = rest_of(run, call->rest, used);
  for (size_t i = 0; i < all->count && run->status == RDNA_OK; i++) {
    tpl_value value = all->items[i];
    if (by_attribute) value = get_attribute(run, value, call->rest->items[0], tpl_none());
    if (test && run->status == RDNA_OK) value = rdna__tpl_invoke(run, test, value, arguments, call->named);
    if (rdna__tpl_truth(value) == wanted) rdna__tpl_list_add(run, kept, all->items[i]);
  }
  return as_iterator(kept);
}
FILTER(keep) { return choose(run, self, call, false, true); }
FILTER(leave_out) { return choose(run, self, call, false, false); }
FILTER(keep_by_attribute) { return choose(run, self, call, true, true); }
FILTER(leave_out_by_attribute) { return choose(run, self, call, true, false); }

FILTER(attr) {
  if (call->at[0].kind != TPL_STRING) return rdna__tpl_fail(run, TPL_INVALID, "attr takes a name");
  if (self.kind == TPL_DICT) { /* an attribute, and no item */
    const tpl_function *method = rdna__tpl_find_method(self.kind, call->at[0].text);
    if (!method) return tpl_undefined(call->at[0].text);
  }
  return rdna__tpl_attribute(run, self, call->at[0].text);
}

const tpl_function rdna__tpl_sequence_filters[] = {
    {"sort", "reverse? case_sensitive? attribute?", sort},
    {"dictsort", "case_sensitive? by? reverse?", dictsort},
    {"items", "", items},
    {"groupby", "attribute default? case_sensitive?", groupby},
    {"unique", "case_sensitive? attribute?", unique},
    {"min", "case_sensitive? attribute?", smallest},
    {"max", "case_sensitive? attribute?", largest},
    {"sum", "attribute? start?", sum},
    {"length", "", length},
    {"count", "", length},
    {"first", "", first},
    {"last", "", last},
    {"list", "", list},
    {"reverse", "", reverse},
    {"join", "d? attribute?", join},
    {"batch", "linecount fill_with?", batch},
    {"slice", "slices fill_with?", slice},
    {"map", "* **", map},
    {"select", "* **", keep},
    {"reject", "* **", leave_out},
    {"selectattr", "* **", keep_by_attribute},
    {"rejectattr", "* **", leave_out_by_attribute},
    {"attr", "name", attr},
};
const size_t rdna__tpl_sequence_filter_count = sizeof rdna__tpl_sequence_filters / sizeof *rdna__tpl_sequence_filters;
