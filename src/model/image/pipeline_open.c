#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/options.h"
#include "device/traits.h"
#include "model/image/autoencoder.h"
#include "model/image/control.h"
#include "model/image/pipeline.h"
#include "model/image/text_encoder.h"
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
                                         {"DDPMScheduler", "ddpm"},
                                         {"PNDMScheduler", "pndm"},
                                         {"EulerDiscreteScheduler", "euler"},
                                         {"EulerAncestralDiscreteScheduler", "euler_ancestral"},
                                         {"HeunDiscreteScheduler", "heun"},
                                         {"DPMSolverMultistepScheduler", "dpmpp_2m"},
                                         {"DPMSolverSDEScheduler", "dpmpp_sde"},
                                         {"UniPCMultistepScheduler", "unipc"},
                                         {"LCMScheduler", "lcm"}};
  const char *kind = json_string_value(json_object_get(schedule, "_class_name"));
  const char *algorithm = json_string_value(json_object_get(schedule, "algorithm_type"));
  info->sampler = "dpmpp_2m";
  for (size_t i = 0; kind && i < sizeof names / sizeof *names; i++) {
    if (strcmp(kind, names[i][0]) != 0) continue;
    info->sampler = names[i][1];
    info->own_sampler = true;
  }
  if (info->own_sampler && algorithm && strcmp(algorithm, "sde-dpmsolver++") == 0) {
    bool third = json_number_value(json_object_get(schedule, "solver_order")) == 3;
    info->sampler = third ? "dpmpp_3m_sde" : "dpmpp_2m_sde";
  }
  info->steps = strcmp(info->sampler, "lcm") == 0 ? 4 : 20;
}

static rdna_status choose_spacing(const json_t *schedule, rdna_image_model_info *info) {
  static const char *const names[][2] = {
      {"use_karras_sigmas", "karras"}, {"use_exponential_sigmas", "exponential"}, {"use_beta_sigmas", "beta"}};
  const char *said = NULL;
  info->spacing = "simple";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    bool on;
    RDNA_TRY(rdna__setting_flag(schedule, names[i][0], false, &on));
    if (on && said) return rdna__fail(RDNA_BAD_DATA, "'%s' and '%s' are both true", said, names[i][0]);
    if (!on) continue;
    said = names[i][0];
    info->spacing = names[i][1];
  }
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

/* Settings of the part |name|: of its folder, or of |file|, which is NULL then. */
static rdna_status open_settings(const rdna_image_model *m, const rdna__safetensors *file,
                                 rdna__checkpoint_family family, const char *name, json_t **out) {
  char path[PATH_BYTES];
  rdna__checkpoint_part part;
  if (m->transformer_file && strcmp(name, "unet") == 0)
    return rdna__flow_open_settings(m, m->transformer_file, name, out);
  if (file) return rdna__annotate(rdna__checkpoint_read(file, family, name, out, &part), "%s", m->folder);
  snprintf(path, sizeof path, "%s/config.json", name);
  return open_json(m->folder, path, out);
}

static rdna_status read_parts(const rdna_image_model *m, const rdna__safetensors *file, rdna__checkpoint_family family,
                              rdna__unet_settings *unet, rdna__autoencoder_settings *autoencoder) {
  json_t *json;
  RDNA_TRY(open_settings(m, file, family, "unet", &json));
  const char *where = m->transformer_file ? m->transformer_file : m->folder;
  rdna_status status = rdna__annotate(rdna__unet_settings_read(json, unet), "%s%s", where,
                                      m->transformer_file ? "" : "/unet/config.json");
  json_decref(json);
  if (status != RDNA_OK) return status;
  RDNA_TRY(open_settings(m, file, family, "vae", &json));
  status = rdna__annotate(rdna__autoencoder_settings_read(json, autoencoder), "%s/vae/config.json", m->folder);
  json_decref(json);
  return status;
}

