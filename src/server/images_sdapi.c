/* AUTOMATIC1111's interface (/sdapi/v1/…), for programs that were written for it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/image/pipeline.h"
#include "server/embeddings.h"
#include "server/http.h"
#include "server/images.h"
#include "server/routes.h"

enum { MOST_STEPS = 150, MOST_GUIDANCE = 30, MOST_SKIP = 12 };

/* FastAPI's form for what a request says wrong, and that page's for what goes wrong. */
static void refuse_sdapi(const problem *p, bytes *out) {
  if (p->status == 422) {
    append_line(out, json_pack("{s:[{s:[s, s], s:s, s:s}]}", "detail", "loc", "body", p->field, "msg", p->message,
                               "type", "value_error"));
    return;
  }
  append_line(out, json_pack("{s:s, s:s, s:s, s:s}", "error", p->code ? p->code : "Error", "detail", p->message, "body",
                             "", "errors", p->message));
}

const dialect sdapi = {.refuse = refuse_sdapi};

enum MHD_Result sdapi_respond_refusal(exchange *x) {
  if (x->problem.status == 400) x->problem.status = 422;
  return respond_problem(x);
}

/* ---- drawing ---- */

static const painting_fields names = {.width = "width",
                                      .height = "height",
                                      .init = "init_images",
                                      .strength = "denoising_strength",
                                      .sampler = "sampler_name",
                                      .spacing = "scheduler",
                                      .guides = "alwayson_scripts",
                                      .loras = "prompt"};

static const char scripts_field[] = "alwayson_scripts";

static const field_row fields[] = {{"prompt", FIELD_READ},
                                   {"negative_prompt", FIELD_READ},
                                   {"steps", FIELD_READ},
                                   {"cfg_scale", FIELD_READ},
                                   {"width", FIELD_READ},
                                   {"height", FIELD_READ},
                                   {"seed", FIELD_READ},
                                   {"sampler_name", FIELD_READ},
                                   {"sampler_index", FIELD_READ},
                                   {"scheduler", FIELD_READ},
                                   {"batch_size", FIELD_READ},
                                   {"n_iter", FIELD_READ},
                                   {"init_images", FIELD_READ},
                                   {"denoising_strength", FIELD_READ},
                                   {"override_settings", FIELD_READ},
                                   {"override_settings_restore_afterwards", FIELD_READ},
                                   {"send_images", FIELD_READ},
                                   {"save_images", FIELD_IGNORED},
                                   {"do_not_save_samples", FIELD_IGNORED},
                                   {"do_not_save_grid", FIELD_IGNORED},
                                   {"force_task_id", FIELD_IGNORED},
                                   {"comments", FIELD_IGNORED},
                                   {"eta", FIELD_READ},
                                   {"s_min_uncond", FIELD_REFUSED},
                                   {"s_churn", FIELD_REFUSED},
                                   {"s_tmax", FIELD_READ},
                                   {"s_tmin", FIELD_READ},
                                   {"s_noise", FIELD_READ},
                                   {"subseed", FIELD_IGNORED},
                                   {"subseed_strength", FIELD_REFUSED},
                                   {"seed_resize_from_h", FIELD_READ},
                                   {"seed_resize_from_w", FIELD_READ},
                                   {"resize_mode", FIELD_READ},
                                   {"mask", FIELD_READ},
                                   {"mask_blur", FIELD_READ},
                                   {"mask_blur_x", FIELD_READ},
                                   {"mask_blur_y", FIELD_READ},
                                   {"mask_round", FIELD_READ},
                                   {"inpainting_fill", FIELD_READ},
                                   {"inpaint_full_res", FIELD_READ},
                                   {"inpaint_full_res_padding", FIELD_READ},
                                   {"inpainting_mask_invert", FIELD_READ},
                                   {"initial_noise_multiplier", FIELD_READ},
                                   {"image_cfg_scale", FIELD_IGNORED},
                                   {"enable_hr", FIELD_READ},
                                   {"hr_scale", FIELD_READ},
                                   {"hr_upscaler", FIELD_READ},
                                   {"hr_second_pass_steps", FIELD_READ},
                                   {"hr_resize_x", FIELD_READ},
                                   {"hr_resize_y", FIELD_READ},
                                   {"hr_checkpoint_name", FIELD_READ},
                                   {"hr_sampler_name", FIELD_READ},
                                   {"hr_scheduler", FIELD_READ},
                                   {"hr_prompt", FIELD_READ},
                                   {"hr_negative_prompt", FIELD_READ},
                                   {"hr_additional_modules", FIELD_IGNORED},
                                   {"firstphase_width", FIELD_REFUSED},
                                   {"firstphase_height", FIELD_REFUSED},
                                   {"clip_skip", FIELD_IGNORED},
                                   {"include_init_images", FIELD_REFUSED},
                                   {"restore_faces", FIELD_REFUSED},
                                   {"tiling", FIELD_REFUSED},
                                   {"styles", FIELD_REFUSED},
                                   {"script_name", FIELD_REFUSED},
                                   {"script_args", FIELD_REFUSED},
                                   {"alwayson_scripts", FIELD_READ}};

