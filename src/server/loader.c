/* The thread that loads models and takes them out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/status.h"
#include "rdna/memory.h"
#include "server/catalog.h"
#include "server/clock.h"
#include "server/http.h"
#include "server/log.h"

/* Under the lock: whoever waits for |m| goes on, with it or with the reason why it is not there. */
static void tell_waiting(server *s, catalog_model *m, rdna_status status) {
  exchange *next;
  for (exchange *x = s->waiting; x; x = next) {
    next = x->after;
    if (x->awaited != m) continue;
    if (m->state == MODEL_IN)
      catalog_take(x, m);
    else
      refuse(&x->problem, status == RDNA_OUT_OF_MEMORY ? 503 : 500, NULL, "model",
             "the model '%s' cannot be loaded: %.400s", m->preset.name, m->error);
    stop_awaiting(x);
  }
}

static bool is_awaited(const server *s, const catalog_model *m) {
  for (const exchange *x = s->waiting; x; x = x->after)
    if (x->awaited == m) return true;
  return false;
}

/* ---- what it has read, on disk ---- */

/* FOLDER/NAME.kv, without slashes in the name; NULL without memory. */
static char *cache_path(const server *s, const catalog_model *m) {
  char name[3 * sizeof m->preset.name], *to = name, *path;
  for (const char *c = m->preset.name; *c; c++)
    if (*c == '/' || *c == '%')
      to += sprintf(to, "%%%02X", *c);
    else
      *to++ = *c;
  *to = 0;
  return asprintf(&path, "%s/%s.kv", s->options->cache_folder, name) < 0 ? NULL : path;
}

/* |what|: "saved" or "restored". */
static void tell_cache(const server *s, const catalog_model *m, const char *what, const char *path, int texts,
                       rdna_status status) {
  char sentence[1024];
  if (status == RDNA_NOT_FOUND) return; /* nothing was saved yet */
  if (status != RDNA_OK) {
    snprintf(sentence, sizeof sentence, "what '%s' has read is not %s, and all goes on without: %s: %.500s",
             m->preset.name, what, path, rdna_last_error());
    s->options->warn(sentence);
  }
  if (s->options->log)
    log_event("cache", json_pack("{s:s, s:s, s:i, s:b}", "model", m->preset.name, "action", what, "texts", texts,
                                 "whole", status == RDNA_OK));
}

static void restore_texts(const server *s, const catalog_model *m, scheduler *created) {
  int texts;
  char *path = s->options->cache_folder ? cache_path(s, m) : NULL;
  if (!path) return;
  rdna_status status = scheduler_restore(created, path, m->served.sum, &texts);
  tell_cache(s, m, "restored", path, texts, status);
  free(path);
}

/* Not under the lock; the scheduler has ended. */
static void save_texts(const server *s, const catalog_model *m, scheduler *gone) {
  int texts;
  char *path = s->options->cache_folder ? cache_path(s, m) : NULL;
  if (!path) return;
  rdna_status status = scheduler_save(gone, path, m->served.sum, &texts);
  tell_cache(s, m, "saved", path, texts, status);
  free(path);
}

/* ---- out ---- */

/* Under the lock, which it gives back meanwhile: nobody holds |m|. */
static void take_out(server *s, catalog_model *m) {
  scheduler *gone = m->scheduler;
  m->state = MODEL_LEAVING;
  server_unlock(s);
  scheduler_end(gone);
  if (!m->stale) save_texts(s, m, gone);
  server_lock(s);
  m->scheduler = NULL;
  catalog_add_past(s, gone);
  server_unlock(s);
  scheduler_release(gone);
  served_model_close(&m->served);
  rdna_status status = rdna_memory_empty_cache(s->device); /* others may want it; if it fails, it stays ours */
  (void)status;
  if (s->options->log) log_event("unload", json_pack("{s:s}", "model", m->preset.name));
  server_lock(s);
  m->state = is_awaited(s, m) ? MODEL_WANTED : MODEL_OUT;
  if (m->state == MODEL_WANTED) m->order = ++s->orders;
}

