/* Masks of grammars, on a thread of their own while the model computes the logits that they are for:
 *
 *     scheduler   | step of the model        | sample | step of the model        | sample |
 *     masks       | masks |                           | masks |
 */
#include "base/status.h"
#include "server/scheduler_state.h"

static bool wants_mask(const writer *w) { return w->wants_logits && w->choice->matcher && !w->choice->is_masked; }

static void *run(void *data) {
  scheduler *s = data;
  masker *m = &s->masker;
  pthread_mutex_lock(&m->lock);
  for (;;) {
    while (!m->wanted && !m->leaving) pthread_cond_wait(&m->changed, &m->lock);
    if (m->leaving) break;
    pthread_mutex_unlock(&m->lock);
    for (int i = 0; i < s->part_count; i++) {
      choice *c = s->in_step[i]->choice;
      /* where it fails, whoever needs it tries again and says why */
      if (wants_mask(s->in_step[i])) c->is_masked = rdna__matcher_mask(c->matcher, c->allowed) == RDNA_OK;
    }
    pthread_mutex_lock(&m->lock);
    m->wanted = false;
    pthread_cond_broadcast(&m->changed);
  }
  pthread_mutex_unlock(&m->lock);
  return NULL;
}

rdna_status masks_open(scheduler *s) {
  masker *m = &s->masker;
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->changed, NULL);
  m->runs = pthread_create(&m->thread, NULL, run, s) == 0;
  if (m->runs) return RDNA_OK;
  pthread_mutex_destroy(&m->lock);
  pthread_cond_destroy(&m->changed);
  return rdna__fail(RDNA_UNAVAILABLE, "the system starts no thread for the masks of grammars");
}

void masks_begin(scheduler *s) {
  bool any = false;
  for (int i = 0; i < s->part_count; i++) any |= wants_mask(s->in_step[i]);
  if (!any) return;
  pthread_mutex_lock(&s->masker.lock);
  s->masker.wanted = true;
  pthread_cond_broadcast(&s->masker.changed);
  pthread_mutex_unlock(&s->masker.lock);
}

void masks_end(scheduler *s) {
  pthread_mutex_lock(&s->masker.lock);
  while (s->masker.wanted) pthread_cond_wait(&s->masker.changed, &s->masker.lock);
  pthread_mutex_unlock(&s->masker.lock);
}

void masks_close(scheduler *s) {
  masker *m = &s->masker;
  if (!m->runs) return;
  pthread_mutex_lock(&m->lock);
  m->leaving = true;
  pthread_cond_broadcast(&m->changed);
  pthread_mutex_unlock(&m->lock);
  pthread_join(m->thread, NULL);
  pthread_mutex_destroy(&m->lock);
  pthread_cond_destroy(&m->changed);
}
