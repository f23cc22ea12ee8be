/* A request and its response, between HTTP and the interfaces. */
#ifndef RDNA_SERVER_EXCHANGE_H
#define RDNA_SERVER_EXCHANGE_H

#include <jansson.h>
#include <microhttpd.h>

#include "server/bytes.h"
#include "server/fields.h"
#include "server/model.h"
#include "server/scheduler.h"
#include "server/server.h"

typedef struct exchange exchange;

/* A copy of what was written of a choice since its reader last looked. */
typedef struct news {
  int choice;
  bytes text;
  int32_t *ids; /* (token_count) */
  float *values;
  logprob *tops;
  size_t *ends;                    /* (token_count) how long the choice's text was with each, */
  size_t text_first;               /* where the new text begins in it */
  size_t first_token, token_count; /* the first one's place among the choice's */
  const char *finish_reason;       /* with the last news */
  const char *stop;
} news;

/* How an interface writes. */
typedef struct dialect {
  const char *stream_type; /* Content-Type of a stream */
  const char *ping;        /* what keeps a stream's connection alive while nothing is written; "": nothing */
  void (*refuse)(const problem *p, bytes *out); /* the body of a response that refuses */
  /* Of a stream; |out| is sent. A failure comes instead of the end. */
  void (*begin)(exchange *x, bytes *out);
  void (*piece)(exchange *x, const news *n, bytes *out);
  void (*end)(exchange *x, bytes *out);
  void (*fail)(exchange *x, const problem *p, bytes *out);
  json_t *(*whole)(exchange *x); /* the response where it is no stream; the job is finished */
} dialect;

struct exchange {
  server *server;
  struct catalog_model *hosted; /* that it holds; NULL: none yet. The next two are its: */
  const served_model *model;
  const preset_adapter *adapter; /* of the model, that the request names in its place; NULL: none */
  scheduler *scheduler;
  struct MHD_Connection *connection;
  const struct route *route;
  char path[256];
  bytes body;
  problem problem;
  double begun; /* seconds */
  int status;   /* of the response; 0: there is none yet */

  /* Of an answer that a model writes. */
  const dialect *dialect;
  job *job;
  bool stream, include_usage, chat;
  char id[48];
  int64_t created;          /* seconds since 1970 */
  size_t *text_at;          /* (choices) what the stream has told so far */
  size_t *tokens_at;        /* (choices) */
  bool *told_end;           /* (choices) */
  bool begun_stream, ended; /* of the stream */
  bytes out;                /* of the stream, not sent yet, */
  size_t out_at;            /* from here on */
  int state, block;         /* the dialect's own, as all to |item_id| are: */
  json_t *echo, *output;    /* of its request; the items that are written */
  bytes item_text;          /* of the item that is being written, */
  char item_id[48];         /* which is this one */
  bool takes_apart;         /* texts are split into reasoning, content and calls by |format|; see parts.h */
  bool one_call;            /* only the first call is told */
  rdna__reply_format format;
  json_t *tools;          /* that may be called; NULL: none */
  struct reader *readers; /* (choices) NULL: none has begun */
  bool (*fill)(
      exchange *x);  /* adds to |out| or ends the stream, or puts the connection to sleep; false: it breaks off */
  double told_share; /* of a model that is loaded, in a stream of that */

  /* Under the server's lock. */
  struct catalog_model *awaited; /* it waits until this one is loaded */
  bool watches_load;             /* and tells how far it is */
  struct kept_job *kept;         /* whose reader it is */
  struct painting *painting;     /* that it waits for or reads */
  bool suspended;
  bool ping; /* it is time for one */
  double last_sent;
  exchange *before, *after; /* of those that wait for a job or a model */
};

/* Sends a response; |json| is released. */
enum MHD_Result respond_json(exchange *x, int status, json_t *json);
enum MHD_Result respond_bytes(exchange *x, int status, const char *type, bytes *body); /* takes the bytes */
/* Sends what is made; the caller's reference to |response| goes. NULL: there was no memory, and the connection closes.
 */
enum MHD_Result respond_with(exchange *x, int status, const char *type, struct MHD_Response *response);
/* Sends x->problem in the manner of the interface. Without one the exchange waits for a model: it sleeps, and its
 * handler is called again. */
enum MHD_Result respond_problem(exchange *x);
/* Gives the job to the scheduler and answers in the manner of |x->dialect|; takes |j|. */
enum MHD_Result respond_job(exchange *x, job *j);
/* The first half of that; false with x->problem, and |j| is still the caller's. */
bool submit_job(exchange *x, job *j);
/* The second half, as a stream, of a job that is under way or finished; takes a reference to |j|. */
enum MHD_Result respond_kept_job(exchange *x, job *j);
/* A stream of what x->fill makes. */
enum MHD_Result respond_stream(exchange *x, const char *type);

/* What the answer calls the model: it, or its adapter. */
const char *model_name(const exchange *x);

/* Parts of a job's answer. Of a job that is finished, or under the lock. */
int64_t prompt_tokens(const job *j);
int64_t cached_tokens(const job *j);
int64_t written_tokens(const job *j);

/* "data: …", for streams of events; |json| is released. With |event| a line that names it comes first. */
void append_event(bytes *out, const char *event, json_t *json);
/* The JSON alone with a newline. */
void append_line(bytes *out, json_t *json);
/* |prefix| and random digits. */
void make_id(char *id, size_t size, const char *prefix);

#endif
