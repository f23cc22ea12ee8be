/* What the parts of a reply's parser share: bytes that wait, and parts that are certain. */
#ifndef RDNA_MODEL_REPLY_PARTS_H
#define RDNA_MODEL_REPLY_PARTS_H

#include <jansson.h>

#include "model/reply/reply.h"

/* Bytes that grow. */
typedef struct reply_bytes {
  char *data;
  size_t size, room;
} reply_bytes;

/* A part as places in the bytes of all parts, which may still move. */
typedef struct reply_place {
  rdna__reply_kind kind;
  size_t text, text_size, name, name_size;
} reply_place;

struct rdna__reply {
  rdna__reply_format format;
  json_t *tools;       /* NULL: not known */
  reply_bytes waiting; /* what is not certain yet */
  bool thinking;
  bool started;             /* something was said, or called */
  bool skips_space;         /* behind a tag white space is nobody's */
  bool final;               /* nothing more comes */
  bool in_message, calling; /* harmony: behind a header, which is of a call */
  rdna__reply_kind message_kind;
  reply_bytes header; /* harmony: of the call, as it stood; and its function */
  size_t name_at, name_size;
  reply_bytes text; /* of all parts */
  reply_place *places;
  rdna__reply_part *parts; /* (place_room) */
  size_t place_count, place_room;
  rdna_status status;
};

typedef enum reply_found { REPLY_MORE, REPLY_BAD, REPLY_READ } reply_found;

/* Places in a text that is being read. */
typedef struct reply_cursor {
  const char *data;
  size_t at, size;
} reply_cursor;

void rdna__reply_say(rdna__reply *r, rdna__reply_kind kind, const char *text, size_t size);
void rdna__reply_call(rdna__reply *r, rdna_text name, rdna_text arguments);
/* Takes the first |size| bytes that wait away. */
void rdna__reply_drop(rdna__reply *r, size_t size);
bool rdna__reply_append(rdna__reply *r, reply_bytes *bytes, const char *data, size_t size);

/* Where in |text| the first of |tags| stands; *out_tag which. Without one, *out_tag is -1, and the place is that of a
 * beginning of one at the end, or the end. */
size_t rdna__reply_find(rdna_text text, const char *const *tags, int count, int *out_tag);

/* Over white space. */
void rdna__reply_space(reply_cursor *c);
/* Over |word|; REPLY_MORE when the text ends inside it. */
reply_found rdna__reply_word(reply_cursor *c, const char *word);
/* Over a JSON value that begins with { or [. */
reply_found rdna__reply_json(reply_cursor *c, rdna_text *out);
/* Over anything up to |word| and over that. */
reply_found rdna__reply_until(reply_cursor *c, const char *word, rdna_text *out);
bool rdna__reply_is_object(rdna_text text);

/* The calls behind |opener|, which ends at the cursor. What was read is added, whole or not at all. */
reply_found rdna__reply_read_calls(rdna__reply *r, const char *opener, reply_cursor *c);

/* gpt-oss: as far as what waits is certain. */
void rdna__reply_step_harmony(rdna__reply *r);

#endif
