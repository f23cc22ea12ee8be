/* Nets of nodes from the trees of rules. They are built from their ends, as each node knows the next. */
#include <stdlib.h>
#include <string.h>

#include "model/grammar/grammar_net.h"

enum {
  MOST_COPIES = 4,           /* of a repeated expression, which otherwise becomes a rule that is counted */
  MOST_OPTIONAL_COPIES = 64, /* of one that may be empty, which cannot be counted */
  MOST_INLINE_SIZE = 160,    /* nodes of a short rule that stands where it is called */
  SETS_LOOKED_AT = 256
};

static rdna_status out_of_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a grammar"); }

/* Room for one more of |size| bytes in an array of |count|. */
static bool grow(void **array, size_t count, size_t *room, size_t size) {
  if (count < *room) return true;
  void *grown = realloc(*array, (2 * *room + 64) * size);
  if (!grown) return false;
  *array = grown;
  *room = 2 * *room + 64;
  return true;
}

rdna_status rdna__grammar_add_node(grammar_net *net, net_node node, uint32_t *out_node) {
  if (net->node_count >= GRAMMAR_MOST_NODES)
    return rdna__fail(RDNA_UNSUPPORTED, "the grammar needs more than %d nodes; make repetitions shorter",
                      GRAMMAR_MOST_NODES);
  if (!grow((void **)&net->nodes, net->node_count, &net->node_room, sizeof *net->nodes)) return out_of_memory();
  net->nodes[net->node_count] = node;
  *out_node = (uint32_t)net->node_count++;
  return RDNA_OK;
}

rdna_status rdna__grammar_add_set(grammar_net *net, const byte_set *set, uint32_t *out_set) {
  size_t first = net->set_count > SETS_LOOKED_AT ? net->set_count - SETS_LOOKED_AT : 0;
  for (size_t i = net->set_count; i-- > first;) {
    if (memcmp(&net->sets[i], set, sizeof *set) != 0) continue;
    *out_set = (uint32_t)i;
    return RDNA_OK;
  }
  if (!grow((void **)&net->sets, net->set_count, &net->set_room, sizeof *net->sets)) return out_of_memory();
  net->sets[net->set_count] = *set;
  *out_set = (uint32_t)net->set_count++;
  return RDNA_OK;
}

rdna_status rdna__grammar_add_rule(grammar_net *net, grammar_rule rule, uint32_t *out_rule) {
  if (!grow((void **)&net->rules, net->rule_count, &net->rule_room, sizeof *net->rules)) return out_of_memory();
  net->rules[net->rule_count] = rule;
  *out_rule = (uint32_t)net->rule_count++;
  return RDNA_OK;
}

void rdna__grammar_net_deinit(grammar_net *net) {
  for (size_t i = 0; i < net->rule_count; i++) free(net->rules[i].name);
  while (net->made) {
    expression *e = net->made;
    net->made = e->made_before;
    free(e->text);
    free(e->ranges);
    free(e);
  }
  free(net->rules);
  free(net->nodes);
  free(net->sets);
  memset(net, 0, sizeof *net);
}

static rdna_status build(grammar_net *net, const expression *e, uint32_t next, uint32_t *out_node);

static rdna_status add_split(grammar_net *net, uint32_t next, uint32_t other, uint32_t *out_node) {
  return rdna__grammar_add_node(net, (net_node){.kind = NODE_SPLIT, .next = next, .set = other}, out_node);
}

static rdna_status build_text(grammar_net *net, const expression *e, uint32_t next, uint32_t *out_node) {
  for (size_t i = e->count; i-- > 0;) {
    byte_set set = {{0}};
    uint8_t byte = (uint8_t)e->text[i];
    set.bits[byte / 64] = 1ull << (byte % 64);
    uint32_t number;
    RDNA_TRY(rdna__grammar_add_set(net, &set, &number));
    RDNA_TRY(rdna__grammar_add_node(net, (net_node){.kind = NODE_BYTES, .next = next, .set = number}, &next));
  }
  *out_node = next;
  return RDNA_OK;
}

