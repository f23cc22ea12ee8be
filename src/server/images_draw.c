/* What the thread that draws does with one request: the model's picture, or of two passes the larger one, what is put
 * back around a mask, and files of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/parameters.h"
#include "model/image/pipeline.h"
#include "model/image/preview.h"
#include "server/http.h"
#include "server/images.h"

typedef struct drawing {
  server *server;
  painting *painting;
  double begin, part; /* of all that is to be done, what this pass begins at and takes */
} drawing;

/* What is new, with a copy of the latents for whoever wants to see them. */
static bool note(void *data, const rdna_image_progress *now) {
  drawing *d = data;
  painting *g = d->painting;
  const rdna_image_model_info *info = images_info(d->server);
  size_t count = (size_t)info->latent_channels * (size_t)(g->height / info->factor) * (size_t)(g->width / info->factor);
  server_lock(d->server);
  g->stage = now->stage;
  g->picture = now->picture;
  g->step = now->step;
  g->steps = now->steps;
  if (now->steps) g->share = d->begin + d->part * (now->picture * now->steps + now->step) / (now->count * now->steps);
  if (now->latents && (g->latents || (g->latents = malloc(count * sizeof *g->latents))))
    memcpy(g->latents, now->latents, count * sizeof *g->latents);
  size_t pixels = 3 * (size_t)g->width * (size_t)g->height;
  if (now->preview && (g->shown || (g->shown = malloc(pixels * sizeof *g->shown))))
    memcpy(g->shown, now->preview, pixels * sizeof *g->shown);
  bool goes_on = !g->cancelled;
  painting_wake(g);
  server_unlock(d->server);
  return goes_on;
}

/* Of the last picture, (3, height, width) as it is now, whose last latents are there. */
static void learn_preview(server *s, const painting *g, const float *picture) {
  const rdna_image_model_info *info = images_info(s);
  rdna__preview made = {0};
  if (!g->latents || !rdna__preview_fit(&made, g->latents, info->latent_channels, g->height / info->factor,
                                        g->width / info->factor, picture, info->factor))
    return;
  server_lock(s);
  images_learn(s, &made);
  server_unlock(s);
}

char *painting_parameters(const server *s, const painting *g, int i) {
  char more[256] = "";
  if (g->second.wanted)
    snprintf(more, sizeof more, ", Denoising strength: %g, Hires upscale: %g, Hires steps: %d, Hires upscaler: %.128s",
             g->second.strength, (double)g->second.width / g->ask.width, g->second.steps, g->second.how.name);
  return rdna__image_parameters(images_model(s), &g->ask, i, images_name(s), more);
}

/* The file of |picture|, with what is around it where it is under a mask. */
static rdna_status write_file(server *s, painting *g, int i, rdna__picture *picture) {
  rdna__picture whole = {0};
  if (g->whole.pixels) {
    RDNA_TRY(rdna__picture_crop(&g->whole, (rdna__region){0, 0, g->whole.width, g->whole.height}, &whole));
    rdna_status status = rdna__mask_paste(picture, g->share_drawn, g->region, &whole);
    rdna__picture_deinit(status == RDNA_OK ? picture : &whole);
    if (status != RDNA_OK) return status;
    *picture = whole;
  }
  picture->parameters = painting_parameters(s, g, i);
  if (!picture->parameters) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's text");
  RDNA_TRY(rdna__picture_encode(picture, g->kind, g->quality, &g->files[i], &g->sizes[i]));
  g->texts[i] = picture->parameters;
  picture->parameters = NULL;
  return RDNA_OK;
}

/* ---- the second pass ---- */

rdna_image_request painting_second(const painting *g, int i, const float *init) {
  rdna_image_request r = g->ask;
  const painting_pass *second = &g->second;
  r.init = init;
  r.mask = NULL;
  r.strength = second->strength;
  r.steps = second->steps;
  r.width = second->width, r.height = second->height;
  r.sampler = second->sampler, r.spacing = second->spacing;
  r.seed += (uint64_t)i;
  r.count = 1;
  if (second->prompt) r.prompt = second->prompt;
  if (second->negative && r.negative) r.negative = second->negative;
  return r;
}

/* |picture| in the second pass's sides, by an upscaler or by interpolation, in its place. */
static rdna_status enlarge_between(const painting *g, rdna__picture *picture) {
  const painting_pass *second = &g->second;
  rdna__picture larger;
  if (!second->how.upscaler) return rdna__picture_fit(picture, RDNA__FIT_CROP, second->width, second->height);
  RDNA_TRY(rdna__picture_enlarge(&second->how, picture, &larger));
  rdna__picture_deinit(picture);
  *picture = larger;
  return rdna__picture_fit(picture, RDNA__FIT_CROP, second->width, second->height);
}

/* What is drawn from now on has these sides, and nothing of it can be seen yet. */
static void begin_pass(server *s, painting *g, int width, int height) {
  server_lock(s);
  g->width = width, g->height = height;
  free(g->latents);
  free(g->shown);
  g->latents = g->shown = NULL;
  server_unlock(s);
}

