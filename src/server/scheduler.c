#include "server/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "base/threads.h"
#include "server/clock.h"
#include "server/scheduler_state.h"

/* Of one text in a step where there are lanes. Larger parts are read in other passes, whose sums round otherwise: what
 * is computed of a token would depend on where its part began, and so on what was kept of the prompt. */
enum { MOST_IN_LANES = 8 };

static const double PRIORITY_SECONDS = 10;

static void scheduler_lock(scheduler *s) { pthread_mutex_lock(s->lock); }
static void scheduler_unlock(scheduler *s) { pthread_mutex_unlock(s->lock); }
int scheduler_context(const scheduler *s) { return s->context; }

static void wake(job *j) {
  if (j->wake) j->wake(j->wake_data);
}

/* Under the lock. */
static void drop_reference(job *j) {
  if (--j->references == 0) job_free(j);
}

void scheduler_drop_job(scheduler *s, job *j) { drop_reference(j); }

void scheduler_release_job(scheduler *s, job *j) {
  scheduler_lock(s);
  drop_reference(j);
  scheduler_unlock(s);
}

void scheduler_finish(scheduler *s, choice *c, const char *reason) {
  job *j = c->job;
  c->finish_reason = reason;
  if (--j->unfinished == 0) {
    j->finished = clock_seconds();
    if (j->cancelled) s->counts.cancelled++;
    if (j->error[0]) s->counts.failed++;
  }
  wake(j);
  if (j->unfinished == 0) drop_reference(j);
}

/* Under the lock. */
static void fail_choice(scheduler *s, choice *c, int status, const char *sentence) {
  job *j = c->job;
  if (!j->error[0]) {
    snprintf(j->error, sizeof j->error, "%s", sentence);
    j->error_status = status;
  }
  scheduler_finish(s, c, "failed");
}

static void rest(scheduler *s, writer *w) {
  w->choice = NULL;
  w->since = ++s->now;
  s->running--;
}

/* ---- the queue ---- */

/* Before those of its rank, or behind them. */
static void put(choice_queue *q, choice *c, bool before_equals) {
  choice **link = &q->first, *before = NULL;
  if (q->last && !before_equals && q->last->rank <= c->rank) {
    before = q->last; /* as most do */
    link = &before->next;
  }
  while (*link && ((*link)->rank < c->rank || (!before_equals && (*link)->rank == c->rank))) {
    before = *link;
    link = &before->next;
  }
  c->next = *link;
  *link = c;
  if (!c->next) q->last = c;
  q->count++;
}

void scheduler_take_out(choice_queue *q, choice **link, choice *before) {
  choice *c = *link;
  *link = c->next;
  if (q->last == c) q->last = before;
  c->next = NULL;
  q->count--;
}

/* Texts that wait, and requests for vectors. */
static int count_waiting(const scheduler *s) { return s->waiting.count + s->embedding.count; }

submitted scheduler_submit(scheduler *s, job *j) {
  for (int i = 0; i < j->choice_count && !j->embeds; i++)
    if (writing_begin(&j->choices[i], s->tokenizer, s->vocabulary) != RDNA_OK) return SUBMIT_FAILED;
  scheduler_lock(s);
  submitted result = SUBMITTED;
  if (s->stopping) {
    result = SUBMIT_STOPPING;
  } else if (count_waiting(s) + j->choice_count > s->options.queue + s->options.writers - s->running) {
    s->counts.refused++;
    result = SUBMIT_QUEUE_FULL;
  } else {
    j->references++;
    j->asked = clock_seconds();
    s->counts.jobs++;
    for (int i = 0; i < j->choice_count; i++) {
      j->choices[i].rank = j->asked + PRIORITY_SECONDS * j->settings.priority;
      put(j->embeds ? &s->embedding : &s->waiting, &j->choices[i], false);
    }
    pthread_cond_signal(&s->work);
  }
  scheduler_unlock(s);
  return result;
}

void scheduler_cancel(scheduler *s, job *j) {
  j->cancelled = true;
  pthread_cond_signal(&s->work);
}

