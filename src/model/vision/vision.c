/* Towers: opened from a file, asked for the size of pictures, released. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/driver.h"
#include "model/vision/tower.h"
#include "rdna/kernel.h"

enum { MOST_SIDE = 1 << 14, MOST_RATIO = 200, MOST_LAYERS = 1 << 10, MOST_PATCH = 256, NAME = 96 };

static const rdna__vision_kind *const kinds[] = {&rdna__vision_gemma3, &rdna__vision_qwen25, &rdna__vision_qwen3};
enum { KINDS = sizeof kinds / sizeof *kinds };

static rdna_status find_kind(rdna_text name, const rdna__vision_kind **out) {
  char known[128] = "";
  for (int i = 0; i < KINDS; i++) {
    *out = kinds[i];
    if (rdna__text_is(name, kinds[i]->projector)) return RDNA_OK;
    snprintf(known + strlen(known), sizeof known - strlen(known), i ? ", %s" : "%s", kinds[i]->projector);
  }
  return rdna__fail(RDNA_UNSUPPORTED, "the tower's kind (clip.projector_type) is '%.*s'; known are %s", (int)name.size,
                    name.data, known);
}

/* ---- keys ---- */

static rdna_status read_colours(const rdna__weights *w, const char *key, double out[3]) {
  char name[NAME];
  float values[3] = {0};
  rdna_gguf_key found;
  snprintf(name, sizeof name, "clip.vision.%s", key);
  if (!rdna_gguf_find_key(w->file, name, &found) || found.count != 3)
    return rdna__fail(RDNA_BAD_DATA, "the model file has no key '%s' of three numbers", name);
  RDNA_TRY(rdna_gguf_read_f32(w->file, name, 0, 3, values));
  for (int i = 0; i < 3; i++) out[i] = values[i];
  return RDNA_OK;
}

/* What the file says of the activation, and of layers that are read before the last, is what is run. */
static rdna_status check_network(const rdna_vision *v) {
  static const struct {
    const char *key;
    rdna__nn_gate activation;
  } said[] = {{"use_gelu", RDNA__NN_GATE_GELU_TANH}, {"use_silu", RDNA__NN_GATE_SILU}};
  rdna_gguf_key found;
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    const bool own = v->kind->activation == said[i].activation;
    bool is = own;
    RDNA_TRY(rdna__key_flag(&v->weights, said[i].key, &is));
    if (is != own)
      return rdna__fail(RDNA_UNSUPPORTED, "the tower's 'clip.%s' is %s, and %s is known with %s alone", said[i].key,
                        is ? "true" : "false", v->kind->projector, own ? "true" : "false");
  }
  if (rdna_gguf_find_key(v->weights.file, "clip.vision.feature_layer", &found))
    return rdna__fail(RDNA_UNSUPPORTED,
                      "the tower gives states of layers before its last (clip.vision.feature_layer), "
                      "and %s is known with the last alone",
                      v->kind->projector);
  return RDNA_OK;
}

