/* Pictures in requests: PNG or JPEG in base64. Nothing is fetched. */
#ifndef RDNA_SERVER_PICTURES_H
#define RDNA_SERVER_PICTURES_H

#include "picture/decode.h"
#include "server/request.h"

/* Of a request: reading them takes a second for some ten million pixels, in which nobody else is answered. */
enum { MOST_PICTURES = 64, MOST_PIXELS = 1 << 27 };

/* A picture of a text that is a data: URL, or base64 alone; false with a problem. */
bool decode_picture(const json_t *url, rdna__picture *out_picture, problem *p);
bool decode_picture_opacity(const json_t *url, rdna__picture *out_picture, problem *p); /* with that, if it has some */

/* The part of a message that shows a picture, whose |url| is a data: URL or base64 alone; NULL without memory. */
json_t *picture_part(json_t *url);

/* What a message says, part by part: texts, and pictures between them. All zeros is an empty one. */
typedef struct said {
  json_t *parts; /* NULL: nothing but the text so far */
  bytes text;    /* behind the parts */
} said;
bool said_add_picture(said *c, json_t *url);
/* A text, or a list of parts where there are pictures; NULL without memory. It is empty afterwards. */
json_t *said_finish(said *c);

/* Takes the pictures out of |messages|, whose parts become what templates know: {"type": "image"}. With |r| their
 * files and sizes become its, in their order; NULL: nobody wants them. False with a problem. */
bool take_pictures(const served_model *m, json_t *messages, request *r, problem *p);
/* Reads those files, one at a time, into what the tower sees and into the only prompt's tokens. False with a problem.
 */
bool load_pictures(const rdna_vision *vision, request *r, problem *p);

#endif
