/* T5's encoder: layers in which each token sees all others, by what they say and how far they are away.
 *
 *     x = embedding --+-- norm -- attention (scores + bias of distance) --(+)--+-- norm -- gelu(wi_0) wi_1, wo --(+)--
 * …
 *                     |__________________________________________________|    |_________________________________|  norm
 *
 * x is f32 whatever the weights are: it leaves the range of f16 in the published models. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/blocks.h"
#include "model/image/flux.h"
#include "model/image/t5_tokenizer.h"
#include "rdna/image_flow.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { PATH_BYTES = 4096, MOST_TOKENS = 4096 };

typedef struct layer {
  rdna_tensor norm1, q, k, v, out;
  rdna_tensor norm2, gate, up, down;
} layer;

typedef struct settings {
  int vocabulary, width, head, hidden, layers, heads;
  int buckets, distance; /* of positions: how many, and the distance from which on all are in the last */
  double epsilon;
} settings;

struct rdna_image_t5 {
  rdna__network network;
  rdna_image_t5_info info;
  settings set;
  rdna__t5_tokenizer tokenizer;
  rdna_tensor embedding;
  rdna_tensor bias; /* (buckets, heads), f32 */
  layer *layers;
  rdna_tensor norm;
};

/* ---- settings ---- */

static rdna_status read_settings(const json_t *config, settings *out) {
  const char *kind = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
  if (!kind || (strcmp(kind, "T5EncoderModel") != 0 && strcmp(kind, "T5ForConditionalGeneration") != 0))
    return rdna__fail(RDNA_UNSUPPORTED, "the architecture is '%.80s'; T5EncoderModel is known", kind ? kind : "");
  RDNA_TRY(rdna__setting_is(config, "feed_forward_proj", "gated-gelu"));
  if (!json_object_get(config, "feed_forward_proj"))
    return rdna__fail(RDNA_UNSUPPORTED, "there is no 'feed_forward_proj'; of T5 1.1 it is 'gated-gelu'");
  RDNA_TRY(rdna__setting_whole(config, "vocab_size", 0, 1, 1 << 24, &out->vocabulary));
  RDNA_TRY(rdna__setting_whole(config, "d_model", 0, 1, 1 << 14, &out->width));
  RDNA_TRY(rdna__setting_whole(config, "d_kv", 0, 1, 512, &out->head));
  RDNA_TRY(rdna__setting_whole(config, "d_ff", 0, 1, 1 << 16, &out->hidden));
  RDNA_TRY(rdna__setting_whole(config, "num_layers", 0, 1, 256, &out->layers));
  RDNA_TRY(rdna__setting_whole(config, "num_heads", 0, 1, 1 << 10, &out->heads));
  RDNA_TRY(rdna__setting_whole(config, "relative_attention_num_buckets", 32, 4, 1 << 12, &out->buckets));
  RDNA_TRY(rdna__setting_whole(config, "relative_attention_max_distance", 128, 2, 1 << 20, &out->distance));
  RDNA_TRY(rdna__setting_number(config, "layer_norm_epsilon", 1e-6, 0, 1, &out->epsilon));
  if (out->buckets % 4 == 0 && out->distance > out->buckets / 4) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA,
                    "%d buckets for distances up to %d; they are a multiple of 4, and a fourth of them "
                    "is for less than that",
                    out->buckets, out->distance);
}

/* ---- weights ---- */

typedef struct loading {
  rdna_image_t5 *encoder;
  rdna__component component;
} loading;

static rdna_status load_matrix(loading *l, int index, const char *name, int rows, int columns, rdna_tensor *out) {
  char full[RDNA__COMPONENT_NAME];
  snprintf(full, sizeof full, "encoder.block.%d.layer.%s.weight", index, name);
  return rdna__component_load_matrix(&l->component, "", full, rows, columns, out);
}

static rdna_status load_norm(loading *l, int index, const char *name, rdna_tensor *out) {
  char full[RDNA__COMPONENT_NAME];
  const int64_t width = l->encoder->set.width;
  snprintf(full, sizeof full, "encoder.block.%d.layer.%s.weight", index, name);
  return rdna__component_load(&l->component, "", full, RDNA_F32, 1, &width, out);
}

