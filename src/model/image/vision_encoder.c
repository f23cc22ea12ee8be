/* CLIP's encoder of pictures (CLIPVisionModelWithProjection of transformers): patches and one token more, which is to
 * say what all of them show, with positions, a norm, and layers (clip_layers.c) in which all see each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/clip_layers.h"
#include "model/vision/resize.h"
#include "rdna/image.h"
#include "rdna/op.h"

enum { MOST_SIDE = 1 << 14 };

/* Of colours from 0 to 1, as all of CLIP were trained. */
static const double mean[] = {0.48145466, 0.4578275, 0.40821073}, deviation[] = {0.26862954, 0.26130258, 0.27577711};

struct rdna_image_vision_encoder {
  rdna__network network;
  rdna_image_vision_encoder_info info;
  rdna__clip_shape shape;
  rdna_tensor whole, patches, positions; /* (width), (width, 3 patch patch), (tokens, width) */
  rdna__clip_affine before, after;
  rdna__clip_layer *layers;
  rdna_tensor projection;
};

/* ---- loading ---- */

static rdna_status read_settings(rdna_image_vision_encoder *e, const json_t *config) {
  const char *kind = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
  const char *activation;
  rdna__clip_shape *s = &e->shape;
  int channels;
  if (!kind || strcmp(kind, "CLIPVisionModelWithProjection") != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "the architecture is '%.80s'; CLIPVisionModelWithProjection is known",
                      kind ? kind : "");
  RDNA_TRY(rdna__setting_text(config, "hidden_act", "quick_gelu", &activation));
  s->quick = strcmp(activation, "quick_gelu") == 0;
  if (!s->quick && strcmp(activation, "gelu") != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "the setting 'hidden_act' is '%.80s'; quick_gelu and gelu are known",
                      activation);
  RDNA_TRY(rdna__setting_number(config, "layer_norm_eps", 1e-5, 0, 1, &s->epsilon));
  RDNA_TRY(rdna__setting_whole(config, "hidden_size", 768, 1, 1 << 14, &s->width));
  RDNA_TRY(rdna__setting_whole(config, "intermediate_size", 3072, 1, 1 << 16, &s->hidden));
  RDNA_TRY(rdna__setting_whole(config, "num_attention_heads", 12, 1, 1 << 10, &s->heads));
  RDNA_TRY(rdna__setting_whole(config, "num_hidden_layers", 12, 1, 256, &e->info.layers));
  RDNA_TRY(rdna__setting_whole(config, "image_size", 224, 1, 1 << 12, &e->info.side));
  RDNA_TRY(rdna__setting_whole(config, "patch_size", 32, 1, 1 << 8, &e->info.patch));
  RDNA_TRY(rdna__setting_whole(config, "projection_dim", 512, 1, 1 << 14, &e->info.projected));
  RDNA_TRY(rdna__setting_whole(config, "num_channels", 3, 1, 64, &channels));
  int grid = e->info.side / e->info.patch;
  if (channels != 3 || s->width % s->heads != 0 || grid < 1 || grid > 256)
    return rdna__fail(RDNA_BAD_DATA, "pictures of %d channels, %d values for %d heads, %d patches a side", channels,
                      s->width, s->heads, grid);
  s->tokens = grid * grid + 1;
  e->info.tokens = s->tokens;
  e->info.width = s->width;
  return RDNA_OK;
}

