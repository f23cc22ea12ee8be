/* Operators on two values, as Python has them, but for integers: those have 64 bits. */
#include <math.h>
#include <string.h>

#include "model/template/template.h"

static const char *sign_of(tpl_node_kind how) {
  static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "**"};
  return signs[how - TPL_NODE_ADD];
}

static tpl_value too_large(tpl_run *run, tpl_node_kind how) {
  return rdna__tpl_fail(run, RDNA_UNSUPPORTED, "the result of %s has more than 64 bits", sign_of(how));
}

static tpl_value by_zero(tpl_run *run) { return rdna__tpl_fail(run, TPL_INVALID, "division by zero"); }

static tpl_value power(tpl_run *run, int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return too_large(run, TPL_NODE_POWER);
    exponent >>= 1;
    if (exponent && __builtin_mul_overflow(base, base, &base)) return too_large(run, TPL_NODE_POWER);
  }
  return tpl_int(result);
}

static tpl_value integers(tpl_run *run, tpl_node_kind how, int64_t x, int64_t y) {
  int64_t z = 0;
  if (y == -1 && (how == TPL_NODE_FLOOR_DIVIDE || how == TPL_NODE_MODULO)) { /* the processor traps INT64_MIN / -1 */
    if (how == TPL_NODE_MODULO) return tpl_int(0);
    return __builtin_sub_overflow(0, x, &z) ? too_large(run, how) : tpl_int(z);
  }
  bool overflow = false;
  switch (how) {
    case TPL_NODE_ADD:
      overflow = __builtin_add_overflow(x, y, &z);
      break;
    case TPL_NODE_SUBTRACT:
      overflow = __builtin_sub_overflow(x, y, &z);
      break;
    case TPL_NODE_MULTIPLY:
      overflow = __builtin_mul_overflow(x, y, &z);
      break;
    case TPL_NODE_FLOOR_DIVIDE:
      if (y == 0) return by_zero(run);
      z = x / y - (x % y != 0 && (x < 0) != (y < 0));
      break;
    case TPL_NODE_MODULO:
      if (y == 0) return by_zero(run);
      z = x % y;
      if (z != 0 && (z < 0) != (y < 0)) z += y;
      break;
    default:
      return power(run, x, y);
  }
  return overflow ? too_large(run, how) : tpl_int(z);
}

static tpl_value reals(tpl_run *run, tpl_node_kind how, double x, double y) {
  if (y == 0 && (how == TPL_NODE_DIVIDE || how == TPL_NODE_FLOOR_DIVIDE || how == TPL_NODE_MODULO)) return by_zero(run);
  double rest;
  switch (how) {
    case TPL_NODE_ADD:
      return tpl_real(x + y);
    case TPL_NODE_SUBTRACT:
      return tpl_real(x - y);
    case TPL_NODE_MULTIPLY:
      return tpl_real(x * y);
    case TPL_NODE_DIVIDE:
      return tpl_real(x / y);
    case TPL_NODE_POWER:
      if (x == 0 && y < 0) return by_zero(run);
      if (x < 0 && isfinite(x) && isfinite(y) && y != floor(y))
        return rdna__tpl_fail(run, RDNA_UNSUPPORTED, "a negative number to a broken power is complex");
      rest = pow(x, y);
      if (isinf(rest) && isfinite(x) && isfinite(y)) return too_large(run, how);
      return tpl_real(rest);
    default: /* the remainder has the sign of y; the quotient is what is left of x without it */
      rest = fmod(x, y);
      if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
      if (rest == 0) rest = copysign(0, y);
      if (how == TPL_NODE_MODULO) return tpl_real(rest);
      double quotient = (x - fmod(x, y)) / y;
      if (fmod(x, y) != 0 && (fmod(x, y) < 0) != (y < 0)) quotient -= 1;
      if (quotient == 0) return tpl_real(copysign(0, x / y));
      return tpl_real(quotient - floor(quotient) > 0.5 ? floor(quotient) + 1 : floor(quotient));
  }
}

