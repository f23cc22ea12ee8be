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
#include "model/image/t5_tokenizer.h"

enum {
  PATH_BYTES = 4096,
  SIDE = 128,
  SCHNELL_TOKENS = 256,
  DEV_TOKENS = 512,
  PATCH = 2
}; /* as both were trained and published */

/* ---- opening ---- */

/* Settings of the part |name|: of its folder, or of |file|, unless that is NULL. */
static rdna_status open_settings(const rdna_image_model *m, const char *file, const char *name, json_t **out) {
  char path[PATH_BYTES];
  rdna__component c;
  int length =
      file ? snprintf(path, sizeof path, "%s/%s", file, name) : snprintf(path, sizeof path, "%s/config.json", name);
  if (length >= (int)sizeof path) return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of the %s is too long", name);
  if (!file) return rdna__pipeline_open_settings(m->folder, path, out, NULL);
  if (!rdna__component_is_file(file)) return rdna__fail(RDNA_NOT_FOUND, "there is no file %s", file);
  RDNA_TRY(rdna__component_open(path, "", NULL, &c));
  *out = json_incref(c.settings);
  rdna__component_close(&c);
  return RDNA_OK;
}

static rdna_status read_vocabulary(const rdna_image_model *m, int *out) {
  json_t *json;
  RDNA_TRY(open_settings(m, m->t5_file, "text_encoder_2", &json));
  rdna_status status = rdna__setting_whole(json, "vocab_size", 0, 1, 1 << 24, out);
  json_decref(json);
  return rdna__annotate(status, "T5 of %s", m->t5_file ? m->t5_file : m->folder);
}

static rdna_status read_parts(rdna_image_model *m, rdna__flux_settings *flux, rdna__autoencoder_settings *autoencoder) {
  json_t *json;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, "scheduler/scheduler_config.json", &json, &m->schedule));
  json_decref(json);
  RDNA_TRY(open_settings(m, m->transformer_file, "transformer", &json));
  const char *where = m->transformer_file ? m->transformer_file : m->folder;
  rdna_status status = rdna__annotate(rdna__flux_settings_read(json, flux), "the transformer's settings in %s", where);
  json_decref(json);
  if (status != RDNA_OK) return status;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, "vae/config.json", &json, NULL));
  status = rdna__annotate(rdna__autoencoder_settings_read(json, autoencoder), "%s/vae/config.json", m->folder);
  json_decref(json);
  return status;
}

rdna_status rdna__flux_fit(rdna_image_model *m) {
  rdna__flux_settings flux;
  rdna__autoencoder_settings of;
  rdna_image_flow *flow;
  RDNA_TRY(read_parts(m, &flux, &of));
  RDNA_TRY(rdna__annotate(rdna_image_flow_create(m->schedule, 1, 1, &flow), "%s", m->folder));
  rdna_image_flow_release(flow);
  int channels = flux.in_channels / (PATCH * PATCH), factor = 1 << (of.levels - 1);
  m->inpaints = channels == 2 * of.latent_channels + factor * factor && !m->looks;
  if ((channels != of.latent_channels && !m->inpaints) || flux.out_channels != PATCH * PATCH * of.latent_channels)
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "%s: the transformer reads %d values of a token and writes %d, and the autoencoder has %d "
        "channels, which %d values are; models that read another picture than Fill's and Kontext's are not known",
        m->folder, flux.in_channels, flux.out_channels, of.latent_channels, PATCH * PATCH * of.latent_channels);
  if (of.out_channels != 3)
    return rdna__fail(RDNA_UNSUPPORTED, "%s: the autoencoder makes %d channels, not 3", m->folder, of.out_channels);
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

static rdna_status need_t5(rdna_image_model *m) {
  if (m->t5) return RDNA_OK;
  char tokenizer[PATH_BYTES];
  if (!m->t5_file)
    return rdna__t5_create(m->device, m->folder, "text_encoder_2", "tokenizer_2", m->dtype, m->weights, &m->t5);
  if (!rdna__component_is_file(m->t5_file)) return rdna__fail(RDNA_NOT_FOUND, "there is no file %s for T5", m->t5_file);
  if (snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer_2", m->folder) >= (int)sizeof tokenizer)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of tokenizer_2 is too long");
  return rdna__t5_create(m->device, m->t5_file, "text_encoder_2", tokenizer, m->dtype, m->weights, &m->t5);
}