/* Whether |c| is to end, or everything. */
static bool is_over(const scheduler *s, choice *c, double now) {
  job *j = c->job;
  double most = j->settings.most_seconds;
  j->cancelled |= s->leaving || (most > 0 && now - j->asked > most);
  return j->cancelled;
}

/* Whether |c|, which waits, has done so for too long; what has begun to be written may always end. */
static bool is_late(const scheduler *s, const choice *c, double now) {
  double most = s->options.queue_seconds;
  return most > 0 && c->cached_tokens < 0 && now - c->job->asked > most;
}

static void give_up(scheduler *s, choice *c) {
  char sentence[128];
  snprintf(sentence, sizeof sentence, "the request waited for %g seconds in the queue, which is all that it may",
           s->options.queue_seconds);
  if (!c->job->error[0]) s->counts.expired++;
  c->job->cancelled = true; /* and so do its other texts */
  fail_choice(s, c, 503, sentence);
}

static void drop_from(scheduler *s, choice_queue *q, double now) {
  choice *before = NULL;
  for (choice **link = &q->first; *link;) {
    choice *c = *link;
    bool over = is_over(s, c, now), late = !over && is_late(s, c, now);
    if (over || late) scheduler_take_out(q, link, before);
    if (over) {
      scheduler_finish(s, c, "cancelled");
    } else if (late) {
      give_up(s, c);
    } else {
      before = c;
      link = &c->next;
    }
  }
}

/* Under the lock: ends jobs that nobody waits for any more or whose time is over, or all jobs. */
static void drop_cancelled(scheduler *s) {
  double now = clock_seconds();
  drop_from(s, &s->waiting, now);
  drop_from(s, &s->embedding, now);
  for (int i = 0; i < s->writer_count; i++) {
    writer *w = &s->writers[i];
    choice *c = w->choice;
    if (!c || !is_over(s, c, now)) continue;
    rest(s, w);
    scheduler_finish(s, c, "cancelled");
  }
}

/* Under the lock: gives waiting texts to idle writers, in their order. */
static void admit(scheduler *s) {
  choice *before = NULL;
  for (choice **link = &s->waiting.first; *link && s->running < s->options.writers;) {
    choice *c = *link;
    bool is_new = c->cached_tokens < 0;
    if (!writers_admit(s, c)) {
      before = c;
      link = &c->next;
      continue;
    }
    scheduler_take_out(&s->waiting, link, before);
    s->running++;
    if (is_new) {
      s->counts.prompt_tokens += c->prompt->count;
      s->counts.cached_tokens += (uint64_t)c->cached_tokens;
    }
  }
}

/* ---- a step ---- */

/* How many tokens of |w|'s choice the model has yet to read. */
static size_t left_of(const writer *w) { return w->choice ? w->choice->history.count - w->held.count : 0; }

/* The picture whose tokens |w|'s choice reads next; NULL: a text. */
static rdna__shown *picture_of(const writer *w) {
  job *j = w->choice->job;
  return rdna__shown_at(j->pictures, j->picture_count, w->held.count);
}

/* How many tokens the next part of a prompt has at most: recurrent models keep a state where it ends, and a part is
 * text or of one picture. */
static size_t most_of(const scheduler *s, const writer *w) {
  const job *j = w->choice->job;
  size_t left = rdna__shown_until(j->pictures, j->picture_count, w->held.count, w->choice->history.count);
  size_t prompt = w->choice->prompt->count;
  left -= w->held.count;
  if (picture_of(w)) return left;
  size_t mark = prompt > LAST_TOKENS ? prompt - LAST_TOKENS : 0;
  if (s->options.lanes && left > MOST_IN_LANES) left = MOST_IN_LANES;
  if (!s->has_states) return left;
  size_t most = w->held.count < mark && mark - w->held.count < left ? mark - w->held.count : left,
         next = s->interval - w->held.count % s->interval;
  return most < next ? most : next;
}

static void put_in_step(scheduler *s, writer *w, size_t count) {
  w->taken = (int)count;
  w->wants_logits = w->held.count + count == w->choice->history.count;
  s->in_step[s->part_count] = w;
  s->parts[s->part_count++] = (rdna_llm_part){
      .tokens = w->choice->history.ids + w->held.count, .count = (int32_t)count, .logits = w->wants_logits};
}

