/* The daemon: connections, bodies, streams, and who has gone. */
#ifndef RDNA_SERVER_HTTP_H
#define RDNA_SERVER_HTTP_H

#include <pthread.h>

#include "server/exchange.h"

struct server {
  const server_options *options;
  served_model model;
  scheduler *scheduler;
  struct MHD_Daemon *daemon;
  int port;
  pthread_t watcher;
  bool has_watcher;
  /* Under the scheduler's lock. */
  bool leaving;
  exchange *waiting; /* those whose jobs are not finished */
};

rdna_status http_start(server *s);
void http_stop(server *s);

/* From watch.c: the thread that notices who has gone, whose time is over, and who has heard nothing for long. */
rdna_status watch_start(server *s);
void watch_stop(server *s);

#endif
