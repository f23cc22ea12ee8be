/* A body is parts between lines of the boundary, which the Content-Type says:
 *
 *     --boundary
 *     Content-Disposition: form-data; name="image"; filename="a.png"
 *
 *     bytes
 *     --boundary--                                                       */
#include "server/form.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_BOUNDARY = 70 }; /* RFC 2046 */

typedef struct text {
  const char *at, *end;
} text;

static bool refuse_form(problem *p, const char *why) {
  return refuse(p, 400, NULL, NULL, "the body is no multipart/form-data: %s", why);
}

/* ---- heads ---- */

static void skip_spaces(text *t) {
  while (t->at < t->end && (*t->at == ' ' || *t->at == '\t')) t->at++;
}

/* Whether |t| begins with |word|, in whatever case, behind which it stands then. */
static bool take_word(text *t, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(t->end - t->at) < length || strncasecmp(t->at, word, length) != 0) return false;
  t->at += length;
  return true;
}

/* The next "; name=value" of a head: false, there is none. A value in quotes is without them; a backslash is kept, as
 * browsers mean themselves by it. */
static bool take_parameter(text *t, text *name, text *value) {
  skip_spaces(t);
  if (t->at == t->end || *t->at != ';') return false;
  t->at++;
  skip_spaces(t);
  name->at = t->at;
  while (t->at < t->end && *t->at != '=' && *t->at != ';') t->at++;
  name->end = t->at;
  if (t->at == t->end || *t->at != '=') return false;
  bool quoted = ++t->at < t->end && *t->at == '"';
  value->at = t->at += quoted;
  while (t->at < t->end && (quoted ? *t->at != '"' : *t->at != ';' && *t->at != ' ' && *t->at != '\t')) t->at++;
  value->end = t->at;
  if (quoted && t->at == t->end) return false;
  t->at += quoted;
  return true;
}

static bool is_named(const text *name, const char *word) {
  size_t length = strlen(word);
  return (size_t)(name->end - name->at) == length && strncasecmp(name->at, word, length) == 0;
}

static bool read_boundary(const char *type, char boundary[MOST_BOUNDARY + 5], problem *p) {
  text rest = {type, type ? type + strlen(type) : NULL}, name, value;
  if (!type || !take_word(&rest, "multipart/form-data"))
    return refuse(p, 415, NULL, NULL, "this asks for a body of multipart/form-data, and it is %.80s",
                  type ? type : "of no type that is said");
  while (take_parameter(&rest, &name, &value)) {
    size_t length = (size_t)(value.end - value.at);
    if (!is_named(&name, "boundary")) continue;
    if (length < 1 || length > MOST_BOUNDARY) return refuse_form(p, "its boundary has not 1 to 70 characters");
    snprintf(boundary, MOST_BOUNDARY + 5, "\r\n--%.*s", (int)length, value.at);
    return true;
  }
  return refuse_form(p, "its Content-Type says no boundary");
}

/* ---- parts ---- */

static bool read_disposition(text line, form_part *part, problem *p) {
  text name, value;
  skip_spaces(&line);
  if (!take_word(&line, "form-data")) return refuse_form(p, "a part's Content-Disposition is not form-data");
  while (take_parameter(&line, &name, &value)) {
    size_t length = (size_t)(value.end - value.at);
    if (is_named(&name, "filename") || is_named(&name, "filename*")) part->is_file = true;
    if (!is_named(&name, "name")) continue;
    if (length > 2 && memcmp(value.end - 2, "[]", 2) == 0) length -= 2;
    if (length < 1 || length >= sizeof part->name || memchr(value.at, 0, length))
      return refuse_form(p, "a part's name has not 1 to 63 characters");
    memcpy(part->name, value.at, length);
    part->name[length] = 0;
  }
  return *part->name || refuse_form(p, "a part has no name");
}

/* The lines before the empty one; |in| stands behind that then. */
static bool read_head(text *in, form_part *part, problem *p) {
  bool named = false;
  const char *begin = in->at;
  for (;;) {
    const char *end = memmem(in->at, (size_t)(in->end - in->at), "\r\n", 2);
    if (!end || end - begin > MOST_FORM_HEAD) return refuse_form(p, "a part's head has no end, or is too long");
    text line = {in->at, end};
    in->at = end + 2;
    if (line.at == end) return named || refuse_form(p, "a part has no Content-Disposition");
    if (take_word(&line, "Content-Disposition:")) {
      if (!read_disposition(line, part, p)) return false;
      named = true;
    } else if (take_word(&line, "Content-Transfer-Encoding:")) {
      skip_spaces(&line);
      if (!is_named(&line, "binary") && !is_named(&line, "8bit") && !is_named(&line, "7bit"))
        return refuse_form(p, "a part has a Content-Transfer-Encoding, which forms have not; send the bytes");
    }
  }
}