/* The next tokens of a picture, once the tower has seen it: all that are left where the model reads it at once, if
 * there is room for them. It gives back how many those are. */
static size_t put_picture_in_step(scheduler *s, writer *w, rdna__shown *shown, size_t room) {
  size_t count = most_of(s, w);
  if (!shown->rows || (count > room && rdna_llm_get_info(s->llm)->whole_pictures)) return 0;
  if (count > room) count = room;
  if (count == 0) return 0;
  put_in_step(s, w, count);
  rdna_llm_part *part = &s->parts[s->part_count - 1];
  part->picture = &shown->picture;
  part->first = (int32_t)(w->held.count - shown->at);
  return count;
}

/* Each text that is being written: its last token. */
static size_t put_written(scheduler *s, size_t room) {
  for (int i = 0; i < s->writer_count && room > 0; i++) {
    if (left_of(&s->writers[i]) != 1) continue;
    put_in_step(s, &s->writers[i], 1);
    room--;
  }
  return room;
}

/* Pictures, those first whose texts began first. */
static size_t put_pictures(scheduler *s, size_t room) {
  uint64_t done = 0;
  for (;;) {
    writer *next = NULL;
    for (int i = 0; i < s->writer_count; i++) {
      writer *w = &s->writers[i];
      bool shows =
          left_of(w) > 1 && w->since > done && picture_of(w); /* text follows, so there is more than one token */
      if (shows && (!next || w->since < next->since)) next = w;
    }
    if (!next) return room;
    done = next->since;
    room -= put_picture_in_step(s, next, picture_of(next), room);
  }
}

static bool is_prompt(const writer *w) { return left_of(w) > 1 && !picture_of(w); }

/* Unread prompts, in equal shares. */
static size_t put_prompts(scheduler *s, size_t room) {
  int prompts = 0;
  for (int i = 0; i < s->writer_count; i++) prompts += is_prompt(&s->writers[i]);
  for (int i = 0; i < s->writer_count && prompts > 0; i++) {
    writer *w = &s->writers[i];
    if (!is_prompt(w)) continue;
    size_t share = (room + (size_t)prompts - 1) / (size_t)prompts, most = most_of(s, w);
    size_t count = most < share ? most : share;
    prompts--;
    if (count == 0) continue;
    put_in_step(s, w, count);
    room -= count;
  }
  return room;
}

/* The order of the step after that which was filled. No order with pictures or prompts at its head comes twice, so that
 * whatever the others ask for, each gets something within three steps: a picture that is read in one step fits in one
 * of its own, and a step has a token for each text. */
static step_order next_order(const scheduler *s) {
  bool picture = false, prompt = false;
  for (int i = 0; i < s->writer_count; i++) {
    const writer *w = &s->writers[i];
    if (left_of(w) <= 1 || w->taken) continue;
    const rdna__shown *shown = picture_of(w);
    picture |= shown && shown->rows;
    prompt |= !shown;
  }
  if (picture && s->order != PICTURES_WRITTEN_PROMPTS) return PICTURES_WRITTEN_PROMPTS;
  return prompt && s->order != WRITTEN_PROMPTS_PICTURES ? WRITTEN_PROMPTS_PICTURES : WRITTEN_PICTURES_PROMPTS;
}

/* Fills a step: the last token of each text that is being written, pictures, and of each unread prompt an equal share
 * of the rest; or in another order. */
static void compose(scheduler *s) {
  size_t room = (size_t)s->options.batch;
  s->part_count = 0;
  for (int i = 0; i < s->writer_count; i++) s->writers[i].taken = 0;
  if (s->order == PICTURES_WRITTEN_PROMPTS) room = put_pictures(s, room);
  room = put_written(s, room);
  if (s->order == WRITTEN_PICTURES_PROMPTS) room = put_pictures(s, room);
  room = put_prompts(s, room);
  if (s->order == WRITTEN_PROMPTS_PICTURES) put_pictures(s, room);
  s->order = next_order(s);
}

