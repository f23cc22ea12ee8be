/* FLUX.1 in place of Stable Diffusion's U-Net and schedule: CLIP gives the text's vector and T5 the states of its
 * tokens, and the transformer is asked once a step, as guidance was distilled into it (dev) or is none (schnell). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/autoencoder.h"
#include "model/image/component.h"
#include "model/image/flux.h"
#include "model/image/pipeline.h"
#include "model/image/pipeline_flux.h"

enum { SIDE = 128, SCHNELL_TOKENS = 256, DEV_TOKENS = 512, PATCH = 2 }; /* as both were trained and published */

/* ---- opening ---- */

rdna_status rdna__flux_read_parts(rdna_image_model *m, rdna__flux_settings *flux,
                                  rdna__autoencoder_settings *autoencoder) {
  json_t *json;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, "scheduler/scheduler_config.json", &json, &m->schedule));
  json_decref(json);
  RDNA_TRY(rdna__flow_open_settings(m, m->transformer_file, "transformer", &json));
  const char *where = m->transformer_file ? m->transformer_file : m->folder;
  rdna_status status = rdna__annotate(rdna__flux_settings_read(json, flux), "the transformer's settings in %s", where);
  json_decref(json);
  if (status != RDNA_OK) return status;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, "vae/config.json", &json, NULL));
  status = rdna__annotate(rdna__autoencoder_settings_read(json, autoencoder), "%s/vae/config.json", m->folder);
  json_decref(json);
  if (status == RDNA_OK && autoencoder->out_channels != 3)
    status = rdna__fail(RDNA_UNSUPPORTED, "%s: the autoencoder makes %d channels, not 3", m->folder,
                        autoencoder->out_channels);
  if (status != RDNA_OK) return status;
  rdna_image_flow *flow; /* of two steps: one alone cannot end where some schedules do */
  status = rdna__annotate(rdna_image_flow_create(m->schedule, 2, 1, &flow), "%s", m->folder);
  if (status == RDNA_OK) rdna_image_flow_release(flow);
  return status;
}

static rdna_status fit(rdna_image_model *m, const char *pipeline) {
  m->looks = strcmp(pipeline, "FluxKontextPipeline") == 0;
  rdna__flux_settings flux;
  rdna__autoencoder_settings of;
  RDNA_TRY(rdna__flux_read_parts(m, &flux, &of));
  if (flux.kind != RDNA__FLUX_1 || of.kind != RDNA__AUTOENCODER_KL)
    return rdna__fail(RDNA_BAD_DATA, "%s: its transformer or autoencoder is of another model than FLUX.1", m->folder);
  int channels = flux.in_channels / (PATCH * PATCH), factor = 1 << (of.levels - 1);
  m->inpaints = channels == 2 * of.latent_channels + factor * factor && !m->looks;
  if ((channels != of.latent_channels && !m->inpaints) || flux.out_channels != PATCH * PATCH * of.latent_channels)
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "%s: the transformer reads %d values of a token and writes %d, and the autoencoder has %d "
        "channels, which %d values are; models that read another picture than Fill's and Kontext's are not known",
        m->folder, flux.in_channels, flux.out_channels, of.latent_channels, PATCH * PATCH * of.latent_channels);
  m->encoders = 1;
  m->distilled = true;
  m->text_tokens = flux.guided ? DEV_TOKENS : SCHNELL_TOKENS;
  m->info = (rdna_image_model_info){.family = m->inpaints   ? "FLUX.1 Fill"
                                              : m->looks    ? "FLUX.1 Kontext"
                                              : flux.guided ? "FLUX.1 dev"
                                                            : "FLUX.1 schnell",
                                    .factor = factor,
                                    .latent_channels = of.latent_channels,
                                    .guidance = m->inpaints   ? 30
                                                : flux.guided ? 3.5
                                                              : 0,
                                    .steps = m->inpaints   ? 50
                                             : flux.guided ? 28
                                                           : 4,
                                    .sampler = "euler",
                                    .own_sampler = true,
                                    .spacing = "simple"};
  m->info.multiple = PATCH * m->info.factor;
  m->info.width = m->info.height = SIDE * m->info.factor;
  m->picture_dtype = of.upcast && m->dtype == RDNA_F16 ? RDNA_F32 : m->dtype;
  return RDNA_OK;
}

/* ---- parts ---- */

