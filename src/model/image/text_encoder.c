/* CLIP's text encoder: embeddings and positions, a row of layers (clip_layers.c) in which a token sees those before it,
 * and a norm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "model/image/clip.h"
#include "model/image/clip_layers.h"
#include "model/image/text_encoder.h"
#include "rdna/image.h"
#include "rdna/op.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 128, MOST_TEXTS = 64 };

typedef rdna__clip_affine affine;
typedef rdna__clip_layer layer;

typedef struct settings {
  int vocabulary, width, hidden, layers, heads, positions, projection;
  double epsilon;
  bool quick;     /* x sigmoid(1.702 x) for GELU */
  bool projected; /* CLIPTextModelWithProjection */
  int end;        /* whose first place is a text's end; 2: where the largest id is, as old settings mean by it */
} settings;

struct rdna_image_text_encoder {
  rdna__network network;
  rdna_image_text_encoder_info info;
  settings set;
  rdna__clip_tokenizer tokenizer;
  const rdna__inversions *words; /* NULL: none */
  bool second;
  int word_vectors;                 /* of all words */
  rdna_tensor embedding, positions; /* the former of the vocabulary, and behind it the words' vectors */
  layer *layers;
  affine norm;
  rdna_tensor projection;
};

/* ---- settings ---- */

static rdna_status read_kind(const json_t *config, settings *out) {
  const char *kind = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
  const char *activation = json_string_value(json_object_get(config, "hidden_act"));
  out->projected = kind && strcmp(kind, "CLIPTextModelWithProjection") == 0;
  out->quick = activation && strcmp(activation, "quick_gelu") == 0;
  if (!out->projected && !(kind && strcmp(kind, "CLIPTextModel") == 0))
    return rdna__fail(RDNA_UNSUPPORTED,
                      "the architecture is '%.80s'; CLIPTextModel and CLIPTextModelWithProjection are known",
                      kind ? kind : "");
  if (!out->quick && !(activation && strcmp(activation, "gelu") == 0))
    return rdna__fail(RDNA_UNSUPPORTED, "the setting 'hidden_act' is '%.80s'; quick_gelu and gelu are known",
                      activation ? activation : "");
  return rdna__setting_number(config, "layer_norm_eps", 1e-5, 0, 1, &out->epsilon);
}

static rdna_status read_settings(const json_t *config, settings *out) {
  RDNA_TRY(read_kind(config, out));
  RDNA_TRY(rdna__setting_whole(config, "vocab_size", 0, 1, 1 << 24, &out->vocabulary));
  RDNA_TRY(rdna__setting_whole(config, "hidden_size", 0, 1, 1 << 14, &out->width));
  RDNA_TRY(rdna__setting_whole(config, "intermediate_size", 0, 1, 1 << 16, &out->hidden));
  RDNA_TRY(rdna__setting_whole(config, "num_hidden_layers", 0, 1, 256, &out->layers));
  RDNA_TRY(rdna__setting_whole(config, "num_attention_heads", 0, 1, 1 << 10, &out->heads));
  RDNA_TRY(rdna__setting_whole(config, "max_position_embeddings", 0, 3, 1 << 12, &out->positions));
  RDNA_TRY(rdna__setting_whole(config, "projection_dim", 512, 1, 1 << 14, &out->projection));
  RDNA_TRY(rdna__setting_whole(config, "eos_token_id", 49407, 0, 1 << 24, &out->end));
  if (out->width % out->heads == 0) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "a 'hidden_size' of %d is no whole number of %d 'num_attention_heads'", out->width,
                    out->heads);
}

static rdna__clip_shape shape_of(const settings *set) {
  return (rdna__clip_shape){.tokens = set->positions,
                            .width = set->width,
                            .hidden = set->hidden,
                            .heads = set->heads,
                            .epsilon = set->epsilon,
                            .quick = set->quick,
                            .causal = true};
}

/* ---- weights ---- */

typedef struct loading {
  rdna_image_text_encoder *encoder;
  rdna__component component;
  const char *prefix; /* of all names but the projection's */
} loading;

/* |columns| 0: a vector of |rows|. */
static rdna_status load(loading *l, const char *prefix, const char *name, int rows, int columns, rdna_tensor *out) {
  const int64_t shape[] = {rows, columns};
  return rdna__component_load(&l->component, prefix, name, RDNA_F32, columns ? 2 : 1, shape, out);
}