static rdna_status run_step(scheduler *s, const float **out_logits) {
  for (int i = 0; i < s->part_count; i++) {
    writer *w = s->in_step[i];
    if (!w->sequence) {
      RDNA_TRY(rdna_llm_sequence_create(s->cache, &w->sequence));
      if (w->adapter_count > 0) RDNA_TRY(rdna_llm_sequence_adapt(w->sequence, w->adapters, w->adapter_count));
    }
    s->parts[i].sequence = w->sequence;
  }
  return rdna_llm_step(s->cache, s->parts, s->part_count, out_logits);
}

/* Notes that the step's tokens are in their sequences now. */
static rdna_status note_step(scheduler *s) {
  for (int i = 0; i < s->part_count; i++) {
    writer *w = s->in_step[i];
    size_t prompt = w->choice->prompt->count;
    for (int k = 0; k < w->taken; k++) RDNA_TRY(rdna_tokens_append(&w->held, s->parts[i].tokens[k]));
    bool is_mark = w->held.count == prompt || w->held.count + LAST_TOKENS == prompt ||
                   (s->has_states && w->held.count % s->interval == 0);
    if (s->has_states && is_mark) RDNA_TRY(rdna_llm_sequence_checkpoint(w->sequence));
  }
  return RDNA_OK;
}

typedef struct sampling_job {
  scheduler *s;
  const float *logits;
} sampling_job;

static void sample(void *context, int64_t begin, int64_t end) {
  const sampling_job *j = context;
  scheduler *s = j->s;
  int64_t row = 0;
  for (int64_t i = 0; i < end; i++) {
    writer *w = s->in_step[i];
    if (!w->wants_logits) continue;
    const float *logits = j->logits + (size_t)row++ * s->vocabulary;
    if (i >= begin) writing_next(w->choice, s->tokenizer, logits, s->vocabulary, s->context, &w->addition);
  }
}

/* Under the lock: shows what the step wrote. */
static void show(scheduler *s) {
  double now = clock_seconds();
  for (int i = 0; i < s->part_count; i++) {
    writer *w = s->in_step[i];
    choice *c = w->choice;
    const addition *a = &w->addition;
    if (!w->wants_logits) continue;
    if (c->job->first == 0) {
      c->job->first = now;
      s->counts.first_tokens++;
      s->counts.first_token_seconds += now - c->job->asked;
    }
    s->counts.written_tokens += a->id >= 0;
    bool shown = a->status == RDNA_OK && writing_show(c, a);
    if (shown && !a->finish_reason) {
      wake(c->job);
      continue;
    }
    rest(s, w);
    if (shown)
      scheduler_finish(s, c, a->finish_reason);
    else
      fail_choice(s, c, 500, a->status != RDNA_OK ? a->error : "no host memory for the text");
  }
}

static bool comes_after(const writer *a, const writer *b) {
  return a->choice->rank > b->choice->rank || (a->choice->rank == b->choice->rank && a->since > b->since);
}

/* Under the lock. The cache is full: an idle writer's pages go, or the text of the last rank waits. */
static bool make_room(scheduler *s) {
  if (writers_evict(s, NULL)) return true;
  writer *last = NULL;
  for (int i = 0; i < s->writer_count; i++) {
    writer *w = &s->writers[i];
    if (w->choice && (!last || comes_after(w, last))) last = w;
  }
  if (!last || s->running == 1) return false;
  choice *c = last->choice;
  rest(s, last);
  writer_empty(last);
  put(&s->waiting, c, true);
  s->counts.preempted++;
  return true;
}

/* Under the lock: the step's texts cannot go on. What is alone and finds no room has reached a length that the cache
 * does not have. */
static void fail_step(scheduler *s, rdna_status status) {
  s->counts.lost |= status == RDNA_DEVICE_LOST;
  for (int i = 0; i < s->part_count; i++) {
    writer *w = s->in_step[i];
    choice *c = w->choice;
    rest(s, w);
    writer_empty(w);
    if (status == RDNA_OUT_OF_MEMORY && c->token_count > 0)
      scheduler_finish(s, c, "length");
    else
      fail_choice(s, c, 500, rdna_last_error());
  }
}

