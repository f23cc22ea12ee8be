/* The daemon: connections, bodies, streams, and who has gone. */
#ifndef RDNA_SERVER_HTTP_H
#define RDNA_SERVER_HTTP_H

#include <pthread.h>

#include "server/exchange.h"

struct server {
  const server_options *options;
  rdna_device *device;
  void (*progress)(void *data, double share);
  void *progress_data;
  struct MHD_Daemon *daemon;
  int port;
  pthread_t watcher;
  bool has_watcher;
  pthread_t loader;
  bool has_loader;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* of the models */
  /* Under the lock. */
  bool draining, leaving;
  exchange *waiting;            /* those whose jobs are not finished, and those whose models are not loaded */
  struct catalog_model *models; /* in the order of their presets */
  uint64_t orders;              /* of models that were wanted */
  struct kept_job *jobs;        /* that wait for their readers or are read */
  int job_count;
  struct images *images; /* NULL: nothing is drawn */
  struct kept_painting *kept_paintings;
  int kept_painting_count;
  struct client *clients;
  scheduler_counts past; /* of models that went */
};

void server_lock(server *s);
void server_unlock(server *s);
/* Under the lock: */
void join_waiting(exchange *x);
void leave_waiting(exchange *x);
void resume(exchange *x); /* if it sleeps */
/* It waits for a model no longer: its handler is called again, or refuses with the problem if there is one. */
void stop_awaiting(exchange *x);

rdna_status http_start(server *s);
void http_stop(server *s);

/* From watch.c: the thread that notices who has gone, whose time is over, and who has heard nothing for long. */
rdna_status watch_start(server *s);
void watch_stop(server *s);

#endif
