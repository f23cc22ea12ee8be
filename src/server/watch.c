#include <poll.h>

#include "base/status.h"
#include "server/clients.h"
#include "server/clock.h"
#include "server/http.h"
#include "server/images_jobs.h"
#include "server/jobs.h"

/* A client that goes is not seen by whoever sleeps until there is something to send. */
static bool has_gone(const exchange *x) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  struct pollfd fd = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};
  return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* Under the lock. */
static void look_at(server *s, exchange *x, double now) {
  double most = s->options->most_seconds;
  bool gone = has_gone(x);
  if (x->watches_load && (gone || s->draining)) resume(x);
  if (x->awaited && (gone || (most > 0 && now - x->begun > most))) {
    refuse(&x->problem, 503, NULL, NULL, "the request's time was over before the model was loaded");
    stop_awaiting(x);
  }
  images_look_at(x, gone, now);
  if (!x->job || x->job->unfinished == 0 || x->job->cancelled) return;
  if (gone) {
    scheduler_cancel(x->scheduler, x->job);
  } else if (x->stream && x->suspended && x->dialect->ping[0] && now - x->last_sent > s->options->ping_seconds) {
    x->ping = true;
    resume(x);
  }
}

static void *watch(void *data) {
  server *s = data;
  for (bool leaving = false; !leaving;) {
    poll(NULL, 0, 50);
    server_lock(s);
    double now = clock_seconds();
    for (exchange *x = s->waiting, *next; x; x = next) {
      next = x->after;
      look_at(s, x, now);
    }
    jobs_sweep(s, now);
    image_jobs_sweep(s, now);
    clients_sweep(s, now);
    leaving = s->leaving;
    server_unlock(s);
  }
  return NULL;
}

rdna_status watch_start(server *s) {
  s->has_watcher = pthread_create(&s->watcher, NULL, watch, s) == 0;
  return s->has_watcher ? RDNA_OK : rdna__fail(RDNA_UNAVAILABLE, "the system starts no thread to watch connections");
}

void watch_stop(server *s) {
  if (!s->has_watcher) return;
  server_lock(s);
  s->leaving = true;
  server_unlock(s);
  pthread_join(s->watcher, NULL);
  s->has_watcher = false;
}
