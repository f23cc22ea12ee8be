/* Steps: tokens of many sequences go through the model in one pass.
 *
 * The numbers of a step (n tokens of s sequences, w logits wanted) are written to pinned memory and copied as one:
 *
 *     ids n | positions n | bases n | temperatures n | cache rows n | sequences n | types n | turns n | rows n |
 *     columns n | starts s + 1 | slots s | wanted w | table s x stride, where pages do not follow one another |
 *     scales of adapters n | and of the tokens whose logits are computed, for each adapter that a sequence has */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "model/llm/cache.h"

enum {
  RECORDINGS = 3, /* so many failures in a row, and none is tried again */
  OF_TOKEN = 10   /* words that each token has: ids to columns, above */
};

/* A pass over some parts of a step, or all. With lanes (rdna_llm_cache_options) it has as many places for tokens as
 * there are lanes, and those that no part fills are empty. */
typedef struct step {
  const rdna_llm_part *parts;
  int count;             /* parts */
  int tokens, few_spans; /* tokens of the parts; parts that have few */
  int few, few_most, wanted;
  int places;    /* for tokens; without lanes as many as |tokens| */
  int sequences; /* the parts', and with lanes some without tokens or state for empty places */
  bool in_order; /* wanted logits are of the last tokens, or with lanes the first: none is to be gathered */
  bool alone;    /* each sequence has one token, and all logits are wanted: a step of decoding */
  int64_t length, few_length, stride;
  uint32_t adapters; /* of the cache's, a bit for each that a part has */
  int adapter_count;
} step;

/* Where the numbers of each kind begin, in words. */
typedef struct places {
  size_t ids, positions, bases, temperatures, rows, sequences, types, turns, down, right, starts, slots, wanted, table,
      scales, wanted_scales, end;
} places;

static places places_of(size_t tokens, size_t spans, size_t wanted, size_t stride, size_t adapters) {
  places p = {0,
              tokens,
              2 * tokens,
              3 * tokens,
              4 * tokens,
              5 * tokens,
              6 * tokens,
              7 * tokens,
              8 * tokens,
              9 * tokens,
              .starts = OF_TOKEN * tokens};
  p.slots = p.starts + spans + 1;
  p.wanted = p.slots + spans;
  p.table = p.wanted + wanted;
  p.scales = p.table + spans * stride;
  p.wanted_scales = p.scales + adapters * tokens;
  p.end = p.wanted_scales + adapters * wanted;
  return p;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

size_t rdna__llm_step_words(const rdna_llm_cache *c) {
  size_t spans = larger((size_t)c->sequences, c->lanes ? (size_t)c->lanes + 1 : 0);
  return places_of((size_t)c->batch, spans, (size_t)c->logit_rows, (size_t)c->table_stride, RDNA_LLM_MOST_ADAPTERS).end;
}

/* ---- what is asked ---- */

static rdna_status check_picture(const rdna_llm_cache *c, const rdna_llm_part *part) {
  const rdna_llm_picture *picture = part->picture;
  const rdna_llm *llm = c->llm;
  if (llm->info.encoder || llm->decoder.injected > 0)
    return rdna__fail(RDNA_UNSUPPORTED, "a %s is given a picture; this library has none of these models that sees",
                      llm->info.architecture);
  int64_t all = (int64_t)picture->height * picture->width, end = (int64_t)part->first + part->count;
  if (!picture->rows || picture->height < 1 || picture->width < 1 || part->first < 0 || end > all)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d tokens from %d on of a picture of %d x %d", part->count, part->first,
                      picture->height, picture->width);
  if (!llm->info.whole_pictures || end == all) return RDNA_OK;
  return rdna__fail(
      RDNA_INVALID_ARGUMENT,
      "tokens %d to %lld of a picture of %lld: its tokens see each other, and are read to its end at once", part->first,
      (long long)end - 1, (long long)all);
}

static rdna_status check_filling(const rdna_llm *llm, const rdna_llm_part *part) {
  if (part->filling < 0 || part->filling >= part->count || part->picture)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d of %d tokens fill a text up; not all do, and none of a picture",
                      part->filling, part->count);
  bool other = llm->info.encoder || rdna__llm_has_states(llm) || llm->config.window > 0;
  if (!other && !llm->decoder.position_embedding.data) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "a text of a %s is filled up with tokens that nobody sees, as is known of models whose layers are "
                    "attention over all that is before, with rotary positions, alone",
                    llm->info.architecture);
}

