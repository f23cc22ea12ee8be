#include "server/clients.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "server/clock.h"
#include "server/http.h"

typedef struct client {
  struct client *before, *after;
  int fd;
  double since; /* seconds: when its request could begin to come */
  bool arrived; /* as a whole; it is being answered */
  double ended; /* seconds: when it was seen that nothing more can come; 0: it can */
} client;

enum { READING_SECONDS = 1 }; /* for the library to read what came last */

static client *find(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

void client_notify(void *data, struct MHD_Connection *connection, void **socket_context,
                   enum MHD_ConnectionNotificationCode what) {
  server *s = data;
  client *c = *socket_context;
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    c = info ? calloc(1, sizeof *c) : NULL;
    if (!c) return; /* nobody watches it then, but for the library's own limit */
    c->fd = info->connect_fd;
    c->since = clock_seconds();
    server_lock(s);
    c->after = s->clients;
    if (s->clients) s->clients->before = c;
    s->clients = c;
    server_unlock(s);
    *socket_context = c;
  } else if (c) {
    server_lock(s);
    if (c->before) c->before->after = c->after;
    if (c->after) c->after->before = c->before;
    if (s->clients == c) s->clients = c->after;
    server_unlock(s);
    *socket_context = NULL;
    free(c);
  }
}

static void note(struct MHD_Connection *connection, server *s, bool arrived) {
  client *c = find(connection);
  if (!c) return;
  server_lock(s);
  c->arrived = arrived;
  c->ended = 0;
  c->since = clock_seconds();
  server_unlock(s);
}

void client_arrived(struct MHD_Connection *connection, server *s) { note(connection, s, true); }
void client_answered(struct MHD_Connection *connection, server *s) { note(connection, s, false); }

/* Whether the client has said that it sends no more, and all that it sent was read: what is not whole then never is. */
static bool has_ended(const client *c) {
  struct pollfd fd = {.fd = c->fd, .events = POLLRDHUP};
  int unread = 0;
  return poll(&fd, 1, 0) > 0 && (fd.revents & POLLRDHUP) && ioctl(c->fd, FIONREAD, &unread) == 0 && unread == 0;
}

void clients_sweep(server *s, double now) {
  double most = s->options->patience_seconds;
  for (client *c = s->clients; c; c = c->after) {
    if (c->arrived) continue;
    if (!has_ended(c))
      c->ended = 0;
    else if (c->ended == 0)
      c->ended = now;
    bool is_over = c->ended > 0 && now - c->ended > READING_SECONDS;
    if (is_over || now - c->since > most) shutdown(c->fd, SHUT_RDWR); /* the library closes it */
  }
}
