/* Parts of values: what a loop goes through, attributes, items, slices. */
#include <string.h>

#include "model/template/template.h"

static tpl_list *characters(tpl_run *run, rdna_text text) {
  tpl_list *list = rdna__tpl_new_list(run, (size_t)rdna__tpl_count(text));
  for (size_t at = 0; at < text.size && run->status == RDNA_OK;) {
    size_t begin = at;
    rdna__tpl_next(text, &at);
    rdna__tpl_list_add(run, list, tpl_text(text.data + begin, at - begin));
  }
  return list;
}

tpl_list *rdna__tpl_items(tpl_run *run, tpl_value value) {
  if (rdna__tpl_is_list(value)) {
    rdna__tpl_spend(run, value.list->count / 2);
    return value.list;
  }
  if (value.kind == TPL_STRING) return characters(run, value.text);
  if (value.kind == TPL_UNDEFINED) return rdna__tpl_new_list(run, 0);
  if (value.kind == TPL_DICT) {
    tpl_list *keys = rdna__tpl_new_list(run, 0);
    if (run->status == RDNA_OK) *keys = (tpl_list){.items = value.dict->keys, .count = value.dict->count};
    return keys;
  }
  if (value.kind == TPL_ITERATOR) {
    tpl_list *left = rdna__tpl_new_list(run, 0);
    size_t position = value.list->position;
    if (run->status == RDNA_OK && position < value.list->count)
      *left = (tpl_list){.items = value.list->items + position, .count = value.list->count - position};
    value.list->position = value.list->count;
    return left;
  }
  rdna__tpl_fail(run, TPL_INVALID, "a value of type %s cannot be gone through", rdna__tpl_type_name(value));
  return rdna__tpl_new_list(run, 0);
}

static tpl_value refuse_undefined(tpl_run *run, tpl_value value, const char *what, rdna_text name) {
  return rdna__tpl_fail(run, TPL_INVALID, "'%.*s' is undefined and has no %s '%.*s'", (int)value.text.size,
                        value.text.data ? value.text.data : "", what, (int)name.size, name.data);
}

/* The method |name| of |value|, bound to it; undefined when there is none. */
static tpl_value method(tpl_run *run, tpl_value value, rdna_text name) {
  const tpl_function *function = rdna__tpl_find_method(value.kind, name);
  tpl_bound *bound = function ? rdna__tpl_alloc(run, sizeof *bound) : NULL;
  if (!bound) return tpl_undefined(name);
  *bound = (tpl_bound){function, value};
  return (tpl_value){.kind = TPL_FUNCTION, .bound = bound};
}

tpl_value rdna__tpl_attribute(tpl_run *run, tpl_value value, rdna_text name) {
  if (value.kind == TPL_UNDEFINED) return refuse_undefined(run, value, "attribute", name);
  if (value.kind == TPL_LOOP) return rdna__tpl_loop_attribute(run, value.loop, name);
  if (value.kind == TPL_NAMESPACE) {
    const tpl_value *found = rdna__tpl_dict_find_text(value.dict, name);
    return found ? *found : tpl_undefined(name);
  }
  if (value.kind == TPL_TUPLE && value.list->is_group) {
    if (rdna__tpl_is(name, "grouper")) return value.list->items[0];
    if (rdna__tpl_is(name, "list")) return value.list->items[1];
  }
  tpl_value bound = method(run, value, name);
  if (bound.kind != TPL_UNDEFINED || value.kind != TPL_DICT) return bound;
  const tpl_value *found = rdna__tpl_dict_find(run, value.dict, tpl_text(name.data, name.size));
  return found ? *found : tpl_undefined(name);
}

/* The place of character |index|, counted from the end if negative; |text.size| when there is none. */
static size_t character_at(rdna_text text, int64_t index) {
  if (index < 0) index += rdna__tpl_count(text);
  if (index < 0) return text.size;
  size_t at = 0;
  for (; index > 0 && at < text.size; index--) rdna__tpl_next(text, &at);
  return at;
}

