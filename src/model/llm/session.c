/* Sessions: one sequence with its cache, fed in passes of many tokens or steps of one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "model/llm/llm.h"
#include "rdna/op/movement.h"

enum {
  RECORDINGS = 3, /* that may fail in a row before there is no further one */
  DEFAULT_CONTEXT = 4096,
  DEFAULT_BATCH = 512,
  ALIGNMENT = 256,
  FEW = 8,   /* tokens whose products stream the weights and need no matrix unit */
  STAGED = 4 /* numbers of a token that a pass is given: see rdna_llm_session */
};

/* The session's buffers, cut from one allocation: a first pass with base NULL adds up the bytes, a second gives the
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

/* A pass's numbers: STAGED arrays of |batch|, then the bounds of its sequence, 0 and the tokens, and its state's slot.
 */
static size_t staged_bytes(const rdna_llm_session *s) { return (STAGED * (size_t)s->batch + 3) * sizeof(int32_t); }

/* Of keys, those of a window further too, and of heads. */
static int64_t key_numbers(const rdna_llm_session *s) {
  int64_t keys = 2 * s->pass.context, heads = rdna__nn_buffers_of(&s->llm->decoder).heads;
  return keys > heads ? keys : heads;
}

static void cut_all(rdna_llm_session *s, cutter *c) {
  const rdna__nn_decoder *decoder = &s->llm->decoder;
  rdna__nn_buffers values = rdna__nn_buffers_of(decoder);
  rdna__nn_pass *pass = &s->pass;
  size_t row = (size_t)s->batch * sizeof(float);
  pass->x = cut(c, (size_t)values.width * row);
  pass->h = cut(c, (size_t)values.width * row);
  pass->qkv = cut(c, (size_t)values.qkv * row);
  pass->attended = cut(c, (size_t)values.attended * row);
  pass->projected = cut(c, (size_t)values.width * row);
  pass->gate_up = cut(c, (size_t)values.gate_up * row + 7 * sizeof(float));
  pass->router_logits = cut(c, (size_t)values.router * row);
  pass->expert_indices = cut(c, (size_t)values.used * row);
  pass->expert_shares = cut(c, (size_t)values.used * row);
  pass->experts = cut(c, (size_t)values.experts * row);
  pass->shared = cut(c, (size_t)values.shared * row);
  pass->expert_input = cut(c, (size_t)values.shared * row);
  pass->injected = cut(c, (size_t)values.injected * row);
  pass->latent = cut(c, (size_t)values.latent * row);
  pass->head_numbers = cut(c, (size_t)values.heads * row);
  if (values.group) {
    pass->score_tokens = rdna__nn_score_tokens(values.group, pass->context, s->batch);
    size_t tokens = (size_t)pass->score_tokens;
    pass->scores = cut(c, tokens * (size_t)(values.group * pass->context) * sizeof(float));
    pass->group_rows = cut(c, tokens * (size_t)values.group_row * sizeof(float));
    pass->hidden = cut(c, tokens * (size_t)pass->context);
    pass->key_numbers = cut(c, (size_t)key_numbers(s) * sizeof(int32_t));
  }
  if (s->half != RDNA_F32) pass->rotated = cut(c, (size_t)values.attended * row / 2);
  s->logits = cut(c, (size_t)s->logit_rows * (size_t)decoder->vocabulary * sizeof(float));
  s->ids = cut(c, staged_bytes(s));
  pass->workspace = cut(c, pass->workspace_bytes);
  pass->k_cache = cut(c, (size_t)decoder->cache_count * pass->cache_layer_bytes);
  pass->v_cache = cut(c, (size_t)decoder->cache_count * pass->v_layer_bytes);
  pass->recurrent = cut(c, (size_t)values.recurrent * row + (values.recurrent ? ALIGNMENT : 0));
  pass->state_slots = RDNA__LLM_STATE_SLOTS;
  pass->conv_layer_bytes = (size_t)(pass->state_slots * values.conv_state) * sizeof(float);
  pass->state_layer_bytes = (size_t)(pass->state_slots * values.state) * sizeof(float);
  pass->conv_states = cut(c, (size_t)decoder->state_count * pass->conv_layer_bytes);
  pass->states = cut(c, (size_t)decoder->state_count * pass->state_layer_bytes);
}

