/* Vectors of texts: passes over many of them at a time, and what their tokens' states become. */
#include "rdna/llm_embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "model/llm/cache.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_BATCH = 512, DEFAULT_SEQUENCES = 64, PAGE = 32 };

/* A text in the pass that is being made. */
typedef struct reading {
  rdna_llm_sequence *sequence;
  const rdna_llm_text *text;
  float *out;  /* its vector, or those of its tokens */
  int read;    /* tokens */
  double *sum; /* (values) of what was read, for the mean */
} reading;

struct rdna_llm_embedder {
  rdna_llm *llm;
  rdna_llm_cache *cache;
  rdna_llm_embedder_info info;
  int sequences;
  bool tells_pairs;     /* the model has two types of tokens */
  reading *readings;    /* (sequences) */
  rdna_llm_part *parts; /* (sequences) */
  double *sums;         /* (sequences, values) */
};

/* ---- making one ---- */

static rdna_status choose_pooling(const rdna_llm_info *model, rdna_llm_pooling asked, rdna_llm_pooling *out) {
  *out = asked != RDNA_LLM_POOLING_UNSAID ? asked : model->pooling;
  if (*out == RDNA_LLM_POOLING_UNSAID && model->labels > 0) *out = RDNA_LLM_POOLING_RANK;
  if (*out < 0 || *out >= RDNA_LLM_POOLING_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "pooling %d: there are 1 to %d", (int)*out, RDNA_LLM_POOLING_COUNT - 1);
  if (*out == RDNA_LLM_POOLING_UNSAID)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "the model's file does not say how its states become a vector (%s.pooling_type); say it: mean, "
                      "cls, last or none",
                      model->architecture);
  return RDNA_OK;
}

static rdna_status open_cache(rdna_llm_embedder *e, const rdna_llm_embedder_options *o) {
  const rdna_llm_info *model = rdna_llm_get_info(e->llm);
  rdna_llm_embedder_info *info = &e->info;
  info->context = o->context ? o->context : model->context < DEFAULT_CONTEXT ? model->context : DEFAULT_CONTEXT;
  info->batch = o->batch ? o->batch : DEFAULT_BATCH;
  if (info->context < 1 || info->batch < 1 || e->sequences < 1 || e->sequences > 65535)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "embeddings with a context of %d, passes of %d tokens and %d texts: all "
                      "must be positive, and texts at most 65,535",
                      info->context, info->batch, e->sequences);
  const rdna_tensor *positions = &e->llm->decoder.position_embedding;
  if (positions->data && info->context > positions->shape[0])
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a context of %d; the model has %lld positions", info->context,
                      (long long)positions->shape[0]);
  if (model->encoder && info->batch < info->context) info->batch = info->context;
  bool of_all = info->pooling == RDNA_LLM_POOLING_MEAN || info->pooling == RDNA_LLM_POOLING_NONE ||
                info->pooling == RDNA_LLM_POOLING_CLS || (info->pooling == RDNA_LLM_POOLING_RANK && model->encoder);
  rdna_llm_cache_options options = {
      RDNA_LLM_CACHE_OPTIONS_INIT,
      .context = info->context,
      .sequences = e->sequences,
      .batch = info->batch,
      .logits = of_all ? info->batch : e->sequences,
      .page = PAGE,
      .kv_dtype = o->kv_dtype,
      .exact = o->exact,
      .layers = o->layers,
      .layer_count = o->layer_count,
      .gives = info->pooling == RDNA_LLM_POOLING_RANK ? RDNA_LLM_GIVES_LABELS : RDNA_LLM_GIVES_STATES};
  /* a pass's texts, each with a page that is not full, or one that is longer than a pass */
  options.positions = info->batch + (int64_t)e->sequences * PAGE;
  if (options.positions < info->context + PAGE) options.positions = info->context + PAGE;
  return rdna_llm_cache_create(e->llm, &options, &e->cache);
}

