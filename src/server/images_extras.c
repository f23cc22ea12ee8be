/* What a request adds to the model, of what the server was started with: LoRAs, ControlNets and IP-Adapters, by
 * their names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/http.h"
#include "server/images.h"
#include "server/pictures.h"

enum { MOST_SCALE = 100 };

/* The place of |name|; -1 with a problem. */
static int find(const char *const *names, size_t count, const char *kind, const char *field, const char *name,
                problem *p) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return (int)i;
  refuse(p, 400, NULL, field, "there is no %s '%.100s' here", kind, name);
  return -1;
}

bool painting_use_lora(const server *s, painting *g, const char *field, const char *name, double scale, problem *p) {
  const images_options *o = s->options->images;
  int which = find(o->lora_names, (size_t)o->model->lora_count, "LoRA", field, name, p);
  if (which < 0) return false;
  if (g->lora_used[which]) return refuse(p, 400, NULL, field, "the LoRA '%.100s' is asked for twice", name);
  g->lora_used[which] = true;
  g->lora_scales[which] = isnan(scale) ? o->model->loras[which].scale : scale;
  return true;
}

static bool take_picture(painting *g, const char *field, const rdna__picture *picture, float **out, problem *p) {
  if (picture->width > MOST_SIDE || picture->height > MOST_SIDE)
    return refuse(p, 400, NULL, field, "a ControlNet's picture is %d x %d; up to %d a side are taken", picture->width,
                  picture->height, MOST_SIDE);
  if (!g->sized) {
    g->ask.width = picture->width;
    g->ask.height = picture->height;
    g->sized = true;
  }
  if (picture->width != g->ask.width || picture->height != g->ask.height)
    return refuse(p, 400, NULL, field, "a ControlNet's picture is %d x %d, and what is drawn %d x %d; none is resized",
                  picture->width, picture->height, g->ask.width, g->ask.height);
  *out = malloc(3 * (size_t)picture->width * (size_t)picture->height * sizeof **out);
  if (!*out) return refuse(p, 500, NULL, NULL, "no host memory for a picture");
  rdna__picture_values(picture, *out);
  return true;
}

bool painting_use_control(const server *s, painting *g, const char *field, const char *name, const json_t *url,
                          double scale, double start, double end, problem *p) {
  const images_options *o = s->options->images;
  int which = find(o->control_names, o->model->control_count, "ControlNet", field, name, p);
  rdna__picture picture = {0};
  float *values = NULL;
  if (which < 0) return false;
  if (g->ask.guide_count == MOST_GUIDES)
    return refuse(p, 400, NULL, field, "more than %d ControlNets are asked for", MOST_GUIDES);
  for (size_t i = 0; i < g->ask.guide_count; i++)
    if (g->guides[i].control == (size_t)which)
      return refuse(p, 400, NULL, field, "the ControlNet '%.100s' is asked for twice", name);
  if (!json_is_string(url)) return refuse(p, 400, NULL, field, "a ControlNet asks for a picture in base64");
  bool fine = decode_picture(url, &picture, p) && take_picture(g, field, &picture, &values, p);
  rdna__picture_deinit(&picture);
  snprintf(p->field, sizeof p->field, "%s", field);
  if (!fine) return false;
  g->guides[g->ask.guide_count++] = (rdna_image_guide){(size_t)which, values, scale, start, end};
  g->ask.guides = g->guides;
  return true;
}