static int vectors_of(const rdna__inversions *words) {
  int count = 0;
  for (int i = 0; words && i < words->count; i++) count += words->items[i].count;
  return count;
}

/* The vectors of |word| to the rows that begin at |to|. */
static rdna_status load_word(const rdna_image_text_encoder *e, const rdna__inversion *word, char *to) {
  const rdna__safetensor *t = word->of[e->second].tensor;
  rdna_stream *stream = rdna_device_default_stream(e->network.device);
  size_t count = (size_t)word->count * (size_t)e->set.width;
  if (word->of[e->second].width != e->set.width)
    return rdna__fail(
        RDNA_BAD_DATA,
        "%s has vectors of %d values of a word, and the text encoder's have %d: it is for another version "
        "of the model",
        word->path, word->of[e->second].width, e->set.width);
  if (word->count > e->set.positions - 2)
    return rdna__fail(RDNA_BAD_DATA, "%s has %d vectors of a word, and the text encoder reads %d at a time", word->path,
                      word->count, e->set.positions - 2);
  uint8_t *bytes = malloc(t->bytes + 1); /* a copy, as what is in the file's map may change or vanish */
  float *values = malloc(count * sizeof *values);
  rdna_status status = bytes && values ? rdna__annotate(rdna__file_read(t->data, t->bytes, bytes), "%s", word->path)
                                       : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a word");
  rdna__safetensor copy = *t;
  copy.data = bytes;
  for (size_t k = 0; status == RDNA_OK && k < count; k++) values[k] = rdna__safetensor_value(&copy, (int64_t)k);
  if (status == RDNA_OK) status = rdna_copy_to_device(stream, to, values, count * sizeof *values);
  if (status == RDNA_OK) status = rdna_stream_synchronize(stream);
  free(bytes);
  free(values);
  return status;
}

static rdna_status load_embedding(loading *l, const char *name) {
  rdna_image_text_encoder *e = l->encoder;
  const int64_t shape[] = {e->set.vocabulary + vectors_of(e->words), e->set.width};
  RDNA_TRY(rdna__network_tensor(&e->network, RDNA_F32, 2, shape, &e->embedding));
  rdna_tensor own = e->embedding;
  own.shape[0] = e->set.vocabulary;
  RDNA_TRY(rdna__component_fetch(&l->component, l->prefix, name, &own));
  char *to = (char *)e->embedding.data + rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&own));
  for (int i = 0; e->words && i < e->words->count; i++) {
    RDNA_TRY(load_word(e, &e->words->items[i], to));
    to += (size_t)e->words->items[i].count * (size_t)e->set.width * sizeof(float);
  }
  e->word_vectors = vectors_of(e->words);
  return RDNA_OK;
}

static rdna_status load_all(loading *l) {
  rdna_image_text_encoder *e = l->encoder;
  const settings *set = &e->set;
  const rdna__clip_shape shape = shape_of(set);
  const char *embedding = "embeddings.token_embedding.weight";
  /* transformers 5 saves a model without a projection without it */
  l->prefix = rdna__component_rank(&l->component, "", embedding) >= 0 ? "" : "text_model";
  RDNA_TRY(load_embedding(l, embedding));
  RDNA_TRY(load(l, l->prefix, "embeddings.position_embedding.weight", set->positions, set->width, &e->positions));
  RDNA_TRY(rdna__clip_load_layers(&l->component, l->prefix, &shape, set->layers, e->layers));
  RDNA_TRY(rdna__clip_load_affine(&l->component, l->prefix, "final_layer_norm", set->width, 0, &e->norm));
  if (!set->projected) return RDNA_OK;
  return load(l, "", "text_projection.weight", set->projection, set->width, &e->projection);
}

/* Old files have the numbers of positions too, and those of a model without a projection may have one. */
static rdna_status check_rest(loading *l) {
  char positions[NAME_BYTES];
  snprintf(positions, sizeof positions, "%s%sembeddings.position_ids", l->prefix, *l->prefix ? "." : "");
  RDNA_TRY(rdna__component_leave(&l->component, positions));
  if (!l->encoder->set.projected) RDNA_TRY(rdna__component_leave(&l->component, "text_projection.weight"));
  return rdna__component_check_all_read(&l->component);
}

