/* Makes and releases caches: pages for keys and values, states, and the buffers of a step, in one allocation. */
#include "model/llm/cache.h"

#include <stdlib.h>

#include "base/options.h"
#include "base/status.h"
#include "rdna/op/movement.h"

/* Splits of attention in lanes: see rdna_attention. */
enum { SPLIT = 256, MOST_SPLITS = 256 };
enum { DEFAULT_CONTEXT = 4096, DEFAULT_BATCH = 512, DEFAULT_SEQUENCES = 16, DEFAULT_PAGE = 32, ALIGNMENT = 256 };

/* The cache's buffers, cut from one allocation: a first pass with base NULL adds up the bytes, a second gives the
 * addresses. */
typedef struct cutter {
  char *base;
  size_t used;
} cutter;

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void *cut(cutter *c, size_t bytes) {
  void *piece = c->base ? c->base + c->used : NULL;
  c->used += aligned(bytes);
  return piece;
}

static void cut_activations(rdna_llm_cache *s, const rdna__nn_buffers *values, cutter *c) {
  rdna__nn_pass *pass = &s->pass;
  size_t row = (size_t)s->batch * sizeof(float);
  pass->x = cut(c, (size_t)values->width * row);
  pass->h = cut(c, (size_t)values->width * row);
  pass->qkv = cut(c, (size_t)values->qkv * row);
  pass->attended = cut(c, (size_t)values->attended * row);
  pass->projected = cut(c, (size_t)values->width * row);
  pass->gate_up = cut(c, (size_t)values->gate_up * row + 7 * sizeof(float));
  pass->router_logits = cut(c, (size_t)values->router * row);
  pass->expert_indices = cut(c, (size_t)values->used * row);
  pass->expert_shares = cut(c, (size_t)values->used * row);
  pass->experts = cut(c, (size_t)values->experts * row);
  pass->shared = cut(c, (size_t)values->shared * row);
  pass->expert_input = cut(c, (size_t)values->shared * row);
  pass->injected = cut(c, (size_t)values->injected * row);
  pass->latent = cut(c, (size_t)values->latent * row);
  pass->head_numbers = cut(c, (size_t)values->heads * row);
  if (s->half != RDNA_F32) pass->rotated = cut(c, (size_t)values->attended * row / 2);
  if (pass->kv_dtype == RDNA_Q8_0) {
    int64_t fresh = s->batch * (values->cache_row + values->v_row);
    pass->fresh = cut(c, (size_t)fresh * sizeof(float));
    pass->fresh_blocks = cut(c, rdna_dtype_bytes(RDNA_Q8_0, fresh));
    pass->fresh_rows = cut(c, row);
  }
  int64_t batch = s->batch;
  pass->zeros = rdna_tensor_contiguous(cut(c, row), RDNA_I32, 1, &batch);
  pass->recurrent = cut(c, (size_t)values->recurrent * row + (values->recurrent ? ALIGNMENT : 0));
}

static void cut_all(rdna_llm_cache *s, cutter *c) {
  const rdna__nn_decoder *decoder = &s->llm->decoder;
  rdna__nn_buffers values = rdna__nn_buffers_of(decoder);
  rdna__nn_pass *pass = &s->pass;
  cut_activations(s, &values, c);
  if (s->given) s->logits = cut(c, (size_t)s->logit_rows * (size_t)s->given * sizeof(float));
  s->words = cut(c, rdna__llm_step_words(s) * sizeof(int32_t));
  pass->workspace = cut(c, pass->workspace_bytes);
  pass->k_cache = cut(c, (size_t)decoder->cache_count * pass->cache_layer_bytes);
  pass->v_cache = cut(c, (size_t)decoder->cache_count * pass->v_layer_bytes);
  pass->conv_layer_bytes = (size_t)(pass->state_slots * values.conv_state) * sizeof(float);
  pass->state_layer_bytes = (size_t)(pass->state_slots * values.state) * sizeof(float);
  pass->conv_states = cut(c, (size_t)decoder->state_count * pass->conv_layer_bytes);
  pass->states = cut(c, (size_t)decoder->state_count * pass->state_layer_bytes);
}