bool painting_use_adapter(const server *s, painting *g, const char *field, const char *name, const json_t *url,
                          double scale, problem *p) {
  const images_options *o = s->options->images;
  size_t at = g->ask.reference_count;
  int which = find(o->adapter_names, o->model->adapter_count, "IP-Adapter", field, name, p);
  if (which < 0) return false;
  for (size_t i = 0; i < at; i++)
    if (g->seen[i].adapter == (size_t)which)
      return refuse(p, 400, NULL, field, "the IP-Adapter '%.100s' is asked for twice", name);
  if (!json_is_string(url)) return refuse(p, 400, NULL, field, "an IP-Adapter asks for a picture in base64");
  rdna__picture *picture = &g->seen_pictures[at]; /* there are no more than MOST_GUIDES adapters */
  if (!decode_picture(url, picture, p)) {
    snprintf(p->field, sizeof p->field, "%s", field);
    return false;
  }
  g->seen[at] = (rdna_image_reference){.adapter = (size_t)which,
                                       .pixels = picture->pixels,
                                       .width = picture->width,
                                       .height = picture->height,
                                       .scale = scale};
  g->ask.references = g->seen;
  g->ask.reference_count = at + 1;
  return true;
}

static bool read_lora(const server *s, const json_t *one, painting *g, problem *p) {
  static const field_row fields[] = {{"name", FIELD_READ}, {"scale", FIELD_READ}};
  const char *name = NULL;
  double scale = NAN;
  if (!json_is_object(one)) return refuse(p, 400, NULL, "loras", "'loras' has an entry that is no object");
  if (!check_fields(one, fields, 2, p) || !read_text(one, "name", &name, p) ||
      !read_number(one, "scale", -MOST_SCALE, MOST_SCALE, &scale, p))
    return false;
  return name ? painting_use_lora(s, g, "loras", name, scale, p)
              : refuse(p, 400, NULL, "loras", "'loras' has an entry without 'name'");
}

static bool read_control(const server *s, const json_t *one, painting *g, problem *p) {
  static const field_row fields[] = {
      {"name", FIELD_READ}, {"image", FIELD_READ}, {"scale", FIELD_READ}, {"start", FIELD_READ}, {"end", FIELD_READ}};
  const char *name = NULL;
  double scale = 1, start = 0, end = 1;
  if (!json_is_object(one)) return refuse(p, 400, NULL, "controls", "'controls' has an entry that is no object");
  if (!check_fields(one, fields, 5, p) || !read_text(one, "name", &name, p) ||
      !read_number(one, "scale", -MOST_SCALE, MOST_SCALE, &scale, p) || !read_number(one, "start", 0, 1, &start, p) ||
      !read_number(one, "end", 0, 1, &end, p))
    return false;
  if (!name) return refuse(p, 400, NULL, "controls", "'controls' has an entry without 'name'");
  return painting_use_control(s, g, "controls", name, json_object_get(one, "image"), scale, start, end, p);
}

static bool read_adapter(const server *s, const json_t *one, painting *g, problem *p) {
  static const field_row fields[] = {{"name", FIELD_READ}, {"image", FIELD_READ}, {"scale", FIELD_READ}};
  const char *name = NULL;
  double scale = 1;
  if (!json_is_object(one)) return refuse(p, 400, NULL, "ip_adapters", "'ip_adapters' has an entry that is no object");
  if (!check_fields(one, fields, 3, p) || !read_text(one, "name", &name, p) ||
      !read_number(one, "scale", -MOST_SCALE, MOST_SCALE, &scale, p))
    return false;
  if (!name) return refuse(p, 400, NULL, "ip_adapters", "'ip_adapters' has an entry without 'name'");
  return painting_use_adapter(s, g, "ip_adapters", name, json_object_get(one, "image"), scale, p);
}

bool painting_read_extras(const server *s, const json_t *json, painting *g, problem *p) {
  static const struct {
    const char *field;
    bool (*read)(const server *s, const json_t *one, painting *g, problem *p);
  } lists[] = {{"loras", read_lora}, {"controls", read_control}, {"ip_adapters", read_adapter}};
  for (int i = 0; i < 3; i++) {
    const json_t *list = json_object_get(json, lists[i].field);
    if (!list || json_is_null(list)) continue;
    if (!json_is_array(list))
      return refuse(p, 400, NULL, lists[i].field, "'%s' must be a list of objects", lists[i].field);
    for (size_t k = 0; k < json_array_size(list); k++)
      if (!lists[i].read(s, json_array_get(list, k), g, p)) return false;
  }
  return true;
}
