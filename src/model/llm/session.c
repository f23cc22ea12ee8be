/* Sessions: one sequence in a cache of its own, of one page, fed in passes of many tokens or steps of one. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "model/llm/cache.h"

enum { MOST_LOGITS = 64, OF_PICTURE = -1 /* in the history, in place of a token */ };

struct rdna_llm_session {
  rdna_llm_cache *cache;
  rdna_llm_sequence *sequence;
  /* Of models with recurrent layers, whose states cannot be taken back: what lies between a checkpoint and the place
   * that a session is rewound to is read again. */
  int32_t *history; /* (context): the tokens so far */
  bool read_last;   /* the last call had several tokens */
};

rdna_status rdna_llm_session_create(rdna_llm *llm, const rdna_llm_session_options *options,
                                    rdna_llm_session **out_session) {
  if (!llm || !out_session)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_session_create needs a model and a place for the session");
  rdna_llm_session_options chosen = {RDNA_LLM_SESSION_OPTIONS_INIT, .kv_dtype = RDNA_F16};
  if (options) RDNA_TRY(RDNA__OPTIONS("rdna_llm_session_create", "options", options, &chosen));
  rdna_llm_cache_options of_cache = {RDNA_LLM_CACHE_OPTIONS_INIT,
                                     .context = chosen.context,
                                     .sequences = 1,
                                     .batch = chosen.batch,
                                     .logits = MOST_LOGITS,
                                     .page = RDNA__LLM_ONE_PAGE,
                                     .states = RDNA__LLM_CHECKPOINTS + 1,
                                     .kv_dtype = chosen.kv_dtype,
                                     .exact = chosen.exact};
  rdna_llm_session *s = calloc(1, sizeof *s);
  if (!s) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a session");
  rdna_status status = rdna__llm_cache_create(llm, "a session", of_cache, 1, &s->cache);
  if (status == RDNA_OK) status = rdna_llm_sequence_create(s->cache, &s->sequence);
  if (status == RDNA_OK && rdna__llm_has_states(llm)) {
    s->history = calloc((size_t)s->cache->pass.context, sizeof *s->history);
    if (!s->history) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a session's tokens");
  }
  if (status != RDNA_OK) {
    rdna_llm_session_release(s);
    return status;
  }
  *out_session = s;
  return RDNA_OK;
}

void rdna_llm_session_release(rdna_llm_session *s) {
  if (!s) return;
  rdna_llm_sequence_release(s->sequence);
  rdna_llm_cache_release(s->cache);
  free(s->history);
  free(s);
}

int rdna_llm_session_position(const rdna_llm_session *session) { return session->sequence->position; }
int rdna_llm_session_context(const rdna_llm_session *session) { return (int)session->cache->pass.context; }

rdna_llm_cache *rdna__llm_session_cache(const rdna_llm_session *session) { return session->cache; }
void rdna__llm_session_pretend(rdna_llm_session *session, int position) { session->sequence->position = position; }

rdna_status rdna_llm_session_adapt(rdna_llm_session *session, const rdna_llm_adapter_use *uses, int count) {
  if (!session) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_session_adapt needs a session and its adapters");
  return rdna_llm_sequence_adapt(session->sequence, uses, count);
}

/* One pass over at most |batch| tokens; the logits of the last |rows| of them go to |logits| (rows, vocabulary). */
static rdna_status pass(rdna_llm_session *s, const int32_t *tokens, int count, int rows, float *logits) {
  rdna_llm_part part = {.sequence = s->sequence, .tokens = tokens, .count = count, .logits = rows};
  const float *pinned;
  RDNA_TRY(rdna__llm_step(s->cache, &part, 1, logits, &pinned));
  size_t bytes = (size_t)rows * (size_t)s->cache->llm->info.vocabulary * sizeof *logits;
  if (rows > 0 && pinned != logits) memcpy(logits, pinned, bytes);
  return RDNA_OK;
}

