/* AUTOMATIC1111's interface (/sdapi/v1/…), for programs that were written for it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/clock.h"
#include "server/embeddings.h"
#include "server/http.h"
#include "server/images.h"
#include "server/routes.h"

enum { MOST_STEPS = 150, MOST_GUIDANCE = 30, MOST_SKIP = 12, JPEG_QUALITY = 80 };

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
                                   {"resize_mode", FIELD_IGNORED},
                                   {"include_init_images", FIELD_REFUSED},
                                   {"restore_faces", FIELD_REFUSED},
                                   {"tiling", FIELD_REFUSED},
                                   {"enable_hr", FIELD_REFUSED},
                                   {"mask", FIELD_REFUSED},
                                   {"styles", FIELD_REFUSED},
                                   {"script_name", FIELD_REFUSED},
                                   {"script_args", FIELD_REFUSED},
                                   {"alwayson_scripts", FIELD_READ}};

/* eta's usual value is the sampler's own, and so there is none to give. */
static const field_values some[] = {{"eta", "[]"},
                                    {"s_tmin", "[0]"},
                                    {"s_tmax", "[0]"},
                                    {"s_noise", "[1]"},
                                    {"seed_resize_from_h", "[-1, 0]"},
                                    {"seed_resize_from_w", "[-1, 0]"},
                                    {"send_images", "[true]"},
                                    {"override_settings_restore_afterwards", "[true]"}};

static bool check_request(const json_t *json, bool of_picture, problem *p) {
  static const char *const of_img2img[] = {"init_images", "denoising_strength", "resize_mode"};
  if (!check_fields(json, fields, sizeof fields / sizeof *fields, p) ||
      !check_values(json, some, sizeof some / sizeof *some, p))
    return false;
  for (int i = 0; i < 3 && !of_picture; i++) {
    const json_t *value = json_object_get(json, of_img2img[i]);
    if (value && !json_is_null(value) && !(json_is_number(value) && json_number_value(value) == 0))
      return refuse(p, 400, "unsupported_parameter", of_img2img[i],
                    "'%s' is of img2img; txt2img begins with noise alone: leave it out", of_img2img[i]);
  }
  return true;
}

static bool read_whole(const json_t *json, const char *field, int low, int high, int *out, problem *p) {
  int64_t value = *out;
  bool fine = read_integer(json, field, low, high, &value, p);
  *out = (int)value;
  return fine;
}

/* Spacings of noise levels by that page's names; the first is the model's own. */
static const sampler_name spacings[] = {{"Automatic", NULL},  {"Simple", "simple"},
                                        {"Karras", "karras"}, {"Exponential", "exponential"},
                                        {"Beta", "beta"},     {"SGM Uniform", "sgm_uniform"}};
enum { SPACINGS = sizeof spacings / sizeof *spacings };

static bool read_spacing(const json_t *json, const char **out, problem *p) {
  const char *given = NULL;
  if (!read_text(json, "scheduler", &given, p)) return false;
  for (int i = 0; i < SPACINGS; i++) {
    const sampler_name *n = &spacings[i];
    if (given && strcasecmp(given, n->shown) != 0 && !(n->name && strcasecmp(given, n->name) == 0)) continue;
    *out = n->name;
    return true;
  }
  return refuse(p, 400, NULL, "scheduler", "there is no scheduler '%.60s'", given);
}