/* ---- making one ---- */

static rdna_status read_component(rdna_image_text_encoder *e, loading *l) {
  const settings *set = &e->set;
  RDNA_TRY(read_settings(l->component.settings, &e->set));
  e->layers = calloc((size_t)set->layers, sizeof *e->layers);
  if (!e->layers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text encoder");
  RDNA_TRY(load_all(l));
  RDNA_TRY(check_rest(l));
  e->info = (rdna_image_text_encoder_info){.positions = set->positions,
                                           .layers = set->layers,
                                           .width = set->width,
                                           .pooled = set->projected ? set->projection : set->width,
                                           .projected = set->projected,
                                           .weights_bytes = e->network.bytes};
  return RDNA_OK;
}

/* One file has no tokenizer, and one with all settings but this is used: OpenCLIP's encoders were trained with texts
 * that are filled with its token "!", and CLIP's with that which ends a text. */
static rdna_status choose_pad(rdna_image_text_encoder *e, const json_t *config) {
  e->tokenizer.pad = e->tokenizer.end;
  if (strcmp(json_string_value(json_object_get(config, "hidden_act")), "gelu") != 0) return RDNA_OK;
  return rdna_tokenizer_find(e->tokenizer.tokenizer, "!", 1, &e->tokenizer.pad);
}

static rdna_status open_encoder(rdna_image_text_encoder *e, const char *folder, rdna__loras *loras, bool second) {
  const rdna__checkpoint_part none = {0};
  loading l = {.encoder = e};
  RDNA_TRY(rdna__component_open(folder, "model", &e->network, &l.component));
  rdna__component_change(&l.component, loras, second ? LORA_ENCODER_2 : LORA_ENCODER, &none);
  rdna_status status = rdna__annotate(read_component(e, &l), "%s", folder);
  if (status == RDNA_OK && l.component.part.kind) status = choose_pad(e, l.component.settings);
  rdna__component_close(&l.component);
  return status;
}

static rdna_status open_all(rdna_image_text_encoder *e, const char *folder, const char *encoder, const char *tokenizer,
                            rdna__loras *loras, bool second) {
  char paths[2][PATH_BYTES];
  const char *const names[] = {tokenizer, encoder};
  bool whole = rdna__component_is_file(folder);
  for (int i = 0; i < 2; i++)
    if (snprintf(paths[i], sizeof paths[i], "%s%s%s", whole && i == 0 ? "" : folder, whole && i == 0 ? "" : "/",
                 names[i]) >= (int)sizeof paths[i])
      return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %.80s is too long", names[i]);
  RDNA_TRY(rdna__clip_tokenizer_open(paths[0], &e->tokenizer));
  RDNA_TRY(open_encoder(e, paths[1], loras, second));
  size_t tokens = rdna_tokenizer_get_info(e->tokenizer.tokenizer)->token_count;
  if (tokens <= (size_t)e->set.vocabulary) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "%s has %zu tokens, and the text encoder %d", paths[0], tokens, e->set.vocabulary);
}

rdna_status rdna_image_text_encoder_create(rdna_device *device, const char *folder, const char *encoder,
                                           const char *tokenizer, rdna_image_text_encoder **out_encoder) {
  return rdna__text_encoder_create(device, folder, encoder, tokenizer, NULL, NULL, false, out_encoder);
}

rdna_status rdna__text_encoder_create(rdna_device *device, const char *folder, const char *encoder,
                                      const char *tokenizer, rdna__loras *loras, const rdna__inversions *words,
                                      bool second, rdna_image_text_encoder **out_encoder) {
  if (!device || !folder || !encoder || !tokenizer || !out_encoder)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_text_encoder_create needs a device, three names of folders and a place");
  rdna_image_text_encoder *e = calloc(1, sizeof *e);
  if (!e) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text encoder");
  e->network = (rdna__network){.device = rdna_device_retain(device), .dtype = RDNA_F32};
  e->words = words;
  e->second = second;
  rdna_status status = open_all(e, folder, encoder, tokenizer, loras, second);
  if (status == RDNA_OK)
    *out_encoder = e;
  else
    rdna_image_text_encoder_release(e);
  return status;
}

void rdna_image_text_encoder_release(rdna_image_text_encoder *e) {
  if (!e) return;
  rdna__network_deinit(&e->network);
  rdna__clip_tokenizer_close(&e->tokenizer);
  rdna_device_release(e->network.device);
  free(e->layers);
  free(e);
}

