#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/grammar/automaton.h"

struct rdna__grammar {
  grammar_net net;
  const rdna__vocabulary *vocabulary;
  pthread_mutex_t lock;
  automaton automaton;
  size_t budget;           /* bytes of it, above which it is made again */
  rdna__matcher *matchers; /* all of them */
};

struct rdna__matcher {
  rdna__grammar *grammar;
  rdna__matcher *before, *after; /* of the same grammar */
  uint32_t *states;              /* (count) before each token and behind the last */
  size_t count, room;
};

static rdna_status out_of_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a grammar"); }

static rdna_status compile(rdna__grammar *g, const char *text, size_t size) {
  RDNA_TRY(rdna__grammar_parse(g->vocabulary, text, size, &g->net));
  RDNA_TRY(rdna__grammar_measure(&g->net));
  RDNA_TRY(rdna__grammar_build(&g->net));
  return rdna__automaton_init(&g->automaton, &g->net, g->vocabulary);
}

rdna_status rdna__grammar_compile(const rdna__vocabulary *vocabulary, const char *text, size_t size,
                                  rdna__grammar **out_grammar) {
  rdna__grammar *g = calloc(1, sizeof *g);
  if (!g) return out_of_memory();
  g->vocabulary = vocabulary;
  g->budget = AUTOMATON_BUDGET;
  pthread_mutex_init(&g->lock, NULL);
  rdna_status status = compile(g, text, size);
  if (status == RDNA_OK) {
    *out_grammar = g;
  } else {
    rdna__grammar_release(g);
  }
  return status;
}

void rdna__grammar_release(rdna__grammar *g) {
  if (!g) return;
  rdna__automaton_deinit(&g->automaton);
  rdna__grammar_net_deinit(&g->net);
  pthread_mutex_destroy(&g->lock);
  free(g);
}

/* Takes the grammar's lock. A failure of before is forgotten with all states but those of matchers, as is what is above
 * the budget. */
static rdna_status enter(rdna__grammar *g) {
  pthread_mutex_lock(&g->lock);
  automaton *old = &g->automaton;
  old->work = 0;
  if (old->status == RDNA_OK && old->bytes <= g->budget) return RDNA_OK;
  automaton fresh;
  rdna_status status = rdna__automaton_init(&fresh, &g->net, g->vocabulary);
  for (int pass = 0; pass < 2 && status == RDNA_OK; pass++) /* first all are made, then matchers change */
    for (rdna__matcher *m = g->matchers; m && status == RDNA_OK; m = m->after)
      for (size_t i = 0; i < m->count && status == RDNA_OK; i++) {
        uint32_t state = rdna__automaton_carry(old, &fresh, m->states[i]);
        if (pass == 1) m->states[i] = state;
        status = fresh.status;
      }
  if (status == RDNA_OK) {
    rdna__automaton_deinit(old);
    *old = fresh;
    g->budget = 2 * fresh.bytes > AUTOMATON_BUDGET ? 2 * fresh.bytes : AUTOMATON_BUDGET;
    return RDNA_OK;
  }
  rdna__automaton_deinit(&fresh);
  pthread_mutex_unlock(&g->lock);
  return status;
}

static void leave(const rdna__grammar *g) { pthread_mutex_unlock((pthread_mutex_t *)&g->lock); }

static rdna_status append(rdna__matcher *m, uint32_t state) {
  if (m->count == m->room) {
    size_t room = 2 * m->room + 16;
    uint32_t *grown = realloc(m->states, room * sizeof *grown);
    if (!grown) return out_of_memory();
    m->states = grown;
    m->room = room;
  }
  m->states[m->count++] = state;
  return RDNA_OK;
}

static void link_matcher(rdna__matcher *m) {
  m->after = m->grammar->matchers;
  if (m->after) m->after->before = m;
  m->grammar->matchers = m;
}

rdna_status rdna__matcher_create(rdna__grammar *grammar, rdna__matcher **out_matcher) {
  rdna__matcher *m = calloc(1, sizeof *m);
  if (!m) return out_of_memory();
  m->grammar = grammar;
  rdna_status status = enter(grammar);
  if (status == RDNA_OK) {
    uint32_t state = rdna__automaton_start(&grammar->automaton);
    status = grammar->automaton.status;
    if (status == RDNA_OK) status = append(m, state);
    if (status == RDNA_OK) link_matcher(m);
    leave(grammar);
  }
  if (status == RDNA_OK) {
    *out_matcher = m;
  } else {
    free(m->states);
    free(m);
  }
  return status;
}