/* Of the models that are in, but for |kept|, the one that was used least recently, of those that nobody holds if there
 * are any. */
static catalog_model *find_victim(const server *s, const catalog_model *kept) {
  catalog_model *victim = NULL;
  for (catalog_model *m = s->models; m; m = m->next) {
    if (m->state != MODEL_IN || m == kept) continue;
    bool better = !victim || (victim->holders > 0 && m->holders == 0) ||
                  ((victim->holders > 0) == (m->holders > 0) && m->used < victim->used);
    if (better) victim = m;
  }
  return victim;
}

/* Under the lock: takes one model out so that |m| has room. One that is in use finishes first what it has, and new
 * requests for it wait behind |m|. False: there is none, or the server ends. */
static bool make_room(server *s, const catalog_model *m) {
  catalog_model *victim = find_victim(s, m);
  if (!victim) return false;
  victim->state = MODEL_LEAVING;
  while (victim->holders > 0 && !s->leaving) pthread_cond_wait(&s->changed, &s->lock);
  if (victim->holders > 0) {
    victim->state = MODEL_IN;
    return false;
  }
  take_out(s, victim);
  return true;
}

/* ---- in ---- */

typedef struct loading {
  server *server;
  catalog_model *model;
} loading;

/* Under the lock: streams of a model's loading. */
static void wake_watchers(server *s) {
  for (exchange *x = s->waiting; x; x = x->after)
    if (x->watches_load) resume(x);
}

static void note_progress(void *data, double share) {
  const loading *l = data;
  server *s = l->server;
  server_lock(s);
  l->model->share = share;
  l->model->layers = l->model->served.layers;
  wake_watchers(s);
  server_unlock(s);
  if (s->progress) s->progress(s->progress_data, share);
}

static rdna_status open_model(server *s, catalog_model *m, scheduler **out_scheduler) {
  loading l = {s, m};
  uint64_t lost = rdna__file_lost_pages();
  rdna_status status = served_model_open(&m->served, &m->preset, s->device, note_progress, &l);
  if (status == RDNA_OK && rdna__file_lost_pages() != lost)
    status = rdna__fail(RDNA_IO_ERROR, "its file was cut short while it was read");
  if (status == RDNA_OK)
    status = scheduler_create(m->served.llm, m->served.vision, m->served.tokenizer, &m->preset.scheduler, &s->lock,
                              out_scheduler);
  if (status == RDNA_OK) {
    restore_texts(s, m, *out_scheduler);
    return RDNA_OK;
  }
  snprintf(m->error, sizeof m->error, "%s", rdna_last_error());
  served_model_close(&m->served);
  return status;
}

static void log_load(const catalog_model *m, rdna_status status, double seconds) {
  json_t *line = json_pack("{s:s, s:f, s:b}", "model", m->preset.name, "seconds", seconds, "whole", status == RDNA_OK);
  if (line && status != RDNA_OK) json_object_set_new(line, "error", json_string(m->error));
  log_event("load", line);
}

static int count_in(const server *s) {
  int count = 0;
  for (const catalog_model *m = s->models; m; m = m->next) count += m->state == MODEL_IN;
  return count;
}

/* Under the lock, which it gives back meanwhile. */
static void load(server *s, catalog_model *m) {
  int most = s->options->most_loaded;
  scheduler *created = NULL;
  rdna_status status;
  double begun = clock_seconds();
  m->state = MODEL_LOADING;
  m->share = 0;
  while (most > 0 && count_in(s) >= most && make_room(s, m));
  do {
    server_unlock(s);
    status = open_model(s, m, &created);
    if (s->options->log) log_load(m, status, clock_seconds() - begun);
    server_lock(s);
  } while (status == RDNA_OUT_OF_MEMORY && make_room(s, m));
  m->scheduler = created;
  m->state = status == RDNA_OK ? MODEL_IN : MODEL_OUT;
  m->stale = false;
  m->failure = status;
  m->loads += status == RDNA_OK;
  m->used = clock_seconds();
  tell_waiting(s, m, status);
  wake_watchers(s);
  pthread_cond_broadcast(&s->changed);
}

