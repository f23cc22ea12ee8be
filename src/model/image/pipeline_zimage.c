/* Z-Image: states of Qwen3 before its last layer are the text, and one stream of blocks reads them and the picture. */
#include "base/status.h"
#include "model/image/autoencoder.h"
#include "model/image/flow.h"
#include "model/image/pipeline.h"
#include "model/image/zimage.h"

/* As Turbo was trained and published. */
enum { SIDE = 128, TOKENS = 512, STEPS = 8, PATCH = 2 };
static const rdna__language_reading reading = {.before = "<|im_start|>user\n",
                                               .after = "<|im_end|>\n<|im_start|>assistant\n",
                                               .most = TOKENS,
                                               .layer_count = 1,
                                               .layers = {-2}};

static rdna_status read_parts(rdna_image_model *m, rdna__zimage_settings *set,
                              rdna__autoencoder_settings *autoencoder) {
  json_t *json;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, "scheduler/scheduler_config.json", &json, &m->schedule));
  json_decref(json);
  RDNA_TRY(rdna__flow_open_settings(m, m->transformer_file, "transformer", &json));
  rdna_status status = rdna__annotate(rdna__zimage_settings_read(json, set), "the transformer's settings in %s",
                                      m->transformer_file ? m->transformer_file : m->folder);
  json_decref(json);
  if (status != RDNA_OK) return status;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, "vae/config.json", &json, NULL));
  status = rdna__annotate(rdna__autoencoder_settings_read(json, autoencoder), "%s/vae/config.json", m->folder);
  json_decref(json);
  return status;
}

static rdna_status fit(rdna_image_model *m, const char *pipeline) {
  (void)pipeline; /* there is one */
  rdna__zimage_settings set;
  rdna__autoencoder_settings of;
  rdna_image_flow *flow;
  RDNA_TRY(read_parts(m, &set, &of));
  RDNA_TRY(rdna__annotate(rdna_image_flow_create(m->schedule, 1, 1, &flow), "%s", m->folder));
  rdna_image_flow_release(flow);
  if (set.channels != of.latent_channels || of.out_channels != 3)
    return rdna__fail(RDNA_BAD_DATA,
                      "%s: the transformer has samples of %d channels, and the autoencoder latents of %d and pictures "
                      "of %d; they are alike, and 3",
                      m->folder, set.channels, of.latent_channels, of.out_channels);
  m->info = (rdna_image_model_info){.family = "Z-Image",
                                    .factor = 1 << (of.levels - 1),
                                    .latent_channels = of.latent_channels,
                                    .steps = STEPS,
                                    .sampler = "euler",
                                    .own_sampler = true,
                                    .spacing = "simple"};
  m->info.multiple = PATCH * m->info.factor;
  m->info.width = m->info.height = SIDE * m->info.factor;
  m->picture_dtype = of.upcast && m->dtype == RDNA_F16 ? RDNA_F32 : m->dtype;
  return RDNA_OK;
}

/* ---- texts ---- */

static rdna_status count_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  return rdna__language_count(m, &reading, text, out_count, out_read);
}

static rdna_status encode(rdna_image_model *m, const rdna_image_request *r, bool guided, rdna__image_texts *t) {
  const char *const both[] = {r->negative ? r->negative : "", r->prompt ? r->prompt : ""};
  return rdna__language_texts(m, &reading, guided ? both : both + 1, guided ? 2 : 1, NULL, 0, t);
}

/* ---- steps ---- */

static rdna_status need(rdna_image_model *m, const rdna__image_texts *texts) {
  rdna__zimage *made = m->network;
  const char *where = m->transformer_file ? m->transformer_file : m->folder;
  if (!made) RDNA_TRY(rdna__zimage_create(m->device, where, "transformer", m->dtype, m->weights, m->loras, &made));
  m->network = made;
  int width = rdna__zimage_get_settings(made)->text_width;
  if (width == texts->width) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "%s: the text encoder makes %d values of a token, and the transformer reads %d",
                    m->folder, texts->width, width);
}

static void release(void *network) { rdna__zimage_release(network); }

static uint64_t weights_of(const void *network) { return rdna__zimage_bytes(network); }

static rdna_status ask(rdna_image_model *m, const rdna__image_asking *a, float *out) {
  const rdna__image_texts *t = a->texts;
  const rdna__zimage_input input = {.height = a->request->height / m->info.factor,
                                    .width = a->request->width / m->info.factor,
                                    .tokens = t->lengths[a->which],
                                    .sample = a->sample,
                                    .states = t->states + (size_t)a->which * (size_t)t->tokens * (size_t)t->width,
                                    .level = a->level};
  RDNA_TRY(rdna__zimage_run(m->network, &input, out));
  size_t count = (size_t)m->info.latent_channels * (size_t)input.height * (size_t)input.width;
  for (size_t k = 0; k < count; k++) out[k] = -out[k];
  return RDNA_OK;
}

static const char *const pipelines[] = {"ZImagePipeline", "ZImageImg2ImgPipeline", NULL};
const rdna__image_family rdna__zimage_family = {.pipelines = pipelines,
                                                .levels = FLOW_LEVELS_EVEN,
                                                .fit = fit,
                                                .encode = encode,
                                                .count_tokens = count_tokens,
                                                .need = need,
                                                .weights_of = weights_of,
                                                .release = release,
                                                .ask = ask};
