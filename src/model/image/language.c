#include "model/image/language.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/component.h"
#include "model/vision/prompt.h"
#include "model/weights/convert.h"
#include "rdna/llm_cache.h"
#include "rdna/llm_embed.h"
#include "rdna/memory.h"
#include "rdna/model.h"

enum { PASS = 512 }; /* tokens at a time where there is a picture */

struct rdna__language {
  const rdna__language_reading *reading;
  rdna_device *device;
  rdna_gguf *file;
  rdna_tokenizer *tokenizer;
  rdna_llm *llm;
  rdna_llm_embedder *embedder; /* NULL: it sees */
  rdna_gguf *tower_file;
  rdna_vision *vision;
  bool wide; /* it computes in f32 */
  rdna__language_info info;
};

static rdna_status open_files(const char *folder, const char *tokenizer, rdna_gguf **out_file,
                              rdna_tokenizer **out_tokenizer) {
  rdna_gguf *file;
  bool whole = rdna__component_is_file(folder);
  RDNA_TRY(whole ? rdna_gguf_open(folder, &file) : rdna__model_open_folder(folder, tokenizer, &file));
  rdna_tokenizer *t = NULL;
  const char *where = whole ? folder : tokenizer;
  rdna_status status = rdna__annotate(rdna_tokenizer_open(file, &t), "%s", where);
  if (status == RDNA_OK && rdna_tokenizer_get_info(t)->token_count == 0) {
    rdna_tokenizer_close(t);
    status = rdna__fail(RDNA_NOT_FOUND,
                        "there is no tokenizer.json, nor vocab.json and merges.txt, in %s for the text encoder %s",
                        where, folder);
  }
  if (status == RDNA_OK)
    *out_file = file, *out_tokenizer = t;
  else
    rdna_gguf_close(file);
  return status;
}

/* ---- making one ---- */

static uint64_t allocated(rdna_device *device) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  return stats.allocated;
}

/* Which layers read the states that are asked for. */
static void find_layers(const rdna__language *l, int layers[RDNA__LANGUAGE_LAYERS]) {
  const rdna__language_reading *by = l->reading;
  int all = rdna_llm_get_info(l->llm)->layers;
  for (int i = 0; i < by->layer_count; i++) layers[i] = by->layers[i] < 0 ? all + 1 + by->layers[i] : by->layers[i];
}

static rdna_status open_embedder(rdna__language *l) {
  const rdna__language_reading *by = l->reading;
  int layers[RDNA__LANGUAGE_LAYERS];
  find_layers(l, layers);
  const rdna_llm_embedder_options options = {RDNA_LLM_EMBEDDER_OPTIONS_INIT,
                                             .pooling = RDNA_LLM_POOLING_NONE,
                                             .context = by->most,
                                             .batch = by->most,
                                             .sequences = 1,
                                             .kv_dtype = l->wide ? RDNA_F32 : RDNA_F16,
                                             .exact = l->wide,
                                             .layers = layers,
                                             .layer_count = by->layer_count};
  return rdna_llm_embedder_create(l->llm, &options, &l->embedder);
}

static rdna_status open_tower(rdna__language *l, const char *folder, const char *processor) {
  RDNA_TRY(rdna__model_open_tower(folder, processor, &l->tower_file));
  RDNA_TRY(rdna_vision_open(l->device, l->tower_file, &l->vision));
  return rdna_vision_check(l->vision, l->file);
}

static rdna_status open_all(rdna__language *l, const char *folder, const char *tokenizer, const char *processor) {
  RDNA_TRY(open_files(folder, tokenizer, &l->file, &l->tokenizer));
  uint64_t before = allocated(l->device);
  RDNA_TRY(rdna_llm_open(l->device, l->file, NULL, NULL, &l->llm));
  if (l->reading->sees) RDNA_TRY(open_tower(l, folder, processor));
  l->info.weights_bytes = allocated(l->device) - before;
  const rdna_llm_info *of = rdna_llm_get_info(l->llm);
  size_t tokens = rdna_tokenizer_get_info(l->tokenizer)->token_count;
  if (of->encoder || tokens > (size_t)of->vocabulary)
    return rdna__fail(RDNA_BAD_DATA, "a %s with %d tokens, of which the tokenizer has %zu, reads no texts of pictures",
                      of->architecture, of->vocabulary, tokens);
  if (!l->reading->sees) RDNA_TRY(open_embedder(l));
  l->info.width = of->width * l->reading->layer_count;
  return RDNA_OK;
}

