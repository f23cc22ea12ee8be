#include "model/grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

static void fail(automaton *a, rdna_status status) {
  if (a->status == RDNA_OK) a->status = status;
}

static void fail_memory(automaton *a) {
  fail(a, rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the states of a grammar"));
}

static void fail_ambiguous(automaton *a) {
  fail(a,
       rdna__fail(
           RDNA_UNSUPPORTED,
           "the grammar can be read in too many ways at once: more than %d in one place, or %d for one token; make its "
           "alternatives differ at their beginnings",
           AUTOMATON_MOST_STACKS, AUTOMATON_MOST_WORK));
}

/* Counts |bytes| of what is kept. */
static bool spend(automaton *a, size_t bytes) {
  a->bytes += bytes;
  if (a->bytes <= AUTOMATON_MOST_BYTES) return true;
  fail_ambiguous(a);
  return false;
}

bool rdna__automaton_grow(automaton *a, void *array, size_t count, size_t *room, size_t size) {
  if (count <= *room) return true;
  size_t wanted = *room ? *room : 64;
  while (wanted < count) wanted *= 2;
  void *grown;
  memcpy(&grown, array, sizeof grown); /* |array| is the address of a pointer of any type */
  grown = realloc(grown, wanted * size);
  if (!grown) {
    fail_memory(a);
    return false;
  }
  memcpy(array, &grown, sizeof grown);
  if (!spend(a, (wanted - *room) * size)) return *room = wanted, false;
  *room = wanted;
  return true;
}

static uint32_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return (uint32_t)(hash >> 32);
}

static uint32_t stack_hash(const net_stack *s) { return mix(mix(mix(mix(0, s->node), s->below), s->least), s->most); }

/* Makes a table of numbers twice as large, once it is two thirds full; slots with 0 are free. */
static bool grow_slots(automaton *a, uint32_t **slots, size_t *slot_count, size_t count,
                       uint32_t (*hash)(const automaton *a, uint32_t number)) {
  if (3 * (count + 1) <= 2 * *slot_count) return true;
  size_t wanted = *slot_count ? 2 * *slot_count : 256;
  uint32_t *grown = calloc(wanted, sizeof *grown);
  if (!grown) {
    fail_memory(a);
    return false;
  }
  for (size_t i = 0; i < *slot_count; i++) {
    if (!(*slots)[i]) continue;
    size_t slot = hash(a, (*slots)[i]) & (wanted - 1);
    while (grown[slot]) slot = (slot + 1) & (wanted - 1);
    grown[slot] = (*slots)[i];
  }
  free(*slots);
  *slots = grown;
  bool within = spend(a, (wanted - *slot_count) * sizeof *grown);
  *slot_count = wanted;
  return within;
}

static uint32_t hash_of_stack(const automaton *a, uint32_t number) { return stack_hash(&a->stacks[number]); }
static uint32_t hash_of_state(const automaton *a, uint32_t number) { return a->states[number].hash; }

uint32_t rdna__automaton_stack(automaton *a, uint32_t node, uint32_t below, uint32_t least, uint32_t most) {
  net_stack wanted = {.node = node, .below = below, .least = least, .most = most, .local = -1};
  if (!grow_slots(a, &a->stack_slots, &a->stack_slot_count, a->stack_count, hash_of_stack) ||
      !rdna__automaton_grow(a, &a->stacks, a->stack_count + 1, &a->stack_room, sizeof *a->stacks))
    return STACK_COMPLETE;
  size_t slot = stack_hash(&wanted) & (a->stack_slot_count - 1);
  for (; a->stack_slots[slot]; slot = (slot + 1) & (a->stack_slot_count - 1)) {
    const net_stack *s = &a->stacks[a->stack_slots[slot]];
    if (s->node == node && s->below == below && s->least == least && s->most == most) return a->stack_slots[slot];
  }
  wanted.depth = a->stacks[below].depth + 1;
  a->stacks[a->stack_count] = wanted;
  return a->stack_slots[slot] = (uint32_t)a->stack_count++;
}

/* ---- closures: the stacks that read something next ---- */

static void push(automaton *a, uint32_t stack) {
  if (a->status != RDNA_OK || a->stacks[stack].mark == a->closure) return;
  a->stacks[stack].mark = a->closure;
  if (++a->work > AUTOMATON_MOST_WORK) fail_ambiguous(a);
  if (a->stacks[stack].depth > AUTOMATON_MOST_DEPTH) return;
  if (!rdna__automaton_grow(a, &a->waiting, a->waiting_count + 1, &a->waiting_room, sizeof *a->waiting)) return;
  a->waiting[a->waiting_count++] = stack;
}