static const field_values some[] = {{"s_tmin", "[0]"},
                                    {"s_tmax", "[0]"},
                                    {"s_noise", "[1]"},
                                    {"seed_resize_from_h", "[-1, 0]"},
                                    {"seed_resize_from_w", "[-1, 0]"},
                                    {"send_images", "[true]"},
                                    {"mask_round", "[true]"},
                                    {"initial_noise_multiplier", "[1]"},
                                    {"hr_checkpoint_name", "[\"\", \"Use same checkpoint\"]"},
                                    {"override_settings_restore_afterwards", "[true]"}};

/* What is of the other request, and of txt2img what is of its second pass alone. */
static bool check_request(const json_t *json, bool of_picture, problem *p) {
  static const char *const of_img2img[] = {"init_images", "mask"};
  if (!check_fields(json, fields, sizeof fields / sizeof *fields, p) ||
      !check_values(json, some, sizeof some / sizeof *some, p))
    return false;
  for (int i = 0; i < 2 && !of_picture; i++) {
    const json_t *value = json_object_get(json, of_img2img[i]);
    if (value && !json_is_null(value))
      return refuse(p, 400, "unsupported_parameter", of_img2img[i],
                    "'%s' is of img2img; txt2img begins with noise alone: leave it out", of_img2img[i]);
  }
  return !of_picture || !json_is_true(json_object_get(json, "enable_hr")) ||
         refuse(p, 400, "unsupported_parameter", "enable_hr", "'enable_hr' is of txt2img; leave it out");
}

/* How much noise a sampler adds has its usual value alone: ancestral ones all of it, ddim none; of others it is not. */
static bool read_eta(const json_t *json, const painting *g, problem *p) {
  double usual = strcmp(g->sampler, "ddim") == 0 ? 0 : 1, eta = usual;
  if (!read_number(json, "eta", 0, 1, &eta, p)) return false;
  bool counts = usual == 0 || strcmp(g->sampler, "euler_ancestral") == 0;
  return !counts || eta == usual ||
         refuse(p, 400, "unsupported_parameter", "eta", "of 'eta' this server offers nothing but %g with this sampler",
                usual);
}

static bool read_whole(const json_t *json, const char *field, int low, int high, int *out, problem *p) {
  int64_t value = *out;
  bool fine = read_integer(json, field, low, high, &value, p);
  *out = (int)value;
  return fine;
}

static bool read_spacing(const json_t *json, const char *field, const char **out, problem *p) {
  const char *given = NULL;
  if (!read_text(json, field, &given, p)) return false;
  for (const sampler_name *n = images_spacings; n->shown; n++) {
    if (given && strcasecmp(given, n->shown) != 0 && !(n->name && strcasecmp(given, n->name) == 0)) continue;
    *out = n->name;
    return true;
  }
  return refuse(p, 400, NULL, field, "there is no scheduler '%.60s'", given);
}

static bool read_sampler(const server *s, const json_t *json, painting *g, problem *p) {
  const char *sampler = NULL, *index = NULL, *spacing = NULL, *said = NULL;
  if (!read_text(json, "sampler_index", &index, p) || !read_text(json, "sampler_name", &sampler, p) ||
      !read_spacing(json, "scheduler", &spacing, p))
    return false;
  if (!sampler) sampler = index;
  const char *name = sampler && *sampler ? images_sampler(sampler, &said) : g->ask.sampler;
  if (!name) return refuse(p, 400, NULL, "sampler_name", "there is no sampler '%.60s'", sampler);
  painting_set_sampler(s, g, name, spacing ? spacing : said);
  return read_eta(json, g, p);
}

/* ---- the second pass ---- */

