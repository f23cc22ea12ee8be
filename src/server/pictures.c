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

/* The file that |url| is: |*out|, the caller's to free. */
static bool read_file(const json_t *url, uint8_t **out, size_t *out_size, problem *p) {
  const char *text = json_string_value(url), *end = text + json_string_length(url);
  *out = NULL;
  if (!skip_head(&text, p)) return false;
  size_t length = (size_t)(end - text); /* a zero among them is no digit */
  uint8_t *decoded = malloc(length / 4 * 3 + 3);
  if (!decoded) return refuse(p, 500, NULL, NULL, "no host memory for a picture");
  if (decode_base64(text, length, decoded, out_size)) {
    *out = decoded;
    return true;
  }
  free(decoded);
  return refuse(p, 400, NULL, "messages", "a picture is no base64");
}

static bool decode(const json_t *url, bool opacity, rdna__picture *out, problem *p) {
  uint8_t *file;
  size_t size;
  if (!read_file(url, &file, &size, p)) return false;
  rdna_status status = (opacity ? rdna__picture_decode_opacity : rdna__picture_decode)(file, size, out);
  free(file);
  return status == RDNA_OK || refuse_by_status(p, status, "messages");
}

bool decode_picture(const json_t *url, rdna__picture *out, problem *p) { return decode(url, false, out, p); }
bool decode_picture_opacity(const json_t *url, rdna__picture *out, problem *p) { return decode(url, true, out, p); }

void picture_files_deinit(picture_file *files, size_t count) {
  for (size_t i = 0; files && i < count; i++) free(files[i].bytes);
  free(files);
}

static bool make_room(request *r) {
  rdna__shown *shown = realloc(r->pictures, (r->picture_count + 1) * sizeof *shown);
  if (shown) r->pictures = shown;
  picture_file *files = realloc(r->files, (r->picture_count + 1) * sizeof *files);
  if (files) r->files = files;
  return shown && files;
}

static uint64_t count_pixels(const request *r) {
  uint64_t count = 0;
  for (size_t i = 0; i < r->picture_count; i++)
    count += (uint64_t)r->pictures[i].height * (uint64_t)r->pictures[i].width;
  return count;
}

/* The file is kept and its head read; load_pictures has the rest. */
static bool add_picture(const json_t *url, request *r, problem *p) {
  picture_file file;
  rdna__picture head;
  if (r->picture_count == MOST_PICTURES)
    return refuse(p, 400, NULL, "messages", "there are more than the %d pictures of one request", MOST_PICTURES);
  if (!make_room(r)) return refuse(p, 500, NULL, NULL, "no host memory for pictures");
  if (!json_is_string(url)) return refuse(p, 400, NULL, "messages", "a picture must be a text: a data: URL, or base64");
  if (!read_file(url, &file.bytes, &file.size, p)) return false;
  rdna_status status = rdna__picture_measure(file.bytes, file.size, &head);
  if (status != RDNA_OK) {
    free(file.bytes);
    return refuse_by_status(p, status, "messages");
  }
  r->files[r->picture_count] = file;
  r->pictures[r->picture_count++] = (rdna__shown){.height = head.height, .width = head.width};
  if (count_pixels(r) <= MOST_PIXELS) return true;
  return refuse(p, 400, NULL, "messages",
                "the pictures up to number %zu have %llu pixels; those of one request may have %d: send them smaller, "
                "or fewer",
                r->picture_count, (unsigned long long)count_pixels(r), MOST_PIXELS);
}

bool load_pictures(const rdna_vision *vision, request *r, problem *p) {
  for (size_t i = 0; i < r->picture_count; i++) {
    picture_file *file = &r->files[i];
    rdna__picture picture;
    rdna_status status = rdna__picture_decode(file->bytes, file->size, &picture);
    if (status == RDNA_OK)
      status = rdna__shown_take(&r->pictures[i], vision, picture.pixels, picture.height, picture.width, &r->prompts[0]);
    rdna__picture_deinit(&picture);
    free(file->bytes);
    file->bytes = NULL;
    if (status != RDNA_OK) return refuse_by_status(p, status, "messages");
  }
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
