#include "server/server.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "server/catalog.h"
#include "server/clock.h"
#include "server/http.h"
#include "server/images.h"
#include "server/jobs.h"

enum { SENDING_SECONDS = 5, LAST_SECONDS = 1 };

static rdna_status server_create(const server_options *options, rdna_device *device, server **out) {
  server *s = calloc(1, sizeof *s);
  if (!s) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a server");
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, &clock);
  pthread_condattr_destroy(&clock);
  s->options = options;
  s->device = device;
  *out = s;
  return RDNA_OK;
}

rdna_status server_start(const server_options *options, const preset *presets, size_t count, rdna_device *device,
                         void (*progress)(void *data, double share), void *progress_data, server **out_server) {
  server *s = NULL;
  RDNA_TRY(server_create(options, device, &s));
  s->progress = progress;
  s->progress_data = progress_data;
  rdna_status status = catalog_set(s, presets, count);
  if (status == RDNA_OK) status = images_start(s);
  if (status == RDNA_OK) status = watch_start(s);
  if (status == RDNA_OK) status = http_start(s);
  if (status == RDNA_OK) status = catalog_start(s);
  if (status == RDNA_OK) status = catalog_wait(s);
  if (status != RDNA_OK) {
    server_stop(s);
    return status;
  }
  *out_server = s;
  return RDNA_OK;
}

rdna_status server_reload(server *s, const preset *presets, size_t count) { return catalog_set(s, presets, count); }

int server_port(const server *s) { return s->port; }

bool server_is_healthy(server *s) {
  server_lock(s);
  bool lost = catalog_counts(s).lost;
  server_unlock(s);
  return !lost;
}

/* What is written must also be sent. */
static bool all_sent(server *s) {
  server_lock(s);
  bool none = s->waiting == NULL;
  server_unlock(s);
  return none;
}

static void wait_until_sent(server *s, double seconds) {
  for (double until = clock_seconds() + seconds; !all_sent(s) && clock_seconds() < until;) poll(NULL, 0, 10);
}

/* The scheduler of a model that has not ended its texts; it stays while it is looked at. */
static catalog_model *hold_next(server *s, const catalog_model *after) {
  server_lock(s);
  catalog_model *m = after ? after->next : s->models;
  while (m && m->state != MODEL_IN) m = m->next;
  if (m) m->holders++;
  server_unlock(s);
  return m;
}

static bool drain_models(server *s, double until) {
  bool all = true;
  for (catalog_model *m = hold_next(s, NULL), *next; m; m = next) {
    double left = until - clock_seconds();
    all &= scheduler_drain(m->scheduler, left > 0 ? left : 0);
    next = hold_next(s, m);
    server_lock(s);
    catalog_drop(s, m);
    server_unlock(s);
  }
  return all;
}

void server_drain(server *s, double seconds) {
  int socket = MHD_quiesce_daemon(s->daemon);
  if (socket != MHD_INVALID_SOCKET) close(socket);
  catalog_quiet(s);
  images_drain(s, seconds);
  if (!drain_models(s, clock_seconds() + seconds)) return;
  wait_until_sent(s, SENDING_SECONDS);
}

void server_stop(server *s) {
  if (!s) return;
  catalog_quiet(s);
  images_stop(s);
  watch_stop(s);
  catalog_end(s); /* wakes all connections: the HTTP library does not end beside sleepers */
  wait_until_sent(s, LAST_SECONDS);
  http_stop(s);
  images_free(s);
  server_lock(s);
  jobs_end(s);
  server_unlock(s);
  catalog_deinit(s);
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->changed);
  free(s);
}