static bool asks_as_much(const rdna__nn_layer *layer, const rdna__nn_layer *other) {
  const rdna__nn_attention *a = &layer->attention, *b = &other->attention;
  return a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->window == b->window &&
         layer->latent.rank == other->latent.rank && layer->latent.heads == other->latent.heads;
}

/* The largest workspace of attention that a step of 1 to |batch| tokens needs. Few tokens may need more than many, and
 * many sequences more than one. */
static size_t workspace_bytes(const rdna_llm_cache *s) {
  const rdna__nn_decoder *decoder = &s->llm->decoder;
  int few = s->batch / RDNA__LLM_FEW < s->sequences ? s->batch : s->sequences * RDNA__LLM_FEW;
  if (s->lanes) few = s->lanes;
  size_t most = 0;
  for (int i = 0; i < decoder->layer_count && !decoder->bidirectional; i++) {
    const rdna__nn_attention *a = &decoder->layers[i].attention;
    if (i > 0 && asks_as_much(&decoder->layers[i], &decoder->layers[i - 1])) continue;
    for (int tokens = 1; tokens <= s->batch; tokens++) {
      int queries = tokens <= few && tokens > RDNA__LLM_FEW ? RDNA__LLM_FEW : tokens;
      rdna_attention attention = rdna__nn_attention_options(&s->pass, a, queries, s->pass.context);
      const rdna__nn_latent *l = &decoder->layers[i].latent;
      size_t bytes =
          rdna_op_attention_workspace(s->llm->weights.device, &attention, tokens, l->rank ? l->heads : a->heads,
                                      l->rank ? 1 : a->kv_heads, l->rank ? l->rank : a->head_dim);
      if (bytes > most) most = bytes;
    }
  }
  return most;
}

/* Pages are copied whole, and rows that are not written yet must not be NaN there; latent attention reads the numbers
 * of heads. */
static rdna_status fill_constants(rdna_llm_cache *s) {
  rdna__nn_buffers values = rdna__nn_buffers_of(&s->llm->decoder);
  const rdna__nn_pass *pass = &s->pass;
  const rdna_scalar zero = rdna_scalar_real(0), one = rdna_scalar_real(1);
  int64_t batch = s->batch;
  rdna_tensor rows = rdna_tensor_contiguous(pass->fresh_rows, RDNA_I32, 1, &batch);
  RDNA_TRY(rdna_fill_bytes(pass->stream, pass->zeros.data, 0, (size_t)batch * sizeof(int32_t)));
  if (pass->fresh_rows) RDNA_TRY(rdna_op_arange(pass->stream, zero, one, &rows));
  if (pass->pages > 1) {
    size_t caches = (size_t)s->llm->decoder.cache_count;
    RDNA_TRY(rdna_fill_bytes(pass->stream, pass->k_cache, 0, caches * pass->cache_layer_bytes));
    RDNA_TRY(rdna_fill_bytes(pass->stream, pass->v_cache, 0, caches * pass->v_layer_bytes));
  }
  if (values.heads == 0) return RDNA_OK;
  rdna_tensor first = rdna_tensor_contiguous(pass->head_numbers, RDNA_I32, 1, (int64_t[]){values.heads});
  RDNA_TRY(rdna_op_arange(pass->stream, zero, one, &first));
  rdna_tensor row = rdna__nn_matrix(first.data, 1, values.heads), rest = row;
  row.dtype = rest.dtype = RDNA_I32;
  rest.data = (int32_t *)row.data + values.heads, rest.shape[0] = s->batch - 1;
  return s->batch > 1 ? rdna_op_copy(pass->stream, &row, &rest) : RDNA_OK;
}

size_t rdna__llm_cache_kept_bytes(const rdna_llm_cache *s) {
  const rdna__nn_pass *pass = &s->pass;
  const rdna__nn_decoder *decoder = &s->llm->decoder;
  return (size_t)decoder->cache_count * (pass->cache_layer_bytes + pass->v_layer_bytes) +
         (size_t)decoder->state_count * (pass->conv_layer_bytes + pass->state_layer_bytes);
}

