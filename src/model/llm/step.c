/* Steps: tokens of many sequences go through the model in one pass.
 *
 * The numbers of a step (n tokens of s sequences, w logits wanted) are written to pinned memory and copied as one:
 *
 *     ids n | positions n | bases n | temperatures n | cache rows n | sequences n | starts s + 1 | slots s | wanted w |
 *     table s x stride, where pages do not follow one another */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "model/llm/cache.h"

enum {
  RECORDINGS = 3, /* that may fail in a row before there is no further one */
  OF_TOKEN = 6    /* numbers of a token */
};

/* What a step is, once its parts have been checked. */
typedef struct step {
  const rdna_llm_part *parts;
  int count; /* parts */
  int tokens, few, few_spans, few_most, wanted;
  bool in_order; /* the wanted tokens are the last ones, as their logits are to stand */
  bool alone;    /* each sequence has one token, and all logits are wanted: a step of decoding */
  int64_t length, few_length, stride;
} step;

/* Where the numbers of each kind begin, in words. */
typedef struct places {
  size_t ids, positions, bases, temperatures, rows, sequences, starts, slots, wanted, table, end;
} places;

static places places_of(size_t tokens, size_t spans, size_t wanted, size_t stride) {
  places p = {0, tokens, 2 * tokens, 3 * tokens, 4 * tokens, 5 * tokens, .starts = OF_TOKEN * tokens};
  p.slots = p.starts + spans + 1;
  p.wanted = p.slots + spans;
  p.table = p.wanted + wanted;
  p.end = p.table + spans * stride;
  return p;
}

size_t rdna__llm_step_words(const rdna_llm_cache *c) {
  return places_of((size_t)c->batch, (size_t)c->sequences, (size_t)c->logit_rows, (size_t)c->table_stride).end;
}

/* ---- what is asked ---- */

rdna_status rdna__llm_check_part(const rdna_llm_cache *c, const rdna_llm_part *part) {
  const rdna_llm_sequence *s = part->sequence;
  if (!s || s->cache != c) return rdna__fail(RDNA_INVALID_ARGUMENT, "a step with a sequence that is not of its cache");
  if (s->in_step) return rdna__fail(RDNA_INVALID_ARGUMENT, "a step that has one sequence twice");
  if (!part->tokens || part->count < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "evaluating %d tokens; at least 1", part->count);
  if (part->count > c->pass.context - s->position)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%d tokens after %d do not fit in a context of %d; shorten the prompt or "
                      "ask for a larger context",
                      part->count, s->position, (int)c->pass.context);
  if (part->logits < 0 || part->logits > part->count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the logits of %d of %d tokens", part->logits, part->count);
  if (c->llm->decoder.state_count && s->position > 0 && s->slot < 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the last call with this sequence failed; rewind or truncate it first");
  for (int i = 0; i < part->count; i++)
    if (part->tokens[i] < 0 || part->tokens[i] >= c->llm->info.vocabulary)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "token %d is id %d; the vocabulary has ids 0 to %d", i,
                        (int)part->tokens[i], c->llm->info.vocabulary - 1);
  return RDNA_OK;
}

/* Adds the parts up, and says which come first. */
static rdna_status take_parts(const rdna_llm_cache *c, step *of) {
  int64_t tokens = 0, wanted = 0;
  of->alone = true;
  for (int i = 0; i < of->count; i++) {
    const rdna_llm_part *part = &of->parts[i];
    RDNA_TRY(rdna__llm_check_part(c, part));
    part->sequence->in_step = true;
    tokens += part->count;
    wanted += part->logits;
    of->alone &= part->count == 1 && part->logits == 1;
    int end = part->sequence->position + part->count;
    of->length = end > of->length ? end : of->length;
    if (part->count > RDNA__LLM_FEW) continue;
    c->order[of->few_spans++] = i;
    of->few += part->count;
    of->few_most = part->count > of->few_most ? part->count : of->few_most;
    of->few_length = end > of->few_length ? end : of->few_length;
  }
  for (int i = 0, next = of->few_spans; i < of->count; i++)
    if (of->parts[i].count > RDNA__LLM_FEW) c->order[next++] = i;
  if (tokens > c->batch)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a step of %lld tokens; this cache was made for %d", (long long)tokens,
                      c->batch);
  if (wanted > c->logit_rows)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a step with the logits of %lld tokens; this cache was made for %d",
                      (long long)wanted, c->logit_rows);
  of->tokens = (int)tokens, of->wanted = (int)wanted;
  return RDNA_OK;
}