static bool read_sampler(const server *s, const json_t *json, painting *g, problem *p) {
  const char *sampler = NULL, *index = NULL, *spacing = NULL, *said = NULL;
  if (!read_text(json, "sampler_index", &index, p) || !read_text(json, "sampler_name", &sampler, p) ||
      !read_spacing(json, &spacing, p))
    return false;
  if (!sampler) sampler = index;
  const char *name = sampler && *sampler ? images_sampler(sampler, &said) : g->ask.sampler;
  if (!name) return refuse(p, 400, NULL, "sampler_name", "there is no sampler '%.60s'", sampler);
  painting_set_sampler(s, g, name, spacing ? spacing : said);
  return true;
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
  int64_t skip = 1, quality = JPEG_QUALITY;
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
  static const field_values offered[] = {{"module", "[\"none\", \"None\"]"}, {"control_mode", "[\"Balanced\", 0]"}};
  bool enabled = true;
  const char *model = NULL;
  double weight = 1, start = 0, end = 1;
  if (!json_is_object(unit)) return refuse(p, 400, NULL, scripts_field, "a unit of ControlNet must be an object");
  if (!check_fields(unit, known, sizeof known / sizeof *known, p) || !read_bool(unit, "enabled", &enabled, p) ||
      !check_values(unit, offered, 2, p) || !read_text(unit, "model", &model, p) ||
      !read_number(unit, "weight", 0, 100, &weight, p) || !read_number(unit, "guidance_start", 0, 1, &start, p) ||
      !read_number(unit, "guidance_end", 0, 1, &end, p))
    return false;
  if (!enabled) return true;
  const char *hash = model ? strstr(model, " [") : NULL; /* "canny [e3fe7712]" */
  char name[128];
  snprintf(name, sizeof name, "%.*s",
           hash    ? (int)(hash - model)
           : model ? (int)strnlen(model, sizeof name)
                   : 0,
           model ? model : "");
  const json_t *image = json_object_get(unit, "image");
  if (!image || json_is_null(image)) image = json_object_get(unit, "input_image");
  return painting_use_control(s, g, scripts_field, name, image, weight, start, end, p);
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

/* The picture to begin with, whose size the other's is to be. */
static bool read_init(const json_t *json, painting *g, problem *p) {
  const json_t *images = json_object_get(json, "init_images"), *image = json_array_get(images, 0);
  int width = g->ask.width, height = g->ask.height;
  bool sized = g->sized;
  if (json_array_size(images) != 1 || !json_is_string(image))
    return refuse(p, 400, NULL, "init_images", "'init_images' must be a list of one PNG in base64");
  if (!painting_read_strength(g, json, p) || !painting_set_init(g, "init_images", image, p)) return false;
  return !sized || (g->ask.width == width && g->ask.height == height) ||
         refuse(p, 400, NULL, "width",
                "the initial picture is %d x %d, and %d x %d is asked for; pictures are not resized", g->ask.width,
                g->ask.height, width, height);
}

static bool read_request(const server *s, const json_t *json, bool of_picture, painting *g, problem *p) {
  if (!check_request(json, of_picture, p)) return false;
  g->sized = json_object_get(json, "width") || json_object_get(json, "height");
  bool fine = read_texts(s, json, g, p) && read_numbers(json, g, p) && read_sampler(s, json, g, p) &&
              read_whole(json, "width", 1, MOST_SIDE, &g->ask.width, p) &&
              read_whole(json, "height", 1, MOST_SIDE, &g->ask.height, p) && read_override(s, json, g, p);
  return fine && (!of_picture || read_init(json, g, p)) && read_scripts(s, json, g, p);
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
  json_t *asked = parse_object(x->body.data, x->body.size, &x->problem);
  json_object_del(asked, "init_images"); /* which the client has */
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

/* ---- what there is ---- */

static json_t *options_of(const server *s) {
  return json_pack("{s:s, s:i, s:s, s:i}", "sd_model_checkpoint", images_name(s), "CLIP_stop_at_last_layers", 1,
                   "samples_format", "png", "jpeg_quality", JPEG_QUALITY);
}

/* Settings of all requests are not kept: what changes nothing is taken, as pages send it, and other values are refused.
 */
static bool check_options(const server *s, const json_t *json, problem *p) {
  json_t *known = options_of(s), *value;
  const char *name;
  json_object_foreach((json_t *)json, name, value) {
    const json_t *had = json_object_get(known, name);
    if (!had) refuse(p, 400, NULL, name, "there is no option '%.80s' here", name);
    if (had && !json_equal(had, value))
      refuse(p, 400, NULL, name, "the option '%.80s' cannot be changed here; a request may have override_settings",
             name);
  }
  json_decref(known);
  return p->status == 0;
}

enum MHD_Result handle_sdapi_options(exchange *x) {
  problem *p = &x->problem;
  if (!images_are_there(x, p)) return sdapi_respond_refusal(x);
  if (strcmp(x->route->method, "GET") == 0) return respond_json(x, 200, options_of(x->server));
  json_t *json = parse_object(x->body.data, x->body.size, p);
  if (json) check_options(x->server, json, p);
  json_decref(json);
  if (p->status) return sdapi_respond_refusal(x);
  bytes nothing = {0};
  bytes_append_text(&nothing, "null\n");
  return respond_bytes(x, 200, "application/json", &nothing);
}

/* Models of straight lines have one. */
enum MHD_Result handle_sdapi_samplers(exchange *x) {
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  bool one = images_flow(x->server);
  json_t *list = json_array();
  for (const sampler_name *n = images_samplers; n->name; n++)
    if (!one || strcmp(n->name, "euler") == 0)
      json_array_append_new(list, json_pack("{s:s, s:[s], s:{}}", "name", n->shown, "aliases", n->name, "options"));
  return respond_json(x, 200, list);
}

enum MHD_Result handle_sdapi_schedulers(exchange *x) {
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  json_t *list = json_array();
  for (int i = 0; i < SPACINGS; i++)
    if (!images_flow(x->server) || !spacings[i].name || strcmp(spacings[i].name, "simple") == 0)
      json_array_append_new(list, json_pack("{s:s, s:s}", "name", spacings[i].name ? spacings[i].name : "automatic",
                                            "label", spacings[i].shown));
  return respond_json(x, 200, list);
}

enum MHD_Result handle_sdapi_models(exchange *x) {
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  const char *name = images_name(x->server);
  return respond_json(x, 200,
                      json_pack("[{s:s, s:s, s:s}]", "title", name, "model_name", name, "filename",
                                x->server->options->images->folder));
}

/* The files' names, as requests have them. */
enum MHD_Result handle_sdapi_loras(exchange *x) {
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  const images_options *o = x->server->options->images;
  json_t *list = json_array();
  for (int i = 0; i < o->model->lora_count; i++)
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:{}}", "name", o->lora_names[i], "alias", o->lora_names[i],
                                          "path", o->model->loras[i].path, "metadata"));
  return respond_json(x, 200, list);
}