/* Of picture |i| of the first pass, in its place. */
static rdna_status draw_again(server *s, painting *g, int i, rdna__picture *picture) {
  const painting_pass *second = &g->second;
  size_t count = 3 * (size_t)second->width * (size_t)second->height;
  float *init = malloc(count * sizeof *init), *drawn = malloc(count * sizeof *drawn);
  drawing d = {s, g, 0.5 + 0.5 * i / g->ask.count, 0.5 / g->ask.count};
  rdna_status status = init && drawn ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a larger picture");
  if (status == RDNA_OK) status = enlarge_between(g, picture);
  if (status == RDNA_OK) {
    rdna__picture_values(picture, init);
    begin_pass(s, g, second->width, second->height);
    rdna_image_request r = painting_second(g, i, init);
    r.data = &d;
    status = rdna_image_model_draw(images_model(s), &r, drawn);
  }
  if (status == RDNA_OK) {
    learn_preview(s, g, drawn);
    rdna__picture_deinit(picture);
    status = rdna__picture_of_values(drawn, second->width, second->height, picture);
  }
  free(init);
  free(drawn);
  return status;
}

/* ---- all of it ---- */

static rdna_status finish_pictures(server *s, painting *g, const float *pictures) {
  size_t pixels = 3 * (size_t)g->ask.width * (size_t)g->ask.height;
  for (int i = 0; i < g->ask.count; i++) {
    rdna__picture picture = {0};
    rdna_status status = rdna__picture_of_values(pictures + (size_t)i * pixels, g->ask.width, g->ask.height, &picture);
    if (status == RDNA_OK && g->second.wanted) status = draw_again(s, g, i, &picture);
    if (status == RDNA_OK) status = write_file(s, g, i, &picture);
    rdna__picture_deinit(&picture);
    RDNA_TRY(status);
  }
  return RDNA_OK;
}

/* A negative prompt that has no effect is not said either. */
static void drop_negative(const server *s, painting *g) {
  if (g->ask.guidance <= 1 || images_model(s)->distilled) g->ask.negative = NULL;
}

/* What is under the mask becomes what is around it, where that is asked for. */
static rdna_status fill_init(painting *g) {
  rdna__picture picture = {0};
  if (!g->fills) return RDNA_OK;
  size_t count = (size_t)g->ask.width * (size_t)g->ask.height;
  uint8_t *mask = malloc(count);
  if (!mask) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask");
  for (size_t i = 0; i < count; i++) mask[i] = (uint8_t)(255 * g->mask[i] + 0.5f);
  rdna_status status = rdna__picture_of_values(g->init, g->ask.width, g->ask.height, &picture);
  if (status == RDNA_OK) status = rdna__mask_fill(mask, &picture);
  if (status == RDNA_OK) rdna__picture_values(&picture, g->init);
  rdna__picture_deinit(&picture);
  free(mask);
  return status;
}

static rdna_status draw(server *s, painting *g) {
  drawing d = {s, g, 0, g->second.wanted ? 0.5 : 1};
  g->ask.progress = note;
  g->ask.data = &d;
  drop_negative(s, g);
  begin_pass(s, g, g->ask.width, g->ask.height);
  RDNA_TRY(fill_init(g));
  size_t pixels = 3 * (size_t)g->ask.width * (size_t)g->ask.height;
  float *pictures = malloc(pixels * (size_t)g->ask.count * sizeof *pictures);
  if (!pictures) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d pictures", g->ask.count);
  rdna_status status = rdna_image_model_draw(images_model(s), &g->ask, pictures);
  if (status == RDNA_OK) learn_preview(s, g, pictures + (size_t)(g->ask.count - 1) * pixels);
  if (status == RDNA_OK) status = finish_pictures(s, g, pictures);
  free(pictures);
  return status;
}

static bool note_tiles(void *data, int done, int tiles) {
  const drawing *d = data;
  server_lock(d->server);
  d->painting->stage = "picture";
  d->painting->step = done;
  d->painting->steps = tiles;
  d->painting->share = (double)done / tiles;
  bool goes_on = !d->painting->cancelled;
  painting_wake(d->painting);
  server_unlock(d->server);
  return goes_on;
}

static rdna_status enlarge(server *s, painting *g) {
  drawing d = {s, g, 0, 1};
  rdna__picture larger = {0};
  g->enlargement.progress = note_tiles;
  g->enlargement.data = &d;
  RDNA_TRY(rdna__picture_enlarge(&g->enlargement, &g->small, &larger));
  rdna_status status = rdna__picture_encode(&larger, g->kind, g->quality, &g->files[0], &g->sizes[0]);
  rdna__picture_deinit(&larger);
  return status;
}

rdna_status painting_draw(server *s, painting *g) { return g->enlargement.upscaler ? enlarge(s, g) : draw(s, g); }