/* A node, above |below|; a rule's end leaves what is below. */
static void push_node(automaton *a, uint32_t node, uint32_t below) {
  push(a, rdna__automaton_stack(a, node, below, 0, 0));
}

/* What goes on behind |next| of a call: nothing of its own where the rule ends there. */
static uint32_t below_call(automaton *a, uint32_t next, uint32_t below) {
  return a->net->nodes[next].kind == NODE_END ? below : rdna__automaton_stack(a, next, below, 0, 0);
}

/* Before a round of a repetition. */
static void push_round(automaton *a, uint32_t node, uint32_t least, uint32_t most, uint32_t below) {
  const net_node *n = &a->net->nodes[node];
  if (least == 0) push_node(a, n->next, below);
  if (most > 0) push_node(a, a->net->rules[n->set].start, rdna__automaton_stack(a, node, below, least, most));
}

/* Where |stack| goes on when what was above it has ended. */
static void push_return(automaton *a, uint32_t stack) {
  if (stack < STACK_FIRST || a->stacks[stack].most == 0) {
    push(a, stack);
    return;
  }
  net_stack s = a->stacks[stack];
  push_round(a, s.node, s.least ? s.least - 1 : 0, s.most == GRAMMAR_NO_LIMIT ? s.most : s.most - 1, s.below);
}

static void add_found(automaton *a, uint32_t stack) {
  if (a->found_count == AUTOMATON_MOST_STACKS) {
    fail_ambiguous(a);
    return;
  }
  if (rdna__automaton_grow(a, &a->found, a->found_count + 1, &a->found_room, sizeof *a->found))
    a->found[a->found_count++] = stack;
}

static void begin_closure(automaton *a) {
  a->closure++;
  a->waiting_count = a->found_count = 0;
}

static int compare_numbers(const void *a, const void *b) {
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return (left > right) - (left < right);
}

/* The state of the stacks in |found|. */
static uint32_t settle(automaton *a) {
  if (a->status != RDNA_OK || a->found_count == 0) return STATE_DEAD;
  qsort(a->found, a->found_count, sizeof *a->found, compare_numbers);
  uint32_t hash = 0;
  for (size_t i = 0; i < a->found_count; i++) hash = mix(hash, a->found[i]);
  if (!grow_slots(a, &a->state_slots, &a->state_slot_count, a->state_count, hash_of_state)) return STATE_DEAD;
  size_t slot = hash & (a->state_slot_count - 1);
  for (; a->state_slots[slot]; slot = (slot + 1) & (a->state_slot_count - 1)) {
    const net_state *s = &a->states[a->state_slots[slot]];
    if (s->hash == hash && s->count == a->found_count &&
        memcmp(a->members + s->first, a->found, s->count * sizeof *a->found) == 0)
      return a->state_slots[slot];
  }
  if (!rdna__automaton_grow(a, &a->members, a->member_count + a->found_count, &a->member_room, sizeof *a->members) ||
      !rdna__automaton_grow(a, &a->states, a->state_count + 1, &a->state_room, sizeof *a->states))
    return STATE_DEAD;
  memcpy(a->members + a->member_count, a->found, a->found_count * sizeof *a->found);
  a->states[a->state_count] =
      (net_state){.first = (uint32_t)a->member_count, .count = (uint32_t)a->found_count, .hash = hash};
  a->member_count += a->found_count;
  return a->state_slots[slot] = (uint32_t)a->state_count++;
}

static uint32_t end_closure(automaton *a) {
  while (a->waiting_count > 0 && a->status == RDNA_OK) {
    uint32_t stack = a->waiting[--a->waiting_count], below = a->stacks[stack].below;
    if (stack < STACK_FIRST) {
      add_found(a, stack);
      continue;
    }
    const net_node *node = &a->net->nodes[a->stacks[stack].node];
    switch (node->kind) {
      case NODE_BYTES:
      case NODE_TOKEN:
        add_found(a, stack);
        break;
      case NODE_SPLIT:
        push_node(a, node->next, below);
        push_node(a, node->set, below);
        break;
      case NODE_CALL:
        push_node(a, a->net->rules[node->set].start, below_call(a, node->next, below));
        break;
      case NODE_REPEAT:
        push_round(a, a->stacks[stack].node, node->least, node->most, below);
        break;
      case NODE_END:
        push_return(a, below);
        break;
    }
  }
  return settle(a);
}

uint32_t rdna__automaton_start(automaton *a) {
  begin_closure(a);
  push_node(a, a->net->rules[0].start, STACK_COMPLETE);
  return end_closure(a);
}

