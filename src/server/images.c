#include "server/images.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include "base/status.h"
#include "model/image/pipeline.h"
#include "model/image/preview.h"
#include "picture/png.h"
#include "server/clock.h"
#include "server/embeddings.h"
#include "server/http.h"
#include "server/images_jobs.h"
#include "server/pictures.h"
#include "server/routes.h"

struct images {
  rdna_image_model *model;
  const rdna_image_model_info *info;
  char name[128];
  pthread_t thread;
  bool has_thread;
  pthread_cond_t changed;
  /* Under the server's lock. */
  bool ending; /* nothing more is taken */
  painting *first, *current;
  int waiting;
  rdna__preview preview;
  rdna_image_upscaler **upscalers; /* (upscaler_count of the options) */
};

bool images_are_there(const exchange *x, problem *p) {
  if (x->server->images) return true;
  return refuse(p, 404, "model_not_found", "model",
                "this server has no model of pictures; rdna serve --images FOLDER serves one");
}

bool images_check_model(const server *s, const char *model, problem *p) {
  return !model || s->options->any_model || strcmp(model, images_name(s)) == 0 ||
         refuse(p, 404, "model_not_found", "model", "there is no model '%.100s' here; there is '%s'", model,
                images_name(s));
}

const rdna_image_model_info *images_info(const server *s) { return s->images->info; }
const char *images_name(const server *s) { return s->images->name; }
bool images_flow(const server *s) { return s->images->model->family != NULL; }
painting *images_current(server *s) { return s->images->current; }
int images_waiting(const server *s) { return s->images->waiting; }
rdna_image_model *images_model(const server *s) { return s->images->model; }
void images_learn(server *s, const rdna__preview *preview) { s->images->preview = *preview; }
rdna_image_upscaler *images_upscaler(const server *s, int which) { return s->images->upscalers[which]; }

int images_find_upscaler(const server *s, const char *name) {
  const images_options *o = s->options->images;
  for (int i = 0; i < o->upscaler_count; i++)
    if (strcmp(o->upscaler_names[i], name) == 0) return i;
  return -1;
}

/* ---- names of samplers ---- */

const sampler_name images_samplers[] = {{"DDIM", "ddim"},
                                        {"DDPM", "ddpm"},
                                        {"PLMS", "pndm"},
                                        {"Euler", "euler"},
                                        {"Euler a", "euler_ancestral"},
                                        {"Heun", "heun"},
                                        {"DPM++ 2M", "dpmpp_2m"},
                                        {"DPM++ 2M SDE", "dpmpp_2m_sde"},
                                        {"DPM++ 3M SDE", "dpmpp_3m_sde"},
                                        {"DPM++ SDE", "dpmpp_sde"},
                                        {"UniPC", "unipc"},
                                        {"LCM", "lcm"},
                                        {NULL, NULL}};

const char *images_sampler(const char *given, const char **out_spacing) {
  static const char *const endings[] = {" Karras", " Exponential"}, *const spacings[] = {"karras", "exponential"};
  size_t size = strlen(given);
  *out_spacing = NULL;
  for (int i = 0; i < 2; i++) {
    size_t length = strlen(endings[i]);
    if (size <= length || strcasecmp(given + size - length, endings[i]) != 0) continue;
    *out_spacing = spacings[i];
    size -= length;
  }
  for (const sampler_name *n = images_samplers; n->name; n++) {
    if (strlen(n->shown) == size && strncasecmp(given, n->shown, size) == 0) return n->name;
    if (strlen(n->name) == size && strncasecmp(given, n->name, size) == 0) return n->name;
  }
  return NULL;
}

/* ---- what is asked ---- */

void painting_set_sampler(const server *s, painting *g, const char *sampler, const char *spacing) {
  if (sampler != g->sampler) snprintf(g->sampler, sizeof g->sampler, "%s", sampler);
  snprintf(g->spacing, sizeof g->spacing, "%s",
           spacing ? spacing : rdna__pipeline_spacing(s->images->model, g->sampler));
  g->ask.sampler = g->sampler;
  g->ask.spacing = g->spacing;
}

