/* FLUX.2 klein: states of Qwen3 before three of its layers stand side by side as the text, which is filled up to one
 * length, and latents are patches. Where steps were distilled there is no guidance. */
#include "base/status.h"
#include "model/image/flow.h"
#include "model/image/pipeline_flux.h"

/* As it was trained and published. */
enum { SIDE = 64, TOKENS = 512, DISTILLED_STEPS = 4, STEPS = 50 };
static const rdna__language_reading reading = {.before = "<|im_start|>user\n",
                                               .after = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
                                               .most = TOKENS,
                                               .filler = "<|endoftext|>",
                                               .layer_count = 3,
                                               .layers = {9, 18, 27}};

/* Whether guidance and steps were distilled into it, which the index says. */
static rdna_status read_index(const rdna_image_model *m, bool *out) {
  json_t *json;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, "model_index.json", &json, NULL));
  rdna_status status =
      rdna__annotate(rdna__setting_flag(json, "is_distilled", false, out), "%s/model_index.json", m->folder);
  json_decref(json);
  return status;
}

static rdna_status fit(rdna_image_model *m, const char *pipeline) {
  (void)pipeline; /* there is one */
  rdna__flux_settings flux;
  rdna__autoencoder_settings of;
  RDNA_TRY(rdna__flux_read_parts(m, &flux, &of));
  RDNA_TRY(read_index(m, &m->distilled));
  if (flux.kind != RDNA__FLUX_2 || of.kind != RDNA__AUTOENCODER_FLUX2)
    return rdna__fail(RDNA_BAD_DATA, "%s: its transformer or autoencoder is of another model than FLUX.2", m->folder);
  if (flux.guided)
    return rdna__fail(RDNA_UNSUPPORTED, "%s: the transformer is told the guidance, as klein's are not", m->folder);
  int channels = rdna__autoencoder_latents(&of);
  if (flux.in_channels != channels || flux.out_channels != channels)
    return rdna__fail(
        RDNA_BAD_DATA,
        "%s: the transformer reads %d values of a token and writes %d, and the autoencoder's latents have "
        "%d channels",
        m->folder, flux.in_channels, flux.out_channels, channels);
  m->info = (rdna_image_model_info){.family = m->distilled ? "FLUX.2 klein" : "FLUX.2 klein base",
                                    .factor = rdna__autoencoder_factor(&of),
                                    .latent_channels = channels,
                                    .guidance = m->distilled ? 0 : 4,
                                    .steps = m->distilled ? DISTILLED_STEPS : STEPS,
                                    .sampler = "euler",
                                    .own_sampler = true,
                                    .spacing = "simple"};
  m->most_pictures = RDNA__PIPELINE_PICTURES;
  m->looks = true; /* at a picture to begin with, where there is one */
  m->info.multiple = m->info.factor;
  m->info.width = m->info.height = SIDE * m->info.factor;
  m->picture_dtype = m->dtype;
  return RDNA_OK;
}

static rdna_status encode(rdna_image_model *m, const rdna_image_request *r, bool guided, rdna__image_texts *t) {
  const char *const texts[] = {r->negative ? r->negative : "", r->prompt ? r->prompt : ""};
  return rdna__language_texts(m, &reading, guided ? texts : texts + 1, guided ? 2 : 1, NULL, 0, t);
}

static rdna_status count_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  return rdna__language_count(m, &reading, text, out_count, out_read);
}

static const char *const pipelines[] = {"Flux2KleinPipeline", NULL};
const rdna__image_family rdna__flux2_family = {.pipelines = pipelines,
                                               .levels = FLOW_LEVELS_MEASURED,
                                               .fit = fit,
                                               .encode = encode,
                                               .count_tokens = count_tokens,
                                               .need = rdna__flux_need,
                                               .weights_of = rdna__flux_weights_of,
                                               .release = rdna__flux_release,
                                               .ask = rdna__flux_ask};
