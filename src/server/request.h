/* What requests of all interfaces have: settings, prompts, messages. */
#ifndef RDNA_SERVER_REQUEST_H
#define RDNA_SERVER_REQUEST_H

#include "model/vision/prompt.h"
#include "server/exchange.h"

enum { MOST_PRIORITY = 100, MOST_TIMEOUT = 1000000 };

/* A picture as it came. */
typedef struct picture_file {
  uint8_t *bytes; /* (size), its own; NULL once it was read */
  size_t size;
} picture_file;
void picture_files_deinit(picture_file *files, size_t count); /* NULL is fine */

/* A request on its way to a job. All zeros and SETTINGS_DEFAULT is an empty one. */
typedef struct request {
  json_t *json;
  settings settings;
  rdna_tokens *prompts; /* (prompt_count) */
  size_t prompt_count;
  rdna__shown *pictures; /* (picture_count) of the only prompt */
  picture_file *files;   /* (picture_count) theirs */
  size_t picture_count;
  int64_t n;
} request;
#define REQUEST_DEFAULT {.settings = SETTINGS_DEFAULT, .n = 1}
void request_deinit(request *r);

/* Room for |count| empty prompts. */
bool request_add_prompts(request *r, size_t count, problem *p);
/* Lets the exchange hold the model that the request names, if it can do what the route is for; a missing name is the
 * first one. False with a problem, or without one where it has to be loaded first: see respond_problem. */
bool read_model(exchange *x, const json_t *json, problem *p);
/* Whether the request is whole: prompts that the context has room for, pictures that can be read, and a seed. */
bool request_check(const exchange *x, request *r, problem *p);
/* The first half of that: the prompts alone. */
bool request_check_prompts(const exchange *x, const request *r, problem *p);
/* The adapters of the request's texts: that which it names in place of the model, or those of its field "lora". */
bool request_take_adapters(const exchange *x, request *r, problem *p);
/* priority and timeout. */
bool read_urgency(const json_t *json, settings *s, problem *p);
/* Makes the job; the request is empty afterwards. NULL with a problem. */
job *request_make_job(request *r, problem *p);
/* The same, and answers. */
enum MHD_Result request_run(exchange *x, request *r);
/* A job whose prompts become vectors, and the answer; takes |seconds|, see job.h. */
enum MHD_Result request_embed(exchange *x, request *r, int32_t *seconds);
/* temperature, top_p, top_k, min_p, frequency_penalty, presence_penalty, seed, and the penalty that each interface
 * names otherwise. Settings are as they are where a field is missing. */
bool read_sampling(const json_t *json, const char *repetition_field, settings *s, problem *p);
/* A text or a list of texts that end what is written. */
bool read_stops(const json_t *json, const char *field, settings *s, problem *p);
/* {"token id": number, …} */
bool read_logit_bias(const json_t *json, size_t vocabulary, settings *s, problem *p);

/* The messages of |list| as templates know them, but for pictures, which take_pictures takes: contents of parts become
 * texts, or lists where there are pictures, arguments of calls objects. NULL with a problem; the caller's to release.
 */
json_t *read_messages(const served_model *m, const json_t *list, problem *p);

#endif
