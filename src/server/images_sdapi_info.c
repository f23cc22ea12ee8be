/* AUTOMATIC1111's /sdapi/v1/png-info: what a picture says of how it was made. */
#include <string.h>

#include "server/embeddings.h"
#include "server/http.h"
#include "server/images.h"
#include "server/infotext.h"
#include "server/pictures.h"
#include "server/routes.h"

enum MHD_Result handle_sdapi_info(exchange *x) {
  static const field_row fields[] = {{"image", FIELD_READ}};
  problem *p = &x->problem;
  rdna__picture picture = {0};
  if (!images_are_there(x, p)) return sdapi_respond_refusal(x);
  json_t *json = parse_object(x->body.data, x->body.size, p), *image = json_object_get(json, "image");
  bool fine = json && check_fields(json, fields, 1, p) &&
              (json_is_string(image) || refuse(p, 400, NULL, "image", "'image' must be a PNG or JPEG in base64"));
  if (fine && !decode_picture(image, &picture, p)) {
    strcpy(p->field, "image");
    fine = false;
  }
  json_decref(json);
  if (!fine) return sdapi_respond_refusal(x);
  json_t *items = json_object(), *pairs = picture.parameters ? infotext_parse(picture.parameters) : json_object();
  if (picture.parameters) json_object_set_new(items, "parameters", json_string(picture.parameters));
  json_t *answer = json_pack("{s:s, s:o, s:o}", "info", picture.parameters ? picture.parameters : "", "items", items,
                             "parameters", pairs);
  rdna__picture_deinit(&picture);
  return respond_json(x, 200, answer);
}
