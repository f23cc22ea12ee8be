#include "server/clients.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "server/clock.h"
#include "server/http.h"

typedef struct client {
  struct client *before, *after;
  int fd;
  double since; /* seconds: when its request could begin to come */
  bool arrived; /* as a whole; it is being answered */
} client;

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
  c->since = clock_seconds();
  server_unlock(s);
}

void client_arrived(struct MHD_Connection *connection, server *s) { note(connection, s, true); }
void client_answered(struct MHD_Connection *connection, server *s) { note(connection, s, false); }

void clients_sweep(server *s, double now) {
  double most = s->options->patience_seconds;
  for (client *c = s->clients; c; c = c->after)
    if (!c->arrived && now - c->since > most) shutdown(c->fd, SHUT_RDWR); /* the library closes it */
}
