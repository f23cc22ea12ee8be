/* AUTOMATIC1111's interface for making a picture larger (/sdapi/v1/extra-single-image), by the networks that the server
 * was started with. */
#include <string.h>

#include "server/embeddings.h"
#include "server/fields.h"
#include "server/http.h"
#include "server/images.h"
#include "server/pictures.h"
#include "server/routes.h"

enum { MOST_SCALE = 8 };

static const painting_fields names = {.width = "upscaling_resize_w", .height = "upscaling_resize_h", .init = "image"};

static const field_row fields[] = {{"image", FIELD_READ},
                                   {"resize_mode", FIELD_READ},
                                   {"upscaling_resize", FIELD_READ},
                                   {"upscaling_resize_w", FIELD_READ},
                                   {"upscaling_resize_h", FIELD_READ},
                                   {"upscaling_crop", FIELD_READ},
                                   {"upscaler_1", FIELD_READ},
                                   {"upscaler_2", FIELD_READ},
                                   {"extras_upscaler_2_visibility", FIELD_REFUSED},
                                   {"gfpgan_visibility", FIELD_REFUSED},
                                   {"codeformer_visibility", FIELD_REFUSED},
                                   {"codeformer_weight", FIELD_IGNORED},
                                   {"upscale_first", FIELD_IGNORED},
                                   {"show_extras_results", FIELD_IGNORED}};

static bool read_upscaler(const server *s, const json_t *json, painting *g, problem *p) {
  static const field_values none[] = {{"upscaler_2", "[\"None\", \"\"]"}};
  const char *name = "None";
  if (!check_values(json, none, 1, p) || !read_text(json, "upscaler_1", &name, p)) return false;
  int which = images_find_upscaler(s, name);
  if (which < 0)
    return refuse(p, 400, NULL, "upscaler_1",
                  "there is no upscaler '%.100s' here; /sdapi/v1/upscalers lists those of "
                  "--upscaler",
                  name);
  g->enlargement =
      (rdna__enlargement){.upscaler = images_upscaler(s, which), .name = s->options->images->upscaler_names[which]};
  return true;
}

/* By how much the sides that are asked for are larger. With other proportions that page cuts off what |upscaling_crop|
 * says; here such sides are refused. */
static bool read_sides(const json_t *json, const painting *g, double *out_scale, problem *p) {
  int64_t width = 512, height = 512;
  if (!read_integer(json, "upscaling_resize_w", 1, RDNA__PICTURE_MOST_SIDE, &width, p) ||
      !read_integer(json, "upscaling_resize_h", 1, RDNA__PICTURE_MOST_SIDE, &height, p))
    return false;
  if (width * g->small.height != height * g->small.width)
    return refuse(p, 400, NULL, "upscaling_resize_w",
                  "the picture is %d x %d, and %lld x %lld are other proportions; nothing is cut off", g->small.width,
                  g->small.height, (long long)width, (long long)height);
  *out_scale = (double)width / g->small.width;
  return true;
}

static bool read_size(const json_t *json, painting *g, problem *p) {
  int64_t mode = 0;
  double scale = 2;
  bool crop = true;
  if (!read_integer(json, "resize_mode", 0, 1, &mode, p) || !read_bool(json, "upscaling_crop", &crop, p) ||
      !read_number(json, "upscaling_resize", 1, MOST_SCALE, &scale, p) || (mode && !read_sides(json, g, &scale, p)))
    return false;
  return rdna__enlargement_size(&g->enlargement, &g->small, scale) == RDNA_OK ||
         refuse_with_status(p, mode ? "upscaling_resize_w" : "upscaling_resize");
}

static bool read_request(const server *s, const json_t *json, painting *g, problem *p) {
  const json_t *image = json_object_get(json, "image");
  if (!check_fields(json, fields, sizeof fields / sizeof *fields, p)) return false;
  if (!json_is_string(image)) return refuse(p, 400, NULL, "image", "'image' must be a PNG or JPEG in base64");
  if (!decode_picture_opacity(image, &g->small, p)) {
    strcpy(p->field, "image");
    return false;
  }
  if (g->small.width > MOST_SIDE || g->small.height > MOST_SIDE)
    return refuse(p, 400, NULL, "image", "the picture is %d x %d; up to %d a side are taken", g->small.width,
                  g->small.height, MOST_SIDE);
  return read_upscaler(s, json, g, p) && read_size(json, g, p);
}

static enum MHD_Result answer(exchange *x) {
  const painting *g = x->painting;
  bytes image = {0};
  if (g->status) {
    refuse(&x->problem, g->status, g->cancelled ? "Interrupted" : NULL, NULL, "%s", g->error);
    return sdapi_respond_refusal(x);
  }
  append_base64(&image, g->files[0], g->sizes[0]);
  json_t *made = image.failed ? NULL : json_stringn(image.data, image.size);
  bytes_deinit(&image);
  if (!made) {
    refuse(&x->problem, 500, NULL, NULL, "no host memory for the answer");
    return sdapi_respond_refusal(x);
  }
  return respond_json(x, 200, json_pack("{s:s, s:o}", "html_info", "", "image", made));
}

enum MHD_Result handle_extra_image(exchange *x) {
  server *s = x->server;
  problem *p = &x->problem;
  if (x->painting) return answer(x);
  if (!images_are_there(x, p)) return sdapi_respond_refusal(x);
  json_t *json = parse_object(x->body.data, x->body.size, p);
  painting *g = json ? painting_create(s, &names, p) : NULL;
  bool fine = g && read_request(s, json, g, p);
  json_decref(json);
  if (fine) {
    server_lock(s);
    fine = painting_enqueue(s, g, p);
    server_unlock(s);
  }
  if (fine) return images_await(x, g);
  painting_release(s, g);
  return sdapi_respond_refusal(x);
}

enum MHD_Result handle_sdapi_upscalers(exchange *x) {
  if (!images_are_there(x, &x->problem)) return sdapi_respond_refusal(x);
  const images_options *o = x->server->options->images;
  json_t *list = json_array();
  for (int i = 0; i < o->upscaler_count; i++)
    json_array_append_new(list, json_pack("{s:s, s:n, s:s, s:n, s:i}", "name", o->upscaler_names[i], "model_name",
                                          "model_path", o->upscalers[i], "model_url", "scale",
                                          rdna_image_upscaler_get_info(images_upscaler(x->server, i))->scale));
  return respond_json(x, 200, list);
}