static rdna_status read_keys(rdna_vision *v) {
  rdna__weights *w = &v->weights;
  rdna_vision_info *info = &v->info;
  bool sees = true;
  RDNA_TRY(rdna__key_flag(w, "has_vision_encoder", &sees));
  if (!sees) return rdna__fail(RDNA_UNSUPPORTED, "this file has no tower for pictures (clip.has_vision_encoder)");
  rdna_text kind = {"", 0};
  RDNA_TRY(rdna__key_text(w, "projector_type", &kind));
  RDNA_TRY(rdna__key_text(w, "vision.projector_type", &kind));
  RDNA_TRY(find_kind(kind, &v->kind));
  strcpy(info->projector, v->kind->projector);
  RDNA_TRY(check_network(v));
  RDNA_TRY(rdna__key_count(w, "vision.block_count", 0, &info->layers));
  RDNA_TRY(rdna__key_count(w, "vision.embedding_length", 0, &info->width));
  RDNA_TRY(rdna__key_count(w, "vision.projection_dim", 0, &info->row));
  RDNA_TRY(rdna__key_count(w, "vision.patch_size", 0, &info->patch));
  RDNA_TRY(rdna__key_count(w, "vision.feed_forward_length", 0, &v->hidden));
  RDNA_TRY(rdna__key_count(w, "vision.attention.head_count", 0, &v->heads));
  RDNA_TRY(rdna__key_number(w, "vision.attention.layer_norm_epsilon", 0, &v->norms.norm_epsilon));
  RDNA_TRY(read_colours(w, "image_mean", v->mean));
  RDNA_TRY(read_colours(w, "image_std", v->deviation));
  v->norms.width = info->width;
  if (info->layers > MOST_LAYERS || info->patch > MOST_PATCH || info->width % v->heads != 0)
    return rdna__fail(RDNA_BAD_DATA, "a tower of %d layers, patches of %d pixels, and %d values for %d heads",
                      info->layers, info->patch, info->width, v->heads);
  for (int i = 0; i < 3; i++)
    if (!isfinite(v->mean[i]) || !(v->deviation[i] > 0 && isfinite(v->deviation[i])))
      return rdna__fail(RDNA_BAD_DATA, "a colour has the mean %g and the deviation %g", v->mean[i], v->deviation[i]);
  return RDNA_OK;
}

/* ---- tensors ---- */

static rdna_status load_norm(rdna_vision *v, int layer, const char *name, rdna__nn_norm *out) {
  char full[NAME];
  snprintf(full, sizeof full, "v.blk.%d.%s.weight", layer, name);
  RDNA_TRY(rdna__load_vector(&v->weights, full, v->info.width, &out->weight));
  snprintf(full, sizeof full, "v.blk.%d.%s.bias", layer, name);
  return v->norms.layer_norm ? rdna__load_vector(&v->weights, full, v->info.width, &out->bias) : RDNA_OK;
}

static rdna_status load_matrix(rdna_vision *v, int layer, const char *name, int rows, int columns,
                               rdna__matrix_weights *out) {
  char full[NAME];
  snprintf(full, sizeof full, "v.blk.%d.%s", layer, name);
  return rdna__load_linear(&v->weights, full, rows, columns, out);
}

/* Old files have the names of the two around the activation the other way round. */
static rdna_status load_ffn(rdna_vision *v, int layer, rdna__nn_ffn *ffn) {
  char full[NAME];
  rdna_gguf_tensor up;
  int width = v->info.width, hidden = v->hidden;
  snprintf(full, sizeof full, "v.blk.%d.ffn_up.weight", layer);
  bool turned = width != hidden && rdna_gguf_has_tensor(v->weights.file, full) &&
                rdna_gguf_get_tensor(v->weights.file, full, &up) == RDNA_OK && up.rank == 2 && up.shape[0] == width &&
                up.shape[1] == hidden;
  ffn->hidden = hidden;
  ffn->activation = v->kind->activation;
  if (v->kind->gated) RDNA_TRY(load_matrix(v, layer, "ffn_gate", hidden, width, &ffn->gate));
  RDNA_TRY(load_matrix(v, layer, turned ? "ffn_down" : "ffn_up", hidden, width, &ffn->up));
  return load_matrix(v, layer, turned ? "ffn_up" : "ffn_down", width, hidden, &ffn->down);
}

/* Newer files have q, k and v as one. */
static rdna_status load_qkv(rdna_vision *v, int i, rdna__vision_layer *layer) {
  rdna__matrix_weights *const parts[] = {&layer->q, &layer->k, &layer->v}, all;
  const char *const names[] = {"attn_q", "attn_k", "attn_v"};
  const int width = v->info.width;
  char full[NAME];
  snprintf(full, sizeof full, "v.blk.%d.attn_qkv.weight", i);
  if (!rdna_gguf_has_tensor(v->weights.file, full)) {
    for (int k = 0; k < 3; k++) RDNA_TRY(load_matrix(v, i, names[k], width, width, parts[k]));
    return RDNA_OK;
  }
  RDNA_TRY(load_matrix(v, i, "attn_qkv", 3 * width, width, &all));
  for (int k = 0; k < 3; k++) {
    *parts[k] = all;
    parts[k]->weight = rdna__nn_rows(&all.weight, (int64_t)k * width, width);
    if (all.bias.data) parts[k]->bias = rdna__nn_rows(&all.bias, (int64_t)k * width, width);
  }
  return RDNA_OK;
}