/* Fails with what does not fit, and the longest context that would, before anything is allocated. */
static rdna_status check_fits(const rdna_llm_cache *s) {
  const rdna_device_info *device = rdna_device_get_info(s->llm->weights.device);
  double memory = (double)device->total_memory, gib = 0x1p30, bytes = (double)s->bytes;
  double weights = (double)(s->llm->weights.bytes - s->llm->weights.mapped);
  size_t caches = (size_t)s->llm->decoder.cache_count * (s->pass.cache_layer_bytes + s->pass.v_layer_bytes);
  int64_t positions = s->pass.pages * s->pass.page_rows;
  double rest = (double)(s->bytes - caches), of_position = (double)caches / (double)positions;
  if (memory == 0 || weights + bytes <= memory) return RDNA_OK;
  double longest = of_position > 0 ? (memory - weights - rest) / of_position : 0;
  return rdna__fail(RDNA_OUT_OF_MEMORY,
                    "weights of %.2f GiB and a session of %.2f GiB (caches for %lld tokens %.2f, the rest %.2f) do not "
                    "fit in the %.2f GiB of %s; ask for a context of at most %lld, or leave layers on the host "
                    "(--gpu-layers auto)",
                    weights / gib, bytes / gib, (long long)positions, (double)caches / gib, rest / gib, memory / gib,
                    device->name, longest > 0 ? (long long)longest : 0);
}

/* How many values a key of the layer has in its cache. */
static int64_t head_values(const rdna__nn_layer *layer) {
  if (layer->recurrent.k_heads) return 0;
  return layer->latent.rank ? layer->latent.rank + layer->latent.rotated : layer->attention.head_dim;
}

/* Values of a position in each layer's cache, for copies of pages. */
static void measure_caches(rdna_llm_cache *s) {
  const rdna__nn_decoder *decoder = &s->llm->decoder;
  for (int i = 0; i < decoder->layer_count; i++) {
    const rdna__nn_layer *layer = &decoder->layers[i];
    if (layer->recurrent.width || layer->attention.shares_cache || decoder->bidirectional) continue;
    s->cache_values[layer->cache] = layer->latent.rank ? layer->latent.rank + layer->latent.rotated
                                                       : (int64_t)layer->attention.kv_heads * layer->attention.head_dim;
  }
}

int64_t rdna__llm_carried_values(const rdna_llm_cache *s) {
  const rdna__nn_decoder *decoder = &s->llm->decoder;
  return decoder->width + (int64_t)decoder->model_layers * decoder->injected;
}

/* Buffers on the host for experts that are computed there. */
static void cut_for_experts(rdna_llm_cache *s, cutter *c) {
  rdna__nn_buffers values = rdna__nn_buffers_of(&s->llm->decoder);
  size_t row = (size_t)s->batch * sizeof(float);
  s->host.h = cut(c, (size_t)values.width * row);
  s->host.expert_input = cut(c, (size_t)values.width * row);
  s->host.expert_indices = cut(c, (size_t)values.used * row);
  s->host.expert_shares = cut(c, (size_t)values.used * row);
  s->host.experts = cut(c, (size_t)values.experts * row);
  s->host.projected = cut(c, (size_t)values.width * row);
}

static rdna_status allocate_for_experts(rdna_llm_cache *s) {
  cutter c = {0};
  if (!s->llm->host) return RDNA_OK;
  cut_for_experts(s, &c);
  RDNA_TRY(rdna_stream_create(s->llm->host, 0, &s->host.stream));
  RDNA_TRY(rdna_memory_alloc_named(s->llm->host, c.used, s->host.stream, "experts", &s->host_memory));
  c = (cutter){s->host_memory, 0};
  cut_for_experts(s, &c);
  s->pass.host = &s->host;
  return RDNA_OK;
}

