/* What rules say of themselves: whether they may be empty, whether they ever end, how long they get. */
#include <stdlib.h>

#include "model/grammar/grammar_net.h"

static uint32_t add(uint32_t a, uint32_t b) { return a > GRAMMAR_NO_LIMIT - b ? GRAMMAR_NO_LIMIT : a + b; }
static uint32_t times(uint32_t a, uint32_t b) {
  uint64_t product = (uint64_t)a * b;
  return a == GRAMMAR_NO_LIMIT && b   ? GRAMMAR_NO_LIMIT
         : product > GRAMMAR_NO_LIMIT ? GRAMMAR_NO_LIMIT
                                      : (uint32_t)product;
}

bool rdna__expression_empty_too(const grammar_net *net, const expression *e) {
  switch (e->kind) {
    case EXPRESSION_TEXT:
      return e->count == 0;
    case EXPRESSION_CLASS:
    case EXPRESSION_TOKEN:
      return false;
    case EXPRESSION_REPEAT:
      return e->least == 0 || rdna__expression_empty_too(net, e->children);
    case EXPRESSION_RULE:
      return net->rules[e->rule].empty_too;
    case EXPRESSION_SEQUENCE:
      for (const expression *child = e->children; child; child = child->next)
        if (!rdna__expression_empty_too(net, child)) return false;
      return true;
    case EXPRESSION_CHOICE:
      break;
  }
  for (const expression *child = e->children; child; child = child->next)
    if (rdna__expression_empty_too(net, child)) return true;
  return false;
}

static bool ends(const grammar_net *net, const expression *e) {
  switch (e->kind) {
    case EXPRESSION_TEXT:
    case EXPRESSION_TOKEN:
      return true;
    case EXPRESSION_CLASS:
      return e->count > 0;
    case EXPRESSION_REPEAT:
      return e->least == 0 || ends(net, e->children);
    case EXPRESSION_RULE:
      return net->rules[e->rule].ends;
    case EXPRESSION_SEQUENCE:
      for (const expression *child = e->children; child; child = child->next)
        if (!ends(net, child)) return false;
      return true;
    case EXPRESSION_CHOICE:
      break;
  }
  for (const expression *child = e->children; child; child = child->next)
    if (ends(net, child)) return true;
  return false;
}

/* Rules that call each other are looked at again until nothing changes; now forwards, now backwards, as chains of them
 * may run either way. */
static void find_empty_and_ending(grammar_net *net) {
  bool changed = true, backwards = false;
  while (changed) {
    changed = false;
    for (size_t i = 0; i < net->rule_count; i++) {
      grammar_rule *rule = &net->rules[backwards ? net->rule_count - 1 - i : i];
      if (!rule->empty_too && rdna__expression_empty_too(net, rule->body)) rule->empty_too = changed = true;
      if (!rule->ends && ends(net, rule->body)) rule->ends = changed = true;
    }
    backwards = !backwards;
  }
}

void rdna__grammar_measure_expression(const grammar_net *net, const expression *e, uint32_t *out_longest,
                                      uint32_t *out_size) {
  uint32_t longest = 0, size = 0, child_longest, child_size;
  switch (e->kind) {
    case EXPRESSION_TEXT:
      longest = size = (uint32_t)e->count;
      break;
    case EXPRESSION_TOKEN:
      longest = 1;
      size = 1;
      break;
    case EXPRESSION_CLASS:
      longest = e->count == 0                            ? 0
                : e->ranges[e->count - 1].high < 0x80    ? 1
                : e->ranges[e->count - 1].high < 0x800   ? 2
                : e->ranges[e->count - 1].high < 0x10000 ? 3
                                                         : 4;
      size = longest < 2 ? 1 : times((uint32_t)e->count, 8);
      break;
    case EXPRESSION_REPEAT:
      rdna__grammar_measure_expression(net, e->children, &child_longest, &child_size);
      longest = child_longest == 0 ? 0 : times(child_longest, e->most);
      size = times(child_size, e->most == GRAMMAR_NO_LIMIT ? 1 : e->most);
      break;
    case EXPRESSION_RULE:
      longest = net->rules[e->rule].longest;
      size = net->rules[e->rule].size;
      break;
    case EXPRESSION_SEQUENCE:
    case EXPRESSION_CHOICE:
      for (const expression *child = e->children; child; child = child->next) {
        rdna__grammar_measure_expression(net, child, &child_longest, &child_size);
        size = add(add(size, child_size), 1);
        if (e->kind == EXPRESSION_SEQUENCE) longest = add(longest, child_longest);
        if (e->kind == EXPRESSION_CHOICE && child_longest > longest) longest = child_longest;
      }
      break;
  }
  *out_longest = longest;
  *out_size = size;
}

typedef struct walk {
  grammar_net *net;
  uint8_t *seen; /* (rule_count) 1: being measured, 2: done */
} walk;

static rdna_status measure_rule(walk *w, uint32_t number, int depth);

static rdna_status measure_called(walk *w, const expression *e, int depth) {
  if (depth > GRAMMAR_MOST_DEPTH)
    return rdna__fail(RDNA_UNSUPPORTED, "the grammar has rules and groups in each other more than %d deep",
                      GRAMMAR_MOST_DEPTH);
  if (e->kind == EXPRESSION_RULE) return measure_rule(w, e->rule, depth + 1);
  for (const expression *child = e->children; child; child = child->next) RDNA_TRY(measure_called(w, child, depth + 1));
  return RDNA_OK;
}

/* What a rule calls comes first; a rule that calls itself has no longest text. */
static rdna_status measure_rule(walk *w, uint32_t number, int depth) {
  grammar_rule *rule = &w->net->rules[number];
  if (w->seen[number] == 2) return RDNA_OK;
  if (w->seen[number] == 1) {
    rule->longest = rule->size = GRAMMAR_NO_LIMIT;
    return RDNA_OK;
  }
  w->seen[number] = 1;
  RDNA_TRY(measure_called(w, rule->body, depth));
  w->seen[number] = 2;
  if (rule->longest == GRAMMAR_NO_LIMIT) return RDNA_OK;
  uint32_t longest, size;
  rdna__grammar_measure_expression(w->net, rule->body, &longest, &size);
  rule->longest = longest;
  rule->size = size;
  return RDNA_OK;
}

rdna_status rdna__grammar_measure(grammar_net *net) {
  find_empty_and_ending(net);
  for (size_t i = 0; i < net->rule_count; i++)
    if (!net->rules[i].ends)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "the grammar, line %zu: the rule %.100s never ends", net->rules[i].line,
                        net->rules[i].name);
  walk w = {.net = net, .seen = calloc(net->rule_count, 1)};
  if (!w.seen) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a grammar");
  rdna_status status = RDNA_OK;
  for (size_t i = 0; i < net->rule_count && status == RDNA_OK; i++) status = measure_rule(&w, (uint32_t)i, 0);
  free(w.seen);
  return status;
}