/* Pages and states for all parts, or none. */
static rdna_status take_room(rdna_llm_cache *c, const step *of) {
  int64_t pages = 0;
  for (int i = 0; i < of->count; i++) {
    RDNA_TRY(rdna__llm_own_states(of->parts[i].sequence));
    pages += rdna__llm_pages_wanted(of->parts[i].sequence, of->parts[i].count);
  }
  if (pages > c->free_pages)
    return rdna__fail(RDNA_OUT_OF_MEMORY,
                      "a step of %d tokens takes %lld more pages of %lld positions, and %lld of the cache's %lld are "
                      "free; release or truncate sequences",
                      of->tokens, (long long)pages, (long long)c->pass.page_rows, (long long)c->free_pages,
                      (long long)c->pass.pages);
  for (int i = 0; i < of->count; i++) RDNA_TRY(rdna__llm_grow(of->parts[i].sequence, of->parts[i].count));
  return RDNA_OK;
}

/* ---- the pass ---- */

/* A length that many steps share, so that they are the same work. */
static int64_t rounded_length(const rdna_llm_cache *c, int64_t length) {
  enum { SHORTEST = 128 };
  int64_t rounded = SHORTEST; /* 128, 192, 256, 384 … */
  while (rounded < length) rounded = rounded % 3 ? rounded / 2 * 3 : rounded / 3 * 4;
  return rounded < c->pass.context ? rounded : c->pass.context;
}

/* The spans, in the pass's order. */
static void place_spans(rdna_llm_cache *c, step *of, bool *out_paged) {
  int64_t rows = c->pass.page_rows, all = rows * c->pass.pages;
  int first = 0;
  if (of->alone) of->length = of->few_length = rounded_length(c, of->length);
  of->stride = (of->length + rows - 1) / rows;
  *out_paged = false;
  bool any_paged = false;
  for (int i = 0; i < of->count; i++) {
    const rdna_llm_part *part = &of->parts[c->order[i]];
    const rdna_llm_sequence *s = part->sequence;
    rdna__nn_span *span = &c->spans[i];
    span->first = first, span->count = part->count;
    span->length = of->alone ? of->length : s->position + part->count;
    span->base = s->in_row ? s->pages[0] * rows : -1;
    if (span->base >= 0 && span->base + span->length > all) span->length = all - span->base;
    first += part->count;
    any_paged |= span->base < 0;
    *out_paged |= span->base < 0 && i < of->few_spans;
  }
  if (!any_paged) of->stride = 0;
}

static float temperature_of(const rdna__nn_decoder *decoder, int position) {
  if (decoder->temperature_beta == 0) return 1;
  return (float)(1 + (double)decoder->temperature_beta * log(1 + position / decoder->temperature_after));
}

static void stage_tokens(const rdna_llm_cache *c, const step *of, const places *p) {
  int64_t rows = c->pass.page_rows;
  for (int i = 0; i < of->count; i++) {
    const rdna_llm_part *part = &of->parts[c->order[i]];
    const rdna_llm_sequence *s = part->sequence;
    const rdna__nn_span *span = &c->spans[i];
    for (int k = 0; k < part->count; k++) {
      size_t at = (size_t)(span->first + k);
      int position = s->position + k;
      float temperature = temperature_of(&c->llm->decoder, position);
      c->staging[p->ids + at] = part->tokens[k];
      c->staging[p->positions + at] = position;
      c->staging[p->bases + at] = span->base < 0 ? 0 : (int32_t)span->base;
      memcpy(&c->staging[p->temperatures + at], &temperature, sizeof temperature);
      c->staging[p->rows + at] = (int32_t)(s->pages[position / rows] * rows + position % rows);
      c->staging[p->sequences + at] = i;
    }
    c->staging[p->starts + (size_t)i] = span->first;
    c->staging[p->slots + (size_t)i] = s->slot;
    for (int64_t k = 0; k < of->stride; k++) /* what no token sees is page 0: any that there is */
      c->staging[p->table + (size_t)(i * of->stride + k)] = k < s->page_count ? s->pages[k] : 0;
  }
  c->staging[p->starts + (size_t)of->count] = of->tokens;
}