tpl_value rdna__tpl_item(tpl_run *run, tpl_value value, tpl_value key) {
  rdna_text name = key.kind == TPL_STRING ? key.text : (rdna_text){"item", 4};
  if (value.kind == TPL_UNDEFINED) return refuse_undefined(run, value, "item", name);
  if (value.kind == TPL_DICT) {
    if (key.kind == TPL_LIST || key.kind == TPL_DICT) return tpl_undefined(name);
    const tpl_value *found = rdna__tpl_dict_find(run, value.dict, key);
    if (found) return *found;
  } else if (key.kind == TPL_INT || key.kind == TPL_BOOL) {
    int64_t index = rdna__tpl_as_int(key);
    if (value.kind == TPL_STRING) {
      if (!rdna__tpl_spend(run, value.text.size / 64)) return tpl_undefined(name);
      size_t at = character_at(value.text, index), end = at;
      if (at == value.text.size) return tpl_undefined(name);
      rdna__tpl_next(value.text, &end);
      return tpl_text(value.text.data + at, end - at);
    }
    if (value.kind == TPL_LIST || value.kind == TPL_TUPLE || value.kind == TPL_RANGE) {
      int64_t count = (int64_t)value.list->count;
      if (index < 0) index += count;
      return index >= 0 && index < count ? value.list->items[index] : tpl_undefined(name);
    }
  }
  return key.kind == TPL_STRING ? rdna__tpl_attribute(run, value, key.text) : tpl_undefined(name);
}

/* A slice's bounds over |count| items: where it begins, where it ends, as Python's slice.indices. */
static bool slice_bounds(tpl_run *run, const tpl_value bounds[3], int64_t count, int64_t *begin, int64_t *end,
                         int64_t *step) {
  *step = 1;
  if (bounds[2].kind != TPL_NONE && !rdna__tpl_get_int(run, bounds[2], "a slice's step", step)) return false;
  if (*step == 0) {
    rdna__tpl_fail(run, TPL_INVALID, "a slice's step is zero");
    return false;
  }
  int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? count - 1 : count;
  int64_t *const targets[] = {begin, end};
  for (int i = 0; i < 2; i++) {
    if (bounds[i].kind == TPL_NONE) {
      *targets[i] = (i == 0) == (*step > 0) ? low : high;
      continue;
    }
    int64_t at;
    if (!rdna__tpl_get_int(run, bounds[i], "a slice", &at)) return false;
    if (at < 0) at += count;
    *targets[i] = at < low ? low : at > high ? high : at;
  }
  return true;
}

tpl_value rdna__tpl_slice(tpl_run *run, tpl_value value, const tpl_value bounds[3]) {
  bool text = value.kind == TPL_STRING;
  if (value.kind == TPL_UNDEFINED) return refuse_undefined(run, value, "item", (rdna_text){"slice", 5});
  if (!text && value.kind != TPL_LIST && value.kind != TPL_TUPLE && value.kind != TPL_RANGE)
    return tpl_undefined((rdna_text){"slice", 5});
  int64_t count = 0, begin, end, step;
  rdna__tpl_length(value, &count);
  if (!slice_bounds(run, bounds, count, &begin, &end, &step)) return tpl_none();
  if (!rdna__tpl_spend(run, text ? value.text.size / 64 : 0)) return tpl_none();
  if (text && step == 1) {
    size_t first = character_at(value.text, begin), last = first;
    for (int64_t i = begin; i < end; i++) rdna__tpl_next(value.text, &last);
    return tpl_text(value.text.data + first, last - first);
  }
  const tpl_list *items = text ? characters(run, value.text) : value.list;
  if (run->status != RDNA_OK) return tpl_none();
  tpl_list *part = rdna__tpl_new_list(run, 0);
  tpl_buffer buffer = {0};
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (text)
      rdna__tpl_append(run, &buffer, items->items[i].text.data, items->items[i].text.size);
    else
      rdna__tpl_list_add(run, part, items->items[i]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  if (value.kind == TPL_RANGE && run->status == RDNA_OK) {
    uint64_t first = (uint64_t)value.list->start, whole = (uint64_t)value.list->step; /* these wrap around */
    part->start = (int64_t)(first + (uint64_t)begin * whole);
    part->stop = (int64_t)(first + (uint64_t)end * whole);
    part->step = (int64_t)(whole * (uint64_t)step);
  }
  return text ? tpl_buffer_text(&buffer) : rdna__tpl_list_value(value.kind, part);
}