rdna_status rdna_llm_embedder_create(rdna_llm *llm, const rdna_llm_embedder_options *options,
                                     rdna_llm_embedder **out_embedder) {
  rdna_llm_embedder_options chosen = {RDNA_LLM_EMBEDDER_OPTIONS_INIT, .kv_dtype = RDNA_F16};
  if (!llm || !out_embedder)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_embedder_create needs a model and a place for the embedder");
  if (options) RDNA_TRY(RDNA__OPTIONS("rdna_llm_embedder_create", "options", options, &chosen));
  rdna_llm_embedder *e = calloc(1, sizeof *e);
  if (!e) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an embedder");
  e->llm = rdna_llm_retain(llm);
  e->sequences = chosen.sequences ? chosen.sequences : DEFAULT_SEQUENCES;
  const rdna_tensor *types = &llm->decoder.type_embedding;
  e->tells_pairs = types->data && types->shape[0] > 1;
  rdna_status status = choose_pooling(rdna_llm_get_info(llm), chosen.pooling, &e->info.pooling);
  if (status == RDNA_OK) status = open_cache(e, &chosen);
  if (status == RDNA_OK) {
    e->info.values = (int)e->cache->given;
    e->readings = calloc((size_t)e->sequences, sizeof *e->readings);
    e->parts = calloc((size_t)e->sequences, sizeof *e->parts);
    e->sums = calloc((size_t)e->sequences * (size_t)e->info.values, sizeof *e->sums);
    if (!e->readings || !e->parts || !e->sums)
      status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for passes of %d texts", e->sequences);
  }
  if (status != RDNA_OK) {
    rdna_llm_embedder_release(e);
    return status;
  }
  *out_embedder = e;
  return RDNA_OK;
}

void rdna_llm_embedder_release(rdna_llm_embedder *e) {
  if (!e) return;
  rdna_llm_cache_release(e->cache);
  rdna_llm_release(e->llm);
  free(e->readings);
  free(e->parts);
  free(e->sums);
  free(e);
}

rdna_status rdna_llm_embedder_get_info(const rdna_llm_embedder *e, rdna_llm_embedder_info *out_info) {
  if (!e || !out_info || out_info->size < sizeof *out_info)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_llm_embedder_get_info needs an embedder, and a struct whose size is set");
  size_t size = out_info->size;
  *out_info = e->info;
  out_info->size = size;
  return RDNA_OK;
}

/* ---- passes ---- */

/* Takes the rows that a pass gave for |count| tokens of a text, of which |rows| are given, the last ones. */
static void take_rows(const rdna_llm_embedder *e, reading *r, int count, const float *given, int rows) {
  size_t values = (size_t)e->info.values, row = values * sizeof *given;
  bool first = r->read == 0, last = r->read + count == r->text->count;
  switch (e->info.pooling) {
    case RDNA_LLM_POOLING_NONE:
      memcpy(r->out + (size_t)r->read * values, given, (size_t)rows * row);
      break;
    case RDNA_LLM_POOLING_MEAN:
      if (first) memset(r->sum, 0, values * sizeof *r->sum);
      for (int i = 0; i < rows; i++)
        for (size_t k = 0; k < values; k++) r->sum[k] += (double)given[(size_t)i * values + k];
      for (size_t k = 0; last && k < values; k++) r->out[k] = (float)(r->sum[k] / r->text->count);
      break;
    case RDNA_LLM_POOLING_CLS:
      if (first) memcpy(r->out, given, row);
      break;
    case RDNA_LLM_POOLING_RANK:
      if (rows > 0 && e->llm->info.encoder) memcpy(r->out, given, row); /* the first token's */
      if (rows > 0 && !e->llm->info.encoder) memcpy(r->out, given + (size_t)(rows - 1) * values, row);
      break;
    default:
      if (last) memcpy(r->out, given + (size_t)(rows - 1) * values, row);
  }
}

/* How many rows of a part of |count| tokens matter. */
static int rows_of(const rdna_llm_embedder *e, const reading *r, int count) {
  rdna_llm_pooling pooling = e->info.pooling;
  bool last = r->read + count == r->text->count;
  if (pooling == RDNA_LLM_POOLING_MEAN || pooling == RDNA_LLM_POOLING_NONE) return count;
  if (pooling == RDNA_LLM_POOLING_CLS) return r->read == 0 ? count : 0;
  if (pooling == RDNA_LLM_POOLING_RANK && e->llm->info.encoder) return count;
  return last ? 1 : 0;
}