/* The tokens whose logits are wanted, in the order of the parts. */
static void stage_wanted(const rdna_llm_cache *c, step *of, const places *p) {
  int32_t *wanted = c->staging + p->wanted;
  int done = 0;
  of->in_order = true;
  for (int i = 0; i < of->count; i++) {
    const rdna__nn_span *span = c->spans;
    while (c->order[span - c->spans] != i) span++;
    for (int k = span->count - of->parts[i].logits; k < span->count; k++, done++) {
      wanted[done] = span->first + k;
      of->in_order &= wanted[done] == of->tokens - of->wanted + done;
    }
  }
}

static rdna_tensor words(const rdna_llm_cache *c, size_t place, int64_t count) {
  return rdna_tensor_contiguous(c->words + place, RDNA_I32, 1, &count);
}

/* What the staging buffer holds goes to the device, and the logits that are wanted to |logits|. */
static rdna_status queue_pass(rdna_llm_cache *c, const step *of, const places *p, bool paged, float *logits) {
  RDNA_TRY(rdna_copy_to_device(c->pass.stream, c->words, c->staging, p->end * sizeof *c->words));
  rdna__nn_pass pass = c->pass;
  pass.count = of->tokens, pass.length = of->length;
  pass.few = of->few, pass.few_spans = of->few_spans, pass.few_most = of->few_most, pass.few_length = of->few_length;
  pass.few_paged = paged;
  pass.type = of->tokens > RDNA__LLM_FEW ? c->half : RDNA_F32;
  pass.spans = c->spans, pass.span_count = of->count;
  pass.ids = words(c, p->ids, of->tokens), pass.positions = words(c, p->positions, of->tokens);
  pass.cache_base = words(c, p->bases, of->tokens), pass.cache_rows = words(c, p->rows, of->tokens);
  pass.sequence = words(c, p->sequences, of->tokens);
  pass.temperatures = rdna__nn_matrix(c->words + p->temperatures, of->tokens, 1);
  pass.starts = words(c, p->starts, of->count + 1), pass.slots = words(c, p->slots, of->count);
  if (!of->in_order) pass.wanted = words(c, p->wanted, of->wanted);
  pass.table = rdna_tensor_contiguous(c->words + p->table, RDNA_I32, 2, (int64_t[]){of->count, of->stride});
  for (int i = 0; i < of->count; i++) {
    rdna__nn_span *span = &c->spans[i];
    int64_t pages = (span->length + pass.page_rows - 1) / pass.page_rows;
    if (span->base < 0) span->pages = words(c, p->table + (size_t)(i * of->stride), pages);
  }
  RDNA_TRY(rdna__nn_decode(&pass, &c->llm->decoder, of->wanted, c->logits));
  if (of->wanted == 0) return RDNA_OK;
  return rdna_copy_to_host(c->pass.stream, logits, c->logits,
                           (size_t)of->wanted * (size_t)c->llm->info.vocabulary * sizeof(float));
}

static bool same_shape(const rdna__llm_shape *a, const rdna__llm_shape *b) {
  return a->length == b->length && a->table_stride == b->table_stride && a->tokens == b->tokens && a->paged == b->paged;
}