/* Whether parts are those of one model, and what they are together. */
static rdna_status fit(rdna_image_model *m, const rdna__safetensors *file, rdna__checkpoint_family family) {
  rdna__unet_settings unet;
  rdna__autoencoder_settings of;
  RDNA_TRY(read_parts(m, file, family, &unet, &of));
  m->inpaints = unet.in_channels == 2 * of.latent_channels + 1;
  if ((unet.in_channels != of.latent_channels && !m->inpaints) || unet.out_channels != of.latent_channels)
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "%s: the U-Net reads %d channels and writes %d, and the autoencoder has %d; models that read another "
        "picture than a masked one beside the latents are not known",
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
  m->unet_settings = unet;
  for (int i = 0; i < m->control_count; i++) RDNA_TRY(rdna__control_fits(m->control_paths[i], &unet));
  m->picture_dtype = of.upcast && m->dtype == RDNA_F16 ? RDNA_F32 : m->dtype;
  return RDNA_OK;
}

static void set_family(rdna_image_model *m, bool xl, bool refines) {
  m->encoders = 1 + xl;
  m->first_encoder = m->refines = refines;
  m->info.family = refines ? "Stable Diffusion XL refiner" : xl ? "Stable Diffusion XL" : "Stable Diffusion";
  m->info.guidance = xl ? 5 : 7.5;
}

/* |*out_pipeline|, of |index|, is NULL unless it is one of a family. */
static rdna_status read_index(rdna_image_model *m, const json_t *index, const char **out_pipeline) {
  static const char *const kinds[][4] = {
      {"StableDiffusionPipeline", "StableDiffusionImg2ImgPipeline", "LatentConsistencyModelPipeline",
       "StableDiffusionInpaintPipeline"},
      {"StableDiffusionXLPipeline", "StableDiffusionXLImg2ImgPipeline", "", "StableDiffusionXLInpaintPipeline"}};
  const char *kind;
  char families[256];
  bool aesthetic = false;
  int family = -1;
  RDNA_TRY(rdna__setting_text(index, "_class_name", NULL, &kind));
  m->family = rdna__image_family_find(kind);
  if (m->family) {
    *out_pipeline = kind;
    return RDNA_OK;
  }
  for (int i = 0; i < 8; i++)
    if (strcmp(kind, kinds[i / 4][i % 4]) == 0) family = i / 4;
  rdna__image_family_names(families, sizeof families);
  if (family < 0)
    return rdna__fail(RDNA_UNSUPPORTED, "it is a %.80s; %s, %s, %s, %s are known", kind, kinds[0][0], kinds[0][2],
                      kinds[1][0], families);
  RDNA_TRY(rdna__setting_flag(index, "force_zeros_for_empty_prompt", family == 1, &m->zeros));
  RDNA_TRY(rdna__setting_flag(index, "requires_aesthetics_score", false, &aesthetic));
  if (aesthetic && family == 0) return rdna__fail(RDNA_UNSUPPORTED, "it is no XL, whose refiner alone reads a score");
  m->zeros = m->zeros && family == 1;
  set_family(m, family, aesthetic);
  return RDNA_OK;
}

/* Where nobody chose one. Activations of models that flow leave the range of f16. */
static void choose_dtype(rdna_image_model *m) {
  bool gpu = rdna__device_traits_of(rdna_device_get_info(m->device))->is_gpu;
  if (m->dtype == RDNA_DTYPE_COUNT) m->dtype = !gpu ? RDNA_F32 : m->family ? RDNA_BF16 : RDNA_F16;
}

static rdna_status open_folder(rdna_image_model *m) {
  json_t *index;
  RDNA_TRY(open_json(m->folder, "model_index.json", &index));
  const char *pipeline = NULL;
  rdna_status status = rdna__annotate(read_index(m, index, &pipeline), "%s/model_index.json", m->folder);
  choose_dtype(m);
  if (status == RDNA_OK && m->family) status = m->family->fit(m, pipeline);
  json_decref(index);
  if (status != RDNA_OK || m->family) return status;
  status = read_schedule(m);
  return status == RDNA_OK ? fit(m, NULL, CHECKPOINT_SD1) : status;
}

static bool has_vocabulary(const char *folder) {
  static const char *const files[] = {"vocab.json", "tokenizer.json"};
  char path[PATH_BYTES];
  for (int i = 0; i < 2; i++)
    if (snprintf(path, sizeof path, "%s/%s", folder, files[i]) < PATH_BYTES && rdna__component_is_file(path))
      return true;
  return false;
}