rdna_status rdna_llm_session_rewind(rdna_llm_session *session, int position) {
  rdna_llm_sequence *s = session->sequence;
  if (position < 0 || position > s->position)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rewinding to position %d of a session with %d tokens", position,
                      s->position);
  const int reach = rdna_llm_sequence_reach(s, position);
  for (int i = reach; i < position; i++)
    if (session->history[i] < 0)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "rewinding to position %d, for which the picture at %d would be read again: the last place to "
                        "come back to before it is %d",
                        position, i, reach);
  RDNA_TRY(rdna_llm_sequence_truncate(s, position));
  while (s->position < position) { /* what lies between the checkpoint and that place is read again */
    int left = position - s->position, part = left < session->cache->batch ? left : session->cache->batch;
    RDNA_TRY(pass(session, session->history + s->position, part, 0, NULL));
  }
  return RDNA_OK;
}

/* Places to come back to: where a prompt begins, and where what the model writes does. */
static rdna_status keep_history(rdna_llm_session *s, const int32_t *tokens, int count) {
  if (!rdna__llm_has_states(s->cache->llm)) return RDNA_OK;
  if (count > 1 || s->read_last) RDNA_TRY(rdna_llm_sequence_checkpoint(s->sequence));
  s->read_last = count > 1;
  memcpy(s->history + s->sequence->position, tokens, (size_t)count * sizeof *tokens);
  return RDNA_OK;
}

/* In passes of as many tokens as fit: the logits of the last token, or of |every| one, row by row. */
static rdna_status eval(rdna_llm_session *session, const int32_t *tokens, int count, bool every, float *logits) {
  rdna_llm_cache *cache = session->cache;
  rdna_llm_part whole = {.sequence = session->sequence, .tokens = tokens, .count = count, .logits = 1};
  RDNA_TRY(rdna__llm_check_part(cache, &whole));
  if (!logits) return rdna__fail(RDNA_INVALID_ARGUMENT, "evaluating without a place for the logits");
  RDNA_TRY(keep_history(session, tokens, count));
  int most = every ? cache->logit_rows : cache->batch;
  for (int done = 0; done < count;) {
    int part = count - done < most ? count - done : most, rows = every ? part : done + part == count;
    RDNA_TRY(pass(session, tokens + done, part, rows, logits));
    done += part;
    if (every) logits += (size_t)part * (size_t)cache->llm->info.vocabulary;
  }
  return RDNA_OK;
}

rdna_status rdna_llm_session_see(rdna_llm_session *session, const rdna_llm_picture *picture) {
  if (!session || !picture)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_session_see needs a session and a picture");
  rdna_llm_cache *cache = session->cache;
  int64_t all = (int64_t)picture->height * picture->width;
  rdna_llm_part part = {
      .sequence = session->sequence, .picture = picture, .count = all < INT32_MAX ? (int32_t)all : INT32_MAX};
  RDNA_TRY(rdna__llm_check_part(cache, &part));
  if (cache->llm->info.whole_pictures && part.count > cache->batch)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "a picture of %d tokens is read in one pass, and those have %d; ask for more", part.count,
                      cache->batch);
  if (rdna__llm_has_states(cache->llm)) { /* what is before it and the text behind it begin at places to come back to */
    RDNA_TRY(rdna_llm_sequence_checkpoint(session->sequence));
    for (int64_t i = 0; i < all; i++) session->history[session->sequence->position + i] = OF_PICTURE;
    session->read_last = true;
  }
  for (const float *none; part.first < all; part.first += part.count) {
    int left = (int)all - part.first;
    part.count = left < cache->batch ? left : cache->batch;
    RDNA_TRY(rdna__llm_step(cache, &part, 1, NULL, &none));
  }
  return RDNA_OK;
}

rdna_status rdna_llm_session_eval(rdna_llm_session *session, const int32_t *tokens, int count, float *logits) {
  return eval(session, tokens, count, false, logits);
}

rdna_status rdna_llm_session_eval_all(rdna_llm_session *session, const int32_t *tokens, int count, float *logits) {
  return eval(session, tokens, count, true, logits);
}