static rdna_status load_layer(loading *l, int i, layer *out) {
  const settings *s = &l->encoder->set;
  int inner = s->heads * s->head;
  RDNA_TRY(load_norm(l, i, "0.layer_norm", &out->norm1));
  RDNA_TRY(load_matrix(l, i, "0.SelfAttention.q", inner, s->width, &out->q));
  RDNA_TRY(load_matrix(l, i, "0.SelfAttention.k", inner, s->width, &out->k));
  RDNA_TRY(load_matrix(l, i, "0.SelfAttention.v", inner, s->width, &out->v));
  RDNA_TRY(load_matrix(l, i, "0.SelfAttention.o", s->width, inner, &out->out));
  RDNA_TRY(load_norm(l, i, "1.layer_norm", &out->norm2));
  RDNA_TRY(load_matrix(l, i, "1.DenseReluDense.wi_0", s->hidden, s->width, &out->gate));
  RDNA_TRY(load_matrix(l, i, "1.DenseReluDense.wi_1", s->hidden, s->width, &out->up));
  return load_matrix(l, i, "1.DenseReluDense.wo", s->width, s->hidden, &out->down);
}

static rdna_status load_all(loading *l) {
  rdna_image_t5 *e = l->encoder;
  const settings *s = &e->set;
  const int64_t width = s->width, bias[] = {s->buckets, s->heads};
  RDNA_TRY(rdna__component_load_matrix(&l->component, "", "shared.weight", s->vocabulary, s->width, &e->embedding));
  RDNA_TRY(rdna__component_load(&l->component, "",
                                "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", RDNA_F32, 2,
                                bias, &e->bias));
  for (int i = 0; i < s->layers; i++) RDNA_TRY(load_layer(l, i, &e->layers[i]));
  RDNA_TRY(rdna__component_load(&l->component, "", "encoder.final_layer_norm.weight", RDNA_F32, 1, &width, &e->norm));
  RDNA_TRY(rdna__component_leave(&l->component, "encoder.embed_tokens.weight")); /* the same table once more */
  return rdna__component_check_all_read(&l->component);
}