/* Its sides: |hr_scale| times the first one's, or what is said, of which one may be 0. */
static bool read_second_sides(const json_t *json, painting *g, problem *p) {
  painting_pass *second = &g->second;
  double scale = 2;
  if (!read_number(json, "hr_scale", 1, 4, &scale, p) ||
      !read_whole(json, "hr_resize_x", 0, MOST_SIDE, &second->width, p) ||
      !read_whole(json, "hr_resize_y", 0, MOST_SIDE, &second->height, p))
    return false;
  int width = g->ask.width, height = g->ask.height;
  if (second->width && !second->height) second->height = (int)((int64_t)second->width * height / width);
  if (second->height && !second->width) second->width = (int)((int64_t)second->height * width / height);
  if (!second->width) second->width = (int)(width * scale), second->height = (int)(height * scale);
  return (second->width <= MOST_SIDE && second->height >= 1 && second->height <= MOST_SIDE) ||
         refuse(p, 400, NULL, "hr_scale", "the larger picture would be %d x %d; up to %d a side are drawn",
                second->width, second->height, MOST_SIDE);
}

/* By a network of the server's, or Lanczos' filter, which that page calls so or None; its ways with latents are not
 * there. */
static bool read_second_upscaler(const server *s, const json_t *json, painting *g, problem *p) {
  static const char plain[] = "Lanczos";
  painting_pass *second = &g->second;
  const char *name = plain;
  if (!read_text(json, "hr_upscaler", &name, p)) return false;
  second->how = (rdna__enlargement){.name = plain};
  if (strcmp(name, plain) == 0 || strcmp(name, "None") == 0) return true;
  int which = images_find_upscaler(s, name);
  if (which < 0)
    return refuse(p, 400, NULL, "hr_upscaler",
                  "there is no upscaler '%.100s' here; there are \"Lanczos\" and those that /sdapi/v1/upscalers lists",
                  name);
  second->how =
      (rdna__enlargement){.upscaler = images_upscaler(s, which), .name = s->options->images->upscaler_names[which]};
  const rdna__picture first = {.width = g->ask.width, .height = g->ask.height};
  double across = (double)second->width / first.width, down = (double)second->height / first.height;
  return rdna__enlargement_size(&second->how, &first, across > down ? across : down) == RDNA_OK ||
         refuse_with_status(p, "hr_scale");
}

static bool read_second(const server *s, const json_t *json, painting *g, problem *p) {
  painting_pass *second = &g->second;
  const char *sampler = NULL, *spacing = NULL, *said = NULL, *prompt = "", *negative = "";
  if (!read_bool(json, "enable_hr", &second->wanted, p) || !second->wanted) return p->status == 0;
  second->strength = 0.75;
  if (!read_second_sides(json, g, p) || !read_second_upscaler(s, json, g, p) ||
      !read_number(json, "denoising_strength", 0, 1, &second->strength, p) ||
      !read_whole(json, "hr_second_pass_steps", 0, MOST_STEPS, &second->steps, p) ||
      !read_text(json, "hr_sampler_name", &sampler, p) || !read_spacing(json, "hr_scheduler", &spacing, p) ||
      !read_text(json, "hr_prompt", &prompt, p) || !read_text(json, "hr_negative_prompt", &negative, p))
    return false;
  if (!second->steps) second->steps = g->ask.steps;
  if (sampler && (!*sampler || strcasecmp(sampler, "Use same sampler") == 0)) sampler = NULL;
  const char *name = sampler ? images_sampler(sampler, &said) : g->sampler;
  if (!name) return refuse(p, 400, NULL, "hr_sampler_name", "there is no sampler '%.60s'", sampler);
  if (!spacing) spacing = said;
  if (!spacing) spacing = sampler ? rdna__pipeline_spacing(images_model(s), name) : g->spacing;
  snprintf(second->sampler, sizeof second->sampler, "%s", name);
  snprintf(second->spacing, sizeof second->spacing, "%s", spacing);
  if (strlen(prompt) > MOST_PROMPT_BYTES || strlen(negative) > MOST_PROMPT_BYTES)
    return refuse(p, 400, NULL, "hr_prompt", "'hr_prompt' has more than %d bytes", MOST_PROMPT_BYTES);
  if (*prompt) second->prompt = strdup(prompt);
  if (*negative) second->negative = strdup(negative);
  return (!*prompt || second->prompt) && (!*negative || second->negative)
             ? true
             : refuse(p, 500, NULL, NULL, "no host memory for the request");
}

