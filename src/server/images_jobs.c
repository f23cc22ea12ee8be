#include "server/images_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/clock.h"
#include "server/embeddings.h"
#include "server/http.h"

enum { MOST_KEPT = 1024, LEAST_SIDE = 256, SIDE_STEP = 8, MOST_STEPS = 150, MOST_GUIDANCE = 20 };
static const double UNREAD_SECONDS = 300; /* that a job, drawn, waits for its reader */

static const painting_fields names = {.width = "width",
                                      .height = "height",
                                      .init = "input_image",
                                      .strength = "strength",
                                      .sampler = "sampler",
                                      .spacing = "schedule",
                                      .guides = "controls",
                                      .loras = "loras",
                                      .guidance = "pag_scale"};
static const painting_fields inpaint_names = {.width = "init_image",
                                              .height = "init_image",
                                              .init = "init_image",
                                              .strength = "strength",
                                              .sampler = "sampler",
                                              .spacing = "schedule",
                                              .guides = "controls",
                                              .loras = "loras",
                                              .guidance = "pag_scale"};

struct kept_painting {
  struct kept_painting *next;
  char id[48];
  painting *painting;
};

/* ---- the list, under the lock ---- */

static struct kept_painting **find(server *s, const char *id) {
  struct kept_painting **link = &s->kept_paintings;
  while (*link && strcmp((*link)->id, id) != 0) link = &(*link)->next;
  return link;
}

/* The painting, whose reference the caller has now. */
static painting *take(server *s, struct kept_painting **link) {
  struct kept_painting *k = *link;
  painting *g = k->painting;
  *link = k->next;
  s->kept_painting_count--;
  free(k);
  return g;
}

static void forget(server *s, struct kept_painting **link) {
  painting *g = take(s, link);
  if (g->state != PAINTING_DONE && !g->cancelled) painting_cancel(s, g);
  painting_drop(g);
}

void image_jobs_sweep(server *s, double now) {
  for (struct kept_painting **link = &s->kept_paintings; *link;) {
    const painting *g = (*link)->painting;
    if (g->state == PAINTING_DONE && now - g->finished > UNREAD_SECONDS)
      forget(s, link);
    else
      link = &(*link)->next;
  }
}

void image_jobs_end(server *s) {
  while (s->kept_paintings) forget(s, &s->kept_paintings);
}

/* Into the list and the queue under one lock: what ends the server finds it in both or in neither. */
static bool keep(server *s, painting *g, char id[48], problem *p) {
  if (!painting_check(s, g, p)) return false;
  struct kept_painting *k = calloc(1, sizeof *k);
  if (!k) return refuse(p, 500, NULL, NULL, "no host memory for the request");
  make_id(k->id, sizeof k->id, "job-");
  k->painting = g;
  snprintf(id, 48, "%s", k->id);
  server_lock(s);
  bool full = s->kept_painting_count >= MOST_KEPT;
  if (full) refuse(p, 429, "queue_full", NULL, "%d jobs wait for their readers already; try again later", MOST_KEPT);
  bool fine = !full && painting_enqueue(s, g, p);
  if (fine) {
    k->next = s->kept_paintings;
    s->kept_paintings = k;
    s->kept_painting_count++;
  }
  server_unlock(s);
  if (!fine) free(k);
  return fine;
}

/* ---- asking ---- */

static bool read_side(const json_t *json, const char *field, int *out, bool *sized, problem *p) {
  int64_t value = *out;
  *sized |= json_is_integer(json_object_get(json, field));
  if (!read_integer(json, field, LEAST_SIDE, MOST_SIDE, &value, p)) return false;
  *out = (int)value;
  return value % SIDE_STEP == 0 || refuse(p, 400, NULL, field, "'%s' must be a multiple of %d", field, SIDE_STEP);
}