/* One that has room for those of the other pictures behind it. */
static uint64_t random_seed(void) {
  uint32_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = (uint32_t)clock_seconds();
  return seed % (UINT32_MAX - MOST_DRAWN + 2);
}

static void painting_free(painting *g) {
  for (int i = 0; i < MOST_DRAWN; i++) {
    free(g->files[i]);
    free(g->texts[i]);
  }
  free(g->latents);
  free(g->shown);
  free(g->prompt);
  free(g->negative);
  free(g->init);
  for (int i = 0; i < MOST_LOOKED; i++) free((float *)g->looked[i].values);
  free(g->mask);
  rdna__picture_deinit(&g->small);
  free(g->lora_scales);
  free(g->lora_used);
  for (int i = 0; i < MOST_GUIDES; i++) free((float *)g->guides[i].picture);
  for (int i = 0; i < MOST_GUIDES; i++) rdna__picture_deinit(&g->seen_pictures[i]);
  rdna__picture_deinit(&g->whole);
  free(g->share_drawn);
  free(g->second.prompt);
  free(g->second.negative);
  free(g);
}

painting *painting_create(const server *s, const painting_fields *fields, problem *p) {
  const rdna_image_model_info *info = s->images->info;
  painting *g = calloc(1, sizeof *g);
  if (!g) {
    refuse(p, 500, NULL, NULL, "no host memory for the request");
    return NULL;
  }
  g->references = 1;
  g->fields = fields;
  g->stage = "";
  g->ask = (rdna_image_request){RDNA_IMAGE_REQUEST_INIT};
  g->ask.count = 1;
  g->ask.width = info->width;
  g->ask.height = info->height;
  g->ask.steps = info->steps;
  g->ask.guidance = info->guidance;
  g->ask.seed = random_seed();
  g->ask.strength = 0.75;
  g->ask.frugal = s->options->images->frugal;
  g->ask.tile = s->options->images->tile;
  g->ask.previews = s->options->images->model->preview != NULL;
  painting_set_sampler(s, g, info->sampler, NULL);
  g->lora_scales = calloc((size_t)s->options->images->model->lora_count + 1, sizeof *g->lora_scales);
  g->lora_used = calloc((size_t)s->options->images->model->lora_count + 1, sizeof *g->lora_used);
  if (!g->lora_scales || !g->lora_used) {
    painting_free(g);
    refuse(p, 500, NULL, NULL, "no host memory for the request");
    return NULL;
  }
  g->ask.lora_scales = g->lora_scales;
  g->ask.lora_count = (size_t)s->options->images->model->lora_count;
  return g;
}

void painting_drop(painting *g) {
  if (--g->references == 0) painting_free(g);
}

void painting_release(server *s, painting *g) {
  if (!g) return;
  server_lock(s);
  painting_drop(g);
  server_unlock(s);
}

bool painting_set_text(painting *g, bool negative, const char *field, const char *text, problem *p) {
  char **to = negative ? &g->negative : &g->prompt;
  if (strlen(text) > MOST_PROMPT_BYTES)
    return refuse(p, 400, NULL, field, "'%s' has more than %d bytes", field, MOST_PROMPT_BYTES);
  free(*to);
  *to = strdup(text);
  if (!*to) return refuse(p, 500, NULL, NULL, "no host memory for the request");
  g->ask.prompt = g->prompt;
  g->ask.negative = g->negative;
  return true;
}

bool painting_take_init(painting *g, const char *field, const rdna__picture *picture, problem *p) {
  size_t count = 3 * (size_t)picture->width * (size_t)picture->height;
  if (picture->width > MOST_SIDE || picture->height > MOST_SIDE)
    return refuse(p, 400, NULL, field, "the initial picture is %d x %d; up to %d a side are taken", picture->width,
                  picture->height, MOST_SIDE);
  free(g->init);
  g->init = malloc(count * sizeof *g->init);
  if (!g->init) return refuse(p, 500, NULL, NULL, "no host memory for a picture");
  rdna__picture_values(picture, g->init);
  g->ask.init = g->init;
  g->ask.width = picture->width;
  g->ask.height = picture->height;
  g->sized = true;
  return true;
}