const rdna_image_text_encoder_info *rdna_image_text_encoder_get_info(const rdna_image_text_encoder *e) {
  return &e->info;
}

const rdna_tokenizer *rdna__text_encoder_tokenizer(const rdna_image_text_encoder *e) { return e->tokenizer.tokenizer; }

rdna_status rdna__text_encoder_read(const rdna_image_text_encoder *e, const char *text, size_t size,
                                    rdna_tokens *tokens) {
  for (;;) {
    int which;
    size_t before = rdna__inversions_find(e->words, text, size, &which);
    if (before || !size)
      RDNA_TRY(rdna_tokenizer_encode(e->tokenizer.tokenizer, text, before, RDNA_ENCODE_PARSE_SPECIAL, tokens));
    if (before == size) return RDNA_OK;
    int32_t id = e->set.vocabulary;
    for (int i = 0; i < which; i++) id += e->words->items[i].count;
    for (int i = 0; i < e->words->items[which].count; i++) RDNA_TRY(rdna_tokens_append(tokens, id + i));
    before += strlen(e->words->items[which].name);
    text += before;
    size -= before;
  }
}

int rdna__text_encoder_word(const rdna_image_text_encoder *e, int32_t id) {
  int32_t at = e->set.vocabulary;
  for (int i = 0; e->words && i < e->words->count; at += e->words->items[i++].count)
    if (id == at) return e->words->items[i].count;
  return 1;
}

rdna_status rdna_image_text_encoder_tokens(const rdna_image_text_encoder *e, const char *text, size_t size,
                                           int32_t *out_ids, size_t *out_count) {
  if (!e || (!text && size) || !out_ids)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_text_encoder_tokens needs an encoder, a text and a place");
  rdna_tokens tokens = {0};
  size_t room = (size_t)e->info.positions, most = room - 2, i = 0;
  rdna_status status = rdna__text_encoder_read(e, text, size, &tokens);
  if (status == RDNA_OK) {
    size_t kept = tokens.count < most ? tokens.count : most;
    out_ids[i++] = e->tokenizer.begin;
    if (kept) memcpy(out_ids + i, tokens.ids, kept * sizeof *out_ids);
    i += kept;
    for (out_ids[i++] = e->tokenizer.end; i < room; i++) out_ids[i] = e->tokenizer.pad;
    if (out_count) *out_count = tokens.count;
  }
  rdna_tokens_deinit(&tokens);
  return status;
}

/* ---- a pass ---- */

typedef struct pass {
  const rdna_image_text_encoder *encoder;
  rdna__clip_pass clip;
} pass;

/* x = the tokens' embeddings and those of their places. */
static rdna_status embed(pass *p, const int32_t *ids) {
  const settings *set = &p->encoder->set;
  rdna_tensor on_device, x = p->clip.x, positions = p->encoder->positions;
  int64_t tokens = p->clip.x.shape[0];
  RDNA_TRY(rdna__scratch_tensor(&p->clip.scratch, RDNA_I32, 1, &tokens, &on_device));
  RDNA_TRY(rdna_copy_to_device(p->clip.stream, on_device.data, ids, (size_t)tokens * sizeof *ids));
  RDNA_TRY(rdna_op_embedding(p->clip.stream, &p->encoder->embedding, &on_device, &p->clip.x, NULL));
  x.rank = positions.rank = 3;
  x.shape[0] = positions.shape[0] = p->clip.count;
  x.shape[1] = positions.shape[1] = set->positions;
  x.shape[2] = positions.shape[2] = set->width;
  x.stride[0] = (int64_t)set->positions * set->width;
  positions.stride[0] = 0;
  x.stride[1] = positions.stride[1] = set->width;
  x.stride[2] = positions.stride[2] = 1;
  const rdna_scalar zero = rdna_scalar_real(0);
  return rdna_op_zip(p->clip.stream, RDNA_ZIP_ADD, &x, &positions, zero, zero, &x);
}

static rdna_status copy_out(const pass *p, const rdna_tensor *from, float *to) {
  return rdna_copy_to_host(p->clip.stream, to, from->data, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(from)));
}

