/* Qwen-Image: the last states of Qwen2.5-VL, which is asked to describe a picture, are the text, and two answers of the
 * transformer, to the prompt and to what is not to be seen, are one. Of Qwen-Image-Edit it sees the initial picture,
 * and the transformer looks at that, too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/pipeline_flux.h"
#include "model/vision/resize.h"

/* As it was trained and published: tokens of a text, and of what stands before it. */
enum { SIDE = 128, TOKENS = 512, BEFORE = 34, STEPS = 50, EDIT_TOKENS = 1024, EDIT_BEFORE = 64 };
#define END "<|im_end|>\n<|im_start|>assistant\n"
static const rdna__language_reading reading = {
    .before =
        "<|im_start|>system\nDescribe the image by detailing the color, shape, size, texture, quantity, text, "
        "spatial relationships of the objects and background:<|im_end|>\n<|im_start|>user\n",
    .after = END,
    .most = BEFORE + TOKENS,
    .dropped = BEFORE,
    .layer_count = 1,
    .layers = {-1}};

#define EDIT                                                                                                    \
  "<|im_start|>system\nDescribe the key features of the input image (color, shape, size, texture, objects, "    \
  "background), then explain how the user's text instruction should alter or modify the image. Generate a new " \
  "image that meets the user's requirements while maintaining consistency with the original input where "       \
  "appropriate.<|im_end|>\n<|im_start|>user\n"
#define PLACE "<|vision_start|><|image_pad|><|vision_end|>"
static const rdna__language_reading edit_reading = {.before = EDIT PLACE,
                                                    .after = END,
                                                    .most = EDIT_BEFORE + EDIT_TOKENS,
                                                    .dropped = EDIT_BEFORE,
                                                    .layer_count = 1,
                                                    .layers = {-1},
                                                    .sees = true};
static const rdna__language_reading plus_reading = {.before = EDIT "Picture 1: " PLACE,
                                                    .after = END,
                                                    .most = EDIT_BEFORE + EDIT_TOKENS,
                                                    .dropped = EDIT_BEFORE,
                                                    .layer_count = 1,
                                                    .layers = {-1},
                                                    .sees = true,
                                                    .next = PLACE};

static const struct {
  const char *pipeline, *family;
  const rdna__language_reading *reading;
} kinds[] = {{"QwenImageEditPipeline", "Qwen-Image-Edit", &edit_reading},
             {"QwenImageEditPlusPipeline", "Qwen-Image-Edit-Plus", &plus_reading}};

static rdna_status fit(rdna_image_model *m, const char *pipeline) {
  const char *family = "Qwen-Image";
  m->reading = &reading;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(pipeline, kinds[i].pipeline) == 0) family = kinds[i].family, m->reading = kinds[i].reading;
  m->looks = m->must_look = m->reading->sees;
  m->most_pictures = m->reading->next ? RDNA__PIPELINE_PICTURES : 0;
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
  m->info = (rdna_image_model_info){.family = family,
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

/* ---- the picture that the language model sees ---- */

/* What the model of several pictures is shown: as many pixels as in 384 x 384, in the picture's proportions. */
static void shrink(int width, int height, int *out_width, int *out_height) {
  const double area = 384 * 384, step = 32, ratio = (double)width / height, wide = sqrt(area * ratio);
  *out_width = (int)(rint(wide / step) * step);
  *out_height = (int)(rint(wide / ratio / step) * step);
}

static rdna_status resize(rdna__language_picture *p) {
  int width, height;
  shrink(p->width, p->height, &width, &height);
  if (width < 1 || height < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a picture of %d x %d; one side is too much longer than the other",
                      p->width, p->height);
  uint8_t *other = malloc(3 * (size_t)width * (size_t)height);
  if (!other) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture");
  rdna_status status = rdna__resize(RDNA__FILTER_LANCZOS, p->pixels, p->height, p->width, height, width, other);
  free(status == RDNA_OK ? p->pixels : other);
  if (status == RDNA_OK) *p = (rdna__language_picture){other, height, width};
  return status;
}

/* A picture's pixels, the caller's to free also after a failure. */
static rdna_status take_picture(const rdna_image_model *m, const rdna_image_picture *from,
                                rdna__language_picture *out) {
  size_t count = (size_t)from->width * (size_t)from->height;
  *out = (rdna__language_picture){malloc(3 * count), from->height, from->width};
  if (!out->pixels) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture");
  for (size_t i = 0; i < 3 * count; i++) {
    double value = rint(127.5 * ((double)from->values[i % 3 * count + i / 3] + 1));
    out->pixels[i] = (uint8_t)fmin(fmax(value, 0), 255);
  }
  return m->reading == &plus_reading ? resize(out) : RDNA_OK;
}

/* What nobody says is not to be seen is a space, as the model is published to be asked. */
static rdna_status encode(rdna_image_model *m, const rdna_image_request *r, bool guided, rdna__image_texts *t) {
  const char *const texts[] = {r->negative ? r->negative : " ", r->prompt ? r->prompt : ""};
  const char *const *first = guided ? texts : texts + 1;
  rdna__language_picture pictures[RDNA__LANGUAGE_PICTURES] = {{0}};
  int count = 1 + (int)r->picture_count;
  *t = (rdna__image_texts){0};
  if (!m->reading->sees) return rdna__language_texts(m, m->reading, first, guided ? 2 : 1, NULL, 0, t);
  rdna_status status = RDNA_OK;
  for (int i = 0; i < count && status == RDNA_OK; i++) {
    const rdna_image_picture initial = {r->init, r->width, r->height};
    status = take_picture(m, i ? &r->pictures[i - 1] : &initial, &pictures[i]);
  }
  if (status == RDNA_OK) status = rdna__language_texts(m, m->reading, first, guided ? 2 : 1, pictures, count, t);
  for (int i = 0; i < count; i++) free(pictures[i].pixels);
  return status;
}

static rdna_status count_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  return rdna__language_count(m, m->reading, text, out_count, out_read);
}

static const char *const pipelines[] = {"QwenImagePipeline", "QwenImageImg2ImgPipeline", "QwenImageEditPipeline",
                                        "QwenImageEditPlusPipeline", NULL};
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
