/* OpenAI's /v1/images: generations, and of other pictures edits and variations, which come as forms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "picture/decode.h"
#include "server/clock.h"
#include "server/embeddings.h"
#include "server/form.h"
#include "server/http.h"
#include "server/images.h"
#include "server/routes.h"

enum { MOST_ASKED = 10, MOST_STEPS = 1000, MOST_GUIDANCE = 1000, MOST_PARTIAL = 3 };

static const painting_fields names = {.width = "size",
                                      .height = "size",
                                      .init = "image",
                                      .strength = "strength",
                                      .sampler = "sampler",
                                      .spacing = "schedule",
                                      .guides = "controls",
                                      .loras = "loras"};

/* Of 1 to 5 digits, behind which |*text| stands then; 0: there are none. */
static int read_digits(const char **text) {
  enum { MOST_DIGITS = 5 };
  int value = 0;
  for (int i = 0; i < MOST_DIGITS && **text >= '0' && **text <= '9'; i++) value = 10 * value + *(*text)++ - '0';
  return value;
}

/* "512x768", or "auto" for what the model has. */
static bool read_size(const json_t *json, painting *g, problem *p) {
  const char *size = "auto";
  if (!read_text(json, "size", &size, p)) return false;
  if (strcmp(size, "auto") == 0) return true;
  const char *at = size;
  int width = read_digits(&at);
  bool crossed = *at == 'x';
  at += crossed;
  int height = read_digits(&at);
  if (!crossed || *at || width < 1 || height < 1 || width > MOST_SIDE || height > MOST_SIDE)
    return refuse(p, 400, NULL, "size", "'size' must be \"auto\" or a size such as \"1024x1024\", up to %d a side",
                  MOST_SIDE);
  g->ask.width = width;
  g->ask.height = height;
  g->sized = true;
  return true;
}

/* Pictures are in the answer, as there is no other place for them. |output_compression|, of a JPEG, is its quality. */
static bool read_form(const json_t *json, painting *g, problem *p) {
  enum { WHOLE = 100 };
  static const field_values some[] = {{"background", "[\"auto\", \"opaque\"]"},
                                      {"moderation", "[\"auto\", \"low\"]"},
                                      {"style", "[\"vivid\", \"natural\"]"},
                                      {"quality", "[\"auto\", \"low\", \"medium\", \"high\", \"standard\", \"hd\"]"}};
  const char *form = "b64_json", *type = "png";
  int64_t compression = WHOLE;
  if (!check_values(json, some, sizeof some / sizeof *some, p) || !read_text(json, "response_format", &form, p) ||
      !read_text(json, "output_format", &type, p) ||
      !read_integer(json, "output_compression", 0, WHOLE, &compression, p))
    return false;
  if (strcmp(form, "b64_json") != 0)
    return refuse(p, 400, NULL, "response_format", "'response_format' must be \"b64_json\"; no pictures are kept here");
  if (strcmp(type, "png") != 0 && strcmp(type, "jpeg") != 0)
    return refuse(p, 400, NULL, "output_format",
                  "'output_format' must be \"png\" or \"jpeg\"; no others are written here");
  g->kind = strcmp(type, "jpeg") == 0 ? RDNA__PICTURE_JPEG : RDNA__PICTURE_PNG;
  g->quality = compression ? (int)compression : 1;
  return g->kind == RDNA__PICTURE_JPEG || compression == WHOLE ||
         refuse(p, 400, NULL, "output_compression", "'output_compression' below %d is of \"jpeg\"; a PNG loses nothing",
                WHOLE);
}

/* What this server has beside OpenAI's fields. */
static bool read_more(const server *s, const json_t *json, painting *g, problem *p) {
  int64_t steps = g->ask.steps, seed = (int64_t)g->ask.seed;
  const char *negative = NULL, *sampler = NULL, *spacing = NULL, *said = NULL;
  if (!read_text(json, "negative_prompt", &negative, p) || !read_text(json, "sampler", &sampler, p) ||
      !read_text(json, "schedule", &spacing, p) || !read_integer(json, "steps", 1, MOST_STEPS, &steps, p) ||
      !read_integer(json, "seed", 0, UINT32_MAX, &seed, p) ||
      !read_number(json, "guidance_scale", 0, MOST_GUIDANCE, &g->ask.guidance, p))
    return false;
  const char *name = sampler ? images_sampler(sampler, &said) : g->ask.sampler;
  if (!name) return refuse(p, 400, NULL, "sampler", "there is no sampler '%.60s'", sampler);
  if (sampler || spacing) painting_set_sampler(s, g, name, spacing ? spacing : said);
  g->ask.steps = (int)steps;
  g->ask.seed = (uint64_t)seed;
  return !negative || painting_set_text(g, true, "negative_prompt", negative, p);
}