static rdna_status load_layer(rdna_vision *v, int i) {
  rdna__vision_layer *layer = &v->layers[i];
  int width = v->info.width;
  layer->windowed = v->period > 0 && (i + 1) % v->period != 0;
  RDNA_TRY(load_norm(v, i, "ln1", &layer->attention_norm));
  RDNA_TRY(load_norm(v, i, "ln2", &layer->ffn_norm));
  RDNA_TRY(load_qkv(v, i, layer));
  RDNA_TRY(load_matrix(v, i, "attn_out", width, width, &layer->out));
  return load_ffn(v, i, &layer->ffn);
}

/* What patches are multiplied by, as f32: they are pixels, and few. */
static rdna_status load_patches(rdna_vision *v) {
  rdna__weights *w = &v->weights;
  int64_t width = v->info.width, patch = v->info.patch, shape[] = {width, 3, patch, patch}, count = 3 * patch * patch;
  float *values, *more = NULL;
  RDNA_TRY(rdna__read_values(w, "v.patch_embd.weight", 4, shape, &values));
  rdna_status status = RDNA_OK;
  /* of a second frame, which is the same where there is one picture */
  if (rdna_gguf_has_tensor(w->file, "v.patch_embd.weight.1"))
    status = rdna__read_values(w, "v.patch_embd.weight.1", 4, shape, &more);
  for (int64_t i = 0; more && i < width * count; i++) values[i] += more[i];
  if (status == RDNA_OK) status = rdna__put_vector(w, values, width * count, &v->patches);
  free(values);
  free(more);
  RDNA_TRY(status);
  v->patches = rdna__nn_matrix(v->patches.data, width, count);
  rdna__weights_count(w, (uint64_t)(width * count) * sizeof(float), width * count);
  if (!rdna_gguf_has_tensor(w->file, "v.patch_embd.bias")) return RDNA_OK;
  return rdna__load_vector(w, "v.patch_embd.bias", width, &v->patch_bias);
}

