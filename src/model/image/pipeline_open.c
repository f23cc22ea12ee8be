#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "device/traits.h"
#include "model/image/autoencoder.h"
#include "model/image/pipeline.h"
#include "model/image/unet.h"

enum { PATH_BYTES = 4096, DEFAULT_SIDE = 64 };

/* ---- settings ---- */

rdna_status rdna__pipeline_open_settings(const char *folder, const char *name, json_t **out, char **out_text) {
  char path[PATH_BYTES];
  rdna__file file = {0};
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %.80s is too long", name);
  RDNA_TRY(rdna__annotate(rdna__file_map(path, &file), "%s", path));
  rdna_status status = rdna__settings_parse((const char *)file.data, file.size, out);
  if (status == RDNA_OK && out_text && !(*out_text = strndup((const char *)file.data, file.size))) {
    json_decref(*out);
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for its text");
  }
  rdna__file_unmap(&file);
  return rdna__annotate(status, "%s", path);
}

static rdna_status open_json(const char *folder, const char *name, json_t **out) {
  return rdna__pipeline_open_settings(folder, name, out, NULL);
}

/* The folder's own sampler, where we have it. */
static void choose_sampler(const json_t *schedule, rdna_image_model_info *info) {
  static const char *const names[][2] = {{"DDIMScheduler", "ddim"},
                                         {"EulerDiscreteScheduler", "euler"},
                                         {"EulerAncestralDiscreteScheduler", "euler_ancestral"},
                                         {"DPMSolverMultistepScheduler", "dpmpp_2m"},
                                         {"LCMScheduler", "lcm"}};
  const char *kind = json_string_value(json_object_get(schedule, "_class_name"));
  info->sampler = "dpmpp_2m";
  for (size_t i = 0; kind && i < sizeof names / sizeof *names; i++) {
    if (strcmp(kind, names[i][0]) != 0) continue;
    info->sampler = names[i][1];
    info->own_sampler = true;
  }
  info->steps = strcmp(info->sampler, "lcm") == 0 ? 4 : 20;
}

static rdna_status choose_spacing(const json_t *schedule, rdna_image_model_info *info) {
  bool karras, exponential;
  RDNA_TRY(rdna__setting_flag(schedule, "use_karras_sigmas", false, &karras));
  RDNA_TRY(rdna__setting_flag(schedule, "use_exponential_sigmas", false, &exponential));
  if (karras && exponential)
    return rdna__fail(RDNA_BAD_DATA, "'use_karras_sigmas' and 'use_exponential_sigmas' are both true");
  info->spacing = karras ? "karras" : exponential ? "exponential" : "simple";
  return RDNA_OK;
}

static rdna_status read_schedule(rdna_image_model *m) {
  static const char *const name = "scheduler/scheduler_config.json";
  json_t *json;
  RDNA_TRY(rdna__pipeline_open_settings(m->folder, name, &json, &m->schedule));
  choose_sampler(json, &m->info);
  rdna_status status = rdna__annotate(choose_spacing(json, &m->info), "%s/%s", m->folder, name);
  json_decref(json);
  return status;
}

static rdna_status read_parts(rdna_image_model *m, rdna__unet_settings *unet, rdna__autoencoder_settings *autoencoder) {
  json_t *json;
  RDNA_TRY(open_json(m->folder, "unet/config.json", &json));
  rdna_status status = rdna__annotate(rdna__unet_settings_read(json, unet), "%s/unet/config.json", m->folder);
  json_decref(json);
  if (status != RDNA_OK) return status;
  RDNA_TRY(open_json(m->folder, "vae/config.json", &json));
  status = rdna__annotate(rdna__autoencoder_settings_read(json, autoencoder), "%s/vae/config.json", m->folder);
  json_decref(json);
  return status;
}

/* Whether parts are those of one model, and what they are together. */
static rdna_status fit(rdna_image_model *m) {
  rdna__unet_settings unet;
  rdna__autoencoder_settings of;
  RDNA_TRY(read_parts(m, &unet, &of));
  if (unet.in_channels != of.latent_channels || unet.out_channels != of.latent_channels)
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "%s: the U-Net reads %d channels and writes %d, and the autoencoder has %d; models that read a mask "
        "or a picture beside the latents are not known",
        m->folder, unet.in_channels, unet.out_channels, of.latent_channels);
  if (of.out_channels != 3)
    return rdna__fail(RDNA_UNSUPPORTED, "%s: the autoencoder makes %d channels, not 3", m->folder, of.out_channels);
  if ((m->encoders > 1) != (unet.added_width > 0))
    return rdna__fail(RDNA_BAD_DATA, "%s: model_index.json names a %s, and the U-Net is none", m->folder,
                      m->info.family);
  int side = unet.sample ? unet.sample : DEFAULT_SIDE;
  m->info.factor = m->info.multiple = 1 << (of.levels - 1);
  m->info.width = m->info.height = side * m->info.factor;
  m->info.latent_channels = of.latent_channels;
  m->distilled = unet.guidance_width > 0;
  m->picture_dtype = of.upcast && m->dtype == RDNA_F16 ? RDNA_F32 : m->dtype;
  return RDNA_OK;
}

