/* Qwen-Image: the last states of Qwen2.5-VL, which is asked to describe a picture, are the text, and two answers of the
 * transformer, to the prompt and to what is not to be seen, are one. */
#include "base/status.h"
#include "model/image/pipeline_flux.h"

/* As it was trained and published: tokens of a text, and of what stands before it. */
enum { SIDE = 128, TOKENS = 512, BEFORE = 34, STEPS = 50 };
static const rdna__language_reading reading = {
    .before =
        "<|im_start|>system\nDescribe the image by detailing the color, shape, size, texture, quantity, text, "
        "spatial relationships of the objects and background:<|im_end|>\n<|im_start|>user\n",
    .after = "<|im_end|>\n<|im_start|>assistant\n",
    .most = BEFORE + TOKENS,
    .dropped = BEFORE,
    .layer_count = 1,
    .layers = {-1}};

static rdna_status fit(rdna_image_model *m, const char *pipeline) {
  (void)pipeline; /* all that are known are alike */
  rdna__flux_settings flux;
  rdna__autoencoder_settings of;
  RDNA_TRY(rdna__flux_read_parts(m, &flux, &of));
  if (flux.kind != RDNA__FLUX_QWEN || of.kind != RDNA__AUTOENCODER_QWEN)
    return rdna__fail(RDNA_BAD_DATA, "%s: its transformer or autoencoder is of another model than Qwen-Image",
                      m->folder);
  int patch = flux.patch, channels = of.latent_channels * patch * patch;
  if (flux.in_channels != channels || flux.out_channels != channels)
    return rdna__fail(RDNA_BAD_DATA,
                      "%s: the transformer reads %d values of a token and writes %d, and the autoencoder has %d "
                      "channels, of which %d are asked for",
                      m->folder, flux.in_channels, flux.out_channels, of.latent_channels, channels);
  m->info = (rdna_image_model_info){.family = "Qwen-Image",
                                    .factor = rdna__autoencoder_factor(&of),
                                    .latent_channels = of.latent_channels,
                                    .guidance = 4,
                                    .steps = STEPS,
                                    .sampler = "euler",
                                    .own_sampler = true,
                                    .spacing = "simple"};
  m->info.multiple = patch * m->info.factor;
  m->info.width = m->info.height = SIDE * m->info.factor;
  m->picture_dtype = m->dtype;
  return RDNA_OK;
}

/* What nobody says is not to be seen is a space, as the model is published to be asked. */
static rdna_status encode(rdna_image_model *m, const rdna_image_request *r, bool guided, rdna__image_texts *t) {
  const char *const texts[] = {r->negative ? r->negative : " ", r->prompt ? r->prompt : ""};
  return rdna__language_texts(m, &reading, guided ? texts : texts + 1, guided ? 2 : 1, t);
}

static rdna_status count_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  return rdna__language_count(m, &reading, text, out_count, out_read);
}

static const char *const pipelines[] = {"QwenImagePipeline", "QwenImageImg2ImgPipeline", NULL};
const rdna__image_family rdna__qwen_family = {.pipelines = pipelines,
                                              .levels = FLOW_LEVELS_EVEN,
                                              .keeps_norm = true,
                                              .fit = fit,
                                              .encode = encode,
                                              .count_tokens = count_tokens,
                                              .need = rdna__flux_need,
                                              .weights_of = rdna__flux_weights_of,
                                              .release = rdna__flux_release,
                                              .ask = rdna__flux_ask};