rdna_status rdna__language_create(rdna_device *device, const char *folder, const char *tokenizer, const char *processor,
                                  const rdna__language_reading *reading, rdna_dtype dtype, rdna__language **out) {
  rdna__language *l = calloc(1, sizeof *l);
  if (!l) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text encoder");
  l->reading = reading;
  l->device = rdna_device_retain(device);
  l->wide = dtype == RDNA_F32;
  rdna_status status = rdna__annotate(open_all(l, folder, tokenizer, processor), "%s", folder);
  if (status == RDNA_OK)
    *out = l;
  else
    rdna__language_release(l);
  return status;
}

void rdna__language_release(rdna__language *l) {
  if (!l) return;
  rdna_llm_embedder_release(l->embedder);
  rdna_llm_release(l->llm);
  rdna_vision_release(l->vision);
  rdna_gguf_close(l->tower_file);
  rdna_tokenizer_close(l->tokenizer);
  rdna_gguf_close(l->file);
  rdna_device_release(l->device);
  free(l);
}

const rdna__language_info *rdna__language_get_info(const rdna__language *l) { return &l->info; }

/* ---- texts ---- */

/* |*out|, the caller's to free, is the text with what stands around it, and with places for so many pictures. */
static rdna_status frame_text(const rdna__language_reading *by, int pictures, const char *text, char **out) {
  size_t room = strlen(by->before) + strlen(text) + strlen(by->after) + 1, at;
  if (pictures > 1) room += (size_t)pictures * (strlen(by->next) + 8);
  *out = malloc(room);
  if (!*out) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text");
  at = (size_t)snprintf(*out, room, "%s", by->before);
  for (int i = 1; i < pictures; i++) at += (size_t)snprintf(*out + at, room - at, "Picture %d: %s", i + 1, by->next);
  snprintf(*out + at, room - at, "%s%s", text, by->after);
  return RDNA_OK;
}

/* |tokens| of that. */
static rdna_status read_text(const rdna_tokenizer *tokenizer, const rdna__language_reading *by, const char *text,
                             rdna_tokens *tokens) {
  char *whole;
  RDNA_TRY(frame_text(by, 0, text, &whole));
  rdna_status status = rdna_tokenizer_encode(tokenizer, whole, strlen(whole), RDNA_ENCODE_PARSE_SPECIAL, tokens);
  free(whole);
  return status;
}

static int32_t kept(const rdna__language_reading *by, const rdna_tokens *tokens) {
  return tokens->count < (size_t)by->most ? (int32_t)tokens->count : by->most;
}

/* |ids| (most), of the text's tokens what is kept, and what fills the rest. */
static rdna_status fill(const rdna_tokenizer *tokenizer, const rdna__language_reading *by, const rdna_tokens *tokens,
                        int32_t *ids) {
  rdna_tokens filler = {0};
  int32_t count = kept(by, tokens);
  memcpy(ids, tokens->ids, (size_t)count * sizeof *ids);
  if (!by->filler) return RDNA_OK;
  RDNA_TRY(rdna_tokenizer_encode(tokenizer, by->filler, strlen(by->filler), RDNA_ENCODE_PARSE_SPECIAL, &filler));
  for (int32_t i = count; i < by->most && filler.count == 1; i++) ids[i] = filler.ids[0];
  size_t found = filler.count;
  rdna_tokens_deinit(&filler);
  if (found == 1) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the tokenizer has no token %s, by which texts are filled up", by->filler);
}