rdna_status rdna__matcher_copy(const rdna__matcher *matcher, rdna__matcher **out_matcher) {
  rdna__matcher *m = calloc(1, sizeof *m);
  if (m) m->states = malloc(matcher->count * sizeof *m->states);
  if (!m || !m->states) {
    free(m);
    return out_of_memory();
  }
  m->grammar = matcher->grammar;
  m->count = m->room = matcher->count;
  pthread_mutex_lock(&m->grammar->lock);
  memcpy(m->states, matcher->states, m->count * sizeof *m->states);
  link_matcher(m);
  leave(m->grammar);
  *out_matcher = m;
  return RDNA_OK;
}

void rdna__matcher_release(rdna__matcher *m) {
  if (!m) return;
  pthread_mutex_lock(&m->grammar->lock);
  if (m->before) {
    m->before->after = m->after;
  } else {
    m->grammar->matchers = m->after;
  }
  if (m->after) m->after->before = m->before;
  leave(m->grammar);
  free(m->states);
  free(m);
}

rdna_status rdna__matcher_mask(rdna__matcher *m, uint64_t *bits) {
  rdna__grammar *g = m->grammar;
  RDNA_TRY(enter(g));
  const uint64_t *mask = rdna__automaton_mask(&g->automaton, m->states[m->count - 1]);
  rdna_status status = g->automaton.status;
  if (mask) memcpy(bits, mask, (g->vocabulary->count + 63) / 64 * sizeof *bits);
  leave(g);
  return status;
}

static uint32_t after_token(rdna__grammar *g, uint32_t state, int32_t id) {
  const rdna__vocabulary *v = g->vocabulary;
  for (size_t i = 0; i < v->end_count; i++)
    if (v->ends[i] == id && rdna__automaton_ends(&g->automaton, state))
      return rdna__automaton_return(&g->automaton, STACK_COMPLETE);
  if (v->control[id] || v->pieces[id].size == 0) return rdna__automaton_step_token(&g->automaton, state, id);
  uint32_t named = rdna__automaton_step_token(&g->automaton, state, id);
  if (named != STATE_DEAD) return named;
  for (size_t i = 0; i < v->pieces[id].size && state != STATE_DEAD; i++)
    state = rdna__automaton_next(&g->automaton, state, (uint8_t)v->pieces[id].data[i]);
  return state;
}

rdna_status rdna__matcher_accept(rdna__matcher *m, int32_t id) {
  rdna__grammar *g = m->grammar;
  if (id < 0 || (size_t)id >= g->vocabulary->count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "token %d is not one of the model's %zu", (int)id, g->vocabulary->count);
  RDNA_TRY(enter(g));
  uint32_t state = after_token(g, m->states[m->count - 1], id);
  rdna_status status = g->automaton.status;
  if (status == RDNA_OK && state == STATE_DEAD)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "token %d may not come here, by the grammar", (int)id);
  if (status == RDNA_OK) status = append(m, state);
  leave(g);
  return status;
}

bool rdna__matcher_may_end(const rdna__matcher *m) {
  pthread_mutex_lock(&m->grammar->lock);
  bool ends = rdna__automaton_ends(&m->grammar->automaton, m->states[m->count - 1]);
  leave(m->grammar);
  return ends;
}

bool rdna__matcher_must_end(const rdna__matcher *m) {
  pthread_mutex_lock(&m->grammar->lock);
  const automaton *a = &m->grammar->automaton;
  uint32_t state = m->states[m->count - 1];
  bool ends = rdna__automaton_ends(a, state) && a->states[state].count == 1;
  leave(m->grammar);
  return ends;
}

rdna_status rdna__matcher_rollback(rdna__matcher *m, size_t count) {
  if (count >= m->count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%zu tokens are to be taken back, of %zu", count, m->count - 1);
  pthread_mutex_lock(&m->grammar->lock); /* another matcher's step may be making all states again */
  m->count -= count;
  leave(m->grammar);
  return RDNA_OK;
}

void rdna__mask_apply(const uint64_t *bits, float *logits, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!(bits[i / 64] >> (i % 64) & 1)) logits[i] = -INFINITY;
}