/* ---- the thread ---- */

static catalog_model *find_wanted(const server *s) {
  catalog_model *first = NULL;
  for (catalog_model *m = s->models; m; m = m->next)
    if (m->state == MODEL_WANTED && (!first || m->order < first->order)) first = m;
  return first;
}

/* When |m| is to go; 0: it stays. */
static double end_of(const catalog_model *m) {
  if (m->state != MODEL_IN || m->holders > 0) return 0;
  if (m->retired || m->stale) return 1;
  return m->idle < 0 ? 0 : m->used + m->idle + 1e-3;
}

/* The model that is to go first. */
static catalog_model *find_next_to_go(const server *s) {
  catalog_model *first = NULL;
  for (catalog_model *m = s->models; m; m = m->next)
    if (end_of(m) > 0 && (!first || end_of(m) < end_of(first))) first = m;
  return first;
}

static void drop_retired(server *s) {
  for (catalog_model **link = &s->models; *link;) {
    catalog_model *m = *link;
    if (m->retired && m->state == MODEL_OUT) {
      *link = m->next;
      catalog_free(m);
    } else {
      link = &m->next;
    }
  }
}

static void wait_until(server *s, double end) {
  double seconds = end - clock_seconds();
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  long long nanoseconds = until.tv_nsec + (long long)(1e9 * (seconds > 3600 ? 3600 : seconds));
  if (seconds <= 0) return;
  until.tv_sec += (time_t)(nanoseconds / 1000000000);
  until.tv_nsec = (long)(nanoseconds % 1000000000);
  pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

static void *run(void *data) {
  server *s = data;
  server_lock(s);
  while (!s->leaving) {
    drop_retired(s);
    catalog_model *wanted = find_wanted(s), *next = find_next_to_go(s);
    if (wanted)
      load(s, wanted);
    else if (next && end_of(next) <= clock_seconds())
      take_out(s, next);
    else if (next)
      wait_until(s, end_of(next));
    else
      pthread_cond_wait(&s->changed, &s->lock);
  }
  server_unlock(s);
  return NULL;
}

rdna_status catalog_start(server *s) {
  s->has_loader = pthread_create(&s->loader, NULL, run, s) == 0;
  return s->has_loader ? RDNA_OK : rdna__fail(RDNA_UNAVAILABLE, "the system starts no thread to load models");
}

rdna_status catalog_wait(server *s) {
  rdna_status status = RDNA_OK;
  server_lock(s);
  for (catalog_model *m = s->models; m && status == RDNA_OK; m = m->next) {
    if (!m->preset.preload) continue;
    while (m->loads == 0 && m->failure == RDNA_OK) pthread_cond_wait(&s->changed, &s->lock);
    if (m->loads == 0) status = rdna__fail(m->failure, "%s", m->error);
  }
  server_unlock(s);
  return status;
}

void catalog_quiet(server *s) {
  server_lock(s);
  s->draining = true;
  exchange *next;
  for (exchange *x = s->waiting; x; x = next) {
    next = x->after;
    if (!x->awaited) continue;
    refuse(&x->problem, 503, NULL, NULL, "the server is about to end and loads no more models");
    stop_awaiting(x);
  }
  server_unlock(s);
}

void catalog_end(server *s) {
  if (s->has_loader) {
    server_lock(s);
    s->leaving = true;
    pthread_cond_broadcast(&s->changed);
    server_unlock(s);
    pthread_join(s->loader, NULL);
    s->has_loader = false;
  }
  for (catalog_model *m = s->models; m; m = m->next)
    if (m->scheduler) scheduler_end(m->scheduler);
  for (catalog_model *m = s->models; m; m = m->next)
    if (m->scheduler && !m->stale) save_texts(s, m, m->scheduler);
}

void catalog_deinit(server *s) {
  while (s->models) {
    catalog_model *m = s->models;
    s->models = m->next;
    scheduler_release(m->scheduler);
    served_model_close(&m->served);
    catalog_free(m);
  }
}