rdna_status rdna__llm_check_part(const rdna_llm_cache *c, const rdna_llm_part *part) {
  const rdna_llm_sequence *s = part->sequence;
  if (!s || s->cache != c) return rdna__fail(RDNA_INVALID_ARGUMENT, "a step with a sequence that is not of its cache");
  if (s->in_step) return rdna__fail(RDNA_INVALID_ARGUMENT, "a step that has one sequence twice");
  if ((!part->tokens && !part->picture) || part->count < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "evaluating %d tokens; at least 1", part->count);
  if (part->count > c->pass.context - s->position)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%d tokens after %d do not fit in a context of %d; shorten the prompt or "
                      "ask for a larger context",
                      part->count, s->position, (int)c->pass.context);
  if (c->llm->info.encoder && s->position > 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "an encoder reads a text in one step; this one has %d tokens already",
                      s->position);
  if (part->logits < 0 || part->logits > part->count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the logits of %d of %d tokens", part->logits, part->count);
  if (rdna__llm_has_states(c->llm) && s->position > 0 && s->slot < 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the last call with this sequence failed; rewind or truncate it first");
  if (part->filling) RDNA_TRY(check_filling(c->llm, part));
  if (part->picture) return check_picture(c, part);
  for (int i = 0; i < part->count; i++)
    if (part->tokens[i] < 0 || part->tokens[i] >= c->llm->info.vocabulary)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "token %d is id %d; the vocabulary has ids 0 to %d", i,
                        (int)part->tokens[i], c->llm->info.vocabulary - 1);
  return RDNA_OK;
}

static rdna_status check_parts(const rdna_llm_cache *c, const rdna_llm_part *parts, int count) {
  int64_t tokens = 0, wanted = 0;
  for (int i = 0; i < count; i++) {
    RDNA_TRY(rdna__llm_check_part(c, &parts[i]));
    parts[i].sequence->in_step = true;
    tokens += parts[i].count;
    wanted += parts[i].logits;
  }
  if (tokens > c->batch)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a step of %lld tokens; this cache was made for %d", (long long)tokens,
                      c->batch);
  if (wanted > c->logit_rows)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a step with the logits of %lld tokens; this cache was made for %d",
                      (long long)wanted, c->logit_rows);
  return RDNA_OK;
}

/* Whether it is read with others in one call of attention. */
static bool is_few(const rdna_llm_part *part) {
  return part->count <= RDNA__LLM_FEW && !part->picture && !part->filling;
}

/* Counts what the parts of a pass have, and orders them: those with few tokens first. */
static void take_parts(const rdna_llm_cache *c, step *of) {
  of->alone = !c->llm->info.encoder; /* what texts are made of takes memory, which no recording has */
  for (int i = 0; i < of->count; i++) {
    const rdna_llm_part *part = &of->parts[i];
    of->tokens += part->count;
    of->wanted += part->logits;
    of->alone &= part->count == 1 && part->logits == 1 && !part->picture;
    for (int k = 0; k < c->adapter_count; k++)
      if (part->sequence->adapter_scales[k] != 0) of->adapters |= UINT32_C(1) << k;
    int end = part->sequence->position + part->count;
    of->length = end > of->length ? end : of->length;
    if (!is_few(part)) continue;
    c->order[of->few_spans++] = i;
    of->few += part->count;
    of->few_most = part->count > of->few_most ? part->count : of->few_most;
    of->few_length = end > of->few_length ? end : of->few_length;
  }
  for (int i = 0, next = of->few_spans; i < of->count; i++)
    if (!is_few(&of->parts[i])) c->order[next++] = i;
  of->adapter_count = __builtin_popcount(of->adapters);
  of->places = of->tokens, of->sequences = of->count;
  if (c->lanes && of->few > 0) of->places = of->few = c->lanes, of->sequences = c->lanes + 1;
}