static void note_cache(scheduler *s) {
  rdna_llm_cache_info info = {RDNA_LLM_CACHE_INFO_INIT};
  if (rdna_llm_cache_get_info(s->cache, &info) != RDNA_OK) return;
  s->counts.pages = info.pages;
  s->counts.free_pages = info.free_pages;
}

/* Under the lock, which it gives back while the model computes. */
static void step(scheduler *s) {
  const float *logits = NULL;
  compose(s);
  if (s->part_count == 0) return; /* all wait for pictures, which come one by one */
  scheduler_unlock(s);
  masks_begin(s);
  double begun = clock_seconds();
  uint64_t lost = rdna__file_lost_pages();
  rdna_status status = run_step(s, &logits);
  if (status == RDNA_OK && rdna__file_lost_pages() != lost)
    status = rdna__fail(RDNA_IO_ERROR, "a model's file was cut short while it was read");
  double ended = clock_seconds();
  masks_end(s);
  if (status == RDNA_OK) status = note_step(s);
  if (status == RDNA_OK && logits) {
    sampling_job j = {s, logits};
    rdna__parallel_for(s->part_count, 1, sample, &j);
  }
  scheduler_lock(s);
  note_cache(s);
  for (int i = 0; status == RDNA_OK && i < s->part_count; i++)
    s->counts.processed_tokens += (uint64_t)s->parts[i].count;
  s->counts.steps++;
  s->counts.step_seconds += ended - begun;
  if (status == RDNA_OK)
    show(s);
  else if (status != RDNA_OUT_OF_MEMORY || !make_room(s))
    fail_step(s, status);
  s->counts.other_seconds += clock_seconds() - ended;
}

/* Of the writers whose next tokens are of a picture that the tower has not seen, that which began first; NULL: none. */
static writer *find_unseen(scheduler *s) {
  writer *first = NULL;
  for (int i = 0; i < s->writer_count; i++) {
    writer *w = &s->writers[i];
    const rdna__shown *shown = left_of(w) > 1 ? picture_of(w) : NULL;
    if (shown && !shown->rows && (!first || w->since < first->since)) first = w;
  }
  return first;
}

/* Under the lock, which it gives back while the tower computes: one picture. */
static void look(scheduler *s, writer *w) {
  rdna__shown *shown = picture_of(w);
  double begun = clock_seconds();
  scheduler_unlock(s);
  rdna_status status = rdna__shown_see(shown, s->vision);
  scheduler_lock(s);
  s->counts.pictures++;
  s->counts.picture_seconds += clock_seconds() - begun;
  if (status == RDNA_OK) return;
  choice *c = w->choice;
  s->counts.lost |= status == RDNA_DEVICE_LOST;
  rest(s, w);
  fail_choice(s, c, 500, rdna_last_error());
}

static void *run(void *data) {
  scheduler *s = data;
  scheduler_lock(s);
  for (;;) {
    drop_cancelled(s);
    admit(s);
    bool worked = s->running > 0 || s->embedding.count > 0;
    writer *unseen = find_unseen(s);
    if (unseen) look(s, unseen); /* as many as steps: nobody waits for all of them */
    if (s->running > 0) step(s);
    if (s->embedding.count > 0) embedding_pass(s); /* one between two steps: neither waits for all of the other */
    if (worked || count_waiting(s) > 0) continue;
    pthread_cond_broadcast(&s->idle);
    if (s->leaving) break;
    pthread_cond_wait(&s->work, s->lock);
  }
  scheduler_unlock(s);
  return NULL;
}

/* ---- making one, and ending it ---- */

bool scheduler_drain(scheduler *s, double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)seconds;
  scheduler_lock(s);
  s->stopping = true;
  int error = 0;
  while (count_waiting(s) + s->running > 0 && error == 0) error = pthread_cond_timedwait(&s->idle, s->lock, &until);
  bool done = count_waiting(s) + s->running == 0;
  scheduler_unlock(s);
  return done;
}

