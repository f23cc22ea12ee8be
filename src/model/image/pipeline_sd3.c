/* Stable Diffusion 3 and 3.5: states of two CLIPs side by side are followed by those of T5, and the CLIPs' vectors
 * stand side by side, too. Where the folder leaves T5 out, it says zeros:
 *
 *     states  | CLIP-L, CLIP-G, zeros | a row for each of CLIP's tokens
 *             | T5                    | … of T5's                                    */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/pipeline_flux.h"

/* As all were trained and published. */
enum { T5_TOKENS = 256, CLIP_TOKENS = 77, CLIP_ENDS = 2, CLIPS = RDNA__PIPELINE_ENCODERS };

/* ---- opening ---- */

/* Whether model_index.json leaves T5 out: it does not name it, or says it to be null. A file of it counts. */
static rdna_status read_index(rdna_image_model *m) {
  json_t *index;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, "model_index.json", &index, NULL));
  const json_t *t5 = json_object_get(index, "text_encoder_3");
  m->leaves_t5 = !m->t5_file && (!t5 || json_is_null(t5) || json_is_null(json_array_get(t5, 1)));
  json_decref(index);
  return RDNA_OK;
}

/* What diffusers' folders of the published models draw with; those of large and its Turbo say nothing that differs. */
static void describe(rdna_image_model *m, const rdna__flux_settings *set) {
  bool medium = false;
  for (int i = 0; i < set->doubles; i++) medium |= set->dual[i];
  m->info.family = medium        ? "Stable Diffusion 3.5 medium"
                   : set->normed ? "Stable Diffusion 3.5 large"
                                 : "Stable Diffusion 3";
  m->info.guidance = medium ? 4.5 : set->normed ? 3.5 : 7;
  m->info.steps = medium ? 40 : 28;
}

static rdna_status fit(rdna_image_model *m, const char *pipeline) {
  (void)pipeline; /* both draw alike */
  rdna__flux_settings set;
  rdna__autoencoder_settings of;
  RDNA_TRY(rdna__flux_read_parts(m, &set, &of));
  RDNA_TRY(read_index(m));
  if (set.kind != RDNA__FLUX_SD3 || of.kind != RDNA__AUTOENCODER_KL)
    return rdna__fail(RDNA_BAD_DATA, "%s: its transformer or autoencoder is of another model than Stable Diffusion 3",
                      m->folder);
  int patch = set.patch, channels = of.latent_channels * patch * patch;
  if (set.in_channels != channels || set.out_channels != channels)
    return rdna__fail(RDNA_BAD_DATA,
                      "%s: the transformer reads %d values of a token and writes %d, and the autoencoder has %d "
                      "channels, of which %d are asked for",
                      m->folder, set.in_channels, set.out_channels, of.latent_channels, channels);
  m->info = (rdna_image_model_info){.factor = 1 << (of.levels - 1),
                                    .latent_channels = of.latent_channels,
                                    .sampler = "euler",
                                    .own_sampler = true,
                                    .spacing = "simple"};
  describe(m, &set);
  m->text_tokens = T5_TOKENS;
  m->blocks = set.doubles;
  m->text_width = set.text_width;
  m->pooled_width = set.pooled_width;
  m->info.multiple = patch * m->info.factor;
  m->info.width = m->info.height = set.sample / patch * m->info.multiple;
  m->picture_dtype = of.upcast && m->dtype == RDNA_F16 ? RDNA_F32 : m->dtype;
  return RDNA_OK;
}

/* ---- texts ---- */

/* Where the values of CLIP |which| begin in a state, and in a vector. */
static rdna_status place_of(rdna_image_model *m, int which, size_t *out_state, size_t *out_vector) {
  int width = 0, pooled = 0;
  for (int i = 0; i <= which; i++) {
    const rdna_image_text_encoder_info *info = rdna_image_text_encoder_get_info(m->encoder[i]);
    *out_state = (size_t)width;
    *out_vector = (size_t)pooled;
    width += info->width;
    pooled += info->pooled;
    if (info->positions != CLIP_TOKENS)
      return rdna__fail(RDNA_BAD_DATA, "%s: text encoder %d reads %d tokens, not %d", m->folder, i + 1, info->positions,
                        CLIP_TOKENS);
  }
  if (width <= m->text_width && (which + 1 == CLIPS ? pooled == m->pooled_width : pooled <= m->pooled_width))
    return RDNA_OK;
  return rdna__fail(
      RDNA_BAD_DATA,
      "%s: the first %d of two CLIPs make %d values of a token and %d of a text, and the transformer reads "
      "up to %d and %d",
      m->folder, which + 1, width, pooled, m->text_width, m->pooled_width);
}

