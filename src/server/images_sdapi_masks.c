/* What AUTOMATIC1111's img2img begins with: a picture brought to sides, and a mask of what is to be drawn anew, of all
 * of it or of the part around the mask alone, drawn larger. */
#include <stdlib.h>
#include <string.h>

#include "server/images.h"
#include "server/pictures.h"

enum { MOST_BLUR = 64, MOST_PADDING = 256, FILL = 0, ORIGINAL = 1, FILLS = 4, ROUND_FROM = 129, MOST_MASKED = 1 << 24 };

typedef struct masking {
  int64_t fit, blur_x, blur_y, fill, padding, invert;
  bool near; /* the part around the mask alone */
} masking;

static bool read_masking(const json_t *json, masking *m, problem *p) {
  *m = (masking){.blur_x = 4, .blur_y = 4, .near = true};
  int64_t blur = -1;
  if (!read_integer(json, "resize_mode", 0, 2, &m->fit, p) || !read_integer(json, "mask_blur", 0, MOST_BLUR, &blur, p))
    return false;
  if (blur >= 0) m->blur_x = m->blur_y = blur;
  return (blur >= 0 || (read_integer(json, "mask_blur_x", 0, MOST_BLUR, &m->blur_x, p) &&
                        read_integer(json, "mask_blur_y", 0, MOST_BLUR, &m->blur_y, p))) &&
         read_integer(json, "inpainting_fill", 0, FILLS - 1, &m->fill, p) &&
         read_integer(json, "inpaint_full_res_padding", 0, MOST_PADDING, &m->padding, p) &&
         read_integer(json, "inpainting_mask_invert", 0, 1, &m->invert, p) &&
         (json_is_integer(json_object_get(json, "inpaint_full_res")) ||
          read_bool(json, "inpaint_full_res", &m->near, p));
}

/* As all three channels of a picture 255 where it is drawn anew, else 0: by its opacity where that says something, as
 * pages send it that are painted on, else by how bright it is. */
static rdna_status make_binary(const masking *m, rdna__picture *mask) {
  size_t count = (size_t)mask->width * (size_t)mask->height, channels = (size_t)mask->channels;
  bool clear = false;
  for (size_t i = 0; i < count && channels == 4; i++) clear |= mask->pixels[4 * i + 3] != 255;
  rdna__picture out;
  float *light = malloc(count * sizeof *light);
  if (!light) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask");
  rdna__picture_light(mask, light);
  rdna_status status = rdna__picture_init(&out, mask->width, mask->height, 3);
  for (size_t i = 0; status == RDNA_OK && i < count; i++) {
    bool drawn = clear ? mask->pixels[4 * i + 3] >= ROUND_FROM : light[i] * 255 + 0.5f >= ROUND_FROM;
    memset(out.pixels + 3 * i, drawn != (m->invert == 1) ? 255 : 0, 3);
  }
  free(light);
  if (status != RDNA_OK) return status;
  rdna__picture_deinit(mask);
  *mask = out;
  return RDNA_OK;
}

static void take_plane(const rdna__picture *mask, uint8_t *plane) {
  for (size_t i = 0; i < (size_t)mask->width * (size_t)mask->height; i++) plane[i] = mask->pixels[3 * i];
}

/* Soft edges, rows and columns each by their own number. */
static rdna_status blur(const masking *m, rdna__picture *mask) {
  size_t count = (size_t)mask->width * (size_t)mask->height;
  uint8_t *plane = malloc(count);
  if (!plane) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask");
  take_plane(mask, plane);
  rdna_status status = rdna__mask_blur(plane, mask->width, mask->height, (double)m->blur_x, (double)m->blur_y);
  for (size_t i = 0; status == RDNA_OK && i < count; i++) memset(mask->pixels + 3 * i, plane[i], 3);
  free(plane);
  return status;
}

/* |g| puts what it draws back into |picture|, whose pixels it takes, at |region|, by |mask|'s share, |times| over. */
static rdna_status keep_whole(painting *g, rdna__picture *picture, const rdna__picture *mask, int times,
                              rdna__region region) {
  size_t count = (size_t)mask->width * (size_t)mask->height;
  g->share_drawn = malloc(count);
  if (!g->share_drawn) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask");
  take_plane(mask, g->share_drawn);
  for (size_t i = 0; i < count; i++) {
    int share = times * g->share_drawn[i];
    g->share_drawn[i] = (uint8_t)(share < 255 ? share : 255);
  }
  g->region = region;
  g->whole = *picture;
  *picture = (rdna__picture){0};
  return RDNA_OK;
}

/* |*io| becomes its part |region|. */
static rdna_status crop(rdna__picture *io, rdna__region region) {
  rdna__picture part;
  RDNA_TRY(rdna__picture_crop(io, region, &part));
  rdna__picture_deinit(io);
  *io = part;
  return RDNA_OK;
}

/* |picture| and |mask| become what is drawn: they, brought to the sides |width| and |height|, or their part around the
 * mask. */