/* What all three have. */
static bool read_common(const server *s, const json_t *json, painting *g, problem *p) {
  const char *model = NULL;
  int64_t count = 1;
  if (!read_text(json, "model", &model, p) || !images_check_model(s, model, p) ||
      !read_integer(json, "n", 1, MOST_ASKED, &count, p))
    return false;
  g->ask.count = (int)count;
  return read_size(json, g, p) && read_form(json, g, p) && read_more(s, json, g, p);
}

static bool read_prompt(const json_t *json, painting *g, problem *p) {
  const char *prompt = NULL;
  if (!read_text(json, "prompt", &prompt, p)) return false;
  return prompt ? painting_set_text(g, false, "prompt", prompt, p)
                : refuse(p, 400, NULL, "prompt", "'prompt' is missing");
}

static bool read_generation(const server *s, const json_t *json, painting *g, problem *p) {
  static const field_row fields[] = {{"model", FIELD_READ},
                                     {"prompt", FIELD_READ},
                                     {"n", FIELD_READ},
                                     {"size", FIELD_READ},
                                     {"response_format", FIELD_READ},
                                     {"output_format", FIELD_READ},
                                     {"quality", FIELD_READ},
                                     {"style", FIELD_READ},
                                     {"user", FIELD_IGNORED},
                                     {"moderation", FIELD_READ},
                                     {"background", FIELD_READ},
                                     {"output_compression", FIELD_READ},
                                     {"stream", FIELD_READ},
                                     {"partial_images", FIELD_READ},
                                     {"negative_prompt", FIELD_READ},
                                     {"steps", FIELD_READ},
                                     {"seed", FIELD_READ},
                                     {"guidance_scale", FIELD_READ},
                                     {"sampler", FIELD_READ},
                                     {"schedule", FIELD_READ},
                                     {"loras", FIELD_READ},
                                     {"controls", FIELD_READ},
                                     {"ip_adapters", FIELD_READ}};
  return check_fields(json, fields, sizeof fields / sizeof *fields, p) && read_prompt(json, g, p) &&
         read_common(s, json, g, p) && painting_read_extras(s, json, g, p);
}

/* ---- of other pictures ---- */

/* The pictures behind the first, which some models look at. */
static bool read_looked(const form_data *f, painting *g, problem *p) {
  const form_part *part = form_file(f, "image", p);
  bool fine = part != NULL;
  while (fine && (part = form_next_file(f, part))) {
    rdna__picture picture = {0};
    rdna_status status = rdna__picture_decode(part->data, part->size, &picture);
    fine = (status == RDNA_OK || refuse_by_status(p, status, "image")) && painting_take_looked(g, "image", &picture, p);
    rdna__picture_deinit(&picture);
  }
  return fine;
}

/* The picture to begin with, and of an edit where it is to be drawn anew: where |mask|, or without one the picture
 * itself, is transparent; all of it where nothing is. */
static bool read_pictures(const form_data *f, bool edits, painting *g, problem *p) {
  const char *const files[] = {"image", "mask"};
  int count = 1 + (edits && form_has(f, "mask"));
  rdna__picture pictures[2] = {0};
  bool fine = true;
  for (int i = 0; i < count && fine; i++) {
    const form_part *part = form_file(f, files[i], p);
    rdna_status status = part ? rdna__picture_decode_opacity(part->data, part->size, &pictures[i]) : RDNA_OK;
    fine = part && (status == RDNA_OK || refuse_by_status(p, status, files[i]));
  }
  fine = fine && painting_take_init(g, "image", &pictures[0], p);
  if (fine && count > 1)
    fine = painting_take_transparency(g, "mask", &pictures[1], p);
  else if (fine && edits && rdna__picture_is_transparent(&pictures[0]))
    fine = painting_take_transparency(g, "image", &pictures[0], p);
  for (int i = 0; i < count; i++) rdna__picture_deinit(&pictures[i]);
  return fine && read_looked(f, g, p);
}