static rdna_status build_children(grammar_net *net, const expression *e, uint32_t next, uint32_t *out_node) {
  size_t count = 0;
  for (const expression *child = e->children; child; child = child->next) count++;
  const expression **children = malloc((count + 1) * sizeof(expression *));
  if (!children) return out_of_memory();
  count = 0;
  for (const expression *child = e->children; child; child = child->next) children[count++] = child;
  rdna_status status = RDNA_OK;
  uint32_t node = next, start = 0;
  for (size_t i = count; i-- > 0 && status == RDNA_OK;) {
    if (e->kind == EXPRESSION_SEQUENCE) {
      status = build(net, children[i], node, &node);
      continue;
    }
    status = build(net, children[i], next, &node);
    if (status == RDNA_OK && i + 1 < count) status = add_split(net, node, start, &node);
    start = node;
  }
  free(children);
  *out_node = node;
  return status;
}

/* Any number of times: the split comes back to itself. */
static rdna_status build_loop(grammar_net *net, const expression *e, bool once, uint32_t next, uint32_t *out_node) {
  uint32_t split, body;
  RDNA_TRY(add_split(net, next, next, &split));
  RDNA_TRY(build(net, e->children, split, &body));
  net->nodes[split].set = body;
  *out_node = once ? body : split;
  return RDNA_OK;
}

/* x x (x (x)?)? for from 2 to 4 times. */
static rdna_status build_copies(grammar_net *net, const expression *e, uint32_t next, uint32_t *out_node) {
  uint32_t node = next;
  for (uint32_t i = e->most; i-- > 0;) {
    RDNA_TRY(build(net, e->children, node, &node));
    if (i >= e->least) RDNA_TRY(add_split(net, node, next, &node));
  }
  *out_node = node;
  return RDNA_OK;
}

/* Counted while the text is read: x becomes a rule without a name. */
static rdna_status build_counted(grammar_net *net, const expression *e, uint32_t next, uint32_t *out_node) {
  grammar_rule rule = {.body = e->children, .ends = true};
  rdna__grammar_measure_expression(net, e->children, &rule.longest, &rule.size);
  uint32_t number;
  RDNA_TRY(rdna__grammar_add_rule(net, rule, &number));
  uint32_t start;
  RDNA_TRY(build(net, e->children, 0, &start));
  net->rules[number].start = start;
  return rdna__grammar_add_node(net,
                                (net_node){.kind = NODE_REPEAT,
                                           .next = next,
                                           .set = number,
                                           .least = e->least,
                                           .most = e->most,
                                           .tight = rule.longest <= GRAMMAR_SHORT},
                                out_node);
}

static rdna_status build_repeat(grammar_net *net, const expression *e, uint32_t next, uint32_t *out_node) {
  bool empty_too = rdna__expression_empty_too(net, e->children);
  if (e->most == 0) {
    *out_node = next;
    return RDNA_OK;
  }
  if (e->most == GRAMMAR_NO_LIMIT && (e->least <= 1 || empty_too))
    return build_loop(net, e, e->least > 0 && !empty_too, next, out_node);
  if (empty_too && e->most > MOST_OPTIONAL_COPIES)
    return rdna__fail(RDNA_UNSUPPORTED, "the grammar repeats up to %u times what may be empty, which is counted to %d",
                      (unsigned)e->most, MOST_OPTIONAL_COPIES);
  if (empty_too || e->most <= MOST_COPIES) return build_copies(net, e, next, out_node);
  return build_counted(net, e, next, out_node);
}

static rdna_status build(grammar_net *net, const expression *e, uint32_t next, uint32_t *out_node) {
  const grammar_rule *rule = e->kind == EXPRESSION_RULE ? &net->rules[e->rule] : NULL;
  switch (e->kind) {
    case EXPRESSION_TEXT:
      return build_text(net, e, next, out_node);
    case EXPRESSION_CLASS:
      return rdna__grammar_build_class(net, e->ranges, e->count, next, out_node);
    case EXPRESSION_TOKEN:
      return rdna__grammar_add_node(net, (net_node){.kind = NODE_TOKEN, .next = next, .set = (uint32_t)e->token},
                                    out_node);
    case EXPRESSION_REPEAT:
      return build_repeat(net, e, next, out_node);
    case EXPRESSION_RULE:
      if (rule->longest <= GRAMMAR_SHORT && rule->size <= MOST_INLINE_SIZE)
        return build(net, rule->body, next, out_node);
      return rdna__grammar_add_node(net, (net_node){.kind = NODE_CALL, .next = next, .set = e->rule}, out_node);
    case EXPRESSION_SEQUENCE:
    case EXPRESSION_CHOICE:
      break;
  }
  return build_children(net, e, next, out_node);
}