static rdna_status read_index(rdna_image_model *m, const json_t *index) {
  static const char *const kinds[][3] = {
      {"StableDiffusionPipeline", "StableDiffusionImg2ImgPipeline", "LatentConsistencyModelPipeline"},
      {"StableDiffusionXLPipeline", "StableDiffusionXLImg2ImgPipeline", ""}};
  const char *kind;
  bool aesthetic = false;
  int family = -1;
  RDNA_TRY(rdna__setting_text(index, "_class_name", NULL, &kind));
  m->flows = strcmp(kind, "FluxPipeline") == 0 || strcmp(kind, "FluxImg2ImgPipeline") == 0;
  if (m->flows) return RDNA_OK;
  for (int i = 0; i < 6; i++)
    if (strcmp(kind, kinds[i / 3][i % 3]) == 0) family = i / 3;
  if (family < 0)
    return rdna__fail(RDNA_UNSUPPORTED, "it is a %.80s; %s, %s, %s and FluxPipeline are known", kind, kinds[0][0],
                      kinds[0][2], kinds[1][0]);
  RDNA_TRY(rdna__setting_flag(index, "force_zeros_for_empty_prompt", family == 1, &m->zeros));
  RDNA_TRY(rdna__setting_flag(index, "requires_aesthetics_score", false, &aesthetic));
  if (aesthetic)
    return rdna__fail(RDNA_UNSUPPORTED, "it is a refiner, which needs a score of beauty and another model's picture");
  m->encoders = 1 + family;
  m->zeros = m->zeros && family == 1;
  m->info.family = family ? "Stable Diffusion XL" : "Stable Diffusion";
  m->info.guidance = family ? 5 : 7.5;
  return RDNA_OK;
}

/* Where nobody chose one. FLUX's activations leave the range of f16. */
static void choose_dtype(rdna_image_model *m) {
  bool gpu = rdna__device_traits_of(rdna_device_get_info(m->device))->is_gpu;
  if (m->dtype == RDNA_DTYPE_COUNT) m->dtype = !gpu ? RDNA_F32 : m->flows ? RDNA_BF16 : RDNA_F16;
}

static rdna_status open_folder(rdna_image_model *m) {
  json_t *index;
  RDNA_TRY(open_json(m->folder, "model_index.json", &index));
  rdna_status status = rdna__annotate(read_index(m, index), "%s/model_index.json", m->folder);
  json_decref(index);
  choose_dtype(m);
  if (status == RDNA_OK && m->flows) return rdna__flux_fit(m);
  if (status == RDNA_OK) status = read_schedule(m);
  return status == RDNA_OK ? fit(m) : status;
}

rdna_status rdna_image_model_open(rdna_device *device, const char *folder, rdna_dtype dtype,
                                  rdna_image_model **out_model) {
  if (!device || !folder || !out_model)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_model_open needs a device, a folder and a place");
  if (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16 && dtype != RDNA_DTYPE_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "pictures are computed in f32, f16 or bf16, not in %s",
                      rdna_dtype_name(dtype));
  rdna_image_model *m = calloc(1, sizeof *m);
  if (!m) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a model of pictures");
  m->device = rdna_device_retain(device);
  m->dtype = dtype;
  m->folder = strdup(folder);
  rdna_status status =
      m->folder ? open_folder(m) : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a folder");
  if (status == RDNA_OK)
    *out_model = m;
  else
    rdna_image_model_release(m);
  return status;
}

void rdna_image_model_release(rdna_image_model *m) {
  if (!m) return;
  rdna__pipeline_drop_encoders(m);
  rdna__pipeline_drop_unet(m);
  rdna__pipeline_drop_autoencoder(m);
  rdna_device_release(m->device);
  free(m->folder);
  free(m->schedule);
  free(m);
}

const rdna_image_model_info *rdna_image_model_get_info(const rdna_image_model *m) { return &m->info; }

const char *rdna__pipeline_spacing(const rdna_image_model *m, const char *sampler) {
  return rdna__sampler_is_spaced(sampler) ? m->info.spacing : "simple";
}

/* ---- parts ---- */

rdna_status rdna__pipeline_need_encoder(rdna_image_model *m, int which) {
  static const char *const encoders[] = {"text_encoder", "text_encoder_2"};
  static const char *const tokenizers[] = {"tokenizer", "tokenizer_2"};
  if (m->encoder[which]) return RDNA_OK;
  return rdna_image_text_encoder_create(m->device, m->folder, encoders[which], tokenizers[which], &m->encoder[which]);
}

rdna_status rdna__pipeline_need_unet(rdna_image_model *m) {
  return m->unet ? RDNA_OK : rdna_image_unet_create(m->device, m->folder, "unet", m->dtype, &m->unet);
}

rdna_status rdna__pipeline_need_autoencoder(rdna_image_model *m, bool encodes) {
  if (m->autoencoder && (!encodes || rdna_image_autoencoder_get_info(m->autoencoder)->encodes)) return RDNA_OK;
  rdna__pipeline_drop_autoencoder(m);
  return rdna_image_autoencoder_create(m->device, m->folder, "vae", m->picture_dtype, encodes, &m->autoencoder);
}

void rdna__pipeline_drop_encoders(rdna_image_model *m) {
  for (int i = 0; i < RDNA__PIPELINE_ENCODERS; i++) {
    rdna_image_text_encoder_release(m->encoder[i]);
    m->encoder[i] = NULL;
  }
  rdna__flux_drop_encoder(m);
}

void rdna__pipeline_drop_unet(rdna_image_model *m) {
  rdna_image_unet_release(m->unet);
  m->unet = NULL;
  rdna__flux_drop(m);
}

void rdna__pipeline_drop_autoencoder(rdna_image_model *m) {
  rdna_image_autoencoder_release(m->autoencoder);
  m->autoencoder = NULL;
}