/* The folder of a file's vocabulary: |given|, or "tokenizer" in it or, where nothing is given, beside the file. */
static rdna_status find_tokenizer(rdna_image_model *m, const char *given) {
  char inside[PATH_BYTES];
  const char *slash = strrchr(m->folder, '/'), *found = given && has_vocabulary(given) ? given : NULL;
  int beside = slash ? (int)(slash - m->folder) + 1 : 0;
  int length = given ? snprintf(inside, sizeof inside, "%s/tokenizer", given)
                     : snprintf(inside, sizeof inside, "%.*stokenizer", beside, m->folder);
  if (!found && length < PATH_BYTES && has_vocabulary(inside)) found = inside;
  if (!found)
    return rdna__fail(RDNA_NOT_FOUND,
                      "%s has no vocabulary, and there is no vocab.json or tokenizer.json in %s%s; --tokenizer names a "
                      "folder with CLIP's, which every folder of diffusers has",
                      m->folder, given ? given : inside, given ? " or its folder tokenizer" : "");
  m->tokenizer = strdup(found);
  return m->tokenizer ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a folder");
}

static rdna_status read_file(rdna_image_model *m, const rdna__safetensors *file, const char *prediction) {
  rdna__checkpoint_family family;
  json_t *json;
  RDNA_TRY(rdna__checkpoint_detect(file, &family));
  set_family(m, family >= CHECKPOINT_XL, family == CHECKPOINT_REFINER);
  choose_dtype(m);
  m->zeros = family == CHECKPOINT_XL;
  RDNA_TRY(rdna__checkpoint_schedule(file, family, prediction, &json));
  choose_sampler(json, &m->info);
  m->info.spacing = "simple";
  m->schedule = json_dumps(json, 0);
  json_decref(json);
  if (!m->schedule) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schedule's settings");
  return fit(m, file, family);
}

static rdna_status open_file(rdna_image_model *m, const rdna_image_model_options *o) {
  rdna__safetensors *file;
  RDNA_TRY(rdna__safetensors_open_either(m->folder, &file));
  rdna_status status = rdna__annotate(read_file(m, file, o->prediction), "%s", m->folder);
  rdna__safetensors_close(file);
  return status == RDNA_OK ? find_tokenizer(m, o->tokenizer) : status;
}

static rdna_status check_options(const rdna_image_model_options *o) {
  if (o->dtype != RDNA_F32 && o->dtype != RDNA_F16 && o->dtype != RDNA_BF16 && o->dtype != RDNA_DTYPE_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "pictures are computed in f32, f16 or bf16, not in %s",
                      rdna_dtype_name(o->dtype));
  if (!o->prediction || strcmp(o->prediction, "epsilon") == 0 || strcmp(o->prediction, "v_prediction") == 0)
    return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "a prediction '%.40s'; epsilon and v_prediction are known", o->prediction);
}

/* Files of parts of models that flow, in place of the folder's. */
static rdna_status keep_files(rdna_image_model *m, const rdna_image_model_options *o) {
  if (o->transformer && !(m->transformer_file = strdup(o->transformer)))
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a file");
  if (o->t5 && !(m->t5_file = strdup(o->t5)))
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a file");
  return RDNA_OK;
}

static rdna_status keep_controls(rdna_image_model *m, const rdna_image_model_options *o) {
  if (o->control_count > RDNA__PIPELINE_CONTROLS || (o->control_count && !o->controls))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%zu ControlNets; up to %d may be given", o->control_count,
                      RDNA__PIPELINE_CONTROLS);
  for (; m->control_count < (int)o->control_count; m->control_count++) {
    const char *path = o->controls[m->control_count];
    if (!path) return rdna__fail(RDNA_INVALID_ARGUMENT, "ControlNet %d has no path", m->control_count);
    if (!(m->control_paths[m->control_count] = strdup(path)))
      return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a ControlNet");
  }
  return RDNA_OK;
}

