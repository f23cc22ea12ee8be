#include "server/grammars.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 16 }; /* that nobody uses */

typedef struct entry {
  struct entry *next;
  char *text;
  rdna__grammar *grammar;
  int users;
  uint64_t since; /* larger: used later */
} entry;

struct grammars {
  rdna__vocabulary *vocabulary;
  pthread_mutex_t lock;
  /* Under the lock. */
  entry *entries;
  uint64_t now;
};

rdna_status grammars_create(const rdna_tokenizer *tokenizer, grammars **out) {
  grammars *g = calloc(1, sizeof *g);
  if (!g) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for grammars");
  rdna_status status = rdna__vocabulary_of_tokenizer(tokenizer, &g->vocabulary);
  if (status != RDNA_OK) {
    free(g);
    return status;
  }
  pthread_mutex_init(&g->lock, NULL);
  *out = g;
  return RDNA_OK;
}

static void entry_free(entry *e) {
  if (!e) return;
  rdna__grammar_release(e->grammar);
  free(e->text);
  free(e);
}

void grammars_release(grammars *g) {
  if (!g) return;
  for (entry *e = g->entries; e;) {
    entry *next = e->next;
    entry_free(e);
    e = next;
  }
  rdna__vocabulary_release(g->vocabulary);
  pthread_mutex_destroy(&g->lock);
  free(g);
}

size_t grammars_tokens(const grammars *g) { return rdna__vocabulary_count(g->vocabulary); }

/* Under the lock. */
static entry *find(grammars *g, const char *text) {
  for (entry *e = g->entries; e; e = e->next)
    if (strcmp(e->text, text) == 0) return e;
  return NULL;
}

/* Under the lock: takes out what has been without a user for the longest, if there are too many of such. */
static entry *take_oldest(grammars *g) {
  entry **oldest = NULL;
  int idle = 0;
  for (entry **at = &g->entries; *at; at = &(*at)->next) {
    if ((*at)->users) continue;
    idle++;
    if (!oldest || (*at)->since < (*oldest)->since) oldest = at;
  }
  if (idle <= KEPT) return NULL;
  entry *e = *oldest;
  *oldest = e->next;
  return e;
}

static rdna_status entry_create(const grammars *g, const char *text, entry **out) {
  entry *e = calloc(1, sizeof *e);
  if (e) e->text = strdup(text);
  rdna_status status = e && e->text ? rdna__grammar_compile(g->vocabulary, text, strlen(text), &e->grammar)
                                    : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a grammar");
  if (status == RDNA_OK)
    *out = e;
  else
    entry_free(e);
  return status;
}

rdna_status grammars_get(grammars *g, const char *text, rdna__grammar **out) {
  entry *made = NULL;
  pthread_mutex_lock(&g->lock);
  entry *e = find(g, text);
  if (!e) {
    pthread_mutex_unlock(&g->lock); /* compiling takes its time, and texts that are being written need not wait */
    RDNA_TRY(entry_create(g, text, &made));
    pthread_mutex_lock(&g->lock);
    e = find(g, text); /* another thread may have been faster */
    if (!e) {
      e = made;
      made = NULL;
      e->next = g->entries;
      g->entries = e;
    }
  }
  e->users++;
  *out = e->grammar;
  pthread_mutex_unlock(&g->lock);
  entry_free(made);
  return RDNA_OK;
}

void grammars_put(grammars *g, rdna__grammar *grammar) {
  pthread_mutex_lock(&g->lock);
  entry *e = g->entries;
  while (e->grammar != grammar) e = e->next;
  e->users--;
  e->since = ++g->now;
  entry *old = take_oldest(g);
  pthread_mutex_unlock(&g->lock);
  entry_free(old);
}