bool painting_take_looked(painting *g, const char *field, const rdna__picture *picture, problem *p) {
  size_t count = 3 * (size_t)picture->width * (size_t)picture->height;
  if (g->ask.picture_count == MOST_LOOKED) return refuse(p, 400, NULL, field, "more than %d pictures", 1 + MOST_LOOKED);
  if (picture->width > MOST_SIDE || picture->height > MOST_SIDE)
    return refuse(p, 400, NULL, field, "a picture is %d x %d; up to %d a side are taken", picture->width,
                  picture->height, MOST_SIDE);
  float *values = malloc(count * sizeof *values);
  if (!values) return refuse(p, 500, NULL, NULL, "no host memory for a picture");
  rdna__picture_values(picture, values);
  g->looked[g->ask.picture_count++] = (rdna_image_picture){values, picture->width, picture->height};
  g->ask.pictures = g->looked;
  return true;
}

bool painting_set_init(painting *g, const char *field, const json_t *url, problem *p) {
  rdna__picture picture = {0};
  bool fine = decode_picture(url, &picture, p) && painting_take_init(g, field, &picture, p);
  rdna__picture_deinit(&picture);
  snprintf(p->field, sizeof p->field, "%s", field);
  return fine;
}

/* Room for a mask that is as large as the initial picture. */
static bool make_mask(painting *g, const char *field, const rdna__picture *picture, problem *p) {
  if (picture->width != g->ask.width || picture->height != g->ask.height)
    return refuse(p, 400, NULL, field, "the mask is %d x %d, and the picture %d x %d", picture->width, picture->height,
                  g->ask.width, g->ask.height);
  free(g->mask);
  g->mask = malloc((size_t)picture->width * (size_t)picture->height * sizeof *g->mask);
  g->ask.mask = g->mask;
  return g->mask || refuse(p, 500, NULL, NULL, "no host memory for a mask");
}

bool painting_take_transparency(painting *g, const char *field, const rdna__picture *picture, problem *p) {
  if (!make_mask(g, field, picture, p)) return false;
  rdna__picture_transparency(picture, g->mask);
  return rdna__picture_is_transparent(picture) ||
         refuse(p, 400, NULL, field,
                "no pixel of the mask is transparent, so that nothing would be drawn anew; a PNG with transparency is "
                "asked for");
}

bool painting_take_mask(painting *g, const char *field, const rdna__picture *picture, problem *p) {
  if (!make_mask(g, field, picture, p)) return false;
  rdna__picture_light(picture, g->mask);
  return true;
}

bool painting_set_mask(painting *g, const char *field, const json_t *url, problem *p) {
  rdna__picture picture = {0};
  bool fine = decode_picture(url, &picture, p) && painting_take_mask(g, field, &picture, p);
  rdna__picture_deinit(&picture);
  snprintf(p->field, sizeof p->field, "%s", field);
  return fine;
}

bool painting_read_strength(painting *g, const json_t *json, problem *p) {
  const json_t *value = json_object_get(json, g->fields->strength);
  g->has_strength = value && !json_is_null(value);
  return read_number(json, g->fields->strength, 0, 1, &g->ask.strength, p);
}

static bool check_text(const server *s, const painting *g, problem *p) {
  char *text = painting_parameters(s, g, 0);
  if (!text) return refuse(p, 500, NULL, NULL, "no host memory for the request");
  rdna_status status = rdna__picture_check_parameters(g->kind, text);
  free(text);
  return status == RDNA_OK || refuse_by_status(p, status, "prompt");
}