static rdna_status read_component(rdna_image_t5 *e, loading *l) {
  RDNA_TRY(rdna__annotate(read_settings(l->component.settings, &e->set), "config.json"));
  e->layers = calloc((size_t)e->set.layers, sizeof *e->layers);
  if (!e->layers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text encoder");
  RDNA_TRY(load_all(l));
  e->info = (rdna_image_t5_info){.layers = e->set.layers,
                                 .width = e->set.width,
                                 .vocabulary = e->set.vocabulary,
                                 .weights_bytes = e->network.bytes};
  return RDNA_OK;
}

static rdna_status open_all(rdna_image_t5 *e, const char *folder, const char *encoder, const char *tokenizer,
                            rdna__loras *loras) {
  char paths[2][PATH_BYTES];
  const char *const names[] = {encoder, tokenizer};
  loading l = {.encoder = e};
  bool whole = rdna__component_is_file(folder);
  for (int i = 0; i < 2; i++)
    if (snprintf(paths[i], sizeof paths[i], "%s%s%s", whole && i == 1 ? "" : folder, whole && i == 1 ? "" : "/",
                 names[i]) >= (int)sizeof paths[i])
      return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %.80s is too long", names[i]);
  RDNA_TRY(rdna__component_open(paths[0], "model", &e->network, &l.component));
  rdna__component_change(&l.component, loras, LORA_T5, &(rdna__checkpoint_part){.kind = CHECKPOINT_T5, .prefix = ""});
  rdna_status status = rdna__annotate(read_component(e, &l), "%s", paths[0]);
  rdna__component_close(&l.component);
  return status == RDNA_OK ? rdna__t5_tokenizer_open(paths[1], e->set.vocabulary, &e->tokenizer) : status;
}

rdna_status rdna_image_t5_create(rdna_device *device, const char *folder, const char *encoder, const char *tokenizer,
                                 rdna_dtype dtype, rdna_image_t5 **out_encoder) {
  return rdna__t5_create(device, folder, encoder, tokenizer, dtype, RDNA_DTYPE_COUNT, NULL, out_encoder);
}

rdna_status rdna__t5_create(rdna_device *device, const char *folder, const char *encoder, const char *tokenizer,
                            rdna_dtype dtype, rdna_dtype weights, rdna__loras *loras, rdna_image_t5 **out_encoder) {
  if (!device || !folder || !encoder || !tokenizer || !out_encoder ||
      (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_t5_create needs a device, three names of folders, f32, f16 or bf16, and a place");
  rdna_image_t5 *e = calloc(1, sizeof *e);
  if (!e) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text encoder");
  e->network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype, .weights = weights};
  rdna_status status = open_all(e, folder, encoder, tokenizer, loras);
  if (status == RDNA_OK)
    *out_encoder = e;
  else
    rdna_image_t5_release(e);
  return status;
}

void rdna_image_t5_release(rdna_image_t5 *e) {
  if (!e) return;
  rdna__network_deinit(&e->network);
  rdna__t5_tokenizer_close(&e->tokenizer);
  rdna_device_release(e->network.device);
  free(e->layers);
  free(e);
}

const rdna_image_t5_info *rdna_image_t5_get_info(const rdna_image_t5 *e) { return &e->info; }

rdna_status rdna_image_t5_tokens(const rdna_image_t5 *e, const char *text, size_t size, int room, int32_t *out_ids,
                                 size_t *out_count) {
  if (!e || (!text && size) || !out_ids || room < 1 || room > MOST_TOKENS)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_t5_tokens needs an encoder, a text and a place for 1 to %d tokens", MOST_TOKENS);
  rdna_tokens tokens = {0};
  size_t most = (size_t)room - 1;
  rdna_status status = rdna_tokenizer_encode(e->tokenizer.tokenizer, text, size, RDNA_ENCODE_PARSE_SPECIAL, &tokens);
  if (status == RDNA_OK) {
    size_t i = tokens.count < most ? tokens.count : most;
    if (i) memcpy(out_ids, tokens.ids, i * sizeof *out_ids);
    for (out_ids[i++] = e->tokenizer.end; i < (size_t)room; i++) out_ids[i] = e->tokenizer.pad;
    if (out_count) *out_count = tokens.count;
  }
  rdna_tokens_deinit(&tokens);
  return status;
}

/* ---- a pass ---- */

typedef struct running {
  const rdna_image_t5 *encoder;
  rdna__image_pass pass;
  int64_t tokens;
  rdna_tensor x;            /* (tokens, width), f32 */
  rdna_tensor h;            /* the same of the network's type: what products read */
  rdna_tensor q, k, v, out; /* (tokens, heads head) */
  rdna_tensor gate, up;     /* (tokens, hidden) */
  rdna_tensor bias;         /* (1, heads, tokens, tokens), f32: what is added to scores */
} running;

/* A half of the buckets is for tokens behind the one that looks, of each half another half for distances one by one,
 * and the rest for ranges of distances that grow. In f32, as in training: at their ends it shows. */
static int32_t bucket_of(const settings *s, int64_t distance) {
  int half = s->buckets / 2, exact = half / 2;
  int64_t away = distance < 0 ? -distance : distance;
  int32_t first = distance > 0 ? half : 0;
  if (away < exact) return first + (int32_t)away;
  float share = logf((float)away / (float)exact) / (float)log((double)s->distance / exact);
  int far = exact + (int)(share * (float)(half - exact));
  return first + (far < half ? far : half - 1);
}

/* bias(head, i, j) = the table's row for the distance from token i to token j */
static rdna_status make_bias(running *r) {
  const settings *s = &r->encoder->set;
  const int64_t n = r->tokens, pairs = n * n;
  const int64_t looked_up[] = {pairs, s->heads}, shape[] = {1, s->heads, n, n};
  int32_t *buckets = malloc((size_t)pairs * sizeof *buckets);
  if (!buckets) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for distances of tokens");
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) buckets[i * n + j] = bucket_of(s, j - i);
  rdna_tensor ids, rows;
  rdna_status status = rdna__pass_tensor(&r->pass, RDNA_I32, 1, &pairs, &ids);
  if (status == RDNA_OK)
    status = rdna_copy_to_device(r->pass.stream, ids.data, buckets, (size_t)pairs * sizeof *buckets);
  free(buckets); /* which has been read, as it is pageable */
  if (status != RDNA_OK) return status;
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, looked_up, &rows));
  RDNA_TRY(rdna_op_embedding(r->pass.stream, &r->encoder->bias, &ids, &rows, NULL));
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 4, shape, &r->bias));
  const rdna_tensor by_head = {.data = rows.data,
                               .dtype = RDNA_F32,
                               .rank = 4,
                               .shape = {1, s->heads, n, n},
                               .stride = {pairs * s->heads, 1, n * s->heads, s->heads}};
  RDNA_TRY(rdna_op_copy(r->pass.stream, &by_head, &r->bias));
  RDNA_TRY(rdna__pass_drop(&r->pass, &ids));
  return rdna__pass_drop(&r->pass, &rows);
}

