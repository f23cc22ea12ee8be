/* Which tokens may come in a state: the union over its stacks.
 *
 * A stack is cut below its rule, and the trie is walked once for each cut stack, of which there are as many as nodes of
 * the net: inside a string it does not matter which string it is. Where the rule ends inside a token, at the closing
 * quote of "},", the walk notes an exit; behind the few exits each full stack is walked on its own.
 *
 * Where the rule is counted, a character up to 100 times, the repetition is above the cut, with counts from MASK_LONG
 * on taken as without a limit: no token of so many bytes can tell. Longer tokens are looked at with the counts as they
 * are. */
#include <stdlib.h>
#include <string.h>

#include "model/grammar/automaton.h"

static void set_bit(uint64_t *bits, int32_t id) { bits[id / 64] |= 1ull << (id % 64); }
static size_t words(const automaton *a) { return (a->vocabulary->count + 63) / 64; }

static bool has_room_for_path(automaton *a) {
  return rdna__automaton_grow(a, &a->path, UINT16_MAX + 1, &a->path_room, sizeof *a->path);
}

/* Sets the bits of the tokens under nodes [node, end) of the trie that are read from |state|, whose own depth is
 * |depth|. What goes out of a cut stack, and what is too long, goes to |local| if there is one. */
static void walk(automaton *a, uint32_t state, size_t depth, size_t node, size_t end, uint64_t *bits, local_mask *local,
                 bool clamped) {
  const rdna__vocabulary *v = a->vocabulary;
  a->path[depth] = state;
  while (node < end) {
    size_t d = v->depths[node];
    uint32_t next = rdna__automaton_next(a, a->path[d - 1], v->bytes[node]);
    if (next == STATE_DEAD) {
      if (a->status != RDNA_OK) return;
      node = v->skips[node];
      continue;
    }
    if (clamped && d == MASK_LONG) {
      if (!rdna__automaton_grow(a, &local->longs, local->long_count + 1, &local->long_room, sizeof *local->longs))
        return;
      local->longs[local->long_count++] = (uint32_t)node;
      node = v->skips[node];
      continue;
    }
    for (uint32_t i = v->firsts[node]; i < v->firsts[node + 1]; i++) set_bit(bits, v->order[i]);
    a->path[d] = next;
    if (local && v->skips[node] > node + 1) {
      const net_state *s = &a->states[next];
      bool outside = a->members[s->first] == STACK_OUTSIDE;
      if (outside) {
        if (!rdna__automaton_grow(a, &local->exits, local->exit_count + 1, &local->exit_room, sizeof *local->exits))
          return;
        local->exits[local->exit_count++] = (uint32_t)node;
        if (s->count == 1) node = v->skips[node] - 1;
      }
    }
    node++;
  }
}

/* The stack that a mask depends on, and what is below the cut. */
static uint32_t cut(automaton *a, uint32_t stack, uint32_t *out_below, bool *out_clamped) {
  net_stack s = a->stacks[stack];
  uint32_t below = s.below, base = STACK_OUTSIDE;
  *out_clamped = false;
  if (below >= STACK_FIRST && a->stacks[below].most > 0 && a->net->nodes[a->stacks[below].node].tight) {
    net_stack round = a->stacks[below];
    if (round.most > MASK_LONG && round.most != GRAMMAR_NO_LIMIT) {
      round.most = GRAMMAR_NO_LIMIT;
      *out_clamped = true;
    }
    if (round.least > MASK_LONG) {
      round.least = MASK_LONG + 1;
      *out_clamped = true;
    }
    base = rdna__automaton_stack(a, round.node, STACK_OUTSIDE, round.least, round.most);
    below = round.below;
  }
  *out_below = below;
  return rdna__automaton_stack(a, s.node, base, 0, 0);
}