/* How many positions the last of |count| tokens sees at most. For one token it is rounded up, so that many steps are
 * the same work. */
static int length_of(const rdna_llm_session *s, int count) {
  enum { SHORTEST = 128 };
  int length = s->position + count;
  if (count > 1) return length;
  int64_t rounded = SHORTEST; /* 128, 192, 256, 384 … */
  while (rounded < length) rounded = rounded % 3 ? rounded / 2 * 3 : rounded / 3 * 4;
  return rounded < s->pass.context ? (int)rounded : (int)s->pass.context;
}

static bool asks_as_much(const rdna__nn_attention *a, const rdna__nn_attention *b) {
  return a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->window == b->window;
}

/* The most that a pass of 1 to |batch| tokens asks for: few tokens may ask for more than many. */
static size_t workspace_bytes(const rdna_llm_session *s) {
  const rdna__nn_decoder *decoder = &s->llm->decoder;
  size_t most = 0;
  for (int i = 0; i < decoder->layer_count; i++) {
    const rdna__nn_attention *a = &decoder->layers[i].attention;
    if (i > 0 && asks_as_much(a, &decoder->layers[i - 1].attention)) continue;
    for (int tokens = 1; tokens <= s->batch; tokens++) {
      rdna_attention attention = rdna__nn_attention_options(a, tokens, s->pass.context);
      size_t bytes =
          rdna_op_attention_workspace(s->llm->weights.device, &attention, tokens, a->heads, a->kv_heads, a->head_dim);
      if (bytes > most) most = bytes;
    }
  }
  return most;
}

/* What attention by products reads: numbers, and caches without NaN in rows that are not written yet. */
static rdna_status fill_constants(rdna_llm_session *s) {
  rdna__nn_buffers values = rdna__nn_buffers_of(&s->llm->decoder);
  const rdna__nn_pass *pass = &s->pass;
  const rdna_scalar zero = rdna_scalar_real(0), one = rdna_scalar_real(1);
  if (!values.group) return RDNA_OK;
  int64_t keys = key_numbers(s), shape[] = {s->batch, values.heads};
  rdna_tensor numbers = rdna_tensor_contiguous(pass->key_numbers, RDNA_I32, 1, &keys);
  RDNA_TRY(rdna_op_arange(pass->stream, zero, one, &numbers));
  rdna_tensor of_heads = rdna_tensor_contiguous(pass->head_numbers, RDNA_I32, 2, shape), row = numbers;
  row.rank = 2;
  row.shape[0] = 1, row.shape[1] = values.heads;
  row.stride[0] = values.heads, row.stride[1] = 1;
  if (values.heads) RDNA_TRY(rdna_op_copy(pass->stream, &row, &of_heads));
  size_t caches = (size_t)s->llm->decoder.cache_count;
  RDNA_TRY(rdna_fill_bytes(pass->stream, pass->k_cache, 0, caches * pass->cache_layer_bytes));
  return rdna_fill_bytes(pass->stream, pass->v_cache, 0, caches * pass->v_layer_bytes);
}

/* Says what does not fit, and how long a context would, before anything is allocated. */
static rdna_status check_fits(const rdna_llm_session *s, size_t session_bytes) {
  const rdna_device_info *device = rdna_device_get_info(s->llm->weights.device);
  double memory = (double)device->total_memory, gib = 0x1p30;
  double weights = s->llm->weights.in_place ? 0 : (double)s->llm->info.weight_bytes; /* else they are the file's map */
  size_t caches = (size_t)s->llm->decoder.cache_count * (s->pass.cache_layer_bytes + s->pass.v_layer_bytes);
  double rest = (double)(session_bytes - caches), of_position = (double)caches / (double)s->pass.context;
  if (memory == 0 || weights + (double)session_bytes <= memory) return RDNA_OK;
  double longest = of_position > 0 ? (memory - weights - rest) / of_position : 0;
  return rdna__fail(RDNA_OUT_OF_MEMORY,
                    "weights of %.2f GiB and a session of %.2f GiB (caches for %lld tokens %.2f, the rest %.2f) do not "
                    "fit in the %.2f GiB of %s; ask for a context of at most %lld",
                    weights / gib, (double)session_bytes / gib, (long long)s->pass.context, (double)caches / gib,
                    rest / gib, memory / gib, device->name, longest > 0 ? (long long)longest : 0);
}