rdna_status rdna__flux_need(rdna_image_model *m, const rdna__image_texts *texts) {
  const char *where = m->transformer_file ? m->transformer_file : m->folder;
  if (!m->flux) RDNA_TRY(rdna__flux_create(m->device, where, "transformer", m->dtype, m->weights, &m->flux));
  const rdna_image_flux_info *info = rdna_image_flux_get_info(m->flux);
  if (info->text_width == texts->width && info->pooled_width == texts->pooled_width) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA,
                    "%s: text encoders make %d values of a token and %d of a text, and the transformer reads %d and %d",
                    m->folder, texts->width, texts->pooled_width, info->text_width, info->pooled_width);
}

void rdna__flux_drop_encoder(rdna_image_model *m) {
  if (m->t5) rdna__pipeline_note(m, "T5", rdna_image_t5_get_info(m->t5)->weights_bytes);
  rdna_image_t5_release(m->t5);
  if (m->t5) rdna__pipeline_left(m);
  m->t5 = NULL;
}

void rdna__flux_drop(rdna_image_model *m) {
  if (m->flux) rdna__pipeline_note(m, "transformer", rdna_image_flux_get_info(m->flux)->weights_bytes);
  rdna_image_flux_release(m->flux);
  if (m->flux) rdna__pipeline_left(m);
  m->flux = NULL;
}

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

rdna_status rdna__flux_encode(rdna_image_model *m, const rdna_image_request *r, rdna__image_texts *t) {
  const char *prompt = r->prompt ? r->prompt : "";
  *t = (rdna__image_texts){.count = 1, .tokens = m->text_tokens};
  RDNA_TRY(encode_vector(m, r, prompt, t));
  RDNA_TRY(need_t5(m));
  t->width = rdna_image_t5_get_info(m->t5)->width;
  t->states = malloc((size_t)t->tokens * (size_t)t->width * sizeof *t->states);
  int32_t *ids = malloc((size_t)t->tokens * sizeof *ids);
  rdna_status status = t->states && ids ? rdna_image_t5_tokens(m->t5, prompt, strlen(prompt), t->tokens, ids, NULL)
                                        : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text");
  if (status == RDNA_OK) status = rdna_image_t5_encode(m->t5, ids, t->tokens, t->states);
  free(ids);
  return status;
}

/* The tokenizer alone: T5 is the largest of what is not yet needed. */
rdna_status rdna__flux_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  char path[PATH_BYTES];
  rdna__t5_tokenizer t;
  rdna_tokens tokens = {0};
  int vocabulary;
  if (snprintf(path, sizeof path, "%s/tokenizer_2", m->folder) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of tokenizer_2 is too long");
  RDNA_TRY(read_vocabulary(m, &vocabulary));
  RDNA_TRY(rdna__t5_tokenizer_open(path, vocabulary, &t));
  rdna_status status = rdna_tokenizer_encode(t.tokenizer, text, strlen(text), RDNA_ENCODE_PARSE_SPECIAL, &tokens);
  size_t most = (size_t)m->text_tokens - 1;
  *out_count = tokens.count;
  *out_read = tokens.count < most ? tokens.count : most;
  rdna_tokens_deinit(&tokens);
  rdna__t5_tokenizer_close(&t);
  return status;
}

/* ---- steps ---- */

rdna_status rdna__flux_schedule(const rdna_image_model *m, const rdna_image_request *r, rdna_image_flow **out) {
  if (strcmp(r->sampler, "euler") != 0 || strcmp(r->spacing, "simple") != 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "'%.40s' with '%.40s' noise levels; %s is sampled by euler with simple ones", r->sampler,
                      r->spacing, m->info.family);
  int tokens = (r->width / m->info.multiple) * (r->height / m->info.multiple);
  return rdna_image_flow_create(m->schedule, r->steps, tokens, out);
}

int rdna__flux_first(const rdna_image_model *m, const rdna_image_request *r) {
  return r->init && !m->looks ? (int)(r->steps - r->steps * r->strength) : 0;
}

rdna_status rdna__flux_ask(rdna_image_model *m, const rdna__image_texts *texts, const rdna_image_request *r,
                           double timestep, const float *sample, const float *context, float *out) {
  const rdna_image_flux_input input = {RDNA_IMAGE_FLUX_INPUT_INIT,
                                       .height = r->height / m->info.factor,
                                       .width = r->width / m->info.factor,
                                       .tokens = texts->tokens,
                                       .sample = sample,
                                       .states = texts->states,
                                       .pooled = texts->pooled,
                                       .timestep = timestep,
                                       .guidance = r->guidance,
                                       .context = context,
                                       .context_height = r->height / m->info.factor,
                                       .context_width = r->width / m->info.factor};
  return rdna_image_flux_run(m->flux, &input, out);
}
