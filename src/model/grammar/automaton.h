/* A grammar's net run on bytes: an automaton whose states are made when they are first reached.
 *
 * A place in the net is a stack: a node, and the stack that goes on when the node's rule ends. Equal stacks have the
 * same number. A state is a set of stacks, whose nodes read a byte or a token next:
 *
 *   state 5 = { (node 17, then (node 4, then COMPLETE)), COMPLETE }        it may end here, or go on
 *
 * All that is found out is kept, and a matcher holds numbers. Once it is more than a budget, it is thrown away, and the
 * states of matchers are made again. */
#ifndef RDNA_MODEL_GRAMMAR_AUTOMATON_H
#define RDNA_MODEL_GRAMMAR_AUTOMATON_H

#include "model/grammar/grammar_net.h"

enum {
  STACK_COMPLETE = 0, /* the grammar's text is whole */
  STACK_OUTSIDE = 1,  /* of a stack that was cut: what was below the cut goes on */
  STACK_FIRST = 2,

  STATE_UNKNOWN = 0, /* in a table of transitions */
  STATE_DEAD = 1,    /* no text goes on from here */
  STATE_FIRST = 2,

  AUTOMATON_MOST_DEPTH = 8192,      /* of a stack; what is nested deeper is ruled out */
  AUTOMATON_MOST_STACKS = 1024,     /* of a state */
  AUTOMATON_MOST_WORK = 1 << 21,    /* stacks that one step of a matcher looks at, beyond what is known already */
  AUTOMATON_BUDGET = 64 << 20,      /* bytes that are kept */
  AUTOMATON_MOST_BYTES = 256 << 20, /* with what one step adds */
  MASK_LONG = 32                    /* bytes; longer tokens are looked at one by one where something is counted */
};

typedef struct net_stack {
  uint32_t node, below;
  uint32_t least,
      most; /* of a REPEAT that is going on: rounds still wanted and allowed, this one too; most 0: none is */
  uint32_t depth;
  uint32_t mark; /* the last closure that it was in */
  int32_t local; /* its mask in |locals|, when it is a cut one; -1 */
} net_stack;

typedef struct net_state {
  uint32_t first, count; /* in |members| */
  uint32_t hash;
  uint32_t *next; /* (256) states, or NULL */
  uint64_t *mask; /* of tokens, or NULL */
} net_state;

/* What tokens may come at a cut stack, without what is below the cut. */
typedef struct local_mask {
  uint64_t *bits;
  uint32_t *exits; /* (exit_count) nodes of the trie behind which what is below goes on */
  uint32_t *longs; /* (long_count) nodes at depth MASK_LONG, to be looked at with the counts as they are */
  size_t exit_count, exit_room, long_count, long_room;
} local_mask;

typedef struct automaton {
  const grammar_net *net;
  const rdna__vocabulary *vocabulary;
  net_stack *stacks;
  size_t stack_count, stack_room;
  uint32_t *stack_slots; /* a hash table; a power of two of them */
  size_t stack_slot_count;
  net_state *states;
  size_t state_count, state_room;
  uint32_t *members;
  size_t member_count, member_room;
  uint32_t *state_slots;
  size_t state_slot_count;
  local_mask *locals;
  size_t local_count, local_room;
  uint32_t closure;  /* number of the last one */
  uint32_t *waiting; /* stacks of a closure that are not looked at yet */
  size_t waiting_count, waiting_room;
  uint32_t *found; /* stacks of the closure */
  size_t found_count, found_room;
  uint32_t *path; /* states on the way to a node of the trie */
  size_t path_room;
  size_t bytes, work;
  rdna_status status; /* the first failure; states are then dead, and nobody keeps them */
} automaton;

rdna_status rdna__automaton_init(automaton *a, const grammar_net *net, const rdna__vocabulary *vocabulary);
void rdna__automaton_deinit(automaton *a);

/* Each returns a state; STATE_DEAD also after a failure, which |status| then is. */
uint32_t rdna__automaton_start(automaton *a);
uint32_t rdna__automaton_step(automaton *a, uint32_t state, uint8_t byte);
uint32_t rdna__automaton_step_token(automaton *a, uint32_t state, int32_t token);
uint32_t rdna__automaton_state_of(automaton *a, uint32_t stack); /* of one stack as it is */
uint32_t rdna__automaton_return(automaton *a, uint32_t stack);   /* where |stack| goes on when what is above it ends */
/* The same state in |to|, which has no failure. */
uint32_t rdna__automaton_carry(const automaton *from, automaton *to, uint32_t state);
uint32_t rdna__automaton_stack(automaton *a, uint32_t node, uint32_t below, uint32_t least, uint32_t most);
bool rdna__automaton_ends(const automaton *a, uint32_t state);

/* The tokens that may come in |state|, valid until the next call. NULL after a failure. */
const uint64_t *rdna__automaton_mask(automaton *a, uint32_t state);

static inline uint32_t rdna__automaton_next(automaton *a, uint32_t state, uint8_t byte) {
  const uint32_t *next = a->states[state].next;
  return next && next[byte] != STATE_UNKNOWN ? next[byte] : rdna__automaton_step(a, state, byte);
}

/* Room for |count| entries. */
bool rdna__automaton_grow(automaton *a, void *array, size_t count, size_t *room, size_t size);

#endif