static rdna_status embed(rdna__language *l, const rdna_tokens *tokens, int32_t *ids, float *states, float *out_states,
                         int *out_tokens) {
  const rdna__language_reading *by = l->reading;
  int32_t text = kept(by, tokens), count = by->filler ? by->most : text;
  size_t width = (size_t)l->info.width;
  RDNA_TRY(fill(l->tokenizer, by, tokens, ids));
  if (text <= by->dropped)
    return rdna__fail(RDNA_BAD_DATA, "what stands around texts has %d tokens, not above %d", (int)text, by->dropped);
  const rdna_llm_text read = {.tokens = ids, .count = count, .filling = count - text};
  RDNA_TRY(rdna_llm_embed(l->embedder, &read, 1, states));
  *out_tokens = count - by->dropped;
  memcpy(out_states, states + (size_t)by->dropped * width, (size_t)*out_tokens * width * sizeof *states);
  return RDNA_OK;
}

/* ---- texts with pictures ---- */

typedef struct seen {
  rdna__shown shown[RDNA__LANGUAGE_PICTURES];
  size_t count;
} seen;

static size_t tokens_of(const seen *s) {
  size_t sum = 0;
  for (size_t i = 0; i < s->count; i++) sum += (size_t)rdna__shown_tokens(&s->shown[i]);
  return sum;
}

static rdna_status open_cache(const rdna__language *l, int tokens, rdna_llm_cache **out) {
  int layers[RDNA__LANGUAGE_LAYERS];
  find_layers(l, layers);
  const rdna_llm_cache_options options = {RDNA_LLM_CACHE_OPTIONS_INIT,
                                          .context = tokens,
                                          .sequences = 1,
                                          .batch = tokens < PASS ? tokens : PASS,
                                          .logits = tokens < PASS ? tokens : PASS,
                                          .kv_dtype = l->wide ? RDNA_F32 : RDNA_F16,
                                          .exact = l->wide,
                                          .gives = RDNA_LLM_GIVES_STATES,
                                          .layers = layers,
                                          .layer_count = l->reading->layer_count};
  return rdna_llm_cache_create(l->llm, &options, out);
}

/* |out_states| (count - dropped, width) of the first |count| tokens, by passes that are text or the picture's. */
static rdna_status read_passes(const rdna__language *l, rdna_llm_cache *cache, rdna_llm_sequence *sequence,
                               const rdna_tokens *tokens, size_t count, seen *s, float *out_states) {
  const size_t width = (size_t)l->info.width, dropped = (size_t)l->reading->dropped;
  for (size_t at = 0, end; at < count; at = end) {
    const rdna__shown *of = rdna__shown_at(s->shown, s->count, at);
    end = rdna__shown_until(s->shown, s->count, at, count);
    if (end - at > PASS) end = at + PASS;
    const rdna_llm_part part = {.sequence = sequence,
                                .tokens = tokens->ids + at,
                                .count = (int32_t)(end - at),
                                .logits = (int32_t)(end - at),
                                .picture = of ? &of->picture : NULL,
                                .first = of ? (int32_t)(at - of->at) : 0};
    const float *given;
    RDNA_TRY(rdna_llm_step(cache, &part, 1, &given));
    for (size_t i = at > dropped ? at : dropped; i < end; i++)
      memcpy(out_states + (i - dropped) * width, given + (i - at) * width, width * sizeof *given);
  }
  return RDNA_OK;
}

/* What is behind |most|, of which the pictures' tokens are not counted, is cut. */
static rdna_status read_seen(const rdna__language *l, const rdna_tokens *tokens, seen *s, float *out_states,
                             int *out_tokens) {
  const rdna__language_reading *by = l->reading;
  rdna_llm_cache *cache;
  rdna_llm_sequence *sequence = NULL;
  const rdna__shown *last = &s->shown[s->count - 1];
  size_t most = (size_t)by->most - s->count + tokens_of(s);
  size_t count = tokens->count < most ? tokens->count : most;
  if (count <= (size_t)by->dropped || last->at + (size_t)rdna__shown_tokens(last) > count)
    return rdna__fail(RDNA_BAD_DATA, "what stands around texts has %zu tokens, not above %d", count, by->dropped);
  RDNA_TRY(open_cache(l, (int)count, &cache));
  rdna_status status = rdna_llm_sequence_create(cache, &sequence);
  if (status == RDNA_OK) status = read_passes(l, cache, sequence, tokens, count, s, out_states);
  rdna_llm_sequence_release(sequence);
  rdna_llm_cache_release(cache);
  *out_tokens = (int)count - by->dropped;
  return status;
}