/* The settings that a request may have for itself. */
static bool read_override(const server *s, const json_t *json, painting *g, problem *p) {
  static const field_row known[] = {{"sd_model_checkpoint", FIELD_READ},
                                    {"CLIP_stop_at_last_layers", FIELD_READ},
                                    {"samples_format", FIELD_READ},
                                    {"jpeg_quality", FIELD_READ}};
  static const field_values formats[] = {{"samples_format", "[\"png\", \"jpg\", \"jpeg\"]"}};
  const json_t *over = json_object_get(json, "override_settings");
  const char *model = NULL, *format = "png";
  int64_t skip = 1, quality = SDAPI_JPEG_QUALITY;
  if (!over || json_is_null(over)) return true;
  if (!json_is_object(over)) return refuse(p, 400, NULL, "override_settings", "'override_settings' must be an object");
  if (!check_fields(over, known, sizeof known / sizeof *known, p) || !check_values(over, formats, 1, p) ||
      !read_text(over, "sd_model_checkpoint", &model, p) || !read_text(over, "samples_format", &format, p) ||
      !read_integer(over, "jpeg_quality", 1, 100, &quality, p) ||
      !read_integer(over, "CLIP_stop_at_last_layers", 1, MOST_SKIP, &skip, p))
    return false;
  g->ask.skip = (int)skip - 1;
  g->kind = strcmp(format, "png") == 0 ? RDNA__PICTURE_PNG : RDNA__PICTURE_JPEG;
  g->quality = (int)quality;
  return !model || strcmp(model, images_name(s)) == 0 ||
         refuse(p, 400, NULL, "sd_model_checkpoint", "there is no model '%.100s' here; there is '%s'", model,
                images_name(s));
}

static bool read_numbers(const json_t *json, painting *g, problem *p) {
  int batch = 1, rounds = 1;
  int64_t seed = -1;
  if (!read_whole(json, "steps", 1, MOST_STEPS, &g->ask.steps, p) ||
      !read_number(json, "cfg_scale", 0, MOST_GUIDANCE, &g->ask.guidance, p) ||
      !read_integer(json, "seed", -1, UINT32_MAX, &seed, p) ||
      !read_whole(json, "batch_size", 1, MOST_DRAWN, &batch, p) ||
      !read_whole(json, "n_iter", 1, MOST_DRAWN, &rounds, p))
    return false;
  if (seed >= 0) g->ask.seed = (uint64_t)seed;
  g->ask.count = batch * rounds;
  return g->ask.count <= MOST_DRAWN ||
         refuse(p, 400, NULL, "n_iter", "%d pictures; up to %d may be asked for at a time", g->ask.count, MOST_DRAWN);
}

/* Of "<lora:NAME>" or "<lora:NAME:SCALE>", which begins at |text| and ends before |end|. */
static bool take_lora(const server *s, painting *g, const char *text, const char *end, problem *p) {
  char name[128], number[32], *rest;
  const char *begin = text + strlen("<lora:"), *colon = memchr(begin, ':', (size_t)(end - begin));
  int length = (int)((colon ? colon : end) - begin), digits = colon ? (int)(end - colon) - 1 : 0;
  snprintf(number, sizeof number, "%.*s", digits, colon ? colon + 1 : "");
  double scale = colon ? strtod(number, &rest) : NAN;
  bool is_number = !colon || (digits > 0 && digits < (int)sizeof number && *rest == 0 && fabs(scale) <= 100);
  if (length < 1 || length >= (int)sizeof name || !is_number)
    return refuse(p, 400, NULL, "prompt", "'%.*s' is not <lora:NAME:SCALE>, with a number up to 100",
                  (int)(end - text < 100 ? end - text + 1 : 100), text);
  snprintf(name, sizeof name, "%.*s", length, begin);
  return painting_use_lora(s, g, "prompt", name, scale, p);
}

/* The LoRAs that the prompt names, which are no part of it. */
static bool take_loras(const server *s, painting *g, problem *p) {
  for (char *at = g->prompt; (at = strstr(at, "<lora:"));) {
    const char *end = strchr(at, '>');
    if (!end) return true;
    if (!take_lora(s, g, at, end, p)) return false;
    memmove(at, end + 1, strlen(end));
  }
  return true;
}

static bool read_texts(const server *s, const json_t *json, painting *g, problem *p) {
  const char *prompt = "", *negative = "";
  if (!read_text(json, "prompt", &prompt, p) || !read_text(json, "negative_prompt", &negative, p)) return false;
  return painting_set_text(g, false, "prompt", prompt, p) && take_loras(s, g, p) &&
         (!*negative || painting_set_text(g, true, "negative_prompt", negative, p));
}