/* A file's vocabulary is the model's own. */
static rdna_status open_refiner(rdna_image_model *m, const rdna_image_model_options *o) {
  char beside[PATH_BYTES];
  if (m->family || m->encoders < 2 || m->refines || m->inpaints)
    return rdna__fail(RDNA_UNSUPPORTED, "%s is no Stable Diffusion XL that draws, which alone has a refiner",
                      m->folder);
  if (snprintf(beside, sizeof beside, "%s/tokenizer_2", m->folder) >= (int)sizeof beside)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of tokenizer_2 is too long");
  const char *tokenizer = m->tokenizer ? m->tokenizer : beside;
  const rdna_image_model_options options = {RDNA_IMAGE_MODEL_OPTIONS_INIT, .dtype = m->dtype, .weights = o->weights,
                                            .tokenizer = rdna__component_is_file(o->refiner) ? tokenizer : NULL};
  RDNA_TRY(rdna_image_model_open(m->device, o->refiner, &options, &m->refiner));
  const rdna_image_model *r = m->refiner;
  if (!r->refines) return rdna__fail(RDNA_BAD_DATA, "%s is no refiner but a %s", r->folder, r->info.family);
  if (r->info.latent_channels == m->info.latent_channels && r->info.factor == m->info.factor) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "%s: its latents have %d channels of 1 / %d, and those of %s %d of 1 / %d",
                    r->folder, r->info.latent_channels, r->info.factor, m->folder, m->info.latent_channels,
                    m->info.factor);
}

/* What only some models have. */
static rdna_status check_family(const rdna_image_model *m, const rdna_image_model_options *o) {
  if (o->t5 && !(m->family && m->family->has_t5))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is %s, which has no T5 that could be a file of its own", m->folder,
                      m->info.family);
  if (!m->family) return RDNA_OK;
  if (o->control_count > 0)
    return rdna__fail(RDNA_UNSUPPORTED, "%s is %s, which has no ControlNet that is known", m->folder, m->info.family);
  if (o->embedding_count > 0)
    return rdna__fail(RDNA_UNSUPPORTED, "%s is %s, to which no words can be added yet", m->folder, m->info.family);
  return RDNA_OK;
}

static rdna_status open_loras(rdna_image_model *m, const rdna_image_model_options *o) {
  rdna__lora_target target = {.encoders = m->encoders};
  if (m->family) target = (rdna__lora_target){true, m->family->clips, m->family->has_t5 && !m->leaves_t5};
  RDNA_TRY(rdna__loras_open(o->loras, o->lora_count, &target, &m->loras));
  rdna__loras_use(m->loras, NULL, m->lora_scales);
  return RDNA_OK;
}

static rdna_status open_path(rdna_image_model *m, const rdna_image_model_options *o) {
  RDNA_TRY(keep_files(m, o));
  RDNA_TRY(keep_controls(m, o));
  bool whole = rdna__component_is_file(m->folder);
  if (whole || (!o->tokenizer && !o->prediction)) {
    RDNA_TRY(whole ? open_file(m, o) : open_folder(m));
    RDNA_TRY(check_family(m, o));
    RDNA_TRY(rdna__pipeline_keep_autoencoders(m, o));
    RDNA_TRY(rdna__pipeline_keep_adapters(m, o));
    int words = o->embedding_count < INT_MAX ? (int)o->embedding_count : INT_MAX;
    RDNA_TRY(rdna__inversions_open(o->embeddings, words, m->encoders, &m->words));
    RDNA_TRY(open_loras(m, o));
    return o->refiner ? open_refiner(m, o) : RDNA_OK;
  }
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is no file, and a folder has its own %s", m->folder,
                    o->tokenizer ? "tokenizer" : "prediction");
}