static rdna_status allocate_on_host(rdna_llm_cache *s) {
  rdna_device *device = s->llm->weights.device;
  size_t carried = (size_t)rdna__llm_carried_values(s) * (size_t)s->batch * sizeof *s->carried;
  if (s->below) RDNA_TRY(rdna_host_alloc(device, carried, (void **)&s->carried));
  RDNA_TRY(allocate_for_experts(s));
  s->spans = calloc((size_t)s->sequences, sizeof *s->spans);
  s->order = calloc((size_t)s->sequences, sizeof *s->order);
  s->parts = calloc((size_t)s->sequences, sizeof *s->parts);
  s->rows = calloc((size_t)s->sequences, sizeof *s->rows);
  s->first_rows = calloc((size_t)s->sequences, sizeof *s->first_rows);
  s->page_users = calloc((size_t)s->pass.pages, sizeof *s->page_users);
  s->slot_users = calloc((size_t)s->pass.state_slots + 1, sizeof *s->slot_users);
  s->cache_values = calloc((size_t)s->llm->decoder.cache_count + 1, sizeof *s->cache_values);
  if (!s->spans || !s->order || !s->parts || !s->rows || !s->first_rows || !s->page_users || !s->slot_users ||
      !s->cache_values)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a cache of %lld pages", (long long)s->pass.pages);
  measure_caches(s);
  s->free_pages = s->pass.pages;
  size_t row = (size_t)s->given * sizeof(float);
  if (s->given) RDNA_TRY(rdna_host_alloc(device, (size_t)s->pinned_rows * row, (void **)&s->pinned));
  return rdna_host_alloc(device, rdna__llm_step_words(s) * sizeof(int32_t), (void **)&s->staging);
}

static rdna_status allocate(rdna_llm_cache *s) {
  rdna__nn_pass *pass = &s->pass;
  rdna__nn_buffers values = rdna__nn_buffers_of(&s->llm->decoder);
  pass->workspace_bytes = workspace_bytes(s);
  pass->cache_layer_bytes = aligned(rdna_dtype_bytes(pass->kv_dtype, pass->pages * pass->page_rows * values.cache_row));
  pass->v_layer_bytes = values.v_row > 0 ? pass->cache_layer_bytes : 0;
  cutter c = {0};
  cut_all(s, &c);
  s->bytes = c.used;
  RDNA_TRY(check_fits(s));
  RDNA_TRY(rdna_memory_alloc_named(s->llm->weights.device, c.used, pass->stream, "session", &s->memory));
  c = (cutter){s->memory, 0};
  cut_all(s, &c);
  if (s->lanes) RDNA_TRY(rdna_fill_bytes(pass->stream, s->memory, 0, s->bytes)); /* places may stay empty */
  RDNA_TRY(fill_constants(s));
  return allocate_on_host(s);
}

static rdna_status check_layers(const rdna_llm *llm, const char *caller, const rdna_llm_cache_options *o) {
  if (o->layer_count == 0 && !o->layers) return RDNA_OK;
  if (o->layer_count < 1 || o->layer_count > RDNA__NN_GIVEN_LAYERS || !o->layers || o->gives != RDNA_LLM_GIVES_STATES)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s with states before %d layers: 1 to %d, of what gives states", caller,
                      o->layer_count, RDNA__NN_GIVEN_LAYERS);
  if (llm->below)
    return rdna__fail(RDNA_UNSUPPORTED, "%s with states before some layers, of which the host has the first", caller);
  for (int i = 0; i < o->layer_count; i++)
    if (o->layers[i] < 0 || o->layers[i] > llm->decoder.layer_count)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s with states before layer %d; the model has %d", caller, o->layers[i],
                        llm->decoder.layer_count);
  return RDNA_OK;
}

