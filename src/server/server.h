/* A server of one language model over HTTP, in the manners of OpenAI, Anthropic and Ollama. */
#ifndef RDNA_SERVER_SERVER_H
#define RDNA_SERVER_SERVER_H

#include "rdna/device.h"
#include "server/scheduler.h"

typedef struct server_options {
  const char *host;        /* an address of this machine */
  int port;                /* 0: any free one */
  const char *name;        /* of the model; NULL: its file's, without the ending */
  bool any_model;          /* answer whatever model a request names */
  const char *const *keys; /* (key_count) any of which a request must have; none: nothing is asked */
  size_t key_count;
  const char *cors; /* the origin whose pages may ask, "*" for all; NULL: none */
  size_t most_body; /* bytes of a request */
  int most_connections;
  double most_seconds; /* that a request may take; 0: any time */
  bool log_requests;   /* a line of JSON on stderr for each */
  scheduler_options scheduler;
} server_options;

typedef struct server server;

/* Opens the model at |path| on |device| and listens. |options| and what it points to must stay. |progress| as in
 * rdna_llm_open. RDNA_UNAVAILABLE: the port cannot be had. */
rdna_status server_start(const server_options *options, const char *path, rdna_device *device,
                         void (*progress)(void *data, double share), void *progress_data, server **out_server);
int server_port(const server *s);
const char *server_model_name(const server *s);
/* Takes no more requests, and returns when those that are there are answered, or after |seconds|. */
void server_drain(server *s, double seconds);
/* What is still being written ends. NULL is fine. */
void server_stop(server *s);

#endif