static bool read_prompt(const json_t *json, painting *g, problem *p) {
  const char *prompt = NULL, *negative = NULL;
  if (!read_text(json, "prompt", &prompt, p) || !read_text(json, "negative_prompt", &negative, p)) return false;
  if (!prompt || !*prompt) return refuse(p, 400, NULL, "prompt", "'prompt' is missing or empty");
  return painting_set_text(g, false, "prompt", prompt, p) &&
         (!negative || painting_set_text(g, true, "negative_prompt", negative, p));
}

/* Guidance by perturbed attention. */
static bool read_perturbing(const json_t *json, painting *g, problem *p) {
  const char *layers = NULL;
  if (!read_number(json, "pag_scale", 0, MOST_GUIDANCE, &g->ask.pag, p) || !read_text(json, "pag_layers", &layers, p))
    return false;
  if (!layers) return true;
  if (strlen(layers) >= sizeof g->pag_layers)
    return refuse(p, 400, NULL, "pag_layers", "'pag_layers' has more than %zu bytes", sizeof g->pag_layers - 1);
  snprintf(g->pag_layers, sizeof g->pag_layers, "%s", layers);
  g->ask.pag_layers = g->pag_layers;
  return true;
}

static bool read_settings(const server *s, const json_t *json, painting *g, problem *p) {
  int64_t steps = g->ask.steps, seed = (int64_t)g->ask.seed;
  const char *sampler = NULL, *spacing = NULL, *said = NULL, *model = NULL;
  if (!read_text(json, "model", &model, p) || !images_check_model(s, model, p)) return false;
  if (!read_prompt(json, g, p) || !read_integer(json, "steps", 1, MOST_STEPS, &steps, p) ||
      !read_number(json, "guidance_scale", 0, MOST_GUIDANCE, &g->ask.guidance, p) ||
      !read_number(json, "guidance_rescale", 0, 1, &g->ask.rescale, p) || !read_perturbing(json, g, p) ||
      !read_integer(json, "seed", 0, UINT32_MAX, &seed, p) || !read_text(json, "sampler", &sampler, p) ||
      !read_text(json, "schedule", &spacing, p))
    return false;
  const char *name = sampler ? images_sampler(sampler, &said) : g->ask.sampler;
  if (!name) return refuse(p, 400, NULL, "sampler", "there is no sampler '%.60s'", sampler);
  if (sampler || spacing) painting_set_sampler(s, g, name, spacing ? spacing : said);
  g->ask.steps = (int)steps;
  g->ask.seed = (uint64_t)seed;
  return true;
}

static bool read_generation(const server *s, const json_t *json, painting *g, problem *p) {
  static const field_row fields[] = {{"operation", FIELD_READ},
                                     {"hive_id", FIELD_IGNORED},
                                     {"worker_id", FIELD_IGNORED},
                                     {"model", FIELD_READ},
                                     {"device", FIELD_IGNORED},
                                     {"stream", FIELD_IGNORED},
                                     {"prompt", FIELD_READ},
                                     {"negative_prompt", FIELD_READ},
                                     {"steps", FIELD_READ},
                                     {"seed", FIELD_READ},
                                     {"guidance_scale", FIELD_READ},
                                     {"width", FIELD_READ},
                                     {"height", FIELD_READ},
                                     {"sampler", FIELD_READ},
                                     {"schedule", FIELD_READ},
                                     {"loras", FIELD_READ},
                                     {"controls", FIELD_READ},
                                     {"ip_adapters", FIELD_READ},
                                     {"guidance_rescale", FIELD_READ},
                                     {"pag_scale", FIELD_READ},
                                     {"pag_layers", FIELD_READ}};
  return check_fields(json, fields, sizeof fields / sizeof *fields, p) && read_settings(s, json, g, p) &&
         read_side(json, "width", &g->ask.width, &g->sized, p) &&
         read_side(json, "height", &g->ask.height, &g->sized, p) && painting_read_extras(s, json, g, p);
}