static rdna_status allocate(rdna_llm_session *s) {
  rdna_device *device = s->llm->weights.device;
  const rdna__nn_decoder *decoder = &s->llm->decoder;
  rdna__nn_pass *pass = &s->pass;
  pass->workspace_bytes = workspace_bytes(s);
  pass->cache_layer_bytes = aligned((size_t)pass->context * (size_t)rdna__nn_buffers_of(decoder).cache_row *
                                    rdna_dtype_block_bytes(pass->kv_dtype));
  pass->v_layer_bytes = rdna__nn_buffers_of(decoder).v_row > 0 ? pass->cache_layer_bytes : 0;
  cutter c = {0};
  cut_all(s, &c);
  RDNA_TRY(check_fits(s, c.used));
  RDNA_TRY(rdna_memory_alloc_named(device, c.used, pass->stream, "session", &s->memory));
  c = (cutter){s->memory, 0};
  cut_all(s, &c);
  RDNA_TRY(fill_constants(s));
  if (decoder->state_count) {
    int from;
    s->history = calloc((size_t)pass->context, sizeof *s->history);
    if (!s->history) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a session's tokens");
    RDNA_TRY(rdna__llm_restore(s, 0, &from));
  }
  RDNA_TRY(rdna_host_alloc(device, (size_t)decoder->vocabulary * sizeof(float), (void **)&s->last_logits));
  return rdna_host_alloc(device, staged_bytes(s), (void **)&s->staging);
}

rdna_status rdna_llm_session_create(rdna_llm *llm, const rdna_llm_session_options *options,
                                    rdna_llm_session **out_session) {
  if (!llm || !out_session)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_session_create needs a model and a place for the session");
  rdna_llm_session_options chosen = {RDNA_LLM_SESSION_OPTIONS_INIT, .kv_dtype = RDNA_F16};
  if (options) RDNA_TRY(RDNA__OPTIONS("rdna_llm_session_create", "options", options, &chosen));
  if (chosen.context == 0) chosen.context = llm->info.context < DEFAULT_CONTEXT ? llm->info.context : DEFAULT_CONTEXT;
  if (chosen.batch == 0) chosen.batch = DEFAULT_BATCH;
  if (chosen.context < 1 || chosen.batch < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a session of context %d and batch %d: both must be positive",
                      chosen.context, chosen.batch);
  if (chosen.kv_dtype != RDNA_F16 && chosen.kv_dtype != RDNA_F32)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a KV cache of %s: f16 and f32 are there",
                      rdna_dtype_name(chosen.kv_dtype));
  rdna_llm_session *s = calloc(1, sizeof *s);
  if (!s) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a session");
  s->llm = rdna_llm_retain(llm);
  s->pass.context = chosen.context;
  s->batch = chosen.batch < chosen.context ? chosen.batch : chosen.context;
  s->pass.kv_dtype = chosen.kv_dtype;
  s->half = chosen.exact || llm->weights.in_place ? RDNA_F32 : llm->decoder.half;
  s->logit_rows = s->batch < 64 ? s->batch : 64;
  rdna_status status = rdna_stream_create(llm->weights.device, 0, &s->pass.stream);
  if (status == RDNA_OK) status = allocate(s);
  if (status != RDNA_OK) {
    rdna_llm_session_release(s);
    return status;
  }
  *out_session = s;
  return RDNA_OK;
}

void rdna_llm_session_release(rdna_llm_session *s) {
  if (!s) return;
  rdna_graph_release(s->recorded);
  if (s->pass.stream) (void)!rdna_stream_synchronize(s->pass.stream);
  if (s->staging) rdna_host_free(s->llm->weights.device, s->staging);
  if (s->last_logits) rdna_host_free(s->llm->weights.device, s->last_logits);
  (void)!rdna_memory_free(s->llm->weights.device, s->memory);
  rdna_stream_release(s->pass.stream);
  rdna_llm_release(s->llm);
  free(s->history);
  free(s);
}