static const char *field_of(const server *s, const painting *g, rdna__request_part part) {
  switch (part) {
    case RDNA__REQUEST_SIDES:
      if (g->ask.init) return g->fields->init;
      return g->ask.width % s->images->info->multiple ? g->fields->width : g->fields->height;
    case RDNA__REQUEST_INIT:
      return g->fields->init;
    case RDNA__REQUEST_STRENGTH:
      return g->fields->strength;
    case RDNA__REQUEST_STEPS:
      return "steps";
    case RDNA__REQUEST_SAMPLER:
      return g->fields->sampler;
    case RDNA__REQUEST_SPACING:
      return g->fields->spacing;
    case RDNA__REQUEST_GUIDES:
    case RDNA__REQUEST_REFERENCES:
      return g->fields->guides;
    case RDNA__REQUEST_LORAS:
      return g->fields->loras;
    case RDNA__REQUEST_GUIDANCE:
      return g->fields->guidance ? g->fields->guidance : "";
    default:
      return "";
  }
}

static int status_of(rdna_status status) {
  switch (status) {
    case RDNA_OK:
      return 0;
    case RDNA_INVALID_ARGUMENT:
    case RDNA_UNSUPPORTED:
      return 400;
    case RDNA_CANCELLED:
    case RDNA_OUT_OF_MEMORY:
      return 503;
    default:
      return 500;
  }
}

/* The second pass, with a picture to begin with that is not there yet. */
static bool check_second(const server *s, const painting *g, problem *p) {
  rdna__request_part part;
  float *init = calloc(3 * (size_t)g->second.width * (size_t)g->second.height, sizeof *init);
  if (!init) return refuse(p, 500, NULL, NULL, "no host memory for a picture");
  const rdna_image_request second = painting_second(g, 0, init);
  rdna_status status = rdna__pipeline_check(s->images->model, &second, &part);
  free(init);
  const char *field = part == RDNA__REQUEST_SIDES     ? "hr_scale"
                      : part == RDNA__REQUEST_STEPS   ? "hr_second_pass_steps"
                      : part == RDNA__REQUEST_SAMPLER ? "hr_sampler_name"
                      : part == RDNA__REQUEST_SPACING ? "hr_scheduler"
                                                      : field_of(s, g, part);
  return status == RDNA_OK || refuse(p, status_of(status), NULL, field, "the second pass: %s", rdna_last_error());
}

/* Before it waits for its turn. */
bool painting_check(const server *s, const painting *g, problem *p) {
  rdna__request_part part;
  uint64_t most = (uint64_t)UINT32_MAX - (uint64_t)(g->ask.count - 1);
  if (!check_text(s, g, p)) return false;
  if (g->ask.seed > most)
    return refuse(p, 400, NULL, "seed", "'seed' is %llu, and must be up to %llu, as each of %d pictures has the next",
                  (unsigned long long)g->ask.seed, (unsigned long long)most, g->ask.count);
  if (g->has_strength && s->images->model->looks)
    return refuse(p, 400, NULL, g->fields->strength, "%s takes all steps, whatever picture it looks at; leave '%s' out",
                  s->images->info->family, g->fields->strength);
  rdna_status status = rdna__pipeline_check(s->images->model, &g->ask, &part);
  if (status != RDNA_OK) return refuse(p, status_of(status), NULL, field_of(s, g, part), "%s", rdna_last_error());
  return !g->second.wanted || check_second(s, g, p);
}

bool painting_enqueue(server *s, painting *g, problem *p) {
  struct images *i = s->images;
  if (i->ending || s->draining)
    return refuse(p, 503, NULL, NULL, "the server is about to end and takes no more requests");
  if (i->waiting >= s->options->images->queue)
    return refuse(p, 429, "queue_full", NULL, "too many requests wait already; try again later");
  painting **link = &i->first;
  while (*link) link = &(*link)->next;
  *link = g;
  g->state = PAINTING_WAITS;
  g->references++;
  g->asked = clock_seconds();
  i->waiting++;
  pthread_cond_signal(&i->changed);
  return true;
}