static rdna_status place_mask(const masking *m, painting *g, int width, int height, rdna__picture *picture,
                              rdna__picture *mask) {
  rdna__picture copy;
  rdna__region region = {0, 0, width, height};
  size_t count = (size_t)mask->width * (size_t)mask->height;
  if (m->near) {
    uint8_t *plane = malloc(count);
    if (!plane) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask");
    take_plane(mask, plane);
    bool some = rdna__mask_region(plane, mask->width, mask->height, (int)m->padding, width, height, &region);
    free(plane);
    if (!some) return rdna__fail(RDNA_INVALID_ARGUMENT, "no pixel of the mask says that it is to be drawn anew");
    RDNA_TRY(rdna__picture_crop(picture, region, &copy));
    rdna_status status = keep_whole(g, picture, mask, 1, region);
    rdna__picture_deinit(picture); /* nothing, where it was kept */
    *picture = copy;
    RDNA_TRY(status);
    RDNA_TRY(crop(mask, region));
    RDNA_TRY(rdna__picture_fit(picture, RDNA__FIT_FILL, width, height));
    return rdna__picture_fit(mask, RDNA__FIT_FILL, width, height);
  }
  RDNA_TRY(rdna__picture_fit(picture, (rdna__fit)m->fit, width, height));
  RDNA_TRY(rdna__picture_fit(mask, (rdna__fit)m->fit, width, height));
  RDNA_TRY(rdna__picture_crop(picture, region, &copy));
  rdna_status status = keep_whole(g, &copy, mask, 2, region);
  rdna__picture_deinit(&copy);
  return status;
}

/* What is under the mask begins as what is around it, or as it is: noise in its place asks for all steps, which leave
 * nothing of it anyway. */
static bool check_fill(const masking *m, painting *g, problem *p) {
  g->fills = m->fill == FILL && g->ask.strength < 1;
  return m->fill <= ORIGINAL || g->ask.strength == 1 ||
         refuse(p, 400, "unsupported_parameter", "inpainting_fill",
                "'inpainting_fill' of 2 or 3, which is noise or nothing in place of latents, goes with a "
                "denoising_strength of 1; else there are 0 and 1");
}

static bool read_mask(const json_t *json, const masking *m, painting *g, int width, int height, rdna__picture *picture,
                      problem *p) {
  static const char field[] = "mask";
  rdna__picture mask = {0};
  const json_t *url = json_object_get(json, field);
  if (!json_is_string(url)) return refuse(p, 400, NULL, field, "'mask' must be a picture in base64");
  if (!check_fill(m, g, p)) return false;
  if (!decode_picture_opacity(url, &mask, p)) {
    strcpy(p->field, field);
    return false;
  }
  bool fine = (mask.width == picture->width && mask.height == picture->height) ||
              refuse(p, 400, NULL, field, "the mask is %d x %d, and the picture %d x %d", mask.width, mask.height,
                     picture->width, picture->height);
  if (fine && (int64_t)mask.width * mask.height > MOST_MASKED) /* nobody else is answered while it is made ready */
    fine = refuse(p, 400, NULL, field, "the mask is %d x %d; up to %d pixels are taken", mask.width, mask.height,
                  MOST_MASKED);
  if (fine) {
    rdna_status status = make_binary(m, &mask);
    if (status == RDNA_OK) status = blur(m, &mask);
    if (status == RDNA_OK) status = place_mask(m, g, width, height, picture, &mask);
    fine = status == RDNA_OK || refuse_by_status(p, status, field);
  }
  fine = fine && painting_take_init(g, "init_images", picture, p) && painting_take_mask(g, field, &mask, p);
  rdna__picture_deinit(&mask);
  return fine;
}

bool sdapi_read_init(const json_t *json, painting *g, problem *p) {
  const json_t *images = json_object_get(json, "init_images"), *image = json_array_get(images, 0);
  const json_t *mask = json_object_get(json, "mask");
  masking m;
  rdna__picture picture = {0};
  if (json_array_size(images) != 1 || !json_is_string(image))
    return refuse(p, 400, NULL, "init_images", "'init_images' must be a list of one PNG or JPEG in base64");
  if (!painting_read_strength(g, json, p) || !read_masking(json, &m, p)) return false;
  if (!decode_picture(image, &picture, p)) {
    strcpy(p->field, "init_images");
    return false;
  }
  int width = g->sized ? g->ask.width : picture.width, height = g->sized ? g->ask.height : picture.height;
  bool fine = (width <= MOST_SIDE && height <= MOST_SIDE) ||
              refuse(p, 400, NULL, "init_images",
                     "the initial picture is %d x %d; up to %d a side are drawn: say width and height", width, height,
                     MOST_SIDE);
  if (fine && mask && !json_is_null(mask)) {
    fine = read_mask(json, &m, g, width, height, &picture, p);
  } else if (fine) {
    rdna_status status = rdna__picture_fit(&picture, (rdna__fit)m.fit, width, height);
    fine = (status == RDNA_OK || refuse_by_status(p, status, "init_images")) &&
           painting_take_init(g, "init_images", &picture, p);
  }
  rdna__picture_deinit(&picture);
  return fine;
}
