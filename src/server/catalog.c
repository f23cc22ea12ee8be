#include "server/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "server/clock.h"
#include "server/http.h"

/* "NAME" and "NAME:latest". */
static bool is_name(const char *given, const char *name) {
  size_t size = strlen(name);
  return strncasecmp(given, name, size) == 0 && (given[size] == 0 || strcmp(given + size, ":latest") == 0);
}

static catalog_model *first_of(const server *s) {
  catalog_model *m = s->models;
  while (m && m->retired) m = m->next;
  return m;
}

const preset_adapter *catalog_adapter(const catalog_model *m, const char *name) {
  size_t size = strlen(m->preset.name);
  bool of_model = strncasecmp(name, m->preset.name, size) == 0 && name[size] == ':';
  for (int i = 0; i < m->preset.adapter_count; i++) {
    const preset_adapter *a = &m->preset.adapters[i];
    if (is_name(name, a->name) || (of_model && is_name(name + size + 1, a->name))) return a;
  }
  return NULL;
}

catalog_model *catalog_find(const server *s, const char *name) {
  if (!name) return first_of(s);
  for (catalog_model *m = s->models; m; m = m->next)
    if (!m->retired && is_name(name, m->preset.name)) return m;
  for (catalog_model *m = s->models; m; m = m->next)
    if (!m->retired && catalog_adapter(m, name)) return m;
  return s->options->any_model ? first_of(s) : NULL;
}

void catalog_take(exchange *x, catalog_model *m) {
  m->holders++;
  x->hosted = m;
  x->model = &m->served;
  x->scheduler = m->scheduler;
}

void catalog_drop(server *s, catalog_model *m) {
  m->holders--;
  m->used = clock_seconds();
  pthread_cond_broadcast(&s->changed);
}

/* Under the lock: |m| is to be loaded, if nobody has said so yet. */
static void want(server *s, catalog_model *m) {
  if (m->state != MODEL_OUT) return;
  m->state = MODEL_WANTED;
  m->order = ++s->orders;
  pthread_cond_broadcast(&s->changed);
}

bool catalog_refuse(const server *s, const char *name, problem *p) {
  char names[320] = "";
  for (const catalog_model *m = s->models; m; m = m->next) {
    size_t size = strlen(names);
    if (!m->retired) snprintf(names + size, sizeof names - size, "%s'%s'", size ? ", " : "", m->preset.name);
    for (int i = 0; i < m->preset.adapter_count && !m->retired; i++) {
      size = strlen(names);
      snprintf(names + size, sizeof names - size, ", '%s'", m->preset.adapters[i].name);
    }
  }
  return refuse(p, 404, "model_not_found", "model", "there is no model '%.100s' here; there is %s", name ? name : "",
                names[0] ? names : "none");
}

/* Under the lock: whether what is in memory is no more what the model's file was. */
static bool is_stale(server *s, catalog_model *m) {
  if (m->state != MODEL_IN) return false;
  if (!m->stale && served_model_changed(&m->served, m->preset.path)) {
    m->stale = true;
    pthread_cond_broadcast(&s->changed);
  }
  return m->stale;
}

bool catalog_hold(exchange *x, const char *name, problem *p) {
  server *s = x->server;
  if (x->hosted) return true;
  server_lock(s);
  catalog_model *m = catalog_find(s, name);
  if (!m) {
    catalog_refuse(s, name, p);
  } else if (is_stale(s, m)) {
    refuse(p, 503, "model_changed", "model",
           "the file of the model '%s' was written over since it was loaded, and is read again for the next request; "
           "put a new file in its place by renaming it",
           m->preset.name);
  } else if (m->state == MODEL_IN) {
    catalog_take(x, m);
  } else if (s->draining) {
    refuse(p, 503, NULL, NULL, "the server is about to end and loads no more models");
  } else {
    want(s, m);
    x->awaited = m;
    join_waiting(x);
  }
  server_unlock(s);
  return x->hosted != NULL;
}

/* ---- the list ---- */

void catalog_free(catalog_model *m) {
  preset_deinit(&m->preset);
  free(m);
}

static rdna_status make_model(const preset *p, catalog_model **out) {
  catalog_model *m = calloc(1, sizeof *m);
  if (!m) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a model");
  rdna_status status = preset_copy(p, &m->preset);
  if (status != RDNA_OK) {
    free(m);
    return status;
  }
  m->idle = p->idle_seconds;
  *out = m;
  return RDNA_OK;
}

/* Under the lock: the models of |fresh|, but for those that are there already with the same preset; these are moved to
 * the new list. What is left of the old one retires, and comes last. */
static void replace(server *s, catalog_model *fresh) {
  catalog_model *list = NULL, **end = &list;
  while (fresh) {
    catalog_model *m = fresh, **link = &s->models;
    fresh = m->next;
    while (*link && ((*link)->retired || !preset_equal(&(*link)->preset, &m->preset))) link = &(*link)->next;
    if (*link) {
      catalog_free(m);
      m = *link;
      *link = m->next;
    }
    m->next = NULL;
    *end = m;
    end = &m->next;
  }
  for (catalog_model *m = s->models; m; m = m->next) m->retired = true;
  for (catalog_model *m = list; m; m = m->next)
    if (m->preset.preload && m->loads == 0) want(s, m);
  *end = s->models;
  s->models = list;
  pthread_cond_broadcast(&s->changed);
}

rdna_status catalog_set(server *s, const preset *presets, size_t count) {
  catalog_model *fresh = NULL, **end = &fresh;
  rdna_status status = RDNA_OK;
  for (size_t i = 0; i < count && status == RDNA_OK; i++) {
    status = make_model(&presets[i], end);
    if (status == RDNA_OK) end = &(*end)->next;
  }
  if (status == RDNA_OK) {
    server_lock(s);
    replace(s, fresh);
    server_unlock(s);
    return RDNA_OK;
  }
  while (fresh) {
    catalog_model *next = fresh->next;
    catalog_free(fresh);
    fresh = next;
  }
  return status;
}

/* ---- what they did ---- */

static void add_counts(scheduler_counts *sum, const scheduler_counts *c) {
  sum->jobs += c->jobs;
  sum->refused += c->refused;
  sum->cancelled += c->cancelled;
  sum->failed += c->failed;
  sum->expired += c->expired;
  sum->prompt_tokens += c->prompt_tokens;
  sum->cached_tokens += c->cached_tokens;
  sum->processed_tokens += c->processed_tokens;
  sum->written_tokens += c->written_tokens;
  sum->steps += c->steps;
  sum->preempted += c->preempted;
  sum->lost |= c->lost;
  sum->step_seconds += c->step_seconds;
  sum->pictures += c->pictures;
  sum->picture_seconds += c->picture_seconds;
  sum->other_seconds += c->other_seconds;
  sum->first_token_seconds += c->first_token_seconds;
  sum->first_tokens += c->first_tokens;
  sum->waiting += c->waiting;
  sum->running += c->running;
  sum->idle += c->idle;
  sum->pages += c->pages;
  sum->free_pages += c->free_pages;
}

void catalog_add_past(server *s, const scheduler *gone) {
  scheduler_counts counts = scheduler_get_counts(gone);
  counts.waiting = counts.running = counts.idle = 0;
  counts.pages = counts.free_pages = 0;
  add_counts(&s->past, &counts);
}

scheduler_counts catalog_counts(server *s) {
  scheduler_counts sum = s->past;
  for (catalog_model *m = s->models; m; m = m->next) {
    if (!m->scheduler) continue;
    scheduler_counts counts = scheduler_get_counts(m->scheduler);
    add_counts(&sum, &counts);
  }
  return sum;
}
