#include "server/server.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "server/clock.h"
#include "server/http.h"

enum { SENDING_SECONDS = 5 };

rdna_status server_start(const server_options *options, const char *path, rdna_device *device,
                         void (*progress)(void *data, double share), void *progress_data, server **out_server) {
  server *s = calloc(1, sizeof *s);
  if (!s) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a server");
  s->options = options;
  rdna_status status = served_model_open(&s->model, path, options->name, device, progress, progress_data);
  if (status == RDNA_OK)
    status = scheduler_create(s->model.llm, s->model.tokenizer, &options->scheduler, &s->scheduler);
  if (status == RDNA_OK) status = watch_start(s);
  if (status == RDNA_OK) status = http_start(s);
  if (status != RDNA_OK) {
    server_stop(s);
    return status;
  }
  *out_server = s;
  return RDNA_OK;
}

int server_port(const server *s) { return s->port; }
const char *server_model_name(const server *s) { return s->model.name; }

/* What is written must also be sent. */
static bool all_sent(server *s) {
  scheduler_lock(s->scheduler);
  bool none = s->waiting == NULL;
  scheduler_unlock(s->scheduler);
  return none;
}

void server_drain(server *s, double seconds) {
  int socket = MHD_quiesce_daemon(s->daemon);
  if (socket != MHD_INVALID_SOCKET) close(socket);
  if (!scheduler_drain(s->scheduler, seconds)) return;
  for (double until = clock_seconds() + SENDING_SECONDS; !all_sent(s) && clock_seconds() < until;) poll(NULL, 0, 10);
}

void server_stop(server *s) {
  if (!s) return;
  if (s->scheduler) watch_stop(s);
  if (s->scheduler)
    scheduler_end(s->scheduler); /* wakes all connections: the HTTP library does not end beside sleepers */
  http_stop(s);
  scheduler_release(s->scheduler);
  served_model_close(&s->model);
  free(s);
}