/* |times| copies of a text or list. */
static tpl_value repeat(tpl_run *run, tpl_value value, int64_t times) {
  tpl_buffer buffer = {0};
  tpl_list *list = value.kind == TPL_STRING ? NULL : rdna__tpl_new_list(run, 0);
  size_t size = value.kind == TPL_STRING ? value.text.size : value.list->count;
  for (int64_t i = 0; size > 0 && i < times && rdna__tpl_spend(run, 0); i++) {
    if (!list) rdna__tpl_append(run, &buffer, value.text.data, value.text.size);
    for (size_t j = 0; list && j < value.list->count; j++) rdna__tpl_list_add(run, list, value.list->items[j]);
  }
  return list ? rdna__tpl_list_value(value.kind, list) : tpl_buffer_text(&buffer);
}

static bool repeats(tpl_value v) { return v.kind == TPL_STRING || v.kind == TPL_LIST || v.kind == TPL_TUPLE; }
static bool counts(tpl_value v) { return v.kind == TPL_INT || v.kind == TPL_BOOL; }

static tpl_value join(tpl_run *run, tpl_value x, tpl_value y) {
  if (x.kind == TPL_STRING) {
    tpl_buffer buffer = {0};
    bool safe = x.safe || y.safe;
    if (safe) {
      x = rdna__tpl_escape(run, x);
      y = rdna__tpl_escape(run, y);
    }
    rdna__tpl_append(run, &buffer, x.text.data, x.text.size);
    rdna__tpl_append(run, &buffer, y.text.data, y.text.size);
    tpl_value text = tpl_buffer_text(&buffer);
    text.safe = safe;
    return text;
  }
  tpl_list *list = rdna__tpl_new_list(run, x.list->count + y.list->count);
  for (size_t i = 0; i < x.list->count; i++) rdna__tpl_list_add(run, list, x.list->items[i]);
  for (size_t i = 0; i < y.list->count; i++) rdna__tpl_list_add(run, list, y.list->items[i]);
  return rdna__tpl_list_value(x.kind, list);
}

tpl_value rdna__tpl_arithmetic(tpl_run *run, tpl_node_kind how, tpl_value x, tpl_value y) {
  if (run->status != RDNA_OK) return x;
  if (x.kind == TPL_UNDEFINED || y.kind == TPL_UNDEFINED) {
    rdna_text name = x.kind == TPL_UNDEFINED ? x.text : y.text;
    return rdna__tpl_fail(run, TPL_INVALID, "'%.*s' is undefined; %s has no meaning for it", (int)name.size,
                          name.data ? name.data : "", sign_of(how));
  }
  if (rdna__tpl_is_number(x) && rdna__tpl_is_number(y)) {
    bool negative_power = how == TPL_NODE_POWER && counts(y) && rdna__tpl_as_int(y) < 0;
    if (counts(x) && counts(y) && how != TPL_NODE_DIVIDE && !negative_power)
      return integers(run, how, rdna__tpl_as_int(x), rdna__tpl_as_int(y));
    return reals(run, how, rdna__tpl_as_real(x), rdna__tpl_as_real(y));
  }
  if (how == TPL_NODE_ADD && x.kind == y.kind && repeats(x)) return join(run, x, y);
  if (how == TPL_NODE_MULTIPLY && repeats(x) && counts(y)) return repeat(run, x, rdna__tpl_as_int(y));
  if (how == TPL_NODE_MULTIPLY && counts(x) && repeats(y)) return repeat(run, y, rdna__tpl_as_int(x));
  if (how == TPL_NODE_MODULO && x.kind == TPL_STRING) return rdna__tpl_percent(run, x.text, y);
  return rdna__tpl_fail(run, TPL_INVALID, "%s has no meaning for values of types %s and %s", sign_of(how),
                        rdna__tpl_type_name(x), rdna__tpl_type_name(y));
}