int rdna_llm_session_position(const rdna_llm_session *session) { return session->position; }
int rdna_llm_session_context(const rdna_llm_session *session) { return (int)session->pass.context; }

/* ---- evaluation ---- */

static rdna_status check_tokens(const rdna_llm_session *s, const int32_t *tokens, int count) {
  if (!tokens || count < 1) return rdna__fail(RDNA_INVALID_ARGUMENT, "evaluating %d tokens; at least 1", count);
  if (count > (int)s->pass.context - s->position)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%d tokens after %d do not fit in a context of %d; shorten the prompt or "
                      "ask for a larger context",
                      count, s->position, (int)s->pass.context);
  int vocabulary = s->llm->info.vocabulary;
  for (int i = 0; i < count; i++)
    if (tokens[i] < 0 || tokens[i] >= vocabulary)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "token %d is id %d; the vocabulary has ids 0 to %d", i, (int)tokens[i],
                        vocabulary - 1);
  return RDNA_OK;
}

/* What the staging buffer holds goes to the device, and the logits of the last |rows| tokens to |logits|. */
static rdna_status queue_pass(rdna_llm_session *s, int count, int rows, float *logits) {
  RDNA_TRY(rdna_copy_to_device(s->pass.stream, s->ids, s->staging, staged_bytes(s)));
  rdna__nn_pass pass = s->pass;
  pass.count = count;
  pass.length = length_of(s, count);
  pass.type = count > FEW ? s->half : RDNA_F32;
  int64_t tokens = count;
  pass.ids = rdna_tensor_contiguous(s->ids, RDNA_I32, 1, &tokens);
  pass.positions = rdna_tensor_contiguous((int32_t *)s->ids + s->batch, RDNA_I32, 1, &tokens);
  pass.cache_base = rdna_tensor_contiguous((int32_t *)s->ids + 2 * (int64_t)s->batch, RDNA_I32, 1, &tokens);
  pass.temperatures = rdna__nn_matrix((int32_t *)s->ids + 3 * (int64_t)s->batch, tokens, 1);
  int32_t *sequence = (int32_t *)s->ids + STAGED * (int64_t)s->batch;
  pass.starts = rdna_tensor_contiguous(sequence, RDNA_I32, 1, (int64_t[]){2});
  pass.slots = rdna_tensor_contiguous(sequence + 2, RDNA_I32, 1, (int64_t[]){1});
  RDNA_TRY(rdna__nn_decode(&pass, &s->llm->decoder, rows, s->logits));
  if (rows == 0) return RDNA_OK;
  return rdna_copy_to_host(s->pass.stream, logits, s->logits,
                           (size_t)rows * (size_t)s->llm->info.vocabulary * sizeof(float));
}

/* Records the step of one token. False: it cannot be, and nothing was queued. */
static bool record_step(rdna_llm_session *s, int length) {
  rdna_graph_release(s->recorded);
  s->recorded = NULL;
  rdna_status status = rdna_graph_begin(s->pass.stream);
  if (status == RDNA_OK) {
    rdna_status queued = queue_pass(s, 1, 1, s->last_logits);
    status = rdna_graph_end(s->pass.stream, queued == RDNA_OK ? &s->recorded : NULL);
    if (queued != RDNA_OK) status = queued;
  }
  s->failed_recordings = status == RDNA_OK ? 0 : status == RDNA_UNSUPPORTED ? RECORDINGS : s->failed_recordings + 1;
  s->recorded_length = length;
  if (status == RDNA_OK)
    rdna__log(RDNA__LOG_DEBUG, "steps of one token below position %d are replays of a graph", length);
  else
    rdna__log(RDNA__LOG_DEBUG, "steps of one token are queued kernel by kernel: %s", rdna_last_error());
  return status == RDNA_OK;
}

/* Decoding is hundreds of short kernels a token, and queueing them takes the host longer than the device to run them:
 * they are recorded once and replayed. The first step of a length is run as it is, which loads its kernels. */
static rdna_status decode(rdna_llm_session *s) {
  int length = length_of(s, 1);
  bool ready = s->recorded && s->recorded_length == length;
  if (!ready && s->failed_recordings < RECORDINGS && s->run_length == length) ready = record_step(s, length);
  if (ready) return rdna_graph_launch(s->recorded, s->pass.stream);
  s->run_length = length;
  return queue_pass(s, 1, 1, s->last_logits);
}