/* Records a step of single tokens. False: it cannot be, and nothing was queued. */
static bool record_step(rdna_llm_cache *c, const step *of, const places *p, const rdna__llm_shape *shape) {
  rdna_graph_release(c->recorded);
  c->recorded = NULL;
  rdna_status status = rdna_graph_begin(c->pass.stream);
  if (status == RDNA_OK) {
    rdna_status queued = queue_pass(c, of, p, shape->paged, c->pinned);
    status = rdna_graph_end(c->pass.stream, queued == RDNA_OK ? &c->recorded : NULL);
    if (queued != RDNA_OK) status = queued;
  }
  c->failed_recordings = status == RDNA_OK ? 0 : status == RDNA_UNSUPPORTED ? RECORDINGS : c->failed_recordings + 1;
  c->recorded_shape = *shape;
  if (status == RDNA_OK)
    rdna__log(RDNA__LOG_DEBUG, "steps of %d tokens below position %lld are replays of a graph", of->tokens,
              (long long)of->length);
  else
    rdna__log(RDNA__LOG_DEBUG, "steps of one token are queued kernel by kernel: %s", rdna_last_error());
  return status == RDNA_OK;
}

/* Decoding is hundreds of short kernels a token, and queueing them takes the host longer than the device to run them:
 * they are recorded once and replayed. The first step of a shape is run as it is, which loads its kernels.
 *
 * Attention by products has the rows of a sequence in its kernels' arguments, so it is recorded only where a cache is
 * one page. */
static rdna_status decode(rdna_llm_cache *c, const step *of, const places *p, bool paged) {
  rdna__llm_shape shape = {of->length, of->stride, of->tokens, paged};
  bool moves = rdna__nn_buffers_of(&c->llm->decoder).group > 0 && c->pass.pages > 1;
  if (moves) return queue_pass(c, of, p, paged, c->pinned);
  bool ready = c->recorded && same_shape(&c->recorded_shape, &shape);
  if (!ready && c->failed_recordings < RECORDINGS && same_shape(&c->run_shape, &shape))
    ready = record_step(c, of, p, &shape);
  if (ready) return rdna_graph_launch(c->recorded, c->pass.stream);
  c->run_shape = shape;
  return queue_pass(c, of, p, paged, c->pinned);
}

static rdna_status run(rdna_llm_cache *c, step *of, float *direct, const float **out_logits) {
  bool paged;
  place_spans(c, of, &paged);
  places p = places_of((size_t)of->tokens, (size_t)of->count, (size_t)of->wanted, (size_t)of->stride);
  stage_tokens(c, of, &p);
  stage_wanted(c, of, &p);
  float *to = of->wanted <= c->pinned_rows ? c->pinned : direct;
  rdna_status status =
      of->alone && of->in_order && to == c->pinned ? decode(c, of, &p, paged) : queue_pass(c, of, &p, paged, to);
  rdna_status waited = rdna_stream_synchronize(c->pass.stream); /* the staging buffer is free again */
  if (status == RDNA_OK) status = waited;
  *out_logits = of->wanted > 0 ? to : NULL;
  return status;
}

rdna_status rdna__llm_step(rdna_llm_cache *c, const rdna_llm_part *parts, int count, float *direct,
                           const float **out_logits) {
  if (count > c->sequences)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a step of %d sequences; this cache was made for %d", count, c->sequences);
  step of = {.parts = parts, .count = count};
  rdna_status status = take_parts(c, &of);
  for (int i = 0; i < count; i++)
    if (parts[i].sequence) parts[i].sequence->in_step = false;
  RDNA_TRY(status);
  RDNA_TRY(take_room(c, &of));
  status = run(c, &of, direct, out_logits);
  for (int i = 0; i < count; i++) {
    rdna_llm_sequence *s = parts[i].sequence;
    if (status == RDNA_OK) {
      s->position += parts[i].count;
    } else { /* nobody knows what the states stand for */
      rdna__llm_drop_slot(c, s->slot);
      s->slot = -1;
    }
  }
  return status;
}

rdna_status rdna_llm_step(rdna_llm_cache *cache, const rdna_llm_part *parts, int count, const float **out_logits) {
  if (!cache || !parts || count < 1 || !out_logits)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_llm_step needs a cache, at least one part and a place for the logits");
  return rdna__llm_step(cache, parts, count, NULL, out_logits);
}