/* What the ControlNet extension's interface has for a unit: detectors are not there, nothing is resized, and what is
 * for those changes nothing. */
static bool read_unit(const server *s, const json_t *unit, painting *g, problem *p) {
  static const field_row known[] = {{"enabled", FIELD_READ},
                                    {"image", FIELD_READ},
                                    {"input_image", FIELD_READ},
                                    {"module", FIELD_READ},
                                    {"model", FIELD_READ},
                                    {"weight", FIELD_READ},
                                    {"guidance_start", FIELD_READ},
                                    {"guidance_end", FIELD_READ},
                                    {"control_mode", FIELD_READ},
                                    {"resize_mode", FIELD_IGNORED},
                                    {"pixel_perfect", FIELD_IGNORED},
                                    {"low_vram", FIELD_IGNORED},
                                    {"lowvram", FIELD_IGNORED},
                                    {"processor_res", FIELD_IGNORED},
                                    {"threshold_a", FIELD_IGNORED},
                                    {"threshold_b", FIELD_IGNORED},
                                    {"hr_option", FIELD_IGNORED},
                                    {"save_detected_map", FIELD_IGNORED},
                                    {"mask", FIELD_REFUSED},
                                    {"mask_image", FIELD_REFUSED},
                                    {"effective_region_mask", FIELD_REFUSED}};
  static const field_values plain[] = {{"module", "[\"none\", \"None\"]"}};
  static const field_values offered[] = {{"control_mode", "[\"Balanced\", 0]"}};
  bool enabled = true;
  const char *model = NULL;
  double weight = 1, start = 0, end = 1;
  if (!json_is_object(unit)) return refuse(p, 400, NULL, scripts_field, "a unit of ControlNet must be an object");
  if (!check_fields(unit, known, sizeof known / sizeof *known, p) || !read_bool(unit, "enabled", &enabled, p) ||
      !check_values(unit, offered, 1, p) || !read_text(unit, "model", &model, p) ||
      !read_number(unit, "weight", 0, 100, &weight, p) || !read_number(unit, "guidance_start", 0, 1, &start, p) ||
      !read_number(unit, "guidance_end", 0, 1, &end, p))
    return false;
  if (!enabled) return true;
  const char *module = json_string_value(json_object_get(unit, "module")); /* "ip-adapter_clip_sd15", "-auto" … */
  bool adapts = module && strncmp(module, "ip-adapter", 10) == 0;
  if (!adapts && !check_values(unit, plain, 1, p)) return false;
  if (adapts && (start > 0 || end < 1))
    return refuse(p, 400, NULL, scripts_field, "an IP-Adapter counts in all steps: guidance_start 0, guidance_end 1");
  const char *hash = model ? strstr(model, " [") : NULL; /* "canny [e3fe7712]" */
  char name[128];
  snprintf(name, sizeof name, "%.*s",
           hash    ? (int)(hash - model)
           : model ? (int)strnlen(model, sizeof name)
                   : 0,
           model ? model : "");
  const json_t *image = json_object_get(unit, "image");
  if (!image || json_is_null(image)) image = json_object_get(unit, "input_image");
  return adapts ? painting_use_adapter(s, g, scripts_field, name, image, weight, p)
                : painting_use_control(s, g, scripts_field, name, image, weight, start, end, p);
}

/* Of scripts there is ControlNet. */
static bool read_scripts(const server *s, const json_t *json, painting *g, problem *p) {
  const json_t *scripts = json_object_get(json, scripts_field);
  const char *name;
  json_t *script;
  if (!scripts || json_is_null(scripts)) return true;
  if (!json_is_object(scripts)) return refuse(p, 400, NULL, scripts_field, "'alwayson_scripts' must be an object");
  json_object_foreach((json_t *)scripts, name, script) {
    if (strcasecmp(name, "controlnet") != 0)
      return refuse(p, 400, NULL, scripts_field, "there is no script '%.60s' here; there is controlnet", name);
    const json_t *units = json_object_get(script, "args");
    if (!json_is_array(units))
      return refuse(p, 400, NULL, scripts_field, "the script controlnet has 'args', a list of units");
    for (size_t i = 0; i < json_array_size(units); i++)
      if (!read_unit(s, json_array_get(units, i), g, p)) return false;
  }
  return true;
}