static rdna_status load(rdna_image_vision_encoder *e, rdna__component *c) {
  RDNA_TRY(read_settings(e, c->settings));
  const int64_t width = e->shape.width, patch = e->info.patch, one[] = {width}, window[] = {width, 3, patch, patch};
  const int64_t places[] = {e->shape.tokens, width}, projection[] = {e->info.projected, width};
  const char *prefix = rdna__component_rank(c, "", "embeddings.class_embedding") >= 0 ? "" : "vision_model";
  e->layers = calloc((size_t)e->info.layers, sizeof *e->layers);
  if (!e->layers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an image encoder");
  RDNA_TRY(rdna__component_load(c, prefix, "embeddings.class_embedding", RDNA_F32, 1, one, &e->whole));
  RDNA_TRY(rdna__component_load(c, prefix, "embeddings.patch_embedding.weight", RDNA_F32, 4, window, &e->patches));
  e->patches = rdna_tensor_contiguous(e->patches.data, RDNA_F32, 2, (const int64_t[]){width, 3 * patch * patch});
  RDNA_TRY(rdna__component_load(c, prefix, "embeddings.position_embedding.weight", RDNA_F32, 2, places, &e->positions));
  RDNA_TRY(rdna__clip_load_affine(c, prefix, "pre_layrnorm", e->shape.width, 0, &e->before));
  RDNA_TRY(rdna__clip_load_layers(c, prefix, &e->shape, e->info.layers, e->layers));
  RDNA_TRY(rdna__clip_load_affine(c, prefix, "post_layernorm", e->shape.width, 0, &e->after));
  RDNA_TRY(rdna__component_load(c, "", "visual_projection.weight", RDNA_F32, 2, projection, &e->projection));
  RDNA_TRY(rdna__component_leave(c, *prefix ? "vision_model.embeddings.position_ids" : "embeddings.position_ids"));
  e->info.weights_bytes = e->network.bytes;
  return rdna__component_check_all_read(c);
}

rdna_status rdna_image_vision_encoder_create(rdna_device *device, const char *folder,
                                             rdna_image_vision_encoder **out_encoder) {
  if (!device || !folder || !out_encoder)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_vision_encoder_create needs a device, a folder and a place");
  rdna_image_vision_encoder *e = calloc(1, sizeof *e);
  if (!e) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an image encoder");
  e->network = (rdna__network){.device = rdna_device_retain(device), .dtype = RDNA_F32};
  rdna__component c;
  rdna_status status = rdna__component_open(folder, "model", &e->network, &c);
  if (status == RDNA_OK) {
    status = rdna__annotate(load(e, &c), "%s", folder);
    rdna__component_close(&c);
  }
  if (status == RDNA_OK)
    *out_encoder = e;
  else
    rdna_image_vision_encoder_release(e);
  return status;
}

void rdna_image_vision_encoder_release(rdna_image_vision_encoder *e) {
  if (!e) return;
  rdna__network_deinit(&e->network);
  rdna_device_release(e->network.device);
  free(e->layers);
  free(e);
}

const rdna_image_vision_encoder_info *rdna_image_vision_encoder_get_info(const rdna_image_vision_encoder *e) {
  return &e->info;
}

/* ---- pixels ---- */

/* |out| (patches, 3 patch patch) of |pixels| (height, width, 3), whose middle is read. */
static void cut(const rdna_image_vision_encoder *e, const uint8_t *pixels, int height, int width, float *out) {
  int side = e->info.side, patch = e->info.patch, grid = side / patch;
  int top = (height - side) / 2, left = (width - side) / 2;
  for (int i = 0; i < grid * grid; i++)
    for (int c = 0; c < 3; c++)
      for (int y = 0; y < patch; y++)
        for (int x = 0; x < patch; x++) {
          long row = top + i / grid * patch + y, column = left + i % grid * patch + x;
          *out++ = (float)((pixels[(row * width + column) * 3 + c] / 255.0 - mean[c]) / deviation[c]);
        }
}

/* The shorter side becomes as long as the encoder's picture. */
static rdna_status look(const rdna_image_vision_encoder *e, const uint8_t *pixels, int height, int width, float *out) {
  int side = e->info.side;
  long high = height <= width ? side : (long)side * height / width,
       wide = height <= width ? (long)side * width / height : side;
  if (high > MOST_SIDE || wide > MOST_SIDE)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a picture of %d x %d is too narrow for an image encoder", width, height);
  uint8_t *resized = malloc(3 * (size_t)high * (size_t)wide);
  if (!resized) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture");
  rdna_status status = RDNA_OK;
  if (high == height && wide == width)
    memcpy(resized, pixels, 3 * (size_t)high * (size_t)wide);
  else
    status = rdna__resize(RDNA__FILTER_BICUBIC, pixels, height, width, (int)high, (int)wide, resized);
  if (status == RDNA_OK) cut(e, resized, (int)high, (int)wide, out);
  free(resized);
  return status;
}

/* ---- a pass ---- */

/* Rows from |first| on of the tokens. */
static rdna_tensor rows_of(const rdna_tensor *x, int64_t first, int64_t count) {
  rdna_tensor part = *x;
  part.shape[0] = count;
  part.data = (char *)x->data + rdna_dtype_bytes(RDNA_F32, first * x->stride[0]);
  return part;
}

/* x = the tokens before the first layer */
static rdna_status embed(const rdna_image_vision_encoder *e, rdna__clip_pass *p, const float *patches) {
  const rdna_scalar zero = rdna_scalar_real(0);
  int64_t count = e->shape.tokens - 1;
  const int64_t shape[] = {count, e->patches.shape[1]};
  rdna_tensor given, first = rows_of(&p->x, 0, 1), rest = rows_of(&p->x, 1, count), whole = e->whole;
  whole.rank = 2;
  whole.shape[1] = whole.shape[0];
  whole.shape[0] = whole.stride[1] = 1;
  whole.stride[0] = whole.shape[1];
  RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_F32, 2, shape, &given));
  RDNA_TRY(rdna_copy_to_device(p->stream, given.data, patches, (size_t)rdna_tensor_count(&given) * sizeof *patches));
  RDNA_TRY(rdna_op_linear(p->stream, &given, &e->patches, NULL, &rest));
  RDNA_TRY(rdna_op_copy(p->stream, &whole, &first));
  RDNA_TRY(rdna_op_zip(p->stream, RDNA_ZIP_ADD, &p->x, &e->positions, zero, zero, &p->x));
  return rdna__clip_norm(p, &e->before, &p->x, &p->x);
}

