#include <poll.h>

#include "base/status.h"
#include "server/clock.h"
#include "server/http.h"

static const double SILENCE = 10; /* seconds after which a stream pings */

/* A client that goes is not seen by whoever sleeps until there is something to send. */
static bool has_gone(const exchange *x) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  struct pollfd fd = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};
  return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* Under the lock. */
static void look_at(server *s, exchange *x, double now) {
  double most = s->options->most_seconds;
  if (!x->job || x->job->unfinished == 0 || x->job->cancelled) return;
  if (has_gone(x) || (most > 0 && now - x->begun > most)) {
    scheduler_cancel(s->scheduler, x->job);
  } else if (x->stream && x->suspended && x->dialect->ping[0] && now - x->last_sent > SILENCE) {
    x->ping = true;
    x->suspended = false;
    MHD_resume_connection(x->connection);
  }
}

static void *watch(void *data) {
  server *s = data;
  for (bool leaving = false; !leaving;) {
    poll(NULL, 0, 50);
    scheduler_lock(s->scheduler);
    double now = clock_seconds();
    for (exchange *x = s->waiting; x; x = x->after) look_at(s, x, now);
    leaving = s->leaving;
    scheduler_unlock(s->scheduler);
  }
  return NULL;
}

rdna_status watch_start(server *s) {
  s->has_watcher = pthread_create(&s->watcher, NULL, watch, s) == 0;
  return s->has_watcher ? RDNA_OK : rdna__fail(RDNA_UNAVAILABLE, "the system starts no thread to watch connections");
}

void watch_stop(server *s) {
  if (!s->has_watcher) return;
  scheduler_lock(s->scheduler);
  s->leaving = true;
  scheduler_unlock(s->scheduler);
  pthread_join(s->watcher, NULL);
  s->has_watcher = false;
}