rdna_status rdna_image_model_open(rdna_device *device, const char *path, const rdna_image_model_options *options,
                                  rdna_image_model **out_model) {
  rdna_image_model_options o;
  if (!device || !path || !options || !out_model)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_model_open needs a device, a path, options and a place");
  RDNA_TRY(RDNA__OPTIONS("rdna_image_model_open", "options", options, &o));
  RDNA_TRY(check_options(&o));
  rdna_image_model *m = calloc(1, sizeof *m);
  if (!m) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a model of pictures");
  m->device = rdna_device_retain(device);
  m->dtype = o.dtype;
  m->weights = o.weights;
  m->folder = strdup(path);
  rdna_status status =
      m->folder ? open_path(m, &o) : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a folder");
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
  free(m->tokenizer);
  free(m->transformer_file);
  free(m->t5_file);
  free(m->vae_path);
  free(m->own_latents);
  free(m->image_encoder_path);
  for (int i = 0; i < RDNA__PIPELINE_ADAPTERS; i++) free(m->adapter_paths[i]);
  free(m->preview_path);
  rdna__loras_close(m->loras);
  rdna__inversions_close(m->words);
  for (int i = 0; i < m->control_count; i++) free(m->control_paths[i]);
  rdna_image_model_release(m->refiner);
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
  return rdna__text_encoder_create(m->device, m->folder, encoders[which],
                                   m->tokenizer ? m->tokenizer : tokenizers[which], m->loras, m->words, which == 1,
                                   &m->encoder[which]);
}

rdna_status rdna__pipeline_need_unet(rdna_image_model *m) {
  if (m->unet) return RDNA_OK;
  const char *where = m->transformer_file ? m->transformer_file : m->folder;
  return rdna__unet_create(m->device, where, "unet", m->dtype, m->weights, m->loras, &m->unet);
}

rdna_status rdna__pipeline_need_control(rdna_image_model *m, size_t i) {
  return m->controls[i] ? RDNA_OK
                        : rdna_image_control_create(m->device, m->control_paths[i], m->dtype, &m->controls[i]);
}

void rdna__pipeline_drop_encoders(rdna_image_model *m) {
  uint64_t weights = 0;
  for (int i = 0; i < RDNA__PIPELINE_ENCODERS; i++)
    if (m->encoder[i]) weights += rdna_image_text_encoder_get_info(m->encoder[i])->weights_bytes;
  if (weights) rdna__pipeline_note(m, m->refines ? "refiner's encoder" : "text encoder", weights);
  for (int i = 0; i < RDNA__PIPELINE_ENCODERS; i++) {
    rdna_image_text_encoder_release(m->encoder[i]);
    m->encoder[i] = NULL;
  }
  if (weights) rdna__pipeline_left(m);
  rdna__pipeline_drop_image_encoder(m);
  rdna__flow_drop_encoders(m);
}

void rdna__pipeline_drop_unet(rdna_image_model *m) {
  uint64_t weights = m->unet ? rdna_image_unet_get_info(m->unet)->weights_bytes : 0;
  weights += rdna__pipeline_preview_bytes(m);
  for (int i = 0; i < m->control_count; i++)
    if (m->controls[i]) weights += rdna_image_control_get_info(m->controls[i])->weights_bytes;
  if (m->unet) rdna__pipeline_note(m, m->refines ? "refiner's U-Net" : "U-Net", weights);
  for (int i = 0; i < m->control_count; i++) {
    rdna_image_control_release(m->controls[i]);
    m->controls[i] = NULL;
  }
  rdna__pipeline_drop_adapters(m);
  rdna_image_unet_release(m->unet);
  if (m->unet) rdna__pipeline_left(m);
  m->unet = NULL;
  rdna__flow_drop_network(m);
  rdna_image_autoencoder_release(m->preview);
  if (m->preview) rdna__pipeline_left(m);
  m->preview = NULL;
}

void rdna__pipeline_forget_parts(rdna_image_model *m) {
  for (int i = 0; i < RDNA__PIPELINE_ENCODERS; i++) m->encoder[i] = NULL;
  m->unet = NULL;
  for (int i = 0; i < RDNA__PIPELINE_CONTROLS; i++) m->controls[i] = NULL;
  m->autoencoder = NULL;
  m->preview = NULL;
  m->image_encoder = NULL;
  for (int i = 0; i < RDNA__PIPELINE_ADAPTERS; i++) m->adapters[i] = NULL;
  m->t5 = NULL;
  m->language = NULL;
  m->network = NULL;
}