static rdna_status complete(const rdna_llm *llm, const char *caller, rdna_llm_cache_options *o) {
  if (o->context == 0) o->context = llm->info.context < DEFAULT_CONTEXT ? llm->info.context : DEFAULT_CONTEXT;
  if (o->batch == 0) o->batch = DEFAULT_BATCH;
  if (o->context < 1 || o->batch < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s of context %d and batch %d: both must be positive", caller, o->context,
                      o->batch);
  if (o->sequences == 0) o->sequences = DEFAULT_SEQUENCES;
  if (o->page == 0) o->page = DEFAULT_PAGE;
  if (o->logits == 0) o->logits = o->sequences;
  if (o->positions == 0) o->positions = o->context;
  if (o->page == RDNA__LLM_ONE_PAGE) o->page = o->context;
  if (o->states == 0) o->states = o->sequences + 4;
  if (o->checkpoints == 0) o->checkpoints = RDNA__LLM_CHECKPOINTS;
  if (o->checkpoints < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s with %d checkpoints a sequence; at least 1", caller, o->checkpoints);
  if (o->sequences < 1 || o->page < 1 || o->logits < 1 || o->positions < 1 || o->states < 1)
    return rdna__fail(
        RDNA_INVALID_ARGUMENT,
        "%s of %lld positions in pages of %d, with %d sequences, %d logits and %d states a step: all must "
        "be positive",
        caller, (long long)o->positions, o->page, o->sequences, o->logits, o->states);
  if (o->positions > INT32_MAX - o->page || o->sequences > 65535)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s of %lld positions with %d sequences a step; up to 2^31 and 65,535 are offered", caller,
                      (long long)o->positions, o->sequences);
  if (o->lanes != 0 && (o->lanes < RDNA__LLM_FEW || o->lanes > 256))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s with passes of %d tokens: 0, or %d to 256", caller, o->lanes,
                      RDNA__LLM_FEW);
  if (o->gives < 0 || o->gives >= RDNA_LLM_GIVES_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s that gives %d: there are 0 to %d", caller, o->gives,
                      RDNA_LLM_GIVES_COUNT - 1);
  if (llm->info.encoder && o->gives == RDNA_LLM_GIVES_LOGITS)
    return rdna__fail(
        RDNA_UNSUPPORTED, "the model (%s) reads texts and writes none: its tokens see those behind them. It gives %s",
        llm->info.architecture, llm->info.labels ? "labels (rdna embed --pooling rank)" : "embeddings (rdna embed)");
  if (o->gives == RDNA_LLM_GIVES_LABELS && !llm->info.labels)
    return rdna__fail(RDNA_UNSUPPORTED, "the model (%s) has no labels: its file has no tensor 'cls.output.weight'",
                      llm->info.architecture);
  RDNA_TRY(check_layers(llm, caller, o));
  if (o->kv_dtype != RDNA_F16 && o->kv_dtype != RDNA_F32 && o->kv_dtype != RDNA_BF16 && o->kv_dtype != RDNA_Q8_0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a KV cache of %s: f32, f16, bf16 and q8_0 are there",
                      rdna_dtype_name(o->kv_dtype));
  for (int i = 0; o->kv_dtype == RDNA_Q8_0 && i < llm->decoder.layer_count; i++) {
    int64_t head = head_values(&llm->decoder.layers[i]);
    if (head % 32 != 0)
      return rdna__fail(RDNA_UNSUPPORTED,
                        "a KV cache of q8_0: layer %d has heads of %lld values, which are no whole blocks of 32", i,
                        (long long)head);
  }
  return RDNA_OK;
}

rdna_status rdna__llm_cache_create(rdna_llm *llm, const char *caller, rdna_llm_cache_options chosen, int pinned_rows,
                                   rdna_llm_cache **out_cache) {
  RDNA_TRY(complete(llm, caller, &chosen));
  rdna_llm_cache *s = calloc(1, sizeof *s);
  if (!s) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a cache");
  s->llm = rdna_llm_retain(llm);
  s->pass.context = chosen.context;
  s->pass.page_rows = chosen.page;
  s->pass.pages = (chosen.positions + chosen.page - 1) / chosen.page;
  s->table_stride = (chosen.context + (int64_t)chosen.page - 1) / chosen.page;
  s->pass.state_slots = rdna__llm_has_states(llm) ? chosen.states : 0;
  s->sequences = chosen.sequences;
  s->most_kept = chosen.checkpoints;
  s->pass.gives = (rdna_llm_gives)chosen.gives;
  /* the first layers of a model that is split give x, and not to the caller */
  s->pass.layer_count = chosen.layer_count;
  for (int i = 0; i < chosen.layer_count; i++) s->pass.layers[i] = chosen.layers[i];
  if (llm->decoder.output_norm.weight.data) s->given = rdna__nn_given_values(&llm->decoder, &s->pass);
  s->lanes = chosen.lanes;
  if (s->lanes) s->pass.split = chosen.context / MOST_SPLITS > SPLIT ? chosen.context / MOST_SPLITS + 1 : SPLIT;
  s->batch = (int64_t)chosen.batch < chosen.positions ? chosen.batch : (int)chosen.positions;
  if (s->batch < s->lanes) s->batch = s->lanes;
  s->pass.kv_dtype = chosen.kv_dtype;
  s->half = chosen.exact || llm->weights.in_place ? RDNA_F32 : llm->decoder.half;
  s->pass.may_round = !chosen.exact && llm->weights.in_place;
  s->host.may_round = !chosen.exact;
  s->logit_rows = chosen.logits < s->batch ? chosen.logits : s->batch;
  if (s->logit_rows < s->lanes) s->logit_rows = s->lanes;
  s->pinned_rows = pinned_rows && pinned_rows < s->logit_rows ? pinned_rows : s->logit_rows;
  rdna_status status = rdna_stream_create(llm->weights.device, 0, &s->pass.stream);
  if (status == RDNA_OK && llm->below) status = rdna__llm_cache_create(llm->below, caller, chosen, 1, &s->below);
  if (status == RDNA_OK) status = allocate(s);
  if (status != RDNA_OK) {
    rdna_llm_cache_release(s);
    return status;
  }
  *out_cache = s;
  return RDNA_OK;
}