static bool read_form_request(const server *s, const form_data *f, const json_t *json, bool edits, painting *g,
                              problem *p) {
  static const field_row fields[] = {{"prompt", FIELD_READ},
                                     {"mask", FIELD_READ},
                                     {"quality", FIELD_READ},
                                     {"input_fidelity", FIELD_IGNORED},
                                     {"moderation", FIELD_READ},
                                     {"background", FIELD_READ},
                                     {"output_format", FIELD_READ},
                                     {"output_compression", FIELD_READ},
                                     {"stream", FIELD_READ},
                                     {"partial_images", FIELD_READ},
                                     {"negative_prompt", FIELD_READ},
                                     /* from here on those of variations */
                                     {"image", FIELD_READ},
                                     {"model", FIELD_READ},
                                     {"n", FIELD_READ},
                                     {"size", FIELD_READ},
                                     {"response_format", FIELD_READ},
                                     {"user", FIELD_IGNORED},
                                     {"strength", FIELD_READ},
                                     {"steps", FIELD_READ},
                                     {"seed", FIELD_READ},
                                     {"guidance_scale", FIELD_READ},
                                     {"sampler", FIELD_READ},
                                     {"schedule", FIELD_READ},
                                     {"loras", FIELD_READ},
                                     {"controls", FIELD_READ},
                                     {"ip_adapters", FIELD_READ}};
  enum { OF_EDITS = 11 };
  size_t first = edits ? 0 : OF_EDITS;
  if (!check_fields(json, fields + first, sizeof fields / sizeof *fields - first, p) ||
      !(edits ? read_prompt(json, g, p) : painting_set_text(g, false, "prompt", "", p)) || !read_common(s, json, g, p))
    return false;
  int width = g->ask.width, height = g->ask.height;
  const char *size = json_string_value(json_object_get(json, "size"));
  if (!read_pictures(f, edits, g, p)) return false;
  if (g->ask.mask) g->ask.strength = 1;
  if (!painting_read_strength(g, json, p) || !painting_read_extras(s, json, g, p)) return false;
  return !size || strcmp(size, "auto") == 0 || (width == g->ask.width && height == g->ask.height) ||
         refuse(p, 400, NULL, "size", "the picture is %d x %d, and %d x %d is asked for; pictures are not resized",
                g->ask.width, g->ask.height, width, height);
}

static const char *kind_name(const painting *g) { return g->kind == RDNA__PICTURE_JPEG ? "jpeg" : "png"; }

static enum MHD_Result answer(exchange *x) {
  const painting *g = x->painting;
  char size[32];
  if (g->status) {
    refuse(&x->problem, g->status, NULL, NULL, "%s", g->error);
    return respond_problem(x);
  }
  json_t *data = json_array();
  for (int i = 0; i < g->ask.count; i++) {
    bytes image = {0};
    append_base64(&image, g->files[i], g->sizes[i]);
    json_array_append_new(data, image.failed ? NULL : json_pack("{s:s%}", "b64_json", image.data, image.size));
    bytes_deinit(&image);
  }
  bool whole = json_array_size(data) == (size_t)g->ask.count;
  if (!whole) {
    json_decref(data);
    refuse(&x->problem, 500, NULL, NULL, "no host memory for the answer");
    return respond_problem(x);
  }
  snprintf(size, sizeof size, "%dx%d", g->ask.width, g->ask.height);
  return respond_json(x, 200,
                      json_pack("{s:I, s:o, s:s, s:s, s:I}", "created", (json_int_t)time(NULL), "data", data,
                                "output_format", kind_name(g), "size", size, "seed", (json_int_t)g->ask.seed));
}

/* ---- as a stream ---- */

/* Whether the answer is one, and as x->state how many pictures of the way there it has. */
static bool read_stream(exchange *x, const json_t *json, problem *p) {
  int64_t partial = 0;
  if (!read_bool(json, "stream", &x->stream, p) || !read_integer(json, "partial_images", 0, MOST_PARTIAL, &partial, p))
    return false;
  x->state = (int)partial;
  return x->stream || partial == 0 ||
         refuse(p, 400, NULL, "partial_images",
                "'partial_images' is of a stream; ask for one by 'stream', or leave it out");
}

/* An event with a picture in base64, by which |type| of it, and |which| one of the way there, or -1. */
static void tell_picture(exchange *x, const char *type, const bytes *image, int which) {
  const painting *g = x->painting;
  bool edits = strcmp(x->path, "/v1/images/edits") == 0;
  char name[64], size[32];
  snprintf(name, sizeof name, "%s.%s", edits ? "image_edit" : "image_generation", type);
  snprintf(size, sizeof size, "%dx%d", g->ask.width, g->ask.height);
  json_t *event = json_pack("{s:s, s:s%, s:I, s:s, s:s, s:s, s:s}", "type", name, "b64_json", image->data, image->size,
                            "created_at", (json_int_t)time(NULL), "size", size, "quality", "auto", "background",
                            "opaque", "output_format", which < 0 ? kind_name(g) : "png");
  if (which >= 0) json_object_set_new(event, "partial_image_index", json_integer(which));
  append_event(&x->out, name, event);
}