/* The mask of a cut stack, found or made. -1 after a failure. */
static int32_t local_of(automaton *a, uint32_t stack, bool clamped) {
  if (a->stacks[stack].local >= 0) return a->stacks[stack].local;
  if (!rdna__automaton_grow(a, &a->locals, a->local_count + 1, &a->local_room, sizeof *a->locals)) return -1;
  int32_t number = (int32_t)a->local_count;
  local_mask local = {.bits = calloc(words(a) + 1, sizeof *local.bits)};
  if (!local.bits) {
    a->status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask of tokens");
    return -1;
  }
  a->bytes += words(a) * sizeof *local.bits;
  uint32_t state = rdna__automaton_state_of(a, stack);
  if (state != STATE_DEAD) walk(a, state, 0, 0, a->vocabulary->node_count, local.bits, &local, clamped);
  a->locals[a->local_count++] = local;
  if (a->status != RDNA_OK) return -1;
  a->stacks[stack].local = number;
  return number;
}

/* Tokens that begin with MASK_LONG bytes that the cut stack reads. */
static void add_longs(automaton *a, uint32_t stack, const local_mask *local, uint64_t *bits) {
  const rdna__vocabulary *v = a->vocabulary;
  uint32_t start = local->long_count ? rdna__automaton_state_of(a, stack) : STATE_DEAD;
  for (size_t i = 0; i < local->long_count && a->status == RDNA_OK; i++) {
    uint32_t node = local->longs[i], state = start;
    rdna_text path = v->pieces[v->order[v->firsts[node]]]; /* the first token behind the node begins with its path */
    for (size_t at = 0; at < MASK_LONG && state != STATE_DEAD; at++)
      state = rdna__automaton_next(a, state, (uint8_t)path.data[at]);
    if (state == STATE_DEAD) continue;
    for (uint32_t t = v->firsts[node]; t < v->firsts[node + 1]; t++) set_bit(bits, v->order[t]);
    walk(a, state, MASK_LONG, node + 1, v->skips[node], bits, NULL, false);
  }
}

static void add_stack(automaton *a, uint32_t stack, uint64_t *bits) {
  const net_node *node = &a->net->nodes[a->stacks[stack].node];
  if (node->kind == NODE_TOKEN) {
    set_bit(bits, (int32_t)node->set);
    return;
  }
  uint32_t below;
  bool clamped;
  uint32_t top = cut(a, stack, &below, &clamped);
  int32_t number = a->status == RDNA_OK ? local_of(a, top, clamped) : -1;
  if (number < 0) return;
  const local_mask *local = &a->locals[number];
  for (size_t i = 0; i < words(a); i++) bits[i] |= local->bits[i];
  uint32_t state = local->exit_count ? rdna__automaton_return(a, below) : STATE_DEAD;
  for (size_t i = 0; i < local->exit_count && state != STATE_DEAD && a->status == RDNA_OK; i++) {
    uint32_t at = local->exits[i];
    walk(a, state, a->vocabulary->depths[at], at + 1, a->vocabulary->skips[at], bits, NULL, false);
  }
  add_longs(a, stack, local, bits);
}

const uint64_t *rdna__automaton_mask(automaton *a, uint32_t state) {
  if (a->states[state].mask) return a->states[state].mask;
  uint64_t *bits = calloc(words(a) + 1, sizeof *bits);
  if (!bits) {
    a->status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask of tokens");
    return NULL;
  }
  if (has_room_for_path(a)) {
    for (uint32_t i = 0; i < a->states[state].count && a->status == RDNA_OK; i++) {
      uint32_t stack = a->members[a->states[state].first + i];
      if (stack >= STACK_FIRST) add_stack(a, stack, bits);
    }
  }
  if (a->status != RDNA_OK) {
    free(bits);
    return NULL;
  }
  if (rdna__automaton_ends(a, state))
    for (size_t i = 0; i < a->vocabulary->end_count; i++) set_bit(bits, a->vocabulary->ends[i]);
  a->bytes += words(a) * sizeof *bits;
  return a->states[state].mask = bits;
}