static bool add_part(form_data *f, const form_part *part, problem *p) {
  if (form_has(f, part->name) && !(part->is_file && strcmp(part->name, "image") == 0))
    return refuse(p, 400, NULL, part->name, "the form has '%s' twice; one is taken", part->name);
  if (f->count == MOST_FORM_PARTS)
    return refuse(p, 400, NULL, NULL, "the form has more than %d parts", MOST_FORM_PARTS);
  f->parts[f->count++] = *part;
  return true;
}

/* Behind a boundary, where |in| stands: the rest of its line. */
static bool end_line(text *in, bool *out_last, problem *p) {
  *out_last = in->end - in->at >= 2 && memcmp(in->at, "--", 2) == 0;
  if (*out_last) return true;
  skip_spaces(in);
  return take_word(in, "\r\n") || refuse_form(p, "behind a boundary something else begins");
}

bool form_parse(const char *type, const char *body, size_t size, form_data *out, problem *p) {
  char boundary[MOST_BOUNDARY + 5];
  bool last;
  out->count = 0;
  if (!read_boundary(type, boundary, p)) return false;
  if (size == 0) return refuse_form(p, "it is empty");
  size_t length = strlen(boundary);
  text in = {body, body + size};
  if (size >= length - 2 && memcmp(body, boundary + 2, length - 2) == 0) {
    in.at += length - 2; /* the first one begins no line */
  } else {
    const char *first = memmem(body, size, boundary, length);
    if (!first) return refuse_form(p, "its boundary is nowhere in it");
    in.at = first + length;
  }
  for (;;) {
    form_part part = {0};
    if (!end_line(&in, &last, p)) return false;
    if (last) return true;
    if (!read_head(&in, &part, p)) return false;
    part.data = in.at;
    /* of an empty part the line's end is that of its head */
    const char *from = in.at - 2, *end = memmem(from, (size_t)(in.end - from), boundary, length);
    if (!end) return refuse_form(p, "it breaks off in a part");
    part.size = end > part.data ? (size_t)(end - part.data) : 0;
    in.at = end + length;
    if (!add_part(out, &part, p)) return false;
  }
}

/* ---- what it has ---- */

static const form_part *find(const form_data *f, const char *name) {
  for (size_t i = 0; i < f->count; i++)
    if (strcmp(f->parts[i].name, name) == 0) return &f->parts[i];
  return NULL;
}

bool form_has(const form_data *f, const char *name) { return find(f, name) != NULL; }

const form_part *form_next_file(const form_data *f, const form_part *before) {
  for (const form_part *part = before + 1; part < f->parts + f->count; part++)
    if (part->is_file && strcmp(part->name, before->name) == 0) return part;
  return NULL;
}

const form_part *form_file(const form_data *f, const char *name, problem *p) {
  const form_part *part = find(f, name);
  if (part && part->is_file) return part;
  refuse(p, 400, NULL, name, part ? "'%s' must be a file, and is a text" : "the file '%s' is missing", name);
  return NULL;
}

static json_t *value_of(const form_part *part, const char *const *values) {
  if (part->is_file) return json_object();
  for (; *values; values++) {
    if (strcmp(*values, part->name) != 0) continue;
    json_t *value = json_loadb(part->data, part->size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (value) return value;
  }
  return json_stringn(part->data, part->size);
}

json_t *form_object(const form_data *f, const char *const *values, problem *p) {
  json_t *object = json_object();
  for (size_t i = 0; i < f->count; i++) {
    const form_part *part = &f->parts[i];
    if (!part->is_file && part->size && memchr(part->data, 0, part->size)) {
      refuse(p, 400, NULL, part->name, "'%s' has a zero byte in it, and no text does", part->name);
      json_decref(object);
      return NULL;
    }
    if (json_object_set_new(object, part->name, value_of(part, values)) == 0) continue;
    refuse(p, 400, NULL, part->name, "'%s' is no UTF-8", part->name);
    json_decref(object);
    return NULL;
  }
  if (!object) refuse(p, 500, NULL, NULL, "no host memory for the request");
  return object;
}