static bool read_transform(const server *s, const json_t *json, painting *g, problem *p) {
  static const field_row fields[] = {{"operation", FIELD_READ},
                                     {"hive_id", FIELD_IGNORED},
                                     {"worker_id", FIELD_IGNORED},
                                     {"model", FIELD_READ},
                                     {"device", FIELD_IGNORED},
                                     {"stream", FIELD_IGNORED},
                                     {"prompt", FIELD_READ},
                                     {"negative_prompt", FIELD_READ},
                                     {"steps", FIELD_READ},
                                     {"seed", FIELD_READ},
                                     {"guidance_scale", FIELD_READ},
                                     {"input_image", FIELD_READ},
                                     {"strength", FIELD_READ},
                                     {"sampler", FIELD_READ},
                                     {"schedule", FIELD_READ},
                                     {"loras", FIELD_READ},
                                     {"controls", FIELD_READ},
                                     {"ip_adapters", FIELD_READ},
                                     {"guidance_rescale", FIELD_READ},
                                     {"pag_scale", FIELD_READ},
                                     {"pag_layers", FIELD_READ}};
  const char *image = NULL;
  g->ask.strength = 0.8;
  if (!check_fields(json, fields, sizeof fields / sizeof *fields, p) || !read_settings(s, json, g, p) ||
      !painting_read_strength(g, json, p) || !read_text(json, "input_image", &image, p))
    return false;
  if (!image) return refuse(p, 400, NULL, "input_image", "'input_image' is missing");
  return painting_set_init(g, "input_image", json_object_get(json, "input_image"), p) &&
         painting_read_extras(s, json, g, p);
}

static bool read_inpaint(const server *s, const json_t *json, painting *g, problem *p) {
  static const field_row fields[] = {{"operation", FIELD_READ},      {"hive_id", FIELD_IGNORED},
                                     {"worker_id", FIELD_IGNORED},   {"model", FIELD_READ},
                                     {"device", FIELD_IGNORED},      {"stream", FIELD_IGNORED},
                                     {"prompt", FIELD_READ},         {"negative_prompt", FIELD_READ},
                                     {"steps", FIELD_READ},          {"seed", FIELD_READ},
                                     {"guidance_scale", FIELD_READ}, {"init_image", FIELD_READ},
                                     {"mask_image", FIELD_READ},     {"strength", FIELD_READ},
                                     {"sampler", FIELD_READ},        {"schedule", FIELD_READ},
                                     {"loras", FIELD_READ},          {"controls", FIELD_READ},
                                     {"ip_adapters", FIELD_READ},    {"guidance_rescale", FIELD_READ},
                                     {"pag_scale", FIELD_READ},      {"pag_layers", FIELD_READ}};
  const char *image = NULL, *mask = NULL;
  g->fields = &inpaint_names;
  g->ask.strength = 1;
  if (!check_fields(json, fields, sizeof fields / sizeof *fields, p) || !read_settings(s, json, g, p) ||
      !painting_read_strength(g, json, p) || !read_text(json, "init_image", &image, p) ||
      !read_text(json, "mask_image", &mask, p))
    return false;
  const char *missing = image ? "mask_image" : "init_image";
  if (!image || !mask) return refuse(p, 400, NULL, missing, "'%s' is missing", missing);
  return painting_set_init(g, "init_image", json_object_get(json, "init_image"), p) &&
         painting_set_mask(g, "mask_image", json_object_get(json, "mask_image"), p) &&
         painting_read_extras(s, json, g, p);
}

static bool read_job(const server *s, const json_t *json, painting *g, problem *p) {
  const char *operation = "image_generation";
  if (!read_text(json, "operation", &operation, p)) return false;
  if (strcmp(operation, "image_generation") == 0) return read_generation(s, json, g, p);
  if (strcmp(operation, "image_transform") == 0) return read_transform(s, json, g, p);
  if (strcmp(operation, "image_inpaint") == 0) return read_inpaint(s, json, g, p);
  return refuse(p, 400, "unsupported_operation", "operation",
                "the operation '%.60s' is not offered here; image_generation, image_transform and image_inpaint are",
                operation);
}