static bool read_request(const server *s, const json_t *json, bool of_picture, painting *g, problem *p) {
  if (!check_request(json, of_picture, p)) return false;
  g->sized = json_object_get(json, "width") || json_object_get(json, "height");
  bool fine = read_texts(s, json, g, p) && read_numbers(json, g, p) && read_sampler(s, json, g, p) &&
              read_whole(json, "width", 1, MOST_SIDE, &g->ask.width, p) &&
              read_whole(json, "height", 1, MOST_SIDE, &g->ask.height, p) && read_override(s, json, g, p);
  return fine && (of_picture ? sdapi_read_init(json, g, p) : read_second(s, json, g, p)) &&
         read_scripts(s, json, g, p) &&
         (!g->second.wanted || !g->ask.guide_count ||
          refuse(p, 400, NULL, "enable_hr", "a ControlNet's picture has the sides of one pass: leave 'enable_hr' out"));
}

static const char *shown_name(const char *name) {
  for (const sampler_name *n = images_samplers; n->name; n++)
    if (strcmp(n->name, name) == 0) return n->shown;
  return name;
}

/* That page says it as JSON in a text. */
static json_t *info_of(const exchange *x) {
  const painting *g = x->painting;
  const rdna_image_request *r = &g->ask;
  json_t *seeds = json_array(), *prompts = json_array(), *negatives = json_array(), *texts = json_array();
  const char *negative = r->negative ? r->negative : "";
  for (int i = 0; i < r->count; i++) {
    json_array_append_new(seeds, json_integer((json_int_t)(r->seed + (uint64_t)i)));
    json_array_append_new(prompts, json_string(r->prompt));
    json_array_append_new(negatives, json_string(negative));
    json_array_append_new(texts, json_string(g->texts[i]));
  }
  json_t *info =
      json_pack("{s:s, s:o, s:s, s:o, s:I, s:o, s:i, s:i, s:s, s:f, s:i, s:i, s:i, s:s, s:o}", "prompt", r->prompt,
                "all_prompts", prompts, "negative_prompt", negative, "all_negative_prompts", negatives, "seed",
                (json_int_t)r->seed, "all_seeds", seeds, "width", r->width, "height", r->height, "sampler_name",
                shown_name(r->sampler), "cfg_scale", r->guidance, "steps", r->steps, "batch_size", r->count,
                "clip_skip", r->skip + 1, "sd_model_name", images_name(x->server), "infotexts", texts);
  char *text = info ? json_dumps(info, JSON_PRESERVE_ORDER) : NULL;
  json_decref(info);
  json_t *made = text ? json_string(text) : NULL;
  free(text);
  return made;
}

static enum MHD_Result answer(exchange *x) {
  const painting *g = x->painting;
  if (g->status) {
    refuse(&x->problem, g->status, g->cancelled ? "Interrupted" : NULL, NULL, "%s", g->error);
    return sdapi_respond_refusal(x);
  }
  json_t *images = json_array();
  for (int i = 0; i < g->ask.count; i++) {
    bytes image = {0};
    append_base64(&image, g->files[i], g->sizes[i]);
    json_array_append_new(images, image.failed ? NULL : json_stringn(image.data, image.size));
    bytes_deinit(&image);
  }
  if (json_array_size(images) != (size_t)g->ask.count) {
    json_decref(images);
    refuse(&x->problem, 500, NULL, NULL, "no host memory for the answer");
    return sdapi_respond_refusal(x);
  }
  json_t *asked = parse_object(x->body.data, x->body.size, &x->problem);
  json_object_del(asked, "init_images"); /* which the client has */
  json_object_del(asked, "mask");
  json_object_del(asked, scripts_field);
  return respond_json(x, 200, json_pack("{s:o, s:o, s:o}", "images", images, "parameters", asked, "info", info_of(x)));
}

static enum MHD_Result draw(exchange *x, bool of_picture) {
  server *s = x->server;
  problem *p = &x->problem;
  if (x->painting) return answer(x);
  if (!images_are_there(x, p)) return sdapi_respond_refusal(x);
  json_t *json = parse_object(x->body.data, x->body.size, p);
  painting *g = json ? painting_create(s, &names, p) : NULL;
  bool fine = g && read_request(s, json, of_picture, g, p) && painting_submit(s, g, p);
  json_decref(json);
  if (fine) return images_await(x, g);
  painting_release(s, g);
  return sdapi_respond_refusal(x);
}

enum MHD_Result handle_txt2img(exchange *x) { return draw(x, false); }
enum MHD_Result handle_img2img(exchange *x) { return draw(x, true); }