static rdna_status encode_seen(rdna__language *l, const char *text, const rdna__language_picture *pictures, int count,
                               float *out_states, int *out_tokens) {
  seen s = {.count = (size_t)count};
  for (int i = 0; i < count; i++) s.shown[i].height = pictures[i].height, s.shown[i].width = pictures[i].width;
  rdna_tokens tokens = {0};
  char *whole;
  RDNA_TRY(frame_text(l->reading, count, text, &whole));
  rdna_status status = rdna__vision_encode(l->vision, l->tokenizer, whole, strlen(whole), RDNA_ENCODE_PARSE_SPECIAL,
                                           s.shown, s.count, &tokens);
  for (int i = 0; i < count && status == RDNA_OK; i++) {
    const rdna__language_picture *p = &pictures[i];
    status = rdna__shown_take(&s.shown[i], l->vision, p->pixels, p->height, p->width, &tokens);
    if (status == RDNA_OK) status = rdna__shown_see(&s.shown[i], l->vision);
  }
  if (status == RDNA_OK) status = read_seen(l, &tokens, &s, out_states, out_tokens);
  for (int i = 0; i < count; i++) rdna__shown_deinit(&s.shown[i]);
  rdna_tokens_deinit(&tokens);
  free(whole);
  return status;
}

rdna_status rdna__language_room(const rdna__language *l, const rdna__language_picture *pictures, int count,
                                int *out_tokens) {
  *out_tokens = l->reading->most - l->reading->dropped;
  for (int i = 0; i < count; i++) {
    rdna_llm_picture picture = {0};
    RDNA_TRY(rdna_vision_measure(l->vision, pictures[i].height, pictures[i].width, &picture));
    *out_tokens += picture.height * picture.width;
  }
  return RDNA_OK;
}

rdna_status rdna__language_encode(rdna__language *l, const char *text, const rdna__language_picture *pictures,
                                  int count, float *out_states, int *out_tokens) {
  if (count) return encode_seen(l, text, pictures, count, out_states, out_tokens);
  size_t most = (size_t)l->reading->most;
  rdna_tokens tokens = {0};
  RDNA_TRY(read_text(l->tokenizer, l->reading, text, &tokens));
  float *states = malloc(most * (size_t)l->info.width * sizeof *states);
  int32_t *ids = malloc(most * sizeof *ids);
  rdna_status status = states && ids ? embed(l, &tokens, ids, states, out_states, out_tokens)
                                     : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the states of a text");
  free(states);
  free(ids);
  rdna_tokens_deinit(&tokens);
  return status;
}

/* The frame's tokens are not the text's. */
rdna_status rdna__language_tokens(const char *folder, const char *tokenizer, const rdna__language_reading *by,
                                  const char *text, size_t *out_count, size_t *out_read) {
  rdna_gguf *file;
  rdna_tokenizer *t;
  RDNA_TRY(open_files(folder, tokenizer, &file, &t));
  rdna_tokens frame = {0}, whole = {0};
  rdna_status status = read_text(t, by, "", &frame);
  if (status == RDNA_OK) status = read_text(t, by, text, &whole);
  size_t around = frame.count < whole.count ? frame.count : whole.count;
  *out_count = whole.count - around;
  *out_read = whole.count <= (size_t)by->most ? *out_count : (size_t)by->most > around ? (size_t)by->most - around : 0;
  rdna_tokens_deinit(&frame);
  rdna_tokens_deinit(&whole);
  rdna_tokenizer_close(t);
  rdna_gguf_close(file);
  return status;
}