static rdna_status load(rdna_vision *v) {
  rdna__weights *w = &v->weights;
  const rdna_kernel *kernel; /* a GPU that has no code should say so before anything is read */
  rdna_text name;
  RDNA_TRY(rdna_kernel_get(w->device, "rms_norm_f32", &kernel));
  RDNA_TRY(rdna_gguf_get_text(w->file, "general.architecture", &name));
  if (!rdna__text_is(name, "clip"))
    return rdna__fail(RDNA_UNSUPPORTED, "the file's architecture is '%.*s'; towers for pictures have 'clip'",
                      (int)name.size, name.data);
  strcpy(w->architecture, "clip");
  w->in_place = rdna__device_driver(w->device)->code_format == RDNA__CODE_HOST;
  RDNA_TRY(read_keys(v));
  RDNA_TRY(load_patches(v));
  v->layers = calloc((size_t)v->info.layers, sizeof *v->layers);
  if (!v->layers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d layers", v->info.layers);
  RDNA_TRY(v->kind->load(v));
  for (int i = 0; i < v->info.layers; i++) RDNA_TRY(load_layer(v, i));
  RDNA_TRY(rdna__check_all_read(w, v->info.layers, false));
  v->info.weight_bytes = w->bytes;
  return rdna__weights_arrive(w);
}

rdna_status rdna_vision_open(rdna_device *device, const rdna_gguf *file, rdna_vision **out_vision) {
  if (!device || !file || !out_vision)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_vision_open needs a device, a file and a place for the tower");
  rdna_vision *v = calloc(1, sizeof *v);
  if (!v) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a tower");
  rdna__strmap read = {0};
  v->weights = (rdna__weights){.device = rdna_device_retain(device), .file = file, .read = &read};
  rdna_status status = load(v);
  rdna__strmap_deinit(&read);
  v->weights.file = NULL;
  v->weights.read = NULL;
  if (status == RDNA_OK)
    *out_vision = v;
  else
    rdna_vision_release(v);
  return status;
}

void rdna_vision_release(rdna_vision *v) {
  if (!v) return;
  rdna__weights_free(&v->weights);
  rdna_device_release(v->weights.device);
  free(v->layers);
  free(v);
}

const rdna_vision_info *rdna_vision_get_info(const rdna_vision *vision) { return &vision->info; }

rdna_status rdna_vision_check(const rdna_vision *v, const rdna_gguf *model) {
  if (!v || !model) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_vision_check needs a tower and a model's file");
  rdna_text name;
  char key[NAME];
  rdna_gguf_key found;
  uint64_t width, deepstack = 0;
  bool is_for = false;
  RDNA_TRY(rdna_gguf_get_text(model, "general.architecture", &name));
  for (int i = 0; i < 4 && v->kind->architectures[i]; i++) is_for |= rdna__text_is(name, v->kind->architectures[i]);
  if (!is_for)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "the tower is of the kind %s, which is for models of %s; this one is a %.*s", v->info.projector,
                      v->kind->architectures[0], (int)name.size, name.data);
  snprintf(key, sizeof key, "%.*s.embedding_length", (int)name.size, name.data);
  RDNA_TRY(rdna_gguf_get_u64(model, key, &width));
  snprintf(key, sizeof key, "%.*s.n_deepstack_layers", (int)name.size, name.data);
  if (rdna_gguf_find_key(model, key, &found)) RDNA_TRY(rdna_gguf_get_u64(model, key, &deepstack));
  if (width != (uint64_t)v->info.row)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "the tower gives rows of %d values, and the model reads %llu: it is another's", v->info.row,
                      (unsigned long long)width);
  if (deepstack == (uint64_t)v->info.deepstack) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT,
                    "the tower has rows for %d of the model's layers, and the model (%s) reads those of %llu: it is "
                    "another's",
                    v->info.deepstack, key, (unsigned long long)deepstack);
}

/* ---- pictures ---- */

rdna_status rdna_vision_measure(const rdna_vision *v, int height, int width, rdna_llm_picture *out_picture) {
  if (!v || !out_picture) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_vision_measure needs a tower and a picture");
  int64_t shorter = height < width ? height : width, longer = height < width ? width : height;
  if (shorter < 1 || longer > MOST_SIDE || longer >= MOST_RATIO * shorter)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "a picture of %d x %d pixels; sides are from 1 to %d, the longer under %d times the other", width,
                      height, MOST_SIDE, MOST_RATIO);
  return v->kind->measure(v, height, width, out_picture);
}

rdna_status rdna__vision_fit(const rdna_vision *v, const rdna_llm_picture *picture, const uint8_t *pixels, int height,
                             int width, uint8_t **out, int *out_height, int *out_width) {
  *out_height = picture->height * v->side * v->info.patch, *out_width = picture->width * v->side * v->info.patch;
  *out = malloc((size_t)*out_height * (size_t)*out_width * 3);
  if (!*out) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture of %d x %d", *out_width, *out_height);
  rdna_status status = rdna__resize(v->kind->filter, pixels, height, width, *out_height, *out_width, *out);
  if (status != RDNA_OK) free(*out);
  return status;
}

rdna_status rdna_vision_see(rdna_vision *v, const uint8_t *pixels, int height, int width, float *out_rows) {
  rdna_llm_picture picture = {0};
  uint8_t *fitting;
  if (!v || !pixels || !out_rows)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_vision_see needs a tower, pixels and a place for rows");
  RDNA_TRY(rdna_vision_measure(v, height, width, &picture));
  RDNA_TRY(rdna__vision_fit(v, &picture, pixels, height, width, &fitting, &height, &width));
  rdna_status status = rdna__vision_run(v, &picture, fitting, out_rows);
  free(fitting);
  return status;
}