static void tell_end(exchange *x) {
  const painting *g = x->painting;
  if (g->status) {
    append_event(&x->out, "error",
                 json_pack("{s:s, s:{s:s, s:s, s:n, s:s}}", "type", "error", "error", "message", g->error, "type",
                           g->status == 400 ? "invalid_request_error" : "server_error", "param", "code",
                           g->cancelled ? "cancelled" : "internal"));
  }
  for (int i = 0; i < g->ask.count && !g->status; i++) {
    bytes image = {0};
    append_base64(&image, g->files[i], g->sizes[i]);
    x->out.failed |= image.failed;
    if (!image.failed) tell_picture(x, "completed", &image, -1);
    bytes_deinit(&image);
  }
  x->ended = true;
}

/* What is new; x->block is the next picture of the way there. One that cannot be seen yet is left out. */
static bool fill_events(exchange *x) {
  server *s = x->server;
  const painting *g = x->painting;
  bool done = false, ping = false;
  size_t before = x->out.size;
  while (!done && !ping && x->out.size == before) {
    server_lock(s);
    done = g->state == PAINTING_DONE;
    ping = x->ping;
    bool due = !done && x->block < x->state && g->step > 0 && g->share * (x->state + 1) >= x->block + 1;
    x->ping = false;
    x->last_sent = clock_seconds();
    bool sleeps = !done && !due && !ping;
    if (sleeps) {
      x->suspended = true;
      MHD_suspend_connection(x->connection);
    }
    server_unlock(s);
    if (sleeps) return true;
    bytes image = {0};
    if (due && painting_preview(s, g, &image) && !image.failed) tell_picture(x, "partial_image", &image, x->block);
    if (due) x->block++;
    bytes_deinit(&image);
  }
  if (done)
    tell_end(x);
  else if (x->out.size == before)
    bytes_append_text(&x->out, ": ping\n\n");
  return !x->out.failed;
}

static enum MHD_Result begin_stream(exchange *x, painting *g) {
  server_lock(x->server);
  x->painting = g;
  g->reader = x;
  g->streams = true;
  x->fill = fill_events;
  join_waiting(x);
  server_unlock(x->server);
  return respond_stream(x, "text/event-stream");
}

static enum MHD_Result begin(exchange *x, painting *g, bool fine) {
  fine = fine && painting_submit(x->server, g, &x->problem);
  if (fine) return x->stream ? begin_stream(x, g) : images_await(x, g);
  x->stream = false;
  painting_release(x->server, g);
  return respond_problem(x);
}

enum MHD_Result handle_image_generations(exchange *x) {
  server *s = x->server;
  problem *p = &x->problem;
  if (x->painting) return answer(x);
  if (!images_are_there(x, p)) return respond_problem(x);
  json_t *json = parse_object(x->body.data, x->body.size, p);
  painting *g = json ? painting_create(s, &names, p) : NULL;
  bool fine = g && read_generation(s, json, g, p) && read_stream(x, json, p);
  json_decref(json);
  return begin(x, g, fine);
}

static enum MHD_Result handle_form(exchange *x, bool edits) {
  static const char *const values[] = {"n",        "steps",    "seed",           "guidance_scale",
                                       "strength", "stream",   "partial_images", "output_compression",
                                       "loras",    "controls", "ip_adapters",    NULL};
  server *s = x->server;
  problem *p = &x->problem;
  form_data f;
  if (x->painting) return answer(x);
  if (!images_are_there(x, p)) return respond_problem(x);
  const char *type = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Content-Type");
  json_t *json = form_parse(type, x->body.data, x->body.size, &f, p) ? form_object(&f, values, p) : NULL;
  painting *g = json ? painting_create(s, &names, p) : NULL;
  bool fine = g && read_form_request(s, &f, json, edits, g, p) && (!edits || read_stream(x, json, p));
  json_decref(json);
  return begin(x, g, fine);
}

enum MHD_Result handle_image_edits(exchange *x) { return handle_form(x, true); }
enum MHD_Result handle_image_variations(exchange *x) { return handle_form(x, false); }