uint32_t rdna__automaton_state_of(automaton *a, uint32_t stack) {
  begin_closure(a);
  push(a, stack);
  return end_closure(a);
}

uint32_t rdna__automaton_return(automaton *a, uint32_t stack) {
  begin_closure(a);
  push_return(a, stack);
  return end_closure(a);
}

uint32_t rdna__automaton_step(automaton *a, uint32_t state, uint8_t byte) {
  if (state == STATE_DEAD || a->status != RDNA_OK) return STATE_DEAD;
  if (!a->states[state].next) {
    uint32_t *next = calloc(256, sizeof *next);
    if (!next) {
      fail_memory(a);
      return STATE_DEAD;
    }
    a->states[state].next = next;
    if (!spend(a, 256 * sizeof *next)) return STATE_DEAD;
  }
  begin_closure(a);
  for (uint32_t i = 0; i < a->states[state].count; i++) {
    uint32_t stack = a->members[a->states[state].first + i];
    if (stack < STACK_FIRST) continue;
    const net_node *node = &a->net->nodes[a->stacks[stack].node];
    if (node->kind == NODE_BYTES && byte_set_has(&a->net->sets[node->set], byte))
      push_node(a, node->next, a->stacks[stack].below);
  }
  uint32_t next = end_closure(a);
  if (a->status == RDNA_OK) a->states[state].next[byte] = next;
  return next;
}

uint32_t rdna__automaton_step_token(automaton *a, uint32_t state, int32_t token) {
  begin_closure(a);
  for (uint32_t i = 0; i < a->states[state].count; i++) {
    uint32_t stack = a->members[a->states[state].first + i];
    if (stack < STACK_FIRST) continue;
    const net_node *node = &a->net->nodes[a->stacks[stack].node];
    if (node->kind == NODE_TOKEN && node->set == (uint32_t)token) push_node(a, node->next, a->stacks[stack].below);
  }
  return end_closure(a);
}

bool rdna__automaton_ends(const automaton *a, uint32_t state) {
  const net_state *s = &a->states[state];
  return s->count > 0 && a->members[s->first] == STACK_COMPLETE; /* they are in order */
}

/* From the lowest up, as each is made of the one below. */
static uint32_t carry_stack(const automaton *from, automaton *to, uint32_t stack, uint32_t *trail) {
  size_t depth = 0;
  for (; stack >= STACK_FIRST; stack = from->stacks[stack].below) trail[depth++] = stack;
  while (depth > 0) {
    const net_stack *s = &from->stacks[trail[--depth]];
    stack = rdna__automaton_stack(to, s->node, stack, s->least, s->most);
  }
  return stack;
}

uint32_t rdna__automaton_carry(const automaton *from, automaton *to, uint32_t state) {
  if (state < STATE_FIRST) return state;
  uint32_t *trail = malloc((AUTOMATON_MOST_DEPTH + 2) * sizeof *trail);
  if (!trail) {
    fail_memory(to);
    return STATE_DEAD;
  }
  begin_closure(to);
  const net_state *s = &from->states[state];
  for (uint32_t i = 0; i < s->count; i++) add_found(to, carry_stack(from, to, from->members[s->first + i], trail));
  free(trail);
  return settle(to);
}

rdna_status rdna__automaton_init(automaton *a, const grammar_net *net, const rdna__vocabulary *vocabulary) {
  *a = (automaton){.net = net, .vocabulary = vocabulary};
  if (rdna__automaton_grow(a, &a->stacks, STACK_FIRST, &a->stack_room, sizeof *a->stacks) &&
      rdna__automaton_grow(a, &a->states, STATE_FIRST, &a->state_room, sizeof *a->states)) {
    for (int i = 0; i < STACK_FIRST; i++) a->stacks[i] = (net_stack){.node = UINT32_MAX, .local = -1};
    for (int i = 0; i < STATE_FIRST; i++) a->states[i] = (net_state){0};
    a->stack_count = STACK_FIRST;
    a->state_count = STATE_FIRST;
  }
  return a->status;
}

void rdna__automaton_deinit(automaton *a) {
  for (size_t i = 0; i < a->state_count; i++) {
    free(a->states[i].next);
    free(a->states[i].mask);
  }
  for (size_t i = 0; i < a->local_count; i++) {
    free(a->locals[i].bits);
    free(a->locals[i].exits);
    free(a->locals[i].longs);
  }
  free(a->stacks);
  free(a->stack_slots);
  free(a->states);
  free(a->members);
  free(a->state_slots);
  free(a->locals);
  free(a->waiting);
  free(a->found);
  free(a->path);
  *a = (automaton){0};
}
