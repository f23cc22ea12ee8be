/* A server of language models over HTTP, in the manners of OpenAI, Anthropic and Ollama. */
#ifndef RDNA_SERVER_SERVER_H
#define RDNA_SERVER_SERVER_H

#include "rdna/device.h"
#include "rdna/image_model.h"
#include "server/preset.h"

/* A model that draws. */
typedef struct images_options {
  const char *folder;
  const char *name; /* what it is called; NULL: as the folder */
  bool frugal;      /* each part of it leaves the device when it has done its work */
  int queue;        /* most requests that wait for it */
  int tile;         /* see rdna_image_request */
  /* How it is opened: its LoRAs' scales are those of requests that say none. */
  const rdna_image_model_options *model;
  const char *const *lora_names, *const *control_names, *const *adapter_names; /* by which requests choose them */
  const char *const *upscalers, *const *upscaler_names; /* (upscaler_count) files, and the same of them */
  int upscaler_count;
} images_options;

typedef struct server_options {
  const char *host;        /* an address of this machine */
  int port;                /* 0: any free one */
  bool any_model;          /* answer whatever model a request names, with the first one where it has another name */
  int most_loaded;         /* models in memory at a time; 0: as many as there is room for */
  const char *const *keys; /* (key_count) any of which a request must have; none: nothing is asked */
  size_t key_count;
  const char *cors; /* the origin whose pages may ask, "*" for all; NULL: none */
  size_t most_body; /* bytes of a request */
  int most_connections;
  double most_seconds;                /* that a request may take; 0: any time */
  double patience_seconds;            /* that a request may take to arrive */
  double ping_seconds;                /* after which a stream that is silent pings */
  const char *cache_folder;           /* where what models have read is saved when they leave memory; NULL: nowhere */
  void (*warn)(const char *sentence); /* what its user should know, though all goes on; from any thread */
  const char *worker_id;              /* what a hive calls it; NULL: it has none */
  const images_options *images;       /* of a model that draws, in place of language models; NULL: there is none */
  bool no_page;                       /* nothing at / */
  bool log;                           /* a line of JSON on stderr for each request, and for models that come and go */
} server_options;

typedef struct server server;

/* Listens, and serves |presets| on |device|; returns when those that want it are loaded. Until then requests wait.
 * |options|, with what it points to, and the device must stay. |progress| as in rdna_llm_open, on another thread.
 * RDNA_UNAVAILABLE: the port cannot be had. */
rdna_status server_start(const server_options *options, const preset *presets, size_t count, rdna_device *device,
                         void (*progress)(void *data, double share), void *progress_data, server **out_server);
/* Serves |presets| from now on: models whose presets are as they were stay in memory, and answers go on. */
rdna_status server_reload(server *s, const preset *presets, size_t count);
int server_port(const server *s);
bool server_is_healthy(server *s); /* no device is lost */
/* Takes no more requests, and returns when those that are there are answered, or after |seconds|. */
void server_drain(server *s, double seconds);
/* What is still being written ends. NULL is fine. */
void server_stop(server *s);

#endif
