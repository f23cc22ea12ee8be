/* Reading a request's JSON: each field with its type and range, and the sentence where it is not so. */
#ifndef RDNA_SERVER_FIELDS_H
#define RDNA_SERVER_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rdna/status.h"

/* Why a request is refused. Each interface has a form of its own for it. */
typedef struct problem {
  int status;       /* of HTTP; 0: there is no problem */
  const char *code; /* "context_length_exceeded", …, or NULL */
  char field[96];   /* of the request, or "" */
  char message[512];
} problem;

/* Fills |p| and returns false. |code| is static or NULL, |field| may be NULL. */
__attribute__((format(printf, 5, 6))) bool refuse(problem *p, int status, const char *code, const char *field,
                                                  const char *format, ...);
/* The same, 400, with the thread's last sentence. */
bool refuse_with_status(problem *p, const char *field);

/* The same by |status|, of which host memory that is missing is 500. */
bool refuse_by_status(problem *p, rdna_status status, const char *field);

/* The request's object, which the caller releases; NULL with a problem. */
json_t *parse_object(const char *text, size_t size, problem *p);

/* Each leaves |*out| as it is where the field is missing or null, and returns false with a problem where its value has
 * another type or is not from |low| to |high|. */
bool read_number(const json_t *object, const char *field, double low, double high, double *out, problem *p);
bool read_integer(const json_t *object, const char *field, int64_t low, int64_t high, int64_t *out, problem *p);
bool read_bool(const json_t *object, const char *field, bool *out, problem *p);
bool read_text(const json_t *object, const char *field, const char **out, problem *p); /* borrowed from |object| */

/* Of the fields that an interface has: what else an object holds is refused, as is what is asked and not offered. */
typedef enum field_use {
  FIELD_READ,    /* by whoever reads the request */
  FIELD_IGNORED, /* changes nothing that is written: names of users, hints to caches */
  FIELD_REFUSED  /* asks for what there is not, unless it is null, false, 0, or an empty list */
} field_use;
typedef struct field_row {
  const char *name;
  field_use use;
} field_row;
bool check_fields(const json_t *object, const field_row *rows, size_t count, problem *p);

/* Fields that would change what is made, of which only some values are offered: |values| is a list in JSON. Others are
 * refused; null and a missing field are fine. */
typedef struct field_values {
  const char *name, *values;
} field_values;
bool check_values(const json_t *object, const field_values *rows, size_t count, problem *p);

#endif