enum MHD_Result handle_image_jobs(exchange *x) {
  server *s = x->server;
  problem *p = &x->problem;
  char id[48], url[80];
  json_t *json = parse_object(x->body.data, x->body.size, p);
  painting *g = json ? painting_create(s, &names, p) : NULL;
  bool fine = g && read_job(s, json, g, p) && keep(s, g, id, p);
  json_decref(json);
  if (!fine) {
    painting_release(s, g);
    return respond_problem(x);
  }
  snprintf(url, sizeof url, "/v1/jobs/%s/stream", id);
  return respond_json(x, 200, json_pack("{s:s, s:s}", "job_id", id, "sse_url", url));
}

/* ---- reading ---- */

static void tell_progress(exchange *x, int step, int steps) {
  append_event(&x->out, NULL,
               json_pack("{s:s, s:i, s:i, s:f}", "type", "progress", "step", step, "total", steps, "percent",
                         100.0 * step / steps));
  bytes image = {0};
  if (step > 0 && painting_preview(x->server, x->painting, &image) && !image.failed)
    append_event(&x->out, NULL,
                 json_pack("{s:s, s:s%, s:s}", "type", "preview", "image", image.data, image.size, "format", "png"));
  bytes_deinit(&image);
}

static void tell_end(exchange *x) {
  const painting *g = x->painting;
  bytes image = {0};
  if (g->status) {
    append_event(&x->out, NULL,
                 json_pack("{s:s, s:s, s:s}", "type", "error", "code",
                           g->cancelled       ? "cancelled"
                           : g->status == 400 ? "invalid_request"
                                              : "internal",
                           "message", g->error));
  } else {
    append_base64(&image, g->files[0], g->sizes[0]);
    if (!image.failed)
      append_event(&x->out, NULL,
                   json_pack("{s:s, s:s%, s:s, s:I, s:i, s:i, s:f}", "type", "complete", "image", image.data,
                             image.size, "format", "png", "seed", (json_int_t)g->ask.seed, "width", g->ask.width,
                             "height", g->ask.height, "seconds", g->finished - g->begun));
    x->out.failed |= image.failed;
  }
  bytes_deinit(&image);
  bytes_append_text(&x->out, "data: [DONE]\n\n");
  x->ended = true;
}

/* What is new: x->told is how many changes were told, and x->block the last step, from 1; else the connection sleeps.
 */
static bool fill_painting(exchange *x) {
  server *s = x->server;
  const painting *g = x->painting;
  server_lock(s);
  bool done = g->state == PAINTING_DONE, steps = g->steps > 0 && g->step + 1 != x->block, ping = x->ping;
  int step = g->step, all = g->steps;
  bool sleeps = !done && !steps && !ping;
  x->ping = false;
  x->last_sent = clock_seconds();
  if (sleeps) {
    x->suspended = true;
    MHD_suspend_connection(x->connection);
  }
  server_unlock(s);
  if (ping && !steps && !done) bytes_append_text(&x->out, ": ping\n\n");
  if (steps) {
    x->block = step + 1;
    tell_progress(x, step, all);
  }
  if (done) tell_end(x);
  return !x->out.failed;
}

enum MHD_Result handle_image_job_stream(exchange *x, const char *id) {
  server *s = x->server;
  server_lock(s);
  struct kept_painting **link = find(s, id);
  if (!*link) {
    refuse(&x->problem, 404, "job_not_found", "job_id",
           "there is no job '%s' here; each is read once, within %.0f seconds of its end", id, UNREAD_SECONDS);
  } else {
    x->painting = take(s, link);
    x->painting->reader = x;
    x->painting->streams = true;
    x->stream = true;
    x->fill = fill_painting;
    snprintf(x->id, sizeof x->id, "%s", id);
    join_waiting(x);
    append_event(&x->out, NULL, json_pack("{s:s, s:s, s:s}", "type", "started", "job_id", id, "model", images_name(s)));
  }
  server_unlock(s);
  return x->problem.status ? respond_problem(x) : respond_stream(x, "text/event-stream");
}