rdna_status rdna_llm_cache_create(rdna_llm *llm, const rdna_llm_cache_options *options, rdna_llm_cache **out_cache) {
  if (!llm || !out_cache)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_cache_create needs a model and a place for the cache");
  rdna_llm_cache_options chosen = {RDNA_LLM_CACHE_OPTIONS_INIT, .kv_dtype = RDNA_F16};
  if (options) RDNA_TRY(RDNA__OPTIONS("rdna_llm_cache_create", "options", options, &chosen));
  return rdna__llm_cache_create(llm, "a cache", chosen, 0, out_cache);
}

void rdna_llm_cache_release(rdna_llm_cache *s) {
  if (!s) return;
  s->released = true;
  if (s->open > 0) return; /* the last sequence comes back here */
  for (int i = 0; i < RDNA__LLM_RECORDINGS; i++) rdna_graph_release(s->recordings[i].graph);
  if (s->pass.stream) (void)!rdna_stream_synchronize(s->pass.stream);
  if (s->staging) rdna_host_free(s->llm->weights.device, s->staging);
  if (s->pinned) rdna_host_free(s->llm->weights.device, s->pinned);
  if (s->carried) rdna_host_free(s->llm->weights.device, s->carried);
  (void)!rdna_memory_free(s->llm->weights.device, s->memory);
  if (s->host_memory) (void)!rdna_memory_free(s->llm->host, s->host_memory);
  rdna_stream_release(s->host.stream);
  rdna_stream_release(s->pass.stream);
  for (int i = 0; i < s->adapter_count; i++) rdna_llm_adapter_release(s->adapters[i]);
  rdna_llm_cache_release(s->below);
  rdna_llm_release(s->llm);
  free(s->spans), free(s->order), free(s->parts), free(s->rows), free(s->first_rows);
  free(s->page_users), free(s->slot_users), free(s->cache_values);
  free(s);
}

rdna_status rdna_llm_cache_get_info(const rdna_llm_cache *cache, rdna_llm_cache_info *out_info) {
  if (!cache || !out_info || out_info->size < sizeof *out_info)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_cache_get_info needs a cache, and a struct whose size is set");
  int free_slots = 0, slots = (int)cache->pass.state_slots;
  for (int i = 0; i < slots; i++) free_slots += cache->slot_users[i] == 0;
  *out_info = (rdna_llm_cache_info){.size = out_info->size,
                                    .bytes = cache->bytes,
                                    .pages = cache->pass.pages,
                                    .free_pages = cache->free_pages,
                                    .page = (int)cache->pass.page_rows,
                                    .context = (int)cache->pass.context,
                                    .sequences = cache->sequences,
                                    .batch = cache->batch,
                                    .logits = cache->logit_rows,
                                    .states = slots,
                                    .free_states = free_slots,
                                    .open = cache->open};
  return RDNA_OK;
}