/* CLIP |which|'s part of text |i|. */
static rdna_status encode_clip(rdna_image_model *m, int which, const char *text, int i, rdna__image_texts *t) {
  rdna_image_text_encoder *e = m->encoder[which];
  const rdna_image_text_encoder_info *info = rdna_image_text_encoder_get_info(e);
  int32_t ids[CLIP_TOKENS];
  size_t state, vector, width = (size_t)info->width, row = (size_t)t->width;
  RDNA_TRY(place_of(m, which, &state, &vector));
  float *states = malloc(CLIP_TOKENS * width * sizeof *states);
  if (!states) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the states of a text");
  float *pooled = t->pooled + (size_t)(i * t->pooled_width) + vector;
  rdna_status status = rdna_image_text_encoder_tokens(e, text, strlen(text), ids, NULL);
  if (status == RDNA_OK) status = rdna_image_text_encoder_encode(e, ids, 1, 1, false, states, pooled);
  float *to = t->states + (size_t)(i * t->tokens) * row + state;
  for (size_t k = 0; k < CLIP_TOKENS && status == RDNA_OK; k++)
    memcpy(to + k * row, states + k * width, width * sizeof *states);
  free(states);
  return status;
}

static rdna_status encode_t5(rdna_image_model *m, const char *text, int i, rdna__image_texts *t) {
  int32_t ids[T5_TOKENS];
  int width = rdna_image_t5_get_info(m->t5)->width;
  if (width != t->width)
    return rdna__fail(RDNA_BAD_DATA, "%s: T5 makes %d values of a token, and the transformer reads %d", m->folder,
                      width, t->width);
  float *to = t->states + (size_t)(i * t->tokens + CLIP_TOKENS) * (size_t)width;
  RDNA_TRY(rdna_image_t5_tokens(m->t5, text, strlen(text), T5_TOKENS, ids, NULL));
  return rdna_image_t5_encode(m->t5, ids, T5_TOKENS, to);
}

static rdna_status encode(rdna_image_model *m, const rdna_image_request *r, bool guided, rdna__image_texts *t) {
  const char *const both[] = {r->negative ? r->negative : "", r->prompt ? r->prompt : ""};
  const char *const *texts = guided ? both : both + 1;
  int tokens = CLIP_TOKENS + T5_TOKENS;
  *t = (rdna__image_texts){.count = 1 + guided, .tokens = tokens, .lengths = {tokens, tokens}};
  t->width = m->text_width;
  t->pooled_width = m->pooled_width;
  t->states = calloc((size_t)(t->count * tokens) * (size_t)t->width, sizeof *t->states);
  t->pooled = calloc((size_t)t->count * (size_t)t->pooled_width, sizeof *t->pooled);
  if (!t->states || !t->pooled) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the states of texts");
  for (int k = 0; k < CLIPS; k++) {
    RDNA_TRY(rdna__pipeline_need_encoder(m, k));
    for (int i = 0; i < t->count; i++) RDNA_TRY(encode_clip(m, k, texts[i], i, t));
  }
  if (r->frugal) rdna__pipeline_drop_encoders(m);
  if (m->leaves_t5) return RDNA_OK;
  RDNA_TRY(rdna__flow_need_t5(m, "text_encoder_3", "tokenizer_3"));
  for (int i = 0; i < t->count; i++) RDNA_TRY(encode_t5(m, texts[i], i, t));
  return RDNA_OK;
}

/* Of T5's, or of CLIP's where that is all that reads. */
static rdna_status count_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  int32_t ids[CLIP_TOKENS];
  if (!m->leaves_t5)
    return rdna__flow_t5_tokens(m, "text_encoder_3", "tokenizer_3", text, T5_TOKENS, out_count, out_read);
  RDNA_TRY(rdna__pipeline_need_encoder(m, 0));
  size_t state, vector;
  RDNA_TRY(place_of(m, 0, &state, &vector));
  RDNA_TRY(rdna_image_text_encoder_tokens(m->encoder[0], text, strlen(text), ids, out_count));
  *out_read = *out_count < CLIP_TOKENS - CLIP_ENDS ? *out_count : CLIP_TOKENS - CLIP_ENDS;
  return RDNA_OK;
}

static const char *const pipelines[] = {"StableDiffusion3Pipeline", "StableDiffusion3Img2ImgPipeline", NULL};
const rdna__image_family rdna__sd3_family = {.pipelines = pipelines,
                                             .has_t5 = true,
                                             .clips = CLIPS,
                                             .skips = true,
                                             .levels = FLOW_LEVELS_TRAINED,
                                             .fit = fit,
                                             .encode = encode,
                                             .count_tokens = count_tokens,
                                             .need = rdna__flux_need,
                                             .weights_of = rdna__flux_weights_of,
                                             .release = rdna__flux_release,
                                             .ask = rdna__flux_ask};
