/* Vectors of texts, in passes between the steps of the texts that are being written.
 *
 *     job 0: | a | b | c | d |    a pass takes a text of each job in turn, until it is full: a e f b g
 *     job 1: | e |
 *     job 2: | f | g |
 *
 * So one text need not wait for the thousands of another request. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "server/scheduler_state.h"

enum { MOST_TEXTS = 64 }; /* of a pass */

typedef struct pass {
  rdna_llm_text texts[MOST_TEXTS];
  choice *of[MOST_TEXTS];
  size_t prompts[MOST_TEXTS]; /* which of their jobs' */
  int count, most_tokens;
  int64_t tokens;
} pass;

static int smaller(int a, int b) { return a < b ? a : b; }

rdna_status embedding_open(scheduler *s) {
  const scheduler_options *o = &s->options;
  const rdna_llm_info *model = rdna_llm_get_info(s->llm);
  rdna_llm_embedder_options options = {RDNA_LLM_EMBEDDER_OPTIONS_INIT,
                                       .context = smaller(o->context, model->context),
                                       .batch = o->batch,
                                       .sequences = MOST_TEXTS,
                                       .kv_dtype = o->kv_dtype,
                                       .exact = o->exact};
  rdna_llm_embedder_info info = {RDNA_LLM_EMBEDDER_INFO_INIT};
  RDNA_TRY(rdna_llm_embedder_create(s->llm, &options, &s->embedder));
  rdna_status status = rdna_llm_embedder_get_info(s->embedder, &info);
  s->vectors = calloc((size_t)MOST_TEXTS * (size_t)info.values + 1, sizeof *s->vectors);
  if (status == RDNA_OK && !s->vectors) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for vectors");
  s->width = info.values;
  s->options.batch = info.batch;
  if (!s->cache) s->context = info.context;
  if (status != RDNA_OK) embedding_close(s);
  return status;
}

void embedding_close(scheduler *s) {
  rdna_llm_embedder_release(s->embedder);
  free(s->vectors);
  s->embedder = NULL;
  s->vectors = NULL;
}

/* Takes the next text of |c|'s job, if it has one and the pass has room. */
static bool take(pass *p, choice *c) {
  job *j = c->job;
  if (p->count == MOST_TEXTS || j->taken == j->prompt_count) return false;
  const rdna_tokens *prompt = &j->prompts[j->taken];
  if (p->count > 0 && p->tokens + (int64_t)prompt->count > p->most_tokens) return false;
  p->texts[p->count] = (rdna_llm_text){
      .tokens = prompt->ids, .count = (int32_t)prompt->count, .second = j->seconds ? j->seconds[j->taken] : 0};
  p->of[p->count] = c;
  p->prompts[p->count++] = j->taken++;
  p->tokens += (int64_t)prompt->count;
  c->cached_tokens = 0; /* it waits no longer */
  return true;
}

static void fill(scheduler *s, pass *p) {
  for (bool more = true; more;) {
    more = false;
    for (choice *c = s->embedding.first; c; c = c->next) more |= take(p, c);
  }
}

static void fail_job(job *j, const char *sentence) {
  if (j->error[0]) return;
  snprintf(j->error, sizeof j->error, "%s", sentence);
  j->error_status = 500;
}

/* What a pass gave of one text. */
static void keep(job *j, size_t prompt, const float *vector, int width) {
  j->width = width;
  j->embedded++;
  if (!j->vectors) j->vectors = calloc(j->prompt_count * (size_t)width, sizeof *j->vectors);
  if (!j->vectors) {
    fail_job(j, "no host memory for the vectors");
    return;
  }
  memcpy(j->vectors + prompt * (size_t)width, vector, (size_t)width * sizeof *vector);
  for (int i = 0; i < width; i++)
    if (!isfinite(vector[i])) fail_job(j, "the model's vector has values that are no numbers");
}

static void leave(scheduler *s, const choice *gone) {
  choice *before = NULL, **link = &s->embedding.first;
  while (*link != gone) {
    before = *link;
    link = &before->next;
  }
  scheduler_take_out(&s->embedding, link, before);
}

/* Under the lock. */
static void show(scheduler *s, const pass *p, rdna_status status) {
  for (int i = 0; i < p->count; i++) {
    if (status == RDNA_OK)
      keep(p->of[i]->job, p->prompts[i], s->vectors + (size_t)i * (size_t)s->width, s->width);
    else
      fail_job(p->of[i]->job, rdna_last_error());
  }
  for (int i = 0; i < p->count; i++) {
    choice *c = p->of[i];
    bool last = true; /* of its texts in this pass: the job may be gone behind it */
    for (int k = i + 1; k < p->count; k++) last &= p->of[k] != c;
    bool failed = last && c->job->error[0];
    if (!last || (!failed && c->job->embedded < c->job->prompt_count)) continue;
    leave(s, c);
    scheduler_finish(s, c, failed ? "failed" : "stop");
  }
}

void embedding_pass(scheduler *s) {
  pass p = {.most_tokens = s->options.batch};
  fill(s, &p);
  pthread_mutex_unlock(s->lock);
  rdna_status status = s->embedder ? RDNA_OK : embedding_open(s);
  if (status == RDNA_OK) status = rdna_llm_embed(s->embedder, p.texts, p.count, s->vectors);
  pthread_mutex_lock(s->lock);
  s->counts.lost |= status == RDNA_DEVICE_LOST;
  s->counts.prompt_tokens += (uint64_t)p.tokens;
  if (status == RDNA_OK) s->counts.processed_tokens += (uint64_t)p.tokens;
  show(s, &p, status);
}
