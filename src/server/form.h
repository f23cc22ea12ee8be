/* Bodies of multipart/form-data (RFC 7578), as clients send files. */
#ifndef RDNA_SERVER_FORM_H
#define RDNA_SERVER_FORM_H

#include "server/fields.h"

enum { MOST_FORM_PARTS = 64, MOST_FORM_HEAD = 8192 };

typedef struct form_part {
  char name[64];    /* without the "[]" that lists have */
  bool is_file;     /* it has a file's name, which is not looked at */
  const char *data; /* (size) of the body, which must stay */
  size_t size;
} form_part;
typedef struct form_data {
  form_part parts[MOST_FORM_PARTS]; /* (count) each of another name, but that files may be called "image" together */
  size_t count;
} form_data;

/* |type| is the request's Content-Type, NULL where it has none. False with a problem: 415 where it is no form, 400
 * where that is broken or has more than the limits. */
bool form_parse(const char *type, const char *body, size_t size, form_data *out, problem *p);
/* The file |name|; NULL with a problem where it is missing or a text. */
const form_part *form_file(const form_data *f, const char *name, problem *p);
/* Another file of the same name behind that one; NULL: there is none. */
const form_part *form_next_file(const form_data *f, const form_part *before);
bool form_has(const form_data *f, const char *name);
/* Its texts as an object for fields.h, the caller's to release: a text of the fields |values|, up to a NULL, is read as
 * JSON if it can be, and a file is an object, so that none is taken for a text. NULL with a problem. */
json_t *form_object(const form_data *f, const char *const *values, problem *p);

#endif
