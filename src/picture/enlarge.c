#include "picture/enlarge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/vision/resize.h"

enum { COLOURS = 3 };

static rdna_status check(const char *what, int64_t width, int64_t height) {
  if (width >= 1 && height >= 1 && width <= RDNA__PICTURE_MOST_SIDE && height <= RDNA__PICTURE_MOST_SIDE &&
      width * height <= RDNA__PICTURE_MOST_PIXELS)
    return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT,
                    "%s would be %lld x %lld; pictures have 1 to %d pixels a side, and %d together", what,
                    (long long)width, (long long)height, RDNA__PICTURE_MOST_SIDE, RDNA__PICTURE_MOST_PIXELS);
}

rdna_status rdna__enlargement_size(rdna__enlargement *how, const rdna__picture *p, double scale) {
  int64_t times = rdna_image_upscaler_get_info(how->upscaler)->scale;
  RDNA_TRY(check("what the upscaler makes", times * p->width, times * p->height));
  double width = scale > 0 ? rint(scale * p->width) : (double)(times * p->width);
  double height = scale > 0 ? rint(scale * p->height) : (double)(times * p->height);
  RDNA_TRY(check("the larger picture", (int64_t)fmin(width, 1e9), (int64_t)fmin(height, 1e9)));
  how->width = (int)width, how->height = (int)height;
  return RDNA_OK;
}

/* |out| is what the network makes, in its size. */
static rdna_status run(const rdna__enlargement *how, const rdna__picture *p, rdna__picture *out) {
  int scale = rdna_image_upscaler_get_info(how->upscaler)->scale;
  size_t count = COLOURS * (size_t)p->width * (size_t)p->height, times = (size_t)(scale * scale);
  float *values = malloc(count * sizeof *values), *made = malloc(count * times * sizeof *made);
  rdna_image_upscaler_input input = {
      RDNA_IMAGE_UPSCALER_INPUT_INIT, .picture = values, .height = p->height, .width = p->width, .tile = how->tile,
      .progress = how->progress,      .data = how->data};
  rdna_status status = values && made ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a larger picture");
  if (status == RDNA_OK) {
    rdna__picture_values(p, values);
    status = rdna_image_upscaler_run(how->upscaler, &input, made);
  }
  if (status == RDNA_OK) status = rdna__picture_of_values(made, p->width * scale, p->height * scale, out);
  free(values);
  free(made);
  return status;
}

/* |p|'s colours in other sides. */
static rdna_status resize(rdna__picture *p, int width, int height) {
  rdna__picture other;
  if (p->width == width && p->height == height) return RDNA_OK;
  RDNA_TRY(rdna__picture_init(&other, width, height, COLOURS));
  rdna_status status = rdna__resize(RDNA__FILTER_BICUBIC, p->pixels, p->height, p->width, height, width, other.pixels);
  rdna__picture_deinit(status == RDNA_OK ? p : &other);
  if (status == RDNA_OK) *p = other;
  return status;
}

/* |out|, of three channels, gets the opacity of |p| as a fourth one. */
static rdna_status add_opacity(const rdna__picture *p, rdna__picture *out) {
  rdna__picture opacity, both = {0};
  RDNA_TRY(rdna__picture_init(&opacity, p->width, p->height, COLOURS));
  for (size_t i = 0; i < COLOURS * (size_t)p->width * (size_t)p->height; i++)
    opacity.pixels[i] = p->pixels[i / COLOURS * 4 + 3];
  rdna_status status = resize(&opacity, out->width, out->height);
  if (status == RDNA_OK) status = rdna__picture_init(&both, out->width, out->height, 4);
  for (size_t i = 0; status == RDNA_OK && i < (size_t)out->width * (size_t)out->height; i++) {
    for (size_t c = 0; c < COLOURS; c++) both.pixels[4 * i + c] = out->pixels[COLOURS * i + c];
    both.pixels[4 * i + 3] = opacity.pixels[COLOURS * i];
  }
  rdna__picture_deinit(&opacity);
  if (status != RDNA_OK) return status;
  rdna__picture_deinit(out);
  *out = both;
  return RDNA_OK;
}

static rdna_status add_parameters(const rdna__enlargement *how, const rdna__picture *p, rdna__picture *out) {
  double scale = (double)how->width / p->width;
  if (!p->parameters) return RDNA_OK;
  if (asprintf(&out->parameters, "%s, Postprocess upscale by: %g, Postprocess upscaler: %s", p->parameters, scale,
               how->name) >= 0)
    return RDNA_OK;
  out->parameters = NULL;
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's text");
}

rdna_status rdna__picture_enlarge(const rdna__enlargement *how, const rdna__picture *p, rdna__picture *out) {
  *out = (rdna__picture){0};
  rdna_status status = run(how, p, out);
  if (status == RDNA_OK) status = resize(out, how->width, how->height);
  if (status == RDNA_OK && p->channels == 4) status = add_opacity(p, out);
  if (status == RDNA_OK) status = add_parameters(how, p, out);
  if (status != RDNA_OK) rdna__picture_deinit(out);
  return status;
}
