/* Chooses the writer for a text: the one whose sequence shares the longest beginning with its prompt, if any does. */
#include <string.h>

#include "server/scheduler_state.h"

void writer_empty(writer *w) {
  rdna_llm_sequence_release(w->sequence);
  w->sequence = NULL;
  w->held.count = 0;
}

static bool has_same_adapters(const writer *w, const settings *s) {
  if (w->adapter_count != s->adapter_count) return false;
  for (int i = 0; i < w->adapter_count; i++)
    if (w->adapters[i].adapter != s->adapters[i].adapter || w->adapters[i].scale != s->adapters[i].scale) return false;
  return true;
}

/* How many tokens of |c|'s history need not be computed with what the writer holds, if it was read with the same
 * adapters; the last one always is, for its logits. */
static size_t common_with(const writer *w, const choice *c) {
  const rdna_tokens *history = &c->history;
  size_t n = 0;
  if (!has_same_adapters(w, &c->job->settings)) return 0;
  while (n < w->held.count && n + 1 < history->count && w->held.ids[n] == history->ids[n]) n++;
  return w->sequence ? (size_t)rdna_llm_sequence_reach(w->sequence, (int)n) : 0;
}

/* An idle writer without a sequence, or else that which has been idle for the longest; |with_sequence|: of those that
 * have one, other than |kept|. */
static writer *find_idle(scheduler *s, bool with_sequence, const writer *kept) {
  writer *oldest = NULL;
  for (int i = 0; i < s->writer_count; i++) {
    writer *w = &s->writers[i];
    if (w->choice || (with_sequence && (!w->sequence || w == kept))) continue;
    if (!oldest || (oldest->sequence && (!w->sequence || w->since < oldest->since))) oldest = w;
  }
  return oldest;
}

bool writers_evict(scheduler *s, const writer *kept) {
  writer *oldest = find_idle(s, true, kept);
  if (oldest) writer_empty(oldest);
  return oldest != NULL;
}

/* Whether the cache has pages for |count| more tokens, beside what the texts that are being written have yet to read
 * and one more page for each of them. */
static bool has_room(const scheduler *s, size_t count) {
  rdna_llm_cache_info info = {RDNA_LLM_CACHE_INFO_INIT};
  if (rdna_llm_cache_get_info(s->cache, &info) != RDNA_OK) return false;
  size_t page = (size_t)info.page, wanted = count / page + 2;
  for (int i = 0; i < s->writer_count; i++) {
    const writer *w = &s->writers[i];
    if (w->choice) wanted += (w->choice->history.count - w->held.count) / page + 1;
  }
  return (size_t)info.free_pages >= wanted;
}

/* Whoever holds the most of |c|'s history. */
static writer *find_source(scheduler *s, const choice *c, size_t *out_common) {
  writer *best = NULL;
  *out_common = 0;
  for (int i = 0; i < s->writer_count; i++) {
    size_t common = common_with(&s->writers[i], c);
    if (common <= *out_common) continue;
    *out_common = common;
    best = &s->writers[i];
  }
  return best;
}

/* Whether another text of the same prompt is reading it, so that waiting for it saves reading it again. */
static bool is_being_read(const scheduler *s, const choice *c) {
  for (int i = 0; i < s->writer_count; i++) {
    const writer *w = &s->writers[i];
    if (w->choice && w->choice->prompt == c->prompt && w->held.count < c->prompt->count) return true;
  }
  return false;
}

/* Copies what |target| now holds of |history|. */
static bool note_held(writer *target, const rdna_tokens *history) {
  size_t count = (size_t)rdna_llm_sequence_position(target->sequence);
  target->held.count = 0;
  for (size_t i = 0; i < count; i++)
    if (rdna_tokens_append(&target->held, history->ids[i]) != RDNA_OK) return false;
  return true;
}

/* A sequence for |target| that begins as |source|'s does. Whatever fails, it begins with nothing. */
static void take_over(writer *target, writer *source, size_t common, const rdna_tokens *history) {
  rdna_status status = RDNA_OK;
  if (source == target) {
    status = rdna_llm_sequence_truncate(target->sequence, (int)common);
  } else {
    writer_empty(target);
    if (source) status = rdna_llm_sequence_fork(source->sequence, (int)common, &target->sequence);
  }
  if (status != RDNA_OK || (target->sequence && !note_held(target, history))) writer_empty(target);
}

bool writers_admit(scheduler *s, choice *c) {
  size_t common;
  if (s->running == s->options.writers || is_being_read(s, c)) return false;
  writer *source = find_source(s, c, &common);
  bool room;
  do room = has_room(s, c->history.count - common);
  while (!room && writers_evict(s, source));
  if (!room && s->running > 0) return false;
  writer *target = find_idle(s, false, NULL);
  /* An idle writer whose prompt goes on is taken as it is, and so is, where every writer holds something, one that
   * loses no more of its prompt than what asks for an answer. Any other keeps what it has and lends its pages. */
  size_t lost = target->sequence ? LAST_TOKENS : 1;
  if (source && !source->choice && common + lost >= source->prompt) target = source;
  take_over(target, source, common, &c->history);
  const settings *how = &c->job->settings;
  memcpy(target->adapters, how->adapters, sizeof target->adapters);
  target->adapter_count = how->adapter_count;
  target->choice = c;
  target->prompt = c->prompt->count;
  target->since = ++s->now;
  if (c->cached_tokens < 0) c->cached_tokens = (int)target->held.count;
  return true;
}