bool painting_submit(server *s, painting *g, problem *p) {
  if (!painting_check(s, g, p)) return false;
  server_lock(s);
  bool fine = painting_enqueue(s, g, p);
  server_unlock(s);
  return fine;
}

/* ---- readers, under the lock ---- */

void painting_wake(painting *g) {
  g->changes++;
  if (g->reader && (g->streams || g->state == PAINTING_DONE)) resume(g->reader);
}

static void finish(painting *g, int status, const char *error) {
  g->state = PAINTING_DONE;
  g->finished = clock_seconds();
  g->status = status;
  snprintf(g->error, sizeof g->error, "%s", error);
  painting_wake(g);
}

void painting_cancel(server *s, painting *g) {
  g->cancelled = true;
  if (g->state != PAINTING_WAITS) return; /* the thread sees it with the next step */
  painting **link = &s->images->first;
  while (*link != g) link = &(*link)->next;
  *link = g->next;
  s->images->waiting--;
  finish(g, 503, "the picture was cancelled");
  painting_drop(g);
}

void images_look_at(exchange *x, bool gone, double now) {
  painting *g = x->painting;
  double most = x->server->options->most_seconds;
  if (!g || g->state == PAINTING_DONE || g->cancelled) return;
  if (gone || (most > 0 && now - g->asked > most)) {
    painting_cancel(x->server, g);
  } else if (x->stream && x->suspended && now - x->last_sent > x->server->options->ping_seconds) {
    x->ping = true;
    resume(x);
  }
}

void images_leave(exchange *x) {
  painting *g = x->painting;
  if (!g) return;
  if (g->reader == x) g->reader = NULL;
  if (g->state != PAINTING_DONE && !g->cancelled) painting_cancel(x->server, g);
  x->painting = NULL;
  painting_drop(g);
}

enum MHD_Result images_await(exchange *x, painting *g) {
  server *s = x->server;
  server_lock(s);
  x->painting = g;
  g->reader = x;
  join_waiting(x);
  bool sleeps = g->state != PAINTING_DONE;
  if (sleeps) {
    x->suspended = true;
    MHD_suspend_connection(x->connection);
  }
  server_unlock(s);
  return sleeps ? MHD_YES : x->route->handle(x);
}

/* A copy of what the model of previews made of the last step, or NULL. */
static float *copy_shown(server *s, const painting *g, int *out_height, int *out_width) {
  server_lock(s);
  *out_height = g->height, *out_width = g->width;
  size_t bytes_of = 3 * (size_t)g->height * (size_t)g->width * sizeof(float);
  float *copy = g->shown ? malloc(bytes_of) : NULL;
  if (copy) memcpy(copy, g->shown, bytes_of);
  server_unlock(s);
  return copy;
}

/* What the last picture teaches of the last step's latents, (3, height, width) of those, or NULL. */
static float *colour_latents(server *s, const painting *g, int *out_height, int *out_width) {
  const rdna_image_model_info *info = s->images->info;
  float *latents = NULL, *colours = NULL;
  server_lock(s);
  rdna__preview preview = s->images->preview;
  int height = *out_height = g->height / info->factor, width = *out_width = g->width / info->factor;
  size_t places = (size_t)height * (size_t)width, count = places * (size_t)info->latent_channels;
  if (g->latents && preview.channels && (latents = malloc(count * sizeof *latents)))
    memcpy(latents, g->latents, count * sizeof *latents);
  server_unlock(s);
  if (latents) colours = malloc(3 * places * sizeof *colours);
  if (colours) rdna__preview_make(&preview, latents, height, width, colours);
  free(latents);
  return colours;
}

bool painting_preview(server *s, const painting *g, bytes *out) {
  int height, width;
  float *colours = (g->ask.previews ? copy_shown : colour_latents)(s, g, &height, &width);
  rdna__picture picture = {0};
  uint8_t *png = NULL;
  size_t size = 0;
  bool fine = colours && rdna__picture_of_values(colours, width, height, &picture) == RDNA_OK &&
              rdna__png_encode(&picture, &png, &size) == RDNA_OK;
  if (fine) append_base64(out, png, size);
  rdna__picture_deinit(&picture);
  free(png);
  free(colours);
  return fine;
}