static int end_of(const settings *set, const int32_t *ids) {
  int best = 0;
  for (int i = 0; i < set->positions; i++) {
    if (set->end != 2 && ids[i] == set->end) return i;
    if (set->end == 2 && ids[i] > ids[best] && ids[i] < set->vocabulary) best = i;
  }
  return best;
}

/* Of the states behind all layers, in x. */
static rdna_status pool(pass *p, const int32_t *ids, float *out) {
  const rdna_image_text_encoder *e = p->encoder;
  int32_t ends[MOST_TEXTS];
  rdna_tensor rows, states, projected;
  for (int i = 0; i < p->clip.count; i++)
    ends[i] = i * e->set.positions + end_of(&e->set, ids + (ptrdiff_t)i * e->set.positions);
  const int64_t count = p->clip.count, wide[] = {count, e->set.width}, pooled[] = {count, e->info.pooled};
  RDNA_TRY(rdna__scratch_tensor(&p->clip.scratch, RDNA_I32, 1, &count, &rows));
  RDNA_TRY(rdna__scratch_tensor(&p->clip.scratch, RDNA_F32, 2, wide, &states));
  RDNA_TRY(rdna_copy_to_device(p->clip.stream, rows.data, ends, (size_t)count * sizeof *ends));
  RDNA_TRY(rdna_op_index_select(p->clip.stream, &p->clip.x, 0, &rows, &states, NULL));
  RDNA_TRY(rdna__clip_norm(&p->clip, &e->norm, &states, &states));
  if (!e->set.projected) return copy_out(p, &states, out);
  RDNA_TRY(rdna__scratch_tensor(&p->clip.scratch, RDNA_F32, 2, pooled, &projected));
  RDNA_TRY(rdna_op_linear(p->clip.stream, &states, &e->projection, NULL, &projected));
  return copy_out(p, &projected, out);
}

static rdna_status run(pass *p, const int32_t *ids, int skip, bool normed, float *states, float *pooled) {
  const rdna_image_text_encoder *e = p->encoder;
  int last = e->set.layers - skip, layers = pooled ? e->set.layers : last;
  RDNA_TRY(rdna__clip_prepare(&p->clip));
  RDNA_TRY(embed(p, ids));
  for (int i = 0; i <= layers; i++) {
    if (i == last && states) {
      if (normed) RDNA_TRY(rdna__clip_norm(&p->clip, &e->norm, &p->clip.x, &p->clip.h));
      RDNA_TRY(copy_out(p, normed ? &p->clip.h : &p->clip.x, states));
    }
    if (i == layers) break;
    RDNA_TRY(rdna__clip_layer_run(&p->clip, &e->layers[i]));
  }
  return pooled ? pool(p, ids, pooled) : RDNA_OK;
}

static rdna_status check_ids(const rdna_image_text_encoder *e, const int32_t *ids, int count) {
  const settings *set = &e->set;
  for (int i = 0; i < count * set->positions; i++)
    if (ids[i] < 0 || ids[i] >= set->vocabulary + e->word_vectors)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "id %d of token %d of text %d; the text encoder has %d", (int)ids[i],
                        i % set->positions, i / set->positions, set->vocabulary);
  return RDNA_OK;
}

rdna_status rdna_image_text_encoder_encode(rdna_image_text_encoder *e, const int32_t *ids, int count, int skip,
                                           bool normed, float *out_states, float *out_pooled) {
  if (!e || !ids || count < 1 || count > MOST_TEXTS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_text_encoder_encode needs an encoder and 1 to %d texts",
                      MOST_TEXTS);
  if (skip < 0 || skip > e->set.layers)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the last %d layers are to be skipped; the text encoder has %d", skip,
                      e->set.layers);
  RDNA_TRY(check_ids(e, ids, count));
  if (!out_states && !out_pooled) return RDNA_OK;
  pass p = {.encoder = e, .clip = {.shape = shape_of(&e->set), .count = count}};
  p.clip.stream = rdna_device_default_stream(e->network.device);
  p.clip.scratch = (rdna__scratch){.stream = p.clip.stream, .holder = "a text encoder"};
  rdna_status status = run(&p, ids, skip, normed, out_states, out_pooled);
  rdna_status waited = rdna_stream_synchronize(p.clip.stream);
  status = rdna__scratch_release(&p.clip.scratch, status);
  return status == RDNA_OK ? waited : status;
}