/* The ControlNet extension's. */
enum MHD_Result handle_controlnet(exchange *x) {
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  const images_options *o = x->server->options->images;
  if (strcmp(x->path, "/controlnet/version") == 0) return respond_json(x, 200, json_pack("{s:i}", "version", 2));
  if (strcmp(x->path, "/controlnet/module_list") == 0)
    return respond_json(x, 200, json_pack("{s:[s]}", "module_list", "none"));
  json_t *list = json_array();
  for (size_t i = 0; i < o->model->control_count; i++) json_array_append_new(list, json_string(o->control_names[i]));
  return respond_json(x, 200, json_pack("{s:o}", "model_list", list));
}

/* ---- while it draws ---- */

enum MHD_Result handle_sdapi_progress(exchange *x) {
  server *s = x->server;
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  double share = 0, left = 0;
  int step = 0, steps = 0;
  bytes image = {0};
  server_lock(s);
  painting *g = images_current(s);
  int jobs = images_waiting(s) + (g != NULL);
  if (g) {
    step = g->step;
    steps = g->steps;
    share = steps ? (double)(g->picture * steps + step) / (g->ask.count * steps) : 0;
    left = share > 0 ? (clock_seconds() - g->begun) * (1 - share) / share : 0;
    g->references++;
  }
  server_unlock(s);
  bool seen = g && painting_preview(s, g, &image) && !image.failed;
  painting_release(s, g);
  json_t *answer = json_pack("{s:f, s:f, s:{s:b, s:b, s:s, s:i, s:i, s:i, s:i}, s:o, s:n}", "progress", share,
                             "eta_relative", left, "state", "skipped", 0, "interrupted", 0, "job", g ? "txt2img" : "",
                             "job_count", jobs, "job_no", 0, "sampling_step", step, "sampling_steps", steps,
                             "current_image", seen ? json_stringn(image.data, image.size) : json_null(), "textinfo");
  bytes_deinit(&image);
  return respond_json(x, 200, answer);
}

enum MHD_Result handle_sdapi_interrupt(exchange *x) {
  server *s = x->server;
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  server_lock(s);
  if (images_current(s)) painting_cancel(s, images_current(s));
  server_unlock(s);
  return respond_json(x, 200, json_object());
}