/* ---- the thread ---- */

static void *paint(void *data) {
  server *s = data;
  struct images *i = s->images;
  server_lock(s);
  for (;;) {
    while (!i->first && !i->ending) pthread_cond_wait(&i->changed, &s->lock);
    painting *g = i->first;
    if (!g) break;
    i->first = g->next;
    i->waiting--;
    i->current = g;
    g->state = PAINTING_RUNS;
    g->begun = clock_seconds();
    server_unlock(s);
    rdna_status status = painting_draw(s, g);
    server_lock(s);
    i->current = NULL;
    finish(g, status_of(status), status == RDNA_OK ? "" : rdna_last_error());
    painting_drop(g);
    pthread_cond_broadcast(&i->changed);
  }
  server_unlock(s);
  return NULL;
}

/* ---- its life ---- */

static void set_name(struct images *i, const images_options *o) {
  const char *path = o->folder, *end = path + strlen(path);
  while (end > path && end[-1] == '/') end--;
  const char *begin = end;
  while (begin > path && begin[-1] != '/') begin--;
  if (o->name)
    snprintf(i->name, sizeof i->name, "%s", o->name);
  else
    snprintf(i->name, sizeof i->name, "%.*s", (int)(end - begin), begin);
}

static rdna_status open_upscalers(server *s, struct images *i) {
  const images_options *o = s->options->images;
  i->upscalers = calloc((size_t)o->upscaler_count + 1, sizeof(rdna_image_upscaler *));
  if (!i->upscalers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of upscalers");
  for (int k = 0; k < o->upscaler_count; k++)
    RDNA_TRY(rdna_image_upscaler_create(s->device, o->upscalers[k], o->model->dtype, &i->upscalers[k]));
  return RDNA_OK;
}

rdna_status images_start(server *s) {
  const images_options *o = s->options->images;
  if (!o) return RDNA_OK;
  struct images *i = calloc(1, sizeof *i);
  if (!i) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a model of pictures");
  pthread_cond_init(&i->changed, NULL);
  set_name(i, o);
  s->images = i;
  RDNA_TRY(rdna_image_model_open(s->device, o->folder, o->model, &i->model));
  i->info = rdna_image_model_get_info(i->model);
  RDNA_TRY(open_upscalers(s, i));
  i->has_thread = pthread_create(&i->thread, NULL, paint, s) == 0;
  return i->has_thread ? RDNA_OK : rdna__fail(RDNA_UNAVAILABLE, "the system starts no thread to draw");
}

void images_drain(server *s, double seconds) {
  struct images *i = s->images;
  double until = clock_seconds() + seconds;
  for (bool busy = i != NULL; busy && clock_seconds() < until;) {
    server_lock(s);
    i->ending = true;
    pthread_cond_signal(&i->changed);
    busy = i->first || i->current;
    server_unlock(s);
    if (busy) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
}

void images_stop(server *s) {
  struct images *i = s->images;
  if (!i) return;
  server_lock(s);
  i->ending = true;
  while (i->first) painting_cancel(s, i->first);
  if (i->current) i->current->cancelled = true;
  image_jobs_end(s);
  pthread_cond_signal(&i->changed);
  server_unlock(s);
  if (i->has_thread) pthread_join(i->thread, NULL);
  i->has_thread = false;
}

void images_free(server *s) {
  struct images *i = s->images;
  if (!i) return;
  for (int k = 0; i->upscalers && k < s->options->images->upscaler_count; k++)
    rdna_image_upscaler_release(i->upscalers[k]);
  free(i->upscalers);
  rdna_image_model_release(i->model);
  pthread_cond_destroy(&i->changed);
  free(i);
  s->images = NULL;
}