static rdna_status copy_out(const rdna__clip_pass *p, const rdna_tensor *from, float *to) {
  return rdna_copy_to_host(p->stream, to, from->data, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(from)));
}

static rdna_status run(const rdna_image_vision_encoder *e, rdna__clip_pass *p, const float *patches, float *vector,
                       float *states) {
  const int64_t projected[] = {1, e->info.projected};
  rdna_tensor out, first;
  RDNA_TRY(rdna__clip_prepare(p));
  RDNA_TRY(embed(e, p, patches));
  for (int i = 0; i < e->info.layers; i++) {
    if (i + 1 == e->info.layers && states) RDNA_TRY(copy_out(p, &p->x, states));
    RDNA_TRY(rdna__clip_layer_run(p, &e->layers[i]));
  }
  if (!vector) return RDNA_OK;
  first = rows_of(&p->x, 0, 1);
  RDNA_TRY(rdna__clip_norm(p, &e->after, &first, &first));
  RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_F32, 2, projected, &out));
  RDNA_TRY(rdna_op_linear(p->stream, &first, &e->projection, NULL, &out));
  return copy_out(p, &out, vector);
}

rdna_status rdna_image_vision_encoder_encode(rdna_image_vision_encoder *e, const uint8_t *pixels, int height, int width,
                                             float *out_vector, float *out_states) {
  if (!e || (pixels && (height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE)))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_vision_encoder_encode needs an encoder and a picture of up to %d a side", MOST_SIDE);
  size_t count = (size_t)(e->shape.tokens - 1) * (size_t)e->patches.shape[1];
  float *patches = calloc(count, sizeof *patches);
  if (!patches) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture");
  rdna_status status = pixels ? look(e, pixels, height, width, patches) : RDNA_OK;
  rdna__clip_pass p = {.shape = e->shape, .stream = rdna_device_default_stream(e->network.device), .count = 1};
  p.scratch = (rdna__scratch){.stream = p.stream, .holder = "an image encoder"};
  if (status == RDNA_OK) status = run(e, &p, patches, out_vector, out_states);
  rdna_status waited = rdna_stream_synchronize(p.stream);
  status = rdna__scratch_release(&p.scratch, status);
  free(patches);
  return status == RDNA_OK ? waited : status;
}
