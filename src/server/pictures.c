#include "server/pictures.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "picture/decode.h"

static const char key[] = "rdna_picture"; /* of a part */

json_t *picture_part(json_t *url) { return json_pack("{s:s, s:O}", "type", "image", key, url); }

/* ---- what a message says ---- */

static bool end_text(said *c) {
  if (!c->parts) c->parts = json_array();
  if (c->text.size > 0) {
    json_t *part = json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(c->text.data, c->text.size));
    if (json_array_append_new(c->parts, part) != 0) return false;
  }
  bytes_deinit(&c->text);
  return c->parts != NULL;
}

bool said_add_picture(said *c, json_t *url) {
  return end_text(c) && json_array_append_new(c->parts, picture_part(url)) == 0;
}

json_t *said_finish(said *c) {
  json_t *made = NULL;
  if (!c->text.failed)
    made = c->parts ? (end_text(c) ? json_incref(c->parts) : NULL)
                    : json_stringn(c->text.data ? c->text.data : "", c->text.size);
  json_decref(c->parts);
  bytes_deinit(&c->text);
  *c = (said){0};
  return made;
}

/* ---- pictures ---- */

/* The value of a digit of base64 (RFC 4648); -1: it is none. */
static int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* |out| has room for 3 bytes of each 4 characters. Breaks between lines are left out. */
static bool decode_base64(const char *text, size_t size, uint8_t *out, size_t *out_size) {
  uint32_t held = 0;
  int bits = 0;
  *out_size = 0;
  while (size > 0 && (text[size - 1] == '=' || text[size - 1] == '\n' || text[size - 1] == '\r')) size--;
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '\n' || text[i] == '\r') continue;
    int digit = digit_of(text[i]);
    if (digit < 0) return false;
    held = held << 6 | (uint32_t)digit;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out[(*out_size)++] = (uint8_t)(held >> bits);
  }
  return true;
}

/* Sets |*text| behind the head of a data: URL (RFC 2397), if it has one. */
static bool skip_head(const char **text, problem *p) {
  if (strncasecmp(*text, "http:", 5) == 0 || strncasecmp(*text, "https:", 6) == 0 ||
      strncasecmp(*text, "file:", 5) == 0)
    return refuse(p, 400, NULL, "messages",
                  "this server fetches nothing: send a picture itself, as data:image/png;base64,…");
  if (strncasecmp(*text, "data:", 5) != 0) return true;
  const char *comma = strchr(*text, ',');
  static const char form[] = ";base64";
  size_t length = sizeof form - 1;
  if (!comma || (size_t)(comma - *text) < 5 + length || strncasecmp(comma - length, form, length) != 0)
    return refuse(p, 400, NULL, "messages",
                  "a picture's URL must be data:image/png;base64,… or data:image/jpeg;base64,…");
  *text = comma + 1;
  return true;
}

bool decode_picture(const char *text, rdna__picture *out, problem *p) {
  if (!skip_head(&text, p)) return false;
  size_t length = strlen(text), size;
  uint8_t *decoded = malloc(length / 4 * 3 + 3);
  if (!decoded) return refuse(p, 500, NULL, NULL, "no host memory for a picture");
  bool fine = decode_base64(text, length, decoded, &size);
  if (!fine)
    refuse(p, 400, NULL, "messages", "a picture is no base64");
  else if (rdna__picture_decode(decoded, size, out) != RDNA_OK)
    fine = refuse_with_status(p, "messages");
  free(decoded);
  return fine;
}

static bool add_picture(const json_t *url, request *r, problem *p) {
  rdna__picture picture;
  if (r->picture_count == MOST_PICTURES)
    return refuse(p, 400, NULL, "messages", "there are more than the %d pictures of one request", MOST_PICTURES);
  rdna__shown *grown = realloc(r->pictures, (r->picture_count + 1) * sizeof *grown);
  if (!grown) return refuse(p, 500, NULL, NULL, "no host memory for pictures");
  r->pictures = grown;
  if (!json_is_string(url)) return refuse(p, 400, NULL, "messages", "a picture must be a text: a data: URL, or base64");
  if (!decode_picture(json_string_value(url), &picture, p)) return false;
  r->pictures[r->picture_count++] =
      (rdna__shown){.pixels = picture.pixels, .height = picture.height, .width = picture.width};
  picture.pixels = NULL; /* the request's */
  rdna__picture_deinit(&picture);
  return true;
}

bool take_pictures(const served_model *m, json_t *messages, request *r, problem *p) {
  for (size_t i = 0; i < json_array_size(messages); i++) {
    const json_t *parts = json_object_get(json_array_get(messages, i), "content");
    for (size_t k = 0; k < json_array_size(parts); k++) {
      json_t *part = json_array_get(parts, k), *url = json_object_get(part, key);
      if (!url) continue;
      if (!m->vision)
        return refuse(p, 400, NULL, "messages",
                      "message %zu has a picture, and the model '%s' sees none: it is served without a tower "
                      "(--mmproj)",
                      i, m->name);
      if (r && !add_picture(url, r, p)) return false;
      json_object_del(part, key);
    }
  }
  return true;
}