/* Reads the texts of |n| readings, which fit in a pass, or one that does not, in pieces. */
static rdna_status read_together(rdna_llm_embedder *e, int n) {
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < n; i++) {
      reading *r = &e->readings[i];
      int left = r->text->count - r->read, count = left < e->info.batch ? left : e->info.batch;
      e->parts[i] = (rdna_llm_part){.sequence = r->sequence,
                                    .tokens = r->text->tokens + r->read,
                                    .count = count,
                                    .logits = rows_of(e, r, count),
                                    .filling = r->text->filling};
      more |= count < left;
    }
    const float *given;
    RDNA_TRY(rdna_llm_step(e->cache, e->parts, n, &given));
    for (int i = 0; i < n; i++) {
      reading *r = &e->readings[i];
      take_rows(e, r, e->parts[i].count, given, e->parts[i].logits);
      if (given) given += (size_t)e->parts[i].logits * (size_t)e->info.values;
      r->read += e->parts[i].count;
    }
  }
  return RDNA_OK;
}

static rdna_status check_texts(const rdna_llm_embedder *e, const rdna_llm_text *texts, int count) {
  for (int i = 0; i < count; i++) {
    const rdna_llm_text *t = &texts[i];
    if (!t->tokens || t->count < 1) return rdna__fail(RDNA_INVALID_ARGUMENT, "text %d has no tokens", i);
    if (t->count > e->info.context)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "text %d has %d tokens, and the context room for %d; shorten it or ask for a larger context", i,
                        t->count, e->info.context);
    if (t->second < 0 || t->second > t->count)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "the second part of text %d begins at %d of %d tokens", i, t->second,
                        t->count);
    if (t->filling != 0 && (t->filling < 0 || t->count > e->info.batch))
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%d of the %d tokens of text %d fill it up; they are at least 0, in a pass of up to %d",
                        t->filling, t->count, i, e->info.batch);
  }
  return RDNA_OK;
}

/* Takes texts from |first| on, as many as fit in a pass and at least one; their vectors begin at |out|. */
static rdna_status gather(rdna_llm_embedder *e, const rdna_llm_text *texts, int first, int count, float *out,
                          int *out_taken) {
  int64_t tokens = 0;
  for (*out_taken = 0; first + *out_taken < count && *out_taken < e->sequences; ++*out_taken) {
    const rdna_llm_text *t = &texts[first + *out_taken];
    reading *r = &e->readings[*out_taken];
    if (*out_taken > 0 && tokens + t->count > e->info.batch) break;
    *r = (reading){.text = t, .out = out, .sum = e->sums + (size_t)*out_taken * (size_t)e->info.values};
    tokens += t->count;
    out += (size_t)e->info.values * (e->info.pooling == RDNA_LLM_POOLING_NONE ? (size_t)t->count : 1);
  }
  for (int i = 0; i < *out_taken; i++) {
    RDNA_TRY(rdna_llm_sequence_create(e->cache, &e->readings[i].sequence));
    if (e->tells_pairs) e->readings[i].sequence->second = e->readings[i].text->second;
  }
  return RDNA_OK;
}

rdna_status rdna_llm_embed(rdna_llm_embedder *e, const rdna_llm_text *texts, int count, float *out) {
  if (!e || (count > 0 && (!texts || !out)) || count < 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_embed needs an embedder, texts and a place for their vectors");
  RDNA_TRY(check_texts(e, texts, count));
  for (int first = 0, taken; first < count; first += taken) {
    rdna_status status = gather(e, texts, first, count, out, &taken);
    if (status == RDNA_OK) status = read_together(e, taken);
    for (int i = 0; i < taken; i++) {
      rdna_llm_sequence_release(e->readings[i].sequence);
      e->readings[i].sequence = NULL;
      out += (size_t)e->info.values * (e->info.pooling == RDNA_LLM_POOLING_NONE ? (size_t)texts[first + i].count : 1);
    }
    RDNA_TRY(status);
  }
  return RDNA_OK;
}

rdna_status rdna_llm_embedding_finish(const float *vector, int values, int dimensions, bool normalize, float *out) {
  if (!vector || !out || values < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_embedding_finish needs a vector and a place for another");
  if (dimensions < 1 || dimensions > values)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "an embedding of %d dimensions; the model's have %d", dimensions, values);
  double squares = 0;
  for (int i = 0; i < dimensions; i++) squares += (double)vector[i] * (double)vector[i];
  double factor = normalize && squares > 0 ? 1 / sqrt(squares) : 1;
  for (int i = 0; i < dimensions; i++) out[i] = (float)((double)vector[i] * factor);
  return RDNA_OK;
}