/* Gives every sequence of a step pages and a state for its tokens; or, where that fails, none. */
static rdna_status take_room(rdna_llm_cache *c, const rdna_llm_part *parts, int count) {
  int64_t pages = 0;
  for (int i = 0; i < count; i++) {
    RDNA_TRY(rdna__llm_own_states(parts[i].sequence));
    pages += rdna__llm_pages_wanted(parts[i].sequence, parts[i].count);
  }
  if (pages > c->free_pages)
    return rdna__fail(
        RDNA_OUT_OF_MEMORY,
        "a step of %d sequences takes %lld more pages of %lld positions, and %lld of the cache's %lld are "
        "free; release or truncate sequences",
        count, (long long)pages, (long long)c->pass.page_rows, (long long)c->free_pages, (long long)c->pass.pages);
  for (int i = 0; i < count; i++) {
    if (parts[i].picture) RDNA_TRY(rdna__llm_room_to_see(parts[i].sequence));
    RDNA_TRY(rdna__llm_grow(parts[i].sequence, parts[i].count));
  }
  return RDNA_OK;
}

/* ---- the pass ---- */

/* |length| rounded up, so that a recording made at one length also serves the next ones. */
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
  if (of->alone || (c->lanes && of->few > 0)) of->length = of->few_length = rounded_length(c, of->length);
  of->stride = (of->length + rows - 1) / rows;
  *out_paged = false;
  bool any_paged = false;
  for (int i = 0; i < of->count; i++) {
    const rdna_llm_part *part = &of->parts[c->order[i]];
    const rdna_llm_sequence *s = part->sequence;
    rdna__nn_span *span = &c->spans[i];
    span->first = first, span->count = part->count;
    span->length = s->position + part->count;
    span->filling = part->filling;
    span->rows = NULL;
    if (part->picture) {
      span->rows = part->picture->rows + (size_t)part->first * (size_t)c->llm->info.width;
      span->of_picture = (int64_t)part->picture->height * part->picture->width;
    }
    span->both_ways = part->picture && c->llm->decoder.whole_pictures;
    if (c->lanes && is_few(part))
      span->length = rounded_length(c, span->length);
    else if (of->alone)
      span->length = of->length;
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

/* Whether pictures count for their longer side alone, in the turns of RoPE. */
static bool turns_in_pictures(const rdna_llm_cache *c) { return c->llm->rotations[0].row_freq.data != NULL; }

/* By what the tokens of a part turn: their position, less what pictures count less; those of a picture by that of its
 * first token, and besides by their row and column. */
static void stage_turns(const rdna_llm_cache *c, const rdna_llm_part *part, size_t at, const places *p) {
  const rdna_llm_sequence *s = part->sequence;
  bool in_picture = part->picture && turns_in_pictures(c);
  int less = rdna__llm_turned_less(s, s->position), first = s->position - less - (in_picture ? part->first : 0);
  for (int k = 0; k < part->count; k++, at++) {
    int index = part->first + k;
    c->staging[p->turns + at] = in_picture ? first : first + k;
    c->staging[p->down + at] = in_picture ? index / part->picture->width : 0;
    c->staging[p->right + at] = in_picture ? index % part->picture->width : 0;
  }
}

/* Notes that a picture was read to its end: what follows turns as if it were as long as its longer side. */
static void note_picture(const rdna_llm_cache *c, const rdna_llm_part *part) {
  rdna_llm_sequence *s = part->sequence;
  const rdna_llm_picture *picture = part->picture;
  if (!picture || !turns_in_pictures(c)) return;
  int all = picture->height * picture->width,
      side = picture->height > picture->width ? picture->height : picture->width;
  if (part->first + part->count < all) return;
  int less = rdna__llm_turned_less(s, s->position) + all - side;
  s->seen[s->seen_count++] = (rdna__llm_seen){s->position, less};
}

static void stage_tokens(const rdna_llm_cache *c, const step *of, const places *p) {
  int64_t rows = c->pass.page_rows;
  for (int i = 0; i < of->count; i++) {
    const rdna_llm_part *part = &of->parts[c->order[i]];
    const rdna_llm_sequence *s = part->sequence;
    const rdna__nn_span *span = &c->spans[i];
    int seeing = part->count - part->filling; /* tokens that see themselves */
    for (int k = 0; k < part->count; k++) {
      size_t at = (size_t)(span->first + k);
      int position = s->position + k;
      float temperature = temperature_of(&c->llm->decoder, position);
      c->staging[p->ids + at] = part->picture ? 0 : part->tokens[k];
      c->staging[p->positions + at] = k < seeing ? position : s->position + seeing - 1;
      c->staging[p->bases + at] = span->base < 0 ? 0 : (int32_t)span->base;
      memcpy(&c->staging[p->temperatures + at], &temperature, sizeof temperature);
      c->staging[p->rows + at] = (int32_t)(s->pages[position / rows] * rows + position % rows);
      c->staging[p->sequences + at] = i;
      c->staging[p->types + at] = s->second > 0 && position >= s->second;
    }
    stage_turns(c, part, (size_t)span->first, p);
    c->staging[p->starts + (size_t)i] = span->first;
    c->staging[p->slots + (size_t)i] = s->slot;
    for (int64_t k = 0; k < of->stride; k++) /* what no token sees is page 0: any that there is */
      c->staging[p->table + (size_t)(i * of->stride + k)] = k < s->page_count ? s->pages[k] : 0;
  }
  c->staging[p->starts + (size_t)of->count] = of->tokens;
}

/* Fills empty places with tokens that attend to nothing and are written to no cache. */
static void stage_empty_places(const rdna_llm_cache *c, const step *of, const places *p) {
  const float one = 1;
  for (size_t at = (size_t)of->tokens; at < (size_t)of->places; at++) {
    c->staging[p->ids + at] = c->staging[p->bases + at] = c->staging[p->sequences + at] = 0;
    c->staging[p->types + at] = 0;
    c->staging[p->positions + at] = c->staging[p->rows + at] = c->staging[p->turns + at] = -1;
    c->staging[p->down + at] = c->staging[p->right + at] = 0;
    memcpy(&c->staging[p->temperatures + at], &one, sizeof one);
  }
  for (size_t i = (size_t)of->count; i < (size_t)of->sequences; i++) {
    c->staging[p->slots + i] = -1;
    c->staging[p->starts + i + 1] = of->places;
    for (size_t k = 0; k < (size_t)of->stride; k++) c->staging[p->table + i * (size_t)of->stride + k] = 0;
  }
}

/* How many rows of logits the pass computes. */
static int rows_of(const rdna_llm_cache *c, const step *of) {
  return c->lanes && of->few > 0 && of->wanted > 0 ? of->places : of->wanted;
}

/* The tokens whose logits are wanted, in the order of the parts; with lanes as many as there are places. */
static void stage_wanted(const rdna_llm_cache *c, step *of, const places *p) {
  int32_t *wanted = c->staging + p->wanted;
  int done = 0, first = of->places > of->tokens || rows_of(c, of) > of->wanted ? 0 : of->tokens - of->wanted;
  of->in_order = true;
  for (int i = 0; i < of->count; i++) {
    const rdna__nn_span *span = c->spans;
    while (c->order[span - c->spans] != i) span++;
    for (int k = span->count - of->parts[i].logits; k < span->count; k++, done++) {
      wanted[done] = span->first + k;
      of->in_order &= wanted[done] == first + done;
    }
  }
  for (; done < rows_of(c, of); done++) wanted[done] = 0;
}

/* The scales of each adapter for each token, and for each whose logits are computed; those of empty places are 0. */
static void stage_scales(const rdna_llm_cache *c, const step *of, const places *p) {
  size_t tokens = (size_t)of->places, rows = (size_t)rows_of(c, of), at = 0;
  float *scales = (float *)(c->staging + p->scales), *wanted = (float *)(c->staging + p->wanted_scales);
  memset(scales, 0, (size_t)of->adapter_count * tokens * sizeof *scales);
  for (int k = 0; k < c->adapter_count; k++) {
    if (!(of->adapters >> k & 1)) continue;
    for (int i = 0; i < of->count; i++) {
      const rdna__nn_span *span = &c->spans[i];
      float scale = of->parts[c->order[i]].sequence->adapter_scales[k];
      for (int t = 0; t < span->count; t++) scales[at * tokens + (size_t)(span->first + t)] = scale;
    }
    for (size_t i = 0; i < rows; i++) wanted[at * rows + i] = scales[at * tokens + (size_t)c->staging[p->wanted + i]];
    at++;
  }
}

static rdna_tensor words(const rdna_llm_cache *c, size_t place, int64_t count) {
  return rdna_tensor_contiguous(c->words + place, RDNA_I32, 1, &count);
}

/* Copies what the host's layers computed to the device. */
static rdna_status queue_carried(rdna_llm_cache *c, int64_t tokens) {
  int64_t x = tokens * c->llm->decoder.width, injected = rdna__llm_carried_values(c) * tokens - x;
  RDNA_TRY(rdna_copy_to_device(c->pass.stream, c->pass.x, c->carried, (size_t)x * sizeof *c->carried));
  if (injected == 0) return RDNA_OK;
  return rdna_copy_to_device(c->pass.stream, c->pass.injected, c->carried + x, (size_t)injected * sizeof *c->carried);
}

/* The adapters of a step, in the pass; |list| has room for all. */
static void set_adapters(const rdna_llm_cache *c, const step *of, const places *p, const rdna__nn_adapter **list,
                         rdna__nn_pass *pass) {
  for (int k = 0, at = 0; k < c->adapter_count; k++)
    if (of->adapters >> k & 1) list[at++] = &c->adapters[k]->matrices;
  pass->adapters = list, pass->adapter_count = of->adapter_count;
  pass->adapter_scales = rdna__nn_matrix(c->words + p->scales, of->adapter_count, of->places);
  pass->wanted_scales = rdna__nn_matrix(c->words + p->wanted_scales, of->adapter_count, rows_of(c, of));
}

/* Copies the staging buffer to the device and queues the pass, which writes the wanted logits to c->logits. */
static rdna_status queue_pass(rdna_llm_cache *c, const step *of, const places *p, bool paged) {
  RDNA_TRY(rdna_copy_to_device(c->pass.stream, c->words, c->staging, p->end * sizeof *c->words));
  if (c->below) RDNA_TRY(queue_carried(c, of->places));
  rdna__nn_pass pass = c->pass;
  const rdna__nn_adapter *adapters[RDNA_LLM_MOST_ADAPTERS];
  set_adapters(c, of, p, adapters, &pass);
  pass.count = of->places, pass.length = of->length;
  pass.few = of->few, pass.few_spans = of->few_spans, pass.few_most = of->few_most, pass.few_length = of->few_length;
  pass.few_paged = paged;
  pass.type = of->places > 1 ? c->half : RDNA_F32; /* a token alone is a vector, which no matrix unit wants */
  pass.spans = c->spans, pass.span_count = of->count;
  pass.ids = words(c, p->ids, of->places), pass.positions = words(c, p->positions, of->places);
  pass.turns = words(c, p->turns, of->places);
  pass.rows = words(c, p->down, of->places), pass.columns = words(c, p->right, of->places);
  pass.cache_base = words(c, p->bases, of->places), pass.cache_rows = words(c, p->rows, of->places);
  pass.sequence = words(c, p->sequences, of->places), pass.types = words(c, p->types, of->places);
  pass.temperatures = rdna__nn_matrix(c->words + p->temperatures, of->places, 1);
  pass.starts = words(c, p->starts, of->sequences + 1), pass.slots = words(c, p->slots, of->sequences);
  if (!of->in_order) pass.wanted = words(c, p->wanted, rows_of(c, of));
  pass.table = rdna_tensor_contiguous(c->words + p->table, RDNA_I32, 2, (int64_t[]){of->sequences, of->stride});
  for (int i = 0; i < of->count; i++) {
    rdna__nn_span *span = &c->spans[i];
    int64_t pages = (span->length + pass.page_rows - 1) / pass.page_rows;
    if (span->base < 0) span->pages = words(c, p->table + (size_t)(i * of->stride), pages);
  }
  return rdna__nn_decode(&pass, &c->llm->decoder, rows_of(c, of), c->logits);
}

/* Copies the logits of the pass's parts to their rows of |out|, which has those of the whole step; one copy for parts
 * whose rows are neighbours. */
static rdna_status fetch_logits(const rdna_llm_cache *c, const step *of, float *out) {
  size_t given = (size_t)c->given;
  for (int i = 0, row = 0, next; i < of->count; i = next) {
    int rows = of->parts[i].logits;
    for (next = i + 1; next < of->count && c->rows[next] == c->rows[i] + rows; next++) rows += of->parts[next].logits;
    const float *from = (const float *)c->logits + (size_t)row * given;
    if (rows > 0)
      RDNA_TRY(rdna_copy_to_host(c->pass.stream, out + (size_t)c->rows[i] * given, from,
                                 (size_t)rows * given * sizeof *out));
    row += rows;
  }
  return RDNA_OK;
}

/* The recording of this shape, or else the least recently used one, emptied for it. */
static rdna__llm_recording *find_recording(rdna_llm_cache *c, const rdna__llm_shape *shape) {
  rdna__llm_recording *oldest = &c->recordings[0];
  for (int i = 0; i < RDNA__LLM_RECORDINGS; i++) {
    rdna__llm_recording *r = &c->recordings[i];
    bool same = r->shape.length == shape->length && r->shape.table_stride == shape->table_stride &&
                r->shape.tokens == shape->tokens && r->shape.paged == shape->paged &&
                r->shape.adapters == shape->adapters;
    if (r->used > 0 && same) return r;
    if (r->used < oldest->used) oldest = r;
  }
  rdna_graph_release(oldest->graph);
  *oldest = (rdna__llm_recording){.shape = *shape};
  return oldest;
}

/* Records a step of single tokens. Where that fails, nothing is queued. */
static void record(rdna_llm_cache *c, const step *of, const places *p, rdna__llm_recording *r) {
  rdna_status status = rdna_graph_begin(c->pass.stream);
  if (status == RDNA_OK) {
    rdna_status queued = queue_pass(c, of, p, r->shape.paged);
    status = rdna_graph_end(c->pass.stream, queued == RDNA_OK ? &r->graph : NULL);
    if (queued != RDNA_OK) status = queued;
  }
  c->failed_recordings = status == RDNA_OK ? 0 : status == RDNA_UNSUPPORTED ? RECORDINGS : c->failed_recordings + 1;
  if (status == RDNA_OK)
    rdna__log(RDNA__LOG_DEBUG, "steps of %d tokens below position %lld are replays of a graph", of->places,
              (long long)of->length);
  else
    rdna__log(RDNA__LOG_DEBUG, "steps of single tokens are queued kernel by kernel: %s", rdna_last_error());
}

/* Decoding is hundreds of short kernels a token, and queueing them takes the host longer than the device to run them:
 * they are recorded once and replayed. The first step of a shape is run as it is, which loads its kernels.
 *
 * What the host does in between, as experts, cannot be recorded. Where rows of blocks are converted before attention,
 * their pages are in kernels' arguments, so that is recorded only where a cache is one page. */
static rdna_status decode(rdna_llm_cache *c, const step *of, const places *p, bool paged) {
  const rdna__llm_shape shape = {of->length, of->stride, of->places, paged, of->adapters};
  bool moves = c->pass.kv_dtype == RDNA_Q8_0 && rdna__nn_buffers_of(&c->llm->decoder).wide && c->pass.pages > 1;
  if (moves || c->pass.host) return queue_pass(c, of, p, paged);
  rdna__llm_recording *r = find_recording(c, &shape);
  bool first = r->used == 0;
  r->used = ++c->decoded;
  if (!r->graph && !first && c->failed_recordings < RECORDINGS) record(c, of, p, r);
  return r->graph ? rdna_graph_launch(r->graph, c->pass.stream) : queue_pass(c, of, p, paged);
}

/* Runs the first layers of a split model, on the host; the device's begin when their result is copied. */
static rdna_status run_below(rdna_llm_cache *c, const step *of, const places *p, bool paged) {
  rdna_llm_cache *below = c->below;
  step without_logits = *of;
  without_logits.wanted = 0;
  memcpy(below->staging, c->staging, p->end * sizeof *c->staging);
  memcpy(below->spans, c->spans, (size_t)of->count * sizeof *c->spans);
  rdna_status status = queue_pass(below, &without_logits, p, paged);
  rdna_status waited = rdna_stream_synchronize(below->pass.stream);
  if (status == RDNA_OK) status = waited;
  RDNA_TRY(status);
  int64_t x = (int64_t)of->places * c->llm->decoder.width, injected = rdna__llm_carried_values(c) * of->places - x;
  const rdna__nn_pass *pass = &below->pass;
  RDNA_TRY(rdna_copy_to_host(pass->stream, c->carried, pass->x, (size_t)x * sizeof *c->carried));
  if (injected > 0)
    RDNA_TRY(rdna_copy_to_host(pass->stream, c->carried + x, pass->injected, (size_t)injected * sizeof *c->carried));
  return rdna_stream_synchronize(pass->stream);
}

/* Runs one pass over c->parts; writes its logits to their rows of |out|. */
static rdna_status run(rdna_llm_cache *c, int count, float *out) {
  step of = {.parts = c->parts, .count = count};
  bool paged;
  take_parts(c, &of);
  place_spans(c, &of, &paged);
  places p = places_of((size_t)of.places, (size_t)of.sequences, (size_t)rows_of(c, &of), (size_t)of.stride,
                       (size_t)of.adapter_count);
  stage_tokens(c, &of, &p);
  stage_empty_places(c, &of, &p);
  stage_wanted(c, &of, &p);
  stage_scales(c, &of, &p);
  if (c->below) RDNA_TRY(run_below(c, &of, &p, paged));
  rdna_status status = of.alone && of.in_order ? decode(c, &of, &p, paged) : queue_pass(c, &of, &p, paged);
  if (status == RDNA_OK) status = fetch_logits(c, &of, out);
  rdna_status waited = rdna_stream_synchronize(c->pass.stream); /* the staging buffer is free again */
  return status == RDNA_OK ? waited : status;
}

/* With lanes: runs the parts with few tokens in passes of that many tokens, and each other part alone. */
static rdna_status run_in_lanes(rdna_llm_cache *c, const rdna_llm_part *parts, const int *rows, int count, float *out) {
  int members = 0, tokens = 0;
  for (int i = 0; i <= count; i++) {
    if (i < count && !is_few(&parts[i])) continue;
    if (members > 0 && (i == count || tokens + parts[i].count > c->lanes)) {
      RDNA_TRY(run(c, members, out));
      members = tokens = 0;
    }
    if (i == count) break;
    c->parts[members] = parts[i], c->rows[members++] = rows[i];
    tokens += parts[i].count;
  }
  for (int i = 0; i < count; i++) {
    if (is_few(&parts[i])) continue;
    c->parts[0] = parts[i], c->rows[0] = rows[i];
    RDNA_TRY(run(c, 1, out));
  }
  return RDNA_OK;
}

rdna_status rdna__llm_step(rdna_llm_cache *c, const rdna_llm_part *parts, int count, float *direct,
                           const float **out_logits) {
  if (count > c->sequences)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a step of %d sequences; this cache was made for %d", count, c->sequences);
  rdna_status status = check_parts(c, parts, count);
  for (int i = 0; i < count; i++)
    if (parts[i].sequence) parts[i].sequence->in_step = false;
  RDNA_TRY(status);
  status = take_room(c, parts, count);
  for (int i = 0; status != RDNA_OK && i < count; i++) rdna__llm_shrink(parts[i].sequence);
  RDNA_TRY(status);
  int wanted = 0;
  for (int i = 0; i < count; i++) {
    c->parts[i] = parts[i];
    c->first_rows[i] = c->rows[i] = wanted;
    wanted += parts[i].logits;
  }
  float *out = wanted <= c->pinned_rows ? c->pinned : direct;
  status = c->lanes ? run_in_lanes(c, parts, c->first_rows, count, out) : run(c, count, out);
  *out_logits = wanted > 0 ? out : NULL;
  for (int i = 0; i < count; i++) {
    rdna_llm_sequence *s = parts[i].sequence;
    if (status == RDNA_OK) {
      s->position += parts[i].count;
      note_picture(c, &parts[i]);
    } else { /* nobody knows what the states stand for */
      rdna__llm_drop_slot(c, s->slot);
      s->slot = -1;
      rdna__llm_shrink(s);
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