static float temperature_of(const rdna__nn_decoder *decoder, int position) {
  if (decoder->temperature_beta == 0) return 1;
  return (float)(1 + (double)decoder->temperature_beta * log(1 + position / decoder->temperature_after));
}

/* One pass over at most |batch| tokens; the logits of the last |rows| of them go to |logits| (rows, vocabulary). */
static rdna_status pass(rdna_llm_session *s, const int32_t *tokens, int count, int rows, float *logits) {
  size_t batch = (size_t)s->batch;
  for (int i = 0; i < count; i++) {
    s->staging[i] = tokens[i];
    s->staging[batch + (size_t)i] = s->position + i;
    s->staging[2 * batch + (size_t)i] = 0;
    float temperature = temperature_of(&s->llm->decoder, s->position + i);
    memcpy(&s->staging[3 * batch + (size_t)i], &temperature, sizeof temperature);
  }
  int32_t *sequence = s->staging + STAGED * batch;
  sequence[0] = 0, sequence[1] = count, sequence[2] = 0;
  s->state_position = -1;
  RDNA_TRY(count == 1 && rows == 1 ? decode(s) : queue_pass(s, count, rows, rows == 1 ? s->last_logits : logits));
  RDNA_TRY(rdna_stream_synchronize(s->pass.stream)); /* the staging buffer is free again */
  if (rows == 1) memcpy(logits, s->last_logits, (size_t)s->llm->info.vocabulary * sizeof *logits);
  s->position += count;
  s->state_position = s->position;
  return RDNA_OK;
}

rdna_status rdna_llm_session_rewind(rdna_llm_session *session, int position) {
  if (position < 0 || position > session->position)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rewinding to position %d of a session with %d tokens", position,
                      session->position);
  bool has_states = session->llm->decoder.state_count > 0;
  if (!has_states || session->state_position == position) {
    session->position = position;
    return RDNA_OK;
  }
  RDNA_TRY(rdna__llm_restore(session, position, &session->position));
  while (session->position < position) { /* what lies between the checkpoint and that place is read again */
    int left = position - session->position, part = left < session->batch ? left : session->batch;
    RDNA_TRY(pass(session, session->history + session->position, part, 0, NULL));
  }
  session->state_position = position;
  return RDNA_OK;
}

/* Places to come back to: where a prompt begins, and where what the model writes does. */
static rdna_status keep_history(rdna_llm_session *s, const int32_t *tokens, int count) {
  if (s->llm->decoder.state_count == 0) return RDNA_OK;
  if (s->state_position != s->position)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the session's last call failed; rewind it first");
  if (count > 1 || s->read_last) RDNA_TRY(rdna__llm_checkpoint(s));
  s->read_last = count > 1;
  memcpy(s->history + s->position, tokens, (size_t)count * sizeof *tokens);
  return RDNA_OK;
}

/* In passes of as many tokens as fit: the logits of the last token, or of |every| one, row by row. */
static rdna_status eval(rdna_llm_session *session, const int32_t *tokens, int count, bool every, float *logits) {
  RDNA_TRY(check_tokens(session, tokens, count));
  if (!logits) return rdna__fail(RDNA_INVALID_ARGUMENT, "evaluating without a place for the logits");
  RDNA_TRY(keep_history(session, tokens, count));
  int most = every ? session->logit_rows : session->batch;
  for (int done = 0; done < count;) {
    int part = count - done < most ? count - done : most, rows = every ? part : done + part == count;
    RDNA_TRY(pass(session, tokens + done, part, rows, logits));
    done += part;
    if (every) logits += (size_t)part * (size_t)session->llm->info.vocabulary;
  }
  return RDNA_OK;
}

rdna_status rdna_llm_session_eval(rdna_llm_session *session, const int32_t *tokens, int count, float *logits) {
  return eval(session, tokens, count, false, logits);
}

rdna_status rdna_llm_session_eval_all(rdna_llm_session *session, const int32_t *tokens, int count, float *logits) {
  return eval(session, tokens, count, true, logits);
}