/* ---- rules that begin with themselves ---- */

typedef struct left_walk {
  const grammar_net *net;
  uint8_t *state;  /* (rule_count) 1: begun, 2: done */
  uint32_t *seen;  /* (node_count) the rule that was there last, plus 1 */
  uint32_t *queue; /* (node_count + 1) */
} left_walk;

static rdna_status check_left(left_walk *w, uint32_t number, int depth);

/* Appends to |calls| the rules that |number| may begin with. */
static size_t find_first_calls(left_walk *w, uint32_t number, uint32_t *calls) {
  const grammar_net *net = w->net;
  size_t waiting = 0, count = 0;
  w->queue[waiting++] = net->rules[number].start;
  while (waiting > 0) {
    uint32_t at = w->queue[--waiting];
    if (w->seen[at] == number + 1) continue;
    w->seen[at] = number + 1;
    const net_node *node = &net->nodes[at];
    if (node->kind == NODE_SPLIT) w->queue[waiting++] = node->set;
    if (node->kind == NODE_CALL || node->kind == NODE_REPEAT) calls[count++] = node->set;
    bool passes = node->kind == NODE_SPLIT || (node->kind == NODE_REPEAT && node->least == 0) ||
                  (node->kind == NODE_CALL && net->rules[node->set].empty_too);
    if (passes) w->queue[waiting++] = node->next;
  }
  return count;
}

static rdna_status check_left(left_walk *w, uint32_t number, int depth) {
  const grammar_rule *rule = &w->net->rules[number];
  if (w->state[number] == 2) return RDNA_OK;
  if (w->state[number] == 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "the grammar, line %zu: the rule %.100s begins with itself; put what comes first before it",
                      rule->line, rule->name ? rule->name : "of a repetition");
  if (depth > GRAMMAR_MOST_DEPTH)
    return rdna__fail(RDNA_UNSUPPORTED, "the grammar has rules and groups in each other more than %d deep",
                      GRAMMAR_MOST_DEPTH);
  w->state[number] = 1;
  uint32_t *calls = malloc((w->net->node_count + 1) * sizeof *calls);
  if (!calls) return out_of_memory();
  size_t count = find_first_calls(w, number, calls);
  uint32_t *fitting = realloc(calls, (count + 1) * sizeof *calls);
  if (fitting) calls = fitting;
  rdna_status status = RDNA_OK;
  for (size_t i = 0; i < count && status == RDNA_OK; i++) status = check_left(w, calls[i], depth + 1);
  free(calls);
  w->state[number] = 2;
  return status;
}

static rdna_status refuse_left_recursion(const grammar_net *net) {
  left_walk w = {.net = net,
                 .state = calloc(net->rule_count, 1),
                 .seen = calloc(net->node_count, sizeof *w.seen),
                 .queue = malloc((2 * net->node_count + 2) * sizeof *w.queue)};
  rdna_status status = w.state && w.seen && w.queue ? RDNA_OK : out_of_memory();
  for (size_t i = 0; i < net->rule_count && status == RDNA_OK; i++) status = check_left(&w, (uint32_t)i, 0);
  free(w.state);
  free(w.seen);
  free(w.queue);
  return status;
}

rdna_status rdna__grammar_build(grammar_net *net) {
  uint32_t end;
  RDNA_TRY(rdna__grammar_add_node(net, (net_node){.kind = NODE_END}, &end));
  size_t named = net->rule_count; /* those without a name are built where they stand */
  for (size_t i = 0; i < named; i++) {
    uint32_t start;
    RDNA_TRY(build(net, net->rules[i].body, end, &start));
    net->rules[i].start = start;
  }
  return refuse_left_recursion(net);
}
