/* AUTOMATIC1111's interface (/sdapi/v1/…): what there is, and how far the picture is. */
#include <string.h>

#include "server/clock.h"
#include "server/embeddings.h"
#include "server/http.h"
#include "server/images.h"
#include "server/routes.h"

const sampler_name images_spacings[] = {
    {"Automatic", NULL}, {"Simple", "simple"},           {"Karras", "karras"}, {"Exponential", "exponential"},
    {"Beta", "beta"},    {"SGM Uniform", "sgm_uniform"}, {NULL, NULL}};

/* ---- what there is ---- */

static json_t *options_of(const server *s) {
  return json_pack("{s:s, s:i, s:s, s:i}", "sd_model_checkpoint", images_name(s), "CLIP_stop_at_last_layers", 1,
                   "samples_format", "png", "jpeg_quality", SDAPI_JPEG_QUALITY);
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
  for (const sampler_name *n = images_spacings; n->shown; n++)
    if (!images_flow(x->server) || !n->name || strcmp(n->name, "simple") == 0)
      json_array_append_new(list, json_pack("{s:s, s:s}", "name", n->name ? n->name : "automatic", "label", n->shown));
  return respond_json(x, 200, list);
}

enum MHD_Result handle_sdapi_models(exchange *x) {
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  const char *name = images_name(x->server);
  return respond_json(x, 200,
                      json_pack("[{s:s, s:s, s:n, s:n, s:s, s:n}]", "title", name, "model_name", name, "hash", "sha256",
                                "filename", x->server->options->images->folder, "config"));
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
    return respond_json(x, 200, json_pack("{s:[s, s]}", "module_list", "none", "ip-adapter-auto"));
  json_t *list = json_array();
  for (size_t i = 0; i < o->model->control_count; i++) json_array_append_new(list, json_string(o->control_names[i]));
  for (size_t i = 0; i < o->model->adapter_count; i++) json_array_append_new(list, json_string(o->adapter_names[i]));
  return respond_json(x, 200, json_pack("{s:o}", "model_list", list));
}

/* What that page has and this server does not: clients ask for the lists before they draw. */
static const struct {
  const char *path, *answer;
} nothings[] = {{"/sdapi/v1/cmd-flags", "{}"},
                {"/sdapi/v1/embeddings", "{\"loaded\": {}, \"skipped\": {}}"},
                {"/sdapi/v1/face-restorers", "[]"},
                {"/sdapi/v1/hypernetworks", "[]"},
                {"/sdapi/v1/latent-upscale-modes", "[]"},
                {"/sdapi/v1/prompt-styles", "[]"},
                {"/sdapi/v1/realesrgan-models", "[]"},
                {"/sdapi/v1/refresh-checkpoints", "null"},
                {"/sdapi/v1/refresh-loras", "null"},
                {"/sdapi/v1/script-info",
                 "[{\"name\": \"controlnet\", \"is_alwayson\": true, \"is_img2img\": true, \"args\": []}]"},
                {"/sdapi/v1/scripts", "{\"txt2img\": [\"controlnet\"], \"img2img\": [\"controlnet\"]}"},
                {"/sdapi/v1/sd-modules", "[]"},
                {"/sdapi/v1/sd-vae", "[]"}};

enum MHD_Result handle_sdapi_nothing(exchange *x) {
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  bytes answer = {0};
  for (size_t i = 0; i < sizeof nothings / sizeof *nothings; i++)
    if (strcmp(nothings[i].path, x->path) == 0) bytes_append_text(&answer, nothings[i].answer);
  return respond_bytes(x, 200, "application/json", &answer);
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
    share = g->share;
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