static rdna_status prepare(running *r, const int32_t *ids) {
  const settings *s = &r->encoder->set;
  const int64_t n = r->tokens, wide[] = {n, s->width}, inner[] = {n, (int64_t)s->heads * s->head};
  const int64_t hidden[] = {n, s->hidden};
  rdna_tensor on_device, *const of_heads[] = {&r->q, &r->k, &r->v, &r->out};
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, wide, &r->x));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, wide, &r->h));
  for (int i = 0; i < 4; i++) RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, inner, of_heads[i]));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, hidden, &r->gate));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, hidden, &r->up));
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_I32, 1, &n, &on_device));
  RDNA_TRY(rdna_copy_to_device(r->pass.stream, on_device.data, ids, (size_t)n * sizeof *ids));
  return rdna_op_embedding(r->pass.stream, &r->encoder->embedding, &on_device, &r->x, NULL);
}

/* (tokens, heads head) as (1, heads, tokens, head) */
static rdna_tensor by_head(const running *r, const rdna_tensor *t) {
  const settings *s = &r->encoder->set;
  int64_t row = (int64_t)s->heads * s->head;
  return (rdna_tensor){.data = t->data,
                       .dtype = t->dtype,
                       .rank = 4,
                       .shape = {1, s->heads, r->tokens, s->head},
                       .stride = {row * r->tokens, s->head, row, 1}};
}

static rdna_status attend(running *r, const layer *l) {
  rdna_stream *stream = r->pass.stream;
  RDNA_TRY(rdna_op_rms_norm(stream, &r->x, &l->norm1, r->encoder->set.epsilon, &r->h));
  RDNA_TRY(rdna_op_linear(stream, &r->h, &l->q, NULL, &r->q));
  RDNA_TRY(rdna_op_linear(stream, &r->h, &l->k, NULL, &r->k));
  RDNA_TRY(rdna_op_linear(stream, &r->h, &l->v, NULL, &r->v));
  const rdna_sdpa options = {RDNA_SDPA_INIT, .scale = 1, .mask = &r->bias}; /* the weights of q have what scales it */
  rdna_tensor q = by_head(r, &r->q), k = by_head(r, &r->k), v = by_head(r, &r->v), out = by_head(r, &r->out);
  RDNA_TRY(rdna_op_sdpa(stream, &options, &q, &k, &v, &out, NULL));
  return rdna_op_linear_add(stream, &r->out, &l->out, NULL, &r->x);
}

static rdna_status feed_forward(running *r, const layer *l) {
  const rdna_fused_step steps[] = {{.op = RDNA_MAP_GELU_TANH}, {.op = RDNA_ZIP_MUL, .is_zip = true, .input = 1}};
  rdna_stream *stream = r->pass.stream;
  RDNA_TRY(rdna_op_rms_norm(stream, &r->x, &l->norm2, r->encoder->set.epsilon, &r->h));
  RDNA_TRY(rdna_op_linear(stream, &r->h, &l->gate, NULL, &r->gate));
  RDNA_TRY(rdna_op_linear(stream, &r->h, &l->up, NULL, &r->up));
  RDNA_TRY(rdna_op_fused(stream, steps, 2, (const rdna_tensor *const[]){&r->gate, &r->up}, 2, &r->gate));
  return rdna_op_linear_add(stream, &r->gate, &l->down, NULL, &r->x);
}

static rdna_status run(running *r, const int32_t *ids, float *out) {
  const rdna_image_t5 *e = r->encoder;
  RDNA_TRY(make_bias(r));
  RDNA_TRY(prepare(r, ids));
  for (int i = 0; i < e->set.layers; i++) {
    RDNA_TRY(attend(r, &e->layers[i]));
    RDNA_TRY(feed_forward(r, &e->layers[i]));
  }
  RDNA_TRY(rdna_op_rms_norm(r->pass.stream, &r->x, &e->norm, e->set.epsilon, &r->x));
  return rdna_copy_to_host(r->pass.stream, out, r->x.data, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&r->x)));
}

rdna_status rdna_image_t5_encode(rdna_image_t5 *e, const int32_t *ids, int count, float *out_states) {
  if (!e || !ids || !out_states || count < 1 || count > MOST_TOKENS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_t5_encode needs an encoder, 1 to %d ids and a place",
                      MOST_TOKENS);
  for (int i = 0; i < count; i++)
    if (ids[i] < 0 || ids[i] >= e->set.vocabulary)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "id %d of token %d; the text encoder has %d", (int)ids[i], i,
                        e->set.vocabulary);
  running r = {.encoder = e, .tokens = count};
  rdna_stream *stream = rdna_device_default_stream(e->network.device);
  r.pass = (rdna__image_pass){.stream = stream, .dtype = e->network.dtype, .holder = "a text encoder"};
  rdna_status status = run(&r, ids, out_states);
  rdna_status waited = rdna_stream_synchronize(stream); /* what is copied from and to is the caller's */
  status = rdna__pass_end(&r.pass, status);
  return status == RDNA_OK ? waited : status;
}