rdna_status rdna__flux_need(rdna_image_model *m, const rdna__image_texts *texts) {
  const char *where = m->transformer_file ? m->transformer_file : m->folder;
  rdna_image_flux *made = m->network;
  if (!made) RDNA_TRY(rdna__flux_create(m->device, where, "transformer", m->dtype, m->weights, m->loras, &made));
  m->network = made;
  const rdna_image_flux_info *info = rdna_image_flux_get_info(made);
  if (info->text_width == texts->width && info->pooled_width == texts->pooled_width) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA,
                    "%s: text encoders make %d values of a token and %d of a text, and the transformer reads %d and %d",
                    m->folder, texts->width, texts->pooled_width, info->text_width, info->pooled_width);
}

void rdna__flux_release(void *network) { rdna_image_flux_release(network); }

uint64_t rdna__flux_weights_of(const void *network) { return rdna_image_flux_get_info(network)->weights_bytes; }

/* ---- texts ---- */

/* The text's vector, by CLIP, which then leaves the device where that is asked for. */
static rdna_status encode_vector(rdna_image_model *m, const rdna_image_request *r, const char *prompt,
                                 rdna__image_texts *t) {
  RDNA_TRY(rdna__pipeline_need_encoder(m, 0));
  const rdna_image_text_encoder_info *info = rdna_image_text_encoder_get_info(m->encoder[0]);
  t->pooled_width = info->pooled;
  t->pooled = malloc((size_t)info->pooled * sizeof *t->pooled);
  int32_t *ids = malloc((size_t)info->positions * sizeof *ids);
  rdna_status status = t->pooled && ids
                           ? rdna_image_text_encoder_tokens(m->encoder[0], prompt, strlen(prompt), ids, NULL)
                           : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text");
  if (status == RDNA_OK) status = rdna_image_text_encoder_encode(m->encoder[0], ids, 1, 0, true, NULL, t->pooled);
  free(ids);
  if (r->frugal) rdna__pipeline_drop_encoders(m);
  return status;
}

static rdna_status encode(rdna_image_model *m, const rdna_image_request *r, bool guided, rdna__image_texts *t) {
  const char *prompt = r->prompt ? r->prompt : "";
  (void)guided; /* which of distilled models is false */
  *t = (rdna__image_texts){.count = 1, .tokens = m->text_tokens, .lengths = {m->text_tokens}};
  RDNA_TRY(encode_vector(m, r, prompt, t));
  RDNA_TRY(rdna__flow_need_t5(m, "text_encoder_2", "tokenizer_2"));
  t->width = rdna_image_t5_get_info(m->t5)->width;
  t->states = malloc((size_t)t->tokens * (size_t)t->width * sizeof *t->states);
  int32_t *ids = malloc((size_t)t->tokens * sizeof *ids);
  rdna_status status = t->states && ids ? rdna_image_t5_tokens(m->t5, prompt, strlen(prompt), t->tokens, ids, NULL)
                                        : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text");
  if (status == RDNA_OK) status = rdna_image_t5_encode(m->t5, ids, t->tokens, t->states);
  free(ids);
  return status;
}

static rdna_status count_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  return rdna__flow_t5_tokens(m, "text_encoder_2", "tokenizer_2", text, m->text_tokens, out_count, out_read);
}

/* ---- steps ---- */

rdna_status rdna__flux_ask(rdna_image_model *m, const rdna__image_asking *a, float *out) {
  const rdna__image_texts *t = a->texts;
  const rdna_image_request *r = a->request;
  const rdna_image_flux_input input = {
      RDNA_IMAGE_FLUX_INPUT_INIT,
      .height = r->height / m->info.factor,
      .width = r->width / m->info.factor,
      .tokens = t->lengths[a->which],
      .sample = a->sample,
      .states = t->states + (size_t)(a->which * t->tokens) * (size_t)t->width,
      .pooled = t->pooled_width ? t->pooled + (size_t)(a->which * t->pooled_width) : NULL,
      .timestep = 1000 * a->level,
      .guidance = r->guidance};
  const rdna__flux_extra extra = {a->looked, a->looked_count, a->skipped};
  return rdna__flux_run(m->network, &input, &extra, out);
}

static const char *const pipelines[] = {"FluxPipeline", "FluxImg2ImgPipeline", "FluxFillPipeline",
                                        "FluxKontextPipeline", NULL};
const rdna__image_family rdna__flux_family = {.pipelines = pipelines,
                                              .has_t5 = true,
                                              .clips = 1,
                                              .levels = FLOW_LEVELS_EVEN,
                                              .fit = fit,
                                              .encode = encode,
                                              .count_tokens = count_tokens,
                                              .need = rdna__flux_need,
                                              .weights_of = rdna__flux_weights_of,
                                              .release = rdna__flux_release,
                                              .ask = rdna__flux_ask};