scheduler_counts scheduler_get_counts(const scheduler *s) {
  scheduler_counts counts = s->counts;
  counts.waiting = count_waiting(s);
  counts.running = s->running;
  counts.idle = s->options.writers - s->running;
  return counts;
}

static rdna_status open_cache(scheduler *s) {
  const scheduler_options *o = &s->options;
  rdna_llm_cache_options options = {RDNA_LLM_CACHE_OPTIONS_INIT, .context = o->context, .sequences = o->writers,
                                    .batch = o->batch,           .logits = o->writers,  .kv_dtype = o->kv_dtype,
                                    .exact = o->exact,           .lanes = o->lanes,     .checkpoints = o->checkpoints};
  int model_context = rdna_llm_get_info(s->llm)->context;
  int context = o->context ? o->context : model_context < 4096 ? model_context : 4096;
  options.positions = o->positions ? o->positions : (int64_t)context * o->writers;
  options.states = 3 * o->writers + o->kept + o->checkpoints;
  RDNA_TRY(rdna_llm_cache_create(s->llm, &options, &s->cache));
  rdna_llm_cache_info info = {RDNA_LLM_CACHE_INFO_INIT};
  RDNA_TRY(rdna_llm_cache_get_info(s->cache, &info));
  s->counts.pages = s->counts.free_pages = info.pages;
  s->context = info.context;
  s->has_states = info.states > 0;
  /* what a sequence may lose between two checkpoints however long it is */
  s->interval = 2 * (size_t)info.context / (size_t)(o->checkpoints - 2) + 1;
  return RDNA_OK;
}

static void deinit(scheduler *s) {
  masks_close(s);
  embedding_close(s);
  rdna_llm_cache_release(s->cache);
  pthread_cond_destroy(&s->work);
  pthread_cond_destroy(&s->idle);
  free(s->writers);
  free(s->parts);
  free(s->in_step);
  free(s);
}

rdna_status scheduler_create(rdna_llm *llm, rdna_vision *vision, const rdna_tokenizer *tokenizer,
                             const scheduler_options *options, pthread_mutex_t *lock, scheduler **out_scheduler) {
  scheduler *s = calloc(1, sizeof *s);
  if (!s) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the scheduler");
  s->options = *options;
  if (options->kept < 0) s->options.kept = options->writers;
  s->writer_count = options->writers + s->options.kept;
  s->llm = llm;
  s->vision = vision;
  s->tokenizer = tokenizer;
  s->vocabulary = (size_t)rdna_llm_get_info(llm)->vocabulary;
  s->lock = lock;
  pthread_cond_init(&s->work, NULL);
  pthread_cond_init(&s->idle, NULL);
  s->writers = calloc((size_t)s->writer_count, sizeof *s->writers);
  s->parts = calloc((size_t)options->writers, sizeof(rdna_llm_part));
  s->in_step = calloc((size_t)options->writers, sizeof(writer *));
  rdna_status status = s->writers && s->parts && s->in_step
                           ? (rdna_llm_get_info(llm)->encoder ? embedding_open(s) : open_cache(s))
                           : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d writers", options->writers);
  if (status == RDNA_OK) status = masks_open(s);
  if (status == RDNA_OK && pthread_create(&s->thread, NULL, run, s) != 0)
    status = rdna__fail(RDNA_UNAVAILABLE, "the system starts no thread for the scheduler");
  if (status != RDNA_OK) {
    deinit(s);
    return status;
  }
  *out_scheduler = s;
  return RDNA_OK;
}

void scheduler_end(scheduler *s) {
  scheduler_lock(s);
  s->stopping = s->leaving = true;
  pthread_cond_signal(&s->work);
  scheduler_unlock(s);
  pthread_join(s->thread, NULL);
}

void scheduler_release(scheduler *s) {
  if (!s) return;
  for (int i = 0; i < s->writer_count; i++) {
    writer_empty(&s->writers[i]);
    rdna_tokens_deinit(&s->writers[i].held);
    bytes_deinit(&s->writers[i].addition.text);
  }
  deinit(s);
}
